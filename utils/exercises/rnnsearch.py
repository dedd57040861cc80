"""The exercises of notebook 09.

B sentences, S source positions, H hidden units, D the size of a context.
"""

import torch
from torch import nn

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw, real_positions
from utils.rnnsearch import GatedUnit


def _updated(from_word, context, s, C, U_gates, U, from_state=None, keep=False):
    """One update by loops; keep: with the update gate turned round."""
    H, rows = s.shape[1], []
    for b in range(len(s)):
        inputs = from_word[b] + C @ context[b]
        gates = torch.sigmoid(inputs[: 2 * H] + U_gates @ s[b])
        z, r = gates[:H], gates[H:]
        old = from_state(U, r, s[b]) if from_state else r * (U @ s[b])
        proposal = torch.tanh(inputs[2 * H :] + old)
        z = 1 - z if keep else z
        rows.append((1 - z) * s[b] + z * proposal)
    return torch.stack(rows)


def reset_after_by_loops(from_word, context, s, C, U_gates, U):
    """A class: GatedUnit with the reset after the product, as in nn.GRU."""
    return _updated(from_word, context, s, C, U_gates, U)


def _new_state(kind, from_word, context, s, C, U_gates, U):
    """A learner's new state, for a class with these weights; W hands the word on."""
    unit = kind(from_word.shape[1], s.shape[1], context.shape[1])
    nn.init.eye_(unit.W.weight)
    nn.init.zeros_(unit.W.bias)
    for layer, weight in ((unit.C, C), (unit.U_gates, U_gates), (unit.U, U)):
        del layer.weight
        layer.weight = weight
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    return unit(from_word, context, s)


def _unit(from_state=None, keep=False):
    """The class that a learner would write, with another from_state(U, r, s)."""

    class Mistake(GatedUnit):
        def forward(self, x, context, s):
            weights = self.C.weight, self.U_gates.weight, self.U.weight
            return _updated(self.W(x), context, s, *weights, from_state, keep)

    return Mistake


SIZES = [(2, 4, 3), (2, 4, 3), (3, 2, 5), (1, 5, 4), (3, 3, 3)]  # (B, H, D)

reset_after = Exercise(
    "reset_after",
    reset_after_by_loops,
    cases=[
        draw(n, (B, 3 * H), (B, D), (B, H), (3 * H, D), (2 * H, H), (H, H))
        for n, (B, H, D) in enumerate(SIZES)
    ],
    mistakes={
        "the reset comes before the product: this is the paper's unit as it was. "
        "Multiply by U first, then reset.": [_unit(lambda U, r, s: U @ (r * s))],
        "nothing is reset: r isn't used.": [_unit(lambda U, r, s: U @ s)],
        "U isn't used: the old state goes in as it is.": [_unit(lambda U, r, s: r * s)],
        "reset twice: before and after.": [_unit(lambda U, r, s: r * (U @ (r * s)))],
        "the reset is turned round: r = 1 lets everything through.": [
            _unit(lambda U, r, s: (1 - r) * (U @ s))
        ],
        "the gate is added. A gate multiplies.": [_unit(lambda U, r, s: r + U @ s)],
        "U stands on the wrong side: `self.U(s)`, or `s @ self.U.weight.T`.": [
            _unit(lambda U, r, s: r * (U.T @ s))
        ],
        "r goes through U, and s doesn't: the two are exchanged.": [
            _unit(lambda U, r, s: U @ r * s)
        ],
        "the update gate is turned "
        "round, as nn.GRU has it. Only the reset was to move.": [_unit(keep=True)],
        "tanh is applied twice: `forward` does it.": [
            _unit(lambda U, r, s: torch.tanh(r * (U @ s)))
        ],
    },
    gradients=True,
    unwrap=_new_state,
    given=("utils.rnnsearch.GatedUnit",),
)


def first_state_by_loops(outputs, valid_lens):
    """Outputs (B, S, 2H) of both directions -> the backward state at word 1: (B, H)."""
    H = outputs.shape[2] // 2
    return torch.stack(
        [
            torch.stack([outputs[b, 0, H + n] for n in range(H)])
            for b in range(len(outputs))
        ]
    )


def _half(outputs, number):
    return outputs.chunk(2, dim=-1)[number]


def _last(outputs, valid_lens):
    return outputs[torch.arange(len(outputs)), valid_lens - 1]


def _outputs(seed, lens, S, H):
    outputs, lens = draw(seed, (len(lens), S, 2 * H))[0], torch.tensor(lens)
    return outputs * real_positions(lens, S).unsqueeze(2), lens


first_state = Exercise(
    "first_state",
    first_state_by_loops,
    cases=[
        _outputs(0, [5, 2, 3], 5, 4),
        _outputs(1, [2, 5, 4], 5, 4),
        _outputs(2, [4, 2], 6, 3),
        _outputs(3, [3], 3, 2),
        _outputs(4, [4, 2, 3, 2], 4, 2),
    ],
    mistakes={
        "after a shorter sentence stands padding, where the state is 0. And where "
        "there is none, this state has read one word. At which word has the backward "
        "network read all of them?": [lambda outputs, lens: _half(outputs[:, -1], 1)],
        "at the last word, the backward network has read one word. At which word has "
        "it read all of them?": [lambda outputs, lens: _half(_last(outputs, lens), 1)],
        "this is the forward half. At the first word, it has read one word.": [
            lambda outputs, lens: _half(outputs[:, 0], 0)
        ],
        "this is the forward network's last state. It has read everything, too, but "
        "the paper takes "
        "the backward one.": [lambda outputs, lens: _half(_last(outputs, lens), 0)],
        "this is the forward half, at the last position: after a shorter sentence "
        "stands padding.": [lambda outputs, lens: _half(outputs[:, -1], 0)],
        "these are both halves. The backward half alone is asked for.": [
            lambda outputs, lens: outputs[:, 0]
        ],
        "these are both halves, and the last word. At which word has the backward "
        "network read everything?": [_last],
        "this is the first sentence of the batch: axis 0 is the batch.": [
            lambda outputs, lens: _half(outputs[0], 1)
        ],
        "every second number. The halves stand one after "
        "the other: forward, backward.": [lambda outputs, lens: outputs[:, 0, 1::2]],
        "this is the second word. Counting begins at 0.": [
            lambda outputs, lens: _half(outputs[:, 1], 1)
        ],
        "this is the mean over the words.": [
            lambda outputs, lens: _half(outputs.sum(1) / lens.unsqueeze(1), 1)
        ],
    },
    gradients=True,
)
