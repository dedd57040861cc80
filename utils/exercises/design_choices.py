"""The exercises of notebook 08. B sentences, Q queries, K keys, H hidden units."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import Attention
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw
from utils.exercises.scoring import JOINED_CASES, JOINED_MISTAKES, joined_by_loops


def concat_by_loops(queries, keys, M, v):
    """A class, made by kind(key_size, query_size, num_hiddens), with W and w_v."""
    return joined_by_loops(queries, keys, M, v)


def _scores_of(kind, queries, keys, M, v):
    """A learner's scores, for a class with W and w_v and these two weights."""
    attention = kind(keys.shape[-1], queries.shape[-1], len(v))
    for name, weight in (("W", M), ("w_v", v.unsqueeze(0))):
        layer = getattr(attention, name)
        if layer.bias is not None:
            raise ValueError(f"{name} has a bias here: nn.Linear(..., bias=False)")
        if layer.weight.shape != weight.shape:
            raise ValueError(
                f"{name}.weight should have shape {tuple(weight.shape)}, it has "
                f"{tuple(layer.weight.shape)}"
            )
        del layer.weight
        layer.weight = weight  # so that a gradient reaches the case's own tensor
    return attention.score(queries, attention.project_keys(keys))


def _as_class(scores):
    """The class that a learner would write, for a mistake in scores(q, k, M, v)."""

    class Mistake(Attention):
        def __init__(self, key_size, query_size, num_hiddens):
            super().__init__(key_size, query_size)
            self.W = nn.Linear(query_size + key_size, num_hiddens, bias=False)
            self.w_v = nn.Linear(num_hiddens, 1, bias=False)

        def project_keys(self, keys):
            return keys

        def score(self, queries, keys):
            return scores(queries, keys, self.W.weight, self.w_v.weight[0])

    return Mistake


concat_attention = Exercise(
    "concat_attention",
    concat_by_loops,
    JOINED_CASES,
    {
        sentence: list(map(_as_class, some))
        for sentence, some in JOINED_MISTAKES.items()
    },
    gradients=True,
    unwrap=_scores_of,
    given=("utils.attention.",),
)


def scaled_dot_by_loops(queries, keys):
    """queries (B, Q, H), keys (B, K, H) -> scaled dot-product scores (B, Q, K)."""
    scores = torch.zeros(len(queries), queries.shape[1], keys.shape[1])
    for b, q, k in np.ndindex(*scores.shape):
        product = sum(x * y for x, y in zip(queries[b, q], keys[b, k], strict=True))
        scores[b, q, k] = product / math.sqrt(keys.shape[2])
    return scores


def _over(number):
    """Dot products over a number."""
    return lambda q, k: q @ k.transpose(1, 2) / number(q, k)


SHAPES = [(2, 3, 4, 5), (2, 3, 4, 5), (3, 1, 2, 6), (1, 2, 5, 3), (4, 4, 4, 4)]

scaled_dot = Exercise(
    "scaled_dot",
    scaled_dot_by_loops,
    cases=[draw(n, (B, Q, H), (B, K, H)) for n, (B, Q, K, H) in enumerate(SHAPES)],
    mistakes={
        "divided by too much: the longer the vectors, the nearer all scores come to 0, "
        "and all weights to each other. How does the typical size of a sum of H "
        "products grow with H?": [_over(lambda q, k: q.shape[2])],
        "not scaled.": [_over(lambda q, k: 1.0)],
        "multiplied by the square root: the scores grow with the size twice.": [
            _over(lambda q, k: q.shape[2] ** -0.5)
        ],
        "scaled by the number of keys. It is the size of a vector that counts.": [
            _over(lambda q, k: k.shape[1] ** 0.5)
        ],
        "scaled by the number of queries. It is the size of a vector that counts.": [
            _over(lambda q, k: q.shape[1] ** 0.5)
        ],
        "scaled by the batch. It is the size of a vector that counts.": [
            _over(lambda q, k: len(q) ** 0.5)
        ],
        "these are weights. Scores are asked for.": [
            lambda q, k: scaled_dot_by_loops(q, k).softmax(-1)
        ],
        "queries and keys are exchanged: a row belongs to a query.": [
            lambda q, k: scaled_dot_by_loops(k, q)
        ],
        "divided by the vectors' lengths: this is the cosine.": [
            lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(1, 2)
        ],
        "divided by each query's length. The scale is one number for all.": [
            _over(lambda q, k: q.norm(dim=-1, keepdim=True))
        ],
        "the keys aren't transposed. With equal sizes, nothing raises.": [
            lambda q, k: q @ k / math.sqrt(q.shape[2])
        ],
        "these are weights, scaled after the softmax: they no longer sum to 1.": [
            lambda q, k: (q @ k.transpose(1, 2)).softmax(-1) / math.sqrt(q.shape[2])
        ],
    },
    gradients=True,
)
