"""The last exercise of notebook 07: questions about a learner's whole translator.

What the learner wrote is called, never trained or changed. A question is a method that
returns {a sentence: is it to be said?}; the first that is ends the exercise.
"""

import json
import re
from contextlib import redirect_stdout
from functools import cache
from io import StringIO

import torch
from torch import nn
from torch.nn import functional as F

from utils.corpora import load_village
from utils.data import Batch, pad
from utils.exercises.engine import check_attempted, difference, kind, same
from utils.exercises.result import UTILS, Fault, Result, judged, say, width
from utils.exercises.running import Outcome, run
from utils.exercises.training import mean_loss, train_step
from utils.gold import gold_links
from utils.metrics import alignment_error_rate, bleu, links_from_weights
from utils.text import BOS_ID, EOS_ID, PAD_ID

STORED = UTILS.parent / "data" / "results" / "own_pieces.json"
MAX_WORDS = 15  # Chinese words of a sentence, in training and here
HELD_OUT = 250  # sentences
MAX_STEPS = 40
TWO = {"fits": lambda value: isinstance(value, tuple | list) and len(value) == 2}
FIGURES = {  # name: how it is called and written, and how much worse it may be
    "loss": ("loss, nats a word", "{:.2f}", 0.15),
    "bleu": ("BLEU", "{:.1f}", -6.0),
    "aer": ("alignment error rate", "{:.2f}", 0.08),
}


@cache
def held_out():
    """Pairs that training hasn't seen, and the two vocabularies."""
    corpus = load_village("zh", "en")
    pairs = [p for p in corpus["valid"] if len(p.source) <= MAX_WORDS]
    return pairs[:HELD_OUT], corpus.vocabs()


def returned(answer, before, *arguments, wanted, fits, grad=False):
    """What a learner's function returns, if that fits; else the Fault of it."""

    def call(*arguments):
        with torch.set_grad_enabled(grad):
            return answer(*before, *arguments)

    outcome, right = run(call, arguments), Outcome(say(wanted))
    piece = getattr(answer, "__name__", type(answer).__name__)
    check_attempted(getattr(type(answer), "forward", answer), outcome, piece)
    if outcome.error or not fits(outcome.value):
        said = kind(outcome, right) or ["It should run, and return {}.", right.value]
        if re.search(r"of dimensions: got (3 and 2|2 and 3)\b", str(outcome.error)):
            said = [
                "`step` reads embedded words, (B, 1, E), and here ids came. Embed them "
                "first, or give my_greedy the method that reads ids."
            ]
        raise Fault(*said, lines=difference(outcome, right))
    return outcome.value


def check_shape(name, value, *size):
    dtype = getattr(value, "dtype", None)
    came, wanted = Outcome(value), Outcome(torch.zeros(size, dtype=dtype))
    if said := kind(came, wanted):
        raise Fault(*said, lines=[say(name), *difference(came, wanted)])


