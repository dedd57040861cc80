"""Sentences that differ in a few words."""

from collections import defaultdict


def nearest(texts, others, most) -> list[int]:
    """Distance of each text (a list of words) from the others, at most `most` + 1."""
    sized, found = defaultdict(list), []
    for other in others:
        sized[len(other)].append((set(other), other))
    for text in texts:
        sizes, said = range(len(text) - most, len(text) + most + 1), set(text)
        # each word that the other lacks is one to replace, delete or insert
        near = [b for n in sizes for has, b in sized[n] if len(said - has) <= most]
        distances = (distance(text, other, most) for other in near)
        found.append(min(distances, default=most + 1))
    return found


def distance(a, b, most) -> int:
    """Words to insert, delete or replace; most + 1 where it is more."""
    row = list(range(len(b) + 1))
    for i, word in enumerate(a, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(b, 1):
            best = min(last + (word != other), row[j] + 1, row[j - 1] + 1)
            last, row[j] = row[j], best
        if min(row) > most:
            return most + 1
    return min(row[-1], most + 1)
