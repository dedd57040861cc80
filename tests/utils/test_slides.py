"""What lectures are made with."""

import matplotlib.pyplot as plt
import pytest

from utils import slides

pytestmark = pytest.mark.usefixtures("offscreen")


def test_bars_fill_a_slide_with_their_names_and_numbers():
    slides.for_the_wall()
    ax = slides.bars({"得": 0.2, "b": 1.0}, "rate", ylim=(0, 2))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["得", "b"]
    assert [text.get_text() for text in ax.texts] == ["0.20", "1.00"]
    assert ax.get_ylim() == (0, 2) and ax.get_ylabel() == "rate"
    width, height = ax.figure.get_size_inches() * plt.rcParams["figure.dpi"]
    assert 1100 < width < 1180 and 500 < height < 570  # of 1280 x 720
