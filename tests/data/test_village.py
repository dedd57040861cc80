"""The Village corpus: files, splits, alignments, and the grammar of its sentences.

The checkers know the languages from their own small lists, not from the generator.
Each is tried on a wrong example first.
"""

import gzip
import hashlib
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "data"
SPLITS = ("train", "valid", "test", "long")
COLUMNS = ("en", "fr", "zh", "en-fr", "en-zh", "fr-zh", "tags")
BUCKETS = ((3, 6), (7, 10), (11, 15), (16, 20), (21, 25), (26, 30))

# Words that may stand without a link.
EN_FUNCTION = set(
    "a an the of to 's do does did am is are was were it in on at for , . ?".split()
)
FR_FUNCTION = set(
    """le la l' les un une de d' du des au aux à en pendant il suis es est sommes sont
    était étaient ai as a avons ont avait avaient pour , . ?""".split()
)
ZH_FUNCTION = set("， 。 ？".split())

EXAMPLES = {
    ("i love you .", "je t' aime .", "我 爱 你 。"),
    ("i love to eat apples .", "j' aime manger des pommes .", "我 爱 吃 苹果 。"),
}
HELD_OUT = """red door, white horse, green hat, blue boat, yellow flower, old bridge,
small duck, big tree, new chair, beautiful garden, young fisherman, black dog,
good doctor, fresh egg, hot milk, white dress"""
HELD_OUT = [tuple(p.split()) for p in re.split(r",\s*", HELD_OUT)]


@cache
def rows(split):
    with gzip.open(DATA / "village" / f"{split}.tsv.gz", "rt", encoding="utf-8") as f:
        header, *lines = f.read().splitlines()
    assert tuple(header.split("\t")) == COLUMNS
    return [line.split("\t") for line in lines]


@cache
def train_words(k):
    return Counter(w for r in rows("train") for w in r[k].split())


@cache
def every_row():
    return [r for s in SPLITS for r in rows(s)]


def column(k):
    return [r[k] for r in every_row()]


def found(check, sentences, limit=3):
    """The first problems that `check` reports over the sentences."""
    out = []
    for s in sentences:
        out += [(problem, s) for problem in check(s)]
        if len(out) >= limit:
            break
    return out[:limit]


# ------------------------------------------------------------------- checkers


def bad_elision(sentence):
    """le before a vowel, l' before a consonant …; hibou has an aspirated h."""
    cut = {"le", "la", "je", "me", "te", "se", "ne", "de", "que"}
    out = []
    for a, b in pairwise(sentence.split()):
        vowel = b[0] in "aeiouhàâéèêîôœ" and not b.startswith("hibou")
        if a in cut and vowel or a == "si" and b in ("il", "ils"):
            out.append(f"{a} {b}")
        if a.endswith("'") and not vowel:
            out.append(f"{a} {b}")
        if a in ("ma", "ta", "sa", "ce", "vieux", "nouveau", "beau") and vowel:
            what = noun(b)
            if what and not what[1]:
                out.append(f"{a} {b}")
        if a in ("cet", "vieil", "nouvel", "bel") and not vowel:
            out.append(f"{a} {b}")
    return out


def bad_contraction(sentence):
    # After a verb, le and les would be pronouns: the corpus has no "de le voir".
    pairs = {("de", "le"), ("à", "le"), ("de", "les"), ("à", "les"), ("de", "des")}
    return [f"{a} {b}" for a, b in pairwise(sentence.split()) if (a, b) in pairs]


