"""The Makefile's care for .venv, tried with a stand-in for Python; its commands."""

import os
import re
import shutil
import subprocess

import pytest
from helpers.repo import ROOT, read

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")

# Installs nothing and says each call. VERSION and PIP say what goes wrong.
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) exit ${VERSION:-0} ;;
    *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *"pip install"*) exit ${PIP:-0} ;;
esac
"""


def make(folder, target, **variables):
    """(whether it went well, what it said) of make, not of one within this one."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    path = {"PATH": f"{folder.parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["make", target],
        cwd=folder,
        env=own | path | variables,
        capture_output=True,
        text=True,
    )
    return not done.returncode, done.stdout + done.stderr


def test_the_course_installs_itself_once_and_again_where_it_was_moved(tmp_path):
    folder = tmp_path / "my course (new)"
    folder.mkdir()
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    for version in ("", "3", "3.13", "3.12", "3.11", "3.10"):
        (tmp_path / f"python{version}").write_text(PYTHON, encoding="utf-8")
        (tmp_path / f"python{version}").chmod(0o755)
    went_well, said = make(folder, "lab", VERSION="1")
    assert not went_well and "needs Python 3.10, 3.11, 3.12 or 3.13" in said
    went_well, said = make(folder, "test", PIP="1")
    assert not went_well and "pytest" not in said
    for place in (folder, folder.with_name("else where")):
        folder = folder.rename(place)
        went_well, said = make(folder, "test")
        assert went_well and "Installing" in said and "-m pytest -n auto" in said
        assert make(folder, "test")[0] and "Installing" not in make(folder, "test")[1]


def test_what_is_said_of_make_is_there():
    """Commands named in the texts, programs that they run, and the list of them all."""
    text = read("Makefile")
    targets = set(re.findall(r"^([\w-]+):(?!=)", text, re.M))
    listed = set(re.findall(r'echo "make ([\w-]+)', text))
    assert listed == targets - {"help"}
    for name in ("README.md", "CONTRIBUTING.md", "notebooks/CLASSROOM.md"):
        assert set(re.findall(r"`make ([\w-]+)", read(name))) <= targets, name
    programs = re.findall(r"\$\(PY\) (tools/[\w/]+\.py)", text)
    assert programs and all((ROOT / name).is_file() for name in programs)
    assert "jupyterlab --ServerApp.ip=127.0.0.1 " in text  # this machine alone
