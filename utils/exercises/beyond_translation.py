"""The exercises of notebook 12. T target and S source words."""

import math
from typing import NamedTuple

import torch

from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw

GOES = ("went", "walked", "came")


class Event(NamedTuple):
    """As utils.tasks.Event, whose module loads rouge-score."""

    who: str
    verb: str
    what: str
    to: str | None = None


def two_facts_by_loops(thing, events):
    """A thing and a story's events -> numbers of the two that say where it is, or None.

    The first says who has it, the second where that person is.
    """
    holder, held, found = None, None, None
    for n, event in enumerate(events):
        if event.what == thing:
            holder, held = event.who if event.to is None else event.to, n
    for n, event in enumerate(events):
        if holder is not None and event.who == holder and event.verb in GOES:
            found = n
    return None if found is None else (held, found)


def _moves_itself(event, holder):
    return event.who == holder and event.verb in GOES


def _facts(held=-1, found=-1, receiver=True, goes=_moves_itself, part=None):
    """held, found: which of the events in question, from the first or the last."""

    def facts(thing, events):
        about = [n for n, event in enumerate(events) if event.what == thing]
        if not about:
            return None
        fact = events[about[held]]
        holder = fact.to if receiver and fact.to else fact.who
        moves = [
            n
            for n, event in enumerate(events)
            if goes(event, holder) and (part is None or part(n, about[held]))
        ]
        return (about[held], moves[found]) if moves else None

    return facts


def _changed(change):
    """The right result, changed where there is one."""

    def facts(thing, events):
        right = two_facts_by_loops(thing, events)
        return right and change(events, *right)

    return facts


def _in_words(events, n, m):
    return events[n].to or events[n].who, events[m].what


def _half(thing, events):
    held = [n for n, event in enumerate(events) if event.what == thing]
    right = two_facts_by_loops(thing, events)
    return right or (held[-1] if held else None, None)


def _story(thing, text):
    return thing, [Event(*event.split()) for event in text.split(", ")]


two_facts = Exercise(
    "two_facts",
    two_facts_by_loops,
    cases=[
        _story(
            "key",
            "baker went market, nurse took key, nurse came school, "
            "baker walked kitchen, nurse sent key baker",
        ),
        _story("key", "nurse took key, nurse came school, nurse went garden"),
        _story(
            "hat",
            "nurse went garden, baker took hat, nurse took key, "
            "baker sent hat nurse, nurse sent key baker, baker walked market",
        ),
        _story("key", "baker went school, nurse took key"),
        _story("hat", "baker went school, baker took key"),
        _story(
            "key",
            "baker took key, baker sent key nurse, nurse sent key baker, nurse went "
            "market, baker went school, baker took hat, painter went church",
        ),
    ],
    mistakes={
        "the first event that speaks of the thing, and of the person. Things change: "
        "the last one counts.": [_facts(held=0, found=0)],
        "the first event that "
        "speaks of the thing. Things change: the last one counts.": [_facts(held=0)],
        "the first event that speaks of the person's place. Things change: the last "
        "one counts.": [_facts(found=0)],
        "after `sent`, the sender no longer has it. Who does? Look at event.to.": [
            _facts(receiver=False)
        ],
        "the person's last event is taken, whatever it is. Who takes or sends a thing "
        "stays where he is: "
        "look at the verb.": [_facts(goes=lambda event, holder: event.who == holder)],
        "the last place that anybody goes to. It must be the one who has the thing.": [
            _facts(goes=lambda event, holder: event.verb in GOES)
        ],
        "who is sent a thing doesn't move.": [
            _facts(goes=lambda event, holder: holder in (event.who, event.to))
        ],
        "only `went` is read. There are three verbs of going, in GOES.": [
            _facts(goes=lambda event, holder: event[:2] == (holder, "went"))
        ],
        "only events before the thing came are read. Its holder may go on with it.": [
            _facts(part=lambda n, held: n < held)
        ],
        "only events after the thing came are read. Its holder may have been there "
        "before.": [_facts(part=lambda n, held: n > held)],
        "the two are exchanged: who has it comes first, then the place.": [
            _changed(lambda events, n, m: (m, n))
        ],
        "counted from 1. Numbers begin at 0.": [
            _changed(lambda events, n, m: (n + 1, m + 1))
        ],
        "these are the words. The numbers of the events are asked for.": [
            _changed(_in_words)
        ],
        "this is the second event alone. The first says who has the thing.": [
            _changed(lambda events, n, m: m)
        ],
        "half an answer: where the story doesn't say, None alone is asked for.": [
            _half
        ],
        "it raises where the story doesn't say: return None there.": [
            lambda thing, events: two_facts_by_loops(thing, events)[0:2]
        ],
    },
)