FEMININE = set(
    """institutrice infirmière chanteuse cuisinière femme fille grand-mère mère sœur
    tante vache chèvre poule souris pomme poire cerise carotte viande soupe eau
    lettre histoire chanson musique robe clé chaise table charrette fleur porte
    fenêtre maison boîte école église forêt rivière cuisine ferme boulangerie
    gare place colline bibliothèque auberge grange lune étoile montagne chambre
    tasse heure semaine année""".split()
)
MASCULINE = set(
    """boulanger fermier médecin pêcheur facteur berger peintre menuisier jardinier
    maire homme garçon enfant grand-père père frère oncle fils ami voisin chien
    chat cheval canard oiseau lapin âne hibou renard poisson œuf gâteau
    champignon pain fromage riz miel lait thé café vin livre journal tableau
    chapeau manteau panier parapluie vélo bateau violon arbre cadeau marché
    jardin lac pont village champ magasin hôpital moulin lit verre morceau bol
    kilo matin soir jour dimanche""".split()
)
IRREGULAR = {
    "chevaux": "cheval",
    "oiseaux": "oiseau",
    "gâteaux": "gâteau",
    "tableaux": "tableau",
    "chapeaux": "chapeau",
    "bateaux": "bateau",
    "cadeaux": "cadeau",
    "morceaux": "morceau",
}
# one row for each adjective: m.sg, f.sg, m.pl, f.pl
FORMS = [
    f.split()
    for f in """petit petite petits petites
    grand grande grands grandes
    vieux|vieil vieille vieux vieilles
    jeune jeune jeunes jeunes
    beau|bel belle beaux belles
    bon bonne bons bonnes
    nouveau|nouvel nouvelle nouveaux nouvelles
    long longue longs longues
    rouge rouge rouges rouges
    blanc blanche blancs blanches
    noir noire noirs noires
    vert verte verts vertes
    bleu bleue bleus bleues
    jaune jaune jaunes jaunes
    frais fraîche frais fraîches
    chaud chaude chauds chaudes
    froid froide froids froides
    sucré sucrée sucrés sucrées
    lourd lourde lourds lourdes
    vide vide vides vides
    cher chère chers chères
    fatigué fatiguée fatigués fatiguées
    heureux heureuse heureux heureuses
    triste triste tristes tristes
    occupé occupée occupés occupées
    gentil gentille gentils gentilles
    riche riche riches riches
    pauvre pauvre pauvres pauvres
    célèbre célèbre célèbres célèbres
    fort forte forts fortes
    fâché fâchée fâchés fâchées
    dernier dernière derniers dernières
    prochain prochaine prochains prochaines""".split("\n")
]
SLOTS = {}  # form -> the (gender, plural) it can have
for _forms in FORMS:
    for _k, _cell in enumerate(_forms):
        for _form in _cell.split("|"):
            SLOTS.setdefault(_form, set()).add(("mf"[_k % 2], _k > 1))
BEFORE = {f for forms in FORMS[:8] for cell in forms for f in cell.split("|")}
DETERMINERS = {
    "le": ("m", False),
    "la": ("f", False),
    "l'": (None, False),
    "les": (None, True),
    "un": ("m", False),
    "une": ("f", False),
    "du": ("m", False),
    "des": (None, True),
    "au": ("m", False),
    "aux": (None, True),
    "ce": ("m", False),
    "cet": ("m", False),
    "cette": ("f", False),
    "ces": (None, True),
    "mes": (None, True),
    "tes": (None, True),
    "ses": (None, True),
    "nos": (None, True),
    "leurs": (None, True),
    "ma": ("f", False),
    "ta": ("f", False),
    "sa": ("f", False),
    "notre": (None, False),
    "leur": (None, False),
    "deux": (None, True),
    "trois": (None, True),
    "quatre": (None, True),
    "cinq": (None, True),
    "dix": (None, True),
    "chaque": (None, False),
    "mon": (None, False),
    "ton": (None, False),
    "son": (None, False),
}


def noun(word):
    """(gender, plural or None) of a French noun of the corpus, else None."""
    if word in ("souris", "fils"):
        return ("f" if word == "souris" else "m"), None
    base = IRREGULAR.get(word, word)
    plural = base != word
    if base not in FEMININE | MASCULINE and base.endswith("s"):
        base, plural = base[:-1], True
    if base in FEMININE:
        return "f", plural
    return ("m", plural) if base in MASCULINE else None


def fits(slot, gender, plural):
    g, n = slot
    return (g is None or g == gender) and (plural is None or n == plural)


