"""Three tasks beyond translation, drawn from a seed, with gold links.

`stories`: a story and a question -> the answer. `headlines`: news among habits -> a
headline. `dates`: a written date -> ISO form, letter by letter. Each is a `Corpus`
with the splits train, valid, test and harder ones; no source is in two of them. A link
joins a target word with the source words that decide it. The words of stories and
headlines are those of the Village corpus.
"""

import random
from datetime import date
from string import Formatter
from typing import NamedTuple

from utils.data import Corpus, Pair

# Stories

PEOPLE = ("baker", "farmer", "nurse", "painter")
PLACES = ("garden", "kitchen", "market", "school", "church", "station")
THINGS = ("key", "hat", "letter")
GOES = ("went", "walked", "came")
NEVER_THERE = dict(zip(PEOPLE, PLACES, strict=False))  # in no training story
QUESTIONS = {
    "person": "where is the {} ?",
    "holder": "who has the {} ?",
    "thing": "where is the {} ?",
}
STORY_SIZES = {"train": 16000, "valid": 500, "test": 1000, "new": 500, "long": 1000}


class Event(NamedTuple):
    """Something that happens: someone goes to a place, or takes or sends a thing."""

    who: str
    verb: str
    what: str
    to: str | None = None

    def words(self):
        """The sentence that tells it."""
        to = " to" if self.verb in GOES else ""
        receiver = f" to the {self.to}" if self.to else ""
        return f"the {self.who} {self.verb}{to} the {self.what}{receiver} .".split()


def last_fact(kind, name, events):
    """The answer to a question, and the number of the event that decides it.

    kind: a key of QUESTIONS; name: of whom or what. The last event that says it
    counts. For "thing" two events count: who has it, then where that person is; the
    number is that of the second. None if the story doesn't say.
    """
    if kind == "thing":
        held = last_fact("holder", name, events)
        return held and last_fact("person", held[0], events)
    for n, event in reversed(list(enumerate(events))):
        if kind == "person" and event.who == name and event.verb in GOES:
            return event.what, n
        if kind == "holder" and event.what == name:
            return event.to or event.who, n
    return None


def draw_events(count, rng, everywhere=False):
    """`count` events among three people and two things.

    everywhere: also where NEVER_THERE says that a person never is.
    """
    people, things = rng.sample(PEOPLE, 3), rng.sample(THINGS, 2)
    holder, events = {}, []
    while len(events) < count:
        who, thing = rng.choice(people), rng.choice(things)
        if rng.random() < 0.6:
            place = rng.choice(PLACES)
            if everywhere or NEVER_THERE[who] != place:
                events.append(Event(who, rng.choice(GOES), place))
        elif thing not in holder:
            holder[thing] = who
            events.append(Event(who, "took", thing))
        elif holder[thing] == who:
            holder[thing] = rng.choice([other for other in people if other != who])
            events.append(Event(who, "sent", thing, holder[thing]))
    return events


def ask(kind, name, events):
    """Story and question as a Pair; the link leads to the answer's last mention.

    Tags: the kind of question. The story must say it.
    """
    answer, n = last_fact(kind, name, events)
    sentences = [event.words() for event in events]
    link = (sum(map(len, sentences[:n])) + sentences[n].index(answer), 0)
    source = sum(sentences, []) + QUESTIONS[kind].format(name).split()
    return Pair(tuple(source), (answer,), frozenset({link}), frozenset({kind}))


def draw_story(split, rng):
    """One story with a question that it answers."""
    new = split == "new"
    while True:
        count = rng.randint(6, 10) if split == "long" else rng.randint(2, 5)
        events = draw_events(count, rng, everywhere=new)
        kind = rng.choice(list(QUESTIONS))
        name = rng.choice(PEOPLE if kind == "person" else THINGS)
        fact = last_fact(kind, name, events)
        event = fact and events[fact[1]]
        if event and (not new or event.what == NEVER_THERE[event.who]):
            return ask(kind, name, events)


def stories(sizes=STORY_SIZES, seed=0) -> Corpus:
    """Stories of 2 to 5 sentences with a question; "long": of 6 to 10.

    "new": the answer is a place where that person was in no other split.
    """
    return Corpus("Stories", "en", "en", draw_splits(sizes, draw_story, seed))


