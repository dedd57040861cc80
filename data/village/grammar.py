"""Sentences of the Village: clauses, questions, reasons, stories."""

from __future__ import annotations

from acts import (
    ANIMALS,
    CHILDREN,
    FOODC,
    FOODM,
    HABIT,
    INTENT,
    KIN,
    MEASURE_OF,
    NO_PAST,
    OUT,
    PROF,
    STATIVE,
    TASTES,
    THING_REL,
    TRADE,
    OfNP,
    act,
    adjs,
    animal,
    arrive,
    at,
    bring,
    buy,
    buy_food,
    buy_for,
    buy_goods,
    clean,
    close,
    come_back,
    cry,
    dance,
    drink,
    eat,
    feed,
    find,
    give,
    go,
    go_market,
    go_out,
    go_to_do,
    go_water,
    have,
    help_,
    is_child,
    kin,
    know,
    laugh,
    leave,
    like,
    listed,
    listen,
    live,
    look_mushrooms,
    loosen,
    love_person,
    make,
    meet,
    meet0,
    obj,
    open_,
    open_window,
    other,
    own,
    paint,
    person,
    pick,
    plant,
    play,
    play_violin,
    prefer,
    read,
    read_there,
    repair,
    rest,
    see,
    sell,
    send,
    sing,
    sing_song,
    sleep,
    spots,
    stay,
    stay_home,
    subj_rel,
    swim,
    swim_there,
    tell,
    thank,
    thing_rel,
    wait,
    walk,
    walk_there,
    wash,
    watch,
    when_phrase,
    work,
    write,
)
from core import (
    NP,
    VP,
    Gen,
    Ph,
    Pron,
    Reject,
    clause,
    copula,
    duration,
    home,
    pat,
    vp_only,
)
from lexicon import NOUN, NUMBERS, TIMES

# ---------------------------------------------------------------- simple clauses


def plain(g, s=None, tense=None, time=True):
    """Somebody does something (somewhere) (some time)."""
    s = s or person(g)
    tense = tense or g.weighted(((5, "pres"), (4, "past"), (3, "fut"), (2, "modal")))
    if tense == "modal":
        modal = g.weighted(((5, "want"), (3, "can"), (3, "must"), (4, "love")))
        pool = [a for w, a, _ in INTENT]
        if modal == "can":
            pool = [
                swim,
                sing,
                dance,
                play_violin,
                repair,
                write,
                make,
                help_,
                buy,
                find,
                see,
            ]
        if modal == "love":
            pool = [
                eat,
                drink,
                read,
                walk,
                swim,
                sing,
                dance,
                play,
                watch,
                listen,
                play_violin,
                paint,
                rest,
                tell,
                feed,
            ]
        _, vp = act(g, s, only=pool)
        vp.modal = modal
        if modal == "love" and isinstance(vp.obj, NP):
            loosen(vp.obj)
        tm = when_phrase(g, "fut") if time and modal in ("must",) and g.p(0.3) else None
        return clause(g, s, vp, "pres", time=tm)
    a, vp = act(
        g,
        s,
        without=NO_PAST
        if tense == "past"
        else (STATIVE + (find, see) if tense == "fut" else (find, meet)),
    )
    tm = front = None
    if time:
        if tense == "pres" and a in HABIT:
            if g.p(0.2 + 0.2 * g.rich):
                tm = when_phrase(g, "pres", a)
            elif g.p(0.75):
                vp.adv = g.weighted(((3, "often"), (3, "always"), (3, "never")))
        elif tense != "pres" and g.p(0.6):
            tm = when_phrase(g, tense, a)
        if tm and g.p(0.4):
            tm, front = None, tm
    if tense == "past" and vp.v.key == "stay" and not (tm or front):
        raise Reject
    if vp.adv == "never":
        fit_negative(vp)
    elif vp.adv and isinstance(vp.obj, NP):
        loosen(vp.obj)
    return clause(g, s, vp, tense, time=tm, front=front)


def negative(g, s=None, tense=None):
    s = s or person(g, rel=g.p(0.4))
    tense = tense or g.weighted(((4, "pres"), (3, "past"), (2, "fut"), (2, "modal")))
    if tense == "modal":
        modal = g.one(["want", "can"])
        _, vp = act(
            g,
            s,
            only=(
                swim,
                go,
                buy,
                repair,
                open_,
                sleep,
                help_,
                work,
                sing,
                dance,
                walk,
                close,
                play_violin,
            )
            if modal == "can"
            else (
                eat,
                drink,
                buy,
                go,
                work,
                sleep,
                sing,
                dance,
                swim,
                clean,
                wash,
                help_,
                leave,
                walk,
                play,
            ),
        )
        vp.modal = modal
        fit_negative(vp)
        return clause(g, s, vp, "pres", neg=True)
    pool = {
        "pres": (eat, drink, like, have, know, live, work, sell, read, love_person),
        "past": (
            eat,
            drink,
            buy,
            sell,
            see,
            sleep,
            work,
            close,
            open_,
            feed,
            clean,
            read,
            go,
            help_,
            wash,
            find,
            send,
            write,
            thank,
        ),
        "fut": (
            go,
            buy,
            sell,
            work,
            eat,
            drink,
            write,
            sing,
            dance,
            swim,
            walk,
            open_,
            repair,
            help_,
        ),
    }[tense]
    a, vp = act(g, s, only=pool)
    fit_negative(vp)
    tm = when_phrase(g, tense, a) if tense != "pres" and g.p(0.5) else None
    return clause(g, s, vp, tense, neg=True, time=tm)


def fit_negative(vp):
    """Under negation: bare plurals, mass nouns and `a`; no numbers or measures."""
    o = vp.obj
    if isinstance(o, NP):
        if o.noun.key == "water":
            raise Reject
        if o.measure:
            o.measure = None
            o.det = "bare"
            if o.noun.en_pl:
                o.pl, o.p = True, 4
        if o.det in ("some", "many") or o.det in NUMBERS:
            if o.noun.en_pl:
                o.det, o.pl, o.p = "bare", True, 4
            else:
                o.det = "bare" if o.det == "some" else "a"
        if o.det == "a" and vp.v.key not in ("have",):
            if o.noun.en_pl is None:
                o.det = "this"
            else:
                o.det, o.pl, o.p = "bare", True, 4


PERSON_ADJ = listed(
    "tired happy sad busy kind kind rich poor famous strong angry "
    "hungry thirsty cold old young"
)
THING_ADJ = [
    (
        ("apple", "pear", "cherry", "cake"),
        ("sweet", "expensive", "red", "green", "fresh"),
    ),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (("basket", "box"), ("heavy", "heavy", "empty", "empty")),
    (
        (
            "cake",
            "dress",
            "coat",
            "boat",
            "bicycle",
            "house",
            "violin",
            "table",
            "cheese",
            "meat",
        ),
        ("expensive",),
    ),
    (
        ("hat", "dress", "coat", "umbrella", "bicycle", "boat"),
        ("red", "white", "black", "blue", "green", "yellow", "expensive", "beautiful"),
    ),
    (("chair", "table"), ("heavy", "old", "white", "red")),
    (
        ("house", "church", "bridge", "school", "mill", "inn", "barn"),
        ("old", "small", "big"),
    ),
    (("door", "window", "house"), ("white", "blue", "green", "old", "red")),
    (("soup", "tea", "coffee", "milk"), ("hot", "cold")),
    (("water",), ("cold", "hot")),
    (("bread", "meat", "egg", "mushroom", "carrot", "cheese"), ("fresh", "expensive")),
    (("garden", "painting", "dress", "village"), ("beautiful",)),
    (
        ("dog", "cat", "horse", "goat", "rabbit", "hen"),
        ("hungry", "thirsty", "tired", "black", "white", "old", "small", "big"),
    ),
    (("letter", "story"), ("long",)),
]


