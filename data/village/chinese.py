"""Chinese: classifiers, aspect, 把 and 被, what stands before the verb."""

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
    words,
)

PRONOUNS = {
    "i": "我",
    "you": "你",
    "we": "我们",
    "he": "他",
    "she": "她",
    "it": "它",
}
QUESTION = {"time": "什么时候", "why": "为什么"}
DEFINITE = ("the", "poss", "own", "this", "all")
GROUP = ("the", "poss", "own", "all")


def pronoun(n):
    if n.itself:
        return "自己"
    if n.person < 3:
        return "我们" if n.plural else ("我", "你")[n.person - 1]
    if n.plural:
        group = {"m": "他们", "f": "她们"}[n.gender]
        return group if n.human else "它们"
    return {"m": "他", "f": "她"}[n.gender] if n.human else "它"


def noun_phrase(n, neg=False, plain=False) -> list[Word]:
    """neg: under a negation, plain: not in a past; then a or some isn't said."""
    me = str(n.id)
    if n.pronoun or n.person < 3:
        if n.number:
            return words("其中", me) + counted(n, n.number.zh)
        return words(pronoun(n), me)
    if n.name and n.noun is None:
        return words(n.name.zh, me)
    body = adjectives(n) + noun_words(noun_text(n), me)
    if n.name and n.owner:
        return possessive(n) + body + words(n.name.zh, f"{me}.name")
    if n.name:
        return body + words(n.name.zh, f"{me}.name")
    rel = relative(n) if n.rel else []
    det = [] if plain and n.det == "some" else determiner(n, neg)
    later = rel and n.rel.kind != "subj"
    return (rel + det if later else det + rel) + body


def noun_text(n):
    group = n.human and n.plural and not n.number and not n.rel and n.det in GROUP
    return n.noun.zh + ("们" if group else "")


def counted(n, number, mark="n"):
    me = str(n.id)
    found = words(number, f"{me}.{mark}")
    return found + words(n.noun.classifier, f"{me}.{mark}?")


def adjectives(n):
    found = []
    for k, a in sorted(enumerate(n.adjs), key=lambda item: not item[1].de):
        mark = f"{n.id}.a{k}"
        found += words(a.zh, mark)
        if takes_de(n, a) and not (n.rel and n.human):
            found += words("的", f"{mark}?")
    return found


def takes_de(n, a):
    """漂亮 的 花; 新 的 花园 椅子, or the garden would be new."""
    return a.de or n.is_a("compound") and a.zh in ("新", "旧")


def possessive(n):
    owner = words(pronoun(n.owner), str(n.owner.id))
    if any(takes_de(n, a) for a in n.adjs):  # 你 那 幅 漂亮 的 画
        return owner if n.number or n.name else owner + that(n, "")
    near = n.is_a("kin") and not n.owner.plural and not n.plural
    return owner if near else owner + words("的", f"{n.owner.id}?")


def determiner(n, neg):
    me = str(n.id)
    number = counted(n, n.number.zh) if n.number else []
    if n.measure:
        vessel = words(n.measure.zh, f"{me}.m")
        count = number[:1] or words("一", f"{me}.d")
        return count + vessel
    if n.det == "poss":
        return possessive(n) + number
    if n.det == "own":
        owner = noun_phrase(n.owner)
        if n.owner.det == "poss" and n.owner.is_a("kin"):  # 我们 妹妹 的 兔子
            owner = [w for w in owner if w.text != "的"]
        if any(takes_de(n, a) for a in n.adjs) and not number:
            return owner + that(n, "of")
        return owner + words("的", f"{me}.of") + number
    if number:
        return number
    if n.det == "a":
        if neg:
            return []
        return counted(n, "一", "d")
    if n.det == "this":
        return words("这些", f"{me}.d") if n.plural else counted(n, "这", "d")
    if n.det == "some":
        return words("一些", f"{me}.d")
    if n.det == "many":
        return words("很多", f"{me}.d")
    single = (n.is_a("that") or n.human) and not (n.human and n.plural)
    if n.det == "that" or n.det == "the" and (n.rel or single):
        return that(n, "d")
    return []


def that(n, mark):
    """那 个, 那些"""
    mark = f"{n.id}.{mark}?" if mark else f"{n.id}?"
    return words("那些", mark) if n.plural else words(f"那 {n.noun.classifier}", mark)


