"""The last exercise of notebook 06: a whole translator, judged by what it does.

The learner's model and decoding are called, never trained or changed. Each probe asks
one question of them, and answers in words that name the piece to look at. The figures
stand beside those of the course's own classes, `tools.experiments.own_pieces`.

Letters in shape comments: B sentences in a batch, S source and T target positions,
V words in the target vocabulary.
"""

import json
import math
import traceback
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

from utils.corpora import load_village
from utils.data import Batch
from utils.exercises.compare import UTILS, Outcome, difference, wrapped, wrong_kind
from utils.exercises.old_engine import Result, _not_attempted, _run, _Stopped
from utils.exercises.training import mean_loss, train_step
from utils.gold import gold_links
from utils.metrics import alignment_error_rate, bleu, links_from_weights
from utils.text import BOS_ID, EOS_ID, PAD_ID

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"
MAX_WORDS = 15  # Chinese words of a sentence, in training and here
HELD_OUT = 250  # sentences
MAX_STEPS = 40
PART = 50  # sentences in a call
NEAR = 1e-4  # what rounding may change
FIGURES = {  # name: how it is called and written, and how far off it may be
    "loss": ("loss, nats a word", "{:.2f}", 0.15),
    "bleu": ("BLEU", "{:.1f}", -6.0),
    "aer": ("alignment error rate", "{:.2f}", 0.08),
}
DOTS = "write your code where the dots are, then run the cell again."
COPIES = (
    "the model predicts the word that it has just read. The loss compares the logits "
    "with target_out, one word later than what is read, target_in."
)


class Wrong(Exception):
    """What is wrong, in words."""


@cache
def held_out():
    """Pairs that training hasn't seen, and the two vocabularies."""
    corpus = load_village("zh", "en")
    pairs = [p for p in corpus["valid"] if len(p.source) <= MAX_WORDS]
    return pairs[:HELD_OUT], corpus.vocabs()


def batch_of(pairs):
    return Batch.from_pairs(pairs, *held_out()[1])


@cache
def probed():
    """A few sentences of different lengths, two of them of the same: a Batch."""
    pairs, found = held_out()[0], []
    for length in (5, 9, 11, 11, 13):
        found.append(
            next(p for p in pairs if len(p.source) == length and p not in found)
        )
    return batch_of(found)


# --- calls that survive -------------------------------------------------------------


def ask(name, function, *arguments):
    """What a function returns; if it raises or doesn't end, Wrong says so."""
    outcome = _run(function, arguments)
    if isinstance(outcome.error, _Stopped):
        raise Wrong(f"{name} was stopped. Which loop doesn't end?")
    if outcome.error:
        cause = wrong_kind([outcome], [outcome], 0)
        said = [f"{name} doesn't run.", difference(outcome, outcome)]
        sizes = any(word in said[1] for word in ("size", "shape"))
        if found := sizes and shapes(outcome.error, len(arguments[0])):
            said.append(wrapped(found))
        if cause and "transposed" not in cause:
            said.append(wrapped(f"Likely cause: {cause}"))
        raise Wrong("\n".join(said))
    return outcome.value


def shapes(error, B):
    """The tensors at the place of the learner's code that raised: names, shapes."""
    found = {}
    for frame, _ in traceback.walk_tb(error.__traceback__):
        if not frame.f_code.co_filename.startswith(UTILS):
            if "site-packages" not in frame.f_code.co_filename:
                found = frame.f_locals
    parts = [f"{k} {tuple(v.shape)}" for k, v in found.items() if torch.is_tensor(v)]
    return parts and (
        f"There: {', '.join(parts)}. B is {B}. Which shape isn't meant? (The first "
        "state is (1, B, H), a query (B, 1, H).)"
    )


