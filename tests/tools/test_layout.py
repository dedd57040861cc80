"""The shape of the repository: imports of utils, links, paths, the plain commands."""

import html
import re
import subprocess
import sys

import pytest
from helpers.repo import NUMBERED, ROOT, dead_links, links, read, repository_files
from importlinter import cli

import utils

MODULES = sorted(
    {path.stem for path in (ROOT / "utils").glob("*.py")} - {"__init__"} | {"exercises"}
)


def test_each_module_has_its_line_in_utils():
    assert sorted(re.findall(r"^(\w+)  +\S", utils.__doc__, re.MULTILINE)) == MODULES


def test_utils_imports_downwards_only(monkeypatch):
    """The contracts in pyproject.toml; what is said of a breach is in the output."""
    monkeypatch.chdir(ROOT)
    assert cli.lint_imports(no_cache=True) == 0


@pytest.mark.slow
def test_importing_utils_changes_nothing():
    """Seen from outside: no output, no seed, no setting of matplotlib or torch."""
    program = f"""
import importlib, random
import matplotlib.pyplot, numpy, torch
def state():
    return (random.getstate(), torch.get_rng_state().tolist(), torch.get_num_threads(),
            numpy.random.get_state()[1].tolist(), dict(matplotlib.rcParams))
before = state()
for name in {MODULES}:
    importlib.import_module("utils." + name)
assert state() == before, "an import changed a setting"
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_links_lead_somewhere():
    """But for those of the site's own pages, which `make site` checks."""
    pages = [path for path in repository_files() if path.suffix == ".md"]
    pages = [path for path in pages if path.parent != ROOT / "tools/site/pages"]
    dead = [(p.name, dead_links(p.read_text("utf-8"), p.parent)) for p in pages]
    assert [found for found in dead if found[1]] == []
    linked = set(links(read("README.md")))
    assert {f"notebooks/{path.name}" for path in NUMBERED} <= linked


def test_the_readme_agrees_with_the_makefile():
    """The Makefile runs the plain commands, perhaps with further options."""
    recipes = read("Makefile").replace("\\\n", " ")
    plain = re.findall(r"^\.venv/bin/python (-m (?!utils).+)", read("README.md"), re.M)
    windows = re.findall(r"^\.venv\\Scripts\\python (-m .+)", read("README.md"), re.M)
    assert len(plain) == 5, "install, no news, start, ruff, pytest"
    assert [w for w in windows if "utils." not in w] == plain
    for command in plain:
        words = map(re.escape, ["$(PY)", *command.split()])
        assert re.search(r"[ \t](?:.*[ \t])?".join(words), recipes), command


def test_no_file_names_a_folder_of_one_machine():
    folders = [f"/{name}/".encode() for name in ("work", "root", "opt/wheels")]
    files = repository_files()
    assert not [p for p in files if any(name in p.read_bytes() for name in folders)]


def test_the_sheets_ask_what_the_quiz_asks():
    """Word for word, and without its answers; some questions for each notebook."""
    row = r"^\| ((\d\d)\.\d) \| (.+?) \| .+ \|$"
    asked = re.findall(row, read("notebooks/INSTRUCTOR.md"), re.M)
    sheet = read("notebooks/worksheets.html")
    sheet = re.findall(r'<p class="question">(.*?)</p>', sheet, re.DOTALL)
    sheet = [html.unescape(re.sub(r"<[^>]+>", "", text)) for text in sheet]
    asked_texts = [f"{number} {text}" for number, _, text in asked]
    letters = [[re.sub(r"[\W_]", "", t) for t in side] for side in (asked_texts, sheet)]
    assert letters[0] == letters[1]
    assert {of for _, of, _ in asked} == {path.name[:2] for path in NUMBERED}
