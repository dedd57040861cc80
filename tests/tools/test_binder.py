"""Binder's environment follows requirements.txt; the forge's files fit the course."""

import importlib.util
import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
import yaml
from helpers.repo import NUMBERED, ROOT, read, repository_files
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BINDER = ROOT / "binder"
PIN = re.compile(r"^(?: +- )?([\w.-]+)==?([\d.]+)", re.MULTILINE)
OWNED = re.compile(
    r"(?:(?:github\.com|/gh)(?:/|%2F)|https://)([\w-]+)(?:/|%2F|\.github\.io/)"
    r"learning-to-align\b"
)
# Kinds of files that name the owner.
OWNERS = {".md", ".ipynb", ".cff", ".toml", ".yml"}
NAMING = [path for path in repository_files() if path.suffix in OWNERS]
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="runs on Linux only")


def pins(text):
    """Map each package that a text pins to its exact version."""
    return {canonicalize_name(name): version for name, version in PIN.findall(text)}


def test_the_files_that_list_packages_agree():
    requirements, lock = read("requirements.txt"), read("requirements.lock")
    environment = read("binder/environment.yml")
    wanted, locked, on_binder = map(pins, (requirements, lock, environment))
    torch = wanted.pop("torch")
    assert wanted.items() <= locked.items()
    assert not [name for name in locked if re.match("torch|nvidia|cuda|tri", name)]
    assert f"install torch=={torch}\n" in lock
    assert not re.findall(r"^[\w.-]+==[^\\\n]*$", lock, re.M), "one without a hash"
    course = pins(requirements.partition("# Its tests")[0])
    assert on_binder.pop("pytorch") == course.pop("torch")
    assert on_binder.pop("python") and on_binder == course
    assert re.search(r"- pytorch=[\d.]+=cpu_\*\n", environment), "a build without CUDA"
    course, tests = read("pyproject.toml").split("[project.optional-dependencies]")
    sections = course.partition("\ndependencies = [")[2], tests.partition("\n]")[0]
    for text, part in zip(sections, requirements.split("# Its tests"), strict=True):
        named = [Requirement(line) for line in re.findall(r'^ +"(.+?)"', text, re.M)]
        versions = {canonicalize_name(item.name): item.specifier for item in named}
        assert versions.keys() == pins(part).keys()
        assert all(pins(part)[name] in versions[name] for name in versions)
    reasons = read(".github/SECURITY.md").partition("| package |")[2]
    listed = re.findall(r"^\| ([\w.-]+) \|", reasons, re.M)
    assert set(listed) == {*wanted, "torch"}


@needs_linux
@pytest.mark.parametrize(
    "file, content, threads",
    [
        ("cpu.max", "200000 100000\n", 2),
        ("cpu.max", "50000 100000\n", 1),
        ("cpu.max", "max 100000\n", 8),
        ("cpu/cpu.cfs_quota_us", "300000\n", 3),
    ],
)
def test_threads_follow_the_quota_of_the_container(tmp_path, file, content, threads):
    """On a host of 8 cores; and the command that follows is handed on."""
    path = tmp_path / "cgroup" / file
    path.parent.mkdir(parents=True)
    path.write_text(content)
    path.with_name("cpu.cfs_period_us").write_text("100000\n")  # version 1
    (tmp_path / "nproc").write_text("#!/bin/sh\necho ${OMP_NUM_THREADS:-8}\n")
    (tmp_path / "nproc").chmod(0o755)
    own = {"CGROUP_FOLDER": str(tmp_path / "cgroup"), "HOME": str(tmp_path)}
    own |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "OMP_NUM_THREADS": "99"}
    command = [BINDER / "start", "sh", "-c", 'echo $OMP_NUM_THREADS "$1"', "-", "a  b"]
    done = subprocess.run(command, env=own, capture_output=True, text=True, check=True)
    assert done.stdout == f"{threads} a  b\n"


def test_the_container_opens_at_notebook_00():
    settings = json.loads(read("binder/jupyter_config.json"))
    start = {"/lab/tree/notebooks/00_start_here.ipynb"}
    assert {value["default_url"] for value in settings.values()} == start
    subprocess.run(["bash", "-n", BINDER / "postBuild"], check=True)


@needs_linux
def test_on_colab_a_notebook_alone_finds_the_course(tmp_path):
    (tmp_path / "content").mkdir()
    command = [sys.executable, BINDER / "colab.py"]
    subprocess.run(command, cwd=tmp_path / "content", check=True)
    assert (tmp_path / "content" / "utils").samefile(ROOT / "utils")
    assert (tmp_path / "data").samefile(ROOT / "data")


def test_the_first_cell_fetches_the_course_on_colab_only(monkeypatch):
    """With the kernel's own Python; elsewhere it says which kernel to choose."""
    cells = [nbformat.read(path, as_version=4).cells for path in NUMBERED]
    (first,) = {next(c.source for c in own if c.cell_type == "code") for own in cells}
    commands = []
    monkeypatch.setattr(os, "system", lambda command: commands.append(command) or 0)
    exec(first, {})
    assert not commands, "the course is here"
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(AssertionError, match=re.escape(sys.executable)):
        exec(first, {})
    assert not commands
    monkeypatch.setitem(sys.modules, "google.colab", sys)
    exec(first, {})
    (command,) = commands
    assert command.startswith("git clone ") and OWNED.search(command)
    assert command.endswith(f" course && {sys.executable} course/binder/colab.py")


def test_what_the_forge_and_the_tools_run_is_pinned():
    """An action by its commit, since a tag can be moved; a tool by its version."""
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        actions = re.findall(r"uses: (.+)", path.read_text("utf-8"))
        pinned = r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+"
        assert actions and all(re.fullmatch(pinned, action) for action in actions)
    text = read("Makefile") + read("notebooks/CLASSROOM.md")
    tools = r"\b(uv|pip-audit|jupyter-repo2docker|jupyterhub|dockerspawner)==\d"
    assert len(set(re.findall(tools, text))) == 5


def owners(paths):
    """{path: the owners whom it names}"""
    return {path: set(OWNED.findall(path.read_text("utf-8"))) for path in paths}


def test_every_address_names_the_same_owner():
    named = owners(path for path in NAMING if path.name != "PUBLISH.md")
    assert all(named[path] for path in [*NUMBERED, ROOT / "README.md"])
    assert len(set.union(*named.values())) == 1


@needs_linux
def test_one_command_fills_in_the_owner(tmp_path):
    """As PUBLISH.md has it: with another name for YOU."""
    if not (ROOT / ".git").exists() or "OWNER" not in OWNED.findall(read("README.md")):
        pytest.skip("the command asks git for the files, or has been run")
    for path in NAMING:
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    command = re.search(r"```bash\n(git grep.+?)```", read("PUBLISH.md"), re.S)[1]
    script = "git init -q . && git add . && " + command.replace("YOU", "me-2")
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True)
    named = owners(path for path in tmp_path.rglob("*.*") if path.suffix in OWNERS)
    assert set.union(*named.values()) == {"me-2", "YOU"}  # PUBLISH.md speaks of you


def test_a_version_is_the_same_everywhere():
    version = re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.M)[1]
    released = re.findall(r"^## (\S+) \((\S+)\)$", read("CHANGELOG.md"), re.M)
    citation = yaml.safe_load(read("CITATION.cff"))
    assert (version, citation["date-released"]) == released[0]
    tags = r'(?:learning-to-align:|tag: ")([\d.]+)'
    images = re.findall(tags, read("notebooks/CLASSROOM.md"))
    assert {citation["version"], *images} == {version}
