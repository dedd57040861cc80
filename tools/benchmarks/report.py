"""What the commands write: tables, figures, and the README between fixed words."""

import json
import statistics
from pathlib import Path

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from utils.plotting import plot_curves

FOLDER = Path(__file__).resolve().parent
DEFAULT_BATCH = 64
CORE = tuple(f"{number:02d}" for number in range(7))  # notebooks 00 to 06
CORE_MINUTES = 5
COURSE_MINUTES = 30  # of one processor
STORED = (
    "results.json",
    "notebooks.json",
    "small.json",
    "classroom.json",
    "start.json",
)

OPENING = """\
# Benchmarks

How fast the course's code is, and how much memory it takes. `make bench`,
`make bench-notebooks`, `make bench-small`, `benchmarks/classroom.py` and
`benchmarks/start.py` write this page; the figures below are theirs, none by hand.

Each figure is a ratio within one run. The two sides take turns, at least 7 times each,
and the table gives the median of these pairs with the lowest and the highest. Both
sides are checked to do the same work, and a difference stops the run: the same weights
copied across give the same outputs and gradients to rounding, the same number of words,
the same translations. Seconds differ from machine to machine, ratios less so.
"""
STEPS = """\
Where no sizes are named, a step has V 4000, E 128, H 256, B 64. It is: gradients to
zero, forward, masked loss, backward, clipping, Adam. Our side is
`utils.training.train_step` with the Trainer's optimizer, Adam as one fused operation;
rows of their own give it to the other side too. The other is d2l 0.17.0's
encoder and `AdditiveAttention` in the book's decoder, trained with the book's loss,
clipping and optimizer. d2l computes every position of a padded batch; the rows without
padding show what is left of the ratio when there is none to leave out. d2l's encoder
reads the padding too, so on padded batches outputs are compared from the state of the
last word, which is where ours starts. The book's loss is a mean a sentence and ours a
mean a word; one is the other times a known number, and that is checked.

The limit is the time of the matrix products of a step alone, in buffers made
beforehand, in the best order we know: if all else cost nothing, a step would take that
long. It does not count the scores' matrix-vector products; rows of their own do.

For the epoch, each side makes its own batches: ours of similar lengths, d2l's all
padded to the longest sentence. In each pair both sides go on through the next seventh
of their epoch. For decoding, our side translates all sentences in each pair and d2l's
every seventh, so d2l goes once through all; its encoder gets the words alone, without
the padding that `predict_seq2seq` adds, so that both sides give the same translations.
The model is the one that our side of the epoch has trained.
"""
GROWTH = """\
## How a step grows with the length

![Seconds of the attention part of a training step and of a step with a fixed context, \
by length, both axes logarithmic](growth.png)

The attention part is what a step takes with attention beyond what it takes with a
fixed context, everything else equal. An exponent of 1 would say that time grows as S·T,
or as S + T.
"""
BATCHES = """\
## Batch sizes and threads

![Target words a second by batch size, with one thread and with two](batches.png)

The course's usual model (E 64, H 128, encoder in both directions, V 400) on sentences
of 15 words without padding.
"""
NOTEBOOKS = """\
## The notebooks

Each is executed alone, from a clean kernel. Memory is the kernel's largest. A cell over
10 seconds is named under the table.
"""


SMALL = """\
## A small machine

The same notebooks where Linux holds them to one processor, 1 GB of memory for the
kernel and what runs it together (a control group), no network, a checkout that can't
be written to, and an empty home: `make bench-small`. Each runs from top to bottom.
"""


START = """\
## From a fresh clone

`make lab` on a clone of the last commit, until the page of notebook 00 answers, then
that notebook once: `benchmarks/start.py`. "Cache" is pip's. Modules are compiled when
they are installed, or else when they are first imported.
"""


CLASSROOM = """\
## A class at once

JupyterHub with local processes on one machine, and learners who run the same notebooks
at the same time through its API, each with a server and kernels of their own:
`benchmarks/classroom.py`.
"""


def formatted(value, unit):
    """A number as the table shows it."""
    if unit in ("of the limit", "exponent", "s"):
        return f"{value:.2f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"


def summary(row):
    """median, lowest, highest of a row, and "met", "missed" or "" without a target."""
    values = row["values"]
    middle = statistics.median(values)
    verdict = ""
    if row["target"] is not None:
        reached = middle <= row["target"] if row["at_most"] else middle >= row["target"]
        verdict = "met" if reached else "missed"
    return middle, min(values), max(values), verdict


