"""Subword vocabularies: round trips, what is sampled, what is refused."""

import io
import math
import random
from collections import Counter

import pytest
import sentencepiece
from helpers import needs, tries
from hypothesis import given
from hypothesis import strategies as st

from utils.corpora import load_multi30k, load_tsv, load_village
from utils.data import BatchLoader, Pair
from utils.subwords import (
    SampledLoader,
    SubwordVocab,
    as_spelled,
    pieces_a_word,
    to_pieces,
    to_words,
)
from utils.text import BOS, EOS, EOS_ID, PAD, SPECIALS, UNK, UNK_ID, Vocab


@pytest.fixture(scope="module")
def village():
    """{lang: sentences of the training split}."""
    corpora = load_village("en", "fr"), load_village("en", "zh")
    texts = {"en": [pair.source for pair in corpora[0]["train"]]}
    for corpus in corpora:
        texts[corpus.target_lang] = [pair.target for pair in corpus["train"]]
    return texts


@pytest.fixture(scope="module")
def vocabs(village):
    """{lang: vocabulary}; 2,000 sentences have every character of the corpus."""
    sizes = {"en": 250, "fr": 250, "zh": 500}
    return {
        lang: SubwordVocab.train(village[lang][:2000], lang, size)
        for lang, size in sizes.items()
    }


def require_round_trip(vocab, sentences):
    """words -> ids -> words; Chinese comes back by character."""
    for words in sentences:
        ids = vocab[list(words)]
        assert UNK_ID not in ids
        assert to_words(vocab.to_tokens(ids), vocab) == as_spelled(words, vocab)
        if vocab.lang == "zh":
            assert "".join(as_spelled(words, vocab)) == "".join(words)
        else:
            assert as_spelled(words, vocab) == list(words)


# --- words, pieces, ids -----------------------------------------------------------


@pytest.mark.parametrize("lang", ["en", "fr", "zh"])
def test_every_word_of_the_village_comes_back(village, vocabs, lang):
    words = sorted({word for sentence in village[lang] for word in sentence})
    require_round_trip(vocabs[lang], [[word] for word in words])
    require_round_trip(vocabs[lang], village[lang][-500:])  # and so do sentences
    assert all(word in vocabs[lang] for word in words)


@needs("multi30k")
@pytest.mark.parametrize("lang, other", [("de", "en"), ("en", "de")])
def test_every_word_of_multi30k_comes_back(lang, other):
    corpus = load_multi30k(lang, other)
    words, held_out = (
        sorted({word for pair in corpus[split] for word in pair.source})
        for split in ("train", "valid")
    )
    vocab = SubwordVocab.train([[word] for word in words], lang, 3000)
    require_round_trip(vocab, [[word] for word in words])
    new = [word for word in held_out if word not in set(words)]
    assert len(new) > 100  # whole words would be <unk> ...
    assert sum(word in vocab for word in new) > 0.99 * len(new)  # ... pieces write them


@needs("tatoeba/cmn.txt")
def test_every_sentence_of_tatoeba_comes_back():
    corpus = load_tsv("tatoeba/cmn.txt", "en", "zh", skip_bad_lines=True)
    english, chinese = zip(*(pair[:2] for pair in corpus["train"][:4000]), strict=True)
    require_round_trip(SubwordVocab.train(english, "en", 1000), english)
    require_round_trip(SubwordVocab.train(chinese, "zh", 2500), chinese)


def test_chinese_is_cut_alike_segmented_or_not_and_latin_words_stay_apart(vocabs):
    vocab = vocabs["zh"]
    assert vocab[["老师", "的", "帽子"]] == vocab[list("老师的帽子")]
    assert to_words(to_pieces(["老师", "的"], vocab), vocab) == ["老", "师", "的"]
    words = ["我", "爱", "tom", "hanks", "10,000", "次", "。"]
    vocab = SubwordVocab.train([words] * 3, "zh", 20)
    assert as_spelled(words, vocab) == words
    require_round_trip(vocab, [words])


