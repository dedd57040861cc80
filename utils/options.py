"""Options: dataclasses whose fields carry their help and what they may be.

From them come argparse's options, the checks, and what is said of a value that can't
be: `num_epochs must be ...` in Python, `--num-epochs: must be ...` when it was typed.
"""

import argparse
import os
import re
import shlex
import sys
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from math import inf

from utils.guards import is_number

NUMBERS = {int: "whole number", float: "number"}


def setting(default, said, allowed=()):
    """A field; said: its help.

    default: anything; None if it may be typed without a value, which is True. allowed:
    the limits of a number, the choices of a text: a dict has these by the names that
    are typed, and binds them alone.
    """
    return field(default=default, metadata={"said": said, "allowed": allowed})


@dataclass(frozen=True)
class Options:
    """What such dataclasses have in common. Raises ValueError for what can't be."""

    def __post_init__(self):
        for one in fields(self):
            value = getattr(self, one.name)
            if value != one.default and not isinstance(one.metadata["allowed"], dict):
                if problem := fault(one, value):
                    raise ValueError(f"{one.name} {problem}")

    @classmethod
    def of(cls, given: dict):
        """Options by those of the values given that are fields of this class."""
        names = {one.name for one in fields(cls)}
        return cls(**{name: given[name] for name in names & given.keys()})


def fault(one, value) -> str:
    """What is wrong with the value of a field, in words; "" if nothing is."""
    allowed, right, fits = one.metadata["allowed"], "more than nothing", value != ""
    if one.type in NUMBERS:
        lowest, highest = allowed
        most = f" and at most {highest}" * (highest < inf)
        right = f"a {NUMBERS[one.type]} of at least {lowest}{most}"
        fits = is_number(value) and (one.type is float or isinstance(value, int))
        fits = fits and lowest <= value <= highest and value < inf
    elif allowed:
        right, fits = f"one of {', '.join(allowed)}", value in allowed
    return "" if fits else f"must be {right}, got {value!r}"


def dashed(name):
    """An option as it is typed: --num-epochs for num_epochs, --from for from_."""
    return "--" + name.strip("_").replace("_", "-")


def make_parser(prog, description, *classes):
    """A parser with an option for each field; what isn't given is absent."""
    parser = argparse.ArgumentParser(
        prog=prog,
        usage="%(prog)s OPTIONS (--help says which)",
        description=description,
        epilog="@FILE reads options from a file, typed as here, with / in paths.",
        argument_default=argparse.SUPPRESS,
        fromfile_prefix_chars="@",
    )
    typed = partial(re.sub, r"""("[^"]*"|'[^']*')|(?<!\S)#.*""", r"\1")  # no remark
    parser.convert_arg_line_to_args = lambda line: shlex.split(typed(line))
    for cls in classes:
        group = parser.add_argument_group(cls.__doc__.partition(".")[0])
        for one in fields(cls):
            said, allowed = one.metadata["said"], one.metadata["allowed"]
            if one.default and "left out" not in said:
                said += f"; left out, {one.default}"
            name = "N" if one.type in NUMBERS else "|".join(allowed)
            how = {"metavar": name or one.name.strip("_").upper()}
            how["type"] = partial(value_of, one)
            if one.type is bool:
                how = {"action": "store_true"}
            elif one.type is tuple:
                how |= {"nargs": 2, "metavar": ("SOURCE", "TARGET")}
            elif one.default is None:
                how |= {"nargs": "?", "const": True}
            group.add_argument(dashed(one.name), dest=one.name, help=said, **how)
    return parser


def value_of(one, text):
    """A field's value from what is typed."""
    value, allowed = text, one.metadata["allowed"]
    if one.type in NUMBERS:
        with suppress(ValueError):
            value = one.type(text)
    if problem := fault(one, value):
        raise argparse.ArgumentTypeError(problem)
    return allowed[value] if isinstance(allowed, dict) else value


def open_streams():
    """A standard stream that is closed leads nowhere from here on; output is UTF-8."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))
    with suppress(AttributeError):  # of a notebook
        sys.stdout.reconfigure(encoding="utf-8", newline="\n")
