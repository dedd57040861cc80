"""Corpora: the Village, Multi30k, files of one's own, how they are split.

Real text is read from the folder that LEARNING_TO_ALIGN_DATA names; without it, the
tests that need it are skipped, by name.
"""

import gzip
import hashlib
import re
from collections import Counter
from functools import cache, partial
from itertools import permutations

import pytest
import torch
from helpers import Files, needs, serve
from hypothesis import given, settings
from hypothesis import strategies as st

from utils import corpora
from utils.corpora import (
    MULTI30K_SHA256,
    VILLAGE_COLUMNS,
    check_direction,
    load_multi30k,
    load_tsv,
    load_village,
    split_pairs,
)
from utils.data import BatchLoader, Pair
from utils.decoding import translate
from utils.files import DATA_VARIABLE
from utils.models import build_model
from utils.text import detokenize, tokenize
from utils.training import evaluate_loss, train_step


@pytest.fixture
def no_data_folder(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


def sides(corpus, split="train"):
    return [tuple(" ".join(side) for side in pair[:2]) for pair in corpus[split]]


def sizes(corpus):
    return {split: len(pairs) for split, pairs in corpus.splits.items()}


@pytest.mark.parametrize(
    "direction, fault",
    [
        (("en", "en"), r"source and target are both en \(English\)"),
        (("en", "it"), "unknown direction en→it"),
        (("it", "it"), "unknown direction it→it"),
        (("", "en"), "unknown direction →en"),
        ((["en"], "fr"), "unknown direction .'en'.→fr"),
    ],
)
def test_a_direction_that_is_none(direction, fault):
    with pytest.raises(ValueError, match=f"^{fault}: choose one of en→fr, fr→en$"):
        check_direction(*direction, ("en", "fr"))


@pytest.mark.parametrize(
    "load, known",
    [
        (load_village, "en→fr, en→zh, fr→en, fr→zh, zh→en, zh→fr$"),
        (load_multi30k, "de→en, de→fr, en→de, en→fr, fr→de, fr→en$"),
    ],
)
def test_every_loader_names_its_directions(load, known):
    with pytest.raises(ValueError, match=f"both en .English.: choose one of {known}"):
        load("en", "en")


# --- the Village, with a small corpus of the same form ----------------------------

VILLAGE_LINES = [
    "the baker reads .\tle boulanger lit .\t面包师 读 书 。\t0-0 1-1 2-2 3-3"
    "\t1-0 2-1 3-3\t1-0 2-1 3-3\tadj-swap,zh-le",
    "i love you .\tje t' aime .\t我 爱 你 。\t0-0 1-2 2-1 3-3\t0-0 1-1 2-2 3-3"
    "\t0-0 1-2 2-1 3-3\t",
]
POSSIBLE = (
    "the dog reads .\tle chien lit .\t狗 读 书 。\t0-0 1-1 2-2 3-3"
    "\t0?1 1-0 2-1 2?2 3-3\t0?1 1-0 2-1 2?2 3-3\t"
)


def write_village(folder, lines=VILLAGE_LINES, header=VILLAGE_COLUMNS, end="\n"):
    folder.mkdir(parents=True, exist_ok=True)
    digests = []
    for split in ("train", "valid", "test", "long"):
        text = end.join(["\t".join(header), *lines]) + end
        content = gzip.compress(text.encode("utf-8-sig" if end != "\n" else "utf-8"))
        (folder / f"{split}.tsv.gz").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        digests.append(f"{digest}  {folder.name}/{split}.tsv.gz\n")
    (folder.parent / "SHA256SUMS").write_text("".join(digests))
    return folder


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_village_form(tmp_path, end):
    corpus = load_village("en", "fr", write_village(tmp_path / "village", end=end))
    assert repr(corpus) == "Village en→fr: train 2, valid 2, test 2, long 2"
    baker, love = corpus["train"]
    assert baker.source == ("the", "baker", "reads", ".")
    assert baker.target == ("le", "boulanger", "lit", ".")
    assert baker.tags == {"adj-swap", "zh-le"} and love.tags == frozenset()
    assert love.alignment == {(0, 0), (1, 2), (2, 1), (3, 3)}
    assert love.possible == frozenset()


def test_village_links_are_sure_or_possible(tmp_path):
    folder = write_village(tmp_path / "village", [POSSIBLE])
    (there,) = load_village("en", "zh", folder)["long"]
    (back,) = load_village("zh", "en", folder)["long"]
    assert there.alignment == {(1, 0), (2, 1), (3, 3)}
    assert there.possible == {(0, 1), (2, 2)}
    assert back.alignment == {(0, 1), (1, 2), (3, 3)}
    assert back.possible == {(1, 0), (2, 2)}


@pytest.mark.parametrize("source, target", list(permutations(("en", "fr", "zh"), 2)))
def test_village_directions_are_each_others_mirror(tmp_path, source, target):
    folder = write_village(tmp_path / "village")
    there = load_village(source, target, folder)["test"]
    back = load_village(target, source, folder)["test"]
    for a, b in zip(there, back, strict=True):
        assert (a.source, a.target, a.tags) == (b.target, b.source, b.tags)
        assert a.alignment == {(i, j) for j, i in b.alignment}
        assert a.possible == {(i, j) for j, i in b.possible}
    columns = dict(zip(VILLAGE_COLUMNS, VILLAGE_LINES[0].split("\t"), strict=True))
    assert " ".join(there[0].source) == columns[source]
    assert " ".join(there[0].target) == columns[target]
    links = columns.get(f"{source}-{target}")
    written = " ".join(f"{i}-{j}" for i, j in sorted(there[0].alignment))
    assert links in (None, written)


GOOD, LOVE = VILLAGE_LINES
OUTSIDE = "2: a link of .* outside the sentences of 4 and 4"


@pytest.mark.parametrize(
    "changed, match",
    [
        (
            {"header": ["en", "fr"]},
            "1: expected the columns en fr zh en-fr en-zh fr-zh",
        ),
        ({"lines": [GOOD, "a\tb\tc"]}, "3: 3 columns, expected 7"),
        ({"lines": [GOOD, "", LOVE]}, "3: 1 columns, expected 7"),
        (
            {"lines": [LOVE.replace("1-2", "1:2")]},
            "2: '0-0 1:2 2.* is no alignment; exp",
        ),
        ({"lines": [LOVE.replace("1-2", "1-4")]}, OUTSIDE),
        ({"lines": [LOVE.replace("1-2", "1?4")]}, OUTSIDE),
        (
            {"lines": [LOVE.replace("1-2", "1-2 1?2")]},
            "2: '0-0 1-2 1.2 .* has a link that is both sure and possible",
        ),
        ({"lines": [LOVE.replace("1-2", "4-1")]}, OUTSIDE),
        ({"lines": [LOVE.replace("i love you .", " ")]}, "2: a sentence is empty"),
    ],
)
def test_village_lines_that_are_wrong(tmp_path, changed, match):
    folder = write_village(tmp_path / "village", **changed)
    with pytest.raises(ValueError, match=f"train.tsv.gz, line {match}"):
        load_village("en", "fr", folder)


def test_village_files_that_are_missing_or_changed(tmp_path):
    folder = write_village(tmp_path / "village")
    path = folder / "test.tsv.gz"
    changed = gzip.compress(gzip.decompress(path.read_bytes()), mtime=1)
    path.write_bytes(changed)
    found = hashlib.sha256(changed).hexdigest()
    with pytest.raises(ValueError, match=f"test.tsv.gz has .* {found}, expected") as e:
        load_village("en", "fr", folder)
    assert "data/village/generate.py" in str(e.value) and path.read_bytes() == changed
    (tmp_path / "SHA256SUMS").unlink()
    assert len(load_village("en", "fr", folder)["test"]) == 2
    (folder / "long.tsv.gz").unlink()
    with pytest.raises(FileNotFoundError, match="there is no file .*long.tsv.gz"):
        load_village("en", "fr", folder)


@pytest.mark.parametrize("source, target", [("en", "fr"), ("zh", "en"), ("fr", "zh")])
def test_village_as_shipped(source, target):
    corpus = load_village(source, target)
    found = sizes(corpus)
    assert found["train"] >= 20_000 and found["long"] > 0
    assert min(found["valid"], found["test"]) >= 1_000
    assert all(pair.alignment for pairs in corpus.splits.values() for pair in pairs)
    vocabs = corpus.vocabs()
    assert [vocab.lang for vocab in vocabs] == [source, target]
    assert len(next(BatchLoader(corpus["long"], *vocabs).epoch(0)).source) == 64


# --- tab-separated files ----------------------------------------------------------

TATOEBA = "Go.\tVa !\tCC-BY\nHi.\tSalut !\tCC-BY\nRun!\tCours\u00a0!\tCC-BY\n"
WHOLE = {"valid": 0, "test": 0}


@pytest.fixture
def tsv(tmp_path, no_data_folder):
    """Loads a text as a tab-separated file, all of it as the training split."""

    def load(text, source="en", target="fr", **options):
        path = tmp_path / "own.tsv"
        path.write_bytes(text.encode())
        return load_tsv(path, source, target, **{**WHOLE, **options})

    return load


@pytest.mark.parametrize("text", [TATOEBA, TATOEBA.replace("\tCC-BY", "")])
def test_tsv_form(tsv, text):
    corpus = tsv(text, valid=1, test=1)
    pairs = {pair for pairs in corpus.splits.values() for pair in pairs}
    assert pairs == {
        Pair(("go", "."), ("va", "!")),
        Pair(("hi", "."), ("salut", "!")),
        Pair(("run", "!"), ("cours", "!")),
    }
    assert repr(corpus) == "own.tsv en→fr: train 1, valid 1, test 1"


@pytest.mark.parametrize("columns", [None, ("en", "zh"), ["zh", "en"]])
@pytest.mark.parametrize("source, target", [("en", "zh"), ("zh", "en")])
def test_tsv_columns(tsv, columns, source, target):
    english, chinese = ("Hi.", "hi ."), ("你好。", "你 好 。")
    first_is_english = tuple(columns or (source, target)) == ("en", "zh")
    first, second = (english, chinese) if first_is_english else (chinese, english)
    corpus = tsv(f"{first[0]}\t{second[0]}\n", source, target, columns=columns)
    expected = english[1], chinese[1]
    assert sides(corpus) == [expected if source == "en" else expected[::-1]]


@pytest.mark.parametrize(
    "source, target, columns, match",
    [
        ("en", "Italian", None, "unknown language 'Italian'"),
        ("en", "en", None, "source and target are both en .English."),
        ("en", "fr", ("en", "de"), "columns names the languages of the first two"),
        ("en", "fr", ("en",), "columns names the languages of the first two"),
        ("en", "fr", (0, 1), "columns names the languages of the first two"),
    ],
)
def test_tsv_refuses_languages(tsv, source, target, columns, match):
    with pytest.raises(ValueError, match=match):
        tsv(TATOEBA, source, target, columns=columns)


def test_columns_that_look_swapped_stop_unless_one_says_that_they_are_right(tsv):
    text = "Il est dans la maison.\tHe is in the house.\n" * 3
    with pytest.raises(ValueError, match="look swapped. .*columns=.'fr', 'en'.") as e:
        tsv(text, "en", "fr")
    assert "own.tsv: the first column should be en (English) and" in str(e.value)
    right = tsv(text, "en", "fr", columns=("fr", "en"))
    as_it_is = tsv(text, "en", "fr", columns=("en", "fr"))
    assert right["train"][0].source == as_it_is["train"][0].target


def test_lines_that_are_no_text_are_skipped(tsv, tmp_path):
    path = tmp_path / "bytes.tsv"
    path.write_bytes(b"A.\tB.\ncaf\xe9\tC.\nD.\t" + b"x" * 10_001 + b"\nE.\tF.\n")
    with pytest.raises(ValueError, match="bytes.tsv, line 2: not UTF-8"):
        load_tsv(path, **WHOLE)
    corpus = load_tsv(path, skip_bad_lines=True, **WHOLE)
    assert len(corpus["train"]) == 2 and list(corpus.skipped) == [2, 3]
    assert corpus.skipped[3].startswith("more than 10,000 characters")


def test_the_targets_that_are_scored_are_kept_as_written(tsv):
    text = "".join(f"{n}a\tLe No {n} , là !\n" for n in range(20))
    corpus = tsv(text, valid=3, test=4)
    for split, pairs in corpus.splits.items():
        if split == "train":
            assert corpus.target_texts(split)[0].startswith("Le no ")
        else:
            numbers = [pair.target[2] for pair in pairs]
            found = corpus.target_texts(split)
            assert found == [f"Le No {number} , là !" for number in numbers]


@pytest.mark.parametrize(
    "count, repeats, held_out", [(300, 1, 30), (30_000, 1, 1000), (3, 1, 1)]
)
def test_held_out_pairs_by_the_size_of_the_file(tsv, count, repeats, held_out):
    corpus = tsv("".join(f"a{n}\tb{n}\n" for n in range(count)), valid=None, test=None)
    assert [len(corpus[split]) for split in ("valid", "test")] == [held_out, held_out]


def test_a_file_that_repeats_itself_is_split_as_near_as_it_can_be(tsv):
    text = "".join(f"a{n}\tb{n}\n" for n in range(300)) * 70
    corpus = tsv(text, valid=None, test=None)
    for split in ("valid", "test"):
        assert 930 <= len(corpus[split]) <= 1000
    with pytest.raises(ValueError, match="too few for a split 'valid' of 1000"):
        tsv(text, valid=1000, test=1000)


EXPECTED = "; expected two sentences with a tab between them"
LINES = {  # a text of three lines, one of them bad: its number, what is said of it
    "A.\tB.\nC.\nD.\tE.": (2, "wrong number of columns, 1 instead of 2" + EXPECTED),
    "A.\tB.\tx\nC.\tD.\nE.\tF.\tx": (2, "wrong number of columns, 2 instead of 3"),
    "A.\tB.\nC.\tD.\tx\ty\nE.\tF.": (2, "wrong number of columns, 4 instead of 2"),
    "a\tb\tc\td\nA.\tB.\nC.\tD.": (1, "wrong number of columns, 4 instead of 2"),
    "A.\tB.\n\nC.\tD.": (2, "the line is empty; remove it"),
    "A.\tB.\n \t\nC.\tD.": (2, "the line is empty; remove it"),
    "A.\tB.\nC.\tD.\nE.\t": (3, "the fr side is empty; both need a sentence"),
    "\u200b \u2060\tA.\nB.\tC.\nD.\tE.": (1, "the en side is empty"),
}


@pytest.mark.parametrize("text", LINES)
@pytest.mark.parametrize("end", ["", "\n", "\n\n\r\n"])
def test_bad_lines_are_named_or_skipped_and_reported(tsv, text, end):
    number, match = LINES[text]
    with pytest.raises(ValueError, match=f"own.tsv, line {number}: {match}"):
        tsv(text + end)
    corpus = tsv(text + end, skip_bad_lines=True)
    assert list(corpus.skipped) == [number] and len(corpus["train"]) == 2
    assert re.match(match, corpus.skipped[number])
    assert repr(corpus).endswith("train 2, valid 0, test 0, lines skipped 1")


def test_empty_lines_at_the_end_are_no_fault(tsv):
    corpus = tsv("A.\tB.\nC.\tD.\n\n \t\n")
    assert sides(corpus) == [("a .", "b ."), ("c .", "d .")] and corpus.skipped == {}


def test_limit_takes_the_first_lines(tsv):
    assert sides(tsv(TATOEBA + "bad line\n", limit=1)) == [("go .", "va !")]
    assert len(tsv(TATOEBA, limit=99)["train"]) == 3


@pytest.mark.parametrize("value", [-5, True, 1.0, "9", 0])
@pytest.mark.parametrize("name", ["limit", "valid", "test"])
def test_numbers_of_lines_that_are_none(tsv, name, value):
    if (name, value) in (("valid", 0), ("test", 0)):
        return  # there need be none
    lowest = "1 line, or None for all" if name == "limit" else "0"
    match = f"{name} must be a whole number of at least {lowest}, got {value!r}$"
    with pytest.raises(ValueError, match=match):
        tsv(TATOEBA, **{name: value})


def test_too_few_pairs(tsv):
    with pytest.raises(ValueError, match="3 pairs in 3 groups .* too few for a split"):
        tsv(TATOEBA, valid=2, test=1)
    with pytest.raises(ValueError, match="too few for a split 'valid' of 1000"):
        tsv(TATOEBA, valid=1000)


# --- splits -----------------------------------------------------------------------

pair_lists = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40
).map(lambda numbers: [Pair((f"s{a}",), (f"t{b}",)) for a, b in numbers])


