"""Figures are drawn offscreen, then measured."""

import io
import subprocess
import sys
from itertools import combinations
from types import SimpleNamespace

import matplotlib
import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib import font_manager
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from utils.plotting import (
    chinese_font,
    font_families,
    plot_curves,
    show_heatmap,
    show_heatmaps,
)

EN = "the grandmother of the little girl is not reading an old book today .".split()
FR = "la grand-mère de la petite fille ne lit pas de vieux livre aujourd'hui .".split()
ZH = "小 女孩 的 奶奶 今天 没有 看 一 本 旧 的 书 。".split()
LINKS = {(0, 0), (1, 3), (3, 2)}


pytestmark = pytest.mark.usefixtures("offscreen")


def attention(target_len, source_len):
    scores = np.random.default_rng(0).normal(size=(target_len, source_len))
    return np.exp(3 * scores) / np.exp(3 * scores).sum(axis=1, keepdims=True)


def heatmap(source, target, **kwargs):
    return show_heatmap(attention(len(target), len(source)), source, target, **kwargs)


def words(count, language):
    return [language[k % len(language)] for k in range(count)]


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def png(fig, **kwargs):
    file = io.BytesIO()
    fig.savefig(file, format="png", **kwargs)
    file.seek(0)
    return matplotlib.image.imread(file)


def luminance(color):
    rgb = np.array(to_rgb(color))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def assert_lines_apart(texts):
    """Neighbouring labels, turned by one angle, do not touch."""
    angle = np.deg2rad(texts[0].get_rotation())
    if angle == 0:
        boxes = [text.get_window_extent() for text in texts]
        for one, other in zip(boxes, boxes[1:], strict=False):
            assert not one.overlaps(other)
        return
    anchors = [text.get_transform().transform(text.get_position()) for text in texts]
    for text in texts:
        assert np.deg2rad(text.get_rotation()) == angle
        text.set_rotation(0)
    height = max(text.get_window_extent().height for text in texts)
    # How far one line of text is from the next, at right angles to both.
    gaps = np.diff(anchors, axis=0) @ [np.sin(angle), -np.cos(angle)]
    assert abs(gaps).min() >= height


# Heatmaps


@pytest.mark.parametrize("target_language", [FR, ZH], ids=["fr", "zh"])
@pytest.mark.parametrize(
    ("target_len", "source_len"), [(1, 1), (6, 6), (14, 12), (1, 14), (30, 30)]
)
def test_labels_are_all_there_and_fit(target_len, source_len, target_language):
    source, target = words(source_len, EN), words(target_len, target_language)
    ax = heatmap(source, target, title="A title", gold={(0, 0)})
    fig = ax.figure
    fig.canvas.draw()
    assert labels(ax.xaxis) == source
    assert labels(ax.yaxis) == target
    x_labels, y_labels = ax.get_xticklabels(), ax.get_yticklabels()
    outside = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()]
    everything = [*x_labels, *y_labels, *outside]
    for text in everything:
        box = text.get_window_extent()
        assert text.get_visible() and text.get_fontsize() >= 9
        assert box.x0 >= 0 and box.y0 >= 0
        assert box.x1 <= fig.bbox.x1 and box.y1 <= fig.bbox.y1
        assert not box.overlaps(ax.get_window_extent().shrunk(0.99, 0.99))
    for axes in fig.axes:
        room = axes.get_tightbbox()
        assert room.x0 >= 0 and room.y0 >= 0
        assert room.x1 <= fig.bbox.x1 and room.y1 <= fig.bbox.y1
    for one, other in combinations([*outside, *y_labels], 2):
        assert not one.get_window_extent().overlaps(other.get_window_extent())
    for one in outside:
        for label in x_labels:
            assert not one.get_window_extent().overlaps(label.get_window_extent())
    # Rows read downwards, columns to the right, source words on top.
    bounds = ax.get_window_extent()
    assert all(t.get_window_extent().y0 >= bounds.y1 for t in x_labels)
    middles = [t.get_window_extent().get_points().mean(axis=0)[1] for t in y_labels]
    assert middles == sorted(middles, reverse=True)
    assert_lines_apart(x_labels)


@pytest.mark.parametrize("shape", [(1, 1), (14, 12), (30, 30), (60, 45)])
def test_cells_are_square_and_the_figure_of_a_sensible_size(shape):
    ax = heatmap(words(shape[1], EN), words(shape[0], FR))
    ax.figure.canvas.draw()
    box = ax.get_window_extent()
    assert box.width / shape[1] == pytest.approx(box.height / shape[0])
    assert all(1 < inches < 20 for inches in ax.figure.get_size_inches())


