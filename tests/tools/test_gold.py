"""The two passes of the gold sets: merged, compared, and stored as they are merged."""

import hashlib

import pytest

from tools import gold
from utils.gold import GOLD_FOLDER, GOLD_HEADER, GOLD_SETS, read_links

KEYS = [digit * 64 for digit in "ab"]


@pytest.fixture
def folder(tmp_path):
    """A folder as data/gold with passes of one pair for each set, and foreign sums."""
    (tmp_path / "gold" / "passes").mkdir(parents=True)
    for name in GOLD_SETS:
        for letter, links in (("A", "0-0 1?1"), ("B", "0-0 1-1")):
            text = f"{GOLD_HEADER}\n{KEYS[0]}\t{links}\n"
            path = tmp_path / "gold" / "passes" / f"{letter}-{name}.tsv"
            path.write_text(text, encoding="utf-8")
    (tmp_path / "SHA256SUMS").write_text(f"{KEYS[1]}  village/x\n{KEYS[1]}  gold/old\n")
    return tmp_path / "gold"


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ("0-0", "0-0", "0-0"),
        ("0-0", "0?0", "0?0"),
        ("0?0", "0?0", "0?0"),
        ("0-0", "", "0?0"),
        ("", "0?0", "0?0"),
        ("", "", ""),
        ("0-0 1-1 2?1", "0-0 1?1 0?1", "0-0 0?1 1?1 2?1"),
    ],
)
def test_sure_is_what_both_say(first, second, merged):
    sides = read_links(first), read_links(second)
    assert gold.merge(*sides) == gold.merge(*sides[::-1]) == read_links(merged)


def test_agreement_by_hand():
    """4 and 3 links, 2 in common, of one kind 1; sure ones: 3 and 1, 1 in common."""
    first = {"a": read_links("0-0 1-1 2-2 3?3"), "b": read_links("")}
    second = {"a": read_links("0-0 1?1 4?4"), "b": read_links("")}
    found = gold.agreement(first, second)
    assert found.pop("counts") == [
        {"sure": 3, "possible": 1},
        {"sure": 1, "possible": 2},
    ]
    assert found == pytest.approx({"links": 4 / 7, "sure": 2 / 4, "kinds": 1 / 2})
    assert gold.agreement(second, first)["links"] == found["links"]
    same = gold.agreement(first, first)
    assert (same["links"], same["sure"], same["kinds"]) == (1, 1, 1)
    # The same link of another sentence is another link.
    other = {"a": second["b"], "b": second["a"]}
    assert gold.agreement(second, {**other, "a": second["a"]})["links"] == 6 / 9


def test_what_is_written(folder):
    content = gold.files(folder)
    merged = content[folder / "tatoeba-en-zh.tsv"]
    assert merged.decode() == f"{GOLD_HEADER}\n{KEYS[0]}\t0-0 1?1\n"
    lines = content[folder.parent / "SHA256SUMS"].decode().splitlines()
    assert lines[0] == f"{KEYS[1]}  village/x"  # not ours
    digest = hashlib.sha256(merged).hexdigest()
    assert f"{digest}  gold/tatoeba-en-zh.tsv" in lines
    assert len(lines) == 1 + len(GOLD_SETS) * 3  # a file that is gone has no line


def test_passes_over_other_pairs_are_refused(folder):
    path = folder / "passes" / "B-multi30k-de-en.tsv"
    path.write_text(f"{GOLD_HEADER}\n{KEYS[1]}\t0-0\n", encoding="utf-8")
    with pytest.raises(ValueError, match="A-multi.*B-multi.* about the same pairs"):
        gold.files(folder)


def test_the_shipped_files_are_what_the_command_writes():
    for path, data in gold.files().items():
        assert path.read_bytes() == data, path.name
    for name in GOLD_SETS:
        first, second = gold.passes(name)
        assert min(map(len, (first, second))) >= 60
        assert first != second  # two passes, no copy


def test_check_says_what_differs(folder, monkeypatch):
    monkeypatch.setattr(gold, "files", lambda: files)
    files = {GOLD_FOLDER / "none.tsv": b""}
    monkeypatch.setattr("sys.argv", ["gold", "--check"])
    assert gold.main() == "it would write otherwise: none.tsv"
    files.clear()
    assert gold.main() == 0
