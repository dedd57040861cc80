"""Gold links: how they are written, and the gold sets on real text in data/gold.

A link joins a source word and a target word, counted from 0. It is written `0-3` if it
is sure, and `0?3` if it is possible: a careful reader may draw it or leave it out. Sure
links count as possible as well (Och and Ney, 2003), but are written once.
"""

import hashlib
import re
from functools import cache
from pathlib import Path

from utils.data import Corpus
from utils.files import read_lines, read_sums
from utils.guards import require_one_of

GOLD_FOLDER = Path(__file__).resolve().parent.parent / "data" / "gold"
GOLD_SETS = {  # name: what loads the text, in utils.corpora
    "multi30k-de-en": 'load_multi30k("de", "en")["test"]',
    "tatoeba-en-zh": 'load_tsv("tatoeba/cmn.txt", "en", "zh", skip_bad_lines=True)',
}
GOLD_HEADER = "sha256\tsource_ends\ttarget_ends\tlinks"
LINK = re.compile(r"([0-9]{1,6})([-?])([0-9]{1,6})")


@cache  # pairs share most of their texts: each is kept once
def read_links(text, forward=True):
    """Links as written -> two frozensets of (source, target): sure, possible.

    Not forward: they are turned round. Raises ValueError for text that is no links.
    """
    kinds = {"-": set(), "?": set()}
    for link in text.split():
        if not (match := LINK.fullmatch(link)):
            raise ValueError(
                f"{text!r} is no alignment; expected links such as 0-0 (sure) "
                "or 1?2 (possible)"
            )
        i, kind, j = match.groups()
        kinds[kind].add((int(i), int(j)) if forward else (int(j), int(i)))
    return frozenset(kinds["-"]), frozenset(kinds["?"] - kinds["-"])


def write_links(sure, possible) -> str:
    """Links as `read_links` takes them, in the order of their words."""
    kinds = {**dict.fromkeys(possible, "?"), **dict.fromkeys(sure, "-")}
    return " ".join(f"{i}{kinds[i, j]}{j}" for i, j in sorted(kinds))


def with_links(pair, text, where, forward=True):
    """The pair with links as written. A fault raises ValueError: where it is, and what.

    Not forward: the text has the target word first.
    """
    try:
        sure, possible = read_links(text, forward)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    source_len, target_len = map(len, pair.ends or pair[:2])
    if not all(i < source_len and j < target_len for i, j in sure | possible):
        raise ValueError(
            f"{where}: a link of {text!r} is outside the sentences "
            f"of {source_len} and {target_len} words"
        )
    return pair._replace(alignment=sure, possible=possible)


def gold_links(pairs):
    """The sure and the possible links of pairs, two lists with a set for each pair.

    As the error rate takes them: `alignment_error_rate(predicted, *gold_links(pairs))`.
    """
    if not pairs or any(pair.alignment is None for pair in pairs):
        raise ValueError(
            "gold links are needed, by at least one pair and by all: the Village has "
            "them, joined pairs have not; for real text see utils.gold.link_gold"
        )
    return [pair.alignment for pair in pairs], [pair.possible for pair in pairs]


# Gold sets on real text: links in files, beside checksums in place of the text


def link_gold(pairs, name) -> list:
    """Those of the pairs that a gold set has links for, with these links.

    pairs: a list, or a Corpus, in either direction; a pair that comes twice is taken
    once. name: of GOLD_SETS. Raises ValueError for a damaged file, and unless all the
    set's pairs are found.
    """
    require_one_of("a gold set", name, GOLD_SETS)
    path = GOLD_FOLDER / f"{name}.tsv"
    expected = read_sums(GOLD_FOLDER.parent / "SHA256SUMS")[f"gold/{path.name}"]
    gold, found = read_gold(path, expected), {}
    if isinstance(pairs, Corpus):
        pairs = [pair for split in pairs.splits.values() for pair in split]
    for pair in pairs:
        for forward, (source, target) in ((True, pair[:2]), (False, pair[1::-1])):
            digest = hashlib.sha256(f"{source}\t{target}".encode()).hexdigest()
            if digest in gold and digest not in found:
                *ends, links = gold[digest]
                ends = tuple(tuple(map(int, side.split())) for side in ends)
                pair = pair._replace(ends=ends if forward else ends[::-1])
                found[digest] = with_links(pair, links, path, forward)
    if len(found) < len(gold):
        raise ValueError(
            f"{len(found)} of the {len(gold)} pairs of {path.name} are among the "
            f"{len(pairs)} given: load {GOLD_SETS[name]}"
        )
    return list(found.values())


def read_gold(path, sha256=None) -> dict[str, list[str]]:
    """{checksum of a pair's text: its other columns}, from a file of a gold set."""
    advice = "Restore the file, or run `python -m tools.gold`."
    _, *lines = read_lines(path, sha256=sha256, advice=advice)  # without the header
    rows = (line.split("\t") for line in lines)
    return {digest: columns for digest, *columns in rows}
