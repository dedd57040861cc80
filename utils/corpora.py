"""Corpora: the Village, Multi30k, and tab-separated files of one's own.

A corpus is split when it is loaded. Every fault of a file is said with its line.
"""

import random
import sys
from functools import cache
from itertools import permutations
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
from utils.languages import check_language, language_name, look_swapped
from utils.text import tokenize

VILLAGE_FOLDER = Path(__file__).resolve().parent.parent / "data" / "village"
VILLAGE_COLUMNS = ["en", "fr", "zh", "en-fr", "en-zh", "fr-zh", "tags"]
VILLAGE_SPLITS = ("train", "valid", "test", "long")
HELD_OUT = ("valid", "test")
MULTI30K_URL = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw/"
)
MULTI30K_SPLITS = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
MULTI30K_SHA256 = {
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
    "test_2016_flickr.de.gz": (
        "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"
    ),
    "test_2016_flickr.en.gz": (
        "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"
    ),
    "test_2016_flickr.fr.gz": (
        "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"
    ),
}


def check_direction(source: str, target: str, languages) -> None:
    """ValueError unless source and target are two different ones of languages."""
    known = ", ".join("→".join(pair) for pair in permutations(languages, 2))
    if source not in languages or target not in languages:
        raise ValueError(f"unknown direction {source}→{target}: choose one of {known}")
    check_two(source, target, f": choose one of {known}")


def check_two(source: str, target: str, advice="") -> None:
    """ValueError unless source and target are codes of two languages."""
    if check_language(source) == check_language(target):
        raise ValueError(f"source and target are both {language_name(source)}{advice}")


# The Village corpus


def load_village(source="en", target="fr", folder=None) -> Corpus:
    """The Village corpus, shipped in data/village, with gold alignments.

    Any two of en, fr, zh. Splits: train, valid, test, long. Links are written `0-3`
    (sure) or `0?3` (possible). Files are checked against the SHA256SUMS beside their
    folder. Raises ValueError for an unknown direction or a damaged file,
    FileNotFoundError for a missing one.
    """
    check_direction(source, target, VILLAGE_COLUMNS[:3])
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
    if lines[0].split("\t") != VILLAGE_COLUMNS:
        raise ValueError(
            f"{path}, line 1: expected the columns {' '.join(VILLAGE_COLUMNS)}, "
            "with tabs between them"
        )
    forward = f"{source}-{target}" in VILLAGE_COLUMNS
    links = f"{source}-{target}" if forward else f"{target}-{source}"
    columns = [VILLAGE_COLUMNS.index(name) for name in (source, target, links, "tags")]
    return [
        _village_pair(line.split("\t"), columns, forward, f"{path}, line {number}")
        for number, line in enumerate(lines[1:], 2)
    ]


def _village_pair(fields, columns, forward, where):
    if len(fields) != len(VILLAGE_COLUMNS):
        expected = len(VILLAGE_COLUMNS)
        raise ValueError(f"{where}: {len(fields)} columns, expected {expected}")
    source, target, links, tags = (fields[column] for column in columns)
    pair = Pair(
        tuple(map(sys.intern, source.split())),  # each word once in memory
        tuple(map(sys.intern, target.split())),
        tags=_read_tags(tags),
    )
    if not pair.source or not pair.target:
        raise ValueError(f"{where}: a sentence is empty; each column needs one")
    return with_links(pair, links, where, forward)


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
    for split, stem in MULTI30K_SPLITS.items():
        sides = [multi30k_lines(split, lang) for lang in (source, target)]
        if len(sides[0]) != len(sides[1]):
            raise ValueError(
                f"{stem}.{source}.gz has {len(sides[0])} lines and "
                f"{stem}.{target}.gz has {len(sides[1])}: line n of one must "
                "translate line n of the other"
            )
        splits[split] = [
            Pair(tuple(tokenize(a, source)), tuple(tokenize(b, target)))
            for a, b in zip(*sides, strict=True)
        ]
    references = {split: multi30k_lines(split, target) for split in HELD_OUT}
    return Corpus("Multi30k", source, target, splits, references=references)


def multi30k_lines(split: str, lang: str) -> list[str]:
    """The sentences of a split (train, valid or test) as they were written."""
    path = multi30k_file(f"{MULTI30K_SPLITS[split]}.{lang}.gz")
    return decode_lines(read_bytes(path), path)