def test_scale_is_0_to_1_whatever_the_weights():
    weights = np.full((2, 3), 0.3)
    ax = show_heatmap(weights, list("abc"), list("xy"))
    (image,) = ax.images
    assert (image.norm.vmin, image.norm.vmax) == (0, 1)
    np.testing.assert_array_equal(image.get_array(), weights)
    # One cell's colour, seen in the finished picture.
    picture = png(ax.figure)
    x, y = ax.transData.transform((1, 0)).astype(int)
    seen = picture[len(picture) - 1 - y, x, :3]
    np.testing.assert_allclose(seen, image.cmap(0.3)[:3], atol=0.01)
    # The map is light at 0 and darkens evenly.
    light = [luminance(shade[:3]) for shade in image.cmap(np.linspace(0, 1, 50))]
    assert light[0] > 0.9 and light[-1] < 0.1 and (np.diff(light) < 0).all()


def test_colorbar_is_beside_the_picture_and_can_be_left_out():
    def bars(ax):
        found = [a for a in (*ax.figure.axes, *ax.child_axes) if a is not ax]
        return [a for a in found if a.get_ylabel() == "attention weight"]

    ax = heatmap(EN, FR)
    ax.figure.canvas.draw()
    (bar,) = bars(ax)
    box, picture = bar.get_window_extent(), ax.get_window_extent()
    assert box.x0 > picture.x1
    assert plt.gca() is ax
    assert box.y0 == pytest.approx(picture.y0)
    assert box.y1 == pytest.approx(picture.y1)
    assert bars(heatmap(EN, FR, colorbar=False)) == []
    fig, own = plt.subplots(layout="constrained")
    heatmap(EN[:4], FR[:4], ax=own)
    fig.canvas.draw()
    (bar,) = bars(own)
    assert bar.get_window_extent().x0 > own.get_window_extent().x1


def test_gold_is_outlined_at_source_column_and_target_row():
    ax = heatmap(list("abcd"), list("wxyz"), gold=[*LINKS, (1, 3)])
    squares = [p for p in ax.patches if isinstance(p, Rectangle)]
    assert {tuple(np.round(p.get_center(), 6)) for p in squares} == LINKS
    assert len(squares) == len(LINKS)
    for square in squares:
        assert not square.get_fill()
        assert 0.5 < square.get_width() == square.get_height() <= 1
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["gold alignment"]


def test_possible_links_are_dotted_and_sure_ones_are_not():
    links = {(0, 0), (1, 1)}, {(0, 1), (0, 0)}
    ax = heatmap(["a", "b"], ["x", "y"], gold=links[0], possible=links[1])
    squares = [p for p in ax.patches if isinstance(p, Rectangle)]
    styles = {tuple(np.round(p.get_center(), 6)): p.get_linestyle() for p in squares}
    assert styles == {(0, 0): "-", (1, 1): "-", (0, 1): ":"}
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts == ["gold alignment", "possible link"]
    alone = heatmap(["a"], ["x"], possible={(0, 0)})
    assert [t.get_text() for t in alone.get_legend().get_texts()] == ["possible link"]
    with pytest.raises(ValueError, match=r"possible link \(2, 0\) is outside the 2"):
        heatmap(["a", "b"], ["x"], possible={(2, 0)})
    with pytest.raises(TypeError, match="possible is .*: give links"):
        heatmap(["a", "b"], ["x"], possible=["0?0"])
    plain = heatmap(list("abcd"), list("wxyz"))
    assert not plain.patches and plain.get_legend() is None


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_gold_outline_shows_on_every_weight(weight):
    """Its white rim sets it off wherever the cell itself does not."""
    ax = show_heatmap([[weight]], ["a"], ["b"], gold={(0, 0)})
    color = to_rgb(ax.patches[0].get_edgecolor())
    assert 1.05 / (luminance(color) + 0.05) > 3
    # Four times as fine: the rim shows in its own colour.
    picture = png(ax.figure, dpi=4 * ax.figure.dpi)[:, :, :3]
    x, y = (4 * ax.transData.transform((0, 0))).astype(int)
    row = picture[len(picture) - 1 - y, : x + 1]  # leftwards from the middle
    gold = np.abs(row - color).max(axis=1) < 0.1
    assert luminance(row[np.flatnonzero(gold).max() :].max(axis=0)) > 0.8


