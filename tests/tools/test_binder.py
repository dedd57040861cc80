"""Binder's environment follows requirements.txt; the forge's files fit the course.

No container is built here: repo2docker, where it is installed, renders what it would
build; binder/start is run as it is, and binder/postBuild is read by bash.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from urllib.parse import parse_qs, urlsplit

import nbformat
import pytest
import yaml
from helpers.repo import (
    NOTEBOOKS,
    NUMBERED,
    ROOT,
    answer,
    read,
    repository_files,
    script,
    server,
)
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from traitlets.config import Config

BINDER = ROOT / "binder"
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(
    not BASH or os.name == "nt", reason="binder's scripts run in bash on Linux"
)
PIN = re.compile(r"^(?: +- )?([\w.-]+)==?([\d.]+)", re.MULTILINE)

# --- the files that list packages agree -----------------------------------------


def pins(text):
    """Map each package that a text pins to its exact version."""
    return {canonicalize_name(name): version for name, version in PIN.findall(text)}


def drift(requirements, environment, lock):
    """The packages in which Binder's environment or the lock leave requirements.txt."""
    wanted = pins(requirements)
    on_binder = pins(requirements.partition("# Its tests")[0])
    on_binder["python"] = pins(environment)["python"]
    on_binder["pytorch"] = on_binder.pop("torch")
    found = dict(on_binder.items() ^ pins(environment).items()).keys()
    locked = pins(lock)
    found |= {name for name in wanted if locked.get(name) != wanted[name]} - {"torch"}
    entries = re.findall(r"^[\w.-]+==(?:.*\\\n)*.*", lock, re.MULTILINE)
    found |= {entry[:30] for entry in entries if "--hash=sha256:" not in entry}
    found |= {name for name in locked if re.match("torch|nvidia|cuda|triton", name)}
    if f"install torch=={wanted['torch']}\n" not in lock:
        found |= {"torch"}
    return found


LISTS = [
    read(name)
    for name in ("requirements.txt", "binder/environment.yml", "requirements.lock")
]


def test_binder_and_the_lock_follow_requirements():
    assert drift(*LISTS) == set()
    assert re.search(r"- pytorch=[\d.]+=cpu_\*\n", LISTS[1]), "no build without CUDA"


@pytest.mark.parametrize("name", pins(LISTS[0]))
def test_a_version_that_only_one_list_has_is_found(name):
    version = pins(LISTS[0])[name]
    changed = re.sub(rf"^{name}=={version}", f"{name}==99.0", LISTS[0], flags=re.M)
    assert drift(changed, *LISTS[1:]) & {name, "pytorch"}


def test_what_does_not_belong_into_the_lock_or_on_binder_is_found():
    requirements, environment, lock = LISTS
    for line in ("torch==2.0", "nvidia-cublas==1.0 \\\n    --hash=sha256:0a", "x==1"):
        assert drift(requirements, environment, f"{lock}\n{line}\n")
    assert drift(requirements, f"{environment}      - pandas==2.0\n", lock)


def test_pyproject_names_what_requirements_pins():
    course, tests = read("pyproject.toml").split("[project.optional-dependencies]")
    course = course.partition("\ndependencies = [")[2]
    tests = tests.partition("\n]")[0]
    for text, pinned in zip(
        (course, tests), LISTS[0].split("# Its tests"), strict=True
    ):
        named = [Requirement(line) for line in re.findall(r'^ +"(.+?)"', text, re.M)]
        assert {canonicalize_name(item.name) for item in named} == pins(pinned).keys()
        for item in named:
            assert pins(pinned)[canonicalize_name(item.name)] in item.specifier


def test_every_direct_dependency_has_its_reason():
    table = read(".github/SECURITY.md").partition("| package |")[2]
    listed = re.findall(r"^\| ([\w.-]+) \|", table, re.M)
    assert set(listed) == pins(LISTS[0]).keys()


# --- the folder binder/ -------------------------------------------------------


@needs_bash
@pytest.mark.parametrize("name", ["start", "postBuild"])
def test_a_script_is_bash_and_executable(name):
    assert os.access(BINDER / name, os.X_OK)
    assert read(f"binder/{name}").startswith("#!/bin/bash\n")
    subprocess.run([BASH, "-n", BINDER / name], check=True)


@pytest.fixture
def start(tmp_path):
    """Run binder/start on a host of 8 cores, in a container with these cgroup files."""
    cores = tmp_path / "bin" / "nproc"
    cores.parent.mkdir()
    cores.write_text("#!/bin/sh\necho ${OMP_NUM_THREADS:-8}\n", encoding="utf-8")
    cores.chmod(0o755)

    def run(command, files):
        for name, text in files.items():
            path = tmp_path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        environment = {
            "PATH": f"{cores.parent}:{os.environ['PATH']}",
            "CGROUP_FOLDER": str(tmp_path / "cgroup"),
            "NB_PYTHON_PREFIX": str(tmp_path / "prefix"),
            "HOME": str(tmp_path / "home"),
            "OMP_NUM_THREADS": "99",  # what an image may have set
        }
        command = [BINDER / "start", *command]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    return run