def state(g, s=None):
    """Somebody or something is (not) (very) something."""
    neg = g.p(0.2)
    very = not neg and g.p(0.25)
    if s is None and g.p(0.6):
        keys, words = g.one(THING_ADJ)
        key = g.noun(list(keys))
        adj = g.pick(list(words))
        pl = NOUN[key].en_pl is not None and g.p(0.5)
        if pl and adj in ("heavy", "empty"):
            raise Reject
        r = g.rng.random()
        if g.rich > 0.3 and g.p(g.rich) and any(key in v for v in THING_REL.values()):
            g.used.discard(key)
            g.used.discard("fr:" + NOUN[key].fr)
            s = thing_rel(g, [key])
            s.adjs = []
            g.used.discard(adj)
        elif r < 0.4 or key in ("milk", "water", "church", "bridge", "village"):
            s = NP(g, key, "the", pl=pl, adjs=[])
        elif r < 0.55 and not pl and NOUN[key].en_pl:
            s = NP(g, key, "this")
        elif r < 0.65 and pl:
            s = NP(g, key, "these", pl=True)
        elif r < 0.85:
            s = own(g, Pron(g, g.one(listed("i you he she we"))), key, pl, 0)
        else:
            s = NP(
                g,
                key,
                "own",
                pl=pl,
                owner=NP(g, g.noun(listed("baker teacher mayor painter nurse farmer"))),
            )
        return copula(g, s, adj, "pres", neg, None, very)
    s = s or person(g)
    adj = g.pick(PERSON_ADJ)
    if isinstance(s, NP) and adj in ("old", "young") and (s.adjs or is_child(s)):
        raise Reject
    if adj in ("rich", "poor", "famous", "busy") and is_child(s):
        raise Reject
    if adj in ("famous", "young") and s.pl:
        raise Reject
    if isinstance(s, NP) and adj == "young" and "prof" not in s.noun.kinds:
        raise Reject
    tense = "past" if g.p(0.2) and adj not in ("old", "young", "kind") else "pres"
    return copula(g, s, adj, tense, neg, None, very)


def job(g):
    """my uncle is a farmer / the baker 's daughter is a good teacher"""
    s = kin(g)
    if s.pl:
        raise Reject
    pool = [k for k in PROF if NOUN[k].gender == s.g]
    key = g.noun(pool)
    a = adjs(g, key, 0.8)
    a = [
        x for x in a if x == "good" or (x == "young" and s.noun.kinds & {"kid", "kin2"})
    ]
    neg = g.p(0.2)
    if neg:
        a = []
    sp = s.render(g)
    be, c = g.id(), g.id()
    n_id = g.id() if neg else None
    en_n, fr_n = [("not", n_id)] if neg else [], ("est", be)
    if neg:
        g.tags.update(("negation", "ne-pas"))
    fr = [("ne", n_id), fr_n, ("pas", n_id)] if neg else [fr_n]
    g.tags.add("copula")
    zh = ([("不", n_id)] if neg else []) + [("是", be)]
    if a:
        np = NP(g, key, "a", adjs=a)
        o = np.render(g)
        return Ph(sp.en + [("is", be)] + o.en, sp.fr + fr + o.fr, sp.zh + zh + o.zh)
    n = NOUN[key]
    return Ph(
        sp.en + [("is", be)] + en_n + [("a", ()), (n.en, c)],
        sp.fr + fr + [(n.fr, c)],
        sp.zh + zh + [(n.zh, c)],
    )


def location(g, s=None, q=None):
    """the cat is under the table"""
    if s is None:
        s = animal(g) if g.p(0.5) else thing_or_person(g)
    wild = isinstance(s, NP) and s.noun.kinds & {"animal"}
    if isinstance(s, NP) and s.noun.kinds & {"thing"}:
        where_ = spots(
            "on table, under table, in kitchen, in house, on chair, behind door, on "
            "bed, in box, under bed, in basket"
        )
        if s.noun.kinds & {"big", "wood", "mech"}:
            where_ = spots("in barn, behind house, front door, in garden")
    elif wild and s.noun.kinds & {"pet"}:
        where_ = spots(
            "under table, in garden, on bed, behind door, in kitchen, under tree, on "
            "chair, in barn"
        )
    elif wild:
        where_ = spots(
            "in field, behind barn, near river, in forest, under tree, near lake, "
            "behind mill, on hill"
        )
    else:
        where_ = spots(
            "at market, at school, in church, in kitchen, in garden, at station, in "
            "bakery, at library, near river, on bridge, at hospital, at farm"
        )
    i = g.id()
    neg = q is None and g.p(0.12)
    tense = "past" if q is None and g.p(0.2) else "pres"
    pl = at(g, where_)
    zh = [(pl.zh[0][0], pl.zh[0][1] + i)] + pl.zh[1:]
    sp = s.render(g)
    from core import BE, ETAIS, ETRE

    be = [(BE[tense][s.p], i)]
    fr = [((ETRE if tense == "pres" else ETAIS)[s.p], i)]
    en_neg, zh_neg = [], []
    if neg:
        k = g.id()
        en_neg, zh_neg = [("not", k)], [("不", k)]
        fr = [("ne", k)] + fr + [("pas", k)]
        g.tags.update(("negation", "ne-pas"))
    g.tags.add("copula")
    if q:
        return Ph(
            be + sp.en + pl.en,
            [("est-ce", q), ("que", q)] + sp.fr + fr + pl.fr,
            sp.zh + zh,
        )
    return Ph(sp.en + be + en_neg + pl.en, sp.fr + fr + pl.fr, sp.zh + zh_neg + zh)


def thing_or_person(g):
    if g.p(0.5):
        key = g.noun(
            listed(
                "key hat umbrella letter book basket bicycle boat violin box cart coat"
            )
        )
        r = g.rng.random()
        if r < 0.35:
            return NP(g, key, "the", adjs=adjs(g, key, 0.4))
        if r < 0.7:
            return own(g, Pron(g, g.one(listed("i you he she we"))), key)
        return NP(g, key, "own", adjs=adjs(g, key, 0.3), owner=NP(g, g.noun(PROF)))
    return person(g, pron=0.08)


def exists(g):
    """there is a cat under the table / at the market there is a woman who …"""
    front = g.p(0.5)
    r = g.rng.random()
    if r < 0.35:
        key = g.noun(listed("woman man boy girl farmer fisherman singer painter"))
        np = NP(g, key, "a", adjs=adjs(g, key, 0.3))
        if front and g.p(0.4 + 0.5 * g.rich):
            r0, g.rich = g.rich, 0.1
            pool = {
                sell,
                read,
                sing,
                play_violin,
                walk,
                watch,
                wait,
                write,
                eat,
                sing_song,
                have,
            }
            _, vp = act(g, np, only=pool)
            vp.pre = None
            np.rel = subj_rel(g, vp, "pres")
            g.rich = r0
        where_ = TRADE + OUT + spots("at station, on bridge, at inn")
    elif r < 0.5:
        key = g.noun(listed("school church inn mill bridge school"))
        np = NP(g, key, "a", adjs=adjs(g, key, 0.5))
        where_ = spots(
            "in village, near river, near lake, near station, near forest, behind "
            "market, near farm"
        )
        if key != "bridge":
            where_ = where_ + spots("on hill")
    elif r < 0.75:
        key = g.noun(ANIMALS)
        np = obj(g, key, ("a", "num", "many", "a"))
        where_ = OUT + spots("in barn, under tree, near mill")
        if "pet" in NOUN[key].kinds:
            where_ = where_ + spots("under table, in kitchen, on bed")
    else:
        key = g.noun(
            listed(
                "book letter apple egg key hat cake pear flower cherry newspaper "
                "umbrella bread cheese"
            )
        )
        np = obj(g, key, ("a", "num", "many", "num"))
        where_ = spots("on table, on chair, in basket, in kitchen, in box")
    g.tags.add("existence")
    i = g.id()
    spot = at(g, where_)
    # 在 is not used before 有
    zh_spot = spot.zh[1:]
    if len(zh_spot) == 1 and spot.en[0][0] == "at":
        zh_spot = zh_spot + [("里", spot.zh[0][1])]
    o = np.render(g)
    be = "are" if np.pl or (np.measure and np.det in NUMBERS) else "is"
    en = [("there", i), (be, i)] + o.en
    fr = [("il", i), ("y", i), ("a", i)] + o.fr
    zh = zh_spot + [("有", i)] + o.zh
    if front:
        k = g.id()
        return Ph(spot.en + [(",", k)] + en, spot.fr + [(",", k)] + fr, zh)
    return Ph(en + spot.en, fr + spot.fr, zh)


