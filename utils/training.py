"""Training: the loss, one step, the loop around it, and checkpoints.

Letters in shape comments: B sentences in a batch, S source and T target positions,
V words in the target vocabulary. Losses are in nats a token.
"""

import contextlib
import hashlib
import math
import signal
import threading
import time
from functools import partial

import torch
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel
from tqdm.auto import tqdm

from utils.checkpoint import (
    load_checkpoint,
    load_parameters,
    require_saveable,
    resumable,
)
from utils.text import PAD_ID


def masked_cross_entropy(logits, targets, label_smoothing=0.0):
    """Mean cross-entropy over the real target words; padding isn't counted.

    logits (..., V), targets (...) word ids -> one number, in nats a token.
    label_smoothing: the share of each target that goes to all words alike (Szegedy et
    al., 2016, section 7). Raises ValueError when shapes don't fit or nothing is real.
    """
    if logits.dim() < 2 or logits.shape[:-1] != targets.shape:
        raise ValueError(
            "logits must be (batch, positions, words) and targets (batch, positions), "
            f"got {tuple(logits.shape)} and {tuple(targets.shape)}"
        )
    require_smoothing(label_smoothing)
    if not (targets != PAD_ID).any():
        raise ValueError("every target is padding: there is no word to learn from")
    return F.cross_entropy(
        logits.flatten(0, -2),
        targets.flatten(),
        ignore_index=PAD_ID,
        label_smoothing=label_smoothing,
    )


def require_smoothing(label_smoothing):
    """ValueError, in words, unless it can be a share of each target."""
    if not 0 <= label_smoothing < 1:
        raise ValueError(
            f"label_smoothing must be at least 0 and below 1, got {label_smoothing}"
        )


def batch_loss(model, batch, label_smoothing=0.0):
    """`masked_cross_entropy` of the model's logits, by teacher forcing.

    They are computed at the real target words alone: padding has no next word.
    """
    real = batch.target_out != PAD_ID  # (B, T)
    logits, _ = model(batch.source, batch.target_in, batch.source_lens, real)  # (P, V)
    return masked_cross_entropy(logits, batch.target_out[real], label_smoothing)


def train_step(model, batch, optimizer, clip=1.0, loss_function=batch_loss):
    """One update by teacher forcing. Returns the loss before it, in nats a token.

    clip: a gradient with a larger norm is scaled down to this (Pascanu et al., 2013).
    Raises FloatingPointError, with the parameters unchanged, if the loss or the
    gradient isn't finite.
    """
    if not clip > 0:
        raise ValueError(f"clip must be above 0, the largest norm allowed; got {clip}")
    model.train()
    loss = loss_function(model, batch)
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
def evaluate_loss(model, loader, loss_function=batch_loss):
    """Teacher-forced loss over a whole loader, in nats a token."""
    model.eval()
    total, tokens = 0.0, 0
    for batch in loader:
        count = batch.target_lens.sum().item()
        total += loss_function(model, batch).item() * count
        tokens += count
    return total / tokens


def running_mean(keep, mean, value, updates):
    """The mean after `updates` values and one more; the first ones are let go faster.

    Without that, a short training's mean would be little more than its first values.
    """
    count = updates.item()
    return torch.lerp(value, mean, min(keep, (1 + count) / (10 + count)))


@contextlib.contextmanager
def interrupt_held():
    """Hold back an interrupt (Ctrl-C, the stop button) until the block is done."""
    if threading.current_thread() is not threading.main_thread():
        yield  # interrupts go to the main thread
        return
    held = []
    handler = signal.signal(signal.SIGINT, lambda *args: held.append(args))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held and callable(handler):
        handler(*held[0])


