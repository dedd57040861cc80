"""Text: tokens, sentences, vocabularies."""

import time
import unicodedata

import pytest
import torch
from helpers import tries
from hypothesis import example, given
from hypothesis import strategies as st

from utils.corpora import load_village
from utils.text import BOS, EOS, PAD, SPECIALS, UNK, UNK_ID, Vocab, detokenize, tokenize


def table(text):
    """The lines of a text, cut at " | "."""
    return [line.split(" | ") for line in text.strip().splitlines()]


# --- tokens -----------------------------------------------------------------------

TOKENS = """
en | I love to eat apples. | i love to eat apples .
en | The baker's daughter, isn't she? | the baker 's daughter , is n't she ?
en | I can't; we'll say they’ve won't | i ca n't ; we 'll say they 've wo n't
en | It's three o'clock at the T-shirt shop | it 's three o'clock at the t-shirt shop
en | Mr. Smith paid $10,000 at 3:30 p.m. | mr. smith paid $ 10,000 at 3:30 p.m.
en | (in 2.00s) | ( in 2 . 00s )
en | No. Wait... what?! | no . wait ... what ? !
en | #5's head, 10% off | # 5 's head , 10 % off
en | a boy's 's "hook 'em" | a boy 's 's " hook ' em "
en | <pad> a<unk> | < pad > a < unk >
fr | L'ami d’aujourd'hui, qu'il\u00a0! | l' ami d' aujourd'hui , qu' il !
fr | Qu'est-ce que c'est ? C’est-à-dire… | qu' est-ce que c' est ? c' est-à-dire …
fr | Quelqu'un parle jusqu'à 11h. | quelqu'un parle jusqu' à 11h .
fr | l' ami | l' ami
de | Ein Mann, der „Servus“ sagt, | ein mann , der „ servus “ sagt ,
de | läuft über saftig-grünes Gras. | läuft über saftig-grünes gras .
de | Wie geht's? 2,52 Dollar bzw. 10.000 | wie geht's ? 2,52 dollar bzw. 10.000
zh | 我爱你。 | 我 爱 你 。
zh | 我 爱 吃 苹果 。 | 我 爱 吃 苹果 。
zh | 我 爱 吃 苹果。 | 我 爱 吃 苹果 。
zh | 他是一个 DJ 。 | 他 是 一 个 dj 。
zh | 这本书，5美元？ | 这 本 书 ， 5 美 元 ？
zh | 他花了10,000日元！ | 他 花 了 10,000 日 元 ！
zh | 很大, 不是嗎? | 很 大 ， 不 是 嗎 ？
es | ¿Dónde está el niño? | ¿ dónde está el niño ?
cs | Příliš žluťoučký kůň, že? | příliš žluťoučký kůň , že ?
tr | IŞIK İÇİN, Istanbul'da | ışık için , ıstanbul'da
vi | Cô ấy đọc sách. | cô ấy đọc sách .
hi | मैं हिन्दी पढ़ता हूँ। | मैं हिन्दी पढ़ता हूँ ।
ar | أنا أقرأ. | أنا أقرأ .
ko | 나는 책을 읽는다. | 나는 책을 읽는다 .
ja | 私はDJです。 | 私 は dj で す 。
ja | ラーメンが3杯! | ラ ー メ ン が 3 杯 !
th | ฉันกินข้าว 2 จาน | ฉั น กิ น ข้ า ว 2 จ า น
"""


@pytest.mark.parametrize("lang, text, expected", table(TOKENS))
def test_tokenize(lang, text, expected):
    assert tokenize(text, lang) == expected.split()


INVISIBLE = """
    \u00ad \u034f \u061c \u180e \u200b \u200c \u200d \u200e \u200f \u202a \u202e \u2060
    \u2064 \u2069 \u3164 \ufe0e \ufe0f \ufeff \ufff9 \0 \x7f \U000e0061
"""


@pytest.mark.parametrize("lang", ["en", "fr", "zh"])
def test_what_nobody_sees_is_no_word_and_no_part_of_one(lang):
    for sign in INVISIBLE.split():
        found = tokenize(f"{sign} a{sign}b, {sign}{sign}c{sign}", lang)
        assert found == tokenize("ab, c", lang)
        assert tokenize(sign, lang) == []
        assert tokenize(f"e{sign}\u0301", lang) == ["é"]
    assert tokenize("👩\u200d🍳 ❤\ufe0f", lang) == ["👩", "🍳", "❤"]


