"""The site: what is changed for it, its numbers, and that its check finds faults.

The site itself is built and checked by `make site`.
"""

import base64
import io
import json

import numpy as np
import pytest
from helpers.repo import ROOT
from PIL import Image

from tools.site import steps

# --- the check, on pages each of which has one fault ------------------------------

PAGE = """<!doctype html><html lang="en"><head><title>A page</title>
<meta name="viewport" content="width=device-width"></head>
<body><main><h1 id="top">A page</h1>{}</main></body></html>"""
DOT = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
GOOD = f"""<p><a href="other.html#top">A link</a>, a price of $5 or $6, and
<code>$x_1$</code>.</p><img alt="a dot" src="{DOT}">
<pre tabindex="0" style="overflow: auto">{"long " * 99}</pre>"""
FAULTS = {
    "<a href='gone.html'>A link</a>": "leads nowhere: gone.html",
    "<a href='good.html#gone'>A link</a>": "leads nowhere: good.html#gone",
    "<a href='#gone'>A link</a>": "#gone",
    "<script src='http://127.0.0.2:9/x.js'></script>": "asks another host",
    "<script src='gone.js'></script>": "is missing",
    "<script>gone()</script>": "a script fails",
    "<p>The weight $\\alpha_{ij}$.</p>": "a formula is raw",
    "<details><p>The sum $$1 + 1$$</p></details>": "a formula is raw",
    "<span class='math'>\\(x\\)</span>": "a formula is raw",
    f"<img src='{DOT}'>": "a picture has no text",
    "<svg role='img'></svg>": "a picture has no text",
    "<p style='width: 500px'>wide</p>": "pixels wide at 390",
    "<details><p style='width: 500px'>wide</p></details>": "pixels wide at 390",
}


@pytest.fixture(scope="module")
def looked_at(tmp_path_factory, browser):
    """What the check says of a good page and of the faulty ones."""
    from tools.site import check

    folder = tmp_path_factory.mktemp("site")
    for name in ("good", "other"):
        (folder / f"{name}.html").write_text(PAGE.format(GOOD), encoding="utf-8")
    for number, fault in enumerate(FAULTS):
        path = folder / f"fault{number}.html"
        path.write_text(PAGE.format(GOOD + fault), encoding="utf-8")
    found = {}
    with browser.new_page() as page:
        page.set_default_timeout(0)
        for path, sentence in check.check(page, folder, axe=None):
            found.setdefault(path, []).append(sentence)
    return found


def test_good_pages_are_good(looked_at):
    assert looked_at.keys() == {f"fault{number}.html" for number in range(len(FAULTS))}


@pytest.mark.parametrize("number, said", list(enumerate(FAULTS.values())))
def test_a_fault_is_found(looked_at, number, said):
    found = looked_at[f"fault{number}.html"]
    assert any(said in sentence for sentence in found), found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_is_asked_in_both_themes(tmp_path, browser, theme):
    from tools.site import check

    if not (ROOT / check.AXE).is_file():
        pytest.skip("needs axe, which `make site` installs")
    pale = f"<style>[data-theme={theme}] p {{ color: #ddd }}</style><p>pale</p>"
    (tmp_path / "a.html").write_text(PAGE.format(pale), encoding="utf-8")
    with browser.new_page() as page:
        page.set_default_timeout(0)
        ((_, found),) = check.check(page, tmp_path, ROOT / check.AXE)
    assert found.startswith(f"{theme}: color-contrast")


# --- what is changed for the site -----------------------------------------------------


@pytest.fixture
def source():
    pytest.importorskip("nbformat")
    from tools.site import source

    return source


def test_links_to_what_is_no_page_lead_to_the_forge(source):
    def changed(text):
        return source.site_text(
            text, "notebooks/GLOSSARY.md", {"notebooks/FROM_D2L.md"}
        )

    for text in (
        "[a](FROM_D2L.md#1)",
        "![a](img/gru.svg)",
        "[a](#b)",
        "[a](https://x.org)",
        "`W[s](t)`",
    ):
        assert changed(text) == text
    forge = f"https://{source.FORGE}"
    assert changed("[a](../CONTRIBUTING.md#b)") == (
        f"[a]({forge}/blob/HEAD/CONTRIBUTING.md#b)"
    )
    assert changed("[a](solutions/)") == f"[a]({forge}/tree/HEAD/notebooks/solutions)"


def test_formulas_in_html_are_marked(source):
    text = "A $x$.\n\n<details><summary>Hint</summary>\nWhere $a<b$?\n</details>\n\n$y$"
    marked = source.site_text(text, "README.md", set())
    assert "A $x$." in marked and marked.endswith("$y$")
    assert r'Where <span class="math">\(a&lt;b\)</span>?' in marked


