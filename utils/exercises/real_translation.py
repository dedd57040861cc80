"""The exercises of notebook 11. B rows, V words, N sentences."""

import math

import torch

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw


def smoothed_by_loops(scores, words, share):
    """Scores (B, V), right words (B,), a share -> mean nats with label smoothing.

    The target gives 1 - share to the right word, and share to all V words alike.
    """
    B, V = scores.shape
    total = 0.0
    for b in range(B):
        exps = scores[b].exp()
        for v in range(V):
            wanted = share / V + (1 - share if v == words[b] else 0)
            total = total - wanted * (exps[v] / exps.sum()).log()
    return total / B


def _log_softmax(scores):
    return scores.log_softmax(-1)


def _mixed(mix, log=_log_softmax):
    """The mean over rows of mix(right word's loss, all words' losses (B, V), share)."""

    def loss(scores, words, share):
        losses = -log(scores)
        return mix(
            losses.gather(1, words.unsqueeze(1)).squeeze(1), losses, share
        ).mean()

    return loss


def _smoothed(right, losses, share):
    return (1 - share) * right + share * losses.mean(1)


def _of_others(right, losses, share):
    others = (losses.sum(1) - right) / (losses.shape[1] - 1)
    return (1 - share) * right + share * others


def _short_of_one(right, losses, share):
    return (1 - share) * right + share / losses.shape[1] * (losses.sum(1) - right)


def _blurred(scores, words, share):
    p = scores.softmax(-1).gather(1, words.unsqueeze(1))
    return -((1 - share) * p + share / scores.shape[1]).log().mean()


def _smoothing_case(seed, words, V, share):
    return *draw(seed, (len(words), V)), torch.tensor(words), share


smoothed_loss = Exercise(
    "smoothed_loss",
    smoothed_by_loops,
    cases=[
        _smoothing_case(0, [2, 0, 5], 6, 0.1),
        _smoothing_case(1, [1, 1, 4], 6, 0.3),
        _smoothing_case(2, [3], 4, 0.2),
        _smoothing_case(3, [0, 2, 1], 3, 0.1),
        _smoothing_case(4, [7, 2], 9, 0.0),
    ],
    mistakes={
        "this is the plain cross-entropy: the share isn't used.": [
            _mixed(lambda right, losses, share: right)
        ],
        "the share goes to the other words alone. It is for all V words: the right one "
        "has its part of it, too.": [_mixed(_of_others)],
        "the target sums to less than 1. The right word gets 1 - share, and on top of "
        "it share / V like every other.": [_mixed(_short_of_one)],
        "each word gets the whole share. It is divided among V words.": [
            _mixed(
                lambda right, losses, share: (1 - share) * right + share * losses.sum(1)
            )
        ],
        "what the other words get has to come from the right one: 1 - share.": [
            _mixed(lambda right, losses, share: right + share * losses.mean(1))
        ],
        "turned round: the right word gets the share, and the others the rest.": [
            _mixed(lambda right, losses, share: _smoothed(right, losses, 1 - share))
        ],
        "the words that are not right get nothing. Their part of the loss is what "
        "holds "
        "the model back.": [_mixed(lambda right, losses, share: (1 - share) * right)],
        "divided by V as well: the mean is over the rows. Of a row, take the sum.": [
            _mixed(
                lambda right, losses, share: (
                    _smoothed(right, losses, share) / losses.shape[1]
                )
            )
        ],
        "this is the sum over the rows. Their mean is asked for.": [
            lambda scores, words, share: (
                smoothed_by_loops(scores, words, share) * len(words)
            )
        ],
        "one loss for each row. Their mean is asked for.": [
            lambda scores, words, share: torch.stack(
                [
                    smoothed_by_loops(row[None], word[None], share)
                    for row, word in zip(scores, words, strict=True)
                ]
            )
        ],
        "the sign is missing: a loss is minus the log-probability.": [
            lambda *arguments: -smoothed_by_loops(*arguments)
        ],
        "log_softmax is missing: scores are no log-probabilities yet.": [
            _mixed(_smoothed, log=lambda scores: scores)
        ],
        "the logarithm is missing: these are probabilities.": [
            _mixed(_smoothed, log=lambda scores: scores.softmax(-1))
        ],
        "softmax is applied twice.": [
            _mixed(_smoothed, log=lambda scores: scores.softmax(-1).log_softmax(-1))
        ],
        "softmax over the rows. The V words of a row share the probability: dim=-1.": [
            _mixed(_smoothed, log=lambda scores: scores.log_softmax(0))
        ],
        "the model's probabilities are smoothed. Smooth the target: it is what the "
        "model is measured by.": [_blurred],
    },
    gradients=True,
)