def relative(n):
    rel, c = n.rel, n.rel.clause
    of = words("的", str(rel.id), f"{c.id}.v?")
    skip = {"whose": "owner", "of": "obj"}.get(rel.kind, rel.kind)
    found = clause(c, skip=skip)
    if found[-1].text == "的":
        found[-1].marks += (str(rel.id),)
        return found
    return found + of


# Predicates


def verb_words(c, text, v=None):
    return words(text, v or f"{c.id}.v")


def aspect(c):
    """The particle after the verb."""
    if c.modal or c.bare:
        return []
    if c.frame.has("zhe") and c.tense in ("prog", "imperfect"):
        return words("着", f"{c.id}.prog?", f"{c.id}.v?")
    if not c.main and not c.shared:  # a relative clause
        if c.tense != "past" or c.frame.has("state"):
            return []
        if c.obj is None:
            if c.frame.has("from"):
                return []
            return words("了" if c.frame.has("goal2") else "过", f"{c.id}.v?")
        if c.gap == "obj":
            seen = c.obj.human or c.frame.key == "look"
            return words("过", f"{c.id}.v?") if seen else []
        done = counts(c.obj) or c.frame.done
        return words("了" if done else "过", f"{c.id}.v?")
    recent = c.tense == "recent" and not c.frame.has("gei")
    if recent and c.obj is not None and c.frame.zh[-1] not in "到见":  # 刚 找到
        return words("了", f"{c.id}.v?")
    if c.tense in ("past", "perfect") and not c.neg and not c.frame.has("state"):
        if c.frame.has("exp") and c.tense == "perfect" and not c.adverb:
            return words("过", f"{c.id}.perf", f"{c.id}.v?")
        return words("了", f"{c.id}.perf?", f"{c.id}.v?")
    if c.neg == "never" and c.tense in ("past", "perfect"):
        return words("过", f"{c.id}.perf", f"{c.id}.v?")
    if c.frame.has("zhe") and c.tense in ("prog", "imperfect"):
        return words("着", f"{c.id}.prog?", f"{c.id}.v?")
    return []


def counts(n):
    """How many is said: then a past event has 了."""
    return bool(n.number or n.measure or n.det in ("a", "some", "many"))


def negation(c):
    mark = f"{c.id}.neg"
    if c.neg == "never":
        past = c.tense in ("past", "perfect")
        return words("从来 没" if past else "从来 不", mark)
    if c.neg and c.command:
        return words("不要", mark)
    if c.neg:
        past = (
            c.tense in ("past", "perfect") and not c.modal and not c.frame.has("state")
        )
        return words("没" if past else "不", mark)
    return []


def before_verb(c):
    """Adverb, negation, modal, 会, 在."""
    found = []
    if c.zh_jiu:
        found += words("就", f"{c.zh_jiu}?")
    everybody = c.subj.det == "all" and not c.subj.pronoun
    if everybody:
        found += words("都", f"{c.subj.id}.all")
    if c.adverb:
        found += aligned(c.adverb.row.zh, c.adverb.id)
    daily = c.time and c.time.row.zh.startswith("每") and not c.neg and not c.adverb
    if daily and c.subj.det != "all":
        found += words("都", f"{c.time.id}.1?")
    if c.tense == "recent":
        found += words("刚", f"{c.id}.just")
    found += negation(c)
    if c.modal:
        found += aligned(c.modal.zh, f"{c.id}.m")
    elif c.tense == "future" and not c.shared:
        found += words("要" if c.asks == "why" else "会", f"{c.id}.will")
    going = c.tense in ("prog", "imperfect") and not c.frame.has("state")
    if going and not c.frame.has("zhe") and not c.modal and not c.passive:
        found += words("在", f"{c.id}.prog", f"{c.id}.v?")
    bare = c.place is None and not c.modal and not c.manner
    skill = c.frame.has("skill") and bare  # 会 游泳: can swim
    goes = c.modal or c.tense == "future"
    if (c.frame.has("going") or skill) and not c.shared and goes:
        found += words("去", f"{c.id}.v~")
    if c.manner and c.manner.row.where == "before":
        found += aligned(c.manner.row.zh, c.manner.id)
    return found


