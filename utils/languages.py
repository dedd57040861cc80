"""Languages, by their codes."""

import re

NAMES = {"en": "English", "fr": "French", "zh": "Chinese", "de": "German"}
# Written without spaces between words: scored character by character.
UNSPACED = frozenset(("zh", "ja", "th", "lo", "km", "my"))
LONGER = {  # codes of three letters for which a shorter one is used here
    **{"eng": "en", "fra": "fr", "fre": "fr", "deu": "de", "ger": "de"},
    **{"zho": "zh", "chi": "zh", "cmn": "zh", "jpn": "ja", "tha": "th", "tur": "tr"},
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
