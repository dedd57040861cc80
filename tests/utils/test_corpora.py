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
    load_parallel,
    load_tsv,
    load_village,
    split_pairs,
)
from utils.data import Pair
from utils.files import DATA_VARIABLE

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


# --- files of one's own -----------------------------------------------------------

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
def test_texts_stay_as_they_were_written(tsv, text):
    corpus = tsv(text, valid=1, test=1)
    assert repr(corpus) == "own.tsv en→fr: train 1, valid 1, test 1"
    pairs = {pair[:2] for own in corpus.splits.values() for pair in own}
    assert pairs == {("Go.", "Va !"), ("Hi.", "Salut !"), ("Run!", "Cours\u00a0!")}
    odd = " «E\u0301 I»\u200c\u00a0 ", "e-mail @ X.org\x0b "
    corpus = tsv("\ufeff" + "\t".join(odd) + "\r\n", columns=("2", "1"))
    assert corpus["train"][0][:2] == odd[::-1] and corpus.findings == []


@pytest.mark.parametrize("columns", [(2, 4), ["2", "4"], ("English", "French")])
def test_columns_are_chosen_by_number_or_by_name(tsv, columns):
    named = columns[0] == "English"
    text = "id\tEnglish\tid of it\tFrench\n" * named + "1\tGo.\t5\tVa !\n"
    corpus = tsv(
        text + "2\tHi.\t6\tSalut !\n3\tRun!\t7\tCours !\tCC-BY\n", columns=columns
    )
    found = {pair.line - named: pair[:2] for pair in corpus["train"]}
    assert found == {1: ("Go.", "Va !"), 2: ("Hi.", "Salut !"), 3: ("Run!", "Cours !")}
    said = f"1 line unlike most, which have 4 columns (line {3 + named})"
    assert corpus.findings == [said] and corpus.skipped == {}


def test_a_tenth_is_held_out_as_near_as_it_can_be(tsv):
    for count, repeats, held_out in ((3, 1, 1), (12_000, 1, 1000), (30, 7, 21)):
        lines = [f"a{n}\tb{n}{' ' * k}\n" for k in range(repeats) for n in range(count)]
        corpus = tsv("".join(lines), valid=None, test=None)
        assert len(corpus["valid"]) == len(corpus["test"]) == held_out


def test_a_pair_is_taken_once_and_a_header_never(tsv):
    corpus = tsv("English\tFrench\n" + "A.\tB.\n" * 2 + "a.\tB.\n" + "C.\tD.\n" * 2)
    assert [pair.line for pair in corpus["train"]] == [2, 4, 5]
    header, repeats = corpus.findings
    assert header == "line 1 left out: it names columns, English and French"
    assert repeats == "2 lines left out: a pair that an earlier line has (lines 3, 6)"


BAD_LINES = {  # a text of three lines, one of them bad: its number, what is said of it
    "A.\tB.\nC.\nD.\tE.": (2, "too few columns, 1 instead of at least 2; expected two"),
    "A.\tB.\n \t\nC.\tD.": (2, "the en side is empty"),
    "A.\tB.\nC.\tD.\nE.\t": (3, "the fr side is empty; both need a sentence"),
    "\u200b \u2060\tA.\nB.\tC.\nD.\tE.": (1, "the en side is empty"),
    b"A.\tB.\ncaf\xe9\tC.\nE.\tF.": (2, "not UTF-8 .byte 0xe9."),
    'A.\tB.\n"C.\tD."\tE.\nF.\tG.': (2, "a tab between quotation marks"),
}


