"""Draws sentences of one clause: states, comparisons, questions, commands."""

from core import NP, Clause, Place, Weather, nouns_of, table
from draw import HELD_OUT, avoid, chances, kinds_of
from events import Events, clear, has_object

QUESTIONS = chances("yes 5, subj 2, obj 3, place 3, time 2, why 2, number 2")


class Simple(Events):
    def quality(self):
        """Somebody or something is young, tired, expensive."""
        row = self.one([a for a in table("adjectives").values() if a.of])
        subj = self.theme(row.of, "the 4, poss 3, this 1, own 1")
        if subj.noun:
            held = (row.en, subj.noun.en) in HELD_OUT
            avoid(held and not self.force_held)
            subj.adjs = []  # the young man is not young
        clause = Clause(table("frames")["be"], subj, comp=row)
        if row.predicate == "hen" and self.p(0.2):
            clause.degree = "very"
        elif self.p(0.1) and "dont_neg" not in row.flags and subj.det != "all":
            clause.neg = "not"
        return clause

    def compare(self):
        """the church is older than the mill"""
        rows = table("adjectives").values()
        row = self.one([a for a in rows if "compare" in a.flags])
        beasts = ("animal_tame", "animal_pet", "mammal")  # goats and ducks
        kind = self.one([k for k in row.of.split() if k not in beasts])
        mine = "the 3, poss 3, this 1, own 2"
        dets = "the 3, this 2" if kind == "building" else mine
        a, b = (self.theme(kind, dets, plural=False) for _ in range(2))
        a.adjs = b.adjs = []
        how = "more" if self.p(0.7) else "as"
        return Clause(table("frames")["be"], a, comp=row, than=b, degree=how)

    def theme(self, kinds, dets, **more):
        """Somebody or something that has one of the kinds of an adjective."""
        kind = kinds.split()[0]
        if kind in ("person", "adult", "trade", "child"):
            return self.person(kind, subject=True, **more)
        np = self.thing(kinds, dets)
        np.plural = np.plural or np.is_a("fruit")  # one's apples, not an apple
        return np

    def exist(self):
        """there are four goats on the hill"""
        row = self.one([r for r in table("places").values() if r.holds])
        np = self.place_noun(row)
        self.describe(np, 0.3 * self.rich)
        what = self.thing(row.holds, "a 4, number 3, many 1")
        avoid(what.number and not what.noun.plural)
        if what.is_a("mass"):
            what.det, what.plural = "some", False
        what.there = True
        place = Place(table("preps")[row.prep], np)
        return Clause(table("frames")["exist"], what, place=place)

    def trade(self):
        """my aunt is a baker, wants to be a doctor, became a painter"""
        key = self.one(["be", "be", "become"])
        subj = self.one([self.named, self.kin])()
        avoid(subj.noun and subj.noun.key == "daughter")
        trade = self.pick(nouns_of("trade"))
        clause = Clause(table("frames")[key], subj, comp=trade)
        if key == "become":
            clause.tense = "past"
        elif self.p(0.4):
            clause.modal = table("modals")["want"]
        return clause

    def kin(self):
        return self.cast(self.relation(self.pick(nouns_of("kin"))))

    def located(self):
        """the dog is behind the house"""
        kinds = "animal_tame bicycle furniture read hat lost"
        subj = self.thing(kinds, "the 3, poss 3, own 2")
        where = "indoor onto"
        if subj.is_a("animal") or subj.is_a("machine"):
            where = "out indoor"
        elif subj.is_a("furniture"):
            where = "indoor"
        place = self.place(where)
        avoid(subj.is_a("furniture") and place.prep.key == "home")
        return Clause(table("frames")["be"], subj, place=place)

    def have(self):
        """luc has two horses, no bicycle"""
        frame = table("frames")["have"]
        subj = self.person("adult", subject=True)
        obj = self.thing(frame.obj, "a 4, number 2")
        avoid((obj.number or subj.plural) and not obj.noun.plural)
        # three women with one hen
        avoid(subj.plural and subj.person == 3 and obj.is_a("animal"))
        neg = "not" if obj.det == "a" and self.p(0.2) else ""
        return Clause(frame, subj, obj=obj, neg=neg)

    def weather(self, reason):
        """it is raining; one weather a sentence, and nobody swims in it"""
        avoid("sky" in self.used)
        self.used.add("sky")
        self.stopped_by, kind = set(reason.stops.split()), reason.key
        rows = [w for w in table("weather").values() if w.kind == kind]
        row = self.one([w for w in rows if self.mode in w.modes.split()])
        self.tags |= {"weather", "idiom"} if kind == "dogs" else {"weather"}
        return Weather(row)

    def passive(self):
        """the cheese was eaten by the mouse"""
        self.need("past")
        clause = self.event(self.frames(["bei"]))
        subj, obj = clause.subj, clause.obj
        avoid(subj.pronoun or subj.person < 3 or obj.rel)
        if obj.det in ("bare", "some", "many", "a"):
            clear(obj, "det number measure")
        clear(clause, "place neg adverb modal manner")
        clause.passive = True
        return clause

    def motion_purpose(self):
        """goes to the market to buy bread"""
        self.need("past", "habit", "future")
        clause = self.event([table("frames")["go"]])
        avoid(clause.neg or clause.manner)
        there = clause.place.np
        errands = [f for f in self.frames_at(there.noun) if f.has("errand")]
        there.rel = None
        with self.setting(timed=True):
            clause.purpose = self.event(errands, subj=clause.subj)
        clear(clause.purpose, "place adverb modal manner neg time")
        self.tags.add("purpose")
        return clause

    def frames_at(self, noun, without=()):
        """What one does at a place of which was spoken."""
        row = next(r for r in table("places").values() if r.noun == noun.key)
        kinds = kinds_of(row)
        frames = self.frames(without=without)
        return [f for f in frames if kinds & set(f.place.lstrip("+").split())]

    def question(self):
        asks = self.weighted(QUESTIONS)
        self.mode = self.one(["past", "future", "habit", "past", "prog"])
        if asks in ("number", "time"):
            self.mode = self.one(["past", "future"])
        self.timed = asks == "time"
        ask = getattr(self, f"ask_{asks}", self.event)
        clause = ask()
        clause.asks, modal = asks, clause.modal
        clear(clause, "adverb front")
        avoid(clause.subj.number or clause.subj.det == "all")
        avoid(clause.subj.person == 1 and not clause.subj.plural)
        avoid(asks != "yes" and clause.frame.key == "own")
        avoid(modal and modal.key in ("must", "have_to"))
        clause.neg = "not" if clause.neg and asks in ("yes", "why") else ""
        if asks != "why" and clause.manner:
            clause.manner = None
            avoid(clause.frame.has("needdur"))
        self.tags.add("question")
        return clause

    def ask_obj(self):
        """what did anna read?"""
        frames = self.frames(without=["inverse", "class:wear"])
        frames = [f for f in frames if has_object(f)]
        frames = [f for f in frames if not f.has("def") or f.has("asked")]
        clause = self.event(frames)
        avoid(clause.obj.person < 3)
        clause.obj.rel = None
        return clause

    def ask_place(self):
        """where does anna live?"""
        frames = [f for f in self.frames(without=["post", "from"]) if f.place]
        clause = self.event([*frames, table("frames")["live"]])
        clause.place = clause.place or self.place("out")
        avoid(clause.frame.has("goal2"))
        return clause

    def ask_number(self):
        """how many apples did anna buy?"""
        clause = self.event([f for f in self.frames(without=["def"]) if has_object(f)])
        obj = clause.obj
        avoid(obj.human or not obj.noun.plural)
        clear(obj, "measure number rel")
        obj.plural, obj.adjs, obj.det = True, [], "which"
        return clause

    def ask_subj(self):
        """who helped the farmer?"""
        frames = self.frames(without=["inverse"])
        clause = self.event([f for f in frames if "person" in f.subj.split()])
        clause.subj, obj = NP(pronoun=True), clause.obj
        if obj and obj.det == "poss" and obj.owner.pronoun:
            clear(obj, "det owner")
        place = clause.place and clause.place.np
        avoid(place and place.det == "poss")
        return clause

    def command(self):
        """open the door! don't sell it!"""
        self.mode, self.timed = "future", True
        self.used |= {"you", "he", "she"}
        frames = self.frames(["ba", "class:give", "class:help"], ["sense", "idiom"])
        frames = [f for f in frames if "person" in f.subj]
        clause = self.event(frames, subj=NP(person=2))
        clause.command = True
        clear(clause, "tense modal adverb manner")
        clause.neg = "not" if clause.frame.has("dont") and self.p(0.4) else ""
        avoid(clause.obj.person < 3)
        to = clause.to
        avoid(to and (to.person < 3 or to.det == "a"))
        # please help five girls
        avoid(any(n and n.human and n.number for n in (clause.obj, to)))
        self.tags.add("imperative")
        return clause
