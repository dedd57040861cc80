"""Gold links: written and read, linked to pairs by the checksum of their text."""

import hashlib
import re

import pytest
from helpers import needs
from hypothesis import given
from hypothesis import strategies as st

from utils import gold
from utils.corpora import load_multi30k, load_tsv
from utils.data import Corpus, Pair
from utils.gold import gold_links, link_gold, read_links, with_links, write_links
from utils.metrics import alignment_error_rate

LINKS = st.frozensets(st.tuples(st.integers(0, 99), st.integers(0, 99)))


@given(LINKS, LINKS)
def test_links_come_back_in_either_direction(sure, possible):
    text = write_links(sure, possible)
    assert read_links(text) == (sure, possible - sure)
    turned = (frozenset((j, i) for i, j in kind) for kind in (sure, possible - sure))
    assert read_links(text, False) == tuple(turned)
    assert write_links({(10, 0), (0, 0)}, {(2, 1), (0, 0)}) == "0-0 2?1 10-0"


FORM = "is no alignment; expected links such as 0-0 .sure. or 1.2 .possible."
BAD_LINKS = {
    **dict.fromkeys(["0", "-1-2", "0--1", "0-1-2", "1-٢", "0 - 0", "9" * 5000], FORM),
    **dict.fromkeys(["0-1", "0?1", "2-0"], "is outside .* of 2 and 1 words"),
}


def test_links_stand_between_the_words_of_a_pair():
    pair = Pair(("a", "b"), ("x",), tags=frozenset({"tag"}))
    expected = pair._replace(alignment={(0, 0)}, possible={(1, 0)})
    assert with_links(pair, "0-0 1?0", "here") == expected
    assert with_links(pair, "0-0 0?1", "here", forward=False) == expected
    for text, said in BAD_LINKS.items():
        match = f"^here: (a link of )?'{re.escape(text)}' {said}"
        with pytest.raises(ValueError, match=match):
            with_links(pair, text, "here")


def test_gold_links_are_what_the_error_rate_takes():
    one = Pair(("a",), ("x", "y"), frozenset({(0, 0)}), possible=frozenset({(0, 1)}))
    links = gold_links([one, Pair(("a",), ("x",), frozenset())])
    assert links == ([{(0, 0)}, set()], [{(0, 1)}, set()])
    assert alignment_error_rate([{(0, 0), (0, 1)}, set()], *links) == (0, 1, 1)
    for pairs in ([], [one, Pair(("a",), ("x",))]):
        with pytest.raises(ValueError, match="gold links are needed, by at least one"):
            gold_links(pairs)


PAIRS = [Pair("Ein Hund", "A dog."), Pair("Ja", "Yes"), Pair("Nein", "No")]
NAME = "multi30k-de-en"


def test_pairs_are_known_by_the_checksum_of_their_text(tmp_path, monkeypatch):
    rows = {"Nein\tNo": "4\t2\t0-0", "Ein Hund\tA dog.": "3 8\t1 5 6\t0-0 1-1 1?2"}
    rows = {hashlib.sha256(text.encode()).hexdigest(): rows[text] for text in rows}
    path, lines = tmp_path / "gold" / f"{NAME}.tsv", map("\t".join, rows.items())
    path.parent.mkdir()
    path.write_text("\n".join([gold.GOLD_HEADER, *lines]), encoding="utf-8")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    (tmp_path / "SHA256SUMS").write_text(f"{digest}  gold/{NAME}.tsv\n")
    monkeypatch.setattr(gold, "GOLD_FOLDER", path.parent)
    dog, no = link_gold(PAIRS, NAME)
    links = {"alignment": {(0, 0), (1, 1)}, "possible": {(1, 2)}}
    assert dog == PAIRS[0]._replace(**links, ends=((3, 8), (1, 5, 6)))
    assert no == PAIRS[2]._replace(alignment={(0, 0)}, ends=((4,), (2,)))
    assert link_gold(PAIRS + PAIRS, NAME) == [dog, no]  # each pair once
    corpus = Corpus("Own", "de", "en", {"train": PAIRS[:1], "test": PAIRS[1:]})
    assert link_gold(corpus, NAME) == [dog, no]
    turned, _ = link_gold([Pair(p.target, p.source) for p in PAIRS], NAME)
    links["possible"] = {(2, 1)}
    assert turned == Pair(*dog[1::-1], **links, ends=((1, 5, 6), (3, 8)))
    few = r'1 of the 2 pairs .* the 1 given: load load_multi30k\("de", "en"\)\["test"'
    with pytest.raises(ValueError, match=few):
        link_gold(PAIRS[:1], NAME)
    with pytest.raises(ValueError, match="must be one of .'multi30k-de-en', 'tatoeba"):
        link_gold(PAIRS, "multi30k")
    path.write_text("changed")
    with pytest.raises(ValueError, match="Restore the file, or run `python -m tools"):
        link_gold(PAIRS, NAME)


@pytest.mark.slow
@needs("multi30k")
@needs("tatoeba/cmn.txt")
def test_the_shipped_sets_fit_their_text():
    tatoeba = load_tsv("tatoeba/cmn.txt", "en", "zh", skip_bad_lines=True)
    for corpus, name in zip((load_multi30k(), tatoeba), gold.GOLD_SETS, strict=True):
        # No model was trained on them.
        assert link_gold(corpus["test"], name) == link_gold(corpus, name)
