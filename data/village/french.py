"""French: agreement, clitics, the passé composé, inversion, elision, contraction."""

from dataclasses import replace

from core import (
    Clause,
    Joined,
    Reject,
    Weather,
    Word,
    aligned,
    head,
    noun_words,
    one_subject,
    table,
    words,
)

VERBS = table("verbs_fr")
SUBJECT = {"i": "je", "you": "tu", "we": "nous", "he": "il", "she": "elle", "it": "il"}
DIRECT = {"i": "me", "you": "te", "we": "nous", "he": "le", "she": "la", "they": "les"}
INDIRECT = {
    "i": "me",
    "you": "te",
    "we": "nous",
    "he": "lui",
    "she": "lui",
    "they": "leur",
}
STRESSED = {"i": "moi", "you": "toi", "we": "nous", "he": "lui", "she": "elle"}
OWN = {
    "i": "mon ma mes",
    "you": "ton ta tes",
    "we": "notre notre nos",
    "he": "son sa ses",
    "she": "son sa ses",
    "it": "son sa ses",
    "they": "leur leur leurs",
}
ORDER = ["me", "te", "se", "nous", "le", "la", "les", "lui", "leur", "y", "en"]
INVERTED = {
    **{f"a {who}": f"a-t-{who}" for who in ("il", "elle")},
    **{f"va {who}": f"va-t-{who}" for who in ("il", "elle")},
    **{f"{verb} il": f"{verb}-il" for verb in ("est", "veut", "peut", "doit")},
    **{f"{verb} elle": f"{verb}-elle" for verb in ("est", "veut", "peut", "doit")},
    **{f"{verb} tu": f"{verb}-tu" for verb in ("as", "vas", "es", "veux", "peux")},
    **{f"{verb} ils": f"{verb}-ils" for verb in ("ont", "vont", "sont")},
}
VOWELS = "aeiouyhàâéèêîôœ"
ELIDED = {"LE", "LA", "je", "me", "te", "se", "ne", "de", "que", "le", "la"}
CONTRACTED = {
    ("de", "LE"): "du",
    ("de", "LES"): "des",
    ("à", "LE"): "au",
    ("à", "LES"): "aux",
}


def key(n):
    if n.person < 3:
        return "we" if n.plural else ("i", "you")[n.person - 1]
    return "they" if n.plural else ("she" if feminine(n) else "he")


def feminine(n):
    n = n.ref
    if n.human or n.noun is None:
        return n.gender == "f"
    return n.noun.gender == "f"


def slot(n):
    """Which of four forms agrees: m.sg f.sg m.pl f.pl. i and you don't tell."""
    if n.person < 3 and not n.plural:
        return None
    return 2 * n.plural + feminine(n)


def agree(forms, n):
    """The form for n; where the speaker's gender would show, another draft."""
    forms = forms if isinstance(forms, list) else forms.split()
    k = slot(n)
    if k is None:
        if len(set(forms[:2])) == 2:
            raise Reject
        k = 0
    return forms[k]


def participle_forms(text):
    plural = text if text.endswith("s") else text + "s"
    return [text, text + "e", plural, text + "es"]


# Noun phrases


def noun_text(n):
    row = n.noun
    if n.plural:
        if row.gender == "mf" and feminine(n):
            return row.fr.split("/")[1] + "s"
        return row.fr_plural
    if row.gender != "mf":
        return row.fr
    return row.fr.split("/")[feminine(n)]


def adjective(a, n, before_vowel):
    text = agree(a.fr, n)
    one = not n.plural and not feminine(n)
    return a.fr_vowel if a.fr_vowel and one and before_vowel else text


def vowel(text):
    return text[0] in VOWELS


def core(n):
    """Adjectives and noun."""
    me, noun = str(n.id), noun_text(n)
    found = noun_words(noun, me)
    for k, a in reversed(list(enumerate(n.adjs))):
        mark = f"{me}.a{k}"
        if a.before == "yes":
            text = adjective(a, n, vowel(found[0].text))
            found = words(text, mark) + found
    for k, a in enumerate(n.adjs):
        if a.before == "no":
            found += words(agree(a.fr, n), f"{me}.a{k}")
    return found


