"""The exercises of notebook 13.

B sentences, S words of the source, T of the target, H units, N heads of size D = H / N.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw, seeded


def split_heads_by_loops(x, num_heads):
    """x (B, K, H) and N heads -> (B N, K, H / N): every head a row of the batch."""
    D, rows = x.shape[2] // num_heads, []
    for b in range(len(x)):
        for n in range(num_heads):
            head = [
                torch.stack([x[b, k, n * D + d] for d in range(D)])
                for k in range(x.shape[1])
            ]
            rows.append(torch.stack(head))
    return torch.stack(rows)


def _dealt(x, N):
    return x.unflatten(2, (N, -1))  # (B, K, N, D)


def _shaped(x, N):
    return len(x) * N, x.shape[1], x.shape[2] // N


# (B, K, H, N)
SPLITS = [(2, 3, 20, 4), (2, 3, 20, 4), (3, 5, 8, 2), (1, 2, 6, 3), (4, 4, 16, 4)]
SPLITS.append((2, 5, 6, 1))

split_heads = Exercise(
    "split_heads",
    split_heads_by_loops,
    cases=[(*draw(n, (B, K, H)), N) for n, (B, K, H, N) in enumerate(SPLITS)],
    mistakes={
        "the shape is right, and the numbers stand elsewhere: `view` keeps their order "
        "in memory, where a word's H units stand together. So a head of the first word "
        "ends up in another word's row.": [lambda x, N: x.reshape(_shaped(x, N))],
        "words and units are exchanged, but for a view their order in memory counts. "
        "First give the heads an axis of their own, "
        "then move that axis.": [lambda x, N: x.transpose(1, 2).reshape(_shaped(x, N))],
        "each head gets every N-th unit. It should get D neighbours: which of N and D "
        "comes first in the view?": [
            lambda x, N: x.unflatten(2, (-1, N)).permute(0, 3, 1, 2).flatten(0, 1)
        ],
        "the first head of all sentences comes first. A sentence's heads must stand "
        "together: its length "
        "is repeated in that order.": [lambda x, N: torch.cat(x.chunk(N, dim=2))],
        "there are D heads of size N: exchanged. `torch.split` takes the size of a "
        "part, and chunk the number of "
        "parts.": [lambda x, N: x.unflatten(2, (-1, N)).transpose(1, 2).flatten(0, 1)],
        "`view` keeps the order in memory, where a word's H units stand together; and "
        "heads should "
        "be rows of the batch.": [lambda x, N: x.reshape(len(x), N, x.shape[1], -1)],
        "heads have an axis of their own. They should be rows of the batch.": [
            lambda x, N: _dealt(x, N).transpose(1, 2)
        ],
        "heads have an axis of their own, and behind the words. They should be rows of "
        "the batch.": [_dealt],
        "words have become rows of the batch: move the heads before the words first.": [
            lambda x, N: _dealt(x, N).flatten(0, 1)
        ],
        "words and units are exchanged in every head.": [
            lambda x, N: _dealt(x, N).transpose(1, 2).flatten(0, 1).transpose(1, 2)
        ],
        "the heads stand in the reverse order.": [
            lambda x, N: _dealt(x, N).transpose(1, 2).flip(1).flatten(0, 1)
        ],
        "this is the first head alone.": [lambda x, N: _dealt(x, N)[:, :, 0]],
        "every head has all H units: they should share them out.": [
            lambda x, N: x.repeat_interleave(N, dim=0)
        ],
    },
    gradients=True,
)


def causal_by_loops(queries, keys, values):
    """Queries, keys (B, T, H), values (B, T, D) -> contexts (B, T, D), no future."""
    B, T, H = queries.shape
    contexts = []
    for b in range(B):
        for t in range(T):
            scores = [
                sum(queries[b, t, h] * keys[b, j, h] for h in range(H)) / math.sqrt(H)
                for j in range(t + 1)
            ]
            top = max(score.item() for score in scores)
            exps = [(score - top).exp() for score in scores]
            context = sum(e * values[b, j] for j, e in enumerate(exps)) / sum(exps)
            contexts.append(context)
    return torch.stack(contexts).view(B, T, -1)


def _scores(q, k, scale=math.sqrt):
    return q @ k.transpose(1, 2) / scale(q.shape[2])


def _lower(q, diagonal=0):
    """True at the words before each word: (T, T); diagonal: how many ahead, too."""
    return torch.ones(q.shape[1], q.shape[1], dtype=torch.bool).tril(diagonal)


def _upper(q, diagonal=0):
    return _lower(q, -diagonal).T


def _masked(seen=_lower, fill=-torch.inf, scale=math.sqrt, axis=-1):
    """Causal attention, with choices of what can be wrong."""

    def contexts(q, k, v):
        scores = _scores(q, k, scale).masked_fill(~seen(q), fill)
        return scores.softmax(axis) @ v

    return contexts


def _masked_late(after):
    """The mask after the softmax; after: what becomes of the weights then."""
    return lambda q, k, v: after(_scores(q, k).softmax(-1) * _lower(q)) @ v


def _scaled_late(q, k, v):
    scores = _scores(q, k, scale=lambda H: 1).masked_fill(~_lower(q), -torch.inf)
    return scores.softmax(-1) / math.sqrt(q.shape[2]) @ v


def _by_length(q, k, v):
    return causal_by_loops(q * math.sqrt(q.shape[2] / q.shape[1]), k, v)


def _weights(q, k, v):
    return _scores(q, k).masked_fill(~_lower(q), -torch.inf).softmax(-1)


def _mean(q, k, v):
    seen = _lower(q).float()
    return seen / seen.sum(1, keepdim=True) @ v


def _tempting(seed, *shapes):
    """The last word's key fits every query, by far."""
    q, k, v = draw(seed, *shapes)
    q[..., 0], k[:, -1, 0] = 3, 300
    return q, k, v


