"""What the lectures are made with: figures, tables and numbers that fill a slide.

A slide is 1280 by 720 pixels. At DPI, a text of ten points is 25 of them high.
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from IPython.display import Markdown

from utils.figures import font_families
from utils.plotting import CURVE_STYLES

DPI = 180
WIDTH = 6.5  # inches, as wide as the slide's text
RESULTS = Path(__file__).resolve().parent.parent / "data" / "results"


def for_the_wall():
    """From now on figures are large enough for the last row of a room."""
    plt.rcParams["figure.dpi"] = DPI


def axes(height=3.0):
    """Axes as wide as a slide; 3 inches fill it, 2.3 leave room for a line of text."""
    fig = plt.figure(figsize=(WIDTH, height), facecolor="white", layout="constrained")
    return fig.add_subplot(facecolor="white")


def bars(sizes, ylabel, height=3.0, fmt="%.2f", ylim=None):
    """A bar with its number for each name of a dict; returns the `Axes`."""
    ax = axes(height)
    drawn = ax.bar(list(sizes), list(sizes.values()), color=CURVE_STYLES[0][0])
    ax.bar_label(drawn, fmt=fmt, padding=2)
    ax.set_ylabel(ylabel)
    ax.set_xticks(range(len(sizes)), list(sizes), fontfamily=font_families())
    ax.margins(y=0.15)
    if ylim is not None:
        ax.set_ylim(ylim)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def table(header, rows):
    """A table; its cells are texts in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return Markdown("\n".join("| " + " | ".join(line) + " |" for line in lines))


def number(x, digits=2):
    """A number as a text, with a minus that can be seen from afar."""
    return f"{x:.{digits}f}".replace("-", "−")


def numbers(vector, digits=2):
    return "[" + ", ".join(number(x, digits) for x in vector.tolist()) + "]"


def stored(name):
    """A file of `data/results`."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
