"""Text: tokens, sentences, vocabularies."""

import time
import unicodedata

import pytest
import torch
from helpers import refusals
from hypothesis import example, given
from hypothesis import strategies as st

from utils.corpora import VILLAGE_FOLDER
from utils.files import read_lines
from utils.text import SLOTS, SPECIALS, UNK_ID, Vocab, detokenize, tokenize

PAD, BOS, EOS, UNK = SPECIALS


def table(text):
    """The lines of a text, cut at " | "."""
    return [line.split(" | ") for line in text.strip().splitlines()]


TOKENS = """
en | The baker's daughter, isn't she? | the baker 's daughter , is n't she ?
en | I can't; we'll say they’ve won't | i ca n't ; we 'll say they 've wo n't
fr | L'ami d’aujourd'hui, qu'il\u00a0! | l' ami d' aujourd'hui , qu' il !
fr | Qu'est-ce que c'est ? Quelqu'un… | qu' est-ce que c' est ? quelqu'un …
de | Ein Mann, wie geht's? | ein mann , wie geht's ?
zh | 我 爱 吃 苹果 。 | 我 爱 吃 苹果 。
zh | 他是一个 DJ 。 | 他 是 一 个 dj 。
zh | 很大, 不是嗎? | 很 大 ， 不 是 嗎 ？
"""


@pytest.mark.parametrize("lang, text, expected", table(TOKENS))
def test_tokenize(lang, text, expected):
    assert tokenize(text, lang) == expected.split()


def test_chinese_is_cut_into_the_fewest_words():
    longest = "一二三四五六七八九十百千"  # 12 characters
    assert tokenize(longest, "zh", {longest}) == [longest]
    assert tokenize(f"{longest}万", "zh", {f"{longest}万"}) == [*f"{longest}万"]
    words = Vocab([["苹果", "苹", "爱吃", "to"]], "zh")
    assert tokenize("Tom爱吃苹果。", "zh", words) == "tom 爱吃 苹果 。".split()
    assert tokenize("苹<pad>", "zh", words) == ["苹", "<", "pad", ">"]
    # A space between two Chinese characters wins over words.
    assert tokenize("我 爱吃 苹 果", "zh", words) == "我 爱吃 苹 果".split()
    # The longest first word, 下星期天, would leave 气, which is no word.
    words = Vocab([["下星期天", "下星期", "天气", "很", "好"]], "zh")
    assert words.encode("下星期天气很好").tokens == "下星期 天气 很 好".split()
    # Equally few words: the longest first.
    assert tokenize("甲乙丙", "zh", {"甲乙", "丙", "甲", "乙丙"}) == ["甲乙", "丙"]


PARTS = "I'm don't l'ami t-shirt qu'est-ce 's can't Mr. 我 爱 DJ U.S. !!".split()
PARTS += "aàé'’\"-.,;:!?…«»()  \u00a0\t012hsnltdqujm&%_我爱你。，？<>padunk"
texts = st.lists(st.sampled_from(PARTS), max_size=30).map("".join) | st.text()
ALIKE = str.maketrans(",.?!:;’ʼ", "，。？！：；''")


@given(texts, st.sampled_from("en fr zh de".split()))
@example("<pad> a<unk>", "en")
def test_tokens_hold_the_text(text, lang):
    tokens = tokenize(text, lang)
    assert not set(tokens) & set(SPECIALS)
    assert not any(c.isspace() for token in tokens for c in token)
    kept = unicodedata.normalize("NFC", "".join(text.lower().split()))
    assert "".join(tokens).translate(ALIKE) == kept.translate(ALIKE)
    detokenize(tokens, lang)  # without an error


@pytest.mark.parametrize("part", "1.|a.|'s|l'|-a|e\u0301|我 |-我".split("|"))
def test_no_sentence_makes_the_tokeniser_slow(part):
    start = time.process_time()
    for lang in ("en", "fr", "zh", "de"):
        tokenize(part * 5000 + "a", lang)
    assert time.process_time() - start < 3


