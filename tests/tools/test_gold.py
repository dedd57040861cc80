"""The two passes of the gold sets: merged, compared, and stored as they are merged."""

import pytest

from tools import gold
from utils.gold import GOLD_SETS, read_links


def test_sure_is_what_both_say():
    for first, second, merged in (
        ("0-0", "0?0", "0?0"),
        ("0?0", "0?0", "0?0"),
        ("0-0", "", "0?0"),
        ("0-0 1-1 2?1", "0-0 1?1 0?1", "0-0 0?1 1?1 2?1"),
    ):
        sides = read_links(first), read_links(second)
        assert gold.merge(*sides) == gold.merge(*sides[::-1]) == read_links(merged)


def test_agreement_by_hand():
    """4 and 3 links, 2 in common, of one kind 1; sure ones: 3 and 1, 1 in common."""
    first = {"a": read_links("0-0 1-1 2-2 3?3"), "b": read_links("")}
    second = {"a": read_links("0-0 1?1 4?4"), "b": read_links("")}
    found = gold.agreement(first, second)
    assert found == pytest.approx({"links": 4 / 7, "sure": 2 / 4, "kinds": 1 / 2})


def test_the_shipped_files_are_what_the_command_writes():
    for path, data in gold.files().items():
        assert path.read_bytes() == data, path.name
    for name in GOLD_SETS:
        first, second = gold.passes(name)
        assert len(first) >= 60 and first != second  # two passes, no copy
