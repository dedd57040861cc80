"""`make bench-notebooks`: seconds and memory of every notebook, and its slow cells.

Each is executed from a clean kernel by a process of its own, so that the memory of its
kernel can be told from that of the others. Nothing is written into the notebooks.
"""

import multiprocessing
import os
import re
import resource
import sys
import time
from datetime import datetime
from pathlib import Path

import nbformat
from nbclient import NotebookClient

from tools.benchmarks import report

ROOT = Path(__file__).resolve().parents[2]
SAID = re.compile(r"cells run in about (?:a minute|(\d+) (second|minute)s)")
HEAD = ["notebook", "cells", "words", "seconds", "it says", "seconds of processor"]
HEAD += ["memory, MB", "slowest cell"]


def execute(path):
    """A notebook's row as a dict, by the words of HEAD."""
    book = nbformat.read(path, as_version=4)
    texts = [cell.source for cell in book.cells if cell.cell_type == "markdown"]
    folder = {"metadata": {"path": str(path.parent)}}
    begun = time.perf_counter()
    NotebookClient(book, timeout=None, resources=folder).execute()
    took = [round(time.perf_counter() - begun), said(book)]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # of the kernel
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)  # bytes
    took += [round(used.ru_utime + used.ru_stime), round(peak / 1e6)]
    cells = [cell for cell in book.cells if "execution" in cell.metadata]
    slow = max(cells, key=seconds_of)
    took.append(f"{slow.execution_count}: {seconds_of(slow):.0f} s")
    size = [len(book.cells), sum(len(text.split()) for text in texts)]
    return dict(zip(HEAD, [path.stem, *size, *took], strict=True))


def said(book):
    """The seconds that the first cell promises, or 0."""
    found = SAID.search(" ".join(book.cells[0].source.split()))
    if not found:
        return 0
    return int(found[1] or 60) * (60 if found[2] == "minute" else 1)


def seconds_of(cell):
    """From the kernel's first word on a cell to its last, as nbclient notes them."""
    begun, ended = (
        datetime.fromisoformat(cell.metadata.execution[f"iopub.status.{status}"][:-1])
        for status in ("busy", "idle")  # in UTC: ...Z
    )
    return (ended - begun).total_seconds()


def sums(rows):
    """What all notebooks need together, and what they may, in a sentence."""
    minutes = sum(row["seconds of processor"] for row in rows) / 60
    longest = max(int(row["slowest cell"].split()[1]) for row in rows)
    memory = max(row["memory, MB"] for row in rows)
    return (
        f"All {len(rows)} take {minutes:.1f} minutes of processor (7 asked at most), "
        f"the slowest cell {longest} s (60), the largest kernel {memory} MB (1,000)."
    )


def main():
    os.environ.pop("MPLBACKEND", None)  # a kernel chooses its own
    paths, rows = sorted((ROOT / "notebooks").glob("*.ipynb")), []
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as processes:
        for row in processes.imap(execute, paths, chunksize=1):
            rows.append(row)
            print(*(f"{name} {value}" for name, value in row.items()), sep=", ")
    table = report.markdown(HEAD, [row.values() for row in rows])
    report.write("notebooks", f"{table}\n\n{sums(rows)}")


if __name__ == "__main__":
    main()
