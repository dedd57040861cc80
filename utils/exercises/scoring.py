"""The exercises of notebook 02.

B sentences in a batch, Q queries, K keys, H hidden units.
"""

import math

import torch
from torch.nn import functional as F

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw

# (B, Q, K, query_size, key_size, H). In the fourth, the joined form's matrix is square.
SIZES = [
    (2, 3, 4, 5, 6, 7),
    (2, 3, 4, 5, 6, 7),
    (3, 1, 5, 4, 6, 2),
    (1, 2, 3, 6, 4, 10),
    (4, 4, 4, 4, 4, 4),
]
CASES = [
    draw(n, (B, Q, q), (B, K, k), (H, q), (H, k), (H,))
    for n, (B, Q, K, q, k, H) in enumerate(SIZES)
]


def scores_by_loops(queries, keys, W, U, v):
    """v · tanh(W query + U key): (B, Q, query_size), (B, K, key_size) -> (B, Q, K)."""
    return torch.stack(
        [
            torch.stack(
                [
                    torch.stack(
                        [v @ torch.tanh(W @ query + U @ key) for key in keys[b]]
                    )
                    for query in queries[b]
                ]
            )
            for b in range(len(queries))
        ]
    )


def _query(q, W):
    return (q @ W.T).unsqueeze(2)  # (B, Q, 1, H)


def _key(k, U):
    return (k @ U.T).unsqueeze(1)  # (B, 1, K, H)


def _sums(q, k, W, U):
    return _query(q, W) + _key(k, U)


MISTAKES = {
    "the tanh is missing. Without it, the query adds one number to all scores of a "
    "row, and softmax drops it.": [lambda q, k, W, U, v: _sums(q, k, W, U) @ v],
    "the tanh comes too late. It stands between the sum and the product with v.": [
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U) @ v)
    ],
    "tanh is taken of each projection alone. Query and key must be added before it, or "
    "they never meet.": [
        lambda q, k, W, U, v: (torch.tanh(_query(q, W)) + torch.tanh(_key(k, U))) @ v
    ],
    "W and U are exchanged: W projects the query, U the key. With equal sizes, nothing "
    "raises.": [lambda q, k, W, U, v: scores_by_loops(q, k, U, W, v)],
    "queries and keys are exchanged: a row belongs to a query, a column to a key.": [
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).transpose(1, 2),
        lambda q, k, W, U, v: scores_by_loops(k, q, W, U, v),
    ],
    "the query is never read: every target word would look at the same place.": [
        lambda q, k, W, U, v: scores_by_loops(0 * q, k, W, U, v)
    ],
    "the keys are never read: the encoder has no say in the scores.": [
        lambda q, k, W, U, v: scores_by_loops(q, 0 * k, W, U, v)
    ],
    "these are weights. Scores are asked for: the numbers before the softmax.": [
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).softmax(-1),
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).softmax(1),
    ],
    "scaled by a square root: that is the scaled dot product's, not this score's.": [
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v) / math.sqrt(len(v))
    ],
    "this is a sigmoid where the formula has a tanh.": [
        lambda q, k, W, U, v: torch.sigmoid(_sums(q, k, W, U)) @ v
    ],
    "this is a ReLU where the formula has a tanh.": [
        lambda q, k, W, U, v: torch.relu(_sums(q, k, W, U)) @ v
    ],
    "v is missing: it says how much each of the H numbers counts.": [
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U)).sum(-1),
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U)).mean(-1),
    ],
    "the projections are multiplied. The formula adds them.": [
        lambda q, k, W, U, v: torch.tanh(_query(q, W) * _key(k, U)) @ v
    ],
    "the projections are multiplied: einsum multiplies what it is given. The formula "
    "adds them, and takes the tanh of the sum.": [
        lambda q, k, W, U, v: torch.einsum("bqh,bkh,h->bqk", q @ W.T, k @ U.T, v),
        lambda q, k, W, U, v: torch.einsum(
            "bqh,bkh,h->bqk", torch.tanh(q @ W.T), torch.tanh(k @ U.T), v
        ),
        lambda q, k, W, U, v: torch.einsum("bqh,bkh->bqk", q @ W.T, k @ U.T),
        lambda q, k, W, U, v: torch.tanh(
            torch.einsum("bqh,bkh,h->bqk", q @ W.T, k @ U.T, v)
        ),
    ],
    "the projections are subtracted. The formula adds them.": [
        lambda q, k, W, U, v: torch.tanh(_query(q, W) - _key(k, U)) @ v
    ],
    "query number n is added to key number n alone. Each query has to meet each key: "
    "an axis of length 1 in each of the two (unsqueeze) gives (B, Q, 1, H) + (B, 1, K, "
    "H).": [
        lambda q, k, W, U, v: torch.tanh(q @ W.T + k @ U.T) @ v,
        lambda q, k, W, U, v: torch.tanh(q @ W.T + k @ U.T).sum(-1),
    ],
    "one of the two has an axis of length 1, and not the other; so axes meet that "
    "don't belong together. (B, Q, 1, H) + (B, 1, K, H) pairs each query with each "
    "key.": [
        lambda q, k, W, U, v: torch.tanh(_query(q, W) + k @ U.T) @ v,
        lambda q, k, W, U, v: torch.tanh(q @ W.T + _key(k, U)) @ v,
    ],
    "every sentence is scored against the keys of the first.": [
        lambda q, k, W, U, v: scores_by_loops(q, k[:1].expand_as(k), W, U, v)
    ],
    "every sentence is scored with the queries of the first.": [
        lambda q, k, W, U, v: scores_by_loops(q[:1].expand_as(q), k, W, U, v)
    ],
}
NOT_TRANSPOSED = (
    "a matrix stands on the wrong side: a row vector x times W is x @ W.T. With equal "
    "sizes, nothing raises and the result is wrong."
)

