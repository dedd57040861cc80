"""The explorer: its numbers against other ways to them, its figure, its answers."""

from functools import cache

import numpy as np
import pytest
import torch
from helpers.repo import ROOT

from utils.checkpoint import load_checkpoint
from utils.decoding import translate
from utils.explorer import MAX_WORDS, Explorer, draw_step, explore
from utils.text import BOS_ID

SENTENCE = "The old hat is not blue."

pytestmark = pytest.mark.usefixtures("offscreen")


@cache
def trained(target):
    """Model, vocabularies."""
    return load_checkpoint(ROOT / f"data/models/village-en-{target}.safetensors")[:3]


def run(sentence=SENTENCE, target="fr", forced=None):
    return explore(trained(target)[0], sentence, *trained(target)[1:], forced=forced)


@pytest.mark.parametrize("target", ["fr", "zh"])
@pytest.mark.parametrize("forced", [{}, {2: "。", 3: "."}])
def test_every_number_follows_from_the_model(target, forced):
    """The steps against one pass with the whole target given, and the equations."""
    model, src_vocab, tgt_vocab = trained(target)
    forced = {i: word for i, word in forced.items() if word in tgt_vocab}
    found = run(target=target, forced=forced)
    assert [step.forced for step in found.steps[:3]] == [i in forced for i in (1, 2, 3)]
    if not forced:
        theirs = translate(model, SENTENCE, src_vocab, tgt_vocab)
        assert (found.text, found.tokens) == (theirs.text, theirs.tokens)
        assert found.source_tokens == theirs.source_tokens
    source = torch.tensor([src_vocab[found.source_tokens]])
    given = torch.tensor([[BOS_ID, *tgt_vocab[found.tokens[:-1]]]])
    lens, attention = torch.tensor([source.shape[1]]), model.decoder.attention
    with torch.no_grad():
        logits, _ = model(source, given, lens)
        h = model.encoder(source, lens)[0][0]
        for step, chances in zip(found.steps, logits[0].softmax(dim=-1), strict=True):
            query, c = torch.tensor(step.query), torch.tensor(step.context)
            sums = attention.W_q(query) + attention.W_k(h)
            scores = attention.w_v(torch.tanh(sums))[:, 0]
            for ours, theirs in (
                (step.scores, scores),
                (step.weights, scores.softmax(0)),
                (step.context, scores.softmax(0) @ h),
                (step.likeness, (h @ c) / (h.norm(dim=1) * c.norm())),
                (list(step.choices.values()), chances[tgt_vocab[list(step.choices)]]),
            ):
                np.testing.assert_allclose(ours, theirs, atol=1e-4, rtol=1e-4)
            best = next(iter(step.choices))
            assert step.choices[best] == max(step.choices.values())
            assert step.forced or step.word == best


def test_a_forced_word_moves_the_next_word_and_then_the_weights():
    """y_i is read when s_{i+1} is made, and that is the query of step i + 2."""
    free, forced = run(), run(forced={2: "jeune"})
    assert forced.tokens[:2] == [free.tokens[0], "jeune"] and free.tokens[1] != "jeune"
    steps = zip(free.steps[:4], forced.steps[:4], strict=True)
    same = [np.allclose(a.weights, b.weights, atol=1e-4) for a, b in steps]
    assert same == [True, True, True, False]
    assert free.steps[2].choices != forced.steps[2].choices


@pytest.mark.parametrize(
    ("sentence", "forced", "message"),
    [
        (" \n\t", None, "the sentence has no word"),
        ("bread " * (MAX_WORDS + 1), None, "has 31 words.*1 to 30 can"),
        (SENTENCE, {2: "zèbre"}, "can't write 'zèbre'"),
        (SENTENCE, {0: "le"}, "counted from 1"),
        (SENTENCE, {40: "le"}, r"has 9 steps.* at the steps \[40\]"),
    ],
)
def test_bad_input_gets_an_answer(sentence, forced, message):
    with pytest.raises(ValueError, match=message):
        run(sentence, forced=forced)


def test_the_figure_shows_the_step():
    found = run(forced={2: "jeune"})
    fig = draw_step(found, 2)
    query, *bars, heatmap, bar, choices = fig.axes
    step = found.steps[1]
    np.testing.assert_array_equal(query.images[0].get_array()[0], step.query)
    shown = step.scores, step.weights, step.likeness
    for ax, values in zip(bars, shown, strict=True):
        np.testing.assert_allclose(ax.containers[0].datavalues, values, atol=1e-6)
    later = draw_step(found, 5).axes[1:4]  # one scale for all steps
    assert [ax.get_ylim() for ax in bars] == [ax.get_ylim() for ax in later]
    weights = [step.weights for step in found.steps]
    np.testing.assert_array_equal(heatmap.images[0].get_array(), weights)
    assert heatmap.patches[0].get_y() == 0.5  # the frame
    assert heatmap.get_yticklabels()[1].get_text() == "jeune (forced)"
    names = [label.get_text() for label in choices.get_yticklabels()]
    assert names == list(step.choices)
    with pytest.raises(ValueError, match="no step 0: there are 1 to"):
        draw_step(found, 0)


def test_all_labels_of_a_long_sentence_are_inside_the_figure():
    fig = draw_step(run("the grandmother " * 15), 1)
    inside = fig.get_tightbbox().extents * fig.dpi
    assert inside.min() >= 0 and (inside[2:] <= [fig.bbox.x1, fig.bbox.y1]).all()


def test_the_widget_answers():
    explorer = Explorer({"French": trained("fr"), "Chinese": trained("zh")}, [SENTENCE])
    assert "<u>le</u></b> vieux" in explorer.text.value
    explorer.next.click()
    assert "<u>vieux</u></b>" in explorer.text.value
    explorer.force.value = " Jeune "
    assert explorer.forced == {2: "jeune"} and explorer.force.value == ""
    assert "<u>jeune</u></b> <i>(forced)</i>" in explorer.text.value
    alt = explorer.image.value.partition(" alt='")[2]
    assert "step 2 of" in alt and "jeune (forced)" in alt
    before = explorer.image.value
    explorer.force.value = "<script>"  # a bad word: the picture stays
    assert "can&#x27;t write &#x27;&lt;script&gt;&#x27;" in explorer.text.value
    assert explorer.image.value == before and explorer.forced == {2: "jeune"}
    explorer.free.click()
    assert explorer.forced == {} and explorer.step.value == 1
    explorer.sentence.value = " "
    assert "no word" in explorer.text.value
    assert explorer.image.layout.display == explorer.steps.layout.display == "none"
    explorer.model.value = "Chinese"
    explorer.sentence.value = "The zebra sings <b>."
    assert "<b>zebra, &lt;, b, &gt;</b>" in explorer.text.value
    assert explorer.image.layout.display is explorer.steps.layout.display is None