def multi30k_file(name: str) -> Path:
    """The path of a file of Multi30k: the user's own, or a download."""
    if name not in MULTI30K_SHA256:
        known = ", ".join(MULTI30K_SHA256)
        raise ValueError(f"{name!r} is no file of Multi30k, which has {known}")
    folder = data_folder()
    own = folder and folder / "multi30k" / name
    if own and own.is_file():
        advice = "This is your own file, so it was left as it is: replace or remove it."
        check_sha256(read_bytes(own), MULTI30K_SHA256[name], own, advice)
        return own
    path = cache_folder() / "multi30k" / name
    return download(MULTI30K_URL + name, MULTI30K_SHA256[name], path)


# Tatoeba and other tab-separated files


def load_tsv(
    path,
    source="en",
    target="fr",
    columns=None,
    valid=None,
    test=None,
    seed=0,
    limit=None,
    skip_bad_lines=False,
) -> Corpus:
    """A tab-separated file of sentence pairs, such as Tatoeba's, split by seed.

    path: .txt, .tsv or .gz; a relative path is also looked up in the folder that the
    environment variable LEARNING_TO_ALIGN_DATA names. columns: the languages of the
    file's first two columns, (source, target) when None; one more column (attribution)
    is ignored. limit: only so many lines, the first. valid, test: pairs in these
    splits; None for a tenth of all, 1000 at most, or a little less where sentences
    repeat. Pairs that share a source or a target sentence share a split. Languages
    without spaces are cut into characters; Chinese isn't, where a line is segmented.
    Raises ValueError for numbers out of range, for columns that look swapped (unless
    `columns` says that they aren't) and, naming file and line, for bad lines. With
    skip_bad_lines, those are left out: not UTF-8, too long, empty, with a wrong number
    of columns or an empty side (corpus.skipped says why, by their numbers, from 1).
    """
    order = _tsv_columns(source, target, columns)
    if limit is not None:
        require_whole("limit", limit, 1, " line, or None for all")
    for name, size in (("valid", valid), ("test", test)):
        if size is not None:
            require_whole(name, size, 0)
    path = find_file(path)
    skipped = {} if skip_bad_lines else None
    lines = decode_lines(read_bytes(path), path, skipped)[:limit]
    width = next((n for n in map(_tsv_width, lines) if n in (2, 3)), 2)
    pairs, texts = [], {}
    for number, line in enumerate(lines, 1):
        if skip_bad_lines and number in skipped:
            continue
        try:
            sides = _tsv_sides(line, width, order)
        except ValueError as error:
            if not skip_bad_lines:
                raise ValueError(f"{path}, line {number}: {error}") from error
            skipped[number] = str(error)
        else:
            pairs.append(Pair(sides[source], sides[target]))
            texts[id(pairs[-1])] = line.split("\t")[order.index(target)].strip()
    if columns is None and look_swapped(pairs, source, target):
        raise ValueError(
            f"{path}: the first column should be {language_name(source)} and the "
            f"second {language_name(target)}, and they look swapped. Say which is "
            f"which: columns=({target!r}, {source!r}), or columns=({source!r}, "
            f"{target!r}) if they are right as they are"
        )
    splits = split_pairs(pairs, {"valid": valid, "test": test}, seed)
    references = {name: [texts[id(p)] for p in splits[name]] for name in HELD_OUT}
    return Corpus(path.name, source, target, splits, skipped or {}, references)


def _tsv_width(line):
    return 1 + line.count("\t")


def _tsv_columns(source, target, columns):
    check_two(source, target)
    if columns is None:
        return source, target
    if sorted(map(str, columns)) != sorted((source, target)):
        raise ValueError(
            f"columns names the languages of the first two columns, {source!r} and "
            f"{target!r} in the order of the file, got {columns!r}"
        )
    return tuple(columns)


def _tsv_sides(line, width, columns):
    if not line.strip():
        raise ValueError("the line is empty; remove it")
    fields = line.split("\t")
    if len(fields) != width:
        raise ValueError(
            f"wrong number of columns, {len(fields)} instead of {width}; "
            "expected two sentences with a tab between them (and a third column in all "
            "lines or in none)"
        )
    sides = {
        lang: tuple(map(sys.intern, tokenize(field, lang)))  # each word once in memory
        for lang, field in zip(columns, fields, strict=False)
    }
    for lang, side in sides.items():
        if not side:
            raise ValueError(f"the {lang} side is empty; both need a sentence")
    return sides


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
