"""Quality against length, trained on short and on long sentences.

Figure 2 of Bahdanau et al. (2015) on Village en-fr: attention and fixed context,
trained on sentences of at most 15 source words and of at most 30, for the same number
of steps, with the same encoder. Beside them the source reversed (Sutskever et al.,
2014). And, up to 30 words only, four times the steps, and what could excuse the fixed
context: an encoder of one direction, for which reversing was meant.

Of the models with attention it stores, too, what they skip, where in a sentence they go
wrong, what help with the place brings, and how they translate sentences that are long,
but of no new build.

Notebook 07 reads what is stored. About half an hour.
"""

from collections import Counter

import torch

from tools.experiments.runs import aer_of, bleu_of, build, train, up_to, village
from utils.alignment import by_tenth, longest_gap, words_right
from utils.data import Pair
from utils.decoding import translate_tokens
from utils.metrics import bleu
from utils.models import build_model
from utils.tasks import join_pairs
from utils.text import EOS

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
SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "lr": 6e-3,
    "buckets": BUCKETS,
    # Twice the pairs, half the epochs: 740 full batches either way.
    "pairs": {"15": 11840, "30": 23680},
    "num_epochs": {"15": 4, "30": 2},
    "skipped": 5,  # source words in a row that count as a skip
    "reaches": [3, 5, 8],
    "narrow": 2,  # of the windows
    "joined": {"15": [8, 0], "30": [16, 1]},  # least words, most commas of each half
}
ARMS = {  # the decoder, and what differs from SETTINGS
    "attention": {"kind": "attention"},
    "attention, 4 x steps": {"kind": "attention", "times": 4},
    "fixed": {"kind": "fixed"},
    "fixed, reversed": {"kind": "fixed", "reverse": True},
    "fixed, 4 x steps": {"kind": "fixed", "times": 4},
    "fixed, one way": {"kind": "fixed", "bidirectional": False},
    "fixed, one way, reversed": {
        "kind": "fixed",
        "bidirectional": False,
        "reverse": True,
    },
}
SEEDS = (0, 1, 2)
RUNS = [
    {"arm": arm, "max_len": max_len, "seed": seed}
    for seed in SEEDS
    for max_len, arms in ((15, ["attention", "fixed", "fixed, reversed"]), (30, ARMS))
    for arm in arms
]


def pairs_up_to(pairs, max_len, count):
    """The first `count` pairs of at most `max_len` source words.

    ValueError if there are fewer.
    """
    chosen = up_to(pairs, max_len)[:count]
    if len(chosen) < count:
        raise ValueError(
            f"only {len(chosen)} pairs have at most {max_len} source words; "
            f"{count} were asked for"
        )
    return chosen


def reverse_sources(pairs):
    """The same pairs with the source words in reverse order, without alignments."""
    return [Pair(pair.source[::-1], pair.target, tags=pair.tags) for pair in pairs]


def repeats(sentences, n=4):
    """The share of n-grams that stood earlier in the same sentence; 0 for none."""
    total = again = 0
    for words in sentences:
        counts = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        total += counts.total()
        again += counts.total() - len(counts)
    return again / max(total, 1)


def score(model, pairs, vocabs, aer=True):
    """Figures of the greedy translations of pairs.

    ended: share with <eos>. length: words written for each reference word. repeats: of
    4-grams. aer: of the weights under teacher forcing, None without attention or if
    it isn't asked for.
    """
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    hypotheses = [result.words for result in results]
    references = [list(pair.target) for pair in pairs]
    aer = aer and model.config["kind"] == "attention"
    return {
        "bleu": round(bleu(hypotheses, references), 2),
        "ended": round(sum(r.tokens[-1] == EOS for r in results) / len(pairs), 3),
        "length": round(sum(map(len, hypotheses)) / sum(map(len, references)), 3),
        "repeats": round(repeats(hypotheses), 4),
        "aer": aer_of(model, pairs, vocabs) if aer else None,
    }


def with_window(model, reach):
    """The same model, looking through a window."""
    windowed = build_model(**{**model.config, "kind": "window"}, reach=reach)
    windowed.load_state_dict(model.state_dict())
    return windowed.eval()