@settings(max_examples=300)
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
    mirrored = [Pair(pair.target, pair.source) for pair in pairs]
    for split, own in split_pairs(mirrored, wanted, seed).items():
        assert [(p.target, p.source) for p in own] == [p[:2] for p in splits[split]]


def test_splits_depend_on_the_seed_and_keep_the_order():
    pairs = [Pair((f"{i:02}",), (str(-i),)) for i in range(100)]
    found = [tuple(split_pairs(pairs, {"test": 10}, seed)["test"]) for seed in range(9)]
    assert len(set(found)) == 9 and found[0] != tuple(pairs[:10])
    assert all(list(split) == sorted(split) for split in found)


def test_split_ties_sentences_through_other_pairs():
    chain = [Pair((f"s{i}",), (f"t{j}",)) for i in range(5) for j in (i, i + 1)]
    with pytest.raises(ValueError, match="10 pairs in 1 groups"):
        split_pairs(chain, {"test": 2})


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


@pytest.fixture
def own_folder(tmp_path, monkeypatch, server):
    folder = tmp_path / "own data" / "multi30k"
    folder.mkdir(parents=True)
    for name, content in MULTI30K.items():
        (folder / name).write_bytes(content)
    monkeypatch.setenv(DATA_VARIABLE, str(folder.parent))
    return folder