def test_annotate_writes_the_weights():
    weights = np.array([[0.61, 0.39], [0.004, 0.996]])
    ax = show_heatmap(weights, ["a", "b"], ["c", "d"], annotate=True)
    found = {t.get_position(): (t.get_text(), t.get_color()) for t in ax.texts}
    assert found == {
        (0, 0): ("0.61", "white"),
        (1, 0): ("0.39", "black"),
        (0, 1): ("0.00", "black"),
        (1, 1): ("1.00", "white"),
    }
    for weight in np.linspace(0, 1, 21):
        background = luminance(ax.images[0].cmap(weight)[:3]) + 0.05
        ratio = 1.05 / background if weight > 0.5 else background / 0.05
        assert ratio > 2.5
    ax = heatmap(EN, FR, annotate=True)
    ax.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in ax.texts[: len(EN)]]
    for one, other in zip(boxes, boxes[1:], strict=False):
        assert not one.overlaps(other)


def test_nothing_is_drawn_past_eos():
    source = ["a", "b", "<eos>", "<pad>"]
    target = ["x", "<eos>", "y", "<eos>"]
    weights = attention(4, 4)
    ax = show_heatmap(weights, source, target, gold={(1, 0)})
    assert labels(ax.xaxis) == ["a", "b", "<eos>"]
    assert labels(ax.yaxis) == ["x", "<eos>"]
    np.testing.assert_array_equal(ax.images[0].get_array(), weights[:2, :3])
    with pytest.raises(ValueError, match=r"gold link \(0, 2\) is outside"):
        show_heatmap(weights, source, target, gold={(0, 2)})
    ax = show_heatmap(weights, source, target, eos=None)
    assert labels(ax.yaxis) == target
    ax = show_heatmap(weights, source, target, eos="y")
    assert labels(ax.yaxis) == ["x", "<eos>", "y"]


def test_chinese_and_dollar_signs_render():
    ax = heatmap("我 爱 吃 苹果".split(), ["$x$", "é", "œuf"], title="我爱吃苹果")
    ax.figure.canvas.draw()  # a missing glyph would warn
    assert not any(t.get_parse_math() for t in ax.get_yticklabels())
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {0}  # short
    ax.set_xticks([0], labels=["我"], fontfamily="DejaVu Sans")
    with pytest.raises(UserWarning, match="missing from font"):  # and is noticed
        ax.figure.canvas.draw()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_are_welcome_and_given_axes_are_used(dtype):
    weights = torch.eye(2, dtype=dtype, requires_grad=True)
    fig, axes = plt.subplots(1, 2)
    labels = ("a", "b"), np.array(["c", "d"])
    assert show_heatmap(weights, *labels, ax=axes[1], title="second") is axes[1]
    np.testing.assert_array_equal(axes[1].images[0].get_array(), np.eye(2))
    assert axes[1].get_title() == "second" and not axes[0].images
    assert plot_curves([1, 2], {"c": [1, 2]}, "x", "y", ax=axes[0]) is axes[0]
    assert plt.get_fignums() == [fig.number]


OK = np.full((2, 3), 0.5)


@pytest.mark.parametrize(
    ("weights", "source", "target", "gold", "error", "message"),
    [
        (OK, "ab", "cd", None, ValueError, r"2 target and 2 source"),
        (OK.T, "abc", "de", None, ValueError, "one row per target word"),
        (OK[0], "abc", "d", None, ValueError, r"shape \(3,\)"),
        (np.zeros((0, 3)), "abc", "", None, ValueError, "at least one of each"),
        (OK * 3, "abc", "de", None, ValueError, "between 0 and 1"),
        (-OK, "abc", "de", None, ValueError, "between 0 and 1"),
        (OK * np.nan, "abc", "de", None, ValueError, "without NaN"),
        (OK, "abc", [4, 5], None, TypeError, r"target is \[4, 5\]"),
        (OK, "abc", "de", {(1, 2)}, ValueError, r"gold link \(1, 2\)"),
        (OK, "abc", "de", {(-1, 0)}, ValueError, r"gold link \(-1, 0\)"),
        (OK, "abc", "de", ["0-0"], TypeError, "gold is"),
        (OK, "abc", "de", [0, 1], TypeError, "gold is"),
    ],
)
def test_bad_heatmaps(weights, source, target, gold, error, message):
    labels = {"source": list(source), "target": list(target)}
    with pytest.raises(error, match=message):
        show_heatmap(weights, **labels, gold=gold)
    with pytest.raises(error, match=message):
        show_heatmaps([dict(weights=weights, gold=gold, **labels)])
    with pytest.raises(TypeError, match="source is 'abc'"):
        show_heatmap(OK, "abc", list("de"))
    assert not plt.get_fignums()  # no empty figure is left behind


