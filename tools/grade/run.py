"""Which checks pass in the notebooks that learners handed in? `make grade` asks.

    python tools/grade/run.py FOLDER [--out build/grades.csv] [--minutes 15] ...

FOLDER holds a folder for each learner, or a notebook named after each. Every notebook
runs in a copy of the course and in processes of its own, whose time, memory, number and
files are limited; on Linux, where the system permits it, also without a network, and
with a disk that can't be written outside of the copy. It needs Linux or macOS.
"""

import argparse
import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path

import matplotlib
import nbformat

ROOT = Path(__file__).resolve().parents[2]
CELLS = Path(__file__).with_name("cells.py")
CHECK = re.compile(r"\bexercises\.(\w+)\(")
COLUMNS = ["learner", "file", "notebook", "check", "result", "message", "trouble"]
LARGEST = 50_000_000  # bytes of a notebook
DISK = 1_000_000_000  # bytes that may be written in the copy
PROCESSES = 64  # and threads
RUNNING = set()  # process groups

# Namespaces of its own: no network, and all processes end with the first. Then only the
# folder and the shared memory can be written.
APART = "unshare --user --map-root-user --net --pid --fork --kill-child --mount".split()
CLOSE = """
mount --bind "$0" "$0" && cd "$0/notebooks" || exit 1
while read -r _ target _; do
    case "$target" in
        "$0" | /proc* | /sys* | /dev*) ;;
        *) mount -o remount,bind,ro "$target" ;;
    esac
done < /proc/self/mounts
mount -t tmpfs -o size=256m tmpfs /dev/shm
exec "$@"
"""


@cache
def can_be_apart():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "notebooks").mkdir()
        try:
            command = [*APART, "sh", "-c", CLOSE, folder, "true"]
            return not subprocess.run(command, capture_output=True).returncode
        except OSError:
            return False