def test_multi30k_from_the_users_folder(own_folder, server, tmp_path):
    corpus = load_multi30k()
    assert repr(corpus) == "Multi30k de→en: train 2, valid 2, test 2"
    assert corpus["valid"][1] == Pair(("straße", ",", "val"), ("street", ",", "val"))
    assert load_multi30k("fr", "de")["train"][0].source == ("l'", "ami", ".")
    assert server.asked == [] and not (tmp_path / "cache").exists()
    (own_folder / "val.de.gz").unlink()
    load_multi30k()
    assert server.asked == ["val.de.gz"]  # only what is missing


def test_a_users_file_that_was_changed_is_named_and_left(own_folder):
    bad = own_folder / "val.en.gz"
    bad.write_bytes(b"changed")
    with pytest.raises(ValueError, match="left as it is") as error:
        load_multi30k()
    expected = corpora.MULTI30K_SHA256["val.en.gz"]
    for part in (str(bad), hashlib.sha256(b"changed").hexdigest(), expected):
        assert part in str(error.value)
    assert bad.read_bytes() == b"changed"


def test_multi30k_sides_of_different_length(own_folder, monkeypatch):
    content = gzip.compress(b"only one line\n")
    (own_folder / "train.en.gz").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(corpora.MULTI30K_SHA256, "train.en.gz", digest)
    with pytest.raises(ValueError, match="train.de.gz has 2 lines and .*en.gz has 1: "):
        load_multi30k()


