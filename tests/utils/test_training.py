"""Loss, training step, the loop, the running mean, interruption, resumption."""

import math
import signal
import threading

import pytest
import torch
from helpers.training import (
    outcome,
    random_batch,
    setup,
    setup_translator,
    stop_before,
    toy,
    weights,
)
from hypothesis import given
from hypothesis import strategies as st

from utils import attention, training
from utils.checkpoint import save_checkpoint
from utils.data import BatchLoader
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.text import PAD_ID
from utils.training import (
    batch_loss,
    evaluate_loss,
    masked_cross_entropy,
    train_step,
)


@given(
    st.integers(1, 4),
    st.integers(1, 5),
    st.integers(2, 7),
    st.sampled_from([0.0, 0.1, 0.9]),
    st.integers(0, 10**6),
)
def test_masked_cross_entropy_equals_the_loop(B, T, V, smoothing, seed):
    torch.manual_seed(seed)
    scores = torch.randn(B, T, V, dtype=torch.double, requires_grad=True)
    targets = torch.randint(0, V, (B, T))
    targets[0, 0] = 1
    losses = []
    for b in range(B):
        for t in range(T):
            if targets[b, t] != PAD_ID:
                row = scores[b, t].tolist()
                log_sum = math.log(sum(math.exp(x) for x in row))
                shares = [smoothing / V] * V
                shares[targets[b, t]] += 1 - smoothing
                losses.append(
                    sum(p * (log_sum - x) for p, x in zip(shares, row, strict=True))
                )
    loss = masked_cross_entropy(scores, targets, smoothing)
    assert loss.item() == pytest.approx(sum(losses) / len(losses))
    loss.backward()
    assert (scores.grad[targets == PAD_ID] == 0).all()


def test_loss_errors():
    scores, words = torch.randn(1, 2, 3), torch.ones(1, 2, dtype=torch.long)
    with pytest.raises(ValueError, match="every target is padding"):
        masked_cross_entropy(scores, words * PAD_ID)
    with pytest.raises(ValueError, match=r"\(1, 2, 3\) and \(1, 3\)"):
        masked_cross_entropy(scores, torch.ones(1, 3, dtype=torch.long))
    for smoothing in (-0.1, 1, 2, math.nan):
        with pytest.raises(ValueError, match="label_smoothing must be"):
            masked_cross_entropy(scores, words, smoothing)


def test_the_loss_of_a_batch_is_that_of_all_scores():
    model, batch = build_model("attention", 11, 13, 3, 6), random_batch(0)
    scores, _ = model(batch.source, batch.target_in, batch.source_lens)
    for smoothing in (0.0, 0.1):
        torch.testing.assert_close(
            batch_loss(model, batch, smoothing),
            masked_cross_entropy(scores, batch.target_out, smoothing),
        )


@pytest.mark.parametrize(
    "owner, name",
    [
        (attention.AdditiveAttention, "score"),
        (Seq2SeqAttentionDecoder, "query"),
        (Seq2SeqAttentionDecoder, "output"),
        (training, "masked_cross_entropy"),
    ],
)
def test_what_is_edited_is_what_trains(owner, name, monkeypatch):
    plain = setup(num_epochs=1)[0].fit(progress=False).losses
    own = getattr(owner, name)
    monkeypatch.setattr(owner, name, lambda *arguments: 3 * own(*arguments))
    edited = setup(num_epochs=1)[0].fit(progress=False).losses
    assert all(a != b for a, b in zip(edited[1:], plain[1:], strict=True))


# --- one step, and the loop -------------------------------------------------------


@pytest.mark.parametrize("clip", [0.01, 1e6])
def test_a_large_gradient_is_scaled_down_to_the_clip_and_a_small_one_left(clip):
    trainer, _ = setup()
    model, batch = trainer.model.train(), next(iter(trainer.loader))
    parameters = [*model.parameters()]
    loss = batch_loss(model, batch)
    grads = torch.autograd.grad(loss, parameters)
    norm = math.sqrt(sum(g.square().sum() for g in grads))
    before = [p.detach().clone() for p in parameters]
    step = train_step(model, batch, torch.optim.SGD(parameters, 0.5), clip)
    assert step == pytest.approx(loss.item())
    for old, new, grad in zip(before, parameters, grads, strict=True):
        expected = old - 0.5 * grad * min(1, clip / norm)
        torch.testing.assert_close(new.detach(), expected)


