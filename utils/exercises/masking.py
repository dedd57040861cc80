"""The exercises of notebook 03. B sentences in a batch, Q queries, K keys.

Many wrong answers hold one mistake and, beside it, any of several ways to go on from
there. `_in_every_way` lists those ways, so that a wrong mask, or a wrong axis, is named
whatever stands around it; where a way isn't listed, the engine guesses from one case.
"""

import math

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw, real_positions


def masked_by_loops(X, valid_lens):
    """Scores X (B, Q, K), lengths (B,) -> weights: 0 on padding, 0 in an empty row."""
    weights = torch.zeros_like(X)
    for b in range(X.shape[0]):
        for q in range(X.shape[1]):
            row = [X[b, q, k] for k in range(int(valid_lens[b]))]
            exps = [(x - max(row).detach()).exp() for x in row]
            for k in range(len(row)):
                weights[b, q, k] = exps[k] / sum(exps)
    return weights


# --- Cases --------------------------------------------------------------------------


def _case(seed, lens, Q, K, factor=1.0, shift=0.0, padding=None):
    X = draw(seed, (len(lens), Q, K))[0] * factor + shift
    lens = torch.tensor(lens)
    if padding is not None:
        X = X.masked_fill(~_real(X, lens), padding)
    return X, lens


def _broken(seed, lens, Q, K):
    """A case with NaN among the real scores of its first row."""
    X, lens = _case(seed, lens, Q, K)
    X[0, 0, 1] = torch.nan
    return X, lens


# --- Masks: scores (B, Q, K), lengths (B,) -> True where a position is real ----------


def _real(X, valid_lens):
    return real_positions(valid_lens, X.shape[-1]).unsqueeze(1)  # (B, 1, K)


def _placed(axis, count=-1):
    """The positions of that axis of X, and where the missing axis is put, if at all."""

    def mask(X, valid_lens):
        real = real_positions(valid_lens, X.shape[count])
        return real if axis is None else real.unsqueeze(axis)

    return mask


def _seen_if(compare):
    """The mask of a comparison of the indices k and the lengths n."""
    return lambda X, lens: compare(torch.arange(X.shape[-1]), lens[:, None])[:, None]


def _lengths_without_axis(X, valid_lens):
    return torch.arange(X.shape[-1]) < valid_lens  # (K,) and (B,)


# --- What is subtracted before exp: scores, mask -> largest (B, Q, 1) ----------------


def _largest_real(X, real):
    found = X.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
    return found.masked_fill(found == -torch.inf, 0.0)


def _largest_with_zeros(X, real):
    return X.masked_fill(~real, 0.0).amax(-1, keepdim=True)


def _largest_with_padding(X, real):
    return X.amax(-1, keepdim=True)


def _nothing(X, real):
    return 0.0


# --- Ways from scores and mask to weights --------------------------------------------


def _filled(number, axis=-1, mask=_real):
    """softmax of the scores with `number` at the padding."""
    return lambda X, valid_lens: X.masked_fill(~mask(X, valid_lens), number).softmax(
        axis
    )


def _added(number):
    """softmax of the scores with `number` added at the padding."""

    def weights(X, valid_lens):
        scores = X + torch.zeros(()).masked_fill(~_real(X, valid_lens), number)
        return scores.softmax(-1)

    return weights


def _by_hand(
    largest, clean=True, safe=True, axis=-1, mask=_real, keep=(True, True), every=False
):
    """exp times mask over its sum, with choices of what a learner may forget.

    largest: what is subtracted. clean: replace what is NaN or infinite at the padding.
    safe: divide an empty row by 1. keep: whether the largest, and the sum, keep their
    axis. every: one sum over the whole tensor.
    """

    def weights(X, valid_lens):
        real = mask(X, valid_lens)
        top = largest(X, real)
        exps = (X - (top if keep[0] else top.squeeze(-1))).exp() * real
        if clean:
            exps = exps.masked_fill(~real, 0.0)
        total = exps.sum() if every else exps.sum(axis, keepdim=keep[1])
        return exps / (total.masked_fill(total == 0, 1.0) if safe else total)

    return weights


def _hand_made(largest, **choices):
    """By hand, with and without the two cares that are the likeliest to be missing."""
    return [
        _by_hand(largest, clean, safe, **choices)
        for clean in (True, False)
        for safe in (True, False)
    ]


