"""The Makefile's care for .venv, tried with a stand-in for Python."""

import os
import re
import shutil
import subprocess

import pytest
from helpers.repo import ROOT, read

MAKE = shutil.which("make")
pytestmark = pytest.mark.skipif(not MAKE, reason="make is not installed")

# Installs nothing and notes each call in calls.txt. The variables VERSION, VENV and PIP
# say what goes wrong; `-m venv` copies the stand-in.
PYTHON = """#!/bin/sh
case "$*" in
    *version_info*) exit ${VERSION:-0} ;;
    *"-m venv"*)
        [ "$VENV" = fails ] && { mkdir -p .venv/bin; echo "a long story" >&2; exit 1; }
        mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
    *"pip install"*) [ "$PIP" = fails ] && exit 1 ;;
esac
echo "$*" >> calls.txt
"""


@pytest.fixture
def make(tmp_path):
    """Run make in a copy of the course's ground whose folder has spaces in its name."""
    folder = tmp_path / "my course (new)"
    folder.mkdir()
    for name in ("Makefile", "requirements.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, folder)
    tools = tmp_path / "bin"
    tools.mkdir()
    for version in ("", "3", "3.13", "3.12", "3.11", "3.10"):
        (tools / f"python{version}").write_text(PYTHON, encoding="utf-8")
        (tools / f"python{version}").chmod(0o755)

    def run(*arguments, folder=folder, **variables):
        (folder / "calls.txt").unlink(missing_ok=True)
        environment = {"PATH": f"{tools}:{os.environ['PATH']}", **variables}
        done = subprocess.run(
            [MAKE, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        calls = folder / "calls.txt"
        done.calls = calls.read_text().splitlines() if calls.exists() else []
        done.installed = any("pip install" in call for call in done.calls)
        return done

    run.folder, run.tools = folder, tools
    return run


def sentences(done):
    """What was said on stderr, without make's own closing line."""
    return [line for line in done.stderr.splitlines() if not line.startswith("make")]


def test_the_second_time_installs_nothing(make):
    first, second = make("test"), make("test")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert first.installed and not second.installed
    assert second.calls[-1] == "-m pytest -n auto"


def test_changed_requirements_are_installed(make):
    make("test")
    stamp = make.folder / ".venv" / ".installed"
    os.utime(stamp, (0, 0))
    again = make("test")
    assert again.installed and "-m venv --clear .venv" not in again.calls


def test_a_moved_course_is_installed_again(make, tmp_path):
    make("test")
    moved = make.folder.rename(tmp_path / "elsewhere")
    assert make("test", folder=moved).installed
    assert not make("test", folder=moved).installed


def test_an_interrupted_installation_is_taken_up_again(make):
    broken = make("test", PIP="fails")
    assert broken.returncode != 0 and "-m pytest -n auto" not in broken.calls
    assert not (make.folder / ".venv" / ".installed").exists()
    assert make("test").installed


def test_a_wrong_python_gets_one_sentence(make):
    done = make("lab", VERSION="1")
    assert done.returncode != 0
    assert len(sentences(done)) == 1
    assert "needs Python 3.10, 3.11, 3.12 or 3.13 and found none" in done.stderr


@pytest.mark.parametrize("python", ["python2.7", "no such python"])
def test_a_wrong_choice_of_python_gets_one_sentence(make, python):
    old = make.tools / "python2.7"
    old.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    old.chmod(0o755)
    done = make("test", f"PYTHON={python}")
    assert done.returncode != 0
    assert len(sentences(done)) == 1
    assert f"PYTHON={python} is none of them" in done.stderr
    assert not (make.folder / ".venv").exists()


def test_no_virtual_environments_gets_one_sentence(make):
    done = make("test", VENV="fails")
    assert done.returncode != 0
    assert len(sentences(done)) == 1 and "python3-venv" in done.stderr
    assert not (make.folder / ".venv").exists()


def test_lab_starts_on_this_machine_alone_and_with_a_token(make):
    call = make("lab", "LAB_ARGS=--no-browser").calls[-1]
    assert "-m jupyterlab" in call
    assert "--ServerApp.ip=127.0.0.1" in call
    assert "--LabApp.news_url=None" in call
    assert call.endswith("/lab/tree/notebooks/00_start_here.ipynb --no-browser")
    assert "token" not in call and "password" not in call


def test_grading_asks_for_a_folder(make):
    done = make("grade")
    assert done.returncode != 0 and "make grade SUBMITTED=folder" in done.stderr
    call = make("grade", "SUBMITTED=from anna").calls[-1]
    assert call == "tools/grade/run.py from anna"


def test_make_alone_lists_every_command(make):
    text = make().stdout
    targets = read("Makefile").replace("\\\n", " ").partition(".PHONY: help ")[2]
    for target in targets.partition("\n")[0].split():
        assert f"make {target} " in text


def test_every_program_that_make_runs_is_there():
    programs = re.findall(r"\$\(PY\) ([\w/]+\.py)", read("Makefile"))
    assert programs
    assert [name for name in programs if not (ROOT / name).is_file()] == []
