"""Corpora: the Village, Multi30k, files of one's own, how they are split."""

import gzip
import hashlib
import re
from collections import Counter
from itertools import combinations

import pytest
from helpers import needs, tries
from hypothesis import given
from hypothesis import strategies as st

from utils import corpora
from utils.corpora import (
    load_multi30k,
    load_tsv,
    load_village,
    split_pairs,
)
from utils.data import Pair
from utils.files import DATA_VARIABLE
from utils.text import Vocab

# --- the Village, with a small corpus of the same form ----------------------------

LINES = [
    "en\tfr\tzh\ten-fr\ten-zh\tfr-zh\ttags",
    "the baker reads .\tle boulanger lit .\t面包师 读 书 。\t0-0 1-1 2-2 3-3"
    "\t1-0 2-1 3-3\t1-0 2-1 3-3\tadj-swap,zh-le",
    "the dog loves\tle chien\t狗 读 书\t0-0 1-1\t0?1 1-0 2-1 2?2\t0?1 1-0\t",
]


@pytest.fixture
def village(tmp_path):
    """A folder in the Village's form, and its checksums beside it."""
    folder, content = tmp_path / "village", gzip.compress("\n".join(LINES).encode())
    folder.mkdir()
    digest = hashlib.sha256(content).hexdigest()
    for split in corpora.VILLAGE_SPLITS:
        (folder / f"{split}.tsv.gz").write_bytes(content)
        with (tmp_path / "SHA256SUMS").open("a") as sums:
            sums.write(f"{digest}  village/{split}.tsv.gz\n")
    return folder


def test_the_village_is_read_in_either_direction(village):
    corpus = load_village("en", "zh", village)
    assert repr(corpus) == "Village en→zh: train 2, valid 2, test 2, long 2"
    baker, dog = corpus["train"]
    assert baker.source == ("the", "baker", "reads", ".")
    assert baker.target == ("面包师", "读", "书", "。")
    assert baker.tags == {"adj-swap", "zh-le"} and dog.tags == frozenset()
    assert dog.alignment == {(1, 0), (2, 1)} and dog.possible == {(0, 1), (2, 2)}
    _, back = load_village("zh", "en", village)["test"]
    assert (back.source, back.target) == (dog.target, dog.source)
    assert back.alignment == {(0, 1), (1, 2)} and back.possible == {(1, 0), (2, 2)}
    assert load_village("fr", "zh", village)["long"][1].alignment == {(1, 0)}


def test_village_files_that_are_missing_or_changed(village, tmp_path):
    path, bad = village / "test.tsv.gz", [LINES[0], LINES[2].replace("0?1 1-0", "0-9")]
    path.write_bytes(gzip.compress("\n".join(bad).encode()))
    with pytest.raises(ValueError, match="test.tsv.gz has .*data/village/generate.py"):
        load_village("en", "fr", village)
    (tmp_path / "SHA256SUMS").unlink()
    with pytest.raises(ValueError, match="test.tsv.gz, line 2: a link of .* outside"):
        load_village("fr", "zh", village)
    (village / "long.tsv.gz").unlink()
    with pytest.raises(FileNotFoundError, match="there is no file .*long.tsv.gz"):
        load_village("en", "fr", village)


# --- tab-separated files ----------------------------------------------------------

TATOEBA = "Go.\tVa !\tCC-BY\nHi.\tSalut !\tCC-BY\nRun!\tCours\u00a0!\tCC-BY\n"


@pytest.fixture
def tsv(tmp_path):
    """Loads a text as a tab-separated file, all of it as the training split."""

    def load(text, **options):
        path = tmp_path / "own.tsv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_tsv(path, **{"valid": 0, "test": 0, **options})

    return load


