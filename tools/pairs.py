"""`python -m tools.pairs`: writes data/pairs.tsv, a small text as a user's own may be.

600 short sentences of the Village's training split, French and English, as plain text.
"""

from pathlib import Path

from utils.corpora import load_village
from utils.text import detokenize

DATA = Path(__file__).resolve().parents[1] / "data"
COUNT, MOST_WORDS = 600, 9


def names():
    """The names of the Village's people, which plain text writes with a capital."""
    table = (DATA / "village" / "tables" / "names.tsv").read_text(encoding="utf-8")
    return {line.split("\t")[0] for line in table.splitlines()[1:]}


def lines():
    """The lines of the file, French and English with a tab between."""
    known, found = names(), []
    for pair in load_village("fr", "en")["train"]:
        if len(pair.source) <= MOST_WORDS:
            sides = (
                detokenize([t.title() if t in known else t for t in tokens], lang)
                for tokens, lang in ((pair.source, "fr"), (pair.target, "en"))
            )
            found.append("\t".join(sides) + "\n")
    return found[:COUNT]


if __name__ == "__main__":
    (DATA / "pairs.tsv").write_text("".join(lines()), encoding="utf-8")