@pytest.mark.parametrize("what", ["the loss", "the gradient alone"])
def test_a_loss_that_is_not_finite_stops_training_and_spares_the_model(what):
    trainer, _ = setup()
    if what == "the loss":
        with torch.no_grad():
            trainer.model.decoder.dense.bias[5] = float("inf")
    else:
        bias = trainer.model.decoder.dense.bias
        bias.register_hook(lambda grad: grad * math.inf)
    before = weights(trainer.model)
    with pytest.raises(FloatingPointError, match="lower learning rate"):
        trainer.fit(progress=False)
    assert weights(trainer.model) == before and not trainer.optimizer.state
    assert trainer.step == 0 and trainer.losses == []


@pytest.mark.parametrize(
    "settings",
    [
        *({"clip": value} for value in (0, -1, math.nan, math.inf)),
        *({"averaging": value} for value in (-0.1, 1, 2, math.nan)),
        *({"warmup": value} for value in (-0.1, 1.1, math.nan)),
        *({"lr": value} for value in (0, -1, math.nan, math.inf)),
        *({"num_epochs": value} for value in (0, -1, 1.5, True)),
    ],
)
def test_settings_that_cannot_be_are_refused(settings):
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name} (must be|is a share)"):
        setup(**settings)


@pytest.mark.parametrize("clip", [0, -1, math.nan])
def test_a_clip_that_cannot_be_is_refused_in_a_step(clip):
    trainer, _ = setup()
    with pytest.raises(ValueError, match="clip must be above 0"):
        train_step(trainer.model, next(iter(trainer.loader)), trainer.optimizer, clip)


def test_training_learns_and_counts():
    trainer, _ = setup(num_epochs=30)
    trainer.fit(progress=False)
    first, last = trainer.history[0], trainer.history[-1]
    assert last["train_loss"] < 0.6 * first["train_loss"]
    assert last["valid_loss"] < 0.7 * first["valid_loss"]
    assert last["train_loss"] == pytest.approx(sum(trainer.losses[-4:]) / 4)
    assert len(trainer.losses) == 30 * len(trainer.loader) == trainer.step == 120
    words = sum(len(pair.target) + 1 for pair in toy()[0])
    assert all(epoch["tokens"] == words for epoch in trainer.history)
    seconds = sum(epoch["seconds"] for epoch in trainer.history)
    assert trainer.seconds == pytest.approx(seconds) and seconds > 0


def test_without_a_valid_loader_there_is_no_validation():
    trainer, _ = setup(num_epochs=1)
    trainer.valid_loader = None
    assert trainer.fit().history[0]["valid_loss"] is None


def test_evaluate_loss_is_the_mean_over_tokens_whatever_the_batches():
    trainer, vocabs = setup(dropout=0.5)
    small = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=3, shuffle=False)
    expected = evaluate_loss(trainer.model, trainer.valid_loader)
    assert evaluate_loss(trainer.model, small) == pytest.approx(expected, rel=1e-5)


def test_the_learning_rate_rises_then_falls(monkeypatch):
    rates, trainer = [], setup(num_epochs=10, warmup=0.25)[0]
    step = trainer.optimizer.step

    def noted():
        rates.append(trainer.optimizer.param_groups[0]["lr"])
        step()

    monkeypatch.setattr(trainer.optimizer, "step", noted)
    trainer.fit(progress=False)  # 40 steps: 10 up, 30 down
    assert len(rates) == 40 and [trainer.learning_rate(i) for i in range(40)] == rates
    for number, expected in ((0, 1e-3), (4, 5e-3), (20, 5e-3), (39, 1e-2 / 40)):
        assert rates[number] == pytest.approx(expected)
    assert max(rates) == rates[7] == pytest.approx(8e-3)  # where the lines cross


def test_the_checkpoint_function_is_called_after_each_epoch_and_may_end_it():
    trainer, steps = setup()[0], []

    def checkpoint(trainer):
        steps.append((trainer.step, len(trainer.history)))
        return len(steps) == 2

    trainer.fit(checkpoint, progress=False)
    assert steps == [(4, 1), (8, 2)]
    trainer.fit(checkpoint, progress=False)  # the next call goes on
    assert steps[2:] == [(12, 3)]


