"""The explorer: watch a decoder write one word at a time, and interfere.

`explore` computes, `draw_step` draws, and `Explorer` is the widget around both.
Letters in shape comments: S source positions with <eos>, H hidden units, D the size of
an encoder state. Steps are counted from 1, as in the paper.
"""

import html
import io
from typing import NamedTuple

import ipywidgets as widgets
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn import functional as F

from utils.data import encode_sources
from utils.decoding import (
    require_attention,
    require_fit,
    source_words,
    step_limit,
    unknown_words,
    writable,
)
from utils.plotting import font_families
from utils.subwords import to_pieces, to_words
from utils.text import BOS_ID, EOS, EOS_ID, UNK, detokenize

MAX_WORDS = 30  # of a source sentence, or pieces: as many as the figure can name
CHOICES = 6  # most probable words that a step keeps
PANELS = {  # what a figure shows of a step, from the top
    "query": "query $s_{{{before}}}$: {H} numbers, from −1 (orange) to 1 (purple)",
    "scores": "scores $e_{{{i}j}}$",
    "weights": r"weights $\alpha_{{{i}j}}$",
    "likeness": "how near the context $c_{{{i}}}$ is to each $h_j$ (cosine)",
}
BAR, MARKED, BAND = "#0072B2", "#D55E00", "#E6E6E6"  # Okabe and Ito's blue, vermilion


class Step(NamedTuple):
    """Step i: what the decoder has, and the word that it writes.

    query and scores: None where a decoder doesn't give them, as one with many heads.
    """

    query: np.ndarray | None  # (H,): s_{i-1}
    scores: np.ndarray | None  # (S,): e_ij
    weights: np.ndarray  # (S,): alpha_ij
    context: np.ndarray  # (D,): c_i
    likeness: np.ndarray  # (S,): the cosine of c_i and each h_j
    choices: dict[str, float]  # the most probable words and the written one
    word: str
    forced: bool


class Exploration(NamedTuple):
    """A sentence translated with every step kept."""

    source_tokens: list[str]  # ends with <eos>
    steps: list[Step]
    unknown: list[str]  # source words that were read as <unk>
    text: str  # the translation, as a reader wants it

    @property
    def tokens(self):
        return [step.word for step in self.steps]


@torch.no_grad()
def explore(model, sentence, src_vocab, tgt_vocab, forced=None):
    """Translate a sentence greedily -> Exploration.

    forced: {step: word}; there this word is written, whatever the model prefers.
    Raises TypeError for what is no sentence or no model with attention; ValueError for
    a sentence without words or with more than MAX_WORDS, a word or a step that can't
    be forced, and vocabularies or numbers with which the model can't translate.
    """
    forced, words = forced or {}, source_words(sentence, src_vocab)
    pieces = to_pieces(words, src_vocab)
    check_room(len(pieces))
    check_forced(forced, tgt_vocab)
    require_fit(model, src_vocab, tgt_vocab)
    model.eval()
    source, source_lens = encode_sources([words], src_vocab)
    enc_outputs = model.encoder(source, source_lens)
    state = model.decoder.init_state(enc_outputs, source_lens)
    last, steps = BOS_ID, []
    while len(steps) < step_limit(source) and last != EOS_ID:
        wanted = forced.get(len(steps) + 1)
        step, state = take_step(
            model.decoder, last, state, enc_outputs[0], tgt_vocab, wanted
        )
        steps.append(step)
        last = tgt_vocab[step.word]
    check_reached(forced, len(steps))
    text = to_words([step.word for step in steps], tgt_vocab)
    return Exploration(
        [*pieces, EOS],
        steps,
        unknown_words(words, src_vocab),
        detokenize(text, tgt_vocab.lang),
    )


def take_step(decoder, last, state, annotations, vocab, wanted=None):
    """One step after the word with id `last` -> Step, the new state.

    annotations (1, S, D): what the encoder says of each source word. The context is
    their sum by the step's weights, those of several heads or layers averaged.
    """
    query, scores = asked(decoder, state)
    logits, after = decoder(torch.tensor([[last]]), state)
    weights = after.attention_weights  # (1, 1, S)
    require_attention(weights)
    context = torch.bmm(weights, annotations)
    likeness = F.cosine_similarity(context, annotations, dim=-1)
    chances = logits[0, 0].softmax(dim=-1)
    ids = writable(chances).argsort(descending=True)[:CHOICES].tolist()
    word = vocab.to_tokens(ids[0]) if wanted is None else wanted
    if vocab[word] not in ids:
        ids.append(vocab[word])
    choices = {vocab.to_tokens(k): chances[k].item() for k in ids}
    numbers = [
        None if x is None else x.flatten().numpy()
        for x in (query, scores, weights, context, likeness)
    ]
    return Step(*numbers, choices, word, wanted is not None), after


