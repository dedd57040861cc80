"""Greedy decoding, beam search and translate."""

import math
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from helpers.models import CATALOGUE, random_model

from utils import decoding
from utils.data import BatchLoader, Pair
from utils.decoding import (
    MAX_SOURCE,
    beam_search,
    greedy_decode,
    translate,
    translate_tokens,
)
from utils.models import build_model
from utils.subwords import SubwordVocab
from utils.text import BOS_ID, EOS, EOS_ID, PAD_ID, UNK, UNK_ID, Vocab
from utils.training import Trainer

WORDS = "one two three four five six".split()
VOCAB = Vocab([WORDS], "en")
TINY = 6  # words in the vocabulary of random models: four special ones and two
WRITTEN = [EOS_ID, UNK_ID, 4, 5]  # all but <pad> and <bos>
WIDE = len(WRITTEN) ** 3  # a beam that keeps every hypothesis of three words
QUICK = "attention", "fixed", "luong", "coverage", "transformer", "RNNsearch"
each_kind = pytest.mark.parametrize(
    "kind",
    [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in CATALOGUE],
)


@pytest.fixture(scope="module")
def trained():
    """A model that has learnt to copy, well enough to end its sentences."""
    generator = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(300):
        size = int(torch.randint(1, 5, (), generator=generator))
        places = torch.randint(0, 6, (size,), generator=generator)
        words = tuple(WORDS[i] for i in places)
        pairs.append(Pair(words, words))
    torch.manual_seed(0)
    model = build_model("attention", len(VOCAB), len(VOCAB), 16, 32)
    loader = BatchLoader(pairs, VOCAB, VOCAB, 32)
    Trainer(model, loader, 20, lr=1e-2).fit(progress=False)
    return model


def some_sources(B=3, S=4):
    torch.manual_seed(1)
    return torch.randint(3, TINY, (B, S)), torch.tensor([S - b for b in range(B)])


def alone(source, lens):
    """Each sentence as a batch of its own, without padding."""
    for b, length in enumerate(lens):
        yield source[b : b + 1, :length], lens[b : b + 1]


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


def every_hypothesis(max_steps):
    """All that a search may return: ended by <eos>, or cut at the cap."""
    unfinished = [[]]
    for _ in range(max_steps):
        grown = [[*words, word] for words in unfinished for word in WRITTEN]
        yield from (words for words in grown if words[-1] == EOS_ID)
        unfinished = [words for words in grown if words[-1] != EOS_ID]
    yield from unfinished


@each_kind
def test_greedy_and_a_beam_of_one_equal_a_plain_loop(kind):
    for seed in range(4):
        model = random_model(kind, TINY, seed=seed)
        source, lens = some_sources()
        ids, weights = greedy_decode(model, source, lens, 7)
        found = beam_search(model, source, lens, 1, 7, length_penalty=1.0)
        assert torch.equal(found[0], ids) and (weights is None) == ("fixed" in kind)
        for b, one in enumerate(alone(source, lens)):
            assert written(ids[b]) == greedy_by_loops(model, *one, 7)
            T = len(written(ids[b]))
            if weights is not None:
                torch.testing.assert_close(found[2][b, :T], weights[b, :T])
                assert not weights[b, T:].any()


@each_kind
def test_a_beam_that_keeps_everything_is_exhaustive(kind):
    hypotheses, better = list(every_hypothesis(3)), 0
    lengths = torch.tensor(list(map(len, hypotheses)))
    for seed in range(8):
        model = random_model(kind, TINY, seed=seed)
        source, lens = some_sources()
        greedy = beam_search(model, source, lens, 1, 3)[1]
        for length_penalty in (0.0, 0.6):
            found = beam_search(model, source, lens, WIDE, 3, length_penalty)
            for b, one in enumerate(alone(source, lens)):
                log_probs, _ = forced(model, *one, hypotheses)
                best = (log_probs / lengths**length_penalty).argmax()
                assert written(found[0][b]) == hypotheses[best]
                close(found[1][b], log_probs[best])
            if length_penalty == 0:
                assert (found[1] >= greedy - 1e-4).all()
                better += (found[1] > greedy + 1e-3).sum().item()
    assert better >= 1  # or all this would show nothing that greedy doesn't