def table_line(row):
    """One line of the Markdown table."""
    unit, target = row["unit"], row["target"]
    goal = ""
    if target is not None:
        goal = f"{'≤' if row['at_most'] else '≥'} {target:g}{_tail(unit)}"
    if not row["values"]:
        figure, pairs, verdict = "not measured", "0", ""
    else:
        middle, low, high, verdict = summary(row)
        figures = [formatted(value, unit) for value in (middle, low, high)]
        figure = f"**{figures[0]}{_tail(unit)}** ({figures[1]} to {figures[2]})"
        pairs = str(len(row["values"]))
    cells = [row["what"], row["against"], goal, figure, pairs, verdict, row["note"]]
    return "| " + " | ".join(cells) + " |"


def _tail(unit):
    return unit if unit == "×" else f" {unit}"


def table(rows):
    """All rows as a Markdown table."""
    figure = "median (lowest to highest)"
    head = ["what", "against", "target", figure, "pairs", "verdict", "in full"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return "\n".join(lines + [table_line(row) for row in rows]) + "\n"


def machine_line(machine):
    """The machine in one sentence."""
    return (
        f"Measured on: {machine['processor']} ({machine['instructions']}), "
        f"{machine['cores']} cores, {machine['threads']} threads, {machine['system']}; "
        f"Python {machine['python']}, torch {machine['torch']}, d2l {machine['d2l']}.\n"
    )


def batch_size_text(measured):
    """What the batch sizes say about the default of 64."""
    sizes = measured["batch_sizes"]
    lines = []
    for threads, runs in measured["tokens_a_second"].items():
        speeds = np.median(np.asarray(runs), axis=0)
        best = int(speeds.argmax())
        text = (
            f"- {threads} thread{'s' if int(threads) > 1 else ''}: the most words a "
            f"second with batches of {sizes[best]}, {speeds[best]:,.0f}"
        )
        if DEFAULT_BATCH in sizes:
            share = speeds[sizes.index(DEFAULT_BATCH)] / speeds[best]
            text += f"; the default of {DEFAULT_BATCH} reaches {share:.0%} of it"
        enough = sizes[int((speeds >= 0.8 * speeds[best]).argmax())]  # the first
        lines.append(f"{text}; {enough} is the smallest to reach 80%.")
    return (
        "\n".join(lines) + "\n\nThe default is not the fastest: a larger batch also "
        "makes fewer updates in an epoch. The number of threads is left to PyTorch, "
        "one for each core; in a container, `binder/start` sets it by the limit.\n"
    )


def notebooks_text(measured):
    """The notebooks' table, the slow cells by name, and the core's total."""
    head = ["notebook", "seconds", "memory, MB", "slowest cell, seconds"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    slow = []
    for book in measured["notebooks"]:
        peak = "" if book["megabytes"] is None else f"{book['megabytes']:.0f}"
        cells = sorted(book["cells"], key=lambda cell: -cell["seconds"])
        slowest = f"{cells[0]['seconds']:.1f}" if cells else ""
        lines.append(f"| {book['name']} | {book['seconds']:.1f} | {peak} | {slowest} |")
        slow += [
            f"- {book['name']}, cell {cell['number']}, *{cell['heading']}*: "
            f"{cell['seconds']:.0f} s, `{cell['line']}`, "
            f"{'with' if cell['bar'] else '**without**'} a progress bar"
            for cell in book["cells"]
            if cell["seconds"] > 10
        ]
    core = [book for book in measured["notebooks"] if book["name"].startswith(CORE)]
    total = sum(book["seconds"] for book in core)
    verdict = "met" if total <= 60 * CORE_MINUTES else "missed"
    names = f"{len(core)} of the {len(CORE)} core notebooks (00 to 06)"
    lines += [
        "",
        f"{names} take {total / 60:.1f} minutes; "
        f"target at most {CORE_MINUTES}: {verdict}.",
        "",
        *(slow or ["No cell takes more than 10 seconds."]),
    ]
    return "\n".join(lines) + "\n"


def small_text(measured):
    """Seconds, processor seconds and memory of each notebook, and the sum."""
    head = ["notebook", "seconds", "seconds of processor", "memory, MB"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    books = measured["notebooks"]
    for book in books:
        lines.append(
            f"| {book['name']} | {book['seconds']:.1f} | {book['cpu_seconds']:.1f} "
            f"| {book['megabytes']:.0f} |"
        )
    total = sum(book["cpu_seconds"] for book in books) / 60
    verdict = "met" if total <= COURSE_MINUTES else "missed"
    lines += [
        "",
        f"All {len(books)} take {total:.1f} minutes of one processor; target at most "
        f"{COURSE_MINUTES}: {verdict}.",
    ]
    return "\n".join(lines) + "\n"


def classroom_text(measured):
    """What a class took: failures, memory, waiting."""
    slowest, books = measured["slowest"], measured["notebooks"]
    lines = [
        f"- {measured['learners']} learners, notebooks {books[0][:2]} to "
        f"{books[-1][:2]}, {measured['cells']} cells: "
        f"{len(measured['failures']) or 'no'} failures.",
        f"- Memory of a learner's server and kernel together, at most: "
        f"{min(measured['megabytes']):.0f} to {max(measured['megabytes']):.0f} MB. Of "
        f"all learners at one moment, at most: "
        f"{measured['megabytes_together'] / 1000:.1f} GB. (Libraries that processes "
        "share are counted in each.)",
        f"- A server was ready after {min(measured['server_seconds']):.0f} to "
        f"{max(measured['server_seconds']):.0f} s, all notebooks after "
        f"{min(measured['seconds']) / 60:.1f} to {max(measured['seconds']) / 60:.1f} "
        "minutes.",
        f"- The slowest cell: {slowest['notebook']}, `{slowest['line']}`, "
        f"{slowest['seconds']:.0f} s.",
        f"- Lines to a kernel that broke and were joined again: "
        f"{measured['reconnections']}.",
        *(f"- Failed: {text}" for text in measured["failures"]),
    ]
    return "\n".join(lines) + "\n"


def start_text(measured):
    """Seconds from a fresh clone, for each state of pip's cache."""
    head = ["", "install", "then to JupyterLab", "then notebook 00, first run"]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for name, run in measured["runs"].items():
        figures = [f"{run[part]:.0f} s" for part in ("install", "lab", "notebook")]
        lines.append(" | ".join([f"| {name}", *figures]) + " |")
    return "\n".join(lines) + "\n"


def readme(results, notebooks, small, classroom, start):
    """The text of README.md from what is stored; None stands for not yet measured."""
    parts = [OPENING]
    if results:
        if results["quick"]:
            parts.append("**A quick run, tiny sizes: these are no measurements.**\n")
        parts += [
            "## Speed and memory\n",
            machine_line(results["machine"]),
            table(results["rows"]),
            STEPS,
            GROWTH,
            BATCHES,
            batch_size_text(results["batches"]),
        ]
    if notebooks:
        about = machine_line(notebooks["machine"])
        parts += [NOTEBOOKS, about, notebooks_text(notebooks)]
    if small:
        parts += [SMALL, machine_line(small["machine"]), small_text(small)]
    if classroom:
        about = machine_line(classroom["machine"])
        parts += [CLASSROOM, about, classroom_text(classroom)]
    if start:
        parts += [START, machine_line(start["machine"]), start_text(start)]
    return "\n".join(parts)


def write_readme(folder=FOLDER):
    """README.md from what is stored."""
    text = readme(*map(read, (folder / name for name in STORED)))
    (folder / "README.md").write_text(text, encoding="utf-8")


def read(path):
    """What `store` has written there, or None."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def store(path, results):
    """JSON, readable, with numbers to four digits."""
    path.write_text(json.dumps(rounded(results), indent=1) + "\n", encoding="utf-8")


def rounded(value):
    """The same with every float at four significant digits."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {str(key): rounded(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(entry) for entry in value]
    return value


def draw_growth(measured, path):
    """Seconds by length, both axes logarithmic."""
    curves = {
        "attention part": measured["attention"],
        "fixed context": measured["fixed"],
    }
    lengths = measured["lengths"]
    positive = {k: np.where(np.asarray(v) > 0, v, np.nan) for k, v in curves.items()}
    xlabel = "words in source and target, S = T"
    ax = plot_curves(lengths, positive, xlabel, "seconds a step")
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    _logarithmic(ax, lengths)
    ax.figure.savefig(path, dpi=120)


def draw_batches(measured, path):
    """Target words a second by batch size, a line for each number of threads."""
    names = {"1": "one thread", "2": "two threads"}
    speeds = measured["tokens_a_second"]
    curves = {names[str(threads)]: runs for threads, runs in speeds.items()}
    ax = plot_curves(
        measured["batch_sizes"], curves, "sentences in a batch", "target words a second"
    )
    ax.set_ylim(bottom=0)
    _logarithmic(ax, measured["batch_sizes"])
    ax.figure.savefig(path, dpi=120)


def _logarithmic(ax, ticks):
    ax.set_xscale("log")
    ax.set_xticks(ticks)
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()
