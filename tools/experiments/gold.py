"""Error rates of alignments on the gold sets of real text, data/gold.

Measured are the diagonal; the attention of the shipped translator, German to English,
while it reads the reference along; and a statistical aligner, eflomal (Östling and
Tiedemann, 2016), on the same text as the translator, and on Tatoeba. No attention model
is trained for Tatoeba here. The real text must be there, and eflomal: see `aligner`.
"""

import hashlib
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

from tools.experiments.multi30k import MODEL
from tools.experiments.runs import attention_links
from tools.gold import agreement, passes
from utils.checkpoint import load_checkpoint
from utils.corpora import load_multi30k, load_tsv
from utils.gold import GOLD_FOLDER, GOLD_SETS, gold_links, link_gold
from utils.metrics import alignment_error_rate, diagonal_links

SAMPLES = 10_000
SETTINGS = {"aligner": "eflomal", "aligner_runs": 3, "bootstrap_samples": SAMPLES}
SOURCES = [MODEL, *(GOLD_FOLDER / f"{name}.tsv" for name in GOLD_SETS)]
NOTES = {
    "sha256": {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in SOURCES
    }
}


def run(settings):
    align = aligner()  # first: whether it is there
    figures = {"aligner_version": version(settings["aligner"]), "sets": {}}
    for name in GOLD_SETS:
        pairs, training = text(name)
        found = {"pairs": len(pairs), **counts(pairs), "agreement": agreed(name)}
        sizes = [(len(pair.source), len(pair.target)) for pair in pairs]
        found["diagonal"] = score([diagonal_links(*size) for size in sizes], pairs)
        if name == "multi30k-de-en":
            found["attention"] = score(attention(pairs), pairs)
        # It draws at random, and takes no seed.
        found["aligner_pairs"] = len(training) + len(pairs)
        found["aligner"] = [
            {way: score(links, pairs) for way, links in align(training, pairs).items()}
            for _ in range(settings["aligner_runs"])
        ]
        figures["sets"][name] = found
    return figures


def text(name):
    """The pairs with gold links, and those that an aligner learns from beside them."""
    if name == "multi30k-de-en":
        corpus = load_multi30k("de", "en")
        return link_gold(corpus["test"], name), corpus["train"]
    corpus = load_tsv("tatoeba/cmn.txt", "en", "zh", skip_bad_lines=True)
    pairs = link_gold(corpus, name)
    linked = {pair[:2] for pair in pairs}
    every = (pair for split in corpus.splits.values() for pair in split)
    return pairs, [pair for pair in every if pair[:2] not in linked]


def counts(pairs):
    """The words of both sides, and the links of both kinds."""
    return {
        "source_words": sum(len(pair.source) for pair in pairs),
        "target_words": sum(len(pair.target) for pair in pairs),
        "sure": sum(len(pair.alignment) for pair in pairs),
        "possible": sum(len(pair.possible) for pair in pairs),
    }


def agreed(name):
    found = agreement(*passes(name))
    return {key: round(found[key], 3) for key in ("links", "sure", "kinds")}


def attention(pairs):
    """Links of the shipped translator: each target word's most attended word."""
    saved = load_checkpoint(MODEL)
    return attention_links(saved.model, pairs, (saved.src_vocab, saved.tgt_vocab))


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


def aligner():
    """A function (training pairs, pairs) -> {way: links of each of the pairs}.

    It learns from the text of both, as such programs do; no link is known to it.
    forward: at most one source word for each target word; backward: at most one target
    word for each source word; both, either: the links that both ways have, or one of
    them. Raises ModuleNotFoundError where the package isn't there.
    """
    try:
        from eflomal import Aligner
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the statistical aligner is a package that the course doesn't need: "
            "install it with `python -m pip install eflomal`; a C compiler builds it"
        ) from error

    def align(training, pairs):
        sides = zip(*(pair[:2] for pair in [*training, *pairs]), strict=True)
        lines = [[" ".join(words) + "\n" for words in side] for side in sides]
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / way for way in ("forward", "backward")]
            Aligner().align(*lines, *map(str, paths))
            forward, backward = (read(path)[-len(pairs) :] for path in paths)
        both = zip(forward, backward, strict=True)
        both, either = zip(*((a & b, a | b) for a, b in both), strict=True)
        return {
            "forward": forward,
            "backward": backward,
            "both": both,
            "either": either,
        }

    return align


def read(path):
    """The links of each line of a file in Pharaoh format."""
    return [
        {tuple(map(int, link.split("-"))) for link in line.split()}
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
