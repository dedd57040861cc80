"""What a second process brings: updates of the training command's model.

A few minutes, with nothing else running. Every process has one thread, and the same
batches of 64 sentences; two processes take every other sentence. Measured is what an
update takes by the clock, and of the first process's processor. Without dropout, so
that the losses can be compared. Notebook 14 reads what is stored.
"""

import tempfile
import time
from functools import partial
from itertools import islice
from statistics import median

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tools.experiments.runs import build, every, village
from utils import by_hand
from utils.data import BatchLoader
from utils.processes import ShareOfLoss
from utils.recipe import Settings
from utils.training import train_step

SETTINGS = {
    "direction": "en-fr",
    "embed_size": 128,
    "num_hiddens": 256,
    "enc_hiddens": 384,
    "dropout": 0.0,
    "batch_size": 64,
    "updates": 60,
    "warmup": 5,
    "threads": 1,
    "rounds": 3,
}
# name: processes, whether they exchange their gradients
ARRANGEMENTS = {"one": (1, False), "two": (2, True), "two, no exchange": (2, False)}
plan = every()


def work(rank, world, exchange, settings, folder, answers):
    """One process; the first puts milliseconds an update, by clock and by processor,
    and the losses of the first and of the last whole batch.
    """
    torch.set_num_threads(settings["threads"])
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", meeting, rank=rank, world_size=world)
    corpus, vocabs = village(settings["direction"])
    model = build(vocabs, {**settings, "kind": "translator", "seed": 0})
    smoothed = partial(by_hand.loss, label_smoothing=Settings().label_smoothing)
    share = ShareOfLoss(model, smoothed, rank, world)
    share = DistributedDataParallel(share) if exchange else share
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loader = BatchLoader(corpus["train"], *vocabs, settings["batch_size"])
    batches = list(islice(loader, settings["warmup"] + settings["updates"]))
    losses, times = [], []
    for batch in batches:
        loss = train_step(model, batch, adam, loss_function=lambda _, b: share(b))
        losses.append(loss)
        times.append((time.perf_counter(), time.process_time()))
    start, end = torch.tensor(times, dtype=torch.double)[[settings["warmup"] - 1, -1]]
    # Of this process's share, weighted: the processes' mean is the batch's.
    ends = torch.tensor([losses[0], losses[-1]]) / world
    dist.all_reduce(ends)
    dist.destroy_process_group()
    if rank == 0:
        milliseconds = 1e3 * (end - start) / settings["updates"]
        answers.put((*milliseconds.tolist(), [round(x, 5) for x in ends.tolist()]))


def run(settings):
    """Of each arrangement the losses, and [median, lowest, highest] of each time."""
    village(settings["direction"])  # what this run reads, noted
    answers = torch.multiprocessing.get_context("spawn").SimpleQueue()
    rounds = {name: [] for name in ARRANGEMENTS}
    for _ in range(settings["rounds"]):
        for name, (world, exchange) in ARRANGEMENTS.items():
            with tempfile.TemporaryDirectory() as folder:
                arguments = world, exchange, settings, folder, answers
                torch.multiprocessing.spawn(work, arguments, world)
            rounds[name].append(answers.get())
    found = {}
    for name, answered in rounds.items():
        clock, processor, losses = zip(*answered, strict=True)
        found[name] = {"losses": losses[0]}
        for kind, ms in (("clock", clock), ("processor", processor)):
            found[name][kind] = [round(f(ms), 1) for f in (median, min, max)]
    return {"milliseconds": found}
