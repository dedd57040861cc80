"""Synchronous phrases: English, French and Chinese words that carry concept ids.

A word is a pair (text, ids). Two words of two languages are aligned when they
share an id, so every alignment follows from the ids alone.
"""

from __future__ import annotations

import random
from functools import cache

from lexicon import (
    ADJ,
    AVOIR_ADJS,
    HELD_OUT,
    MODALS,
    NOUN,
    NUMBERS,
    PREPS,
    RIVERSIDE,
    VERB,
)

VOWELS = tuple("aeiouàâäéèêëîïôöûùüœæh")
H_ASPIRE = ("hibou",)
HELD = set(HELD_OUT)
# Chinese uses one word for "old" + these nouns.
FUSED = {("old", "man"): "老人", ("old", "woman"): "老妇人"}
# Verbs that need "for two hours" in the past, so that 了 sounds right.
DURATIVE = {"play", "walk", "swim", "work", "rest", "sleep", "sing", "dance", "wait"}
# What follows the duration in Chinese: 跳 了 两 个 小时 舞
ZH_TAIL = {"dance": "舞", "sing": "歌", "sleep": "", "walk": ""}


class Reject(Exception):
    """The draft is given up: no suitable word is left."""


class Ph:
    """A phrase: three lists of words, one a language."""

    __slots__ = ("en", "fr", "zh")

    def __init__(self, en=(), fr=(), zh=()):
        self.en, self.fr, self.zh = list(en), list(fr), list(zh)

    def __add__(self, other):
        return Ph(self.en + other.en, self.fr + other.fr, self.zh + other.zh)


class Gen:
    """Random choices, concept ids, words already used and tags of one sentence."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.force_held = False
        self.reset(0.0, False)

    def reset(self, rich: float, allow_held: bool) -> None:
        self.n = 0
        self.used: set[str] = set()
        self.tags: set[str] = set()
        self.pairs: set[tuple[str, str]] = set()
        self.rich = rich
        self.in_rel = False
        self.allow_held = allow_held

    def id(self) -> tuple[int]:
        self.n += 1
        return (self.n,)

    def p(self, probability: float) -> bool:
        return self.rng.random() < probability

    def one(self, items):
        return items[int(self.rng.random() * len(items))]

    def pick(self, items):
        """One of `items` not used in this sentence; marks it used."""
        for _ in range(8):
            item = self.one(items)
            if item not in self.used:
                self.used.add(item)
                return item
        raise Reject

    def noun(self, keys):
        """A noun whose French word isn't used either."""
        for _ in range(8):
            key = self.one(keys)
            fr = "fr:" + NOUN[key].fr
            if key not in self.used and fr not in self.used:
                self.used.update((key, fr))
                return key
        raise Reject

    def use(self, *keys: str) -> None:
        """Mark as used; give up when one was used before."""
        for key in keys:
            if key in self.used:
                raise Reject
            self.used.add(key)

    def weighted(self, table):
        """One item of ((weight, item), …)."""
        x = self.rng.random() * sum(w for w, _ in table)
        for w, item in table:
            x -= w
            if x < 0:
                return item
        return table[-1][1]


@cache
def _parse(pattern: str):
    out = []
    for item in pattern.split():
        word, _, ids = item.partition("/")
        out.append((word, tuple(int(c) for c in ids)))
    return out


def pat(g: Gen, en: str, fr: str, zh: str) -> Ph:
    """A fixed phrase; `word/12` carries the concepts 1 and 2 of the phrase."""
    base = g.n
    parts = []
    top = 0
    for pattern in (en, fr, zh):
        words = []
        for word, ids in _parse(pattern):
            if ids:
                top = max(top, *ids)
            words.append((word, tuple(base + i for i in ids)))
        parts.append(words)
    g.n += top
    return Ph(*parts)


def vowel(word: str) -> bool:
    return word.startswith(VOWELS) and not word.startswith(H_ASPIRE)


