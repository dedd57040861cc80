"""The exercises of notebook 03. B sentences, Q queries, K keys, H hidden units."""

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw


def _case(seed, B, Q, K, query_size, key_size, H):
    vectors = (B, Q, query_size), (B, K, key_size)
    return draw(seed, *vectors, (H, query_size), (H, key_size), (H,))


def _joined(cases):
    return [(q, k, torch.cat((W, U), dim=1), v) for q, k, W, U, v in cases]


def _weighted(*sizes):
    drawn = [draw(n, (B, Q, K), (B, K, D)) for n, (B, Q, K, D) in enumerate(sizes)]
    return [(scores.softmax(-1), values) for scores, values in drawn]


PLAIN = [_case(n, 2, 3, 4, 5, 6, 7) for n in (0, 1)]
UNEQUAL = (3, 1, 5, 4, 6, 2), (1, 2, 3, 6, 4, 10)
EQUAL = (2, 3, 5, 4, 4, 6), (2, 3, 3, 4, 5, 6), (4, 4, 4, 4, 4, 4)
OTHER = [_case(n, *sizes) for n, sizes in enumerate(UNEQUAL + EQUAL, 2)]
SIZES = (3, 1, 5, 2), (1, 2, 3, 4), (2, 2, 4, 3), (2, 3, 3, 5), (2, 3, 4, 4), (4,) * 4
OTHER_SIZES = "Here are other sizes. Is one written into your code, or squeezed away?"

additive_scores = Exercise(
    "additive_scores",
    """
def broadcast_scores(queries, keys, W, U, v):  # (B, Q, ...), (B, K, ...) -> (B, Q, K)
    q = (queries @ W.T).unsqueeze(2)  # (B, Q, 1, H)
    k = (keys @ U.T).unsqueeze(1)  # (B, 1, K, H)
    return torch.tanh(q + k) @ v  # (B, Q, K, H) @ (H,) -> (B, Q, K)
""",
    {
        "W projects the query, U the key; the two are added, then come tanh and the "
        "product with v. A row belongs to a query, a column to a key.": PLAIN,
        OTHER_SIZES: OTHER,
    },
    """
The tanh is missing. Without it, the query adds the same to every score of a row, and
softmax takes that out again.
    torch.tanh(q + k) => (q + k)
The tanh stands at the wrong place: what is added before it, and what comes after it?
    torch.tanh(q + k) @ v => torch.tanh((q + k) @ v)
    torch.tanh(q + k) => (torch.tanh(q) + torch.tanh(k))
W and U are exchanged, or one is used for both. W is for the queries, U for the keys.
    queries @ W => queries @ U ;; keys @ U => keys @ W
    keys @ U => keys @ W
A matrix stands on the left, or isn't transposed. Here the vectors are rows of a batch.
    .T) => )
    queries @ W.T => W @ queries ;; keys @ U.T => U @ keys
Each query must meet each key. Which axis do the queries lack, and which the keys?
    .unsqueeze(2) => ;; .unsqueeze(1) =>
v is missing: it says how much each of the H numbers counts.
    @ v => .sum(dim=-1)
v stands on the left, so the product runs along the keys. Which axis has H numbers?
    torch.tanh(q + k) @ v => v @ torch.tanh(q + k)
The projections are multiplied. The formula adds them, and takes tanh of the sum.
    => return (queries @ W.T) @ (keys @ U.T).transpose(1, 2)
These are weights. Scores are asked for, the numbers before the softmax.
    return torch.tanh(q + k) @ v => return (torch.tanh(q + k) @ v).softmax(dim=-1)
""",
    gradients=True,
)

