"""The exercises of notebook 01. B sentences, S source positions, H hidden units."""

import torch

from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw


def shifted_by_loops(ids):
    """The ids of a sentence -> (what the decoder reads, what it should write)."""
    reads, writes = [1], []
    for word in ids:
        reads.append(word)
        writes.append(word)
    return reads, [*writes, 2]


shift = Exercise(
    "shift",
    shifted_by_loops,
    cases=[([5, 6, 7],), ([8, 4, 9],), ([4],), ([11, 5, 5, 9, 30],)],
    mistakes={
        "both are equal: at each position, the decoder reads the very word that it "
        "should write. It must read the word before.": [
            lambda ids: ([1, *ids, 2], [1, *ids, 2]),
            lambda ids: ([1, *ids], [1, *ids]),
            lambda ids: ([*ids, 2], [*ids, 2]),
            lambda ids: (list(ids), list(ids)),
        ],
        "the two are exchanged: <bos> is read, <eos> is written.": [
            lambda ids: ([*ids, 2], [1, *ids])
        ],
        "the decoder reads <eos>. After <eos> there is nothing to write, so it is "
        "never read.": [lambda ids: ([1, *ids, 2], [*ids, 2])],
        "<bos> is among the words to write. Nobody asks the decoder to write it.": [
            lambda ids: ([1, *ids], [1, *ids, 2])
        ],
        "<eos> is missing: a decoder that never learns to write it never ends.": [
            lambda ids: ([1, *ids], list(ids)),
            lambda ids: ([1, *ids[:-1]], list(ids)),
        ],
        "<bos> is missing: at the first step there is nothing to read.": [
            lambda ids: (list(ids), [*ids, 2])
        ],
        "<bos> is missing: the first word is read, and never written.": [
            lambda ids: (list(ids), [*ids[1:], 2])
        ],
        "<bos> and <eos> are missing: the ids are the words alone. With both of them "
        "around "
        "the words, these two parts would be right.": [lambda ids: (ids[:-1], ids[1:])],
        "shifted twice: what is written runs two words ahead of what is read.": [
            lambda ids: ([1, *ids], [*ids[1:], 2])
        ],
        "<bos> is 1 and <eos> is 2.": [lambda ids: ([2, *ids], [*ids, 1])],
    },
)


def last_states_by_loops(outputs, valid_lens):
    """Outputs (B, S, H) and lengths (B,) -> each sentence's last state (B, H)."""
    rows = []
    for b in range(len(outputs)):
        state = None
        for j in range(int(valid_lens[b])):
            state = outputs[b, j]
        rows.append(state)
    return torch.stack(rows)


def _case(seed, lens, S, H):
    return *draw(seed, (len(lens), S, H)), torch.tensor(lens)


def _at(outputs, positions):
    return outputs[torch.arange(len(outputs)), positions]


def _mean_of_words(outputs, lens):
    pairs = zip(outputs, lens, strict=True)
    return torch.stack([row[:n].mean(0) for row, n in pairs])


last_states = Exercise(
    "last_states",
    last_states_by_loops,
    cases=[
        _case(0, [5, 3, 1], 6, 4),
        _case(1, [5, 2, 4], 6, 4),
        _case(2, [3, 2], 4, 5),
        _case(3, [4], 5, 3),
        _case(4, [2, 4, 3, 4], 4, 4),
    ],
    mistakes={
        "this is the last position. In a shorter sentence padding stands there, and "
        "not a word: "
        "which position holds the last word?": [lambda outputs, lens: outputs[:, -1]],
        "this is the last sentence of the batch: the first axis is the batch.": [
            lambda outputs, lens: outputs[-1]
        ],
        "one position too far: a sentence of 3 words has its last one at 2.": [
            lambda outputs, lens: _at(outputs, lens.clamp(max=outputs.shape[1] - 1)),
            lambda outputs, lens: _at(outputs, lens),
        ],
        "one position too early.": [lambda outputs, lens: _at(outputs, lens - 2)],
        "this is the state at the first word.": [lambda outputs, lens: outputs[:, 0]],
        "the first sentence's length is used for all.": [
            lambda outputs, lens: outputs[:, lens[0] - 1]
        ],
        "the longest sentence's length is used for all.": [
            lambda outputs, lens: outputs[:, lens.max() - 1]
        ],
        "the shortest sentence's length is used for all.": [
            lambda outputs, lens: outputs[:, lens.min() - 1]
        ],
        "indexing with `:` pairs every sentence with every length. Pair sentence b "
        "with its "
        "own: torch.arange(B) in front.": [lambda outputs, lens: outputs[:, lens - 1]],
        "this is the mean over all positions.": [lambda outputs, lens: outputs.mean(1)],
        "this is the maximum over positions.": [lambda outputs, lens: outputs.amax(1)],
        "this is the sum over all positions.": [lambda outputs, lens: outputs.sum(1)],
        "this is the mean over the words. The last word's state is asked for.": [
            _mean_of_words
        ],
    },
    gradients=True,
)