PRON = {
    # person index (je tu il nous ils), gender, plural,
    # English subject/object/possessive, French subject/object/indirect, zh
    "i": (0, "m", False, "i", "me", "my", "je", "me", "me", "我"),
    "you": (1, "m", False, "you", "you", "your", "tu", "te", "te", "你"),
    "he": (2, "m", False, "he", "him", "his", "il", "le", "lui", "他"),
    "she": (2, "f", False, "she", "her", "her", "elle", "la", "lui", "她"),
    "we": (3, "m", True, "we", "us", "our", "nous", "nous", "nous", "我们"),
    "they_m": (4, "m", True, "they", "them", "their", "ils", "les", "leur", "他们"),
    "they_f": (4, "f", True, "they", "them", "their", "elles", "les", "leur", "她们"),
    "it_m": (2, "m", False, "it", "it", "its", "il", "le", "lui", "它"),
    "it_f": (2, "f", False, "it", "it", "its", "elle", "la", "lui", "它"),
    "those_m": (4, "m", True, "they", "them", "their", "ils", "les", "leur", "它们"),
    "those_f": (4, "f", True, "they", "them", "their", "elles", "les", "leur", "它们"),
}
POSS_FR = [
    ("mon", "ma", "mes"),
    ("ton", "ta", "tes"),
    ("son", "sa", "ses"),
    ("notre", "notre", "nos"),
    ("leur", "leur", "leurs"),
]
REFL = ["me", "te", "se", "nous", "se"]


class Pron:
    """A personal pronoun."""

    def __init__(self, g: Gen, key: str):
        self.key = key
        (
            self.p,
            self.g,
            self.pl,
            self.s_en,
            self.o_en,
            self.poss,
            self.s_fr,
            self.o_fr,
            self.d_fr,
            self.zh,
        ) = PRON[key]
        self.c = g.id()
        self.person = not key.startswith(("it", "those"))
        self.gendered = key not in ("i", "you", "we")

    def render(self, g: Gen, neg: bool = False) -> Ph:
        return Ph([(self.s_en, self.c)], [(self.s_fr, self.c)], [(self.zh, self.c)])


