"""utils.by_hand: the same losses and gradients as the plain way, to rounding."""

from functools import partial

import pytest
import torch
from helpers.training import random_batch, setup, weights
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from utils import attention, by_hand, seq2seq, training
from utils.models import KINDS, build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.text import PAD_ID
from utils.training import batch_loss

TRANSLATORS = ["", "fixed ", "released "]
COMPUTED = ["attention", "fixed", *(f"{way}translator" for way in TRANSLATORS)]


def build(kind, dropout=0.0, bidirectional=True, enc_hiddens=10):
    """A small model; H = 6, so enc_hiddens 6 needs no map between the states."""
    torch.manual_seed(0)
    if "translator" in kind:
        return build_model(kind, 11, 13, 3, 6, enc_hiddens, dropout)
    ways = {"bidirectional": bidirectional, "enc_hiddens": enc_hiddens}
    return build_model(kind, 11, 13, 3, 6, **ways)


def found(loss, model, batch, label_smoothing=0.0):
    """The loss and all gradients."""
    model.zero_grad()
    value = loss(model, batch, label_smoothing)
    value.backward()
    return [value.detach(), *(p.grad.clone() for p in model.parameters())]


def assert_same(model, batch, label_smoothing=0.0, **tolerance):
    plain = found(batch_loss, model, batch, label_smoothing)
    by_hand_ = found(by_hand.loss, model, batch, label_smoothing)
    torch.testing.assert_close(by_hand_, plain, **tolerance)


@given(
    kind=st.sampled_from(COMPUTED),
    bidirectional=st.booleans(),
    enc_hiddens=st.sampled_from([6, 10]),
    label_smoothing=st.sampled_from([0.0, 0.1, 0.7]),
    sizes=st.tuples(st.integers(1, 5), st.integers(1, 7), st.integers(1, 7)),
    double=st.booleans(),
    holes=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_loss_and_gradients_are_those_of_the_plain_way(
    kind, bidirectional, enc_hiddens, label_smoothing, sizes, double, holes, seed
):
    model = build(kind, 0.0, bidirectional, enc_hiddens)
    batch = random_batch(seed, *sizes)
    if holes:  # padding between words, targets without a word, more padding
        batch.target_out[1:, ::2] = PAD_ID
        ids = ("source", "target_in", "target_out")
        batch = batch._replace(**{x: F.pad(getattr(batch, x), (0, 2)) for x in ids})
    if double:
        tolerance = {"atol": 1e-12, "rtol": 1e-9}
        assert_same(model.double(), batch, label_smoothing, **tolerance)
    else:
        assert_same(model, batch, label_smoothing, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["attention", "translator"])
def test_a_large_vocabulary_is_taken_in_pieces_and_gives_the_same(
    kind, label_smoothing
):
    torch.manual_seed(0)
    options = {"enc_hiddens": 16, "dropout": 0.0}
    model = build_model(kind, 50, 2500, 8, 16, **options)
    batch = random_batch(0, B=100, S=9, T=12, V=50)
    assert (batch.target_out != PAD_ID).sum() > 512  # more than one piece
    assert_same(model, batch, label_smoothing, atol=1e-6, rtol=1e-4)


@pytest.mark.parametrize("kind", COMPUTED[2:])
def test_dropout_acts_in_training_where_the_plain_way_has_it(kind, monkeypatch):
    """Seen with a dropout without chance: it scales every number."""
    model, batch = build(kind, dropout=0.4).double(), random_batch(9)
    assert len({by_hand.loss(model, batch).item() for _ in range(5)}) == 5
    model.eval()
    without = batch_loss(model, batch)
    for _ in range(2):
        torch.testing.assert_close(by_hand.loss(model, batch), without)

    def scaled(x, p, training, inplace=False):
        return x * (1 - p) if training else x

    monkeypatch.setattr(F, "dropout", scaled)
    loss = batch_loss(model.train(), batch)
    assert (loss - without).abs() > 1e-4
    torch.testing.assert_close(by_hand.loss(model, batch), loss)


def test_twenty_steps_of_training_are_the_same():
    losses = []
    for loss_function in (batch_loss, by_hand.loss):
        trainer, vocabs = setup(num_epochs=5)
        torch.manual_seed(0)
        model = build_model("attention", *map(len, vocabs), 8, 16, bidirectional=True)
        trainer = training.Trainer(
            model, trainer.loader, 5, lr=1e-2, loss_function=loss_function
        )
        losses.append(trainer.fit(progress=False).losses)
    assert len(losses[0]) == 20
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


# --- the gradients themselves -----------------------------------------------------


def gru_arguments():
    torch.manual_seed(1)
    T, N, B, H = 4, 2, 3, 5
    shapes = [(T, N, B, 3 * H), (N, B, H), (N, 3 * H, H), (N, 3 * H)]
    return [torch.randn(s, dtype=torch.double, requires_grad=True) for s in shapes]


def attention_arguments():
    torch.manual_seed(2)
    counts, lens = [3, 3, 2, 1], torch.tensor([5, 1, 3])
    P, B, S, H, D = sum(counts), 3, 5, 2, 6
    before = [(P, 3 * H), (B, H), (B, S, H), (B, S, D)]
    after = [(3 * H, D), (4 * H, H), (4 * H,), (H,)]
    before, after = (
        [torch.randn(s, dtype=torch.double, requires_grad=True) for s in shapes]
        for shapes in (before, after)
    )
    mask = torch.zeros(B, S, dtype=torch.double)
    mask[torch.arange(S) >= lens[:, None]] = -torch.inf
    return [*before, mask, *after, counts]


@pytest.mark.parametrize(
    "function, arguments",
    [
        (by_hand.GRUSteps, gru_arguments),
        (by_hand.AttentionSteps, attention_arguments),
    ],
)
def test_the_backward_pass_is_right_to_finite_differences(function, arguments):
    assert torch.autograd.gradcheck(function.apply, arguments())


# --- what it doesn't compute is refused ------------------------------------------


class Own(Seq2SeqAttentionDecoder):
    """A learner's decoder."""


def small(**options):
    return build_model("attention", 11, 13, 3, 6, **options)


def changed(path, part):
    """A small model with another part."""
    model = small()
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, part)
    return model


