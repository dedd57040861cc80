"""The lectures on a screen of 1280 x 720: slides fit, are legible, need no network.

Where the packages that the pages load can't be fetched, the tests in a browser are
skipped and say so.
"""

import re
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pytest
from helpers.repo import LECTURES, PATIENCE
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tools.slides import build

SMALLEST_TYPE = 20  # pixels of 720; formulas have small indices
SMALLEST_SCALE = 0.8  # of the size that a figure was drawn for

# What a slide holds: how far down and right it reaches, what is wider than its box, the
# smallest type, the smallest scale of a picture. Formulas count as boxes.
MEASURE = """() => {
  const slide = Reveal.getCurrentSlide();
  const found = {bottom: 0, right: 0, wide: [], type: 99, pictures: [], here: ""};
  for (const box of slide.querySelectorAll("*")) {
    const formula = box.closest("mjx-container");
    if (box.closest("aside") || (formula && formula !== box)) continue;
    const place = box.getBoundingClientRect();
    if (!place.width || !place.height) continue;
    found.bottom = Math.max(found.bottom, place.bottom);
    found.right = Math.max(found.right, place.right);
    if (box.clientWidth && box.scrollWidth > box.clientWidth + 4)
      found.wide.push(box.tagName + " " + box.textContent.slice(0, 40));
    if (box.tagName === "IMG") {
      const width = +box.getAttribute("width") || box.naturalWidth;
      const height = +box.getAttribute("height") || box.naturalHeight;
      const scale = Math.min(place.width / width, place.height / height);
      found.pictures.push({scale: box.naturalWidth > 1 ? scale : 0, from: box.src});
    }
    if ([...box.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
      found.type = Math.min(found.type, parseFloat(getComputedStyle(box).fontSize));
  }
  found.here = slide.innerText.slice(0, 50);
  return found;
}"""


def smallest_type(address):
    """Of a drawing (SVG) at its own size; None of other pictures, and without words."""
    if not address.endswith(".svg"):
        return None
    text = Path(url2pathname(urlparse(address).path)).read_text(encoding="utf-8")
    # An index is a part of a text, and may be smaller.
    sizes = re.findall(r"<text [^>]*font-size=\"([\d.]+)\"", text)
    return min(map(float, sizes), default=None)


def misfits(found):
    """What is wrong with a slide of 1280 x 720 pixels, by its measures."""
    wrong = [f"wider than its box: {text}" for text in found["wide"]]
    if found["bottom"] > 690 or found["right"] > 1240:
        wrong.append(f"reaches to {found['right']:.0f}, {found['bottom']:.0f}")
    if found["type"] < SMALLEST_TYPE:
        wrong.append(f"type of {found['type']} pixels")
    for picture in found["pictures"]:
        drawn, scale = smallest_type(picture["from"]), picture["scale"]
        if scale < SMALLEST_SCALE:
            wrong.append(f"a picture shrunk to {scale:.2f}")
        elif drawn and drawn * scale < SMALLEST_TYPE:
            wrong.append(f"a drawing with type of {drawn * scale:.1f} pixels")
    if not found["here"].strip():
        wrong.append("an empty slide")
    return [f"{found['here']!r}: {text}" for text in wrong]


def cell(source, kind, make=new_markdown_cell):
    return make(source, metadata={"slideshow": {"slide_type": kind}})


@pytest.fixture(scope="module")
def slides(tmp_path_factory, browser):
    """A folder with all that the pages load, and the lectures' pages."""
    out = tmp_path_factory.mktemp("slides")
    try:
        build.write(LECTURES, out)
    except ConnectionError as error:
        pytest.skip(str(error))
    return out


