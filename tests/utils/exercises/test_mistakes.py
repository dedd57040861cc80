"""Each listed mistake, run as a learner would, is answered by its own sentence."""

import pytest

from utils import exercises
from utils.exercises.beyond_translation import GOES, Event
from utils.tasks import GOES as TASK_GOES
from utils.tasks import Event as TaskEvent


@pytest.mark.parametrize("name", sorted({*exercises.__all__} - {"own_translator"}))
def test_each_mistake_is_answered_by_its_own_sentence(name):
    exercise = getattr(exercises, name)
    assert len(exercise.mistakes) >= 5
    for sentence, mistakes in exercise.mistakes.items():
        assert mistakes
        for mistake in mistakes:
            result = exercise(mistake)
            assert not result
            words = " ".join(result.message.split())
            assert words.endswith(f"Likely cause: {sentence}")


def test_the_stories_of_an_exercise_are_told_in_the_events_of_the_course():
    assert (GOES, Event._fields) == (TASK_GOES, TaskEvent._fields)
