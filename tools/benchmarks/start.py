"""From a fresh clone to JupyterLab at notebook 00: what a newcomer waits for.

    python tools/benchmarks/start.py

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
from timing import machine, seconds

WAYS = {
    "cache full": {},
    "cache empty": {"PIP_NO_CACHE_DIR": "1"},
    "cache full, nothing compiled": {"PIP_NO_COMPILE": "1"},
}
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/lab\S*\?token=\w+")
LAB = ["make", "lab", "LAB_ARGS=--no-browser --port=8878 --allow-root"]
NOTEBOOK = [
    ".venv/bin/python",
    "tools/benchmarks/one_notebook.py",
    "notebooks/00_start_here.ipynb",
]


def measured(changes):
    """Seconds until installed, from then until the page answers, and of notebook 00."""
    inherited = {k: v for k, v in os.environ.items() if k != "VIRTUAL_ENV"}
    with tempfile.TemporaryDirectory() as folder:
        clone, log = Path(folder) / "learning to align", Path(folder) / "log"
        subprocess.run(["git", "clone", "-q", FOLDER.parents[1], clone], check=True)
        here = {"cwd": clone, "env": {**inherited, **changes, "PYTHON": sys.executable}}
        with open(log, "wb") as file:
            out = {"stdout": file, "stderr": file, "start_new_session": True}
            lab = subprocess.Popen(LAB, **here, **out)
        installed = clone / ".venv/.installed"
        try:
            install = seconds(lambda: wait_for(installed.is_file, lab, log))
            ready = seconds(lambda: wait_for(lambda: answers(log), lab, log))
        finally:
            os.killpg(lab.pid, signal.SIGTERM)  # make and what it started
            lab.wait()
        quiet = {"check": True, "capture_output": True}
        notebook = seconds(lambda: subprocess.run(NOTEBOOK, **here, **quiet))
    return {"install": install, "lab": ready, "notebook": notebook}


def wait_for(condition, process, log):
    while not condition():
        if process.poll() is not None:
            sys.exit(log.read_text(encoding="utf-8"))
        time.sleep(0.1)


def answers(log):
    found = ADDRESS.search(log.read_text(encoding="utf-8"))
    try:
        return bool(found) and urllib.request.urlopen(found[0]).status == 200
    except OSError:  # not there yet
        return False


if __name__ == "__main__":
    runs = {}
    for name, changes in WAYS.items():
        runs[name] = measured(changes)
        print(name, runs[name], flush=True)
    command = "python tools/benchmarks/start.py"
    results = {"command": command, "machine": machine(), "runs": runs}
    store(FOLDER / "start.json", results)
    write_readme()
