"""Languages by their codes, and files whose columns are the other way round."""

import pytest

from utils.corpora import load_village
from utils.data import Pair
from utils.languages import COMMONEST, LONGER, check_language, likeness, look_swapped
from utils.text import tokenize

TEXTS = {  # everyday sentences
    "cs": "To je můj dům. Kde jsi? Není to tak těžké. Já se na to podívám. A co ty?",
    "de": "Das ist mein Haus. Wo ist er? Ich weiß es nicht. Der Hund und die Katze.",
    "en": "This is my house. Where is he? I don't know. The dog and a cat. It is late.",
    "es": "Esta es mi casa. ¿Dónde está? No lo sé. El perro y la gata en la calle.",
    "fr": "C'est ma maison. Où est-il ? Je ne sais pas. Le chien et la chatte.",
    "it": "Questa è la mia casa. Dove è? Non lo so. Il cane e la gatta sono in casa.",
    "ja": "これは私の家です。彼はどこですか。わかりません。犬と猫。",
    "ru": "Это мой дом. Где он? Я не знаю. Собака и кошка на улице.",
    "tr": "Bu benim evim. O nerede? Ben bilmiyorum. Bir köpek ve bir kedi var.",
    "vi": "Đây là nhà của tôi. Anh ấy không có ở đây. Một con chó và một con mèo.",
    "zh": "这是我的房子。他在哪里？我不知道。狗和猫。",
}


def pairs(source, target, swapped=False):
    sides = [tuple(tokenize(TEXTS[lang], lang)) for lang in (source, target)]
    return [Pair(*sides[::-1] if swapped else sides)]


@pytest.mark.parametrize("source", TEXTS)
@pytest.mark.parametrize("target", TEXTS)
def test_columns_that_are_swapped(source, target):
    if source != target:
        assert look_swapped(pairs(source, target, swapped=True), source, target)
        assert not look_swapped(pairs(source, target), source, target)


@pytest.mark.parametrize("known", ["en", "zh"])
def test_one_known_language_is_enough(known):
    for unknown in set(TEXTS) - {known}:
        sides = pairs(known, unknown)
        assert not look_swapped(sides, known, "xx") and likeness("a", "xx") == 0
        assert look_swapped(sides, "xx", known)
    assert not look_swapped(pairs(known, "es"), "xx", "yy")  # nothing is known


def test_a_whole_corpus_is_judged_rightly():
    for source, target in (("en", "fr"), ("fr", "zh")):
        train = load_village(source, target)["train"]
        assert not look_swapped(train, source, target)
        assert look_swapped(train, target, source)
    assert not look_swapped([], "en", "fr")


def test_codes():
    assert all(check_language(code) == code for code in (*COMMONEST, "xyz"))
    for long, short in LONGER.items():
        with pytest.raises(ValueError, match=f"language '{long}': its code here is '"):
            check_language(long)
        assert check_language(short) == short
