"""The lectures: what the slides show, and that every slide fits, without a network.

Where the packages that the pages load can't be fetched, the tests in a browser are
skipped and say so.
"""

import re

import nbformat
import pytest
from helpers.repo import NUMBERED, PATIENCE, ROOT, read, script
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

build = script(ROOT / "notebooks" / "slides" / "build.py")
LECTURES = [
    path for path in NUMBERED if build.prepared(nbformat.read(path, as_version=4)).cells
]
KINDS = {"slide", "subslide", "fragment", "-", "notes", "skip"}

SMALLEST_TYPE = 16  # pixels of 720
# Slides that are too full since a formatter sets the code, an argument a line: by deck.
# A number here may fall and must not rise; the decks are to give way to lectures.
TOO_FULL = {"01": 3, "04": 1, "05": 2, "06": 1, "07": 2, "08": 6, "09": 1, "11": 2}
TOO_FULL |= {"12": 2, "13": 5}
SMALLEST_FIGURE = 0.4  # of a figure's own pixels, two for one of a page

# What a slide holds: how far down and right it reaches, what is wider than its box, the
# smallest type, the smallest scale of a figure. Formulas count as boxes.
MEASURE = """() => {
  const slide = Reveal.getCurrentSlide();
  const found = {bottom: 0, right: 0, wide: [], type: 99, scale: 9, here: ""};
  for (const box of slide.querySelectorAll("*")) {
    const formula = box.closest("mjx-container");
    if (box.closest("aside") || (formula && formula !== box)) continue;
    const place = box.getBoundingClientRect();
    if (!place.width || !place.height) continue;
    found.bottom = Math.max(found.bottom, place.bottom);
    found.right = Math.max(found.right, place.right);
    if (box.clientWidth && box.scrollWidth > box.clientWidth + 4)
      found.wide.push(box.tagName + " " + box.textContent.slice(0, 40));
    if (box.closest(".figure") && box.tagName === "IMG")
      found.scale = Math.min(found.scale, place.width / box.naturalWidth,
                             place.height / box.naturalHeight);
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
    if found["scale"] < SMALLEST_FIGURE:
        wrong.append(f"a figure shrunk to {found['scale']:.2f}")
    if not found["here"].strip() and found["scale"] == 9:
        wrong.append("an empty slide")
    return [f"{found['here']!r}: {text}" for text in wrong]


# --- what is shown ---------------------------------------------------------------


def cell(source, kind=None):
    slideshow = {"slideshow": {"slide_type": kind}} if kind else {}
    return new_markdown_cell(source, metadata=slideshow)


def shown(*cells):
    """(slide type, text) of what a notebook of these cells shows."""
    prepared = build.prepared(new_notebook(cells=list(cells)))
    return [(build.slide_type(c), c.source.strip()) for c in prepared.cells]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[next](02_additive_scoring.ipynb)", "[next](02_additive_scoring.html)"),
        ("See [the words](GLOSSARY.md).", "See the words."),  # no slides lead there
        ("## Learned\n\n## Exercises\n\n1. Do.", "## Learned"),
    ],
)
def test_what_a_cell_shows(source, expected):
    assert shown(cell("new"), cell("old", "skip"), cell(source, "slide")) == [
        ("slide", expected)
    ]


def test_long_paragraphs_become_notes():
    long, short = "word " * build.LONG_PARAGRAPH + "end.", "**Predict.** How many?"
    text = f"## Title\n\n{long}\n\n$$x$$\n\n{short}"
    assert shown(cell(text, "slide")) == [
        ("slide", f"## Title\n\n$$x$$\n\n{short}"),
        ("notes", long),
    ]
    assert shown(cell(long, "slide")) == [("slide", long)]  # else nothing is left
    assert shown(cell(f"## Title\n\n{long}", "-")) == [("-", f"## Title\n\n{long}")]


def test_each_heading_and_each_second_table_begins_a_slide():
    table = "| a |\n|---|\n| 1 |"
    text = f"Before\n\n## One\n\n{table}\n\nThen:\n\n{table}\n\n### Two\n\nEnd"
    kinds = [kind for kind, _ in shown(cell(text, "-"))]
    assert kinds == ["-", "slide", "subslide", "subslide"]


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_the_slide_types_are_known_and_the_title_comes_first(path):
    notebook = nbformat.read(path, as_version=4)
    assert {build.slide_type(c) for c in notebook.cells} <= KINDS
    assert build.slide_type(notebook.cells[0]) == "slide"


# --- the instructor's page --------------------------------------------------------

TEACHING = read("notebooks/INSTRUCTOR.md")
DECIMAL = re.compile(r"(?<![\d.])\d+\.\d+")


def about():
    """(notebook's number, what the instructor's page says of it).

    The questions on the core have numbers of their own.
    """
    said = re.findall(r"^### (\d\d) (.+?)(?=^##)", TEACHING, re.M | re.S)
    quiz = TEACHING.split("## Quiz")[1]
    for question in re.split(r"^(?=\*\*\d+\.\*\*)", quiz, flags=re.M)[1:]:
        number = re.search(r"\(Notebook\s+(\d\d)\)", question)[1]
        if number >= "07":
            said.append((number, question.split("**", 2)[2]))
    return said


def figures_not_in(text, notebook):
    """Decimal numbers of a text that no cell or output of the notebook begins with."""
    content = [c.source for c in notebook.cells]
    for c in notebook.cells:
        for output in c.get("outputs", []):
            content.append(output.get("text", output.get("data", {}).get("text/plain")))
    known = DECIMAL.findall("\n".join(filter(None, content)))
    return [n for n in DECIMAL.findall(text) if not any(k.startswith(n) for k in known)]


@pytest.mark.parametrize(("number", "text"), about(), ids=[n for n, _ in about()])
def test_the_instructor_quotes_figures_that_the_notebook_has(number, text):
    (path,) = build.NOTEBOOKS.glob(f"{number}_*.ipynb")
    assert not figures_not_in(text, nbformat.read(path, as_version=4))


def test_a_figure_that_a_notebook_does_not_have_is_noticed():
    output = new_output("stream", text="BLEU 89.9")
    cells = [cell("It is 0.373."), new_code_cell("1", outputs=[output])]
    assert figures_not_in("0.37, 89.9, 12.5", new_notebook(cells=cells)) == ["12.5"]


def test_every_chapter_of_the_instructor_s_page_can_be_reached():
    anchors = re.findall(r"\]\(#([\w-]+)\)", TEACHING)
    headings = re.findall(r"^## (.+)$", TEACHING, re.M)
    assert anchors == [heading.lower().replace(" ", "-") for heading in headings]
    assert {n for n, _ in about()} >= {path.name[:2] for path in LECTURES}


# --- in the browser --------------------------------------------------------------


@pytest.fixture(scope="module")
def slides(tmp_path_factory, browser):
    """A folder with all that the pages load; `opened` writes a page when it is used."""
    out = tmp_path_factory.mktemp("slides")
    try:
        build.write([], out)
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


def opened(tab, slides, name):
    """The tab with a notebook's slides, or with a page that a test has written."""
    if not (slides / f"{name}.html").exists():
        build.write([build.NOTEBOOKS / f"{name}.ipynb"], slides)
    tab.goto((slides / f"{name}.html").as_uri())
    tab.wait_for_function("window.Reveal && Reveal.isReady()")
    tab.evaluate("MathJax.startup.promise")
    return tab


