"""`python -m tools.experiments [name [text]]`: measure what data/results doesn't hold.

Without a name: all of EXPERIMENTS. Those ON_REAL_TEXT need it (see the README), gold a
package besides, and are measured only when they are named. text: only those runs whose
arguments have it in them. `hours`: the processor hours of what is stored.
"""

import json
import math
import sys

from tools.experiments.runs import RESULTS, measure

EXPERIMENTS = (
    "bottleneck",
    "shortcut",
    "directions",
    "own_pieces",
    "long_sentences",
    "choices",
    "rnnsearch",
    "tasks",
    "transformer",
    "processes",
)
ON_REAL_TEXT = ("multi30k", "beams", "own_text", "fine_tuning", "gold")


def hours(name):
    """Processor hours of an experiment's stored runs, and how many don't say theirs.

    Runs without `seconds` say what their updates alone took.
    """
    file = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    spent = [
        e.get("seconds", e.get("cpu_seconds", 60 * e.get("cpu_minutes", math.nan)))
        for e in file["runs"]
    ]
    known = [seconds for seconds in spent if not math.isnan(seconds)]
    return sum(known) / 3600, len(spent) - len(known)


def main(name=None, text=""):
    every = EXPERIMENTS + ON_REAL_TEXT
    if name == "hours":
        for name in every:
            known, unknown = hours(name)
            more = f", and {unknown} runs that don't say" if unknown else ""
            print(f"{name:15}{known:6.2f}{more}")
    elif name is None:
        for name in EXPERIMENTS:
            measure(name)
    elif name in every:
        measure(name, only=text)
    else:
        sys.exit(f"no experiment {name!r}: choose among {', '.join(every)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
