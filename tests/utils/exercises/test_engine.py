"""What any exercise can suffer from: types, shapes, gradients, loops that don't end."""

import sys
import time
from operator import setitem

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from utils import exercises
from utils.exercises import result, running
from utils.exercises.engine import Exercise
from utils.exercises.result import wrapped

squares = Exercise(
    "squares",
    """
def my_squares(x, factor):  # (B, N), a number -> (B, N)
    return factor * x**2
""",
    {
        "Each number is squared, and then multiplied by the factor.": [
            (torch.tensor([[1.0, -2.0, 3.0], [0.5, 1.5, -2.5]]), 2.0),
            (torch.tensor([[2.0, 3.0, 4.0], [-1.0, 5.0, 2.5]]), 3.0),
        ],
        "A factor below 1 is a factor as well.": [
            (torch.tensor([[2.0, 1.5], [-3.0, 0.5]]), 0.5),
        ],
    },
    r"""
Nothing is squared. (What does
`**` do?)
    x**2 => x
The factor isn't used.
    factor * =>
Rows and columns are added.
    factor * x**2 => x +
        x.sum(1)
It is the half of 7 times
the number.
    => x = 7 * x\n    return x / 2
    factor * => 7 * ;; x**2 => x / 2
""",
    gradients=True,
)
both_ends = Exercise(
    "both_ends",
    "def ends(numbers):\n    return [numbers[0]], [numbers[-1]]",
    {"The first and the last number.": [([3, 1, 2],), ([1, 5],)]},
    "They are exchanged.\n    [0]], [numbers[-1] => [-1]], [numbers[0]",
)


right = squares.made(squares.solution)


def asked(text, *cases, **options):
    """A small exercise of one stage, without mistakes."""
    return Exercise("small", text, {"It.": cases}, "", **options)


def softmax(x):
    return x.exp() / x.exp().sum(dim=-1, keepdim=True)


def test_a_helper_may_have_the_name_of_what_is_to_be_written():
    text, own = "def f(x):\n    return x.softmax(dim=-1)", lambda x: softmax(x)
    small = asked(text, (torch.rand(2, 3),), without=("softmax",))
    assert small(own) and not small(small.made(text))


def answer(exercise, function):
    """What an exercise says to a wrong answer, in one line."""
    result = exercise(function)
    assert not result and result.status in ("wrong", "stopped")
    return " ".join(result.message.split())


def test_a_result_is_printed_once_and_can_be_asserted_and_collected(capsys):
    results = [squares(right), squares(lambda x, factor: x), squares(...)]
    assert capsys.readouterr().out == "".join(f"{r.message}\n" for r in results)
    assert [bool(result) for result in results] == [True, False, False]
    statuses = [result.status for result in results]
    assert statuses == ["right", "wrong", "not attempted"]
    assert {result.name for result in results} == {"squares"}
    assert results[0].message == "✓ Right in 3 cases, with their gradients."
    assert "exercise" in repr(squares) and "a number -> (B, N)" in squares.__doc__
    assert results[0].message not in repr(results[0])  # the end of a cell is quiet


def unwritten(*case):
    raise NotImplementedError


def test_a_starter_is_not_attempted_yet():
    """The notebooks show this of every exercise."""
    for starter in (..., lambda *_: None, lambda *_: (..., ...), unwritten):
        result = squares(starter)
        assert result.status == "not attempted"
        assert result.message.startswith("Not attempted yet")


def test_the_right_answer_is_not_stopped(monkeypatch):
    """What it imports on the way is whole, however slow the machine."""
    monkeypatch.setattr(running, "SECONDS", 0.0)
    slow = asked("def slow():\n    return sum(range(3_000_000))", ())
    assert slow(slow.made(slow.solution)).status == "stopped"
    assert slow(...).status == "not attempted"
    (right,) = slow.known.values()
    assert right.value == 4_499_998_500_000


def test_a_table_of_mistakes():
    *_, third, fourth, (sentence, edit) = squares.edits()
    assert third == ("Rows and columns are added.", "factor * x**2 => x +x.sum(1)")
    assert fourth[0] == sentence == "It is the half of 7 times the number."
    texts = [squares.edited(change).split("\n", 1)[1] for change in (fourth[1], edit)]
    assert texts == ["    x = 7 * x\n    return x / 2", "    return 7 * x / 2"]
    with pytest.raises(ValueError, match="squares: 'z' isn't in the solution"):
        squares.edited("z => x")


def test_the_first_stage_that_fails_is_spoken_of():
    """With its mistake, if one explains all that came up to there; else as it asks."""
    assert "Not yet. Nothing is squared." in answer(squares, lambda x, f: x * f)
    assert "Not yet. Each number" in answer(squares, lambda x, f: x**2 * f + 1)
    assert "Each number" in answer(squares, lambda x, f: x * f if f == 2 else x)
    later = answer(squares, lambda x, f: x * max(f, 1) * x)
    assert "Not yet. A factor below 1" in later
    assert "Tried x (2, 2), factor 0.5000 Expected 2.0000 at [0, 0] Came" in later
    # on square inputs alone it would not raise
    assert "Not yet. Rows and columns" in answer(squares, lambda x, f: x.sum(1) + x)


