"""Draws noun phrases: people, animals and things, and what is said of them."""

from contextlib import contextmanager
from functools import cache

from core import NP, Reject, Row, nouns_of, table

HELD_OUT = {tuple(pair.split()) for pair in table("held_out")}


def chances(text):
    """ "the 2, this 1": what may be drawn, with weights"""
    pairs = (pair.split() for pair in text.split(", "))
    return tuple((item, float(weight)) for item, weight in pairs)


MODES = chances("past 8, habit 5, prog 2.4, future 5, recent 4, perfect 9")
SPEAKERS = ("i", "we", "you")
SUBJECTS = ("i", "i", "you", "we", "he", "she")
NO_VERB = Row(key="", flags="", fr_obj="", dets="")


def avoid(bad):
    """Give up the draft if it has this fault."""
    if bad:
        raise Reject


@cache
def kinds_of(row) -> frozenset:
    return frozenset(row.kinds.split())


@cache
def people_of(kinds) -> list:
    rows, names = nouns_of(kinds), ("kin", "group", "plain", "trade")
    return [[row for row in rows if name in kinds_of(row)] for name in names]


def in_dress(noun):
    return "dress" in noun.kinds  # dress or dress2


def again(np):
    """Somebody once more: the pronoun; i, you, we."""
    return np.mention() if np.person == 3 else NP(person=np.person, plural=np.plural)


def vessels(noun, frame):
    """The measures in which one eats, buys … it."""
    fitting = [m for m in table("measures").values() if noun.key in m.nouns.split()]
    return [m for m in fitting if frame.key in m.frames.split()]


