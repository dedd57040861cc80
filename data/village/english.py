"""English: word order, the verb group, pronouns."""

from core import Clause, Weather, Word, aligned, end_mark, in_order, table, told

VERBS = table("verbs_en")
AUXILIARIES = {  # tense -> the verb, its mark, the form of the verb after it
    "perfect": ("have", "perf", "participle"),
    "recent": ("have", "perf", "participle"),
    "prog": ("be", "prog", "ing"),
    "imperfect": ("be", "prog", "ing"),
    "passive": ("be", "pass", "participle"),
}
WHAT_IS_ASKED = {"place": "where", "time": "when", "why": "why", "obj": "what"}
SKIPPED = {"number": "obj", "obj": "obj", "place": "place"}  # stands first instead


def noun_phrase(n, case=0) -> list[Word]:
    """case: 0 subject, 1 object."""
    if n.light and n.number:
        return n.say(n.number.key, "n") + n.say("of", "?") + n.say("them")
    if n.light:
        return n.say(n.pronouns.en_object if case else n.pronouns.en)
    if n.noun is None:
        return n.say(n.name.key)
    body = noun(n)
    if n.name and n.owner:  # my friend anna
        return possessor(n) + body + n.say(n.name.key, "name")
    if n.name:  # anna the baker
        return n.say(n.name.key, "name") + n.say("the", "d", "?") + body
    if n.measure:  # two cups of tea
        vessel = n.measure.plural if n.number else n.measure.key
        body = n.say(vessel, "m") + n.say("of", "of", "m?") + body
    return determiner(n, body) + body + (relative(n) if n.rel else [])


def noun(n):
    """The noun with its adjectives."""
    adjectives = [w for k, a in enumerate(n.adjs) for w in n.say(a.en, f"a{k}")]
    return adjectives + n.noun_words(n.noun.plural if n.plural else n.noun.en)


def possessor(n):
    if n.owner.light:
        return n.owner.say(n.owner.pronouns.en_owner)
    return noun_phrase(n.owner) + n.say("'s", "of")


def article(following):
    return "an" if following[0] in "aeiou" else "a"


def determiner(n, body):
    if n.det in ("poss", "own"):
        return possessor(n)
    if n.number:
        return n.say(n.number.key, "n")
    if n.det == "a":
        return n.say(article(body[0].text), "d", "?")
    if n.det == "all":
        return n.say("all", "all") + n.say("the", "d", "?")
    if n.det == "this":
        return n.say("these" if n.plural else "this", "d")
    if n.det == "the":
        return n.say("the", "d", "?")
    return n.say(n.det, "d") if n.det in ("some", "many") else []


def relative(n):
    rel = n.rel
    if rel.kind in ("whose", "where"):
        return rel.say(rel.kind) + clause(rel.clause)
    word = [] if rel.bare else rel.say("who" if n.human else "that")
    return word + clause(rel.clause, skip="subj" if rel.kind == "subj" else "obj")


def finite(verb, n, past):
    many = n.plural or n.person == 2
    if verb == "be" and past:
        return "were" if many else "was"
    if verb == "be":
        return "are" if many else "am" if n.person == 1 else "is"
    if past:
        return VERBS[verb].past
    return VERBS[verb].s if n.person == 3 and not n.plural else verb


def verb_group(c):
    """(finite word, the words after it): not yet with a subject between them."""
    past, subj = c.tense in ("past", "imperfect"), c.obj if c.passive else c.subj
    verb = aligned(c.frame.en.split()[0], c.id, "v")[0]
    needs_do = c.neg == "not" or c.asks not in ("", "subj")
    if c.modal:
        return modal_group(c, past, verb, needs_do)
    if c.tense == "future":
        return c.say("will", "will")[0], [verb]
    tense = "passive" if c.passive else c.tense
    if tense in AUXILIARIES and not c.frame.has("state"):
        helper, mark, what = AUXILIARIES[tense]
        first = c.say(finite(helper, subj, past), mark, "v?")
        return first[0], [Word(getattr(VERBS[verb.text], what), verb.marks)]
    if c.command and c.neg:
        return c.say("do", "neg~")[0], [verb]
    if needs_do and verb.text != "be":
        return c.say(finite("do", subj, past), "v?", "q~")[0], [verb]
    return Word(finite(verb.text, subj, past), verb.marks), []


def modal_group(c, past, verb, needs_do):
    """can read, cannot read; but: wants to read, doesn't want to read."""
    found = aligned(c.modal.past if past else c.modal.en, c.mark("m"))
    for to in found[1:]:
        to.marks += (c.mark("v?"),)
    full = len(found) > 1  # a verb of its own
    if full and needs_do:
        found[0].text = c.modal.en.split("/")[0]
        return c.say(finite("do", c.subj, past), "m.1?", "q~")[0], [*found, verb]
    if full and not past:
        found[0].text = finite(found[0].text, c.subj, past)
    elif c.neg == "not" and found[0].text == "can":
        found[0] = Word("cannot", (*found[0].marks, c.mark("neg")))
    return found[0], [*found[1:], verb]


