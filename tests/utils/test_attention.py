"""Attention against plain loops, values; what padding may not do."""

import math

import pytest
import torch
from helpers import refusals
from helpers.loops import attend
from hypothesis import given
from hypothesis import strategies as st

from utils.attention import (
    AdditiveAttention,
    BilinearAttention,
    DotProductAttention,
    length_mask,
    masked_softmax,
)

same = torch.testing.assert_close


SCORES = {  # sizes of keys and queries, how it's made
    "additive": (3, 2, lambda: AdditiveAttention(3, 2, 5)),
    "dot": (3, 3, lambda: DotProductAttention(3, 3)),
    "scaled dot": (3, 3, lambda: DotProductAttention(3, 3, scaled=True)),
    "general": (3, 2, lambda: BilinearAttention(3, 2)),
    "scaled general": (3, 2, lambda: BilinearAttention(3, 2, scaled=True)),
}
each_score = pytest.mark.parametrize("score", SCORES)


def make(score, B=3, Q=2, K=4):
    """The attention in double precision; queries, keys and values, all of a size."""
    torch.manual_seed(0)
    key_size, query_size, attention = SCORES[score]
    sizes = (B, Q, query_size), (B, K, key_size), (B, K, 6)
    inputs = [torch.randn(size).double() for size in sizes]
    return attention().double(), *inputs


@st.composite
def lengths(draw):
    """Sizes that all may differ, and lengths from 0: one a sentence, or one a query."""
    B, Q, K = (draw(st.integers(1, 5)) for _ in range(3))
    shape = (B, Q) if draw(st.booleans()) else (B,)
    torch.manual_seed(draw(st.integers(0, 10**6)))
    return (B, Q, K), torch.randint(0, K + 1, shape)


@each_score
@given(lengths())
def test_attention_equals_the_loops(score, case):
    """Equation 6 over the real keys, one query at a time; without any, weights 0."""
    (B, Q, K), lens = case
    attention, queries, keys, values = make(score, B, Q, K)
    weights, lens_of = torch.zeros(B, Q, K).double(), lens.view(B, -1).expand(B, Q)
    with torch.no_grad():
        for b, q in lens_of.nonzero().tolist():
            row = queries[b, q], keys[b, : lens_of[b, q]]
            found = attend(attention, *row, scaled="scaled" in score)
            weights[b, q, : len(found)] = found
        context = attention(queries, keys, values, lens)
        parts = attention.attend(queries, attention.project_keys(keys), values, lens)
    same(attention.attention_weights, weights)
    same(context, weights @ values)
    same(parts, (context, weights))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("garbage", [6e4, -6e4, math.inf, -math.inf, math.nan])
def test_what_stands_at_padding_never_matters(dtype, garbage):
    clean = torch.tensor([[[1.0, 2.0, -1.0, 0.0]], [[3.0, 0.5, 0.0, 0.0]]], dtype=dtype)
    dirty, lens = clean.clone(), torch.tensor([3, 0])
    dirty[0, :, 3:], dirty[1] = garbage, garbage
    dirty.requires_grad_()
    weights = masked_softmax(dirty, lens)
    assert weights.dtype == dtype and torch.equal(weights, masked_softmax(clean, lens))
    weights.square().sum().backward()
    assert torch.equal(dirty.grad != 0, length_mask(lens, 4).unsqueeze(1))
    lowest = torch.full((1, 1, 3), torch.finfo(dtype).min, dtype=dtype)
    assert masked_softmax(lowest, torch.tensor([2])).tolist() == [[[0.5, 0.5, 0.0]]]


@each_score
def test_dropout_acts_in_training_only_and_leaves_the_stored_weights_whole(score):
    attention, *inputs = make(score)
    whole = attention(*inputs)
    attention.dropout.p = 0.5
    assert not torch.allclose(attention(*inputs), whole)
    same(attention.attention_weights.sum(-1), torch.ones(3, 2).double())
    same(attention.eval()(*inputs), whole)


SCORES_OF_4, FLOATS = torch.ones(2, 3, 4), torch.ones(2).double()


def call(*sizes):
    return AdditiveAttention(3, 3, 5)(*map(torch.ones, sizes))


test_what_does_not_fit_is_answered_in_words = refusals(
    (lambda: masked_softmax(torch.ones(2, 3)), "batch, queries, keys"),
    (lambda: masked_softmax(SCORES_OF_4.long()), "floating-point"),
    (lambda: masked_softmax(SCORES_OF_4, torch.tensor([1])), r"shape \(2,\)"),
    (lambda: masked_softmax(SCORES_OF_4, torch.tensor([1, 5])), "0 and 4.*got 5"),
    (lambda: masked_softmax(SCORES_OF_4, torch.tensor([-1, 2])), "got -1"),
    (lambda: masked_softmax(SCORES_OF_4, FLOATS), TypeError, "got torch.float64"),
    (lambda: masked_softmax(SCORES_OF_4, [4, 4]), TypeError, "lengths, got list"),
    (lambda: length_mask(FLOATS > 0, 4), TypeError, "bool; of a mask, mask.sum"),
    (lambda: length_mask([1, 2], 4), TypeError, "whole numbers, lengths, got list"),
    (lambda: call((1, 1, 2), (1, 2, 3), (1, 2, 3)), r"\(batch, queries, 3"),
    (lambda: call((1, 1, 3), (1, 2, 2), (1, 2, 3)), r"\(batch, keys, 3\)"),
    (lambda: call((1, 1, 3), (1, 2, 3), (1, 4, 3)), "values .batch, keys"),
    # else broadcasting asks for every sentence alike
    (lambda: call((1, 1, 3), (2, 4, 3), (2, 4, 3)), "values .batch, keys"),
    (lambda: DotProductAttention(256, 512), "256 and 512.*BilinearAttention"),
)
