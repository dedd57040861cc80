"""Answers to the exercises: what a learner's code does, put into words.

A check runs the learner's function on seeded inputs of several shapes, compares the
results with a specification, and prints the answer. It returns nothing and raises
nothing, whatever the code does. A check consists of three things:

- a specification in plain loops, independent of the solution and of `utils`;
- cases: arguments whose dimensions all differ; among them one shape twice, and one with
  equal sizes, where exchanged sizes don't raise;
- mistakes: pairs (a function that makes the mistake, a sentence that names it). The
  first whose results equal the learner's on every case is the likely cause.

Letters in shape comments: B sentences in a batch, Q queries, K keys, S source and T
target positions, E embedding size, H hidden units, D the size of a value, L layers,
V words.
"""

import copy
import ctypes
import inspect
import math
import os
import textwrap
import threading
import traceback
from itertools import pairwise
from numbers import Number
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import AdditiveAttention

SECONDS = 5.0  # a call that takes longer is stopped


# --- The framework ---------------------------------------------------------------


class _Result(NamedTuple):
    """What a call returned, or raised; and its arguments as it left them."""

    value: object = None
    error: BaseException | None = None
    arguments: tuple = ()


class _Stopped(BaseException):
    """Raised inside code that runs on for too long."""


def _run(function, arguments):
    """Call it with copies of the arguments, stopped after SECONDS -> Result.

    In a thread of its own, since a thread can be left behind on every platform.
    """
    arguments, done = copy.deepcopy(arguments), []

    def work():
        try:
            done.append(_Result(function(*arguments), None, arguments))
        except BaseException as error:  # SystemExit, too, gets an answer in words
            done.append(_Result(None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        thread.join(SECONDS)
    finally:
        late = thread.is_alive()
        for _ in range(3):  # an `except:` of the learner may catch the first
            if thread.is_alive():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped)
                )
                thread.join(0.1)
    return _Result(error=_Stopped()) if late else done[0]


def _same(came, right):
    """Whether a value, or a Result, is the right one: to rounding, NaN equal to NaN."""
    if isinstance(right, _Result):
        errors = bool(came.error), bool(right.error)
        return all(errors) if any(errors) else _same(came.value, right.value)
    if isinstance(right, tuple | list):
        return (
            isinstance(came, tuple | list)
            and len(came) == len(right)
            and all(map(_same, came, right))
        )
    if torch.is_tensor(right):
        return (
            torch.is_tensor(came)
            and came.shape == right.shape
            and came.is_floating_point() == right.is_floating_point()
            and not _differs(came, right).any()
        )
    if isinstance(right, Number) and not isinstance(right, bool):
        number = came.item() if torch.is_tensor(came) and came.dim() == 0 else came
        return isinstance(number, Number) and (
            math.isclose(number, right, rel_tol=1e-4, abs_tol=1e-5)
            or (math.isnan(number) and math.isnan(right))
        )
    if isinstance(right, np.ndarray):
        return isinstance(came, np.ndarray) and np.array_equal(came, right)
    return isinstance(came, type(right)) and came == right


def _differs(a, b):
    """Where two tensors of one shape differ by more than rounding."""
    return ~torch.isclose(
        a.detach().double(), b.detach().double(), rtol=1e-4, atol=1e-5, equal_nan=True
    )


def _examine(function, spec, cases, mistakes, gradients=False, unwrap=None):
    """Run the learner's function on the cases and print the answer.

    spec and a mistake: from a case's arguments to a result. gradients: compare those of
    the floating-point arguments, too. unwrap: from the learner's object and a case's
    arguments to the result, for an object that isn't such a function itself.
    """
    if function is not ... and not callable(function):
        print("Not yet: give the check your function itself, without calling it.")
        return
    call = (lambda *case: unwrap(function, *case)) if unwrap else function
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(0)
        tried = None if function is ... else _run(call, cases[0])
        if tried is None or _not_attempted(function, tried):
            print(
                "Not attempted yet: write your code where the dots are, "
                "then run the cell again."
            )
            return
        try:
            print(_answer(call, tried, spec, cases, mistakes, gradients))
        except Exception as error:  # an object that can't even be compared
            print(
                "Not yet: what comes can't be compared with what is expected.\n"
                f"  {type(error).__name__}: {error}"
            )


def _not_attempted(function, result):
    """Whether the starter's dots are still there."""
    parts = result.value if isinstance(result.value, tuple) else (result.value,)
    code = getattr(getattr(function, "__code__", None), "co_code", b"")
    empty = len(code) == len((lambda: None).__code__.co_code)  # a body of `...` or None
    return (
        isinstance(result.error, NotImplementedError)
        or any(part is ... for part in parts)
        or (empty and result.value is None and result.error is None)
    )


def _answer(call, tried, spec, cases, mistakes, gradients):
    """The whole answer to code that was attempted; tried: its first Result."""
    results, rights = [tried], [_run(spec, case) for case in cases]
    while not isinstance(results[-1].error, _Stopped) and len(results) < len(cases):
        results.append(_run(call, cases[len(results)]))
    if isinstance(results[-1].error, _Stopped):
        return (
            f"Not yet: it was stopped after {SECONDS:g} seconds. Which loop "
            "doesn't end?\n  (If the kernel stays busy, restart it.)"
        )
    wrong = [n for n in range(len(cases)) if not _same(results[n], rights[n])]
    if not wrong:
        names = inspect.signature(spec).parameters
        return (
            _changed_arguments(cases, results)
            or (gradients and _gradient_trouble(call, spec, cases, names))
            or f"✓ Right in {len(cases)} cases"
            f"{', with their gradients' if gradients else ''}."
        )
    first = wrong[0]
    lines = [
        f"Not yet: wrong in {len(wrong)} of {len(cases)} cases.",
        f"  Tried     {_described(cases[first], spec)}",
        _difference(results[first], rights[first]),
    ]
    cause = (
        _named_mistake(results, cases, mistakes)
        or _wrong_kind(results, rights, first)
        or _one_factor(results, rights)
    )
    guess = cause or _named_mistake(results[first : first + 1], cases[first:], mistakes)
    if not cause and guess:
        lines.append(_wrapped(f"A guess, from this case alone: {guess}"))
    elif cause := cause or _wrong_numbers(results, rights, first):
        lines.append(_wrapped(f"Likely cause: {cause}"))
    return "\n".join(lines)


def _wrapped(text):
    return textwrap.fill(text, 84, initial_indent="  ", subsequent_indent="  ")


def _named_mistake(results, cases, mistakes):
    """The sentence of the first mistake that gives these results, or None."""
    for mistake, sentence in mistakes:
        if not all(came.error for came in results) and all(
            _same(came, _run(mistake, case))
            for came, case in zip(results, cases, strict=False)
        ):
            return sentence
    return None


def _first_part(value, right):
    """The first part that isn't right, of several results; its name."""
    several = isinstance(right, tuple) or (
        isinstance(right, list) and torch.is_tensor(right[0])
    )
    if several and isinstance(value, tuple | list) and len(value) == len(right):
        for n, (part, wanted) in enumerate(zip(value, right, strict=True), start=1):
            if not _same(part, wanted):
                return part, wanted, f"  in part {n} of what is returned"
    return value, right, ""


def _wrong_kind(results, rights, first):
    """A cause that any exercise can have: a wrong type or shape; or None."""
    value, right, _ = _first_part(results[first].value, rights[first].value)
    if results[first].error:
        return None  # what was raised says it
    if value is None:
        return "nothing is returned. Is there a `return` at the end?"
    if torch.is_tensor(right) and not torch.is_tensor(value):
        if isinstance(value, Number):
            return "a plain number carries no gradient: is there an .item() on the way?"
        if isinstance(value, np.ndarray):
            return "NumPy carries no gradient: stay with torch from end to end."
        return "a tensor is asked for. torch.stack joins a list of tensors."
    finite = not torch.is_tensor(value) or value.isfinite().all()
    if finite and all(_same(a, b) for a, b in pairwise(results)):
        return (
            "the result is the same for every input. Are an example's numbers "
            "written into the code, or variables of the notebook used in place of "
            "the arguments?"
        )
    if isinstance(right, tuple | list | set) and not isinstance(value, type(right)):
        return f"a {type(right).__name__} is asked for, not a {type(value).__name__}."
    if not torch.is_tensor(right) or value.shape == right.shape:
        return None
    if sorted(value.shape) == sorted(right.shape):
        return "the axes stand in another order."
    if [n for n in value.shape if n > 1] == [n for n in right.shape if n > 1]:
        return "an axis of length 1 is missing, or too many: squeeze, unsqueeze."
    if value.dim() > right.dim() and value.shape[:-1] == right.shape:
        return (
            f"the last axis, of size {value.shape[-1]}, is still there: a sum over "
            "it is missing."
        )
    if value.dim() == right.dim():
        axis = next(n for n in range(right.dim()) if value.shape[n] != right.shape[n])
        return (
            f"axis {axis} has size {value.shape[axis]} where {right.shape[axis]} "
            "is asked for. Which letter of the shape comments is that?"
        )
    return f"{right.dim()} axes are asked for, and {value.dim()} came."


def _wrong_numbers(results, rights, first):
    """A cause that any exercise can have: numbers of the right shape; or None."""
    value, right, _ = _first_part(results[first].value, rights[first].value)
    if not torch.is_tensor(right) or results[first].error:
        return None
    if not value.isfinite().all():
        return "NaN or infinity: 0/0, or exp of a large number."
    if right.is_floating_point() and not value.is_floating_point():
        return "whole numbers where fractions are needed: look at the dtype."
    if value.is_floating_point() and right.dtype == torch.bool:
        return "numbers where True and False are asked for."
    return None


def _one_factor(results, rights):
    """The cause if everything is right but for one number; else None."""
    if not all(
        torch.is_tensor(came.value)
        and torch.is_tensor(right.value)
        and came.value.shape == right.value.shape
        and right.value.is_floating_point()
        for came, right in zip(results, rights, strict=True)
    ):
        return None
    a, b = (
        torch.cat([r.value.detach().double().flatten() for r in some])
        for some in (results, rights)
    )
    factor = (a @ b / (b @ b)).item()
    if factor and math.isfinite(factor) and not _differs(a, factor * b).any():
        return f"everything is right but for the factor {factor:.3g}."
    return None


def _difference(came, right):
    """What was expected and what came, or what was raised and where."""
    if came.error:
        frames = [
            frame
            for frame in traceback.extract_tb(came.error.__traceback__)
            if "site-packages" not in frame.filename
            and os.path.dirname(frame.filename) != os.path.dirname(__file__)
        ]
        line = f"\n  in the line {frames[-1].line}" if frames else ""
        message = (str(came.error).strip() or "no message").splitlines()[0][:200]
        return f"  It raised {type(came.error).__name__}: {message}{line}"
    value, wanted, place = _first_part(came.value, right.value)
    if (
        torch.is_tensor(wanted)
        and torch.is_tensor(value)
        and wanted.dim()
        and (value.shape == wanted.shape and _differs(value, wanted).any())
    ):
        spot = tuple(_differs(value, wanted).nonzero()[0].tolist())
        value, wanted, place = value[spot], wanted[spot], f"  at {list(spot)}{place}"
    return f"  Expected  {_written(wanted)}{place}\n  Came      {_written(value)}"


