"""Gold links: written and read, linked to pairs by the checksum of their text.

Real text is read from the folder that LEARNING_TO_ALIGN_DATA names; without it, the
tests that need it are skipped, by name.
"""

import hashlib
import re
from functools import partial

import pytest
from helpers import TEXTS, needs, tried, tries
from hypothesis import given
from hypothesis import strategies as st

from utils import gold
from utils.corpora import load_multi30k, load_tsv
from utils.data import Corpus, Pair
from utils.gold import (
    GOLD_HEADER,
    GOLD_SETS,
    gold_links,
    link_gold,
    read_gold,
    read_links,
    text_sha256,
    with_links,
    write_links,
)
from utils.metrics import alignment_error_rate

# --- links as written ---------------------------------------------------------------


def test_links_by_hand():
    assert read_links("0-0 1?2 2-1") == ({(0, 0), (2, 1)}, {(1, 2)})
    assert read_links("0-0 1?2 2-1", False) == ({(0, 0), (1, 2)}, {(2, 1)})
    assert read_links("") == (frozenset(), frozenset())
    assert write_links({(10, 0), (0, 0)}, {(2, 1), (0, 0)}) == "0-0 2?1 10-0"


LINKS = st.frozensets(st.tuples(st.integers(0, 99), st.integers(0, 99)))


@given(LINKS, LINKS)
def test_links_come_back_in_either_direction(sure, possible):
    text = write_links(sure, possible)
    assert read_links(text) == (sure, possible - sure)
    turned = (frozenset((j, i) for i, j in kind) for kind in (sure, possible - sure))
    assert read_links(text, False) == tuple(turned)


@pytest.mark.parametrize(
    "text", ["0:0", "0", "-1-2", "0--1", "0-1-2", "a-b", "1-٢", "0 - 0", "9" * 5000]
)
def test_text_that_is_no_links(text):
    match = f"^'{text}' is no alignment; expected links such as 0-0 .sure. or 1.2 .poss"
    with pytest.raises(ValueError, match=match):
        read_links(text)


@tries
@given(TEXTS | st.text("0123-? "))
def test_any_text_is_links_or_refused(text):
    if found := tried(read_links, text):
        assert read_links(write_links(*found)) == found


def test_a_link_is_sure_or_possible_and_inside():
    pair = Pair(("a", "b"), ("x",), tags=frozenset({"tag"}))
    expected = pair._replace(alignment={(0, 0)}, possible={(1, 0)})
    assert with_links(pair, "0-0 1?0", "here") == expected
    assert with_links(pair, "0-0 0?1", "here", forward=False) == expected
    with pytest.raises(ValueError, match="^here: .* both sure and possible: write it"):
        with_links(pair, "0-0 0?0", "here")
    for link in ("0-1", "0?1", "2-0"):
        outside = f"^here: a link of '{re.escape(link)}' is outside .* of 2 and 1 tok"
        with pytest.raises(ValueError, match=outside):
            with_links(pair, link, "here")


def test_gold_links_are_what_the_error_rate_takes():
    one = Pair(("a",), ("x", "y"), frozenset({(0, 0)}), possible=frozenset({(0, 1)}))
    none = Pair(("a",), ("x",), frozenset())
    assert gold_links([one, none]) == ([{(0, 0)}, set()], [{(0, 1)}, set()])
    links = [{(0, 0), (0, 1)}, set()]
    assert alignment_error_rate(links, *gold_links([one, none])) == (0, 1, 1)
    for pairs in ([], [one, Pair(("a",), ("x",))]):
        with pytest.raises(ValueError, match="gold links are needed, by at least one"):
            gold_links(pairs)


# --- gold sets, with a small one ----------------------------------------------------

PAIRS = [
    Pair(("ein", "hund"), ("a", "dog", ".")),
    Pair(("ja",), ("yes",)),
    Pair(("nein",), ("no",)),
]


def checksum(text):
    return hashlib.sha256(text.encode()).hexdigest()


ROWS = [
    f"{checksum('nein' + chr(9) + 'no')}\t0-0",
    f"{checksum('ein hund' + chr(9) + 'a dog .')}\t0-0 1-1 1?2",
]


@pytest.fixture
def small(tmp_path):
    """Writes a gold set and returns its path."""

    def write(rows=ROWS, header=GOLD_HEADER):
        path = tmp_path / "own.tsv"
        path.write_text("\n".join([header, *rows, ""]), encoding="utf-8")
        return path

    return write


def test_pairs_are_known_by_the_checksum_of_their_tokens(small):
    dog, no = link_gold(PAIRS, small())
    assert (dog.source, dog.alignment) == (("ein", "hund"), {(0, 0), (1, 1)})
    assert (dog.possible, no.possible) == ({(1, 2)}, set())
    assert link_gold(PAIRS + PAIRS, str(small())) == [dog, no]  # each pair once
    corpus = Corpus("Own", "de", "en", {"train": PAIRS[:1], "test": PAIRS[1:]})
    assert link_gold(corpus, small()) == [dog, no]
    turned = [Pair(pair.target, pair.source) for pair in PAIRS]
    assert [
        (p.source, p.target, p.alignment, p.possible)
        for p in link_gold(turned, small())
    ] == [
        (dog.target, dog.source, {(0, 0), (1, 1)}, {(2, 1)}),
        (no.target, no.source, {(0, 0)}, set()),
    ]
    assert text_sha256(("ab",), ("c",)) != text_sha256(("a", "b"), ("c",))


