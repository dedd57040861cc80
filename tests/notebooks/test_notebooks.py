"""The rules that every notebook keeps, and proof that nbval compares its outputs.

pytest runs the notebooks themselves through nbval, as pyproject.toml says. A rule is a
function that returns what is wrong with a notebook; each is tested on one that it must
reject. nbval alone would pass cells that were never executed.
"""

import ast
import base64
import io
import json
import re
import statistics
import subprocess
import sys

import nbformat
import pytest
from helpers.repo import LECTURES, NOTEBOOKS, dead_links
from mirror import MARKER, as_python
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

IGNORED = "nbval-ignore-output"
RAISES = "raises-exception"
KNOWN_TAGS = {IGNORED, RAISES}
LONGEST_CELL = 30  # lines
LONGEST_CLASS = 45  # of a mirrored class: it is shown whole, an argument a line
MEDIAN_CELL = 8
IGNORED_SHARE = 1 / 4  # of the cells with output

MACHINE_PATH = re.compile(
    r"(?<![\w.~])/(?:home|root|tmp|Users|work|opt|usr|var|private|mnt|srv)/"
    r"|~[/\\]|\b[A-Z]:\\+\w"
)
OBJECT_REPR = re.compile(r"<Axes|<matplotlib|\bat 0x[0-9a-fA-F]+")
FIGURE_REPR = re.compile(r"<Figure")
COLOUR_CODE = re.compile(r"\x1b\[[0-9;]*m")
FILLER = re.compile(r"\b(?:simply|obviously)\b", re.IGNORECASE)
FENCED = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
PICTURE = re.compile(r"!\[\s*\]\(|!\[\s*\]\[")
IMG_TAG = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
PREDICT = re.compile(r"^\*\*Predict\.\*\*", re.MULTILINE)
ALT = re.compile(r"\balt\s*=\s*(?:\"[^\"]*\w[^\"]*\"|'[^']*\w[^']*')", re.IGNORECASE)


def code(notebook):
    """The code cells that hold code."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code" and cell.source.strip()
    ]


def prose(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def tags(cell):
    return set(cell.metadata.get("tags", []))


def tree(cell):
    try:
        return ast.parse(as_python(cell.source))
    except SyntaxError:  # the mirror rule reports it
        return ast.parse("")


def texts(output):
    """Every text of an output: streams, errors, and each textual form of a value."""
    if output.output_type == "stream":
        return [output.text]
    if output.output_type == "error":
        return [output.ename, output.evalue, *output.traceback]
    forms = output.data.items()
    return [text for kind, text in forms if kind.startswith("text/") or "svg" in kind]


def outputs(notebook):
    return [output for cell in code(notebook) for output in cell.outputs]


# --- the rules -------------------------------------------------------------------


def not_executed(notebook):
    counts = [cell.execution_count for cell in code(notebook)]
    if counts != list(range(1, len(counts) + 1)):
        return [f"execution counts are {counts}, not 1 to {len(counts)}"]
    return []


def bad_outputs(notebook):
    found = []
    for cell in code(notebook):
        kinds = {output.output_type for output in cell.outputs}
        if ("error" in kinds) != (RAISES in tags(cell)):
            found.append(f"error, or a tag for one, in: {cell.source[:60]!r}")
        if any(output.get("name") == "stderr" for output in cell.outputs):
            found.append(f"stderr under: {cell.source[:60]!r}")
    return found


def machine_text(notebook):
    """Paths of one machine, addresses, and plot objects shown as text."""
    found = []
    for output in outputs(notebook):
        text = COLOUR_CODE.sub("", "\n".join(texts(output)))
        patterns = [MACHINE_PATH, OBJECT_REPR]
        if "image/png" not in output.get("data", {}):
            patterns.append(FIGURE_REPR)
        for pattern in patterns:
            if match := pattern.search(text):
                around = text[max(match.start() - 20, 0) : match.end() + 40]
                found.append(f"an output holds {around!r}")
    return found


def see_through(notebook):
    """Figures whose background is not opaque: a dark page would swallow them."""
    found = []
    for output in outputs(notebook):
        if png := output.get("data", {}).get("image/png"):
            image = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGBA")
            if image.getchannel("A").getextrema() != (255, 255):
                found.append(f"a figure of {image.width}×{image.height} is transparent")
    return found


def bare_figures(notebook):
    """Figures without a text for who can't see them, or not at twice their size."""
    found = []
    for output in outputs(notebook):
        if png := output.get("data", {}).get("image/png"):
            shown = output.metadata.get("image/png", {})
            width, _ = Image.open(io.BytesIO(base64.b64decode(png))).size
            if len(shown.get("alt", "").split()) < 5:
                found.append(
                    "a figure without alternative text: utils.plotting adds it"
                )
            if width // 2 != shown.get("width"):
                found.append(f"a figure of {width} points, shown {shown.get('width')}")
    return found


