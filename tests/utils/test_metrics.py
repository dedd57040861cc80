"""BLEU, chrF, alignment error rate and baselines, against plain definitions."""

import math

import numpy as np
import pytest
import sacrebleu
import torch
from helpers import refusals
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from utils.metrics import (
    alignment_error_rate,
    bleu,
    diagonal_links,
    exact_match,
    gain_range,
    links_from_weights,
    quality_by_length,
    random_links,
    text_scores,
)

words = st.sampled_from("a A a.b c 我 爱 苹果 .".split())
corpora = st.lists(st.tuples(st.lists(words), st.lists(words, min_size=1)), min_size=1)
links = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


@given(corpora)
def test_scores_are_of_tokens_or_strings_and_a_perfect_one_is_100(corpus):
    hypotheses, references = zip(*corpus, strict=True)
    strings = [" ".join(h) for h in hypotheses], [" ".join(r) for r in references]
    options = {"tokenize": "none", "force": True}
    expected = sacrebleu.corpus_bleu(strings[0], [strings[1]], **options).score
    assert bleu(hypotheses, references) == bleu(*strings) == pytest.approx(expected)
    longer = [[*words, *"abcd"] for words in references]
    assert bleu(longer, longer) == 100


def test_tokens_are_scored_in_silence_and_may_be_none(caplog):
    bleu(["I like it ."] * 200, ["I like it ."] * 200)  # sacrebleu warns unless forced
    assert not caplog.records
    assert bleu([[]], [["a"]]) == 0


def test_text_is_scored_as_it_is_by_sacrebleus_own_tokens():
    scores = text_scores(["The cat, it sat here."], ["The cat , it SAT here."])
    assert scores["bleu"] < scores["bleu_lower"] == pytest.approx(100)
    for lang, text, tokens in (
        ("zh", "我", "zh"),
        ("ja", "あ", "char"),
        ("fr", "été", "13a"),
        ("ru", "да", "13a"),
        ("hi", "हम हैं। ok", "intl"),
        (None, "1", "13a"),
    ):
        found = text_scores([text], [text], lang)["signature"]
        assert "case:mixed" in found and f"tok:{tokens}|" in found
    assert sacrebleu.__version__ in found


def test_the_range_of_a_gain_is_that_of_bleu_on_drawn_sentences():
    ours, theirs = "abcdef bcde cdxfgh aabbc", "abcd bcdeab cdef aabb"
    sides = (side.split() for side in (ours, theirs, "abcdef bcdeab cdefgh aabbcd"))
    ours, theirs, references = ([[2 * c for c in t] for t in side] for side in sides)
    gains = []
    for rows in np.random.default_rng(3).integers(4, size=(50, 4)):
        a, b, c = ([side[i] for i in rows] for side in (ours, theirs, references))
        gains.append(bleu(a, c) - bleu(b, c))
    expected = np.percentile(gains, [2.5, 97.5]).tolist()
    for side in (ours, map(" ".join, ours)):  # lists of words, or strings
        found = gain_range(side, theirs, references, samples=50, seed=3)
        assert found == pytest.approx(expected)


def test_exact_match_counted_by_hand():
    assert exact_match([["a"], ["b", "c"]], [("a",), ("b",)]) == 0.5


@given(st.lists(st.tuples(links, links, links)))
def test_aer_follows_its_definition(corpus):
    parts = [[sets[k] for sets in corpus] for k in range(3)]
    a, s, p = ({(n, *link) for n, own in enumerate(x) for link in own} for x in parts)
    correct, nan = len(a & s) + len(a & (p | s)), math.nan
    expected = (
        1 - correct / (len(a) + len(s)) if a or s else nan,
        len(a & (p | s)) / len(a) if a else nan,
        len(a & s) / len(s) if s else nan,
    )
    assert alignment_error_rate(*parts) == pytest.approx(expected, nan_ok=True)
    assert alignment_error_rate([{(0, 0)}], [{(0, 0)}]) == (0, 1, 1)


SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
SHAPES = hnp.array_shapes(min_dims=2, max_dims=2, max_side=5)


@given(hnp.arrays(float, SHAPES, elements=SHARES), SHARES.map(lambda x: x or None))
def test_links_follow_their_definition(weights, threshold):
    expected, before = set(), weights.copy()
    for i, row in enumerate(weights):
        if threshold is not None:
            expected |= {(j, i) for j, weight in enumerate(row) if weight >= threshold}
        elif max(row) > 0:
            expected.add((list(row).index(max(row)), i))
    assert links_from_weights(weights, threshold) == expected
    assert (weights == before).all()


def test_weights_may_be_a_tensor_none_and_rounded():
    weights = torch.eye(3, dtype=torch.bfloat16, requires_grad=True)
    assert links_from_weights(weights) == {(0, 0), (1, 1), (2, 2)}
    assert links_from_weights(np.zeros((0, 3))) == set()
    assert links_from_weights([[1 + 5e-7, 0.0]]) == {(0, 0)}  # rounding left it above 1


@given(st.integers(1, 40), st.integers(0, 40))
def test_diagonal_links_stay_on_the_diagonal(source_len, target_len):
    found = diagonal_links(source_len, target_len)
    assert sorted(i for _, i in found) == list(range(target_len))
    for j, i in found:
        assert 0 <= j < source_len
        # The middle of the target word lies within the source word.
        assert j <= (i + 0.5) * source_len / target_len <= j + 1
    if source_len == target_len:
        assert found == {(k, k) for k in range(target_len)}


def test_random_links_are_uniform_and_one_per_target_word():
    rng, counts = np.random.default_rng(0), np.zeros((4, 3))
    for _ in range(2000):
        found = random_links(4, 3, rng)
        assert {i for _, i in found} == {0, 1, 2}
        for j, i in found:
            counts[j, i] += 1
    assert abs(counts / 2000 - 1 / 4).max() < 0.05  # five standard deviations


def test_quality_by_length_by_hand():
    good, bad = "a b c d".split(), "w x y z".split()
    hypotheses, references = [good, good, bad, bad], [good] * 4
    buckets = [(1, 3), (4, 5), (6, 8), (9, 9)]
    rows = quality_by_length(iter([5, 3, 9, 5]), hypotheses, references, buckets)
    scores = [100, bleu([good, bad], [good, good]), math.nan, 0]
    assert [row.label for row in rows] == ["1–3", "4–5", "6–8", "9"]
    assert [row.score for row in rows] == pytest.approx(scores, nan_ok=True)


def by_length(lengths, buckets):
    return quality_by_length(lengths, ["a", "b"], ["a", "b"], buckets)


ONE, TWO = [["a"]], [["a"], ["b"]]
RANGE = "weights must lie between 0 and 1, without NaN"


test_what_is_refused = refusals(
    (lambda: bleu(ONE, TWO), "1 hypotheses and 2 references: give one"),
    (lambda: bleu([], []), "0 hypotheses and 0 references: give one"),
    (lambda: exact_match(ONE, TWO), "argument 2 is longer"),
    (lambda: bleu("a b", ["a b"]), TypeError, "hypotheses is one string"),
    (lambda: links_from_weights([1.0, 0.0]), r"shape \(2,\)"),
    (lambda: links_from_weights([[1 + 5e-6, 0]]), RANGE),
    (lambda: links_from_weights([[-0.5, 0.5]]), RANGE),
    (lambda: links_from_weights([[np.nan, 0.5]]), RANGE),
    (lambda: by_length([3, 7], [(1, 5)]), "sentence 1 has length 7"),
    (lambda: by_length([3, 4], [(1, 3), (3, 5)]), "in 2 of the bucke"),
)
