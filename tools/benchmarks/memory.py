"""Memory of a training step: each side in a process of its own.

As a command, `python tools/benchmarks/memory.py d2l 15 4000 128 256 64` takes steps of
one side ("plain", "by hand", "d2l") with S = T = 15 and V, E, H, B, and prints what it
needed as JSON.
"""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

from measure import D2L, row, rows_of_sides
from sides import SIDES, Sizes, random_batch, step_of
from timing import alternate


def peak_megabytes():
    """The largest resident memory of this process so far, in MB; None where the system
    doesn't tell it of the program alone, as Linux does."""
    status = Path("/proc/self/status")
    if not status.is_file():
        return None
    lines = status.read_text(encoding="utf-8").splitlines()
    (peak,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak) * 1024 / 1e6


def needed_by(side, S, sizes):
    """MB of this process before steps of the side, and at the peak.

    All sides have imported the same, and torch has loaded in a tiny step what it loads
    late. So what lies beyond is the model, its optimizer, and the steps.
    """
    tiny = Sizes(V=20, E=4, H=4, B=2)
    for each in SIDES:
        step_of(each, tiny, random_batch(tiny, 3))()
    before = peak_megabytes()
    step = step_of(side, sizes, random_batch(sizes, S))
    step(), step()
    return {"before": before, "peak": peak_megabytes()}


def in_a_process(side, S, sizes):
    """`needed_by` in a new process."""
    command = [sys.executable, __file__, side, *map(str, [S, *sizes])]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def memory_rows(settings):
    """Rows: how many times our memory d2l's side needs for the same steps."""
    rows = []
    for S in settings.lengths:
        what = f"memory of training steps, S = T = {S}, beyond torch"
        if peak_megabytes() is None:
            rows.append(row(what, D2L, [], note="this system doesn't tell the memory"))
            continue

        def beyond(side, S=S):
            found = in_a_process(side, S, settings.sizes)
            return found["peak"] - found["before"]

        sides = [partial(beyond, side) for side in SIDES]
        taken = alternate(*sides, rounds=settings.rounds, warm_up=False)
        by_side = dict(zip(SIDES, taken, strict=True))
        rows += rows_of_sides(what, by_side, lambda megabytes: f"{megabytes:.0f} MB")
    return rows


if __name__ == "__main__":
    _, side, S, *sizes = sys.argv
    print(json.dumps(needed_by(side, int(S), Sizes(*map(int, sizes)))))
