"""The small text that the README trains on."""

import pytest

from tools import pairs
from utils.corpora import load_tsv


@pytest.mark.slow
def test_the_file_is_what_the_program_writes():
    stored = (pairs.DATA / "pairs.tsv").read_text(encoding="utf-8")
    assert stored == "".join(pairs.lines())


def test_it_is_a_text_of_ones_own():
    corpus = load_tsv(pairs.DATA / "pairs.tsv", "fr", "en")
    sizes = {name: len(split) for name, split in corpus.splits.items()}
    assert sizes == {"train": 480, "valid": 60, "test": 60} and not corpus.skipped
    assert "Nina" in (pairs.DATA / "pairs.tsv").read_text(encoding="utf-8")
