"""Loss, training step, the loop, the running mean, interruption, resumption."""

import math
import shutil

import pytest
import torch
from helpers.training import outcome, random_batch, rewrite, setup, toy, weights
from hypothesis import given
from hypothesis import strategies as st

from utils import attention, training
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.data import BatchLoader
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.text import PAD_ID
from utils.training import batch_loss, evaluate_loss, masked_cross_entropy, train_step


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
    bias = trainer.model.decoder.dense.bias
    if what == "the loss":
        bias.data[5] = math.inf
    else:
        bias.register_hook(lambda grad: grad * math.inf)
    before = weights(trainer.model)
    with pytest.raises(FloatingPointError, match="lower learning rate"):
        trainer.fit(progress=False)
    assert weights(trainer.model) == before and not trainer.optimizer.state
    assert trainer.step == 0 and trainer.losses == []


SCORES, WORDS = torch.randn(1, 2, 3), torch.ones(1, 2, dtype=torch.long)
ERRORS = [
    (lambda: masked_cross_entropy(SCORES, WORDS * PAD_ID), "every target is padding"),
    (lambda: masked_cross_entropy(SCORES, WORDS[:, :1]), r"\(1, 2, 3\) and \(1, 1\)"),
    (lambda: masked_cross_entropy(SCORES, WORDS, 1), "label_smoothing must be"),
    (lambda: masked_cross_entropy(SCORES, WORDS, -0.1), "label_smoothing must be"),
    (lambda: setup(clip=0), "clip must be above 0"),
    (lambda: setup(lr=math.inf), "lr must be above 0 and finite"),
    (lambda: setup(averaging=1), "averaging must be at least 0 and below 1"),
    (lambda: setup(warmup=1.1), "warmup is a share of all steps"),
    (lambda: setup(num_epochs=0), "num_epochs must be a whole number"),
    (lambda: train_step(*toy_step(), clip=0), "clip must be above 0"),
    (lambda: train_step(*toy_step(), clip=-1), "clip must be above 0"),
]


def toy_step():
    trainer, _ = setup()
    return trainer.model, next(iter(trainer.loader)), trainer.optimizer


@pytest.mark.parametrize("call, message", ERRORS)
def test_what_can_not_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    for warmup in (0, 1):  # what is at an edge is taken
        setup(num_epochs=1, warmup=warmup, averaging=0)


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


def test_evaluate_loss_is_the_mean_over_tokens_whatever_the_batches():
    trainer, vocabs = setup(dropout=0.5)
    small = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=3, shuffle=False)
    expected = evaluate_loss(trainer.model, trainer.valid_loader)

    def loss(model, batch):
        loss = batch_loss(model, batch)
        assert not loss.requires_grad
        return loss

    found = evaluate_loss(trainer.model, small, loss)
    assert found == pytest.approx(expected, rel=1e-5)


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
    trainer.valid_loader = None

    def checkpoint(trainer):
        steps.append((trainer.step, len(trainer.history)))
        return len(steps) == 2

    trainer.fit(checkpoint, progress=False)
    assert steps == [(4, 1), (8, 2)]
    trainer.fit(checkpoint, progress=False)  # the next call goes on
    assert steps[2:] == [(12, 3)] and trainer.history[0]["valid_loss"] is None


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


def interrupted_at(trainer, step):
    """Train until Ctrl-C comes in that update."""
    loss_function = trainer.loss_function

    def interrupting(model, batch):
        if trainer.step == step:
            raise KeyboardInterrupt
        return loss_function(model, batch)

    trainer.loss_function = interrupting
    with pytest.raises(KeyboardInterrupt):
        trainer.fit(progress=False)
    trainer.loss_function = loss_function
    return trainer