def bad_agreement(sentence):
    """Determiner + adjective + noun + adjective must agree in gender and number."""
    words, out = sentence.split(), []
    for k, w in enumerate(words):
        what = noun(w)
        if what is None:
            continue
        gender, plural = what
        j = k - 1
        while j >= 0 and words[j] in BEFORE:
            if not any(fits(s, gender, plural) for s in SLOTS[words[j]]):
                out.append(f"{words[j]} {w}")
            j -= 1
        if j >= 0 and words[j] in DETERMINERS:
            if not fits(DETERMINERS[words[j]], gender, plural):
                out.append(f"{words[j]} … {w}")
        after = words[k + 1] if k + 1 < len(words) else ""
        if after in SLOTS and not any(fits(s, gender, plural) for s in SLOTS[after]):
            out.append(f"{w} {after}")
    return out


PRONOUNS = {
    "il": ("m", False),
    "elle": ("f", False),
    "ils": ("m", True),
    "elles": ("f", True),
}
ETRE = {"est", "sont", "était", "étaient"}
PARTICIPLES = {}
for _p in ("allé", "revenu", "resté", "arrivé", "reposé", "promené"):
    for _k, _end in enumerate(("", "e", "s", "es")):
        PARTICIPLES[_p + _end] = {("mf"[_k % 2], _k > 1)}


def bad_predicate(sentence):
    """il est contente, elles sont allés: pronoun, être, adjective or participle."""
    words, out = sentence.split(), []
    for k, w in enumerate(words):
        if w not in PRONOUNS:
            continue
        rest = [
            x
            for x in words[k + 1 : k + 6]
            if x not in ("ne", "n'", "pas", "se", "s'", "très")
        ]
        if len(rest) > 1 and rest[0] in ETRE:
            slots = SLOTS.get(rest[1]) or PARTICIPLES.get(rest[1])
            if slots and PRONOUNS[w] not in slots:
                out.append(" ".join([w, *rest[:2]]))
    return out


CLASSIFIER = {
    "位": "医生 画家 村长 老师 护士 歌手 厨师",
    "只": "狗 猫 山羊 鸭子 母鸡 鸟 兔子 老鼠 猫头鹰 狐狸",
    "匹": "马",
    "头": "牛 驴",
    "颗": "樱桃",
    "根": "胡萝卜",
    "本": "书",
    "封": "信",
    "份": "报纸 礼物",
    "首": "歌",
    "幅": "画",
    "顶": "帽子",
    "件": "大衣",
    "条": "裙子 船 鱼",
    "把": "钥匙 雨伞 椅子 小提琴",
    "张": "桌子",
    "辆": "自行车 马车",
    "朵": "花",
    "棵": "树",
    "扇": "门 窗户",
    "座": "房子 教堂 桥 谷仓 磨坊",
    "所": "学校",
    "家": "客栈",
    "个": "面包师 农夫 渔夫 邮递员 牧羊人 木匠 园丁 男人 女人 男孩 女孩 孩子 "
    "妹妹 朋友 苹果 梨 "
    "老人 老妇人 鸡蛋 蛋糕 蘑菇 故事 篮子 盒子 花园 村子 小时 星期天",
    "块": "面包 奶酪 肉 蛋糕",
    "杯": "水 牛奶 茶 咖啡 葡萄酒",
    "碗": "汤 米饭",
    "篮": "苹果 梨 樱桃 蘑菇 鸡蛋 胡萝卜",
    "公斤": "苹果 梨 樱桃 胡萝卜 肉 奶酪",
}
CLASSIFIER = {c: set(words.split()) for c, words in CLASSIFIER.items()}
COUNTED = set().union(*CLASSIFIER.values())
NUMBERS = set("一 两 三 四 五 十 这 每".split())


def bad_classifier(sentence):
    """一 本 苹果, and a number without a classifier."""
    words, out = sentence.split(), []
    for k, w in enumerate(words):
        if w not in NUMBERS:
            continue
        cl = words[k + 1]
        if cl not in CLASSIFIER:
            out.append(f"{w} {cl}")
            continue
        # the head: a noun that is counted, after a relative clause if there is one
        rest = words[k + 2 :]
        ends = [j for j, x in enumerate(rest) if x in "，。？"]
        rest = rest[: ends[0]] if ends else rest
        heads = [x for x in rest if x in COUNTED]
        if not heads or not any(x in CLASSIFIER[cl] for x in heads):
            out.append(f"{w} {cl} {''.join(rest)}")
        elif "的" not in rest and heads[0] not in CLASSIFIER[cl]:
            out.append(f"{w} {cl} {heads[0]}")
    return out