WEATHER = {
    "rain": {
        "pres": ("it/1 rains/2", "il/1 pleut/2", "下雨/2"),
        "fut": ("it/1 will/3 rain/2", "il/1 va/3 pleuvoir/2", "会/3 下雨/2"),
        "past": ("it/1 rained/2", "il/1 a/2 plu/2", "下雨/2 了/2"),
    },
    "snow": {
        "pres": ("it/1 snows/2", "il/1 neige/2", "下雪/2"),
        "fut": ("it/1 will/3 snow/2", "il/1 va/3 neiger/2", "会/3 下雪/2"),
        "past": ("it/1 snowed/2", "il/1 a/2 neigé/2", "下雪/2 了/2"),
    },
    "hot": {
        "pres": ("it/1 is/2 hot/3", "il/1 fait/2 chaud/3", "天气/1 很/2 热/3"),
        "past": ("it/1 was/2 hot/3", "il/1 faisait/2 chaud/3", "天气/1 很/2 热/3"),
    },
    "cold": {
        "pres": ("it/1 is/2 cold/3", "il/1 fait/2 froid/3", "天气/1 很/2 冷/3"),
        "past": ("it/1 was/2 cold/3", "il/1 faisait/2 froid/3", "天气/1 很/2 冷/3"),
    },
    "nice": {
        "pres": ("the weather/1 is/2 nice/3", "il/1 fait/2 beau/3", "天气/1 很/2 好/3"),
        "past": (
            "the weather/1 was/2 nice/3",
            "il/1 faisait/2 beau/3",
            "天气/1 很/2 好/3",
        ),
    },
}


def weather(g, kind=None, tense=None):
    kind = kind or g.one(list(WEATHER))
    tense = tense or g.one(list(WEATHER[kind]))
    if tense not in WEATHER[kind]:
        raise Reject
    g.tags.add("weather")
    if tense == "fut":
        g.tags.add("future")
    if tense == "past" and kind in ("rain", "snow"):
        g.tags.update(("zh-le", "fr-past"))
    g.use("w:" + kind)
    return pat(g, *WEATHER[kind][tense])


def weather_time(g):
    """it rains in autumn / tomorrow it will snow in the village"""
    kind = g.one(list(WEATHER) + ["rain", "snow", "snow", "snow"])
    tense = g.one(list(WEATHER[kind]))
    w = weather(g, kind, tense)
    seasons = {
        "rain": (5, 6, 7),
        "snow": (4,),
        "hot": (5,),
        "cold": (4,),
        "nice": (5, 6),
    }
    if tense == "pres":
        t = pat(g, *TIMES["pres"][g.one(seasons[kind])])
    else:
        t = when_phrase(g, tense)
    g.tags.add("zh-time-before-verb")
    where = (
        at(g, spots("in village, on hill, in forest, near lake")) if g.p(0.3) else Ph()
    )
    zh_where = where.zh[1:] if where.zh else []
    if g.p(0.5):
        k = g.id()
        return Ph(
            t.en + [(",", k)] + w.en + where.en,
            t.fr + [(",", k)] + w.fr + where.fr,
            t.zh + zh_where + w.zh,
        )
    return Ph(w.en + where.en + t.en, w.fr + where.fr + t.fr, t.zh + zh_where + w.zh)


# ------------------------------------------------------------------ animals


def animal_act(g, s, tense="pres"):
    k = s.noun.key
    kinds = s.noun.kinds
    options = ["sleep", "drink"]
    if k in ("dog", "cat"):
        options += ["chase", "eat", "play", "run"]
    if k in (
        "horse",
        "cow",
        "goat",
        "donkey",
        "pig",
        "rabbit",
        "hen",
        "duck",
        "mouse",
        "bird",
        "fox",
    ):
        options += ["eat"]
    if k in ("horse", "goat", "rabbit", "fox"):
        options += ["run", "run"]
    if k in ("bird",):
        options = ["sing", "eat", "sing", "drink"]
    if k in ("duck",):
        options += ["swim"]
    if k in ("fox", "owl"):
        options += ["chase", "chase"]
    what = g.one(options)
    barn = spots("in barn, behind house, under tree, near river, in garden, in field")
    wild = spots("in forest, under tree, near lake, behind mill, on hill")
    where_ = wild if "wild" in kinds else barn
    if "pet" in kinds:
        where_ = spots(
            "under table, in garden, in kitchen, behind door, on bed, front house, on "
            "chair"
        )
    if what == "sleep":
        return VP(g, "sleep", pre=at(g, where_, None, s))
    if what == "drink":
        key = "milk" if k == "cat" and g.p(0.6) else "water"
        return VP(
            g,
            "drink",
            NP(g, g.noun([key]), "bare", adjs=adjs(g, key, 0.2)),
            pre=at(g, where_, None, s) if g.p(0.4) else None,
        )
    if what == "eat":
        food = {
            "dog": ["meat"],
            "cat": ["fish", "meat"],
            "horse": ["apple", "carrot"],
            "donkey": ["carrot", "apple"],
            "goat": ["flower", "carrot", "apple"],
            "rabbit": ["carrot"],
            "cow": ["carrot"],
            "hen": ["bread"],
            "duck": ["bread"],
            "pig": ["apple", "pear", "carrot"],
            "mouse": ["cheese", "bread"],
            "bird": ["cherry"],
            "fox": ["egg"],
        }[k]
        key = g.noun(food)
        if key == "fish":
            o = NP(g, key, "a", adjs=adjs(g, key, 0.3))
        else:
            o = obj(g, key, ("bare", "bare", "a", "num", "many"), measured=False)
        out = spots("in garden, in field, behind barn, behind house")
        return VP(
            g,
            "eat",
            o,
            pre=at(g, out, None, s) if g.p(0.4) and "pet" not in kinds else None,
        )
    if what == "chase":
        prey = {
            "dog": listed("cat hen duck rabbit fox"),
            "cat": ["mouse", "bird"],
            "fox": ["hen", "rabbit", "duck"],
            "owl": ["mouse"],
        }[k]
        key = g.noun(prey)
        det = g.one(["a", "the", "this"])
        pl = det == "the" and g.p(0.4) and NOUN[key].en_pl is not None
        o = NP(g, key, det, pl=pl, adjs=adjs(g, key, 0.3))
        return VP(
            g,
            "chase",
            o,
            pre=at(g, spots("in field, in garden, in forest, behind barn"), None, s)
            if g.p(0.6)
            else None,
        )
    if what == "play":
        return VP(
            g, "play", pre=at(g, spots("in garden, in kitchen, front house"), None, s)
        )
    if what == "run":
        return VP(
            g,
            "run",
            pre=at(
                g,
                spots("in forest, on hill")
                if "wild" in kinds
                else spots("in field, in garden"),
                None,
                s,
            ),
        )
    if what == "swim":
        return VP(g, "swim", pre=at(g, spots("in river, in lake"), None, s))
    return VP(g, "sing", pre=at(g, spots("in garden, in forest, in tree"), None, s))


def animals(g):
    s = animal(g)
    if g.p(0.15):
        adj = g.pick(["hungry", "thirsty", "tired", "old"])
        if s.adjs and adj == "old":
            raise Reject
        return copula(g, s, adj, "pres", g.p(0.2), None, False)
    vp = animal_act(g, s)
    tense = g.weighted(((5, "pres"), (3, "past"), (3, "fut")))
    tm = front = None
    if tense != "pres" and (g.p(0.35) or vp.v.key in ("chase", "run")):
        tm = when_phrase(g, tense)
        if g.p(0.4):
            tm, front = None, tm
    return clause(g, s, vp, tense, time=tm, front=front)


# ----------------------------------------------------------------- questions


def question(g):
    q = g.id()
    r = g.rng.random()
    if r < 0.2:
        s = Pron(g, g.one(["you", "he", "she"])) if g.p(0.4) else person(g, pron=0)
        adj = g.pick(PERSON_ADJ)
        if is_child(s) and adj in ("rich", "poor", "famous", "old", "young"):
            raise Reject
        if isinstance(s, NP) and s.adjs and adj in ("old", "young"):
            raise Reject
        return copula(g, s, adj, "pres", False, q), q
    if r < 0.3:
        return location(g, None, q), q
    s = (
        Pron(g, g.weighted(((8, "you"), (2, "he"), (2, "she"), (1, "we"))))
        if g.p(0.55)
        else person(g, pron=0)
    )
    tense = g.weighted(((5, "pres"), (3, "past"), (4, "fut"), (4, "modal")))
    if tense == "modal":
        _, vp = act(g, s, only=[a for _, a, _ in INTENT])
        vp.modal = g.one(["want", "want", "can", "must"])
        return clause(g, s, vp, "pres", q=q), q
    if tense == "pres":
        _, vp = act(
            g,
            s,
            only=(
                like,
                know,
                live,
                love_person,
                have,
                work,
                read,
                drink,
                eat,
                sell,
                go,
                help_,
                see,
                swim,
                sing,
                dance,
            ),
        )
    elif tense == "past":
        _, vp = act(g, s, without=NO_PAST)
    else:
        _, vp = act(g, s, without=STATIVE + (find, meet))
    tm = when_phrase(g, tense) if tense != "pres" and g.p(0.5) else None
    return clause(g, s, vp, tense, q=q, time=tm), q


