"""The explorer: watch a decoder write one word at a time, and interfere.

`explore` computes, `draw_step` draws, and `Explorer` is the widget around both.
Letters in shape comments: S source positions with <eos>, H hidden units, D the size of
an encoder state. Steps are counted from 1, as in the paper.
"""

import base64
import html
import io
from typing import NamedTuple

import ipywidgets as widgets
import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn import functional as F

from utils.data import pad
from utils.decoding import require_fit, require_room, step_limit, writable
from utils.figures import alternative_text
from utils.step_figure import SIZE, draw_step
from utils.text import BOS_ID, EOS, EOS_ID, UNK

MAX_WORDS = 30  # of a source sentence, or pieces: as many as the figure can name
CHOICES = 6  # most probable words that a step keeps


class Step(NamedTuple):
    """Step i: what the decoder has, and the word that it writes."""

    query: np.ndarray  # (H,): s_{i-1}
    scores: np.ndarray  # (S,): e_ij
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

    model: its decoder is a `Seq2SeqAttentionDecoder`. forced: {step: word}; there this
    word is written, whatever the model prefers. Raises ValueError, in words, for a
    sentence without words or with more than MAX_WORDS, a word or a step that can't be
    forced, and what `translate` raises.
    """
    forced, read = forced or {}, src_vocab.encode(sentence)
    require_room(sentence, read.ids, "the sentence", MAX_WORDS)
    for word in forced.values():
        if word not in tgt_vocab and word not in (EOS, UNK):
            raise ValueError(
                f"The model can't write {word!r}: it isn't among its words."
            )
    require_fit(model, src_vocab, tgt_vocab)
    model.eval()
    source, source_lens = pad([[*read.ids, EOS_ID]])
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
    if not forced.keys() <= set(range(1, len(steps) + 1)):
        raise ValueError(
            f"The translation has {len(steps)} steps, counted from 1: no word can be "
            f"forced at the steps {sorted(forced)}."
        )
    text = tgt_vocab.decode([tgt_vocab[step.word] for step in steps])
    return Exploration([*read.tokens, EOS], steps, read.unknown, text)


def take_step(decoder, last, state, annotations, vocab, wanted=None):
    """One step after the word with id `last` -> Step, the new state.

    annotations (1, S, D): what the encoder says of each source word.
    """
    query = decoder.query(state.hidden_state)
    scores = decoder.attention.score(query, state.projected_keys)
    logits, after = decoder(torch.tensor([[last]]), state)
    weights = after.attention_weights  # (1, 1, S)
    context = torch.bmm(weights, annotations)
    likeness = F.cosine_similarity(context, annotations, dim=-1)
    chances = logits[0, 0].softmax(dim=-1)
    ids = writable(chances).argsort(descending=True)[:CHOICES].tolist()
    word = vocab.to_tokens(ids[0]) if wanted is None else wanted
    if vocab[word] not in ids:
        ids.append(vocab[word])
    choices = {vocab.to_tokens(k): chances[k].item() for k in ids}
    numbers = [x.flatten().numpy() for x in (query, scores, weights, context, likeness)]
    return Step(*numbers, choices, word, wanted is not None), after


def picture(exploration, number):
    """The figure of a step for a page, with a text that says what it shows."""
    file, fig = io.BytesIO(), draw_step(exploration, number, Figure())
    fig.savefig(file, format="png", dpi=200)  # twice as fine as it is shown
    code = base64.b64encode(file.getvalue()).decode()
    text, (width, height) = html.escape(alternative_text(fig)), SIZE
    return (
        f"<img src='data:image/png;base64,{code}' width={width} height={height} "
        f"style='max-width: 100%; height: auto' alt='{text}'>"
    )


class Explorer(widgets.VBox):
    """The widget. models: {name: (model, src_vocab, tgt_vocab)}; sentences to pick."""

    def __init__(self, models, sentences):
        self.models, self.forced, self.exploration = models, {}, None
        self.model = widgets.Dropdown(options=list(models), description="into")
        self.pick = widgets.Dropdown(options=sentences, description="pick")
        self.sentence = widgets.Text(
            self.pick.value, description="or type", continuous_update=False
        )
        self.text, self.image = widgets.HTML(), widgets.HTML()
        self.step = widgets.BoundedIntText(1, min=1, max=1, description="step")
        self.back = widgets.Button(description="back")
        self.next = widgets.Button(description="next")
        self.force = widgets.Combobox(
            description="force", placeholder="another word", continuous_update=False
        )
        self.free = widgets.Button(description="free all words")
        for part, width in (
            (self.model, 14),
            (self.pick, 44),
            (self.sentence, 58),
            (self.step, 11),
            (self.back, 5),
            (self.next, 5),
        ):
            part.layout.width = f"{width}em"
        choice = widgets.HBox([self.model, self.pick])
        steps = [self.step, self.back, self.next, self.force, self.free]
        self.steps = widgets.HBox(steps)
        super().__init__([choice, self.sentence, self.steps, self.text, self.image])
        self.pick.observe(self._pick, "value")
        self.sentence.observe(self._translate, "value")
        self.model.observe(self._translate, "value")
        self.step.observe(self._show, "value")
        self.back.on_click(lambda _: self._go(-1))
        self.next.on_click(lambda _: self._go(1))
        self.force.observe(self._force, "value")
        self.free.on_click(self._translate)
        self._translate()

    def _pick(self, _):
        if self.pick.value is not None:
            self.sentence.value = self.pick.value

    def _go(self, change):
        self.step.value += change  # the field keeps it between first and last step

    def _translate(self, _=None):
        """Start again; what is wrong with a sentence stands in the picture's place."""
        text = self.sentence.value
        self.pick.value = text if text in self.pick.options else None
        good = self._explore({})
        if good and self.step.value == 1:
            self._show()
        elif good:
            self.step.value = 1  # and that shows it
        for part in (self.steps, self.image):
            part.layout.display = None if good else "none"

    def _force(self, _):
        """Write another word at this step; what was forced after it is free again."""
        word, i = self.force.value.strip().lower(), self.step.value
        earlier = {k: self.forced[k] for k in self.forced if k < i}
        if word and self._explore(earlier | {i: word}):
            self._show()

    def _explore(self, forced):
        """Whether it could be done; if not, the text says why."""
        model, *vocabs = self.models[self.model.value]
        try:
            found = explore(model, self.sentence.value, *vocabs, forced)
        except ValueError as error:
            self.text.value = f"<b role='alert'>{html.escape(str(error))}</b>"
            return False
        self.exploration, self.forced = found, forced
        self.step.max = len(found.steps)
        return True

    def _show(self, _=None):
        """The words, one of them marked, and the picture of its step."""
        found, i = self.exploration, self.step.value
        said = [html.escape(word) for word in found.tokens]
        said[i - 1] = f"<b aria-current='step'><u>{said[i - 1]}</u></b>"
        for k in self.forced:
            said[k - 1] += " <i>(forced)</i>"
        text = f"<span style='font-size:1.2em'>{' '.join(said)}</span>"
        if found.unknown:
            unknown = html.escape(", ".join(found.unknown))
            text += f"<br>The model reads <b>{unknown}</b> as {html.escape(UNK)}."
        self.force.options, self.force.value = list(found.steps[i - 1].choices), ""
        self.image.value = picture(found, i)
        self.text.value = f"<div role='status'>{text}</div>"
