"""Corpora of sentence pairs, their splits, and batches of ids for a model.

Shapes: B pairs in a batch, S tokens in the longest source, T in the longest target,
<eos> counted.
"""

import math
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from utils.guards import require_whole
from utils.text import BOS_ID, EOS_ID, PAD_ID, Vocab, check_tokens, detokenize


class Pair(NamedTuple):
    """A sentence and its translation: each its words, or a text as it was written.

    alignment: the gold links that are sure, (source word, target word) by place; None
    where unknown. possible: further ones, which a careful reader may draw or leave out.
    ends: of texts that have links, where the words of each side end, in characters.
    line: the number of its line in a file of one's own.
    """

    source: tuple[str, ...] | str
    target: tuple[str, ...] | str
    alignment: frozenset[tuple[int, int]] | None = None
    tags: frozenset[str] = frozenset()
    possible: frozenset[tuple[int, int]] = frozenset()
    ends: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    line: int | None = None


@dataclass(frozen=True, repr=False)
class Corpus:
    """Sentence pairs in one direction; corpus["train"] is the list of a split.

    findings: what was seen in the text, or done to it: one sentence for each kind.
    """

    name: str
    source_lang: str
    target_lang: str
    splits: dict[str, list[Pair]]
    findings: list[str] = field(default_factory=list)

    def __getitem__(self, split: str) -> list[Pair]:
        if split not in self.splits:
            known = ", ".join(self.splits)
            raise ValueError(f"{self.name} has no split {split!r}, only {known}")
        return self.splits[split]

    def vocabs(self) -> tuple[Vocab, Vocab]:
        """Source and target vocabulary, of the training split only."""
        sides = zip(*(pair[:2] for pair in self["train"]), strict=True)
        return tuple(map(Vocab, sides, (self.source_lang, self.target_lang)))

    def shared_vocabs(self, left_out=(), extends=False) -> tuple[Vocab, Vocab]:
        """One vocabulary for both sides, without some words; see Vocab for extends."""
        sides = [side for pair in self["train"] for side in pair[:2]]
        kept = [[word for word in side if word not in left_out] for side in sides]
        languages = self.source_lang, self.target_lang
        return tuple(Vocab(kept, lang, extends=extends) for lang in languages)

    def target_texts(self, split) -> list[str]:
        """The target sentences of a split, as texts to score a translation against."""
        sides, lang = [pair.target for pair in self[split]], self.target_lang
        return [s if isinstance(s, str) else detokenize(s, lang) for s in sides]

    def __repr__(self):
        sizes = [f"{split} {len(pairs):,}" for split, pairs in self.splits.items()]
        return f"{self.name} {self.source_lang}→{self.target_lang}: {', '.join(sizes)}"


# Batches


def encode_pairs(pairs, src_vocab, tgt_vocab) -> tuple[list[list[int]], ...]:
    """The ids of all sources and of all targets, <eos> appended to each."""
    sources = [src_vocab.encode(pair.source) for pair in pairs]
    targets = [
        tgt_vocab.extended(source).encode(pair.target)
        for source, pair in zip(sources, pairs, strict=True)
    ]
    return tuple([[*x.ids, EOS_ID] for x in side] for side in (sources, targets))


