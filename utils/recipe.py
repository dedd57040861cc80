"""The recipe for real text: from a corpus to the best model of one training.

`python -m utils.train` is its command; the experiments on real text call `fit`.
"""

import inspect
import math
import warnings
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from utils import by_hand
from utils.checkpoint import load_checkpoint, require_equal, save_checkpoint
from utils.data import BatchLoader
from utils.data_check import without_long
from utils.decoding import MAX_SOURCE
from utils.guards import require_one_of
from utils.models import KINDS, build_model
from utils.options import setting
from utils.processes import Machine, join_processes, random_state, share_training
from utils.subwords import FEWEST, SUBWORDS, SampledLoader, SubwordVocab
from utils.training import Trainer, batch_loss

TRAINED = {  # the kinds of the catalogue that the command trains, as they are typed
    "attention": "released translator",
    "conditional": "conditional translator",
    "fixed": "fixed translator",
    "transformer": "transformer",
}
# What may be new in a training that is resumed.
MAY_CHANGE = "threads device num_epochs lr patience loss precision".split()
SIZES = "embed_size", "num_hiddens", "enc_hiddens", "dropout"
FROM_MODEL = {"lr": 1e-3, "num_epochs": 10}  # settings of a training that has a start
UPDATES = 5400  # of the parameters: those of 12 epochs of Multi30k


@dataclass(frozen=True)
class Settings(Machine):
    """Everything that decides what is trained, chosen on Multi30k's validation split.

    kind: any of the catalogue. Raises ValueError for what can't be.
    """

    kind: str = setting(
        TRAINED["attention"],
        "the model, fixed: with one context a sentence; left out, attention",
        choices=TRAINED,
    )
    source_pieces: int = setting(3000, "pieces of the source's words, at most", FEWEST)
    target_pieces: int = setting(3000, "pieces of the target's words, at most", FEWEST)
    subwords: str = setting("unigram", "how pieces are found", choices=SUBWORDS)
    alpha: float = setting(
        0.5,
        "texts are cut anew each epoch, by a way's probability to this power; 0: the "
        "best way, the only one of bpe; left out, 0.5",
        0,
    )
    embed_size: int = setting(128, "numbers in a piece's vector", 1)
    num_hiddens: int = setting(256, "numbers in the decoder's state", 1)
    enc_hiddens: int = setting(384, "numbers in the encoder's, of both directions", 2)
    dropout: float = setting(0.3, "share of numbers set to 0 in training", 0, 0.99)
    label_smoothing: float = setting(0.1, "share of a target for all pieces", 0, 0.99)
    averaging: float = setting(0.999, "how much of a running mean is kept", 0, 0.999999)
    lr: float = setting(
        3e-3, "highest rate; left out, 0.003; transformer: 0.001", 1e-12
    )
    num_epochs: int = setting(12, "passes over the text; left out, 3 to 40 by size", 1)
    batch_size: int = setting(64, "sentences an update; left out, 16 to 64 by size", 1)
    patience: int = setting(0, "epochs to wait for a better one; left out, all", 1)
    loss: str = setting(
        "auto",
        "auto: with its gradient by hand where it can be",
        choices=("auto", "plain"),
    )
    precision: str = setting(
        "float32", "of the products of matrices", choices=("float32", "bfloat16")
    )
    seed: int = setting(0, "of all random numbers", 0, 2**63 - 1)

    def __post_init__(self):
        super().__post_init__()
        require_one_of("kind", self.kind, KINDS)
        if self.subwords == "bpe" and self.alpha:
            raise ValueError(f"alpha must be 0 with bpe, got {self.alpha}")

    @classmethod
    def for_text(cls, num_pairs, **chosen):
        """Settings for so many training pairs; what is chosen stays as it is.

        About as many updates as Multi30k gets in 12 epochs, in smaller batches where
        there is little text.
        """
        size = 64 if num_pairs >= 5000 else 32 if num_pairs >= 1000 else 16
        given = {"batch_size": size} | chosen
        if chosen.get("kind") == "transformer":
            given.setdefault("lr", 1e-3)
        if chosen.get("subwords") == "bpe":
            given.setdefault("alpha", 0.0)
        batches = math.ceil(num_pairs / max(1, given["batch_size"]))
        given.setdefault("num_epochs", min(40, max(3, round(UPDATES / batches))))
        return cls(**given)


