"""Which phenomena a sentence shows: the tags of the files."""

import english
import french
from core import NP, Clause, Joined, nodes

FAR = 10  # words between what belongs together: a long distance
PINYIN = "ba bei le guo zhe ma jiu ye dou hai bi".split()
PARTICLES = dict(zip(PINYIN, "把被了过着吗就也都还比", strict=True))


def tags(node, _english, fr, zh) -> set[str]:
    kinds = {Clause: of_clause, NP: of_phrase, Joined: of_joined}
    parts = [part for part in nodes(node, asked=False) if type(part) in kinds]
    shown = [of_words(fr, zh), *(kinds[type(part)](part) for part in parts)]
    return {tag for given in shown for tag, here in given.items() if here}


def of_words(fr, zh) -> dict:
    # 还, to give back, is another word
    chinese = {w.text for w in zh if w.text != "还" or not w.marks[0].endswith(".v")}
    french = [word.text for word in fr]
    return {f"zh-{name}": word in chinese for name, word in PARTICLES.items()} | {
        "fr-dont": "dont" in french,
        "fr-where": "où" in french and french[0] != "où",
        # the place y, not il y a; the pronoun en, not the preposition
        "fr-y": any(w.text == "y" and w.marks[0].endswith(".1") for w in fr),
        "fr-en": any(w.text == "en" and w.marks[0].isdigit() for w in fr),
        "contraction": {"du", "au", "aux"} & set(french),
        "elision": any(text.endswith("'") for text in french),
        "est-ce-que": "est-ce" in french,
    }


def of_joined(joined) -> dict:
    key, second = joined.how.key, len(english.render(joined.second))
    last = joined.swapped or "last" in joined.how.kinds
    between = second if last else max(second, len(english.render(joined.first)))
    return {
        "fr-si-first": key == "if" and joined.swapped,
        "long-distance": key in ("because", "if") and between >= FAR,
    }


def of_clause(c) -> dict:
    f, kind = c.frame, c.frame.key
    tense, copula = "" if f.has("state") else c.tense, kind in ("be", "exist")
    goal = f.has("goal") or f.has("goal2")
    result = " " in f.done and (c.passive or f.has("ba"))
    late = c.time and not c.front
    light = [n for n in (c.obj, c.to) if n and (n.pronoun or n.person < 3)]
    return {
        "copula": kind == "be",
        "existence": kind == "exist",
        "progressive": tense in ("prog", "imperfect"),
        "perfect": tense == "perfect",
        "recent": tense == "recent",
        "future": tense == "future",
        "fr-past": c.tense in ("past", "perfect"),
        "negation": c.neg,
        "ne-pas": c.neg == "not",
        "dative": c.to,
        "dative-shift": c.shift,
        "infinitive": c.modal or c.purpose,
        "passive": c.passive,
        "comparison": c.than,
        "wh-question": c.asks not in ("", "yes"),
        "fr-inversion": c.asks in ("place", "obj", "time", "number", "why"),
        "swapped-roles": f.has("inverse"),
        "fr-place-first": kind == "exist" and not c.asks,
        "fr-time-first": late and c.main and french.Said(c, "", None).time_first(),
        "particle": f.en.endswith("*"),
        "clitic": light,
        "long-distance": c.reports and len(english.render(c.comp)) >= FAR,
        "zh-place-before-verb": c.place and not goal and not copula,
        "zh-time-before-verb": late,
        "zh-resultative": result and c.tense == "past",
    }


def of_phrase(n) -> dict:
    return {
        "adj-before": any(a.before == "yes" for a in n.adjs),
        "adj-swap": any(a.before == "no" for a in n.adjs),
        "number": n.number,
        "possession": n.det == "own",
        "possessive": n.det == "poss",
        "quantity": n.measure,
        "compound": n.is_a("compound") and not n.pronoun,
        "apposition": n.name and n.noun and n.det == "none",
        "new-name": n.name and n.name.split == "test",
        "zh-classifier": n.det in ("a", "this") and not n.plural or n.number,
        "zh-relative": n.rel,
        f"relative-{n.rel and n.rel.kind}": n.rel,
        "long-distance": n.rel and len(english.relative(n)) >= FAR,
    }
