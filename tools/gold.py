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


def passes(name, folder=GOLD_FOLDER):
    """What each pass says of each pair: two dicts {checksum: (sure, possible)}."""
    paths = [folder / "passes" / f"{letter}-{name}.tsv" for letter in "AB"]
    first, second = (
        {digest: read_links(links) for digest, links in read_gold(path).items()}
        for path in paths
    )
    if list(first) != list(second):
        raise ValueError(f"{paths[0]} and {paths[1]} aren't about the same pairs")
    return first, second


def merge(first, second):
    """The (sure, possible) links of a pair by those of its two passes."""
    sure = first[0] & second[0]
    return sure, frozenset.union(*first, *second) - sure


def agreement(first, second):
    """How far two passes agree, 0 to 1, over the links of all pairs.

    links: the F1 of the links of any kind; sure: that of the sure links; kinds: the
    share of the links in both that are of one kind. counts: links of each pass.
    """
    one, two = (
        {
            kind: {(digest, *link) for digest in own for link in own[digest][number]}
            for number, kind in enumerate(("sure", "possible"))
        }
        for own in (first, second)
    )
    all_one, all_two = (own["sure"] | own["possible"] for own in (one, two))
    same_kind = sum(len(one[kind] & two[kind]) for kind in one)
    return {
        "links": f1(all_one, all_two),
        "sure": f1(one["sure"], two["sure"]),
        "kinds": same_kind / len(all_one & all_two),
        "counts": [{kind: len(own[kind]) for kind in own} for own in (one, two)],
    }


def f1(a, b):
    """The F-measure of two sets, which is the same from either's side."""
    return 2 * len(a & b) / (len(a) + len(b))


def files(folder=GOLD_FOLDER):
    """{path: bytes} of what is written. Other lines of SHA256SUMS stay as they are."""
    content = {}
    for name in GOLD_SETS:
        first, second = passes(name, folder)
        merged = {key: merge(first[key], second[key]) for key in first}
        lines = (f"{key}\t{write_links(*links)}" for key, links in merged.items())
        text = "\n".join([GOLD_HEADER, *lines, ""])
        content[folder / f"{name}.tsv"] = text.encode()
    list_of_sums = folder.parent / "SHA256SUMS"
    sums = read_sums(list_of_sums)
    sums = {name: sums[name] for name in sums if not name.startswith("gold/")}
    for path in [*content, *sorted((folder / "passes").iterdir())]:
        data = content[path] if path in content else path.read_bytes()
        digest = hashlib.sha256(data).hexdigest()
        sums[path.relative_to(folder.parent).as_posix()] = digest
    lines = [f"{digest}  {name}\n" for name, digest in sums.items()]
    content[list_of_sums] = "".join(lines).encode()
    return content


def main():
    for path, data in files().items():
        path.write_bytes(data)
    for name in GOLD_SETS:
        found = agreement(*passes(name))
        shares = ", ".join(f"{k} {found[k]:.3f}" for k in ("links", "sure", "kinds"))
        print(f"{name}: agreement on {shares}; links of each pass {found['counts']}")


if __name__ == "__main__":
    main()
