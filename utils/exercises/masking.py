"""The exercises of notebook 03. B sentences in a batch, Q queries, K keys."""

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


def _case(seed, lens, Q, K, factor=1.0, padding=None):
    X, lens = draw(seed, (len(lens), Q, K))[0] * factor, torch.tensor(lens)
    if padding is not None:
        X = X.masked_fill(~_real(X, lens), padding)
    return X, lens


def _real(X, valid_lens):
    return real_positions(valid_lens, X.shape[-1]).unsqueeze(1)  # (B, 1, K)


def _filled(number, lens=lambda lens: lens, axis=-1, mask=_real):
    """softmax of the scores with `number` at the padding; lens: of other lengths."""
    return lambda X, valid_lens: X.masked_fill(
        ~mask(X, lens(valid_lens)), number
    ).softmax(axis)


def _by_hand(largest, clean=True, safe=True, axis=-1, mask=_real):
    """exp times mask over its sum, with choices of what a learner may forget.

    largest: what is subtracted. clean: replace what is NaN or infinite at the padding.
    safe: divide an empty row by 1.
    """

    def weights(X, valid_lens):
        real = mask(X, valid_lens)
        exps = (X - largest(X, real)).exp() * real
        if clean:
            exps = exps.masked_fill(~real, 0.0)
        total = exps.sum(axis, keepdim=True)
        return exps / (total.masked_fill(total == 0, 1.0) if safe else total)

    return weights


def _largest_real(X, real):
    found = X.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
    return found.masked_fill(found == -torch.inf, 0.0)


def _largest_of_all(X, real):
    return X.amax(-1, keepdim=True)


def _nothing(X, real):
    return 0.0


def _in_every_way(**wrong):
    """A wrong mask, or a wrong axis, with what else a learner may do or forget."""
    return [
        lambda X, valid_lens: _filled(-torch.inf, **wrong)(X, valid_lens).nan_to_num(),
        *(_filled(-number, **wrong) for number in (torch.inf, *LARGE)),
        *(_by_hand(_largest_real, safe=safe, **wrong) for safe in (True, False)),
        *(_by_hand(_largest_of_all, False, safe, **wrong) for safe in (True, False)),
        *(_by_hand(_nothing, False, safe, **wrong) for safe in (True, False)),
    ]


def _other_lens(change):
    """The right weights, for other lengths."""
    return lambda X, valid_lens: _by_hand(_largest_real)(X, change(valid_lens))


def _of_queries(X, valid_lens):
    return real_positions(valid_lens, X.shape[1]).unsqueeze(2)


def _without_query_axis(X, valid_lens):
    return real_positions(valid_lens, X.shape[-1])


def _inverted(X, valid_lens):
    return ~_real(X, valid_lens)


def _longer(lens):
    return lens + 1


def _shorter(lens):
    return (lens - 1).clamp(min=0)