@pytest.fixture
def tab(browser):
    """A tab without a network; .trouble lists what it asked in vain, and errors."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, offline=True, reduced_motion="reduce"
    )
    tab = context.new_page()
    tab.set_default_timeout(1000 * PATIENCE)
    tab.trouble, tab.asked = [], []
    tab.on("pageerror", lambda error: tab.trouble.append(str(error)))
    tab.on("requestfailed", lambda request: tab.trouble.append(request.url))
    tab.on("request", lambda request: tab.asked.append(request.url))
    yield tab
    context.close()


def opened(tab, path):
    tab.goto(path.as_uri())
    tab.wait_for_function("window.Reveal && Reveal.isReady()")
    tab.evaluate("MathJax.startup.promise")
    return tab


def walk(tab):
    """Press Space from the first slide to the last: the measures of each."""
    measures = [tab.evaluate(MEASURE)]
    while not tab.evaluate("Reveal.isLastSlide()"):
        tab.keyboard.press("Space")
        measures.append(tab.evaluate(MEASURE))
        assert len(measures) <= tab.evaluate("Reveal.getTotalSlides()")
    assert len(measures) == tab.evaluate("Reveal.getTotalSlides()")
    return measures


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_every_slide_fits_and_nothing_is_asked_of_a_network(path, slides, tab):
    opened(tab, slides / f"{path.stem}.html")
    problems = [problem for found in walk(tab) for problem in misfits(found)]
    assert not problems, "\n".join(problems)
    assert not tab.trouble
    assert all(url.startswith(("file:", "data:")) for url in tab.asked)
    assert not tab.locator("mjx-merror").count()  # a formula that can't be read


SMALL = '<svg xmlns="http://www.w3.org/2000/svg" width="900" height="90"></svg>'


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("\n\n".join(["A paragraph."] * 30), "reaches to"),
        ("$$" + "x + " * 80 + "y$$", "wider than its box"),
        ("<span style='font-size: 19px'>small</span>", "type of 19"),
        ("<img src='img/small.svg' style='width: 600px'>", "shrunk to 0.67"),
        ("![Nothing.](data:image/gif;base64,R0lGODlhAQABAAAAACw=)", "shrunk to 0.00"),
        ("![Nowhere.](img/gone.png)", "shrunk to 0.00"),
        ("`" + "x" * 90 + "`", "reaches to"),
    ],
)
def test_a_slide_that_does_not_fit_is_noticed(source, problem, slides, tab):
    (slides / "img" / "small.svg").write_text(SMALL)
    notebook = new_notebook(cells=[cell("# A title", "slide"), cell(source, "slide")])
    (slides / "misfit.html").write_text(build.page(notebook), encoding="utf-8")
    title, found = walk(opened(tab, slides / "misfit.html"))
    assert not misfits(title)
    wrong = misfits(found)
    assert any(problem in text for text in wrong), (wrong, found)


def test_small_type_in_a_drawing_is_noticed():
    name = build.LECTURES / "img" / "step.svg"
    assert (
        smallest_type(name.as_uri()) >= 26 and smallest_type("data:image/png") is None
    )
    found = {"wide": [], "bottom": 9, "right": 9, "type": 30, "here": "A"}
    found["pictures"] = [{"scale": 0.81, "from": name.as_uri()}]
    assert not misfits(found)
    found["pictures"][0]["scale"] = 0.81 * 20 / 26
    assert misfits(found)


def test_code_is_shown_where_the_notebook_shows_it(slides, tab):
    shown, folded = (cell(f"x = {n}", "-", new_code_cell) for n in (1, 2))
    folded.metadata["jupyter"] = {"source_hidden": True}
    notebook = new_notebook(cells=[cell("# A title", "slide"), shown, folded])
    (slides / "code.html").write_text(build.page(notebook), encoding="utf-8")
    text = (
        opened(tab, slides / "code.html").locator("section.present").last.inner_text()
    )
    assert "x = 1" in text and "x = 2" not in text


def test_a_page_that_asks_for_something_else_is_noticed(slides, tab):
    notebook = new_notebook(cells=[cell("# A\n\n![x](img/none.png)", "slide")])
    (slides / "asking.html").write_text(build.page(notebook), encoding="utf-8")
    opened(tab, slides / "asking.html")
    assert any("none.png" in url for url in tab.trouble)


def test_chinese_words_are_not_boxes(slides, tab):
    opened(tab, slides / f"{LECTURES[0].stem}.html")
    tab.keyboard.press("Space")
    printed = tab.locator("section.present:not(.stack) pre.output")
    pictures = []
    for word in "我爱":  # boxes would look alike
        printed.evaluate("(box, word) => { box.textContent = word }", word)
        tab.evaluate("document.fonts.load('20px \"Course Chinese\"', '我')")
        tab.evaluate("document.fonts.ready")
        pictures.append(printed.screenshot())
    assert pictures[0] != pictures[1]
    assert not tab.trouble


def test_the_presenter_reads_the_notes(slides, tab):
    opened(tab, slides / f"{LECTURES[0].stem}.html")
    for _ in range(9):  # to the score: its notes have a formula
        tab.keyboard.press("Space")
    noted = tab.evaluate("Reveal.getCurrentSlide().querySelector('aside').innerText")
    with tab.context.expect_page() as popup:
        tab.keyboard.press("s")
    notes = popup.value.locator(".speaker-controls-notes .value")
    notes.filter(has_text=noted.split(".")[1].strip()).wait_for()
    assert notes.locator("svg").count()  # formulas, once each
    assert not notes.locator("math").count()


def test_a_pdf_has_a_page_for_each_slide(slides, tab):
    path = LECTURES[0]
    build.print_pdfs(tab, [path], slides)
    content = (slides / f"{path.stem}.pdf").read_bytes()
    text = path.read_text(encoding="utf-8")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) == text.count('"slide"')
    box = re.search(rb"/MediaBox\s*\[\s*0 0 ([\d.]+) ([\d.]+)", content)
    width, height = map(float, box.groups())
    assert abs(width / height - 1280 / 720) < 0.01
