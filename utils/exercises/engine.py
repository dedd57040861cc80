"""The engine of the exercises: runs a learner's code, and says in words what it does.

An exercise is a text and two tables.

- solution: the text of the right function, or class.
- stages: {sentence: cases}, from plain to cruel. The sentence says what is asked of its
  cases, which are arguments to try. The first stage that isn't right is spoken of.
- mistakes: sentences and, further to the right below each, edits of the solution that
  make the mistake. An edit is `old => new`, or several joined by ` ;; `; `=> new` puts
  a new body below the first line; `\\n` is a new line. A line still further to the
  right goes on with the one above. A sentence is said where one of its edits gives all
  that the learner's code gives, up to the stage that isn't right.
"""

import inspect
import math
import re
import traceback
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from numbers import Integral, Number

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.exercises import running
from utils.exercises.result import UTILS, Fault, Result, judged, say
from utils.exercises.running import Outcome, Stopped, borrowed, gradients_of, run

NAMES = {"torch": torch, "nn": nn, "F": F, "math": math, "np": np}
# What Python and PyTorch raise, with its type in front, and what it means.
ERRORS = r"""
Axes of sizes {} and {} meet. Axes are lined up from the last one, and only an axis of
length 1 fits every size. Is an axis missing, or one too many: unsqueeze, squeeze?
    size of tensor a \((\d+)\) must match the size of tensor b \((\d+)\)
torch.cat joins tensors along one axis, `dim`. All their other sizes must be equal:
torch.cat doesn't broadcast.
    Sizes of tensors must match except in dimension \d
This is a product of matrices of {} and {}. The first must have as many columns as the
second has rows: are they the two that are meant?
    shapes cannot be multiplied \((\w+) and (\w+)\)
`{}` along an axis returns two things, numbers and their places: take `.values`. (amax
gives the largest numbers alone.)
    torch\.return_types\.(\w+)
torch.{0} takes its tensors in one tuple: torch.{0}((a, b), dim=-1).
    (\w+)\(\): .* must be tuple of Tensors, not Tensor
A tensor of several numbers is neither true nor false, as `if`, `and` and Python's max
need it. A mask treats each position by itself: see masked_fill.
    Boolean value of Tensor
The GRU begins with a state of all its layers, (L, B, H). Here an axis is missing.
(`[-1]` takes the top layer alone.)
    hx should also be 3-D but got 2-D
The GRU is made to read vectors of {} numbers, and gets {}. Which of the two is wrong?
(The old state isn't joined to them: it is an argument of its own.)
    must be equal to input_size\. Expected (\d+), got (\d+)
A list and a number can't be added or subtracted. [1] is the list that holds 1 alone,
len(ids) says how many ids there are.
    concatenate list \(not "int|for [+-]: '(?:int' and 'list|list' and 'int)'
expand takes a length for each axis of its result; -1 leaves an axis as it is.
    the number of sizes provided \(
Only the GRU reads a packed batch. Embed the ids before you pack, unpack what comes out.
    Tensor, not PackedSequence
A tuple stands where one object is wanted. Take it apart first, as what nn.GRU returns:
`outputs, state = rnn(x)`.
    'tuple' object has no |tuple indices must|Tensor, not tuple|but got tuple
A tuple can't be written into. Make a new one, with the new part in its place.
    'tuple' object does not support item assignment
This call of {} has too few arguments: compare it with the `def`. The missing ones are
named below.
    (\w+)\(\) missing \d+ required
None came where a value is wanted. Is a `return` missing, or a function still its dots?
(append, insert and extend change a list, and return None.)
    NoneType
Is the name misspelt, not defined yet, or that of another object?
    ^(?:Attribute|Name|UnboundLocal)Error
"""


