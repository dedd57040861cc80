"""The learner's copy: nothing that a teacher keeps, nothing that leads nowhere."""

import re
import shutil

import learner
import nbformat
import pytest
from helpers.repo import NUMBERED, ROOT, links, read


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("copy") / "learner"
    learner.build(folder)
    return folder


def cells(path):
    return nbformat.read(path, as_version=4).cells


def test_nothing_is_wrong_with_the_copy(copy):
    assert list(learner.problems(copy)) == []
    notebooks = {path.name for path in copy.glob("notebooks/*.ipynb")}
    assert notebooks == {path.name for path in NUMBERED}
    code = [c.source for p in copy.rglob("*.ipynb") for c in cells(p)]
    for path in (ROOT / "notebooks" / "solutions").glob("*.ipynb"):
        for cell in cells(path):
            if re.search(r"^def .*\n^exercises\.", cell.source, re.M | re.DOTALL):
                assert cell.source not in code, path.name


def test_what_does_not_belong_into_the_copy_is_found(copy, tmp_path):
    spoiled = shutil.copytree(copy, tmp_path / "spoiled")
    (spoiled / "notebooks" / "solutions").mkdir()
    for name in ("solutions/00_start_here.ipynb", "02_additive_scoring.ipynb"):
        shutil.copy(ROOT / "notebooks" / name, spoiled / "notebooks" / name)
    (spoiled / "README.md").write_text(read("notebooks/INSTRUCTOR.md"), "utf-8")
    found = "\n".join(learner.problems(spoiled))
    assert "solutions is the teacher's" in found
    assert "the cell 7d6e02b9 shows its answer" in found, "a prediction's"
    assert "the cell cf51b027 shows its answer" in found, "an exercise's"
    assert "solutions/02_additive_scoring.ipynb) leads nowhere" in found
    assert "README.md has answers of the quiz" in found


def test_code_stays_and_so_do_the_other_outputs(copy):
    shown = cleared = 0
    for path in NUMBERED:
        both = path, copy / "notebooks" / path.name
        code = [[c for c in cells(p) if c.cell_type == "code"] for p in both]
        for old, new in zip(*code, strict=True):
            assert new.source == old.source and new.outputs in (old.outputs, [])
            shown += bool(new.outputs)
            cleared += new.outputs != old.outputs
    assert shown > cleared > 50


def test_the_readme_and_the_makefile_of_the_copy_tell_of_nothing_that_is_missing(copy):
    text = (copy / "README.md").read_text("utf-8")
    gone = "make test|pytest|ruff|INSTRUCTOR|CLASSROOM|teachers|tools|worksheets"
    assert not re.search(gone, text)
    assert {f"notebooks/{path.name}" for path in NUMBERED} <= set(links(text))
    assert (
        re.search(r"\.venv/bin/python -m jupyterlab .*", read("README.md"))[0] in text
    )
    text = (copy / "Makefile").read_text("utf-8")
    offered = set(re.findall(r'echo "make (\w+) ', text))
    assert offered == set(re.findall(r"^(\w+):(?!=)", text, re.M)) - {"help"}
    assert offered == {"lab", "clean"}
    assert not re.search(r"tools/|pytest|tests|NOTEBOOKS", text)
