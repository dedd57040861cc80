"""The measurements of speed. Each returns rows for the table, or points for a figure.

A row is a dict: what was measured, against what, the target, and one value a pair.
Larger values are better: a ratio of 2 says that our side needs half the time.
"""

import itertools
import os
import statistics
from typing import NamedTuple

import numpy as np
import torch
from limit import matrix_products
from sides import (
    Sizes,
    check_same_step,
    close,
    our_model,
    our_step,
    random_batch,
    reference,
    reference_optimizer,
    reference_step,
)
from timing import alternate, enough_calls, ratios, seconds

from utils.attention import AdditiveAttention, masked_softmax
from utils.corpora import load_multi30k
from utils.d2l_bridge import load_d2l, reference_attention
from utils.data import Batch, BatchLoader, encode
from utils.decoding import translate_tokens
from utils.seq2seq import build_model
from utils.text import EOS, PAD_ID
from utils.training import Trainer, train_step

D2L = "d2l 0.17.0"
CAP = 60  # steps of decoding, for both sides; the longest test source has 36 words
STEP_TARGETS = {15: 1.7, 50: 2.5}  # by S = T
LIMIT_TARGETS = {15: 0.60, 50: 0.45}
TIE = 1e-3  # two words whose scores are closer than this may change places


class Settings(NamedTuple):
    """What `--quick` makes smaller."""

    pairs: int = 7
    sizes: Sizes = Sizes()
    lengths: tuple = (15, 50)
    growth_lengths: tuple = (10, 15, 20, 30, 40, 60, 80)
    batch_sizes: tuple = (1, 2, 4, 8, 16, 32, 64, 128, 256)
    grid: tuple = ((1, 16, 64), (1, 10), (5, 25, 100), (32, 256))  # B, Q, K, H
    grid_pairs: int = 7
    sentences: int | None = None  # of Multi30k; None for all
    min_seconds: float = 0.01  # the shortest measurement of a small operation


QUICK = Settings(
    pairs=2,
    sizes=Sizes(V=300, E=16, H=32, B=8),
    lengths=(5, 10),
    growth_lengths=(5, 10),
    batch_sizes=(1, 8),
    grid=((1, 8), (1, 4), (5, 20), (32,)),
    grid_pairs=2,
    sentences=80,
    min_seconds=0.001,
)


def row(what, against, values, target=None, at_most=False, unit="×", note=""):
    """A row of the table; values: one a pair, none if it was not measured."""
    return {
        "what": what,
        "against": against,
        "target": target,
        "at_most": at_most,
        "unit": unit,
        "values": list(values),
        "note": note,
    }


def timed(function, repeats=1):
    """A function that returns the seconds of one call.

    One more call goes before: the caches hold what the other side left there.
    """

    def run():
        function()
        return seconds(function, repeats)

    return run


# --- one training step ---------------------------------------------------------


def training_steps(settings):
    """Rows: a step against d2l's on the same batch, with and without padding."""
    rows = []
    kinds = [(True, False), (False, False), (True, True)]
    for (padded, fused), S in itertools.product(kinds, settings.lengths):
        batch = random_batch(settings.sizes, S, padded=padded)
        model = our_model(settings.sizes)
        net = reference(model)
        check_same_step(model, net, batch)
        optimizer = reference_optimizer(net, fused)
        theirs = lambda: reference_step(net, batch, optimizer)  # noqa: B023, E731
        first, second = alternate(
            timed(our_step(model, batch), 3), timed(theirs, 3), settings.pairs
        )
        also = ", fused Adam on both sides" if fused else ""
        lengths = f"lengths {S // 2} to {S}" if padded else "no padding"
        rows.append(
            row(
                f"training step, S = T = {S}, {lengths}{also}",
                D2L,
                ratios(second, first),
                target=STEP_TARGETS.get(S) if padded and not fused else None,
                note=_milliseconds(first, second),
            )
        )
    return rows


def against_the_limit(settings):
    """Rows: the share of a step that its matrix products alone take. No padding."""
    rows = []
    for with_scores, S in itertools.product((False, True), settings.lengths):
        step = our_step(our_model(settings.sizes), random_batch(settings.sizes, S))
        products = matrix_products(settings.sizes, S, S, with_scores)
        first, second = alternate(timed(step, 3), timed(products, 3), settings.pairs)
        also = ", with the scores' matrix-vector products" if with_scores else ""
        rows.append(
            row(
                f"training step, S = T = {S}, no padding",
                f"its matrix products alone{also}",
                ratios(second, first),
                target=None if with_scores else LIMIT_TARGETS.get(S),
                unit="of the limit",
                note=_milliseconds(first, second),
            )
        )
    return rows


def _milliseconds(ours, theirs):
    first, second = (statistics.median(side) * 1000 for side in (ours, theirs))
    return f"{first:.1f} ms against {second:.1f} ms"