def test_the_pieces_come_from_the_training_text_alone():
    vocab = SubwordVocab.train([["ab", "abab"], ["ba"]] * 5, "en", 9)
    assert tuple(vocab.idx_to_token[:4]) == SPECIALS and len(vocab) == 9
    assert {c for piece in vocab.idx_to_token[4:] for c in piece} == {"▁", "a", "b"}
    assert "babba" in vocab and "cab" not in vocab


def test_unknown_characters_become_unk(vocabs):
    vocab = vocabs["en"]
    pieces = to_pieces(["the", "ñandú"], vocab)
    assert pieces[:2] == ["▁the", "▁"] and pieces.count(UNK) == 2
    assert "ñandú" not in vocab and "the" in vocab
    assert to_words(pieces, vocab) == ["the", f"{UNK}and{UNK}"]
    assert to_words(["▁我", UNK, "b", EOS], vocabs["zh"]) == ["我", UNK, "b"]


def test_the_name_of_a_special_in_a_sentence_is_an_unknown_word(vocabs):
    """Though these pieces could spell it; in Chinese it is read, and not left out."""
    vocab = SubwordVocab.train([list("<>padbosunke")] * 9, "en", 18)
    for name in SPECIALS:
        assert name not in vocab and name[:-1] in vocab
        assert vocab[[name]] == vocab.sample([name], random.Random(0), 1.0) == [UNK_ID]
        assert vocab[["a", name]] == [*vocab[["a"]], UNK_ID]
        assert to_pieces([name], vocab) == [UNK]
        ids = vocabs["zh"][["我", name, "爱"]]
        assert min(ids) == UNK_ID and len(ids) > len(vocabs["zh"][["我", "爱"]])


def test_vocabs_are_equal_that_cut_alike(village, vocabs):
    english = vocabs["en"]
    assert SubwordVocab(english.model, "en") == english
    assert SubwordVocab(english.model, "fr") != english != vocabs["fr"]
    other = SubwordVocab.train(village["en"][:1000], "en", 250)
    assert other != english and len(other) == len(english)
    assert english != Vocab.from_tokens(english.idx_to_token, "en")


def test_it_has_the_interface_of_vocab(vocabs):
    vocab = vocabs["en"]
    ids = vocab[["the", "baker"]]
    assert vocab["▁the"] == ids[0] and vocab["no piece"] == UNK_ID
    assert vocab.to_tokens(ids[0]) == "▁the"
    assert vocab.to_tokens([[ids[0]], [EOS_ID]]) == [["▁the"], [EOS]]
    assert len(vocab) == len(vocab.idx_to_token) == 250
    for idx in (250, -1):
        with pytest.raises(IndexError, match=f"id {idx} is outside .*: 0 to 249"):
            vocab.to_tokens([idx])


def test_specials_are_left_out_of_the_words(vocabs):
    words = Vocab([["one", "two"]], "en")
    assert to_words([BOS, "one", UNK, EOS, PAD], words) == ["one", UNK]
    assert to_words([BOS, "▁ba", "ker", EOS, PAD], vocabs["en"]) == ["baker"]
    assert to_pieces(("one", "zebra"), words) == ["one", "zebra"]
    assert pieces_a_word(("one", "zebra"), words) == [1, 1]
    assert as_spelled(("老师",), words) == ["老师"]


def test_the_same_text_gives_the_same_model_in_silence(village, capfd):
    models = [SubwordVocab.train(village["fr"][:300], "fr", 120).model for _ in "ab"]
    assert models[0] == models[1]
    assert capfd.readouterr() == ("", "")


# --- sampling ---------------------------------------------------------------------


def every_way(vocab, word):
    """The specification: all cuts into pieces, with their log-probabilities."""
    model = sentencepiece.SentencePieceProcessor(model_proto=vocab.model)
    score = {p: model.get_score(i) for i, p in enumerate(vocab.idx_to_token)}

    def cuts(rest):
        if not rest:
            yield []
        for end in range(1, len(rest) + 1):
            if rest[:end] in score:
                yield from ([rest[:end], *cut] for cut in cuts(rest[end:]))

    ways = {tuple(cut): sum(score[piece] for piece in cut) for cut in cuts(f"▁{word}")}
    return sorted(ways.items(), key=lambda way: -way[1])


