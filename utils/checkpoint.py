"""Checkpoints: a file that holds a model as itself, its vocabularies, its training."""

import base64
import contextlib
import json
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.overrides import TorchFunctionMode

from utils.seq2seq import EncoderDecoder, build_model
from utils.subwords import SubwordVocab
from utils.text import Vocab
from utils.translator import DECODERS as TRANSLATORS
from utils.translator import build_translator

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
    """Store a model with a `config`, its vocabularies and, on request, its training.

    A safetensors file, which holds numbers and never code. It is written beside `path`
    and then moved there, so `path` is at every moment whole: the old file or the new.
    (A process killed meanwhile leaves a file beside it that ends in .part: remove it.)
    Raises OSError, naming the bytes it needs, if it can't be written.
    notes: plain values to store along, such as scores and settings.
    """
    path = Path(path)
    tensors = {f"model.{k}": v.data for k, v in model.named_parameters()}
    training = None
    if trainer is not None:
        extra, training = trainer._state()
        tensors.update(extra)
    header = {
        "config": model.config,
        "training": training,
        "notes": notes or {},
        "src_vocab": pack_vocab(src_vocab),
        "tgt_vocab": pack_vocab(tgt_vocab),
    }
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {path.parent} to save {path.name} in"
        )
    partial = None
    try:
        handle, partial = tempfile.mkstemp(".part", path.name, path.parent)
        os.close(handle)
        save_file(tensors, partial, {"format": FORMAT, "header": json.dumps(header)})
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    except (SafetensorError, OSError) as error:
        size = len(json.dumps(header)) + sum(t.nbytes for t in tensors.values())
        raise OSError(
            f"could not save {path} ({error}): it needs {size:,} bytes there. "
            "A file that was there before is as it was"
        ) from error
    finally:
        if partial:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(partial)


def load_parameters(model, saved):
    """Copy tensors by name into a model; one that two modules share is saved once."""
    own = dict(model.named_parameters())
    if own.keys() != saved.keys():
        different = sorted(own.keys() ^ saved.keys())
        raise ValueError(f"parameters only on one side: {', '.join(different)}")
    model.load_state_dict(saved, strict=False)


def pack_vocab(vocab):
    """A vocabulary as plain values: its language, and its tokens or subword model."""
    if isinstance(vocab, SubwordVocab):
        return [vocab.lang, base64.b64encode(vocab.model).decode()]
    return [vocab.lang, vocab.idx_to_token]


def unpack_vocab(packed):
    """The vocabulary that `pack_vocab` packed."""
    lang, content = packed
    if isinstance(content, str):
        return SubwordVocab(base64.b64decode(content, validate=True), lang)
    return Vocab.from_tokens(content, lang)


class ShapesOnly(TorchFunctionMode):
    """Modules built in this mode take no memory: their tensors have shapes alone.

    An embedding's first numbers are not drawn: on the meta device, PyTorch would
    import a large part of itself for that, for seconds.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.nn.init.normal_:
            return kwargs["tensor"]
        with torch.device("meta"):
            return function(*args, **(kwargs or {}))


def check_config(build, config, saved, vocabs):
    """ValueError unless the settings fit the parameters and the vocabularies.

    Asked before the model is built: settings that lie get no memory.
    """
    sizes = [config["src_vocab_size"], config["tgt_vocab_size"]]
    if sizes != [len(vocab) for vocab in vocabs]:
        raise ValueError(f"the settings name other sizes of vocabularies: {sizes}")
    if (config.get("num_layers") or 1) > len(saved):
        raise ValueError(f"{config['num_layers']} layers in {len(saved)} parameters")
    with ShapesOnly():
        named = {name: p.shape for name, p in build(**config).named_parameters()}
    held = {name: tensor.shape for name, tensor in saved.items()}
    wrong = sorted({name for name, _ in named.items() ^ held.items()})
    if wrong:
        raise ValueError(f"the settings name other sizes of {', '.join(wrong[:3])}")


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
        config = header["config"]
        build = build_translator if config["kind"] in TRANSLATORS else build_model
        saved = {
            name.removeprefix("model."): value
            for name, value in tensors.items()
            if name.startswith("model.")
        }
        check_config(build, config, saved, vocabs)
        model = build(**config)
        load_parameters(model, saved)
        training, notes = header["training"], header["notes"]
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(
            f"{path} has the right format but its contents don't fit together ({error})"
        ) from error
    return Checkpoint(
        model.eval(),
        *vocabs,
        training,
        {k: v for k, v in tensors.items() if not k.startswith("model.")},
        notes,
    )