def test_chinese_is_cut_into_the_fewest_words():
    longest = "一二三四五六七八九十百千"  # 12 characters
    assert tokenize(longest, "zh", {longest}) == [longest]
    assert tokenize(f"{longest}万", "zh", {f"{longest}万"}) == [*f"{longest}万"]
    words = {"苹果", "苹", "爱吃", "老师", "<pad>"}
    assert tokenize("我爱吃苹果。", "zh", words) == "我 爱吃 苹果 。".split()
    assert tokenize("老师读书", "zh", words) == "老师 读 书".split()
    assert tokenize("苹<pad>", "zh", words) == ["苹", "<", "pad", ">"]
    # Latin letters are never cut, even where words holds a part of them.
    assert tokenize("Tom爱苹果", "zh", {"to", "苹果"}) == "tom 爱 苹果".split()
    # A space between two Chinese characters wins over words.
    assert tokenize("我 爱吃 苹 果", "zh", words) == "我 爱吃 苹 果".split()
    # The longest first word, 下星期天, would leave 气, which is no word.
    words = {"下星期天", "下星期", "天气", "很", "好"}
    assert tokenize("下星期天气很好", "zh", words) == "下星期 天气 很 好".split()
    # Equally few words: the longest first.
    assert tokenize("甲乙丙", "zh", {"甲乙", "丙", "甲", "乙丙"}) == ["甲乙", "丙"]
    vocab = Vocab([["苹果", "我"]], "zh")
    assert tokenize("我爱苹果", "zh", vocab) == "我 爱 苹果".split()


TRICKY = (
    "aàé'’\"-.,;:!?…«»„“()[] \u00a0\u200b\t\n012hsnltdqujmvp&%$#_~我爱你。，？<>padunk"
)
SNIPPETS = (
    "I'm don't l'ami aujourd'hui p.m. 10,000 3:30 t-shirt qu'est-ce -- ... "
    "'s can't Mr. … bzw. 我 爱 DJ U.S. !!"
).split()
texts = st.one_of(
    st.text(alphabet=TRICKY, max_size=30),
    st.lists(st.sampled_from(SNIPPETS)).map(" ".join),
    st.text(st.characters(exclude_categories=[]), max_size=40),
)
LANGS = st.sampled_from("cs de en es fr ja th tr zh".split())
ALIKE = str.maketrans(",.?!:;’ʼ", "，。？！：；''")


@tries
@given(texts, LANGS)
@example("<pad> <unk>", "en")
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
    assert isinstance(detokenize(tokens, lang), str)


EVIL = [
    *(part * 5000 + "a" for part in ("1.", "a.", "'s", "我 ", "l'", "-a", "e\u0301")),
    *("我" + sign * 10_000 for sign in " -.'1aé我"),
]


def test_no_sentence_makes_the_tokeniser_slow():
    for text in EVIL:
        for lang in ("en", "fr", "zh", "th"):
            start = time.process_time()
            tokenize(text, lang)
            assert time.process_time() - start < 3, (text[:10], lang)


# --- sentences --------------------------------------------------------------------

WRITTEN = """
en | i know that i 'm here . | I know that I'm here.
en | the baker 's son does n't read , does he ? | The baker's son doesn't read, does he?
en | he says " hello " ( twice ) . | He says "hello" (twice).
en | <bos> hello . <eos> <pad> <pad> | Hello.
en | <unk> reads . | <unk> reads.
fr | l' ami qu' il n' aime pas . | L'ami qu'il n'aime pas.
fr | où vas-tu , mon ami ? | Où vas-tu, mon ami~?
fr | il dit : « oui ! » | Il dit~: «~oui~!~»
fr | école | École
de | ein mann läuft . | Ein mann läuft.
zh | 我 爱 吃 苹果 。 | 我爱吃苹果。
zh | i am 3 岁 | I am 3岁
tr | istanbul'a gidiyor . | İstanbul'a gidiyor.
tr | ışık var . | Işık var.
ja | 私 は dj で す 。 | 私はdjです。
"""