def _search(word, pieces, gain):
    """The cut with the largest sum of gains, from left to right."""
    best = [(0.0, [])] + [None] * len(word)
    for end in range(1, len(word) + 1):
        for begin in range(end):
            piece = word[begin:end]
            if piece in pieces and best[begin]:
                value = best[begin][0] + gain(pieces[piece])
                if best[end] is None or value > best[end][0]:
                    best[end] = value, [*best[begin][1], piece]
    return best[-1][1]


def best_cut_by_search(word, pieces):
    """A word, and pieces with their probabilities -> its most probable pieces."""
    return _search(word, pieces, math.log)


def _by(gain):
    return lambda word, pieces: _search(word, pieces, gain)


def _greedily(choose):
    """From left to right, without looking ahead; a dead end leaves a rest."""

    def cut(word, pieces):
        found = []
        while starts := [p for p in pieces if word.startswith(p)]:
            found.append(choose(starts, pieces))
            word = word.removeprefix(found[-1])
        return found

    return cut


def _from_the_end(word, pieces):
    turned = {piece[::-1]: p for piece, p in pieces.items()}
    found = _greedily(lambda some, _: max(some, key=len))(word[::-1], turned)
    return [piece[::-1] for piece in reversed(found)]


def _last_only(word, pieces):
    """The best last piece at each place, whatever came before."""
    found = []
    while ends := [p for p in pieces if word.endswith(p)]:
        found.append(max(ends, key=pieces.get))
        word = word.removesuffix(found[-1])
    return found[::-1]


def _probabilities(text):
    """Pieces with their probabilities, from a line of both."""
    words = text.split()
    return dict(zip(words[::2], map(float, words[1::2]), strict=True))


LETTERS = "a 0.3 aa 0.08 aaa 0.05 ab 0.04 b 0.01"
BENCH = "garten 0.05 gartenb 0.2 bank 0.03 b 0.1 a 0.02 n 0.1 k 0.001"
ROAD = (
    "auto 0.002 autobahn 0.00001 bahn 0.004 a 0.05 u 0.05 t 0.05 o 0.05 to 0.3 au 0.2"
)
MANY = (
    "a 0.25 abc 0.01 abcd 0.01 b 0.1 c 0.02 cd 0.1 cdef 0.005 def 0.01 e 0.06 ef 0.1 "
    "f 0.06"
)

best_cut = Exercise(
    "best_cut",
    best_cut_by_search,
    cases=[
        (word, _probabilities(text))
        for word, text in (
            ("schneeball", "schnee 0.05 ball 0.04 schneeball 0.001 s 0.1 chnee 0.001"),
            ("abcdef", MANY),
            ("schneeball", "schnee 0.05 ball 0.04 schneeball 0.003 s 0.1 chnee 0.001"),
            ("gartenbank", BENCH),
            ("autobahn", ROAD),
            ("a" * 40 + "b", LETTERS),
        )
    ],
    mistakes={
        "the longest piece is taken each time, from the left. What is left then may "
        "only have improbable pieces.": [_greedily(lambda some, _: max(some, key=len))],
        "the longest piece is taken each time, from the right. What is left then may "
        "only have improbable pieces.": [_from_the_end],
        "the shortest piece is taken each time.": [
            _greedily(lambda some, _: min(some, key=len))
        ],
        "the most probable next piece is taken each time, without looking ahead.": [
            _greedily(lambda some, pieces: max(some, key=pieces.get))
        ],
        "the most probable last piece is taken, whatever the rest costs. Its "
        "probability times that of the best way up to it counts.": [_last_only],
        "probabilities are summed. They are multiplied: more pieces are less probable, "
        "not more.": [_by(lambda p: p)],
        "this is the least probable way.": [_by(lambda p: -math.log(p))],
        "this is the way with the fewest pieces, whatever their probabilities.": [
            _by(lambda p: -1)
        ],
        "this is the way with the most pieces, whatever their probabilities.": [
            _by(lambda p: 1)
        ],
        "the pieces stand in the reverse order. Did you go back from the end?": [
            lambda word, pieces: best_cut_by_search(word, pieces)[::-1]
        ],
        "the last piece is missing.": [
            lambda word, pieces: best_cut_by_search(word, pieces)[:-1]
        ],
        "the first piece is missing.": [
            lambda word, pieces: best_cut_by_search(word, pieces)[1:]
        ],
        "the pieces are joined to the word again. A list of them is asked for.": [
            lambda word, pieces: "".join(best_cut_by_search(word, pieces))
        ],
        "this is one text. A list of pieces is asked for.": [
            lambda word, pieces: " ".join(best_cut_by_search(word, pieces))
        ],
        "this is the probability of the best way. The way itself is asked for.": [
            lambda word, pieces: math.prod(
                pieces[piece] for piece in best_cut_by_search(word, pieces)
            )
        ],
        "the word itself is taken where it is a piece. Its parts can be more "
        "probable.": [
            lambda word, pieces: (
                [word] if word in pieces else best_cut_by_search(word, pieces)
            )
        ],
    },
)