WRITTEN = """
en | the baker 's son knows that i do n't . | The baker's son knows that I don't.
en | <unk> reads . | <unk> reads.
en | <bos> hello . <eos> <pad> <pad> | Hello.
fr | où vas-tu , l' ami ? | Où vas-tu, l'ami~?
fr | oui ! | Oui~!
zh | 我 爱 吃 苹果 。 | 我爱吃苹果。
zh | i am 3 岁 | I am 3岁
""".replace("~", "\u00a0")


@pytest.mark.parametrize("lang, tokens, expected", table(WRITTEN))
def test_detokenize(lang, tokens, expected):
    assert detokenize(tokens.split(), lang) == expected
    if "<" not in tokens:
        assert tokenize(expected, lang, {*tokens.split()}) == tokens.split()


def test_the_villages_sentences_come_back():
    path = VILLAGE_FOLDER / "test.tsv.gz"
    for line in read_lines(path)[1:301]:
        for lang, text in zip(("en", "fr", "zh"), line.split("\t"), strict=False):
            words = text.split()
            assert tokenize(detokenize(words, lang), lang, {*words}) == words


def test_vocab_order_look_up_and_equality():
    vocab = Vocab([["b", "a", "c"], ["c", "b"], ("c",)], "en")
    assert vocab.idx_to_token == [PAD, BOS, EOS, UNK, "c", "b", "a"]
    assert len(vocab) == 7 and vocab["c"] == 4 and vocab["unheard"] == UNK_ID
    assert vocab[[["c"], ["a", *SPECIALS]]] == [[4], [6, 0, 1, 2, 3]]
    assert "c" in vocab and not any(token in vocab for token in ("x", *SPECIALS))
    assert vocab.to_tokens(torch.tensor([[4, 6], [2, 3]])) == [["c", "a"], [EOS, UNK]]
    words = ["été", "zoo", "a", "我"]  # ties are sorted, whatever the text's order
    assert Vocab([words], "fr").idx_to_token[4:] == sorted(words)
    stored = [*SPECIALS, *"cba"]
    assert vocab == Vocab([], "en", stored)
    for other in (Vocab([], "fr", stored), Vocab([["a", "b", "c"]], "en"), stored):
        assert vocab != other


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


SMALL = Vocab([["a"]], "en")


test_what_is_refused = refusals(
    (lambda: tokenize(None, "en"), TypeError, "text as a string, got None"),
    (lambda: tokenize("a", "EN"), "unknown language 'EN'"),
    (lambda: detokenize("hello", "en"), TypeError, "got the string 'hello': split"),
    (lambda: SMALL.encode(["a", 3]), TypeError, "a word as a string, got 3"),
    (lambda: Vocab(["a b"], "en"), TypeError, "got the string 'a b': split it"),
    (lambda: Vocab([[PAD]], "en"), "'<pad>' occurs in the text"),
    (lambda: SMALL.to_tokens([4, -1]), IndexError, "id -1 is outside .*: 0 to 4"),
    (lambda: SMALL.to_tokens(5), IndexError, "id 5 is outside"),
)


def test_unknown_words_of_a_source_have_ids_in_both_sides_of_its_pair():
    vocab = Vocab([["a", "b"]], "en", extends=True)
    source = vocab.encode(["x", "a", "y", "x"])
    assert len(vocab) == 6 and source.ids == [6, 4, 7, 6]
    assert source.unknown == ["x", "y", "x"] and "x" not in vocab
    target = vocab.extended(source)
    ids = target.encode(["y", "b", "z"]).ids  # z isn't in the source
    assert ids == [7, 5, UNK_ID] and target.to_words([7, 6]) == ["y", "x"]
    many = vocab.encode([f"x{i}" for i in range(SLOTS + 1)]).ids
    assert many == [*range(6, 6 + SLOTS), UNK_ID]
    closed = Vocab([["a", "b"]], "en")
    assert closed.encode(["x"]).ids == [UNK_ID] and closed.extended(source) is closed