@dataclass(eq=False, repr=False)
class Exercise:
    """Call it with the learner's function, or class, to have it judged.

    gradients: compare those of the floating-point arguments, too. unwrap: from the
    learner's object and a case's arguments to a result, for an object that isn't such a
    function itself. typed: the dtype is asked for, too. given: prefixes of what a
    learner may use of `utils`; without: names that aren't allowed. names: what the
    texts use, besides NAMES.
    """

    name: str
    solution: str
    stages: dict
    mistakes: str
    _: KW_ONLY
    gradients: bool = False
    unwrap: Callable | None = None
    typed: bool = False
    given: tuple = ()
    without: tuple = ()
    names: dict = field(default_factory=dict)

    def __post_init__(self):
        self.solution = self.solution.strip()
        self.cases = [case for cases in self.stages.values() for case in cases]
        self.known = {}  # what the solution and its edits give, once they were run
        self.__doc__ = self.solution.partition("\n")[0]

    def __repr__(self):
        return f"<exercise {self.name}: call it with your answer>"

    def __call__(self, answer=None, *others) -> Result:
        """Run the answer on the cases; print, and return, what is said about it."""
        with torch.random.fork_rng(devices=[]), torch.inference_mode(False):
            with torch.enable_grad():
                torch.manual_seed(0)
                return judged(self.name, partial(self._judge, answer, *others))

    def made(self, text):
        """What a text defines: the last function or class in it."""
        space = NAMES | self.names
        exec(text, space)  # noqa: S102  a text of this package
        return space[re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)[-1]]

    def edits(self):
        """[(a sentence, an edit of the solution), ...] of the table of mistakes."""
        return rows_of(self.mistakes)

    def edited(self, edit):
        """The solution with this edit; ValueError if there is nothing to edit."""
        text = self.solution
        for change in edit.replace(r"\n", "\n").split(" ;; "):
            old, new = re.fullmatch(r"(.*?) ?=> ?(.*)", change, re.DOTALL).groups()
            if old not in text:
                raise ValueError(f"{self.name}: {old!r} isn't in the solution")
            whole = f"{self.__doc__}\n    {new}"
            text = text.replace(old, new) if old else whole
        return text

    def _call(self, answer):
        """From a case's arguments to the answer's result."""
        return partial(self.unwrap, answer) if self.unwrap else answer

    def _gives(self, text, n):
        """The Outcome of case n for a text: the solution's, or an edited one."""
        if (text, n) not in self.known:
            trusted = text == self.solution
            found = run(self._call(self.made(text)), self.cases[n], trusted)
            self.known[text, n] = found._replace(arguments=())
        return self.known[text, n]

    def _judge(self, answer, *others):
        """The words if all is right; else the Fault of what isn't."""
        if others or not (answer is ... or callable(answer)):
            raise Fault("Give the check your function itself, without calling it.")
        if isinstance(answer, nn.Module) and self.solution.startswith("class"):
            said = "Give the check the class itself, {}: no brackets, no arguments."
            raise Fault(said, type(answer).__name__)
        call, done = self._call(answer), []
        for asked, cases in self.stages.items():
            for case in cases:
                self._gives(self.solution, len(done))  # first: it may import modules
                done.append(Outcome(...) if answer is ... else run(call, case))
                check_attempted(answer, done[-1])
            for n in range(len(done) - len(cases), len(done)):
                right = self._gives(self.solution, n)
                types = {getattr(x.value, "dtype", None) for x in (done[n], right)}
                if not same(done[n], right) or self.typed and len(types) > 1:
                    self._explain(done, n, asked)
        for one, case in zip(done, self.cases, strict=True):
            pairs = zip(one.arguments, case, strict=True)
            for name, (came, given) in zip(self._parameters(), pairs, strict=True):
                if not (callable(given) or same(came, given)):
                    raise Fault(
                        "The result is right, but your code changed {}, which belongs "
                        "to the caller. A list's methods such as append do that, `+=`, "
                        "a name that ends with an underscore, or a part written into.",
                        name,
                    )
        if work := sorted(
            borrowed(answer, ("utils.exercises.", *self.given), self.without)
        ):
            said = "The result is right, but {} did the work. Write it yourself."
            raise Fault(said, work[0])
        if self.gradients:
            self._check_gradients(call)
        also = say(", with their gradients") if self.gradients else ""
        return say("✓ Right in {} cases{}.", len(self.cases), also)

    def _explain(self, done, n, asked):
        """Raise the Fault: of what is done, case n isn't what is asked for."""
        numbers = range(len(done))
        rights = [self._gives(self.solution, k) for k in numbers]
        cause = kind(done[n], rights[n]) or one_factor(done, rights) or [asked]
        for sentence, edit in () if same(done[n], rights[n]) else self.edits():
            text = self.edited(edit)
            if all(same(done[k], self._gives(text, k)) for k in reversed(numbers)):
                cause = [sentence]
                break
        tried = zip(self._parameters(), self.cases[n], strict=True)
        tried = [f"{name} {brief(x)}" for name, x in tried if not callable(x)]
        tried = say("Tried     {}", ", ".join(tried))
        raise Fault(*cause, lines=[tried, *difference(done[n], rights[n])])

    def _parameters(self):
        """The names of a case's arguments."""
        function = self.unwrap or self.made(self.solution)
        return list(inspect.signature(function).parameters)[bool(self.unwrap) :]

    def _check_gradients(self, call):
        spec = self._call(self.made(self.solution))
        for case in self.cases:
            found, right = (run(gradients_of(f), case) for f in (call, spec))
            if found.error:
                raise Fault("Its gradient fails.", lines=difference(found, right))
            if found.value is None:
                raise Fault(
                    "The values are right, but no gradient comes back: .detach(), "
                    ".item(), no_grad, torch.tensor(...) or NumPy is on the way."
                )
            pairs = zip(found.value, right.value, strict=True)
            for name, (came, wanted) in zip(self._parameters(), pairs, strict=True):
                if wanted is not None and not same(came, wanted):
                    raise Fault(
                        "The values are right, but not the gradient of {}. A part is "
                        "detached; or 0/0 or infinity stands in a branch that isn't "
                        "used, and its gradient is NaN all the same.",
                        name,
                    )


