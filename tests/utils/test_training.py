"""Loss, training step, the loop, the running mean, interruption, resumption."""

import copy
import math
import shutil

import pytest
import torch
from helpers import refusals
from helpers.training import outcome, random_batch, rewrite, setup, toy, weights
from hypothesis import given
from hypothesis import strategies as st

from utils import attention, training
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.data import Batch
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.text import PAD_ID
from utils.training import batch_loss, evaluate_loss, masked_cross_entropy, train_step

sizes = st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(2, 7))


@given(sizes, st.sampled_from([0.0, 0.1, 0.9]), st.integers(0, 10**6))
def test_masked_cross_entropy_equals_the_loop(sizes, smoothing, seed):
    torch.manual_seed(seed)
    B, T, V = sizes
    scores = torch.randn(B, T, V, dtype=torch.double, requires_grad=True)
    targets = torch.randint(0, V, (B, T))
    targets[0, 0] = 1
    losses = []
    for row, target in zip(scores.view(-1, V).tolist(), targets.view(-1), strict=True):
        if target != PAD_ID:
            log_sum = math.log(sum(math.exp(x) for x in row))
            shares = [smoothing / V] * V
            shares[target] += 1 - smoothing
            losses.append(sum(p * (log_sum - row[v]) for v, p in enumerate(shares)))
    loss = masked_cross_entropy(scores, targets, smoothing)
    assert loss.item() == pytest.approx(sum(losses) / len(losses))
    loss.backward()
    assert (scores.grad[targets == PAD_ID] == 0).all()


def test_the_loss_of_a_batch_is_that_of_all_scores():
    model, batch = build_model("attention", 11, 13, 3, 6), random_batch(0)
    scores, _ = model(batch.source, batch.target_in, batch.source_lens)
    for smoothing in (0.0, 0.1):
        expected = masked_cross_entropy(scores, batch.target_out, smoothing)
        torch.testing.assert_close(batch_loss(model, batch, smoothing), expected)


@pytest.mark.parametrize("warmup, clip, averaging", [(0, 1e6, 0), (1, 0.4, 0.5)])
def test_training_is_this_loop(warmup, clip, averaging):
    """Rate, clip, Adam, running mean and figures of 5 epochs of 4 updates."""
    ways = {"warmup": warmup, "clip": clip, "averaging": averaging}
    trainer, vocabs = setup(5, dropout=0.2, **ways)
    pairs, valid = toy()[0], Batch.from_pairs(toy(20, seed=9)[0], *vocabs)
    model, averaged = copy.deepcopy(trainer.model), copy.deepcopy(trainer.model)
    adam, losses, norms = torch.optim.Adam(model.parameters()), [], []
    torch.manual_seed(1)
    trainer.fit(progress=False)
    torch.manual_seed(1)
    for epoch, entry in enumerate(trainer.history):
        for batch in trainer.loader.epoch(epoch):
            n = len(losses)
            rate = 1e-2 * min((n + 1) / max(1, 20 * warmup), (20 - n) / 20)
            adam.param_groups[0]["lr"] = rate
            adam.zero_grad()
            loss = batch_loss(model.train(), batch)
            loss.backward()
            grads = [p.grad.flatten() for p in model.parameters()]
            norms.append(torch.cat(grads).norm().item())
            for p in model.parameters():
                p.grad *= min(1, clip / norms[-1])
            adam.step()
            keep = min(averaging, (1 + n) / (10 + n)) if n else 0
            for mean, p in zip(averaged.parameters(), model.parameters(), strict=True):
                mean.data = keep * mean.data + (1 - keep) * p.data
            losses.append(loss.item())
        expected = {
            "train_loss": sum(losses[-4:]) / 4,
            "valid_loss": batch_loss(averaged.eval(), valid).item(),
            "seconds": entry["seconds"],
            "tokens": sum(len(pair.target) + 1 for pair in pairs),
        }
        assert entry == pytest.approx(expected, rel=1e-4)
    assert trainer.losses == pytest.approx(losses, rel=1e-4) and losses[-1] < losses[0]
    for own, right in ((trainer.model, model), (trainer.averaged, averaged)):
        both = own.state_dict(), right.state_dict()
        torch.testing.assert_close(*both, rtol=1e-3, atol=1e-4)
    assert clip > 1 or min(norms) < clip < max(norms)
    assert (trainer.averaged is trainer.model) == (not averaging)


def test_validation_keeps_nothing_for_a_gradient():
    def loss(model, batch):
        assert not batch_loss(model, batch).requires_grad
        return batch_loss(model, batch)

    trainer = setup()[0]
    evaluate_loss(trainer.model, trainer.valid_loader, loss)


def test_what_is_edited_is_what_trains(monkeypatch):
    plain = setup(1)[0].fit(progress=False).losses
    for owner, name in (
        (attention.AdditiveAttention, "score"),
        (Seq2SeqAttentionDecoder, "query"),
        (training, "masked_cross_entropy"),
    ):
        with monkeypatch.context() as patch:
            own = getattr(owner, name)
            patch.setattr(owner, name, lambda *given, own=own: 3 * own(*given))
            edited = setup(1)[0].fit(progress=False).losses
        assert all(a != b for a, b in zip(edited[1:], plain[1:], strict=True))


