"""How a notebook shows a figure: at twice its size in pixels, with a text that says it.

The text is for whoever can't see the figure: what the axes are, where each curve goes,
what each row of a heatmap looks at. It is made from what was drawn, so a figure that a
notebook draws by itself has one, too. And the fonts: what can be drawn right, and how.
"""

import importlib.util
import re
import sys
import unicodedata
import warnings
from functools import cache
from numbers import Number
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

COLOUR_BAR = "colour bar"  # the label of an Axes that needs no words
MOST_ROWS = 16  # of a heatmap, or bars, that are said one by one


def alternative_text(fig) -> str:
    """What a figure shows, in sentences: a panel after the other."""
    drawn = [ax for ax in fig.axes if ax.has_data() and ax.get_label() != COLOUR_BAR]
    texts = [_described(ax) for ax in drawn]
    if len(texts) > 1:
        texts = [f"Panel {n} of {len(texts)}. {t}" for n, t in enumerate(texts, 1)]
    above = [f"{fig.get_suptitle()}."] if fig.get_suptitle() else []
    return " ".join([*above, *texts])


def _described(ax):
    if ax.images:
        kind, sentences = "Heatmap", _heatmap(ax)
    elif bars := [c for c in ax.containers if isinstance(c, BarContainer)]:
        kind, sentences = "Bars", _bars(ax, bars)
    else:
        kind, sentences = "Curves", _curves(ax)
    title = " ".join((ax.get_title() or ax.get_title("left")).split())
    title = f": {title}" if title else ""
    return " ".join([f"{kind}{title}.", *sentences])


def _heatmap(ax):
    weights = np.asarray(ax.images[0].get_array())
    if weights.ndim != 2:
        yield f"A picture of {weights.shape[1]} times {weights.shape[0]} pixels."
        return
    rows, columns = map(_labels, (ax.yaxis, ax.xaxis), weights.shape)
    yield (
        f"{len(rows)} rows{_name(ax.get_ylabel())}, "
        f"{len(columns)} columns{_name(ax.get_xlabel())}: {', '.join(columns)}."
    )
    looks = []
    for row, own in zip(rows, weights, strict=True):
        darkest = f"{columns[own.argmax()]} ({own.max():.2f})" if own.any() else "none"
        looks.append(f"{row}: {darkest}")
    yield f"The darkest cell of each row: {_some(looks)}."
    if legend := ax.get_legend():
        names = " and ".join(text.get_text() for text in legend.get_texts())
        yield f"Frames mark: {names}."


def _curves(ax):
    scale = ", on a logarithmic scale" if ax.get_yscale() == "log" else ""
    yield f"{ax.get_ylabel() or 'Values'}{scale}, against {ax.get_xlabel() or 'x'}."
    for line in ax.lines:
        x, y = line.get_xdata(orig=True), np.asarray(line.get_ydata(orig=False), float)
        there = np.flatnonzero(np.isfinite(y))
        if not len(there):
            continue
        name, places = line.get_label(), {}
        at = there[0], there[y[there].argmin()], there[y[there].argmax()], there[-1]
        for word, n in zip(("first", "lowest", "highest", "last"), at, strict=True):
            places.setdefault(n, []).append(word)
        said = [
            f"{' and '.join(words)} {y[n]:.3g} at "
            + (f"{x[n]:.4g}" if isinstance(x[n], Number) else str(x[n]))
            for n, words in places.items()
        ]
        yield f"{'A line' if name.startswith('_') else name}: {', '.join(said)}."


def _bars(ax, containers):
    upright = containers[0].orientation == "vertical"
    axis, along = (ax.xaxis, ax.yaxis) if upright else (ax.yaxis, ax.xaxis)
    for container in filter(len, containers):
        sizes = list(container.datavalues)
        names = _labels(axis, len(sizes))
        largest = max(np.abs(np.nan_to_num(sizes)).max(), 1e-9)
        digits = 2 - int(np.floor(np.log10(largest)))
        rounded = (round(float(size), digits) for size in sizes)
        said = [f"{n} {size:.3g}" for n, size in zip(names, rounded, strict=True)]
        yield f"{along.get_label_text() or 'Sizes'}: {_some(said)}."
        yield f"The largest: {said[int(np.argmax(sizes))]}."


