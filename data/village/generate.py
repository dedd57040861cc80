"""Write the Village corpus: the .tsv.gz files, SHA256SUMS, the datasheet's tables.

python data/village/generate.py                        write everything
python data/village/generate.py --check                compare with the files
python data/village/generate.py --sample 60 --seed 7   print sentences with their links
python data/village/generate.py --explain "i am tired ."   by which rows it came about
"""

import argparse
import gc
import gzip
import hashlib
import io
import os
import random
import sys
from collections import Counter
from itertools import islice, pairwise
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import chinese  # noqa: E402
import english  # noqa: E402
import french  # noqa: E402
import sheet  # noqa: E402
from core import Reject, aligned, links, table  # noqa: E402
from draw import HELD_OUT  # noqa: E402
from near import Neighbours  # noqa: E402
from phenomena import tags  # noqa: E402
from scenes import Scenes  # noqa: E402

SEED = 20150519
HEADER = ("en", "fr", "zh", "en-fr", "en-zh", "fr-zh", "tags")
SPLITS = ("train", "valid", "test", "long")
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
EXAMPLES = (
    ("i/1 love/2 you/3 ./4", "je/1 t'/3 aime/2 ./4", "我/1 爱/2 你/3 。/4"),
    (
        "i/1 love/2 to/3? eat/3 apples/4 ./5",
        "j'/1 aime/2 manger/3 des/4? pommes/4 ./5",
        "我/1 爱/2 吃/3 苹果/4 。/5",
    ),
)


class Writer:
    """Draws sentences that are new in each of the three languages."""

    def __init__(self, seed):
        self.draw = Scenes(random.Random(seed))
        self.draw.start(0)
        self.seen = (set(), set(), set())

    def row(self, sides, found):
        """The seven columns, or None if one of the sentences was written before."""
        en, fr, zh = sides
        texts = [" ".join(word.text for word in side) for side in sides]
        if any(text in seen for text, seen in zip(texts, self.seen, strict=True)):
            return None
        for text, seen in zip(texts, self.seen, strict=True):
            seen.add(text)
        joined = links(en, fr), links(en, zh), links(fr, zh)
        return (*texts, *joined, ",".join(sorted(found)))

    def draft(self, clauses, rich):
        """The words in three languages, the tree; None where it can't be said."""
        try:
            node, end = self.draw.sentence(clauses, rich)
            sides = [part.sentence(node, end) for part in (english, french, chinese)]
        except Reject:
            return None, None
        if any(a.text == b.text for side in sides for a, b in pairwise(side)):
            return None, None  # a word twice in a row reads badly
        return sides, node

    def collect(self, quota, buckets, longest, shortest, extra=lambda draw: ()):
        """Rows that fill `quota` sentences a bucket, by English length."""
        rng, rows, left = self.draw.rng, [], list(quota)
        while any(left):
            k = max(range(len(left)), key=lambda b: left[b] / max(1, quota[b]))
            (low, high), _, hows = buckets[k]
            clauses, least, most = hows[int(rng.random() * len(hows))]
            sides, node = self.draft(clauses, least + (most - least) * rng.random())
            if sides is None:
                continue
            lengths = [len(side) for side in sides]
            fits = [
                b for b, ((a, z), _, _) in enumerate(buckets) if a <= lengths[0] <= z
            ]
            if (
                not fits
                or not left[fits[0]]
                or min(lengths) < shortest
                or max(lengths) > longest
            ):
                continue
            more = extra(self.draw)
            if more is None:
                continue
            row = self.row(sides, tags(node, *sides) | self.draw.tags | set(more))
            if row is not None:
                left[fits[0]] -= 1
                rows.append(row)
        return rows


def shares(buckets, total):
    return [round(share * total) for _, share, _ in buckets]


def examples(writer):
    """The two sentences the course's sources explain attention with."""
    return [
        writer.row([aligned(text, 0) for text in three], {"source-example"})
        for three in EXAMPLES
    ]


def held_out(writer):
    """HELD_PER_PAIR sentences with each pair that training never sees."""
    draw, rows = writer.draw, []
    left, tries = dict.fromkeys(sorted(HELD_OUT), HELD_PER_PAIR), 0
    draw.force_held = True
    while any(left.values()):
        tries += 1
        _, _, ((clauses, least, most), *_) = BUCKETS[tries % len(BUCKETS)]
        sides, node = writer.draft(clauses, least + (most - least) * draw.rng.random())
        hits = draw.pairs & HELD_OUT
        if sides is None or not hits or not all(left[pair] for pair in hits):
            continue
        if not 3 <= min(map(len, sides)) <= max(map(len, sides)) <= 30:
            continue
        row = writer.row(sides, tags(node, *sides) | draw.tags | {"held-out-pair"})
        if row is not None:
            left.update({pair: left[pair] - 1 for pair in hits})
            rows.append(row)
    draw.force_held = False
    return rows


