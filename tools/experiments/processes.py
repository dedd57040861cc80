"""What a second process brings at most: updates of the training command's model.

`make results` writes `processes.json`, which notebook 12 reads. About a minute. Each
arrangement runs under torchrun in processes of its own, one thread each, on the same
batches of 64 sentences; two processes take every other sentence. Measured is the
processor time that the first process spends on an update. Waiting for the other isn't
counted, and neither is what other programs do meanwhile. So the clock can't show a
larger gain than this.
"""

import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import torch
import torch.distributed as dist
from runs import RESULTS
from torch.nn.parallel import DistributedDataParallel

from utils.corpora import load_village
from utils.data import BatchLoader
from utils.train import Settings, ShareOfLoss, join_processes
from utils.translator import build_translator

PATH = RESULTS / "processes.json"
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
    corpus = load_village(*settings["direction"].split("-"))
    vocabs = corpus.vocabs()
    model = build_translator(
        "translator",
        *map(len, vocabs),
        settings["embed_size"],
        settings["num_hiddens"],
        settings["enc_hiddens"],
        settings["dropout"],
    )
    share = ShareOfLoss(model, Settings().label_smoothing, rank, world)
    together = DistributedDataParallel(share)
    adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    loader = BatchLoader(corpus["train"], *vocabs, settings["batch_size"])
    rows, words = [], 0
    for batch in islice(loader, settings["warmup"] + settings["updates"]):
        start = time.process_time()
        with nullcontext() if exchange else together.no_sync():
            adam.zero_grad()
            together(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rows.append(1e3 * (time.process_time() - start))
        words += batch.target_lens.sum().item()
    dist.destroy_process_group()
    if rank == 0:
        figures = {
            "processor": statistics.mean(rows[settings["warmup"] :]),
            "words": words / len(rows),
            "megabytes": sum(p.numel() for p in model.parameters()) * 4 / 1e6,
        }
        Path(path).write_text(json.dumps(figures), encoding="utf-8")


def measure(processes, exchange):
    """The figures of the first process of so many."""
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/figures.json"
        command = [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            str(processes),
            __file__,
            path,
            str(int(exchange)),
        ]
        subprocess.run(command, check=True)
        return json.loads(Path(path).read_text(encoding="utf-8"))


def summary(rounds):
    """Median, lowest and highest of each figure that changes; the others once."""
    result = {key: round(rounds[0][key], 2) for key in ("words", "megabytes")}
    values = [figures["processor"] for figures in rounds]
    three = statistics.median(values), min(values), max(values)
    return {**result, "processor": [round(value, 1) for value in three]}


def main():
    rounds = [
        {name: measure(*plan) for name, plan in ARRANGEMENTS.items()}
        for _ in range(SETTINGS["rounds"])
    ]
    stored = {
        "command": "make results",
        "settings": SETTINGS,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "milliseconds": {n: summary([r[n] for r in rounds]) for n in ARRANGEMENTS},
    }
    PATH.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(stored["milliseconds"], indent=1))


if __name__ == "__main__":
    if len(sys.argv) == 3:
        work(sys.argv[1], sys.argv[2] == "1")
    else:
        main()
