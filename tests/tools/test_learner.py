"""The learner's copy: nothing that a teacher keeps, nothing that leads nowhere."""

import re

import learner
import nbformat
import pytest
from helpers.repo import NUMBERED, ROOT, dead_links, links, read


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy") / "learner"
    learner.build(folder)
    return folder


def code(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def test_nothing_of_a_teacher_is_left_and_no_link_leads_nowhere(copy):
    names = "\n".join(path.name for path in copy.rglob("*"))
    assert not re.search("solution|INSTRUCTOR|CLASSROOM|lectures|tests", names)
    for path in [*copy.rglob("*.md"), *copy.rglob("*.ipynb")]:
        texts = [path.read_text("utf-8")]
        if path.suffix == ".ipynb":
            cells = nbformat.read(path, as_version=4).cells
            texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
        for text in texts:
            assert dead_links(text, path.parent) == [], path.name
    sources = {cell.source for path in copy.rglob("*.ipynb") for cell in code(path)}
    solutions = (ROOT / "notebooks" / "solutions").glob("*.ipynb")
    for answer in (cell.source for path in solutions for cell in code(path)):
        if "def " in answer and "\nexercises." in answer:
            assert answer not in sources


def test_code_stays_and_outputs_but_for_answers(copy):
    cleared = set()
    for path in NUMBERED:
        both = code(path), code(copy / "notebooks" / path.name)
        for old, new in zip(*both, strict=True):
            theirs = re.sub('/learning-to-align(?=")', r"\g<0>-learner", old.source)
            assert new.source == theirs and new.outputs in (old.outputs, [])
            if new.outputs != old.outputs:
                cleared.add(old.id)
            elif old.outputs:
                assert "exercises." not in old.source
    assert "github.com/OWNER/learning-to-align-learner" in both[1][0].source
    assert cleared > {"7d6e02b9", "cf51b027"}  # a prediction's answer, an exercise's


def test_the_readme_and_the_makefile_of_the_copy_tell_of_nothing_that_is_missing(copy):
    text = (copy / "README.md").read_text("utf-8")
    gone = "make test|pytest|ruff|INSTRUCTOR|CLASSROOM|teachers|tools|worksheets"
    assert not re.search(gone, text)
    assert {f"notebooks/{path.name}" for path in NUMBERED} <= set(links(text))
    start = re.search(r"\.venv/bin/python -m jupyterlab .*", read("README.md"))[0]
    assert start in text
    text = (copy / "Makefile").read_text("utf-8")
    offered = set(re.findall(r'echo "make (\w+) ', text))
    assert offered == set(re.findall(r"^(\w+):(?!=)", text, re.M)) - {"help"}
    assert offered == {"lab", "clean"}
    assert not re.search(r"tools/|pytest|tests|NOTEBOOKS", text)
