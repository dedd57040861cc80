"""The exercises of notebook 05. B sentences, T target positions, V words."""

import math
from functools import partial
from itertools import zip_longest
from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from utils.data import Batch
from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw, seeded
from utils.models import build_model
from utils.text import BOS_ID, EOS_ID


def mean_loss_by_loops(logits, targets):
    """Logits (B, T, V), targets (B, T) with 0 at padding -> mean nats a real word."""
    total, count = 0.0, 0
    for b in range(targets.shape[0]):
        for t in range(targets.shape[1]):
            if targets[b, t] != 0:
                exps = logits[b, t].exp()
                total = total - (exps[targets[b, t]] / exps.sum()).log()
                count += 1
    return total / count


def _nats(logits, targets):
    """Each position's loss (B, T), padding's, too."""
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none")


def _real(targets):
    return (targets != 0).float()


def _real_nats(logits, targets):
    """Each position's loss (B, T), 0 at padding."""
    return _nats(logits, targets) * _real(targets)


def _of_sentences(logits, targets):
    """Each sentence's mean loss (B,)."""
    return _real_nats(logits, targets).sum(1) / _real(targets).sum(1)


def _over(number):
    """The sum over real words, divided by a number."""
    return lambda logits, targets: _real_nats(logits, targets).sum() / number(targets)


def _zeroed_logits(logits, targets):
    return _nats(logits * _real(targets).unsqueeze(2), targets).mean()


def _zeroed_before_softmax(logits, targets):
    logits = logits * _real(targets).unsqueeze(2)
    return _nats(logits, targets).sum() / _real(targets).sum()


def _of_words(pick):
    """The mean over real words of pick(logits, targets), (B, T)."""

    def loss(logits, targets):
        found = pick(logits, targets) * _real(targets)
        return found.sum() / _real(targets).sum()

    return loss


def _probability(logits, targets):
    return logits.softmax(-1).gather(2, targets.unsqueeze(2)).squeeze(2)


def _softmax_over(axis):
    def picked(logits, targets):
        log_probs = logits.log_softmax(axis)
        return -log_probs.gather(2, targets.unsqueeze(2)).squeeze(2)

    return picked


def _flat_loss(rearranged, **options):
    """F.cross_entropy of logits that were given the shape (B, V, T) in a wrong way."""
    return lambda logits, targets: F.cross_entropy(
        rearranged(logits), targets, ignore_index=0, **options
    )


def _mixed_rows(logits, targets):
    """Flattened along other axes: the rows belong to other words."""
    rows = logits.transpose(0, 1).flatten(0, 1)
    return F.cross_entropy(rows, targets.flatten(), ignore_index=0)


