"""`python -m tools.experiments [name …]`: measure what data/results doesn't hold.

Without a name: all of EXPERIMENTS. Those ON_REAL_TEXT need it (see the README), gold a
package besides, and are measured only when they are named.
"""

import sys

from tools.experiments.runs import measure

EXPERIMENTS = """bottleneck shortcut directions own_pieces long_sentences choices
    parts tasks processes""".split()
ON_REAL_TEXT = """real_text told_apart beams own_text fine_tuning gold""".split()

if __name__ == "__main__":
    names, known = sys.argv[1:] or EXPERIMENTS, EXPERIMENTS + ON_REAL_TEXT
    for name in names:
        if name not in known:
            sys.exit(f"no experiment {name!r}: choose among {', '.join(known)}")
    for name in names:
        measure(name)
