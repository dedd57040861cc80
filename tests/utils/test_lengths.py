"""Skips, places and words read along: each against a case worked out by hand."""

import pytest
import torch

from utils.data import Batch, Pair
from utils.lengths import (
    by_tenth,
    join_pairs,
    linked_places,
    longest_gap,
    read_along,
    words_right,
)
from utils.models import build_model
from utils.seq2seq import EncoderDecoder
from utils.text import Vocab
from utils.variants import WindowDecoder


def looking_at(places, num_sources):
    """Weights (T, S) that are largest at these places."""
    weights = torch.full((len(places), num_sources), 0.01)
    weights[range(len(places)), places] = 0.9
    return weights


@pytest.mark.parametrize(
    "places, gap",
    [
        ([0, 1, 2, 3, 4, 5], 0),
        ([5, 3, 1, 0, 2, 4], 0),  # the order doesn't matter
        ([0, 1, 5], 3),
        ([3, 4, 5], 3),  # before the first
        ([0, 1, 1, 1], 4),  # after the last
        ([0, 2, 4], 1),
    ],
)
def test_the_longest_gap(places, gap):
    assert longest_gap(looking_at(places, 6)) == gap


def test_linked_places():
    """Of several links the smallest; without one the place of the word before."""
    links = frozenset({(2, 0), (0, 2), (1, 2), (2, 2)})
    first = Pair(tuple("abc"), tuple("uvwx"), links)
    second = Pair(tuple("ab"), tuple("u"), frozenset({(1, 0)}))
    places = linked_places([first, second])
    assert places[0].tolist() == [2, 2, 0, 0, 3]
    assert places[1, :2].tolist() == [1, 2]
    nothing = Pair(tuple("ab"), tuple("uv"), frozenset())
    assert linked_places([nothing]).tolist() == [[0, 0, 2]]


def some_models():
    words = list("abcdefgh")
    vocab = Vocab([words], "en")
    pairs = [
        Pair(tuple("abcde"), tuple("hgf"), frozenset({(0, 0), (4, 2)})),
        Pair(tuple("fg"), tuple("abcd"), frozenset({(1, 0), (1, 1)})),
        Pair(tuple("h"), tuple("a"), frozenset()),
    ]
    torch.manual_seed(0)
    model = build_model("attention", len(vocab), len(vocab), 6, 8)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    decoder = WindowDecoder(len(vocab), 6, 8, reach=1)
    decoder.load_state_dict(model.decoder.state_dict())
    return model.eval(), EncoderDecoder(model.encoder, decoder).eval(), pairs, vocab


def test_reading_along_is_teacher_forcing():
    model, windowed, pairs, vocab = some_models()
    batch = Batch.from_pairs(pairs, vocab, vocab)
    for each in (model, windowed):
        scores, weights = read_along(each, batch)
        expected, _ = each(batch.source, batch.target_in, batch.source_lens)
        torch.testing.assert_close(scores, expected)
        torch.testing.assert_close(weights, each.decoder.attention_weights)


def test_given_places_lead_the_window():
    _, windowed, pairs, vocab = some_models()
    batch = Batch.from_pairs(pairs, vocab, vocab)
    _, weights = read_along(windowed, batch, linked_places(pairs))
    seen = [row.nonzero().flatten().tolist() for row in weights[0, :4]]
    assert seen == [[0, 1], [0, 1], [3, 4, 5], [4, 5]]  # around 0, 0, 4 and 5


def test_words_right_and_places_right():
    model, _, pairs, vocab = some_models()
    right, on_gold = words_right(model, pairs, (vocab, vocab))
    for pair, hits, places in zip(pairs, right, on_gold, strict=True):
        batch = Batch.from_pairs([pair], vocab, vocab)
        scores, _ = model(batch.source, batch.target_in, batch.source_lens)
        expected = scores[0].argmax(-1) == batch.target_out[0]
        assert hits.tolist() == expected.float().tolist()
        looked = model.decoder.attention_weights[0].argmax(-1).tolist()
        for i, place in enumerate(places.tolist()):
            links = {j for j, k in pair.alignment if k == i}
            if links:
                assert place == (looked[i] in links)
            else:
                assert place != place  # NaN


def test_tenths_are_those_of_each_sentence():
    ten = torch.arange(10.0)
    twenty = torch.arange(20.0) // 2 + 1
    assert by_tenth([ten]).tolist() == ten.tolist()
    third = torch.tensor([torch.nan] * 10)
    means = by_tenth([ten, twenty, third])  # a twentieth counts as much as a tenth
    expected = [(k + 2 * (k + 1)) / 3 for k in range(10)]
    torch.testing.assert_close(means, torch.tensor(expected))


def test_joined_pairs():
    pairs = [
        Pair((f"s{n}", "."), (f"t{n}", "u", "."), frozenset({(0, 0)})) for n in range(4)
    ]
    joined = join_pairs(pairs)
    assert len(joined) == 4 and all(pair.alignment is None for pair in joined)
    for pair in joined:
        first, comma, word, second, stop = pair.source
        assert (comma, word, stop) == (",", "but", ".") and first != second
        mirrored = (first.replace("s", "t"), "u", ",", "mais")
        assert pair.target == (*mirrored, second.replace("s", "t"), "u", ".")
    assert {pair.source[0] for pair in joined} == {p.source[0] for p in pairs}
    assert {pair.source[3] for pair in joined} == {p.source[0] for p in pairs}
    assert join_pairs(pairs) == joined != join_pairs(pairs, seed=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda pairs: longest_gap(torch.ones(1, 2, 3)), r"one sentence.*\(1, 2, 3\)"),
        (lambda pairs: linked_places([]), "at least one"),
        (lambda pairs: linked_places(join_pairs(pairs)), "have an alignment"),
        (lambda pairs: words_right(None, join_pairs(pairs), None), "have an alignment"),
        (lambda pairs: join_pairs(pairs[:1]), "two or more"),
        (
            lambda pairs: join_pairs([*pairs, pairs[0]._replace(source=("a", "?"))]),
            "another last word would be lost",
        ),
    ],
)
def test_bad_input_gets_a_clear_error(call, message):
    pair = Pair(("a", "."), ("b", "."), frozenset())
    with pytest.raises(ValueError, match=message):
        call([pair, pair])