def walk(tab):
    """Press Space from the first slide to the last: the measures of each."""
    measures, places = [], set()
    while True:
        places.add(tab.evaluate("JSON.stringify(Reveal.getIndices())"))
        if not tab.evaluate("Reveal.availableFragments().next"):
            measures.append(tab.evaluate(MEASURE))
            if tab.evaluate("Reveal.isLastSlide()"):
                break
        tab.keyboard.press("Space")
        assert tab.evaluate("JSON.stringify(Reveal.getIndices())") not in places
    assert len(measures) == tab.evaluate("Reveal.getTotalSlides()")
    return measures


@pytest.mark.parametrize("path", LECTURES, ids=lambda path: path.stem)
def test_every_slide_fits_and_nothing_is_asked_of_a_network(path, slides, tab):
    opened(tab, slides, path.stem)
    problems = [problem for found in walk(tab) for problem in misfits(found)]
    full = [problem for problem in problems if "reaches to" in problem]
    assert len(full) <= TOO_FULL.get(path.stem[:2], 0), "\n".join(full)
    assert problems == full, "\n".join(problems)
    assert not tab.trouble
    assert all(url.startswith(("file:", "data:")) for url in tab.asked)
    assert not tab.locator("mjx-merror").count()  # a formula that can't be read


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("\n\n".join(["A paragraph."] * 30), "reaches to"),
        ("$$" + "x + " * 80 + "y$$", "wider than its box"),
        ("<span style='font-size: 9px'>small</span>", "type of 9"),
        ("![An empty picture.](data:image/gif;base64,R0lGODlhAQABAAAAACw=)", "empty"),
    ],
)
def test_a_slide_that_does_not_fit_is_noticed(source, problem, slides, tab):
    notebook = new_notebook(cells=[cell("# A title", "slide"), cell(source, "slide")])
    (slides / "misfit.html").write_text(build.page(notebook), encoding="utf-8")
    opened(tab, slides, "misfit")
    title, found = walk(tab)
    assert not misfits(title)
    assert any(problem in text for text in misfits(found))


def test_a_page_that_asks_for_something_else_is_noticed(slides, tab):
    notebook = new_notebook(cells=[cell("# A\n\n![x](img/none.png)", "slide")])
    (slides / "asking.html").write_text(build.page(notebook), encoding="utf-8")
    opened(tab, slides, "asking")
    assert any("none.png" in url for url in tab.trouble)


def test_chinese_words_are_not_boxes(slides, tab):
    opened(tab, slides, "00_start_here")
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
    opened(tab, slides, "02_additive_scoring")
    tab.keyboard.press("Space")
    noted = tab.evaluate("Reveal.getCurrentSlide().querySelector('aside').innerText")
    with tab.context.expect_page() as popup:
        tab.keyboard.press("s")
    notes = popup.value.locator(".speaker-controls-notes .value")
    notes.filter(has_text=noted.split(".")[0].strip()).wait_for()
    assert notes.locator("svg").count()  # formulas, once each
    assert not notes.locator("math").count()
