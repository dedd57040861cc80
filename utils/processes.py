"""One training on several processes or machines: DistributedDataParallel.

`python -m torch.distributed.run` starts the processes; each takes its rows of every
batch.
"""

import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from utils.training import train_step


def join_processes():
    """(rank, world, device): this process's number, and of how many."""
    local = os.environ.get("LOCAL_RANK")
    device = f"cuda:{local or 0}" if torch.cuda.is_available() else "cpu"
    if local is None:
        return 0, 1, device
    if not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    return dist.get_rank(), dist.get_world_size(), device


def is_first_here() -> bool:
    """Whether this process speaks for all on its machine; the others wait for it."""
    first = os.environ.get("LOCAL_RANK", "0") == "0"
    if not first:
        time.sleep(1)  # who ends with an error ends the others
    return first


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


def share_training(trainer, rank, world):
    """Let a Trainer train together with the other processes' trainers, in place.

    Its losses are those of the whole batches.
    """
    together = DistributedDataParallel(
        ShareOfLoss(trainer.model, trainer.loss_function, rank, world)
    )

    def step(*arguments):
        loss = torch.tensor(train_step(*arguments)) / world
        dist.all_reduce(loss)
        return loss.item()

    trainer.loss_function = lambda _, batch: together(batch)
    trainer.step_function = step


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