def new_names(writer):
    writer.draw.split = "test"
    named = {row.key for row in table("names").values() if row.split}

    def wanted(draw):
        return {"new-name"} if any(row.key in named for row in draw.rows) else None

    rows = writer.collect(shares(BUCKETS, NEW_NAMES), BUCKETS, 30, 3, wanted)
    writer.draw.split = ""
    return rows


def without_rare(rows):
    """The rows whose forms are all frequent enough to be learnt."""
    while True:
        counts = [Counter(w for row in rows for w in row[k].split()) for k in range(3)]
        kept = [
            row
            for row in rows
            if all(counts[k][w] >= LEAST for k in range(3) for w in row[k].split())
        ]
        if len(kept) == len(rows):
            return kept
        rows = kept


def known(rows, train):
    """The rows without a word that train lacks (in any language)."""
    words = [{w for row in train for w in row[k].split()} for k in range(3)]
    return [r for r in rows if all(set(r[k].split()) <= words[k] for k in range(3))]


def build(seed=SEED) -> dict[str, list[tuple[str, ...]]]:
    """All splits: name -> rows of seven strings."""
    gc.disable()
    writer = Writer(seed)
    special = examples(writer)
    total = sum(SIZES[name] for name in ("train", "valid", "test"))
    pool = writer.collect(shares(BUCKETS, int(total * SPARE)), BUCKETS, 30, 3)
    pool = without_rare(pool)
    special += known(held_out(writer), pool)
    names = {
        w for row in table("names").values() if row.split for w in (row.key, row.zh)
    }
    fresh = new_names(writer)
    special += [
        r for r, bare in ((r, strip(r, names)) for r in fresh) if known([bare], pool)
    ]
    test, pool = deal(pool, SIZES["test"] - len(special))
    valid, pool = deal(pool, SIZES["valid"])
    test += special
    shuffle(pool, writer.draw.rng)
    test, pool = enough(test, pool)
    near = Neighbours([row[0].split() for row in test if len(row[0].split()) > 5])
    train = [row for row in pool if not near.within(row[0].split(), 1)][
        : SIZES["train"]
    ]
    if len(train) < SIZES["train"]:
        raise ValueError(f"only {len(train)} sentences for train: raise SPARE")
    test = sheet.mark_far(test, train)
    for part in (train, valid, test):
        shuffle(part, writer.draw.rng)
    long = writer.collect(shares(LONG, SIZES["long"] * 1.2), LONG, 60, 31)
    long = known(long, train)[: SIZES["long"]]
    long.sort(key=lambda r: r[0].count(" "))
    splits = {"train": train, "valid": valid, "test": test}
    for name, rows in splits.items():  # only "long" is about distance
        splits[name] = [
            (
                *r[:6],
                r[6]
                .replace("long-distance,", "")
                .replace(",long-distance", "")
                .replace("long-distance", ""),
            )
            for r in rows
        ]
    return {**splits, "long": long}


def bucket(row):
    n = row[0].count(" ") + 1
    return next(k for k, ((low, high), _, _) in enumerate(BUCKETS) if low <= n <= high)


def enough(test, pool):
    """Test with ENOUGH sentences of each phenomenon: taken from the pool, for others."""

    def counted(rows):
        return Counter(tag for row in rows for tag in row[6].split(",") if tag)

    for tag in sorted(counted(pool)):
        here = counted(test)
        wanted = (row for row in pool if tag in row[6].split(","))
        for row in list(islice(wanted, max(0, ENOUGH - here[tag]))):
            spare = next(
                r
                for r in test
                if bucket(r) == bucket(row)
                and not SPECIAL & set(r[6].split(","))
                and all(here[t] > 2 * ENOUGH for t in r[6].split(","))
            )
            test[test.index(spare)], pool[pool.index(row)] = row, spare
    return test, pool


def strip(row, names):
    """The row without the new names."""
    return [" ".join(w for w in text.split() if w not in names) for text in row[:3]]


