"""Training: the loss, one step, and the loop around it.

Letters in shape comments: B sentences in a batch, S source and T target positions,
V words in the target vocabulary. Losses are in nats a token.
"""

import math
import time
from functools import partial

import torch
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel
from tqdm.auto import tqdm

from utils.checkpoint import load_checkpoint, require_equal, require_tensors
from utils.guards import require_positive, require_share, require_whole
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
    require_share("label_smoothing", label_smoothing)
    if not (targets != PAD_ID).any():
        raise ValueError("every target is padding: there is no word to learn from")
    return F.cross_entropy(
        logits.flatten(0, -2),
        targets.flatten(),
        ignore_index=PAD_ID,
        label_smoothing=label_smoothing,
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


class Trainer:
    """Adam over epochs of a BatchLoader; resumed from a file at whole epochs.

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
        require_whole("num_epochs", num_epochs)
        require_positive("lr", lr)
        require_positive("clip", clip)
        require_share("averaging", averaging)
        if not 0 <= warmup <= 1:
            raise ValueError(f"warmup is a share of all steps, 0 to 1, got {warmup}")
        self.model, self.loader, self.valid_loader = model, loader, valid_loader
        self.num_epochs, self.lr, self.clip = num_epochs, lr, clip
        self.warmup, self.averaging = warmup, averaging
        self.loss_function, self.step_function = loss_function, step_function
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
        for p in model.parameters():  # as Adam begins, so that all have what is stored
            zeros = {key: torch.zeros_like(p.data) for key in ("exp_avg", "exp_avg_sq")}
            self.optimizer.state[p] = {"step": p.data.new_zeros(()), **zeros}
        mean = partial(running_mean, averaging)
        self._mean = averaging and AveragedModel(model, avg_fn=mean)
        self.losses, self.history = [], []

    @property
    def averaged(self):
        """The model with the running mean of the parameters; else the model itself."""
        return self._mean.module if self._mean else self.model

    @property
    def step(self):
        """Updates made so far, over all epochs."""
        return len(self.losses)

    @property
    def seconds(self):
        """Seconds spent in updates so far; validation isn't counted."""
        return sum(epoch["seconds"] for epoch in self.history)

    def learning_rate(self, step):
        """The rate of update number `step`, counted from 0."""
        total = self.num_epochs * len(self.loader)
        rising = (step + 1) / max(1, round(self.warmup * total))
        falling = (total - step) / total
        return self.lr * min(rising, falling)

    def fit(self, checkpoint=None, progress=True):
        """Train to the last epoch, from wherever training stands; returns self.

        checkpoint: a function called with the trainer after each epoch, such as one
        that calls `save_checkpoint`; True from it ends the training. An interrupt
        leaves a model that can be used; the next `fit()` begins that epoch anew.
        """
        per_epoch = len(self.loader)
        del self.losses[len(self.history) * per_epoch :]  # of an epoch that was broken
        total = self.num_epochs * per_epoch
        bar = tqdm(total=total, initial=self.step, unit="batch", disable=not progress)
        with bar:
            for epoch in range(len(self.history), self.num_epochs):
                start, tokens = time.perf_counter(), 0
                for batch in self.loader.epoch(epoch):
                    self.update(batch)
                    tokens += batch.target_lens.sum().item()
                    bar.update()
                seconds = time.perf_counter() - start
                entry = {"train_loss": sum(self.losses[-per_epoch:]) / per_epoch}
                valid = self.valid_loader
                entry["valid_loss"] = valid and evaluate_loss(self.averaged, valid)
                self.history.append({**entry, "seconds": seconds, "tokens": tokens})
                shown = {name: f"{x:.3f}" for name, x in entry.items() if x is not None}
                bar.set_postfix(shown)
                if checkpoint is not None and checkpoint(self):
                    break
        return self

    def update(self, batch):
        """One step at its learning rate, and its share in the running mean."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.step)
        how = self.optimizer, self.clip, self.loss_function
        loss = self.step_function(self.model, batch, *how)
        if self._mean:
            self._mean.update_parameters(self.model)
        self.losses.append(loss)

    def plain(self):
        """The plain values that `resume` goes on from: of whole epochs."""
        names = ("clip", "warmup", "averaging")
        settings = {name: getattr(self, name) for name in names}
        settings["batches"] = len(self.loader)
        losses = self.losses[: len(self.history) * len(self.loader)]
        return {"settings": settings, "losses": losses, "history": self.history}

    def tensors(self):
        """The tensors that it goes on from, beside the model's parameters, by name."""
        found = {"random state": torch.get_rng_state()}
        for name, p in self.model.named_parameters():
            adam = self.optimizer.state[p]
            found |= {f"{key} of {name}": value for key, value in adam.items()}
        if self._mean:
            mean = self.averaged.named_parameters()
            found |= {f"mean of {name}": p.data for name, p in mean}
        return found

    def resume(self, path):
        """Take up the training that `save_checkpoint(path, …, trainer=…)` stored.

        num_epochs and lr may be new. Raises ValueError, in words, with this trainer as
        it was, if the file holds another training, or numbers that no training has.
        """
        saved = load_checkpoint(path)
        found = dict(saved.model.named_parameters()) | saved.tensors
        own = dict(self.model.named_parameters()) | self.tensors()
        settings = getattr(self.model, "config", {}) | self.plain()["settings"]
        try:
            if saved.training is None:
                raise ValueError("it holds a model but no training to resume")
            require_equal(saved.model.config | saved.training["settings"], settings)
            require_tensors(found, own)
            torch.set_rng_state(found["random state"])
        except (ValueError, RuntimeError) as error:
            raise ValueError(f"{path} can't be resumed: {error}") from error
        for name, tensor in own.items():
            tensor.data.copy_(found[name])
        self.losses = saved.training["losses"]
        self.history = saved.training["history"]
        if self._mean:
            self._mean.n_averaged.fill_(self.step)
        return self
