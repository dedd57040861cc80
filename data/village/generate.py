"""Write the Village corpus: the .tsv.gz files, SHA256SUMS, the datasheet's tables.

python data/village/generate.py           write everything
python data/village/generate.py --check   compare with the files
"""

import argparse
import gc
import gzip
import hashlib
import io
import random
import sys
from collections import Counter
from itertools import combinations, cycle, islice, pairwise
from pathlib import Path

import chinese
import english
import french
from core import Reject, aligned, links, table
from datasheet import (
    counted,
    distances,
    fill,
    new_names,
    size,
    tags_of,
    with_tags,
    words,
)
from draw import HELD_OUT
from phenomena import tags
from scenes import Scenes

HERE = Path(__file__).resolve().parent
SEED = 20150519
HEADER = ("en", "fr", "zh", "en-fr", "en-zh", "fr-zh", "tags")
SIZES = {"train": 24_000, "valid": 1_000, "test": 1_000, "long": 540}
# English tokens -> share of the sentences, (clauses, least and most richness) to try
BUCKETS = (
    ((3, 6), 0.125, ((1, 0.0, 0.3),)),
    ((7, 10), 0.17, ((1, 0.2, 1.0), (2, 0.0, 0.4))),
    ((11, 15), 0.20, ((1, 0.6, 1.0), (2, 0.0, 0.8), (2, 0.0, 0.8))),
    ((16, 20), 0.20, ((2, 0.5, 1.0), (3, 0.1, 0.7))),
    ((21, 25), 0.185, ((3, 0.5, 1.0), (3, 0.5, 1.0), (4, 0.2, 0.8))),
    ((26, 30), 0.12, ((3, 0.8, 1.0), (3, 0.8, 1.0), (4, 0.5, 1.0))),
)
LONG = (
    ((31, 36), 0.25, ((5, 0.2, 1.0),)),
    ((37, 42), 0.37, ((5, 0.5, 1.0), (6, 0.3, 1.0))),
    ((43, 48), 0.26, ((6, 0.5, 1.0),)),
    ((49, 60), 0.12, ((7, 0.4, 1.0),)),
)
LEAST = 20  # a form of a word that is rarer in the pool is left out, with its sentence
SPARE = 1.25  # drafts for one sentence that is kept
HELD_PER_PAIR = 9
NEW_NAMES = 40
SPECIAL = {"held-out-pair", "new-name", "source-example"}  # for the test alone
ENOUGH = 22  # sentences of each phenomenon in test, at least


class Writer:
    """Draws sentences that are new in each of the three languages."""

    def __init__(self, seed=SEED):
        self.draw = Scenes(random.Random(seed))
        self.draw.start(0)
        self.seen = set()

    def row(self, sides, found):
        """The seven columns; None if a sentence was written before, or is left out."""
        texts = [" ".join(word.text for word in side) for side in sides]
        if self.seen.intersection(texts) or texts[0] in table("left_out"):
            return None
        self.seen.update(texts)
        joined = [links(one, other) for one, other in combinations(sides, 2)]
        return (*texts, *joined, ",".join(sorted(found)))

    def write(self, how, accept):
        """The row of a new draft, or None.

        accept takes the three sentences: tags to add, or None where they don't fit.
        """
        clauses, least, most = how
        rich = least + (most - least) * self.draw.rng.random()
        try:
            node, end = self.draw.sentence(clauses, rich)
            sides = [part.sentence(node, end) for part in (english, french, chinese)]
        except Reject:
            return None
        # a word twice in a row reads badly
        twice = any(a.text == b.text for side in sides for a, b in pairwise(side))
        if twice or (more := accept(sides)) is None:
            return None
        return self.row(sides, tags(node, *sides) | self.draw.tags.union(more))

    def collect(self, number, buckets, extra=lambda sides: ()):
        """About so many rows, spread over the buckets of English lengths by shares."""
        rng, rows = self.draw.rng, []
        quota = [round(share * number) for _, share, _ in buckets]
        left, longest = list(quota), buckets[-1][0][1]

        def accept(sides):
            k = bucket(len(sides[0]), buckets)
            wanted = k is not None and left[k] and fit(sides, buckets[0][0][0], longest)
            return extra(sides) if wanted else None

        while any(left):
            k = max(range(len(left)), key=lambda b: left[b] / max(1, quota[b]))
            _, _, hows = buckets[k]
            if row := self.write(hows[int(rng.random() * len(hows))], accept):
                left[bucket(size(row), buckets)] -= 1
                rows.append(row)
        return rows


def fit(sides, shortest=3, longest=30):
    return shortest <= min(map(len, sides)) and max(map(len, sides)) <= longest


def bucket(length, buckets=BUCKETS):
    """Which of the buckets is for sentences of this length; None if none is."""
    ranges = [range(low, high + 1) for (low, high), _, _ in buckets]
    return next((k for k, lengths in enumerate(ranges) if length in lengths), None)


def held_out(writer):
    """HELD_PER_PAIR sentences with each pair that training never sees."""
    draw, rows = writer.draw, []
    hows = cycle(how for _, _, (how, *_) in BUCKETS[1:] + BUCKETS[:1])
    left = dict.fromkeys(HELD_OUT, HELD_PER_PAIR)

    def accept(sides):
        hits = draw.pairs & HELD_OUT
        wanted = hits and all(left[pair] for pair in hits) and fit(sides)
        return {"held-out-pair"} if wanted else None

    with draw.setting(force_held=True):
        while any(left.values()):
            if row := writer.write(next(hows), accept):
                left.update({pair: left[pair] - 1 for pair in draw.pairs & HELD_OUT})
                rows.append(row)
    return rows