def forward(model, source, target_in, source_lens):
    """The model's logits and weights, of the right shapes, without gradient."""

    def call(*arguments):
        with torch.no_grad():
            return model(*arguments)

    found = ask("The model", call, source, target_in, source_lens)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise Wrong("the model must return two things: logits and weights.")
    B, S, T = *source.shape, target_in.shape[1]
    wanted = {"logits": (B, T, len(held_out()[1][1])), "weights": (B, T, S)}
    if [getattr(part, "shape", 0) for part in found] == [*wanted.values()][::-1]:
        raise Wrong("logits and weights are exchanged: the logits come first.")
    for (name, shape), value in zip(wanted.items(), found, strict=True):
        if not torch.is_tensor(value):
            raise Wrong(f"{name} must be a tensor, not a {type(value).__name__}.")
        if value.shape != shape:
            raise Wrong(wrong_shape(name, tuple(value.shape), shape))
        if not value.isfinite().all():
            raise Wrong(
                f"there are NaN or infinite {name}. Is a row of scores masked from end "
                "to end, or did the training diverge?"
            )
    return found


def wrong_shape(name, came, wanted):
    cause = ""
    letters = "(B, T, V)" if name == "logits" else "(B, T, S)"
    B, T, last = wanted
    if T > 1 and came in ((T, B, 1, last), (B, T, 1, last), (T * B, 1, last)):
        cause = " Join the steps, (B, 1, …), with torch.cat along axis 1."
    elif T > 1 and came == (B, T - 1, last):
        cause = " One step is missing: is <bos> read first, and the last word, too?"
    elif len(came) == 3 and came == (T, B, last):
        cause = " The steps came first: join them along axis 1."
    elif came == (wanted[0], wanted[2], wanted[1]):
        cause = " A row belongs to a target word, a column to a source word."
    elif came[:-1] == wanted[:-1] and name == "logits":
        cause = " The last axis is the target vocabulary, English."
    elif len(came) == 3 and came[1] == 1:
        cause = " Are these the last step's alone? Collect those of all steps."
    return f"{name} have shape {came}, not {letters} = {wanted}.{cause}"


def translated(translate, model, source, source_lens, steps=MAX_STEPS):
    """The translate function's ids and weights, of the right shapes."""

    def call(*arguments):
        with torch.no_grad():
            return translate(model, *arguments)

    found = ask("my_translate", call, source, source_lens, steps)
    if not isinstance(found, tuple | list) or len(found) != 2:
        raise Wrong("my_translate must return two things: ids and weights.")
    ids, weights = found
    if not torch.is_tensor(ids) or not torch.is_tensor(weights):
        raise Wrong("my_translate must return two tensors: ids and weights.")
    if ids.dim() != 2 or len(ids) != len(source) or ids.is_floating_point():
        raise Wrong(
            f"the ids must be whole numbers of shape (B, steps); {ids.dtype} of shape "
            f"{tuple(ids.shape)} came, for {len(source)} sentences."
        )
    if (ids[:, 0] == BOS_ID).all():
        first = torch.full_like(ids[:, :1], BOS_ID)
        if (forward(model, source, first, source_lens)[0].argmax(2) == BOS_ID).all():
            raise Wrong(COPIES)
        raise Wrong(
            "every translation begins with <bos>. The decoder reads <bos>; it isn't a "
            "word of the translation."
        )
    if ids.shape[1] > steps:
        raise Wrong(f"max_steps was {steps}, and {ids.shape[1]} words came.")
    if weights.shape != (*ids.shape, source.shape[1]):
        raise Wrong(
            f"my_translate's weights have shape {tuple(weights.shape)}, not (B, steps, "
            f"S) = {(*ids.shape, source.shape[1])}."
        )
    return ids, weights


def near(a, b, tolerance=NEAR):
    return bool((a - b).abs().max() <= tolerance)


# --- one question each --------------------------------------------------------------


