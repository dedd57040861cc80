"""Random inputs to attention and decoding: an answer without NaN, or our error.

LEARNING_TO_ALIGN_FAULTS=10000 tries that many inputs for each instead of 200.
"""

import pytest
import torch
from helpers import ANYTHING, TEXTS, tried, tries
from hypothesis import given
from hypothesis import strategies as st

from utils.attention import masked_softmax
from utils.data import pad
from utils.decoding import beam_search, greedy_decode, translate, translate_tokens
from utils.models import build_model
from utils.text import SPECIALS, Vocab, tokenize

VOCABS = Vocab([["a", "b", "我"]], "zh"), Vocab([["x", "y"]], "fr")


def test_an_error_of_another_kind_is_found():
    with pytest.raises(TypeError):
        tried(len, 3)
    with pytest.raises(KeyError):
        tried({}.__getitem__, "a")
    with pytest.raises(TypeError):  # from inside utils, but not raised by it
        tried(pad, [3])
    assert tried(tokenize, 3, "en") is None


# --- attention -------------------------------------------------------------------

TYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EXTREME = st.sampled_from([0.0, 1.0, -1.0, 1e-30, 80.0, 6e4, -6e4, "largest", "lowest"])


@st.composite
def scores(draw):
    """Finite scores (B, Q, K) of any size and type, whatever stands at the padding."""
    B, Q, K = (draw(st.integers(1, 3)) for _ in range(3))
    dtype = draw(st.sampled_from(TYPES))
    limits = torch.finfo(dtype)
    values = draw(st.lists(EXTREME, min_size=B * Q * K, max_size=B * Q * K))
    named = {"largest": limits.max, "lowest": limits.min}
    X = torch.tensor([named.get(v, v) for v in values], dtype=torch.float64)
    X = X.clamp(limits.min, limits.max).to(dtype).view(B, Q, K)
    shape = draw(st.sampled_from([(B,), (B, Q)]))
    lens = draw(st.lists(st.integers(0, K), min_size=B * Q, max_size=B * Q))
    lens = torch.tensor(lens[: B if len(shape) == 1 else B * Q]).view(shape)
    garbage = draw(st.sampled_from([0.0, torch.nan, torch.inf, -torch.inf]))
    each = lens if len(shape) == 2 else lens.unsqueeze(1)
    padding = (torch.arange(K) >= each.unsqueeze(-1)).expand(B, Q, K)
    return X.masked_fill(padding, garbage), lens, padding


@tries
@given(scores())
def test_weights_of_any_scores_are_finite(case):
    X, lens, padding = case
    X.requires_grad_()
    weights = masked_softmax(X, lens)
    assert weights.isfinite().all() and (weights[padding] == 0).all()
    real = (~padding).any(dim=-1)
    sums = weights.sum(dim=-1).double()
    torch.testing.assert_close(sums, real.double(), atol=0.02, rtol=0)
    (weights * torch.arange(weights.shape[-1])).sum().backward()
    assert X.grad.isfinite().all() and (X.grad[padding] == 0).all()


@tries
@given(
    st.lists(st.integers(0, 3), max_size=4),
    st.sampled_from([*TYPES, torch.int64, torch.bool]),
    st.none() | st.integers(-3, 5) | st.lists(st.integers(-3, 5), max_size=4),
    st.sampled_from([torch.int64, torch.int32, torch.float32, torch.bool]),
)
def test_scores_and_lengths_of_any_shape(shape, dtype, lens, lens_dtype):
    lens = None if lens is None else torch.tensor(lens, dtype=lens_dtype)
    weights = tried(masked_softmax, torch.zeros(shape, dtype=dtype), lens)
    assert weights is None or weights.isfinite().all()


# --- decoding --------------------------------------------------------------------


def random_model(kind, seed, scale):
    """A model that nothing has trained, with parameters as large as asked."""
    torch.manual_seed(seed)
    model = build_model(kind, len(VOCABS[0]), len(VOCABS[1]), 3, 4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(scale)
    return model


MODELS = st.builds(
    random_model,
    st.sampled_from(["attention", "fixed"]),
    st.integers(0, 20),
    st.sampled_from([0.0, 1.0, 30.0, 1e4, 1e15]),
)
NUMBERS = st.none() | st.integers(-2, 6) | st.floats() | st.booleans() | TEXTS
PENALTIES = st.sampled_from([0.0, 0.6, 1.0, 3]) | st.floats() | st.none() | TEXTS


def test_the_name_of_a_special_is_listed_as_unknown():
    model = random_model("attention", 0, 1.0)
    [found] = translate_tokens(model, [["a", *SPECIALS]], *VOCABS, max_steps=3)
    assert found.unknown == list(SPECIALS)


@tries
@given(MODELS, TEXTS | ANYTHING, NUMBERS, NUMBERS, PENALTIES)
def test_translate_anything(model, sentence, max_steps, beam_size, length_penalty):
    found = tried(
        translate,
        model,
        sentence,
        *VOCABS,
        max_steps=max_steps,
        beam_size=beam_size,
        length_penalty=length_penalty,
    )
    for each in found if isinstance(found, list) else [found]:
        if each is not None:
            check(each)


def check(found):
    weights = found.attention_weights
    assert isinstance(found.text, str)
    if weights is not None:
        assert weights.shape == (len(found.tokens), len(found.source_tokens))
        assert weights.isfinite().all()
        torch.testing.assert_close(weights.sum(1), torch.ones(len(weights)))


@st.composite
def sources(draw):
    """Ids and lengths that may or may not fit the model and each other."""
    B, S = draw(st.integers(0, 3)), draw(st.integers(0, 4))
    ids = draw(st.lists(st.integers(-1, 7), min_size=B * S, max_size=B * S))
    lens = draw(st.lists(st.integers(-1, S + 1), max_size=B + 1))
    whole = draw(st.sampled_from([torch.int64, torch.int64, torch.float32]))
    return torch.tensor(ids, dtype=whole).view(B, S), torch.tensor(lens, dtype=whole)


GOOD_SOURCE = torch.tensor([[4, 5, 2], [6, 2, 0]]), torch.tensor([3, 2])


@tries
@given(MODELS, sources() | st.just(GOOD_SOURCE), NUMBERS, NUMBERS, PENALTIES)
def test_search_anything(model, source, beam_size, max_steps, length_penalty):
    found = tried(beam_search, model, *source, beam_size, max_steps, length_penalty)
    if found is not None:
        ids, log_probs, weights = found
        assert len(ids) == len(log_probs) == len(source[0])
        assert log_probs.isfinite().all() and (log_probs <= 0).all()
        assert weights is None or weights.isfinite().all()
    found = tried(greedy_decode, model, *source, 5)
    if found is not None:
        ids, weights = found
        assert weights is None or weights.isfinite().all()