def draws(vocab, word, alpha, n=4000):
    rng = random.Random(1)
    cuts = (vocab.to_tokens(vocab.sample([word], rng, alpha)) for _ in range(n))
    return Counter(map(tuple, cuts))


@pytest.mark.parametrize("word", ["kitchen", "children"])
def test_ways_are_drawn_by_their_probability_to_the_power_alpha(vocabs, word):
    ways = every_way(vocabs["en"], word)[: SubwordVocab.ways_a_word]
    assert len(ways) == 8
    counts = draws(vocabs["en"], word, alpha=0.1)

    def chi_square(alpha):
        shares = {way: math.exp(alpha * log_prob) for way, log_prob in ways}
        expected = {
            w: 4000 * share / sum(shares.values()) for w, share in shares.items()
        }
        assert min(expected.values()) > 20 and counts.keys() <= expected.keys()
        return sum((counts[way] - n) ** 2 / n for way, n in expected.items())

    limit = 24.3  # chi-square of 7 degrees of freedom is above it once in 1000
    assert chi_square(0.1) < limit < chi_square(0.13)  # so another power is noticed


def test_the_power_decides_between_the_best_way_and_many(vocabs):
    vocab = vocabs["en"]
    best = tuple(to_pieces(["kitchen"], vocab))
    assert draws(vocab, "kitchen", alpha=100.0) == {best: 4000}
    even = draws(vocab, "kitchen", alpha=0.0)
    assert len(even) == 8 and min(even.values()) > 400  # 500 each


@pytest.mark.parametrize("lang", ["en", "fr", "zh"])
def test_every_sampled_cut_spells_the_words(village, vocabs, lang):
    vocab, sentences = vocabs[lang], village[lang][:200]

    def sampled(seed):
        rng = random.Random(seed)
        return [vocab.sample(words, rng, 0.1) for words in sentences]

    other = 0
    for words, ids in zip(sentences, sampled(0), strict=True):
        assert to_words(vocab.to_tokens(ids), vocab) == as_spelled(words, vocab)
        other += ids != vocab[list(words)]
    assert other > 20
    assert sampled(3) == sampled(3) != sampled(4)  # the generator alone decides


def test_byte_pairs_cut_in_one_way_and_nothing_is_drawn(village, vocabs, capfd):
    """The most frequent pair is joined first (Sennrich et al., 2016)."""
    words = [["abab", "ab", "ac"]] * 3  # "a b" is the most frequent pair
    joined = SubwordVocab.train(words, "en", 10, at_most=True, model_type="bpe")
    assert "ab" in [piece.removeprefix("▁") for piece in joined.idx_to_token]
    vocab = SubwordVocab.train(village["en"][:2000], "en", 250, model_type="bpe")
    assert len(vocab) == 250 and vocab != vocabs["en"]
    assert SubwordVocab(vocab.model, "en") == vocab
    require_round_trip(vocab, village["en"][-200:])
    with pytest.raises(ValueError, match="byte pairs cut a word in one way only"):
        vocab.sample(["kitchen"], random.Random(0), 0.5)
    assert capfd.readouterr() == ("", "")


# --- batches ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def pairs(village):
    sides = zip(village["en"][:60], village["fr"][:60], strict=True)
    return [Pair(*both) for both in sides]


def columns(loader, k):
    return [[column.tolist() for column in batch] for batch in loader.epoch(k)]


def test_each_epoch_is_cut_anew_by_seed_and_epoch(pairs, vocabs):
    def loader(seed=1):
        return SampledLoader(pairs, vocabs["en"], vocabs["fr"], 16, seed, 0.1)

    first = loader()
    zero, one = columns(first, 0), columns(first, 1)
    assert zero != one and len(zero) == len(one) == len(first) == 4
    assert columns(first, 0) == zero and columns(loader(), 1) == one
    assert columns(loader(2), 0) != zero
    side_by_side = first.epoch(0), first.epoch(1)  # neither disturbs the other
    batches = list(zip(*side_by_side, strict=True))
    assert [[c.tolist() for c in batch] for batch, _ in batches] == zero


