"""Who does what and where in the Village: noun phrases and verb phrases."""

from __future__ import annotations

from functools import cache

from core import HELD, NP, VP, Gen, Ph, Pron, Reject, home, pat, place, vp_words
from lexicon import ADJ, MEASURES, NOUN, NUMBERS, RIVERSIDE, TIMES, nouns


@cache
def listed(text: str) -> list[str]:
    return text.split()


@cache
def spots(text: str) -> list[tuple[str, str]]:
    """Places: "in garden, near river"."""
    return [tuple(item.split()) for item in text.split(", ")]


PROF = nouns("prof")
ADULT = nouns("prof", "plain")
PLAIN = listed("woman man boy girl child")
KIN = nouns("kin", "kin2") + ["sister", "friend"]
CHILDREN = ["child", "boy", "girl"]
PETS = nouns("pet")
FARM = nouns("farm")
ANIMALS = nouns("animal")
FRUIT = nouns("fruit")
FOODC = nouns("foodc")
FOODM = nouns("foodm")
DRINK = nouns("drink")
READ = nouns("read")
SHOP = listed(
    "hat coat dress basket umbrella chair table bicycle boat cart violin book "
    "painting box"
)
MEASURE_OF = {}
for _m in MEASURES:
    for _n in _m[4]:
        MEASURE_OF.setdefault(_n, []).append(_m[:4])
FEW = listed("two two two three three three four four five ten")
OUT = spots(
    "in garden, on square, near river, behind house, front school, in forest, near "
    "lake, in field, near bridge, front church, on hill, behind barn"
)
TRADE = spots("at market, on square, in shop, front church, at farm, near station")
WORKPLACE = {
    "baker": ["in bakery"],
    "farmer": ["in field", "at farm"],
    "doctor": ["at hospital"],
    "fisherman": ["near river", "near lake"],
    "shepherd": ["on hill"],
    "carpenter": ["behind church", "near mill"],
    "gardener": ["in garden"],
    "teacher": ["at school"],
    "nurse": ["at hospital"],
    "cook": ["in kitchen", "at inn"],
    "singer": ["at inn"],
    "postman": ["in village"],
    "mayor": ["in village"],
    "painter": ["in forest", "near river", "near lake"],
}
GOALS = listed(
    "market school church river lake bakery shop station library inn hospital mill "
    "farm forest"
)
BACK = listed(
    "market school church forest river lake field station library inn mill farm "
    "hospital bakery"
)


# ---------------------------------------------------------------- noun phrases

COLOURS = ("red", "white", "black", "green", "blue", "yellow")


def adjs(g: Gen, key: str, p: float):
    """Perhaps an adjective (rarely small/big + colour) that suits the noun."""
    have = NOUN[key].adjs
    if not have or not g.p(p):
        return []
    if g.force_held:
        held = [a for a in have if (a, key) in HELD]
        if held:
            return held
    if g.in_rel:  # two 的 in a row sound heavy
        have = [a for a in have if not ADJ[a].zh_de]
        if not have:
            return []
    first = g.one(have)
    colours = [a for a in have if a in COLOURS]
    if first in ("small", "big") and colours and g.p(0.3):
        return [first, g.one(colours)]
    return [first]


def obj(g, key, dets=("a", "a", "this", "num", "many", "bare"), p=None, measured=True):
    """An object noun phrase with a determiner that fits the noun."""
    n = NOUN[key]
    p = g.rich * 0.7 + 0.15 if p is None else p
    if key in MEASURE_OF and measured and g.p(0.4):
        m = g.one(MEASURE_OF[key])
        g.use(m[0])
        countable = n.en_pl is not None and m[0] != "piece"
        det = g.one(["a", "a", "two", "three"])
        return NP(
            g,
            key,
            det,
            pl=countable,
            measure=m,
            adjs=[
                a for a in adjs(g, key, p * 0.5) if a in ("fresh", "hot", "cold", "red")
            ][:1],
        )
    mass = n.kinds & {"foodm", "drink", "soup", "wine", "sound"}
    if mass:
        det = "some" if g.p(0.25) and key != "music" else "bare"
        return NP(g, key, det, adjs=adjs(g, key, p))
    det = g.one(dets)
    if n.en_pl is None and det in ("num", "many", "bare", "some"):
        det = "a"
    if det == "num":
        det = g.one(FEW)
    if det in NUMBERS:
        return NP(g, key, det, pl=True, adjs=adjs(g, key, p))
    if det in ("many", "bare", "some", "these"):
        return NP(g, key, det, pl=True, adjs=adjs(g, key, p))
    return NP(g, key, det, adjs=adjs(g, key, p))


def loosen(np):
    """Indefinite numbers sound odd in habits: love to eat apples, not three apples."""
    if "part" in np.noun.kinds:
        if np.det == "this":
            np.det = "the"
        return
    if np.det in NUMBERS or np.measure or np.det in ("many", "this"):
        if np.noun.kinds & {"foodm", "drink", "soup", "wine"}:
            np.det, np.measure = "bare", None
        elif np.noun.en_pl:
            np.det, np.measure, np.pl, np.p = "bare", None, True, 4


def own(g, who, key, pl=False, p=0.2):
    """my/his/… noun, belonging to `who`."""
    owner = who if isinstance(who, Pron) else Pron(g, who.pron_key())
    return NP(g, key, "poss", pl=pl, owner=owner, adjs=adjs(g, key, p))