@cache
def course():
    """{notebook's name: (the texts of its cells, the names of its checks)}."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        checks = list(dict.fromkeys(CHECK.findall(code)))
        if checks:
            found[path.stem] = {cell.source for cell in cells}, checks
    return found


def read_notebook(path):
    """(name of the course's notebook that it was, [(number, source) of its code])."""
    if path.stat().st_size > LARGEST:
        raise ValueError(f"larger than {LARGEST // 10**6} MB")
    cells = nbformat.read(path, as_version=4).cells
    texts = {cell.source for cell in cells}
    common = {name: len(texts & own) for name, (own, _) in course().items()}
    name = max(common, key=common.get)
    if common[name] < 3:
        raise ValueError("no notebook of the course that has checks")
    code = [(n, c.source) for n, c in enumerate(cells, 1) if c.cell_type == "code"]
    return name, code


def submissions(folder):
    """(learner, path) of each notebook handed in."""
    for path in sorted(folder.rglob("*.ipynb")):
        inside = path.relative_to(folder)
        hidden = any(part.startswith(".") for part in inside.parts)
        if path.is_file() and not hidden:
            yield inside.parts[0].removesuffix(".ipynb"), path


def prepare(folder, code):
    """A copy of what a notebook needs, and the notebook's code."""
    for part in ("utils", "data"):
        shutil.copytree(ROOT / part, folder / part)
    shutil.copytree(ROOT / "notebooks" / "img", folder / "notebooks" / "img")
    fonts = folder / ".cache" / "matplotlib"  # its list of fonts takes long to make
    shutil.copytree(matplotlib.get_cachedir(), fonts, dirs_exist_ok=True)
    (folder / "cells.json").write_text(json.dumps(code), encoding="utf-8")


def members(session):
    """How many processes a session has; 1 where /proc doesn't say."""
    count = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            count += int(path.read_text().rpartition(")")[2].split()[3]) == session
        except (OSError, ValueError):  # it has ended meanwhile
            continue
    return max(count, 1)


def size(folder):
    found = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                found += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                continue
    return found


def watch(process, folder, minutes):
    """Wait for the notebook's end -> why it was stopped, or None."""
    end, checked = time.monotonic() + 60 * minutes, size(folder)
    while process.poll() is None:
        time.sleep(0.2)
        if time.monotonic() > end:
            return f"stopped after {minutes:g} minutes"
        if members(process.pid) > PROCESSES:
            return f"stopped: more than {PROCESSES} processes"
        if size(folder) - checked > DISK:
            return f"stopped: it wrote more than {DISK // 10**6} MB"
    return None


def end(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def execute(code, options):
    """Run the cells -> the lines of the record, and why it was stopped, or None."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name,
        tempfile.TemporaryFile() as record,
    ):
        folder = Path(name).resolve()
        prepare(folder, code)
        os.set_inheritable(record.fileno(), True)
        apart = can_be_apart()  # else the user's other processes would be counted
        numbers = [
            record.fileno(),
            int(60 * options.cell_minutes),
            int(2**30 * options.memory),
            PROCESSES if apart else -1,
        ]
        command = [sys.executable, str(CELLS), str(folder / "cells.json")]
        command += map(str, numbers)
        if apart:
            command = [*APART, "sh", "-c", CLOSE, str(folder), *command]
        process = subprocess.Popen(
            command,
            cwd=folder / "notebooks",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "TMPDIR": str(folder),
                "PYTHONPATH": str(folder),
                "PYTHONDONTWRITEBYTECODE": "1",
                "OMP_NUM_THREADS": "1",
                "LANG": "C.UTF-8",
                "MPLBACKEND": "agg",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[record.fileno()],
            start_new_session=True,
        )
        RUNNING.add(process.pid)
        try:
            stopped = watch(process, folder, options.minutes)
        finally:
            RUNNING.discard(process.pid)
            end(process.pid)
            process.wait()
        record.seek(0)
        return [json.loads(line) for line in record.read().splitlines()], stopped


def judged(lines, stopped, checks):
    """{check: (result, message)} and, in words, what else happened."""
    found, trouble, cell, ended = {}, [], None, False
    for line in lines:
        cell, ended = line.get("cell", cell), ended or "end" in line
        if "trouble" in line:
            trouble.append(f"cell {cell}: {line['trouble']}")
        if "check" in line and found.get(line["check"], ("",))[0] != "passed":
            names = {"right": "passed", "not attempted": "not attempted"}
            result = names.get(line["status"], "not yet")
            found[line["check"]] = result, line["message"]
    if stopped or not ended:
        where = f"cell {cell}: " if cell else ""
        trouble.append(where + (stopped or "the process ended"))
    return {c: found.get(c, ("not called", "")) for c in checks}, "; ".join(trouble)


def grade(submission, folder, options):
    """The table's rows for one notebook."""
    learner, path = submission
    row = {"learner": learner, "file": str(path.relative_to(folder))}
    try:
        name, code = read_notebook(path)
    except Exception as error:  # whatever stands in the file
        text = f"{type(error).__name__}: {error}".splitlines()[0]
        return [row | {"result": "unreadable", "trouble": text[:200]}]
    results, trouble = judged(*execute(code, options), course()[name][1])
    return [
        row
        | {"notebook": name, "check": check, "result": result}
        | {"message": message, "trouble": trouble}
        for check, (result, message) in results.items()
    ]


def summary(rows):
    """What is said of one notebook, in a line."""
    first, passed = rows[0], sum(row["result"] == "passed" for row in rows)
    if "check" not in first:
        return f"{first['file']}: {first['trouble']}"
    trouble = first["trouble"] and f" ({first['trouble']})"[:150]
    return f"{first['file']}: {passed} of {len(rows)} checks passed{trouble}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what learners handed in")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "grades.csv")
    parser.add_argument("--minutes", type=float, default=15, help="for a notebook")
    parser.add_argument("--cell-minutes", type=float, default=5, help="for a cell")
    parser.add_argument("--memory", type=float, default=4, help="GB for a process")
    parser.add_argument("--jobs", type=int, default=1, help="notebooks at a time")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = list(submissions(options.folder))
    if not found:
        parser.error(f"there is no notebook in {options.folder}")
    if not can_be_apart():
        print("This system permits no namespaces: notebooks can use the network,")
        print("and write wherever you can. CLASSROOM.md says what to do about it.")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    passed = Counter()
    with (
        # A spreadsheet knows by the mark at the beginning that names are UTF-8.
        open(options.out, "w", newline="", encoding="utf-8-sig") as file,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        one = partial(grade, folder=options.folder, options=options)
        try:
            for rows in pool.map(one, found):
                table.writerows(rows)
                file.flush()
                print(summary(rows), flush=True)
                passed.update(r["check"] for r in rows if r["result"] == "passed")
        except BaseException:  # Ctrl-C, too, waits for no notebook
            pool.shutdown(wait=False, cancel_futures=True)
            for group in list(RUNNING):
                end(group)
            raise
    count = "1 notebook" if len(found) == 1 else f"{len(found)} notebooks"
    print(f"{count}. Passed, by check:" if passed else f"{count}. No check passed.")
    for check, count in passed.most_common():
        print(f"{count:4}  {check}")
    print(f"Everything, with the checks' words: {options.out}")


if __name__ == "__main__":
    main()
