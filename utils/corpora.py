"""Corpora: the Village, Multi30k, and tab-separated files of one's own.

A corpus is split when it is loaded. Every fault of a file is said with its line.
"""

import random
import sys
from functools import cache
from pathlib import Path

from utils.data import Corpus, Pair
from utils.files import (
    cache_folder,
    check_sha256,
    data_folder,
    decode_lines,
    download,
    find_file,
    read_bytes,
    read_sums,
)
from utils.gold import with_links
from utils.guards import require_whole
from utils.languages import check_language, language_name
from utils.text import tokenize

VILLAGE_FOLDER = Path(__file__).resolve().parent.parent / "data" / "village"
VILLAGE_LANGS = ("en", "fr", "zh")
VILLAGE_SPLITS = ("train", "valid", "test", "long")
HELD_OUT = ("valid", "test")
MULTI30K_URL = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
)
MULTI30K_SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
MULTI30K_SHA256 = read_sums(VILLAGE_FOLDER.parent / "multi30k.sha256")


def check_direction(source: str, target: str, languages=None) -> None:
    """ValueError unless these are codes of two languages, of `languages` if given."""
    if languages and not (source in languages and target in languages):
        known = ", ".join(languages)
        raise ValueError(f"unknown direction {source}→{target}: choose two of {known}")
    if check_language(source) == check_language(target):
        raise ValueError(f"source and target are both {language_name(source)}")


# The Village corpus


def load_village(source="en", target="fr", folder=None) -> Corpus:
    """The Village corpus, shipped in data/village, with gold alignments.

    Any two of en, fr, zh. Splits: train, valid, test, long. Links are written `0-3`
    (sure) or `0?3` (possible). Files are checked against the SHA256SUMS beside their
    folder. Raises ValueError for an unknown direction or a damaged file,
    FileNotFoundError for a missing one.
    """
    check_direction(source, target, VILLAGE_LANGS)
    folder = VILLAGE_FOLDER if folder is None else Path(folder)
    sums = read_sums(folder.parent / "SHA256SUMS")
    splits = {}
    for split in VILLAGE_SPLITS:
        path = folder / f"{split}.tsv.gz"
        data = read_bytes(path)
        expected = sums.get(f"{folder.name}/{path.name}")
        if expected is not None:
            advice = "Restore the file, or run data/village/generate.py."
            check_sha256(data, expected, path, advice)
        splits[split] = _village_pairs(decode_lines(data, path), path, source, target)
    return Corpus("Village", source, target, splits)


def _village_pairs(lines, path, source, target):
    names, pairs = lines[0].split("\t"), []
    forward = f"{source}-{target}" in names
    links = f"{source}-{target}" if forward else f"{target}-{source}"
    for number, line in enumerate(lines[1:], 2):
        fields = dict(zip(names, line.split("\t"), strict=True))
        sides = (_once(fields[lang].split()) for lang in (source, target))
        pair = Pair(*sides, tags=_read_tags(fields["tags"]))
        where = f"{path}, line {number}"
        pairs.append(with_links(pair, fields[links], where, forward))
    return pairs


def _once(words):
    return tuple(map(sys.intern, words))  # each word once in memory


@cache  # lines share most of their tags: each is kept once
def _read_tags(tags):
    return frozenset(map(sys.intern, filter(None, tags.split(","))))


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
    for split in MULTI30K_SPLITS:
        sides = (multi30k_lines(split, lang) for lang in (source, target))
        splits[split] = list(map(Pair, *sides))
    return Corpus("Multi30k", source, target, splits)


def multi30k_lines(split: str, lang: str) -> list[str]:
    """The sentences of a split (train, valid or test) as they were written."""
    path = multi30k_file(f"{MULTI30K_SPLITS[split]}.{lang}.gz")
    return decode_lines(read_bytes(path), path)


def multi30k_file(name: str) -> Path:
    """The path of a file of Multi30k: the user's own, or a download."""
    sha256 = MULTI30K_SHA256[name]
    folder = data_folder()
    own = folder and folder / "multi30k" / name
    if own and own.is_file():
        advice = "This is your own file, so it was left as it is: replace or remove it."
        check_sha256(read_bytes(own), sha256, own, advice)
        return own
    path = cache_folder() / "multi30k" / name
    return download(MULTI30K_URL + name, sha256, path)


# Tatoeba and other tab-separated files


