"""The benchmarks' tables, and the machine that they were made on, for the README."""

import os
import platform
from importlib.metadata import version
from pathlib import Path
from statistics import median

import torch

from tools.experiments.provenance import processor

README = Path(__file__).with_name("README.md")


def row(what, values, unit="×", asked=None, note=""):
    """Cells; a value a round. asked of their median: such as ("at least", 1.4)."""
    low, middle, high = (f(values) for f in (min, median, max))
    figure, said = f"**{middle:.3g}{unit}** ({low:.3g} to {high:.3g})", ""
    if asked:
        reached = (middle >= asked[1]) == (asked[0] == "at least")
        said = f"{asked[0]} {asked[1]}{unit}: {'met' if reached else '**missed**'}"
    return what, figure, said, note


def markdown(head, rows):
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def table(name, head, rows, path=README):
    """Say each row as soon as it is measured; write all of them to the README."""
    said = []
    for row in rows:
        said.append(row)
        print("; ".join(str(cell) for cell in row if cell != ""), flush=True)
    write(name, markdown(head, said), path)


def write(name, text, path=README):
    """Put a text between the two comments that have this name, with the machine's."""
    page, start = path.read_text(encoding="utf-8"), f"<!-- {name} -->\n"
    end = f"<!-- end of {name} -->\n"
    if start not in page or end not in page:
        raise ValueError(f"{path} has no place for {name}: two comments")
    before, after = page.split(start)[0], page.split(end)[1]
    text = f"{before}{start}\n{machine()}\n\n{text}\n\n{end}{after}"
    path.write_text(text, encoding="utf-8")


def machine():
    """The processor and the versions, in a sentence."""
    return (
        f"Measured on: {processor()} ({torch.backends.cpu.get_cpu_capability()}), "
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, "
        f"{platform.system()} {platform.machine()}; Python "
        f"{platform.python_version()}, torch {torch.__version__}, d2l {version('d2l')}."
    )
