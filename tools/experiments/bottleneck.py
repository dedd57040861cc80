"""Quality against length for context vectors of several sizes.

Notebook 01 reads what is stored. About ten minutes.
"""

from tools.experiments.runs import bleu_by_length, build, train, village

SIZES, SEEDS = (32, 128, 256), (0, 1)
SETTINGS = {"embed_size": 64, "num_epochs": 4, "batch_size": 64, "lr": 6e-3}
BUCKETS = [(3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30)]
NOTES = {"corpus": "Village en-fr, test split", "buckets": BUCKETS}
RUNS = [{"num_hiddens": size, "seed": seed} for seed in SEEDS for size in SIZES]


def run(settings, num_hiddens, seed):
    """Train one fixed-context model; its test BLEU in each bucket of source lengths."""
    corpus, vocabs = village("en-fr")
    sizes = {**settings, "num_hiddens": num_hiddens}
    model = build("fixed", vocabs, seed, sizes)
    trainer = train(model, corpus["train"], vocabs, seed, settings)
    score, by_length = bleu_by_length(model, corpus["test"], vocabs, BUCKETS)
    return {
        "num_hiddens": num_hiddens,
        "seed": seed,
        "train_loss": round(trainer.history[-1]["train_loss"], 3),
        "bleu": score,
        "bleu_by_length": list(by_length.values()),
        "seconds": round(trainer.seconds),
    }
