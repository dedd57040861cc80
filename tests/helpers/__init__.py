"""What tests of several modules share: random inputs, real data, refusals."""

import os
from pathlib import Path

import pytest

from utils.files import DATA_VARIABLE


def needs(name):
    """Skips a test, by name, where the user's folder of real text hasn't this."""
    folder = os.environ.get(DATA_VARIABLE)
    present = bool(folder) and (Path(folder) / name).exists()
    reason = f"no {name} in the folder that {DATA_VARIABLE} names"
    return pytest.mark.skipif(not present, reason=reason)


def refusals(*rows):
    """A test for each row (call, message): the call raises ValueError, in these words.

    A row for another error is (call, error, message).
    """

    @pytest.mark.parametrize("row", rows, ids=lambda row: row[-1])
    def test(row):
        call, *error, message = row
        with pytest.raises(*error or [ValueError], match=message):
            call()

    return test
