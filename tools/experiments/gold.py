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

from tools.experiments.provenance import read
from tools.experiments.runs import attention_links, every
from utils.checkpoint import load_checkpoint
from utils.gold import gold_links, link_gold, read_links
from utils.metrics import alignment_error_rate, diagonal_links
from utils.text import tokenize

SAMPLES = 10_000
SETTINGS = {"aligner": "eflomal", "aligner_runs": 3, "bootstrap_samples": SAMPLES}
TEXTS = {  # a gold set: the corpus it is from, and the splits an aligner learns from
    "multi30k-de-en": ("Multi30k de-en", ["train"]),
    "tatoeba-en-zh": ("Tatoeba en-zh", ["train", "valid", "test"]),
}
plan = every(set=TEXTS)


def run(settings, set):
    """The error rate of each way to link; several of the aligner, which draws."""
    name, splits = TEXTS[set]
    corpus = read(name)
    read(f"gold/{set}.tsv")  # which link_gold reads
    pairs = link_gold(corpus, set)
    linked = {pair[:2] for pair in pairs}
    text = [pair for split in splits for pair in corpus[split]]
    text = [pair for pair in text if pair[:2] not in linked]
    diagonal = [diagonal_links(*map(len, pair.ends)) for pair in pairs]
    figures = {"diagonal": score(diagonal, pairs)}
    if set == "multi30k-de-en":
        model, *vocabs = load_checkpoint(read(f"models/{set}.safetensors"))[:3]
        figures["attention"] = score(attention_links(model, pairs, vocabs), pairs)
    runs = [align(text, pairs, corpus) for _ in range(settings["aligner_runs"])]
    return {
        **figures,
        "aligner_version": version(settings["aligner"]),
        "aligner": [score(links, pairs) for links in runs],
    }


def score(links, pairs):
    """The error rate with its parts; aer_95: 95 % of error rates of drawn sentences.

    Drawn with replacement, as many as there are (the bootstrap): what the error rate
    could have been with other sentences of this kind.
    """
    sure, possible = gold_links(pairs)
    found = alignment_error_rate(links, sure, possible)._asdict()
    sets = list(zip(links, sure, possible, strict=True))
    counts = [(len(a & s) + len(a & (s | p)), len(a) + len(s)) for a, s, p in sets]
    drawn = np.random.default_rng(0).integers(len(sets), size=(SAMPLES, len(sets)))
    right, size = np.array(counts)[drawn].sum(axis=1).T
    found["aer_95"] = np.quantile(1 - right / size, (0.025, 0.975))
    return {name: np.round(value, 3).tolist() for name, value in found.items()}


def align(text, pairs, corpus):
    """Links of each of the pairs, learnt from the text and from theirs.

    At most one source word for each target word. No link is known to the aligner.
    """
    from eflomal import Aligner

    sides = []
    for side, lang in enumerate((corpus.source_lang, corpus.target_lang)):
        words = [tokenize(pair[side], lang) for pair in text]
        for pair in pairs:  # links stand between words that end where it says
            ends = pairwise([0, *pair.ends[side]])
            words.append([pair[side][i:j].strip().lower() for i, j in ends])
        sides.append([" ".join(row) + "\n" for row in words])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "forward"
        Aligner().align(*sides, str(path), str(path.with_name("backward")))
        rows = path.read_text("utf-8").splitlines()[-len(pairs) :]
    return [read_links(row)[0] for row in rows]
