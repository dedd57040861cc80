"""The explorer in a browser: its numbers are the course's own, and it answers.

How it runs in a notebook is tested in test_browser.py.
"""

import json
import re

import pytest
import torch
from helpers.repo import ROOT

from tools.site.check import HOST, serve
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.data import Pair
from utils.decoding import greedy_decode, translate_tokens
from utils.explorer import explore, settings
from utils.models import build_model
from utils.text import EOS, EOS_ID, tokenize

TRANSLATE = """async ([file, sentences]) => {
    const { readModel, detokenize } = await import("/utils/translator.js");
    const answer = await fetch(file);
    const model = readModel(await answer.arrayBuffer());
    return sentences.map((words) => {
        const steps = model.translate(words);
        const written = steps.map((step) => step.word);
        const text = detokenize(written.filter((w) => w !== "<eos>"), model.lang);
        return { words: written, text, weights: steps.map((step) => step.weights) };
    });
}"""


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(20_000)
    serve(page, ROOT)
    page.goto(f"{HOST}utils/explorer.js")
    yield page
    page.close()


def largest_gap(found, attention_weights):
    gaps = [
        (torch.tensor(one["weights"]) - weights).abs().max()
        for one, weights in zip(found, attention_weights, strict=True)
    ]
    return max(gaps)


@pytest.mark.parametrize("language", ["fr", "zh"])
def test_every_test_sentence_is_translated_as_by_pytorch(page, language):
    file = f"data/models/village-en-{language}.safetensors"
    model, *vocabs = load_checkpoint(ROOT / file)[:3]
    sentences = [list(pair.source) for pair in load_village("en", language)["test"]]
    expected = translate_tokens(model, sentences, *vocabs)
    for k, words in enumerate(sentences):
        if expected[k].tokens[-1] != EOS:  # cut where its batch ended: now its own end
            (expected[k],) = translate_tokens(model, [words], *vocabs)
    found = page.evaluate(TRANSLATE, [f"/{file}", sentences])
    assert [one["words"] for one in found] == [one.tokens for one in expected]
    assert [one["text"] for one in found] == [one.text for one in expected]
    assert largest_gap(found, [one.attention_weights for one in expected]) < 1e-3


def test_a_clock_and_full_numbers_are_read_too(page, tmp_path):
    """The model of notebook 08, which looks at most `reach` words from a place."""
    vocabs = load_checkpoint(ROOT / "data/models/village-en-fr.safetensors")[1:3]
    torch.manual_seed(0)
    sizes = [*map(len, vocabs), 8, 12]
    model = build_model("local", *sizes, bidirectional=True, reach=2).eval()
    save_checkpoint(tmp_path / "clock", model, *vocabs)
    sentence = "the old hat is not blue .".split()
    ids = torch.tensor([[*vocabs[0][sentence], EOS_ID]])
    (expected,), (weights,) = greedy_decode(model, ids, torch.tensor([ids.shape[1]]))
    page.route("**/clock", lambda route: route.fulfill(path=tmp_path / "clock"))
    (found,) = page.evaluate(TRANSLATE, ["/clock", [sentence]])
    assert found["words"] == vocabs[1].to_tokens(expected)
    assert largest_gap([found], [weights]) < 1e-3
    assert (weights == 0).any()


def test_a_text_is_cut_as_by_the_course_and_the_nearest_word_is_by_letters(page):
    texts = [
        "I don't like the baker\u2019s DOG, do you?",
        "They'll say: 'no'! It's 3 o'clock - well-known n'tx",
        "  \u00c9va ca\u0301t\n\t<eos> a_b \u4f60\u597d it'd've ",
        "",
    ]
    pairs = ("cat", "cat"), ("zebra", "zero"), ("apple", "apples"), ("", "ab")
    program = """async ([texts, pairs]) => {
        const { tokenize, distance } = await import("/utils/translator.js");
        const cut = texts.map((one) => tokenize(one));
        return [cut, pairs.map((two) => distance(...two))];
    }"""
    cut, distances = page.evaluate(program, [texts, pairs])
    assert cut == [tokenize(text, "en") for text in texts]
    assert distances == [0, 2, 1, 2]


# --- the explorer ---------------------------------------------------------------------

SENTENCES = ["The old hat is not blue.", "The girl sings in the garden."]
HTML = """<!doctype html><html lang="en"><head><title>x</title>
<meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="/utils/explorer.css"></head><body><main id="here"></main>
<script type="module">
import { mount } from "/utils/explorer.js";
mount(document.getElementById("here"), SETTINGS, async (name) => {
    const language = { French: "fr", Chinese: "zh" }[name];
    const answer = await fetch(`/data/models/village-en-${language}.safetensors`);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer.arrayBuffer();
});
</script></body></html>"""


