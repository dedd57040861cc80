"""The exercise of notebook 00. T target and S source words."""

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw


def most_attended_by_loops(weights, words):
    """Weights (T, S) and the S source words -> T words, the most attended each time."""
    found = []
    for row in weights.tolist():
        best = 0
        for j in range(len(row)):
            if row[j] > row[best]:
                best = j
        found.append(words[best])
    return found


def _case(seed, T, S):
    return draw(seed, (T, S))[0].softmax(-1), [f"word{j}" for j in range(S)]


def _late(weights, words):
    found = most_attended_by_loops(weights, words)
    return found[1:] + found[-1:]


most_attended = Exercise(
    "most_attended",
    most_attended_by_loops,
    cases=[
        _case(0, 4, 6),
        _case(1, 4, 6),
        _case(2, 3, 7),
        _case(3, 1, 5),
        _case(4, 5, 5),
        _case(5, 7, 3),
    ],
    mistakes={
        "you went through the columns. A row of the heatmap is a target word: which "
        "axis does argmax run over?": [
            lambda weights, words: [words[i] for i in weights.argmax(dim=0).tolist()]
        ],
        "these are positions. The word at a position is words[position].": [
            lambda weights, words: weights.argmax(dim=1).tolist()
        ],
        "these are the words looked at least: the largest weight is asked for.": [
            lambda weights, words: [words[row.argmin()] for row in weights]
        ],
        "the first row is missing. Counting begins at 0.": [
            lambda weights, words: most_attended_by_loops(weights, words)[1:]
        ],
        "the last row is missing. It belongs to <eos>, and is asked for, too.": [
            lambda weights, words: most_attended_by_loops(weights, words)[:-1]
        ],
        "each row is taken one step too late.": [_late],
        "one word for the whole sentence. Each row has its own largest weight.": [
            lambda weights, words: [words[weights.sum(0).argmax()] for _ in weights]
        ],
        "the last column is never chosen: <eos> may be looked at, too.": [
            lambda weights, words: most_attended_by_loops(weights[:, :-1], words)
        ],
    },
)
