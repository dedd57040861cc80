"""The exact edges of what is refused, and what must stay allowed."""

import numpy as np
import pytest

from utils.guards import (
    require_one_of,
    require_positive,
    require_share,
    require_whole,
)

NAN, INF = float("nan"), float("inf")


CASES = [  # a guard, what it is given beside the value, taken, refused, the words
    (require_whole, (), [1, 10**9], [0, -1, 1.0, True, "1", None], "of at least 1,"),
    (require_whole, (0,), [0], [-1, False], "n must be a whole number of at least 0"),
    (
        require_share,
        (),
        [0, 0.0, 0.999, np.float64(0.5)],
        [1, -1e-9, NAN, False, "0.1", None],
        "n must be at least 0 and below 1, got",
    ),
    (
        require_positive,
        (),
        [1e-9, 1, 1e9],
        [0, -1, INF, NAN, True, "1"],
        "n must be above 0 and finite, got",
    ),
    (require_one_of, ("ab",), ["a", "b"], ["c", None, ["a"], 0], "n must be one of"),
    (require_one_of, ({"a": 1, "b": 2},), ["b"], ["c"], r"\['a', 'b'\], got 'c'"),
]


@pytest.mark.parametrize("guard, rest, taken, refused, words", CASES)
def test_what_is_taken_and_what_is_refused(guard, rest, taken, refused, words):
    for value in taken:
        guard("n", value, *rest)
    for value in refused:
        with pytest.raises(ValueError, match=words):
            guard("n", value, *rest)