def _in_some_ways(**wrong):
    """A wrong mask, or a wrong axis, in code that is careful, or not, beside it."""
    return [
        lambda X, valid_lens: _filled(-torch.inf, **wrong)(X, valid_lens).nan_to_num(),
        _filled(-torch.inf, **wrong),
        _filled(LARGE, **wrong),
        _by_hand(_largest_real, **wrong),
    ]


def _in_every_way(**wrong):
    """The same for the likeliest mistakes, with all that else may be forgotten."""
    return [
        *_in_some_ways(**wrong),
        _by_hand(_largest_real, safe=False, **wrong),
        *(
            _by_hand(largest, False, safe, **wrong)
            for largest in (_largest_with_padding, _nothing)
            for safe in (True, False)
        ),
    ]


def _cut(weigh, change=lambda n: n, always=False):
    """A loop over the sentences, each cut to its length n: weigh (Q, n) -> (Q, n).

    always: sentences without a real position are weighed, too.
    """

    def weights(X, valid_lens):
        result = torch.zeros_like(X)
        for b, n in enumerate(change(valid_lens).tolist()):
            if n or always:
                result[b, :, :n] = weigh(X[b, :, :n])
        return result

    return weights


def _plain(x):
    return x.softmax(-1)


def _divided(largest, every=False):
    """exp over its sum, for one sentence cut to its length."""

    def weigh(x):
        exps = (x - largest(x)).exp()
        return exps / (exps.sum() if every else exps.sum(-1, keepdim=True))

    return weigh


def _row(x):
    return x.amax(-1, keepdim=True)


def _late(largest):
    """By hand, masked after the division."""

    def weights(X, valid_lens):
        exps = (X - largest(X, _real(X, valid_lens))).exp()
        return exps / exps.sum(-1, keepdim=True) * _real(X, valid_lens)

    return weights


def _undivided(largest, clean=True):
    def weights(X, valid_lens):
        real = _real(X, valid_lens)
        exps = (X - largest(X, real)).exp() * real
        return exps.masked_fill(~real, 0.0) if clean else exps

    return weights


def _shares(parts, safe=True):
    total = parts.sum(-1, keepdim=True)
    return parts / (total.masked_fill(total == 0, 1.0) if safe else total)


def _hides_nan(weights):
    return lambda X, valid_lens: weights(X, valid_lens).nan_to_num()


def _hides_zero_sum(X, valid_lens):
    exps = _undivided(_largest_real)(X, valid_lens)
    total = exps.sum(-1, keepdim=True)
    return torch.where(total > 0, exps / total, 0.0)


def _clean_first(X, valid_lens):
    return _by_hand(_largest_real)(X.nan_to_num(), valid_lens)


def _tuple_of_max(X, valid_lens):
    real = _real(X, valid_lens)
    return ((X - X.max(dim=-1, keepdim=True)).exp() * real).softmax(-1)


def _stacked(X, valid_lens):
    return torch.stack(
        [x[:, :n].softmax(-1) for x, n in zip(X, valid_lens, strict=True)]
    )


def _sliced(X, valid_lens):
    return X[:, :, :valid_lens].softmax(-1)


LARGE = -1e6  # the same as -1e4 or -1e9, in every case below
EMPTY = "a row without a real position: "
LEAKS = (
    "what stands at the padding leaks in. 0 times NaN or infinity is NaN; and where "
    "the largest score, or a first softmax, is taken over padding too, noise of 1000 "
    "there makes every real exp 0. What could the scores of padding be replaced by, "
    "before anything is computed with them?"
)
# What a learner may call: it is built, or shown, before.
MASK = ("utils.attention.length_mask", "utils.attention.check_lengths")