@pytest.fixture
def shown(page):
    """A page with nothing but the explorer; `shown(pairs)` opens it."""
    failed = []
    page.on("pageerror", lambda error: failed.append(error))

    def start(*pairs, lang="en"):
        told = json.dumps(settings(["French", "Chinese"], SENTENCES, pairs))
        html = HTML.replace("SETTINGS", told.replace("<", "\\u003c"))
        html = html.replace('lang="en"', f'lang="{lang}"')
        page.route(
            "**/x.html", lambda r: r.fulfill(body=html, content_type="text/html")
        )
        page.goto(f"{HOST}x.html")
        page.locator("tbody tr").first.wait_for()
        return page

    yield start
    assert not failed


def assert_shows(page, sentence, forced=None, language="fr"):
    """Text and weights are those that Python's explorer finds, which are returned."""
    file = ROOT / f"data/models/village-en-{language}.safetensors"
    model, *vocabs = load_checkpoint(file)[:3]
    found = explore(model, sentence, *vocabs, forced or {})
    rows = page.locator("tbody tr").all()
    weights = [[f"{w:.2f}" for w in row] for row in found.attention_weights]
    assert [row.locator("td").all_text_contents() for row in rows] == weights
    assert page.locator(".ex-text > [lang]").text_content() == found.text
    return found


def type_in(page, label, text):
    page.get_by_label(label).fill(text)
    page.keyboard.press("Enter")


def test_the_first_sentence_is_there_with_its_numbers(shown):
    page = shown()
    assert_shows(page, SENTENCES[0])
    heads = page.locator("thead th").all_text_contents()
    assert heads == "the old hat is not blue . <eos>".split()
    page.get_by_role("button", name="bleu", exact=True).first.click()
    status = page.get_by_role("status").last
    assert re.match(r"Step 7 of 9 writes “bleu”\. .* on “blue”", status.text_content())
    scores = page.locator("tfoot td").all_text_contents()
    weights = torch.tensor([float(x.replace("−", "-")) for x in scores]).softmax(0)
    now = page.locator("tr.ex-now td").all_text_contents()
    assert [f"{w:.1f}" for w in weights] == [f"{float(w):.1f}" for w in now]


def test_a_forced_word_is_written_and_what_it_changes_is_said(shown):
    page = shown()
    free = assert_shows(page, SENTENCES[0])
    for word in ("l'", "vieille"):  # a probable word is pressed, any other is typed
        if word == "l'":
            page.locator(".ex-choices button", has_text=word).click()
        else:
            page.get_by_label("another word").fill(word)
            page.get_by_role("button", name="write").click()
        page.get_by_text("(forced)").wait_for()
        assert_shows(page, SENTENCES[0], {1: word})
        story = page.locator(".ex-story").text_content()
        assert f"writes “{free.text}”" in story
        assert story.endswith("The first row with other weights: 3. ")
        first = page.locator("tr.ex-changed").first
        assert first.evaluate("row => row.rowIndex") == 3
        page.get_by_role("button", name="undo all").click()
        page.get_by_text("(forced)").wait_for(state="detached")
        assert_shows(page, SENTENCES[0])
    type_in(page, "another word", "zèbre")
    page.get_by_text("The model can't write “zèbre”").wait_for()
    assert_shows(page, SENTENCES[0])


def test_the_first_click_after_typing_counts(shown):
    page = shown()
    for label, text in (
        ("English sentence", "The old hat is not blue"),
        ("another word", "v"),
    ):
        page.get_by_label(label).press_sequentially(text)
        page.wait_for_timeout(1000)  # it is translated
        box = page.locator("tbody th button").nth(2).bounding_box()
        page.mouse.click(box["x"] + 5, box["y"] + 5, delay=50)
        status = page.get_by_role("status").last.text_content()
        assert status.startswith("Step 3 of")
        page.locator("tbody th button").first.click()


def test_an_unknown_word_is_named_with_the_nearest_known(shown):
    page = shown()
    type_in(page, "English sentence", "The girl sings in the gardn")
    page.get_by_text("doesn't know “gardn” and reads <unk>").wait_for()
    page.get_by_role("button", name="garden", exact=True).click()
    page.get_by_text("gardn").wait_for(state="detached")
    assert_shows(page, "the girl sings in the garden")
    for bad, answer in ((" ", "Type an English"), ("the " * 31, "has 31 words")):
        type_in(page, "English sentence", bad)
        page.get_by_text(answer).wait_for()
        assert not page.locator(".ex-map").is_visible()