@each_kind
def test_score_and_weights_are_those_of_the_words_returned(kind):
    """So the states moved with their hypotheses; and no sentence meets another."""
    for seed, beam_size, length_penalty in ((0, 2, 0.0), (1, 5, 1.0), (2, 3, 1.0)):
        model = random_model(kind, TINY, seed=seed)
        source, lens = some_sources()
        ids, log_probs, weights = beam_search(
            model, source, lens, beam_size, 6, length_penalty
        )
        for b, (row, length) in enumerate(alone(source, lens)):
            words = written(ids[b])
            expected, seen = forced(model, row, length, [words])
            close(log_probs[b], expected[0])
            if weights is not None:
                close(weights[b, : len(words), :length], seen[0])
                assert not weights[b, : len(words), length:].any()
            by_itself = beam_search(model, row, length, beam_size, 6, length_penalty)
            assert written(by_itself[0][0]) == words
            close(by_itself[1][0], log_probs[b])


class ChainState(NamedTuple):
    hidden_state: torch.Tensor  # (1, N, 1), unused
    attention_weights: torch.Tensor | None = None  # (N, 1, TINY)


def chain(table):
    """A model whose next word depends on the last word alone: {word: {word: p}}.

    Its state says which word was read, as a weight of 1; `attention_weights` of the
    decoder is another call's, as when two threads use one model.
    """
    scores = torch.full((TINY, TINY), -torch.inf)
    scores[:, EOS_ID] = 0.0  # after a word that the table doesn't have
    scores[list(table)] = -torch.inf
    for last, following in table.items():
        for word, p in following.items():
            scores[last, word] = math.log(p)

    def decoder(X, state):
        decoder.calls += 1
        return scores[X], state._replace(attention_weights=torch.eye(TINY)[X])

    decoder.calls, decoder.attention_weights = 0, torch.zeros(1, 1, TINY)
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
# The greedy path is dropped by two that look better and end worse.
WIDER_IS_WORSE = {
    BOS_ID: {A: 0.4, B: 0.35, UNK_ID: 0.25},
    A: {EOS_ID: 0.34, A: 0.33, UNK_ID: 0.33},
    B: {B: 0.5, UNK_ID: 0.5},
    UNK_ID: {A: 0.5, B: 0.5},
}
CERTAIN = {BOS_ID: {EOS_ID: 0.9, A: 0.1}, A: {A: 0.9, EOS_ID: 0.1}}
ENDLESS = {BOS_ID: {EOS_ID: 0.4, A: 0.6}, A: {A: 1.0}}


@pytest.mark.parametrize(
    ("table", "beam_size", "penalty", "cap", "words", "probability", "calls"),
    [
        (SHORT_OR_LONG, 1, 0.0, 5, [A, B, EOS_ID], 0.36, 3),
        (SHORT_OR_LONG, 2, 0.0, 5, [EOS_ID], 0.4, 2),  # kept while the other went on
        (SHORT_OR_LONG, 2, 1.0, 5, [A, B, EOS_ID], 0.36, 3),  # ln .36 / 3 > ln .4 / 1
        (SHORT_OR_LONG, 9, 1.0, 5, [A, B, EOS_ID], 0.36, 3),
        (WIDER_IS_WORSE, 1, 0.0, 3, [A, EOS_ID], 0.4 * 0.34, 2),
        (WIDER_IS_WORSE, 2, 0.0, 3, None, 0.35 * 0.5 * 0.5, 3),
        (CERTAIN, 2, 0.0, 50, [EOS_ID], 0.9, 1),  # it stops when nothing can change
        (ENDLESS, 2, 1.0, 12, [A] * 12, 0.6, 12),  # not while a longer one can win
    ],
)
def test_what_wins_by_hand(table, beam_size, penalty, cap, words, probability, calls):
    model, source = chain(table), some_sources(1, TINY)
    ids, log_probs, weights = beam_search(model, *source, beam_size, cap, penalty)
    assert log_probs.exp().item() == pytest.approx(probability)
    assert model.decoder.calls == calls
    if words:
        assert written(ids[0]) == words
        read = weights[0].argmax(dim=-1).tolist()  # the state's, not the decoder's
        assert read[: len(words)] == [BOS_ID, *words[:-1]]
    if beam_size == 1:
        assert torch.equal(greedy_decode(model, *source)[1], weights)


