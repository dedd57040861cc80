"""Chinese: classifiers, aspect, 把 and 被, what stands before the verb."""

from dataclasses import replace

from core import Clause, Weather, Word, aligned, end_mark, same, told

QUESTION = {"time": "什么时候", "why": "为什么"}
DEFINITE = ("the", "poss", "own", "this")
END = {".": "。", "?": "？", "!": "！"}


def noun_phrase(n, neg=False, plain=False) -> list[Word]:
    """neg: under a negation, plain: not in a past; then a or some isn't said."""
    if n.light and n.number:
        return n.say("其中") + counted(n, n.number.zh, "n")
    if n.light:
        return n.say("自己" if n.itself else n.pronouns.zh)
    if n.noun is None:
        return n.say(n.name.zh)
    body = adjectives(n) + n.noun_words(noun_text(n))
    if n.name:
        return (possessive(n) if n.owner else []) + body + n.say(n.name.zh, "name")
    unsaid = n.det == "a" and neg or n.det == "some" and plain
    det = [] if unsaid else determiner(n)
    if n.rel is None:
        return det + body
    if n.rel.kind in ("subj", "whose"):  # 那 个 妹妹 是 面包师 的 男人
        return det + relative(n) + body
    return relative(n) + det + body


def noun_text(n):
    group = n.human and n.plural and not n.rel and n.det in ("the", "all")
    return n.noun.zh + "们" * group


def counted(n, number, part):
    """三 本: a number and the classifier."""
    return n.say(number, part) + n.say(n.noun.classifier, f"{part}?")


def adjectives(n):
    found = []
    for k, a in sorted(enumerate(n.adjs), key=lambda item: not item[1].de):
        found += n.say(a.zh, f"a{k}")
        if takes_de(n, a) and not (n.rel and n.human):
            found += n.say("的", f"a{k}?")
    return found


def takes_de(n, a):
    """漂亮 的 花; 新 的 花园 椅子, or the garden would be new."""
    return a.de or n.is_a("compound") and a.zh in ("新", "旧")


def has_de(n):
    return any(takes_de(n, a) for a in n.adjs)


def possessive(n):
    owner = noun_phrase(n.owner)
    if has_de(n):  # 你 那 幅 漂亮 的 画
        return owner + that(n, "?")
    near = n.is_a("kin") and not n.owner.plural
    return owner if near else owner + n.owner.say("的", "?")


def determiner(n):
    if n.measure:  # 三 杯 茶
        count = n.say(n.number.zh, "n") if n.number else n.say("一", "d")
        return count + n.say(n.measure.zh, "m")
    if n.det == "poss":
        return possessive(n)
    if n.det == "own":
        link = that(n, "of?") if has_de(n) else n.say("的", "of")
        return noun_phrase(n.owner) + link
    if n.number:
        return counted(n, n.number.zh, "n")
    if n.det == "this" and n.plural:
        return n.say("这些", "d")
    if n.det in ("a", "this"):
        return counted(n, "一" if n.det == "a" else "这", "d")
    if n.det in ("some", "many"):
        return n.say("一些" if n.det == "some" else "很多", "d")
    single = not n.plural if n.human else n.is_a("that")
    if n.det == "that" or n.det == "the" and (n.rel or single):
        return that(n, "d?")
    return []


def that(n, part):
    """那 个, 那些"""
    return n.say("那些" if n.plural else f"那 {n.noun.classifier}", part)


def relative(n):
    rel = n.rel
    skip = {"subj": "subj", "obj": "obj", "of": "obj"}.get(rel.kind, "")
    return clause(rel.clause, skip) + [Word("的", (rel.mark(), rel.clause.mark("v?")))]