SHAPES = [(2, 3, 4, 5), (2, 3, 4, 5), (3, 5, 2, 1), (1, 4, 6, 3), (4, 4, 4, 4)]

causal_attention = Exercise(
    "causal_attention",
    causal_by_loops,
    cases=[
        *(
            draw(n, (B, T, H), (B, T, H), (B, T, D))
            for n, (B, T, H, D) in enumerate(SHAPES)
        ),
        _tempting(5, (1, 4, 3), (1, 4, 3), (1, 4, 2)),
    ],
    mistakes={
        "a row's weights no longer sum to 1, and the future still counts. The first "
        "word sees itself alone: "
        "by what did the softmax divide its weight?": [_masked_late(lambda a: a)],
        "the weights sum to 1 again, but the future leaks in: where the score of a "
        "word to come is large, the weights before it round "
        "to 0, and 0/0 is left.": [_masked_late(lambda a: a / a.sum(-1, keepdim=True))],
        "the weights sum to 1 again, but the future leaks in: where the score of a "
        "word to come is large, the weights before it "
        "round to 0.": [_masked_late(lambda a: a / (a.sum(-1, keepdim=True) + 1e-9))],
        "softmax is applied twice, and exp(0) is 1: hidden words get weight.": [
            _masked_late(lambda a: a.softmax(-1))
        ],
        "hidden scores are set to 0, and exp(0) is 1: the future still gets weight.": [
            _masked(fill=0)
        ],
        "as if there were no mask: every word sees the future.": [
            lambda q, k, v: _scores(q, k).softmax(-1) @ v
        ],
        "the mask is turned "
        "round: a word sees what follows, and not what came before.": [_masked(_upper)],
        "the mask is turned round: a word sees what follows, and nothing else.": [
            _masked(lambda q: _upper(q, 1))
        ],
        "the first word sees nothing, not even itself. A word may see itself.": [
            _masked(lambda q: _lower(q, -1), fill) for fill in (-torch.inf, -1e9)
        ],
        "each word sees the next one, the very word to predict.": [
            _masked(lambda q: _lower(q, 1))
        ],
        "True and False were added to the scores, as 1 and 0. Hidden scores must "
        "become -inf.": [lambda q, k, v: (_scores(q, k) + _lower(q)).softmax(-1) @ v],
        "not scaled: divide the scores by the root of H.": [_masked(scale=lambda H: 1)],
        "divided by H. It is the root that keeps the scores' variance at 1.": [
            _masked(scale=lambda H: H)
        ],
        "multiplied by the root of H.": [_masked(scale=lambda H: H**-0.5)],
        "scaled after the softmax. Scale the scores.": [_scaled_late],
        "scaled by the number of words. It is the size of a vector that counts.": [
            _by_length
        ],
        "normalised over the queries: each row of the weights must sum to 1.": [
            _masked(axis=1)
        ],
        "queries and keys are exchanged.": [lambda q, k, v: causal_by_loops(k, q, v)],
        "the contexts are made of keys. Values are what is mixed.": [
            lambda q, k, v: causal_by_loops(q, k, k)
        ],
        "these are the weights. Contexts are asked for.": [_weights],
        "all weights of a row are equal: the scores aren't used.": [_mean],
    },
    gradients=True,
)