def noun_phrase(n, of=False, neg=False) -> list[Word]:
    """of: after de, where a partitive falls away; neg: after pas."""
    me = str(n.id)
    if n.pronoun or n.person < 3:
        return words(SUBJECT.get(key(n), "elles" if feminine(n) else "ils"), me)
    if n.name and n.noun is None:
        return words(n.name.key, me)
    body = core(n)
    if n.name and n.owner:
        return possessive(n, body) + body + words(n.name.key, f"{me}.name")
    if n.name:
        the = words("LA" if feminine(n) else "LE", f"{me}.d", f"{me}?")
        return words(n.name.key, f"{me}.name") + the + body
    found = determiner(n, body, of, neg) + body
    if n.det == "own":
        found += words("de", f"{me}.of") + noun_phrase(n.owner, of=True)
    return found + (relative(n) if n.rel else [])


def definite(n):
    if n.plural:
        return "LES"
    return "LA" if feminine(n) else "LE"


def possessive(n, body):
    fem = feminine(n) and not vowel(body[0].text)
    text = OWN[owner_key(n.owner)].split()[2 if n.plural else int(fem)]
    return words(text, str(n.owner.id))


def owner_key(n):
    return key(n) if n.person < 3 or n.human or n.plural else "it"


def determiner(n, body, of, neg):
    me = str(n.id)
    d = (f"{me}.d", f"{me}?")
    number = words(n.number.fr, f"{me}.n") if n.number else []
    if n.measure:
        return measured(n, number)
    if n.det == "poss":
        return possessive(n, body) + number
    if n.det == "own":
        return words(definite(n), f"{me}.d2", f"{me}?") + number
    if number:
        return number
    if n.det == "all":
        return words("toutes" if feminine(n) else "tous", f"{me}.all") + words(
            "LES", *d
        )
    if n.det == "this":
        text = "ces" if n.plural else "cette" if feminine(n) else "ce"
        return words("cet" if text == "ce" and vowel(body[0].text) else text, d[0])
    if n.det == "the" or (n.det == "bare" and n.generic):
        return words(definite(n), *d)
    if n.det == "many":
        return words("beaucoup", d[0]) + words("de", f"{d[0]}?")
    if n.det == "none":
        return []
    if of and n.det in ("bare", "some") and not n.generic:
        return []
    if neg:
        return [] if of else words("de", *d)
    if n.det == "a":
        return words("une" if feminine(n) else "un", *d)
    if n.plural:
        return words("de" if n.adjs and n.adjs[0].before == "yes" else "des", *d)
    return words("de", f"{me}.d", f"{me}?") + words(definite(n), f"{me}.d?", f"{me}?")


def measured(n, number):
    m, me = n.measure, str(n.id)
    text = m.fr_plural if n.number else m.fr
    one = words("une" if m.gender == "f" else "un", f"{me}.d", f"{me}.m?")
    return (number or one) + words(text, f"{me}.m") + words("de", f"{me}.of")


def relative(n):
    rel, c = n.rel, n.rel.clause
    kind, marks = rel.kind, (str(rel.id), f"{c.id}.v?")
    inverse = c.frame.has("inverse")
    if inverse and kind == "subj":
        raise Reject
    if kind == "whose":
        return words("dont", *marks) + clause(c, skip="owner")
    if kind == "where":
        return words("où", *marks) + clause(c, flip=True)
    if kind == "of" or (kind == "obj" and c.frame.fr_obj == "de"):
        return words("dont", *marks) + clause(c, skip="obj")
    if kind == "obj" and c.frame.fr_obj == "à":
        raise Reject
    if kind == "obj" and inverse:
        return words("qui", *marks) + clause(c, skip="subj")
    if kind == "obj":
        return words("que", *marks) + clause(c, skip="obj", flip=True, before=n)
    return words("qui", *marks) + clause(c, skip="subj")


# Verbs


def present(lemma):
    row = VERBS.get(lemma)
    if row and row.present:
        return row.present.split()
    if not lemma.endswith("er"):
        raise ValueError(f"verbs_fr.tsv lacks {lemma!r}, which doesn't end in -er")
    stem = lemma[:-2]
    us = stem + ("eons" if stem.endswith("g") else "ons")
    return [stem + "e", stem + "es", stem + "e", us, stem + "ent"]


def participle(lemma):
    row = VERBS.get(lemma)
    return row.participle if row and row.participle else lemma[:-2] + "é"