def kin(g, keys=None, det=None, who=None):
    """my grandmother, our friends, the baker 's daughter."""
    key = g.noun(keys or KIN)
    pl = NOUN[key].en_pl is not None and g.p(0.45)
    if (
        who is None
        and g.p(0.3 + 0.2 * g.rich)
        and "kin2"
        in NOUN[key].kinds
        | {k for k in ("kin2",) if key in ("mother", "father", "brother", "sister")}
    ):
        owner = NP(g, g.noun(PROF), "the")
        return NP(g, key, "own", pl=pl, owner=owner)
    if who is None:
        keys = ((6, "i"), (3, "you"), (4, "we"))
        if "poss:he" not in g.used:
            keys += ((2, "he"), (2, "she"))
        who = Pron(g, g.weighted(keys))
    return own(g, who, key, pl)


def speaker(g):
    """A pronoun that needs no antecedent."""
    return Pron(g, g.one(["i", "i", "you", "we"]))


def person(g, child=None, rel=True, pron=0.12, plural=True, who=None):
    """Somebody as a subject or an object. child: False for adults only."""
    if g.p(pron):
        return Pron(
            g,
            g.weighted(who or ((3, "i"), (3, "you"), (2, "he"), (2, "she"), (4, "we"))),
        )
    kins, pool = KIN, ADULT
    if child is False:
        pool = [k for k in ADULT if k not in CHILDREN]
        kins = [k for k in KIN if k not in ("son", "daughter")]
    if g.p(0.32):
        return kin(g, kins)
    if plural and g.p(0.3):
        pool = (
            ["woman", "woman", "farmer"]
            if child is False
            else listed("woman girl farmer child boy woman girl farmer child")
        )
        return (
            NP(g, g.noun(pool), "the", pl=True)
            if not g.p(g.rich * 0.4) or not rel
            else with_rel(g, NP(g, g.noun(pool), "the", pl=True))
        )
    key = g.noun(pool)
    a = [
        x
        for x in adjs(g, key, 0.2 + 0.5 * g.rich)
        if g.force_held or x not in ("good",)
    ]
    np = NP(g, key, "the", adjs=a)
    if (rel and g.p(g.rich * 0.45)) or key in ("man", "woman") and not a and g.p(0.4):
        with_rel(g, np)
    return np


def with_rel(g, np):
    np.rel = person_rel(g, np)
    return np


def other(g, child=None, rel=True):
    """A second person: no "he" or "his" that could be taken for the first."""
    g.used.add("poss:he")
    return person(g, child, rel, 0.06, True, ((1, "i"), (1, "we")))


def animal(g, keys=None, plural=True):
    key = g.noun(keys or ANIMALS)
    n = NOUN[key]
    pl = plural and n.en_pl is not None and g.p(0.35)
    a = adjs(g, key, 0.25 + 0.4 * g.rich)
    r = g.rng.random()
    if "wild" in n.kinds and not pl and r < 0.25:
        return NP(g, key, "this", adjs=a)
    if r < 0.55 or "wild" in n.kinds:
        return NP(g, key, "these" if pl and g.p(0.2) else "the", pl=pl, adjs=a)
    if r < 0.65 and not pl:
        return NP(g, key, "this", adjs=a)
    if r < 0.85:
        who = Pron(g, g.one(["i", "we", "you"]))
        return NP(g, key, "poss", pl=pl, owner=who, adjs=a)
    if r < 0.93:
        return NP(
            g,
            key,
            "own",
            pl=pl,
            adjs=a,
            owner=NP(g, g.noun(listed("farmer shepherd baker mayor teacher"))),
        )
    return NP(
        g,
        key,
        "own",
        pl=pl,
        adjs=a,
        owner=own(
            g,
            Pron(g, "i"),
            g.noun(listed("uncle aunt neighbour friend grandmother brother")),
            p=0,
        ),
    )


OWNED = ("garden", "house", "kitchen", "farm", "field", "shop", "barn")


def at(g, places, p=None, s=None):
    """A place phrase from ((preposition, noun), …); `s` may own the place."""
    prep, key = g.one(places)
    g.use(key, "fr:" + NOUN[key].fr)
    if key == "room":
        return place(g, prep, own(g, s, key, p=0))
    np = NP(g, key, "the", adjs=adjs(g, key, 0.1 + 0.5 * g.rich if p is None else p))
    if key in OWNED and (s is None or s.person) and g.p(0.1 + 0.2 * g.rich):
        if s is not None and (g.p(0.6) or key == "kitchen"):
            np = own(g, s, key, p=0)
        else:
            np = NP(
                g,
                key,
                "own",
                adjs=np.adjs,
                owner=NP(g, g.noun(listed("mayor doctor teacher painter gardener"))),
            )
    return place(g, prep, np)


def workplace(g, subj):
    key = subj.noun.key if isinstance(subj, NP) else None
    if key in WORKPLACE:
        prep, spot = g.one(WORKPLACE[key]).split()
        return at(g, [(prep, spot)], 0.15)
    return at(
        g,
        spots(
            "in garden, at market, in field, at farm, at hospital, in bakery, at inn, "
            "in shop, at library"
        ),
    )


# ------------------------------------------------------------ what people do
# Each takes (g, subject) and returns a verb phrase.


