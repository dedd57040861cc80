"""The exercises of notebook 09. B sentences, S positions, H hidden units, D context."""

import torch
from torch import nn

from utils.attention import AdditiveAttention, length_mask
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw, seeded
from utils.rnnsearch import GatedUnit


def _step(seed, lens, S, E, H, D):
    """Words, old states, annotations, lengths; two cells and an attention."""
    x, s, h = draw(seed, (len(lens), E), (len(lens), H), (len(lens), S, D))
    first, second = (seeded(seed, nn.GRUCell, size, H) for size in (E, D))
    attention = seeded(seed, AdditiveAttention, D, H, H)
    return x, s, h, torch.tensor(lens), first, second, attention


conditional_step = Exercise(
    "conditional_step",
    """
def conditional_step(x, s, h, lens, first, second, attention):
    between = first(x, s)  # (B, H): it has read the last word
    context = attention(between.unsqueeze(1), h, h, lens).squeeze(1)  # (B, D)
    return second(context, between)  # s_i: (B, H)
""",
    {
        "Update with the word, look, update with the context.": [
            _step(0, [4, 4], 4, 3, 5, 6),
            _step(1, [3], 3, 5, 2, 4),
        ],
        "Here some sentences have padding. It must get no weight.": [
            _step(2, [5, 2, 3], 5, 3, 4, 6),
            _step(3, [1, 4], 4, 2, 3, 2),
        ],
    },
    """
The state from before the step asks. It hasn't read the last word.
    attention(between => attention(s
The second update starts from the old state, so the last word is lost.
    second(context, between) => second(context, s)
This state hasn't read the context. What comes after the look?
    second(context, between) => between
The first update is the last one, too. Which cell reads a context, and when?
    second(context, between) => first(x, between)
Padding gets weight. The attention takes the lengths as its fourth argument.
    h, h, lens) => h, h)
""",
    gradients=True,
    given=("utils.attention.",),
)


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
    return outputs * length_mask(lens, S).unsqueeze(2), lens


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
    [:, 0] => [torch.arange(len(outputs)), valid_lens - 1] ;; [1] => [0]
This is the first sentence of the batch. Which axis are the words?
    [:, 0] => [0]
These are both halves. The backward half alone is asked for.
    .chunk(2, dim=-1)[1] =>
""",
    gradients=True,
)

told_apart = Exercise(
    "told_apart",
    """
def verdict(first, second):  # two lists of numbers -> a string
    if min(first) > max(second):
        return "first"
    return "second" if min(second) > max(first) else "not told apart"
""",
    {
        'All seeds of one arm lie above all of the other: "first" or "second"?': [
            ([90.5, 91.0, 92.0], [88.0, 89.0, 90.0]),
            ([88.0, 89.0, 90.0], [90.5, 91.0, 92.0]),
            ([60.5, 61.0], [60.0, 20.0, 40.0]),
            ([20.0, 45.0, 10.0], [50.0, 46.0]),
        ],
        "The two overlap: a seed of each arm lies above one of the other.": [
            ([85.0, 90.0, 95.0], [84.0, 89.0, 94.0]),
            ([70.0, 71.0, 99.0], [75.0, 76.0, 77.0]),
            ([90.0, 89.0, 91.0], [91.5, 88.0, 87.0]),
            ([10.0, 80.0, 82.0], [50.0, 60.0, 70.0]),
        ],
        "Two seeds are equal, so neither arm lies above the other.": [
            ([80.0, 81.0, 82.0], [78.0, 79.0, 80.0]),
            ([78.0, 79.0, 80.0], [80.0, 81.0, 82.0]),
            ([5.0, 5.0], [5.0, 5.0]),
        ],
    },
    """
The answers "first" and "second" are exchanged.
    "first" => "1" ;; "second" => "first" ;; "1" => "second"
One number of each arm is compared. Which seeds must beat which?
    min => np.mean ;; max => np.mean
    min => max
The seeds are compared in pairs. Each seed must beat every seed of the other arm.
    min(first) > max(second) => all(x > y for x, y in zip(first, second))
Two equal seeds are taken as apart.
    > => >=
""",
)