def auxiliary(lemma):
    return VERBS[lemma].aux if lemma in VERBS else "avoir"


def person(n):
    if n.there:
        return 2
    return {"i": 0, "you": 1, "we": 3, "they": 4}.get(key(n), 2)


def finite(lemma, n, tense):
    if tense != "imperfect":
        return present(lemma)[person(n)]
    stem = "ét" if lemma == "être" else present(lemma)[3].removesuffix("ons")
    ending = ["ais", "ais", "ait", "ions", "aient"][person(n)]
    return (stem.removesuffix("e") if ending == "ions" else stem) + ending


class Said:
    """The parts of a French clause, before they are put in order."""

    def __init__(self, c, skip, before):
        frame = c.frame
        self.c, self.skip = c, skip
        self.subj, self.obj, self.to = c.subj, c.obj, c.to
        self.inverse = frame.has("inverse")
        if self.inverse:
            self.subj, self.obj, self.to = c.obj, None, c.subj
            if frame.has("direct"):
                self.obj, self.to = c.subj, None
        if c.passive:
            self.subj, self.obj = c.obj, None
        self.before = before  # a direct object before the verb: the participle agrees
        parts = frame.fr.replace("s'", "se ").split()
        self.reflexive = parts[0] == "se"
        self.y = parts[0] == "y"
        parts = parts[self.reflexive + self.y :]
        self.phrase = any(p.endswith("!") for p in parts)
        self.lemma, self.fixed = parts[0].rstrip("^"), parts[1:]
        if hasattr(c.comp, "flags") and "avoir" in c.comp.flags:
            self.lemma = "avoir"
        self.v = f"{c.id}.v?" if self.phrase else f"{c.id}.v"
        self.weak = f"{c.id}.v?"
        self.clitics = self.find_clitics()

    def tense(self):
        t = self.c.tense
        if t == "past" and self.c.frame.has("state"):
            return "imperfect"
        return t

    def find_clitics(self):
        found, c = [], self.c
        if self.reflexive:
            k = key(self.subj)
            text = DIRECT[k] if self.subj.person < 3 else "se"
            found.append(Word(text, (self.weak,)))
        if self.is_clitic(self.obj, "obj"):
            self.add_object(found, self.obj)
        if self.is_clitic(self.to, "to"):
            found.append(Word(INDIRECT[key(self.to)], (str(self.to.id),)))
        if c.place and c.place.prep.key == "there":
            found += aligned(c.place.prep.fr, c.place.id)
        if self.y:
            found.append(Word("y", (self.weak,)))
        found.sort(key=lambda w: ORDER.index(w.text))
        return found

    def is_clitic(self, n, role):
        return n is not None and (n.pronoun or n.person < 3) and self.skip != role

    def add_object(self, found, n):
        mark, prep = str(n.id), self.c.frame.fr_obj
        if n.number:
            found.append(Word("en", (mark,)))
        elif prep == "à":
            found.append(Word(INDIRECT[key(n)], (mark,)))
        elif prep == "de" and not n.human:
            found.append(Word("en", (mark,)))
        elif prep != "de":
            found.append(Word(DIRECT[key(n)], (mark,)))
            self.before = n

    # the verb

    def agreed(self, lemma):
        """The participle in a compound tense with avoir or être."""
        forms = participle_forms(participle(lemma))
        if self.reflexive or auxiliary(lemma) == "être":
            return agree(forms, self.subj)
        if self.before is not None:
            return agree(forms, self.before)
        return forms[0]

    def verb(self):
        """(finite word, the words after it up to the main verb, its clitics' place)"""
        c, t, v, weak = self.c, self.tense(), self.v, self.weak
        lemma, subj = self.lemma, self.subj
        if c.command:
            return imperative(lemma, v), [], 0
        if c.modal:
            mood = "imperfect" if t in ("past", "imperfect") else "present"
            text = finite(c.modal.fr, subj, mood)
            return Word(text, (f"{c.id}.m.1",)), words(lemma, v), 1
        if c.passive:
            return self.passive(t)
        if t == "future":
            text = finite("aller", subj, "present")
            return Word(text, (f"{c.id}.will",)), words(lemma, v), 1
        if t == "recent":
            text = finite("venir", subj, "present")
            rest = words("de", f"{c.id}.just") + words(lemma, v)
            return Word(text, (f"{c.id}.just",)), rest, 2
        if t in ("past", "perfect"):
            helper = "être" if self.reflexive else auxiliary(lemma)
            text = finite(helper, subj, "present")
            return Word(text, (f"{c.id}.perf", weak)), words(self.agreed(lemma), v), 0
        return Word(finite(lemma, subj, t), (v,)), [], 0

    def passive(self, t):
        c = self.c
        done = words(agree(participle_forms(participle(self.lemma)), self.subj), self.v)
        be = f"{c.id}.pass"
        if t == "future":
            text = finite("aller", self.subj, "present")
            return Word(text, (f"{c.id}.will",)), words("être", be) + done, 0
        if t in ("past", "perfect"):
            text = finite("avoir", self.subj, "present")
            return Word(text, (f"{c.id}.perf", f"{be}?")), words("été", be) + done, 0
        return Word(finite("être", self.subj, t), (be,)), done, 0

    # what follows

    def tail(self):
        c, found = self.c, []
        for text in self.fixed:
            mark = self.c.id
            main = text.endswith("!")
            if text == "assis!":
                text = agree("assis assise assis assises", self.subj)
            if text.endswith("^"):  # jouer du violon: a noun of its own
                found[-1].marks = (f"{mark}.the", f"{mark}.o?")
                found += words(text[:-1], f"{mark}.o")
            else:
                found += words(text.rstrip("!"), f"{mark}.v" if main else f"{mark}.v?")
        manner = aligned(c.manner.row.fr, c.manner.id) if c.manner else []
        if len(manner) == 1:
            found, manner = found + manner, []
        obj, to = self.object_words(), self.to_words()
        found += to + obj if self.obj and self.obj.rel else obj + to
        if c.passive:
            found += words("par", f"{c.id}.by") + noun_phrase(c.subj)
        if c.frame.key == "exist":
            found += noun_phrase(c.subj, neg=bool(c.neg) and c.subj.det == "a")
        found += complement(c, self.subj)
        if self.skip not in ("where", "place") and (c.frame.key != "exist" or c.asks):
            found += where(c)
        found += manner
        if c.time and not c.front and not self.time_first():
            found += aligned(c.time.row.fr, c.time.id)
        if c.purpose:
            found += words("pour", f"{c.purpose.id}.to2") + infinitive(c.purpose)
        return found

    def time_first(self):
        """A time after a long tail would hang in the air: French says it first."""
        c = self.c
        long = [
            np for np in (c.obj, c.to, c.place and c.place.np) if np and not np.pronoun
        ]
        heavy = len(long) >= 2 or any(np.rel or len(np.adjs) > 1 for np in long)
        return c.main and heavy and not (c.asks or c.inner or self.skip)

    def object_words(self):
        n, c = self.obj, self.c
        if n is None or self.skip == "obj":
            return []
        prep = c.frame.fr_obj
        if self.is_clitic(n, "obj"):
            if n.number:
                return words(n.number.fr, f"{n.id}.n")
            if prep == "de" and n.human:
                marks = (f"{c.id}.p", self.weak)
                return words("de", *marks) + words(stressed(n), str(n.id))
            return []
        neg = bool(c.neg) and n.det in ("a", "bare", "some") and not n.generic
        neg = neg and self.lemma != "être" and not n.measure and prep != "à"
        only = c.adverb and c.adverb.row.key == "only"
        que = words("que", f"{c.adverb.id}.1") if only else []
        found = que + noun_phrase(n, of=prep == "de", neg=neg)
        if prep:
            found = words(prep, f"{c.id}.p", self.weak) + found
        return found

    def to_words(self):
        n, c = self.to, self.c
        if n is None or self.skip == "to" or self.is_clitic(n, "to"):
            return []
        if self.inverse:
            return words("à", f"{n.id}?", self.weak) + noun_phrase(n)
        prep = "pour" if c.frame.has("for") else "à"
        return words(prep, f"{c.id}.to", f"{head(n)}?") + noun_phrase(n)


