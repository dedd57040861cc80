"""Write the Village corpus: the .tsv.gz files, SHA256SUMS, the datasheet's tables.

python data/village/generate.py                      write everything
python data/village/generate.py --check              compare with the files
python data/village/generate.py --sample 60 --seed 7 print sentences with their links
"""

from __future__ import annotations

import argparse
import gc
import gzip
import hashlib
import io
import os
import random
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from core import HELD, Gen, Reject, fields, finish, pat  # noqa: E402
from grammar import draft  # noqa: E402
from lexicon import TOO_RARE  # noqa: E402

SEED = 20150519
HEADER = ("en", "fr", "zh", "en-fr", "en-zh", "fr-zh", "tags")
SPLITS = ("train", "valid", "test", "long")
SIZES = {"train": 24_000, "valid": 1_000, "test": 1_000, "long": 540}
BUCKETS = ((3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30))
SHARES = (0.125, 0.17, 0.20, 0.20, 0.185, 0.12)
HELD_PER_PAIR = 6
LONG_SHARES = (0.25, 0.37, 0.26, 0.12)
LONG_BUCKETS = ((31, 36), (37, 42), (43, 48), (49, 60))


def bucket_of(n: int, buckets=BUCKETS) -> int | None:
    for k, (low, high) in enumerate(buckets):
        if low <= n <= high:
            return k
    return None


# bucket -> ((sentence class, least and most richness), …)
HOW = (
    ((0, 0.0, 0.15), (0, 0.0, 0.3)),
    ((0, 0.1, 0.6), (1, 0.0, 0.4)),
    ((1, 0.3, 0.9), (2, 0.0, 0.6), (2, 0.1, 0.7)),
    ((2, 0.4, 1.0), (3, 0.0, 0.6)),
    ((3, 0.3, 1.0), (4, 0.0, 0.6), (4, 0.1, 0.8)),
    ((4, 0.4, 1.0), (4, 0.2, 0.8)),
)


LONG_HOW = (((5, 0.5, 1.0),), ((5, 0.7, 1.2),), ((5, 1.0, 1.6),), ((5, 1.2, 1.6),))


class Writer:
    """Draws sentences that are new in each of the three languages."""

    def __init__(self, seed: int):
        self.g = Gen(random.Random(seed))
        self.seen: tuple[set, set, set] = (set(), set(), set())

    def row(self, words, extra=()):
        """The seven columns, or None if one of the sentences was written before."""
        row = (*fields(words), ",".join(sorted(self.g.tags | set(extra))))
        if any(text in seen for text, seen in zip(row, self.seen, strict=False)):
            return None
        for text, seen in zip(row, self.seen, strict=False):
            seen.add(text)
        return row

    def try_draft(self, level, rich, held=False, wanted=None):
        """The words of a sentence; None when the draft fails or its English
        length isn't `wanted`."""
        self.g.allow_held = held
        try:
            phrase, q = draft(self.g, level, rich)
        except Reject:
            return None
        if wanted is not None and not wanted(len(phrase.en) + 1):
            return None
        if any(w in TOO_RARE for w, _ in phrase.fr):
            return None
        return finish(self.g, phrase, "?" if q else ".", q)

    def collect(self, quota, buckets, how, longest, shortest):
        """Rows that fill `quota` sentences a bucket (by English length)."""
        g, rows, left = self.g, [], list(quota)
        per_length = {
            n: q / (high - low + 1) * 1.35 + 2
            for q, (low, high) in zip(quota, buckets, strict=True)
            for n in range(low, high + 1)
        }
        count: Counter = Counter()
        tries = 0

        def wanted(n):
            b = bucket_of(n, buckets)
            return b is not None and left[b] and count[n] < per_length[n]

        while any(left):
            tries += 1
            if (
                tries % 400 == 0
            ):  # short lengths may be exhausted: allow more of the others
                for n in per_length:
                    per_length[n] *= 1.004
            k = max(range(len(left)), key=lambda b: left[b] / max(1, quota[b]))
            level, low, high = g.one(how[k])
            rich = low + (high - low) * g.rng.random()
            words = self.try_draft(level, rich, wanted=wanted)
            if words is None:
                continue
            lengths = [len(x) for x in words]
            if min(lengths) < shortest or max(lengths) > longest:
                continue
            b = bucket_of(lengths[0], buckets)
            row = self.row(words)
            if row is None:
                continue
            count[lengths[0]] += 1
            left[b] -= 1
            rows.append(row)
        return rows

    def held_out(self):
        """HELD_PER_PAIR sentences for each held-out pair."""
        g, rows = self.g, []
        left = dict.fromkeys(sorted(HELD), HELD_PER_PAIR)
        g.force_held = True
        k = 0
        while any(left.values()):
            k += 1
            level, low, high = g.one(HOW[k % len(HOW)])
            words = self.try_draft(
                level, low + (high - low) * g.rng.random(), held=True
            )
            if words is None:
                continue
            hits = sorted(g.pairs & HELD)
            if not hits or not all(left[p] for p in hits):
                continue
            lengths = [len(x) for x in words]
            if min(lengths) < 3 or max(lengths) > 30:
                continue
            row = self.row(words, {"held-out-pair"})
            if row is None:
                continue
            for p in hits:
                left[p] -= 1
            rows.append(row)
        g.force_held = False
        return rows