def _written(value):
    """A value in a few characters."""
    if torch.is_tensor(value) and value.dim() == 0:
        value = value.item()
    if torch.is_tensor(value) or isinstance(value, np.ndarray):
        kind = "tensor" if torch.is_tensor(value) else "NumPy array"
        return f"a {kind} of shape {tuple(value.shape)}, {value.dtype}"
    if isinstance(value, float):
        return f"{value:.4f}"
    if isinstance(value, tuple | list) and any(map(torch.is_tensor, value)):
        return f"({', '.join(_written(part) for part in value)})"
    text = str(sorted(value) if isinstance(value, set) else value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def _described(case, spec):
    """A case's arguments: tensors by shape, small whole numbers in full."""
    parts = []
    for name, value in zip(inspect.signature(spec).parameters, case, strict=True):
        if torch.is_tensor(value):
            small = not value.is_floating_point() and value.numel() <= 8
            parts.append(f"{name} {value.tolist() if small else tuple(value.shape)}")
        elif isinstance(value, float):
            parts.append(f"{name} {value:g}")
        elif not callable(value):
            parts.append(f"{name} {_written(value)}")
    return ", ".join(parts)


def _changed_arguments(cases, results):
    """The answer to code that changes its arguments."""
    for case, result in zip(cases, results, strict=True):
        if not all(
            _same(after, before)
            for before, after in zip(case, result.arguments, strict=True)
            if not callable(before)
        ):
            return (
                "Not yet: the result is right, but an argument was changed.\n"
                + _wrapped(
                    "Likely cause: a method whose name ends with an "
                    "underscore, `+=`, or an assignment to a part of a "
                    "tensor. It writes into the caller's numbers."
                )
            )
    return None


def _gradient_trouble(call, spec, cases, names):
    """The answer to code whose values are right and whose gradients are not."""
    for case in cases:
        rights, found = _run(_gradients_of(spec), case), _run(_gradients_of(call), case)
        if found.error:
            return f"Not yet: the values are right.\n{_difference(found, rights)}"
        if found.value is None:
            return (
                "Not yet: the values are right, but no gradient comes back.\n"
                + _wrapped(
                    "Likely cause: .detach(), .item(), .data, no_grad, "
                    "torch.tensor(...) or NumPy on the way. Training would "
                    "change nothing."
                )
            )
        for name, came, right in zip(names, found.value, rights.value, strict=True):
            if right is not None and not _same(came, right):
                return (
                    "Not yet: the values are right, but not the gradient of "
                    f"{name}.\n"
                    + _wrapped(
                        "Likely cause: a part is detached; or 0/0 or "
                        "infinity stands in a branch that isn't used: its "
                        "gradient is NaN all the same."
                    )
                )
    return None


def _gradients_of(function):
    """The function that gives each argument's gradient instead; None if detached."""

    def gradients(*case):
        case = [
            value.requires_grad_()
            if torch.is_tensor(value) and value.is_floating_point()
            else value
            for value in case
        ]
        leaves = [v for v in case if torch.is_tensor(v) and v.requires_grad]
        result = function(*case)
        if not result.requires_grad:
            return None
        slopes = torch.linspace(-1, 1, result.numel()).view(result.shape)
        found = iter(
            torch.autograd.grad(
                (result * slopes).sum(),
                leaves,
                materialize_grads=True,
                allow_unused=True,
            )
        )
        return [
            next(found) if any(v is leaf for leaf in leaves) else None for v in case
        ]

    return gradients


def _draw(seed, *shapes):
    """Seeded normal tensors of these shapes."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


# --- 00 Start here ---------------------------------------------------------------


def most_attended(function):
    """Weights (T, S) and the S source words -> T words, the most attended each time."""

    def spec(weights, words):
        found = []
        for row in weights.tolist():
            best = 0
            for j in range(len(row)):
                if row[j] > row[best]:
                    best = j
            found.append(words[best])
        return found

    def case(seed, T, S):
        return _draw(seed, (T, S))[0].softmax(-1), [f"word{j}" for j in range(S)]

    def of_columns(weights, words):
        return [words[i] for i in weights.argmax(dim=0).tolist()]

    sizes = [(4, 6), (4, 6), (3, 7), (1, 5), (5, 5), (7, 3)]
    _examine(
        function,
        spec,
        [case(n, *size) for n, size in enumerate(sizes)],
        [
            (
                of_columns,
                "you went through the columns. A row of the heatmap is a target "
                "word: which axis does argmax run over?",
            ),
            (
                lambda weights, words: weights.argmax(dim=1).tolist(),
                "these are positions. The word at a position is words[position].",
            ),
            (
                lambda weights, words: spec(-weights, words),
                "these are the words looked at least: the largest weight is asked for.",
            ),
            (
                lambda weights, words: spec(weights, words)[1:],
                "the first row is missing. Counting begins at 0.",
            ),
            (
                lambda weights, words: spec(weights, words)[:-1],
                "the last row is missing. It belongs to <eos>, and is asked for, too.",
            ),
            (
                lambda weights, words: (
                    spec(weights[1:], words) + spec(weights[-1:], words)
                ),
                "each row is taken one step too late.",
            ),
            (
                lambda weights, words: spec(weights.sum(0)[None], words) * len(weights),
                "one word for the whole sentence. Each row has its own largest weight.",
            ),
            (
                lambda weights, words: spec(weights[:, :-1], words),
                "the last column is never chosen: <eos> may be looked at, too.",
            ),
        ],
    )


# --- 01 The fixed-context bottleneck ---------------------------------------------


def shift(function):
    """The ids of a sentence -> (what the decoder reads, what it should write)."""

    def spec(ids):
        reads, writes = [1], []
        for word in ids:
            reads.append(word)
            writes.append(word)
        return reads, [*writes, 2]

    cases = [([5, 6, 7],), ([8, 4, 9],), ([4],), ([11, 5, 5, 9, 30],)]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda ids: ([1, *ids, 2], [1, *ids, 2]),
                "both are equal: at each position, the decoder reads the very word that it "
                "should write. It must read the word before.",
            ),
            (
                lambda ids: ([1, *ids], [1, *ids]),
                "both are equal: at each position, the decoder reads the very word that it "
                "should write. It must read the word before.",
            ),
            (
                lambda ids: ([*ids, 2], [*ids, 2]),
                "both are equal: at each position, the decoder reads the very word that it "
                "should write. It must read the word before.",
            ),
            (
                lambda ids: ([*ids, 2], [1, *ids]),
                "the two are exchanged: <bos> is read, <eos> is written.",
            ),
            (
                lambda ids: ([1, *ids, 2], [*ids, 2]),
                "the decoder reads <eos>. After <eos> there is nothing to write, so it is "
                "never read.",
            ),
            (
                lambda ids: ([1, *ids], [1, *ids, 2]),
                "<bos> is among the words to write. Nobody asks the decoder to write it.",
            ),
            (
                lambda ids: ([1, *ids], list(ids)),
                "<eos> is missing: a decoder that never learns to write it never ends.",
            ),
            (
                lambda ids: ([1, *ids[:-1]], list(ids)),
                "<eos> is missing: a decoder that never learns to write it never ends.",
            ),
            (
                lambda ids: (list(ids), [*ids, 2]),
                "<bos> is missing: at the first step there is nothing to read.",
            ),
            (
                lambda ids: (list(ids), [*ids[1:], 2]),
                "<bos> is missing: the first word is read, and never written.",
            ),
            (
                lambda ids: ([1, *ids], [*ids[1:], 2]),
                "shifted twice: what is written runs two words ahead of what is read.",
            ),
            (lambda ids: ([2, *ids], [*ids, 1]), "<bos> is 1 and <eos> is 2."),
        ],
    )


def last_states(function):
    """Outputs (B, S, H) and lengths (B,) -> each sentence's last state (B, H)."""

    def spec(outputs, valid_lens):
        rows = []
        for b in range(len(outputs)):
            state = None
            for j in range(int(valid_lens[b])):
                state = outputs[b, j]
            rows.append(state)
        return torch.stack(rows)

    def case(seed, lens, S, H):
        return *_draw(seed, (len(lens), S, H)), torch.tensor(lens)

    def at(outputs, positions):
        return outputs[torch.arange(len(outputs)), positions]

    cases = [
        case(0, [5, 3, 1], 6, 4),
        case(1, [5, 2, 4], 6, 4),
        case(2, [3, 2], 4, 5),
        case(3, [4], 5, 3),
        case(4, [2, 4, 3, 4], 4, 4),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda outputs, lens: outputs[:, -1],
                "this is the last position. In a shorter sentence padding stands there, and "
                "not a word: which position holds the last word?",
            ),
            (
                lambda outputs, lens: outputs[-1],
                "this is the last sentence of the batch: the first axis is the batch.",
            ),
            (
                lambda outputs, lens: at(outputs, lens.clamp(max=outputs.shape[1] - 1)),
                "one position too far: a sentence of 3 words has its last one at 2.",
            ),
            (
                lambda outputs, lens: at(outputs, lens),
                "one position too far: a sentence of 3 words has its last one at 2.",
            ),
            (lambda outputs, lens: at(outputs, lens - 2), "one position too early."),
            (
                lambda outputs, lens: outputs[:, 0],
                "this is the state at the first word.",
            ),
            (
                lambda outputs, lens: outputs[:, lens[0] - 1],
                "the first sentence's length is used for all.",
            ),
            (
                lambda outputs, lens: outputs[:, lens.max() - 1],
                "the longest sentence's length is used for all.",
            ),
            (
                lambda outputs, lens: outputs[:, lens.min() - 1],
                "the shortest sentence's length is used for all.",
            ),
            (
                lambda outputs, lens: outputs[:, lens - 1],
                "indexing with `:` pairs every sentence with every length. Pair sentence b "
                "with its own: torch.arange(B) in front.",
            ),
            (
                lambda outputs, lens: outputs.mean(1),
                "this is the mean over all positions.",
            ),
            (
                lambda outputs, lens: outputs.amax(1),
                "this is the maximum over positions.",
            ),
            (
                lambda outputs, lens: outputs.sum(1),
                "this is the sum over all positions.",
            ),
            (
                lambda outputs, lens: torch.stack(
                    [row[:n].mean(0) for row, n in zip(outputs, lens, strict=True)]
                ),
                "this is the mean over the words. The last word's state is asked for.",
            ),
        ],
        gradients=True,
    )


# --- 02 Additive scoring ---------------------------------------------------------

# (B, Q, K, query_size, key_size, H)
SIZES = [
    (2, 3, 4, 5, 6, 7),
    (2, 3, 4, 5, 6, 7),
    (3, 1, 5, 4, 6, 2),
    (1, 2, 3, 6, 4, 5),
    (4, 4, 4, 4, 4, 4),
]


def _scoring_cases():
    return [
        _draw(n, (B, Q, q), (B, K, k), (H, q), (H, k), (H,))
        for n, (B, Q, K, q, k, H) in enumerate(SIZES)
    ]


def _score_by_loops(queries, keys, W, U, v):
    """v · tanh(W query + U key): (B, Q, query_size), (B, K, key_size) -> (B, Q, K)."""
    return torch.stack(
        [
            torch.stack(
                [
                    torch.stack(
                        [v @ torch.tanh(W @ query + U @ key) for key in keys[b]]
                    )
                    for query in queries[b]
                ]
            )
            for b in range(len(queries))
        ]
    )


def _sums(queries, keys, W, U):
    return (queries @ W.T).unsqueeze(2) + (keys @ U.T).unsqueeze(1)


NO_TANH = (
    "the tanh is missing. Without it, the query adds one number to all scores "
    "of a row, and softmax drops it."
)
NOT_TRANSPOSED = (
    "a matrix stands on the wrong side: a row vector x times W is x @ "
    "W.T. With equal sizes, nothing raises and the result is wrong."
)


def _scoring_mistakes():
    return [
        (lambda q, k, W, U, v: _sums(q, k, W, U) @ v, NO_TANH),
        (
            lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U) @ v),
            "the tanh comes too late. It stands between the sum and the product with v.",
        ),
        (
            lambda q, k, W, U, v: (
                (torch.tanh(q @ W.T).unsqueeze(2) + torch.tanh(k @ U.T).unsqueeze(1))
                @ v
            ),
            "tanh is taken of each projection alone. Query and key must be added before "
            "it, or they never meet.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q, k, U, W, v),
            "W and U are exchanged: W projects the query, U the key. With equal sizes, "
            "nothing raises.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q, k, W, U, v).transpose(1, 2),
            "queries and keys are exchanged: a row belongs to a query, a column to a "
            "key.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(k, q, W, U, v),
            "queries and keys are exchanged: a row belongs to a query, a column to a "
            "key.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(0 * q, k, W, U, v),
            "the query is never read: every target word would look at the same place.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q, 0 * k, W, U, v),
            "the keys are never read: the encoder has no say in the scores.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q, k, W, U, v).softmax(-1),
            "these are weights. Scores are asked for: the numbers before the softmax.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q, k, W, U, v).softmax(1),
            "these are weights. Scores are asked for: the numbers before the softmax.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q, k, W, U, v) / math.sqrt(len(v)),
            "scaled by a square root: that is the scaled dot product's, not this "
            "score's.",
        ),
        (
            lambda q, k, W, U, v: torch.sigmoid(_sums(q, k, W, U)) @ v,
            "this is a sigmoid where the formula has a tanh.",
        ),
        (
            lambda q, k, W, U, v: torch.relu(_sums(q, k, W, U)) @ v,
            "this is a ReLU where the formula has a tanh.",
        ),
        (
            lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U)).sum(-1),
            "v is missing: it says how much each of the H numbers counts.",
        ),
        (
            lambda q, k, W, U, v: torch.tanh(_sums(q, k, W, U)).mean(-1),
            "v is missing: it says how much each of the H numbers counts.",
        ),
        (
            lambda q, k, W, U, v: (
                torch.tanh((q @ W.T).unsqueeze(2) * (k @ U.T).unsqueeze(1)) @ v
            ),
            "the projections are multiplied. The formula adds them.",
        ),
        (
            lambda q, k, W, U, v: (
                torch.tanh((q @ W.T).unsqueeze(2) - (k @ U.T).unsqueeze(1)) @ v
            ),
            "the projections are subtracted. The formula adds them.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q, k[:1].expand_as(k), W, U, v),
            "every sentence is scored against the keys of the first.",
        ),
        (
            lambda q, k, W, U, v: _score_by_loops(q[:1].expand_as(q), k, W, U, v),
            "every sentence is scored with the queries of the first.",
        ),
        (lambda q, k, W, U, v: _score_by_loops(q, k, W.T, U.T, v), NOT_TRANSPOSED),
    ]


def additive_scores(function):
    """queries, keys, W (H, query_size), U (H, key_size), v (H,) -> scores (B, Q, K)."""

    def spec(queries, keys, W, U, v):
        return _score_by_loops(queries, keys, W, U, v)

    _examine(function, spec, _scoring_cases(), _scoring_mistakes(), gradients=True)


def _joined_loops(queries, keys, M, v):
    """v · tanh(M [query; key]), one pair at a time."""
    return torch.stack(
        [
            torch.stack(
                [
                    torch.stack(
                        [v @ torch.tanh(M @ torch.cat((query, key))) for key in keys[b]]
                    )
                    for query in queries[b]
                ]
            )
            for b in range(len(queries))
        ]
    )


def _as_joined(mistake):
    """A mistake of additive scoring, for a matrix M = [W U]."""

    def wrong(queries, keys, M, v):
        q = queries.shape[-1]
        return mistake(queries, keys, M[:, :q], M[:, q:], v)

    return wrong


def _joined_cases():
    return [
        (queries, keys, torch.cat((W, U), dim=1), v)
        for queries, keys, W, U, v in _scoring_cases()
    ]


def _joined_in_order(queries, keys, M, v):
    """The joined form with the key first. The sum of sizes fits, so nothing raises."""
    k = keys.shape[-1]
    return _score_by_loops(keys, queries, M[:, :k], M[:, k:], v).transpose(1, 2)


def _joined_mistakes():
    return [
        (
            _joined_in_order,
            "the key comes first. In [query; key], the left columns of "
            "M belong to the query. The sizes add up either way, so "
            "nothing raises.",
        ),
        *(
            (_as_joined(mistake), sentence)
            for mistake, sentence in _scoring_mistakes()
            if sentence is not NOT_TRANSPOSED
        ),
        (lambda q, k, M, v: _joined_loops(q, k, M.T, v), NOT_TRANSPOSED),
    ]


def joined_scores(function):
    """queries, keys, M (H, query_size + key_size), v (H,) -> scores (B, Q, K)."""

    def spec(queries, keys, M, v):
        return _joined_loops(queries, keys, M, v)

    _examine(function, spec, _joined_cases(), _joined_mistakes(), gradients=True)


def attention_weights(function):
    """Scores (B, Q, K) -> weights (B, Q, K)."""

    def spec(scores):
        weights = torch.zeros_like(scores)
        for b in range(scores.shape[0]):
            for q in range(scores.shape[1]):
                exps = [score.exp() for score in scores[b, q]]
                for k in range(len(exps)):
                    weights[b, q, k] = exps[k] / sum(exps)
        return weights

    shapes = [(2, 3, 4), (2, 3, 4), (3, 1, 5), (1, 4, 2), (4, 4, 4)]
    cases = [_draw(n, shape) for n, shape in enumerate(shapes)]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda scores: scores.softmax(1),
                "the weights sum to 1 over the queries, not over the keys. With one query, "
                "all of them are 1: which axis did you normalise?",
            ),
            (
                lambda scores: scores.softmax(0),
                "the weights sum to 1 over the batch, not over the keys: which axis did you "
                "normalise?",
            ),
            (
                lambda scores: scores.flatten().softmax(0).view_as(scores),
                "all numbers together sum to 1. Each row has to, by itself.",
            ),
            (
                lambda scores: scores.flatten(1).softmax(1).view_as(scores),
                "each sentence's numbers together sum to 1. Each row has to, by itself.",
            ),
            (lambda scores: scores, "these are the scores as they came."),
            (
                lambda scores: scores.sigmoid(),
                "a sigmoid treats every score alone. The weights of a row have to sum to 1.",
            ),
            (
                lambda scores: scores.exp(),
                "exp makes them positive; the division is missing.",
            ),
            (
                lambda scores: scores / scores.sum(-1, keepdim=True),
                "the rows sum to 1, but without exp a weight can be negative.",
            ),
            (
                lambda scores: scores.log_softmax(-1),
                "these are logarithms of the weights.",
            ),
            (
                lambda scores: (-scores).softmax(-1),
                "the lowest score gets the largest weight: a sign is turned round.",
            ),
            (
                lambda scores: scores.exp() / scores.exp().amax(-1, keepdim=True),
                "divided by the largest, not by the sum.",
            ),
            (
                lambda scores: (scores / math.sqrt(scores.shape[-1])).softmax(-1),
                "the scores are scaled first. Softmax takes them as they are.",
            ),
            (
                lambda scores: torch.full_like(scores, 1 / scores.shape[-1]),
                "all weights are equal: the scores are never read.",
            ),
            (
                lambda scores: F.one_hot(scores.argmax(-1), scores.shape[-1]).float(),
                "all weight is on the best key. Softmax leaves some to the others.",
            ),
        ],
        gradients=True,
    )