class Draw:
    """One sentence at a time. rich, 0 to 1: how much is said of each thing."""

    def __init__(self, rng):
        self.rng = rng
        self.split, self.force_held = "", False

    def start(self, rich):
        self.rich, self.in_relative = rich, False
        self.used, self.tags, self.pairs = set(), set(), set()
        self.people, self.met = [], False
        self.mode, self.locked = self.weighted(MODES), False
        self.timed = self.general = self.often = self.no_state = False
        self.stopped_by = set()  # what one doesn't do in this weather

    @contextmanager
    def setting(self, **state):
        """Other values of some attributes, for a while."""
        old = {name: getattr(self, name) for name in state}
        vars(self).update(state)
        yield
        vars(self).update(old)

    def p(self, chance) -> bool:
        return self.rng.random() < chance

    def one(self, items):
        if not items:
            raise Reject
        return items[int(self.rng.random() * len(items))]

    def weighted(self, pairs):
        left = self.rng.random() * sum(weight for _, weight in pairs)
        for item, weight in pairs:
            left -= weight
            if left < 0:
                return item
        raise Reject

    def need(self, *modes):
        """Say the next in one of the modes; an earlier clause may have set it."""
        if self.mode not in modes:
            avoid(self.locked)
            self.mode = self.one(modes)

    def unused(self, rows):
        return [row for row in rows if row.key not in self.used]

    def pick(self, rows):
        """A row whose word isn't in the sentence yet."""
        row = self.one(self.unused(rows))
        self.used |= {row.key, getattr(row, "fr", row.key)}
        return row

    def noun(self, rows, **more) -> NP:
        """A noun that isn't in the sentence yet."""
        row = self.pick(rows)
        return NP(row, gender=row.gender, **more)

    def place_noun(self, row) -> NP:
        """The noun of a row of places.tsv."""
        noun = table("nouns")[row.noun]
        self.used |= {noun.key, noun.fr}
        return NP(noun, gender=noun.gender)

    def person(self, kinds="person", subject=False, plural=True):
        """Somebody new in the sentence."""
        chance = self.rng.random()
        kinds = set(kinds.split())
        if subject and chance < 0.2:
            return self.speaker(SUBJECTS)
        if not subject and chance < 0.12:
            return self.speaker()
        if chance < 0.42 and kinds & {"person", "adult", "young", "trade", "child"}:
            return self.named(kinds & {"person", "adult"})
        return self.by_noun({"person"} & kinds or kinds, subject, plural)

    def speaker(self, keys=SPEAKERS):
        """i, you, we; he or she, as long as nobody else could be meant."""
        out = set(self.used)
        if self.met or self.in_relative:
            out |= {"he", "she"}
        if out & {"i", "we"}:
            out |= {"i", "we"}
        key = self.one([k for k in keys if k not in out])
        if key in ("he", "she"):
            return self.cast(NP(pronoun=True, gender="m" if key == "he" else "f"))
        self.used.add(key)
        return NP(person=1 + (key == "you"), plural=key == "we")

    def named(self, grown=()):
        """anna, the baker anna, my friend anna"""
        here, names = self.split, table("names").values()
        np = self.by_name([r for r in names if r.split == here or here and self.p(0.3)])
        if grown and self.p(0.2):
            np.noun = self.pick(nouns_of("trade"))
        elif grown and self.p(0.12):
            np.noun, np.det = self.pick(nouns_of("bond")), "poss"
            np.owner = self.speaker()
        return self.cast(np)

    def by_name(self, rows=None):
        names = table("names").values()
        name = self.pick(rows or [r for r in names if r.split == self.split])
        return NP(name=name, gender=name.gender, det="none")

    def by_noun(self, kinds, subject, plural):
        """my aunt, the girls, this woman, the baker"""
        kin, group, plain, trade = map(self.unused, people_of(" ".join(kinds)))
        if "child" in kinds or self.p(0.1):
            group.append(table("nouns")["child"])
        group, trade = group if plural else [], trade if subject else []
        options = ((kin, 4), (group, 3), (plain, 3), (trade, 3))
        rows = self.weighted([option for option in options if option[0]])
        noun = self.pick(rows)
        if rows is kin:
            return self.cast(self.relation(noun))
        np = NP(noun, gender=noun.gender.replace("mf", "m"))
        if rows is group:
            self.group(np, subject)
        elif noun.gender == "mf":
            np.gender = self.one(["m", "f"])
        self.describe(np)
        if rows is plain and self.p(0.25):
            np.det = "this" if subject else self.one(["this", "a"])
        if not np.number and self.p(0.45 + 0.5 * self.rich):
            self.relative(np, subject)
        return self.cast(np)

    def group(self, np, subject):
        """the girls, all the girls, these girls, three girls"""
        dets = "the 5, all 1.6, this 1" if subject else "the 5, this 1"
        np.det, np.plural = self.weighted(chances(dets)), True
        if np.det == "the" and self.p(0.15):
            np.det, np.number = "bare", self.number()

    def relation(self, noun):
        """my aunt, her brother, anna's son"""
        np = NP(noun, gender=noun.gender, det="poss")
        if "of" in kinds_of(noun) and self.p(0.5):
            np.det, np.owner = "own", self.cast(self.by_name())
            return np
        others = [q for q in self.people if not (q.pronoun or q.plural)]
        others = [q for q in others if not (q.is_a("kin") or q.is_a("child"))]
        old = others and self.p(0.35)
        np.owner = others[-1].mention() if old else self.speaker(("i", *SPEAKERS))
        return np

    def cast(self, np):
        self.met = True
        self.people.append(np)
        return np

    def number(self, most=5):
        return self.one(list(table("numbers").values())[:most])

    def somebody(self, kinds, subject=False):
        """A person or an animal for one of the roles."""
        rows = nouns_of(kinds)
        animals = [row for row in rows if "animal" in kinds_of(row)]
        if animals and (len(animals) == len(rows) or self.p(0.25)):
            return self.animal(animals)
        kinds = (k for k in kinds.split() if not k.startswith("animal"))
        return self.person(" ".join(kinds), subject)

    def animal(self, rows):
        np = self.noun(rows)
        dets = "the 4, this 1" + ", poss 2, own 1" * np.is_a("animal_tame")
        np.det = self.weighted(chances(dets))
        if np.det in ("poss", "own"):
            np.owner = self.owner() if np.det == "poss" else self.owner_noun()
        np.plural = self.p(0.35)
        self.describe(np)
        return np

    def thing(self, kinds, dets=None, frame=NO_VERB, owner=None):
        """Something of these kinds; dets: its determiner, else what suits the verb."""
        rows = nouns_of(kinds)
        if self.p(0.4):
            rows = [r for r in rows if "compound" not in kinds_of(r)] or rows
        np, dets = self.noun(rows), dets or frame.dets
        dets = chances(dets) if dets else self.determiners(np.noun, frame, owner)
        self.determine(np, self.weighted(dets), frame, owner)
        his = np.owner and np.owner.person == 3 and np.owner.gender == "m"
        avoid(his and in_dress(np.noun))
        self.agree(np, frame)
        self.describe_thing(np, frame)
        chance = 0.3 + 0.6 * self.rich
        if np.det == "the" and not frame.has("class:garden") and self.p(chance):
            self.relative(np)
        return np

    def determiners(self, noun, frame, owner):
        """What may stand before the object of a verb, with weights."""
        kinds = kinds_of(noun)
        if frame.key == "like":
            generic = kinds & {"food", "drink", "animal", "read"}
            return (("bare", 3 * bool(generic)), ("the", 2), ("this", 1))
        if "sound" in kinds:
            return chances("bare 1")
        placed = kinds & {"place", "building", "view"}
        if frame.has("inverse"):
            return (("the", 4), ("this", 1), ("own", 0 if placed else 2))
        if frame.has("def") and (placed or "wild" in kinds):
            return (("the", 4), ("this", 1), ("poss", "owned" in kinds))
        if frame.has("def"):
            poss, many = 2 * ("part" not in kinds), bool(noun.plural)
            known = (("the", 4), ("poss", poss), ("this", 1), ("own", 2))
            return (*known, ("these", 0.3 * many))
        return self.new_determiners(noun, frame, owner)

    def new_determiners(self, noun, frame, owner):
        """What stands before something that is told of for the first time, mostly."""
        kinds, many = kinds_of(noun), bool(noun.plural)
        habit, going_on = self.mode == "habit", self.mode == "prog"
        new = not habit
        loose = self.mode in ("habit", "future", "prog")
        shared = owner.plural and self.mode != "past"  # they don't all drink one cup
        measured = bool(vessels(noun, frame)) and not shared
        if "mass" in kinds:
            dets = (("some", 2 * new), ("measure", 3 * measured), ("bare", 3 * loose))
            return dets if frame.has("indef") or habit else (*dets, ("the", 1))
        few = many and not (habit or going_on or frame.has("few"))
        dets = (
            ("a", 4 * new),
            ("number", 3 * few),
            ("some", 0.7 * many * (new and frame.fr_obj != "de")),
            ("measure", measured),
            ("bare", 3 * many * (loose and not frame.has("ditrans"))),
            ("many", 0.7 * many * (not going_on)),
        )
        eats = habit and kinds & {"food", "tale", "mail"}
        if frame.has("indef") or eats:
            return dets
        uneaten = not frame.has("class:eat")  # this pear is gone
        return (*dets, ("the", 2), ("this", uneaten), ("poss", 0.6))

    def determine(self, np, det, frame, owner):
        """Put the determiner before the noun, with the number or owner it needs."""
        np.det, countable = det, bool(np.noun.plural)
        if det == "number":
            np.det, np.plural, np.number = "bare", True, self.number()
        elif det == "these":
            np.det, np.plural = "this", True
        elif det in ("bare", "some", "many"):
            np.plural = countable
        elif det == "measure":
            self.measure(np, frame)
        elif det == "poss":
            np.owner = self.owner(owner)
        elif det == "own":
            np.owner = self.owner_noun()
        elif det == "the" and countable and self.p(0.25):
            np.plural = True

    @staticmethod
    def agree(np, frame):
        """Singular or plural, and the determiner that goes with it."""
        dressing = np.is_a("hat") or np.is_a("coat")  # they put on their hats
        if np.det == "poss" and (frame.has("own") or dressing and np.owner.plural):
            np.plural = np.owner.plural and bool(np.noun.plural)
        uncountable = np.is_a("mass") or np.is_a("sound")
        if np.det in ("bare", "some") and not np.plural and not uncountable:
            np.det = "a"  # a newspaper, which has no plural here
        such = frame.has("state") and not frame.has("nogeneric")
        np.generic = such and np.det == "bare"
        if np.is_a("handful") and np.det == "a" and not np.measure:
            np.det, np.plural = "some", True  # nobody eats a cherry
        loose = np.det in ("bare", "some", "many") and not np.number
        if np.is_a("dinner") and loose:
            np.plural = not (frame.has("class:eat") or frame.has("class:cook"))
            np.det = np.det if np.plural else "some"  # eats some fish

    def describe_thing(self, np, frame):
        if not (np.is_a("seasonal") and np.det == "poss"):  # 我 那 件 旧 的 厚 大衣
            self.describe(np, old=not frame.has("creates"))
        if not np.is_a("dinner"):
            return
        dish = any(map(frame.has, ("class:eat", "class:cook", "class:beast")))
        if not dish:  # no fresh fish in the river
            np.adjs = [a for a in np.adjs if a.key != "fresh"]
        elif not np.plural:  # but no big fish on the table
            np.adjs = [a for a in np.adjs if a.key == "fresh"]

    def describe(self, np, chance=None, old=True):
        """Perhaps an adjective that suits the noun."""
        keys = np.noun.adjectives.split()
        chance = 0.3 + 0.5 * self.rich if chance is None else chance
        if not keys or not (self.p(chance) or self.force_held):
            return
        rows = [table("adjectives")[k] for k in keys if old or not k.startswith("old")]
        held = [a for a in rows if (a.en, np.noun.en) in HELD_OUT]
        free = [a for a in rows if a not in held]
        rows = (held or free) if self.force_held else free
        colours = [a for a in rows if a.flags == "colour"]
        np.adjs = [self.one(colours if colours and self.p(0.3) else rows)]
        if np.adjs[0].key == "small" and self.p(0.3):
            np.adjs += colours[:1]
        if np.det == "many":
            np.adjs = []

    def measure(self, np, frame):
        """a cup of tea, two kilos of apples"""
        np.measure, np.det = self.one(vessels(np.noun, frame)), "a"
        np.plural = bool(np.noun.plural) and np.measure.key != "piece"
        if self.p(0.5) and self.mode not in ("habit", "prog"):
            np.number = self.number(3)

    def owner(self, subject=None):
        """The subject's own thing, mostly."""
        return again(subject) if subject and subject.human else self.speaker()

    def owner_noun(self):
        """anna's, my aunt's"""
        if not self.p(0.5):
            return self.cast(self.by_name())
        np = self.noun(nouns_of("kin"), det="poss")
        np.owner = self.speaker()
        return self.cast(np)