def uses_ba(c, skip):
    n = c.obj
    if n is not None and n.pronoun and not n.number and c.frame.key == "eat":
        return skip != "obj"  # 把 它 吃 掉
    if (
        not (c.frame.has("ba") or c.frame.has("gei"))
        or n is None
        or skip == "obj"
        or c.asks in ("obj", "number")
    ):
        return False
    definite = n.pronoun or n.det in DEFINITE or n.name is not None
    if n.number and not n.pronoun and n.det not in DEFINITE:
        definite = False
    if not c.main and not c.shared:
        return False  # 打开 门 的 人
    done = c.tense in ("past", "perfect", "recent") or c.command
    return (
        definite
        and (c.frame.has("gei") or (done and not c.modal))
        and c.asks not in ("place", "time")
    )


def own(c, n, drop=False):
    """在 自己 的 房间 里; 戴上 帽子 for puts on one's hat."""
    if n is None or n.det != "poss" or not is_subject(c, n.owner):
        return n
    if drop and not n.adjs and not n.plural:
        return replace(n, det="bare")
    return replace(n, owner=replace(n.owner, itself=not c.main or not drop))


def is_subject(c, n):
    if n.person < 3 or c.subj.person < 3:
        return (n.person, n.plural) == (c.subj.person, c.subj.plural)
    return n.ref is c.subj.ref


def at(p, c, bare=False):
    """在 … 里"""
    if p.np is None:
        zai = words("在", f"{p.id}.1?") if p.prep.key == "there" else []
        return zai + aligned(p.prep.zh, p.id)
    before = [] if bare else aligned(p.prep.zh, p.id)
    return before + noun_phrase(own(c, p.np)) + aligned(p.prep.zh_after, p.id)


def goal(p):
    """The market, the riverside: where one goes, or comes from."""
    if p.np is None:
        return aligned(p.prep.zh, p.id)
    side = words("边", f"{p.np.id}~") if p.prep.key == "by" else []
    return noun_phrase(p.np) + side


def place_words(c, skip):
    """(before the verb, after it)"""
    if c.asks == "place":
        mark = f"{c.id}.wh"
        if c.frame.has("goal"):
            return [], words("哪里", mark)
        there = words("在", f"{mark}?") + words("哪里", mark)
        return ([], there) if c.frame.has("zhzai") else (there, [])
    if c.place is None or skip in ("where", "place"):
        return [], []
    if c.frame.has("goal") or c.frame.has("goal2"):
        return [], goal(c.place)
    if c.frame.has("from"):
        return words("从", f"{c.id}.p", f"{c.place.id}.1") + goal(c.place), []
    found = at(c.place, c)
    if c.frame.has("zhzai") or c.frame.has("post"):
        return [], found
    return found, []


def object_words(c, skip):
    if c.asks == "obj":
        return words("谁" if c.obj.human else "什么", f"{c.id}.wh")
    if c.asks == "number":
        n = c.obj
        return words("多少", f"{n.id}.d") + noun_words(noun_text(n), n.id)
    if c.obj is None or skip == "obj":
        return []
    drop = c.frame.has("class:wear") or c.frame.key.startswith("finish")
    n = own(c, c.obj, drop) if drop or not c.main else c.obj
    if n.is_a("animal") and n.det == "the" and not n.pronoun:
        n = replace(n, det="that")
    plain = c.tense != "past" and not c.frame.has("gei")
    found = noun_phrase(n, neg=bool(c.neg), plain=plain)
    if n.det == "bare" != c.obj.det:
        found[-1].marks += (f"{c.obj.owner.id}~",)
    return found


def giving(c, skip):
    """(给 somebody before the verb, 给 somebody after it)"""
    if c.to is None or skip == "to":
        return [], []
    to = words("给", f"{c.id}.to", f"{c.id}.v?", f"{head(c.to)}?")
    if c.frame.has("gei") and (c.main or c.shared):
        return [], to
    return to + noun_phrase(c.to), []


