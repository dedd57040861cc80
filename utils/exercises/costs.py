"""The exercise of notebook 15. P processes, N parameters."""

import torch
from torch.nn import functional as F

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw


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