LARGE = (1e4, 1e6, 1e9, 1e10)
EMPTY = "a row without a real position: "
LEAKS = (
    "what stands at the padding leaks in: 0 times NaN or infinity is NaN, and a "
    "largest score taken over padding makes every real exp 0. Replace the scores of "
    "padding before exp."
)

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
    ],
    mistakes={
        "padding gets weight, as if there were no mask. (masked_fill returns a new "
        "tensor: was it kept?)": [lambda X, lens: X.softmax(-1)],
        "the mask comes after the softmax. Padding gets 0, but it has taken its part "
        "of the sum, so the rows sum to less than 1.": [
            lambda X, lens: X.softmax(-1).masked_fill(~_real(X, lens), 0.0),
            lambda X, lens: X.softmax(-1) * _real(X, lens),
        ],
        "the scores of padding are set to 0. But exp(0) is 1: it takes part "
        "in the sum.": [lambda X, lens: (X * _real(X, lens)).softmax(-1), _filled(0.0)],
        f"{EMPTY}all its scores are the same large negative number, so softmax spreads "
        "the weight evenly over "
        "padding. Weights of 0 are asked for.": [_filled(-large) for large in LARGE],
        f"{EMPTY}the sum of its exp is 0, also where softmax sees nothing but -inf, "
        "and 0/0 is NaN. Weights of "
        "0 are asked for.": [_filled(-torch.inf), _by_hand(_largest_real, safe=False)],
        "one position too many: a length of 3 makes positions 0, 1 and 2 real. On full "
        "rows it doesn't show.": [
            _other_lens(_longer),
            *(_filled(-number, _longer) for number in (torch.inf, 1e6, 1e9)),
        ],
        "one position too few: each sentence loses its last word.": [
            _other_lens(_shorter),
            _filled(-torch.inf, _shorter),
        ],
        "the mask is turned round: the words are hidden and the padding is seen.": [
            *_in_every_way(mask=_inverted)
        ],
        "the lengths are applied to the queries. They count keys: the last axis.": [
            *_in_every_way(mask=_of_queries)
        ],
        "the mask has no axis for the queries: (B, K) is read as (Q, K), so that a "
        "query gets another sentence's mask, or the sizes don't fit. unsqueeze(1) "
        "makes it (B, 1, K).": [*_in_every_way(mask=_without_query_axis)],
        "the weights sum to 1 over the queries, not over the keys: which axis did you "
        "normalise?": [*_in_every_way(axis=1)],
        "the weights sum to 1 over the batch, not over the keys: which axis did you "
        "normalise?": [*_in_every_way(axis=0)],
        "the first sentence's length is used for all.": [
            _other_lens(lambda lens: lens[:1].expand_as(lens))
        ],
        "exp of a large score is infinite. Subtract the row's largest "
        "real score first.": [_by_hand(_nothing), _by_hand(_nothing, clean=False)],
        f"{EMPTY}the sum is 0, and 0/0 is NaN. (Then: exp of a large score is "
        "infinite; "
        "and 0 times NaN is NaN.)": [_by_hand(_nothing, clean=False, safe=False)],
        LEAKS: [
            _by_hand(_largest_real, clean=False),
            _by_hand(_largest_of_all, clean=False),
        ],
        f"{EMPTY}0/0. And {LEAKS}": [
            _by_hand(_largest_real, clean=False, safe=False),
            _by_hand(_largest_of_all, clean=False, safe=False),
        ],
        "the largest score is taken over padding, too. If padding holds 1000, every "
        "real exp becomes "
        "0.": [lambda X, lens: _by_hand(_largest_of_all)(X.nan_to_num(nan=1e4), lens)],
    },
    gradients=True,
)


def length_mask_by_loops(valid_lens, num_positions):
    """Lengths (B,), the number of positions K -> True where real (B, K)."""
    return torch.tensor(
        [[k < length for k in range(num_positions)] for length in valid_lens.tolist()]
    )


def _mask(change):
    """A mask of the positions, each sentence's length (B, 1), and their number."""
    return lambda lens, K: change(torch.arange(K), lens.unsqueeze(1), K)


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
        "one position too few is real.": [
            _mask(lambda k, n, K: k < n - 1),
            _mask(lambda k, n, K: k + 1 < n),
        ],
        "turned round: True belongs to the words, False to the padding.": [
            _mask(lambda k, n, K: k >= n),
            _mask(lambda k, n, K: k > n),
        ],
        "the words are taken to stand at the end. Here padding follows the words.": [
            _mask(lambda k, n, K: k >= K - n)
        ],
        "the axes are exchanged: a row for each "
        "sentence, a column for each position.": [_mask(lambda k, n, K: (k < n).T)],
        "position number n is compared with length number n, or the sizes don't fit. "
        "Each length has to meet each position: lengths with a second axis, [:, None], "
        "are (B, 1).": [
            lambda lens, K: torch.arange(K) < lens,
            lambda lens, K: torch.arange(K) <= lens,
            lambda lens, K: torch.arange(K) >= lens,
        ],
        "the first sentence's length is used for all.": [
            _mask(lambda k, n, K: (k < n[:1]).expand(len(n), K))
        ],
        "the longest sentence's length is used for all.": [
            _mask(lambda k, n, K: (k < n.max()).expand(len(n), K))
        ],
        "everything is real: the lengths are not used.": [
            _mask(lambda k, n, K: (k >= 0).expand(len(n), K))
        ],
        "only each sentence's last word is real.": [_mask(lambda k, n, K: k == n - 1)],
        "position 0 is missing: counting begins at 0.": [
            _mask(lambda k, n, K: (k > 0) & (k < n))
        ],
        "positions are counted from 1. In Python, and here, they begin at 0.": [
            _mask(lambda k, n, K: (k > 0) & (k <= n))
        ],
    },
)