def rows_of(table):
    """[(a sentence, a line further to the right below it), ...] of a text."""
    rows, sentence, ended = [], "", True
    for line in re.sub(r"\n {5,}", "", table.strip()).splitlines():
        if line.startswith("    "):
            rows.append((sentence, line.strip()))
        else:
            sentence = line if ended else f"{sentence} {line}"
        ended = line.startswith("    ")
    return rows


def check_attempted(answer, outcome, piece=""):
    """Raise the Fault of a starter with its dots, or of a loop without an end."""
    if isinstance(outcome.error, Stopped):
        raise Fault(
            "It was stopped after {:g} seconds. Does a loop not end, or is there far "
            "too much to do? (If the kernel stays busy, restart it.)",
            running.SECONDS,
            status="stopped",
        )
    parts = outcome.value if isinstance(outcome.value, tuple) else (outcome.value,)
    code = getattr(getattr(answer, "__code__", None), "co_code", b"")
    empty = len(code) == len((lambda: None).__code__.co_code)  # a body of `...` or None
    empty = empty and outcome.value is None and outcome.error is None
    unwritten = isinstance(outcome.error, NotImplementedError)
    if empty or unwritten or any(part is ... for part in parts):
        said = "write your code where the dots are, then run the cell again."
        its = "`{}` still has its dots. Write it, then run its cell and those below it."
        raise Fault(its if piece else said, piece, status="not attempted")


def same(came, right, inside=False):
    """Whether a value, or an Outcome, is the right one: to rounding, NaN equals NaN.

    inside: of a list, where Python's whole numbers are asked for, and no tensors.
    """
    if isinstance(right, Outcome):
        errors = [(type(one.error), str(one.error)) for one in (came, right)]
        return errors[0] == errors[1] and (right.error or same(came.value, right.value))
    if isinstance(right, tuple | list):
        alike = isinstance(came, tuple | list) and len(came) == len(right)
        return alike and all(map(same, came, right, [True] * len(right)))
    if torch.is_tensor(right):
        return (
            torch.is_tensor(came)
            and came.shape == right.shape
            and came.is_floating_point() == right.is_floating_point()
            and (came.dtype == torch.bool) == (right.dtype == torch.bool)
            and not differs(came, right).any()
        )
    if getattr(came, "ndim", None) == 0 and not (inside and type(right) is int):
        came = came.item()  # a number of torch or NumPy
    if isinstance(right, float):
        return isinstance(came, Number) and np.isclose(came, right, 1e-4, 1e-5, True)
    asked = Integral if type(right) is int else type(right)
    return isinstance(came, asked) and came == right


def differs(a, b):
    """Where two tensors of one shape differ by more than rounding."""
    pair = a.detach().double(), b.detach().double()
    return ~torch.isclose(*pair, rtol=1e-4, atol=1e-5, equal_nan=True)


def wrong_part(value, right):
    """The first part that isn't right, of several results, and which one it is."""
    several = isinstance(right, tuple) or (
        isinstance(right, list) and right and torch.is_tensor(right[0])
    )
    if several and isinstance(value, tuple | list) and len(value) == len(right):
        names = getattr(right, "_fields", range(1, len(right) + 1))
        for name, part, wanted in zip(names, value, right, strict=True):
            if not same(part, wanted):
                parts = "in part {} of what is returned", "for {}"
                where = say(parts[isinstance(name, str)], name)
                return *wrong_part(part, wanted)[:2], where
    return value, right, ""