OTHERS = {  # the kind: its first part that isn't computed
    "luong": "LuongDecoder",
    "context output": "ContextOutputDecoder",
    "bottom query": "BottomQueryDecoder",
    "hierarchical": "HierarchicalDecoder",
    "window": "WindowDecoder",
    "local": "LocalDecoder",
    "coverage": "CoverageDecoder",
    "rnnsearch": "RNNsearchDecoder",
    "transformer": "TransformerEncoder",
}
REFUSED = {
    "another score": (lambda: small(score="dot"), "DotProductAttention"),
    "two layers": (lambda: small(num_layers=2), "GRU of 2 layers"),
    "dropout of weights": (lambda: small(dropout=0.1), "attention with dropout"),
    "a subclass": (lambda: changed("decoder", Own(13, 3, 6)), "Own"),
    "an LSTM": (lambda: changed("encoder.rnn", nn.LSTM(3, 6)), "LSTM"),
    "an RNN": (lambda: changed("decoder.rnn", nn.RNN(9, 6)), "RNN"),
    "another encoder": (lambda: changed("encoder", nn.Sequential()), "Sequential"),
    **{
        kind: (
            partial(build_model, kind, 11, 13, 4, 6 - 4 * (kind == "transformer")),
            x,
        )
        for kind, x in OTHERS.items()
    },
}


def test_every_other_kind_is_among_the_refused():
    assert KINDS.keys() == {*COMPUTED, *OTHERS}


@pytest.mark.parametrize("name", REFUSED)
def test_another_model_is_refused_in_words(name):
    make, words = REFUSED[name]
    with pytest.raises(ValueError, match=f"doesn't compute .*{words}.*batch_loss"):
        by_hand.loss(make(), random_batch(5))


def test_dropout_of_weights_is_refused_in_training_even_after_evaluation():
    model, batch = small(dropout=0.1).eval(), random_batch(5)
    torch.testing.assert_close(by_hand.loss(model, batch), batch_loss(model, batch))
    with pytest.raises(ValueError, match="attention with dropout"):
        by_hand.loss(model.train(), batch)


def test_bad_input_is_refused_in_words():
    model, batch = small(), random_batch(6)
    by_hand.loss(model, batch)
    for change, words in (
        ({"target_out": batch.target_out * 0}, "every target is padding"),
        ({"target_in": batch.target_in + 9}, "the vocabulary has ids 0 to 12"),
        ({"source": batch.source + 9}, "the vocabulary has ids 0 to 10"),
        ({"source_lens": batch.source_lens + 1}, "valid_lens must lie between 1"),
    ):
        with pytest.raises(ValueError, match=words):
            by_hand.loss(model, batch._replace(**change))
    with pytest.raises(ValueError, match="label_smoothing must be"):
        by_hand.loss(model, batch, 2.0)


