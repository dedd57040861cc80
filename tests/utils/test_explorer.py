"""The explorer and the drawing in Python: numbers, pictures, what a widget gets."""

import base64
import json
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from helpers import refusals
from helpers.repo import ROOT
from IPython.core.interactiveshell import InteractiveShell

from utils import explorer
from utils.checkpoint import load_checkpoint
from utils.data import Pair
from utils.explorer import (
    SCRIPTS,
    Draw,
    DrawWidget,
    Explorer,
    drawing,
    explore,
    program,
    settings,
)
from utils.figures import alternative_text
from utils.text import BOS_ID

SENTENCE = "The old hat is not blue."
CURVE = "curve", ["3–6", "7–10"], [66.4, 31.5], "BLEU"

pytestmark = pytest.mark.usefixtures("offscreen")


@cache
def trained(target):
    """Model, vocabularies."""
    return load_checkpoint(ROOT / f"data/models/village-en-{target}.safetensors")[:3]


def run(forced, target="fr"):
    return explore(trained(target)[0], SENTENCE, *trained(target)[1:], forced)


@pytest.mark.parametrize("target", ["fr", "zh"])
@pytest.mark.parametrize("forced", [{}, {2: "。", 3: "."}])
def test_all_but_the_forced_words_follow_from_the_model(target, forced):
    """Against one pass with the whole target given."""
    model, src_vocab, tgt_vocab = trained(target)
    forced = {i: word for i, word in forced.items() if word in tgt_vocab}
    found = run(forced, target)
    assert {i: found.tokens[i - 1] for i in forced} == forced
    source = torch.tensor([src_vocab[found.source_tokens]])
    given = torch.tensor([[BOS_ID, *tgt_vocab[found.tokens[:-1]]]])
    with torch.no_grad():
        logits, state = model(source, given, torch.tensor([source.shape[1]]))
    np.testing.assert_allclose(
        found.attention_weights, state.attention_weights[0], atol=1e-4
    )
    best = tgt_vocab.to_tokens(logits[0].argmax(dim=-1))
    assert all(i in forced or a == b for i, (a, b) in numbered(found.tokens, best))
    assert not model.decoder._forward_hooks


def numbered(*sides):
    return enumerate(zip(*sides, strict=True), start=1)


test_what_can_not_be_explored = refusals(
    (lambda: run({2: "zèbre"}), "can't write 'zèbre'"),
    (lambda: run({0: "le"}), "counted from 1"),
    (lambda: run({40: "le"}), r"has 9 steps.* at the steps \[40\]"),
    (
        lambda: Explorer({"old": trained("fr-fixed")}, ["a"]),
        "can't run 'old'.*'attention' and 'lo",
    ),
)


def test_where_no_widget_lives_stands_a_picture_with_its_text():
    """Executed by a program, a cell stores the heatmap, and no widget."""
    shown = Explorer({"French": trained("fr"), "Chinese": trained("zh")}, [SENTENCE])
    data, metadata = shown._repr_mimebundle_()
    assert data["text/plain"] == f"Explorer(['French', 'Chinese'], ['{SENTENCE}'])"
    assert base64.b64decode(data.pop("image/png")).startswith(b"\x89PNG")
    assert [*data] == ["text/plain"]
    assert "chapeau: hat (0.9" in metadata["image/png"]["alt"]


def test_the_picture_frames_the_links_of_its_pair():
    def said(target):
        pair = Pair(tuple(source), target, alignment={(0, 0), (2, 2)})
        shown = Explorer({"French": trained("fr")}, [SENTENCE], [pair])
        return alternative_text(shown.picture())

    source, written = run({}).source_tokens[:-1], tuple(run({}).tokens[:-1])
    assert "Frames mark" in said(written) and "Frames mark" not in said(("le",))


def test_a_notebook_that_is_watched_gets_the_widget(monkeypatch):
    asks, shell = {"allow_stdin": True}, InteractiveShell()
    monkeypatch.setattr(explorer, "get_ipython", lambda: shell)
    assert not explorer.is_watched()  # a plain IPython, without a kernel
    shell.kernel = SimpleNamespace(get_parent=lambda: {"content": asks})
    assert explorer.is_watched()
    shown = Explorer({"French": trained("fr")}, [SENTENCE])
    data, _ = shown._repr_mimebundle_()
    view = "application/vnd.jupyter.widget-view+json"
    assert data.keys() == {view, "image/png", "text/plain"}
    asks["allow_stdin"] = False
    assert view not in shown._repr_mimebundle_()[0]


def test_the_widget_gets_one_module_and_the_models_as_files(tmp_path):
    widget = Explorer({"French": trained("fr")}, [SENTENCE]).widget()
    assert widget._esm == program(*SCRIPTS) and ".explorer" in widget._css
    assert "import " not in widget._esm
    (path := tmp_path / "model").write_bytes(widget.files["French"])
    again = load_checkpoint(path)
    same = zip(again.model.parameters(), trained("fr")[0].parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in same)


def test_every_chinese_word_of_the_village_has_a_gloss():
    """But for signs."""
    words = [w for w in trained("zh")[2].idx_to_token[4:] if w not in "，。？！"]
    assert settings([], [])["glosses"].keys() == set(words)


def test_the_script_is_told_plain_values():
    told = drawing("heatmap", ("a", "b"), [[0.25, 0.75]], "Heatmap", ["x"])
    assert json.loads(json.dumps(told)) == told
    assert (told["columns"], told["rows"]) == (["a", "b"], ["x"])
    assert told["answer"] == [[0.25, 0.75]]


def test_a_stored_notebook_has_a_sentence_and_not_the_answer(monkeypatch):
    (text,) = Draw(*CURVE)._repr_mimebundle_().values()
    assert text.startswith("Where this notebook runs") and "66.4" not in text
    monkeypatch.setattr(explorer, "is_watched", lambda: True)
    data = Draw(*CURVE)._repr_mimebundle_()
    assert data["text/plain"] == text
    assert "application/vnd.jupyter.widget-view+json" in data
    assert "66.4" not in str(data)  # a widget's id has no dot


def test_the_widget_is_one_module_with_its_own_style(monkeypatch):
    monkeypatch.setenv("LEARNING_TO_ALIGN_LANG", "zh")
    widget = DrawWidget(settings=drawing(*CURVE))
    assert widget.lang == "zh"
    assert "import " not in widget._esm and "export default" in widget._esm
    assert ".dr-area" in widget._css
