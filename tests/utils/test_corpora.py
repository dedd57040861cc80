"""Corpora: the Village, Multi30k, files of one's own, how they are split.

Real text is read from the folder that LEARNING_TO_ALIGN_DATA names; without it, the
tests that need it are skipped, by name.
"""

import gzip
import hashlib
import re
from collections import Counter
from functools import partial
from itertools import permutations

import pytest
from helpers import Files, needs, serve, tries
from hypothesis import given
from hypothesis import strategies as st

from utils import corpora
from utils.corpora import (
    check_direction,
    load_multi30k,
    load_tsv,
    load_village,
    split_pairs,
)
from utils.data import Pair
from utils.files import DATA_VARIABLE
from utils.text import Vocab, detokenize, tokenize


@pytest.fixture
def no_data_folder(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


def sides(corpus, split="train"):
    return [tuple(" ".join(side) for side in pair[:2]) for pair in corpus[split]]


@pytest.mark.parametrize(
    "direction, fault",
    [
        (("en", "en", ("en", "fr")), r"source and target are both en \(English\)$"),
        (("en", "it", ("en", "fr")), "unknown direction en→it: choose two of en, fr$"),
        (("it", "fr", ("en", "fr")), "unknown direction it→fr: choose two of en, fr$"),
        (("cs", "cs"), "source and target are both cs$"),
        (("cs", "Czech"), "unknown language 'Czech'"),
    ],
)
def test_a_direction_that_is_none(direction, fault):
    with pytest.raises(ValueError, match=f"^{fault}"):
        check_direction(*direction)


# --- the Village, with a small corpus of the same form ----------------------------

HEADER = "en\tfr\tzh\ten-fr\ten-zh\tfr-zh\ttags"
LINES = [
    "the baker reads .\tle boulanger lit .\t面包师 读 书 。\t0-0 1-1 2-2 3-3"
    "\t1-0 2-1 3-3\t1-0 2-1 3-3\tadj-swap,zh-le",
    "the dog loves\tle chien\t狗 读 书\t0-0 1-1\t0?1 1-0 2-1 2?2\t0?1 1-0\t",
]


@pytest.fixture
def village(tmp_path):
    """A folder in the Village's form, and its checksums beside it."""
    folder, digests = tmp_path / "village", []
    folder.mkdir()
    for split in ("train", "valid", "test", "long"):
        content = gzip.compress("\n".join([HEADER, *LINES, ""]).encode())
        (folder / f"{split}.tsv.gz").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        digests.append(f"{digest}  village/{split}.tsv.gz\n")
    (tmp_path / "SHA256SUMS").write_text("".join(digests))
    return folder


def test_the_village_is_read_in_every_direction(village):
    corpus = load_village("en", "zh", village)
    assert repr(corpus) == "Village en→zh: train 2, valid 2, test 2, long 2"
    baker, dog = corpus["train"]
    assert (baker.source, baker.target) == (
        ("the", "baker", "reads", "."),
        ("面包师", "读", "书", "。"),
    )
    assert baker.tags == {"adj-swap", "zh-le"} and dog.tags == frozenset()
    assert baker.alignment == {(1, 0), (2, 1), (3, 3)} and baker.possible == frozenset()
    assert dog.alignment == {(1, 0), (2, 1)} and dog.possible == {(0, 1), (2, 2)}
    for source, target in permutations(("en", "fr", "zh"), 2):
        there = load_village(source, target, village)["test"]
        back = load_village(target, source, village)["test"]
        for a, b in zip(there, back, strict=True):
            assert (a.source, a.target, a.tags) == (b.target, b.source, b.tags)
            assert a.alignment == {(i, j) for j, i in b.alignment}
            assert a.possible == {(i, j) for j, i in b.possible}


def test_village_files_that_are_missing_or_changed(village, tmp_path):
    path = village / "test.tsv.gz"
    changed = gzip.compress(gzip.decompress(path.read_bytes()), mtime=1)
    path.write_bytes(changed)
    found = hashlib.sha256(changed).hexdigest()
    with pytest.raises(ValueError, match=f"test.tsv.gz has .* {found}, expected") as e:
        load_village("en", "fr", village)
    assert "data/village/generate.py" in str(e.value) and path.read_bytes() == changed
    (tmp_path / "SHA256SUMS").unlink()
    assert len(load_village("en", "fr", village)["test"]) == 2
    (village / "long.tsv.gz").unlink()
    with pytest.raises(FileNotFoundError, match="there is no file .*long.tsv.gz"):
        load_village("en", "fr", village)
    path.write_bytes(
        gzip.compress(f"{HEADER}\n{LINES[1]} \n".replace("0?1 1-0", "0-9").encode())
    )
    (tmp_path / "village" / "train.tsv.gz").write_bytes(path.read_bytes())
    with pytest.raises(ValueError, match="train.tsv.gz, line 2: a link of .* outside"):
        load_village("fr", "zh", village)


# --- tab-separated files ----------------------------------------------------------

TATOEBA = "Go.\tVa !\tCC-BY\nHi.\tSalut !\tCC-BY\nRun!\tCours\u00a0!\tCC-BY\n"
WHOLE = {"valid": 0, "test": 0}


@pytest.fixture
def tsv(tmp_path, no_data_folder):
    """Loads a text as a tab-separated file, all of it as the training split."""

    def load(text, source="en", target="fr", **options):
        path = tmp_path / "own.tsv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return load_tsv(path, source, target, **{**WHOLE, **options})

    return load


@pytest.mark.parametrize("text", [TATOEBA, TATOEBA.replace("\tCC-BY", "") + "\n \t\n"])
def test_tsv_form(tsv, text):
    corpus = tsv(text, valid=1, test=1)
    pairs = {pair for pairs in corpus.splits.values() for pair in pairs}
    assert pairs == {
        Pair(("go", "."), ("va", "!")),
        Pair(("hi", "."), ("salut", "!")),
        Pair(("run", "!"), ("cours", "!")),
    }
    assert repr(corpus) == "own.tsv en→fr: train 1, valid 1, test 1"


def test_the_targets_that_are_scored_are_kept_as_written(tsv):
    """Wherever the columns stand."""
    text = "".join(f"{n}a\tLe No {n} , là !\n" for n in range(20))
    turned = "\n".join("\t".join(line.split("\t")[::-1]) for line in text.split("\n"))
    for one, columns in ((text, None), (turned, ("fr", "en"))):
        corpus = tsv(one, columns=columns, valid=3, test=4)
        assert corpus.target_texts("train")[0].startswith("Le no ")
        assert corpus["train"][0].source[0][-1] == "a"
        for split in ("valid", "test"):
            numbers = [pair.target[2] for pair in corpus[split]]
            found = corpus.target_texts(split)
            assert found == [f"Le No {number} , là !" for number in numbers]


def test_a_tenth_is_held_out_as_near_as_it_can_be(tsv):
    for count, repeats, held_out in ((300, 1, 30), (3, 1, 1), (12_000, 1, 1000)):
        text = "".join(f"a{n}\tb{n}\n" for n in range(count)) * repeats
        corpus = tsv(text, valid=None, test=None)
        assert len(corpus["valid"]) == len(corpus["test"]) == held_out
    corpus = tsv("".join(f"a{n}\tb{n}\n" for n in range(30)) * 7, valid=None, test=None)
    assert len(corpus["valid"]) == len(corpus["test"]) == 21  # three times seven


COLUMNS = "wrong number of columns, %d instead of %d; expected two sentences with a tab"
BAD_LINES = {  # a text of three lines, one of them bad: its number, what is said of it
    "A.\tB.\nC.\nD.\tE.": (2, COLUMNS % (1, 2)),
    "A.\tB.\tx\nC.\tD.\nE.\tF.\tx": (2, COLUMNS % (2, 3)),
    "A.\tB.\nC.\tD.\tx\ty\nE.\tF.": (2, COLUMNS % (4, 2)),
    "a\tb\tc\td\nA.\tB.\nC.\tD.": (1, COLUMNS % (4, 2)),
    "A.\tB.\n \t\nC.\tD.": (2, "the line is empty; remove it"),
    "A.\tB.\nC.\tD.\nE.\t": (3, "the fr side is empty; both need a sentence"),
    "\u200b \u2060\tA.\nB.\tC.\nD.\tE.": (1, "the en side is empty"),
    b"A.\tB.\ncaf\xe9\tC.\nE.\tF.": (2, "not UTF-8 .byte 0xe9."),
    b"A.\tB.\nD.\t" + b"x" * 10_001 + b"\nE.\tF.": (2, "more than 10,000 characters"),
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
        ({"valid": -1}, "valid must be a whole number of at least 0, got -1"),
        ({"test": 1.0}, "test must be a whole number of at least 0, got 1.0"),
        ({"valid": 2, "test": 1}, "3 pairs in 3 groups .* too few for a split"),
        ({"valid": 1000}, "too few for a split 'valid' of 1000"),
    ],
)
def test_what_is_refused(tsv, options, message):
    with pytest.raises(ValueError, match=message):
        tsv(TATOEBA, **options)