class Trainer:
    """Adam over epochs of a BatchLoader; can be interrupted, and resumed from a file.

    lr rises linearly over the first `warmup` of all steps, then falls linearly to 0.
    averaging: how much of the parameters' running mean each update keeps, such as
    0.999; `averaged` is the model that has them, and it is the one validated. 0: none.
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
        averaging=0.0,
        loss_function=batch_loss,
        step_function=train_step,
    ):
        require_settings(num_epochs, lr, clip, warmup, averaging)
        self.model, self.loader, self.num_epochs = model, loader, num_epochs
        self.valid_loader, self.lr, self.clip, self.warmup = (
            valid_loader,
            lr,
            clip,
            warmup,
        )
        self.averaging = averaging
        self.loss_function, self.step_function = loss_function, step_function
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
        self._mean = averaging and AveragedModel(
            model, avg_fn=partial(running_mean, averaging)
        )
        self.step = 0  # updates made so far, over all epochs
        self.losses, self.history = [], []
        self._epoch = {"seconds": 0.0, "tokens": 0}

    @property
    def averaged(self):
        """The model with the running mean of the parameters; else the model itself."""
        return self._mean.module if self._mean else self.model

    def learning_rate(self, step):
        """The rate of update number `step`, counted from 0."""
        total = self.num_epochs * len(self.loader)
        rising = (step + 1) / max(1, round(self.warmup * total))
        falling = (total - step) / total
        return self.lr * min(rising, falling)

    def fit(self, checkpoint=None, progress=True):
        """Train to the last epoch, from wherever training stands; returns self.

        checkpoint: a function called with the trainer after each epoch, such as one
        that calls `save_checkpoint`; True from it ends the training. With it, a model
        that can't be saved is refused before the first step. An interrupt leaves model,
        losses and history usable, and the next `fit()` goes on with the next batch.
        """
        if checkpoint is not None:
            require_saveable(self.model)
        per_epoch = len(self.loader)
        total = self.num_epochs * per_epoch
        bar = tqdm(total=total, initial=self.step, unit="batch", disable=not progress)
        with bar:
            while len(self.history) < self.num_epochs:
                epoch = len(self.history)
                done = self.step - epoch * per_epoch
                start = time.perf_counter()
                try:
                    self._run_epoch(epoch, done, bar)
                finally:
                    self._epoch["seconds"] += time.perf_counter() - start
                self._close_epoch(epoch)
                bar.set_postfix(self._summary())
                if checkpoint is not None and checkpoint(self):
                    break
        return self

    def _run_epoch(self, epoch, done, bar):
        for index, batch in enumerate(self.loader.epoch(epoch)):
            if index < done:
                continue
            with interrupt_held():  # an update is made and counted, or neither
                for group in self.optimizer.param_groups:
                    group["lr"] = self.learning_rate(self.step)
                loss = self.step_function(
                    self.model, batch, self.optimizer, self.clip, self.loss_function
                )
                if self._mean:
                    self._mean.update_parameters(self.model)
                self.losses.append(loss)
                self._epoch["tokens"] += batch.target_lens.sum().item()
                self.step += 1
            bar.update()

    def _close_epoch(self, epoch):
        losses = self.losses[epoch * len(self.loader) :]
        valid = self.valid_loader and evaluate_loss(self.averaged, self.valid_loader)
        entry = {"train_loss": sum(losses) / len(losses), "valid_loss": valid}
        with interrupt_held():
            self.history.append({**entry, **self._epoch})
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

    def resume(self, path, but=()):
        """Take up the training that `save_checkpoint(path, …, trainer=…)` stored.

        but: names of settings that may differ from now on, num_epochs and lr among
        them. Raises ValueError, with this trainer as it was, if the file holds another
        training: other settings, data, parameters, or numbers that don't fit them.
        """
        with torch.random.fork_rng(devices=[]):  # building a model draws numbers
            saved = load_checkpoint(path)
        try:
            training, state, mean, updates, rng_state = resumable(
                saved, self.model, self._plan(), but
            )
        except ValueError as error:
            raise ValueError(f"{path} can't be resumed: {error}") from error
        with interrupt_held():  # all of it is taken over, or nothing
            load_parameters(self.model, dict(saved.model.named_parameters()))
            adam = self.optimizer.state_dict()
            self.optimizer.load_state_dict({**adam, "state": state})
            if self._mean:
                load_parameters(self._mean.module, mean)
                self._mean.n_averaged.copy_(updates)
            torch.set_rng_state(rng_state)
            self.step, self.losses = training["step"], training["losses"]
            self.history, self._epoch = training["history"], training["epoch"]
        return self

    def _plan(self):
        return {
            "num_epochs": self.num_epochs,
            "batches": len(self.loader),
            **fingerprint(self.loader),
            "lr": self.lr,
            "clip": self.clip,
            "warmup": self.warmup,
            "averaging": self.averaging,
        }

    def _state(self):
        """(tensors, plain values) from which `resume` goes on."""
        tensors = {"rng_state": torch.get_rng_state()}
        if self._mean:
            mean = self._mean.module.named_parameters()
            tensors.update({f"mean.{name}": value.data for name, value in mean})
            tensors["mean_updates"] = self._mean.n_averaged
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


def fingerprint(loader):
    """What decides the batches of a BatchLoader; the data as a checksum of their ids.

    Each None for a loader that doesn't have it.
    """
    names = ("batch_size", "seed", "bucketed", "shuffle", "alpha")
    ids = getattr(loader, "ids", None)
    checksum = None if ids is None else hashlib.sha256(repr(ids).encode()).hexdigest()
    return {name: getattr(loader, name, None) for name in names} | {"data": checksum}


def require_settings(num_epochs, lr, clip, warmup, averaging):
    """ValueError, in words, unless a training can be run with these numbers."""
    whole = isinstance(num_epochs, int) and not isinstance(num_epochs, bool)
    if not whole or num_epochs < 1:
        raise ValueError(f"num_epochs must be at least 1, got {num_epochs}")
    for name, value in (("lr", lr), ("clip", clip)):
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be above 0 and finite, got {value}")
    if not 0 <= warmup <= 1:
        raise ValueError(f"warmup is a share of all steps, 0 to 1, got {warmup}")
    if not 0 <= averaging < 1:
        raise ValueError(f"averaging must be at least 0 and below 1, got {averaging}")