def twice(x, factor):
    return x @ x


class Odd(list):
    def __len__(self):
        raise OSError("no length")


PLACE = asked("def f(x):\n    return x.index(max(x))", ([3, 1, 2],), ([1, 5],))
ZERO = asked("def f(x):\n    return 0 * x", (torch.ones(2),))
RATIO = asked("def f(x):\n    return x / x[0]", (torch.zeros(2),), (torch.eye(3)[0],))
Encoder = exercises.encoder.made(exercises.encoder.solution)
TOO_FEW = "This call of my_squares has too few arguments"
GRU = torch.nn.GRU(3, 2)
CAUSES = [
    (squares, twice, "matrices of 2x3 and 2x3. The first must have"),
    (both_ends, lambda numbers: sys.exit(3), "SystemExit"),
    (squares, lambda x, f: None if f else 0, "None came where a value is wanted"),
    (both_ends, lambda n: ([n[0]], [].append(n[-1])), "None came where a value is"),
    (squares, lambda x, f: [].append(f) * x, "None came where a value is wanted"),
    (squares, lambda x, f: x / x.max(1), "`max` along an axis returns two things"),
    (squares, lambda x, f: x.min(0).T, "`min` along an axis returns two things"),
    (squares, lambda x, f: torch.cat(x, x, dim=1), "torch.cat((a, b), dim=-1)."),
    (squares, lambda x, f: x if x > 0 else f, "is neither true nor false"),
    (squares, lambda x, f: GRU(x[None], x[:1, :2]), "state of all its layers"),
    (squares, lambda x, f: GRU(x[:, :2]), "to read vectors of 3 numbers, and gets 2."),
    (both_ends, lambda numbers: 1 + numbers, "A list and a number can't be added"),
    (both_ends, lambda numbers: numbers + 1, "A list and a number can't be added"),
    (both_ends, lambda numbers: numbers - 1, "A list and a number can't be added"),
    (squares, lambda x, f: x.expand(2), "expand takes a length for each axis"),
    (squares, lambda x, f: torch.relu(pack_sequence([x])), "Only the GRU reads a"),
    (squares, lambda x, f: GRU(x).relu(), "A tuple stands where one object is wanted."),
    (squares, lambda x, f: GRU(x)[:, -1], "A tuple stands where one object is wanted."),
    (squares, lambda x, f: torch.relu(GRU(x)), "A tuple stands where one object is"),
    (squares, lambda x, f: torch.cat((x, GRU(x))), "A tuple stands where one object"),
    (squares, lambda x, f: setitem((x, f), 0, x), "A tuple can't be written into."),
    (squares, lambda x, f: right(x), TOO_FEW),
    (squares, lambda x, factor: right(x, factor).sum().item(), "A float carries no"),
    (squares, lambda x, factor: x.tolist(), "A tensor is asked for, not a list"),
    (squares, lambda x, factor: 3 * right(x, factor), "but for the factor 3."),
    (squares, lambda x, factor: right(x, factor).T, "axes stand in another order"),
    (squares, lambda x, factor: right(x, factor)[None], "An axis of length 1"),
    (squares, lambda x, factor: right(x, factor)[:, :, None] * x[0], "is still there"),
    (squares, lambda x, factor: right(x, factor)[:1], "Axis 0 has size 1 where 2 is"),
    (squares, lambda x, factor: x.T + x, "an axis of length 1 fits every size"),
    (squares, lambda x, factor: torch.cat((x, x.T[:1]), 1), "torch.cat joins tensors"),
    (squares, lambda x, factor: x.y, "Not yet. Is the name misspelt"),
    (both_ends, lambda n: ([torch.tensor(n[0])], [n[-1]]), "Plain numbers are asked"),
    (squares, lambda queries: queries, "Leave the first line as it was."),
    (both_ends, lambda numbers: {*numbers}, "Expected ([3], [2]) Came {1, 2, 3}"),
    (both_ends, lambda numbers: ([3], [1]), "[2] in part 2 of what is returned Came"),
    (both_ends, lambda n: ([3.00001], [2]), "Expected [3] in part 1"),
    (both_ends, lambda n: Odd(), "can't be compared with what is right: no length"),
    (squares, lambda x, f: right(x, f) + 3e-4, "Expected 2.0000 at [0, 0] Came 2.0003"),
    (squares, lambda x, f: right(x, f, 1), "Not yet. Each number is squared"),
    (squares, lambda x, f: x.tolist()[:, 0], "Not yet. Each number is squared"),
    (PLACE, lambda numbers: float(np.argmax(numbers)), "Not yet. It."),
    (RATIO, lambda x: (x / x[0]).nan_to_num(), "Expected nan at [0] Came 0.0000"),
    (ZERO, lambda x: x, "Not yet. It."),
    (squares, torch.ones(2), "Give the check your function itself, without calling it"),
    (exercises.encoder, Encoder(8, 3, 4), "Give the check the class itself, Encoder:"),
]
TWICE = "query, keys, => query, self.attention.project_keys(outputs),"
RAISED = [  # by a check itself, which is no error of Python's
    ("attention_decoder", "dim=1), state => dim=1)", "forward must return two things"),
    ("attention_decoder", TWICE, "Expected 1 for key_projections Came 2"),
    ("greedy_decode", "1), 1), [] => 1), 1.0), []", "and not (3, 1), torch.float32."),
    ("train_step", "loss.item() => loss", "The loss returned must be a plain number"),
]


