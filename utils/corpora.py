"""Corpora: the Village, Multi30k, and files of one's own.

A corpus is split when it is loaded. Every fault of a file is said with its line. The
options that errors name are those of `python -m utils.train`.
"""

import random
import sys
from pathlib import Path

from utils import data_check, files
from utils.data import Corpus, Pair
from utils.gold import with_links
from utils.guards import require_whole
from utils.languages import check_language, language_name

VILLAGE_FOLDER = Path(__file__).resolve().parent.parent / "data" / "village"
VILLAGE_LANGS = ("en", "fr", "zh")
VILLAGE_SPLITS = ("train", "valid", "test", "long")
HELD_OUT = ("valid", "test")
MULTI30K_URL = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
)
MULTI30K_SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
MULTI30K_SHA256 = files.read_sums(VILLAGE_FOLDER.parent / "multi30k.sha256")


def check_direction(source: str, target: str, languages=None) -> tuple[str, str]:
    """Both codes; ValueError unless they are of two languages, among `languages`."""
    if languages and not (source in languages and target in languages):
        known = ", ".join(languages)
        raise ValueError(f"unknown direction {source}→{target}: choose two of {known}")
    if check_language(source) == check_language(target):
        raise ValueError(f"source and target are both {language_name(source)}")
    return source, target


# The Village corpus


def load_village(source="en", target="fr") -> Corpus:
    """The Village corpus, shipped in data/village, with gold alignments.

    Any two of en, fr, zh. Splits: train, valid, test, long. Links are written `0-3`
    (sure) or `0?3` (possible). Files are checked against the SHA256SUMS beside their
    folder. Raises ValueError for an unknown direction or a damaged file.
    """
    check_direction(source, target, VILLAGE_LANGS)
    sums, splits = files.read_sums(VILLAGE_FOLDER.parent / "SHA256SUMS"), {}
    for split in VILLAGE_SPLITS:
        path = VILLAGE_FOLDER / f"{split}.tsv.gz"
        sha256 = sums.get(f"village/{path.name}")
        advice = "Restore the file, or run data/village/generate.py."
        lines = files.read_lines(path, sha256=sha256, advice=advice)
        splits[split] = _village_pairs(lines, path, source, target)
    return Corpus("Village", source, target, splits)


def _village_pairs(lines, path, source, target):
    names, pairs = lines[0].split("\t"), []
    forward = f"{source}-{target}" in names
    links = f"{source}-{target}" if forward else f"{target}-{source}"
    for number, line in enumerate(lines[1:], 2):
        fields = dict(zip(names, line.split("\t"), strict=True))
        sides = (fields[lang].split() for lang in (source, target))
        sides = (tuple(map(sys.intern, words)) for words in sides)  # each word once
        tags = frozenset(map(sys.intern, filter(None, fields["tags"].split(","))))
        pair = Pair(*sides, tags=tags)
        pairs.append(with_links(pair, fields[links], f"{path}, line {number}", forward))
    return pairs


# Multi30k


def load_multi30k(source="de", target="en") -> Corpus:
    """Multi30k image captions: two of de, en, fr; splits train, valid, test (2016).

    Files are read from the folder multi30k in the folder that the environment variable
    LEARNING_TO_ALIGN_DATA names, else downloaded once into a cache. All are checked
    against their SHA-256 checksums. Raises ValueError for an unknown direction or a
    damaged file, ConnectionError where a file can't be downloaded.
    """
    check_direction(source, target, ("de", "en", "fr"))
    splits = {}
    for split, name in MULTI30K_SPLITS.items():
        sides = (_multi30k_lines(f"{name}.{lang}.gz") for lang in (source, target))
        rows = enumerate(zip(*sides, strict=True), 1)
        splits[split] = [Pair(*texts, line=number) for number, texts in rows]
    return Corpus("Multi30k", source, target, splits)


def _multi30k_lines(name):
    """The lines of a file of Multi30k: the user's own, or a download."""
    sha256, folder = MULTI30K_SHA256[name], files.data_folder()
    own = folder and folder / "multi30k" / name
    if own and own.is_file():
        advice = "This is your own file, so it was left as it is: replace or remove it."
        return files.read_lines(own, sha256=sha256, advice=advice)
    path = files.CACHE / "multi30k" / name
    return files.read_lines(files.download(MULTI30K_URL + name, sha256, path))


# Files of one's own


def load_tsv(
    path,
    source="en",
    target="fr",
    columns=None,
    held_out=None,
    skip_bad_lines=False,
    quotes="auto",
) -> Corpus:
    """A tab-separated file of sentence pairs, such as Tatoeba's, split by a fixed seed.

    path: .txt, .tsv or .gz; a relative path is also looked up in the folder that the
    environment variable LEARNING_TO_ALIGN_DATA names. columns: those of source and
    target, by number from 1, or by the names that the first line gives them; None for
    the first two. held_out: pairs in each of valid and test; None for a tenth of all,
    1000 at most, or a little less where sentences repeat. A repeated pair is taken
    once; pairs that share a source or a target sentence share a split. quotes: "keep"
    the quotation marks round columns; "auto" takes away those of Excel. corpus.findings
    says what was done, and what may be wrong. Raises ValueError for options out of
    range, UTF-16 and columns of numbers and, naming file and line, for bad lines. With
    skip_bad_lines, those are left out: not UTF-8, too long, columns or a side missing.
    """
    languages, path, bad = check_direction(source, target), files.find_file(path), {}
    lines = files.read_lines(path, bad)
    rows, findings = data_check.read_columns(lines, columns, quotes, path, bad)
    read = {"train": (rows, path, bad)}
    return _make(path.name, languages, read, held_out, skip_bad_lines, findings)


