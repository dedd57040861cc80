"""The training command: a translator for real text, from files to a checkpoint.

    python -m utils.train --corpus multi30k --source de --target en --out de-en
    python -m utils.train --tsv my-sentences.tsv --source en --target fr --out en-fr

The same command runs on several processes or machines under `torchrun`: each process
takes its share of every batch (DistributedDataParallel).
"""

import argparse
import os
import sys
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from utils import by_hand
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_multi30k, load_tsv, load_village
from utils.data import BatchLoader
from utils.decoding import translate_tokens
from utils.metrics import bleu
from utils.models import build_model
from utils.subwords import SampledLoader, SubwordVocab, as_spelled
from utils.text import Vocab
from utils.training import Trainer, batch_loss


@dataclass(frozen=True)
class Settings:
    """Everything that decides what is trained, chosen on Multi30k's validation split.

    source_pieces, target_pieces: subwords in a vocabulary, 0 for whole words seen at
    least twice (characters, in Chinese). alpha: how sharply a way of cutting a word is
    drawn anew each epoch, 0 for always the best. loss: a key of LOSSES.
    """

    kind: str = "translator"
    loss: str = "plain"
    source_pieces: int = 3000
    target_pieces: int = 3000
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


class Fitted(NamedTuple):
    """What `fit` returns: the best model by validation loss, and how it came about."""

    model: nn.Module
    vocabs: tuple
    trainer: Trainer
    best_epoch: int  # counted from 1


TRANSLATORS = ("translator", "fixed translator")
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


def check_settings(settings, patience):
    """ValueError, in words, unless a training can be run with these numbers."""
    for name, low in LOWEST.items():
        if not low <= getattr(settings, name) < float("inf"):
            raise ValueError(
                f"{name} must be at least {low}, got {getattr(settings, name)}"
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
    train = corpus["train"]
    languages = corpus.source_lang, corpus.target_lang
    sizes = settings.source_pieces, settings.target_pieces
    vocabs = []
    for side, (lang, size) in enumerate(zip(languages, sizes, strict=True)):
        sentences = [pair[side] for pair in train]
        if size:
            vocabs.append(SubwordVocab.train(sentences, lang, size))
        else:
            vocabs.append(Vocab(sentences, lang, min_freq=2))
    return tuple(vocabs)


def make_loader(pairs, vocabs, settings):
    """Batches of the training split; with subwords and alpha, cut anew each epoch."""
    arguments = (pairs, *vocabs, settings.batch_size, settings.seed)
    if settings.alpha and (settings.source_pieces or settings.target_pieces):
        return SampledLoader(*arguments, settings.alpha)
    return BatchLoader(*arguments)


# Several processes


class ShareOfLoss(nn.Module):
    """This process's part of a batch's loss, so that the processes' mean is the whole.

    Every process makes the same batches and keeps the rows that are its own. Its mean
    over words is weighted by its share of the words: the mean of the gradients, which
    DistributedDataParallel takes, is then that of one process on the whole batch.
    """

    def __init__(self, model, loss_function, rank, world):
        super().__init__()
        self.model, self.loss_function = model, loss_function
        self.rank, self.world = rank, world

    def forward(self, batch):
        if len(batch.source) < self.world:  # too few to share: all do the same
            return self.loss_function(self.model, batch)
        own = type(batch)(*(column[self.rank :: self.world] for column in batch))
        weight = self.world * own.target_lens.sum() / batch.target_lens.sum()
        return weight * self.loss_function(self.model, own)


def join_processes():
    """(rank, world, device): this process's number under torchrun, and of how many."""
    local = os.environ.get("LOCAL_RANK")
    device = f"cuda:{local or 0}" if torch.cuda.is_available() else "cpu"
    if local is None:
        return 0, 1, device
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), dist.get_world_size(), device


class OnDevice:
    """A BatchLoader whose batches are moved to a device."""

    def __init__(self, loader, device):
        self.loader, self.device = loader, device

    def __getattr__(self, name):  # what else is asked of it, the loader answers
        return getattr(self.loader, name)

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        return self.epoch(0)

    def epoch(self, k):
        for batch in self.loader.epoch(k):
            yield type(batch)(*(column.to(self.device) for column in batch))


# Training


def fit(
    corpus,
    settings,
    out=None,
    resume=False,
    patience=None,
    progress=True,
    overwrite=False,
):
    """Train a translator on corpus["train"], judged by corpus["valid"] -> Fitted.

    out: a path without ending. `out.safetensors` then holds the best model so far,
    `out.last.safetensors` what `resume` goes on from, both whole at every moment.
    Files that are there already are replaced only with `overwrite`: FileExistsError.
    patience: stop after so many epochs without a better validation loss.
    """
    rank, world, device = join_processes()
    check_settings(settings, patience)
    if out is not None and not resume and not overwrite:
        require_free(out)
    if resume:
        vocabs = resumable_vocabs(out, corpus, settings)
    else:
        vocabs = make_vocabs(corpus, settings)
    torch.manual_seed(settings.seed)
    sizes = settings.embed_size, settings.num_hiddens, settings.enc_hiddens
    model = build_model(settings.kind, *map(len, vocabs), *sizes, settings.dropout)
    model.to(device)
    smoothing = settings.label_smoothing
    loss_function = partial(LOSSES[settings.loss], label_smoothing=smoothing)
    trainer = Trainer(
        model,
        OnDevice(make_loader(corpus["train"], vocabs, settings), device),
        settings.num_epochs,
        OnDevice(BatchLoader(corpus["valid"], *vocabs, 128, shuffle=False), device),
        lr=settings.lr,
        averaging=settings.averaging,
        loss_function=loss_function,
    )
    if world > 1:
        share = ShareOfLoss(model, loss_function, rank, world)
        together = DistributedDataParallel(share)
        trainer.loss_function = lambda _, batch: together(batch)
    notes = {"settings": asdict(settings), "corpus": repr(corpus)}
    keeper = Keeper(trainer, vocabs, notes, out if rank == 0 else None, patience)
    if resume:
        keeper.best = load_checkpoint(f"{out}.safetensors").model.state_dict()
        trainer.resume(f"{out}.last.safetensors")  # last: it sets the random state
    if rank > 0:
        torch.manual_seed(settings.seed + rank)  # other dropout in each process
    trainer.fit(keeper, progress and rank == 0)
    best = trainer.averaged
    best.load_state_dict(keeper.best)
    return Fitted(best.cpu().eval(), vocabs, trainer, keeper.best_epoch)


