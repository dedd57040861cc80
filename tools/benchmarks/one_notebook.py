"""One notebook, executed from a clean kernel; what it took is printed as JSON.

    python benchmarks/one_notebook.py notebooks/00_start_here.ipynb

A program of its own, and a light one: what it imports counts as memory of a small
machine.
"""

import json
import re
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

TRAINING = re.compile(r"\b(fit|learn)\(")
WIDGET = "application/vnd.jupyter.widget-view+json"  # what a bar of tqdm is drawn as


def execute(path):
    """One notebook from a clean kernel: its seconds, its cells, its memory."""
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
        **used_by_the_kernel(),
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
                    "line": line_that_waits(cell.source),
                    "seconds": taken[index],
                    "bar": any(WIDGET in out.get("data", {}) for out in cell.outputs),
                }
            )
    return found


def line_that_waits(source):
    """The line that trains, where a cell has one; else its first."""
    lines = source.splitlines()
    return next((x.strip() for x in lines if TRAINING.search(x)), lines[0])


def used_by_the_kernel():
    """Peak memory in MB, and seconds of processor, of what this process has started."""
    try:
        import resource
    except ImportError:  # Windows
        return {"megabytes": None, "cpu_seconds": None}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)  # bytes
    return {"megabytes": peak / 1e6, "cpu_seconds": used.ru_utime + used.ru_stime}


if __name__ == "__main__":
    print(json.dumps(execute(Path(sys.argv[1]))))
