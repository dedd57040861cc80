"""The recipe for real text: from a corpus to the best model of one training.

`python -m utils.train` is its command; the experiments on real text call `fit`.
"""

import math
import warnings
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from utils import by_hand
from utils.checkpoint import load_checkpoint, require_equal, save_checkpoint
from utils.data import BatchLoader
from utils.guards import require_one_of, require_whole
from utils.languages import UNSPACED
from utils.models import build_model
from utils.processes import OnDevice, join_processes, share_training
from utils.subwords import SampledLoader, SubwordVocab
from utils.training import Trainer, batch_loss


def setting(default, said):
    """A field of Settings; said: what `python -m utils.train --help` says of it."""
    return field(default=default, metadata={"help": said})


@dataclass(frozen=True)
class Settings:
    """Everything that decides what is trained, chosen on Multi30k's validation split.

    The help of each field says what it is, and what it is when left out.
    """

    kind: str = setting(
        "translator",
        "fixed (one context), attention, translator (attention and what real text "
        "needs), released-translator (which attends after the update), "
        "fixed-translator, rnnsearch (as published) or transformer; left out, "
        "translator",
    )
    source_pieces: int = setting(
        3000,
        "pieces of words in the vocabulary, at most; 0 for whole words seen at least "
        "twice; left out, 3000, or single characters in a language without spaces",
    )
    target_pieces: int = setting(3000, "the same for the target")
    subwords: str = setting(
        "unigram",
        "unigram, or bpe (byte pairs), which cuts a word in one way only; left out, "
        "unigram",
    )
    alpha: float = setting(
        0.5,
        "how sharply a way to cut a word is drawn anew each epoch; left out, 0.5; 0 "
        "for always the best way, and with bpe",
    )
    embed_size: int = setting(128, "numbers in a word's vector; left out, 128")
    num_hiddens: int = setting(256, "numbers in the decoder's state; left out, 256")
    enc_hiddens: int = setting(
        384,
        "numbers in the encoder's states, of both directions together; left out, 384",
    )
    dropout: float = setting(
        0.3, "share of numbers set to 0 in training; left out, 0.3"
    )
    label_smoothing: float = setting(
        0.1, "share of each target that goes to all words; left out, 0.1"
    )
    averaging: float = setting(
        0.999,
        "how much of the parameters' running mean an update keeps; left out, 0.999; 0 "
        "for none",
    )
    lr: float = setting(
        3e-3, "the highest learning rate; left out, 0.003 (0.001 for a transformer)"
    )
    num_epochs: int = setting(
        12, "times through the text; left out, 3 to 40 by its size"
    )
    batch_size: int = setting(
        64, "sentences an update; left out, 16 to 64 by the text's size"
    )
    seed: int = setting(0, "of all random numbers; left out, 0")

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
SIZES = dict.fromkeys(
    (
        "translator",
        "released translator",
        "conditional translator",
        "fixed translator",
        "attention",
        "fixed",
    ),
    ("embed_size", "num_hiddens", "enc_hiddens", "dropout"),
)
SIZES["rnnsearch"] = ("embed_size", "num_hiddens")
SIZES["transformer"] = ("num_hiddens", "dropout")
SUBWORDS = ("unigram", "bpe")
LOSSES = {"plain": batch_loss, "by-hand": by_hand.loss}


def check_settings(settings, patience=None):
    """ValueError, in words, for what model, batches and Trainer won't refuse later."""
    require_one_of("kind", settings.kind, SIZES)
    require_one_of("subwords", settings.subwords, SUBWORDS)
    require_whole("source_pieces", settings.source_pieces, 0)
    require_whole("target_pieces", settings.target_pieces, 0)
    if not 0 <= settings.alpha < math.inf:
        raise ValueError(f"alpha must be at least 0, got {settings.alpha}")
    if patience is not None:
        require_whole("patience", patience)


def make_vocabs(corpus, settings):
    """Source and target vocabulary, from the training split only."""
    vocabs = []
    for side, (name, lang) in enumerate(
        (("source_pieces", corpus.source_lang), ("target_pieces", corpus.target_lang))
    ):
        sentences = [pair[side] for pair in corpus["train"]]
        size = getattr(settings, name)
        try:
            vocabs.append(SubwordVocab.train(sentences, lang, size, settings.subwords))
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
    if out is not None:
        Path(out).parent.mkdir(parents=True, exist_ok=True)
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
    path = f"{out}.last.safetensors"
    stored = load_checkpoint(path)
    now = {"source": corpus.source_lang, "target": corpus.target_lang}
    now |= asdict(settings)
    then = {"source": stored.src_vocab.lang, "target": stored.tgt_vocab.lang}
    then |= stored.notes.get("settings", {})
    then |= {"num_epochs": settings.num_epochs, "lr": settings.lr}
    try:
        require_equal(then, now)
    except ValueError as error:
        raise ValueError(f"{path} can't be resumed: {error}") from error
    return stored
