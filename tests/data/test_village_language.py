"""What a reader of English, French or Chinese would strike out of the Village corpus.

The checkers know the languages from their own word lists, village_words.tsv, not from
the generator's tables. Each takes the words of a sentence and yields what is wrong;
each is tried on a wrong sentence first (village_trials.tsv). Faults that a pattern
finds are in village_patterns.tsv, with a wrong and a right sentence.
"""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

HERE = Path(__file__).parent


def table(name):
    lines = (HERE / f"village_{name}.tsv").read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


WORDS = dict(table("words"))
SETS = {name: set(text.replace(",", " ").split()) for name, text in WORDS.items()}


def rows_of(name):
    """A list of lists: what stands between commas."""
    return [part.split() for part in WORDS[name].split(",")]


def next_word(words, k, skip):
    return next((w for w in words[k + 1 :] if w not in skip), "")


# --- English ----------------------------------------------------------------------


def verb_forms(base, past=None, participle=None):
    """base, s, past, participle, ing"""
    y = base.endswith("y") and base[-2] not in "aeiou"
    stem = base[:-1] if y or (base.endswith("e") and base != "see") else base
    s = stem + "ies" if y else base + "es" * base.endswith(("sh", "ch", "ss", "o"))
    s = "has" if base == "have" else s if s != base else base + "s"
    ed = stem + "ied" if y else stem + "ed"
    double = base[-1] * (base in ("cut", "put", "swim", "sit", "forget"))
    return base, s, past or ed, participle or ed, (base if y else stem) + double + "ing"


FORMS_OF = [verb_forms(*row) for row in rows_of("en verbs")]
BASES, S_FORMS, PASTS, PARTICIPLES, ING = map(set, zip(*FORMS_OF, strict=True))
VERB_FORMS = BASES | S_FORMS | PASTS | PARTICIPLES | ING
BE = set("am is are was were".split())
MODALS = set("will do does did can cannot could must".split())
AUXILIARIES = BE | MODALS | {"has", "have"}
ADVERBS = set("not also still often sometimes already never just all only soon".split())
PLURALS = {n + "s" for n in SETS["en things"]} | {
    "stories",
    "mice",
    "women",
    "children",
}


def bad_article(words):
    for a, b in pairwise(words):
        vowel = bool(re.match("[aeiou]|hour", b))
        if (a, vowel) in (("a", True), ("an", False)):
            yield f"{a} {b}"


def bad_number(words):
    """a pears, two pear; but two apple cakes"""
    for k, w in enumerate(words):
        rest = [x for x in words[k + 1 : k + 6] if x not in SETS["en describing"]]
        here, then = (*rest, "", "")[:2]
        if w in ("a", "an", "this", "every") and here in PLURALS:
            yield f"{w} {here}"
        if w in ("two", "three", "four", "five", "ten", "these"):
            if here in SETS["en things"] and then not in PLURALS:
                yield f"{w} {here}"


def bad_person(words):
    """she eat, they eats; a question's subject stands behind its auxiliary."""
    for k, w in enumerate(words):
        if w not in ("i", "we", "they", "he", "she", "it"):
            continue
        if k and words[k - 1] in AUXILIARIES:
            continue
        after = next_word(words, k, ADVERBS)
        one = w in ("he", "she")
        be = "am was" if w == "i" else "are were" if w in ("we", "they") else "is was"
        wrong = after in BE and after not in be.split()
        wrong |= one and after in BASES - PASTS
        if wrong or (w in ("i", "we", "they") and after in S_FORMS | {"does"}):
            yield f"{w} {after}"


def bad_verb_form(words):
    """will eats, has ate, is eat."""
    wanted = dict.fromkeys(MODALS, BASES | {"be"}) | dict.fromkeys(
        BE, PARTICIPLES | ING
    )
    wanted |= dict.fromkeys(("has", "have"), PARTICIPLES)
    for k, w in enumerate(words):
        after = next_word(words, k, ADVERBS)
        if w in wanted and after in VERB_FORMS and after not in wanted[w]:
            yield f"{w} {after}"