def source_examples(writer: Writer):
    """The two sentences the course's sources explain attention with."""
    g = writer.g
    out = []
    for en, fr, zh, tags in (
        ("i/1 love/2 you/3", "je/1 te/3 aime/2", "我/1 爱/2 你/3", {"clitic"}),
        (
            "i/1 love/2 to eat/3 apples/4",
            "je/1 aime/2 manger/3 des pommes/4",
            "我/1 爱/2 吃/3 苹果/4",
            {"infinitive"},
        ),
    ):
        g.reset(0.0, False)
        words = finish(g, pat(g, en, fr, zh))
        g.tags |= tags
        out.append(writer.row(words, {"source-example"}))
    return out


def build(seed: int = SEED) -> dict[str, list[tuple[str, ...]]]:
    """All splits: name -> rows of seven strings."""
    gc.disable()  # nothing is in a cycle; a tenth faster
    w = Writer(seed)
    test = source_examples(w)
    test += w.held_out()
    total = SIZES["train"] + SIZES["valid"] + SIZES["test"] - len(test)
    quota = [round(s * total) for s in SHARES]
    quota[3] += total - sum(quota)
    rows = w.collect(quota, BUCKETS, HOW, 30, 3)
    shuffle(rows, w.g.rng)
    valid, rows = deal(rows, SIZES["valid"])
    more, train = deal(rows, SIZES["test"] - len(test))
    test += more
    for part in (train, valid, test):
        shuffle(part, w.g.rng)
    quota = [round(s * SIZES["long"]) for s in LONG_SHARES]
    long = w.collect(quota, LONG_BUCKETS, LONG_HOW, 60, 31)
    long.sort(key=lambda r: r[0].count(" "))
    return {"train": train, "valid": valid, "test": test, "long": long}


def deal(rows, number):
    """`number` rows spread evenly over the lengths, and the others."""
    rows = sorted(rows, key=lambda r: r[0].count(" "))
    taken = {int((k + 0.5) * len(rows) / number) for k in range(number)}
    return (
        [r for k, r in enumerate(rows) if k in taken],
        [r for k, r in enumerate(rows) if k not in taken],
    )


def shuffle(items: list, rng: random.Random) -> None:
    """Fisher–Yates with rng.random() only: the same on every Python version."""
    for i in range(len(items) - 1, 0, -1):
        j = int(rng.random() * (i + 1))
        items[i], items[j] = items[j], items[i]


def pack(rows) -> bytes:
    """The gzip file of one split: same bytes on every run."""
    text = "\n".join("\t".join(row) for row in (HEADER, *rows)) + "\n"
    raw = io.BytesIO()
    with gzip.GzipFile(
        filename="", mode="wb", fileobj=raw, compresslevel=9, mtime=0
    ) as f:
        f.write(text.encode("utf-8"))
    return raw.getvalue()


def sums(files: dict[str, bytes], path: Path) -> str:
    """SHA256SUMS with the lines of these files first; lines of other files stay."""
    old = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    mine = [
        f"{hashlib.sha256(data).hexdigest()}  village/{name}.tsv.gz"
        for name, data in files.items()
    ]
    return "\n".join([*mine, *(x for x in old if "  village/" not in x)]) + "\n"


# ------------------------------------------------------------------ datasheet


def table(header, rows) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(c) for c in row) + " |" for row in rows]
    return "\n".join(lines)