# --- 03 Masked softmax -----------------------------------------------------------


def _real_positions(valid_lens, K):
    return torch.arange(K) < valid_lens.unsqueeze(-1)


def _hand_masked(X, valid_lens, largest, clean=True, safe=True):
    """exp times mask over its sum, with choices of what a learner may forget."""
    real = _real_positions(valid_lens, X.shape[-1]).unsqueeze(1)
    exps = (X - largest(X, real)).exp() * real
    if clean:
        exps = exps.masked_fill(~real, 0.0)
    total = exps.sum(-1, keepdim=True)
    return exps / (total.masked_fill(total == 0, 1.0) if safe else total)


def _largest_real(X, real):
    found = X.masked_fill(~real, -torch.inf).amax(-1, keepdim=True)
    return found.masked_fill(found == -torch.inf, 0.0)


def _largest_of_all(X, real):
    return X.amax(-1, keepdim=True)


def masked_softmax(function):
    """Scores X (B, Q, K), lengths (B,) -> weights: 0 on padding, 0 in an empty row."""

    def spec(X, valid_lens):
        weights = torch.zeros_like(X)
        for b in range(X.shape[0]):
            for q in range(X.shape[1]):
                row = [X[b, q, k] for k in range(int(valid_lens[b]))]
                exps = [(x - max(row).detach()).exp() for x in row]
                for k in range(len(row)):
                    weights[b, q, k] = exps[k] / sum(exps)
        return weights

    def case(seed, lens, Q, K, factor=1.0, padding=None):
        X, lens = _draw(seed, (len(lens), Q, K))[0] * factor, torch.tensor(lens)
        if padding is not None:
            X = X.masked_fill(~_real_positions(lens, K).unsqueeze(1), padding)
        return X, lens

    def filled(number, lens=lambda lens: lens):
        def wrong(X, valid_lens):
            real = _real_positions(lens(valid_lens), X.shape[-1]).unsqueeze(1)
            return X.masked_fill(~real, number).softmax(-1)

        return wrong

    def zeros_kept(lens):
        """The right softmax, for other lengths."""
        return lambda X, valid_lens: _hand_masked(X, lens(valid_lens), _largest_real)

    def of_queries(X, valid_lens):
        real = _real_positions(valid_lens, X.shape[1]).unsqueeze(2)
        return X.masked_fill(~real, -torch.inf).softmax(-1).nan_to_num()

    def inverted(X, valid_lens):
        real = _real_positions(valid_lens, X.shape[-1]).unsqueeze(1)
        return X.masked_fill(real, -torch.inf).softmax(-1).nan_to_num()

    def along(axis):
        def wrong(X, valid_lens):
            real = _real_positions(valid_lens, X.shape[-1]).unsqueeze(1)
            return X.masked_fill(~real, -torch.inf).softmax(axis).nan_to_num()

        return wrong

    def with_zero(X, valid_lens):
        return (X * _real_positions(valid_lens, X.shape[-1]).unsqueeze(1)).softmax(-1)

    cases = [
        case(0, [4, 2, 1], 2, 5),
        case(1, [3, 5, 2], 2, 5),
        case(2, [2, 0], 3, 4),
        case(3, [3], 1, 6),
        case(4, [1, 2, 3, 4], 4, 4),
        case(5, [3, 2], 2, 4, factor=200.0),
        case(6, [3, 1], 2, 4, padding=1000.0),
        case(7, [2, 4], 3, 5, padding=torch.nan),
    ]
    late = (
        "the mask comes after the softmax. Padding gets 0, but it has taken its "
        "part of the sum, so the rows sum to less than 1."
    )
    off = (
        "one position too many: a length of 3 makes positions 0, 1 and 2 real. On "
        "full rows it doesn't show."
    )
    empty = "a row without a real position: "
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda X, valid_lens: X.softmax(-1),
                "padding gets weight, as if there were no mask. (masked_fill returns a new "
                "tensor: was it kept?)",
            ),
            (
                lambda X, valid_lens: X.softmax(-1).masked_fill(
                    ~_real_positions(valid_lens, X.shape[-1]).unsqueeze(1), 0.0
                ),
                late,
            ),
            (
                lambda X, valid_lens: (
                    X.softmax(-1)
                    * _real_positions(valid_lens, X.shape[-1]).unsqueeze(1)
                ),
                late,
            ),
            (
                with_zero,
                "the scores of padding are set to 0. But exp(0) is 1: it takes "
                "part in the sum.",
            ),
            (
                filled(0.0),
                "the scores of padding are set to 0. But exp(0) is 1: it takes "
                "part in the sum.",
            ),
            *(
                (
                    filled(-big),
                    f"{empty}all its scores are the same large negative number, "
                    "so softmax spreads the weight evenly over padding. Weights "
                    "of 0 are asked for.",
                )
                for big in (1e4, 1e6, 1e9, 1e10)
            ),
            (
                filled(-torch.inf),
                f"{empty}softmax over nothing but -inf is 0/0. Weights of "
                "0 are asked for.",
            ),
            *(
                (wrong(lambda lens: lens + 1), off)
                for wrong in (
                    zeros_kept,
                    lambda lens: filled(-torch.inf, lens),
                    lambda lens: filled(-1e6, lens),
                    lambda lens: filled(-1e9, lens),
                )
            ),
            *(
                (
                    wrong(lambda lens: (lens - 1).clamp(min=0)),
                    "one position too few: each sentence loses its last word.",
                )
                for wrong in (zeros_kept, lambda lens: filled(-torch.inf, lens))
            ),
            (
                inverted,
                "the mask is turned round: the words are hidden and the padding is "
                "seen.",
            ),
            (
                of_queries,
                "the lengths are applied to the queries. They count keys: the "
                "last axis.",
            ),
            (
                along(1),
                "the weights sum to 1 over the queries, not over the keys: which "
                "axis did you normalise?",
            ),
            (
                along(0),
                "the weights sum to 1 over the batch, not over the keys: which axis "
                "did you normalise?",
            ),
            (
                zeros_kept(lambda lens: lens[:1].expand_as(lens)),
                "the first sentence's length is used for all.",
            ),
            (
                lambda X, lens: _hand_masked(X, lens, lambda X, real: 0.0),
                "exp of a large score is infinite. Subtract the row's largest real score "
                "first.",
            ),
            (
                lambda X, lens: _hand_masked(X, lens, lambda X, real: 0.0, clean=False),
                "exp of a large score is infinite. Subtract the row's largest real score "
                "first.",
            ),
            (
                lambda X, lens: _hand_masked(
                    X, lens, lambda X, real: 0.0, False, False
                ),
                f"{empty}the sum is 0, and 0/0 is NaN. (Then: exp of a large score is "
                "infinite; and 0 times NaN is NaN.)",
            ),
            *(
                (
                    lambda X, lens, largest=largest, safe=safe: _hand_masked(
                        X, lens, largest, False, safe
                    ),
                    f"{'' if safe else empty + '0/0. And '}what stands at the padding leaks in: "
                    "0 times NaN or infinity is NaN, and a largest score taken over padding "
                    "makes every real exp 0. Replace the scores of padding before exp.",
                )
                for largest in (_largest_real, _largest_of_all)
                for safe in (True, False)
            ),
            *(
                (
                    lambda X, lens, safe=safe, big=big: _hand_masked(
                        X.nan_to_num(nan=big), lens, _largest_of_all, True, safe
                    ),
                    "the largest score is taken over padding, too. If padding holds 1000, every "
                    "real exp becomes 0.",
                )
                for safe in (True, False)
                for big in (torch.nan, 1e4)
            ),
            (
                lambda X, lens: _hand_masked(X, lens, _largest_real, safe=False),
                f"{empty}the sum is 0, and 0/0 is NaN. Weights of 0 are asked for.",
            ),
        ],
        gradients=True,
    )


def length_mask(function):
    """Lengths (B,), the number of positions K -> True where real (B, K)."""

    def spec(valid_lens, num_positions):
        return torch.tensor(
            [
                [k < length for k in range(num_positions)]
                for length in valid_lens.tolist()
            ]
        )

    def mask(change):
        return lambda lens, K: change(torch.arange(K), lens.unsqueeze(1), K)

    cases = [
        (torch.tensor(lens), K)
        for lens, K in (
            ([4, 1, 3], 5),
            ([2, 5, 1], 5),
            ([0, 3], 4),
            ([6], 6),
            ([1, 2, 3, 2], 4),
        )
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                mask(lambda k, n, K: k <= n),
                "one position too many is real: a sentence of 3 words gets 4. On full rows "
                "nothing shows it.",
            ),
            (mask(lambda k, n, K: k < n - 1), "one position too few is real."),
            (mask(lambda k, n, K: k + 1 < n), "one position too few is real."),
            (
                mask(lambda k, n, K: k >= n),
                "turned round: True belongs to the words, False to the padding.",
            ),
            (
                mask(lambda k, n, K: k > n),
                "turned round: True belongs to the words, False to the padding.",
            ),
            (
                mask(lambda k, n, K: k >= K - n),
                "the words are taken to stand at the end. Here padding follows the words.",
            ),
            (
                mask(lambda k, n, K: (k < n).T),
                "the axes are exchanged: a row for each sentence, a column for each "
                "position.",
            ),
            (
                mask(lambda k, n, K: (k < n[:1]).expand(len(n), K)),
                "the first sentence's length is used for all.",
            ),
            (
                mask(lambda k, n, K: (k < n.max()).expand(len(n), K)),
                "the longest sentence's length is used for all.",
            ),
            (
                mask(lambda k, n, K: (k >= 0).expand(len(n), K)),
                "everything is real: the lengths are not used.",
            ),
            (
                mask(lambda k, n, K: k == n - 1),
                "only each sentence's last word is real.",
            ),
            (
                mask(lambda k, n, K: (k > 0) & (k < n)),
                "position 0 is missing: counting begins at 0.",
            ),
            (
                mask(lambda k, n, K: (k > 0) & (k <= n)),
                "positions are counted from 1. In Python, and here, they begin at 0.",
            ),
        ],
    )


# --- 04 The attention decoder ----------------------------------------------------