masked_softmax = Exercise(
    "masked_softmax",
    masked_by_loops,
    cases=[
        _case(0, [4, 2, 1], 2, 5),
        _case(1, [3, 5, 2], 2, 5),
        _case(2, [2, 0], 3, 4),
        _case(3, [3], 1, 6),
        _case(4, [1, 2, 3, 4], 4, 4),
        _case(5, [3, 2], 2, 4, factor=200.0),
        _case(6, [3, 1], 2, 4, padding=1000.0),
        _case(7, [2, 4], 3, 5, padding=torch.nan),
        _case(8, [4, 3], 3, 5, shift=-300.0),
        _broken(9, [4, 1], 2, 4),
    ],
    mistakes={
        "padding gets weight, as if there were no mask. (masked_fill returns a new "
        "tensor: was it kept?)": [
            lambda X, lens: X.softmax(-1),
            lambda X, lens: X.exp() / X.exp().sum(-1, keepdim=True),
        ],
        "the mask comes after the softmax. Padding gets 0, but it has taken its part "
        "of the sum, so the rows sum to less than 1.": [
            lambda X, lens: X.softmax(-1).masked_fill(~_real(X, lens), 0.0),
            lambda X, lens: X.softmax(-1) * _real(X, lens),
            _late(_nothing),
            _late(_largest_real),
        ],
        "the mask comes after the softmax, and a second softmax gives padding weight "
        "again: exp(0) is 1.": [
            lambda X, lens: (X.softmax(-1) * _real(X, lens)).softmax(-1),
            lambda X, lens: _undivided(_largest_real)(X, lens).softmax(-1),
        ],
        "the scores of padding are set to 0. But exp(0) is 1: it takes part "
        "in the sum.": [
            lambda X, lens: (X * _real(X, lens)).softmax(-1),
            _filled(0.0),
            lambda X, lens: _filled(0.0)(X, lens) * _real(X, lens),
            lambda X, lens: (X * _real(X, lens)).softmax(-1) * _real(X, lens),
        ],
        f"{EMPTY}all its scores are the same large negative number, so softmax spreads "
        "the weight evenly over padding. Weights of 0 are asked for.": [_filled(LARGE)],
        f"{EMPTY}its largest score is -inf, and -inf minus -inf is NaN. And the sum "
        "of its exp is 0, and 0/0 is NaN. Mend both; weights of 0 are asked for.": [
            _filled(-torch.inf),
            _by_hand(_largest_real, safe=False),
        ],
        "a number is added to the scores of padding. NaN plus a number is NaN, so what "
        "stands there leaks in; and an empty row still gets weights, or 0/0. Replace "
        "the scores; and what is an empty row divided by?": [
            *(_added(number) for number in (-1e4, -1e6, -1e9, -torch.inf)),
            lambda X, lens: (X * _real(X, lens) + LARGE * ~_real(X, lens)).softmax(-1),
        ],
        "-inf is multiplied by the mask. 0 times infinity is NaN, so the real scores "
        "become NaN.": [
            lambda X, lens: (X + ~_real(X, lens) * -torch.inf).softmax(-1),
            lambda X, lens: (X * _real(X, lens) + ~_real(X, lens) * -torch.inf).softmax(
                -1
            ),
        ],
        "`~` turns True and False round, and this mask holds numbers. What makes it "
        "boolean?": [
            lambda X, lens: X.masked_fill(~_real(X, lens).float(), -1e9).softmax(-1)
        ],
        "softmax is applied twice: the second one takes weights for scores.": [
            lambda X, lens: _filled(-torch.inf)(X.softmax(-1), lens),
            lambda X, lens: _filled(LARGE)(X.softmax(-1), lens),
        ],
        "one position too many: a length of 3 makes three positions real, the indices "
        "0, 1 and 2. On full rows it doesn't show.": [
            *_in_some_ways(mask=_seen_if(lambda k, n: k <= n)),
            _cut(_plain, lambda n: n + 1),
        ],
        "one position too few: each sentence loses its last word.": [
            *_in_some_ways(mask=_seen_if(lambda k, n: k < n - 1)),
            _cut(_plain, lambda n: (n - 1).clamp(min=0)),
        ],
        "each sentence's first word is missing: indices begin at 0.": _in_some_ways(
            mask=_seen_if(lambda k, n: (k > 0) & (k < n))
        ),
        "the mask is one position too far to the right: positions are counted from 1, "
        "and indices from 0.": _in_some_ways(
            mask=_seen_if(lambda k, n: (k > 0) & (k <= n))
        ),
        "the mask is turned round: the words are hidden and the padding is seen.": [
            *_in_every_way(mask=_seen_if(lambda k, n: k >= n))
        ],
        "the lengths (B,) meet the positions (K,) without an axis of their own: "
        "position n is compared with length n, or the sizes don't fit. Which shape "
        "must the lengths have, so that each length meets each position?": [
            *_in_every_way(mask=_lengths_without_axis),
            *_in_some_ways(mask=lambda X, n: _lengths_without_axis(X, n).unsqueeze(1)),
        ],
        "the mask has no axis for the queries: (B, K) is read as (Q, K), so that a "
        "query gets another sentence's mask, or the sizes don't fit. Where must an "
        "axis of length 1 stand, so that the mask becomes (B, 1, K)?": [
            *_in_every_way(mask=_placed(None))
        ],
        "the mask's axis of length 1 stands at the end: (B, K, 1) is read as queries. "
        "Which axis of (B, Q, K) should the mask be the same for?": [
            *_in_some_ways(mask=_placed(2))
        ],
        "the mask has as many columns as there are queries, or the lengths are applied "
        "to the queries. Lengths count keys: which axis of X is that?": [
            *_in_some_ways(mask=_placed(2, count=1)),
            *_in_some_ways(mask=_placed(1, count=1)),
        ],
        "the queries get the lengths in the wrong order: `repeat` writes all lengths, "
        "and then all of them again. In X a sentence's queries stand side by side.": (
            _in_some_ways(
                mask=lambda X, lens: real_positions(
                    lens.repeat(X.shape[1]), X.shape[-1]
                ).view(X.shape)
            )
        ),
        "the weights sum to 1 over the queries, not over the keys: which axis did you "
        "normalise?": [
            *_in_every_way(axis=1),
            *_hand_made(lambda X, real: X.amax(1, keepdim=True), axis=1),
            _cut(lambda x: x.softmax(0)),
            _cut(lambda x: x.exp() / x.exp().sum(0)),
        ],
        "the weights sum to 1 over the batch, not over the keys: which axis did you "
        "normalise? (softmax without `dim` takes the first axis of three.)": [
            *_in_every_way(axis=0),
            *_hand_made(lambda X, real: X.amax(0, keepdim=True), axis=0),
        ],
        "one sum is taken over several rows, so that all their weights together make "
        "1. Each row is to sum to 1: over which axis is the sum?": [
            _cut(_divided(torch.max, every=True)),
            _cut(_divided(_row, every=True)),
            _cut(_divided(lambda x: 0.0, every=True)),
            _by_hand(_largest_real, axis=(1, 2)),
            _by_hand(_nothing, axis=(1, 2)),
            _by_hand(_largest_real, every=True),
            _by_hand(_nothing, clean=False, every=True),
            _by_hand(_largest_with_padding, clean=False, every=True),
        ],
        "the largest score, or the sum, has lost its axis: (B, Q) is read as (Q, K) "
        "beside the scores, or the sizes don't fit. What does keepdim do?": [
            way
            for keep in ((True, False), (False, True), (False, False))
            for way in (
                _by_hand(_largest_real, keep=keep),
                _by_hand(_largest_real, safe=False, keep=keep),
                _by_hand(_largest_with_padding, False, keep=keep),
                _by_hand(_largest_with_padding, False, False, keep=keep),
                _by_hand(_nothing, False, keep=keep),
            )
        ],
        "max with `dim` gives two things, the largest values and where they stand. "
        "Which of them do you subtract? (amax gives the values alone.)": [
            _tuple_of_max
        ],
        "one sentence's length is used for all.": [
            *_in_some_ways(mask=_seen_if(lambda k, n: k < n[:1])),
            *_in_some_ways(mask=_seen_if(lambda k, n: k < n.amax(0, keepdim=True))),
            _cut(_plain, lambda n: n[:1].expand_as(n)),
            _cut(_plain, lambda n: n.max().expand_as(n)),
        ],
        "valid_lens holds a length for each sentence. A slice takes one number, and "
        "rows cut to their lengths don't fit into one tensor: loop over the sentences, "
        "or make a mask. Every row of the result has K positions, with 0 at the "
        "padding.": [
            _sliced,
            _stacked,
        ],
        "the exp of the scores isn't divided by its sum.": [
            *(_undivided(largest) for largest in (_largest_real, _nothing)),
            *(_undivided(largest, False) for largest in (_largest_real, _nothing)),
            *(_undivided(_largest_with_padding, clean) for clean in (True, False)),
        ],
        "exp of a large score is infinite, and exp of a score far below 0 is 0. "
        "Subtract the row's largest real score first.": [
            _by_hand(_nothing),
            _by_hand(_nothing, clean=False),
            _cut(_divided(lambda x: 0.0), always=True),
        ],
        "a row without a real position has no largest score, so that max raises an "
        "error. What are the weights of such a row?": [
            _cut(_divided(_row), always=True),
            _cut(_divided(torch.max), always=True),
        ],
        f"{EMPTY}the sum is 0, and 0/0 is NaN. (Then: exp of a large score is "
        "infinite; and 0 times NaN is NaN.)": [
            _by_hand(_nothing, safe=False),
            _by_hand(_nothing, clean=False, safe=False),
        ],
        "a 0 that is no real score counts as the largest: padding was set to 0 first, "
        "or clamp. Where all real scores are far below 0, every real exp becomes 0.": [
            *_hand_made(_largest_with_zeros),
            _by_hand(lambda X, real: _largest_real(X, real).clamp(min=0)),
        ],
        "the scores are limited (clamp), so that different large scores become "
        "equal. A number taken from all scores of a row changes no weight: which one "
        "makes the largest score 0?": [
            lambda X, lens, most=most: masked_by_loops(X.clamp(max=most), lens)
            for most in (50.0, 80.0, 88.0, 100.0)
        ],
        "a number is added to the sum, so the row sums to less than 1. Only an empty "
        "row's sum is 0, and only that one needs help.": [
            lambda X, lens, more=more: (
                _undivided(_largest_real)(X, lens)
                / (_undivided(_largest_real)(X, lens).sum(-1, keepdim=True) + more)
            )
            for more in (1.0, 0.1, 0.01, 1e-3)
        ],
        "softmax divides exp of a score by the sum of them: here the scores "
        "themselves, or powers of another number, are divided.": [
            lambda X, lens: _shares(X.masked_fill(~_real(X, lens), 0.0)),
            lambda X, lens: _shares(X.masked_fill(~_real(X, lens), 0.0), False),
            lambda X, lens: masked_by_loops(X * math.log(2), lens),
        ],
        "the largest score is taken over several rows. In a row far below it, every "
        "exp becomes 0: each row needs a largest score of its own.": [
            *_hand_made(lambda X, real: X.max()),
            *_hand_made(lambda X, real: X.masked_fill(~real, -torch.inf).max()),
            _cut(_divided(torch.max)),
        ],
        LEAKS: [
            _by_hand(_largest_real, clean=False),
            _by_hand(_largest_with_padding, clean=False),
        ],
        f"{EMPTY}0/0, or 0 times infinity. And {LEAKS}": [
            _by_hand(_largest_real, clean=False, safe=False),
            _by_hand(_largest_with_padding, clean=False, safe=False),
        ],
        "NaN among the real scores is hidden: nan_to_num makes it a number, and a "
        "comparison with NaN is False. A fault elsewhere must stay visible: which rows "
        "have no real position, by their length?": [
            _hides_nan(_filled(-torch.inf)),
            _hides_zero_sum,
            _clean_first,
        ],
    },
    gradients=True,
    given=MASK,
)


