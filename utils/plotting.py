"""Heatmaps and curves: arrays and labels in, matplotlib `Axes` out.

Letters: S is the number of source words, T the number of target words.

Nothing here changes matplotlib's settings or shows a figure. A figure made here is
sized by its words and has a white, opaque background. A notebook that imports this
shows all figures with an alternative text (`utils.figures`).
"""

from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke

from utils.figures import COLOUR_BAR, drawable, font_families, show_with_words
from utils.guards import as_weights

FONT_SIZE = 10  # points
# In inches: how wide the cells of one figure may be together, the side of a cell, the
# room around a picture; a colour bar's width, its width with its labels, its height.
WIDTH, MIN_CELL, MAX_CELL, GAP = 7.5, 0.23, 0.55, 0.1
BAR, BAR_ROOM, MIN_BAR = 0.16, 0.9, 1.2
WEIGHT_MAP = "Blues"  # 0 is almost white, on paper too; one hue, ever darker
GOLD_COLOR, GOLD_LINE = "#D55E00", 2  # points
BAR_TEXT = {"ticks": (0, 0.5, 1), "label": "attention weight"}
LEGEND = {"loc": "upper left", "frameon": False}
# The colours of Okabe and Ito that show on white, each with a line and a marker.
CURVE_STYLES = (
    ("#0072B2", "-", "o"),
    ("#D55E00", "--", "s"),
    ("#009E73", "-.", "^"),
    ("#CC79A7", ":", "D"),
    ("#56B4E9", "-", "v"),
    ("#E69F00", "--", "P"),
    ("#000000", "-.", "X"),
)
show_with_words()


def show_heatmap(weights, source, target, ax=None, **options):
    """Draw attention weights of shape (T, S), a row per target word; return the `Axes`.

    `source` and `target` are lists of words. Without `ax`, a figure is made where all
    labels fit. Options: `title`. `gold`, an iterable of links (source index, target
    index), drawn as outlined squares; those of `possible`, which gold needn't have, are
    dotted. `annotate=True` writes the weights into the cells. What follows the first
    `eos` on either side is left out; `eos=None` draws everything. Words that matplotlib
    can't draw right, as Arabic or Hindi, become numbers; a warning says which is which.

    Raises ValueError if the numbers of words do not match the weights, a weight is not
    in 0 to 1 or a link not in the picture.
    """
    (panel,) = drawable([_checked_panel(weights, source, target, **options)])
    if ax is None:
        return _new_figure([panel], 1)[0]
    inches = ax.get_position().size * ax.figure.get_size_inches()
    # The labels will take some of the room: count on two thirds of it.
    cell = min(inches / panel["weights"].shape[::-1]) * 2 / 3
    image = _draw_panel(ax, panel, cell)
    width = 1 / panel["weights"].shape[1]  # of a cell
    bar = ax.inset_axes((1 + width / 2, 0, width / 2, 1))
    ax.figure.colorbar(image, cax=bar, **BAR_TEXT)
    return ax


def show_heatmaps(panels, ncols=2):
    """Draw several heatmaps in one figure, on one scale with one colour bar.

    Each panel is a dict of arguments of `show_heatmap`: weights, source, target and, if
    wanted, title, gold, annotate, eos, possible. All cells have one size, so sentences
    of different lengths stay legible. Returns a 1-D array of `Axes`, one per panel.

    Raises what `show_heatmap` raises.
    """
    return _new_figure(drawable([_checked_panel(**p) for p in panels]), ncols)


def _checked_panel(
    weights,
    source,
    target,
    title=None,
    gold=None,
    annotate=False,
    eos="<eos>",
    possible=None,
):
    """The arguments of one heatmap, checked and cut after `eos`."""
    weights = as_weights(weights)
    if weights.shape != (len(target), len(source)) or weights.size == 0:
        raise ValueError(
            f"weights have shape {weights.shape}, but there are {len(target)} target "
            f"and {len(source)} source words: give one row per target word and one "
            "column per source word, at least one of each"
        )
    source, target = (
        words[: words.index(eos) + 1] if eos in words else words
        for words in (list(source), list(target))
    )
    S, T, gold = len(source), len(target), set(gold or ())
    links = {"gold": gold, "possible": set(possible or ()) - gold}
    for name, found in links.items():
        for j, i in found:
            if not (0 <= j < S and 0 <= i < T):
                raise ValueError(
                    f"{name} link ({j}, {i}) is outside the {S} source and {T} target "
                    "words: a link is (source index, target index)"
                )
    return {
        "weights": weights[:T, :S],
        "source": source,
        "target": target,
        "title": title,
        "annotate": annotate,
        **links,
    }


