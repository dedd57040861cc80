"""Quality against length for context vectors of several sizes: `make results`.

Notebook 01 reads what this writes, `bottleneck.json`. About ten minutes.
"""

import json
import platform
import sys
from pathlib import Path

import torch

from utils.data import BatchLoader, load_village
from utils.decoding import translate_tokens
from utils.metrics import bleu, quality_by_length
from utils.seq2seq import build_model
from utils.training import Trainer

PATH = Path(__file__).resolve().with_suffix(".json")
SIZES, SEEDS = (32, 128, 256), (0, 1)
SETTINGS = {"embed_size": 64, "num_epochs": 4, "batch_size": 64, "lr": 6e-3}
BUCKETS = [(3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30)]


def run(corpus, num_hiddens, seed):
    """Train one fixed-context model; its test BLEU in each bucket of source lengths."""
    vocabs = corpus.vocabs()
    torch.manual_seed(seed)
    model = build_model("fixed", *map(len, vocabs), SETTINGS["embed_size"], num_hiddens)
    loader = BatchLoader(corpus["train"], *vocabs, SETTINGS["batch_size"], seed)
    trainer = Trainer(model, loader, SETTINGS["num_epochs"], lr=SETTINGS["lr"])
    trainer.fit(progress=sys.stderr.isatty())
    sources = [list(pair.source) for pair in corpus["test"]]
    references = [list(pair.target) for pair in corpus["test"]]
    hypotheses = [r.words for r in translate_tokens(model, sources, *vocabs)]
    lengths = [len(source) for source in sources]
    buckets = quality_by_length(lengths, hypotheses, references, BUCKETS)
    return {
        "num_hiddens": num_hiddens, "seed": seed,
        "train_loss": round(trainer.history[-1]["train_loss"], 3),
        "bleu": round(bleu(hypotheses, references), 2),
        "bleu_by_length": [round(bucket.score, 2) for bucket in buckets],
        "seconds": round(trainer.seconds),
    }  # fmt: skip


if __name__ == "__main__":
    corpus = load_village("en", "fr")
    runs = []
    for seed in SEEDS:
        for size in SIZES:
            runs.append(run(corpus, size, seed))
            print(runs[-1], flush=True)
    stored = {
        "command": "make results", "corpus": "Village en-fr, test split",
        "settings": SETTINGS, "buckets": BUCKETS, "torch": torch.__version__,
        "python": platform.python_version(), "runs": runs,
    }  # fmt: skip
    PATH.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
