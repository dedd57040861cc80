"""Train the small models that ship with the course: `make model`, about five minutes.

    python data/models/train.py             both directions
    python data/models/train.py en-zh       one of them

Each is saved beside this file with its settings and its scores on the test split.
`python data/models/train.py picture` draws the README's heatmap.
"""

import platform
import sys
from pathlib import Path

import torch

from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.data import Batch, BatchLoader
from utils.decoding import translate_tokens
from utils.metrics import alignment_error_rate, bleu, links_from_weights
from utils.plotting import show_heatmap
from utils.seq2seq import build_model
from utils.training import Trainer

FOLDER = Path(__file__).resolve().parents[2] / "data" / "models"
SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "dropout": 0.0,
    "num_epochs": 4,
    "batch_size": 64,
    "lr": 3e-3,
    "seed": 0,
}


def train(source, target, settings=SETTINGS):
    """Train, score and save one direction."""
    corpus = load_village(source, target)
    vocabs = corpus.vocabs()
    torch.manual_seed(settings["seed"])
    model = build_model(
        "attention",
        *map(len, vocabs),
        settings["embed_size"],
        settings["num_hiddens"],
        bidirectional=settings["bidirectional"],
        dropout=settings["dropout"],
    )
    loader = BatchLoader(
        corpus["train"], *vocabs, settings["batch_size"], settings["seed"]
    )
    valid = BatchLoader(corpus["valid"], *vocabs, 256)
    trainer = Trainer(model, loader, settings["num_epochs"], valid, settings["lr"]).fit(
        progress=sys.stderr.isatty()
    )
    notes = {
        "command": "make model",
        "corpus": f"Village {source}-{target}",
        "settings": settings,
        "seconds": round(trainer.seconds),
        "valid_loss": trainer.history[-1]["valid_loss"],
        **score(model, corpus["test"], *vocabs),
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    path = FOLDER / f"village-{source}-{target}.safetensors"
    save_checkpoint(path, model, *vocabs, notes=notes)
    print(path.name, notes)


@torch.no_grad()
def score(model, pairs, src_vocab, tgt_vocab):
    """Free-running BLEU, and the error rate of the weights against gold alignments."""
    results = translate_tokens(model, [p.source for p in pairs], src_vocab, tgt_vocab)
    quality = bleu([r.words for r in results], [list(p.target) for p in pairs])
    links = []
    for start in range(0, len(pairs), 128):
        part = pairs[start : start + 128]
        batch = Batch.from_pairs(part, src_vocab, tgt_vocab)
        model(batch.source, batch.target_in, batch.source_lens)
        for weights, pair in zip(model.decoder.attention_weights, part, strict=True):
            words = weights[: len(pair.target), : len(pair.source)]
            links.append(links_from_weights(words))
    aer = alignment_error_rate(links, [p.alignment for p in pairs]).aer
    return {"test_bleu": round(quality, 2), "test_aer": round(aer, 3)}


def draw_picture():
    """A test sentence: the first of 8 to 12 words with a swap and a negation."""
    model, *vocabs = load_checkpoint(FOLDER / "village-en-fr.safetensors")[:3]
    pair = next(
        pair
        for pair in load_village("en", "fr")["test"]
        if {"adj-swap", "ne-pas"} <= pair.tags and 8 <= len(pair.source) <= 12
    )
    batch = Batch.from_pairs([pair], *vocabs)
    with torch.no_grad():
        model(batch.source, batch.target_in, batch.source_lens)
    weights = model.decoder.attention_weights[0]
    weights = weights[: len(pair.target), : len(pair.source)]
    axes = show_heatmap(weights, pair.source, pair.target, gold=pair.alignment)
    picture = FOLDER.parents[1] / "notebooks" / "img" / "heatmap.png"
    axes.figure.savefig(picture, dpi=120, facecolor="white", bbox_inches="tight")


if __name__ == "__main__":
    for direction in sys.argv[1:] or ["en-fr", "en-zh", "picture"]:
        if direction == "picture":
            draw_picture()
        else:
            train(*direction.split("-"))
