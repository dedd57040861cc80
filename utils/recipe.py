"""The recipe for real text: from a corpus to the best model of one training.

`python -m utils.train` is its command; the experiments on real text call `fit`.
"""

import math
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from utils import by_hand
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.data import BatchLoader
from utils.languages import UNSPACED
from utils.models import build_model
from utils.processes import OnDevice, join_processes, share_training
from utils.subwords import SampledLoader, SubwordVocab
from utils.text import Vocab
from utils.training import Trainer, batch_loss


@dataclass(frozen=True)
class Settings:
    """Everything that decides what is trained, chosen on Multi30k's validation split.

    kind: one of SIZES. source_pieces, target_pieces: subwords in a vocabulary, at most;
    0 for whole words seen at least twice, or characters where there are no spaces.
    subwords: one of SUBWORDS. alpha: how sharply a way of cutting a word is drawn anew
    each epoch, 0 for always the best; byte pairs have no other way.
    """

    kind: str = "translator"
    source_pieces: int = 3000
    target_pieces: int = 3000
    subwords: str = "unigram"
    alpha: float = 0.5
    embed_size: int = 128
    num_hiddens: int = 256
    enc_hiddens: int = 384
    dropout: float = 0.3
    label_smoothing: float = 0.1
    averaging: float = 0.999
    lr: float = 3e-3
    num_epochs: int = 12
    batch_size: int = 64
    seed: int = 0

    @classmethod
    def for_text(cls, num_pairs, source_lang, target_lang, **chosen):
        """Settings for so many training pairs; what is chosen stays as it is.

        About as many updates as Multi30k gets in 12 epochs, in smaller batches where
        there is little text; characters in languages without spaces.
        """
        given = {}
        if source_lang in UNSPACED:
            given["source_pieces"] = 0
        if target_lang in UNSPACED:
            given["target_pieces"] = 0
        if chosen.get("kind") == "transformer":
            given["lr"] = 1e-3
        if chosen.get("subwords") == "bpe":
            given["alpha"] = 0.0
        batch_size = 64 if num_pairs >= 5000 else 32 if num_pairs >= 1000 else 16
        given |= {"batch_size": batch_size, **chosen}
        batches = math.ceil(num_pairs / max(1, given["batch_size"]))
        given.setdefault("num_epochs", min(40, max(3, round(UPDATES / batches))))
        return cls(**given)


class Fitted(NamedTuple):
    """What `fit` returns: the best model by validation loss, and how it came about."""

    model: nn.Module
    vocabs: tuple
    trainer: Trainer
    best_epoch: int  # counted from 1


FROM_MODEL = {"lr": 1e-3, "num_epochs": 10}  # settings of a training that has a start
UPDATES = 5400  # of the parameters: those of 12 epochs of Multi30k
# The models that make sense here, and the settings that each is built from.
SIZES = {
    "translator": ("embed_size", "num_hiddens", "enc_hiddens", "dropout"),
    "released translator": ("embed_size", "num_hiddens", "enc_hiddens", "dropout"),
    "fixed translator": ("embed_size", "num_hiddens", "enc_hiddens", "dropout"),
    "attention": ("embed_size", "num_hiddens", "enc_hiddens", "dropout"),
    "fixed": ("embed_size", "num_hiddens", "enc_hiddens", "dropout"),
    "rnnsearch": ("embed_size", "num_hiddens"),
    "transformer": ("num_hiddens", "dropout"),
}
SUBWORDS = ("unigram", "bpe")
LOSSES = {"plain": batch_loss, "by-hand": by_hand.loss}
LOWEST = {
    "source_pieces": 0,
    "target_pieces": 0,
    "alpha": 0,
    "embed_size": 1,
    "num_hiddens": 1,
    "enc_hiddens": 2,
    "num_epochs": 1,
    "batch_size": 1,
}
SHARES = ("dropout", "label_smoothing", "averaging")


def check_settings(settings, patience=None):
    """ValueError, in words, unless a training can be run with these numbers."""
    if settings.kind not in SIZES:
        raise ValueError(f"kind must be one of {list(SIZES)}, got {settings.kind!r}")
    if settings.subwords not in SUBWORDS:
        raise ValueError(
            f"subwords must be one of {list(SUBWORDS)}, got {settings.subwords!r}"
        )
    for name, low in LOWEST.items():
        if not low <= getattr(settings, name) < float("inf"):
            raise ValueError(
                f"{name} must be at least {low}, got {getattr(settings, name)}"
            )
    if settings.subwords == "bpe" and settings.alpha:
        raise ValueError(
            f"alpha must be 0 with bpe, which cuts a word in one way only, "
            f"got {settings.alpha}"
        )
    for name in SHARES:
        if not 0 <= getattr(settings, name) < 1:
            raise ValueError(
                f"{name} must be at least 0 and below 1, got {getattr(settings, name)}"
            )
    if not 0 < settings.lr < float("inf"):
        raise ValueError(f"lr must be above 0 and finite, got {settings.lr}")
    if patience is not None and patience < 1:
        raise ValueError(f"patience must be at least 1 epoch, got {patience}")


