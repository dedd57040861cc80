"""The exercise of notebook 00. T target and S source words."""

from utils.exercises.old_engine import Exercise
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


def _rows_and_words(weights, words):
    return zip(weights, most_attended_by_loops(weights, words), strict=True)


def _of_sure_rows(weights, words, least):
    return [word for row, word in _rows_and_words(weights, words) if row.max() > least]


most_attended = Exercise(
    "most_attended",
    most_attended_by_loops,
    cases=[
        _case(0, 4, 6),
        _case(1, 4, 6),
        _case(2, 3, 7),
        _case(3, 2, 5),
        _case(4, 5, 5),
        _case(5, 7, 3),
    ],
    mistakes={
        "you went through the columns. A row of the heatmap is a target word: which "
        "axis does argmax run over?": [
            lambda weights, words: [words[i] for i in weights.argmax(dim=0).tolist()]
        ],
        "these are positions. The word at a position is words[position].": [
            lambda weights, words: weights.argmax(dim=1).tolist(),
            lambda weights, words: weights.argmax(dim=1),
            lambda weights, words: list(weights.argmax(dim=1)),
            lambda weights, words: [int(j) + 1 for j in weights.argmax(dim=1)],
        ],
        "these are the largest weights themselves, or they were taken for positions. "
        "Asked for is where they stand, and which word stands there.": [
            lambda weights, words: [words[int(row.max())] for row in weights],
            lambda weights, words: weights.max(dim=1).values.tolist(),
            lambda weights, words: weights.max(dim=1).values,
            lambda weights, words: [max(row) for row in weights.tolist()],
        ],
        "a list takes one whole number as a position: neither a tensor of several "
        "positions (max along an axis gives two tensors, weights and positions), nor a "
        "weight. Go through the rows, or through the positions.": [
            lambda weights, words: words[weights.argmax(dim=1)],
            lambda weights, words: [words[j] for j in weights.max(dim=1)],
            lambda weights, words: [words[row.max()] for row in weights],
            lambda weights, words: words[weights.argmax(dim=1).tolist()],
            lambda weights, words: [
                words[w] for w in weights.max(dim=1).values.tolist()
            ],
        ],
        "argmax without dim=... searches the whole table at once, and counts through "
        "all its cells. There must be an answer for each row.": [
            lambda weights, words: [words[weights.argmax()]],
            lambda weights, words: words[weights.argmax()],
            lambda weights, words: weights.argmax(),
            lambda weights, words: weights.argmax().item(),
            lambda weights, words: [words[weights.argmax()] for _ in weights],
        ],
        "this is the answer for the first row alone. Does `return` stand inside the "
        "loop?": [
            lambda weights, words: most_attended_by_loops(weights, words)[:1],
            lambda weights, words: most_attended_by_loops(weights, words)[0],
        ],
        "this is the answer for the last row alone. The words of all rows must be "
        "collected in a list.": [
            lambda weights, words: most_attended_by_loops(weights, words)[-1:],
            lambda weights, words: most_attended_by_loops(weights, words)[-1],
        ],
        "these are the source words in their own order: the weights weren't used.": [
            lambda weights, words: [words[i] for i in range(len(weights))],
            lambda weights, words: words,
            lambda weights, words: words[: len(weights)],
        ],
        "each place is one column too far left. Python counts positions from 0, and so "
        "does argmax.": [
            lambda weights, words: [words[j - 1] for j in weights.argmax(dim=1)]
        ],
        "each place is one column too far right. Where does argmax begin to count, and "
        "where does a list?": [
            lambda weights, words: [words[j + 1] for j in weights.argmax(dim=1)],
            lambda weights, words: [
                words[(j + 1) % len(words)] for j in weights.argmax(dim=1)
            ],
        ],
        "several rows may look most at the same word. It is asked for once a row, in "
        "the order of the rows.": [
            lambda weights, words: list(
                dict.fromkeys(most_attended_by_loops(weights, words))
            ),
            lambda weights, words: sorted(set(most_attended_by_loops(weights, words))),
        ],
        "the words are right, but in alphabetical order. Asked for is the order of the "
        "rows.": [
            lambda weights, words: sorted(most_attended_by_loops(weights, words))
        ],
        "the words come from the last row to the first.": [
            lambda weights, words: most_attended_by_loops(weights, words)[::-1]
        ],
        "one long string. A list is asked for, with a word for each row.": [
            lambda weights, words: " ".join(most_attended_by_loops(weights, words)),
            lambda weights, words: "".join(most_attended_by_loops(weights, words)),
        ],
        "these are the words looked at least: the largest weight is asked for.": [
            lambda weights, words: [words[row.argmin()] for row in weights],
            lambda weights, words: [words[row.argsort()[0]] for row in weights],
        ],
        "the first row is missing. Counting begins at 0.": [
            lambda weights, words: most_attended_by_loops(weights, words)[1:]
        ],
        "the last row is missing. It belongs to <eos>, and is asked for, too.": [
            lambda weights, words: most_attended_by_loops(weights, words)[:-1]
        ],
        "each row is taken one step too late.": [_late],
        "one word for the whole sentence. Each row has its own largest weight.": [
            lambda weights, words: [words[weights.sum(0).argmax()] for _ in weights],
            lambda weights, words: [words[weights.sum(0).argmax()]],
            lambda weights, words: words[weights.sum(0).argmax()],
        ],
        "the last column is never chosen: <eos> may be looked at, too.": [
            lambda weights, words: most_attended_by_loops(weights[:, :-1], words)
        ],
        "the loop goes through as many steps as there are source words. How many rows "
        "have the weights?": [
            lambda weights, words: [
                words[weights[i].argmax()] for i in range(len(words))
            ],
            lambda weights, words: [
                words[row.argmax()] for row in [weights[i] for i, _ in enumerate(words)]
            ],
        ],
        "position i was taken from column i, and not from row i of the weights.": [
            lambda weights, words: [
                words[weights[:, i].argmax()] for i in range(len(weights))
            ],
        ],
        "the words are right, but something stands beside or around each. Asked for is "
        "a list of plain words.": [
            lambda weights, words: list(
                enumerate(most_attended_by_loops(weights, words))
            ),
            lambda weights, words: [
                [w] for w in most_attended_by_loops(weights, words)
            ],
            lambda weights, words: [
                (w,) for w in most_attended_by_loops(weights, words)
            ],
            lambda weights, words: [
                (w, row.max()) for row, w in _rows_and_words(weights, words)
            ],
            lambda weights, words: [
                (w, row.max().item()) for row, w in _rows_and_words(weights, words)
            ],
            lambda weights, words: [
                (j.item(), words[j]) for j in weights.argmax(dim=1)
            ],
        ],
        ".item() takes a tensor of one number, and there is a position for each row.": [
            lambda weights, words: words[weights.argmax(dim=1).item()],
            lambda weights, words: words[int(weights.argmax(dim=1))],
        ],
        "the weights have two axes: axis 0 goes down the rows, axis 1 along a row.": [
            lambda weights, words: [words[j] for j in weights.argmax(dim=2)],
        ],
        "the list of words doesn't hold weights, so it can't be searched for one. At "
        "which position of its own row does the largest weight stand?": [
            lambda weights, words: [words.index(max(row)) for row in weights],
            lambda weights, words: [words.index(row.max()) for row in weights],
            lambda weights, words: [words.index(max(row)) for row in weights.tolist()],
        ],
        "the softmax ran down the columns. The weights are shares already: no softmax "
        "is needed.": [
            lambda weights, words: most_attended_by_loops(weights.softmax(0), words)
        ],
        "rows without a large weight are missing. Every row has a largest weight, "
        "however small.": [
            lambda weights, words: _of_sure_rows(weights, words, 0.5),
            lambda weights, words: _of_sure_rows(weights, words, 0.4),
            lambda weights, words: _of_sure_rows(weights, words, 0.3),
        ],
        "max along an axis gives two results, weights and their positions, and both "
        "were handed on.": [
            lambda weights, words: weights.max(dim=1),
            lambda weights, words: [weights.max(dim=1)],
            lambda weights, words: list(weights.max(dim=1)),
        ],
    },
)