def open_answers(notebook):
    """What says the answer before a reader has tried."""
    found, waits = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            waits = bool(PREDICT.search(cell.source))
        elif waits and cell.outputs:
            waits = False
            if not cell.metadata.get("jupyter", {}).get("outputs_hidden"):
                found.append(f"a prediction's answer is open: {cell.source[:60]!r}")
    told = [text for output in outputs(notebook) for text in texts(output)]
    found += [
        f"told: {text[:60]!r}" for text in told if text.startswith("Not yet: wrong in")
    ]
    return found


def long_cells(notebook):
    """Cells over the limits. The median is that of a notebook's own cells."""
    found, lengths = [], []
    for cell in code(notebook):
        mirrored, n = cell.source.startswith(MARKER), len(cell.source.splitlines())
        if n > (LONGEST_CLASS if mirrored else LONGEST_CELL):
            found.append(f"a cell has {n} lines")
        if not mirrored:
            lengths.append(n)
    if lengths and statistics.median(lengths) > MEDIAN_CELL:
        found.append(f"the median cell has {statistics.median(lengths)} lines")
    return found


def bad_tags(notebook):
    found = [
        f"unknown tag {tag!r}"
        for cell in notebook.cells
        for tag in sorted(tags(cell) - KNOWN_TAGS)
    ]
    cells = code(notebook)
    ignored = [cell for cell in cells if IGNORED in tags(cell)]
    shown = [cell for cell in cells if cell.outputs]
    if len(ignored) > IGNORED_SHARE * len(shown):
        found.append(f"{len(ignored)} of {len(shown)} cells with output are ignored")
    for cell, following in zip(cells, [*cells[1:], None], strict=True):
        if IGNORED in tags(cell) and not cell.outputs:
            found.append(f"no output is stored for: {cell.source[:60]!r}")
        if IGNORED in tags(cell) and not (following and asserts(following)):
            found.append(f"no assert in the cell after: {cell.source[:60]!r}")
    return found


def asserts(cell):
    """Whether the cell asserts something that could be false."""
    return any(
        isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant)
        for node in ast.walk(tree(cell))
    )


def bad_text(notebook):
    found = ["touches sys.path"] * any("sys.path" in c.source for c in code(notebook))
    for text in prose(notebook):
        plain = FENCED.sub("", text)
        found += [f"the word {word!r}" for word in FILLER.findall(plain)]
        images = IMG_TAG.findall(plain)
        if PICTURE.search(plain) or any(not ALT.search(image) for image in images):
            found.append("a picture without alternative text")
    return found


RULES = [
    not_executed,
    bad_outputs,
    machine_text,
    see_through,
    bare_figures,
    open_answers,
    long_cells,
    bad_tags,
    bad_text,
]
# A lecture's answer stands open, on the slide after the question: test_lectures.py.
FOR_LECTURES = [rule for rule in RULES if rule is not open_answers]


def bad_ids(raw):
    """Asked of the JSON: nbformat mends missing and repeated ids when it reads."""
    ids = [cell.get("id") for cell in raw["cells"]]
    found = ["a cell has no id"] if None in ids else []
    return found + (["two cells have one id"] if len(set(ids)) < len(ids) else [])


