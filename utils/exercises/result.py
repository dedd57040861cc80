"""What an exercise answers: a Result, whose words are printed here and nowhere else.

All words go through `say`, which looks for them in utils/locale (GNU gettext).
"""

import gettext
import re
import unicodedata
from dataclasses import dataclass, field
from pathlib import Path

UTILS = Path(__file__).resolve().parents[1]
COLUMNS = 84


@dataclass(frozen=True)
class Result:
    """What an exercise answered, printed already; true if all is right.

    status: "right", "wrong", "not attempted" or "stopped". cause: the sentence that was
    said, as the exercise or the engine has it.
    """

    name: str
    status: str
    message: str = field(repr=False)
    cause: str = field(default="", repr=False)

    def __bool__(self):
        return self.status == "right"

    def _ipython_display_(self):
        """Show nothing at the end of a cell: the message stands there."""


class Fault(Exception):
    """What isn't right: a sentence, the values in it, and lines to stand below it."""

    def __init__(self, sentence, *values, lines=(), status="wrong"):
        super().__init__(sentence)
        self.sentence, self.values, self.lines = sentence, values, lines
        self.status = status


def say(sentence, *values):
    """The sentence in the reader's language, with the values in it."""
    words = gettext.translation("exercises", UTILS / "locale", fallback=True)
    return (
        words.gettext(sentence).format(*values) if values else words.gettext(sentence)
    )


def wrapped(text):
    """In lines of COLUMNS; a Chinese character takes two of them."""
    lines = [""]
    for part in re.findall(r"\s+|[\u2e80-\uffef]|[^\s\u2e80-\uffef]+", text):
        wide = sum(unicodedata.east_asian_width(c) in "WF" for c in lines[-1] + part)
        if len(lines[-1] + part) + wide > COLUMNS:
            lines.append("")
        lines[-1] = (lines[-1] + part).lstrip()
    return "\n  ".join(map(str.rstrip, lines))


def judged(name, judge):
    """Call judge, which gives words or raises a Fault; print them -> the Result."""
    try:
        message, status, cause = judge(), "right", ""
    except Exception as error:
        fault = error  # or an object that nothing can be compared with
        if not isinstance(error, Fault):
            fault = Fault("What comes can't be compared with what is right: {}.", error)
        status, cause = fault.status, fault.sentence
        begin = say("Not attempted yet:" if status == "not attempted" else "Not yet.")
        message = wrapped(f"{begin} {say(cause, *fault.values)}")
        message = "\n  ".join([message, *fault.lines])
    print(message)
    return Result(name, status, message, cause)