# -------------------------------------------------- clauses that belong together


def pron_of(g, s):
    """The pronoun that takes up `s`."""
    return Pron(g, s.key if isinstance(s, Pron) else s.pron_key())


def food_vp(verb, keys, dets=("a", "num", "bare"), modal=None):
    def build(g, s):
        some = [k for k in keys if k != "coffee" or not is_child(s)]
        vp = VP(g, verb, obj(g, g.noun(some), dets))
        vp.modal = modal
        return vp

    return build


def modal_vp(fn, modal):
    def build(g, s):
        vp = fn(g, s)
        vp.modal = modal
        return vp

    return build


def neg_vp(fn, modal=None):
    def build(g, s):
        vp = fn(g, s)
        vp.modal = modal
        fit_negative(vp)
        vp.neg = True
        return vp

    return build


def close_window(g, s):
    key = g.noun(["window", "door"])
    if g.p(0.5):
        return VP(g, "close", NP(g, key, "the"))
    spot = g.noun(["kitchen", "house", "barn", "shop"])
    return VP(g, "close", OfNP(g, key, [], NP(g, spot, "the")))


def take_umbrella(g, s):
    key = g.noun(["umbrella"])
    if g.p(0.6):
        return VP(g, "take", own(g, s, key))
    return VP(g, "take", NP(g, key, "a", adjs=adjs(g, key, 0.4)))


def take_coat(g, s):
    key = g.noun(["hat"] if s.pl else ["coat", "hat"])
    return VP(g, "take", own(g, s, key, s.pl, p=0.3))


def read_home(g, s):
    return VP(
        g,
        "read",
        obj(g, g.noun(["book", "newspaper"]), ("a", "this", "num")),
        pre=home(g) if g.p(0.5) else at(g, spots("in kitchen, in room"), 0, s),
    )


def rest_tree(g, s):
    return VP(
        g,
        g.one(["rest", "sleep"]),
        pre=at(g, spots("under tree, in garden, in room"), None, s),
    )


def buy_rich(g, s):
    return VP(
        g, "buy", obj(g, g.noun(listed("house horse boat cow painting")), ("a", "num"))
    )


def cannot_buy(g, s):
    return VP(
        g, "buy", NP(g, g.noun(listed("dress coat bicycle horse house violin")), "this")
    )


def sell_own(g, s):
    return VP(g, "sell", own(g, s, g.noun(listed("horse cow cart violin house boat"))))


def cold_drink(g, s):
    key = g.noun(["water", "milk"])
    if g.p(0.5):
        m = MEASURE_OF[key][0]
        g.use(m[0])
        return VP(g, "drink", NP(g, key, "a", adjs=["cold"], measure=m))
    return VP(g, "drink", NP(g, key, "bare", adjs=["cold"]))


NOT_PLAY, NOT_WALK = neg_vp(play, "can"), neg_vp(walk, "can")
HOT_DRINKS = ["tea", "coffee", "milk"]
EFFECT = {
    "tired": [
        rest_tree,
        stay_home,
        modal_vp(rest, "want"),
        neg_vp(dance, "want"),
        neg_vp(work, "want"),
        modal_vp(sleep, "want"),
        neg_vp(go, "want"),
        modal_vp(rest, "must"),
        neg_vp(swim, "want"),
        neg_vp(walk, "want"),
    ],
    "hungry": [
        eat,
        modal_vp(eat, "want"),
        food_vp("buy", FOODC + ["bread", "cheese"]),
        food_vp("make", ["soup", "cake"], ("a",)),
        eat,
    ],
    "thirsty": [
        drink,
        modal_vp(drink, "want"),
        drink,
        food_vp("buy", ["water", "milk", "tea"]),
    ],
    "happy": [sing, dance, laugh, play_violin, sing_song],
    "sad": [cry, neg_vp(sing, "want"), neg_vp(dance, "want"), stay_home, cry],
    "busy": [
        neg_vp(rest, "can"),
        neg_vp(go, "can"),
        neg_vp(walk, "can"),
        neg_vp(go_to_do, "can"),
        neg_vp(help_, "can"),
    ],
    "cold": [
        food_vp("drink", HOT_DRINKS),
        close_window,
        stay_home,
        take_coat,
        modal_vp(food_vp("drink", HOT_DRINKS), "want"),
    ],
    "rich": [buy_rich, buy_rich, modal_vp(buy_rich, "can"), buy_for],
    "poor": [neg_vp(cannot_buy, "can"), modal_vp(sell_own, "must"), sell_own],
    "kind": [help_, give, bring],
    "angry": [neg_vp(sing, "want"), stay_home, close_window, neg_vp(help_, "want")],
    "strong": [modal_vp(repair, "can"), modal_vp(help_, "can"), modal_vp(swim, "can")],
    "w:rain": [
        stay_home,
        take_umbrella,
        close_window,
        read_home,
        NOT_WALK,
        NOT_PLAY,
        neg_vp(swim, "want"),
        stay,
    ],
    "w:snow": [
        stay_home,
        take_coat,
        food_vp("drink", HOT_DRINKS),
        close_window,
        read_home,
        neg_vp(work, "can"),
        stay,
    ],
    "w:hot": [
        swim,
        cold_drink,
        cold_drink,
        rest_tree,
        modal_vp(swim, "want"),
        neg_vp(work, "want"),
        swim,
    ],
    "w:cold": [
        stay_home,
        food_vp("drink", HOT_DRINKS),
        close_window,
        take_coat,
        read_home,
        neg_vp(swim, "want"),
    ],
    "w:nice": [
        walk,
        pick,
        walk,
        modal_vp(walk, "want"),
        dance,
        swim,
        paint,
        play,
        plant,
    ],
}
ADULT_ONLY = {"rich", "poor", "busy"}


def effect(g, s, cause):
    fn = g.one(EFFECT[cause])
    if fn in (play, NOT_PLAY) and not is_child(s):
        fn = walk if fn is play else NOT_WALK
    if is_child(s) and fn in (paint, buy_for):
        raise Reject
    return fn(g, s)


def say(g, s, vp, tense, time=None, front=None):
    """Clause for a verb phrase that carries its own negation."""
    neg = getattr(vp, "neg", False)
    if vp.modal and tense != "pres":
        raise Reject
    return clause(g, s, vp, tense, neg=neg, time=time, front=front)


def cause_of(g, s, cause, tense):
    """The cause as a clause; a person's state is said of the pronoun."""
    if cause.startswith("w:"):
        if tense == "pres" and cause in ("w:rain", "w:snow") and g.p(0.4):
            tense = "fut"
        return weather(g, cause[2:], tense)
    very = g.p(0.2)
    return copula(g, s, cause, tense, False, None, very)


def link(g, a, b, en, fr, zh, en_comma=False):
    """Two clauses joined: a, en b. Chinese always has a comma."""
    i, k = g.id(), g.id() if en_comma else ()
    comma = [(",", k)] if en_comma else []
    # the Chinese comma does the work of "and"
    zh_words = [("，", k), (zh, i)] if zh else [("，", k + i)]
    return Ph(
        a.en + comma + [(en, i)] + b.en,
        a.fr + comma + [(w, i) for w in fr.split()] + b.fr,
        a.zh + zh_words + b.zh,
    )


def because(g):
    """X because Y."""
    cause = g.pick([*EFFECT, "w:snow", "w:snow", "w:rain"])
    child = False if cause in ADULT_ONLY else None
    s = person(g, child=child, pron=0.1)
    tense = g.one(["pres", "pres", "past"])
    vp = effect(g, s, cause)
    front = (
        when_phrase(g, "past") if tense == "past" and g.p(0.4 + 0.3 * g.rich) else None
    )
    a = say(g, s, vp, tense, front=front)
    b = cause_of(g, pron_of(g, s), cause, tense)
    g.tags.update(("because", "subordinate"))
    return link(g, a, b, "because", "parce que", "因为")


def so(g):
    """Y, so X."""
    cause = g.pick([*EFFECT, "w:snow", "w:snow", "w:rain"])
    s = person(g, child=False if cause in ADULT_ONLY else None, pron=0.1)
    tense = g.one(["pres", "pres", "past"])
    b = cause_of(g, s, cause, tense)
    s2 = s if cause.startswith("w:") else pron_of(g, s)
    vp = effect(g, s2, cause) if not cause.startswith("w:") else effect(g, s, cause)
    a = say(g, s2, vp, tense)
    g.tags.add("so")
    return link(g, b, a, "so", "alors", "所以", en_comma=True)


