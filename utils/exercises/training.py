"""The exercises of notebook 05. B sentences, T target positions, V words."""

import math

import torch
from torch.nn import functional as F

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw


def mean_loss_by_loops(scores, targets):
    """Scores (B, T, V), targets (B, T) with 0 at padding -> mean nats a real word."""
    total, count = 0.0, 0
    for b in range(targets.shape[0]):
        for t in range(targets.shape[1]):
            if targets[b, t] != 0:
                exps = scores[b, t].exp()
                total = total - (exps[targets[b, t]] / exps.sum()).log()
                count += 1
    return total / count


def _nats(scores, targets):
    """Each position's loss (B, T), padding's, too."""
    return F.cross_entropy(scores.transpose(1, 2), targets, reduction="none")


def _real(targets):
    return (targets != 0).float()


def _real_nats(scores, targets):
    """Each position's loss (B, T), 0 at padding."""
    return _nats(scores, targets) * _real(targets)


def _of_sentences(scores, targets):
    """Each sentence's mean loss (B,)."""
    return _real_nats(scores, targets).sum(1) / _real(targets).sum(1)


def _over(number):
    """The sum over real words, divided by a number."""
    return lambda scores, targets: _real_nats(scores, targets).sum() / number(targets)


def _zeroed_scores(scores, targets):
    return _nats(scores * _real(targets).unsqueeze(2), targets).mean()


def _without_softmax(scores, targets):
    return F.nll_loss(scores.flatten(0, 1), targets.flatten(), ignore_index=0)


def _loss_case(seed, lens, T, V):
    scores = draw(seed, (len(lens), T, V))[0]
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(3, V, (len(lens), T), generator=generator)
    for row, n in zip(targets, lens, strict=True):
        row[n - 1], row[n:] = 2, 0
    return scores, targets


mean_loss = Exercise(
    "mean_loss",
    mean_loss_by_loops,
    cases=[
        _loss_case(0, [4, 2], 4, 7),
        _loss_case(1, [3, 4], 4, 7),
        _loss_case(2, [5, 1, 3], 6, 9),
        _loss_case(3, [3], 5, 4),
        _loss_case(4, [4, 2, 3, 1], 4, 4),
    ],
    mistakes={
        "padding is counted, as if <pad> were a word to learn. The loss is too good as "
        "soon as the model has learnt "
        "to write padding.": [lambda scores, targets: _nats(scores, targets).mean()],
        "the scores of padding are set to 0, and counted: a row of zeros still has a "
        "loss, log V.": [_zeroed_scores],
        "the more padding, the smaller the loss. Only real words are summed: what is "
        "counted below the line?": [_over(lambda targets: targets.numel())],
        "this is the sum. Divide by the number of real words.": [
            _over(lambda targets: 1)
        ],
        "divided by the number of sentences. The unit asked for is nats a word.": [
            _over(len)
        ],
        "divided twice.": [_over(lambda targets: _real(targets).sum() ** 2)],
        "divided twice: by the words, and by the sentences.": [
            _over(lambda targets: _real(targets).sum() * len(targets))
        ],
        "the mean of the sentences' means: a word of a short sentence counts more than "
        "one of a long "
        "sentence.": [lambda scores, targets: _of_sentences(scores, targets).mean()],
        "one loss for each sentence, where one for the whole batch is asked for: all "
        "nats, divided once by all real words.": [
            _of_sentences,
            lambda scores, targets: _real_nats(scores, targets).sum(1),
            lambda scores, targets: _real_nats(scores, targets).mean(1),
            lambda scores, targets: _nats(scores, targets).sum(1),
            lambda scores, targets: _nats(scores, targets).mean(1),
        ],
        "one loss for each position, where one for the whole batch is asked for: all "
        "nats of real words, divided by their number.": [_real_nats, _nats],
        "softmax is applied twice: cross_entropy takes the scores as they are.": [
            lambda scores, targets: mean_loss_by_loops(scores.softmax(-1), targets)
        ],
        "log_softmax is missing: scores are no log-probabilities yet.": [
            _without_softmax
        ],
        "the sign is missing: a loss is minus the log-probability.": [
            lambda scores, targets: -mean_loss_by_loops(scores, targets)
        ],
        "this is in bits. The natural logarithm gives nats.": [
            lambda scores, targets: mean_loss_by_loops(scores, targets) / math.log(2)
        ],
        "<eos> is left out. It is a word to learn: only 0 is padding.": [
            lambda scores, targets: mean_loss_by_loops(
                scores, targets.masked_fill(targets == 2, 0)
            )
        ],
        "scores and targets are shifted once more. The batch has done it already.": [
            lambda scores, targets: mean_loss_by_loops(scores[:, :-1], targets[:, 1:])
        ],
    },
    gradients=True,
)


def _norm(gradients):
    return math.sqrt(sum(x * x for g in gradients for x in g.flatten().tolist()))


def clip_by_loops(gradients, max_norm):
    """A list of gradients, max_norm -> the list, scaled down to that norm."""
    factor = min(1.0, max_norm / _norm(gradients))
    return [g * factor for g in gradients]


def _scaled(factor):
    """All gradients times factor(gradients, max_norm)."""
    return lambda gradients, max_norm: [
        g * factor(gradients, max_norm) for g in gradients
    ]


