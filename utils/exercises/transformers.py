"""The exercises of notebook 13.

B sentences, T words, H units, N heads of size D = H / N, P processes.
"""

import math

import torch
from torch.nn import functional as F

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw


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


def mean_over_words_by_loops(gradients, words):
    """P processes' gradients (P, N), words (P,) -> the gradient over all words (N,).

    A process's gradient is that of its own mean over words.
    """
    P, N = gradients.shape
    return torch.stack(
        [
            sum(gradients[p, n] * words[p] for p in range(P)) / sum(words.tolist())
            for n in range(N)
        ]
    )


def _weighed(weights):
    """The sum of the gradients, each times its weight, of weights(words)."""
    return lambda gradients, words: (
        weights(words.float()).unsqueeze(1) * gradients
    ).sum(0)


def _processes(seed, words, N):
    return draw(seed, (len(words), N))[0], torch.tensor(words)


mean_over_words = Exercise(
    "mean_over_words",
    mean_over_words_by_loops,
    cases=[
        _processes(0, [7, 2], 3),
        _processes(1, [4, 9], 3),
        _processes(2, [1, 5, 3, 3], 2),
        _processes(3, [6], 4),
        _processes(4, [8, 1, 2], 3),
    ],
    mistakes={
        "the mean of means: a word counts more where there are few. Each process has "
        "to count "
        "as much as it has words.": [_weighed(lambda w: torch.ones_like(w) / len(w))],
        "the sum of the means: the step grows with the number of processes.": [
            _weighed(torch.ones_like)
        ],
        "this is the sum over all words. Divide by their number.": [
            _weighed(lambda w: w)
        ],
        "divided by the number of processes. The number of words is to be below the "
        "line.": [_weighed(lambda w: w / len(w))],
        "divided once too often: the shares of the words sum to 1 already.": [
            _weighed(lambda w: w / w.sum() / len(w))
        ],
        "multiplied by the number of processes. ShareOfLoss does it, because a mean "
        "over the processes "
        "follows. Here, none does.": [_weighed(lambda w: len(w) * w / w.sum())],
        "divided by the words of each. Each gradient is a mean already.": [
            _weighed(lambda w: 1 / w),
            _weighed(lambda w: 1 / w / len(w)),
        ],
        "the means are summed as if they were sums: multiply each by its own number of "
        "words first.": [_weighed(lambda w: torch.ones_like(w) / w.sum())],
        "turned round: the fewer words, the more they count.": [
            _weighed(lambda w: (1 / w) / (1 / w).sum())
        ],
        "softmax is no share: 7 words of 9 are 7/9.": [
            _weighed(lambda w: w.softmax(0))
        ],
        "divided by the most words, not by all.": [_weighed(lambda w: w / w.max())],
        "this is the gradient of one process, the one with the most words.": [
            _weighed(lambda w: F.one_hot(w.argmax(), len(w)).float())
        ],
        "`//` leaves nothing of a share below 1.": [
            _weighed(lambda w: w.div(w.sum(), rounding_mode="floor"))
        ],
        "words belong to the rows, one number a process: words.unsqueeze(1).": [
            lambda gradients, words: (gradients * words).sum(0) / words.sum()
        ],
    },
    gradients=True,
)
