"""Which checks pass in what learners handed in? `make grade SUBMITTED=folder` asks.

FOLDER holds a folder for each learner, or a notebook named after each. The folder --out
gets learners.csv (a row a learner, a column a check, sums), checks.csv (a row a check,
with its words) and feedback/ (a text a learner). notebooks/CLASSROOM.md says how a
notebook is kept from doing harm. It needs Linux or macOS.
"""

import argparse
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import matplotlib
import nbformat

ROOT = Path(__file__).resolve().parents[2]
CHECK = re.compile(r"\bexercises\.(\w+)\(")
COURSE = {  # the checks of each notebook
    path.stem: list(dict.fromkeys(CHECK.findall(path.read_text(encoding="utf-8"))))
    for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
}
COLUMNS = ["learner", "file", "check", "result", "message", "trouble"]
FEEDBACK = "{file} {check}: {result} {trouble}\n{message}\n"
FORMULA = re.compile(r"(^|;)(?=\s*[-=+@＝＋－＠])")
LARGEST = 50_000_000  # bytes of a notebook, and of its record


def plain(text):
    """The text in characters that any table, terminal and encoding has."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def write_table(path, rows):
    """For a spreadsheet: a mark says that it is UTF-8, and nothing is a formula."""
    with open(path, "w", newline="", encoding="utf-8-sig") as file:
        for row in rows:
            cells = (plain(" ".join(str(value).split())) for value in row)
            csv.writer(file).writerow(FORMULA.sub(r"\1'", cell) for cell in cells)


def notebooks(entry):
    """The notebooks of an entry of the folder; if there is none, the entry itself."""
    found = []
    with suppress(OSError, RecursionError):  # folders in folders in folders
        found = sorted(entry.rglob("*.[iI][pP][yY][nN][bB]"))
    shown = [path for path in found if "/." not in f"/{path.relative_to(entry)}"]
    return shown if shown and not entry.is_symlink() else [entry]


def read_notebook(path):
    """(name of the course's notebook that it was, [(exercise, text) of its code])."""
    if path.is_symlink() or path.suffix.lower() != ".ipynb" or not path.is_file():
        raise ValueError("nothing to grade: no file that ends in .ipynb, or a link")
    if path.stat().st_size > LARGEST:
        raise ValueError(f"larger than {LARGEST // 10**6} MB")
    cells = nbformat.read(path, as_version=4).cells
    texts = [cell.source for cell in cells if cell.cell_type == "code"]
    asked = {*CHECK.findall("\n".join(texts))}
    common = {name: len(asked & {*own}) for name, own in COURSE.items()}
    if not any(common.values()):
        raise ValueError("no notebook of the course that asks a check")
    names = [(CHECK.findall(text) or text.splitlines() or [""])[0] for text in texts]
    code = [(name[:60], text) for name, text in zip(names, texts, strict=True)]
    return max(common, key=common.get), code


def execute(code, mode, minutes):
    """Run the cells as apart.sh does -> the last state in their record."""
    state = {"checks": {}, "error": "", "cell": "", "end": "the process ended"}
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        tempfile.TemporaryFile() as record,
    ):
        tools, fonts = Path(__file__).parent, matplotlib.get_cachedir()
        command = ["sh", tools / "apart.sh", mode, folder, fonts, sys.executable]
        command += [tools / "cells.py", str(record.fileno()), str(int(20 * minutes))]
        try:
            subprocess.run(
                command,
                input=json.dumps(code).encode(),
                pass_fds=[record.fileno()],
                start_new_session=True,
                timeout=60 * minutes,
            )
        except subprocess.TimeoutExpired:
            state["end"] = f"stopped after {minutes:g} minutes"
        record.seek(0)
        for line in record.read(LARGEST).splitlines():
            with suppress(ValueError, TypeError, RecursionError):  # not the grader's
                state |= json.loads(line)
    return state


def grade(entry, mode, minutes):
    """The table's rows of one learner, whatever was handed in."""
    rows = []
    for path in notebooks(entry):
        row = dict.fromkeys(COLUMNS, "") | {"learner": entry.name, "file": path.name}
        try:
            name, code = read_notebook(path)
            state = execute(code, mode, minutes)
            end = state["end"] and f"{state['cell']}: {state['end']}"
            row["trouble"] = "; ".join(filter(None, [state["error"], end]))
            for check in COURSE[name]:
                said = state["checks"].get(check, ("not called", ""))
                row["result"], row["message"] = said
                rows.append(row | {"check": f"{name[:2]} {check}"})
                row["trouble"] = ""  # the first row says it
        except Exception as error:  # whatever stands in the file
            rows.append(row | {"result": "not graded", "trouble": str(error)[:300]})
    return rows


def by_learner(graded):
    """A row for each learner, with a column for each check; and sums."""
    checks = sorted({row["check"] for rows in graded for row in rows} - {""})
    table = []
    for rows in graded:
        passed = {row["check"] for row in rows if row["result"] == "right"}
        trouble = "; ".join(row["trouble"] for row in rows if row["trouble"])
        own = [int(check in passed) for check in checks]
        table.append([rows[0]["learner"], *own, len(passed), trouble])
    sums = map(sum, [*zip(*table, strict=True)][1:-1])
    return [["learner", *checks, "sum", "trouble"], *table, ["sum", *sums, ""]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what learners handed in")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "grades")
    parser.add_argument("--minutes", type=float, default=15, help="a cell: a third")
    options = parser.parse_args()
    sys.stdout.reconfigure(errors="backslashreplace")
    entries = sorted(options.folder.glob("[!.]*"))
    if not entries:
        parser.error(f"there is nothing in {options.folder}")
    texts, graded = options.out / "feedback", []
    texts.mkdir(parents=True, exist_ok=True)
    mode = "open" if execute([], "apart", options.minutes)["end"] else "apart"
    if mode == "open" or os.geteuid() == 0:
        print("Not all limits hold: CLASSROOM.md says which, and what to do then.")
    try:
        for entry in entries:
            rows = grade(entry, mode, options.minutes)
            graded.append(rows)
            right = sum(row["result"] == "right" for row in rows)
            print(plain(f"{entry.name}: {right} of {len(rows)}"), flush=True)
            with suppress(OSError):  # a name that is too long for ".txt"
                text = plain("\n".join(map(FEEDBACK.format_map, rows)))
                Path(texts, f"{entry.name}.txt").write_text(text, encoding="utf-8")
    finally:
        rows = [row.values() for rows in graded for row in rows]
        write_table(options.out / "checks.csv", [COLUMNS, *rows])
        write_table(options.out / "learners.csv", by_learner(graded))
        print(f"Tables, and a text for each learner: {options.out}")


if __name__ == "__main__":
    main()
