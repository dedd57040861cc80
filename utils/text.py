"""Text to tokens and back, and the vocabulary that gives each token its id."""

import re
import unicodedata
from collections import Counter
from typing import NamedTuple

from utils.languages import check_language

PAD, BOS, EOS, UNK = SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")
PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)
SLOTS = 20  # how many unknown words of a sentence a model can copy

_HAN = "[\u3400-\u4dbf\u4e00-\u9fff]"  # Chinese characters
_WORD = r"[^\W_]+(?:['-][^\W_]+)*"
_CLITIC = r"(?:n't|'(?:d|ll|m|re|s|ve))\b"  # do n't, baker 's
_RULES = {
    "en": re.compile(rf"{_CLITIC}|{_WORD}|\S"),
    "fr": re.compile(rf"(?:[cdjlmnst]|qu)'|{_WORD}|\S"),  # l' ami
    "zh": re.compile(rf"{_HAN}|(?:(?!{_HAN})[^\W_])+|\S"),
}
_SPACED = re.compile(rf"{_WORD}|\S")  # any other language
_ATTACHED_CLITIC = re.compile(rf"(?<=\w)(?={_CLITIC})")
_SPACED_HAN = re.compile(rf"{_HAN}\s+{_HAN}")
_LONGEST_WORD = 12  # Chinese characters
_FULL_WIDTH = dict(zip(",.?!:;", "，。？！：；", strict=True))
_APOSTROPHES = str.maketrans("\u2019\u02bc", "''")


def check_tokens(tokens):
    """Return tokens; TypeError if they are one string instead of a list of strings."""
    if isinstance(tokens, str):
        raise TypeError(
            f"expected a list of tokens, got the string {tokens[:40]!r}: "
            "split it first, tokenize(text, lang) does"
        )
    return tokens


def check_text(text, name="a text") -> str:
    """Return text; TypeError, in words, if it is no string."""
    if not isinstance(text, str):
        raise TypeError(f"expected {name} as a string, got {text!r:.99}")
    return text


def tokenize(text: str, lang: str, words=None) -> list[str]:
    """Split a text into the Village's tokens: small letters, punctuation apart.

    English splits off clitics (do n't, baker 's), French splits after an elision (l'
    ami), hyphenated words stay whole. Chinese with a space between two characters is
    taken as segmented. Other Chinese, given `words` (a Vocab or a set), is cut into the
    fewest words of it, and characters where none fits; its ASCII punctuation becomes
    full-width. Raises TypeError if text is no string, ValueError if lang is no code.
    """
    check_language(lang)
    text = unicodedata.normalize("NFC", check_text(text).lower())
    text = text.translate(_APOSTROPHES)
    if lang == "zh":
        return _tokenize_chinese(text, words)
    if lang == "en":
        text = _ATTACHED_CLITIC.sub(" ", text)
    return _RULES.get(lang, _SPACED).findall(text)


def _tokenize_chinese(text, words):
    rules = _SPACED if _SPACED_HAN.search(text) else _RULES["zh"]  # segmented, or not
    found = []
    for piece in text.split():
        units = [_FULL_WIDTH.get(unit, unit) for unit in rules.findall(piece)]
        found += units if words is None else _cut_by_words(units, words)
    return found


def _cut_by_words(units, words):
    """Cut so that the fewest units are unknown, then into the fewest words."""
    best = {len(units): (0, 0, 0)}  # start: unknown units, words, -end of first word
    for start in reversed(range(len(units))):
        ways = []
        for end in range(start + 1, min(start + _LONGEST_WORD, len(units)) + 1):
            known = "".join(units[start:end]) in words
            if known or end == start + 1:
                ways.append((best[end][0] + (not known), best[end][1] + 1, -end))
        best[start] = min(ways)
    start = 0
    while start < len(units):
        end = -best[start][2]
        yield "".join(units[start:end])
        start = end


def detokenize(tokens: list[str], lang: str) -> str:
    """Write the Village's tokens as a sentence: a capital first, spaces as usual.

    <pad>, <bos> and <eos> are left out. Raises TypeError for a string, ValueError if
    lang is no code.
    """
    check_language(lang)
    text = ""
    for token in check_tokens(tokens):
        if token not in (PAD, BOS, EOS):
            text += _space(text, token, lang)
            text += "I" if (lang, token) == ("en", "i") else token
    return text if text.startswith(UNK) else text[:1].upper() + text[1:]


def _space(text, token, lang):
    """What stands between a text and the token after it."""
    if not text or lang == "zh" and not (text[-1] + token).isascii():
        return ""
    if lang == "fr" and token in ("?", "!"):
        return "\u00a0"
    attached = token in (".", ",", "?", "!") or lang == "fr" and text.endswith("'")
    return "" if attached or lang == "en" and re.fullmatch(_CLITIC, token) else " "


class Encoded(NamedTuple):
    """A sentence as a vocabulary reads it, without <eos>; an id for each token."""

    ids: list[int]
    tokens: list[str]  # words, or pieces of words
    unknown: list[str]  # words that the vocabulary doesn't have, read as <unk>


class Vocab:
    """The tokens of one language and their ids: SPECIALS, then by falling frequency.

    stored: all of them in their order, as a file holds them. extends: in each sentence,
    the first SLOTS unknown words of the source get the ids after the vocabulary's own,
    in source and target alike, so that they can be copied. Raises TypeError for a
    string in place of a list of tokens, ValueError for a special token among them.
    """

    extends = False

    def __init__(self, sentences, lang, stored=None, extends=False):
        counts = Counter(t for sentence in sentences for t in check_tokens(sentence))
        for token in counts.keys() & {*SPECIALS}:
            raise ValueError(f"{token!r} occurs in the text, but is a special token")
        ranked = sorted(counts, key=lambda token: (-counts[token], token))
        self.lang, self.extends = check_language(lang), extends
        self.idx_to_token = stored or [*SPECIALS, *ranked]
        self.token_to_idx = {token: i for i, token in enumerate(self.idx_to_token)}

    def __len__(self):
        return len(self.idx_to_token)

    def __contains__(self, word):  # whether a sentence can have it
        return word in self.token_to_idx and word not in SPECIALS

    def __eq__(self, other):
        return isinstance(other, Vocab) and vars(self) == vars(other)

    def __getitem__(self, tokens):  # one token, or a list of them
        if isinstance(tokens, str):
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
        if isinstance(sentence, (list, tuple)):
            words = [check_text(word, "a word") for word in sentence]
        else:
            words = tokenize(sentence, self.lang, self)
        ids = [self.token_to_idx[word] if word in self else UNK_ID for word in words]
        found = Encoded(ids, words, [word for word in words if word not in self])
        own = self.extended(found)
        return found if own is self else found._replace(ids=own[words])

    def extended(self, source: Encoded):
        """The vocabulary for both sides of a pair: itself, or this source's words too.

        (See et al., 2017, section 2.2.)
        """
        if not (self.extends and source.unknown):
            return self
        words = [*dict.fromkeys(source.unknown)][:SLOTS]
        return Vocab([], self.lang, stored=[*self.idx_to_token, *words])

    def to_words(self, ids) -> list[str]:
        """The words that ids spell; specials are left out, but <unk>."""
        return [t for t in self.to_tokens(ids) if t not in (PAD, BOS, EOS)]

    def decode(self, ids) -> str:
        """Write ids as a text. Raises IndexError for an id outside the vocabulary."""
        return detokenize(self.to_words(ids), self.lang)
