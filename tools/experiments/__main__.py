"""`python -m tools.experiments [name ...]`: measure what data/results doesn't hold yet.

Without a name: all of EXPERIMENTS, about four hours. Those ON_REAL_TEXT need it (see
the README), gold a package besides, and are measured only when they are named.
"""

import sys

from tools.experiments.runs import measure

EXPERIMENTS = (
    "bottleneck",
    "minute",
    "shortcut",
    "directions",
    "own_pieces",
    "long_sentences",
    "choices",
    "score_speed",
    "rnnsearch",
    "tasks",
    "transformer",
    "processes",
)
ON_REAL_TEXT = ("multi30k", "beams", "own_text", "fine_tuning", "gold")

if __name__ == "__main__":
    for name in sys.argv[1:] or EXPERIMENTS:
        if name not in EXPERIMENTS + ON_REAL_TEXT:
            known = ", ".join(EXPERIMENTS + ON_REAL_TEXT)
            sys.exit(f"no experiment {name!r}: choose among {known}")
        measure(name)
