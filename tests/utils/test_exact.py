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


def test_the_best_of_all_is_found_or_it_says_that_not_all_were_seen():
    """And fewer than 1 / p beginnings of one length go through the decoder."""
    better, rows = 0, []
    for seed in range(120):
        model = random_model("attention", TINY, seed=seed)
        source = torch.tensor([[4, 5, UNK_ID][: 1 + seed % 3]])
        lens = torch.tensor([source.shape[1]])
        greedy, bound, _ = beam_search(model, source, lens, 1, CAP)
        if EOS_ID not in greedy:
            continue
        every = {words: log_prob(model, source, lens, words) for words in EVERY}
        model.decoder.register_forward_hook(lambda _, X, out: rows.append(len(X[0])))
        rows.clear()
        for part in (1, 200):  # one beginning at a time; all of one length
            ids, found, certain = exact_search(model, source, lens, 10**4, 1, CAP, part)
            assert certain and tuple(ids.tolist()) == max(every, key=every.get)
            assert found == pytest.approx(max(every.values()), abs=1e-4)
        assert max(rows) <= 1 / bound.exp()
        better += ids.tolist() != greedy[0].tolist()
        ids, found, certain = exact_search(model, source, lens, 0, 1, CAP)
        assert torch.equal(ids, greedy[0]) and (found, certain) == (bound.item(), False)
    assert better > 0
