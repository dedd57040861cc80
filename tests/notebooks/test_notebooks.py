"""The rules that every notebook keeps, and that nbval compares its outputs.

pytest runs the notebooks themselves through nbval, as pyproject.toml says; nbval alone
would pass cells that were never executed. A rule is a function that yields what is
wrong with a notebook.
"""

import ast
import json
import re
import subprocess
import sys

import nbformat
import pytest
from helpers.repo import CODE, LECTURES, NOTEBOOKS, ROOT, dead_links
from mirror import as_python
from nbformat.v4 import new_code_cell, new_notebook, new_output

IGNORED = "nbval-ignore-output"
IGNORED_SHARE = 1 / 4  # of the cells with output
MACHINE_PATH = re.compile(
    r"(?<![\w.~])/(?:home|root|tmp|Users|work|opt|usr|var|private|mnt|srv)/"
    r"|~[/\\]|\b[A-Z]:\\+\w"
)
COLOUR_CODE = re.compile(r"\x1b\[[0-9;]*m")
IMAGE = re.compile(r"!\[(.*?)\][(\[]|<img\b([^>]*)>", re.DOTALL | re.IGNORECASE)
ALT = re.compile(r"\balt\s*=\s*([\"'])[^\"']*\w", re.IGNORECASE)


def code(notebook):
    """The code cells that hold code."""
    return [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]


def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def is_ignored(cell):
    return IGNORED in cell.metadata.get("tags", [])


def outputs(notebook):
    return [output for cell in code(notebook) for output in cell.outputs]


def text_of(output):
    """All texts of an output: a stream, an error, each textual form of a value."""
    forms = output.get("data", {}).items()
    texts = [t for kind, t in forms if kind.startswith("text/") or "svg" in kind]
    return "\n".join([output.get("text", ""), *output.get("traceback", []), *texts])


# --- the rules -------------------------------------------------------------------


def not_executed(notebook):
    counts = [cell.execution_count for cell in code(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        yield f"execution counts are {counts}, not 1 to {len(counts)}"


def stored_widgets(notebook):
    """Out of date at once: of a progress bar, its first state would be shown."""
    data = {kind for output in outputs(notebook) for kind in output.get("data", {})}
    if "widgets" in notebook.metadata or any("widget" in kind for kind in data):
        yield "a widget is stored: `make notebooks` stores none"


def bad_outputs(notebook):
    """Warnings, paths of one machine, pictures that are missing or have no words."""
    for output in outputs(notebook):
        text, data = COLOUR_CODE.sub("", text_of(output)), output.get("data", {})
        if output.get("name") == "stderr":
            yield f"stderr: {text[:60]!r}"
        if match := MACHINE_PATH.search(text):
            yield f"an output holds {text[max(match.start() - 20, 0) :][:80]!r}"
        if "<Figure" in text and "image/png" not in data:
            yield "a figure that is a text alone"
        if "image/png" in data:
            shown = output.metadata.get("image/png", {})
            if len(shown.get("alt", "").split()) < 5:
                yield "a figure without alternative text: utils.plotting adds it"
    for text in prose(notebook):
        for alt, rest in IMAGE.findall(CODE.sub("", text)):
            if not (alt.strip() or ALT.search(rest)):
                yield f"a picture without alternative text in {text[:60]!r}"


def open_answers(notebook):
    """What says the answer before a reader has tried."""
    waits = False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            waits = bool(re.search(r"^\*\*Predict\.\*\*", cell.source, re.MULTILINE))
        elif waits and cell.outputs and "Draw(" not in cell.source:
            waits = False
            if not cell.metadata.get("jupyter", {}).get("outputs_hidden"):
                yield f"a prediction's answer is open: {cell.source[:60]!r}"
    for output in outputs(notebook):
        if re.match(r"Not yet\. .*\n  Tried ", text_of(output), re.DOTALL):
            yield f"told: {text_of(output)[:60]!r}"


def unchecked(notebook):
    """Outputs that nbval doesn't compare, and that nothing else checks."""
    cells = code(notebook)
    shown = [cell for cell in cells if cell.outputs]
    ignored = [cell for cell in cells if is_ignored(cell)]
    if len(ignored) > IGNORED_SHARE * len(shown):
        yield f"{len(ignored)} of {len(shown)} cells with output are ignored"
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if is_ignored(cell) and not (following and asserts(following)):
            yield f"no assert in the cell after: {cell.source[:60]!r}"


def asserts(cell):
    nodes = ast.walk(ast.parse(as_python(cell.source)))
    return any(isinstance(node, ast.Assert) for node in nodes)


RULES = [not_executed, stored_widgets, bad_outputs, open_answers, unchecked]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    # Asked of the JSON: nbformat mends missing and repeated ids when it reads.
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert dead_links("\n\n".join(prose(notebook)), path.parent) == []
    # A lecture's answer stands open, on the slide after the question.
    rules = [rule for rule in RULES if rule is not open_answers or path not in LECTURES]
    assert [problem for rule in rules for problem in rule(notebook)] == []


CELLS = [  # what is printed, what is stored, and what nbval says of it
    ("2", "3", "FAILED"),
    ("<Figure size 9x9 with 2 Axes>", "<Figure size 1x2.5 with 2 Axes>", "PASSED"),
]


def test_nbval_compares(tmp_path, pytestconfig):
    """As pyproject.toml has pytest run the notebooks."""
    assert pytestconfig.getini("testpaths") == ["tests", "notebooks"]
    cells = []
    for printed, stored, _ in CELLS:
        outputs = [new_output("stream", text=f"{stored}\n")]
        code = {"source": f"print('{printed}')", "execution_count": 1}
        cells.append(new_code_cell(**code, outputs=outputs))
    kernel = {"kernelspec": {"name": "python3", "display_name": "python3"}}
    path = tmp_path / "a.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata=kernel), path)
    command = [sys.executable, "-m", "pytest", "-rA", "-c", ROOT / "pyproject.toml"]
    command += ["-p", "no:cacheprovider", path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    verdicts = re.findall(r"^(PASSED|FAILED) .*::Cell (\d)", done.stdout, re.MULTILINE)
    wanted = {(verdict, str(n)) for n, (*_, verdict) in enumerate(CELLS)}
    assert {*verdicts} == wanted, done.stdout