def eat(g, s):
    key = g.noun(FOODM + FOODC + ["rice"])
    countable = NOUN[key].en_pl is not None
    m = [x for x in MEASURE_OF.get(key, ()) if x[0] in ("piece", "bowl")]
    if m and g.p(0.4):
        g.use(m[0][0])
        return VP(g, "eat", NP(g, key, g.one(["a", "a", "two"]), measure=m[0]))
    dets = ("a", "a", "two", "three", "bare", "bare", "this", "some")
    if not countable:
        return VP(g, "eat", obj(g, key, measured=False))
    det = g.one(dets[2:6] if key == "cherry" else dets)
    return VP(
        g,
        "eat",
        NP(
            g,
            key,
            det,
            pl=det not in ("a", "this"),
            adjs=adjs(g, key, 0.2 + 0.5 * g.rich),
        ),
    )


def drink(g, s):
    adult = isinstance(s, Pron) or "adult" in s.noun.kinds
    drinks = [k for k in DRINK if k != "coffee"] if is_child(s) else DRINK
    key = g.noun(drinks + (["wine"] if adult else []))
    return VP(g, "drink", obj(g, key))


def buy(g, s):
    r = g.rng.random()
    if r < 0.35:
        o = obj(g, g.noun(SHOP), ("a", "a", "this", "num"))
    elif r < 0.75:
        o = obj(g, g.noun(FOODC + FOODM + FOODC), ("bare", "num", "many", "some"))
    elif r < 0.88:
        o = obj(g, g.noun(FARM), ("a", "a", "num", "this"))
    else:
        o = obj(
            g,
            g.noun(listed("flower newspaper house gift milk coffee tea")),
            ("a", "this", "num"),
        )
    return VP(g, "buy", o)


SELLS = {
    "baker": ["bread", "cake"],
    "farmer": listed("egg milk apple carrot cheese pear"),
    "fisherman": ["fish"],
    "shepherd": ["cheese", "milk"],
    "painter": ["painting"],
    "gardener": listed("flower carrot pear cherry tree"),
    "carpenter": ["chair", "table"],
    "cook": ["cake", "soup"],
}
GOODS = listed(
    "apple pear cherry egg mushroom bread cheese honey milk flower hat basket book "
    "dress fish meat"
)


def buy_food(g, s):
    key = g.noun([*FOODC, *FOODM, "milk", "newspaper", "flower"])
    dets = ("a",) if key == "newspaper" else ("bare", "bare", "some")
    return VP(g, "buy", obj(g, key, dets, measured=False))


def buy_goods(g, s):
    """What one finds in a shop or at a market."""
    if g.p(0.5):
        return VP(g, "buy", obj(g, g.noun(SHOP), ("a", "this", "two")))
    dets = ("bare", "two", "three", "many", "some")
    return VP(g, "buy", obj(g, g.noun([*FOODC, *FOODM]), dets))


def sell(g, s):
    key = s.noun.key if isinstance(s, NP) else None
    if key in PROF and key not in SELLS:
        raise Reject
    return VP(
        g,
        "sell",
        obj(g, g.noun(SELLS.get(key, GOODS)), ("bare", "bare", "many"), measured=False),
    )


def read(g, s):
    return VP(
        g,
        "read",
        obj(g, g.noun(READ), ("a", "a", "this", "num")),
        pre=at(
            g, spots("in garden, in kitchen, in room, at library, under tree"), 0.1, s
        )
        if g.p(0.4 + 0.3 * g.rich)
        else (home(g) if g.p(0.15) else None),
    )


def recipient(g, s):
    """Whom something is given to."""
    if g.p(0.3) and not (isinstance(s, Pron) and s.key in ("i", "we")):
        return Pron(g, g.one(["i", "we"]))
    if g.p(0.35) and isinstance(s, NP):
        return own(g, s, g.noun([k for k in KIN]))
    if g.p(0.3):
        return NP(g, "child", "the", pl=True) if "child" not in g.used else kin(g)
    return person(g, rel=False, pron=0)


def write(g, s):
    to = recipient(g, s)
    o = obj(g, g.noun(["letter"]), ("a", "a", "num"))
    return VP(g, "write", o, dat=("to", to))


def send(g, s):
    o = obj(g, g.noun(["letter", "gift", "book", "painting"]), ("a", "a", "num"))
    return VP(g, "send", o, dat=("to", recipient(g, s)))


def give(g, s):
    key = g.noun(
        listed(
            "apple pear flower book gift hat basket cake egg umbrella key carrot "
            "bread milk cheese honey soup soup rice rice"
        )
    )
    return VP(
        g, "give", obj(g, key, ("a", "a", "two", "three")), dat=("to", recipient(g, s))
    )


def bring(g, s):
    key = g.noun(
        listed(
            "bread cheese milk flower letter gift soup water newspaper cake coffee tea"
        )
    )
    return VP(
        g, "bring", obj(g, key, ("a", "a", "two", "three")), dat=("to", recipient(g, s))
    )


def tell(g, s):
    return VP(
        g,
        "tell",
        obj(g, g.noun(["story"]), ("a", "a", "this", "two", "three")),
        dat=("to", recipient(g, s)),
    )


def buy_for(g, s):
    key = g.noun(
        listed("gift hat dress book flower cake bicycle coat violin dog cat rabbit")
    )
    return VP(g, "buy", obj(g, key, ("a", "a", "this")), dat=("for", recipient(g, s)))


