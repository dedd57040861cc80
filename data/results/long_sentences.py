"""Quality against length, trained on short and on long sentences: `make results`.

Figure 2 of Bahdanau et al. (2015) on Village en-fr: attention and fixed context,
trained on sentences of at most 15 source words and of at most 30, for the same number
of steps, with the same encoder. Beside them the source reversed (Sutskever et al.,
2014). And, up to 30 words only, what could excuse the fixed context: four times the
steps, and an encoder of one direction, for which reversing was meant.

Notebook 07 reads what this writes, `long_sentences.json`. About fifteen minutes.
"""

from collections import Counter
from functools import cache
from pathlib import Path

import torch
from runs import run_all, test_aer, train

from utils.data import load_village
from utils.decoding import translate_tokens
from utils.metrics import bleu
from utils.seq2seq import build_model
from utils.text import EOS

PATH = Path(__file__).resolve().with_suffix(".json")
BUCKETS = [
    (3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30), (31, 40), (41, 50),
    (51, 60),
]  # fmt: skip
SETTINGS = {
    "embed_size": 64, "num_hiddens": 128, "bidirectional": True, "batch_size": 64,
    "lr": 6e-3, "buckets": BUCKETS,
    # Twice the pairs, half the epochs: 740 full batches either way.
    "pairs": {"15": 11840, "30": 23680}, "num_epochs": {"15": 4, "30": 2},
}  # fmt: skip
ARMS = {  # the decoder, and what differs from SETTINGS
    "attention": {"kind": "attention"},
    "fixed": {"kind": "fixed"},
    "fixed, reversed": {"kind": "fixed", "reverse": True},
    "fixed, 4 x steps": {"kind": "fixed", "times": 4},
    "fixed, one way": {"kind": "fixed", "bidirectional": False},
    "fixed, one way, reversed": {
        "kind": "fixed", "bidirectional": False, "reverse": True
    },
}  # fmt: skip
SEEDS = (0, 1, 2)
RUNS = [
    {"arm": arm, "max_len": max_len, "seed": seed}
    for seed in SEEDS
    for max_len, arms in ((15, list(ARMS)[:3]), (30, list(ARMS)))
    for arm in arms
]
village = cache(load_village)


def pairs_up_to(pairs, max_len, count):
    """The first `count` pairs of at most `max_len` source words.

    ValueError if there are fewer.
    """
    chosen = [pair for pair in pairs if len(pair.source) <= max_len][:count]
    if len(chosen) < count:
        raise ValueError(
            f"only {len(chosen)} pairs have at most {max_len} source words; "
            f"{count} were asked for"
        )
    return chosen


def reverse_sources(pairs):
    """The same pairs with the source words in reverse order, without alignments."""
    return [pair._replace(source=pair.source[::-1], alignment=None) for pair in pairs]


def repeats(sentences, n=4):
    """The share of n-grams that stood earlier in the same sentence; 0 for none."""
    total = again = 0
    for words in sentences:
        counts = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
        total += counts.total()
        again += counts.total() - len(counts)
    return again / max(total, 1)


def score(model, pairs, vocabs):
    """Figures of the greedy translations of pairs.

    ended: share with <eos>. length: words written for each reference word. repeats: of
    4-grams. aer: of the weights under teacher forcing, None without attention.
    """
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    hypotheses = [result.words for result in results]
    references = [list(pair.target) for pair in pairs]
    attends = model.config["kind"] == "attention"
    return {
        "bleu": round(bleu(hypotheses, references), 2),
        "ended": round(sum(r.tokens[-1] == EOS for r in results) / len(pairs), 3),
        "length": round(sum(map(len, hypotheses)) / sum(map(len, references)), 3),
        "repeats": round(repeats(hypotheses), 4),
        "aer": test_aer(model, pairs, vocabs) if attends else None,
    }


def run(arm, max_len, seed, settings):
    """Train one arm; its figures in each bucket of source lengths."""
    differs = ARMS[arm]
    corpus = village("en", "fr")
    vocabs = corpus.vocabs()
    torch.manual_seed(seed)
    model = build_model(
        differs["kind"], *map(len, vocabs), settings["embed_size"],
        settings["num_hiddens"],
        bidirectional=differs.get("bidirectional", settings["bidirectional"]),
    )  # fmt: skip
    pairs = pairs_up_to(corpus["train"], max_len, settings["pairs"][str(max_len)])
    tested = corpus["test"] + corpus["long"]
    if differs.get("reverse"):
        pairs, tested = reverse_sources(pairs), reverse_sources(tested)
    num_epochs = differs.get("times", 1) * settings["num_epochs"][str(max_len)]
    trainer = train(
        model, pairs, vocabs, seed, num_epochs, settings["batch_size"], settings["lr"]
    )
    scores = [
        score(model, [p for p in tested if low <= len(p.source) <= high], vocabs)
        for low, high in settings["buckets"]
    ]
    return {
        "steps": trainer.step,
        "train_loss": round(trainer.history[-1]["train_loss"], 3),
        "seconds": round(trainer.seconds),
        **{name: [s[name] for s in scores] for name in scores[0]},
    }


if __name__ == "__main__":
    run_all(PATH, run, RUNS, SETTINGS)