class Questions:
    """About a model, and a function that translates by it."""

    def __init__(self, model, translate):
        self.model, self.translate = model, translate
        named = model.named_parameters()
        self.keys = {n: p for n, p in named if n.endswith("U.weight")}  # (H, D) each
        pairs = {len(p.source): p for p in held_out()[0]}
        self.pairs = [pairs[length] for length in (5, 8, 9, 11, 13)]
        self.batch = Batch.from_pairs(self.pairs, *held_out()[1])

    def forward(self, batch, words=None, grad=False):
        """Logits (B, T, V) and weights (B, T, S), for other words read, too."""
        words = batch.target_in if words is None else words
        arguments = batch.source, words, batch.source_lens
        wanted = {"wanted": "two things, the weights last", **TWO}
        logits, weights = returned(self.model, (), *arguments, **wanted, grad=grad)
        check_shape("logits", logits, *words.shape, len(held_out()[1][1]))
        check_shape("weights", weights, *words.shape, batch.source.shape[1])
        return logits, weights

    def translated(self, batch):
        """Ids of each sentence, without <eos>."""

        def are_rows(rows):
            lists = isinstance(rows, list) and all(isinstance(r, list) for r in rows)
            sizes = lists and {*map(len, rows)} <= {*range(MAX_STEPS + 1)}
            ints = sizes and all(type(word) is int for row in rows for word in row)
            return ints and len(rows) == len(batch.source)

        arguments = (self.model,), batch.source, batch.source_lens, MAX_STEPS
        wanted = "a list of {} lists of at most {} ids, plain whole numbers"
        wanted = say(wanted, len(batch.source), MAX_STEPS)
        return returned(self.translate, *arguments, wanted=wanted, fits=are_rows)

    def is_your_own(self):
        """Is every part of the model the learner's, but the bridge?"""
        kinds = {kind for part in self.model.modules() for kind in type(part).__mro__}
        lent = {k.__name__ for k in kinds if k.__module__.startswith("utils.")}
        said = "The course's {} is in your model. Put your own class in its place."
        return {said: min(lent - {"Bridge"}, default="")}

    def reads_both_ways(self):
        """Do the encoder's results have their shapes, and do both directions read?"""
        ids, lens = self.batch.source, self.batch.source_lens
        other = ids.index_put((torch.arange(len(ids)), lens - 1), torch.tensor(7))
        wanted = {"wanted": "two things, the outputs and the state", **TWO}
        firsts, H = [], max((p.shape[1] for p in self.keys.values()), default=128)
        for words in (ids, other):  # the last one is another
            outputs, state = returned(self.model.encoder, (), words, lens, **wanted)
            check_shape("MyEncoder's outputs (B, S, H)", outputs, *ids.shape, H)
            check_shape("MyEncoder's state (1, B, H)", state, 1, len(ids), H)
            firsts.append(outputs[:, 0])
        return {
            "Your encoder reads in one direction only: its output at the first word "
            "doesn't change with the last word.": same(*firsts)
        }

    def weighs(self):
        """Does a row of weights sum to 1 over the real words, without the padding?"""
        logits, w = self.forward(self.batch)
        lens, ones = self.batch.source_lens[:, None, None], torch.ones_like(w[..., 0])
        padding = (torch.arange(w.shape[2]) >= lens).expand_as(w)
        last = w.gather(2, (lens - 1).expand(-1, w.shape[1], 1)).amax((1, 2))
        return {
            "The logits are probabilities. The loss contains the softmax: give it the "
            "last layer's numbers as they are.": same(logits.sum(2), ones),
            "The weights of a row don't sum to 1. Over which axis is softmax? Does a "
            "mask come after it, or hide all of a row?": not same(w.sum(2), ones),
            "The last real word, <eos>, of a sentence gets no weight. Is the mask "
            "turned round, short, or another sentence's?": last.min() == 0,
            "Padding gets weight. Does the mask come before softmax, does it write a "
            "0, or is it a position too long?": w[padding].max() > 1e-6,
        }

    def goes_in_order(self, k=2):
        """Is the query the state before the step, and is the new state carried on?"""
        words = self.batch.target_in.clone()
        words[:, k] = torch.where(words[:, k] == 7, 8, 7)
        pairs = zip(*(self.forward(self.batch, w) for w in (None, words)), strict=True)
        logits, weights = ((a - b).abs().amax((0, 2)) > 1e-6 for a, b in pairs)  # (T,)
        return {
            "A step changes when a later target word does. It should read one word, "
            "and the state before it.": logits[:k].any() or weights[:k].any(),
            "The word that a step reads doesn't change its logits. Are they made from "
            "what the GRU returns?": not logits[k],
            "A row of weights changes with the word that the same step reads. The "
            "query is the state before the update.": weights[k],
            "What was read at one step is forgotten at the next. Which state does each "
            "step begin with?": not logits[k + 1 :].any(),
            "The words read so far never change the weights. The query is a new state "
            "at each step. (Is tanh missing?)": not weights[k + 1 :].any(),
        }

    def idle(self, batch):
        """The parameters that no gradient reaches from the first step's logits."""
        logits, _ = self.forward(batch, batch.target_in[:, :1], grad=True)
        # a bias of v is added to all scores alike: it has no effect, and does no harm
        names = {n: p for n, p in self.model.named_parameters() if p.numel() > 1}
        total = (logits * torch.linspace(-1, 1, logits.shape[2])).sum()
        grads = torch.autograd.grad(total, names.values(), materialize_grads=True)
        return [n for n, g in zip(names, grads, strict=True) if g.abs().max() < 1e-5]

    def can_learn(self):
        """Is every parameter used, and does its gradient come back?"""
        ones = torch.ones_like(self.batch.source_lens)  # one word has weight 1, always
        word = self.batch._replace(source=self.batch.source[:, :1], source_lens=ones)
        idle = ", ".join(self.idle(self.batch))
        mixed = self.keys.keys() - self.idle(word)
        return {
            "No gradient comes from the first step's logits to {}. Is it used, does "
            "the GRU read the context of its own step, is the first state zero? Does "
            "detach, no_grad, .item() or argmax stand between?": idle,
            "More than the scores reads U. Does the context mix the keys, U times the "
            "annotations, in place of the annotations?": mixed,
        }

    def projects_once(self):
        """Does a row of weights change with the sign of U? U twice has none."""
        rows = []
        for _ in range(2):  # twice turned round, it is as it was
            rows.append(self.forward(self.batch)[1])
            for parameter in self.keys.values():
                parameter.data.neg_()
        return {
            "The keys are multiplied by U twice. attend gets them projected already: "
            "which matrix leaves them as they are?": self.keys and same(*rows),
        }

    def is_the_same_alone(self):
        """Does a sentence get the same numbers alone as in a batch?"""
        changed, (logits, weights) = False, self.forward(self.batch)
        for n, pair in enumerate(self.pairs):
            batch = Batch.from_pairs([pair], *held_out()[1])
            one = [part[0] for part in self.forward(batch)]
            T, S = one[1].shape
            changed |= not same(one, [logits[n, :T], weights[n, :T, :S]])
        return {
            "A sentence's numbers change with the batch. Does a view or reshape mix "
            "rows? Is padding read, at the last position?": changed,
        }

    def writes_the_best(self):
        """Does my_translate write the model's most probable words, up to <eos>?"""
        rows = self.translated(self.batch)
        words, lens = pad([[BOS_ID, *row] for row in rows])
        after, _ = pad([[*row, EOS_ID] for row in rows])  # each word's next one
        logits, _ = self.forward(self.batch, words)
        best = logits.index_fill(2, torch.tensor([PAD_ID, BOS_ID]), -torch.inf).amax(2)
        right = logits.gather(2, after[..., None])[..., 0] >= best - 1e-4  # (B, T)
        ends = torch.arange(len(words[0])) == lens[:, None] - 1  # where <eos> is next
        early = ends & (lens[:, None] <= MAX_STEPS) & ~right
        return {
            "A translation holds <eos>, id 2, which says that it has ended. The words "
            "before the first <eos> are asked for.": (words == EOS_ID).any(),
            "my_translate's words aren't the most probable. Is <bos> read first, then "
            "each step's word? Is each new state carried on?": not (
                right | ends | (words == PAD_ID)
            ).all(),
            "A translation ends where <eos> isn't the most probable word. What ends "
            "the loop of my_greedy?": early.any(),
        }

    def asked(self, loss, step):
        """The words if all is right; else the Fault of what isn't."""
        first = self.is_your_own, self.reads_both_ways, self.weighs, self.goes_in_order
        then = self.can_learn, self.projects_once, self.is_the_same_alone
        for question in (*first, *then, self.writes_the_best):
            for sentence, so in question().items():
                if so:
                    raise Fault(sentence, so)
        for exercise, answer in ((mean_loss, loss), (train_step, step)):
            with redirect_stdout(StringIO()):
                found = exercise(answer)
            if not found:
                said, lines = "Notebook 06 says of the {}:", found.message.splitlines()
                raise Fault(said, exercise.name, lines=lines, status=found.status)
        figures = measure(self.model, self.translate)
        lines, bad = compared(figures)
        if figures["loss"] > 5:  # all words being equally probable, it is 6.3
            raise Fault(
                "The pieces are right. What is missing is the training: run the next "
                "cell. (Trained already? Was it this model?)"
            )
        if bad:
            raise Fault(
                "The pieces are right. Not as good as the course's: {}. Were all "
                "epochs trained, at the given rate?",
                ", ".join(bad),
                lines=lines,
            )
        return "\n  ".join([say("✓ Right: all questions, and the figures."), *lines])


