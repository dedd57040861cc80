"""Where a model looks while it reads a true translation along (teacher forcing).

The error rate of an alignment stands in `metrics`. Letters in shape comments:
S source and T target positions.
"""

import re
from itertools import accumulate, pairwise

import torch

from utils.data import Batch, cut
from utils.decoding import require_attention
from utils.guards import as_weights
from utils.languages import UNSPACED
from utils.subwords import SubwordVocab
from utils.text import EOS


@torch.no_grad()
def forced_weights(model, pairs, vocabs, batch_size=128):
    """Attention weights (T, S) of each pair while the decoder reads its target.

    Rows and columns of <eos> are left out.
    """
    model.eval()
    found = []
    for part in cut(pairs, batch_size):
        batch = Batch.from_pairs(part, *vocabs)
        _, state = model(batch.source, batch.target_in, batch.source_lens)
        weights = getattr(state, "attention_weights", None)
        require_attention(weights)
        sizes = zip(weights, batch.target_lens - 1, batch.source_lens - 1, strict=True)
        found += [w[:T, :S] for w, T, S in sizes]
    return found


def word_weights(weights, pair, vocabs):
    """Weights (T, S) between the tokens of a pair -> those between its words.

    Of texts, whose tokens are pieces: the words end where pair.ends says, or else at
    spaces. Where the sides are words already nothing changes.
    """
    if not isinstance(pair.source, str):
        return weights
    sides = zip(pair[:2], vocabs, pair.ends or (None, None), strict=True)
    shares = [
        word_shares(text, vocab.byte_lengths(vocab.encode(text).ids), ends)
        for text, vocab, ends in sides
    ]
    return between_words(weights, *shares)


def between_words(weights, source_shares, target_shares):
    """Weights (T, S) between pieces -> those between words, by `word_shares` of both.

    A source word has the sum of its pieces' weights, a target word the mean of its
    pieces' rows, so that rows still sum to 1.
    """
    return (target_shares / target_shares.sum(dim=0)).T @ weights @ source_shares


def word_shares(text, lengths, ends=None):
    """How much of each piece belongs to each word of a text, 0 to 1: (pieces, words).

    lengths: bytes that each piece writes, the space before the text among them. ends:
    where the words end, in characters; at spaces when None. What stands before a word
    belongs to it, and to the last word what stands after it.
    """
    if ends is None:
        ends = [word.end() for word in re.finditer(r"\S+", text)]
    first = max(0, sum(lengths) - len(text.encode()))
    word_stops = [first + len(text[:end].encode()) for end in ends[:-1]]
    piece_stops = list(accumulate(lengths, initial=0))
    edges = torch.tensor([0, *word_stops, piece_stops[-1]][: len(ends) + 1])
    pieces = torch.tensor(piece_stops)
    starts = torch.maximum(pieces[:-1, None], edges[None, :-1])
    stops = torch.minimum(pieces[1:, None], edges[None, 1:])
    return (stops - starts).clamp(min=0) / pieces.diff().clamp(min=1)[:, None]


def pharaoh_links(source, translation, src_vocab, tgt_vocab):
    """For each word of a Translation the source word that it looks at most.

    In Pharaoh format, from 0: `0-0 2-1` links the source words 0 and 2 to the first two
    words. source: its text; words end at spaces. ValueError for other vocabularies.
    """
    vocabs = src_vocab, tgt_vocab
    if UNSPACED & {v.lang for v in vocabs} or not isinstance(src_vocab, SubwordVocab):
        raise ValueError("links are of real text, in languages with spaces")
    require_attention(translation.attention_weights)
    target = [token for token in translation.tokens if token != EOS]
    weights = translation.attention_weights[: len(target), :-1]
    lengths = src_vocab.byte_lengths(src_vocab.encode(source).ids)
    own = tgt_vocab.byte_lengths(tgt_vocab[target])
    shares = word_shares(source, lengths), word_shares(translation.text, own)
    best = between_words(weights, *shares).argmax(dim=1).tolist()
    return " ".join(f"{word}-{i}" for i, word in enumerate(best))


def longest_gap(weights):
    """Most source words in a row that no target word looked at most; weights (T, S)."""
    weights = as_weights(weights)
    looked = set(weights.argmax(axis=1).tolist())
    places = sorted(looked | {-1, weights.shape[1]})
    return max(b - a - 1 for a, b in pairwise(places))


def linked_looks(weights, pairs):
    """For each linked target word: where it looks, the words linked with it, its pair.

    By weights (T, S): it looks at the source word that has the most. A link counts
    whether it is sure or possible.
    """
    for w, pair in zip(weights, pairs, strict=True):
        links = pair.alignment | pair.possible
        for i in {i for _, i in links}:
            yield int(w[i].argmax()), [j for j, target in links if target == i], pair


def gold_hits(weights, pairs) -> float:
    """How often a linked target word looks at a word that it is linked with, 0 to 1."""
    found = [look in gold for look, gold, _ in linked_looks(weights, pairs)]
    return sum(found) / len(found)


def far_looks(weights, pairs, far=5):
    """Of weights (T, S): looks more than `far` words from all that gold links.

    Three shares: of the far looks among all; of those among the far ones that go ahead,
    to the right of all linked words; and of those at another copy of a linked word.
    """
    count, ahead, copies = 0, [], []
    for look, gold, pair in linked_looks(weights, pairs):
        count += 1
        if min(abs(look - j) for j in gold) > far:
            ahead.append(look > max(gold))
            copies.append(pair.source[look] in {pair.source[j] for j in gold})
    of = max(len(ahead), 1)
    return len(ahead) / count, sum(ahead) / of, sum(copies) / of
