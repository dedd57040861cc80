"""Error rates of alignments on the gold sets of real text, data/gold.

Measured are the diagonal; the attention of the shipped translator, German to English,
while it reads the reference along; and a statistical aligner, eflomal (Östling and
Tiedemann, 2016), on the same text as the translator, and on Tatoeba. No attention model
is trained for Tatoeba here. The real text must be there, and eflomal, a package that
the course doesn't need: `python -m pip install eflomal`; a C compiler builds it.
"""

import tempfile
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import numpy as np

from tools.experiments.provenance import data_file, read
from tools.experiments.runs import attention_links
from utils.checkpoint import load_checkpoint
from utils.gold import gold_links, link_gold
from utils.metrics import alignment_error_rate, diagonal_links
from utils.text import tokenize

SAMPLES = 10_000
SETTINGS = {"aligner": "eflomal", "aligner_runs": 3, "bootstrap_samples": SAMPLES}
TEXTS = {"multi30k-de-en": "Multi30k de-en", "tatoeba-en-zh": "Tatoeba en-zh"}


def plan(done):
    return [{"set": name} for name in TEXTS]


def run(settings, set):
    """The error rate of each way to link; several of the aligner, which draws."""
    pairs, training = text(set)
    lengths = [tuple(map(len, pair.ends)) for pair in pairs]
    figures = {"diagonal": score([diagonal_links(*both) for both in lengths], pairs)}
    if set == "multi30k-de-en":
        model, *vocabs = load_checkpoint(data_file(f"models/{set}.safetensors"))[:3]
        figures["attention"] = score(attention_links(model, pairs, vocabs), pairs)
    languages = set.split("-")[1:]
    runs = [align(training, pairs, languages) for _ in range(settings["aligner_runs"])]
    return {
        **figures,
        "aligner_version": version(settings["aligner"]),
        "aligner_pairs": len(training) + len(pairs),
        "aligner": [{way: score(x, pairs) for way, x in run.items()} for run in runs],
    }


def text(name):
    """The pairs with gold links, and those that an aligner learns from beside them."""
    corpus = read(TEXTS[name])
    data_file(f"gold/{name}.tsv")  # which link_gold reads
    if corpus.name == "Multi30k":
        return link_gold(corpus["test"], name), corpus["train"]
    pairs = link_gold(corpus, name)
    linked = {pair[:2] for pair in pairs}
    every = (pair for split in corpus.splits.values() for pair in split)
    return pairs, [pair for pair in every if pair[:2] not in linked]


def score(links, pairs):
    """The error rate with its parts; aer_95: 95 % of error rates of drawn sentences.

    Drawn with replacement, as many as there are (the bootstrap): what the error rate
    could have been with other sentences of this kind.
    """
    sure, possible = gold_links(pairs)
    found = alignment_error_rate(links, sure, possible)._asdict()
    sets = list(zip(links, sure, possible, strict=True))
    right = np.array([len(a & s) + len(a & (s | p)) for a, s, p in sets])
    size = np.array([len(a) + len(s) for a, s, _ in sets])
    drawn = np.random.default_rng(0).integers(len(sets), size=(SAMPLES, len(sets)))
    rates = 1 - right[drawn].sum(axis=1) / size[drawn].sum(axis=1)
    found["aer_95"] = np.quantile(rates, (0.025, 0.975))
    return {name: np.round(value, 3).tolist() for name, value in found.items()}


def gold_words(text, ends):
    """The words of a text that links stand between, in small letters."""
    return [text[start:end].strip().lower() for start, end in pairwise([0, *ends])]


def align(training, pairs, languages):
    """{way: links of each of the pairs}, learnt from the text of both.

    forward: at most one source word for each target word; either: these, and those of
    the other direction. No link is known to the aligner.
    """
    from eflomal import Aligner

    lines = []
    for side, lang in enumerate(languages):
        words = [tokenize(pair[side], lang) for pair in training]
        words += [gold_words(pair[side], pair.ends[side]) for pair in pairs]
        lines.append([" ".join(row) + "\n" for row in words])
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / way for way in ("forward", "backward")]
        Aligner().align(*lines, *map(str, paths))
        forward, backward = (pharaoh(path)[-len(pairs) :] for path in paths)
    either = [a | b for a, b in zip(forward, backward, strict=True)]
    return {"forward": forward, "either": either}


def pharaoh(path):
    """The links of each line of a file, written as 0-0 1-2."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [{tuple(map(int, x.split("-"))) for x in row.split()} for row in lines]
