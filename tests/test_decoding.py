"""Greedy decoding and translate."""

import pytest
import torch

from utils.data import BatchLoader, Pair
from utils.decoding import MAX_SOURCE, greedy_decode, translate, translate_tokens
from utils.seq2seq import build_model
from utils.text import BOS_ID, EOS, EOS_ID, PAD_ID, Vocab
from utils.training import Trainer

WORDS = "one two three four five six".split()


@pytest.fixture(scope="module", params=["attention", "fixed"])
def trained(request):
    """A model that has learnt to copy, well enough to end its sentences."""
    generator = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(300):
        size = int(torch.randint(1, 5, (), generator=generator))
        words = tuple(
            WORDS[i] for i in torch.randint(0, 6, (size,), generator=generator)
        )
        pairs.append(Pair(words, words))
    vocab = Vocab([WORDS], "en")
    torch.manual_seed(0)
    model = build_model(request.param, len(vocab), len(vocab), 16, 32)
    Trainer(model, BatchLoader(pairs, vocab, vocab, 32), 20, lr=1e-2).fit(
        progress=False
    )
    return model, vocab


def greedy_by_loops(model, source, max_steps):
    """The specification: one sentence, one word at a time."""
    lens = torch.tensor([source.shape[1]])
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    ids, word = [], BOS_ID
    while len(ids) < max_steps:
        scores, state = model.decoder(torch.tensor([[word]]), state)
        word = max(range(scores.shape[2]), key=lambda v: scores[0, 0, v].item())
        ids.append(word)
        if word == EOS_ID:
            break
    return ids


def test_batched_equals_one_at_a_time(trained):
    model, vocab = trained
    sentences = [["one"], ["two", "three", "two"], ["six", "five", "four", "one"]]
    rows = [torch.tensor([[*vocab[words], EOS_ID]]) for words in sentences]
    source = torch.full((3, 5), PAD_ID)
    for b, row in enumerate(rows):
        source[b, : row.shape[1]] = row
    lens = torch.tensor([row.shape[1] for row in rows])
    ids, weights = greedy_decode(model, source, lens)
    assert (weights is None) == (not hasattr(model.decoder, "attention_weights"))
    for b, row in enumerate(rows):
        with torch.no_grad():
            expected = greedy_by_loops(model, row, 20)
        assert ids[b][ids[b] != PAD_ID].tolist() == expected
        assert (ids[b, len(expected) :] == PAD_ID).all()


def test_decoding_stops_when_every_sentence_has_ended(trained):
    model, vocab = trained
    steps = []
    handle = model.decoder.dense.register_forward_hook(lambda *_: steps.append(1))
    translation = translate(model, "one two", vocab, vocab)
    handle.remove()
    assert len(steps) == len(translation.tokens) < 14
    assert translation.tokens[-1] == EOS


def test_the_step_limit_drops_no_word(trained):
    model, vocab = trained
    full = translate(model, "one two three", vocab, vocab)
    cut = translate(model, "one two three", vocab, vocab, max_steps=2)
    assert cut.tokens == cut.words == full.tokens[:2]


def test_sizes_and_labels_agree(trained):
    model, vocab = trained
    translation = translate(model, "One two THREE", vocab, vocab)
    assert translation.source_tokens == ["one", "two", "three", EOS]
    assert translation.words == ["one", "two", "three"]
    assert translation.text.lower() == "one two three"
    weights = translation.attention_weights
    if weights is not None:
        assert weights.shape == (len(translation.tokens), 4)
        torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))
        assert not weights.requires_grad


def test_many_sentences_come_back_in_order(trained):
    model, vocab = trained
    sentences = [["two", "three"], ["one"], ["five", "four", "six"], ["one"]]
    results = translate_tokens(model, sentences, vocab, vocab, batch_size=2)
    assert [r.source_tokens[:-1] for r in results] == sentences
    assert [r.words for r in results] == sentences
    assert translate_tokens(model, [], vocab, vocab) == []


def test_unknown_words_are_named_and_do_no_harm(trained):
    model, vocab = trained
    translation = translate(model, "one zebra", vocab, vocab)
    assert translation.unknown == ["zebra"] and translation.source_tokens[1] == "zebra"


def test_the_model_is_left_unchanged_and_without_gradient(trained):
    model, vocab = trained
    before = [p.clone() for p in model.parameters()]
    translate(model, "one", vocab, vocab)
    assert all(
        torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True)
    )


@pytest.mark.parametrize(
    "sentence, error, message",
    [
        ("", ValueError, "nothing to translate"),
        (" \n\t", ValueError, "nothing to translate"),
        (None, TypeError, "must be a str, got NoneType"),
        (["one"], TypeError, "must be a str, got list"),
        ("one " * (MAX_SOURCE + 1), ValueError, "split a longer one"),
    ],
)
def test_what_can_not_be_translated(trained, sentence, error, message):
    model, vocab = trained
    with pytest.raises(error, match=message):
        translate(model, sentence, vocab, vocab)


def test_a_long_sentence_within_the_limit_ends_by_itself_or_by_the_cap(trained):
    model, vocab = trained
    translation = translate(model, "one " * MAX_SOURCE, vocab, vocab)
    assert len(translation.tokens) <= 2 * (MAX_SOURCE + 1) + 10