class Fitted(NamedTuple):
    """What `fit` returns: the best model by validation loss, and how it came about."""

    model: nn.Module
    vocabs: tuple
    trainer: Trainer
    best_epoch: int  # counted from 1


def sizes_of(kind) -> list[str]:
    """Those settings of SIZES that a model of this kind is built from."""
    taken = inspect.signature(KINDS[kind]).parameters
    return [name for name in SIZES if name in taken]


def make_vocabs(corpus, settings):
    """Source and target vocabulary, from the training split only."""
    languages = corpus.source_lang, corpus.target_lang
    sizes = settings.source_pieces, settings.target_pieces
    sides = zip(*(pair[:2] for pair in corpus["train"]), strict=True)
    return tuple(
        SubwordVocab.train(texts, lang, size, settings.subwords)
        for texts, lang, size in zip(sides, languages, sizes, strict=True)
    )


def make_model(settings, vocabs):
    """The model of these settings, with new parameters."""
    torch.manual_seed(settings.seed)
    sizes = {name: getattr(settings, name) for name in sizes_of(settings.kind)}
    if settings.kind in ("attention", "fixed"):
        sizes["bidirectional"] = True
    return build_model(settings.kind, *map(len, vocabs), **sizes)


def choose_loss(settings, model, device):
    """The loss function of these settings: by hand where it computes the model."""
    if (settings.loss, settings.precision, device.type) == ("auto", "float32", "cpu"):
        with suppress(ValueError):
            by_hand.require_known(model)
            return by_hand.loss
    return batch_loss


def fit(
    corpus,
    settings,
    out=None,
    resume=False,
    overwrite=False,
    start=None,
    loss_function=None,
    progress=True,
    watch=None,
    notes=None,
):
    """Train a translator on corpus["train"], judged by corpus["valid"] -> Fitted.

    Pairs that are too long are left out. out: a path without ending.
    `out.safetensors` then holds the best model so far, `out.last.safetensors` what
    `resume` goes on from, both whole at every moment: an interrupt costs the running
    epoch. To resume, settings may differ in MAY_CHANGE. Files that are there already
    are replaced only with `overwrite`: FileExistsError. start: a Checkpoint to start
    from. loss_function: in place of the settings' own. watch: what is told of the
    training, as `utils.report.Report`. notes: plain values to store.
    """
    (rank, world), device = join_processes(), settings.start()
    if out is not None:
        if not (resume or overwrite):
            require_free(out)
        Path(out).parent.mkdir(parents=True, exist_ok=True)
    if resume:
        start = resumable(out, corpus, settings)
    vocabs = start[1:3] if start else make_vocabs(corpus, settings)
    corpus, findings = without_long(corpus, *vocabs, MAX_SOURCE)
    torch.manual_seed(settings.seed)
    model = (start.model.float() if start else make_model(settings, vocabs)).to(device)
    loss = loss_function or choose_loss(settings, model, device)
    by = "hand" if loss is by_hand.loss else "PyTorch"
    findings = [*corpus.findings, *findings]
    threads = f", {settings.threads} thread" + "s" * (settings.threads > 1)
    where = (
        f"{device}{threads if device.type == 'cpu' else ''}, in {settings.precision}"
    )
    findings.append(f"computed on {where}, the gradient by {by}")
    if settings.precision != "float32":
        loss = torch.autocast(device.type, torch.bfloat16)(loss)
    load = (
        partial(SampledLoader, alpha=settings.alpha) if settings.alpha else BatchLoader
    )
    trainer = Trainer(
        model,
        load(corpus["train"], *vocabs, settings.batch_size, settings.seed),
        settings.num_epochs,
        BatchLoader(corpus["valid"], *vocabs, 128, shuffle=False),
        lr=settings.lr,
        averaging=settings.averaging,
        loss_function=partial(loss, label_smoothing=settings.label_smoothing),
    )
    if world > 1:
        share_training(trainer, rank, world)
    notes = {**(notes or {}), "settings": asdict(settings), "corpus": repr(corpus)}
    watch = watch if rank == 0 else None
    own = out if rank == 0 else None
    keeper = Keeper(trainer, vocabs, notes, own, settings.patience, watch)
    if resume:
        keeper.best = load_checkpoint(f"{out}.safetensors").model.state_dict()
        trainer.resume(f"{out}.last.safetensors")  # last: it sets the random state
        random_state(device, start.notes["random"].get(device.type))
    if rank > 0:
        torch.manual_seed(settings.seed + rank)  # other dropout in each process
    if watch:
        watch.begin(trainer, vocabs, corpus, findings)
    with device:  # new tensors, such as the batches, are there
        trainer.fit(keeper, progress and rank == 0)
    best = trainer.averaged
    best.load_state_dict(keeper.best)
    return Fitted(best.cpu().eval(), vocabs, trainer, keeper.best_epoch)