def check_weights(model):
    """Does each row sum to 1 over the real source words, and is padding left out?"""
    batch = probed()
    logits, w = forward(model, batch.source, batch.target_in, batch.source_lens)
    if logits.min() >= 0 and near(logits.sum(2), torch.ones(()), 1e-3):
        raise Wrong(
            "the logits are probabilities. The loss contains the softmax: the output "
            "layer's numbers go there as they are."
        )
    real = torch.arange(w.shape[2]) < batch.source_lens[:, None, None]
    on_real = real.expand_as(w)
    sums, padding = w.sum(2), w[~on_real]
    if w.min() < -NEAR or (w.max() > 1 + NEAR and not near(w, w.clamp(0, 1))):
        raise Wrong(
            "the weights aren't between 0 and 1. Are they scores, before softmax?"
        )
    if not near(sums, torch.ones_like(sums), 1e-3):
        raise Wrong(wrong_sums(w, on_real, sums, batch.source_lens))
    padded = batch.source_lens < w.shape[2]
    if w[padded][on_real[padded]].max() < NEAR:
        raise Wrong("only padding is looked at: the mask is turned round.")
    last = w[torch.arange(len(w)), :, batch.source_lens - 1].amax(1)
    if last.max() == 0:
        raise Wrong(
            "the last real source position, <eos>, never gets weight: the mask has one "
            "position too few."
        )
    if last.min() == 0:
        raise Wrong(
            "in some sentences the last real words never get weight. Has each sentence "
            "a mask of its own, from its own length?"
        )
    if padding.max() > 1e-6:
        beyond = torch.arange(w.shape[2]) > batch.source_lens[:, None, None]
        if w[beyond.expand_as(w)].max() <= 1e-6:
            raise Wrong(
                "the first padded position gets weight: the mask has one position too "
                "many. Positions are counted from 0."
            )
        raise Wrong(
            f"padding gets weight, up to {padding.max():.2f}. Is the mask applied to "
            "the scores, before softmax, and is what it writes there so low that "
            "softmax makes it 0? (A score of 0 isn't low.)"
        )


def wrong_sums(w, on_real, sums, lens):
    full = lens == w.shape[2]
    if near(w[on_real], torch.ones(()), 1e-3):
        return (
            "every weight is 1: softmax runs over an axis of length 1. Over which axis "
            "are the source positions?"
        )
    if near(w.sum(0), torch.ones(()), 1e-3):
        return "the weights of different sentences sum to 1: softmax over the batch."
    if near(w.sum(1), torch.ones(()), 1e-3):
        return "the weights of a column sum to 1: softmax over the target words."
    if near(sums[full], torch.ones(()), 1e-3) and (sums[~full] < 1 - 1e-3).all():
        return (
            "where a sentence has padding, its weights sum to less than 1: padding was "
            "taken away after softmax. What did it get before?"
        )
    return (
        f"a row's weights sum to {sums.min():.2f} to {sums.max():.2f}, not to 1. "
        "Softmax over the source positions, last of all, sees to that."
    )


def check_alone(model):
    """Does a sentence get the same numbers alone as in a batch?"""
    batch = probed()
    together = forward(model, batch.source, batch.target_in, batch.source_lens)
    for n, length in enumerate(batch.source_lens.tolist()):
        row = slice(n, n + 1)
        alone = forward(
            model,
            batch.source[row, :length],
            batch.target_in[row],
            batch.source_lens[row],
        )
        if near(alone[0], together[0][row]) and near(
            alone[1], together[1][row, :, :length]
        ):
            continue
        if length == batch.source.shape[1] or rows_mix(model):
            raise Wrong(
                "a sentence's numbers change with its neighbours in the batch: rows "
                "are mixed. Look for a view or reshape where an axis should be moved "
                "(transpose) or two states joined (torch.cat), and for one sentence's "
                "keys, values or state that serve all."
            )
        raise Wrong(
            "a sentence's numbers change when padding is added, though padding gets no "
            "weight. What else reads the annotations? A mean counts the padding, and "
            "at the last position of a padded sentence there is no word."
        )


