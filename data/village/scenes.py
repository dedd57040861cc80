"""Sentences of several clauses: reasons, conditions, sequences, reports."""

from core import NP, Adverb, Clause, Joined, Place, Reject, Weather, table
from draw import Draw, again

SINGLE = (
    ("event", 10), ("quality", 2), ("compare", 5.5), ("exist", 4.8), ("trade", 1), ("located", 1),
    ("have", 1), ("passive", 3), ("question", 6), ("command", 2.6), ("motion_purpose", 7),
)  # fmt: skip
PLAIN = (
    ("event", 10),
    ("quality", 1),
    ("have", 0.5),
    ("passive", 1),
    ("exist", 2.4),
    ("motion_purpose", 5.5),
)
TWO = (
    ("sequence", 6), ("because", 8.6), ("so", 2), ("condition", 7), ("stopped", 2), ("report", 0.6),
    ("contrast", 2), ("there", 1.5), ("some_of_them", 2.2), ("meanwhile", 1.4), ("both", 1), ("likewise", 4.5),
)  # fmt: skip


class Scenes(Draw):
    def sentence(self, clauses, rich):
        """(node, end of the sentence) of about so many clauses."""
        self.start(rich)
        if clauses == 1:
            node = getattr(self, self.weighted(SINGLE))()
        else:
            node = self.scene(clauses)
        self.check(node)
        asks = isinstance(node, Clause) and node.asks
        end = "?" if asks else "!" if isinstance(node, Clause) and node.command else "."
        return node, end

    def scene(self, clauses):
        if clauses == 1:
            if self.mode in ("recent", "perfect") or self.timed or self.general:
                return self.event()  # no state under a time or a condition
            return getattr(self, self.weighted(PLAIN))()
        if clauses == 2:
            return getattr(self, self.weighted(TWO))()
        kind = self.weighted(
            (
                ("join", 5),
                ("report", 0.4 + (clauses > 4) * 3),
                ("weather", 0.6 + (clauses > 4) * 3),
            )
        )
        if kind == "report" and "report" not in self.used:
            return self.report(clauses - 1)
        if kind == "weather" and "if" not in self.used:
            return self.in_weather(clauses - 1)
        self.need("past", "future", "habit", "prog")
        first = self.scene(clauses - 1 - int(self.rng.random() * (clauses - 2) * 0.7))
        left = max(1, clauses - count(first))
        self.forget()
        self.locked = True
        second = self.scene(left)
        return self.join("and", first, second)

    def forget(self):
        """A new main clause: people may be named again by their place in it."""
        self.people, self.general = [], False

    def join(self, key, first, second, **more):
        for node in (first, second):
            if isinstance(node, Clause) and (node.asks or node.command):
                raise Reject
        self.tags.add(
            {
                "and": "coordination",
                "vp_and": "coordination",
                "vp_then": "coordination",
                "vp_some": "coordination",
                "vp_both": "coordination",
            }.get(key, key)
        )
        return Joined(self.row("joins", key), first, second, **more)

    # Two clauses about the same people

    def sequence(self):
        """buys a hat and then gives it to …"""
        self.need("past", "future", "habit")
        follows = table("follows")
        first = self.event([f for f in self.frames() if f.key in follows])
        if first.neg or first.modal or first.adverb or hangs(first):
            raise Reject
        row = self.row("follows", first.frame.key)
        frames = [
            f
            for f in self.frames(wanted=row.next.split())
            if self.suits(f.subj, first.subj)
        ]
        obj = None
        if row.object == "same":
            if (
                first.obj.measure
                or first.obj.number
                or first.obj.det in ("bare", "many", "some", "poss", "own")
            ):
                raise Reject
            frames = [f for f in frames if self.suits(f.obj, first.obj)]
            obj = first.obj.mention()
            first.to = None
        second = self.event(frames, subj=self.said_again(first.subj), obj=obj)
        self.plain_second(second)
        first.time, second.time = first.time or second.time, None
        if first.frame.key == "go_home":
            second.place = None
        if first.time and not set(first.time.row.kinds.split()) & set(
            first.frame.when.split()
        ):
            raise Reject
        if row.object == "same" and second.to and second.to.person < 3 and obj.pronoun:
            second.to = None if not second.frame.to.startswith("+") else second.to
        second.shared = True
        then = first.tense != "present" and self.p(0.6)
        both = first.tense == "present" and row.object == "other"
        both = both and second.obj is not None
        if both:  # 还 在 would mean: is still
            second.place = None
        if (
            first.time
            and first.time.row.zh.startswith("每")
            and first.subj.det == "all"
        ):
            raise Reject  # 都 can't stand for both
        return self.join(
            "vp_then" if then else "vp_both" if both else "vp_and", first, second
        )

    def said_again(self, np):
        return (
            NP(
                np.noun,
                np.person,
                np.plural,
                np.gender,
                name=np.name,
                pronoun=np.pronoun,
                of=np.ref,
            )
            if np.person == 3
            else np
        )

    def plain_second(self, clause):
        if clause.frame.has("needdur") and clause.tense == "past":
            raise Reject
        clause.neg, clause.adverb, clause.modal = "", None, None
        clause.front = clause.main = False

    def cause(self, subj, kinds=None):
        """(key of reasons.tsv, the clause that says it): about somebody, or the weather."""
        rows = [r for r in table("reasons").values() if not kinds or getattr(r, kinds)]
        row = self.one(rows)
        self.rows.add(row)
        if row.kind == "weather":
            if "sky" in self.used:
                raise Reject  # one weather a sentence
            self.used.add("sky")
            self.stopped_by = set(row.stops.split())
            node = self.weather(kinds=[row.key])
            node.cause = True
            return row, node
        comp = table("adjectives")[row.key]
        self.rows.add(comp)
        clause = Clause(self.row("frames", "be"), subj, comp=comp)
        clause.tense = {"past": "imperfect", "future": "present"}.get(
            self.mode, "present"
        )
        return row, clause

    def state_mode(self):
        self.need("past", "past", "past", "past", "prog")

    def because(self):
        """drinks some water because he is thirsty"""
        self.state_mode()
        subj = self.animate()
        row, cause = self.cause(subj.mention() if subj.person == 3 else again(subj))
        main = self.effect(row, subj)
        if hangs(main) or same_gender(main):
            raise Reject  # where he lives because …
        return self.join("because", cause, main)

    def animate(self):
        subj = self.person("person", subject=True)
        child = subj.noun is not None and subj.noun.key == "child"
        if child or subj.det == "all" or subj.number:
            raise Reject
        return subj

    def effect(self, row, subj):
        """What somebody does, or doesn't do, in this state."""
        stops = row.stops and (not row.effects or self.p(0.4))
        wanted = (row.stops if stops else row.effects).split()
        frames = self.frames(wanted=wanted)
        self.timed = self.timed or stops
        keep, self.stopped_by = self.stopped_by, set()
        main = self.event(frames, subj=subj)
        self.stopped_by = keep
        main.neg, main.adverb, main.modal, main.manner = "", None, None, None
        main.to = None if main.frame.has("for") else main.to
        if stops:
            self.soften(main.obj)
            if main.time and main.time.row.tense == "habit":
                main.time = None
        if main.frame.has("needdur") and main.tense == "past":
            raise Reject
        if stops and self.mode in ("past", "prog", "habit"):
            if self.mode == "past" and self.p(0.5):
                main.neg = "not"
            else:
                main.modal, main.neg = (
                    self.row("modals", "can" if self.p(0.6) else "want"),
                    "not",
                )
                if self.mode == "prog":
                    main.tense = "present"
                if main.modal.key == "can" and self.mode == "past":
                    main.modal = self.row("modals", "want")
        elif stops:
            main.neg = "not"
        return main

    def so(self):
        """it is raining, so we stay at home"""
        self.state_mode()
        if "report" in self.used:
            raise Reject  # says that …, so …: who draws the conclusion?
        subj = self.animate()
        row, cause = self.cause(subj)
        again_ = (
            subj.mention()
            if subj.person == 3 and row.kind == "state"
            else subj
            if row.kind != "state"
            else again(subj)
        )
        if isinstance(cause, Weather):
            cause.cause = False
            self.timed = True
        main = self.effect(row, again_)
        if isinstance(cause, Clause):  # the time stands with what comes first
            cause.time, main.time = main.time, None
        return self.join("so", cause, main)

    def in_weather(self, clauses):
        """if it rains, one stays at home, and the other doesn't swim"""
        self.need("habit", "habit", "future", "habit", "habit")
        self.used.add("if")
        mode, self.mode, self.timed = self.mode, "habit", True
        self.general = self.no_state = True
        row = self.one([r for r in table("reasons").values() if r.kind == "weather"])
        self.rows.add(row)
        if "sky" in self.used:
            raise Reject
        self.used.add("sky")
        self.stopped_by = set(row.stops.split())
        first = self.weather(kinds=[row.key])
        self.mode, self.locked = mode, True
        effects = []
        for _ in range(clauses):
            self.forget()
            self.general = True
            self.used -= {*row.effects.split(), *row.stops.split()} - {"stay"}
            effects.append(self.effect(row, self.animate()))
        main = effects[0]
        for more in effects[1:]:
            main = self.join("and", main, more)
        key = "if" if self.mode == "future" else "when"
        self.tags.add("subordinate")
        node = self.join(key, first, main)
        if key == "if":
            effects[0].zh_jiu = f"{node.id}.1"
        return node

    def condition(self, clauses=1):
        """if it rains tomorrow, …; … when she is happy"""
        self.need("habit", "habit", "future", "habit", "habit", "habit")
        key = "if" if self.mode == "future" or self.p(0.05) else "when"
        subj = self.animate()
        last = clauses == 1 and self.p(0.88)
        mode, self.timed, self.general = self.mode, True, True
        self.no_state = True
        self.mode = "habit"
        about = (subj.mention() if subj.person == 3 else again(subj)) if last else subj
        row, cause = self.cause(about)
        if isinstance(cause, Weather):
            about, last_subj = subj, subj
        else:
            cause.bare = key
            last_subj = (
                subj if last else (subj.mention() if subj.person == 3 else again(subj))
            )
        self.mode = mode
        if clauses > 1 and not last:
            self.used.discard("he")
            main = self.scene(clauses)
        else:
            main = self.effect(row, last_subj)
            if key == "if" and isinstance(main, Clause):
                main.zh_jiu = ""
        if last and isinstance(main, Clause) and hangs(main):
            if not isinstance(cause, Weather):
                raise Reject
            last = False  # where he lives when it snows
        if isinstance(cause, Clause) and isinstance(main, Clause) and same_gender(main):
            raise Reject
        node = self.join(key, cause, main, swapped=last and clauses == 1)
        if key == "if" and isinstance(main, Clause):
            main.zh_jiu = f"{node.id}.1"
            if main.frame.key == "exist" or main.comp is not None:
                main.zh_jiu = ""
        self.tags.add("subordinate")
        return node

    def meanwhile(self):
        """when paul arrived, anna was reading"""
        self.need("past")
        self.timed = True
        first = self.event(
            self.frames(wanted=["class:home", "arrive", "class:meet", "class:open"])
        )
        if first.neg or first.modal or first.manner or first.adverb:
            raise Reject
        keep, self.mode = self.mode, "prog"
        second = self.event([f for f in self.frames() if not f.has("progonly")])
        self.mode = keep
        second.adverb = second.manner = None
        second.tense, second.front = "imperfect", False
        if second.subj.ref is first.subj.ref:
            raise Reject
        self.tags.add("subordinate")
        last, first.bare = self.p(0.75) and not hangs(second), "when"
        return self.join("when", first, second, swapped=last)

    def stopped(self):
        """wanted to swim, but it was raining"""
        self.need("past", "past", "past", "prog")
        subj = self.animate()
        row, cause = self.cause(
            again(subj) if subj.person < 3 else subj.mention(), kinds="stops"
        )
        mode = self.mode
        self.mode = "past" if mode == "past" else "habit"
        self.stopped_by, keep = set(), self.stopped_by
        first = self.event(self.frames(wanted=row.stops.split()), subj=subj)
        self.stopped_by = keep
        first.neg, first.adverb, first.manner = "", None, None
        if first.tense != "past":
            first.time = None
        first.modal = self.row("modals", "want")
        if isinstance(cause, Weather):
            cause.cause = False
        return self.join("but", first, cause)

    def contrast(self):
        """likes apples, but prefers …; one does it, the other doesn't"""
        self.need("past", "habit", "future")
        going = ["class:out", "class:go", "class:play", "class:work"]
        first = self.event(
            [f for f in self.frames(wanted=going) if not f.has("needdur")]
        )
        if first.neg or first.adverb or first.modal:
            raise Reject
        self.timed = True
        other = self.person("person", subject=True)
        frames = [f for f in self.frames(wanted=["class:home", "class:rest"])]
        second = self.event(frames, subj=other)
        second.front, second.neg = False, ""
        return self.join("but", first, second)

    def likewise(self):
        """anna swims, and paul also swims by the bridge"""
        self.need("past", "habit", "future", "prog")
        frames = [f for f in self.frames() if not f.has("state") and not f.obj]
        first = self.event([f for f in frames if not f.has("needdur")])
        if (
            first.neg
            or first.adverb
            or first.modal
            or first.frame.obj
            and first.obj.pronoun
        ):
            raise Reject
        self.timed = True
        self.used.discard(first.frame.key)
        other = self.person("person", subject=True)
        second = self.event([first.frame], subj=other)
        if second.manner or second.place or other.det == "all":
            raise Reject
        second.neg, second.modal, second.front = "", None, False
        second.adverb = Adverb(self.row("adverbs", "also"))
        return self.join("and", first, second)

    def report(self, clauses=1):
        """says that …"""
        key = self.one(["say", "think", "know_that", "hope"])
        if key == "hope":
            self.need("future")
            clauses = 1
        if "report" in self.used:
            raise Reject
        self.used.add("report")
        speaker = self.person("person", subject=True, plural=False)
        if key == "say" and speaker.person < 3:
            raise Reject
        comp = (
            self.scene(clauses)
            if clauses > 1
            else self.one([self.event, self.event, self.quality])()
        )
        if key == "hope" and isinstance(comp, Clause) and comp.tense != "future":
            raise Reject
        if isinstance(comp, Clause) and comp.subj.ref is speaker.ref:
            raise Reject
        first = comp
        while isinstance(first, Joined):
            first = (
                first.second
                if first.swapped or first.how.key == "because"
                else first.first
            )
        if isinstance(first, Clause):
            first.front, first.inner = False, True
            if first.subj.rel and first.subj.rel.kind == "whose":
                raise Reject  # 知道 爸爸 …
        self.tags |= {"reported", "subordinate"}
        return Clause(self.row("frames", key), speaker, comp=comp)

    def there(self):
        """the market is near the church, and anna goes there every sunday"""
        self.need("past", "habit", "future")
        first = (
            self.event([f for f in self.frames() if f.key in ("go", "stay", "arrive")])
            if self.p(0.5)
            else self.where_is()
        )
        if first.neg or first.modal or first.place is None or first.place.np is None:
            raise Reject
        if first.place.np.det == "poss":
            raise Reject
        noun = first.place.np.noun if first.frame.key != "be" else first.subj.noun
        kinds = next(
            set(r.kinds.split()) for r in table("places").values() if r.noun == noun.key
        )
        frames = [
            f
            for f in self.frames()
            if f.place and kinds & set(f.place.lstrip("+").split())
        ]
        frames = [
            f
            for f in frames
            if not f.has("post")
            and not f.has("from")
            and not f.has("goal2")
            and f.key != first.frame.key
        ]
        there = Place(
            self.row("preps", "there"),
            None,
            id=first.place.id if first.frame.key != "be" else first.place.id,
        )
        there = Place(there.prep, None)
        second = self.event(frames, place=there)
        second.to = (
            second.to
            if second.to is None or not second.to.pronoun and second.to.person == 3
            else None
        )
        second.front = False
        return self.join("and", first, second)

    def where_is(self):
        rows = [
            r
            for r in table("places").values()
            if r.prep in ("at", "in")
            and "goal" in r.kinds.split()
            and r.noun != "village"
        ]
        row = self.one(rows)
        noun = table("nouns")[row.noun]
        self.used |= {noun.key, noun.fr}
        near = [
            r
            for r in table("places").values()
            if r.prep in ("near", "front", "behind")
            and r.noun not in self.used
            and r.noun != "house"
        ]
        other = self.one(near)
        self.rows |= {row, other, noun}
        self.used.add(other.noun)
        place = Place(
            self.row("preps", other.prep),
            NP(table("nouns")[other.noun], gender=table("nouns")[other.noun].gender),
        )
        return Clause(
            self.row("frames", "be"), NP(noun, gender=noun.gender), place=place
        )

    def some_of_them(self):
        """bought ten apples and gave three of them to paul"""
        self.need("past", "past", "future")
        first = self.event(self.frames(wanted=["buy", "pick", "bake", "make"]))
        noun = first.obj.noun
        if (
            first.neg
            or first.modal
            or first.adverb
            or noun is None
            or not noun.plural
            or first.obj.rel
        ):
            raise Reject
        obj = first.obj
        obj.det, obj.plural, obj.measure, obj.owner, obj.number = (
            "many",
            True,
            None,
            None,
            None,
        )
        obj.adjs = []
        if self.p(0.5) and first.frame.key in ("pick", "buy"):
            obj.det, obj.number = "bare", table("numbers")["ten"]
        first.to = None
        frames = [
            f
            for f in self.frames(wanted=["give", "eat", "send", "sell", "lend"])
            if self.suits(f.obj, obj)
        ]
        some = obj.mention()
        some.number = self.one(
            [table("numbers")[k] for k in ("two", "three", "four", "five")]
        )
        second = self.event(frames, subj=self.said_again(first.subj), obj=some)
        self.plain_second(second)
        first.time, second.time = first.time or second.time, None
        second.shared, second.shift = True, False
        return self.join("vp_some", first, second)

    def both(self):
        first = self.scene(1)
        self.forget()
        return self.join("and", first, self.scene(1))

    # What no sentence may have

    def check(self, node):
        """A trade tells its French gender only by he, she, his, her or a name."""
        told, seen = set(), []
        for n in phrases(node):
            if n.pronoun and n.person == 3:
                told.add(n.ref)
            if (
                n.is_a("trade")
                and not n.name
                and not n.plural
                and not n.pronoun
                and n.of is None
            ):
                seen.append(n)
            if n.noun is not None:
                self.rows.add(n.noun)
                if not n.pronoun:
                    self.pairs |= {(a.en, n.noun.en) for a in n.adjs}
            if n.name is not None:
                self.rows.add(n.name)
            if n.number is not None:
                self.rows.add(n.number)
        if any(n not in told for n in seen):
            raise Reject
        for c in clauses(node):
            if hasattr(c.comp, "en") and c.subj.noun and not c.subj.pronoun:
                self.pairs.add((c.comp.en, c.subj.noun.en))
            if c.neg and c.subj.number:
                raise Reject  # four farmers will not fish
            far = c.place and any(np and np.rel for np in (c.obj, c.to))
            far = far or c.place and c.to and c.frame.has("for") and c.to.person == 3
            if far and not c.passive:
                raise Reject  # the girl paul met in the forest at the bakery
            if (hangs(c) or c.passive and c.subj.rel) and (
                c.time and not c.front or c.obj and c.obj.rel and c.manner
            ):
                raise Reject  # who has a rabbit this evening
            rel = c.subj.rel
            if rel and rel.kind == "obj" and " " in rel.clause.frame.en and not c.asks:
                raise Reject  # who luc waited for eat


