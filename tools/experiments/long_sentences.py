"""Quality against length, within what a model was trained on and beyond.

Figure 2 of Bahdanau et al. (2015) on Village en-fr: attention and fixed context,
trained on sentences of at most 15 source words and of at most 30, for as many updates,
with the same encoder, each at its own rate and at two budgets. Beside them what could
excuse the fixed context, other decoders with attention, and remedies that are trained,
all on at most 15 words.

Of the models of notebook 04 it stores, too, what windows change that are put round
places known from elsewhere, where looks go that go far astray, and how sentences are
translated that are long, but of no new build.

Notebook 07 reads what is stored.
"""

import torch

from tools.experiments.runs import (
    at_own_rate,
    bleu_of,
    build,
    trained,
    up_to,
    village,
)
from utils.alignment import (
    diagonal_places,
    forced_weights,
    linked_places,
    longest_gap,
    words_right,
)
from utils.data import Pair
from utils.decoding import translate_tokens
from utils.metrics import bleu
from utils.models import build_model
from utils.tasks import join_pairs

BUCKETS = [
    (3, 6),
    (7, 10),
    (11, 15),
    (16, 20),
    (21, 25),
    (26, 30),
    (31, 40),
    (41, 50),
    (51, 60),
]
SEEDS = (0, 1, 2)
SHORT, LONG = {"times": 1}, {"times": 3}
RATES = 0.006, 0.012, 0.024
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "buckets": BUCKETS,
    # Twice the pairs, half the epochs: 748 updates or 750.
    "num_epochs": {"15": 4, "30": 2},
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
OPTIONS = "place", "reach", "score", "feed"  # of the arm's kind


def plan(done):
    """Each arm at its own rate, at both budgets."""
    return [
        run
        for arm in ARMS
        for run in at_own_rate(done, {"arm": arm}, RATES, [SHORT, LONG], SEEDS)
    ]


def reverse_sources(pairs):
    """The same pairs with the source words in reverse order, without alignments."""
    return [Pair(pair.source[::-1], pair.target, tags=pair.tags) for pair in pairs]


def joinable(pairs, least=1, commas=0):
    """Statements of so many source words, with so few commas, without a "but"."""
    return [
        p
        for p in pairs
        if len(p.source) >= least
        and p.source[-1] == "."
        and "but" not in p.source
        and p.source.count(",") <= commas
    ]


def half_joined(pairs):
    """As many pairs: half as they are, half of them "A, but B" of two of the pairs."""
    half = len(pairs) // 2
    return pairs[:half] + join_pairs(joinable(pairs))[:half]


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
        figures["skips"] = round(sum(gap >= skipped for gap in gaps) / len(gaps), 3)
    return figures


def joined_scores(model, pairs, max_words, vocabs, settings):
    """BLEU of "A, but B" of two test sentences, by bucket; None for fewer than 20."""
    halves = joinable(up_to(pairs, max_words), *settings["joined"][str(max_words)])
    buckets = in_buckets(join_pairs(halves), settings["buckets"])
    return [
        bleu_of(model, part, vocabs) if len(part) >= 20 else None for part in buckets
    ]


def with_window(model, reach):
    """The same model, looking through a window."""
    windowed = build_model(**{**model.config, "kind": "window"}, reach=reach)
    windowed.load_state_dict(model.state_dict())
    return windowed.eval()


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


def share_right(model, pairs, vocabs, places=None):
    """The share of target words that are right when the true ones before are read."""
    right, _ = words_right(model, pairs, vocabs, places)
    return round(float(torch.cat(right).mean()), 3)


def far_looks(model, pairs, vocabs, far):
    """Looks of linked target words at a source word that is far from all linked ones.

    share: of all looks; ahead: of the far ones, those to the right; alike: those at the
    same word as a linked one.
    """
    looks, ahead, alike = [], [], []
    for weights, pair in zip(forced_weights(model, pairs, vocabs), pairs, strict=True):
        links = pair.alignment | pair.possible
        for i in {i for _, i in links}:
            look = int(weights[i].argmax())
            linked = [j for j, target in links if target == i]
            looks.append(min(abs(look - j) for j in linked) > far)
            if looks[-1]:
                ahead.append(look > max(linked))
                alike.append(pair.source[look] in {pair.source[j] for j in linked})
    counts = {"share": (looks, len(looks)), "ahead": (ahead, len(ahead))}
    counts["alike"] = alike, len(alike)
    return {name: round(sum(x) / max(n, 1), 3) for name, (x, n) in counts.items()}


def look_closer(model, corpus, max_words, vocabs, settings):
    """What windows change on trained lengths and on long sentences; far looks; joined.

    windows: for "test" and "long", the share of words right, "free" and by reach and
    place.
    """
    windows, far = {}, {}
    for name, pairs in (
        ("test", up_to(corpus["test"], max_words)),
        ("long", corpus["long"]),
    ):
        pairs = pairs[: settings["read"]]
        far[name] = far_looks(model, pairs, vocabs, settings["far"])
        windows[name] = {"free": share_right(model, pairs, vocabs)}
        for reach in settings["reaches"]:
            reader = with_window(model, reach)
            windows[name][str(reach)] = {
                place: share_right(reader, pairs, vocabs, places)
                for place, places in PLACES.items()
            }
    joined = joined_scores(model, corpus["test"], max_words, vocabs, settings)
    return {"windows": windows, "far_looks": far, "joined": joined}


def run(settings, arm, seed, times, lr):
    """Train one arm; its figures in each bucket of source lengths.

    known: BLEU of training sentences, in the buckets that were trained on.
    """
    about = {"max_words": 15, **settings, **ARMS[arm]}
    max_words = about["max_words"]
    epochs = times * settings["num_epochs"][str(max_words)]
    corpus, vocabs = village(settings["direction"])
    options = {name: about[name] for name in OPTIONS if name in about}
    model = build(about["kind"], vocabs, seed, about, **options)
    pairs, valid = (up_to(corpus[name], max_words) for name in ("train", "valid"))
    known = in_buckets(pairs, settings["buckets"])
    tested = in_buckets(corpus["test"] + corpus["long"], settings["buckets"])
    known = [part[: settings["known"]] for part in known if part]
    if about.get("join"):
        pairs = half_joined(pairs)
    if about.get("reverse"):
        pairs, valid = reverse_sources(pairs), reverse_sources(valid)
        known, tested = (list(map(reverse_sources, parts)) for parts in (known, tested))
    figures = trained(
        model, pairs, valid, vocabs, seed, {**about, "num_epochs": epochs, "lr": lr}
    )
    scores = [score(model, part, vocabs, settings["skipped"]) for part in tested]
    figures |= {name: [found[name] for found in scores] for name in scores[0]}
    figures["known"] = [bleu_of(model, part, vocabs) for part in known]
    if arm.startswith("attention"):
        figures |= look_closer(model, corpus, max_words, vocabs, settings)
    return figures
