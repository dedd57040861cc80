"""What tests of several modules share: random inputs, servers, processes, real data.

LEARNING_TO_ALIGN_FAULTS=10000 tries that many random inputs for each property instead
of 25.
"""

import contextlib
import http.server
import linecache
import multiprocessing
import os
import threading
import time
import traceback
from pathlib import Path
from typing import NamedTuple

import hypothesis
import pytest
import torch
from hypothesis import HealthCheck
from hypothesis import strategies as st

import utils
from utils.data import Batch as Batch
from utils.data import BatchLoader as BatchLoader
from utils.data import Pair as Pair
from utils.files import DATA_VARIABLE
from utils.models import build_model as build_model
from utils.text import Vocab as Vocab
from utils.training import Trainer as Trainer

# --- what is there ----------------------------------------------------------------


def needs(name):
    """Skips a test, by name, where the user's folder of real text hasn't this."""
    folder = os.environ.get(DATA_VARIABLE)
    present = bool(folder) and (Path(folder) / name).exists()
    reason = f"no {name} in the folder that {DATA_VARIABLE} names"
    return pytest.mark.skipif(not present, reason=reason)


posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")

# --- random inputs ----------------------------------------------------------------

tries = hypothesis.settings(
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

CHARACTERS = st.characters(exclude_categories=[]) | st.sampled_from("aé我'’- .\u0301")
TEXTS = st.text(CHARACTERS, max_size=40)
NOT_TEXT = st.none() | st.booleans() | st.integers() | st.floats() | st.binary()
ANYTHING = st.recursive(
    TEXTS | NOT_TEXT,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(TEXTS, inner, max_size=2)
    ),
    max_leaves=6,
)
LANGS = st.sampled_from("cs de en es fr ja th tr zh".split())


def tried(function, *arguments, **options):
    """What the function returns, or None where it raises an error of ours.

    Ours: a `raise` of utils/, with words, of a kind that a caller can expect.
    """
    try:
        return function(*arguments, **options)
    except (ValueError, TypeError, IndexError) as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        line = linecache.getline(last.filename, last.lineno).strip()
        in_utils = Path(last.filename).parent == Path(utils.__file__).parent
        if not (in_utils and line.startswith("raise") and len(str(error).split()) > 3):
            raise
        return None


# --- a server on this machine -----------------------------------------------------


@contextlib.contextmanager
def serve(handler):
    """A server with this handler, in a thread; server.url is its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=[0.01], daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Files(http.server.BaseHTTPRequestHandler):
    """Answers with server.files, {name: bytes}, in a way that server.mood names.

    good, slow, cut (half of it), silent (no answer), page (of HTML), 404, 500.
    server.asked lists the names.
    """

    def do_GET(self):
        name, mood = self.path.strip("/"), self.server.mood
        self.server.asked.append(name)
        if mood == "silent":
            return
        if mood in ("404", "500") or name not in self.server.files:
            self.send_error(int(mood) if mood.isdigit() else 404)
            return
        page = b"<!DOCTYPE html><title>Please log in to this network</title>"
        content = page if mood == "page" else self.server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = len(content) // 2
        self.wfile.write(content[:half])
        if mood != "cut":
            time.sleep(0.5 if mood == "slow" else 0)
            self.wfile.write(content[half:])

    def log_message(self, *args):
        pass


# --- processes --------------------------------------------------------------------


class Outcome(NamedTuple):
    """How a call in a process of its own ended, and what it took."""

    error: str | None  # the name of its class
    words: str  # its message; without an error, repr of what was returned
    megabytes: float
    seconds: float  # of computing


def call(sender, before, function, arguments):
    """Send the Outcome of a call, which is stopped after 30 s or 2.5 GB more."""
    import resource

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
    if os.path.exists("/proc/self/statm"):  # this machine is spared if the test fails
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 2500 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    if before:
        before()
    start, began = memory(), time.process_time()
    try:
        error = None, repr(function(*arguments))[:200]
    except BaseException as raised:
        error = type(raised).__name__, str(raised)
    sender.send((*error, memory() - start, time.process_time() - began))


def memory():
    """The MB that this process has had at most."""
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if os.uname().sysname == "Darwin" else 1024)


def become_nobody():
    if os.geteuid() == 0:  # root may write everywhere
        os.setuid(65534)


class Processes:
    """Calls functions in processes of their own, that needn't import PyTorch again."""

    def __init__(self):
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["pytest", "hypothesis", "utils.training"])

    def start(self, function, *arguments, before=None):
        """Begin -> a function that waits for the end and returns the Outcome.

        before: what the process calls first. Functions stand in modules that a new
        process can import: this one, or those of utils.
        """
        receiver, sender = self.context.Pipe(duplex=False)
        process = self.context.Process(
            target=call, args=(sender, before, function, arguments)
        )
        process.start()
        sender.close()

        def wait():
            try:
                return Outcome(*receiver.recv())
            except EOFError:
                return Outcome("killed", "it took more than 30 s, or crashed", 0, 30)
            finally:
                process.join()

        return wait

    def run(self, function, *arguments, before=None):
        return self.start(function, *arguments, before=before)()