# --- the course's notebooks ------------------------------------------------------


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path):
    raw = json.loads(path.read_text(encoding="utf-8"))
    problems = bad_ids(raw)
    assert raw["metadata"]["kernelspec"]["name"] == "python3"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for rule in FOR_LECTURES if path in LECTURES else RULES:
        problems += [f"{rule.__name__}: {problem}" for problem in rule(notebook)]
    for text in prose(notebook):
        problems += [f"dead link: {link}" for link in dead_links(text, path.parent)]
    assert not problems, "\n" + "\n".join(problems)


# --- the rules themselves --------------------------------------------------------


def figure(mode="RGB", color="white", **changed):
    file = io.BytesIO()
    Image.new(mode, (4, 4), color).save(file, "PNG")
    png = base64.b64encode(file.getvalue()).decode()
    data = {"image/png": png, "text/plain": "<Figure size>"}
    shown = {"width": 2, "height": 2, "alt": "One row, and all of it white."}
    return new_output(
        "display_data", data, metadata={"image/png": {**shown, **changed}}
    )


def stream(text, name="stdout"):
    return new_output("stream", text=text, name=name)


def value(text):
    return new_output("execute_result", {"text/plain": text}, execution_count=1)


def error():
    return new_output("error", ename="ValueError", evalue="no", traceback=["no"])


def cell(source, *stored, tags=()):
    return new_code_cell(source, outputs=list(stored), metadata={"tags": list(tags)})


def folded(source, *stored):
    return new_code_cell(source, outputs=list(stored), metadata=HIDDEN)


def cells(number, source, *stored):
    return [cell(source, *stored) for _ in range(number)]


HIDDEN = {"jupyter": {"outputs_hidden": True}}
KERNEL = {"kernelspec": {"name": "python3", "display_name": "python3"}}


def notebook(*cells):
    """An executed notebook of these cells; a string is a Markdown cell."""
    whole = new_notebook(metadata=KERNEL)
    for part in cells:
        whole.cells.append(new_markdown_cell(part) if isinstance(part, str) else part)
    for count, part in enumerate(code(whole), start=1):
        part.execution_count = count
        for output in part.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    return whole


def good():
    return notebook(
        "# A notebook\n\nA sum. ![a bar](img/bar.png) `simply` $[a](b)$",
        cell("1 + 1", value("2")),
        cell("import time\nprint(time.time())", stream("1.5\n"), tags=[IGNORED]),
        cell("# the clock runs\nassert time.time() > 0"),
        cell("_ = show_heatmap(weights)", figure("RGBA", (255, 255, 255, 255))),
        cell("raise ValueError('no')", error(), tags=[RAISES]),
        cell("print('a/home/b', 'https://example.org/home/')", stream("a/home/b\n")),
        cell("model.train()"),
        "Look.\n\n**Predict.** What is the sum?",
        cell("import math"),
        folded("1 + 2", value("3")),
        cell("exercises.shift(mine)", stream("Not attempted yet: write")),
        cell(""),
    )


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_good_notebook_passes(rule):
    assert rule(good()) == []


def swapped():
    whole = good()
    first, second, *_ = code(whole)
    first.execution_count, second.execution_count = 2, 1
    return whole


def never_run():
    whole = good()
    code(whole)[-1].execution_count = None
    return whole


