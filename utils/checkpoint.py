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

from utils.models import build_model
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
    (A process killed meanwhile leaves a file beside it that ends in .part: remove it.)
    Raises OSError, naming the bytes it needs, if it can't be written; ValueError for a
    model that would come back as another one, or not at all.
    notes: plain values to store along, such as scores and settings.
    """
    path = Path(path)
    require_saveable(model, (src_vocab, tgt_vocab))
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


def optimizer_state(saved, model):
    """Adam's numbers for each parameter, by its place; ValueError if they don't fit."""
    state = {}
    for i, (name, parameter) in enumerate(model.named_parameters()):
        shapes = {"step": (), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}
        entry = {key: saved.pop(f"optimizer.{i}.{key}", None) for key in shapes}
        if all(value is None for value in entry.values()):
            continue  # a parameter that has had no gradient
        for key, shape in shapes.items():
            if entry[key] is None or entry[key].shape != shape:
                found = None if entry[key] is None else tuple(entry[key].shape)
                raise ValueError(
                    f"the optimizer's {key} of {name} should have the shape "
                    f"{tuple(shape)}, and has {found}"
                )
            if entry[key].dtype != torch.float32 or not entry[key].isfinite().all():
                raise ValueError(f"the optimizer's {key} of {name} isn't of numbers")
        state[i] = {key: value.clone() for key, value in entry.items()}
    return state


def require_parameters(model, saved, what):
    """ValueError, in words, unless saved has the model's parameters, shape by shape."""
    own = {name: tuple(p.shape) for name, p in model.named_parameters()}
    held = {name: tuple(value.shape) for name, value in saved.items()}
    for name in sorted(own.keys() | held.keys()):
        if own.get(name) != held.get(name):
            raise ValueError(
                f"{what} holds {name} of shape {held.get(name)}, where this model has "
                f"{own.get(name)}"
            )


def load_parameters(model, saved):
    """Copy tensors by name into a model; one that two modules share is saved once."""
    require_parameters(model, saved, "the file")
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


def build_shapes(config):
    """The model that `build_model` makes of config, without memory for its numbers."""
    config = {**config, "published_init": False} if "variant" in config else config
    with ShapesOnly():
        return build_model(**config)


def require_saveable(model, vocabs=None):
    """ValueError, in words, unless a file would give back this very model.

    That is so if `model.config` builds it: the same classes, settings and shapes. With
    vocabs, they must have the sizes that the model was built for.
    """
    config = getattr(model, "config", None)
    if config is None:
        raise ValueError(
            "this model can't be saved: it has no config. Build it by "
            "utils.models.build_model, with an entry in KINDS for a kind of your own"
        )
    if vocabs:
        require_vocabs(config, vocabs)
    built = describe(build_shapes(config))
    found = describe(model)
    for name in [*built, *found]:
        if built.get(name) != found.get(name):
            raise ValueError(
                f"this model can't be saved: its {name} is {found.get(name)}, and what "
                f"its config builds has {built.get(name)}. Make it a kind of its own, "
                "an entry in utils.models.KINDS"
            )


def describe(model):
    """What a config must give back: each part's class and values, each shape."""
    found = {name: tuple(p.shape) for name, p in model.named_parameters()}
    for path, module in model.named_modules():
        where = f"{path or 'model'}"
        kind = type(module)  # a class of the same name elsewhere is another class
        found[f"{where}, its class,"] = f"{kind.__module__}.{kind.__qualname__}"
        for name, value in vars(module).items():
            plain = isinstance(value, (bool, int, float, str)) or callable(value)
            hidden = name.startswith("_") or name in ("training", "config")
            if plain and not hidden and not isinstance(value, torch.Tensor):
                found[f"{where}.{name}"] = value
    return found


def require_vocabs(config, vocabs):
    """ValueError, in words, unless the vocabularies have the sizes in the config."""
    sizes = [config["src_vocab_size"], config["tgt_vocab_size"]]
    if sizes != [len(vocab) for vocab in vocabs]:
        raise ValueError(
            f"the model was built for vocabularies of {sizes[0]} and {sizes[1]} words, "
            f"these have {len(vocabs[0])} and {len(vocabs[1])}"
        )


def check_config(config, saved, vocabs):
    """ValueError unless the settings fit the parameters and the vocabularies.

    Asked before the model is built: settings that lie get no memory.
    """
    require_vocabs(config, vocabs)
    if (config.get("num_layers") or 1) > len(saved):
        raise ValueError(f"{config['num_layers']} layers in {len(saved)} parameters")
    named = {name: p.shape for name, p in build_shapes(config).named_parameters()}
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
        saved = {
            name.removeprefix("model."): value
            for name, value in tensors.items()
            if name.startswith("model.")
        }
        check_config(config, saved, vocabs)
        model = build_model(**config)
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
