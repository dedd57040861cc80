"""The course as a reader meets it: JupyterLab as `make lab` starts it, in a browser.

The notebooks are copies without outputs, so whatever a test sees was made in its run.
"""

import io
import re
import shutil

import nbformat
import pytest
from helpers.repo import PATIENCE, ROOT, lab_arguments, server, until
from PIL import Image

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")
NOTEBOOKS = ("00_start_here", "02_additive_scoring", "06_heatmaps")
ERROR = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type$="stderr"]'
ALL_RUN = """(error) => {
    const all = document.querySelectorAll(".jp-CodeCell .jp-InputPrompt");
    // A folded cell has a second prompt, which stays empty.
    const prompts = [...all].filter(p => !p.closest(".jp-Placeholder"));
    return document.querySelector(error) ||
        prompts.length && prompts.every(p => /^\\[\\d+\\]:$/.test(p.textContent));
}"""
NAMELESS = """(explorer) => {
    const all = [...explorer.querySelectorAll("input, select, button, [tabindex]")];
    const named = (control) => control.labels?.length || control.textContent.trim();
    return all.filter((control) => !named(control)).map((c) => c.outerHTML);
}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    """Call it with a notebook's name for its address, token included."""
    folder = tmp_path_factory.mktemp("a course")
    (folder / "notebooks").mkdir()
    (folder / "data").symlink_to(ROOT / "data")
    shutil.copytree(ROOT / "notebooks" / "img", folder / "notebooks" / "img")
    for name in NOTEBOOKS:
        notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        notebook.metadata.pop("widgets", None)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = [], None
        nbformat.write(notebook, folder / "notebooks" / f"{name}.ipynb")
    with server(folder, lab_arguments()) as (base, token):

        def address(name=None):
            """Of a notebook; without a name, of what `make lab` opens."""
            place = f"lab/workspaces/{name}/tree/notebooks/{name}.ipynb" if name else ""
            return f"{base}/{place}?token={token}"

        yield address


@pytest.fixture
def page(browser, tmp_path):
    """A page in which every notebook opens alone; a picture of its end is kept."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(1000 * PATIENCE)
    yield page
    page.screenshot(path=tmp_path / "end.png")
    page.close()


def open_notebook(page, address):
    page.goto(address)
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()


def run_all(page):
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()


def wait_until_run(page):
    """Wait for a number beside every code cell, or for an error."""
    page.wait_for_function(ALL_RUN, arg=ERROR)
    assert page.locator(ERROR).all_text_contents() == []


def test_a_first_reader_sees_a_heatmap(lab, page, tmp_path):
    open_notebook(page, lab())
    run_all(page)
    heatmap = page.locator(".jp-OutputArea-output img").first
    heatmap.scroll_into_view_if_needed()
    wait_until_run(page)
    shown = Image.open(io.BytesIO(heatmap.screenshot(path=tmp_path / "heatmap.png")))
    pixels = [color for _, color in shown.convert("RGB").getcolors(1_000_000)]
    assert len(pixels) > 100 and min(shown.size) > 200
    assert any(b > 90 and r < 30 for r, g, b in pixels), "no cell is dark blue"
    assert page.get_by_text("official Jupyter news").count() == 0


def test_the_explorer_answers_to_hand_and_keys(lab, page, tmp_path):
    open_notebook(page, lab("06_heatmaps"))
    run_all(page)
    wait_until_run(page)
    whole = page.locator(".jp-OutputArea-output", has=page.get_by_label("into"))
    words, picture = whole.locator("[role=status] span"), whole.locator("img")

    def field(label):
        return whole.get_by_label(label, exact=True)

    def press(*keys):
        for key in keys:
            page.keyboard.press(key)

    def fill(label, text):
        field(label).fill(text)
        field(label).press("Enter")

    def marked(text):
        """Wait until this word is the marked one; what the picture says is returned."""
        words.locator("[aria-current=step]", has_text=text).wait_for()
        return until(lambda: found if (found := said())[1] == text else None)[0]

    def said():
        text = picture.get_attribute("alt")
        return text, re.match(r"step \d+ of \d+ writes (\S+?)( \(forced\))?\. ", text)[
            1
        ]

    picture.scroll_into_view_if_needed()
    first = marked("le")
    assert whole.evaluate(NAMELESS) == []
    for width, height in ((1366, 768), (1280, 720)):  # of a classroom's screens
        page.set_viewport_size({"width": width, "height": height})
        field("into").scroll_into_view_if_needed()
        page.screenshot(path=tmp_path / f"explorer {width}.png")
        box = whole.bounding_box()
        assert box["height"] <= 560 and box["x"] + box["width"] <= width

    field("step").focus()  # from here on by keys alone
    press("ArrowUp")
    marked("vieux")
    press("Tab", "Enter")  # back
    assert marked("le") == first
    press("Tab", "Space")  # next
    marked("vieux")
    press("Tab", *"vieille", "Enter")  # force
    assert marked("vieille").startswith("step 2 of 9 writes vieille (forced).")
    press("Tab", "Enter")  # free all words
    assert marked("le") == first

    fill("or type", "The girl sings.")
    words.get_by_text("chante").wait_for()
    field("into").select_option("Chinese")
    words.get_by_text("女孩").wait_for()
    fill("or type", "The zebra sings.")
    whole.locator("[role=status] b", has_text="zebra").wait_for()
    fill("or type", " ")
    whole.locator("[role=alert]", has_text="no word").wait_for()
    picture.wait_for(state="hidden")
    fill("or type", "The girl sings.")
    picture.wait_for(state="visible")
    assert page.locator(ERROR).all_text_contents() == []


SCORES = """def my_scores(queries, keys, W, U, v):
    sums = (queries @ W.T).unsqueeze(2) + (keys @ U.T).unsqueeze(1)
    return sums.tanh() @ v
"""


def test_an_exercise_answers_a_wrong_and_a_right_attempt(lab, page, tmp_path):
    open_notebook(page, lab("02_additive_scoring"))
    cell = page.locator(".jp-CodeCell", has_text="exercises.additive_scores(")
    editor, answer = cell.locator(".cm-content"), cell.locator(".jp-OutputArea-output")

    cells = nbformat.read(ROOT / "notebooks/02_additive_scoring.ipynb", 4).cells
    (starter,) = [c.source for c in cells if "additive_scores(my" in c.source]

    def attempt(function, expected):
        editor.click()
        code = re.sub(r"def my_scores.*?\.\.\.[^\n]*\n", function, starter, flags=re.S)
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(code)
        assert editor.inner_text().split() == code.split()
        page.keyboard.press("Control+Enter")
        answer.get_by_text(expected).wait_for()
        page.screenshot(path=tmp_path / f"{expected}.png")

    attempt(SCORES.replace(".tanh()", ""), "the tanh is missing")
    attempt(SCORES, "✓ Right")
    assert page.locator(ERROR).all_text_contents() == []
