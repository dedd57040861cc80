"""What the lectures keep, as notebooks: for the wall, with something to say.

Whether a slide fits is seen in a browser: tests/browser/test_slides.py.
"""

import re

import nbformat
import pytest
from helpers.repo import LECTURES

MOST_SLIDES = 25
LONGEST_CODE = 10  # lines
KINDS = {"slide", "-", "notes", "skip"}
MINUTES = re.compile(r"\*\*(\d+) min\.\*\* ")
PREDICT = "> **Predict.** "
HEADING = re.compile(r"^#{1,2} .+", re.MULTILINE)


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


def bad_slides(notebook):
    """A heading, little code, notes with minutes, a question that stands last."""
    found, whole = [], slides(notebook)
    found += [f"type {kind(c)!r}" for c in notebook.cells if kind(c) not in KINDS]
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


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_a_lecture_keeps_the_rules_and_has_fifty_minutes(path):
    notebook = nbformat.read(path, as_version=4)
    assert bad_slides(notebook) == []
    assert sum(map(int, MINUTES.findall(text_of(notebook.cells)))) == 50