def load_parallel(
    train,
    valid=None,
    test=None,
    source="en",
    target="fr",
    held_out=None,
    skip_bad_lines=False,
) -> Corpus:
    """Pairs of files with a sentence a line: the source's, and its translations.

    train, valid, test: two files each, found, read and checked as by `load_tsv`. A
    split without files is cut from train: held_out pairs, or a tenth as there. What
    repeats in train, or is in test or valid as well, is left out of it. Raises
    ValueError as `load_tsv` does, and unless both files have as many lines.
    """
    languages, read = check_direction(source, target), {}
    for split, given in {"train": train, "valid": valid, "test": test}.items():
        if given is None:
            continue
        if isinstance(given, str) or len(given) != 2:
            raise ValueError(f"{split} must be two files, got {given!r}")
        paths, bad = list(map(files.find_file, given)), {}
        sides = [files.read_lines(one, bad) for one in paths]
        where, lengths = " and ".join(map(str, paths)), list(map(len, sides))
        if lengths[0] != lengths[1]:
            raise ValueError(
                f"{where} have {lengths[0]:,} and {lengths[1]:,} lines: each line "
                "needs its translation in the same line of the other file"
            )
        read[split] = dict(enumerate(zip(*sides, strict=True), 1)), where, bad
    name = ", ".join(Path(file).name for file in train)
    return _make(name, languages, read, held_out, skip_bad_lines)


def _make(name, languages, read, held_out, skip_bad_lines, findings=()):
    """A Corpus of what was read of each split; those that lack are cut from train."""
    splits, findings = {}, [*findings]
    for split, (rows, where, bad) in read.items():
        splits[split], found = _read_pairs(rows, where, languages, bad, skip_bad_lines)
        findings += [f"{split}: " * (len(read) > 1) + finding for finding in found]
    splits, repeats = data_check.without_repeats(splits)
    names = [split for split in HELD_OUT if split not in splits]
    if held_out and not names:
        raise ValueError("held_out cuts splits from train, and both others are given")
    splits |= split_pairs(splits["train"], names, held_out)
    splits = {split: splits[split] for split in ("train", *HELD_OUT)}
    return Corpus(name, *languages, splits, findings + repeats)


def _read_pairs(rows, where, languages, bad, skip_bad_lines):
    """Pairs, and findings, of {number of a line: two texts}; bad: {number: its fault}.

    Without skip_bad_lines, the first fault is raised.
    """
    findings = []
    if data_check.is_header(rows.get(1, ()), languages):
        names = " and ".join(rows.pop(1))
        findings.append(f"line 1 left out: it names columns, {names}")
    for number, row in rows.items():
        for lang, text in zip(languages, row, strict=True):
            if not any(c.isprintable() and not c.isspace() for c in text):
                fault = f"the {lang} side is empty; both need a sentence"
                bad.setdefault(number, fault)
    reasons = []
    for number, fault in sorted(bad.items()):
        if not skip_bad_lines:
            advice = "--skip-bad-lines leaves such lines out"
            raise ValueError(f"{where}, line {number}: {fault}; {advice}")
        reasons.append((f"left out: {fault.split(';')[0].split(' (')[0]}", number))
    findings += data_check.by_kind(reasons)
    pairs = [Pair(*row, line=n) for n, row in rows.items() if n not in bad]
    if not pairs:
        raise ValueError(f"{where}: no pair is left; {'; '.join(findings)}")
    return pairs, findings + data_check.check_pairs(pairs, languages)


def split_pairs(pairs: list[Pair], names=HELD_OUT, size=None, seed=0) -> dict:
    """Cut splits of these names and this size at random; what is left is "train".

    Pairs that share a source or a target sentence, directly or through other pairs,
    go to the same split. The order within a split is that of pairs. A size of None: a
    tenth of the pairs, 1000 at most, or less where so many share sentences.
    """
    wanted = max(1, min(1000, len(pairs) // 10)) if size is None else size
    require_whole("held_out", wanted, 0)
    groups = _connected(pairs)
    random.Random(seed).shuffle(groups)
    splits = {split: [] for split in ("train", *names)}
    for group in groups:
        fits = (split for split in names if len(splits[split]) + len(group) <= wanted)
        splits[next(fits, "train")] += group
    enough = dict.fromkeys(names, 1 if size is None else size) | {"train": 1}
    for split, own in splits.items():
        if len(own) < enough[split]:
            raise ValueError(
                f"{len(pairs)} pairs in {len(groups)} groups that share no sentence "
                f"are too few for splits {' and '.join(names)} of {wanted} and a "
                "training split: give more pairs, or a smaller --held-out"
            )
        splits[split] = [pairs[i] for i in sorted(own)]
    return splits


def _connected(pairs):
    """Positions of pairs, in groups connected by equal sources or targets."""
    from networkx.utils import UnionFind  # which torch brings; it takes a while

    sides = (map(data_check.same_text, pair[:2]) for pair in pairs)
    keys = [tuple(enumerate(texts)) for texts in sides]  # (0, source), (1, target)
    known, groups = UnionFind(), {}
    for key in keys:
        known.union(*key)
    for i, (source, _) in enumerate(keys):
        groups.setdefault(known[source], []).append(i)
    return list(groups.values())
