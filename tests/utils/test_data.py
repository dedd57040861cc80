"""Tests of utils.data: corpora, reading files, downloads, batches."""

import gzip
import hashlib
import http.server
import random
import threading
from collections import Counter
from itertools import permutations

import pooch
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from utils import data
from utils.corpora import (
    DATA_VARIABLE,
    VILLAGE_COLUMNS,
    VILLAGE_FOLDER,
    check_direction,
    load_multi30k,
    load_tsv,
    load_village,
    split_pairs,
)
from utils.data import (
    Batch,
    BatchLoader,
    Corpus,
    Pair,
    cut_batches,
    encode_sources,
    padding_share,
)
from utils.text import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Vocab


@pytest.fixture(autouse=True)
def no_data_folder(monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


# Corpus


def make_corpus():
    train = [Pair(("a", "b"), ("x",)), Pair(("a",), ("y", "x"))]
    return Corpus("Toy", "en", "fr", {"train": train, "test": [Pair(("c",), ("z",))]})


def test_corpus():
    corpus = make_corpus()
    assert corpus["test"] == [Pair(("c",), ("z",), None, frozenset())]
    assert repr(corpus) == "Toy en→fr: train 2, test 1"
    with pytest.raises(ValueError, match="Toy has no split 'dev', only train, test"):
        corpus["dev"]
    with pytest.raises(AttributeError):
        corpus.name = "other"


def test_vocabs_know_the_training_split_only():
    source, target = make_corpus().vocabs()
    assert (source.lang, target.lang) == ("en", "fr")
    assert source.idx_to_token == [*SPECIALS, "a", "b"]
    assert target.idx_to_token == [*SPECIALS, "x", "y"]
    source, target = make_corpus().vocabs(min_freq=2)
    assert (source.idx_to_token[4:], target.idx_to_token[4:]) == (["a"], ["x"])
    source, target = make_corpus().vocabs(max_size=1)
    assert (len(source), len(target)) == (5, 5)


@pytest.mark.parametrize("direction", [("en", "en"), ("en", "it"), ("", "en")])
def test_unknown_direction(direction):
    with pytest.raises(ValueError, match="choose one of en→fr, fr→en$") as error:
        check_direction(*direction, ("en", "fr"))
    assert "unknown direction " + "→".join(direction) in str(error.value)


# Village, with a small corpus of the same form


VILLAGE_LINES = [
    "the baker reads .\tle boulanger lit .\t面包师 读 书 。\t0-0 1-1 2-2 3-3"
    "\t1-0 2-1 3-3\t1-0 2-1 3-3\tadj-swap,zh-le",
    "i love you .\tje t' aime .\t我 爱 你 。\t0-0 1-2 2-1 3-3\t0-0 1-1 2-2 3-3"
    "\t0-0 1-2 2-1 3-3\t",
]


def write_village(folder, lines=VILLAGE_LINES, header=VILLAGE_COLUMNS, sums=True):
    folder.mkdir(parents=True, exist_ok=True)
    digests = []
    for split in ("train", "valid", "test", "long"):
        text = "\n".join(["\t".join(header), *lines]) + "\n"
        content = gzip.compress(text.encode())
        (folder / f"{split}.tsv.gz").write_bytes(content)
        digest = hashlib.sha256(content).hexdigest()
        digests.append(f"{digest}  {folder.name}/{split}.tsv.gz\n")
    if sums:
        (folder.parent / "SHA256SUMS").write_text("".join(digests))
    return folder


def test_village_form(tmp_path):
    corpus = load_village("en", "fr", write_village(tmp_path / "village"))
    assert repr(corpus) == "Village en→fr: train 2, valid 2, test 2, long 2"
    baker, love = corpus["train"]
    assert baker.source == ("the", "baker", "reads", ".")
    assert baker.target == ("le", "boulanger", "lit", ".")
    assert baker.tags == {"adj-swap", "zh-le"}
    assert love.alignment == {(0, 0), (1, 2), (2, 1), (3, 3)}
    assert love.tags == frozenset()


@pytest.mark.parametrize("source, target", list(permutations(("en", "fr", "zh"), 2)))
def test_village_directions_are_each_others_mirror(tmp_path, source, target):
    folder = write_village(tmp_path / "village")
    there, back = (
        load_village(source, target, folder),
        load_village(target, source, folder),
    )
    for a, b in zip(there["test"], back["test"], strict=True):
        assert (a.source, a.target, a.tags) == (b.target, b.source, b.tags)
        assert a.alignment == {(i, j) for j, i in b.alignment}
    columns = dict(zip(VILLAGE_COLUMNS, VILLAGE_LINES[0].split("\t"), strict=True))
    first = there["test"][0]
    assert " ".join(first.source) == columns[source]
    assert " ".join(first.target) == columns[target]
    links = columns.get(f"{source}-{target}")
    if links:
        written = " ".join(f"{i}-{j}" for i, j in sorted(first.alignment))
        assert written == links


def village_error(tmp_path, error, match, **options):
    folder = write_village(tmp_path / "village", **options)
    with pytest.raises(error, match=match):
        load_village("en", "fr", folder)


def test_village_unknown_direction():
    with pytest.raises(ValueError, match="en→de: choose one of en→fr, en→zh, fr→en"):
        load_village("en", "de")


def test_village_header(tmp_path):
    match = (
        r"train.tsv.gz, line 1: expected the columns en fr zh en-fr en-zh fr-zh tags"
    )
    village_error(tmp_path, ValueError, match, header=["en", "fr"])


def test_village_columns(tmp_path):
    match = "train.tsv.gz, line 3: 3 columns, expected 7"
    village_error(tmp_path, ValueError, match, lines=[VILLAGE_LINES[0], "a\tb\tc"])


@pytest.mark.parametrize(
    "old, new, match",
    [
        (
            "0-0 1-2",
            "0-0 1:2",
            "line 2: '0-0 1:2 2-1 3-3' is no alignment; expected lin",
        ),
        ("0-0 1-2", "0-0 1-4", "line 2: a link of .* outside the sentences of 4 and 4"),
        ("0-0 1-2", "0-0 4-1", "line 2: a link of .* outside the sentences of 4 and 4"),
        ("i love you .", " ", "line 2: a sentence is empty"),
    ],
)
def test_village_line(tmp_path, old, new, match):
    line = VILLAGE_LINES[1].replace(old, new, 1)
    village_error(tmp_path, ValueError, match, lines=[line])


def test_village_with_windows_line_ends(tmp_path):
    folder = write_village(tmp_path / "village", sums=False)
    expected = load_village("en", "fr", folder).splits
    for path in folder.glob("*.gz"):
        content = gzip.decompress(path.read_bytes()).replace(b"\n", b"\r\n")
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + content))
    assert load_village("en", "fr", folder).splits == expected


