"""Binder's environment follows requirements.txt; the forge's files fit the course."""

import json
import os
import re
import subprocess
import sys

import nbformat
import pytest
import yaml
from helpers.repo import NOTEBOOKS, NUMBERED, ROOT, read, repository_files
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

BINDER = ROOT / "binder"
PIN = re.compile(r"^(?: +- )?([\w.-]+)==?([\d.]+)", re.MULTILINE)
OWNED = re.compile(r"(?:github\.com|/gh)(?:/|%2F)([\w.-]+)(?:/|%2F)learning-to-align\b")
needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="runs on Linux only")


def pins(text):
    """Map each package that a text pins to its exact version."""
    return {canonicalize_name(name): version for name, version in PIN.findall(text)}


def drift(requirements, environment, lock):
    """The packages in which Binder's environment or the lock leave requirements.txt."""
    wanted, locked = pins(requirements), pins(lock)
    on_binder = pins(requirements.partition("# Its tests")[0])
    on_binder["python"] = pins(environment)["python"]
    on_binder["pytorch"] = on_binder.pop("torch")
    found = dict(on_binder.items() ^ pins(environment).items()).keys()
    found |= {name for name in wanted if locked.get(name) != wanted[name]} - {"torch"}
    entries = re.findall(r"^[\w.-]+==(?:.*\\\n)*.*", lock, re.MULTILINE)
    found |= {entry[:30] for entry in entries if "--hash=sha256:" not in entry}
    return found | {name for name in locked if re.match("torch|nvidia|cuda|tri", name)}


def test_the_files_that_list_packages_agree():
    requirements = read("requirements.txt")
    environment, lock = read("binder/environment.yml"), read("requirements.lock")
    assert drift(requirements, environment, lock) == set()
    assert f"install torch=={pins(requirements)['torch']}\n" in lock
    assert re.search(r"- pytorch=[\d.]+=cpu_\*\n", environment), "a build without CUDA"
    for name, version in pins(requirements).items():
        changed = re.sub(f"(?m)^{name}=={version}", f"{name}==99.0", requirements)
        assert drift(changed, environment, lock) & {name, "pytorch"}
    course, tests = read("pyproject.toml").split("[project.optional-dependencies]")
    sections = course.partition("\ndependencies = [")[2], tests.partition("\n]")[0]
    for text, part in zip(sections, requirements.split("# Its tests"), strict=True):
        named = [Requirement(line) for line in re.findall(r'^ +"(.+?)"', text, re.M)]
        versions = {canonicalize_name(item.name): item.specifier for item in named}
        assert versions.keys() == pins(part).keys()
        assert all(pins(part)[name] in versions[name] for name in versions)
    reasons = read(".github/SECURITY.md").partition("| package |")[2]
    listed = re.findall(r"^\| ([\w.-]+) \|", reasons, re.M)
    assert set(listed) == pins(requirements).keys()


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


def code(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


@pytest.mark.slow
@needs_linux
def test_on_colab_a_notebook_alone_finds_the_course(tmp_path):
    """The first cell, twice, where a copy of the course takes the place of git's."""
    there = tmp_path / "content"
    there.mkdir()
    program = f"""
import os, shlex, sys
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f)]
sys.path = [p for p in sys.path if p != {str(ROOT)!r}]
def system(command):
    git, colab = command.split(" && ")
    assert git.startswith("git clone -q ") and git.endswith(" course"), git
    run("mkdir course; cd {ROOT}; cp -r binder utils data *.txt '{there}/course'")
    return run(colab.replace("python", shlex.quote(sys.executable), 1))
run, os.system = os.system, system
exec({code(NUMBERED[0])[0]!r})
os.system = None
exec({code(NUMBERED[0])[0]!r})
import utils.corpora
print(utils.corpora.__file__, len(utils.corpora.load_village()["test"]))
"""
    command = [sys.executable, "-c", program]
    own = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(command, cwd=there, env=own, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith(str(there / "utils" / "corpora.py"))


def test_all_notebooks_have_one_first_cell_and_no_other_starts_a_shell():
    """ruff's S605 would say so of the cells for Colab too, and isn't asked."""
    cells = {path: code(path) for path in NOTEBOOKS}
    assert len({cells[path].pop(0) for path in NUMBERED}) == 1
    rest = "\n".join(cell for own in cells.values() for cell in own)
    assert not re.findall(r"os\.(?:system|popen)|^!.*", rest, re.M)


def test_every_address_names_the_same_owner():
    kinds = {".md", ".ipynb", ".cff", ".toml", ".yml"}
    files = [path for path in repository_files() if path.suffix in kinds]
    owners = {path: OWNED.findall(path.read_text("utf-8")) for path in files}
    assert all(owners[path] for path in [*NUMBERED, ROOT / "README.md"])
    assert len({name for found in owners.values() for name in found}) == 1


def test_a_version_is_the_same_everywhere():
    version = re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.M)[1]
    released = re.findall(r"^## (\S+) \((\S+)\)$", read("CHANGELOG.md"), re.M)
    citation = yaml.safe_load(read("CITATION.cff"))
    assert (version, citation["date-released"]) == released[0]
    tags = r'(?:learning-to-align:|tag: ")([\d.]+)'
    images = re.findall(tags, read("notebooks/CLASSROOM.md"))
    assert {citation["version"], *images} == {version}


def test_the_forge_tests_on_every_python():
    jobs = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]
    runs = jobs["elsewhere"]["strategy"]["matrix"]["include"]
    low, high = re.search(r">=3\.(\d+),<3\.(\d+)", read("pyproject.toml")).groups()
    pythons = {f"3.{minor}" for minor in range(int(low), int(high))}
    assert {run["python"] for run in runs} == pythons
