"""`make bench`: the speed of a training step and of decoding.

The sides of a comparison do the same work, which is checked, and take turns. What is
compared is a ratio within one round. The tables go to the README beside this file.
Letters as in `utils.seq2seq`.
"""

import random
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import median
from typing import NamedTuple

import torch
from torch.utils.benchmark import Timer

from tools.benchmarks import report
from tools.benchmarks.report import row
from utils import by_hand
from utils.checkpoint import load_checkpoint
from utils.corpora import load_village
from utils.d2l_bridge import load_d2l, reference_decoder, reference_encoder
from utils.data import Batch
from utils.decoding import beam_search, greedy_decode
from utils.models import build_model
from utils.text import EOS_ID, PAD_ID, SPECIALS
from utils.training import batch_loss, masked_cross_entropy, train_step

ROOT = Path(__file__).resolve().parents[2]
LOSSES = {"plain": batch_loss, "by hand": by_hand.loss}
ASKED = {  # of a step against d2l's, by S = T
    15: {"plain": ("at least", 1.4), "by hand": ("at least", 1.7)},
    50: {"plain": ("at least", 1.6), "by hand": ("at least", 2.5)},
}


class Settings(NamedTuple):
    """Sizes of a step, S = T of its batches, and sentences to translate."""

    V: int = 4000
    E: int = 128
    H: int = 256
    B: int = 64
    lengths: tuple = (15, 50)
    sentences: int = 300
    rounds: int = 7
    calls: int = 3  # in a row, of which a round has the mean


def in_turn(sides, settings):
    """{side: its seconds in each round} of functions; each goes first in its turn.

    PyTorch's timer calls a function twice before it looks at the clock.
    """
    threads, names = torch.get_num_threads(), list(sides)
    timers = {
        name: Timer("f()", globals={"f": f}, num_threads=threads)
        for name, f in sides.items()
    }
    taken = {name: [] for name in names}
    for number in range(settings.rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            taken[name].append(timers[name].timeit(settings.calls).median)
    return taken


def ratios(dividends, divisors):
    return [a / b for a, b in zip(dividends, divisors, strict=True)]


def in_words(taken):
    """The median of each side, in milliseconds."""
    return ", ".join(f"{name} {1000 * median(s):.1f} ms" for name, s in taken.items())


def random_batch(settings, S, shortest):
    """A seeded Batch of random words, its longest source and its longest target S."""
    rng, words = random.Random(0), range(len(SPECIALS), settings.V)

    def side():
        lengths = [S] + [rng.randint(shortest, S) for _ in range(settings.B - 1)]
        return [[*rng.choices(words, k=n - 1), EOS_ID] for n in lengths]

    return Batch.from_ids(side(), side())


def models(settings):
    """The course's model, which reads in one direction, and the same of d2l's parts."""
    torch.manual_seed(0)
    V, E, H = settings[:3]
    ours = build_model("attention", V, V, E, H)
    parts = reference_encoder(ours.encoder), reference_decoder(ours.decoder)
    return ours, load_d2l().EncoderDecoder(*parts)


def our_step(settings, batch, side):
    """A function: one step of ours, with Adam as the Trainer has it."""
    model, _ = models(settings)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    return partial(train_step, model, batch, optimizer, loss_function=LOSSES[side])


def d2l_step(settings, batch):
    """A function: one step as in `d2l.train_seq2seq`, without its bookkeeping."""
    d2l, (_, net) = load_d2l(), models(settings)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        scores, _ = net(batch.source, batch.target_in, batch.source_lens)
        losses = d2l.MaskedSoftmaxCELoss()(scores, batch.target_out, batch.target_lens)
        losses.sum().backward()
        d2l.grad_clipping(net, 1)
        optimizer.step()

    return step


def check_same_step(model, net, batch):
    """AssertionError unless all sides have the same scores and the same loss.

    d2l's encoder reads on through the padding. Here its decoder starts from the state
    of the last word, where ours does. The book's loss is a known multiple of this one.
    """
    real = batch.target_out != PAD_ID
    states, _ = net.encoder(batch.source)  # (S, B, H)
    last = states[batch.source_lens - 1, torch.arange(len(batch.source))]  # (B, H)
    state = net.decoder.init_state((states, last[None]), batch.source_lens)
    theirs, _ = net.decoder(batch.target_in, state)
    ours, _ = model(batch.source, batch.target_in, batch.source_lens)
    torch.testing.assert_close(ours[real], theirs[real], rtol=0, atol=1e-4)
    loss = masked_cross_entropy(theirs, batch.target_out)
    for loss_of in LOSSES.values():
        torch.testing.assert_close(loss_of(model, batch), loss)


def training_steps(settings):
    """Rows: a step on a padded batch, plain and by hand, against d2l's."""
    for S in settings.lengths:
        batch = random_batch(settings, S, shortest=S // 2)
        check_same_step(*models(settings), batch)
        sides = {side: our_step(settings, batch, side) for side in LOSSES}
        taken = in_turn(sides | {"d2l": d2l_step(settings, batch)}, settings)
        note = in_words(taken)
        for ours, other in (("plain", "d2l"), ("by hand", "d2l"), ("by hand", "plain")):
            what = (
                f"training step, S = T = {S}, lengths from {S // 2}: {ours}, as many "
                f"times as fast as {other}"
            )
            asked = ASKED.get(S, {}).get(ours) if other == "d2l" else None
            yield row(what, ratios(taken[other], taken[ours]), asked=asked, note=note)
            note = ""  # said once


def decoding(settings):
    """Rows: sentences a second, and what a beam of 5 costs, with a shipped model."""
    saved = load_checkpoint(ROOT / "data" / "models" / "village-en-fr.safetensors")
    vocabs = saved.src_vocab, saved.tgt_vocab
    pairs = load_village("en", "fr")["test"][: settings.sentences]
    batch = Batch.from_pairs(pairs, *vocabs)
    given = saved.model, batch.source, batch.source_lens
    sides = {
        "greedy": partial(greedy_decode, *given),
        "a beam of 5": partial(beam_search, *given, 5, length_penalty=1.0),
    }
    with torch.no_grad():
        taken = in_turn(sides, settings)
    speeds = [len(pairs) / seconds for seconds in taken["greedy"]]
    note = f"{len(pairs)} sentences of the Village at once"
    yield row("greedy decoding", speeds, " sentences a second", note=note)
    what = "a beam of 5, as many times the time of greedy decoding"
    times = ratios(taken["a beam of 5"], taken["greedy"])
    yield row(what, times, asked=("at most", 6), note=in_words(taken))


def main(settings, path=report.README):
    rows = chain(training_steps(settings), decoding(settings))
    head = ["what", "median (lowest to highest)", "asked", "in full"]
    report.table("speed", head, rows, path)


if __name__ == "__main__":
    main(Settings())
