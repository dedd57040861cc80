"""The benchmarks in miniature: the tables are written. No speed is asserted."""

import re
import shutil

import nbformat
import pytest
from helpers.repo import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.benchmarks import notebooks, report, speed

TINY = speed.Settings(30, 4, 6, 5, lengths=(4,), sentences=6, rounds=1, calls=1)
pytestmark = pytest.mark.slow


def test_the_table_is_written(tmp_path):
    path = tmp_path / "README.md"
    shutil.copy(report.README, path)
    speed.main(TINY, path)
    texts = (p.read_text(encoding="utf-8") for p in (path, report.README))
    (table, _, rest), before = (t.partition("<!-- end of speed -->") for t in texts)
    assert len(re.findall(r"\| \*\*[-\d.e+]+(?:×| %| sent.*?)\*\* \(", table)) == 5
    assert "×: **missed**" in report.row("", [1, 3, 2], asked=("at least", 2.5))[2]
    assert rest == before[2]  # the other tables stay


def test_a_notebook_is_measured(tmp_path):
    cells = [new_markdown_cell("Its cells run in about\n20 seconds.")]
    cells += map(new_code_cell, ["import time", "time.sleep(1.1)\n1 + 1"])
    nbformat.write(new_notebook(cells=cells), tmp_path / "00_small.ipynb")
    row = notebooks.execute(tmp_path / "00_small.ipynb")
    assert (row["notebook"], row["cells"], row["words"]) == ("00_small", 3, 7)
    assert row["it says"] == 20 and row["slowest cell"] == "2: 1 s"
    assert row["seconds"] >= 1 and "the slowest cell 1 s" in notebooks.sums([row])


def test_the_notebooks_say_how_long_their_cells_run():
    """Against the stored table; machines of two cores differ by a factor of two."""
    table = report.README.read_text(encoding="utf-8").partition("<!-- notebooks -->")[2]
    for name, seconds in re.findall(r"\| (\d\w+) \|(?: \d+ \|){2} (\d+) \|", table):
        book = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        said, taken = notebooks.said(book), int(seconds)
        assert abs(said - taken) < 10 or 0.5 < taken / said < 2, name
