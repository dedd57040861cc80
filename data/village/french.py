"""French: agreement, clitics, the passé composé, inversion, elision, contraction."""

from dataclasses import replace

from core import Clause, Reject, Weather, Word, aligned, end_mark, in_order, table, told

VERBS = table("verbs_fr")
CLITICS = ["me", "te", "se", "nous", "le", "la", "les", "lui", "leur", "y", "en"]
PERSONS = ("je", "tu", "il", "nous", "ils")  # the order of the table
# est-il, as-tu; other verbs, and those of je, nous and elles, have est-ce que
INVERTED = "a va est veut peut doit as vas es veux peux ont vont sont".split()
VOWELS = "aeiouyhàâéèêîôœ"
# LE, LA, LES are articles: they contract, and the pronouns le, la, les don't.
ELIDED = {"LE", "LA", "je", "me", "te", "se", "ne", "de", "que", "le", "la"}
CONTRACTED = {"de LE": "du", "de LES": "des", "à LE": "au", "à LES": "aux"}
SKIPPED = {"obj": "obj", "number": "obj", "place": "place"}  # stands first instead
WHAT_IS_ASKED = {"place": "où", "time": "quand", "why": "pourquoi", "obj": "que"}


def feminine(n):
    return n.ref.gender == "f"


def agree(forms, n):
    """The form for n, of m.sg f.sg m.pl f.pl.

    je and tu don't tell: where the speaker's gender would show, another draft.
    """
    forms = forms.split()
    if n.person == 3 or n.plural:
        return forms[2 * n.plural + feminine(n)]
    if forms[0] != forms[1]:
        raise Reject
    return forms[0]


def vowel(text):
    return text[0].lower() in VOWELS


def noun_phrase(n, of=False, neg=False) -> list[Word]:
    """of: after de, where a partitive falls away; neg: after pas."""
    if n.light:
        return n.say(n.pronouns.fr)
    if n.noun is None:
        return n.say(n.name.key)
    body = noun(n)
    if n.name and n.owner:  # mon amie anna
        return possessive(n, body) + body + n.say(n.name.key, "name")
    if n.name:  # anna la boulangère
        return n.say(n.name.key, "name") + n.say(definite(n), "d", "?") + body
    found = determiner(n, body, of, neg) + body
    if n.det == "own":
        found += n.say("de", "of") + noun_phrase(n.owner, of=True)
    return found + (relative(n) if n.rel else [])


def noun_text(n):
    if n.plural:
        return n.noun.fr_plural
    if n.noun.gender == "mf":
        return n.noun.fr.split("/")[feminine(n)]
    return n.noun.fr


def noun(n):
    """The noun with its adjectives."""
    found, after = n.noun_words(noun_text(n)), []
    for k, a in reversed(list(enumerate(n.adjs))):
        text = agree(a.fr, n)
        if a.before == "no":
            after = n.say(text, f"a{k}") + after
            continue
        one = not n.plural and not feminine(n)
        if a.fr_vowel and one and vowel(found[0].text):
            text = a.fr_vowel  # un vieil homme
        found = n.say(text, f"a{k}") + found
    return found + after


def definite(n):
    return "LES" if n.plural else "LA" if feminine(n) else "LE"


def possessive(n, body):
    fem = feminine(n) and not vowel(body[0].text)  # ma sœur, mon amie
    return n.owner.say(n.owner.pronouns.fr_owner.split()[2 if n.plural else fem])


def determiner(n, body, of, neg):
    fem, number = feminine(n), n.say(n.number.fr, "n") if n.number else []
    if n.measure:
        return measured(n, number)
    if n.det == "poss":
        return possessive(n, body)
    if n.det == "own":
        return n.say(definite(n), "d2", "?")
    if number:
        return number
    if n.det == "all":
        return n.say("toutes" if fem else "tous", "all") + n.say("LES", "d", "?")
    if n.det == "this":
        one = "cette" if fem else "cet" if vowel(body[0].text) else "ce"
        return n.say("ces" if n.plural else one, "d")
    if n.det == "the" or n.generic:
        return n.say(definite(n), "d", "?")
    if n.det == "many":
        return n.say("beaucoup", "d") + n.say("de", "d?")
    if of and (neg or n.det in ("bare", "some")):
        return []
    if neg:
        return n.say("de", "d", "?")
    if n.det == "a":
        return n.say("une" if fem else "un", "d", "?")
    if n.plural:
        before = n.adjs and n.adjs[0].before == "yes"  # de vieux livres
        return n.say("de" if before else "des", "d", "?")
    return n.say("de", "d", "?") + n.say(definite(n), "d?", "?")