def count(node):
    if isinstance(node, Joined):
        return count(node.first) + count(node.second)
    if isinstance(node, Clause) and isinstance(node.comp, (Clause, Joined, Weather)):
        return 1 + count(node.comp)
    return 1


def hangs(c):
    """Would what follows be heard as part of a relative clause?"""
    return any(np and np.rel for np in (c.obj, c.to, c.place and c.place.np))


def same_gender(c):
    """Helps my brother because he is busy: who is?"""
    return c.subj.person == 3 and any(
        n and n.human and n.person == 3 and not n.plural and n.gender == c.subj.gender
        for n in (c.obj, c.to)
    )


def clauses(node):
    """The clauses of a sentence that stand by themselves."""
    if isinstance(node, Joined):
        yield from clauses(node.first)
        yield from clauses(node.second)
    elif isinstance(node, Clause):
        yield node
        yield from clauses(node.comp)


def phrases(node):
    """All noun phrases of a sentence."""
    if isinstance(node, Joined):
        yield from phrases(node.first)
        yield from phrases(node.second)
    elif isinstance(node, Clause):
        found = [node.subj, node.obj, node.to, node.than, node.place and node.place.np]
        if node.shared:
            found[0] = None
        for np in found:
            if np is not None:
                yield from inside(np)
        for part in (node.comp, node.purpose):
            if isinstance(part, (Clause, Joined)):
                yield from phrases(part)


def inside(np):
    yield np
    if np.owner is not None:
        yield from inside(np.owner)
    if np.rel is not None:
        yield from phrases(np.rel.clause)
