"""Measuring: two sides in turn within one run, on a machine that is named."""

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


def enough_calls(function, at_least):
    """How many calls in a row take `at_least` seconds, by one call after a first."""
    function()
    return max(1, round(at_least / max(seconds(function), 1e-7)))


def alternate(first, second, pairs, warm_up=True):
    """Two lists of length `pairs`: what the functions return, called in turn.

    Each returns the seconds of one measurement. They take turns in going first too, so
    a slow spell of the machine falls on both. warm_up: one uncounted call of each.
    """
    if pairs < 1:
        raise ValueError(f"at least one pair is needed, got {pairs}")
    sides, taken = (first, second), ([], [])
    if warm_up:
        first(), second()
    for pair in range(pairs):
        for side in (0, 1) if pair % 2 == 0 else (1, 0):
            taken[side].append(sides[side]())
    return taken


def ratios(dividends, divisors):
    """The quotient of each pair."""
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