def test_multi30k_is_downloaded_once(server, tmp_path):
    corpus = load_multi30k("en", "fr")
    assert corpus["test"][0] == Pair(("street", "."), ("l'", "ami", "."))
    names = sorted(name for name in MULTI30K if not name.endswith(".de.gz"))
    assert sorted(server.asked) == names
    folder = tmp_path / "cache" / "multi30k"
    assert sorted(path.name for path in folder.iterdir()) == names
    load_multi30k("en", "fr")
    assert len(server.asked) == 6


def test_multi30k_that_can_not_be_downloaded(server):
    del server.files["train.de.gz"]
    with pytest.raises(ConnectionError, match=f"{server.url}train.de.gz .*404"):
        load_multi30k()


def test_checksums_and_address_as_published():
    assert len(MULTI30K_SHA256) == 9
    assert {len(digest) for digest in MULTI30K_SHA256.values()} == {64}
    assert corpora.MULTI30K_URL.endswith("/data/task1/raw/")


# --- real text --------------------------------------------------------------------


REAL = {  # what loads it, how many pairs each split has
    "multi30k": (partial(load_multi30k, "de", "en"), (29_000, 1_014, 1_000)),
    "tatoeba/fra.txt": (
        partial(load_tsv, "tatoeba/fra.txt", "en", "fr", valid=300, test=300),
        (4_400, 300, 300),
    ),
    "tatoeba/cmn.txt": (
        partial(
            load_tsv,
            "tatoeba/cmn.txt",
            "zh",
            "en",
            columns=("en", "zh"),
            skip_bad_lines=True,
        ),
        (28_979, 1_000, 1_000),
    ),
}
each_real = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=needs(name)) for name in REAL]
)


