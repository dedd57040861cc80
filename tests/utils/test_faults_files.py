"""Files made to hurt: too large, not what they pose as, lying about what they hold.

LEARNING_TO_ALIGN_FAULTS=10000 damages that many checkpoints instead of 200.
"""

import gzip
import json
import multiprocessing
import os
import pickle
import random
import time

import pytest
import torch
from safetensors.torch import load_file, save_file
from test_training import same, setup, weights

from utils import data
from utils.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from utils.corpora import load_tsv, load_village, multi30k_file
from utils.text import LANGUAGES, tokenize

TRIES = int(os.environ.get("LEARNING_TO_ALIGN_FAULTS", 200))
MB = 2**20
PRELOAD = ["pytest", "hypothesis", "utils.training", "torch._dynamo"]
measured = pytest.mark.skipif(os.name != "posix", reason="memory is measured on POSIX")


def measure(sender, function, *arguments):
    """Send the error that the function raises, and the MB that memory grew by."""
    import resource

    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CPU, (600, 600))
    if os.path.exists("/proc/self/statm"):  # this machine is spared if the test fails
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize() + 2500 * MB
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        error = None, repr(function(*arguments))[:200]
    except BaseException as raised:
        error = type(raised).__name__, str(raised)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    sender.send((*error, grown / (MB if os.uname().sysname == "Darwin" else 1024)))


@pytest.fixture(scope="module")
def alone():
    """Calls a function in a process of its own -> name of its error, message, MB."""
    if os.name != "posix":
        pytest.skip("memory is measured on POSIX")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)

    def call(function, *arguments):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=measure, args=(sender, function, *arguments))
        process.start()
        sender.close()
        try:
            return receiver.recv()
        except EOFError:
            return "killed", "it took more than 600 seconds of computing, or crashed", 0
        finally:
            process.join()

    return call


# --- too large -------------------------------------------------------------------


def zeros(path, gigabytes):
    """So many GB without a line end, gzipped: 1 MB of file for each."""
    member = gzip.compress(bytes(64 * MB), compresslevel=6, mtime=0)
    with open(path, "wb") as file:
        for _ in range(gigabytes * 16):
            file.write(member)


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    zeros(folder / "line.tsv.gz", 1)
    zeros(folder / "bomb.tsv.gz", 10)
    with open(folder / "line.tsv", "wb") as file:
        file.truncate(2**30)
    (folder / "words.tsv").write_bytes(b"a b\tc " + b"d " * (50 * MB) + b"\n")
    (folder / "inner.tsv.gz").write_bytes(
        gzip.compress((folder / "line.tsv.gz").read_bytes())
    )
    return folder


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
def test_what_is_too_large_is_refused_in_little_memory(alone, bombs, name, limit):
    kind, message, grown = alone(load_tsv, bombs / name)
    print(name, kind, message, f"{grown:.0f} MB")
    assert kind == "ValueError" and str(bombs / name) in message
    assert grown < limit


def bomb_as_village(folder):
    load_village(folder=folder)


def bomb_as_multi30k(folder):
    os.environ[data.DATA_VARIABLE] = str(folder)
    multi30k_file("train.de.gz")


@pytest.mark.parametrize("read", [bomb_as_village, bomb_as_multi30k])
def test_a_bomb_in_the_place_of_a_corpus(alone, bombs, tmp_path, read):
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for name in ("train.tsv.gz", "train.de.gz"):
        (folder / name).hardlink_to(bombs / "bomb.tsv.gz")
    inside = read is bomb_as_village
    kind, message, grown = alone(read, folder if inside else tmp_path)
    print(kind, message, f"{grown:.0f} MB")
    assert kind == "ValueError" and str(folder) in message
    assert grown < 600


EVIL = [
    *(part * 5000 + "a" for part in ("1.", "a.", "'s", "我 ", "l'", "-a", "e\u0301")),
    *("我" + sign * 10_000 for sign in " -.'1aé我"),
]


def test_no_sentence_makes_the_tokeniser_slow():
    for text in EVIL:
        for lang in LANGUAGES:
            start = time.process_time()
            tokenize(text, lang)
            assert time.process_time() - start < 3, (text[:10], lang)


# --- a path that climbs out of its folder ----------------------------------------


@pytest.fixture
def secret(tmp_path, monkeypatch):
    """A data folder, and a file beside it that is none of its business."""
    folder = tmp_path / "own data"
    (folder / "multi30k").mkdir(parents=True)
    lines = "".join(f"secret {i}\tle secret {i}\n" for i in range(10))
    for name in ("secret.tsv", "multi30k.gz"):
        (tmp_path / name).write_text(lines, encoding="utf-8")
    monkeypatch.setenv(data.DATA_VARIABLE, str(folder))
    monkeypatch.setattr(data, "MULTI30K_URL", "http://127.0.0.1:9/")
    monkeypatch.setattr(data, "cache_folder", lambda: tmp_path / "cache")
    return tmp_path