@pytest.mark.parametrize("exercise, function, words", CAUSES)
def test_a_cause_is_named(exercise, function, words):
    """Before the line in which it was raised: a line of this table has the words."""
    assert words in answer(exercise, function).partition(" in the line ")[0]


@pytest.mark.parametrize("name, edit, words", RAISED)
def test_what_a_check_itself_raises_is_no_error(name, edit, words):
    exercise = getattr(exercises, name)
    said = answer(exercise, exercise.made(exercise.edited(edit)))
    assert words in said and "It raised" not in said


def test_the_line_that_raised_is_shown():
    assert answer(squares, twice).endswith(" in the line return x @ x")


def test_what_is_the_same():
    """An integer of another library is one; NaN is right where it is expected."""
    assert PLACE(lambda numbers: np.argmax(numbers))
    assert PLACE(lambda numbers: torch.tensor(numbers).argmax())
    assert RATIO(lambda x: x * (1 / x[0]))


def nan_beside(x, factor):
    """Right values, and 0/0 in the branch that isn't used."""
    return torch.where(x > -9, factor * x**2, (x - x) / (x - x))


def test_wrong_gradients():
    said = answer(squares, lambda x, f: right(x, f).detach())
    assert "no gradient comes back" in said
    for function in (nan_beside, lambda x, factor: factor * x * x.detach()):
        assert "not the gradient of x" in answer(squares, function)
    # the rows of a softmax sum to 1: that sum has a gradient of 0 in any case
    shares = asked(
        "def f(x):\n    return x.softmax(1)", (torch.eye(2),), gradients=True
    )
    half = answer(shares, lambda x: (x.softmax(1) + x.softmax(1).detach()) / 2)
    assert "not the gradient of x" in half
    with torch.inference_mode():
        assert squares(right)


def test_changed_arguments():
    said = answer(squares, lambda x, f: (right(x, f), x.data.add_(1))[0])
    assert "your code changed x" in said
    said = answer(both_ends, lambda numbers: ([numbers[0]], [numbers.pop()]))
    assert "your code changed numbers" in said
    step = exercises.train_step  # a wrong answer spoils nothing for the next one
    assert not step(lambda _, batch, *rest: batch.target_out.zero_().sum().item())
    assert step(step.made(step.solution))


def test_the_generator_is_left_as_it_was():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    squares(lambda x, factor: torch.randn(2))
    assert torch.equal(torch.get_rng_state(), before)


def endless(*case):
    while True:
        pass


def catches_one(*case):
    try:
        endless()
    except BaseException:
        endless()


@pytest.mark.parametrize("function", [endless, catches_one, lambda *_: time.sleep(5)])
def test_code_that_does_not_end_is_stopped(function, monkeypatch):
    monkeypatch.setattr(running, "SECONDS", 0.2)
    monkeypatch.setattr(running, "WAITING", 2)
    assert "stopped after 0.2 seconds" in answer(both_ends, function)
    assert squares(right)  # beside a thread that may still be there


def test_words_are_looked_up_and_wrapped_by_their_width(monkeypatch):
    assert wrapped("word " * 30).count("\n") == 1
    assert [len(line) for line in wrapped("对齐" * 50).split("\n  ")] == [42, 42, 16]
    assert wrapped("对" * 41 + "齐。") == "对" * 41 + "\n  齐。"
    words = {"Not yet. {}": "还不对：{}", "at {}": "在 {} 处"}
    words |= {"Nothing is squared. (What does `**` do?)": "没有平方。"}
    monkeypatch.setattr(result, "chinese", lambda: words)
    monkeypatch.setenv("LEARNING_TO_ALIGN_LANG", "zh")
    said = squares(lambda x, factor: factor * x)
    first, tried, expected, _ = said.message.split("\n  ")
    assert (first, tried) == ("还不对：没有平方。", "Tried     x (2, 3), factor 2.0000")
    assert expected == "Expected  8.0000 在 [0, 1] 处"
    assert said.cause == "Nothing is squared. (What does `**` do?)"
