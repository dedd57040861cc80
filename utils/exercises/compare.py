"""Compares what came with what is right, and puts the difference into words."""

import inspect
import math
import os
import re
import textwrap
import traceback
from itertools import pairwise
from numbers import Integral, Number
from types import GeneratorType
from typing import NamedTuple

import numpy as np
import torch

UTILS = os.path.dirname(os.path.dirname(__file__))

# What PyTorch raises where sizes don't fit, and what it means.
ERRORS = {
    r"size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)": (
        "axes of sizes {} and {} meet. Axes are lined up from the last one, and only "
        "an axis of length 1 fits every size: unsqueeze, or an index with None."
    ),
    r"Sizes of tensors must match except in dimension": (
        "torch.cat doesn't broadcast: but for the axis along which they are joined, "
        "all sizes must be equal. unsqueeze and expand make them so."
    ),
    r"expanded size of the tensor \((\d+)\) must match the existing size \((\d+)\)": (
        "an axis of size {1} can't be expanded to {0}: only one of length 1 can."
    ),
    r"only (?:one element|integer) tensors.* can be converted": (
        "torch.tensor makes a tensor of numbers. torch.stack and torch.cat join "
        "tensors; and an index is one whole number."
    ),
    r"takes (?:from )?\d+.* positional arguments? but (\d+) (?:was|were) given": (
        "the check gives your function {} arguments. Leave its first line as it was."
    ),
    r"shapes cannot be multiplied \((\w+) and (\w+)\)": (
        "a product of matrices of {} and {}. The first must have as many columns as "
        "the second has rows: is one of them to be transposed?"
    ),
}


class Outcome(NamedTuple):
    """What a call returned or raised; and its arguments as it left them."""

    value: object = None
    error: BaseException | None = None
    arguments: tuple = ()


def same(came, right, by_words=False):
    """Whether a value, or an Outcome, is the right one: to rounding, NaN equals NaN."""
    if isinstance(right, Outcome):
        if came.error and right.error:
            alike = type(came.error) is type(right.error)
            return alike and (not by_words or str(came.error) == str(right.error))
        raised = came.error or right.error
        return not raised and same(came.value, right.value)
    if isinstance(right, tuple | list):
        alike = isinstance(came, tuple | list) and len(came) == len(right)
        return alike and all(map(same, came, right))
    if torch.is_tensor(right):
        return (
            torch.is_tensor(came)
            and came.shape == right.shape
            and came.is_floating_point() == right.is_floating_point()
            and (came.dtype == torch.bool) == (right.dtype == torch.bool)
            and not differs(came, right).any()
        )
    if isinstance(right, Number) and not isinstance(right, bool):
        number = came.item() if getattr(came, "ndim", None) == 0 else came
        if isinstance(right, int) and not isinstance(number, Integral):
            return False
        return isinstance(number, Number) and (
            math.isclose(number, right, rel_tol=1e-4, abs_tol=1e-5)
            or (math.isnan(number) and math.isnan(right))
        )
    return isinstance(came, type(right)) and came == right


def differs(a, b):
    """Where two tensors of one shape differ by more than rounding."""
    return ~torch.isclose(
        a.detach().double(), b.detach().double(), rtol=1e-4, atol=1e-5, equal_nan=True
    )


def wrapped(text):
    return textwrap.fill(text, 84, initial_indent="  ", subsequent_indent="  ")


def _first_part(value, right):
    """The first part that isn't right, of several results; its name."""
    several = isinstance(right, tuple) or (
        isinstance(right, list) and torch.is_tensor(right[0])
    )
    if several and isinstance(value, tuple | list) and len(value) == len(right):
        for n, (part, wanted) in enumerate(zip(value, right, strict=True), start=1):
            if not same(part, wanted):
                part, wanted, _ = _first_part(part, wanted)
                names = getattr(right, "_fields", ())
                place = names[n - 1].replace("_", " ") if names else f"part {n}"
                return part, wanted, f"  in {place} of what is returned"
    return value, right, ""


def wrong_kind(results, rights, first):
    """A cause that any exercise can have: a wrong type or shape; or None."""
    if error := results[first].error:
        for pattern, sentence in ERRORS.items():
            if found := re.search(pattern, str(error)):
                return sentence.format(*found.groups())
        return None  # what was raised says it
    value, right, place = _first_part(results[first].value, rights[first].value)
    if value is None and place:
        return (
            "a part of what is returned is None. A method such as append or extend "
            "changes its list, and returns None."
        )
    if value is None:
        return "nothing is returned. Is there a `return` at the end?"
    if torch.is_tensor(right) and not torch.is_tensor(value):
        return _no_tensor(value, right)
    sequence = isinstance(right, tuple | list) and not isinstance(value, tuple | list)
    if sequence or (isinstance(right, set) and not isinstance(value, set)):
        return f"a {type(right).__name__} is asked for, not a {type(value).__name__}."
    finite = not torch.is_tensor(value) or value.isfinite().all()
    if finite and all(same(a, b) for a, b in pairwise(results)):
        return (
            "the result is the same for every input. Are an example's numbers written "
            "into the code, or variables of the notebook used in place of the "
            "arguments?"
        )
    if isinstance(right, tuple | list) and len(value) != len(right):
        return f"{len(right)} parts are asked for, and {len(value)} came."
    if isinstance(right, int) and not isinstance(value, Integral):
        return f"an int is asked for, not a {type(value).__name__}."
    if torch.is_tensor(right) and value.shape != right.shape:
        return _wrong_shape(list(value.shape), list(right.shape))
    return None