def _seeded(seed, make, *sizes, **options):
    """A module with seeded parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(*sizes, **options)


def attend_then_update(function):
    """x (B, 1, E), hidden_state (L, B, H), last_context (B, 1, D), attend, rnn ->
    weights (B, 1, S), hidden_state. attend: query (B, 1, H) -> context, weights.
    """

    def by_loops(x, hidden_state, attend, rnn, layer=-1):
        query = torch.stack([state for state in hidden_state[layer]]).unsqueeze(1)
        context, weights = attend(query)
        inputs = [torch.cat((context[b, 0], x[b, 0])) for b in range(len(x))]
        _, new = rnn(torch.stack(inputs).unsqueeze(1), hidden_state)
        return weights, new

    def spec(x, hidden_state, last_context, attend, rnn):
        return by_loops(x, hidden_state, attend, rnn)

    def updated_first(x, hidden_state, last_context, attend, rnn):
        _, new = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
        return attend(new[-1].unsqueeze(1))[1], new

    def between(x, hidden_state, last_context, attend, rnn):
        """Queries with the state after a first update, then updates the old one."""
        _, new = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
        context, weights = attend(new[-1].unsqueeze(1))
        return weights, rnn(torch.cat((context, x), dim=-1), hidden_state)[1]

    def twice(x, hidden_state, last_context, attend, rnn):
        _, new = updated_first(x, hidden_state, last_context, attend, rnn)
        return by_loops(x, new, attend, rnn)

    def attended_again(x, hidden_state, last_context, attend, rnn):
        _, new = by_loops(x, hidden_state, attend, rnn)
        return attend(new[-1].unsqueeze(1))[1], new

    def other_order(x, hidden_state, last_context, attend, rnn):
        context, weights = attend(hidden_state[-1].unsqueeze(1))
        return weights, rnn(torch.cat((x, context), dim=-1), hidden_state)[1]

    def forgotten(x, hidden_state, last_context, attend, rnn):
        context, weights = attend(hidden_state[-1].unsqueeze(1))
        return weights, rnn(torch.cat((context, x), dim=-1))[1]

    def old_context(x, hidden_state, last_context, attend, rnn):
        _, weights = attend(hidden_state[-1].unsqueeze(1))
        return weights, rnn(torch.cat((last_context, x), dim=-1), hidden_state)[1]

    def case(seed, B, L, E, H, D, S, lens):
        attention = _seeded(seed, AdditiveAttention, D, H, H + 1)
        x, hidden_state, last_context, values = _draw(
            seed, (B, 1, E), (L, B, H), (B, 1, D), (B, S, D)
        )
        keys, lens = attention.project_keys(values).detach(), torch.tensor(lens)
        rnn = _seeded(seed, nn.GRU, D + E, H, L, batch_first=True)
        return (
            x,
            hidden_state,
            last_context,
            lambda query: attention.attend(query, keys, values, lens),
            rnn,
        )

    cases = [
        case(0, 2, 2, 3, 4, 5, 6, [6, 3]),
        case(1, 2, 2, 3, 4, 5, 6, [2, 5]),
        case(2, 3, 1, 4, 5, 2, 7, [7, 1, 4]),
        case(3, 3, 3, 3, 3, 3, 3, [3, 2, 1]),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                updated_first,
                "the weights move with the word of their own step: the state "
                "was updated before it asked. In the paper's order, s_{i-1} "
                "asks first.",
            ),
            (
                between,
                "the query is a state between s_{i-1} and s_i: the word was read "
                "before attending.",
            ),
            (twice, "the state is updated twice in one step."),
            (
                attended_again,
                "the weights returned belong to the new state. Those of "
                "s_{i-1} made the context.",
            ),
            (
                other_order,
                "context and word are joined in the wrong order: the GRU's "
                "weights expect the context first.",
            ),
            (forgotten, "the GRU starts from zeros: it isn't given the state before."),
            (
                old_context,
                "the GRU reads the last step's context, not the one attended to now.",
            ),
            (
                lambda x, hidden_state, last_context, attend, rnn: by_loops(
                    x, hidden_state, attend, rnn, 0
                ),
                "the bottom layer asks. The query is the top layer's state.",
            ),
            (
                lambda x, hidden_state, last_context, attend, rnn: (
                    by_loops(x, hidden_state, attend, rnn)[0],
                    hidden_state,
                ),
                "the hidden_state returned is the old one: the next step would start from "
                "s_{i-1} again.",
            ),
            (
                lambda x, hidden_state, last_context, attend, rnn: by_loops(
                    x, hidden_state, attend, rnn
                )[::-1],
                "the two results are exchanged: first the weights, then the state.",
            ),
        ],
    )


def bottom_query(function):
    """hidden_state (L, B, H) -> the query (B, 1, H) from the bottom layer."""

    def spec(hidden_state):
        rows = [[state.tolist()] for state in hidden_state[0]]
        return torch.tensor(rows) + 0 * hidden_state[0].unsqueeze(1)

    shapes = [(2, 3, 4), (2, 3, 4), (3, 2, 5), (1, 4, 2), (3, 3, 3)]
    cases = [_draw(n, shape) for n, shape in enumerate(shapes)]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda hidden_state: hidden_state[-1].unsqueeze(1),
                "this is the top layer. Layers are counted from the bottom, beginning at 0.",
            ),
            (
                lambda hidden_state: hidden_state[1].unsqueeze(1),
                "this is the second layer. Counting begins at 0.",
            ),
            (
                lambda hidden_state: hidden_state[0],
                "the axis of queries is missing: (B, 1, H), one query a sentence.",
            ),
            (
                lambda hidden_state: hidden_state[0].unsqueeze(0),
                "the axis of length 1 is in front. It counts queries: (B, 1, H).",
            ),
            (
                lambda hidden_state: hidden_state[:1],
                "the axis of length 1 is in front. It counts queries: (B, 1, H).",
            ),
            (
                lambda hidden_state: hidden_state[:, 0].unsqueeze(1),
                "this takes the first sentence of every layer. Axis 0 of a hidden state is "
                "the layer, even with batch_first.",
            ),
            (
                lambda hidden_state: hidden_state[:, :1],
                "this takes the first sentence of every layer. Axis 0 of a hidden state is "
                "the layer, even with batch_first.",
            ),
            (
                lambda hidden_state: hidden_state.mean(0).unsqueeze(1),
                "this is the mean of all layers.",
            ),
            (
                lambda hidden_state: hidden_state.sum(0).unsqueeze(1),
                "this is the sum of all layers.",
            ),
            (
                lambda hidden_state: hidden_state.transpose(0, 1),
                "all layers are returned, as if each were a query.",
            ),
        ],
    )


def all_weights(function):
    """attention, queries (B, T, query_size), enc_outputs (B, S, key_size), lengths (B,)
    -> weights (B, T, S) of all steps, the keys projected once.
    """

    def by_loops(attention, queries, enc_outputs, valid_lens, masked=True):
        W, U, v = (
            layer.weight.detach()
            for layer in (attention.W_q, attention.W_k, attention.w_v)
        )
        scores = _score_by_loops(queries, enc_outputs, W, U, v[0])
        weights = torch.zeros_like(scores)
        for b in range(len(scores)):
            n = int(valid_lens[b]) if masked else scores.shape[2]
            weights[b, :, :n] = scores[b, :, :n].softmax(-1)
        return weights

    def spec(attention, queries, enc_outputs, valid_lens):
        return by_loops(attention, queries, enc_outputs, valid_lens), 1

    def counted(function, attention, queries, enc_outputs, valid_lens):
        calls = []
        attention.W_k.register_forward_hook(lambda *_: calls.append(1))
        weights = function(attention, queries, enc_outputs, valid_lens)
        return (
            weights
            if weights is ... or weights is None
            else (weights, max(len(calls), 1))
        )

    def wrong(change, projections=1):
        """A mistake in the weights, in the number of projections, or in both."""

        def mistake(attention, queries, enc_outputs, valid_lens):
            count = projections(queries) if callable(projections) else projections
            return change(attention, queries, enc_outputs, valid_lens), count

        return mistake

    def unprojected(attention, queries, enc_outputs, valid_lens):
        return attention.attend(queries, enc_outputs, enc_outputs, valid_lens)[1]

    def projected_twice(attention, queries, enc_outputs, valid_lens):
        keys = attention.project_keys(attention.project_keys(enc_outputs))
        return attention.attend(queries, keys, enc_outputs, valid_lens)[1]

    def case(seed, B, T, S, query_size, key_size, H, lens):
        attention = _seeded(seed, AdditiveAttention, key_size, query_size, H)
        for parameter in attention.parameters():
            parameter.requires_grad_(False)
        queries, keys = _draw(seed, (B, T, query_size), (B, S, key_size))
        return attention, 3 * queries, 3 * keys, torch.tensor(lens)

    cases = [
        case(0, 2, 3, 6, 4, 5, 7, [6, 2]),
        case(1, 2, 3, 6, 4, 5, 7, [4, 5]),
        case(2, 3, 5, 2, 6, 4, 3, [2, 1, 2]),
        case(3, 3, 3, 3, 3, 3, 3, [3, 1, 2]),
    ]
    each = (
        "the weights are right, but the keys are projected at every step. They "
        "don't change while the sentence is translated."
    )
    mask = "padding gets weight: the lengths are not used."
    _examine(
        function,
        spec,
        cases,
        [
            (wrong(by_loops, lambda queries: queries.shape[1]), each),
            (
                wrong(by_loops, lambda queries: queries.shape[0]),
                "the weights are right, but the keys are projected once for each sentence of "
                "the batch. One call does all of them.",
            ),
            (
                wrong(by_loops, lambda queries: queries.shape[0] * queries.shape[1]),
                each,
            ),
            (wrong(lambda *args: by_loops(*args, masked=False)), mask),
            (
                wrong(
                    lambda *args: by_loops(*args, masked=False),
                    lambda queries: queries.shape[1],
                ),
                mask,
            ),
            (
                wrong(unprojected),
                "the keys aren't projected at all. With equal sizes, nothing raises.",
            ),
            (
                wrong(projected_twice, 2),
                "the keys are projected twice: forward projects "
                "them, and attend takes them projected.",
            ),
            (
                wrong(lambda *args: by_loops(*args).transpose(0, 1)),
                "time stands first. Batch first is asked for: join the steps along dim=1.",
            ),
            (
                wrong(lambda *args: by_loops(*args).unsqueeze(2)),
                "an axis too many: each step's weights are (B, 1, S) already. torch.cat joins "
                "along an axis, torch.stack adds one.",
            ),
            (
                wrong(lambda *args: by_loops(*args).transpose(0, 1).unsqueeze(2)),
                "an axis too many: each step's weights are (B, 1, S) already. torch.cat joins "
                "along an axis, torch.stack adds one.",
            ),
            (
                wrong(lambda *args: by_loops(*args)[:, -1:]),
                "these are the last step's weights alone.",
            ),
            (
                wrong(lambda *args: by_loops(*args)[:, :1].expand_as(by_loops(*args))),
                "every step asks with the first query.",
            ),
        ],
        unwrap=counted,
    )


# --- 05 Training -----------------------------------------------------------------


def mean_loss(function):
    """Scores (B, T, V), targets (B, T) with 0 at padding -> mean nats a real word."""

    def nats(scores, targets):
        """Each position's loss (B, T)."""
        return -scores.log_softmax(-1).gather(2, targets.unsqueeze(2)).squeeze(2)

    def spec(scores, targets):
        total, count = 0.0, 0
        for b in range(targets.shape[0]):
            for t in range(targets.shape[1]):
                if targets[b, t] != 0:
                    exps = scores[b, t].exp()
                    total = total - (exps[targets[b, t]] / exps.sum()).log()
                    count += 1
        return total / count

    def real(targets):
        return (targets != 0).float()

    def of_sentences(scores, targets):
        mask = real(targets)
        return ((nats(scores, targets) * mask).sum(1) / mask.sum(1)).mean()

    def over(number):
        return lambda scores, targets: (
            (nats(scores, targets) * real(targets)).sum() / number(targets)
        )

    def case(seed, lens, T, V):
        scores = _draw(seed, (len(lens), T, V))[0]
        generator = torch.Generator().manual_seed(seed)
        targets = torch.randint(3, V, (len(lens), T), generator=generator)
        for row, n in zip(targets, lens, strict=True):
            row[n - 1], row[n:] = 2, 0
        return scores, targets

    cases = [
        case(0, [4, 2], 4, 7),
        case(1, [3, 4], 4, 7),
        case(2, [5, 1, 3], 6, 9),
        case(3, [3], 5, 4),
        case(4, [4, 2, 3, 1], 4, 4),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda scores, targets: nats(scores, targets).mean(),
                "padding is counted, as if <pad> were a word to learn. The loss is too good "
                "as soon as the model has learnt to write padding.",
            ),
            (
                lambda scores, targets: nats(
                    scores * real(targets).unsqueeze(2), targets
                ).mean(),
                "the scores of padding are set to 0, and counted: a row of zeros still has a "
                "loss, log V.",
            ),
            (
                over(lambda targets: targets.numel()),
                "the more padding, the smaller the loss. Only real words are summed: what is "
                "counted below the line?",
            ),
            (
                over(lambda targets: 1),
                "this is the sum. Divide by the number of real words.",
            ),
            (
                over(len),
                "divided by the number of sentences. The unit asked for is nats a "
                "word.",
            ),
            (over(lambda targets: real(targets).sum() ** 2), "divided twice."),
            (
                over(lambda targets: real(targets).sum() * len(targets)),
                "divided twice: by the words, and by the sentences.",
            ),
            (
                of_sentences,
                "the mean of the sentences' means: a word of a short sentence "
                "counts more than one of a long sentence.",
            ),
            (
                lambda scores, targets: spec(scores.softmax(-1), targets),
                "softmax is applied twice: cross_entropy takes the scores as they are.",
            ),
            (
                lambda scores, targets: (
                    -scores[targets != 0]
                    .gather(1, targets[targets != 0].unsqueeze(1))
                    .mean()
                ),
                "log_softmax is missing: scores are no log-probabilities yet.",
            ),
            (
                lambda scores, targets: -spec(scores, targets),
                "the sign is missing: a loss is minus the log-probability.",
            ),
            (
                lambda scores, targets: spec(scores, targets) / math.log(2),
                "this is in bits. The natural logarithm gives nats.",
            ),
            (
                lambda scores, targets: spec(
                    scores, targets.masked_fill(targets == 2, 0)
                ),
                "<eos> is left out. It is a word to learn: only 0 is padding.",
            ),
            (
                lambda scores, targets: spec(scores[:, :-1], targets[:, 1:]),
                "scores and targets are shifted once more. The batch has done it already.",
            ),
        ],
        gradients=True,
    )


def clip(function):
    """A list of gradients, max_norm -> the list, scaled down to that norm."""

    def norm(gradients):
        return math.sqrt(sum(x * x for g in gradients for x in g.flatten().tolist()))

    def spec(gradients, max_norm):
        factor = min(1.0, max_norm / norm(gradients))
        return [g * factor for g in gradients]

    def scaled(factor):
        return lambda gradients, max_norm: [
            g * factor(gradients, max_norm) for g in gradients
        ]

    cases = [
        ([*_draw(n, (2, 3), (4,))], limit)
        for n, limit in ((0, 1.0), (1, 1.0), (2, 100.0), (3, 0.1), (4, 2.0))
    ]
    cases.append(([g * 0.01 for g in _draw(5, (2, 3), (4,), (2, 2))], 1.0))
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda gradients, max_norm: [spec([g], max_norm)[0] for g in gradients],
                "each tensor is clipped by itself, which turns the gradient to another "
                "direction. The norm is that of all numbers together.",
            ),
            (
                lambda gradients, max_norm: [
                    g.clamp(-max_norm, max_norm) for g in gradients
                ],
                "each number is cut off by itself, which turns the gradient to another "
                "direction. All are multiplied by one factor.",
            ),
            (
                scaled(lambda gradients, limit: limit / norm(gradients)),
                "a small gradient is blown up to the limit. Only a larger one is scaled, "
                "down.",
            ),
            (
                scaled(lambda gradients, limit: min(1.0, limit / norm(gradients) ** 2)),
                "the square root is missing from the norm.",
            ),
            (
                scaled(
                    lambda gradients, limit: (
                        limit / norm(gradients) ** 2 if norm(gradients) > limit else 1.0
                    )
                ),
                "the square root is missing from the norm.",
            ),
            (
                scaled(
                    lambda gradients, limit: (
                        limit / sum(map(norm, zip(gradients)))
                        if sum(map(norm, zip(gradients))) > limit
                        else 1.0
                    )
                ),
                "norms are added. Add the squares of all numbers, and take the root once.",
            ),
            (
                scaled(
                    lambda gradients, limit: (
                        1 / norm(gradients) if norm(gradients) > limit else 1.0
                    )
                ),
                "the result always has norm 1: max_norm is missing from the factor.",
            ),
            (
                scaled(lambda gradients, limit: min(1.0, 1 / norm(gradients))),
                "the result always has norm 1: max_norm is missing from the factor.",
            ),
            (
                scaled(lambda gradients, limit: max(1.0, limit / norm(gradients))),
                "turned round: small gradients grow and large ones stay.",
            ),
            (
                scaled(
                    lambda gradients, limit: limit if norm(gradients) > limit else 1.0
                ),
                "multiplied by max_norm, without dividing by the norm.",
            ),
            (
                scaled(
                    lambda gradients, limit: min(
                        1.0, limit / max(g.abs().max().item() for g in gradients)
                    )
                ),
                "this is the largest number, not the norm.",
            ),
            (
                scaled(
                    lambda gradients, limit: min(
                        1.0, limit / sum(g.abs().sum().item() for g in gradients)
                    )
                ),
                "the sizes of the numbers are added. The norm is the root of the sum of "
                "their squares.",
            ),
            (lambda gradients, max_norm: gradients, "nothing is scaled."),
        ],
    )


def epoch_loss(function):
    """Each batch's mean loss, its number of words -> the mean over all words."""

    def spec(losses, tokens):
        total, count = 0.0, 0
        for loss, n in zip(losses, tokens, strict=True):
            for _ in range(n):
                total += loss
                count += 1
        return total / count

    cases = [
        ([2.0, 4.0], [3, 1]),
        ([5.0, 1.0], [2, 6]),
        ([1.0, 2.0, 6.0], [5, 5, 2]),
        ([0.5], [7]),
        ([3.0, 1.0, 2.0, 4.0], [1, 2, 3, 4]),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda losses, tokens: sum(losses) / len(losses),
                "the mean of the batches' means: a word in a small batch counts more than one "
                "in a large batch.",
            ),
            (
                lambda losses, tokens: sum(losses) / sum(tokens),
                "the losses are means already. Weigh each by its number of words before "
                "adding.",
            ),
            (
                lambda losses, tokens: sum(
                    a * n for a, n in zip(losses, tokens, strict=True)
                ),
                "this is the sum over all words: the division is missing.",
            ),
            (
                lambda losses, tokens: (
                    sum(a * n for a, n in zip(losses, tokens, strict=True))
                    / len(losses)
                ),
                "divided by the number of batches, not of words.",
            ),
            (
                lambda losses, tokens: sum(losses),
                "this is the sum of the batches' losses.",
            ),
            (lambda losses, tokens: losses[-1], "this is the last batch's loss."),
            (lambda losses, tokens: max(losses), "this is the largest loss."),
            (
                lambda losses, tokens: (
                    sum(a / n for a, n in zip(losses, tokens, strict=True))
                    / len(losses)
                ),
                "divided by the words a second time: each loss is a mean already.",
            ),
            (
                lambda losses, tokens: sum(
                    a / n for a, n in zip(losses, tokens, strict=True)
                ),
                "divided by the words a second time: each loss is a mean already.",
            ),
        ],
    )


# --- 06 Heatmaps -----------------------------------------------------------------


