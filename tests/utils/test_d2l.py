"""Equality with d2l 0.17.0: same weights, same outputs, weights and gradients."""

import pytest
import torch

from utils.attention import AdditiveAttention, masked_softmax
from utils.d2l_bridge import (
    load_d2l,
    reference_attention,
    reference_decoder,
    reference_encoder,
)
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqEncoder

CLOSE = {"atol": 1e-6, "rtol": 1e-5}  # float32 rounding over a few hundred operations


def gradients(module, output, direction):
    module.zero_grad()
    (output * direction).sum().backward()
    return {
        name: p.grad.clone()
        for name, p in module.named_parameters()
        if p.grad is not None
    }


@pytest.mark.parametrize("seed", range(2))
def test_masked_softmax_where_d2l_is_right(seed):
    torch.manual_seed(seed)
    X, lens = torch.randn(4, 3, 6), torch.randint(1, 7, (4,))
    expected = load_d2l().masked_softmax(X.clone(), lens)  # d2l writes into its input
    torch.testing.assert_close(masked_softmax(X, lens), expected, **CLOSE)
    per_query = torch.randint(1, 7, (4, 3))
    expected = load_d2l().masked_softmax(X.clone(), per_query)
    torch.testing.assert_close(masked_softmax(X, per_query), expected, **CLOSE)


def test_masked_softmax_where_d2l_is_wrong():
    X, lens = torch.randn(1, 1, 4), torch.tensor([0])
    theirs = load_d2l().masked_softmax(X.clone(), lens)
    torch.testing.assert_close(
        theirs, torch.full((1, 1, 4), 0.25)
    )  # uniform over padding
    assert masked_softmax(X, lens).sum() == 0


@pytest.mark.parametrize("seed", range(2))
def test_additive_attention(seed):
    torch.manual_seed(seed)
    ours = AdditiveAttention(key_size=5, query_size=7, num_hiddens=6)
    theirs = reference_attention(ours)
    queries, keys = torch.randn(3, 2, 7), torch.randn(3, 4, 5)
    values, lens = torch.randn(3, 4, 8), torch.tensor([4, 2, 1])
    first, second = (module(queries, keys, values, lens) for module in (ours, theirs))
    torch.testing.assert_close(first, second, **CLOSE)
    torch.testing.assert_close(
        ours.attention_weights, theirs.attention_weights, **CLOSE
    )
    direction = torch.randn_like(first)
    torch.testing.assert_close(
        gradients(ours, first, direction), gradients(theirs, second, direction), **CLOSE
    )


@pytest.mark.parametrize("layers", [1, 2])
def test_attention_decoder(layers):
    torch.manual_seed(0)
    ours = Seq2SeqAttentionDecoder(20, 8, 16, layers)
    theirs = reference_decoder(ours)
    assert set(theirs.state_dict()) == set(ours.state_dict())  # the same names
    lens = torch.tensor([6, 3, 1, 5])
    states, hidden = torch.randn(4, 6, 16), torch.randn(layers, 4, 16)
    X = torch.randint(0, 20, (4, 5))
    first, our_state = ours(X, ours.init_state((states, hidden), lens))
    second, their_state = theirs(
        X, theirs.init_state((states.transpose(0, 1), hidden), lens)
    )
    torch.testing.assert_close(first, second, **CLOSE)
    torch.testing.assert_close(our_state.hidden_state, their_state[1], **CLOSE)
    torch.testing.assert_close(
        ours.attention_weights, torch.cat(theirs.attention_weights, dim=1), **CLOSE
    )
    direction = torch.randn_like(first)
    torch.testing.assert_close(
        gradients(ours, first, direction),
        gradients(theirs, second, direction),
        atol=1e-5,
        rtol=1e-4,
    )


def test_whole_model_on_sentences_of_one_length():
    """Without padding, packing makes no difference, so the whole of both must agree."""
    torch.manual_seed(0)
    ours = build_model("attention", 20, 20, 8, 16, num_layers=2)
    d2l = load_d2l()
    theirs = d2l.EncoderDecoder(
        reference_encoder(ours.encoder), reference_decoder(ours.decoder)
    )
    source, target = torch.randint(0, 20, (4, 6)), torch.randint(0, 20, (4, 5))
    lens = torch.full((4,), 6)
    torch.testing.assert_close(
        ours(source, target, lens)[0], theirs(source, target, lens)[0], **CLOSE
    )


def test_d2ls_encoder_reads_padding_and_ours_does_not():
    torch.manual_seed(0)
    ours = Seq2SeqEncoder(20, 8, 16)
    theirs = reference_encoder(ours)
    source, lens = torch.randint(4, 20, (1, 6)), torch.tensor([3])
    changed = source.clone()
    changed[0, 3:] = (source[0, 3:] - 3) % 15 + 4
    assert not torch.allclose(theirs(source)[1], theirs(changed)[1])
    assert torch.equal(ours(source, lens)[1], ours(changed, lens)[1])
