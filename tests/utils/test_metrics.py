"""BLEU, chrF, alignment error rate and baselines, against plain definitions."""

import math

import numpy as np
import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from utils.metrics import (
    alignment_error_rate,
    bleu,
    chrf,
    diagonal_links,
    exact_match,
    gain_range,
    links_from_weights,
    quality_by_length,
    random_links,
    rouge,
    signatures,
    text_scores,
    text_signatures,
)

words = st.sampled_from("a b cat 我 爱 苹果 .".split())
corpora = st.lists(st.tuples(st.lists(words), st.lists(words, min_size=1)), min_size=1)
links = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 4)))


# BLEU and chrF


def test_bleu_by_hand():
    # All n-grams match; 4 words for 6 give the brevity penalty exp(1 - 6/4).
    score = bleu([["the", "cat", "sat", "on"]], [["the", "cat", "sat", "on", "a", "b"]])
    assert score == pytest.approx(100 * math.exp(1 - 6 / 4))
    # 5/6, 4/5, 3/4 and 2/3 of the 1- to 4-grams match; the lengths are equal.
    score = bleu(["a b c d e x"], ["a b c d e f"])
    expected = 100 * (5 / 6 * 4 / 5 * 3 / 4 * 2 / 3) ** (1 / 4)
    assert score == pytest.approx(expected)


def test_chrf_by_hand():
    # Characters: 2/2 and 2/3; pairs of characters: 1/1 and 1/2; nothing longer.
    precision, recall = 1, (2 / 3 + 1 / 2) / 2
    expected = 100 * 5 * precision * recall / (4 * precision + recall)
    assert chrf([["a", "b"]], [["ab", "c"]]) == pytest.approx(expected)


@given(corpora)
def test_scores_equal_sacrebleu_on_tokens_and_strings(corpus):
    hypotheses, references = zip(*corpus, strict=True)
    hyp_strings = [" ".join(h) for h in hypotheses]
    ref_strings = [" ".join(r) for r in references]
    expected = sacrebleu.corpus_bleu(
        hyp_strings, [ref_strings], tokenize="none", force=True
    ).score
    assert bleu(hypotheses, references) == pytest.approx(expected)
    assert bleu(hyp_strings, ref_strings) == bleu(hypotheses, references)
    expected = sacrebleu.corpus_chrf(hyp_strings, [ref_strings]).score
    assert chrf(hypotheses, references) == pytest.approx(expected)
    assert chrf(hyp_strings, ref_strings) == chrf(hypotheses, references)
    longer = [[*words, *"abcd"] for words in references]
    assert bleu(longer, longer) == 100 >= chrf(longer, longer) > 99.9


def test_tokens_are_taken_as_given():
    # sacrebleu's own tokenizer would find matches inside these.
    assert bleu([["苹果", "a.b", "c", "d"]], [["苹", "a", "x", "y"]]) == 0
    assert bleu(["A b c d"], ["a b c d"]) < 100  # case counts
    assert bleu([["我", "爱", "你"]], [["我", "爱", "你"]]) == 0  # no 4-gram
    assert bleu([[]], [["a"]]) == chrf([""], ["a"]) == 0
    expected = 100 * math.exp(1 - 6 / 4)  # the missing words still count
    assert bleu([[], "a b c d"], [["x", "y"], "a b c d"]) == pytest.approx(expected)


def test_text_is_scored_lower_cased_by_sacrebleus_own_tokens():
    texts = ["The cat, it sat."], ["the cat , it SAT ."]
    assert text_scores(*texts)["bleu"] == pytest.approx(100)
    assert bleu(*texts) < 100
    for lang, tokens in (("zh", "zh"), ("ja", "char"), ("fr", "13a"), (None, "13a")):
        found = text_signatures(lang)["bleu"]
        assert "case:lc" in found and f"tok:{tokens}|" in found


def test_scores_are_silent_and_signatures_name_the_settings(capfd, caplog):
    bleu(["I like it ."] * 200, ["I like it ."] * 200)  # sacrebleu warns unless forced
    assert capfd.readouterr() == ("", "") and not caplog.records
    found = signatures()
    assert set(found) == {"bleu", "chrf"} and "nc:6" in found["chrf"]
    assert "nrefs:1" in found["bleu"] and "tok:none" in found["bleu"]
    assert sacrebleu.__version__ in found["bleu"]