class NP:
    """A noun phrase; rendered late, since negation changes its French article."""

    gendered = True

    def __init__(
        self, g, noun, det="the", pl=False, adjs=(), owner=None, rel=None, measure=None
    ):
        self.noun, self.det, self.pl, self.adjs = NOUN[noun], det, pl, list(adjs)
        self.owner, self.rel, self.measure = owner, rel, measure
        self.g = self.noun.gender
        self.p = 4 if pl else 2
        self.person = bool(self.noun.kinds & {"adult", "child", "kid"})
        self.c, self.d = g.id(), g.id()
        for a in self.adjs:
            pair = (a, noun)
            g.pairs.add(pair)
            if pair in HELD and not g.allow_held:
                raise Reject
        if (self.noun.en_pl if pl else self.noun.en) is None:
            raise Reject
        if len(self.adjs) == 1 and (self.adjs[0], noun) in FUSED and pl:
            raise Reject

    def pron_key(self) -> str:
        if self.person:
            if self.pl:
                return "they_f" if self.g == "f" else "they_m"
            return "she" if self.g == "f" else "he"
        return ("those_" if self.pl else "it_") + self.g

    def render(self, g: Gen, neg: bool = False) -> Ph:
        n, pl, c, d = self.noun, self.pl, self.c, self.d
        en_n = n.en_pl if pl else n.en
        fr_n = n.fr_pl if pl else n.fr
        zh_n = n.zh
        # people in the plural take 们 unless they are counted
        if pl and n.zh_pl and self.det in ("the", "these", "poss", "own"):
            zh_n = n.zh_pl
        ai = 2 * pl + (n.gender == "f")
        en_a, fr_b, fr_a, zh_de, zh_bare = [], [], [], [], []
        has_de = self.rel is not None or (
            self.owner is not None
            and not (isinstance(self.owner, Pron) and "kin" in n.kinds)
        )
        fused = None
        for key in self.adjs:
            a = ADJ[key]
            i = g.id()
            en_a.append((key, i))
            word = a.fr[ai]
            if word == "-":
                raise Reject
            if a.before:
                g.tags.add("adj-before")
                fr_b.append([word, i, a.fr_vowel if ai == 0 else None])
            else:
                g.tags.add("adj-swap")
                fr_a.append((word, i))
            if (key, n.key) in FUSED:
                fused = (FUSED[key, n.key], i + c)
                continue
            zh_a = zh_old(n) if key == "old" else a.zh
            if a.zh_de:
                zh_de.append((zh_a, i))
                if has_de and len(zh_n) == 1:
                    raise Reject  # 我 的 黑色 的 马
                if not has_de:
                    zh_de.append(("的", i))
            else:
                zh_bare.append((zh_a, i))
        # vieux → vieil … before a vowel
        for j, item in enumerate(fr_b):
            nxt = fr_b[j + 1][0] if j + 1 < len(fr_b) else fr_n
            if item[2] and vowel(nxt):
                item[0] = item[2]
        fr_b = [(w, i) for w, i, _ in fr_b]
        en_core = en_a + [(en_n, c)]
        fr_core = fr_b + [(fr_n, c)] + fr_a
        zh_core = zh_de + zh_bare + [fused or (zh_n, c)]
        first = fr_core[0][0]
        art = "les" if pl else ("la" if n.gender == "f" else "le")
        cl = n.cl
        en_d, fr_d, zh_d = [], [], []
        fr_post, det = [], self.det
        if self.measure:
            return self._measured(g, neg, en_core, fr_core, zh_core)
        if det == "the":
            en_d, fr_d = [("the", d)], [(art, d)]
        elif det == "gen":  # French has the generic article, English none
            fr_d = [(art, ())]
        elif det == "a":
            en_d = [("a", d)]
            word = "une" if n.gender == "f" else "un"
            fr_d = [("de", d)] if neg else [(word, d)]
            if not neg:  # 没有 狗
                zh_d = [("一", d), (cl, d)]
                g.tags.add("zh-classifier")
        elif det == "this":
            en_d = [("this", d)]
            word = "cette" if n.gender == "f" else ("cet" if vowel(first) else "ce")
            fr_d, zh_d = [(word, d)], [("这", d), (cl, d)]
            g.tags.add("zh-classifier")
        elif det == "these":
            en_d, fr_d, zh_d = [("these", d)], [("ces", d)], [("这些", d)]
        elif det == "every":
            en_d, fr_d, zh_d = [("every", d)], [("chaque", d)], [("每", d), (cl, d)]
            g.tags.add("zh-classifier")
        elif det in NUMBERS:
            fr_w, zh_w = NUMBERS[det]
            en_d, fr_d, zh_d = [(det, d)], [(fr_w, d)], [(zh_w, d), (cl, d)]
            g.tags.add("zh-classifier")
            g.tags.add("number")
        elif det == "many":
            en_d, zh_d = [("many", d)], [("很多", d)]
            fr_d = [("beaucoup", d), ("de", d)]
        elif det in ("bare", "some"):
            i = d if det == "some" else ()
            if det == "some":
                en_d, zh_d = [("some", d)], [("一些", d)]
            if neg:
                fr_d = [("de", i)]
            elif pl:
                fr_d = [("de" if fr_b else "des", i)]
            else:
                fr_d = [("de", i), (art, i)]
        elif det == "poss":
            o = self.owner
            row = POSS_FR[o.p]
            word = row[2] if pl else row[n.gender == "f" and not vowel(first)]
            en_d, fr_d = [(o.poss, d)], [(word, d)]
            zh_d = [(o.zh, d)]
            if "kin" not in n.kinds:
                zh_d.append(("的", d))
                g.tags.add("zh-de-possessive")
            g.tags.add("possessive")
        elif det == "own":
            o = self.owner.render(g)
            en_d = o.en + [("'s", d)]
            fr_d = [(art, ())]
            fr_post = [("de", d)] + o.fr
            zh_d = o.zh + [("的", d)]
            g.tags.update(("possession", "zh-de-possessive"))
        out = Ph(en_d + en_core, fr_d + fr_core + fr_post)
        rel = []
        if self.rel:
            r = g.id()
            en_r, fr_r, zh_r, kind = self.rel(g, self)
            out.en += [("who" if self.person and kind == "s" else "that", r)] + en_r
            out.fr += [("qui" if kind == "s" else "que", r)] + fr_r
            rel = zh_r + [("的", r)]
            g.tags.add("relative-subject" if kind == "s" else "relative-object")
            g.tags.add("zh-relative")
        out.zh = zh_d + rel + zh_core
        return out

    def _measured(self, g, neg, en_core, fr_core, zh_core):
        m_en, m_fr, gender, m_zh = self.measure
        i, d, of = g.id(), self.d, g.id()
        fr_n = NUMBERS[self.det][0] if self.det in NUMBERS else None
        num = self.det in NUMBERS
        art = fr_n if num else ("une" if gender == "f" else "un")
        plural = {
            "tasse": "tasses",
            "verre": "verres",
            "morceau": "morceaux",
            "bol": "bols",
            "panier": "paniers",
            "kilo": "kilos",
        }
        en = [(self.det if num else "a", d)]
        many = m_en + ("es" if m_en == "glass" else "s")
        en += [(many if num else m_en, i), ("of", of)] + en_core
        if neg and not num:
            art = "de"
        fr = [(art, d), (plural[m_fr] if num else m_fr, i), ("de", of)] + fr_core
        zh = [(NUMBERS[self.det][1] if num else "一", d), (m_zh, i)] + zh_core
        g.tags.update(("zh-classifier", "quantity"))
        return Ph(en, fr, zh)


