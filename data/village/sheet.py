"""The datasheet: its tables, and what is measured of the corpus.

python data/village/sheet.py [FOLDER]    measure the files of a folder
"""

import gzip
import math
import sys
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

from core import table
from draw import HELD_OUT
from near import Neighbours

LENGTHS = ((3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30), (31, 36), (37, 42), (43, 48), (49, 60))  # fmt: skip
LANGUAGES = ("English", "French", "Chinese")


def markdown(header, rows) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def fill(text, parts) -> str:
    """Put each table between its markers."""
    for name, part in parts.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        if begin not in text or end not in text:
            raise ValueError(f"data/README.md: the markers of {name!r} are missing")
        head, rest = text.split(begin, 1)
        text = head + begin + "\n" + part + "\n" + end + rest.split(end, 1)[1]
    return text


def size(row, k=0):
    return row[k].count(" ") + 1


def words(rows, k):
    return [word for row in rows for word in row[k].split()]


def tables(splits) -> dict[str, str]:
    """Name of a marker in the datasheet -> its text."""
    return {
        "sizes": sizes(splits),
        "lengths": lengths(splits),
        "vocabulary": vocabulary(splits),
        "phenomena": phenomena(splits),
        "held-out": ", ".join(f"*{a} {n}*" for a, n in sorted(HELD_OUT)),
        "people": people(splits),
        "near": nearness(splits),
    }


def sizes(splits):
    rows = []
    for name, lines in splits.items():
        cells = [name, f"{len(lines):,}"]
        for k in range(3):
            ns = [size(row, k) for row in lines]
            cells.append(f"{min(ns)}–{max(ns)} ({sum(ns) / len(ns):.1f})")
        rows.append(cells)
    return markdown(
        ("split", "sentences", *(f"{lang} tokens" for lang in LANGUAGES)), rows
    )


def lengths(splits):
    rows = []
    for low, high in LENGTHS:
        cells = [f"{low}–{high}"]
        for lines in splits.values():
            n = sum(low <= size(row) <= high for row in lines)
            cells.append(f"{n:,} ({100 * n / len(lines):.1f} %)")
        rows.append(cells)
    return markdown(("English tokens", *splits), rows)


def vocabulary(splits):
    rows, new = [], new_names()
    for k, lang in enumerate(LANGUAGES):
        counts = Counter(words(splits["train"], k))
        rarest = min(counts, key=lambda word: (counts[word], word))
        other = {
            w for name in splits if name != "train" for w in words(splits[name], k)
        }
        unknown = other - set(counts)
        rows.append([
            lang, len(counts), f"{sum(counts.values()):,}", f"{rarest} ({counts[rarest]})",
            f"{len(unknown & new)} names, {len(unknown - new)} other",
        ])  # fmt: skip
    header = ("language", "word forms in train", "tokens in train", "rarest in train")
    return markdown((*header, "unknown in the other splits"), rows)


def new_names():
    rows = [row for row in table("names").values() if row.split]
    return {row.key for row in rows} | {row.zh for row in rows}


def tags_of(row):
    return {tag for tag in row[6].split(",") if tag}


def phenomena(splits):
    tags = sorted(
        {tag for rows in splits.values() for row in rows for tag in tags_of(row)}
    )
    rows = []
    for tag in tags:
        counts = [
            sum(tag in tags_of(row) for row in lines) for lines in splits.values()
        ]
        rows.append([f"`{tag}`", *(f"{n:,}" for n in counts)])
    return markdown(("tag", *splits), rows)


def people(splits):
    """How often a trade is a woman's and a man's, by the French form or article."""
    counts = trades(splits["train"])
    rows = [[trade, women, men] for trade, (women, men) in sorted(counts.items())]
    total = ["all", sum(r[1] for r in rows), sum(r[2] for r in rows)]
    return markdown(("in train", "women", "men"), [*rows, total])


def trades(rows) -> dict[str, tuple[int, int]]:
    """Trade -> (women, men), read from the French side."""
    counts = {}
    for noun in table("nouns").values():
        if "trade" not in noun.kinds.split():
            continue
        man, woman = noun.fr.split("/")
        found = [0, 0]
        for row in rows:
            french = row[1].split()
            for place, word in enumerate(french):
                if word in (man, woman):
                    found[gender(row, french, place, word, man, woman)] += 1
        counts[noun.en] = tuple(found)
    return counts


def gender(row, french, place, word, man, woman):
    """0 for a woman, 1 for a man; where the noun doesn't tell, the article or a name."""
    if man != woman:
        return int(word == man)
    before = [w for w in french[max(0, place - 3) : place]]
    if {"la", "une", "cette"} & set(before):
        return 0
    if {"le", "un", "ce", "du", "au"} & set(before):
        return 1
    her = {"she", "her", "mother", "sister", "grandmother", "aunt", "daughter", "woman"}
    female = {r.key for r in table("names").values() if r.gender == "f"}
    return int(not (her | female) & set(row[0].split()))


def mark_far(test, train):
    """Test rows with the tag of those that no training sentence comes near."""
    near = nearest(test, train)
    return [
        row
        if near[k] <= 3
        else (*row[:6], ",".join(sorted({*tags_of(row), "far-from-train"})))
        for k, row in enumerate(test)
    ]


def nearest(test, train, most=3) -> list[int]:
    """Distance in words of each test sentence from train; most + 1 where it is more."""
    found = [most + 1] * len(test)
    index = Neighbours([row[0].split() for row in test], most)
    for row in train:
        for number, d in index.near(row[0].split()):
            found[number] = min(found[number], d)
    return found


