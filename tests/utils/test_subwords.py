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

from utils.corpora import load_multi30k, load_village
from utils.data import BatchLoader, Pair
from utils.subwords import SampledLoader, SubwordVocab, as_spelled
from utils.text import BOS_ID, EOS, EOS_ID, PAD, PAD_ID, SPECIALS, UNK, UNK_ID, Vocab


@pytest.fixture(scope="module")
def village():
    """{lang: sentences of the training split}."""
    train = load_village("en", "zh")["train"]
    return {"en": [p.source for p in train], "zh": [p.target for p in train]}


def every_word(sentences):
    return [(word,) for word in sorted(set().union(*sentences))]


@pytest.fixture(scope="module")
def vocabs(village):
    """{lang: vocabulary}; 2,000 sentences have every character of the corpus."""
    return {
        lang: SubwordVocab.train(village[lang][:2000], lang, size)
        for lang, size in (("en", 250), ("zh", 500))
    }


def require_round_trip(vocab, sentences):
    """words -> ids -> words; Chinese comes back by character."""
    for words in sentences:
        ids, _, unknown = vocab.encode(words)
        assert UNK_ID not in ids and not unknown
        assert vocab.to_words(ids) == as_spelled(words, vocab)
        if vocab.lang == "zh":
            assert "".join(as_spelled(words, vocab)) == "".join(words)
        else:
            assert as_spelled(words, vocab) == list(words)


# --- reading and writing ----------------------------------------------------------


def test_a_text_is_read_in_pieces_and_written_as_a_text(vocabs):
    vocab = vocabs["en"]
    ids, tokens, unknown = vocab.encode("The baker isn't a ñandú.")
    assert tokens[0] == "▁the" and tokens.count(UNK) == 2 and unknown == ["ñandú"]
    assert vocab.to_tokens(ids) == tokens and len(ids) > 7
    assert vocab.encode("the baker is n't a ñandú .".split()) == (ids, tokens, unknown)
    assert vocab.decode([BOS_ID, *ids, EOS_ID, PAD_ID]) == (
        "The baker isn't a <unk>and<unk>."
    )
    assert vocab["▁the"] == ids[0] and vocab["no piece"] == UNK_ID
    assert "the" in vocab and "ñandú" not in vocab
    chinese = vocabs["zh"]
    assert chinese.to_words([*chinese[["我"]], UNK_ID]) == ["我", UNK]


def test_the_name_of_a_special_in_a_sentence_is_an_unknown_word(vocabs):
    """Though these pieces could spell it; in Chinese it is read, and not left out."""
    vocab = SubwordVocab.train([list("<>padbosunke")] * 9, "en", 18)
    for name in SPECIALS:
        assert name not in vocab and name[:-1] in vocab
        assert vocab[[name]] == vocab.sample([name], random.Random(0), 1.0) == [UNK_ID]
        ids, tokens, unknown = vocab.encode(["a", name])
        assert ids == [*vocab[["a"]], UNK_ID] and tokens[-1] == UNK
        assert unknown == [name]
        ids = vocabs["zh"][["我", name, "爱"]]
        assert min(ids) == UNK_ID and len(ids) > len(vocabs["zh"][["我", "爱"]])


def test_words_come_back_and_chinese_is_cut_alike_segmented_or_not(village, vocabs):
    vocab = vocabs["zh"]
    ids = vocab.encode("老师的帽子").ids
    assert vocab[["老师", "的", "帽子"]] == vocab[list("老师的帽子")] == ids
    assert vocab.to_words(ids) == list("老师的帽子")
    for lang, vocab in vocabs.items():  # every word and some sentences come back
        require_round_trip(vocab, [*every_word(village[lang]), *village[lang][-200:]])
    words = ["我", "爱", "tom", "hanks", "10,000", "次", "。"]
    vocab = SubwordVocab.train([words] * 3, "zh", 20)
    assert as_spelled(words, vocab) == words
    require_round_trip(vocab, [words])
    plain = Vocab([words], "zh")  # whole words stay as they are
    assert as_spelled(("老师",), plain) == ["老师"]


ANY_TEXT = st.text(st.characters(categories=["L", "N", "P", "M", "S"]), min_size=1)


@tries
@given(words=st.lists(ANY_TEXT | st.sampled_from(SPECIALS)))
def test_any_words_have_ids_and_no_error(vocabs, words):
    for vocab in vocabs.values():
        ids, tokens, unknown = vocab.encode(words)
        assert len(ids) == len(tokens) and bool(unknown) == (UNK_ID in ids)
        for cut in (ids, vocab.sample(words, random.Random(0), 0.1)):
            assert all(UNK_ID <= i < len(vocab) for i in cut)
            assert isinstance(vocab.decode(cut), str)


@pytest.mark.slow
@needs("multi30k")
def test_pieces_write_the_words_that_training_has_not_seen():
    corpus = load_multi30k("de", "en")
    words, held_out = (
        {word for pair in corpus[split] for word in pair.source}
        for split in ("train", "valid")
    )
    vocab = SubwordVocab.train([[word] for word in words], "de", 3000)
    require_round_trip(vocab, [[word] for word in words])
    new = held_out - words
    assert len(new) > 100 and sum(word in vocab for word in new) > 0.99 * len(new)


def test_no_more_words_are_remembered_than_that(vocabs, monkeypatch):
    monkeypatch.setattr("utils.subwords.REMEMBERED", 3)
    vocab = SubwordVocab(vocabs["en"].model, "en")
    assert vocab.encode([*"abcdeabc"]).ids == vocabs["en"][[*"abcdeabc"]]
    assert vocab._cut.cache_info().currsize == 3


# --- training ---------------------------------------------------------------------


