"""What is taught is shown in exactly one notebook, equal to utils to the letter."""

import mirror
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

DOUBLE = "@functools.cache\ndef double(x):\n    # Twice is enough.\n    return 2 * x"
BOX = 'class Box:\n    """Holds one thing."""\n\n    size = 1'
SHOWN = f"# mirror: utils.attention.double\n{DOUBLE}"
HIDDEN = "# mirror: utils.attention._hidden\ndef _hidden():\n    pass"
RIGHT = [SHOWN, "%pip list\n!ls", f"# mirror: utils.attention.Box\n{BOX}", "x = 1"]


@pytest.fixture
def small(tmp_path):
    """`small(*cells)` writes its only notebook and returns the repository's folder."""
    (tmp_path / "utils").mkdir()
    code = f"import functools\n\n\n{DOUBLE}\n\n\n{BOX}\n\n\ndef _hidden():\n    pass\n"
    (tmp_path / "utils" / "attention.py").write_text(code, encoding="utf-8")
    (tmp_path / "notebooks").mkdir()

    def write(*sources):
        cells = [new_code_cell(source) for source in sources]
        nbformat.write(new_notebook(cells=cells), tmp_path / "notebooks" / "01_a.ipynb")
        return tmp_path

    return write


def test_the_notebooks_mirror_utils(small):
    assert mirror.problems() == []
    assert mirror.problems(small(*RIGHT)) == []
    assert mirror.problems(small(SHOWN)) == ["utils.attention.Box is shown 0 times"]


@pytest.mark.parametrize(
    "source, complaint",
    [
        (SHOWN.replace("@functools.cache\n", ""), "differs"),
        (HIDDEN, "there is nothing for"),
        ("class Box:\n    size = 2", "needs the marker"),
        (SHOWN, "double is shown 2 times"),
    ],
)
def test_a_wrong_mirror_is_found(small, source, complaint):
    assert complaint in mirror.problems(small(*RIGHT, source))[0]


def test_the_tool_writes_the_marked_cells_and_nothing_else(small, capsys):
    root = small("x = 1", "# mirror: utils.attention.double\nold", RIGHT[2])
    path = root / "notebooks" / "01_a.ipynb"
    before = nbformat.read(path, as_version=4)
    before.cells[1].outputs = [new_output("stream", text="kept")]
    nbformat.write(before, path)
    assert mirror.problems(root, write=True) == []
    before.cells[1].source = SHOWN
    assert nbformat.read(path, as_version=4) == before
    assert mirror.problems(root, write=True) == []
    assert capsys.readouterr().out.count("wrote notebooks") == 1
