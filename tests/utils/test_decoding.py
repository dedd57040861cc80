"""Greedy decoding, beam search, exact search and translate."""

import math
from itertools import product
from types import SimpleNamespace

import pytest
import torch
from helpers import refusals
from helpers.models import every_model, random_model

from utils.decoding import (
    MAX_SOURCE,
    beam_search,
    exact_search,
    greedy_decode,
    translate,
    translate_tokens,
)
from utils.models import build_model
from utils.seq2seq import FixedState
from utils.text import BOS_ID, EOS, EOS_ID, PAD_ID, UNK, UNK_ID, Vocab

WORDS = "one two three four five six".split()
VOCAB = Vocab([WORDS], "en")
TINY = 6  # words in the vocabulary of random models: four special ones and two
WRITTEN = [EOS_ID, UNK_ID, 4, 5]  # all but <pad> and <bos>
WIDE = len(WRITTEN) ** 3  # a beam that keeps every hypothesis of three words
SOURCES = torch.tensor([[5, 3, 4, 4], [4, 5, 3, 0], [3, 5, 0, 0]])
LENS = torch.tensor([4, 3, 2])
ONE = torch.full((1, TINY), 4), torch.tensor([TINY])  # a sentence, for `chain`


def alone():
    """Each sentence as a batch of its own, without padding."""
    return [(SOURCES[b : b + 1, :n], LENS[b : b + 1]) for b, n in enumerate(LENS)]


def written(ids):
    """A row of ids up to <eos>, or all of them; nothing but padding follows."""
    ids = ids.tolist()
    end = ids.index(EOS_ID) + 1 if EOS_ID in ids else len(ids)
    assert not {PAD_ID, BOS_ID} & set(ids[:end]) and set(ids[end:]) <= {PAD_ID}
    return ids[:end]


@torch.no_grad()
def forced(model, source, lens, hypotheses):
    """Log-probabilities of one sentence's translations, given whole, and weights."""
    N, T = len(hypotheses), max(map(len, hypotheses))
    words = torch.tensor([[*h, *[PAD_ID] * (T - len(h))] for h in hypotheses])
    inputs = torch.cat((torch.full((N, 1), BOS_ID), words[:, :-1]), dim=1)
    scores, state = model(source.expand(N, -1), inputs, lens.expand(N))
    steps = scores.double().log_softmax(-1).gather(2, words.unsqueeze(2)).squeeze(2)
    sums = [row[: len(h)].sum() for row, h in zip(steps, hypotheses, strict=True)]
    return torch.stack(sums), getattr(state, "attention_weights", None)


def close(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=0, check_dtype=False)


# --- Greedy and beam, against their specifications --------------------------------


@torch.no_grad()
def greedy_by_loops(model, source, lens, max_steps):
    """The specification: one sentence, one word at a time."""
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    ids, word = [], BOS_ID
    while len(ids) < max_steps and word != EOS_ID:
        scores, state = model.decoder(torch.tensor([[word]]), state)
        word = max(WRITTEN, key=lambda v: scores[0, 0, v].item())
        ids.append(word)
    return ids


@every_model
def test_greedy_and_a_beam_of_one_equal_a_plain_loop(name):
    for seed in range(2):
        model = random_model(name, TINY, seed=seed)
        ids, weights = greedy_decode(model, SOURCES, LENS, 7)
        found = beam_search(model, SOURCES, LENS, 1, 7, length_penalty=1.0)
        assert torch.equal(found[0], ids) and (weights is None) == ("fixed" in name)
        for b, one in enumerate(alone()):
            assert written(ids[b]) == greedy_by_loops(model, *one, 7)
            T = len(written(ids[b]))
            if weights is not None:
                torch.testing.assert_close(found[2][b, :T], weights[b, :T])
                assert not weights[b, T:].any()


