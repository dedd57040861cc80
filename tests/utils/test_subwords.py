"""Subword vocabularies: round trips, what is sampled, what is refused."""

import math
import random

import pytest
import sentencepiece
from helpers import tries
from hypothesis import given
from hypothesis import strategies as st

from utils.corpora import VILLAGE_FOLDER
from utils.data import BatchLoader, Pair
from utils.files import decode_lines, read_bytes
from utils.subwords import SampledLoader, SubwordVocab, as_spelled
from utils.text import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK, UNK_ID, Vocab


@pytest.fixture(scope="module")
def village():
    """{lang: sentences of the training split}."""
    path = VILLAGE_FOLDER / "train.tsv.gz"
    rows = [line.split("\t") for line in decode_lines(read_bytes(path), path)[1:]]
    columns = {"en": 0, "zh": 2}
    return {lang: [tuple(r[n].split()) for r in rows] for lang, n in columns.items()}


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
        found = vocab.to_words(ids)
        assert found == as_spelled(words, vocab) and "".join(found) == "".join(words)
        assert vocab.lang == "zh" or found == list(words)


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
        words = [[word] for word in set().union(*village[lang])]
        require_round_trip(vocab, [*words, *village[lang][-200:]])
    words = ["我", "爱", "tom", "hanks", "10,000", "次", "。"]
    vocab = SubwordVocab.train([words] * 3, "zh", 20)
    assert as_spelled(words, vocab) == vocab.to_words(vocab[words]) == words
    assert as_spelled(("老师",), Vocab([["老师"]], "zh")) == ["老师"]  # whole words


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


def test_no_more_words_are_remembered_than_that(vocabs, monkeypatch):
    monkeypatch.setattr("utils.subwords.REMEMBERED", 3)
    vocab = SubwordVocab(vocabs["en"].model, "en")
    assert vocab.encode([*"abcdeabc"]).ids == vocabs["en"][[*"abcdeabc"]]
    assert vocab._cut.cache_info().currsize == 3


# --- training ---------------------------------------------------------------------


def test_the_pieces_come_from_the_training_text_alone(capfd):
    one, other = (SubwordVocab.train([["ab", "abab"]] * 5, "en", 9) for _ in "ab")
    assert one == other and tuple(one.idx_to_token[:4]) == SPECIALS and len(one) == 9
    assert {c for piece in one.idx_to_token[4:] for c in piece} == {"▁", "a", "b"}
    assert "babba" in one and "cab" not in one
    rare = SubwordVocab.train([["a", "b"] * 2000, ["q"]], "en", 9)
    assert "q" in rare  # the rarest character has a piece
    assert len(SubwordVocab.train([["a", "b"]] * 3, "en", 3000)) < 3000
    assert SubwordVocab(one.model, "en") == one and capfd.readouterr() == ("", "")
    for vocab in (rare, SubwordVocab(one.model, "fr"), Vocab([], "en")):
        assert vocab != one != vocab


def test_byte_pairs_cut_in_one_way(village, vocabs):
    vocab = SubwordVocab.train(village["en"][:2000], "en", 250, model_type="bpe")
    assert len(vocab) == 250 and vocab != vocabs["en"]
    require_round_trip(vocab, village["en"][-200:])


# --- sampling ---------------------------------------------------------------------


def test_ways_are_drawn_by_their_probability_to_the_power_alpha(vocabs):
    vocab, drawn = vocabs["en"], []
    model = sentencepiece.SentencePieceProcessor(model_proto=vocab.model)
    score = {p: model.get_score(i) for i, p in enumerate(vocab.idx_to_token)}

    def cuts(rest):  # the specification: all cuts into pieces
        if not rest:
            yield []
        for end in range(1, len(rest) + 1):
            if rest[:end] in score:
                yield from ([rest[:end], *cut] for cut in cuts(rest[end:]))

    class Rng:
        def choices(self, ways, weights):
            drawn.extend(zip(map(vocab.to_tokens, ways), weights, strict=True))
            return ways[3:4]

    cut = vocab.sample(["kitchen"], Rng(), 0.1)
    assert vocab.to_tokens(cut) == drawn[3][0]
    chances = {tuple(cut): sum(map(score.get, cut)) for cut in cuts("▁kitchen")}
    best = sorted(chances, key=chances.get, reverse=True)[:8]
    assert [tuple(way) for way, _ in drawn] == best
    expected = [math.exp(0.1 * (chances[way] - chances[best[0]])) for way in best]
    assert [weight for _, weight in drawn] == pytest.approx(expected)


def test_each_epoch_is_cut_anew_by_seed_and_epoch(village, vocabs):
    sides = list(zip(village["en"][:60], village["zh"][:60], strict=True))
    pairs, words = [Pair(*both) for both in sides], Vocab([b for _, b in sides], "zh")

    def columns(k, seed=1):
        loader = SampledLoader(pairs, vocabs["en"], vocabs["zh"], 16, seed, 0.1)
        return [[column.tolist() for column in batch] for batch in loader.epoch(k)]

    zero = columns(0)
    assert columns(0) == zero and len(zero) == 4
    assert columns(1) != zero != columns(0, seed=2)
    for target in (vocabs["zh"], words):  # however it is cut, the text is the same
        [batch] = SampledLoader(pairs, vocabs["en"], target, 100, 0, 0.1).epoch(5)
        found = {
            (*vocabs["en"].to_words(source), "→", *target.to_words(out))
            for source, out in zip(batch.source, batch.target_out, strict=True)
        }
        assert found == {(*a, "→", *as_spelled(b, target)) for a, b in sides}
    best = next(iter(BatchLoader(pairs, vocabs["en"], words, 100)))
    assert batch.source_lens.sum() > best.source_lens.sum()  # it isn't always the best


# --- what is refused --------------------------------------------------------------

train = SubwordVocab.train
OTHER = train([[*"ab"]] * 3, "en", 7).model.replace(b"<pad>", b"<bad>")
CHARACTERS = "don't give 8 pieces: .*smaller than required_chars. 8 vs 15"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: train([[*"abcdefghij"]] * 3, "en", 8), ValueError, CHARACTERS),
        (lambda: train([["a"]], "en", 4), ValueError, r"5 \(there are 4 spec.*, got 4"),
        (lambda: train([[]], "en", 30), ValueError, "no text to learn pieces from"),
        (lambda: train(["a string"], "en", 30), TypeError, "expected a list of tokens"),
        (lambda: SubwordVocab(b"no model", "en"), ValueError, "these 8 bytes are no"),
        (lambda: SubwordVocab(OTHER, "en"), ValueError, "begins with <pad>.* <bad>"),
    ],
)
def test_what_is_refused(call, error, message, capfd):
    with pytest.raises(error, match=message) as raised:
        call()
    assert "src/" not in str(raised.value)  # no line of somebody else's source
    assert capfd.readouterr() == ("", "")
