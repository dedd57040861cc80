"""The sides of a comparison, and the checks that all do the same work.

Ours is the course's model, with the gradient that PyTorch records and with the one that
is written by hand. The other is made of d2l 0.17.0 and trained as the book does, with a
copy of our weights. Letters as in `utils.seq2seq`.
"""

import random
from typing import NamedTuple

import torch

from utils import by_hand
from utils.d2l_bridge import load_d2l, reference_decoder, reference_encoder
from utils.data import Batch
from utils.models import build_model
from utils.text import EOS_ID, PAD_ID, SPECIALS
from utils.training import Trainer, batch_loss, masked_cross_entropy, train_step

LR = 1e-3
LOSSES = {"plain": batch_loss, "by hand": by_hand.loss}
SIDES = (*LOSSES, "d2l")


class Sizes(NamedTuple):
    """V words in both vocabularies, E embedding size, H hidden units, B sentences."""

    V: int = 4000
    E: int = 128
    H: int = 256
    B: int = 64


def our_model(sizes, kind="attention"):
    """The course's model with seeded weights; d2l's encoder reads in one direction."""
    torch.manual_seed(0)
    V, E, H, _ = sizes
    return build_model(kind, V, V, E, H)


def reference(model):
    """The same model of d2l's parts, with a copy of the weights."""
    return load_d2l().EncoderDecoder(
        reference_encoder(model.encoder), reference_decoder(model.decoder)
    )


def random_batch(sizes, S, padded=True):
    """A seeded Batch of random words, its longest source and its longest target S.

    padded: lengths spread evenly from half to all of it; else all are equal.
    """
    rng = random.Random(0)
    words = range(len(SPECIALS), sizes.V)

    def side():
        shortest = S // 2 if padded else S
        lengths = [rng.randint(shortest, S) for _ in range(sizes.B - 1)]
        return [[*rng.choices(words, k=n - 1), EOS_ID] for n in [S, *lengths]]

    return Batch.from_ids(side(), side())


def our_step(model, batch, loss="plain"):
    """A function without arguments: one training step with the Trainer's optimizer."""
    optimizer = Trainer(model, [batch], num_epochs=1, lr=LR).optimizer
    return lambda: train_step(model, batch, optimizer, loss_function=LOSSES[loss])


def reference_step(net, batch, optimizer):
    """One training step as in `d2l.train_seq2seq`, without its bookkeeping."""
    d2l = load_d2l()
    optimizer.zero_grad()
    scores, _ = net(batch.source, batch.target_in, batch.source_lens)
    losses = d2l.MaskedSoftmaxCELoss()(scores, batch.target_out, batch.target_lens)
    losses.sum().backward()
    d2l.grad_clipping(net, 1)
    optimizer.step()


def step_of(side, sizes, batch):
    """The same for "plain", "by hand" (ours), or "d2l" with the book's optimizer."""
    model = our_model(sizes)
    if side != "d2l":
        return our_step(model, batch, side)
    net = reference(model)
    optimizer = torch.optim.Adam(net.parameters(), lr=LR)
    return lambda: reference_step(net, batch, optimizer)


def scores_from_our_start(net, batch):
    """d2l's scores (B, T, V) when its decoder starts where ours does.

    d2l's encoder reads on through the padding. Its states at the words are right all
    the same; its last state is not. Here the decoder gets the state of the last word.
    """
    states, _ = net.encoder(batch.source)  # (S, B, H)
    last = states[batch.source_lens - 1, torch.arange(len(batch.source))]  # (B, H)
    state = net.decoder.init_state((states, last[None]), batch.source_lens)
    return net.decoder(batch.target_in, state)[0]


def gradients(module, loss):
    """The gradient of each named parameter."""
    names, parameters = zip(*module.named_parameters(), strict=True)
    return dict(zip(names, torch.autograd.grad(loss, parameters), strict=True))


def check_same_step(model, net, batch, tolerance=1e-4):
    """AssertionError unless all sides have the same outputs, loss and gradients.

    Outputs at the real positions, and each loss that `train_step` takes the gradient
    of. Tolerance is relative to the largest entry of a tensor. d2l's own loss is this
    one times a known number, so its gradient, before clipping, is this one times it
    too. On a batch without padding the scores are also those of `net` as it is timed.
    """
    model.train(), net.train()
    real = batch.target_out != PAD_ID
    ours, _ = model(batch.source, batch.target_in, batch.source_lens)
    theirs = scores_from_our_start(net, batch)
    close(ours[real], theirs[real], tolerance, "scores")
    if bool((batch.source_lens == batch.source.shape[1]).all()):
        as_timed, _ = net(batch.source, batch.target_in, batch.source_lens)
        close(ours[real], as_timed[real], tolerance, "scores as timed")
    their_loss = masked_cross_entropy(theirs, batch.target_out)
    book = load_d2l().MaskedSoftmaxCELoss()
    summed = book(theirs, batch.target_out, batch.target_lens).sum()
    scale = batch.target_lens.sum() / batch.target_out.shape[1]
    close(summed, their_loss * scale, tolerance, "the book's loss")
    expected = gradients(net, their_loss)
    for name, loss in LOSSES.items():
        our_loss = loss(model, batch)
        close(our_loss, their_loss, tolerance, f"loss, {name}")
        found = gradients(model, our_loss)
        if found.keys() != expected.keys():
            raise AssertionError(
                f"parameters differ: {sorted(found.keys() ^ expected.keys())}"
            )
        for parameter, gradient in found.items():
            what = f"gradient of {parameter}, {name}"
            close(gradient, expected[parameter], tolerance, what)


def close(ours, theirs, tolerance, what):
    """AssertionError unless no entry differs by more than tolerance × the largest."""
    difference = (ours - theirs).abs().max().item()
    largest = theirs.abs().max().item()
    if not difference <= tolerance * largest:
        raise AssertionError(
            f"{what}: the sides differ by {difference:.2g}, entries go up to "
            f"{largest:.2g}: they don't do the same work"
        )