def make(g, s):
    key = g.noun(listed("cake cake bread cheese soup chair table"))
    if key in ("chair", "table") and not (
        isinstance(s, NP) and s.g == "m" and "adult" in s.noun.kinds
    ):
        raise Reject
    o = obj(g, key, ("a", "a", "two"), measured=False)
    if g.p(0.4):
        return VP(g, "make", o, dat=("for", recipient(g, s)))
    return VP(
        g,
        "make",
        o,
        pre=at(g, spots("in kitchen"))
        if key not in ("chair", "table") and g.p(0.4)
        else None,
    )


def watch(g, s):
    if g.p(0.4):
        key = g.noun(["moon", "star", "mountain"])
        return VP(g, "watch", NP(g, key, "the", pl=NOUN[key].en_pl is not None))
    key = g.noun(listed("bird duck horse boat painting goat cow bird tree"))
    return VP(
        g, "watch", NP(g, key, g.one(["the", "these"]), pl=True, adjs=adjs(g, key, 0.3))
    )


def listen(g, s):
    key = g.noun(["music", "song", "story"])
    return VP(g, "listen", obj(g, key, ("a", "this", "this")))


def open_(g, s):
    key = g.noun(["door", "window", "box"])
    det = "this" if g.p(0.3) else "the"
    o = NP(g, key, det, adjs=adjs(g, key, 0.3 + 0.3 * g.rich))
    if key != "box" and det == "the" and g.p(0.6):
        spot = g.noun(listed("school church barn shop bakery house kitchen inn"))
        o.owner = NP(g, spot, "the")
        o = OfNP(g, key, o.adjs, o.owner)
    return VP(g, "open", o)


def open_window(g, s):
    vp = open_(g, s)
    if vp.obj.noun.key == "box":
        raise Reject
    return vp


def close(g, s):
    vp = open_(g, s)
    g.used.discard("v:ouvrir打开")
    return VP(g, "close", vp.obj)


class OfNP(NP):
    """the door of the church."""

    def __init__(self, g, key, adjectives, owner):
        super().__init__(g, key, "the", adjs=adjectives)
        self.whole = owner
        self.rel = None

    def render(self, g, neg=False):
        i = g.id()
        whole = self.whole.render(g)
        self.owner = NP.__new__(NP)  # only to drop a second 的
        head = super().render(g, neg)
        g.tags.update(("possession", "zh-de-possessive"))
        return Ph(
            head.en + [("of", i)] + whole.en,
            head.fr + [("de", i)] + whole.fr,
            whole.zh + [("的", i)] + head.zh,
        )


def clean(g, s):
    key = g.noun(listed("house kitchen room church school barn shop"))
    np = NP(
        g,
        key,
        "this" if key == "school" and g.p(0.4) else "the",
        adjs=adjs(g, key, 0.2),
    )
    if key == "room" or (key in ("house", "kitchen") and g.p(0.5)):
        np = own(g, s, key)
    return VP(g, "clean", np)


def wash(g, s):
    key = g.noun(listed("apple pear carrot cherry dress dog horse window cart bicycle"))
    pl = NOUN[key].en_pl is not None and g.p(0.6)
    if key in ("dog", "horse", "bicycle", "dress") and g.p(0.6):
        return VP(g, "wash", own(g, s, key))
    if key in FRUIT + ["carrot"]:
        pl = True
    return VP(g, "wash", NP(g, key, "the", pl=pl, adjs=adjs(g, key, 0.3)))


def pick(g, s):
    key = g.noun(FRUIT + ["flower"])
    return VP(
        g,
        "pick",
        obj(g, key, ("bare", "many", "num", "some"), measured=False),
        pre=at(g, spots("in garden, near river, behind house, at farm"))
        if g.p(0.5)
        else None,
    )


def paint(g, s):
    key = g.noun(
        listed("bridge river horse lake church house mill cow tree door boat chair")
    )
    if key in ("bridge", "river", "lake", "church", "mill", "door"):
        return VP(g, "paint", NP(g, key, "the", adjs=adjs(g, key, 0.4)))
    return VP(g, "paint", obj(g, key, ("a", "num", "this")))


def repair(g, s):
    key = g.noun(
        listed("chair table boat bicycle cart door window bridge house barn mill")
    )
    if key in ("boat", "bicycle", "cart", "house") and g.p(0.5):
        return VP(g, "repair", own(g, s, key))
    if key in ("door", "window"):
        spot = g.noun(listed("school church barn inn shop"))
        return VP(g, "repair", OfNP(g, key, adjs(g, key, 0.3), NP(g, spot, "the")))
    if key in ("bicycle", "cart", "boat", "chair", "table") and g.p(0.5):
        return VP(
            g,
            "repair",
            NP(
                g,
                key,
                "own",
                adjs=adjs(g, key, 0.3),
                owner=NP(
                    g, g.noun(listed("teacher postman mayor farmer doctor nurse"))
                ),
            ),
        )
    return VP(g, "repair", NP(g, key, g.one(["the", "this"]), adjs=adjs(g, key, 0.4)))


def plant(g, s):
    key = g.noun(["tree", "flower", "carrot"])
    return VP(
        g,
        "plant",
        obj(
            g,
            key,
            ("num", "bare", "many", "a") if key == "tree" else ("bare", "many"),
            measured=False,
        ),
        pre=at(g, spots("in garden, behind house, front school, front house"), None, s)
        if g.p(0.6)
        else None,
    )