def test_log_probabilities_are_summed_in_float64():
    table = {BOS_ID: {A: 0.7, EOS_ID: 0.3}, A: {A: 0.7, EOS_ID: 0.3}}
    scores = torch.tensor([math.log(0.7), math.log(0.3)])  # a model's are float32
    _, log_probs, _ = beam_search(chain(table), *some_sources(1, TINY), 1, 60)
    expected = 60 * scores.log_softmax(0)[0].item()  # exactly: no sum has rounded
    assert log_probs[0].item() == pytest.approx(expected, rel=1e-13)


SEARCHES = {
    "greedy": lambda model, *source: greedy_decode(model, *source),
    "beam": lambda model, *source: beam_search(model, *source, 3)[::2],
}
searches = pytest.mark.parametrize("search", SEARCHES.values(), ids=SEARCHES)


@searches
@pytest.mark.parametrize("kind", ["attention", "fixed"])
def test_pad_and_bos_are_never_written(kind, search):
    """However much a model wants to; so every word has its row of weights."""
    model = random_model(kind, TINY)
    with torch.no_grad():
        model.decoder.dense.bias[[PAD_ID, BOS_ID]] = 50.0
        model.decoder.dense.bias[EOS_ID] = 9.0
    ids, weights = search(model, *some_sources())
    for b, row in enumerate(ids):
        T = len(written(row))  # asserts it
        if weights is not None:
            torch.testing.assert_close(weights[b, :T].sum(-1), torch.ones(T))


@searches
def test_without_an_end_there_are_twice_the_words_and_ten(search):
    model = random_model("attention", TINY)
    with torch.no_grad():
        model.decoder.dense.bias[EOS_ID] = -1e9
    assert search(model, *some_sources(S=4))[0].shape == (3, 2 * 4 + 10)


@searches
def test_dropout_is_off_and_no_graph_is_made(search):
    torch.manual_seed(0)
    model, graph = build_model("attention", TINY, TINY, 8, 8, 2, dropout=0.5), []
    model.decoder.register_forward_hook(
        lambda *_: graph.append(torch.is_grad_enabled())
    )
    ids, weights = search(model.train(), *some_sources())
    again, same = search(model.train(), *some_sources())
    assert torch.equal(ids, again) and torch.equal(weights, same)
    assert not model.training and set(graph) == {False}


@searches
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
def test_scores_without_a_best_are_refused(number, search):
    model = random_model("attention", TINY)
    with torch.no_grad():
        model.decoder.dense.bias[A] = number
    with pytest.raises(ValueError, match="best logits of the next word are NaN or inf"):
        search(model, *some_sources())


# --- translate --------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"beam_size": 4, "length_penalty": 1.0}])
def test_many_sentences_come_back_in_order_with_labels_that_fit(trained, options):
    sentences = [["two", "three"], ["one"], ["five", "four", "six"], ["one"]]
    before = [p.clone() for p in trained.parameters()]
    found = translate_tokens(trained, sentences, VOCAB, VOCAB, batch_size=2, **options)
    assert [t.words for t in found] == sentences
    assert [t.tokens for t in found] == [[*words, EOS] for words in sentences]
    assert [t.source_tokens for t in found] == [t.tokens for t in found]
    for t in found:
        assert t.attention_weights.shape == (len(t.tokens), len(t.source_tokens))
        close(t.attention_weights.sum(1), torch.ones(len(t.tokens)))
    assert all(map(torch.equal, before, trained.parameters()))
    assert translate_tokens(trained, [], VOCAB, VOCAB, **options) == []
    texts = ["One two THREE", "four!"]
    whole, other = translate(trained, texts, VOCAB, VOCAB, **options)
    assert whole.text.lower() == "one two three" and other.unknown == ["!"]
    assert translate(trained, texts[0], VOCAB, VOCAB, **options).text == whole.text
    cut = translate(trained, "one two three", VOCAB, VOCAB, max_steps=2, **options)
    assert cut.tokens == cut.words == ["one", "two"]  # the limit drops no word


