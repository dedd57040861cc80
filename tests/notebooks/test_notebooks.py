"""The rules that every notebook keeps, and proof that nbval compares its outputs.

pytest runs the notebooks themselves through nbval, as pyproject.toml says; nbval alone
would pass cells that were never executed. A rule is a function that yields what is
wrong with a notebook.
"""

import ast
import base64
import io
import json
import re
import subprocess
import sys

import nbformat
import pytest
from helpers.repo import CODE, LECTURES, NOTEBOOKS, dead_links
from mirror import as_python
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

IGNORED, RAISES = "nbval-ignore-output", "raises-exception"
IGNORED_SHARE = 1 / 4  # of the cells with output
MACHINE_PATH = re.compile(
    r"(?<![\w.~])/(?:home|root|tmp|Users|work|opt|usr|var|private|mnt|srv)/"
    r"|~[/\\]|\b[A-Z]:\\+\w"
)
OBJECT_REPR = re.compile(r"<Axes|<matplotlib|\bat 0x[0-9a-fA-F]+")
COLOUR_CODE = re.compile(r"\x1b\[[0-9;]*m")
IMAGE = re.compile(r"!\[(.*?)\][(\[]|<img\b([^>]*)>", re.DOTALL | re.IGNORECASE)
ALT = re.compile(r"\balt\s*=\s*([\"'])[^\"']*\w", re.IGNORECASE)


def code(notebook):
    """The code cells that hold code."""
    return [c for c in notebook.cells if c.cell_type == "code" and c.source.strip()]


def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def tags(cell):
    return set(cell.metadata.get("tags", []))


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


def bad_outputs(notebook):
    """Errors that no tag announces, warnings, paths and addresses of one machine."""
    for cell in code(notebook):
        kinds = {output.output_type for output in cell.outputs}
        if ("error" in kinds) != (RAISES in tags(cell)):
            yield f"error, or a tag for one, in: {cell.source[:60]!r}"
        if any(output.get("name") == "stderr" for output in cell.outputs):
            yield f"stderr under: {cell.source[:60]!r}"
    for output in outputs(notebook):
        text = COLOUR_CODE.sub("", text_of(output))
        if "image/png" not in output.get("data", {}) and "<Figure" in text:
            yield "a figure that is a text alone"
        for pattern in (MACHINE_PATH, OBJECT_REPR):
            if match := pattern.search(text):
                yield f"an output holds {text[max(match.start() - 20, 0) :][:80]!r}"


def bad_figures(notebook):
    """Not opaque, not at twice their size, or without a text for who can't see them."""
    for output in outputs(notebook):
        if png := output.get("data", {}).get("image/png"):
            image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
            shown = output.metadata.get("image/png", {})
            if image.getchannel("A").getextrema() != (255, 255):
                yield f"a figure of {image.width}×{image.height} is transparent"
            if image.width // 2 != shown.get("width"):
                yield f"a figure of {image.width} points, shown {shown.get('width')}"
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
        elif waits and cell.outputs:
            waits = False
            if not cell.metadata.get("jupyter", {}).get("outputs_hidden"):
                yield f"a prediction's answer is open: {cell.source[:60]!r}"
    for output in outputs(notebook):
        if text_of(output).startswith("Not yet: wrong in"):
            yield f"told: {text_of(output)[:60]!r}"


def unchecked(notebook):
    """Outputs that nbval doesn't compare, and that nothing else checks."""
    cells = code(notebook)
    if unknown := set().union(*map(tags, cells)) - {IGNORED, RAISES}:
        yield f"unknown tags {unknown}"
    ignored = [cell for cell in cells if IGNORED in tags(cell)]
    shown = [cell for cell in cells if cell.outputs]
    if len(ignored) > IGNORED_SHARE * len(shown):
        yield f"{len(ignored)} of {len(shown)} cells with output are ignored"
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if IGNORED in tags(cell) and not cell.outputs:
            yield f"no output is stored for: {cell.source[:60]!r}"
        if IGNORED in tags(cell) and not (following and asserts(following)):
            yield f"no assert in the cell after: {cell.source[:60]!r}"


def asserts(cell):
    """Whether the cell asserts something that could be false."""
    return any(
        isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant)
        for node in ast.walk(ast.parse(as_python(cell.source)))
    )