@every_model
def test_a_beam_that_keeps_everything_is_exhaustive(name):
    threes = product(WRITTEN, repeat=3)  # some end before
    hypotheses = sorted({w[: (*w, EOS_ID).index(EOS_ID) + 1] for w in threes})
    lengths = torch.tensor(list(map(len, hypotheses)))
    for seed in range(2):
        model = random_model(name, TINY, seed=seed)
        for length_penalty, n in ((0.0, 1), (0.6, 1), (0.6, 4)):
            found = beam_search(model, SOURCES, LENS, WIDE, 3, length_penalty, n)
            for b, one in enumerate(alone()):
                log_probs, _ = forced(model, *one, hypotheses)
                best = (log_probs / lengths**length_penalty).topk(n).indices
                rows = slice(b * n, (b + 1) * n)
                words = [tuple(written(ids)) for ids in found[0][rows]]
                assert words == [hypotheses[i] for i in best]
                close(found[1][rows], log_probs[best])


@every_model
def test_score_and_weights_are_those_of_the_words_returned(name):
    """So the states moved with their hypotheses; and no sentence meets another."""
    for seed, beam_size, penalty in ((0, 2, 0.0), (1, 5, 1.0), (2, 3, 1.0)):
        model = random_model(name, TINY, seed=seed)
        sizes = beam_size, 6, penalty
        ids, log_probs, weights = beam_search(model, SOURCES, LENS, *sizes)
        for b, one in enumerate(alone()):
            words, length = written(ids[b]), LENS[b]
            expected, seen = forced(model, *one, [words])
            close(log_probs[b], expected[0])
            if weights is not None:
                close(weights[b, : len(words), :length], seen[0])
                assert not weights[b, : len(words), length:].any()
            by_itself, _, _ = beam_search(model, *one, *sizes)
            assert written(by_itself[0]) == words


def test_exact_search_finds_the_best_of_all_or_says_that_not_all_were_seen():
    """And fewer than 1 / p beginnings of one length go through the decoder."""
    cap, better, rows = 3, 0, []
    words = [word for word in WRITTEN if word != EOS_ID]
    every = [(*w, EOS_ID) for n in range(cap) for w in product(words, repeat=n)]
    for seed in range(120):
        model = random_model("attention", TINY, seed=seed)
        one = torch.tensor([[4, 5, 3][: 1 + seed % 3]]), torch.tensor([1 + seed % 3])
        greedy, bound, _ = beam_search(model, *one, 1, cap)
        if EOS_ID not in greedy:
            continue
        best, i = forced(model, *one, every)[0].max(dim=0)
        model.decoder.register_forward_hook(lambda _, X, out: rows.append(len(X[0])))
        rows.clear()
        for part in (1, 200):  # one beginning at a time; all of one length
            ids, found, certain = exact_search(model, *one, 10**4, 1, cap, part)
            assert certain and tuple(ids.tolist()) == every[i]
            assert found == pytest.approx(best.item(), abs=1e-4)
        assert max(rows) <= 1 / bound.exp()
        assert PAD_ID not in exact_search(model, *one, 10**4, 2, cap)[0]
        better += ids.tolist() != greedy[0].tolist()
        ids, found, certain = exact_search(model, *one, 0, 1, cap)
        assert torch.equal(ids, greedy[0]) and (found, certain) == (bound.item(), False)
    assert better > 0


def test_all_of_the_n_best_have_ended():
    """Long before the cap, and though the best one ends first."""
    model = random_model("attention", TINY, seed=2)
    ids, _, _ = beam_search(model, SOURCES, LENS, 4, 60, 0.0, 3)
    assert ids.shape[1] < 60 and len(ids) == 3 * len(SOURCES)
    assert all(EOS_ID in row for row in ids.tolist())


def chain(table):
    """A model whose next word depends on the last word alone: {word: {word: p}}."""
    scores = torch.full((TINY, TINY), -torch.inf)
    for last in range(TINY):
        for word, p in table.get(last, {EOS_ID: 1.0}).items():
            scores[last, word] = math.log(p)

    def decoder(X, state):
        decoder.calls += 1
        return scores[X], state

    decoder.calls, nothing = 0, lambda *given: None
    decoder.init_state = lambda *given: FixedState(torch.zeros(1), torch.zeros(1, 1))
    return SimpleNamespace(decoder=decoder, encoder=nothing, eval=nothing)


