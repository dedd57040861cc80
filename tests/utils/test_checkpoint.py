"""Files of models: given back as they were, whole at every moment, never trusted.

LEARNING_TO_ALIGN_FAULTS=10000 damages that many checkpoints instead of 200.
"""

import json
import os
import pickle
import random
import shutil
import threading
import time

import pytest
import torch
from helpers.training import (
    everything,
    rewrite,
    setup,
    setup_translator,
    toy,
    weights,
)
from safetensors.torch import save_file

from utils.attention import AdditiveAttention
from utils.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from utils.decoding import translate_tokens
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.text import SPECIALS, Vocab

TRIES = int(os.environ.get("LEARNING_TO_ALIGN_FAULTS", 200))


def one_epoch(trainer):
    return trainer.fit(lambda trainer: True, progress=False)


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A checkpoint in the middle of a training with a running mean."""
    path = tmp_path_factory.mktemp("good") / "model.safetensors"
    trainer, vocabs = setup(averaging=0.9)
    save_checkpoint(path, trainer.model, *vocabs, trainer=one_epoch(trainer))
    return path


@pytest.fixture
def copy(good, tmp_path):
    return shutil.copy(good, tmp_path / "copy.safetensors")


# --- a file gives back what was saved --------------------------------------------


def test_a_checkpoint_gives_back_the_model_and_vocabularies(tmp_path):
    trainer, vocabs = setup()
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.model, *vocabs, notes={"bleu": 1.5})
    saved = load_checkpoint(path)
    assert weights(trainer.model) == weights(saved.model)
    assert saved.model.config == trainer.model.config and not saved.model.training
    assert saved.src_vocab.idx_to_token == vocabs[0].idx_to_token
    assert saved.tgt_vocab.idx_to_token == vocabs[1].idx_to_token
    assert saved.tgt_vocab.lang == "en" and saved.notes == {"bleu": 1.5}
    assert saved.training is None and saved.tensors == {}
    with pytest.raises(ValueError, match="no state of training"):
        trainer.resume(path)


def test_a_stored_translator_translates_the_same(tmp_path):
    trainer, vocabs = setup_translator()
    for parameter in trainer.averaged.parameters():  # many different translations
        torch.nn.init.normal_(parameter, std=0.8)
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.averaged, *vocabs)
    saved = load_checkpoint(path)
    assert [vocab.model for vocab in saved[1:3]] == [v.model for v in vocabs]
    decoder = saved.model.decoder
    assert decoder.dense.out.weight is decoder.embedding.weight
    sentences = [pair.source for pair in toy(20)[0]]
    before = translate_tokens(trainer.averaged, sentences, *vocabs)
    after = translate_tokens(saved.model, sentences, *saved[1:3])
    for first, second in zip(before, after, strict=True):
        assert first.tokens == second.tokens
        assert torch.equal(first.attention_weights, second.attention_weights)
    assert len({translation.text for translation in after}) > 3


class Own(Seq2SeqAttentionDecoder):
    """A learner's decoder."""


