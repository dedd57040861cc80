"""The grader: what passes, what only looks so, and accidents that hurt nobody else.

The wild notebooks are small: three cells of notebook 03, and one of their own.
"""

import csv
import os
import signal
import sys
from argparse import Namespace

import nbformat
import pytest
from helpers.repo import ROOT
from nbformat.v4 import new_code_cell, new_notebook

from tools.grade import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs Linux or macOS")

NAME = "03_additive_scoring"
RIGHT = """
def my_context(weights, values):
    return torch.bmm(weights, values)

exercises.context(my_context)
"""
FORGED = (  # a check that only looks passed is not
    "print('✓ Right in 8 cases, with their gradients.')",
    "from utils.exercises import engine; engine.same = lambda *a: True\n"
    "engine.Exercise._judge = lambda self, answer: (True, '✓ Right')\n"
    "exercises.context(lambda weights, values: weights)",
    "exercises.joined_scores = lambda f: True\nexercises.joined_scores(1)",
)
LATER = "exercises.attention_weights(lambda s: s.softmax(-1))"


def handed_in(folder, *sources, learner="anna"):
    """A notebook with three cells of the course's and these -> its path."""
    whole = nbformat.read(ROOT / "notebooks" / f"{NAME}.ipynb", as_version=4)
    cells = [cell for cell in whole.cells if cell.cell_type == "markdown"][:3]
    start = "import torch\nfrom utils import exercises"
    cells += map(new_code_cell, [start, *sources])
    path = folder / learner / "homework.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)
    return path


def graded(folder, path, minutes=60, cell_minutes=60):
    """({check: result}, trouble) of a notebook."""
    options = Namespace(minutes=minutes, cell_minutes=cell_minutes, memory=4)
    rows = run.grade((path.parts[-2], path), folder, options)
    return {row.get("check"): row["result"] for row in rows}, rows[0]["trouble"]


def test_a_file_that_is_no_notebook_gets_a_row(tmp_path, monkeypatch):
    path = tmp_path / "anna" / f"{NAME}.ipynb"
    path.parent.mkdir()
    for text in ("", '{"cells": []}', "[1, 2]", "\0", "{" * 9999):
        path.write_text(text, encoding="utf-8")
        results, trouble = graded(tmp_path, path)
        assert results == {None: "unreadable"} and trouble
    monkeypatch.setattr(run, "LARGEST", 100)
    results, trouble = graded(tmp_path, handed_in(tmp_path))
    assert results == {None: "unreadable"} and "larger than" in trouble


def test_learners_are_named_by_folder_or_file(tmp_path):
    others = "anna/.ipynb_checkpoints/a.ipynb", "anna/essay.txt"
    for name in ("anna/a.ipynb", "anna/notebooks/b.ipynb", "Zoë (1).ipynb", *others):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    names = [learner for learner, _ in run.submissions(tmp_path)]
    assert names == ["Zoë (1)", "anna", "anna"]


def test_the_best_of_several_calls_counts():
    def line(status):
        return {"check": "context", "status": status, "message": ""}

    waiting, wrong, right = map(line, ("not attempted", "stopped", "right"))
    for lines, result in (
        ([], "not called"),
        ([waiting], "not attempted"),
        ([waiting, wrong], "not yet"),
        ([wrong, right, wrong], "passed"),
    ):
        results, trouble = run.judged([*lines, {"end": True}], None, ["context"])
        assert results["context"][0] == result and not trouble
    _, trouble = run.judged([{"cell": 7}, right], None, ["context"])
    assert trouble == "cell 7: the process ended"


@pytest.mark.slow
def test_the_table_says_who_passed_what(tmp_path, monkeypatch, capsys):
    handed_in(tmp_path, "1/0", RIGHT, LATER)
    handed_in(tmp_path, *FORGED, learner="ben")
    out = tmp_path / "out" / "grades.csv"
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path), "--out", str(out)])
    run.main()
    assert out.read_bytes().startswith("\ufefflearner,".encode())  # for a spreadsheet
    with open(out, newline="", encoding="utf-8-sig") as file:
        rows = {(row["learner"], row["check"]): row for row in csv.DictReader(file)}
    assert len(rows) == 8
    assert rows["anna", "attention_weights"]["result"] == "passed"
    assert rows["anna", "context"]["trouble"].startswith("cell 5: ZeroDivisionError")
    assert rows["ben", "context"]["result"] == "not yet"
    assert "Tried" in rows["ben", "context"]["message"]
    assert rows["ben", "joined_scores"]["result"] == "not called"  # but replaced
    assert "2 of 4 checks passed" in capsys.readouterr().out


GOES_ON = {  # what happens: what is said of it
    "import sys; sys.exit(3)": "cell 5: SystemExit: 3",
    "exit()": "cell 6: called exit, and went on",
    "input('?')": "cell 7: EOFError",
    "def f(:": "cell 8: SyntaxError",
    "torch.zeros(10**12)": "cell 9: RuntimeError",
    "f = open('big', 'wb')\nwhile True: f.write(bytes(10**7))": "cell 10: OSError",
    "while True: pass": "cell 11: TooSlow",
    "for _ in range(100): print('x' * 10**6, file=sys.stderr)": "",
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no limit of memory")
def test_after_an_accident_the_next_cells_count(tmp_path):
    path = handed_in(tmp_path, *GOES_ON, RIGHT)
    results, trouble = graded(tmp_path, path, cell_minutes=0.5)
    assert results["context"] == "passed" and "cell 12" not in trouble
    assert [words for words in GOES_ON.values() if words not in trouble] == []


ENDS = {
    "import os; os._exit(0)": "the process ended",
    "import os, time\n"
    "for _ in range(99):\n    if not os.fork(): time.sleep(9999)": "cell",
    "import time\nwhile True:\n    try:\n        time.sleep(1)\n"
    "    except BaseException:\n        print('no')": "stopped after 0.5 minutes",
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are counted in /proc")
@pytest.mark.parametrize("wild", ENDS)
def test_what_passed_before_the_end_counts(tmp_path, wild):
    minutes = 0.5 if "0.5" in ENDS[wild] else 60
    path = handed_in(tmp_path, RIGHT, wild, LATER)
    results, trouble = graded(tmp_path, path, minutes=minutes)
    assert results["context"] == "passed" and ENDS[wild] in trouble


@pytest.mark.slow
def test_who_stops_the_grader_stops_the_notebooks(tmp_path, monkeypatch):
    ended = []

    def watch(process, *_):
        os.kill(os.getpid(), signal.SIGTERM)
        ended.append(process.wait())

    handed_in(tmp_path, "import time; time.sleep(9999)")
    monkeypatch.setattr(run, "watch", watch)
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path), "--out", "/dev/null"])
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit):
        run.main()
    signal.signal(signal.SIGTERM, before)
    assert ended == [-signal.SIGKILL]


@pytest.mark.slow
def test_nothing_outside_of_the_copy_is_written(tmp_path):
    """Its copy of the course a notebook may delete."""
    if not run.can_be_apart():
        pytest.skip("this system permits no namespaces")
    kept = tmp_path / "kept.txt"
    kept.touch()
    wild = "import shutil, os; shutil.rmtree('..', ignore_errors=True)\n"
    wild += f"os.remove({str(kept)!r})"
    network = "import socket; socket.create_connection(('192.0.2.1', 80), 9)"
    results, trouble = graded(tmp_path, handed_in(tmp_path, RIGHT, wild, network))
    assert results["context"] == "passed" and kept.exists()
    assert "Read-only file system" in trouble and "unreachable" in trouble
