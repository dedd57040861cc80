"""The exercises of notebook 06. T target and S source words."""

import torch

from utils.exercises.engine import Exercise


def links_by_loops(weights, threshold):
    """Weights (T, S), threshold -> {(source, target)} whose weight reaches it."""
    found = set()
    for i, row in enumerate(weights.tolist()):
        for j in range(len(row)):
            if row[j] >= threshold:
                found.add((j, i))
    return found


def _moved(source, target):
    """Every link moved by so many words."""
    return lambda weights, threshold: {
        (j + source, i + target) for j, i in links_by_loops(weights, threshold)
    }


def _best(weights, threshold):
    return {(int(row.argmax()), i) for i, row in enumerate(weights)}


def _all_links(weights):
    return {(j, i) for i in range(weights.shape[0]) for j in range(weights.shape[1])}


links = Exercise(
    "links",
    links_by_loops,
    cases=[
        (torch.tensor(rows), threshold)
        for rows, threshold in (
            ([[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], 0.25),
            ([[0.25, 0.75, 0.0], [0.125, 0.375, 0.5]], 0.25),
            ([[0.5, 0.5], [0.875, 0.125], [0.0, 1.0]], 0.5),
            ([[0.375, 0.125, 0.25, 0.25]], 0.375),
            ([[0.25, 0.25, 0.5], [0.625, 0.25, 0.125], [0.375, 0.375, 0.25]], 0.375),
            ([[0.25, 0.25, 0.25, 0.25], [0.75, 0.125, 0.125, 0.0]], 0.5),
        )
    ],
    mistakes={
        "mirrored at the diagonal. A link is (source, target): which axis of the "
        "weights is which?": [
            lambda weights, limit: {(i, j) for j, i in links_by_loops(weights, limit)}
        ],
        "a weight equal to the threshold reaches it: >=, not >.": [
            lambda weights, limit: links_by_loops(weights, limit + 1e-6)
        ],
        "this is each row's largest weight. Every weight that reaches the threshold "
        "makes a link.": [_best],
        "at most one link a row. Every weight that reaches the threshold makes one.": [
            lambda *arguments: _best(*arguments) & links_by_loops(*arguments)
        ],
        "a row in which no weight reaches the threshold has no link.": [
            lambda *arguments: _best(*arguments) | links_by_loops(*arguments)
        ],
        "turned round: these are the weights below it.": [
            lambda weights, limit: _all_links(weights) - links_by_loops(weights, limit)
        ],
        "counted from 1. Positions begin at 0.": [_moved(1, 1)],
        "each link belongs to the next target word: off by one in time. Row i is the "
        "word with index i.": [_moved(0, 1)],
        "each link belongs to the target word before: off by one in time. Row i is the "
        "word with index i.": [_moved(0, -1)],
        "the source index is off by one: positions begin at 0.": [_moved(1, 0)],
        "the last row is left out. <eos> is gone from these weights already.": [
            lambda weights, limit: links_by_loops(weights[:-1], limit)
        ],
        "the last column is left out. <eos> is gone from these weights already.": [
            lambda weights, limit: links_by_loops(weights[:, :-1], limit)
        ],
    },
)


def aer_by_loops(predicted, gold):
    """Predicted and gold links, a set for each sentence -> alignment error rate."""
    errors = size = 0
    for a, s in zip(predicted, gold, strict=True):
        errors += sum(link not in s for link in a)
        errors += sum(link not in a for link in s)
        size += len(a) + len(s)
    return errors / size


def _common(predicted, gold):
    return sum(len(a & s) for a, s in zip(predicted, gold, strict=True))


def _count(sets):
    return sum(map(len, sets))


def _mean_of_sentences(predicted, gold):
    pairs = zip(predicted, gold, strict=True)
    return sum(aer_by_loops([a], [s]) for a, s in pairs) / len(gold)


def _jaccard(predicted, gold):
    common = _common(predicted, gold)
    return 1 - common / (_count(predicted) + _count(gold) - common)


def _turned(predicted, gold):
    return aer_by_loops([{(i, j) for j, i in links} for links in predicted], gold)


aer = Exercise(
    "aer",
    aer_by_loops,
    cases=[
        ([{(0, 0), (1, 2), (1, 1)}, {(0, 0)}], [{(0, 0), (1, 2)}, {(0, 1)}]),
        ([{(0, 0)}, {(0, 1), (2, 2)}], [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}]),
        ([{(0, 0), (1, 1)}], [{(0, 0), (1, 1)}]),
        ([{(0, 1)}], [{(1, 0)}]),
        ([{(3, 3)}, {(2, 2), (4, 4)}, {(0, 0)}], [{(2, 2)}, {(2, 2)}, {(0, 0)}]),
    ],
    mistakes={
        "the mean of the sentences' error rates: a short sentence counts as much as a "
        "long one. Add the counts of all sentences first.": [_mean_of_sentences],
        "this is 1 - precision: links that are missing cost nothing.": [
            lambda predicted, gold: 1 - _common(predicted, gold) / _count(predicted)
        ],
        "this is 1 - recall: links too many cost nothing.": [
            lambda predicted, gold: 1 - _common(predicted, gold) / _count(gold)
        ],
        "this is the share that is right. An error rate of 0 is perfect.": [
            lambda predicted, gold: 1 - aer_by_loops(predicted, gold)
        ],
        "a perfect alignment must get 0. In the formula |A ∩ S| stands twice here, "
        "since |A ∩ P| is equal to it.": [
            lambda predicted, gold: (
                1 - _common(predicted, gold) / (_count(predicted) + _count(gold))
            )
        ],
        "divided by the union of both sets. The formula has |A| + |S|, where common "
        "links count twice.": [_jaccard],
        "the links of all sentences are in one set: a link of one sentence is found in "
        "the gold of another.": [
            lambda predicted, gold: aer_by_loops(
                [set().union(*predicted)], [set().union(*gold)]
            )
        ],
        "source and target are exchanged on one side.": [_turned],
        "a share between 0 and 1 is asked for, not percent.": [
            lambda predicted, gold: 100 * aer_by_loops(predicted, gold)
        ],
        "this is the number of errors: divide it.": [
            lambda predicted, gold: (
                _count(predicted) + _count(gold) - 2 * _common(predicted, gold)
            )
        ],
    },
)
