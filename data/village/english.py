"""English: word order, the verb group, pronouns."""

from core import Clause, Joined, Weather, Word, aligned, head, noun_words, table, words

IRREGULAR = table("verbs_en")
BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}
PRONOUNS = {
    "i": "i me my",
    "you": "you you your",
    "we": "we us our",
    "he": "he him his",
    "she": "she her her",
    "it": "it it its",
    "they": "they them their",
}
WH = {
    "place": "where",
    "time": "when",
    "why": "why",
    "obj": "what",
    "to": "who",
    "person": "who",
    "subj": "who",
}


def pronoun_key(n):
    if n.person < 3:
        return ("i", "you")[n.person - 1] if not n.plural else "we"
    if n.plural:
        return "they"
    return {"m": "he", "f": "she"}[n.gender] if n.human else "it"


def article(following):
    return "an" if following[0] in "aeiou" and following != "one" else "a"


def noun_phrase(n, case=0) -> list[Word]:
    """case: 0 subject, 1 object."""
    me = str(n.id)
    if n.pronoun or n.person < 3:
        form = PRONOUNS[pronoun_key(n)].split()[case]
        if n.number:
            number = words(n.number.key, f"{me}.n")
            return number + words("of", f"{me}?") + words("them", me)
        return words(form, me)
    head = n.noun and (n.noun.plural if n.plural else n.noun.en)
    if n.name and n.noun is None:
        return words(n.name.key, me)
    adjectives = [w for k, a in enumerate(n.adjs) for w in words(a.en, f"{me}.a{k}")]
    body = adjectives + noun_words(head, me)
    if n.name and n.owner:  # my friend anna
        return possessor(n) + body + words(n.name.key, f"{me}.name")
    if n.name:  # anna the baker
        the = words("the", f"{me}.d", f"{me}?")
        return words(n.name.key, f"{me}.name") + the + body
    if n.measure:
        many = n.number is not None
        vessel = n.measure.plural if many else n.measure.key
        body = words(vessel, f"{me}.m") + words("of", f"{me}.of", f"{me}.m?") + body
    return determiner(n, body) + body + (relative(n) if n.rel else [])


def possessor(n):
    if n.owner.pronoun or n.owner.person < 3:
        form = PRONOUNS[pronoun_key(n.owner)].split()[2]
        return words(form, str(n.owner.id))
    return noun_phrase(n.owner) + words("'s", f"{n.id}.of")


def determiner(n, body):
    me = str(n.id)
    d = (f"{me}.d", f"{me}?")
    if n.det in ("poss", "own"):
        number = words(n.number.key, f"{me}.n") if n.number else []
        return possessor(n) + number
    if n.number:
        return words(n.number.key, f"{me}.n")
    if n.det == "a":
        return words(article(body[0].text), *d)
    if n.det == "all":
        return words("all", f"{me}.all") + words("the", *d)
    if n.det == "this":
        return words("these" if n.plural else "this", f"{me}.d")
    if n.det in ("the", "some", "many"):
        return words(n.det, *(d if n.det == "the" else d[:1]))
    if n.det == "which":
        return words("how", f"{me}.d") + words("many", f"{me}.d")
    return []


def relative(n):
    rel, c = n.rel, n.rel.clause
    mark = str(rel.id)
    if rel.kind == "whose":
        return words("whose", mark) + clause(c, skip="owner")
    if rel.kind == "where":
        return words("where", mark) + clause(c)
    word = [] if rel.bare else words("who" if n.human else "that", mark)
    return word + clause(c, skip={"of": "obj"}.get(rel.kind, rel.kind))


# Verbs


def form(verb, what) -> str:
    """what: base s past participle ing"""
    row = IRREGULAR.get(verb)
    if what == "base":
        return verb
    if row and getattr(row, what):
        return getattr(row, what)
    if what == "participle":
        return form(verb, "past")
    y = verb.endswith("y") and verb[-2] not in "aeiou"
    if what == "s":
        if y:
            return verb[:-1] + "ies"
        return verb + ("es" if verb.endswith(("s", "sh", "ch", "x", "o")) else "s")
    if what == "past":
        if y:
            return verb[:-1] + "ied"
        return verb + ("d" if verb.endswith("e") else "ed")
    return (verb[:-1] if verb.endswith("e") and verb != "be" else verb) + "ing"


def finite(verb, n, past):
    if verb == "be":
        which = 0 if (n.person == 1 and not n.plural) else 1
        if n.plural or n.person == 2:
            which = 2
        return BE["past" if past else "present"][which]
    if past:
        return form(verb, "past")
    third = n.person == 3 and not n.plural
    return form(verb, "s" if third else "base")


