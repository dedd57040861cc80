"""The measurements of speed. Each returns rows for the table.

A row is a dict: what was measured, against what, the target, and one value a round.
Larger values are better: a ratio of 2 says that our side needs half the time.
"""

import copy
import itertools
import statistics
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from sides import (
    LOSSES,
    SIDES,
    Sizes,
    check_same_step,
    close,
    our_model,
    our_step,
    random_batch,
    reference,
    reference_step,
    step_of,
)
from timing import alternate, ratios, seconds, timed

from utils.attention import AdditiveAttention, masked_softmax
from utils.corpora import load_multi30k
from utils.d2l_bridge import load_d2l, reference_attention
from utils.data import Batch, BatchLoader
from utils.decoding import translate_tokens
from utils.models import build_model
from utils.training import Trainer, train_step

D2L = "d2l 0.17.0"
CAP = 60  # steps of decoding, for both sides; the longest test source has 36 words
STEP_TARGETS = {  # of a step against d2l's, by S = T
    15: {"plain": 1.4, "by hand": 1.7},
    50: {"plain": 1.6, "by hand": 2.5},
}
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm")
EQUAL = 0.99  # of the translations; rounding decides where two words are a tie


class Settings(NamedTuple):
    """What `--quick` makes smaller."""

    rounds: int = 7
    sizes: Sizes = Sizes()
    lengths: tuple = (15, 50)
    growth_lengths: tuple = (10, 15, 20, 30, 40, 60, 80)
    grid: tuple = ((1, 16, 64), (1, 10), (5, 25, 100), (32, 256))  # B, Q, K, H
    sentences: int | None = None  # of Multi30k; None for all
    min_seconds: float = 0.01  # the shortest measurement of a small operation


QUICK = Settings(
    rounds=2,
    sizes=Sizes(V=300, E=16, H=32, B=8),
    lengths=(5, 10),
    growth_lengths=(5, 10),
    grid=((1, 8), (4,), (5, 20), (32,)),
    sentences=80,
    min_seconds=0.001,
)


def row(what, against, values, target=None, unit="×", note=""):
    """A row of the table; values: one a round. Without any, the note says why."""
    return {
        "what": what,
        "against": against,
        "target": target,
        "unit": unit,
        "values": list(values),
        "note": note,
    }


def rows_of_sides(what, taken, text, targets=None):
    """Our two losses against d2l, and against each other.

    taken: {side: a value a round}, of which less is better; text: one as words.
    """
    note = ", ".join(f"{k} {text(statistics.median(v))}" for k, v in taken.items())
    targets = targets or {}
    rows = []
    for ours, other in (("plain", "d2l"), ("by hand", "d2l"), ("by hand", "plain")):
        target = targets.get(ours) if other == "d2l" else None
        against = D2L if other == "d2l" else other
        values = ratios(taken[other], taken[ours])
        rows.append(row(f"{what}, {ours}", against, values, target, note=note))
        note = ""  # said once
    return rows


def training_steps(settings):
    """Rows: a step on a padded batch, plain and by hand, against d2l's."""
    rows = []
    for S in settings.lengths:
        batch, model = random_batch(settings.sizes, S), our_model(settings.sizes)
        check_same_step(model, reference(model), batch)
        steps = [timed(step_of(side, settings.sizes, batch), 3) for side in SIDES]
        taken = alternate(*steps, rounds=settings.rounds)
        rows += rows_of_sides(
            f"training step, S = T = {S}, lengths {S // 2} to {S}",
            dict(zip(SIDES, taken, strict=True)),
            lambda t: f"{1000 * t:.1f} ms",
            STEP_TARGETS.get(S),
        )
    return rows


# --- real text -----------------------------------------------------------------


def real_text(settings):
    """Rows: an epoch of Multi30k and the translation of its test split."""
    epoch = "one epoch of Multi30k, de→en"
    decoding = "greedy translation of the test split, sentences a second"
    try:
        corpus = load_multi30k("de", "en")
    except ConnectionError:
        why = "Multi30k isn't there and can't be downloaded"
        return [row(what, D2L, [], note=why) for what in (epoch, decoding)]
    vocabs = corpus.vocabs(min_freq=2)
    _, E, H, _ = settings.sizes
    torch.manual_seed(0)
    model = build_model("attention", *map(len, vocabs), E, H)
    train, test = (corpus[s][: settings.sentences] for s in ("train", "test"))
    taken = epoch_seconds(model, train, vocabs, settings)
    text = lambda t: f"{t * settings.rounds:.0f} s"  # noqa: E731  of the whole epoch
    rows = rows_of_sides(epoch, taken, text, {"by hand": 5})
    # The model that this epoch has trained translates: its sentences end.
    values, note = decoding_ratios(model, test, vocabs, settings.rounds)
    rows.append(row(decoding, D2L, values, target=20, note=note))
    return rows + search_rows(model, test, vocabs, settings.rounds)