# Small multiples


def panels():
    pairs = [(EN, FR), (EN[:3], ZH[:4]), (EN[:2], FR[:2]), (ZH, EN), (EN[:9], FR[:5])]
    return [
        dict(weights=attention(len(t), len(s)), source=s, target=t, title=f"No. {n}")
        for n, (s, t) in enumerate(pairs)
    ]


@pytest.mark.parametrize("ncols", [1, 2, 3, 9])
def test_small_multiples(ncols):
    axes = show_heatmaps(panels(), ncols=ncols)
    assert axes.shape == (5,)
    fig = axes[0].figure
    fig.canvas.draw()
    # In order of reading, one size of cell, one colour bar, nothing overlapping.
    assert [ax.get_title() for ax in axes] == [f"No. {n}" for n in range(5)]
    boxes = [ax.get_window_extent() for ax in axes]
    for n, box in enumerate(boxes):
        if n % ncols:
            assert box.x0 > boxes[n - 1].x1
            assert box.y1 == pytest.approx(boxes[n - 1].y1)
        elif n:
            assert box.y1 < boxes[n - 1].y0
            assert box.x0 == pytest.approx(boxes[0].x0)
    sides = []
    for ax, box in zip(axes, boxes, strict=True):
        target_len, source_len = ax.images[0].get_array().shape
        sides += [box.width / source_len, box.height / target_len]
    assert max(sides) == pytest.approx(min(sides))
    assert min(sides) / fig.dpi >= 0.2
    (bar,) = set(fig.axes) - set(axes)
    assert bar.get_ylabel() == "attention weight"
    room = [a.get_tightbbox() for a in fig.axes]
    for one, other in combinations(room, 2):
        assert not one.overlaps(other)
    for box in room:
        assert box.x0 >= 0 and box.y0 >= 0
        assert box.x1 <= fig.bbox.x1 and box.y1 <= fig.bbox.y1
    for ax in axes:
        assert_lines_apart(ax.get_xticklabels())
        assert (ax.images[0].norm.vmin, ax.images[0].norm.vmax) == (0, 1)


def test_panels_take_the_arguments_of_a_heatmap():
    one = dict(weights=np.eye(2), source=["a", "b"], target=["c", "d"])
    axes = show_heatmaps([dict(one, gold={(0, 1)}, annotate=True), one])
    assert [len(ax.patches) for ax in axes] == [1, 0]
    assert [len(ax.texts) for ax in axes] == [4, 0]
    with pytest.raises(TypeError, match="colour"):
        show_heatmaps([dict(one, colour="red")])
    with pytest.raises(ValueError, match="0 panels in 2 columns"):
        show_heatmaps([])
    with pytest.raises(ValueError, match="5 panels in 0 columns"):
        show_heatmaps(panels(), ncols=0)


# Curves


def test_curves_show_mean_and_band():
    x = [1, 2, 4]
    seeds = np.array([[1.0, 2.0, 9.0], [3.0, 2.0, 1.0], [2.0, 2.0, 2.0]])
    ax = plot_curves(
        x, {"one": [5, 6, 7], "seeds": seeds}, "length", "BLEU", ylim=(0, 10), title="t"
    )
    one, mean = ax.lines
    np.testing.assert_array_equal(one.get_xydata(), [[1, 5], [2, 6], [4, 7]])
    np.testing.assert_array_equal(mean.get_ydata(), [2, 2, 4])
    (band,) = ax.collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices}
    assert corners == {(1, 1), (1, 3), (2, 2), (4, 1), (4, 9)}
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("length", "BLEU", "t")
    assert ax.get_ylim() == (0, 10)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["one", "seeds"]


def test_curves_differ_without_colour_and_nan_leaves_a_gap():
    curves = {str(k): [k, np.nan, k] for k in range(7)}
    ax = plot_curves(["a", "b", "c"], curves, "x", "y")
    ax.figure.canvas.draw()
    np.testing.assert_array_equal(ax.lines[3].get_ydata(), [3, np.nan, 3])
    assert len({line.get_marker() for line in ax.lines}) == 7
    assert len({line.get_color() for line in ax.lines}) == 7
    for one, other in zip(ax.lines, ax.lines[1:], strict=False):
        assert one.get_linestyle() != other.get_linestyle()