def predicate(c, skip) -> list[Word]:
    if c.frame.key in ("be", "become", "exist"):
        return copula(c)
    lead = before_verb(c)
    here, after_place = place_words(c, skip)
    le, long = aspect(c), aligned(c.manner.row.zh, c.manner.id) if duration(c) else []
    if c.frame.has("going") and "." in c.frame.zh and le and le[0].text == "了":
        lead += [] if long else words("去", f"{c.id}.v~")
    if here and here[0].text == "在" and lead and lead[-1].text == "去":
        here = here[1:]  # 去 花园 里 散步
    going = [w for w in lead if w.text == "在"]
    if going and here and here[0].text == "在":
        lead.remove(going[0])
    if c.adverb and c.adverb.row.key == "only":
        lead, here = here + lead, []
    to_before, to_after = giving(c, skip)
    obj, zh = object_words(c, skip), c.frame.zh
    if c.frame.key == "have" and c.neg:
        return lead[:-1] + words("没有", f"{c.id}.neg", f"{c.id}.v") + obj
    if c.passive:
        return passive(c, lead)
    if "_" in zh:
        head, verb = zh.split(" _ ")
        if c.frame.has("from"):
            return lead + here + done_verb(c, verb, le, [])
        return (
            lead
            + words(head, f"{c.id}.p", f"{c.id}.v?")
            + obj
            + done_verb(c, verb, le, [])
        )
    if (
        c.tense == "past"
        and c.asks in ("place", "time")
        and not c.neg
        and not c.modal
        and not c.frame.has("goal")
    ):
        if not (c.obj and counts(c.obj)):
            le = [] if c.frame.has("state") else words("的", f"{c.id}.v?")
    if uses_ba(c, skip):
        return lead + here + to_before + with_ba(c, obj, after_place, to_after, le)
    polite = c.command and not c.neg and c.frame.key == "help"
    verb = verb_words(c, "帮帮" if polite else zh)
    if c.obj is not None and c.obj.pronoun and c.obj.number and c.frame.done:
        verb = result(c)
    if to_after:
        found = verb + to_after + le + noun_phrase(c.to) + obj
    elif c.frame.has("zhzai") or (c.frame.has("post") and after_place):
        zai = after_place[:1] if after_place else []
        stays = verb_words(c, zh)
        if c.frame.has("post"):
            return lead + words("把", f"{c.id}.v?") + obj + stays + after_place
        if long:
            return lead + after_place + stays + le + long
        return lead + stays + zai + after_place[1:]
    elif "." in zh:
        found = done_verb(c, zh, le, long)
    elif long and c.obj is not None and not c.obj.human:
        found = verb_words(c, zh) + le + long + obj
    else:
        found = verb + le + obj + after_place + long
    if c.frame.has("goal") or c.frame.has("goal2"):
        found = verb_words(c, zh) + le + after_place
    if c.purpose:
        found = verb_words(c, zh) + after_place + purpose(c.purpose, []) + le
    return lead + here + to_before + found


def duration(c):
    return c.manner is not None and c.manner.row.where == "after"


def purpose(c, le):
    """去 市场 买 了 面包: the second verb carries the aspect."""
    to_before, _ = giving(c, "")
    obj = object_words(c, "")
    here, _ = place_words(c, "")
    if "." in c.frame.zh:
        return here + done_verb(c, c.frame.zh, le, [])
    verb = verb_words(c, c.frame.zh)
    _, to_after = giving(c, "")
    if to_after:
        return here + verb + to_after + le + noun_phrase(c.to) + obj
    return here + to_before + verb + le + obj


def done_verb(c, text, le, long):
    """游.泳: 游 了 泳, 游 了 两 个 小时 泳; 回来 了."""
    v, noun_mark = f"{c.id}.v", f"{c.id}.v"
    if text.endswith("^"):  # 拉 小提琴: a noun of its own
        text, noun_mark = text[:-1], f"{c.id}.o"
    if "." not in text:
        return words(text, v) + le
    verb, noun = text.split(".")
    if c.frame.has("going") and le and le[0].text == "了" and not long:
        return words(verb + noun, v) + le  # 去 散步 了
    if noun_mark == v and not long and not le:
        return words(verb + noun, v) + le
    return words(verb, v) + le + long + words(noun, noun_mark)