def test_the_loss_function_is_the_one_trained_but_not_the_one_validated():
    doubled, _ = setup(loss_function=lambda model, batch: 2 * batch_loss(model, batch))
    plain, _ = setup()
    for trainer in (doubled, plain):
        trainer.fit(lambda t: True, progress=False)
    assert doubled.losses[0] == pytest.approx(2 * plain.losses[0])
    assert doubled.history[0]["valid_loss"] < 1.5 * plain.history[0]["valid_loss"]


def test_training_works_outside_of_the_main_thread():
    trainer, expected = setup()[0], setup()[0].fit(progress=False)
    thread = threading.Thread(target=trainer.fit, kwargs={"progress": False})
    thread.start()
    thread.join()
    assert outcome(trainer) == outcome(expected)


# --- the running mean of the parameters -------------------------------------------


def test_averaging_is_the_running_mean_by_a_plain_loop():
    keep, values = 0.5, []

    def noting(model, batch):  # called before each update, with the one before's values
        values.append([p.detach().clone() for p in model.parameters()])
        return batch_loss(model, batch)

    trainer, _ = setup(averaging=keep, loss_function=noting)
    trainer.fit(progress=False)
    values = [*values[1:], [p.detach() for p in trainer.model.parameters()]]
    assert len(values) == 12
    shares = [min(keep, (1 + n) / (10 + n)) for n in range(12)]
    assert shares[1] < keep == shares[-1]  # both sides of the min are in use
    for i, found in enumerate(trainer.averaged.parameters()):
        mean = values[0][i].double()
        for share, value in zip(shares[1:], values[1:], strict=True):
            mean = share * mean + (1 - share) * value[i]
        torch.testing.assert_close(found.double(), mean, atol=1e-6, rtol=1e-5)
    assert weights(trainer.averaged) != weights(trainer.model)


def test_the_averaged_model_is_the_one_validated():
    trainer = setup(averaging=0.9)[0].fit(progress=False)
    averaged, last = (
        evaluate_loss(model, trainer.valid_loader)
        for model in (trainer.averaged, trainer.model)
    )
    assert trainer.history[-1]["valid_loss"] == averaged != last
    without = setup()[0]
    assert without.averaged is without.model


# --- interrupted, and resumed from a file -----------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: setup(dropout=0.2),
        lambda: setup(dropout=0.2, averaging=0.9),
        setup_translator,
        lambda: setup_translator("fixed translator"),
    ],
)
def test_resumed_from_a_file_it_reaches_the_same_numbers(make, tmp_path):
    """With dropout; the translators' words are cut anew in each epoch."""
    unbroken = make()[0].fit(progress=False)
    (broken, vocabs), path = make(), tmp_path / "half.safetensors"
    stop_before(broken, 6)  # in the second epoch
    with pytest.raises(KeyboardInterrupt):
        broken.fit(progress=False)
    save_checkpoint(path, broken.model, *vocabs, trainer=broken)
    fresh, _ = make()
    torch.manual_seed(123)  # a new process has another random state
    fresh.resume(path)
    assert fresh.seconds == broken.seconds > 0
    assert outcome(fresh.fit(progress=False)) == outcome(unbroken)
    dense = fresh.averaged.decoder.dense
    if hasattr(dense, "out"):
        assert dense.out.weight is fresh.averaged.decoder.embedding.weight


# --- Edges ------------------------------------------------------------------------


def test_the_last_values_that_are_taken():
    for settings in ({"warmup": 0}, {"warmup": 1}, {"averaging": 0}, {"num_epochs": 1}):
        setup(**settings)
    with pytest.raises(ValueError, match="label_smoothing"):
        masked_cross_entropy(torch.zeros(1, 1, 5), torch.ones(1, 1).long(), 1)


def test_validation_makes_no_graph():
    trainer, _ = setup()
    seen = []

    def loss(model, batch):
        seen.append(batch_loss(model, batch))
        return seen[-1]

    evaluate_loss(trainer.model, trainer.valid_loader, loss)
    assert seen and not any(value.requires_grad for value in seen)


def test_an_interrupt_that_was_held_comes_after_the_block():
    done = []
    with pytest.raises(KeyboardInterrupt), training.interrupt_held():
        signal.raise_signal(signal.SIGINT)
        done.append("the update")
    assert done == ["the update"]