def measured(n, number):
    """deux tasses de thé"""
    m = n.measure
    vessel = n.say(m.fr_plural if number else m.fr, "m")
    one = n.say("une" if m.gender == "f" else "un", "d", "m?")
    return (number or one) + vessel + n.say("de", "of")


def relative(n):
    rel, c = n.rel, n.rel.clause
    if rel.kind == "whose":
        return rel_word(rel, "dont") + clause(c, skip="owner")
    if rel.kind == "where":
        return rel_word(rel, "où") + clause(c, flip=True)
    if rel.kind == "of":  # le livre dont elle parle
        return rel_word(rel, "dont") + clause(c, skip="obj")
    if rel.kind == "obj" and not c.frame.has("inverse"):
        return rel_word(rel, "que") + clause(c, skip="obj", flip=True, before=n)
    return rel_word(rel, "qui") + clause(c, skip="subj")


def rel_word(rel, text):
    return [Word(text, (rel.mark(), rel.clause.mark("v?")))]


def finite(lemma, n, tense="present"):
    person = PERSONS.index("il" if n.there else n.pronouns.fr.replace("elle", "il"))
    verb = VERBS[lemma]
    return (verb.imperfect if tense == "imperfect" else verb.present).split()[person]


class Said:
    """The parts of a French clause, before they are put in order."""

    def __init__(self, c, skip="", before=None):
        self.c, self.skip = c, SKIPPED.get(c.asks, skip)
        # a direct object before the verb: the participle agrees
        self.before = c.obj if c.asks == "number" else before
        self.subj, self.obj, self.to = c.subj, c.obj, c.to
        self.inverse = c.frame.has("inverse")  # anna likes the song: la chanson plaît
        if self.inverse and c.frame.has("direct"):
            self.subj, self.obj = c.obj, c.subj
        elif self.inverse:
            self.subj, self.obj, self.to = c.obj, None, c.subj
        elif c.passive:
            self.subj, self.obj = c.obj, None
        parts = c.frame.fr.split()
        self.reflexive, self.y = parts[0] == "se", parts[0] == "y"
        head, *fixed = parts[self.reflexive + self.y :]
        self.head = aligned(head, c.id, "v")[0]
        if "avoir" in getattr(c.comp, "flags", ""):  # avoir faim
            self.head.text = "avoir"
        self.fixed = aligned(" ".join(fixed), c.id, "v?")  # visite, au football
        for word in self.fixed:
            if word.text == "assis":
                word.text = agree("assis assise assis assises", self.subj)
        self.clitics = self.find_clitics()

    def find_clitics(self):
        c, n, found = self.c, self.obj, []
        if self.reflexive:
            text = self.subj.pronouns.fr_direct if self.subj.person < 3 else "se"
            found += c.say(text, "v?")
        if n and n.light and n.number:  # j'en ai mangé trois
            found += n.say("en")
        elif n and n.light and c.frame.fr_obj != "de":  # but: parle de lui
            self.before = n
            found += n.say(n.pronouns.fr_direct)
        if self.to and self.to.light:
            found += self.to.say(self.to.pronouns.fr_indirect)
        if c.place and c.place.prep.key == "there":
            found += aligned(c.place.prep.fr, c.place.id)
        if self.y:
            found += c.say("y", "v?")
        return sorted(found, key=lambda word: CLITICS.index(word.text))

    def verb(self):
        """(finite word, the words after it, do they end in an infinitive?)

        Clitics stand before the infinitive, and before the finite word without one.
        """
        c, subj, head = self.c, self.subj, self.head
        forms, infinitive = VERBS[head.text], [head]
        if c.command:
            return Word(forms.imperative, head.marks), [], False
        if c.modal:
            tense = "imperfect" if c.tense in ("past", "imperfect") else "present"
            return c.say(finite(c.modal.fr, subj, tense), "m.1")[0], infinitive, True
        if c.tense == "future":
            return c.say(finite("aller", subj), "will")[0], infinitive, True
        if c.tense == "recent":
            venir = c.say(finite("venir", subj), "just")[0]
            return venir, c.say("de", "just") + infinitive, True
        if c.passive:  # a été mangé; in the past only
            done = [Word(agree(forms.participle, subj), head.marks)]
            helper = c.say(finite("avoir", subj), "perf", "pass?")[0]
            return helper, c.say("été", "pass") + done, False
        if c.tense in ("past", "perfect"):
            n = subj if forms.aux == "être" else self.before
            done = agree(forms.participle, n) if n else forms.participle.split()[0]
            helper = c.say(finite(forms.aux, subj), "perf", "v?")[0]
            return helper, [Word(done, head.marks)], False
        return Word(finite(head.text, subj, c.tense), head.marks), [], False

    def tail(self):
        c, found = self.c, self.fixed
        manner = told(c.manner, "fr")
        if len(manner) == 1:  # lit lentement le livre
            found, manner = found + manner, []
        if self.obj and self.obj.rel:
            found += self.to_words() + self.object_words()
        else:
            found += self.object_words() + self.to_words()
        if c.passive:
            found += c.say("par", "by") + noun_phrase(c.subj)
        if c.frame.key == "exist":
            found += noun_phrase(c.subj)
        found += complement(c, self.subj)
        if self.skip != "place" and c.frame.key != "exist":
            found += where(c)
        found += manner
        if not (c.front or self.time_first()):
            found += told(c.time, "fr")
        if c.purpose:
            then = Said(c.purpose)
            found += c.purpose.say("pour", "to2") + then.clitics
            found += [then.head, *then.tail()]
        return found

    def time_first(self):
        """A time after a long tail would hang in the air: French says it first."""
        c = self.c
        phrases = (c.obj, c.to, c.place and c.place.np)
        long = [n for n in phrases if n and not n.pronoun]
        heavy = len(long) >= 2 or any(n.rel or len(n.adjs) > 1 for n in long)
        return c.main and heavy and not (c.asks or c.inner or self.skip)

    def object_words(self):
        n, c = self.obj, self.c
        if n is None or self.skip == "obj":
            return []
        prep = c.frame.fr_obj
        if n.light and n.number:
            return n.say(n.number.fr, "n")
        if n.light and prep == "de":
            return c.say("de", "p", "v?") + n.say(n.pronouns.fr_stressed)
        if n.light:
            return []
        neg = c.neg and n.det in ("a", "bare", "some") and not n.generic
        only = c.adverb and c.adverb.row.key == "only"
        que = c.adverb.say("que", "1") if only else []
        return c.say(prep, "p", "v?") + que + noun_phrase(n, of=prep == "de", neg=neg)

    def to_words(self):
        n, c = self.to, self.c
        if n is None or n.light:
            return []
        if self.inverse:
            return [Word("à", (n.mark("?"), c.mark("v?"))), *noun_phrase(n)]
        prep = "pour" if c.frame.has("for") else "à"
        return [Word(prep, (c.mark("to"), n.head())), *noun_phrase(n)]


