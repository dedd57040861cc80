"""Encoder and decoders against plain loops, values and gradients, part by part."""

import pytest
import torch
from helpers.models import (
    DEEP,
    GRU,
    SIZES,
    a_batch,
    a_model,
    assert_as_specified,
    bahdanau,
    by_loops,
    encoder_by_loops,
    gru_by_loops,
    loud,
)

from utils.models import build_model
from utils.seq2seq import Bridge

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


@pytest.mark.parametrize("shape", SHAPES)
def test_the_encoder_equals_the_loops_and_has_read_no_padding(shape):
    encoder = loud(build_model("fixed", **SIZES, **SHAPES[shape])).encoder
    source, _, lens = a_batch()
    outputs, hidden_state = encoder(source, lens)
    for b, length in enumerate(lens):
        annotations, last = encoder_by_loops(encoder, source[b, :length])
        torch.testing.assert_close(outputs[b, :length], annotations)
        torch.testing.assert_close(hidden_state[:, b], last)
        assert not outputs[b, length:].any()


def test_the_bridge_hands_on_what_fits_and_maps_the_rest():
    last = torch.randn(2, 3, 4)
    assert Bridge(4, 4)(last) is last and not list(Bridge(4, 4).parameters())
    bridge = Bridge(4, 6)
    torch.testing.assert_close(bridge(last), torch.tanh(bridge.map(last)))


def test_the_first_state_holds_what_its_names_say():
    source, _, lens = a_batch()
    model = a_model("attention")
    outputs, last = model.encoder(source, lens)
    state = model.decoder.init_state((outputs, last), lens)
    assert state.enc_outputs is outputs and state.enc_valid_lens is lens
    keys = model.decoder.attention.W_k(outputs)
    torch.testing.assert_close(state.projected_keys, keys)
    torch.testing.assert_close(state.hidden_state, model.decoder.bridge(last))
    assert state.attention_weights is None  # nothing has been attended to
    fixed = a_model("fixed").decoder
    state = fixed.init_state((outputs, last))
    assert torch.equal(state.context, last[-1]) and not torch.equal(last[0], last[-1])
    torch.testing.assert_close(state.hidden_state, fixed.bridge(last))


@pytest.mark.parametrize("kind", ["attention", "fixed"])
def test_dropout_stands_between_the_layers_and_on_the_weights_only(kind):
    """nn.GRU's fourth positional argument is `bias`: dropout given there is lost."""
    source, target, lens = a_batch()
    for layers in (1, 2):
        options = {**GRU, "num_layers": layers, "dropout": 0.5}
        model = loud(build_model(kind, **SIZES, **options)).train()
        for rnn in (model.encoder.rnn, model.decoder.rnn):
            assert rnn.bias is True and rnn.dropout == (0.5 if layers == 2 else 0.0)
        first, second = (model.encoder(source, lens)[0] for _ in range(2))
        assert torch.equal(first, second) == (layers == 1)
        enc_outputs = model.encoder(source, lens)
        state = model.decoder.init_state(enc_outputs, lens)
        first, second = (model.decoder(target, state)[0] for _ in range(2))
        assert torch.equal(first, second) == (kind == "fixed" and layers == 1)
        model.eval()
        assert torch.equal(*(model(source, target, lens)[0] for _ in range(2)))
