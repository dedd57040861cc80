"""The files of the Village corpus, read once."""

import gzip
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
FOLDER = DATA / "village"
SPLITS = ("train", "valid", "test", "long")


class Row(NamedTuple):
    en: str
    fr: str
    zh: str
    en_fr: str
    en_zh: str
    fr_zh: str
    tags: str


class Village:
    @cache  # noqa: B019  one object, which lives as long as the tests
    def __getitem__(self, split) -> list[Row]:
        with gzip.open(FOLDER / f"{split}.tsv.gz", "rt", encoding="utf-8") as f:
            header, *lines = f.read().splitlines()
        assert header.split("\t") == [name.replace("_", "-") for name in Row._fields]
        return [Row(*line.split("\t")) for line in lines]

    @cache  # noqa: B019
    def all(self) -> list[Row]:
        return [row for split in SPLITS for row in self[split]]

    @cache  # noqa: B019
    def words(self, lang) -> list[list[str]]:
        """Of every sentence, in the order of all()."""
        return [getattr(row, lang).split() for row in self.all()]


@pytest.fixture(scope="session")
def village():
    return Village()