def feed(g, s):
    key = g.noun(FARM + PETS)
    pl = NOUN[key].en_pl is not None and g.p(0.6)
    if g.p(0.4):
        return VP(g, "feed", own(g, s, key, pl))
    return VP(g, "feed", NP(g, key, "the", pl=pl, adjs=adjs(g, key, 0.3)))


def look_mushrooms(g, s):
    return VP(
        g,
        "lookfor",
        obj(g, g.noun(["mushroom"]), ("bare", "some"), measured=False),
        pre=at(g, spots("in forest, on hill")),
    )


def look_for(g, s):
    if g.p(0.5):
        return look_mushrooms(g, s)
    key = g.noun(listed("key umbrella hat dog cat book donkey basket"))
    return VP(g, "lookfor", own(g, s, key))


FOUND = {
    "key": spots("under table, under bed, in box, in house"),
    "mushroom": spots("in forest, on hill, behind mill"),
    "egg": spots("in barn, behind house, behind barn"),
    "cat": spots("under bed, in barn, under table"),
    "letter": spots("in box, under table, in kitchen"),
    "basket": spots("in barn, in kitchen, behind house"),
    "box": spots("under bed, in house, in barn"),
    "rabbit": spots("in field, in garden, in forest"),
    "cherry": spots("in garden, in kitchen"),
    "carrot": spots("in garden, in kitchen"),
}


def find(g, s):
    key = g.noun(listed("key mushroom egg cat letter basket box rabbit"))
    return VP(
        g,
        "find",
        obj(
            g,
            key,
            ("a", "a", "many", "three") if key in ("mushroom", "egg") else ("a",),
            measured=False,
        ),
        pre=at(g, FOUND[key]),
    )


def see(g, s):
    r = g.rng.random()
    if r < 0.5:
        key = g.noun(listed("bird fox owl rabbit mouse horse donkey cow duck cat dog"))
        return VP(
            g,
            "see",
            obj(g, key, ("a", "a", "num", "many")),
            pre=at(
                g,
                spots(
                    "near river, in forest, in field, behind barn, in garden, on "
                    "hill, near lake, near mill"
                ),
            )
            if g.p(0.7)
            else None,
        )
    o = person(g, rel=True, pron=0)
    return VP(g, "see", o, pre=at(g, TRADE + OUT) if not o.rel and g.p(0.7) else None)


def with_(g, s):
    """with his dog"""
    if not (isinstance(s, NP) or s.key in ("he", "she", "i", "we")):
        raise Reject
    i = g.id()
    keys = listed("dog friend friend sister brother")
    if s.pl:
        keys = ["dog", "friend", "friend"]
    elif is_child(s):
        keys = listed("dog friend sister grandfather grandmother")
    key = g.noun(keys)
    o = own(g, s, key, pl=key == "friend" and g.p(0.5), p=0).render(g)
    return Ph(
        [("with", i)] + o.en, [("avec", i)] + o.fr, [("和", i)] + o.zh + [("一起", i)]
    )


def intrans(verb, places, p=0.75, company=0.15):
    def act(g, s):
        join = with_(g, s) if g.p(company) else None
        return VP(g, verb, pre=at(g, places, None, s) if g.p(p) else None, join=join)

    return act


play = intrans("play", OUT, 0.8, 0.2)
walk = intrans(
    "walk",
    spots("in forest, near river, in village, near lake, in garden, on hill"),
    0.85,
    0.3,
)
swim = intrans("swim", spots("in river, in lake"), 0.9, 0.15)
rest = intrans(
    "rest",
    spots("in garden, under tree, near river, at inn, in room, front house, near lake"),
    0.7,
    0,
)
sing = intrans(
    "sing",
    spots("in church, at inn, in kitchen, in garden, on square, at school"),
    0.8,
    0.1,
)
dance = intrans(
    "dance",
    spots("on square, at inn, front church, in garden, on bridge, in kitchen"),
    0.8,
    0.15,
)
sleep = intrans(
    "sleep", spots("under tree, in room, in barn, in room, at inn, in garden"), 0.7, 0
)


def work(g, s):
    return VP(g, "work", pre=workplace(g, s))


def live(g, s):
    return VP(
        g,
        "live",
        comp=at(
            g,
            spots(
                "near church, in village, near river, near forest, behind school, "
                "near lake, near station, behind bakery, near mill, near bridge, on "
                "hill, front church"
            ),
        ),
    )


def to_place(g, keys):
    key = g.noun(keys)
    np = NP(g, key, "the", adjs=adjs(g, key, 0.1 + 0.3 * g.rich))
    i = g.id()
    o = np.render(g)
    zh = [(RIVERSIDE[key], np.c)] if key in RIVERSIDE else o.zh
    return Ph([("to", i)] + o.en, [("à", i)] + o.fr, zh), key


def go(g, s):
    comp, key = to_place(g, GOALS)
    return VP(g, "go", comp=comp)


def go_market(g, s):
    comp, _ = to_place(g, ["market", "market", "shop"])
    return VP(g, "go", comp=comp)


def meet0(g, s):
    return VP(g, "meet", person(g, rel=True, pron=0))


def read_there(g, s):
    return VP(
        g, "read", obj(g, g.noun(["book", "newspaper", "letter"]), ("a", "this", "two"))
    )


def go_out(g, s):
    return VP(g, "go", comp=to_place(g, ["river", "lake", "forest"])[0])


def go_water(g, s):
    return VP(g, "go", comp=to_place(g, ["river", "lake"])[0])