def epoch_seconds(model, train, vocabs, settings):
    """{side: the seconds of each part of an epoch}; afterwards `model` is trained.

    Each side goes once through all pairs, in `settings.rounds` parts that alternate.
    Making the batches is in the time, translating words into ids is not. Our batches
    are of similar lengths, d2l's all padded to the longest sentence.
    """
    B, net = settings.sizes.B, reference(model)
    check_same_step(model, net, Batch.from_pairs(train[:B], *vocabs))
    loader, tokens = BatchLoader(train, *vocabs, B), dict.fromkeys(SIDES, 0)
    sides = {}
    for loss, function in LOSSES.items():
        ours = model if loss == "plain" else copy.deepcopy(model)
        trainer = Trainer(ours, loader, num_epochs=1)  # its optimizer; no warm-up
        step = partial(train_step, loss_function=function)
        sides[loss] = loader.epoch(0), partial(step, ours, optimizer=trainer.optimizer)
    adam = torch.optim.Adam(net.parameters(), lr=trainer.lr)
    arrays = load_d2l().load_array(Batch.from_pairs(train, *vocabs), B)
    theirs = (Batch(*fields) for fields in arrays)
    sides["d2l"] = theirs, partial(reference_step, net, optimizer=adam)
    parts = [len(part) for part in np.array_split(range(len(loader)), settings.rounds)]

    def measured(side):
        batches, step = sides[side]
        left = iter(parts)

        def part():
            for batch in itertools.islice(batches, next(left)):
                step(batch=batch)
                tokens[side] += int(batch.target_lens.sum())

        return lambda: seconds(part)

    taken = alternate(*map(measured, sides), rounds=settings.rounds, warm_up=False)
    if len(set(tokens.values())) > 1:
        raise AssertionError(f"the sides saw different numbers of words: {tokens}")
    return dict(zip(sides, taken, strict=True))


def without_padding(net):
    """d2l's model for one sentence at a time, its encoder given the words alone.

    `predict_seq2seq` pads every source to num_steps, and d2l's encoder would read that.
    """
    d2l = load_d2l()

    class Encoder(d2l.Encoder):
        def __init__(self, encoder):
            super().__init__()
            self.encoder = encoder

        def forward(self, X, valid_len):
            return self.encoder(X[:, : valid_len.item()])

    return d2l.EncoderDecoder(Encoder(net.encoder), net.decoder)


def decoding_ratios(model, test, vocabs, rounds):
    """One ratio a round, and a note.

    Our side translates all sentences, d2l's every n-th in one of n rounds.
    """
    net = without_padding(reference(model))
    sentences = [list(pair.source) for pair in test]
    d2l, device, theirs = load_d2l(), torch.device("cpu"), {}
    parts = iter(range(rounds))

    def our_side():
        return seconds(
            lambda: translate_tokens(model, sentences, *vocabs, max_steps=CAP)
        )

    @torch.no_grad()
    def translate_one(i):
        text = " ".join(sentences[i])
        theirs[i] = d2l.predict_seq2seq(net, text, *vocabs, CAP, device)[0]

    def their_side():
        chosen = range(len(sentences))[next(parts) :: rounds]
        return seconds(lambda: [translate_one(i) for i in chosen]) / len(chosen)

    our_side(), translate_one(0)
    first, second = alternate(our_side, their_side, rounds=rounds, warm_up=False)
    ours = translate_tokens(model, sentences, *vocabs, max_steps=CAP)
    note = same_translations([" ".join(result.words) for result in ours], theirs)
    each = [taken / len(sentences) for taken in first]
    speeds = [1 / statistics.median(side) for side in (each, second)]
    return ratios(second, each), "{:,.0f} against {:,.0f}; {}".format(*speeds, note)


def search_rows(model, test, vocabs, rounds):
    """Rows: what a beam of 5 costs, and what of greedy decoding is matrix products."""
    sentences = [list(pair.source) for pair in test]

    def search(beam_size):
        penalty = float(beam_size > 1)
        return partial(
            translate_tokens,
            model,
            sentences,
            *vocabs,
            max_steps=CAP,
            beam_size=beam_size,
            length_penalty=penalty,
        )

    sides = [partial(seconds, search(beam_size)) for beam_size in (1, 5)]
    greedy, beam = alternate(*sides, rounds=rounds)
    note = f"{statistics.median(beam) / statistics.median(greedy):.1f} times the time"
    shares = [product_share(search(1)) for _ in range(rounds)]
    return [
        row(
            "a beam of 5, hypotheses a second",
            "greedy",
            [5 * ratio for ratio in ratios(greedy, beam)],
            target=5 / 6,
            note=note,
        ),
        row(
            "greedy translation of the test split",
            "its matrix products alone",
            shares,
            unit="of the limit",
            note="their share of the processor's time, by PyTorch's profiler",
        ),
    ]


