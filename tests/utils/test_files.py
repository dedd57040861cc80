"""Files: read in every form, refused in words and in little memory, downloaded."""

import gzip
import hashlib
import os
import tempfile
from functools import partial
from pathlib import Path

import pooch
import pytest
from helpers import Files, Processes, become_nobody, posix, serve, set_variable

from utils.corpora import load_tsv, load_village, multi30k_file
from utils.files import DATA_VARIABLE, cache_folder, decode_lines, download, read_bytes

MB = 2**20


@pytest.fixture(scope="module")
def processes():
    return Processes()


def lines(path):
    return decode_lines(read_bytes(path), path)


def write(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


# --- lines ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.tsv.gz"])
@pytest.mark.parametrize(
    "text",
    [
        "Go.\tVa\nHi.\tSalut\n",
        "Go.\tVa\r\nHi.\tSalut\r\n",
        "\ufeffGo.\tVa\nHi.\tSalut\n",
        "\ufeffGo.\tVa\r\nHi.\tSalut\r\n",
        "Go.\tVa\nHi.\tSalut",
        "Go.\tVa\nHi.\tSalut\n\n",
        "Go.\tVa\r\nHi.\tSalut\r\n\r\n \t\r\n",
    ],
)
def test_a_file_is_read_the_same_in_every_form(tmp_path, name, text):
    assert lines(write(tmp_path / name, text)) == ["Go.\tVa", "Hi.\tSalut"]


def test_other_line_separators_are_part_of_a_sentence(tmp_path):
    path = write(tmp_path / "a.tsv", "a\u2028b\tx\x85y\n\nc\td\t\n")
    assert lines(path) == ["a\u2028b\tx\x85y", "", "c\td\t"]


@pytest.mark.parametrize(
    "content, match",
    [
        (b"Go.\tVa !\nHi.\tcaf\xe9\n", "line 2: not UTF-8 .byte 0xe9.; save the file"),
        ("Go.\tVa !\n".encode("utf-16"), "line 1: not UTF-8 .byte 0xff"),
        ("", "is empty: expected one sentence a line"),
        (b"\xef\xbb\xbf\r\n\n", "is empty: expected one sentence a line"),
        ("a\n" + "b" * 10_001, "line 2: more than 10,000 characters"),
    ],
)
@pytest.mark.parametrize("name", ["bad.tsv", "bad.tsv.gz"])
def test_what_is_no_text_is_refused_by_line(tmp_path, name, content, match):
    path = write(tmp_path / name, content)
    with pytest.raises(ValueError, match=match) as error:
        lines(path)
    assert str(path) in str(error.value)
    assert lines(write(path, "b" * 10_000)) == ["b" * 10_000]


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
        lines(path)


# --- where a file is looked for ---------------------------------------------------


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A data folder, and files beside it that are none of its business."""
    (tmp_path / "own data" / "multi30k").mkdir(parents=True)
    text = "".join(f"secret {i}\tle secret {i}\n" for i in range(10))
    for name in ("secret.tsv", "multi30k.gz", "own data/multi30k/fra.txt"):
        write(tmp_path / name, text)
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "own data"))
    monkeypatch.setattr("utils.corpora.MULTI30K_URL", "http://127.0.0.1:9/")
    monkeypatch.setattr("utils.corpora.cache_folder", lambda: tmp_path / "cache")
    return tmp_path


def everything(folder):
    return {p: p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


@pytest.mark.parametrize(
    "name", ["../secret.tsv", "multi30k/../../secret.tsv", "./../secret.tsv", "none"]
)
def test_a_path_does_not_leave_the_data_folder(secret, name):
    with pytest.raises(FileNotFoundError, match="there is no file .*: give the path"):
        load_tsv(name, valid=1, test=1)


def test_a_user_may_name_any_file(secret, monkeypatch):
    assert load_tsv("multi30k/fra.txt", valid=1, test=1).name == "fra.txt"
    assert load_tsv(secret / "secret.tsv", valid=1, test=1).name == "secret.tsv"
    monkeypatch.chdir(secret / "own data")
    assert load_tsv("../secret.tsv", valid=1, test=1).name == "secret.tsv"


def test_a_missing_file_or_folder_is_named(secret, monkeypatch):
    with pytest.raises(FileNotFoundError) as error:
        load_tsv("none.txt")
    inside = secret / "own data" / "none.txt"
    assert f"there is no file none.txt nor {inside}" in str(error.value)
    monkeypatch.setenv(DATA_VARIABLE, str(secret / "no-folder"))
    with pytest.raises(FileNotFoundError, match="which is no folder: name one that"):
        load_tsv("none.txt")


@pytest.mark.parametrize("name", ["../../multi30k.gz", "/etc/hostname", "", "x.gz"])
def test_a_download_has_a_known_name(secret, name):
    before = everything(secret)
    with pytest.raises(ValueError, match="no file of Multi30k"):
        multi30k_file(name)
    assert everything(secret) == before


def test_names_in_a_list_of_checksums_are_only_compared(tmp_path):
    folder = tmp_path / "village"
    folder.mkdir()
    names = ("../../../etc/hostname", "village/train.tsv.gz")
    sums = "".join(f"{'0' * 64}  {name}\n" for name in names)
    write(tmp_path / "SHA256SUMS", sums)
    (folder / "train.tsv.gz").write_bytes(b"")
    with pytest.raises(ValueError, match="train.tsv.gz has the SHA-256 checksum"):
        load_village(folder=folder)


# --- too large --------------------------------------------------------------------


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    """Small files that hold gigabytes, and a large one."""
    folder = tmp_path_factory.mktemp("bombs")
    member = gzip.compress(bytes(64 * MB), compresslevel=6, mtime=0)
    (folder / "line.tsv.gz").write_bytes(member * 16)
    (folder / "bomb.tsv.gz").write_bytes(member * 160)
    with open(folder / "line.tsv", "wb") as file:
        file.truncate(2**30)
    (folder / "words.tsv").write_bytes(b"a b\tc " + b"d " * (50 * MB) + b"\n")
    write(folder / "inner.tsv.gz", (folder / "line.tsv.gz").read_bytes())
    return folder


@posix
@pytest.mark.parametrize(
    "name, limit",
    [
        ("line.tsv.gz", 600),  # 1 GB in one line
        ("bomb.tsv.gz", 600),  # 10 MB that hold 10 GB
        ("line.tsv", 600),  # 1 GB, as it is
        ("words.tsv", 600),  # a line of 50 million words
        ("inner.tsv.gz", 50),  # gzip in gzip is no text
    ],
)
def test_what_is_too_large_is_refused_in_little_memory(processes, bombs, name, limit):
    found = processes.run(load_tsv, bombs / name)
    assert found.error == "ValueError" and str(bombs / name) in found.words
    assert found.megabytes < limit


@posix
@pytest.mark.parametrize("corpus", ["Village", "Multi30k"])
def test_a_bomb_in_the_place_of_a_corpus(processes, bombs, tmp_path, corpus):
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for name in ("train.tsv.gz", "train.de.gz"):
        (folder / name).hardlink_to(bombs / "bomb.tsv.gz")
    if corpus == "Village":
        found = processes.run(load_village, "en", "fr", folder)
    else:
        here = partial(set_variable, DATA_VARIABLE, str(tmp_path))
        found = processes.run(multi30k_file, "train.de.gz", before=here)
    assert found.error == "ValueError" and str(folder) in found.words
    assert found.megabytes < 600


# --- downloads --------------------------------------------------------------------

NAME = "train.de.gz"
GOOD = gzip.compress(b"Ein Haus.\n" * 2000, mtime=0) + bytes(20_000)
SHA256 = hashlib.sha256(GOOD).hexdigest()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serve(Files) as server:
        server.files, server.mood, server.asked = {NAME: GOOD}, "good", []
        yield server


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "multi30k" / NAME


def kept(folder):
    return [path.name for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("before", ["nothing", "a bad copy"])
@pytest.mark.parametrize(
    "mood, reason",
    [
        ("cut", f"{len(GOOD) - len(GOOD) // 2} more expected"),
        ("silent", "closed connection without response"),
        ("404", "404"),
        ("500", "500"),
        ("page", f"does not match .*{SHA256}.* or where a login page answers"),
    ],
)
def test_a_broken_download_and_the_second_try(server, path, mood, reason, before):
    if before == "a bad copy":  # removing it could remove what another process fetched
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half written")
    server.mood = mood
    found = everything(path.parent)
    with pytest.raises(ConnectionError, match=reason.replace(".*", "(?s:.*)")) as error:
        download(server.url + NAME, SHA256, path)
    advice = (
        f"put {NAME} into a folder named multi30k, and set the environment variable "
        f"{DATA_VARIABLE} to the folder that holds multi30k"
    )
    for part in (server.url + NAME, "Nothing of it was kept.", advice):
        assert part in str(error.value)
    assert everything(path.parent) == found
    server.mood, level = "good", pooch.get_logger().level
    assert download(server.url + NAME, SHA256, path).read_bytes() == GOOD
    assert kept(path.parent) == [NAME] and pooch.get_logger().level == level
    download(server.url + NAME, SHA256, path)
    assert len(server.asked) == 2  # a good copy isn't fetched again


def test_a_file_in_the_place_of_the_cache(server, path, tmp_path):
    cache = write(tmp_path / "cache", "not a folder")
    with pytest.raises(ConnectionError, match="could not download") as error:
        download(server.url + NAME, SHA256, path)
    assert str(cache) in str(error.value) and cache.read_text() == "not a folder"
    cache.unlink()
    assert download(server.url + NAME, SHA256, path).read_bytes() == GOOD


def test_a_stopped_download_leaves_nothing(server, path, monkeypatch):
    def stop(self, url, output_file, pooch):
        Path(output_file).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        download(server.url + NAME, SHA256, path)
    assert kept(path.parent) == []


@posix
@pytest.mark.parametrize("bad_file", [False, True])
def test_a_cache_that_may_not_be_written(server, processes, bad_file):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder) / "cache" / "multi30k" / NAME
        path.parent.mkdir(parents=True)
        if bad_file:
            path.write_bytes(b"half written")
        path.parent.chmod(0o555)
        arguments = server.url + NAME, SHA256, path
        found = processes.run(download, *arguments, before=become_nobody)
        assert found.error == "ConnectionError"
        assert found.words.startswith(f"could not download {server.url}")
        assert str(path.parent) in found.words and DATA_VARIABLE in found.words
        assert kept(path.parent) == [NAME] * bad_file
        path.parent.chmod(0o755)
        assert download(*arguments).read_bytes() == GOOD


@posix
@pytest.mark.parametrize("before", ["nothing", "a bad copy"])
def test_two_processes_download_the_same_file(server, path, processes, before):
    server.mood = "slow"
    if before == "a bad copy":
        path.parent.mkdir(parents=True)
        path.write_bytes(b"half written")
    both = processes.context.Barrier(2)
    arguments = server.url + NAME, SHA256, path
    waits = [processes.start(download, *arguments, before=both.wait) for _ in "ab"]
    assert [wait()[:2] for wait in waits] == [(None, repr(path))] * 2
    assert path.read_bytes() == GOOD
    assert kept(path.parent) == [NAME] and len(server.asked) == 2


@pytest.mark.parametrize("moment", ["before it is read", "after it was read"])
def test_another_process_removes_the_bad_copy(server, path, monkeypatch, moment):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"half written")
    read = Path.read_bytes

    def removed(path):
        if moment == "before it is read":
            path.unlink()
        content = read(path)
        path.unlink()
        return content

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", removed)
        download(server.url + NAME, SHA256, path)
    assert path.read_bytes() == GOOD


def test_the_cache_is_a_folder_of_the_courses_own():
    assert cache_folder().name == "learning-to-align"


def test_a_download_leaves_the_logger_as_it_was(server, path):
    logger, before = pooch.get_logger(), pooch.get_logger().level
    logger.setLevel(15)
    download(server.url + NAME, SHA256, path)
    assert logger.level == 15
    logger.setLevel(before)
