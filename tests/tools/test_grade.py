"""The grader: what is right, what only looks so, and that nobody changes another's row.

The wild notebooks are small. In each trial one learner hands in something wild, and
zoe, who comes last, a notebook with one right answer.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
import psutil
import pytest
from helpers.repo import ROOT
from nbformat.v4 import new_code_cell, new_notebook

from tools.grade import run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs Linux or macOS")

START = "import torch\nfrom utils import exercises"
RIGHT = "exercises.context(lambda weights, values: torch.bmm(weights, values))"
LATER = "exercises.attention_weights(lambda s: s.softmax(-1))"
DONE = {"checks": {"context": ["right", "✓"]}, "error": "", "cell": "", "end": ""}


def handed_in(folder, *sources, learner="zoe"):
    """A notebook with these cells -> its path."""
    path = folder / learner / "homework.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(new_notebook(cells=list(map(new_code_cell, sources))), path)
    return path


def grade(folder, monkeypatch, *options):
    """Run the grader -> the rows of checks.csv, and of learners.csv."""
    out = folder.with_name("grades")
    command = ["run.py", str(folder), "--out", str(out), *options]
    monkeypatch.setattr(sys, "argv", command)
    run.main()
    tables = []
    for name in ("checks.csv", "learners.csv"):
        with open(out / name, newline="", encoding="utf-8-sig") as file:
            tables.append(list(csv.DictReader(file)))
    return tables


def check_trial(folder, learner, words, monkeypatch, *options):
    handed_in(folder, START, RIGHT)
    checks, learners = grade(folder, monkeypatch, *options)
    (own,) = (r for r in checks if r["learner"] == "zoe" and r["check"] == "03 context")
    assert (own["result"], own["trouble"]) == ("right", "")
    *others, zoe, total = learners
    assert (zoe["learner"], zoe["sum"], zoe["trouble"]) == ("zoe", "1", "")
    assert [row["learner"] for row in others] == [learner]
    assert words in others[0]["trouble"]
    assert int(total["sum"]) == 1 + int(others[0]["sum"])
    assert (folder.with_name("grades") / "feedback" / "zoe.txt").exists()


def in_folder(path, name):
    path.mkdir()
    return path / name


NUMBER = json.dumps({"cells": [{"cell_type": "code", "source": 5}], "nbformat": 4})
ENTRIES = {  # what is handed in, as its row names it: how it is made
    "empty": Path.mkdir,
    "a.html": Path.touch,
    "broken": lambda path: in_folder(path, "a.ipynb").symlink_to("nowhere"),
    "folder": lambda path: path.symlink_to("zoe"),
    "copied": lambda path: in_folder(path, "a.ipynb").symlink_to(
        "../zoe/homework.ipynb"
    ),
    r"M\udcfcller": lambda path: os.mkdir(os.fsencode(path.parent) + b"/M\xfcller"),
    "stored": lambda path: handed_in(path, "1", learner=".ipynb_checkpoints"),
    "big.ipynb": lambda path: path.touch() or os.truncate(path, 60_000_000),
    "json.IPYNB": lambda path: path.write_text("{" * 9999),
    "number.ipynb": lambda path: path.write_text(NUMBER),
    "other": lambda path: handed_in(path.parent, "1", learner="other"),
}
TROUBLE = {  # what is said of them, if not that there is nothing to grade
    "big.ipynb": "larger than 50 MB",
    "json.IPYNB": " ",
    "number.ipynb": " ",
    "other": "no notebook of",
}


@pytest.mark.parametrize("learner", ENTRIES)
def test_whatever_is_handed_in_gets_a_row(learner, tmp_path, monkeypatch):
    """And who comes last gets the usual one. (Here no cell is run.)"""
    monkeypatch.setattr(run, "execute", lambda *_: DONE)
    folder = tmp_path / "submitted"
    folder.mkdir()
    try:
        ENTRIES[learner](folder / learner)
    except OSError as error:
        pytest.skip(f"this file system can't have it: {error}")
    words = TROUBLE.get(learner, "nothing to grade")
    check_trial(folder, learner, words, monkeypatch)


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="macOS limits less")
FILL = """
while True:
    file = open("gone", "wb")
    os.remove("gone")
    kept.append(file)
    file.write(bytes(10**8))