def _if_larger(factor, norm=_norm):
    """The same, but for gradients whose norm is within the limit."""
    return _scaled(
        lambda gradients, limit: (
            factor(gradients, limit) if norm(gradients) > limit else 1.0
        )
    )


def _sum_of_norms(gradients):
    return sum(g.norm().item() for g in gradients)


def _sum_of_sizes(gradients):
    return sum(g.abs().sum().item() for g in gradients)


def _largest(gradients):
    return max(g.abs().max().item() for g in gradients)


clip = Exercise(
    "clip",
    clip_by_loops,
    cases=[
        ([*draw(0, (2, 3), (4,))], 1.0),
        ([*draw(1, (2, 3), (4,))], 1.0),
        ([*draw(2, (2, 3), (4,))], 100.0),
        ([*draw(3, (2, 3), (4,))], 0.1),
        ([*draw(4, (2, 3), (4,))], 2.0),
        ([g * 0.01 for g in draw(5, (2, 3), (4,), (2, 2))], 1.0),
    ],
    mistakes={
        "each tensor is clipped by itself, which turns the gradient to another "
        "direction. The norm is that of all numbers together.": [
            lambda gradients, limit: [clip_by_loops([g], limit)[0] for g in gradients]
        ],
        "each number is cut off by itself, which turns the gradient to another "
        "direction. All are multiplied by one factor.": [
            lambda gradients, limit: [g.clamp(-limit, limit) for g in gradients]
        ],
        "a small gradient is blown up to the limit. Only a larger one is "
        "scaled, down.": [_scaled(lambda gradients, limit: limit / _norm(gradients))],
        "the square root is missing from the norm.": [
            _scaled(lambda gradients, limit: min(1.0, limit / _norm(gradients) ** 2)),
            _if_larger(lambda gradients, limit: limit / _norm(gradients) ** 2),
        ],
        "norms are added. Add the squares of all numbers, and take the root once.": [
            _if_larger(
                lambda gradients, limit: limit / _sum_of_norms(gradients), _sum_of_norms
            )
        ],
        "the result always has norm 1: max_norm is missing from the factor.": [
            _if_larger(lambda gradients, limit: 1 / _norm(gradients)),
            _scaled(lambda gradients, limit: min(1.0, 1 / _norm(gradients))),
        ],
        "the fraction is turned round: it is max_norm / norm that makes a large "
        "gradient smaller.": [
            _scaled(lambda gradients, limit: min(1.0, _norm(gradients) / limit)),
            _scaled(lambda gradients, limit: _norm(gradients) / limit),
            _if_larger(lambda gradients, limit: _norm(gradients) / limit),
        ],
        "turned round: small gradients grow and large ones stay.": [
            _scaled(lambda gradients, limit: max(1.0, limit / _norm(gradients)))
        ],
        "multiplied by max_norm, without dividing by the norm.": [
            _if_larger(lambda gradients, limit: limit)
        ],
        "this is the largest number, not the norm.": [
            _scaled(lambda gradients, limit: min(1.0, limit / _largest(gradients)))
        ],
        "the sizes of the numbers are added. The norm is the root of the sum of their "
        "squares.": [
            _scaled(lambda gradients, limit: min(1.0, limit / _sum_of_sizes(gradients)))
        ],
        "nothing is scaled.": [lambda gradients, limit: gradients],
    },
)


def epoch_loss_by_loops(losses, tokens):
    """Each batch's mean loss, its number of words -> the mean over all words."""
    total, count = 0.0, 0
    for loss, n in zip(losses, tokens, strict=True):
        for _ in range(n):
            total += loss
            count += 1
    return total / count


def _weighed(losses, tokens):
    return sum(loss * n for loss, n in zip(losses, tokens, strict=True))


def _divided(losses, tokens):
    return sum(loss / n for loss, n in zip(losses, tokens, strict=True))


epoch_loss = Exercise(
    "epoch_loss",
    epoch_loss_by_loops,
    cases=[
        ([2.0, 4.0], [3, 1]),
        ([5.0, 1.0], [2, 6]),
        ([1.0, 2.0, 6.0], [5, 5, 2]),
        ([0.5], [7]),
        ([3.0, 1.0, 2.0, 4.0], [1, 2, 3, 4]),
    ],
    mistakes={
        "the mean of the batches' means: a word in a small batch counts more than one "
        "in a large batch.": [lambda losses, tokens: sum(losses) / len(losses)],
        "the losses are means already. Weigh each by its number "
        "of words before adding.": [lambda losses, tokens: sum(losses) / sum(tokens)],
        "this is the sum over all words: the division is missing.": [_weighed],
        "divided by the number of batches, not of words.": [
            lambda losses, tokens: _weighed(losses, tokens) / len(losses)
        ],
        "this is the sum of the batches' losses.": [lambda losses, tokens: sum(losses)],
        "this is the last batch's loss.": [lambda losses, tokens: losses[-1]],
        "this is the largest loss.": [lambda losses, tokens: max(losses)],
        "divided by the words a second time: each loss is a mean already.": [
            lambda losses, tokens: _divided(losses, tokens) / len(losses),
            _divided,
        ],
    },
)
