"""BLEU, chrF, alignment error rate and baselines, against plain definitions."""

import math
import warnings

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


@given(st.lists(st.lists(words, min_size=4), min_size=1))
def test_a_perfect_corpus_scores_exactly_100(sentences):
    assert bleu(sentences, sentences) == 100
    assert chrf(sentences, sentences) == pytest.approx(100)
    assert chrf(sentences, sentences) <= 100


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
    assert "case:lc" in text_signatures()["bleu"]
    assert "tok:13a" in text_signatures()["bleu"]


def test_scores_are_silent_and_signatures_name_the_settings(capfd, caplog):
    tokenized = ["I like it ."] * 200  # sacrebleu warns of these unless forced
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert bleu(tokenized, tokenized) == 100
        assert chrf(tokenized, tokenized) == pytest.approx(100)
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


@pytest.mark.parametrize("metric", [bleu, chrf, exact_match, rouge])
@pytest.mark.parametrize(
    ("hypotheses", "references"), [([["a"]], [["a"], ["b"]]), ([], []), ([["a"]], [])]
)
def test_one_hypothesis_for_each_reference(metric, hypotheses, references):
    message = f"{len(hypotheses)} hypotheses and {len(references)} references: give one"
    with pytest.raises(ValueError, match=message):
        metric(hypotheses, references)


@pytest.mark.parametrize("metric", [bleu, chrf])
@pytest.mark.parametrize(
    ("hypotheses", "references", "error", "message"),
    [
        ("a b", ["a b"], TypeError, "hypotheses is one string"),
        (["a b"], "a b", TypeError, "references is one string"),
        ([3], ["a"], TypeError, r"hypotheses\[0\] is 3"),
        (["a", "b"], ["a", ["b", 4]], TypeError, r"references\[1\] is \['b', 4\]"),
        (["a b"], [["a b", "a c"]], ValueError, "several references for one sentence"),
        (["a b"], [[["a"], ["b"]]], TypeError, r"references\[0\] is \[\['a'\]"),
        ([["a b", "c"]], ["a b c"], ValueError, r"hypotheses\[0\].*holds a space"),
    ],
)
def test_bad_corpora(metric, hypotheses, references, error, message):
    with pytest.raises(error, match=message):
        metric(hypotheses, references)


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


def test_links_may_be_lists_and_numpy_integers_and_are_not_changed():
    predicted, sure = [[(np.int64(0), 0), (0, 0)]], [((0, 0),)]
    assert alignment_error_rate(predicted, sure) == (0, 1, 1)
    possible = [set()]
    alignment_error_rate([set()], [{(0, 0)}], possible)
    assert possible == [set()]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([set()], [set(), set()]), ValueError, "cover 1, 2 and 2 sentences"),
        (([set()], [set()], []), ValueError, "cover 1, 1 and 0 sentences"),
        # One sentence's set where a list of sets belongs.
        (({(0, 1)}, [{(0, 1)}]), TypeError, r"predicted\[0\] is \(0, 1\)"),
        (([set()], ["0-0 1-1"]), TypeError, r"sure\[0\] is '0-0 1-1'"),
        (([set()], [set()], [{(0.5, 1)}]), TypeError, r"possible\[0\]"),
    ],
)
def test_bad_alignments(arguments, error, message):
    with pytest.raises(error, match=message):
        alignment_error_rate(*arguments)


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_links_from_tensors(dtype):
    weights = torch.eye(3, dtype=dtype, requires_grad=True)
    assert links_from_weights(weights) == {(0, 0), (1, 1), (2, 2)}


@pytest.mark.parametrize(
    ("weights", "threshold", "message"),
    [
        (np.ones((1, 2, 3)), None, r"shape \(1, 2, 3\)"),
        ([1.0, 0.0], None, r"shape \(2,\)"),
        ([[0.5, 1.5]], None, "between 0 and 1"),
        ([[-0.5, 0.5]], None, "between 0 and 1"),
        ([[np.nan, 0.5]], None, "without NaN"),
        ([[0.5, 0.5]], 0, "threshold is 0"),
        ([[0.5, 0.5]], 50, "threshold is 50"),
    ],
)
def test_bad_weights(weights, threshold, message):
    with pytest.raises(ValueError, match=message):
        links_from_weights(weights, threshold)


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


@pytest.mark.parametrize("lengths", [(0, 3), (3, -1)])
def test_bad_lengths(lengths):
    with pytest.raises(ValueError, match="at least one source word"):
        diagonal_links(*lengths)
    with pytest.raises(ValueError, match="at least one source word"):
        random_links(*lengths, np.random.default_rng(0))


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


@given(st.lists(st.integers(1, 12)))
def test_every_sentence_is_in_one_bucket(lengths):
    buckets = [[9, 12], [1, 4], [5, 8]]  # in any order, as lists too
    names = [str(n) for n in range(len(lengths))]
    seen = []

    def metric(hypotheses, references):
        assert hypotheses == references
        seen.append(hypotheses)
        return len(hypotheses)

    rows = quality_by_length(lengths, names, names, buckets, metric)
    assert [row.label for row in rows] == ["9–12", "1–4", "5–8"]
    assert sorted(n for group in seen for n in group) == sorted(names)
    for (low, high), row in zip(buckets, rows, strict=True):
        assert row.count == sum(low <= length <= high for length in lengths)
        assert row.score == row.count if row.count else math.isnan(row.score)


@pytest.mark.parametrize(
    ("lengths", "buckets", "message"),
    [
        ([3, 7], [(1, 5)], "sentence 1 has length 7"),
        ([3, 3], [], "sentence 0 has length 3"),
        ([3, 3], [(1, 3), (3, 5)], r"\(1, 3\) and \(3, 5\) overlap"),
        ([3, 3], [(1, 3), (1, 3)], "overlap"),
        ([3, 3], [(5, 1)], "upside down"),
        ([3], [(1, 5)], "1 lengths, 2 hypotheses and 2 references"),
    ],
)
def test_bad_buckets(lengths, buckets, message):
    with pytest.raises(ValueError, match=message):
        quality_by_length(lengths, ["a", "b"], ["a", "b"], buckets)


def test_text_is_cut_by_the_rules_of_its_language():
    found = [text_signatures(lang)["bleu"] for lang in ("zh", "ja", "fr")]
    wanted = ["tok:zh|", "tok:char|", "tok:13a|"]
    assert [tokens in one for tokens, one in zip(wanted, found, strict=True)] == [1] * 3


def test_weights_that_rounding_has_left_above_1_are_taken():
    assert links_from_weights([[1 + 5e-7, 0.0]]) == {(0, 0)}
    with pytest.raises(ValueError, match="between 0 and 1"):
        links_from_weights([[1 + 5e-6, 0.0]])