def test_a_sentence_that_has_ended_costs_nothing(trained):
    rows = []
    handle = trained.decoder.register_forward_hook(lambda _, X, out: rows.append(X[0]))
    sentences = [["one"], ["two", "three"], ["six", "five", "four"]]
    translate_tokens(trained, sentences, VOCAB, VOCAB)
    handle.remove()
    assert [len(X) for X in rows] == [3, 3, 2, 1]  # steps, <eos> among them


def test_unknown_words_are_named_and_a_literal_unk_is_one():
    model = random_model("attention", len(VOCAB))
    words = ["one", "zebra", UNK]
    (found,) = translate_tokens(model, [words], VOCAB, VOCAB, max_steps=3)
    assert found.unknown == ["zebra", UNK] and found.source_tokens[:3] == words


@pytest.mark.parametrize(
    "call, given, error, message",
    [
        (translate, "", ValueError, "nothing to translate"),
        (translate, " \n\t", ValueError, "nothing to translate"),
        (translate, None, TypeError, "text as a string, got NoneType"),
        (translate, ["one", 2], TypeError, "text as a string, got int"),
        (translate, "one " * (MAX_SOURCE + 1), ValueError, "201 words.*split a longer"),
        (translate_tokens, "one two", TypeError, "expected a list of tokens"),
        (translate_tokens, [["one"], "two"], TypeError, "got the string 'two'"),
        (translate_tokens, [["one", 2]], TypeError, "list of words as strings"),
        (translate_tokens, [["one"], []], ValueError, "sentence 1 has no word"),
    ],
)
def test_what_can_not_be_translated(call, given, error, message):
    model = random_model("attention", len(VOCAB))
    with pytest.raises(error, match=message):
        call(model, given, VOCAB, VOCAB)
    assert translate(model, "one " * MAX_SOURCE, VOCAB, VOCAB, max_steps=1)


@pytest.mark.parametrize("side, extra", [("source", -1), ("target", 1)])
def test_vocabularies_of_another_size_are_refused(side, extra):
    """Also where every id would fit."""
    model = random_model("attention", len(VOCAB))
    other = Vocab([WORDS[:-1] if extra < 0 else [*WORDS, "seven"]], "en")
    vocabs = (other, VOCAB) if side == "source" else (VOCAB, other)
    message = f"{side} vocabulary has {len(VOCAB) + extra} words.*for {len(VOCAB)}"
    with pytest.raises(ValueError, match=message):
        translate(model, "one", *vocabs)


@pytest.mark.parametrize(
    "name, number",
    [("encoder.rnn.bias_hh_l0", -torch.inf), ("decoder.embedding.weight", torch.nan)],
)
def test_a_model_with_numbers_that_are_none_is_refused(name, number):
    """Even where the scores are finite: a gate saturates, a word isn't read."""
    model = random_model("attention", len(VOCAB))
    with torch.no_grad():
        model.get_parameter(name)[-1] = number
    with pytest.raises(ValueError, match=f"the numbers in {name} are NaN or infinite"):
        translate(model, "one", VOCAB, VOCAB)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"beam_size": 0}, "beam_size must be a whole number of at least 1, got 0"),
        ({"beam_size": 2, "max_steps": 0}, "max_steps must be a whole number"),
        ({"beam_size": 1, "max_steps": 0}, "max_steps must be a whole number"),
        ({"beam_size": 2, "length_penalty": -1}, "at least 0 and finite, got -1"),
        ({"beam_size": 2, "length_penalty": math.nan}, "at least 0 and finite"),
        ({"beam_size": 2, "length_penalty": 10.1}, "10 is the most"),
    ],
)
def test_a_search_that_can_not_be_run(options, message):
    model = random_model("attention", len(VOCAB))
    with pytest.raises(ValueError, match=message):
        beam_search(model, *some_sources(), **options)
    with pytest.raises(ValueError, match=message):
        translate(model, "one", VOCAB, VOCAB, **options)
    beam_search(model, *some_sources(), 1, 1, length_penalty=10)  # the last allowed


