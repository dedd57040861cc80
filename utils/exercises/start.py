"""The exercise of notebook 00. T target and S source words."""

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw

SIZES = [(4, 6), (4, 6), (3, 7), (2, 5), (5, 5), (7, 3)]
TEXT = "the old farmer sings in his garden".split()
CASES = [(draw(n, (T, S))[0].softmax(1), TEXT[:S]) for n, (T, S) in enumerate(SIZES, 1)]

most_attended = Exercise(
    "most_attended",
    """
def most_attended_words(weights, source_tokens):  # (T, S), S words -> T words
    return [source_tokens[j] for j in weights.argmax(dim=1)]
""",
    {"Each row gives one word, that of its own largest weight, in a list.": CASES},
    """
The columns are searched. A row is a target word: along which axis must argmax go?
    dim=1 => dim=0
These are positions. Which word stands at each?
    source_tokens[j] for => int(j) for
    => return weights.argmax(dim=1)
A list takes one whole number as a position: neither a weight nor several positions.
    => return source_tokens[weights.argmax(dim=1)]
argmax without dim searches the whole table at once. There is an answer for each row.
    => return source_tokens[weights.argmax()]
This is the first row's answer alone. Does `return` stand inside the loop?
    weights.argmax => weights[:1].argmax
    => return source_tokens[weights[0].argmax()]
These are weights. At which position does each stand, and which word is there?
    => return weights.max(dim=1).values
    => return weights.amax(dim=1).tolist()
""",
)
