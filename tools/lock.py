"""Write what follows from requirements.txt, or say where it doesn't follow.

    python tests/lock.py --check    say what disagrees with requirements.txt
    python tests/lock.py --write    write both files anew; needs uv and a network

requirements.lock: every package of the whole environment with its hashes, for Python
3.10 to 3.13 on every system; torch is left out, because its builds differ by machine.
binder/environment.yml: the same direct packages, the part below "pip:".
"""

import argparse
import re
import shutil
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS, LOCK = ROOT / "requirements.txt", ROOT / "requirements.lock"
ENVIRONMENT = ROOT / "binder" / "environment.yml"
BESIDE = {"python", "pip", "setuptools", "nbgitpuller"}  # from conda as well
APART = "torch"  # pinned, but not locked
FROM_CONDA = {"torch": "pytorch", "numpy": "numpy"}  # the rest comes by pip
BUILDING = "setuptools>=77"  # what pyproject.toml builds utils with
CUDA = re.compile(r"(nvidia|cuda|cu\d|triton|cupy)", re.IGNORECASE)
HASH = re.compile(r"--hash=sha256:[0-9a-f]{64}\b")
HEADER = """\
# The whole environment but torch, with hashes, written by `make lock`. To install it:
#     python -m pip install --require-hashes -r requirements.lock
#     python -m pip install torch=={torch}
#     python -m pip install --no-deps --no-build-isolation -e .
"""


def pins(lines):
    """Map each package of requirement lines to its exact versions, mostly one."""
    found = {}
    for line in lines:
        wanted = Requirement(line)
        (spec,) = wanted.specifier if len(wanted.specifier) == 1 else (None,)
        if spec is None or spec.operator != "==":
            raise ValueError(f"{line!r} pins no exact version: write name==version")
        found.setdefault(canonicalize_name(wanted.name), set()).add(spec.version)
    return found


def direct(requirements):
    """The requirement lines of a text, without comments and options such as -e."""
    lines = [line.split(" #")[0].strip() for line in requirements.splitlines()]
    return [line for line in lines if line and not line.startswith(("#", "-"))]


def locked(text):
    """Map each requirement line of a lock file to whether it has a hash."""
    entries = direct(text.replace("\\\n", ""))
    return {
        entry.partition(" --hash")[0].strip(): HASH.search(entry) is not None
        for entry in entries
    }


def lock_problems(requirements, lock):
    """Where the text of a lock file disagrees with that of requirements.txt."""
    wanted = pins(direct(requirements))
    lines = locked(lock)
    have = pins(lines)
    problems = [f"{line} has no hash" for line, hashed in lines.items() if not hashed]
    for name, versions in wanted.items():
        if name != APART and have.get(name) != versions:
            problems.append(f"{name}: {versions} required, {have.get(name)} locked")
    problems += [f"{name} is locked" for name in have if name == APART]
    problems += [f"{name} is a CUDA package" for name in have if CUDA.match(name)]
    (version,) = wanted[APART]
    if HEADER.format(torch=version) not in lock:
        problems.append(f"its first lines don't say how to install torch {version}")
    return problems


def conda_lines(text):
    """The packages that an environment.yml takes from conda, and those from pip."""
    items = yaml.safe_load(text)["dependencies"]
    by_pip = [item["pip"] for item in items if isinstance(item, dict)]
    return [item for item in items if isinstance(item, str)], sum(by_pip, [])


def environment_problems(requirements, environment):
    """Where the text of an environment.yml disagrees with that of requirements.txt."""
    wanted = pins(direct(requirements))
    conda, by_pip = conda_lines(environment)
    have, problems = pins(by_pip), []
    for name, versions in wanted.items():
        if name not in FROM_CONDA and have.get(name) != versions:
            problems.append(f"{name}: {versions} required, {have.get(name)} on Binder")
    for name in sorted(have.keys() - (wanted.keys() - FROM_CONDA.keys())):
        problems.append(f"{name} comes by pip on Binder, but shouldn't")
    names = {re.split(r"[=<>! ]", item)[0] for item in conda}
    for name in sorted(names - BESIDE - set(FROM_CONDA.values())):
        problems.append(f"{name} comes from conda on Binder, but shouldn't")
    exact = {item.split("=")[0]: item.split("=")[1:] for item in conda if "=" in item}
    for name, conda_name in FROM_CONDA.items():
        (version,) = wanted[name]
        if exact.get(conda_name, [None])[0] != version:
            problems.append(f"{conda_name}: {version} required, not so from conda")
    build = (exact.get("pytorch", []) + [""] * 2)[1]
    if not build.startswith("cpu"):
        problems.append("pytorch has no build string that begins with cpu")
    named = [item for item in conda + by_pip if CUDA.match(item)]
    return problems + [f"{item} is a CUDA package" for item in named]


def problems():
    requirements = REQUIREMENTS.read_text(encoding="utf-8")
    return [
        f"{path.relative_to(ROOT)}: {problem}. Run `make lock`."
        for path, find in ((LOCK, lock_problems), (ENVIRONMENT, environment_problems))
        for problem in find(requirements, path.read_text(encoding="utf-8"))
    ]


def write_environment(requirements):
    lines = [
        line for line in direct(requirements) if not pins([line]).keys() & FROM_CONDA
    ]
    head, mark, _ = ENVIRONMENT.read_text(encoding="utf-8").partition("  - pip:\n")
    for name, conda_name in FROM_CONDA.items():
        (version,) = pins(direct(requirements))[name]
        head = re.sub(rf"(- {conda_name}=)[^=\n]+", rf"\g<1>{version}", head)
    body = "".join(f"      - {line}\n" for line in lines)
    ENVIRONMENT.write_text(head + mark + body, encoding="utf-8")


def needed_by_torch():
    """What torch needs besides its own builds for graphics cards."""
    plain = [line for line in requires(APART) if "extra ==" not in line]
    return [line for line in plain if not CUDA.match(line)]


def write_lock(requirements, upgrade=False):
    """Resolve with uv; versions already in the lock file are kept where they fit."""
    if shutil.which("uv") is None:
        raise FileNotFoundError("uv is not installed: `make lock` brings it")
    kept = [line for line in direct(requirements) if APART not in pins([line])]
    options = "--universal --python-version 3.10 --generate-hashes --quiet"
    options += " --no-header --no-annotate" + " --upgrade" * upgrade
    subprocess.run(
        ["uv", "pip", "compile", "-", "-o", LOCK.name, *options.split()],
        input="\n".join([*kept, *needed_by_torch(), BUILDING]),
        cwd=ROOT,
        text=True,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    (version,) = pins(direct(requirements))[APART]
    lines = LOCK.read_text(encoding="utf-8").splitlines(keepends=True)
    body = "".join(line for line in lines if not line.startswith("#"))
    LOCK.write_text(HEADER.format(torch=version) + body, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true")
    action.add_argument("--write", action="store_true")
    parser.add_argument("--upgrade", action="store_true", help="take newer versions")
    options = parser.parse_args()
    if options.write:
        requirements = REQUIREMENTS.read_text(encoding="utf-8")
        write_environment(requirements)
        write_lock(requirements, options.upgrade)
    found = problems()
    print("\n".join(found) or "requirements.lock and binder/ follow requirements.txt.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
