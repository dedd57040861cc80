"""The recipe for real text: from a corpus to the best model of one training.

`python -m utils.train` is its command; the experiments on real text call `fit`.
"""

import inspect
from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from typing import NamedTuple

import torch
from torch import nn

from utils import by_hand
from utils.checkpoint import load_checkpoint, require_equal
from utils.data import BatchLoader
from utils.data_check import without_long
from utils.decoding import MAX_SOURCE
from utils.guards import require_one_of
from utils.models import KINDS, build_model
from utils.options import setting
from utils.processes import Machine, join_processes, share_training
from utils.subwords import FEWEST, SUBWORDS, SubwordVocab
from utils.training import Trainer, batch_loss

TRAINED = {  # the kinds of the catalogue that the command trains, as they are typed
    "attention": "released translator",
    "conditional": "conditional translator",
    "fixed": "fixed translator",
    "transformer": "transformer",
}
SIZES = "embed_size", "num_hiddens", "enc_hiddens", "dropout"
FROM_MODEL = {"lr": 1e-3, "num_epochs": 10}  # settings of a training that has a start
MOST = FEWEST, inf  # pieces
UPDATES = 5400  # of the parameters: those of 12 epochs of Multi30k


@dataclass(frozen=True)
class Settings(Machine):
    """Everything that decides what is trained, chosen on Multi30k's validation split.

    kind: any of the catalogue. Raises ValueError for what can't be.
    """

    kind: str = setting(
        TRAINED["attention"], "fixed: without attention; left out, attention", TRAINED
    )
    source_pieces: int = setting(3000, "most pieces of the source's words", MOST)
    target_pieces: int = setting(3000, "most pieces of the target's words", MOST)
    subwords: str = setting("unigram", "bpe keeps frequent words whole", SUBWORDS)
    alpha: float = setting(
        0.5, "cuts are drawn by their probability to this power; 0: none", (0, inf)
    )
    embed_size: int = setting(128, "numbers in a piece's vector", (1, inf))
    num_hiddens: int = setting(256, "numbers in the decoder's state", (1, inf))
    enc_hiddens: int = setting(384, "in the encoder's, both directions", (2, inf))
    dropout: float = setting(0.3, "share of numbers set to 0 in training", (0, 0.99))
    label_smoothing: float = setting(0.1, "share of a target for all pieces", (0, 0.99))
    averaging: float = setting(0.999, "of a running mean, what is kept", (0, 0.999999))
    lr: float = setting(3e-3, "highest; transformer, --from: 0.001", (1e-12, inf))
    num_epochs: int = setting(12, "passes; left out, 3 to 40 by size", (1, inf))
    batch_size: int = setting(64, "pairs a batch; left out, 16 to 64 by size", (1, inf))
    patience: int = setting(0, "epochs to wait for a better; left out, all", (1, inf))
    loss: str = setting("auto", "gradient; auto: by hand if it can", ("auto", "plain"))
    precision: str = setting("float32", "of matrix products", ("float32", "bfloat16"))
    seed: int = setting(0, "of all random numbers", (0, 2**63 - 1))

    def __post_init__(self):
        super().__post_init__()
        require_one_of("kind", self.kind, KINDS)
        if self.subwords == "bpe" and self.alpha:
            raise ValueError(f"alpha must be 0 with bpe, got {self.alpha}")

    @classmethod
    def for_text(cls, num_pairs, **chosen):
        """Settings for so many training pairs; what is chosen stays as it is.

        As many updates as Multi30k gets in 12 epochs; smaller batches of little text.
        """
        size = 64 if num_pairs >= 5000 else 32 if num_pairs >= 1000 else 16
        given = {"batch_size": size} | chosen
        if chosen.get("kind") == "transformer":
            given.setdefault("lr", 1e-3)
        if chosen.get("subwords") == "bpe":
            given.setdefault("alpha", 0.0)
        batches = ceil(num_pairs / max(1, given["batch_size"]))
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
    how = [settings.subwords] * 2
    return tuple(map(SubwordVocab.train, sides, languages, sizes, how))