# --- real text -----------------------------------------------------------------


def real_text(settings):
    """Rows: an epoch of Multi30k and the translation of its test split."""
    epoch = "one epoch of Multi30k, de→en, target tokens a second", D2L
    decode = (
        "greedy translation of the test split, sentences a second",
        "d2l.predict_seq2seq, one sentence at a time",
    )
    try:
        corpus = load_multi30k("de", "en")
    except ConnectionError:
        missing = "not measured: data missing"
        return [
            row(*epoch, [], target=5, note=missing),
            row(*decode, [], target=30, note=missing),
        ]
    vocabs = corpus.vocabs(min_freq=2)
    _, E, H, _ = settings.sizes
    torch.manual_seed(0)
    model = build_model("attention", *map(len, vocabs), E, H)
    train, test = (corpus[s][: settings.sentences] for s in ("train", "test"))
    values, note = epoch_ratios(model, train, vocabs, settings)
    rows = [row(*epoch, values, target=5, note=note)]
    # The model that this epoch has trained translates: its sentences end.
    values, note = decoding_ratios(model, test, vocabs, settings.pairs)
    return [*rows, row(*decode, values, target=30, note=note)]


def epoch_ratios(model, train, vocabs, settings):
    """One ratio for each part of an epoch, and a note on the whole.

    Each side goes once through all pairs, in `settings.pairs` parts that alternate.
    Making the batches is in the time, translating words into ids is not.
    """
    B = settings.sizes.B
    net = reference(model)
    check_same_step(model, net, Batch.from_pairs(train[:B], *vocabs))
    loader = BatchLoader(train, *vocabs, B)
    trainer = Trainer(model, loader, num_epochs=1)  # its optimizer and rate, no warm-up
    optimizer = torch.optim.Adam(net.parameters(), lr=trainer.lr)
    one_length = fixed_length(train, vocabs)
    steps = one_length.source.shape[1]
    sides = (
        (loader.epoch(0), lambda batch: train_step(model, batch, trainer.optimizer)),
        (
            iter(load_d2l().load_array(one_length, B)),
            lambda fields: reference_step(net, Batch(*fields), optimizer),
        ),
    )
    tokens = ([], [])
    parts = [len(part) for part in np.array_split(range(len(loader)), settings.pairs)]

    def part(side):
        batches, step = sides[side]
        count = 0

        def run():
            nonlocal count
            for batch in itertools.islice(batches, parts[len(tokens[side])]):
                step(batch)
                count += int(batch[4].sum())  # target_lens

        taken = seconds(run)
        tokens[side].append(count)
        return taken

    first, second = alternate(
        lambda: part(0), lambda: part(1), settings.pairs, warm_up=False
    )
    if sum(tokens[0]) != sum(tokens[1]):
        raise AssertionError(f"the sides saw {sum(tokens[0])}, {sum(tokens[1])} tokens")
    speeds = ratios(tokens[0], first), ratios(tokens[1], second)
    return ratios(*speeds), (
        f"the whole epoch: {sum(first):.0f} s against {sum(second):.0f} s, "
        f"{sum(second) / sum(first):.2f}×; {sum(tokens[0]) / sum(first):,.0f} tokens a "
        f"second against {sum(tokens[1]) / sum(second):,.0f} at {steps} steps"
    )


def fixed_length(pairs, vocabs):
    """All pairs as one Batch, both sides padded to the longest sentence of either."""
    whole = Batch.from_pairs(pairs, *vocabs)
    steps = max(whole.source.shape[1], whole.target_out.shape[1])

    def padded(ids):
        room = (0, steps - ids.shape[1])
        return torch.nn.functional.pad(ids, room, value=PAD_ID)

    return whole._replace(
        source=padded(whole.source),
        target_in=padded(whole.target_in),
        target_out=padded(whole.target_out),
    )


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


def decoding_ratios(model, test, vocabs, pairs):
    """One ratio a pair, and a note. Our side translates all, d2l's every n-th sentence.

    n is the number of pairs, so d2l's side goes once through all of them.
    """
    net = without_padding(reference(model))
    sentences = [list(pair.source) for pair in test]
    texts = [" ".join(words) for words in sentences]
    d2l, device, theirs = load_d2l(), torch.device("cpu"), {}
    parts = iter(range(pairs))

    def our_side():
        return seconds(
            lambda: translate_tokens(model, sentences, *vocabs, max_steps=CAP)
        )

    @torch.no_grad()
    def their_side():
        chosen = range(len(texts))[next(parts) :: pairs]

        def run():
            for i in chosen:
                theirs[i] = d2l.predict_seq2seq(net, texts[i], *vocabs, CAP, device)[0]

        return seconds(run) / len(chosen)

    our_side()
    d2l.predict_seq2seq(net, texts[0], *vocabs, CAP, device)
    first, second = alternate(our_side, their_side, pairs, warm_up=False)
    note = same_translations(model, sentences, theirs, vocabs)
    each = [taken / len(sentences) for taken in first]
    speeds = [1 / statistics.median(side) for side in (each, second)]
    return ratios(second, each), (
        f"{speeds[0]:,.0f} sentences a second against {speeds[1]:,.0f}; {note}"
    )