def rows_mix(model):
    """Whether two sentences of equal length change each other."""
    batch = probed()
    two = slice(2, 4)
    length = int(batch.source_lens[2])
    parts = batch.source[:, :length], batch.target_in, batch.source_lens
    pair = forward(model, *(part[two] for part in parts))
    single = forward(model, *(part[3:4] for part in parts))
    return not near(pair[0][1:], single[0])


def changed_at(model, k):
    """Which rows of logits and of weights change (T,), if only word k read does?"""
    batch = probed()
    other = batch.target_in.clone()
    other[:, k] = torch.where(other[:, k] == 7, 8, 7)
    a, b = (
        forward(model, batch.source, words, batch.source_lens)
        for words in (batch.target_in, other)
    )
    return [(x - y).abs().amax((0, 2)) > 1e-6 for x, y in zip(a, b, strict=True)]


def check_order(model):
    """Is the query s_{i-1}, and what is written carried from step to step?"""
    k = 2
    logits, weights = changed_at(model, k)
    if logits[:k].any() or weights[:k].any():
        raise Wrong(
            "a step changes when a later target word does: it reads words that aren't "
            "written yet. A step reads one word, and the state before it."
        )
    if not logits[k]:
        raise Wrong(
            "the word that a step reads doesn't change its logits. Is it read, and do "
            "the logits come from the GRU's output after that?"
        )
    if weights[k]:
        if changed_at(model, k - 1)[1][k]:
            raise Wrong(
                "a row of weights changes with the word that the same step reads: the "
                "update comes before the attention, or the weights are computed anew "
                "after it. The query is s_{i-1}, the state before the update."
            )
        raise Wrong(
            "a row of weights depends on the word just read, and on nothing before: "
            "the word is the query. The query is the state s_{i-1}."
        )
    if not logits[k + 1 :].any():
        raise Wrong(
            "what was read at one step is forgotten at the next: the new state isn't "
            "carried on. Which state does each step begin with?"
        )
    if not weights[k + 1 :].any():
        raise Wrong(
            "the words read so far never change the weights: each step asks with the "
            "same query, or without one. The query is s_{i-1}, new at each step. (And "
            "without tanh, the query adds the same to all scores of a row: softmax "
            "takes it out.)"
        )


def check_used(model):
    """Does every parameter change something?"""
    for name, parameter in model.named_parameters():
        # a bias of v is added to all scores alike: it has no effect, and does no harm
        if parameter.numel() > 1 and not any(moves(model, parameter, 3)):
            raise Wrong(
                f"{name} changes neither the weights nor the logits. Where should it "
                "be used? (If nowhere, take it away.)"
            )


def check_context(model):
    """Do the weights reach the same step's logits, and does the gradient return?"""
    for name, parameter in asking(model).items():
        changes = [moves(model, parameter, steps)[0] for steps in (1, 3)]
        if not any(changes):
            raise Wrong(
                f"{name} changes the weights, but no logits: "
                + (
                    "the context isn't the sum of the annotations with these weights. "
                    "A plain mean, or a hard choice (argmax), isn't attention."
                    if (moved_by(model, 1, 0, 0) or [False])[0]
                    else "the context is computed and forgotten. What does the update "
                    "read?"
                )
            )
        if not changes[0]:
            raise Wrong(
                f"{name} changes the weights of the first step, but not its logits: "
                "each update reads the context of the step before."
            )
        if not has_gradient(model, parameter):
            raise Wrong(
                f"no gradient comes back from the logits to {name}: the attention "
                "can't learn. Look for detach, no_grad, .item(), .data or a hard "
                "choice (argmax) between scores and context."
            )


def check_encoded(model):
    """Do the annotations reach the context, and both last states the first state?"""
    ends = {"last[0], the forward": (0, 1, 0), "last[1], the backward": (0, 0, 1)}
    for name, sizes in ends.items():
        found = moved_by(model, *sizes)
        if found and not any(found):
            raise Wrong(
                f"the first state doesn't change with {name} direction's last state, "
                "from encode. It joins both. (Zeros know nothing of the sentence. At "
                "the last position of a padded one there is no word.)"
            )
    for name, parameter in asking(model).items():
        with other(parameter, torch.zeros_like(parameter)):
            found = moved_by(model, 1, 0, 0)
        if found and not found[0]:
            raise Wrong(
                f"with {name} at 0, nothing of the annotations reaches the logits. "
                "The scores are made from keys. The context mixes the annotations "
                "themselves."
            )


