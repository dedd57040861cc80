"""Which phenomena a sentence shows: the tags of the files."""

import english
import french
from core import Clause, Joined, Weather
from scenes import inside

CHINESE = {
    "zh-ba": "把",
    "zh-bei": "被",
    "zh-le": "了",
    "zh-guo": "过",
    "zh-zhe": "着",
    "zh-ma": "吗",
    "zh-jiu": "就",
    "zh-ye": "也",
    "zh-dou": "都",
    "zh-hai": "还",
    "zh-bi": "比",
}
FRENCH = {"fr-dont": "dont", "fr-where": "où", "fr-y": "y", "fr-en": "en"}
TENSES = {
    "prog": "progressive",
    "imperfect": "progressive",
    "perfect": "perfect",
    "recent": "recent",
    "future": "future",
}


def parts(node):
    """All clauses, noun phrases and weathers of a sentence."""
    if isinstance(node, Joined):
        yield from parts(node.first)
        yield from parts(node.second)
        yield node
        return
    yield node
    if isinstance(node, Weather):
        return
    for np in (node.subj, node.obj, node.to, node.than, node.place and node.place.np):
        if np is not None:
            for n in inside(np):
                yield n
                if n.rel is not None:
                    yield from parts(n.rel.clause)
    for more in (node.comp, node.purpose):
        if isinstance(more, (Clause, Joined, Weather)):
            yield from parts(more)


def tags(node, _en, fr, zh) -> set[str]:
    found = set()
    for part in parts(node):
        if isinstance(part, Joined):
            if part.how.key == "if" and part.swapped:
                found.add("fr-si-first")
            if part.how.key in ("because", "if") and long_apart(part):
                found.add("long-distance")
        elif isinstance(part, Weather):
            found.add("weather")
        elif isinstance(part, Clause):
            found |= of_clause(part)
        else:
            found |= of_phrase(part)
            if part.rel and len(english.relative(part)) >= 10:
                found.add("long-distance")
    fr_words, zh_words = ([word.text for word in side] for side in (fr, zh))
    found |= {tag for tag, word in CHINESE.items() if word in zh_words}
    found |= {tag for tag, word in FRENCH.items() if word in fr_words}
    if "fr-y" in found and not any(
        w.text == "y" and w.marks[0].endswith(".1") for w in fr
    ):
        found.discard("fr-y")  # il y a
    if "fr-where" in found and "où" in fr_words[:1]:
        found.discard("fr-where")
    if "fr-en" in found and not any(
        w.text == "en" and w.marks[0].isdigit() for w in fr
    ):
        found.discard("fr-en")
    if any(w in ("du", "au", "aux") for w in fr_words):
        found.add("contraction")
    if any(w.endswith("'") for w in fr_words):
        found.add("elision")
    if "est-ce" in fr_words:
        found.add("est-ce-que")
    return found


def long_apart(joined) -> bool:
    """Do ten words or more lie between the conjunction and the verb it belongs to?"""
    first, second = (
        len(english.render(joined.first)),
        len(english.render(joined.second)),
    )
    return (
        second if "last" in joined.how.kinds or joined.swapped else max(first, second)
    ) >= 10


def of_clause(c) -> set[str]:
    f = c.frame
    given = {
        "copula": f.key == "be",
        "existence": f.key == "exist",
        TENSES.get(c.tense, "past"): c.tense in TENSES and not f.has("state"),
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
        "fr-place-first": f.key == "exist" and not c.asks,
        "fr-time-first": c.time
        and not c.front
        and c.main
        and french.Said(c, "", None).time_first(),
        "particle": f.en.endswith("*"),
        "clitic": any(
            n is not None and (n.pronoun or n.person < 3) for n in (c.obj, c.to)
        ),
        "long-distance": isinstance(c.comp, (Clause, Joined))
        and len(english.render(c.comp)) >= 10,
        "zh-place-before-verb": c.place
        and not (f.has("goal") or f.has("goal2") or f.key in ("be", "exist")),
        "zh-time-before-verb": c.time and not c.front,
        "zh-resultative": " " in f.done
        and (c.passive or f.has("ba"))
        and c.tense == "past",
    }
    return {tag for tag, here in given.items() if here}


def of_phrase(n) -> set[str]:
    given = {
        "adj-before": any(a.before == "yes" for a in n.adjs),
        "adj-swap": any(a.before == "no" for a in n.adjs),
        "number": n.number,
        "possession": n.det == "own",
        "possessive": n.det == "poss",
        "quantity": n.measure,
        "compound": n.noun and n.is_a("compound") and not n.pronoun,
        "apposition": n.name and n.noun and n.det == "none",
        "new-name": n.name and n.name.split == "test",
        "zh-classifier": n.det in ("a", "this") and not n.plural or n.number,
        "zh-relative": n.rel,
        f"relative-{n.rel.kind if n.rel else ''}": n.rel,
    }
    return {tag for tag, here in given.items() if here}
