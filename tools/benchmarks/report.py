"""What the commands write: JSON, and tables into the README's own places."""

import json
import statistics
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CORE = tuple(f"{number:02d}" for number in range(7))  # notebooks 00 to 06
CORE_MINUTES = 5
COURSE_MINUTES = 30  # of one processor


def markdown(rows, head):
    """A Markdown table of text."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def verdict(reached):
    return "met" if reached else "missed"


def table(rows):
    """The rows of `measure` as a table; the verdict goes by the median."""
    lines = []
    for row in rows:
        values, target = row["values"], row["target"]
        unit = row["unit"] if row["unit"] == "×" else f" {row['unit']}"
        at_most = row.get("at_most", False)  # in results of the first edition
        goal, reached, figure = "", "", "not measured"
        if target is not None:
            goal = f"{'≤' if at_most else '≥'} {target:g}{unit}"
        if values:
            middle = statistics.median(values)
            figure = f"**{middle:.3g}{unit}** ({min(values):.3g} to {max(values):.3g})"
        if values and target is not None:
            reached = verdict(middle <= target if at_most else middle >= target)
        line = row["what"], row["against"], goal, figure, str(len(values)), reached
        lines.append([*line, row["note"]])
    figure = "median (lowest to highest)"
    head = ["what", "against", "target", figure, "rounds", "verdict", "in full"]
    return markdown(lines, head)


def results_text(measured):
    text = table(measured["rows"])
    if measured["quick"]:
        return f"**A quick run, tiny sizes: these are no measurements.**\n\n{text}"
    return text


def notebooks_text(measured):
    """The notebooks' table, the slow cells by name, and the core's total."""
    books, lines, slow = measured["notebooks"], [], []
    for book in books:
        slowest = max((cell["seconds"] for cell in book["cells"]), default=0.0)
        peak = "" if book["megabytes"] is None else f"{book['megabytes']:.0f}"
        size = [str(book[name]) for name in ("text_and_code", "words")]
        took = [f"{book['seconds']:.1f}", peak, f"{slowest:.1f}"]
        lines.append([book["name"], *size, *took])
        slow += [
            f"- {book['name']}, cell {cell['number']}: {cell['seconds']:.0f} s, "
            f"{'with' if cell['bar'] else '**without**'} a progress bar"
            for cell in book["cells"]
            if cell["seconds"] > 10
        ]
    core = [book["seconds"] for book in books if book["name"].startswith(CORE)]
    total = (
        f"{len(core)} of the {len(CORE)} core notebooks (00 to 06) take "
        f"{sum(core) / 60:.1f} minutes; target at most {CORE_MINUTES}: "
        f"{verdict(sum(core) <= 60 * CORE_MINUTES)}."
    )
    head = ["notebook", "cells", "words"]
    head += ["seconds", "memory, MB", "slowest cell, seconds"]
    slow = "\n".join(slow) or "No cell takes more than 10 seconds."
    return "\n\n".join([markdown(lines, head), total, slow])


def small_text(measured):
    """Seconds, processor seconds and memory of each notebook, and the sum."""
    lines, books = [], measured["notebooks"]
    for book in books:
        times = [f"{book[name]:.1f}" for name in ("seconds", "cpu_seconds")]
        lines.append([book["name"], *times, f"{book['megabytes']:.0f}"])
    minutes = sum(book["cpu_seconds"] for book in books) / 60
    total = (
        f"All {len(books)} take {minutes:.1f} minutes of one processor; target at most "
        f"{COURSE_MINUTES}: {verdict(minutes <= COURSE_MINUTES)}."
    )
    head = ["notebook", "seconds", "seconds of processor", "memory, MB"]
    return f"{markdown(lines, head)}\n\n{total}"


def start_text(measured):
    """Seconds from a fresh clone, for each state of pip's cache."""
    parts = ("install", "lab", "notebook")
    lines = [
        [name, *(f"{run[part]:.0f} s" for part in parts)]
        for name, run in measured["runs"].items()
    ]
    head = ["", "install", "then to JupyterLab", "then notebook 00, first run"]
    return markdown(lines, head)


TEXTS = {
    "results": results_text,
    "notebooks": notebooks_text,
    "small": small_text,
    "start": start_text,
}


def write_readme(folder=FOLDER):
    """Write what is stored into README.md, each file's between its two comments."""
    path = folder / "README.md"
    text = path.read_text(encoding="utf-8")
    for name, text_of in TEXTS.items():
        stored = folder / f"{name}.json"
        if stored.is_file():
            measured = json.loads(stored.read_text(encoding="utf-8"))
            before, start, rest = text.partition(f"<!-- {name}.json -->\n")
            _, end, after = rest.partition(f"<!-- end of {name}.json -->\n")
            if not start or not end:
                raise ValueError(f"{path} has no place for {name}.json: two comments")
            about = machine_line(measured["machine"])
            text = f"{before}{start}\n{about}\n\n{text_of(measured)}\n\n{end}{after}"
    path.write_text(text, encoding="utf-8")


def machine_line(machine):
    """The machine in one sentence."""
    return (
        f"Measured on: {machine['processor']} ({machine['instructions']}), "
        f"{machine['cores']} cores, {machine['threads']} threads, {machine['system']}; "
        f"Python {machine['python']}, torch {machine['torch']}, d2l {machine['d2l']}."
    )


def store(path, results):
    """JSON, readable, with numbers to four digits."""
    whole = json.dumps(results)
    short = json.loads(whole, parse_float=lambda text: float(f"{float(text):.4g}"))
    path.write_text(json.dumps(short, indent=1) + "\n", encoding="utf-8")