def in_buckets(pairs, buckets):
    """The pairs of each bucket of source lengths."""
    return [[p for p in pairs if low <= len(p.source) <= high] for low, high in buckets]


def joinable(pairs, least, commas):
    """Statements of so many source words, with so few commas, without a "but"."""
    return [
        p
        for p in pairs
        if len(p.source) >= least
        and p.source[-1] == "."
        and "but" not in p.source
        and p.source.count(",") <= commas
    ]


def joined_scores(model, pairs, max_len, vocabs, settings):
    """BLEU of "A, but B" of two test sentences, by bucket; None for fewer than 20."""
    halves = joinable(up_to(pairs, max_len), *settings["joined"][str(max_len)])
    buckets = in_buckets(join_pairs(halves), settings["buckets"])
    return [
        bleu_of(model, part, vocabs) if len(part) >= 20 else None for part in buckets
    ]


def rounded(values):
    """A tensor as plain numbers of three digits."""
    numbers = values.tolist()
    return [round(n, 3) for n in numbers] if values.dim() else round(numbers, 3)


def skips(model, pairs, vocabs, at_least):
    """The share of translations that step over so many source words in a row."""
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    gaps = [longest_gap(result.attention_weights) for result in results]
    return round(sum(gap >= at_least for gap in gaps) / len(gaps), 3)


def look_closer(model, corpus, max_len, vocabs, settings):
    """What is skipped, where words are right, and what help with the place brings.

    By bucket: skips, joined, windows (BLEU for each reach). By tenth of a sentence, as
    they are, in a narrow window that follows itself, and in one that gold leads: words
    right (`right`), and whether the word looked at most is linked (`on_gold`); each for
    the lengths trained on ("test") and for the long ones. means: over all words.
    """
    seen = up_to(corpus["test"], max_len)
    narrow = with_window(model, settings["narrow"])
    buckets = in_buckets(corpus["test"] + corpus["long"], settings["buckets"])
    right, on_gold, means = {}, {}, {}
    for name, pairs in (("test", seen), ("long", corpus["long"])):
        for how, reader, guided in (
            ("free", model, False),
            ("narrow", narrow, False),
            ("guided", narrow, True),
        ):
            words, places = words_right(reader, pairs, vocabs, guided)
            key = f"{name}, {how}"
            right[key] = rounded(by_tenth(words))
            on_gold[key] = rounded(by_tenth(places))
            means[key] = rounded(torch.cat(words).mean())
    windows, ends = {}, {}
    for reach in settings["reaches"]:
        windowed = with_window(model, reach)
        results = [score(windowed, part, vocabs, aer=False) for part in buckets]
        windows[reach] = [result["bleu"] for result in results]
        ends[reach] = [result["ended"] for result in results]
    return {
        "skips": [skips(model, part, vocabs, settings["skipped"]) for part in buckets],
        "joined": joined_scores(model, corpus["test"], max_len, vocabs, settings),
        "windows": windows,
        "windows_ended": ends,
        "right": right,
        "on_gold": on_gold,
        "means": means,
    }


def run(settings, arm, max_len, seed):
    """Train one arm; its figures in each bucket of source lengths."""
    plan, (corpus, vocabs) = {**settings, **ARMS[arm]}, village("en-fr")
    model = build(plan["kind"], vocabs, seed, plan)
    pairs = pairs_up_to(corpus["train"], max_len, plan["pairs"][str(max_len)])
    tested = corpus["test"] + corpus["long"]
    if plan.get("reverse"):
        pairs, tested = reverse_sources(pairs), reverse_sources(tested)
    plan["num_epochs"] = plan.get("times", 1) * plan["num_epochs"][str(max_len)]
    trainer = train(model, pairs, vocabs, seed, plan)
    scores = [score(model, p, vocabs) for p in in_buckets(tested, plan["buckets"])]
    closer = {}
    if plan["kind"] == "attention":
        closer = look_closer(model, corpus, max_len, vocabs, settings)
    return {
        "steps": trainer.step,
        "train_loss": round(trainer.history[-1]["train_loss"], 3),
        "seconds": round(trainer.seconds),
        **{name: [s[name] for s in scores] for name in scores[0]},
        **closer,
    }