def asked(decoder, state):
    """With what a decoder asks, and the scores; None for what it doesn't give."""
    if not hasattr(decoder, "query"):
        return None, None
    query = decoder.query(state.hidden_state)
    score = getattr(getattr(decoder, "attention", None), "score", None)
    return query, score and score(query, state.projected_keys)


def check_room(count):
    """ValueError, in words, if a sentence has more words than the figure can name."""
    if count > MAX_WORDS:
        raise ValueError(
            f"The sentence has {count} words, or pieces of words. The explorer has "
            f"room for {MAX_WORDS}: make it shorter."
        )


def check_forced(forced, vocab):
    """ValueError if a word can't be written, or a step is below 1."""
    for number, word in forced.items():
        if word not in vocab and word not in (EOS, UNK):
            raise ValueError(
                f"The model can't write {word!r}: it isn't among its words."
            )
        if number < 1:
            raise ValueError(f"There is no step {number}: steps are counted from 1.")


def check_reached(forced, length):
    """ValueError if a word was to be forced after the end."""
    if max(forced, default=0) > length:
        raise ValueError(
            f"The translation ends at step {length}: no word can be "
            f"forced at step {max(forced)}."
        )


def draw_step(exploration, number, fig=None):
    """Draw one step of an exploration, counted from 1; return the figure.

    Without `fig`, pyplot makes one. Raises ValueError if there is no such step.
    """
    steps, source = exploration.steps, exploration.source_tokens
    if not 1 <= number <= len(steps):
        raise ValueError(f"There is no step {number}: there are 1 to {len(steps)}.")
    step, i = steps[number - 1], number
    long = sum(map(len, source)) > 60  # then the words stand on end
    fig = fig or plt.figure()
    fig.set(size_inches=(10, 5.6), facecolor="white")
    panels = [name for name in PANELS if getattr(step, name) is not None]
    boxes = fig.add_gridspec(
        len(panels),
        2,
        height_ratios=[0.25 if name == "query" else 1 for name in panels],
        width_ratios=(3, 1),
        left=0.06,
        right=0.96,
        top=0.86,
        bottom=0.24 if long else 0.07,
        hspace=0.6,
        wspace=0.32,
    )
    words = {"fontfamily": font_families(), "fontsize": 12, "parse_math": False}
    for row, name in enumerate(panels):
        ax, values = fig.add_subplot(boxes[row, 0]), getattr(step, name)
        title = PANELS[name].format(i=i, before=i - 1, H=values.size)
        if name == "weights" and "scores" in panels:
            title += ": the softmax of the scores"
        ax.set_title(title, loc="left")
        if name == "query":
            ax.set(xticks=[], yticks=[])
            ax.imshow(values[None], cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
            continue
        every = [0] if name == "scores" else [0, 1]  # one scale for all steps
        every += [value for s in steps for value in getattr(s, name)]
        draw_bars(ax, values, step.weights.argmax(), min(every), max(every))
    turned = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if long else {}
    names = [word if len(word) <= 12 else word[:11] + "…" for word in source]
    ax.set_xticks(range(len(source)), names, **words, **turned)
    below = 1 if "query" in panels else 0
    draw_choices(fig.add_subplot(boxes[below:, 1]), step, words)
    before = exploration.tokens[: i - 1]
    before = ["…"] * (i > 7) + before[-6:] or ["nothing"]
    now = step.word + " (forced)" * step.forced
    fig.text(
        0.06,
        0.95,
        f"step {i} of {len(steps)}   written so far: {' '.join(before)}   next: {now}",
        **words | {"fontsize": 14},
    )
    return fig


def draw_bars(ax, values, marked, low, high):
    """A bar for each source position; the three largest, or one, have their number."""
    room = (high - low) / 4
    ax.bar(range(len(values)), values, color=BAR, width=0.7)
    ax.axvspan(marked - 0.5, marked + 0.5, color=BAND, zorder=0)
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set(ylim=(low, high + room), xlim=(-0.6, len(values) - 0.4), xticks=[])
    ax.spines[["top", "right"]].set_visible(False)
    for j in np.argsort(-values)[: 3 if len(values) <= 14 else 1]:
        height = max(values[j], 0) + room / 6
        ax.text(j, height, f"{values[j]:.2f}", ha="center", fontsize=11)


def draw_choices(ax, step, words):
    """The probabilities of a step's words; the one that is written is marked."""
    for k, (word, chance) in enumerate(step.choices.items()):
        written = word == step.word
        ax.barh(k, chance, color=MARKED if written else BAR)
        ax.text(
            chance + 0.03,
            k,
            f"{chance:.2f}",
            va="center",
            fontsize=11,
            fontweight="bold" if written else "normal",
        )
    ax.set_yticks(range(len(step.choices)), step.choices, **words)
    ax.set(xlim=(0, 1.3), xticks=[0, 0.5, 1])
    ax.invert_yaxis()
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_title("probability of\nthe next word", loc="left")


class Explorer(widgets.VBox):
    """The widget. models: {name: (model, src_vocab, tgt_vocab)}; sentences to pick."""

    def __init__(self, models, sentences):
        wide = {"width": "36em"}
        self.models, self.forced, self.exploration = models, {}, None
        self.model = widgets.ToggleButtons(options=list(models))
        self.pick = widgets.Dropdown(options=sentences, description="pick", layout=wide)
        self.sentence = widgets.Text(
            description="or type", continuous_update=False, layout=wide
        )
        self.message, self.written = widgets.HTML(), widgets.HTML()
        self.play = widgets.Play(min=1, max=1, interval=1500)
        self.slider = widgets.IntSlider(1, 1, 1, description="step", layout=wide)
        self.force = widgets.Combobox(
            description="force", placeholder="another word", continuous_update=False
        )
        self.free = widgets.Button(description="free all words")
        self.image = widgets.Image(format="png", layout={"max_width": "1000px"})
        self.view = widgets.VBox(
            [
                self.written,
                widgets.HBox([self.slider, self.play]),
                widgets.HBox([self.force, self.free]),
                self.image,
            ]
        )
        super().__init__(
            [self.model, self.pick, self.sentence, self.message, self.view]
        )
        widgets.jslink((self.play, "value"), (self.slider, "value"))
        widgets.dlink((self.pick, "value"), (self.sentence, "value"))
        self.sentence.observe(self._translate, "value")
        self.model.observe(self._translate, "value")
        self.slider.observe(self._show, "value")
        self.force.observe(self._force, "value")
        self.free.on_click(self._translate)
        self._translate()

    def _translate(self, _=None):
        """Start again; what is wrong with a sentence stands in the picture's place."""
        self.play.playing = False
        good = self._explore({})
        if good and self.slider.value == 1:
            self._show()
        elif good:
            self.slider.value = 1  # and that shows it
        self.view.layout.display = None if good else "none"

    def _force(self, _):
        """Write another word at this step; what was forced after it is free again."""
        word, i = self.force.value.strip().lower(), self.slider.value
        earlier = {k: self.forced[k] for k in self.forced if k < i}
        if word and self._explore(earlier | {i: word}):
            self._show()

    def _explore(self, forced):
        """Whether it could be done; the message says what came of it."""
        model, *vocabs = self.models[self.model.value]
        try:
            found = explore(model, self.sentence.value, *vocabs, forced)
        except ValueError as error:
            self.message.value = f"<b>{html.escape(str(error))}</b>"
            return False
        self.exploration, self.forced = found, forced
        unknown = html.escape(", ".join(found.unknown))
        self.message.value = unknown and (
            f"The model doesn't know <b>{unknown}</b>: read as {html.escape(UNK)}."
        )
        self.slider.max = self.play.max = len(found.steps)
        return True

    def _show(self, _=None):
        """The words, one of them marked, and the picture of its step."""
        found, i = self.exploration, self.slider.value
        words = [html.escape(word) for word in found.tokens]
        words[i - 1] = f"<b><u>{words[i - 1]}</u></b>"
        self.written.value = f"<span style='font-size:1.4em'>{' '.join(words)}</span>"
        self.force.options, self.force.value = list(found.steps[i - 1].choices), ""
        file = io.BytesIO()
        draw_step(found, i, Figure()).savefig(file, format="png", dpi=100)
        self.image.value = file.getvalue()