def zh_old(n) -> str:
    return "旧" if n.kinds & {"thing", "part", "read", "furn"} else "老"


def place(g: Gen, prep: str, np: NP) -> Ph:
    """A place phrase: in the garden, 在 花园 里."""
    en, fr, before, after = PREPS[prep]
    i = g.id()
    o = np.render(g)
    zh = o.zh
    if prep == "near" and np.noun.key in RIVERSIDE:
        return Ph(
            [("near", i)] + o.en,
            [("près", i), ("de", i)] + o.fr,
            [(before, i), (RIVERSIDE[np.noun.key], i + np.c)],
        )
    return Ph(
        [(w, i) for w in en.split()] + o.en,
        [(w, i) for w in fr.split()] + o.fr,
        [(before, i)] + zh + ([(after, i)] if after else []),
    )


def home(g: Gen) -> Ph:
    return pat(g, "at/1 home/2", "à/1 la maison/2", "在/1 家/2 里/1")


class VP:
    """A verb phrase, not yet put into a tense."""

    def __init__(
        self,
        g,
        verb,
        obj=None,
        comp=None,
        pre=None,
        dat=None,
        modal=None,
        adv=None,
        dur=None,
        purpose=None,
        join=None,
    ):
        g.use("v:" + VERB[verb].inf + VERB[verb].zh)
        self.v, self.obj, self.comp, self.pre = VERB[verb], obj, comp, pre
        self.dat, self.modal, self.adv, self.dur = dat, modal, adv, dur
        self.purpose, self.join = purpose, join
        self.c = g.id()


COUNTED = {"一", "这", "这些", "一些", "很多", *(zh for _, zh in NUMBERS.values())}
ADVS = {
    "often": ("souvent", "经常"),
    "always": ("toujours", "总是"),
    "never": ("jamais", "从不"),
}


