"""Languages, by their codes; and the one that the course speaks to its reader."""

import os
import re
import sys
from pathlib import PurePath

NAMES = {
    **{"en": "English", "fr": "French", "zh": "Chinese", "de": "German"},
    **{"es": "Spanish", "tr": "Turkish", "hi": "Hindi", "ja": "Japanese"},
}
# Written without spaces between words: scored character by character.
UNSPACED = frozenset(("zh", "ja", "th", "lo", "km", "my"))
OTHERWISE = {  # codes, and what isn't one, for which another is used here
    **{"eng": "en", "fra": "fr", "fre": "fr", "deu": "de", "ger": "de", "spa": "es"},
    **{"zho": "zh", "chi": "zh", "cmn": "zh", "cn": "zh", "jpn": "ja", "jp": "ja"},
    **{"tha": "th", "tur": "tr", "hin": "hi", "rus": "ru", "por": "pt", "ita": "it"},
    **{"kor": "ko", "ara": "ar", "pol": "pl", "nld": "nl", "ces": "cs", "cz": "cs"},
}


def check_language(lang):
    """Return lang; ValueError if it is no code of two or three small letters."""
    if not isinstance(lang, str) or not re.fullmatch("[a-z]{2,3}", lang):
        known = ", ".join(f"{code!r} ({name})" for code, name in NAMES.items())
        right = f"give its code, two or three small letters, such as {known}"
    elif lang in OTHERWISE:
        right = f"its code here is {OTHERWISE[lang]!r}"
    else:
        return lang
    raise ValueError(f"unknown language {lang!r}: {right}")


def language_name(lang) -> str:
    """A language as a message names it."""
    return f"{lang} ({NAMES[lang]})" if lang in NAMES else lang


def readers_language() -> str:
    """What the course speaks to its reader: "zh" or "en".

    LEARNING_TO_ALIGN_LANG says it; else a notebook in a folder `zh` asks for Chinese;
    else it is the language of the system. ValueError if the variable is neither.
    """
    if own := os.environ.get("LEARNING_TO_ALIGN_LANG"):
        if own not in ("zh", "en"):
            raise ValueError(f"LEARNING_TO_ALIGN_LANG must be zh or en, got {own!r}")
        return own
    asks = getattr(sys.modules["__main__"], "__vsc_ipynb_file__", "")  # of VS Code
    asks = [asks, os.environ.get("JPY_SESSION_NAME", ""), f"{os.getcwd()}/notebook"]
    folders = (PurePath(path.replace("\\", "/")).parts[-3:-1] for path in asks)
    if any(two[-1:] == ("zh",) or two == ("zh", "solutions") for two in folders):
        return "zh"
    system = map(os.environ.get, ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))
    return "zh" if next(filter(None, system), "").startswith("zh") else "en"
