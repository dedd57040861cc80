"""What lectures are made with."""

import matplotlib.pyplot as plt
import pytest
import torch

from utils import slides

pytestmark = pytest.mark.usefixtures("offscreen")


def test_a_figure_fills_a_slide():
    slides.for_the_wall()
    width, height = slides.axes().figure.get_size_inches() * plt.rcParams["figure.dpi"]
    assert 1100 < width < 1180 and 500 < height < 570  # of 1280 x 720


def test_bars_have_their_names_and_numbers():
    ax = slides.bars({"得": 0.2, "b": 1.0}, "rate", ylim=(0, 2))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["得", "b"]
    assert [text.get_text() for text in ax.texts] == ["0.20", "1.00"]
    assert ax.get_ylim() == (0, 2) and ax.get_ylabel() == "rate"
    ax.figure.canvas.draw()  # no character is missing


def test_a_table_is_markdown():
    found = slides.table(["a", "b"], [["1", "**2**"]])
    assert found.data.splitlines() == ["| a | b |", "| --- | --- |", "| 1 | **2** |"]


def test_numbers_are_rounded_and_have_a_minus():
    assert slides.number(-1.005, 1) == "−1.0"
    assert slides.numbers(torch.tensor([-2.0, 0.126])) == "[−2.00, 0.13]"


def test_stored_results_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert slides.stored("bottleneck")["runs"]
