"""The datasheet: its tables, and what is measured of the corpus.

python data/village/sheet.py [FOLDER [TAG …]]    measure the files of a folder,
                                                 also without the sentences of a tag
"""

import gzip
import math
import sys
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path

from core import nouns_of, table
from draw import HELD_OUT
from near import Neighbours

HERE = Path(__file__).resolve().parent
LENGTHS = ((3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30))
LONG_LENGTHS = ((31, 36), (37, 42), (43, 48), (49, 60))
LANGUAGES = ("English", "French", "Chinese")
WOMEN = {"she", "her", "mother", "sister", "grandmother", "aunt", "daughter", "woman"}
WOMEN |= {row.key for row in table("names").values() if row.gender == "f"}


def read(path):
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as f:
        next(f)
        return [tuple(line.rstrip("\n").split("\t")) for line in f]


def size(row, k=0):
    """Words in one of the three languages."""
    return row[k].count(" ") + 1


def words(rows, k):
    return [word for row in rows for word in row[k].split()]


def tags_of(row):
    return {tag for tag in row[6].split(",") if tag}


def with_tags(row, tags):
    return (*row[:6], ",".join(sorted(tags)))


def new_names():
    """Names that training never sees: in English and French, in Chinese."""
    rows = [row for row in table("names").values() if row.split]
    return {row.key for row in rows} | {row.zh for row in rows}


def percent(share):
    return f"{100 * share:.1f} %"


# The tables


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


def tables(splits) -> dict[str, str]:
    """Name of a marker in the datasheet -> its text."""
    return {
        "sizes": sizes(splits),
        "lengths": lengths(splits),
        "vocabulary": vocabulary(splits),
        "phenomena": phenomena(splits),
        "held-out": ", ".join(f"*{a} {n}*" for a, n in sorted(HELD_OUT)),
        "people": people(splits["train"]),
        "near": nearness(splits["test"], splits["train"]),
    }


def sizes(splits):
    rows = []
    for name, lines in splits.items():
        cells = [name, f"{len(lines):,}"]
        for k in range(3):
            ns = [size(row, k) for row in lines]
            cells.append(f"{min(ns)}–{max(ns)} ({sum(ns) / len(ns):.1f})")
        rows.append(cells)
    tokens = [f"{language} tokens" for language in LANGUAGES]
    return markdown(("split", "sentences", *tokens), rows)


def lengths(splits):
    rows = []
    for low, high in LENGTHS + LONG_LENGTHS:
        cells = [f"{low}–{high}"]
        for lines in splits.values():
            n = sum(low <= size(row) <= high for row in lines)
            cells.append(f"{n:,} ({percent(n / len(lines))})")
        rows.append(cells)
    return markdown(("English tokens", *splits), rows)


def vocabulary(splits):
    rows, new = [], new_names()
    others = [row for name in splits if name != "train" for row in splits[name]]
    for k, language in enumerate(LANGUAGES):
        counts = Counter(words(splits["train"], k))
        rarest = min(counts, key=lambda word: (counts[word], word))
        unknown = set(words(others, k)) - set(counts)
        tokens, rare = f"{counts.total():,}", f"{rarest} ({counts[rarest]})"
        unseen = f"{len(unknown & new)} names, {len(unknown - new)} other"
        rows.append([language, len(counts), tokens, rare, unseen])
    header = ("language", "word forms in train", "tokens in train", "rarest in train")
    return markdown((*header, "unknown in the other splits"), rows)


def phenomena(splits):
    counts = [
        Counter(tag for row in lines for tag in tags_of(row))
        for lines in splits.values()
    ]
    tags = sorted(set().union(*counts))
    rows = [[f"`{tag}`", *(f"{count[tag]:,}" for count in counts)] for tag in tags]
    return markdown(("tag", *splits), rows)


def people(train):
    """How often a trade is a woman's and a man's, by the French form or article."""
    rows = [[trade, *counts] for trade, counts in sorted(trades(train).items())]
    total = ["all", sum(row[1] for row in rows), sum(row[2] for row in rows)]
    return markdown(("in train", "women", "men"), [*rows, total])


def trades(rows) -> dict[str, list[int]]:
    """Trade -> [women, men], read from the French side."""
    nouns = {form: noun for noun in nouns_of("trade") for form in noun.fr.split("/")}
    counts = {noun.en: [0, 0] for noun in nouns.values()}
    for row in rows:
        french = row[1].split()
        for place, word in enumerate(french):
            if word in nouns:
                noun, before = nouns[word], french[max(0, place - 3) : place]
                counts[noun.en][is_man(row, noun, word, before)] += 1
    return counts


def is_man(row, noun, word, before) -> bool:
    """Where the noun doesn't tell, the article does, or who else is named."""
    man, woman = noun.fr.split("/")
    if man != woman:
        return word == man
    if {"la", "une", "cette"} & set(before):
        return False
    if {"le", "un", "ce", "du", "au"} & set(before):
        return True
    return not WOMEN & set(row[0].split())


# Near-duplicates


def nearest(test, train, most=3) -> list[int]:
    """Distance in words of each test sentence from train; most + 1 where it is more."""
    found = [most + 1] * len(test)
    index = Neighbours([row[0].split() for row in test], most)
    for row in train:
        for number, d in index.near(row[0].split()):
            found[number] = min(found[number], d)
    return found