def forward_moves_by_loops(weights):
    """Weights (T, S) -> the share of moves that go forward, 0 if nothing moves."""
    places = []
    for row in weights.tolist():
        best = 0
        for j in range(len(row)):
            if row[j] > row[best]:
                best = j
        places.append(best)
    forward = moves = 0
    for i in range(1, len(places)):
        forward += places[i] > places[i - 1]
        moves += places[i] != places[i - 1]
    return forward / moves if moves else 0.0


def _steps(weights, axis=1):
    return weights.argmax(axis).diff()


def _share(hits, of, empty=0.0, axis=1):
    """Steps with `hits` among those with `of`; empty: if there are none."""

    def wrong(weights):
        steps = _steps(weights, axis)
        number = int(of(steps).sum())
        return int(hits(steps).sum()) / number if number else empty

    return wrong


def _forward(steps):
    return steps > 0


def _moved(steps):
    return steps != 0


def _every(steps):
    return steps == steps


def _by_distance(weights):
    steps = _steps(weights)
    return steps.clamp(min=0).sum() / steps.abs().sum().clamp(min=1)


def _unguarded(weights):
    steps = _steps(weights)
    return int((steps > 0).sum()) / int((steps != 0).sum())


def _look(seed, places, S):
    weights = draw(seed, (len(places), S))[0].softmax(-1)
    weights[torch.arange(len(places)), torch.tensor(places)] += 1
    return (weights / 2,)


forward_moves = Exercise(
    "forward_moves",
    forward_moves_by_loops,
    cases=[
        _look(0, [0, 1, 1, 3, 2], 6),
        _look(1, [4, 0, 2, 2, 5], 6),
        _look(2, [2, 2, 2, 2], 5),
        _look(3, [3], 4),
        _look(4, [0, 0, 1, 2, 1, 3, 0], 4),
        _look(5, [0, 2, 1, 3], 4),
        _look(6, [3, 2, 0, 0, 0], 7),
    ],
    mistakes={
        "a step that stands still is counted as forward, so that a model that never "
        "moves looks monotone.": [
            _share(lambda steps: steps >= 0, _every, empty)
            for empty in (0.0, math.nan, 1.0)
        ],
        "what stands still is no step forward, and no step back either: leave it out "
        "below the "
        "line, too.": [_share(_forward, _every, empty) for empty in (0.0, math.nan)],
        "where nothing moves, nothing has been shown: 0 is asked for.": [
            _share(_forward, _moved, 1.0)
        ],
        "where nothing moves, there is no share (0/0): 0 is asked for.": [
            _share(_forward, _moved, math.nan)
        ],
        "these are the moves backward.": [_share(lambda steps: steps < 0, _moved)],
        "only moves to the next word are counted. A longer one is forward, too.": [
            _share(lambda steps: steps == 1, _moved)
        ],
        "you went through the columns. A row is a step: which axis does argmax run "
        "over?": [_share(_forward, _moved, axis=0)],
        "a long move counts "
        "more than a short one. Count moves, whatever their length.": [_by_distance],
        "divided by the target words. Between T words there are T - 1 steps, and not "
        "all of "
        "them move.": [lambda weights: int((_steps(weights) > 0).sum()) / len(weights)],
        "this is the number of moves forward. Their share is asked for.": [
            lambda weights: int((_steps(weights) > 0).sum())
        ],
        "this is in percent: 0 to 1 is asked for.": [
            lambda weights: forward_moves_by_loops(weights) * 100
        ],
        "it divides by 0 where nothing moves: 0 is asked for there.": [_unguarded],
    },
)


def rouge_1_by_loops(hypothesis, reference):
    """Words of a headline and of a reference -> their ROUGE-1 F-measure, 0 to 1."""
    common, left = 0, list(reference)
    for word in hypothesis:
        for i in range(len(left)):
            if left[i] == word:
                del left[i]
                common += 1
                break
    return 2 * common / (len(hypothesis) + len(reference))


def _common(h, r):
    return sum(min(h.count(word), r.count(word)) for word in set(h))


