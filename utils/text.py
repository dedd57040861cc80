"""Text to tokens and back, and the vocabulary that gives each token its id."""

import re
import unicodedata
from collections import Counter
from typing import NamedTuple
from unicodedata import category

from utils.languages import UNSPACED, check_language

PAD, BOS, EOS, UNK = SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)

# A letter or digit of any script; what combines with a letter, such as an accent or an
# Indian vowel, belongs to it.
_MARK = "".join(c for c in map(chr, range(0x300, 0xAC00)) if category(c)[0] == "M")
_LETTER = rf"(?:[^\W_]|[{_MARK}])"
_HAN = "[\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
# A character of a script without spaces: Chinese, Japanese; Thai, Lao, Burmese, Khmer.
_CHARACTER = rf"(?:{_HAN}|[\u3041-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f]"
_CHARACTER += rf"|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff][{_MARK}]*)"
_LATIN = rf"(?:(?!{_CHARACTER}){_LETTER})+"  # any other script
_NUMBER = rf"\d+(?:[.,:/]\d+)+(?!{_LATIN})"  # 10,000
_ABBREVIATION = (
    rf"(?<!{_LETTER})(?:(?:[^\W\d_]\.){{2,}}"  # p.m.
    rf"|(?:bzw|ca|dr|etc|mr|mrs|ms|nr|st|usw|vs)\.(?!{_LETTER}))"
)
_WORD = rf"{_LETTER}+(?:['-]{_LETTER}+)*"
_CLITIC = rf"(?:n't|'(?:d|ll|m|re|s|ve))(?!{_LETTER})"  # do n't, baker 's
_ELISION = r"(?:[cdjlmnst]|jusqu|lorsqu|puisqu|qu|quoiqu)'"  # l' ami
_TOKEN = rf"{_NUMBER}|{_ABBREVIATION}|{_WORD}|\.{{2,}}|-{{2,}}|\S"
_RULES = {
    "en": re.compile(rf"{_CLITIC}|{_TOKEN}"),
    "fr": re.compile(rf"{_ELISION}|{_TOKEN}"),
}
_SPACED = re.compile(_TOKEN)  # any other language with spaces between its words
_UNSPACED = re.compile(rf"{_CHARACTER}|{_NUMBER}|{_LATIN}(?:['-]{_LATIN})*|\S")
_ATTACHED_CLITIC = re.compile(rf"(?<={_LETTER})(?={_CLITIC})")
_SPACED_HAN = re.compile(rf"{_HAN}\s+{_HAN}")

_LONGEST_WORD = 12  # Chinese characters

# What a reader can't see: Unicode's default-ignorable characters, and control
# characters that are no white space. The joiners U+200C and U+200D go with them: a
# Persian word then lacks its half-space, and a joined emoji becomes its parts.
_INVISIBLE = re.compile(
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_APOSTROPHES = dict.fromkeys(map(ord, "\u2019\u02bc"), "'")
_FULL_WIDTH = dict(zip(",.?!:;", "，。？！：；", strict=True))
_OPENING = set("([{¿¡„$#")
_CLOSING = set(".,;:!?)]}%…»") | {"...", ".."}
_AFTER_NO_BREAK_SPACE = set("?!:;»%")  # French


def check_tokens(tokens):
    """Return tokens; TypeError if they are one string instead of a list of strings."""
    if isinstance(tokens, str):
        raise TypeError(
            f"expected a list of tokens, got the string {tokens[:40]!r}: "
            "split it first, tokenize(text, lang) does"
        )
    return tokens


def tokenize(text: str, lang: str, words=None) -> list[str]:
    """Split text into lower-case tokens, punctuation apart.

    lang: a language's code. English splits off clitics (do n't, baker 's), French
    splits after an elision (l' ami), hyphenated words stay whole. Languages without
    spaces (UNSPACED) are cut into characters; Latin letters and digits stay together.
    Chinese with a space between two Chinese characters is taken as segmented. Other
    Chinese, given `words` (a Vocab or a set), is cut into the fewest words of it, and
    characters where none fits; its ASCII punctuation becomes full-width. Invisible
    characters are left out. Raises TypeError if text is no string, ValueError if lang
    is no code.
    """
    check_language(lang)
    if not isinstance(text, str):
        raise TypeError(f"expected a text as a string, got {type(text).__name__}")
    if lang == "tr":  # it has an i with a dot and one without, in both cases
        text = text.replace("İ", "i").replace("I", "ı")
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text.lower()))
    if lang == "zh":
        return _tokenize_chinese(text, words)
    text = text.translate(_APOSTROPHES)
    if lang in UNSPACED:
        return _UNSPACED.findall(text)
    if lang == "en":
        text = _ATTACHED_CLITIC.sub(" ", text)
    return _RULES.get(lang, _SPACED).findall(text)