CLOCK = cell("time()", value("2"), tags=[IGNORED])
FOUR = cells(4, "1", value("1"))
REJECTED = [
    (not_executed, never_run()),
    (not_executed, swapped()),
    (bad_outputs, notebook(cell("f()", stream("UserWarning", "stderr")))),
    (bad_outputs, notebook(cell("f()", error()))),
    (bad_outputs, notebook(cell("f()", value("1"), tags=[RAISES]))),
    (machine_text, notebook(cell("f", value("'/home/ada/course'")))),
    (machine_text, notebook(cell("f", stream("File \x1b[32m/Users/ada/x.py")))),
    (machine_text, notebook(cell("f", stream(r"C:\Users\ada")))),
    (machine_text, notebook(cell("f", value(repr(r"C:\Users\ada"))))),
    (machine_text, notebook(cell("f", stream("File ~/course/utils/text.py:3")))),
    (machine_text, notebook(cell("f", value("<Axes: title='x'>")))),
    (machine_text, notebook(cell("f", value("[<matplotlib.lines.Line2D>]")))),
    (machine_text, notebook(cell("f", value("<function f at 0x7f00aa>")))),
    (machine_text, notebook(cell("f", value("<Figure size 640x480 with 0 Axes>")))),
    (see_through, notebook(cell("f", figure("RGBA", (255, 255, 255, 0))))),
    (see_through, notebook(cell("f", figure("LA", (255, 254))))),
    (bare_figures, notebook(cell("f", figure(alt="a figure")))),
    (bare_figures, notebook(cell("f", figure(width=4)))),
    (open_answers, notebook("**Predict.** What?", cell("1 + 1", value("2")))),
    (open_answers, notebook("**Predict.** What?", cell("x = 1"), CLOCK)),
    (open_answers, notebook(cell("exercises.f(g)", stream("Not yet: wrong in 1")))),
    (long_cells, notebook(cell("x = 1\n" * 31), *cells(9, "1"))),
    (long_cells, notebook(cell("# mirror: x\n" + "x = 1\n" * 45), *cells(9, "1"))),
    (long_cells, notebook(*cells(3, "x = 1\n" * 9))),
    (bad_tags, notebook(cell("1", tags=["nbval-skip"]))),
    (bad_tags, notebook(cell("1", value("1"), tags=[IGNORED]), cell("assert x"))),
    (bad_tags, notebook(*FOUR, CLOCK)),
    (bad_tags, notebook(*FOUR, cell("f()", tags=[IGNORED]), cell("assert x"))),
    (bad_tags, notebook(*FOUR, CLOCK, cell("x"))),
    (bad_tags, notebook(*FOUR, CLOCK, cell("assert True"))),
    (bad_tags, notebook(*FOUR, CLOCK, cell("# assert x > 0"))),
    (bad_text, notebook(cell("import sys\nsys.path.append('..')"))),
    (bad_text, notebook("Simply run it.")),
    (bad_text, notebook("![](img/bar.png)")),
    (bad_text, notebook('<img src="img/bar.png">')),
    (bad_text, notebook('<img src="img/bar.png" alt="">')),
]


@pytest.mark.parametrize("rule, whole", REJECTED)
def test_a_bad_notebook_is_found(rule, whole):
    assert rule(whole)


def test_missing_and_repeated_ids_are_found():
    assert bad_ids({"cells": [{"id": "a"}, {}]})
    assert bad_ids({"cells": [{"id": "a"}, {"id": "a"}]})
    assert not bad_ids({"cells": [{"id": "a"}, {"id": "b"}]})


# --- nbval itself ----------------------------------------------------------------


FIGURE = """class Figure:
    def __repr__(self):
        return "<Figure size 9x9 with 2 Axes>"
Figure()"""
RUNS = {  # a cell, and whether nbval takes it
    "right_value": (cell("1 + 1", value("2")), True),
    "right_print": (cell("print(3)", stream("3\n")), True),
    "no_value": (cell("1 + 1"), False),
    "no_print": (cell("print(3)"), False),
    "wrong_value": (cell("1 + 1", value("3")), False),
    "wrong_print": (cell("print(3)", stream("4\n")), False),
    "ignored": (cell("1 + 1", value("3"), tags=[IGNORED]), True),
    "ignored_error": (cell("assert False", value("3"), tags=[IGNORED]), False),
    "expected_error": (cell("raise ValueError('no')", error(), tags=[RAISES]), True),
    "unexpected_error": (cell("assert 1 + 1 == 3"), False),
    "uses_utils": (cell("import utils\nutils.__name__", value("'utils'")), True),
    "other_size": (cell(FIGURE, value("<Figure size 1x2.5 with 2 Axes>")), True),
    "other_axes": (cell(FIGURE, value("<Figure size 9x9 with 3 Axes>")), False),
}


def test_nbval_compares(tmp_path, pytestconfig):
    """As pyproject.toml has pytest run the notebooks."""
    assert pytestconfig.getini("testpaths") == ["tests", "notebooks"]
    for name, (part, _) in RUNS.items():
        nbformat.write(notebook(part), tmp_path / f"{name}.ipynb")
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
    expected = [
        (("FAILED", "PASSED")[taken], name) for name, (_, taken) in RUNS.items()
    ]
    assert sorted(found) == sorted(expected)
