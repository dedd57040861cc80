"""The engine of the exercises: runs a learner's code and puts into words what it does.

An exercise is data:

- spec: the specification in plain loops, independent of the solution and of `utils`;
- cases: arguments whose dimensions all differ; among them one shape twice, and one with
  equal sizes, where exchanged sizes don't raise;
- mistakes: {sentence: [answers that make the mistake]}, each written as a learner would
  write it. The first whose results equal the learner's on every case names the cause.
"""

import copy
import ctypes
import dis
import inspect
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial
from types import CodeType, FunctionType, ModuleType

import torch

from utils.exercises.compare import (
    Outcome,
    described,
    difference,
    one_factor,
    same,
    wrapped,
    wrong_kind,
    wrong_numbers,
)

SECONDS = 5.0  # of the processor's time; a call that takes longer is stopped
WAITING = 12  # times as long by the clock: a machine may be busy, or the code may wait
ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD", "IMPORT_FROM")  # in Python's byte code


@dataclass(frozen=True)
class Result:
    """What an exercise answered, in words printed already; true if all is right."""

    name: str
    passed: bool
    message: str = field(repr=False)

    def __bool__(self):
        return self.passed

    def _ipython_display_(self):
        """Show nothing at the end of a cell: the message stands there."""


class Exercise:
    """Call it with the learner's function, or class, to have it judged.

    gradients: compare those of the floating-point arguments, too. unwrap: from the
    learner's object and a case's arguments to a result, for an object that isn't such a
    function itself. given: prefixes of what a learner may use of `utils`.
    """

    def __init__(
        self, name, spec, cases, mistakes, gradients=False, unwrap=None, given=()
    ):
        self.name, self.spec, self.cases, self.mistakes = name, spec, cases, mistakes
        self.gradients, self.unwrap, self.given = gradients, unwrap, given
        self.known = {}  # what each mistake gives on each case, once it was run
        self.__doc__ = spec.__doc__

    def __repr__(self):
        return f"<exercise {self.name}: call it with your answer>"

    def __call__(self, answer, *others) -> Result:
        """Run the answer on every case; print, and return, what is said about it."""
        passed = False
        message = "Not yet: give the check your function itself, without calling it."
        if not others and (answer is ... or callable(answer)):
            with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
                with torch.enable_grad():
                    torch.manual_seed(0)
                    passed, message = self._judge(answer)
        print(message)
        return Result(self.name, passed, message)

    def _judge(self, answer):
        call = self._function(answer)
        results = [] if answer is ... else [_run(call, self.cases[0])]
        if not results or _not_attempted(answer, results[0]):
            return False, (
                "Not attempted yet: write your code where the dots are, "
                "then run the cell again."
            )
        for case in self.cases[1:]:
            if not isinstance(results[-1].error, _Stopped):
                results.append(_run(call, case))
        try:
            trouble = self._trouble(answer, results)
        except Exception as error:  # an object that can't even be compared
            trouble = (
                "what comes can't be compared with what is expected.\n"
                f"  {type(error).__name__}: {error}"
            )
        with_gradients = ", with their gradients" if self.gradients else ""
        right = f"✓ Right in {len(self.cases)} cases{with_gradients}."
        return (False, f"Not yet: {trouble}") if trouble else (True, right)

    def _function(self, answer):
        """From a case's arguments to the answer's result."""
        return partial(self.unwrap, answer) if self.unwrap else answer

    def _trouble(self, answer, results):
        """What is wrong, in words, or None."""
        if isinstance(results[-1].error, _Stopped):
            return (
                f"it was stopped after {SECONDS:g} seconds. Which loop doesn't end?\n"
                "  (If the kernel stays busy, restart it.)"
            )
        rights = [_run(self.spec, case) for case in self.cases]
        wrong = [n for n in range(len(rights)) if not same(results[n], rights[n])]
        if wrong:
            return self._wrong_results(results, rights, wrong)
        call = self._function(answer)
        return (
            self._changed_arguments(results)
            or self._borrowed(answer)
            or (self._wrong_gradients(call) if self.gradients else None)
        )

    def _wrong_results(self, results, rights, wrong):
        first = wrong[0]
        lines = [
            f"wrong in {len(wrong)} of {len(rights)} cases.",
            f"  Tried     {described(self.spec, self.cases[first])}",
            difference(results[first], rights[first]),
        ]
        if self._changed_arguments(results):
            lines.append("  An argument was changed: do two names stand for one thing?")
        cause = (
            self._named_mistake(results)
            or wrong_kind(results, rights, first)
            or one_factor(results, rights)
            or wrong_numbers(results[first], rights[first])
        )
        if cause:
            lines.append(wrapped(f"Likely cause: {cause}"))
        return "\n".join(lines)

    def _named_mistake(self, results):
        """The sentence of the first mistake with these results, or None."""
        numbers = range(len(results))

        def explains(mistake):
            return all(same(results[n], known(mistake, n), by_words) for n in numbers)

        def known(mistake, n):
            if (mistake, n) not in self.known:
                found = _run(self._function(mistake), self.cases[n])
                self.known[mistake, n] = found._replace(arguments=())
            return self.known[mistake, n]

        by_words = all(results[n].error for n in numbers)  # nothing else to compare
        for sentence, mistakes in self.mistakes.items():
            if any(map(explains, mistakes)):
                return sentence
        return None

    def _changed_arguments(self, results):
        for case, result in zip(self.cases, results, strict=True):
            pairs = zip(result.arguments, () if result.error else case, strict=True)
            if not all(same(*pair) for pair in pairs if not callable(pair[1])):
                return "the result is right, but an argument was changed.\n" + wrapped(
                    "Likely cause: a method whose name ends with an underscore, `+=`, "
                    "or an assignment to a part of a tensor. It writes into the "
                    "caller's numbers."
                )
        return None

    def _borrowed(self, answer):
        """What of `utils` the answer names, unless it was given."""
        own, todo, seen = ("utils.exercises.", *self.given), [answer], []
        while todo:
            value = todo.pop()
            if not isinstance(value, type | FunctionType) or value in seen:
                continue
            seen.append(value)
            name = f"{value.__module__}.{value.__qualname__}"
            if name.startswith("utils.") and not name.startswith(own):
                return (
                    f"the result is right, but {name} did the work. Write it yourself."
                )
            if isinstance(value, type):
                todo += [*value.__mro__, *vars(value).values()]
            elif value.__module__ == answer.__module__:
                todo += _named(value)
        return None

    def _wrong_gradients(self, call):
        names = inspect.signature(self.spec).parameters
        for case in self.cases:
            right = _run(_gradients_of(self.spec), case)
            found = _run(_gradients_of(call), case)
            if found.error:
                return f"the values are right.\n{difference(found, right)}"
            if found.value is None:
                cause = (
                    ".detach(), .item(), .data, no_grad, torch.tensor(...) or NumPy on "
                    "the way. Training would change nothing."
                )
                trouble = "the values are right, but no gradient comes back."
                return f"{trouble}\n{wrapped(f'Likely cause: {cause}')}"
            for name, *pair in zip(names, found.value, right.value, strict=True):
                if pair[1] is not None and not same(*pair):
                    cause = (
                        "a part is detached; or 0/0 or infinity stands in a branch "
                        "that isn't used: its gradient is NaN all the same."
                    )
                    trouble = f"the values are right, but not the gradient of {name}."
                    return f"{trouble}\n{wrapped(f'Likely cause: {cause}')}"
        return None


