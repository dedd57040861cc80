"""Subword vocabularies: texts come back, what is sampled, what is refused."""

import math

import pytest
import sentencepiece
from helpers import refusals
from hypothesis import example, given
from hypothesis import strategies as st

from utils.data import BatchLoader, Pair
from utils.metrics import text_scores
from utils.subwords import BYTES, SUBWORDS, SubwordVocab, drawn
from utils.text import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Vocab

LINES = {  # what a tokenizer with rules loses
    "en": "He said “I'll e-mail x@y.org, C++ costs £500!” in New York (NASA)  today.",
    "de": "„Ja“, sagte Frau Müller-Lüdenscheidt: 3,14 ist π; siehe https://x.org/?a=1#b.",
    "cs": "Příliš žluťoučký kůň úpěl ‚ďábelské‘ ódy… – 100 000 Kč!",
    "fr": "« Qu’est-ce que c’est ? », demanda-t-il à l’hôtel ; 12 %.",
    "tr": "IĞDIR'da İstanbul’dan gelen “ışık” var, değil mi?",
    "hi": "मैं ठीक हूँ। क्या आप “हिन्दी” पढ़ते हैं? १२३",
    "ar": "هل أنت بخير؟ نعم، شكرًا؛ السعر ٥٠٠ ريال.",
    "he": 'ד"ר כהן אמר: „שלום”, ב־12:30.',
    "fa": "می‌خواهم «کتاب» بخرم؟",
    "zh": "他说：“你好，Tom！”——花了10,000元……",
    "ja": "「ラーメン」を3杯、食べました。ｶﾀｶﾅも！",
    "th": "ฉันกินข้าว 2 จาน แล้วไป กรุงเทพฯ",
    "emoji": "👩‍👩‍👧 ❤️ 🇩🇪 x\u00a0y\u200bz e\u0301é ▁ <unk> <0x41> \t \r",
}
LINES_OF_ALL = [*LINES.values()]


@pytest.fixture(scope="module", params=SUBWORDS)
def vocab(request):
    return SubwordVocab.train(LINES_OF_ALL[:4] * 9, "en", 500, request.param)


PIECES = SubwordVocab.train(["the kitchen cat kicks ten chicks then"] * 9, "en", 300)


@given(st.text(max_size=60) | st.lists(st.sampled_from(LINES_OF_ALL)).map("".join))
@example("")
@example(" ▁▁ a ")
@example("\0 <pad><bos></s>\u2028")
def test_any_text_comes_back(vocab, text):
    ids, tokens, unknown = vocab.encode(text)
    assert vocab.decode([BOS_ID, *ids, EOS_ID, PAD_ID]) == text and not unknown
    assert vocab.to_tokens(ids) == tokens and min([*ids, UNK_ID + 1]) > UNK_ID
    assert sum(vocab.byte_lengths(ids)) == 1 + len(text.encode())


def test_a_perfect_translation_scores_100(vocab):
    for lang, line in LINES.items():
        text = vocab.decode(vocab.encode(line).ids)
        scores = text_scores([text], [line], "en" if lang == "emoji" else lang)
        for name in ("bleu", "bleu_lower", "chrf"):
            assert scores[name] == pytest.approx(100), lang


def test_pieces_hold_spaces_and_digits_stand_alone():
    vocab = SubwordVocab.train(["the cat sat", "the 1995 cat"], "en", 300, "bpe")
    ids, tokens, _ = vocab.encode("the cat 199é")
    assert tokens[:2] == ["▁the", "▁cat"] and tokens[-2:] == ["<0xC3>", "<0xA9>"]
    assert [*"199"] == [token for token in tokens if token.isdigit()]
    assert vocab["▁the"] == ids[0] and vocab["no piece"] == UNK_ID
    assert vocab.to_words([*ids, EOS_ID]) == ["the", "cat", "199é"]
    assert vocab.decode(ids[1:]) == "cat 199é" and vocab.decode([ids[-1]]) == "\ufffd"


def test_pieces_are_drawn_without_their_mark():
    pieces = ["▁the", "▁", "cat", "s", "<eos>"]
    assert drawn(pieces) == ["the", "␣", "·cat", "·s", "<eos>"]
    assert drawn(["the", "cat", "<eos>"]) == ["the", "cat", "<eos>"]


