"""What any exercise can suffer from: types, shapes, gradients, loops that don't end."""

import sys
import time

import numpy as np
import pytest
import torch
from torch import nn

from utils import exercises
from utils.exercises import engine
from utils.exercises.engine import Exercise


def squares_by_loops(x, factor):
    """x (B, N), a factor -> (B, N)"""
    return torch.stack([torch.stack([factor * n * n for n in row]) for row in x])


def right(x, factor):
    return factor * x**2


squares = Exercise(
    "squares",
    squares_by_loops,
    cases=[
        (torch.tensor([[1.0, -2.0, 3.0], [0.5, 1.5, -2.5]]), 2.0),
        (torch.tensor([[2.0, 3.0, 4.0], [-1.0, 5.0, 2.5]]), 3.0),
        (torch.tensor([[2.0, 1.5], [-3.0, 0.5]]), 0.5),
    ],
    mistakes={
        "not squared.": [lambda x, factor: factor * x],
        "the factor isn't used.": [lambda x, factor: x**2],
        "rows and columns are added.": [lambda x, factor: x + x.sum(1)],
    },
    gradients=True,
)
positive = Exercise(
    "positive",
    lambda x: torch.stack([torch.tensor([bool(n > 0) for n in row]) for row in x]),
    cases=[(torch.tensor([[1.0, -2.0]]),), (torch.tensor([[-1.0, 3.0, 2.0]]),)],
    mistakes={"turned round.": [lambda x: x <= 0]},
)
place_of_largest = Exercise(
    "place_of_largest",
    lambda numbers: numbers.index(max(numbers)),
    cases=[([3, 1, 2],), ([1, 5, 2],), ([7, 9, 11, 8],)],
    mistakes={"the largest itself.": [max]},
)
both_ends = Exercise(
    "both_ends",
    lambda numbers: ([numbers[0]], [numbers[-1]]),
    cases=[([3, 1, 2],), ([1, 5],)],
    mistakes={"exchanged.": [lambda numbers: (numbers[-1:], numbers[:1])]},
)
layer = Exercise(
    "layer",
    lambda x, weight: x @ weight.T,
    cases=[
        (torch.eye(3), torch.arange(6.0).view(2, 3)),
        (torch.eye(2), torch.ones(2, 2)),
    ],
    mistakes={},
    unwrap=lambda kind, x, weight: kind(weight)(x),
)


def answer(exercise, function):
    """What an exercise says to a wrong answer, in one line."""
    result = exercise(function)
    assert not result.passed and result.message.startswith("Not yet: ")
    return " ".join(result.message.split())


# --- The result --------------------------------------------------------------------


def test_a_result_is_printed_once_and_can_be_asserted_and_collected(capsys):
    results = [squares(right), squares(lambda x, factor: x), squares(...)]
    assert capsys.readouterr().out == "".join(f"{r.message}\n" for r in results)
    assert [bool(result) for result in results] == [True, False, False]
    assert [result.passed for result in results] == [True, False, False]
    assert {result.name for result in results} == {"squares"}
    assert results[0].message == "✓ Right in 3 cases, with their gradients."


def test_a_result_at_the_end_of_a_cell_shows_nothing_more():
    formatters = pytest.importorskip("IPython.core.formatters")
    result = squares(right)
    assert formatters.DisplayFormatter().format(result) == ({}, {})
    assert result.message not in repr(result)


def test_an_exercise_says_what_it_is():
    assert "exercise" in repr(squares)
    assert squares.__doc__ == squares_by_loops.__doc__


# --- Starters ----------------------------------------------------------------------


def dots(*case): ...


def documented_dots(*case):
    """What it should do."""


def returned_dots(*case):
    return ...


def unwritten(*case):
    raise NotImplementedError


@pytest.mark.parametrize("name", sorted({*exercises.__all__} - {"own_translator"}))
def test_a_starter_is_not_attempted_yet(name):
    exercise, starters = getattr(exercises, name), [...]
    if not exercise.__doc__.startswith("A class"):
        starters += [dots, documented_dots, returned_dots, unwritten]
    for starter in starters:
        result = exercise(starter)
        assert not result and result.message.startswith("Not attempted yet")


