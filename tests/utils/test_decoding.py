"""Greedy decoding, beam search and translate."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from torch import nn

from utils import decoding
from utils.data import BatchLoader, Pair
from utils.decoding import (
    MAX_SOURCE,
    Beam,
    beam_search,
    extend_beam,
    greedy_decode,
    select_rows,
    translate,
    translate_tokens,
)
from utils.models import build_model
from utils.seq2seq import EncoderDecoder, Seq2SeqEncoder
from utils.subwords import SubwordVocab, to_words
from utils.text import BOS_ID, EOS, EOS_ID, PAD_ID, UNK, UNK_ID, Vocab
from utils.training import Trainer
from utils.variants import HierarchicalDecoder, LuongDecoder, WindowDecoder

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


# --- subwords ---------------------------------------------------------------------

ENGLISH = [["snow", "snowboard", "boards", "ball", "snowball", ",", "a"]] * 4
CHINESE = [["我", "爱", "吃", "苹果", "。"]] * 4


@pytest.fixture(scope="module")
def pieces():
    """Vocabularies of pieces: English and Chinese."""
    return SubwordVocab.train(ENGLISH, "en", 17), SubwordVocab.train(CHINESE, "zh", 11)


def some_translator(pieces, kind="translator"):
    torch.manual_seed(3)
    return build_model(kind, *map(len, pieces), 6, 8, 8, dropout=0.1)


def writes(monkeypatch, *ids):
    """The decoder now writes these ids, whatever it reads."""

    def decode(model, source, source_lens, max_steps):
        return torch.tensor([ids]), torch.zeros(1, len(ids), source.shape[1])

    monkeypatch.setattr(decoding, "greedy_decode", decode)


def test_pieces_are_joined_to_words_and_text(pieces, monkeypatch):
    english, _ = pieces
    words = ["a", "snowboard", ",", "boards"]
    ids = english[words]
    assert len(ids) > len(words)
    writes(monkeypatch, *ids, EOS_ID, PAD_ID)
    found = translate(some_translator([english] * 2), "Snow!", english, english)
    assert found.words == words and found.text == "A snowboard, boards"
    assert found.tokens == [*english.to_tokens(ids), EOS]
    assert "".join(found.source_tokens[:-1]) == f"▁snow▁{UNK}"
    assert found.unknown == ["!"]
    shape = len(found.tokens), len(found.source_tokens)
    assert found.attention_weights.shape == shape


def test_chinese_pieces_give_characters_and_text_without_spaces(pieces, monkeypatch):
    english, chinese = pieces
    writes(monkeypatch, *chinese[["我", "爱", "吃", "苹果", "。"]])  # no <eos>: cut
    found = translate(some_translator(pieces), "a snowball", english, chinese)
    assert found.words == ["我", "爱", "吃", "苹", "果", "。"]
    assert found.text == "我爱吃苹果。" and EOS not in found.tokens
    back = translate(
        some_translator([chinese, english]), "我爱吃苹果，Tom。", chinese, english
    )
    assert back.unknown == ["，", "tom"]
    assert back.source_tokens[-1] == EOS


def test_whole_words_into_pieces(pieces, monkeypatch):
    source = Vocab(ENGLISH, "en")
    writes(monkeypatch, *pieces[0][["snowball"]], EOS_ID)
    model = some_translator([source, pieces[0]])
    found = translate(model, "a zebra", source, pieces[0])
    assert found.source_tokens == ["a", "zebra", EOS]
    assert found.unknown == ["zebra"] and found.words == ["snowball"]


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("kind", ["translator", "fixed translator"])
def test_sizes_agree_with_subwords(pieces, kind, beam_size):
    english, chinese = pieces
    model = some_translator(pieces, kind)
    sentences = [["snowboard"], ["a", "ball", ",", "boards"], ["zebra"]]
    results = translate_tokens(
        model, sentences, english, chinese, max_steps=9, beam_size=beam_size
    )
    for words, found in zip(sentences, results, strict=True):
        assert found.source_tokens[-1] == EOS
        assert len(found.source_tokens) == len(english[words]) + 1 > len(words) + 1
        assert found.words == to_words(found.tokens, chinese)
        assert found.unknown == [word for word in words if word == "zebra"]
        weights = found.attention_weights
        assert (weights is None) == (kind == "fixed translator")
        if weights is not None:
            assert weights.shape == (len(found.tokens), len(found.source_tokens))
            torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))


def test_words_are_a_field_of_their_own(trained):
    model, vocab = trained
    found = translate(model, "one two", vocab, vocab)
    assert found._fields[-1] == "words" and found._replace(words=["x"]).words == ["x"]


# --- beam search ------------------------------------------------------------------

DECODERS = {
    "luong": LuongDecoder,
    "hierarchical": HierarchicalDecoder,
    "window": WindowDecoder,
}
RNNSEARCH = {"rnnsearch": "RNNsearch", "released": "order of the released code"}
TINY = 6  # words in the vocabulary of the models below: four special ones and two


def random_model(kind, seed=0):
    """Large random weights: probabilities that are far from equal."""
    torch.manual_seed(seed)
    if kind in RNNSEARCH:
        model = build_model("rnnsearch", TINY, TINY, 4, 5, variant=RNNSEARCH[kind])
    elif kind in DECODERS:
        encoder = Seq2SeqEncoder(TINY, 4, 5, num_layers=2)
        model = EncoderDecoder(encoder, DECODERS[kind](TINY, 4, 5, num_layers=2))
    else:
        model = build_model(kind, TINY, TINY, 4, 5, num_layers=2)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8)
    return model.eval()


def some_sources(B=3, S=4):
    torch.manual_seed(1)
    lens = torch.tensor([S - b for b in range(B)])
    return torch.randint(3, TINY, (B, S)), lens


def log_probs_by_forcing(model, source, lens, hypotheses):
    """What the model says of each of one sentence's translations, given whole."""
    N, T = len(hypotheses), max(map(len, hypotheses))
    words = torch.tensor([[*h, *[PAD_ID] * (T - len(h))] for h in hypotheses])
    inputs = torch.cat((torch.full((N, 1), BOS_ID), words[:, :-1]), dim=1)
    with torch.no_grad():
        scores, _ = model(source.expand(N, -1), inputs, lens.expand(N))
    steps = scores.double().log_softmax(-1).gather(2, words.unsqueeze(2)).squeeze(2)
    return [
        row[: len(h)].sum().item() for row, h in zip(steps, hypotheses, strict=True)
    ]


