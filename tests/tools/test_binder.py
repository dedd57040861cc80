"""Binder's environment follows requirements.txt; the forge's files fit the course.

No container is built here: repo2docker, where it is installed, renders what it would
build; binder/start is run as it is, and binder/postBuild is read by bash.
"""

import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from urllib.parse import parse_qs, urlsplit

import lock
import mirror
import nbformat
import pytest
import yaml
from test_layout import repository_files
from traitlets.config import Config

ROOT = lock.ROOT
BINDER = ROOT / "binder"
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(
    not BASH or os.name == "nt", reason="binder's scripts run in bash on Linux"
)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


# --- the environments cannot drift --------------------------------------------

REQUIRED = "torch==2.0.1\nnumpy==1.2.3\n# tests\nd2l==0.17.0   # a comment\n-e .\n"
ENVIRONMENT = """
channels: [conda-forge]
dependencies:
  - python=3.11
  - pytorch=2.0.1=cpu_*
  - numpy=1.2.3
  - pip
  - pip:
      - d2l==0.17.0
"""
HASH = "--hash=sha256:" + "0a" * 32
LOCK = lock.HEADER.format(torch="2.0.1") + (
    f"d2l==0.17.0 \\\n    {HASH}\n"
    f"ipython==8.1 ; python_full_version < '3.11' \\\n    {HASH} \\\n    {HASH}\n"
    f"ipython==9.1 ; python_full_version >= '3.11' \\\n    {HASH}\n"
    f"numpy==1.2.3 \\\n    {HASH}\n"
)


def test_both_follow_requirements():
    assert lock.problems() == []


def test_what_agrees_passes():
    assert lock.environment_problems(REQUIRED, ENVIRONMENT) == []
    assert lock.lock_problems(REQUIRED, LOCK) == []


@pytest.mark.parametrize(
    "old, new",
    [
        ("numpy=1.2.3", "numpy=1.2.4"),
        ("d2l==0.17.0", "d2l==0.17.1"),
        ("      - d2l==0.17.0", "      - d2l==0.17.0\n      - pandas==2.0"),
        ("      - d2l==0.17.0", "      - torch==2.0.1\n      - d2l==0.17.0"),
        ("d2l==", "tqdm=="),
        ("pytorch=2.0.1=cpu_*", "pytorch=2.0.1"),
        ("pytorch=2.0.1=cpu_*", "pytorch=2.0.1=cuda126_*"),
        ("pytorch=2.0.1=cpu_*", "pytorch=2.0.2=cpu_*"),
        ("  - pip\n", "  - pip\n  - cuda-version\n"),
        ("  - pip\n", "  - pip\n  - pandas=2.0\n"),
    ],
)
def test_a_drift_of_binder_is_found(old, new):
    assert old in ENVIRONMENT
    changed = ENVIRONMENT.replace(old, new)
    assert lock.environment_problems(REQUIRED, changed)


@pytest.mark.parametrize(
    "old, new",
    [
        ("numpy==1.2.3", "numpy==1.2.4"),
        ("d2l==0.17.0", "tqdm==0.17.0"),
        (f"numpy==1.2.3 \\\n    {HASH}", "numpy==1.2.3"),
        (HASH, "--hash=md5:" + "0a" * 16),
        ("d2l==", f"torch==2.0.1 \\\n    {HASH}\nd2l=="),
        ("d2l==", f"nvidia-cublas==1.0 \\\n    {HASH}\nd2l=="),
        ("torch==2.0.1", "torch==2.0.2"),
    ],
)
def test_a_drift_of_the_lock_file_is_found(old, new):
    assert old in LOCK
    assert lock.lock_problems(REQUIRED, LOCK.replace(old, new))


def test_a_requirement_without_an_exact_version_is_refused():
    with pytest.raises(ValueError, match="no exact version"):
        lock.pins(["numpy>=1.2"])


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
        script = [BINDER / "start", *command]
        return subprocess.run(script, env=environment, capture_output=True, text=True)

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


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Stay(urllib.request.HTTPRedirectHandler):
    """Report a redirection instead of following it."""

    def redirect_request(self, request, file, code, message, headers, address):
        return None