def bad_do(words):
    """she not swims; where swims she ?"""
    if words[-1] != "?":
        for a, b in pairwise(words):
            if b == "not" and a not in AUXILIARIES:
                yield f"{a} not"
    elif words[0] in ("what", "where", "when", "why"):
        if words[1] not in AUXILIARIES:
            yield " ".join(words[:2])
    elif words[0] not in ("who", "how", *AUXILIARIES):
        yield words[0]


# --- French -----------------------------------------------------------------------


def slots(rows):
    """form -> the (gender, plural) that it can have; rows: m.sg f.sg m.pl f.pl"""
    found = {}
    for row in rows:
        for k, cell in enumerate(row):
            for form in cell.split("|"):
                found.setdefault(form, set()).add(("mf"[k % 2], k > 1))
    return found


def participle_forms(p):
    return [p, p + "e", p if p in ("mis", "assis") else p + "s", p + "es"]


ADJECTIVES = slots(rows_of("fr adjectives"))
PASSED = slots(participle_forms(p) for p in SETS["fr participles"])
AGREEING = ADJECTIVES | PASSED
BEFORE = set(slots(rows_of("fr adjectives")[:9]))  # those that stand before the noun
DETERMINERS = {
    **dict.fromkeys("le un du au ce cet".split(), ("m", False)),
    **dict.fromkeys("la une cette ma ta sa".split(), ("f", False)),
    **dict.fromkeys("l' mon ton son notre leur chaque".split(), (None, False)),
    **dict.fromkeys("les des aux ces mes tes ses nos leurs".split(), (None, True)),
    **dict.fromkeys("deux trois quatre cinq dix".split(), (None, True)),
}
PRONOUNS = {"il": ("m", False), "elle": ("f", False), "nous": (None, True)}
PRONOUNS |= {"ils": ("m", True), "elles": ("f", True)}
NAMES = dict.fromkeys(SETS["fr women"], "f") | dict.fromkeys(SETS["fr men"], "m")
EITHER = {"médecin", "peintre", "maire"}
DAYS = {"matin", "soir", "jour", "semaine", "dimanche", "heure", "journée"}
IS = set("est sont sommes était étaient étions".split())
CLITICS = set("ne n' me m' te t' se s' nous le la l' les lui leur y en".split())
NOMINAL = {*DETERMINERS, *NAMES, *PRONOUNS, *BEFORE, "j'", "je", "tu"}
ADVERBS_FR = "pas jamais aussi encore souvent parfois déjà bientôt très plus".split()
LIGHT = CLITICS | {*ADVERBS_FR, "tous", "toutes", "qui"}


@cache
def noun(word):
    """(gender, plural) of a French noun, each None where it doesn't tell; or None."""
    if word in ("souris", "fils"):
        return ("f" if word == "souris" else "m"), None
    base = "cheval" if word == "chevaux" else re.sub("(?<=eau)x$|s$", "", word)
    known = {"f": base in SETS["fr feminine"], "m": base in SETS["fr masculine"]}
    gender = next((g for g, here in known.items() if here), None)
    return (gender, base != word) if gender or base in EITHER else None


def fits(slot, other):
    return all(
        a is None or b is None or a == b for a, b in zip(slot, other, strict=True)
    )


def agrees(form, slot):
    return any(fits(slot, other) for other in AGREEING[form])


def heads(words, k):
    """What an adjective after the noun at k may agree with: manteau d' hiver bleu."""
    found = [noun(words[k])]
    if words[k - 1] in ("de", "d'", "à", "aux"):
        found.append(noun(words[k - 2]))
    return [slot for slot in found if slot]


def determiner(words, k):
    """The place of the determiner of the noun at k, before adjectives; or -1."""
    j = k - 1
    while j >= 0 and words[j] in BEFORE:
        j -= 1
    return j


