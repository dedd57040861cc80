"""The learner's copy: nothing that a teacher keeps, nothing that leads nowhere."""

import os
import re
import shutil
import subprocess
import sys
import zipfile

import learner
import nbformat
import pytest
from helpers.repo import NUMBERED, ROOT, links, read


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy") / "learner"
    learner.build(folder)
    return folder


@pytest.fixture
def spoiled(copy, tmp_path):
    """A copy of the copy, to put something into."""
    return shutil.copytree(copy, tmp_path / "spoiled")


def cells(path):
    return nbformat.read(path, as_version=4).cells


def test_nothing_is_wrong_with_the_copy(copy):
    assert list(learner.problems(copy)) == []
    assert {path.name for path in copy.glob("notebooks/*.ipynb")} == {
        path.name for path in NUMBERED
    }


@pytest.mark.parametrize(
    "name",
    [
        "notebooks/solutions/00_start_here.ipynb",
        "notebooks/INSTRUCTOR.md",
        "tests/tools/test_learner.py",
    ],
)
def test_a_teachers_file_is_found(spoiled, name):
    (spoiled / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / name, spoiled / name)
    assert list(learner.problems(spoiled))


def test_an_answer_is_found(spoiled):
    shutil.copy(ROOT / "notebooks" / "02_additive_scoring.ipynb", spoiled / "notebooks")
    found = "\n".join(learner.problems(spoiled))
    assert "the cell 7d6e02b9 shows its answer" in found, "a prediction's"
    assert "the cell cf51b027 shows its answer" in found, "an exercise's"
    assert "solutions/02_additive_scoring.ipynb) leads nowhere" in found


def test_the_quiz_with_its_answers_is_found(spoiled):
    (spoiled / "README.md").write_text(read("notebooks/INSTRUCTOR.md"), "utf-8")
    assert "README.md has answers of the quiz" in learner.problems(spoiled)


def test_code_stays_and_so_do_the_other_outputs(copy):
    shown = cleared = 0
    for path in NUMBERED:
        before, after = cells(path), cells(copy / "notebooks" / path.name)
        code = [cell for cell in before if cell.cell_type == "code"]
        kept = [cell for cell in after if cell.cell_type == "code"]
        assert [c.source for c in kept] == [c.source for c in code], path.name
        for old, new in zip(code, kept, strict=True):
            assert new.outputs in (old.outputs, [])
            shown += bool(new.outputs)
            cleared += new.outputs != old.outputs
    assert shown > cleared > 50


def test_no_solution_is_in_the_copy(copy):
    pages = [cell.source for path in copy.rglob("*.ipynb") for cell in cells(path)]
    own = "\n".join(pages)
    for path in (ROOT / "notebooks" / "solutions").glob("*.ipynb"):
        for cell in cells(path):
            if re.search(r"^def .*\n^exercises\.", cell.source, re.M | re.DOTALL):
                assert cell.source not in own, path.name


def test_what_is_for_teachers_is_marked_in_pairs():
    text = read("README.md")
    marks = re.findall(r"<!-- (teachers|everyone) -->", text)
    assert marks == ["teachers", "everyone"] * (len(marks) // 2) != []
    assert not re.search(r"[^\n]\n<!-- teachers -->\n", text), "two paragraphs in one"


def test_the_readme_of_the_copy_tells_of_nothing_that_is_missing(copy):
    text = (copy / "README.md").read_text("utf-8")
    assert not re.search(
        "make test|pytest|ruff|INSTRUCTOR|CLASSROOM|teachers|tools", text
    )
    assert {f"notebooks/{path.name}" for path in NUMBERED} <= set(links(text))
    start = re.search(r"\.venv/bin/python -m jupyterlab .*", read("README.md"))
    assert start[0] in text


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_the_makefile_of_the_copy_starts_the_course(copy):
    def told(*arguments):
        command = ["make", "-C", copy, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout

    start = told("-n", "lab")
    assert "-m pip install --disable-pip-version-check -r requirements.txt" in start
    assert "-m jupyterlab --ServerApp.ip=127.0.0.1" in start
    offered = set(re.findall(r"^make (\w+) ", told(), re.MULTILINE))
    assert offered == {"lab", "clean"}
    text = (copy / "Makefile").read_text("utf-8")
    assert not re.search(r"tools/|pytest|tests|NOTEBOOKS", text)


def test_the_copy_runs_by_its_own_modules(copy):
    program = "import utils; from utils.corpora import load_village\n"
    program += "print(utils.__file__, len(load_village('en', 'zh')['train']) > 1000)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == [str(copy / "utils" / "__init__.py"), "True"]


def test_the_zip_is_the_same_whenever_it_is_made(copy, spoiled, tmp_path):
    learner.pack(copy, tmp_path / "a.zip")
    for path in spoiled.rglob("*"):
        path.touch()
    learner.pack(spoiled, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as pages:
        names = pages.namelist()
    assert "learning-to-align/notebooks/00_start_here.ipynb" in names
    assert len(names) == sum(path.is_file() for path in copy.rglob("*"))