@pytest.mark.parametrize("text", [TATOEBA, TATOEBA.replace("\tCC-BY", "") + "\n \t\n"])
def test_tsv_form(tsv, text):
    corpus = tsv(text, valid=1, test=1)
    assert repr(corpus) == "own.tsv en→fr: train 1, valid 1, test 1"
    pairs = {" ".join(sum(p[:2], ())) for own in corpus.splits.values() for p in own}
    assert pairs == {"go . va !", "hi . salut !", "run ! cours !"}


@pytest.mark.parametrize("columns", [("en", "fr"), ("fr", "en")])
def test_the_targets_that_are_scored_are_kept_as_written(tsv, columns):
    sides = [{"en": f"{n}a", "fr": f"Le No {n} , là !"} for n in range(20)]
    text = "".join("\t".join(row[lang] for lang in columns) + "\n" for row in sides)
    corpus = tsv(text, columns=columns, valid=3, test=4)
    assert corpus.target_texts("train")[0].startswith("Le no ")
    assert corpus["train"][0].source[0][-1] == "a"
    for split in ("valid", "test"):
        numbers = [pair.target[2] for pair in corpus[split]]
        found = corpus.target_texts(split)
        assert found == [f"Le No {number} , là !" for number in numbers]


def test_a_tenth_is_held_out_as_near_as_it_can_be(tsv):
    for count, repeats, held_out in ((3, 1, 1), (12_000, 1, 1000), (30, 7, 21)):
        text = "".join(f"a{n}\tb{n}\n" for n in range(count)) * repeats
        corpus = tsv(text, valid=None, test=None)
        assert len(corpus["valid"]) == len(corpus["test"]) == held_out


COLUMNS = "wrong number of columns, %d instead of %d; expected two sentences with a tab"
BAD_LINES = {  # a text of three lines, one of them bad: its number, what is said of it
    "A.\tB.\nC.\nD.\tE.": (2, COLUMNS % (1, 2)),
    "A.\tB.\tx\nC.\tD.\nE.\tF.\tx": (2, COLUMNS % (2, 3)),
    "a\tb\tc\td\nA.\tB.\nC.\tD.": (1, COLUMNS % (4, 2)),
    "A.\tB.\n \t\nC.\tD.": (2, "the line is empty; remove it"),
    "A.\tB.\nC.\tD.\nE.\t": (3, "the fr side is empty; both need a sentence"),
    "\u200b \u2060\tA.\nB.\tC.\nD.\tE.": (1, "the en side is empty"),
    b"A.\tB.\ncaf\xe9\tC.\nE.\tF.": (2, "not UTF-8 .byte 0xe9."),
}


@pytest.mark.parametrize("text", BAD_LINES)
def test_bad_lines_are_named_or_skipped_and_reported(tsv, text):
    number, match = BAD_LINES[text]
    with pytest.raises(ValueError, match=f"own.tsv, line {number}: {match}"):
        tsv(text)
    corpus = tsv(text, skip_bad_lines=True)
    assert list(corpus.skipped) == [number] and len(corpus["train"]) == 2
    assert re.match(match, corpus.skipped[number])
    assert repr(corpus).endswith("train 2, valid 0, test 0, lines skipped 1")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"columns": ("en", "de")}, "columns names the languages of the first two"),
        ({"columns": ("en",)}, "columns names the languages of the first two"),
        ({"target": "en"}, "source and target are both en .English."),
        ({"test": 1.0}, "test must be a whole number of at least 0, got 1.0"),
        ({"valid": 2, "test": 1}, "3 pairs in 3 groups .* too few for a split"),
    ],
)
def test_what_is_refused(tsv, options, message):
    with pytest.raises(ValueError, match=message):
        tsv(TATOEBA, **options)
    with pytest.raises(ValueError, match="direction en→it: choose two of en, fr, zh$"):
        load_village("en", "it")


# --- splits -----------------------------------------------------------------------

NUMBERS, SIZES = st.integers(0, 12), st.integers(0, 4)


