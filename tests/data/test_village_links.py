"""The gold links of the Village corpus keep the guidelines of data/README.md."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
READ = Path(__file__).with_name("village_sentences.tsv")
LANGUAGES = {"en_fr": ("en", "fr"), "en_zh": ("en", "zh"), "fr_zh": ("fr", "zh")}
CLASSIFIERS = "个 匹 颗 根 本 封 份 首 幅 顶 件 条 张 辆 朵 棵 扇 座 所"
# (column, side of the words, words, the words that they may surely stand for)
SURELY = [
    ("en_fr", 0, "do does did up away off", ""),
    ("en_fr", 0, "the", "le la l' les du des au aux"),
    ("en_fr", 0, "a an", "un une de d' des"),
    ("en_fr", 0, "to", "à au aux pour"),
    ("en_fr", 1, "ne n' est-ce se", ""),
    ("en_zh", 0, "the do does did up away off", ""),
    ("en_zh", 0, "a an", "一"),
    ("en_zh", 0, "to", "给"),
    ("en_zh", 0, "is are am was were", "是 在 有 没有"),
    ("en_zh", 0, "will", "会 要"),
    ("en_zh", 1, "很 吗 了 着 把 就 地 掉 " + CLASSIFIERS, ""),
    ("en_zh", 1, "的", "'s of who whose that where"),
    ("en_zh", 1, "过", "has have"),
    ("en_zh", 1, "被", "by"),
    ("fr_zh", 0, "ne n' est-ce se", ""),
    ("fr_zh", 1, "很 吗 了 着 把 就 地 掉 " + CLASSIFIERS, ""),
    ("fr_zh", 1, "的", "de d' du des qui que qu' dont où"),
    ("fr_zh", 1, "过", "a ai as ont avons"),
]


@cache
def links_of(text):
    """(sure, possible): sets of pairs."""
    found = re.findall(r"(\d+)([-?])(\d+)", text)
    return [{(int(i), int(j)) for i, kind, j in found if kind == k} for k in "-?"]


@pytest.fixture(scope="session", params=LANGUAGES)
def linked(request, rows):
    """The name of a column, and of each fourth row: two sentences, links as text."""
    one, other = LANGUAGES[request.param]
    return request.param, [
        (getattr(r, one).split(), getattr(r, other).split(), getattr(r, request.param))
        for r in rows[::4]
    ]


@pytest.mark.parametrize("line", READ.read_text(encoding="utf-8").splitlines()[1:])
def test_sentences_that_were_read_word_by_word(rows, line):
    read = tuple(line.split("\t"))
    assert [row[:6] for row in rows if row.en == read[0]] == [read]


def test_no_word_surely_stands_for_two_copies_of_a_word(linked):
    for a, b, text in linked[1]:
        if len({*a}) < len(a) or len({*b}) < len(b):
            sure, _ = links_of(text)
            pairs = [(i, b[j]) for i, j in sure] + [(a[i], -j) for i, j in sure]
            assert len(pairs) == len(set(pairs)), (a, b, text)


def test_function_words_are_linked_as_the_guidelines_say(linked):
    column, all_rows = linked
    counted = Counter()
    for a, b, text in all_rows:
        counted.update((a[i], b[j]) for i, j in links_of(text)[0])
    for name, side, words, allowed in SURELY:
        if name == column:
            allowed = {*allowed.split(), None}
            bad = [p for p in counted if p[side] in words.split()]
            assert {pair[1 - side] for pair in bad} <= allowed, words


def test_the_third_pair_agrees_with_the_other_two(village):
    """What French and Chinese words share with an English one, they share."""
    agreed = total = 0
    for row in village["test"]:
        to_fr, to_zh = links_of(row.en_fr)[0], links_of(row.en_zh)[0]
        both = {(j, k) for i, j in to_fr for other, k in to_zh if i == other}
        agreed += len(both & set.union(*links_of(row.fr_zh)))
        total += len(both)
    assert agreed >= 0.97 * total > 10_000
