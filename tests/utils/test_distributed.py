"""The training command on two processes: torchrun's own, on this machine, with gloo.

Run as a program under torchrun, this file is one of the processes of the first test.
"""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file, save_file
from torch.nn.parallel import DistributedDataParallel

from utils.checkpoint import load_checkpoint
from utils.corpora import load_village
from utils.data import Batch
from utils.decoding import translate_tokens
from utils.models import build_model
from utils.processes import ShareOfLoss, join_processes
from utils.training import batch_loss

ROOT = Path(__file__).resolve().parents[2]
LOSS = partial(batch_loss, label_smoothing=0.1)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (dist.is_available() and dist.is_gloo_available()),
        reason="this build of PyTorch can't join processes",
    ),
]


def model_and_batches():
    """A small model without dropout; 2 × 4 sentences, 7, and 1: one process idle."""
    corpus = load_village("en", "fr")
    vocabs = corpus.vocabs()
    torch.manual_seed(0)
    model = build_model("translator", *map(len, vocabs), 8, 12, 10, 0.0)
    pairs = sorted(corpus["train"][:40], key=lambda pair: len(pair.target))
    pairs = [pairs[0], pairs[-1]] * 4 + pairs[1:]  # one process: short, the other: long
    groups = pairs[:8], pairs[8:15], pairs[15:16]
    return model, [Batch.from_pairs(group, *vocabs) for group in groups]


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


def work(folder):
    """What each process does in the first test: the gradients of every batch."""
    rank, world, device = join_processes()
    assert (world, device) == (2, "cpu")
    model, batches = model_and_batches()
    together = DistributedDataParallel(ShareOfLoss(model, LOSS, rank, world))
    found = {
        f"{number} {name}": gradient
        for number, batch in enumerate(batches)
        for name, gradient in gradients(model, together(batch)).items()
    }
    save_file(found, f"{folder}/rank{rank}.safetensors")
    dist.destroy_process_group()


ONE = [sys.executable]
TWO = [*ONE, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
HERE = {
    "cwd": ROOT,
    "env": {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""},
    "text": True,
}


def run(*words, status=0):
    """A command of this Python to its end -> what it printed, its errors."""
    done = subprocess.run(list(map(str, words)), capture_output=True, **HERE)
    assert (done.returncode != 0) == status, done.stderr[-2000:]
    return done.stdout, done.stderr


def test_gradients_are_those_of_one_process_on_the_whole_batch(tmp_path):
    """Their halves have different numbers of words: a mean of means is another."""
    run(*TWO, __file__, tmp_path)
    ranks = [load_file(tmp_path / f"rank{rank}.safetensors") for rank in (0, 1)]
    model, batches = model_and_batches()
    for number, batch in enumerate(batches):
        for name, expected in gradients(model, LOSS(model, batch)).items():
            for found in ranks:
                torch.testing.assert_close(
                    found[f"{number} {name}"], expected, atol=1e-6, rtol=1e-4
                )
    words = [batches[0].target_lens[rank::2].sum().item() for rank in (0, 1)]
    assert max(words) > 1.5 * min(words)


# --- the command ----------------------------------------------------------------------

EPOCHS = 40


@pytest.fixture
def command(tmp_path):
    """Arguments of the training command, on 240 sentence pairs."""
    pairs = load_village("en", "fr")["train"][:240]
    lines = [f"{' '.join(p.source)}\t{' '.join(p.target)}\n" for p in pairs]
    tsv = tmp_path / "pairs.tsv"
    tsv.write_text("".join(lines), encoding="utf-8")
    sizes = f"""
        --source en --target fr --held-out 20 --num-epochs {EPOCHS} --batch-size 40
        --embed-size 16 --num-hiddens 16 --enc-hiddens 16
        --source-pieces 0 --target-pieces 0
    """
    return ["-m", "utils.train", "--tsv", tsv, *sizes.split()]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows kills otherwise")
def test_a_killed_process_leaves_a_checkpoint_to_use_and_to_resume(command, tmp_path):
    psutil = pytest.importorskip("psutil")
    out = ["--out", tmp_path / "model"]
    last = tmp_path / "model.last.safetensors"
    words = list(map(str, [*TWO, *command, *out]))
    training = subprocess.Popen(words, stdout=subprocess.DEVNULL, **HERE)
    try:
        while not last.exists() and training.poll() is None:
            time.sleep(0.02)
        workers = psutil.Process(training.pid).children()
        workers[-1].kill()  # in the middle of whatever it is doing
        training.communicate()
    finally:
        training.kill()
    assert training.returncode != 0
    stored = load_checkpoint(last)
    epochs = len(stored.training["history"])
    assert 1 <= epochs < EPOCHS
    best = load_checkpoint(tmp_path / "model.safetensors")
    result = translate_tokens(best.model, [["the", "dog"]], *best[1:3], max_steps=5)
    assert len(result[0].tokens) > 0
    more = ["--num-epochs", epochs + 1]
    told, _ = run(*ONE, "-m", "utils.train", "--resume", *out, *more)
    assert f"epoch {epochs + 1} of" in told
    history = load_checkpoint(last).training["history"]
    assert history[:epochs] == stored.training["history"] and len(history) > epochs


def test_one_process_and_two_learn_the_same(command, tmp_path):
    """Without dropout, the losses of all epochs agree, so the command is unchanged."""
    losses = []
    for name, start in (("one", ONE), ("two", TWO)):
        short = ["--dropout", 0, "--num-epochs", 3, "--out", tmp_path / name]
        said, _ = run(*start, *command, *short)
        saved = load_checkpoint(tmp_path / f"{name}.last.safetensors")
        history = saved.training["history"]
        losses.append([e[f"{k}_loss"] for e in history for k in ("train", "valid")])
        assert said.count("the best epoch is ") == 1  # one process speaks for both
    assert losses[0] == pytest.approx(losses[1], rel=1e-3)


def test_an_error_is_said_once():
    words = "-m utils.train --tsv none.tsv --source en --target fr --out m".split()
    _, errors = run(*TWO, *words, status=1)
    assert errors.count("error: there is no file none.tsv") == 1


if __name__ == "__main__":
    work(sys.argv[1])