def learners_lines(error):
    """The lines of the learner's code that led to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    frames = [f for f in frames if not f.filename.startswith(str(UTILS))]
    return [f.line for f in frames if "site-packages" not in f.filename]


def meaning(raised):
    """[what it means, its values], by the first of ERRORS that fits, or None."""
    found = [(said, re.search(sign, raised)) for said, sign in rows_of(ERRORS)]
    return next(([said, *match.groups()] for said, match in found if match), None)


def kind(outcome, right):
    """[a cause that any exercise can have, its values], or None."""
    if error := outcome.error:
        if isinstance(error, Fault):
            return [error.sentence, *error.values]
        if isinstance(error, TypeError) and not learners_lines(error):
            return ["The check gives other arguments. Leave the first line as it was."]
        return meaning(f"{type(error).__name__}: {error}")
    value, wanted, _ = wrong_part(outcome.value, right.value)
    if value is None:
        return meaning("NoneType")
    came, asked = type(value).__name__, type(wanted).__name__
    forms = tuple | list, set, dict
    if any(isinstance(wanted, f) and not isinstance(value, f) for f in forms):
        return ["A {} is asked for, not a {}.", asked, came]
    tensors = ["tensor(" in str(x) for x in (value, wanted)]
    if isinstance(wanted, forms) and tensors == [True, False]:
        return ["Plain numbers are asked for, not tensors: see tolist() and item()."]
    if not torch.is_tensor(wanted):
        return None
    if isinstance(value, Number | np.ndarray) and wanted.is_floating_point():
        return ["A {} carries no gradient: stay with torch to the end.", came]
    if not torch.is_tensor(value):
        return ["A tensor is asked for, not a {}.", came]
    if value.shape != wanted.shape:
        return wrong_shape(list(value.shape), list(wanted.shape))
    kinds = [(x.dtype == torch.bool, x.is_floating_point()) for x in (value, wanted)]
    if value.dtype != wanted.dtype and (kinds[0] != kinds[1] or same(value, wanted)):
        return ["The dtype is {}, and {} is asked for.", value.dtype, wanted.dtype]
    return None


def one_factor(done, rights):
    """The cause if all numbers are right but for one factor, or None."""
    pairs = [(a.value, b.value) for a, b in zip(done, rights, strict=True)]
    if all(isinstance(x, float) for pair in pairs for x in pair):
        pairs = [tuple(map(torch.tensor, pair)) for pair in pairs]
    tensors = all(torch.is_tensor(x) for pair in pairs for x in pair)
    if not tensors or any(a.shape != b.shape for a, b in pairs):
        return None
    found = torch.cat([(a / b)[(a != 0) | (b != 0)] for a, b in pairs])
    if len(found) < 2 or found[0] == 0 or not found.isfinite().all():
        return None
    if differs(found, found[:1].expand(len(found))).any():
        return None
    return ["Everything is right but for the factor {:.3g}.", found[0].item()]


def wrong_shape(came, asked):
    if sorted(came) == sorted(asked):
        return ["The axes stand in another order."]
    if [size for size in came if size > 1] == [size for size in asked if size > 1]:
        return ["An axis of length 1 is missing, or one too many: squeeze, unsqueeze."]
    if came[:-1] == asked:
        return [
            "The last axis, of size {}, is still there. What should happen along it: a "
            "sum, or the choice of one number?",
            came[-1],
        ]
    for axis, sizes in enumerate(zip(came, asked, strict=False)):
        if len(came) == len(asked) and sizes[0] != sizes[1]:
            return ["Axis {} has size {} where {} is asked for.", axis, *sizes]
    return ["{} axes are asked for, and {} came.", len(asked), len(came)]


def difference(came, right):
    """What was expected and what came, or what was raised and where: lines."""
    if came.error:
        words = (str(came.error).strip() or "–").splitlines()
        message = "".join(words[: 1 + words[0].endswith(":")])[:200]
        lines = [say("It raised {}", f"{type(came.error).__name__}: {message}")]
        where = learners_lines(came.error)[-1:]
        lines = [] if isinstance(came.error, Fault) else lines
        return lines + [say("in the line {}", line) for line in where]
    value, wanted, place = wrong_part(came.value, right.value)
    if torch.is_tensor(wanted) and torch.is_tensor(value) and wanted.dim():
        if value.shape == wanted.shape and differs(value, wanted).any():
            spot = tuple(differs(value, wanted).nonzero()[0].tolist())
            value, wanted = value[spot], wanted[spot]
            place = f"{say('at {}', list(spot))} {place}"
    pairs = [(written(wanted, digits), written(value, digits)) for digits in (4, 7)]
    expected, found = pairs[pairs[0][0] == pairs[0][1]]
    expected = say("Expected  {}", f"{expected} {place}".rstrip())
    return [expected, say("Came      {}", found)]


def brief(value):
    """An argument: a tensor by its shape, or its few whole numbers."""
    small = torch.is_tensor(value) and value.ndim and value.numel() <= 8
    if small and not value.is_floating_point():
        return str(value.tolist())
    return tuple(value.shape) if torch.is_tensor(value) else written(value)


def written(value, digits=4):
    """A value in a few characters."""
    if torch.is_tensor(value) or isinstance(value, np.ndarray):
        if value.ndim:
            return f"{type(value).__name__} {tuple(value.shape)}, {value.dtype}"
        value = value.item()
    if isinstance(value, float):
        return f"{value:.{digits}f}"
    text = str(value)
    if isinstance(value, tuple | list) and {float, torch.Tensor} & {*map(type, value)}:
        text = ", ".join(written(one, digits) for one in value)
        text = f"[{text}]" if isinstance(value, list) else f"({text})"
    if isinstance(value, set) and value:
        text = f"{{{str(sorted(value, key=str))[1:-1]}}}"
    return text if len(text) <= 100 else f"{text[:97]}..."
