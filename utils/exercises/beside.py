"""The exercise of notebook 13. E epochs."""

from utils.exercises.engine import Exercise

ENDS, SCORES = [4.0, 8.0, 12.0], [20.0, 60.0, 68.0]
score_after = Exercise(
    "score_after",
    """
def between_epochs(seconds, ends, scores):  # a number, two lists -> a number
    epochs = zip([0, *ends], [0, *scores], ends, scores, strict=False)
    for begin, low, end, high in epochs:
        if seconds <= end:
            return low + (high - low) * (seconds - begin) / (end - begin)
""",
    {
        "Between two ends of epochs go along the straight line, from score to score.": [
            *((seconds, ENDS, SCORES) for seconds in (9.0, 5.0, 8.0, 12.0)),
            (7.0, [2.0, 3.0, 9.0, 11.0], [10.0, 40.0, 34.0, 52.0]),
        ],
        "In the first epoch there is a line, too: it starts from 0.": [
            (3.0, [4.0, 10.0], [30.0, 50.0])
        ],
    },
    r"""
This is a score at one end of an epoch, or a mean of two. How much of the epoch is over?
    return low + (high - low) * (seconds - begin) / (end - begin) => return low
    return low + (high - low) * (seconds - begin) / (end - begin) => return high
    (seconds - begin) / (end - begin) => 0.5
At the beginning of an epoch its first score counts most, and later its last one.
    return low + (high - low) => return high + (low - high)
The share is of the whole time. Count from the beginning of the epoch that is going on.
    (seconds - begin) / (end - begin) => seconds / end
This is one straight line from 0 to the last score. Each epoch has a line of its own.
    => return scores[-1] * seconds / ends[-1]
The score at the epoch's beginning is missing: this is the gain alone.
    return low + => return
""",
)
