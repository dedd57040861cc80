"""The site: what is changed for it, and where the explorer is alive.

The site itself is built and checked by `make site`.
"""

import base64
import io
import json
import re

import nbformat
import pytest
import torch
from helpers.repo import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from PIL import Image

from tools.site import check, heatmap_page, source
from utils.checkpoint import load_checkpoint
from utils.decoding import translate
from utils.figures import alternative_text
from utils.plotting import plot_curves, show_heatmap

HOME = tuple("she does not have a blue boat .".split())


def site_of(*cells):
    """A title and these cells as the site has them, and their figures."""
    cells = [new_markdown_cell("# Title"), *cells]
    return source.site_notebook(new_notebook(cells=cells), "notebooks/x", set())


def test_links_to_what_is_no_page_lead_to_the_forge():
    def changed(text):
        pages = {"notebooks/FROM_D2L.md"}
        return source.site_text(text, "notebooks/GLOSSARY.md", pages)

    for text in ("[a](FROM_D2L.md#1)", "![a](img/gru.svg)", "[a](#b)", "`W[s](t)`"):
        assert changed(text) == text
    forge = f"https://{source.FORGE}"
    assert changed("[a](../README.md#b)") == f"[a]({forge}/blob/HEAD/README.md#b)"
    assert changed("[a](img)") == f"[a]({forge}/tree/HEAD/notebooks/img)"
    chinese = source.site_text("[a](../notebooks/solutions)", "zh/x.ipynb", set())
    assert chinese == f"[a]({forge}/tree/HEAD/notebooks/solutions)"


def test_a_chinese_notebook_is_run_from_the_learners_repository():
    for place, name in (("zh/x", "-learner"), ("notebooks/x", "")):
        forge = f"{source.OWNER}/learning-to-align{name}"
        binder = f"https://mybinder.org/v2/gh/{forge}/HEAD?labpath={place}"
        colab = f"https://colab.research.google.com/github/{forge}/blob/HEAD/{place}"
        links = re.findall('href="([^"]+)"', source.ways(place))
        assert links == [binder, colab, "x"]


def test_no_answer_of_the_quiz_is_left():
    text = (ROOT / "notebooks" / "INSTRUCTOR.md").read_text(encoding="utf-8")
    left = source.ANSWERED.sub(r"\1 |", text)
    asked = re.findall(r"^\| \d\d\.\d \|.+? \|", text, re.M)
    assert re.findall(r"^\| \d\d\.\d .+(?= \|$)", left, re.M) == asked != []


def test_a_picture_of_the_text_has_one_sentence_and_the_rest_to_unfold():
    text = "![A drawing.\nThe word\nx.](img/gru.svg)\n\nText"
    changed = source.site_text(text, "notebooks/GLOSSARY.md", set())
    assert changed.startswith("![A drawing.](img/gru.svg)\n\n<details")
    assert "A drawing. The word x.</details>\n\n\nText" in changed


def test_a_figures_text_says_in_one_sentence_what_is_to_be_seen(offscreen):
    ax = show_heatmap(torch.eye(2), ["a", "b"], ["c", "d"])
    said = "Heatmap: which of 2 source words each of 2 target words looks at."
    assert source.seen(alternative_text(ax.figure)) == said
    ax = plot_curves([1, 2], {"yours": [3, 4], "theirs": [5, 6]}, "words", "BLEU")
    text = alternative_text(ax.figure)
    assert source.seen(text) == "Curves: BLEU against words, for yours, theirs."
    both = f"step 1. Panel 1 of 2. {text} Panel 2 of 2. Bars: scores. Sizes: a 2; b 1."
    ends = "BLEU against words, for yours, theirs; Bars: scores."
    assert source.seen(both) == f"step 1; Curves: {ends}"


def png(*dark):
    """A white picture; dark: (left, right) of each block of black columns."""
    picture, file = Image.new("L", (1000, 20), 255), io.BytesIO()
    for left, right in dark:
        picture.paste(0, (left, 5, right, 15))
    picture.save(file, "png")
    return file.getvalue()


@pytest.mark.parametrize(
    ("dark", "widths"),
    [
        ([(10, 320), (340, 660), (680, 990)], [330, 340, 330]),  # three panels
        ([(10, 900), (940, 990)], []),  # a panel with its bar of colours
        ([(10, 498), (502, 990)], []),  # too near each other to be two
    ],
)
def test_a_figure_is_cut_between_its_panels_for_a_phone(dark, widths):
    """Each is a window on the picture: as wide as its panel, and moved to it."""
    shown = source.figure("a.png", png(*dark), 1000, "A text")
    parts = re.findall(r'"part" style="--width: (\d+)px".*?margin-left: (.*?)%', shown)
    assert [int(width) for width, _ in parts] == widths
    lefts = [-float(left) * int(width) / 100 for width, left in parts]
    assert lefts == pytest.approx([sum(widths[:k]) for k in range(len(parts))], abs=1)
    assert "part" not in source.figure("a.png", png(*dark), 400, "A text")  # small


