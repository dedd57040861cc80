"""Heads, positions and the Transformer: against loops, and against torch.nn."""

import math

import pytest
import torch
from helpers.models import a_batch, a_model
from torch import nn

from utils.attention import length_mask
from utils.transformer import (
    MultiHeadAttention,
    TransformerLayer,
    add_positions,
    causal_lens,
    position_codes,
)

H, N = 12, 3
LENS = torch.tensor([4, 2, 1])
same = torch.testing.assert_close


# --- attention ----------------------------------------------------------------------


def heads_by_loops(attention, queries, states):
    """One sentence, one query and one head at a time -> contexts (Q, H), weights."""
    H = attention.W_o.in_features
    D = H // attention.num_heads
    W_k, W_v = attention.W_kv.weight.split(H)
    rows, all_weights = [], []
    for query in queries:
        parts, weights = [], []
        for n in range(attention.num_heads):
            own = slice(n * D, (n + 1) * D)
            q = attention.W_q.weight[own] @ query
            scores = [q @ (W_k[own] @ h) / math.sqrt(D) for h in states]
            powers = [torch.exp(e) for e in scores]
            a = [p / sum(powers) for p in powers]
            mixed = zip(a, states, strict=True)
            parts.append(sum(w * (W_v[own] @ h) for w, h in mixed))
            weights.append(torch.stack(a))
        rows.append(attention.W_o.weight @ torch.cat(parts))
        all_weights.append(torch.stack(weights))
    return torch.stack(rows), torch.stack(all_weights, dim=1)  # (Q, H), (N, Q, K)


def test_heads_equal_the_loops_and_their_gradients():
    torch.manual_seed(0)
    attention = MultiHeadAttention(7, 5, H, N).double()
    queries = torch.randn(3, 2, 5).double().requires_grad_()
    states = torch.randn(3, 4, 7).double().requires_grad_()
    contexts = attention(queries, states, states, LENS)
    rows = []
    for b, n in enumerate(LENS):
        expected, weights = heads_by_loops(attention, queries[b], states[b, :n])
        same(attention.head_weights[b, ..., :n], weights.detach())
        assert not attention.head_weights[b, ..., n:].any()
        rows.append(expected)
    same(contexts, torch.stack(rows))
    same(attention.attention_weights, attention.head_weights.mean(dim=1))
    inputs, slope = (
        [queries, states, *attention.parameters()],
        torch.randn_like(contexts),
    )
    ours, theirs = (
        torch.autograd.grad((found * slope).sum(), inputs)
        for found in (contexts, torch.stack(rows))
    )
    same(ours, theirs)


def test_heads_that_do_not_divide_the_units_and_values_of_their_own_are_refused():
    for heads, words in ((0, "num_heads must be a whole"), (5, "divides them")):
        with pytest.raises(ValueError, match=words):
            MultiHeadAttention(H, H, H, heads)
    attention, x = MultiHeadAttention(H, H, H, N), torch.randn(1, 4, H)
    attention(x, x, x.clone())
    with pytest.raises(ValueError, match="keys as values"):
        attention(x, x, x + 1)


# --- positions and the causal mask --------------------------------------------------


def test_position_codes_equal_the_formula():
    codes = position_codes(torch.tensor([0, 3, 50]), 6)
    for row, position in zip(codes.tolist(), (0, 3, 50), strict=True):
        for i in range(3):
            angle = position / 10_000 ** (2 * i / 6)
            assert row[2 * i] == pytest.approx(math.sin(angle), abs=1e-5)
            assert row[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-5)


def test_positions_go_on_where_they_stopped():
    x = torch.randn(2, 7, H)
    parts = torch.cat((add_positions(x[:, :4]), add_positions(x[:, 4:], start=4)), 1)
    same(add_positions(x), parts)
    same(add_positions(x)[0] - x[0], position_codes(torch.arange(7), H))


@torch.no_grad()
def test_without_positions_the_encoder_knows_no_order(monkeypatch):
    model, order = a_model("transformer"), [2, 0, 3, 1]
    source, lens = torch.tensor([[4, 5, 6, 7]]), torch.tensor([4])
    states, shuffled = (model.encoder(x, lens)[0] for x in (source, source[:, order]))
    assert (states[:, order] - shuffled).abs().max() > 0.1
    monkeypatch.setattr("utils.transformer.add_positions", lambda x, start=0: x)
    states, shuffled = (model.encoder(x, lens)[0] for x in (source, source[:, order]))
    same(states[:, order], shuffled)


# --- the whole model ----------------------------------------------------------------


def torch_decoder_layer(ours, num_ffn):
    """nn.TransformerDecoderLayer with the weights of a TransformerLayer."""
    theirs = nn.TransformerDecoderLayer(
        H, N, num_ffn, dropout=0.0, batch_first=True, norm_first=True
    ).eval()
    pairs = (
        (theirs.self_attn, ours.self_attention),
        (theirs.multihead_attn, ours.attention),
    )
    for copy, own in pairs:  # their biases are 0 as they start
        copy.in_proj_weight.copy_(torch.cat((own.W_q.weight, own.W_kv.weight)))
        copy.out_proj.weight.copy_(own.W_o.weight)
    theirs.linear1.load_state_dict(ours.ffn[0].state_dict())
    theirs.linear2.load_state_dict(ours.ffn[2].state_dict())
    norms = (theirs.norm1, theirs.norm2, theirs.norm3)
    for copy, own in zip(norms, ours.norms, strict=True):
        own.weight.uniform_(0.5, 2)
        copy.load_state_dict(own.state_dict())
    return theirs


@torch.no_grad()
def test_a_layer_equals_the_decoder_layer_of_torch():
    torch.manual_seed(0)
    ours = TransformerLayer(H, N, 17).eval()
    theirs = torch_decoder_layer(ours, 17)
    x, memory, lens = (
        torch.randn(3, 4, H),
        torch.randn(3, 5, H),
        torch.tensor([5, 3, 1]),
    )
    expected = theirs(
        x,
        memory,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(4),
        tgt_is_causal=True,
        memory_key_padding_mask=~length_mask(lens, 5),
    )
    keys, nothing = ours.attention.project_keys(memory), x.new_zeros(3, 0, 2 * H)
    result, written, weights = ours(x, nothing, causal_lens(x[..., 0]), keys, lens)
    same(result, expected)
    assert written.shape == (3, 4, 2 * H)
    same(weights, ours.attention.head_weights)


@torch.no_grad()
def test_the_decoder_is_its_layers_then_norm_and_scores():
    """And every layer's heads come back: the weights are their mean."""
    model, (source, target, lens) = a_model("transformer"), a_batch()
    decoder, (memory, last) = model.decoder, model.encoder(source, lens)
    assert last is None
    scores, state = model(source, target, lens)
    x, all_weights = add_positions(decoder.embedding(target)), []
    for layer in decoder.layers:
        keys = layer.attention.project_keys(memory)
        nothing = x.new_zeros(3, 0, keys.shape[2])
        x, _, weights = layer(x, nothing, causal_lens(target), keys, lens)
        all_weights.append(weights)
    norm, dense = decoder.dense
    same(scores, dense(norm(x)))
    same(decoder.head_weights, torch.stack(all_weights, dim=1))
    same(state.attention_weights, decoder.head_weights.mean(dim=(1, 2)))
