"""The files of the Village corpus: sizes, words, splits, phenomena, gold links."""

import re
import subprocess
import sys
from collections import Counter, namedtuple
from itertools import chain, pairwise
from pathlib import Path

import pytest

from utils.files import read_lines
from utils.gold import read_links

DATA = Path(__file__).resolve().parents[2] / "data"
SIZES = {"train": 24_000, "valid": 1_000, "test": 1_000, "long": 540}
LANGUAGES = ("en", "fr", "zh")
TEST_ONLY = {"new-name", "held-out-pair", "far-from-train", "source-example"}
# In a pattern, the name of a list stands for its words
LISTS = {
    "kin": "(?:爸爸|妈妈|哥哥|妹妹|爷爷|奶奶|叔叔|姑姑|儿子|女儿)",
    "colour": "(?:红|白|黑|绿|蓝|黄)",
}
HERE, TABLES = Path(__file__).parent, DATA / "village" / "tables"
HELD_OUT = [tuple(p.split()) for p in read_lines(TABLES / "held_out.tsv")[2:]]
NAMES = read_lines(TABLES / "names.tsv")
NEW_NAMES = [line.split("\t")[:2] for line in NAMES if line.endswith("\ttest")]
PATTERNS = [line.split("\t") for line in read_lines(HERE / "village_patterns.tsv")[1:]]
READ_BY_WORD = read_lines(HERE / "village_sentences.tsv")[1:]
Row = namedtuple("Row", "en fr zh en_fr en_zh fr_zh tags")
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


@pytest.fixture(scope="module")
def village():
    """Split -> rows; the tags are a set."""
    found = {}
    for split in SIZES:
        header, *lines = read_lines(DATA / "village" / f"{split}.tsv.gz")
        assert header.replace("-", "_").split() == [*Row._fields]
        rows = (Row(*line.split("\t")) for line in lines)
        found[split] = [r._replace(tags={*r.tags.split(",")} - {""}) for r in rows]
    return found


@pytest.fixture(scope="module")
def rows(village):
    return [*chain.from_iterable(village.values())]


def sides(rows, lang):
    return [getattr(row, lang).split() for row in rows]


def words(rows, lang):
    return Counter(chain.from_iterable(sides(rows, lang)))


def tags(rows):
    return Counter(tag for row in rows for tag in row.tags)


