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
    if trainer is not None and trainer.model is not model:
        raise ValueError(
            "with trainer=, the model to save is trainer.model; the trainer trains "
            "another one than this"
        )
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


def resumable(saved, model, plan, but=()):
    """What Trainer.resume copies, from a Checkpoint; nothing is changed here.

    -> plain values, Adam's numbers, the running mean's parameters (none without
    averaging) and count, the random state. ValueError, in words, unless the file holds
    a training of this model by this plan (`but` for these names), and all numbers fit.
    """
    training, tensors = saved.training, dict(saved.tensors)
    require_training(training)
    own = getattr(model, "config", saved.model.config)
    allowed = {name: plan[name] for name in but}
    require_equal(saved.model.config | training["plan"] | allowed, own | plan)
    require_parameters(model, dict(saved.model.named_parameters()), "it")
    state = optimizer_state(tensors, model, training["step"])
    mean, updates = {}, None
    if plan["averaging"]:
        for name, parameter in model.named_parameters():
            mean[name] = take(tensors, f"mean.{name}", parameter)
        count = torch.tensor(training["step"])
        updates = take(tensors, "mean_updates", count, count, count)
    rng_state = take(tensors, "rng_state", torch.get_rng_state())
    try:
        torch.Generator().set_state(rng_state)
    except RuntimeError as error:
        raise ValueError(f"its rng_state is none ({error})") from error
    if tensors:
        raise ValueError(f"it holds {', '.join(sorted(tensors))}, unknown here")
    return training, state, mean, updates, rng_state


def require_training(training):
    """ValueError, in words, unless it is what a trainer describes itself by."""
    if training is None:
        raise ValueError("it holds a model but no state of training to resume")
    try:
        epochs, plan = len(training["history"]), training["plan"]
        in_epoch = training["step"] - epochs * plan["batches"]
        numbers = [*training["losses"], *training["epoch"].values()]
        for entry in training["history"]:
            numbers += [entry[key] for key in ("train_loss", "seconds", "tokens")]
        whole = (
            training.keys() == {"plan", "step", "losses", "history", "epoch"}
            and len(training["losses"]) == training["step"]
            and epochs <= plan["num_epochs"]
            and 0 <= in_epoch <= plan["batches"]
            and training["epoch"].keys() == {"seconds", "tokens"}
            and all("valid_loss" in entry for entry in training["history"])
            and all(isinstance(number, (int, float)) for number in numbers)
        )
    except (AttributeError, KeyError, TypeError):
        whole = False
    if not whole:
        raise ValueError("its state of training doesn't fit together")


def require_equal(then, now):
    """ValueError that names the differences between two trainings, if there are any."""
    differences = [
        "the data or their order differ"
        if name == "data"
        else f"{name} was {then.get(name)} and is {now.get(name)}"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]
    if differences:
        raise ValueError(
            f"it was another training: {'; '.join(differences)}. Make them equal"
        )


def take(tensors, name, like, low=-torch.inf, high=torch.inf):
    """Remove a tensor and return it; ValueError, in words, unless it can be taken over.

    It must have the shape and type of `like`, and numbers from low to high.
    """
    found = tensors.pop(name, None)
    expected = f"{like.dtype} of shape {tuple(like.shape)}"
    held = "none" if found is None else f"{found.dtype} of shape {tuple(found.shape)}"
    if held != expected:
        raise ValueError(f"its {name} should be {expected}, and there is {held}")
    if not (found.isfinite() & (found >= low) & (found <= high)).all():
        raise ValueError(f"its {name} holds a number that can't be")
    return found


def optimizer_state(tensors, model, steps):
    """Adam's numbers for each parameter, by its place; ValueError if they don't fit."""
    state = {}
    for i, parameter in enumerate(model.parameters()):
        of = f"optimizer.{i}."
        if any(name.startswith(of) for name in tensors):  # it has had a gradient
            state[i] = {
                "step": take(tensors, of + "step", torch.tensor(0.0), 1, steps),
                "exp_avg": take(tensors, of + "exp_avg", parameter),
                "exp_avg_sq": take(tensors, of + "exp_avg_sq", parameter, 0),
            }
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
                f"this model can't be saved: its {name} is {in_words(found.get(name))},"
                f" and what its config builds has {in_words(built.get(name))}. Make it "
                "a kind of its own, an entry in utils.models.KINDS"
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


def in_words(value):
    """A value of `describe` for a message: a function by its name, not its address."""
    if callable(value):
        return f"a function, {getattr(value, '__qualname__', type(value).__name__)}"
    return value


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
        names = [name for name in tensors if name.startswith("model.")]
        saved = {name.removeprefix("model."): tensors.pop(name) for name in names}
        check_config(config, saved, vocabs)
        model = build_model(**config)
        load_parameters(model, saved)
        training, notes = header["training"], header["notes"]
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(
            f"{path} has the right format but its contents don't fit together ({error})"
        ) from error
    return Checkpoint(model.eval(), *vocabs, training, tensors, notes)
