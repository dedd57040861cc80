"""The exercises of notebook 07. T target and S source words."""

import torch

from utils.exercises.engine import Exercise


def _case(least, *rows):
    """Weights (T, S) and the least weight, in 32nds: so equal numbers are equal."""
    return torch.tensor(rows) / 32, least / 32


def _sets(*rows):
    """Predicted, sure and possible links: "00 12 | 21" are those of two sentences."""
    return [
        [{(int(j), int(i)) for j, i in s.split()} for s in x.split("|")] for x in rows
    ]


best_links = Exercise(
    "best_links",
    """
def my_links(weights, least):  # (T, S), a number -> {(source, target), ...}
    largest, places = weights.max(dim=1)
    rows = zip(largest.tolist(), places.tolist(), strict=True)
    return {(j, i) for i, (weight, j) in enumerate(rows) if weight >= least}
""",
    {
        "Each row, a target word, has a link to the place of its largest weight. A set "
        "of pairs (source, target) of plain whole numbers from 0 is asked for.": [
            _case(10, [4, 12, 16], [11, 21, 0]),
            _case(9, [2, 20, 10], [16, 6, 10], [1, 11, 20]),
        ],
        "A row has a link if its largest weight is `least` or more, and else none.": [
            _case(8, [16, 8, 8], [4, 8, 20], [8, 24, 0], [4, 12, 16]),
            _case(12, [12, 4, 8, 8], [8, 8, 8, 8], [24, 4, 4, 0], [4, 24, 4, 0]),
            _case(17, [14, 8, 10], [8, 24, 0], [4, 12, 16], [17, 8, 7]),
            _case(16, [8, 15, 9], [16, 8, 8], [8, 8, 16], [20, 8, 4], [8, 12, 12]),
        ],
        "Of equal weights the first counts.": [_case(16, [28, 4], [16, 16], [4, 28])],
    },
    r"""
A link is (source, target). Which of the two does a row of the weights belong to?
    (j, i) => (i, j)
Each column's largest weight was taken. Which axis are the source words?
    dim=1 => dim=0
    dim=1 => dim=0 ;; enumerate(rows) => enumerate([*rows][: len(weights)])
A set is asked for. `{}` is an empty dict: an empty set is set(). Sets have `add`.
    => {}.add(0)
    {(j, i) for => {j: i for
Every weight that is large enough makes a link. Which one of a row is asked for?
    => return {(j, i) for i, j in (weights >= least).nonzero().tolist()}
Only the first row is read. Is there a `return` inside the loop?
    enumerate(rows) => enumerate(list(rows)[:1])
""",
)

aer = Exercise(
    "aer",
    """
def my_aer(predicted, sure, possible):  # lists of sets -> one number, 0 to 1
    right = links = 0
    for a, s, p in zip(predicted, sure, possible, strict=True):
        right += len(a & s) + len(a & (s | p))
        links += len(a) + len(s)
    return 1 - right / links
""",
    {
        "Here is one sentence. |A ∩ S| + |A ∩ P|, divided by |A| + |S|, is taken from "
        "1. P holds the sure links and the possible ones.": [
            _sets("00 12 11", "00 21", "11 10"),
            _sets("00 10 22 31", "00 22 11 33 13", "10 31"),
            _sets("00 11", "00 11", ""),
        ],
        "Here are several sentences. Add each count over all, then divide once.": [
            _sets("00 12 11 | 00", "00 12 | 01", "11 21 |"),
            _sets("00 20 | 01 22", "00 11 22 | 01", "| 22 33 02"),
            _sets("33 | 22 44 10 | 00", "22 | 22 | 00", "33 | 10 02 40 |"),
            _sets("| 00 11 20 | 01", "00 11 | 00 12 | 01 10", "21 | 11 |"),
        ],
    },
    r"""
`+` doesn't join two sets. Which sign does?
    s | p => s + p
The arguments are lists, with one set for each sentence. Go through the three together.
    => predicted & sure
The possible links don't count: this is the rate against the sure links alone.
    (s | p) => s
P holds the sure links, too, but the third list doesn't repeat them.
    s | p => p
Your code counts a missing possible link as an error. Below the line stands |S|, not
|P|.
    len(a) + len(s) => len(a) + len(s | p)
One sentence alone counts: = in place of +=, or a `return` inside the loop?
    += => =
    return 1 =>     return 1
""",
)