# --- splits -----------------------------------------------------------------------

pair_lists = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40
).map(lambda numbers: [Pair((f"s{a}",), (f"t{b}",)) for a, b in numbers])


@tries
@given(pair_lists, st.integers(0, 4), st.integers(0, 4), st.integers(0, 9))
def test_splits_share_no_sentence_and_lose_no_pair(pairs, valid, test, seed):
    wanted = {"valid": valid, "test": test}
    try:
        splits = split_pairs(pairs, wanted, seed)
    except ValueError as error:
        assert "too few for a split" in str(error)
        return
    assert {split: len(splits[split]) for split in wanted} == wanted
    assert Counter(sum(splits.values(), [])) == Counter(pairs)
    for a, b in permutations(splits, 2):
        assert not {p.source for p in splits[a]} & {p.source for p in splits[b]}
        assert not {p.target for p in splits[a]} & {p.target for p in splits[b]}
    assert split_pairs(pairs, wanted, seed) == splits
    numbers = {id(pair): n for n, pair in enumerate(pairs)}
    for own in splits.values():  # the order of the file
        assert [numbers[id(p)] for p in own] == sorted(numbers[id(p)] for p in own)
    mirrored = [Pair(pair.target, pair.source) for pair in pairs]
    for split, own in split_pairs(mirrored, wanted, seed).items():
        assert [(p.target, p.source) for p in own] == [p[:2] for p in splits[split]]


