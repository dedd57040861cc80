"""The exercises of notebook 12. T target and S source words."""

from collections import Counter

import torch

from utils.exercises.engine import Exercise
from utils.tasks import GOES, Event

forward_moves = Exercise(
    "forward_moves",
    """
def mended_share(weights):  # (T, S) -> 0 to 1
    steps = weights.argmax(dim=1).diff()
    moves = int((steps != 0).sum())
    return int((steps > 0).sum()) / moves if moves else 0.0
""",
    {
        "Of the steps that move, in either direction, the share that goes forward is "
        "asked for. A step goes from one row's largest weight to the next row's.": [
            (torch.eye(6)[[0, 1, 1, 3, 2]].softmax(1),),
            (torch.eye(6)[[4, 0, 2, 2, 5]].softmax(1),),
            (torch.eye(4)[[0, 0, 1, 2, 1, 3, 0]].softmax(1),),
            (torch.eye(4)[[0, 2, 1, 3]].softmax(1),),
            (torch.eye(7)[[3, 2, 0, 0, 0]].softmax(1),),
        ],
        "Nothing moves here, so nothing has been shown: 0 is asked for. What does your "
        "code give, or divide by?": [
            (torch.eye(5)[[2, 2, 2, 2]].softmax(1),),
            (torch.eye(4)[[3]].softmax(1),),
        ],
    },
    """
A step that stands still counts as forward. Then who never moves looks monotone.
    steps > 0 => steps >= 0
    steps > 0 => steps >= 0 ;; moves if moves => len(steps) if len(steps)
What stands still is no step back either: leave it out below the line, too.
    moves if moves => len(steps) if len(steps)
Only moves to the next word count. A longer one is forward, too.
    steps > 0 => steps == 1
A row is a step: which axis does argmax run over?
    dim=1 => dim=0
""",
)

HEADLINES = """
baker sells red boat | nurse sells boat at market yesterday
the nurse sells a boat | boat sells nurse
a new red box | a new red box
baker sells boat at at market | baker sells boat at at hill yesterday
the the the | the cat
the cat | the the cat the
nurse sells a a box | a box of a nurse
boat sells baker | baker sells boat
| nurse paints
nurse paints | nursery painter
"""
PAIRS = [[part.split() for part in row.split("|")] for row in HEADLINES.splitlines()]
rouge_1 = Exercise(
    "rouge_1",
    """
def counted_rouge_1(hypothesis, reference):  # two lists of words -> 0 to 1
    common = (Counter(hypothesis) & Counter(reference)).total()
    if not common:
        return 0.0
    p, r = common / len(hypothesis), common / len(reference)
    return 2 * p * r / (p + r)
""",
    {
        "No word stands twice here. Precision p and recall r count the common words, "
        "in any order, and the measure is 2pr / (p + r).": PAIRS[1:4],
        "A word that stands twice in both lists counts as two; one that stands twice "
        "in one list and once in the other counts as one.": PAIRS[4:9],
        "No word is in common, or a list is empty: 0 is asked for. What does your code "
        "give, or divide by?": PAIRS[9:],
    },
    r"""
This is the precision or the recall alone. The measure needs both.
    2 * p * r / (p + r) => p
    2 * p * r / (p + r) => r
p and r are joined in another way. How is their harmonic mean, 2pr / (p + r), written?
    2 * p * r / (p + r) => (p + r) / 2
    2 * p * r / (p + r) => p * r
    2 * p * r / (p + r) => p * r / (p + r)
Only words at the same place in both lists count. ROUGE-1 doesn't look at the order.
    if not => common = sum(map(str.__eq__, hypothesis, reference))\n    if not
A set forgets how often a word stands in a list.
    if not => common = len({*hypothesis} & {*reference})\n    if not
Your code counts a word as often as one list has it, though the other has it less
often.
    if not => common = sum(w in reference for w in hypothesis)\n    if not
    if not => common = sum(w in hypothesis for w in reference)\n    if not
""",
    names={"Counter": Counter},
)

STORIES = """
key: ben went inn, ana took key, ana came zoo, ben walked bar, ana sent key ben;
key: ana took key, ana came zoo, ana went inn;
hat: ana went zoo, ben took hat, ana took key, ben sent hat ana, ana sent key ben,
     ben walked bar;
key: ben took key, ben sent key ana, ana sent key ben, ana went bar, ben went zoo,
     ben took hat, eve went inn;
key: ben went zoo, ana took key;
hat: ben went zoo, ben took key
"""
STORIES = [text.strip().split(": ") for text in STORIES.split(";")]
STORIES = [(thing, [Event(*e.split()) for e in s.split(",")]) for thing, s in STORIES]
two_facts = Exercise(
    "two_facts",
    """
def both_facts(thing, events):  # "key", [Event, ...] -> (number, number) or None
    held = [n for n, e in enumerate(events) if e.what == thing]
    if not held:
        return None
    holder = events[held[-1]].to or events[held[-1]].who
    places = [n for n, e in enumerate(events) if e.who == holder and e.verb in GOES]
    return (held[-1], places[-1]) if places else None
""",
    {
        "The first number, from 0, is that of the event that says who has the thing in "
        "the end, the second of the one that says where that person is.": STORIES[:4],
        "The story doesn't say who has the thing, or where that person is: None alone "
        "is asked for.": STORIES[4:],
    },
    """
The first event is taken, of the thing's or of the person's. Can things change later?
    held[-1] => held[0]
    places[-1] => places[0]
After `sent`, the sender no longer has the thing. Which part of the event says who does?
    events[held[-1]].to or =>
The person's last event is taken, whatever it is. Which verbs change a place?
    and e.verb in GOES =>
The last place that anybody goes to is taken. Who must go there?
    e.who == holder and =>
Only events before, or only those after the thing came are read. Which ones count, too?
    holder and => holder and n < held[-1] and
    holder and => holder and n > held[-1] and
""",
    names={"GOES": GOES},
)
