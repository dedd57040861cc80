"""One notebook, executed from a clean kernel; its size and what it took, as JSON.

    python tools/benchmarks/one_notebook.py notebooks/00_start_here.ipynb

A program of its own, and a light one: what it imports counts as memory of a small
machine.
"""

import json
import sys
import time
from datetime import datetime
from pathlib import Path

import nbformat
from nbclient import NotebookClient

WIDGET = "application/vnd.jupyter.widget-view+json"  # what a bar of tqdm is drawn as


def execute(path):
    """One notebook from a clean kernel: its size, seconds, slow cells and memory."""
    book = nbformat.read(path, as_version=4)
    texts = [cell.source for cell in book.cells if cell.cell_type == "markdown"]
    folder = {"metadata": {"path": str(path.parent)}}
    start = time.perf_counter()
    NotebookClient(book, timeout=None, resources=folder).execute()
    return {
        "name": path.stem,
        "text_and_code": len(book.cells),
        "words": sum(len(text.split()) for text in texts),
        "seconds": time.perf_counter() - start,
        **used_by_the_kernel(),
        "cells": slow_cells(book),
    }


def slow_cells(book, at_least=0.2):
    """Number, seconds and progress bar of the code cells that take long."""
    return [
        {
            "number": cell.execution_count,
            "seconds": seconds_of(cell),
            "bar": any(WIDGET in out.get("data", {}) for out in cell.outputs),
        }
        for cell in book.cells
        if "execution" in cell.metadata and seconds_of(cell) >= at_least
    ]


def seconds_of(cell):
    """From the kernel's first word on a cell to its last, as nbclient notes them."""
    start, end = (
        datetime.fromisoformat(cell.metadata.execution[f"iopub.status.{status}"][:-1])
        for status in ("busy", "idle")  # in UTC: ...Z
    )
    return (end - start).total_seconds()


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
