"""Draws what is said: who does what, to whom, where, when and why."""

from functools import cache

from core import (
    NP,
    Adverb,
    Clause,
    Joined,
    Place,
    Reject,
    Relative,
    Weather,
    fresh_ids,
    nouns_of,
    table,
)

HELD_OUT = {
    tuple(pair.split())
    for pair in (
        "beautiful garden, big tree, black dog, blue boat, fresh egg, good doctor, "
        "green hat, hot milk, new chair, old bridge, red door, little duck, "
        "white dress, white horse, yellow flower, young fisher"
    ).split(", ")
}
MODES = (
    ("past", 8),
    ("habit", 5),
    ("prog", 2.4),
    ("future", 5),
    ("recent", 4),
    ("perfect", 9),
)


class Draw:
    """One sentence at a time. rich, 0 to 1: how much is said of each thing."""

    def __init__(self, rng):
        self.rng = rng
        self.split, self.force_held = "", False

    def start(self, rich):
        fresh_ids()
        self.rich, self.depth = rich, 0
        self.used, self.rows, self.tags = set(), set(), set()
        self.pairs, self.people, self.genders = set(), [], set()
        self.mode, self.locked = self.weighted(MODES), False
        self.timed = self.general = self.often = self.no_state = False
        self.stopped_by = set()

    # Chance

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
            if self.locked:
                raise Reject
            self.mode = self.one(modes)

    def row(self, name, key):
        row = table(name)[key]
        self.rows.add(row)
        return row

    def pick(self, rows):
        row = self.one([r for r in rows if r.key not in self.used])
        self.rows.add(row)
        self.used |= {row.key, getattr(row, "fr", row.key)}
        return row

    # People

    def person(self, kinds="person", subject=False, plural=True):
        """Somebody new in the sentence."""
        chance = self.rng.random()
        kinds = kinds.split()
        if subject and chance < 0.2:
            return self.speaker()
        if not subject and chance < 0.12:
            return self.speaker(("i", "we", "you"))
        named = set(kinds) & {"person", "adult", "young", "trade", "child"}
        if named and chance < 0.42:
            return self.named(set(kinds) & {"person", "adult"})
        return self.by_noun(kinds, subject, plural)

    def speaker(self, keys=("i", "i", "you", "we", "he", "she")):
        stray = {"he", "she"} if self.genders or self.depth else set()
        stray |= {"i": {"we"}, "we": {"i"}}.get(
            next(iter(self.used & {"i", "we"}), ""), set()
        )
        key = self.one([k for k in keys if k not in self.used | stray])
        self.used |= {key, "he", "she", "they"} if key in ("he", "she") else {key}
        if key in ("he", "she"):
            return self.cast(NP(pronoun=True, gender="m" if key == "he" else "f"))
        return NP(person=1 + (key == "you"), plural=key == "we")

    def named(self, grown):
        wanted = [
            r
            for r in table("names").values()
            if (r.split == self.split or (self.split and self.p(0.3)))
        ]
        name = self.pick(wanted)
        np = NP(name=name, gender=name.gender, det="none")
        if grown and self.p(0.2):
            np.noun = self.pick(nouns_of("trade"))
        elif grown and self.p(0.12):
            np.noun, np.det = self.pick(nouns_of("bond")), "poss"
            np.owner = self.speaker(("i", "we", "you"))
        return self.cast(np)

    def by_noun(self, kinds, subject, plural):
        wanted = {"person"} & set(kinds) or set(kinds)
        pool = [r for r in nouns_of(" ".join(wanted)) if r.key not in self.used]
        people = [r for r in pool if "person" in r.kinds.split()]
        group = [
            r
            for r in people
            if r.plural and "group" in r.kinds and r.key not in ("man",)
        ]
        kin = [r for r in people if "kin" in r.kinds.split()]
        plain = [r for r in people if "plain" in r.kinds.split()]
        if "child" in wanted or self.p(0.1):
            group += [table("nouns")["child"]]
        trade = [r for r in people if "trade" in r.kinds.split()]
        options = [
            (kin, 4),
            (group if plural else [], 3),
            (plain, 3),
            (trade if subject else [], 3),
        ]
        options = [(rows, weight) for rows, weight in options if rows]
        if not options:
            raise Reject
        rows = self.weighted(options)
        noun = self.pick(rows)
        if rows is kin:
            return self.cast(self.relation(noun))
        many = rows is group
        np = NP(noun, plural=many, gender=self.gender_of(noun, many))
        np.det = (
            self.weighted((("the", 5), ("all", 1.6 if subject else 0), ("this", 1)))
            if many
            else "the"
        )
        if many and np.det == "the" and self.p(0.15):
            np.det, np.number = "bare", self.number()
        self.describe(np)
        if not many and rows is plain and self.p(0.25):
            np.det = "this" if subject else self.one(["this", "a"])
        if not np.number and self.p(0.45 + 0.5 * self.rich):
            self.relative(np, subject)
        return self.cast(np)

    def gender_of(self, noun, many):
        if noun.gender != "mf":
            return noun.gender
        return "m" if many else self.one(["m", "f"])

    def relation(self, noun):
        np = NP(noun, gender=noun.gender, det="poss")
        if "of" in noun.kinds.split() and self.p(0.5):
            np.det = "own"
            np.owner = self.cast(NP(name=self.named_row(), det="none"))
            np.owner.gender = np.owner.name.gender
            return np
        there = [q for q in self.people if not q.pronoun and not q.plural and q.human]
        there = [q for q in there if not q.is_a("kin") and not q.is_a("child")]
        if there and self.p(0.35) and "3" not in self.used:
            np.owner = there[-1].mention()
            return np
        np.owner = self.speaker(("i", "i", "we", "you"))
        return np

    def named_row(self):
        return self.pick([r for r in table("names").values() if r.split == self.split])

    def cast(self, np):
        self.genders.add(np.gender)
        self.people.append(np)
        return np

    def number(self):
        return self.one(list(table("numbers").values()))

    # Things and animals

    def describe(self, np, chance=None, old=True):
        """Perhaps an adjective that suits the noun."""
        keys = np.noun.adjectives.split()
        chance = 0.3 + 0.5 * self.rich if chance is None else chance
        if not keys or np.name or not (self.p(chance) or self.force_held):
            return
        rows = [table("adjectives")[k] for k in keys if old or not k.startswith("old")]
        if not rows:
            return
        held = [a for a in rows if (a.en, np.noun.en) in HELD_OUT]
        if self.force_held and held:
            rows = held
        elif not self.force_held:
            rows = [a for a in rows if a not in held]
        colours = [a for a in rows if "colour" in a.flags]
        np.adjs = [self.one(colours if colours and self.p(0.3) else rows)]
        if np.adjs[0].key == "small" and self.p(0.3):
            np.adjs += [a for a in rows if a.flags == "colour"][:1]
        if np.det == "many":
            np.adjs = []
        self.rows.update(np.adjs)

    def thing(self, kinds, frame=None, owner=None, dets=None):
        rows = nouns_of(kinds)
        if self.p(0.4):
            rows = [r for r in rows if "compound" not in r.kinds] or rows
        noun = self.pick(rows)
        if "person" in noun.kinds.split():
            raise Reject
        np = NP(noun, gender=noun.gender)
        flags = frame.flags.split() if frame else []
        if dets is None:
            dets = self.determiners(noun, flags, frame, owner)
        np.det = self.weighted(dets)
        if np.det in ("number", "these"):
            np.plural = True
            np.number = self.number() if np.det == "number" else None
            np.det = "bare" if np.det == "number" else "this"
        elif np.det in ("bare", "some", "many"):
            np.plural = bool(noun.plural)
        elif np.det == "measure":
            self.measure(np, frame)
        elif np.det == "poss":
            np.owner = self.owner(owner)
        elif np.det == "own":
            np.owner = self.owner_noun()
        elif np.det == "the" and noun.plural and "own" not in flags and self.p(0.25):
            np.plural = True
        if (
            np.owner
            and "dress" in np.noun.kinds
            and np.owner.person == 3
            and np.owner.gender == "m"
        ):
            raise Reject
        if (
            np.det == "poss"
            and np.owner.plural
            and {"hat", "coat"} & set(noun.kinds.split())
        ):
            np.plural = bool(noun.plural)
        if "own" in flags and owner is not None and np.det in ("the", "poss"):
            np.plural = owner.plural and bool(noun.plural)
        if (
            np.det in ("bare", "some")
            and not np.plural
            and "mass" not in noun.kinds.split()
        ):
            if noun.key != "music":
                np.det = "a"
        np.generic = "state" in flags and np.det == "bare" and "nogeneric" not in flags
        if np.is_a("handful") and np.det == "a" and not np.measure and not np.number:
            np.det, np.plural = "some", True
        if np.is_a("dinner") and np.det in ("bare", "some", "many") and not np.number:
            np.plural = not {"class:eat", "class:cook"} & set(flags)
            np.det = np.det if np.plural else "some"
        dish = {"class:eat", "class:cook", "class:beast"} & set(flags)
        if not (np.is_a("seasonal") and np.det == "poss"):  # 我 那 件 旧 的 厚 大衣
            self.describe(np, old="creates" not in flags)
        if np.is_a("dinner") and not dish:  # no fresh fish in the river
            np.adjs = [a for a in np.adjs if a.key != "fresh"]
        elif np.is_a("dinner") and not np.plural:  # but no big fish on the table
            np.adjs = [a for a in np.adjs if a.key == "fresh"]
        if (
            np.det == "the"
            and "class:garden" not in flags
            and self.p(0.3 + 0.6 * self.rich)
        ):
            self.relative(np)
        return np

    def determiners(self, noun, flags, frame, owner):
        """What may stand before the noun, with weights."""
        kinds, many = noun.kinds.split(), bool(noun.plural)
        habit = self.mode == "habit"
        measured = bool(frame and vessels(noun, frame))
        if owner is not None and owner.plural and self.mode != "past":
            measured = False  # they don't all drink one cup
        if "state" in flags and frame.key in ("like", "prefer"):
            generic = set(kinds) & {
                "food",
                "mass",
                "animal",
                "read",
                "sound",
                "drink",
                "music",
            }
            some = frame.key == "like"  # one prefers tea, not the tea
            known = (("the", 2 * some), ("this", some))
            return (("bare", 3 if generic else 0), *known)
        if "sky" in kinds or "sound" in kinds or "surface" in kinds:
            return (("bare" if "sound" in kinds else "the", 1),)
        if "own" in flags:
            return (("poss", 1),)
        if frame and (frame.has("progonly") or frame.has("expneed")):
            return (("a", 1),)
        if frame and frame.key in ("own", "give_back"):
            return (("the", 2), ("this", 1))
        if frame and frame.has("inverse"):
            placed = {"place", "building", "view"} & set(kinds)
            return (("the", 4), ("this", 1), ("own", 0 if placed else 2))
        if frame and frame.key == "afraid_of":
            return (("bare", 3), ("the", 2), ("this", 1))
        if "def" in flags and set(kinds) & {"place", "building", "view", "wild"}:
            return (("the", 4), ("this", 1), ("poss", 1 if "owned" in kinds else 0))
        if "def" in flags:
            return (
                ("the", 4),
                ("poss", 2 * ("part" not in kinds)),
                ("this", 1),
                ("own", 2),
                ("these", 0.3 * many),
            )
        loose = self.mode in ("habit", "future", "prog")
        if "mass" in kinds:
            found = (
                ("some", 2 * (not habit)),
                ("measure", 3 * measured),
                ("bare", 3 * loose),
            )
            return (
                found
                if "indef" in flags or self.mode == "habit"
                else (*found, ("the", 1))
            )
        few = many and self.mode not in ("habit", "prog") and "few" not in flags
        found = (
            ("a", 4 * (not habit)),
            ("number", 3 * few),
            ("some", 0.7 * many * (not habit and not (frame and frame.fr_obj == "de"))),
            ("measure", measured),
        )
        loose = loose and "ditrans" not in flags
        found = (
            *found,
            ("bare", 3 * many * loose),
            ("many", 0.7 * many * (self.mode != "prog")),
        )
        uneaten = "class:eat" not in flags  # this pear is gone
        eats = self.mode == "habit" and {"food", "mass", "tale", "mail"} & set(kinds)
        return (
            found
            if "indef" in flags or eats
            else (*found, ("the", 2), ("this", uneaten), ("poss", 0.6))
        )

    def measure(self, np, frame):
        np.measure, np.det = self.one(vessels(np.noun, frame)), "a"
        self.rows.add(np.measure)
        np.plural = bool(np.noun.plural) and np.measure.key != "piece"
        if self.p(0.5) and self.mode not in ("habit", "prog"):
            np.number = self.one(list(table("numbers").values())[:3])

    def owner(self, subject):
        """The subject's own thing, mostly."""
        if subject is None or not subject.human:
            return self.speaker(("i", "we", "you"))
        return subject.mention() if subject.person == 3 else again(subject)

    def owner_noun(self):
        noun = self.pick(nouns_of("kin")) if self.p(0.5) else None
        if noun is None:
            return self.cast(self.named_plain())
        np = NP(noun, gender=noun.gender, det="poss")
        np.owner = self.speaker(("i", "we", "you"))
        return self.cast(np)

    def named_plain(self):
        name = self.named_row()
        return NP(name=name, gender=name.gender, det="none")

    def animal(self, kinds, plural=True):
        noun = self.pick(nouns_of(kinds))
        np = NP(noun, gender=noun.gender)
        tame = "animal_tame" in noun.kinds
        np.det = self.weighted(
            (("the", 4), ("this", 1), ("poss", 2 * tame), ("own", tame))
        )
        if np.det == "poss":
            np.owner = self.speaker(("i", "we", "you"))
        if np.det == "own":
            np.owner = self.owner_noun()
        np.plural = plural and bool(noun.plural) and self.p(0.35)
        self.describe(np)
        return np

    def somebody(self, kinds, subject=False, plural=True):
        """A person or an animal for one of the roles."""
        rows = nouns_of(kinds) if kinds else ()
        animals = [r for r in rows if "animal" in r.kinds.split()]
        if animals and (len(animals) == len(rows) or self.p(0.25)):
            return self.animal(" ".join(r.key for r in animals), plural)
        kinds = " ".join(k for k in kinds.split() if not k.startswith("animal"))
        return self.person(kinds, subject, plural)

    # Relative clauses

    def relative(self, np, subject=False):
        if (
            self.depth
            or np.rel
            or np.pronoun
            or np.det in ("all", "own", "poss", "none")
        ):
            return
        self.depth += 1
        timed, self.timed = self.timed, True
        keep, self.mode = self.mode, "habit" if self.mode == "habit" else "past"
        maker = self.weighted(self.relatives(np, subject))
        maker(np)
        self.mode, self.timed = keep, timed
        self.depth -= 1

    def relatives(self, np, subject):
        if np.human:  # after 给, 等, 比 one would hear: to, for, than dad
            whose = 3.5 if subject else 0
            return (
                (self.rel_subject, 5),
                (self.rel_object, 3),
                (self.rel_whose, whose),
            )
        if np.is_a("place") or np.is_a("building"):
            return ((self.rel_where, 9), (self.rel_whose, 1))
        if np.is_a("animal"):
            return ((self.rel_subject, 2), (self.rel_object, 3))
        return ((self.rel_object, 4), (self.rel_of, 8), (self.rel_whose, 0.2))

    def rel_subject(self, np):
        modes = ("state",) if self.mode == "habit" else None  # the man who knows us
        dull = [
            "class:rest",
            "class:wear",
            "arrive",
            "inverse",
            "love",
            "lend",
            "sell",
            "sell_food",
        ]
        frames = [
            f
            for f in self.frames(modes)
            if self.suits(f.subj, np)
            and f.key not in dull
            and not any(map(f.has, dull))
        ]
        if self.p(0.2) and np.human:
            thing = self.thing("animal_tame machine", dets=(("a", 1),))
            if np.plural:
                raise Reject  # three women with one hen
            clause = Clause(self.row("frames", "have"), self.gap(np), obj=thing)
        else:
            clause = self.event(frames, subj=self.gap(np))
            if clause.obj is None and clause.place is None:
                self.set_place(
                    clause, self.place(clause.frame.place.lstrip("+") or "none")
                )
        np.rel = Relative("subj", self.plain(clause))

    def gap(self, np):
        return NP(np.noun, np.person, np.plural, np.gender, name=np.name, of=np)

    def rel_object(self, np):
        frames = [
            f
            for f in self.frames(
                ("past", "state") if self.mode != "habit" else ("state",)
            )
            if self.suits(f.obj, np) and f.fr_obj != "à" and f.fr_obj != "de"
        ]
        self.mode = self.mode if self.mode == "habit" else "past"
        frames = [
            f
            for f in frames
            if not f.has("progonly") and not {"*", "_"} & {*f.en, *f.zh}
        ]
        bad = ("norel", "ditrans", "class:beast")
        frames = [f for f in frames if f.key != "draw" and not any(map(f.has, bad))]
        clause = self.event(frames, obj=self.gap(np), subj_named=True)
        clause.gap = "obj"
        bare = (
            not np.human and self.p(0.5) and not (clause.subj.name and clause.subj.noun)
        )
        np.rel = Relative("obj", self.plain(clause), bare=bare)

    def rel_of(self, np):
        frames = [
            f for f in table("frames").values() if f.fr_obj == "de" and float(f.weight)
        ]
        frames = [f for f in frames if self.suits(f.obj, np) and f.key != "look_after"]
        keep, self.mode = self.mode, "habit"
        clause = self.event(frames, obj=self.gap(np), subj_named=True)
        self.mode = keep
        if clause.frame.key == "talk_about" and keep != "habit":
            clause.tense = "past"
        bare = self.p(0.4) and not (clause.subj.name and clause.subj.noun)
        np.rel = Relative("of", self.plain(clause), bare=bare)

    def rel_whose(self, np):
        old = any(a.en == "old" for a in np.adjs)
        if np.human and (np.is_a("child") or old):
            if old or np.number:
                raise Reject
            pool = nouns_of("mother father")
        elif np.human and np.plural:
            raise Reject
        elif np.human:
            pool = nouns_of("mother father brother sister")
        else:
            pool = nouns_of("door window")
        noun = self.pick(pool)
        owned = NP(noun, gender=noun.gender, det="none")
        owned.plural = noun.key == "window"
        if "kin" in noun.kinds:
            trades = [r for r in nouns_of("trade") if r.key != "student"]
            clause = Clause(self.row("frames", "be"), owned, comp=self.pick(trades))
        else:
            clause = self.quality(owned)
            clause.bare = ""
        np.rel = Relative("whose", clause)

    def rel_where(self, np):
        kinds = {
            k
            for r in table("places").values()
            if r.noun == np.noun.key and r.prep in ("in", "at", "on")
            for k in r.kinds.split()
        }
        frame = self.row("frames", self.one(sorted(kinds & {"live", "work"})))
        mode = "state" if frame.has("state") else self.mode
        subj = self.person("adult", subject=True, plural=False)
        clause = Clause(frame, subj, tense="past" if mode == "past" else "present")
        if clause.tense == "past":
            raise Reject
        np.rel = Relative("where", clause)

    def plain(self, clause):
        """A relative clause says no more than it must."""
        clause.manner = clause.adverb = None
        clause.neg, clause.front, clause.main = "", False, False
        return clause

    # Events

    def frames(self, modes=None, wanted=None):
        """Frames that can be said in the mode; wanted: classes or keys."""
        found = said_in(modes or (self.mode,))
        if wanted is None:
            return list(found)
        return [
            f for f in found if f.key in wanted or set(f.flags.split()) & set(wanted)
        ]

    def suits(self, kinds, np):
        """Can the phrase have this role?"""
        if not kinds or kinds == "-":
            return False
        kinds = kinds.lstrip("+").split()
        if np.human and (np.noun is None or np.person < 3):
            return bool({"person", "adult", "young"} & set(kinds))
        return bool({np.noun.key, *np.noun.kinds.split()} & set(kinds))

    def event(
        self, frames=None, subj=None, obj=None, subj_named=False, place=None, mode=None
    ):
        mode = mode or self.mode
        frames = frames if frames is not None else self.frames()
        if subj is not None:
            frames = [f for f in frames if self.suits(f.subj, subj)]
        if place is not None:
            frames = [f for f in frames if f.place]
        frames = [f for f in frames if can(f, mode) or f.has("state")]
        if not self.depth:  # no swimming while it snows
            frames = [
                f for f in frames if not {f.key, *f.flags.split()} & self.stopped_by
            ]
        if self.no_state and not self.depth:  # as if it held only while it rains
            frames = [f for f in frames if not f.has("state")]
        fresh = [f for f in frames if f.key not in self.used]
        frame = self.weighted([(f, float(f.weight)) for f in fresh])
        self.rows.add(frame)
        label = frame.flags.split("class:")[-1]
        self.used |= {frame.key, label} & set(table("frames"))
        if subj is None:
            kinds = " ".join(k for k in frame.subj.split())
            subj = self.somebody(kinds, subject=not subj_named or self.p(0.4))
        clause = Clause(frame, subj)
        if frame.obj or obj:
            clause.obj = obj or self.role_object(frame, subj)
        self.recipient(clause)
        self.set_mode(clause, mode)
        self.set_place(clause, place)
        self.set_time(clause, mode)
        self.extras(clause, mode)
        if clause.subj.det == "all" and shared_out(clause):
            raise Reject
        if frame.key == "own" and clause.subj.rel:
            raise Reject
        if frame.key == "visit" and clause.obj.person < 3:
            raise Reject  # 来, not 去
        bare = not (clause.time or clause.adverb or clause.modal or clause.neg)
        if mode == "habit" and bare and clause.manner and not self.general:
            raise Reject  # swims for two hours: how often?
        bare = bare and not clause.manner
        settled = self.general or self.depth or frame.has("state")
        if mode == "habit" and bare and not settled:
            self.set_time(clause, mode, always=True)
            lost = self.often or clause.subj.det == "all" or frame.key == "go_home"
            if clause.time is None and lost:
                raise Reject  # she reads: when, how often?
            if clause.time is None:
                often = self.row("adverbs", self.one(["often", "sometimes"]))
                clause.adverb = Adverb(often)
        if frame.has("sense"):
            self.tags.add("word-sense")
        if frame.has("idiom"):
            self.tags.add("idiom")
        return clause

    def role_object(self, frame, subj):
        rows = nouns_of(frame.obj)
        people = [r for r in rows if "person" in r.kinds.split()]
        if people and (len(people) == len(rows) or self.p(0.6)):
            return self.somebody(frame.obj)
        if frame.has("class:wear") and feminine_wearer(subj):
            rows = [r for r in rows if "dress" not in r.kinds]
        things = " ".join(r.key for r in rows if r not in people)
        np = self.thing(things, frame, owner=subj)
        if frame.key == "write":  # one hears how beautiful a story is
            np.adjs = []
        return np

    def recipient(self, clause):
        frame = clause.frame
        if not frame.to or (not frame.to.startswith("+") and self.p(0.6)):
            return
        if frame.has("for") and self.p(0.5):
            return
        if clause.obj.of is not None and clause.obj.pronoun is False:
            return
        clause.to = self.person()
        if clause.to.pronoun and clause.to.person == 3:
            raise Reject
        if (
            clause.obj.noun
            and "dress" in clause.obj.noun.kinds
            and feminine_wearer(clause.to)
        ):
            raise Reject
        if frame.has("gei") or clause.to.rel and clause.to.rel.clause.to:
            clause.to.rel = None  # 给 那 个 给 …
        clause.shift = frame.has("ditrans") and (
            (self.p(0.9) and clause.to.det != "a") or clause.obj.rel is not None
        )
        if clause.to.number and clause.obj.number:
            raise Reject  # three flowers to four girls
        light = clause.to.pronoun or clause.to.person < 3  # told us a story
        clause.shift = clause.shift or frame.has("ditrans") and light
        clause.shift = clause.shift and not clause.obj.pronoun and clause.to.rel is None
        if clause.obj.rel and not clause.shift:
            raise Reject  # gave the boat that the girl needs to us

    def set_mode(self, clause, mode):
        if clause.frame.has("state"):
            clause.tense = "present"
            return
        clause.tense = "present" if mode == "habit" else mode

    def set_place(self, clause, place):
        frame = clause.frame
        if place is not None:
            clause.place = place
        elif frame.place.startswith("+") or (frame.place and self.p(0.85)):
            clause.place = self.place(frame.place.lstrip("+"), clause.subj)

    def place(self, kinds, subj=None):
        wanted = set(kinds.split())
        rows = [
            r
            for r in table("places").values()
            if wanted & {r.key, *r.kinds.split()} and r.noun not in self.used
        ]
        if "goal" in wanted:
            rows = [
                r for r in rows if r.prep not in ("behind", "front", "near", "under")
            ]
        row = self.one(rows)
        self.rows.add(row)
        prep = self.row("preps", row.prep)
        if row.prep == "home":
            self.used.add("home")
            return Place(prep, None)
        noun = table("nouns")[row.noun]
        self.rows.add(noun)
        self.used |= {noun.key, noun.fr}
        np = NP(noun, gender=noun.gender)
        if "own" in row.kinds.split():
            np.det, np.owner = "poss", self.owner(subj)
        else:
            self.describe(np, 0.1 + 0.3 * self.rich)
            if self.p(0.35 + 0.4 * self.rich):
                self.relative(np)
        return Place(prep, np)

    def set_time(self, clause, mode, always=False):
        chance = {"past": 0.68, "habit": 0.65, "future": 0.75, "prog": 0.35}.get(
            mode, 0
        )
        kinds = clause.frame.when.split()
        if (
            self.timed
            or clause.frame.has("state")
            or not kinds
            or not (always or self.p(chance))
        ):
            return
        rows = [
            r
            for r in table("times").values()
            if r.tense == mode and set(r.kinds.split()) & set(kinds)
        ]
        if clause.subj.det == "all":  # 都 can't stand for both
            rows = [r for r in rows if not r.zh.startswith("每")]
        if not rows:
            return
        row = self.one(rows)
        self.rows.add(row)
        if self.depth == 0:
            self.timed = True
            self.often = self.often or row.tense == "habit"
        hanging = any(
            np and np.rel
            for np in (clause.obj, clause.to, clause.place and clause.place.np)
        )
        if hanging and self.depth:
            return
        clause.time, clause.front = (
            Adverb(row),
            self.depth == 0 and (hanging or self.p(0.1)),
        )

    def extras(self, clause, mode):
        """Negation, a modal verb, an adverb, how and how long."""
        frame, kind = clause.frame, "state" if clause.frame.has("state") else mode
        if frame.has("expneed") or (
            mode == "perfect" and frame.has("exp") and self.p(0.5)
        ):
            clause.neg = "never" if self.p(0.6) or not frame.has("expneed") else ""
            if clause.neg and clause.obj is not None and clause.obj.rel:
                raise Reject  # has never eaten the soup that …
            if clause.neg:
                self.soften(clause.obj)
            if clause.subj.det == "all":
                raise Reject
        elif mode == "perfect" and not frame.has("state"):
            clause.adverb = Adverb(self.row("adverbs", "already"))
        elif mode in ("past", "habit") and self.p(0.07) and not frame.has("post"):
            self.negate(clause)
        elif mode in ("habit", "past") and not self.depth and self.p(0.14):
            self.modal(clause, mode)
        elif self.p(1 if mode == "prog" else 0.16):
            self.adverb(clause, kind)
        hours = (
            frame.has("dur") and mode in ("past", "future", "habit") and not clause.neg
        )
        hours = hours and not clause.modal and (clause.obj is None or clause.obj.human)
        hanging = any(
            np and np.rel
            for np in (clause.obj, clause.to, clause.place and clause.place.np)
        )
        if hanging:
            if frame.has("needdur") and mode == "past" and not self.depth:
                raise Reject
            return
        if hours and (self.p(0.2) or (frame.has("needdur") and mode == "past")):
            rows = [m for m in table("manners").values() if m.where == "after"]
            hour = clause.time and clause.time.row.key.split("_")[-1]
            if hour in ("morning", "evening", "night"):
                rows = [m for m in rows if m.key != "all_day"]
            if "." in frame.zh:
                rows = [m for m in rows if m.key != "a_long_time"]
            clause.manner = Adverb(self.one(rows))
        elif self.p(0.13) and mode != "perfect" and not clause.neg:
            rows = [
                m
                for m in table("manners").values()
                if m.where == "before"
                and not (m.key == "at_once" and (mode == "habit" or clause.time))
                and set(m.needs.split()) & set(frame.flags.split())
            ]
            clause.manner = Adverb(self.one(rows)) if rows else None
        if (
            frame.has("needdur")
            and mode == "past"
            and not (clause.manner or clause.neg)
        ):
            raise Reject
        if clause.manner:
            self.rows.add(clause.manner.row)
            if clause.manner.row.flags:
                self.tags.add("idiom")

    def negate(self, clause):
        if clause.subj.det == "all":
            return
        self.soften(clause.obj)
        once = self.mode == "past" or clause.frame.has("state")
        once = once or self.general and self.p(0.6)
        if not once and not clause.obj and not clause.place:
            raise Reject  # never sleeps
        clause.neg = "not" if once else "never"
        if clause.time and (clause.neg == "never" or self.mode == "habit"):
            clause.time = None

    @staticmethod
    def soften(obj):
        """No some, three or many under a negation."""
        if (
            obj is not None
            and not obj.pronoun
            and obj.det in ("some", "many", "bare", "a")
        ):
            obj.measure = obj.number = None
            obj.adjs = []  # one doesn't fail to plant beautiful trees
            mass = obj.noun and (obj.noun.plural is None or obj.is_a("mass"))
            obj.plural = (
                obj.det != "a" and not mass and bool(obj.noun and obj.noun.plural)
            )
            obj.det = "a" if obj.det == "a" and not mass else "bare"

    def modal(self, clause, mode):
        rows = [
            m
            for m in table("modals").values()
            if (mode == "habit" or (m.past and m.key != "can"))
            and (not m.flags or clause.subj.human)
            and (
                m.key not in ("like", "love")
                or set(m.flags.split()) & set(clause.frame.flags.split())
            )
        ]
        if (
            clause.frame.has("state")
            or clause.frame.has("progonly")
            or clause.frame.has("nomodal")
        ):
            return
        clause.modal = self.one(rows)
        self.rows.add(clause.modal)
        if clause.modal.key not in ("like", "love"):
            clause.time = clause.time if mode == "past" else None
            self.timed = clause.time is not None

    def adverb(self, clause, kind):
        if clause.subj.det == "all":
            return
        rows = [r for r in table("adverbs").values() if kind in r.tenses.split()]
        rows = [r for r in rows if r.key != "soon" or not self.timed]
        rows = [r for r in rows if r.key != "also"]
        rows = [r for r in rows if r.key != "still" or clause.obj is None]
        rows = [
            r
            for r in rows
            if r.flags != "plural" or clause.subj.plural and clause.subj.person == 3
        ]
        only = only_fits(clause) and clause.subj.rel is None and kind == "past"
        rows = [r for r in rows if r.flags != "object" or only]
        rows = [
            r
            for r in rows
            if r.key in ("also", "all", "only", "still")
            or not (clause.time or self.often)
        ]
        if rows and not (clause.frame.key == "be"):
            clause.adverb = Adverb(self.one(rows))
            self.rows.add(clause.adverb.row)

    # Sentences of one clause

    def quality(self, subj=None, flag=""):
        """Somebody or something is young, tired, expensive."""
        rows = [a for a in table("adjectives").values() if a.of]
        if subj is None:
            row = self.one(rows)
            subj = self.somebody_of(row)
        else:
            rows = [a for a in rows if self.suits(a.of, subj) and flag in a.flags]
            row = self.one([a for a in rows if "avoir" not in a.flags or subj.human])
        held = {(row.en, subj.noun.en)} & HELD_OUT if subj.noun else set()
        if held and not self.force_held:
            raise Reject
        if subj.noun:
            subj.adjs = []  # the young man is not young
        self.rows.add(row)
        clause = Clause(self.row("frames", "be"), subj, comp=row)
        clause.bare = "rel" if self.depth else ""
        if row.predicate == "hen" and self.p(0.2) and not self.depth:
            clause.degree = "very"
        elif (
            self.p(0.1)
            and "dont_neg" not in row.flags
            and not self.depth
            and subj.det != "all"
        ):
            clause.neg = "not"
        return clause

    def somebody_of(self, row):
        kinds = row.of.split()
        if kinds[0] in ("person", "adult", "trade", "child"):
            return self.person(kinds[0], subject=True)
        np = self.thing(row.of, dets=(("the", 4), ("poss", 3), ("this", 1), ("own", 1)))
        np.adjs = []
        return self.several(np)

    def compare(self):
        rows = [
            a for a in table("adjectives").values() if "compare" in a.flags and a.of
        ]
        row = self.one(rows)
        beasts = ("animal_tame", "animal_pet", "mammal")  # goats and ducks
        kind = self.one([k for k in row.of.split() if k not in beasts])
        a, b = self.one_of_kind(kind), self.one_of_kind(kind)
        a.adjs = b.adjs = []
        if a.ref is b.ref or (a.pronoun and b.pronoun):
            raise Reject
        self.rows.add(row)
        how = "more" if self.p(0.7) else "as"
        return Clause(self.row("frames", "be"), a, comp=row, than=b, degree=how)

    def one_of_kind(self, kind):
        if kind in ("person", "adult", "trade"):
            return self.person(kind, subject=True, plural=False)
        dets = (
            (("the", 3), ("this", 2))
            if kind == "building"
            else (("the", 3), ("poss", 3), ("this", 1), ("own", 2))
        )
        return self.several(self.thing(kind, dets=dets))

    @staticmethod
    def several(np):
        """One speaks of one's apples, not of an apple."""
        np.plural = np.plural or np.is_a("fruit")
        return np

    def exist(self):
        rows = [r for r in table("places").values() if r.holds]
        row = self.one(rows)
        self.rows.add(row)
        noun = table("nouns")[row.noun]
        self.used |= {noun.key, noun.fr}
        np = NP(noun, gender=noun.gender)
        self.describe(np, 0.3 * self.rich)
        what = self.thing(row.holds, dets=(("a", 4), ("number", 3), ("many", 1)))
        if what.number and not what.noun.plural or noun.key in what.noun.key:
            raise Reject
        if what.is_a("mass"):
            what.det, what.plural, what.number = "some", False, None
        place = Place(self.row("preps", row.prep), np)
        frame, what.there = self.row("frames", "exist"), True
        return Clause(frame, what, place=place)

    def trade(self):
        key = self.one(["be", "be", "become"])
        subj = self.one([self.named, self.kin])(set())
        if subj.noun is not None and subj.noun.key in ("daughter",):
            raise Reject
        clause = Clause(
            self.row("frames", key), subj, comp=self.pick(nouns_of("trade"))
        )
        if key == "become":
            clause.tense = "past"
        elif self.p(0.4):
            clause.modal = self.row("modals", "want")
        return clause

    def kin(self, _=None):
        return self.cast(self.relation(self.pick(nouns_of("kin"))))

    def located(self):
        subj = self.thing(
            "animal_tame bicycle furniture read hat lost",
            dets=(("the", 3), ("poss", 3), ("own", 2)),
        )
        place = self.place(
            "out indoor"
            if subj.is_a("animal") or subj.is_a("machine")
            else "indoor"
            if subj.is_a("furniture")
            else "indoor onto"
        )
        if subj.is_a("furniture") and place.prep.key == "home":
            raise Reject
        return Clause(self.row("frames", "be"), subj, place=place)

    def have(self):
        subj = self.person("adult", subject=True)
        obj = self.thing(table("frames")["have"].obj, dets=(("a", 4), ("number", 2)))
        if (obj.number or subj.plural) and not obj.noun.plural:
            raise Reject
        if subj.plural and subj.person == 3 and obj.is_a("animal"):
            raise Reject  # three women with one hen
        neg = "not" if obj.det == "a" and not obj.number and self.p(0.2) else ""
        return Clause(self.row("frames", "have"), subj, obj=obj, neg=neg)

    def weather(self, mode=None, kinds=None):
        mode = {"habit": "present", "recent": "past", "perfect": "past"}.get(
            mode or self.mode, mode or self.mode
        )
        rows = [
            w
            for w in table("weather").values()
            if w.tense == mode and (not kinds or w.kind in kinds)
        ]
        row = self.one(rows)
        self.rows.add(row)
        if row.kind == "dogs":
            self.tags.add("idiom")
        return Weather(row)

    def passive(self):
        self.need("past")
        frames = [f for f in self.frames() if f.has("bei")]
        clause = self.event(frames)
        if clause.subj.pronoun or clause.subj.person < 3 or clause.obj.rel:
            raise Reject
        if clause.obj.det in ("bare", "some", "many", "a"):
            clause.obj.det, clause.obj.number, clause.obj.measure = "the", None, None
        clause.passive, clause.place, clause.neg, clause.adverb, clause.modal = (
            True,
            None,
            "",
            None,
            None,
        )
        clause.manner = None
        return clause

    def motion_purpose(self):
        """goes to the market to buy bread"""
        self.need("past", "habit", "future")
        clause = self.event([self.row("frames", "go")])
        if clause.neg or clause.manner:
            raise Reject
        kinds = set(
            next(
                r
                for r in table("places").values()
                if r.noun == clause.place.np.noun.key
            ).kinds.split()
        )
        fits = [
            f
            for f in self.frames()
            if kinds & set(f.place.lstrip("+").split()) and not f.has("post")
        ]
        fits = [f for f in fits if self.suits(f.subj, clause.subj) and f.has("errand")]
        keep, self.timed = self.timed, True
        clause.place.np.rel = None
        purpose = self.event(fits, subj=clause.subj)
        self.timed = keep
        purpose.place = purpose.adverb = purpose.modal = purpose.manner = None
        purpose.neg, purpose.time = "", None
        clause.purpose = purpose
        self.tags.add("purpose")
        return clause

    # Questions and commands

    def question(self):
        kind = self.weighted(
            (
                ("yes", 5),
                ("subj", 2),
                ("obj", 3),
                ("place", 3),
                ("time", 2),
                ("why", 2),
                ("number", 2),
            )
        )
        self.mode = self.one(["past", "future", "habit", "past", "prog"])
        if kind == "number":
            self.mode = self.one(["past", "future"])
        if kind == "time":
            self.mode = self.one(["past", "future"])
            self.timed = True
        clause = self.ask(kind)
        clause.asks, clause.adverb = kind, None
        if clause.subj.number or clause.frame.key == "own" and kind != "yes":
            raise Reject
        if clause.subj.person == 1 and not clause.subj.plural:
            raise Reject
        if clause.subj.det == "all" or (
            clause.modal and clause.modal.key in ("must", "have_to")
        ):
            raise Reject
        if kind not in ("yes", "why"):
            clause.neg = ""
        if clause.neg == "never":
            clause.neg = "not"
        clause.front = False
        if kind != "why" and clause.manner:
            clause.manner = None
            if clause.frame.has("needdur"):
                raise Reject
        self.tags.add("question")
        return clause

    def ask(self, kind):
        frames = [f for f in self.frames() if not f.has("expneed")]
        if kind == "obj":
            frames = [
                f
                for f in frames
                if f.obj
                and not f.has("inverse")
                and not f.fr_obj
                and "_" not in f.zh
                and not f.has("class:wear")
            ]
            frames = [
                f
                for f in frames
                if not f.has("def") or f.key in ("look_for", "find", "sell", "repair")
            ]
            clause = self.event(
                [
                    f
                    for f in frames
                    if not f.has("def") or not f.has("own") or f.key == "look_for"
                ]
            )
            if clause.obj.person < 3:
                raise Reject
            clause.obj.rel = None
        elif kind == "place":
            clause = self.event(
                [
                    f
                    for f in frames
                    if f.place and not f.has("post") and not f.has("from")
                ]
                + [self.row("frames", "live")]
            )
            clause.place = clause.place or self.place("out")
            if clause.frame.has("goal2"):
                raise Reject
        elif kind == "number":
            frames = [
                f
                for f in frames
                if f.obj and not f.has("def") and not f.fr_obj and "_" not in f.zh
            ]
            clause = self.event([f for f in frames if not f.has("inverse")])
            if not clause.obj.noun or not clause.obj.noun.plural or clause.obj.human:
                raise Reject
            obj = clause.obj
            obj.plural, obj.adjs, obj.measure, obj.number = True, [], None, None
            obj.rel, obj.det = None, "which"
        elif kind == "subj":
            clause = self.event(
                [
                    f
                    for f in frames
                    if "person" in f.subj.split() and not f.has("inverse")
                ]
            )
            clause.subj = NP(noun=None, pronoun=True)
            if clause.frame.has("state") and clause.obj and clause.obj.number:
                raise Reject
            if clause.obj and clause.obj.det == "poss" and clause.obj.owner.pronoun:
                clause.obj.det, clause.obj.owner = "the", None
            if clause.place and clause.place.np and clause.place.np.det == "poss":
                raise Reject
        else:
            clause = self.event(frames)
        return clause

    def command(self):
        self.mode = "past"
        frames = [
            f
            for f in self.frames()
            if f.has("ba")
            or f.has("class:give")
            or f.has("class:help")
            or f.has("class:open")
        ]
        frames = [f for f in frames if not f.has("sense") or f.has("class:wear")]
        frames = [
            f
            for f in frames
            if f.key
            not in ("lose", "forget", "break", "bite", "steal", "bring", "look_after")
            and "person" in f.subj
        ]
        you = NP(person=2)
        self.used |= {"you", "he", "she"}
        self.mode, self.timed = "future", True
        clause = self.event(frames, subj=you)
        clause.command, clause.tense, clause.modal = True, "present", None
        clause.adverb = clause.manner = None
        clause.neg = (
            "not"
            if clause.frame.key
            in ("open", "close", "throw_away", "sell", "eat", "help", "give_back")
            and self.p(0.4)
            else ""
        )
        if (
            clause.obj.pronoun
            or clause.to
            and (clause.to.person == 2 or clause.to.pronoun or clause.to.person < 3)
        ):
            raise Reject
        if clause.to and clause.to.det == "a":
            raise Reject
        if any(n and n.human and n.number for n in (clause.obj, clause.to)):
            raise Reject  # please help five girls
        if clause.obj.person < 3 or self.fr_object_pronoun(clause):
            raise Reject
        self.tags.add("imperative")
        return clause

    @staticmethod
    def fr_object_pronoun(clause):
        return clause.obj.pronoun or clause.obj.person < 3