def nearness(splits):
    test = splits["test"]
    near, rows = nearest(test, splits["train"]), []
    for low, high in (*LENGTHS[:6], (3, 30)):
        here = [near[k] for k, row in enumerate(test) if low <= size(row) <= high]
        shares = [
            f"{100 * sum(d <= most for d in here) / len(here):.1f} %"
            for most in (1, 2, 3)
        ]
        rows.append([f"{low}–{high}", *shares])
    return markdown(("English tokens", "within 1 word", "within 2", "within 3"), rows)


# What the corpus asks of a model


def read(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as f:
        next(f)
        return [line.rstrip("\n").split("\t") for line in f]


def pairs_of(text, sure_only=True):
    found = []
    for link in text.split():
        if "-" in link:
            found.append(tuple(map(int, link.split("-"))))
        elif not sure_only:
            found.append(tuple(map(int, link.split("?"))))
    return found


def order(rows, k, skip=lambda row: False):
    """Inverted pairs of linked words, sentences with a jump of 8, monotone ones."""
    inverted = pairs = jumps = monotone = 0
    kept = [row for row in rows if not skip(row)]
    for row in kept:
        found = sorted(pairs_of(row[k]))
        turned = sum(a[1] > b[1] and a[0] < b[0] for a, b in combinations(found, 2))
        inverted, pairs = inverted + turned, pairs + math.comb(len(found), 2)
        jumps += any(abs(i - j) >= 8 for i, j in found)
        monotone += not turned
    return inverted / pairs, jumps / len(kept), monotone / len(kept)


def diagonal_error(rows, source, target, k):
    """AER of the links that lie on the diagonal (Och & Ney, 2003)."""
    found = hits = allowed = size_s = 0
    for row in rows:
        n, m = size(row, source), size(row, target)
        guess = {(min(n - 1, int((j + 0.5) * n / m)), j) for j in range(m)}
        sure = set(pairs_of(row[k]))
        possible = set(pairs_of(row[k], sure_only=False))
        found, size_s = found + len(guess), size_s + len(sure)
        hits, allowed = hits + len(guess & sure), allowed + len(guess & possible)
    return 1 - (hits + allowed) / (found + size_s)


def most_frequent(train, test, source, target, k):
    """Share of linked test words that are their word's most frequent translation."""
    seen = defaultdict(Counter)
    for row in train:
        a, b = row[source].split(), row[target].split()
        for i, j in pairs_of(row[k]):
            seen[a[i]][b[j]] += 1
    best = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
    right = total = 0
    for row in test:
        a, b = row[source].split(), row[target].split()
        for i, j in pairs_of(row[k]):
            right, total = right + (best.get(a[i]) == b[j]), total + 1
    return right / total


def perplexity(train, test, k, n=5):
    """Of an interpolated Witten–Bell n-gram model, a word of test."""
    follow, count = defaultdict(Counter), Counter()
    for row in train:
        line = ["<s>"] * (n - 1) + row[k].split() + ["</s>"]
        for at in range(n - 1, len(line)):
            for width in range(n):
                follow[tuple(line[at - width : at])][line[at]] += 1
    count = {context: sum(after.values()) for context, after in follow.items()}
    forms = len(follow[()]) + 1
    total = number = 0
    for row in test:
        line = ["<s>"] * (n - 1) + row[k].split() + ["</s>"]
        for at in range(n - 1, len(line)):
            p = 1 / forms
            for width in range(n):
                context = tuple(line[at - width : at])
                if context in follow:
                    kinds = len(follow[context])
                    p = (follow[context][line[at]] + kinds * p) / (
                        count[context] + kinds
                    )
            total, number = total + math.log(p), number + 1
    return math.exp(-total / number)


def measure(folder) -> str:
    """The figures of the datasheet's table for the files of a folder."""
    train, test = (read(Path(folder) / f"{name}.tsv.gz") for name in ("train", "test"))
    lines = []
    for name, source, target, k in (("en–fr", 0, 1, 3), ("en–zh", 0, 2, 4)):
        inverted, jumps, monotone = order(test, k)
        lines += [
            f"{name} inverted pairs {100 * inverted:.1f} %",
            f"{name} |i − j| ≥ 8 in {100 * jumps:.1f} % of the sentences",
            f"{name} monotone {100 * monotone:.1f} %",
            f"{name} AER of the diagonal {diagonal_error(test, source, target, k):.3f}",
            f"{name} most frequent translation right {100 * most_frequent(train, test, source, target, k):.1f} %",
        ]
    for k, lang in enumerate(LANGUAGES):
        lines.append(f"{lang} 5-gram perplexity {perplexity(train, test, k):.2f}")
        lines.append(f"{lang} word forms {len(set(words(train, k)))}")
    near = nearest(test, train)
    lines.append(
        "within 1, 2, 3 words of train "
        + ", ".join(
            f"{100 * sum(d <= m for d in near) / len(near):.1f} %" for m in (1, 2, 3)
        )
    )
    return "\n".join(lines)


def without_each(folder, tags):
    """Inverted pairs and jumps again, without the sentences of each tag."""
    test = read(Path(folder) / "test.tsv.gz")
    for tag in tags:
        for name, k in (("en–fr", 3), ("en–zh", 4)):
            inverted, jumps, _ = order(test, k, lambda row: tag in tags_of(row))
            print(
                f"without {tag}: {name} inverted {100 * inverted:.1f} %, jumps {100 * jumps:.1f} %"
            )


if __name__ == "__main__":
    where = sys.argv[1] if len(sys.argv) > 1 else Path(__file__).resolve().parent
    print(measure(where))
    without_each(where, sys.argv[2:])