def has_stepped(trainer):
    return any(
        x.any() for adam in trainer.optimizer.state.values() for x in adam.values()
    )


def test_a_gradient_that_is_not_finite_stops_training_and_spares_the_model():
    trainer, _ = setup()
    trainer.model.decoder.dense.bias.register_hook(lambda grad: grad * math.inf)
    before = weights(trainer.model)
    with pytest.raises(FloatingPointError, match="lower learning rate"):
        trainer.fit(progress=False)
    assert weights(trainer.model) == before and not has_stepped(trainer)
    assert trainer.losses == []


SCORES, WORDS = torch.randn(1, 2, 3), torch.ones(1, 2, dtype=torch.long)


test_what_can_not_be_is_refused = refusals(
    (lambda: masked_cross_entropy(SCORES, WORDS * PAD_ID), "target is padding"),
    (lambda: masked_cross_entropy(SCORES, WORDS[:, :1]), r"\(1, 2, 3\) and \(1, 1"),
    (lambda: masked_cross_entropy(SCORES, WORDS, 1), "label_smoothing must be"),
    (lambda: train_step(None, None, None, clip=0), "clip must be above 0"),
    (lambda: setup(clip=0), "clip must be above 0"),
    (lambda: setup(lr=math.inf), "lr must be above 0 and finite"),
    (lambda: setup(averaging=1), "averaging must be at least 0 and below 1"),
    (lambda: setup(warmup=1.1), "warmup is a share of all steps"),
    (lambda: setup(num_epochs=0), "num_epochs must be a whole number"),
)


# --- interrupted, and resumed from a file -----------------------------------------


@pytest.mark.parametrize("kind, averaging", [("attention", 0.0), ("translator", 0.9)])
def test_resumed_from_a_file_it_reaches_the_same_numbers(kind, averaging, tmp_path):
    """With dropout, and with one matrix that the translator shares."""
    options = {"kind": kind, "dropout": 0.2, "averaging": averaging}
    unbroken = setup(**options)[0].fit(progress=False)
    (broken, vocabs), path = setup(**options), tmp_path / "model.safetensors"

    def store(trainer):  # after each epoch; True ends the training
        save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
        return len(trainer.history) == 2

    broken.fit(store, progress=False)
    fresh, _ = setup(**options)
    torch.manual_seed(123)  # a new process has another random state
    fresh.resume(path)
    assert fresh.seconds == broken.seconds > 0 and len(fresh.history) == 2
    assert outcome(fresh.fit(progress=False)) == outcome(unbroken)
    longer = setup(num_epochs=4, lr=1e-3, **options)[0].resume(path)
    assert len(longer.fit(progress=False).history) == 4


def test_an_interrupt_costs_the_epoch_that_it_breaks(tmp_path):
    def interrupting(model, batch):
        if trainer.step == 6:  # in the second epoch of 4 updates
            raise KeyboardInterrupt
        return batch_loss(model, batch)

    trainer, vocabs = setup(loss_function=interrupting)
    trainer.valid_loader = None
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(progress=False)
    trainer.loss_function, path = batch_loss, tmp_path / "model.safetensors"
    assert trainer.step == 6 and trainer.history[0]["valid_loss"] is None
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    for again in (trainer, setup()[0].resume(path)):
        losses = trainer.losses[:4]
        again.fit(progress=False)
        assert again.step == 12 and len(again.history) == 3
        assert again.losses[:4] == losses


MOMENT = "exp_avg of decoder.dense.bias"
DAMAGED = {
    "no training": (lambda h, t: h.update(training=None), "no training to resume"),
    "no moment": (lambda h, t: t.pop(MOMENT), f"{MOMENT} is missing"),
    "no random state": (lambda h, t: t["random state"].zero_(), "resumed: "),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_training_that_is_damaged_is_refused(good, tmp_path, what):
    change, words = DAMAGED[what]
    path = shutil.copy(good, tmp_path / "copy.safetensors")
    rewrite(path, change)
    load_checkpoint(path)  # its model can be used
    trainer, _ = setup(averaging=0.9)
    before = outcome(trainer)
    with pytest.raises(ValueError, match=f"copy.safetensors can't .*{words}"):
        trainer.resume(path)
    assert outcome(trainer) == before and not has_stepped(trainer)


def test_another_training_is_refused_by_its_differences(good):
    other = {"kind": "translator", "dropout": 0.1, "hiddens": 17, "batch_size": 8}
    trainer, _ = setup(**other, clip=2.0, warmup=0.5)
    with pytest.raises(ValueError, match="it was another training: ") as error:
        trainer.resume(good)
    words = """kind was attention and is translator; dropout was 0.0 and is 0.1;
        num_hiddens was 16 and is 17; batches was 4 and is 8; clip was 1.0 and is 2.0;
        warmup was 0.05 and is 0.5; averaging was 0.9 and is 0.0"""
    for difference in words.split(";"):
        assert difference.strip() in str(error.value)
