"""Sentences of several clauses: reasons, conditions, sequences, reports."""

from core import NP, Adverb, Clause, Joined, Place, Row, Weather, nodes, table
from draw import again, avoid, chances, kinds_of
from events import clear, hangs, soften, unsaid
from simple import Simple

ONE = chances(
    "event 10, quality 2, compare 5.5, exist 4.8, trade 1, located 1, have 1, "
    "passive 3, question 6, command 2.6, motion_purpose 7"
)
# One clause of a longer sentence
PART = chances(
    "event 10, quality 1, have 0.5, passive 1, exist 2.4, motion_purpose 5.5"
)


class Scenes(Simple):
    def sentence(self, clauses, rich):
        """(node, end of the sentence) of about so many clauses."""
        self.start(rich)
        if clauses == 1:
            node = getattr(self, self.weighted(ONE))()
        else:
            node = self.scene(clauses)
        self.check(node)
        if isinstance(node, Clause) and node.asks:
            return node, "?"
        return node, "!" if isinstance(node, Clause) and node.command else "."

    def scene(self, clauses):
        if clauses == 1:
            states = not (self.timed or self.mode in ("recent", "perfect"))
            return getattr(self, self.weighted(PART) if states else "event")()
        if clauses == 2:
            rows = table("scenes").values()
            row = self.weighted([(row, float(row.weight)) for row in rows])
            if row.modes:
                self.need(*row.modes.split())
            return getattr(self, row.key)()
        many = 3 * (clauses > 4)
        kinds = (("join", 5), ("report", 0.4 + many), ("weather", 0.6 + many))
        kind = self.weighted(kinds)
        if kind == "report" and "report" not in self.used:
            return self.report(clauses - 1)
        if kind == "weather" and "if" not in self.used:
            return self.in_weather(clauses - 1)
        self.need("past", "future", "habit", "prog")
        first = self.scene(clauses - 1 - int(self.rng.random() * (clauses - 2) * 0.7))
        self.forget()
        self.locked = True
        second = self.scene(max(1, clauses - len(list(leaves(first)))))
        return self.join("and", first, second)

    def forget(self):
        """A new main clause: people may be named again by their place in it."""
        self.people, self.general = [], False

    def join(self, key, first, second, swapped=False):
        adds = key == "and" or key.startswith("vp_")
        self.tags.add("coordination" if adds else key)
        node = Joined(table("joins")[key], first, second, swapped)
        if key in ("when", "if"):
            self.tags.add("subordinate")
        if key == "if":  # 如果 …, 就 …
            next(clauses(second)).zh_jiu = f"{node.id}.1"
        return node

    def sequence(self):
        """buys a hat and then gives it to …"""
        follows = table("follows")
        first = self.simple_event(self.frames(follows))
        avoid(hangs(first))
        row = table("follows")[first.frame.key]
        same, obj = row.object == "same", None
        if same:
            vague = first.obj.det in ("bare", "many", "some", "poss", "own")
            avoid(vague or first.obj.measure)
            obj = first.obj.mention()
            first.to = None
        second = self.second(first, row.next.split(), obj)
        if first.frame.key == "go_home":
            second.place = None
        if first.time:
            avoid(not kinds_of(first.time.row) & set(first.frame.when.split()))
        said = second.to and second.to.person < 3  # gives it to me
        if same and said and not second.frame.to.startswith("+"):
            second.to = None
        if first.tense != "present" and self.p(0.6):
            return self.join("vp_then", first, second)
        both = first.tense == "present" and second.obj
        if both:  # 还 在 would mean: is still
            second.place = None
        return self.join("vp_both" if both else "vp_and", first, second)

    def second(self, first, wanted, obj):
        """What the same person does next; the time stands in the first clause."""
        frames = self.frames(wanted)
        clause = self.event(frames, subj=unsaid(first.subj), obj=obj)
        avoid(clause.frame.has("needdur") and clause.tense == "past")
        first.time = first.time or clause.time
        clear(clause, "neg adverb modal front time")
        clause.main, clause.shared = False, True
        return clause

    def some_of_them(self):
        """bought ten apples and gave three of them to paul"""
        first = self.simple_event(self.frames(["buy", "pick", "bake", "make"]))
        obj = first.obj
        avoid(not obj.noun.plural)
        clear(obj, "measure owner number")
        obj.det, obj.plural, obj.adjs = "many", True, []
        if self.p(0.5) and first.frame.key in ("pick", "buy"):
            obj.det, obj.number = "bare", table("numbers")["ten"]
        first.to = None
        some = obj.mention()
        some.number = self.number(4)
        second = self.second(first, ["give", "eat", "send", "sell", "lend"], some)
        second.shift = False
        return self.join("vp_some", first, second)

    def animate(self):
        subj = self.person("person", subject=True)
        avoid(subj.noun and subj.noun.key == "child")
        avoid(subj.det == "all" or subj.number)
        return subj

    def cause(self, subj, stops=False):
        """(row of reasons.tsv, what says it: of somebody, or the weather)"""
        reasons = table("reasons").values()
        row = self.one([r for r in reasons if r.stops or not stops])
        if row.kind == "weather":
            return row, self.weather(row)
        comp = table("adjectives")[row.key]
        tense = "imperfect" if self.mode == "past" else "present"
        return row, Clause(table("frames")["be"], subj, tense=tense, comp=comp)

    def effect(self, row, subj):
        """What somebody does, or doesn't do, in this state."""
        stops = row.stops and (not row.effects or self.p(0.4))
        wanted = row.stops if stops else row.effects
        self.timed = self.timed or bool(stops)
        with self.setting(stopped_by=set()):  # can't swim, because it snows
            main = self.event(self.frames(wanted.split()), subj=subj)
        clear(main, "neg adverb modal manner")
        main.to = None if main.frame.has("for") else main.to
        avoid(main.frame.has("needdur") and main.tense == "past")
        if stops:
            soften(main.obj)
            self.prevent(main)
        return main

    def prevent(self, main):
        """doesn't, can't, doesn't want to work"""
        main.neg = "not"
        if self.mode == "future" or self.mode == "past" and self.p(0.5):
            return
        can = self.p(0.6) and self.mode != "past"  # no couldn't
        main.modal = table("modals")["can" if can else "want"]
        if self.mode == "prog":
            main.tense = "present"

    def because(self):
        """drinks some water because he is thirsty"""
        subj = self.animate()
        row, cause = self.cause(again(subj))
        if isinstance(cause, Weather):
            cause.cause = True
        main = self.effect(row, subj)
        avoid(hangs(main) or same_gender(main))  # where he lives because …
        return self.join("because", cause, main)

    def so(self):
        """it is raining, so we stay at home"""
        avoid("report" in self.used)  # says that …, so …: who draws the conclusion?
        subj = self.animate()
        row, cause = self.cause(subj)
        if isinstance(cause, Weather):
            self.timed = True
            return self.join("so", cause, self.effect(row, subj))
        main = self.effect(row, again(subj))
        cause.time, main.time = main.time, None  # it stands with what comes first
        return self.join("so", cause, main)

    def stopped(self):
        """wanted to swim, but it was raining"""
        subj = self.animate()
        row, cause = self.cause(again(subj), stops=True)
        self.mode = "past" if self.mode == "past" else "habit"
        with self.setting(stopped_by=set()):  # wanted to swim
            first = self.event(self.frames(row.stops.split()), subj=subj)
        clear(first, "neg adverb manner")
        if first.tense != "past":
            first.time = None
        first.modal = table("modals")["want"]
        return self.join("but", first, cause)

    def condition(self):
        """if it rains tomorrow, …; … when she is happy"""
        key = "if" if self.mode == "future" or self.p(0.05) else "when"
        subj = self.animate()
        last = self.p(0.88)
        self.timed = self.general = self.no_state = True
        with self.setting(mode="habit"):
            row, cause = self.cause(again(subj) if last else subj)
        if isinstance(cause, Weather):
            main = self.effect(row, subj)
            last = last and not hangs(main)  # where he lives when it snows
        else:
            cause.bare = key
            main = self.effect(row, subj if last else again(subj))
            avoid(last and hangs(main) or same_gender(main))
        return self.join(key, cause, main, swapped=last)

    def in_weather(self, clauses):
        """if it rains, one stays at home, and the other doesn't swim"""
        self.need("habit", "habit", "future", "habit", "habit")
        self.used.add("if")
        self.timed = self.no_state = self.locked = True
        reasons = table("reasons").values()
        row = self.one([r for r in reasons if r.kind == "weather"])
        with self.setting(mode="habit"):
            weather = self.weather(row)
        main = None
        for _ in range(clauses):
            self.forget()
            self.general = True
            self.used -= {*row.effects.split(), *row.stops.split()} - {"stay"}
            effect = self.effect(row, self.animate())
            main = self.join("and", main, effect) if main else effect
        key = "if" if self.mode == "future" else "when"
        return self.join(key, weather, main)

    def meanwhile(self):
        """when paul arrived, anna was reading"""
        self.timed = True
        comes = ["class:home", "arrive", "class:meet", "class:open"]
        first = self.simple_event(self.frames(comes))
        avoid(first.manner)
        with self.setting(mode="prog"):
            second = self.event(self.frames(without=["progonly"]))
        clear(second, "adverb manner front")
        second.tense, first.bare = "imperfect", "when"
        last = self.p(0.75) and not hangs(second)
        return self.join("when", first, second, swapped=last)

    def both(self):
        first = self.scene(1)
        self.forget()
        return self.join("and", first, self.scene(1))

    def contrast(self):
        """paul went to the market, but anna stayed at home"""
        going = ["class:out", "class:go", "class:play", "class:work"]
        first = self.simple_event(self.frames(going, ["needdur"]))
        self.timed = True
        other = self.person("person", subject=True)
        second = self.event(self.frames(["class:home", "class:rest"]), subj=other)
        clear(second, "front neg")
        return self.join("but", first, second)

    def likewise(self):
        """anna swims, and paul also swims"""
        frames = self.frames(without=["state", "needdur"])
        first = self.simple_event([f for f in frames if not f.obj])
        self.timed = True
        self.used.discard(first.frame.key)
        other = self.person("person", subject=True)
        second = self.event([first.frame], subj=other)
        avoid(second.manner or second.place or other.det == "all")
        clear(second, "neg modal front")
        second.adverb = Adverb(table("adverbs")["also"])
        return self.join("and", first, second)

    def there(self):
        """the market is near the church, and anna goes there every sunday"""
        if self.p(0.5):
            first = self.event(self.frames(["go", "stay", "arrive"]))
            near = first.place.np
            avoid(first.neg or first.modal or near is None or near.det == "poss")
        else:
            first = self.where_is()
            near = first.subj
        frames = self.frames_at(near.noun, ["post", "from", "goal2"])
        second = self.event(frames, place=Place(table("preps")["there"], None))
        if second.to and second.to.person < 3:
            second.to = None
        second.front = False
        return self.join("and", first, second)

    def where_is(self):
        """the market is near the church"""
        rows = list(table("places").values())
        goals = [r for r in rows if r.prep in ("at", "in") and "goal" in kinds_of(r)]
        row = self.one(goals)
        subj = self.place_noun(row)
        near = [r for r in rows if r.prep in ("near", "front", "behind")]
        near = [r for r in near if r.noun not in self.used | {"house"}]
        other = self.one(near)
        place = Place(table("preps")[other.prep], self.place_noun(other))
        return Clause(table("frames")["be"], subj, place=place)

    def report(self, clauses=1):
        """says that …"""
        key = self.one(["say", "think", "know_that", "hope"])
        if key == "hope":
            self.need("future")
            clauses = 1
        avoid("report" in self.used)
        self.used.add("report")
        speaker = self.person("person", subject=True, plural=False)
        avoid(key == "say" and speaker.person < 3)
        if clauses > 1:
            comp = self.scene(clauses)
        else:
            comp = self.one([self.event, self.event, self.quality])()
        avoid(key == "hope" and comp.tense != "future")
        first = comp
        while isinstance(first, Joined):
            last = first.swapped or first.how.key == "because"
            first = first.second if last else first.first
        if isinstance(first, Clause):
            first.front, first.inner = False, True
            rel = first.subj.rel
            avoid(rel and rel.kind == "whose")  # 知道 爸爸 …
        self.tags |= {"reported", "subordinate"}
        return Clause(table("frames")[key], speaker, comp=comp)

    def check(self, node):
        """Note what is said of which noun; avoid what is heard wrongly."""
        found = [n for n in nodes(node) if isinstance(n, NP)]
        avoid(untold_gender(found) or any(map(unclear, clauses(node))))
        said = [(n, a) for n in found for a in n.adjs]
        said += [(c.subj, c.comp) for c in clauses(node) if isinstance(c.comp, Row)]
        of_nouns = ((n.noun, a) for n, a in said if n.noun and not n.pronoun)
        self.pairs = {(a.en, noun.en) for noun, a in of_nouns}


