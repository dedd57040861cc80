"""Draws what happens: a verb, its roles, place and time, and relative clauses."""

from dataclasses import replace
from functools import cache

from core import Adverb, Clause, Place, Relative, nouns_of, table
from draw import Draw, avoid, in_dress, kinds_of

TIME_CHANCE = {"past": 0.68, "habit": 0.65, "future": 0.75, "prog": 0.35}


@cache
def labels(row) -> frozenset:
    """The key and the flags."""
    return frozenset({row.key, *row.flags.split()})


@cache
def frames_of(wanted, without, modes) -> list:
    found = [f for f in table("frames").values() if modes & set(f.modes.split())]
    found = [f for f in found if wanted is None or labels(f) & wanted]
    return [f for f in found if not labels(f) & without]


@cache
def places_of(kinds) -> list:
    wanted, rows = set(kinds.lstrip("+").split()), table("places").values()
    return [row for row in rows if wanted & {row.key, *kinds_of(row)}]


@cache
def suits(kinds, noun) -> bool:
    """Can somebody or something have a role that asks for these kinds?"""
    known = {noun.key, *kinds_of(noun)} if noun else {"person", "adult", "young"}
    return not known.isdisjoint(kinds.split())


def has_object(frame) -> bool:
    """Does it take an object, without a preposition, after the verb?"""
    return bool(frame.obj) and not frame.fr_obj and "_" not in frame.zh


def clear(node, names):
    """Set these attributes back to what a new node has."""
    for name in names.split():
        setattr(node, name, getattr(type(node), name))


def unsaid(np):
    """A person or thing where it is understood: after who, after and."""
    if np.person < 3:
        return np
    return replace(np.mention(), pronoun=np.pronoun, det="the")


def hangs(clause) -> bool:
    """Would what follows be heard as part of a relative clause?"""
    place = clause.place and clause.place.np
    return any(np and np.rel for np in (clause.obj, clause.to, place))


def shared_out(clause):
    """All the boys own the boat: which of them?"""
    obj = clause.obj
    one = obj is not None and not (obj.plural or obj.is_a("mass") or obj.human)
    return clause.frame.key == "own" or one


def maybe_a_man(np):
    """Of i and you, nobody knows."""
    return np.person < 3 or np.gender != "f"


def soften(obj):
    """No some, three or many under a negation."""
    if obj is None or obj.pronoun or obj.det not in ("some", "many", "bare", "a"):
        return
    clear(obj, "measure number")
    obj.adjs = []  # one doesn't fail to plant beautiful trees
    mass = obj.is_a("mass")
    obj.plural = obj.det != "a" and not mass and bool(obj.noun.plural)
    obj.det = "a" if obj.det == "a" and not mass else "bare"


def brief(clause):
    """A relative clause says no more than it must."""
    clear(clause, "manner adverb neg front")
    clause.main = False
    return clause


def named_twice(np):
    """the baker anna: too long for the start of a clause without that"""
    return np.name and np.noun


def modal_fits(modal, clause, past):
    """Animals only can and must; one likes to swim, but not to lose a key."""
    if modal.flags and not clause.subj.human or past and modal.key == "can":
        return False
    liked = modal.key not in ("like", "love") or labels(clause.frame) & labels(modal)
    return liked and (modal.past or not past)


def only_fits(clause):
    """Can one do it to this thing only?"""
    obj = clause.obj
    if obj is None or obj.pronoun or obj.human or clause.to or clause.frame.fr_obj:
        return False
    return obj.det not in ("some", "many", "bare")