def auxiliaries(c):
    """(lemma, mark, form that it asks of the next verb), in order."""
    v, found = f"{c.id}.v?", []
    if c.tense == "future":
        found.append(("will", (f"{c.id}.will",), "base"))
    if c.tense in ("perfect", "recent"):
        found.append(("have", (f"{c.id}.perf", v), "participle"))
    if c.tense in ("prog", "imperfect") and not c.frame.has("state") and not c.modal:
        found.append(("be", (f"{c.id}.prog", v), "ing"))
    if c.passive:
        found.append(("be", (f"{c.id}.pass", v), "participle"))
    return found


def modal_words(c, past):
    """The modal, inflected, and whether it is a full verb (which needs do)."""
    found = aligned(c.modal.past if past else c.modal.en, f"{c.id}.m")
    for to in found[1:]:
        to.marks += (f"{c.id}.v?",)
    lexical = c.modal.key in ("want", "like", "love", "have_to")
    if lexical and not past and c.subj.person == 3 and not c.subj.plural:
        found[0].text = form(found[0].text, "s")
    return found, lexical


def subject_of(c):
    return c.obj if c.passive else c.subj


def verb_group(c):
    """(finite word, the words after it): not yet with a subject between them."""
    past = c.tense in ("past", "imperfect")
    verb = c.frame.en.split()[0].rstrip("*")
    v = (f"{c.id}.v?", f"{c.id}.be") if "!" in c.frame.en else (f"{c.id}.v",)
    chain, asked, rest = auxiliaries(c), None, []
    need_do = (c.neg == "not" or (c.asks and c.asks != "subj")) and not c.command
    if c.modal:
        found, lexical = modal_words(c, past)
        if need_do and lexical:
            found[0].text = c.modal.en.split("/")[0]
            do = Word(finite("do", subject_of(c), past), (f"{c.id}.m.1?", f"{c.id}.q~"))
            return do, found + words(verb, *v)
        if c.neg == "not" and c.modal.key == "can" and found[0].text == "can":
            found[0] = Word("cannot", (*found[0].marks, f"{c.id}.neg"))
        return found[0], found[1:] + words(verb, *v)
    for lemma, marks, asks in chain:
        text = form(lemma, asked) if asked else finite_aux(lemma, c, past)
        rest.append(Word(text, marks))
        asked = asks
    if rest:
        rest += words(form(verb, asked), *v)
        return rest[0], rest[1:]
    if c.command and c.neg:
        return Word("do", (f"{c.id}.neg~",)), words(verb, *v)
    if c.command:
        return Word(verb, v), []
    if need_do and verb != "be":
        do = Word(finite("do", subject_of(c), past), (f"{c.id}.v?", f"{c.id}.q~"))
        return do, words(verb, *v)
    return Word(finite(verb, subject_of(c), past), v), []


def finite_aux(lemma, c, past):
    return lemma if lemma == "will" else finite(lemma, subject_of(c), past)


def particle(c):
    """(word, does it part from its verb?)"""
    rest = c.frame.en.replace("*", "").split()[1:]
    if rest and rest[-1].endswith("^"):  # play the violin: a noun of its own
        the = words(" ".join(rest[:-1]), f"{c.id}.the", f"{c.id}.o?")
        return the + words(rest[-1][:-1], f"{c.id}.o"), False
    if rest and rest[-1] in ("to", "from") and c.place and c.place.np is None:
        rest = rest[:-1]
    kinds = {"!": (f"{c.id}.v",), "^": (f"{c.id}.v?",)}
    other = (f"{c.id}.p", f"{c.id}.v?")
    found = [Word(w.rstrip("!^"), kinds.get(w[-1], other)) for w in rest]
    return found, c.frame.en.endswith("*")


def objects(c, skip):
    part, parts = particle(c)
    if c.passive:
        return words("by", f"{c.id}.by") + noun_phrase(c.subj, 1)
    if c.frame.key == "exist":
        return noun_phrase(c.subj)
    obj = [] if c.obj is None or skip == "obj" else noun_phrase(c.obj, 1)
    to = [] if c.to is None or skip == "to" else noun_phrase(c.to, 1)
    if parts and obj and (c.obj.pronoun or len(obj) <= 3):
        found = obj + part
    else:
        found = part + obj
    if not to:
        return found
    if c.shift:
        return to + found
    return (
        found
        + words("for" if c.frame.has("for") else "to", f"{c.id}.to", f"{head(c.to)}?")
        + to
    )


def place(p, to=False) -> list[Word]:
    if p.np is None:
        found = aligned(p.prep.en, p.id)
        return found[1:] if to and p.prep.key == "home" else found
    preposition = words("to", f"{p.id}.1") if to else aligned(p.prep.en, p.id)
    return preposition + noun_phrase(p.np, 1)


def where(c):
    if c.place is None:
        return []
    if c.frame.has("goal") or c.frame.has("from"):
        if c.place.np is None:
            return place(c.place)
        return noun_phrase(c.place.np, 1)
    found = place(c.place)
    if c.frame.has("goal2"):
        found[0].text = {"by": "at"}.get(found[0].text, found[0].text)
        found[0].marks += (f"{c.id}.v?",)
    return found


