"""The exercises of notebook 09. B sentences, S positions, H hidden units, D context."""

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw, real_positions
from utils.rnnsearch import GatedUnit


def _new_state(kind, from_word, context, s, C, U_gates, U):
    """A learner's new state, for a class with these weights; W hands the word on."""
    unit = kind(from_word.shape[1], s.shape[1], context.shape[1])
    weights = {"C.weight": C, "U_gates.weight": U_gates, "U.weight": U}
    weights |= {"W.weight": torch.eye(len(C)), "W.bias": torch.zeros(len(C))}
    return torch.func.functional_call(unit, weights, (from_word, context, s))


SIZES = [(2, 4, 3), (2, 4, 3), (3, 2, 5), (1, 5, 4), (3, 3, 3)]  # (B, H, D)

reset_after = Exercise(
    "reset_after",
    """
class ResetLast(GatedUnit):
    def from_state(self, r, s):  # (B, H), (B, H) -> (B, H)
        return r * self.U(s)
""",
    {
        "U times the state comes first, and the gate r resets the product.": [
            draw(n, (B, 3 * H), (B, D), (B, H), (3 * H, D), (2 * H, H), (H, H))
            for n, (B, H, D) in enumerate(SIZES)
        ]
    },
    r"""
The reset comes before the product: this is the paper's unit as it was.
    r * self.U(s) => self.U(r * s)
Something isn't used: the gate r, or U.
    r * self.U(s) => self.U(s)
    self.U(s) => s
The reset is turned round: where r is 1, everything is let through.
    r * => (1 - r) *
The gate is added. How does a gate let a part through?
    r * => r +
""",
    gradients=True,
    unwrap=_new_state,
    given=("utils.rnnsearch.GatedUnit",),
    names={"GatedUnit": GatedUnit},
)


def _outputs(seed, lens, S, H):
    outputs, lens = draw(seed, (len(lens), S, 2 * H))[0], torch.tensor(lens)
    return outputs * real_positions(lens, S).unsqueeze(2), lens


first_state = Exercise(
    "first_state",
    """
def mended_first_state(outputs, valid_lens):  # (B, S, 2H), (B,) -> (B, H)
    return outputs[:, 0].chunk(2, dim=-1)[1]
""",
    {
        "The backward half is second. Where has that network read all words?": [
            _outputs(3, [3], 3, 2),
            _outputs(0, [5, 2, 3], 5, 4),
            _outputs(1, [2, 5, 4], 5, 4),
            _outputs(2, [4, 2], 6, 3),
            _outputs(4, [4, 2, 3, 2], 4, 2),
        ],
    },
    r"""
At a sentence's end the backward network has only begun. Where has it read all words?
    [:, 0] => [:, -1]
    [:, 0] => [torch.arange(len(outputs)), valid_lens - 1]
This is the forward half. The backward half is asked for, where it has read all words.
    [1] => [0]
    [:, 0] => [:, -1] ;; [1] => [0]
    [:, 0] => [torch.arange(len(outputs)), valid_lens - 1] ;; [1] => [0]
This is the first sentence of the batch. Which axis are the words?
    [:, 0] => [0]
These are both halves. The backward half alone is asked for.
    .chunk(2, dim=-1)[1] =>
""",
    gradients=True,
)
