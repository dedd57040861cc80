"""The gold links of the Village corpus keep the guidelines of data/README.md."""

import re
from collections import Counter
from functools import cache

import pytest

PAIRS = {"en_fr": ("en", "fr"), "en_zh": ("en", "zh"), "fr_zh": ("fr", "zh")}
LINK = re.compile(r"(\d+)([-?])(\d+)")

# Words that may stand without a link: they have no meaning of their own, or the
# other language leaves them out.
FREE = {
    "en": """a an the some of to for at on in by it that and is are am was were been be
        do does did has have i you we he she they them , .""",
    "fr": """le la l' les un une de d' du des à au en y que qu' j' je tu nous il elle
        ils elles et est es suis sont sommes être été a ai as ont avons avait avaient
        fait faisait plus pour pendant se s' bord , .""",
    "zh": "， 的 。",
}
FREE = {lang: set(words.split()) for lang, words in FREE.items()}
CLASSIFIERS = "个 匹 颗 根 本 封 份 首 幅 顶 件 条 张 辆 朵 棵 扇 座 所"

# (column, side of the words, words, the words that they may surely stand for)
SURELY = [
    ("en_fr", 0, "do does did", ""),
    ("en_fr", 0, "the", "le la l' les du des au aux"),
    ("en_fr", 0, "a an", "un une de d' des"),
    ("en_fr", 0, "to", "à au aux pour"),
    ("en_fr", 0, "up away off", ""),
    ("en_fr", 1, "ne n' est-ce se", ""),
    ("en_fr", 1, "du", "the of some from about 's after back a"),
    ("en_zh", 0, "the do does did up away off", ""),
    ("en_zh", 0, "a an", "一"),
    ("en_zh", 0, "to", "给"),
    ("en_zh", 0, "is are am was were", "是 在 有 没有"),
    ("en_zh", 1, "很 吗 了 着 把 就 地 掉 " + CLASSIFIERS, ""),
    ("en_zh", 1, "的", "'s of who whose that where"),
    ("en_zh", 1, "过", "has have"),
    ("en_zh", 1, "被", "by"),
    ("en_zh", 1, "天气", "weather"),
    ("fr_zh", 0, "ne n' est-ce se", ""),
    ("fr_zh", 1, "很 吗 了 着 把 就 地 掉 " + CLASSIFIERS, ""),
    ("fr_zh", 1, "的", "de d' du des qui que qu' dont où"),
    ("fr_zh", 1, "过", "a ai as ont avons"),
    ("fr_zh", 1, "被", "par"),
]
# words that are surely linked wherever each occurs once
COUNTERPARTS = {
    "en_fr": """not-pas never-jamais but-mais when-quand because-parce if-si also-aussi
        two-deux three-trois in-dans behind-derrière whose-dont cannot-pas
        ?-? .-. !-! violin-violon cards-cartes football-football very-très
        older-plus than-que play-jouer""",
    "en_zh": """never-从来 but-但是 when-时候 because-因为 if-如果 also-也 two-两
        three-三 in-里 behind-后面 near-附近 cannot-不 cannot-能 ?-？ .-。 !-！
        very-非常 than-比 by-被 what-什么 where-哪里 many-很多 violin-小提琴
        cards-牌 football-足球""",
    "fr_zh": """jamais-从来 mais-但是 parce-因为 si-如果 aussi-也 deux-两 derrière-后面
        près-附近 ?-？ .-。 !-！ très-非常 que-比 par-被 beaucoup-很多""",
}


@cache
def parse(text):
    """(sure, possible) of a column: sets of pairs."""
    found = [(int(i), kind, int(j)) for i, kind, j in LINK.findall(text)]
    return [{(i, j) for i, kind, j in found if kind == mark} for mark in "-?"]


def bad_format(a, b, text):
    """Links that are unsorted, double, out of range, or no links."""
    links = LINK.findall(text)
    pairs = [(int(i), int(j)) for i, _, j in links]
    if text != " ".join(map("".join, links)):
        yield "not a link"
    if pairs != sorted(set(pairs)):
        yield "unsorted, or surely and possibly"
    if any(i >= len(a) or j >= len(b) for i, j in pairs):
        yield "out of range"


def bad_copies(a, b, text):
    """A word that surely stands for two copies of one word."""
    if len({*a}) == len(a) and len({*b}) == len(b):
        return
    sure, _ = parse(text)
    right = Counter((i, b[j]) for i, j in sure)
    left = Counter((j, a[i]) for i, j in sure)
    yield from (a[i] for (i, _), n in right.items() if n > 1)
    yield from (b[j] for (j, _), n in left.items() if n > 1)


def bad_gaps(a, b, text, langs=("en", "fr")):
    """Words of meaning without a link."""
    linked = [set(side) for side in zip(*set.union(*parse(text)), strict=True)]
    for words, there, lang in zip((a, b), linked, langs, strict=True):
        yield from (
            w for k, w in enumerate(words) if k not in there and w not in FREE[lang]
        )


def bad_sure(a, b, text, rule):
    _, side, words, allowed = rule
    for pair in parse(text)[0]:
        here, there = (a, b)[side][pair[side]], (b, a)[side][pair[1 - side]]
        if here in words.split() and there not in allowed.split():
            yield f"{here}-{there}"


