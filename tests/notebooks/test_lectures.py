"""What the lectures keep, as notebooks: for the wall, with something to say.

Whether a slide fits is seen in a browser: tests/browser/test_slides.py.
"""

import re

import nbformat
import pytest
from helpers.repo import LECTURES
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

MOST_SLIDES = 25
LONGEST_CODE = 10  # lines
KINDS = {"slide", "-", "notes", "skip"}
MINUTES = re.compile(r"\*\*(\d+) min\.\*\* ")
PREDICT = "> **Predict.** "
HEADING = re.compile(r"^#{1,2} .+", re.MULTILINE)
AGENDA = re.compile(r"^\| .+ \| (\d+) min \|$", re.MULTILINE)


def kind(cell):
    return cell.metadata.get("slideshow", {}).get("slide_type")


def folded(cell):
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def slides(notebook):
    """A list of cells for each slide; what stands before the first is skipped."""
    found = []
    for cell in notebook.cells:
        if kind(cell) == "slide":
            found.append([])
        if found and kind(cell) != "skip":
            found[-1].append(cell)
    return found


def text_of(cells):
    return "\n\n".join(c.source for c in cells if c.cell_type == "markdown")


def bad_kinds(notebook):
    return [f"slide type {kind(c)!r}" for c in notebook.cells if kind(c) not in KINDS]


def bad_slides(notebook):
    """A heading, little code, notes with minutes, a question that stands last."""
    found, whole = [], slides(notebook)
    if len(whole) > MOST_SLIDES:
        found.append(f"{len(whole)} slides")
    for n, cells in enumerate(whole, 1):
        shown = [cell for cell in cells if kind(cell) != "notes"]
        if len(HEADING.findall(text_of(shown))) != 1:
            found.append(f"slide {n} has not one heading")
        code = [c for c in shown if c.cell_type == "code" and not folded(c)]
        if sum(len(c.source.splitlines()) for c in code) > LONGEST_CODE:
            found.append(f"slide {n} has too much code")
        if kind(cells[-1]) != "notes" or not MINUTES.match(cells[-1].source):
            found.append(f"slide {n} doesn't end with notes and their minutes")
        if PREDICT in text_of(shown):
            last = shown[-1].source.strip().split("\n\n")[-1]
            if n == len(whole) or not last.startswith(PREDICT):
                found.append(f"the question of slide {n} has its answer beside it")
    return found


def bad_minutes(notebook):
    """The agenda must promise what the notes of the slides after it take."""
    whole = slides(notebook)
    for n, cells in enumerate(whole):
        if promised := AGENDA.findall(text_of(cells)):
            taken = sum(
                int(MINUTES.match(c.source)[1])
                for later in whole[n + 1 :]
                for c in later
                if MINUTES.match(c.source)
            )
            if sum(map(int, promised)) == taken:
                return []
            return [f"the agenda has {promised}, the slides {taken} minutes"]
    return ["no agenda"]


RULES = [bad_kinds, bad_slides, bad_minutes]


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_lecture(path):
    notebook = nbformat.read(path, as_version=4)
    assert [problem for rule in RULES for problem in rule(notebook)] == []


def test_a_lecture_has_fifty_minutes():
    for path in LECTURES:
        text = text_of(nbformat.read(path, as_version=4).cells)
        assert sum(map(int, MINUTES.findall(text))) == 50, path.stem


# --- the rules themselves --------------------------------------------------------


def cell(source, slide_type, make=new_markdown_cell, **metadata):
    return make(source, metadata={"slideshow": {"slide_type": slide_type}, **metadata})


def lecture(*parts):
    """Title, agenda of four minutes, these cells, a closing slide."""
    note = cell("**2 min.** Say it.", "notes")
    whole = [
        cell("# A", "slide"),
        note,
        cell("## Plan\n\n| a | 1 min |\n| b | 3 min |", "slide"),
        note,
        *parts,
        cell("## End", "slide"),
        note,
    ]
    return new_notebook(
        cells=[type(c)(c | {"id": f"c{n}"}) for n, c in enumerate(whole)]
    )


NOTE = cell("**2 min.** Say it.", "notes")
LONG = cell("x = 1\n" * 11, "-", new_code_cell)
HIDDEN = cell("x = 1\n" * 11, "-", new_code_cell, jupyter={"source_hidden": True})
ASK = cell("## Q\n\n> **Predict.** What?", "slide")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("part", [ASK, cell("## B", "slide")], ids=["asks", "tells"])
def test_a_good_lecture_passes(rule, part):
    hidden = [HIDDEN] if part is not ASK else []
    assert rule(lecture(part, *hidden, NOTE)) == []


@pytest.mark.parametrize(
    ("rule", "parts"),
    [
        (bad_kinds, [cell("## B", "subslide"), NOTE]),
        (bad_slides, [cell("## B", "slide"), NOTE] * 23),
        (bad_slides, [cell("No heading", "slide"), NOTE]),
        (bad_slides, [cell("## B\n\n## C", "slide"), NOTE]),
        (bad_slides, [cell("## B", "slide"), LONG, NOTE]),
        (bad_slides, [cell("## B", "slide")]),
        (bad_slides, [cell("## B", "slide"), cell("Say it.", "notes")]),
        (bad_slides, [ASK, HIDDEN, NOTE]),
        (bad_slides, [cell(ASK.source + "\n\nSeven.", "slide"), NOTE]),
        (bad_minutes, [cell("## B", "slide"), cell("**9 min.** Say it.", "notes")]),
    ],
)
def test_a_bad_lecture_is_found(rule, parts):
    assert rule(lecture(*parts))


def test_a_lecture_without_an_agenda_is_found():
    assert bad_minutes(new_notebook(cells=[cell("# A", "slide"), NOTE]))
