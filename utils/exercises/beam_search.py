"""The exercises of notebook 10. K hypotheses, V words."""

from utils.exercises.engine import Exercise

beam_step = Exercise(
    "beam_step",
    """
def step(log_probs, ended, steps, size):  # -> [(hypothesis, word), ...]
    grown = []
    for k, row in enumerate(steps):
        if ended[k]:
            grown.append((log_probs[k], k, -1))
        else:
            grown += [(log_probs[k] + s, k, word) for word, s in enumerate(row)]
    grown.sort(key=lambda one: one[0], reverse=True)
    return [(k, word) for _, k, word in grown[:size]]
""",
    {
        "All continuations compete. Which sums of log-probabilities are largest?": [
            ([-0.2, -0.9, -3.1], 3 * [False], [[-1.6, -0.4], [-0.1, -2.4], [0, -9]], 2),
            ([-0.1, -2.0], [False, False], [[-4.0, -0.02], [-0.3, -1.4]], 1),
            ([0, float("-inf")], 2 * [False], [[-0.5, -1.5, -1.7], [-0.1, -3, -4]], 2),
        ],
        "A hypothesis that has ended competes as it is, with the word -1.": [
            ([-1, -2, -4], [False, True, False], [[-0.6, -4], [-0.1, -2], [-2, -3]], 3),
            ([-5, -2, -1], [True, False, True], [[-0.6, -3], [-1, -2], [-2, -4]], 4),
            ([-0.4, -0.5], [True, False], [[-0.1, -3.0], [-0.05, -4.0]], 2),
            ([-2.0, -0.5], [False, True], [[-0.3, -1.4, -4.0], [-0.1, -3.0, -3.5]], 1),
        ],
    },
    """
A sentence's log-probability is the sum of all its words'. What is added here?
    log_probs[k] + s => s
    log_probs[k] + s => log_probs[k] * s
These are the least probable ones. Log-probabilities are negative: which is the best?
    , reverse=True =>
The words came without their hypotheses. Which beginning does each of them continue?
    (k, word) for _ => word for _
Each pair is turned round: the hypothesis stands first, then the word.
    (k, word) for _ => (word, k) for _
""",
)

best_hypothesis = Exercise(
    "best_hypothesis",
    """
def mended_best(log_probs, lengths, alpha):  # lists, a number -> a number
    scores = [p / n**alpha for p, n in zip(log_probs, lengths, strict=True)]
    return scores.index(max(scores))
""",
    {
        "Here alpha is 1. Whose log-probability, divided by its length, is largest?": [
            ([-9.0, -1.0, -4.0], [3, 2, 4], 1.0),
            ([-4.0, -5.0, -9.0], [2, 4, 9], 1.0),
            ([-6.0, -4.0, -1.2], [8, 3, 9], 1.0),
            ([-4.0, -4.1], [10, 2], 1.0),
        ],
        "Here alpha has other values. It is an exponent of the length.": [
            ([-4.0, -5.0, -9.0], [2, 4, 9], 0.0),
            ([-2.0, -6.0], [1, 4], 0.3),
            ([-2.0, -6.0, -7.0], [1, 4, 20], 0.9),
        ],
    },
    """
alpha isn't used: for every alpha the answer is the one for alpha = 1.
    n**alpha => n
The lengths aren't used: probability alone favours the short.
    / n**alpha =>
alpha is a factor here. As a factor it changes no order.
    n**alpha => (n * alpha)
This is the worst one. Log-probabilities are negative: which is the best?
    max => min
""",
)
