"""The benchmarks' tables, and the machine that they were made on, for the README."""

import importlib.metadata
import os
import platform
import statistics
from pathlib import Path
from typing import NamedTuple

import torch

from tools.experiments.provenance import processor

README = Path(__file__).with_name("README.md")


class Row(NamedTuple):
    """What was measured; a value a round, and what is asked of their median."""

    what: str
    values: list
    unit: str = "×"
    at_least: float | None = None
    at_most: float | None = None
    note: str = ""

    def cells(self):
        middle, unit = statistics.median(self.values), self.unit
        figure = f"**{middle:.3g}{unit}**"
        figure += f" ({min(self.values):.3g} to {max(self.values):.3g})"
        asked = reached = ""
        if self.at_least is not None:
            asked = f"at least {self.at_least:g}{unit}"
            reached = verdict(middle >= self.at_least)
        if self.at_most is not None:
            asked = f"at most {self.at_most:g}{unit}"
            reached = verdict(middle <= self.at_most)
        return [self.what, figure, asked, reached, self.note]


def verdict(reached):
    return "met" if reached else "**missed**"


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
    page = path.read_text(encoding="utf-8")
    before, start, rest = page.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->\n")
    if not start or not end:
        raise ValueError(f"{path} has no place for {name}: two comments")
    text = f"{before}{start}\n{machine()}\n\n{text}\n\n{end}{after}"
    path.write_text(text, encoding="utf-8")


def machine():
    """The processor and the versions, in a sentence."""
    return (
        f"Measured on: {processor()} ({torch.backends.cpu.get_cpu_capability()}), "
        f"{os.cpu_count()} cores, {torch.get_num_threads()} threads, "
        f"{platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"d2l {importlib.metadata.version('d2l')}."
    )