def perplexity_by_loops(nats, pieces, words):
    """Losses of N sentences (N,) in nats, their pieces (N,) and words (N,) -> one.

    A sentence's loss is the sum over its pieces.
    """
    total, number = 0.0, 0
    for n in range(len(nats)):
        total, number = total + nats[n], number + words[n].item()
    return (total / number).exp()


def _perplexity_case(seed, pieces, words):
    nats = 2 * torch.tensor(pieces) * (0.5 + draw(seed, (len(pieces),))[0].abs())
    return nats, torch.tensor(pieces), torch.tensor(words)


perplexity_a_word = Exercise(
    "perplexity_a_word",
    perplexity_by_loops,
    cases=[
        _perplexity_case(0, [9, 4, 6], [7, 4, 3]),
        _perplexity_case(1, [5, 7, 12], [5, 5, 8]),
        _perplexity_case(2, [3], [2]),
        _perplexity_case(3, [10, 3, 4, 8], [9, 2, 4, 5]),
        _perplexity_case(4, [6, 6], [6, 3]),
    ],
    mistakes={
        "this is the perplexity a piece. Pieces of another vocabulary are of another "
        "length: only words can "
        "be compared.": [lambda nats, pieces, words: (nats.sum() / pieces.sum()).exp()],
        "this is the mean of the sentences' means over their pieces. Sum all nats "
        "first, then divide once, "
        "by the words.": [lambda nats, pieces, words: (nats / pieces).mean().exp()],
        "this is the mean of the sentences' means: a word of a short sentence counts "
        "more. Sum all nats first, "
        "then divide once.": [lambda nats, pieces, words: (nats / words).mean().exp()],
        "this is the mean of the sentences' perplexities: one hard sentence outweighs "
        "all others. Take the "
        "mean before exp.": [lambda nats, pieces, words: (nats / words).exp().mean()],
        "this is the mean of the sentences' perplexities a piece. Take the mean over "
        "all "
        "words before exp.": [lambda nats, pieces, words: (nats / pieces).exp().mean()],
        "the perplexity a piece times the pieces a word. It is the nats that grow by "
        "that factor; exp comes after.": [
            lambda nats, pieces, words: (
                (nats.sum() / pieces.sum()).exp() * pieces.sum() / words.sum()
            )
        ],
        "these are nats a word. exp makes the perplexity of them.": [
            lambda nats, pieces, words: nats.sum() / words.sum()
        ],
        "these are nats a piece.": [
            lambda nats, pieces, words: nats.sum() / pieces.sum()
        ],
        "2 to the power of nats: that is for bits. Of nats, take exp.": [
            lambda nats, pieces, words: 2 ** (nats.sum() / words.sum())
        ],
        "this is below 1: the mean probability of a word. The perplexity is "
        "1 over it.": [lambda nats, pieces, words: (-nats.sum() / words.sum()).exp()],
        "this is the perplexity of a sentence, not of a word.": [
            lambda nats, pieces, words: nats.mean().exp()
        ],
        "nats are summed, but not divided by the number of words.": [
            lambda nats, pieces, words: nats.sum().exp()
        ],
        "one more for each sentence: the numbers count <eos> already.": [
            lambda nats, pieces, words: (nats.sum() / (words.sum() + len(words))).exp()
        ],
        "turned round: there are more pieces than words, so a word has more nats than "
        "a piece.": [
            lambda nats, pieces, words: (
                nats.sum() * words.sum() / pieces.sum() ** 2
            ).exp()
        ],
    },
    gradients=True,
)
