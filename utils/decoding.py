"""Decoding: from a trained model to a translation.

Letters in shape comments: B sentences in a batch, S source and T target positions.
"""

from typing import NamedTuple

import torch

from utils.data import encode_sources
from utils.text import BOS_ID, EOS, EOS_ID, PAD_ID, UNK, detokenize, tokenize

MAX_SOURCE = 200  # words; the course's longest test sentence has 60


@torch.no_grad()
def greedy_decode(model, source, source_lens, max_steps=None):
    """The most probable word at each step, until every sentence has ended.

    source (B, S) ids, source_lens (B,) -> ids (B, T), PAD after each <eos>, and the
    weights (B, T, S), or None for a decoder without attention. max_steps: the cap on
    T, 2S + 10 when None; a sentence cut by it has no <eos>.
    """
    model.eval()
    state = model.decoder.init_state(model.encoder(source, source_lens), source_lens)
    word = torch.full((len(source), 1), BOS_ID, dtype=torch.long)
    ended = torch.zeros(len(source), 1, dtype=torch.bool)
    ids, weights = [], []
    for _ in range(max_steps or 2 * source.shape[1] + 10):
        scores, state = model.decoder(word, state)  # one step: (B, 1, V)
        word = scores.argmax(dim=-1)  # (B, 1)
        ids.append(word.masked_fill(ended, PAD_ID))
        weights.append(getattr(model.decoder, "attention_weights", None))
        ended |= word == EOS_ID
        if ended.all():
            break
    has_weights = weights[0] is not None
    return torch.cat(ids, 1), torch.cat(weights, 1) if has_weights else None


class Translation(NamedTuple):
    """One translated sentence. Labels and weights always have matching sizes."""

    text: str  # as a reader wants it
    tokens: list[str]  # ends with <eos>, unless the step limit came first
    source_tokens: list[str]  # ends with <eos>
    attention_weights: torch.Tensor | None  # (len(tokens), len(source_tokens))
    unknown: list[str]  # source words that the vocabulary doesn't have, read as <unk>

    @property
    def words(self):
        """The tokens without <eos>."""
        return [token for token in self.tokens if token != EOS]


def translate(model, sentence, src_vocab, tgt_vocab, max_steps=None):
    """Translate a sentence (str) -> Translation, with the weights for a heatmap.

    A word that isn't in the vocabulary is read as <unk> and listed in `unknown`.
    Raises TypeError when it isn't a str; ValueError when it has no word, or more
    than MAX_SOURCE of them.
    """
    if not isinstance(sentence, str):
        raise TypeError(
            f"sentence must be a str, got {type(sentence).__name__}: {sentence!r}"
        )
    words = tokenize(sentence, src_vocab.lang, words=src_vocab)
    if not words:
        raise ValueError("there is nothing to translate: the sentence has no word")
    return translate_tokens(model, [words], src_vocab, tgt_vocab, max_steps=max_steps)[
        0
    ]


def translate_tokens(
    model, sentences, src_vocab, tgt_vocab, batch_size=128, max_steps=None
):
    """Translate many sentences, given as lists of words -> list of Translation.

    Sentences of like length share a batch; the result is in the order given.
    """
    for number, words in enumerate(sentences):
        if not words or len(words) > MAX_SOURCE:
            raise ValueError(
                f"sentence {number} has {len(words)} words; 1 to {MAX_SOURCE} "
                "can be translated: split a longer one at its full stops"
            )
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))
    results = {}
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        source, source_lens = encode_sources([sentences[i] for i in chosen], src_vocab)
        ids, weights = greedy_decode(model, source, source_lens, max_steps)
        for row, i in enumerate(chosen):
            results[i] = _translation(
                sentences[i],
                ids[row],
                None if weights is None else weights[row],
                src_vocab,
                tgt_vocab,
            )
    return [results[i] for i in range(len(sentences))]


def _translation(words, ids, weights, src_vocab, tgt_vocab):
    ids = ids[ids != PAD_ID].tolist()
    tokens, source_tokens = tgt_vocab.to_tokens(ids), [*words, EOS]
    if weights is not None:
        weights = weights[: len(tokens), : len(source_tokens)]
    return Translation(
        detokenize([t for t in tokens if t != EOS], tgt_vocab.lang),
        tokens,
        source_tokens,
        weights,
        [word for word in words if word not in src_vocab or word == UNK],
    )
