"""The checks of the exercises: right answers pass, wrong ones are told what is wrong.

For each check: solutions in several styles, and wrong answers as a learner would write
them, each with words that its message must hold. `python tests/test_checks.py` prints
how many were tried, caught, and told the right thing; names of checks choose some.
"""

import contextlib
import functools
import inspect
import io
import math
import sys
import time
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from utils import checks
from utils.attention import Attention
from utils.rnnsearch import GatedUnit

NOT_ATTEMPTED = "Not attempted yet"
RIGHT, WRONG = {}, {}  # check: solutions; check: {name: (answer, words of the message)}


# --- 00 --------------------------------------------------------------------------


def words_by_loop(weights, source_tokens):
    found = []
    for row in weights:
        found.append(source_tokens[int(row.argmax())])
    return found


def words_by_numpy(weights, source_tokens):
    return [source_tokens[j] for j in np.asarray(weights).argmax(axis=1)]


def words_of_columns(weights, source_tokens):
    found = []
    for j in range(weights.shape[1]):
        found.append(source_tokens[int(weights[:, j].argmax())])
    return found


RIGHT["most_attended"] = [words_by_loop, words_by_numpy]
WRONG["most_attended"] = {
    "columns": (words_of_columns, "went through the columns"),
    "argmax of axis 0": (
        lambda w, s: [s[j] for j in torch.argmax(w, 0)],
        "went through the columns",
    ),
    "positions": (lambda w, s: [int(row.argmax()) for row in w], "these are positions"),
    "positions, a tensor": (lambda w, s: w.argmax(1), "tensor"),
    "smallest": (lambda w, s: [s[int(row.argmin())] for row in w], "looked at least"),
    "without the first row": (
        lambda w, s: [s[w[i].argmax()] for i in range(1, len(w))],
        "first row",
    ),
    "without <eos>": (
        lambda w, s: [s[w[i].argmax()] for i in range(len(w) - 1)],
        "last row",
    ),
    "never <eos>": (lambda w, s: [s[r[:-1].argmax()] for r in w], "last column"),
    "one word for all": (
        lambda w, s: [s[w.mean(0).argmax()] for _ in w],
        "one word for the whole",
    ),
}


# --- 01 --------------------------------------------------------------------------


def shift_by_loop(ids):
    reads, writes = [1], []
    for word in ids:
        reads.append(word)
        writes.append(word)
    writes.append(2)
    return reads, writes


RIGHT["shift"] = [
    shift_by_loop,
    lambda ids: ([1, *ids], [*ids, 2]),
    lambda ids: tuple(([1] + list(ids) + [2])[a : a + len(ids) + 1] for a in (0, 1)),
]
WRONG["shift"] = {
    "no shift": (lambda ids: (ids, ids), "Not yet"),
    "no shift, marked": (lambda ids: ([1] + ids + [2],) * 2, "both are equal"),
    "reads <eos>": (
        lambda ids: ([1] + ids + [2], ids + [2]),
        "the decoder reads <eos>",
    ),
    "writes <bos>": (lambda ids: ([1] + ids, [1] + ids + [2]), "<bos> is among"),
    "no <eos>": (lambda ids: ([1] + ids[:-1], ids), "<eos> is missing"),
    "no <eos> at the end": (lambda ids: ([1] + ids, ids), "<eos> is missing"),
    "no <bos>": (lambda ids: (ids, ids + [2]), "<bos> is missing"),
    "no <bos>, shifted": (lambda ids: (ids, ids[1:] + [2]), "<bos> is missing"),
    "shifted twice": (lambda ids: ([1] + ids, ids[1:] + [2]), "shifted twice"),
    "exchanged": (lambda ids: (ids + [2], [1] + ids), "exchanged"),
    "marks exchanged": (lambda ids: ([2] + ids, ids + [1]), "<bos> is 1"),
}


def last_by_loop(outputs, valid_lens):
    return torch.stack([row[n - 1] for row, n in zip(outputs, valid_lens, strict=True)])


def last_by_gather(outputs, valid_lens):
    index = (valid_lens - 1).view(-1, 1, 1).expand(-1, 1, outputs.shape[2])
    return outputs.double().gather(1, index).squeeze(1)


RIGHT["last_states"] = [
    lambda outputs, lens: outputs[torch.arange(len(outputs)), lens - 1],
    last_by_loop,
    last_by_gather,
]
WRONG["last_states"] = {
    "last position": (lambda o, n: o[:, -1], "the last position"),
    "last position, by shape": (lambda o, n: o[:, o.shape[1] - 1, :], "last position"),
    "batch axis": (lambda o, n: o[-1], "first axis is the batch"),
    "one too far": (
        lambda o, n: torch.stack([o[b, n[b]] for b in range(len(o))]),
        "too far",
    ),
    "one too early": (
        lambda o, n: torch.stack([o[b, n[b] - 2] for b in range(len(o))]),
        "too early",
    ),
    "first state": (lambda o, n: o[:, 0], "at the first word"),
    "everyone's lengths": (lambda o, n: o[:, n - 1], "torch.arange(B)"),
    "first length": (lambda o, n: o[:, int(n[0]) - 1], "first sentence's length"),
    "longest": (lambda o, n: o[:, n.max() - 1], "longest sentence's"),
    "mean": (lambda o, n: o.mean(dim=1), "mean over all positions"),
}


# --- 02 --------------------------------------------------------------------------


def scores_by_einsum(queries, keys, W, U, v):
    projected = torch.einsum("bqi,hi->bqh", queries, W)
    sums = projected.unsqueeze(2) + torch.einsum("bki,hi->bkh", keys, U).unsqueeze(1)
    return torch.einsum("bqkh,h->bqk", torch.tanh(sums), v)


def scores_by_matmul(queries, keys, W, U, v):
    q, k = F.linear(queries.double(), W.double()), F.linear(keys.double(), U.double())
    return torch.tanh(q[:, :, None] + k[:, None]) @ v.double()


def scores_by_loops(queries, keys, W, U, v):
    scores = torch.zeros(queries.shape[0], queries.shape[1], keys.shape[1])
    for b in range(queries.shape[0]):
        for i in range(queries.shape[1]):
            for j in range(keys.shape[1]):
                hidden = torch.tanh(W @ queries[b, i] + U @ keys[b, j])
                scores[b, i, j] = torch.dot(v, hidden)
    return scores


RIGHT["additive_scores"] = [scores_by_einsum, scores_by_matmul, scores_by_loops]
WRONG["additive_scores"] = {
    "no tanh": (
        lambda q, k, W, U, v: ((q @ W.T)[:, :, None] + (k @ U.T)[:, None]) @ v,
        "tanh is missing",
    ),
    "tanh last": (
        lambda q, k, W, U, v: torch.tanh(
            ((q @ W.T)[:, :, None] + (k @ U.T)[:, None]) @ v
        ),
        "too late",
    ),
    "tanh of each": (
        lambda q, k, W, U, v: (
            (torch.tanh(q @ W.T).unsqueeze(2) + torch.tanh(k @ U.T).unsqueeze(1)) @ v
        ),
        "each projection alone",
    ),
    "W and U swapped": (
        lambda q, k, W, U, v: scores_by_einsum(q, k, U, W, v),
        "W and U are exchanged",
    ),
    "query and key swapped": (
        lambda q, k, W, U, v: (
            torch.tanh((k @ U.T)[:, :, None] + (q @ W.T)[:, None]) @ v
        ),
        "queries and keys are exchanged",
    ),
    "never reads the query": (
        lambda q, k, W, U, v: (torch.tanh(k @ U.T) @ v)[:, None].repeat(
            1, q.shape[1], 1
        ),
        "the query is never read",
    ),
    "never reads the encoder": (
        lambda q, k, W, U, v: (torch.tanh(q @ W.T) @ v)[:, :, None].repeat(
            1, 1, k.shape[1]
        ),
        "the keys are never read",
    ),
    "weights": (
        lambda q, k, W, U, v: torch.softmax(scores_by_einsum(q, k, W, U, v), dim=2),
        "these are weights",
    ),
    "sum for v": (
        lambda q, k, W, U, v: torch.tanh(
            (q @ W.T)[:, :, None] + (k @ U.T)[:, None]
        ).sum(dim=-1),
        "v is missing",
    ),
    "not transposed": (
        lambda q, k, W, U, v: torch.tanh((q @ W)[:, :, None] + (k @ U)[:, None]) @ v,
        "on the wrong side",
    ),
    "product": (
        lambda q, k, W, U, v: (
            torch.tanh((q @ W.T)[:, :, None] * (k @ U.T)[:, None]) @ v
        ),
        "multiplied",
    ),
    "first sentence's keys": (
        lambda q, k, W, U, v: torch.tanh((q @ W.T)[:, :, None] + k[0] @ U.T) @ v,
        "keys of the first",
    ),
    "detached": (
        lambda q, k, W, U, v: scores_by_einsum(q, k, W, U, v).detach(),
        "no gradient",
    ),
    "v detached": (
        lambda q, k, W, U, v: scores_by_einsum(q, k, W, U, v.detach()),
        "the gradient of v",
    ),
    "squeezed": (
        lambda q, k, W, U, v: scores_by_einsum(q, k, W, U, v).squeeze(),
        "an axis of length 1",
    ),
}


def joined(queries, keys, first="query"):
    B, Q, K = len(queries), queries.shape[1], keys.shape[1]
    pair = (queries[:, :, None].expand(B, Q, K, -1), keys[:, None].expand(B, Q, K, -1))
    return torch.cat(pair if first == "query" else pair[::-1], dim=-1)


def joined_by_loops(queries, keys, M, v):
    return torch.stack(
        [
            torch.stack(
                [
                    torch.stack(
                        [torch.tanh(M @ torch.cat([s, h])) @ v for h in keys[b]]
                    )
                    for s in queries[b]
                ]
            )
            for b in range(len(queries))
        ]
    )


RIGHT["joined_scores"] = [
    lambda q, k, M, v: torch.tanh(joined(q, k) @ M.T) @ v,
    joined_by_loops,
    lambda q, k, M, v: scores_by_matmul(
        q, k, M[:, : q.shape[-1]], M[:, q.shape[-1] :], v
    ),
]
WRONG["joined_scores"] = {
    "key first": (
        lambda q, k, M, v: torch.tanh(joined(q, k, "key") @ M.T) @ v,
        "the key comes first",
    ),
    "no tanh": (lambda q, k, M, v: joined(q, k) @ M.T @ v, "tanh is missing"),
    "tanh last": (lambda q, k, M, v: torch.tanh(joined(q, k) @ M.T @ v), "too late"),
    "sum for v": (
        lambda q, k, M, v: torch.tanh(joined(q, k) @ M.T).sum(-1),
        "v is missing",
    ),
    "query and key swapped": (
        lambda q, k, M, v: (torch.tanh(joined(q, k) @ M.T) @ v).transpose(1, 2),
        "queries and keys are exchanged",
    ),
    "columns swapped": (
        lambda q, k, M, v: (
            torch.tanh(
                (q @ M[:, k.shape[-1] :].T)[:, :, None]
                + (k @ M[:, : k.shape[-1]].T)[:, None]
            )
            @ v
        ),
        "left columns of M",
    ),
    "softmax": (
        lambda q, k, M, v: (torch.tanh(joined(q, k) @ M.T) @ v).softmax(-1),
        "these are weights",
    ),
    "sigmoid": (lambda q, k, M, v: torch.sigmoid(joined(q, k) @ M.T) @ v, "sigmoid"),
    "detached": (
        lambda q, k, M, v: torch.tanh(joined(q.detach(), k) @ M.T) @ v,
        "the gradient of queries",
    ),
}


