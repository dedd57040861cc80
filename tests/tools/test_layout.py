"""The shape of the repository: imports of utils, links, paths, the plain commands."""

import re
import subprocess
import sys

import pytest
from helpers.repo import NUMBERED, ROOT, dead_links, links, read, repository_files
from importlinter import cli


def test_utils_imports_downwards_only(monkeypatch):
    """The contracts in pyproject.toml; what is said of a breach is in the output."""
    monkeypatch.chdir(ROOT)
    assert cli.lint_imports(no_cache=True) == 0


def test_importing_utils_changes_nothing():
    """Seen from outside: no output, no seed, no setting of matplotlib or torch."""
    names = [path.stem for path in (ROOT / "utils").glob("*.py")]
    names += ["exercises"] * (ROOT / "utils" / "exercises").is_dir()
    program = f"""
import importlib, random
import matplotlib.pyplot, numpy, torch
def state():
    return (random.getstate(), torch.get_rng_state().tolist(),
            numpy.random.get_state()[1].tolist(), dict(matplotlib.rcParams),
            torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
before = state()
for name in {sorted(set(names) - {"__init__"})}:
    importlib.import_module("utils." + name)
assert state() == before, "an import changed a setting"
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- Markdown files -----------------------------------------------------------


SITE_PAGES = ROOT / "tools" / "site" / "pages"  # theirs `make site` checks


def test_links_lead_somewhere():
    dead = {
        str(path.relative_to(ROOT)): dead_links(path.read_text("utf-8"), path.parent)
        for path in repository_files()
        if path.suffix == ".md" and path.parent != SITE_PAGES
    }
    assert "README.md" in dead
    assert {name: paths for name, paths in dead.items() if paths} == {}


def test_the_readme_lists_every_notebook():
    linked = set(links(read("README.md")))
    assert {f"notebooks/{path.name}" for path in NUMBERED} - linked == set()


def test_a_dead_link_is_found(tmp_path):
    (tmp_path / "a b.md").touch()
    good = "[x](a%20b.md#part) [y](https://example.org/z) [z](#part)"
    assert dead_links(f"{good} `[x](gone.md)` and $W[s](t)$", tmp_path) == []
    assert dead_links("see [x](gone.md)", tmp_path) == ["gone.md"]
    assert dead_links("![a picture](img/gone.png)", tmp_path) == ["img/gone.png"]
    assert dead_links('<img src="gone.png">', tmp_path) == ["gone.png"]


# --- the README's plain commands and the Makefile -----------------------------


def plain_commands(language, python):
    """The words after `python` in the README's code blocks of a language."""
    blocks = re.findall(rf"```{language}\n(.*?)```", read("README.md"), re.DOTALL)
    lines = "\n".join(blocks).splitlines()
    return [line.split()[1:] for line in lines if line.startswith(f"{python} ")]


def test_the_readme_agrees_with_the_makefile():
    """The Makefile runs the plain commands, perhaps with further options."""
    recipes = read("Makefile").replace("\\\n", " ").splitlines()
    plain = plain_commands("bash", ".venv/bin/python")
    plain = [words for words in plain if not words[1].startswith("utils.")]
    assert len(plain) == 5, "install, no news, start, ruff, pytest"
    assert plain == plain_commands("powershell", ".venv\\Scripts\\python")
    for words in plain:
        line = re.compile(r"\s.*".join(map(re.escape, ["$(PY)", *words])))
        assert any(map(line.search, recipes)), words


# --- all files ----------------------------------------------------------------


def machine_paths(data):
    """The folders of one machine that a file's bytes name."""
    folders = [f"/{name}/" for name in ("work", "root", "opt/wheels")]
    return [folder for folder in folders if folder.encode() in data]


def test_no_file_names_a_folder_of_one_machine():
    found = {path.name: machine_paths(path.read_bytes()) for path in repository_files()}
    assert "Makefile" in found
    assert {name: folders for name, folders in found.items() if folders} == {}


@pytest.mark.parametrize("folder", ["root/a", "work/main/data"])
def test_a_folder_of_one_machine_is_found(folder):
    assert machine_paths(b"x = '/" + folder.encode())