def before_verb(c):
    """Adverb, negation, modal, 会, 在."""
    found = [Word("就", (f"{c.zh_jiu}?",))] if c.zh_jiu else []
    if c.subj.det == "all":
        found += c.subj.say("都", "all")
    found += told(c.adverb, "zh")
    if daily(c) and not c.adverb:
        found += c.time.say("都", "1?")
    if c.tense == "recent":
        found += c.say("刚", "just")
    found += negation(c)
    if c.modal:
        found += aligned(c.modal.zh, c.mark("m"))
    elif c.tense == "future" and not c.shared:
        found += c.say(will(c), "will")
    lasting = c.frame.has("state") or c.frame.has("zhe")
    if c.tense in ("prog", "imperfect") and not lasting:
        found += c.say("在", "prog", "v?")
    if goes(c):
        found += c.say("去", "v~")
    if c.manner and c.manner.row.where == "before":
        found += told(c.manner, "zh")
    return found


def daily(c):
    return c.time and c.time.row.zh.startswith("每")


def will(c):
    """会, or 要 where 会 alone would be: can sing."""
    sure = c.time or c.zh_jiu or c.inner
    can = c.frame.has("yao") and bare(c) and not sure
    return "要" if can or c.asks == "why" else "会"


def goes(c):
    """想 去 散步; 会 游泳 alone would be: can swim."""
    leaves = c.frame.has("going") or c.frame.has("skill") and bare(c)
    return leaves and not c.shared and (c.modal or c.tense == "future")


def bare(c):
    return c.place is None and not c.modal and not c.manner


def negation(c):
    past = c.tense in ("past", "perfect") and not c.modal
    if c.neg == "never":
        return c.say("从来 没" if past else "从来 不", "neg")
    if c.neg and c.command:
        return c.say("不要", "neg")
    if c.neg and c.frame.key == "have":
        return c.say("没有", "neg", "v")
    return c.say("没" if past else "不", "neg") if c.neg else []


def aspect(c):
    """The particle after the verb."""
    if c.modal or c.bare:
        return []
    if c.frame.has("zhe"):
        return c.say("着", "prog?", "v?")
    if not c.main and not c.shared:
        return c.say(aspect_before_noun(c), "v?") if c.tense == "past" else []
    recent = c.tense == "recent" and not c.frame.has("gei")
    if recent and c.obj and c.frame.zh[-1] not in "到见":  # 刚 找到
        return c.say("了", "v?")
    if c.tense == "perfect" and not c.adverb:  # has once, has never
        return c.say("过", "perf", "v?")
    past = c.tense in ("past", "perfect") and not c.neg
    return c.say("了", "perf?", "v?") if past else []


def aspect_before_noun(c):
    """In a relative clause: 卖 了 椅子 的 人, 看 过 书 的 人."""
    if c.obj is None:
        return "" if c.frame.has("from") else "过"
    if c.gap == "obj":
        return "过" if c.obj.human or c.frame.key == "look" else ""
    return "了" if counts(c.obj) or c.frame.done else "过"


def counts(n):
    """How many is said: then a past event has 了."""
    return bool(n.number or n.det in ("a", "some", "many"))


def at(p, c, bare=False):
    """在 … 里"""
    if p.np is None:
        there = p.say("在", "1?") if p.prep.key == "there" else []
        return there + aligned(p.prep.zh, p.id)
    before = [] if bare else aligned(p.prep.zh, p.id)
    return before + noun_phrase(own(c, p.np)) + aligned(p.prep.zh_after, p.id)


def goal(p):
    """The market, the riverside: where one goes, or comes from."""
    if p.np is None:
        return aligned(p.prep.zh, p.id)
    return noun_phrase(p.np) + (p.np.say("边", "~") if p.prep.key == "by" else [])


def place_words(c):
    """(before the verb, after it)"""
    has = c.frame.has
    if c.asks == "place" and has("goal"):
        return [], c.say("哪里", "wh")
    if c.asks == "place":
        found = c.say("在", "wh?") + c.say("哪里", "wh")
    elif c.place is None:
        return [], []
    elif has("goal") or has("goal2"):
        return [], goal(c.place)
    elif has("from"):
        return [Word("从", (c.mark("p"), c.place.mark("1"))), *goal(c.place)], []
    else:
        found = at(c.place, c)
    stays = has("zhzai") or has("post") and c.asks != "place"
    return ([], found) if stays else (found, [])