def mark_far(test, train):
    """Test rows with the tag of those that no training sentence comes near."""
    far = [{"far-from-train"} if d > 3 else set() for d in nearest(test, train)]
    return [with_tags(row, tags_of(row) | far[k]) for k, row in enumerate(test)]


def within(found):
    """Shares of the distances that are at most 1, 2 and 3."""
    return [percent(sum(d <= most for d in found) / len(found)) for most in (1, 2, 3)]


def nearness(test, train):
    near, rows = nearest(test, train), []
    for low, high in (*LENGTHS, (3, 30)):
        here = [near[k] for k, row in enumerate(test) if low <= size(row) <= high]
        rows.append([f"{low}–{high}", *within(here)])
    return markdown(("English tokens", "within 1 word", "within 2", "within 3"), rows)


# What the corpus asks of a model: first and second edition


def sure_links(row, target):
    """(place in English, place in French, 1, or in Chinese, 2)"""
    links = row[target + 2].split()
    return [tuple(map(int, link.split("-"))) for link in links if "-" in link]


def all_links(row, target):
    links = row[target + 2].replace("?", "-").split()
    return [tuple(map(int, link.split("-"))) for link in links]


def order(rows, target):
    """Inverted pairs of linked words, sentences with a jump of 8, monotone ones."""
    inverted = pairs = jumps = monotone = 0
    for row in rows:
        found = sorted(sure_links(row, target))
        turned = sum(a[1] > b[1] and a[0] < b[0] for a, b in combinations(found, 2))
        inverted, pairs = inverted + turned, pairs + math.comb(len(found), 2)
        jumps += any(abs(i - j) >= 8 for i, j in found)
        monotone += not turned
    return inverted / pairs, jumps / len(rows), monotone / len(rows)


def diagonal_error(rows, target):
    """AER of the links that lie on the diagonal (Och & Ney, 2003)."""
    linked = right = 0
    for row in rows:
        n, m = size(row), size(row, target)
        guess = {(min(n - 1, int((j + 0.5) * n / m)), j) for j in range(m)}
        sure, possible = set(sure_links(row, target)), set(all_links(row, target))
        linked += len(guess) + len(sure)
        right += len(guess & sure) + len(guess & possible)
    return 1 - right / linked


def linked_words(rows, target):
    """English words, each with one that it is surely linked with."""
    for row in rows:
        source_words, target_words = row[0].split(), row[target].split()
        for i, j in sure_links(row, target):
            yield source_words[i], target_words[j]


def most_frequent(train, test, target):
    """Share of linked test words that are their word's most frequent translation."""
    seen = defaultdict(Counter)
    for word, other in linked_words(train, target):
        seen[word][other] += 1
    best = {word: counts.most_common(1)[0][0] for word, counts in seen.items()}
    right = [best.get(word) == other for word, other in linked_words(test, target)]
    return sum(right) / len(right)


def contexts(rows, k, n):
    """Each word, and what stands before it: 0, 1 … n - 1 words."""
    for row in rows:
        line = ["<s>"] * (n - 1) + row[k].split() + ["</s>"]
        for at in range(n - 1, len(line)):
            yield line[at], [tuple(line[at - width : at]) for width in range(n)]


def perplexity(train, test, k, n=5):
    """Of an interpolated Witten–Bell n-gram model, a word of test."""
    follow = defaultdict(Counter)
    for word, before in contexts(train, k, n):
        for context in before:
            follow[context][word] += 1
    count = {context: after.total() for context, after in follow.items()}
    forms, logs = len(follow[()]) + 1, []
    for word, before in contexts(test, k, n):
        p = 1 / forms
        for context in filter(count.get, before):
            kinds = len(follow[context])
            p = (follow[context][word] + kinds * p) / (count[context] + kinds)
        logs.append(math.log(p))
    return math.exp(-sum(logs) / len(logs))


def measure(train, test):
    """The figures that the datasheet compares the editions by, a line each."""
    for target, name in enumerate(("en–fr", "en–zh"), 1):
        inverted, jumps, monotone = order(test, target)
        frequent = most_frequent(train, test, target)
        yield f"{name} inverted pairs {percent(inverted)}"
        yield f"{name} |i − j| ≥ 8 in {percent(jumps)} of the sentences"
        yield f"{name} monotone {percent(monotone)}"
        yield f"{name} AER of the diagonal {diagonal_error(test, target):.3f}"
        yield f"{name} most frequent translation right {percent(frequent)}"
    for k, language in enumerate(LANGUAGES):
        yield f"{language} 5-gram perplexity {perplexity(train, test, k):.2f}"
        yield f"{language} word forms {len(set(words(train, k)))}"
    yield "within 1, 2, 3 words of train " + ", ".join(within(nearest(test, train)))


def without(test, tag):
    """Inverted pairs and jumps again, without the sentences of the tag."""
    kept = [row for row in test if tag not in tags_of(row)]
    for target, name in enumerate(("en–fr", "en–zh"), 1):
        inverted, jumps, _ = map(percent, order(kept, target))
        yield f"without {tag}: {name} inverted {inverted}, jumps {jumps}"


def main(folder=HERE, *tags):
    train, test = (read(Path(folder, f"{name}.tsv.gz")) for name in ("train", "test"))
    print(*measure(train, test), sep="\n")
    for tag in tags:
        print(*without(test, tag), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
