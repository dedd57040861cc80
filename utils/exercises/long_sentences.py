"""The exercises of notebook 08. B sentences, S source positions."""

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw


def _case(seed, places, S, sigma):
    return draw(seed, (len(places), 1, S))[0], torch.tensor(places), sigma


push = Exercise(
    "push",
    """
def pushed(scores, place, sigma):  # (B, 1, S), (B,), a number -> (B, 1, S)
    distance = torch.arange(scores.shape[-1]) - place[:, None]  # (B, S)
    return scores - (distance**2 / (2 * sigma**2)).unsqueeze(1)
""",
    {
        "From each score, (j - place)² / (2 sigma²) is subtracted. j is the position, "
        "counted from 0.": [_case(3, [2.5], 4, 1.5), _case(5, [1.0], 6, 2.0)],
        "Each sentence has its own place. Scores are (B, 1, S): which shape must the "
        "distances have?": [
            _case(0, [0.5, 3.0], 5, 2.0),
            _case(1, [2.0, 4.0], 5, 3.0),
            _case(2, [1.0, 0.0, 6.5], 7, 0.8),
            _case(4, [3.0, 0.0, 1.0, 2.0], 4, 2.5),
        ],
    },
    r"""
The sign is turned round: what is far away wins.
    scores - => scores +
`/ 2 * sigma**2` divides, and then multiplies. Where do brackets belong?
    (2 * sigma**2) => 2 * sigma**2
sigma is squared in this formula, and the 2 isn't.
    sigma**2 => sigma
    2 * sigma**2 => (2 * sigma) ** 2
The distance isn't squared.
    distance**2 => distance
This is a hard window. A soft push changes every score a little.
    distance**2 / (2 * sigma**2) => torch.where(distance.abs() > sigma, torch.inf, 0)
The scores are multiplied by the bell curve. A factor pulls negative scores up.
    scores - (distance**2 => scores * (-(distance**2) ;; .unsqueeze => .exp().unsqueeze
""",
    gradients=True,
)


def _looks(*places, S):
    """Weights (T, S) whose rows look at these places, the others not being 0."""
    weights = torch.full((len(places), S), 0.7 / S)
    weights[range(len(places)), list(places)] += 0.3
    return (weights,)


longest_gap = Exercise(
    "longest_gap",
    """
def widest_gap(weights):  # (T, S) -> a whole number
    looked = set(weights.argmax(dim=1).tolist())
    places = sorted(looked | {-1, weights.shape[1]})
    return max(b - a - 1 for a, b in zip(places, places[1:], strict=False))
""",
    {
        "Count the source words between two neighbouring looks, and return the largest "
        "count.": [_looks(0, 4, 5, S=6), _looks(0, 1, 4, 7, S=8)],
        "A run may also stand before the first look, or after the last.": [
            _looks(3, 4, 5, S=6),
            _looks(0, 1, 1, S=7),
            _looks(2, S=7),
        ],
        "The order of the looks doesn't matter, nor that one comes twice: what counts "
        "is which source words were looked at by any target word.": [
            _looks(0, 5, 1, 4, 2, S=6),
            _looks(5, 2, 0, 5, 5, S=8),
            _looks(2, 1, 0, S=3),
        ],
    },
    r"""
Between the places a and b lie b - a - 1 words: a and b themselves were looked at.
    b - a - 1 => b - a
All words that were left out are counted here. Which run of them is the longest?
    max( => sum(
The words before the first look aren't counted.
    {-1, weights => {weights
The words after the last look aren't counted.
    {-1, weights.shape[1]} => {-1}
Neither the words before the first look nor those after the last are counted.
    looked | {-1, weights.shape[1]} => looked
The axes are mixed up: for each source word this finds the target word that looks at it
most. Rows are target words.
    dim=1 => dim=0
    dim=1 => dim=0 ;; weights.shape[1] => weights.shape[0]
This measures the steps from each look to the next. A look that goes back may see later
what was left out: sort the places first.
    set(weights.argmax(dim=1).tolist()) => weights.argmax(dim=1)
        .tolist() ;; sorted(looked | {-1, weights.shape[1]}) => [-1, *looked, weights
        .shape[1]]
""",
)

near = Exercise(
    "near",
    """
def mended_window(place, reach, num_positions):  # (B,), a number, S -> (B, S)
    return (torch.arange(num_positions) - place[:, None]).abs() <= reach
""",
    {
        "True belongs to the place and to `reach` words on each side. Positions begin "
        "at 0.": [(torch.tensor([3.0]), 3, 8), (torch.tensor([5.0]), 1, 6)],
        "A row is a sentence, and each sentence has its own place.": [
            (torch.tensor([4.0, 1.0]), 2, 7),
            (torch.tensor([3.0, 6.0]), 2, 7),
            (torch.tensor([0.0, 2.5, 8.0]), 3, 9),
            (torch.tensor([0.0, 3.0, 1.0, 2.0]), 1, 4),
        ],
    },
    r"""
A word far to the left is let in: its difference is negative, and so below `reach`.
    .abs() =>
A word far to the right is let in. Both sides must be cut.
    .abs() <= => >= -
A word that is exactly `reach` away belongs to the window, too.
    <= => <
The window is turned round: True belongs to the near words.
    <= => >
""",
)