def bad_elision(words):
    cut = set("le la je me te se ne de que".split())
    for a, b in pairwise(words):
        vowel, of = b[0] in "aeiouyhàâéèêîôœ", noun(b)
        wrong = (a in cut and vowel) or (a == "si" and b in ("il", "ils"))
        wrong |= a.endswith("'") and not vowel
        wrong |= a in ("cet", "vieil", "nouvel", "bel") and not vowel
        uncut = a in ("ma", "ta", "sa", "ce", "vieux", "nouveau", "beau")
        if wrong or (uncut and vowel and of and not of[1]):
            yield f"{a} {b}"


def bad_contraction(words):
    for a, b in pairwise(words):
        if a in ("de", "à", "d'") and b in ("le", "les", "du", "de", "d'"):
            yield f"{a} {b}"


def bad_agreement(words):
    """Determiner, adjectives, noun, adjective."""
    for k, w in enumerate(words):
        slot, j = noun(w), determiner(words, k)
        if slot is None or j < 0:
            continue
        for before in words[j + 1 : k]:
            if words[j] in ("de", "d'", *DETERMINERS) and not agrees(before, slot):
                yield f"{before} {w}"
        if not fits(DETERMINERS.get(words[j], slot), slot) and w != "dimanche":
            yield f"{words[j]} … {w}"  # il en a mangé trois dimanche
        after, then = (*words[k + 1 : k + 3], "", "")[:2]
        if after in ADJECTIVES and then != "à":  # petit à petit
            if not any(agrees(after, head) for head in heads(words, k)):
                yield f"{w} {after}"


def subject(words, k):
    """The (gender, plural) of a pronoun, name or noun phrase that may be a subject."""
    w, start = words[k], max((j for j in range(k) if words[j] == ","), default=0)
    if w in PRONOUNS:
        return PRONOUNS[w]
    if set("qui que qu' dont où à de d' du des au aux".split()) & set(words[start:k]):
        return None  # le livre que lit anna …
    if w in NAMES:
        return NAMES[w], False
    j = determiner(words, k)
    if noun(w) and w not in DAYS and j >= 0 and words[j] in DETERMINERS:
        gender, plural = noun(w)
        told = DETERMINERS[words[j]]
        return gender or told[0], told[1] if plural is None else plural
    return None


def bad_predicate(words):
    """elle est fatigué, les filles sont allés, la soupe a été mangé"""
    if not {*IS, "été", "être"} & set(words):
        return
    for k, w in enumerate(words):
        slot = subject(words, k)
        rest = [x for x in words[k + 1 :] if x not in LIGHT]
        if slot and rest and rest[0] in ADJECTIVES and noun(w):
            rest = rest[1:]
        passive = " ".join(rest[:2]) in ("a été", "ont été", "va être", "vont être")
        if slot and (passive or (rest and rest[0] in IS)):
            said = (*rest[1 + passive :], "")[0]
            if said in AGREEING and not agrees(said, slot):
                yield f"{w} {said}"


def object_before(words, k):
    """The slots of a direct object before avoir at k; where there is none, m.sg."""
    told = {"en": ("m", False), "les": (None, True), "l'": (None, False)}
    start = max((j for j in range(k) if words[j] in ("que", "qu'")), default=0)
    j = start - 1
    while j > 0 and words[j] in ADJECTIVES:
        j -= 1
    nominal = all(noun(x) or x in NOMINAL for x in words[start + 1 : k])
    if start and nominal and noun(words[j]):  # la lettre que paul a …
        return heads(words, j)
    if words[k - 1] in told:
        return [told[words[k - 1]]]
    near = {"que", "qu'", *CLITICS} & set(words[max(0, k - 14) : k])
    if near or "combien" in words[:k]:
        return []
    return [("m", False)]


def bad_past_participle(words):
    """la lettre qu' il a écrit, il les a vu, elle a vue"""
    for k, w in enumerate(words):
        said = next_word(words, k, LIGHT)
        if w in ("ai", "as", "a", "avons", "ont") and said in PASSED:
            slots = object_before(words, k)
            if slots and not any(agrees(said, slot) for slot in slots):
                yield f"{words[k - 1]} {w} {said}"