def moved_by(model, *sizes):
    """Whether the first step's (logits, weights) move with what `encode` returns:
    annotations and both last states, changed by sizes. None if it isn't called."""
    batch, encode, called = probed(), getattr(model, "encode", None), []
    arguments = batch.source, batch.target_in[:, :1], batch.source_lens
    before = forward(model, *arguments)

    def changed(*arguments):
        values, last = called[:] = encode(*arguments)
        noise = torch.tensor(sizes[1:]).view(2, 1, 1) * torch.randn_like(last)
        return values + sizes[0] * torch.randn_like(values), last + noise

    try:
        model.encode = changed
        after = forward(model, *arguments)
    except Wrong:  # another `encode` than the given one
        return None
    finally:
        del model.encode
    if called:
        pairs = zip(before, after, strict=True)
        return tuple(not near(*pair, 1e-6) for pair in pairs)
    return None


def check_carried(model):
    """Does the gradient return through the steps, to the first word read?"""
    words = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]
    if words and not any(has_gradient(model, w, BOS_ID) for w in words):
        raise Wrong(
            "no gradient comes back from the last logits to the first word read: the "
            "state is cut off between the steps. Look for detach or .data."
        )


def asking(model):
    """The parameters that move the first step's weights: {name: parameter}."""
    return {
        name: parameter
        for name, parameter in model.named_parameters()
        if moves(model, parameter, 1)[1]
    }


def moves(model, parameter, steps):
    """Whether a parameter moves the logits, and the first row of weights."""
    batch = probed()
    arguments = batch.source, batch.target_in[:, :steps], batch.source_lens
    before, values = forward(model, *arguments), parameter.detach()
    with other(parameter, values + torch.randn_like(values) * (values.std() + 0.1)):
        after = forward(model, *arguments)
    logits, weights = zip(before, after, strict=True)
    first = [part[:, :1] for part in weights]
    return not near(*logits, 1e-6), not near(*first, 1e-6)


@contextmanager
def other(parameter, values):
    """Other values for a parameter, for a while."""
    kept = parameter.detach().clone()
    try:
        parameter.data.copy_(values)
        yield
    finally:
        parameter.data.copy_(kept)


def has_gradient(model, parameter, row=None):
    """Whether logits teach a parameter; or, the last ones, a row of it."""
    batch = probed()

    def gradient():
        logits, _ = model(batch.source, batch.target_in, batch.source_lens)
        logits = logits if row is None else logits[:, -1]
        slopes = torch.linspace(-1, 1, logits.numel()).view(logits.shape)
        if not logits.requires_grad or not parameter.requires_grad:
            return None
        return torch.autograd.grad(
            (logits * slopes).sum(), parameter, allow_unused=True
        )[0]

    found = ask("The model's gradient", gradient)
    return found is not None and bool((found[... if row is None else row] != 0).any())


MODEL_QUESTIONS = (
    check_weights,
    check_order,
    check_used,
    check_context,
    check_encoded,
    check_carried,
    check_alone,
)


def check_words(model, translate):
    """Is each word the most probable one after the translation's own words?"""
    batch = probed()
    ids, weights = translated(translate, model, batch.source, batch.source_lens)
    words = with_bos(ids)
    logits, forced = forward(model, batch.source, words, batch.source_lens)
    padding = torch.arange(weights.shape[2]) >= batch.source_lens[:, None, None]
    if (weights * padding)[:, 0].max() > 1e-6:
        raise Wrong(
            "padding gets weight in my_translate, and not in the model. Are the same "
            "lengths handed on?"
        )
    going = before_end(ids)
    if not chosen(logits, ids)[going].all():
        raise Wrong(wrong_words(model, translate, ids, going))
    if not near(weights[going], forced[going]):
        raise Wrong(
            "the words are right, but the weights beside them are those of other "
            "steps. Keep each step's weights with the word that the step writes."
        )