def everything(folder):
    return {p: p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


@pytest.mark.parametrize(
    "name", ["../secret.tsv", "multi30k/../../secret.tsv", "./../secret.tsv"]
)
def test_a_path_does_not_leave_the_data_folder(secret, name):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_tsv(name, valid=1, test=1)


def test_a_user_may_name_any_file(secret, monkeypatch):
    monkeypatch.chdir(secret / "own data")
    assert load_tsv("../secret.tsv", valid=1, test=1).name == "secret.tsv"
    assert load_tsv(secret / "secret.tsv", valid=1, test=1).name == "secret.tsv"


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
    (tmp_path / "SHA256SUMS").write_text(sums, encoding="utf-8")
    (folder / "train.tsv.gz").write_bytes(b"")
    with pytest.raises(ValueError, match="train.tsv.gz has the SHA-256 checksum"):
        load_village(folder=folder)


# --- a pickle posing as a checkpoint ---------------------------------------------


class Evil:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("write", [torch.save, "pickle", "pickle in tensors"])
@pytest.mark.parametrize("name", ["model.safetensors", "model.pt", "model.pkl"])
def test_a_pickle_is_not_run(tmp_path, write, name):
    marker, path = tmp_path / "executed", tmp_path / name
    harm = pickle.dumps(Evil(str(marker)))
    if write is torch.save:
        torch.save({"model": Evil(str(marker))}, path)
    elif write == "pickle":
        path.write_bytes(harm)
    else:
        content = torch.frombuffer(bytearray(harm), dtype=torch.uint8)
        save_file({"model.x": content}, path, {"format": FORMAT, "header": "{}"})
    with pytest.raises(ValueError, match="damaged or not|don't fit together"):
        load_checkpoint(path)
    assert not marker.exists()
    pickle.loads(harm).close()
    assert marker.exists()  # so the pickle would have done harm


# --- a header that lies ----------------------------------------------------------


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A checkpoint with a training inside that can be resumed."""
    path = tmp_path_factory.mktemp("good") / "model.safetensors"
    trainer, vocabs = setup(num_epochs=2)
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    trainer.fit(progress=False)
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    return path


def raw(header, content=b"", size=None):
    """A safetensors file of this header: its size in 8 bytes, JSON, the numbers."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if size is None else size).to_bytes(8, "little") + text + content


def tensor(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


LIES = {
    "header longer than the file": raw(b"{}", size=1000),
    "header of 2^64 bytes": raw(b"{}", size=2**64 - 1),
    "header of 90 MB that isn't there": raw(b"{}", size=90 * 10**6),
    "numbers that aren't there": raw({"a": tensor([2**28], 0, 2**30)}),
    "more numbers than bytes": raw({"a": tensor([1000], 0, 4)}, bytes(4)),
    "shape beyond 2^64": raw({"a": tensor([2**40, 2**40], 0, 4)}, bytes(4)),
    "negative shape": raw({"a": tensor([-1], 0, 4)}, bytes(4)),
    "negative place": raw({"a": tensor([1], -4, 0)}, bytes(4)),
    "end before start": raw({"a": tensor([1], 4, 0)}, bytes(4)),
    "two in one place": raw({"a": tensor([1], 0, 4), "b": tensor([1], 0, 4)}, bytes(4)),
    "a hole": raw({"a": tensor([1], 4, 8)}, bytes(8)),
    "unknown type": raw({"a": tensor([1], 0, 4, "PICKLE")}, bytes(4)),
    "no JSON": raw(b"x" * 100),
    "no UTF-8": raw(b"\xff" * 100),
    "deep JSON": raw(b"[" * 10**6),
    "not an object": raw([1, 2]),
    "metadata that is no text": raw({"__metadata__": {"format": [1]}}),
    "a climbing name": raw({"../../evil": tensor([1], 0, 4)}, bytes(4)),
}


@pytest.mark.parametrize("name", LIES)
def test_a_header_that_lies(tmp_path, name):
    path = tmp_path / "model.safetensors"
    path.write_bytes(LIES[name])
    with pytest.raises(ValueError, match="damaged or not|not of this course") as error:
        load_checkpoint(path)
    assert str(path) in str(error.value)
    assert list(everything(tmp_path)) == [path]


def with_header(good, path, change):
    """The good checkpoint with another description inside."""
    from safetensors import safe_open

    with safe_open(good, framework="pt") as file:
        header = json.loads(file.metadata()["header"])
    change = change(header) or header
    text = change if isinstance(change, str) else json.dumps(change)
    save_file(load_file(good), path, {"format": FORMAT, "header": text})


def config(**values):
    return lambda header: header["config"].update(values)


def entry(**values):
    return lambda header: header.update(values)


DESCRIPTIONS = {
    "a model of 100 GB": config(num_hiddens=90_000),
    "an encoder of 100 GB": config(enc_hiddens=90_000),
    "embeddings of 4 TB": config(embed_size=10**9),
    "a vocabulary of 10^12 words": config(src_vocab_size=10**12),
    "a million layers": config(num_layers=10**6),
    "a size below 0": config(num_hiddens=-1),
    "no size": config(num_hiddens=None),
    "a size of text": config(num_hiddens="16"),
    "a size of 0": config(embed_size=0),
    "dropout above 1": config(dropout=7),
    "another kind": config(kind="__import__('os')"),
    "a setting too many": config(path="../../x"),
    "no settings": entry(config=None),
    "settings in a list": entry(config=[1]),
    "one word less": lambda h: h["src_vocab"][1].pop(),
    "one word more": lambda h: h["tgt_vocab"][1].append("more"),
    "words that are none": lambda h: h["src_vocab"][1].__setitem__(4, 5),
    "words that are lists": lambda h: h["src_vocab"][1].__setitem__(4, ["a"]),
    "no words": entry(src_vocab=["en", None]),
    "no language": entry(src_vocab=["xx", ["<pad>", "<bos>", "<eos>", "<unk>"]]),
    "no description": lambda h: "null",
    "a list": lambda h: "[]",
    "deep JSON": lambda h: "[" * 10**5,
    "a number of 10,000 digits": lambda h: "9" * 10**4,
}


def description_errors(paths):
    """The kind of error, the message, the seconds of each."""
    found = []
    for path in paths:
        start = time.process_time()
        try:
            load_checkpoint(path)
            error = "None", ""
        except BaseException as raised:
            error = type(raised).__name__, str(raised)[:300]
        found.append((*error, time.process_time() - start))
    raise RuntimeError(json.dumps(found))


@measured
def test_a_description_that_lies(alone, good, tmp_path):
    paths = []
    for number, change in enumerate(DESCRIPTIONS.values()):
        paths.append(tmp_path / f"{number}.safetensors")
        with_header(good, paths[-1], change)
    kind, message, grown = alone(description_errors, paths)
    assert kind == "RuntimeError", (kind, message)
    wrong = {
        name: (kind, text, seconds)
        for name, (kind, text, seconds) in zip(
            DESCRIPTIONS, json.loads(message), strict=True
        )
        if kind != "ValueError" or "don't fit together" not in text or seconds > 60
    }
    print(f"{len(DESCRIPTIONS)} lies, {grown:.0f} MB")
    assert not wrong, "\n".join(f"{name}: {found}" for name, found in wrong.items())
    assert grown < 100


TRAININGS = {
    "no plan": lambda t: t.pop("plan"),
    "no losses": lambda t: t.pop("losses"),
    "losses of text": lambda t: t.update(losses="ha"),
    "fewer losses than updates": lambda t: t["losses"].pop(),
    "updates below 0": lambda t: t.update(step=-1),
    "updates of text": lambda t: t.update(step="7"),
    "no history": lambda t: t.update(history=None),
    "a list": lambda t: [],
    "a number": lambda t: 7,
}


@pytest.mark.parametrize("name", TRAININGS)
def test_a_training_that_lies_changes_nothing(good, tmp_path, name):
    def change(header):
        header["training"] = TRAININGS[name](header["training"]) or header["training"]
        if name in ("a list", "a number"):
            header["training"] = TRAININGS[name](None)

    path = tmp_path / "model.safetensors"
    with_header(good, path, change)
    trainer, _ = setup(num_epochs=2)
    before, step = weights(trainer.model), trainer.step
    with pytest.raises(ValueError) as error:
        trainer.resume(path)
    assert str(path) in str(error.value)
    assert same(weights(trainer.model), before) and trainer.step == step
    assert trainer.losses == trainer.history == []


def test_any_damage_is_refused_or_harmless(good, tmp_path):
    """Bytes changed, lost and added at random places, most of them in the header."""
    content, path, rng = good.read_bytes(), tmp_path / "m.safetensors", random.Random(0)
    header = int.from_bytes(content[:8], "little")
    refused = 0
    for _ in range(TRIES):
        changed = bytearray(content)
        for _ in range(rng.choice([1, 1, 1, 2, 10])):
            place = rng.randrange(8 if rng.random() < 0.1 else header)
            kind = rng.choice(["change", "digit", "remove", "add"])
            if kind == "change":
                changed[place] = rng.randrange(256)
            elif kind == "digit" and chr(changed[place]).isdigit():
                changed[place] = ord(rng.choice("0123456789"))
            elif kind == "remove":
                del changed[place : place + rng.choice([1, 1, 100])]
            elif kind == "add":
                changed[place:place] = rng.randbytes(rng.choice([1, 1, 100]))
        path.write_bytes(changed)
        try:
            load_checkpoint(path)
        except ValueError as error:
            assert str(path) in str(error)
            refused += 1
    print(f"{TRIES} damaged, {refused} refused")
    assert refused > TRIES / 2
