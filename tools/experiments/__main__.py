"""`python -m tools.experiments [name …]`: measure what data/results doesn't hold.

Without a name: all of EXPERIMENTS. Those ON_REAL_TEXT need it (see the README), gold a
package besides, and are measured only when they are named. `hours`: the processor hours
of what is stored.
"""

import json
import sys

from tools.experiments.runs import RESULTS, measure

EXPERIMENTS = """bottleneck shortcut directions own_pieces long_sentences choices
    parts tasks copying beside processes""".split()
ON_REAL_TEXT = """real_text told_apart best_translator beams own_text fine_tuning
    gold""".split()


def hours(name):
    """Processor hours of an experiment's stored runs; of some, of the updates alone."""
    file = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    spent = [
        e.get("seconds", e.get("cpu_seconds", 60 * e.get("cpu_minutes", 0)))
        for e in file["runs"]
    ]
    return sum(spent) / 3600


def main(*names):
    every = EXPERIMENTS + ON_REAL_TEXT
    if names == ("hours",):
        for name in every:
            print(f"{name:15}{hours(name):6.2f}")
        return
    for name in names:
        if name not in every:
            sys.exit(f"no experiment {name!r}: choose among {', '.join(every)}")
    for name in names or EXPERIMENTS:
        measure(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