@cache
def real(name):
    return REAL[name][0]()


@each_real
def test_real_text_is_whole_and_comes_back(name):
    corpus = real(name)
    assert tuple(sizes(corpus).values()) == REAL[name][1]
    vocabs = corpus.vocabs(min_freq=2)
    for split in corpus.splits:
        batch = next(BatchLoader(corpus[split], *vocabs).epoch(0))
        assert batch.source.shape[0] == batch.target_out.shape[0] == 64
    for side, lang in enumerate((corpus.source_lang, corpus.target_lang)):
        assert vocabs[side].lang == lang
        parts = [{pair[side] for pair in pairs} for pairs in corpus.splits.values()]
        sentences = set.union(*parts)
        if name != "multi30k":  # as published, sentences come twice
            assert len(sentences) == sum(map(len, parts))
        for tokens in sentences - {("问题是", "我没什么要跟他说的", "。")}:  # segmented
            assert tokens and tokenize(detokenize(tokens, lang), lang) == list(tokens)


@needs("multi30k")
def test_multi30k_as_published():
    german = "zwei junge weiße männer sind im freien in der nähe vieler büsche ."
    english = "two young , white males are outside near many bushes ."
    assert sides(real("multi30k"))[0] == (german, english)
    vocabs = real("multi30k").vocabs(min_freq=2)
    assert [len(vocab) for vocab in vocabs] == [7855, 5924]


