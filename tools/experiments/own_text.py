"""What to expect of one's own text: BLEU by the number of sentence pairs.

Notebook 11 reads what is stored. The real text must be there: see the README. Trained
by the command's own settings for so many pairs; the test split is scored once. Three
seeds where that takes minutes.
"""

import random
from dataclasses import asdict, replace

from tools.experiments.provenance import read
from tools.experiments.real_text import BEAM, scores, texts
from tools.experiments.runs import SEEDS
from utils.metrics import text_scores
from utils.recipe import Settings, fit

SETTINGS = {"beam": BEAM, "signature": text_scores(["a"], ["a"])["signature"]}
CORPORA = {"Multi30k de→en": "Multi30k de-en", "Tatoeba zh→en": "Tatoeba zh-en"}


def plan(done):
    """pairs: None for all."""
    rows = [(10_000, 0), (None, 0), *((1000, seed) for seed in SEEDS)]
    return [{"corpus": c, "pairs": n, "seed": s} for n, s in rows for c in CORPORA]


def run(settings, corpus, pairs, seed):
    """One training on so many pairs, drawn by the seed; the test split's scores."""
    text = read(CORPORA[corpus])
    if pairs:
        rng = random.Random(f"{pairs} pairs, seed {seed}")
        train = rng.sample(text["train"], pairs)
        text = replace(text, splits={**text.splits, "train": train})
    chosen = Settings.for_text(len(text["train"]), seed=seed)
    model, vocabs, trainer, best_epoch = fit(text, chosen, progress=False)
    return {
        "training_pairs": len(text["train"]),
        "settings": asdict(chosen),
        "best_epoch": best_epoch,
        "valid_loss": round(trainer.history[best_epoch - 1]["valid_loss"], 3),
        "beam": scores(texts(model, vocabs, text["test"]), text, "test"),
    }
