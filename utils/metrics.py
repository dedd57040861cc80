"""How good translations, answers and alignments are: BLEU, chrF, error rates.

Letters: S is the number of source words, T the number of target words.
An alignment is a set of links (source index, target index), counted from 0:
the order of Pharaoh format, where `0-2` links source word 0 to target word 2.
"""

import math
from typing import NamedTuple

import numpy as np
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from utils.guards import as_weights
from utils.languages import UNSPACED

KNOWN_TO_13A = "\u0530"  # before it: Latin, Greek, Cyrillic


def bleu(hypotheses, references) -> float:
    """Corpus BLEU, 0 to 100, of one hypothesis and one reference a sentence.

    A sentence is a list of tokens, or a string that is split at its spaces;
    sacrebleu counts these tokens as they are. Standard BLEU uses 1- to 4-grams:
    a corpus without one matching word, or whose hypotheses hold no 4-gram, scores 0.
    Raises ValueError for different numbers of sentences, or none.
    """
    return _corpus_score(BLEU(tokenize="none", force=True), hypotheses, references)


def gain_range(ours, theirs, references, samples=1000, seed=0) -> tuple[float, float]:
    """The gain in BLEU of ours over theirs on other test sets: from, to.

    Each sample draws as many sentences as there are, the same for both; some come
    twice. From and to hold the middle 95 of 100 gains. (Koehn, 2004: paired bootstrap.)
    """
    rng, n = np.random.default_rng(seed), len(references)
    drawn = rng.integers(n, size=(samples, n))
    scorer, bleus = BLEU(tokenize="none", force=True), []
    for side in (ours, theirs):
        found = _sentences("translations", side), _sentences("references", references)
        found = [scorer.corpus_score([a], [[b]]) for a, b in zip(*found, strict=True)]
        # What BLEU adds up: n-grams found, n-grams, words of both sides.
        counts = np.array([[*f.counts, *f.totals, f.sys_len, f.ref_len] for f in found])
        sums = (counts[rows].sum(axis=0).tolist() for rows in drawn)
        scores = (BLEU.compute_bleu(c[:4], c[4:8], *c[8:], "exp") for c in sums)
        bleus.append([one.score for one in scores])
    low, high = np.percentile(np.subtract(*bleus), [2.5, 97.5])
    return float(low), float(high)


def text_scores(hypotheses, references, lang=None) -> dict[str, float | str]:
    """Corpus scores of plain texts, as sacrebleu counts them.

    bleu: letter case counts; bleu_lower: it doesn't; chrf: chrF2. BLEU's tokens are
    sacrebleu's own, so figures compare with other people's: 13a, by character where
    lang has no spaces, intl where most letters of the references are of a script that
    13a knows no punctuation of; signature: how it was made. Errors are those of `bleu`.
    """
    letters = [c for text in references for c in text if c.isalpha()]
    known = sum(c < KNOWN_TO_13A for c in letters) >= len(letters) / 2
    tokens = "zh" if lang == "zh" else "char" if lang in UNSPACED else None
    tokens = tokens or ("13a" if known else "intl")
    cased, lower = BLEU(tokenize=tokens), BLEU(tokenize=tokens, lowercase=True)
    return {
        "bleu": _corpus_score(cased, hypotheses, references),
        "bleu_lower": _corpus_score(lower, hypotheses, references),
        "chrf": _corpus_score(CHRF(), hypotheses, references),
        "signature": str(cased.get_signature()),
    }


def words_13a(text) -> list[str]:
    """The words of a text that BLEU counts by its tokens 13a."""
    return Tokenizer13a()(text).split()


def exact_match(hypotheses, references):
    """The share of hypotheses (lists of words) that equal their reference, 0 to 1."""
    pairs = zip(hypotheses, references, strict=True)
    return sum(list(a) == list(b) for a, b in pairs) / len(references)


def _corpus_score(scorer, hypotheses, references) -> float:
    hypotheses = _sentences("hypotheses", hypotheses)
    references = _sentences("references", references)
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            f"{len(hypotheses)} hypotheses and {len(references)} references: give "
            "one of each, for at least one sentence"
        )
    # Rounding can leave a perfect corpus at 100.00000000000004.
    return min(scorer.corpus_score(hypotheses, [references]).score, 100.0)