def tables(splits) -> dict[str, str]:
    """Name of a marker in the datasheet -> its text."""

    def words(rows, k):
        return [w for r in rows for w in r[k].split()]

    sizes = []
    for name, rows in splits.items():
        cells = [name, f"{len(rows):,}"]
        for k in range(3):
            ns = [r[k].count(" ") + 1 for r in rows]
            cells.append(f"{min(ns)}–{max(ns)} ({sum(ns) / len(ns):.1f})")
        sizes.append(cells)
    lengths = []
    for low, high in (*BUCKETS, *LONG_BUCKETS):
        cells = [f"{low}–{high}"]
        for rows in splits.values():
            n = sum(low <= r[0].count(" ") + 1 <= high for r in rows)
            cells.append(f"{n:,} ({100 * n / len(rows):.1f} %)")
        lengths.append(cells)
    train = splits["train"]
    vocab = []
    for k, lang in enumerate(("English", "French", "Chinese")):
        count = Counter(words(train, k))
        rare_w, rare = min(count.items(), key=lambda x: (x[1], x[0]))
        other = {w for n in SPLITS[1:] for w in words(splits[n], k)}
        vocab.append(
            [
                lang,
                len(count),
                f"{sum(count.values()):,}",
                f"{rare_w} ({rare})",
                len(other - set(count)),
            ]
        )
    tags = sorted(
        {t for rows in splits.values() for r in rows for t in r[6].split(",") if t}
    )
    phenomena = []
    for t in tags:
        phenomena.append(
            [f"`{t}`"]
            + [
                f"{sum(t in r[6].split(',') for r in rows):,}"
                for rows in splits.values()
            ]
        )
    pairs = ", ".join(f"*{a} {n}*" for a, n in sorted(HELD))
    return {
        "sizes": table(
            ("split", "sentences", "English tokens", "French tokens", "Chinese tokens"),
            sizes,
        ),
        "lengths": table(("English tokens", *SPLITS), lengths),
        "vocabulary": table(
            (
                "language",
                "word forms in train",
                "tokens in train",
                "rarest in train",
                "unknown in the other splits",
            ),
            vocab,
        ),
        "phenomena": table(("tag", *SPLITS), phenomena),
        "held-out": pairs,
    }


def fill(text: str, parts: dict[str, str]) -> str:
    """Put each table between its markers."""
    for name, part in parts.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin not in text or end not in text:
            raise ValueError(f"data/README.md: the markers of {name!r} are missing")
        head, rest = text.split(begin, 1)
        text = head + begin + "\n" + part + "\n" + end + rest.split(end, 1)[1]
    return text


def show(row) -> str:
    """A row with its links spelled out."""
    en, fr, zh = (row[k].split() for k in range(3))

    def pairs(a, b, links):
        out = []
        for link in links.split():
            i, j = link.split("-")
            out.append(f"{a[int(i)]}–{b[int(j)]}")
        return "  ".join(out)

    return "\n".join(
        (
            row[0],
            row[1],
            row[2],
            "  en-fr  " + pairs(en, fr, row[3]),
            "  en-zh  " + pairs(en, zh, row[4]),
            "  tags   " + row[6],
        )
    )


def read(path: Path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as f:
        next(f)
        return [tuple(line.rstrip("\n").split("\t")) for line in f]


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--check", action="store_true", help="regenerate and compare")
    p.add_argument("--sample", type=int, metavar="N", help="print N sentences")
    p.add_argument("--seed", type=int, default=0, help="which sample")
    p.add_argument("--out", type=Path, default=HERE, help="where the .tsv.gz files go")
    args = p.parse_args()
    data = HERE.parent
    if args.sample:
        rows = [r for name in SPLITS for r in read(HERE / f"{name}.tsv.gz")]
        rng = random.Random(args.seed)
        long = [r for r in rows if r[0].count(" ") >= 30]
        other = [r for r in rows if r[0].count(" ") < 30]
        for k in range(args.sample):
            pool = long if k % 6 == 5 else other
            print(show(pool[int(rng.random() * len(pool))]), end="\n\n")
        return
    splits = build()
    files = {name: pack(splits[name]) for name in SPLITS}
    check = {HERE / f"{name}.tsv.gz": blob for name, blob in files.items()}
    check[data / "SHA256SUMS"] = sums(files, data / "SHA256SUMS").encode()
    readme = data / "README.md"
    if readme.exists():
        filled = fill(readme.read_text(encoding="utf-8"), tables(splits))
        check[readme] = filled.encode("utf-8")
    if args.check:
        bad = [
            p.name
            for p, blob in check.items()
            if not p.exists() or p.read_bytes() != blob
        ]
        if bad:
            sys.exit("differs from what the generator writes: " + ", ".join(bad))
        print("the files are what the generator writes")
        return
    for path, blob in check.items():
        if args.out != HERE:
            args.out.mkdir(parents=True, exist_ok=True)
            path = args.out / path.name
        part = path.with_name(path.name + ".part")
        part.write_bytes(blob)
        os.replace(part, path)


if __name__ == "__main__":
    main()