# Headlines

REPORTERS = "baker farmer doctor gardener painter carpenter teacher nurse".split()
GOODS = ("table", "chair", "boat", "bicycle", "umbrella", "box", "basket", "cup")
DEEDS = {
    "sold": "sells",
    "bought": "buys",
    "wanted": "wants",
    "drew": "draws",
    "picked": "picks",
    "washed": "washes",
    "cleaned": "cleans",
}
SCENES = ("in garden", "at market", "at mill", "in barn")
SCENES += ("near river", "behind church", "near station", "on hill")
ONCE = ("yesterday", "yesterday evening", "this morning", "last sunday", "last week")
OFTEN = ("every morning", "every evening", "every sunday", "every day", "in summer")
LOOKS = {"who": ("old", "young", "good", ""), "what": ("old", "new", "small", "")}
HEADLINE_SIZES = {"train": 8000, "valid": 500, "test": 500, "new": 500, "long": 500}


def draw_report(rng, news, held_out=False):
    """A sentence of news or habit: its words, and the headline that it would make.

    The headline is a dict: word -> its position in the sentence. held_out: news of
    who and what that no training story has.
    """
    when, verb = rng.choice(ONCE if news else OFTEN), rng.choice(list(DEEDS))
    i, j = rng.randrange(len(REPORTERS)), rng.randrange(len(GOODS))
    if news and held_out != (i == j):
        j = i if held_out else (i + rng.randrange(1, len(GOODS))) % len(GOODS)
    preposition, place = rng.choice(SCENES).split()
    who, what, told = REPORTERS[i], GOODS[j], verb if news else DEEDS[verb]
    words = (
        f"{when} , the {rng.choice(LOOKS['who'])} {who} {told} "
        f"the {rng.choice(LOOKS['what'])} {what} {preposition} the {place} ."
    ).split()
    start = words.index(",")  # a time may begin with the same preposition
    said = who, told, what, preposition, place
    return words, {DEEDS.get(word, word): words.index(word, start) for word in said}


def draw_headline(split, rng):
    """Several sentences, of which some are news, and a headline of all that is news."""
    count = rng.randint(5, 8) if split == "long" else rng.randint(2, 4)
    news = set(rng.sample(range(count), rng.randint(1, count)))
    source, target, links = [], [], set()
    for n in range(count):
        words, shown = draw_report(rng, n in news, split == "new")
        if n in news:
            target += [","] if target else []
            for i, j in enumerate(shown.values(), len(target)):
                links.add((len(source) + j, i))
            target += shown
        source += words
    tags = frozenset({f"{len(news)} news"})
    return Pair(tuple(source), tuple(target), frozenset(links), tags)


def headlines(sizes=HEADLINE_SIZES, seed=0) -> Corpus:
    """2 to 4 sentences of news and habits -> a headline that lists the news.

    News is told in the past. The headline says who does what where, in the present,
    without time, articles and adjectives. "long": 5 to 8 sentences. "new": news with a
    person and a thing that the news of no other split brings together.
    """
    return Corpus("Headlines", "en", "en", draw_splits(sizes, draw_headline, seed))


# Dates

MONTHS = (
    "january february march april may june july august september october "
    "november december"
).split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
DATE_FORMS = (
    "{d} {month} {year}",
    "{d} {mon} {year}",
    "{month} {d}, {year}",
    "{weekday}, {d} {month} {year}",
    "the {nth} of {month} {year}",
    "{dd}/{mm}/{year}",
    "{year} {month} {d}",
    "{year}, {mon} {d}",
)
NEW_FORMS = ("{month} the {nth}, {year}", "{year}/{mm}/{dd}")
SPACE = "␣"
DATE_SIZES = {"train": 8000, "valid": 500, "test": 500, "new": 500, "form": 500}
YEAR, MONTH, DAY = range(4), range(5, 7), range(8, 10)  # their places in 1998-03-07