def _draw_panel(ax, panel, cell):
    """One heatmap, without its colour bar. `cell` is the side of a cell in inches."""
    weights, fonts = panel["weights"], panel["fonts"]
    text = {"fontfamily": fonts, "fontsize": FONT_SIZE}
    image = ax.imshow(weights, cmap=WEIGHT_MAP, vmin=0, vmax=1, aspect="equal")
    ax.set_facecolor("white")
    ax.xaxis.tick_top()
    ax.xaxis.set_label_position("top")
    words = dict(text, parse_math=False)  # a word may hold a dollar sign
    ax.set_xticks(range(len(panel["source"])), labels=panel["source"], **words)
    ax.set_yticks(range(len(panel["target"])), labels=panel["target"], **words)
    ax.tick_params(length=0)
    widest = max(t.get_window_extent().width for t in ax.get_xticklabels())
    if widest / ax.figure.dpi > 0.9 * cell:
        for label in ax.get_xticklabels():
            label.set(rotation=45, ha="left", rotation_mode="anchor")
    ax.set_xlabel("source", **text)
    ax.set_ylabel("target", **text)
    ax.set_title(panel["title"], fontfamily=fonts, pad=8)
    if panel["annotate"]:
        for (i, j), weight in np.ndenumerate(weights):
            color = "white" if weight > 0.5 else "black"
            place = {"ha": "center", "va": "center", "color": color}
            ax.text(j, i, f"{weight:.2f}", fontsize=FONT_SIZE, **place)
    side = 1 - 1.5 * GOLD_LINE / (72 * cell)  # the rim just covers the border
    # The white rim sets the outline off from cells as bright as itself.
    rim = [withStroke(linewidth=2 * GOLD_LINE, foreground="white")]
    outline = {"edgecolor": GOLD_COLOR, "linewidth": GOLD_LINE, "path_effects": rim}
    kinds = {"gold": ("gold alignment", "-"), "possible": ("possible link", ":")}
    shown = {}
    for kind, (name, style) in kinds.items():
        for j, i in sorted(panel[kind]):
            corner = j - side / 2, i - side / 2
            square = Rectangle(corner, side, side, fill=False, ls=style, **outline)
            shown[name] = ax.add_patch(square)
    if shown:
        place = {"bbox_to_anchor": (0, 0), "handlelength": 1, "handleheight": 1}
        ax.legend(shown.values(), shown, ncols=2, **place, **LEGEND)
    return image


def _new_figure(panels, ncols):
    """A figure of heatmaps whose cells have one size. Returns an array of `Axes`."""
    rows, columns = np.divmod(np.arange(len(panels)), ncols)
    words = np.array([panel["weights"].shape[::-1] for panel in panels])  # (S, T) each
    widest = np.array([words[columns == c, 0].max() for c in sorted({*columns})])
    highest = np.array([words[rows == r, 1].max() for r in sorted({*rows})])
    cell = np.clip(WIDTH / max(widest.sum(), highest.max()), MIN_CELL, MAX_CELL)
    if any(panel["annotate"] for panel in panels):
        cell = MAX_CELL
    fig = plt.figure(facecolor="white")
    # Draw each picture in its size: the room its labels take tells where it can stand.
    axes, margins = np.empty(len(panels), dtype=object), []
    for n, panel in enumerate(panels):
        axes[n] = fig.add_axes((0, 0, *words[n] * cell / fig.get_size_inches()))
        image = _draw_panel(axes[n], panel, cell)
        inner, outer = axes[n].get_window_extent(), axes[n].get_tightbbox()
        margins.append(abs(outer.extents - inner.extents) / fig.dpi + GAP)
    left, below, right, above = np.max(margins, axis=0)
    x = np.cumsum([left, *widest * cell + left + right])
    y = np.cumsum([above, *highest * cell + above + below])  # downwards
    bar = fig.add_axes((0, 0, 1, 1), label=COLOUR_BAR)
    fig.colorbar(image, cax=bar, **BAR_TEXT)
    bar_height = max(y[-1] - y[0] - above - below, MIN_BAR)
    boxes = np.column_stack((x[columns], y[rows], words * cell))
    boxes = [*boxes, (x[-1] - left, above, BAR, bar_height)]
    width = x[-1] - left + BAR_ROOM
    height = max(y[-1] - above, above + bar_height + GAP)
    fig.set_size_inches(width, height)
    for ax, (start, top, wide, high) in zip([*axes, bar], boxes, strict=True):
        box = np.array([start, height - top - high, wide, high])
        ax.set_position(box / [width, height, width, height])
    plt.sca(axes[-1])  # the colour bar is not what a caller goes on with
    return axes


def plot_curves(x, curves, xlabel, ylabel, ax=None, ylim=None, title=None):
    """Draw one line per curve; return the `Axes`.

    `x` holds n numbers or n labels. `curves` maps each curve's label to an array of
    shape (n,), or (seeds, n): drawn as the mean with a band from lowest to highest.
    A nan leaves a gap. Up to seven lines differ in colour, dashes and marker.
    """
    fonts = font_families()
    if ax is None:
        fig = plt.figure(figsize=(7, 3.8), facecolor="white", layout="constrained")
        ax = fig.add_subplot(facecolor="white")
    every = max(1, len(x) // 12)  # with a marker
    styles = zip(curves.items(), cycle(CURVE_STYLES), strict=False)
    for (label, values), (color, line, marker) in styles:
        runs = np.atleast_2d(np.asarray(values, dtype=float))
        mean = runs.mean(axis=0)
        ax.plot(x, mean, line, color=color, marker=marker, markevery=every, label=label)
        if len(runs) > 1:
            low, high = runs.min(axis=0), runs.max(axis=0)
            ax.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
    ax.set_xlabel(xlabel, fontfamily=fonts)
    ax.set_ylabel(ylabel, fontfamily=fonts)
    ax.set_title(title or "", fontfamily=fonts)
    if ylim is not None:
        ax.set_ylim(ylim)
    ax.grid(color="#dddddd", linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    # Beside the plot: it can't cover a line there.
    prop = {"family": fonts}
    ax.legend(bbox_to_anchor=(1.01, 1), handlelength=3.5, prop=prop, **LEGEND)
    return ax