def _distinct(h, r):
    return len(set(h) & set(r))


def _of_headline(h, r):
    return sum(word in r for word in h)


def _of_reference(h, r):
    return sum(word in h for word in r)


def _at_same_place(h, r):
    return sum(a == b for a, b in zip(h, r, strict=False))


def _precision(h, r, number=_common):
    return number(h, r) / len(h) if h else 0.0


def _recall(h, r, number=_common):
    return number(h, r) / len(r)


def _counted(number):
    """The F-measure, for another number of common words."""

    def wrong(h, r):
        p, q = _precision(h, r, number), _recall(h, r, number)
        return 2 * p * q / (p + q) if p + q else 0.0

    return wrong


def _of_changed(change):
    """The F-measure of other lists of words."""
    return lambda h, r: rouge_1_by_loops(change(h), change(r))


def _unguarded_rouge(h, r):
    p, q = _common(h, r) / len(h), _common(h, r) / len(r)
    return 2 * p * q / (p + q)


rouge_1 = Exercise(
    "rouge_1",
    rouge_1_by_loops,
    cases=[
        (h.split(), r.split())
        for h, r in (
            ("baker sells boat at at market", "baker sells boat at at hill yesterday"),
            ("the the the", "the cat"),
            ("boat sells baker", "baker sells boat"),
            ("", "nurse paints"),
            ("nurse paints", "nursery painter"),
            ("the cat", "the the cat the"),
            ("a new red box", "a new red box"),
            ("nurse sells a a box", "a box of a nurse"),
        )
    ],
    mistakes={
        "a word that stands twice in both counts twice: a set forgets how often.": [
            _counted(_distinct)
        ],
        "these are sets: a word that stands twice in both counts twice.": [
            lambda h, r: 2 * _distinct(h, r) / len(set(h) | set(r) | {0}),
            lambda h, r: 2 * _distinct(h, r) / (len(set(h)) + len(set(r))),
        ],
        "these are sets, and their union is below the line. Count words.": [
            lambda h, r: _distinct(h, r) / len(set(h) | set(r))
        ],
        "a word of the headline is counted as often as it is repeated. The reference "
        "has it only so often: take each of its words once.": [_counted(_of_headline)],
        "a word of the reference is counted as often as it stands there, though the "
        "headline has it less often.": [_counted(_of_reference)],
        "this is the precision alone: what of the headline is right. Who writes one "
        "safe word gets 1.": [_precision],
        "this is the recall alone: what of the reference was found. Who writes every "
        "word there is gets 1.": [_recall],
        "this is the recall alone; and a word of the reference is counted as often as "
        "it stands there, though "
        "the headline has it less often.": [lambda h, r: _recall(h, r, _of_reference)],
        "divided by the longer of the two. F is 2pr / (p + r).": [
            lambda h, r: _common(h, r) / max(len(h), len(r))
        ],
        "the plain mean of precision and recall. F is the harmonic one, 2pr / (p + r), "
        "nearer to the smaller.": [lambda h, r: (_precision(h, r) + _recall(h, r)) / 2],
        "precision times recall. F is 2pr / (p + r).": [
            lambda h, r: _precision(h, r) * _recall(h, r)
        ],
        "the 2 of 2pr / (p + r) is missing: the same words give 1/2.": [
            lambda h, r: rouge_1_by_loops(h, r) / 2
        ],
        "this is in percent: 0 to 1 is asked for.": [
            lambda h, r: 100 * rouge_1_by_loops(h, r)
        ],
        "word by word at the same place. ROUGE-1 doesn't look at the order.": [
            _counted(_at_same_place)
        ],
        "these are pairs of neighbours, ROUGE-2.": [
            _of_changed(lambda words: list(zip(words, words[1:], strict=False)))
        ],
        "words that only begin alike are counted as common. Whole words are "
        "compared.": [
            _of_changed(lambda words, n=n: [word[:n] for word in words])
            for n in (3, 4, 5)
        ],
        "all or nothing: this is the exact match.": [lambda h, r: float(h == r)],
        "this is the number of words in common.": [_common],
        "it divides by 0 where no word is in common: 0 is asked for there.": [
            _unguarded_rouge
        ],
        "it divides by 0 for an empty headline: 0 is asked for there.": [
            lambda h, r: rouge_1_by_loops(h, r) / bool(h)
        ],
    },
)
