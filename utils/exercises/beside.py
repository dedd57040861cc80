"""The exercise of notebook 14. E epochs."""

from itertools import accumulate

from utils.exercises.old_engine import Exercise


def score_after_by_loops(seconds, ends, scores):
    """A score after so many seconds, a number, by straight lines between epochs.

    ends: the seconds at which each of E epochs ended, from the start; scores: what was
    scored there. At the start the score is 0. seconds is at most the last end.
    """
    before, low = 0.0, 0.0
    for end, score in zip(ends, scores, strict=True):
        if seconds <= end:
            return low + (score - low) * (seconds - before) / (end - before)
        before, low = end, score


def _around(seconds, ends, scores):
    """The scores at both ends of the epoch that is going on, and the share of it."""
    n = sum(end < seconds for end in ends)
    before, low = (ends[n - 1], scores[n - 1]) if n else (0.0, 0.0)
    return low, scores[n], (seconds - before) / (ends[n] - before)


def _mix(weigh):
    return lambda seconds, ends, scores: weigh(*_around(seconds, ends, scores))


def _share_since_the_start(seconds, ends, scores):
    low, high, _ = _around(seconds, ends, scores)
    return low + (high - low) * seconds / ends[sum(end < seconds for end in ends)]


def _first(start):
    """start(first score): what is said before the end of the first epoch."""
    return lambda seconds, ends, scores: (
        score_after_by_loops(seconds, ends, scores)
        if seconds >= ends[0]
        else start(scores[0])
    )


score_after = Exercise(
    "score_after",
    score_after_by_loops,
    cases=[
        (9.0, [4.0, 8.0, 12.0], [20.0, 60.0, 68.0]),
        (5.0, [4.0, 8.0, 12.0], [20.0, 60.0, 68.0]),
        (3.0, [4.0, 10.0], [30.0, 50.0]),
        (8.0, [4.0, 8.0, 12.0], [20.0, 60.0, 68.0]),
        (7.0, [2.0, 3.0, 9.0, 11.0], [10.0, 40.0, 34.0, 52.0]),
    ],
    mistakes={
        "this is the score of the last epoch that had ended. The model has gone on "
        "since then.": [
            _mix(lambda low, high, share: high if share == 1 else low),
            _mix(lambda low, high, share: low),
        ],
        "this is the score of the epoch that is going on, at its end. It hasn't "
        "ended yet.": [_mix(lambda low, high, share: high)],
        "this is the score of the nearest end of an epoch. Between two ends go along "
        "the straight line.": [
            _mix(lambda low, high, share: high if share >= 0.5 else low),
            _mix(lambda low, high, share: high if share > 0.5 else low),
        ],
        "this is the mean of the two scores around. Weigh by how far the epoch is.": [
            _mix(lambda low, high, share: (low + high) / 2),
            _mix(lambda low, high, share: high if share == 1 else (low + high) / 2),
        ],
        "turned round: near the end of an epoch its own score should count most.": [
            _mix(lambda low, high, share: high + (low - high) * share)
        ],
        "one straight line from 0 to the last score. Each epoch has a line of its "
        "own.": [lambda seconds, ends, scores: scores[-1] * seconds / ends[-1]],
        "before the end of the first epoch, too, there is a line: from 0 at the "
        "start.": [_first(lambda score: score), _first(lambda score: 0.0)],
        "the score at the epoch's beginning is missing: only the gain since then is "
        "counted.": [_mix(lambda low, high, share: (high - low) * share)],
        "`ends` are counted from the start of the training, and not from the end of "
        "the epoch before.": [
            lambda seconds, ends, scores: score_after_by_loops(
                seconds, list(accumulate(ends)), scores
            )
        ],
        "the share is of the whole time since the start. Count from the beginning of "
        "the epoch that is going on.": [_share_since_the_start],
    },
)
