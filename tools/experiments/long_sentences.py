"""Quality against length, within what a model was trained on and beyond.

Figure 2 of Bahdanau et al. (2015) on Village en-fr: attention and fixed context,
trained on sentences of at most 15 source words and of at most 30, for as many updates,
with the same encoder, each at its own rate and at two budgets. Beside them what could
excuse the fixed context, other decoders with attention, and remedies that are trained,
all on at most 15 words.

Of the models of notebook 05 it stores, too, what windows change that are put round
places known from elsewhere, where looks go that go far astray, and how sentences are
translated that are long, but of no new build.

Notebook 08 reads what is stored.
"""

from itertools import pairwise

import torch

from tools.experiments import runs
from utils.alignment import (
    diagonal_places,
    forced_weights,
    linked_places,
    longest_gap,
    words_right,
)
from utils.decoding import translate_tokens
from utils.metrics import bleu
from utils.models import build_model
from utils.tasks import join_pairs

ENDS = 2, 6, 10, 15, 20, 25, 30, 40, 50, 60
RATES = 0.006, 0.012, 0.024
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "buckets": [(low + 1, high) for low, high in pairwise(ENDS)],
    "num_epochs": {"15": 4, "30": 2},  # 748 updates, or 750 of twice the pairs
    "known": 200,  # training sentences that are tested, of each bucket
    "skipped": 5,  # source words in a row that count as a skip
    "far": 5,  # from a linked word: a far look
    "reaches": [2, 3, 5],  # of the windows
    "read": 300,  # sentences that are read through windows
    "joined": {"15": [8, 0], "30": [16, 1]},  # least words, most commas of each half
}
ONE_WAY = {"kind": "fixed", "bidirectional": False}
ARMS = {  # the decoder, and what differs from SETTINGS
    "attention, 15": {"kind": "attention", "max_words": 15},
    "fixed, 15": {"kind": "fixed", "max_words": 15},
    "attention, 30": {"kind": "attention", "max_words": 30},
    "fixed, 30": {"kind": "fixed", "max_words": 30},
    "local-m": {"kind": "local", "place": "monotonic", "reach": 5},
    "joined": {"kind": "attention", "join": True},
    "Luong": {"kind": "luong", "score": "additive", "feed": "attentional"},
    "released": {"kind": "luong", "score": "additive", "feed": "context"},
    "coverage": {"kind": "coverage"},
    "local-p": {"kind": "local", "place": "predicted", "reach": 5},
    "fixed, one way": ONE_WAY,
    "fixed, one way, reversed": {**ONE_WAY, "reverse": True},
}
SETTINGS["arms"] = ARMS  # so a stored run counts only if its arm was this one


def plan(done):
    """Each arm at its own rate, at both budgets."""
    budgets, named = [{"times": 1}, {"times": 3}], []
    for arm in ARMS:
        named += runs.at_own_rate(done, {"arm": arm}, RATES, budgets)
    return named


def reverse_sources(pairs):
    """The same pairs with the source words in reverse order, without alignments."""
    return [p._replace(source=p.source[::-1], alignment=None) for p in pairs]


def joinable(pairs, least=1, commas=0):
    """Statements of so many source words, with so few commas, without a "but"."""
    sources = [(pair, pair.source) for pair in pairs if "but" not in pair.source]
    return [
        pair
        for pair, words in sources
        if len(words) >= least and words[-1] == "." and words.count(",") <= commas
    ]


def in_buckets(pairs, buckets):
    """The pairs of each bucket of source lengths."""
    return [[p for p in pairs if low <= len(p.source) <= high] for low, high in buckets]


def score(model, pairs, vocabs, skipped):
    """BLEU, words written for each reference word, and the share with a skip.

    A skip: no target word looked most at `skipped` source words in a row.
    """
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    hypotheses = [result.words for result in results]
    references = [list(pair.target) for pair in pairs]
    figures = {
        "bleu": round(bleu(hypotheses, references), 2),
        "length": round(sum(map(len, hypotheses)) / sum(map(len, references)), 3),
    }
    if results[0].attention_weights is not None:
        gaps = [longest_gap(result.attention_weights) for result in results]
        figures["skips"] = runs.share([gap >= skipped for gap in gaps])
    return figures


