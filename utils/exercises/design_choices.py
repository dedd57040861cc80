"""The exercises of notebook 08. B sentences, Q queries, K keys, H hidden units."""

import math
from statistics import mean, median

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import Attention
from utils.exercises.old_engine import Exercise
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


def compared_by_loops(first, second):
    """Scores of two arms, one a seed -> "first", "second", or "not told apart"."""
    for name, a, b in (("first", first, second), ("second", second, first)):
        if all(x > y for x in a for y in b):
            return name
    return "not told apart"


def _by(number, margin=0.0):
    """Whose number of its scores is the larger, by more than a margin."""

    def larger(a, b):
        if abs(number(a) - number(b)) <= margin:
            return "not told apart"
        return "first" if number(a) > number(b) else "second"

    return larger


def _seed_by_seed(a, b):
    pairs = list(zip(a, b, strict=False))
    if all(x > y for x, y in pairs):
        return "first"
    return "second" if all(x < y for x, y in pairs) else "not told apart"


def _equal_is_apart(a, b):
    if min(a) >= max(b):
        return "first"
    return "second" if min(b) >= max(a) else "not told apart"


def _exchanged(a, b):
    return compared_by_loops(b, a)


def _never_second(a, b):
    return "first" if min(a) > max(b) else "not told apart"


told_apart = Exercise(
    "told_apart",
    compared_by_loops,
    cases=[
        ([90.5, 91.0, 92.0], [88.0, 89.0, 90.0]),
        ([88.0, 89.0, 90.0], [90.5, 91.0, 92.0]),
        ([85.0, 90.0, 95.0], [84.0, 89.0, 94.0]),  # each seed, and the mean, is above
        ([70.0, 71.0, 99.0], [75.0, 76.0, 77.0]),
        ([80.0, 81.0, 82.0], [78.0, 79.0, 80.0]),  # they touch
        ([78.0, 79.0, 80.0], [80.0, 81.0, 82.0]),
        ([50.0, 60.0, 70.0], [20.0, 10.0, 49.5]),
        ([60.5, 61.0], [60.0, 20.0, 40.0]),
        ([5.0, 5.0], [5.0, 5.0]),
        ([20.0, 45.0, 10.0], [50.0, 46.0]),
        ([90.0, 89.0, 91.0], [91.5, 88.0, 87.0]),
        ([10.0, 80.0, 82.0], [50.0, 60.0, 70.0]),
    ],
    mistakes={
        "the means are compared. A mean can lie higher although the seeds overlap.": [
            _by(mean)
        ],
        "the best seeds are compared. The worst seed of the better arm has to beat "
        "them, too.": [_by(max)],
        "the worst seeds are compared. They have to beat the best seed of the "
        "other arm, too.": [_by(min)],
        "the seeds are compared in pairs: the first with the first. Each seed of the "
        "better arm has to beat every seed of the other.": [_seed_by_seed],
        "two seeds are equal, and the arms still count as apart.": [_equal_is_apart],
        "first and second are exchanged.": [_exchanged],
        "the second arm can be ahead, too.": [_never_second],
        "the middle seeds are compared. The others count as well.": [_by(median)],
    },
)