def test_no_more_words_are_remembered_than_that(monkeypatch):
    monkeypatch.setattr("utils.subwords.REMEMBERED", 3)
    vocab = SubwordVocab(PIECES.model, "en")
    text = "the kitchen cat kicks ten the kitchen"
    assert vocab.encode(text) == PIECES.encode(text)
    assert vocab._cut.cache_info().currsize == 3


def test_the_pieces_come_from_the_training_text_alone(capfd):
    one, other = (SubwordVocab.train(["ab abab"] * 5, "en", 300) for _ in "ab")
    assert one == other and tuple(one.idx_to_token[:4]) == SPECIALS
    pieces = set(one.idx_to_token[4:]) - set(BYTES)
    assert {c for piece in pieces for c in piece} == {"▁", "a", "b"}
    assert len(one) < 300 and SubwordVocab(one.model, "en") == one
    for model_type in SUBWORDS:  # a small text gives fewer pieces than are asked for
        assert len(SubwordVocab.train(["a"], "en", 3000, model_type)) < 300
    for vocab in (SubwordVocab(one.model, "fr"), Vocab([], "en")):
        assert vocab != one != vocab
    assert capfd.readouterr() == ("", "")


def test_rare_characters_are_written_as_bytes_where_pieces_are_few():
    texts = [f"的 {chr(0x4E00 + n)}{chr(0x4E00 + n * n)}" for n in range(90)]
    vocab = SubwordVocab.train(texts, "zh", 300)
    assert len(vocab) <= 300 and "的" in "".join(vocab.idx_to_token)
    single = [p for p in vocab.idx_to_token if len(p) == 1]
    assert len(single) < 40


def test_a_way_is_drawn_by_its_probability_to_the_power_alpha():
    model = sentencepiece.SentencePieceProcessor(model_proto=PIECES.model)
    score = {p: model.get_score(i) for i, p in enumerate(PIECES.idx_to_token)}

    def cuts(rest):  # the specification: all cuts into pieces
        if not rest:
            yield ()
        for end in range(1, len(rest) + 1):
            if rest[:end] in score:
                yield from ((rest[:end], *cut) for cut in cuts(rest[end:]))

    chances = {cut: sum(map(score.get, cut)) for cut in cuts("▁kitchen")}
    best = sorted(chances, key=chances.get, reverse=True)[:8]

    class Rng:
        def choices(self, ways, weights):
            assert [tuple(PIECES.to_tokens(way)) for way in ways] == best
            right = [math.exp(0.1 * (chances[way] - chances[best[0]])) for way in best]
            assert weights == pytest.approx(right)
            return ways[3:4]

    assert PIECES[best[3]] == PIECES.sample("kitchen", Rng(), 0.1)


def test_each_epoch_is_cut_anew_by_seed_and_epoch():
    pairs = [Pair(text, text[::-1]) for text in LINES_OF_ALL * 3]

    def rows(k, seed=1):
        how = {"seed": seed, "bucketed": False, "shuffle": False, "alpha": 0.3}
        (batch,) = BatchLoader(pairs, PIECES, PIECES, 99, **how).epoch(k)
        sides = zip(batch.source, batch.target_out, strict=True)
        texts = [tuple(map(PIECES.decode, pair)) for pair in sides]
        assert texts == [pair[:2] for pair in pairs]  # however they are cut
        return batch.source.tolist(), batch.target_out.tolist()

    zero, one, other = rows(0), rows(1), rows(0, seed=2)
    assert zero == rows(0)
    for side in (0, 1):
        assert one[side] != zero[side] != other[side]


train = SubwordVocab.train
GOOD, BYTE_PAIRS = train(["ab"], "en", 300), train(["ab"], "en", 300, "bpe")
OTHER = GOOD.model.replace(b"<pad>", b"<bad>")


test_what_is_refused = refusals(
    (lambda: train(["a"], "en", 261), "of at least 262, got 261"),
    (lambda: train([" ", ""], "en", 300), "no text to learn pieces"),
    (lambda: train([["a"]], "en", 300), TypeError, r"a string, got \['a'"),
    (lambda: train(["a"], "en", 300, "char"), "must be one of .'unig"),
    (lambda: BYTE_PAIRS.sample("a", None, 1), RuntimeError, "NBestEncode"),
    (lambda: GOOD.encode(None), TypeError, "a text as a string, got None"),
    (lambda: SubwordVocab(b"no model", "en"), "these 8 bytes are no"),
    (lambda: SubwordVocab(OTHER, "en"), "begins with <pad>.*<bad>"),
)
