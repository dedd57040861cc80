"""Quality against length for context vectors of several sizes: `make results`.

Notebook 01 reads what this writes, `bottleneck.json`. About ten minutes.
"""

import json
import platform

import torch
from runs import RESULTS, train, translations

from utils.corpora import load_village
from utils.metrics import bleu, quality_by_length
from utils.seq2seq import build_model

PATH = RESULTS / "bottleneck.json"
SIZES, SEEDS = (32, 128, 256), (0, 1)
SETTINGS = {"embed_size": 64, "num_epochs": 4, "batch_size": 64, "lr": 6e-3}
BUCKETS = [(3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30)]


def run(corpus, num_hiddens, seed):
    """Train one fixed-context model; its test BLEU in each bucket of source lengths."""
    vocabs = corpus.vocabs()
    torch.manual_seed(seed)
    model = build_model("fixed", *map(len, vocabs), SETTINGS["embed_size"], num_hiddens)
    trainer = train(
        model,
        corpus["train"],
        vocabs,
        seed,
        SETTINGS["num_epochs"],
        SETTINGS["batch_size"],
        SETTINGS["lr"],
    )
    hypotheses = translations(model, corpus["test"], vocabs)
    references = [list(pair.target) for pair in corpus["test"]]
    lengths = [len(pair.source) for pair in corpus["test"]]
    buckets = quality_by_length(lengths, hypotheses, references, BUCKETS)
    return {
        "num_hiddens": num_hiddens,
        "seed": seed,
        "train_loss": round(trainer.history[-1]["train_loss"], 3),
        "bleu": round(bleu(hypotheses, references), 2),
        "bleu_by_length": [round(bucket.score, 2) for bucket in buckets],
        "seconds": round(trainer.seconds),
    }


if __name__ == "__main__":
    corpus = load_village("en", "fr")
    runs = []
    for seed in SEEDS:
        for size in SIZES:
            runs.append(run(corpus, size, seed))
            print(runs[-1], flush=True)
    stored = {
        "command": "make results",
        "corpus": "Village en-fr, test split",
        "settings": SETTINGS,
        "buckets": BUCKETS,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "runs": runs,
    }
    PATH.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
