"""The explorer: its numbers against other ways to them, its figure, its answers."""

import base64
import io
import re

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from helpers.decoding import random_model
from matplotlib.figure import Figure
from mirror import ROOT
from PIL import Image

from utils.checkpoint import load_checkpoint
from utils.decoding import translate
from utils.explorer import MAX_WORDS, Explorer, draw_step, explore
from utils.models import build_model
from utils.subwords import SubwordVocab
from utils.text import BOS_ID, EOS_ID, Vocab

SENTENCE = "The old hat is not blue."
FOLDER = ROOT / "data" / "models"
MODELS = {  # model, vocabularies
    target: load_checkpoint(FOLDER / f"village-en-{target}.safetensors")[:3]
    for target in ("fr", "zh")
}


pytestmark = pytest.mark.usefixtures("offscreen")


def run(sentence=SENTENCE, target="fr", forced=None):
    model, *vocabs = MODELS[target]
    return explore(model, sentence, *vocabs, forced=forced)


def stack(exploration, name):
    return np.stack([getattr(step, name) for step in exploration.steps])


# The numbers


WORDS = "the old baker does not sell bread".split()
VOCAB = Vocab([WORDS], "en")
PIECES = SubwordVocab.train([WORDS] * 9, "en", 19)


GIVEN = {  # what a decoder gives beside its weights, by its interface
    "fr": {"query", "scores"},
    "zh": {"query", "scores"},
    "translator": {"query", "scores"},
    "window": {"query", "scores"},
    "local-p": {"query", "scores"},
    "coverage": {"query", "scores"},
    "multi-head": {"query"},
    "rnnsearch": None,  # may give a query, needn't
    "released": None,
    "luong": set(),
    "hierarchical": set(),
    "transformer": set(),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_it_translates_as_translate_does_whatever_the_class(kind):
    vocab = PIECES if kind == "translator" else VOCAB
    model, *vocabs = MODELS.get(kind) or (random_model(kind, len(vocab)), vocab, vocab)
    ours = explore(model, SENTENCE, *vocabs)
    theirs = translate(model, SENTENCE, *vocabs)
    assert (ours.text, ours.tokens) == (theirs.text, theirs.tokens)
    assert ours.source_tokens == theirs.source_tokens
    assert ours.unknown == theirs.unknown
    np.testing.assert_allclose(
        stack(ours, "weights"), theirs.attention_weights, atol=1e-6
    )
    given = {
        name for name in ("query", "scores") if getattr(ours.steps[0], name) is not None
    }
    assert given == GIVEN[kind] or GIVEN[kind] is None
    if kind in ("fr", "coverage"):  # the scores that made the weights
        made = torch.tensor(stack(ours, "scores")).softmax(dim=-1)
        np.testing.assert_allclose(stack(ours, "weights"), made, atol=1e-5)
    axes = draw_step(ours, 1).axes
    assert len(axes) == 5 + len(given)  # heatmap, its colour bar, choices
    assert axes[-3].images[0].get_array().shape == stack(ours, "weights").shape
    plt.close("all")


@pytest.mark.parametrize("forced", [None, {2: "jeune", 4: "ne"}])
def test_every_number_follows_from_the_model(forced):
    """The steps against one pass with the whole target given, and the equations."""
    model, src_vocab, tgt_vocab = MODELS["fr"]
    found = run(forced=forced)
    source = torch.tensor([src_vocab[found.source_tokens]])
    target = torch.tensor([[BOS_ID, *tgt_vocab[found.tokens[:-1]]]])
    with torch.no_grad():
        scores, _ = model(source, target, torch.tensor([source.shape[1]]))
        h, _ = model.encoder(source, torch.tensor([source.shape[1]]))
        attention = model.decoder.attention
        for step in found.steps:
            sums = attention.W_q(torch.tensor(step.query)) + attention.W_k(h[0])
            e = attention.w_v(torch.tanh(sums)).squeeze(1)
            np.testing.assert_allclose(step.scores, e, atol=1e-4)
            np.testing.assert_allclose(step.weights, e.softmax(0), atol=1e-5)
            np.testing.assert_allclose(
                step.context, torch.tensor(step.weights) @ h[0], atol=1e-5
            )
            for j, state in enumerate(h[0]):
                c = torch.tensor(step.context)
                cosine = c @ state / (c.norm() * state.norm())
                assert step.likeness[j] == pytest.approx(cosine.item(), abs=1e-5)
    np.testing.assert_allclose(
        stack(found, "weights"), model.decoder.attention_weights[0], atol=1e-5
    )
    for step, chances in zip(found.steps, scores[0].softmax(dim=-1), strict=True):
        for word, chance in step.choices.items():
            assert chance == pytest.approx(chances[tgt_vocab[word]].item(), abs=1e-5)
        if not step.forced:
            assert step.word == next(iter(step.choices))
            best = chances.max().item()
            assert step.choices[step.word] == pytest.approx(best, abs=1e-5)


def test_a_forced_word_moves_the_next_word_and_then_the_weights():
    """y_i is read when s_{i+1} is made, and that is the query of step i + 2."""
    free, forced = run(), run(forced={2: "jeune"})
    assert forced.tokens[:2] == [free.tokens[0], "jeune"] and free.tokens[1] != "jeune"
    assert [step.forced for step in forced.steps[:4]] == [False, True, False, False]
    for name in ("query", "scores", "weights", "context", "likeness"):
        ours, theirs = stack(forced, name), stack(free, name)
        np.testing.assert_array_equal(ours[:3], theirs[:3])
        assert not np.allclose(ours[3], theirs[3], atol=1e-4)
    assert forced.steps[1].choices.items() >= free.steps[1].choices.items()
    assert forced.steps[2].choices != free.steps[2].choices


def test_to_force_what_the_model_writes_changes_nothing():
    free = run()
    same = run(forced=dict(enumerate(free.tokens, start=1)))
    assert same.tokens == free.tokens and all(step.forced for step in same.steps)
    np.testing.assert_array_equal(stack(same, "scores"), stack(free, "scores"))
    assert run(forced={3: "<eos>"}).tokens == [*free.tokens[:2], "<eos>"]


def test_without_an_end_it_stops_and_pad_is_never_written():
    model = random_model("attention", len(VOCAB))
    with torch.no_grad():
        model.decoder.dense.bias[EOS_ID] = -1e9
        model.decoder.dense.bias[:2] = 50.0
    found = explore(model, "the baker", VOCAB, VOCAB)
    assert len(found.steps) == 2 * 3 + 10
    assert not {"<pad>", "<bos>", "<eos>"} & set(found.tokens)


@pytest.mark.parametrize(
    ("sentence", "forced", "error", "message"),
    [
        (None, None, TypeError, "expected a text as a string"),
        ("", None, ValueError, "the sentence has no word"),
        (" \n\t", None, ValueError, "the sentence has no word"),
        ("bread " * (MAX_WORDS + 1), None, ValueError, "has 31 words.*room for 30"),
        (SENTENCE, {2: "zèbre"}, ValueError, "can't write 'zèbre'"),
        (SENTENCE, {2: "<pad>"}, ValueError, "can't write '<pad>'"),
        (SENTENCE, {2: "<bos>"}, ValueError, "can't write '<bos>'"),
        (SENTENCE, {0: "le"}, ValueError, "steps are counted from 1"),
        (SENTENCE, {1: "le", 40: "le"}, ValueError, "ends at step .*at step 40"),
    ],
)
def test_bad_input_gets_an_answer(sentence, forced, error, message):
    with pytest.raises(error, match=message):
        run(sentence, forced=forced)


def test_models_that_can_not_be_explored_get_an_answer():
    _, *vocabs = MODELS["fr"]
    model = build_model("fixed", *map(len, vocabs), 8, 8)
    with pytest.raises(TypeError, match="this model has no attention"):
        explore(model, SENTENCE, *vocabs)
    with pytest.raises(ValueError, match="source vocabulary has"):
        explore(MODELS["zh"][0], SENTENCE, VOCAB, VOCAB)
    model = build_model("attention", *map(len, vocabs), 8, 8)
    with torch.no_grad():
        model.decoder.dense.bias[EOS_ID] = torch.nan
    with pytest.raises(ValueError, match="are NaN or infinite"):
        explore(model, SENTENCE, *vocabs)


# The figure


def texts(fig):
    fig.canvas.draw()
    return [text.get_text() for text in fig.findobj(matplotlib.text.Text)]


@pytest.mark.parametrize("target", MODELS)
def test_the_figure_shows_the_step(target):
    found = run(target=target, forced={2: run(target=target).tokens[0]})
    fig = draw_step(found, 2)
    shown = texts(fig)
    assert set(found.source_tokens) | set(found.steps[1].choices) <= set(shown)
    word = f"{found.tokens[1]} (forced)"
    assert f"step 2 of {len(found.steps)} writes {word}" in shown and word in shown
    query, *bars, heatmap, _, choices = fig.axes
    for ax, name in zip(bars, ("scores", "weights", "likeness"), strict=True):
        heights = [bar.get_height() for bar in ax.containers[0]]
        np.testing.assert_allclose(heights, getattr(found.steps[1], name), atol=1e-6)
        names = [label for label in ax.get_xticklabels() if label.get_visible()]
        under = [label.get_text() for label in names if label.get_text()]
        assert under == (found.source_tokens if name == "weights" else [])
    np.testing.assert_array_equal(query.images[0].get_array()[0], found.steps[1].query)
    np.testing.assert_array_equal(
        heatmap.images[0].get_array(), stack(found, "weights")
    )
    (frame,) = heatmap.patches
    assert (frame.get_y(), frame.get_height()) == (0.5, 1)
    rows = [label.get_text() for label in heatmap.get_yticklabels()]
    assert rows == [found.tokens[0], word, *found.tokens[2:]]
    colors = [bar.get_facecolor() for bar in choices.patches]
    written = list(found.steps[1].choices).index(found.steps[1].word)
    assert [color for color in colors if colors.count(color) == 1] == [colors[written]]


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("the grandmother " * (MAX_WORDS // 2), 1),
        ("the grandmother " * (MAX_WORDS // 2), 12),
        ("the old hat is not blue and " * 3, 9),
        ("the grandmother sings " + "o" * 500, 1),
    ],
)
def test_all_labels_of_a_long_sentence_are_inside_the_figure(sentence, number):
    fig = draw_step(run(sentence), number)
    fig.canvas.draw()
    inside, box = fig.get_tightbbox().extents * fig.dpi, fig.bbox
    assert inside[0] >= 0 and inside[1] >= 0
    assert inside[2] <= box.x1 and inside[3] <= box.y1


def test_one_scale_for_all_steps_of_a_sentence():
    found = run()
    limits = [
        [ax.get_ylim() for ax in draw_step(found, number).axes[1:4]]
        for number in range(1, len(found.steps) + 1)
    ]
    assert all(step == limits[0] for step in limits)


def test_the_background_is_opaque_and_settings_stay():
    transparent = {"figure.facecolor": (1, 1, 1, 0), "axes.facecolor": (1, 1, 1, 0)}
    with matplotlib.rc_context(transparent):
        before = matplotlib.rcParams.copy()
        file = io.BytesIO()
        draw_step(run(), 1).savefig(file)
        assert matplotlib.rcParams == before
    assert Image.open(file).convert("RGBA").getchannel("A").getextrema() == (255, 255)


def test_a_given_figure_is_used_and_a_step_must_exist():
    fig, found = Figure(), run()
    assert draw_step(found, 1, fig) is fig
    for number in (0, -1, 99):
        with pytest.raises(ValueError, match=f"no step {number}: there are 1 to"):
            draw_step(found, number)
    assert not plt.get_fignums()


# The widget


@pytest.fixture
def explorer():
    sentences = [SENTENCE, "I love to eat apples."]
    return Explorer({"French": MODELS["fr"], "Chinese": MODELS["zh"]}, sentences)


IMAGE = re.compile(
    r"<img src='data:image/png;base64,(?P<code>[^']*)' width=(?P<width>\d+) "
    r"height=(?P<height>\d+) .* alt='(?P<alt>[^']*)'>"
)


def shown(explorer):
    """The picture's size on a page, its size in pixels, and its text."""
    found = IMAGE.fullmatch(explorer.image.value)
    size = Image.open(io.BytesIO(base64.b64decode(found["code"]))).size
    return (int(found["width"]), int(found["height"])), size, found["alt"]


def state(explorer):
    return explorer.image.value, explorer.text.value


def test_it_opens_with_the_first_sentence_and_steps_back_and_forth(explorer):
    assert explorer.sentence.value == explorer.pick.value == SENTENCE
    assert explorer.step.max == len(run().steps)
    assert "<u>le</u></b> vieux" in explorer.text.value
    first = state(explorer)
    explorer.back.click()  # there is nothing before the first step
    assert state(explorer) == first
    explorer.next.click()
    assert explorer.step.value == 2
    assert all(a != b for a, b in zip(state(explorer), first, strict=True))
    assert "<u>vieux</u></b>" in explorer.text.value
    explorer.back.click()
    assert state(explorer) == first
    explorer.step.value = explorer.step.max
    last = state(explorer)
    explorer.next.click()
    assert state(explorer) == last != first
    assert not plt.get_fignums()


def test_the_picture_is_sharp_and_a_text_says_what_it_shows(explorer):
    (width, height), pixels, _ = shown(explorer)
    # What a screen of 1366 × 768 has left beside JupyterLab's files and its bars.
    assert width <= 934 and height <= 560 - 4 * 36
    assert pixels == (2 * width, 2 * height)
    explorer.step.value = 4
    explorer.force.value = "est"
    _, _, text = shown(explorer)
    assert text.startswith("step 4 of") and "writes est (forced)." in text
    step = explorer.exploration.steps[3]
    assert f"not {step.scores[4]:.1f}" in text  # a bar
    assert f"The largest: not {step.weights[4]:.3f}" in text
    assert "vieux: old (" in text and "est (forced): not (" in text  # the heatmap
    assert f"est {step.choices['est']:.3f}" in text


def test_every_control_has_a_name(explorer):
    """For assistive technology, as for the eye; a browser test asks the page."""
    rows = [explorer.children[0], explorer.steps]
    controls = [part for row in rows for part in row.children] + [explorer.sentence]
    assert [part.description for part in controls] == [
        *("into", "pick", "step", "back", "next", "force", "free all words", "or type")
    ]


def test_picking_typing_and_another_language(explorer):
    explorer.step.value = 3
    explorer.pick.value = "I love to eat apples."
    assert explorer.sentence.value == "I love to eat apples."
    assert explorer.exploration.text == run("I love to eat apples.").text
    assert explorer.step.value == 1
    explorer.sentence.value = "The girl sings."
    assert explorer.exploration.text == run("The girl sings.").text
    assert explorer.pick.value is None
    explorer.model.value = "Chinese"
    assert explorer.exploration.text == run("The girl sings.", "zh").text
    assert explorer.step.max == len(explorer.exploration.steps)
    explorer.sentence.value = SENTENCE  # typed as it stands in the list
    assert explorer.pick.value == SENTENCE
    explorer.sentence.value = " "
    assert explorer.pick.value is None and explorer.sentence.value == " "


def test_forcing_and_freeing(explorer):
    free = explorer.exploration.tokens
    explorer.step.value = 2
    assert "vieux" in explorer.force.options
    explorer.force.value = " Jeune "
    assert explorer.exploration.tokens == run(forced={2: "jeune"}).tokens
    assert explorer.step.value == 2 and explorer.force.value == ""
    explorer.step.value = 4
    assert "jeune <i>(forced)</i>" in explorer.text.value
    explorer.force.value = "."
    assert explorer.forced == {2: "jeune", 4: "."}
    explorer.step.value = 3
    explorer.force.value = "fermier"  # what was forced later is free again
    assert explorer.forced == {2: "jeune", 3: "fermier"}
    explorer.free.click()
    assert explorer.forced == {} and explorer.exploration.tokens == free


@pytest.mark.parametrize(
    ("sentence", "answer"),
    [("   ", "no word"), ("bread " * 31, "31 words"), ("bread " * 5000, "5000 words")],
)
def test_what_can_not_be_done_is_answered_in_place(explorer, sentence, answer, capsys):
    explorer.sentence.value = sentence
    assert answer in explorer.text.value
    assert explorer.image.layout.display == explorer.steps.layout.display == "none"
    explorer.sentence.value = SENTENCE
    assert "alert" not in explorer.text.value
    assert explorer.image.layout.display is explorer.steps.layout.display is None
    before = explorer.image.value
    explorer.force.value = "<script>"  # a bad word: the picture stays
    assert "can&#x27;t write &#x27;&lt;script&gt;&#x27;" in explorer.text.value
    assert explorer.image.value == before and explorer.image.layout.display is None
    assert explorer.forced == {} and capsys.readouterr() == ("", "")


def test_unknown_words_are_named_and_escaped(explorer):
    explorer.sentence.value = "The zebra sells <b>."
    assert "<b>zebra, &lt;, b, &gt;</b>" in explorer.text.value
    assert "&lt;unk&gt;" in explorer.text.value
    assert explorer.exploration.unknown == ["zebra", "<", "b", ">"]
