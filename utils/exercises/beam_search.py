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

_CHAIN = {
    "<bos>": {"a": 0.5, "b": 0.3, "c": 0.2},
    "a": {"d": 0.4, "e": 0.6},
    "b": {"<eos>": 0.9, "d": 0.1},
    "c": {"<eos>": 1.0},
    "d": {"<eos>": 1.0},
    "e": {"<eos>": 0.4, "d": 0.6},
}
_TOY = {"<bos>": {"<eos>": 0.4, "a": 0.6}, "b": {"<eos>": 1.0}}
_TOY |= {"a": {"b": 0.6, "<eos>": 0.3, "a": 0.1}}

exact_search = Exercise(
    "exact_search",
    """
def exact(following, bound):  # {word: {next word: p}}, p -> p, [words]
    best, unfinished = [], [(1.0, ["<bos>"])]
    while unfinished:
        p, words = unfinished.pop()
        for word, q in following[words[-1]].items():
            if p * q > bound and word == "<eos>":
                best, bound = [*words, word], p * q
            elif p * q > bound:
                unfinished.append((p * q, [*words, word]))
    return bound, best
""",
    {
        "Which sentence is the most probable of all, from <bos> to <eos>, and how "
        "probable is it?": [(_CHAIN, 0.18), (_CHAIN, 0.01)],
        "If no sentence is more probable than the bound, the bound comes back, and an "
        "empty list.": [(_CHAIN, 0.5), (_TOY, 0.4)],
        "Words can follow themselves. What is no more probable than the bound is left "
        "aside.": [(_TOY, 0.36), (_TOY, 0.01), (_TOY, 0.0001)],
    },
    """
A sentence's probability is the product over all of its words. What is multiplied here?
    p * q => q
The first sentence that is found isn't always the best. Go on, with a new bound.
    best, bound = [*words, word], p * q => return p * q, [*words, word]
The bound stays where it was. With each better sentence it must rise.
    best, bound = [*words, word], p * q => best = [*words, word]
Only the most probable next word is followed. That is greedy decoding.
    following[words[-1]].items() => [max(following[words[-1]].items(),
         key=lambda one: one[1])]
The sentence has lost its last word, <eos>.
    best, bound = [*words, word] => best, bound = words
What is only as probable as the bound isn't better than it.
    > bound => >= bound
""",
)
