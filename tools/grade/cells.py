"""Run a notebook's cells in this process, and note what the checks say of them.

    python cells.py NOTEBOOK RECORD SECONDS MEMORY PROCESSES

run.py starts it, in a folder of its own. RECORD is an open file's number; SECONDS are a
cell's, MEMORY is in bytes; -1 is no limit. What a cell prints counts for nothing: a
check is passed if the grader's own copy of it says so.
"""

import importlib
import json
import os
import resource
import signal
import sys
from functools import partial

FILE_SIZE = 200_000_000  # bytes that one file may have
RECORD_SIZE = 5_000_000  # bytes of checks' words that are kept
MESSAGE = 2000  # characters that are kept of one


class TooSlow(BaseException):
    """Raised inside a cell that runs on: no `except Exception` catches it."""


def stop(signum, frame):
    raise TooSlow("the cell was stopped: its time is over")


def note(record, **line):
    os.write(record, json.dumps(line).encode() + b"\n")


def fresh_exercises():
    """utils.exercises, imported anew; the rest of utils stays."""
    for name in [name for name in sys.modules if name.startswith("utils.exercises")]:
        del sys.modules[name]
    return importlib.import_module("utils.exercises")


def watch_checks(record):
    """Have each check of the notebook's exercises answered by a check of our own.

    So a notebook that changes its own, or prints a check's words, passes nothing.
    """
    ours, theirs = fresh_exercises(), fresh_exercises()
    names = {id(getattr(theirs, name)): name for name in theirs.__all__}

    def call(own, self, *answer, **named):
        if id(self) not in names:
            return own(self, *answer, **named)
        result = getattr(ours, names[id(self)])(*answer, **named)
        if os.fstat(record).st_size < RECORD_SIZE:
            message = str(result.message)[:MESSAGE]
            note(record, check=names[id(self)], status=result.status, message=message)
        return result

    for kind in {type(getattr(theirs, name)) for name in theirs.__all__}:
        own = kind.__call__

        def judge(self, *answer, own=own, **named):
            return call(own, self, *answer, **named)

        kind.__call__ = judge


def limit(memory, processes):
    """What can be raised neither by this process nor by those that it starts."""
    wanted = {
        resource.RLIMIT_DATA: memory,
        resource.RLIMIT_FSIZE: FILE_SIZE,
        resource.RLIMIT_NPROC: processes,
        resource.RLIMIT_CORE: 0,
    }
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        if most != -1 and (hard == resource.RLIM_INFINITY or most < hard):
            resource.setrlimit(kind, (most, most))


def main(notebook, record, seconds, memory, processes):
    limit(memory, processes)
    signal.signal(signal.SIGALRM, stop)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # an OSError says it
    sys.path[0] = ""  # as a kernel has it

    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    settings = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=settings, colors="nocolor")
    shell.ask_exit = partial(note, record, trouble="called exit, and went on")
    watch_checks(record)
    with open(notebook, encoding="utf-8") as file:
        cells = json.load(file)
    for number, source in cells:
        note(record, cell=number)
        signal.alarm(seconds)
        try:
            result = shell.run_cell(source)
            error = result.error_before_exec or result.error_in_exec
        except BaseException as late:  # of the alarm, between two steps of the shell
            error = late
        signal.alarm(0)
        if error:
            text = f"{type(error).__name__}: {error}".splitlines()[0]
            note(record, trouble=text[:MESSAGE])
    note(record, end=True)
    os._exit(0)  # waits for no thread that a cell has left behind


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