@pytest.mark.parametrize("text", BAD_LINES)
def test_bad_lines_are_named_or_skipped_and_reported(tsv, text):
    number, match = BAD_LINES[text]
    advice = "; --skip-bad-lines leaves such lines out$"
    with pytest.raises(ValueError, match=f"own.tsv, line {number}: {match}.*{advice}"):
        tsv(text)
    corpus = tsv(text, skip_bad_lines=True)
    assert list(corpus.skipped) == [number] and len(corpus["train"]) == 2
    assert re.match(match, corpus.skipped[number])
    assert repr(corpus).endswith("train 2, valid 0, test 0, lines skipped 1")
    reason = re.match("[^;(]*[^;( ]", corpus.skipped[number])[0]
    assert corpus.findings == [f"1 line left out: {reason} (line {number})"]
    with pytest.raises(ValueError, match="no pair is left; 1 line left out: .*line 1"):
        tsv("A.", skip_bad_lines=True)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"columns": (1, 1)}, "--columns must be two numbers from 1, .* got 1 1"),
        ({"columns": (0, "Go.")}, "--columns must be two numbers from 1"),
        ({"columns": ("Go.", "fr")}, "two names in the first line of .*Go., Va !"),
        ({"columns": (1, 4)}, "1 and 4, one or both .* nothing. .* --columns 1 2 3"),
        ({"target": "en"}, "source and target are both en .English."),
        ({"test": 1.0}, "test must be a whole number of at least 0, got 1.0"),
        ({"valid": 2, "test": 1}, "3 pairs in 3 groups .*too few.* smaller --held-out"),
        ({"quotes": True}, "quotes must be one of"),
    ],
)
def test_what_is_refused(tsv, options, message):
    with pytest.raises(ValueError, match=message):
        tsv(TATOEBA, **options)
    with pytest.raises(ValueError, match="direction en→it: choose two of en, fr, zh$"):
        load_village("en", "it")


@pytest.fixture
def parallel(tmp_path):
    """Loads two texts for each split, from a plain file and from one with gzip."""

    def load(skip_bad_lines=False, **texts):
        files = {}
        for split, (source, target) in texts.items():
            paths = tmp_path / f"{split}.en", tmp_path / f"{split}.fr.gz"
            paths[0].write_text(source, "utf-8")
            paths[1].write_bytes(gzip.compress(target.encode()))
            files[split] = paths
        return load_parallel(**files, held_out=1, skip_bad_lines=skip_bad_lines)

    return load


def test_parallel_files_are_read_and_share_no_pair(parallel):
    train = "Go.\nHi.\nRun!\nHi.\nNo.\n", "Va !\nSalut !\nCours !\nSalut !\nNon.\n"
    corpus = parallel(train=train, test=("Hi.\nHi.\nYes.", "Salut !\nSalut !\nOui."))
    assert repr(corpus) == "train.en, train.fr.gz en→fr: train 2, valid 1, test 3"
    assert corpus.target_texts("test") == ["Salut !", "Salut !", "Oui."]
    rest = {pair[:2] for split in ("train", "valid") for pair in corpus[split]}
    assert rest == {("Go.", "Va !"), ("Run!", "Cours !"), ("No.", "Non.")}
    said = "train: 2 lines left out: a pair that test has (lines 2, 4)"
    assert corpus.findings == [said]
    with pytest.raises(ValueError, match="no pair is left to train on; train: 5 lines"):
        parallel(train=train, test=train, valid=("A.", "B."))


def test_parallel_files_that_are_refused(parallel):
    with pytest.raises(ValueError, match="train.fr.gz have 2 and 1 lines: each line"):
        parallel(train=("A.\nB.\n", "C.\n"))
    bad = {"train": ("A.\nB.", "C.\nD."), "valid": ("A.\n\nB.", "C.\nD.\nE.")}
    with pytest.raises(ValueError, match="valid.fr.gz, line 2: the en side is empty"):
        parallel(**bad)
    bad["train"] = ["".join(f"{side}{n}\n" for n in range(9)) for side in "AB"]
    assert list(parallel(skip_bad_lines=True, **bad).skipped) == [("valid", 2)]
    with pytest.raises(ValueError, match="train must be two files, got 'a.en'"):
        load_parallel("a.en")


# --- splits -----------------------------------------------------------------------

NUMBERS, SIZES = st.integers(0, 12), st.integers(0, 4)


@tries
@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1), SIZES, SIZES, NUMBERS)
def test_splits_share_no_sentence_and_lose_no_pair(numbers, valid, test, seed):
    pairs = [Pair(f"s{a}", f"t{b}") for a, b in numbers]
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
    chain = [Pair(f"s{i}", f"t{j}") for i in range(5) for j in (i, i + 1)]
    with pytest.raises(ValueError, match="10 pairs in 1 groups"):
        split_pairs(chain, {"test": 2})
    pairs = [Pair(f"{i:02}", str(-i)) for i in range(100)]
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
    monkeypatch.setattr("utils.files.download", download)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    corpus = load_multi30k("en", "fr")
    assert repr(corpus) == "Multi30k en→fr: train 2, valid 2, test 2"
    assert corpus["test"][0] == Pair("Street.", "L'ami.", line=1)
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
    german = "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche."
    assert corpus["train"][0].source == german