def bad_counterpart(a, b, text, known):
    sure, _ = parse(text)
    for x, y in known:
        if y == "que" and "qu'" in b or x == "que" and "qu'" in a:
            continue
        if a.count(x) == b.count(y) == 1 and (a.index(x), b.index(y)) not in sure:
            yield f"{x} {y}"


def bad_place(a, b, text):
    """in stands for 在 and for 里."""
    if a.count("in") == b.count("在") == b.count("里") == 1 and not {
        "is",
        "there",
    } & set(a) | {"去"} & set(b):
        sure, _ = parse(text)
        i = a.index("in")
        if ((i, b.index("里")) in sure) != ((i, b.index("在")) in sure):
            yield "in 在 里"


def bad_ne(a, b, text):
    """ne stands, perhaps, for what pas, jamais or que stand for."""
    _, possible = parse(text)
    all_ = set.union(*parse(text))
    negated = {i for i, j in all_ if b[j] in ("pas", "jamais", "que", "qu'")}
    yield from (a[i] for i, j in possible if b[j] in ("ne", "n'") and i not in negated)


def known(pair):
    return [tuple(words.rsplit("-", 1)) for words in COUNTERPARTS[pair].split()]


def faults(village, pair, check, *args):
    """The first rows at fault."""
    found, sides = [], map(village.words, PAIRS[pair])
    for row, a, b in zip(village.all(), *sides, strict=True):
        text = getattr(row, pair)
        for fault in check(a, b, text, *args):
            found.append((fault, " ".join(a), " ".join(b), text))
    return found[:3] and [len(found), *found[:3]]


@cache
def joined(village, pair):
    """Each two words that are surely linked, with a row where they are."""
    found, sides = {}, map(village.words, PAIRS[pair])
    for row, words, others in zip(village.all(), *sides, strict=True):
        for i, j in parse(getattr(row, pair))[0]:
            found.setdefault((words[i], others[j]), row)
    return found


# She … she: both stood for both in the corpus's first edition.
FIRST = (
    "she swims but she is poor".split(),
    "elle nage mais elle est pauvre".split(),
    "0-0 0-3 1-1 2-2 3-0 3-3 4-4 5-5",
)
CAT = "the cat sleeps .".split(), "le chat dort .".split()


@pytest.mark.parametrize("text", ["0-0 1-1 3-4", "1-1 0-0", "0-0 0?0", "0-0 1+1"])
def test_format_is_checked(text):
    assert list(bad_format(*CAT, text))
    assert not list(bad_format(*CAT, "0-0 1?0 1-1 2-2"))


def test_copies_are_found():
    assert list(bad_copies(*FIRST)) == ["she", "she", "elle", "elle"]
    assert not list(bad_copies(*FIRST[:2], "0-0 0?3 3-3"))


def test_gaps_are_found():
    assert list(bad_gaps(*CAT, "0-0 2-2 3-3")) == ["cat", "chat"]
    assert not list(bad_gaps(*CAT, "1-1 2?2"))


@pytest.mark.parametrize("rule", SURELY, ids=str)
def test_a_sure_link_that_no_guideline_allows_is_found(rule):
    word, allowed = rule[2].split()[0], rule[3].split()
    a, b = (["x"], [word]) if rule[1] else ([word], ["x"])
    assert list(bad_sure(a, b, "0-0", rule))
    assert not list(bad_sure(a, b, "0?0", rule))
    if allowed:
        a, b = (allowed[:1], [word]) if rule[1] else ([word], allowed[:1])
        assert not list(bad_sure(a, b, "0-0", rule))


def test_other_checkers_find_faults():
    assert list(bad_counterpart(["not"], ["pas"], "0?0", known("en_fr")))
    assert not list(bad_counterpart(["not"], ["pas"], "0-0", known("en_fr")))
    at = "i sing in here".split(), "我 在 这 里 唱歌".split()
    assert list(bad_place(*at, "2-3"))
    assert not list(bad_place(*at, "2-1 2-3"))
    ne = "i do not sing".split(), "je ne chante pas".split()
    assert list(bad_ne(*ne, "1?1 2-3"))
    assert not list(bad_ne(*ne, "2?1 2-3"))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("check", [bad_format, bad_copies, bad_counterpart, bad_gaps])
def test_links(village, pair, check):
    more = {bad_counterpart: [known(pair)], bad_gaps: [PAIRS[pair]]}
    assert not faults(village, pair, check, *more.get(check, []))


@pytest.mark.parametrize("rule", SURELY, ids=str)
def test_sure_links(village, rule):
    linked = joined(village, rule[0])
    assert not [
        linked[a, b] for a, b in linked if list(bad_sure([a], [b], "0-0", rule))
    ]


def test_ne(village):
    assert not faults(village, "en_fr", bad_ne)


def test_places(village):
    assert not faults(village, "en_zh", bad_place)


def test_the_third_pair_agrees_with_the_other_two(village):
    """What French and Chinese words share with an English one, they share."""
    agreed = total = 0
    for row in village["test"]:
        to_fr, to_zh = parse(row.en_fr)[0], parse(row.en_zh)[0]
        both = {(j, k) for i, j in to_fr for other, k in to_zh if i == other}
        agreed += len(both & set.union(*parse(row.fr_zh)))
        total += len(both)
    assert agreed >= 0.97 * total > 10_000