def with_bos(ids):
    return torch.cat((torch.full_like(ids[:, :1], BOS_ID), ids[:, :-1]), dim=1)


def before_end(ids):
    """(B, T): True up to the first <eos>, itself included."""
    ended = (ids == EOS_ID).long().cumsum(1) - (ids == EOS_ID).long()
    return ended == 0


def chosen(logits, ids):
    """(B, T): is this id the best, <pad> and <bos> left out or not?"""
    best = logits.index_fill(2, torch.tensor([PAD_ID, BOS_ID]), -math.inf).amax(2)
    return logits.gather(2, ids.unsqueeze(2))[..., 0] >= best - NEAR


def wrong_words(model, translate, ids, going):
    """Why these aren't the most probable words."""
    batch = probed()

    def explains(words, steps=1, places=None):
        parts = [
            forward(model, batch.source, part, batch.source_lens)[0]
            for part in words.split(steps, dim=1)
        ]
        right = chosen(torch.cat(parts, dim=1), ids)
        return right[going if places is None else places].all()

    again, _ = translated(translate, model, batch.source, batch.source_lens)
    if again.shape != ids.shape or (again != ids).any():
        return (
            "two calls give different words: greedy decoding draws nothing by chance."
        )
    words = with_bos(ids)
    if explains(words):
        return (
            "each step begins again with the first state. The state that a step "
            "returns goes into the next step."
        )
    if explains(torch.full_like(words, BOS_ID), words.shape[1]):
        return (
            "every step reads <bos>. From the second on, a step reads the word written."
        )
    for first, name in ((EOS_ID, "<eos>"), (PAD_ID, "<pad>")):
        other = words.clone()
        other[:, 0] = first
        if explains(other, words.shape[1]):
            return f"the first word read is {name}. A translation begins with <bos>."
    ends = ((ids == PAD_ID).cumsum(1) == 1) & (ids == PAD_ID)
    kept = ids.masked_fill(ends, EOS_ID)
    logits = forward(model, batch.source, with_bos(kept), batch.source_lens)[0]
    if ends.any() and chosen(logits, kept)[before_end(kept)].all():
        return "<eos> itself isn't kept: <pad> stands in its place."
    return (
        "the words aren't the most probable ones after the words written so far. Does "
        "a step read its own last word, and is argmax over the words, the last axis?"
    )


def check_end(model, translate):
    """Does a translation stop at <eos>, whatever its neighbours do?"""
    batch = probed()
    ids, _ = translated(translate, model, batch.source, batch.source_lens)
    after = ids[~before_end(ids)]
    if len(after) and (after != PAD_ID).any():
        raise Wrong(
            "words stand after <eos>. When a sentence has ended, write <pad> (id 0) "
            "until the others have."
        )
    for n, length in enumerate(batch.source_lens.tolist()):
        row = slice(n, n + 1)
        alone, _ = translated(
            translate, model, batch.source[row, :length], batch.source_lens[row]
        )
        both = min(alone.shape[1], ids.shape[1])
        longer = ids[row] if ids.shape[1] > both else alone
        if (alone[:, :both] != ids[row, :both]).any() or longer[:, both:].any():
            raise Wrong(
                "a sentence's translation alone isn't the one that it gets in a batch. "
                "Does the loop end when the first sentence has ended, in place of the "
                "last?"
            )
    ids, _ = translated(translate, model, batch.source, batch.source_lens, steps=3)
    if ids.shape[1] < 3 and not (ids == EOS_ID).any(1).all():
        raise Wrong(
            f"max_steps was 3, and {ids.shape[1]} words came, though sentences hadn't "
            "ended."
        )


TRANSLATE_QUESTIONS = (check_words, check_end)


