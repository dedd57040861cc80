"""What `--from` is worth: 500 long sentences, for a model of short ones.

The README quotes what is stored. Tatoeba, Chinese to English. The start is trained on
10,000 pairs of at most 7 English words. The new text has 11 or more: 500 pairs to train
on, in the start's own words, by the settings of `--from`. Controls: the start as it is,
and a training on the 500 alone. Three seeds.
"""

import random
from dataclasses import replace

from tools.experiments.provenance import read
from tools.experiments.real_text import scores, texts
from utils import by_hand
from utils.checkpoint import Checkpoint
from utils.metrics import text_scores
from utils.recipe import FROM_MODEL, Settings, fit

SETTINGS = {
    "short": 7,
    "long": 11,
    "start": 10_000,
    "start_epochs": 12,
    "pairs": 500,
    "from": FROM_MODEL,
    "signature": text_scores(["a"], ["a"])["signature"],
}


def plan(done):
    return [{"seed": seed} for seed in range(3)]


def part(corpus, keep, seed):
    """The corpus of those pairs whose target passes, in an order drawn by the seed."""
    splits = {name: list(filter(keep, pairs)) for name, pairs in corpus.splits.items()}
    random.Random(seed).shuffle(splits["train"])
    return replace(corpus, splits=splits)


def run(settings, seed):
    """BLEU on long sentences, of each model; greedy."""
    whole = read("Tatoeba zh-en")
    words = {name: settings[name] for name in ("short", "long")}
    short = part(whole, lambda p: len(p.target.split()) <= words["short"], seed)
    long = part(whole, lambda p: len(p.target.split()) >= words["long"], seed)
    short.splits["train"] = short["train"][: settings["start"]]
    rest = long["train"][settings["pairs"] :]  # Tatoeba has few: these test, too
    long.splits["test"] = long["test"] + rest
    long.splits["train"] = long["train"][: settings["pairs"]]
    epochs = settings["start_epochs"]
    base = Settings.for_text(settings["start"], seed=seed, num_epochs=epochs)
    chosen = Settings.for_text(settings["pairs"], seed=seed)
    few = replace(chosen, **settings["from"])
    options = {"progress": False, "loss_function": by_hand.loss}
    start = fit(short, base, **options)
    alone = fit(long, chosen, **options)
    before = bleu(start, long)
    begin = Checkpoint(start.model, *start.vocabs, None, {}, {})
    tuned = fit(long, few, start=begin, **options)
    return {
        "sizes": {name: len(pairs) for name, pairs in long.splits.items()},
        "the start as it is": before,
        "the 500 alone": bleu(alone, long),
        "fine-tuned": bleu(tuned, long),
    }


def bleu(fitted, corpus):
    """Of the test split's translations, greedy."""
    found = texts(fitted.model, fitted.vocabs, corpus["test"], {})
    return scores(found, corpus, "test")["bleu"]