def test_legend_is_beside_the_plot_and_inside_the_figure():
    curves = {"attention": [1, 2], "固定上下文 512": [2, 1]}
    ax = plot_curves(["3–5", "6–10"], curves, "句子长度", "BLEU", title="我爱吃苹果")
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= ax.get_window_extent().x1
    assert legend.x1 <= ax.figure.bbox.x1
    assert labels(ax.xaxis) == ["3–5", "6–10"]


@pytest.mark.parametrize(
    ("curves", "message"),
    [
        ({}, "0 curves"),
        ({str(k): [1, 2] for k in range(8)}, "8 curves: one figure takes 1 to 7"),
        ({"a": [1, 2, 3]}, r"curve 'a' has shape \(3,\), but x has 2 values"),
        ({"a": np.zeros((2, 5))}, r"shape \(2, 5\)"),
        ({"a": np.zeros((1, 1, 2))}, r"shape \(1, 1, 2\)"),
        ({"a": np.zeros((0, 2))}, r"shape \(0, 2\)"),
    ],
)
def test_bad_curves(curves, message):
    with pytest.raises(ValueError, match=message):
        plot_curves([1, 2], curves, "x", "y")
    assert not plt.get_fignums()


# Every figure

FIGURES = {
    "show_heatmap": lambda: heatmap(EN[:4], ZH[:4], gold={(0, 0)}, annotate=True),
    "show_heatmaps": lambda: show_heatmaps(panels()[:2])[0],
    "plot_curves": lambda: plot_curves([1, 2], {"a": [[1, 2], [2, 3]]}, "x", "y"),
}


@pytest.mark.parametrize("draw", FIGURES.values(), ids=FIGURES)
def test_background_is_opaque_and_white_and_settings_stay(draw):
    chinese_font.cache_clear()  # finding the font must not change them
    # As in kernels whose default figure is transparent.
    transparent = {"figure.facecolor": (1, 1, 1, 0), "axes.facecolor": (1, 1, 1, 0)}
    with matplotlib.rc_context(transparent):
        before = matplotlib.rcParams.copy()
        picture = png(draw().figure)
        assert matplotlib.rcParams == before
    assert (picture[..., 3] == 1).all()
    assert (picture[0, 0, :3] == 1).all()


def test_imports_change_no_settings():
    # sacrebleu's command-line module changes a signal: a kernel must not get that.
    code = (
        "import logging, signal, warnings, matplotlib, matplotlib.pyplot, torch\n"
        "def state():\n"
        "    pipe = getattr(signal, 'SIGPIPE', signal.SIGINT)\n"
        "    now = matplotlib.rcParams.copy(), warnings.filters[:]\n"
        "    return *now, logging.root.handlers[:], signal.getsignal(pipe)\n"
        "before = state()\n"
        "import utils.alignment, utils.metrics, utils.plotting\n"
        "assert state() == before\n"
        "assert not matplotlib.pyplot.get_fignums()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# Fonts


@pytest.fixture
def system(monkeypatch):
    """A system whose only fonts are matplotlib's own; nothing is remembered."""
    own = [f for f in font_manager.fontManager.ttflist if f.name.startswith("DejaVu")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    chinese_font.cache_clear()

    def install(*names, package=True):
        for name in names:
            path = own[0].fname if name != "Noto Sans CJK SC" else "gone.otf"
            own.append(font_manager.FontEntry(fname=path, name=name))
        if not package:
            monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
        return own

    yield install
    chinese_font.cache_clear()


@pytest.mark.parametrize(
    ("installed", "package", "chosen"),
    [
        (["Noto Sans CJK SC", "SimHei"], True, "SimHei"),  # the first one is gone
        ([], True, "Noto Sans CJK SC"),
        (["Noto Sans CJK JP"], False, "Noto Sans CJK JP"),
    ],
)
def test_the_font_with_chinese_characters(system, installed, package, chosen):
    """The system's, the package's, Japanese forms, in this order; found once."""
    fonts = system(*installed, package=package)
    families = font_families()
    assert families == ["DejaVu Sans", chosen]
    known = len(fonts)
    families.append("changed by a caller")
    assert font_families() == ["DejaVu Sans", chosen] and len(fonts) == known


def test_without_any_font_one_warning(system):
    system(package=False)
    with pytest.warns(UserWarning, match="Install the package mpl-font") as caught:
        assert font_families() == font_families() == ["DejaVu Sans"]
    assert len(caught) == 1


def test_a_package_without_the_font_is_as_none(system, monkeypatch, tmp_path):
    system()
    spec = SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr("importlib.util.find_spec", lambda name: spec)
    with pytest.warns(UserWarning, match="No font with Chinese"):
        assert font_families() == ["DejaVu Sans"]
