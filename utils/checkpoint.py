"""Checkpoints: a file that holds a model as itself, its vocabularies, its training."""

import base64
import json
import os
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from utils.models import build_model, require_fit
from utils.seq2seq import EncoderDecoder
from utils.subwords import SubwordVocab
from utils.text import Vocab

FORMAT = "learning-to-align checkpoint 1"


class Checkpoint(NamedTuple):
    """What `load_checkpoint` returns."""

    model: EncoderDecoder  # in evaluation mode
    src_vocab: Vocab
    tgt_vocab: Vocab
    training: dict | None  # for Trainer.resume
    tensors: dict[str, torch.Tensor]  # likewise
    notes: dict  # whatever was stored with it


def save_checkpoint(path, model, src_vocab, tgt_vocab, trainer=None, notes=None):
    """Store a model of the catalogue, its vocabularies and, on request, its training.

    A safetensors file, which holds numbers and never code. It is written beside `path`
    and then moved there, so `path` is at every moment whole: the old file or the new.
    (A process killed meanwhile leaves a file beside it that ends in .part.)
    Raises OSError if it can't be written; ValueError for a model that would
    come back as another one, and for other vocabularies than its own.
    notes: plain values to store along, such as scores and settings.
    """
    path = Path(path)
    if not hasattr(model, "config"):
        raise ValueError(
            "this model can't be saved: it has no config. Build it by "
            "utils.models.build_model, with an entry in KINDS for a kind of your own"
        )
    with torch.random.fork_rng(devices=[]):  # building a model draws numbers
        built = build_model(**model.config)
    own, its = ([*map(type, one.modules())] for one in (model, built))
    if own != its or [*model.buffers()]:
        raise ValueError(
            "this model can't be saved: its parts aren't those that its config builds, "
            "or have buffers. Make it a kind of its own, an entry in utils.models.KINDS"
        )
    require_fit(model, src_vocab, tgt_vocab)
    if trainer is not None and trainer.model is not model:
        raise ValueError(
            "with trainer=, the model to save is trainer.model; the trainer trains "
            "another one than this"
        )
    tensors = {f"model.{k}": v.data for k, v in model.named_parameters()}
    tensors |= trainer.tensors() if trainer else {}
    header = {"config": model.config, "notes": notes or {}}
    header |= {"training": trainer and trainer.plain()}
    header |= {"src_vocab": pack_vocab(src_vocab), "tgt_vocab": pack_vocab(tgt_vocab)}
    partial = path.with_name(f"{path.name}.part")
    try:
        save_file(tensors, partial, {"format": FORMAT, "header": json.dumps(header)})
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except (SafetensorError, OSError) as error:
        raise OSError(
            f"could not save {path} ({error}): a file that was there is as it was"
        ) from error
    finally:
        partial.unlink(missing_ok=True)


def require_tensors(found, expected):
    """ValueError, in words, unless found holds the expected tensors and nothing else.

    Both {name: tensor}. What is found must have the shape and kind of number of what is
    expected, be it float16 or float32.
    """
    for name in sorted(found.keys() | expected.keys()):
        held, right = described(found.get(name)), described(expected.get(name))
        if held != right:
            raise ValueError(f"{name} is {held}, where this model has {right}")


def described(tensor):
    """A tensor for a message: numbers of which kind, of what shape."""
    if tensor is None:
        return "missing"
    kind = "floats" if tensor.is_floating_point() else str(tensor.dtype)
    return f"{kind} of shape {tuple(tensor.shape)}"


def require_equal(then, now):
    """ValueError that names the differences between two trainings, if there are any."""
    names = [name for name in {**then, **now} if then.get(name) != now.get(name)]
    said = [f"{name} was {then.get(name)} and is {now.get(name)}" for name in names]
    if said:
        raise ValueError(f"it was another training: {'; '.join(said)}")


def pack_vocab(vocab):
    """A vocabulary as plain values: language, tokens or subword model, `extends`."""
    if isinstance(vocab, SubwordVocab):
        return [vocab.lang, base64.b64encode(vocab.model).decode()]
    return [vocab.lang, vocab.idx_to_token, vocab.extends]


def unpack_vocab(packed):
    """The vocabulary that `pack_vocab` packed."""
    lang, content, *extends = packed  # a file of an earlier edition has no third
    if isinstance(content, str):
        return SubwordVocab(base64.b64decode(content, validate=True), lang)
    return Vocab([], lang, content, *extends)


def load_checkpoint(path):
    """Read what `save_checkpoint` wrote.

    Raises FileNotFoundError, or ValueError when the file is damaged or not ours.
    """
    path = Path(path)
    if not path.is_file():
        where = "" if path.is_absolute() else f", seen from {Path.cwd()}"
        raise FileNotFoundError(f"there is no checkpoint at {path}{where}")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path} is damaged or not a safetensors file ({error}): "
            "save it again, or take another copy"
        ) from error
    if metadata.get("format") != FORMAT:
        raise ValueError(
            f"{path} is a safetensors file, but not of this course: its format "
            f"is {metadata.get('format')!r} where {FORMAT!r} was expected"
        )
    try:
        header = json.loads(metadata["header"])
        vocabs = [unpack_vocab(header[name]) for name in ("src_vocab", "tgt_vocab")]
        names = [name for name in tensors if name.startswith("model.")]
        saved = {name.removeprefix("model."): tensors.pop(name) for name in names}
        model = build_model(**header["config"])
        require_fit(model, *vocabs)
        require_tensors(saved, dict(model.named_parameters()))
        model.load_state_dict(saved, strict=False)  # what two modules share came once
        training, notes = header["training"], header["notes"]
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else error
        raise ValueError(f"{path} can't be loaded: {why}") from error
    return Checkpoint(model.eval(), *vocabs, training, tensors, notes)
