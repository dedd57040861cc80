"""Exercises that answer: give one of these your own function, and it says what it does.

`exercises.masked_softmax(mine)` runs `mine` on inputs of its own, prints what it finds
in words, and returns a result that is true if all is right. It is a question, and no
function of the course: that one is `utils.attention.masked_softmax`.

`engine` judges an answer, `running` runs it, `result` says what is found. The other
modules hold what a notebook asks, its solutions and mistakes; `put_together` is 07's
last exercise, a whole translator.
"""

from importlib import import_module

from utils.exercises.engine import Exercise
from utils.exercises.put_together import own_translator

OF_NOTEBOOKS = """start words bottleneck scoring masking decoder training heatmaps
    long_sentences parts beam_search real_translation
    beyond_translation transformers costs""".split()  # 00 to 14

__all__ = ["own_translator"]
for _module in OF_NOTEBOOKS:
    for _name, _value in vars(import_module(f"utils.exercises.{_module}")).items():
        if isinstance(_value, Exercise):
            globals()[_name] = _value
            __all__ += [_name]