def bad_french_verb(words):
    """tu mange, ils va"""
    endings = dict.fromkeys(("je", "j'"), "[sxei]") | {"tu": "[sx]"}
    endings |= dict.fromkeys(("il", "elle"), "(?<!on)(?<!aien)[tdaec]")
    endings |= dict.fromkeys(("ils", "elles"), "nt")
    for k, w in enumerate(words):
        verb = next_word(words, k, CLITICS)
        stressed = k and words[k - 1] in ("à", "de", "d'", "pour", "que", "qu'", "avec")
        if w in endings and verb.isalpha() and verb != "et" and not stressed:
            if not re.search(endings[w] + "$", verb):
                yield f"{w} {verb}"


def bad_negation(words):
    """ne without pas, jamais or que; pas without ne"""
    ne = sum(w in ("ne", "n'") for w in words)
    pas = sum(w in ("pas", "jamais") for w in words)
    if not 0 <= ne - pas <= words.count("que") + words.count("qu'"):
        yield "ne … pas"


# --- Chinese ----------------------------------------------------------------------

CLASSIFIERS = {name[11:]: SETS[name] for name in SETS if name.startswith("class")}
COUNTED = set().union(*CLASSIFIERS.values()) - {"杯"}
FIRST = set("苹果 胡萝卜 山羊 花园 厨房 茶".split())  # of two nouns in one
PEOPLE = SETS["zh people"] | SETS["zh kin"]
DOES = SETS["zh does"]
WHEN = set("昨天 今天 明天 上周 下周 每天 每个 去年 夏天 冬天 现在".split())


def clauses(words):
    """The parts between commas."""
    parts = re.split("[，。？！]", " ".join(words))
    return [part.split() for part in parts]


def bad_classifier(words):
    """一 本 苹果, 两 狗; 三 颗 may stand for the cherries named before."""
    for k, w in enumerate(words):
        if w not in "一 两 三 四 五 十 这 那".split() or words[k - 1] == "其中":
            continue
        c, *rest = clauses(words[k + 1 :])[0]
        cups = " ".join(rest).replace("咖啡 杯", "杯子").split()
        nouns = [x.removesuffix("们") for x in [*cups, ""]]
        named = [x for x, y in pairwise(nouns) if x not in FIRST or y not in COUNTED]
        named = [x for x in named if x in COUNTED]
        near = [x for x in named if x in CLASSIFIERS.get(c, ())]
        if c in ("天", "周", "整", "会儿"):
            continue
        if c not in CLASSIFIERS or (named and not near):
            yield f"{w} {c}"
        elif named and "的" not in rest and named[0] not in near:
            yield f"{w} {c} {named[0]}"


def bad_le(words):
    """没 and 不 with 了"""
    for part in clauses(words):
        if {"没", "不"} & set(part) and "了" in part and "的" not in part:
            yield " ".join(part)


def bad_list_of_verbs(words):
    """他 工作 ， 休息: nobody is named after the comma, and nothing joins."""
    for part in clauses(words)[1:]:
        verb = part and part[0] in DOES - {"画"} | {"把", "没", "想"}
        if verb and not {"的", "其中"} & set(part):
            yield " ".join(part)


def bad_time_first(row):
    """明天 早上 有 房子 的 农民 会 笑: a comma is missing after the time.

    A time that belongs to the relative clause (每天 早上 笑 的 农民) stands inside it
    in English, too: between its head and the main verb.
    """
    words = row.zh.split()
    back = {int(j): int(i) for i, j in re.findall(r"(\d+)-(\d+)", row.en_zh)}
    for k, w in enumerate(words):
        if w not in WHEN or (k and words[k - 1] not in "，。"):
            continue
        start = k + 1 + (words[k + 1] in ("早上", "晚上", "夏天"))
        end = next(j for j in range(k, len(words)) if words[j] in "，。？！")
        if (
            words[start] not in DOES | {"有", "把", "在"}
            or "的" not in words[start:end]
        ):
            continue
        after = words.index("的", start) + 1
        people = [j for j in range(after, min(after + 5, end)) if words[j] in PEOPLE]
        if words[after] == "时候" or not people or not {k, people[0]} <= set(back):
            continue
        head, later = (
            back[people[0]],
            [back.get(j, 0) for j in range(people[0] + 1, end)],
        )
        if not head < back[k] < min((i for i in later if i > head), default=99):
            yield " ".join(words[k:end])


