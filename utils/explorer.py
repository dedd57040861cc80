"""The explorer: watch a decoder write one word at a time, and interfere.

`explore` does it in Python. `Explorer` shows it: translator.js and explorer.js do the
same in the browser, here and on the pages of the course's site. `Draw` lets the reader
draw a prediction before it shows what was measured.
"""

import re
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import anywidget
import matplotlib.pyplot as plt
import numpy as np
import torch
import traitlets
from IPython import get_ipython

from utils.checkpoint import save_checkpoint
from utils.corpora import VILLAGE_FOLDER
from utils.decoding import translate
from utils.figures import with_words
from utils.languages import readers_language
from utils.plotting import show_heatmap
from utils.text import EOS, UNK

HERE = Path(__file__).resolve().parent
SCRIPTS = "element.js", "words.js", "translator.js", "explorer.js"
SHIPPED = {  # files in data/models, of those that a page runs
    "French": "village-en-fr.safetensors",
    "Chinese": "village-en-zh.safetensors",
}
PLAIN = {"num_layers": 1, "bidirectional": True, "enc_hiddens": None}
PLAIN |= {"score": "additive", "place": "monotonic"}  # where the config names them


def explore(model, text, src_vocab, tgt_vocab, forced):
    """Translate a text greedily, but for the words that are forced -> Translation.

    forced: {step: word}, steps counted from 1; there this word is written, whatever the
    model prefers. Raises ValueError, in words, for a word or a step that can't be
    forced, and what `translate` raises.
    """
    for word in forced.values():
        if word not in tgt_vocab and word not in (EOS, UNK):
            raise ValueError(
                f"The model can't write {word!r}: it isn't among its words."
            )
    number = count(1)

    def force(decoder, inputs, outputs):
        logits, state = outputs
        if (step := next(number)) in forced:
            logits = logits.index_fill(-1, torch.tensor(tgt_vocab[forced[step]]), 1e9)
        return logits, state

    with model.decoder.register_forward_hook(force):
        found = translate(model, text, src_vocab, tgt_vocab)
    if not forced.keys() <= set(range(1, len(found.tokens) + 1)):
        raise ValueError(
            f"The translation has {len(found.tokens)} steps, counted from 1: no word "
            f"can be forced at the steps {sorted(forced)}."
        )
    return found


def program(*names):
    """Scripts of this folder as one module, which is what a widget is made of."""
    scripts = "\n".join((HERE / name).read_text("utf-8") for name in names)
    return re.sub(r'^import .* from "\./\w+\.js";$', "", scripts, flags=re.M)


def settings(models, sentences, pairs=(), row_by_row=False):
    """What explorer.js is told, as plain values.

    models: their names. pairs: each a `Pair`; where a model writes the target of one,
    its links are framed. row_by_row: a row appears when the reader asks for it. With
    them go glosses, an English word for each Chinese one.
    """
    rows = (VILLAGE_FOLDER / "glosses.tsv").read_text("utf-8").splitlines()[2:]
    gold = [
        {
            "source": " ".join(pair.source),
            "target": " ".join(pair.target),
            "sure": sorted(map(list, pair.alignment)),
            "possible": sorted(map(list, pair.possible)),
        }
        for pair in pairs
    ]
    glosses = dict(row.split("\t") for row in rows)
    told = {"models": list(models), "sentences": list(sentences)}
    return {**told, "gold": gold, "glosses": glosses, "rowByRow": row_by_row}


class Widget(anywidget.AnyWidget):
    """The explorer in a notebook whose kernel runs."""

    _esm, _css = program(*SCRIPTS), (HERE / "explorer.css").read_text("utf-8")
    settings = traitlets.Dict().tag(sync=True)
    files = traitlets.Dict().tag(sync=True)  # {name: bytes of a checkpoint}
    lang = traitlets.Unicode().tag(sync=True)  # of the labels
    _reader = traitlets.default("lang")(lambda self: readers_language())