def walk_there(g, s):
    return VP(g, "walk", join=with_(g, s) if g.p(0.4) else None)


def swim_there(g, s):
    return VP(g, "swim", join=with_(g, s) if g.p(0.3) else None)


def go_to_do(g, s):
    """goes to the market to buy apples"""
    comp, key = to_place(
        g,
        listed("market market bakery shop lake library inn station farm river church"),
    )
    if key == "market":
        pv = g.one([buy, sell, buy])(g, s)
        if isinstance(pv.obj, NP):
            loosen(pv.obj)
    elif key == "bakery":
        pv = VP(g, "buy", obj(g, g.noun(["bread", "cake"]), ("a", "num")))
    elif key == "shop":
        pv = VP(g, "buy", obj(g, g.noun(SHOP), ("a", "num")))
    elif key in ("lake", "river"):
        pv = g.one([lambda g, s: VP(g, "swim"), lambda g, s: VP(g, "walk"), watch])(
            g, s
        )
    elif key == "library":
        pv = VP(g, "read", obj(g, g.noun(["book", "newspaper"]), ("a", "num", "this")))
    elif key == "inn":
        pv = g.one([eat, drink, lambda g, s: VP(g, "dance")])(g, s)
    elif key == "station":
        pv = VP(g, "wait", kin(g, who=None if isinstance(s, Pron) else s))
    elif key == "farm":
        pv = VP(
            g,
            "buy",
            obj(
                g,
                g.noun(listed("egg milk cheese carrot hen goat")),
                ("num", "some", "bare"),
            ),
        )
    else:
        pv = VP(g, "sing")
    return VP(g, "go", comp=comp, purpose=pv)


def come_back(g, s):
    key = g.noun(BACK)
    i = g.id()
    np = NP(g, key, "the")
    o = np.render(g)
    zh = [(RIVERSIDE[key], np.c)] if key in RIVERSIDE else o.zh
    if key in ("field", "forest"):
        zh = zh + [("里", i)]
    return VP(
        g,
        "comeback",
        pre=Ph([("from", i)] + o.en, [("de", i)] + o.fr, [("从", i)] + zh),
    )


def stay_home(g, s):
    return VP(g, "stay", comp=home(g))


def stay(g, s):
    return VP(
        g,
        "stay",
        comp=at(g, spots("in kitchen, in house, at inn, in room, at farm"), 0, s),
    )


def arrive(g, s):
    key = g.noun(listed("market station farm school church inn hospital mill"))
    i = g.id()
    o = NP(g, key, "the").render(g)
    return VP(g, "arrive", comp=Ph([("at", i)] + o.en, [("à", i)] + o.fr, o.zh))


def leave(g, s):
    key = g.noun(listed("village market school farm inn church hospital"))
    return VP(g, "leave", NP(g, key, "the"))


def love_person(g, s):
    r = g.rng.random()
    if r < 0.25 and isinstance(s, Pron):
        return VP(g, "love", someone_else(g, s))
    if r < 0.75:
        return VP(g, "love", own(g, s, g.noun(KIN), p=0))
    if r < 0.85:
        return VP(g, "love", own(g, s, g.noun(["dog", "cat", "horse", "rabbit"])))
    return VP(g, "love", person(g, rel=True, pron=0))


def someone_else(g, s):
    """An object pronoun for another person than `s`."""
    mine = s.key if isinstance(s, Pron) else None
    pool = [
        k
        for k in ("you", "i", "we", "he", "she")
        if k != mine and {k, mine} != {"i", "we"}
    ]
    if not isinstance(s, Pron):
        pool = ["you", "i", "we"]
    return Pron(g, g.one(pool))


TASTES = [
    DRINK[1:],
    FRUIT,
    FOODM[:3],
    ["cat", "dog"],
    ["book", "song"],
    ["horse", "cow", "goat"],
]
LIKABLE = (
    FOODC
    + FOODM
    + DRINK
    + listed("cat dog horse bird book flower story song goat rabbit music")
)


LIKED_ADJS = (
    "fresh",
    "hot",
    "cold",
    "red",
    "white",
    "yellow",
    "green",
    "old",
    "long",
    "small",
    "big",
)


def like(g, s, verb="like", keys=None):
    if g.p(0.3) and not keys:
        key = g.noun(
            listed(
                "house garden village church school hat dress painting bicycle book "
                "story song"
            )
        )
        if g.p(0.5):
            return VP(g, verb, NP(g, key, "this", adjs=adjs(g, key, 0.4)))
        if key in ("story", "song", "village", "church", "school"):
            return VP(g, verb, NP(g, key, "this"))
        return VP(
            g,
            verb,
            NP(
                g,
                key,
                "own",
                adjs=adjs(g, key, 0.2),
                owner=NP(g, g.noun(["teacher", "mayor", "doctor", "singer"])),
            ),
        )
    key = g.noun(keys or LIKABLE)
    a = [x for x in adjs(g, key, 0.35) if x in LIKED_ADJS]
    if NOUN[key].kinds & {"animal"} or key in ("apple", "pear"):
        a = [x for x in a if x in ("small", "big") or key in ("apple", "pear")][:1]
    return VP(g, verb, NP(g, key, "gen", pl=NOUN[key].en_pl is not None, adjs=a))


def prefer(g, s):
    return like(g, s, "prefer", g.one(TASTES))