def duration(g: Gen, hours=("two", "three", "four")) -> Ph:
    if "two" in hours and g.p(0.3):
        g.use("dur:one")
        return pat(g, "for/1 a/2 hour/3", "pendant/1 une/2 heure/3", "一/2 个/2 小时/3")
    num = g.one(hours)
    g.use("dur:" + num)
    fr, zh = NUMBERS[num]
    g.tags.update(("zh-classifier", "number"))
    return pat(
        g, f"for/1 {num}/2 hours/3", f"pendant/1 {fr}/2 heures/3", f"{zh}/2 个/2 小时/3"
    )


def agree(pp: str, gender: str, pl: bool) -> str:
    out = pp + ("e" if gender == "f" else "")
    return out + "s" if pl and not out.endswith("s") else out


AVOIR = ["ai", "as", "a", "avons", "ont"]
ETRE = ["suis", "es", "est", "sommes", "sont"]
ETAIS = ["étais", "étais", "était", "étions", "étaient"]
AVAIS = ["avais", "avais", "avait", "avions", "avaient"]


def vp_words(
    g, subj, vp, tense, neg=False, q=None, gap=None, shared=False, le=True, time=None
):
    """The words of `vp` for `subj`: (English auxiliary, en, fr, zh).

    gap: the noun phrase a relative clause took the object from.
    shared: infinitive only, under the auxiliary of an earlier verb phrase.
    le: False where Chinese drops 了.
    """
    v, c = vp.v, vp.c
    third = subj.p == 2
    modal = "will" if tense == "fut" else vp.modal
    never = vp.adv == "never" and tense == "pres" and not modal
    obj = (
        vp.obj.render(g, neg or never)
        if isinstance(vp.obj, NP) and gap is None
        else None
    )
    opron = vp.obj if isinstance(vp.obj, Pron) and gap is None else None
    neg_id = g.id() if neg else None
    adv = None
    if vp.adv and tense == "pres" and not modal and not neg:
        adv = (vp.adv, g.id())
    if vp.dur is None and tense == "past" and not neg and v.key in DURATIVE:
        vp.dur = duration(g)
    dur = vp.dur if tense == "past" and not neg else None
    # --- English
    aux, mid = [], []
    do = ()
    if shared:
        en = [(v.en, c)]
    elif modal:
        base, s, to, fr_forms, zh_m = MODALS[modal]
        m = g.id()
        if to:
            if neg or q:
                aux = [("does" if third else "do", q or ())]
                mid = [(base, m), ("to", ())]
            else:
                mid = [(s if third else base, m), ("to", ())]
        else:
            aux = [(base, m)]
        en = [(v.en, c)]
    elif tense == "past":
        do = g.id() if (neg or q) else ()
        if neg or q:
            aux = [("did", do + (q or ()))]
            en = [(v.en, c)]
        else:
            en = [(v.en_past, c)]
    else:
        if neg or q:
            aux = [("does" if third else "do", q or ())]
            en = [(v.en, c)]
        else:
            en = [(v.en_s if third else v.en, c)]
    if v.particle:
        en.append((v.particle, c))
    en_neg = [("not", neg_id)] if neg else []
    en_adv = [adv] if adv else []
    en = en_neg + en_adv + mid + en
    # --- French
    clit = []
    if opron:
        clit.append((opron.o_fr, opron.c))
    dpron = vp.dat[1] if vp.dat and isinstance(vp.dat[1], Pron) else None
    if dpron:
        clit.append((dpron.d_fr, dpron.c))
    if clit:
        g.tags.add("clitic")
    if v.refl:
        clit = [(REFL[subj.p], c)] + clit
        if not subj.gendered and tense == "past":
            raise Reject
    if shared:
        fr = clit + [(v.inf, c)]
    elif modal:
        m_fr = MODALS[modal][3].split()[subj.p]
        fr = [(m_fr, m)]
        if neg:
            fr = [("ne", neg_id)] + fr + [("pas", neg_id)]
        fr += clit + [(v.inf, c)]
    elif tense == "past":
        g.tags.add("fr-past")
        refl_or_etre = v.aux == "e"
        pp = v.pp
        if refl_or_etre:
            if not subj.gendered:
                raise Reject
            pp = agree(pp, subj.g, subj.pl)
        elif gap is not None:
            pp = agree(pp, gap.g, gap.pl)
        elif opron:
            if not opron.gendered:
                raise Reject
            pp = agree(pp, opron.g, opron.pl)
        aux_fr = (ETRE if refl_or_etre else AVOIR)[subj.p]
        fr = clit + [(aux_fr, c + do)]
        if neg:
            fr = [("ne", neg_id)] + fr + [("pas", neg_id)]
        fr += [(pp, c)]
    else:
        form = v.forms[subj.p]
        if form is None:
            raise Reject
        fr = clit + [(form, c)]
        if neg:
            fr = [("ne", neg_id)] + fr + [("pas", neg_id)]
        elif adv and adv[0] == "never":
            g.tags.add("negation")
            fr = [("ne", adv[1])] + fr + [("jamais", adv[1])]
        elif adv:
            fr += [(ADVS[adv[0]][0], adv[1])]
    # --- Chinese
    zh = []
    if adv:
        zh.append((ADVS[adv[0]][1], adv[1]))
    have = v.key == "have" and not modal
    fused_not = v.key == "find" and modal == "can" and neg
    if neg and not have and not fused_not:
        zh.append(("没" if tense == "past" else "不", neg_id))
    if modal and not shared and not fused_not:
        zh.append((MODALS[modal][4], m))
    if vp.join:
        zh += vp.join.zh
    if vp.pre:
        zh += vp.pre.zh
        g.tags.add("zh-place-before-verb")
    zv = v.zh
    if vp.purpose:  # 去 市场 买 …: no 了 after the first verb
        le = False
    if tense == "past" and not neg and le and gap is None and v.zh_past:
        zv = v.zh_past
    zv = zv.split()
    if zv[-1] == "了":
        g.tags.add("zh-le")
    verb_words = [(w, c) for w in zv]
    if have and neg:
        verb_words = [("没有", c + neg_id)]
    if fused_not:
        verb_words = [("找不到", c + m + neg_id)]
    zh_obj = obj.zh if obj else ([(opron.zh, opron.c)] if opron else [])
    if opron and not opron.person and opron.key.endswith(("_m", "_f")):
        if getattr(opron, "drop", False):
            zh_obj = []
    if vp.dat:
        prep, who = vp.dat
        d = g.id()
        t = who.render(g)
        pd = who.c if dpron else d
        if v.key == "give":
            verb_words += t.zh
        elif v.key == "sell":
            verb_words = [(w, c) for w in v.zh.split()] + [("给", pd)] + t.zh
            g.tags.discard("zh-le") if zv[-1] == "了" else None
            if zv[-1] == "了":
                verb_words = [("卖", c), ("给", pd), ("了", c)] + t.zh
                g.tags.add("zh-le")
        else:
            zh += [("给", pd)] + t.zh
        g.tags.add("dative")
    after = zh_obj + (vp.comp.zh if vp.comp else [])
    counted = after and after[0][0] in COUNTED
    if q and after and not counted and not dur and verb_words[-1][0] == "了":
        # 你 买 面包 了 吗
        zh += verb_words[:-1] + after + verb_words[-1:]
    else:
        zh += verb_words + after
    if dur:
        zh += dur.zh
        tail = ZH_TAIL.get(v.key)
        if tail:
            zh.append((tail, c))
    # --- what follows the verb in English and French
    if opron:
        en.append((opron.o_en, opron.c))
    if dpron:
        en.append((dpron.o_en, dpron.c))
    if obj:
        en += obj.en
        fr += obj.fr
    if vp.dat and not dpron:
        to = {"to": "à", "for": "pour"}[prep]
        en += [(prep, d)] + t.en
        fr += [(to, d)] + t.fr
    for extra in (vp.comp, vp.join, vp.pre, dur):
        if extra:
            en += extra.en
            fr += extra.fr
    if vp.purpose:
        k = g.id()
        _, pe, pf, pz = vp_words(g, subj, vp.purpose, "pres", shared=True)
        en += [("to", k)] + pe
        fr += [("pour", k)] + pf
        if tense == "past" and not neg:
            # 去 市场 买 了 三 个 梨; 去 湖边 游泳 了
            done = [("了", vp.purpose.c)]
            at = next(
                (
                    j + 1
                    for j, (w, _) in enumerate(pz[:-1])
                    if w == vp.purpose.v.zh and pz[j + 1][0] in COUNTED
                ),
                len(pz),
            )
            pz = pz[:at] + done + pz[at:]
            g.tags.add("zh-le")
        zh += pz
        g.tags.add("purpose")
    if neg:
        g.tags.add("negation")
        g.tags.add("ne-pas")
    if vp.modal and tense != "fut":
        g.tags.add("infinitive")
    if tense == "fut":
        g.tags.add("future")
    if time is not None:
        en += time.en
        fr += time.fr
        zh = time.zh + zh
        g.tags.add("zh-time-before-verb")
    return aux, en, fr, zh