def _loss_case(seed, lens, T, V):
    logits = draw(seed, (len(lens), T, V))[0]
    generator = torch.Generator().manual_seed(seed)
    targets = torch.randint(3, V, (len(lens), T), generator=generator)
    for row, n in zip(targets, lens, strict=True):
        row[n - 1], row[n:] = 2, 0
    return logits, targets


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
        "to write padding.": [lambda logits, targets: _nats(logits, targets).mean()],
        "all nats are added, those of padding, too, and divided by the number of real "
        "words. Which positions belong above the line?": [
            lambda logits, targets: _nats(logits, targets).sum() / _real(targets).sum()
        ],
        "the logits of padding are set to 0, and counted: a row of zeros still has a "
        "loss, log V.": [_zeroed_logits, _zeroed_before_softmax],
        "the more padding, the smaller the loss. Only real words are summed: what is "
        "counted below the line?": [
            _over(lambda targets: targets.numel()),
            lambda logits, targets: (
                _probability(logits, targets).log() * -_real(targets)
            ).mean(),
        ],
        "this is the sum. Divide by the number of real words.": [
            _over(lambda targets: 1)
        ],
        "divided by the number of sentences. The unit asked for is nats a word.": [
            _over(len)
        ],
        "divided by the number of positions in a row, T. How many real words has the "
        "batch?": [_over(lambda targets: targets.shape[1])],
        "divided twice, by words and again by words or sentences.": [
            _over(lambda targets: _real(targets).sum() ** 2),
            _over(lambda targets: _real(targets).sum() * len(targets)),
        ],
        "the mean of the sentences' means: a word of a short sentence counts more than "
        "one of a long "
        "sentence.": [lambda logits, targets: _of_sentences(logits, targets).mean()],
        "one loss for each sentence, where one for the whole batch is asked for: all "
        "nats, divided once by all real words.": [
            _of_sentences,
            lambda logits, targets: _real_nats(logits, targets).sum(1),
            lambda logits, targets: _real_nats(logits, targets).mean(1),
            lambda logits, targets: _nats(logits, targets).sum(1),
            lambda logits, targets: _nats(logits, targets).mean(1),
        ],
        "one loss for each position, where one for the whole batch is asked for: all "
        "nats of real words, divided by their number.": [_real_nats, _nats],
        "softmax is applied twice: cross_entropy takes the logits as they are.": [
            lambda logits, targets: mean_loss_by_loops(logits.softmax(-1), targets)
        ],
        "log_softmax is missing: logits are no log-probabilities yet.": [
            lambda logits, targets: F.nll_loss(
                logits.flatten(0, 1), targets.flatten(), ignore_index=0
            )
        ],
        "this is the probability of the right words. Which function of it is the "
        "loss?": [
            _of_words(_probability),
            _of_words(lambda logits, targets: -_probability(logits, targets)),
        ],
        "softmax runs over the wrong axis. The V words of one position have shares "
        "that sum to 1: which axis is that?": [
            _of_words(_softmax_over(0)),
            _of_words(_softmax_over(1)),
        ],
        "cross_entropy finds the words in axis 1, and here axis 1 holds positions. "
        "Flatten batch and positions, or exchange two axes.": [
            _flat_loss(lambda logits: logits),
            lambda logits, targets: F.cross_entropy(logits, targets),
            lambda logits, targets: _nats(logits.mT, targets).mean(),
        ],
        "view and reshape don't exchange axes: the numbers of one word are spread over "
        "several rows. Flatten batch and positions, or use transpose.": [
            _flat_loss(lambda logits: logits.reshape(*logits.mT.shape)),
            lambda logits, targets: F.cross_entropy(
                logits.reshape(*logits.mT.shape), targets
            ),
            _of_words(
                lambda logits, targets: _nats(
                    logits.reshape(*logits.mT.shape).mT, targets
                )
            ),
        ],
        "logits and targets are put into rows in two different orders, so the rows "
        "don't belong together. Don't transpose one of them alone.": [_mixed_rows],
        "only one of the two is in rows, (B * T, V) or (B * T). Where is the other?": [
            _flat_loss(lambda logits: logits.flatten(0, 1)),
            lambda logits, targets: F.cross_entropy(logits, targets.flatten()),
        ],
        "the mean is over all words of the vocabulary. At each position only the right "
        "word's log-probability counts.": [
            lambda logits, targets: -logits.log_softmax(-1).mean(),
            lambda logits, targets: -logits.softmax(-1).log().mean(),
            lambda logits, targets: (
                -(logits.log_softmax(-1) * _real(targets).unsqueeze(2)).sum()
                / _real(targets).sum()
            ),
            lambda logits, targets: -logits.log_softmax(-1)[targets != 0].mean(),
        ],
        "this is the logarithm of a mean. The loss is a mean of logarithms: which is "
        "first?": [
            lambda logits, targets: -_of_words(_probability)(logits, targets).log()
        ],
        "the mask is turned round: padding alone is counted.": [
            lambda logits, targets: _nats(logits, targets)[targets == 0].mean()
        ],
        "what gather picked is still (B, T, 1), and meets the mask, (B, T). Which axis "
        "is to go?": [
            _of_words(lambda logits, targets: _nats(logits, targets).unsqueeze(2))
        ],
        "gather picks along axis 1, the positions. Along which axis do the words "
        "stand?": [
            _of_words(
                lambda logits, targets: (
                    -logits.log_softmax(-1).gather(1, targets.unsqueeze(2)).squeeze(2)
                )
            ),
        ],
        "the probability of padding is set to 0 before the logarithm, and log 0 is "
        "infinite. Take the logarithm first.": [
            lambda logits, targets: (
                -(_probability(logits, targets) * _real(targets)).log().mean()
            ),
            lambda logits, targets: (
                -(_probability(logits, targets) * _real(targets)).log().sum()
                / _real(targets).sum()
            ),
        ],
        "padding is taken out of the logits, and not out of the targets. Both need the "
        "same rows.": [
            lambda logits, targets: F.cross_entropy(logits[targets != 0], targets),
            lambda logits, targets: F.cross_entropy(
                logits[targets != 0], targets.flatten()
            ),
        ],
        "gather needs as many axes in its index as in the logits: targets (B, T) lack "
        "one.": [
            lambda logits, targets: logits.log_softmax(-1).gather(2, targets),
            lambda logits, targets: logits.log_softmax(-1).gather(1, targets),
        ],
        "`logits[targets]` takes whole rows of the batch, not one number at each "
        "position. gather, or cross_entropy, picks a number a position.": [
            lambda logits, targets: logits.log_softmax(-1)[targets],
            lambda logits, targets: logits[targets],
            lambda logits, targets: logits.softmax(-1)[targets],
        ],
        "the sign is missing: a loss is minus the log-probability.": [
            lambda logits, targets: -mean_loss_by_loops(logits, targets)
        ],
        "this is in bits. The natural logarithm gives nats.": [
            lambda logits, targets: mean_loss_by_loops(logits, targets) / math.log(2)
        ],
        "<eos> is left out. It is a word to learn: only 0 is padding.": [
            lambda logits, targets: mean_loss_by_loops(
                logits, targets.masked_fill(targets == 2, 0)
            )
        ],
        "logits and targets are shifted once more. The batch has done it already.": [
            lambda logits, targets: mean_loss_by_loops(logits[:, :-1], targets[:, 1:])
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


def _all_numbers(gradients):
    return torch.cat([g.flatten() for g in gradients])


NO_NORMS = (  # what else is compared with the limit
    lambda gradients: _all_numbers(gradients).abs().sum(),
    lambda gradients: _all_numbers(gradients).abs().max(),
    lambda gradients: _all_numbers(gradients).sum().abs(),
    lambda gradients: _all_numbers(gradients).square().mean().sqrt(),
    lambda gradients: max(g.norm() for g in gradients),
)


def _scaled_by(norm):
    return _scaled(lambda gradients, limit: min(1.0, limit / norm(gradients)))


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
        "each tensor, or each row, is clipped by itself, which turns the gradient to "
        "another direction. The norm is that of all numbers together.": [
            lambda gradients, limit: [clip_by_loops([g], limit)[0] for g in gradients],
            lambda gradients, limit: [
                g * (limit / g.norm(dim=-1, keepdim=True)).clamp(max=1)
                for g in gradients
            ],
        ],
        "tensors of different shapes can't be joined. flatten() makes a row of each, "
        "and torch.cat one row of all.": [
            lambda gradients, limit: torch.cat(gradients),
            lambda gradients, limit: torch.stack(gradients),
        ],
        "a list can't be multiplied by a number. Multiply each of its tensors.": [
            lambda gradients, limit: gradients * 0.5
        ],
        "only the first tensor is scaled. One factor is for all of them.": [
            lambda gradients, limit: [
                clip_by_loops(gradients, limit)[0],
                *gradients[1:],
            ]
        ],
        "the direction has changed. All numbers keep their sign, and are multiplied by "
        "one factor.": [
            lambda gradients, limit: [
                g - max(0.0, _norm(gradients) - limit) for g in gradients
            ],
            lambda gradients, limit: [g.abs() for g in clip_by_loops(gradients, limit)],
        ],
        "each tensor is scaled by its own norm to the limit. There is one norm, of all "
        "numbers together, and one factor, at most 1.": [
            lambda gradients, limit: [g / g.norm() * limit for g in gradients]
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
        "the number compared with max_norm isn't the norm. The norm is the root of the "
        "sum of the squares of all numbers.": [*map(_scaled_by, NO_NORMS)],
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
        ([2.0, 8.0, 3.0, 5.0], [3, 1, 4, 2]),
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
        "the sum is divided by another number than that of all words.": [
            lambda losses, tokens: _weighed(losses, tokens) / len(losses),
            lambda losses, tokens: _weighed(losses, tokens) / sum(losses),
            lambda losses, tokens: _weighed(losses, tokens) / max(tokens) / len(losses),
        ],
        "`//` drops what stands behind the point.": [
            lambda losses, tokens: _weighed(losses, tokens) // sum(tokens)
        ],
        "this is exp of the loss, the perplexity.": [
            lambda losses, tokens: math.exp(epoch_loss_by_loops(losses, tokens))
        ],
        "each batch has its share, and the shares aren't added up.": [
            lambda losses, tokens: (
                torch.tensor(losses) * torch.tensor(tokens) / sum(tokens)
            )
        ],
        "two lists can't be multiplied. zip gives their numbers in pairs.": [
            lambda losses, tokens: losses * tokens
        ],
        "one batch is left out. Where does the loop begin and end?": [
            lambda losses, tokens: epoch_loss_by_loops(losses[1:], tokens[1:]),
            lambda losses, tokens: epoch_loss_by_loops(losses[:-1], tokens[:-1]),
        ],
        "the more words a batch has, the less it counts. Which way should the weights "
        "go?": [
            lambda losses, tokens: _divided(losses, tokens) / sum(1 / n for n in tokens)
        ],
        "this is the sum of the batches' losses.": [lambda losses, tokens: sum(losses)],
        "only one batch is counted: = where += is meant, or a `return` inside the "
        "loop?": [
            lambda losses, tokens: losses[-1] * tokens[-1] / sum(tokens),
            lambda losses, tokens: losses[0] * tokens[0] / sum(tokens),
            lambda losses, tokens: losses[0],
        ],
        "a batch is skipped, and its words are counted all the same. Where does the "
        "loop begin and end?": [
            lambda losses, tokens: _weighed(losses[1:], tokens[1:]) / sum(tokens),
            lambda losses, tokens: _weighed(losses[:-1], tokens[:-1]) / sum(tokens),
        ],
        "this is the loss of one batch.": [
            lambda losses, tokens: losses[-1],
            lambda losses, tokens: max(losses),
        ],
        "divided by the words a second time: each loss is a mean already.": [
            lambda losses, tokens: _divided(losses, tokens) / len(losses),
            _divided,
        ],
    },
)


