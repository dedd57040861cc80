"""The exercises of notebook 13. S, T words, H units, N heads of size D = H / N."""

from functools import partial

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw

SPLITS = (2, 3, 20, 4), (3, 5, 8, 2), (1, 2, 6, 3), (4, 4, 16, 4), (5, 2, 6, 1)
split_heads = Exercise(
    "split_heads",
    """
def split_by_view(x, num_heads):  # (B, K, H) -> (B N, K, D)
    B, K, H = x.shape
    heads = x.view(B, K, num_heads, H // num_heads).transpose(1, 2)  # (B, N, K, D)
    return heads.reshape(B * num_heads, K, H // num_heads)
""",
    {
        "A word's first D units go to its first head, the next D to the second. A "
        "sentence's heads follow each other in the batch.": [
            (*draw(B, (B, K, H)), N) for B, K, H, N in SPLITS
        ],
    },
    """
The shape is right, but `view` keeps the order in memory: a word's H units together.
    .transpose(1, 2)  # => #
Words and units are exchanged. Give the heads an axis of their own, and move that.
    x.view(B, K, num_heads, H // num_heads).transpose => x.transpose
Each head gets every N-th unit. Which comes first in the view, N or D?
    num_heads, H // num_heads).transpose(1, 2) => -1, num_heads).permute(0, 3, 1, 2)
The first head of all sentences comes first. A sentence's heads must stand together.
    heads.reshape => heads.transpose(0, 1).reshape
Heads have an axis of their own. They should be rows of the batch.
    heads.reshape(B * num_heads, K, H // num_heads) => heads
""",
    gradients=True,
)

SHAPES = (2, 3, 4, 5), (2, 3, 4, 5), (3, 5, 2, 1), (1, 4, 6, 3), (4, 4, 4, 4)
FITS = draw(5, (1, 4, 3), (1, 4, 3), (1, 4, 2))
FITS[0][..., 0], FITS[1][:, -1, 0] = 3, 300  # the last key fits every query, by far
causal_attention = Exercise(
    "causal_attention",
    """
def mended_causal_attention(queries, keys, values):  # (B, T, H), (B, T, H), (B, T, D)
    scores = queries @ keys.transpose(1, 2) / queries.shape[2] ** 0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ values
""",
    {
        "A word's context is a mean of the values of the words up to its own, weighted "
        "by a softmax of their scores. The scores are divided by the root of H.": [
            draw(n, (B, T, H), (B, T, H), (B, T, D))
            for n, (B, T, H, D) in enumerate(SHAPES)
        ],
        "The score of the last word is very large here, and changes contexts before "
        "it. What the softmax has read, it has divided by.": [FITS],
    },
    """
Rows of weights sum to less than 1: what did the softmax divide by?
    masked_fill(future, float("-inf")).softmax(dim=-1) => softmax(dim=-1).tril()
Hidden scores are set to 0, and exp(0) is 1: the future still gets weight.
    float("-inf") => 0
There is no mask: every word sees the future.
    .masked_fill(future, float("-inf")) =>
The mask is turned round: a word sees what follows, and not what came before.
    triu(1) => tril(-1)
A word doesn't see itself, so the first word sees nothing.
    triu(1) => triu(0)
Each word sees the next one, the very word to predict.
    triu(1) => triu(2)
The scores aren't divided by the root of H, the size of a query.
    / queries.shape[2] ** 0.5 =>
    / queries.shape[2] ** 0.5 => / queries.shape[2]
""",
    gradients=True,
)

WORDS = (2, 3, 8), (2, 3, 8), (3, 5, 4), (1, 2, 6), (4, 4, 4)  # (B, S, H)
post_norm = Exercise(
    "post_norm",
    """
def paper_order(x, ask, think):  # (B, S, H) -> (B, S, H)
    x = F.layer_norm(x + ask(x), x.shape[-1:])
    return F.layer_norm(x + think(x), x.shape[-1:])
""",
    {
        "Twice the same: a part reads its input as it is, its result is added to that "
        "input, and then the sum is normalised, each word by its own units.": [
            (*draw(n, shape), partial(torch.cumsum, dim=1), torch.cos)
            for n, shape in enumerate(WORDS)
        ],
    },
    r"""
This normalises before each part. The paper normalises the sum.
    => x = x + ask(F.layer_norm(x, x.shape[-1:]))\n    return x + think(F.layer_norm(x,
        x.shape[-1:]))
What a part computes is normalised, and then added. Add first.
    => x = x + F.layer_norm(ask(x), x.shape[-1:])\n    return x + F.layer_norm(think(x),
        x.shape[-1:])
Only one of the two sums is normalised. Each of them is.
    F.layer_norm(x + ask(x), x.shape[-1:]) => x + ask(x)
    F.layer_norm(x + think(x), x.shape[-1:]) => x + think(x)
What came in is lost: each part's result is added to what the part has read.
    x + ask(x) => ask(x) ;; x + think(x) => think(x)
The second part doesn't read, or isn't added to, what the first part made.
    x = F => y = F ;; x + think(x) => x + think(y)
""",
    gradients=True,
)
