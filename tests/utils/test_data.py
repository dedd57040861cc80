"""Data: corpora, batches, and the order in which a loader gives them."""

import random
from collections import Counter
from itertools import combinations

import pytest
import torch
from helpers import refusals
from hypothesis import given
from hypothesis import strategies as st

from utils import data
from utils.data import Batch, BatchLoader, Corpus, Pair, cut_batches, encode_sources
from utils.text import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID, Vocab


def test_vocabs_know_the_training_split_only():
    train = [Pair(("a", "b"), ("x",)), Pair(("a",), ("y", "x"))]
    test = [Pair(("c",), ("z", "!"))]
    corpus = Corpus("Toy", "en", "fr", {"train": train, "test": test})
    assert repr(corpus) == "Toy en→fr: train 2, test 1" and corpus["test"] == test
    assert corpus.target_texts("test") == ["Z\u00a0!"]
    assert [vocab.lang for vocab in corpus.vocabs()] == ["en", "fr"]
    known = [vocab.idx_to_token for vocab in corpus.vocabs()]
    assert known == [[*SPECIALS, "a", "b"], [*SPECIALS, "x", "y"]]


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
    ids, lens = encode_sources(["A b!", []], src)
    assert ids.tolist() == [[4, 5, UNK_ID, EOS_ID], [EOS_ID, *[PAD_ID] * 3]]
    assert lens.tolist() == [4, 1]


def make_loader(lengths, *options, **more):
    """A loader of pairs of these (source, target) lengths, all different."""
    pairs = [Pair((f"s{n}",) * a, (f"t{n}",) * b) for n, (a, b) in enumerate(lengths)]
    vocabs = (Vocab(side, "en") for side in list(zip(*pairs, strict=True))[:2])
    return BatchLoader(pairs, *vocabs, *options, **more)


def rows_of(batches):
    """Both sentences of every row, as tuples of ids."""
    return [
        [
            tuple(tuple(ids[ids != PAD_ID].tolist()) for ids in row)
            for row in zip(batch.source, batch.target_out, strict=True)
        ]
        for batch in batches
    ]


LENGTHS = st.integers(1, 9)


@given(
    st.lists(st.tuples(LENGTHS, LENGTHS), min_size=1, max_size=60),
    st.integers(1, 8),
    st.booleans(),
    st.booleans(),
    st.integers(0, 5),
)
def test_every_pair_once_an_epoch(lengths, batch_size, bucketed, shuffle, k):
    loader = make_loader(lengths, batch_size, 3, bucketed, shuffle)
    rows = rows_of(loader.epoch(k))
    seen, pairs = sum(rows, []), [tuple(map(tuple, ids)) for ids in loader.ids]
    assert Counter(seen) == Counter(pairs) and len(pairs) == len(lengths)
    sizes = sorted(map(len, rows))
    assert len(rows) == len(loader)
    assert sizes[1:] == [batch_size] * (len(rows) - 1) and sizes[0] <= batch_size
    if not shuffle:
        assert rows_of(loader.epoch(k + 1)) == rows
        assert bucketed or seen == pairs


def test_order_depends_on_seed_and_epoch_alone():
    lengths = [(1 + i % 7, 1 + i % 5) for i in range(300)]
    loader = make_loader(lengths, 8, seed=1)
    states = random.getstate(), torch.get_rng_state()
    epochs = [rows_of(loader.epoch(k)) for k in range(3)]
    assert random.getstate() == states[0]
    assert torch.equal(torch.get_rng_state(), states[1])
    assert rows_of(loader) == epochs[0]
    random.seed(5)  # neither the global generators matter, nor what ran before
    assert rows_of(make_loader(lengths, 8, seed=1).epoch(2)) == epochs[2]
    other = rows_of(make_loader(lengths, 8, seed=2))
    # Members of a batch change too, not only the order of the batches.
    members = [{frozenset(rows) for rows in epoch} for epoch in (*epochs, other)]
    assert all(a != b for a, b in combinations(members, 2))
    longest = [max(len(source) for source, _ in rows) for rows in epochs[0]]
    assert longest != sorted(longest)  # nor do the batches come by length


def test_the_share_of_padding():
    # Sources 2 and 4 of 4 positions, targets 2 and 2 of 2: 10 real of 12.
    assert data.padding_share(make_loader([(1, 1), (3, 1)])) == pytest.approx(1 / 6)


def test_pools_are_sorted_and_cut():
    batches = cut_batches([(n,) for n in range(1000, 0, -1)], batch_size=10)
    # The first pool is the first 50 batches, from short to long.
    assert batches[0] == list(range(499, 489, -1))
    assert batches[50] == list(range(999, 989, -1))


SMALL, ONE = Vocab([["a"]], "en"), [Pair(("a",), ("x",))]
CORPUS = Corpus("Toy", "en", "fr", {"train": ONE, "test": ONE})


test_what_is_refused = refusals(
    (lambda: CORPUS["dev"], "Toy has no split 'dev', only train, test"),
    (lambda: encode_sources([], SMALL), "no sentence to make a batch"),
    (lambda: encode_sources("a b", SMALL), TypeError, "got the string 'a b'"),
    (lambda: BatchLoader([], SMALL, SMALL), "no pairs to make batches"),
    (lambda: BatchLoader(ONE, SMALL, SMALL, 0), "batch_size .* got 0"),
)