def same_translations(model, sentences, theirs, vocabs):
    """A note with the share that is equal; AssertionError where one differs.

    At a tie either word is right: rounding decides, and batches round differently.
    """
    ours = translate_tokens(model, sentences, *vocabs, max_steps=CAP)
    different = [i for i in theirs if " ".join(ours[i].words) != theirs[i]]
    for i in different:
        words = theirs[i].split(" ")
        if not is_tie(model, sentences[i], ours[i].tokens, words, vocabs):
            raise AssertionError(
                f"sentence {i}: {ours[i].words} here, {theirs[i]!r} there"
            )
    equal = len(theirs) - len(different)
    capped = sum(EOS not in translation.tokens for translation in ours)
    return (
        f"{equal:,} of {len(theirs):,} translations equal, {len(different)} differ "
        f"from a tie on; {capped} cut at {CAP} words"
    )


@torch.no_grad()
def is_tie(model, source, ours, theirs, vocabs):
    """Whether both words had nearly one score where the translations part."""
    theirs = [word for word in theirs if word] + [EOS]
    at = next(k for k, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b)
    ids = [vocabs[1][words[: at + 1]] for words in (ours, theirs)]
    batch = Batch.from_ids([encode([source], vocabs[0])[0]], [ids[0]])
    model.eval()
    scores, _ = model(batch.source, batch.target_in, batch.source_lens)
    gap = scores[0, at, ids[0][at]] - scores[0, at, ids[1][at]]
    return abs(gap.item()) < TIE


# --- the parts alone -----------------------------------------------------------


def parts_alone(settings):
    """Rows: masked_softmax and AdditiveAttention over a grid of sizes; and the points.

    The geometric mean is taken over the points, for each pair. Points that look slow
    are measured again with three times as many pairs, since the lowest of many medians
    is mostly the unluckiest; the worst point is the one with the lowest median then.
    """
    Bs, Qs, Ks, Hs = settings.grid
    rows, points = [], []
    for name, make, sizes in (
        ("masked_softmax", softmax_sides, itertools.product(Bs, Qs, Ks)),
        ("AdditiveAttention", attention_sides, itertools.product(Bs, Qs, Ks, Hs)),
    ):
        choices = itertools.product(sizes, (False, True), (False, True))
        measured, again = [], settings._replace(grid_pairs=3 * settings.grid_pairs)
        for size, with_lengths, backward in choices:
            values = _point(make, size, with_lengths, backward, settings)
            letters = zip("BQKH", size, strict=False)
            measured.append(
                {
                    "what": name,
                    **dict(letters),
                    "lengths": with_lengths,
                    "backward": backward,
                    "values": values,
                }
            )
        points += measured
        table = np.array([point["values"] for point in measured])  # (points, pairs)
        for point in measured:
            if np.median(point["values"]) < 0.97:
                size = tuple(point[x] for x in "BQKH" if x in point)
                point["values"] = _point(
                    make, size, point["lengths"], point["backward"], again
                )
        medians = [np.median(point["values"]) for point in measured]
        worst = measured[int(np.argmin(medians))]
        slower = sum(median < 0.95 for median in medians)
        means = np.exp(np.log(table).mean(axis=0)).tolist()
        note = f"slower by more than 5% at {slower} of {len(measured)} points"
        what = f"{name} alone, {len(measured)} sizes"
        rows += [
            row(f"{what}: geometric mean", D2L, means, target=1.0, note=note),
            row(
                f"{what}: the worst of them",
                D2L,
                worst["values"],
                target=0.95,
                note=_describe(worst),
            ),
        ]
    return rows, points


def _describe(point):
    sizes = ", ".join(f"{x} {point[x]}" for x in "BQKH" if x in point)
    lengths = "with lengths" if point["lengths"] else "without lengths"
    both = "forward and backward" if point["backward"] else "forward"
    return f"{sizes}, {lengths}, {both}"


def _point(make, size, with_lengths, backward, settings):
    torch.manual_seed(0)
    B, _, K = size[:3]
    lens = torch.randint(1, K + 1, (B,)) if with_lengths else None
    with torch.set_grad_enabled(backward):
        first, second = make(size, lens, backward)
        for ours, theirs in zip(first(1)[1], second(1)[1], strict=True):
            close(ours, theirs, 1e-4, f"size {size}")
        calls = enough_calls(lambda: first(1), settings.min_seconds)
        taken = alternate(
            lambda: first(calls)[0], lambda: second(calls)[0], settings.grid_pairs
        )
    return ratios(taken[1], taken[0])