def make_model(settings, vocabs):
    """The model of these settings, with new parameters."""
    torch.manual_seed(settings.seed)
    sizes = {name: getattr(settings, name) for name in sizes_of(settings.kind)}
    return build_model(settings.kind, *map(len, vocabs), **sizes)


def choose_loss(settings, model, device):
    """The loss function of these settings: by hand where it computes the model."""
    if (settings.loss, settings.precision, device.type) == ("auto", "float32", "cpu"):
        if not any(by_hand.differences(model)):
            return by_hand.loss
    return batch_loss


def fit(corpus, settings, start=None, store=None, progress=True):
    """Train a translator on corpus["train"], judged by corpus["valid"] -> Fitted.

    Pairs that are too long are left out. start: a Checkpoint to start from; ValueError
    if it is of other languages. store: a `utils.train.Store`, which stores each epoch
    and says how it went, and from which a training is resumed; None: nothing is stored.
    """
    (rank, world), device = join_processes(), settings.start()
    if store:
        store.open(settings, corpus)
    resumed = store and store.last
    if start := resumed or start:
        then = {"source": start.src_vocab.lang, "target": start.tgt_vocab.lang}
        now = {"source": corpus.source_lang, "target": corpus.target_lang}
        require_equal(then, now)
    vocabs = start[1:3] if start else make_vocabs(corpus, settings)
    corpus, long = without_long(corpus, *vocabs, MAX_SOURCE)
    torch.manual_seed(settings.seed)
    model = (start.model.float() if start else make_model(settings, vocabs)).to(device)
    loss = choose_loss(settings, model, device)
    by = "hand" if loss is by_hand.loss else "PyTorch"
    where = f"{device} with --threads {settings.threads}, in {settings.precision}"
    findings = [*corpus.findings, *long, f"computed on {where}, the gradient by {by}"]
    if settings.precision != "float32":
        loss = torch.autocast(device.type, torch.bfloat16)(loss)
    order = {name: getattr(settings, name) for name in ("batch_size", "seed", "alpha")}
    pairs = BatchLoader(corpus["train"], *vocabs, **order)
    valid = BatchLoader(corpus["valid"], *vocabs, 128, shuffle=False)
    how = {"lr": settings.lr, "averaging": settings.averaging}
    how["loss_function"] = partial(loss, label_smoothing=settings.label_smoothing)
    trainer = Trainer(model, pairs, settings.num_epochs, valid, **how)
    if world > 1:
        share_training(trainer, rank, world)
    best = {}
    if resumed:
        best = load_checkpoint(f"{store.out}.safetensors").model.state_dict()
        trainer.resume(f"{store.out}.last.safetensors")  # it sets the random state
    if rank > 0:
        store = None  # the first process stores and speaks for all
        torch.manual_seed(settings.seed + rank)  # other dropout in each process
    if store:
        store.begin(trainer, vocabs, corpus, findings)
    keeper = partial(keep, vocabs, settings.patience or inf, store, best)
    with device:  # new tensors, such as the batches, are there
        trainer.fit(keeper, progress and rank == 0)
    model = trainer.averaged
    model.load_state_dict(best)
    return Fitted(model.cpu().eval(), vocabs, trainer, best_epoch(trainer))


def best_epoch(trainer) -> int:
    """The epoch with the lowest validation loss, from 1."""
    losses = [epoch["valid_loss"] for epoch in trainer.history]
    return losses.index(min(losses)) + 1


def keep(vocabs, patience, store, best, trainer) -> bool:
    """After an epoch: keep the best parameters, in the dict best; whether to stop."""
    waited = len(trainer.history) - best_epoch(trainer)
    if waited == 0:
        parameters = trainer.averaged.state_dict()
        best |= {name: value.clone() for name, value in parameters.items()}
    if store:
        store.epoch(trainer, vocabs, is_best=waited == 0)
    return waited >= patience