def own(c, n, drop=False):
    """在 自己 的 房间 里; 戴上 帽子 for puts on one's hat."""
    if n.det != "poss" or not same(n.owner, c.subj):
        return n
    if drop and not n.adjs and not n.plural:
        return replace(n, det="bare")
    return replace(n, owner=replace(n.owner, itself=not (drop and c.main)))


def object_words(c, skip=""):
    n = c.obj
    if c.asks == "obj":
        return c.say("谁" if n.human else "什么", "wh")
    if c.asks == "number":
        return n.say("多少", "d") + n.noun_words(noun_text(n))
    if n is None or skip == "obj":
        return []
    dropped = c.frame.en == "finish" or c.frame.en == "cut" and not c.command
    drop = dropped or c.frame.has("class:wear")  # 切 自己 的 肉 would hurt
    if drop or not c.main:
        n = own(c, n, drop)
    if n.is_a("animal") and n.det == "the" and not n.pronoun:
        n = replace(n, det="that")
    plain = c.tense != "past" and not c.frame.has("gei")
    found = noun_phrase(n, neg=bool(c.neg), plain=plain)
    if n.det == "bare" != c.obj.det:
        found[-1].marks += (c.obj.owner.mark("~"),)
    return found


def giving(c):
    """(给 somebody before the verb, 给 after it)"""
    if c.to is None:
        return [], []
    to = [Word("给", (c.mark("to"), c.mark("v?"), c.to.head()))]
    if c.frame.has("gei") and (c.main or c.shared):
        return [], to
    return to + noun_phrase(c.to), []


def uses_ba(c, skip):
    n, has = c.obj, c.frame.has
    if n is None or skip == "obj" or c.asks in ("obj", "number", "place", "time"):
        return False
    if n.pronoun and not n.number:
        return True  # 把 它 吃 掉
    if not c.main and not c.shared:
        return False  # 打开 门 的 人
    done = c.tense in ("past", "perfect", "recent") or c.command
    disposed = has("gei") or has("ba") and done and not c.modal
    return disposed and (n.pronoun or n.det in DEFINITE)


class Said:
    """The parts of a predicate, before they are put in order."""

    def __init__(self, c, skip):
        self.c, self.lead, self.le = c, before_verb(c), aspect(c)
        self.here, self.there = place_words(c)
        self.obj, (self.to, self.gei) = object_words(c, skip), giving(c)
        lasts = c.manner and c.manner.row.where == "after"
        self.long = told(c.manner, "zh") if lasts else []
        self.ba = uses_ba(c, skip)
        polite = c.frame.key == "help" and c.command and not c.neg
        self.verb = c.say("帮帮" if polite else c.frame.zh, "v")
        self.merge()

    def merge(self):
        """What would be said twice: 在 散步 在 花园 里."""
        c, lead = self.c, self.lead
        done = self.le and self.le[0].text == "了"
        if c.frame.has("going") and done and not self.long:
            lead += c.say("去", "v~")
        if lead and lead[-1].text == "去":  # 去 花园 里 散步
            self.here = self.here[1:]
        going = [w for w in lead if w.text == "在"]
        if going and self.here:
            lead.remove(going[0])
        if c.adverb and c.adverb.row.key == "only":
            self.lead, self.here = self.here + lead, []
        if c.asks in ("place", "time") and c.tense == "past":
            # 安娜 在 哪里 买 的 书: what happened is known, one asks where or when
            many = c.obj is not None and counts(c.obj)
            if not (many or c.modal or c.frame.has("goal") or "_" in c.frame.zh):
                self.le = c.say("的", "v?")

    def rest(self):
        """The verb, and what follows it or stands close before it."""
        c, zh, le = self.c, self.c.frame.zh, self.le
        if c.passive:
            by = c.say("被", "by", "pass?") + noun_phrase(c.subj)
            return by + result(c) + c.say("了", "perf?", "v?")
        if c.frame.key == "have" and c.neg:
            return self.obj
        if "_" in zh:  # 对 音乐 感兴趣, 从 学校 回来
            before, verb = zh.split(" _ ")
            head = [] if c.frame.has("from") else c.say(before, "p", "v?") + self.obj
            return head + done_verb(c, verb, le)
        if self.ba or c.frame.has("post") and self.there:
            return self.with_ba()
        if self.gei:
            return self.verb + self.gei + le + noun_phrase(c.to) + self.obj
        if c.purpose:
            return self.verb + self.there + purpose(c.purpose) + le
        if c.frame.has("zhzai"):
            long = self.long and le + self.long  # 在 家 里 待 了 两 天
            return self.there + self.verb + long if long else self.verb + self.there
        if "." in zh:
            return done_verb(c, zh, le, self.long)
        verb = result(c) if c.obj and c.obj.pronoun else self.verb
        return verb + le + self.obj + self.there + self.long

    def with_ba(self):
        """把 书 放 在 桌子 上, 把 书 送 给 保罗, 把 书 卖 掉"""
        le = self.le if self.ba else []
        ba = self.c.say("把", "v?") + self.obj
        if self.there:
            return ba + self.verb + self.there[:1] + le + self.there[1:]
        if self.gei:
            return ba + self.verb + self.gei + le + noun_phrase(self.c.to)
        return ba + result(self.c) + le