def links(function):
    """Weights (T, S), threshold -> {(source, target)} whose weight reaches it."""

    def spec(weights, threshold):
        found = set()
        for i, row in enumerate(weights.tolist()):
            for j in range(len(row)):
                if row[j] >= threshold:
                    found.add((j, i))
        return found

    def moved(source, target):
        return lambda weights, threshold: {
            (j + source, i + target) for j, i in spec(weights, threshold)
        }

    def best(weights, threshold):
        return {(int(row.argmax()), i) for i, row in enumerate(weights)}

    cases = [
        (torch.tensor(rows), threshold)
        for rows, threshold in (
            ([[0.5, 0.25, 0.25], [0.125, 0.25, 0.625]], 0.25),
            ([[0.25, 0.75, 0.0], [0.125, 0.375, 0.5]], 0.25),
            ([[0.5, 0.5], [0.875, 0.125], [0.0, 1.0]], 0.5),
            ([[0.375, 0.125, 0.25, 0.25]], 0.375),
            ([[0.25, 0.25, 0.5], [0.625, 0.25, 0.125], [0.375, 0.375, 0.25]], 0.375),
            ([[0.25, 0.25, 0.25, 0.25], [0.75, 0.125, 0.125, 0.0]], 0.5),
        )
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda weights, threshold: {
                    (i, j) for j, i in spec(weights, threshold)
                },
                "mirrored at the diagonal. A link is (source, target): which axis of the "
                "weights is which?",
            ),
            (
                lambda weights, threshold: spec(weights, threshold + 1e-6),
                "a weight equal to the threshold reaches it: >=, not >.",
            ),
            (
                best,
                "this is each row's largest weight. Every weight that reaches the "
                "threshold makes a link.",
            ),
            (
                lambda weights, threshold: (
                    best(weights, threshold) & spec(weights, threshold)
                ),
                "at most one link a row. Every weight that reaches the threshold makes one.",
            ),
            (
                lambda weights, threshold: (
                    best(weights, threshold) | spec(weights, threshold)
                ),
                "a row in which no weight reaches the threshold has no link.",
            ),
            (
                lambda weights, threshold: (
                    {
                        (j, i)
                        for j in range(weights.shape[1])
                        for i in range(weights.shape[0])
                    }
                    - spec(weights, threshold)
                ),
                "turned round: these are the weights below it.",
            ),
            (moved(1, 1), "counted from 1. Positions begin at 0."),
            (
                moved(0, 1),
                "each link belongs to the next target word: off by one in time. "
                "Row i is the word with index i.",
            ),
            (
                moved(0, -1),
                "each link belongs to the target word before: off by one in "
                "time. Row i is the word with index i.",
            ),
            (moved(1, 0), "the source index is off by one: positions begin at 0."),
            (
                lambda weights, threshold: spec(weights[:-1], threshold),
                "the last row is left out. <eos> is gone from these weights already.",
            ),
            (
                lambda weights, threshold: spec(weights[:, :-1], threshold),
                "the last column is left out. <eos> is gone from these weights already.",
            ),
        ],
    )


def aer(function):
    """Predicted and gold links, a set for each sentence -> alignment error rate."""

    def spec(predicted, gold):
        errors = size = 0
        for a, s in zip(predicted, gold, strict=True):
            errors += sum(link not in s for link in a)
            errors += sum(link not in a for link in s)
            size += len(a) + len(s)
        return errors / size

    def common(predicted, gold):
        return sum(len(a & s) for a, s in zip(predicted, gold, strict=True))

    def count(sets):
        return sum(map(len, sets))

    def one_bag(predicted, gold):
        return spec([set().union(*predicted)], [set().union(*gold)])

    def jaccard(predicted, gold):
        return 1 - common(predicted, gold) / (
            count(predicted) + count(gold) - common(predicted, gold)
        )

    cases = [
        ([{(0, 0), (1, 2), (1, 1)}, {(0, 0)}], [{(0, 0), (1, 2)}, {(0, 1)}]),
        ([{(0, 0)}, {(0, 1), (2, 2)}], [{(0, 0), (1, 1), (2, 2)}, {(0, 1)}]),
        ([{(0, 0), (1, 1)}], [{(0, 0), (1, 1)}]),
        ([{(0, 1)}], [{(1, 0)}]),
        ([{(3, 3)}, {(2, 2), (4, 4)}, {(0, 0)}], [{(2, 2)}, {(2, 2)}, {(0, 0)}]),
    ]
    half = (
        "a perfect alignment must get 0. In the formula |A ∩ S| stands twice here, "
        "since |A ∩ P| is equal to it."
    )
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda predicted, gold: (
                    sum(spec([a], [s]) for a, s in zip(predicted, gold, strict=True))
                    / len(gold)
                ),
                "the mean of the sentences' error rates: a short sentence counts as much as a "
                "long one. Add the counts of all sentences first.",
            ),
            (
                lambda predicted, gold: 1 - common(predicted, gold) / count(predicted),
                "this is 1 - precision: links that are missing cost nothing.",
            ),
            (
                lambda predicted, gold: 1 - common(predicted, gold) / count(gold),
                "this is 1 - recall: links too many cost nothing.",
            ),
            (
                lambda predicted, gold: 1 - spec(predicted, gold),
                "this is the share that is right. An error rate of 0 is perfect.",
            ),
            (
                lambda predicted, gold: (
                    1 - common(predicted, gold) / (count(predicted) + count(gold))
                ),
                half,
            ),
            (
                jaccard,
                "divided by the union of both sets. The formula has |A| + |S|, where "
                "common links count twice.",
            ),
            (
                one_bag,
                "the links of all sentences are in one set: a link of one sentence "
                "is found in the gold of another.",
            ),
            (
                lambda predicted, gold: spec(
                    [{(i, j) for j, i in links} for links in predicted], gold
                ),
                "source and target are exchanged on one side.",
            ),
            (
                lambda predicted, gold: 100 * spec(predicted, gold),
                "a share between 0 and 1 is asked for, not percent.",
            ),
            (
                lambda predicted, gold: (
                    count(predicted) + count(gold) - 2 * common(predicted, gold)
                ),
                "this is the number of errors: divide it.",
            ),
        ],
    )


# --- 07 Long sentences -----------------------------------------------------------


def push(function):
    """Scores (B, 1, S), place (B,), sigma -> scores, lower far from the place."""

    def spec(scores, place, sigma):
        rows = []
        for b in range(len(scores)):
            row = [
                scores[b, 0, j] - (j - place[b]) ** 2 / (2 * sigma**2)
                for j in range(scores.shape[2])
            ]
            rows.append(torch.stack(row).unsqueeze(0))
        return torch.stack(rows)

    def distance(scores, place):
        return (torch.arange(scores.shape[2]) - place.unsqueeze(1)).unsqueeze(1)

    def minus(penalty):
        return lambda scores, place, sigma: (
            scores - penalty(distance(scores, place), sigma)
        )

    def hard(scores, place, sigma):
        return scores.masked_fill(distance(scores, place).abs() > sigma, -torch.inf)

    def case(seed, places, S, sigma):
        return _draw(seed, (len(places), 1, S))[0], torch.tensor(places), sigma

    cases = [
        case(0, [0.5, 3.0], 5, 2.0),
        case(1, [2.0, 4.0], 5, 3.0),
        case(2, [1.0, 0.0, 6.5], 7, 0.8),
        case(3, [2.5], 4, 1.5),
        case(4, [3.0, 0.0, 1.0, 2.0], 4, 2.5),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                minus(lambda d, sigma: -(d**2) / (2 * sigma**2)),
                "the sign is turned round: what is far away wins.",
            ),
            (
                minus(lambda d, sigma: d**2 / sigma**2),
                "the 2 in the denominator is missing.",
            ),
            (
                minus(lambda d, sigma: d**2 / (2 * sigma)),
                "sigma isn't squared, so it isn't a distance in words.",
            ),
            (
                minus(lambda d, sigma: d**2 / 2 * sigma**2),
                "divided by 2 and then multiplied: brackets around 2 * sigma**2.",
            ),
            (
                minus(lambda d, sigma: d.abs() / (2 * sigma**2)),
                "the distance isn't squared.",
            ),
            (
                minus(lambda d, sigma: d / (2 * sigma**2)),
                "the distance isn't squared, so words before the place are pulled up.",
            ),
            (
                minus(lambda d, sigma: (d + 1) ** 2 / (2 * sigma**2)),
                "positions are counted from 1. They begin at 0.",
            ),
            (minus(lambda d, sigma: d**2), "sigma isn't used."),
            (
                minus(lambda d, sigma: (d / (2 * sigma)) ** 2),
                "the 2 is squared, too: 4 sigma² where 2 sigma² belongs.",
            ),
            (hard, "this is a hard window. A soft push changes every score a little."),
            (
                lambda scores, place, sigma: spec(
                    scores, place[:1].expand_as(place), sigma
                ),
                "the first sentence's place is used for all.",
            ),
            (
                lambda scores, place, sigma: (
                    scores * (-(distance(scores, place) ** 2) / (2 * sigma**2)).exp()
                ),
                "the scores are multiplied. A factor pulls negative scores up; subtracting "
                "does not.",
            ),
            (
                lambda scores, place, sigma: spec(scores, place, sigma).softmax(-1),
                "these are weights. Scores are asked for: the softmax comes later.",
            ),
            (
                lambda scores, place, sigma: (
                    -(distance(scores, place) ** 2) / (2 * sigma**2)
                ),
                "the scores themselves are gone: the push is subtracted from them.",
            ),
        ],
        gradients=True,
    )


def near(function):
    """place (B,), reach, num_positions -> True at most reach words away (B, S)."""

    def spec(place, reach, num_positions):
        return torch.tensor(
            [
                [-reach <= j - p <= reach for j in range(num_positions)]
                for p in place.tolist()
            ]
        )

    def window(change):
        return lambda place, reach, S: change(
            torch.arange(S) - place.unsqueeze(1), reach
        )

    cases = [
        (torch.tensor(places), reach, S)
        for places, reach, S in (
            ([4.0, 1.0], 2, 7),
            ([3.0, 6.0], 2, 7),
            ([0.0, 2.5, 8.0], 3, 9),
            ([5.0], 1, 6),
            ([0.0, 3.0, 1.0, 2.0], 1, 4),
        )
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                window(lambda d, reach: d <= reach),
                "only the right side is cut. A word before the place, however far, is let in: "
                "which sign has its distance?",
            ),
            (
                window(lambda d, reach: d >= -reach),
                "only the left side is cut: words after the place, however far, are let in.",
            ),
            (
                window(lambda d, reach: d < reach),
                "only the right side is cut, and one word too early.",
            ),
            (
                window(lambda d, reach: d.abs() < reach),
                "one word too few on each side: a word exactly reach away is inside.",
            ),
            (
                window(lambda d, reach: d.abs() <= reach + 1),
                "one word too many on each side.",
            ),
            (
                window(lambda d, reach: d.abs() > reach),
                "turned round: True belongs to the near words.",
            ),
            (
                window(lambda d, reach: (d >= 0) & (d <= reach)),
                "the words before the place are missing.",
            ),
            (
                window(lambda d, reach: (d <= 0) & (d >= -reach)),
                "the words after the place are missing.",
            ),
            (
                window(lambda d, reach: d.abs() <= reach / 2),
                "half as wide: reach counts to each side.",
            ),
            (
                window(lambda d, reach: (d + 1).abs() <= reach),
                "positions are counted from 1. They begin at 0.",
            ),
            (
                lambda place, reach, S: spec(place[:1].expand_as(place), reach, S),
                "the first sentence's place is used for all.",
            ),
            (
                lambda place, reach, S: spec(place, reach, S).T,
                "the axes are exchanged: a row for each sentence.",
            ),
        ],
    )


# --- 08 Design choices -----------------------------------------------------------


def concat_attention(kind):
    """A class, made by kind(key_size, query_size, num_hiddens), with W and w_v."""

    def spec(queries, keys, M, v):
        return _joined_loops(queries, keys, M, v)

    def scores(kind, queries, keys, M, v):
        attention = kind(keys.shape[-1], queries.shape[-1], len(v))
        for name, weight in (("W", M), ("w_v", v.unsqueeze(0))):
            layer = getattr(attention, name)
            if layer.bias is not None:
                raise ValueError(f"{name} has a bias here: nn.Linear(..., bias=False)")
            if layer.weight.shape != weight.shape:
                raise ValueError(
                    f"{name}.weight should have shape "
                    f"{tuple(weight.shape)}, it has "
                    f"{tuple(layer.weight.shape)}"
                )
            del layer.weight
            layer.weight = weight  # so that a gradient reaches the case's own tensor
        return attention.score(queries, attention.project_keys(keys))

    _examine(kind, spec, _joined_cases(), _joined_mistakes(), True, unwrap=scores)


def scaled_dot(function):
    """queries (B, Q, H), keys (B, K, H) -> scaled dot-product scores (B, Q, K)."""

    def spec(queries, keys):
        scores = torch.zeros(len(queries), queries.shape[1], keys.shape[1])
        for b, q, k in np.ndindex(*scores.shape):
            product = sum(x * y for x, y in zip(queries[b, q], keys[b, k], strict=True))
            scores[b, q, k] = product / math.sqrt(keys.shape[2])
        return scores

    def over(number):
        return lambda q, k: q @ k.transpose(1, 2) / number(q, k)

    shapes = [(2, 3, 4, 5), (2, 3, 4, 5), (3, 1, 2, 6), (1, 2, 5, 3), (4, 4, 4, 4)]
    cases = [_draw(n, (B, Q, H), (B, K, H)) for n, (B, Q, K, H) in enumerate(shapes)]
    _examine(
        function,
        spec,
        cases,
        [
            (
                over(lambda q, k: q.shape[2]),
                "divided by too much: the longer the vectors, the nearer all scores come to "
                "0, and all weights to each other. How does the typical size of a sum of H "
                "products grow with H?",
            ),
            (over(lambda q, k: 1.0), "not scaled."),
            (
                over(lambda q, k: q.shape[2] ** -0.5),
                "multiplied by the square root: the scores grow with the size twice.",
            ),
            (
                over(lambda q, k: k.shape[1] ** 0.5),
                "scaled by the number of keys. It is the size of a vector that counts.",
            ),
            (
                over(lambda q, k: q.shape[1] ** 0.5),
                "scaled by the number of queries. It is the size of a vector that counts.",
            ),
            (
                over(lambda q, k: len(q) ** 0.5),
                "scaled by the batch. It is the size of a vector that counts.",
            ),
            (
                lambda q, k: spec(q, k).softmax(-1),
                "these are weights. Scores are asked for.",
            ),
            (
                lambda q, k: spec(k, q),
                "queries and keys are exchanged: a row belongs to a query.",
            ),
            (
                lambda q, k: (
                    F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(1, 2)
                ),
                "divided by the vectors' lengths: this is the cosine.",
            ),
            (
                lambda q, k: q @ k.transpose(1, 2) / q.norm(dim=-1, keepdim=True),
                "divided by each query's length. The scale is one number for all.",
            ),
            (
                lambda q, k: q @ k / math.sqrt(q.shape[2]),
                "the keys aren't transposed. With equal sizes, nothing raises.",
            ),
            (
                lambda q, k: (
                    (q @ k.transpose(1, 2)).softmax(-1) / math.sqrt(q.shape[2])
                ),
                "these are weights, scaled after the softmax: they no longer sum to 1.",
            ),
        ],
        gradients=True,
    )


