"""Seeded inputs, from which the cases of the exercises are made."""

import torch


def draw(seed, *shapes):
    """Seeded normal tensors of these shapes."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def case(seed, numbers, *shape):
    """A seeded normal tensor, and a tensor of these numbers."""
    return *draw(seed, shape), torch.tensor(numbers)


def seeded(seed, make, *sizes, **options):
    """A module with seeded parameters."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make(*sizes, **options)
