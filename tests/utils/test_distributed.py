"""The training command on two processes: torchrun's own, on this machine, with gloo."""

from functools import partial

import pytest
import torch
import torch.distributed as dist
from helpers.training import NEW, start, toy, write_pairs

from utils.checkpoint import load_checkpoint
from utils.data import Batch, BatchLoader
from utils.models import build_model
from utils.processes import ShareOfLoss
from utils.training import batch_loss

LOSS = partial(batch_loss, label_smoothing=0.1)


@pytest.mark.parametrize("size", [8, 7, 1])
def test_the_mean_of_the_gradients_is_that_of_the_whole_batch(size):
    """A process has the short sentences: a mean of means is another. 1: too few."""
    pairs, vocabs = toy()
    pairs = sorted(pairs, key=lambda pair: len(pair.target))
    batch = Batch.from_pairs(([pairs[0], pairs[-1]] * 4)[:size], *vocabs)
    torch.manual_seed(0)
    model = build_model("translator", *map(len, vocabs), 8, 12, 10, 0.0)

    def gradients(loss):
        return torch.autograd.grad(loss, [*model.parameters()])

    parts = [gradients(ShareOfLoss(model, LOSS, rank, 2)(batch)) for rank in (0, 1)]
    for *both, whole in zip(*parts, gradients(LOSS(model, batch)), strict=True):
        torch.testing.assert_close(sum(both) / 2, whole, atol=1e-6, rtol=1e-4)


def test_new_tensors_are_made_on_the_device_of_the_training():
    """With meta, a device without numbers, in place of a graphics card."""
    pairs, vocabs = toy()
    with torch.device("meta"):
        batch = next(iter(BatchLoader(pairs, *vocabs)))
    assert {column.device.type for column in batch} == {"meta"}


@pytest.mark.slow
@pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()),
    reason="this build of PyTorch can't join processes",
)
def test_one_process_and_two_learn_the_same(tmp_path):
    """Without dropout, the losses of all epochs agree, so the command is unchanged."""
    write_pairs(tmp_path / "pairs.tsv")
    losses = []
    for number in (1, 2):
        words = f"{NEW} --out {number} --num-epochs 3 --dropout 0 --batch-size 19"
        printed, errors = start(tmp_path, words, number).communicate()
        assert printed.count("the best epoch ") == 1, errors  # one speaks for both
        stored = load_checkpoint(tmp_path / f"{number}.last.safetensors").training
        for epoch in stored["history"]:
            losses.append((epoch["train_loss"], epoch["valid_loss"]))
    one, two = torch.tensor(losses).chunk(2)
    torch.testing.assert_close(one, two, rtol=1e-3, atol=0)