@tries
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1), SIZES, SIZES, NUMBERS)
def test_splits_share_no_sentence_and_lose_no_pair(numbers, valid, test, seed):
    pairs = [Pair((f"s{a}",), (f"t{b}",)) for a, b in numbers]
    wanted = {"valid": valid, "test": test}
    try:
        splits = split_pairs(pairs, wanted, seed)
    except ValueError as error:
        assert "too few for a split" in str(error)
        return
    assert {split: len(splits[split]) for split in wanted} == wanted
    assert Counter(sum(splits.values(), [])) == Counter(pairs)
    for a, b in combinations(splits.values(), 2):
        for side in (0, 1):
            assert not {pair[side] for pair in a} & {pair[side] for pair in b}
    for own in splits.values():  # the order of the file
        rest = iter(pairs)
        assert all(any(pair is p for p in rest) for pair in own)
    mirrored = [Pair(pair.target, pair.source) for pair in pairs]
    for split, own in split_pairs(mirrored, wanted, seed).items():
        assert [(p.target, p.source) for p in own] == [p[:2] for p in splits[split]]


def test_split_ties_sentences_through_other_pairs_and_draws():
    chain = [Pair((f"s{i}",), (f"t{j}",)) for i in range(5) for j in (i, i + 1)]
    with pytest.raises(ValueError, match="10 pairs in 1 groups"):
        split_pairs(chain, {"test": 2})
    pairs = [Pair((f"{i:02}",), (str(-i),)) for i in range(100)]
    found = {tuple(split_pairs(pairs, {"test": 10}, seed)["test"]) for seed in range(9)}
    assert len(found) == 9


# --- Multi30k: a user's own files, and downloads from a server on this machine ----

MULTI30K = {
    f"{stem}.{lang}.gz": gzip.compress(f"{word}.\n{word}, {stem}\n".encode(), mtime=0)
    for stem in ("train", "val", "test_2016_flickr")
    for lang, word in {"de": "Straße", "en": "Street", "fr": "L'ami"}.items()
}


def test_multi30k_is_the_users_own_or_downloaded(tmp_path, monkeypatch):
    """Here all are the user's own but one."""
    folder, missing = tmp_path / "multi30k", "val.fr.gz"
    folder.mkdir()
    for name, content in MULTI30K.items():
        (tmp_path if name == missing else folder).joinpath(name).write_bytes(content)
    sums = {name: hashlib.sha256(c).hexdigest() for name, c in MULTI30K.items()}

    def download(url, sha256, path):
        assert (url, sha256) == (corpora.MULTI30K_URL + missing, sums[missing])
        return tmp_path / path.name

    monkeypatch.setattr(corpora, "MULTI30K_SHA256", sums)
    monkeypatch.setattr(corpora, "download", download)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    corpus = load_multi30k("en", "fr")
    assert repr(corpus) == "Multi30k en→fr: train 2, valid 2, test 2"
    assert corpus["test"][0] == Pair(("street", "."), ("l'", "ami", "."))
    assert corpus.target_texts("valid")[1] == "L'ami, val"
    (folder / "val.en.gz").write_bytes(b"changed")
    with pytest.raises(ValueError, match="val.en.gz has .* left as it is"):
        load_multi30k("de", "en")
    assert (folder / "val.en.gz").read_bytes() == b"changed"


# --- real text --------------------------------------------------------------------


@pytest.mark.slow
@needs("multi30k")
def test_multi30k_as_published():
    corpus = load_multi30k()
    assert tuple(map(len, corpus.splits.values())) == (29_000, 1_014, 1_000)
    german = "zwei junge weiße männer sind im freien in der nähe vieler büsche ."
    assert " ".join(corpus["train"][0].source) == german
    for side, (lang, size) in enumerate({"de": 7855, "en": 5924}.items()):
        words = [pair[side] for pair in corpus["train"]]
        assert len(Vocab(words, lang, min_freq=2)) == size
