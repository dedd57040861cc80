"""The tables of the datasheet, data/README.md: what is counted in the corpus."""

from collections import Counter, defaultdict

from core import table

LENGTHS = ((3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30), (3, 30))
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


def distances(rows, others, most) -> list[int]:
    """How near each row is in English to one of the others, at most `most` + 1."""
    sized, found = defaultdict(list), []
    for other in (row[0].split() for row in others):
        sized[len(other)].append((set(other), other))
    for text in (row[0].split() for row in rows):
        sizes, said = range(len(text) - most, len(text) + most + 1), set(text)
        # each word that the other lacks is one to replace, delete or insert
        near = [b for n in sizes for has, b in sized[n] if len(said - has) <= most]
        apart = (distance(text, other, most) for other in near)
        found.append(min(apart, default=most + 1))
    return found


def distance(a, b, most) -> int:
    """Words to insert, delete or replace; most + 1 where it is more."""
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            best = min(last + (word != other), row[j] + 1, row[j - 1] + 1)
            last, row[j] = row[j], best
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)


def new_names():
    """Names that training never sees: in English and French, in Chinese."""
    rows = [row for row in table("names").values() if row.split]
    return {row.key for row in rows} | {row.zh for row in rows}


def fill(text, splits) -> str:
    """The datasheet with each table between its markers."""
    for table_of in (sizes, vocabulary, phenomena, near):
        name, made = table_of.__name__, table_of(**splits)
        begin, end = f"<!-- {name}: begin -->\n", f"\n<!-- {name}: end -->"
        head, rest = text.split(begin)
        text = head + begin + made + end + rest.split(end)[1]
    return text


def markdown(header, rows) -> str:
    first, *lines = ["| " + " | ".join(map(str, r)) + " |" for r in (header, *rows)]
    return "\n".join([first, "|" + "---|" * len(header), *lines])


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


def vocabulary(train, **_):
    said = [(name, words(train, k)) for k, name in enumerate(LANGUAGES)]
    rows = [(name, len(set(found)), f"{len(found):,}") for name, found in said]
    return markdown(("language", "word forms in train", "tokens in train"), rows)


def counted(rows):
    return Counter(tag for row in rows for tag in tags_of(row))


def phenomena(**splits):
    counts = [counted(rows) for rows in splits.values()]
    tags = sorted(set().union(*counts))
    rows = [[f"`{tag}`", *(f"{count[tag]:,}" for count in counts)] for tag in tags]
    return markdown(("tag", *splits), rows)


def near(train, test, **_):
    found, rows = distances(test, train, 3), []
    for low, high in LENGTHS:
        pairs = zip(found, test, strict=True)
        here = [d for d, row in pairs if low <= size(row) <= high]
        shares = [sum(d <= k for d in here) / len(here) for k in (1, 2, 3)]
        rows.append([f"{low}–{high}", *(f"{100 * share:.1f} %" for share in shares)])
    return markdown(("English tokens", "within 1 word", "within 2", "within 3"), rows)