def softmax_by_hand(scores):
    exps = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return exps / exps.sum(dim=-1, keepdim=True)


RIGHT["attention_weights"] = [
    lambda scores: F.softmax(scores, dim=-1),
    softmax_by_hand,
    lambda scores: torch.softmax(scores.double(), 2),
]
WRONG["attention_weights"] = {
    "over queries": (lambda s: F.softmax(s, dim=1), "over the queries"),
    "over queries, from the end": (lambda s: s.softmax(-2), "over the queries"),
    "over the batch": (lambda s: F.softmax(s, dim=0), "over the batch"),
    "over everything": (
        lambda s: torch.exp(s) / torch.exp(s).sum(),
        "all numbers together",
    ),
    "sigmoid": (lambda s: torch.sigmoid(s), "a sigmoid"),
    "no division": (lambda s: torch.exp(s), "division is missing"),
    "no exp": (lambda s: s / s.sum(dim=-1, keepdim=True), "without exp"),
    "log": (lambda s: F.log_softmax(s, dim=-1), "logarithms"),
    "sign": (lambda s: F.softmax(-s, dim=-1), "a sign"),
    "divided by max": (
        lambda s: s.exp() / s.exp().max(-1, keepdim=True).values,
        "by the largest",
    ),
    "argmax": (
        lambda s: (s == s.max(-1, keepdim=True).values).float(),
        "on the best key",
    ),
    "scores": (lambda s: s * 1, "scores as they came"),
    "uniform": (lambda s: torch.ones_like(s) / s.shape[2], "all weights are equal"),
    "numbers": (lambda s: torch.tensor(F.softmax(s, -1).tolist()), "no gradient"),
}


# --- 03 --------------------------------------------------------------------------


def masked_by_loops(X, valid_lens):
    rows = []
    for scores, n in zip(X, valid_lens.tolist(), strict=True):
        weights = F.softmax(scores[:, :n], dim=-1)
        rows.append(F.pad(weights, (0, X.shape[-1] - n)))
    return torch.stack(rows)


def masked_by_hand(X, valid_lens):
    mask = (torch.arange(X.shape[2]) < valid_lens[:, None])[:, None]
    clean = torch.where(mask, X, torch.zeros_like(X))
    top = clean.masked_fill(~mask, -1e30).max(dim=-1, keepdim=True).values
    exps = torch.where(mask, torch.exp(torch.where(mask, clean - top, 0)), 0)
    return exps / exps.sum(-1, keepdim=True).clamp(min=1e-30)


def masked_by_infinity(X, valid_lens):
    mask = torch.arange(X.shape[2]) >= valid_lens.view(-1, 1, 1)
    weights = X.double().masked_fill(mask, float("-inf"))
    empty = (valid_lens == 0).view(-1, 1, 1)
    return weights.masked_fill(empty, 0).softmax(-1).masked_fill(empty, 0)


def mask_of(X, valid_lens):
    return (torch.arange(X.shape[-1]) < valid_lens[:, None]).unsqueeze(1)


def exp_times_mask(X, valid_lens):
    exps = torch.exp(X) * mask_of(X, valid_lens)
    return exps / exps.sum(dim=-1, keepdim=True)


def exp_times_mask_safe(X, valid_lens):
    exps = torch.exp(X) * mask_of(X, valid_lens)
    return exps / exps.sum(dim=-1, keepdim=True).clamp(min=1e-9)


def max_of_all(X, valid_lens):
    exps = torch.exp(X - X.max(dim=-1, keepdim=True).values) * mask_of(X, valid_lens)
    total = exps.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, exps / total, 0.0)


def nan_leaks(X, valid_lens):
    mask = mask_of(X, valid_lens)
    top = X.masked_fill(~mask, -1e9).max(dim=-1, keepdim=True).values
    exps = torch.exp(X - top) * mask
    total = exps.sum(dim=-1, keepdim=True)
    return exps / torch.where(total == 0, torch.ones_like(total), total)


def forgotten_result(X, valid_lens):
    X.masked_fill(~mask_of(X, valid_lens), float("-inf"))
    return F.softmax(X, dim=-1)


def masked_in_place(X, valid_lens):
    X[~mask_of(X, valid_lens).expand_as(X)] = -1e30
    return masked_by_loops(X, valid_lens)


RIGHT["masked_softmax"] = [masked_by_hand, masked_by_loops, masked_by_infinity]
WRONG["masked_softmax"] = {
    "no mask": (lambda X, n: F.softmax(X, dim=-1), "as if there were no mask"),
    "result thrown away": (forgotten_result, "was it kept?"),
    "mask after": (
        lambda X, n: F.softmax(X, dim=-1).masked_fill(~mask_of(X, n), 0),
        "after the softmax",
    ),
    "mask after, times": (
        lambda X, n: F.softmax(X, dim=-1) * mask_of(X, n),
        "after the softmax",
    ),
    "zeroed scores": (
        lambda X, n: F.softmax(X.masked_fill(~mask_of(X, n), 0), -1),
        "exp(0) is 1",
    ),
    "-1e6": (
        lambda X, n: F.softmax(X.masked_fill(~mask_of(X, n), -1e6), -1),
        "spreads the weight evenly",
    ),
    "-1e9": (
        lambda X, n: F.softmax(torch.where(mask_of(X, n), X, -1e9), -1),
        "spreads the weight evenly",
    ),
    "-inf": (
        lambda X, n: F.softmax(X.masked_fill(~mask_of(X, n), float("-inf")), -1),
        "nothing but -inf",
    ),
    "<=": (lambda X, n: masked_by_infinity(X, n + 1), "one position too many"),
    "<= and -1e6": (
        lambda X, n: F.softmax(
            X.masked_fill(
                ~(torch.arange(X.shape[-1]) <= n[:, None]).unsqueeze(1), -1e6
            ),
            -1,
        ),
        "one position too many",
    ),
    "one too few": (
        lambda X, n: masked_by_infinity(X, (n - 1).clamp(min=0)),
        "too few",
    ),
    "turned round": (
        lambda X, n: F.softmax(
            X.masked_fill(mask_of(X, n), float("-inf")), -1
        ).nan_to_num(),
        "turned round",
    ),
    "wrong axis": (
        lambda X, n: F.softmax(
            X.masked_fill(~mask_of(X, n), float("-inf")), 1
        ).nan_to_num(),
        "over the queries",
    ),
    "over the batch": (
        lambda X, n: F.softmax(
            X.masked_fill(~mask_of(X, n), float("-inf")), 0
        ).nan_to_num(),
        "over the batch",
    ),
    "exp times mask": (exp_times_mask, "0/0"),
    "exp times mask, safe": (exp_times_mask_safe, "exp of a large score"),
    "max over padding": (max_of_all, "taken over padding"),
    "NaN in the padding": (nan_leaks, "0 times NaN or infinity"),
    "in place": (masked_in_place, "an argument was changed"),
    "detached": (lambda X, n: masked_by_loops(X.detach(), n), "no gradient"),
}


RIGHT["length_mask"] = [
    lambda lens, K: torch.arange(K) < lens[:, None],
    lambda lens, K: torch.tensor([[k < n for k in range(K)] for n in lens]),
    lambda lens, K: torch.arange(K).expand(len(lens), K) < lens.reshape(-1, 1),
    lambda lens, K: (torch.arange(K) < lens[:, None]).int(),
]
WRONG["length_mask"] = {
    "<=": (lambda lens, K: torch.arange(K) <= lens[:, None], "too many is real"),
    "one too few": (lambda lens, K: torch.arange(K) < lens[:, None] - 1, "too few"),
    "turned round": (lambda lens, K: torch.arange(K) >= lens[:, None], "turned round"),
    "transposed": (lambda lens, K: torch.arange(K)[:, None] < lens, "exchanged"),
    "at the end": (
        lambda lens, K: torch.arange(K) >= K - lens[:, None],
        "stand at the end",
    ),
    "from 1 to n": (
        lambda lens, K: (torch.arange(K) >= 1) & (torch.arange(K) <= lens[:, None]),
        "counted from 1",
    ),
    "longest": (
        lambda lens, K: (torch.arange(K) < max(lens)).repeat(len(lens), 1),
        "longest sentence's",
    ),
    "only the last": (
        lambda lens, K: (
            F.one_hot((lens - 1).clamp(min=0), K).bool() & (lens > 0)[:, None]
        ),
        "only each sentence's last",
    ),
}


# --- 04 --------------------------------------------------------------------------


