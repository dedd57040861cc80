"""Runs a learner's code: with copies, not for ever; and sees what it uses."""

import copy
import ctypes
import sys
import threading
import time
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple

import torch

SECONDS = 5.0  # of the processor's time; a call that takes longer is stopped
WAITING = 12  # times as long by the clock: a machine may be busy, or the code may wait


class Outcome(NamedTuple):
    """What a call returned or raised; and its arguments as it left them."""

    value: object = None
    error: BaseException | None = None
    arguments: tuple = ()


class Stopped(BaseException):
    """Raised inside code that runs on for too long."""


def run(function, arguments, trusted=False):
    """Call it with copies of the arguments, stopped after a time -> Outcome.

    In a thread of its own, since a thread can be left behind on every platform; if it
    is trusted, here: what it imports on the way is then not stopped halfway.
    """
    arguments, done = copy.deepcopy(arguments), []

    def work():
        try:
            done.append(Outcome(function(*arguments), None, arguments))
        except BaseException as error:  # SystemExit, too, gets an answer in words
            done.append(Outcome(None, error))

    if trusted:
        work()
        return done[0]
    thread = threading.Thread(target=work, daemon=True)
    work_ends = time.process_time() + SECONDS
    waiting_ends = time.monotonic() + WAITING * SECONDS
    thread.start()
    try:
        while time.process_time() < work_ends and time.monotonic() < waiting_ends:
            thread.join(0.05)
            if not thread.is_alive():
                break
    finally:
        late = thread.is_alive()
        for _ in range(3 * late):  # an `except:` of the learner may catch the first
            number = ctypes.c_ulong(thread.ident)
            stop = ctypes.pythonapi.PyThreadState_SetAsyncExc
            stop(number, ctypes.py_object(Stopped))
            thread.join(0.1)
    return Outcome(error=Stopped()) if late else done[0]


def borrowed(answer, given, without):
    """What an answer uses of `utils`, but for given prefixes, and of `without`."""
    names, found, todo = set(), [], [answer]
    while todo:
        value = todo.pop()
        if not isinstance(value, type | FunctionType) or value in found:
            continue
        found.append(value)
        if isinstance(value, type):
            todo += [*value.__mro__, *vars(value).values()]
        elif value.__module__ == answer.__module__:
            own, codes = set(), [value.__code__]
            while codes:
                own.update(codes[-1].co_names)
                codes += [c for c in codes.pop().co_consts if isinstance(c, CodeType)]
            known = [value.__globals__.get(name, sys.modules.get(name)) for name in own]
            modules = [one for one in known if isinstance(one, ModuleType)]
            todo += known + [getattr(m, name, None) for m in modules for name in own]
            todo += [cell.cell_contents for cell in value.__closure__ or ()]
            mine = (one for one in known if isinstance(one, FunctionType))
            own -= {f.__name__ for f in mine if f.__module__ == value.__module__}
            names |= own
    full = [f"{value.__module__}.{value.__qualname__}" for value in found]
    course = [name for name in full if name.startswith("utils.")]
    return [name for name in course if not name.startswith(given)] + [
        name for name in without if name in names
    ]


def gradients_of(function):
    """The function that gives each argument's gradient instead; None if detached."""

    def gradients(*case):
        leaves = [v for v in case if torch.is_tensor(v) and v.is_floating_point()]
        for leaf in leaves:
            leaf.requires_grad_()
        result = function(*case)
        parts = result if isinstance(result, tuple | list) else [result]
        parts = [p for p in parts if torch.is_tensor(p) and p.requires_grad]
        if not parts:
            return None
        sums = [(torch.linspace(-1, 1, p.numel()) * p.flatten()).sum() for p in parts]
        grads = torch.autograd.grad(sum(sums), leaves, materialize_grads=True)
        grads = dict(zip(map(id, leaves), grads, strict=True))
        return [grads.get(id(value)) for value in case]

    return gradients