def complement(c, subj):
    if c.comp is None:
        return []
    if c.reports:
        return c.say("que", "that") + render(c.comp)
    if c.trade:
        return c.say(c.comp.fr.split("/")[feminine(subj)], "comp")
    noun = "avoir" in c.comp.flags
    quality = c.say(c.comp.fr if noun else agree(c.comp.fr, subj), "comp")
    if c.degree == "very":
        return c.say("très", "deg") + quality
    if not c.degree:
        return quality
    n = c.than
    than = n.say(n.pronouns.fr_stressed) if n.light else noun_phrase(n)
    how = c.say("plus" if c.degree == "more" else "aussi", "deg")
    return how + quality + c.say("que", "than") + than


def where(c):
    p = c.place
    if p is None or p.prep.key == "there":
        return []
    if p.np is None:
        return aligned(p.prep.fr, p.id)
    prep = "à" if c.frame.has("goal") else "de" if c.frame.has("from") else ""
    if prep:  # the verb asks for it
        return [Word(prep, (p.mark("1"), c.mark("p"))), *noun_phrase(p.np)]
    found = aligned(p.prep.fr, p.id)
    if c.frame.has("goal2"):
        found[0].marks += (c.mark("v?"),)
    return found + noun_phrase(p.np)


def clause(c, skip="", flip=False, before=None) -> list[Word]:
    """flip: the subject may stand last; before: what que stands for."""
    s = Said(c, skip, before)
    first, rest, infinitive = s.verb()
    tail, who = s.tail(), subject(s)
    if c.shared and c.tense == "future":  # … va manger une pomme et la vendre
        return s.clitics + rest + tail
    ne, pas = negation(c)
    pas += middle(s)
    if infinitive:
        before_verb, after = ne, pas + rest[:-1] + s.clitics + rest[-1:]
    else:
        before_verb, after = ne + s.clitics, pas + rest
    if c.asks:
        return question(s, who, before_verb, first, after, tail)
    if flip and not s.subj.light and c.tense == "present" and not tail:
        return before_verb + [first] + after + who  # le livre que lit anna
    ahead = told(c.time, "fr") if c.front or s.time_first() else []
    if c.frame.key == "exist":
        ahead += where(c)
    if ahead:
        ahead += c.say(",", "comma")
    if c.command and not c.neg:
        tail += [Word(","), *c.say("s' il te plaît", "please~")]
    return ahead + who + before_verb + [first] + after + tail