def test_village_missing_file(tmp_path):
    folder = write_village(tmp_path / "village")
    (folder / "long.tsv.gz").unlink()
    with pytest.raises(FileNotFoundError, match="there is no file .*long.tsv.gz"):
        load_village("en", "fr", folder)


def test_village_checksum(tmp_path):
    folder = write_village(tmp_path / "village")
    path = folder / "test.tsv.gz"
    changed = gzip.compress(gzip.decompress(path.read_bytes()), mtime=1)
    path.write_bytes(changed)
    found = hashlib.sha256(changed).hexdigest()
    with pytest.raises(ValueError, match=f"test.tsv.gz has .* {found}, expected") as e:
        load_village("en", "fr", folder)
    assert "data/village/generate.py" in str(e.value)
    assert path.read_bytes() == changed
    (tmp_path / "SHA256SUMS").unlink()
    assert len(load_village("en", "fr", folder)["test"]) == 2


needs_village = pytest.mark.skipif(
    not (VILLAGE_FOLDER / "long.tsv.gz").is_file(),
    reason="the Village corpus is not in data/village",
)


@needs_village
@pytest.mark.parametrize("source, target", list(permutations(("en", "fr", "zh"), 2)))
def test_village_as_shipped(source, target):
    corpus = load_village(source, target)
    sizes = {split: len(pairs) for split, pairs in corpus.splits.items()}
    assert sizes["train"] >= 20_000
    assert min(sizes["valid"], sizes["test"]) >= 1_000 and sizes["long"] > 0
    assert all(pair.alignment for pairs in corpus.splits.values() for pair in pairs)
    vocabs = corpus.vocabs()
    assert [vocab.lang for vocab in vocabs] == [source, target]
    batch = next(BatchLoader(corpus["long"], *vocabs).epoch(0))
    assert len(batch.source) == 64