def step_in_order(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    _, hidden_state = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return weights, hidden_state


def step_by_index(x, hidden_state, last_context, attend, rnn):
    answer = attend(hidden_state[-1][:, None, :])
    new = rnn(torch.cat([answer[0], x], 2), hidden_state)[1]
    return [answer[1], new][0], new


def step_updates_first(x, hidden_state, last_context, attend, rnn):
    _, hidden_state = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    return weights, hidden_state


def step_between(x, hidden_state, last_context, attend, rnn):
    output, _ = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    context, weights = attend(output)
    _, hidden_state = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return weights, hidden_state


def step_twice(x, hidden_state, last_context, attend, rnn):
    _, hidden_state = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    return step_in_order(x, hidden_state, last_context, attend, rnn)


def step_keeps_the_state(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    rnn(torch.cat((context, x), dim=-1), hidden_state)
    return weights, hidden_state


def step_joins_the_other_way(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    _, hidden_state = rnn(torch.cat((x, context), dim=-1), hidden_state)
    return weights, hidden_state


def step_feeds_the_old_context(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    _, hidden_state = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    return weights, hidden_state


def step_asks_the_bottom(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[0].unsqueeze(1))
    _, hidden_state = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return weights, hidden_state


def step_attends_again(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    output, hidden_state = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return attend(output)[1], hidden_state


RIGHT["attend_then_update"] = [step_in_order, step_by_index]
WRONG["attend_then_update"] = {
    "updates first": (step_updates_first, "updated before it asked"),
    "asks in between": (step_between, "between s_{i-1} and s_i"),
    "updates twice": (step_twice, "updated twice"),
    "returns the old state": (step_keeps_the_state, "is the old one"),
    "word before context": (step_joins_the_other_way, "wrong order"),
    "old context": (step_feeds_the_old_context, "last step's context"),
    "bottom layer": (step_asks_the_bottom, "the bottom layer asks"),
    "weights of s_i": (step_attends_again, "belong to the new state"),
    "results exchanged": (
        lambda *case: step_in_order(*case)[::-1],
        "two results are exchanged",
    ),
}

RIGHT["bottom_query"] = [
    lambda h: h[0].unsqueeze(1),
    lambda h: h[0][:, None].double(),
    lambda h: h[:1].transpose(0, 1),
    lambda h: torch.stack([h[0]], dim=1),
]
WRONG["bottom_query"] = {
    "top": (lambda h: h[-1].unsqueeze(1), "the top layer"),
    "second": (lambda h: h[min(1, len(h) - 1)].unsqueeze(1), "Not yet"),
    "no axis": (lambda h: h[0], "axis of queries is missing"),
    "axis in front": (lambda h: h[0][None], "in front"),
    "first sentence": (lambda h: h[:, 0].unsqueeze(1), "first sentence"),
    "mean": (lambda h: torch.mean(h, dim=0).unsqueeze(1), "mean of all layers"),
    "all layers": (lambda h: h.permute(1, 0, 2), "all layers are returned"),
}


def weights_at_once(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    return attention.attend(queries, keys, enc_outputs, valid_lens)[1]


def weights_by_steps(attention, queries, enc_outputs, valid_lens):
    keys, weights = attention.project_keys(enc_outputs), []
    for t in range(queries.shape[1]):
        query = queries[:, t].unsqueeze(1)
        weights.append(attention.attend(query, keys, enc_outputs, valid_lens)[1])
    return torch.cat(weights, dim=1)


def weights_by_forward(attention, queries, enc_outputs, valid_lens):
    attention(queries, enc_outputs, enc_outputs, valid_lens)
    return attention.attention_weights


def weights_projecting_each_step(attention, queries, enc_outputs, valid_lens):
    weights = []
    for query in queries.split(1, dim=1):
        attention(query, enc_outputs, enc_outputs, valid_lens)
        weights.append(attention.attention_weights)
    return torch.cat(weights, dim=1)


def weights_unmasked(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    return attention.attend(queries, keys, enc_outputs)[1]


def weights_unmasked_each_step(attention, queries, enc_outputs, valid_lens):
    weights = []
    for query in queries.split(1, dim=1):
        attention(query, enc_outputs, enc_outputs)
        weights.append(attention.attention_weights)
    return torch.cat(weights, dim=1)


def weights_raw_keys(attention, queries, enc_outputs, valid_lens):
    return attention.attend(queries, enc_outputs, enc_outputs, valid_lens)[1]


def weights_twice_projected(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    attention(queries, keys, keys, valid_lens)
    return attention.attention_weights


def weights_stacked(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    return torch.stack(
        [
            attention.attend(query, keys, enc_outputs, valid_lens)[1]
            for query in queries.split(1, dim=1)
        ]
    )


def weights_time_first(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    return torch.stack(
        [
            attention.attend(query, keys, enc_outputs, valid_lens)[1][:, 0]
            for query in queries.split(1, dim=1)
        ]
    )


def weights_of_the_last_step(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    for query in queries.split(1, dim=1):
        _, weights = attention.attend(query, keys, enc_outputs, valid_lens)
    return weights


def weights_first_query(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    return torch.cat(
        [
            attention.attend(queries[:, :1], keys, enc_outputs, valid_lens)[1]
            for _ in range(queries.shape[1])
        ],
        dim=1,
    )


RIGHT["all_weights"] = [weights_at_once, weights_by_steps, weights_by_forward]
WRONG["all_weights"] = {
    "projected each step": (weights_projecting_each_step, "projected at every step"),
    "no mask": (weights_unmasked, "padding gets weight"),
    "no mask, each step": (weights_unmasked_each_step, "padding gets weight"),
    "not projected": (weights_raw_keys, "aren't projected at all"),
    "projected twice": (weights_twice_projected, "projected twice"),
    "stacked": (weights_stacked, "an axis too many"),
    "time first": (weights_time_first, "time stands first"),
    "last step": (weights_of_the_last_step, "last step's weights alone"),
    "first query": (weights_first_query, "with the first query"),
}


# --- 05 --------------------------------------------------------------------------


def loss_by_mask(scores, targets):
    nats = F.cross_entropy(scores.transpose(1, 2), targets, reduction="none")
    mask = (targets != 0).float()
    return (nats * mask).sum() / mask.sum()


def all_nats(scores, targets):
    return F.cross_entropy(scores.transpose(1, 2), targets, reduction="none")


def loss_over_positions(scores, targets):
    return (all_nats(scores, targets) * (targets != 0)).sum() / targets.numel()


def loss_over_axis(scores, targets):
    return (all_nats(scores, targets) * (targets != 0)).mean(dim=1).mean()


def loss_divided_twice(scores, targets):
    mask = (targets != 0).float()
    loss = (all_nats(scores, targets) * mask).sum() / mask.sum()
    return loss / mask.sum()


def loss_of_sentences(scores, targets):
    losses = [
        loss_by_mask(s[None], t[None]) for s, t in zip(scores, targets, strict=True)
    ]
    return torch.stack(losses).mean()


RIGHT["mean_loss"] = [
    lambda s, targets: F.cross_entropy(s[targets != 0], targets[targets != 0]),
    lambda scores, targets: F.cross_entropy(
        scores.flatten(0, 1), targets.flatten(), ignore_index=0
    ),
    loss_by_mask,
    lambda scores, targets: loss_by_mask(scores.double(), targets),
]
WRONG["mean_loss"] = {
    "padding counted": (
        lambda s, t: F.cross_entropy(s.flatten(0, 1), t.flatten()),
        "padding is counted",
    ),
    "over B × T": (loss_over_positions, "below the line"),
    "over B × T, by mean": (loss_over_axis, "below the line"),
    "sum": (
        lambda s, t: F.cross_entropy(s[t != 0], t[t != 0], reduction="sum"),
        "the sum",
    ),
    "a sentence": (
        lambda s, t: F.cross_entropy(s[t != 0], t[t != 0], reduction="sum") / len(t),
        "number of sentences",
    ),
    "divided twice": (loss_divided_twice, "divided twice"),
    "mean of means": (loss_of_sentences, "mean of the sentences' means"),
    "softmax twice": (
        lambda s, t: F.cross_entropy(s.softmax(-1)[t != 0], t[t != 0]),
        "twice",
    ),
    "sign": (
        lambda s, t: s.log_softmax(-1)[t != 0].gather(1, t[t != 0][:, None]).mean(),
        "the sign",
    ),
    "bits": (lambda s, t: loss_by_mask(s, t) / math.log(2), "in bits"),
    "<eos> left out": (
        lambda s, t: F.cross_entropy(s[t > 2], t[t > 2]) if len(t) > 0 else None,
        "<eos> is left out",
    ),
    "shifted again": (
        lambda s, t: loss_by_mask(s[:, :-1], t[:, 1:]),
        "shifted once more",
    ),
    "item": (lambda s, t: loss_by_mask(s, t).item(), ".item()"),
    "detached": (lambda s, t: loss_by_mask(s, t).detach(), "no gradient"),
}


def clip_by_root(gradients, max_norm):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    return [g * max_norm / norm if norm > max_norm else g.clone() for g in gradients]


def clip_by_torch(gradients, max_norm):
    parameters = [torch.zeros_like(g) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters]


def clip_in_place(gradients, max_norm):
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    if norm > max_norm:
        for g in gradients:
            g.mul_(max_norm / norm)
    return gradients


def clip_by_sum_of_norms(gradients, max_norm):
    norm = sum(g.norm() for g in gradients)
    return [g * min(1, max_norm / norm) for g in gradients]


def clip_by_squares(gradients, max_norm):
    norm = sum((g**2).sum() for g in gradients)
    return [g * min(1.0, (max_norm / norm).item()) for g in gradients]


def clip_always(gradients, max_norm):
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    return [g / norm * max_norm for g in gradients]


def clip_to_one(gradients, max_norm):
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    return [g / norm if norm > max_norm else g for g in gradients]


RIGHT["clip"] = [
    clip_by_root,
    clip_by_torch,
    lambda gradients, m: tuple(clip_by_root([g.double() for g in gradients], m)),
]
WRONG["clip"] = {
    "each tensor": (
        lambda gs, m: [g * min(1, m / g.norm()) for g in gs],
        "each tensor is clipped",
    ),
    "each number": (lambda gs, m: [g.clamp(-m, m) for g in gs], "each number is cut"),
    "always": (clip_always, "blown up"),
    "no root": (clip_by_squares, "square root is missing"),
    "sum of norms": (clip_by_sum_of_norms, "norms are added"),
    "to 1": (clip_to_one, "always has norm 1"),
    "largest number": (
        lambda gs, m: [g * min(1, m / max(x.abs().max() for x in gs)) for g in gs],
        "largest number",
    ),
    "turned round": (
        lambda gs, m: [
            g * max(1, m / torch.cat([x.flatten() for x in gs]).norm()) for g in gs
        ],
        "turned round",
    ),
    "nothing": (lambda gs, m: list(gs), "nothing is scaled"),
    "in place": (clip_in_place, "an argument was changed"),
}

RIGHT["epoch_loss"] = [
    lambda losses, n: sum(a * b for a, b in zip(losses, n, strict=True)) / sum(n),
    lambda losses, n: float(np.average(losses, weights=n)),
    lambda losses, n: torch.dot(torch.tensor(losses), torch.tensor(n).float()) / sum(n),
]
WRONG["epoch_loss"] = {
    "mean of means": (lambda losses, n: sum(losses) / len(losses), "batches' means"),
    "mean of means, NumPy": (lambda losses, n: np.mean(losses), "batches' means"),
    "not weighed": (lambda losses, n: sum(losses) / sum(n), "means already"),
    "not divided": (
        lambda losses, n: sum(a * b for a, b in zip(losses, n, strict=True)),
        "division is missing",
    ),
    "by batches": (
        lambda losses, n: np.mean([a * b for a, b in zip(losses, n, strict=True)]),
        "number of batches",
    ),
    "sum": (lambda losses, n: sum(losses), "sum of the batches"),
    "last": (lambda losses, n: losses[-1], "last batch's"),
    "divided again": (
        lambda losses, n: sum(a / b for a, b in zip(losses, n, strict=True)),
        "a second time",
    ),
}


# --- 06 --------------------------------------------------------------------------


def links_by_loop(weights, threshold):
    found = set()
    for i in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            if weights[i, j] >= threshold:
                found.add((j, i))
    return found


RIGHT["links"] = [
    links_by_loop,
    lambda w, t: {(int(j), int(i)) for i, j in (w >= t).nonzero()},
    lambda w, t: {
        (int(j), int(i)) for i, j in zip(*np.where(w.numpy() >= t), strict=True)
    },
]
WRONG["links"] = {
    "rows first": (
        lambda w, t: {
            (i, j) for i, row in enumerate(w) for j, x in enumerate(row) if x >= t
        },
        "mirrored at the diagonal",
    ),
    ">": (
        lambda w, t: {
            (j, i) for i, row in enumerate(w) for j, x in enumerate(row) if x > t
        },
        ">=",
    ),
    "largest": (
        lambda w, t: {(int(row.argmax()), i) for i, row in enumerate(w)},
        "largest",
    ),
    "largest if it reaches": (
        lambda w, t: {
            (int(row.argmax()), i) for i, row in enumerate(w) if row.max() >= t
        },
        "at most one link a row",
    ),
    "below": (
        lambda w, t: {
            (j, i) for i, row in enumerate(w) for j, x in enumerate(row) if x < t
        },
        "turned round",
    ),
    "from 1": (
        lambda w, t: {
            (j + 1, i + 1)
            for i, row in enumerate(w)
            for j, x in enumerate(row)
            if x >= t
        },
        "counted from 1",
    ),
    "next target word": (
        lambda w, t: {
            (j, i + 1) for i, row in enumerate(w) for j, x in enumerate(row) if x >= t
        },
        "off by one in time",
    ),
    "target word before": (
        lambda w, t: {
            (j, i - 1) for i, row in enumerate(w) for j, x in enumerate(row) if x >= t
        },
        "off by one in time",
    ),
    "last row": (lambda w, t: links_by_loop(w[:-1], t), "last row is left out"),
    "tensors": (lambda w, t: {(j, i) for i, j in (w >= t).nonzero()}, "Not yet"),
}


def aer_by_counts(predicted, gold):
    both = size = 0
    for a, s in zip(predicted, gold, strict=True):
        both += len(a & s)
        size += len(a) + len(s)
    return 1 - 2 * both / size


def aer_of_sentences(predicted, gold):
    rates = [
        1 - 2 * len(a & s) / (len(a) + len(s))
        for a, s in zip(predicted, gold, strict=True)
    ]
    return sum(rates) / len(rates)


def aer_in_one_bag(predicted, gold):
    a = {link for links in predicted for link in links}
    s = {link for links in gold for link in links}
    return 1 - 2 * len(a & s) / (len(a) + len(s))


def hits(predicted, gold):
    return sum(len(a & s) for a, s in zip(predicted, gold, strict=True))


RIGHT["aer"] = [
    aer_by_counts,
    lambda a, s: np.float64(aer_by_counts(a, s)),
    lambda a, s: torch.tensor(aer_by_counts(a, s), dtype=torch.float64),
]
WRONG["aer"] = {
    "mean of sentences": (aer_of_sentences, "sentences' error rates"),
    "precision": (
        lambda a, s: 1 - hits(a, s) / sum(len(x) for x in a),
        "1 - precision",
    ),
    "recall": (lambda a, s: 1 - hits(a, s) / sum(len(x) for x in s), "1 - recall"),
    "not subtracted": (lambda a, s: 1 - aer_by_counts(a, s), "the share that is right"),
    "once": (
        lambda a, s: 1 - hits(a, s) / (sum(map(len, a)) + sum(map(len, s))),
        "a perfect alignment must get 0",
    ),
    "union": (
        lambda a, s: (
            1 - hits(a, s) / sum(len(x | y) for x, y in zip(a, s, strict=True))
        ),
        "union",
    ),
    "one bag": (aer_in_one_bag, "in one set"),
    "percent": (lambda a, s: 100 * aer_by_counts(a, s), "percent"),
    "count": (
        lambda a, s: sum(len(x ^ y) for x, y in zip(a, s, strict=True)),
        "divide it",
    ),
}


# --- 07 --------------------------------------------------------------------------


def push_by_broadcast(scores, place, sigma):
    far = torch.arange(scores.shape[-1]) - place[:, None]
    return scores - (far**2 / (2 * sigma**2)).unsqueeze(1)


def push_by_loop(scores, place, sigma):
    pushed = scores.clone()
    for b in range(scores.shape[0]):
        for j in range(scores.shape[2]):
            pushed[b, 0, j] = scores[b, 0, j] - 0.5 * ((j - place[b]) / sigma) ** 2
    return pushed


def far_from(scores, place):
    return (torch.arange(scores.shape[-1]) - place.view(-1, 1)).view(len(place), 1, -1)


RIGHT["push"] = [
    push_by_broadcast,
    push_by_loop,
    lambda x, p, sigma: (
        x.double() + torch.exp(-(far_from(x, p).double() ** 2) / (2 * sigma**2)).log()
    ),
]
WRONG["push"] = {
    "added": (lambda x, p, s: x + far_from(x, p) ** 2 / (2 * s**2), "sign is turned"),
    "no 2": (lambda x, p, s: x - (far_from(x, p) / s) ** 2, "the 2 in the denominator"),
    "sigma not squared": (
        lambda x, p, s: x - far_from(x, p) ** 2 / (2 * s),
        "sigma isn't squared",
    ),
    "no brackets": (lambda x, p, s: x - far_from(x, p) ** 2 / 2 * s**2, "brackets"),
    "absolute": (
        lambda x, p, s: x - far_from(x, p).abs() / (2 * s**2),
        "isn't squared",
    ),
    "2 squared": (
        lambda x, p, s: x - (far_from(x, p) / (2 * s)) ** 2,
        "the 2 is squared",
    ),
    "from 1": (
        lambda x, p, s: x - (far_from(x, p) + 1) ** 2 / (2 * s**2),
        "counted from 1",
    ),
    "hard": (
        lambda x, p, s: x.masked_fill(far_from(x, p).abs() > s, -torch.inf),
        "hard window",
    ),
    "factor": (
        lambda x, p, s: x * torch.exp(-(far_from(x, p) ** 2) / (2 * s**2)),
        "multiplied",
    ),
    "first place": (
        lambda x, p, s: x - (torch.arange(x.shape[-1]) - p[0]) ** 2 / (2 * s**2),
        "first sentence's place",
    ),
    "softmax": (lambda x, p, s: push_by_loop(x, p, s).softmax(-1), "these are weights"),
    "weights without scores": (
        lambda x, p, s: -(far_from(x, p) ** 2) / (2 * s**2),
        "scores themselves are gone",
    ),
    "detached": (
        lambda x, p, s: push_by_broadcast(x, p.detach(), s),
        "the gradient of place",
    ),
}

RIGHT["near"] = [
    lambda p, reach, S: (torch.arange(S) - p[:, None]).abs() <= reach,
    lambda p, reach, S: torch.tensor(
        [[abs(j - x) <= reach for j in range(S)] for x in p.tolist()]
    ),
    lambda p, reach, S: (
        (torch.arange(S) >= p[:, None] - reach)
        & (torch.arange(S) <= p[:, None] + reach)
    ),
]
WRONG["near"] = {
    "no abs": (
        lambda p, reach, S: torch.arange(S) - p[:, None] <= reach,
        "only the right side",
    ),
    "no abs, other side": (
        lambda p, reach, S: p[:, None] - torch.arange(S) <= reach,
        "only the left side",
    ),
    "<": (lambda p, reach, S: (torch.arange(S) - p[:, None]).abs() < reach, "too few"),
    "turned round": (
        lambda p, reach, S: (torch.arange(S) - p[:, None]).abs() > reach,
        "turned round",
    ),
    "forwards only": (
        lambda p, reach, S: (
            (torch.arange(S) >= p[:, None]) & (torch.arange(S) <= p[:, None] + reach)
        ),
        "before the place are missing",
    ),
    "half": (
        lambda p, reach, S: (torch.arange(S) - p[:, None]).abs() <= reach / 2,
        "half as wide",
    ),
    "first place": (
        lambda p, reach, S: ((torch.arange(S) - p[0]).abs() <= reach).repeat(len(p), 1),
        "first sentence's place",
    ),
    "transposed": (
        lambda p, reach, S: (torch.arange(S)[:, None] - p).abs() <= reach,
        "exchanged",
    ),
}


# --- 08 --------------------------------------------------------------------------


class Concat(Attention):
    def __init__(self, key_size, query_size, num_hiddens, dropout=0.0):
        super().__init__(key_size, query_size, dropout)
        self.W = nn.Linear(query_size + key_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def project_keys(self, keys):
        return keys

    def score(self, queries, projected_keys):
        return self.w_v(torch.tanh(self.W(joined(queries, projected_keys)))).squeeze(-1)


class SplitConcat(Concat):
    def project_keys(self, keys):
        return keys @ self.W.weight[:, self.query_size :].T

    def score(self, queries, projected_keys):
        q = queries @ self.W.weight[:, : self.query_size].T
        return self.w_v(torch.tanh(q[:, :, None] + projected_keys[:, None]))[..., 0]


class KeyFirst(Concat):
    def score(self, queries, projected_keys):
        pairs = joined(queries, projected_keys, "key")
        return self.w_v(torch.tanh(self.W(pairs))).squeeze(-1)


class NoTanh(Concat):
    def score(self, queries, projected_keys):
        return self.w_v(self.W(joined(queries, projected_keys))).squeeze(-1)


class Unsqueezed(Concat):
    def score(self, queries, projected_keys):
        return self.w_v(torch.tanh(self.W(joined(queries, projected_keys))))


class TanhLast(Concat):
    def score(self, queries, projected_keys):
        return torch.tanh(self.w_v(self.W(joined(queries, projected_keys)))).squeeze(-1)


class Biased(Concat):
    def __init__(self, key_size, query_size, num_hiddens):
        super().__init__(key_size, query_size, num_hiddens)
        self.W = nn.Linear(query_size + key_size, num_hiddens)


class SumForV(Concat):
    def score(self, queries, projected_keys):
        return torch.tanh(self.W(joined(queries, projected_keys))).sum(-1)


class AlreadyWeights(Concat):
    def score(self, queries, projected_keys):
        return super().score(queries, projected_keys).softmax(dim=-1)


class NoParent(Concat):
    def __init__(self, key_size, query_size, num_hiddens):
        self.W = nn.Linear(query_size + key_size, num_hiddens, bias=False)


RIGHT["concat_attention"] = [Concat, SplitConcat]
WRONG["concat_attention"] = {
    "key first": (KeyFirst, "the key comes first"),
    "no tanh": (NoTanh, "tanh is missing"),
    "no squeeze": (Unsqueezed, "an axis of length 1"),
    "tanh last": (TanhLast, "too late"),
    "bias": (Biased, "bias=False"),
    "sum for v": (SumForV, "v is missing"),
    "weights": (AlreadyWeights, "these are weights"),
    "no super().__init__": (NoParent, "before Module.__init__"),
}

RIGHT["scaled_dot"] = [
    lambda q, k: q @ k.transpose(1, 2) / math.sqrt(q.shape[-1]),
    lambda q, k: torch.einsum("bqh,bkh->bqk", q, k) / k.shape[2] ** 0.5,
    lambda q, k: torch.bmm(q.double() * q.shape[2] ** -0.5, k.double().mT),
]
WRONG["scaled_dot"] = {
    "by the size": (lambda q, k: q @ k.mT / q.shape[-1], "divided by too much"),
    "not scaled": (lambda q, k: q @ k.transpose(1, 2), "not scaled"),
    "multiplied": (lambda q, k: q @ k.mT * math.sqrt(q.shape[-1]), "multiplied by"),
    "by the keys": (lambda q, k: q @ k.mT / math.sqrt(k.shape[1]), "number of keys"),
    "weights": (
        lambda q, k: F.softmax(q @ k.mT / math.sqrt(k.shape[-1]), -1),
        "are weights",
    ),
    "after the softmax": (
        lambda q, k: F.softmax(q @ k.mT, -1) / math.sqrt(k.shape[-1]),
        "after the softmax",
    ),
    "cosine": (
        lambda q, k: F.cosine_similarity(q[:, :, None], k[:, None], dim=-1),
        "cosine",
    ),
    "exchanged": (lambda q, k: k @ q.mT / math.sqrt(k.shape[-1]), "exchanged"),
    "not transposed": (
        lambda q, k: torch.matmul(q, k) / math.sqrt(q.shape[-1]),
        "aren't transposed",
    ),
    "detached": (
        lambda q, k: q @ k.data.mT / math.sqrt(k.shape[-1]),
        "the gradient of keys",
    ),
}


# --- 09 --------------------------------------------------------------------------


class ResetAfter(GatedUnit):
    def from_state(self, r, s):
        return r * self.U(s)


class ResetAfterByForward(GatedUnit):
    def forward(self, from_word, context, s):
        z, r, n = (from_word + self.C(context)).double().chunk(3, dim=-1)
        U_z, U_r = self.U_gates.weight.double().chunk(2)
        s, U = s.double(), self.U.weight.double()
        z, r = torch.sigmoid(z + s @ U_z.T), torch.sigmoid(r + s @ U_r.T)
        return (1 - z) * s + z * torch.tanh(n + r * (s @ U.T))


def unit(from_state):
    return type("Unit", (GatedUnit,), {"from_state": from_state})


RIGHT["reset_after"] = [ResetAfter, ResetAfterByForward]
WRONG["reset_after"] = {
    "before": (unit(lambda self, r, s: self.U(r * s)), "before the product"),
    "unchanged": (GatedUnit, "before the product"),
    "not at all": (unit(lambda self, r, s: self.U(s)), "nothing is reset"),
    "without U": (unit(lambda self, r, s: r * s), "U isn't used"),
    "twice": (unit(lambda self, r, s: r * self.U(r * s)), "reset twice"),
    "turned round": (unit(lambda self, r, s: (1 - r) * self.U(s)), "turned round"),
    "added": (unit(lambda self, r, s: r + self.U(s)), "added"),
    "transposed": (unit(lambda self, r, s: r * (s @ self.U.weight)), "wrong side"),
    "r through U": (unit(lambda self, r, s: self.U(r) * s), "r goes through U"),
    "tanh twice": (
        unit(lambda self, r, s: torch.tanh(r * self.U(s))),
        "tanh is applied twice",
    ),
    "detached": (unit(lambda self, r, s: r * self.U(s.detach())), "the gradient of s"),
}

RIGHT["first_state"] = [
    lambda o, n: o[:, 0].chunk(2, dim=-1)[1],
    lambda o, n: o[:, 0, o.shape[-1] // 2 :],
    lambda o, n: torch.stack([row[0, len(row[0]) // 2 :] for row in o]).double(),
]
WRONG["first_state"] = {
    "last position": (lambda o, n: o[:, -1, o.shape[2] // 2 :], "stands padding"),
    "last word": (
        lambda o, n: o[torch.arange(len(o)), n - 1, o.shape[2] // 2 :],
        "at the last word",
    ),
    "forward half": (lambda o, n: o[:, 0, : o.shape[2] // 2], "the forward half"),
    "forward, last word": (
        lambda o, n: o[torch.arange(len(o)), n - 1].chunk(2, -1)[0],
        "forward network's last",
    ),
    "both halves": (lambda o, n: o[:, 0], "both halves"),
    "first sentence": (lambda o, n: o[0, :, o.shape[2] // 2 :], "axis 0 is the batch"),
    "every second": (lambda o, n: o[:, 0, 1::2], "every second"),
    "second word": (lambda o, n: o[:, 1, o.shape[2] // 2 :], "second word"),
    "detached": (lambda o, n: o[:, 0, o.shape[2] // 2 :].detach(), "no gradient"),
}


def best_by_loop(log_probs, lengths, alpha):
    scores = [p / n**alpha for p, n in zip(log_probs, lengths, strict=True)]
    return scores.index(max(scores))


def best(score):
    def rank(log_probs, lengths, alpha):
        return max(
            range(len(lengths)), key=lambda i: score(log_probs[i], lengths[i], alpha)
        )

    return rank


RIGHT["best_hypothesis"] = [
    best_by_loop,
    lambda p, n, a: (torch.tensor(p) / torch.tensor(n) ** a).argmax(),
    lambda p, n, a: int(np.argmax(np.array(p) / np.array(n) ** a)),
]
WRONG["best_hypothesis"] = {
    "no length": (best(lambda p, n, a: p), "the lengths are not used"),
    "no alpha": (best(lambda p, n, a: p / n), "for every alpha the answer is the same"),
    "times": (best(lambda p, n, a: p * n**a), "multiplied by the length"),
    "smallest": (best(lambda p, n, a: -p / n**a), "the worst one"),
    "times alpha": (best(lambda p, n, a: p / (a * n) if a else p), "an exponent"),
    "longest": (best(lambda p, n, a: n), "the longest wins"),
    "exp": (best(lambda p, n, a: math.exp(p) / n**a), "take no exp"),
    "score": (
        lambda p, n, a: max(x / y**a for x, y in zip(p, n, strict=True)),
        "the best score",
    ),
}


# --- 10 --------------------------------------------------------------------------


def smoothed_by_target(scores, words, share):
    V = scores.shape[1]
    target = torch.full_like(scores, share / V)
    target[torch.arange(len(words)), words] += 1 - share
    return -(target * scores.log_softmax(1)).sum(1).mean()


def smoothed(mix):
    """Mixes the right words' losses with those of all words (B, V)."""

    def loss(scores, words, share):
        losses = scores.logsumexp(1, keepdim=True) - scores
        return mix(losses[range(len(words)), words], losses, share).mean()

    return loss


RIGHT["smoothed_loss"] = [
    smoothed_by_target,
    lambda scores, words, share: F.cross_entropy(scores, words, label_smoothing=share),
    smoothed(lambda right, losses, e: (1 - e) * right + e * losses.mean(1)),
]
WRONG["smoothed_loss"] = {
    "no smoothing": (lambda s, w, e: F.cross_entropy(s, w), "the share isn't used"),
    "other words": (
        smoothed(
            lambda right, losses, e: (
                (1 - e) * right + e * (losses.sum(1) - right) / (losses.shape[1] - 1)
            )
        ),
        "other words alone",
    ),
    "sum below 1": (
        smoothed(
            lambda right, losses, e: (
                (1 - e) * right + e * (losses.sum(1) - right) / losses.shape[1]
            )
        ),
        "less than 1",
    ),
    "whole share": (
        smoothed(lambda right, losses, e: (1 - e) * right + e * losses.sum(1)),
        "divided among V",
    ),
    "too much": (
        smoothed(lambda right, losses, e: right + e * losses.mean(1)),
        "come from the right one",
    ),
    "turned round": (
        smoothed(lambda right, losses, e: e * right + (1 - e) * losses.mean(1)),
        "turned round",
    ),
    "right alone": (
        smoothed(lambda right, losses, e: (1 - e) * right),
        "holds the model back",
    ),
    "mean over all": (
        smoothed(
            lambda right, losses, e: (
                ((1 - e) * right + e * losses.mean(1)) / losses.shape[1]
            )
        ),
        "divided by V as well",
    ),
    "summed": (
        lambda s, w, e: F.cross_entropy(s, w, label_smoothing=e, reduction="sum"),
        "sum over the rows",
    ),
    "sign": (lambda s, w, e: -smoothed_by_target(s, w, e), "sign is missing"),
    "softmax twice": (
        lambda s, w, e: F.cross_entropy(s.softmax(1), w, label_smoothing=e),
        "twice",
    ),
    "scores": (
        lambda s, w, e: -((1 - e) * s[range(len(w)), w] + e * s.mean(1)).mean(),
        "log_softmax is missing",
    ),
    "probabilities": (
        lambda s, w, e: (
            -(
                (1 - e) * s.softmax(1)[range(len(w)), w] + e * s.softmax(1).mean(1)
            ).mean()
        ),
        "the logarithm is missing",
    ),
    "over the rows": (
        lambda s, w, e: (
            -(
                (1 - e) * s.log_softmax(0)[range(len(w)), w]
                + e * s.log_softmax(0).mean(1)
            ).mean()
        ),
        "over the rows",
    ),
    "model smoothed": (
        lambda s, w, e: (
            -((1 - e) * s.softmax(1)[range(len(w)), w] + e / s.shape[1]).log().mean()
        ),
        "Smooth the target",
    ),
}


def cut_from_left(word, pieces):
    best = {0: (1.0, ())}
    for end in range(1, len(word) + 1):
        ways = [
            (best[k][0] * pieces[word[k:end]], best[k][1] + (word[k:end],))
            for k in best
            if word[k:end] in pieces
        ]
        if ways:
            best[end] = max(ways)
    return list(best[len(word)][1])


def cut_by_memory(word, pieces):
    @functools.cache
    def best(start):
        if start == len(word):
            return 0.0, []
        ways = [
            (best(end)[0] + math.log(pieces[word[start:end]]), end)
            for end in range(start + 1, len(word) + 1)
            if word[start:end] in pieces
        ]
        score, end = max(ways, default=(-math.inf, len(word)))
        return score, [word[start:end], *best(end)[1]]

    return best(0)[1]


def cut_all_ways(word, pieces):
    def ways(rest):
        if not rest:
            yield 1.0, []
        for end in range(1, len(rest) + 1):
            if rest[:end] in pieces:
                for p, cut in ways(rest[end:]):
                    yield p * pieces[rest[:end]], [rest[:end], *cut]

    return max(ways(word))[1]


def cut_next(key):
    def cut(word, pieces):
        found = []
        while word:
            piece = max(
                (p for p in pieces if word.startswith(p)), key=lambda p: key(p, pieces)
            )
            found, word = [*found, piece], word[len(piece) :]
        return found

    return cut


def cut_by(value):
    """The cut with the largest value, of a tuple of pieces."""

    def cut(word, pieces):
        best = {0: ()}
        for end in range(1, len(word) + 1):
            ways = [(*best[k], word[k:end]) for k in best if word[k:end] in pieces]
            if ways:
                best[end] = max(ways, key=lambda way: value(way, pieces))
        return list(best[len(word)])

    return cut


RIGHT["best_cut"] = [cut_from_left, cut_by_memory]
WRONG["best_cut"] = {
    "all ways": (cut_all_ways, "stopped after"),
    "longest": (cut_next(lambda p, _: len(p)), "from the left"),
    "shortest": (cut_next(lambda p, _: -len(p)), "shortest"),
    "most probable next": (cut_next(lambda p, pieces: pieces[p]), "looking ahead"),
    "sum": (
        cut_by(lambda way, pieces: sum(map(pieces.get, way))),
        "They are multiplied",
    ),
    "least": (
        cut_by(lambda way, pieces: -math.prod(map(pieces.get, way))),
        "least probable",
    ),
    "fewest": (cut_by(lambda way, _: -len(way)), "fewest"),
    "most": (cut_by(lambda way, _: len(way)), "most pieces"),
    "reversed": (lambda w, p: [*reversed(cut_from_left(w, p))], "reverse order"),
    "last missing": (lambda w, p: cut_from_left(w, p)[:-1], "last piece is missing"),
    "joined": (lambda w, p: "".join(cut_from_left(w, p)), "joined"),
    "text": (lambda w, p: " ".join(cut_from_left(w, p)), "one text"),
    "probability": (
        lambda w, p: math.prod(p[piece] for piece in cut_from_left(w, p)),
        "The way itself",
    ),
    "whole words": (
        lambda w, p: [w] if w in p else cut_from_left(w, p),
        "where it is a piece",
    ),
}

RIGHT["perplexity_a_word"] = [
    lambda nats, pieces, words: (nats.sum() / words.sum()).exp(),
    lambda nats, pieces, words: math.e ** (sum(nats) / sum(words)),
    lambda nats, pieces, words: ((nats / words) @ (words / words.sum())).exp(),
]
WRONG["perplexity_a_word"] = {
    "a piece": (lambda n, p, w: (n.sum() / p.sum()).exp(), "perplexity a piece"),
    "mean of means": (lambda n, p, w: (n / w).mean().exp(), "short sentence counts"),
    "of pieces": (lambda n, p, w: (n / p).mean().exp(), "over their pieces"),
    "mean of perplexities": (lambda n, p, w: (n / w).exp().mean(), "before exp"),
    "no exp": (lambda n, p, w: n.sum() / w.sum(), "nats a word"),
    "nats a piece": (lambda n, p, w: n.sum() / p.sum(), "nats a piece"),
    "2": (lambda n, p, w: 2 ** (n.sum() / w.sum()), "for bits"),
    "sign": (lambda n, p, w: 1 / (n.sum() / w.sum()).exp(), "below 1"),
    "sentence": (lambda n, p, w: n.mean().exp(), "of a sentence"),
    "times": (
        lambda n, p, w: (n.sum() / p.sum()).exp() * p.sum() / w.sum(),
        "comes after",
    ),
    "eos again": (
        lambda n, p, w: (n.sum() / (w + 1).sum()).exp(),
        "count <eos> already",
    ),
}


# --- 11 --------------------------------------------------------------------------

GOING = ("goes", "walks", "runs")


def facts_by_loop(thing, events):
    who, first = None, None
    for i, (giver, _, what, to) in enumerate(events):
        if what == thing:
            who, first = to or giver, i
    for i in reversed(range(len(events))):
        if who and events[i].who == who and events[i].verb in GOING:
            return first, i
    return None


def facts_by_dicts(thing, events):
    has, went = {}, {}
    for i, e in enumerate(events):
        if e.verb in GOING:
            went[e.who] = i
        else:
            has[e.what] = (e.to if e.verb == "sends" else e.who), i
    if thing in has and has[thing][0] in went:
        return has[thing][1], went[has[thing][0]]
    return None


def facts(thing, events, *, first=False, giver=False, verbs=GOING, anyone=False):
    if first:
        events = events[::-1]
    holding = [e for e in events if e.what == thing]
    if not holding:
        return None
    who = holding[-1].who if giver else holding[-1].to or holding[-1].who
    going = [e for e in events if (anyone or e.who == who) and e.verb in verbs]
    if not going:
        return None
    found = [i for i, e in enumerate(events) if e is holding[-1]]
    place = [i for i, e in enumerate(events) if e is going[-1]]
    last = len(events) - 1
    return (last - found[0], last - place[0]) if first else (found[0], place[0])


def facts_before(thing, events):
    found = facts_by_loop(thing, events)
    held = max([i for i, e in enumerate(events) if e.what == thing], default=0)
    holder = events[held].to or events[held].who
    before = [
        i for i in range(held) if events[i].who == holder and events[i].verb in GOING
    ]
    return (held, before[-1]) if found and before else None


def facts_without_none(thing, events):
    held = [i for i, e in enumerate(events) if e.what == thing][-1]
    who = events[held].to or events[held].who
    return held, [i for i, e in enumerate(events) if e.who == who and e.verb in GOING][
        -1
    ]


def with_facts(change):
    def function(thing, events):
        found = facts_by_loop(thing, events)
        return change(events, found) if found else None

    return function


RIGHT["two_facts"] = [facts_by_loop, facts_by_dicts, facts]
WRONG["two_facts"] = {
    "first events": (lambda t, e: facts(t, e, first=True), "the last one counts"),
    "sender": (lambda t, e: facts(t, e, giver=True), "no longer has it"),
    "any verb": (
        lambda t, e: facts(t, e, verbs=(*GOING, "takes", "sends")),
        "look at the verb",
    ),
    "anyone": (lambda t, e: facts(t, e, anyone=True), "that anybody goes to"),
    "before only": (facts_before, "may go on with it"),
    "exchanged": (with_facts(lambda e, found: found[::-1]), "exchanged"),
    "from 1": (with_facts(lambda e, f: (f[0] + 1, f[1] + 1)), "counted from 1"),
    "words": (
        with_facts(lambda e, f: (e[f[1]].who, e[f[1]].what)),
        "these are the words",
    ),
    "the second": (with_facts(lambda e, f: f[1]), "second event alone"),
    "raises": (facts_without_none, "return None there"),
}


def moves_by_loop(weights):
    places, forward, back = [int(row.argmax()) for row in weights], 0, 0
    for a, b in zip(places, places[1:], strict=False):
        forward += b > a
        back += b < a
    return forward / (forward + back) if forward + back else 0


def moves_by_diff(weights):
    signs = weights.argmax(dim=1).diff().sign()
    return (signs == 1).sum() / signs.abs().sum().clamp(min=1)


def forward_share(weights, axis=1):
    places = weights.argmax(axis).tolist()
    steps = [b >= a for a, b in zip(places, places[1:], strict=False)]
    return sum(steps) / len(steps) if steps else 0.0


def share_of_steps(test, moving=lambda step: step != 0):
    def function(weights):
        places = weights.argmax(1).tolist()
        steps = [b - a for a, b in zip(places, places[1:], strict=False)]
        steps = [step for step in steps if moving(step)]
        return sum(map(test, steps)) / len(steps) if steps else 0.0

    return function


def moves_of_columns(weights):
    return moves_by_loop(weights.T)


def moves_unguarded(weights):
    steps = weights.argmax(1).diff().tolist()
    return sum(step > 0 for step in steps) / len([step for step in steps if step])


def moves_nan(weights):
    steps = weights.argmax(1).diff()
    return ((steps > 0).sum() / (steps != 0).sum()).item()


RIGHT["forward_moves"] = [
    moves_by_loop,
    moves_by_diff,
    share_of_steps(lambda step: step > 0),
]
WRONG["forward_moves"] = {
    "standing is forward": (forward_share, "never moves looks monotone"),
    "standing below the line": (
        share_of_steps(lambda step: step > 0, lambda step: True),
        "below the line",
    ),
    "backward": (share_of_steps(lambda step: step < 0), "the moves backward"),
    "by one": (share_of_steps(lambda step: step == 1), "to the next word"),
    "columns": (moves_of_columns, "went through the columns"),
    "a number": (lambda w: int((w.argmax(1).diff() > 0).sum()), "the number of moves"),
    "by words": (lambda w: (w.argmax(1).diff() > 0).sum() / len(w), "T - 1 steps"),
    "percent": (lambda w: 100 * moves_by_loop(w), "in percent"),
    "no guard": (moves_unguarded, "divides by 0"),
    "nan": (moves_nan, "0/0"),
}


def rouge_by_counter(hypothesis, reference):
    common = sum((Counter(hypothesis) & Counter(reference)).values())
    if not common:
        return 0.0
    p, r = common / len(hypothesis), common / len(reference)
    return 2 * p * r / (p + r)


def rouge_by_removal(hypothesis, reference):
    rest = list(reference)
    for word in hypothesis:
        if word in rest:
            rest.remove(word)
    common = len(reference) - len(rest)
    return 2 * common / (len(hypothesis) + len(reference))


def f_measure(common):
    def function(hypothesis, reference):
        number = common(hypothesis, reference)
        return 2 * number / (len(hypothesis) + len(reference))

    return function


def rouge_unclipped(hypothesis, reference):
    hits = len([word for word in hypothesis if word in reference])
    p, r = hits / max(len(hypothesis), 1), hits / len(reference)
    return 2 * p * r / (p + r) if p + r > 0 else 0


def rouge_unguarded(hypothesis, reference):
    common = sum((Counter(hypothesis) & Counter(reference)).values())
    p, r = common / len(hypothesis), common / len(reference)
    return 2 * p * r / (p + r)


def in_common(hypothesis, reference):
    return sum(min(hypothesis.count(w), reference.count(w)) for w in {*reference})


RIGHT["rouge_1"] = [rouge_by_counter, rouge_by_removal, f_measure(in_common)]
WRONG["rouge_1"] = {
    "sets above": (f_measure(lambda h, r: len({*h} & {*r})), "a set forgets"),
    "sets": (
        lambda h, r: 2 * len({*h} & {*r}) / (len({*h}) + len({*r})),
        "these are sets",
    ),
    "Jaccard": (lambda h, r: len({*h} & {*r}) / len({*h, *r}), "their union"),
    "no clipping": (rouge_unclipped, "take each of its words once"),
    "precision": (lambda h, r: in_common(h, r) / (len(h) or 1), "precision alone"),
    "recall": (lambda h, r: in_common(h, r) / len(r), "recall alone"),
    "plain mean": (
        lambda h, r: in_common(h, r) * (1 / (len(h) or 1) + 1 / len(r)) / 2,
        "harmonic",
    ),
    "no 2": (lambda h, r: in_common(h, r) / (len(h) + len(r)), "is missing"),
    "percent": (lambda h, r: 100 * rouge_by_counter(h, r), "in percent"),
    "same place": (
        f_measure(lambda h, r: sum(map(str.__eq__, h, r))),
        "at the same place",
    ),
    "no guard": (rouge_unguarded, "no word is in common"),
}


# --- 12 --------------------------------------------------------------------------


def split_by_view(x, N):
    B, K, H = x.shape
    return x.view(B, K, N, H // N).transpose(1, 2).reshape(B * N, K, H // N)


def split_by_chunks(x, N):
    return torch.cat([torch.stack(row.chunk(N, dim=-1)) for row in x])


RIGHT["split_heads"] = [
    split_by_view,
    split_by_chunks,
    lambda x, N: torch.stack(x.double().tensor_split(N, dim=2), 1).flatten(0, 1),
]
WRONG["split_heads"] = {
    "view alone": (
        lambda x, N: x.view(len(x) * N, x.shape[1], -1),
        "the numbers stand elsewhere",
    ),
    "view alone, in two": (
        lambda x, N: x.reshape(len(x), N, x.shape[1], -1).flatten(0, 1),
        "the numbers stand elsewhere",
    ),
    "transposed, then view": (
        lambda x, N: x.mT.contiguous().view(len(x) * N, x.shape[1], -1),
        "an axis of their own",
    ),
    "N last": (
        lambda x, N: x.view(*x.shape[:2], -1, N).permute(0, 3, 1, 2).flatten(0, 1),
        "every N-th unit",
    ),
    "heads first": (
        lambda x, N: torch.stack(x.chunk(N, -1)).flatten(0, 1),
        "must stand together",
    ),
    "not flat": (
        lambda x, N: x.view(*x.shape[:2], N, -1).permute(0, 2, 1, 3),
        "should be rows",
    ),
    "not moved": (lambda x, N: x.view(len(x) * x.shape[1], N, -1), "move the heads"),
    "units before words": (
        lambda x, N: split_by_view(x, N).mT,
        "words and units are exchanged in every",
    ),
    "not shared out": (lambda x, N: x.repeat_interleave(N, 0), "share them out"),
}


def causal_by_loops(queries, keys, values):
    contexts = torch.zeros_like(values)
    for t in range(queries.shape[1]):
        scores = torch.einsum("bh,bjh->bj", queries[:, t], keys[:, : t + 1])
        weights = F.softmax(scores / queries.shape[2] ** 0.5, dim=1)
        contexts[:, t] = torch.einsum("bj,bjd->bd", weights, values[:, : t + 1])
    return contexts


def causal_scores(q, k, scale=None):
    return q @ k.mT / (q.shape[-1] ** 0.5 if scale is None else scale)


def past(q, diagonal=0):
    return torch.tril(torch.ones(q.shape[1], q.shape[1]), diagonal)


def causal_by_mask(q, k, v, diagonal=0, scale=None, dim=-1, hidden=float("-inf")):
    scores = causal_scores(q, k, scale)
    return scores.masked_fill(past(q, diagonal) == 0, hidden).softmax(dim) @ v


def masked_late(q, k, v):
    weights = F.softmax(causal_scores(q, k), dim=-1)
    return torch.tril(weights) @ v


def masked_late_renormalised(q, k, v):
    weights = F.softmax(causal_scores(q, k), dim=-1) * past(q)
    return weights / weights.sum(dim=2, keepdim=True) @ v


RIGHT["causal_attention"] = [
    causal_by_mask,
    causal_by_loops,
    lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
]
WRONG["causal_attention"] = {
    "mask after": (masked_late, "by what did the softmax divide"),
    "mask after, renormalised": (masked_late_renormalised, "leaks in"),
    "no mask": (F.scaled_dot_product_attention, "no mask"),
    "zeros": (lambda q, k, v: causal_by_mask(q, k, v, hidden=0), "exp(0) is 1"),
    "times the mask": (
        lambda q, k, v: (causal_scores(q, k) * past(q)).softmax(-1) @ v,
        "exp(0) is 1",
    ),
    "upper": (
        lambda q, k, v: (
            causal_scores(q, k).masked_fill(past(q, -1) == 1, float("-inf")).softmax(-1)
            @ v
        ),
        "turned round",
    ),
    "not itself": (lambda q, k, v: causal_by_mask(q, k, v, -1), "not even itself"),
    "not itself, -1e9": (
        lambda q, k, v: causal_by_mask(q, k, v, -1, hidden=-1e9),
        "not even itself",
    ),
    "one too far": (lambda q, k, v: causal_by_mask(q, k, v, 1), "the next one"),
    "added": (
        lambda q, k, v: (causal_scores(q, k) + past(q)).softmax(-1) @ v,
        "were added",
    ),
    "not scaled": (lambda q, k, v: causal_by_mask(q, k, v, scale=1), "not scaled"),
    "too small": (
        lambda q, k, v: causal_by_mask(q, k, v, scale=q.shape[2]),
        "divided by H",
    ),
    "wrong axis": (lambda q, k, v: causal_by_mask(q, k, v, dim=1), "over the queries"),
    "exchanged": (
        lambda q, k, v: causal_by_mask(k, q, v),
        "queries and keys are exchanged",
    ),
    "weights": (
        lambda q, k, v: (
            causal_scores(q, k).masked_fill(past(q) == 0, -torch.inf).softmax(-1)
        ),
        "these are the weights",
    ),
    "values cut off": (
        lambda q, k, v: causal_by_mask(q, k, v.detach()),
        "the gradient of values",
    ),
}


def mean_by_loop(gradients, words):
    total = torch.zeros(gradients.shape[1])
    for gradient, number in zip(gradients, words, strict=True):
        total = total + number * gradient
    return total / words.sum()


RIGHT["mean_over_words"] = [
    mean_by_loop,
    lambda g, w: (w / w.sum()) @ g,
    lambda g, w: torch.einsum("p,pn->n", w.double(), g.double()) / w.sum(),
]
WRONG["mean_over_words"] = {
    "mean of means": (lambda g, w: g.mean(0), "mean of means"),
    "sum": (lambda g, w: g.sum(dim=0), "sum of the means"),
    "sum over words": (lambda g, w: (g * w[:, None]).sum(0), "sum over all words"),
    "mean, weighed": (
        lambda g, w: (g * w[:, None]).mean(0),
        "number of processes. The number",
    ),
    "divided twice": (
        lambda g, w: (g * w[:, None] / w.sum()).mean(0),
        "once too often",
    ),
    "ShareOfLoss": (lambda g, w: (w / w.float().mean()) @ g, "ShareOfLoss does it"),
    "divided": (lambda g, w: (g / w[:, None]).sum(0), "a mean already"),
    "not multiplied": (lambda g, w: g.sum(0) / w.sum(), "as if they were sums"),
    "softmax": (lambda g, w: w.float().softmax(0) @ g, "softmax is no share"),
    "floor": (lambda g, w: (w // w.sum()).float() @ g, "`//`"),
    "columns": (lambda g, w: (g * w).sum(0) / w.sum(), "belong to the rows"),
}


# --- A second round, written after the checks and without looking at them ----------


def mean_of_words(outputs, lens):
    return torch.stack([outputs[b, : lens[b]].mean(0) for b in range(len(outputs))])


def step_forgets(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    return weights, rnn(torch.cat((context, x), dim=-1))[1]


def step_returns_the_output(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    output, _ = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return weights, output


def mask_and_renormalise(X, valid_lens):
    weights = F.softmax(X, dim=-1) * mask_of(X, valid_lens)
    return weights / weights.sum(dim=-1, keepdim=True)


class WrongWidth(Concat):
    def __init__(self, key_size, query_size, num_hiddens):
        super().__init__(key_size, query_size, num_hiddens)
        self.W = nn.Linear(query_size + key_size, query_size + key_size, bias=False)


def moves_by_distance(weights):
    steps = weights.argmax(1).diff().float()
    return steps.clamp(min=0).sum() / steps.abs().sum().clamp(min=1e-9)


def scaled_late(q, k, v):
    weights = causal_scores(q, k, 1).masked_fill(past(q) == 0, -1e9).softmax(-1)
    return weights / q.shape[2] ** 0.5 @ v


SECOND_ROUND = {
    "most_attended": {
        "a set": (
            lambda w, s: {s[int(row.argmax())] for row in w},
            "a list is asked for",
        ),
    },
    "shift": {
        "tensors": (
            lambda ids: (torch.tensor([1] + ids), torch.tensor(ids + [2])),
            "a list is asked for",
        ),
    },
    "last_states": {
        "sum": (lambda o, n: o.sum(dim=1), "the sum over all"),
        "mean of the words": (mean_of_words, "mean over the words"),
        "axis kept": (
            lambda o, n: o[torch.arange(len(o)), n - 1][:, None],
            "an axis of length 1",
        ),
    },
    "additive_scores": {
        "softmax over queries": (
            lambda q, k, W, U, v: F.softmax(scores_by_einsum(q, k, W, U, v), dim=1),
            "these are weights",
        ),
        "v without a sum": (
            lambda q, k, W, U, v: (
                torch.tanh((q @ W.T)[:, :, None] + (k @ U.T)[:, None]) * v
            ),
            "a sum over it is missing",
        ),
        "scaled": (
            lambda q, k, W, U, v: scores_by_einsum(q, k, W, U, v) / len(v) ** 0.5,
            "scaled by a square root",
        ),
    },
    "attention_weights": {
        "scaled": (lambda s: F.softmax(s / s.shape[-1] ** 0.5, -1), "scaled first"),
    },
    "masked_softmax": {
        "-100": (
            lambda X, n: F.softmax(X.masked_fill(~mask_of(X, n), -100.0), -1),
            "without a real position",
        ),
        "cut to the longest": (
            lambda X, n: F.softmax(X[..., : int(n.max())], -1),
            "axis 2 has size 4",
        ),
        "log of the mask": (
            lambda X, n: F.softmax(X + mask_of(X, n).float().log(), -1),
            "without a real position",
        ),
        "after, renormalised": (mask_and_renormalise, "leaks in"),
    },
    "length_mask": {
        "no column": (lambda lens, K: torch.arange(K) < lens, "It raised RuntimeError"),
        "all": (lambda lens, K: torch.ones(len(lens), K).bool(), "everything is real"),
        "floats": (
            lambda lens, K: (torch.arange(K) < lens[:, None]).float(),
            "True and False",
        ),
    },
    "attend_then_update": {
        "from zeros": (step_forgets, "starts from zeros"),
        "output for state": (step_returns_the_output, "axis 1 has size 1"),
    },
    "bottom_query": {
        "axis at the end": (lambda h: h[0].unsqueeze(2), "another order"),
    },
    "all_weights": {
        "context": (
            lambda attention, q, h, n: attention(q, h, h, n),
            "axis 2 has size 5",
        ),
    },
    "mean_loss": {
        "no log_softmax": (
            lambda s, t: F.nll_loss(s.flatten(0, 1), t.flatten(), ignore_index=0),
            "log_softmax is missing",
        ),
        "ignored, and averaged over all": (
            lambda s, t: F.cross_entropy(
                s.mT, t, ignore_index=0, reduction="none"
            ).mean(),
            "below the line",
        ),
    },
    "clip": {
        "sizes added": (
            lambda gs, m: [g * min(1, m / sum(x.abs().sum() for x in gs)) for g in gs],
            "sizes of the numbers",
        ),
    },
    "epoch_loss": {"largest": (lambda losses, n: max(losses), "largest loss")},
    "links": {
        "a list": (lambda w, t: sorted(links_by_loop(w, t)), "a set is asked for"),
    },
    "push": {"no sigma": (lambda x, p, s: x - far_from(x, p) ** 2, "isn't used")},
    "concat_attention": {"wrong width": (WrongWidth, "should have shape (7, 11)")},
    "two_facts": {
        "goes only": (lambda t, e: facts(t, e, verbs=("goes",)), "three verbs"),
    },
    "forward_moves": {
        "distances": (moves_by_distance, "a long move counts more"),
    },
    "rouge_1": {
        "the longer": (
            lambda h, r: in_common(h, r) / max(len(h), len(r)),
            "the longer of",
        ),
        "recall, unclipped": (
            lambda h, r: len([word for word in r if word in h]) / len(r),
            "and a word",
        ),
    },
    "split_heads": {
        "split": (
            lambda x, N: torch.stack(x.split(N, dim=2), 1).flatten(0, 1),
            "exchanged",
        ),
        "view alone, not flat": (
            lambda x, N: x.view(len(x), N, x.shape[1], -1),
            "order in memory",
        ),
    },
    "causal_attention": {
        "scaled late": (scaled_late, "after the softmax"),
        "scaled by T": (
            lambda q, k, v: causal_by_mask(q, k, v, scale=q.shape[1] ** 0.5),
            "the number of words",
        ),
    },
    "best_hypothesis": {
        "subtracted": (best(lambda p, n, a: p - a * n), "is subtracted"),
    },
}
for check, answers in SECOND_ROUND.items():
    WRONG[check].update(answers)


# --- What any exercise can suffer from --------------------------------------------

METHOD = {"concat_attention": "score", "reset_after": "forward"}  # of a class


def changed(name, change):
    """The solution with its function, or its class's method, passed through change."""
    solution = RIGHT[name][0]
    if name not in METHOD:
        return change(solution)
    method = change(getattr(solution, METHOD[name]))
    return type("Mine", (solution,), {METHOD[name]: method})


def after(name, change):
    """The solution with another result."""
    return changed(name, lambda f: lambda *case: change(f(*case)))


def nothing(name):
    def forgets_return(f):
        def function(*case):
            f(*case)

        return function

    return changed(name, forgets_return)


def raising(name):
    def function(*case):
        raise KeyError("what?")

    return changed(name, lambda f: function)


def endless(name):
    def function(*case):
        while True:
            pass

    return changed(name, lambda f: function)


def spoil(value):
    """Change an argument in place; whether it was possible."""
    if torch.is_tensor(value):
        value.data.add_(1)
    elif isinstance(value, list):
        value.extend(value[:1] or [0])
    elif isinstance(value, dict):
        value.popitem()
    else:
        return False
    return True


def spoiling(name):
    def spoils(f):
        def function(*case):
            result = f(*case)
            result = result.clone() if torch.is_tensor(result) else result
            any(spoil(value) for value in case)
            return result

        return function

    return changed(name, spoils)


def constant(name):
    """The right result for the first input, whatever the input."""
    kept = []

    def remembers(f):
        def function(*case):
            kept.append(f(*case))
            return kept[0]

        return function

    return changed(name, remembers)


def returns_tensor(name):
    """Whether the right result is one tensor."""
    return name not in {
        "most_attended",
        "shift",
        "attend_then_update",
        "clip",
        "epoch_loss",
        "links",
        "aer",
        "best_hypothesis",
        "two_facts",
        "forward_moves",
        "rouge_1",
        "best_cut",
    }


ONE_NUMBER = {"mean_loss", "smoothed_loss", "perplexity_a_word"}


def has_gradients(name):
    return returns_tensor(name) and name not in {
        "length_mask",
        "near",
        "bottom_query",
        "all_weights",
    }


def general_answers(name):
    """{kind: (answer, words of the message)}"""
    found = {
        "returns None": (nothing(name), "nothing is returned"),
        "raises": (raising(name), "KeyError: 'what?'"),
        "endless loop": (endless(name), "stopped after"),
        "changes its input": (spoiling(name), "an argument was changed"),
        "hard-coded": (constant(name), "the same for every input"),
    }
    if returns_tensor(name):
        found["NumPy"] = (after(name, lambda x: x.detach().numpy()), "NumPy")
        found["a list"] = (
            after(name, lambda x: x.tolist()),
            ".item()" if name in ONE_NUMBER else "a tensor is asked for",
        )
    if has_gradients(name):
        found["detached"] = (after(name, lambda x: x.detach()), "no gradient")
        found["whole numbers"] = (after(name, lambda x: x.long()), "whole numbers")
        found["a factor"] = (after(name, lambda x: 3 * x), "the factor 3")
        found["NaN"] = (after(name, lambda x: x * torch.nan), "NaN")
    return found


# --- The tests ---------------------------------------------------------------------


def reply(name, answer, seconds=None):
    """What a check prints; seconds: its patience, for an answer that needs none."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "SECONDS", seconds or checks.SECONDS)
        assert getattr(checks, name)(answer) is None
    return " ".join(printed.getvalue().split())


def short(kind):
    return 0.3 if kind == "endless loop" else None


SOLUTIONS = [(name, n) for name in RIGHT for n in range(len(RIGHT[name]))]
ANSWERS = [(name, kind) for name in WRONG for kind in WRONG[name]]
GENERAL = [(name, kind) for name in RIGHT for kind in general_answers(name)]


@pytest.mark.parametrize("name, n", SOLUTIONS)
def test_a_right_answer_passes(name, n):
    assert reply(name, RIGHT[name][n]).startswith("✓ Right")


@pytest.mark.parametrize("name, kind", ANSWERS)
def test_a_wrong_answer_is_told_what_is_wrong(name, kind):
    answer, words = WRONG[name][kind]
    said = reply(name, answer)
    assert said.startswith("Not yet") and words in said


@pytest.mark.parametrize("name, kind", GENERAL)
def test_what_any_exercise_can_suffer_from(name, kind):
    answer, words = general_answers(name)[kind]
    said = reply(name, answer, short(kind))
    assert said.startswith("Not yet") and words in said


def dots(*case): ...


def documented_dots(*case):
    """What it should do."""


def returned_dots(*case):
    return ...


def unwritten(*case):
    raise NotImplementedError


@pytest.mark.parametrize("name", RIGHT)
def test_not_attempted(name):
    starters = [...]
    if name in METHOD:
        starters.append(changed(name, lambda f: unwritten))
    else:
        starters += [dots, documented_dots, returned_dots, unwritten]
    for starter in starters:
        assert reply(name, starter).startswith(NOT_ATTEMPTED)


def test_every_check_is_tested():
    public = {
        name
        for name, value in vars(checks).items()
        if inspect.isfunction(value)
        and value.__module__ == checks.__name__
        and not name.startswith("_")
    }
    assert public == set(RIGHT) == set(WRONG)
    assert min(map(len, WRONG.values())) >= 5


def test_a_call_in_place_of_a_function():
    assert "without calling it" in reply("additive_scores", torch.zeros(2, 3, 4))


def test_a_wrong_number_of_arguments():
    assert "TypeError" in reply("additive_scores", lambda queries, keys: queries)


def test_the_line_that_raised_is_shown():
    said = reply("additive_scores", scores_that_raise)
    assert "in the line return queries @ keys" in said


def scores_that_raise(queries, keys, W, U, v):
    return queries @ keys


def catches_one(*case):
    try:
        while True:
            pass
    except BaseException:
        while True:
            pass


def test_a_loop_that_catches_everything_once_is_stopped():
    start = time.monotonic()
    assert "stopped after 0.3 seconds" in reply("shift", catches_one, 0.3)
    assert time.monotonic() - start < 5


def test_waiting_in_c_code_is_left_behind():
    start = time.monotonic()
    assert "stopped after" in reply("shift", lambda ids: time.sleep(8), 0.3)
    assert time.monotonic() - start < 5


def leaves(*case):
    sys.exit(3)


def test_sys_exit_is_answered():
    assert "SystemExit" in reply("shift", leaves)


def test_the_check_leaves_the_generator_as_it_was():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    reply("all_weights", weights_at_once)
    reply("concat_attention", Concat)
    reply("additive_scores", lambda q, k, W, U, v: torch.randn(2))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_check_works_where_gradients_are_off():
    with torch.no_grad():
        assert reply("additive_scores", scores_by_einsum).startswith("✓ Right")


def test_the_answer_is_the_same_each_time():
    for answer in (RIGHT["masked_softmax"][0], nan_leaks):
        assert reply("masked_softmax", answer) == reply("masked_softmax", answer)


def table(names):
    """One line a check: wrong answers tried, caught, told the right thing."""
    total = [0, 0, 0]
    print(f"{'check':20} {'tried':>6} {'caught':>7} {'message right':>14}")
    for name in names or RIGHT:
        row = [0, 0, 0]
        answers = [*WRONG[name].items(), *general_answers(name).items()]
        for kind, (answer, words) in answers:
            said = reply(name, answer, short(kind))
            caught = said.startswith("Not yet")
            row = [row[0] + 1, row[1] + caught, row[2] + (caught and words in said)]
        print(f"{name:20} {row[0]:6} {row[1]:7} {row[2]:14}")
        total = [a + b for a, b in zip(total, row, strict=True)]
    print(f"{'all':20} {total[0]:6} {total[1]:7} {total[2]:14}")


if __name__ == "__main__":
    table(sys.argv[1:])
