"""What notebook 07 asks beyond BLEU: skips, where words are right, help with the place.

Letters in shape comments: B sentences in a batch, S source and T target positions,
V words in the target vocabulary.
"""

import random
from itertools import pairwise

import torch

from utils.data import Batch


def longest_gap(weights):
    """Most source words in a row that no target word looked at most; weights (T, S)."""
    check_weights(weights)
    looked = set(weights.argmax(dim=1).tolist())
    places = sorted(looked | {-1, weights.shape[1]})
    return max(b - a - 1 for a, b in pairwise(places))


def linked_places(pairs):
    """The first linked source position of every target word and <eos>: (B, T).

    A word without a link has the place of the word before; <eos> stands at <eos>.
    """
    check_aligned(pairs)
    places = torch.zeros(len(pairs), 1 + max(len(pair.target) for pair in pairs))
    for row, pair in zip(places, pairs, strict=True):
        links = sorted(pair.alignment, reverse=True)
        first_source = {i: j for j, i in links}  # of several, the smallest stays
        for i in range(len(pair.target)):
            row[i] = first_source.get(i, row[i - 1] if i else 0)
        row[len(pair.target)] = len(pair.source)
    return places


@torch.no_grad()
def read_along(model, batch, places=None):
    """Teacher forcing, one step at a time -> scores (B, T, V), weights (B, T, S).

    places (B, T): put in place of the one that a WindowDecoder remembers.
    """
    decoder, outputs, all_weights = model.eval().decoder, [], []
    enc_outputs = model.encoder(batch.source, batch.source_lens)
    state = decoder.init_state(enc_outputs, batch.source_lens)
    for i, x in enumerate(decoder.embedding(batch.target_in).split(1, dim=1)):
        if places is not None:
            state = state._replace(place=places[:, i])
        output, weights, state = decoder.step(x, state)
        outputs.append(output)
        all_weights.append(weights)
    return decoder.dense(torch.cat(outputs, dim=1)), torch.cat(all_weights, dim=1)


def words_right(model, pairs, vocabs, guided=False):
    """How each pair is read along: two lists of values (T,), 1.0 or 0.0 a target word.

    The first: is the true word the most probable one? The second: is the source word
    looked at most linked to it in gold? NaN for words without a link. <eos> is a word.
    guided: a WindowDecoder looks around the gold places.
    """
    check_aligned(pairs)
    right, on_gold = [], []
    for start in range(0, len(pairs), 64):
        part = pairs[start : start + 64]
        batch = Batch.from_pairs(part, *vocabs)
        places = linked_places(part) if guided else None
        scores, weights = read_along(model, batch, places)
        hits = (scores.argmax(dim=-1) == batch.target_out).float()
        right += [row[:n] for row, n in zip(hits, batch.target_lens, strict=True)]
        for pair, row in zip(part, weights.argmax(dim=-1).tolist(), strict=True):
            linked = {i for _, i in pair.alignment}
            on_gold.append(
                torch.tensor(
                    [
                        float((row[i], i) in pair.alignment)
                        if i in linked
                        else torch.nan
                        for i in range(len(pair.target) + 1)
                    ]
                )
            )
    return right, on_gold


def by_tenth(found):
    """Values (T,) of many sentences -> their mean in each tenth of a sentence (10,)."""
    tenth = torch.cat([torch.arange(len(row)) * 10 // len(row) for row in found])
    values = torch.cat(found)
    return torch.stack([values[tenth == k].nanmean() for k in range(10)])


def join_pairs(pairs, conjunctions=("but", "mais"), seed=0):
    """Each pair and another, joined by a comma and a conjunction, without alignment.

    The pairs are sentences that end with a full stop; the first of two loses its own.
    """
    check_statements(pairs)
    order = random.Random(seed).sample(pairs, len(pairs))
    joined = []
    for first, second in zip(order, order[1:] + order[:1], strict=True):
        sides = zip(
            (first.source, first.target),
            (second.source, second.target),
            conjunctions,
            strict=True,
        )
        source, target = ((*a[:-1], ",", word, *b) for a, b, word in sides)
        joined.append(first._replace(source=source, target=target, alignment=None))
    return joined


def check_weights(weights):
    """ValueError, in words, unless these are one sentence's weights."""
    if weights.dim() != 2 or 0 in weights.shape:
        raise ValueError(
            "weights must be those of one sentence, (target words, source words), "
            f"neither 0; got {tuple(weights.shape)}"
        )


def check_aligned(pairs):
    """ValueError, in words, unless there are pairs, each with its gold alignment."""
    if not pairs or any(pair.alignment is None for pair in pairs):
        raise ValueError(
            "gold places need pairs that have an alignment, and at least one: the "
            "Village corpus has them, joined pairs and real text have not"
        )


def check_statements(pairs):
    """ValueError, in words, unless each of two or more pairs ends with a full stop."""
    if len(pairs) < 2 or any({p.source[-1], p.target[-1]} != {"."} for p in pairs):
        raise ValueError(
            "joined are two or more pairs whose sentences end with a full stop: "
            "another last word would be lost"
        )