"""
WILD = {  # a cell: what is said of it
    "os._exit(0)": "the process ended",
    "input('?')": "EOFError",
    "bytes(10**11)": "MemoryError",
    "import mmap; mmap.mmap(-1, 10**11)": "OSError",
    "for _ in range(99):\n    if not os.fork(): time.sleep(9999)": "",
    "while True:\n    try: time.sleep(1)\n    except BaseException: 0": "stopped after",
    f"kept = []{FILL}": "OSError",
    "import shutil; shutil.rmtree('..', ignore_errors=True)": "",
    "del exercises": "",
    "%matplotlib inline": "",
}


@needs_linux
@pytest.mark.slow
@pytest.mark.parametrize("cell", WILD)
def test_whatever_runs_gets_a_row(cell, tmp_path, monkeypatch):
    """And what was right before, or is right later, counts."""
    folder = tmp_path / "submitted"
    handed_in(folder, START, "import os, time", RIGHT, cell, LATER, learner="anna")
    options = ["--minutes", "0.5"] if "time.sleep(1)" in cell else []
    check_trial(folder, "anna", WILD[cell], monkeypatch, *options)


def test_a_table_holds_no_formula(tmp_path):
    values = {"=1": "'=1", " +1": "'+1", "@a": "'@a", "a;-1": "a;'-1", "＝1": "'＝1"}
    values |= {"a=1": "a=1", "two\nlines": "two lines", "\ud83d": r"\ud83d", 3: "3"}
    run.write_table(tmp_path / "a.csv", [values])
    with open(tmp_path / "a.csv", newline="", encoding="utf-8-sig") as file:
        assert [*csv.reader(file)] == [[*values.values()]]


def test_learners_and_checks_are_summed_up():
    """Handed in twice, a check counts once."""
    names = "learner", "check", "result", "trouble"
    rows = "anna a right,anna a wrong,anna b right,ben a wrong,ben b missing".split(",")
    rows = [dict(zip(names, [*row.split(), ""], strict=True)) for row in rows]
    assert run.by_learner([rows[:3], rows[3:]]) == [
        ["learner", "a", "b", "sum", "trouble"],
        ["anna", 1, 1, 2, ""],
        ["ben", 0, 0, 0, ""],
        ["sum", 1, 1, 2, ""],
    ]


FORGED = (  # a check that only looks right isn't
    "print('✓ Right in 8 cases, with their gradients.')",
    "from utils.exercises import engine; engine.Exercise._judge = lambda *a: '✓ Right'",
    "exercises.context(lambda weights, values: weights)",
    "exercises.joined_scores = lambda f: True\nexercises.joined_scores(1)",
)


@pytest.mark.slow
def test_the_best_answer_counts_and_the_first_error_is_told(tmp_path, monkeypatch):
    wrong = "exercises.context(lambda weights, values: values)"
    failing = "exercises.joined_scores(1 / 0)"
    folder = tmp_path / "submitted"
    handed_in(folder, START, failing, "undefined", wrong, RIGHT, wrong, learner="anna")
    handed_in(folder, START, *FORGED, learner="ben")
    checks, learners = grade(folder, monkeypatch)
    results = {(row["learner"], row["check"]): row for row in checks}
    assert results["anna", "03 context"]["result"] == "right"
    assert results["ben", "03 context"]["result"] == "wrong"
    assert "Tried" in results["ben", "03 context"]["message"]
    assert results["ben", "03 joined_scores"]["result"] == "not called"  # but replaced
    first = "joined_scores: ZeroDivisionError: division by zero"
    assert learners[0]["trouble"] == first
    told = (tmp_path / "grades" / "feedback" / "ben.txt").read_text(encoding="utf-8")
    assert "homework.ipynb 03 context: wrong" in told and "Tried" in told


def test_an_empty_folder_is_refused(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        grade(tmp_path, monkeypatch)
    assert f"there is nothing in {tmp_path}" in capsys.readouterr().err


def can_be_apart():
    return not run.execute([], "apart", 60)["end"]


@pytest.mark.slow
def test_nothing_outside_of_the_copy_can_be_written_or_reached(tmp_path):
    if not can_be_apart():
        pytest.skip("this system permits no namespaces")
    kept = tmp_path / "kept.txt"
    kept.touch()
    mount = "mount -o remount,rw /"
    reach = "socket.create_connection(('192.0.2.1', 80), 9)"
    for cell, words in (
        (f"import os; os.remove({str(kept)!r})", "Read-only file system"),
        ("for n in '12': open('/dev/shm/' + n, 'wb').write(bytes(15**7))", "No space"),
        (f"import subprocess as s; s.run({mount!r}, shell=True, check=1)", "non-zero"),
        (f"import socket; {reach}", "unreachable"),
    ):
        assert words in run.execute([("cell", cell)], "apart", 60)["error"]
    assert kept.exists()


@needs_linux
@pytest.mark.slow
def test_a_notebook_ends_with_the_grader(tmp_path):
    """However the grader ends; what a notebook has started ends, too."""
    if not can_be_apart():
        pytest.skip("this system permits no namespaces")
    mark = f"{time.time()}"
    cell = f"import subprocess; subprocess.run(['sleep', '9999', '{mark}'])"
    program = "from tools.grade import run; run.execute([('', {!r})], 'apart', 60)"
    command = [sys.executable, "-c", program.format(cell)]

    def running():
        started = psutil.process_iter(["cmdline"])  # without those that have ended
        return any(mark in (process.info["cmdline"] or ()) for process in started)

    grader = subprocess.Popen(command, cwd=ROOT)
    while not running():
        time.sleep(0.1)
        assert grader.poll() is None
    grader.kill()
    grader.wait()
    end = time.monotonic() + 60
    while running() and time.monotonic() < end:
        time.sleep(0.1)
    assert not running()


@needs_linux
@pytest.mark.slow
@pytest.mark.parametrize("number, ends_well", [(9, True), (99, False)])
def test_a_notebook_has_few_processes(number, ends_well):
    """For root this limit doesn't hold, so root starts it as nobody here."""
    user = "setpriv --reuid=65534 --regid=65534 --clear-groups".split()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        apart = ROOT / "tools/grade/apart.sh"
        script = ["sh", apart, "apart", folder, "none", "sh", "-c"]
        command = [*([] if os.geteuid() else user), *script]
        if subprocess.run([*command, "true"]).returncode:
            pytest.skip("this system permits no namespaces")
        many = f"for n in $(seq {number}); do sleep 9 & done"
        assert (subprocess.run([*command, many]).returncode == 0) == ends_well
