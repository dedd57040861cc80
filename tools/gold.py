"""Merge the two passes of each gold set in data/gold: `python -m tools.gold`.

Each pass was made over the whole text without a look at the other. A link is sure where
both say so; every other link of either is possible. Written are the merged files and
the checksums of all of them in data/SHA256SUMS; said is how far the passes agree.
"""

import hashlib

from utils.files import read_sums
from utils.gold import (
    GOLD_FOLDER,
    GOLD_HEADER,
    GOLD_SETS,
    read_gold,
    read_links,
    write_links,
)


def passes(name):
    """What each of the two passes says: {a pair's checksum: (sure, possible)}."""
    both = [read_gold(GOLD_FOLDER / f"passes/{letter}-{name}.tsv") for letter in "AB"]
    if list(both[0]) != list(both[1]):
        raise ValueError(f"the passes of {name} aren't about the same pairs")
    return [{digest: read_links(*own[digest]) for digest in own} for own in both]


def merge(first, second):
    """The (sure, possible) links of a pair by those of its two passes."""
    sure = first[0] & second[0]
    return sure, frozenset.union(*first, *second) - sure


def agreement(first, second):
    """How far two passes agree, 0 to 1, over the links of all pairs.

    links: the F1 of the links of any kind; sure: that of the sure links; kinds: the
    share of the links in both that are of one kind.
    """
    rows = [(*first[digest], *second[digest]) for digest in first]
    common = sum(len((s | p) & (t | q)) for s, p, t, q in rows)
    both_sure = sum(len(s & t) for s, _, t, _ in rows)
    both_possible = sum(len(p & q) for _, p, _, q in rows)
    return {
        "links": 2 * common / sum(len(links) for row in rows for links in row),
        "sure": 2 * both_sure / sum(len(s) + len(t) for s, _, t, _ in rows),
        "kinds": (both_sure + both_possible) / common,
    }


def files():
    """{path: bytes} of what is written. Other lines of SHA256SUMS stay as they are."""
    content = {path: path.read_bytes() for path in (GOLD_FOLDER / "passes").iterdir()}
    for name in GOLD_SETS:
        first, second = passes(name)
        path, lines = GOLD_FOLDER / f"{name}.tsv", [GOLD_HEADER]
        ends = read_gold(path)  # where words end stays as it is
        for digest in first:
            links = write_links(*merge(first[digest], second[digest]))
            lines.append("\t".join((digest, *ends[digest][:2], links)))
        content[path] = "\n".join([*lines, ""]).encode()
    path = GOLD_FOLDER.parent / "SHA256SUMS"
    sums = read_sums(path) | {
        own.relative_to(path.parent).as_posix(): hashlib.sha256(data).hexdigest()
        for own, data in content.items()
    }
    lines = [f"{digest}  {name}\n" for name, digest in sums.items()]
    return {**content, path: "".join(lines).encode()}


def main():
    for path, data in files().items():
        path.write_bytes(data)
    for name in GOLD_SETS:
        shares = agreement(*passes(name))
        said = ", ".join(f"{what} {share:.3f}" for what, share in shares.items())
        print(f"{name}: agreement on {said}")


if __name__ == "__main__":
    main()