@needs("tatoeba/cmn.txt")
def test_tatoeba_chinese():
    # Line 13 of the file has no tab.
    match = "cmn.txt, line 13: wrong number of columns, 1 "
    with pytest.raises(ValueError, match=match):
        load_tsv("tatoeba/cmn.txt", "en", "zh")
    assert real("tatoeba/cmn.txt").skipped.keys() == {13}
    source, target = real("tatoeba/cmn.txt").vocabs()
    assert "我" in source and "i" in target
    # By character, but for the one line with a space between Chinese characters.
    words = [w for w in source.idx_to_token[4:] if len(w) > 1 and not w.isascii()]
    assert sorted(words) == ["我没什么要跟他说的", "问题是"]


@each_real
def test_a_few_steps_on_real_text_teach_something(name):
    corpus = real(name)
    vocabs = corpus.vocabs(min_freq=2)
    torch.manual_seed(0)
    model = build_model("attention", *map(len, vocabs), 32, 64, bidirectional=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    held_out = BatchLoader(corpus["test"][:64], *vocabs)
    before = evaluate_loss(model, held_out)
    batches = BatchLoader(corpus["train"], *vocabs, batch_size=32).epoch(0)
    for _ in range(12):
        train_step(model, next(batches), optimizer)
    assert evaluate_loss(model, held_out) < before - 0.5
    for pair in corpus["test"][:3]:
        sentence = detokenize(pair.source, corpus.source_lang)
        found = translate(model, sentence, *vocabs, max_steps=20)
        shape = len(found.tokens), len(pair.source) + 1  # with <eos>
        assert found.attention_weights.shape == shape


def test_references_are_the_targets_wherever_the_columns_stand(tsv):
    text = "".join(f"Le No {n}\tThe No {n}\n" for n in range(9))
    corpus = tsv(text, "en", "fr", columns=("fr", "en"), valid=2, test=2)
    for split in ("valid", "test"):
        numbers = [pair.source[-1] for pair in corpus[split]]
        assert corpus.target_texts(split) == [f"Le No {number}" for number in numbers]