def with_ba(c, obj, after_place, to_after, le):
    ba = words("把", f"{c.id}.v?") + obj
    if after_place:
        verb = verb_words(c, c.frame.zh) + after_place[:1] + le + after_place[1:]
        return ba + verb
    if to_after:
        verb = verb_words(c, c.frame.zh) + to_after + le + noun_phrase(c.to)
        return ba + verb
    return ba + result(c) + le


def result(c):
    """卖 掉: the verb, and what comes of it."""
    done = (c.frame.done or c.frame.zh).split()
    found = words(done[0], f"{c.id}.v")
    return found + [Word(w, (f"{c.id}.p", f"{c.id}.v?")) for w in done[1:]]


def passive(c, lead):
    by = words("被", f"{c.id}.by", f"{c.id}.pass?") + noun_phrase(c.subj)
    le = (
        words("了", f"{c.id}.perf?", f"{c.id}.v?")
        if c.tense in ("past", "perfect")
        else []
    )
    return lead + by + result(c) + ([] if c.neg else le)


def copula(c):
    v, me = f"{c.id}.v", f"{c.id}.comp"
    lead = before_verb(c)
    if c.frame.key == "exist":
        if c.neg:
            return words("没有", f"{c.id}.neg", v) + noun_phrase(c.subj, neg=True)
        return lead + words("有", v) + pivot(c.subj)
    if c.asks == "place":
        return lead + words("在", v) + words("哪里", f"{c.id}.wh")
    if c.place is not None and c.comp is None:
        found = at(c.place, c)
        found[0].marks += (v,)
        return lead + found
    if hasattr(c.comp, "plural"):
        verb = "当" if c.modal or c.frame.key == "become" else "是"
        le = words("了", f"{v}?") if c.tense == "past" else []
        return lead + words(verb, v) + le + words(c.comp.zh, me)
    return quality(c, lead)


def quality(c, lead):
    v, me, row = f"{c.id}.v", f"{c.id}.comp", c.comp
    body = words(row.zh, me)
    if c.degree or c.bare:
        body[0].marks += (f"{v}~",)
    if c.degree == "more":
        return words("比", f"{c.id}.than") + noun_phrase(c.than) + lead + body
    if c.degree == "as":
        other = words("和", f"{c.id}.than") + noun_phrase(c.than)
        return lead + other + words("一样", f"{c.id}.deg") + body
    if row.predicate == "shi":
        return lead + words("是", v) + body + words("的", f"{me}?")
    if row.predicate == "le":
        if c.neg:
            raise Reject
        return (
            lead
            + body
            + ([] if c.bare in ("when", "rel") else words("了", f"{v}?", f"{me}?"))
        )
    if row.predicate == "no":
        raise Reject
    if c.degree == "very":
        return lead + words("非常", f"{c.id}.deg") + body
    if c.bare == "if" and "change" in row.flags and not c.neg:
        return lead + body + words("了", f"{v}?", f"{me}?")
    if row.predicate == "feel":  # 觉得 冷: 冷 alone would mean aloof
        lead += words("觉得", f"{v}?")
    hen = [] if c.neg or c.bare else words("很", f"{v}?")
    if not hen:
        body[0].marks += (f"{v}~",)
    return lead + hen + body


def pivot(n):
    """有 一 个 男孩 在 看 山: who is looking at the mountain."""
    if n.rel is None or n.rel.kind != "subj":
        return noun_phrase(n)
    rel, n.rel = n.rel, None
    found = noun_phrase(n) + clause(rel.clause, skip="subj")
    n.rel = rel
    return found


def belongs(c):
    """这 条 河 是 农民们 的: whose it is."""
    v = f"{c.id}.v"
    every = words("所有", f"{c.subj.id}.all") if c.subj.det == "all" else []
    lead = [w for w in before_verb(c) if w.text != "都"]
    found = noun_phrase(c.obj) + lead + words("是", v) + every + noun_phrase(c.subj)
    found += words("的", f"{v}?")
    return found + (words("吗", f"{c.id}.q~", "q2~") if c.asks == "yes" else [])


# Clauses


def time_words(c):
    found = aligned(c.time.row.zh, c.time.id) if c.time else []
    asked = words(QUESTION[c.asks], f"{c.id}.wh") if c.asks in QUESTION else []
    daily = c.time and c.time.row.zh.startswith("每")
    return asked + found if daily else found + asked  # 为什么 每天 都