# Reading files


def write(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


TATOEBA = "Go.\tVa !\tCC-BY\nHi.\tSalut !\tCC-BY\nRun!\tCours\u00a0!\tCC-BY\n"


@pytest.mark.parametrize("name", ["fra.txt", "fra.tsv.gz"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "\ufeff" + text.replace("\n", "\r\n"),
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace("\tCC-BY", ""),
    ],
    ids=["plain", "windows", "bom", "windows-bom", "no-last-line-end", "two-columns"],
)
def test_tsv_is_read_the_same_in_every_form(tmp_path, name, change):
    # Through bytes, so that no line end is translated on the way.
    path = write(tmp_path / name, change(TATOEBA).encode())
    corpus = load_tsv(path, "en", "fr", valid=1, test=1)
    pairs = {pair for pairs in corpus.splits.values() for pair in pairs}
    assert pairs == {
        Pair(("go", "."), ("va", "!")),
        Pair(("hi", "."), ("salut", "!")),
        Pair(("run", "!"), ("cours", "!")),
    }
    assert repr(corpus) == f"{name} en→fr: train 1, valid 1, test 1"


def test_other_line_separators_are_part_of_a_sentence(tmp_path):
    path = write(tmp_path / "a.tsv", "a\u2028b\tx\x85y\nc\td\n")
    corpus = load_tsv(path, "en", "fr", valid=0, test=0)
    assert len(corpus["train"]) == 2


@pytest.mark.parametrize(
    "content, match",
    [
        (b"Go.\tVa !\nHi.\tcaf\xe9\n", "line 2: not UTF-8 .byte 0xe9.; save the file"),
        ("Go.\tVa !\n".encode("utf-16"), "line 1: not UTF-8 .byte 0xff"),
        (
            "Go.\tVa !\nHi.\n",
            "line 2: wrong number of columns, 1 instead of 2; expected",
        ),
        ("Go.\tVa\tx\nHi.\tSalut\n", "line 2: wrong number of columns, 2 instead of 3"),
        ("Go.\tVa\nHi.\tA\tB\tC\n", "line 2: wrong number of columns, 4 instead of 2"),
        ("a\tb\tc\td\n", "line 1: wrong number of columns, 4 instead of 2"),
        ("Go.\tVa !\n\nHi.\tSalut !\n", "line 2: the line is empty; remove it"),
        ("Go.\tVa !\n\n", "line 2: the line is empty; remove it"),
        ("Go.\tVa !\nHi.\t\n", "line 2: the fr side is empty; both need a sentence"),
        ("Go.\tVa !\n\u200b \tSalut\n", "line 2: the en side is empty"),
        ("", "is empty: expected one sentence a line"),
        (b"\xef\xbb\xbf", "is empty: expected one sentence a line"),
    ],
)
@pytest.mark.parametrize("name", ["bad.tsv", "bad.tsv.gz"])
def test_bad_lines(tmp_path, name, content, match):
    path = write(tmp_path / name, content)
    with pytest.raises(ValueError, match=match) as error:
        load_tsv(path, "en", "fr", valid=0, test=0)
    assert str(path) in str(error.value)


def test_bad_lines_can_be_skipped_and_are_reported(tmp_path):
    lines = ["Go.\tVa", "one column", "Hi.\tSalut", "\tempty", "Run.\tCours"]
    path = write(tmp_path / "some.tsv", "\n".join(lines))
    corpus = load_tsv(path, "en", "fr", valid=0, test=0, skip_bad_lines=True)
    assert corpus.skipped == (2, 4)
    assert [pair.source[0] for pair in corpus["train"]] == ["go", "hi", "run"]
    assert repr(corpus).endswith("train 3, valid 0, test 0, lines skipped 2")
    # A first line that is bad decides nothing about the others.
    path = write(tmp_path / "first.tsv", "\n".join(lines[1:]))
    corpus = load_tsv(path, "en", "fr", valid=0, test=0, skip_bad_lines=True)
    assert corpus.skipped == (1, 3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-9],
        lambda content: b"no gzip",
        lambda content: content[:30] + b"\xff" * 20 + content[50:],
    ],
    ids=["cut", "foreign", "overwritten"],
)
def test_damaged_gzip(tmp_path, damage):
    path = write(tmp_path / "a.tsv.gz", "".join(f"a{i}\tb{i}\n" for i in range(99)))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match="a.tsv.gz is not a complete gzip file"):
        load_tsv(path, "en", "fr", valid=0, test=0)


