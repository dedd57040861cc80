"""The translator of a page: equal to the course's own in every word and weight."""

import pytest
import torch
from helpers.repo import ROOT

from tools.site.check import served
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.decoding import greedy_decode, translate_tokens
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


@pytest.fixture(scope="module")
def site():
    with served(ROOT) as base:
        yield base


@pytest.fixture
def page(browser, site):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(60_000)
    page.goto(f"{site}utils/")
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


def test_a_clock_and_full_numbers_are_read_too(page, site, tmp_path):
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


def test_a_model_of_another_kind_is_refused_in_words(page):
    with pytest.raises(Exception, match=r"a page can't run this model:.*fixed"):
        page.evaluate(TRANSLATE, ["/data/models/village-en-fr-fixed.safetensors", []])


def test_a_text_is_cut_as_by_the_course(page):
    texts = [
        "I don't like the baker\u2019s DOG, do you?",
        "They'll say: 'no'! It's 3 o'clock - well-known n'tx",
        "  \u00c9va ca\u0301t\n\t<eos> a_b \u4f60\u597d it'd've ",
        "",
    ]
    cut = page.evaluate(
        """async (texts) => {
            const { tokenize } = await import("/utils/translator.js");
            return texts.map(tokenize);
        }""",
        texts,
    )
    assert cut == [tokenize(text, "en") for text in texts]


def test_the_nearest_word_is_by_letters_changed(page):
    pairs = [("cat", "cat"), ("zebra", "zero"), ("apple", "apples"), ("", "ab")]
    found = page.evaluate(
        """async (pairs) => {
            const { distance } = await import("/utils/translator.js");
            return pairs.map(([a, b]) => distance(a, b));
        }""",
        pairs,
    )
    assert found == [0, 2, 1, 2]