def test_another_language_is_loaded_or_its_failure_said_and_has_glosses(shown):
    page = shown()
    page.route("**/village-en-zh*", lambda route: route.fulfill(status=404))
    page.get_by_label("into").select_option("Chinese")
    page.get_by_text("The model can't be used: Not Found").wait_for()
    page.unroute("**/village-en-zh*")
    page.get_by_label("or pick").select_option(SENTENCES[1])
    page.get_by_text("唱歌").first.wait_for()
    found = assert_shows(page, SENTENCES[1], language="zh")
    words = page.locator("tbody th button")
    assert [word.split()[0] for word in words.all_text_contents()] == found.tokens
    girl = words.filter(has_text="女孩")
    assert girl.text_content() == "女孩 girl" and girl.get_attribute("lang") == "zh"


def test_gold_links_are_framed_where_the_model_writes_their_words(shown):
    source = "the old hat is not blue .".split()
    target = "le vieux chapeau n' est pas bleu .".split()
    sure, possible = {(0, 0), (1, 1), (2, 2), (5, 6), (0, 7)}, {(3, 4)}
    page = shown(Pair(source, target, sure, possible=possible))
    framed = page.eval_on_selector_all(
        "tbody td[data-gold]",
        """cells => cells.map(cell => [cell.cellIndex - 1,
            cell.parentElement.rowIndex - 1, cell.dataset.gold])""",
    )
    links = {**dict.fromkeys(sure, "sure"), **dict.fromkeys(possible, "possible")}
    assert {(j, i): kind for j, i, kind in framed} == links
    looks = assert_shows(page, SENTENCES[0]).attention_weights.argmax(dim=1).tolist()
    hits = sum((looks[i], i) in sure | possible for i in range(8))
    story = page.locator(".ex-story").text_content()
    assert f"{hits} of 6 rows look most at one" in story
    page.locator(".ex-choices button").last.click()  # it writes other words
    assert page.locator("td[data-gold]").count() == 0


def test_every_part_answers_to_keys_and_an_erased_word_is_read_as_unknown(shown):
    page = shown()
    assert_shows(page, SENTENCES[0])

    def press(*keys):
        for key in keys:
            page.keyboard.press(key)
        return page.evaluate("document.activeElement.textContent")

    page.get_by_label("or pick").focus()
    assert press("Tab", "Tab") == "the"  # the heatmap that scrolls, its first word
    assert press("ArrowRight", "ArrowRight") == "hat"
    press("Space")
    assert page.locator("[aria-pressed=true]").first.text_content() == "hat"
    assert_shows(page, "The old zzz is not blue.")
    assert press("Space", "Tab") == "le"
    assert_shows(page, SENTENCES[0])
    assert press("ArrowDown") == "vieux"
    assert page.get_by_role("status").last.text_content().startswith("Step 2 of 9")
    second = re.match(r"\D+", press("Tab", "Tab"))[0]  # and how probable it is
    press("Enter")
    assert page.locator(".ex-now button").text_content() == f"vieux {second} (forced)"


def test_on_a_chinese_page_only_the_words_of_the_models_are_not_chinese(shown):
    page = shown(lang="zh-CN")
    page.locator(".ex-choices button", has_text="l'").click()
    page.get_by_label("抹去 hat").click()
    story = page.locator(".ex-story").text_content()
    assert story.startswith("不干预时，模型写“") and "换了的词：第 1, " in story
    assert page.get_by_role("status").last.text_content().startswith("第 1 步（共 ")
    page.get_by_label("换一个词").fill("zèbre")
    page.get_by_role("button", name="写这个词").click()
    said = "模型写不出“zèbre”：它的词表里没有这个词。"
    assert page.get_by_role("status").last.text_content() == said
    left = page.evaluate(
        """() => {
            const own = document.querySelector(".explorer").cloneNode(true);
            own.querySelectorAll("datalist, [lang], s").forEach((one) => one.remove());
            return own.textContent;
        }"""
    )
    quoted = re.sub("“.*?”", "", left)
    assert set(re.findall("[A-Za-z]+", quoted)) == {"unk", "eos"}


@pytest.mark.parametrize("sentence", [SENTENCES[0], "the grandmother " * 14])
def test_a_phone_needs_no_sideways_scroll(shown, sentence):
    page = shown()
    page.set_viewport_size({"width": 390, "height": 844})
    type_in(page, "English sentence", sentence)
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if sentence == SENTENCES[0]:
        box, table = map(page.locator, (".ex-scrolls", ".ex-map"))
        assert table.bounding_box()["width"] <= box.bounding_box()["width"]