class _Stopped(BaseException):
    """Raised inside code that runs on for too long."""


def _run(function, arguments):
    """Call it with copies of the arguments, stopped after a time -> Outcome.

    In a thread of its own, since a thread can be left behind on every platform.
    """
    arguments, done = copy.deepcopy(arguments), []

    def work():
        try:
            value = function(*arguments)
            done.append(Outcome(value, None, arguments))
        except BaseException as error:  # SystemExit, too, gets an answer in words
            done.append(Outcome(None, error))

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
        for _ in range(3):  # an `except:` of the learner may catch the first
            if thread.is_alive():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped)
                )
                thread.join(0.1)
    return Outcome(error=_Stopped()) if late else done[0]


def _not_attempted(answer, result):
    """Whether the starter's dots are still there."""
    parts = result.value if isinstance(result.value, tuple) else (result.value,)
    code = getattr(getattr(answer, "__code__", None), "co_code", b"")
    empty = len(code) == len((lambda: None).__code__.co_code)  # a body of `...` or None
    return (
        isinstance(result.error, NotImplementedError)
        or any(part is ... for part in parts)
        or (empty and result.value is None and result.error is None)
    )


def _named(function):
    """What a function's code names: of its module, other modules, and around it."""
    found = [cell.cell_contents for cell in function.__closure__ or ()]
    codes = [function.__code__]
    while codes:
        code, module = codes.pop(), None
        codes += [part for part in code.co_consts if isinstance(part, CodeType)]
        for step in dis.get_instructions(code):
            if step.opname == "LOAD_GLOBAL":
                found.append(module := function.__globals__.get(step.argval))
            elif step.opname == "IMPORT_NAME":
                module = sys.modules.get(step.argval)
            elif isinstance(module, ModuleType) and step.opname in ATTRIBUTES:
                found.append(getattr(module, step.argval, None))
                if isinstance(found[-1], ModuleType):
                    module = found[-1]
    return found


def _gradients_of(function):
    """The function that gives each argument's gradient instead; None if detached."""

    def gradients(*case):
        leaves = [
            value.requires_grad_()
            if torch.is_tensor(value) and value.is_floating_point()
            else None
            for value in case
        ]
        result = function(*case)
        parts = result if isinstance(result, tuple | list) else [result]
        parts = [p for p in parts if torch.is_tensor(p) and p.requires_grad]
        if not parts:
            return None
        sums = [
            (p * torch.linspace(-1, 1, p.numel()).view(p.shape)).sum() for p in parts
        ]
        found = iter(
            torch.autograd.grad(
                sum(sums),
                [leaf for leaf in leaves if leaf is not None],
                materialize_grads=True,
                allow_unused=True,
            )
        )
        return [None if leaf is None else next(found) for leaf in leaves]

    return gradients
