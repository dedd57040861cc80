"""Data: corpora, batches, and the order in which a loader gives them."""

import random
from collections import Counter

import pytest
import torch
from helpers import tries
from hypothesis import given
from hypothesis import strategies as st

from utils.data import (
    Batch,
    BatchLoader,
    Corpus,
    Pair,
    cut_batches,
    encode_sources,
    padding_share,
)
from utils.text import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Vocab

# --- corpora ----------------------------------------------------------------------


def test_vocabs_know_the_training_split_only():
    train = [Pair(("a", "b"), ("x",)), Pair(("a",), ("y", "x"))]
    test = [Pair(("c",), ("z", "!"))]
    corpus = Corpus("Toy", "en", "fr", {"train": train, "test": test})
    assert repr(corpus) == "Toy en→fr: train 2, test 1" and corpus["test"] == test
    assert corpus.target_texts("test") == ["Z\u00a0!"]
    vocabs = corpus.vocabs()
    assert [vocab.lang for vocab in vocabs] == ["en", "fr"]
    known = [vocab.idx_to_token for vocab in vocabs]
    assert known == [[*SPECIALS, "a", "b"], [*SPECIALS, "x", "y"]]


# --- batches ----------------------------------------------------------------------


def make_pairs(lengths):
    """One pair for each (source length, target length), all different."""
    return [Pair((f"s{n}",) * a, (f"t{n}",) * b) for n, (a, b) in enumerate(lengths)]


def make_vocabs(pairs):
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    return Vocab(sources, "en"), Vocab(targets, "fr")


length_lists = st.lists(
    st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=60
)


def test_batch_by_hand():
    pairs = [Pair(("a", "b"), ("x",)), Pair(("a",), ("y", "x", "new"))]
    src, tgt = Vocab([["a", "b"]], "en"), Vocab([["x", "y"]], "fr")
    batch = Batch.from_pairs(pairs, src, tgt)
    target_in = [[BOS_ID, 4, PAD_ID, PAD_ID], [BOS_ID, 5, 4, UNK_ID]]
    target_out = [[4, EOS_ID, PAD_ID, PAD_ID], [5, 4, UNK_ID, EOS_ID]]
    assert batch.source.tolist() == [[4, 5, EOS_ID], [4, EOS_ID, PAD_ID]]
    assert batch.source_lens.tolist() == [3, 2]
    assert batch.target_in.tolist() == target_in
    assert batch.target_out.tolist() == target_out
    assert batch.target_lens.tolist() == [2, 4]
    assert {tensor.dtype for tensor in batch} == {torch.int64}
    # A list of words can't write padding, a beginning or an end; a text is read.
    ids, lens = encode_sources([["a", *SPECIALS], "A b!", []], src)
    unknown = [4, *[UNK_ID] * 4, EOS_ID]
    assert ids.tolist()[0] == unknown and lens.tolist() == [6, 4, 1]
    assert ids.tolist()[1:] == [[4, 5, UNK_ID, EOS_ID, 0, 0], [EOS_ID] + [PAD_ID] * 5]


# --- loaders ----------------------------------------------------------------------


def rows_of(batches):
    """The source sentence of every row, as a tuple of ids."""
    return [
        [tuple(row[row != PAD_ID].tolist()) for row in batch.source]
        for batch in batches
    ]


@tries
@given(length_lists, st.integers(1, 8), st.booleans(), st.booleans(), st.integers(0, 5))
def test_every_pair_once_an_epoch(lengths, batch_size, bucketed, shuffle, k):
    pairs = make_pairs(lengths)
    src, tgt = make_vocabs(pairs)
    loader = BatchLoader(pairs, src, tgt, batch_size, 3, bucketed, shuffle)
    batches = list(loader.epoch(k))
    assert len(batches) == len(loader)
    sizes = sorted(len(batch.source) for batch in batches)
    assert sizes[1:] == [batch_size] * (len(sizes) - 1) and sizes[0] <= batch_size
    seen = [row for rows in rows_of(batches) for row in rows]
    in_order = [(*src[pair.source], EOS_ID) for pair in pairs]
    assert Counter(seen) == Counter(in_order)
    for batch in batches:
        for source, target in zip(batch.source, batch.target_out, strict=True):
            source_token = src.to_tokens(source[0])
            assert tgt.to_tokens(target[0]) == source_token.replace("s", "t")
    again = BatchLoader(pairs, src, tgt, batch_size, 3, bucketed, shuffle)
    for a, b in zip(batches, again.epoch(k), strict=True):
        assert all(map(torch.equal, a, b))
    if not shuffle:
        assert rows_of(loader.epoch(k + 1)) == rows_of(batches)
        assert bucketed or seen == in_order