joined_scores = Exercise(
    "joined_scores",
    """
def scores_of_joined(queries, keys, M, v):  # (B, Q, ...), (B, K, ...) -> (B, Q, K)
    B, Q, K = len(queries), queries.shape[1], keys.shape[1]
    s = queries.unsqueeze(2).expand(B, Q, K, -1)
    h = keys.unsqueeze(1).expand(B, Q, K, -1)
    return torch.tanh(torch.cat((s, h), dim=-1) @ M.T) @ v
""",
    {
        "Each query s is joined with each key h, s first: [s; h]. M projects it, then "
        "tanh and v make a score. A row is a query's, a column a key's.": (
            _joined(PLAIN)
        ),
        OTHER_SIZES: _joined(OTHER),
    },
    """
The key comes first. In [s; h] the left columns of M belong to the query.
    (s, h) => (h, s)
M is cut wrongly. Which of its columns meet the query, and how many are they?
    => return scores(queries, keys, *M.chunk(2, dim=1), v)
    => return scores(queries, keys, *M.chunk(2), v)
torch.stack makes a new axis. Which function joins two vectors end to end?
    torch.cat => torch.stack
M stands on the left, or isn't transposed. Here the vectors are rows of a batch.
    M.T => M
expand can only fill an axis of length 1. Where does each of the two need one?
    .unsqueeze(2) =>
    .unsqueeze(1) =>
The tanh is missing, or comes too late: it stands before the product with v.
    torch.tanh => 1 *
    M.T) @ v => M.T @ v)
""",
    gradients=True,
    names={"scores": additive_scores.made(additive_scores.solution)},
)

context = Exercise(
    "context",
    """
def context_by_broadcasting(weights, values):  # (B, Q, K), (B, K, D) -> (B, Q, D)
    return (weights.unsqueeze(3) * values.unsqueeze(1)).sum(dim=2)
""",
    {
        "A query's context is a sum over its sentence's keys: each value times the "
        "weight that this query gives it.": _weighted((2, 3, 4, 5), (2, 3, 4, 5)),
        OTHER_SIZES: _weighted(*SIZES),
    },
    """
The sum doesn't run over the keys. Which axis counts them after the product?
    dim=2 => dim=1
    dim=2 => dim=3
    .sum(dim=2) =>
Each weight must meet all numbers of its value. Which axis does each of the two lack?
    .unsqueeze(3) => ;; .unsqueeze(1) =>
A product of matrices must sum over the keys here. Which axis of each of the two is it?
    => return values @ weights
    => return values.transpose(1, 2) @ weights
    => return weights @ values.transpose(1, 2)
    => return weights.transpose(1, 2) @ values
`weights` are weights already, and softmax is taken of them again.
    => return weights.softmax(-1) @ values
Only the last key counts: `=` writes over the sum so far. What adds to it?
    => return weights[:, :, -1:] * values[:, -1:]
""",
    gradients=True,
)

attention_weights = Exercise(
    "attention_weights",
    """
def mended_weights(scores):  # (B, Q, K) -> (B, Q, K)
    exps = torch.exp(scores)  # (B, Q, K)
    return exps / exps.sum(dim=-1, keepdim=True)
""",
    {
        "Softmax divides the exp of each score by the sum of its row: one sum for each "
        "query, over its keys.": [draw(0, (2, 3, 4)), draw(1, (2, 3, 4))],
        OTHER_SIZES: [draw(2, (3, 1, 5)), draw(3, (1, 4, 2)), draw(4, (4, 4, 4))],
    },
    """
The weights sum to 1 over the queries, not over the keys: which axis did you normalise?
    dim=-1 => dim=1
The weights sum to 1 over the batch, not over the keys: which axis did you normalise?
    dim=-1 => dim=0
One sum is taken over several rows. Each row must sum to 1 by itself.
    dim=-1, keepdim=True =>
    dim=-1 => dim=(1, 2)
The sums have lost their axis, or have it at another place. What does keepdim do?
    , keepdim=True =>
    dim=-1, keepdim=True => dim=1
Without exp a weight can be negative, or the sum 0.
    torch.exp(scores) => scores
""",
    gradients=True,
)
