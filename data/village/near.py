"""Sentences that differ in a few words."""

from collections import defaultdict


def distance(a, b, most) -> int:
    """Words to insert, delete or replace; most + 1 where it is more."""
    if abs(len(a) - len(b)) > most:
        return most + 1
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            last, row[j] = (
                row[j],
                min(last + (word != other), row[j] + 1, row[j - 1] + 1),
            )
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
            for start, end in pieces(len(words), most + 1):
                self.parts[tuple(words[start:end])].append((number, start))

    def near(self, words):
        """(number of the sentence, distance) of those within `most` words."""
        found = set()
        sizes = {end - start for key in self.parts for start, end in ((0, len(key)),)}
        for size in sizes:
            for at in range(len(words) - size + 1):
                for number, start in self.parts.get(tuple(words[at : at + size]), ()):
                    if abs(start - at) <= self.most:
                        found.add(number)
        for number in found:
            d = distance(words, self.sentences[number], self.most)
            if d <= self.most:
                yield number, d

    def within(self, words, most):
        return any(d <= most for _, d in self.near(words))


def pieces(length, number):
    """(start, end) of so many parts of about one size."""
    ends = [round(k * length / number) for k in range(number + 1)]
    return [(a, b) for a, b in zip(ends, ends[1:], strict=False) if a < b]
