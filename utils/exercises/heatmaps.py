"""The exercises of notebook 06. T target and S source words."""

import torch

from utils.exercises.old_engine import Exercise


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
        "the loop over a row stops at its first link. A row can have several.": [
            lambda weights, limit: {
                (j, i)
                for j, i in links_by_loops(weights, limit)
                if j == min(k for k, n in links_by_loops(weights, limit) if n == i)
            }
        ],
        "only the first row is read: is there a `return` inside the loop?": [
            lambda weights, limit: links_by_loops(weights[:1], limit)
        ],
        "`update` puts the numbers in one by one. `add` puts in the pair.": [
            lambda weights, limit: {
                n for link in links_by_loops(weights, limit) for n in link
            }
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


def best_links_by_loops(weights, least):
    """Weights (T, S), a number -> {(source, target)}: each row's largest weight."""
    found = set()
    for i, row in enumerate(weights.tolist()):
        best = 0
        for j in range(len(row)):
            if row[j] > row[best]:
                best = j
        if row[best] >= least:
            found.add((best, i))
    return found


def _best_pairs(weights, least, dim=1):
    top, place = weights.max(dim=dim)
    return [
        (int(j), i)
        for i, (value, j) in enumerate(zip(top, place, strict=True))
        if value >= least
    ]


def _last_of_equals(weights, least):
    S = weights.shape[1]
    return {(S - 1 - j, i) for j, i in best_links_by_loops(weights.flip(1), least)}


def _readable(answer, weights, least):
    """The answer's links, tensors among them as text: two are never equal in a set."""
    found = answer(weights, least)
    links = found if isinstance(found, set) else ()
    parts = [part for link in links if isinstance(link, tuple) for part in link]
    if any(part is None or torch.is_tensor(part) for part in parts):
        return {str(link) for link in found}
    return found


best_links = Exercise(
    "best_links",
    best_links_by_loops,
    cases=[
        (torch.tensor(rows), least)
        for rows, least in (
            ([[0.125, 0.25, 0.625], [0.5, 0.25, 0.25]], 0.25),
            ([[0.25, 0.75, 0.0], [0.125, 0.375, 0.5]], 0.625),
            ([[0.125, 0.875], [0.5, 0.5], [0.0, 1.0]], 0.5),
            ([[0.125, 0.375, 0.25, 0.25]], 0.375),
            ([[0.25, 0.25, 0.5], [0.625, 0.25, 0.125], [0.25, 0.375, 0.375]], 0.5),
            ([[0.25, 0.25, 0.25, 0.25], [0.125, 0.75, 0.125, 0.0]], 0.5),
            ([[0.4375, 0.25, 0.3125], [0.53125, 0.25, 0.21875]], 0.53125),
            ([[0.25, 0.46875, 0.28125], [0.5, 0.25, 0.25]], 0.5),
        )
    ],
    mistakes={
        "the weights are rounded before they are compared. Compare them as they are.": [
            lambda w, least: set(_best_pairs((10 * w).round() / 10, least)),
        ],
        "the largest weight itself stands in a link. Its place is asked for: max gives "
        "both, argmax the place.": [
            lambda w, least: {
                (max(row), i) for i, row in enumerate(w.tolist()) if max(row) >= least
            }
        ],
        "the loop ends at the first row without a link. The rows after it can have "
        "one: continue, not break.": [
            lambda w, least: {
                (j, i)
                for j, i in _best_pairs(w, least)
                if (w[: i + 1].amax(1) >= least).all()
            }
        ],
        "a row whose largest weight is below the least one is linked to position 0: "
        "argmax of zeros is 0.": [
            lambda w, least: set(_best_pairs(w.where(w >= least, 0), 0))
        ],
        "the last row is left out: range(T) ends at T - 1.": [
            lambda w, least: set(_best_pairs(w[:-1], least))
        ],
        "a source word keeps only one target word. Several rows may look at the same "
        "place.": [lambda w, least: set(dict(_best_pairs(w, least)).items())],
        "turned round. A link is (source, target), and a row of the weights is a "
        "target word: which of the two is the row's number?": [
            lambda weights, least: {(i, j) for j, i in _best_pairs(weights, least)}
        ],
        "the largest weight of each column was taken: argmax over the wrong axis. Each "
        "row, a target word, gets a link. Which axis are the source words?": [
            lambda weights, least: set(_best_pairs(weights, least, dim=0)),
            lambda weights, least: {(i, j) for j, i in _best_pairs(weights, least, 0)},
        ],
        "every weight that is large enough makes a link. Here a target word has one at "
        "most, where its weight is largest.": [links_by_loops],
        "the largest weight of a row makes a link although it is below the least "
        "weight.": [lambda weights, least: set(_best_pairs(weights, 0))],
        "a weight equal to the least one is enough: >=, not >.": [
            lambda weights, least: set(_best_pairs(weights, least + 1e-6))
        ],
        "only the source positions came. Which target word does each belong to?": [
            lambda weights, least: {j for j, _ in _best_pairs(weights, least)}
        ],
        "counted from 1. In code, positions begin at 0.": [
            lambda w, least: {(j + 1, i + 1) for j, i in _best_pairs(w, least)}
        ],
        "the links are numbered among themselves: a row without a link must still be "
        "counted.": [
            lambda w, least: {(j, n) for n, (j, _) in enumerate(_best_pairs(w, least))}
        ],
        "of equal weights the first counts, as with argmax.": [_last_of_equals],
        "the largest weight of the whole table makes the only link. Each row has one "
        "of its own: argmax needs an axis.": [
            lambda weights, least: {
                (int(weights.argmax()) % weights.shape[1],)
                + (int(weights.argmax()) // weights.shape[1],)
            }
        ],
        "the numbers in the links are tensors. Two tensors are never the same "
        "element of a set: int(...) or .tolist() makes plain numbers.": [
            lambda weights, least: {
                (row.argmax(), torch.tensor(i))
                for i, row in enumerate(weights)
                if row.max() >= least
            },
            lambda weights, least: {
                (row.argmax(), i) for i, row in enumerate(weights) if row.max() >= least
            },
        ],
        "a row whose largest weight is too small makes a link all the same, with None "
        "or -1. It has none.": [
            lambda weights, least: {
                (j if row.max() >= least else None, i)
                for i, (j, row) in enumerate(
                    zip(weights.argmax(1).tolist(), weights, strict=True)
                )
            }
        ],
    },
    unwrap=_readable,
)


def aer_by_loops(predicted, sure, possible):
    """Predicted, sure, possible links, a set for each sentence -> error rate."""
    errors = size = 0
    for a, s, p in zip(predicted, sure, possible, strict=True):
        for link in a:
            errors += 0 if link in s or link in p else 1
        for link in s:
            errors += 0 if link in a else 1
        size += len(a) + len(s)
    return errors / size


def _counts(predicted, sure, possible):
    """Numbers of links: predicted, sure, in both, predicted and sure or possible."""
    rows = [
        (len(a), len(s), len(a & s), len(a & (s | p)))
        for a, s, p in zip(predicted, sure, possible, strict=True)
    ]
    return [sum(column) for column in zip(*rows, strict=True)]


def _from_counts(formula):
    return lambda *sides: formula(*_counts(*sides))


def _mean_of_sentences(predicted, sure, possible):
    rows = zip(predicted, sure, possible, strict=True)
    return sum(aer_by_loops([a], [s], [p]) for a, s, p in rows) / len(sure)


def _turned(predicted, sure, possible):
    turned = [{(i, j) for j, i in links} for links in predicted]
    return aer_by_loops(turned, sure, possible)


def _joined(sentences):
    return [set().union(*sentences)]


aer = Exercise(
    "aer",
    aer_by_loops,
    cases=[
        (
            [{(0, 0), (1, 2), (1, 1)}, {(0, 0)}],
            [{(0, 0), (1, 2)}, {(0, 1)}],
            [{(1, 1), (2, 1)}, set()],
        ),
        (
            [{(0, 0), (2, 0)}, {(0, 1), (2, 2)}],
            [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}],
            [set(), {(2, 2), (3, 3), (0, 2)}],
        ),
        ([{(0, 0), (1, 1)}], [{(0, 0), (1, 1)}], [set()]),
        ([{(0, 1)}], [{(1, 0)}], [{(2, 0)}]),
        (
            [{(3, 3)}, {(2, 2), (4, 4), (1, 0)}, {(0, 0)}],
            [{(2, 2)}, {(2, 2)}, {(0, 0)}],
            [{(3, 3)}, {(1, 0), (0, 2), (4, 0)}, set()],
        ),
        (
            [set(), {(0, 0), (1, 1), (2, 0)}, {(0, 1)}],
            [{(0, 0), (1, 1)}, {(0, 0), (1, 2)}, {(0, 1), (1, 0)}],
            [{(2, 1)}, {(1, 1)}, set()],
        ),
    ],
    mistakes={
        "a sentence without a predicted link is left out. Its sure links are missing, "
        "and they count.": [
            lambda a, s, p: aer_by_loops(
                a, [y if x else set() for x, y in zip(a, s, strict=True)], p
            )
        ],
        "only one sentence is counted: = in place of +=, or a `return` inside the "
        "loop?": [
            lambda *sides: aer_by_loops(*(side[-1:] for side in sides)),
            lambda *sides: aer_by_loops(*(side[:1] for side in sides)),
        ],
        "below 0, or above 1: the order of the arithmetic. Where do brackets belong? "
        "And the counts: | joins two sets, & keeps what both hold.": [
            _from_counts(lambda a, s, in_s, in_p: 1 - in_s + in_p / (a + s)),
            _from_counts(lambda a, s, in_s, in_p: 1 - (in_s + in_p) / a + s),
            _from_counts(lambda a, s, in_s, in_p: 1 - in_s + in_p / a + s),
            lambda a, s, p: (
                1
                - sum(
                    len(x | y) + len(x | y | z) for x, y, z in zip(a, s, p, strict=True)
                )
                / sum(_counts(a, s, p)[:2])
            ),
        ],
        "divided by numbers of sentences: len(a) and len(s) belong inside the loop, to "
        "each sentence's sets.": [
            lambda a, s, p: 1 - sum(_counts(a, s, p)[2:]) / (len(a) + len(s))
        ],
        "whole numbers: // cuts off, and so does round. Divide with /.": [
            _from_counts(lambda a, s, in_s, in_p: 1 - (in_s + in_p) // (a + s)),
            lambda *sides: round(aer_by_loops(*sides), 2),
        ],
        "the possible links don't count: this is the rate against sure links alone. "
        "What is P for?": [lambda a, s, p: aer_by_loops(a, s, [set()] * len(s))],
        "a link that is sure isn't counted as possible. P contains S, but the third "
        "list holds only the links that are not sure: join them.": [
            lambda a, s, p: (
                1
                - (
                    _counts(a, s, p)[2]
                    + sum(len(x & y) for x, y in zip(a, p, strict=True))
                )
                / sum(_counts(a, s, p)[:2])
            )
        ],
        "a possible link that is missing costs something: the sum below the line has "
        "|S|, and not |P|.": [
            lambda a, s, p: (
                1
                - sum(_counts(a, s, p)[2:])
                / sum(len(x) + len(y | z) for x, y, z in zip(a, s, p, strict=True))
            ),
            lambda a, s, p: aer_by_loops(
                a, [y | z for y, z in zip(s, p, strict=True)], p
            ),
        ],
        "the possible links are taken for the sure ones, and the sure ones for the "
        "possible.": [lambda a, s, p: aer_by_loops(a, p, s)],
        "the mean of the sentences' error rates: a short sentence counts as much as a "
        "long one. Add the counts of all sentences first.": [_mean_of_sentences],
        "this is 1 - precision: sure links that are missing cost nothing.": [
            _from_counts(lambda a, s, in_s, in_p: 1 - in_p / a)
        ],
        "this is 1 - recall: links too many cost nothing.": [
            _from_counts(lambda a, s, in_s, in_p: 1 - in_s / s)
        ],
        "this is the share that is right. An error rate of 0 is perfect.": [
            lambda *sides: 1 - aer_by_loops(*sides)
        ],
        "A ∩ P stands twice. One of the two is A ∩ S.": [
            _from_counts(lambda a, s, in_s, in_p: 1 - 2 * in_p / (a + s))
        ],
        "a perfect alignment must get 0. Above the line stand two counts: |A ∩ S| and "
        "|A ∩ P|.": [_from_counts(lambda a, s, in_s, in_p: 1 - in_s / (a + s))],
        "divided by the union of both sets. The formula has |A| + |S|, where common "
        "links count twice.": [
            _from_counts(lambda a, s, in_s, in_p: 1 - in_s / (a + s - in_s)),
            _from_counts(lambda a, s, in_s, in_p: 1 - in_p / (a + s - in_s)),
        ],
        "the links of all sentences are in one set: a link of one sentence is found in "
        "the gold of another.": [lambda *sides: aer_by_loops(*map(_joined, sides))],
        "source and target are exchanged on one side.": [_turned],
        "a share between 0 and 1 is asked for, not percent.": [
            lambda *sides: 100 * aer_by_loops(*sides)
        ],
        "this is the number of errors: divide it.": [
            _from_counts(lambda a, s, in_s, in_p: a + s - in_s - in_p)
        ],
        "the lists themselves were compared: a list holds a set for each sentence. Go "
        "through the three lists together, with zip.": [
            lambda a, s, p: 1 - (len(a & s) + len(a & p)) / (len(a) + len(s)),
            lambda a, s, p: 1 - (len(a & s) + len(a & (s | p))) / (len(a) + len(s)),
            lambda a, s, p: 1 - (len(a & s) + len(a & (p | s))) / (len(a) + len(s)),
            lambda a, s, p: a.intersection(s),
            lambda a, s, p: len(set(a) & set(s)),
        ],
    },
)
