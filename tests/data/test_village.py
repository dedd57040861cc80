"""The files of the Village corpus: sizes, words, splits, phenomena."""

import re
import subprocess
import sys
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
SIZES = {"train": 24_000, "valid": 1_000, "test": 1_000, "long": 540}
LANGUAGES = ("en", "fr", "zh")
HELD_OUT = """beautiful garden, big tree, black dog, blue boat, fresh egg, good doctor,
    green hat, hot milk, new chair, old bridge, red door, little duck, white dress,
    white horse, yellow flower, young fisher"""
HELD_OUT = [tuple(pair.split()) for pair in HELD_OUT.split(",")]
NEW_NAMES = {
    "en": "rosa lucy olga irene oscar max adam felix",
    "fr": "rosa lucy olga irene oscar max adam felix",
    "zh": "罗莎 露西 奥尔加 艾琳 奥斯卡 马克斯 亚当 菲利克斯",
}
TEST_ONLY = {"new-name", "held-out-pair", "far-from-train", "source-example"}
# In a pattern, the name of a list stands for its words
LISTS = {
    "kin": "(?:爸爸|妈妈|哥哥|妹妹|爷爷|奶奶|叔叔|姑姑|儿子|女儿)",
    "colour": "(?:红|白|黑|绿|蓝|黄)",
}
TABLE = Path(__file__).with_name("village_patterns.tsv").read_text(encoding="utf-8")
PATTERNS = [line.split("\t") for line in TABLE.splitlines()[1:]]


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
    new = set(NEW_NAMES[lang].split())
    assert not new & set(train)
    assert set(words(village["test"], lang)) - set(train) == new
    assert set(words(village["valid"] + village["long"], lang)) <= set(train)


def test_held_out_pairs(village):
    """They stand in test alone, and there with their tag; their words in train."""
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
