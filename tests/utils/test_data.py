"""Data: corpora, batches, and the order in which a loader gives them."""

import random
from collections import Counter

import pytest
import torch
from helpers import TEXTS, tried, tries
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


@pytest.fixture
def corpus():
    train = [Pair(("a", "b"), ("x",)), Pair(("a",), ("y", "x"))]
    return Corpus("Toy", "en", "fr", {"train": train, "test": [Pair(("c",), ("z",))]})


def test_corpus(corpus):
    assert corpus["test"] == [Pair(("c",), ("z",), None, frozenset(), frozenset())]
    assert repr(corpus) == "Toy en→fr: train 2, test 1"
    with pytest.raises(ValueError, match="Toy has no split 'dev', only train, test"):
        corpus["dev"]
    with pytest.raises(AttributeError):
        corpus.name = "other"


@pytest.mark.parametrize(
    "options, words",
    [({}, "ab xy"), ({"min_freq": 2}, "a x"), ({"max_size": 1}, "a x")],
)
def test_vocabs_know_the_training_split_only(corpus, options, words):
    vocabs = corpus.vocabs(**options)
    assert [vocab.lang for vocab in vocabs] == ["en", "fr"]
    known = [vocab.idx_to_token for vocab in vocabs]
    assert known == [[*SPECIALS, *side] for side in words.split()]


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


@pytest.mark.parametrize("name", SPECIALS)
def test_a_text_can_not_write_padding_a_beginning_or_an_end(name):
    vocab = Vocab([["a"]], "en")
    batch = Batch.from_pairs([Pair(("a", name), (name, "a"))], vocab, vocab)
    assert batch.source.tolist() == [[4, UNK_ID, EOS_ID]]
    assert batch.target_in.tolist() == [[BOS_ID, UNK_ID, 4]]
    assert encode_sources([[name]], vocab)[0].tolist() == [[UNK_ID, EOS_ID]]


@tries
@given(length_lists)
def test_batch_properties(lengths):
    pairs = make_pairs(lengths)
    src, tgt = make_vocabs(pairs)
    batch = Batch.from_pairs(pairs, src, tgt)
    assert batch.source_lens.tolist() == [a + 1 for a, _ in lengths]
    assert batch.target_lens.tolist() == [b + 1 for _, b in lengths]
    assert batch.source.shape == (len(pairs), batch.source_lens.max())
    shape = (len(pairs), batch.target_lens.max())
    assert batch.target_in.shape == batch.target_out.shape == shape
    for ids, lens in (
        (batch.source, batch.source_lens),
        (batch.target_in, batch.target_lens),
        (batch.target_out, batch.target_lens),
    ):
        real = torch.arange(ids.shape[1]) < lens[:, None]
        assert torch.equal(ids != PAD_ID, real)
    rows = torch.arange(len(pairs))
    assert (batch.source[rows, batch.source_lens - 1] == EOS_ID).all()
    assert (batch.target_out[rows, batch.target_lens - 1] == EOS_ID).all()
    assert (batch.target_in[:, 0] == BOS_ID).all()
    for row, length in enumerate(batch.target_lens):
        shifted = batch.target_in[row, 1:length]
        assert torch.equal(shifted, batch.target_out[row, : length - 1])
    source, source_lens = encode_sources([pair.source for pair in pairs], src)
    assert torch.equal(source, batch.source)
    assert torch.equal(source_lens, batch.source_lens)
    alone = Batch.from_pairs(pairs[:1], src, tgt)  # the same as in the larger batch
    for one, all_rows in zip(alone, batch, strict=True):
        row = all_rows[0, : one.shape[1]] if one.dim() == 2 else all_rows[0]
        assert torch.equal(one[0], row)


def test_nothing_to_encode():
    vocab = Vocab([["a"]], "en")
    with pytest.raises(ValueError, match="no sentence to make a batch of"):
        encode_sources([], vocab)
    with pytest.raises(ValueError, match="no sentence to make a batch of"):
        Batch.from_pairs([], vocab, vocab)
    with pytest.raises(TypeError, match="list of tokens, got the string 'a b'"):
        encode_sources("a b", vocab)
    assert encode_sources(["A b!"], vocab)[0].tolist() == [[4, UNK_ID, UNK_ID, EOS_ID]]
    source, lens = encode_sources([[]], vocab)
    assert source.tolist() == [[EOS_ID]] and lens.tolist() == [1]


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


def test_batches_come_in_no_order_of_length():
    pairs = make_pairs([(n, n) for n in range(1, 41)])
    loader = BatchLoader(pairs, *make_vocabs(pairs), batch_size=2)
    longest = [int(batch.source_lens.max()) for batch in loader]
    assert sorted(longest) == list(range(3, 43, 2)) != longest


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


def test_padding_share_by_hand():
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


@tries
@given(st.lists(st.integers(1, 30)), st.integers(1, 9), st.booleans())
def test_any_cut(lengths, batch_size, bucketed):
    batches = cut_batches(lengths, batch_size, bucketed)
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))


VOCABS = Vocab([["a", "b", "我"]], "zh"), Vocab([["x", "y"]], "fr")
TARGETS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=6)
SOURCES = st.lists(st.sampled_from([*"ab我?", "", "\0", "<unk>", "<pad>"]), max_size=6)
PAIRS = st.lists(st.builds(Pair, SOURCES, TARGETS), max_size=9)
SIZES = st.integers(-1, 5) | st.none() | st.floats()


@tries
@given(PAIRS, SIZES, st.integers(), st.booleans(), st.booleans(), TEXTS)
def test_any_batches(pairs, batch_size, seed, bucketed, shuffle, text):
    loader = tried(BatchLoader, pairs, *VOCABS, batch_size, seed, bucketed, shuffle)
    if loader is not None:
        batches = list(loader.epoch(3))
        assert len(batches) == len(loader)
        assert sum(len(batch.source) for batch in batches) == len(pairs)
        for batch in batches:
            assert batch.source.shape[1] == batch.source_lens.max()
            assert torch.equal((batch.source != PAD_ID).sum(1), batch.source_lens)
            assert batch.target_in.shape == batch.target_out.shape
    tried(Batch.from_pairs, pairs, *VOCABS)
    for sentences in ([pair.source for pair in pairs], text, [text]):
        tried(encode_sources, sentences, VOCABS[0])


@pytest.mark.parametrize(
    "pairs, batch_size, error, message",
    [
        ([], 4, ValueError, "no pairs to make batches of: the list is empty"),
        ([Pair(("a",), ("x",))], 0, ValueError, "batch_size .* at least 1, got 0"),
        ([Pair(("a",), ("x",))], -2, ValueError, "batch_size .* at least 1, got -2"),
        ([Pair(("a",), ("x",))], 2.5, ValueError, "batch_size .* at least 1, got 2.5"),
        (
            [Pair(("a",), ("x",))],
            True,
            ValueError,
            "batch_size .* at least 1, got True",
        ),
        (Corpus("T", "en", "fr", {}), 4, TypeError, 'a Corpus: take corpus."train".'),
    ],
)
def test_loader_refuses(pairs, batch_size, error, message):
    vocab = Vocab([["a"]], "en")
    with pytest.raises(error, match=message):
        BatchLoader(pairs, vocab, vocab, batch_size)
