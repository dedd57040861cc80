"""Where a model computes: threads, device; one training on several processes.

`python -m torch.distributed.run` starts the processes; each takes its rows of every
batch, and DistributedDataParallel shares their gradients.
"""

import os
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from utils.options import Options, setting
from utils.training import train_step


@dataclass(frozen=True)
class Machine(Options):
    """Where a model computes."""

    threads: int = setting(1, "threads; slower with more than idle cores", (1, 1024))
    device: str = setting(
        "auto", "auto: cuda if it is there, else cpu", ("auto", "cpu", "cuda", "mps")
    )

    def start(self) -> torch.device:
        """Set the threads, find the device; ValueError if it isn't there."""
        torch.set_num_threads(self.threads)
        found = ["cpu"] + ["cuda"] * torch.cuda.is_available()
        found += ["mps"] * torch.backends.mps.is_available()
        best = "cuda" if "cuda" in found else "cpu"
        name = best if self.device == "auto" else self.device
        if name not in found:
            found = " and ".join(found)
            raise ValueError(f"the device {name} isn't there: PyTorch finds {found}")
        own = f":{os.environ.get('LOCAL_RANK', 0)}" if name == "cuda" else ""
        return torch.device(name + own)


def join_processes():
    """(rank, world): this process's number, and of how many."""
    if "LOCAL_RANK" not in os.environ:
        return 0, 1
    if not dist.is_initialized():
        dist.init_process_group()
    return dist.get_rank(), dist.get_world_size()


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
    share = ShareOfLoss(trainer.model, trainer.loss_function, rank, world)
    together = DistributedDataParallel(share)

    def step(*arguments):
        loss = torch.tensor(train_step(*arguments)) / world
        dist.all_reduce(loss)
        return loss.item()

    trainer.loss_function = lambda _, batch: together(batch)
    trainer.step_function = step