def a_step_ago(places):
    """The same places, each a step later, as a window has them that follows itself."""
    return lambda pairs: places(pairs).roll(1, dims=1).index_fill(1, torch.tensor(0), 0)


PLACES = {
    "own": None,
    "gold": a_step_ago(linked_places),
    "diagonal": a_step_ago(diagonal_places),
    "gold, now": linked_places,
    "diagonal, now": diagonal_places,
}


def windows(model, pairs, vocabs, reaches):
    """Shares of words right when the true ones before are read, by reach and place.

    "free" is the model as it is; others look through a window round a place.
    """

    def share_right(model, places=None):
        right, _ = words_right(model, pairs, vocabs, places)
        return round(float(torch.cat(right).mean()), 3)

    found = {"free": share_right(model)}
    for reach in reaches:
        reader = build_model(**{**model.config, "kind": "window"}, reach=reach)
        reader.load_state_dict(model.state_dict())
        shares = {name: share_right(reader, places) for name, places in PLACES.items()}
        found[str(reach)] = shares
    return found


def far_looks(model, pairs, vocabs, far):
    """Looks of linked target words at a source word that is far from all linked ones.

    share: of all looks; ahead: of the far ones, those to the right; alike: those at the
    same word as a linked one.
    """
    found = {"share": [], "ahead": [], "alike": []}
    for weights, pair in zip(forced_weights(model, pairs, vocabs), pairs, strict=True):
        links = pair.alignment | pair.possible
        for i in {i for _, i in links}:
            look, linked = int(weights[i].argmax()), [j for j, k in links if k == i]
            found["share"].append(min(abs(look - j) for j in linked) > far)
            if found["share"][-1]:
                words = {pair.source[j] for j in linked}
                found["ahead"].append(look > max(linked))
                found["alike"].append(pair.source[look] in words)
    return {name: runs.share(looks) for name, looks in found.items()}


def run(settings, arm, seed, times, lr):
    """Train one arm; its figures in each bucket of source lengths.

    known: BLEU of training sentences, in the buckets that were trained on.
    """
    about = {"max_words": 15, **settings, **ARMS[arm]}
    corpus, most = runs.village(settings["direction"])[0], str(about["max_words"])
    vocabs, pairs, valid, test = runs.short_sentences(about)
    model, buckets = runs.build(about["kind"], vocabs, seed, about), settings["buckets"]
    turned = reverse_sources if about.get("reverse") else list
    known = [part[: settings["known"]] for part in in_buckets(pairs, buckets) if part]
    if about.get("join"):  # half as they are, half of them "A, but B"
        half = len(pairs) // 2
        pairs = pairs[:half] + join_pairs(joinable(pairs))[:half]
    about |= {"num_epochs": times * settings["num_epochs"][most], "lr": lr}
    figures = runs.trained(model, turned(pairs), turned(valid), vocabs, seed, about)
    scores = [
        score(model, turned(part), vocabs, settings["skipped"])
        for part in in_buckets(corpus["test"] + corpus["long"], buckets)
    ]
    figures |= {name: [found[name] for found in scores] for name in scores[0]}
    figures["known"] = [runs.bleu_of(model, turned(part), vocabs) for part in known]
    if arm.startswith("attention"):
        figures |= {"windows": {}, "far_looks": {}}
        for name, part in (("test", test), ("long", corpus["long"])):
            read = model, part[: settings["read"]], vocabs
            figures["windows"][name] = windows(*read, settings["reaches"])
            figures["far_looks"][name] = far_looks(*read, settings["far"])
        halves = joinable(test, *settings["joined"][most])
        figures["joined"] = [
            runs.bleu_of(model, part, vocabs) if len(part) >= 20 else None
            for part in in_buckets(join_pairs(halves), buckets)
        ]
    return figures
