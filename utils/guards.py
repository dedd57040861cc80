"""What a number or a name must be, said once for all of utils.

Each function raises ValueError, "<name> must be ..., got ...", or returns None.
Booleans and strings are no numbers here: PyTorch and Python would take some of them in
silence. `as_weights` returns an array.
"""

import math

import numpy as np


def require_whole(name, value, lowest=1):
    """A whole number (int) of at least `lowest`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise ValueError(
            f"{name} must be a whole number of at least {lowest}, got {value!r}"
        )


def require_share(name, value):
    """A number of at least 0 and below 1."""
    if not (is_number(value) and 0 <= value < 1):
        raise ValueError(f"{name} must be at least 0 and below 1, got {value!r}")


def require_positive(name, value):
    """A finite number above 0."""
    if not (is_number(value) and 0 < value < math.inf):
        raise ValueError(f"{name} must be above 0 and finite, got {value!r}")


def require_one_of(name, value, known):
    """One of these names; `known` is any collection of them."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} must be one of {list(known)}, got {value!r}")


def as_weights(weights) -> np.ndarray:
    """One sentence's attention weights, a tensor or lists: an array (T, S), 0 to 1."""
    if hasattr(weights, "detach"):  # a tensor, perhaps in bfloat16 or with a gradient
        weights = weights.detach().cpu().float()
    weights = np.asarray(weights, dtype=float)
    if weights.ndim != 2:
        raise ValueError(
            f"weights have shape {weights.shape}: give one sentence's weights, "
            "(target words, source words)"
        )
    # Averaged weights can round to a little above 1.
    if not ((weights >= 0) & (weights <= 1 + 1e-6)).all():
        raise ValueError("weights must lie between 0 and 1, without NaN")
    return weights


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