def clause(g, subj, vp, tense, neg=False, q=None, time=None, front=None, le=True):
    """A finite clause; `time` comes last in English, `front` first."""
    s = subj.render(g)
    aux, en, fr, zh = vp_words(g, subj, vp, tense, neg, q, None, False, le, time)
    out = Ph()
    if front is not None:
        comma = g.id()
        out.en = front.en + [(",", comma)]
        out.fr = front.fr + [(",", comma)]
        out.zh = list(front.zh)
    if q:
        out.en += aux + s.en + en
        out.fr += [("est-ce", q), ("que", q)] + s.fr + fr
        out.zh += s.zh + zh
    else:
        out.en += s.en + aux + en
        out.fr += s.fr + fr
        out.zh += s.zh + zh
    return out


def vp_only(g, subj, vp, tense, shared=False):
    """A verb phrase for coordination: no subject of its own."""
    aux, en, fr, zh = vp_words(g, subj, vp, tense, shared=shared)
    return Ph(aux + en, fr, zh)


BE = {
    "pres": ["am", "are", "is", "are", "are"],
    "past": ["was", "were", "was", "were", "were"],
}


def copula(g, subj, adj, tense="pres", neg=False, q=None, very=False):
    """subj is (not) (very) adj."""
    s = subj.render(g)
    be = g.id()
    a_id = g.id()
    n_id = g.id() if neg else None
    v_id = g.id() if very else None
    en = [(BE[tense][subj.p], be)]
    en_tail = ([("not", n_id)] if neg else []) + ([("very", v_id)] if very else [])
    en_tail.append((adj, a_id))
    if adj in AVOIR_ADJS:
        word, zh_a = AVOIR_ADJS[adj]
        verb = (AVOIR if tense == "pres" else AVAIS)[subj.p]
        pred = "hen"
    else:
        a = ADJ[adj]
        word = a.fr[2 * subj.pl + (subj.g == "f")]
        if word == "-" or (not subj.gendered and len(set(a.fr)) > 2):
            raise Reject
        if not subj.gendered and a.fr[0] != a.fr[1]:
            raise Reject
        zh_a, pred = a.zh, a.pred
        if adj == "old" and isinstance(subj, NP):
            zh_a = zh_old(subj.noun)
        verb = (ETRE if tense == "pres" else ETAIS)[subj.p]
    fr = [(verb, be)]
    if neg:
        fr = [("ne", n_id)] + fr + [("pas", n_id)]
        g.tags.update(("negation", "ne-pas"))
    if very:
        fr.append(("très", v_id))
    fr.append((word, a_id))
    if pred == "shi":
        zh = ([("不", n_id)] if neg else []) + [("是", be), (zh_a, a_id), ("的", a_id)]
        if very:
            raise Reject
    elif neg:
        zh = [("不", n_id), (zh_a, a_id)]
    elif very:
        zh = [("非常", v_id), (zh_a, a_id)]
    elif q:
        zh = [(zh_a, a_id)]
    else:
        zh = [("很", be), (zh_a, a_id)]
    g.tags.add("copula")
    if isinstance(subj, NP):
        pair = (adj, subj.noun.key)
        g.pairs.add(pair)
        if pair in HELD:
            raise Reject
    if q:
        return Ph(
            en + s.en + en_tail, [("est-ce", q), ("que", q)] + s.fr + fr, s.zh + zh
        )
    return Ph(s.en + en + en_tail, s.fr + fr, s.zh + zh)


