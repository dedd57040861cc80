"""The exercise of notebook 14: P processes, N parameters."""

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw

mean_over_words = Exercise(
    "mean_over_words",
    """
def weighed_by_words(gradients, words):  # (P, N) and (P,) of P processes -> (N,)
    return (words / words.sum()) @ gradients
""",
    {
        "Each gradient is that of a mean over the words of one process. Asked for is "
        "that of the mean over all words, in which each word counts the same.": [
            (draw(len(w), (len(w), N))[0], torch.tensor(w))
            for w, N in (([7, 2], 3), ([1, 5, 3, 4], 2), ([6], 4), ([8, 1, 2], 3))
        ],
    },
    r"""
The mean of the means: a word counts more where there are few.
    => return gradients.mean(0)
The sum of the means: it grows with the number of processes.
    => return gradients.sum(0)
The sum over the words is to be divided by their number, that of all processes.
    (words / words.sum()) => words.float()
    (words / words.sum()) => (words / len(words))
Each gradient is that of a mean already: what is multiplied by its words is a sum.
    (words / words.sum()) => (1 / words)
    (words / words.sum()) @ gradients => gradients.sum(0) / words.sum()
The words meet the parameters. Each belongs to a process, a row of gradients (P, N).
    (words / words.sum()) @ gradients => (gradients * words).sum(0) / words.sum()
`@` wants two tensors of one type, and words are whole numbers. Their shares aren't.
    (words / words.sum()) => words
""",
    gradients=True,
)