def _labels(axis, count):
    """The words at an axis with so many places, or the places' numbers from 1."""
    # By the formatter: a label has no text before it is drawn, or if it is hidden.
    words = axis.get_major_formatter().format_ticks(axis.get_majorticklocs())
    if len(words) == count and all(words):
        return words
    return [str(n) for n in range(1, count + 1)]


def _some(said):
    more = [f"and {len(said) - MOST_ROWS} more"] if len(said) > MOST_ROWS else []
    return "; ".join([*said[:MOST_ROWS], *more])


def _name(label):
    return f" ({label})" if label else ""


def with_words(fig):
    """A figure as PNG at twice its size, in base64; its size on a page, and its text.

    None for a figure without anything in it.
    """
    from IPython.core.pylabtools import retina_figure

    found = retina_figure(fig, base64=True)
    return found and (found[0], {**found[1], "alt": alternative_text(fig)})


def show_with_words():
    """From now on a notebook shows figures twice as fine, with their text.

    A browser, or a page made of the notebook, gets the text as the picture's `alt`.
    Outside of a notebook nothing changes.
    """
    if "IPython" not in sys.modules or "inline" not in plt.get_backend():
        return
    # Importing backend_inline sets the formats once; later it leaves them alone.
    from IPython import get_ipython
    from matplotlib_inline import backend_inline  # noqa: F401

    formatters = get_ipython().display_formatter.formatters
    formatters["image/png"].for_type(Figure, with_words)


@cache
def font_families():
    """Font families for `fontfamily=`, so that Chinese and accents both render.

    DejaVu Sans, and for Chinese the font that the package mpl-font brings.
    """
    # Importing the package would change matplotlib's settings: only its file is read.
    folder = Path(importlib.util.find_spec("mpl_font").origin).parent
    path = folder / "fonts" / "noto" / "NotoSansCJKsc-Regular.otf"
    font_manager.fontManager.addfont(path)
    return ["DejaVu Sans", font_manager.FontProperties(fname=path).get_name()]


@cache
def _family(character):
    """The first font family that has a character, of ours and all known; or None."""
    known = [font.name for font in font_manager.fontManager.ttflist]
    for name in dict.fromkeys([*font_families(), *known]):
        path = font_manager.findfont(font_manager.FontProperties(family=[name]))
        has_it = font_manager.get_font(path).get_char_index(ord(character))
        # The font of last resort has boxes, one of coloured emoji no outlines.
        if has_it and not re.search("Last ?Resort|Color Emoji", name):
            return name


def _is_drawn(character):
    """Whether matplotlib, which sets sign after sign to the right, draws it so."""
    name = unicodedata.name(character, "")
    mark = unicodedata.category(character).startswith("M")
    # Accents, which any letter may have, are placed well enough.
    combines = mark and not name.startswith(("COMBINING", "VARIATION"))
    to_the_left = unicodedata.bidirectional(character) in ("R", "AL")
    return not (combines or to_the_left) and _family(character) is not None


def drawable(panels):
    """Heatmaps with "fonts" for their words. What can't be drawn right is a number.

    panels: dicts with source, target and title. One warning explains the numbers.
    """
    fonts, numbers = dict.fromkeys(font_families()), {}

    def drawn(word):
        word = unicodedata.normalize("NFC", str(word))
        if all(map(_is_drawn, word)):
            fonts.update(dict.fromkeys(map(_family, word)))
            return word
        return f"[{numbers.setdefault(word, len(numbers) + 1)}]"

    for panel in panels:
        for side in ("source", "target"):
            panel[side] = [drawn(word) for word in panel[side]]
        panel["title"] = drawn(panel["title"] or "")
    if numbers:
        # U+200E keeps apart what runs from right to left, where this is read.
        key = ", ".join(f"[{n}] {word}\u200e" for word, n in numbers.items())
        warnings.warn(
            "In the heatmap, numbers stand for words that matplotlib can't draw right, "
            f"since a script joins signs, runs to the left, or has no font here: {key}",
            stacklevel=3,
        )
    return [{**panel, "fonts": list(fonts)} for panel in panels]
