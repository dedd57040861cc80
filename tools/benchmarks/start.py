"""From a fresh clone to JupyterLab at notebook 00: what a newcomer waits for.

    python benchmarks/start.py

clones this repository's last commit, calls the README's `make lab` there, waits until
the page of notebook 00 answers, then runs that notebook once. Three times: with pip's
cache as it is (call it twice, so that it is full), with an empty one, and with the full
one but without compiling modules beforehand, which pip does by default. It needs a
network, git and make.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from report import FOLDER, store, write_readme
from timing import machine

ROOT = FOLDER.parent
PATIENCE = 1800  # seconds for all of an installation
WAYS = {
    "cache full": {},
    "cache empty": {"PIP_NO_CACHE_DIR": "1"},
    "cache full, nothing compiled": {"PIP_NO_COMPILE": "1"},
}
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/lab\S*\?token=\w+")


def measured(changes):
    """Seconds until installed, from then until the page answers, and of notebook 00."""
    inherited = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    environment = {**inherited, **changes, "PYTHON": sys.executable}
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "learning to align"
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        start = time.perf_counter()
        with open(Path(folder) / "log", "w+", encoding="utf-8") as log:
            lab = subprocess.Popen(
                ["make", "lab", "LAB_ARGS=--no-browser --port=8878 --allow-root"],
                cwd=clone,
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
            try:
                wait_for(lambda: (clone / ".venv/.installed").is_file(), lab, log.name)
                installed = time.perf_counter()
                wait_for(lambda: answers(Path(log.name)), lab, log.name)
                ready = time.perf_counter()
            finally:
                os.killpg(lab.pid, signal.SIGTERM)  # make and what it started
                lab.wait()
        notebook = ["benchmarks/one_notebook.py", "notebooks/00_start_here.ipynb"]
        start_of_notebook = time.perf_counter()
        subprocess.run(
            [clone / ".venv/bin/python", *notebook],
            cwd=clone,
            env=environment,
            check=True,
            capture_output=True,
        )
        done = time.perf_counter()
    return {
        "install": installed - start,
        "lab": ready - installed,
        "notebook": done - start_of_notebook,
    }


def wait_for(condition, process, log):
    end = time.monotonic() + PATIENCE
    while not condition():
        if process.poll() is not None or time.monotonic() > end:
            sys.exit(Path(log).read_text(encoding="utf-8"))
        time.sleep(0.1)


def answers(log):
    found = ADDRESS.search(log.read_text(encoding="utf-8"))
    try:
        return bool(found) and urllib.request.urlopen(found[0]).status == 200
    except OSError:  # not there yet
        return False


def main():
    runs = {}
    for name, changes in WAYS.items():
        runs[name] = measured(changes)
        print(name, runs[name], flush=True)
    store(
        FOLDER / "start.json",
        {
            "command": "python benchmarks/start.py",
            "machine": machine(),
            "runs": runs,
        },
    )
    write_readme()


if __name__ == "__main__":
    main()