def stressed(n):
    return STRESSED.get(key(n), "elles" if feminine(n) else "eux")


def imperative(lemma, v):
    text = present(lemma)[1]
    if lemma.endswith(("er", "vrir", "llir")):
        text = text.removesuffix("s")
    return Word(text, (v,))


def complement(c, subj):
    me = f"{c.id}.comp"
    if isinstance(c.comp, (Clause, Joined)):
        return words("que", f"{c.id}.that") + render(c.comp)
    if c.comp is None:
        return []
    if hasattr(c.comp, "plural"):
        forms = c.comp.fr.split("/")
        return words(forms[feminine(subj)], me)
    avoir = "avoir" in c.comp.flags
    body = words(c.comp.fr if avoir else agree(c.comp.fr, subj), me)
    if c.degree == "very":
        return words("très", f"{c.id}.deg") + body
    if c.degree:
        how = words("plus" if c.degree == "more" else "aussi", f"{c.id}.deg")
        return how + body + words("que", f"{c.id}.than") + stressed_phrase(c.than)
    return body


def stressed_phrase(n):
    if n.pronoun or n.person < 3:
        return words(stressed(n), str(n.id))
    return noun_phrase(n)


def where(c):
    if c.place is None or c.place.prep.key == "there":
        return []
    p = c.place
    if p.np is None:
        return aligned(p.prep.fr, p.id)
    if c.frame.has("goal"):
        inside = p.np.noun.key in ("forest", "garden", "kitchen")
        return words("dans" if inside else "à", f"{p.id}.1", f"{c.id}.p") + noun_phrase(
            p.np
        )
    if c.frame.has("from"):
        return words("de", f"{p.id}.1", f"{c.id}.p") + noun_phrase(p.np, of=True)
    found = aligned(p.prep.fr, p.id)
    if c.frame.has("goal2"):
        found[0].marks += (f"{c.id}.v?",)
    return found + noun_phrase(p.np)