REFUSED = {
    "of no kind": (lambda m: m.__dict__.pop("config"), "has no config"),
    "of another class": (
        lambda m: setattr(m, "decoder", Own(12, 8, 16, 2)),
        "decoder, its class, is .*Own, .* has .*Seq2SeqAttentionDecoder",
    ),
    "with another part": (
        lambda m: setattr(m.decoder, "attention", AdditiveAttention(16, 16, 9)),
        r"attention.*\(9",
    ),
    "with another dropout": (
        lambda m: setattr(m.decoder.attention.dropout, "p", 0.5),
        "dropout.p is 0.5, .* has 0.0",
    ),
    "with a patched method": (
        lambda m: setattr(m.decoder, "query", lambda s: s[0].unsqueeze(1)),
        "decoder.query is a function, .*lambda",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_model_that_would_come_back_as_another_is_not_saved(tmp_path, what):
    change, words = REFUSED[what]
    trainer, vocabs = setup()
    change(trainer.model)
    with pytest.raises(ValueError, match=words) as error:
        save_checkpoint(tmp_path / "m", trainer.model, *vocabs)
    assert " at 0x" not in str(error.value)  # no place in memory
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_cannot_be_saved_is_refused_before_the_first_step():
    trainer, _ = setup()
    del trainer.model.config
    with pytest.raises(ValueError, match="has no config"):
        trainer.fit(lambda trainer: True, progress=False)
    assert trainer.step == 0


@pytest.mark.parametrize("side", [0, 1])
def test_vocabularies_of_another_size_are_refused(tmp_path, side):
    trainer, vocabs = setup()
    vocabs = [*vocabs]
    vocabs[side] = Vocab([["one", "word"]], "en")
    with pytest.raises(ValueError, match="built for vocabularies of 12 and 12 words"):
        save_checkpoint(tmp_path / "m", trainer.model, *vocabs)


def test_a_training_is_stored_with_its_own_model(tmp_path):
    trainer, vocabs = setup(averaging=0.5)
    with pytest.raises(ValueError, match="trains another one"):
        save_checkpoint(tmp_path / "m", trainer.averaged, *vocabs, trainer=trainer)


def test_missing_files_and_folders(tmp_path):
    trainer, vocabs = setup()
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        load_checkpoint(tmp_path / "nothing.safetensors")
    (tmp_path / "file").touch()
    for parent in ("nowhere", "file"):
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            save_checkpoint(tmp_path / parent / "m", trainer.model, *vocabs)


def test_saves_at_the_same_time_leave_one_whole_file(tmp_path):
    path, models = tmp_path / "model", []
    for seed in range(4):
        torch.manual_seed(seed)
        models.append(build_model("attention", 12, 12, 8, 64))
    _, vocabs = toy()

    def save(model):
        for _ in range(5):
            save_checkpoint(path, model, *vocabs)
            found.append(weights(load_checkpoint(path).model))

    found = []
    threads = [threading.Thread(target=save, args=(model,)) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    saved = [weights(model) for model in models]
    assert len(found) == 20 and all(each in saved for each in found)
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


# --- a pickle posing as a checkpoint ---------------------------------------------


class Evil:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


@pytest.mark.parametrize("inside", [False, True])
def test_a_pickle_is_not_run(tmp_path, inside):
    marker, path = tmp_path / "executed", tmp_path / "model.safetensors"
    harm = pickle.dumps(Evil(str(marker)))
    torch.save(Evil(str(marker)), path)
    if inside:  # a file of our format
        content = torch.frombuffer(bytearray(harm), dtype=torch.uint8)
        save_file({"model.x": content}, path, {"format": FORMAT, "header": "{}"})
    with pytest.raises(ValueError, match="damaged or not|don't fit together"):
        load_checkpoint(path)
    assert not marker.exists()
    pickle.loads(harm).close()
    assert marker.exists()  # so the pickle would have done harm


# --- a file that lies ------------------------------------------------------------


def raw(header, content=b"", size=None):
    """A safetensors file of this header: its size in 8 bytes, JSON, the numbers."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if size is None else size).to_bytes(8, "little") + text + content


def tensor(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


LIES = {
    "nothing": b"",
    "header longer than the file": raw(b"{}", size=1000),
    "numbers that aren't there": raw({"a": tensor([2**28], 0, 2**30)}),
    "shape beyond 2^64": raw({"a": tensor([2**40, 2**40], 0, 4)}, bytes(4)),
    "two in one place": raw({"a": tensor([1], 0, 4), "b": tensor([1], 0, 4)}, bytes(4)),
    "unknown type": raw({"a": tensor([1], 0, 4, "PICKLE")}, bytes(4)),
    "no JSON": raw(b"x" * 100),
    "deep JSON": raw(b"[" * 10**6),
    "metadata that is no text": raw({"__metadata__": {"format": [1]}}),
    "another project's": raw({"../../evil": tensor([1], 0, 4)}, bytes(4)),
    "our format alone": raw({"__metadata__": {"format": FORMAT}}),
}


@pytest.mark.parametrize("name", LIES)
def test_a_file_that_is_none(tmp_path, name):
    path = tmp_path / "model.safetensors"
    path.write_bytes(LIES[name])
    words = "damaged or not|not of this course|don't fit together"
    with pytest.raises(ValueError, match=words) as error:
        load_checkpoint(path)
    assert str(path) in str(error.value)
    assert list(tmp_path.iterdir()) == [path]


def config(**values):
    return lambda header, tensors: header["config"].update(values)


def entry(**values):
    return lambda header, tensors: header.update(values)


DESCRIPTIONS = {
    "a model of 100 GB": config(num_hiddens=90_000),
    "an encoder of 100 GB": config(enc_hiddens=90_000),
    "embeddings of 4 TB": config(embed_size=10**9),
    "a vocabulary of 10^12 words": config(src_vocab_size=10**12),
    "a million layers": config(num_layers=10**6),
    "one unit more": config(num_hiddens=17),
    "a size below 0": config(num_hiddens=-1),
    "no size": config(num_hiddens=None),
    "a size of text": config(num_hiddens="16"),
    "dropout above 1": config(dropout=7),
    "an unknown kind": config(kind="__import__('os')"),
    "another kind": config(kind="fixed"),
    "a setting too many": config(path="../../x"),
    "no settings": entry(config=None),
    "settings in a list": entry(config=[1]),
    "one word less": lambda h, t: [h["src_vocab"][1].pop()],
    "one word more": lambda h, t: h["tgt_vocab"][1].append("more"),
    "words that are none": lambda h, t: h["src_vocab"][1].__setitem__(4, 5),
    "words that are lists": lambda h, t: h["src_vocab"][1].__setitem__(4, ["a"]),
    "no words": entry(src_vocab=["en", None]),
    "special words alone": entry(tgt_vocab=["en", list(SPECIALS)]),
    "no language": entry(src_vocab=["xx", list(SPECIALS)]),
    "pieces that are no base 64": entry(src_vocab=["en", "no base 64!"]),
    "pieces of no model": entry(src_vocab=["en", "AAAA"]),
    "a parameter less": lambda h, t: t.pop("model.decoder.dense.bias"),
    "no description": lambda h, t: "null",
    "a list": lambda h, t: "[]",
    "deep JSON": lambda h, t: "[" * 10**5,
    "a number of 10,000 digits": lambda h, t: "9" * 10**4,
}


@pytest.fixture
def little_memory():
    """No more than 1 GB beyond what is in use, where the system can limit it."""
    resource = pytest.importorskip("resource")
    if not os.path.exists("/proc/self/statm"):
        pytest.skip("needs to know the memory in use")
    pages = int(open("/proc/self/statm").read().split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = pages * resource.getpagesize() + 2**30
    resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    yield
    resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_a_description_that_lies(copy, name, little_memory):
    rewrite(copy, DESCRIPTIONS[name])
    start = time.process_time()
    with pytest.raises(ValueError, match="don't fit together") as error:
        load_checkpoint(copy)
    assert time.process_time() - start < 5
    assert "memory" not in str(error.value)  # it didn't come so far as to ask for it


def test_any_damage_is_refused_or_harmless(good, copy):
    """Bytes changed, lost and added at random places, most of them in the header."""
    content, rng, refused = good.read_bytes(), random.Random(0), 0
    header = int.from_bytes(content[:8], "little")
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
        copy.write_bytes(changed)
        try:
            load_checkpoint(copy)
        except ValueError as error:
            assert str(copy) in str(error)
            refused += 1
    assert refused > TRIES / 2


# --- a training that can't be taken up -------------------------------------------


def tensor_of(name, value):
    def change(header, tensors):
        tensors[name] = value(tensors.get(name)) if callable(value) else value

    return change


def without(name):
    return lambda header, tensors: tensors.pop(name)


def told(**values):
    return lambda header, tensors: header["training"].update(values)


ADAM, MEAN = "optimizer.0.exp_avg", "mean.decoder.dense.bias"
CRAFTED = {
    "no training": (entry(training=None), "no state of training"),
    "a list": (entry(training=[]), "doesn't fit together"),
    "a number": (entry(training=7), "doesn't fit together"),
    "no plan": (lambda h, t: h["training"].pop("plan"), "fit together"),
    "no losses": (lambda h, t: h["training"].pop("losses"), "fit together"),
    "losses of text": (told(losses="four"), "fit together"),
    "a loss of text": (told(losses=[1.0, 1.0, 1.0, "1"]), "fit together"),
    "fewer losses than updates": (told(losses=[1.0] * 3), "fit together"),
    "updates below 0": (told(step=-1), "fit together"),
    "updates of text": (told(step="4"), "fit together"),
    "more updates than the epochs have": (
        told(step=9, losses=[1.0] * 9),
        "fit together",
    ),
    "fewer updates than the epochs have": (told(step=3, losses=[1.0] * 3), "together"),
    "no history": (told(history=None), "fit together"),
    "an empty epoch": (told(history=[{}]), "fit together"),
    "one number for a moment": (tensor_of(ADAM, torch.ones(1)), r"of shape \(1,\)"),
    "three numbers": (tensor_of(ADAM, torch.ones(3)), r"of shape \(3,\)"),
    "halves": (tensor_of(ADAM, lambda x: x.half()), "there is torch.float16"),
    "doubles": (tensor_of(ADAM, lambda x: x.double()), "there is torch.float64"),
    "NaN": (tensor_of(ADAM, lambda x: x * torch.nan), "a number that can't be"),
    "squares below 0": (tensor_of(f"{ADAM}_sq", lambda x: -x - 1), "that can't be"),
    "no moment": (without(ADAM), "optimizer.0.exp_avg should be .* there is none"),
    "no squares": (without(f"{ADAM}_sq"), "exp_avg_sq should be .* there is none"),
    "no count": (without("optimizer.0.step"), "there is none"),
    "a count of 0": (tensor_of("optimizer.0.step", lambda x: x * 0), "that can't be"),
    "a parameter too many": (tensor_of("optimizer.99.step", torch.ones(())), "unknown"),
    "no mean": (without(MEAN), "mean.decoder.dense.bias should be"),
    "a mean of another size": (tensor_of(MEAN, torch.ones(3)), r"of shape \(3,\)"),
    "a mean of NaN": (tensor_of(MEAN, lambda x: x * torch.nan), "that can't be"),
    "no count of means": (without("mean_updates"), "mean_updates should be"),
    "counts of means": (tensor_of("mean_updates", torch.ones(3)), "mean_updates"),
    "another count": (tensor_of("mean_updates", lambda x: x + 1), "mean_updates"),
    "no random state": (without("rng_state"), "rng_state should be"),
    "a random state of floats": (tensor_of("rng_state", torch.ones(3)), "rng_state"),
    "a short random state": (tensor_of("rng_state", lambda x: x[:9] + 0), "rng_state"),
    "no random state at all": (tensor_of("rng_state", lambda x: x * 0), "rng_state"),
    "what nobody knows": (tensor_of("more", torch.ones(1)), "it holds more, unknown"),
}


@pytest.fixture(scope="module")
def going():
    """A trainer in the middle of its training: each refusal must leave it as it is."""
    return one_epoch(setup(averaging=0.9)[0])


@pytest.mark.parametrize("name", CRAFTED)
def test_a_crafted_training_is_refused_and_changes_nothing(going, copy, name):
    change, words = CRAFTED[name]
    rewrite(copy, change)
    before = everything(going)
    with pytest.raises(ValueError, match=words) as error:
        going.resume(copy)
    assert str(copy) in str(error.value)
    assert everything(going) == before


def other(**options):
    return setup(**{"averaging": 0.9, **options})[0]


def unnamed(**options):
    """A trainer of a model that isn't from the catalogue."""
    trainer = other(**options)
    del trainer.model.config
    return trainer


ANOTHER = {
    "model": (lambda: other(hiddens=17), "num_hiddens was 16 and is 17"),
    "model of no kind": (lambda: unnamed(hiddens=17), "of shape .*16.*, where this"),
    "dropout": (lambda: other(dropout=0.1), "dropout was 0.0 and is 0.1"),
    "order of words": (
        lambda: other(data=toy(letters="abcdefghh")),
        "the data or their order",
    ),
    "data": (lambda: other(data=toy(seed=3)), "the data or their order differ"),
    "number of pairs": (lambda: other(data=toy(59)), "the data or their order differ"),
    "loader seed": (lambda: other(seed=2), "seed was 1 and is 2"),
    "batch size": (lambda: other(batch_size=8), "batch_size was 16 and is 8"),
    "number of epochs": (lambda: other(num_epochs=4), "num_epochs was 3 and is 4"),
    "rate": (lambda: other(lr=0.1), "lr was 0.01 and is 0.1"),
    "clip": (lambda: other(clip=2.0), "clip was 1.0 and is 2.0"),
    "warmup": (lambda: other(warmup=0.5), "warmup was 0.05 and is 0.5"),
    "mean": (lambda: other(averaging=0.5), "averaging was 0.9 and is 0.5"),
}


@pytest.mark.parametrize("name", ANOTHER)
def test_another_training_is_refused_by_its_difference(good, name):
    make, words = ANOTHER[name]
    trainer = make()
    before = everything(trainer)
    with pytest.raises(ValueError, match=words) as error:
        trainer.resume(good)
    assert not any(len(word) > 40 for word in str(error.value).split("/")[-1].split())
    assert everything(trainer) == before


def test_another_way_of_drawing_pieces_is_refused(tmp_path):
    trainer, vocabs = setup_translator()
    save_checkpoint(tmp_path / "m", trainer.model, *vocabs, trainer=trainer)
    with pytest.raises(ValueError, match="alpha was 0.2 and is 0.5"):
        setup_translator(alpha=0.5)[0].resume(tmp_path / "m")


# --- Edges ------------------------------------------------------------------------


def test_a_file_may_be_read_by_all_and_written_by_its_owner(good):
    assert good.stat().st_mode & 0o777 == 0o644


def test_a_save_that_fails_leaves_nothing_beside(tmp_path):
    trainer, vocabs = setup()
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="could not save"):
        save_checkpoint(tmp_path / "taken", trainer.model, *vocabs)
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_file_of_another_program_is_called_so(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"x": torch.zeros(1)}, path, {"format": "pt"})  # as many libraries write
    with pytest.raises(ValueError, match="not of this course: its format is 'pt'"):
        load_checkpoint(path)
