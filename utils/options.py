"""Options: dataclasses whose fields carry their help, limits and choices.

From them come argparse's options, the checks, and what is said of a value that can't
be: `num_epochs must be ...` in Python, `--num-epochs: must be ...` when it was typed.
"""

import argparse
import math
import os
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial

from utils.guards import is_number


def setting(default, said, lowest=-math.inf, highest=math.inf, choices=()):
    """A field; said: its help.

    default: anything; None if it may be typed without a value, which is True. choices:
    what it may be; a dict has it by the names that are typed, and binds these alone.
    """
    about = {"said": said, "limits": (lowest, highest), "choices": choices}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Options:
    """What such dataclasses have in common. Raises ValueError for what can't be."""

    def __post_init__(self):
        for one in fields(self):
            value, choices = getattr(self, one.name), one.metadata["choices"]
            if value != one.default and not isinstance(choices, dict):
                if problem := fault(one, value):
                    raise ValueError(f"{one.name} {problem}")

    @classmethod
    def of(cls, given: dict) -> dict:
        """Those of the options given that are fields of this class."""
        names = [one.name for one in fields(cls)]
        return {name: given[name] for name in names if name in given}


def fault(one, value) -> str:
    """What is wrong with the value of a field, in words; "" if nothing is."""
    choices, (lowest, highest) = one.metadata["choices"], one.metadata["limits"]
    right, fits = "more than nothing", value != ""
    if choices:
        right, fits = f"one of {', '.join(choices)}", value in choices
    elif one.type in (int, float):
        number = "whole number" if one.type is int else "number"
        most = f" and at most {highest}" * (highest < math.inf)
        right = f"a {number} of at least {lowest}{most}"
        fits = is_number(value) and (one.type is float or isinstance(value, int))
        fits = fits and lowest <= value <= highest and value < math.inf
    return "" if fits else f"must be {right}, got {value!r}"


# On the command line


def dashed(name):
    """An option as it is typed: --num-epochs for num_epochs, --from for from_."""
    return "--" + name.strip("_").replace("_", "-")


def make_parser(prog, description):
    """A parser whose options may stand in a file; one that isn't given is absent."""
    parser = argparse.ArgumentParser(
        prog=prog,
        usage="%(prog)s OPTIONS (--help says which)",
        description=description,
        epilog="@FILE reads options from a file, typed as here, on one line or more.",
        argument_default=argparse.SUPPRESS,
        fromfile_prefix_chars="@",
    )
    parser.convert_arg_line_to_args = partial(shlex.split, comments=True)
    return parser


def add_options(parser, cls):
    """A group of options, one for each field of a class of Options."""
    group = parser.add_argument_group(cls.__doc__.partition(".")[0])
    for one in fields(cls):
        said, choices = one.metadata["said"], one.metadata["choices"]
        if one.default and "left out" not in said:
            said += f"; left out, {one.default}"
        if one.type is bool:
            how = {"action": "store_true"}
        else:
            number = "N" if one.type in (int, float) else one.name.strip("_").upper()
            how = {
                "metavar": "|".join(choices) or number,
                "type": partial(value_of, one),
            }
        if one.type is tuple:
            how |= {"nargs": 2, "metavar": ("SOURCE", "TARGET")}
        elif one.default is None:
            how |= {"nargs": "?", "const": True}
        group.add_argument(dashed(one.name), dest=one.name, help=said, **how)


def value_of(one, text):
    """A field's value from what is typed."""
    value, choices = text, one.metadata["choices"]
    if one.type in (int, float):
        with suppress(ValueError):
            value = one.type(text)
    if problem := fault(one, value):
        raise argparse.ArgumentTypeError(problem)
    return choices[value] if isinstance(choices, dict) else value


def open_streams():
    """A standard stream that is closed leads nowhere from here on."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))