def elide(words):
    """French elision and contraction over (text, ids) words; returns words, tags."""
    out, tags = [], set()
    n = len(words)
    cut = {
        "le": "l'",
        "la": "l'",
        "je": "j'",
        "me": "m'",
        "te": "t'",
        "se": "s'",
        "ne": "n'",
        "de": "d'",
        "que": "qu'",
    }
    k = 0
    while k < n:
        w, ids = words[k]
        nxt = words[k + 1][0] if k + 1 < n else ""
        if w in cut and vowel(nxt):
            out.append((cut[w], ids))
            tags.add("elision")
        elif w == "si" and nxt in ("il", "ils"):
            out.append(("s'", ids))
            tags.add("elision")
        elif w in ("de", "à") and nxt in ("le", "les"):
            after = words[k + 2][0] if k + 2 < n else ""
            if nxt == "le" and vowel(after):
                out.append((w, ids))
            else:
                joined = {"dele": "du", "deles": "des", "àle": "au", "àles": "aux"}[
                    w + nxt
                ]
                out.append((joined, ids + words[k + 1][1]))
                tags.add("contraction")
                k += 1
        else:
            out.append((w, ids))
            if w in ("l'", "d'"):
                tags.add("elision")
            if w == "au":
                tags.add("contraction")
        k += 1
    return out, tags