def require_free(out):
    """FileExistsError if a training has been stored at `out` before."""
    files = [f"{out}.safetensors", f"{out}.last.safetensors"]
    taken = [name for name in files if Path(name).exists()]
    if taken:
        raise FileExistsError(
            f"{' and '.join(taken)} would be lost: --resume goes on with that "
            "training, --overwrite replaces it, another --out keeps both"
        )


class Keeper:
    """After each epoch: keeps the best model, stores both; True when to stop."""

    def __init__(self, trainer, vocabs, notes, out, patience):
        self.trainer, self.vocabs, self.notes = trainer, vocabs, notes
        self.out, self.patience, self.best = out, patience, None

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
        waited = epochs - self.best_epoch
        return self.patience is not None and waited >= self.patience


def resumable_vocabs(out, corpus, settings):
    """The vocabularies of a stored training, to go on with it.

    Raises ValueError when it was of another corpus, or with other settings.
    """
    if out is None:
        raise ValueError("to resume, say with out= where the training was stored")
    stored = load_checkpoint(f"{out}.last.safetensors")
    then, now = stored.notes.get("settings", {}), asdict(settings)
    then = {"corpus": stored.notes.get("corpus"), **then}
    now = {"corpus": repr(corpus), **now}
    differences = [
        f"{name} was {then.get(name)} and is {now.get(name)}"
        for name in {**then, **now}
        if then.get(name) != now.get(name)
    ]
    if differences:
        raise ValueError(
            f"{out}.last.safetensors can't be resumed: {'; '.join(differences)}"
        )
    return stored.src_vocab, stored.tgt_vocab


# The command


def parse(arguments):
    """The command's options; each field of Settings is one of them."""
    parser = argparse.ArgumentParser(
        prog="python -m utils.train",
        description="Train a translator with additive attention, with progress, "
        "validation, early stopping and checkpoints.",
    )
    text = parser.add_mutually_exclusive_group(required=True)
    text.add_argument("--corpus", choices=["multi30k", "village"])
    text.add_argument("--tsv", help="a file with two sentences a line, a tab between")
    parser.add_argument("--source", required=True, help="its language: en, fr, de, zh")
    parser.add_argument("--target", required=True)
    parser.add_argument(
        "--columns", nargs=2, help="languages of the TSV's columns, if not en and other"
    )
    parser.add_argument(
        "--held-out",
        type=int,
        default=1000,
        help="pairs of the TSV in each of validation and test (default 1000)",
    )
    parser.add_argument("--skip-bad-lines", action="store_true")
    parser.add_argument(
        "--out", required=True, help="path of the model, without ending"
    )
    stored = parser.add_mutually_exclusive_group()
    stored.add_argument(
        "--resume", action="store_true", help="go on from the last finished epoch"
    )
    stored.add_argument(
        "--overwrite", action="store_true", help="replace a model stored there before"
    )
    parser.add_argument(
        "--patience",
        type=int,
        help="stop after so many epochs without a better validation loss",
    )
    for name, value in asdict(Settings()).items():
        options = {"type": type(value), "default": value, "help": f"default {value}"}
        if name == "kind":
            options["choices"] = TRANSLATORS
        if name == "loss":
            options["choices"] = sorted(LOSSES)
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    return parser.parse_args(arguments)


def named_corpus(options):
    """The corpus that the options name."""
    languages = options.source, options.target
    if options.corpus == "multi30k":
        return load_multi30k(*languages)
    if options.corpus == "village":
        return load_village(*languages)
    return load_tsv(
        options.tsv,
        *languages,
        columns=options.columns,
        valid=options.held_out,
        test=options.held_out,
        skip_bad_lines=options.skip_bad_lines,
    )


def main(arguments=None):
    options = parse(arguments)
    settings = Settings(**{name: getattr(options, name) for name in asdict(Settings())})
    try:
        corpus = named_corpus(options)
        folder = Path(options.out).parent
        folder.mkdir(parents=True, exist_ok=True)
        fitted = fit(
            corpus,
            settings,
            options.out,
            options.resume,
            options.patience,
            overwrite=options.overwrite,
        )
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    except KeyboardInterrupt:
        sys.exit("stopped: --resume goes on after the last finished epoch")
    if join_processes()[0] > 0:
        return
    for number, epoch in enumerate(fitted.trainer.history, 1):
        print(
            f"epoch {number}: loss {epoch['train_loss']:.3f} in training, "
            f"{epoch['valid_loss']:.3f} in validation, {epoch['seconds']:.0f} s"
        )
    pairs = corpus["valid"]
    found = translate_tokens(fitted.model, [p.source for p in pairs], *fitted.vocabs)
    references = [as_spelled(pair.target, fitted.vocabs[1]) for pair in pairs]
    score = bleu([t.words for t in found], references)
    print(f"best epoch: {fitted.best_epoch}; its validation BLEU, greedy: {score:.2f}")
    print(f"stored: {options.out}.safetensors")


if __name__ == "__main__":
    main()