def make_vocabs(corpus, settings):
    """Source and target vocabulary, from the training split only."""
    vocabs = []
    for side, (name, lang) in enumerate(
        (("source_pieces", corpus.source_lang), ("target_pieces", corpus.target_lang))
    ):
        sentences = [pair[side] for pair in corpus["train"]]
        size = getattr(settings, name)
        if not size:
            vocabs.append(Vocab(sentences, lang, min_freq=2))
            continue
        try:
            vocabs.append(
                SubwordVocab.train(sentences, lang, size, True, settings.subwords)
            )
        except ValueError as error:
            raise ValueError(f"{name} of {lang}: {error}") from error
    return tuple(vocabs)


def make_loader(pairs, vocabs, settings):
    """Batches of the training split; with subwords and alpha, cut anew each epoch."""
    arguments = (pairs, *vocabs, settings.batch_size, settings.seed)
    if settings.alpha and any(isinstance(vocab, SubwordVocab) for vocab in vocabs):
        return SampledLoader(*arguments, settings.alpha)
    return BatchLoader(*arguments)


def make_model(settings, vocabs):
    """The model of these settings, with new parameters."""
    torch.manual_seed(settings.seed)
    sizes = {name: getattr(settings, name) for name in SIZES[settings.kind]}
    if settings.kind in ("attention", "fixed"):
        sizes["bidirectional"] = True
    return build_model(settings.kind, *map(len, vocabs), **sizes)


def fit(
    corpus,
    settings,
    out=None,
    resume=False,
    patience=None,
    progress=True,
    overwrite=False,
    loss_function=batch_loss,
    start=None,
    watch=None,
    notes=None,
):
    """Train a translator on corpus["train"], judged by corpus["valid"] -> Fitted.

    out: a path without ending. `out.safetensors` then holds the best model so far,
    `out.last.safetensors` what `resume` goes on from, both whole at every moment: an
    interrupt costs the running epoch. To resume, settings may differ in num_epochs and
    lr. Files that are there already are replaced only with
    `overwrite`: FileExistsError. patience: stop after so many epochs without a better
    validation loss. loss_function: one of LOSSES; what is trained is the same to
    rounding. start: a Checkpoint to start from, in place of new parameters. watch: what
    is told of the training, as `utils.report.Report`. notes: plain values to store.
    """
    rank, world, device = join_processes()
    check_settings(settings, patience)
    if out is not None and not resume and not overwrite:
        require_free(out)
    if resume:
        start = resumable(out, corpus, settings)
    vocabs = start[1:3] if start else make_vocabs(corpus, settings)
    torch.manual_seed(settings.seed)
    model = start.model.float() if start else make_model(settings, vocabs)
    trainer = Trainer(
        model.to(device),
        OnDevice(make_loader(corpus["train"], vocabs, settings), device),
        settings.num_epochs,
        OnDevice(BatchLoader(corpus["valid"], *vocabs, 128, shuffle=False), device),
        lr=settings.lr,
        averaging=settings.averaging,
        loss_function=partial(loss_function, label_smoothing=settings.label_smoothing),
    )
    if world > 1:
        share_training(trainer, rank, world)
    notes = {**(notes or {}), "settings": asdict(settings), "corpus": repr(corpus)}
    watch = watch if rank == 0 else None
    keeper = Keeper(trainer, vocabs, notes, out if rank == 0 else None, patience, watch)
    if resume:
        keeper.best = load_checkpoint(f"{out}.safetensors").model.state_dict()
        trainer.resume(f"{out}.last.safetensors")  # last: it sets the random state
    if rank > 0:
        torch.manual_seed(settings.seed + rank)  # other dropout in each process
    if watch:
        watch.begin(trainer, vocabs)
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
    """After each epoch: stores the best model and the last, reports; True to stop."""

    def __init__(self, trainer, vocabs, notes, out, patience, watch=None):
        self.trainer, self.vocabs, self.notes = trainer, vocabs, notes
        self.out, self.patience, self.watch = out, patience, watch
        self.best = None

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
            path = f"{self.out}.last.safetensors"
            save_checkpoint(path, trainer.model, *self.vocabs, trainer, notes)
        if self.watch:
            try:
                self.watch.epoch(trainer, self.vocabs)
            except Exception as error:  # whatever it is, the training goes on
                said = f"epoch {epochs} is stored, but its report failed: {error!r}"
                warnings.warn(said, stacklevel=1)
        return epochs - self.best_epoch >= (self.patience or math.inf)


def resumable(out, corpus, settings):
    """The Checkpoint of a stored training, to go on with it.

    Raises ValueError when it was of another corpus, or with other settings than it may.
    """
    if out is None:
        raise ValueError("to resume, say with out= where the training was stored")
    stored = load_checkpoint(f"{out}.last.safetensors")
    then, now = stored.notes.get("settings", {}), asdict(settings)
    then = {"direction": f"{stored.src_vocab.lang}→{stored.tgt_vocab.lang}", **then}
    now = {"direction": f"{corpus.source_lang}→{corpus.target_lang}", **now}
    differences = [
        f"{name} was {then.get(name)} and is {now.get(name)}"
        for name in {**then, **now}
        if then.get(name) != now.get(name) and name not in ("num_epochs", "lr")
    ]
    if differences:
        raise ValueError(
            f"{out}.last.safetensors can't be resumed: {'; '.join(differences)}"
        )
    return stored