def again(np):
    """i, you, we once more: another mention."""
    return NP(person=np.person, plural=np.plural)


def shared_out(c):
    """All the boys own the boat: which of them?"""
    one = c.obj is not None and not c.obj.plural and not c.obj.is_a("mass")
    return c.frame.key == "own" or one and not c.obj.human


def vessels(noun, frame):
    """The measures in which one eats, buys … it."""
    return [
        m
        for m in table("measures").values()
        if noun.key in m.nouns.split() and frame.key in m.frames.split()
    ]


def feminine_wearer(subj):
    """Not for men: dresses. (i, you: nobody knows.)"""
    return subj.person < 3 or subj.gender != "f"


@cache
def said_in(modes) -> list:
    """The frames that can be said in one of the modes."""
    rows = [f for f in table("frames").values() if float(f.weight)]
    return [f for f in rows if any(can(f, mode) for mode in modes)]


@cache
def can(frame, mode) -> bool:
    """Can the frame be said in this mode?"""
    if frame.has("report"):
        return False
    if frame.has("state") or mode == "state":
        return frame.has("state") and mode in ("habit", "state")
    if frame.has("progonly"):
        return mode == "prog"
    if frame.has("expneed"):
        return mode == "perfect"
    if mode == "perfect":
        return (frame.has("ba") or frame.has("exp")) and not frame.has("noperfect")
    if frame.has(f"no{mode}"):
        return False
    return {
        "prog": frame.has("prog"),
        "habit": frame.has("habit"),
        "recent": frame.has("just"),
    }.get(mode, True)


def only_fits(clause):
    n = clause.obj
    return (
        n is not None
        and not n.pronoun
        and n.person == 3
        and not n.human
        and not clause.frame.fr_obj
        and n.det not in ("some", "many", "bare")
        and clause.to is None
    )
