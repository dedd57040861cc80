"""`make bench-notebooks`: seconds and memory of every notebook, and its slow cells.

Each notebook is executed in a process of its own, so that the memory of its kernel can
be told from that of the others. Nothing is written into the notebooks.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from report import FOLDER, store, write_readme
from timing import machine

ROOT = FOLDER.parent
WIDGET = "application/vnd.jupyter.widget-view+json"  # what a bar of tqdm is drawn as


def execute(path):
    """One notebook from a clean kernel: its seconds, its cells, its kernel's peak."""
    book = nbformat.read(path, as_version=4)
    started, taken = {}, {}
    client = NotebookClient(
        book,
        timeout=600,
        resources={"metadata": {"path": str(path.parent)}},
        on_cell_execute=lambda cell, cell_index: started.update(
            {cell_index: time.perf_counter()}
        ),
        on_cell_executed=lambda cell, cell_index, execute_reply: taken.update(
            {cell_index: time.perf_counter() - started[cell_index]}
        ),
    )
    start = time.perf_counter()
    client.execute()
    total = time.perf_counter() - start
    return {
        "name": path.stem,
        "seconds": total,
        "megabytes": kernel_megabytes(),
        "cells": cells(book, taken),
    }


def cells(book, taken):
    """Number, heading, first line, seconds and progress bar of each code cell."""
    found, heading = [], ""
    for index, cell in enumerate(book.cells):
        if cell.cell_type == "markdown":
            titles = [x for x in cell.source.splitlines() if x.startswith("#")]
            heading = titles[-1].lstrip("# ") if titles else heading
        elif index in taken:
            found.append(
                {
                    "number": cell.execution_count,
                    "heading": heading,
                    "line": cell.source.splitlines()[0],
                    "seconds": taken[index],
                    "bar": any(WIDGET in out.get("data", {}) for out in cell.outputs),
                }
            )
    return found


def kernel_megabytes():
    """The peak, in MB, of the processes that this one started and that have ended."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak / 1000


def in_a_process(path):
    """`execute` in a new process."""
    command = [sys.executable, __file__, "--one", str(path)]
    environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
    return json.loads(done.stdout)


def main(paths):
    measured = []
    for path in paths:
        measured.append(in_a_process(path))
        last = measured[-1]
        print(last["name"], f"{last['seconds']:.1f} s", last["megabytes"], flush=True)
    store(
        FOLDER / "notebooks.json",
        {
            "command": "make bench-notebooks",
            "machine": machine(),
            "notebooks": measured,
        },
    )
    write_readme()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(execute(Path(sys.argv[2]))))
    else:
        main(sorted((ROOT / "notebooks").glob("*.ipynb")))
