"""Languages, by their codes: any with spaces between its words, and some without.

Four have rules of their own in `utils.text`. Of the others nothing need be known; what
is listed here finds out when a file's two columns are the other way round.
"""

import re
import unicodedata
from itertools import islice

NAMES = {"en": "English", "fr": "French", "zh": "Chinese", "de": "German"}  # own rules
# Written without spaces between words: read and written character by character.
UNSPACED = frozenset(("zh", "ja", "th", "lo", "km", "my"))
LONGER = {  # codes of three letters for which a shorter one is used here
    **{"eng": "en", "fra": "fr", "fre": "fr", "deu": "de", "ger": "de"},
    **{"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "tha": "th", "tur": "tr"},
}
# Words that nearly every text of the language has, many times.
COMMONEST = {
    "cs": "a se v na je že to s z do jsem není jsou si tom co",
    "da": "og i at det en er på jeg ikke af til han hun med",
    "de": "der die das und ist ein eine ich nicht zu den mit er sie",
    "en": "the a of and to in is you that it i he she my",
    "es": "el la los de que y en un una no es por con se",
    "fi": "ja on ei se että hän en oli minä tom mutta ovat",
    "fr": "le la les de des et un une est je que vous il pas",
    "hu": "a az és nem egy hogy is van tom meg ez azt",
    "it": "il la di che e un una non è per in sono ho mi",
    "nl": "de het een van en is ik niet dat in te je hij zijn",
    "pl": "i w nie na się z to do jest że jak tom co",
    "pt": "o a os de que e um uma não é em do da eu",
    "ro": "de și în a nu o este un la că să cu pe eu",
    "sv": "och i att det en som är på jag inte av ett han",
    "tr": "bir ve bu da de için ne ben çok mi o var tom değil",
    "vi": "là của và có không tôi một trong được cho người anh tom bạn",
}
# The scripts of languages that aren't written in Latin letters, as Unicode names them.
SCRIPTS = {
    "zh": "CJK",
    "ja": "HIRAGANA KATAKANA",  # beside Chinese characters, which say nothing
    "ko": "HANGUL",
    "th": "THAI",
    "el": "GREEK",
    "he": "HEBREW",
    "hi": "DEVANAGARI",
    **dict.fromkeys(("ar", "fa", "ur"), "ARABIC"),
    **dict.fromkeys(("ru", "uk", "bg", "sr", "be", "mk"), "CYRILLIC"),
}


def check_language(lang):
    """Return lang; ValueError if it is no code of two or three small letters."""
    known = ", ".join(f"{code!r} ({name})" for code, name in NAMES.items())
    if not isinstance(lang, str) or not re.fullmatch("[a-z]{2,3}", lang):
        raise ValueError(
            f"unknown language {lang!r}: give its code, two or three small letters, "
            f"such as {known}, 'es', 'cs'"
        )
    if lang in LONGER:
        raise ValueError(
            f"unknown language {lang!r}: its code here is {LONGER[lang]!r}"
        )
    return lang


def language_name(lang) -> str:
    """A language as a message names it."""
    return f"{lang} ({NAMES[lang]})" if lang in NAMES else lang


def likeness(words, lang) -> float:
    """How much words look like a language's, 0 to 1; 0 where nothing is known of it.

    The share of letters in its script, or of words that are among its commonest.
    """
    if lang in SCRIPTS:
        letters = [letter for word in words for letter in word if letter.isalpha()]
        scripts = SCRIPTS[lang].split()
        names = (unicodedata.name(letter, "").split(" ")[0] for letter in letters)
        return sum(name in scripts for name in names) / max(1, len(letters))
    common = COMMONEST.get(lang, "").split()
    return sum(word in common for word in words) / max(1, len(words))


def look_swapped(pairs, source, target) -> bool:
    """Whether the sources of pairs look like the language target, and the reverse.

    The first 500 pairs are looked at.
    """
    sides = [
        [word for pair in islice(pairs, 500) for word in pair[side]] for side in (0, 1)
    ]
    as_said = likeness(sides[0], source) + likeness(sides[1], target)
    swapped = likeness(sides[0], target) + likeness(sides[1], source)
    return swapped > 0.05 + 2 * as_said
