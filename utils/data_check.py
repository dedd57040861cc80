"""What is wrong with a text of one's own, or may be: said before anything is trained.

Each finding is a sentence for one kind, with the numbers of the first lines.
"""

import csv
import re
import statistics
import unicodedata
from collections import Counter
from dataclasses import replace
from itertools import repeat

from utils.guards import require_one_of
from utils.languages import language_name

LOOKED_AT = 2000  # pairs, evenly spread, from which languages are guessed
FEW_LINES = 100  # too few to compare the lengths of their sides
ENTITY = re.compile(r"&(?:[A-Za-z]{2,}\d*|#\d+|#x[0-9A-Fa-f]+);")
EXCEL = re.compile(r'[^"\r\0]*|"(?:[^"\r\0]|"")*"')  # a field as Excel writes it
TAKEN_AWAY = "with quotation marks of Excel, now taken away; --quotes keep leaves them"
LETTER = re.compile(r"[^\W\d_]")
FREQUENT = {  # some of a language's most frequent words
    "cs": "ale bych je jsem jsou na není se to že",
    "de": "das der die ein ich ist nicht sie und zu",
    "en": "and are i is it of that the this to was you",
    "es": "con el en es está los muy por una y",
    "fr": "dans des est et il je les ne pas une",
    "hu": "az csak egy ez hogy meg nem van volt és",
    "it": "che della di gli non per sono suo un è",
    "nl": "dat de een en het ik is niet van zijn",
    "pl": "dla jest na nie się tak ty że już jestem",
    "pt": "com da em não o os para que um uma",
    "sv": "att av det en inte jag och på som är",
    "tr": "bir bu çok da değil için ne o var ve",
}
LETTERS = {  # the letters a language is written in, as Unicode names them
    **dict.fromkeys(FREQUENT, "LATIN"),
    **dict.fromkeys(("be", "bg", "mk", "ru", "uk"), "CYRILLIC"),
    **dict.fromkeys(("ar", "fa", "ur"), "ARABIC"),
    **{"hi": "DEVANAGARI", "el": "GREEK", "he": "HEBREW", "ko": "HANGUL"},
    **{"th": "THAI", "zh": "CJK", "ja": "HIRAGANA KATAKANA CJK"},
}
HEADER = set(
    "source target src tgt id sentence text translation arabic chinese czech dutch "
    "english french german hindi italian japanese korean polish portuguese russian "
    "spanish swedish turkish".split()
)


def by_kind(found, where="") -> list[str]:
    """A finding for each kind of (kind, line number): "2 lines with tabs (lines 3, 9)".

    It names five lines at most. where: what it begins with, such as "test: ".
    """
    findings = []
    for kind in dict.fromkeys(kind for kind, _ in found):
        numbers = [number for one, number in found if one == kind]
        s = "s" * (len(numbers) > 1)
        first = ", ".join(map(str, numbers[:5])) + ", …" * (len(numbers) > 5)
        findings.append(f"{where}{len(numbers):,} line{s} {kind} (line{s} {first})")
    return findings


def read_columns(lines, columns, quotes, path, bad):
    """{number of a line: its two chosen texts}, and findings.

    A line with a fault goes to bad, {its number: the fault}; one that names columns is
    left out. columns and quotes are those of `load_tsv`. Raises ValueError for others,
    and where a column of numbers is chosen beside others with text.
    """
    require_one_of("quotes", quotes, ("auto", "keep"))
    places, found = _choose(columns, lines[0], path), []
    fields = [line.split("\t") for line in lines]
    marked = [n for n, line in enumerate(lines) if '"' in line]
    excel = [n for n in marked if all(map(EXCEL.fullmatch, fields[n]))]
    if quotes == "auto" and len(excel) >= 0.9 * len(marked):
        for n in excel:
            fields[n] = next(csv.reader([lines[n]], delimiter="\t"))
            found.append((TAKEN_AWAY, n + 1))
    usual, rows = statistics.mode(map(len, fields)), {}
    if sum(len(own) == 1 for own in fields) > max(2, 0.9 * len(fields)):
        raise ValueError(
            f"{path}: most lines have no tab. Two sentences with a tab between them "
            "were expected; a spreadsheet saves such a file as text with tabs"
        )
    for number, own in enumerate(fields, 1):
        if len(own) < max(places):
            few = f"too few columns, {len(own)} instead of at least {max(places)}"
            few += "; expected two sentences with a tab between them"
            bad.setdefault(number, few)
            continue
        rows[number] = tuple(own[place - 1] for place in places)
        if len(own) != usual:
            found.append((f"unlike most, which have {usual} columns", number))
    if columns and not all(str(column).isdecimal() for column in columns):
        rows.pop(1, None)
    alike = zip(*(own for own in fields if len(own) == usual), strict=True)
    text = [number for number, own in enumerate(alike, 1) if not are_numbers(own)]
    if len(text) > 1 and not {*places} <= {*text}:
        raise ValueError(
            f"{path}: of the columns {places[0]} and {places[1]}, one or both hold "
            f"numbers, or nothing. Columns {', '.join(map(str, text))} have text: "
            "choose by --columns SOURCE TARGET, in this order"
        )
    return rows, by_kind(found)