def know(g, s):
    if g.p(0.3):
        return VP(g, "know", someone_else(g, s))
    return VP(g, "know", person(g, rel=True, pron=0))


def social(verb):
    def act(g, s):
        if g.p(0.25):
            return VP(g, verb, someone_else(g, s))
        if g.p(0.4):
            return VP(g, verb, own(g, s, g.noun(KIN), p=0))
        return VP(g, verb, person(g, rel=True, pron=0))

    return act


help_ = social("help")
thank = social("thank")


def wait(g, s):
    vp = social("wait")(g, s)
    if g.p(0.7) and not (isinstance(vp.obj, NP) and vp.obj.rel):
        vp.pre = at(
            g,
            spots(
                "at station, front school, front church, on bridge, near river, at "
                "market"
            ),
        )
    return vp


def meet(g, s):
    o = person(g, rel=True, pron=0)
    return VP(
        g,
        "meet",
        o,
        pre=at(
            g,
            spots(
                "at market, at station, on bridge, near mill, in forest, on square, "
                "at library, in bakery"
            ),
        )
        if not o.rel
        else None,
    )


def have(g, s):
    r = g.rng.random()
    if r < 0.5:
        o = obj(g, g.noun(FARM + PETS), ("a", "a", "num", "many"))
    elif r < 0.8:
        o = obj(
            g,
            g.noun(listed("house boat bicycle violin cart hat book garden")),
            ("a", "a", "num"),
        )
    else:
        o = obj(g, g.noun(["sister", "friend"]), ("num", "many"), p=0)
    return VP(g, "have", o)


def play_violin(g, s):
    c = g.id()
    key = g.noun(["violin"])
    np = NP(g, key, "the")
    o = np.render(g)
    return VP(
        g,
        "playmusic",
        comp=Ph(o.en, [("de", ())] + o.fr, o.zh),
        pre=at(g, spots("at inn, on square, in garden, in room, in church"), None, s)
        if g.p(0.6) and c
        else None,
    )


def sing_song(g, s):
    return VP(
        g,
        "singsong",
        obj(g, g.noun(["song"]), ("a", "this", "num", "a")),
        pre=at(g, spots("in church, at inn, in kitchen, at school, on square"))
        if g.p(0.5)
        else None,
    )


def laugh(g, s):
    return VP(g, "laugh")


def cry(g, s):
    return VP(
        g,
        "cry",
        pre=at(
            g, spots("in room, behind house, in kitchen, in garden, behind barn"), 0, s
        ),
    )


# name -> (weight, act, who may do it: a adults, c children, b both)
DO = [
    (6, eat, "b"),
    (5, drink, "b"),
    (7, buy, "a"),
    (4, buy_food, "a"),
    (5, sell, "a"),
    (6, read, "b"),
    (4, write, "b"),
    (6, send, "b"),
    (5, give, "b"),
    (9, bring, "b"),
    (4, tell, "a"),
    (4, buy_for, "a"),
    (5, make, "a"),
    (4, watch, "b"),
    (3, listen, "b"),
    (4, open_, "b"),
    (4, close, "b"),
    (3, clean, "b"),
    (3, wash, "b"),
    (4, pick, "b"),
    (3, paint, "b"),
    (4, repair, "a"),
    (5, plant, "b"),
    (4, feed, "b"),
    (3, look_for, "b"),
    (3, find, "b"),
    (8, see, "b"),
    (4, play, "c"),
    (4, walk, "b"),
    (3, swim, "b"),
    (3, rest, "b"),
    (3, sing, "b"),
    (3, dance, "b"),
    (3, sleep, "b"),
    (5, work, "a"),
    (4, live, "b"),
    (4, go, "b"),
    (5, go_to_do, "a"),
    (6, come_back, "b"),
    (2, stay_home, "b"),
    (2, stay, "b"),
    (3, love_person, "b"),
    (5, like, "b"),
    (3, prefer, "b"),
    (3, know, "b"),
    (4, help_, "b"),
    (6, wait, "b"),
    (5, meet, "b"),
    (2, thank, "b"),
    (7, have, "b"),
    (3, play_violin, "b"),
    (3, sing_song, "b"),
    (4, leave, "a"),
    (7, laugh, "b"),
    (3, cry, "c"),
]
STATIVE = (love_person, like, prefer, know, live, have)
NO_PAST = STATIVE + (look_for, wait, watch)
HABIT = (
    buy_food,
    sell,
    write,
    eat,
    drink,
    read,
    walk,
    swim,
    work,
    sing,
    dance,
    play,
    feed,
    rest,
    play_violin,
    watch,
    go,
    go_to_do,
    clean,
    make,
    pick,
    listen,
)
INTENT = [x for x in DO if x[1] not in STATIVE and x[1] not in (come_back, find, meet)]
FOR_CHILD = [(w, a) for w, a, who in DO if who in "bc"]
FOR_ADULT = [(w, a) for w, a, who in DO if who in "ab"]


def is_child(s):
    return isinstance(s, NP) and bool(s.noun.kinds & {"child"})


def act(g, s, only=None, without=()):
    """A verb phrase that suits the subject; returns (act, phrase)."""
    table = (
        FOR_CHILD
        if is_child(s) or (isinstance(s, NP) and "kid" in s.noun.kinds)
        else FOR_ADULT
    )
    table = [
        (w, a) for w, a in table if a not in without and (only is None or a in only)
    ]
    if not table:
        raise Reject
    a = g.weighted(table)
    return a, a(g, s)