def test_missing_file(tmp_path, monkeypatch):
    with pytest.raises(
        FileNotFoundError, match="there is no file .*none.txt: give the"
    ):
        load_tsv(tmp_path / "none.txt", "en", "fr")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    with pytest.raises(FileNotFoundError) as error:
        load_tsv("none.txt", "en", "fr")
    assert f"there is no file none.txt nor {tmp_path / 'none.txt'}" in str(error.value)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "no-folder"))
    with pytest.raises(FileNotFoundError, match="which is no folder: name one that"):
        load_tsv("none.txt", "en", "fr")


def test_file_relative_to_the_data_folder(tmp_path, monkeypatch):
    (tmp_path / "tatoeba").mkdir()
    write(tmp_path / "tatoeba" / "fra.txt", TATOEBA)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path))
    assert len(load_tsv("tatoeba/fra.txt", "en", "fr", valid=1, test=1)["train"]) == 1


# Tab-separated files: columns and splits


def test_tsv_columns(tmp_path):
    path = write(tmp_path / "cmn.txt", "Hi.\t你好。\nI love you.\t我爱你。\n")
    expected = Pair(("你", "好", "。"), ("hi", "."))
    for columns in (None, ("en", "zh")):
        corpus = load_tsv(path, "zh", "en", columns=columns, valid=0, test=0)
        assert corpus["train"][0] == expected
    corpus = load_tsv(path, "en", "zh", valid=0, test=0)
    assert corpus["train"][0] == Pair(expected.target, expected.source)
    path = write(tmp_path / "swapped.txt", "你好。\tHi.\n我爱你。\tI love you.\n")
    corpus = load_tsv(path, "zh", "en", columns=("zh", "en"), valid=0, test=0)
    assert corpus["train"][0] == expected


@pytest.mark.parametrize(
    "source, target, columns, match",
    [
        ("en", "it", None, "unknown language 'it'"),
        ("en", "en", None, "unknown direction en→en"),
        ("de", "fr", None, "say which column is which language: columns=.'de', 'fr'."),
        ("en", "fr", ("en", "de"), "columns names the languages of the first two"),
        ("en", "fr", ("en",), "columns names the languages of the first two"),
        ("en", "fr", (0, 1), "columns names the languages of the first two"),
    ],
)
def test_tsv_refuses_languages(tmp_path, source, target, columns, match):
    path = write(tmp_path / "fra.txt", TATOEBA)
    with pytest.raises(ValueError, match=match):
        load_tsv(path, source, target, columns, valid=0, test=0)


def test_tsv_limit_takes_the_first_lines(tmp_path):
    path = write(tmp_path / "fra.txt", TATOEBA + "bad line\n")
    corpus = load_tsv(path, "en", "fr", valid=0, test=0, limit=2)
    assert [pair.source[0] for pair in corpus["train"]] == ["go", "hi"]


def test_tsv_too_few_pairs(tmp_path):
    path = write(tmp_path / "fra.txt", TATOEBA)
    with pytest.raises(ValueError, match="3 pairs in 3 groups .* too few for a split"):
        load_tsv(path, "en", "fr", valid=2, test=1)
    with pytest.raises(ValueError, match="too few for a split 'valid' of 1000"):
        load_tsv(path, "en", "fr")


pair_lists = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=40
).map(lambda numbers: [Pair((f"s{a}",), (f"t{b}",)) for a, b in numbers])