def length_mask_by_loops(valid_lens, num_positions):
    """Lengths (B,), the number of positions K -> True where real (B, K)."""
    return torch.tensor(
        [[k < length for k in range(num_positions)] for length in valid_lens.tolist()]
    )


def _mask(change):
    """A mask of the indices, each sentence's length (B, 1), and their number."""
    return lambda lens, K: change(torch.arange(K), lens.unsqueeze(1), K)


def _columns(count):
    """A mask with another number of columns."""
    return lambda lens, K: torch.arange(count(lens, K)) < lens.unsqueeze(1)


def _looped(lens, K, start, stop):
    """Ones from the index start to before stop, written as a loop would."""
    rows = [list(range(start(n), stop(n, K))) for n in lens.tolist()]
    return torch.tensor([[k in row for k in range(K)] for row in rows])


length_mask = Exercise(
    "length_mask",
    length_mask_by_loops,
    cases=[
        (torch.tensor([4, 1, 3]), 5),
        (torch.tensor([2, 5, 1]), 5),
        (torch.tensor([0, 3]), 4),
        (torch.tensor([6]), 6),
        (torch.tensor([1, 2, 3, 2]), 4),
    ],
    mistakes={
        "one position too many is real: a sentence of 3 words gets 4. On full rows "
        "nothing shows it.": [_mask(lambda k, n, K: k <= n)],
        "one position too few is real: each sentence loses its last word.": [
            _mask(lambda k, n, K: k < n - 1),
            _mask(lambda k, n, K: k + 1 < n),
        ],
        "turned round: True belongs to the words, False to the padding.": [
            _mask(lambda k, n, K: k >= n),
            _mask(lambda k, n, K: k > n),
            _mask(lambda k, n, K: k + 1 >= n),
        ],
        "the words are taken to stand at the end. Here padding follows the words.": [
            _mask(lambda k, n, K: k >= K - n)
        ],
        "the axes are exchanged: a row for each sentence, a column for each "
        "position.": [
            _mask(lambda k, n, K: (k < n).T),
            _mask(lambda k, n, K: (k <= n).T),
            _mask(lambda k, n, K: (k >= n).T),
        ],
        "position number n is compared with length number n, or the sizes don't fit. "
        "Each length has to meet each position: which shape must the lengths have, "
        "beside the positions (K,)?": [
            *(
                way
                for axis in (lambda x: x, lambda x: x[None], lambda x: x[:, None])
                for way in (
                    lambda lens, K, axis=axis: axis(torch.arange(K)) < axis(lens),
                    lambda lens, K, axis=axis: axis(torch.arange(K)) <= axis(lens),
                    lambda lens, K, axis=axis: axis(torch.arange(K)) >= axis(lens),
                )
            ),
            lambda lens, K: torch.arange(K) < lens[None],
            lambda lens, K: torch.arange(K)[None] < lens,
            lambda lens, K: (torch.arange(K) < lens)[:, None],
            lambda lens, K: (torch.arange(K) < lens)[None],
            lambda lens, K: torch.arange(K).expand(len(lens), K) < lens,
        ],
        "the first sentence's length is used for all.": [
            _mask(lambda k, n, K: (k < n[:1]).expand(len(n), K))
        ],
        "the longest sentence's length is used for all.": [
            _mask(lambda k, n, K: (k < n.amax(0, keepdim=True)).expand(len(n), K))
        ],
        "everything is real: the lengths are not used.": [
            _mask(lambda k, n, K: (k >= 0).expand(len(n), K))
        ],
        "only each sentence's last word is real.": [_mask(lambda k, n, K: k == n - 1)],
        "only the first position of the padding is marked.": [
            _mask(lambda k, n, K: k == n),
            _mask(lambda k, n, K: k != n),
        ],
        "each sentence's first word is missing: indices begin at 0.": [
            _mask(lambda k, n, K: (k > 0) & (k < n))
        ],
        "the mask is one position too far to the right: positions are counted from 1, "
        "and indices from 0.": [_mask(lambda k, n, K: (k > 0) & (k <= n))],
        "a sentence of length 0 has no real position. (The index -1 is the last.)": [
            _mask(lambda k, n, K: (k < n) | (n == 0)),
            _mask(lambda k, n, K: k < n.clamp(min=1)),
        ],
        "these are differences of lengths and indices. Which comparison of the two "
        "makes them True or False?": [
            _mask(lambda k, n, K: n - k),
            _mask(lambda k, n, K: k - n),
        ],
        "Python's `range` can't be compared with a tensor. What makes a tensor of the "
        "same numbers?": [
            lambda lens, K: range(K) < lens[:, None],
            lambda lens, K: range(K) >= lens[:, None],
            lambda lens, K: lens[:, None] > range(K),
            lambda lens, K: list(range(K)) < lens[:, None],
            lambda lens, K: lens[:, None] > list(range(K)),
        ],
        "as many columns as there are sentences. How many are asked for?": [
            _columns(lambda lens, K: len(lens))
        ],
        "as many columns as the longest sentence has words. A batch may be padded "
        "further than that: how many are asked for?": [
            _columns(lambda lens, K: int(lens.max()))
        ],
        "a column too few, or too many: which numbers does arange give?": [
            _columns(lambda lens, K: K - 1),
            _columns(lambda lens, K: K + 1),
            lambda lens, K: torch.arange(1, K) < lens[:, None],
            lambda lens, K: torch.arange(1, K) <= lens[:, None],
        ],
        "the rows are cut to their words, so they differ in length. Each row needs K "
        "entries, with False at the padding.": [
            lambda lens, K: torch.tensor([[True] * n for n in lens.tolist()])
        ],
    },
)


