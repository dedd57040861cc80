"""Files: read in every form, refused in words and in little memory, downloaded."""

import gzip
import hashlib
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pooch
import pytest
from helpers import Files, serve

from utils.files import DATA_VARIABLE, decode_lines, download, find_file, read_bytes


def lines(path):
    return decode_lines(read_bytes(path), path)


def write(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


# --- lines ------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.txt", "a.tsv.gz"])
def test_a_file_is_read_the_same_in_every_form(tmp_path, name):
    for text in "\ufeffa\tb\nc\td", "a\tb\r\nc\td\r\n\r\n \t\r\n":
        assert lines(write(tmp_path / name, text)) == ["a\tb", "c\td"]
    # Other line separators are part of a sentence, and 10,000 letters are a line.
    text = "a\u2028b\tx\x85y\n\nc\td\t\n" + "b" * 10_000
    assert lines(write(tmp_path / name, text)) == text.split("\n")


CUT = gzip.compress(b"a\tb\n" * 99)[:-9]


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.tsv", b"Go.\tVa !\nHi.\tcaf\xe9\n", "line 2: not UTF-8 .byte 0xe9.; save"),
        ("a.tsv", b"\xef\xbb\xbf\r\n\n", "is empty: expected one sentence a line"),
        ("a.tsv", b"a\n" + b"b" * 10_001, "line 2: more than 10,000 characters"),
        ("a.tsv.gz", CUT, "is not a complete gzip file"),
        ("a.tsv.gz", b"no gzip", "is not a complete gzip file"),
        ("a.tsv.gz", CUT[:15] + b"\xff" * 9 + CUT[24:], "is not a complete gzip file"),
    ],
)
def test_what_is_no_text_is_refused_by_line(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ValueError, match=f"{path}.*{message}"):
        lines(path)


def test_what_is_too_large_is_refused_in_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.files.LARGEST_FILE", 1000)
    assert lines(write(tmp_path / "a.tsv.gz", "b" * 999 + "\n")) == ["b" * 999]
    assert lines(write(tmp_path / "a.tsv", "b" * 1000)) == ["b" * 1000]
    for name in ("bomb.tsv", "bomb.tsv.gz"):  # the second: 64 MB in 64 KB
        path = write(tmp_path / name, bytes(2**26))
        tracemalloc.start()
        with pytest.raises(ValueError, match=f"{path} holds more than .* its first"):
            lines(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()


# --- where a file is looked for ---------------------------------------------------


def test_a_file_is_looked_for_here_and_in_the_data_folder(tmp_path, monkeypatch):
    folder = tmp_path / "own data"
    (folder / "tatoeba").mkdir(parents=True)
    inside = write(folder / "tatoeba" / "fra.txt", "")
    outside = write(tmp_path / "outside.tsv", "")
    monkeypatch.setenv(DATA_VARIABLE, str(folder))
    assert find_file("tatoeba/fra.txt") == find_file(inside) == inside
    assert find_file(outside) == outside
    places = f"there is no file none.txt nor {folder / 'none.txt'}: give the path"
    with pytest.raises(FileNotFoundError, match=places):
        find_file("none.txt")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "no-folder"))
    with pytest.raises(FileNotFoundError, match="which is no folder: name one that"):
        find_file("none.txt")


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


def kept(folder):
    return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "mood, reason",
    [
        ("cut", f"{len(GOOD) - len(GOOD) // 2} more expected"),
        ("silent", "closed connection without response"),
        ("404", "404"),
        ("page", f"(?s:does not match .*{SHA256}.* or where a login page answers)"),
    ],
)
@pytest.mark.parametrize("before", [{}, {NAME: b"half written"}])
def test_a_broken_download_and_the_second_try(server, tmp_path, mood, reason, before):
    path = tmp_path / "cache" / "multi30k" / NAME
    path.parent.mkdir(parents=True)
    for name in before:  # removing it could remove what another process fetched
        path.write_bytes(before[name])
    server.mood = mood
    with pytest.raises(ConnectionError, match=reason) as error:
        download(server.url + NAME, SHA256, path)
    advice = (
        f"put {NAME} into a folder named multi30k, and set the environment variable "
        f"{DATA_VARIABLE} to the folder that holds multi30k"
    )
    assert server.url + NAME in str(error.value) and advice in str(error.value)
    assert kept(path.parent) == before
    server.mood = "slow"
    with ThreadPoolExecutor(2) as pool:  # two at once
        found = pool.map(lambda _: download(server.url + NAME, SHA256, path), "ab")
        assert list(found) == [path] * 2
    assert kept(path.parent) == {NAME: GOOD} and len(server.asked) == 3
    download(server.url + NAME, SHA256, path)
    assert len(server.asked) == 3  # a good copy isn't fetched again


def test_a_stopped_download_leaves_nothing(tmp_path, monkeypatch):
    def stop(self, url, output_file, pooch):
        Path(output_file).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", stop)
    with pytest.raises(KeyboardInterrupt):
        download(f"http://127.0.0.1/{NAME}", SHA256, tmp_path / NAME)
    assert kept(tmp_path) == {}