def infinitive(c):
    s = Said(c, "", None)
    return s.clitics + words(s.lemma, s.v) + s.tail()


# Clauses


def subject(s, skip):
    c = s.c
    if c.shared and c.subj.person < 3 and not c.subj.plural:
        return words(SUBJECT[key(c.subj)], f"{c.subj.id}?")
    if skip == "subj" or c.shared or c.command:
        return []
    if c.frame.key == "exist":
        return words("il", f"{c.id}.v?")
    if skip == "owner":
        body = core(s.subj)
        return words(definite(s.subj), f"{s.subj.id}?") + body
    return noun_phrase(s.subj)


def negation(c):
    """(ne, pas): an adverb of ours that needs ne counts as well."""
    if c.neg:
        text = {"not": "pas", "never": "jamais"}[c.neg]
        return words("ne", f"{c.id}.neg?"), words(text, f"{c.id}.neg")
    if c.adverb and c.adverb.row.key == "only":
        return words("ne", f"{c.adverb.id}.1?"), []
    return [], []


def middle(c, s):
    if c.adverb is None or c.adverb.row.key == "only":
        return []
    found = aligned(c.adverb.row.fr, c.adverb.id)
    if found[0].text == "tous" and feminine(s.subj):
        found[0].text = "toutes"
    return found


def clause(c, skip="", flip=False, before=None) -> list[Word]:
    if c.asks == "number":
        before = c.obj
    s = Said(
        c, {"obj": "obj", "number": "obj", "place": "place"}.get(c.asks, skip), before
    )
    first, rest, at = s.verb()
    if s.phrase:  # is afraid, a peur
        for word in (first, *rest):
            word.marks += (f"{c.id}.be",) if s.v in word.marks else ()
    if c.frame.fr == "rentrer^":  # go and home in one word
        for word in (first, *rest):
            word.marks += (f"{c.id}.o",) if s.v in word.marks else ()
    ne, pas = negation(c)
    early, late = (rest[: at - 1], rest[at - 1 :]) if at else (rest, [])
    inner = s.clitics if at else []
    outer = [] if at else s.clitics
    if c.shared and c.tense == "future" and not c.modal:
        verb = inner + rest  # … va manger une pomme et boire du lait
        return verb + middle(c, s) + s.tail()
    head = ne + outer
    after = pas + middle(c, s) + early + inner + late
    tail = s.tail()
    who = subject(s, s.skip if c.asks else skip)
    first_time = c.time and (c.front or s.time_first())
    time = aligned(c.time.row.fr, c.time.id) if first_time else []
    if c.frame.key == "exist" and not c.asks:
        time = time + where(c)
    comma = words(",", f"{c.id}.comma") if time else []
    if c.asks:
        return question(s, who, head, first, after, tail)
    please = (
        [Word(",")] + words("s' il te plaît", f"{c.id}.please~")
        if c.command and not c.neg
        else []
    )
    noun = who and not (s.subj.pronoun or s.subj.person < 3)
    present_only = c.tense == "present"
    if flip and noun and present_only and not tail and not c.neg and not c.modal:
        return head + [first] + after + who
    return time + comma + who + head + [first] + after + tail + please