RULES = [not_executed, bad_outputs, bad_figures, open_answers, unchecked]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw["metadata"]["kernelspec"]["name"] == "python3"
    # Asked of the JSON: nbformat mends missing and repeated ids when it reads.
    ids = [cell.get("id") for cell in raw["cells"]]
    assert None not in ids and len(set(ids)) == len(ids)
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert dead_links("\n\n".join(prose(notebook)), path.parent) == []
    # A lecture's answer stands open, on the slide after the question.
    rules = [rule for rule in RULES if rule is not open_answers or path not in LECTURES]
    assert [problem for rule in rules for problem in rule(notebook)] == []


# --- that no rule is blind, and nbval itself --------------------------------------


def cell(source, text=None, tags=(), stream=None, **forms):
    """An executed code cell with a value of this text, or a stream."""
    metadata, outputs = {"tags": list(tags)}, []
    if stream:
        outputs.append(new_output("stream", text=text, name=stream))
    elif text:
        data = {"text/plain": text, **forms}
        outputs.append(new_output("execute_result", data, execution_count=1))
    return new_code_cell(source, outputs=outputs, metadata=metadata, execution_count=1)


def png(color):
    file = io.BytesIO()
    Image.new("RGBA", (4, 4), color).save(file, "PNG")
    return {"image/png": base64.b64encode(file.getvalue()).decode()}


FAULTS = {  # what is said: the cells of which it is said
    "execution counts are [1, 1]": [cell("1"), cell("2")],
    "error, or a tag": [cell("f()", "1", [RAISES])],
    "stderr under": [cell("f", "no", stream="stderr")],
    "/Users/ada": [cell("f", "\x1b[32m/Users/ada/x.py", stream="stdout")],
    r"C:\\": [cell("f", repr(r"C:\Users\ada"))],
    "~/course": [cell("f", "~/course/utils/text.py:3", stream="stdout")],
    "0x7f00aa": [cell("f", "<function f at 0x7f00aa>")],
    "a text alone": [cell("f", "<Figure size 640x480>")],
    "figure of 4×4 is tr": [cell("f", "<Figure>", **png("#fff8"))],
    "4 points, shown None": [cell("f", "<Figure>", **png("#fff"))],
    "figure without": [cell("f", "<Figure>", **png("#fff"))],
    "picture without": [new_markdown_cell('<img src="a.png" alt="">'), cell("1")],
    "is open": [new_markdown_cell("Look.\n\n**Predict.** What?"), cell("1", "1")],
    "1 of 1 cells": [cell("f", "2", [IGNORED])],
    "no assert": [cell("f", "2", [IGNORED]), cell("assert True")],
}


@pytest.mark.parametrize("said", FAULTS)
def test_a_fault_is_found(said):
    problems = [
        text for rule in RULES for text in rule(new_notebook(cells=FAULTS[said]))
    ]
    assert any(said in text for text in problems)


FIGURE = """class Figure:
    def __repr__(self):
        return "<Figure size 9x9 with 2 Axes>"
Figure()"""
RUNS = {  # a cell, and whether nbval takes it
    "right": (cell("1 + 1", "2"), True),
    "no_value": (cell("1 + 1"), False),
    "wrong_print": (cell("print(3)", "4\n", stream="stdout"), False),
    "ignored": (cell("1 + 1", "3", [IGNORED]), True),
    "ignored_error": (cell("assert False", "3", [IGNORED]), False),
    "other_size": (cell(FIGURE, "<Figure size 1x2.5 with 2 Axes>"), True),
    "other_axes": (cell(FIGURE, "<Figure size 9x9 with 3 Axes>"), False),
}


def test_nbval_compares(tmp_path, pytestconfig):
    """As pyproject.toml has pytest run the notebooks."""
    assert pytestconfig.getini("testpaths") == ["tests", "notebooks"]
    kernel = {"kernelspec": {"name": "python3", "display_name": "python3"}}
    for name, (part, _) in RUNS.items():
        whole = new_notebook(cells=[part], metadata=kernel)
        nbformat.write(whole, tmp_path / f"{name}.ipynb")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = pytestconfig.getini("addopts")
    wanted = [option for option in options if option.startswith("--nbval")]
    wanted += [f"--nbval-sanitize-with={pytestconfig.option.nbval_sanitize_with}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-q", *wanted],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^(PASSED|FAILED) (\w+)\.ipynb::", done.stdout, re.MULTILINE)
    passed = {name: result == "PASSED" for result, name in found}
    assert passed == {name: taken for name, (_, taken) in RUNS.items()}, done.stdout
