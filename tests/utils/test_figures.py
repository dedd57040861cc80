"""Figures as a notebook shows them: sharp, and with words for who can't see them."""

import base64
import io

import matplotlib.pyplot as plt
import numpy as np
import pytest
from helpers.repo import ROOT
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image

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


@pytest.mark.slow  # it starts a kernel
def test_a_notebook_shows_figures_sharp_and_with_words(monkeypatch):
    nbclient = pytest.importorskip("nbclient")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    draws = "import utils.plotting\nplt = utils.plotting.plt\nplt.plot([1, 2], [3, 1]);"
    notebook = new_notebook(cells=[new_code_cell(draws)])
    nbclient.NotebookClient(notebook, timeout=3600).execute()
    (output,) = notebook.cells[0].outputs
    shown = output.metadata["image/png"]
    picture = Image.open(io.BytesIO(base64.b64decode(output.data["image/png"])))
    size = 2 * shown["width"], 2 * shown["height"]
    assert picture.size == pytest.approx(size, abs=1)
    assert "A line: first" in shown["alt"]