def purpose(c):
    """去 市场 买 面包"""
    obj, (to, gei) = object_words(c), giving(c)
    if "." in c.frame.zh:
        return done_verb(c, c.frame.zh)
    verb = c.say(c.frame.zh, "v")
    if gei:
        return verb + gei + noun_phrase(c.to) + obj
    return to + verb + obj


def done_verb(c, text, le=(), long=()):
    """游.泳: 游泳 了, 游 过 泳, 游 了 两 个 小时 泳; 道.谢: 道 了 谢."""
    verb, _, noun = text.partition(".")
    if noun.endswith("^"):  # 拉 小提琴: a noun of its own
        return c.say(verb, "v") + [*le, *long] + c.say(noun[:-1], "o")
    done = le and le[0].text == "了" and text != "道.谢"
    if long or le and not done:
        return c.say(verb, "v") + [*le, *long] + c.say(noun, "v")
    return c.say(verb + noun, "v") + [*le]


def result(c):
    """卖 掉: the verb, and what comes of it."""
    verb, *rest = (c.frame.done or c.frame.zh).split()
    return c.say(verb, "v") + c.say(" ".join(rest), "p", "v?")


def copula(c):
    lead = before_verb(c)
    if c.frame.key == "exist":
        return lead + c.say("有", "v") + noun_phrase(c.subj)
    if c.place:
        found = at(c.place, c)
        found[0].marks += (c.mark("v"),)
        return lead + found
    if c.trade:
        verb = "当" if c.modal or c.frame.key == "become" else "是"
        le = c.say("了", "v?") if c.tense == "past" else []
        return lead + c.say(verb, "v") + le + c.say(c.comp.zh, "comp")
    return quality(c, lead)


def quality(c, lead):
    row, body = c.comp, c.say(c.comp.zh, "comp")
    if row.predicate == "shi":  # 是 红 的
        return lead + c.say("是", "v") + body + c.say("的", "comp?")
    if c.degree or c.bare or c.neg:  # no 很
        body[0].marks += (c.mark("v~"),)
    le = c.say("了", "v?", "comp?")
    if row.predicate == "le":  # 生病 了
        return lead + body + ([] if c.bare == "when" else le)
    if c.degree == "more":
        return c.say("比", "than") + noun_phrase(c.than) + lead + body
    if c.degree == "as":
        other = c.say("和", "than") + noun_phrase(c.than)
        return lead + other + c.say("一样", "deg") + body
    if c.degree == "very":
        return lead + c.say("非常", "deg") + body
    if c.bare == "if" and "change" in row.flags:  # 如果 饿 了
        return lead + body + le
    if row.predicate == "feel":  # 觉得 冷: 冷 alone would mean aloof
        lead += c.say("觉得", "v?")
    return lead + ([] if c.neg or c.bare else c.say("很", "v?")) + body