def test_the_range_of_a_gain_is_that_of_bleu_on_drawn_sentences():
    references = [list("abcdef"), list("bcdeab"), list("cdefgh"), list("aabbcd")]
    ours = [list("abcdef"), list("bcde"), list("cdxfgh"), list("aabbc")]
    theirs = [list("abcd"), list("bcdeab"), list("cdef"), list("aabb")]
    drawn = np.random.default_rng(3).integers(4, size=(50, 4))
    gains = [
        bleu([ours[i] for i in rows], [references[i] for i in rows])
        - bleu([theirs[i] for i in rows], [references[i] for i in rows])
        for rows in drawn
    ]
    expected = np.percentile(gains, [2.5, 97.5]).tolist()
    found = gain_range(ours, theirs, references, samples=50, seed=3)
    assert found == pytest.approx(expected)
    assert gain_range(ours, ours, references) == (0, 0)
    low, high = gain_range(references, theirs, references)
    assert 0 < low < 100 - bleu(theirs, references) < high


def test_exact_match_and_rouge_counted_by_hand():
    assert exact_match([["a"], ["b", "c"]], [("a",), ("b",)]) == 0.5
    reference = ["baker", "sells", "old", "box"]
    scores = rouge([["baker", "sells", "box"]], [reference])
    assert scores["rouge1"] == pytest.approx(100 * 2 * 3 / 7)  # 3 of 3, and 3 of 4
    assert scores["rouge2"] == pytest.approx(100 * 2 * 1 / 5)  # 1 of 2, and 1 of 3
    assert scores["rougeL"] == pytest.approx(100 * 2 * 3 / 7)
    turned = rouge([["b", "a"]], [["a", "b"]])
    assert turned == pytest.approx({"rouge1": 100, "rouge2": 0, "rougeL": 50})


# Alignment error rate


def test_aer_by_hand():
    # |A| = 3, |S| = 2, |A & S| = 1, |A & P| = 2
    predicted = [{(0, 0), (1, 2)}, {(3, 3)}]
    sure = [{(0, 0), (1, 1)}, set()]
    possible = [{(0, 0), (1, 1), (1, 2)}, {(2, 2)}]
    score = alignment_error_rate(predicted, sure, possible)
    assert score.aer == pytest.approx(1 - (1 + 2) / (3 + 2))
    assert score.precision == pytest.approx(2 / 3)
    assert score.recall == pytest.approx(1 / 2)
    assert alignment_error_rate([[(np.int64(0), 0)]], [((0, 0),)]) == (0, 1, 1)


@given(st.lists(st.tuples(links, links, links)))
def test_aer_follows_its_definition(corpus):
    predicted, sure, possible = ([s[k] for s in corpus] for k in range(3))
    a = {(n, link) for n, p in enumerate(predicted) for link in p}
    s = {(n, link) for n, p in enumerate(sure) for link in p}
    p = {(n, link) for n, p in enumerate(possible) for link in p} | s
    score = alignment_error_rate(predicted, sure, possible)
    if a or s:
        expected = 1 - (len(a & s) + len(a & p)) / (len(a) + len(s))
        assert score.aer == pytest.approx(expected)
        assert 0 <= score.aer <= 1
    else:
        assert math.isnan(score.aer)
    assert math.isnan(score.precision) if not a else 0 <= score.precision <= 1
    assert math.isnan(score.recall) if not s else 0 <= score.recall <= 1
    if a:
        assert score.precision == pytest.approx(len(a & p) / len(a))
    if s:
        assert score.recall == pytest.approx(len(a & s) / len(s))


# Links from weights, and the baselines

weight_arrays = hnp.arrays(
    float,
    hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
    elements=st.sampled_from([0.0, 0.25, 0.5, 1.0]),
)


def test_links_are_source_then_target():
    weights = [[0.1, 0.2, 0.7], [0.8, 0.1, 0.1]]  # 2 target words, 3 source words
    assert links_from_weights(weights) == {(2, 0), (0, 1)}
    assert links_from_weights(weights, threshold=0.2) == {(1, 0), (2, 0), (0, 1)}
    assert links_from_weights(np.zeros((0, 3))) == set()
    weights = torch.eye(3, dtype=torch.bfloat16, requires_grad=True)
    assert links_from_weights(weights) == {(0, 0), (1, 1), (2, 2)}