def subordinate(g, sub, main, en, fr, zh_before, zh_after, first):
    """when/if/while clause before or after the main one; Chinese has it first."""
    i, k = g.id(), g.id()
    zh = (
        [(w, i) for w in zh_before.split()]
        + sub.zh
        + [(w, i) for w in zh_after.split()]
    )
    zh += [("，", k)] + main.zh
    g.tags.add("subordinate")
    head = [(en, i)] + sub.en, [(w, i) for w in fr.split()] + sub.fr
    if first:
        return Ph(head[0] + [(",", k)] + main.en, head[1] + [(",", k)] + main.fr, zh)
    return Ph(main.en + head[0], main.fr + head[1], zh)


def when(g):
    """When Y, X. / X when Y."""
    g.tags.add("when")
    r = g.rng.random()
    if r < 0.35:  # weather
        kind = g.one(listed("rain snow hot cold nice"))
        s = person(g)
        tense = "pres"
        main = say(g, s, effect(g, s, "w:" + kind), tense)
        sub = weather(g, kind, tense)
        return subordinate(g, sub, main, "when", "quand", "", "的 时候", g.p(0.5))
    if r < 0.55:  # a state
        cause = g.pick(listed("tired hungry thirsty happy sad cold angry"))
        s = person(g)
        sub = copula(g, s, cause, "pres")
        # 很 is dropped before 的 时候
        sub.zh = [w for w in sub.zh if w[0] != "很"]
        s2 = pron_of(g, s)
        main = say(g, s2, effect(g, s2 if isinstance(s, Pron) else s, cause), "pres")
        return subordinate(g, sub, main, "when", "quand", "", "的 时候", True)
    if r < 0.85:  # one comes back or arrives, somebody else reacts
        s = person(g)
        tense = g.one(["past", "past", "pres"])
        vp = (come_back if tense == "pres" else g.one([come_back, arrive, arrive]))(
            g, s
        )
        sub = clause(g, s, vp, tense, le=False)
        s2 = other(g, rel=False)
        if isinstance(s2, Pron) and isinstance(s, Pron):
            raise Reject
        react = g.one(
            [
                sing,
                dance,
                sleep,
                cry,
                drink,
                eat,
                read,
                work,
                rest,
                make,
                feed,
                watch,
                open_,
                play,
            ]
        )
        if react is play and not is_child(s2):
            react = sing
        if tense == "past":
            react = g.one(
                [eat, drink, make, open_, close, laugh, read, feed, sing_song, clean]
            )
        if react is make and is_child(s2):
            raise Reject
        main = clause(g, s2, react(g, s2), tense)
        return subordinate(g, sub, main, "when", "quand", "", "的 时候", g.p(0.6))
    # the cat sleeps, the mice play
    s, s2 = person(g), other(g, rel=False)
    a = g.one([sleep, work, play_violin, sing, read, rest])
    sub = clause(g, s, a(g, s), "pres", le=False)
    b = g.one(
        [play if is_child(s2) else walk, make, read, drink, watch, listen, clean, feed]
    )
    if b is make and is_child(s2):
        raise Reject
    main = clause(g, s2, b(g, s2), "pres")
    g.tags.discard("when")
    g.tags.add("while")
    return subordinate(g, sub, main, "while", "pendant que", "", "的 时候", g.p(0.6))


def if_(g):
    """If Y, X."""
    g.tags.add("if")
    r = g.rng.random()
    first = g.p(0.6)
    if r < 0.6:
        kind = g.one(listed("rain snow hot cold nice"))
        s = person(g)
        vp = effect(g, s, "w:" + kind)
        if vp.modal:
            vp.modal = None
        sub = weather(g, kind, "pres")
        if g.p(0.6):
            t = when_phrase(g, "fut")
            sub = Ph(sub.en + t.en, sub.fr + t.fr, t.zh + sub.zh)
            g.tags.add("zh-time-before-verb")
        main = say(g, s, vp, "fut")
    else:
        cause = g.pick(listed("tired hungry thirsty busy cold"))
        s = Pron(g, "you") if g.p(0.3) else person(g)
        sub = copula(g, s, cause, "pres")
        sub.zh = [w for w in sub.zh if w[0] != "很"]
        s2 = pron_of(g, s)
        vp = effect(g, s2 if isinstance(s, Pron) else s, cause)
        vp.modal = None
        main = say(g, s2, vp, "fut")
        first = True
    return subordinate(g, sub, main, "if", "si", "如果", "", first)


def but(g):
    """X, but Y."""
    g.tags.add("but")
    r = g.rng.random()
    if r < 0.38:  # tastes
        keys = g.one(TASTES)
        s = person(g)
        a = clause(g, s, like(g, s, "like", keys), "pres")
        s2 = other(g, rel=False)
        b = clause(g, s2, like(g, s2, "prefer", keys), "pres")
    elif r < 0.58:  # state against duty
        cause = g.pick(listed("tired hungry cold sad thirsty"))
        s = person(g)
        tense = "pres"
        a = copula(g, s, cause, tense)
        s2 = pron_of(g, s)
        fn = {
            "tired": [
                modal_vp(work, "must"),
                neg_vp(sleep, "want"),
                neg_vp(rest, "can"),
                modal_vp(help_, "must"),
                modal_vp(feed, "must"),
            ],
            "hungry": [neg_vp(eat, "want"), modal_vp(work, "must"), neg_vp(eat, "can")],
            "cold": [neg_vp(close_window, "want"), modal_vp(work, "must")],
            "sad": [
                modal_vp(sing, "must"),
                neg_vp(lambda g, s: VP(g, "cry")),
                modal_vp(dance, "must"),
            ],
            "thirsty": [neg_vp(drink, "want"), modal_vp(work, "must")],
        }[cause]
        vp = g.one(fn)(g, s)
        if is_child(s) and vp.v.key == "work":
            raise Reject
        b = say(g, s2, vp, tense)
    elif r < 0.7:  # looked for, did not find
        s = person(g, rel=g.p(0.3))
        key = g.noun(listed("key umbrella hat dog cat book donkey basket cow"))
        o = own(g, s, key)
        tense = g.one(["past", "pres"])
        a = clause(g, s, VP(g, "lookfor", o), tense)
        s2 = pron_of(g, s)
        it = Pron(g, o.pron_key())
        it.drop = True
        vp = VP(g, "find", it)
        if tense == "pres":
            vp.modal = "can"
        b = clause(g, s2, vp, tense, neg=True)
    elif r < 0.85:  # wants to, cannot
        s = person(g, child=False)
        vp = buy(g, s)
        vp.modal = "want"
        a = clause(g, s, vp, "pres")
        b = copula(g, pron_of(g, s), "poor", "pres", False, None, g.p(0.3))
    else:  # one works, the other sleeps
        s, s2 = person(g, child=False), other(g, rel=False)
        a = clause(g, s, work(g, s), "pres")
        b = clause(g, s2, g.one([sleep, rest, dance, sing])(g, s2), "pres")
    return link(g, a, b, "but", "mais", "但是", en_comma=True)


def join_and(g, a, b, en_comma=False):
    """Two clauses or verb phrases with and / et / ，"""
    g.tags.add("coordination")
    return link(g, a, b, "and", "et", "", en_comma=en_comma)


def parallel(g):
    """my mother makes a cake and my father reads the newspaper"""
    s, s2 = person(g, rel=g.p(0.5)), other(g, rel=g.p(0.5))
    tense = g.one(["pres", "past", "fut"])
    pool = (
        eat,
        drink,
        read,
        write,
        make,
        open_,
        clean,
        wash,
        pick,
        paint,
        repair,
        plant,
        feed,
        play,
        walk,
        swim,
        sing,
        dance,
        work,
        play_violin,
        sing_song,
        sell,
        buy,
        tell,
    )
    a1, v1 = act(g, s, only=pool)
    _, v2 = act(g, s2, only=pool, without=(a1,))
    for v in (v1, v2) if tense == "pres" else ():
        if isinstance(v.obj, NP):
            loosen(v.obj)
    front = when_phrase(g, tense) if g.p(0.5) else None
    if tense == "pres" and front is not None and (a1 not in HABIT):
        front = None
    return join_and(g, clause(g, s, v1, tense, front=front), clause(g, s2, v2, tense))


