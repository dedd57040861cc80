"""A prediction that is drawn: the reader draws, and then sees what was measured.

draw.js does it in the browser, here and on the pages of the course's site.
"""

import numpy as np

from utils.explorer import Widget, is_watched, program

MOST = {"curve": 100, "shares": 1, "heatmap": 1}


def drawing(kind, columns, answer, axes, rows=(), measured="measured"):
    """What draw.js is told, as plain values.

    kind: "curve" for values from 0 to 100, "shares" for parts of 1, "heatmap" for the
    darkest square of each row. columns, rows: their names. answer: a number for each
    column, for a heatmap (rows, columns). axes: what is drawn, in words; measured: what
    the answer is called. Raises ValueError where these don't fit.
    """
    if kind not in MOST:
        raise ValueError(f"A drawing's kind is one of {[*MOST]}, not {kind!r}.")
    columns, rows, answer = [*columns], [*rows], np.asarray(answer, dtype=float)
    shape = (len(rows), len(columns)) if kind == "heatmap" else (len(columns),)
    right = (answer >= 0) & (answer < MOST[kind] + 1e-5)  # a sum may be rounded up
    if answer.shape != shape or not right.all():
        raise ValueError(
            f"The answer of this {kind} has the shape {shape}, with numbers from 0 to "
            f"{MOST[kind]}; it is {answer.tolist()}, of the shape {answer.shape}."
        )
    told = {"kind": kind, "columns": columns, "rows": rows, "answer": answer.tolist()}
    return {**told, "axes": axes, "measured": measured}


class DrawWidget(Widget):
    _esm = program("element.js", "words.js", "draw.js")


class Draw:
    """Shown as the last value of a cell: a drawing; see `drawing` for what it takes."""

    def __init__(self, *args, **named):
        self.settings = drawing(*args, **named)

    def __repr__(self):
        return "Where this notebook runs in a browser, you can draw your guess here."

    def _repr_mimebundle_(self, include=None, exclude=None):
        live = is_watched() and DrawWidget(settings=self.settings)._repr_mimebundle_()
        return (live[0] if live else {}) | {"text/plain": repr(self)}
