"""The exercises of notebook 10: K hypotheses, V words."""

import math

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw


def step_by_loops(log_probs, ended, steps, size):
    """One step of a beam -> [(hypothesis, word), ...], the `size` best, the best first.

    K log-probabilities; whether each has ended; K lists with the log-probabilities of V
    next words. One that has ended goes on as (hypothesis, -1), at no cost.
    """
    grown = []
    for k in range(len(log_probs)):
        if ended[k]:
            grown.append((log_probs[k], k, -1))
        else:
            for word in range(len(steps[k])):
                grown.append((log_probs[k] + steps[k][word], k, word))
    grown.sort(key=lambda one: -one[0])
    return [(k, word) for _, k, word in grown[:size]]


def _step(
    add=lambda before, step: before + step,
    goes_on=True,
    grows=False,
    sign=-1,
    first=0,
    keep=None,
    form=lambda k, word: (k, word),
):
    """A learner's step. keep: how many of each hypothesis, as a function of size."""

    def wrong(log_probs, ended, steps, size):
        grown = []
        for k, row in list(enumerate(steps))[first:]:
            own = [(add(log_probs[k], step), k, word) for word, step in enumerate(row)]
            if ended[k] and not grows:
                own = [(add(log_probs[k], 0.0), k, -1)] * goes_on
            own.sort(key=lambda one: sign * one[0])
            grown += own[: keep(size)] if keep else own
        if keep is None or keep(size) == 1:
            grown.sort(key=lambda one: sign * one[0])
        return [form(k, word) for _, k, word in (grown if keep else grown[:size])]

    return wrong


def _case(seed, K, V, size, ended=()):
    before, steps = draw(seed, (K,), (K, V))
    steps = steps.mul(2).log_softmax(dim=-1).tolist()
    before = before.sub(before.max() + 0.3).mul(2).tolist()
    return before, [k in ended for k in range(K)], steps, size


beam_step = Exercise(
    "beam_step",
    step_by_loops,
    cases=[
        _case(0, 3, 5, 2),
        _case(1, 3, 5, 2, ended=[0]),
        _case(2, 2, 4, 3, ended=[1]),
        _case(3, 4, 4, 4, ended=[2]),
        ([-0.1, -2.0], [False, False], [[-4.0, -0.02], [-0.3, -1.4]], 1),
        ([0.0, -math.inf], [False, False], [[-0.5, -1.5, -1.7], [-0.1, -3.0, -3.1]], 2),
        ([-0.4, -0.5], [True, False], [[-0.1, -3.0], [-0.05, -4.0]], 2),
        ([-2.0, -0.5], [False, True], [[-0.3, -1.4, -4.0], [-0.1, -3.0, -3.5]], 1),
    ],
    mistakes={
        "what the hypothesis had so far isn't added: its own log-probability "
        "counts, too.": [_step(add=lambda before, step: step)],
        "the numbers are multiplied. Probabilities are; their logarithms are added.": [
            _step(add=lambda before, step: before * step)
        ],
        "a hypothesis that has ended is dropped. It stays in the race as it is.": [
            _step(goes_on=False)
        ],
        "a hypothesis that has ended grows on. Nothing follows its end.": [
            _step(grows=True)
        ],
        "these are the least probable ones: log-probabilities are negative, and the "
        "largest is best.": [_step(sign=1)],
        "the best words of each hypothesis are kept apart. All continuations of "
        "a sentence compete with each other.": [_step(keep=lambda size: size)],
        "each hypothesis goes on by its best word alone. That is greedy decoding, "
        "several times.": [_step(keep=lambda size: 1)],
        "the first hypothesis is left out. Numbers begin at 0.": [_step(first=1)],
        "word and hypothesis are exchanged: (hypothesis, word) is asked for.": [
            _step(form=lambda k, word: (word, k))
        ],
        "the words without their hypotheses: which beginning does each continue?": [
            _step(form=lambda k, word: word)
        ],
    },
)


def best_by_loops(log_probs, lengths, alpha):
    """Log-probabilities, lengths, alpha -> the number of the best hypothesis."""
    best = 0
    for n in range(len(log_probs)):
        score = log_probs[n] / lengths[n] ** alpha
        if score > log_probs[best] / lengths[best] ** alpha:
            best = n
    return best


def _scores(score, log_probs, lengths, alpha):
    return [score(p, n, alpha) for p, n in zip(log_probs, lengths, strict=True)]


def _highest(score):
    """The number of the hypothesis whose score(log_prob, length, alpha) is highest."""

    def wrong(*arguments):
        scores = _scores(score, *arguments)
        return scores.index(max(scores))

    return wrong


best_hypothesis = Exercise(
    "best_hypothesis",
    best_by_loops,
    cases=[
        ([-4.0, -5.0, -9.0], [2, 4, 9], 1.0),
        ([-6.0, -4.0, -1.2], [8, 3, 9], 1.0),
        ([-4.0, -5.0, -9.0], [2, 4, 9], 0.0),
        ([-4.0, -6.0], [4, 9], 0.5),
        ([-3.0, -3.4, -8.0], [5, 7, 9], 0.7),
        ([-2.0, -6.0], [1, 4], 0.3),
        ([-2.0, -6.0, -7.0], [1, 4, 20], 0.9),
        ([-7.0], [3], 1.0),
        ([-4.0, -4.1], [10, 2], 1.0),
        ([-3.0, -5.0], [2, 1], 1.0),
        ([-4.0, -3.2], [1, 2], 1.0),
    ],
    mistakes={
        "the lengths are not used: probability alone favours the short.": [
            _highest(lambda p, n, alpha: p)
        ],
        "for every alpha the answer is the same, the one for alpha = 1.": [
            _highest(lambda p, n, alpha: p / n)
        ],
        "multiplied by the length, which punishes long hypotheses twice.": [
            _highest(lambda p, n, alpha: p * n**alpha)
        ],
        "this is the worst one: log-probabilities are negative, and the largest is "
        "best.": [
            _highest(lambda p, n, alpha: -p / n**alpha),
            _highest(lambda p, n, alpha: abs(p) / n**alpha),
        ],
        "length times alpha: alpha is an exponent. As a factor it changes no order.": [
            _highest(lambda p, n, alpha: p / (n * alpha) if alpha else p)
        ],
        "the length is subtracted. It divides, raised to alpha.": [
            _highest(lambda p, n, alpha: p - alpha * n)
        ],
        "the longest wins: the probabilities are not used.": [
            _highest(lambda p, n, alpha: n)
        ],
        "the shortest wins: the probabilities are not used.": [
            _highest(lambda p, n, alpha: -n)
        ],
        "a probability is divided where its logarithm belongs: take no exp.": [
            _highest(lambda p, n, alpha: math.exp(p) / n**alpha)
        ],
        "counted from 1. Numbers begin at 0.": [
            lambda *arguments: best_by_loops(*arguments) + 1
        ],
        "this is the best score. The number of the hypothesis is asked for.": [
            lambda *arguments: max(_scores(lambda p, n, a: p / n**a, *arguments))
        ],
    },
)