# --- 09 RNNsearch ----------------------------------------------------------------


def reset_after(kind):
    """A class: GatedUnit with the reset after the product, as in nn.GRU."""

    def by_loops(from_word, context, s, C, U_gates, U, from_state=None, keep=False):
        H, rows = s.shape[1], []
        for b in range(len(s)):
            inputs = from_word[b] + C @ context[b]
            gates = torch.sigmoid(inputs[: 2 * H] + U_gates @ s[b])
            z, r = gates[:H], gates[H:]
            old = r * (U @ s[b]) if from_state is None else from_state(U, r, s[b])
            proposal = torch.tanh(inputs[2 * H :] + old)
            rows.append(
                z * s[b] + (1 - z) * proposal if keep else (1 - z) * s[b] + z * proposal
            )
        return torch.stack(rows)

    def spec(from_word, context, s, C, U_gates, U):
        return by_loops(from_word, context, s, C, U_gates, U)

    def new_state(kind, from_word, context, s, C, U_gates, U):
        unit = kind(2, s.shape[1], context.shape[1])
        for layer, weight in ((unit.C, C), (unit.U_gates, U_gates), (unit.U, U)):
            del layer.weight
            layer.weight = weight
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
        return unit(from_word, context, s)

    def old(from_state):
        return lambda *case: by_loops(*case, from_state=from_state)

    sizes = [(2, 4, 3), (2, 4, 3), (3, 2, 5), (1, 5, 4), (3, 3, 3)]
    cases = [
        _draw(n, (B, 3 * H), (B, D), (B, H), (3 * H, D), (2 * H, H), (H, H))
        for n, (B, H, D) in enumerate(sizes)
    ]
    _examine(
        kind,
        spec,
        cases,
        [
            (
                old(lambda U, r, s: U @ (r * s)),
                "the reset comes before the product: this is the paper's unit as it was. "
                "Multiply by U first, then reset.",
            ),
            (old(lambda U, r, s: U @ s), "nothing is reset: r isn't used."),
            (
                old(lambda U, r, s: r * s),
                "U isn't used: the old state goes in as it is.",
            ),
            (old(lambda U, r, s: r * (U @ (r * s))), "reset twice: before and after."),
            (
                old(lambda U, r, s: (1 - r) * (U @ s)),
                "the reset is turned round: r = 1 lets everything through.",
            ),
            (old(lambda U, r, s: r + U @ s), "the gate is added. A gate multiplies."),
            (
                old(lambda U, r, s: r * (U.T @ s)),
                "U stands on the wrong side: `self.U(s)`, or `s @ self.U.weight.T`.",
            ),
            (
                old(lambda U, r, s: U @ r * s),
                "r goes through U, and s doesn't: the two are exchanged.",
            ),
            (
                lambda *case: by_loops(*case, keep=True),
                "the update gate is turned round, as nn.GRU has it. Only the reset was to "
                "move.",
            ),
            (
                old(lambda U, r, s: torch.tanh(r * (U @ s))),
                "tanh is applied twice: `forward` does it.",
            ),
        ],
        gradients=True,
        unwrap=new_state,
    )


def first_state(function):
    """Outputs (B, S, 2H) of both directions -> the backward state at word 1: (B, H)."""

    def spec(outputs, valid_lens):
        H = outputs.shape[2] // 2
        return torch.stack(
            [
                torch.stack([outputs[b, 0, H + n] for n in range(H)])
                for b in range(len(outputs))
            ]
        )

    def half(outputs, number):
        return outputs.chunk(2, dim=-1)[number]

    def last(outputs, valid_lens):
        return outputs[torch.arange(len(outputs)), valid_lens - 1]

    def case(seed, lens, S, H):
        outputs, lens = _draw(seed, (len(lens), S, 2 * H))[0], torch.tensor(lens)
        return outputs * _real_positions(lens, S).unsqueeze(2), lens

    cases = [
        case(0, [5, 2, 3], 5, 4),
        case(1, [2, 5, 4], 5, 4),
        case(2, [4, 2], 6, 3),
        case(3, [3], 3, 2),
        case(4, [4, 2, 3, 2], 4, 2),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda outputs, lens: half(outputs[:, -1], 1),
                "after a shorter sentence stands padding, where the state is 0. And where "
                "there is none, this state has read one word. At which word has the backward "
                "network read all of them?",
            ),
            (
                lambda outputs, lens: half(last(outputs, lens), 1),
                "at the last word, the backward network has read one word. At which word has "
                "it read all of them?",
            ),
            (
                lambda outputs, lens: half(outputs[:, 0], 0),
                "this is the forward half. At the first word, it has read one word.",
            ),
            (
                lambda outputs, lens: half(last(outputs, lens), 0),
                "this is the forward network's last state. It has read everything, too, but "
                "the paper takes the backward one.",
            ),
            (
                lambda outputs, lens: half(outputs[:, -1], 0),
                "this is the forward half, at the last position: after a shorter sentence "
                "stands padding.",
            ),
            (
                lambda outputs, lens: outputs[:, 0],
                "these are both halves. The backward half alone is asked for.",
            ),
            (
                lambda outputs, lens: last(outputs, lens),
                "these are both halves, and the last word. At which word has the backward "
                "network read everything?",
            ),
            (
                lambda outputs, lens: half(outputs[0], 1),
                "this is the first sentence of the batch: axis 0 is the batch.",
            ),
            (
                lambda outputs, lens: outputs[:, 0, 1::2],
                "every second number. The halves stand one after the other: forward, "
                "backward.",
            ),
            (
                lambda outputs, lens: half(outputs[:, 1], 1),
                "this is the second word. Counting begins at 0.",
            ),
            (
                lambda outputs, lens: half(outputs.sum(1) / lens.unsqueeze(1), 1),
                "this is the mean over the words.",
            ),
        ],
        gradients=True,
    )


def best_hypothesis(function):
    """Log-probabilities, lengths, alpha -> the number of the best hypothesis."""

    def spec(log_probs, lengths, alpha):
        best = 0
        for n in range(len(log_probs)):
            score = log_probs[n] / lengths[n] ** alpha
            if score > log_probs[best] / lengths[best] ** alpha:
                best = n
        return best

    def highest(score):
        def wrong(log_probs, lengths, alpha):
            pairs = zip(log_probs, lengths, strict=True)
            scores = [score(p, n, alpha) for p, n in pairs]
            return scores.index(max(scores))

        return wrong

    cases = [
        ([-4.0, -5.0, -9.0], [2, 4, 9], 1.0),
        ([-6.0, -4.0, -9.5], [8, 3, 9], 1.0),
        ([-4.0, -5.0, -9.0], [2, 4, 9], 0.0),
        ([-4.0, -6.0], [4, 9], 0.5),
        ([-3.0, -3.4, -8.0], [5, 7, 9], 0.7),
        ([-2.0, -6.0], [1, 4], 0.3),
        ([-2.0, -6.0, -7.0], [1, 4, 20], 0.9),
        ([-7.0], [3], 1.0),
        ([-4.0, -4.1], [10, 2], 1.0),
        ([-3.0, -5.0], [2, 1], 1.0),
        ([-4.0, -3.2], [1, 2], 1.0),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                highest(lambda p, n, alpha: p),
                "the lengths are not used: probability alone favours the short.",
            ),
            (
                highest(lambda p, n, alpha: p / n),
                "for every alpha the answer is the same, the one for alpha = 1.",
            ),
            (
                highest(lambda p, n, alpha: p * n**alpha),
                "multiplied by the length, which punishes long hypotheses twice.",
            ),
            (
                highest(lambda p, n, alpha: -p / n**alpha),
                "this is the worst one: log-probabilities are negative, and the largest is "
                "best.",
            ),
            (
                highest(lambda p, n, alpha: p.__abs__() / n**alpha),
                "this is the worst one: log-probabilities are negative, and the largest is "
                "best.",
            ),
            (
                highest(lambda p, n, alpha: p / (n * alpha) if alpha else p),
                "length times alpha: alpha is an exponent. As a factor it changes no order.",
            ),
            (
                highest(lambda p, n, alpha: p - alpha * n),
                "the length is subtracted. It divides, raised to alpha.",
            ),
            (
                highest(lambda p, n, alpha: n),
                "the longest wins: the probabilities are not used.",
            ),
            (
                highest(lambda p, n, alpha: -n),
                "the shortest wins: the probabilities are not used.",
            ),
            (
                highest(lambda p, n, alpha: math.exp(p) / n**alpha),
                "a probability is divided where its logarithm belongs: take no exp.",
            ),
            (
                lambda log_probs, lengths, alpha: spec(log_probs, lengths, alpha) + 1,
                "counted from 1. Numbers begin at 0.",
            ),
            (
                lambda log_probs, lengths, alpha: max(
                    p / n**alpha for p, n in zip(log_probs, lengths, strict=True)
                ),
                "this is the best score. The number of the hypothesis is asked for.",
            ),
        ],
    )


# --- 10 Real translation ---------------------------------------------------------


def smoothed_loss(function):
    """Scores (B, V), right words (B,), a share -> mean nats with label smoothing.

    The target gives 1 - share to the right word, and share to all V words alike.
    """

    def spec(scores, words, share):
        B, V = scores.shape
        total = 0.0
        for b in range(B):
            exps = scores[b].exp()
            for v in range(V):
                wanted = share / V + (1 - share if v == words[b] else 0)
                total = total - wanted * (exps[v] / exps.sum()).log()
        return total / B

    def parts(scores, words, log=None):
        """Of each row: the right word's loss, the mean over words, the sum."""
        losses = -scores.log_softmax(-1) if log is None else -log
        right = losses.gather(1, words.unsqueeze(1)).squeeze(1)
        return right, losses.mean(1), losses.sum(1)

    def mixed(mix):
        """A mistake in how the parts are put together."""
        return lambda scores, words, share: mix(
            *parts(scores, words), share, scores.shape[1]
        ).mean()

    def of_others(right, mean, total, share, V):
        return (1 - share) * right + share * (total - right) / (V - 1)

    def short_of_one(right, mean, total, share, V):
        return (1 - share) * right + share / V * (total - right)

    def with_log(log):
        return lambda scores, words, share: (
            lambda right, mean, _: ((1 - share) * right + share * mean).mean()
        )(*parts(scores, words, log(scores)))

    def blurred(scores, words, share):
        p = scores.softmax(-1).gather(1, words.unsqueeze(1))
        return -((1 - share) * p + share / scores.shape[1]).log().mean()

    cases = [
        (*_draw(seed, (len(words), V)), torch.tensor(words), share)
        for seed, words, V, share in (
            (0, [2, 0, 5], 6, 0.1),
            (1, [1, 1, 4], 6, 0.3),
            (2, [3], 4, 0.2),
            (3, [0, 2, 1], 3, 0.1),
            (4, [7, 2], 9, 0.0),
        )
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                mixed(lambda right, mean, total, share, V: right),
                "this is the plain cross-entropy: the share isn't used.",
            ),
            (
                mixed(of_others),
                "the share goes to the other words alone. It is for all V words: the right "
                "one has its part of it, too.",
            ),
            (
                mixed(short_of_one),
                "the target sums to less than 1. The right word gets 1 - share, and on top of "
                "it share / V like every other.",
            ),
            (
                mixed(
                    lambda right, mean, total, share, V: (
                        (1 - share) * right + share * total
                    )
                ),
                "each word gets the whole share. It is divided among V words.",
            ),
            (
                mixed(lambda right, mean, total, share, V: right + share * mean),
                "what the other words get has to come from the right one: 1 - share.",
            ),
            (
                mixed(
                    lambda right, mean, total, share, V: (
                        share * right + (1 - share) * mean
                    )
                ),
                "turned round: the right word gets the share, and the others the rest.",
            ),
            (
                mixed(lambda right, mean, total, share, V: (1 - share) * right),
                "the words that are not right get nothing. Their part of the loss is what "
                "holds the model back.",
            ),
            (
                mixed(
                    lambda right, mean, total, share, V: (
                        ((1 - share) * right + share * mean) / V
                    )
                ),
                "divided by V as well: the mean is over the rows. Of a row, take the sum.",
            ),
            (
                lambda scores, words, share: spec(scores, words, share) * len(words),
                "this is the sum over the rows. Their mean is asked for.",
            ),
            (
                lambda scores, words, share: -spec(scores, words, share),
                "the sign is missing: a loss is minus the log-probability.",
            ),
            (
                with_log(lambda scores: scores),
                "log_softmax is missing: scores are no log-probabilities yet.",
            ),
            (
                with_log(lambda scores: scores.softmax(-1)),
                "the logarithm is missing: these are probabilities.",
            ),
            (
                with_log(lambda scores: scores.softmax(-1).log_softmax(-1)),
                "softmax is applied twice.",
            ),
            (
                with_log(lambda scores: scores.log_softmax(0)),
                "softmax over the rows. The V words of a row share the probability: dim=-1.",
            ),
            (
                blurred,
                "the model's probabilities are smoothed. Smooth the target: it is "
                "what the model is measured by.",
            ),
        ],
        gradients=True,
    )