def _no_tensor(value, right):
    """What came where a tensor is asked for."""
    if isinstance(value, Number) and right.is_floating_point():
        return "a plain number carries no gradient: is there an .item() on the way?"
    if isinstance(value, np.ndarray) and right.is_floating_point():
        return "NumPy carries no gradient: stay with torch from end to end."
    if isinstance(value, np.ndarray):
        return "a tensor is asked for, not a NumPy array."
    if isinstance(value, tuple | list):
        for n, part in enumerate(value, start=1):
            if same(part, right):
                return f"several results came. Return part {n} alone: it is right."
        if type(value).__module__ == "torch.return_types":
            return "two results came, the numbers and their places. Which is wanted?"
        if value and isinstance(value, list) and all(map(torch.is_tensor, value)):
            return "a tensor is asked for. torch.stack joins a list of tensors."
    if isinstance(value, GeneratorType):
        return "a tensor is asked for, not a generator: it has computed nothing yet."
    return f"a tensor is asked for, not a {type(value).__name__}."


def _wrong_shape(sizes, wanted):
    if sorted(sizes) == sorted(wanted):
        return "the axes stand in another order."
    if [n for n in sizes if n > 1] == [n for n in wanted if n > 1]:
        return "an axis of length 1 is missing, or too many: squeeze, unsqueeze."
    if sizes[:-1] == wanted:
        return (
            f"the last axis, of size {sizes[-1]}, is still there. What should happen "
            "along it: a sum, or the choice of one number?"
        )
    if len(sizes) == len(wanted):
        axis = next(n for n in range(len(wanted)) if sizes[n] != wanted[n])
        return (
            f"axis {axis} has size {sizes[axis]} where {wanted[axis]} is asked for. "
            "Which letter of the shape comments is that?"
        )
    axes = "one axis is" if len(wanted) == 1 else f"{len(wanted)} axes are"
    return f"{axes} asked for, and {len(sizes)} came."


def wrong_numbers(came, rights):
    """A cause that any exercise can have: numbers of the right shape; or None."""
    value, right, _ = _first_part(came.value, rights.value)
    if not torch.is_tensor(right) or came.error:
        return None
    if not value.isfinite().all():
        return "NaN or infinity: 0/0, or exp of a large number."
    if right.is_floating_point() and not value.is_floating_point():
        return "whole numbers where fractions are needed: look at the dtype."
    if right.dtype == torch.bool and value.is_floating_point():
        return "numbers where True and False are asked for."
    if right.dtype == torch.bool and value.dtype != torch.bool:
        return (
            "numbers where True and False are asked for: of 0 and 1, `~` would make -1 "
            "and -2."
        )
    return None


def one_factor(results, rights):
    """The cause if everything is right but for one number; else None."""
    numbers = [[], []]
    for came, right in zip(results, rights, strict=True):
        came, right = came.value, right.value
        if not (torch.is_tensor(came) and torch.is_tensor(right)):
            return None
        if came.shape != right.shape or not right.is_floating_point():
            return None
        for some, tensor in zip(numbers, (came, right), strict=True):
            some.append(tensor.detach().double().flatten())
    a, b = map(torch.cat, numbers)
    factor = (a @ b / (b @ b)).item()
    if factor and math.isfinite(factor) and not differs(a, factor * b).any():
        return f"everything is right but for the factor {factor:.3g}."
    return None


def difference(came, right):
    """What was expected and what came, or what was raised and where."""
    if came.error:
        lines = [
            frame.line
            for frame in traceback.extract_tb(came.error.__traceback__)
            if "site-packages" not in frame.filename
            and not frame.filename.startswith(UTILS)
        ]
        where = f"\n  in the line {lines[-1]}" if lines else ""
        message = (str(came.error).strip() or "no message").splitlines()[0][:200]
        return f"  It raised {type(came.error).__name__}: {message}{where}"
    value, wanted, place = _first_part(came.value, right.value)
    if torch.is_tensor(wanted) and torch.is_tensor(value) and wanted.dim():
        if value.shape == wanted.shape and differs(value, wanted).any():
            spot = tuple(differs(value, wanted).nonzero()[0].tolist())
            value, wanted, place = (
                value[spot],
                wanted[spot],
                f"  at {list(spot)}{place}",
            )
    pairs = [(_written(wanted, digits), _written(value, digits)) for digits in (4, 7)]
    expected, found = pairs[pairs[0][0] == pairs[0][1]]
    return f"  Expected  {expected}{place}\n  Came      {found}"


def _written(value, digits=4):
    """A value in a few characters."""
    if torch.is_tensor(value) and value.dim() == 0:
        value = value.item()
    if torch.is_tensor(value) or isinstance(value, np.ndarray):
        kind = "tensor" if torch.is_tensor(value) else "NumPy array"
        return f"a {kind} of shape {tuple(value.shape)}, {value.dtype}"
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    if isinstance(value, tuple | list) and any(map(torch.is_tensor, value)):
        names = getattr(value, "_fields", [""] * len(value))
        parts = [
            f"{name} {tuple(x.shape) if torch.is_tensor(x) else _written(x)}".strip()
            for name, x in zip(names, value, strict=True)
        ]
        return f"({', '.join(parts)})"
    text = str(sorted(value) if isinstance(value, set) else value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def described(spec, case):
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