@settings(deadline=None, max_examples=300)
@given(pair_lists, st.integers(0, 4), st.integers(0, 4), st.integers(0, 9))
def test_splits_share_no_sentence_and_lose_no_pair(pairs, valid, test, seed):
    sizes = {"valid": valid, "test": test}
    try:
        splits = split_pairs(pairs, sizes, seed)
    except ValueError as error:
        assert "too few for a split" in str(error)
        return
    assert {split: len(splits[split]) for split in sizes} == sizes
    assert Counter(sum(splits.values(), [])) == Counter(pairs)
    for a, b in permutations(splits, 2):
        assert not {p.source for p in splits[a]} & {p.source for p in splits[b]}
        assert not {p.target for p in splits[a]} & {p.target for p in splits[b]}
    assert split_pairs(pairs, sizes, seed) == splits
    mirrored = [Pair(pair.target, pair.source) for pair in pairs]
    for split, own in split_pairs(mirrored, sizes, seed).items():
        assert [(p.target, p.source) for p in own] == [p[:2] for p in splits[split]]


def test_splits_depend_on_the_seed():
    pairs = [Pair((str(i),), (str(-i),)) for i in range(100)]
    splits = [
        tuple(split_pairs(pairs, {"test": 10}, seed)["test"]) for seed in range(9)
    ]
    assert len(set(splits)) == 9
    assert splits[0] != tuple(pairs[:10])


def test_split_ties_sentences_through_other_pairs():
    chain = [Pair((f"s{i}",), (f"t{j}",)) for i in range(5) for j in (i, i + 1)]
    with pytest.raises(ValueError, match="10 pairs in 1 groups"):
        split_pairs(chain, {"test": 2})


# Multi30k: a user's own files, and downloads from a server on this machine


