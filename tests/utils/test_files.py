"""Files: read in every form, refused in words and in little memory, downloaded."""

import gzip
import hashlib
import threading
import tracemalloc
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from utils.files import DATA_VARIABLE, download, find_file, read_lines


def lines(path, content):
    content = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return read_lines(path)


@pytest.mark.parametrize("name", ["a.txt", "a.tsv.gz"])
def test_a_file_is_read_the_same_in_every_form(tmp_path, name):
    for text in "\ufeffa\tb\nc\td", "a\tb\r\nc\td\r\n\r\n \t\r\n", "a\tb\rc\td\r":
        assert lines(tmp_path / name, text) == ["a\tb", "c\td"]
    # Other line separators are part of a sentence, and 10,000 letters are a line.
    text = "a\u2028b\tx\x85y\n\nc\td\t\n" + "b" * 10_000
    assert lines(tmp_path / name, text) == text.split("\n")


@pytest.mark.parametrize(
    "content, message",
    [
        (b"Go.\tVa !\nHi.\tcaf\xe9\n", "line 2: not UTF-8 .byte 0xe9.; save"),
        ("a\tb".encode("utf-16-le"), "no text at all: .* with 61 00. Save it"),
        ("a".encode("utf-16"), "is UTF-16, .* with FF FE"),
        (b"PK\3\4", "a zip, a workbook, .* with 50 4B"),
        (b"\xef\xbb\xbf\r\n\n", "is empty: expected one sentence a line"),
        (b"a\n" + b"b" * 10_001, "line 2: more than 10,000 characters"),
    ],
)
def test_what_is_no_text_is_refused_by_line(tmp_path, content, message):
    for path in (tmp_path / "a.tsv", tmp_path / "a.tsv.gz"):
        with pytest.raises(ValueError, match=f"{path}.*{message}"):
            lines(path, content)


CUT = gzip.compress(b"a\tb\n" * 99, mtime=0)[:-9]


@pytest.mark.parametrize("data", [CUT, b"none", CUT[:15] + b"\xff" * 9 + CUT[24:]])
def test_a_damaged_gzip_file_is_refused(tmp_path, data):
    path = tmp_path / "a.gz"
    path.write_bytes(data)
    with pytest.raises(ValueError, match="a.gz is not a complete gzip file"):
        read_lines(path)


def test_what_is_too_large_is_refused_in_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.files.LARGEST_FILE", 1000)
    for path in (tmp_path / "a.tsv", tmp_path / "a.tsv.gz"):
        assert lines(path, "b" * 1000) == ["b" * 1000]
        content = bytes(2**26)  # 64 MB, and 64 KB of gzip
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        tracemalloc.start()
        with pytest.raises(ValueError, match=f"{path} holds more than .* its first"):
            read_lines(path)
        assert tracemalloc.get_traced_memory()[1] < 2**24
        tracemalloc.stop()


def test_a_file_is_looked_for_here_and_in_the_data_folder(tmp_path, monkeypatch):
    inside, outside = tmp_path / "own data" / "fra.txt", tmp_path / "outside.tsv"
    inside.parent.mkdir()
    inside.touch()
    outside.touch()
    monkeypatch.setenv(DATA_VARIABLE, str(inside.parent))
    assert find_file("fra.txt") == find_file(inside) == inside
    assert find_file(outside) == outside
    places = f"no file none.txt nor {inside.parent / 'none.txt'}: give the path"
    with pytest.raises(FileNotFoundError, match=places):
        find_file("none.txt")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "no-folder"))
    with pytest.raises(FileNotFoundError, match="which is no folder: name one that"):
        find_file("none.txt")


@pytest.fixture
def server(tmp_path, monkeypatch):
    """The address of a server on this machine with the files of tmp_path."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    handler = partial(SimpleHTTPRequestHandler, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=[0.01]).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def test_a_download_that_fails_says_what_to_do_and_leaves_nothing(server, tmp_path):
    name, good = "train.de.gz", gzip.compress(b"Ein Haus.", mtime=0)
    sha256, folder = hashlib.sha256(good).hexdigest(), tmp_path / "cache" / "multi30k"
    advice = f"{name} into a folder named multi30k, .* {DATA_VARIABLE} to the folder"
    for page, reason in ((None, "404"), (b"log in", f"does not match .*{sha256}")):
        if page:
            (tmp_path / name).write_bytes(page)
        message = f"(?s){server + name} .*{reason}.*network.*{advice}"
        with pytest.raises(ConnectionError, match=message):
            download(server + name, sha256, folder / name)
        assert not any(folder.glob("*"))
    (tmp_path / name).write_bytes(good)
    download(server + name, sha256, folder / name)
    (tmp_path / name).unlink()  # a good copy isn't fetched again
    assert download(server + name, sha256, folder / name).read_bytes() == good
