"""Sheets to print: every question, no answer, nothing that only a screen shows."""

import html
import re
import subprocess
import sys

import pytest
import worksheets
from helpers.repo import CHROMIUM, ROOT, read

PAGE = "notebooks/INSTRUCTOR.md"


@pytest.fixture(scope="module")
def sheets(tmp_path_factory):
    """{name: its page}, written without a browser."""
    folder = tmp_path_factory.mktemp("sheets")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(worksheets, "OUT", folder)
        patch.setattr(worksheets, "chromium", lambda: None)
        worksheets.main()
    return {path.stem: path.read_text("utf-8") for path in folder.glob("*.html")}


def words(page):
    """What a reader reads."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_every_question_is_on_the_sheet():
    numbers = [number for number, _, _ in worksheets.questions()]
    asked = re.findall(r"^\*\*(\d+)\.\*\*", read(PAGE), re.MULTILINE)
    assert numbers == asked and len(asked) > 40


def test_no_answer_is_on_the_sheet(sheets):
    answers = re.findall(r"</summary>\s+(.*?)\s+</details>", read(PAGE), re.DOTALL)
    assert len(answers) > 40
    shown = words(sheets["quiz"])
    for answer in answers:
        assert answer.splitlines()[0][:40] not in shown
    assert "Answer" not in shown


def test_the_toy_has_its_numbers_and_not_its_results(sheets):
    shown = words(sheets["toy"])
    assert "love [0.0, 1.0]" in shown and "[-2.0, -2.0]" in shown
    assert "Step 5" in shown
    for result in ("0.762", "0.964", "3.046", "0.60", "0.6 ", "0.20"):
        assert result not in shown


def test_the_notebooks_cells_print_nothing(capsys):
    worksheets.heatmap()
    assert capsys.readouterr().out == ""


def test_the_curve_is_that_of_notebook_01(sheets):
    assert "BLEU from 0 to 100" in words(sheets["curve"])
    assert "<svg" in sheets["curve"] and "<svg" in sheets["heatmap"]


def test_formulas_and_chinese_are_drawn(sheets):
    for name, page in sheets.items():
        assert not re.search(r"\$|[\u4e00-\u9fff]", words(page)), name
        assert all('alt="' in img for img in re.findall(r"<img [^>]*>", page)), name
        assert not re.search(r"(?:src|href)=.(?!data:|#)", page), name


@pytest.mark.slow
@pytest.mark.skipif(not CHROMIUM, reason="needs Chromium, which is not installed")
def test_each_sheet_is_printed(tmp_path):
    """In a process of its own: other tests of this one may have a browser open."""
    lines = "from pathlib import Path", "from tools import worksheets"
    lines += f"worksheets.OUT = Path({str(tmp_path)!r})", "worksheets.main()"
    subprocess.run([sys.executable, "-c", "\n".join(lines)], cwd=ROOT, check=True)
    printed = {path.stem: path.read_bytes() for path in tmp_path.glob("*.pdf")}
    pages = {name: data.count(b"/Type /Page\n") for name, data in printed.items()}
    assert pages["toy"] == pages["curve"] == pages["heatmap"] == 1
    assert pages["quiz"] > 5


def test_a_grid_stands_on_one_page_with_its_heading(sheets):
    (grid,) = re.findall(r'<div class="question">(.*?)</div>', sheets["heatmap"], re.S)
    assert "A sentence of your own" in grid and "<svg" in grid
