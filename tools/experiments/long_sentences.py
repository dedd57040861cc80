"""Quality against length, within what a model was trained on and beyond.

Figure 2 of Bahdanau et al. (2015) on Village en-fr: attention and fixed context,
trained on sentences of at most 15 source words and of at most 30, for as many updates,
with the same encoder, each at its own rate and at two budgets. Beside them, on at most
15 words: what could excuse the fixed context, other decoders with attention, and
remedies that are trained. Luong et al. (2015) found local-p best with the score
"general": so it is measured in their order with both scores, beside its controls.

Notebook 08 reads what is stored.
"""

import random
from dataclasses import replace
from itertools import pairwise
from statistics import fmean

from tools.experiments import runs
from utils.alignment import far_looks, forced_weights, longest_gap
from utils.data import Pair
from utils.decoding import translate_tokens
from utils.metrics import bleu

ENDS = 2, 6, 10, 15, 20, 25, 30, 40, 50, 60
RATES = 0.006, 0.012, 0.024
LUONG = {"score": "additive", "feed": "attentional"}
GENERAL = {**LUONG, "score": "general"}
PREDICTED = {"place": "predicted", "reach": 5}
ONE_WAY = {"kind": "fixed", "bidirectional": False}
ARMS = {  # the decoder, and what differs from SETTINGS
    "attention, 15": {"kind": "attention", "max_words": 15},
    "fixed, 15": {"kind": "fixed", "max_words": 15},
    "attention, 30": {"kind": "attention", "max_words": 30},
    "fixed, 30": {"kind": "fixed", "max_words": 30},
    "local-m": {"kind": "local", "place": "monotonic", "reach": 5},
    "joined": {"kind": "attention", "join": True},
    "Luong": {"kind": "luong", **LUONG},
    "released": {"kind": "luong", "score": "additive", "feed": "context"},
    "local-p": {"kind": "local", **PREDICTED},
    "Luong, local-p": {"kind": "luong local", **LUONG, **PREDICTED},
    "Luong, general": {"kind": "luong", **GENERAL},
    "Luong, general, local-p": {"kind": "luong local", **GENERAL, **PREDICTED},
    "fixed, one way": ONE_WAY,
    "fixed, one way, reversed": {**ONE_WAY, "reverse": True},
}
SETTINGS = {
    "direction": "en-fr",
    **runs.SIZES,
    "buckets": [(low + 1, high) for low, high in pairwise(ENDS)],
    "num_epochs": {"15": 4, "30": 2},  # 748 updates, or 750 of twice the pairs
    "known": 200,  # training sentences that are tested, of each bucket
    "skipped": 5,  # source words in a row that count as a skip
    "far": 5,  # from a linked word: a far look
    "read": 300,  # sentences whose looks are counted
    "arms": ARMS,  # so a stored run counts only if its arm was this one
}
plan = runs.each_at_own_rate(({"arm": arm}, RATES, {"times": (1, 3)}) for arm in ARMS)


def reverse_sources(corpus):
    """The same pairs with the source words in reverse order, without alignments."""
    splits = {
        split: [p._replace(source=p.source[::-1], alignment=None) for p in pairs]
        for split, pairs in corpus.splits.items()
    }
    return replace(corpus, splits=splits)


def join_pairs(pairs, seed=0):
    """Statements without a comma or a "but", each with another one: "A, but B"."""
    whole = [p for p in pairs if not {",", "but"} & {*p.source}]
    whole = [p for p in whole if p.source[-1] == "."]
    joined, order = [], random.Random(seed).sample(whole, len(whole))
    for first, second in zip(order, order[1:] + order[:1], strict=True):
        sides = zip(first[:2], second[:2], ("but", "mais"), strict=True)
        source, target = ((*a[:-1], ",", word, *b) for a, b, word in sides)
        joined.append(Pair(source, target, tags=first.tags))
    return joined


def in_buckets(pairs, buckets):
    """The pairs of each bucket of source lengths."""
    return [[p for p in pairs if low <= len(p.source) <= high] for low, high in buckets]


def score(model, pairs, vocabs, skipped):
    """BLEU, words written for each reference word, and the share with a skip.

    A skip: no target word looked most at `skipped` source words in a row.
    """
    results = translate_tokens(model, [pair.source for pair in pairs], *vocabs)
    sides = [result.words for result in results], [pair.target for pair in pairs]
    written, right = (sum(map(len, side)) for side in sides)
    figures = {"bleu": round(bleu(*sides), 2), "length": round(written / right, 3)}
    if results[0].attention_weights is not None:
        gaps = [longest_gap(result.attention_weights) for result in results]
        figures["skips"] = round(fmean(gap >= skipped for gap in gaps), 3)
    return figures


def run(settings, arm, seed, times, lr):
    """Train one arm; its figures in each bucket of source lengths.

    known: BLEU of training sentences, in the buckets that were trained on.
    """
    about = {"max_words": 15, **settings, **ARMS[arm], "seed": seed, "lr": lr}
    about["num_epochs"] = times * settings["num_epochs"][str(about["max_words"])]
    whole, vocabs = runs.village(settings["direction"])
    if about.get("reverse"):
        whole = reverse_sources(whole)
    corpus, model = runs.short(whole, about), runs.build(vocabs, about)
    train, buckets = corpus["train"], settings["buckets"]
    known = [part[: settings["known"]] for part in in_buckets(train, buckets) if part]
    if about.get("join"):  # half as they are, half of them "A, but B"
        half = len(train) // 2
        train[half:] = join_pairs(train)[:half]
    figures = runs.trained(model, corpus, vocabs, about)
    tested = in_buckets(whole["test"] + whole["long"], buckets)
    scores = [score(model, part, vocabs, settings["skipped"]) for part in tested]
    figures |= {name: [found[name] for found in scores] for name in scores[0]}
    figures["known"] = [runs.bleu_of(model, part, vocabs) for part in known]
    if arm.startswith("attention"):
        figures["far_looks"] = {}
        for split, part in (("test", corpus["test"]), ("long", whole["long"])):
            part = part[: settings["read"]]
            weights = forced_weights(model, part, vocabs)
            shares = far_looks(weights, part, settings["far"])
            named = zip(("share", "ahead", "alike"), shares, strict=True)
            figures["far_looks"][split] = {name: round(x, 3) for name, x in named}
    return figures
