"""What a second process brings: updates of the training command's model.

A few minutes, with nothing else running. Every process has one thread, and the same
batches of 64 sentences; two processes take every other sentence. Measured is what an
update takes by the clock. Without dropout, so that the losses can be compared.
"""

import json
import statistics
import tempfile
import time
from functools import partial
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tools.experiments.runs import village
from utils import by_hand
from utils.data import BatchLoader
from utils.models import build_model
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


def work(rank, world, exchange, settings, folder):
    """One process: milliseconds an update and losses, into a file of the first one."""
    torch.set_num_threads(settings["threads"])
    meeting = f"file://{folder}/meeting"
    dist.init_process_group("gloo", meeting, rank=rank, world_size=world)
    torch.manual_seed(0)
    corpus, vocabs = village(settings["direction"])
    names = ("embed_size", "num_hiddens", "enc_hiddens", "dropout")
    sizes = {name: settings[name] for name in names}
    model = build_model("translator", *map(len, vocabs), **sizes)
    smoothed = partial(by_hand.loss, label_smoothing=Settings().label_smoothing)
    share = ShareOfLoss(model, smoothed, rank, world)
    share = DistributedDataParallel(share) if exchange else share
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    update = partial(
        train_step, model, optimizer=adam, loss_function=lambda _, b: share(b)
    )
    loader = BatchLoader(corpus["train"], *vocabs, settings["batch_size"])
    batches = list(islice(loader, settings["warmup"] + settings["updates"]))
    losses = [update(batch) for batch in batches[: settings["warmup"]]]
    start = time.perf_counter()
    losses += [update(batch) for batch in batches[settings["warmup"] :]]
    taken = time.perf_counter() - start
    # Of this process's share, weighted: the processes' mean is the batch's.
    ends = torch.tensor([losses[0], losses[-1]]) / world
    dist.all_reduce(ends)
    dist.destroy_process_group()
    figures = {
        "losses": [round(loss, 5) for loss in ends.tolist()],
        "clock": 1e3 * taken / settings["updates"],
    }
    if rank == 0:
        Path(folder, "figures").write_text(json.dumps(figures), encoding="utf-8")


def figures_of(settings, processes, exchange):
    """What `work` says in the first process of so many."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = processes, exchange, settings, folder
        torch.multiprocessing.spawn(work, arguments, processes)
        return json.loads(Path(folder, "figures").read_text(encoding="utf-8"))


def run(settings):
    """Milliseconds an update, of each arrangement: [median, lowest, highest]."""
    village(settings["direction"])  # what this run reads, noted
    rounds = [
        {name: figures_of(settings, *way) for name, way in ARRANGEMENTS.items()}
        for _ in range(settings["rounds"])
    ]
    found = rounds[0]
    for name, figures in found.items():
        times = [one[name]["clock"] for one in rounds]
        three = statistics.median(times), min(times), max(times)
        figures["clock"] = [round(ms, 1) for ms in three]
    return {"milliseconds": found}