def bad_le(sentence):
    """没 with 了 in one clause; 不 with 了; 了 twice."""
    out = []
    for part in re.split("[，。？]", sentence):
        words = part.split()
        if "了" in words and ("没" in words or "不" in words or "没有" in words):
            out.append(part)
        if any(a == b for a, b in pairwise(words)):
            out.append(part)
    return out


def bad_he(sentence):
    """和 joins nouns; here it always means "with" and comes with 一起."""
    words = sentence.split()
    return ["和"] if words.count("和") != words.count("一起") else []


def bad_links(a, b, links, free_a, free_b):
    """Index out of range, unsorted links, or a content word without a link."""
    a, b = a.split(), b.split()
    pairs = [tuple(map(int, x.split("-"))) for x in links.split()]
    out = []
    if pairs != sorted(set(pairs)):
        out.append("not sorted")
    for words, free, linked in (
        (a, free_a, {i for i, _ in pairs}),
        (b, free_b, {j for _, j in pairs}),
    ):
        if linked and not 0 <= min(linked) <= max(linked) < len(words):
            out.append("out of range")
        out += [w for k, w in enumerate(words) if k not in linked and w not in free]
    return out


def not_a_function(sources, targets):
    """Sources that have two different targets."""
    first, out = {}, []
    for s, t in zip(sources, targets, strict=True):
        if first.setdefault(s, t) != t:
            out.append(s)
    return out


def repeated(lists):
    """Sentences that occur twice, within a list or in two of them."""
    return [s for s, n in Counter(x for xs in lists for x in xs).items() if n > 1]


def pairs_of(thing):
    """The noun's forms: door, doors."""
    return {thing, thing + ("es" if thing.endswith("s") else "s")}


def has_pair(sentence, pair):
    return any(
        a == pair[0] and b in pairs_of(pair[1]) for a, b in pairwise(sentence.split())
    )


@cache
def neighbours(split):
    """(word, next word) -> the rows that have them side by side."""
    out = {}
    for r in rows(split):
        for two in pairwise(r[0].split()):
            out.setdefault(two, []).append(r)
    return out


def with_pair(split, pair):
    return [
        r for n in pairs_of(pair[1]) for r in neighbours(split).get((pair[0], n), ())
    ]


# ----------------------------------------------- each checker finds a mistake


@pytest.mark.parametrize(
    ("check", "wrong", "right"),
    [
        (bad_elision, "je aime le ami", "j' aime l' ami"),
        (bad_elision, "l' hibou dort", "le hibou dort"),
        (bad_elision, "il ne aime que elle", "il n' aime qu' elle"),
        (bad_elision, "si il pleut", "s' il pleut"),
        (bad_elision, "ce oiseau", "cet oiseau"),
        (bad_elision, "le vieux arbre", "le vieil arbre"),
        (bad_contraction, "la fille de le boulanger", "la fille du boulanger"),
        (bad_contraction, "il va à les champs", "il va aux champs"),
        (bad_agreement, "la boulanger", "le boulanger"),
        (bad_agreement, "un porte rouge", "une porte rouge"),
        (bad_agreement, "la porte vert", "la porte verte"),
        (bad_agreement, "les petit chats", "les petits chats"),
        (bad_agreement, "le chevaux", "les chevaux"),
        (bad_predicate, "elle est fatigué .", "elle est fatiguée ."),
        (bad_predicate, "ils sont allées .", "ils sont allés ."),
        (bad_predicate, "elle s' est promené .", "elle s' est promenée ."),
        (bad_classifier, "一 本 苹果 。", "一 个 苹果 。"),
        (bad_classifier, "两 狗 。", "两 只 狗 。"),
        (bad_le, "他 没 买 了 苹果 。", "他 没 买 苹果 。"),
        (bad_le, "他 很 很 累 。", "他 很 累 。"),
        (bad_he, "他 唱歌 和 跳舞 。", "他 和 狗 一起 玩 。"),
    ],
)
def test_checkers(check, wrong, right):
    assert check(wrong)
    assert not check(right)