def version_1(quota):
    return {"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_period_us": "100000\n"}


@needs_bash
@pytest.mark.parametrize(
    "files, threads",
    [
        ({"cpu.max": "200000 100000\n"}, 2),
        ({"cpu.max": "150000 100000\n"}, 1),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "1600000 100000\n"}, 8),
        ({"cpu.max": "max 100000\n"}, 8),
        ({"cpu.max": ""}, 8),
        (version_1("300000\n"), 3),
        (version_1("-1\n"), 8),
        ({}, 8),
    ],
)
def test_threads_follow_the_quota_of_the_container(start, files, threads):
    names = ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
    done = start(["printenv", *names], files)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == [str(threads)] * 3


@needs_bash
def test_start_hands_on_the_command_and_the_list_of_fonts(start, tmp_path):
    kept = tmp_path / "prefix" / "share" / "learning-to-align" / "matplotlib"
    kept.mkdir(parents=True)
    (kept / "fontlist.json").write_text("new")
    done = start(["sh", "-c", 'echo "$1"; exit 3', "-", "two  words"], {})
    assert (done.returncode, done.stdout, done.stderr) == (3, "two  words\n", "")
    copied = tmp_path / "home" / ".cache" / "matplotlib" / "fontlist.json"
    assert copied.read_text() == "new"
    copied.write_text("the learner's own")
    start(["true"], {})
    assert copied.read_text() == "the learner's own"


@pytest.mark.slow
def test_the_container_opens_at_notebook_00(tmp_path):
    """Started as repo2docker's image starts it, with the settings that it copies."""
    shutil.copytree(BINDER, tmp_path / "config")
    arguments = "notebook --ServerApp.ip=127.0.0.1 --ServerApp.token=a".split()
    settings = {"JUPYTER_CONFIG_PATH": tmp_path / "config"}
    with server(tmp_path, arguments, **settings) as address:
        _, place = answer(f"{address}/?token=a")
    path = urlsplit(place).path
    assert path == "/lab/tree/notebooks/00_start_here.ipynb"
    assert (ROOT / path.removeprefix("/lab/tree/")).is_file()
    settings = json.loads(read("binder/jupyter_config.json"))
    assert {s["default_url"] for s in settings.values()} == {path}


REPO2DOCKER = shutil.which("repo2docker")


