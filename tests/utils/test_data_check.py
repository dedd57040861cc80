"""The check of a text of one's own: each kind is found, and nothing in a good text."""

import csv
import io
import re

import pytest
from helpers import needs, tries
from hypothesis import given
from hypothesis import strategies as st

from utils.corpora import load_multi30k, load_tsv
from utils.data import Corpus, Pair
from utils.data_check import (
    check_pairs,
    is_header,
    is_long,
    read_columns,
    told,
    without_long,
    without_repeats,
)
from utils.text import Vocab

FRENCH = ["Je ne sais pas.", "Les enfants jouent dans une rue.", "Vous êtes là et là."]
ENGLISH = [
    "I was not sure.",
    "The children play in the street.",
    "You are here and here.",
]
GERMAN = [
    "Das ist nicht der Hund.",
    "Ich bin hier und die Kinder spielen.",
    "Es ist ein Haus.",
]
RUSSIAN = ["Я не знаю.", "Дети играют на улице.", "Вы здесь."]


def pairs_of(sources, targets, times=1):
    rows = list(zip(sources, targets, strict=True)) * times
    return [Pair(*texts, line=line) for line, texts in enumerate(rows, 1)]


def test_a_finding_counts_and_names_five_lines():
    assert told([4], "hold", "tabs") == "1 line holds tabs (line 4)"
    many = "1,200 pairs left out (lines 1, 2, 3, 4, 5, …)"
    assert told(range(1, 1201), "", "left out", "pair") == many


ENTITIES, NUMBERS = ["&eacute;a", "R&D;", "&#39;"], ["1", "2", "a"]
KINDS = [
    (FRENCH, ENGLISH, "fr en", []),
    (FRENCH, RUSSIAN, "fr ru", []),
    (FRENCH, ENGLISH, "ca sw", []),  # languages that nothing is known of
    (
        FRENCH,
        ENGLISH,
        "de en",
        ["the source, de .German., seems to be in fr .French.:"],
    ),
    (FRENCH, RUSSIAN, "fr en", ["the target, en .English., .* in Cyrillic letters"]),
    (FRENCH, ENGLISH, "en fr", ["the source .* in fr .* the target in en .* swap"]),
    (RUSSIAN, GERMAN, "de uk", ["the source .* Cyrillic .* Latin letters: swap"]),
    (ENGLISH, ENGLISH, "fr en", ["18 lines hold the same text", "the source, fr"]),
    (ENTITIES, GERMAN, "fr de", ["12 lines hold HTML entities such as &eacute; "]),
    (NUMBERS, FRENCH, "en fr", ["the source, en .English., seems to be in numbers"]),
]


@pytest.mark.parametrize("sources, targets, languages, findings", KINDS)
def test_each_kind_is_found_and_no_other(sources, targets, languages, findings):
    found = check_pairs(pairs_of(sources, targets, 6), languages.split())
    assert len(found) == len(findings), found
    for finding, expected in zip(found, findings, strict=True):
        assert re.match(expected, finding)


def test_lines_beside_another_translation_are_noticed():
    texts, longer = [["a" * n + end for n in range(1, 101)] for end in "ab"]
    (said,) = check_pairs(pairs_of(texts, longer[::-1]), ("xx", "yy"))
    assert said.startswith("short sources don't have short targets")
    assert not check_pairs(pairs_of(texts, longer), ("xx", "yy"))


def test_a_header_is_made_of_names_alone():
    assert is_header(("French", "English_text"), ("fr", "en"))
    assert is_header(("tlh", "fr"), ("fr", "tlh"))
    for sides in (("French", "Hello"), ("I speak French", "Sentence"), ("", "id"), ()):
        assert not is_header(sides, ("fr", "en"))


# --- columns ----------------------------------------------------------------------

cells = st.text(st.sampled_from('ab",\u00a0 '), min_size=1).filter(str.strip)


@tries
@given(st.lists(st.tuples(cells, cells), min_size=1), st.booleans())
def test_what_excel_writes_comes_back(rows, all_quoted):
    """By Python's csv module, which quotes as Excel does, or quotes all."""
    file = io.StringIO()
    how = csv.QUOTE_ALL if all_quoted else csv.QUOTE_MINIMAL
    csv.writer(file, "excel-tab", quoting=how).writerows(rows)
    lines = file.getvalue().splitlines()
    assert read_columns(lines, None, "undo", "a.tsv")[0] == rows
    assert read_columns(lines, None, "keep", "a.tsv")[0] == [
        tuple(line.split("\t")) for line in lines
    ]


