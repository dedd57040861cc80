"""A drawing in Python: what its script is told, and what a stored notebook has."""

import json

from helpers import refusals

from utils import draw
from utils.draw import Draw, drawing

CURVE = "curve", ["3–6", "7–10"], [66.4, 31.5], "BLEU"


def test_the_script_is_told_plain_values():
    told = drawing("heatmap", ("a", "b"), [[0.25, 0.75]], "Heatmap", ["x"])
    assert json.loads(json.dumps(told)) == told
    assert (told["columns"], told["rows"]) == (["a", "b"], ["x"])
    assert told["answer"] == [[0.25, 0.75]]


def drawn(kind, answer):
    return drawing(kind, ["a", "b"], answer, "axes")


SHAPE = r"has the shape \(2,\).*\[1.0, 2.0, 3.0\], of the shape \(3"
test_what_does_not_fit_is_refused_in_words = refusals(
    (lambda: drawn("line", [1, 2]), "kind is one of .*'curve'.*not 'line'"),
    (lambda: drawn("curve", [1, 2, 3]), SHAPE),
    (lambda: drawn("shares", [0.5, 1.5]), "numbers from 0 to 1; it is .*1.5"),
    (lambda: drawn("curve", [float("nan"), 1]), "numbers from 0 to 100"),
    (lambda: drawn("heatmap", [1, 0]), r"has the shape \(0, 2\)"),
)


def test_a_stored_notebook_has_a_sentence_and_not_the_answer(monkeypatch):
    (text,) = Draw(*CURVE)._repr_mimebundle_().values()
    assert text.startswith("Where this notebook runs") and "66.4" not in text
    monkeypatch.setattr(draw, "is_watched", lambda: True)
    data = Draw(*CURVE)._repr_mimebundle_()
    assert data["text/plain"] == text
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "66.4" not in str(data)  # a widget's id has no dot


def test_the_widget_is_one_module_with_its_own_style(monkeypatch):
    monkeypatch.setenv("LEARNING_TO_ALIGN_LANG", "zh")
    widget = draw.DrawWidget(settings=drawing(*CURVE))
    assert widget.lang == "zh"
    assert "import " not in widget._esm and "export default" in widget._esm
    assert ".dr-area" in widget._css
