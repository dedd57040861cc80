"""Exact search, against looking at every sentence."""

from itertools import product

import pytest
import torch
from helpers.models import random_model

from utils.decoding import beam_search
from utils.exact import exact_search
from utils.text import BOS_ID, EOS_ID, UNK_ID

TINY, CAP = 6, 3  # words in the vocabulary, and at most in a sentence
WRITTEN = [UNK_ID, 4, 5]  # all that can be written, but <eos>
EVERY = [(*w, EOS_ID) for n in range(CAP) for w in product(WRITTEN, repeat=n)]


@torch.no_grad()
def log_prob(model, source, lens, words):
    scores, _ = model(source, torch.tensor([[BOS_ID, *words[:-1]]]), lens)
    steps = scores[0].double().log_softmax(dim=-1)
    return steps[range(len(words)), words].sum().item()


def cases():
    """Models, one sentence each, and the beam of 1 if what it finds ends."""
    for seed in range(12):
        model = random_model("attention", TINY, seed=seed)
        source = torch.tensor([[4, 5, UNK_ID][: 1 + seed % 3]])
        lens = torch.tensor([source.shape[1]])
        ids, bound, _ = beam_search(model, source, lens, 1, CAP)
        if EOS_ID in ids:
            yield model, source, lens, ids[0].tolist(), bound.item()


def test_the_best_of_all_is_found():
    better = 0
    for model, source, lens, greedy, _ in cases():
        every = {words: log_prob(model, source, lens, words) for words in EVERY}
        ids, found, certain = exact_search(model, source, lens, 10**4, 1, CAP)
        assert certain and tuple(ids.tolist()) == max(every, key=every.get)
        assert found == pytest.approx(max(every.values()), abs=1e-4)
        better += ids.tolist() != greedy
    assert better > 0


def test_it_says_when_it_has_not_seen_all():
    for model, source, lens, greedy, bound in cases():
        ids, found, certain = exact_search(model, source, lens, 0, 1, CAP)
        assert (ids.tolist(), found, certain) == (greedy, bound, False)


def test_what_is_less_probable_than_the_bound_is_not_opened(monkeypatch):
    """So fewer than 1 / p beginnings of one length go through the decoder."""
    for model, source, lens, _, bound in cases():
        rows, step = [], model.decoder.forward
        monkeypatch.setattr(
            model.decoder,
            "forward",
            lambda ids, state, step=step, rows=rows: (
                rows.append(len(ids)) or step(ids, state)
            ),
        )
        exact_search(model, source, lens, 10**4, 1, CAP)
        assert max(rows) <= 1 / torch.tensor(bound).exp()