def test_split_ties_sentences_through_other_pairs():
    chain = [Pair((f"s{i}",), (f"t{j}",)) for i in range(5) for j in (i, i + 1)]
    with pytest.raises(ValueError, match="10 pairs in 1 groups"):
        split_pairs(chain, {"test": 2})
    pairs = [Pair((f"{i:02}",), (str(-i),)) for i in range(100)]
    found = [tuple(split_pairs(pairs, {"test": 10}, seed)["test"]) for seed in range(9)]
    assert len(set(found)) == 9 and found[0] != tuple(pairs[:10])


# --- Multi30k: a user's own files, and downloads from a server on this machine ----

MULTI30K = {
    f"{stem}.{lang}.gz": gzip.compress(f"{word}.\n{word}, {stem}\n".encode(), mtime=0)
    for stem in ("train", "val", "test_2016_flickr")
    for lang, word in {"de": "Straße", "en": "Street", "fr": "L'ami"}.items()
}


@pytest.fixture
def server(tmp_path, monkeypatch, no_data_folder):
    """Where small files are downloaded from, into an empty cache."""
    sums = {name: hashlib.sha256(c).hexdigest() for name, c in MULTI30K.items()}
    monkeypatch.setattr(corpora, "MULTI30K_SHA256", sums)
    monkeypatch.setattr(corpora, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve(Files) as server:
        server.files, server.mood, server.asked = dict(MULTI30K), "good", []
        monkeypatch.setattr(corpora, "MULTI30K_URL", server.url)
        yield server


def test_multi30k_is_the_users_own_or_downloaded_once(server, tmp_path, monkeypatch):
    corpus = load_multi30k("en", "fr")
    assert repr(corpus) == "Multi30k en→fr: train 2, valid 2, test 2"
    assert corpus["test"][0] == Pair(("street", "."), ("l'", "ami", "."))
    assert corpus.target_texts("valid")[1] == "L'ami, val"
    names = sorted(name for name in MULTI30K if not name.endswith(".de.gz"))
    cache = tmp_path / "cache" / "multi30k"
    assert sorted(server.asked) == names == sorted(p.name for p in cache.iterdir())
    load_multi30k("en", "fr")
    assert len(server.asked) == 6
    folder = tmp_path / "own data" / "multi30k"
    folder.mkdir(parents=True)
    monkeypatch.setenv(DATA_VARIABLE, str(folder.parent))
    for name in ("train.de.gz", "val.de.gz"):
        (folder / name).write_bytes(MULTI30K[name])
    load_multi30k("de", "en")
    assert server.asked[6:] == ["test_2016_flickr.de.gz"]  # only what is missing
    bad = folder / "val.en.gz"
    bad.write_bytes(b"changed")
    with pytest.raises(ValueError, match=f"{bad} has .* expected .* left as it is"):
        load_multi30k("de", "en")
    assert bad.read_bytes() == b"changed"


# --- real text --------------------------------------------------------------------


@pytest.mark.slow
@needs("multi30k")
def test_multi30k_as_published():
    corpus = load_multi30k()
    assert tuple(map(len, corpus.splits.values())) == (29_000, 1_014, 1_000)
    german = "zwei junge weiße männer sind im freien in der nähe vieler büsche ."
    english = "two young , white males are outside near many bushes ."
    assert sides(corpus)[0] == (german, english)
    for side, (lang, size) in enumerate({"de": 7855, "en": 5924}.items()):
        words = [pair[side] for pair in corpus["train"]]
        assert len(Vocab(words, lang, min_freq=2)) == size
    for pair in corpus["train"]:
        for tokens, lang in zip(pair, ("de", "en"), strict=False):
            assert tokenize(detokenize(tokens, lang), lang) == list(tokens)


@pytest.mark.slow
@needs("tatoeba/cmn.txt")
def test_tatoeba_as_published():
    load = partial(load_tsv, "tatoeba/cmn.txt", "zh", "en", ("en", "zh"))
    with pytest.raises(ValueError, match="cmn.txt, line 13: wrong number of columns"):
        load()
    corpus = load(skip_bad_lines=True)
    assert tuple(map(len, corpus.splits.values())) == (28_979, 1_000, 1_000)
    assert list(corpus.skipped) == [13]