def test_a_class_whose_method_is_unwritten_is_not_attempted_yet():
    class Mine(nn.Module):
        def __init__(self, weight):
            super().__init__()

        def forward(self, x):
            raise NotImplementedError

    assert layer(Mine).message.startswith("Not attempted yet")


def test_a_call_in_place_of_a_function():
    assert "without calling it" in answer(squares, right(*squares.cases[0]))
    message = squares(*squares.cases[0]).message  # as if it were the function itself
    assert "give the check your function itself" in message


# --- Wrong types, shapes and numbers ------------------------------------------------


def lists(x, factor):
    return right(x, factor).tolist()


CAUSES = [
    (squares, lambda x, factor: None if factor else 0, "nothing is returned"),
    (squares, lambda x, factor: right(x, factor).detach().numpy(), "NumPy carries no"),
    (squares, lambda x, factor: right(x, factor).sum().item(), "an .item() on the way"),
    (squares, lambda x, factor: list(right(x, factor)), "torch.stack joins a list"),
    (squares, lists, "a tensor is asked for, not a list"),
    (squares, lambda x, factor: (x, right(x, factor)), "Return part 2 alone"),
    (squares, lambda x, factor: (x, x), "a tensor is asked for, not a tuple"),
    (squares, lambda x, factor: (n for n in x), "not a generator"),
    (squares, lambda x, factor: right(x, factor).long(), "whole numbers where"),
    (squares, lambda x, factor: 3 * right(x, factor), "but for the factor 3."),
    (squares, lambda x, factor: x * torch.nan, "NaN or infinity"),
    (squares, lambda x, factor: torch.ones(2, 3), "the same for every input"),
    (squares, lambda x, factor: right(x, factor).T, "the axes stand in another order"),
    (squares, lambda x, factor: right(x, factor)[None], "an axis of length 1"),
    (squares, lambda x, factor: right(x, factor)[:, :, None] * x[0], "is still there"),
    (squares, lambda x, factor: right(x, factor)[:1], "axis 0 has size 1 where 2 is"),
    (squares, lambda x, factor: right(x, factor)[0, 0], "2 axes are asked for, and 0"),
    (squares, lambda x, factor: x @ x[0, :2], "It raised RuntimeError"),
    (squares, lambda x, factor: x.T + x, "an axis of length 1 fits every size"),
    (squares, lambda x, factor: torch.cat((x, x.T[:1]), 1), "torch.cat doesn't"),
    (squares, lambda x, factor: x @ x, "as many columns as the second has rows"),
    (squares, lambda x, factor: x.expand(4, 3), "can't be expanded to 4"),
    (squares, lambda queries: queries, "TypeError"),
    (positive, lambda x: (x > 0).float(), "True and False are asked for."),
    (positive, lambda x: (x > 0).int(), "True and False are asked for: of 0 and 1"),
    (positive, lambda x: (x > 0).numpy(), "asked for, not a NumPy array"),
    (place_of_largest, lambda numbers: numbers.index(max(numbers)) / 1, "an int is"),
    (both_ends, lambda numbers: {*numbers}, "a tuple is asked for, not a set"),
    (both_ends, lambda numbers: ([numbers[0]], numbers[-1]), "a list is asked for"),
]


@pytest.mark.parametrize("exercise, function, words", CAUSES)
def test_a_wrong_kind_of_result_is_named(exercise, function, words):
    assert words in answer(exercise, function)


def test_a_mistake_is_named_where_it_explains_every_case():
    assert "Likely cause: not squared." in answer(squares, lambda x, f: x * f)
    # on square inputs alone it would not raise
    assert "rows and columns are added." in answer(squares, lambda x, f: x.sum(1) + x)


def test_a_mistake_that_explains_one_case_alone_is_no_cause():
    said = answer(squares, lambda x, f: x**2 if f == 2 else f * x + 1)
    assert "cause" not in said