# A training step. The check lets it make two, by plain gradient descent.


class TwoSteps(NamedTuple):
    """What two training steps return and change."""

    loss_1: float
    loss_2: float
    training_at_the_loss: bool
    training_at_the_end: bool
    parameters_1: torch.Tensor
    parameters_2: torch.Tensor


def _two_steps(train_step, make, batches, rate, clip):
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    model.eval()  # as it is after a validation
    losses, modes, parameters = [], [], []
    model.encoder.register_forward_pre_hook(
        lambda encoder, _: modes.append(encoder.training)
    )
    for batch in batches():
        loss = train_step(model, batch, optimizer, clip)
        if loss is ... or loss is None:
            return loss
        if torch.is_tensor(loss) and loss.requires_grad:
            raise TypeError("the loss that is returned is a tensor with its gradient")
        losses.append(loss)
        parameters.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    return TwoSteps(*losses, all(modes), model.training, *parameters)


def _step_by_loops(model, batch, optimizer, clip):
    model.train()
    logits, _ = model(batch.source, batch.target_in, batch.source_lens)
    loss = mean_loss_by_loops(logits, batch.target_out)
    parameters = list(model.parameters())
    gradients = clip_by_loops(torch.autograd.grad(loss, parameters), clip)
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()
    return loss.item()


