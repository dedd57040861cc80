"""The instructor's page: its figures are the notebooks', its plans the lectures'."""

import re

import nbformat
import pytest
from helpers.repo import LECTURES, NUMBERED, read, said_and_printed

TEACHING = read("notebooks/INSTRUCTOR.md")
DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+")
PREDICT = "> **Predict.** "


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_the_instructor_quotes_figures_that_the_notebook_has(path):
    """Each decimal number begins one that a cell or an output of the notebook has."""
    (text,) = re.findall(rf"^### {path.name[:2]} .+?(?=^##)", TEACHING, re.M | re.S)
    known = DECIMAL.findall(said_and_printed(path))
    quoted = DECIMAL.findall(text)
    assert [n for n in quoted if not any(k.startswith(n) for k in known)] == []


def slides(path):
    """The cells of each slide, its notes last; `skip` is left out."""
    found = []
    for cell in nbformat.read(path, as_version=4).cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        if kind == "slide":
            found.append([])
        if found and kind != "skip":
            found[-1].append(cell)
    return found


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_the_plan_of_a_lecture_is_that_of_its_slides(path):
    """Minutes and slides follow each other, and are those of the presenter's notes."""
    ends = [0]  # ends[n]: the minute when slide n is over
    for *shown, notes in slides(path):
        minutes = re.match(r"\*\*(\d+) min\.\*\*", notes.source)[1]
        ends.append(ends[-1] + int(minutes))
        asked = [n for n, cell in enumerate(shown, 1) if PREDICT in cell.source]
        assert asked in ([], [len(shown)]), "the answer is beside the question"
    plan = TEACHING.split(f"`notebooks/lectures/{path.name}`")[1]
    plan = re.split(r"^###? ", plan, flags=re.M)[0]
    rows = re.findall(r"^\| (\d+)–(\d+) \|.*\| (\d+)–(\d+) \|", plan, re.M)
    rows = [tuple(map(int, row)) for row in rows]
    assert [(ends[row[2] - 1], ends[row[3]]) for row in rows] == [r[:2] for r in rows]
    assert [row[2] for row in rows] == [1, *(row[3] + 1 for row in rows[:-1])]
    assert (rows[-1][1], rows[-1][3]) == (50, len(ends) - 1)
