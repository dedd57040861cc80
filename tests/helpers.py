"""What tests of several modules share: random inputs, servers, processes, real data.

LEARNING_TO_ALIGN_FAULTS=10000 tries that many random inputs for each property instead
of 200.
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
from utils.data import Batch, BatchLoader, Pair
from utils.files import DATA_VARIABLE
from utils.models import build_model
from utils.text import LANGUAGES, Vocab
from utils.training import Trainer

# --- what is there ----------------------------------------------------------------


def needs(name):
    """Skips a test, by name, where the user's folder of real text hasn't this."""
    folder = os.environ.get(DATA_VARIABLE)
    present = bool(folder) and (Path(folder) / name).exists()
    reason = f"no {name} in the folder that {DATA_VARIABLE} names"
    return pytest.mark.skipif(not present, reason=reason)


posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")

# --- random inputs ----------------------------------------------------------------

TRIES = int(os.environ.get("LEARNING_TO_ALIGN_FAULTS", 200))
tries = hypothesis.settings(
    max_examples=TRIES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
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
LANGS = st.sampled_from(sorted(LANGUAGES))


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


def set_variable(name, value):
    os.environ[name] = value


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


# --- small trainings --------------------------------------------------------------

LETTERS = "abcdefgh"


def toy(n=60, seed=0):
    """Copy with the letters in capitals: small enough to be learnt in seconds."""
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(n):
        size = int(torch.randint(1, 6, (), generator=generator))
        letters = torch.randint(0, 8, (size,), generator=generator)
        word = tuple(LETTERS[i] for i in letters)
        pairs.append(Pair(word, tuple(letter.upper() for letter in word)))
    vocabs = Vocab([list(LETTERS)], "en"), Vocab([list(LETTERS.upper())], "en")
    return pairs, vocabs


def setup(dropout=0.0, num_epochs=3, **options):
    """A Trainer of that task, and its vocabularies."""
    pairs, vocabs = toy()
    torch.manual_seed(0)
    sizes = map(len, vocabs)
    model = build_model("attention", *sizes, 8, 16, num_layers=2, dropout=dropout)
    loader = BatchLoader(pairs, *vocabs, batch_size=16, seed=1)
    valid = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=16)
    return Trainer(model, loader, num_epochs, valid, lr=1e-2, **options), vocabs


def weights(model):
    """Copies of a model's parameters, by name."""
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(first, second):
    """Whether two such are equal, to the bit."""
    return first.keys() == second.keys() and all(
        torch.equal(first[name], second[name]) for name in first
    )


def random_batch(seed, B=4, S=6, T=5, V=11):
    """A Batch of random ids and lengths, padded; the first row is the longest."""
    generator = torch.Generator().manual_seed(seed)

    def ids(*shape):
        return torch.randint(4, V, shape, generator=generator)

    def lengths(longest):
        lens = torch.randint(1, longest + 1, (B,), generator=generator)
        lens[0] = longest
        return lens

    source_lens, target_lens = lengths(S), lengths(T)
    source, target_in, target_out = ids(B, S), ids(B, T), ids(B, T)
    source[torch.arange(S) >= source_lens[:, None]] = 0
    for target in (target_in, target_out):
        target[torch.arange(T) >= target_lens[:, None]] = 0
    return Batch(source, source_lens, target_in, target_out, target_lens)