def two_steps_by_loops(model, batches, rate, clip):
    """What two training steps return and change.

    model, batches: functions that make them.
    """
    return _two_steps(_step_by_loops, model, batches, rate, clip)


def _forced(model, batch):
    """The loss by teacher forcing."""
    logits, _ = model(batch.source, batch.target_in, batch.source_lens)
    return F.cross_entropy(
        logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0
    )


def _clipped(model, clip):
    nn.utils.clip_grad_norm_(model.parameters(), clip)


def _clipped_by_value(model, clip):
    nn.utils.clip_grad_value_(model.parameters(), clip)


def _clipped_each(model, clip):
    for parameter in model.parameters():
        nn.utils.clip_grad_norm_([parameter], clip)


def _steps(order, loss=_forced, clipping=_clipped, trains=True, back="before"):
    """A training step that does these, in this order; `loss` and what is returned."""

    def train_step(model, batch, optimizer, clip):
        if trains:
            model.train()
        nats = None
        for part in order.split():
            if part in ("train", "eval"):
                model.train(part == "train")
            elif part == "loss":
                nats = loss(model, batch)
            elif part == "zero":
                optimizer.zero_grad()
            elif part == "back":
                nats.backward()
            elif part == "clip":
                clipping(model, clip)
            elif part == "step":
                optimizer.step()
        if back == "tensor":
            return nats
        return loss(model, batch).item() if back == "after" else nats.item()

    return train_step


RIGHT_ORDER = "zero loss back clip step"


def _other(**changes):
    return _steps(RIGHT_ORDER, **changes)


def _read(model, batch, words):
    """Logits for the real target words, if the decoder reads these words."""
    return model(batch.source, words, batch.source_lens)[0]


def _judged(logits, targets, **options):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), **options)


def _loss_of(read, judged, **options):
    """The loss if the decoder reads one field of the batch and another judges it."""
    return lambda model, batch: _judged(
        _read(model, batch, getattr(batch, read)), getattr(batch, judged), **options
    )


def _swapped(read, judged):
    return [
        _other(loss=_loss_of(read, judged, ignore_index=0)),
        _other(loss=_loss_of(read, judged)),
    ]


def _a_tuple_has_no(name):
    """What code raises that takes what the model gives for the logits."""
    return _other(loss=lambda model, batch: getattr((None, None), name))


def _model(seed, V, H):
    """A small model with large parameters, so that its gradient is above 1."""
    model = seeded(seed, build_model, "attention", V, V + 1, H - 1, H)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3)
    return model


def _made(pairs):
    return [Batch.from_ids(*ids) for ids in pairs]


def _step_case(seed, V, H, sources, targets, rate, clip):
    """Two batches whose sentences have these numbers of words."""
    draws = torch.Generator().manual_seed(seed)

    def ids(lens, high):
        rows = [torch.randint(4, high, (n,), generator=draws).tolist() for n in lens]
        return [[*row, EOS_ID] for row in rows]

    pairs = [(ids(a, V), ids(b, V + 1)) for a, b in zip(sources, targets, strict=True)]
    return partial(_model, seed, V, H), partial(_made, pairs), rate, clip


