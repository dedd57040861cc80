"""Encoder, bridge and decoders against plain loops: values and gradients."""

import pytest
import torch
from helpers.models import (
    DEEP,
    GRU,
    SIZES,
    a_batch,
    assert_as_specified,
    bahdanau,
    by_loops,
    gru_by_loops,
    loud,
)

from utils.models import build_model

# Layers, both ways, sizes that agree or don't: what a part must get right.
SHAPES = {
    "one layer": GRU,
    "two layers": {**GRU, "num_layers": 2},
    "a bridge": {**GRU, "enc_hiddens": 5},
    "all, three layers": {**DEEP, "num_layers": 3},
}


def attention(decoder, x, states, source, _):
    """Attend with s_{i-1}; the GRU reads context, then word; score s_i."""
    _, weights, states = bahdanau(decoder, x, states[-1], states, source)
    return states[-1], weights, states, None


def fixed(decoder, x, states, source, _):
    """Every step reads the encoder's last state, of the top layer, then its word."""
    _, last = source
    states = gru_by_loops(decoder.rnn, torch.cat((last[-1], x)), states)
    return states[-1], None, states, None


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["attention", "fixed"])
def test_a_model_equals_the_loops(kind, shape):
    model = loud(build_model(kind, **SIZES, **SHAPES[shape]))
    step = {"attention": attention, "fixed": fixed}[kind]
    assert_as_specified(model, by_loops(step))


@pytest.mark.parametrize("kind", ["attention", "fixed"])
def test_dropout_stands_between_the_layers_and_on_the_weights_only(kind):
    """nn.GRU's fourth positional argument is `bias`: dropout given there is lost."""
    for layers in (1, 2):
        options = {**GRU, "num_layers": layers, "dropout": 0.5}
        model = loud(build_model(kind, **SIZES, **options)).train()
        for rnn in (model.encoder.rnn, model.decoder.rnn):
            assert rnn.bias is True and rnn.dropout == (0.5 if layers == 2 else 0.0)
        first, second = (model(*a_batch())[0] for _ in range(2))
        assert torch.equal(first, second) == (kind == "fixed" and layers == 1)
