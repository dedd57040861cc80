"""What is wrong with a text of one's own, or may be: said before anything is trained.

Each finding is a sentence for one kind, with the numbers of the first lines.
"""

import csv
import html
import re
import statistics
import unicodedata
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import compress

from utils.guards import require_one_of
from utils.languages import language_name

LOOKED_AT = 2000  # pairs, evenly spread, from which languages are guessed
FEW_LINES = 100  # too few to compare the lengths of their sides
ENTITY = re.compile(r"&(?:[A-Za-z]\w+|#\d+|#x[0-9A-Fa-f]+);")
LETTER = re.compile(r"[^\W\d_]")
FREQUENT = {  # some of a language's most frequent words
    "cs": "ale bych je jsem jsou na není se to že",
    "da": "af at blev det er hvad ikke jeg og til",
    "de": "das der die ein ich ist nicht sie und zu",
    "en": "a and are is of that the to was you",
    "es": "con el en es está los muy por una y",
    "fi": "en ei että hän ja minä mutta oli on se",
    "fr": "dans des est et je les ne pas une vous",
    "hu": "az csak egy ez hogy meg nem van volt és",
    "id": "adalah dan dengan di ini itu saya tidak untuk yang",
    "it": "che della di gli il non per sono un è",
    "nl": "dat de een en het ik is niet van zijn",
    "no": "av at ble det er hva ikke jeg og til",
    "pl": "do jest na nie się to w z że i",
    "pt": "com da em não o os para que um uma",
    "ro": "care cu din este la nu pe să un și",
    "sv": "att av det en inte jag och på som är",
    "tr": "bir bu çok da değil için ne o var ve",
    "vi": "có của không là một người này tôi và được",
}
LETTERS = {  # the letters a language is written in, as Unicode names them
    **dict.fromkeys(FREQUENT, "LATIN"),
    **dict.fromkeys(("be", "bg", "mk", "ru", "uk"), "CYRILLIC"),
    **dict.fromkeys(("ar", "fa", "ur"), "ARABIC"),
    **dict.fromkeys(("hi", "mr", "ne"), "DEVANAGARI"),
    **{"el": "GREEK", "he": "HEBREW", "ka": "GEORGIAN", "hy": "ARMENIAN"},
    **{"bn": "BENGALI", "ta": "TAMIL", "te": "TELUGU", "th": "THAI"},
    **{"zh": "CJK", "ja": "HIRAGANA KATAKANA CJK", "ko": "HANGUL"},
}
HEADER = set(
    "source target src tgt trg id sentence sentences translation text english french "
    "german spanish italian portuguese dutch turkish russian chinese japanese korean "
    "arabic hindi polish czech swedish finnish hungarian vietnamese thai".split()
)


def told(numbers, verb, what, noun="line") -> str:
    """A finding: "2 lines hold what (lines 3, 9)", with five numbers at most."""
    one = len(numbers) == 1
    first = ", ".join(map(str, numbers[:5])) + ", …" * (len(numbers) > 5)
    verb = verb + "s" * (one and verb != "")
    text = " ".join(filter(None, (noun + "s" * (not one), verb, what)))
    return f"{len(numbers):,} {text} (line{'s' * (not one)} {first})"


def skipped_lines(skipped) -> list[str]:
    """Findings of {number: what is wrong} for lines that were left out."""
    reasons = defaultdict(list)
    for number, fault in sorted(skipped.items()):
        reasons[fault.split(";")[0].split(" (")[0]].append(number)
    return [told(own, "", f"left out: {reason}") for reason, own in reasons.items()]


# Columns

QUOTES = ("auto", "undo", "keep")
_FIELD = r'(?:"(?:[^"\t]|"")*"|[^"\t]*)'  # as Excel writes one that has quotes
_EXCEL = re.compile(rf"{_FIELD}(?:\t{_FIELD})*")
_DOUBLED = re.compile(r'[^\t]""|""[^\t]')
_TAB_IN_QUOTES = re.compile(r'(?:^|\t)"[^"\t]*\t[^"\t]*"(?:\t|$)')


