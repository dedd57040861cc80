"""Heads, positions and the Transformer: against torch.nn and the formula."""

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


@torch.no_grad()
def test_heads_equal_those_of_torch():
    torch.manual_seed(0)
    ours = MultiHeadAttention(7, H, H, N)
    theirs = nn.MultiheadAttention(H, N, bias=False, kdim=7, vdim=7, batch_first=True)
    W_k, W_v = map(nn.Parameter, ours.W_kv.weight.chunk(2))
    theirs.q_proj_weight, theirs.k_proj_weight = ours.W_q.weight, W_k
    theirs.v_proj_weight, theirs.out_proj.weight = W_v, ours.W_o.weight
    queries, states = torch.randn(3, 2, H), torch.randn(3, 4, 7)
    ways = {"key_padding_mask": ~length_mask(LENS, 4), "average_attn_weights": False}
    contexts, weights = theirs(queries, states, states, **ways)
    same(ours(queries, states, states, LENS), contexts)
    same(ours.head_weights, weights)
    same(ours.attention_weights, weights.mean(dim=1))
    with pytest.raises(ValueError, match="keys as values"):
        ours(queries, states, states + 1)


def test_position_codes_equal_the_formula():
    places = [0, 3, 50]
    codes = position_codes(torch.tensor(places), 6).tolist()
    for row, place in zip(codes, places, strict=True):
        for i, pair in enumerate(zip(row[::2], row[1::2], strict=True)):
            angle = place / 10_000 ** (2 * i / 6)
            assert pair == pytest.approx((math.sin(angle), math.cos(angle)), abs=1e-5)
    x = torch.randn(2, 4, H)
    same(add_positions(x, start=3)[0], x[0] + position_codes(torch.arange(3, 7), H))


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
    same(weights, ours.attention.head_weights.mean(dim=1))


@torch.no_grad()
def test_the_model_is_its_layers_of_words_with_positions_then_norm_and_scores():
    """The weights are the mean of every layer's heads."""
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
    same(state.attention_weights, torch.stack(all_weights).mean(dim=0))
