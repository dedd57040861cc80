"""Corpora: the Village, Multi30k, files of one's own; reading, checking, downloading.

A corpus is split when it is loaded. Every fault of a file is said with its line.
"""

import codecs
import contextlib
import gzip
import hashlib
import io
import os
import random
import sys
import zlib
from collections.abc import Iterable
from functools import cache
from itertools import permutations
from pathlib import Path

import pooch
from tqdm.auto import tqdm

from utils.data import Corpus, Pair
from utils.text import check_language, tokenize

DATA_VARIABLE = "LEARNING_TO_ALIGN_DATA"
LARGEST_FILE = 2**28  # bytes, unpacked: 256 MB, some three million pairs
LONGEST_LINE = 10_000  # characters
VILLAGE_FOLDER = Path(__file__).resolve().parent.parent / "data" / "village"
VILLAGE_COLUMNS = ["en", "fr", "zh", "en-fr", "en-zh", "fr-zh", "tags"]
VILLAGE_SPLITS = ("train", "valid", "test", "long")
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


# Files


def read_bytes(path: Path) -> bytes:
    """The content of a file, of at most LARGEST_FILE bytes.

    Raises FileNotFoundError if there is none, ValueError if it is larger, in words.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    with path.open("rb") as file:
        return _read_limited(file, path)


def _read_limited(file, path):
    parts, left = [], LARGEST_FILE
    while part := file.read(2**20):
        parts.append(part)
        left -= len(part)
        if left < 0:
            raise ValueError(
                f"{path} holds more than {LARGEST_FILE // 2**20} MB of text, which is "
                "the most that is read: take its first lines as a file of their own"
            )
    return b"".join(parts)


def decode_lines(data: bytes, path: Path) -> list[str]:
    """The lines of a UTF-8 file, gzipped if path ends in .gz, without line ends.

    A byte-order mark and Windows line ends are accepted. Raises ValueError, naming
    file and line, for other encodings, an empty or endless line, an empty, damaged or
    too large file.
    """
    if path.suffix == ".gz":
        try:
            with gzip.open(io.BytesIO(data)) as file:
                data = _read_limited(file, path)
        except (OSError, EOFError, zlib.error) as error:
            raise ValueError(f"{path} is not a complete gzip file: {error}") from error
    data = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}); "
            "save the file with the encoding UTF-8"
        ) from error
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if lines == [""]:
        raise ValueError(f"{path} is empty: expected one sentence a line")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ValueError(f"{path}, line {number}: the line is empty; remove it")
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"{path}, line {number}: {len(line):,} characters; a line "
                f"may have {LONGEST_LINE:,}: no sentence has as many"
            )
    return lines


def check_sha256(data: bytes, expected: str, path: Path, advice: str) -> None:
    """ValueError naming path and both checksums if data has another SHA-256."""
    found = hashlib.sha256(data).hexdigest()
    if found != expected:
        raise ValueError(
            f"{path} has the SHA-256 checksum {found}, expected {expected}. {advice}"
        )


def data_folder() -> Path | None:
    """The folder of the user's own data files, named by an environment variable."""
    name = os.environ.get(DATA_VARIABLE)
    if not name:
        return None
    folder = Path(name).expanduser()
    if not folder.is_dir():
        raise FileNotFoundError(
            f"the environment variable {DATA_VARIABLE} names {name}, "
            "which is no folder: name one that exists, or unset the variable"
        )
    return folder


def check_direction(source: str, target: str, languages: Iterable[str]) -> None:
    """ValueError unless source and target are two different ones of languages."""
    languages = list(languages)
    if source == target or not {source, target} <= set(languages):
        known = ", ".join("→".join(pair) for pair in permutations(languages, 2))
        raise ValueError(f"unknown direction {source}→{target}: choose one of {known}")


# The Village corpus


def load_village(source="en", target="fr", folder=None) -> Corpus:
    """The Village corpus, shipped in data/village, with gold alignments.

    Any two of en, fr, zh. Splits: train, valid, test, long. Files are checked against
    the SHA256SUMS beside their folder. Raises ValueError for an unknown direction or
    a damaged file, FileNotFoundError for a missing one.
    """
    check_direction(source, target, VILLAGE_COLUMNS[:3])
    folder = VILLAGE_FOLDER if folder is None else Path(folder)
    sums = _read_sums(folder.parent / "SHA256SUMS")
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


def _read_sums(path):
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name.lstrip("*"): digest for digest, name in map(str.split, lines)}


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
    try:
        alignment = _read_links(links, forward)
    except ValueError:
        raise ValueError(
            f"{where}: {links!r} is no alignment; expected links such as 0-0 1-2"
        ) from None
    pair = Pair(
        tuple(map(sys.intern, source.split())),  # each word once in memory
        tuple(map(sys.intern, target.split())),
        alignment,
        _read_tags(tags),
    )
    if not pair.source or not pair.target:
        raise ValueError(f"{where}: a sentence is empty; each column needs one")
    source_len, target_len = len(pair.source), len(pair.target)
    if not all(i < source_len and j < target_len for i, j in pair.alignment):
        raise ValueError(
            f"{where}: a link of {links!r} is outside the sentences "
            f"of {source_len} and {target_len} tokens"
        )
    return pair


# Lines share most of their alignments and tags: each is kept once.


@cache
def _read_links(links, forward):
    return frozenset(_read_link(link, forward) for link in links.split())


@cache
def _read_link(link, forward):
    i, j = map(int, link.split("-"))
    return (i, j) if forward else (j, i)