def test_no_answer_of_the_quiz_is_left(source):
    text = (ROOT / "notebooks" / "INSTRUCTOR.md").read_text(encoding="utf-8")
    left = source.ANSWER.sub("", text)
    assert "<summary>" in text and "<summary>" not in left
    assert left.count("*(Notebook") == text.count("*(Notebook")


def png(dark, width=1000):
    """A white picture; dark: (left, right) of each block of black columns."""
    pixels = np.full((20, width, 3), 255, dtype=np.uint8)
    for left, right in dark:
        pixels[5:15, left:right] = 0
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    return file.getvalue()


@pytest.mark.parametrize(
    ("dark", "widths"),
    [
        ([(10, 480), (520, 990)], [500, 500]),  # two panels
        ([(10, 320), (340, 660), (680, 990)], [330, 340, 330]),  # three
        ([(10, 900), (940, 990)], [1000]),  # a panel with its bar of colours
        ([(10, 498), (502, 990)], [1000]),  # too near each other to be two
        ([(10, 990)], [1000]),
    ],
)
def test_a_sheet_is_cut_between_its_panels(source, dark, widths):
    parts = [Image.open(io.BytesIO(p)) for p in source.panels(png(dark), 1000)]
    assert [part.width for part in parts] == pytest.approx(widths, abs=1)
    (whole,) = source.panels(png(dark), 400)  # drawn small: as it is
    assert whole == png(dark)


def test_a_phone_gets_the_panels_and_each_has_a_text(source):
    picture = png([(10, 480), (520, 990)])
    parts = source.panels(picture, 1000)
    known = {"alt": "Two", "width": 1000, "height": 20}
    shown = source.figure(["a.png", "b.png", "c.png"], [picture, *parts], known)
    assert shown.count('class="whole"') == 1 and shown.count('class="part"') == 2
    assert 'class="figure cut"' in shown and 'alt="Part 2 of 2: Two"' in shown


def test_a_widget_leaves_no_text_of_its_own(source):
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    def widget(text):
        view = {"application/vnd.jupyter.widget-view+json": {}, "text/plain": text}
        return new_output("display_data", view)

    texts = "Explorer(children=(HBox(", "  0%|   | 0/748 [00:00<?, ?batch/s]"
    cell = new_code_cell("1", id="a", outputs=[widget(text) for text in texts])
    notebook = new_notebook(cells=[new_markdown_cell("# Title"), cell])
    notebook, _ = source.site_notebook(notebook, "notebooks/x.ipynb", set())
    link, nothing = (output["data"] for output in notebook.cells[-1].outputs)
    assert "explorer.html" in link["text/html"] and not nothing


def test_what_a_notebook_folds_the_site_folds(source):
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    drawn = png([])
    picture = new_output(
        "display_data",
        {"image/png": base64.b64encode(drawn).decode()},
        metadata={"image/png": {"alt": 'a "b"', "width": 7, "height": 8}},
    )
    cells = [
        new_markdown_cell("# Title"),
        new_code_cell("fetch()", id="colab"),
        new_code_cell("1", id="a", metadata={"jupyter": {"outputs_hidden": True}}),
        new_code_cell("2", id="b", outputs=[picture]),
    ]
    notebook, figures = source.site_notebook(
        new_notebook(cells=cells), "notebooks/x.ipynb", set()
    )
    title, ways, a, b = notebook.cells
    assert "HEAD?labpath=notebooks/x.ipynb" in ways.source
    assert (a.metadata["tags"], b.metadata["tags"]) == (["hide-output"], [])
    assert figures == {"figures/x-b-0.png": drawn}
    assert 'alt="a &quot;b&quot;"' in b.outputs[0]["data"]["text/html"]
    nbformat.validate(notebook)


# --- the numbers of the two pages without a kernel --------------------------------


def test_the_stored_steps_are_the_models_own():
    stored = json.loads((steps.HERE / "steps.json").read_text(encoding="utf-8"))
    again = steps.steps()
    assert len(stored["sentences"]) == len(again["sentences"])
    for old, new in zip(stored["sentences"], again["sentences"], strict=True):
        for name in ("language", "sentence", "source", "text"):
            assert old[name] == new[name]
        for before, after in zip(old["steps"], new["steps"], strict=True):
            assert before["word"] == after["word"]
            assert before["weights"] == pytest.approx(after["weights"], abs=0.005)
            assert before["scores"] == pytest.approx(after["scores"], abs=0.05)
    assert stored["one"]["sizes"] == again["one"]["sizes"]
    for name in ("query", "context", "after"):
        assert stored["one"][name] == pytest.approx(again["one"][name], abs=0.005)