class Ask(nn.Module):
    """Words ask each other: a self-attention of one head, (B, S, H) -> (B, S, H)."""

    def __init__(self, H):
        super().__init__()
        self.W_v = nn.Linear(H, H)

    def forward(self, x):
        scores = x @ x.transpose(1, 2) / math.sqrt(x.shape[2])
        return scores.softmax(-1) @ self.W_v(x)


def _thinks(H):
    return nn.Sequential(nn.Linear(H, 2 * H), nn.ReLU(), nn.Linear(2 * H, H))


def _normalised(x):
    """Mean 0 and variance 1 over the units of each word, one word at a time."""
    rows = []
    for word in x.flatten(0, 1):
        mean = sum(word) / len(word)
        variance = sum((u - mean) ** 2 for u in word) / len(word)
        rows.append(torch.stack([(u - mean) / (variance + 1e-5).sqrt() for u in word]))
    return torch.stack(rows).view(x.shape)


def post_norm_by_loops(x, ask, think):
    """x (B, S, H) -> (B, S, H): each part's result is added, then normalised."""
    x = _normalised(x + ask(x))
    return _normalised(x + think(x))


def _norm(x):
    return F.layer_norm(x, x.shape[-1:])


def _after(norm):
    """The paper's order, with another normalisation."""

    def layer(x, ask, think):
        x = norm(x + ask(x))
        return norm(x + think(x))

    return layer


def _before(x, ask, think):
    x = x + ask(_norm(x))
    return x + think(_norm(x))


def _inside(x, ask, think):
    x = x + _norm(ask(x))
    return x + _norm(think(x))


def _once(x, ask, think):
    x = x + ask(x)
    return _norm(x + think(x))


def _not_at_the_end(x, ask, think):
    x = _norm(x + ask(x))
    return x + think(x)


def _both_ends(x, ask, think):
    x = _norm(x + ask(_norm(x)))
    return _norm(x + think(_norm(x)))


WORDS = [(2, 3, 8), (2, 3, 8), (3, 5, 4), (1, 2, 6), (4, 4, 4)]  # (B, S, H)

post_norm = Exercise(
    "post_norm",
    post_norm_by_loops,
    cases=[
        (*draw(n, (B, S, H)), seeded(n, Ask, H), seeded(n + 9, _thinks, H))
        for n, (B, S, H) in enumerate(WORDS)
    ],
    mistakes={
        "this normalises before each part, as the notebook's layer does. The paper "
        "normalises the sum.": [_before],
        "it normalises before each part, and after it, too.": [_both_ends],
        "it normalises what a part computes, and then adds. "
        "Add first, and normalise the sum.": [_inside],
        "only the second sum is normalised. Each of the two is.": [_once],
        "only the first sum is normalised. Each of the two is.": [_not_at_the_end],
        "nothing is added: what came in is lost. Each part's result is added to what "
        "the part has read.": [lambda x, ask, think: _norm(think(_norm(ask(x))))],
        "the second result is added to the first input. Add it to what the second part "
        "has read.": [lambda x, ask, think: _norm(x + think(_norm(x + ask(x))))],
        "the second part reads the first input. It should read what the first part "
        "made.": [lambda x, ask, think: _norm(_norm(x + ask(x)) + think(x))],
        "both parts read the same input, side by side. The second reads what the "
        "first made.": [lambda x, ask, think: _norm(x + ask(x) + think(x))],
        "the second part is left out.": [lambda x, ask, think: _norm(x + ask(x))],
        "the first part is left out.": [lambda x, ask, think: _norm(x + think(x))],
        "the parts are exchanged: first the words ask, then each one thinks.": [
            lambda x, ask, think: _after(_norm)(x, think, ask)
        ],
        "normalised over the words. Each word is normalised by its own units, the "
        "last axis.": [_after(lambda x: _norm(x.transpose(1, 2)).transpose(1, 2))],
        "normalised over words and units together. Each word is normalised by its own "
        "units, the last axis.": [_after(lambda x: F.layer_norm(x, x.shape[1:]))],
        "not normalised.": [_after(lambda x: x)],
    },
    gradients=True,
)
