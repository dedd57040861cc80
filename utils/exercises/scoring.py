"""The exercises of notebook 02.

B sentences in a batch, Q queries, K keys, H hidden units.
"""

import math

import torch
from torch.nn import functional as F

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw

# (B, Q, K, query_size, key_size, H). In the fourth, the joined form's matrix is square;
# then only the sizes of the vectors are equal, only their numbers, and everything.
SIZES = [
    (2, 3, 4, 5, 6, 7),
    (2, 3, 4, 5, 6, 7),
    (3, 1, 5, 4, 6, 2),
    (1, 2, 3, 6, 4, 10),
    (2, 3, 5, 4, 4, 6),
    (2, 3, 3, 4, 5, 6),
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


def _still_zero(*parts):
    """The scores, with zeros outside of `parts` (sentences, queries, keys)."""

    def wrong(q, k, W, U, v):
        scores = scores_by_loops(q, k, W, U, v)
        reached = torch.zeros_like(scores)
        reached[parts] = 1
        return scores * reached

    return wrong


def _ranges_exchanged(q, k, W, U, v):
    """Loops in which the query's number counts the keys."""
    return [q[0, n] for n in range(k.shape[1])] and scores_by_loops(q, k, W, U, v)


ALL, FROM_2, TO_LAST = slice(None), slice(1, None), slice(-1)
RESHAPED = (
    "the numbers are at the wrong places: reshape and view keep their order, and "
    "exchange no axes. Which method exchanges two?"
)
A_MEAN = (
    "this is a mean where a sum is asked for: the numbers are too small, by the same "
    "factor."
)

MISTAKES = {
    "the tanh is missing. Without it, the query adds one number to all scores of a"
    " row, and softmax drops it.": [lambda q, k, W, U, v: _sums(q, k, W, U) @ v],
    "the tanh comes too late. It stands between the sum and the product with v.": [
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U) @ v),
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U).sum(-1)) * v.sum(),
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U).sum(-1)),
    ],
    "the tanh comes too early, before the matrices. The vectors are projected and "
    "added as they are.": [
        lambda q, k, W, U, v: _sums(q.tanh(), k.tanh(), W, U) @ v,
        lambda q, k, W, U, v: scores_by_loops(q.tanh(), k.tanh(), W, U, v),
    ],
    "tanh is taken of each projection alone. Query and key must be added before it,"
    " or they never meet.": [
        lambda q, k, W, U, v: (torch.tanh(_query(q, W)) + torch.tanh(_key(k, U))) @ v
    ],
    "W and U are exchanged: W projects the query, U the key. With equal sizes, "
    "nothing raises.": [lambda q, k, W, U, v: scores_by_loops(q, k, U, W, v)],
    "queries and keys are exchanged: a row belongs to a query, a column to a key.": [
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).transpose(1, 2),
        lambda q, k, W, U, v: scores_by_loops(k, q, W, U, v),
        _ranges_exchanged,
    ],
    "some scores, or all, are still 0: from where to where do the loops run, which "
    "places do they write to, and where does `return` stand?": [
        *(
            _still_zero(ALL, queries, keys)
            for queries in (ALL, FROM_2, TO_LAST)
            for keys in (ALL, FROM_2, TO_LAST)
            if (queries, keys) != (ALL, ALL)
        ),
        *(_still_zero(*[0] * n) for n in (1, 2, 3)),
        _still_zero(slice(0)),
    ],
    RESHAPED: [
        lambda q, k, W, U, v: (
            scores_by_loops(q, k, W, U, v)
            .transpose(1, 2)
            .reshape(len(q), q.shape[1], k.shape[1])
        )
    ],
    "one query's scores, of the first or the last, stand in every row.": [
        lambda q, k, W, U, v: scores_by_loops(q[:, :1].expand_as(q), k, W, U, v),
        lambda q, k, W, U, v: scores_by_loops(q[:, -1:].expand_as(q), k, W, U, v),
    ],
    A_MEAN: [lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v) / len(v)],
    "the query is never read: every target word would look at the same place.": [
        lambda q, k, W, U, v: scores_by_loops(0 * q, k, W, U, v)
    ],
    "the keys are never read: the encoder has no say in the scores.": [
        lambda q, k, W, U, v: scores_by_loops(q, 0 * k, W, U, v)
    ],
    "these are weights. Scores are asked for: the numbers before the softmax.": [
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).softmax(-1),
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).softmax(1),
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).log_softmax(-1),
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
    "the projections are multiplied (by *, @, bmm or einsum). The formula adds them, "
    "and takes the tanh of the sum.": [
        lambda q, k, W, U, v: torch.tanh(_query(q, W) * _key(k, U)) @ v,
        lambda q, k, W, U, v: torch.einsum("bqh,bkh,h->bqk", q @ W.T, k @ U.T, v),
        lambda q, k, W, U, v: torch.einsum(
            "bqh,bkh,h->bqk", torch.tanh(q @ W.T), torch.tanh(k @ U.T), v
        ),
        lambda q, k, W, U, v: torch.einsum("bqh,bkh->bqk", q @ W.T, k @ U.T),
        lambda q, k, W, U, v: torch.einsum(
            "bqh,bkh->bqk", torch.tanh(q @ W.T), torch.tanh(k @ U.T)
        ),
        lambda q, k, W, U, v: torch.tanh(
            torch.einsum("bqh,bkh,h->bqk", q @ W.T, k @ U.T, v)
        ),
    ],
    "the projections are joined (torch.cat). The formula adds them.": [
        *(
            lambda q, k, W, U, v, axis=axis: (
                torch.tanh(torch.cat((q @ W.T, k @ U.T), dim=axis)) @ v
            )
            for axis in (0, 1, 2)
        ),
    ],
    "one matrix projects both, the query and the key. Each has its own: W and U.": [
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, W)) @ v,
        lambda q, k, W, U, v: torch.tanh(_sums(q, k, U, U)) @ v,
    ],
    "a projection is missing: W is for the query, and U for the key.": [
        lambda q, k, W, U, v: torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) @ v,
        lambda q, k, W, U, v: torch.tanh(_query(q, W) + k.unsqueeze(1)) @ v,
        lambda q, k, W, U, v: torch.tanh(q.unsqueeze(2) + _key(k, U)) @ v,
    ],
    "the projections are subtracted. The formula adds them.": [
        lambda q, k, W, U, v: torch.tanh(_query(q, W) - _key(k, U)) @ v
    ],
    "query number n is added to key number n alone, or an error is raised: (B, Q, "
    "H) + (B, K, H) has no axis of its own for the keys. Each query has to meet "
    "each key: what does unsqueeze do to each of the two?": [
        lambda q, k, W, U, v: torch.tanh(q @ W.T + k @ U.T) @ v,
        lambda q, k, W, U, v: torch.tanh(q @ W.T + k @ U.T).sum(-1),
        lambda q, k, W, U, v: (q @ W.T + k @ U.T) @ v,
        lambda q, k, W, U, v: v @ torch.tanh(q @ W.T + k @ U.T),
        lambda q, k, W, U, v: torch.tanh(q @ W.T + k @ U.T),
        lambda q, k, W, U, v: torch.tanh(q @ W.T + (k @ U.T).transpose(1, 2)) @ v,
        lambda q, k, W, U, v: scores_by_loops(q, k, W, U, v).diagonal(dim1=1, dim2=2),
    ],
    "one of the two has an axis of length 1, and not the other; so axes meet that "
    "don't belong together. (unsqueeze(0) is no help: PyTorch adds axes in front by"
    " itself.) Write the two shapes one below the other, lined up at the right.": [
        lambda q, k, W, U, v: torch.tanh(_query(q, W) + k @ U.T) @ v,
        lambda q, k, W, U, v: torch.tanh(q @ W.T + _key(k, U)) @ v,
        lambda q, k, W, U, v: torch.tanh(_query(q, W) + k @ U.T).sum(-1),
        lambda q, k, W, U, v: torch.tanh((q @ W.T).unsqueeze(1) + k @ U.T) @ v,
        lambda q, k, W, U, v: torch.tanh(q @ W.T + (k @ U.T).unsqueeze(2)) @ v,
        lambda q, k, W, U, v: torch.tanh(_query(q, W) + (k @ U.T).unsqueeze(0)) @ v,
    ],
    "an axis of length 1 stands at the wrong place. It has to stand where the other "
    "one has its own axis: for the keys in one, for the queries in the other.": [
        lambda q, k, W, U, v: torch.tanh((q @ W.T).unsqueeze(3) + _key(k, U)) @ v,
        lambda q, k, W, U, v: torch.tanh((q @ W.T).unsqueeze(1) + _key(k, U)) @ v,
        lambda q, k, W, U, v: torch.tanh(_query(q, W) + (k @ U.T).unsqueeze(2)) @ v,
        lambda q, k, W, U, v: (
            torch.tanh((q @ W.T).unsqueeze(-1) + (k @ U.T).unsqueeze(-1)) @ v
        ),
    ],
    "the copies are in the wrong order. repeat puts whole copies after one another:"
    " done to both, query and key go round together, and most pairs are never made.": [
        lambda q, k, W, U, v: (
            torch.tanh(
                (q @ W.T).repeat(1, k.shape[1], 1) + (k @ U.T).repeat(1, q.shape[1], 1)
            )
            @ v
        ).view(len(q), q.shape[1], k.shape[1])
    ],
    "every score of a row belongs to one key: is the key picked with the number of "
    "the query?": [
        lambda q, k, W, U, v: (
            scores_by_loops(q, k[:, : q.shape[1]], W, U, v)
            .diagonal(dim1=1, dim2=2)
            .unsqueeze(2)
            .expand(-1, -1, k.shape[1])
        )
    ],
    "v stands on the left: v @ a grid multiplies along the axis before the last, "
    "the keys. Where does a product run along the last axis?": [
        lambda q, k, W, U, v: v @ torch.tanh(_sums(q, k, W, U)),
        lambda q, k, W, U, v: v.unsqueeze(0) @ torch.tanh(_sums(q, k, W, U)),
        lambda q, k, W, U, v: v.unsqueeze(-1).T @ torch.tanh(_sums(q, k, W, U)),
    ],
    "the sum over the products with v runs along the wrong axis. Which axis has H "
    "numbers?": [
        lambda q, k, W, U, v: (torch.tanh(_sums(q, k, W, U)) * v).sum(0),
        lambda q, k, W, U, v: (torch.tanh(_sums(q, k, W, U)) * v).sum(1),
        lambda q, k, W, U, v: (torch.tanh(_sums(q, k, W, U)) * v).sum(2),
        lambda q, k, W, U, v: (torch.tanh(_sums(q, k, W, U)) * v).sum(),
    ],
    "torch.dot and torch.mm know no batch: they take two vectors, or two matrices.": [
        lambda q, k, W, U, v: torch.dot(v, torch.tanh(_sums(q, k, W, U))),
        lambda q, k, W, U, v: torch.dot(torch.tanh(_sums(q, k, W, U)), v),
        lambda q, k, W, U, v: torch.mm(q, W.T),
        lambda q, k, W, U, v: torch.mm(W, q),
        lambda q, k, W, U, v: torch.mm(q, W),
    ],
    "every sentence is scored against the keys of the first.": [
        lambda q, k, W, U, v: scores_by_loops(q, k[:1].expand_as(k), W, U, v)
    ],
    "every sentence is scored with the queries of the first.": [
        lambda q, k, W, U, v: scores_by_loops(q[:1].expand_as(q), k, W, U, v)
    ],
}
NOT_TRANSPOSED = (
    "a matrix stands on the wrong side, or isn't transposed. The formula's W s is of "
    "one column; here the vectors are rows of a batch: W has to stand on the right, "
    "and its columns have to meet the numbers of a vector. With equal sizes, nothing "
    "raises."
)


