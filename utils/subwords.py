"""Subwords: pieces of words, so that a small vocabulary can write any word.

The pieces and the cutting are sentencepiece's unigram model (Kudo, 2018), or, on
request, its byte-pair encoding (Sennrich et al., 2016). `▁` begins a word: `▁snow
board` is one word of two pieces.
"""

import io
import math
import random
import re
from functools import lru_cache

import sentencepiece

from utils.data import BatchLoader
from utils.guards import require_whole
from utils.languages import UNSPACED, check_language
from utils.text import (
    BOS,
    BOS_ID,
    EOS,
    EOS_ID,
    PAD,
    PAD_ID,
    SPECIALS,
    UNK,
    UNK_ID,
    Encoded,
    Vocab,
    check_tokens,
    detokenize,
    read_words,
    tokenize,
)

REMEMBERED = 200_000  # words and their pieces, at most
SPACE = "▁"  # what sentencepiece writes for the space before a word


class SubwordVocab(Vocab):
    """The subword pieces of one language and their ids.

    A sentence is split into words, and each word cut into one or more pieces.
    Where there are no spaces, as in Chinese, the whole sentence is cut like one word.
    model: what sentencepiece stores, as bytes. Raises ValueError for other bytes.
    """

    ways_a_word = 8  # of cutting it, the most probable ones, that `sample` draws from

    def __init__(self, model: bytes, lang):
        self.model, self.lang = model, check_language(lang)
        pieces = sentencepiece.SentencePieceProcessor()
        try:
            pieces.LoadFromSerializedProto(model)
        except RuntimeError as error:
            raise ValueError(
                f"these {len(model)} bytes are no sentencepiece model"
            ) from error
        self._pieces = pieces
        self.idx_to_token = [pieces.id_to_piece(i) for i in range(len(pieces))]
        if tuple(self.idx_to_token[: len(SPECIALS)]) != SPECIALS:
            raise ValueError(
                f"a subword vocabulary begins with {', '.join(SPECIALS)}, "
                f"this one with {', '.join(self.idx_to_token[: len(SPECIALS)])}"
            )
        self.token_to_idx = {piece: i for i, piece in enumerate(self.idx_to_token)}
        self._cut = lru_cache(REMEMBERED)(pieces.encode)
        self._ways = lru_cache(REMEMBERED)(self._find_ways)

    @classmethod
    def train(cls, sentences, lang, size, model_type="unigram"):
        """Learn `size` pieces (specials included) from lists of words.

        They are fewer where the text is too small for so many. model_type: "unigram",
        or "bpe", which cuts a word in one way only. Raises ValueError when the text has
        too many characters for so few.
        """
        lines = [" ".join(_units(check_tokens(s), lang)) for s in sentences]
        if not any(lines):
            raise ValueError("there is no text to learn pieces from")
        require_whole("size", size, 5, " (there are 4 special tokens)")
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=model,
                vocab_size=size,
                model_type=model_type,
                hard_vocab_limit=False,
                character_coverage=1.0,
                normalization_rule_name="identity",
                pad_id=PAD_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                unk_id=UNK_ID,
                pad_piece=PAD,
                bos_piece=BOS,
                eos_piece=EOS,
                unk_piece=UNK,
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            reason = str(error).rpartition("] ")[2]  # before it: a line of its source
            raise ValueError(
                f"{len(lines)} sentences don't give {size} pieces: {reason}"
            ) from error
        return cls(model.getvalue(), lang)

    def __contains__(self, word):
        """Whether these pieces can write a word."""
        return UNK_ID not in self._best(word)

    def __eq__(self, other):
        same = isinstance(other, SubwordVocab) and self.lang == other.lang
        return same and self.model == other.model

    def __getitem__(self, words):
        """The id of a piece (str), or the ids of the pieces of a list of words."""
        if isinstance(words, str):
            return self.token_to_idx.get(words, UNK_ID)
        return [i for unit in _units(words, self.lang) for i in self._best(unit)]

    def sample(self, words, rng, alpha):
        """Ids of words, each cut in a way drawn by its probability to the power alpha.

        Subword regularisation (Kudo, 2018, section 3.1). rng: a random.Random. Byte
        pairs have no probabilities, and can't be drawn.
        """
        ids = []
        for word in _units(words, self.lang):
            ways, log_probs = self._ways(word)
            if len(ways) == 1:
                ids += ways[0]
            else:
                weights = [math.exp(alpha * (p - log_probs[0])) for p in log_probs]
                ids += rng.choices(ways, weights)[0]
        return ids

    def encode(self, sentence):
        words = read_words(sentence, self.lang)
        ids = self[words]
        unknown = [w for w in words if w not in self] if UNK_ID in ids else []
        return Encoded(ids, self.to_tokens(ids), unknown)

    def to_words(self, ids):
        words = "".join(super().to_words(ids)).replace(SPACE, " ").split()
        return as_spelled(words, self)

    def _best(self, word):
        return [UNK_ID] if word in SPECIALS else self._cut(word)

    def _find_ways(self, word):
        if word in SPECIALS:
            return [[UNK_ID]], [0.0]
        ways = self._pieces.nbest_encode(word, nbest_size=self.ways_a_word)
        score = self._pieces.get_score  # a log-probability
        return ways, [sum(map(score, way)) for way in ways]


def _units(words, lang):
    """What is cut into pieces: words, or a sentence where there are no spaces."""
    if lang not in UNSPACED:
        return words
    return [detokenize([UNK if w in SPECIALS else w for w in words], lang).lower()]


def as_spelled(words, vocab) -> list[str]:
    """Words as a vocabulary's `to_words` gives them, to compare translations with.

    Pieces of a language without spaces are written character by character.
    """
    if not isinstance(vocab, SubwordVocab) or vocab.lang not in UNSPACED:
        return list(words)
    parts = [part for word in words for part in re.split(f"({UNK})", word)]
    cut = [[part] if part == UNK else tokenize(part, vocab.lang) for part in parts]
    return [word for words in cut for word in words]


class SampledLoader(BatchLoader):
    """A BatchLoader that cuts every word anew in each epoch: see SubwordVocab.sample.

    The cuts depend on the seed and the epoch alone.
    """

    def __init__(self, pairs, src_vocab, tgt_vocab, batch_size, seed, alpha):
        super().__init__(pairs, src_vocab, tgt_vocab, batch_size, seed)
        self.pairs, self.vocabs, self.alpha = pairs, (src_vocab, tgt_vocab), alpha

    def epoch_ids(self, k):
        rng = random.Random(f"cuts of seed {self.seed}, epoch {k}")
        return [
            tuple(
                [*vocab.sample(words, rng, self.alpha), EOS_ID]
                for vocab, words in zip(self.vocabs, pair[:2], strict=True)
            )
            for pair in self.pairs
        ]