additive_scores = Exercise(
    "additive_scores",
    scores_by_loops,
    cases=CASES,
    mistakes=MISTAKES
    | {NOT_TRANSPOSED: [lambda q, k, W, U, v: scores_by_loops(q, k, W.T, U.T, v)]},
    gradients=True,
)


def joined_by_loops(queries, keys, M, v):
    """queries, keys, M (H, query_size + key_size), v (H,) -> scores (B, Q, K)."""
    return torch.stack(
        [
            torch.stack(
                [
                    torch.stack(
                        [v @ torch.tanh(M @ torch.cat((q, k))) for k in keys[b]]
                    )
                    for q in queries[b]
                ]
            )
            for b in range(len(queries))
        ]
    )


def _key_first(queries, keys, M, v):
    """The joined form with the key first. The sum of sizes fits, so nothing raises."""
    k = keys.shape[-1]
    return scores_by_loops(keys, queries, M[:, :k], M[:, k:], v).transpose(1, 2)


def _as_joined(mistake):
    """A mistake of additive scoring, for a matrix M = [W U]."""

    def wrong(queries, keys, M, v):
        q = queries.shape[-1]
        return mistake(queries, keys, M[:, :q], M[:, q:], v)

    return wrong


JOINED_CASES = [(q, k, torch.cat((W, U), dim=1), v) for q, k, W, U, v in CASES]
JOINED_MISTAKES = (
    {
        "the key comes first. In [query; key], the left columns of M belong to the "
        "query. The sizes add up either way, so nothing raises.": [_key_first],
        "torch.cat joins, it doesn't pair: query number n stands beside key number n "
        "alone. First expand both to (B, Q, K, ...), so that each query meets each "
        "key.": [
            lambda q, k, M, v: torch.tanh(torch.cat((q, k), dim=-1) @ M.T) @ v,
            lambda q, k, M, v: (
                torch.tanh(torch.cat((q.unsqueeze(2), k.unsqueeze(1)), dim=-1) @ M.T)
                @ v
            ),
        ],
    }
    | {sentence: list(map(_as_joined, some)) for sentence, some in MISTAKES.items()}
    | {NOT_TRANSPOSED: [lambda q, k, M, v: joined_by_loops(q, k, M.T, v)]}
)

joined_scores = Exercise(
    "joined_scores", joined_by_loops, JOINED_CASES, JOINED_MISTAKES, gradients=True
)


def weights_by_loops(scores):
    """Scores (B, Q, K) -> weights (B, Q, K)."""
    weights = torch.zeros_like(scores)
    for b in range(scores.shape[0]):
        for q in range(scores.shape[1]):
            exps = [score.exp() for score in scores[b, q]]
            for k in range(len(exps)):
                weights[b, q, k] = exps[k] / sum(exps)
    return weights


SHAPES = [(2, 3, 4), (2, 3, 4), (3, 1, 5), (1, 4, 2), (4, 4, 4)]

attention_weights = Exercise(
    "attention_weights",
    weights_by_loops,
    cases=[draw(n, shape) for n, shape in enumerate(SHAPES)],
    mistakes={
        "the weights sum to 1 over the queries, not over the keys. With one query, all "
        "of them are 1: which axis did you normalise?": [lambda x: x.softmax(1)],
        "the weights sum to 1 over the batch, not over the keys: which axis did you "
        "normalise?": [lambda x: x.softmax(0)],
        "all numbers together sum to 1. Each row has to, by itself.": [
            lambda x: x.flatten().softmax(0).view_as(x)
        ],
        "each sentence's numbers together sum to 1. Each row has to, by itself.": [
            lambda x: x.flatten(1).softmax(1).view_as(x)
        ],
        "these are the scores as they came.": [lambda x: x],
        "a sigmoid treats every score alone. The weights of a row have to sum to 1.": [
            lambda x: x.sigmoid()
        ],
        "exp makes them positive; the division is missing.": [lambda x: x.exp()],
        "the rows sum to 1, but without exp a weight can be negative.": [
            lambda x: x / x.sum(-1, keepdim=True)
        ],
        "these are logarithms of the weights.": [lambda x: x.log_softmax(-1)],
        "the lowest score gets the largest weight: a sign is turned round.": [
            lambda x: (-x).softmax(-1)
        ],
        "divided by the largest, not by the sum.": [
            lambda x: x.exp() / x.exp().amax(-1, keepdim=True)
        ],
        "the scores are scaled first. Softmax takes them as they are.": [
            lambda x: (x / math.sqrt(x.shape[-1])).softmax(-1)
        ],
        "all weights are equal: the scores are never read.": [
            lambda x: torch.full_like(x, 1 / x.shape[-1])
        ],
        "all weight is on the best key. Softmax leaves some to the others.": [
            lambda x: F.one_hot(x.argmax(-1), x.shape[-1]).float()
        ],
    },
    gradients=True,
)