# --- subwords ---------------------------------------------------------------------

SNOW = [["snow", "snowboard", "boards", "ball", "snowball", ",", "a"]] * 4
APPLE = [["我", "爱", "吃", "苹果", "。"]] * 4


@pytest.fixture(scope="module")
def pieces():
    """Vocabularies of pieces: English and Chinese."""
    return SubwordVocab.train(SNOW, "en", 17), SubwordVocab.train(APPLE, "zh", 11)


def writing(monkeypatch, ids, sentence, *vocabs):
    """A translation whose decoder writes these ids, whatever it reads."""

    def decode(model, source, source_lens, max_steps):
        return torch.tensor([ids]), torch.zeros(1, len(ids), source.shape[1])

    monkeypatch.setattr(decoding, "greedy_decode", decode)
    found = translate(random_model("translator", *map(len, vocabs)), sentence, *vocabs)
    shape = len(found.tokens), len(found.source_tokens)
    assert found.attention_weights.shape == shape
    return found


def test_pieces_are_joined_to_words_and_text(pieces, monkeypatch):
    english, chinese = pieces
    words = ["a", "snowboard", ",", "boards"]
    ids = english[words]
    assert len(ids) > len(words)
    found = writing(monkeypatch, [*ids, EOS_ID, PAD_ID], "Snow!", english, english)
    assert found.words == words and found.text == "A snowboard, boards"
    assert found.tokens == [*english.to_tokens(ids), EOS]
    assert "".join(found.source_tokens[:-1]) == f"▁snow▁{UNK}"
    assert found.unknown == ["!"]
    ids = chinese[["我", "爱", "吃", "苹果", "。"]]  # no <eos>: cut
    found = writing(monkeypatch, ids, "a snowball", english, chinese)
    assert found.words == ["我", "爱", "吃", "苹", "果", "。"]
    assert found.text == "我爱吃苹果。" and EOS not in found.tokens
    found = writing(monkeypatch, ids[:1], "我爱吃苹果，Tom。", chinese, english)
    assert found.unknown == ["，", "tom"] and found.source_tokens[-1] == EOS
    whole = Vocab(SNOW, "en")  # whole words into pieces
    ids = [*english[["snowball"]], EOS_ID]
    found = writing(monkeypatch, ids, "a zebra", whole, english)
    assert found.source_tokens == ["a", "zebra", EOS]
    assert found.unknown == ["zebra"] and found.words == ["snowball"]


@pytest.mark.parametrize("kind", ["translator", "fixed translator"])
def test_sizes_agree_with_subwords(pieces, kind):
    english, chinese = pieces
    model, options = random_model(kind, *map(len, pieces)), {"max_steps": 9}
    sentences = [["snowboard"], ["a", "ball", ",", "boards"], ["zebra"]]
    results = translate_tokens(
        model, sentences, english, chinese, beam_size=3, **options
    )
    for words, found in zip(sentences, results, strict=True):
        assert len(found.source_tokens) == len(english[words]) + 1 > len(words) + 1
        assert found.words == chinese.to_words([chinese[t] for t in found.tokens])
        assert found.unknown == [word for word in words if word == "zebra"]
        weights = found.attention_weights
        assert (weights is None) == (kind == "fixed translator")
        if weights is not None:
            assert weights.shape == (len(found.tokens), len(found.source_tokens))


def test_the_limit_counts_pieces_and_stands_before_the_model(pieces):
    """One word without a space is as long as its pieces."""
    english, _ = pieces
    model = random_model("translator", len(english))
    model.encoder.register_forward_hook(lambda *_: pytest.fail("the model has read"))
    with pytest.raises(ValueError, match=r"sentence 0 has 3\d\d\d words, or pieces"):
        translate(model, "a" * 3001, english, english)