def test_a_small_error_is_written_with_the_digits_that_show_it():
    said = answer(squares, lambda x, factor: right(x, factor) + 3e-5)
    assert "Expected 0.1250000" in said and "Came 0.1250300" in said


def test_an_integer_of_another_library_is_an_int():
    assert place_of_largest(lambda numbers: np.argmax(numbers))
    assert place_of_largest(lambda numbers: torch.tensor(numbers).argmax())


def test_what_cannot_be_compared():
    class Odd(list):
        def __len__(self):
            raise OSError("no length")

    said = answer(both_ends, lambda numbers: Odd())
    assert "can't be compared" in said and "no length" in said


# --- Gradients and arguments --------------------------------------------------------


def nan_beside(x, factor):
    """Right values, and 0/0 in the branch that isn't used."""
    return torch.where(x > -9, factor * x**2, (x - x) / (x - x))


def test_wrong_gradients():
    assert "no gradient comes back" in answer(
        squares, lambda x, f: right(x, f).detach()
    )
    assert "not the gradient of x" in answer(squares, nan_beside)
    half = answer(squares, lambda x, factor: factor * x * x.detach())
    assert "not the gradient of x" in half


def test_gradients_are_asked_for_where_they_are_off():
    for off in (torch.no_grad, torch.inference_mode):
        with off():
            assert squares(right)


def spoils_a_tensor(x, factor):
    result = right(x, factor)
    x.data.add_(1)
    return result


def spoils_a_list(numbers):
    ends = [numbers[0]], [numbers[-1]]
    numbers.append(0)
    return ends


def test_changed_arguments():
    assert "an argument was changed" in answer(squares, spoils_a_tensor)
    assert "an argument was changed" in answer(both_ends, spoils_a_list)


def test_the_generator_is_left_as_it_was():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    squares(lambda x, factor: torch.randn(2))
    assert torch.equal(torch.get_rng_state(), before)


# --- Code that raises, leaves or doesn't end ----------------------------------------


def multiplies_wrongly(x, factor):
    return x @ x


def test_the_line_that_raised_is_shown():
    assert "in the line return x @ x" in answer(squares, multiplies_wrongly)


def test_sys_exit_is_answered():
    assert "SystemExit" in answer(both_ends, lambda numbers: sys.exit(3))


def endless(*case):
    while True:
        pass


def catches_one(*case):
    try:
        endless()
    except BaseException:
        endless()


def waits_in_c(*case):
    time.sleep(30)


@pytest.mark.parametrize("function", [endless, catches_one, waits_in_c])
def test_code_that_does_not_end_is_stopped(function, monkeypatch):
    monkeypatch.setattr(engine, "SECONDS", 0.2)
    assert "stopped after 0.2 seconds" in answer(both_ends, function)
    assert squares(right)  # beside a thread that may still be there


# --- What is right, to the edge ------------------------------------------------------


def test_half_a_gradient_is_wrong_where_its_sum_is_0():
    """The rows of a softmax sum to 1: that sum has a gradient of 0 in any case."""
    shares = Exercise(
        "shares",
        lambda x: torch.stack([row.softmax(0) for row in x]),
        cases=[(torch.tensor([[1.0, 2.0, 4.0]]),), (torch.eye(2),)],
        mistakes={},
        gradients=True,
    )
    assert shares(lambda x: x.softmax(1))
    half = answer(shares, lambda x: (x.softmax(1) + x.softmax(1).detach()) / 2)
    assert "not the gradient of x" in half


def test_nan_is_right_where_it_is_expected():
    ratio = Exercise(
        "ratio",
        lambda x: x / x[0],
        cases=[(torch.tensor([0.0, 0.0]),), (torch.tensor([2.0, 1.0, 3.0]),)],
        mistakes={},
    )
    assert ratio(lambda x: x * (1 / x[0]))
    assert "Came 0.0000" in answer(ratio, lambda x: (x / x[0]).nan_to_num())
