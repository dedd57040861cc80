"""Figures are drawn offscreen, then measured."""

from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from utils.plotting import plot_curves, show_heatmap, show_heatmaps

EN = "the grandmother of the little girl is not reading an old book today .".split()
FR = "la grand-mère de la petite fille ne lit pas de vieux livre aujourd'hui .".split()
ZH = "小 女孩 的 奶奶 今天 没有 看 一 本 旧 的 书 。".split()

pytestmark = pytest.mark.usefixtures("offscreen")


def attention(target_len, source_len):
    scores = np.random.default_rng(0).normal(size=(target_len, source_len))
    return np.exp(3 * scores) / np.exp(3 * scores).sum(axis=1, keepdims=True)


def panel(source, target, **options):
    weights = attention(len(target), len(source))
    return {"weights": weights, "source": source, "target": target, **options}


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def legend(ax):
    found = ax.get_legend()
    return [text.get_text() for text in found.get_texts()] if found else []


def assert_legible(axes):
    """Nothing reaches out of the figure, nothing overlaps, cells are equal squares."""
    fig = axes[0].figure
    fig.canvas.draw()
    rooms = [ax.get_tightbbox() for ax in fig.axes]
    assert not any(one.overlaps(other) for one, other in combinations(rooms, 2))
    corners = np.array([room.extents for room in rooms])
    assert corners.min() >= 0
    assert (corners[:, 2:] <= [fig.bbox.x1, fig.bbox.y1]).all()
    cells = []
    for ax in axes:
        texts = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_yticklabels()]
        boxes = [text.get_window_extent() for text in texts if text.get_text()]
        assert not any(a.overlaps(b) for a, b in combinations(boxes, 2))
        cells.append(ax.get_window_extent().size / ax.images[0].get_size()[::-1])
    assert np.ptp(cells) == pytest.approx(0, abs=1e-6)
    assert np.min(cells) / fig.dpi >= 0.2


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (EN[:1], FR[:1]),
        (EN, ZH),
        (["a"] * 6, ["$x$", "▁Я", "ա한", "<0xE2>", "😀", "ᵫ"]),  # in three fonts
    ],
)
def test_a_heatmap_is_labelled_and_legible(source, target):
    ax = show_heatmap(**panel(source, target, title="A title", gold={(0, 0)}))
    assert labels(ax.xaxis) == source and labels(ax.yaxis) == target
    assert_legible([ax])  # drawn without a warning: no character is missing
    names = ax.get_xlabel(), ax.get_ylabel(), ax.get_title()
    assert names == ("source", "target", "A title")
    assert ax.images[0].get_clim() == (0, 1)
    assert ax.yaxis_inverted() and ax.xaxis.get_ticks_position() == "top"
    assert (ax.get_xticklabels()[0].get_rotation() == 45) == (len(source) == len(EN))
    assert ax.figure.axes[1].get_ylabel() == "attention weight" and plt.gca() is ax


@pytest.mark.parametrize("word", ["▁مرحبا", "▁ठीक", "\U0010ffff"])
def test_what_cannot_be_drawn_right_is_a_number_that_is_said_once(word):
    one = panel([word, "a"], ["b", word], title=word)
    with pytest.warns(UserWarning, match="numbers stand for words") as said:
        axes = show_heatmaps([one, one])
        axes[0].figure.canvas.draw()
    assert len(said) == 1 and f": [1] {word}" in str(said[0].message)
    assert said[0].filename == __file__  # where it was asked for
    for ax in axes:
        assert labels(ax.xaxis) == ["[1]", "a"] and labels(ax.yaxis) == ["b", "[1]"]
        assert ax.get_title() == "[1]"


def test_links_are_outlined_at_source_column_and_target_row():
    gold, possible = {(0, 0), (1, 3), (3, 2)}, {(0, 1), (0, 0)}
    ax = show_heatmap(**panel("abcd", "wxyz", gold=gold, possible=possible))
    found = {tuple(np.round(p.get_center(), 6)): p.get_linestyle() for p in ax.patches}
    assert found == {**dict.fromkeys(gold, "-"), (0, 1): ":"} and len(ax.patches) == 4
    assert legend(ax) == ["gold alignment", "possible link"]
    ax = show_heatmap(**panel("ab", "xy", gold=possible))
    assert legend(ax) == ["gold alignment"]
    assert not legend(show_heatmap(**panel("a", "x")))


