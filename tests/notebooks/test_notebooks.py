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
from helpers.repo import LECTURES, NOTEBOOKS, dead_links
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
FENCED = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
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
    if output.output_type == "error":
        return "\n".join([output.ename, output.evalue, *output.traceback])
    forms = output.get("data", {"text/plain": output.get("text", "")}).items()
    return "\n".join(
        t for kind, t in forms if kind.startswith("text/") or "svg" in kind
    )


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
        for alt, rest in IMAGE.findall(FENCED.sub("", text)):
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
    problems = [
        f"dead link: {link}"
        for text in prose(notebook)
        for link in dead_links(text, path.parent)
    ]
    for rule in RULES:
        # A lecture's answer stands open, on the slide after the question.
        if not (rule is open_answers and path in LECTURES):
            problems += rule(notebook)
    assert not problems, "\n" + "\n".join(problems)


# --- what the rules find, where it isn't plain ------------------------------------


def stream(text, name="stdout"):
    return new_output("stream", text=text, name=name)


def value(text):
    return new_output("execute_result", {"text/plain": text}, execution_count=1)


def cell(source, *stored, tags=()):
    metadata = {"tags": list(tags)}
    return new_code_cell(
        source, outputs=list(stored), metadata=metadata, execution_count=1
    )


def picture(color, width=2, alt="One row, and all of it white."):
    file = io.BytesIO()
    Image.new("RGBA", (4, 4), color).save(file, "PNG")
    png = base64.b64encode(file.getvalue()).decode()
    shown = {"image/png": {"width": width, "alt": alt}}
    data = {"image/png": png, "text/plain": "<Figure size>"}
    return cell("f", new_output("display_data", data, metadata=shown))


ERROR = new_output("error", ename="ValueError", evalue="no", traceback=["no"])
CLOCK = cell("time()", value("2"), tags=[IGNORED])
FOUR = [cell("1", value("1")) for _ in range(4)]
ASK = new_markdown_cell("Look.\n\n**Predict.** What?")
FOLDED = cell("1 + 1", value("2"))
FOLDED.metadata["jupyter"] = {"outputs_hidden": True}


@pytest.mark.parametrize(
    ("rule", "cells", "found"),
    [
        (bad_outputs, [cell("f()", ERROR, tags=[RAISES])], None),
        (bad_outputs, [cell("f()", value("1"), tags=[RAISES])], "error, or a tag"),
        (bad_outputs, [cell("f", value("'/home/ada/course'"))], "/home/ada"),
        (bad_outputs, [cell("f", stream("\x1b[32m/Users/ada/x.py"))], "/Users"),
        (bad_outputs, [cell("f", value(repr(r"C:\Users\ada")))], "C:"),
        (bad_outputs, [cell("f", stream("~/course/utils/text.py:3"))], "~/course"),
        (bad_outputs, [cell("f", stream("a/home/b, https://a.org/home/"))], None),
        (bad_outputs, [cell("f", value("<function f at 0x7f00aa>"))], "0x7f00aa"),
        (bad_outputs, [cell("f", value("<Figure size 640x480>"))], "a text alone"),
        (bad_figures, [picture("white")], None),
        (bad_figures, [picture((255, 255, 255, 254))], "transparent"),
        (bad_figures, [picture("white", width=4)], "4 points, shown 4"),
        (bad_figures, [picture("white", alt="a figure")], "without alternative"),
        (bad_figures, [new_markdown_cell('<img src="a.png" alt="">')], "without"),
        (bad_figures, [new_markdown_cell("![a bar](b) `![](b)`")], None),
        (open_answers, [ASK, cell("1 + 1", value("2"))], "is open"),
        (open_answers, [ASK, cell("x = 1"), CLOCK], "is open"),
        (open_answers, [ASK, FOLDED, CLOCK], None),
        (unchecked, [*FOUR, CLOCK, cell("assert x")], None),
        (unchecked, [CLOCK, cell("assert x")], "1 of 1 cells"),
        (unchecked, [*FOUR, CLOCK, cell("# assert x > 0")], "no assert"),
        (unchecked, [*FOUR, CLOCK, cell("assert True")], "no assert"),
    ],
)
def test_what_a_rule_finds(rule, cells, found):
    problems = list(rule(new_notebook(cells=cells)))
    assert problems == [] if found is None else found in problems[0]


# --- nbval itself ----------------------------------------------------------------

FIGURE = """class Figure:
    def __repr__(self):
        return "<Figure size 9x9 with 2 Axes>"
Figure()"""
RUNS = {  # a cell, and whether nbval takes it
    "right": (cell("1 + 1", value("2")), True),
    "no_value": (cell("1 + 1"), False),
    "wrong_print": (cell("print(3)", stream("4\n")), False),
    "ignored": (cell("1 + 1", value("3"), tags=[IGNORED]), True),
    "ignored_error": (cell("assert False", value("3"), tags=[IGNORED]), False),
    "other_size": (cell(FIGURE, value("<Figure size 1x2.5 with 2 Axes>")), True),
    "other_axes": (cell(FIGURE, value("<Figure size 9x9 with 3 Axes>")), False),
}


def test_nbval_compares(tmp_path, pytestconfig):
    """As pyproject.toml has pytest run the notebooks."""
    assert pytestconfig.getini("testpaths") == ["tests", "notebooks"]
    for name, (part, _) in RUNS.items():
        kernel = {"kernelspec": {"name": "python3", "display_name": "python3"}}
        whole = new_notebook(cells=[part], metadata=kernel)
        nbformat.write(whole, tmp_path / f"{name}.ipynb")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    options = pytestconfig.getini("addopts")
    wanted = [option for option in options if option.startswith("--nbval")]
    assert "--nbval" in wanted
    sanitized = f"--nbval-sanitize-with={pytestconfig.option.nbval_sanitize_with}"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-q", *wanted, sanitized],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    found = re.findall(r"^(PASSED|FAILED) (\w+)\.ipynb::", done.stdout, re.MULTILINE)
    expected = {
        (("FAILED", "PASSED")[taken], name) for name, (_, taken) in RUNS.items()
    }
    assert set(found) == expected