# --- the figures --------------------------------------------------------------------


def measure(model, translate):
    """Figures on held-out sentences: {"loss", "bleu", "aer"}, and where they come from.

    Second: how the logits stand to the words, for `check_learnt`.
    """
    pairs, (_, vocab) = held_out()
    totals, written, links = torch.zeros(6), [], {0: [], -1: [], 1: []}
    for start in range(0, len(pairs), PART):
        part = pairs[start : start + PART]
        batch = batch_of(part)
        logits, weights = forward(
            model, batch.source, batch.target_in, batch.source_lens
        )
        totals += counted(logits, batch)
        ids, _ = translated(translate, model, batch.source, batch.source_lens)
        written += [vocab.to_tokens(up_to_eos(row)) for row in ids.tolist()]
        for shift, found in links.items():
            found += [
                links_from_weights(w.roll(shift, 0)[: len(p.target), : len(p.source)])
                for w, p in zip(weights.clamp(0, 1), part, strict=True)
            ]
    gold = gold_links(pairs)
    rates = {shift: alignment_error_rate(a, *gold).aer for shift, a in links.items()}
    words = totals[0]
    figures = {
        "loss": (totals[1] / words).item(),
        "bleu": bleu(written, [list(p.target) for p in pairs]),
        "aer": rates[0],
    }
    names = ("right", "copied", "ahead")
    signs = dict(zip(names, (totals[2:5] / words).tolist(), strict=True))
    padding = sum(
        int((batch_of(pairs[n : n + PART]).target_out == PAD_ID).sum())
        for n in range(0, len(pairs), PART)
    )
    return figures, signs | {"pad": totals[5].item() / padding, "shifted": rates}


def counted(logits, batch):
    """Sums over real words: words, nats, right, equal to the word read, equal to the
    word after; and over padding: the probability of <pad>."""
    words, real = batch.target_out, batch.target_out != PAD_ID
    nats = F.cross_entropy(logits.transpose(1, 2), words, reduction="none")
    best = logits.argmax(-1)
    after = F.pad(words[:, 1:], (0, 1))
    found = [real, nats * real, (best == words) & real]
    found += [(best == batch.target_in) & real, (best == after) & real]
    found += [logits.softmax(-1)[..., PAD_ID] * ~real]
    return torch.stack([value.float().sum() for value in found])


def up_to_eos(row):
    return row[: row.index(EOS_ID)] if EOS_ID in row else row


@cache
def course_figures():
    """{figure: (lowest, highest)} of the course's own classes, over its seeds."""
    stored = json.loads((RESULTS / "own_pieces.json").read_text(encoding="utf-8"))
    return {
        name: [f(run[name] for run in stored["runs"]) for f in (min, max)]
        for name in FIGURES
    }


def check_learnt(figures, signs):
    """What the figures say about the training and its loss; Wrong, or nothing."""
    if signs["copied"] > max(0.5, signs["right"]):
        raise Wrong(COPIES)
    if signs["ahead"] > max(0.3, signs["right"]):
        raise Wrong(
            "the model predicts the word after the next: the targets are shifted "
            "twice. target_out is one word later than target_in already."
        )
    if signs["pad"] > 0.5:
        raise Wrong(
            "after <eos> the model is sure that <pad> comes next. Somebody has taught "
            "it: the loss counts padding."
        )
    off = {name for name in FIGURES if is_off(name, figures[name])}
    if not off:
        return
    size = len(held_out()[1][1])
    if figures["loss"] > 0.8 * math.log(size):
        raise Wrong(
            "The pieces are right. What is missing is the training: run the next cell. "
            "(Trained already? Was it this model? What my_translate does at <eos> is "
            "asked once sentences end.)"
        )
    if "loss" in off or {"bleu", "aer"} <= off:
        raise Wrong(
            "the pieces behave as they should, but the model has learnt less than the "
            "course's. Was it trained for all epochs, at the rate of the training "
            "cell? Is zero_grad called at every step? Is the loss a mean over real "
            "words?"
        )
    best = min(signs["shifted"], key=signs["shifted"].get)
    if "aer" in off and best:
        raise Wrong(
            "the translation is good, but the heatmap is wrong, and better when moved "
            "by one row: each row of weights stands beside a neighbour's word."
        )
    if "aer" in off:
        raise Wrong(
            "the translation is good, but the heatmap is wrong. Are these the weights "
            "that the context was summed with?"
        )
    raise Wrong(
        "the loss is good, but the translations are worse than they should be. What "
        "does my_translate do that training doesn't?"
    )


