"""What a second process brings: updates of the training command's model.

A few minutes, with nothing else running. Every process has one thread, and the same
batches of 64 sentences; two processes take every other sentence. Measured is what an
update takes by the clock. Without dropout, so that the losses can be compared.
"""

import statistics
import tempfile
import time
from functools import partial
from itertools import islice

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tools.experiments.runs import build, village
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


def plan(done):
    return [{}]


def work(rank, world, exchange, settings, folder, answers):
    """One process; the first puts milliseconds an update, and the losses at the ends.

    The losses are of the whole batches.
    """
    torch.set_num_threads(settings["threads"])
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", meeting, rank=rank, world_size=world)
    corpus, vocabs = village(settings["direction"])
    model = build("translator", vocabs, 0, settings)
    smoothed = partial(by_hand.loss, label_smoothing=Settings().label_smoothing)
    share = ShareOfLoss(model, smoothed, rank, world)
    share = DistributedDataParallel(share) if exchange else share
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loader = BatchLoader(corpus["train"], *vocabs, settings["batch_size"])
    batches = list(islice(loader, settings["warmup"] + settings["updates"]))
    losses = []
    for batch in batches:
        if len(losses) == settings["warmup"]:
            start = time.perf_counter()
        loss = train_step(model, batch, adam, loss_function=lambda _, b: share(b))
        losses.append(loss)
    milliseconds = 1e3 * (time.perf_counter() - start) / settings["updates"]
    # Of this process's share, weighted: the processes' mean is the batch's.
    ends = torch.tensor([losses[0], losses[-1]]) / world
    dist.all_reduce(ends)
    dist.destroy_process_group()
    if rank == 0:
        answers.put((milliseconds, [round(loss, 5) for loss in ends.tolist()]))


def run(settings):
    """Milliseconds an update, of each arrangement: [median, lowest, highest]."""
    village(settings["direction"])  # what this run reads, noted
    answers = torch.multiprocessing.get_context("spawn").SimpleQueue()
    times = {name: [] for name in ARRANGEMENTS}
    losses = {}
    for _ in range(settings["rounds"]):
        for name, (world, exchange) in ARRANGEMENTS.items():
            with tempfile.TemporaryDirectory() as folder:
                arguments = world, exchange, settings, folder, answers
                torch.multiprocessing.spawn(work, arguments, world)
            milliseconds, losses[name] = answers.get()
            times[name].append(milliseconds)
    found = {}
    for name, clock in times.items():
        three = statistics.median(clock), min(clock), max(clock)
        found[name] = {"losses": losses[name], "clock": [round(ms, 1) for ms in three]}
    return {"milliseconds": found}
