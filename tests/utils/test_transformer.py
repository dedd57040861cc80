"""Heads, positions and the Transformer: against loops, and against torch.nn."""

import itertools
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


def heads_by_loops(attention, query, states):
    """One sentence and query, one head at a time -> context (H,), weights (N, K)."""
    W_k, W_v = attention.W_kv.weight.chunk(2)
    W_q, parts, all_weights = attention.W_q.weight, [], []
    for q, k, v in zip(*(W.chunk(N) for W in (W_q, W_k, W_v)), strict=True):
        scores = [(q @ query) @ (k @ h) / math.sqrt(H / N) for h in states]
        powers = [torch.exp(score) for score in scores]
        weights = torch.stack(powers) / sum(powers)
        parts.append(sum(w * (v @ h) for w, h in zip(weights, states, strict=True)))
        all_weights.append(weights)
    return attention.W_o.weight @ torch.cat(parts), torch.stack(all_weights)


def test_heads_equal_the_loops_and_their_gradients():
    torch.manual_seed(0)
    attention = MultiHeadAttention(7, 5, H, N).double()
    queries = torch.randn(3, 2, 5).double().requires_grad_()
    states = torch.randn(3, 4, 7).double().requires_grad_()
    contexts, rows = attention(queries, states, states, LENS), []
    for b, q in itertools.product(range(3), range(2)):
        n, weights = LENS[b], attention.head_weights[b, :, q]
        row, expected = heads_by_loops(attention, queries[b, q], states[b, :n])
        same(weights[:, :n], expected.detach())
        assert not weights[:, n:].any()
        rows.append(row)
    expected = torch.stack(rows).view(3, 2, H)
    same(contexts, expected)
    same(attention.attention_weights, attention.head_weights.mean(dim=1))
    inputs, slope = [queries, states, *attention.parameters()], torch.randn(3, 2, H)
    ours = torch.autograd.grad((contexts * slope).sum(), inputs)
    same(ours, torch.autograd.grad((expected * slope).sum(), inputs))
    with pytest.raises(ValueError, match="keys as values"):
        attention(queries, states, states + 1)


# --- positions and the causal mask --------------------------------------------------


def test_position_codes_equal_the_formula():
    places = [0, 3, 50]
    codes = position_codes(torch.tensor(places), 6).tolist()
    for row, place in zip(codes, places, strict=True):
        for i, pair in enumerate(zip(row[::2], row[1::2], strict=True)):
            angle = place / 10_000 ** (2 * i / 6)
            assert pair == pytest.approx((math.sin(angle), math.cos(angle)), abs=1e-5)
    x = torch.randn(2, 4, H)
    same(add_positions(x, start=3)[0], x[0] + position_codes(torch.arange(3, 7), H))


# --- the whole model ----------------------------------------------------------------


@torch.no_grad()
def test_a_layer_equals_the_decoder_layer_of_torch():
    torch.manual_seed(0)
    ours = TransformerLayer(H, N, 17).eval()
    theirs = nn.TransformerDecoderLayer(H, N, 17, batch_first=True, norm_first=True)
    for copy, own in (
        (theirs.self_attn, ours.self_attention),
        (theirs.multihead_attn, ours.attention),
    ):  # their biases are 0 as they start
        copy.in_proj_weight.copy_(torch.cat((own.W_q.weight, own.W_kv.weight)))
        copy.out_proj.weight.copy_(own.W_o.weight)
    theirs.linear1, theirs.linear2 = ours.ffn[0], ours.ffn[2]
    for number, norm in enumerate(ours.norms, start=1):
        norm.weight.uniform_(0.5, 2)
        setattr(theirs, f"norm{number}", norm)
    x, memory = torch.randn(3, 4, H), torch.randn(3, 5, H)
    lens = torch.tensor([5, 3, 1])
    expected = theirs.eval()(
        x,
        memory,
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(4),
        memory_key_padding_mask=~length_mask(lens, 5),
    )
    keys, seen = ours.attention.project_keys(memory), causal_lens(x[..., 0])
    result, written, weights = ours(x, keys[:, :0], seen, keys, lens)
    same(result, expected)
    assert written.shape == (3, 4, 2 * H)
    same(weights, ours.attention.head_weights)


@torch.no_grad()
def test_the_model_is_its_layers_of_words_with_positions_then_norm_and_scores():
    """And every layer's heads come back: the weights are their mean."""
    model, (source, target, lens) = a_model("transformer"), a_batch()
    encoder, decoder = model.encoder, model.decoder
    scores, state = model(source, target, lens)
    x = add_positions(encoder.embedding(source))
    for layer in encoder.layers:
        x = layer(x, src_key_padding_mask=~length_mask(lens, 5))
    memory = encoder.norm(x)
    same(encoder(source, lens)[0], memory)
    x, all_weights = add_positions(decoder.embedding(target)), []
    for layer in decoder.layers:
        keys = layer.attention.project_keys(memory)
        x, _, weights = layer(x, keys[:, :0], causal_lens(target), keys, lens)
        all_weights.append(weights)
    norm, dense = decoder.dense
    same(scores, dense(norm(x)))
    same(decoder.head_weights, torch.stack(all_weights, dim=1))
    same(state.attention_weights, decoder.head_weights.mean(dim=(1, 2)))