def read_columns(lines, columns, quotes, path):
    """The two chosen texts of each line, and findings.

    In place of two texts: what is wrong with a line, a str; () where it names columns.
    columns and quotes are those of `load_tsv`. Raises ValueError for others, and where
    a column of numbers is chosen beside others with text.
    """
    require_one_of("quotes", quotes, QUOTES)
    places, findings = _choose(columns, lines[0], path), []
    if quotes == "auto":
        quotes, findings = _find_quotes(lines)
    rows = [_pick(line, places, quotes == "undo") for line in lines]
    if columns and not str(columns[0]).isdecimal():
        rows[0] = ()
    widths = [1 + line.count("\t") for line in lines]
    usual = statistics.mode(widths)
    read = [n for n, row in enumerate(rows, 1) if isinstance(row, tuple)]
    if odd := [n for n in read if widths[n - 1] != usual]:
        findings.append(told(odd, "differ", f"from most, which have {usual} columns"))
    fields = (line.split("\t") for line in lines if 1 + line.count("\t") == usual)
    numbers = list(map(are_numbers, zip(*fields, strict=True)))
    if numbers.count(False) > 1 and any(numbers[i] for i in places if i < usual):
        text = " ".join(str(n) for n, own in enumerate(numbers, 1) if not own)
        raise ValueError(
            f"{path}: of the columns {places[0] + 1} and {places[1] + 1}, one or both "
            f"hold numbers. Columns with text: --columns {text}"
        )
    return rows, findings


def _choose(columns, first_line, path):
    """Positions of two columns, given by numbers from 1 or by names; None: 1 and 2."""
    names = [name.strip(' "') for name in first_line.split("\t")]
    wanted = [str(column) for column in columns or (1, 2)]
    if len({*wanted}) == len(wanted) == 2:
        if all(map(str.isdecimal, wanted)) and "0" not in wanted:
            return [int(number) - 1 for number in wanted]
        if all(name in names for name in wanted):
            return [names.index(name) for name in wanted]
    raise ValueError(
        "--columns must be two numbers from 1, such as 2 4, or two names in the first "
        f"line of {path} ({', '.join(names)}), got {' '.join(wanted)}"
    )


def _pick(line, places, undo_quotes):
    """The two texts of a line, or what is wrong with it as a str."""
    if not line.strip():
        return "the line is empty; remove it"
    fields = line.split("\t")
    if undo_quotes:
        try:
            (fields,) = csv.reader([line], delimiter="\t", strict=True)
        except csv.Error:
            return "quotation marks that don't match"
    elif _TAB_IN_QUOTES.search(line):
        return "a tab between quotation marks, where no column should end"
    if len(fields) <= max(places):
        return (
            f"too few columns, {len(fields)} instead of at least {max(places) + 1}; "
            "expected two sentences with a tab between them"
        )
    return tuple(fields[place] for place in places)


def _find_quotes(lines):
    """Whether to "undo" or to "keep" quotation marks round columns; and findings."""
    marked = {n: line for n, line in enumerate(lines, 1) if '"' in line}
    excel = {n: line for n, line in marked.items() if _EXCEL.fullmatch(line)}
    if not excel or 10 * len(excel) < 9 * len(marked):
        return "keep", []
    if 2 * len(excel) >= len(lines) or any(map(_DOUBLED.search, excel.values())):
        what = "quotation marks of Excel, now taken away; --quotes keep leaves them"
        return "undo", [told([*excel], "hold", what)]
    what = "a text in quotation marks; if they are Excel's, --quotes undo takes them"
    return "keep", [told([*excel], "hold", what)]


# Pairs


def is_header(sides, languages) -> bool:
    """Whether the two sides of the first line name columns, as "French", "English"."""
    known = HEADER | set(languages)
    words = [re.findall(r"[^\W\d_]+", side.lower()) for side in sides]
    return len(words) == 2 and all(own and {*own} <= known for own in words)


def same_text(text) -> str:
    """A text to compare: small letters, no spaces, each character in one form."""
    return "".join(unicodedata.normalize("NFKC", text).lower().split())