class Explorer:
    """Shown as the last value of a cell: an explorer, and a picture where none can run.

    models: {name: (model, src_vocab, tgt_vocab)}, from English, of the kinds
    "attention" or "local", with one layer that reads in both directions. sentences: to
    pick, the first is shown. pairs: see `settings`. Raises ValueError for other models,
    and what `translate` raises for the first sentence. ax: where the picture is drawn,
    None for a figure of its own.
    """

    def __init__(self, models, sentences, pairs=(), ax=None):
        for name, (model, *_) in models.items():
            config = getattr(model, "config", {})
            runs = config.get("kind") in ("attention", "local")
            if not runs or any(config.get(k, v) != v for k, v in PLAIN.items()):
                raise ValueError(
                    f"The explorer can't run {name!r}. It runs models of the kinds "
                    f"'attention' and 'local' with {PLAIN}; this one has {config}."
                )
        self.models, self.sentences, self.pairs = models, sentences, pairs
        self.ax = ax
        model, *vocabs = next(iter(models.values()))
        self.translation = translate(model, sentences[0], *vocabs)

    def __repr__(self):
        return f"Explorer({[*self.models]}, {self.sentences})"

    def widget(self):
        """The widget itself, with the models as files in memory."""
        files = {}
        with TemporaryDirectory() as folder:
            for name, parts in self.models.items():
                save_checkpoint(path := Path(folder, "model"), *parts)
                files[name] = path.read_bytes()
        told = settings(self.models, self.sentences, self.pairs)
        return Widget(settings=told, files=files)

    def picture(self):
        """The heatmap of the first sentence, by the first model -> a figure."""
        _, target, source, weights, *_ = self.translation
        links = {}
        for pair in self.pairs:
            if [[*pair.source, EOS], [*pair.target, EOS]] == [source, target]:
                links = {"gold": pair.alignment, "possible": pair.possible}
        ax = show_heatmap(weights, source, target, ax=self.ax, **links)
        plt.close(ax.figure)  # the notebook doesn't show it a second time
        return ax.figure

    def _repr_mimebundle_(self, include=None, exclude=None):
        png, size = with_words(self.picture())
        data = {"text/plain": repr(self), "image/png": png}
        if is_watched():
            data |= self.widget()._repr_mimebundle_()[0] | {"text/plain": repr(self)}
        return data, {"image/png": size}


def drawing(kind, columns, answer, axes, rows=(), measured="measured"):
    """What draw.js is told, as plain values.

    kind: "curve" for values from 0 to 100, "shares" for parts of 1, "heatmap" for the
    darkest square of each row. columns, rows: their names. answer: a number for each
    column, for a heatmap (rows, columns). axes: what is drawn, in words; measured: what
    the answer is called.
    """
    told = {"kind": kind, "columns": [*columns], "rows": [*rows]}
    answer = np.asarray(answer, dtype=float).tolist()
    return {**told, "answer": answer, "axes": axes, "measured": measured}


class DrawWidget(Widget):
    _esm = program("element.js", "words.js", "draw.js")


class Draw:
    """Shown as the last value of a cell: a drawing; see `drawing` for what it takes."""

    def __init__(self, *args, **named):
        self.settings = drawing(*args, **named)

    def __repr__(self):
        return "Where this notebook runs in a browser, you can draw your guess here."

    def _repr_mimebundle_(self, include=None, exclude=None):
        live = is_watched() and DrawWidget(settings=self.settings)._repr_mimebundle_()
        return (live[0] if live else {}) | {"text/plain": repr(self)}


def is_watched():
    """Whether a person's notebook runs this cell: it could be asked for input.

    A program that executes a notebook to store it can't, and a stored widget is dead.
    """
    kernel = getattr(get_ipython(), "kernel", None)
    return bool(kernel and kernel.get_parent()["content"].get("allow_stdin"))