def require_free(out):
    """FileExistsError if there is a file at `out` that a training would write."""
    endings = ("safetensors", "last.safetensors", "log.csv", "png")
    taken = [f"{out}.{end}" for end in endings if Path(f"{out}.{end}").exists()]
    if taken:
        raise FileExistsError(
            f"{' and '.join(taken)} would be lost: --resume goes on with that "
            "training, --overwrite replaces it, another --out keeps both"
        )


class Keeper:
    """After each epoch: stores the last model and the best, reports; True to stop."""

    def __init__(self, trainer, vocabs, notes, out, patience, watch):
        self.trainer, self.vocabs, self.notes = trainer, vocabs, notes
        self.out, self.patience, self.watch = out, patience or math.inf, watch
        self.best, self.device = None, next(trainer.model.parameters()).device

    @property
    def best_epoch(self):
        losses = [epoch["valid_loss"] for epoch in self.trainer.history]
        return losses.index(min(losses)) + 1

    def __call__(self, trainer):
        epochs, averaged = len(trainer.history), trainer.averaged
        notes = {**self.notes, "epoch": epochs}
        if self.best_epoch == epochs:
            self.best = {k: v.clone() for k, v in averaged.state_dict().items()}
            if self.out:
                path = f"{self.out}.safetensors"
                save_checkpoint(path, averaged, *self.vocabs, notes=notes)
        if self.out:
            path, device = f"{self.out}.last.safetensors", self.device
            notes["random"] = {device.type: random_state(device)}
            save_checkpoint(path, trainer.model, *self.vocabs, trainer, notes)
        if self.watch:
            try:
                self.watch.epoch(trainer, self.vocabs)
            except Exception as error:  # whatever it is, the training goes on
                said = f"epoch {epochs} is stored, but its report failed: {error!r}"
                warnings.warn(said, stacklevel=1)
        return epochs - self.best_epoch >= self.patience


def resumable(out, corpus, settings):
    """The Checkpoint of a stored training, to go on with it.

    Raises ValueError when it was of another corpus, or with other settings than it may.
    """
    path = f"{out}.last.safetensors"
    stored = load_checkpoint(path)
    languages = stored.src_vocab.lang, stored.tgt_vocab.lang
    then = stored.notes.get("settings", {}) | {"languages": languages}
    now = asdict(settings)
    now |= {"languages": (corpus.source_lang, corpus.target_lang)}
    for name in MAY_CHANGE:
        then[name] = now[name]
    try:
        require_equal(then, now)
    except ValueError as error:
        raise ValueError(f"{path} can't be resumed: {error}") from error
    return stored
