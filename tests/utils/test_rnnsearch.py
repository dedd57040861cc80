"""RNNsearch against its equations, and each variant against its name."""

import pytest
import torch
from helpers.models import (
    GRU,
    a_model,
    assert_as_specified,
    attend_by_loops,
    encoder_by_loops,
)

from utils.rnnsearch import VARIANTS


def unit_by_loops(unit, e, c, s):
    """A.2.2: from E y_{i-1}, c_i and s_{i-1} to s_i."""
    (W_z, W_r, W), (b_z, b_r, b) = unit.W.weight.chunk(3), unit.W.bias.chunk(3)
    (C_z, C_r, C), (U_z, U_r) = unit.C.weight.chunk(3), unit.U_gates.weight.chunk(2)
    z = torch.sigmoid(W_z @ e + b_z + U_z @ s + C_z @ c)
    r = torch.sigmoid(W_r @ e + b_r + U_r @ s + C_r @ c)
    old = unit.U.weight @ (r * s)
    return (1 - z) * s + z * torch.tanh(W @ e + b + old + C @ c)


def output_by_loops(variant, output, s, new_s, e, c):
    """A.2.2 with s_{i-1}, s_i, E y_{i-1} and c_i, or what a variant makes of it."""
    if variant == "no deep output":
        return output.dense.weight @ new_s + output.dense.bias
    read = new_s if variant == "output from s_i" else s
    t = output.U_o.weight @ read + output.U_o.bias + output.V_o.weight @ e
    if variant != "output without context":
        t = t + output.C_o.weight @ c
    t = torch.stack([max(t[2 * k], t[2 * k + 1]) for k in range(len(t) // 2)])
    return output.W_o.weight @ t + output.W_o.bias


def attend(variant, attention, s, annotations):
    """Weights and context; a product is divided by the root of the state's size."""
    scale = len(s) ** -0.5 if variant == "scaled product" else 1.0
    return attend_by_loops(attention, scale * s, annotations)


def by_loops(model, source, target):
    decoder, variant = model.decoder, model.config["variant"]
    annotations, _ = encoder_by_loops(model.encoder, source)
    backward = annotations[0, annotations.shape[1] // 2 :]  # at the first word
    s, c = backward.new_zeros(GRU["num_hiddens"]), None
    if variant != "s_0 = 0":
        s = torch.tanh(decoder.start.W_s.weight @ backward + decoder.start.W_s.bias)
    rows, all_weights = [], []
    for word in target:
        e = decoder.embedding.weight[word]
        if variant == "order of the released code" and c is not None:
            s = unit_by_loops(decoder.unit, e, c, s)  # reads what was just written
        elif variant == "conditional order":
            s = decoder.unit.first(e[None], s[None])[0]
        c, weights = attend(variant, decoder.attention, s, annotations)
        new_s = s
        if variant == "conditional order":
            s = new_s = decoder.unit.second(c[None], s[None])[0]
        elif variant != "order of the released code":
            new_s = unit_by_loops(decoder.unit, e, c, s)
        rows.append(output_by_loops(variant, decoder.dense, s, new_s, e, c))
        all_weights.append(weights)
        s = new_s
    return torch.stack(rows), torch.stack(all_weights)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_equals_the_loops(variant):
    """The whole is the paper's; each variant is what its name says."""
    assert_as_specified(a_model(variant), by_loops)
