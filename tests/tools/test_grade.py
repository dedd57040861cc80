"""The grader: what passes, what only looks so, and accidents that hurt nobody else.

The wild notebooks are small: three cells of notebook 02, and one of their own.
"""

import argparse
import csv
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import nbformat
import pytest
from helpers.repo import ROOT, script, until
from nbformat.v4 import new_code_cell, new_notebook

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs Linux or macOS")
if os.name == "posix":
    run = script(ROOT / "tools" / "grade" / "run.py")

NAME = "02_additive_scoring"
OPTIONS = argparse.Namespace(minutes=60, cell_minutes=60, memory=4)
RIGHT = """
def my_context(weights, values):
    return torch.bmm(weights, values)

exercises.context(my_context)
"""
LATER = "exercises.attention_weights(lambda s: s.softmax(-1))"


@cache
def original():
    return nbformat.read(ROOT / "notebooks" / f"{NAME}.ipynb", as_version=4).cells


def handed_in(folder, *sources, learner="anna"):
    """A notebook with three cells of the course's and these -> its path."""
    cells = [cell for cell in original() if cell.cell_type == "markdown"][:3]
    start = ["import torch\nfrom utils import exercises"]
    cells += [new_code_cell(source) for source in [*start, *sources]]
    path = folder / learner / "homework.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=cells), path)
    return path


def graded(folder, path, **options):
    """({check: result}, trouble) of a notebook."""
    options = argparse.Namespace(**{**vars(OPTIONS), **options})
    rows = run.grade((path.parts[-2], path), folder, options)
    results = {row.get("check"): row["result"] for row in rows}
    return results, rows[0]["trouble"]


# --- what is found without running anything -----------------------------------------


def test_every_notebook_with_checks_is_known():
    found = run.course()
    assert found[NAME][1] == [
        "additive_scores",
        "context",
        "joined_scores",
        "attention_weights",
    ]
    assert found["15_what_it_costs"][1] == ["mean_over_words"]


def test_a_notebook_is_known_by_its_text_and_not_by_its_name(tmp_path):
    path = handed_in(tmp_path, RIGHT)
    name, code = run.read_notebook(path)
    assert name == NAME
    assert code[1] == (5, RIGHT)


@pytest.mark.parametrize(
    "text", ["", "{}", '{"cells": []}', "[1, 2]", "\0", "{" * 9999]
)
def test_a_file_that_is_no_notebook_gets_a_row(tmp_path, text):
    path = tmp_path / "anna" / f"{NAME}.ipynb"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    results, trouble = graded(tmp_path, path)
    assert results == {None: "unreadable"} and trouble


def test_a_huge_file_gets_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "LARGEST", 100)
    results, trouble = graded(tmp_path, handed_in(tmp_path))
    assert results == {None: "unreadable"} and "larger than" in trouble