@pytest.mark.parametrize(
    "lines, undone, said",
    [
        (
            ['"a ""b"""\tc', "d\te", "f\tg"],
            True,
            "1 line holds quotation marks of Excel",
        ),
        (['"a"\tb', '"c"\td', "e\tf"], True, "2 lines hold quotation marks of Excel"),
        (
            ['"a, b"\tc', "d\te", "f\tg"],
            False,
            "1 line holds a text in quotation marks",
        ),
        (['"a" "b"\tc', '"d"\te', "f\tg"], False, None),
        (['a "b"\tc', "d\te"], False, None),
    ],
)
def test_only_quotes_that_are_surely_excels_are_undone(lines, undone, said):
    rows, findings = read_columns(lines, None, "auto", "a.tsv")
    assert (rows[0] != tuple(lines[0].split("\t"))) == undone
    assert [finding.startswith(said) for finding in findings] == [True] * bool(said)


def test_a_column_of_numbers_is_refused_beside_columns_of_text():
    lines = ["1\ta\t7\tb", "2\tc\t8\td", "3\te"]
    with pytest.raises(ValueError, match="a.tsv: .* numbers. .*: --columns 2 4$"):
        read_columns(lines, None, "auto", "a.tsv")
    rows, _ = read_columns(["1\tone", "2\ttwo"], None, "auto", "a.tsv")
    assert rows == [("1", "one"), ("2", "two")]  # a task of one's own


# --- what is left out -------------------------------------------------------------

splits = st.fixed_dictionaries(
    dict.fromkeys(("train", "valid", "test"), st.lists(st.sampled_from("abcdef")))
)


@tries
@given(splits)
def test_no_pair_is_in_two_splits(letters):
    before = {s: pairs_of(own, own) for s, own in letters.items()}
    left = set(letters["train"]) - set(letters["valid"]) - set(letters["test"])
    if not left:
        with pytest.raises(ValueError, match="no pair is left to train on"):
            without_repeats(before)
        return
    kept, findings = without_repeats(before)
    assert kept["test"] == before["test"]
    valid = [c for c in letters["valid"] if c not in letters["test"]]
    assert [pair.source for pair in kept["valid"]] == valid
    train = [pair.source for pair in kept["train"]]
    assert train == [c for c in dict.fromkeys(letters["train"]) if c in left]
    assert bool(findings) == (kept != before)


def test_what_is_too_long_is_left_out_of_training_and_named_in_the_test():
    vocab = Vocab([["a"]], "en")
    fits, long = "a " * 10, "a " * 11
    pairs = pairs_of([fits, long, fits, fits], [fits, fits, long, fits])
    corpus = Corpus("own", "en", "fr", dict.fromkeys(("train", "test"), pairs))
    assert [is_long(text, vocab, 10) for text in (fits, long)] == [False, True]
    kept, findings = without_long(corpus, vocab, vocab, 10)
    assert [pair.line for pair in kept["train"]] == [1, 4] and kept["test"] == pairs
    assert findings == [
        "train: 2 pairs of more than 10 pieces left out (lines 2, 3)",
        "test: 1 pair of more than 10 pieces counted as an empty translation (line 2)",
    ]
    assert without_long(corpus, vocab, vocab, 11) == (corpus, [])
    with pytest.raises(ValueError, match="train: 4 pairs .*: no pair is left"):
        without_long(corpus, vocab, vocab, 9)


# --- real text --------------------------------------------------------------------


@pytest.mark.slow
@needs("multi30k")
@needs("tatoeba")
def test_what_is_said_of_text_that_people_use():
    pairs, kinds = load_multi30k()["train"], []
    for languages in (("de", "en"), ("en", "de")):
        kinds.append(
            [finding.split(" (")[0] for finding in check_pairs(pairs, languages)]
        )
    entities = "16 lines hold HTML entities such as &amp;"
    assert kinds[0] == [entities] and "source" in kinds[1][1] and len(kinds[1]) == 2
    chinese = load_tsv("tatoeba/cmn.txt", "en", "zh", skip_bad_lines=True)
    quotes, skipped = chinese.findings
    assert quotes.startswith("89 lines hold quotation marks of Excel, now taken away")
    assert (
        skipped == "1 line left out: too few columns, 1 instead of at least 2 (line 13)"
    )