SCRIPTS = [
    (open_window, watch),
    (go_market, buy_goods),
    (come_back, eat),
    (come_back, drink),
    (come_back, read),
    (go, meet0),
    (buy, give),
    (pick, give),
    (feed, clean),
    (open_, clean),
    (make, give),
    (wash, eat),
    (find, give),
    (leave, go),
    (read, write),
    (plant, rest),
    (clean, make),
    (eat, sleep),
    (work, rest),
    (sing_song, dance),
    (listen, dance),
    (come_back, rest),
    (feed, drink),
    (close, sleep),
    (repair, rest),
    (meet0, drink),
    (go_market, buy_goods, make),
    (open_window, feed, clean),
    (come_back, make, eat),
    (come_back, drink, sleep),
    (pick, wash, eat),
    (go_market, buy_goods, give),
    (open_window, drink, read),
    (feed, work, rest),
    (clean, make, eat),
    (go, meet0, dance),
    (find, wash, make),
    (come_back, feed, drink),
]


GROWN_UP = (buy, buy_goods, make, leave, work, repair, sell)


def script(g, s=None, tense=None, size=None):
    """One person does two or three things that follow each other."""
    s = s or person(g)
    tense = tense or g.one(listed("pres past past fut want"))
    steps = g.one([x for x in SCRIPTS if size is None or len(x) == size])
    if is_child(s) and any(
        x in (buy, buy_goods, make, leave, work, repair, sell) for x in steps
    ):
        raise Reject
    time = front = None
    if tense != "want" and g.p(0.6):
        front = when_phrase(g, tense)
    vps = [fn(g, s) for fn in steps]
    g.tags.add("coordination")
    shared = tense in ("fut", "want")
    if tense == "want":
        vps[0].modal, tense = "want", "pres"
    if (
        tense == "pres"
        and not shared
        and any(x in (find, meet, meet0, see) for x in steps)
    ):
        raise Reject
    out = clause(g, s, vps[0], tense, time=time, front=front)
    for k, vp in enumerate(vps[1:]):
        last = k == len(vps) - 2
        nxt = vp_only(g, s, vp, tense, shared=shared)
        if last:
            out = link(g, out, nxt, "and", "et", "")
        else:
            i = g.id()
            out = Ph(
                out.en + [(",", i)] + nxt.en,
                out.fr + [(",", i)] + nxt.fr,
                out.zh + [("，", i)] + nxt.zh,
            )
    return out


def with_thing(g):
    """A clause about a thing somebody bought, made or read."""
    s = person(g, rel=False)
    r = g.rng.random()
    if r < 0.25:
        np = thing_rel(g, ["book", "newspaper", "letter"])
        vp = VP(g, "read", np)
        tense = g.one(["pres", "past", "fut"])
    elif r < 0.5:
        np = thing_rel(g, listed("apple pear cake bread cheese egg cherry mushroom"))
        vp = VP(g, "eat", np)
        tense = g.one(["pres", "past", "fut", "want"])
    elif r < 0.7:
        np = thing_rel(g)
        vp = VP(g, "like", np)
        tense = "pres"
    elif r < 0.85:
        np = thing_rel(
            g, listed("chair table boat bicycle cart house painting horse cow")
        )
        vp = VP(g, "sell", np)
        tense = g.one(["past", "fut", "want"])
        if is_child(s):
            raise Reject
    else:
        np = thing_rel(g, listed("key letter box book hat umbrella basket"))
        vp = VP(g, "lookfor", np)
        tense = g.one(["pres", "fut"])
    if tense == "want":
        vp.modal, tense = "want", "pres"
    tm = when_phrase(g, "fut") if tense == "fut" and g.p(0.5) else None
    return clause(g, s, vp, tense, time=None, front=tm)


def because_love(g):
    """The teacher helps the children because she loves them."""
    s = person(g, child=False, pron=0)
    keys = CHILDREN if g.p(0.4) else None
    key = g.noun(keys or KIN)
    if keys:
        o = NP(g, key, "the", pl=True)
    else:
        o = own(g, s, key, pl=NOUN[key].en_pl is not None and g.p(0.3), p=0)
    if not o.gendered:
        raise Reject
    if o.g == s.g and not o.pl and False:
        raise Reject
    r = g.rng.random()
    tense = "pres"
    if r < 0.3:
        vp = VP(g, "help", o)
    elif r < 0.6:
        k = g.noun(["gift", "flower", "cake", "book"])
        vp = VP(g, "give", obj(g, k, ("a", "num")), dat=("to", o))
    elif r < 0.8:
        vp = VP(
            g,
            "make",
            obj(g, g.noun(["cake", "soup"]), ("a", "a"), measured=False),
            dat=("for", o),
        )
    else:
        vp = VP(
            g,
            "buy",
            obj(g, g.noun(listed("gift dress hat book bicycle")), ("a",)),
            dat=("for", o),
        )
    a = clause(g, s, vp, tense)
    them = Pron(g, o.pron_key())
    b = clause(g, pron_of(g, s), VP(g, "love", them), tense)
    g.tags.update(("because", "subordinate"))
    return link(g, a, b, "because", "parce que", "因为")


def because_fresh(g):
    """buys the apples because they are fresh"""
    s = person(g, child=False)
    key, words = g.one(
        [
            ("apple", ("sweet", "fresh")),
            ("pear", ("sweet", "fresh")),
            ("cherry", ("sweet",)),
            ("carrot", ("fresh",)),
            ("mushroom", ("fresh",)),
            ("bread", ("fresh",)),
            ("dress", ("beautiful", "expensive")),
            ("hat", ("beautiful", "expensive")),
            ("painting", ("beautiful", "expensive")),
            ("table", ("expensive",)),
            ("chair", ("expensive",)),
            ("bicycle", ("expensive",)),
            ("cake", ("sweet",)),
        ]
    )
    key = g.noun([key])
    pl = NOUN[key].en_pl is not None and g.p(0.6)
    det = "these" if pl else "this"
    o = NP(g, key, det, pl=pl)
    adj = g.one(words)
    it = Pron(g, o.pron_key())
    r = g.rng.random()
    if adj == "expensive":
        vp = VP(g, "buy", o)
        vp.modal = "want"
        a = clause(g, s, vp, "pres", neg=True)
    elif r < 0.5:
        vp = VP(g, "buy", o)
        vp.modal = "want"
        a = clause(g, s, vp, "pres")
    else:
        a = clause(g, s, VP(g, "like", o), "pres")
    b = copula(g, it, adj, "pres", False, None, g.p(0.3))
    g.tags.update(("because", "subordinate"))
    return link(g, a, b, "because", "parce que", "因为")


def short_clitic(g):
    """i love you / she helps us / do you know him ?"""
    s = Pron(g, g.one(listed("i you he she we")))
    pool = [
        k
        for k in ("i", "you", "he", "she", "we")
        if k != s.key and {k, s.key} != {"i", "we"}
    ]
    o = Pron(g, g.one(pool))
    vp = VP(g, g.one(listed("love see know help wait thank")), o)
    neg = vp.v.key != "see" and g.p(0.25)
    tense = "pres" if vp.v.key in ("love", "know") else g.one(["pres", "fut", "pres"])
    if vp.v.key == "see" and tense == "fut":
        raise Reject
    r = g.rng.random()
    if tense == "pres" and vp.v.key in ("see", "help", "wait", "thank") and g.p(0.4):
        vp.modal = g.one(["want", "can"]) if vp.v.key != "see" else "can"
    tm = when_phrase(g, "fut") if tense == "fut" and r < 0.5 else None
    if g.p(0.25) and s.key != "we" and not neg and s.key != "i":
        q = g.id()
        return clause(g, s, vp, tense, q=q, time=tm), q
    return clause(g, s, vp, tense, neg=neg, time=tm), None


# ------------------------------------------------------------------- sentences

# -------------------------------------------------------------- longer stories


def chain(g, clauses):
    """A, B and C: English and French close with and / et, Chinese has commas."""
    out = clauses[0]
    g.tags.add("coordination")
    for c in clauses[1:-1]:
        i = g.id()
        out = Ph(
            out.en + [(",", i)] + c.en,
            out.fr + [(",", i)] + c.fr,
            out.zh + [("，", i)] + c.zh,
        )
    return link(g, out, clauses[-1], "and", "et", "")


def but_then(g, a, b):
    g.tags.add("but")
    return link(g, a, b, "but", "mais", "但是", en_comma=True)


def give_reason(g, a, b):
    g.tags.update(("because", "subordinate"))
    return link(g, a, b, "because", "parce que", "因为")


def so_that(g, a, b):
    g.tags.add("so")
    return link(g, a, b, "so", "alors", "所以", en_comma=True)


ACTIVE = (
    eat,
    drink,
    read,
    write,
    make,
    watch,
    open_,
    clean,
    wash,
    pick,
    paint,
    repair,
    plant,
    feed,
    play,
    walk,
    swim,
    sing,
    dance,
    work,
    play_violin,
    sing_song,
    sell,
    buy_food,
    tell,
    rest,
    listen,
)


