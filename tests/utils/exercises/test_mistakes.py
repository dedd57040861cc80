"""Each mistake, an edit of the solution, is answered by its own sentence."""

import pytest

from utils import exercises
from utils.exercises.result import Result

NAMES = sorted({*exercises.__all__} - {"own_translator"})


@pytest.mark.parametrize("name", NAMES)
def test_each_mistake_is_answered_by_its_own_sentence(name, capsys):
    exercise = getattr(exercises, name)
    assert exercise(exercise.made(exercise.solution))
    edits = exercise.edits()
    assert len({sentence for sentence, _ in edits}) >= 4
    capsys.readouterr()
    for sentence, edit in edits:
        result = exercise(exercise.made(exercise.edited(edit)))
        assert result.cause == sentence, edit
        assert capsys.readouterr().out == f"{result.message}\n"
    for found in exercise.known.values():  # an edit that can't be run as it is meant
        assert not isinstance(found.error, NameError | RecursionError)
        assert not isinstance(found.value, Result)
