"""The exercises of notebook 07. B sentences, S source positions."""

import torch

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw


def push_by_loops(scores, place, sigma):
    """Scores (B, 1, S), place (B,), sigma -> scores, lower far from the place."""
    rows = []
    for b in range(len(scores)):
        row = [
            scores[b, 0, j] - (j - place[b]) ** 2 / (2 * sigma**2)
            for j in range(scores.shape[2])
        ]
        rows.append(torch.stack(row).unsqueeze(0))
    return torch.stack(rows)


def _distance(place, num_positions):
    """Of each position from each sentence's place: (B, num_positions)."""
    return torch.arange(num_positions) - place.unsqueeze(1)


def _minus(penalty):
    """The scores minus penalty(distance, sigma)."""

    def wrong(scores, place, sigma):
        distance = _distance(place, scores.shape[2]).unsqueeze(1)
        return scores - penalty(distance, sigma)

    return wrong


def _hard(scores, place, sigma):
    far = _distance(place, scores.shape[2]).abs() > sigma
    return scores.masked_fill(far.unsqueeze(1), -torch.inf)


def _multiplied(scores, place, sigma):
    return scores * push_by_loops(torch.zeros_like(scores), place, sigma).exp()


def _without_batch_axis(scores, place, sigma):
    distance = torch.arange(scores.shape[2]) - place
    return scores - distance**2 / (2 * sigma**2)


def _without_query_axis(scores, place, sigma):
    return scores - _distance(place, scores.shape[2]) ** 2 / (2 * sigma**2)


def _push_case(seed, places, S, sigma):
    return draw(seed, (len(places), 1, S))[0], torch.tensor(places), sigma


push = Exercise(
    "push",
    push_by_loops,
    cases=[
        _push_case(0, [0.5, 3.0], 5, 2.0),
        _push_case(1, [2.0, 4.0], 5, 3.0),
        _push_case(2, [1.0, 0.0, 6.5], 7, 0.8),
        _push_case(3, [2.5], 4, 1.5),
        _push_case(4, [3.0, 0.0, 1.0, 2.0], 4, 2.5),
    ],
    mistakes={
        "the sign is turned round: what is far away wins.": [
            _minus(lambda d, sigma: -(d**2) / (2 * sigma**2))
        ],
        "the 2 in the denominator is missing.": [
            _minus(lambda d, sigma: d**2 / sigma**2)
        ],
        "sigma isn't squared, so it isn't a distance in words.": [
            _minus(lambda d, sigma: d**2 / (2 * sigma))
        ],
        "divided by 2 and then multiplied: brackets around 2 * sigma**2.": [
            _minus(lambda d, sigma: d**2 / 2 * sigma**2)
        ],
        "the distance isn't squared.": [
            _minus(lambda d, sigma: d.abs() / (2 * sigma**2))
        ],
        "the distance isn't squared, so words before the place are pulled up.": [
            _minus(lambda d, sigma: d / (2 * sigma**2))
        ],
        "positions are counted from 1. They begin at 0.": [
            _minus(lambda d, sigma: (d + 1) ** 2 / (2 * sigma**2))
        ],
        "sigma isn't used.": [_minus(lambda d, sigma: d**2)],
        "the 2 is squared, too: 4 sigma² where 2 sigma² belongs.": [
            _minus(lambda d, sigma: (d / (2 * sigma)) ** 2)
        ],
        "this is a hard window. A soft push changes every score a little.": [_hard],
        "the first sentence's place is used for all.": [
            lambda scores, place, sigma: push_by_loops(
                scores, place[:1].expand_as(place), sigma
            )
        ],
        "place number n is compared with position number n, or the sizes don't fit. "
        "Each place has "
        "to meet each position: place.unsqueeze(1) is (B, 1).": [_without_batch_axis],
        "the distances are (B, S), without the axis of the queries, so that each "
        "sentence "
        "gets those of all others: (B, 1, S) is asked for.": [_without_query_axis],
        "the scores are multiplied. A factor pulls negative scores up; subtracting "
        "does not.": [_multiplied],
        "these are weights. Scores are asked for: the softmax comes later.": [
            lambda *arguments: push_by_loops(*arguments).softmax(-1)
        ],
        "the scores themselves are gone: the push is subtracted from them.": [
            lambda scores, place, sigma: push_by_loops(0 * scores, place, sigma)
        ],
    },
    gradients=True,
)


def near_by_loops(place, reach, num_positions):
    """place (B,), reach, num_positions -> True at most reach words away (B, S)."""
    return torch.tensor(
        [
            [-reach <= j - p <= reach for j in range(num_positions)]
            for p in place.tolist()
        ]
    )


def _window(change):
    """change(distance, reach)"""
    return lambda place, reach, S: change(_distance(place, S), reach)


near = Exercise(
    "near",
    near_by_loops,
    cases=[
        (torch.tensor([4.0, 1.0]), 2, 7),
        (torch.tensor([3.0, 6.0]), 2, 7),
        (torch.tensor([0.0, 2.5, 8.0]), 3, 9),
        (torch.tensor([5.0]), 1, 6),
        (torch.tensor([0.0, 3.0, 1.0, 2.0]), 1, 4),
    ],
    mistakes={
        "only the right side is cut. A word before the place, however far, is let in: "
        "which sign has its distance?": [_window(lambda d, reach: d <= reach)],
        "only the left side is cut: words after the place, however far, are let in.": [
            _window(lambda d, reach: d >= -reach)
        ],
        "only the right side is cut, and one word too early.": [
            _window(lambda d, reach: d < reach)
        ],
        "one word too few on each side: a word exactly reach away is inside.": [
            _window(lambda d, reach: d.abs() < reach)
        ],
        "one word too many on each side.": [
            _window(lambda d, reach: d.abs() <= reach + 1)
        ],
        "turned round: True belongs to the near words.": [
            _window(lambda d, reach: d.abs() > reach)
        ],
        "the words before the place are missing.": [
            _window(lambda d, reach: (d >= 0) & (d <= reach))
        ],
        "the words after the place are missing.": [
            _window(lambda d, reach: (d <= 0) & (d >= -reach))
        ],
        "half as wide: reach counts to each side.": [
            _window(lambda d, reach: d.abs() <= reach / 2)
        ],
        "positions are counted from 1. They begin at 0.": [
            _window(lambda d, reach: (d + 1).abs() <= reach)
        ],
        "the first sentence's place is used for all.": [
            lambda place, reach, S: near_by_loops(place[:1].expand_as(place), reach, S)
        ],
        "place number n is compared with position number n, or the sizes don't fit. "
        "Each place has to meet each position: place.unsqueeze(1) is "
        "(B, 1).": [lambda place, reach, S: (torch.arange(S) - place).abs() <= reach],
        "the axes are exchanged: a row for each sentence.": [
            lambda *arguments: near_by_loops(*arguments).T
        ],
    },
)
