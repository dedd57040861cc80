"""Figures in words, for who can't see them."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from utils.figures import alternative_text
from utils.plotting import plot_curves, show_heatmap, show_heatmaps

pytestmark = pytest.mark.usefixtures("offscreen")


def test_a_heatmap_says_where_each_row_looks():
    weights = [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6], [0, 0, 0]]
    ax = show_heatmap(weights, ["I", "love", "$x"], ["我", "爱", "了"], title="toy")
    assert alternative_text(ax.figure) == (
        "Heatmap: toy. 3 rows (target), 3 columns (source): I, love, $x. "
        "The darkest cell of each row: 我: I (0.70); 爱: $x (0.60); 了: none."
    )


def test_gold_and_panels_are_named_and_a_long_heatmap_is_cut():
    panel = {"weights": np.eye(2), "source": ["a", "b"], "target": ["c", "d"]}
    axes = show_heatmaps([panel | {"gold": {(0, 0)}, "possible": {(1, 1)}}, panel])
    text = alternative_text(axes[0].figure)
    assert text.startswith("Panel 1 of 2. Heatmap. 2 rows")
    assert "Frames mark: gold alignment and possible link." in text
    assert text.count("Panel") == 2  # the colour bar is none
    words = [f"w{n}" for n in range(30)]
    text = alternative_text(show_heatmap(np.eye(30), words, words).figure)
    assert text.endswith("w15: w15 (1.00); and 14 more.")
    picture = plt.figure().add_subplot().imshow(np.zeros((2, 3, 3)))
    assert "A picture of 3 times 2 pixels" in alternative_text(picture.figure)


def test_curves_say_their_ends_and_extremes():
    curves = {"one": [3, 1, np.nan, 2.5], "two": [[1, 2, 3, 4], [3, 4, 5, 6]]}
    ax = plot_curves(["3–6", "7–9", "10–12", "13–15"], curves, "words", "BLEU")
    assert alternative_text(ax.figure) == (
        "Curves. BLEU, against words. "
        "one: first and highest 3 at 3–6, lowest 1 at 7–9, last 2.5 at 13–15. "
        "two: first and lowest 2 at 3–6, highest and last 5 at 13–15."
    )
    ax.set_yscale("log")
    assert "BLEU, on a logarithmic scale, against words" in alternative_text(ax.figure)


@pytest.mark.parametrize("kind, along", [("bar", "y"), ("barh", "x")])
def test_bars_say_their_sizes_and_titles(kind, along):
    ax = plt.figure().add_subplot()
    ax.figure.suptitle("step 1")
    ax.set_title("two\nlines", loc="left")
    getattr(ax, kind)(["le", "la"], [0.000123, 12.345])
    ax.set(**{f"{along}label": "size"})
    ax.tick_params(labelbottom=False, labelleft=False)  # hidden words are said, too
    assert alternative_text(ax.figure) == (
        "step 1. Bars: two lines. size: le 0; la 12.3. The largest: la 12.3."
    )
