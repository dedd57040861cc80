"""Heads, positions and the Transformer: against torch.nn and the formula."""

import math

import pytest
import torch
from helpers.models import a_batch, a_model
from torch import nn

from utils.attention import length_mask
from utils.transformer import MultiHeadAttention, add_positions, position_codes

same = torch.testing.assert_close


@torch.no_grad()
def test_heads_equal_those_of_torch():
    torch.manual_seed(0)
    H, N, lens = 12, 3, torch.tensor([4, 2, 1])
    ours = MultiHeadAttention(7, H, H, N)
    theirs = nn.MultiheadAttention(H, N, bias=False, kdim=7, vdim=7, batch_first=True)
    W_k, W_v = map(nn.Parameter, ours.W_kv.weight.chunk(2))
    theirs.q_proj_weight, theirs.k_proj_weight = ours.W_q.weight, W_k
    theirs.v_proj_weight, theirs.out_proj.weight = W_v, ours.W_o.weight
    queries, states = torch.randn(3, 2, H), torch.randn(3, 4, 7)
    ways = {"key_padding_mask": ~length_mask(lens, 4), "average_attn_weights": False}
    contexts, weights = theirs(queries, states, states, **ways)
    same(ours(queries, states, states, lens), contexts)
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
    x = torch.randn(2, 4, 6)
    same(add_positions(x, start=3)[0], x[0] + position_codes(torch.arange(3, 7), 6))


def layer_of_torch(ours):
    """A decoder's layer of torch with the weights of ours."""
    H, N = ours.ffn[0].in_features, ours.attention.num_heads
    theirs = nn.TransformerDecoderLayer(H, N, batch_first=True, norm_first=True)
    for copy, own in (
        (theirs.self_attn, ours.self_attention),
        (theirs.multihead_attn, ours.attention),
    ):  # their biases are 0 as they start
        copy.in_proj_weight.data = torch.cat((own.W_q.weight, own.W_kv.weight))
        copy.out_proj.weight = own.W_o.weight
    theirs.linear1, theirs.linear2 = ours.ffn[0], ours.ffn[2]
    theirs.norm1, theirs.norm2, theirs.norm3 = ours.norms
    return theirs.double().eval()


@torch.no_grad()
def test_the_model_is_torchs_layers_of_words_with_positions_then_norm_and_scores():
    """The weights are the mean of every layer's heads."""
    model, (source, target, lens) = a_model("transformer"), a_batch()
    encoder, decoder = model.encoder, model.decoder
    scores, state = model(source, target, lens)
    padding, x = ~length_mask(lens, 5), add_positions(encoder.embedding(source))
    for layer in encoder.layers:
        x = layer(x, src_key_padding_mask=padding)
    memory = encoder.norm(x)
    same(encoder(source, lens)[0], memory)
    x, later = add_positions(decoder.embedding(target)), ~torch.ones(4, 4).tril().bool()
    for layer in decoder.layers:
        masks = {"tgt_mask": later, "memory_key_padding_mask": padding}
        x = layer_of_torch(layer)(x, memory, **masks)
    norm, dense = decoder.dense
    same(scores, dense(norm(x)))
    heads = [layer.attention.head_weights.mean(dim=1) for layer in decoder.layers]
    same(state.attention_weights, torch.stack(heads).mean(dim=0))