@pytest.mark.parametrize(
    "lang, tokens, expected", table(WRITTEN.replace("~", "\u00a0"))
)
def test_detokenize(lang, tokens, expected):
    assert detokenize(tokens.split(), lang) == expected
    if "<" not in tokens:
        assert tokenize(expected, lang, {*tokens.split()}) == tokens.split()


def test_the_villages_sentences_come_back():
    for target in ("fr", "zh"):
        for pair in load_village("en", target)["test"][:300]:
            for tokens, lang in zip(pair, ("en", target), strict=False):
                text = detokenize(tokens, lang)
                assert tokenize(text, lang, {*tokens}) == list(tokens)


# --- vocabularies -----------------------------------------------------------------


def test_vocab_order_and_look_up():
    vocab = Vocab([["b", "a", "c"], ["c", "b"], ("c",)], "en")
    assert vocab.idx_to_token == [PAD, BOS, EOS, UNK, "c", "b", "a"]
    assert len(vocab) == 7 and vocab.lang == "en"
    assert vocab["c"] == 4 and vocab["unheard"] == UNK_ID
    assert vocab[["a", *SPECIALS]] == [6, 0, 1, 2, 3]
    assert vocab[[["c"], ["a", "b"]]] == [[4], [6, 5]]
    assert "c" in vocab and "x" not in vocab
    assert not any(token in vocab for token in SPECIALS)
    assert vocab.to_tokens(4) == "c"
    assert vocab.to_tokens(torch.tensor([[4, 5], [2, 3]])) == [["c", "b"], [EOS, UNK]]
    assert vocab[[]] == [] == vocab.to_tokens([])
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
    assert (
        Vocab([["苹果", "我"]], "zh").encode("我爱苹果").tokens == "我 爱 苹果".split()
    )


def test_vocabs_are_equal_that_give_the_same_ids():
    vocab, stored = Vocab([["a", "b"]], "en"), [*SPECIALS, *"ab"]
    assert vocab == Vocab([["b", "a"]], "en") == Vocab.from_tokens(stored, "en")
    assert vocab != Vocab([["a", "b"]], "fr") and vocab != Vocab([["a", "c"]], "en")
    assert vocab != Vocab([["a", "b", "b"]], "en")  # in another order
    assert vocab != vocab.idx_to_token


@pytest.mark.parametrize(
    "min_freq, expected",
    [(2, "abc"), (3, "a"), (9, "")],
)
def test_vocab_min_freq(min_freq, expected):
    sentences = [["a"] * 3 + ["b"] * 2 + ["c"] * 2 + ["d"]]
    assert Vocab(sentences, "en", min_freq).idx_to_token == [*SPECIALS, *expected]


# --- what is refused --------------------------------------------------------------

SMALL, STORED = Vocab([["a"]], "en"), "a stored vocabulary begins with .* each token"


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: tokenize(None, "en"), TypeError, "text as a string, got NoneType"),
        (lambda: tokenize("a", "EN"), ValueError, "unknown language 'EN'"),
        (lambda: detokenize("hello", "en"), TypeError, "got the string 'hello': split"),
        (lambda: detokenize(["a"], "x"), ValueError, "unknown language 'x'"),
        (lambda: SMALL.encode(3), TypeError, "text as a string, got int"),
        (lambda: SMALL.encode(["a", 3]), TypeError, "words as strings, got .'a', 3"),
        (lambda: Vocab(["a b"], "en"), TypeError, "got the string 'a b': split it"),
        (lambda: Vocab([[PAD]], "en"), ValueError, "'<pad>' occurs in the text"),
        (lambda: Vocab([["a"]], "x"), ValueError, "unknown language 'x'"),
        (lambda: Vocab.from_tokens([*"abcde"], "en"), ValueError, STORED),
        (lambda: Vocab.from_tokens([*SPECIALS, 3], "en"), ValueError, STORED),
        (lambda: Vocab.from_tokens([*SPECIALS, *"aa"], "en"), ValueError, STORED),
        (lambda: SMALL.to_tokens([4, -1]), IndexError, "id -1 is outside .*: 0 to 4"),
        (lambda: SMALL.to_tokens(torch.tensor(5)), IndexError, "id 5 is outside"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
