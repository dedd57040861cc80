"""What an exercise answers: a Result, whose words are printed here and nowhere else.

All words go through `say`. tools/zh.py keeps zh.po, which has their Chinese.
"""

import json
import re
import unicodedata
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from utils.languages import readers_language

UTILS = Path(__file__).resolve().parents[1]
COLUMNS, PARTS = 84, r"\s+|(?:[\u2e80-\uffef]|[^\s\u2e80-\uffef]+)[，。、：；？！）”]*"


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
        super().__init__(sentence, *values)
        self.sentence, self.values, self.lines = sentence, values, lines
        self.status = status


def say(sentence, *values):
    """The sentence in the reader's language, with the values in it."""
    words = (chinese() if readers_language() == "zh" else {}).get(sentence, sentence)
    return words.format(*values) if values else words


@cache
def chinese():
    """{a sentence: its Chinese}, without what is to be looked at again."""
    text = (UTILS / "exercises" / "zh.po").read_text(encoding="utf-8")
    text = re.sub(r"#, fuzzy\n(.+\n)+", "", text)
    pairs = re.findall(r'^msgid (".+")\nmsgstr (".+")$', text, re.MULTILINE)
    return {json.loads(english): json.loads(own) for english, own in pairs}


def width(text):
    """In columns: a Chinese character takes two of them."""
    return len(text) + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def wrapped(text):
    """In lines of COLUMNS, none of which begins with Chinese punctuation."""
    lines = [""]
    for part in re.findall(PARTS, text):
        if width(lines[-1] + part) > COLUMNS:
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
        begin = ("Not yet. {}", "Not attempted yet: {}")[status == "not attempted"]
        message = wrapped(say(begin, say(cause, *fault.values)))
        message = "\n  ".join([message, *fault.lines])
    print(message)
    return Result(name, status, message, cause)