NEAR = {
    "pres": TIMES["pres"],
    "past": [
        t for t in TIMES["past"] if t[0] not in ("last/1 week/2", "last/1 year/2")
    ],
    "fut": [t for t in TIMES["fut"] if t[0] not in ("next/1 week/2", "next/1 year/2")],
}
# what one says of a whole week or year
LASTING = (
    buy,
    sell,
    plant,
    paint,
    write,
    repair,
    leave,
    work,
    send,
    meet,
    buy_for,
    go_to_do,
)


SEASONAL = (walk, work, sell, feed, read, sing, dance, buy_food, go)


def when_phrase(g, tense, deed=None):
    """A time; "last year" and the like only for deeds that fill one."""
    table = TIMES[tense]
    if deed in LASTING and tense != "pres" and g.p(0.4):
        table = [t for t in table if t not in NEAR[tense]]
    elif deed not in LASTING:
        table = NEAR[tense]
    if tense == "pres" and deed not in SEASONAL:
        table = [t for t in table if not t[0].startswith("in/")]
    return pat(g, *g.one(table))


# ------------------------------------------------------------ relative clauses


def person_rel(g, np):
    """who sells apples at the market / that my sister knows."""
    rich, g.rich = g.rich, g.rich * 0.3
    g.in_rel = True
    try:
        if g.p(0.3):
            verb = g.one(listed("know help meet meet know"))
            tense = "pres" if verb == "know" else "past"
            s = speaker(g) if g.p(0.4) else person(g, rel=False, pron=0)
            vp = VP(g, verb, np)
            if verb == "meet":
                vp.pre = at(g, spots("at market, at station, in forest, on bridge"), 0)
            return obj_rel(g, s, vp, tense)
        pool = {live, sell, work, has, play_violin, like, makes}
        if is_child(np):
            pool = {live, like, has, play_violin}
        return subj_rel(g, g.one(sorted(pool, key=lambda f: f.__name__))(g, np), "pres")
    finally:
        g.rich = rich
        g.in_rel = False


def has(g, np):
    """has two dogs, has a small house"""
    owned = (
        listed("dog cat rabbit")
        if is_child(np)
        else [*FARM, *PETS, "house", "house", "garden", "boat", "house"]
    )
    key = g.noun(owned)
    dets = ("a", "two", "three", "many") if key in FARM + PETS else ("a",)
    return VP(g, "have", obj(g, key, dets, p=0.4))


def makes(g, np):
    """makes bread, repairs boats: what somebody is known for"""
    if g.p(0.5):
        key = g.noun(["bread", "cheese", "cake", "chair"])
        if key == "chair" and np.g == "f":
            raise Reject
        return VP(g, "make", NP(g, key, "bare", pl=key in ("cake", "chair")))
    return VP(g, "repair", NP(g, g.noun(["boat", "chair", "window"]), "bare", pl=True))


def subj_rel(g, vp, tense, time=None):
    def build(g, np):
        aux, en, fr, zh = vp_words(g, np, vp, tense, time=time)
        return aux + en, fr, zh, "s"

    return build


def obj_rel(g, subj, vp, tense, time=None):
    def build(g, np):
        s = subj.render(g)
        aux, en, fr, zh = vp_words(g, subj, vp, tense, gap=np, time=time)
        return s.en + aux + en, s.fr + fr, s.zh + zh, "o"

    return build


THING_REL = {
    "buy": SHOP
    + listed("horse cow flower house gift apple pear bread cheese cake egg cherry"),
    "sell": listed("cheese bread honey hat basket flower apple pear cherry"),
    "read": ["book", "newspaper", "letter"],
    "write": ["letter", "book"],
    "make": ["cake", "bread", "cheese"],
    "paint": ["painting"],
    "find": listed("key mushroom egg box cat cherry carrot"),
    "repair": listed("boat bicycle chair table cart"),
    "pick": ["apple", "pear", "cherry", "flower"],
    "send": ["letter", "gift", "book"],
    "sing": ["song"],
}


def thing_rel(g, keys=None):
    """the book that my sister bought yesterday"""
    verb = g.one(listed("buy buy read write make find find repair pick pick send"))
    pool = [k for k in THING_REL[verb] if keys is None or k in keys]
    if not pool:
        raise Reject
    key = g.noun(pool)
    n = NOUN[key]
    mass = bool(n.kinds & {"foodm", "soup", "drink"})
    pl = verb in ("buy", "find", "pick") and n.en_pl is not None and g.p(0.6)
    np = NP(g, key, "the", pl=pl, adjs=[] if mass else adjs(g, key, 0.3 * g.rich + 0.1))
    rich, g.rich = g.rich, 0.0
    s = (
        person(
            g,
            child=False if verb in ("repair", "make", "buy", "write") else None,
            rel=False,
            pron=0,
        )
        if g.p(0.7)
        else speaker(g)
    )
    g.rich = rich
    tense = "pres" if verb == "read" else "past"
    vp = VP(g, verb, np)
    time = (
        when_phrase(g, "past", g.one([buy, None]))
        if tense == "past" and g.p(0.4)
        else None
    )
    if verb in ("buy",) and g.p(0.4):
        vp.pre = at(g, spots("at market, in shop"), 0)
    if verb in ("find",):
        vp.pre = at(g, FOUND[key], 0)
    np.rel = obj_rel(g, s, vp, tense, time)
    return np
