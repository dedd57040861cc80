"""The site: what is changed for it, its numbers, and that its check finds faults.

The site itself is built and checked by `make site`.
"""

import json

import pytest
from helpers.repo import ROOT

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


def test_what_a_notebook_folds_the_site_folds(source):
    import nbformat
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    picture = new_output(
        "display_data",
        {"image/png": "AAAA"},
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
    assert figures == {"figures/x-b-0.png": b"\0\0\0"}
    assert 'alt="a &quot;b&quot;" width="7"' in b.outputs[0]["data"]["text/html"]
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