def belongs(c):
    """这 条 河 是 农民们 的: whose it is."""
    lead = [w for w in before_verb(c) if w.text != "都"]
    found = noun_phrase(c.obj) + lead + c.say("是", "v")
    return found + noun_phrase(c.subj) + c.say("的", "v?")


def predicate(c, skip):
    if c.frame.key in ("be", "become", "exist"):
        return copula(c)
    said = Said(c, skip)
    words = said.lead + said.here + said.to + said.rest()
    return words + (render(c.comp) if c.reports else [])


def time_words(c):
    asked = c.say(QUESTION.get(c.asks, ""), "wh")
    time = told(c.time, "zh")
    return asked + time if daily(c) else time + asked  # 为什么 每天 都


def subject(c, skip):
    if c.command:
        return [] if c.neg else c.say("请", "please")
    if c.frame.key == "exist":
        return at(c.place, c, bare=True)
    if skip == "subj" or c.shared:
        return []
    if c.asks == "subj":
        return c.subj.say("谁")
    if c.frame.key == "be" and c.subj.det == "the" and not c.place and not c.subj.human:
        return noun_phrase(replace(c.subj, det="that"))  # 猫 很 老 would mean all cats
    return noun_phrase(c.obj if c.passive else c.subj)


def clause(c, skip="") -> list[Word]:
    ma = [Word("吗", (c.mark("q~"), "q2~"))] if c.asks == "yes" else []
    if c.frame.key == "own":
        return belongs(c) + ma
    who, time = subject(c, skip), time_words(c)
    rest = predicate(c, skip) + ma
    first = c.time and c.asks not in QUESTION and not c.inner and not daily(c)
    if not first or len(who) <= 2 and not c.front:
        return who + time + rest
    comma = c.say("，", "comma") if len(who) > 2 else []
    return time + comma + who + rest


def render(node) -> list[Word]:
    if isinstance(node, Clause):
        return clause(node)
    if isinstance(node, Weather):
        return told(node, "zh_cause" if node.cause else "zh")
    # "如果/1 ， -": what stands before, between and after; _ joins words
    parts = (part.strip("-").replace("_", " ") for part in node.how.zh.split())
    start, between, end = (aligned(part, node.id) for part in parts)
    if "sub" in node.how.kinds or node.how.key == "because":
        return subordinate(node, start, between, end)
    return start + render(node.first) + between + render(node.second)


def subordinate(node, start, between, end):
    """The condition first: 安娜 因为 累 了 ， 所以 …, where she is one for both."""
    first, second, how = node.first, node.second, node.how.key
    last = node.swapped or how == "because"  # in English
    time = []
    if how == "because" and second.tense != "prog":  # 安娜 昨天 因为 …
        time, second = time_words(second), replace(second, time=None)
    if not last:
        between[0].marks = (node.mark("comma"),)
    if node.one_subject and (last or how == "when"):
        named, other = (second, first) if last else (first, second)
        who = noun_phrase(named.subj)  # with the mark of the pronoun for it
        who[-1].marks += (other.subj.mark("~"),)
        condition = time + start + clause(first, skip="subj") + end
        rest = clause(second, skip="subj")
        if not end:
            return who + condition + between + rest
        if len(rest) < 2 or second.frame.key == "go_home":
            rest = node.say("就", "1?") + rest  # 唱歌 alone is short
        return who + condition + between[1:] + rest  # 他 饿 的 时候 吃 奶酪
    if isinstance(first, Weather) and how == "when" and last:
        return render(first) + end + clause(second)  # 下雪 的 时候 艾玛 打 牌
    return time + start + render(first) + end + between + render(second)


def sentence(node, end) -> list[Word]:
    return render(node) + end_mark(END[end])