def test_order_depends_on_seed_and_epoch_alone():
    pairs = make_pairs([(1 + i % 7, 1 + i % 5) for i in range(300)])
    vocabs = make_vocabs(pairs)
    loader = BatchLoader(pairs, *vocabs, batch_size=8, seed=1)
    epochs = [rows_of(loader.epoch(k)) for k in range(3)]
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert rows_of(loader) == epochs[0]
    # Neither what ran before nor the global generators matter, nor are they moved.
    random.seed(5)
    torch.manual_seed(5)
    states = random.getstate(), torch.get_rng_state()
    fresh = BatchLoader(pairs, *vocabs, batch_size=8, seed=1)
    assert rows_of(fresh.epoch(2)) == epochs[2]
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    other = BatchLoader(pairs, *vocabs, batch_size=8, seed=2)
    assert rows_of(other.epoch(0)) != epochs[0]
    # Members of a batch change too, not only the order of the batches.
    members = [{frozenset(rows) for rows in epoch} for epoch in epochs[:2]]
    assert members[0] != members[1]
    longest = [max(map(len, rows)) for rows in epochs[0]]
    assert longest != sorted(longest)  # nor do the batches come by length


def test_buckets_save_padding():
    rng = random.Random(0)
    lengths = [(n := rng.randint(3, 30), n + rng.randint(-2, 2)) for _ in range(2000)]
    pairs = make_pairs(lengths)
    vocabs = make_vocabs(pairs)
    shares = [
        padding_share(BatchLoader(pairs, *vocabs, bucketed=bucketed, batch_size=32))
        for bucketed in (True, False)
    ]
    assert shares[0] < 0.1 < 0.35 < shares[1] < 0.6
    pairs = [Pair(("a",), ("x",)), Pair(("a", "a", "a"), ("x",))]
    # Sources 2 and 4 of 4 positions, targets 2 and 2 of 2: 10 real of 12.
    batch = Batch.from_pairs(pairs, *make_vocabs(pairs))
    assert padding_share([batch]) == pytest.approx(1 / 6)


def test_pools_are_sorted_and_cut():
    lengths = [(n,) for n in range(1000, 0, -1)]
    batches = cut_batches(lengths, batch_size=10)
    assert len(batches) == 100
    # The first pool is the first 50 batches, from short to long.
    assert batches[0] == list(range(499, 489, -1))
    assert batches[50] == list(range(999, 989, -1))
    assert cut_batches(lengths, 10, bucketed=False)[0] == list(range(10))
    assert [len(b) for b in cut_batches([(1,)] * 7, 3)] == [3, 3, 1]


SMALL, ONE = Vocab([["a"]], "en"), [Pair(("a",), ("x",))]
CORPUS = Corpus("Toy", "en", "fr", {"train": ONE, "test": ONE})


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: CORPUS["dev"], ValueError, "Toy has no split 'dev', only train, test"),
        (lambda: encode_sources([], SMALL), ValueError, "no sentence to make a batch"),
        (lambda: encode_sources("a b", SMALL), TypeError, "got the string 'a b'"),
        (lambda: BatchLoader([], SMALL, SMALL), ValueError, "no pairs to make batches"),
        (
            lambda: BatchLoader(CORPUS, SMALL, SMALL),
            ValueError,
            "no split 0, only train",
        ),
        (lambda: BatchLoader(ONE, SMALL, SMALL, 0), ValueError, "batch_size .* got 0"),
        (lambda: BatchLoader(ONE, SMALL, SMALL, 2.5), ValueError, "batch_.* got 2.5"),
    ],
)
def test_what_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()
    assert len(BatchLoader(ONE, SMALL, SMALL, 1)) == 1
