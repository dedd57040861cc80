"""Training: the loss, one step, the loop around it, and checkpoints.

Letters in shape comments: B sentences in a batch, S source and T target positions,
V words in the target vocabulary. Losses are in nats a token.
"""

import contextlib
import json
import math
import os
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.nn import functional as F
from tqdm.auto import tqdm

from utils import fast
from utils.seq2seq import EncoderDecoder, build_model
from utils.text import PAD_ID, Vocab

FORMAT = "learning-to-align checkpoint 1"


def masked_cross_entropy(scores, targets):
    """Mean cross-entropy over the real target words; padding isn't counted.

    scores (B, T, V), targets (B, T) word ids -> one number, in nats a token.
    Raises ValueError when shapes don't fit or nothing is real.
    """
    if scores.dim() != 3 or scores.shape[:2] != targets.shape:
        raise ValueError(
            "scores must be (batch, positions, words) and targets (batch, positions), "
            f"got {tuple(scores.shape)} and {tuple(targets.shape)}"
        )
    real = targets != PAD_ID  # (B, T)
    if not real.any():
        raise ValueError("every target is padding: there is no word to learn from")
    return F.cross_entropy(scores[real], targets[real])


def batch_loss(model, batch):
    """`masked_cross_entropy` of the model's scores, by teacher forcing.

    For the models that `fast` knows by its shorter way: the same to rounding.
    """
    if fast.knows(model):
        return fast.loss(model, batch)
    scores, _ = model(batch.source, batch.target_in, batch.source_lens)
    return masked_cross_entropy(scores, batch.target_out)


def train_step(model, batch, optimizer, clip=1.0):
    """One update by teacher forcing. Returns the loss before it, in nats a token.

    clip: a gradient with a larger norm is scaled down to this (Pascanu et al., 2013).
    Raises FloatingPointError, with the parameters unchanged, if the loss or the
    gradient isn't finite.
    """
    model.train()
    loss = batch_loss(model, batch)
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    check_finite(loss.item(), norm.item())
    optimizer.step()
    return loss.item()


def check_finite(loss, norm):
    """FloatingPointError, in words, unless both are finite."""
    if not (math.isfinite(loss) and math.isfinite(norm)):
        raise FloatingPointError(
            f"the loss is {loss} and its gradient's norm {norm}: training diverged. "
            "Try a lower learning rate or a smaller clip, and look for infinite values "
            "in the inputs; the parameters were left as they were"
        )


@torch.no_grad()
def evaluate_loss(model, loader):
    """Teacher-forced loss over a whole loader, in nats a token."""
    model.eval()
    total, tokens = 0.0, 0
    for batch in loader:
        count = batch.target_lens.sum().item()
        total += batch_loss(model, batch).item() * count
        tokens += count
    return total / tokens


