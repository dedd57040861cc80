"""The exercises of notebook 04. B sentences in a batch, Q queries, K keys."""

import torch

from utils.attention import length_mask as real_positions
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw

# What a learner may call: it is built, or shown, before.
MASK = ("utils.attention.length_mask", "utils.attention.check_lengths")


def _case(seed, lens, Q, K, factor=1.0, shift=0.0, padding=None, number=torch.float):
    X = (draw(seed, (len(lens), Q, K))[0] * factor + shift).to(number)
    lens = torch.tensor(lens)
    if padding is not None:
        X = X.masked_fill(~real_positions(lens, K).unsqueeze(1), padding)
    return X, lens


def _broken(*lens):
    """A case with NaN among the real scores of its first row."""
    X, lens = _case(9, lens, 2, 4)
    X[0, 0, 1] = torch.nan
    return X, lens


masked_softmax = Exercise(
    "masked_softmax",
    """
def my_masked_softmax(X, valid_lens):  # (B, Q, K), (B,) -> (B, Q, K)
    real = (torch.arange(X.shape[-1]) < valid_lens[:, None]).unsqueeze(1)  # (B, 1, K)
    hidden = X.masked_fill(~real, -torch.inf)
    top = hidden.amax(dim=-1, keepdim=True)
    top = top.masked_fill(~real.any(dim=-1, keepdim=True), 0.0)  # empty rows
    exps = (hidden - top).exp()
    total = exps.sum(dim=-1, keepdim=True)
    return exps / total.masked_fill(total == 0, 1.0)
""",
    {
        "These sentences have no padding. Softmax divides the exp of each score by the "
        "sum of its row: one sum for each query, over its keys.": [
            _case(20, [5, 5, 5], 2, 5),
            _case(21, [4, 4], 3, 4),
            _case(22, [3, 3, 3], 3, 3, number=torch.float64),
        ],
        "A sentence of length n has its words at the positions 0 to n - 1. Padding "
        "gets weight 0, and takes no part in the sum.": [
            _case(0, [4, 2, 1], 2, 5),
            _case(1, [3, 5, 2], 2, 5),
            _case(3, [3], 1, 6),
            _case(4, [1, 2, 3, 4], 4, 4),
        ],
        "Here all scores are large, or far below 0. Subtract each row's largest real "
        "score before exp: that changes no weight.": [
            _case(5, [3, 2], 2, 4, factor=200.0),
            _case(8, [4, 3], 3, 5, shift=-300.0),
        ],
        "One sentence has length 0, and its weights are to be 0. (Of scores that are "
        "all -inf softmax makes NaN, of equal ones equal weights.) Where the sum of a "
        "row is 0, make it 1 before you divide.": [_case(2, [2, 0], 3, 4)],
        "1000, infinity or NaN stands at the padding, and leaks in. Replace the scores "
        "of padding before you compute anything with them: 0 times NaN is NaN.": [
            _case(6, [3, 1], 2, 4, padding=1000.0),
            _case(7, [2, 4], 3, 5, padding=torch.nan),
            _case(10, [1, 3], 2, 5, padding=torch.inf),
        ],
        "Here the check puts NaN at a real position, as if an earlier part of a "
        "program had failed. Don't hide it: the whole row must be NaN, padding "
        "included. Which rows are empty is said by the lengths, and not by NaN.": [
            _broken(4, 1),
            _broken(3, 1),
        ],
    },
    r"""
Padding gets weight: no mask is used. (masked_fill returns a new tensor: is it kept?)
    X.masked_fill(~real, -torch.inf) => X
The mask comes after the softmax. Padding gets 0, but has taken its part of the sum.
    X.masked_fill(~real, -torch.inf) => X ;; return exps => return real * exps
The scores of padding are set to 0. But exp(0) is 1, so padding takes part in the sum.
    -torch.inf => 0.0
    -torch.inf => 0.0 ;; return exps => return real * exps
There is one position too many: a length of 3 makes the indices 0, 1 and 2 real.
    < valid => <= valid
There is one position too few: each sentence loses its last word.
    < valid => < -1 + valid
Every weight is NaN, or 0. Is the mask turned round, or is -inf multiplied by the mask?
    < valid => >= valid
    X.masked_fill(~real, -torch.inf) => X + ~real * -torch.inf
Lengths (B,) meet positions (K,). Which shape lets each length meet each position?
    valid_lens[:, None]).unsqueeze(1) => valid_lens)
The mask (B, K) has no axis for the queries, and is read as (Q, K). Make it (B, 1, K).
    .unsqueeze(1)  # => #
The mask is (B, K, 1). For which axis of (B, Q, K) should it be the same?
    .unsqueeze(1)  # => .unsqueeze(2)  #
The mask has a column for each query. Lengths count keys: which axis of X is that?
    X.shape[-1] => X.shape[1]
The weights sum to 1 over the queries, not over the keys. Which axis did you normalise?
    exps.sum(dim=-1 => exps.sum(dim=1
    (dim=-1, keepdim=True)\n => (dim=1, keepdim=True)\n
One sum is taken over several rows. Over which axis must it be for one row alone?
    exps.sum(dim=-1 => X.exp().sum(dim=(0, 1, 2) ;; (hidden - top) => X
    exps.sum(dim=-1 => exps.sum(dim=(1, 2)
The sum, or the largest score, has lost its axis: it is (B, Q). What does keepdim do?
    exps.sum(dim=-1, keepdim=True) => exps.sum(dim=-1)
A mask after the division takes the NaN away again. Mend the sum of an empty row alone.
    exps / total.masked_fill(total == 0, 1.0) => (exps / total).masked_fill(~real, 0.0)
""",
    gradients=True,
    typed=True,
    given=MASK,
    without=("softmax", "Softmax", "log_softmax"),
)

length_mask = Exercise(
    "length_mask",
    """
def my_mask(valid_lens, num_positions):  # (B,), K -> True where real (B, K)
    return torch.arange(num_positions) < valid_lens[:, None]
""",
    {
        "A row is a sentence, a column a position. True stands at the positions 0 to "
        "n - 1 of a sentence of length n.": [
            (torch.tensor([4, 1, 3]), 5),
            (torch.tensor([2, 5, 1]), 5),
            (torch.tensor([6]), 6),
            (torch.tensor([1, 2, 3, 2]), 4),
        ],
        "A sentence of length 0 has no real position. (The index -1 is the last.)": [
            (torch.tensor([0, 3]), 4)
        ],
    },
    r"""
There is one position too many: a sentence of 3 words gets 4.
    < => <=
There is one position too few: each sentence loses its last word.
    < => + 1 <
The mask is turned round: True belongs to the words, False to the padding.
    < => >=
    < => >
Lengths (B,) meet positions (K,). Which shape lets each length meet each position?
    [:, None] =>
    [:, None] => [None]
Python's `range` can't be compared with a tensor. What makes a tensor of its numbers?
    torch.arange => range
    => return valid_lens[:, None] > range(num_positions)
    torch.arange(num_positions) => list(range(num_positions))
""",
)
