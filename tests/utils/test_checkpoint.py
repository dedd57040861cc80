"""Checkpoints made to hurt: not what they pose as, lying about what they hold."""

import json
import pickle
import random

import pytest
import torch
from helpers import TRIES, Processes, posix, same, setup, weights
from safetensors.torch import load_file, save_file

from utils.checkpoint import FORMAT, load_checkpoint, save_checkpoint

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
    assert list(tmp_path.rglob("*")) == [path]


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


@pytest.fixture(scope="module")
def processes():
    return Processes()


@posix
@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_description_that_lies(processes, good, tmp_path, name):
    path = tmp_path / "model.safetensors"
    with_header(good, path, DESCRIPTIONS[name])
    found = processes.run(load_checkpoint, path)
    assert found.error == "ValueError" and "don't fit together" in found.words
    assert found.megabytes < 100 and found.seconds < 2


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