def test_the_pieces_come_from_the_training_text_alone():
    vocab = SubwordVocab.train([["ab", "abab"], ["ba"]] * 5, "en", 9)
    assert tuple(vocab.idx_to_token[:4]) == SPECIALS and len(vocab) == 9
    assert {c for piece in vocab.idx_to_token[4:] for c in piece} == {"▁", "a", "b"}
    assert "babba" in vocab and "cab" not in vocab
    vocab = SubwordVocab.train([["a", "b"] * 2000, ["q"]], "en", 9)
    assert "q" in vocab  # the rarest character has a piece
    assert len(SubwordVocab.train([["a", "b"]] * 3, "en", 3000)) < 3000


def test_the_same_text_gives_an_equal_vocabulary_in_silence(village, vocabs, capfd):
    english, part = vocabs["en"], village["en"][:300]
    one, other = (SubwordVocab.train(part, "en", 120) for _ in "ab")
    assert one.model == other.model and one == other
    assert capfd.readouterr() == ("", "")
    assert SubwordVocab(english.model, "en") == english
    assert SubwordVocab(english.model, "fr") != english != one
    assert english != Vocab.from_tokens(english.idx_to_token, "en") != english


def test_byte_pairs_cut_in_one_way(village, vocabs):
    """The most frequent pair is joined first (Sennrich et al., 2016)."""
    words = [["abab", "ab", "ac"]] * 3  # "a b" is the most frequent pair
    joined = SubwordVocab.train(words, "en", 10, model_type="bpe")
    assert "ab" in [piece.removeprefix("▁") for piece in joined.idx_to_token]
    vocab = SubwordVocab.train(village["en"][:2000], "en", 250, model_type="bpe")
    assert len(vocab) == 250 and vocab != vocabs["en"]
    require_round_trip(vocab, village["en"][-200:])


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


def test_ways_are_drawn_by_their_probability_to_the_power_alpha(vocabs):
    ways = every_way(vocabs["en"], "kitchen")[: SubwordVocab.ways_a_word]
    assert len(ways) == 8
    counts = draws(vocabs["en"], "kitchen", alpha=0.1)

    def chi_square(alpha):
        shares = {way: math.exp(alpha * log_prob) for way, log_prob in ways}
        expected = {
            w: 4000 * share / sum(shares.values()) for w, share in shares.items()
        }
        assert min(expected.values()) > 20 and counts.keys() <= expected.keys()
        return sum((counts[way] - n) ** 2 / n for way, n in expected.items())

    limit = 24.3  # chi-square of 7 degrees of freedom is above it once in 1000
    assert chi_square(0.1) < limit < chi_square(0.13)  # so another power is noticed
    assert draws(vocabs["en"], "kitchen", alpha=100.0) == {ways[0][0]: 4000}


def columns(loader, k):
    return [[column.tolist() for column in batch] for batch in loader.epoch(k)]


def spelled(rows, vocab):
    """The sentences of a column of a batch, in words."""
    return sorted(tuple(vocab.to_words(row)) for row in rows)


def test_each_epoch_is_cut_anew_by_seed_and_epoch(village, vocabs):
    sides = list(zip(village["en"][:60], village["zh"][:60], strict=True))
    pairs, words = [Pair(*both) for both in sides], Vocab([b for _, b in sides], "zh")

    def loader(seed=1, target=vocabs["zh"], batch_size=16):
        return SampledLoader(pairs, vocabs["en"], target, batch_size, seed, 0.1)

    first = loader()
    zero, one = columns(first, 0), columns(first, 1)
    assert zero != one and len(zero) == len(one) == len(first) == 4
    assert columns(first, 0) == zero and columns(loader(), 1) == one
    assert columns(loader(2), 0) != zero
    for target in (vocabs["zh"], words):  # however it is cut, the text is the same
        [batch] = loader(0, target, 100).epoch(5)
        assert spelled(batch.source, vocabs["en"]) == sorted(tuple(a) for a, _ in sides)
        wanted = sorted(tuple(as_spelled(b, target)) for _, b in sides)
        assert spelled(batch.target_out, target) == wanted
    best = next(iter(BatchLoader(pairs, vocabs["en"], words, 100, shuffle=False)))
    assert batch.source_lens.sum() > best.source_lens.sum()  # it isn't always the best
    one_pair = SampledLoader([Pair([PAD], [EOS])], vocabs["en"], words, 1, 0, 0.1)
    [batch] = one_pair.epoch(0)
    assert batch.source.tolist() == batch.target_out.tolist() == [[UNK_ID, EOS_ID]]


# --- what is refused --------------------------------------------------------------


def other_specials():
    """A model of sentencepiece's that begins with specials of its own."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a b ab ba"] * 4),
        model_writer=model,
        vocab_size=7,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return model.getvalue()


train = SubwordVocab.train
CHARACTERS = "don't give 8 pieces: .*smaller than required_chars. 8 vs 15"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: train([[*"abcdefghij"]] * 3, "en", 8), ValueError, CHARACTERS),
        (lambda: train([["a"]], "en", 4), ValueError, r"5 \(there are 4 spec.*, got 4"),
        (lambda: train([["a"]], "en", 5), ValueError, "5 vs 6"),
        (lambda: train([[]], "en", 30), ValueError, "no text to learn pieces from"),
        (lambda: train(["a string"], "en", 30), TypeError, "expected a list of tokens"),
        (lambda: SubwordVocab(b"no model", "en"), ValueError, "these 8 bytes are no"),
        (lambda: SubwordVocab(b"", "x"), ValueError, "unknown language 'x'"),
        (lambda: SubwordVocab(other_specials(), "en"), ValueError, "begins with <pad>"),
    ],
)
def test_what_is_refused(call, error, message, capfd):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "src/" not in str(raised.value)  # no line of somebody else's source
    assert capfd.readouterr() == ("", "")