def measure(model, translate):
    """Figures on held-out sentences: {"loss", "bleu", "aer"}."""
    (pairs, vocabs), asked = held_out(), Questions(model, translate)
    batch, links = Batch.from_pairs(pairs, *vocabs), []
    logits, weights = asked.forward(batch)
    loss = F.cross_entropy(logits.mT, batch.target_out, ignore_index=PAD_ID)
    written = [vocabs[1].to_tokens(row) for row in asked.translated(batch)]
    for w, p in zip(weights.clamp(0, 1), pairs, strict=True):
        links.append(links_from_weights(w[: len(p.target), : len(p.source)]))
    return {
        "loss": loss.item(),
        "bleu": bleu(written, [list(p.target) for p in pairs]),
        "aer": alignment_error_rate(links, *gold_links(pairs)).aer,
    }


def compared(figures):
    """Lines of the figures beside the course's; and the names of those that are bad."""
    runs = json.loads(STORED.read_text(encoding="utf-8"))["runs"]
    lines, bad = [f"{'':25}{say('yours   the course, three seeds')}"], []
    for name, (title, form, most) in FIGURES.items():
        low, high = (end(run[name] for run in runs) for end in (min, max))
        worse = figures[name] - high if most > 0 else low - figures[name]
        bad += [say(title)] if worse > abs(most) else []
        low, value, high = map(form.format, (low, figures[name], high))
        title = say(title) + " " * (22 - width(say(title)))
        lines.append(f"{title}{value:>8}   {say('{} to {}', low, high)}")
    return lines, bad


def own_translator(model=..., translate=..., loss=..., step=...) -> Result:
    """Judge a model and three functions; the model is left in evaluation mode."""

    def judge():
        check_attempted(model, Outcome(model))
        if not isinstance(model, nn.Module):
            raise Fault("Give the check your model itself, then your functions.")
        return Questions(model.eval(), translate).asked(loss, step)

    return judged("own_translator", judge)