MULTI30K = {
    f"{stem}.{lang}.gz": gzip.compress(f"{word}.\n{word}, {stem}\n".encode(), mtime=0)
    for stem in ("train", "val", "test_2016_flickr")
    for lang, word in {"de": "Straße", "en": "Street", "fr": "L'ami"}.items()
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        content = self.server.files.get(self.path.strip("/"))
        self.send_response(404 if content is None else 200)
        if content is not None:
            extra = 100 if self.server.truncated else 0
            self.send_header("Content-Length", str(len(content) + extra))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, *args):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, with the checksums of the small files above."""
    sums = {name: hashlib.sha256(c).hexdigest() for name, c in MULTI30K.items()}
    monkeypatch.setattr(data, "MULTI30K_SHA256", sums)
    monkeypatch.setattr(data, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache" / "multi30k"


@pytest.fixture
def server(cache, monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.files, server.asked, server.truncated = dict(MULTI30K), [], False
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    url = f"http://127.0.0.1:{server.server_port}/"
    monkeypatch.setattr(data, "MULTI30K_URL", url)
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def own_folder(tmp_path, monkeypatch, cache):
    folder = tmp_path / "own data" / "multi30k"
    folder.mkdir(parents=True)
    for name, content in MULTI30K.items():
        (folder / name).write_bytes(content)
    monkeypatch.setenv(DATA_VARIABLE, str(folder.parent))
    monkeypatch.setattr(data, "MULTI30K_URL", "http://127.0.0.1:9/")
    return folder


def left_behind(folder):
    return [path.name for path in folder.rglob("*") if path.is_file()]


def test_multi30k_from_the_users_folder(own_folder, cache):
    corpus = load_multi30k()
    assert repr(corpus) == "Multi30k de→en: train 2, valid 2, test 2"
    assert corpus["valid"][1] == Pair(("straße", ",", "val"), ("street", ",", "val"))
    assert load_multi30k("fr", "de")["train"][0].source == ("l'", "ami", ".")
    assert not cache.exists()


def test_multi30k_checksum_of_the_users_file(own_folder, cache):
    bad = own_folder / "val.en.gz"
    bad.write_bytes(b"changed")
    found = hashlib.sha256(b"changed").hexdigest()
    expected = data.MULTI30K_SHA256["val.en.gz"]
    with pytest.raises(ValueError, match="left as it is") as error:
        load_multi30k()
    for part in (str(bad), found, expected):
        assert part in str(error.value)
    assert bad.read_bytes() == b"changed"
    assert not cache.exists()


@pytest.mark.parametrize("direction", [("de", "de"), ("de", "zh"), ("xx", "en")])
def test_multi30k_unknown_direction(direction):
    with pytest.raises(ValueError, match="choose one of de→en, de→fr, en→de"):
        load_multi30k(*direction)


def test_multi30k_sides_of_different_length(own_folder, monkeypatch):
    content = gzip.compress(b"only one line\n")
    (own_folder / "train.en.gz").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    monkeypatch.setitem(data.MULTI30K_SHA256, "train.en.gz", digest)
    with pytest.raises(ValueError, match="train.de.gz has 2 lines and .*en.gz has 1: "):
        load_multi30k()


def test_multi30k_is_downloaded_once(server, cache):
    logger_level = pooch.get_logger().level
    corpus = load_multi30k("en", "fr")
    assert corpus["test"][0] == Pair(("street", "."), ("l'", "ami", "."))
    names = [n for n in MULTI30K if not n.endswith(".de.gz")]
    assert sorted(server.asked) == sorted(f"/{name}" for name in names)
    assert sorted(left_behind(cache.parent)) == sorted(names)
    load_multi30k("en", "fr")
    assert len(server.asked) == 6
    assert pooch.get_logger().level == logger_level


def test_only_what_is_missing_is_downloaded(own_folder, server):
    (own_folder / "val.de.gz").unlink()
    load_multi30k()
    assert server.asked == ["/val.de.gz"]


def test_a_bad_file_in_the_cache_is_replaced(server, cache):
    cache.mkdir(parents=True)
    (cache / "train.de.gz").write_bytes(b"half written")
    load_multi30k()
    assert (cache / "train.de.gz").read_bytes() == MULTI30K["train.de.gz"]


def test_download_with_a_wrong_checksum(server, cache):
    server.files["train.de.gz"] = b"something else"
    with pytest.raises(ConnectionError, match="could not download .*train.de") as error:
        load_multi30k()
    assert data.MULTI30K_SHA256["train.de.gz"] in str(error.value)
    assert hashlib.sha256(b"something else").hexdigest() in str(error.value)
    assert left_behind(cache.parent) == []


@pytest.mark.parametrize("failure", ["404", "truncated", "no server"])
def test_download_fails(server, cache, failure, monkeypatch):
    if failure == "404":
        del server.files["train.de.gz"]
    elif failure == "truncated":
        server.truncated = True
    else:
        monkeypatch.setattr(data, "MULTI30K_URL", "http://127.0.0.1:9/")
    with pytest.raises(ConnectionError, match="could not download http") as error:
        load_multi30k()
    advice = (
        "put train.de.gz into a folder named multi30k, and set the environment "
        f"variable {DATA_VARIABLE} to the folder that holds multi30k"
    )
    assert advice in str(error.value)
    assert left_behind(cache.parent) == []


def test_a_stopped_download_leaves_nothing(server, cache, monkeypatch):
    def stop(self, url, output_file, pooch):
        with open(output_file, "wb") as file:
            file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        load_multi30k()
    assert left_behind(cache.parent) == []


def test_checksums_and_address_as_published():
    assert len(data.MULTI30K_SHA256) == 9
    assert all(len(digest) == 64 for digest in data.MULTI30K_SHA256.values())
    assert data.MULTI30K_URL.endswith("/data/task1/raw/")
    assert data.cache_folder().name == "learning-to-align"


# Batches


def make_pairs(lengths):
    """One pair for each (source length, target length), all different."""
    return [
        Pair(tuple(f"s{n}" for _ in range(a)), tuple(f"t{n}" for _ in range(b)))
        for n, (a, b) in enumerate(lengths)
    ]


def make_vocabs(pairs):
    return (
        Vocab([pair.source for pair in pairs], "en"),
        Vocab([pair.target for pair in pairs], "fr"),
    )


length_lists = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=60
)


def test_batch_by_hand():
    pairs = [Pair(("a", "b"), ("x",)), Pair(("a",), ("y", "x", "new"))]
    src, tgt = Vocab([["a", "b"]], "en"), Vocab([["x", "y"]], "fr")
    batch = Batch.from_pairs(pairs, src, tgt)
    assert batch.source.tolist() == [[4, 5, EOS_ID], [4, EOS_ID, PAD_ID]]
    assert batch.source_lens.tolist() == [3, 2]
    assert batch.target_in.tolist() == [
        [BOS_ID, 4, PAD_ID, PAD_ID],
        [BOS_ID, 5, 4, UNK_ID],
    ]
    assert batch.target_out.tolist() == [
        [4, EOS_ID, PAD_ID, PAD_ID],
        [5, 4, UNK_ID, EOS_ID],
    ]
    assert batch.target_lens.tolist() == [2, 4]
    assert {tensor.dtype for tensor in batch} == {torch.int64}


@settings(deadline=None)
@given(length_lists)
def test_batch_properties(lengths):
    pairs = make_pairs(lengths)
    src, tgt = make_vocabs(pairs)
    batch = Batch.from_pairs(pairs, src, tgt)
    assert batch.source_lens.tolist() == [a + 1 for a, _ in lengths]
    assert batch.target_lens.tolist() == [b + 1 for _, b in lengths]
    assert batch.source.shape == (len(pairs), batch.source_lens.max())
    shape = (len(pairs), batch.target_lens.max())
    assert batch.target_in.shape == batch.target_out.shape == shape
    for ids, lens in (
        (batch.source, batch.source_lens),
        (batch.target_in, batch.target_lens),
        (batch.target_out, batch.target_lens),
    ):
        real = torch.arange(ids.shape[1]) < lens[:, None]
        assert torch.equal(ids != PAD_ID, real)
    rows = torch.arange(len(pairs))
    assert (batch.source[rows, batch.source_lens - 1] == EOS_ID).all()
    assert (batch.target_out[rows, batch.target_lens - 1] == EOS_ID).all()
    assert (batch.target_in[:, 0] == BOS_ID).all()
    for row, length in enumerate(batch.target_lens):
        shifted = batch.target_in[row, 1:length]
        assert torch.equal(shifted, batch.target_out[row, : length - 1])
    source, source_lens = encode_sources([pair.source for pair in pairs], src)
    assert torch.equal(source, batch.source)
    assert torch.equal(source_lens, batch.source_lens)


def test_a_batch_alone_equals_its_row_in_a_larger_batch():
    pairs = make_pairs([(3, 2), (7, 9)])
    vocabs = make_vocabs(pairs)
    alone, both = Batch.from_pairs(pairs[:1], *vocabs), Batch.from_pairs(pairs, *vocabs)
    for a, b in zip(alone, both, strict=True):
        row = b[0, : a.shape[1]] if b.dim() == 2 else b[0]
        assert torch.equal(a[0], row)


def test_nothing_to_encode():
    vocab = Vocab([["a"]], "en")
    with pytest.raises(ValueError, match="no sentence to make a batch of"):
        encode_sources([], vocab)
    with pytest.raises(ValueError, match="no sentence to make a batch of"):
        Batch.from_pairs([], vocab, vocab)
    for sentences in ("a b", ["a b"]):
        with pytest.raises(TypeError, match="list of tokens, got the string 'a b'"):
            encode_sources(sentences, vocab)
    source, lens = encode_sources([[]], vocab)
    assert source.tolist() == [[EOS_ID]] and lens.tolist() == [1]


def rows_of(batches):
    """The source sentence of every row, as a tuple of ids."""
    return [
        [
            tuple(row[:n].tolist())
            for row, n in zip(b.source, b.source_lens, strict=True)
        ]
        for b in batches
    ]


@settings(deadline=None)
@given(length_lists, st.integers(1, 8), st.booleans(), st.booleans(), st.integers(0, 5))
def test_every_pair_once_an_epoch(lengths, batch_size, bucketed, shuffle, k):
    pairs = make_pairs(lengths)
    src, tgt = make_vocabs(pairs)
    loader = BatchLoader(pairs, src, tgt, batch_size, 3, bucketed, shuffle)
    batches = list(loader.epoch(k))
    assert len(batches) == len(loader)
    sizes = sorted(len(batch.source) for batch in batches)
    assert sizes[1:] == [batch_size] * (len(sizes) - 1) and sizes[0] <= batch_size
    seen = Counter(row for rows in rows_of(batches) for row in rows)
    assert seen == Counter((*src[pair.source], EOS_ID) for pair in pairs)
    for batch in batches:
        for source, target in zip(batch.source, batch.target_out, strict=True):
            source_token = src.to_tokens(source[0])
            assert tgt.to_tokens(target[0]) == source_token.replace("s", "t")
    again = BatchLoader(pairs, src, tgt, batch_size, 3, bucketed, shuffle)
    for a, b in zip(batches, again.epoch(k), strict=True):
        assert all(map(torch.equal, a, b))
    if not shuffle:
        assert rows_of(loader.epoch(k + 1)) == rows_of(batches)
    if not shuffle and not bucketed:
        in_order = [(*src[pair.source], EOS_ID) for pair in pairs]
        assert [row for rows in rows_of(batches) for row in rows] == in_order


def test_order_depends_on_seed_and_epoch_alone():
    pairs = make_pairs([(1 + i % 7, 1 + i % 5) for i in range(300)])
    vocabs = make_vocabs(pairs)
    loader = BatchLoader(pairs, *vocabs, batch_size=8, seed=1)
    epochs = [rows_of(loader.epoch(k)) for k in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert rows_of(loader) == epochs[0]
    # Neither what ran before nor the global generators matter, nor are they moved.
    random.seed(5)
    torch.manual_seed(5)
    states = random.getstate(), torch.get_rng_state()
    fresh = BatchLoader(pairs, *vocabs, batch_size=8, seed=1)
    assert rows_of(fresh.epoch(2)) == epochs[2]
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    other = BatchLoader(pairs, *vocabs, batch_size=8, seed=2)
    assert rows_of(other.epoch(0)) != epochs[0]
    # Members of a batch change too, not only the order of the batches.
    assert {frozenset(rows) for rows in epochs[0]} != {
        frozenset(rows) for rows in epochs[1]
    }


def test_batches_come_in_no_order_of_length():
    pairs = make_pairs([(n, n) for n in range(1, 41)])
    loader = BatchLoader(pairs, *make_vocabs(pairs), batch_size=2)
    longest = [int(batch.source_lens.max()) for batch in loader]
    assert sorted(longest) == list(range(3, 43, 2))
    assert longest != sorted(longest)


def test_buckets_save_padding():
    rng = random.Random(0)
    lengths = [(n := rng.randint(3, 30), n + rng.randint(-2, 2)) for _ in range(2000)]
    pairs = make_pairs(lengths)
    vocabs = make_vocabs(pairs)
    shares = [
        padding_share(BatchLoader(pairs, *vocabs, bucketed=bucketed, batch_size=32))
        for bucketed in (True, False)
    ]
    assert shares[0] < 0.1 < 0.35 < shares[1] < 0.6


def test_padding_share_by_hand():
    pairs = [Pair(("a",), ("x",)), Pair(("a", "a", "a"), ("x",))]
    vocabs = make_vocabs(pairs)
    # Sources 2 and 4 of 4 positions, targets 2 and 2 of 2: 10 real of 12.
    assert padding_share([Batch.from_pairs(pairs, *vocabs)]) == pytest.approx(1 / 6)


def test_pools_are_sorted_and_cut():
    lengths = [(n,) for n in range(1000, 0, -1)]
    batches = cut_batches(lengths, batch_size=10)
    assert len(batches) == 100
    # The first pool is the first 50 batches, from short to long.
    assert batches[0] == list(range(499, 489, -1))
    assert batches[50] == list(range(999, 989, -1))
    assert cut_batches(lengths, 10, bucketed=False)[0] == list(range(10))
    assert [len(b) for b in cut_batches([(1,)] * 7, 3)] == [3, 3, 1]


@pytest.mark.parametrize(
    "pairs, batch_size, error, message",
    [
        ([], 4, ValueError, "no pairs to make batches of: the list is empty"),
        ([Pair(("a",), ("x",))], 0, ValueError, "batch_size .* ≥ 1, got 0"),
        ([Pair(("a",), ("x",))], -2, ValueError, "batch_size .* ≥ 1, got -2"),
        ([Pair(("a",), ("x",))], 2.5, ValueError, "batch_size .* ≥ 1, got 2.5"),
        (make_corpus(), 4, TypeError, 'got a Corpus: take corpus."train".'),
        ([Pair("a b", ("x",))], 4, TypeError, "list of tokens, got the string 'a b'"),
    ],
)
def test_loader_refuses(pairs, batch_size, error, message):
    vocab = Vocab([["a"]], "en")
    with pytest.raises(error, match=message):
        BatchLoader(pairs, vocab, vocab, batch_size)