@given(weight_arrays, st.sampled_from([None, 0.1, 0.25, 0.5, 1]))
def test_links_follow_their_definition(weights, threshold):
    expected, before = set(), weights.copy()
    for i, row in enumerate(weights):
        if threshold is not None:
            expected |= {(j, i) for j, weight in enumerate(row) if weight >= threshold}
        elif max(row) > 0:
            expected.add((list(row).index(max(row)), i))
    assert links_from_weights(weights, threshold) == expected
    assert (weights == before).all()


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
        assert sorted(i for _, i in found) == [0, 1, 2]
        for j, i in found:
            counts[j, i] += 1
    assert abs(counts / 2000 - 1 / 4).max() < 0.05  # five standard deviations
    drawn = [random_links(9, 9, np.random.default_rng(seed)) for seed in (3, 3, 4)]
    assert drawn[0] == drawn[1] != drawn[2]


# Quality by length


def test_quality_by_length_by_hand():
    good, bad = "a b c d".split(), "w x y z".split()
    rows = quality_by_length(
        lengths=[5, 3, 9, 5],
        hypotheses=[good, good, bad, bad],
        references=[good, good, good, good],
        buckets=[(1, 3), (4, 5), (6, 8), (9, 9)],
    )
    assert [row.label for row in rows] == ["1–3", "4–5", "6–8", "9"]
    assert [row.count for row in rows] == [1, 2, 0, 1]
    assert rows[0].score == 100
    assert rows[1].score == bleu([good, bad], [good, good])
    assert math.isnan(rows[2].score)
    assert rows[3].score == 0


# What is refused


ONE, TWO = [["a"]], [["a"], ["b"]]


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: bleu(ONE, TWO), ValueError, "1 hypotheses and 2 references: give one"),
        (lambda: chrf([], []), ValueError, "0 hypotheses and 0 references: give one"),
        (lambda: exact_match(ONE, []), ValueError, "1 hypotheses and 0 references"),
        (lambda: rouge(ONE, TWO), ValueError, "1 hypotheses and 2 references"),
        (lambda: bleu("a b", ["a b"]), TypeError, "hypotheses is one string"),
        (lambda: chrf(["a b"], "a b"), TypeError, "references is one string"),
        (
            lambda: alignment_error_rate([set()], [set()], []),
            ValueError,
            "cover 1, 1 and 0 sentences",
        ),
        (
            lambda: alignment_error_rate({(0, 1)}, [{(0, 1)}]),
            TypeError,
            r"predicted\[0\] is \(0, 1\): give one set of links",
        ),
        (
            lambda: alignment_error_rate([set()], [{(0.5, 1)}]),
            TypeError,
            r"sure\[0\]",
        ),
        (lambda: links_from_weights([1.0, 0.0]), ValueError, r"shape \(2,\)"),
        (lambda: links_from_weights([[0.5, 1.5]]), ValueError, "between 0 and 1"),
        (lambda: links_from_weights([[1 + 5e-6, 0]]), ValueError, "between 0 and 1"),
        (lambda: links_from_weights([[-0.5, 0.5]]), ValueError, "between 0 and 1"),
        (lambda: links_from_weights([[np.nan, 0.5]]), ValueError, "without NaN"),
        (lambda: links_from_weights([[0.5]], 0), ValueError, "threshold is 0"),
        (lambda: links_from_weights([[0.5]], 1.1), ValueError, "threshold is 1.1"),
        (lambda: by_length([3, 7], [(1, 5)]), ValueError, "sentence 1 has length 7"),
        (lambda: by_length([3, 4], [(1, 3), (3, 5)]), ValueError, "in 2 of the bucke"),
        (lambda: by_length([3], [(1, 5)]), ValueError, "argument 2 is longer than"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def by_length(lengths, buckets):
    return quality_by_length(lengths, ["a", "b"], ["a", "b"], buckets)


def test_what_just_passes():
    assert links_from_weights([[1 + 5e-7, 0.0]]) == {(0, 0)}  # rounding left it above 1
    assert links_from_weights([[0.5, 1.0]], 1) == {(1, 0)}