train_step = Exercise(
    "train_step",
    two_steps_by_loops,
    cases=[
        _step_case(0, 7, 4, [[3, 1], [2, 4]], [[5, 2], [1, 3]], 0.5, 0.2),
        _step_case(1, 7, 4, [[2, 3], [1, 2]], [[1, 4], [3, 2]], 0.5, 0.05),
        _step_case(2, 9, 5, [[4, 2, 1], [3, 3]], [[2, 6, 3], [4, 1]], 1.0, 0.4),
        _step_case(3, 8, 6, [[2], [3, 1]], [[4], [2, 5]], 0.3, 100.0),
    ],
    mistakes={
        "the gradients of the step before are still there, since backward adds to "
        "them. When are they set to zero?": [
            _steps("loss back clip step"),
        ],
        "no parameter has changed. An update needs backward() and then step(), both "
        "called with brackets, and no zero_grad() between the two.": [
            _steps("loss back zero clip step"),
            _steps("loss back clip zero step"),
            _steps("zero loss back clip"),
            _steps("zero loss clip step"),
            _steps("zero loss step back clip"),
            _steps("loss zero step back clip"),
            _steps("loss"),
        ],
        "the update is one batch late: step() uses the gradient of the call before. It "
        "has to come after backward().": [
            _steps("loss step zero back clip"),
            _steps("step zero loss back clip"),
        ],
        "the gradient is used at its full norm. Clipping has something to scale down "
        "only after backward(), and it must be done before step().": [
            _steps("zero loss back step"),
            _steps("zero loss clip back step"),
            _steps("zero loss back step clip"),
            _steps("clip zero loss back step"),
        ],
        "the gradient is used at its full norm, and that of the step before is still "
        "in it. Where are clipping and zero_grad()?": [
            _steps("loss back step"),
            _steps("loss back step clip"),
        ],
        "each number of the gradient is cut off by itself. One factor for all of them "
        "keeps the direction.": [_other(clipping=_clipped_by_value)],
        "each parameter's gradient is clipped by itself. The norm is that of all "
        "parameters together.": [_other(clipping=_clipped_each)],
        "the gradient is clipped to 1, whatever `clip` is.": [
            _other(clipping=lambda model, clip: _clipped(model, 1.0))
        ],
        "the loss compares the logits with target_in, which the decoder has just read. "
        "Which words should it write?": _swapped("target_in", "target_in"),
        "the decoder reads target_out: at each step it sees the word that it should "
        "write.": _swapped("target_out", "target_out"),
        "reading and writing are exchanged. The decoder should read target_in and be "
        "judged by target_out.": _swapped("target_out", "target_in"),
        "words are shifted once more. target_in is target_out, one step later, "
        "already.": [
            _other(
                loss=lambda model, batch: _judged(
                    _read(model, batch, batch.target_in)[:, :-1],
                    batch.target_out[:, 1:],
                    ignore_index=0,
                )
            ),
            _other(
                loss=lambda model, batch: _judged(
                    _read(model, batch, batch.target_out[:, :-1]),
                    batch.target_out[:, 1:],
                    ignore_index=0,
                )
            ),
        ],
        "padding is counted in the loss. Which positions of target_out are real?": [
            _other(loss=_loss_of("target_in", "target_out"))
        ],
        "the loss is a sum. With the mean over real words, an update doesn't depend on "
        "the size of the batch.": [
            _other(
                loss=_loss_of(
                    "target_in", "target_out", ignore_index=0, reduction="sum"
                )
            )
        ],
        "the encoder is given no lengths that fit: it needs batch.source_lens, one for "
        "each source sentence.": [
            _other(
                loss=lambda model, batch: _judged(
                    model(batch.source, batch.target_in, batch.target_lens)[0],
                    batch.target_out,
                    ignore_index=0,
                )
            ),
        ],
        "the model is still in evaluation mode, in which dropout is off. Which call "
        "brings it back?": [_other(trains=False)],
        "training mode comes too late: dropout is off while the loss is computed.": [
            _steps("zero loss train back clip step", trains=False)
        ],
        "the model is left in evaluation mode.": [
            _steps("zero loss back clip step eval")
        ],
        "a plain number is asked for. A tensor keeps all that its gradient needs.": [
            _other(back="tensor")
        ],
        "two updates with one gradient: step() is called twice.": [
            _steps("zero loss back clip step step")
        ],
        "the loss is cut off at `clip`. It is the norm of the gradient that should be "
        "clipped.": [
            lambda model, batch, optimizer, clip: _steps(
                "zero loss back step",
                loss=lambda model, batch: _forced(model, batch).clamp(max=clip),
            )(model, batch, optimizer, clip)
        ],
        "the loss returned is that after the update. It was known before.": [
            _other(back="after")
        ],
        "the model gives two things, the logits and the decoder's state: "
        "`logits, _ = model(...)`.": [
            *map(
                _a_tuple_has_no,
                ("dim", "flatten", "transpose", "shape", "reshape", "view"),
            ),
            *map(_a_tuple_has_no, ("permute", "size", "log_softmax", "softmax")),
        ],
        "clip_grad_norm_ takes the parameters of the model: model.parameters().": [
            _other(clipping=lambda model, clip: nn.utils.clip_grad_norm_(model, clip))
        ],
        "the encoder needs the lengths of the sources, too: batch.source_lens.": [
            _other(loss=lambda model, batch: model(batch.source, batch.target_in))
        ],
        "a plain number has no backward(): call .item() for what is returned, and not "
        "before.": [
            _other(loss=lambda model, batch: _forced(model, batch).item()),
        ],
        "no way leads from this loss back to the parameters. Is there a no_grad, a "
        ".detach() or a new tensor on the way?": [
            _other(loss=lambda model, batch: _forced(model, batch).detach())
        ],
    },
    unwrap=_two_steps,
    given=("utils.training.masked_cross_entropy", "utils.guards.require_share"),
)


