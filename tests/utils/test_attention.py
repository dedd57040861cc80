"""How attention must behave: each rule of the course, checked against plain loops."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.attention import (
    AdditiveAttention,
    BilinearAttention,
    DotProductAttention,
    LocationAttention,
    length_mask,
    masked_softmax,
)

dims = st.integers(1, 5)


def softmax_by_loops(X, valid_lens):
    """The specification: equation 6, over the real keys, one number at a time."""
    weights = torch.zeros_like(X)
    for b in range(X.shape[0]):
        for q in range(X.shape[1]):
            length = int(valid_lens[b] if valid_lens.dim() == 1 else valid_lens[b, q])
            top = max((X[b, q, k].item() for k in range(length)), default=0.0)
            total = sum(math.exp(X[b, q, k].item() - top) for k in range(length))
            for k in range(length):
                weights[b, q, k] = math.exp(X[b, q, k].item() - top) / total
    return weights


def attention_by_loops(attention, queries, keys, values, valid_lens):
    """The specification: e = v^T tanh(W q + U k), weights, and their sum of values."""
    W, U, v = attention.W_q.weight, attention.W_k.weight, attention.w_v.weight[0]
    B, Q, K = len(queries), queries.shape[1], keys.shape[1]
    scores = torch.zeros(B, Q, K, dtype=queries.dtype)
    for b in range(B):
        for q in range(Q):
            for k in range(K):
                inner = torch.tanh(W @ queries[b, q] + U @ keys[b, k])
                scores[b, q, k] = sum(v[h] * inner[h] for h in range(len(v)))
    weights = softmax_by_loops(scores.detach(), valid_lens)
    context = torch.zeros(B, Q, values.shape[2], dtype=queries.dtype)
    for b in range(B):
        for q in range(Q):
            for k in range(K):
                context[b, q] += weights[b, q, k] * values[b, k]
    return context, weights


@st.composite
def cases(draw):
    """Sizes that all may differ, lengths from 0, and a seed."""
    B, Q, K = draw(dims), draw(dims), draw(dims)
    per_query = draw(st.booleans())
    shape = (B, Q) if per_query else (B,)
    torch.manual_seed(draw(st.integers(0, 10**6)))
    return torch.randn(B, Q, K).double(), torch.randint(0, K + 1, shape)


@given(cases())
@settings(max_examples=100, deadline=None)
def test_masked_softmax_equals_the_loops(case):
    X, lens = case
    torch.testing.assert_close(masked_softmax(X, lens), softmax_by_loops(X, lens))


@given(cases(), dims, dims, dims, dims)
@settings(max_examples=60, deadline=None)
def test_attention_equals_the_loops(case, query_size, key_size, value_size, hiddens):
    X, lens = case
    B, Q, K = X.shape
    attention = AdditiveAttention(key_size, query_size, hiddens).double().eval()
    queries = torch.randn(B, Q, query_size).double()
    keys, values = (
        torch.randn(B, K, key_size).double(),
        torch.randn(B, K, value_size).double(),
    )
    with torch.no_grad():
        context = attention(queries, keys, values, lens)
        expected, weights = attention_by_loops(attention, queries, keys, values, lens)
    torch.testing.assert_close(context, expected)
    torch.testing.assert_close(attention.attention_weights, weights)


@given(cases())
@settings(max_examples=60, deadline=None)
def test_padding_gets_weight_and_gradient_of_exactly_zero(case):
    X, lens = case
    X.requires_grad_()
    weights = masked_softmax(X, lens)
    (weights * torch.randn_like(weights)).sum().backward()
    real = length_mask(lens, X.shape[2])
    real = real.unsqueeze(1).expand_as(X) if lens.dim() == 1 else real
    assert (weights[~real] == 0).all() and (X.grad[~real] == 0).all()
    assert torch.isfinite(X.grad).all()
    sums = weights.sum(-1)
    torch.testing.assert_close(sums, real.any(-1).to(sums.dtype))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize(
    "garbage", [6e4, -6e4, float("inf"), float("-inf"), float("nan")]
)
def test_what_stands_at_padding_never_matters(dtype, garbage):
    clean = torch.tensor([[[1.0, 2.0, -1.0, 0.0]], [[3.0, 0.5, 0.0, 0.0]]], dtype=dtype)
    dirty = clean.clone()
    lens = torch.tensor([3, 0])
    dirty[0, :, 3:], dirty[1] = garbage, garbage
    dirty.requires_grad_()
    weights = masked_softmax(dirty, lens)
    assert weights.dtype == dtype
    assert torch.equal(weights, masked_softmax(clean, lens))
    weights.square().sum().backward()
    assert torch.isfinite(dirty.grad).all() and (dirty.grad[1] == 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_is_close_to_double(dtype):
    torch.manual_seed(0)
    X, lens = (torch.randn(3, 2, 7) * 5).to(dtype), torch.tensor([7, 3, 0])
    expected = softmax_by_loops(X.double(), lens)
    torch.testing.assert_close(
        masked_softmax(X, lens).double(), expected, atol=5e-3, rtol=0
    )


def test_scores_as_large_as_the_type_allows():
    X = torch.tensor([[[6.5e4, -6.5e4, 6.5e4, 6.5e4]]], dtype=torch.float16)
    weights = masked_softmax(X, torch.tensor([3]))
    assert weights.tolist() == [[[0.5, 0.0, 0.5, 0.0]]]
    lowest = torch.full((1, 1, 3), torch.finfo(torch.float16).min, dtype=torch.float16)
    assert masked_softmax(lowest, torch.tensor([2])).tolist() == [[[0.5, 0.5, 0.0]]]


def test_gradcheck():
    torch.manual_seed(0)
    lens = torch.tensor([4, 2, 0])
    X = torch.randn(3, 2, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda X: masked_softmax(X, lens), X)
    attention = AdditiveAttention(3, 2, 5).double()
    inputs = [
        torch.randn(3, n, d, dtype=torch.double, requires_grad=True)
        for n, d in ((2, 2), (4, 3), (4, 6))
    ]
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, lens), inputs)


def test_no_input_is_modified():
    X, lens = torch.randn(2, 3, 4), torch.tensor([2, 0])
    before = X.clone(), lens.clone()
    masked_softmax(X, lens)
    assert torch.equal(X, before[0]) and torch.equal(lens, before[1])


def test_appending_padding_changes_nothing():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 2, 5)
    queries, keys, lens = (
        torch.randn(2, 1, 2),
        torch.randn(2, 4, 3),
        torch.tensor([4, 2]),
    )
    longer = torch.cat((keys, torch.full((2, 3, 3), 100.0)), dim=1)
    context = attention(queries, keys, keys, lens)
    torch.testing.assert_close(attention(queries, longer, longer, lens), context)
    assert (attention.attention_weights[:, :, 4:] == 0).all()


def test_a_sentence_alone_equals_the_sentence_in_a_batch():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 2, 5)
    queries, keys, lens = (
        torch.randn(3, 1, 2),
        torch.randn(3, 4, 3),
        torch.tensor([4, 2, 1]),
    )
    together = attention(queries, keys, keys, lens)
    for b in range(3):
        kept = keys[b : b + 1, : lens[b]]
        torch.testing.assert_close(
            attention(queries[b : b + 1], kept, kept), together[b : b + 1]
        )


def test_every_encoder_state_moves_the_weights():
    """The attention of a well-known tutorial never read the encoder. This one does."""
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 2, 5)
    queries, keys = torch.randn(1, 1, 2), torch.randn(1, 4, 3, requires_grad=True)
    attention(queries, keys, keys)
    before = attention.attention_weights
    (before * torch.randn(1, 1, 4)).sum().backward()
    assert (keys.grad.abs().sum(-1) > 0).all()
    for k in range(4):
        moved = keys.detach().clone()
        moved[0, k] += 0.1
        attention(queries, moved, keys)
        assert not torch.allclose(attention.attention_weights, before, atol=1e-4)


def test_the_query_moves_the_weights():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 2, 5)
    keys = torch.randn(1, 4, 3)
    attention(torch.randn(1, 2, 2), keys, keys)
    first, second = attention.attention_weights[0]
    assert not torch.allclose(first, second, atol=1e-4)


def test_dropout_acts_in_training_only_and_leaves_the_stored_weights_whole():
    torch.manual_seed(0)
    attention = AdditiveAttention(3, 2, 5, dropout=0.5)
    queries, keys = torch.randn(2, 3, 2), torch.randn(2, 4, 3)
    dropped = attention(queries, keys, keys)
    torch.testing.assert_close(attention.attention_weights.sum(-1), torch.ones(2, 3))
    attention.eval()
    assert not torch.allclose(attention(queries, keys, keys), dropped)


def test_encoder_and_decoder_sizes_may_differ():
    attention = AdditiveAttention(key_size=256, query_size=512, num_hiddens=128)
    keys = torch.randn(2, 5, 256)
    assert attention(torch.randn(2, 1, 512), keys, keys).shape == (2, 1, 256)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: masked_softmax(torch.randn(2, 3), None), "batch, queries, keys"),
        (
            lambda: masked_softmax(torch.ones(2, 3, 4, dtype=torch.long)),
            "floating-point",
        ),
        (
            lambda: masked_softmax(torch.randn(2, 3, 4), torch.tensor([1])),
            r"shape \(2,\)",
        ),
        (
            lambda: masked_softmax(torch.randn(2, 3, 4), torch.tensor([1, 5])),
            "0 and 4.*got 5",
        ),
        (lambda: masked_softmax(torch.randn(2, 3, 4), torch.tensor([-1, 2])), "got -1"),
        (
            lambda: AdditiveAttention(3, 2, 5)(*(torch.randn(1, 1, 3),) * 3),
            "queries must",
        ),
        (
            lambda: AdditiveAttention(3, 3, 5)(
                torch.randn(1, 1, 3), torch.randn(1, 2, 3), torch.randn(1, 4, 3)
            ),
            "a value for each key",
        ),
    ],
)
def test_shapes_that_do_not_fit_get_a_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("lens", [torch.tensor([1.0, 2.0]), [1, 2], 3])
def test_lengths_must_be_whole_numbers(lens):
    with pytest.raises((TypeError, AttributeError), match="whole numbers|shape"):
        masked_softmax(torch.randn(2, 3, 4), lens)


# --- the scores that additive attention is compared with ------------------------


def dot_by_loops(attention, query, keys, k):
    return sum(query[d] * keys[k, d] for d in range(len(query)))


def scaled_by_loops(attention, query, keys, k):
    return dot_by_loops(attention, query, keys, k) / math.sqrt(len(query))


def general_by_loops(attention, query, keys, k):
    W = attention.W_k.weight  # (query_size, key_size)
    return sum(
        query[i] * W[i, j] * keys[k, j]
        for i in range(W.shape[0])
        for j in range(W.shape[1])
    )


def location_by_loops(attention, query, keys, k):
    return sum(attention.W_q.weight[k, i] * query[i] for i in range(len(query)))


OTHERS = {  # (key size, query size), how to make one, its score as a loop
    "dot": ((3, 3), lambda: DotProductAttention(3, 3), dot_by_loops),
    "scaled dot": (
        (3, 3),
        lambda: DotProductAttention(3, 3, scaled=True),
        scaled_by_loops,
    ),
    "general": ((3, 2), lambda: BilinearAttention(3, 2), general_by_loops),
    "location": ((3, 2), lambda: LocationAttention(3, 2, 7), location_by_loops),
}


def other(name, seed=0):
    """One of the others in double precision, and the sizes of its keys and queries."""
    torch.manual_seed(seed)
    sizes, make, loops = OTHERS[name]
    return make().double(), *sizes, loops


@pytest.mark.parametrize("name", OTHERS)
@given(cases(), dims)
@settings(max_examples=30, deadline=None)
def test_other_scores_equal_the_loops(name, case, value_size):
    X, lens = case
    B, Q, K = X.shape
    attention, key_size, query_size, loops = other(name)
    queries = torch.randn(B, Q, query_size).double()
    keys = torch.randn(B, K, key_size).double()
    values = torch.randn(B, K, value_size).double()
    scores = torch.zeros(B, Q, K).double()
    with torch.no_grad():
        for b in range(B):
            for q in range(Q):
                for k in range(K):
                    scores[b, q, k] = loops(attention, queries[b, q], keys[b], k)
        context = attention(queries, keys, values, lens)
    weights = softmax_by_loops(scores, lens)
    torch.testing.assert_close(attention.attention_weights, weights)
    torch.testing.assert_close(context, weights @ values)


@pytest.mark.parametrize("name", OTHERS)
def test_other_scores_gradcheck(name):
    attention, key_size, query_size, _ = other(name)
    lens = torch.tensor([4, 2, 0])
    inputs = [
        torch.randn(3, n, d, dtype=torch.double, requires_grad=True)
        for n, d in ((2, query_size), (4, key_size), (4, 6))
    ]
    assert torch.autograd.gradcheck(lambda q, k, v: attention(q, k, v, lens), inputs)


@pytest.mark.parametrize("name", OTHERS)
def test_other_scores_with_padding(name):
    """No weight, no gradient, and nothing changes when padding is added."""
    attention, key_size, query_size, _ = other(name)
    queries, lens = torch.randn(2, 1, query_size).double(), torch.tensor([4, 2])
    keys = torch.randn(2, 4, key_size).double().requires_grad_()
    context = attention(queries, keys, keys, lens)
    assert (attention.attention_weights[1, :, 2:] == 0).all()
    context.square().sum().backward()
    assert (keys.grad[1, 2:] == 0).all() and keys.grad[0].abs().sum() > 0
    longer = torch.cat((keys.detach(), torch.full((2, 3, key_size), 100.0)), dim=1)
    torch.testing.assert_close(attention(queries, longer, longer, lens), context)


@pytest.mark.parametrize("name", [*OTHERS, "additive"])
def test_projected_keys_and_keys_give_the_same(name):
    if name == "additive":
        attention, key_size, query_size = AdditiveAttention(3, 2, 5).double(), 3, 2
    else:
        attention, key_size, query_size, _ = other(name)
    queries = torch.randn(2, 3, query_size).double()
    keys, lens = torch.randn(2, 4, key_size).double(), torch.tensor([4, 1])
    context = attention(queries, keys, keys, lens)
    parts = attention.attend(queries, attention.project_keys(keys), keys, lens)
    torch.testing.assert_close(parts, (context, attention.attention_weights))


@pytest.mark.parametrize("name", ["dot", "scaled dot", "general"])
def test_other_scores_read_the_keys(name):
    attention, key_size, query_size, _ = other(name)
    queries = torch.randn(1, 1, query_size).double()
    keys = torch.randn(1, 4, key_size).double()
    attention(queries, keys, keys)
    before = attention.attention_weights
    keys[0, 2] += 0.5
    attention(queries, keys, keys)
    assert not torch.allclose(attention.attention_weights, before, atol=1e-4)


def test_location_attention_is_blind_to_the_keys():
    attention, key_size, query_size, _ = other("location")
    queries = torch.randn(2, 1, query_size).double()
    weights = []
    for _ in range(2):
        keys = torch.randn(2, 4, key_size).double()
        attention(queries, keys, keys)
        weights.append(attention.attention_weights)
    assert torch.equal(*weights)
    assert not torch.allclose(weights[0][0], weights[0][1], atol=1e-4)  # query decides


def test_scaling_keeps_scores_of_random_vectors_near_1():
    torch.manual_seed(0)
    queries, keys = torch.randn(20, 10, 400), torch.randn(20, 10, 400)
    plain, scaled = (
        DotProductAttention(400, 400, scaled=scaled).score(queries, keys).std().item()
        for scaled in (False, True)
    )
    assert 18 < plain < 22 and 0.9 < scaled < 1.1


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: DotProductAttention(256, 512), "256 and 512.*BilinearAttention"),
        (
            lambda: LocationAttention(3, 2, 4)(
                torch.randn(1, 1, 2), torch.randn(1, 5, 3), torch.randn(1, 5, 3)
            ),
            "knows 4 positions, but there are 5",
        ),
        (lambda: BilinearAttention(3, 2)(*(torch.randn(1, 1, 3),) * 3), "queries must"),
        (
            lambda: BilinearAttention(3, 2)(
                torch.randn(1, 1, 2), torch.randn(1, 4, 2), torch.randn(1, 4, 2)
            ),
            "keys must",
        ),
    ],
)
def test_other_scores_answer_wrong_sizes_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