def test_link_checker():
    good = ("the cat sleeps .", "le chat dort .", "0-0 1-1 2-2 3-3")
    assert not bad_links(*good, EN_FUNCTION, FR_FUNCTION)
    for links in ("0-0 1-1 2-2 3-4", "1-1 0-0 2-2 3-3", "0-0 1-1 3-3"):
        assert bad_links(*good[:2], links, EN_FUNCTION, FR_FUNCTION)


def test_list_checkers():
    assert repeated([["a"], ["b", "a"]]) == ["a"]
    assert not repeated([["a"], ["b"]])
    assert not_a_function(["a", "a"], ["x", "y"]) == ["a"]
    assert not not_a_function(["a", "a"], ["x", "x"])
    assert has_pair("the red doors .", ("red", "door"))
    assert not has_pair("the red house and the door .", ("red", "door"))


# ------------------------------------------------------------------ the files


@pytest.mark.slow
def test_regenerated_files_are_identical():
    """Also in the datasheet: its tables and SHA256SUMS are compared too."""
    script = DATA / "village" / "generate.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_check_notices_a_change(tmp_path):
    """The comparison that --check makes, on files that differ by one byte."""
    sums = (DATA / "SHA256SUMS").read_text().splitlines()
    changed = bytearray((DATA / "village" / "test.tsv.gz").read_bytes())
    changed[-1] ^= 1
    digest = hashlib.sha256(changed).hexdigest()
    assert not any(line.startswith(digest) for line in sums)


def test_checksums():
    lines = (DATA / "SHA256SUMS").read_text().splitlines()
    names = [x.split("  ")[1] for x in lines if "  village/" in x]
    assert names == [f"village/{s}.tsv.gz" for s in SPLITS]
    for line in lines:
        digest, name = line.split("  ")
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == digest


def test_columns():
    assert not [r for r in every_row() if len(r) != len(COLUMNS)]
    assert not [
        x
        for k in range(3)
        for x in column(k)
        if x != x.lower() or "  " in x or x.strip() != x
    ]


def test_sizes():
    assert len(rows("train")) >= 20_000
    assert len(rows("valid")) == len(rows("test")) == 1_000
    assert len(rows("long")) >= 500


@pytest.mark.parametrize("k", range(3))
def test_no_sentence_twice(k):
    assert not repeated([[r[k] for r in rows(s)] for s in SPLITS])


@pytest.mark.parametrize("k", (1, 2))
def test_one_translation_each(k):
    assert not not_a_function(column(0), column(k))


@pytest.mark.parametrize("k", range(3))
def test_lengths(k):
    for split in SPLITS:
        lengths = [len(r[k].split()) for r in rows(split)]
        low, high = (31, 60) if split == "long" else (3, 30)
        assert low <= min(lengths) and max(lengths) <= high
        if split != "long" and k == 0:
            for low, high in BUCKETS:
                assert sum(low <= n <= high for n in lengths) >= 0.1 * len(lengths)


# ------------------------------------------------------------------- language


@pytest.mark.parametrize(
    "check", [bad_elision, bad_contraction, bad_agreement, bad_predicate]
)
def test_french(check):
    assert not found(check, column(1))


@pytest.mark.parametrize("check", [bad_classifier, bad_le, bad_he])
def test_chinese(check):
    assert not found(check, column(2))


def test_agreement_check_sees_the_nouns():
    """Every French noun after an article is known to the checker."""
    words = Counter(
        b
        for s in column(1)
        for a, b in pairwise(s.split())
        if a in ("un", "une", "cette", "mes", "deux", "ces") and b not in SLOTS
    )
    assert len(words) > 100
    assert not [w for w in words if noun(w) is None]


