"""The lectures on a screen of 1280 x 720: slides fit, are legible, need no network.

Where the packages that the pages load can't be fetched, the tests in a browser are
skipped and say so.
"""

import re

import pytest
from helpers.repo import LECTURES

from tools.slides import build

SMALLEST_TYPE = 20  # pixels of 720; formulas have small indices
SMALLEST_SCALE = 0.8  # of the size that a figure was drawn for

# What a slide holds: how far down and right it reaches, what is wider than its box, the
# smallest type, the smallest scale of a picture. Formulas count as boxes.
MEASURE = """() => {
  const slide = Reveal.getCurrentSlide();
  const found = {bottom: 0, right: 0, wide: [], type: 99, scales: [], here: ""};
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
      found.scales.push(box.naturalWidth > 1 ? scale : 0);
    }
    if ([...box.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()))
      found.type = Math.min(found.type, parseFloat(getComputedStyle(box).fontSize));
  }
  found.here = slide.innerText.slice(0, 50);
  return found;
}"""


def misfits(found):
    """What is wrong with a slide of 1280 x 720 pixels, by its measures."""
    wrong = [f"wider than its box: {text}" for text in found["wide"]]
    if found["bottom"] > 690 or found["right"] > 1240:
        wrong.append(f"reaches to {found['right']:.0f}, {found['bottom']:.0f}")
    if found["type"] < SMALLEST_TYPE:
        wrong.append(f"type of {found['type']} pixels")
    if (scale := min(found["scales"], default=1)) < SMALLEST_SCALE:
        wrong.append(f"a picture shrunk to {scale:.2f}")
    if not found["here"].strip():
        wrong.append("an empty slide")
    return [f"{found['here']!r}: {text}" for text in wrong]


@pytest.fixture(scope="module")
def slides(tmp_path_factory, browser):
    """A folder with all that the pages load, and the lectures' pages."""
    out = tmp_path_factory.mktemp("slides")
    try:
        build.write(LECTURES, out)
    except OSError as error:
        pytest.skip(f"the packages can't be downloaded: {error}")
    return out


@pytest.fixture
def tab(browser):
    """A tab without a network; .trouble lists what it asked in vain, and errors."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 720}, offline=True, reduced_motion="reduce"
    )
    tab = context.new_page()
    tab.set_default_timeout(0)
    tab.trouble, tab.asked = [], []
    tab.on("pageerror", lambda error: tab.trouble.append(str(error)))
    tab.on("requestfailed", lambda request: tab.trouble.append(request.url))
    tab.on("request", lambda request: tab.asked.append(request.url))
    yield tab
    context.close()


def open_slides(tab, path):
    tab.goto(path.as_uri())
    tab.wait_for_function("window.Reveal && Reveal.isReady()")
    tab.evaluate("MathJax.startup.promise")


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_every_slide_fits_and_nothing_is_asked_of_a_network(path, slides, tab):
    open_slides(tab, slides / f"{path.stem}.html")
    measures = [tab.evaluate(MEASURE)]
    while not tab.evaluate("Reveal.isLastSlide()"):
        tab.keyboard.press("Space")
        measures.append(tab.evaluate(MEASURE))
    assert len(measures) == tab.evaluate("Reveal.getTotalSlides()")
    assert any(m["scales"] for m in measures)
    assert [problem for found in measures for problem in misfits(found)] == []
    assert not tab.trouble
    assert all(url.startswith(("file:", "data:")) for url in tab.asked)
    assert not tab.locator("mjx-merror").count()  # a formula that can't be read


def test_chinese_words_are_not_boxes(slides, tab):
    open_slides(tab, slides / f"{LECTURES[0].stem}.html")
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
    open_slides(tab, slides / f"{LECTURES[0].stem}.html")
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
