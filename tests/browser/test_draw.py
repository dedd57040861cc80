"""Predictions that are drawn, by mouse and by keys, on a page of a phone's width."""

import re

import pytest
from helpers.repo import ROOT

from tools.site.check import HOST, serve
from utils.explorer import drawing

BLEU = drawing("curve", ["3–6", "7–10"], [66.4, 31.5], "BLEU")
SHARES = drawing("shares", ["I", "love", "you"], [0.2, 0.6, 0.2], "Shares")
WEIGHTS = [[0.15, 0.77, 0.08], [0.91, 0.06, 0.03]]
MAP = drawing("heatmap", ["the", "blue", "door"], WEIGHTS, "Map", ["la", "porte"])
MOUNT = """async (settings) => {
    document.documentElement.lang = settings.lang ?? "en";
    const { mount } = await import("/utils/draw.js");
    document.body.innerHTML = '<link rel=stylesheet href=/utils/explorer.css><main>';
    mount(document.querySelector("main"), settings);
}"""


@pytest.fixture
def shown(browser):
    """`shown(settings)`: a page with a drawing, empty, and without the answer."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    serve(page, ROOT)
    page.goto(f"{HOST}utils/draw.js")

    def start(settings, button="show what"):
        page.evaluate(MOUNT, settings)
        assert not page.locator(".dr-its[data-v]:not([data-v=''])").count()
        text = page.locator("main").inner_text()
        assert not re.search("66|31|[.]([26]0|77|91)", text)
        assert page.get_by_role("button", name=button).is_disabled()
        return page

    yield start
    page.close()


def answered(page):
    page.get_by_role("button", name="show what").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    return page.get_by_role("status").inner_text()


def press(page, first, keys):
    page.get_by_label(first, exact=True).focus()
    for key in keys.split():
        page.keyboard.press(key)


def drag(page, *places):
    """The mouse goes through places, each in shares of the drawing's size."""
    box = page.locator(".dr-area, tbody").bounding_box()
    for x, y in places:
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
        page.mouse.down()
    page.mouse.up()


def test_a_curve_by_mouse(shown):
    drag(page := shown(BLEU), (0.25, 0.4), (0.75, 0.5))
    said = "On average, your curve is 12.5 BLEU away. 3–6: you 60,"  # 6.4 and 18.5
    assert answered(page).startswith(said)


def test_shares_by_keys_add_up_to_one(shown):
    press(page := shown(SHARES), "I", "End ArrowDown ArrowDown Tab End ArrowDown")
    assert page.get_by_role("status").inner_text() == "0.01 is left to share out."
    press(page, "you", "ArrowUp")
    said = answered(page)  # 0.98, 0.01, 0.01 against 0.2, 0.6, 0.2
    assert said.startswith("The differences add up to 1.56. I: you 0.98, measured 0.20")


def test_a_heatmap_by_mouse_and_by_keys(shown):
    drag(page := shown(MAP), (0.65, 0.25), (0.65, 0.75))
    assert answered(page).startswith("The darkest square is right in 1 of 2 rows.")
    press(page := shown(MAP), "la: the", "ArrowRight Tab Space")
    assert answered(page) == "The darkest square is right in 2 of 2 rows."


def test_on_a_chinese_page_it_speaks_chinese(shown):
    page = shown({**SHARES, "lang": "zh-CN"}, "看看实测结果")
    press(page, "I", "End")
    assert page.get_by_role("status").inner_text() == "都画好了。"
    page.get_by_role("button", name="看看实测结果").click()
    said = "各处的差加起来是 1.60。I：你画的是 1.00，实测是 0.20；love：你"
    assert page.get_by_role("status").inner_text().startswith(said)
    page.get_by_text("你的猜测").wait_for()
