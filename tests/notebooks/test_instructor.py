"""The instructor's page: its figures are the notebooks', its chapters are linked."""

import re

import nbformat
import pytest
from helpers.repo import NUMBERED, read
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

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


def figures_not_in(text, notebook):
    """Decimal numbers of a text that no cell or output of the notebook begins with."""
    content = [c.source for c in notebook.cells]
    for c in notebook.cells:
        for output in c.get("outputs", []):
            content.append(output.get("text", output.get("data", {}).get("text/plain")))
    known = DECIMAL.findall("\n".join(filter(None, content)))
    return [n for n in DECIMAL.findall(text) if not any(k.startswith(n) for k in known)]


@pytest.mark.parametrize(("number", "text"), about(), ids=[n for n, _ in about()])
def test_the_instructor_quotes_figures_that_the_notebook_has(number, text):
    (path,) = (path for path in NUMBERED if path.name.startswith(number))
    assert not figures_not_in(text, nbformat.read(path, as_version=4))


def test_a_figure_that_a_notebook_does_not_have_is_noticed():
    output = new_output("stream", text="BLEU 89.9")
    cells = [new_markdown_cell("It is 0.373."), new_code_cell("1", outputs=[output])]
    assert figures_not_in("0.37, 89.9, 12.5", new_notebook(cells=cells)) == ["12.5"]


def test_every_chapter_of_the_instructor_s_page_can_be_reached():
    anchors = re.findall(r"\]\(#([\w-]+)\)", TEACHING)
    headings = re.findall(r"^## (.+)$", TEACHING, re.M)
    assert anchors == [heading.lower().replace(" ", "-") for heading in headings]
    assert {n for n, _ in about()} >= {path.name[:2] for path in NUMBERED}
