"""The files of the Village corpus, read once."""

import gzip
from collections import namedtuple
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "data" / "village"
Row = namedtuple("Row", "en fr zh en_fr en_zh fr_zh tags")


@pytest.fixture(scope="session")
def village():
    """Split -> rows; the tags are a set."""
    found = {}
    for split in ("train", "valid", "test", "long"):
        text = gzip.decompress((FOLDER / f"{split}.tsv.gz").read_bytes()).decode()
        header, *lines = (line.split("\t") for line in text.splitlines())
        assert header == "en fr zh en-fr en-zh fr-zh tags".split()
        found[split] = [
            Row(*cells, {*tags.split(",")} - {""}) for *cells, tags in lines
        ]
    return found


@pytest.fixture(scope="session")
def rows(village):
    return [row for split in village.values() for row in split]
