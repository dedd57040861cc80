"""What every exercise has, and what a notebook says of its time."""

import ast
import dis
import re

import nbformat
import pytest
import torch
from helpers.repo import NUMBERED, number, read, said_and_printed
from mirror import as_python

from utils import exercises
from utils.attention import length_mask

HEADING = re.compile(
    r"^### (?:Exercise )?(\d+) · ([\w ]+) · (\d+) minutes · (?:easy|medium|hard)"
    "( · further)?$",
    re.MULTILINE,
)
TIME = re.compile(
    r"\*\*Time:\*\*\s(\d+)\sminutes\sto\sread,\s(\d+)\sfor\sthe\score\sexercises,"
    r"\s(\d+)\sfor\sthose\smarked\s\*further\*;\sthe\scells\srun\sin"
)
WORDS, LINES = 100, 10  # of prose, of code: read in a minute
LOOK = 2  # minutes for a prediction, or a figure
UNREAD = re.compile(r"<[^>]+>|\]\([^)]*\)|[*`#|]")
LEARNED = "## What you have learned"
STARTER = re.compile(r"^(?:def|class) (?:my|their)", re.MULTILINE | re.IGNORECASE)
DRAWN = re.compile(r"^Draw\(", re.MULTILINE).search  # empty, until its reader draws
MARKED = re.compile(r"^# (?=exercises\.\w+\(their_)", re.MULTILINE)


def load(path):
    return nbformat.read(path, as_version=4)


def exercises_in(path):
    """(number, kind, minutes) of each exercise, and whether it is marked further."""
    found = HEADING.findall(said_and_printed(path))
    return [(int(n), kind, int(m), bool(f)) for n, kind, m, f in found]


def said(notebook):
    """The minutes that a notebook's first cell names: to read, core, further."""
    return tuple(map(int, TIME.search(notebook.cells[0].source).groups()))


def figures(cell):
    """How many pictures a cell shows."""
    shown = [o for o in cell.get("outputs", []) if "image/png" in o.get("data", {})]
    return cell.source.count("![") + len(shown)


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_the_minutes_are_honest(path):
    """To read what stands before the exercises, to five; the sum of the exercises."""
    notebook, reading = load(path), 0
    minutes = said(notebook)
    for cell in notebook.cells:
        if cell.source.startswith("## Exercises"):
            break
        if cell.cell_type == "markdown":
            reading += len(UNREAD.sub(" ", cell.source).split()) / WORDS
            reading += LOOK * cell.source.count("**Predict")
        elif cell.id != "colab":
            code = filter(str.strip, cell.source.splitlines())
            reading += len(list(code)) / LINES
        reading += LOOK * figures(cell)
    practice = {False: 0, True: 0}
    for _, _, each, further in exercises_in(path):
        practice[further] += each
    assert minutes == (max(5, 5 * round(reading / 5)), *practice.values())


@pytest.mark.parametrize("page", ["README.md", "notebooks/00_start_here.ipynb"])
def test_the_maps_have_the_same_minutes(page):
    text = read(page)
    for path in NUMBERED:
        row = re.search(rf"\| *\[?{number(path)} [^\n]*?((?:\| \d+ ){{3}})\|", text)
        assert tuple(map(int, row[1].split("|")[1:])) == said(load(path)), path.name


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_no_assert_answers_a_prediction(path):
    """Not in the cell whose output is predicted, the first after it that has one."""
    cells = iter(load(path).cells)
    shown = [
        next((c.source for c in cells if c.get("outputs") and not DRAWN(c.source)), "")
        for cell in cells
        if cell.cell_type == "markdown" and "**Predict" in cell.source
    ]
    assert len(shown) > 2
    assert [s for s in shown if re.search(r"^\s*assert\b", s, re.MULTILINE)] == []


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_each_exercise_has_a_solution(path):
    found = [(str(n), kind) for n, kind, *_ in exercises_in(path)]
    assert [n for n, _ in found] == [*map(str, range(1, len(found) + 1))]
    solutions = (path.parent / "solutions").glob(f"{number(path)}_*.ipynb")
    text = "\n".join(map(said_and_printed, solutions))
    solved = re.findall(r"^## (\d+) · ([\w ]+)$", text, re.MULTILINE)
    assert sorted(solved) == sorted(found)


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_each_idea_is_practised(path):
    """The instructor's page has exercises for each idea that the learner has."""
    sources = [cell.source for cell in load(path).cells]
    (learned,) = (s.partition(LEARNED)[2] for s in sources if LEARNED in s)
    ideas = re.findall("^- ", learned, re.MULTILINE)
    page = read("notebooks/INSTRUCTOR.md").split(f"\n### {number(path)} · ")[1]
    practised = re.search(r"\*\*Practised\.\*\* (.+)", page)[1].split(" · ")
    assert len(practised) == len(ideas)
    numbers = {str(n) for n, *_ in exercises_in(path)}
    assert numbers.issuperset(", ".join(practised).split(", "))


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_each_bug_to_find_is_named_once_the_mark_is_away(path, capsys):
    cells = [cell for cell in load(path).cells if cell.cell_type == "code"]
    bugs = [c.source for c in cells if MARKED.search(c.source)]
    known = {"torch": torch, "exercises": exercises, "length_mask": length_mask}
    for bug in bugs:
        exec(MARKED.sub("", bug), dict(known))
    said = capsys.readouterr().out
    assert said.count("Not yet. ") == len(bugs) and "It raised" not in said


@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_a_broken_answer_breaks_no_other_cell(path):
    """No cell for an answer binds a name that another needs, but 07's own pieces."""
    cells = [cell for cell in load(path).cells if cell.cell_type == "code"]
    starters = [cell for cell in cells if STARTER.search(cell.source)]
    for starter in starters:
        code = compile(as_python(starter.source), path, "exec")
        bound = {s.argval for s in dis.get_instructions(code) if "STORE" in s.opname}
        others = [ast.parse(as_python(c.source)) for c in cells if c is not starter]
        nodes = [node for tree in others for node in ast.walk(tree)]
        needed = bound & {node.id for node in nodes if isinstance(node, ast.Name)}
        assert [name for name in needed if not name.lower().startswith("my")] == []
    assert any("from utils import" in c.source for c in cells if c not in starters)