def listing(g, size=None):
    """yesterday, A did this, B did that and C did something else"""
    tense = g.one(["pres", "past", "fut"])
    front = when_phrase(g, tense, listing)
    size = size or g.one([2, 3, 3])
    done, out = [], []
    for k in range(size):
        s = person(g, pron=0.04) if k == 0 else other(g)
        pool = [
            x
            for x in ACTIVE
            if (x in HABIT if tense == "pres" else tense == "fut" or x not in NO_PAST)
        ]
        a, vp = act(g, s, only=pool, without=done)
        done.append(a)
        if tense == "pres" and isinstance(vp.obj, NP):
            loosen(vp.obj)
        out.append(clause(g, s, vp, tense, front=front if k == 0 else None))
    return chain(g, out)


def weather_list(g, size=None, first=None):
    """when it rains, A stays at home, B reads a book and C closes the window"""
    kind = g.one(listed("rain snow hot cold nice"))
    will = g.p(0.4)
    size = size or g.one([2, 2, 3])
    out = []
    for k in range(size):
        s = person(g, pron=0.04) if k == 0 else other(g)
        vp = effect(g, s, "w:" + kind)
        if will:
            vp.modal = None
        out.append(say(g, s, vp, "fut" if will else "pres"))
    main = chain(g, out)
    sub = weather(g, kind, "pres")
    if will:
        g.tags.add("if")
        t = when_phrase(g, "fut")
        sub = Ph(sub.en + t.en, sub.fr + t.fr, t.zh + sub.zh)
        return subordinate(g, sub, main, "if", "si", "如果", "", True)
    g.tags.add("when")
    return subordinate(g, sub, main, "when", "quand", "", "的 时候", True)


def two_ifs(g):
    """if it rains tomorrow, A will …, but if the weather is nice, he will …"""
    bad, good = g.one(["rain", "snow", "cold"]), g.one(["nice", "nice", "hot"])
    s = person(g, child=False, pron=0.1)
    s2 = pron_of(g, s)
    will = g.p(0.6)
    g.tags.add("if" if will else "when")
    if will and bad != "rain":
        good = "nice"
    out = []
    for kind, who in ((bad, s), (good, s2)):
        if will and kind == good and bad != "rain":
            vp = g.one([walk, work, paint, sell])(g, s)
        else:
            vp = effect(g, s if isinstance(s, NP) else who, "w:" + kind)
        if will:
            vp.modal = None
        main = say(g, who, vp, "fut" if will else "pres")
        sub = weather(g, kind, "pres")
        if will and kind == bad:
            t = when_phrase(g, "fut")
            sub = Ph(sub.en + t.en, sub.fr + t.fr, t.zh + sub.zh)
        if will:
            out.append(subordinate(g, sub, main, "if", "si", "如果", "", True))
        else:
            out.append(subordinate(g, sub, main, "when", "quand", "", "的 时候", True))
    return but_then(g, out[0], out[1])


OPPOSITE = [
    ("happy", "sad"),
    ("happy", "tired"),
    ("happy", "angry"),
    ("rich", "poor"),
    ("strong", "tired"),
    ("cold", "happy"),
    ("hungry", "thirsty"),
    ("tired", "happy"),
    ("sad", "happy"),
]


def contrast(g):
    """A dances because she is happy, but B stays at home because he is tired"""
    causes = g.one(OPPOSITE)
    if g.p(0.5):
        causes = causes[::-1]
    adult = False if set(causes) & ADULT_ONLY else None
    parts = []
    for k, cause in enumerate(causes):
        s = person(g, child=adult, pron=0) if k == 0 else other(g, child=adult)
        a = say(g, s, effect(g, s, cause), "pres")
        b = cause_of(g, pron_of(g, s), cause, "pres")
        parts.append(give_reason(g, a, b))
    return but_then(g, *parts)


IN_SEASON = {
    "summer": (5, [swim, walk, dance, pick, work, sell, rest]),
    "winter": (4, [stay_home, read_home, make, feed, listen, tell]),
    "spring": (6, [plant, walk, paint, work, watch]),
    "autumn": (7, [pick, sell, make, work, look_mushrooms]),
}
MORNING = [
    feed,
    work,
    open_window,
    clean,
    drink,
    eat,
    go,
    buy_food,
    sell,
    look_mushrooms,
]
EVENING = [
    read,
    rest,
    sing,
    dance,
    play_violin,
    sing_song,
    tell,
    listen,
    watch,
    drink,
    write,
    eat,
    play,
]


def habit(vp):
    """What is done again and again has no number."""
    if isinstance(vp.obj, NP):
        loosen(vp.obj)
    return vp


def day(g):
    """every morning A works, but every evening she reads at home"""
    s = person(g, child=False, pron=0.1)
    s2 = pron_of(g, s)
    if g.p(0.5):
        one, two = (1, MORNING), (2, EVENING)
    else:
        one, two = (
            IN_SEASON[k]
            for k in g.one(
                [
                    ("summer", "winter"),
                    ("winter", "spring"),
                    ("spring", "autumn"),
                    ("winter", "summer"),
                    ("autumn", "winter"),
                ]
            )
        )
    front = pat(g, *TIMES["pres"][one[0]])
    a1 = g.one(one[1])
    a = clause(g, s, habit(a1(g, s)), "pres", front=front)
    if g.p(0.4):
        extra = g.one([x for x in one[1] if x is not a1 and x is not play])
        a = chain(g, [a, vp_only(g, s, habit(extra(g, s)), "pres")])
    t = pat(g, *TIMES["pres"][two[0]])
    a2 = g.one([x for x in two[1] if x is not a1 and x is not play])
    b = clause(g, s2, habit(a2(g, s)), "pres")
    b = Ph(t.en + b.en, t.fr + b.fr, t.zh + b.zh)
    return but_then(g, a, b)


def tired_story(g):
    """A worked in the field for three hours, so he was tired and slept under a tree"""
    s = person(g, child=False, pron=0.05)
    s2 = pron_of(g, s)
    front = when_phrase(g, "past") if g.p(0.6) else None
    vp = g.one([work, walk, swim, dance, work])(g, s)
    vp.dur = duration(g, ("three", "four", "five"))
    a = clause(g, s, vp, "past", front=front)
    b = copula(g, s2, "tired", "past", False, None, g.p(0.3))
    fn = g.one([rest, sleep])
    c = vp_only(g, s2, fn(g, s), "past")
    return so_that(g, a, chain(g, [b, c]))


def gift_story(g, tense=None):
    """A gave a cake to the children, so they were happy and thanked her"""
    s = person(g, child=False, pron=0)
    fn = g.one([give, bring, tell, buy_for, send, make])
    vp = fn(g, s)
    if vp.dat is None or isinstance(vp.dat[1], Pron):
        raise Reject
    t = vp.dat[1]
    tense = tense or g.one(["past", "past", "pres"])
    front = when_phrase(g, tense) if tense == "past" and g.p(0.6) else None
    a = clause(g, s, vp, tense, front=front)
    if t.pl and s.pl:
        raise Reject
    them = pron_of(g, t)
    b = copula(g, them, "happy", tense, False, None, g.p(0.3))
    thank_ = VP(g, "thank", pron_of(g, s))
    return so_that(g, a, chain(g, [b, vp_only(g, them, thank_, tense)]))


def helper(g):
    """A is tired, so B helps her and makes soup"""
    cause = g.pick(["tired", "busy", "sad", "old"])
    s = person(g, child=False, pron=0.06, plural=cause != "old")
    if isinstance(s, NP) and s.adjs:
        raise Reject
    a = copula(g, s, cause, "pres", False, None, g.p(0.3))
    s2 = other(g)
    b = clause(g, s2, VP(g, "help", pron_of(g, s)), "pres")
    if g.p(0.6):
        fn = g.one([clean, feed, wash])
        b = chain(g, [b, vp_only(g, s2, fn(g, s2), "pres")])
    return so_that(g, a, b)


def wish(g):
    """A wants to buy a horse, but he is poor, so he must sell his cart"""
    s = person(g, child=False, pron=0.12)
    s2 = pron_of(g, s)
    if g.p(0.5):
        key = g.noun(listed("house horse boat cow bicycle violin dress coat"))
        vp = VP(g, "buy", obj(g, key, ("a", "this")))
        vp.modal = "want"
        a = clause(g, s, vp, "pres")
        b = copula(g, s2, "poor", "pres", False, None, g.p(0.3))
        out = but_then(g, a, b)
        if g.p(0.75):
            v = g.one([modal_vp(sell_own, "must"), modal_vp(work, "must")])(g, s)
            out = so_that(g, out, say(g, s2, v, "pres"))
        return out
    vp = g.one([walk, rest, swim, dance, read, sleep, go_to_do, stay_home])(g, s)
    vp.modal = "want"
    a = clause(g, s, vp, "pres")
    v = g.one([work, feed, clean, repair, wash, write])(g, s)
    v.modal = "must"
    return but_then(g, a, say(g, s2, v, "pres"))


