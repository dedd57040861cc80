"""Quality against length for context vectors of several sizes.

Notebook 02 reads what is stored.
"""

from tools.experiments.runs import aer_of, build, trained, translations, village
from utils.metrics import bleu, quality_by_length

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
    """Train one fixed-context model."""
    about = {"direction": "en-fr", **settings, "num_hiddens": num_hiddens}
    return {"num_hiddens": num_hiddens, **measured("fixed", seed, about)}


def measured(kind, seed, about):
    """Train a model; its losses, and of the test split BLEU, by length, and AER."""
    corpus, vocabs = village(about["direction"])
    model, test = build(kind, vocabs, seed, about), corpus["test"]
    figures = trained(model, corpus["train"], corpus["valid"], vocabs, seed, about)
    sides = translations(model, test, vocabs)
    lengths = [len(pair.source) for pair in test]
    rows = quality_by_length(lengths, *sides, about["buckets"])
    figures["bleu"] = round(bleu(*sides), 2)
    figures["bleu_by_length"] = [round(row.score, 2) for row in rows]
    return figures | {"aer": aer_of(model, test, vocabs) if kind != "fixed" else None}
