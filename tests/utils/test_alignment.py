"""Where a model looks: each measure against a case worked out by hand."""

import math

import pytest
import torch
from helpers.models import random_model

from utils.alignment import (
    attention_on_gold,
    by_tenth,
    forced_weights,
    linked_places,
    longest_gap,
    read_along,
    whole_sentences,
    word_shares,
    word_weights,
    words_right,
)
from utils.data import Batch, Pair
from utils.subwords import SubwordVocab
from utils.text import Vocab

VOCAB = Vocab([list("abcdefgh")], "en")
PAIRS = [
    Pair(tuple("abcde"), tuple("hgf"), frozenset({(0, 0), (4, 2)})),
    Pair(tuple("fg"), tuple("abcd"), frozenset({(1, 0), (1, 1)})),
    Pair(tuple("h"), tuple("a"), frozenset()),
]
GOLD = Pair(tuple("a . b c .".split()), ("x", "y", "z"), frozenset({(2, 0), (3, 2)}))
WEIGHTS = torch.tensor(
    [[0.1, 0.1, 0.6, 0.1, 0.1], [1.0, 0, 0, 0, 0], [0.5, 0.1, 0.0, 0.3, 0.1]]
)


@pytest.mark.parametrize("kind", ["attention", "window", "transformer"])
def test_reading_along_is_teacher_forcing(kind):
    model, batch = random_model(kind, len(VOCAB)), Batch.from_pairs(PAIRS, VOCAB, VOCAB)
    scores, weights = read_along(model, batch)
    expected, _ = model(batch.source, batch.target_in, batch.source_lens)
    torch.testing.assert_close(scores, expected)
    torch.testing.assert_close(weights, model.decoder.attention_weights)
    together = forced_weights(model, PAIRS, (VOCAB, VOCAB), batch_size=2)
    for found, row, pair in zip(together, weights, PAIRS, strict=True):
        assert found.shape == (len(pair.target), len(pair.source))  # without <eos>
        torch.testing.assert_close(found, row[: found.shape[0], : found.shape[1]])


def test_given_places_lead_the_window():
    model, batch = random_model("window", 12), Batch.from_pairs(PAIRS, VOCAB, VOCAB)
    for shift, seen in (
        (0, [[0, 1], [0, 1], [3, 4, 5], [4, 5]]),  # around 0, 0, 4 and 5
        (-9, [[0, 1]] * 4),  # before the first
        (9, [[4, 5]] * 4),  # after the last
    ):
        _, weights = read_along(model, batch, linked_places(PAIRS) + shift)
        assert [row.nonzero().flatten().tolist() for row in weights[0, :4]] == seen


def test_words_right_and_places_right():
    model = random_model("attention", len(VOCAB))
    pairs = [*PAIRS, PAIRS[1]._replace(possible=frozenset({(0, 0), (0, 2), (1, 2)}))]
    right, on_gold = words_right(model, pairs, (VOCAB, VOCAB))
    for pair, hits, places in zip(pairs, right, on_gold, strict=True):
        batch = Batch.from_pairs([pair], VOCAB, VOCAB)
        scores, _ = model(batch.source, batch.target_in, batch.source_lens)
        expected = scores[0].argmax(-1) == batch.target_out[0]
        assert hits.tolist() == expected.float().tolist()
        looked = model.decoder.attention_weights[0].argmax(-1).tolist()
        gold = [{j for j, k in pair[2] | pair[4] if k == i} for i in range(len(looked))]
        expected = [
            float(j in links) if links else math.nan
            for j, links in zip(looked, gold, strict=True)
        ]
        assert places.tolist() == pytest.approx(expected, nan_ok=True)


def test_linked_places():
    """Of several links the smallest; without one the place of the word before."""
    links = frozenset({(2, 0), (0, 2), (1, 2), (2, 2)})
    first = Pair(tuple("abc"), tuple("uvwx"), links)
    second = Pair(tuple("ab"), tuple("u"), frozenset({(1, 0)}))
    # A possible link leads where no sure one does.
    both = first._replace(possible=frozenset({(0, 0), (2, 1), (1, 1), (0, 3)}))
    places = linked_places([first, second, both]).tolist()
    assert places[0] == [2, 2, 0, 0, 3] and places[1][:2] == [1, 2]
    assert places[2] == [2, 1, 0, 0, 3]
    assert linked_places([PAIRS[2]]).tolist() == [[0, 1]]


def test_tenths_are_those_of_each_sentence():
    ten, twenty = torch.arange(10.0), torch.arange(20.0) // 2 + 1
    assert by_tenth([ten]).tolist() == ten.tolist()
    # A twentieth counts as much as a tenth; what isn't known doesn't count.
    means = by_tenth([ten, twenty, torch.full((10,), torch.nan)])
    torch.testing.assert_close(means, (ten + 2 * (ten + 1)) / 3)


@pytest.mark.parametrize(
    ("places", "gap"),
    [
        ([0, 1, 2, 3, 4, 5], 0),
        ([5, 3, 1, 0, 2, 4], 0),  # the order doesn't matter
        ([0, 1, 5], 3),
        ([3, 4, 5], 3),  # before the first
        ([0, 1, 1, 1], 4),  # after the last
        ([4, 2, 0], 1),
        ([4], 4),
    ],
)
def test_the_longest_gap(places, gap):
    weights = torch.full((len(places), 6), 0.01)
    weights[range(len(places)), places] = 0.9
    assert longest_gap(weights) == gap


def test_attention_on_gold_counts_linked_words_only():
    """A possible link is as right as a sure one."""
    wide = whole_sentences(GOLD)
    assert wide.alignment == {(j, i) for j in (2, 3, 4) for i in (0, 2)}
    looser = GOLD._replace(possible=frozenset({(1, 0), (0, 1)}))
    for pair, expected in (
        (GOLD, ((0.6 + 0.3) / 2, 0.5, 0.2)),
        (wide, ((0.8 + 0.4) / 2, 0.5, 0.6)),
        (looser, ((0.7 + 1.0 + 0.3) / 3, 2 / 3, (2 + 1 + 1) / 15)),
    ):
        assert attention_on_gold([WEIGHTS], [pair]) == pytest.approx(expected)
    wide = whole_sentences(looser._replace(possible=frozenset({(4, 0), (0, 1)})))
    assert wide.alignment == {(j, i) for j in (2, 3, 4) for i in (0, 2)}
    assert wide.possible == {(0, 1), (1, 1)}  # what is sure isn't said again


# --- from pieces to words -----------------------------------------------------------


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


NO_LINKS, NO_GOLD = GOLD._replace(alignment=frozenset()), GOLD._replace(alignment=None)
FIXED = random_model("fixed", len(VOCAB))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: linked_places([]), "at least one"),
        (lambda: words_right(None, [NO_GOLD], None), "links are needed"),
        (lambda: attention_on_gold([WEIGHTS], [NO_LINKS]), "nothing to measure"),
        (lambda: forced_weights(FIXED, PAIRS, (VOCAB, VOCAB)), "has no attention"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