class Trainer:
    """Adam over epochs of a BatchLoader; can be interrupted, and resumed from a file.

    lr rises linearly over the first `warmup` of all steps, then falls linearly to 0.
    losses: each step's loss. history: a dict each epoch with `train_loss`, `valid_loss`
    (None without a valid_loader), `seconds` and `tokens` (real target tokens).
    """

    def __init__(
        self,
        model,
        loader,
        num_epochs,
        valid_loader=None,
        lr=3e-3,
        clip=1.0,
        warmup=0.05,
    ):
        if num_epochs < 1:
            raise ValueError(f"num_epochs must be at least 1, got {num_epochs}")
        self.model, self.loader, self.num_epochs = model, loader, num_epochs
        self.valid_loader, self.lr, self.clip, self.warmup = (
            valid_loader,
            lr,
            clip,
            warmup,
        )
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
        self.step = 0  # updates made so far, over all epochs
        self.losses, self.history = [], []
        self._epoch = {"seconds": 0.0, "tokens": 0}

    def learning_rate(self, step):
        """The rate of update number `step`, counted from 0."""
        total = self.num_epochs * len(self.loader)
        rising = (step + 1) / max(1, round(self.warmup * total))
        falling = (total - step) / total
        return self.lr * min(rising, falling)

    def fit(self, checkpoint=None, progress=True):
        """Train to the last epoch, from wherever training stands; returns self.

        checkpoint: a function called with the trainer after each epoch, such as one
        that calls `save_checkpoint`. An interrupt leaves model, losses and history
        usable, and the next `fit()` goes on with the next batch.
        """
        per_epoch = len(self.loader)
        total = self.num_epochs * per_epoch
        bar = tqdm(total=total, initial=self.step, unit="batch", disable=not progress)
        with bar:
            while self.step < total:
                epoch, done = divmod(self.step, per_epoch)
                start = time.perf_counter()
                try:
                    self._run_epoch(epoch, done, bar)
                finally:
                    self._epoch["seconds"] += time.perf_counter() - start
                self._close_epoch(epoch)
                bar.set_postfix(self._summary())
                if checkpoint is not None:
                    checkpoint(self)
        return self

    def _run_epoch(self, epoch, done, bar):
        for index, batch in enumerate(self.loader.epoch(epoch)):
            if index < done:
                continue
            for group in self.optimizer.param_groups:
                group["lr"] = self.learning_rate(self.step)
            loss = train_step(self.model, batch, self.optimizer, self.clip)
            self.losses.append(loss)
            self._epoch["tokens"] += batch.target_lens.sum().item()
            self.step += 1
            bar.update()

    def _close_epoch(self, epoch):
        losses = self.losses[epoch * len(self.loader) :]
        valid = self.valid_loader and evaluate_loss(self.model, self.valid_loader)
        self.history.append(
            {
                "train_loss": sum(losses) / len(losses),
                "valid_loss": valid,
                **self._epoch,
            }
        )
        self._epoch = {"seconds": 0.0, "tokens": 0}

    def _summary(self):
        last = self.history[-1]
        return {
            key: f"{last[key]:.3f}"
            for key in ("train_loss", "valid_loss")
            if last[key] is not None
        }

    @property
    def seconds(self):
        """Seconds spent in updates so far; validation isn't counted."""
        return sum(epoch["seconds"] for epoch in [*self.history, self._epoch])

    def resume(self, path):
        """Take up the training that `save_checkpoint(path, …, trainer=…)` stored."""
        saved = load_checkpoint(path)
        if saved.training is None:
            raise ValueError(f"{path} holds a model but no state of training to resume")
        plan = self._plan()
        if saved.training["plan"] != plan:
            raise ValueError(
                f"{path} was trained as {saved.training['plan']}, but this "
                f"trainer is set to {plan}: make them equal to resume"
            )
        self.model.load_state_dict(saved.model.state_dict())
        params = list(self.model.parameters())
        state = {
            i: {
                name: saved.tensors[f"optimizer.{i}.{name}"].clone()
                for name in ("step", "exp_avg", "exp_avg_sq")
            }
            for i in range(len(params))
            if f"optimizer.{i}.step" in saved.tensors
        }
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state})
        torch.set_rng_state(saved.tensors["rng_state"])
        self.step, self.losses = saved.training["step"], saved.training["losses"]
        self.history, self._epoch = saved.training["history"], saved.training["epoch"]
        return self

    def _plan(self):
        return {
            "num_epochs": self.num_epochs,
            "batches": len(self.loader),
            "lr": self.lr,
            "clip": self.clip,
            "warmup": self.warmup,
        }

    def _state(self):
        """(tensors, plain values) from which `resume` goes on."""
        tensors = {"rng_state": torch.get_rng_state()}
        for i, entry in self.optimizer.state_dict()["state"].items():
            tensors.update(
                {f"optimizer.{i}.{name}": value for name, value in entry.items()}
            )
        return tensors, {
            "plan": self._plan(),
            "step": self.step,
            "losses": self.losses,
            "history": self.history,
            "epoch": self._epoch,
        }


class Checkpoint(NamedTuple):
    """What `load_checkpoint` returns."""

    model: EncoderDecoder  # in evaluation mode
    src_vocab: Vocab
    tgt_vocab: Vocab
    training: dict | None  # for Trainer.resume
    tensors: dict[str, torch.Tensor]  # likewise
    notes: dict  # whatever was stored with it


def save_checkpoint(path, model, src_vocab, tgt_vocab, trainer=None, notes=None):
    """Store a model from `build_model`, its vocabularies and, on request, its training.

    A safetensors file, which holds numbers and never code. It is written beside `path`
    and then moved there, so `path` is at every moment whole: the old file or the new.
    notes: plain values to store along, such as scores and settings.
    """
    path = Path(path)
    tensors = {f"model.{k}": v.contiguous() for k, v in model.state_dict().items()}
    training = None
    if trainer is not None:
        extra, training = trainer._state()
        tensors.update(extra)
    header = {
        "config": model.config,
        "training": training,
        "notes": notes or {},
        "src_vocab": [src_vocab.lang, src_vocab.idx_to_token],
        "tgt_vocab": [tgt_vocab.lang, tgt_vocab.idx_to_token],
    }
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {path.parent} to save {path.name} in"
        )
    handle, partial = tempfile.mkstemp(
        dir=path.parent, prefix=path.name, suffix=".part"
    )
    os.close(handle)
    try:
        save_file(tensors, partial, {"format": FORMAT, "header": json.dumps(header)})
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.chmod(partial, 0o644)
        os.replace(partial, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)


def load_checkpoint(path):
    """Read what `save_checkpoint` wrote.

    Raises FileNotFoundError, or ValueError when the file is damaged or not ours.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
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
        vocabs = [
            Vocab.from_tokens(tokens, lang)
            for lang, tokens in (header["src_vocab"], header["tgt_vocab"])
        ]
        model = build_model(**header["config"])
        model.load_state_dict(
            {
                name.removeprefix("model."): value
                for name, value in tensors.items()
                if name.startswith("model.")
            }
        )
        training, notes = header["training"], header["notes"]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
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