def test_what_a_notebook_folds_the_site_folds():
    folded = new_code_cell("1", metadata={"jupyter": {"outputs_hidden": True}})
    notebook, _ = site_of(new_code_cell("fetch()", id="colab"), folded)
    _, ways, cell = notebook.cells
    assert "HEAD?labpath=notebooks/x" in ways.source
    assert cell.metadata["tags"] == ["hide-output", "hide-input"]


def test_taught_classes_are_open_then_toys_and_all_other_code_is_folded():
    taught = "# mirror: utils.a.B\nclass B: ..."
    folded = "import torch", "assert a > 1", "def mine(x): ...\nexercises.scores(mine)"
    toys = "a = 2 + 2", "b = torch.tensor([1.0, 2.0])\nb.sum()"
    cells = [new_code_cell(text) for text in (*folded, *toys, taught)]

    def read(letters):
        text = new_markdown_cell("x" * letters)
        found = source.unfolded([text, *cells])
        return {cell.source for cell in cells if cell.id in found}

    assert read(10 * source.LETTERS) == {taught, *toys}
    assert read(3 * source.LETTERS) == {taught, toys[0]}
    assert read(0) == set()


def test_an_exercise_that_nobody_has_tried_says_nothing(capsys):
    from utils.exercises import context

    said = new_output("stream", text=f"{source.NOT_YET}: write your code …\n")
    notebook, _ = site_of(new_code_cell("1", outputs=[said]))
    assert notebook.cells[-1].outputs == []
    context(lambda weights, values: ...)
    assert source.NOT_YET in capsys.readouterr().out


@pytest.mark.slow
def test_the_page_about_heatmaps_says_what_was_measured(offscreen):
    found = heatmap_page.page()
    page = source.HERE / "pages" / "is_the_heatmap_right.md"
    names = re.findall(r"\{(\w+)[:}]", page.read_text(encoding="utf-8"))
    assert set(names) == set(found)
    for name, lang in (("attention", "fr"), ("zh_attention", "zh")):
        path = heatmap_page.DATA / "models" / f"village-en-{lang}.safetensors"
        told = load_checkpoint(path).notes["test_aer"]
        assert found[name] == pytest.approx(told, abs=0.006)


def test_links_to_nobody_are_counted(tmp_path):
    link = '<a href="https://mybinder.org/v2/gh/{}/learning-to-align/HEAD">OWNER/</a>'
    (tmp_path / "a.html").write_text(link.format("OWNER") * 2 + link.format("me"))
    assert check.without_owner(tmp_path) == 2


@pytest.mark.parametrize("name", ["French", "as it is"])
def test_an_explorer_is_alive_if_the_site_has_its_model(name):
    """Another one, of a model that its notebook trained, stays a picture."""
    text = f"Explorer({[name]}, ['I love to eat apples.', 'A <b>cat</b>'])"
    picture = base64.b64encode(png()).decode()
    known = {"image/png": {"width": 500, "height": 10, "alt": "a heatmap"}}
    data = {"text/plain": text, "image/png": picture}
    output = new_output("execute_result", data, metadata=known)
    notebook, figures = site_of(new_code_cell("1", outputs=[output]))
    html = notebook.cells[-1].outputs[0].data["text/html"]
    if name == "French":
        assert "fetch" in html and "../_static/village-en-fr" in html
        assert "<b>" not in html and not figures
        gold = json.loads(re.search(r'"gold": (\[.*?\]), "gl', html)[1])
        assert gold[0]["target"] == "j' aime manger des pommes ."
    else:
        assert 'alt="a heatmap."' in html and len(figures) == 1


def test_the_home_page_has_true_links_in_both_languages():
    """In French the model writes the true translation of the first sentence."""
    pairs = [p for p in source.village_pairs() if p.source == HOME]
    assert [pair.target[0] for pair in pairs] == ["elle", "她"]
    saved = load_checkpoint(ROOT / "data/models/village-en-fr.safetensors")
    found = translate(saved.model, source.HOME[0], *saved[1:3])
    assert tuple(found.tokens[:-1]) == pairs[0].target


def test_each_drawing_of_a_notebook_is_alive_and_its_answer_out_of_sight():
    notebooks = (ROOT / "notebooks").glob("*.ipynb")
    cells = [cell for path in notebooks for cell in nbformat.read(path, 4).cells]
    drawn = [c for c in cells if re.search(r"^Draw\(", c.source, re.M)]
    assert {c.id for c in drawn} == source.drawings().keys()
    told = source.drawings()["draw-share"]["answer"]
    assert [f"{share:.2f}" for share in told] == ["0.20", "0.60", "0.20"]
    cells = [new_markdown_cell("# T"), *drawn]
    found, _ = source.site_notebook(new_notebook(cells=cells), "notebooks/x", set())
    for cell in found.cells[2:]:
        html = cell.outputs[0].data["text/html"]
        assert f'<div class="draw" id="{cell.id}"><p>A drawing needs' in html
        assert "../_static/draw.js" in html and '"answer"' in html