@cache
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
    return Corpus("Multi30k", source, target, splits)


def multi30k_lines(split: str, lang: str) -> list[str]:
    """The sentences of a split (train, valid or test) as they were written."""
    path = multi30k_file(f"{MULTI30K_SPLITS[split]}.{lang}.gz")
    return decode_lines(read_bytes(path), path)


def cache_folder() -> Path:
    """Where downloaded files are kept."""
    return Path(pooch.os_cache("learning-to-align"))


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
    return download(name, MULTI30K_URL, MULTI30K_SHA256[name], "multi30k")


def download(name: str, url: str, sha256: str, folder: str) -> Path:
    """Download url + name into folder in the cache, unless a good copy is there.

    Raises ConnectionError if that fails, or if what came has another checksum. Neither
    leaves a half-written file; a bad copy stays until a good one replaces it.
    """
    path = cache_folder() / folder / name
    with contextlib.suppress(OSError):  # no copy yet, or none that can be read
        if hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
            return path
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("WARNING")
    try:
        with tqdm(desc=name, total=1, unit="B", unit_scale=True) as bar:
            pooch.retrieve(
                url + name,
                known_hash=f"sha256:{sha256}",
                fname=name,
                path=path.parent,
                downloader=pooch.HTTPDownloader(progressbar=bar),
            )
    except (OSError, ValueError) as error:  # ValueError: another checksum
        raise ConnectionError(
            f"could not download {url}{name} ({error}). Nothing of it was kept. "
            f"Without a network, or where a login page answers: put {name} into a "
            f"folder named {folder}, and set the environment variable {DATA_VARIABLE} "
            f"to the folder that holds {folder}"
        ) from error
    finally:
        logger.setLevel(level)
    return path


# Tatoeba and other tab-separated files


def load_tsv(
    path,
    source="en",
    target="fr",
    columns=None,
    valid=1000,
    test=1000,
    seed=0,
    limit=None,
    skip_bad_lines=False,
) -> Corpus:
    """A tab-separated file of sentence pairs, such as Tatoeba's, split by seed.

    path: .txt, .tsv or .gz; a relative path is also looked up in the folder that the
    environment variable LEARNING_TO_ALIGN_DATA names. columns: the languages of the
    file's first two columns, by default ("en", the other language), as Tatoeba has
    them; one more column (attribution) is ignored. limit: only the first lines.
    valid, test: pairs in these splits. Pairs that share a source or a target sentence
    share a split. Chinese is cut into characters, unless a line is segmented already.
    Raises ValueError naming file and line for bad lines; with skip_bad_lines, those
    with a wrong number of columns or an empty side are left out (corpus.skipped).
    """
    columns = _tsv_columns(source, target, columns)
    path = _find_file(Path(path).expanduser())
    lines = decode_lines(read_bytes(path), path)[:limit]
    width = next((n for n in map(_tsv_width, lines) if n in (2, 3)), 2)
    pairs, skipped = [], []
    for number, line in enumerate(lines, 1):
        try:
            sides = _tsv_sides(line, width, columns, f"{path}, line {number}")
        except ValueError:
            if not skip_bad_lines:
                raise
            skipped.append(number)
        else:
            pairs.append(Pair(sides[source], sides[target]))
    splits = split_pairs(pairs, {"valid": valid, "test": test}, seed)
    return Corpus(path.name, source, target, splits, tuple(skipped))


def _tsv_width(line):
    return 1 + line.count("\t")


def _tsv_columns(source, target, columns):
    check_direction(check_language(source), check_language(target), (source, target))
    if columns is None:
        if "en" not in (source, target):
            raise ValueError(
                f"say which column is which language: columns=({source!r}, {target!r}) "
                f"or columns=({target!r}, {source!r})"
            )
        columns = ("en", source if target == "en" else target)
    if sorted(columns) != sorted((source, target)):
        raise ValueError(
            f"columns names the languages of the first two columns, {source!r} and "
            f"{target!r} in the order of the file, got {columns!r}"
        )
    return columns


def _find_file(path):
    folder = data_folder()
    inside = folder is not None and ".." not in path.parts
    places = [path, folder / path] if inside else [path]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        f"there is no file {' nor '.join(map(str, places))}: give the path of a file, "
        f"or one relative to the folder that {DATA_VARIABLE} names"
    )


def _tsv_sides(line, width, columns, where):
    fields = line.split("\t")
    if len(fields) != width:
        raise ValueError(
            f"{where}: wrong number of columns, {len(fields)} instead of {width}; "
            "expected two sentences with a tab between them (and a third column in all "
            "lines or in none)"
        )
    sides = {
        lang: tuple(tokenize(field, lang))
        for lang, field in zip(columns, fields, strict=False)
    }
    for lang, side in sides.items():
        if not side:
            raise ValueError(f"{where}: the {lang} side is empty; both need a sentence")
    return sides


def split_pairs(pairs: list[Pair], sizes: dict[str, int], seed=0) -> dict:
    """Cut splits of the given sizes from pairs at random; what is left is "train".

    Pairs that share a source or a target sentence, directly or through other pairs,
    go to the same split. The order within a split is that of pairs.
    """
    groups = _connected(pairs)
    random.Random(seed).shuffle(groups)
    chosen = {split: [] for split in ("train", *sizes)}
    for group in groups:
        fits = (s for s, size in sizes.items() if len(chosen[s]) + len(group) <= size)
        chosen[next(fits, "train")] += group
    for split, size in sizes.items():
        if len(chosen[split]) != size or not chosen["train"]:
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