def complement(c):
    me = f"{c.id}.comp"
    if isinstance(c.comp, (Clause, Joined)):
        return words("that", f"{c.id}.that") + render(c.comp)
    if c.comp is None:
        return []
    if hasattr(c.comp, "plural"):  # a trade: is a baker
        return words(article(c.comp.en), f"{me}?") + words(c.comp.en, me)
    if c.degree == "very":
        return words("very", f"{c.id}.deg") + words(c.comp.en, me)
    if c.degree == "as":
        found = words("as", f"{c.id}.deg") + words(c.comp.en, me)
        return found + words("as", f"{c.id}.than") + noun_phrase(c.than, 1)
    if c.degree == "more":
        found = words(c.comp.more, me)
        found[0].marks = (f"{c.id}.deg", *((me,) if len(found) == 1 else (f"{me}?",)))
        return found + words("than", f"{c.id}.than") + noun_phrase(c.than, 1)
    return words(c.comp.en, me)


def adverbs(c):
    """(those beside the verb, those at the end)"""
    if c.tense == "recent":
        return words("just", f"{c.id}.just"), []
    if c.neg == "never":
        return words("never", f"{c.id}.neg"), []
    if c.adverb is None:
        return [], []
    found = aligned(c.adverb.row.en, c.adverb.id)
    return ([], found) if c.adverb.row.en_last else (found, [])


def clause(c, skip="") -> list[Word]:
    first, rest = verb_group(c)
    middle, last = adverbs(c)
    subject = [] if skip == "subj" or c.shared or c.command else subject_words(c, skip)
    front = aligned(c.time.row.en, c.time.id) if c.time and c.front else []
    time = aligned(c.time.row.en, c.time.id) if c.time and not c.front else []
    manner = aligned(c.manner.row.en, c.manner.id) if c.manner else []
    not_ = (
        words("not", f"{c.id}.neg") if c.neg == "not" and first.text != "cannot" else []
    )
    tail = objects(c, skip) + complement(c)
    tail += ([] if skip in ("where", "place") else where(c)) + last + manner + time
    if c.purpose:
        tail += words("to", f"{c.purpose.id}.to2", f"{c.purpose.id}.v?") + infinitive(
            c.purpose
        )
    comma = words(",", f"{c.id}.comma") if front else []
    if c.asks and c.asks != "subj":
        verb = [first] + subject + not_ + middle + rest
        return asked(c) + verb + tail
    full_verb = not rest and first.marks[0].startswith(f"{c.id}.v")
    simple = full_verb and first.text not in ("am", "is", "are", "was", "were")
    if c.shared and rest and c.tense in ("future", "prog", "perfect"):
        verb = middle + rest  # … will eat an apple and drink milk
    elif simple or (
        c.modal and c.modal.key in ("want", "like", "love", "have_to") and middle
    ):
        verb = middle + [first] + not_ + rest
    else:
        verb = [first] + not_ + middle + rest
    please = words("please", f"{c.id}.please") if c.command and not c.neg else []
    return front + comma + please + subject + verb + tail


def subject_words(c, skip):
    if c.frame.key == "exist":
        return words("there", f"{c.id}.v?")
    if c.asks == "subj":
        return words("who", f"{c.subj.id}")
    if skip == "owner":  # whose dog
        n = c.subj
        adjectives = [
            w for k, a in enumerate(n.adjs) for w in words(a.en, f"{n.id}.a{k}")
        ]
        return adjectives + noun_words(n.noun.plural if n.plural else n.noun.en, n.id)
    return noun_phrase(subject_of(c))


def asked(c):
    if c.asks == "yes":
        return []
    if c.asks == "number":
        n = c.obj
        many = words("how many", f"{n.id}.d")
        return many + noun_words(n.noun.plural, str(n.id))
    word = WH["person" if c.asks == "obj" and c.obj.human else c.asks]
    return words(word, f"{c.id}.wh")


def infinitive(c):
    verb = words(c.frame.en.split()[0].rstrip("*"), f"{c.id}.v")
    return verb + objects(c, "") + where(c)


# Sentences


def render(node) -> list[Word]:
    if isinstance(node, Clause):
        return clause(node, skip_of(node))
    if isinstance(node, Weather):
        return aligned(node.row.en, node.id)
    mark = node.id
    joint = aligned(node.how.en, mark)
    first, second = render(node.first), render(node.second)
    if "sub" in node.how.kinds and not node.swapped:
        return joint + first + words(",", f"{mark}.comma") + second
    if "sub" in node.how.kinds or "last" in node.how.kinds:
        return second + joint + first
    return first + joint + second


def skip_of(c):
    return {"number": "obj", "obj": "obj", "place": "place"}.get(c.asks, "")


def sentence(node, end) -> list[Word]:
    return render(node) + [Word(end, ("end", "q2~") if end == "?" else ("end",))]