@pytest.mark.parametrize(
    ("a", "b", "links", "free_a", "free_b"),
    [
        (0, 1, 3, EN_FUNCTION, FR_FUNCTION),
        (0, 2, 4, EN_FUNCTION, ZH_FUNCTION),
        (1, 2, 5, FR_FUNCTION, ZH_FUNCTION),
    ],
)
def test_alignments(a, b, links, free_a, free_b):
    bad = []
    for r in every_row():
        bad += [
            (x, r[a], r[b]) for x in bad_links(r[a], r[b], r[links], free_a, free_b)
        ]
    assert not bad[:3]


@pytest.mark.parametrize("k", range(3))
def test_words_are_frequent(k):
    """Few words, each often in train; nothing unknown in the other splits."""
    train = train_words(k)
    assert 250 <= len(train) <= 650
    assert min(train.values()) >= 15
    for split in SPLITS[1:]:
        assert not {w for r in rows(split) for w in r[k].split()} - set(train)


# ------------------------------------------------------------ held-out things


@pytest.mark.parametrize("pair", HELD_OUT, ids=" ".join)
def test_held_out_pairs(pair):
    for split in ("train", "valid", "long"):
        assert not with_pair(split, pair)
    there = with_pair("test", pair)
    assert all(has_pair(r[0], pair) for r in there)
    assert len(there) >= 3
    assert all("held-out-pair" in r[6].split(",") for r in there)
    train = train_words(0)
    assert train[pair[0]] >= 100
    assert sum(train[n] for n in pairs_of(pair[1])) >= 100


def test_source_examples():
    tagged = {tuple(r[:3]) for r in rows("test") if "source-example" in r[6].split(",")}
    assert tagged == EXAMPLES
    others = {r[0] for s in SPLITS if s != "test" for r in rows(s)}
    assert not {e[0] for e in EXAMPLES} & others
    row = next(r for r in rows("test") if r[0] == "i love to eat apples .")
    assert row[3] == "0-0 1-1 3-2 4-4 5-5"
    assert row[4] == "0-0 1-1 3-2 4-3 5-4"


# ------------------------------------------------------------------ phenomena

# recounted on the surface, where the surface shows the phenomenon
SURFACE = {
    "elision": (1, lambda w: any(x.endswith("'") for x in w)),
    "zh-ma": (2, lambda w: "吗" in w),
    "question": (0, lambda w: w[-1] == "?"),
    "zh-le": (2, lambda w: "了" in w),
    "because": (0, lambda w: "because" in w),
    "ne-pas": (1, lambda w: "pas" in w),
    "if": (0, lambda w: "if" in w),
    "when": (0, lambda w: "when" in w),
    "but": (0, lambda w: "but" in w),
    "future": (0, lambda w: "will" in w),
    "relative-subject": (1, lambda w: "qui" in w),
}
LISTED = """adj-swap adj-before ne-pas elision contraction clitic fr-past
relative-subject relative-object zh-relative zh-classifier zh-de-possessive zh-le
zh-ma zh-place-before-verb zh-time-before-verb possession dative question negation
coordination because when if""".split()


def stated_counts():
    """tag -> sentences in each split, as the datasheet's table says."""
    text = (DATA / "README.md").read_text(encoding="utf-8")
    part = text.split("<!-- phenomena: begin -->")[1].split("<!-- phenomena: end -->")[
        0
    ]
    lines = re.findall(r"\| `([\w-]+)` \|([^\n]*)\|", part)
    return {
        t: [int(x.replace(",", "")) for x in cells.split("|")] for t, cells in lines
    }


def test_datasheet_counts():
    stated = stated_counts()
    count = {
        s: Counter(t for r in rows(s) for t in r[6].split(",") if t) for s in SPLITS
    }
    assert set(stated) == set().union(*count.values())
    assert stated == {t: [count[s][t] for s in SPLITS] for t in stated}


@pytest.mark.parametrize("tag", LISTED)
def test_phenomenon_is_frequent(tag):
    assert stated_counts()[tag][0] >= 200


@pytest.mark.parametrize("tag", sorted(SURFACE))
def test_tags_match_the_surface(tag):
    k, seen = SURFACE[tag]
    wrong = [
        r[k] for r in every_row() if seen(r[k].split()) != (tag in r[6].split(","))
    ]
    assert not wrong[:3]