def particle(c):
    """What else belongs to the verb: for, up, the violin, for a walk."""
    rest = c.frame.en.rstrip("*").split()[1:]
    if rest[-1:] == ["to"] and c.place and c.place.np is None:  # go there
        rest = rest[:-1]
    return aligned(" ".join(rest), c.id, "p,v?")


def objects(c, skip=""):
    if c.passive:
        return c.say("by", "by") + noun_phrase(c.subj, 1)
    if c.frame.key == "exist":
        return noun_phrase(c.subj)
    part = particle(c)
    obj = noun_phrase(c.obj, 1) if c.obj and skip != "obj" else []
    apart = c.frame.en.endswith("*") and len(obj) <= 3  # picked the hat up
    found = obj + part if apart else part + obj
    if c.to is None:
        return found
    to = noun_phrase(c.to, 1)
    if c.shift:
        return to + found
    preposition = "for" if c.frame.has("for") else "to"
    return found + [Word(preposition, (c.mark("to"), c.to.head())), *to]


def where(c):
    p = c.place
    preposition = aligned(p.prep.en, p.id)
    if p.np is None:
        return preposition
    if c.frame.has("goal") or c.frame.has("from"):  # the verb has it: go to
        return noun_phrase(p.np, 1)
    if c.frame.has("goal2"):  # arrive by the river, at the river
        preposition[0].text = preposition[0].text.replace("by", "at")
        preposition[0].marks += (c.mark("v?"),)
    return preposition + noun_phrase(p.np, 1)


def complement(c):
    if c.comp is None:
        return []
    if c.reports:
        return c.say("that", "that") + render(c.comp)
    quality = c.say(c.comp.en, "comp")
    if c.trade:  # is a baker
        return c.say(article(c.comp.en), "comp?") + quality
    if c.degree in ("very", "as"):
        quality = c.say(c.degree, "deg") + quality
    if c.degree == "more":
        first, *rest = c.comp.more.split()
        quality = c.say(first, "deg", "comp?" if rest else "comp")
        quality += c.say(" ".join(rest), "comp")
    if c.than is None:
        return quality
    than = c.say("as" if c.degree == "as" else "than", "than")
    return quality + than + noun_phrase(c.than, 1)


def adverbs(c):
    """(those beside the verb, those at the end)"""
    if c.tense == "recent":
        return c.say("just", "just"), []
    if c.neg == "never":
        return c.say("never", "neg"), []
    found = told(c.adverb, "en")
    return ([], found) if c.adverb and c.adverb.row.en_last else (found, [])


def clause(c, skip="") -> list[Word]:
    first, rest = verb_group(c)
    middle, last = adverbs(c)
    hidden = skip == "subj" or c.shared or c.command
    subject = [] if hidden else subject_words(c)
    not_ = c.say("not", "neg") if c.neg == "not" and first.text != "cannot" else []
    end = tail(c, skip, last)
    if c.asks not in ("", "subj"):
        return asked(c) + [first] + subject + not_ + middle + rest + end
    if c.shared and c.tense == "future":
        verb = rest  # … will eat an apple and drink milk
    elif rest or c.frame.en.startswith("be/"):
        verb = [first] + not_ + middle + rest  # has already eaten, are all afraid
    else:
        verb = middle + [first] + not_  # often eats
    front = told(c.time, "en") + c.say(",", "comma") if c.time and c.front else []
    please = c.say("please", "please") if c.command and not c.neg else []
    return front + please + subject + verb + end


def tail(c, skip, last):
    """What stands after the verb; last: an adverb."""
    found = objects(c, skip) + complement(c)
    if c.place and skip != "place":
        found += where(c)
    found += last + told(c.manner, "en")
    if not c.front:
        found += told(c.time, "en")
    if c.purpose:
        lemma = c.purpose.frame.en.split()[0].partition("/")[0]
        found += c.purpose.say("to", "to2", "v?") + c.purpose.say(lemma, "v")
        found += objects(c.purpose)
    return found


def subject_words(c):
    if c.frame.key == "exist":
        return c.say("there", "v?")
    if c.asks == "subj":
        return c.subj.say("who")
    return noun_phrase(c.obj if c.passive else c.subj)


def asked(c):
    """What the question asks for, which stands first."""
    if c.asks == "yes":
        return []
    if c.asks == "number":
        return c.obj.say("how many", "d") + c.obj.noun_words(c.obj.noun.plural)
    human = c.asks == "obj" and c.obj.human
    return c.say("who" if human else WHAT_IS_ASKED[c.asks], "wh")


def render(node) -> list[Word]:
    if isinstance(node, Clause):
        return clause(node, SKIPPED.get(node.asks, ""))
    if isinstance(node, Weather):
        return told(node, "en")
    first, second = render(node.first), render(node.second)
    return in_order(node, aligned(node.how.en, node.id), first, second, node.swapped)


def sentence(node, end) -> list[Word]:
    return render(node) + end_mark(end)