def bad_doubled(words):
    for a, b in pairwise(words):
        if a == b and a != "nous":
            yield f"{a} {b}"


# --- the checks are checked, then made --------------------------------------------

CHECKERS = {name: thing for name, thing in globals().items() if name.startswith("bad_")}
TRIALS = [
    (lang, CHECKERS[name], wrong, right) for lang, name, wrong, right in table("trials")
]
CHECKS = list(dict.fromkeys((lang, check) for lang, check, *_ in TRIALS))
PLACEHOLDERS = {"{kin}": "|".join(SETS["zh kin"]), "{colour}": "[红白黑绿蓝黄]"}
PLACEHOLDERS["{does}"] = "|".join(DOES)


def compiled(pattern):
    for name, text in PLACEHOLDERS.items():
        pattern = pattern.replace(name, text)
    return re.compile(pattern)


PATTERNS = [
    pytest.param(lang, compiled(pattern), wrong, right, id=f"{lang}-{fault}")
    for lang, fault, pattern, wrong, right in table("patterns")
]


@pytest.mark.parametrize(("lang", "check", "wrong", "right"), TRIALS)
def test_a_checker_tells_right_from_wrong(lang, check, wrong, right):
    assert list(check(wrong.split()))
    assert not list(check(right.split()))


def test_every_checker_is_tried():
    assert {check for _, check in CHECKS} | {bad_time_first} == set(CHECKERS.values())


@pytest.mark.parametrize(("lang", "check"), CHECKS)
def test_no_sentence_is_at_fault(village, lang, check):
    bad = [(fault, " ".join(s)) for s in village.words(lang) for fault in check(s)]
    assert not bad[:3], len(bad)


@pytest.mark.parametrize(("lang", "pattern", "wrong", "right"), PATTERNS)
def test_no_sentence_has_the_pattern(village, lang, pattern, wrong, right):
    """lang: en|fr looks at both."""
    assert pattern.search(wrong)
    assert not pattern.search(right)
    rows, langs = village.all(), lang.split("|")
    texts = [" | ".join(getattr(row, lang) for lang in langs) for row in rows]
    bad = [text for text in texts if pattern.search(text)]
    assert not bad[:3], len(bad)


def test_a_time_stands_apart_from_a_relative_clause(village):
    def row(en, zh, en_zh):
        return SimpleNamespace(en=en, zh=zh, en_zh=en_zh)

    wrong = "the farmer who sings will laugh tomorrow .", "明天 唱歌 的 农民 会 笑 。"
    right = "the farmer who sings every day will laugh .", "每天 唱歌 的 农民 会 笑 。"
    assert list(bad_time_first(row(*wrong, "1-3 2-2 3-1 4-4 5-5 6-0 7-6")))
    assert not list(bad_time_first(row(*right, "1-3 2-2 3-1 4-0 5-0 6-4 7-5 8-6")))
    bad = [(fault, row) for row in village.all() for fault in bad_time_first(row)]
    assert not bad[:3], len(bad)


def test_the_lists_have_the_words(village):
    """Nouns after an article, verbs after she and they: the checkers know them all."""
    french, english = set(), set()
    for row in village.all():
        words = row.en.split()
        subjects = [k for k, w in enumerate(words) if w in ("she", "they")]
        english |= {next_word(words, k, ADVERBS) for k in subjects}
        french |= {
            b for a, b in pairwise(row.fr.split()) if a in ("une", "cette", "mes")
        }
    assert len(english) > 90 and len(french) > 50
    assert not {w for w in french if not noun(w) and w not in AGREEING}
    assert not english - VERB_FORMS - AUXILIARIES - {"wanted", ",", ".", "?"}