def spelled(rows, vocab):
    """The sentences of a column of a batch, in words."""
    return sorted(tuple(to_words(vocab.to_tokens(row), vocab)) for row in rows)


def test_the_sentences_of_an_epoch_are_the_pairs(pairs, vocabs):
    source = vocabs["en"]
    words = Vocab([pair.target for pair in pairs], "fr")
    [batch] = SampledLoader([Pair([PAD], [EOS])], source, words, 1, 0, 0.1).epoch(0)
    assert batch.source.tolist() == batch.target_out.tolist() == [[UNK_ID, EOS_ID]]
    for target in (vocabs["fr"], words):
        loader = SampledLoader(pairs, source, target, 100, 0, 0.1)
        [batch] = loader.epoch(5)
        assert spelled(batch.source, source) == sorted(tuple(p.source) for p in pairs)
        written = spelled(batch.target_out, target)
        assert written == sorted(tuple(p.target) for p in pairs)
    best = next(iter(BatchLoader(pairs, source, target, 100, shuffle=False)))
    assert batch.source_lens.sum() > best.source_lens.sum()  # it isn't always the best
    lens = [sorted(next(loader.epoch(k)).source_lens.tolist()) for k in (0, 1)]
    assert lens[0] != lens[1]  # cut anew, and not only in another order


# --- what is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    "sentences, size, message",
    [
        ([["a", "b"]] * 3, 3000, r"don't give 3000 pieces: .*too high \(3000\)"),
        (
            [list("abcdefghij")] * 3,
            8,
            "don't give 8 pieces: its characters alone need 15",
        ),
        ([["a"]], 4, r"of at least 5 \(there are 4 special tokens\), got 4"),
        ([["a"]], 9.5, "size must be a whole number of at least 5"),
        ([], 30, "no text to learn pieces from"),
        ([[]], 30, "no text to learn pieces from"),
    ],
)
def test_a_size_that_does_not_fit(sentences, size, message, capfd):
    with pytest.raises(ValueError, match=message) as error:
        SubwordVocab.train(sentences, "en", size)
    assert "src/" not in str(error.value)  # no line of somebody else's source
    assert capfd.readouterr() == ("", "")


def test_what_is_no_model_or_no_words(vocabs, capfd):
    for data in (b"", b"no model", vocabs["en"].model[:-100]):
        with pytest.raises(ValueError, match=f"these {len(data)} bytes are no"):
            SubwordVocab(data, "en")
    with pytest.raises(ValueError, match="unknown language 'x'"):
        SubwordVocab(vocabs["en"].model, "x")
    with pytest.raises(TypeError, match="expected a list of tokens"):
        SubwordVocab.train(["a string"], "en", 30)
    assert capfd.readouterr() == ("", "")


def test_a_model_with_other_specials_is_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b ab ba"] * 4),
        model_writer=model,
        vocab_size=7,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(ValueError, match="begins with <pad>, .*this one with <unk>"):
        SubwordVocab(model.getvalue(), "en")


ANY_TEXT = st.text(st.characters(categories=["L", "N", "P", "M", "S"]), min_size=1)


@tries
@given(words=st.lists(ANY_TEXT | st.sampled_from(SPECIALS)))
def test_any_words_have_ids_and_no_error(vocabs, words):
    for vocab in vocabs.values():
        for ids in (vocab[words], vocab.sample(words, random.Random(0), 0.1)):
            assert all(UNK_ID <= i < len(vocab) for i in ids)
            assert isinstance(to_words(vocab.to_tokens(ids), vocab), list)


def test_words_are_remembered_up_to_a_number(vocabs, monkeypatch):
    vocab = SubwordVocab(vocabs["en"].model, "en")
    monkeypatch.setattr("utils.subwords.REMEMBERED", 20)
    for number in range(100):
        assert vocab[[str(number)]] == vocabs["en"][[str(number)]]
        assert len(vocab._ids) <= 22
    assert all(vocab[[name]] == [UNK_ID] for name in SPECIALS)


def test_the_rarest_character_has_a_piece():
    vocab = SubwordVocab.train([["a", "b"] * 2000, ["q"]], "en", 9, at_most=True)
    assert "q" in vocab
