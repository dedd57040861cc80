"""`make bench`: measure speed and memory, then write results.json and the README.

`python tools/benchmarks/run.py --quick` goes through all of it with tiny sizes in about
a minute and writes into a temporary folder: it shows that everything runs, no more.
"""

import shutil
import sys
import tempfile
from pathlib import Path

from measure import (
    QUICK,
    Settings,
    growth,
    parts_alone,
    real_text,
    training_steps,
)
from memory import memory_rows
from report import FOLDER, store, table, write_readme
from timing import machine


def main(quick):
    folder, settings = FOLDER, Settings()
    if quick:
        folder, settings = Path(tempfile.mkdtemp(prefix="bench-")), QUICK
        shutil.copy(FOLDER / "README.md", folder)
    rows = []
    for measured in (training_steps, real_text, parts_alone, growth, memory_rows):
        rows += measured(settings)
        print(table(rows), flush=True)
    results = {"command": "make bench", "quick": quick, "machine": machine()}
    results |= {"settings": settings._asdict(), "rows": rows}
    store(folder / "results.json", results)
    write_readme(folder)
    print(f"written to {folder}")


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
