"""Downloads that break: each says why, keeps nothing, and works the next time.

A server on this machine plays the broken one. Nothing is fetched from elsewhere.
"""

import gzip
import hashlib
import http.server
import multiprocessing
import os
import tempfile
import threading
import time
from pathlib import Path

import pytest

from utils import data
from utils.corpora import DATA_VARIABLE, download

NAME = "train.de.gz"
GOOD = gzip.compress(b"Ein Haus.\n" * 2000, mtime=0) + bytes(20_000)
SHA256 = hashlib.sha256(GOOD).hexdigest()
PAGE = b"<!DOCTYPE html><title>Please log in to this network</title>"


class Handler(http.server.BaseHTTPRequestHandler):
    """What `server.mood` says: good, slow, cut, 404, 500, page, other, silent."""

    def do_GET(self):
        self.server.asked += 1
        mood = self.server.mood
        if mood == "silent":  # hangs up without a word
            return
        if mood in ("404", "500"):
            self.send_error(int(mood))
            return
        content = {"page": PAGE, "other": GOOD[:-1] + b"x"}.get(mood, GOOD)
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        if mood == "cut":
            return
        if mood == "slow":
            time.sleep(0.5)
        self.wfile.write(content[half:])

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.mood, server.asked = "good", 0
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture(scope="module")
def processes():
    """Starts processes that needn't import PyTorch again, where the system can."""
    posix = os.name == "posix"
    context = multiprocessing.get_context("forkserver" if posix else "spawn")
    if posix:
        context.set_forkserver_preload(["pytest", "requests", "utils.data"])
    return context


def fetch(server):
    return download(NAME, server.url, SHA256, "multi30k")


def kept(cache):
    return [path.name for path in cache.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    "mood, reason",
    [
        ("cut", f"{len(GOOD) - len(GOOD) // 2} more expected"),
        ("silent", "closed connection without response"),
        ("404", "404"),
        ("500", "500"),
        ("page", "hash .* does not match .* or where a login page answers"),
        ("other", "hash .* does not match"),
    ],
)
def test_a_broken_download_and_the_second_try(server, cache, mood, reason):
    server.mood = mood
    with pytest.raises(ConnectionError, match=reason) as error:
        fetch(server)
    message = str(error.value)
    print(mood, "|", message)
    assert server.url + NAME in message
    assert DATA_VARIABLE in message and "Nothing of it was kept." in message
    assert kept(cache) == []
    server.mood = "good"
    assert fetch(server).read_bytes() == GOOD
    assert kept(cache) == [NAME]


def test_a_file_in_the_place_of_the_cache(server, cache):
    cache.write_text("not a folder", encoding="utf-8")
    with pytest.raises(ConnectionError, match="could not download") as error:
        fetch(server)
    print(error.value)
    assert str(cache) in str(error.value) and DATA_VARIABLE in str(error.value)
    assert cache.read_text(encoding="utf-8") == "not a folder"
    cache.unlink()
    assert fetch(server).read_bytes() == GOOD


def fetch_without_rights(sender, cache, url):
    """Send the error of a download, made as another user where this one is root."""
    data.cache_folder = lambda: cache
    if os.geteuid() == 0:
        os.setuid(65534)  # nobody: root may write everywhere
    try:
        download(NAME, url, SHA256, "multi30k")
    except Exception as error:
        sender.send((type(error).__name__, str(error)))


@pytest.mark.skipif(os.name != "posix", reason="needs permissions as POSIX has them")
@pytest.mark.parametrize("bad_file", [False, True])
def test_a_cache_that_may_not_be_written(server, processes, monkeypatch, bad_file):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        cache = Path(folder) / "cache"
        (cache / "multi30k").mkdir(parents=True)
        if bad_file:
            (cache / "multi30k" / NAME).write_bytes(b"half written")
        (cache / "multi30k").chmod(0o555)
        receiver, sender = processes.Pipe(duplex=False)
        arguments = (sender, cache, server.url)
        processes.Process(target=fetch_without_rights, args=arguments).start()
        sender.close()
        kind, message = receiver.recv()
        print(kind, message)
        assert kind == "ConnectionError" and message.startswith("could not download")
        assert str(cache) in message and DATA_VARIABLE in message
        assert kept(cache) == [NAME] * bad_file
        (cache / "multi30k").chmod(0o755)
        monkeypatch.setattr(data, "cache_folder", lambda: cache)
        assert fetch(server).read_bytes() == GOOD


# --- two at once -----------------------------------------------------------------


def fetch_for_two(sender, start, cache, url):
    """Download when both are ready, and send what is then in the file."""
    data.cache_folder = lambda: cache
    start.wait()
    try:
        sender.send(download(NAME, url, SHA256, "multi30k").read_bytes() == GOOD)
    except Exception as error:
        sender.send(repr(error))


@pytest.mark.parametrize("before", ["nothing", "a bad file"])
def test_two_processes_download_the_same_file(server, cache, processes, before):
    server.mood = "slow"
    if before == "a bad file":
        (cache / "multi30k").mkdir(parents=True)
        (cache / "multi30k" / NAME).write_bytes(b"half written")
    start, receivers, workers = processes.Barrier(2), [], []
    for _ in range(2):
        receiver, sender = processes.Pipe(duplex=False)
        arguments = (sender, start, cache, server.url)
        workers.append(processes.Process(target=fetch_for_two, args=arguments))
        receivers.append(receiver)
        workers[-1].start()
    assert [receiver.recv() for receiver in receivers] == [True, True]
    for worker in workers:
        worker.join()
    assert kept(cache) == [NAME] and server.asked == 2


@pytest.mark.parametrize("moment", ["before it is read", "after it was read"])
def test_another_process_removes_the_bad_file(server, cache, monkeypatch, moment):
    bad = cache / "multi30k" / NAME
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"half written")
    read = Path.read_bytes

    def removed(path):
        if moment == "before it is read":
            path.unlink()
        content = read(path)
        path.unlink()
        return content

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", removed)
        fetched = fetch(server)
    assert fetched.read_bytes() == GOOD


def test_a_bad_copy_stays_until_a_good_one_replaces_it(server, cache):
    bad = cache / "multi30k" / NAME
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"half written")
    server.mood = "cut"  # removing it here could remove what another process fetched
    with pytest.raises(ConnectionError):
        fetch(server)
    assert bad.read_bytes() == b"half written" and kept(cache) == [NAME]
    server.mood = "good"
    assert fetch(server).read_bytes() == GOOD