def without_repeats(splits):
    """Splits that share no pair, each pair of train once; and findings.

    A pair stays in test, else in valid. What repeats within these two stays as well, so
    that their scores can be compared with published ones. Raises ValueError if none is
    left in train.
    """
    kept, first, repeats = {name: [] for name in splits}, {}, defaultdict(list)
    for split in ("test", "valid", "train"):
        for pair in splits.get(split, ()):
            other = first.get(pair[:2])
            if other is None or other == split != "train":
                kept[split].append(pair)
                first[pair[:2]] = split
            else:
                repeats[split, other].append(pair.line)
    findings = []
    for (split, other), numbers in repeats.items():
        who = "an earlier line" if other == split else other
        finding = told(numbers, "", f"left out: a pair that {who} has")
        findings.append(f"{split}: {finding}" if len(splits) > 1 else finding)
    if not kept["train"]:
        raise ValueError(f"no pair is left to train on; {'; '.join(findings)}")
    return kept, findings


def without_long(corpus, src_vocab, tgt_vocab, most):
    """A corpus without pairs of more than `most` pieces on a side, and findings.

    In test they stay, so that a score is of the whole split: a source that is too long
    counts as an empty translation. Raises ValueError if no other pair is left.
    """
    splits, findings = {}, []
    for split, pairs in corpus.splits.items():
        vocabs = [src_vocab] if split == "test" else [src_vocab, tgt_vocab]
        fits = [
            not any(is_long(*side, most) for side in zip(pair, vocabs, strict=False))
            for pair in pairs
        ]
        long = [pair.line for pair, fit in zip(pairs, fits, strict=True) if not fit]
        fate = "counted as an empty translation" if split == "test" else "left out"
        splits[split] = pairs if split == "test" else [*compress(pairs, fits)]
        if long:
            what = f"of more than {most} pieces {fate}"
            findings.append(f"{split}: {told(long, '', what, 'pair')}")
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
    """Findings about pairs of texts in two languages, (source, target)."""
    findings = []
    if found := {pair.line: entity for pair in pairs if (entity := _entity(pair))}:
        what = f"HTML entities such as {next(iter(found.values()))}"
        findings.append(told([*found], "hold", what))
    if equal := [pair.line for pair in pairs if pair.source == pair.target]:
        findings.append(told(equal, "hold", "the same text on both sides"))
    some = pairs[:: 1 + len(pairs) // LOOKED_AT]
    sides = [[pair[side] for pair in some] for side in (0, 1)]
    findings += _check_languages(sides, languages)
    lengths = [[len(text) for text in texts] for texts in sides]
    if len(some) >= FEW_LINES and all(len({*own}) > 1 for own in lengths):
        if (alike := statistics.correlation(*lengths)) < 0.2:
            findings.append(
                "short sources don't have short targets (their lengths correlate by "
                f"{alike:.2f}): does each line stand beside its own translation?"
            )
    return findings


def _entity(pair):
    """The first HTML entity in a pair, or None."""
    found = ENTITY.findall(f"{pair.source} {pair.target}")
    return next((entity for entity in found if html.unescape(entity) != entity), None)


def _check_languages(sides, languages):
    """Findings about the texts of the source and of the target."""
    seen = list(map(_seems_to_be, sides, languages))
    if all(seen) and not any(map(_seems_to_be, sides, reversed(languages))):
        return [
            f"the source seems to be in {seen[0]} and the target in {seen[1]}: swap "
            "them, or --source and --target"
        ]
    return [
        f"the {side}, {language_name(lang)}, seems to be in {other}: is that right?"
        for side, lang, other in zip(("source", "target"), languages, seen, strict=True)
        if other
    ]


def _seems_to_be(texts, lang):
    """The letters or the language that texts are in, if these aren't lang's, or None.

    Of a language that stands in no table here, nothing is known but whether it has
    letters.
    """
    scripts = Counter()
    for character, count in Counter("".join(texts)).items():
        if LETTER.match(character):
            scripts[unicodedata.name(character, "?").split()[0]] += count
    if are_numbers(texts):
        return "numbers"
    script = max(scripts, key=scripts.get)
    if lang not in LETTERS or script not in LETTERS[lang].split():
        return f"{script.capitalize()} letters" if lang in LETTERS else None
    words = Counter(word for text in texts for word in re.findall(r"\w+", text.lower()))
    counts = {
        code: sum(words[word] for word in known.split())
        for code, known in FREQUENT.items()
    }
    best = max(counts, key=counts.get)
    found = script == "LATIN" and counts[best] >= max(10, 2 * counts[lang])
    return language_name(best) if found else None