A, B = 4, 5
SHORT_OR_LONG = {BOS_ID: {EOS_ID: 0.4, A: 0.6}, A: {B: 0.6, EOS_ID: 0.3, A: 0.1}}
CERTAIN = {BOS_ID: {EOS_ID: 0.9, A: 0.1}, A: {A: 0.9, EOS_ID: 0.1}}
ENDLESS = {BOS_ID: {EOS_ID: 0.4, A: 0.6}, A: {A: 1.0}}


@pytest.mark.parametrize(
    "table, beam_size, penalty, cap, length, probability, calls",
    [
        (SHORT_OR_LONG, 2, 0.0, 5, 1, 0.4, 2),  # kept while the other went on
        (SHORT_OR_LONG, 2, 1.0, 5, 3, 0.36, 3),  # ln .36 / 3 > ln .4 / 1
        (CERTAIN, 2, 0.0, 50, 1, 0.9, 1),  # it stops when nothing can change
        (ENDLESS, 2, 1.0, 12, 12, 0.6, 12),  # not while a longer one can win
    ],
)
def test_what_wins_by_hand(table, beam_size, penalty, cap, length, probability, calls):
    model = chain(table)
    ids, log_probs, _ = beam_search(model, *ONE, beam_size, cap, penalty)
    assert log_probs.exp().item() == pytest.approx(probability)
    assert (model.decoder.calls, len(written(ids[0]))) == (calls, length)


def test_log_probabilities_are_summed_in_float64():
    table = {BOS_ID: {A: 0.7, EOS_ID: 0.3}, A: {A: 0.7, EOS_ID: 0.3}}
    scores = torch.tensor([math.log(0.7), math.log(0.3)])  # a model's are float32
    _, log_probs, _ = beam_search(chain(table), *ONE, 1, 60)
    expected = 60 * scores.log_softmax(0)[0].item()  # exactly: no sum has rounded
    assert log_probs[0].item() == pytest.approx(expected, rel=1e-13)


searches = pytest.mark.parametrize(
    "search",
    [greedy_decode, lambda *given: beam_search(*given, 3)[::2]],
    ids=["greedy", "beam"],
)


@searches
def test_without_an_end_there_are_twice_the_words_and_ten(search):
    model = random_model("attention", TINY)
    with torch.no_grad():
        model.decoder.dense.bias[EOS_ID] = -1e9
        assert search(model, SOURCES, LENS)[0].shape == (3, 2 * 4 + 10)
        model.decoder.dense.bias[A] = torch.inf
    with pytest.raises(ValueError, match="best logits of the next word are NaN or inf"):
        search(model, SOURCES, LENS)


@searches
def test_dropout_is_off_and_no_graph_is_made(search):
    model, graph = build_model("attention", TINY, TINY, 8, 8, 2, dropout=0.5), []
    model.decoder.register_forward_hook(
        lambda *_: graph.append(torch.is_grad_enabled())
    )
    first, second = (search(model.train(), SOURCES, LENS) for _ in range(2))
    assert all(map(torch.equal, first, second))
    assert not model.training and set(graph) == {False}


# --- translate --------------------------------------------------------------------