def is_off(name, value):
    low, high = course_figures()[name]
    allowed = FIGURES[name][2]
    return value > high + allowed if allowed > 0 else value < low + allowed


def table(figures):
    lines = [f"{'':22}{'yours':>8}   the course's, three seeds"]
    for name, (title, form, _) in FIGURES.items():
        low, high = map(form.format, course_figures()[name])
        lines.append(f"{title:22}{form.format(figures[name]):>8}   {low} to {high}")
    return "\n".join(lines)


# --- the exercise -------------------------------------------------------------------


class OwnTranslator:
    """Call it with a model and a translate function, to have both judged.

    model(source, target_in, source_lens) -> logits (B, T, V), weights (B, T, S);
    translate(model, source, source_lens, max_steps) -> ids (B, steps), padded after
    <eos>, and weights (B, steps, S). The loss and the training step, if they are given,
    are asked what notebook 05 asks. The model isn't trained, and nothing is changed.
    """

    def __repr__(self):
        return "<exercise own_translator: call it with your model and my_translate>"

    def __call__(self, model=..., translate=..., *training) -> Result:
        """Ask all questions; print, and return, what is said about the answers."""
        with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
            torch.manual_seed(0)
            passed, message = judged(model, translate, training)
        print(message)
        return Result("own_translator", passed, message)


def judged(model, translate, training):
    if not_begun(model):
        return False, f"Not attempted yet: {DOTS}"
    if isinstance(model, type) or not isinstance(model, nn.Module):
        return False, (
            "Not yet: give the check your model itself, an nn.Module, and then the "
            "function that translates."
        )
    was_training = model.training
    model.eval()
    try:
        return judged_in_order(model, translate, training)
    finally:
        model.train(was_training)


def not_begun(model):
    if not isinstance(model, nn.Module):
        return model is ... or (callable(model) and _not_attempted(model, Outcome()))
    batch = probed()
    arguments = batch.source, batch.target_in, batch.source_lens
    return _not_attempted(type(model).forward, _run(model, arguments))


def judged_in_order(model, translate, training):
    questions, asked, figures = [*MODEL_QUESTIONS], 0, None
    try:
        for question in questions:
            question(model)
            asked += 1
        batch = probed()
        call = (model, batch.source, batch.source_lens, 3)
        if translate is ... or _not_attempted(translate, _run(translate, call)):
            return False, f"The model's pieces fit together. Now my_translate: {DOTS}"
        for question in TRANSLATE_QUESTIONS:
            question(model, translate)
            asked += 1
        for exercise, answer in zip((mean_loss, train_step), training, strict=False):
            passed, said = exercise._judge(answer)
            name = getattr(answer, "__name__", exercise.name)
            if not passed:
                return False, f"The model and my_translate fit together. {name}: {said}"
        figures, signs = measure(model, translate)
        check_learnt(figures, signs)
    except Wrong as wrong:
        lines = [] if figures is None else [table(figures)]
        first, *more = f"Not yet: {wrong}".split("\n", 1)
        return False, "\n".join([*lines, wrapped(first).strip(), *more])
    except Exception as error:
        return (
            False,
            f"Not yet: the answers can't be judged.\n  {type(error).__name__}: {error}",
        )
    return True, f"{table(figures)}\n✓ Right: {asked} questions, and the figures."


own_translator = OwnTranslator()