def load_tsv(
    path,
    source="en",
    target="fr",
    columns=None,
    valid=None,
    test=None,
    seed=0,
    skip_bad_lines=False,
) -> Corpus:
    """A tab-separated file of sentence pairs, such as Tatoeba's, split by seed.

    path: .txt, .tsv or .gz; a relative path is also looked up in the folder that the
    environment variable LEARNING_TO_ALIGN_DATA names. columns: the languages of the
    file's first two columns, (source, target) when None; one more column (attribution)
    is ignored. valid, test: pairs in these splits; None for a tenth of all, 1000 at
    most, or a little less where sentences repeat. Pairs that share a source or a target
    sentence share a split. Languages without spaces are cut into characters; Chinese
    isn't, where a line is segmented. Raises ValueError for numbers out of range and,
    naming file and line, for bad lines. With skip_bad_lines, those are left out: not
    UTF-8, too long, empty, with a wrong number of columns or an empty side
    (corpus.skipped says why, by their numbers, from 1).
    """
    check_direction(source, target)
    order = (source, target) if columns is None else tuple(columns)
    if sorted(map(str, order)) != sorted((source, target)):
        raise ValueError(
            f"columns names the languages of the first two columns, {source!r} and "
            f"{target!r} in the order of the file, got {columns!r}"
        )
    for name, size in (("valid", valid), ("test", test)):
        if size is not None:
            require_whole(name, size, 0)
    path, skipped = find_file(path), {}
    lines = decode_lines(read_bytes(path), path, skipped)
    width = next((n for n in map(_tsv_width, lines) if n in (2, 3)), 2)
    pairs, texts = [], {}
    for number, line in enumerate(lines, 1):
        fault = skipped.get(number) or _tsv_fault(line, width)
        if not fault:
            sides = {
                lang: _once(tokenize(text, lang))
                for lang, text in zip(order, line.split("\t"), strict=False)
            }
            pair = Pair(sides[source], sides[target])
            empty = [lang for lang in order if not sides[lang]]
            fault = empty and f"the {empty[0]} side is empty; both need a sentence"
        if not fault:
            pairs.append(pair)
            texts[id(pair)] = line.split("\t")[order.index(target)].strip()
        elif skip_bad_lines:
            skipped[number] = fault
        else:
            raise ValueError(f"{path}, line {number}: {fault}")
    splits = split_pairs(pairs, {"valid": valid, "test": test}, seed)
    references = {name: [texts[id(p)] for p in splits[name]] for name in HELD_OUT}
    return Corpus(path.name, source, target, splits, skipped, references)


def _tsv_width(line):
    return 1 + line.count("\t")


def _tsv_fault(line, width):
    """What is wrong with a line before its sentences are read, or None."""
    if not line.strip():
        return "the line is empty; remove it"
    if _tsv_width(line) == width:
        return None
    return (
        f"wrong number of columns, {_tsv_width(line)} instead of {width}; expected two "
        "sentences with a tab between them (and a third column in all lines or in none)"
    )


def split_pairs(pairs: list[Pair], sizes: dict[str, int | None], seed=0) -> dict:
    """Cut splits of the given sizes from pairs at random; what is left is "train".

    Pairs that share a source or a target sentence, directly or through other pairs,
    go to the same split. The order within a split is that of pairs. A size of None: a
    tenth of the pairs, 1000 at most, or less where so many share sentences.
    """
    groups = _connected(pairs)
    random.Random(seed).shuffle(groups)
    tenth = max(1, min(1000, len(pairs) // 10))
    wanted = {split: tenth if size is None else size for split, size in sizes.items()}
    chosen = {split: [] for split in ("train", *sizes)}
    for group in groups:
        fits = (s for s, size in wanted.items() if len(chosen[s]) + len(group) <= size)
        chosen[next(fits, "train")] += group
    for split, size in wanted.items():
        enough = 1 if sizes[split] is None else size
        if len(chosen[split]) < enough or not chosen["train"]:
            raise ValueError(
                f"{len(pairs)} pairs in {len(groups)} groups that share no sentence "
                f"are too few for a split {split!r} of {size} and a training split"
            )
    return {split: [pairs[i] for i in sorted(own)] for split, own in chosen.items()}


def _connected(pairs):
    """Positions of pairs, in groups connected by equal sources or targets."""
    parent = {}

    def root(side):
        while parent.setdefault(side, side) != side:
            parent[side] = parent[parent[side]]
            side = parent[side]
        return side

    for pair in pairs:
        parent[root(("source", pair.source))] = root(("target", pair.target))
    groups = {}
    for i, pair in enumerate(pairs):
        groups.setdefault(root(("source", pair.source)), []).append(i)
    return list(groups.values())
