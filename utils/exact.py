"""Exact search: the most probable translation of all, where that can be known.

S source and T target positions, V words; N beginnings that are still open.
"""

import torch

from utils.decoding import beam_search, select_rows, step_limit, writable
from utils.text import BOS_ID, EOS_ID


@torch.no_grad()
def exact_search(
    model, source, source_lens, max_rows=20_000, beam_size=5, max_steps=None, part=200
):
    """The most probable of all translations that end, and whether that is certain.

    One sentence: source (1, S), source_lens (1,) -> ids (T,), log-probability, and True
    unless more than max_rows beginnings were followed: then the best found. A beam's
    result is the bound: what is less probable than it can't become better. So for a
    bound of probability p, fewer than 1 / p beginnings of one length are open. The best
    `part` of them are followed to their ends before the next, so that the bound rises
    soon. (Stahlberg and Byrne, 2019, follow one at a time.)
    """
    ids, log_probs, _ = beam_search(model, source, source_lens, beam_size, max_steps)
    best, bound, seen = ids[0], log_probs.item(), 0
    state = model.decoder.init_state(model.encoder(source, source_lens), source_lens)
    row = torch.tensor([0])  # of the state, for each open beginning
    todo = [(torch.tensor([[BOS_ID]]), torch.zeros(1).double(), state, row)]
    while todo:
        open_ids, log_probs, state, rows = todo.pop()
        going = log_probs > bound  # the bound may have risen meanwhile
        if open_ids.shape[1] > step_limit(source, max_steps) or not going.any():
            continue
        open_ids, log_probs, rows = open_ids[going], log_probs[going], rows[going]
        seen += len(open_ids)
        if seen > max_rows:
            return best, bound, False
        state = select_rows(state, rows)
        logits, state = model.decoder(open_ids[:, -1:], state)
        steps = writable(logits.squeeze(1).log_softmax(dim=-1))  # (N, V)
        totals = log_probs.unsqueeze(1) + steps
        rows, words = (totals > bound).nonzero(as_tuple=True)
        log_probs, order = totals[rows, words].sort(descending=True)
        rows, words = rows[order], words[order]
        ids = torch.cat((open_ids[rows], words.unsqueeze(1)), dim=1)
        ended = words == EOS_ID
        if ended.any() and log_probs[ended][0] > bound:  # the best of them is first
            best, bound = ids[ended][0, 1:], log_probs[ended][0].item()
        parts = (x[~ended].split(part) for x in (ids, log_probs, rows))
        pieces = [(i, p, state, r) for i, p, r in zip(*parts, strict=True)]
        todo += reversed(pieces)  # the most probable ones come next
    return best, bound, True