# --- the comparison on the first batch -------------------------------------------


def doubled(function):
    return lambda *arguments, **options: 2 * function(*arguments, **options)


PATCHES = {
    "the score": (attention.AdditiveAttention, "score"),
    "the query": (Seq2SeqAttentionDecoder, "query"),
    "what dense reads": (Seq2SeqAttentionDecoder, "output"),
    "the softmax": (attention, "masked_softmax"),
    "the loss": (training, "masked_cross_entropy"),
}


@pytest.mark.parametrize("what", PATCHES)
def test_a_patch_is_noticed_and_nothing_trained(what, monkeypatch):
    owner, name = PATCHES[what]
    monkeypatch.setattr(owner, name, doubled(getattr(owner, name)))
    model = small()
    before, adam = weights(model), torch.optim.Adam(model.parameters())
    for _ in range(2):  # not on the first batch alone
        with pytest.raises(RuntimeError, match="by hand differs .*batch_loss"):
            training.train_step(model, random_batch(5), adam, 1.0, by_hand.loss)
    assert weights(model) == before and not adam.state


def other_step(x, state, step):
    output, weights, state = step(x, state)
    return output, weights, state._replace(hidden_state=-state.hidden_state)


def no_query(attention, query, keys):
    return attention.w_v(torch.tanh(keys)).mT  # so W_q has no gradient


def hook(path, change):
    """Changes a model so that a part of it gives something else."""
    return lambda model: model.get_submodule(path).register_forward_hook(
        lambda part, given, out: change(out)
    )


CHANGES = {
    "step": lambda m: setattr(
        m.decoder, "step", partial(other_step, step=m.decoder.step)
    ),
    "a part without use": lambda m: setattr(
        m.decoder.attention, "score", partial(no_query, m.decoder.attention)
    ),
    "bias": lambda m: setattr(m.decoder.attention, "W_q", nn.Linear(6, 6)),
    "decoder's hook": hook("decoder", lambda out: (2 * out[0], out[1])),
    "encoder's hook": hook("encoder.rnn", lambda out: (out[0], 0 * out[1])),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_changed_on_the_model_is_noticed(what):
    model = small()
    CHANGES[what](model)
    with pytest.raises(RuntimeError, match="by hand differs"):
        by_hand.loss(model, random_batch(5))


@pytest.mark.parametrize("kind", COMPUTED)
def test_the_comparison_leaves_no_trace(kind):
    model, batch = build(kind, dropout=0.4), random_batch(5)
    model.train()
    model.encoder.eval()  # such as a part that isn't to be trained any more
    model.decoder.embedding.register_forward_hook(lambda *_: print(torch.rand(1)))
    modes = [part.training for part in model.modules()]
    next(model.parameters()).requires_grad_(False)
    last = [*model.parameters()][-1]
    last.grad = torch.ones_like(last)
    torch.manual_seed(7)
    first = by_hand.loss(model, batch)
    assert [part.training for part in model.modules()] == modes
    assert last.grad.eq(1).all()
    assert all(p.grad is None for p in [*model.parameters()][:-1])
    torch.manual_seed(7)
    assert torch.equal(by_hand.loss(model, batch), first)  # this time not compared


def test_parts_that_it_calls_may_be_changed(monkeypatch):
    """What is done once a sentence is the model's own here, too."""
    for owner, name in (
        (attention.AdditiveAttention, "project_keys"),
        (seq2seq.Bridge, "forward"),
    ):
        monkeypatch.setattr(owner, name, doubled(getattr(owner, name)))
    assert_same(build("attention"), random_batch(5), atol=1e-5, rtol=1e-4)


def test_it_works_where_no_gradient_is_asked():
    model, batch = small(), random_batch(5)
    with torch.no_grad():
        loss = by_hand.loss(model, batch)
        assert not loss.requires_grad
        torch.testing.assert_close(loss, batch_loss(model, batch))


def test_a_loss_that_is_a_hundredth_off_is_noticed(monkeypatch):
    batch = random_batch(3, 2, 3, 4)
    for share, agrees in ((1.00001, True), (1.01, False)):
        monkeypatch.setattr(
            by_hand, "batch_loss", lambda *args, share=share: share * batch_loss(*args)
        )
        if agrees:
            by_hand.loss(build("attention"), batch)
        else:
            with pytest.raises(RuntimeError, match="the loss by hand differs"):
                by_hand.loss(build("attention"), batch)