def _sentences(name, sentences) -> list[str]:
    if isinstance(sentences, str):
        raise TypeError(
            f"{name} is one string: give a list of sentences, even for one sentence"
        )
    return [one if isinstance(one, str) else " ".join(one) for one in sentences]


class AlignmentScore(NamedTuple):
    """Alignment error rate, precision and recall, each 0 to 1."""

    aer: float
    precision: float
    recall: float


def alignment_error_rate(predicted, sure, possible=None) -> AlignmentScore:
    """Alignment error rate of a whole corpus (Och and Ney, 2003).

    Each argument holds one set of links (source, target) per sentence: predicted A,
    sure S, possible P. Every sure link counts as possible; by default no others do.

    AER = 1 - (|A & S| + |A & P|) / (|A| + |S|), from counts summed over sentences;
    precision = |A & P| / |A|, recall = |A & S| / |S|. A ratio of 0 / 0 is nan.
    """
    possible = sure if possible is None else possible
    size_a = size_s = in_sure = in_possible = 0
    for a, s, p in zip(predicted, sure, possible, strict=True):
        size_a += len(a)
        size_s += len(s)
        in_sure += len(a & s)
        in_possible += len(a & (p | s))
    aer = ratio(size_a + size_s - in_sure - in_possible, size_a + size_s)
    return AlignmentScore(aer, ratio(in_possible, size_a), ratio(in_sure, size_s))


def ratio(count, total) -> float:
    return count / total if total else math.nan


def links_from_weights(weights, threshold=None) -> set[tuple[int, int]]:
    """Links (source, target) read off attention weights of shape (T, S).

    Each target word is linked to its most attended source word (the first of equals)
    or, with a threshold, to every source word whose weight reaches it. Target words
    without any weight get no link. Leave out the rows and columns of `<eos>`.
    Raises ValueError for another shape, or weights outside 0 to 1.
    """
    weights = as_weights(weights)
    if threshold is None:
        rows = np.flatnonzero(weights.any(axis=1))
        return {(int(weights[i].argmax()), int(i)) for i in rows}
    return {(int(j), int(i)) for i, j in np.argwhere(weights >= threshold)}


def diagonal_links(source_len, target_len) -> set[tuple[int, int]]:
    """Baseline: each target word linked to the source word at the same relative place.

    Target word i of T goes to source word floor((i + 1/2) S / T).
    """
    # In whole numbers, so that no rounding decides.
    S, T = source_len, target_len
    return {((2 * i + 1) * S // (2 * T), i) for i in range(T)}


def random_links(source_len, target_len, rng) -> set[tuple[int, int]]:
    """Baseline: each target word linked to a source word drawn uniformly.

    This is what uniform attention weights say when ties are broken by chance.
    `rng` is a `numpy.random.Generator`.
    """
    drawn = rng.integers(source_len, size=target_len)
    return {(int(j), i) for i, j in enumerate(drawn)}


class BucketScore(NamedTuple):
    """One bucket of lengths: its label, and the score of its sentences."""

    label: str
    score: float


def quality_by_length(lengths, hypotheses, references, buckets) -> list[BucketScore]:
    """BLEU of the sentences of each bucket of lengths, in the order of the buckets.

    `lengths` has one number per sentence (usually of source tokens); a bucket is a pair
    (low, high), both included. The score of an empty bucket is nan. Raises ValueError
    for different numbers of sentences, or a length that isn't in just one bucket.
    """
    rows = list(zip(lengths, hypotheses, references, strict=True))
    for number, (length, *_) in enumerate(rows):
        if (homes := sum(low <= length <= high for low, high in buckets)) != 1:
            raise ValueError(
                f"sentence {number} has length {length}, which is in {homes} of the "
                f"buckets {buckets}: it must be in one, both ends are included"
            )
    scores = []
    for low, high in buckets:
        inside = [row[1:] for row in rows if low <= row[0] <= high]
        score = bleu(*map(list, zip(*inside, strict=True))) if inside else math.nan
        label = f"{low}" if low == high else f"{low}–{high}"
        scores.append(BucketScore(label, score))
    return scores