@pytest.mark.skipif(not REPO2DOCKER, reason="repo2docker is not installed")
def test_repo2docker_takes_the_folder(tmp_path):
    """It would build from binder/, not from the requirements.txt of the top level."""
    for path in repository_files():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    options = "--no-build --debug --user-id 1000 --user-name learner".split()
    done = subprocess.run(
        [REPO2DOCKER, *options, tmp_path], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    dockerfile = done.stdout + done.stderr
    for line in [
        "Building conda environment for python=3.11",
        'env update -p ${NB_PYTHON_PREFIX} --file "binder/environment.yml"',
        "apt-get install --yes --no-install-recommends fonts-noto-cjk",
        "RUN ./binder/postBuild",
        'ENV R2D_ENTRYPOINT="${REPO_DIR}/binder/start"',
        'CMD ["jupyter", "notebook", "--ip", "0.0.0.0"]',
    ]:
        assert line in dockerfile, line
    assert "requirements.txt" not in dockerfile


# --- Colab --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Colab runs on Linux")
@pytest.mark.parametrize("beside", ["", "utils.py"])
def test_a_notebook_alone_finds_the_course(tmp_path, beside):
    """The first cell, twice, where a copy of the course takes the place of git's."""
    content = tmp_path / "content"
    content.mkdir()
    if beside:
        (content / beside).write_text("x = 1\n", encoding="utf-8")
    program = f"""
import os, shlex, sys
sys.meta_path = [f for f in sys.meta_path if "editable" not in str(f)]
sys.path = [p for p in sys.path if p != {str(ROOT)!r}]
def system(command):
    git, colab = command.split(" && ")
    assert git.split()[:3] == ["git", "clone", "-q"] and git.endswith(" course"), git
    for name in ("binder", "utils", "data", "requirements.txt"):
        run("cp -r '{ROOT}/" + name + "' course")
    return run(colab.replace("python", shlex.quote(sys.executable), 1))
os.makedirs("course")
run, os.system = os.system, system
cell = {first_cells()["00_start_here.ipynb"]!r}
exec(cell)
os.system = None
exec(cell)
import utils.corpora
print(utils.corpora.__file__, len(utils.corpora.load_village()["test"]))
assert os.path.isfile("../data/models/village-en-fr.safetensors")
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=content,
        capture_output=True,
        text=True,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert done.stderr == ""
    assert done.stdout.startswith(str(content / "utils" / "corpora.py"))


def test_colab_installs_what_is_missing():
    colab = script(BINDER / "colab.py")
    text = "# a comment\nnumpy==0.0.1\nnot-there==1.2  # why\n\n# Its tests\nruff==1\n"
    assert colab.missing(text) == ["not-there==1.2"]
    assert "# Its tests" in LISTS[0]  # where it stops reading


def code(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell.source for cell in cells if cell.cell_type == "code"]


def first_cells():
    return {path.name: code(path)[0] for path in NUMBERED}


def test_every_notebook_begins_with_the_same_cell_for_colab():
    assert len(set(first_cells().values())) == 1


def test_no_other_cell_starts_a_shell():
    """ruff's S605 would say so of the cells for Colab too, and isn't asked."""
    rest = [cell for path in NUMBERED for cell in code(path)[1:]]
    rest += [cell for path in NOTEBOOKS if path not in NUMBERED for cell in code(path)]
    assert [
        cell for cell in rest if re.search(r"os\.(system|popen)|^!", cell, re.M)
    ] == []


# --- the repository's owner, in one place -------------------------------------

NAME = "learning-to-align"
OWNED = re.compile(rf"github\.com(?:/|%2F)([\w.-]+)(?:/|%2F){NAME}\b")


def test_the_binder_link_opens_what_is_there():
    (address,) = re.findall(r"https://mybinder\.org[^\s)>]+", read("README.md"))
    parts = urlsplit(address)
    assert re.fullmatch(rf"/v2/gh/[\w.-]+/{NAME}/HEAD", parts.path)
    (opened,) = parse_qs(parts.query)["labpath"]
    assert (ROOT / opened).is_file()


def test_every_address_names_the_same_owner():
    kinds = {".md", ".ipynb", ".cff", ".toml", ".yml"}
    files = [path for path in repository_files() if path.suffix in kinds]
    owners = {path: OWNED.findall(path.read_text(encoding="utf-8")) for path in files}
    assert all(owners[path] for path in NUMBERED)
    binder = re.findall(rf"mybinder\.org/v2/gh/([\w.-]+)/{NAME}", read("README.md"))
    assert {name for found in owners.values() for name in found} == set(binder)


# --- the page on serving a class ------------------------------------------------


def version():
    return re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.M)[1]


def test_the_hubs_on_the_page_start_the_course(monkeypatch):
    """That of a single machine is run as JupyterHub runs it, with `c` to write to."""
    page = read("notebooks/CLASSROOM.md")
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.M | re.S)
    (cluster,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    c = Config()
    monkeypatch.setenv("CLASS_PASSWORD", "eight or more")
    exec(compile(program, "jupyterhub_config.py", "exec"), {"c": c})
    spawner = c.DockerSpawner
    assert list(spawner.volumes.values()) == [spawner.notebook_dir]
    built = re.search(r"--image-name (\S+)", page)[1]
    assert spawner.image == built == f"{NAME}:{version()}"
    image = yaml.safe_load(cluster)["singleuser"]["image"]
    assert image["tag"] == version()


# --- releases, and the forge's own files --------------------------------------


def test_a_version_is_the_same_everywhere():
    released = re.findall(r"^## (\S+) \((\S+)\)$", read("CHANGELOG.md"), re.M)
    citation = yaml.safe_load(read("CITATION.cff"))
    assert (version(), citation["date-released"]) == released[0]
    assert citation["version"] == version()


def test_the_forge_runs_what_the_readme_says():
    """Linux through .ci/run; elsewhere the plain commands, on every Python."""
    assert "make test" in read(".ci/run")
    settings = yaml.safe_load(read(".github/workflows/test.yml"))
    steps = {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for name, job in settings["jobs"].items()
    }
    assert ".ci/run" in steps["linux"] and "make test-newest" in steps["newest"]
    for command in steps["elsewhere"]:
        assert command.replace("python ", ".venv/bin/python ") in read("README.md")
    runs = settings["jobs"]["elsewhere"]["strategy"]["matrix"]["include"]
    assert {run["os"].partition("-")[0] for run in runs} == {
        "macos",
        "windows",
        "ubuntu",
    }
    low, high = re.search(r">=3\.(\d+),<3\.(\d+)", read("pyproject.toml")).groups()
    pythons = {f"3.{minor}" for minor in range(int(low), int(high))}
    assert {run["python"] for run in runs} == pythons
    assert settings["permissions"] == {"contents": "read"}
