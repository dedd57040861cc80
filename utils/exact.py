"""Exact search: the most probable translation of all, where that can be known.

S source and T target positions, V words; N beginnings that are still open.
"""

import torch

from utils.decoding import beam_search, select_rows, step_limit, writable
from utils.text import BOS_ID, EOS_ID


@torch.no_grad()
def exact_search(
    model, source, source_lens, max_rows=20_000, beam_size=5, max_steps=None
):
    """The most probable of all translations that end, and whether that is certain.

    One sentence: source (1, S), source_lens (1,) -> ids (T,), log-probability, and True
    unless more than max_rows beginnings were followed: then the best found. A beam's
    result is the bound: what is less probable than it can't become better. So for a
    bound of probability p, fewer than 1 / p beginnings of one length are open. (After
    Stahlberg and Byrne, 2019, who follow one beginning to its end before the next.)
    """
    ids, log_probs, _ = beam_search(model, source, source_lens, beam_size, max_steps)
    best, bound, seen = ids[0], log_probs.item(), 0
    state = model.decoder.init_state(model.encoder(source, source_lens), source_lens)
    open_ids, log_probs = torch.tensor([[BOS_ID]]), torch.zeros(1).double()
    come_from = torch.tensor([0])  # the row of the state of each open beginning
    for _ in range(step_limit(source, max_steps)):
        seen += len(open_ids)
        if seen > max_rows:
            return best, bound, False
        state = select_rows(state, come_from)
        logits, state = model.decoder(open_ids[:, -1:], state)
        steps = writable(logits.squeeze(1).log_softmax(dim=-1))  # (N, V)
        totals = log_probs.unsqueeze(1) + steps
        rows, words = (totals > bound).nonzero(as_tuple=True)
        log_probs, ids = totals[rows, words], open_ids[rows]
        ids = torch.cat((ids, words.unsqueeze(1)), dim=1)
        for n in (words == EOS_ID).nonzero()[:, 0]:
            if log_probs[n] > bound:
                best, bound = ids[n, 1:], log_probs[n].item()
        going = (words != EOS_ID) & (log_probs > bound)
        if not going.any():
            break
        open_ids, log_probs, come_from = ids[going], log_probs[going], rows[going]
    return best, bound, True