def best_cut(function):
    """A word, and pieces with their probabilities -> its most probable pieces."""

    def search(word, pieces, gain, start=0.0):
        """The cut with the largest sum of gains, from left to right."""
        best = [(start, [])] + [None] * len(word)
        for end in range(1, len(word) + 1):
            for begin in range(end):
                piece = word[begin:end]
                if piece in pieces and best[begin]:
                    value = best[begin][0] + gain(pieces[piece])
                    if best[end] is None or value > best[end][0]:
                        best[end] = value, [*best[begin][1], piece]
        return best[-1][1]

    def spec(word, pieces):
        return search(word, pieces, math.log)

    def greedily(choose):
        """From left to right, without looking ahead; a dead end leaves a rest."""

        def cut(word, pieces):
            found = []
            while starts := [p for p in pieces if word.startswith(p)]:
                found.append(choose(starts, pieces))
                word = word.removeprefix(found[-1])
            return found

        return cut

    def from_the_end(word, pieces):
        turned = {piece[::-1]: p for piece, p in pieces.items()}
        found = greedily(lambda some, _: max(some, key=len))(word[::-1], turned)
        return [piece[::-1] for piece in reversed(found)]

    def last_only(word, pieces):
        """The best last piece at each place, whatever came before."""
        found = []
        while ends := [p for p in pieces if word.endswith(p)]:
            found.append(max(ends, key=pieces.get))
            word = word.removesuffix(found[-1])
        return found[::-1]

    snow = {"schnee": 0.05, "ball": 0.04, "schneeball": 0.001, "s": 0.1, "chnee": 0.001}
    common = {
        "schnee": 0.05,
        "ball": 0.04,
        "schneeball": 0.003,
        "s": 0.1,
        "chnee": 0.001,
    }
    bench = {
        "garten": 0.05,
        "gartenb": 0.2,
        "bank": 0.03,
        "b": 0.1,
        "a": 0.02,
        "n": 0.1,
        "k": 0.001,
    }
    letters = {"a": 0.3, "aa": 0.08, "aaa": 0.05, "ab": 0.04, "b": 0.01}
    unlikely = {
        "auto": 0.002,
        "autobahn": 0.00001,
        "bahn": 0.004,
        "a": 0.05,
        "u": 0.05,
        "t": 0.05,
        "o": 0.05,
        "to": 0.3,
        "au": 0.2,
    }
    many = {
        "a": 0.25,
        "abc": 0.01,
        "abcd": 0.01,
        "b": 0.1,
        "c": 0.02,
        "cd": 0.1,
        "cdef": 0.005,
        "def": 0.01,
        "e": 0.06,
        "ef": 0.1,
        "f": 0.06,
    }
    cases = [
        ("schneeball", snow),
        ("abcdef", many),
        ("schneeball", common),
        ("gartenbank", bench),
        ("autobahn", unlikely),
        ("a" * 40 + "b", letters),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                greedily(lambda some, _: max(some, key=len)),
                "the longest piece is taken each time, from the left. What is left then may "
                "only have improbable pieces.",
            ),
            (
                from_the_end,
                "the longest piece is taken each time, from the right. What is "
                "left then may only have improbable pieces.",
            ),
            (
                greedily(lambda some, _: min(some, key=len)),
                "the shortest piece is taken each time.",
            ),
            (
                greedily(lambda some, pieces: max(some, key=pieces.get)),
                "the most probable next piece is taken each time, without looking ahead.",
            ),
            (
                last_only,
                "the most probable last piece is taken, whatever the rest costs. "
                "Its probability times that of the best way up to it counts.",
            ),
            (
                lambda word, pieces: search(word, pieces, lambda p: p),
                "probabilities are summed. They are multiplied: more pieces are less "
                "probable, not more.",
            ),
            (
                lambda word, pieces: search(word, pieces, lambda p: -math.log(p)),
                "this is the least probable way.",
            ),
            (
                lambda word, pieces: search(word, pieces, lambda p: -1),
                "this is the way with the fewest pieces, whatever their probabilities.",
            ),
            (
                lambda word, pieces: search(word, pieces, lambda p: 1),
                "this is the way with the most pieces, whatever their probabilities.",
            ),
            (
                lambda word, pieces: spec(word, pieces)[::-1],
                "the pieces stand in the reverse order. Did you go back from the end?",
            ),
            (
                lambda word, pieces: spec(word, pieces)[:-1],
                "the last piece is missing.",
            ),
            (
                lambda word, pieces: spec(word, pieces)[1:],
                "the first piece is missing.",
            ),
            (
                lambda word, pieces: "".join(spec(word, pieces)),
                "the pieces are joined to the word again. A list of them is asked for.",
            ),
            (
                lambda word, pieces: " ".join(spec(word, pieces)),
                "this is one text. A list of pieces is asked for.",
            ),
            (
                lambda word, pieces: math.prod(map(pieces.get, spec(word, pieces))),
                "this is the probability of the best way. The way itself is asked for.",
            ),
            (
                lambda word, pieces: [word] if word in pieces else spec(word, pieces),
                "the word itself is taken where it is a piece. Its parts can be more "
                "probable.",
            ),
        ],
    )


def perplexity_a_word(function):
    """Losses of N sentences (N,) in nats, their pieces (N,) and words (N,) -> one.

    A sentence's loss is the sum over its pieces.
    """

    def spec(nats, pieces, words):
        total, number = 0.0, 0
        for n in range(len(nats)):
            total, number = total + nats[n], number + words[n].item()
        return (total / number).exp()

    def case(seed, pieces, words):
        nats = 2 * torch.tensor(pieces) * (0.5 + _draw(seed, (len(pieces),))[0].abs())
        return nats, torch.tensor(pieces), torch.tensor(words)

    cases = [
        case(0, [9, 4, 6], [7, 4, 3]),
        case(1, [5, 7, 12], [5, 5, 8]),
        case(2, [3], [2]),
        case(3, [10, 3, 4, 8], [9, 2, 4, 5]),
        case(4, [6, 6], [6, 3]),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda nats, pieces, words: (nats.sum() / pieces.sum()).exp(),
                "this is the perplexity a piece. Pieces of another vocabulary are of another "
                "length: only words can be compared.",
            ),
            (
                lambda nats, pieces, words: (nats / pieces).mean().exp(),
                "this is the mean of the sentences' means over their pieces. Sum all nats "
                "first, then divide once, by the words.",
            ),
            (
                lambda nats, pieces, words: (nats / words).mean().exp(),
                "this is the mean of the sentences' means: a word of a short sentence counts "
                "more. Sum all nats first, then divide once.",
            ),
            (
                lambda nats, pieces, words: (nats / words).exp().mean(),
                "this is the mean of the sentences' perplexities: one hard sentence "
                "outweighs all others. Take the mean before exp.",
            ),
            (
                lambda nats, pieces, words: (nats / pieces).exp().mean(),
                "this is the mean of the sentences' perplexities a piece. Take the mean over "
                "all words before exp.",
            ),
            (
                lambda nats, pieces, words: (
                    (nats.sum() / pieces.sum()).exp() * pieces.sum() / words.sum()
                ),
                "the perplexity a piece times the pieces a word. It is the nats that grow by "
                "that factor; exp comes after.",
            ),
            (
                lambda nats, pieces, words: nats.sum() / words.sum(),
                "these are nats a word. exp makes the perplexity of them.",
            ),
            (
                lambda nats, pieces, words: nats.sum() / pieces.sum(),
                "these are nats a piece.",
            ),
            (
                lambda nats, pieces, words: 2 ** (nats.sum() / words.sum()),
                "2 to the power of nats: that is for bits. Of nats, take exp.",
            ),
            (
                lambda nats, pieces, words: (-nats.sum() / words.sum()).exp(),
                "this is below 1: the mean probability of a word. The perplexity is 1 over "
                "it.",
            ),
            (
                lambda nats, pieces, words: nats.mean().exp(),
                "this is the perplexity of a sentence, not of a word.",
            ),
            (
                lambda nats, pieces, words: nats.sum().exp(),
                "nats are summed, but not divided by the number of words.",
            ),
            (
                lambda nats, pieces, words: (
                    nats.sum() / (words.sum() + len(words))
                ).exp(),
                "one more for each sentence: the numbers count <eos> already.",
            ),
            (
                lambda nats, pieces, words: (
                    nats.sum() * words.sum() / pieces.sum() / pieces.sum()
                ).exp(),
                "turned round: there are more pieces than words, so a word has more nats "
                "than a piece.",
            ),
        ],
        gradients=True,
    )


# --- 11 Beyond translation -------------------------------------------------------


def two_facts(function):
    """A thing and a story's events -> numbers of the two that say where it is, or None.

    The first says who has it, the second where that person is.
    """
    from utils.tasks import GOES, Event  # here, since it loads rouge-score

    def spec(thing, events):
        holder, held, found = None, None, None
        for n, event in enumerate(events):
            if event.what == thing:
                holder, held = event.who if event.to is None else event.to, n
        for n, event in enumerate(events):
            if holder is not None and event.who == holder and event.verb in GOES:
                found = n
        return None if found is None else (held, found)

    def moves_itself(event, holder):
        return event.who == holder and event.verb in GOES

    def wrong(held=-1, found=-1, receiver=True, goes=moves_itself, part=None):
        """held, found: which of the events in question, from the first or the last."""

        def facts(thing, events):
            first = [n for n, e in enumerate(events) if e.what == thing]
            if not first:
                return None
            fact = events[first[held]]
            holder = fact.to if receiver and fact.to else fact.who
            moves = [
                n
                for n, e in enumerate(events)
                if goes(e, holder) and (part is None or part(n, first[held]))
            ]
            return (first[held], moves[found]) if moves else None

        return facts

    def in_words(fact, move):
        return fact.to or fact.who, move.what

    def changed(change):
        """The right result, changed where there is one."""

        def facts(thing, events):
            right = spec(thing, events)
            return right and change(events, *right)

        return facts

    def raising(thing, events):
        return spec(thing, events)[0:2]

    def half(thing, events):
        held = [n for n, e in enumerate(events) if e.what == thing]
        right = spec(thing, events)
        return right or (held[-1] if held else None, None)

    def story(thing, text):
        return thing, [Event(*event.split()) for event in text.split(", ")]

    cases = [
        story(
            "key",
            "baker goes market, nurse takes key, nurse runs school, "
            "baker walks kitchen, nurse sends key baker",
        ),
        story("key", "nurse takes key, nurse runs school, nurse goes garden"),
        story(
            "hat",
            "nurse goes garden, baker takes hat, nurse takes key, baker sends "
            "hat nurse, nurse sends key baker, baker walks market",
        ),
        story("key", "baker goes school, nurse takes key"),
        story("hat", "baker goes school, baker takes key"),
        story(
            "key",
            "baker takes key, baker sends key nurse, nurse sends key baker, "
            "nurse goes market, baker goes school, baker takes hat, "
            "painter goes church",
        ),
    ]
    first = "the first event that speaks of {}. Things change: the last one counts."
    _examine(
        function,
        spec,
        cases,
        [
            (wrong(held=0, found=0), first.format("the thing, and of the person")),
            (wrong(held=0), first.format("the thing")),
            (wrong(found=0), first.format("the person's place")),
            (
                wrong(receiver=False),
                "after `sends`, the sender no longer has it. Who does? Look at event.to.",
            ),
            (
                wrong(goes=lambda e, holder: e.who == holder),
                "the person's last event is taken, whatever it is. Who takes or sends a thing "
                "stays where he is: look at the verb.",
            ),
            (
                wrong(goes=lambda e, holder: e.verb in GOES),
                "the last place that anybody goes to. It must be the one who has the thing.",
            ),
            (
                wrong(goes=lambda e, holder: holder in (e.who, e.to)),
                "who is sent a thing doesn't move.",
            ),
            (
                wrong(goes=lambda e, holder: e.who == holder and e.verb == "goes"),
                "only `goes` is read. There are three verbs of going, in GOES.",
            ),
            (
                wrong(part=lambda n, held: n < held),
                "only events before the thing came are read. Its holder may go on with it.",
            ),
            (
                wrong(part=lambda n, held: n > held),
                "only events after the thing came are read. Its holder may have been there "
                "before.",
            ),
            (
                changed(lambda events, n, m: (m, n)),
                "the two are exchanged: who has it comes first, then the place.",
            ),
            (
                changed(lambda events, n, m: (n + 1, m + 1)),
                "counted from 1. Numbers begin at 0.",
            ),
            (
                changed(lambda events, n, m: in_words(events[n], events[m])),
                "these are the words. The numbers of the events are asked for.",
            ),
            (
                changed(lambda events, n, m: m),
                "this is the second event alone. The first says who has the thing.",
            ),
            (
                half,
                "half an answer: where the story doesn't say, None alone is asked for.",
            ),
            (raising, "it raises where the story doesn't say: return None there."),
        ],
    )


def forward_moves(function):
    """Weights (T, S) -> the share of moves that go forward, 0 if nothing moves."""

    def spec(weights):
        places = []
        for row in weights.tolist():
            best = 0
            for j in range(len(row)):
                if row[j] > row[best]:
                    best = j
            places.append(best)
        forward = moves = 0
        for i in range(1, len(places)):
            forward += places[i] > places[i - 1]
            moves += places[i] != places[i - 1]
        return forward / moves if moves else 0.0

    def steps(weights, axis=1):
        places = weights.argmax(axis)
        return places[1:] - places[:-1]

    def share(hits, of, empty=0.0, axis=1):
        """Steps with `hits` among those with `of`; empty: if there are none."""

        def wrong(weights):
            s = steps(weights, axis)
            number = int(of(s).sum())
            return int(hits(s).sum()) / number if number else empty

        return wrong

    def moved(s):
        return s != 0

    def every(s):
        return s == s

    def raising(weights):
        s = steps(weights)
        return int((s > 0).sum()) / int(moved(s).sum())

    def look(seed, places, S):
        weights = _draw(seed, (len(places), S))[0].softmax(-1)
        weights[torch.arange(len(places)), torch.tensor(places)] += 1
        return (weights / 2,)

    standing = (
        "a step that stands still is counted as forward, so that a model that "
        "never moves looks monotone."
    )
    cases = [
        look(0, [0, 1, 1, 3, 2], 6),
        look(1, [4, 0, 2, 2, 5], 6),
        look(2, [2, 2, 2, 2], 5),
        look(3, [3], 4),
        look(4, [0, 0, 1, 2, 1, 3, 0], 4),
        look(5, [0, 2, 1, 3], 4),
        look(6, [3, 2, 0, 0, 0], 7),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (share(lambda s: s >= 0, every), standing),
            (share(lambda s: s >= 0, every, math.nan), standing),
            (share(lambda s: s >= 0, every, 1.0), standing),
            (
                share(lambda s: s > 0, every),
                "what stands still is no step forward, and no step back either: leave it out "
                "below the line, too.",
            ),
            (
                share(lambda s: s > 0, every, math.nan),
                "what stands still is no step forward, and no step back either: leave it out "
                "below the line, too.",
            ),
            (
                share(lambda s: s > 0, moved, 1.0),
                "where nothing moves, nothing has been shown: 0 is asked for.",
            ),
            (
                share(lambda s: s > 0, moved, math.nan),
                "where nothing moves, there is no share (0/0): 0 is asked for.",
            ),
            (share(lambda s: s < 0, moved), "these are the moves backward."),
            (
                share(lambda s: s == 1, moved),
                "only moves to the next word are counted. A longer one is forward, too.",
            ),
            (
                share(lambda s: s > 0, moved, axis=0),
                "you went through the columns. A row is a step: which axis does argmax run "
                "over?",
            ),
            (
                lambda weights: (
                    steps(weights).clamp(min=0).sum()
                    / steps(weights).abs().sum().clamp(min=1)
                ),
                "a long move counts more than a short one. Count moves, whatever their "
                "length.",
            ),
            (
                lambda weights: int((steps(weights) > 0).sum()) / len(weights),
                "divided by the target words. Between T words there are T - 1 steps, and not "
                "all of them move.",
            ),
            (
                lambda weights: int((steps(weights) > 0).sum()),
                "this is the number of moves forward. Their share is asked for.",
            ),
            (
                lambda weights: spec(weights) * 100,
                "this is in percent: 0 to 1 is asked for.",
            ),
            (raising, "it divides by 0 where nothing moves: 0 is asked for there."),
        ],
    )


