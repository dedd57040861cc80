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
from tools.experiments.runs import SEEDS, every
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
plan = every(seed=SEEDS)


def part(corpus, lengths, seed):
    """The corpus of the pairs with targets of such lengths, in an order drawn anew."""
    splits = {
        name: [pair for pair in pairs if len(pair.target.split()) in lengths]
        for name, pairs in corpus.splits.items()
    }
    random.Random(seed).shuffle(splits["train"])
    return replace(corpus, splits=splits)


def run(settings, seed):
    """BLEU on long sentences, of each model; greedy."""
    whole, few = read("Tatoeba zh-en"), settings["pairs"]
    short = part(whole, range(settings["short"] + 1), seed)
    long = part(whole, range(settings["long"], 1000), seed)
    del short["train"][settings["start"] :]
    long.splits["test"] = long["test"] + long["train"][few:]  # Tatoeba has few
    del long["train"][few:]

    def fitted(corpus, pairs, start=None, **chosen):
        chosen = Settings.for_text(pairs, seed=seed, **chosen)
        return fit(corpus, chosen, start=start, progress=False)

    def bleu(found):
        written = texts(found.model, found.vocabs, long["test"], {})
        return scores(written, long, "test")["bleu"]

    start = fitted(short, settings["start"], num_epochs=settings["start_epochs"])
    figures = {
        "sizes": {name: len(pairs) for name, pairs in long.splits.items()},
        "the start as it is": bleu(start),  # before it is trained on
        "the 500 alone": bleu(fitted(long, few)),
    }
    begin = Checkpoint(start.model, *start.vocabs, None, {}, {})
    return {**figures, "fine-tuned": bleu(fitted(long, few, begin, **settings["from"]))}
