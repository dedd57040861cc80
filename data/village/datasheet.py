"""The tables of the datasheet, data/README.md: what is counted in the corpus."""

from collections import Counter

from core import nouns_of, table
from draw import HELD_OUT
from near import Neighbours

LENGTHS = ((3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30))
LONG_LENGTHS = ((31, 36), (37, 42), (43, 48), (49, 60))
LANGUAGES = ("English", "French", "Chinese")


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


def percent(number, of):
    return f"{100 * number / of:.1f} %"


def markdown(header, rows) -> str:
    first, *lines = ["| " + " | ".join(map(str, r)) + " |" for r in (header, *rows)]
    return "\n".join([first, "|" + "---|" * len(header), *lines])


def fill(text, splits) -> str:
    """The datasheet with each table between its markers."""
    tables = (sizes, lengths, vocabulary, phenomena, held_out, people, near)
    for table_of in tables:
        name = table_of.__name__.replace("_", "-")
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        head, rest = text.split(begin)
        text = head + begin + table_of(**splits) + "\n" + end + rest.split(end)[1]
    return text


def sizes(**splits):
    rows = []
    for name, lines in splits.items():
        cells = [name, f"{len(lines):,}"]
        for k in range(3):
            ns = [size(row, k) for row in lines]
            cells.append(f"{min(ns)}–{max(ns)} ({sum(ns) / len(ns):.1f})")
        rows.append(cells)
    tokens = [f"{language} tokens" for language in LANGUAGES]
    return markdown(("split", "sentences", *tokens), rows)


def lengths(**splits):
    rows = []
    for low, high in LENGTHS + LONG_LENGTHS:
        cells = [f"{low}–{high}"]
        for lines in splits.values():
            n = sum(low <= size(row) <= high for row in lines)
            cells.append(f"{n:,} ({percent(n, len(lines))})")
        rows.append(cells)
    return markdown(("English tokens", *splits), rows)


def vocabulary(train, **others):
    rows, new = [], new_names()
    other_rows = [row for lines in others.values() for row in lines]
    for k, language in enumerate(LANGUAGES):
        counts = Counter(words(train, k))
        rarest = min(counts, key=lambda word: (counts[word], word))
        unknown = set(words(other_rows, k)) - set(counts)
        tokens, rare = f"{counts.total():,}", f"{rarest} ({counts[rarest]})"
        unseen = f"{len(unknown & new)} names, {len(unknown - new)} other"
        rows.append([language, len(counts), tokens, rare, unseen])
    header = ("language", "word forms in train", "tokens in train", "rarest in train")
    return markdown((*header, "unknown in the other splits"), rows)


def phenomena(**splits):
    counts = [
        Counter(tag for row in lines for tag in tags_of(row))
        for lines in splits.values()
    ]
    tags = sorted(set().union(*counts))
    rows = [[f"`{tag}`", *(f"{count[tag]:,}" for count in counts)] for tag in tags]
    return markdown(("tag", *splits), rows)


def held_out(**_):
    return ", ".join(f"*{a} {n}*" for a, n in sorted(HELD_OUT))


def people(train, **_):
    """How often a trade is a woman's and a man's, where French has two forms."""
    counts = Counter(words(train, 1))
    trades = sorted((noun.en, *noun.fr.split("/")) for noun in nouns_of("trade"))
    rows = [[en, counts[her], counts[him]] for en, him, her in trades if him != her]
    total = ["all", *(sum(row[k] for row in rows) for k in (1, 2))]
    return markdown(("in train", "women", "men"), [*rows, total])


def near(train, test, **_):
    found, rows = nearest(test, train), []
    for low, high in (*LENGTHS, (3, 30)):
        here = [found[k] for k, row in enumerate(test) if low <= size(row) <= high]
        shares = [percent(sum(d <= k for d in here), len(here)) for k in (1, 2, 3)]
        rows.append([f"{low}–{high}", *shares])
    return markdown(("English tokens", "within 1 word", "within 2", "within 3"), rows)


def nearest(test, train, most=3) -> list[int]:
    """Distance in words of each test sentence from train; most + 1 where it is more."""
    found = [most + 1] * len(test)
    index = Neighbours([row[0].split() for row in test], most)
    for row in train:
        for number, d in index.near(row[0].split()):
            found[number] = min(found[number], d)
    return found
