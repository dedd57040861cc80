"""Sentences that differ in a few words."""

from collections import defaultdict
from itertools import pairwise


def distance(a, b, most) -> int:
    """Words to insert, delete or replace; most + 1 where it is more."""
    if abs(len(a) - len(b)) > most or len(set(a).difference(b)) > most:
        return most + 1  # each word of a that b lacks is one to replace or delete
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            best = min(last + (word != other), row[j] + 1, row[j - 1] + 1)
            last, row[j] = row[j], best
        if min(row) > most:
            return most + 1
    return row[-1]


class Neighbours:
    """Finds those of the sentences (lists of words) that are near another one.

    Sentences within k words share one of k + 1 parts, at most k words apart.
    """

    def __init__(self, sentences, most=3):
        self.sentences, self.most = sentences, most
        self.parts = defaultdict(list)
        for number, words in enumerate(sentences):
            ends = [round(k * len(words) / (most + 1)) for k in range(most + 2)]
            for start, end in pairwise(ends):
                if start < end:
                    self.parts[tuple(words[start:end])].append((number, start))
        self.sizes = {len(part) for part in self.parts}

    def near(self, words):
        """(number of the sentence, distance) of those within `most` words."""
        for number in self.candidates(words):
            d = distance(words, self.sentences[number], self.most)
            if d <= self.most:
                yield number, d

    def candidates(self, words):
        return {
            number
            for size in self.sizes
            for at in range(len(words) - size + 1)
            for number, start in self.parts.get(tuple(words[at : at + size]), ())
            if abs(start - at) <= self.most
        }
