"""What to expect of one's own text: BLEU and minutes by the number of sentence pairs.

Notebook 11 reads what is stored. The real text must be there: see the README. Trained
by the command's own settings for so many pairs; the test split is scored once. Three
seeds where that takes minutes.
"""

import random
import time
from dataclasses import asdict, replace

from tools.experiments.provenance import read
from tools.experiments.real_text import BEAM, scores, texts
from utils import by_hand
from utils.metrics import text_scores
from utils.recipe import Settings, fit

SETTINGS = {"beam": BEAM, "signature": text_scores(["a"], ["a"])["signature"]}
CORPORA = {"Multi30k de→en": "Multi30k de-en", "Tatoeba zh→en": "Tatoeba zh-en"}


def plan(done):
    """pairs: None for all."""
    few = [(1000, seed, corpus) for seed in range(3) for corpus in CORPORA]
    more = [(pairs, 0, corpus) for pairs in (10_000, None) for corpus in CORPORA]
    return [{"corpus": c, "pairs": n, "seed": seed} for n, seed, c in more + few]


def run(settings, corpus, pairs, seed):
    """One training on so many pairs, drawn by the seed; the test split's scores."""
    text = read(CORPORA[corpus])
    if pairs:
        rng = random.Random(f"{pairs} pairs, seed {seed}")
        train = rng.sample(text["train"], pairs)
        text = replace(text, splits={**text.splits, "train": train})
    chosen = Settings.for_text(len(text["train"]), seed=seed)
    start = time.process_time()
    fitted = fit(text, chosen, progress=False, loss_function=by_hand.loss)
    minutes = (time.process_time() - start) / 60
    best = fitted.trainer.history[fitted.best_epoch - 1]
    figures = {
        "training_pairs": len(text["train"]),
        "settings": asdict(chosen),
        "cpu_minutes": round(minutes, 1),
        "best_epoch": fitted.best_epoch,
        "valid_loss": round(best["valid_loss"], 3),
    }
    for name, search in (("greedy", {}), ("beam", settings["beam"])):
        found = texts(fitted.model, fitted.vocabs, text["test"], search)
        figures[name] = scores(found, text, "test")
    return figures
