"""The files of the Village corpus, read once."""

import gzip
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "data" / "village"


class Row(NamedTuple):
    en: str
    fr: str
    zh: str
    en_fr: str
    en_zh: str
    fr_zh: str
    tag_names: str

    @property
    def tags(self):
        return set(self.tag_names.split(",")) - {""}


@cache
def rows_of(split) -> list[Row]:
    with gzip.open(FOLDER / f"{split}.tsv.gz", "rt", encoding="utf-8") as f:
        header, *lines = f.read().splitlines()
    assert header.split("\t") == "en fr zh en-fr en-zh fr-zh tags".split()
    return [Row(*line.split("\t")) for line in lines]


@pytest.fixture(scope="session")
def village():
    """Split -> rows."""
    return {split: rows_of(split) for split in ("train", "valid", "test", "long")}


@pytest.fixture(scope="session")
def rows(village):
    return [row for split in village.values() for row in split]