class Events(Draw):
    def frames(self, wanted=None, without=(), modes=None):
        """The frames of the mode that have a wanted label and no unwanted one."""
        wanted = None if wanted is None else frozenset(wanted)
        return frames_of(wanted, frozenset(without), frozenset(modes or (self.mode,)))

    def relative(self, np, subject=False):
        """Perhaps a relative clause, which has none itself."""
        if self.in_relative or np.det == "all":
            return
        mode = "habit" if self.mode == "habit" else "past"
        with self.setting(in_relative=True, timed=True, mode=mode):
            self.weighted(self.relatives(np, subject))(np)

    def relatives(self, np, subject):
        if np.human:  # after 给, 等, 比 one would hear: to, for, than dad
            whose = (self.rel_whose, 3.5 if subject else 0)
            return ((self.rel_subject, 5), (self.rel_object, 3), whose)
        if np.is_a("place") or np.is_a("building"):
            return ((self.rel_where, 9), (self.rel_nothing, 1))
        if np.is_a("animal"):
            return ((self.rel_subject, 2), (self.rel_object, 3))
        return ((self.rel_object, 4), (self.rel_of, 8), (self.rel_nothing, 0.2))

    def rel_nothing(self, _):
        """Give up: kept for its chance, as the draws after it depend on it."""
        avoid(self.p(1))

    def rel_subject(self, np):
        """the woman who sings, the man who has a dog"""
        if self.p(0.2) and np.human:
            thing = self.thing("animal_tame machine", dets="a 1")
            avoid(np.plural)  # three women with one hen
            clause = Clause(table("frames")["have"], unsaid(np), obj=thing)
        else:
            dull = ("class:rest", "class:wear", "inverse", "nosubjrel")
            modes = ("state",) if self.mode == "habit" else ("past",)
            frames = self.frames(without=dull, modes=modes)
            clause = self.event(frames, subj=unsaid(np))
            if clause.obj is None and clause.place is None:
                clause.place = self.place(clause.frame.place)
        np.rel = Relative("subj", brief(clause))

    def rel_object(self, np):
        """the book that she reads"""
        never = ("norel", "ditrans", "class:beast")
        modes = ("state",) if self.mode == "habit" else ("past", "state")
        frames = self.frames(without=never, modes=modes)
        frames = [f for f in frames if has_object(f) and "*" not in f.en]
        clause = self.event(frames, obj=unsaid(np))
        clause.gap = "obj"
        bare = not np.human and self.p(0.5) and not named_twice(clause.subj)
        np.rel = Relative("obj", brief(clause), bare=bare)

    def rel_of(self, np):
        """the key that she needs: French dont"""
        told = self.mode == "past"
        with self.setting(mode="habit"):
            frames = [f for f in self.frames() if f.fr_obj == "de"]
            clause = self.event(frames, obj=unsaid(np))
        if told and not clause.frame.has("state"):
            clause.tense = "past"
        bare = self.p(0.4) and not named_twice(clause.subj)
        np.rel = Relative("of", brief(clause), bare=bare)

    def rel_whose(self, np):
        """the girl whose mother is a doctor"""
        child = np.is_a("child")
        avoid(any(a.en == "old" for a in np.adjs) or np.plural and not child)
        kin = "mother father" if child else "mother father brother sister"
        owned = self.noun(nouns_of(kin), det="none")
        trade = self.pick([r for r in nouns_of("trade") if r.key != "student"])
        clause = Clause(table("frames")["be"], owned, comp=trade)
        np.rel = Relative("whose", clause)

    def rel_where(self, np):
        """the village where my aunt lives"""
        rows = [r for r in table("places").values() if r.noun == np.noun.key]
        rows = [r for r in rows if r.prep in ("in", "at", "on")]
        kinds = {kind for row in rows for kind in kinds_of(row)}
        frame = table("frames")[self.one(sorted(kinds & {"live", "work"}))]
        subj = self.person("adult", subject=True, plural=False)
        avoid(self.mode == "past" and not frame.has("state"))
        np.rel = Relative("where", Clause(frame, subj))

    def event(self, frames=None, subj=None, obj=None, place=None):
        """Somebody does something; the roles that are given decide on the verb."""
        frame = self.verb(self.frames() if frames is None else frames, subj, obj)
        if subj is None:
            leads = obj is None or self.p(0.4)
            subj = self.somebody(frame.subj, subject=leads)
        clause = Clause(frame, subj)
        if frame.obj:
            clause.obj = obj or self.role_object(frame, subj)
        self.recipient(clause)
        present = self.mode == "habit" or frame.has("state")
        clause.tense = "present" if present else self.mode
        where = frame.place
        if place is None and where and (where.startswith("+") or self.p(0.85)):
            place = self.place(where, subj)
        clause.place = place
        self.set_time(clause)
        self.attitude(clause)
        self.set_manner(clause)
        avoid(subj.det == "all" and shared_out(clause))
        avoid(frame.key == "own" and subj.rel)
        avoid(frame.key == "visit" and clause.obj.person < 3)  # 来, not 去
        if self.mode == "habit":
            self.how_often(clause)
        if frame.has("sense"):
            self.tags.add("word-sense")
        if frame.has("idiom"):
            self.tags.add("idiom")
        return clause

    def simple_event(self, frames):
        """An event that another clause can go on from."""
        clause = self.event(frames)
        avoid(clause.neg or clause.modal or clause.adverb)
        return clause

    def verb(self, frames, subj, obj):
        for role, np in (("subj", subj), ("obj", obj)):
            if np is not None:
                frames = [f for f in frames if suits(getattr(f, role), np.noun)]
        if not self.in_relative:  # no swimming, no loving while it snows
            out = self.stopped_by | ({"state"} if self.no_state else set())
            frames = [f for f in frames if not labels(f) & out]
        frame = self.weighted([(f, float(f.weight)) for f in self.unused(frames)])
        label = frame.flags.rpartition("class:")[2]
        self.used |= {frame.key, label} & table("frames").keys()
        return frame

    def role_object(self, frame, subj):
        rows = nouns_of(frame.obj)
        people = [row for row in rows if "person" in kinds_of(row)]
        if people and (len(people) == len(rows) or self.p(0.6)):
            return self.somebody(frame.obj)
        if frame.has("class:wear") and maybe_a_man(subj):
            rows = [r for r in rows if not in_dress(r)]
        things = " ".join(r.key for r in rows if r not in people)
        np = self.thing(things, frame=frame, owner=subj)
        if frame.key == "write":  # one hears how beautiful a story is
            np.adjs = []
        return np

    def recipient(self, clause):
        """gives it to paul, bakes anna a cake"""
        frame, obj = clause.frame, clause.obj
        if not frame.to or (not frame.to.startswith("+") and self.p(0.6)):
            return
        given = obj.of is not None and not obj.pronoun  # the book that she gives
        if frame.has("for") and self.p(0.5) or given:
            return
        to = clause.to = self.person()
        avoid(in_dress(obj.noun) and maybe_a_man(to))
        if frame.has("gei") or to.rel and to.rel.clause.to:
            to.rel = None  # 给 那 个 给 …
        light = to.person < 3  # told us a story
        if frame.has("ditrans"):
            likely = self.p(0.9) and to.det != "a"  # not: gave a boy the book
            clause.shift = likely or bool(obj.rel) or light
        clause.shift = clause.shift and not obj.pronoun and to.rel is None
        avoid(to.number and obj.number)  # three flowers to four girls
        # gave the boat that the girl needs to us
        avoid(obj.rel and not clause.shift)

    def place(self, kinds, subj=None):
        row = self.one([r for r in places_of(kinds) if r.noun not in self.used])
        prep = table("preps")[row.prep]
        if row.prep == "home":
            return Place(prep, None)
        np = self.place_noun(row)
        if "own" in kinds_of(row):
            np.det, np.owner = "poss", self.owner(subj)
        else:
            self.describe(np, 0.1 + 0.3 * self.rich)
            if self.p(0.35 + 0.4 * self.rich):
                self.relative(np)
        return Place(prep, np)

    def set_time(self, clause, always=False):
        """Perhaps yesterday, every day; once a sentence."""
        told = self.timed or clause.frame.has("state")
        if told or not (always or self.p(TIME_CHANCE.get(self.mode, 0))):
            return
        kinds = set(clause.frame.when.split())
        rows = [r for r in table("times").values() if r.tense == self.mode]
        rows = [r for r in rows if kinds & kinds_of(r)]
        if clause.subj.det == "all":  # 都 can't stand for both
            rows = [r for r in rows if not r.zh.startswith("每")]
        if not rows:
            return
        clause.time = Adverb(self.one(rows))
        self.timed, self.often = True, self.often or self.mode == "habit"
        clause.front = hangs(clause) or self.p(0.1)

    def how_often(self, clause):
        """she reads: when, how often?"""
        told = clause.time or clause.adverb or clause.modal or clause.neg
        if told or self.general:
            return
        avoid(clause.manner)  # swims for two hours: how often?
        if self.in_relative or clause.frame.has("state"):
            return
        self.set_time(clause, always=True)
        if clause.time is None:
            avoid(self.often or clause.subj.det == "all")
            avoid(clause.frame.key == "go_home")
            clause.adverb = Adverb(table("adverbs")[self.one(["often", "sometimes"])])

    def attitude(self, clause):
        """Negation, a modal verb or an adverb."""
        frame, plain = clause.frame, self.mode in ("past", "habit")
        must, perfect = frame.has("expneed"), self.mode == "perfect"
        if must or perfect and frame.has("exp") and self.p(0.5):
            self.ever(clause, never=self.p(0.6) or not must)
        elif perfect:
            clause.adverb = Adverb(table("adverbs")["already"])
        elif plain and self.p(0.07) and not frame.has("post"):
            self.negate(clause)
        elif plain and not self.in_relative and self.p(0.14):
            self.modal(clause)
        elif self.p(1 if self.mode == "prog" else 0.16):
            self.adverb(clause)

    @staticmethod
    def ever(clause, never):
        """has seen, has never seen the lake"""
        avoid(clause.subj.det == "all")
        if never:
            avoid(clause.obj.rel)  # has never eaten the soup that …
            clause.neg = "never"
            soften(clause.obj)

    def negate(self, clause):
        if clause.subj.det == "all":
            return
        soften(clause.obj)
        once = self.mode == "past" or clause.frame.has("state")
        once = once or self.general and self.p(0.6)
        avoid(not (once or clause.obj or clause.place))  # never sleeps
        clause.neg = "not" if once else "never"
        if clause.neg == "never" or self.mode == "habit":
            clause.time = None

    def modal(self, clause):
        """wants to swim, could swim"""
        frame, past = clause.frame, self.mode == "past"
        if frame.has("state") or frame.has("nomodal"):
            return
        rows = [m for m in table("modals").values() if modal_fits(m, clause, past)]
        clause.modal = self.one(rows)
        if clause.modal.key not in ("like", "love"):
            clause.time = clause.time if past else None
            self.timed = clause.time is not None

    def adverb(self, clause):
        subj, free = clause.subj, not (clause.time or self.often)
        if subj.det == "all":
            return
        tense = "state" if clause.frame.has("state") else self.mode
        fits = {
            "also": False,  # only where somebody else did it, too
            "still": clause.obj is None,
            "all": subj.plural and subj.person == 3,
            "only": tense == "past" and subj.rel is None and only_fits(clause),
            "soon": free and not self.timed,
        }
        rows = [r for r in table("adverbs").values() if tense in r.tenses.split()]
        rows = [r for r in rows if fits.get(r.key, free)]
        if rows:
            clause.adverb = Adverb(self.one(rows))

    def set_manner(self, clause):
        """How, how long."""
        must = clause.frame.has("needdur") and self.mode == "past"
        if hangs(clause):
            avoid(must)
            return
        lasts = clause.frame.has("dur") and self.mode in ("past", "future", "habit")
        lasts = lasts and not clause.neg and not clause.modal
        lasts = lasts and (clause.obj is None or clause.obj.human)
        rows = []
        if lasts and (self.p(0.2) or must):
            rows = self.durations(clause)
        elif self.p(0.13) and self.mode != "perfect" and not clause.neg:
            rows = self.manners(clause)
        if rows:
            clause.manner = Adverb(self.one(rows))
            if clause.manner.row.flags:
                self.tags.add("idiom")
        avoid(must and not (clause.manner or clause.neg))

    def durations(self, clause):
        """for two hours, all day"""
        out, time = set(), clause.time
        if time and time.row.key.endswith(("morning", "evening", "night")):
            out.add("all_day")
        if "." in clause.frame.zh:  # 游.泳 parts
            out.add("a_long_time")
        manners = table("manners").values()
        return [m for m in manners if m.where == "after" and m.key not in out]

    def manners(self, clause):
        """at once, slowly, on foot"""
        rows = [m for m in table("manners").values() if m.where == "before"]
        if self.mode == "habit" or clause.time:
            rows = [m for m in rows if m.key != "at_once"]
        return [m for m in rows if labels(clause.frame) & set(m.needs.split())]