def every_hypothesis(max_steps):
    """All that a search may return: ended by <eos>, or cut at the cap."""
    unfinished = [[]]
    for _ in range(max_steps):
        grown = [[*words, word] for words in unfinished for word in range(TINY)]
        yield from (words for words in grown if words[-1] == EOS_ID)
        unfinished = [words for words in grown if words[-1] != EOS_ID]
    yield from unfinished


def best_by_exhaustion(model, source, lens, max_steps, length_penalty):
    """The specification: look at every hypothesis -> the best one's words, log-prob."""
    hypotheses = list(every_hypothesis(max_steps))
    log_probs = log_probs_by_forcing(model, source, lens, hypotheses)
    return max(
        zip(hypotheses, log_probs, strict=True),
        key=lambda found: found[1] / len(found[0]) ** length_penalty,
    )


def written(ids):
    """A row of ids as words: up to <eos>, or all of them."""
    ids = ids.tolist()
    return ids[: ids.index(EOS_ID) + 1] if EOS_ID in ids else ids


KINDS = ["attention", "fixed", *RNNSEARCH, *DECODERS]


@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_beam_that_keeps_everything_is_exhaustive(kind, length_penalty):
    max_steps, wide = 3, TINY**3
    for seed in range(2):
        model = random_model(kind, seed)
        source, lens = some_sources(2)
        found = beam_search(model, source, lens, wide, max_steps, length_penalty)
        for b, length in enumerate(lens):
            row = source[b : b + 1, :length]
            words, log_prob = best_by_exhaustion(
                model, row, lens[b : b + 1], max_steps, length_penalty
            )
            assert written(found[0][b]) == words
            assert found[1][b].item() == pytest.approx(log_prob, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_greedy_is_not_always_the_best(kind):
    """Without this, the test above would show nothing that greedy doesn't."""
    better = 0
    for seed in range(8):
        model = random_model(kind, seed)
        source, lens = some_sources()
        greedy, wide = (
            beam_search(model, source, lens, size, 3)[1] for size in (1, TINY**3)
        )
        assert (wide >= greedy - 1e-4).all()
        better += (wide > greedy + 1e-3).sum().item()
    assert better >= 3


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_width_one_is_greedy(kind, length_penalty):
    for seed in range(6):
        model = random_model(kind, seed)
        source, lens = some_sources()
        ids, weights = greedy_decode(model, source, lens, 7)
        found = beam_search(model, source, lens, 1, 7, length_penalty)
        assert torch.equal(found[0], ids)
        for b in range(len(ids)):
            words = written(ids[b])
            if weights is not None:
                torch.testing.assert_close(
                    found[2][b, : len(words)], weights[b, : len(words)]
                )
    assert (found[2] is None) == (weights is None)


def test_width_one_is_greedy_for_a_trained_model(trained):
    model, vocab = trained
    source, lens = some_sources()
    source += 4
    ids, _ = greedy_decode(model, source, lens)
    assert torch.equal(beam_search(model, source, lens, 1)[0], ids)


@pytest.mark.parametrize("beam_size", [2, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_score_and_weights_are_those_of_the_words_returned(kind, beam_size):
    """So the states moved with their hypotheses."""
    for seed in range(4):
        model = random_model(kind, seed)
        source, lens = some_sources()
        ids, log_probs, weights = beam_search(model, source, lens, beam_size, 6)
        assert ids.shape[0] == len(log_probs) == 3 and log_probs.dtype == torch.float64
        for b, length in enumerate(lens):
            words, row = written(ids[b]), source[b : b + 1, :length]
            [log_prob] = log_probs_by_forcing(model, row, lens[b : b + 1], [words])
            assert log_probs[b].item() == pytest.approx(log_prob, abs=1e-4)
            assert (ids[b, len(words) :] == PAD_ID).all()
            if weights is not None:
                torch.testing.assert_close(
                    weights[b, : len(words), :length],
                    model.decoder.attention_weights[0],
                )
                assert not weights[b, : len(words), length:].any()


@pytest.mark.parametrize("length_penalty", [0.0, 1.0])
@pytest.mark.parametrize("kind", KINDS)
def test_a_sentence_alone_equals_that_sentence_in_a_batch(kind, length_penalty):
    model = random_model(kind, 3)
    source, lens = some_sources()
    ids, log_probs, _ = beam_search(model, source, lens, 3, 8, length_penalty)
    for b, length in enumerate(lens):
        row = source[b : b + 1, :length]
        alone = beam_search(model, row, lens[b : b + 1], 3, 8, length_penalty)
        assert written(alone[0][0]) == written(ids[b])
        assert alone[1].item() == pytest.approx(log_probs[b].item(), abs=1e-4)


class ChainState(NamedTuple):
    hidden_state: torch.Tensor  # (1, B, 1), unused


def chain(table):
    """A model whose next word depends on the last word alone: {word: {word: p}}."""
    scores = torch.full((TINY, TINY), -torch.inf)
    scores[:, EOS_ID] = 0.0  # after a word that the table doesn't have
    scores[list(table)] = -torch.inf
    for last, following in table.items():
        for word, p in following.items():
            scores[last, word] = math.log(p)

    def decoder(X, state):
        return scores[X], state

    decoder.init_state = lambda outputs, lens: ChainState(torch.zeros(1, len(lens), 1))
    return SimpleNamespace(
        encoder=lambda X, lens: None, decoder=decoder, eval=lambda: None
    )


A, B = 4, 5
SHORT_OR_LONG = {
    BOS_ID: {EOS_ID: 0.4, A: 0.6},
    A: {B: 0.6, EOS_ID: 0.3, A: 0.1},
    B: {EOS_ID: 1.0},
}


@pytest.mark.parametrize(
    "beam_size, length_penalty, words, probability",
    [
        (1, 0.0, [A, B, EOS_ID], 0.36),
        (2, 0.0, [EOS_ID], 0.4),  # ended in step 1, kept while the other one went on
        (2, 1.0, [A, B, EOS_ID], 0.36),  # ln(0.36) / 3 > ln(0.4) / 1
        (9, 0.0, [EOS_ID], 0.4),
        (9, 1.0, [A, B, EOS_ID], 0.36),
    ],
)
def test_what_wins_by_hand(beam_size, length_penalty, words, probability):
    source, lens = some_sources(1)
    ids, log_probs, weights = beam_search(
        chain(SHORT_OR_LONG), source, lens, beam_size, 5, length_penalty
    )
    assert written(ids[0]) == words and weights is None
    assert log_probs.exp().item() == pytest.approx(probability)


def test_a_wider_beam_can_score_lower():
    """The greedy path is dropped by two that look better and end worse."""
    table = {
        BOS_ID: {A: 0.4, B: 0.35, UNK_ID: 0.25},
        A: {EOS_ID: 0.34, A: 0.33, UNK_ID: 0.33},
        B: {B: 0.5, UNK_ID: 0.5},
        UNK_ID: {A: 0.5, B: 0.5},
    }
    source, lens = some_sources(1)
    found = [beam_search(chain(table), source, lens, size, 3) for size in (1, 2)]
    assert written(found[0][0][0]) == [A, EOS_ID]
    assert [log_probs.exp().item() for _, log_probs, _ in found] == pytest.approx(
        [0.4 * 0.34, 0.35 * 0.5 * 0.5]
    )


def test_the_search_stops_as_soon_as_nothing_can_change():
    steps = []
    model = chain({BOS_ID: {EOS_ID: 0.9, A: 0.1}, A: {A: 0.9, EOS_ID: 0.1}})
    inner = model.decoder

    def counted(X, state):
        steps.append(1)
        return inner(X, state)

    counted.init_state = inner.init_state
    model.decoder = counted
    source, lens = some_sources(1)
    ids, _, _ = beam_search(model, source, lens, 2, 50)
    assert ids.tolist() == [[EOS_ID]] and len(steps) == 1


def test_a_search_goes_on_while_a_longer_one_can_win():
    """By the mean: ln(0.5) for <eos> at once; ln(0.5) / n for n words."""
    model = chain({BOS_ID: {EOS_ID: 0.5, A: 0.5}, A: {A: 1.0}})
    source, lens = some_sources(1)
    for cap in (1, 2, 9):
        ids, log_probs, _ = beam_search(model, source, lens, 2, cap, 1.0)
        assert written(ids[0]) == ([A] * cap if cap > 1 else written(ids[0]))
        assert log_probs.exp().item() == pytest.approx(0.5)


def test_rows_of_a_state():
    state = random_model("attention").decoder.init_state(
        random_model("attention").encoder(*some_sources()), some_sources()[1]
    )
    rows = torch.tensor([2, 0, 0, 1])
    chosen = select_rows(state, rows)
    assert type(chosen) is type(state)
    assert torch.equal(chosen.enc_outputs, state.enc_outputs[rows])
    assert torch.equal(chosen.projected_keys, state.projected_keys[rows])
    assert torch.equal(chosen.enc_valid_lens, state.enc_valid_lens[rows])
    assert torch.equal(chosen.hidden_state, state.hidden_state[:, rows])
    beam = Beam(*torch.arange(12).view(4, 3, 1), None)
    assert select_rows(beam, rows[:1]).ids.tolist() == [[2]]
    assert select_rows(beam, rows).weights is None


def test_translate_takes_a_beam(trained):
    model, vocab = trained
    for penalty in (0.0, 1.0):
        found = translate(
            model, "one two three", vocab, vocab, beam_size=4, length_penalty=penalty
        )
        assert found.words == ["one", "two", "three"] and found.tokens[-1] == EOS
        if found.attention_weights is not None:
            assert found.attention_weights.shape == (4, 4)
    sentences = [["two", "three"], ["one"], ["five", "four", "six"]]
    results = translate_tokens(
        model, sentences, vocab, vocab, batch_size=2, beam_size=3
    )
    assert [r.words for r in results] == sentences
    cut = translate(model, "one two three", vocab, vocab, max_steps=2, beam_size=3)
    assert len(cut.tokens) <= 2


@pytest.mark.parametrize(
    "options, message",
    [
        ({"beam_size": 0}, "beam_size must be a whole number from 1, got 0"),
        ({"beam_size": 2.0}, "beam_size must be a whole number"),
        ({"beam_size": 2, "max_steps": 0}, "max_steps must be a whole number from 1"),
        ({"beam_size": 2, "length_penalty": -1}, "at least 0 and finite, got -1"),
        ({"beam_size": 2, "length_penalty": float("nan")}, "at least 0 and finite"),
    ],
)
def test_a_search_that_can_not_be_run(options, message):
    source, lens = some_sources()
    with pytest.raises(ValueError, match=message):
        beam_search(random_model("attention"), source, lens, **options)
    vocab = Vocab([["one"]], "en")
    model = build_model("attention", len(vocab), len(vocab), 4, 4)
    with pytest.raises(ValueError, match=message):
        translate(model, "one", vocab, vocab, **options)


def test_rows_that_do_not_fit_the_beam_get_a_clear_error():
    three = torch.zeros(3)
    beam = Beam(torch.full((3, 1), BOS_ID), three, three.long(), three > 0, None)
    with pytest.raises(ValueError, match="beam_size = 2 rows.*got 3 rows"):
        extend_beam(beam, torch.zeros(3, TINY), None, beam_size=2)
