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

from utils.models import build_model
from utils.rnnsearch import VARIANTS, ResetAfterUnit, UngatedContextUnit

same = torch.testing.assert_close


# --- the equations, a sentence and a word at a time ---------------------------------


def unit_by_loops(unit, e, c, s):
    """A.2.2: from E y_{i-1}, c_i and s_{i-1} to s_i."""
    (W_z, W_r, W), (b_z, b_r, b) = unit.W.weight.chunk(3), unit.W.bias.chunk(3)
    if type(unit) is UngatedContextUnit:
        C = unit.C.weight
        C_z = C_r = torch.zeros_like(C)
    else:
        C_z, C_r, C = unit.C.weight.chunk(3)
    U_z, U_r = unit.U_gates.weight.chunk(2)
    z = torch.sigmoid(W_z @ e + b_z + U_z @ s + C_z @ c)
    r = torch.sigmoid(W_r @ e + b_r + U_r @ s + C_r @ c)
    if type(unit) is ResetAfterUnit:
        old = r * (unit.U.weight @ s + unit.b)
    else:
        old = unit.U.weight @ (r * s)
    return (1 - z) * s + z * torch.tanh(W @ e + b + old + C @ c)


def output_by_loops(variant, output, s, new_s, e, c):
    """A.2.2 with s_{i-1}, s_i, E y_{i-1} and c_i, or what a variant makes of it."""
    if variant == "no deep output":
        return output.dense.weight @ new_s + output.dense.bias
    read = new_s if variant == "output from s_i" else s
    t = output.U_o.weight @ read + output.U_o.bias
    if variant != "output without the word":
        t = t + output.V_o.weight @ e
    if variant != "output without context":
        t = t + output.C_o.weight @ c
    if variant != "no maxout":
        t = torch.stack([max(t[2 * k], t[2 * k + 1]) for k in range(len(t) // 2)])
    return output.W_o.weight @ t + output.W_o.bias


def first_state_by_loops(variant, start, annotations, last):
    """s_0, or what a variant begins with."""
    n = annotations.shape[1] // 2
    if variant == "s_0 = 0":
        return annotations.new_zeros(GRU["num_hiddens"])
    summary = annotations[0, n:]  # the backward state at the first word
    if variant.startswith("one direction"):
        summary = annotations[-1]
    elif variant == "s_0 from last states":
        summary = torch.cat((annotations[-1, :n], annotations[0, n:]))
    elif variant == "s_0 from the mean":
        summary = sum(annotations) / len(annotations)
    return torch.tanh(start.W_s.weight @ summary + start.W_s.bias)


def by_loops(model, source, target):
    decoder, variant = model.decoder, model.config["variant"]
    released = variant == "order of the released code"
    annotations, last = encoder_by_loops(model.encoder, source)
    s, c = first_state_by_loops(variant, decoder.start, annotations, last), None
    rows, all_weights = [], []
    for word in target:
        e = decoder.embedding.weight[word]
        if released and c is not None:  # the word just written is read first
            s = unit_by_loops(decoder.unit, e, c, s)
        c, weights = attend_by_loops(decoder.attention, s, annotations)
        new_s = s if released else unit_by_loops(decoder.unit, e, c, s)
        rows.append(output_by_loops(variant, decoder.dense, s, new_s, e, c))
        all_weights.append(weights)
        s = new_s
    return torch.stack(rows), torch.stack(all_weights)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_model_equals_the_loops(variant):
    """The whole is the paper's; each variant is what its name says."""
    assert_as_specified(a_model(variant), by_loops)


# --- the start of training --------------------------------------------------------


def test_the_initialisation_is_that_of_the_paper():
    torch.manual_seed(0)
    model = build_model("rnnsearch", 400, 500, 60, 80, 40, published_init=True)
    recurrent = 0
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 or name == "decoder.attention.w_v.weight":
            assert not parameter.any(), name
        elif "weight_hh" in name or ".U." in name or ".U_gates." in name:
            for U in parameter.split(80):
                same(U @ U.T, torch.eye(80), atol=1e-5, rtol=0)
                recurrent += 1
        else:
            std = 0.001 if ".attention." in name else 0.01
            same(parameter.std().item(), std, rtol=0.05, atol=0)
            assert abs(parameter.mean()) < std / 8, name
    assert recurrent == 3 + 3 + 3  # both directions of the encoder, and U_z, U_r, U