def with_new_names(writer):
    named = new_names()

    def wanted(_):
        return {"new-name"} if named & writer.draw.used else None

    with writer.draw.setting(split="test"):
        return writer.collect(NEW_NAMES, BUCKETS, wanted)


def build(writer) -> dict[str, list[tuple[str, ...]]]:
    """All splits: name -> rows of seven strings."""
    gc.disable()
    found = [(row.en, row.fr, row.zh) for row in table("examples").values()]
    sides = [[aligned(text, 0) for text in three] for three in found]
    special = [writer.row(three, {"source-example"}) for three in sides]
    total = SPARE * sum(SIZES[name] for name in ("train", "valid", "test"))
    pool = without_rare(writer.collect(int(total), BUCKETS))
    special += known(held_out(writer), pool)
    special += known(with_new_names(writer), pool, new_names())
    test, pool = deal(pool, SIZES["test"] - len(special))
    valid, pool = deal(pool, SIZES["valid"])
    test += special
    shuffle(pool, writer.draw.rng)
    enough(test, pool)
    train = apart(pool, test)[: SIZES["train"]]
    if len(train) < SIZES["train"]:
        raise ValueError(f"only {len(train)} sentences for train: raise SPARE")
    for k, distance in enumerate(distances(test, train, 3)):
        far = {"far-from-train"} if distance > 3 else set()
        test[k] = with_tags(test[k], tags_of(test[k]) | far)
    for part in (train, valid, test):
        shuffle(part, writer.draw.rng)
    long = writer.collect(SIZES["long"] * 1.2, LONG)
    long = sorted(known(long, train)[: SIZES["long"]], key=size)
    for part in (train, valid, test):  # only the split "long" is about distance
        part[:] = [with_tags(row, tags_of(row) - {"long-distance"}) for row in part]
    return {"train": train, "valid": valid, "test": test, "long": long}


def without_rare(rows):
    """The rows whose forms are all frequent enough to be learnt."""
    while True:
        counts = [Counter(words(rows, k)) for k in range(3)]
        often = [{word for word in count if count[word] >= LEAST} for count in counts]
        kept = said_with(rows, often)
        if len(kept) == len(rows):
            return kept
        rows = kept  # another form may have become rare


def known(rows, train, names=frozenset()):
    """The rows without a word that train lacks (in any language), but for the names."""
    return said_with(rows, [names.union(words(train, k)) for k in range(3)])


def said_with(rows, known):
    """The rows that need no words but these, a set a language."""
    return [r for r in rows if all(known[k].issuperset(r[k].split()) for k in range(3))]


def deal(rows, number):
    """`number` rows spread evenly over the lengths, and the others."""
    rows = sorted(rows, key=size)
    taken = {int((k + 0.5) * len(rows) / number) for k in range(number)}
    return (
        [row for k, row in enumerate(rows) if k in taken],
        [row for k, row in enumerate(rows) if k not in taken],
    )


def enough(test, pool):
    """Take sentences of the phenomena rarer than ENOUGH in test from the pool.

    Each changes places with one as long, whose own phenomena are frequent.
    """
    for tag in sorted(counted(pool)):
        here = counted(test)
        often = {t for t in here if here[t] > 2 * ENOUGH} - SPECIAL
        wanted = (row for row in pool if tag in tags_of(row))
        for row in list(islice(wanted, max(0, ENOUGH - here[tag]))):
            same = (r for r in test if bucket(size(r)) == bucket(size(row)))
            spare = next(r for r in same if often.issuperset(r[6].split(",")))
            test[test.index(spare)], pool[pool.index(row)] = row, spare


def apart(rows, test):
    """The rows not within a word of a test sentence that has more than five."""
    near = distances(rows, [row for row in test if size(row) > 5], 1)
    return [row for row, distance in zip(rows, near, strict=True) if distance > 1]


def shuffle(items, rng):
    """Fisher–Yates with rng.random() only: the same on every Python version."""
    for i in range(len(items) - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        items[i], items[j] = items[j], items[i]


def pack(rows) -> bytes:
    """The gzip file of one split: same bytes on every run."""
    text = "\n".join("\t".join(row) for row in (HEADER, *rows)) + "\n"
    raw = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as f:
        f.write(text.encode("utf-8"))
    return raw.getvalue()


def regenerate() -> dict[Path, bytes]:
    """What the files should hold."""
    splits = build(Writer())
    found = {HERE / f"{name}.tsv.gz": pack(rows) for name, rows in splits.items()}
    checksums, sheet = HERE.parent / "SHA256SUMS", HERE.parent / "README.md"
    digests = [(hashlib.sha256(data).hexdigest(), p.name) for p, data in found.items()]
    lines = [f"{digest}  village/{name}" for digest, name in digests]
    old = checksums.read_text(encoding="utf-8").splitlines()
    lines += [line for line in old if " village/" not in line]
    text = fill(sheet.read_text(encoding="utf-8"), splits)
    return found | {checksums: "\n".join([*lines, ""]).encode(), sheet: text.encode()}


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--check", action="store_true", help="regenerate and compare")
    args = p.parse_args()
    files = regenerate()
    if not args.check:
        for path, data in files.items():
            path.write_bytes(data)
    elif bad := [p.name for p, data in files.items() if p.read_bytes() != data]:
        sys.exit("differs from what the generator writes: " + ", ".join(bad))


if __name__ == "__main__":
    main()