def question(s, who, head, first, after, tail):
    c = s.c
    if c.asks == "subj":
        return words("qui", str(c.subj.id)) + head + [first] + after + tail
    asked, esk = asked_words(c), [Word("est-ce", (f"{c.id}.q~", "q2~"))]
    esk += words("que", f"{c.id}.q~", "q2~")
    light = s.subj.pronoun or s.subj.person < 3
    word = SUBJECT.get(key(s.subj), "elles" if feminine(s.subj) else "ils")
    inverted = INVERTED.get(f"{first.text} {word}")
    if c.asks == "yes":
        if light and s.subj.person == 2 and inverted:
            return head + [merged(inverted, first, who)] + after + tail
        return esk + who + head + [first] + after + tail
    if light and inverted:
        return asked + head + [merged(inverted, first, who)] + after + tail
    quick = c.asks in ("place", "obj", "time") and asked[0].text != "qui"
    if not light and not tail and quick and not c.neg:
        return asked + head + [first] + after + who  # que lit anna ?
    if not light and inverted and asked[0].text != "que":
        extra = Word(inverted, (*first.marks, f"{who[-1].marks[0].split('.')[0]}?"))
        return asked + who + head + [extra] + after + tail
    return asked + esk + who + head + [first] + after + tail


def merged(text, first, who):
    return Word(text, (*first.marks, *who[0].marks))


def asked_words(c):
    if c.asks == "number":
        n = c.obj
        many = words("combien", f"{n.id}.d") + words("de", f"{n.id}.d?")
        return many + noun_words(noun_text(n), n.id)
    human = c.asks == "obj" and c.obj.human
    text = {"place": "où", "time": "quand", "why": "pourquoi", "obj": "que", "yes": ""}
    return words("qui" if human else text[c.asks], f"{c.id}.wh")


# Sentences


def render(node) -> list[Word]:
    if isinstance(node, Clause):
        return clause(node)
    if isinstance(node, Weather):
        return aligned(node.row.fr, node.id)
    mark = node.id
    joint = aligned(node.how.fr, mark)
    one, two = node.first, node.second
    if node.how.key == "if" and node.swapped and one_subject(one, two):
        one, two = replace(one, subj=two.subj), replace(two, subj=one.subj)
    first, second = render(one), render(two)
    if "sub" in node.how.kinds and (not node.swapped or node.how.key == "if"):
        return joint + first + words(",", f"{mark}.comma") + second
    if "sub" in node.how.kinds or "last" in node.how.kinds:
        return second + joint + first
    return first + joint + second


def contract(found):
    """de + le: du; but de l' ami."""
    out, k = [], 0
    while k < len(found):
        word, pair = found[k], found[k : k + 2]
        text = CONTRACTED.get(tuple(w.text for w in pair))
        if text and pair[1].text == "LE" and vowel(found[k + 2].text.lower()):
            text = None
        if text:
            first = pair[0].marks
            if all(mark.endswith("?") for mark in first):
                first = tuple(mark[:-1] + "~" for mark in first)
            word = Word(text, tuple(dict.fromkeys(first + pair[1].marks)))
        out.append(word)
        k += 2 if text else 1
    return out


def elide(found):
    for word, after in zip(found, found[1:], strict=False):
        text = word.text
        if text in ELIDED and vowel(after.text.lower()):
            word.text = text[:-1] + "'"
        elif text == "si" and after.text in ("il", "ils"):
            word.text = "s'"
    return [Word(w.text.lower(), w.marks) for w in found]


def sentence(node, end) -> list[Word]:
    mark = Word(end, ("end", "q2~") if end == "?" else ("end",))
    return elide(contract(render(node))) + [mark]