def deal(rows, number):
    """`number` rows spread evenly over the lengths, and the others."""
    rows = sorted(rows, key=lambda r: r[0].count(" "))
    taken = {int((k + 0.5) * len(rows) / number) for k in range(number)}
    return (
        [r for k, r in enumerate(rows) if k in taken],
        [r for k, r in enumerate(rows) if k not in taken],
    )


def shuffle(items, rng):
    """Fisher–Yates with rng.random() only: the same on every Python version."""
    for i in range(len(items) - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        items[i], items[j] = items[j], items[i]


# Files


def pack(rows) -> bytes:
    """The gzip file of one split: same bytes on every run."""
    text = "\n".join("\t".join(row) for row in (HEADER, *rows)) + "\n"
    raw = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as f:
        f.write(text.encode("utf-8"))
    return raw.getvalue()


def sums(files, path):
    """SHA256SUMS with the lines of these files; the others stay."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    lines = [line for line in lines if " village/" not in line]
    mine = [
        f"{hashlib.sha256(data).hexdigest()}  village/{name}.tsv.gz"
        for name, data in files.items()
    ]
    return "\n".join([*mine, *lines]) + "\n"


def read(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as f:
        next(f)
        return [tuple(line.rstrip("\n").split("\t")) for line in f]


def show(row) -> str:
    """A row with its links spelled out."""
    sides = [row[k].split() for k in range(3)]
    lines = list(row[:3])
    for name, a, b, text in (("en-fr", 0, 1, row[3]), ("en-zh", 0, 2, row[4])):
        spelled = []
        for link in text.split():
            mark = "-" if "-" in link else "?"
            i, j = map(int, link.split(mark))
            spelled.append(f"{sides[a][i]}{mark}{sides[b][j]}")
        lines.append(f"  {name}  " + "  ".join(spelled))
    return "\n".join([*lines, "  tags   " + row[6]])


def sample(number, seed):
    rng = random.Random(seed)
    rows = [row for name in SPLITS for row in read(HERE / f"{name}.tsv.gz")]
    long = [r for r in rows if r[0].count(" ") >= 30]
    for k in range(number):
        pool = long if k % 6 == 5 else rows
        print(show(pool[int(rng.random() * len(pool))]), end="\n\n")


def explain(text):
    """Draw the corpus again until the sentence comes, and say which rows it used."""
    writer = Writer(SEED)
    keep = writer.row

    def watch(sides, found):
        row = keep(sides, found)
        if row is not None and text in row[:3]:
            print(show(row))
            for used in sorted(writer.draw.rows, key=lambda r: r.line):
                print(f"  {used.line:20} {used.key}")
            raise SystemExit
        return row

    writer.row = watch
    examples(writer)
    total = sum(SIZES[name] for name in ("train", "valid", "test"))
    writer.collect(shares(BUCKETS, int(total * SPARE)), BUCKETS, 30, 3)
    sys.exit(
        f"no sentence of train, valid or test reads {text!r} (words apart by spaces)"
    )


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--check", action="store_true", help="regenerate and compare")
    p.add_argument("--sample", type=int, metavar="N", help="print N sentences")
    p.add_argument(
        "--explain", metavar="SENTENCE", help="say by which rows it came about"
    )
    p.add_argument("--seed", type=int, default=0, help="which sample")
    p.add_argument("--out", type=Path, default=HERE, help="where the .tsv.gz files go")
    args = p.parse_args()
    if args.sample:
        return sample(args.sample, args.seed)
    if args.explain:
        return explain(args.explain)
    splits = build()
    files = {name: pack(splits[name]) for name in SPLITS}
    wanted = {HERE / f"{name}.tsv.gz": data for name, data in files.items()}
    data = HERE.parent
    wanted[data / "SHA256SUMS"] = sums(files, data / "SHA256SUMS").encode()
    readme = (data / "README.md").read_text(encoding="utf-8")
    wanted[data / "README.md"] = sheet.fill(readme, sheet.tables(splits)).encode()
    if args.check:
        bad = [
            p.name
            for p, blob in wanted.items()
            if not p.exists() or p.read_bytes() != blob
        ]
        if bad:
            sys.exit("differs from what the generator writes: " + ", ".join(bad))
        return print("the files are what the generator writes")
    for path, blob in wanted.items():
        if args.out != HERE:
            args.out.mkdir(parents=True, exist_ok=True)
            path = args.out / path.name
        part = path.with_name(path.name + ".part")
        part.write_bytes(blob)
        os.replace(part, path)


if __name__ == "__main__":
    main()