def subject(s):
    c, n = s.c, s.subj
    if c.shared and n.person < 3 and not n.plural:  # je lis et je bois
        return n.say(n.pronouns.fr, "?")
    if s.skip == "subj" or c.shared or c.command:
        return []
    if c.frame.key == "exist":
        return c.say("il", "v?")
    if s.skip == "owner":
        return n.say(definite(n), "?") + noun(n)
    return noun_phrase(n)


def negation(c):
    """(ne, pas): ne … que as well."""
    if c.neg:
        return c.say("ne", "neg?"), c.say({"not": "pas"}.get(c.neg, "jamais"), "neg")
    if c.adverb and c.adverb.row.key == "only":
        return c.adverb.say("ne", "1?"), []
    return [], []


def middle(s):
    """An adverb after the finite verb."""
    adverb = s.c.adverb
    if adverb is None or adverb.row.key == "only":
        return []
    found = told(adverb, "fr")
    if found[0].text == "tous" and feminine(s.subj):
        found[0].text = "toutes"
    return found


def question(s, who, before_verb, first, after, tail):
    c, light = s.c, s.subj.light
    plain = before_verb + [first] + after
    if c.asks == "subj":
        return s.c.subj.say("qui") + plain + tail
    asked, turned = asked_words(c), inverted(first.text, s.subj.pronouns.fr)
    if light and turned and (c.asks != "yes" or s.subj.person == 2):
        verb = Word(turned, first.marks + who[0].marks)  # as-tu
        return asked + before_verb + [verb] + after + tail
    wh = asked[0].text if asked else ""
    if not light and not tail and wh in ("où", "que", "quand") and not c.neg:
        return asked + plain + who  # que lit anna ?
    if turned and wh not in ("", "que"):  # où anna va-t-elle ?
        verb = Word(turned, (*first.marks, who[-1].marks[0].split(".")[0] + "?"))
        return asked + who + before_verb + [verb] + after + tail
    est_ce_que = [Word(w, (c.mark("q~"), "q2~")) for w in ("est-ce", "que")]
    return asked + est_ce_que + who + plain + tail


def inverted(verb, who):
    """est-il, a-t-elle; None for the verbs that have est-ce que."""
    if verb in INVERTED and who in ("tu", "il", "elle", "ils"):
        return f"{verb}-t-{who}" if verb.endswith("a") else f"{verb}-{who}"


def asked_words(c):
    """What the question asks for, which stands first."""
    if c.asks == "number":
        n = c.obj
        return n.say("combien", "d") + n.say("de", "d?") + n.noun_words(noun_text(n))
    human = c.asks == "obj" and c.obj.human
    return c.say("qui" if human else WHAT_IS_ASKED.get(c.asks, ""), "wh")


def render(node) -> list[Word]:
    if isinstance(node, Clause):
        return clause(node)
    if isinstance(node, Weather):
        return told(node, "fr")
    one, two, swapped = node.first, node.second, node.swapped
    if node.how.key == "if" and swapped:  # si stands first: the name moves there
        swapped = False
        if node.one_subject:
            one, two = replace(one, subj=two.subj), replace(two, subj=one.subj)
    joint = aligned(node.how.fr, node.id)
    return in_order(node, joint, render(one), render(two), swapped)


def contract(found):
    """de + le: du; but de l' ami."""
    out = []
    for k, word in enumerate(found):
        text = CONTRACTED.get(f"{out[-1].text} {word.text}") if out else None
        if text and not (word.text == "LE" and vowel(found[k + 1].text)):
            first = out.pop().marks
            if all(mark.endswith("?") for mark in first):
                first = tuple(mark[:-1] + "~" for mark in first)
            word = Word(text, tuple(dict.fromkeys(first + word.marks)))
        out.append(word)
    return out


def elide(found):
    for word, after in zip(found, found[1:], strict=False):
        if word.text in ELIDED and vowel(after.text):
            word.text = word.text[:-1] + "'"
        elif word.text == "si" and after.text in ("il", "ils"):
            word.text = "s'"
    return [Word(w.text.lower(), w.marks) for w in found]


def sentence(node, end) -> list[Word]:
    return elide(contract(render(node))) + end_mark(end)
