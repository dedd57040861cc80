"""Gold links: written and read, linked to pairs by the checksum of their text.

Real text is read from the folder that LEARNING_TO_ALIGN_DATA names; without it, the
tests that need it are skipped, by name.
"""

import hashlib
import re
from functools import partial

import pytest
from helpers import needs, tries
from hypothesis import given
from hypothesis import strategies as st

from utils import gold
from utils.corpora import load_multi30k, load_tsv
from utils.data import Corpus, Pair
from utils.gold import (
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


@tries
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


# --- gold sets ----------------------------------------------------------------------

PAIRS = [
    Pair(("ein", "hund"), ("a", "dog", ".")),
    Pair(("ja",), ("yes",)),
    Pair(("nein",), ("no",)),
]
NAME = "multi30k-de-en"


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A gold set of two pairs, in the place of the shipped one -> its path."""
    path = tmp_path / "gold" / f"{NAME}.tsv"
    rows = []
    for text, links in (("nein\tno", "0-0"), ("ein hund\ta dog .", "0-0 1-1 1?2")):
        rows.append(f"{hashlib.sha256(text.encode()).hexdigest()}\t{links}\n")
    path.parent.mkdir()
    path.write_text("sha256\tlinks\n" + "".join(rows), encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  gold/{NAME}.tsv\n")
    monkeypatch.setattr(gold, "GOLD_FOLDER", path.parent)
    return path


def test_pairs_are_known_by_the_checksum_of_their_tokens(small):
    dog, no = link_gold(PAIRS, NAME)
    assert (dog.source, dog.alignment) == (("ein", "hund"), {(0, 0), (1, 1)})
    assert (dog.possible, no.possible) == ({(1, 2)}, set())
    assert link_gold(PAIRS + PAIRS, NAME) == [dog, no]  # each pair once
    corpus = Corpus("Own", "de", "en", {"train": PAIRS[:1], "test": PAIRS[1:]})
    assert link_gold(corpus, NAME) == [dog, no]
    turned, _ = link_gold([Pair(p.target, p.source) for p in PAIRS], NAME)
    assert turned[:2] == (dog.target, dog.source)
    assert (turned.alignment, turned.possible) == ({(0, 0), (1, 1)}, {(2, 1)})
    assert text_sha256(("ab",), ("c",)) != text_sha256(("a", "b"), ("c",))


def test_what_is_no_gold_set_of_this_text(small):
    match = (
        r'1 of the 2 pairs .* the 1 given: load load_multi30k\("de", "en"\)\["test"\]$'
    )
    with pytest.raises(ValueError, match=match):
        link_gold(PAIRS[:1], NAME)
    with pytest.raises(ValueError, match="must be one of .'multi30k-de-en', 'tatoeba"):
        link_gold(PAIRS, "multi30k")
    small.write_text("changed")
    with pytest.raises(
        ValueError, match="Restore the file, or run `python -m tools.go"
    ):
        link_gold(PAIRS, NAME)


@pytest.mark.parametrize(("name", "count"), [*zip(GOLD_SETS, (120, 60), strict=True)])
def test_the_shipped_sets(name, count):
    shipped = read_gold(gold.GOLD_FOLDER / f"{name}.tsv")
    assert len(shipped) == count and {len(digest) for digest in shipped} == {64}
    for text in shipped.values():
        sure, possible = read_links(text)
        assert sure and write_links(sure, possible) == text


TATOEBA = partial(
    load_tsv, "tatoeba/cmn.txt", columns=("en", "zh"), skip_bad_lines=True
)
LOADS = {"multi30k-de-en": load_multi30k, "tatoeba-en-zh": TATOEBA}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, source, target",
    [
        pytest.param("multi30k-de-en", "de", "en", marks=needs("multi30k")),
        pytest.param("tatoeba-en-zh", "en", "zh", marks=needs("tatoeba/cmn.txt")),
    ],
)
def test_the_shipped_sets_fit_their_text(name, source, target):
    """In both directions, and punctuation that both sides have stands together."""
    there, back = (LOADS[name](*way) for way in ((source, target), (target, source)))
    linked = link_gold(there, name)
    assert link_gold(there["test"], name) == linked  # no model was trained on them
    turned = {
        (p.target, p.source, *(frozenset((j, i) for i, j in kind) for kind in p[2::2]))
        for p in link_gold(back, name)
    }
    assert turned == {(p.source, p.target, *p[2::2]) for p in linked}
    ends = {(".", "."), ("?", "?"), (".", "。"), ("?", "？")}
    for pair in linked:
        if (pair.source[-1], pair.target[-1]) in ends:
            assert (len(pair.source) - 1, len(pair.target) - 1) in pair.alignment
