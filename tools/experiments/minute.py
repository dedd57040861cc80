"""What about one minute of training gives: attention and fixed context, side by side.

`make results` writes `minute.json`. Same encoder, sizes, batches and rate in all runs;
the number of epochs is what fits into about 60 seconds on two cores.
"""

import json
import platform

import torch
from runs import RESULTS, train, translations

from utils.corpora import load_village
from utils.metrics import bleu, quality_by_length
from utils.seq2seq import build_model

PATH = RESULTS / "minute.json"
SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "lr": 6e-3,
    "seed": 0,
}
RUNS = [("attention", "fr", 2), ("attention", "zh", 2), ("fixed", "fr", 3)]
BUCKETS = [(3, 9), (10, 19), (20, 30)]


def run(kind, target, num_epochs):
    """Train one model; seconds, and test BLEU by source length."""
    corpus = load_village("en", target)
    vocabs = corpus.vocabs()
    torch.manual_seed(SETTINGS["seed"])
    model = build_model(
        kind,
        *map(len, vocabs),
        SETTINGS["embed_size"],
        SETTINGS["num_hiddens"],
        bidirectional=SETTINGS["bidirectional"],
    )
    trainer = train(
        model,
        corpus["train"],
        vocabs,
        SETTINGS["seed"],
        num_epochs,
        SETTINGS["batch_size"],
        SETTINGS["lr"],
    )
    hypotheses = translations(model, corpus["test"], vocabs)
    references = [list(pair.target) for pair in corpus["test"]]
    lengths = [len(pair.source) for pair in corpus["test"]]
    buckets = quality_by_length(lengths, hypotheses, references, BUCKETS)
    return {
        "kind": kind,
        "direction": f"en-{target}",
        "num_epochs": num_epochs,
        "seconds": round(trainer.seconds),
        "bleu": round(bleu(hypotheses, references), 2),
        "bleu_by_length": {bucket.label: round(bucket.score, 2) for bucket in buckets},
    }


if __name__ == "__main__":
    runs = []
    for arguments in RUNS:
        runs.append(run(*arguments))
        print(runs[-1], flush=True)
    stored = {
        "command": "make results",
        "settings": SETTINGS,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "runs": runs,
    }
    PATH.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