def fruit_story(g):
    """the apples that A picked are sweet, so the children want to eat them"""
    keys = g.one(
        [
            ["apple", "pear", "cherry", "cake"],
            ["bread", "egg", "cheese"],
            listed("dress hat bicycle boat painting"),
        ]
    )
    np = thing_rel(g, keys)
    key = np.noun.key
    adj = {"apple": "sweet", "pear": "sweet", "cherry": "sweet", "cake": "sweet"}.get(
        key
    ) or ("beautiful" if np.noun.kinds & {"thing"} else "fresh")
    if adj in np.adjs:
        raise Reject
    a = copula(g, np, adj, "pres", False, None, g.p(0.3))
    s = other(g, child=False if adj == "beautiful" else None)
    it = Pron(g, np.pron_key())
    vp = VP(g, "buy" if adj == "beautiful" else "eat", it)
    vp.modal = "want"
    return so_that(g, a, clause(g, s, vp, "pres"))


def script_and_other(g):
    """one person's morning, and what another one did"""
    tense = g.one(["past", "past", "fut"])
    s = person(g, pron=0.04)
    a = script(g, s, tense, 2)
    s2 = other(g)
    _, vp = act(g, s2, only=ACTIVE, without=(watch,))
    return join_and(g, a, clause(g, s2, vp, tense), True)


def script_because(g):
    """one person's afternoon and its reason"""
    steps, cause = g.one(
        [
            ((close, stay_home), "w:rain"),
            ((stay_home, read_there), "w:rain"),
            (
                (food_vp("make", ["soup"], ("a",)), food_vp("drink", HOT_DRINKS)),
                "w:cold",
            ),
            ((go_water, swim_there), "w:hot"),
            ((stay_home, sleep), "tired"),
            ((sing_song, dance), "happy"),
            ((come_back, rest), "tired"),
            ((come_back, eat), "hungry"),
            ((come_back, drink), "thirsty"),
            ((go_out, walk_there), "w:nice"),
            ((open_window, watch), "w:nice"),
            ((take_coat, close_window), "w:cold"),
            ((take_coat, close_window), "cold"),
            ((take_coat, close_window), "w:snow"),
            ((close, cry), "sad"),
            ((sell_own, leave), "poor"),
            (
                (go_market, food_vp("buy", FOODC + FOODM, ("bare", "two", "three"))),
                "hungry",
            ),
            ((pick, eat), "hungry"),
            ((play_violin, sing), "happy"),
        ]
    )
    s = person(g, child=False)
    tense = g.one(["pres", "past"])
    front = when_phrase(g, "past") if tense == "past" and g.p(0.7) else None
    vps = [fn(g, s) for fn in steps]
    a = chain(
        g, [clause(g, s, vps[0], tense, front=front), vp_only(g, s, vps[1], tense)]
    )
    return give_reason(g, a, cause_of(g, pron_of(g, s), cause, tense))


def us(g):
    """i, you and we: eat, drink, read, like, know, have, go"""
    s = Pron(g, g.one(listed("i you you we we")))
    tense = g.weighted(((6, "pres"), (1, "past"), (1, "fut")))
    fn = g.one(
        [
            eat,
            drink,
            read,
            eat,
            drink,
            read,
            like,
            know,
            have,
            go,
            see,
            see,
            prefer,
            love_person,
        ]
    )
    if (
        tense == "past"
        and fn in NO_PAST + (go,)
        or tense == "fut"
        and fn in STATIVE + (see,)
    ):
        raise Reject
    vp = fn(g, s)
    tm = front = None
    if fn in (eat, drink, read, go) and g.p(0.5):
        tm = when_phrase(g, tense, fn)
        if g.p(0.4):
            tm, front = None, tm
        if tense == "pres" and isinstance(vp.obj, NP):
            loosen(vp.obj)
    elif tense == "pres" and fn in (eat, drink, read, go) and g.p(0.6):
        vp.adv = g.one(["often", "always", "never"])
        fit_negative(vp) if vp.adv == "never" else (
            loosen(vp.obj) if isinstance(vp.obj, NP) else None
        )
    return clause(g, s, vp, tense, time=tm, front=front)


def drop_q(fn):
    return lambda g: (fn(g), None)


# weights for short, middle, long, very long sentences, and for the long split
SENTENCES = [
    ((6, 8, 9, 7, 0), drop_q(plain)),
    ((4, 5, 4, 2, 0), drop_q(negative)),
    ((8, 3, 2, 1, 0), drop_q(state)),
    ((3, 5, 4, 1, 0), drop_q(us)),
    ((4, 3, 1, 0, 0), drop_q(job)),
    ((3, 3, 1, 0, 0), drop_q(location)),
    ((2, 4, 5, 3, 0), drop_q(exists)),
    ((7, 3, 2, 1, 0), drop_q(weather_time)),
    ((10, 10, 7, 3, 0), drop_q(animals)),
    ((6, 5, 3, 1, 0), question),
    ((5, 1, 0, 0, 0), short_clitic),
    ((0, 3, 5, 3, 0), drop_q(because)),
    ((0, 1, 4, 3, 0), drop_q(so)),
    ((0, 3, 7, 7, 0), drop_q(when)),
    ((0, 2, 4, 4, 0), drop_q(if_)),
    ((0, 1, 5, 5, 0), drop_q(but)),
    ((0, 1, 4, 5, 0), drop_q(parallel)),
    ((0, 1, 5, 6, 0), drop_q(script)),
    ((0, 2, 4, 3, 0), drop_q(with_thing)),
    ((0, 1, 3, 2, 0), drop_q(because_love)),
    ((0, 1, 2, 2, 0), drop_q(because_fresh)),
    ((0, 0, 1, 4, 5), drop_q(listing)),
    ((0, 0, 1, 4, 4), drop_q(weather_list)),
    ((0, 0, 1, 4, 5), drop_q(two_ifs)),
    ((0, 0, 1, 4, 5), drop_q(contrast)),
    ((0, 0, 2, 4, 5), drop_q(day)),
    ((0, 0, 2, 4, 4), drop_q(tired_story)),
    ((0, 0, 2, 4, 4), drop_q(gift_story)),
    ((0, 0, 2, 4, 4), drop_q(helper)),
    ((0, 0, 2, 4, 4), drop_q(wish)),
    ((0, 0, 2, 3, 3), drop_q(fruit_story)),
    ((0, 0, 1, 4, 5), drop_q(script_and_other)),
    ((0, 0, 2, 4, 4), drop_q(script_because)),
]


def saga(g):
    """The sentences of the long split."""
    r = g.rng.random()
    if r < 0.2:
        return listing(g, g.one([3, 4]))
    if r < 0.4:
        return weather_list(g, g.one([3, 4]))
    if r < 0.5:
        return two_ifs(g)
    if r < 0.6:
        return contrast(g)
    if r < 0.7:
        # a day, and the reason of its evening
        return day(g)
    if r < 0.8:
        a = script(g, person(g, pron=0), "past", 3)
        s2 = other(g)
        _, vp = act(g, s2, only=ACTIVE, without=(watch,))
        return join_and(g, a, clause(g, s2, vp, "past"), True)
    if r < 0.9:
        a, causes = tired_story(g), ["happy", "hungry", "thirsty", "cold"]
    else:
        a, causes = gift_story(g, "past"), ["hungry", "thirsty", "cold", "tired"]
    s2 = other(g)
    cause = g.pick(causes)
    vp = effect(g, s2, cause)
    if vp.modal or getattr(vp, "neg", False):
        raise Reject
    return join_and(
        g,
        a,
        give_reason(
            g, clause(g, s2, vp, "past"), cause_of(g, pron_of(g, s2), cause, "past")
        ),
        True,
    )


TABLES = [[(w[level], fn) for w, fn in SENTENCES if w[level]] for level in range(5)]


def draft(g: Gen, level: int, rich: float):
    """A sentence of length class `level`: (phrase, id of the question or None).

    Its tags are in `g.tags`, its adjective–noun pairs in `g.pairs`.
    """
    g.reset(rich, g.allow_held)
    return (saga(g), None) if level == 5 else g.weighted(TABLES[level])(g)
