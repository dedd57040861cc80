"""Files of models: given back as they were, whole at every moment, never trusted."""

import shutil

import pytest
import torch
from helpers.training import rewrite, setup, toy, weights
from safetensors.torch import save_file

from utils.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from utils.models import build_model
from utils.subwords import SubwordVocab
from utils.text import Vocab


def test_a_stored_model_comes_back(tmp_path):
    """With subwords, and one matrix to read and write words; from half the bytes."""
    texts = ["".join(pair.source) for pair in toy()[0]]
    subwords, words = SubwordVocab.train(texts, "en", 300), toy()[1][1]
    torch.manual_seed(0)
    words.extends = True
    sizes = len(subwords), len(words)
    model = build_model("translator", *sizes, 8, 12, 10, dropout=0.2)
    path, random_state = tmp_path / "model.safetensors", torch.get_rng_state()
    save_checkpoint(path, model.half(), subwords, words, notes={"bleu": 1.5})
    assert torch.equal(torch.get_rng_state(), random_state)  # storing draws none
    saved, model = load_checkpoint(path), model.float()
    assert weights(saved.model) == weights(model) and not saved.model.training
    assert saved.model.config == model.config
    assert saved[1:] == (subwords, words, None, {}, {"bleu": 1.5})
    decoder = saved.model.decoder
    assert decoder.dense.out.weight is decoder.embedding.weight


def test_what_does_not_belong_together_is_not_saved(tmp_path):
    trainer, (source, target) = setup(averaging=0.5)
    few, path = Vocab([["one", "word"]], "en"), tmp_path / "m"
    with pytest.raises(ValueError, match="can't be saved: it has no config"):
        save_checkpoint(path, trainer.model.encoder, source, target)
    for vocabs in ((few, target), (source, few)):
        with pytest.raises(ValueError, match="vocabulary has 6 words.* built for 12"):
            save_checkpoint(path, trainer.model, *vocabs)
    with pytest.raises(ValueError, match="trains another one"):
        save_checkpoint(path, trainer.averaged, source, target, trainer=trainer)
    part = trainer.averaged.decoder.dense
    part.register_buffer("mean", torch.ones(1))
    trainer.model.decoder.dense.__class__ = type("Mine", (torch.nn.Module,), {})
    for model in (trainer.averaged, trainer.model):
        with pytest.raises(
            ValueError, match="its parts aren't those .* or have buffers"
        ):
            save_checkpoint(path, model, source, target)


@pytest.mark.parametrize("name", ["utils.checkpoint.save_file", "pathlib.Path.replace"])
def test_saving_that_fails_leaves_the_old_file(tmp_path, monkeypatch, name):
    trainer, vocabs = setup()
    path = tmp_path / "model"
    save_checkpoint(path, trainer.model, *vocabs)
    before = path.read_bytes()

    def fails(*arguments):
        (tmp_path / "model.part").write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(name, fails)
    with pytest.raises(OSError, match=r"could not save .*model .* as it was"):
        save_checkpoint(path, trainer.model, *vocabs)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_file_that_is_none(good, tmp_path):
    path = tmp_path / "model.safetensors"

    def refused(words):
        with pytest.raises((ValueError, FileNotFoundError), match=words):
            load_checkpoint(path)

    refused("no checkpoint at")
    for size in (0, 7, 100, -1):
        path.write_bytes(good.read_bytes()[:size])
        refused(f"{path} is damaged or not a safetensors")
    torch.save({}, path)  # PyTorch's own files can hold a program
    refused("damaged or not")
    for metadata, words in (
        (None, "not of this course"),
        ({"format": "another"}, "'another'"),
        ({"format": FORMAT}, "can't be loaded: it has no 'header'"),
    ):
        save_file({"a": torch.ones(1)}, path, metadata)
        refused(words)


BIAS, NUMBERS = "model.decoder.dense.bias", torch.ones(12)
LIES = [  # what a file says in place of what it held, and what is said of it
    (lambda h, t: h["config"].update(num_hiddens=17), "where this model has"),
    (lambda h, t: h["config"].update(kind="__import__('os')"), "kind must be one of"),
    (lambda h, t: h.update(config=None), ""),
    (lambda h, t: h["src_vocab"][1].pop(), "11 words.* built for 12"),
    (lambda h, t: h.update(src_vocab=["en", "AAAA"]), ""),  # pieces of no model
    (lambda h, t: t.update({BIAS: NUMBERS.int()}), "bias is torch.int32 of shape"),
    (lambda h, t: t.pop(BIAS), "bias is missing"),
    (lambda h, t: t.update({"model.x": NUMBERS}), "x is floats of .* missing"),
]


@pytest.mark.parametrize("change, words", LIES)
def test_a_file_that_lies_is_refused(good, tmp_path, change, words):
    path = shutil.copy(good, tmp_path / "copy.safetensors")
    rewrite(path, change)
    with pytest.raises(ValueError, match=rf"{path} can't be loaded: .*{words}"):
        load_checkpoint(path)
