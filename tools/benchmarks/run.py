"""`make bench`: measure speed and memory, then write results.json, README.md, figures.

`python benchmarks/run.py --quick` goes through all of it with tiny sizes in about a
minute and writes into a temporary folder: it shows that everything runs, no more.
"""

import argparse
import tempfile
import time
from pathlib import Path

import memory
from measure import (
    QUICK,
    Settings,
    against_the_limit,
    batch_sizes,
    growth,
    parts_alone,
    real_text,
    thread_rows,
    training_steps,
)
from report import (
    FOLDER,
    draw_batches,
    draw_growth,
    machine_line,
    store,
    table_line,
    write_readme,
)
from timing import machine


def measure_all(settings):
    """Everything, as a dict of plain values; prints each row as it comes."""
    rows = []
    start = time.perf_counter()

    def add(new):
        rows.extend(new)
        for row in new:
            print(f"{time.perf_counter() - start:5.0f} s", table_line(row), flush=True)

    add(training_steps(settings))
    add(against_the_limit(settings))
    add(real_text(settings))
    new, grid = parts_alone(settings)
    add(new)
    new, growing = growth(settings)
    add(new)
    batches = batch_sizes(settings)
    add(thread_rows(batches))
    add(memory.step_rows(settings))
    add(memory.import_rows(settings))
    return {
        "rows": rows,
        "growth": growing,
        "batches": batches,
        "grid": grid,
        "seconds": time.perf_counter() - start,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to try it")
    quick = parser.parse_args().quick
    folder = Path(tempfile.mkdtemp(prefix="bench-")) if quick else FOLDER
    about = machine()
    print(machine_line(about), flush=True)
    settings = QUICK if quick else Settings()
    results = {
        "command": "make bench",
        "quick": quick,
        "machine": about,
        "settings": settings._asdict(),
        **measure_all(settings),
    }
    store(folder / "results.json", results)
    draw_growth(results["growth"], folder / "growth.png")
    draw_batches(results["batches"], folder / "batches.png")
    write_readme(folder)
    print(f"\nwritten to {folder}")


if __name__ == "__main__":
    main()
