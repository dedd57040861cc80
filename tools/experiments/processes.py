"""What a second process brings at most: updates of the training command's model.

Notebook 15 reads what is stored. About a minute. Each arrangement runs under torchrun
in processes of its own, one thread each, on the same batches of 64 sentences; two
processes take every other sentence. Measured is the processor time that the first
process spends on an update. Waiting for the other isn't counted, and neither is what
other programs do meanwhile. So the clock can't show a larger gain than this.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tools.experiments.runs import RESULTS, village
from tools.experiments.score_speed import processor_seconds
from utils import by_hand
from utils.data import BatchLoader
from utils.models import build_model
from utils.processes import ShareOfLoss, join_processes
from utils.recipe import Settings

SETTINGS = {
    "direction": "en-fr",
    "embed_size": 128,
    "num_hiddens": 256,
    "enc_hiddens": 384,
    "dropout": 0.3,
    "batch_size": 64,
    "updates": 20,
    "warmup": 5,
    "threads": 1,
    "rounds": 3,
}
# name: processes, whether they exchange their gradients
ARRANGEMENTS = {"one": (1, False), "two": (2, True), "two, no exchange": (2, False)}


def work(path, exchange, settings=SETTINGS):
    """One process under torchrun: its milliseconds for each update, into a file."""
    torch.set_num_threads(settings["threads"])
    rank, world, _ = join_processes()
    torch.manual_seed(0)
    corpus, vocabs = village(settings["direction"])
    sizes = ("embed_size", "num_hiddens", "enc_hiddens", "dropout")
    model = build_model(
        "translator", *map(len, vocabs), **{name: settings[name] for name in sizes}
    )
    smoothing = Settings().label_smoothing
    loss_function = partial(by_hand.loss, label_smoothing=smoothing)
    share = ShareOfLoss(model, loss_function, rank, world)
    together = DistributedDataParallel(share)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loader = BatchLoader(corpus["train"], *vocabs, settings["batch_size"])

    def update(batch):
        with nullcontext() if exchange else together.no_sync():
            adam.zero_grad()
            together(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()

    batches = list(islice(loader, settings["warmup"] + settings["updates"]))
    times = [processor_seconds(partial(update, batch)) for batch in batches]
    dist.destroy_process_group()
    if rank == 0:
        words = sum(batch.target_lens.sum().item() for batch in batches)
        figures = {
            "processor": 1e3 * statistics.mean(times[settings["warmup"] :]),
            "words": words / len(batches),
            "megabytes": sum(p.numel() for p in model.parameters()) * 4 / 1e6,
        }
        Path(path).write_text(json.dumps(figures), encoding="utf-8")


def figures_of(processes, exchange):
    """What `work` says in the first process of so many."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/figures.json"
        torchrun = "-m torch.distributed.run --standalone --nproc-per-node".split()
        worker = ["-m", "tools.experiments.processes", path, str(int(exchange))]
        command = [sys.executable, *torchrun, str(processes), *worker]
        subprocess.run(command, check=True, cwd=RESULTS.parents[1])
        return json.loads(Path(path).read_text(encoding="utf-8"))


def summary(rounds):
    """Median, lowest and highest of each figure that changes; the others once."""
    result = {key: round(rounds[0][key], 2) for key in ("words", "megabytes")}
    values = [figures["processor"] for figures in rounds]
    three = statistics.median(values), min(values), max(values)
    return {**result, "processor": [round(value, 1) for value in three]}


def run(settings):
    """Milliseconds of processor an update, for each arrangement."""
    rounds = [
        {name: figures_of(*plan) for name, plan in ARRANGEMENTS.items()}
        for _ in range(settings["rounds"])
    ]
    return {"milliseconds": {n: summary([r[n] for r in rounds]) for n in ARRANGEMENTS}}


if __name__ == "__main__":  # one of torchrun's processes
    work(sys.argv[1], sys.argv[2] == "1")
