"""The course as a reader meets it: JupyterLab as `make lab` starts it, in a browser.

The notebooks are copies without outputs, so whatever a test sees was made in its run.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import nbformat
import pytest
from helpers.repo import ROOT
from nbconvert.preprocessors import ClearOutputPreprocessor

pytestmark = pytest.mark.skipif(not shutil.which("make"), reason="needs make")
NOTEBOOKS = ("00_start_here", "03_additive_scoring", "07_heatmaps")
ERROR = '[data-mime-type="application/vnd.jupyter.error"], [data-mime-type$="stderr"]'
ALL_RUN = """(error) => {
    const all = document.querySelectorAll(".jp-CodeCell .jp-InputPrompt");
    // A folded cell has a second prompt, which stays empty.
    const prompts = [...all].filter(p => !p.closest(".jp-Placeholder"));
    return document.querySelector(error) ||
        prompts.length && prompts.every(p => /^\\[\\d+\\]:$/.test(p.textContent));
}"""


def lab_command():
    """What `make lab` gives to Python: make says it, without running it."""
    quiet = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    make = ["make", "-C", ROOT, "-n", "lab"]
    told = subprocess.check_output(make, text=True, env=quiet).replace("\\\n", " ")
    options = told.rpartition(" -m jupyterlab ")[2].partition("\n")[0].split()
    return [sys.executable, "-m", "jupyterlab", *options]


@pytest.fixture(scope="module")
def lab(tmp_path_factory, browser):
    """Call it with a notebook's name for its address; without, what `make lab` opens.

    The server's settings and its log are kept in its folder, apart from the user's.
    """
    folder = tmp_path_factory.mktemp("a course")
    (folder / "notebooks").mkdir()
    (folder / "data").symlink_to(ROOT / "data")
    shutil.copytree(ROOT / "notebooks" / "img", folder / "notebooks" / "img")
    for name in NOTEBOOKS:
        notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
        notebook.metadata.pop("widgets", None)
        notebook, _ = ClearOutputPreprocessor().preprocess(notebook, {})
        nbformat.write(notebook, folder / "notebooks" / f"{name}.ipynb")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--no-browser", "--allow-root", f"--ServerApp.port={port}"]
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA")}
    own |= {"JUPYTER_RUNTIME_DIR": str(folder), "HOME": str(folder)}
    own |= {"JUPYTER_TOKEN": "course"}
    command = [*lab_command(), *options]

    def address(name=None):
        place = f"lab/workspaces/{name}/tree/notebooks/{name}.ipynb" if name else ""
        return f"http://127.0.0.1:{port}/{place}?token=course"

    with (
        open(folder / "server.log", "wb") as log,
        subprocess.Popen(
            command, cwd=folder, env=os.environ | own, stdout=log, stderr=log
        ) as process,
    ):
        try:
            while not [*folder.glob("jpserver-*.json")]:  # written when it answers
                assert process.poll() is None, (folder / "server.log").read_text()
                time.sleep(0.05)
            yield address
        finally:
            process.terminate()


@pytest.fixture
def page(browser, tmp_path):
    """A page in which every notebook opens alone; a picture of its end is kept."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(3_600_000)  # an hour: on no slow machine
    yield page
    page.screenshot(path=tmp_path / "end.png")
    page.close()


def open_notebook(page, address):
    page.goto(address)
    page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-CodeCell")
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()


def run_all(page):
    """Wait for a number beside every code cell; no error is shown."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    page.wait_for_function(ALL_RUN, arg=ERROR)
    assert page.locator(ERROR).all_text_contents() == []


def test_a_first_reader_sees_a_heatmap(lab, page):
    open_notebook(page, lab())
    run_all(page)
    heatmap = page.locator(".jp-OutputArea-output img").first
    heatmap.scroll_into_view_if_needed()
    assert heatmap.evaluate("picture => picture.naturalWidth") > 200
    assert page.get_by_text("official Jupyter news").count() == 0
    square = page.get_by_label("伊娃 Eva: the")
    square.press("ArrowRight")  # the notebook leaves it alone
    page.get_by_text("1 of 9 are drawn.").wait_for()


def test_the_explorer_runs_in_a_notebook_and_asks_no_other_host(lab, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    open_notebook(page, lab("07_heatmaps"))
    run_all(page)
    whole = page.locator(".jp-OutputArea-output .explorer")
    text = whole.locator(".ex-text > [lang]")
    text.get_by_text("Le vieux chapeau n'est pas bleu.").wait_for()
    whole.get_by_role("button", name="la 0.00").click()
    text.get_by_text("La vieille porte n'est pas bleu.").wait_for()
    for width, height in ((1366, 768), (1280, 720)):
        page.set_viewport_size({"width": width, "height": height})
        whole.scroll_into_view_if_needed()
        box = whole.bounding_box()
        assert box["height"] <= 560 and box["x"] + box["width"] <= width
    whole.get_by_label("into").select_option("Chinese")
    sentence = whole.get_by_label("English sentence")
    sentence.fill("The girl sings.")
    page.keyboard.press("Enter")  # the notebook doesn't take the key for its own
    text.get_by_text("女孩").wait_for()
    sentence.press_sequentially(" dd")
    assert sentence.input_value() == "The girl sings. dd"
    assert page.locator(ERROR).all_text_contents() == []
    hosts = {urlsplit(url).hostname for url in asked}
    assert hosts <= {"127.0.0.1", None, ""}


SCORES = """def my_scores(queries, keys, W, U, v):
    sums = (queries @ W.T).unsqueeze(2) + (keys @ U.T).unsqueeze(1)
    return sums.tanh() @ v
"""


def test_an_exercise_answers_a_wrong_and_a_right_attempt(lab, page):
    open_notebook(page, lab("03_additive_scoring"))
    run_all(page)  # its first cells import what a check needs
    cell = page.locator(".jp-CodeCell", has_text="exercises.additive_scores(")
    editor, answer = cell.locator(".cm-content"), cell.locator(".jp-OutputArea-output")

    cells = nbformat.read(ROOT / "notebooks/03_additive_scoring.ipynb", 4).cells
    (starter,) = [c.source for c in cells if "additive_scores(my" in c.source]

    def attempt(function, expected):
        editor.click()
        code = re.sub(r"def my_scores.*?\.\.\.[^\n]*\n", function, starter, flags=re.S)
        page.keyboard.press("Control+a")
        page.keyboard.insert_text(code)
        page.keyboard.press("Control+Enter")
        answer.get_by_text(expected).wait_for()

    attempt(SCORES.replace(".tanh()", ""), "the tanh is missing")
    attempt(SCORES, "✓ Right")
    assert page.locator(ERROR).all_text_contents() == []