def test_annotate_writes_the_weights():
    ax = show_heatmap([[0.61, 0.004]], "ab", "c", annotate=True)
    found = [(t.get_position(), t.get_text(), t.get_color()) for t in ax.texts]
    assert found == [((0, 0), "0.61", "white"), ((1, 0), "0.00", "black")]


@pytest.mark.parametrize(
    ("eos", "rows", "columns"), [("<eos>", 2, 3), (None, 4, 4), ("y", 3, 4)]
)
def test_nothing_is_drawn_past_eos(eos, rows, columns):
    source, target = ["a", "b", "<eos>", "<pad>"], ["x", "<eos>", "y", "<eos>"]
    weights = attention(4, 4)
    ax = show_heatmap(weights, source, target, eos=eos)
    assert labels(ax.xaxis) == source[:columns] and labels(ax.yaxis) == target[:rows]
    np.testing.assert_array_equal(ax.images[0].get_array(), weights[:rows, :columns])


def test_tensors_are_welcome_and_given_axes_are_used():
    weights = torch.eye(2, dtype=torch.bfloat16, requires_grad=True)
    fig, axes = plt.subplots(1, 2)
    assert show_heatmap(weights, "ab", "cd", ax=axes[1]) is axes[1]
    np.testing.assert_array_equal(axes[1].images[0].get_array(), np.eye(2))
    assert axes[1].child_axes[0].get_ylabel() == "attention weight"
    assert plot_curves([1, 2], {"c": [1, 2]}, "x", "y", ax=axes[0]) is axes[0]
    assert plt.get_fignums() == [fig.number]


OK = np.full((2, 3), 0.5)


@pytest.mark.parametrize(
    ("weights", "links", "message"),
    [
        (OK.T, {}, "2 target and 3 source words: give one row per target word"),
        (OK * 2.1, {}, "between 0 and 1"),
        (OK, {"gold": {(1, 2)}}, r"gold link \(1, 2\) is outside the 3 source and 2"),
        (OK, {"possible": {(-1, 0)}}, r"possible link \(-1, 0\)"),
    ],
)
def test_what_is_no_heatmap(weights, links, message):
    with pytest.raises(ValueError, match=message):
        show_heatmap(weights, list("abc"), list("de"), **links)
    assert not plt.get_fignums()  # no empty figure is left behind
    show_heatmap(OK * 2, list("abc"), list("de"), gold={(2, 1)})  # the last allowed


def test_small_multiples_stand_in_rows_on_one_scale():
    pairs = [(EN, FR), (EN[:3], ZH[:4]), (ZH, EN[:9])]
    axes = show_heatmaps([panel(*p, title=str(p)) for p in pairs], ncols=2)
    assert [ax.get_title() for ax in axes] == list(map(str, pairs))
    assert_legible(axes)
    boxes = [ax.get_window_extent() for ax in axes]
    for n, (box, before) in enumerate(zip(boxes[1:], boxes, strict=False), start=1):
        assert box.x0 > before.x1 if n % 2 else box.y1 < before.y0
    assert all(ax.images[0].get_clim() == (0, 1) for ax in axes)
    (bar,) = set(axes[0].figure.axes) - set(axes)
    assert bar.get_ylabel() == "attention weight"


def test_curves_show_the_mean_and_a_band_and_leave_gaps():
    seeds = np.array([[1.0, 2.0, 9.0], [3.0, 2.0, 1.0], [2.0, 2.0, 2.0]])
    curves = {"one": [5, np.nan, 7], "种子": seeds}
    ax = plot_curves([1, 2, 4], curves, "长度", "BLEU", ylim=(0, 10), title="t")
    one, mean = ax.lines
    np.testing.assert_array_equal(one.get_xydata(), [[1, 5], [2, np.nan], [4, 7]])
    np.testing.assert_array_equal(mean.get_ydata(), [2, 2, 4])
    (band,) = ax.collections
    corners = {tuple(point) for point in band.get_paths()[0].vertices}
    assert corners == {(1, 1), (1, 3), (2, 2), (4, 1), (4, 9)}
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("长度", "BLEU", "t")
    assert ax.get_ylim() == (0, 10) and legend(ax) == ["one", "种子"]


def test_seven_curves_differ_without_colour():
    curves = {str(k): [k, k] for k in range(7)}
    lines = plot_curves([1, 2], curves, "x", "y").lines
    assert len({line.get_marker() for line in lines}) == 7
