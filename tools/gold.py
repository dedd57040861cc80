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

SURE, POSSIBLE = 0, 1  # places in what `read_links` returns


def passes(name, folder=GOLD_FOLDER):
    """What each of the two passes says: {a pair's checksum: (sure, possible)}."""
    both = [read_gold(folder / "passes" / f"{letter}-{name}.tsv") for letter in "AB"]
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
    one, two = (
        {
            (digest, *link): kind
            for digest in own
            for kind in (SURE, POSSIBLE)
            for link in own[digest][kind]
        }
        for own in (first, second)
    )
    common = [(one[link], two[link]) for link in one.keys() & two.keys()]
    sure = [*one.values(), *two.values()].count(SURE)
    return {
        "links": 2 * len(common) / (len(one) + len(two)),
        "sure": 2 * common.count((SURE, SURE)) / sure,
        "kinds": sum(a == b for a, b in common) / len(common),
    }


def files(folder=GOLD_FOLDER):
    """{path: bytes} of what is written. Other lines of SHA256SUMS stay as they are."""
    content = {path: path.read_bytes() for path in (folder / "passes").iterdir()}
    for name in GOLD_SETS:
        first, second = passes(name, folder)
        merged = {digest: merge(first[digest], second[digest]) for digest in first}
        ends = read_gold(folder / f"{name}.tsv")  # where words end stays as it is
        rows = [
            (digest, *ends[digest][:2], write_links(*links))
            for digest, links in merged.items()
        ]
        text = "\n".join([GOLD_HEADER, *map("\t".join, rows), ""])
        content[folder / f"{name}.tsv"] = text.encode()
    sums = read_sums(folder.parent / "SHA256SUMS")
    for path, data in content.items():
        name = path.relative_to(folder.parent).as_posix()
        sums[name] = hashlib.sha256(data).hexdigest()
    lines = [f"{digest}  {name}\n" for name, digest in sums.items()]
    content[folder.parent / "SHA256SUMS"] = "".join(lines).encode()
    return content


def main():
    for path, data in files().items():
        path.write_bytes(data)
    for name in GOLD_SETS:
        shares = agreement(*passes(name))
        said = ", ".join(f"{what} {share:.3f}" for what, share in shares.items())
        print(f"{name}: agreement on {said}")


if __name__ == "__main__":
    main()