def subject(c, skip):
    if c.command:
        return [] if c.neg else words("请", f"{c.id}.please")
    if c.frame.key == "exist":
        return at(c.place, c, bare=True) if c.place else []
    if skip == "subj" or c.shared:
        return []
    if c.asks == "subj":
        return words("谁", str(c.subj.id))
    if skip == "owner":
        return adjectives(c.subj) + noun_words(c.subj.noun.zh, c.subj.id)
    if c.frame.key == "be" and c.subj.det == "the" and not c.place and not c.subj.human:
        return noun_phrase(replace(c.subj, det="that"))  # 猫 很 老 would mean all cats
    return noun_phrase(c.obj if c.passive else c.subj)


def clause(c, skip="", lead=()) -> list[Word]:
    if c.frame.key == "own":
        return belongs(c)
    who, time = subject(c, skip), time_words(c)
    if c.frame.key == "exist" and c.asks != "yes":
        who, time = time + who, []
    rest = predicate(c, skip)
    if isinstance(c.comp, (Clause, Joined)):
        rest += render(c.comp)
    if c.asks == "yes":
        rest += words("吗", f"{c.id}.q~", "q2~")
    if not time or c.asks in QUESTION:
        return who + time + rest
    daily = c.time.row.zh.startswith("每")
    if c.inner or daily or (len(who) <= 2 and not c.front):
        return who + time + rest
    comma = words("，", f"{c.id}.comma") if len(who) > 2 else []
    return time + comma + who + rest


# Sentences


def render(node) -> list[Word]:
    if isinstance(node, Clause):
        return clause(node)
    if isinstance(node, Weather):
        return aligned(node.row.zh_cause if node.cause else node.row.zh, node.id)
    return joined(node)


def joined(node):
    how, mark = node.how, node.id
    start, middle, end = (aligned(part, mark) for part in parts(how.zh))
    if "sub" in how.kinds or how.key == "because":
        return subordinate(node, start, middle, end)
    first, second = render(node.first), render(node.second)
    return start + first + middle + second


def parts(text):
    """ "如果/1 ， -": what stands before, between and after; _ joins words."""
    return ["" if part == "-" else part.replace("_", " ") for part in text.split()]


def subordinate(node, start, middle, end):
    """The condition first: 安娜 因为 累 了 ， 所以 …, where she is one for both."""
    first, second = node.first, node.second
    last = node.swapped or node.how.key == "because"
    comma, time = middle[:1], []
    if (
        node.how.key == "because"
        and isinstance(second, Clause)
        and second.time
        and second.tense != "prog"
    ):
        time = time_words(second)  # 安娜 昨天 因为 …
        second = replace(second, time=None)
    if comma and not last:
        comma[0].marks = (f"{node.id}.comma",)
    one = one_subject(first, second)
    if one and node.how.key == "when" and not last:  # 他 饿 的 时候 吃 奶酪
        who = noun_phrase(first.subj)
        who[-1].marks += (f"{second.subj.id}~",)
        return who + clause(first, skip="subj") + end + then(second, mark=node.id)
    alone = isinstance(first, Weather) and isinstance(second, Clause) and last
    if alone and node.how.key == "when" and second.frame.key not in ("own", "exist"):
        who = subject(second, "")  # 艾玛 下雪 的 时候 打 牌
        return who + start + render(first) + end + clause(second, skip="subj")
    if not one or not last:
        found = time + start + render(first) + end
        return found + comma + middle[1:] + render(second)
    who = noun_phrase(second.subj)
    who[-1].marks += (f"{first.subj.id}~",)
    condition = clause(first, skip="subj")
    if end:
        comma = []
    main = then(second, node.id) if end else clause(second, skip="subj")
    return who + time + start + condition + end + comma + middle[1:] + main


def then(c, mark):
    """唱歌 alone is short: 就 唱歌."""
    rest = clause(c, skip="subj")
    short = len(rest) < 2 or c.frame.key == "go_home"
    return (words("就", f"{mark}.1?") if short else []) + rest


def sentence(node, end) -> list[Word]:
    text = {".": "。", "?": "？", "!": "！"}[end]
    return render(node) + [Word(text, ("end", "q2~") if end == "?" else ("end",))]