def pad(sequences: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids (B, L) filled up with PAD_ID, and their lengths (B,), both int64."""
    if not sequences:
        raise ValueError("there is no sentence to make a batch of")
    lens = [len(ids) for ids in sequences]
    rows = [ids + [PAD_ID] * (max(lens) - len(ids)) for ids in sequences]
    return torch.tensor(rows), torch.tensor(lens)


def encode_sources(sentences, src_vocab: Vocab) -> tuple[torch.Tensor, torch.Tensor]:
    """Source ids (B, S), each sentence with <eos>, and lengths (B,), <eos> counted.

    sentences: lists of words, or texts. Raises ValueError for none, TypeError for a
    string in place of a list.
    """
    return pad([[*src_vocab.encode(s).ids, EOS_ID] for s in check_tokens(sentences)])


class Batch(NamedTuple):
    """Padded ids of B pairs; the decoder reads target_in and should write target_out.

    source and target_out end with <eos>, counted in the lengths; target_in is
    target_out one step later: it begins with <bos> and has no <eos>.
    """

    source: torch.Tensor  # (B, S)
    source_lens: torch.Tensor  # (B,)
    target_in: torch.Tensor  # (B, T)
    target_out: torch.Tensor  # (B, T)
    target_lens: torch.Tensor  # (B,)

    @classmethod
    def from_ids(cls, sources, targets):
        """From lists of ids that end with EOS_ID."""
        shifted = [[BOS_ID, *ids[:-1]] for ids in targets]
        return cls(*pad(sources), pad(shifted)[0], *pad(targets))

    @classmethod
    def from_pairs(cls, pairs, src_vocab, tgt_vocab):
        """From pairs; ValueError if there is none."""
        return cls.from_ids(*encode_pairs(pairs, src_vocab, tgt_vocab))


POOL = 50  # batches sorted by length together


def cut_batches(lengths, batch_size, bucketed=True, rng=None) -> list[list[int]]:
    """Positions in lengths, cut into batches of batch_size; the last may be smaller.

    bucketed: positions of similar length share a batch, so little of it is padding.
    rng (a random.Random) shuffles the positions before and the batches after.
    """
    order = list(range(len(lengths)))
    if rng:
        rng.shuffle(order)
    if bucketed:
        pools = cut(order, POOL * batch_size)
        order = [i for pool in pools for i in sorted(pool, key=lengths.__getitem__)]
    batches = cut(order, batch_size)
    if rng:
        rng.shuffle(batches)
    return batches


def cut(items: list, size: int) -> list[list]:
    """Items in lists of the given size; the last may be shorter."""
    return [items[i : i + size] for i in range(0, len(items), size)]


class BatchLoader:
    """Batches of pairs, in an order that depends on the seed and the epoch alone.

    alpha: above 0, each epoch cuts every text anew by `SubwordVocab.sample`.
    """

    def __init__(
        self,
        pairs,
        src_vocab,
        tgt_vocab,
        batch_size=64,
        seed=0,
        bucketed=True,
        shuffle=True,
        alpha=0.0,
    ):
        if not pairs:
            raise ValueError("there are no pairs to make batches of: the list is empty")
        require_whole("batch_size", batch_size)
        self.ids = list(zip(*encode_pairs(pairs, src_vocab, tgt_vocab), strict=True))
        self.pairs, self.vocabs = pairs, (src_vocab, tgt_vocab)
        self.batch_size, self.seed, self.alpha = batch_size, seed, alpha
        self.bucketed, self.shuffle = bucketed, shuffle

    def __len__(self):
        return math.ceil(len(self.ids) / self.batch_size)

    def __iter__(self):
        return self.epoch(0)

    def sampled(self, k):
        rng = random.Random(f"cuts of seed {self.seed}, epoch {k}")
        for pair in self.pairs:
            sides = zip(self.vocabs, pair[:2], strict=True)
            yield [[*vocab.sample(x, rng, self.alpha), EOS_ID] for vocab, x in sides]

    def epoch(self, k):
        rng = random.Random(f"seed {self.seed}, epoch {k}") if self.shuffle else None
        ids = list(self.sampled(k)) if self.alpha else self.ids
        lengths = [(len(source), len(target)) for source, target in ids]
        for rows in cut_batches(lengths, self.batch_size, self.bucketed, rng):
            yield Batch.from_ids(*zip(*(ids[i] for i in rows), strict=True))


def padding_share(batches: Iterable[Batch]) -> float:
    """The share of the positions in source and target_out that is padding, 0 to 1."""
    real = positions = 0
    for batch in batches:
        real += int(batch.source_lens.sum() + batch.target_lens.sum())
        positions += batch.source.numel() + batch.target_out.numel()
    return 1 - real / positions
