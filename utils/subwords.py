"""Subwords: pieces of words, so that a small vocabulary can write any text.

The pieces and the cutting are sentencepiece's unigram model (Kudo, 2018), or, on
request, its byte-pair encoding (Sennrich et al., 2016). They are learned from texts as
they were written, and a text comes back as it was: letter case, spaces, punctuation.
`▁` stands for a space: `▁snow board` is one word of two pieces. A character without a
piece is written as the bytes of its UTF-8 encoding, such as `<0xE9>`.
"""

import io
import math
import re
from collections import Counter
from functools import lru_cache

import sentencepiece

from utils.guards import require_one_of, require_whole
from utils.languages import check_language
from utils.text import BOS, EOS, PAD, SPECIALS, Encoded, Vocab, check_text

SPACE = "▁"  # what sentencepiece writes for a space
WAYS = 8  # of cutting a unit, the most probable ones, that `sample` draws from
REMEMBERED = 200_000  # units and their pieces, at most
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
SUBWORDS = ("unigram", "bpe")
FEWEST = len(SPECIALS) + len(BYTES) + 2  # pieces: one for a space, and one more


class SubwordVocab(Vocab):
    """The subword pieces of one language and their ids.

    model: what sentencepiece stores, as bytes. Raises ValueError for other bytes.
    """

    def __init__(self, model: bytes, lang):
        self.model, self.lang = model, check_language(lang)
        self._pieces = sentencepiece.SentencePieceProcessor()
        try:
            self._pieces.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise ValueError(
                f"these {len(model)} bytes are no sentencepiece model"
            ) from error
        size = self._pieces.get_piece_size()
        self.idx_to_token = list(map(self._pieces.id_to_piece, range(size)))
        self.token_to_idx = {piece: i for i, piece in enumerate(self.idx_to_token)}
        first = tuple(self.idx_to_token[: len(SPECIALS)])
        if first != SPECIALS or not self.token_to_idx.keys() >= {*BYTES}:
            raise ValueError(
                f"a subword vocabulary begins with {', '.join(SPECIALS)} and has each "
                f"byte, unlike this one ({', '.join(first)} …): train it anew"
            )
        self._cut = lru_cache(REMEMBERED)(self._find_cut)
        self._ways = lru_cache(REMEMBERED)(self._find_ways)
        own = {piece: bytes([byte]) for byte, piece in enumerate(BYTES)}
        own |= dict.fromkeys((PAD, BOS, EOS), b"")
        pieces = self.idx_to_token
        self._bytes = [own.get(p, p.replace(SPACE, " ").encode()) for p in pieces]

    @classmethod
    def train(cls, texts, lang, size, model_type="unigram"):
        """Learn at most `size` pieces from texts; 4 specials and 256 bytes among them.

        They are fewer where the text is too small for so many. Half of them at most are
        single characters, the most frequent ones. model_type: one of SUBWORDS; "bpe"
        keeps frequent words whole, and cuts a word in one way only.
        """
        require_whole("size", size, FEWEST)
        require_one_of("model_type", model_type, SUBWORDS)
        lines = [f" {check_text(text)}".replace(SPACE, " ") for text in texts]
        counts = Counter(c for line in lines for c in line)
        if counts.keys() <= {" "}:
            raise ValueError("there is no text to learn pieces from")
        kept = dict(counts.most_common(max(2, (size - FEWEST) // 2)))
        rare = dict.fromkeys(map(ord, counts.keys() - kept))  # bytes write these
        lines = [line.translate(rare) for line in lines]
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines),
            model_writer=model,
            vocab_size=size,
            model_type=model_type,
            hard_vocab_limit=False,
            character_coverage=1.0,
            byte_fallback=True,
            split_digits=True,
            add_dummy_prefix=False,  # the space before each line stands there
            remove_extra_whitespaces=False,
            normalization_rule_name="identity",
            max_sentence_length=max(10, 4 * max(map(len, lines))),  # in bytes
            **{f"{name.strip('<>')}_piece": name for name in SPECIALS},
            **{f"{name.strip('<>')}_id": i for i, name in enumerate(SPECIALS)},
            num_threads=1,
            minloglevel=2,
        )
        return cls(model.getvalue(), lang)

    def __eq__(self, other):
        same = isinstance(other, SubwordVocab) and self.lang == other.lang
        return same and self.model == other.model

    def encode(self, text) -> Encoded:
        """Read a text; no word is unknown. Raises TypeError for what is no text."""
        ids = [i for unit in units(text) for i in self._cut(unit)]
        return Encoded(ids, self.to_tokens(ids), [])

    def sample(self, text, rng, alpha) -> list[int]:
        """Ids of a text, each unit cut in one of the eight best ways, which is drawn.

        By the way's probability to the power alpha: subword regularisation (Kudo, 2018,
        section 3.1). rng: a random.Random. Raises RuntimeError for byte pairs, which
        have no probabilities.
        """
        ids = []
        for unit in units(text):
            ways, log_probs = self._ways(unit)
            weights = [math.exp(alpha * (p - log_probs[0])) for p in log_probs]
            ids += rng.choices(ways, weights)[0]
        return ids

    def _find_cut(self, unit):
        """Ids; the sign that stands for a space is itself written as bytes."""
        if unit == SPACE:
            return self[[BYTES[byte] for byte in SPACE.encode()]]
        return self._pieces.encode(unit)

    def _find_ways(self, unit):
        ways, score = [self._cut(unit)], self._pieces.get_score  # a log-probability
        if unit != SPACE:
            ways = self._pieces.nbest_encode(unit, nbest_size=WAYS)
        return ways, [sum(map(score, way)) for way in ways]

    def byte_lengths(self, ids) -> list[int]:
        """How many bytes each piece writes, the space before the text among them."""
        return [len(self._bytes[i]) for i in ids]

    def decode(self, ids) -> str:
        """Write ids as a text: `decode(encode(text).ids) == text`."""
        ids = getattr(ids, "tolist", lambda: ids)()
        written = b"".join(self._bytes[i] for i in ids)
        return written.decode(errors="replace").removeprefix(" ")

    def to_words(self, ids):
        return self.decode(ids).split()


def units(text) -> list[str]:
    """A text in parts that no piece crosses: words, each with the space before it."""
    return re.findall(f"{SPACE}|[^{SPACE}][^ {SPACE}]*", f" {check_text(text)}", re.S)


def drawn(pieces):
    """Pieces as they are drawn: a dot where a word goes on, no mark where it begins."""
    if not any(piece.startswith(SPACE) for piece in pieces):
        return pieces  # words
    dotted = [piece if piece == EOS else f"·{piece}" for piece in pieces]
    return [piece.removeprefix(f"·{SPACE}") or "␣" for piece in dotted]