def causal_by_loops(X, valid_lens):
    """Scores X (B, N, N), lengths (B,) -> weights over the real keys up to oneself."""
    weights = torch.zeros_like(X)
    for b in range(X.shape[0]):
        for q in range(X.shape[1]):
            seen = [k for k in range(X.shape[2]) if k <= q and k < valid_lens[b]]
            exps = [X[b, q, k].exp() for k in seen]
            for k, e in zip(seen, exps, strict=True):
                weights[b, q, k] = e / sum(exps)
    return weights


def _softmax(X, seen):
    """Weights over the keys that are seen (B, N, N); zeros where none is."""
    weights = X.masked_fill(~seen, -torch.inf).softmax(-1)
    return weights.masked_fill(~seen.any(-1, keepdim=True), 0.0)


def _seeing(change):
    """Weights where query q and key k are indices, n is the sentence's length."""

    def weights(X, valid_lens):
        q, k = torch.arange(X.shape[1])[:, None], torch.arange(X.shape[2])
        return _softmax(X, change(q, k, valid_lens[:, None, None]).expand(X.shape))

    return weights


def _by_lens(find):
    """Weights by lengths that come from 1 to N, and valid_lens."""

    def weights(X, valid_lens):
        lens = find(torch.arange(1, X.shape[1] + 1), valid_lens)
        if lens.shape not in (X.shape[:1], X.shape[:2]):
            raise ValueError("lengths that don't fit")
        lens = lens if lens.dim() == 2 else lens[:, None]
        return _softmax(X, real_positions(lens, X.shape[2]).expand(X.shape))

    return weights


