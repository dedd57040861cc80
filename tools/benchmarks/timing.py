"""Measuring: sides in turn within one run, on a machine that is named."""

import importlib.metadata
import os
import platform
import time
from pathlib import Path

import torch


def seconds(function, repeats=1):
    """Seconds of one call, as the mean of `repeats` calls in a row."""
    start = time.perf_counter()
    for _ in range(repeats):
        function()
    return (time.perf_counter() - start) / repeats


def timed(function, repeats=1):
    """A function that returns the seconds of one call.

    One more call goes before: the caches hold what another side left there.
    """

    def run():
        function()
        return seconds(function, repeats)

    return run


def alternate(*sides, rounds, warm_up=True):
    """A list of length `rounds` for each side: what it returns, called in turn.

    Each returns the seconds of one measurement. They take turns in going first too, so
    a slow spell of the machine falls on all. warm_up: one uncounted call of each.
    """
    if rounds < 1:
        raise ValueError(f"at least one round is needed, got {rounds}")
    taken = [[] for _ in sides]
    if warm_up:
        for side in sides:
            side()
    for number in range(rounds):
        for place in range(len(sides)):
            side = (place + number) % len(sides)
            taken[side].append(sides[side]())
    return taken


def ratios(dividends, divisors):
    """The quotient of each round."""
    return [a / b for a, b in zip(dividends, divisors, strict=True)]


def machine():
    """The processor and the versions, as a dict of plain values."""
    return {
        "processor": processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "d2l": importlib.metadata.version("d2l"),
    }


def processor():
    """The processor's model, where the system tells."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"
