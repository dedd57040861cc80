"""The two sides of a comparison, and the checks that both do the same work.

Ours is the course's model. The other is made of d2l 0.17.0 and trained as the book
does, with a copy of our weights. Letters as in `utils.seq2seq`.
"""

import random
from typing import NamedTuple

import torch

from utils.d2l_bridge import load_d2l, reference_decoder, reference_encoder
from utils.data import Batch
from utils.seq2seq import build_model
from utils.text import EOS_ID, PAD_ID, SPECIALS
from utils.training import Trainer, batch_loss, masked_cross_entropy, train_step

LR = 1e-3


class Sizes(NamedTuple):
    """V words in both vocabularies, E embedding size, H hidden units, B sentences."""

    V: int = 4000
    E: int = 128
    H: int = 256
    B: int = 64


def our_model(sizes, kind="attention", bidirectional=False):
    """The course's model with seeded weights; d2l's encoder reads in one direction."""
    torch.manual_seed(0)
    V, E, H, _ = sizes
    return build_model(kind, V, V, E, H, bidirectional=bidirectional)


def reference(model):
    """The same model of d2l's parts, with a copy of the weights."""
    return load_d2l().EncoderDecoder(
        reference_encoder(model.encoder), reference_decoder(model.decoder)
    )


def random_batch(sizes, S, T=None, padded=False):
    """A seeded Batch of random words, its longest source S and its longest target T.

    padded: lengths spread evenly from half to all of it; else all are equal.
    """
    rng = random.Random(0)
    words = range(len(SPECIALS), sizes.V)

    def side(longest):
        shortest = longest // 2 if padded else longest
        lengths = [rng.randint(shortest, longest) for _ in range(sizes.B - 1)]
        return [[*rng.choices(words, k=n - 1), EOS_ID] for n in [longest, *lengths]]

    return Batch.from_ids(side(S), side(T or S))


def our_step(model, batch):
    """A function without arguments: one training step with the Trainer's optimizer."""
    optimizer = Trainer(model, [batch], num_epochs=1, lr=LR).optimizer
    return lambda: train_step(model, batch, optimizer)


def reference_step(net, batch, optimizer):
    """One training step as in `d2l.train_seq2seq`, without its bookkeeping."""
    d2l = load_d2l()
    optimizer.zero_grad()
    scores, _ = net(batch.source, batch.target_in, batch.source_lens)
    losses = d2l.MaskedSoftmaxCELoss()(scores, batch.target_out, batch.target_lens)
    losses.sum().backward()
    d2l.grad_clipping(net, 1)
    optimizer.step()


def reference_optimizer(net, fused=None):
    """The book's: Adam as PyTorch makes it by default; or fused, as our side has it."""
    return torch.optim.Adam(net.parameters(), lr=LR, fused=fused)


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
    """AssertionError unless both sides have the same outputs, loss and gradients.

    Outputs at the real positions, and the loss that `train_step` takes the gradient of.
    Tolerance is relative to the largest entry of a tensor. d2l's own loss is this one
    times a known number, so its gradient, before clipping, is this one times it too.
    On a batch without padding the scores are also those of `net` as it is timed.
    """
    model.train(), net.train()
    real = batch.target_out != PAD_ID
    ours, _ = model(batch.source, batch.target_in, batch.source_lens)
    theirs = scores_from_our_start(net, batch)
    close(ours[real], theirs[real], tolerance, "scores")
    if bool((batch.source_lens == batch.source.shape[1]).all()):
        as_timed, _ = net(batch.source, batch.target_in, batch.source_lens)
        close(ours[real], as_timed[real], tolerance, "scores as timed")
    our_loss = batch_loss(model, batch)
    their_loss = masked_cross_entropy(theirs, batch.target_out)
    close(our_loss, their_loss, tolerance, "loss")
    book = load_d2l().MaskedSoftmaxCELoss()
    summed = book(theirs, batch.target_out, batch.target_lens).sum()
    scale = batch.target_lens.sum() / batch.target_out.shape[1]
    close(summed, our_loss * scale, tolerance, "the book's loss")
    first, second = gradients(model, our_loss), gradients(net, their_loss)
    if first.keys() != second.keys():
        raise AssertionError(
            f"parameters differ: {sorted(first.keys() ^ second.keys())}"
        )
    for name in first:
        close(first[name], second[name], tolerance, f"gradient of {name}")


def close(ours, theirs, tolerance, what):
    """AssertionError unless no entry differs by more than tolerance × the largest."""
    difference = (ours - theirs).abs().max().item()
    largest = theirs.abs().max().item()
    if not difference <= tolerance * largest:
        raise AssertionError(
            f"{what}: the sides differ by {difference:.2g}, entries go up to "
            f"{largest:.2g}: they don't do the same work"
        )