def rouge_1(function):
    """Words of a headline and of a reference -> their ROUGE-1 F-measure, 0 to 1."""

    def spec(hypothesis, reference):
        common, left = 0, list(reference)
        for word in hypothesis:
            for i in range(len(left)):
                if left[i] == word:
                    del left[i]
                    common += 1
                    break
        return 2 * common / (len(hypothesis) + len(reference))

    def common(h, r):
        return sum(min(h.count(word), r.count(word)) for word in set(h))

    def parts(h, r, number=common):
        """Precision and recall."""
        number = number(h, r)
        return number / len(h) if h else 0.0, number / len(r)

    def measure(p, r):
        return 2 * p * r / (p + r) if p + r else 0.0

    def counted(number):
        return lambda h, r: measure(*parts(h, r, number))

    def raising(h, r):
        p, q = common(h, r) / len(h), common(h, r) / len(r)
        return 2 * p * q / (p + q)

    cases = [
        (h.split(), r.split())
        for h, r in (
            ("baker sells boat at at market", "baker sells boat at at hill yesterday"),
            ("the the the", "the cat"),
            ("boat sells baker", "baker sells boat"),
            ("", "nurse paints"),
            ("nurse paints", "the old box"),
            ("the cat", "the the cat the"),
            ("a new red box", "a new red box"),
            ("nurse sells a a box", "a box of a nurse"),
        )
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                counted(lambda h, r: len(set(h) & set(r))),
                "a word that stands twice in both counts twice: a set forgets how often.",
            ),
            (
                lambda h, r: 2 * len(set(h) & set(r)) / len(set(h) | set(r) | {0}),
                "these are sets: a word that stands twice in both counts twice.",
            ),
            (
                lambda h, r: 2 * len(set(h) & set(r)) / (len(set(h)) + len(set(r))),
                "these are sets: a word that stands twice in both counts twice.",
            ),
            (
                lambda h, r: len(set(h) & set(r)) / len(set(h) | set(r)),
                "these are sets, and their union is below the line. Count words.",
            ),
            (
                counted(lambda h, r: sum(word in r for word in h)),
                "a word of the headline is counted as often as it is repeated. The reference "
                "has it only so often: take each of its words once.",
            ),
            (
                counted(lambda h, r: sum(word in h for word in r)),
                "a word of the reference is counted as often as it stands there, though the "
                "headline has it less often.",
            ),
            (
                lambda h, r: parts(h, r)[0],
                "this is the precision alone: what of the "
                "headline is right. Who writes one safe word gets 1.",
            ),
            (
                lambda h, r: parts(h, r)[1],
                "this is the recall alone: what of the reference "
                "was found. Who writes every word there is gets 1.",
            ),
            (
                lambda h, r: parts(h, r, lambda h, r: sum(word in h for word in r))[1],
                "this is the recall alone; and a word of the reference is counted as often as "
                "it stands there, though the headline has it less often.",
            ),
            (
                lambda h, r: common(h, r) / max(len(h), len(r)),
                "divided by the longer of the two. F is 2pr / (p + r).",
            ),
            (
                lambda h, r: sum(parts(h, r)) / 2,
                "the plain mean of precision and recall. F is the harmonic one, 2pr / (p + "
                "r), nearer to the smaller.",
            ),
            (
                lambda h, r: math.prod(parts(h, r)),
                "precision times recall. F is 2pr / (p + r).",
            ),
            (
                lambda h, r: spec(h, r) / 2,
                "the 2 of 2pr / (p + r) is missing: the same words give 1/2.",
            ),
            (lambda h, r: 100 * spec(h, r), "this is in percent: 0 to 1 is asked for."),
            (
                counted(lambda h, r: sum(a == b for a, b in zip(h, r, strict=False))),
                "word by word at the same place. ROUGE-1 doesn't look at the order.",
            ),
            (
                lambda h, r: spec(
                    list(zip(h, h[1:], strict=False)), list(zip(r, r[1:], strict=False))
                ),
                "these are pairs of neighbours, ROUGE-2.",
            ),
            (lambda h, r: float(h == r), "all or nothing: this is the exact match."),
            (lambda h, r: common(h, r), "this is the number of words in common."),
            (
                raising,
                "it divides by 0 where no word is in common: 0 is asked for there.",
            ),
            (
                lambda h, r: spec(h, r) / bool(h),
                "it divides by 0 for an empty headline: 0 is asked for there.",
            ),
        ],
    )


# --- 12 Towards Transformers -----------------------------------------------------


def split_heads(function):
    """x (B, K, H) and N heads -> (B N, K, H / N): every head a row of the batch."""

    def spec(x, num_heads):
        D, rows = x.shape[2] // num_heads, []
        for b in range(len(x)):
            for n in range(num_heads):
                rows.append(
                    torch.stack(
                        [
                            torch.stack([x[b, k, n * D + d] for d in range(D)])
                            for k in range(x.shape[1])
                        ]
                    )
                )
        return torch.stack(rows)

    def dealt(x, N):
        return x.unflatten(2, (N, -1))  # (B, K, N, D)

    def shaped(x, N):
        return len(x) * N, x.shape[1], x.shape[2] // N

    shapes = [
        (2, 3, 20, 4),
        (2, 3, 20, 4),
        (3, 5, 8, 2),
        (1, 2, 6, 3),
        (4, 4, 16, 4),
        (2, 5, 6, 1),
    ]
    cases = [(*_draw(n, shape[:3]), shape[3]) for n, shape in enumerate(shapes)]
    _examine(
        function,
        spec,
        cases,
        [
            (
                lambda x, N: x.reshape(shaped(x, N)),
                "the shape is right, and the numbers stand elsewhere: `view` keeps their "
                "order in memory, where a word's H units stand together. So a head of the "
                "first word ends up in another word's row.",
            ),
            (
                lambda x, N: x.transpose(1, 2).reshape(shaped(x, N)),
                "words and units are exchanged, but for a view their order in memory counts. "
                "First give the heads an axis of their own, then move that axis.",
            ),
            (
                lambda x, N: x.unflatten(2, (-1, N)).permute(0, 3, 1, 2).flatten(0, 1),
                "each head gets every N-th unit. It should get D neighbours: which of N and D "
                "comes first in the view?",
            ),
            (
                lambda x, N: torch.cat(x.chunk(N, dim=2)),
                "the first head of all sentences comes first. A sentence's heads must stand "
                "together: its length is repeated in that order.",
            ),
            (
                lambda x, N: x.unflatten(2, (-1, N)).transpose(1, 2).flatten(0, 1),
                "there are D heads of size N: exchanged. `torch.split` takes the size of a "
                "part, and chunk the number of parts.",
            ),
            (
                lambda x, N: x.reshape(len(x), N, x.shape[1], -1),
                "`view` keeps the order in memory, where a word's H units stand together; and "
                "heads should be rows of the batch.",
            ),
            (
                lambda x, N: dealt(x, N).transpose(1, 2),
                "heads have an axis of their own. They should be rows of the batch.",
            ),
            (
                lambda x, N: dealt(x, N),
                "heads have an axis of their own, and behind the words. They should be rows "
                "of the batch.",
            ),
            (
                lambda x, N: dealt(x, N).flatten(0, 1),
                "words have become rows of the batch: move the heads before the words first.",
            ),
            (
                lambda x, N: dealt(x, N).transpose(1, 2).flatten(0, 1).transpose(1, 2),
                "words and units are exchanged in every head.",
            ),
            (
                lambda x, N: dealt(x, N).permute(0, 2, 3, 1).reshape(shaped(x, N)),
                "one axis is moved too far: heads before words, and units last.",
            ),
            (
                lambda x, N: dealt(x, N).transpose(1, 2).flip(1).flatten(0, 1),
                "the heads stand in the reverse order.",
            ),
            (lambda x, N: dealt(x, N)[:, :, 0], "this is the first head alone."),
            (
                lambda x, N: x.repeat_interleave(N, dim=0),
                "every head has all H units: they should share them out.",
            ),
        ],
        gradients=True,
    )


def causal_attention(function):
    """Queries, keys (B, T, H), values (B, T, D) -> contexts (B, T, D), no future."""

    def spec(queries, keys, values):
        B, T, H = queries.shape
        contexts = []
        for b in range(B):
            for t in range(T):
                scores = [
                    sum(queries[b, t, h] * keys[b, j, h] for h in range(H))
                    / math.sqrt(H)
                    for j in range(t + 1)
                ]
                top = max(score.item() for score in scores)
                exps = [(score - top).exp() for score in scores]
                contexts.append(
                    sum(e * values[b, j] for j, e in enumerate(exps)) / sum(exps)
                )
        return torch.stack(contexts).view(B, T, -1)

    def masked(last=0, fill=-math.inf, scale=None, axis=-1, after=None, late=False):
        """last: how many words ahead may be seen; after: what becomes of the weights"""

        def wrong(q, k, v):
            scores = q @ k.transpose(1, 2) / (scale or math.sqrt)(q.shape[2])
            seen = torch.ones(scores.shape[1:], dtype=torch.bool).tril(last)
            if after is None:
                a = scores.masked_fill(~seen, fill).softmax(axis)
                return (a / math.sqrt(q.shape[2]) if late else a) @ v
            return after(scores.softmax(axis) * seen) @ v

        return wrong

    def ones(q):
        return torch.ones(q.shape[1], q.shape[1], dtype=torch.bool)

    def turned(q, k, v, diagonal=0):
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
        return scores.masked_fill(~ones(q).triu(diagonal), -math.inf).softmax(-1) @ v

    def added(q, k, v):
        scores = q @ k.transpose(1, 2) / math.sqrt(q.shape[2])
        return (scores + ones(q).tril()).softmax(-1) @ v

    def by_length(q, k, v):
        return spec(q * math.sqrt(q.shape[2] / q.shape[1]), k, v)

    def weights(q, k, v):
        return masked()(q, k, torch.eye(q.shape[1]).expand(len(q), -1, -1))

    def mean(q, k, v):
        seen = ones(q).tril().float()
        return seen / seen.sum(1, keepdim=True) @ v

    def tempting(seed, *shapes):
        """The last word's key fits every query, by far."""
        q, k, v = _draw(seed, *shapes)
        q[..., 0], k[:, -1, 0] = 3, 300
        return q, k, v

    shapes = [(2, 3, 4, 5), (2, 3, 4, 5), (3, 5, 2, 1), (1, 4, 6, 3), (4, 4, 4, 4)]
    cases = [
        _draw(n, (B, T, H), (B, T, H), (B, T, D))
        for n, (B, T, H, D) in enumerate(shapes)
    ]
    cases.append(tempting(5, (1, 4, 3), (1, 4, 3), (1, 4, 2)))
    itself = "the first word sees nothing, not even itself. A word may see itself."
    _examine(
        function,
        spec,
        cases,
        [
            (
                masked(after=lambda a: a),
                "a row's weights no longer sum to 1, and the future still counts. The first "
                "word sees itself alone: by what did the softmax divide its weight?",
            ),
            (
                masked(after=lambda a: a / a.sum(-1, keepdim=True)),
                "the weights sum to 1 again, but the future leaks in: where the score of a "
                "word to come is large, the weights before it round to 0, and 0/0 is left.",
            ),
            (
                masked(after=lambda a: a / (a.sum(-1, keepdim=True) + 1e-9)),
                "the weights sum to 1 again, but the future leaks in: where the score of a "
                "word to come is large, the weights before it round to 0.",
            ),
            (
                masked(after=lambda a: a.softmax(-1)),
                "softmax is applied twice, and exp(0) is 1: hidden words get weight.",
            ),
            (
                masked(fill=0),
                "hidden scores are set to 0, and exp(0) is 1: the future "
                "still gets weight.",
            ),
            (
                masked(last=10**6),
                "as if there were no mask: every word sees the future.",
            ),
            (
                turned,
                "the mask is turned round: a word sees what follows, and not what "
                "came before.",
            ),
            (
                lambda q, k, v: turned(q, k, v, 1),
                "the mask is turned round: a word sees what follows, and nothing else.",
            ),
            (masked(last=-1), itself),
            (masked(last=-1, fill=-1e9), itself),
            (masked(last=1), "each word sees the next one, the very word to predict."),
            (
                added,
                "True and False were added to the scores, as 1 and 0. Hidden scores "
                "must become -inf.",
            ),
            (
                masked(scale=lambda H: 1),
                "not scaled: divide the scores by the root of H.",
            ),
            (
                masked(scale=lambda H: H),
                "divided by H. It is the root that keeps the scores' variance at 1.",
            ),
            (masked(scale=lambda H: H**-0.5), "multiplied by the root of H."),
            (
                masked(scale=lambda H: 1, late=True),
                "scaled after the softmax. Scale the scores.",
            ),
            (
                by_length,
                "scaled by the number of words. It is the size of a vector that "
                "counts.",
            ),
            (
                masked(axis=1),
                "normalised over the queries: each row of the weights must sum to 1.",
            ),
            (lambda q, k, v: spec(k, q, v), "queries and keys are exchanged."),
            (
                lambda q, k, v: spec(q, k, k),
                "the contexts are made of keys. Values are what is mixed.",
            ),
            (weights, "these are the weights. Contexts are asked for."),
            (mean, "all weights of a row are equal: the scores aren't used."),
        ],
        gradients=True,
    )


def mean_over_words(function):
    """P processes' gradients (P, N), words (P,) -> the gradient over all words (N,).

    A process's gradient is that of its own mean over words.
    """

    def spec(gradients, words):
        P, N = gradients.shape
        return torch.stack(
            [
                sum(gradients[p, n] * words[p] for p in range(P)) / sum(words.tolist())
                for n in range(N)
            ]
        )

    def weighed(weights):
        return lambda gradients, words: (
            weights(words.float()).unsqueeze(1) * gradients
        ).sum(0)

    def case(seed, words, N):
        return _draw(seed, (len(words), N))[0], torch.tensor(words)

    cases = [
        case(0, [7, 2], 3),
        case(1, [4, 9], 3),
        case(2, [1, 5, 3, 3], 2),
        case(3, [6], 4),
        case(4, [8, 1, 2], 3),
    ]
    _examine(
        function,
        spec,
        cases,
        [
            (
                weighed(lambda w: torch.ones_like(w) / len(w)),
                "the mean of means: a word counts more where there are few. Each process has "
                "to count as much as it has words.",
            ),
            (
                weighed(torch.ones_like),
                "the sum of the means: the step grows with the number of processes.",
            ),
            (
                weighed(lambda w: w),
                "this is the sum over all words. Divide by their number.",
            ),
            (
                weighed(lambda w: w / len(w)),
                "divided by the number of processes. The number of words is to be below the "
                "line.",
            ),
            (
                weighed(lambda w: w / w.sum() / len(w)),
                "divided once too often: the shares of the words sum to 1 already.",
            ),
            (
                weighed(lambda w: len(w) * w / w.sum()),
                "multiplied by the number of processes. ShareOfLoss does it, because a mean "
                "over the processes follows. Here, none does.",
            ),
            (
                weighed(lambda w: 1 / w),
                "divided by the words of each. Each gradient is a mean already.",
            ),
            (
                weighed(lambda w: 1 / w / len(w)),
                "divided by the words of each. Each gradient is a mean already.",
            ),
            (
                weighed(lambda w: torch.ones_like(w) / w.sum()),
                "the means are summed as if they were sums: multiply each by its own number "
                "of words first.",
            ),
            (
                weighed(lambda w: (1 / w) / (1 / w).sum()),
                "turned round: the fewer words, the more they count.",
            ),
            (
                weighed(lambda w: w.softmax(0)),
                "softmax is no share: 7 words of 9 are 7/9.",
            ),
            (weighed(lambda w: w / w.max()), "divided by the most words, not by all."),
            (
                weighed(lambda w: F.one_hot(w.argmax(), len(w)).float()),
                "this is the gradient of one process, the one with the most words.",
            ),
            (
                weighed(lambda w: w.div(w.sum(), rounding_mode="floor")),
                "`//` leaves nothing of a share below 1.",
            ),
            (
                lambda gradients, words: (gradients * words).sum(0) / words.sum(),
                "words belong to the rows, one number a process: words.unsqueeze(1).",
            ),
        ],
        gradients=True,
    )