def article_an(words):
    out = []
    for k, (w, ids) in enumerate(words):
        if w == "a" and k + 1 < len(words):
            nxt = words[k + 1][0]
            if nxt[0] in "aeiou" or nxt == "hour":
                w = "an"
        out.append((w, ids))
    return out


def align(a, b):
    """Pharaoh links between two lists of words: those that share an id."""
    where: dict[int, list[int]] = {}
    for j, (_, ids) in enumerate(b):
        for i in ids:
            where.setdefault(i, []).append(j)
    links = {
        (i, j) for i, (_, ids) in enumerate(a) for c in ids for j in where.get(c, ())
    }
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def finish(g, ph, mark=".", q=None):
    """Punctuation, elision, contraction: the words of the three sentences."""
    dot = g.id()
    en, fr, zh = article_an(ph.en), ph.fr, list(ph.zh)
    en_mark, zh_mark = dot, "。"
    if q:
        asks, both = g.id(), g.id()
        # do ↔ est-ce que; ? ↔ 吗; est-ce que ↔ 吗; without do: ? ↔ est-ce que
        fr = [(w, i + both if i == q else i) for w, i in fr]
        en_mark = dot + asks
        if not any(set(q) & set(i) for _, i in en):
            en_mark += q
        zh.append(("吗", asks + both))
        zh_mark = "？"
    en.append((mark, en_mark))
    zh.append((zh_mark, dot))
    fr, tags = elide(fr + [(mark, dot)])
    g.tags |= tags
    if q:
        g.tags.update(("question", "zh-ma"))
    return en, fr, zh


def fields(words):
    """(en, fr, zh, en-fr, en-zh, fr-zh) as text."""
    en, fr, zh = words
    text = tuple(" ".join(w for w, _ in x) for x in words)
    return (*text, align(en, fr), align(en, zh), align(fr, zh))