def untold_gender(found):
    """A trade tells its French gender only by he, she, his, her or a name."""
    told = {n.ref for n in found if n.pronoun}
    trades = [n for n in found if n.is_a("trade") and not (n.plural or n.pronoun)]
    return any(not (n.name or n.of or n in told) for n in trades)


def unclear(c):
    """Is something heard with the wrong word?"""
    related, rel = any(np and np.rel for np in (c.obj, c.to)), c.subj.rel
    for_whom = c.to and c.frame.has("for") and c.to.person == 3
    behind = hangs(c) or c.passive and rel
    heard = (
        c.place and (related or for_whom),  # the girl paul met in the forest at the inn
        behind and c.time and not c.front,  # loves the girl who has a rabbit tonight
        rel and rel.kind == "obj" and " " in rel.clause.frame.en and not c.asks,
        c.neg and c.subj.number,  # who luc waited for eat; four farmers will not fish
    )
    return any(heard)


def same_gender(c):
    """Helps my brother because he is busy: who is?"""
    others = [n for n in (c.obj, c.to) if n and n.human and n.person == 3]
    alike = [n for n in others if n.gender == c.subj.gender and not n.plural]
    return c.subj.person == 3 and bool(alike)


def leaves(node):
    """The clauses and weathers that stand by themselves or are reported."""
    if isinstance(node, Joined):
        yield from leaves(node.first)
        yield from leaves(node.second)
    elif isinstance(node, (Clause, Weather)):
        yield node
        yield from leaves(getattr(node, "comp", None))


def clauses(node):
    return (leaf for leaf in leaves(node) if isinstance(leaf, Clause))