def _wrong_sides():
    """Projections with a matrix on the wrong side, and what may follow them."""

    def right(x, W):
        return x @ W.T

    def not_transposed(x, W):
        return x @ W

    def on_the_left(x, W):
        return W @ x

    def on_the_left_transposed(x, W):
        return W.T @ x

    def paired(q, k, v):
        return torch.tanh(q.unsqueeze(2) + k.unsqueeze(1)) @ v

    def added(q, k, v):
        return torch.tanh(q + k) @ v

    def before(q, k, v):
        return v @ torch.tanh(q + k)

    wrong = (not_transposed, on_the_left, on_the_left_transposed)
    pairs = [(a, a) for a in wrong]
    pairs += [(a, right) for a in wrong[:2]] + [(right, a) for a in wrong[:2]]
    return [
        lambda q, k, W, U, v, of_q=of_q, of_k=of_k, rest=rest: rest(
            of_q(q, W), of_k(k, U), v
        )
        for of_q, of_k in pairs
        for rest in (paired, added, before)
    ]


additive_scores = Exercise(
    "additive_scores",
    scores_by_loops,
    cases=CASES,
    mistakes=MISTAKES | {NOT_TRANSPOSED: _wrong_sides()},
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


def _pairs(queries, keys):
    """Each query beside each key: two tensors (B, Q, K, ...)."""
    B, Q, K = len(queries), queries.shape[1], keys.shape[1]
    return (
        queries.unsqueeze(2).expand(B, Q, K, -1),
        keys.unsqueeze(1).expand(B, Q, K, -1),
    )


def _joined(queries, keys):
    return torch.cat(_pairs(queries, keys), dim=-1)


def _cut(at):
    """The split form, with M cut by `at`(query_size, key_size, M) -> W, U."""

    def wrong(q, k, M, v):
        W, U = at(q.shape[-1], k.shape[-1], M)
        return torch.tanh(_sums(q, k, W, U)) @ v

    return wrong


JOINED_MISTAKES = (
    {
        "the key comes first. In [query; key], the left columns of M belong to the "
        "query. The sizes add up either way, so nothing raises.": [
            _key_first,
            lambda q, k, M, v: torch.tanh(torch.cat(_pairs(q, k)[::-1], -1) @ M.T) @ v,
        ],
        "M is cut into rows. A row of M makes one of the H numbers, a column meets "
        "one number of the joined vector: which of the two has to be cut?": [
            _cut(lambda q, k, M: (M[:q], M[q:])),
            _cut(lambda q, k, M: M.chunk(2, dim=0)),
            lambda q, k, M, v: (
                torch.tanh((q @ M[:q]).unsqueeze(2) + (k @ M[q:]).unsqueeze(1)) @ v
            ),
        ],
        "torch.cat joins, it doesn't pair, and it doesn't broadcast. First both "
        "need the shape (B, Q, K, ...), so that each query stands beside each key: "
        "unsqueeze makes the axis, what fills it?": [
            lambda q, k, M, v: torch.tanh(torch.cat((q, k), dim=-1) @ M.T) @ v,
            lambda q, k, M, v: torch.tanh(M @ torch.cat((q, k), dim=-1)) @ v,
            lambda q, k, M, v: torch.tanh(torch.cat((q, k), dim=-1) @ M) @ v,
            lambda q, k, M, v: (
                torch.tanh(torch.cat((q.unsqueeze(2), k.unsqueeze(1)), dim=-1) @ M.T)
                @ v
            ),
            lambda q, k, M, v: (
                torch.tanh(torch.cat((q.unsqueeze(1), k.unsqueeze(2)), dim=-1) @ M.T)
                @ v
            ),
            lambda q, k, M, v: (
                torch.tanh(torch.cat((_pairs(q, k)[0], k.unsqueeze(1)), dim=-1) @ M.T)
                @ v
            ),
            lambda q, k, M, v: (
                torch.tanh(torch.cat((q.unsqueeze(2), _pairs(q, k)[1]), dim=-1) @ M.T)
                @ v
            ),
            lambda q, k, M, v: torch.cat((_pairs(q, k)[0], k), dim=-1),
            lambda q, k, M, v: torch.cat((q, _pairs(q, k)[1]), dim=-1),
        ],
        "joined along the wrong axis. The joined vector is longer than either of "
        "the two: which axis of the pair holds a vector's numbers?": [
            *(
                lambda q, k, M, v, axis=axis: (
                    torch.tanh(torch.cat((q, k), dim=axis) @ M.T) @ v
                )
                for axis in (0, 1)
            ),
            *(
                lambda q, k, M, v, axis=axis: (
                    torch.tanh(torch.cat(_pairs(q, k), dim=axis) @ M.T) @ v
                )
                for axis in (0, 1, 2)
            ),
        ],
        "torch.stack makes a new axis. Two vectors are joined end to end along an axis "
        "that both have: torch.cat.": [
            lambda q, k, M, v: torch.tanh(torch.stack(_pairs(q, k), dim=-1) @ M.T) @ v,
            lambda q, k, M, v: torch.tanh(torch.stack((q, k), dim=-1) @ M.T) @ v,
        ],
        "expand can't fill an axis that isn't there, or has another size already: "
        "only one of length 1. Where does each of the two need its unsqueeze?": [
            lambda q, k, M, v: joined_by_loops(
                q.expand(-1, -1, len(M)), k.expand(-1, -1, len(M)), M, v
            ),
            lambda q, k, M, v: q.expand(len(q), q.shape[1], k.shape[1], -1),
            lambda q, k, M, v: k.expand(len(q), q.shape[1], k.shape[1], -1),
            lambda q, k, M, v: q.unsqueeze(1).expand(
                len(q), *q.shape[1:2], k.shape[1], -1
            ),
            lambda q, k, M, v: k.unsqueeze(2).expand(
                len(q), q.shape[1], k.shape[1], -1
            ),
        ],
        "M is cut at the wrong column. The columns that meet the query come first, "
        "and there are as many as the query has numbers. With equal sizes, every "
        "cut in the middle is right.": [
            _cut(lambda q, k, M: (M[:, :k], M[:, k:])),
            _cut(lambda q, k, M: M.chunk(2, dim=1)),
            _cut(lambda q, k, M: (M[:, : (q + k) // 2], M[:, (q + k) // 2 :])),
            _cut(lambda q, k, M: (M[:, :5], M[:, 5:])),  # the notebook's query_size
            *(
                _cut(lambda q, k, M, i=i, j=j: (M[:, : q + i], M[:, q + j :]))
                for i, j in ((-1, 0), (0, 1), (-1, -1), (1, 1), (1, 0))
            ),
        ],
        "v stands on the left: v @ a grid multiplies along the axis before the "
        "last, the keys. Where does a product run along the last axis?": [
            lambda q, k, M, v: v @ torch.tanh(_joined(q, k) @ M.T),
            lambda q, k, M, v: v.unsqueeze(-1).T @ torch.tanh(_joined(q, k) @ M.T),
        ],
    }
    | {sentence: list(map(_as_joined, some)) for sentence, some in MISTAKES.items()}
    | {
        NOT_TRANSPOSED.replace("W s", "M [s; h]").replace(": W", ": M"): [
            lambda q, k, M, v: joined_by_loops(q, k, M.T, v),
            lambda q, k, M, v: torch.tanh(_joined(q, k) @ M) @ v,
            lambda q, k, M, v: torch.tanh(M @ _joined(q, k)) @ v,
            lambda q, k, M, v: v @ torch.tanh(M @ _joined(q, k)),
            *map(_as_joined, _wrong_sides()),
        ]
    }
)

joined_scores = Exercise(
    "joined_scores", joined_by_loops, JOINED_CASES, JOINED_MISTAKES, gradients=True
)


def context_by_loops(weights, values):
    """Weights (B, Q, K), values (B, K, D) -> contexts (B, Q, D)."""
    return torch.stack(
        [
            torch.stack(
                [
                    sum(
                        weight * value
                        for weight, value in zip(row, values[b], strict=True)
                    )
                    for row in weights[b]
                ]
            )
            for b in range(len(weights))
        ]
    )


def _weighted(w, x):
    """Each value times each weight: (B, Q, K, D)."""
    return w.unsqueeze(3) * x.unsqueeze(1)


def _every(w, one):
    """(B, D) -> (B, Q, D)."""
    return one.unsqueeze(1).expand(-1, w.shape[1], -1)


# (B, Q, K, D). At the end two of them are equal in turn, then all.
CONTEXT_SIZES = [
    (2, 3, 4, 5),
    (2, 3, 4, 5),
    (3, 1, 5, 2),
    (1, 2, 3, 4),
    (2, 2, 4, 3),
    (2, 3, 3, 5),
    (2, 3, 4, 4),
    (4, 4, 4, 4),
]
AXES = (0, 1, 2, -1)

context = Exercise(
    "context",
    context_by_loops,
    cases=[
        (scores.softmax(-1), values)
        for scores, values in (
            draw(n, (B, Q, K), (B, K, D))
            for n, (B, Q, K, D) in enumerate(CONTEXT_SIZES)
        )
    ],
    mistakes={
        "K is the last axis of the weights and the middle axis of the values, so "
        "they don't line up as they are. Each of the two needs an axis of length 1 "
        "where the other has an axis of its own (unsqueeze): where?": [
            lambda w, x: (w.unsqueeze(1) * x.unsqueeze(1)).sum(1),
            lambda w, x: (w.unsqueeze(1) * x.unsqueeze(1)).sum(2),
            lambda w, x: (w.unsqueeze(3) * x.unsqueeze(3)).sum(2),
            *(lambda w, x, axis=axis: (w * x).sum(axis) for axis in AXES),
            lambda w, x: w * x,
            lambda w, x: (w * x).mean(1),
            lambda w, x: (w * x).sum(),
            lambda w, x: (w * x).sum(-1, keepdim=True),
            lambda w, x: (w * x).sum(1, keepdim=True),
        ],
        "the weights have an axis more now, the values haven't: so sentences meet "
        "queries. Write the two shapes one below the other, lined up at the right.": [
            *(lambda w, x, axis=axis: (w.unsqueeze(3) * x).sum(axis) for axis in AXES),
            lambda w, x: w.unsqueeze(3) * x,
            lambda w, x: (w.unsqueeze(3) * x.unsqueeze(0)).sum(2),
        ],
        "the values have an axis more now, the weights haven't: so the last axis of"
        " the weights, the keys, meets the numbers of a value. Write the two shapes"
        " one below the other, lined up at the right.": [
            *(lambda w, x, axis=axis: (w * x.unsqueeze(1)).sum(axis) for axis in AXES),
            lambda w, x: w * x.unsqueeze(1),
        ],
        "an axis of length 1 stands at the wrong place, so that axes meet which "
        "don't belong together. (B, Q, K) needs one for a value's numbers, (B, K, "
        "D) one for the queries.": [
            lambda w, x: (w.unsqueeze(1) * x.unsqueeze(2)).sum(2),
            lambda w, x: (w.unsqueeze(2) * x.unsqueeze(1)).sum(2),
        ],
        "the sum runs over the queries. A context is a sum over the keys: which "
        "axis numbers them?": [lambda w, x: _weighted(w, x).sum(1)],
        "the sum runs over the numbers of a value. A context is as long as a value:"
        " over which axis has the sum to run?": [
            lambda w, x: _weighted(w, x).sum(3),
            lambda w, x: _weighted(w, x).mean(3),
            lambda w, x: (w @ x).sum(2),
        ],
        "the sum runs over the sentences: they have nothing to do with each other.": [
            lambda w, x: _weighted(w, x).sum(0),
            lambda w, x: (w @ x).sum(0),
            lambda w, x: torch.einsum("bqk,bkd->qd", w, x),
        ],
        "everything is summed into one number. The sum runs over the keys alone.": [
            lambda w, x: _weighted(w, x).sum(),
            lambda w, x: (w @ x).sum(),
        ],
        "the sum over the keys is missing: one vector for each query and each key "
        "came.": [_weighted],
        "this is a mean where a sum is asked for. The weights sum to 1: dividing by"
        " the number of keys makes the context too short.": [
            lambda w, x: _weighted(w, x).mean(2),
            lambda w, x: _weighted(w, x).mean(1),
        ],
        "the weights of the wrong query, or queries and keys exchanged: in "
        "weights[b, q, k] the query comes first, and the sum runs over k.": [
            lambda w, x: w.transpose(1, 2) @ x,
            lambda w, x: w.permute(2, 1, 0) @ x,
            lambda w, x: (w.unsqueeze(3) * x.unsqueeze(2)).sum(1),
            lambda w, x: torch.einsum("bkq,bkd->bqd", w, x),
            lambda w, x: w.permute(0, 2, 1) @ x.transpose(1, 2),
        ],
        "every query gets the context of the first. Whose weights are read?": [
            lambda w, x: (w[:, :1] @ x).expand(-1, w.shape[1], -1),
            lambda w, x: w[:, 0].unsqueeze(1) @ x,
        ],
        "one vector for a sentence came. There is a context for each query: where is "
        "the axis of the queries lost?": [
            lambda w, x: (w[:, 0].unsqueeze(2) * x).sum(1),
            lambda w, x: (w[:, -1].unsqueeze(2) * x).sum(1),
            lambda w, x: (w @ x).sum(1),
        ],
        "every query gets the contexts of all queries, added up: to which query's "
        "place does the loop add?": [lambda w, x: _every(w, (w @ x).sum(1))],
        "the result has no room for a context: it has as many numbers as a value, D.": [
            lambda w, x: w @ x + 0 * (torch.zeros(w.shape[2]) + x[0, 0]),
        ],
        RESHAPED: [lambda w, x: (w @ x).transpose(1, 2).reshape((w @ x).shape)],
        "every query gets the context of the last. Whose weights are read?": [
            lambda w, x: (w[:, -1:] @ x).expand(-1, w.shape[1], -1)
        ],
        "the values of one sentence are used for all, or all of them where one is "
        "meant: values has the sentence's number in front, as weights has.": [
            lambda w, x: w @ x[0],
            lambda w, x: torch.zeros(x.shape[2]).add_(w[0, 0, 0] * x[0]),
            lambda w, x: w @ x[-1],
            lambda w, x: (w.unsqueeze(3) * x[0]).sum(2),
        ],
        "the weights of one sentence are used for all: weights has a sentence's "
        "number in front, as values has.": [
            lambda w, x: w[0] @ x,
            lambda w, x: w[-1] @ x,
        ],
        "the product runs over the batch too: the sentences are mixed. Which letter"
        " of the shapes has to be in both and in the result?": [
            lambda w, x: torch.einsum("bqk,ckd->bqd", w, x),
            lambda w, x: w.unsqueeze(1) @ x,
            lambda w, x: torch.einsum("bqk,ckd->cqd", w, x),
            lambda w, x: w @ x.sum(0),
            lambda w, x: w @ x.mean(0),
            lambda w, x: torch.tensordot(w, x, dims=([2], [1])),
            lambda w, x: w.flatten(0, 1) @ x.flatten(0, 1),
            lambda w, x: w.reshape(-1, w.shape[2]) @ x.reshape(-1, x.shape[2]),
        ],
        "weights and values stand in the wrong order, or one of them is transposed:"
        " in a product of matrices, the last axis of the first meets the axis "
        "before the last of the second. Both have to be the keys.": [
            lambda w, x: x @ w,
            lambda w, x: x @ w.transpose(1, 2),
            lambda w, x: w @ x.transpose(1, 2),
            lambda w, x: x.transpose(1, 2) @ w,
            lambda w, x: x.transpose(0, 1) @ w,
            lambda w, x: w @ x.permute(2, 1, 0),
            lambda w, x: torch.inner(w, x),
        ],
        "queries and numbers of a value are exchanged in the result: (B, Q, D) is "
        "asked for, a row for each query.": [
            lambda w, x: (w @ x).transpose(1, 2),
        ],
        "the contexts of all sentences stand in one long list, (B times Q, D). "
        "torch.cat joins along an axis that is there; torch.stack makes one for "
        "the sentences.": [lambda w, x: (w @ x).flatten(0, 1)],
        "torch.mm and torch.dot know no batch: they take two matrices, or two "
        "vectors.": [
            torch.mm,
            torch.dot,
            lambda w, x: torch.mm(x, w),
            torch.mv,
        ],
        "the weights are never read: this is the plain mean of the values, or their"
        " sum.": [
            lambda w, x: _every(w, x.mean(1)),
            lambda w, x: _every(w, x.sum(1)),
            lambda w, x: x.mean(1),
            lambda w, x: x.sum(1),
            lambda w, x: x,
        ],
        "all of the value with the largest weight, and nothing of the others. A "
        "weighted sum takes a part of each.": [
            lambda w, x: F.one_hot(w.argmax(-1), x.shape[1]).to(x.dtype) @ x,
            lambda w, x: (
                w.amax(-1, keepdim=True)
                * (F.one_hot(w.argmax(-1), x.shape[1]).to(x.dtype) @ x)
            ),
        ],
        "only the last key counts: every turn of the loop writes over the sum so "
        "far (`=`). How is something added to it?": [
            lambda w, x: w[:, :, -1:] * x[:, -1:]
        ],
        "only the first key counts: does the loop return, or stop, in its first "
        "turn?": [lambda w, x: w[:, :, :1] * x[:, :1]],
        "only the first sentence, or its first query, has a context: where does "
        "`return` stand?": [
            lambda w, x: w[0] @ x[0],
            lambda w, x: w[0, 0] @ x[0],
            lambda w, x: torch.cat(((w @ x)[:1], torch.zeros_like(w @ x)[1:])),
            lambda w, x: (
                (w @ x)
                * F.pad(torch.ones(1, 1, 1), (0, 0, 0, w.shape[1] - 1, 0, len(w) - 1))
            ),
        ],
        "one key is left out, the first or the last: from where to where does the "
        "loop run?": [
            lambda w, x: w[:, :, :-1] @ x[:, :-1],
            lambda w, x: w[:, :, 1:] @ x[:, 1:],
        ],
        "the sum goes on from one query, or sentence, to the next: where is it set "
        "to 0?": [
            lambda w, x: (w @ x).cumsum(1),
            lambda w, x: (w @ x).flatten(0, 1).cumsum(0).view(len(w), w.shape[1], -1),
        ],
        "the value is picked with the number of the query: by a loop, by a letter of "
        "einsum, or because the values' axis of length 1 stands at the wrong place. "
        "Each weight belongs to the value of its own key.": [
            lambda w, x: (w.unsqueeze(3) * x.unsqueeze(2)).sum(2),
            lambda w, x: w.sum(-1, keepdim=True) * x[:, : w.shape[1]],
            lambda w, x: torch.einsum("bqk,bqd->bqd", w, x),
            lambda w, x: (
                w[:, :, : w.shape[1]].diagonal(dim1=1, dim2=2).unsqueeze(2)
                * x[:, : w.shape[1]]
            ),
        ],
        "the weights sum to 1 over the keys already, and are normalised once more.": [
            lambda w, x: w.softmax(-1) @ x,
            lambda w, x: w.softmax(1) @ x,
            lambda w, x: w / w.sum(1, keepdim=True) @ x,
        ],
        "weights and values are added, and not multiplied.": [
            lambda w, x: (w.unsqueeze(3) + x.unsqueeze(1)).sum(2)
        ],
        "the values are divided by the weights, and not multiplied.": [
            lambda w, x: (x.unsqueeze(1) / w.unsqueeze(3)).sum(2)
        ],
    },
    gradients=True,
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
        "the weights sum to 1 over the queries, not over the keys. With one query,"
        " all of them are 1: which axis did you normalise?": [lambda x: x.softmax(1)],
        "the weights sum to 1 over the batch, not over the keys: which axis did "
        "you normalise?": [lambda x: x.softmax(0)],
        "all numbers together sum to 1. Each row has to, by itself.": [
            lambda x: x.flatten().softmax(0).view_as(x)
        ],
        "each sentence's numbers together sum to 1. Each row has to, by itself.": [
            lambda x: x.flatten(1).softmax(1).view_as(x)
        ],
        "the sum runs over two axes. It should run over the keys of one row, and "
        "over nothing else.": [
            lambda x: x.exp() / x.exp().sum((0, 1), keepdim=True),
            lambda x: x.exp() / x.exp().sum((0, 2), keepdim=True),
        ],
        "axes are counted from 0: the last of three is 2, or -1.": [
            lambda x: x.softmax(3),
            lambda x: x.exp() / x.exp().sum(3, keepdim=True),
        ],
        "the weights are normalised twice, over the keys and over the queries.": [
            lambda x: x.softmax(-1) / x.softmax(-1).sum(1, keepdim=True),
            lambda x: x.softmax(1) / x.softmax(1).sum(-1, keepdim=True),
            lambda x: x.softmax(-1).softmax(1),
            lambda x: x.softmax(1).softmax(-1),
        ],
        "a transposition, or a reshape, doesn't mend it: the sum has to run over the "
        "keys of one row.": [
            lambda x: x.softmax(1).transpose(1, 2),
            lambda x: x.softmax(1).transpose(1, 2).reshape(x.shape),
            lambda x: x.reshape(len(x), x.shape[2], -1).softmax(-1).view_as(x),
        ],
        "one row's sum divides all rows. Each row has its own.": [
            lambda x: x.exp() / x[:, :1].exp().sum(-1, keepdim=True),
        ],
        "divided by the mean, not by the sum.": [lambda x: x.softmax(-1) * x.shape[-1]],
        "the scores are divided by the sum, not their exps.": [
            lambda x: x / x.exp().sum(-1, keepdim=True)
        ],
        "before the division, softmax takes exp of each score, once; here stands "
        "another function, or exp twice.": [
            lambda x: x.abs() / x.abs().sum(-1, keepdim=True),
            lambda x: x**2 / (x**2).sum(-1, keepdim=True),
            lambda x: (x * math.log(2)).softmax(-1),
            lambda x: x.exp().softmax(-1),
        ],
        "these are the scores as they came.": [lambda x: x],
        "the sums have lost their axis, so they line up with the wrong one. A sum "
        "that keeps it, with length 1, fits every size: keepdim.": [
            lambda x: x.exp() / x.exp().sum(-1),
            lambda x: x.exp() / x.exp().sum(1),
        ],
        "the sums stand along the wrong axis: the sum of row q has to divide row q.": [
            lambda x: x.exp() / x.exp().sum(-1).unsqueeze(1),
            lambda x: x.exp() / x.exp().sum(1).unsqueeze(2),
        ],
        "these are logarithms of the sums, or the sums themselves: each exp has to "
        "be divided by the sum of its row.": [
            lambda x: x.exp().sum(-1),
            lambda x: x.exp().sum(-1, keepdim=True),
            lambda x: x.logsumexp(-1),
        ],
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
