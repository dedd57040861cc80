"""Memory of a training step, and seconds of imports: each in a process of its own.

As a command, `python benchmarks/memory.py ours 15 4000 128 256 64` takes two steps of
one side (ours, d2l) with S = T = 15 and V, E, H, B, and prints what it needed as JSON.
"""

import json
import statistics
import subprocess
import sys
import tracemalloc
from pathlib import Path

from measure import D2L, row
from sides import (
    Sizes,
    our_model,
    our_step,
    random_batch,
    reference,
    reference_optimizer,
    reference_step,
)
from timing import alternate, ratios, seconds

from utils.d2l_bridge import load_d2l

ROOT = Path(__file__).resolve().parents[2]
IMPORTS = {
    "to train and translate": "text data attention seq2seq training decoding".split(),
    "all of utils": [
        path.stem
        for path in sorted((ROOT / "utils").glob("*.py"))
        if path.stem != "__init__"
    ],
}


def peak_megabytes():
    """The largest resident memory of this process so far, in MB.

    Linux tells it for the program alone (VmHWM). Elsewhere it is getrusage's ru_maxrss,
    which can include what the starting process held. None where neither is there.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024) / 1e6


def steps_of(side, S, sizes):
    """A dict of MB: before the steps, at the peak, and the peak of Python's objects.

    Both sides have imported the same, and torch has loaded in a tiny step what it loads
    late. So what lies beyond is the model, its optimizer, and the steps.
    """
    load_d2l()
    step_of(side, 3, Sizes(V=20, E=4, H=4, B=2))()
    before = peak_megabytes()
    step = step_of(side, S, sizes)
    step(), step()
    peak = peak_megabytes()
    tracemalloc.start()
    step()
    objects = tracemalloc.get_traced_memory()[1] / 1e6
    return {"before": before, "peak": peak, "python": objects}


def step_of(side, S, sizes):
    """A function without arguments: one training step of the side (ours, d2l)."""
    model, batch = our_model(sizes), random_batch(sizes, S)
    if side == "ours":
        return our_step(model, batch)
    net = reference(model)
    optimizer = reference_optimizer(net)
    return lambda: reference_step(net, batch, optimizer)


def in_a_process(side, S, sizes):
    """`steps_of` in a new process."""
    command = [sys.executable, __file__, side, *map(str, [S, *sizes])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def step_rows(settings):
    """Rows: how many times our memory d2l's side needs for the same steps."""
    rows = []
    for S in settings.lengths:
        taken = alternate(
            lambda: in_a_process("ours", S, settings.sizes),  # noqa: B023
            lambda: in_a_process("d2l", S, settings.sizes),  # noqa: B023
            settings.pairs,
            warm_up=False,
        )
        if any(run["peak"] is None for side in taken for run in side):
            rows.append(row(_what(S), D2L, [], note="not measured on this system"))
            continue
        beyond = [[run["peak"] - run["before"] for run in side] for side in taken]
        ours, theirs = (statistics.median(side) for side in beyond)
        whole = statistics.median(run["peak"] for run in taken[0])
        python = [statistics.median(run["python"] for run in side) for side in taken]
        note = (
            f"{ours:.0f} MB against {theirs:.0f} MB beyond torch; the whole "
            f"process of ours {whole:.0f} MB; objects of Python {python[0]:.2f} MB "
            f"against {python[1]:.2f} MB"
        )
        rows.append(row(_what(S), D2L, ratios(beyond[1], beyond[0]), note=note))
    return rows


def _what(S):
    return f"memory of training steps, S = T = {S}, no padding"


def import_rows(settings):
    """Rows: the seconds that importing utils takes beyond importing torch."""

    def importing(modules):
        program = "import " + ", ".join(modules)
        command = [sys.executable, "-c", program]
        return lambda: seconds(lambda: subprocess.run(command, check=True, cwd=ROOT))

    rows = []
    for name, stems in IMPORTS.items():
        first, second = alternate(
            importing([f"utils.{stem}" for stem in stems]),
            importing(["torch"]),
            settings.pairs,
        )
        extra = [ours - theirs for ours, theirs in zip(first, second, strict=True)]
        medians = statistics.median(first), statistics.median(second)
        note = "{:.2f} s against {:.2f} s".format(*medians)
        rows.append(
            row(
                f"importing utils, {name}, beyond torch",
                "importing torch",
                extra,
                target=0.2,
                at_most=True,
                unit="s",
                note=note,
            )
        )
    return rows


if __name__ == "__main__":
    _, side, S, *sizes = sys.argv
    print(json.dumps(steps_of(side, int(S), Sizes(*map(int, sizes)))))