def read_words(sentence, lang: str, words=None) -> list[str]:
    """The words of a text, as `tokenize` finds them, or a list of words as it is."""
    if not isinstance(sentence, (list, tuple)):
        return tokenize(sentence, lang, words)
    if not all(isinstance(word, str) for word in sentence):
        raise TypeError(f"expected a list of words as strings, got {sentence!r}"[:99])
    return list(sentence)


def _tokenize_chinese(text, words):
    segmented = _SPACED_HAN.search(text)  # then a word is one unit, else a character
    pattern = _SPACED if segmented else _UNSPACED
    pieces = [
        [_FULL_WIDTH.get(unit, unit) for unit in pattern.findall(piece)]
        for piece in text.split()
    ]
    if words is None:
        return [unit for units in pieces for unit in units]
    return [word for units in pieces for word in _cut_by_words(units, words)]


def _cut_by_words(units, words):
    """Cut so that the fewest units are unknown, then into the fewest words."""
    best = {len(units): (0, 0, 0)}  # start: unknown units, words, -end of first word
    for start in reversed(range(len(units))):
        ways = []
        for end in range(start + 1, min(start + _LONGEST_WORD, len(units)) + 1):
            word = "".join(units[start:end])
            known = word in words and word not in SPECIALS
            if known or end == start + 1:
                ways.append((best[end][0] + (not known), best[end][1] + 1, -end))
        best[start] = min(ways)
    start = 0
    while start < len(units):
        end = -best[start][2]
        yield "".join(units[start:end])
        start = end


def detokenize(tokens: list[str], lang: str) -> str:
    """Write tokens as a sentence: a capital first, spaces as the language has them.

    <pad>, <bos> and <eos> are left out. German nouns keep their small letter.
    Raises TypeError for a string, ValueError if lang is no code.
    """
    check_language(lang)
    tokens = [t for t in check_tokens(tokens) if t not in (PAD, BOS, EOS)]
    text, after_opening, in_quotes = "", True, False
    for token in tokens:
        closing = token in _CLOSING or (token == '"' and in_quotes)
        if after_opening or (lang in UNSPACED and not _both_latin(text, token)):
            space = ""
        elif lang == "fr" and (token in _AFTER_NO_BREAK_SPACE or text.endswith("«")):
            space = "\u00a0"
        elif closing or (lang == "en" and re.fullmatch(_CLITIC, token)):
            space = ""
        else:
            space = " "
        text += space + ("I" if (lang, token) == ("en", "i") else token)
        after_opening = (
            token in _OPENING
            or (token == '"' and not in_quotes)
            or (lang == "fr" and re.fullmatch(_ELISION, token) is not None)
        )
        in_quotes ^= token == '"'
    return text if tokens[:1] == [UNK] else _capitalize(text, lang)


def _both_latin(before, after):
    return re.search(rf"{_LATIN}$", before) and re.match(_LATIN, after)


