"""Text: tokens, sentences, vocabularies."""

import time
import unicodedata

import pytest
import torch
from helpers import tries
from hypothesis import example, given
from hypothesis import strategies as st

from utils.corpora import VILLAGE_FOLDER
from utils.files import decode_lines, read_bytes
from utils.text import BOS, EOS, PAD, SPECIALS, UNK, UNK_ID, Vocab, detokenize, tokenize


def table(text):
    """The lines of a text, cut at " | "."""
    return [line.split(" | ") for line in text.strip().splitlines()]


# --- tokens -----------------------------------------------------------------------

TOKENS = """
en | The baker's daughter, isn't she? | the baker 's daughter , is n't she ?
en | I can't; we'll say they’ve won't | i ca n't ; we 'll say they 've wo n't
en | Mr. Smith paid $10,000 at 3:30 p.m. | mr. smith paid $ 10,000 at 3:30 p.m.
en | (in 2.00s) | ( in 2 . 00s )
en | #5's head, 10% off... what?! | # 5 's head , 10 % off ... what ? !
fr | L'ami d’aujourd'hui, qu'il\u00a0! | l' ami d' aujourd'hui , qu' il !
fr | Qu'est-ce que c'est ? Quelqu'un… | qu' est-ce que c' est ? quelqu'un …
de | Ein Mann, der „Servus“ sagt, | ein mann , der „ servus “ sagt ,
de | Wie geht's? 2,52 Dollar bzw. 10.000 | wie geht's ? 2,52 dollar bzw. 10.000
zh | 我 爱 吃 苹果 。 | 我 爱 吃 苹果 。
zh | 他是一个 DJ 。 | 他 是 一 个 dj 。
zh | 他花了10,000日元！ | 他 花 了 10,000 日 元 ！
zh | 很大, 不是嗎? | 很 大 ， 不 是 嗎 ？
tr | IŞIK İÇİN, Istanbul'da | ışık için , ıstanbul'da
hi | मैं हिन्दी पढ़ता हूँ। | मैं हिन्दी पढ़ता हूँ ।
ja | ラーメンが3杯! | ラ ー メ ン が 3 杯 !
th | ฉันกินข้าว 2 จาน | ฉั น กิ น ข้ า ว 2 จ า น
"""


@pytest.mark.parametrize("lang, text, expected", table(TOKENS))
def test_tokenize(lang, text, expected):
    assert tokenize(text, lang) == expected.split()


def test_what_nobody_sees_is_no_word_and_no_part_of_one():
    for sign in "\0\x7f\u00ad\u034f\u180e\u200b\u200d\u3164\ufe0f\ufeff\U000e0061":
        for lang in ("en", "zh"):
            found = tokenize(f"{sign} a{sign}b, {sign}{sign}c{sign}", lang)
            assert found == tokenize("ab, c", lang)
            assert tokenize(f"e{sign}\u0301", lang) == ["é"]


def test_chinese_is_cut_into_the_fewest_words():
    longest = "一二三四五六七八九十百千"  # 12 characters
    assert tokenize(longest, "zh", {longest}) == [longest]
    assert tokenize(f"{longest}万", "zh", {f"{longest}万"}) == [*f"{longest}万"]
    words = {"苹果", "苹", "爱吃", "to", "<pad>"}
    assert tokenize("Tom爱吃苹果。", "zh", words) == "tom 爱吃 苹果 。".split()
    assert tokenize("苹<pad>", "zh", words) == ["苹", "<", "pad", ">"]
    # A space between two Chinese characters wins over words.
    assert tokenize("我 爱吃 苹 果", "zh", words) == "我 爱吃 苹 果".split()
    # The longest first word, 下星期天, would leave 气, which is no word.
    words = {"下星期天", "下星期", "天气", "很", "好"}
    assert tokenize("下星期天气很好", "zh", words) == "下星期 天气 很 好".split()
    # Equally few words: the longest first.
    assert tokenize("甲乙丙", "zh", {"甲乙", "丙", "甲", "乙丙"}) == ["甲乙", "丙"]


PARTS = (
    "I'm don't l'ami aujourd'hui p.m. 10,000 3:30 t-shirt qu'est-ce -- ... "
    "'s can't Mr. … bzw. 我 爱 DJ U.S. !!"
).split()
PARTS += (
    "aàé'’\"-.,;:!?…«»„“()[]  \u00a0\u200b\t\n012hsnltdqujm&%$#_~我爱你。，？<>padunk"
)
texts = st.one_of(
    st.lists(st.sampled_from(PARTS), max_size=30).map("".join),
    st.text(st.characters(exclude_categories=[]), max_size=40),
)
LANGS = st.sampled_from("cs de en es fr ja th tr zh".split())
ALIKE = str.maketrans(",.?!:;’ʼ", "，。？！：；''")


@tries
@given(texts, LANGS)
@example("<pad> a<unk>", "en")
@example("a\u0301 x\u0302y", "de")
def test_tokens_hold_the_text_and_are_stable(text, lang):
    tokens = tokenize(text, lang)
    assert not set(tokens) & set(SPECIALS)
    assert all(token and token == token.lower() for token in tokens)
    assert not any(c.isspace() for token in tokens for c in token)
    if lang == "tr":
        text = text.replace("İ", "i").replace("I", "ı")
    seen = [c for c in text.lower() if not c.isspace() and tokenize(c, "en")]
    kept = unicodedata.normalize("NFC", "".join(seen))
    assert "".join(tokens).translate(ALIKE) == kept.translate(ALIKE)
    assert tokenize(" ".join(tokens), lang) == tokens
    detokenize(tokens, lang)  # without an error