def _choose(columns, first_line, path):
    """The numbers of two columns, from 1, given so or by names; None: 1 and 2."""
    names = [name.strip(' "') for name in first_line.split("\t")]
    wanted = [str(column) for column in columns or (1, 2)]
    known = {name: n for n, name in enumerate(names, 1) if names.count(name) < 2}
    places = [int(one) if one.isdecimal() else known.get(one, 0) for one in wanted]
    if len(places) == len({*places}) == 2 and min(places) > 0:
        return places
    raise ValueError(
        "--columns must be two numbers from 1, such as 2 4, or two names in the first "
        f"line of {path} ({', '.join(names)}), got {' '.join(wanted)}"
    )


def is_header(sides, languages) -> bool:
    """Whether the two sides of the first line name columns, as "French", "English"."""
    known = HEADER.union(languages)
    words = [re.findall(r"[^\W\d_]+", side.lower()) for side in sides]
    return len(words) == 2 and all(own and known.issuperset(own) for own in words)


def same_text(text) -> str:
    """A text to compare: small letters, no spaces, each character in one form."""
    return "".join(unicodedata.normalize("NFKC", text).lower().split())


def without_repeats(splits):
    """Splits that share no pair, each pair of train once; and findings.

    A pair stays in test, else in valid. What repeats within these two stays as well, so
    that their scores compare with published ones. Raises ValueError if one stays empty.
    """
    kept, first, findings = {name: [] for name in splits}, {}, []
    for split in ("test", "valid", "train"):
        repeats = []
        for pair in splits.get(split, ()):
            other = first.get(pair[:2])
            if other is None or other == split != "train":
                kept[split].append(pair)
                first[pair[:2]] = split
            else:
                who = "an earlier line" if other == split else other
                repeats.append((f"left out: a pair that {who} has", pair.line))
        findings += by_kind(repeats, f"{split}: " * (len(splits) > 1))
    if empty := [split for split in splits if not kept[split]]:
        raise ValueError(f"no pair is left for {empty[0]}; {'; '.join(findings)}")
    return kept, findings


def without_long(corpus, src_vocab, tgt_vocab, most):
    """A corpus without pairs of more than `most` pieces on a side, and findings.

    In test they stay, so that a score is of the whole split: a source that is too long
    counts as an empty translation. Raises ValueError if no other pair is left.
    """
    splits, findings = {}, []
    for split, pairs in corpus.splits.items():
        vocabs = [src_vocab] if split == "test" else [src_vocab, tgt_vocab]
        fate = "counted as an empty translation" if split == "test" else "left out"
        kind, found, splits[split] = f"of more than {most} pieces {fate}", [], []
        for pair in pairs:
            if long := any(map(is_long, pair, vocabs, repeat(most))):
                found.append((kind, pair.line))
            if not long or split == "test":
                splits[split].append(pair)
        findings += by_kind(found, f"{split}: ")
        if pairs and not splits[split]:
            raise ValueError(f"{findings[-1]}: no pair is left")
    return replace(corpus, splits=splits), findings


def is_long(text, vocab, most) -> bool:
    """Whether a text has more than `most` pieces; each writes a byte at least."""
    return len(text.encode()) >= most and len(vocab.encode(text).ids) > most


def are_numbers(texts) -> bool:
    """Whether most of the texts have no letter, as numbers of sentences have none."""
    return 2 * sum(LETTER.search(text) is None for text in texts) > len(texts)


def check_pairs(pairs, languages) -> list[str]:
    """Findings about pairs of texts in two languages, (source, target).

    Raises ValueError if most have the same text on both sides.
    """
    found = []
    if 2 * sum(pair.source == pair.target for pair in pairs) > len(pairs):
        raise ValueError("most pairs have the same text on both sides: name two texts")
    for pair in pairs:
        if ENTITY.search(f"{pair.source} {pair.target}"):
            found.append(("with HTML entities such as &amp;", pair.line))
        if pair.source == pair.target:
            found.append(("with the same text on both sides", pair.line))
    sides = list(zip(*pairs[:: 1 + len(pairs) // LOOKED_AT], strict=True))[:2]
    findings = by_kind(found)
    for side, lang, texts in zip(("source", "target"), languages, sides, strict=True):
        if seen := _seems_to_be(texts, lang):
            findings.append(
                f"the {side}, {language_name(lang)}, seems to be in {seen}: are "
                "--source, --target and the order of the columns or files right?"
            )
    lengths = [list(map(len, texts)) for texts in sides]
    vary = all(statistics.pstdev(own) > statistics.mean(own) / 4 for own in lengths)
    if len(pairs) >= FEW_LINES and vary:  # a file sorted by length has few lengths
        if (alike := statistics.correlation(*lengths)) < 0.2:
            findings.append(
                "short sources don't have short targets (their lengths correlate by "
                f"{alike:.2f}): does each line stand beside its own translation?"
            )
    return findings


def _seems_to_be(texts, lang):
    """The letters or the language that texts are in, if known not to be lang's."""
    if are_numbers(texts):
        return "numbers"
    letters = LETTER.findall("".join(texts))
    script = statistics.mode(unicodedata.name(one, "?").split()[0] for one in letters)
    if script not in LETTERS.get(lang, script).split():
        return f"{script.capitalize()} letters"
    if lang not in FREQUENT:
        return None
    words = Counter(re.findall(r"\w+", " ".join(texts).lower()))
    counts = {k: sum(words[word] for word in FREQUENT[k].split()) for k in FREQUENT}
    best = max(counts, key=counts.get)
    return language_name(best) if counts[best] >= max(10, 2 * counts[lang]) else None
