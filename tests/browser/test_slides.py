"""The lectures on a screen of 1280 x 720: slides fit, are legible, need no network.

Where the packages that the pages load can't be fetched, the tests in a browser are
skipped and say so.
"""

import re

import pytest
from helpers.repo import LECTURES

from tools.slides import build

# What is wrong with the slide that is shown. Formulas count as boxes, and have small
# indices; a picture may shrink to 0.8 of the size that it was drawn for.
MISFITS = """async () => {
  const slide = Reveal.getCurrentSlide(), wrong = [], text = slide.innerText.trim();
  await document.fonts.ready;
  const font = [...document.fonts].find((f) => f.family.includes("Course Chinese"));
  if (!text) wrong.push("it is empty");
  if (/[\u4e00-\u9fff]/.test(text) && font.status !== "loaded")
    wrong.push("Chinese without its font");
  for (const box of slide.querySelectorAll("*")) {
    const formula = box.closest("mjx-container"), place = box.getBoundingClientRect();
    if (box.closest("aside") || (formula && formula !== box)) continue;
    if (place.width < 2 || place.height < 2) continue; // to be heard, not seen
    const say = (what) => wrong.push(`${what}: ${box.textContent.slice(0, 40)}`);
    if (place.bottom > 690 || place.right > 1240) say("out of the slide");
    if (box.clientWidth && box.scrollWidth > box.clientWidth + 4) say("cut off");
    const written = [...box.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (written && parseFloat(getComputedStyle(box).fontSize) < 20) say("small type");
    if (box.tagName === "IMG") {
      const width = +box.getAttribute("width") || box.naturalWidth;
      const height = +box.getAttribute("height") || box.naturalHeight;
      const scale = Math.min(place.width / width, place.height / height);
      if (box.naturalWidth < 2 || scale < 0.8)
        wrong.push(`a picture shrunk, or not there: ${box.alt.slice(0, 40)}`);
    }
  }
  return wrong.map((what) => `${text.slice(0, 40)}: ${what}`);
}"""


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
    tab.trouble = []
    tab.on("pageerror", lambda error: tab.trouble.append(str(error)))
    tab.on("requestfailed", lambda request: tab.trouble.append(request.url))
    yield tab
    context.close()


def open_slides(tab, path):
    tab.goto(path.as_uri())
    tab.wait_for_function("window.Reveal && Reveal.isReady()")
    tab.evaluate("MathJax.startup.promise")


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_every_slide_fits_and_nothing_is_asked_of_a_network(path, slides, tab):
    open_slides(tab, slides / f"{path.stem}.html")
    found = tab.evaluate(MISFITS)
    while not tab.evaluate("Reveal.isLastSlide()"):
        tab.keyboard.press("Space")
        found += tab.evaluate(MISFITS)
    assert found == [] and tab.trouble == []
    assert not tab.locator("mjx-merror").count()  # a formula that can't be read


def test_the_moving_step_lives_without_a_network_and_keeps_its_keys(slides, tab):
    open_slides(tab, slides / "1_one_vector.html")
    tab.evaluate("Reveal.slide(18)")
    rows = tab.locator(".ex-map tbody tr:visible")
    assert rows.count() == 1 and rows.inner_text().startswith("我")
    tab.get_by_role("button", name="next word").press("Space")
    tab.locator(".ex-now button").press("ArrowDown")
    assert rows.count() == 3 and "吃" in rows.last.inner_text()
    assert tab.evaluate("Reveal.getState().indexh") == 18
    tab.keyboard.press("PageDown")
    assert tab.evaluate("Reveal.getState().indexh") == 19


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