@pytest.mark.parametrize("beam_size", [1, 3])
def test_each_sentence_gets_its_own_translation_in_the_order_given(beam_size):
    sentences = [[*WORDS[:n], "zebra"] for n in (4, 1, 2, 0, 3)] + [[UNK]]
    model = random_model("attention", len(VOCAB), seed=43)
    options = {"beam_size": beam_size, "max_steps": 6, "length_penalty": 1.0}
    found = translate_tokens(model, sentences, VOCAB, VOCAB, batch_size=4, **options)
    for words, translation in zip(sentences, found, strict=True):
        source = torch.tensor([[*VOCAB[words], EOS_ID]])
        one = source, torch.tensor([source.shape[1]])
        ids, _, weights = beam_search(model, *one, beam_size, 6, 1.0)
        assert translation.tokens == VOCAB.to_tokens(written(ids[0]))
        assert translation.source_tokens == [*words, EOS]
        close(translation.attention_weights, weights[0, : len(translation.tokens)])
        assert translation.unknown == [w for w in words if w in ("zebra", UNK)]
        assert translation.words == [w for w in translation.tokens if w != EOS]
        assert translation.text == VOCAB.decode(ids[0])
    ends = [translation.tokens[-1] == EOS for translation in found]
    assert any(ends) and not all(ends)  # the limit drops no word
    text = "One two zebra"
    assert translate(model, text, VOCAB, VOCAB, **options).text == found[2].text
    assert translate(model, [text], VOCAB, VOCAB, **options)[0].text == found[2].text
    assert translate(model, [], VOCAB, VOCAB, **options) == []


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_copied_word_beyond_the_vocabulary_is_the_source_s(beam_size):
    vocab = Vocab([WORDS], "en", extends=True)
    model = random_model("pointer", len(vocab))
    torch.nn.init.constant_(model.decoder.gate.bias, -99.0)  # it never writes
    texts = ["rosa sees max .", "felix sees two .", "adam"]
    options = {"batch_size": 2, "beam_size": beam_size, "length_penalty": 10}
    for text, found in zip(
        texts, translate(model, texts, vocab, vocab, **options), strict=True
    ):
        assert {*found.words} and {*found.words} <= {*text.split()}


def test_a_sentence_that_has_ended_costs_nothing():
    model, rows = random_model("attention", TINY, seed=43), []
    model.decoder.register_forward_hook(lambda _, X, out: rows.append(len(X[0])))
    ids, _ = greedy_decode(model, SOURCES, LENS)
    sizes = [len(written(row)) for row in ids]
    assert rows == [sum(n > t for n in sizes) for t in range(max(sizes))]
    assert len(set(rows)) > 1


def tell(text, source=VOCAB, target=VOCAB, **options):
    model = random_model("attention", len(VOCAB))
    return translate(model, text, source, target, **options)


def search(**options):
    return beam_search(random_model("attention", TINY), SOURCES, LENS, **options)


SMALL, LARGE = Vocab([WORDS[1:]], "en"), Vocab([[*WORDS, "seven"]], "en")
NO_TEXT, NO_PENALTY = "text as a string, got", "at least 0 and finite, got"


test_what_can_not_be_translated = refusals(
    (lambda: tell(" \n\t"), "nothing to translate"),
    (lambda: tell(None), TypeError, f"{NO_TEXT} None"),
    (lambda: tell(["one", 2]), TypeError, f"{NO_TEXT} 2"),
    (lambda: tell("one " * (MAX_SOURCE + 1)), "201 words.*split a longer"),
    (lambda: tell([["one"], []]), "sentence 1 has no word"),
    (lambda: translate_tokens(None, ["two"], VOCAB, VOCAB), TypeError, "a list of"),
    (lambda: tell("one", source=SMALL), "source vocabulary has 9 words.*for 10"),
    (lambda: tell("one", target=LARGE), "target vocabulary has 11 words.*for 10"),
    (lambda: tell("one", batch_size=0), "batch_size must be a whole number"),
    (lambda: tell("one", max_steps=0), "max_steps must be a whole number"),
    (lambda: tell("one", beam_size=0), "beam_size must be a whole number"),
    (lambda: tell("one", n_best=0), "n_best must be a whole number"),
    (lambda: tell("one", beam_size=2, n_best=3), "3, and a beam of 2 has no more"),
    (lambda: tell("one", length_penalty=math.nan), NO_PENALTY),
    (lambda: tell("one", length_penalty=-1), f"{NO_PENALTY} -1"),
    (lambda: search(beam_size=2, length_penalty=10.1), f"{NO_PENALTY} 10.1"),
)


def test_the_last_numbers_that_are_allowed():
    search(beam_size=2, max_steps=1, length_penalty=10)
    assert tell("one " * MAX_SOURCE, max_steps=1).source_tokens[-2:] == ["one", EOS]