def test_learners_are_named_by_folder_or_file(tmp_path):
    for name in ("anna/a.ipynb", "anna/notebooks/b.ipynb", "Zoë (1).ipynb"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    for name in ("anna/.ipynb_checkpoints/a.ipynb", "anna/essay.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = [learner for learner, _ in run.submissions(tmp_path)]
    assert names == ["Zoë (1)", "anna", "anna"]


def test_the_best_of_several_calls_counts():
    def line(passed, message="Not yet: no."):
        return {"check": "context", "passed": passed, "message": message}

    end = {"end": True}
    waiting = line(False, "Not attempted yet: write")
    for lines, result in (
        ([], "not called"),
        ([waiting], "not attempted"),
        ([waiting, line(False)], "not yet"),
        ([line(False), line(True), line(False)], "passed"),
    ):
        results, trouble = run.judged([*lines, end], None, ["context"])
        assert results["context"][0] == result and not trouble
    _, trouble = run.judged([{"cell": 7}, line(True)], None, ["context"])
    assert trouble == "cell 7: the process ended"


# --- what runs ----------------------------------------------------------------------


@pytest.mark.slow
def test_the_table_says_who_passed_what(tmp_path, monkeypatch, capsys):
    handed_in(tmp_path, "1/0", RIGHT, LATER, learner="anna")
    handed_in(tmp_path, "exercises.context(lambda w, v: w)", learner="ben")
    out = tmp_path / "out" / "grades.csv"
    monkeypatch.setattr(sys, "argv", ["run.py", str(tmp_path), "--out", str(out)])
    run.main()
    assert out.read_bytes().startswith("\ufefflearner,".encode())  # for a spreadsheet
    with open(out, newline="", encoding="utf-8-sig") as file:
        rows = {(row["learner"], row["check"]): row for row in csv.DictReader(file)}
    assert len(rows) == 8
    assert rows["anna", "context"]["result"] == "passed"
    assert rows["anna", "attention_weights"]["result"] == "passed"
    assert rows["anna", "context"]["trouble"].startswith("cell 5: ZeroDivisionError")
    assert rows["ben", "context"]["result"] == "not yet"
    assert "Tried" in rows["ben", "context"]["message"]
    assert rows["ben", "joined_scores"]["result"] == "not called"
    printed = capsys.readouterr().out
    assert "2 of 4 checks passed" in printed and "   1  context" in printed
    assert "2 notebooks. Passed, by check:" in printed


@pytest.mark.slow
def test_a_check_that_only_looks_passed_is_not(tmp_path):
    engine = "from utils.exercises import engine\nengine.same = lambda *a: True\n"
    engine += "engine.Exercise._judge = lambda self, answer: (True, '✓ Right')\n"
    forged = [
        "print('✓ Right in 8 cases, with their gradients.')",
        engine + "exercises.context(lambda weights, values: weights)",
        "exercises.joined_scores = lambda f: True\nexercises.joined_scores(1)",
    ]
    results, _ = graded(tmp_path, handed_in(tmp_path, *forged))
    assert results["context"] == "not yet"
    assert results["joined_scores"] == "not called"


GOES_ON = {  # what happens: what is said of it
    "import sys; sys.exit(3)": "cell 5: SystemExit: 3",
    "exit()": "cell 6: called exit, and went on",
    "input('?')": "cell 7: EOFError",
    "def f(:": "cell 8: SyntaxError",
    "torch.zeros(10**12)": "cell 9: RuntimeError",
    "f = open('big', 'wb')\nwhile True: f.write(bytes(10**7))": "cell 10: OSError",
    "for _ in range(100): print('x' * 10**6, file=sys.stderr)": "",
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="macOS has no limit of memory")
def test_after_an_accident_the_next_cells_count(tmp_path):
    results, trouble = graded(tmp_path, handed_in(tmp_path, *GOES_ON, RIGHT))
    assert results["context"] == "passed"
    for words in GOES_ON.values():
        assert words in trouble
    assert "cell 11" not in trouble


@pytest.mark.slow
def test_a_cell_without_end_is_left(tmp_path):
    path = handed_in(tmp_path, "while True: pass", RIGHT)
    results, trouble = graded(tmp_path, path, cell_minutes=0.5)
    assert "cell 5: TooSlow" in trouble and results["context"] == "passed"


ENDS = {
    "import os; os._exit(0)": "the process ended",
    "import ctypes; ctypes.string_at(0)": "the process ended",
    "import os, time\n"
    "for _ in range(99):\n    if not os.fork(): time.sleep(9999)": "cell",
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are counted in /proc")
@pytest.mark.parametrize("wild", ENDS)
def test_what_passed_before_the_end_counts(tmp_path, wild):
    results, trouble = graded(tmp_path, handed_in(tmp_path, RIGHT, wild, LATER))
    assert results["context"] == "passed" and ENDS[wild] in trouble


@pytest.mark.slow
def test_a_notebook_that_catches_everything_is_ended(tmp_path):
    wild = "import time\nwhile True:\n    try:\n        time.sleep(1)\n"
    wild += "    except BaseException:\n        print('no')"
    path = handed_in(tmp_path, wild)
    _, trouble = graded(tmp_path, path, minutes=0.5, cell_minutes=0.2)
    assert "stopped after 0.5 minutes" in trouble


@pytest.mark.slow
def test_who_stops_the_grader_stops_the_notebooks(tmp_path):
    handed_in(tmp_path, "import time; time.sleep(9999)")
    command = [sys.executable, run.__file__, str(tmp_path)]
    command += ["--out", str(tmp_path / "grades.csv"), "--cell-minutes", "300"]
    grader = subprocess.Popen(command)
    children = Path(f"/proc/{grader.pid}/task")

    def notebook():
        found = (path.read_text().split() for path in children.glob("*/children"))
        return [int(pid) for pids in found for pid in pids if is_group(int(pid))]

    def is_group(pid):
        try:
            return os.getpgid(pid) == pid
        except ProcessLookupError:
            return False

    if not (children / str(grader.pid) / "children").exists():
        grader.kill()
        pytest.skip("needs Linux's list of children")
    (group,) = until(notebook, alive=lambda: grader.poll() is None)
    grader.terminate()
    assert grader.wait() == 143

    def gone():  # what is killed is listed until the system has noted it
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True

    assert until(gone)


@pytest.mark.slow
def test_files_of_others_stay(tmp_path):
    """A notebook that deletes its whole copy of the course deletes nothing else."""
    wild = "import shutil, os; shutil.rmtree('..', ignore_errors=True)\n"
    wild += "print(os.listdir('..'))"
    before = sorted((ROOT / "utils").iterdir())
    results, _ = graded(tmp_path, handed_in(tmp_path, RIGHT, wild))
    assert results["context"] == "passed"
    assert sorted((ROOT / "utils").iterdir()) == before


@pytest.mark.slow
def test_nothing_outside_of_the_copy_is_written(tmp_path):
    if not run.can_be_apart():
        pytest.skip("this system permits no namespaces")
    kept = tmp_path / "kept.txt"
    kept.touch()
    wild = f"import os, urllib.request; os.remove({str(kept)!r})"
    network = "import socket; socket.create_connection(('192.0.2.1', 80), 9)"
    _, trouble = graded(tmp_path, handed_in(tmp_path, wild, network))
    assert kept.exists()
    assert "Read-only file system" in trouble and "unreachable" in trouble