# Greedy decoding, with a step that stands for a decoder.

SCRIPT_WORDS = 12  # the vocabulary of the decoders below


class Script:
    """A decoder that writes what stands in its script, if it is used as it should be.

    rows: the words of each sentence. What comes after the end, or after a word that
    isn't the last one written, are other words.
    """

    def __init__(self, rows):
        self.rows = rows

    def __call__(self, words, state):
        """words (B, 1), state (B, 2) -> logits (B, 1, V), the new state."""
        B = len(self.rows)
        if list(words.shape) != [B, 1]:
            raise ValueError(
                f"words must be ({B}, 1), got {tuple(words.shape)} in step "
                f"{int(state[0, 0]) + 1}"
            )
        if words.is_floating_point():
            raise TypeError(f"words are ids, torch.long; got {words.dtype}")
        found, new = [], state.clone()
        for b, row in enumerate(self.rows):
            place, wanted = state[b].tolist()
            wrong = words[b, 0].item() != wanted
            inside = place < len(row) and not wrong
            found.append(row[place] if inside else 3 + (place + b + wrong) % 8)
            new[b] = torch.tensor([place + 1, found[b]])
        noise = torch.linspace(-1, 1, B * SCRIPT_WORDS).sin().view(B, 1, -1)
        chosen = F.one_hot(torch.tensor(found), SCRIPT_WORDS).unsqueeze(1)
        return noise + 3.0 * chosen, new


def greedy_by_loops(step, state, batch_size, max_steps):
    """step, state, batch_size, max_steps -> each sentence's ids, a list of lists."""
    words, sentences = [BOS_ID] * batch_size, [[] for _ in range(batch_size)]
    ended = [False] * batch_size
    for _ in range(max_steps):
        logits, state = step(torch.tensor([[word] for word in words]), state)
        for b, row in enumerate(logits[:, 0].tolist()):
            words[b] = row.index(max(row))
            ended[b] = ended[b] or words[b] == EOS_ID
            if not ended[b]:
                sentences[b].append(words[b])
    return sentences


def _written(
    step,
    state,
    batch_size,
    max_steps,
    first=BOS_ID,
    choose=None,
    keep=True,
    feed=True,
    stop=all,
):
    """All ids that a decoder writes (B, T), with what a learner may do otherwise."""
    word = torch.full((batch_size, 1), first)
    read, ended, ids = word, torch.zeros(batch_size, dtype=torch.bool), []
    for _ in range(max_steps):
        logits, new = step(read, state)
        state = new if keep else state
        word = choose(logits) if choose else logits.argmax(dim=-1)
        read = word if feed else read
        ids.append(word)
        if stop:
            ended = ended | (word[:, 0] == EOS_ID)
            if stop(ended):
                break
    return torch.cat(ids, dim=1).tolist() if ids else [[] for _ in range(batch_size)]


def _until_eos(row, kept=0):
    return row[: row.index(EOS_ID) + kept] if EOS_ID in row else row


def _until_last_eos(row):
    return row[: -1 - row[::-1].index(EOS_ID)] if EOS_ID in row else row


def _greedy(cut=_until_eos, steps=0, **changes):
    return lambda step, state, batch_size, max_steps: [
        cut(row)
        for row in _written(step, state, batch_size, max_steps + steps, **changes)
    ]


