"""Equality with d2l 0.17.0: same weights, same outputs, weights and gradients."""

import pytest
import torch

from utils.attention import AdditiveAttention
from utils.d2l_bridge import reference_attention, reference_decoder
from utils.seq2seq import Seq2SeqAttentionDecoder


def gradients(module, output):
    """Of every parameter, by name; of an output that counts each number differently."""
    module.zero_grad()
    (output * torch.linspace(-1, 1, output.numel()).view(output.shape)).sum().backward()
    return {name: p.grad.clone() for name, p in module.named_parameters()}


def close(first, second, atol=1e-6, rtol=1e-5):
    """To rounding in float32 over a few hundred operations."""
    torch.testing.assert_close(first, second, atol=atol, rtol=rtol)


def test_additive_attention():
    torch.manual_seed(0)
    ours = AdditiveAttention(key_size=5, query_size=7, num_hiddens=6)
    theirs = reference_attention(ours)
    queries, keys = torch.randn(3, 2, 7), torch.randn(3, 4, 5)
    values, lens = torch.randn(3, 4, 8), torch.tensor([4, 2, 1])
    first, second = (module(queries, keys, values, lens) for module in (ours, theirs))
    close(first, second)
    close(ours.attention_weights, theirs.attention_weights)
    close(gradients(ours, first), gradients(theirs, second))


@pytest.mark.parametrize("layers", [1, 2])
def test_attention_decoder(layers):
    torch.manual_seed(0)
    ours = Seq2SeqAttentionDecoder(20, 8, 16, layers)
    theirs = reference_decoder(ours)
    lens, X = torch.tensor([6, 3, 1, 5]), torch.randint(0, 20, (4, 5))
    states, hidden = torch.randn(4, 6, 16), torch.randn(layers, 4, 16)
    first, our_state = ours(X, ours.init_state((states, hidden), lens))
    their_state = theirs.init_state((states.transpose(0, 1), hidden), lens)
    second, their_state = theirs(X, their_state)
    close(first, second)
    close(our_state.hidden_state, their_state[1])
    close(ours.attention_weights, torch.cat(theirs.attention_weights, dim=1))
    close(gradients(ours, first), gradients(theirs, second), 1e-5, 1e-4)