def test_pairs_that_are_not_there(small):
    with pytest.raises(ValueError, match="1 of the 2 pairs of own.tsv .* the 1 given"):
        link_gold(PAIRS[:1], small())
    assert len(link_gold(PAIRS[:1], small(), partial=True)) == 1
    for partly in (True, False):
        with pytest.raises(
            ValueError, match="0 of the 2 .* text that it was made for$"
        ):
            link_gold(PAIRS[1:2], small(), partly)
    match = r'0 of the 120 .* load load_multi30k\("de", "en"\)\["test"\]$'
    with pytest.raises(ValueError, match=match):
        link_gold(PAIRS, "multi30k-de-en")


@pytest.mark.parametrize("name", ["multi30k", "", "none/of.tsv", "."])
def test_names_of_no_set(name):
    match = f"no gold set '{name}': choose multi30k-de-en, tatoeba-en-zh, or give a fi"
    with pytest.raises(ValueError, match=match):
        link_gold(PAIRS, name)


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ([ROWS[0].replace("\t", " ")], "2: expected a SHA-256 checksum, a tab and"),
        ([ROWS[0], "0-0"], "3: expected a SHA-256 checksum, a tab and links"),
        ([ROWS[0].upper()], "2: expected a SHA-256 checksum, a tab and links"),
        ([*ROWS, ROWS[0]], "4: a checksum that came before"),
        ([ROWS[0] + " 0?0"], "2: '0-0 0.0' has a link that is both"),
        ([ROWS[0] + "\t0-0", "x"], "3: expected a SHA-256"),
        ([ROWS[0] + " 0=0"], "2: '0-0 0=0' is no alignment"),
    ],
)
def test_lines_that_are_wrong(small, rows, match):
    with pytest.raises(ValueError, match=f"own.tsv, line {match}"):
        link_gold(PAIRS, small(rows))


def test_links_outside_the_text_and_another_header(small):
    rows = [ROWS[0], ROWS[1] + " 2-0"]
    with pytest.raises(
        ValueError, match="own.tsv, line 3: a link .* of 2 and 3 tokens"
    ):
        link_gold(PAIRS, small(rows))
    turned = [Pair(pair.target, pair.source) for pair in PAIRS]
    with pytest.raises(
        ValueError, match="own.tsv, line 3: a link .* of 3 and 2 tokens"
    ):
        link_gold(turned, small(rows))
    with pytest.raises(
        ValueError, match="own.tsv, line 1: expected the columns sha256"
    ):
        link_gold(PAIRS, small(header="links"))


def test_a_set_that_was_changed(small, monkeypatch, tmp_path):
    (tmp_path / "gold").mkdir()
    small().rename(tmp_path / "gold" / "multi30k-de-en.tsv")
    monkeypatch.setattr(gold, "GOLD_FOLDER", tmp_path / "gold")
    assert len(link_gold(PAIRS, "multi30k-de-en")) == 2
    sums = f"{'0' * 64}  gold/multi30k-de-en.tsv\n"
    (tmp_path / "SHA256SUMS").write_text(sums)
    with pytest.raises(ValueError, match="expected 0{64}. Restore the file, or run"):
        link_gold(PAIRS, "multi30k-de-en")
    with pytest.raises(FileNotFoundError, match="there is no file .*tatoeba-en-zh.tsv"):
        link_gold(PAIRS, "tatoeba-en-zh")


# --- the sets as shipped ------------------------------------------------------------


@pytest.mark.parametrize(("name", "count"), [*zip(GOLD_SETS, (120, 60), strict=True)])
def test_the_shipped_sets(name, count):
    shipped = read_gold(gold.GOLD_FOLDER / f"{name}.tsv")
    assert len(shipped) == count and all(shipped.values())
    for text in shipped.values():
        sure, possible = read_links(text)
        assert sure and write_links(sure, possible) == text


SETS = {
    "multi30k-de-en": ("multi30k", load_multi30k, {}, ("de", "en")),
    "tatoeba-en-zh": (
        "tatoeba/cmn.txt",
        partial(load_tsv, "tatoeba/cmn.txt"),
        {"columns": ("en", "zh"), "skip_bad_lines": True},
        ("en", "zh"),
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(SETS[name][0])) for name in SETS]
)
def test_the_shipped_sets_fit_their_text(name):
    """In both directions, and punctuation that both sides have stands together."""
    _, load, options, direction = SETS[name]
    there = load(*direction, **options)
    back = load(*direction[::-1], **options)
    linked = link_gold(there, name)
    assert len(linked) == len(read_gold(gold.GOLD_FOLDER / f"{name}.tsv"))
    turned = {
        (p.target, p.source, *(frozenset((j, i) for i, j in kind) for kind in p[2::2]))
        for p in link_gold(back, name)
    }
    assert turned == {(p.source, p.target, *p[2::2]) for p in linked}
    ends = {(".", "."), ("?", "?"), (".", "。"), ("?", "？")}
    for pair in linked:
        if (pair.source[-1], pair.target[-1]) in ends:
            assert (len(pair.source) - 1, len(pair.target) - 1) in pair.alignment
    assert link_gold(there["test"], name) == linked  # no model was trained on them