@pytest.mark.parametrize(
    "part", ["1.", "a.", "'s", "l'", "-a", "e\u0301", "我 ", "-我"]
)
def test_no_sentence_makes_the_tokeniser_slow(part):
    start = time.process_time()
    for lang in ("en", "fr", "zh", "th"):
        tokenize(part * 5000 + "a", lang)
    assert time.process_time() - start < 3


# --- sentences --------------------------------------------------------------------

WRITTEN = """
en | the baker 's son knows that i do n't . | The baker's son knows that I don't.
en | <unk> reads . | <unk> reads.
en | he says " hello " ( twice ) . | He says "hello" (twice).
en | <bos> hello . <eos> <pad> <pad> | Hello.
fr | où vas-tu , l' ami ? | Où vas-tu, l'ami~?
fr | il dit : « oui ! » | Il dit~: «~oui~!~»
zh | 我 爱 吃 苹果 。 | 我爱吃苹果。
zh | i am 3 岁 | I am 3岁
tr | istanbul'a gidiyor . | İstanbul'a gidiyor.
tr | ışık var . | Işık var.
"""


@pytest.mark.parametrize(
    "lang, tokens, expected", table(WRITTEN.replace("~", "\u00a0"))
)
def test_detokenize(lang, tokens, expected):
    assert detokenize(tokens.split(), lang) == expected
    if "<" not in tokens:
        assert tokenize(expected, lang, {*tokens.split()}) == tokens.split()


def test_the_villages_sentences_come_back():
    path = VILLAGE_FOLDER / "test.tsv.gz"
    for line in decode_lines(read_bytes(path), path)[1:301]:
        for lang, text in zip(("en", "fr", "zh"), line.split("\t"), strict=False):
            words = text.split()
            assert tokenize(detokenize(words, lang), lang, {*words}) == words


# --- vocabularies -----------------------------------------------------------------


def test_vocab_order_and_look_up():
    vocab = Vocab([["b", "a", "c"], ["c", "b"], ("c",)], "en")
    assert vocab.idx_to_token == [PAD, BOS, EOS, UNK, "c", "b", "a"]
    assert len(vocab) == 7 and vocab["c"] == 4 and vocab["unheard"] == UNK_ID
    assert vocab[[["c"], ["a", *SPECIALS]]] == [[4], [6, 0, 1, 2, 3]]
    assert "c" in vocab and not any(token in vocab for token in ("x", *SPECIALS))
    assert vocab.to_tokens(torch.tensor([[4, 6], [2, 3]])) == [["c", "a"], [EOS, UNK]]
    words = ["été", "zoo", "a", "我"]  # ties are sorted, whatever the text's order
    assert Vocab([words], "fr").idx_to_token[4:] == sorted(words)


def test_a_vocabulary_reads_and_writes():
    vocab = Vocab([["i", "love", "apples", ".", "unk", "<", ">"]], "en")
    ids, tokens, unknown = vocab.encode("I love <unk> pears.")
    assert tokens == "i love < unk > pears .".split() and unknown == ["pears"]
    assert ids == vocab[tokens] and ids.count(UNK_ID) == 1
    assert vocab.decode(torch.tensor([1, *ids, 2, 0])) == "I love < unk > <unk>."
    # In a list of words, a special's name is an unknown word.
    ids, tokens, unknown = vocab.encode(("i", *SPECIALS))
    assert ids[1:] == [UNK_ID] * 4 and tokens[1:] == unknown == list(SPECIALS)
    assert vocab.to_words([*ids[:2], 1, 2, 0]) == ["i", UNK]
    assert vocab.encode("") == vocab.encode([]) == ([], [], [])
    vocab = Vocab([["苹果", "我"]], "zh")
    assert vocab.encode("我爱苹果").tokens == "我 爱 苹果".split()


def test_vocabs_are_equal_that_give_the_same_ids():
    vocab, stored = Vocab([["a", "b"]], "en"), [*SPECIALS, *"ab"]
    assert vocab == Vocab([["b", "a"]], "en") == Vocab.from_tokens(stored, "en")
    for other in (Vocab([["a", "b"]], "fr"), Vocab([["a", "b", "b"]], "en"), stored):
        assert vocab != other


def test_vocab_min_freq():
    sentences = [["a"] * 3 + ["b"] * 2 + ["c"] * 2 + ["d"]]
    for min_freq, kept in (2, "abc"), (3, "a"), (9, ""):
        assert Vocab(sentences, "en", min_freq).idx_to_token == [*SPECIALS, *kept]


# --- what is refused --------------------------------------------------------------

SMALL, STORED = Vocab([["a"]], "en"), "a stored vocabulary begins with .* each token"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: tokenize(None, "en"), TypeError, "text as a string, got NoneType"),
        (lambda: tokenize("a", "EN"), ValueError, "unknown language 'EN'"),
        (lambda: detokenize("hello", "en"), TypeError, "got the string 'hello': split"),
        (lambda: SMALL.encode(["a", 3]), TypeError, "words as strings, got .'a', 3"),
        (lambda: Vocab(["a b"], "en"), TypeError, "got the string 'a b': split it"),
        (lambda: Vocab([[PAD]], "en"), ValueError, "'<pad>' occurs in the text"),
        (lambda: Vocab.from_tokens([*"abcde"], "en"), ValueError, STORED),
        (lambda: Vocab.from_tokens([*SPECIALS, 3], "en"), ValueError, STORED),
        (lambda: Vocab.from_tokens([*SPECIALS, *"aa"], "en"), ValueError, STORED),
        (lambda: SMALL.to_tokens([4, -1]), IndexError, "id -1 is outside .*: 0 to 4"),
        (lambda: SMALL.to_tokens(5), IndexError, "id 5 is outside"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
