"""Quality against length for context vectors of several sizes.

Notebook 02 reads what is stored.
"""

from tools.experiments.runs import build, every, scored, translations, village
from utils.metrics import quality_by_length

SETTINGS = {
    "embed_size": 64,
    "num_epochs": 3,
    "batch_size": 64,
    "lr": 6e-3,
    "buckets": [(3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30)],
}
plan = every(seed=(0, 1), num_hiddens=(32, 128, 256))


def run(settings, num_hiddens, seed):
    """Train one fixed-context model."""
    about = {**settings, "num_hiddens": num_hiddens, "seed": seed}
    found = by_length({"kind": "fixed", "direction": "en-fr", **about})
    return {"num_hiddens": num_hiddens, **found}


def by_length(about):
    """Train a model; the figures of `scored`, and BLEU by source length."""
    corpus, vocabs = village(about["direction"])
    model, test = build(vocabs, about), corpus["test"]
    figures = scored(model, corpus, vocabs, about)
    lengths, sides = [len(p.source) for p in test], translations(model, test, vocabs)
    rows = quality_by_length(lengths, *sides, about["buckets"])
    return {**figures, "bleu_by_length": [round(row.score, 2) for row in rows]}