def date_parts(day):
    """What the fields of a form stand for, and the places of that in ISO form."""
    n, name = day.day, MONTHS[day.month - 1]
    last = 0 if n in (11, 12, 13) else n % 10
    ending = {1: "st", 2: "nd", 3: "rd"}.get(last, "th")
    return {
        "year": (str(day.year), YEAR),
        "month": (name, MONTH),
        "mon": (name[:3], MONTH),
        "mm": (f"{day.month:02}", MONTH),
        "d": (str(n), DAY),
        "dd": (f"{n:02}", DAY),
        "nth": (f"{n}{ending}", DAY),
        "weekday": (WEEKDAYS[day.weekday()], ()),
    }


def write_date(day, form):
    """A date in a form of DATE_FORMS, and in ISO form: a Pair of characters.

    A digit is linked with its digit, or with all letters of the month's name; a day of
    one digit with both of its digits. Tags: the form.
    """
    parts, source, links = date_parts(day), "", set()
    for literal, field, _, _ in Formatter().parse(form):
        source += literal
        if field is None:
            continue
        text, places = parts[field]
        digits = sum(map(str.isdigit, text))
        for k, i in enumerate(places):
            if digits:
                links.add((len(source) + max(0, digits - len(places) + k), i))
            else:
                links |= {(len(source) + j, i) for j in range(len(text))}
        source += text
    source = tuple(source.replace(" ", SPACE))
    return Pair(source, tuple(day.isoformat()), frozenset(links), frozenset({form}))


def draw_date(split, rng):
    """One date. Of ten days, one is kept for valid and one for the other tests."""
    first, last = (2020, 2049) if split == "new" else (1950, 2019)
    range_ = date(first, 1, 1).toordinal(), date(last, 12, 31).toordinal()
    kept = {"train": range(2, 10), "valid": (1,)}.get(split, (0,))
    while True:
        n = rng.randint(*range_)
        if n % 10 in kept:
            forms = NEW_FORMS if split == "form" else DATE_FORMS
            return write_date(date.fromordinal(n), rng.choice(forms))


def dates(sizes=DATE_SIZES, seed=0) -> Corpus:
    """Dates of 1950 to 2019 in eight forms; "new": 2020 to 2049; "form": NEW_FORMS."""
    return Corpus("Dates", "en", "en", draw_splits(sizes, draw_date, seed))


# Words to copy: some are left out of a vocabulary; for each, one that no corpus has

LEFT_OUT = {
    "names": "alice eva nina sophie laura hugo simon victor david daniel".split(),
    "headlines": [*REPORTERS[::2], *GOODS[::2]],
}
OTHERS = (
    "anna odile emma iris alice ines eva agnes marie rita julie lina clara mona nina "
    "carla sophie vera laura hanna paul rolf luc frank thomas peter hugo otto martin "
    "robert simon bruno victor cedric david gaston daniel rene leo marco"
).split()
UNUSED = (
    "pilot judge sailor tailor miller guard dancer spy guitar ladder lamp drum mirror "
    "kettle candle carpet"
).split()
UNSEEN = {  # of names: alike in gender, and in a vowel that comes first
    "names": dict(zip(OTHERS[::2], OTHERS[1::2], strict=True)),
    "headlines": dict(zip((*REPORTERS, *GOODS), UNUSED, strict=True)),
}


def exchange(pairs, words):
    """The pairs that have one of these words, which is changed: {word: new word}."""
    found = [pair for pair in pairs if words.keys() & {*pair.source}]
    sides = [[tuple(words.get(w, w) for w in s) for s in p[:2]] for p in found]
    return [
        pair._replace(source=source, target=target)
        for pair, (source, target) in zip(found, sides, strict=True)
    ]


# What the tasks share


def draw_splits(sizes, draw, seed) -> dict[str, list[Pair]]:
    """sizes[split] pairs of draw, all sources different; ValueError: too many asked."""
    seen, splits = set(), {}
    for split, size in sizes.items():
        rng, pairs, again = random.Random(f"{seed} {split}"), [], 0
        while len(pairs) < size:
            pair = draw(split, rng)
            if pair.source not in seen:
                seen.add(pair.source)
                pairs.append(pair)
            elif (again := again + 1) > 1000 + 20 * len(pairs):
                raise ValueError(f"{split}: {size} asked, but there are {len(pairs)}")
        splits[split] = pairs
    return splits
