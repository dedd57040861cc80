"""`make bench-notebooks`: seconds and memory of every notebook, and its slow cells.

Each notebook is executed in a process of its own, so that the memory of its kernel can
be told from that of the others. Nothing is written into the notebooks.

`make bench-small` does the same as a small machine would, where the kernel of Linux
holds each notebook to it: one processor, 1 GB of memory for all its processes, no
network, the checkout read-only, an empty home. It needs root, for these limits alone.
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from report import FOLDER, store, write_readme
from timing import machine

ROOT = FOLDER.parents[1]
ONE = FOLDER / "one_notebook.py"
LIMIT = 10**9  # bytes of memory
# A new network holds nothing but itself, which the kernel of a notebook needs.
CONFINED = """
echo $$ > "$GROUP/cgroup.procs" && ip link set lo up &&
mount --bind "$COURSE" "$COURSE" && mount -o remount,ro,bind "$COURSE" &&
! touch "$COURSE/.written" 2> /dev/null && exec taskset --cpu-list 0 "$@"
"""
SMALL = ["unshare", "--net", "--mount", "sh", "-c", CONFINED, "sh"]


def in_a_process(path, before=(), **variables):
    """What `one_notebook` measures of a notebook, in a new process."""
    command = [*before, sys.executable, str(ONE), str(path)]
    environment = {k: v for k, v in os.environ.items() if k != "MPLBACKEND"}
    done = subprocess.run(
        command, stdout=subprocess.PIPE, check=True, env=environment | variables
    )
    return json.loads(done.stdout)


@contextmanager
def memory_group():
    """A folder of the kernel's control groups whose processes share LIMIT bytes."""
    old, new = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    root, limit = (
        (old, "memory.limit_in_bytes") if old.is_dir() else (new, "memory.max")
    )
    group = root / "learning-to-align"
    group.mkdir(exist_ok=True)
    try:
        (group / limit).write_text(str(LIMIT))
        for no_swap in ("memory.memsw.limit_in_bytes", "memory.swap.max"):
            if (group / no_swap).is_file():
                (group / no_swap).write_text(str(LIMIT) if root == old else "0")
        yield group
    finally:
        group.rmdir()


def on_a_small_machine(path):
    """The same, held to one processor, LIMIT bytes, no network, no file to change."""
    with memory_group() as group, tempfile.TemporaryDirectory() as home:
        places = {"HOME": home, "GROUP": str(group), "COURSE": str(ROOT)}
        return in_a_process(path, SMALL, **places)


def main(paths, small):
    measured = []
    for path in paths:
        measured.append(on_a_small_machine(path) if small else in_a_process(path))
        last = measured[-1]
        print(last["name"], f"{last['seconds']:.1f} s", last["megabytes"], flush=True)
    about = machine() | ({"cores": 1, "threads": 1} if small else {})
    command = f"make bench-{'small' if small else 'notebooks'}"
    results = {"command": command, "machine": about, "notebooks": measured}
    store(FOLDER / ("small.json" if small else "notebooks.json"), results)
    write_readme()


if __name__ == "__main__":
    main(sorted((ROOT / "notebooks").glob("*.ipynb")), "--small" in sys.argv[1:])
