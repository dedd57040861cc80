"""`python -m tools.experiments [name ...]`: measure what data/results doesn't hold yet.

Without a name: all of EXPERIMENTS, about four hours. multi30k needs the real text (see
the README) and is measured only when it is named.
"""

import sys

from tools.experiments.runs import measure

EXPERIMENTS = (
    "bottleneck",
    "minute",
    "long_sentences",
    "choices",
    "score_speed",
    "rnnsearch",
    "tasks",
    "transformer",
    "processes",
)

if __name__ == "__main__":
    for name in sys.argv[1:] or EXPERIMENTS:
        if name not in (*EXPERIMENTS, "multi30k"):
            sys.exit(f"no experiment {name!r}: choose among {EXPERIMENTS}, multi30k")
        measure(name)