def product_share(function):
    """The share of a call's time, 0 to 1, that its matrix products take."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU]
    ) as profile:
        function()
    taken = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
    return sum(taken.get(f"aten::{name}", 0) for name in PRODUCTS) / sum(taken.values())


def same_translations(ours, theirs):
    """A note with the share that is equal; AssertionError unless nearly all are."""
    equal = sum(ours[i] == text for i, text in theirs.items())
    note = f"{equal:,} of {len(theirs):,} translations equal"
    if equal < EQUAL * len(theirs):
        raise AssertionError(f"only {note}: the sides don't do the same work")
    return note


# --- the parts alone -----------------------------------------------------------


def parts_alone(settings):
    """Rows: masked_softmax and AdditiveAttention over a grid of sizes.

    The geometric mean over the grid, for each round; the slowest size is in the note.
    """
    d2l, rows = load_d2l(), []
    softmax, attention = {}, {}  # {size: our side, theirs, their inputs' shapes, K}
    for B, Q, K in itertools.product(*settings.grid[:3]):
        sides = masked_softmax, d2l.masked_softmax
        softmax[f"B {B} Q {Q} K {K}"] = (*sides, [(B, Q, K)], K)
    for B, Q, K, H in itertools.product(*settings.grid):
        ours = AdditiveAttention(H, H, H)
        sides, shapes = (
            (ours, reference_attention(ours)),
            [(B, n, H) for n in (Q, K, K)],
        )
        attention[f"B {B} Q {Q} K {K} H {H}"] = (*sides, shapes, K)
    for what, sizes, backward in (
        ("masked_softmax alone, forward", softmax, False),
        ("AdditiveAttention alone, forward", attention, False),
        ("AdditiveAttention alone, forward and backward", attention, True),
    ):
        found = {
            size: point(*sides, backward, settings) for size, sides in sizes.items()
        }
        slowest = min(found, key=lambda size: statistics.median(found[size]))
        rows.append(
            row(
                f"{what}, {len(found)} sizes: geometric mean",
                D2L,
                np.exp(np.log(list(found.values())).mean(axis=0)).tolist(),
                target=1.0,
                note=f"slowest: {statistics.median(found[slowest]):.2f}× at {slowest}",
            )
        )
    return rows


def point(ours, theirs, shapes, K, backward, settings):
    """The ratios at one size, with random lengths; what both return is compared.

    d2l's masked_softmax writes into its scores, but the same in each call.
    """
    torch.manual_seed(0)
    inputs = [torch.randn(shape, requires_grad=backward) for shape in shapes]
    lens = torch.randint(
        1, shapes[-1][-2 if len(shapes) > 1 else -1] + 1, shapes[0][:1]
    )
    calls = [partial(results, side, inputs, lens, backward) for side in (ours, theirs)]
    with torch.set_grad_enabled(backward):
        for a, b in zip(*(call() for call in calls), strict=True):
            close(a, b, 1e-4, f"sizes {shapes}")
        repeats = max(1, round(settings.min_seconds / max(seconds(calls[0]), 1e-7)))
        sides = [timed(call, repeats) for call in calls]
        first, second = alternate(*sides, rounds=settings.rounds)
    return ratios(second, first)


def results(function, inputs, lens, backward):
    """What it returns and, if backward, the gradients of all that it reads."""
    found = function(*inputs, lens)
    if not backward:
        return [found]
    wanted = [*inputs, *function.parameters()]
    return [found.detach(), *torch.autograd.grad(found.sum(), wanted)]


# --- growth ----------------------------------------------------------------------


def growth(settings):
    """Rows: how the seconds of a step grow with the length, as exponents.

    The attention part is what a step with attention takes beyond one with a fixed
    context. A vocabulary of 100 words keeps the output layer, which both have, small.
    """
    sizes = settings.sizes._replace(V=100)
    columns = []
    for S in settings.growth_lengths:
        batch = random_batch(sizes, S, padded=False)
        models = [our_model(sizes, kind) for kind in ("attention", "fixed")]
        steps = [timed(our_step(model, batch), 3) for model in models]
        columns.append(alternate(*steps, rounds=settings.rounds))
    whole, fixed = np.array(columns).transpose(1, 2, 0)  # each (rounds, sizes)
    lengths = np.array(settings.growth_lengths)
    span = f"S = T from {lengths[0]} to {lengths[-1]}"
    part = f"growth of the attention part of a step, {span}"
    rest = f"growth of a step with a fixed context, {span}"
    return [
        exponents(part, "S·T", lengths**2, whole - fixed),
        exponents(rest, "S + T", 2 * lengths, fixed),
    ]


def exponents(what, against, x, runs):
    """A row: the slope of log seconds over log x, one for each run (a row of `runs`).

    A difference that isn't positive has no logarithm: its run is left out.
    """
    whole = [run for run in runs if min(run) > 0]
    slopes = [float(np.polyfit(np.log(x), np.log(run), 1)[0]) for run in whole]
    lost = len(runs) - len(whole)
    note = f"{lost} of {len(runs)} rounds were lost in the noise" if lost else ""
    return row(what, against, slopes, unit="exponent", note=note)
