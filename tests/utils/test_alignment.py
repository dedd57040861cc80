"""Where a model looks: each measure against a case worked out by hand."""

import pytest
import torch
from helpers.models import random_model

from utils.alignment import (
    far_looks,
    forced_weights,
    gold_hits,
    longest_gap,
    word_shares,
    word_weights,
)
from utils.data import Pair
from utils.subwords import SubwordVocab
from utils.text import Vocab

GOLD = Pair(tuple("a . b c .".split()), ("x", "y", "z"), frozenset({(2, 0), (3, 2)}))
WEIGHTS = torch.tensor(
    [[0.1, 0.1, 0.6, 0.1, 0.1], [1.0, 0, 0, 0, 0], [0.5, 0.1, 0.0, 0.3, 0.1]]
)


def test_the_longest_gap():
    """Between two looks, in any order, before the first, or after the last."""
    for places, gap in (([5, 0, 1], 3), ([3, 4, 5], 3), ([0, 1, 1, 1], 4)):
        weights = torch.full((len(places), 6), 0.01)
        weights[range(len(places)), places] = 0.9
        assert longest_gap(weights) == gap


def test_far_looks():
    """One of two looks is far, and ahead; then one of three, and back, at a copy."""
    ahead = Pair(tuple("abcdef"), ("x", "y"), frozenset({(0, 0), (3, 1)}))
    back = Pair(
        tuple("abcdea"), ("x",), frozenset({(4, 0)}), possible=frozenset({(5, 0)})
    )
    weights = torch.eye(6)[[5, 2]], torch.eye(6)[[0]]
    assert far_looks(weights[:1], [ahead], far=2) == (1 / 2, 1, 0)
    assert far_looks(weights[1:], [back], far=3) == (1, 0, 1)
    assert far_looks(weights, [ahead, back], far=4) == (1 / 3, 1, 0)


def test_gold_hits_are_counted_over_linked_words_only():
    """A possible link is as right as a sure one."""
    looser = GOLD._replace(possible=frozenset({(1, 0), (0, 1)}))
    for pair, expected in ((GOLD, 1 / 2), (looser, 2 / 3)):
        assert gold_hits([WEIGHTS], [pair]) == pytest.approx(expected)


def test_word_weights_by_hand():
    """Whatever the pieces are, a word has those in which its characters are."""
    pieces = SubwordVocab.train(["ab cacab", "bb ä"], "en", 300)
    pair = Pair("ab cacab!", "bb ä")
    lengths = [pieces.byte_lengths(pieces.encode(text).ids) for text in pair[:2]]
    a, b = (len(pieces.encode(text).ids) for text in ("ab", "bb"))
    weights = torch.rand(len(lengths[1]), len(lengths[0]))
    columns = torch.stack([weights[:, :a].sum(1), weights[:, a:].sum(1)], 1)
    expected = torch.stack([columns[:b].mean(0), columns[b:].mean(0)])
    vocabs = pieces, pieces
    torch.testing.assert_close(word_weights(weights, pair, vocabs), expected)
    given = pair._replace(ends=((2, 8, 9), (2, 4)))  # the sign is a word of its own
    found = word_weights(weights, given, vocabs)
    torch.testing.assert_close(found[:, 1:].sum(1), expected[:, 1])
    words = Pair(("ab",), ("a", "b"))
    assert word_weights(weights[:2, :1], words, vocabs).equal(weights[:2, :1])
    # A piece that crosses two words is shared by the bytes; an empty text has no word.
    assert word_shares("我是", [4, 3, 0], [1, 2]).tolist() == [[1, 0], [0, 1], [0, 0]]
    (shared,) = word_shares("我是", [7], [1, 2]).tolist()
    assert shared == pytest.approx([4 / 7, 3 / 7])
    assert word_shares("", [1]).shape == (1, 0)
    assert word_shares("a b\ufffd", [2, 2, 1]).sum(dim=0).min() > 0  # a byte alone


def test_a_model_without_attention_looks_nowhere():
    model, vocab = random_model("fixed", 6), Vocab([["a", "b"]], "en")
    with pytest.raises(TypeError, match="has no attention"):
        forced_weights(model, [Pair(("a",), ("b",))], (vocab, vocab))