def first_redirection(address, seconds=60):
    """Where an address leads, once something answers there."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay)
    end = time.monotonic() + seconds
    while True:
        try:
            return opener.open(address, timeout=5).status
        except urllib.error.HTTPError as error:
            return error.headers["Location"]
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_the_container_opens_at_notebook_00(tmp_path):
    """Started as repo2docker's image starts it, with the settings that it copies."""
    (tmp_path / "config").mkdir()
    shutil.copy(BINDER / "jupyter_config.json", tmp_path / "config")
    port = free_port()
    options = f"--no-browser --allow-root --ServerApp.port={port}"
    options += " --ServerApp.ip=127.0.0.1 --ServerApp.token=a"
    folders = {"JUPYTER_CONFIG_PATH": tmp_path / "config", "HOME": tmp_path}
    server = subprocess.Popen(
        [sys.executable, "-m", "notebook", *options.split()],
        cwd=ROOT,
        env={**os.environ, **{name: str(path) for name, path in folders.items()}},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        place = first_redirection(f"http://127.0.0.1:{port}/?token=a")
    finally:
        server.terminate()
        server.wait()
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


@pytest.mark.skipif(os.name == "nt", reason="Colab runs on Linux")
def test_a_notebook_alone_finds_the_course(tmp_path):
    content = tmp_path / "content"
    for part in ("binder", "utils", "data"):
        shutil.copytree(ROOT / part, content / "course" / part)
    shutil.copy(ROOT / "requirements.txt", content / "course")
    for _ in range(2):  # a learner runs the first cell again
        command = [sys.executable, content / "course" / "binder" / "colab.py"]
        done = subprocess.run(command, cwd=content, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    program = """
import utils.data
from pathlib import Path
print(utils.data.__file__, len(utils.corpora.load_village()["test"]))
assert Path("../data/models/village-en-fr.safetensors").is_file()
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=content, capture_output=True, text=True)
    assert done.stdout.startswith(str(content / "utils" / "data.py")), done.stderr


def test_colab_installs_what_is_missing():
    spec = importlib.util.spec_from_file_location("colab", BINDER / "colab.py")
    colab = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(colab)
    text = "# a comment\nnumpy==0.0.1\nnot-there==1.2  # why\n\n# Its tests\nruff==1\n"
    assert colab.missing(text) == ["not-there==1.2"]
    assert "# Its tests" in read("requirements.txt")  # where it stops reading


# The first line of a notebook, where the course isn't installed: see binder/colab.py.
COLAB = re.compile(
    r"^import importlib\.util as find, os; "
    r'assert find\.find_spec\("utils"\) or not os\.system\('
    r'"git clone -q https://github\.com/[\w.-]+/learning-to-align course '
    r'&& python course/binder/colab\.py"\)  # noqa.*$',
    re.MULTILINE,
)


def colab_problems(first_cells):
    """The notebooks (a dict of first code cells) without the line that most have."""
    lines = {name: COLAB.match(source) for name, source in first_cells.items()}
    forms = {match[0] for match in lines.values() if match}
    return [f"{len(forms)} forms"] * (len(forms) > 1) + [
        name for name, match in lines.items() if forms and not match
    ]


def test_every_notebook_begins_with_the_same_line_for_colab():
    first = {}
    for path in mirror.notebook_paths():
        cells = nbformat.read(path, as_version=4).cells
        codes = [cell.source for cell in cells if cell.cell_type == "code"]
        if path.parent.name == "notebooks":
            first[path.name] = codes[0]
    assert colab_problems(first) == []


LINE = (
    "import importlib.util as find, os; "
    'assert find.find_spec("utils") or not os.system('
    '"git clone -q https://github.com/OWNER/learning-to-align course '
    '&& python course/binder/colab.py")  # noqa: E401, E501, E702, I001'
)


def test_a_notebook_without_the_line_for_colab_is_found():
    assert colab_problems({"a": LINE, "b": f"{LINE}\nx = 1"}) == []
    assert colab_problems({"a": LINE, "b": "x = 1"}) == ["b"]
    assert colab_problems({"a": LINE, "b": f"x = 1\n{LINE}"}) == ["b"]
    assert colab_problems({"a": LINE, "b": LINE.replace("OWNER", "me")})


def test_the_line_for_colab_does_nothing_where_the_course_is(monkeypatch):
    monkeypatch.setattr(os, "system", lambda command: pytest.fail(command))
    exec(LINE, {})


# --- the repository's owner, in one place -------------------------------------

BINDER_LINK = re.compile(r"https://mybinder\.org[^\s)>]+")
NAME = "learning-to-align"
OWNED = re.compile(rf"github\.com(?:/|%2F)([\w.-]+)(?:/|%2F){NAME}\b")


def binder_problems(text, files):
    """What is wrong with the address of Binder in the text of a README."""
    addresses = BINDER_LINK.findall(text)
    if len(addresses) != 1:
        return [f"{len(addresses)} addresses of Binder, where one is wanted"]
    parts = urlsplit(addresses[0])
    problems = []
    if not re.fullmatch(rf"/v2/gh/[\w.-]+/{NAME}/\w+", parts.path):
        problems.append(f"{parts.path} is not /v2/gh/OWNER/{NAME}/HEAD")
    opened = parse_qs(parts.query).get("labpath", [])
    if len(opened) != 1 or opened[0] not in files:
        problems.append(f"it opens {opened or 'nothing'}, which isn't there")
    return problems


def other_owners(owner, texts):
    """The files whose addresses of this repository name another owner."""
    return [name for name, text in texts.items() if set(OWNED.findall(text)) - {owner}]


def test_the_binder_link_opens_what_is_there():
    files = {path.relative_to(ROOT).as_posix() for path in repository_files()}
    assert binder_problems(read("README.md"), files) == []


def test_every_address_names_the_owner_that_the_binder_link_names():
    (address,) = BINDER_LINK.findall(read("README.md"))
    owner = urlsplit(address).path.split("/")[3]
    kinds = {".md", ".ipynb", ".cff", ".toml", ".yml"}
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in repository_files()
        if path.suffix in kinds
    }
    naming = {name for name, text in texts.items() if OWNED.search(text)}
    for path in mirror.notebook_paths():
        if path.parent.name == "notebooks":
            assert path.relative_to(ROOT).as_posix() in naming
    assert other_owners(owner, texts) == []


@pytest.mark.parametrize(
    "address",
    [
        "",
        "https://mybinder.org/v2/gh/me/course/HEAD?labpath=a.ipynb",
        "https://mybinder.org/v2/gh/me/learning-to-align/HEAD?labpath=gone.ipynb",
        "https://mybinder.org/v2/gh/me/learning-to-align/HEAD",
        "https://mybinder.org/v2/gl/me/learning-to-align/HEAD?labpath=a.ipynb",
        "https://mybinder.org/v2/gh/me/learning-to-align?labpath=a.ipynb",
    ],
)
def test_a_wrong_binder_link_is_found(address):
    assert binder_problems(f"[x]({address})", {"a.ipynb"})
    right = "https://mybinder.org/v2/gh/me/learning-to-align/HEAD?labpath=a.ipynb"
    assert binder_problems(f"[x]({right})", {"a.ipynb"}) == []
    assert binder_problems(f"[x]({right}) [y]({right})", {"a.ipynb"})


def test_another_owner_is_found():
    texts = {
        "a": "https://github.com/me/learning-to-align.git",
        "b": "repo=https%3A%2F%2Fgithub.com%2Fyou%2Flearning-to-align",
    }
    assert other_owners("me", texts) == ["b"]


# --- the page on serving a class ------------------------------------------------


def blocks_of(language):
    return re.findall(
        rf"^```{language}\n(.*?)^```$", read("notebooks/CLASSROOM.md"), re.M | re.S
    )


def test_the_hub_of_one_machine_starts_the_course():
    """Its configuration is run as JupyterHub runs it, with `c` to write to."""
    (code,) = blocks_of("python")
    c = Config()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CLASS_PASSWORD", "eight or more")
        exec(compile(code, "jupyterhub_config.py", "exec"), {"c": c})
    spawner = c.DockerSpawner
    assert spawner.cmd == ["jupyterhub-singleuser"]  # the image's own answers elsewhere
    assert list(spawner.volumes.values()) == [spawner.notebook_dir]
    built = re.search(r"--image-name (\S+)", read("notebooks/CLASSROOM.md"))[1]
    version = re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.M)[1]
    assert spawner.image == built == f"learning-to-align:{version}"
    assert c.JupyterHub.authenticator_class == "shared-password"


def test_the_hub_of_a_cluster_keeps_the_learners_files_and_asks_who_they_are():
    (text,) = blocks_of("yaml")
    values = yaml.safe_load(text)
    config = values["hub"]["config"]
    assert config["KubeSpawner"]["notebook_dir"] == "/home/jovyan"
    assert config["JupyterHub"]["authenticator_class"] == "shared-password"
    assert config["SharedPasswordAuthenticator"]["user_password"]
    version = re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.M)[1]
    assert values["singleuser"]["image"]["tag"] == version


# --- releases, and the forge's own files --------------------------------------


def test_a_version_is_the_same_everywhere():
    version = re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.M)[1]
    released = re.findall(r"^## (\S+) \((\S+)\)$", read("CHANGELOG.md"), re.M)
    citation = yaml.safe_load(read("CITATION.cff"))
    assert (version, citation["date-released"]) == released[0]
    assert citation["version"] == version
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()


def listed_dependencies():
    table = read(".github/SECURITY.md").partition("| package |")[2]
    return set(re.findall(r"^\| ([\w.-]+) \|", table, re.M))


def test_every_direct_dependency_has_its_reason():
    wanted = set(lock.pins(lock.direct(read("requirements.txt"))))
    assert listed_dependencies() == wanted


def workflow():
    return yaml.safe_load(read(".github/workflows/test.yml"))


def steps(job):
    return [step["run"] for step in workflow()["jobs"][job]["steps"] if "run" in step]


def test_the_forge_runs_what_the_readme_says():
    """Linux through .ci/run; elsewhere the plain commands of the README."""
    assert ".ci/run" in steps("linux") and "make test" in read(".ci/run")
    elsewhere = " ; ".join(steps("elsewhere"))
    for words in ("-m pip install -r requirements.txt", "-m ruff check .", "-m pytest"):
        assert words in elsewhere and words in read("README.md")
    assert "make test-newest" in steps("newest")
    assert re.search(r"^test-newest:", read("Makefile"), re.M)


def test_the_forge_runs_on_every_system_and_python():
    runs = workflow()["jobs"]["elsewhere"]["strategy"]["matrix"]["include"]
    systems = {run["os"].partition("-")[0] for run in runs}
    assert systems == {"macos", "windows", "ubuntu"}
    pythons = {run["python"] for run in runs}
    low, high = re.search(r">=3\.(\d+),<3\.(\d+)", read("pyproject.toml")).groups()
    assert pythons == {f"3.{minor}" for minor in range(int(low), int(high))}


def test_the_forge_may_only_read():
    settings = workflow()
    assert settings["permissions"] == {"contents": "read"}
    assert all("permissions" not in job for job in settings["jobs"].values())
    assert "pull_request_target" not in settings[True]  # YAML reads `on` as true
    assert "secrets." not in read(".github/workflows/test.yml")


def test_the_newest_versions_block_nobody():
    """No pull request waits for them; what fails on a Monday is reported."""
    jobs = workflow()["jobs"]
    when = jobs["newest"]["if"]
    assert "'schedule'" in when and "pull_request" not in when and "push" not in when
    assert "continue-on-error" not in jobs["newest"]
    assert [job for job in jobs if "newest" in str(jobs[job].get("needs"))] == []


@pytest.mark.parametrize("name", ["notebook", "idea"])
def test_an_issue_form_can_be_read(name):
    form = yaml.safe_load(read(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert form["name"] and form["description"]
    questions = [item["attributes"]["label"] for item in form["body"]]
    assert len(set(questions)) == len(questions) >= 3
    assert len({item["id"] for item in form["body"]}) == len(questions)
