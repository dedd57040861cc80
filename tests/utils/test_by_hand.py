"""utils.by_hand: the same losses and gradients as the plain way, to rounding."""

import pytest
import torch
from helpers.training import random_batch, weights
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional as F

from utils import by_hand, training
from utils.attention import DotProductAttention
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.text import PAD_ID
from utils.training import batch_loss

COMPUTED = ["attention", "translator", "released translator"]


def build(kind="attention", **options):
    """A small model; H = 6, so enc_hiddens 6 needs no map between the states."""
    torch.manual_seed(0)
    return build_model(kind, 11, 13, 3, 6, **options)


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
    options = {} if "translator" in kind else {"bidirectional": bidirectional}
    model = build(kind, dropout=0.0, enc_hiddens=enc_hiddens, **options)
    batch = random_batch(seed, *sizes)
    if holes:  # padding between words, targets without a word, more padding
        batch.target_out[1:, ::2] = PAD_ID
        ids = ("source", "target_in", "target_out")
        batch = batch._replace(**{x: F.pad(getattr(batch, x), (0, 2)) for x in ids})
    model = model.double() if double else model
    atol, rtol = (1e-12, 1e-9) if double else (1e-5, 1e-4)
    both = []
    for way in (by_hand.loss, batch_loss):
        value = way(model, batch, label_smoothing)
        gradients = torch.autograd.grad(value, list(model.parameters()))
        both.append([value.detach(), *gradients])
    torch.testing.assert_close(*both, atol=atol, rtol=rtol)


@pytest.mark.parametrize("kind", COMPUTED[1:])
def test_dropout_acts_in_training_where_the_plain_way_has_it(kind, monkeypatch):
    """Seen with a dropout without chance: it scales every number."""
    model, batch = build(kind, enc_hiddens=10, dropout=0.4).double(), random_batch(9)
    assert by_hand.loss(model, batch) != by_hand.loss(model, batch)
    without = batch_loss(model.eval(), batch)
    torch.testing.assert_close(by_hand.loss(model, batch), without)

    def scaled(x, p, training, inplace=False):
        return x * (1 - p) if training else x

    monkeypatch.setattr(F, "dropout", scaled)
    loss = batch_loss(model.train(), batch)
    assert (loss - without).abs() > 1e-4
    torch.testing.assert_close(by_hand.loss(model, batch), loss)


class Own(Seq2SeqAttentionDecoder):
    """A learner's decoder."""


SCORE, NOTHING = DotProductAttention(6, 6), lambda *given: None
CHANGES = [  # what is put in the place of a part of a model, and how that is named
    ("decoder.attention", SCORE, "has a DotProductAttention"),
    ("decoder", Own(13, 3, 6), "has a Own"),
    ("encoder.rnn", nn.LSTM(3, 6), "has a LSTM"),
    ("decoder.rnn", nn.GRU(9, 6, 2), "num_layers=2"),
    ("encoder.rnn", nn.GRU(3, 6, bias=False), "bias=False"),
    ("decoder.attention.W_q", nn.Linear(6, 6), "attention has a bias"),
    ("decoder.query", lambda h: h[-1:], "query of its own"),
    ("decoder.attention.score", SCORE.score, "AdditiveAttention has score of its own"),
    ("decoder._forward_hooks", {0: NOTHING}, "Seq2SeqAttentionDecoder has a hook"),
    ("encoder.rnn._forward_pre_hooks", {0: NOTHING}, "GRU has a hook"),
]


@pytest.mark.parametrize("path, part, words", CHANGES)
def test_a_change_is_refused_at_every_batch_and_nothing_is_trained(path, part, words):
    model, batch = build(), random_batch(5)
    adam = torch.optim.Adam(model.parameters())
    training.train_step(model, batch, adam, 1.0, by_hand.loss)
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, part)
    before = weights(model)
    with pytest.raises(ValueError, match=f"doesn't compute .*{words}.*batch_loss"):
        training.train_step(model, batch, adam, 1.0, by_hand.loss)
    assert weights(model) == before


def test_dropout_of_weights_is_refused_in_training_even_after_evaluation():
    model, batch = build(dropout=0.1).eval(), random_batch(5)
    torch.testing.assert_close(by_hand.loss(model, batch), batch_loss(model, batch))
    with pytest.raises(ValueError, match="attention with dropout"):
        by_hand.loss(model.train(), batch)


def test_bad_input_is_refused_in_words():
    batch = random_batch(6)
    for change, words in (
        ({"target_out": batch.target_out * 0}, "every target is padding"),
        ({"target_in": batch.target_in + 9}, "the vocabulary has ids 0 to 12"),
    ):
        with pytest.raises(ValueError, match=words):
            by_hand.loss(build(), batch._replace(**change))
