"""Quality against length for context vectors of several sizes.

Notebook 02 reads what is stored.
"""

from tools.experiments.runs import bleu_by_length, build, trained, village

SETTINGS = {
    "embed_size": 64,
    "num_epochs": 3,
    "batch_size": 64,
    "lr": 6e-3,
    "buckets": [(3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30)],
}


def plan(done):
    return [
        {"num_hiddens": size, "seed": seed}
        for seed in (0, 1)
        for size in (32, 128, 256)
    ]


def run(settings, num_hiddens, seed):
    """Train one fixed-context model; its test BLEU in each bucket of source lengths."""
    corpus, vocabs = village("en-fr")
    model = build("fixed", vocabs, seed, {**settings, "num_hiddens": num_hiddens})
    figures = trained(model, corpus["train"], corpus["valid"], vocabs, seed, settings)
    score, by_length = bleu_by_length(
        model, corpus["test"], vocabs, settings["buckets"]
    )
    more = {"num_hiddens": num_hiddens, "bleu": score, "bleu_by_length": by_length}
    return {**figures, **more}
