"""What a number or a name must be, said once for all of utils.

Each function raises ValueError, "<name> must be ..., got ...", or returns None.
Booleans and strings are no numbers here: PyTorch and Python would take some of them in
silence.
"""

import math


def require_whole(name, value, lowest=1, otherwise=""):
    """A whole number (int) of at least `lowest`.

    otherwise: what may stand in its place, as " or None": words for the error alone.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < lowest:
        raise ValueError(
            f"{name} must be a whole number of at least {lowest}{otherwise}, "
            f"got {value!r}"
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


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)