def _capitalize(text, lang):
    letter = re.search(r"[^\W_]", text)
    if letter is None or letter[0].upper().lower() not in (letter[0], "i"):
        return text
    capital = "İ" if (lang, letter[0]) == ("tr", "i") else letter[0].upper()
    return text[: letter.start()] + capital + text[letter.end() :]


def rank_tokens(sentences, min_freq=1) -> list[str]:
    """The tokens of sentences (lists of tokens) by falling frequency, ties sorted.

    Raises TypeError for a string in place of a list, ValueError for a special token.
    """
    counts = Counter(t for sentence in sentences for t in check_tokens(sentence))
    for token in counts:
        if token in SPECIALS:
            raise ValueError(f"{token!r} occurs in the text, but is a special token")
    kept = [token for token in counts if counts[token] >= min_freq]
    return sorted(kept, key=lambda token: (-counts[token], token))


class Encoded(NamedTuple):
    """A sentence as a vocabulary reads it, without <eos>; an id for each token."""

    ids: list[int]
    tokens: list[str]  # words, or pieces of words
    unknown: list[str]  # words that the vocabulary doesn't have, read as <unk>


class Vocab:
    """The tokens of one language and their ids: SPECIALS, then by falling frequency."""

    def __init__(self, sentences, lang, min_freq=1, stored=None):
        ranked = stored or [*SPECIALS, *rank_tokens(sentences, min_freq)]
        self.lang, self.idx_to_token = check_language(lang), ranked
        self.token_to_idx = {token: i for i, token in enumerate(ranked)}

    @classmethod
    def from_tokens(cls, tokens, lang):
        """From idx_to_token of a stored Vocab; ValueError for what is none."""
        tokens = list(check_tokens(tokens))
        sound = all(isinstance(token, str) for token in tokens)
        if not sound or tokens[:4] != [*SPECIALS] or len({*tokens}) < len(tokens):
            raise ValueError(
                f"a stored vocabulary begins with {', '.join(SPECIALS)} and has each "
                f"token once, unlike this one: {tokens[:8]}"
            )
        return cls([], lang, stored=tokens)

    def __len__(self):
        return len(self.idx_to_token)

    def __contains__(self, word):  # whether a sentence can have it
        return word in self.token_to_idx and word not in SPECIALS

    def __eq__(self, other):
        return isinstance(other, Vocab) and vars(self) == vars(other)

    def __getitem__(self, tokens):  # one token, or a list of them
        if isinstance(tokens, str):  # UNK_ID too for what min_freq left out
            return self.token_to_idx.get(tokens, UNK_ID)
        return [self[token] for token in tokens]

    def to_tokens(self, ids):  # one id, or a list or tensor of them
        ids = getattr(ids, "tolist", lambda: ids)()
        if not isinstance(ids, int):
            return [self.to_tokens(i) for i in ids]
        if not 0 <= ids < len(self):
            raise IndexError(
                f"id {ids} is outside the vocabulary: 0 to {len(self) - 1}"
            )
        return self.idx_to_token[ids]

    def encode(self, sentence) -> Encoded:
        """Read a text, or a list of words. A special's name is an unknown word.

        Raises TypeError for anything else.
        """
        words = read_words(sentence, self.lang, self)
        ids = [self.token_to_idx[word] if word in self else UNK_ID for word in words]
        return Encoded(ids, words, [word for word in words if word not in self])

    def sample(self, words, rng, alpha) -> list[int]:
        """Ids, as SubwordVocab.sample; of whole words there is nothing to draw."""
        return self.encode(words).ids

    def to_words(self, ids) -> list[str]:
        """The words that ids spell; specials are left out, but <unk>."""
        return [t for t in self.to_tokens(ids) if t not in (PAD, BOS, EOS)]

    def decode(self, ids) -> str:
        """Write ids as a text. Raises IndexError for an id outside the vocabulary."""
        return detokenize(self.to_words(ids), self.lang)