@pytest.mark.parametrize("averaging", [0.0, 0.9])
@pytest.mark.parametrize("kind", ["attention", "translator"])
def test_resumed_from_a_file_it_reaches_the_same_numbers(kind, averaging, tmp_path):
    """With dropout, and with one matrix that the translator shares."""
    options = {"kind": kind, "dropout": 0.2, "averaging": averaging}
    unbroken = setup(**options)[0].fit(progress=False)
    (broken, vocabs), path = setup(**options), tmp_path / "model.safetensors"

    def store(trainer):
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
    trainer, vocabs = setup()
    interrupted_at(trainer, 6)  # in the second epoch of 4 updates
    assert trainer.step == 6 and len(trainer.history) == 1
    evaluate_loss(trainer.model, trainer.valid_loader)
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    for again in (trainer, setup()[0].resume(path)):
        losses = trainer.losses[:4]
        again.fit(progress=False)
        assert again.step == 12 and len(again.history) == 3
        assert again.losses[:4] == losses


def training_of(**values):
    return lambda header, tensors: header["training"].update(values)


def epoch_of(**values):
    return lambda header, tensors: header["training"]["history"][0].update(values)


def tensor_of(name, change):
    return lambda header, tensors: tensors.update({name: change(tensors[name])})


MOMENT, MEAN = "exp_avg of decoder.dense.bias", "mean of decoder.dense.bias"
DAMAGED = {
    "no training": (lambda h, t: h.update(training=None), "no training to resume"),
    "an older edition's": (training_of(plan={}), "stored by an older edition"),
    "another kind of thing": (lambda h, t: h.update(training=[]), "are damaged"),
    "history of another kind": (training_of(history={}, losses=[]), "are damaged"),
    "an epoch without its loss": (lambda h, t: h["training"]["history"][0].clear(),)
    + ("damaged .*train_loss",),
    "a loss of text": (epoch_of(valid_loss="x"), "'x' in valid_loss"),
    "a list for a loss": (epoch_of(valid_loss=[1]), r"\[1\] in valid_loss"),
    "NaN among losses": (training_of(losses=[1.0, math.nan, 1.0, 1.0]), "nan in loss"),
    "fewer losses than updates": (training_of(losses=[1.0] * 3), "3 losses in 1 ep"),
    "seconds below 0": (epoch_of(seconds=-0.1), "-0.1 in seconds"),
    "no settings": (training_of(settings=None), "are damaged"),
    "no moment": (lambda h, t: t.pop(MOMENT), f"{MOMENT} is missing"),
    "a moment of one number": (tensor_of(MOMENT, lambda x: x[:1] + 0), r"\(1,\)"),
    "a moment that is NaN": (tensor_of(MOMENT, lambda x: x * math.nan), "holds NaN"),
    "a mean of whole numbers": (tensor_of(MEAN, lambda x: x.int()), "is torch.int32"),
    "no random state": (tensor_of("random state", lambda x: x * 0), "resumed: "),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A checkpoint in the middle of a training with a running mean."""
    path = tmp_path_factory.mktemp("good") / "model.safetensors"
    trainer, vocabs = setup(averaging=0.9)
    trainer.fit(lambda trainer: True, progress=False)
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    return path


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
    assert outcome(trainer) == before and not trainer.optimizer.state


@pytest.mark.parametrize(
    "options, words",
    [
        ({"hiddens": 17}, "num_hiddens was 16 and is 17"),
        ({"dropout": 0.1}, "dropout was 0.0 and is 0.1"),
        ({"kind": "translator"}, "kind was attention and is translator"),
        ({"batch_size": 8}, "batches was 4 and is 8"),
        ({"clip": 2.0}, "clip was 1.0 and is 2.0"),
        ({"warmup": 0.5}, "warmup was 0.05 and is 0.5"),
        ({"averaging": 0.5}, "averaging was 0.9 and is 0.5"),
    ],
)
def test_another_training_is_refused_by_its_difference(good, options, words):
    with pytest.raises(ValueError, match=words):
        setup(**{"averaging": 0.9, **options})[0].resume(good)