def _up_to(q, k, n):
    return k <= q


def _to_the_end(q, k, n):
    return (k < n) & (q >= 0)


def _seen(X, valid_lens):
    past = torch.ones(X.shape[1:], dtype=torch.bool).tril()
    return past & _real(X, valid_lens)


causal_weights = Exercise(
    "causal_weights",
    causal_by_loops,
    cases=[
        _case(10, [4, 2, 3], 4, 4),
        _case(11, [1, 4, 3], 4, 4),
        _case(12, [5, 2], 5, 5),
        _case(13, [4], 6, 6),
        _case(14, [2, 4, 1, 3], 4, 4),
        _case(15, [0, 3], 3, 3),
    ],
    mistakes={
        "padding is seen: which is the last word that a query may see in a sentence "
        "that ends before the query's own place?": [
            _seeing(_up_to),
            _by_lens(lambda p, n: p.clamp(max=n.max()).expand(len(n), -1)),
        ],
        "the lengths stop one short: the last of N queries may see N words.": [
            lambda X, lens: masked_softmax(
                X, torch.minimum(torch.arange(1, X.shape[1]), lens[:, None])
            ),
            lambda X, lens: masked_softmax(
                X, torch.arange(1, X.shape[1]).expand(len(lens), -1)
            ),
        ],
        "the shortest sentence limits all of them.": [
            _by_lens(lambda p, n: p.clamp(max=n.min()).expand(len(n), -1)),
        ],
        "each query sees all the words of its sentence, those to come included.": [
            _seeing(_to_the_end)
        ],
        "neither the words to come nor the padding are hidden.": [
            lambda X, lens: X.softmax(-1)
        ],
        "a query doesn't see its own word, and the first query sees nothing: what is "
        "the length for the first query?": [
            _seeing(lambda q, k, n: (k < q) & (k < n)),
            lambda X, lens: X.masked_fill(
                ~(_seen(X, lens).tril(-1)), -torch.inf
            ).softmax(-1),
            _by_lens(lambda p, n: torch.minimum(p - 1, n[:, None])),
            lambda X, lens: (
                X.tril(-1)
                .masked_fill(~_seen(X, lens).tril(-1), -torch.inf)
                .softmax(-1)
                .masked_fill(lens[:, None, None] == 0, 0.0)
            ),
        ],
        "each query sees one word to come.": [
            _seeing(lambda q, k, n: (k <= q + 1) & (k < n))
        ],
        "the length is one too large where the sentence ends: padding is seen.": [
            _seeing(lambda q, k, n: (k <= q) & (k <= n))
        ],
        "turned round: a query sees words to come, and not those before it.": [
            _seeing(lambda q, k, n: (k >= q) & (k < n)),
            _seeing(lambda q, k, n: (k > q) & (k < n)),
            lambda X, lens: X.masked_fill(
                ~(torch.ones_like(X).triu().bool() & _real(X, lens)), -torch.inf
            ).softmax(-1),
        ],
        "the limits run backwards: the first query sees the most words, and the last "
        "query one.": [
            _by_lens(lambda p, n: torch.minimum(p.flip(0), n[:, None])),
            _by_lens(lambda p, n: p.flip(0).expand(len(n), -1)),
        ],
        "a query sees more than both limits allow: the larger one holds, or their "
        "sum. Which of two lengths must hold?": [
            _seeing(lambda q, k, n: (k <= q) | (k < n)),
            _seeing(lambda q, k, n: k < q + 1 + n),
        ],
        "two softmaxes are joined. The two limits make one mask, or one table of "
        "lengths, and then comes one softmax.": [
            lambda X, lens: _seeing(_up_to)(X, lens) * _seeing(_to_the_end)(X, lens),
            lambda X, lens: (
                (_seeing(_up_to)(X, lens) + _seeing(_to_the_end)(X, lens)) / 2
            ),
            lambda X, lens: _shares(
                _seeing(_up_to)(X, lens) * _seeing(_to_the_end)(X, lens)
            ),
        ],
        "these are lengths. Give them, with the scores, to masked_softmax.": [
            lambda X, lens: torch.minimum(torch.arange(1, len(X[0]) + 1), lens[:, None])
        ],
        "Python's min asks whether one tensor as a whole is smaller. Which function of "
        "torch compares number by number?": [
            lambda X, lens: min(torch.arange(1, len(X[0]) + 1), lens[:, None]),
            lambda X, lens: min(lens[:, None], torch.arange(1, len(X[0]) + 1)),
        ],
        "1 to N alone has no axis for the sentences: (N,) is read as a length for each "
        "sentence, and (1, N) as a batch of one. Lengths (B, N) are asked for, and in "
        "a short sentence the padding limits them, too.": [
            _by_lens(lambda p, n: p),
            _by_lens(lambda p, n: p[None]),
        ],
        "the sentences' lengths have no axis of their own: query number n is limited "
        "by length number n, or the sizes don't fit. Lengths (B, N) are asked for: a "
        "row for each sentence, a column for each query.": [
            _by_lens(torch.minimum),
            _by_lens(lambda p, n: torch.minimum(p[None], n)),
            _by_lens(lambda p, n: torch.minimum(p[:, None], n)),
            _by_lens(lambda p, n: torch.minimum(p, n).expand(len(n), -1)),
            _by_lens(lambda p, n: torch.minimum(p[: len(n)], n)),
        ],
        "the queries that stand at padding get weights of 0. Here they see the words "
        "of their sentence, as the last word does.": [
            lambda X, lens: (
                causal_by_loops(X, lens) * real_positions(lens, X.shape[1])[..., None]
            )
        ],
        "the mask comes after the softmax, so the rows sum to less than 1.": [
            lambda X, lens: X.softmax(-1) * _seen(X, lens),
            lambda X, lens: _seeing(_up_to)(X, lens) * _real(X, lens),
            lambda X, lens: _seeing(_to_the_end)(X, lens) * _seen(X, lens),
        ],
        "hidden scores are set to 0, and exp(0) is 1: they take part in the sum.": [
            lambda X, lens: X.masked_fill(~_seen(X, lens), 0.0).softmax(-1),
            lambda X, lens: (X * _seen(X, lens)).softmax(-1),
            lambda X, lens: _softmax(X.tril(), _real(X, lens).expand(X.shape)),
        ],
        "a sentence of length 0: nothing is seen, and weights of 0 are asked for.": [
            lambda X, lens: X.masked_fill(~_seen(X, lens), -torch.inf).softmax(-1),
            lambda X, lens: X.masked_fill(~_seen(X, lens), LARGE).softmax(-1),
        ],
        "the weights sum to 1 over the queries, not over the keys: which axis did you "
        "normalise?": [
            lambda X, lens: X.masked_fill(~_seen(X, lens), LARGE).softmax(1),
            lambda X, lens: X.masked_fill(~_seen(X, lens), -torch.inf).softmax(1),
            lambda X, lens: (
                X.masked_fill(~_seen(X, lens), -torch.inf).softmax(1).nan_to_num()
            ),
        ],
        "the rows and columns of the scores, or of the weights, are exchanged.": [
            lambda X, lens: causal_by_loops(X, lens).transpose(1, 2),
            lambda X, lens: causal_by_loops(X.transpose(1, 2), lens),
        ],
    },
    given=("utils.attention.",),
)