def _sampled(logits):
    return torch.multinomial(logits[:, -1].softmax(-1), 1)


def _cut_without_asking(row):
    return row[: row.index(EOS_ID)]


def _joined(rearranged, **changes):
    """rearranged(rows) of the ids of all sentences, (B, T); stopping early, and not."""
    return [
        lambda *case, stop=stop: rearranged(_written(*case, stop=stop, **changes))
        for stop in (all, None)
    ]


def _columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def _one_below_the_other(rows):
    return [_until_eos([word]) for column in _columns(rows) for word in column]


def _cut_up(rows):
    words = torch.tensor(_columns(rows)).view(len(rows), -1)
    return [_until_eos(row) for row in words.tolist()]


def _one_list(cut):
    """`[[]] * B` is one list, B times."""

    def rearranged(rows):
        columns = zip_longest(*map(cut, rows))
        words = [word for column in columns for word in column]
        return [[word for word in words if word not in (None, EOS_ID)]] * len(rows)

    return rearranged


def _drops_ended(step, state, batch_size, max_steps):
    """Keeps the words of those that go on, and the state of all."""
    words = torch.full((batch_size, 1), BOS_ID)
    while len(words):
        logits, state = step(words, state)
        words = logits.argmax(-1)
        words = words[words[:, 0] != EOS_ID]
    return []


def _fed_in(*shapes):
    """What is fed back has another shape: (B, V), (B,), () or (1, B)."""
    return [
        _greedy(choose=shape, stop=stop) for shape in shapes for stop in (all, None)
    ]


def _one_ends_the_row(step, state, batch_size, max_steps):
    """`break` in the loop over sentences: those after it lose their word."""
    word, rows = torch.full((batch_size, 1), BOS_ID), [[] for _ in range(batch_size)]
    for _ in range(max_steps):
        logits, state = step(word, state)
        word = logits.argmax(dim=-1)
        for row, written in zip(rows, word[:, 0].tolist(), strict=True):
            if written == EOS_ID:
                break
            row.append(written)
    return rows


def _skips_eos(step, state, batch_size, max_steps):
    """`continue` at <eos>: the sentence goes on at the next step."""
    rows = _written(step, state, batch_size, max_steps, stop=None)
    return [[word for word in row if word != EOS_ID] for row in rows]


def _all_so_far(step, state, batch_size, max_steps):
    """Reads the whole sentence at each step, as a model without a state would."""
    words = torch.full((batch_size, 1), BOS_ID)
    for _ in range(max_steps):
        logits, state = step(words, state)
        words = torch.cat((words, logits[:, -1:].argmax(-1)), dim=1)


def _ambiguous(step, state, batch_size, max_steps):
    word = torch.full((batch_size, 1), BOS_ID)
    logits, _ = step(word, state)
    return [] if logits.argmax(-1) == EOS_ID else None


def _one_number(step, state, batch_size, max_steps):
    logits, _ = step(torch.full((batch_size, 1), BOS_ID), state)
    return logits.argmax(-1).item()


def _decoding_case(rows, max_steps):
    state = torch.tensor([[0, BOS_ID]]).repeat(len(rows), 1)
    return Script(rows), state, len(rows), max_steps


def _seeded(function, *case):
    torch.manual_seed(0)  # so that one who draws words draws the same ones again
    return function(*case)