def softmax_sides(size, lens, backward):
    """Two functions: number of calls -> (seconds a call, results to compare).

    d2l's masked_softmax writes into its input: each call gets a copy, made beforehand.
    """
    scores = torch.randn(size, requires_grad=backward)
    direction = torch.randn(size)

    def side(function):
        def run(calls):
            copies = iter([scores.clone() for _ in range(calls)])
            results = []

            def call():
                weights = function(next(copies), lens)
                results[:] = [weights.detach()]
                if backward:
                    results.extend(torch.autograd.grad(weights, scores, direction))

            return seconds(call, calls), results

        return run

    return side(masked_softmax), side(load_d2l().masked_softmax)


def attention_sides(size, lens, backward):
    """The same for AdditiveAttention, with all its gradients."""
    B, Q, K, H = size
    attention = AdditiveAttention(H, H, H)
    given = [torch.randn(B, n, H, requires_grad=backward) for n in (Q, K, K)]
    direction = torch.randn(B, Q, H)

    def side(module):
        wanted = [*given, *module.parameters()]
        results = []

        def call():
            context = module(*given, lens)
            results[:] = [context.detach()]
            if backward:
                results.extend(torch.autograd.grad(context, wanted, direction))

        return lambda calls: (seconds(call, calls), results)

    return side(attention), side(reference_attention(attention))


# --- growth, batch sizes, threads ----------------------------------------------


def growth(settings):
    """Rows: the exponents; and the seconds, (pairs, sizes), for the figure.

    The attention part is what a step with attention takes beyond one with a fixed
    context. A vocabulary of 100 words keeps the output layer, which both have, small.
    """
    sizes = settings.sizes._replace(V=100)
    columns = []
    for S in settings.growth_lengths:
        batch = random_batch(sizes, S)
        steps = [our_step(our_model(sizes, kind), batch) for kind in KINDS]
        columns.append(alternate(*(timed(step, 3) for step in steps), settings.pairs))
    both = np.array(columns).transpose(1, 2, 0)  # (2, pairs, sizes)
    fixed, attention = both[1], both[0] - both[1]
    lengths = np.array(settings.growth_lengths)
    span = f"S = T from {lengths[0]} to {lengths[-1]}"
    rows = [
        row(
            f"growth of the attention part of a step, {span}",
            "S·T",
            exponents(lengths**2, attention),
            unit="exponent",
        ),
        row(
            f"growth of a step with a fixed context, {span}",
            "S + T",
            exponents(2 * lengths, fixed),
            unit="exponent",
        ),
    ]
    return rows, {
        "lengths": lengths.tolist(),
        "attention": attention.tolist(),
        "fixed": fixed.tolist(),
    }


KINDS = ("attention", "fixed")


def exponents(x, runs):
    """The slope of log seconds over log x, one for each run (a row of `runs`).

    None at all if a difference is lost in the noise: it has no logarithm.
    """
    if not (np.asarray(runs) > 0).all():
        return []
    return [float(np.polyfit(np.log(x), np.log(run), 1)[0]) for run in runs]


def batch_sizes(settings):
    """Target tokens a second by batch size and threads: a dict for the figure.

    The course's usual model on sentences of 15 words, no padding.
    """
    threads_before = torch.get_num_threads()
    threads = [n for n in (1, 2) if n <= (os.cpu_count() or 1)]
    usual = Sizes(V=400, E=64, H=128)
    steps = {}
    for B in settings.batch_sizes:
        sizes = usual._replace(B=B)
        model = our_model(sizes, bidirectional=True)
        steps[B] = our_step(model, random_batch(sizes, 15))
    shortest = 20 * settings.min_seconds
    calls = {B: enough_calls(step, shortest) for B, step in steps.items()}
    speeds = {n: [] for n in threads}
    try:
        for pair in range(settings.pairs):
            for n in threads if pair % 2 == 0 else threads[::-1]:
                torch.set_num_threads(n)
                speeds[n].append(
                    [15 * B / timed(step, calls[B])() for B, step in steps.items()]
                )
    finally:
        torch.set_num_threads(threads_before)
    return {"batch_sizes": list(steps), "tokens_a_second": speeds}


def thread_rows(measured):
    """Rows: what a second thread gives, at the default batch size or the largest."""
    speeds = measured["tokens_a_second"]
    if 2 not in speeds:
        return []
    sizes = measured["batch_sizes"]
    return [
        row(
            f"training step, batches of {B}, two threads",
            "one thread",
            [two[k] / one[k] for one, two in zip(speeds[1], speeds[2], strict=True)],
        )
        for k, B in enumerate(sizes)
        if B in (1, 64, sizes[-1])
    ]