@pytest.mark.slow
def test_the_generator_writes_the_same_bytes():
    """The four files, SHA256SUMS and the tables of the datasheet."""
    command = [sys.executable, DATA / "village" / "generate.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sizes_and_lengths(village):
    assert {split: len(rows) for split, rows in village.items()} == SIZES
    for split, rows in village.items():
        low, high = (31, 60) if split == "long" else (3, 30)
        lengths = [len(side) for lang in LANGUAGES for side in sides(rows, lang)]
        assert low <= min(lengths) <= max(lengths) <= high


@pytest.mark.parametrize("lang", LANGUAGES)
def test_sentences(rows, lang):
    """In lower case, words apart by one space, none of them twice."""
    texts = [getattr(row, lang) for row in rows]
    assert not [t for t in texts if t != t.lower() or t != " ".join(t.split())]
    assert not [text for text, n in Counter(texts).items() if n > 1]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_words_are_few_and_frequent(village, lang):
    train = words(village["train"], lang)
    assert len(train) <= 800
    assert min(train.values()) >= 10
    new = {zh if lang == "zh" else name for name, zh in NEW_NAMES}
    assert len(new) == 8 and not new & set(train)
    assert set(words(village["test"], lang)) - set(train) == new
    assert set(words(village["valid"] + village["long"], lang)) <= set(train)


def test_held_out_pairs(village):
    """They stand in test alone, and there with their tag; their words in train."""
    assert len(HELD_OUT) == 16
    for split, rows in village.items():
        found = Counter()
        for row in rows:
            here = {(a, b.removesuffix("s")) for a, b in pairwise(row.en.split())}
            here |= {(a, b) for a, b in pairwise(row.en.split())}
            found.update(here.intersection(HELD_OUT))
            assert here.isdisjoint(HELD_OUT) or "held-out-pair" in row.tags, row.en
        assert found.keys() == (set(HELD_OUT) if split == "test" else set())
        assert split != "test" or min(found.values()) >= 3
    train = words(village["train"], "en")
    assert min(train[word] for pair in HELD_OUT for word in pair) >= 80


def changed(sentence, *instead):
    """The sentence without one of its words, or with something instead of it."""
    return [(*sentence[:k], *instead, *sentence[k + 1 :]) for k in range(len(sentence))]


def test_no_test_sentence_is_within_one_word_of_training(village):
    test = {tuple(s) for s in sides(village["test"], "en") if len(s) > 5}
    other = test.union(*(changed(s, None) for s in test))
    shorter = set().union(*map(changed, test))
    for sentence in map(tuple, sides(village["train"], "en")):
        assert other.isdisjoint(changed(sentence, None) + changed(sentence)), sentence
        assert sentence not in shorter


def test_phenomena_are_frequent(village):
    train, test = tags(village["train"]), tags(village["test"])
    shown = (train | test).keys() - TEST_ONLY
    assert min(train[tag] for tag in shown) >= 200
    assert min(test[tag] for tag in shown) >= 20
    assert not TEST_ONLY & train.keys()
    assert tags(village["long"])["long-distance"] >= SIZES["long"] / 2


@pytest.mark.slow
@pytest.mark.parametrize("lang, name, pattern, fault", PATTERNS)
def test_no_sentence_has_a_fault_that_was_found(rows, lang, name, pattern, fault):
    """village_patterns.tsv: language, name, pattern, a sentence with the fault."""
    for key, words in LISTS.items():
        pattern = pattern.replace(f"{{{key}}}", words)
    assert re.search(pattern, fault)
    texts = (getattr(row, lang) for row in rows)
    assert not [text for text in texts if re.search(pattern, text)][:3]


@pytest.mark.parametrize("line", READ_BY_WORD)
def test_links_of_sentences_that_were_read_word_by_word(rows, line):
    read = line.split("\t")
    assert [[*row[:6]] for row in rows if row.en == read[0]] == [read]


@pytest.fixture(scope="module", params=["en_fr", "en_zh", "fr_zh"])
def linked(request, rows):
    """The name of a column, and of each fourth row: two sentences, their sure links."""
    one, other = request.param.split("_")
    return request.param, [
        (getattr(r, one).split(), getattr(r, other).split(), sure_of(r, request.param))
        for r in rows[::4]
    ]


def sure_of(row, column):
    return read_links(getattr(row, column))[0]


@pytest.mark.slow
def test_no_word_surely_stands_for_two_copies_of_a_word(linked):
    for a, b, sure in linked[1]:
        pairs = [(i, b[j]) for i, j in sure] + [(a[i], -j) for i, j in sure]
        assert len(pairs) == len(set(pairs)), (a, b, sure)


@pytest.mark.slow
def test_function_words_are_linked_as_the_guidelines_say(linked):
    column, all_rows = linked
    counted = Counter()
    for a, b, sure in all_rows:
        counted.update((a[i], b[j]) for i, j in sure)
    for name, side, words, allowed in SURELY:
        if name == column:
            allowed = {*allowed.split(), None}
            bad = [p for p in counted if p[side] in words.split()]
            assert {pair[1 - side] for pair in bad} <= allowed, words


@pytest.mark.slow
def test_the_third_pair_agrees_with_the_other_two(village):
    """What French and Chinese words share with an English one, they share."""
    agreed = total = 0
    for row in village["test"]:
        to_fr, to_zh = sure_of(row, "en_fr"), sure_of(row, "en_zh")
        both = {(j, k) for i, j in to_fr for other, k in to_zh if i == other}
        agreed += len(both & frozenset.union(*read_links(row.fr_zh)))
        total += len(both)
    assert agreed >= 0.97 * total > 10_000
