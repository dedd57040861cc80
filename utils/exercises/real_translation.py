"""The exercises of notebook 11. B rows, V words, N sentences."""

import re

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw

smoothed_loss = Exercise(
    "smoothed_loss",
    """
def mixed_loss(scores, words, share):  # (B, V), (B,), 0 to 1 -> nats, one number
    losses = -F.log_softmax(scores, dim=-1)  # (B, V)
    right = losses[torch.arange(len(words)), words]
    return ((1 - share) * right + share * losses.mean(dim=1)).mean()
""",
    {
        "The target gives share / V to each of the V words, and 1 - share more to the "
        "right one. A row's loss is a sum over the words; then comes the rows' mean.": [
            (*draw(0, (3, 6)), torch.tensor([2, 0, 5]), 0.1),
            (*draw(1, (3, 6)), torch.tensor([1, 1, 4]), 0.3),
            (*draw(2, (1, 4)), torch.tensor([3]), 0.2),
            (*draw(3, (3, 3)), torch.tensor([0, 2, 1]), 0.1),
            (*draw(4, (2, 9)), torch.tensor([7, 2]), 0.0),
        ],
    },
    """
This is the plain cross-entropy: the share isn't used.
    (1 - share) * right + share * losses.mean(dim=1) => right
The share goes to the other words alone. The right one has its part of it, too.
    losses.mean(dim=1) => (losses.sum(1) - right) / (losses.shape[1] - 1)
Each word gets the whole share. How much is it for one of V words?
    losses.mean(dim=1) => losses.sum(dim=1)
The logarithm, or the softmax, is missing. Which function gives log-probabilities?
    F.log_softmax(scores, dim=-1) => scores
    F.log_softmax(scores, dim=-1) => scores.softmax(-1)
""",
    gradients=True,
)


def _to_cut(word, text):  # pieces, and their probabilities in percent
    return word, {one: float(p) / 100 for one, p in re.findall(r"(\S+) (\S+)", text)}


WORDS = [
    _to_cut("schneeball", "schnee 5 ball 4 schneeball .1 s 10 chnee .1"),
    _to_cut("abcdef", "a 25 abc 1 abcd 1 b 10 c 2 cd 10 cdef .5 def 1 e 6 ef 10 f 6"),
    _to_cut("schneeball", "schnee 5 ball 4 schneeball .3 s 10 chnee .1"),
    _to_cut("gartenbank", "garten 5 gartenb 20 bank 3 b 10 a 2 n 10 k .1"),
    _to_cut("autobahn", "auto .2 autobahn .001 bahn .4 a 5 u 5 t 5 o 5 to 30 au 20"),
    _to_cut("a" * 40 + "b", "a 30 aa 8 aaa 5 ab 4 b 1"),
]
best_cut = Exercise(
    "best_cut",
    """
def cut_from_left(word, pieces):  # a text, {piece: probability} -> a list of pieces
    best = [(1.0, [])]  # for the first 0, 1, ... letters
    for end in range(1, len(word) + 1):
        ways = [(p * pieces.get(word[k:end], 0), k) for k, (p, _) in enumerate(best)]
        probability, begin = max(ways)
        best.append((probability, [*best[begin][1], word[begin:end]]))
    return best[-1][1]
""",
    {
        "Of all ways to write the word with these pieces, the one whose probabilities "
        "have the largest product is asked for.": WORDS
    },
    r"""
The longest piece is taken each time. What is left may then have improbable pieces.
    => return re.findall("|".join(sorted(pieces, key=len)[::-1]), word)
The most probable piece is taken each time. What must be written before, or after it?
    => return re.findall("|".join(sorted(pieces, key=pieces.get)[::-1]), word)
    (p * pieces => (pieces
Probabilities are added. Is a way with more pieces more probable?
    (p * pieces.get(word[k:end], 0) => (p + pieces.get(word[k:end], -9) ;; (1.0 => (0.0
The word itself is taken where it is a piece. Can its parts be more probable?
    best = [ => if word in pieces:\n        return [word]\n    best = [
A list of the pieces is asked for, and nothing else.
    best[-1][1] => best[-1]
""",
    names={"re": re},
)

perplexity_a_word = Exercise(
    "perplexity_a_word",
    """
def comparable_perplexity(nats, pieces, words):  # three times (N,) -> one number
    return (nats.sum() / words.sum()).exp()
""",
    {
        "Each word counts the same, whichever its sentence. The perplexity is exp of "
        "the mean nats of a word.": [
            tuple(map(torch.tensor, ([25.0, 6.5, 9.0], [9, 4, 6], [7, 4, 3]))),
            tuple(map(torch.tensor, ([11.0, 9.5, 40.0], [5, 7, 12], [5, 5, 8]))),
            tuple(map(torch.tensor, ([20.0, 7.0], [6, 6], [6, 3]))),
            tuple(map(torch.tensor, ([6.5], [3], [2]))),
        ],
    },
    """
This is the perplexity a piece. Two models have other pieces: what do both have?
    words.sum() => pieces.sum()
This is the mean of means over pieces. What can be compared, and what counts more?
    nats.sum() / words.sum() => (nats / pieces).mean()
This is the mean of the sentences' means: a word of a short sentence counts more.
    nats.sum() / words.sum() => (nats / words).mean()
This is the mean of the sentences' perplexities: one hard sentence outweighs all others.
    => return (nats / words).exp().mean()
These are nats a word. What makes a perplexity of them?
    .exp() =>
""",
    gradients=True,
)
