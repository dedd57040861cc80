"""The check of a text of one's own: each kind is found, and nothing in a good text."""

import csv
import io
import re

import pytest
from helpers import needs
from hypothesis import given
from hypothesis import strategies as st

from utils import data_check
from utils.corpora import load_multi30k, load_tsv
from utils.data import Corpus, Pair
from utils.data_check import check_pairs, read_columns
from utils.text import Vocab

TEXTS = {
    "fr": "Je ne sais pas. Les enfants jouent dans une rue. Il est là.",
    "en": "I was not sure. The children play in the street. You are here and here.",
    "de": "Das ist nicht der Hund. Ich bin hier und die Kinder spielen.",
    "short": "I do. I try. I can read it. He isn't my cousin. I do it.",
    "ru": "Я не знаю. Дети играют на улице.",
    "html": "caf&eacute; &#39;",
    "firm": "R&D; caf",
    "numbers": "1 234",
}
KINDS = [  # the texts of both sides, the languages that are named, what is found
    ("fr en", "fr en", []),
    ("fr ru", "fr ru", []),
    ("fr short", "fr en", []),  # no Polish
    ("fr en", "ca sw", []),  # languages that nothing is known of
    ("fr en", "de en", ["the source, de .German., seems to be in fr .French.: are"]),
    ("fr ru", "fr en", ["the target, en .English., seems to be in Cyrillic letters"]),
    ("fr en", "en fr", ["the source, en .* in fr", "the target, fr .* in en"]),
    ("ru de", "de uk", ["the source, de .* Cyrillic", "the target, uk, .* Latin"]),
    ("html de", "fr de", ["20 lines with HTML entities .*lines 1, 2, 3, 4, 5, …"]),
    ("firm de", "fr de", []),
    ("numbers fr", "en fr", ["the source, en .English., seems to be in numbers"]),
]


def pairs_of(sources, targets):
    rows = enumerate(zip(sources, targets, strict=True), 1)
    return [Pair(*texts, line=line) for line, texts in rows]


@pytest.mark.parametrize("texts, languages, findings", KINDS)
def test_each_kind_is_found_and_no_other(texts, languages, findings):
    sides = ([TEXTS[name]] * 20 for name in texts.split())
    found = check_pairs(pairs_of(*sides), languages.split())
    assert len(found) == len(findings), found
    assert all(map(re.match, findings, found)), found


def test_the_same_text_on_both_sides():
    texts = [TEXTS["en"]] * 8 + [TEXTS["fr"]] * 12
    (said,) = check_pairs(pairs_of(texts, [TEXTS["en"]] * 20), ("fr", "en"))
    assert said.startswith("8 lines with the same text on both sides (lines 1, 2,")
    with pytest.raises(ValueError, match="most pairs have the same text"):
        check_pairs(pairs_of(texts[:12], texts[:12]), ("fr", "en"))


def test_lines_beside_another_translation_are_noticed():
    texts, longer = [["a" * n + end for n in range(1, 101)] for end in "ab"]
    (said,) = check_pairs(pairs_of(texts, longer[::-1]), ("xx", "yy"))
    assert said.startswith("short sources don't have short targets")
    words = ["word" + "s" * (n % 2) for n in range(100)]  # as in a sorted file
    for sides in ((texts, longer), (words, words[::-1])):
        assert not check_pairs(pairs_of(*sides), ("xx", "yy"))


cells = st.text(st.sampled_from('ab",\u00a0 '), min_size=1).filter(str.strip)


@given(st.lists(st.tuples(cells, cells), min_size=1), st.booleans())
def test_what_excel_writes_comes_back(rows, all_quoted):
    """By Python's csv module, which quotes as Excel does, or quotes all."""
    file = io.StringIO()
    how = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    csv.writer(file, "excel-tab", quoting=how).writerows(rows)
    lines = file.getvalue().splitlines()
    assert [*read_columns(lines, None, "auto", "a.tsv", {})[0].values()] == rows
    as_written = [tuple(line.split("\t")) for line in lines]
    read, said = read_columns(lines, None, "keep", "a.tsv", {})
    assert [*read.values()] == as_written and not said


def test_what_is_too_long_is_left_out_of_training_and_named_in_the_test():
    vocab, fits, long = Vocab([["a"]], "en"), "a " * 10, "a " * 11
    pairs = pairs_of([fits, long, fits, fits], [fits, fits, long, fits])
    corpus = Corpus("own", "en", "fr", dict.fromkeys(("train", "test"), pairs))
    kept, findings = data_check.without_long(corpus, vocab, vocab, 10)
    assert [pair.line for pair in kept["train"]] == [1, 4] and kept["test"] == pairs
    assert findings == [
        "train: 2 lines of more than 10 pieces left out (lines 2, 3)",
        "test: 1 line of more than 10 pieces counted as an empty translation (line 2)",
    ]
    assert data_check.without_long(corpus, vocab, vocab, 11) == (corpus, [])
    with pytest.raises(ValueError, match="train: 4 lines .*: no pair is left"):
        data_check.without_long(corpus, vocab, vocab, 9)


@pytest.mark.slow
@needs("multi30k")
@needs("tatoeba")
def test_what_is_said_of_text_that_people_use():
    captions = load_multi30k()
    assert tuple(map(len, captions.splits.values())) == (29_000, 1_014, 1_000)
    (entities,) = check_pairs(captions["train"], ("de", "en"))
    assert entities.startswith("16 lines with HTML entities")
    chinese = load_tsv("tatoeba/cmn.txt", "en", "zh", skip_bad_lines=True)
    quotes, skipped = chinese.findings
    assert quotes.startswith("89 lines with quotation marks of Excel, now taken away")
    assert skipped.startswith("1 line left out: too few columns") and "13" in skipped
