"""The figure of one step of a translation: from the query to the word written.

Letters in titles: i the step, counted from 1 as in the paper; j a source position.
Places are given in pixels of a page: 100 of them make an inch of the figure.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from utils.figures import COLOUR_BAR, font_families
from utils.plotting import WEIGHT_MAP

SIZE = (925, 380)  # fits beside JupyterLab's files on a screen of 1366 × 768
CHARACTER = 7.4  # the width of one
PANELS = {  # what a figure shows of a step, from the top
    "query": "query $s_{{{before}}}$: {H} numbers, from −1 (orange) to 1 (purple)",
    "scores": "scores $e_{{{i}j}}$",
    "weights": r"weights $\alpha_{{{i}j}}$: the softmax of the scores",
    "likeness": "how near the context $c_{{{i}}}$ is to each $h_j$ (cosine)",
}
TITLE = {"loc": "left", "fontsize": 10, "pad": 4}
BAR, MARKED, BAND = "#0072B2", "#D55E00", "#E6E6E6"  # Okabe and Ito's blue, vermilion


def draw_step(exploration, number, fig=None):
    """Draw one step of an exploration, counted from 1; return the figure.

    Without `fig`, pyplot makes one. Raises ValueError if there is no such step.
    """
    steps, names = exploration.steps, list(map(shortened, exploration.source_tokens))
    if not 1 <= number <= len(steps):
        raise ValueError(f"There is no step {number}: there are 1 to {len(steps)}.")
    step, i = steps[number - 1], number
    fig = fig or plt.figure()
    fig.set(size_inches=np.divide(SIZE, 100), facecolor="white")
    headline = f"step {i} of {len(steps)} writes {label(step)}"
    fig.suptitle(headline, x=0.01, ha="left", **words(11), fontweight="bold")
    turn = turning(names, 350, "right")
    top, free = 84, SIZE[1] - 168 - room(names, turn)  # pixels from above, for bars
    ax = add_axes(fig, 38, 46, 350, 8)
    ax.set_title(PANELS["query"].format(before=i - 1, H=step.query.size), **TITLE)
    ax.set(xticks=[], yticks=[], label=COLOUR_BAR)
    ax.imshow(step.query[None], cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    for name in ("scores", "weights", "likeness"):
        last = name == "weights"
        ax = add_axes(fig, 38, top, 350, free / 3)
        top += free / 3 + 28 + last * room(names, turn)
        ax.set_title(PANELS[name].format(i=i), **TITLE)
        every = [0] if name == "scores" else [0, 1]  # one scale for all steps
        every += [value for s in steps for value in getattr(s, name)]
        values = getattr(step, name)
        draw_bars(ax, values, step.weights.argmax(), min(every), max(every))
        ax.set_xticks(range(len(names)), names, **words(), **turn)
        ax.tick_params(axis="x", length=0, labelbottom=last)
    draw_weights(fig, exploration, i, names)
    draw_choices(add_axes(fig, 815, 60, 95, 24 * len(step.choices)), step)
    return fig


def add_axes(fig, left, top, width, height):
    """Axes whose place is given in pixels of a page, from its upper left corner."""
    box = np.array([left, SIZE[1] - top - height, width, height])
    return fig.add_axes(box / (SIZE * 2))


def words(size=9):
    """How words are written; one may hold a dollar sign."""
    return {"fontfamily": font_families(), "fontsize": size, "parse_math": False}


def shortened(word, length=12):
    return word if len(word) <= length else word[: length - 1] + "…"


def label(step):
    """The word of a step, and whether it was forced."""
    return shortened(step.word, 7) + " (forced)" if step.forced else step.word


def turning(names, width, end):
    """How to turn words at an axis of so many pixels; `end`: which one is near it."""
    lie = CHARACTER * max(map(len, names)) < width / len(names)
    return {} if lie else {"rotation": 60, "ha": end, "rotation_mode": "anchor"}


def room(names, turn):
    """The pixels that these words need in height."""
    return 0.87 * CHARACTER * max(map(len, names)) + 8 if turn else 16


def draw_weights(fig, exploration, i, names):
    """The heatmap of all steps, step i in a frame.

    Where there is no room for all words, those that step i writes and reads are named.
    """
    weights = np.stack([step.weights for step in exploration.steps])
    (rows, columns), width = weights.shape, 205
    turn = turning(names, width, "left")
    top = 26 + room(names, turn)
    height = min(SIZE[1] - 8 - top, 34 * rows)
    ax = add_axes(fig, 500, top, width, height)
    image = ax.imshow(weights, cmap=WEIGHT_MAP, vmin=0, vmax=1, aspect="auto")
    frame = Rectangle((-0.5, i - 1.5), columns, 1, fill=False, clip_on=False)
    frame.set(edgecolor=MARKED, linewidth=2)
    ax.add_patch(frame)
    written = [label(step) for step in exploration.steps]
    name_places(ax.yaxis, written, height / rows, i - 1)
    name_places(ax.xaxis, names, width / columns, weights[i - 1].argmax(), **turn)
    ax.tick_params(length=0, bottom=False, labelbottom=False, labeltop=True)
    fig.text(500 / SIZE[0], 0.95, "weights of all steps, this one framed", fontsize=10)
    bar = add_axes(fig, 815, SIZE[1] - 60, 80, 8)
    bar.set(label=COLOUR_BAR)
    bar.set_title("weight", loc="left", fontsize=10, pad=4)
    fig.colorbar(image, bar, orientation="horizontal", ticks=(0, 0.5, 1))


def name_places(axis, names, pitch, now, **turn):
    """Words at an axis, as small as its pixels a word ask; too small: one word."""
    size = min(9, 0.65 * pitch)
    few = slice(None) if size > 5 else slice(now, now + 1)
    axis.set_ticks(range(len(names))[few], names[few], **words(max(size, 7)), **turn)


def draw_bars(ax, values, marked, low, high):
    """A bar for each source position; the three largest, or one, have their number."""
    space = (high - low) / 3
    ax.bar(range(len(values)), values, color=BAR, width=0.7)
    ax.axvspan(marked - 0.5, marked + 0.5, color=BAND, zorder=0)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(ylim=(low, high + space), xlim=(-0.6, len(values) - 0.4))
    ax.tick_params(axis="y", labelsize=9)
    ax.spines[["top", "right"]].set_visible(False)
    for j in np.argsort(-values)[: 3 if len(values) <= 12 else 1]:
        place = {"x": j, "y": max(values[j], 0) + space / 6, "ha": "center"}
        ax.text(**place, s=f"{values[j]:.2f}", fontsize=9)


def draw_choices(ax, step):
    """The probabilities of a step's words; the one that is written is marked."""
    names = [shortened(word, 10) for word in step.choices]
    written = [word == step.word for word in step.choices]
    colors = np.where(written, MARKED, BAR)
    weights = np.where(written, "bold", "normal")
    ax.barh(range(len(names)), step.choices.values(), color=colors)
    for k, chance in enumerate(step.choices.values()):
        place = {"x": chance + 0.04, "y": k, "va": "center"}
        ax.text(**place, s=f"{chance:.2f}", fontsize=9, fontweight=weights[k])
    ax.set_yticks(range(len(names)), names, **words())
    ax.set(xlim=(0, 1.4), xticks=[])
    ax.invert_yaxis()
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.set_title("probability of\nthe next word", loc="left", fontsize=10)