greedy_decode = Exercise(
    "greedy_decode",
    greedy_by_loops,
    cases=[
        _decoding_case([[5, 6, 7, 2], [8, 2], [4, 9, 2]], 6),
        _decoding_case([[7, 2], [3, 5, 6, 2], [4, 4, 8, 5, 2]], 8),
        _decoding_case([[9, 8, 7, 6, 5, 4, 3, 2], [6, 2]], 5),
        _decoding_case([[10, 10, 3, 2], [2], [11, 5, 2], [3, 4, 5, 2]], 4),
        _decoding_case([[4, 2, 6, 2], [5, 9, 7, 3, 8, 2]], 7),  # one writes on
    ],
    mistakes={
        "<eos> is kept. It says that the sentence has ended, and isn't a word of it.": [
            _greedy(cut=partial(_until_eos, kept=1))
        ],
        "words that come after <eos> are kept. A sentence ends at its first <eos>, "
        "though the others go on.": [
            _greedy(cut=lambda row: row),
            _greedy(cut=_until_last_eos),
            _greedy(cut=lambda row: [word for word in row if word != EOS_ID]),
            _greedy(
                cut=lambda row: [word for word in row if word not in (0, 1, EOS_ID)],
                stop=None,
            ),
            _greedy(cut=lambda row: row, stop=None),
            _skips_eos,
        ],
        "all sentences are stopped as soon as one has ended. The others still have "
        "words to write.": [_greedy(stop=any)],
        "only the first sentence is asked whether it has ended. When may the loop "
        "stop?": [_greedy(stop=lambda ended: ended[0])],
        "where one sentence writes <eos>, the loop over the sentences ends: the others "
        "lose this step's word, and the sentence goes on at the next step.": [
            _one_ends_the_row
        ],
        "<bos> is among the words. It is read, and never written.": [
            lambda *case: [[BOS_ID, *row] for row in greedy_by_loops(*case)],
            lambda *case: [[BOS_ID, *_until_eos(row, 1)] for row in _written(*case)],
        ],
        "the word written isn't read at the next step: each step reads <bos> again.": [
            _greedy(feed=False)
        ],
        "the state isn't kept: each step starts again from the first one. `step` gives "
        "two things.": [_greedy(keep=False), _greedy(keep=False, feed=False)],
        "decoding begins with another word than <bos>, whose id is 1.": [
            _greedy(first=first) for first in (0, 2, 3)
        ],
        "words are drawn by chance. Greedy decoding takes the most probable one.": [
            _greedy(choose=_sampled)
        ],
        "this is the least probable word at each step.": [
            _greedy(choose=lambda logits: logits.argmin(dim=-1))
        ],
        "the last of max_steps words is missing: a step too few, or one word cut off "
        "from a sentence without <eos>.": [_greedy(steps=-1)],
        "a sentence without <eos> is lost. max_steps has cut it off, and its words "
        "count.": [_greedy(cut=lambda row: _until_eos(row) if EOS_ID in row else [])],
        "the rows are tensors, and lists of ints are asked for: tolist().": [
            lambda *case: [
                torch.tensor(row, dtype=torch.long) for row in greedy_by_loops(*case)
            ]
        ],
        "all sentences share one list: `[[]] * B` repeats the same list B times. What "
        "makes a new one for each?": [
            *_joined(_one_list(_until_eos)),
            *_joined(_one_list(lambda row: row)),
        ],
        "the steps are joined along the axis of the sentences. A sentence is a row of "
        "(B, T): which axis grows?": [
            *_joined(_one_below_the_other),
            *_joined(_cut_up),
        ],
        "words are floats. An embedding looks up whole numbers, torch.long.": [
            lambda step, state, batch_size, max_steps: step(
                torch.ones(batch_size, 1), state
            )
        ],
        "sentences that have ended are dropped from the words, and not from the state. "
        "May they go on, and be cut afterwards?": [_drops_ended],
        "one step too many: at most max_steps words may be written.": [
            _greedy(steps=1)
        ],
        "max_steps isn't used: a sentence that never ends would go on for ever.": [
            _greedy(steps=40)
        ],
        "a list a step came. One for each sentence is asked for: exchange the "
        "two.": _joined(_columns),
        "argmax ran over the wrong axis. logits are (B, 1, V): which axis holds the "
        "words?": _fed_in(
            lambda logits: logits.argmax(dim=1), lambda logits: logits.argmax(dim=0)
        ),
        "argmax without an axis gives one number for the whole batch. Which axis of "
        "(B, 1, V) holds the words?": _fed_in(
            lambda logits: logits.argmax(),
            lambda logits: logits.argmax().expand(len(logits), 1),
        ),
        "argmax has taken an axis away, and `step` reads (B, 1). unsqueeze(1), or "
        "keepdim=True, brings it back.": _fed_in(
            lambda logits: logits[:, -1].argmax(-1)
        ),
        "an axis too many is fed back: logits are (B, 1, V), so argmax over the last "
        "axis is (B, 1) already.": [
            _greedy(choose=lambda logits: logits.argmax(-1, keepdim=True), stop=None)
        ],
        "all words written so far are given to `step`. The state remembers them: give "
        "it the last word alone, (B, 1).": [_all_so_far],
        "the first words are (B,): `step` reads (B, 1), a row a sentence.": [
            lambda step, state, batch_size, max_steps: step(
                torch.full((batch_size,), BOS_ID), state
            )
        ],
        "one sentence is given alone. `step` takes the whole batch at once: (B, 1).": [
            lambda step, state, batch_size, max_steps: step(
                torch.tensor([[BOS_ID]]), state
            )
        ],
        "the axis of length 1 stands in front. `step` reads (B, 1), a row a "
        "sentence.": _fed_in(lambda logits: logits[:, -1].argmax(-1).unsqueeze(0)),
        "a sentence that max_steps has cut off has no <eos>, and index finds "
        "nothing.": [_greedy(cut=_cut_without_asking)],
        "a whole batch is asked whether it has ended, and the answer is one a "
        "sentence. all() or any() makes one of them.": [_ambiguous],
        "item() takes one number, and the batch has several: one a sentence.": [
            _one_number
        ],
    },
    unwrap=_seeded,
)
