"""The instructor's page: its figures are the notebooks', its chapters are linked."""

import re

import nbformat
import pytest
from helpers.repo import LECTURES, NUMBERED, ROOT, read, said_and_printed

TEACHING = read("notebooks/INSTRUCTOR.md")
DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+")


def about():
    """(notebook's number, what the instructor's page says of it).

    The questions on the core have numbers of their own.
    """
    said = re.findall(r"^### (\d\d) (.+?)(?=^##)", TEACHING, re.M | re.S)
    quiz = TEACHING.split("## Quiz")[1]
    for question in re.split(r"^(?=\*\*\d+\.\*\*)", quiz, flags=re.M)[1:]:
        number = re.search(r"\(Notebook\s+(\d\d)\)", question)[1]
        if number >= "07":
            said.append((number, question.split("**", 2)[2]))
    return said


@pytest.mark.parametrize(("number", "text"), about(), ids=[n for n, _ in about()])
def test_the_instructor_quotes_figures_that_the_notebook_has(number, text):
    """Each decimal number begins one that a cell or an output of the notebook has."""
    (path,) = (path for path in NUMBERED if path.name.startswith(number))
    known = DECIMAL.findall(said_and_printed(path))
    quoted = DECIMAL.findall(text)
    assert [n for n in quoted if not any(k.startswith(n) for k in known)] == []


def lectures():
    """(a lecture's path, the rows of its plan: its minutes, its slides)."""
    for text in re.split(r"^(?=###? .*[Ll]ecture)", TEACHING, flags=re.M)[1:]:
        path = re.search(r"`notebooks/(lectures/.+?\.ipynb)`", text)
        rows = re.findall(r"^\| (\d+)–(\d+) \|.*\| (\d+)–(\d+) \|", text, re.M)
        if path and rows:
            yield path[1], [tuple(map(int, row)) for row in rows]


@pytest.mark.parametrize(("path", "rows"), list(lectures()))
def test_the_plan_of_a_lecture_is_that_of_its_slides(path, rows):
    """Minutes and slides follow each other, and are those of the presenter's notes."""
    ends, minutes = [0], 0  # ends[n]: when slide n is over
    for c in nbformat.read(ROOT / "notebooks" / path, as_version=4).cells:
        kind = c.metadata.get("slideshow", {}).get("slide_type")
        if kind == "slide":
            ends.append(minutes)
        elif kind == "notes":
            minutes += int(re.match(r"\*\*(\d+) min\.\*\*", c.source)[1])
            ends[-1] = minutes
    found = [(ends[first - 1], ends[last]) for _, _, first, last in rows]
    assert found == [row[:2] for row in rows]
    assert [row[2] for row in rows] == [1, *(row[3] + 1 for row in rows[:-1])]
    assert rows[-1][1] == minutes and rows[-1][3] == len(ends) - 1


def test_the_minutes_of_the_workshop_follow_each_other():
    plan = TEACHING.split("## A workshop")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+)–(\d+) \|", plan, re.M)
    assert [start for start, _ in rows] == ["0", *(end for _, end in rows[:-1])]
    assert rows[-1][1] == "180"


def test_nothing_is_left_out():
    """Every lecture has a plan, every chapter a link, every notebook its page."""
    assert [ROOT / "notebooks" / path for path, _ in lectures()] == LECTURES
    anchors = re.findall(r"\]\(#([\w-]+)\)", TEACHING)
    headings = re.findall(r"^## (.+)$", TEACHING, re.M)
    assert anchors == [heading.lower().replace(" ", "-") for heading in headings]
    assert {n for n, _ in about()} >= {path.name[:2] for path in NUMBERED}
