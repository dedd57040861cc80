"""Where a model looks: each measure against a case worked out by hand."""

import math

import pytest
import torch
from helpers.models import random_model

from utils.alignment import (
    attention_on_gold,
    by_tenth,
    forced_weights,
    forward_share,
    linked_places,
    longest_gap,
    read_along,
    whole_sentences,
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
    batch = Batch.from_pairs(PAIRS, VOCAB, VOCAB)
    _, weights = read_along(
        random_model("window", len(VOCAB)), batch, linked_places(PAIRS)
    )
    seen = [row.nonzero().flatten().tolist() for row in weights[0, :4]]
    assert seen == [[0, 1], [0, 1], [3, 4, 5], [4, 5]]  # around 0, 0, 4 and 5
    for shift, ends in ((-9, [0, 1]), (9, [4, 5])):  # before the first, after the last
        _, weights = read_along(
            random_model("window", len(VOCAB)), batch, linked_places(PAIRS) + shift
        )
        seen = [row.nonzero().flatten().tolist() for row in weights[0, :4]]
        assert seen == [ends] * 4


def test_words_right_and_places_right():
    model = random_model("attention", len(VOCAB))
    right, on_gold = words_right(model, PAIRS, (VOCAB, VOCAB))
    for pair, hits, places in zip(PAIRS, right, on_gold, strict=True):
        batch = Batch.from_pairs([pair], VOCAB, VOCAB)
        scores, _ = model(batch.source, batch.target_in, batch.source_lens)
        expected = scores[0].argmax(-1) == batch.target_out[0]
        assert hits.tolist() == expected.float().tolist()
        looked = model.decoder.attention_weights[0].argmax(-1).tolist()
        assert len(places) == len(pair.target) + 1
        for i, place in enumerate(places.tolist()):
            links = {j for j, k in pair.alignment if k == i}
            assert place == (looked[i] in links) if links else math.isnan(place)


def test_linked_places():
    """Of several links the smallest; without one the place of the word before."""
    links = frozenset({(2, 0), (0, 2), (1, 2), (2, 2)})
    first = Pair(tuple("abc"), tuple("uvwx"), links)
    second = Pair(tuple("ab"), tuple("u"), frozenset({(1, 0)}))
    places = linked_places([first, second])
    assert places[0].tolist() == [2, 2, 0, 0, 3]
    assert places[1, :2].tolist() == [1, 2]
    assert linked_places([PAIRS[2]]).tolist() == [[0, 1]]
    # A possible link leads where no sure one does.
    both = first._replace(possible=frozenset({(0, 0), (2, 1), (1, 1), (0, 3)}))
    assert linked_places([both])[0].tolist() == [2, 1, 0, 0, 3]


def test_tenths_are_those_of_each_sentence():
    ten, twenty = torch.arange(10.0), torch.arange(20.0) // 2 + 1
    assert by_tenth([ten]).tolist() == ten.tolist()
    # A twentieth counts as much as a tenth; what isn't known doesn't count.
    means = by_tenth([ten, twenty, torch.full((10,), torch.nan)])
    torch.testing.assert_close(means, (ten + 2 * (ten + 1)) / 3)


@pytest.mark.parametrize(
    ("places", "gap", "share"),
    [
        ([0, 1, 2, 3, 4, 5], 0, 1),
        ([5, 3, 1, 0, 2, 4], 0, 0.4),  # for the gap, the order doesn't matter
        ([0, 1, 5], 3, 1),
        ([3, 4, 5], 3, 1),  # before the first
        ([0, 1, 1, 1], 4, 1),  # after the last
        ([4, 2, 0], 1, 0),
        ([4], 4, math.nan),
    ],
)
def test_the_longest_gap_and_the_share_of_steps_forward(places, gap, share):
    weights = torch.full((len(places), 6), 0.01)
    weights[range(len(places)), places] = 0.9
    assert longest_gap(weights) == gap
    assert forward_share(places) == pytest.approx(share, nan_ok=True)


def test_attention_on_gold_counts_linked_words_only():
    wide = whole_sentences(GOLD)
    assert wide.alignment == {(j, i) for j in (2, 3, 4) for i in (0, 2)}
    assert wide._replace(alignment=GOLD.alignment) == GOLD
    expected = ((0.6 + 0.3) / 2, 0.5, 0.2)
    assert attention_on_gold([WEIGHTS], [GOLD]) == pytest.approx(expected)
    expected = ((0.8 + 0.4) / 2, 0.5, 0.6)
    assert attention_on_gold([WEIGHTS], [wide]) == pytest.approx(expected)


def test_a_possible_link_is_as_right_as_a_sure_one():
    """Each row of weights is found in full; a word with a possible link counts."""
    looser = GOLD._replace(possible=frozenset({(1, 0), (0, 1)}))
    expected = ((0.7 + 1.0 + 0.3) / 3, 2 / 3, (2 + 1 + 1) / 15)
    assert attention_on_gold([WEIGHTS], [looser]) == pytest.approx(expected)
    wide = whole_sentences(looser._replace(possible=frozenset({(4, 0), (0, 1)})))
    assert wide.alignment == {(j, i) for j in (2, 3, 4) for i in (0, 2)}
    assert wide.possible == {(0, 1), (1, 1)}  # what is sure isn't said again
    pair = PAIRS[0]._replace(possible=frozenset({(j, 1) for j in range(5)}))
    _, (places,) = words_right(
        random_model("attention", 12, seed=1), [pair], (VOCAB, VOCAB)
    )
    assert places[1] == 1


# --- from pieces to words -----------------------------------------------------------

SMALL = SubwordVocab.train([["abc", "ab", "ca"], ["bca", "cab"]] * 5, "en", 10)


def test_word_weights_by_hand():
    pair = Pair(("ab", "cacab"), ("bb", "a"))
    sizes = [[len(SMALL[[word]]) for word in side] for side in pair[:2]]
    (a, b), (c, d) = sizes
    assert b > 1 and c > 1
    weights = torch.rand(c + d, a + b)
    found = word_weights(weights, pair, (SMALL, SMALL))
    for i, rows in enumerate((weights[:c], weights[c:])):
        for j, part in enumerate((rows[:, :a], rows[:, a:])):
            assert found[i, j].item() == pytest.approx(part.sum().item() / len(part))
    words = Vocab([pair.source, pair.target], "en")
    mixed = word_weights(weights[:2], pair, (SMALL, words))
    torch.testing.assert_close(mixed.sum(1), weights[:2].sum(1))
    assert word_weights(weights[:2, :2], pair, (words, words)).equal(weights[:2, :2])
    assert SMALL[["▁"]] == []  # it stands for a space: a word without pieces
    pair, pieces = Pair(("ab", "▁"), ("▁", "ab")), SMALL[["ab"]]
    weights = torch.full((len(pieces), len(pieces)), 1 / len(pieces))
    assert word_weights(weights, pair, (SMALL, SMALL)).tolist() == [[0, 0], [1, 0]]


CHINESE = SubwordVocab.train([["我", "你"], ["他", "我"]] * 5, "zh", 9)
CROSSED = Pair(("我", "你"), ("a",))
NO_LINKS, NO_GOLD = GOLD._replace(alignment=frozenset()), GOLD._replace(alignment=None)
FIXED = random_model("fixed", len(VOCAB))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: longest_gap(torch.ones(1, 2, 3)), "one sentence's"),
        (lambda: linked_places([]), "at least one"),
        (lambda: words_right(None, [NO_GOLD], None), "links are needed"),
        (lambda: word_weights(WEIGHTS, CROSSED, (CHINESE, VOCAB)), "pieces cross them"),
        (lambda: attention_on_gold([WEIGHTS], [NO_LINKS]), "nothing to measure"),
        (lambda: forced_weights(FIXED, PAIRS, (VOCAB, VOCAB)), "has no attention"),
    ],
)
def test_what_is_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
