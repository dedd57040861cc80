"""Right answers in unusual styles pass; borrowed ones don't."""

import bisect
import functools
import heapq
import math
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from utils import attention, exercises
from utils.attention import Attention, length_mask, masked_softmax
from utils.metrics import alignment_error_rate, links_from_weights
from utils.rnnsearch import GatedUnit, ResetAfterUnit
from utils.training import masked_cross_entropy, train_step
from utils.transformer import split


def words_by_numpy(weights, source_tokens):
    return [source_tokens[j] for j in np.asarray(weights).argmax(axis=1)]


def rows_by_one_hot(ids, table):
    return F.one_hot(ids, len(table)).to(table.dtype) @ table


def gru_by_chunks(x, h, W, U, b):
    r, z, n = F.linear(x, W).chunk(3, dim=-1)
    s_r, s_z, s_n = F.linear(h, U, b).chunk(3, dim=-1)
    z = torch.sigmoid(z + s_z)
    return torch.lerp(torch.tanh(n + torch.sigmoid(r + s_r) * s_n), h, z)


def gru_by_gates(x, h, W, U, b):
    H = h.shape[1]
    r = torch.sigmoid(W[:H] @ x.T + U[:H] @ h.T + b[:H, None])
    z = torch.sigmoid(W[H : 2 * H] @ x.T + U[H : 2 * H] @ h.T + b[H : 2 * H, None])
    n = torch.tanh(W[2 * H :] @ x.T + r * (U[2 * H :] @ h.T + b[2 * H :, None]))
    return (n - z * n).T + z.T * h


def log_by_cross_entropy(logits, targets):
    flat = logits.transpose(1, 2)
    return -F.cross_entropy(flat, targets, ignore_index=0, reduction="none").sum(1)


def log_by_index(logits, targets):
    rows, columns = torch.arange(len(targets))[:, None], torch.arange(targets.shape[1])
    logs = torch.log(torch.softmax(logits.double(), dim=2))[rows, columns, targets]
    return torch.where(targets == 0, 0, logs).sum(dim=1)


def last_by_gather(outputs, valid_lens):
    index = (valid_lens - 1).view(-1, 1, 1).expand(-1, 1, outputs.shape[2])
    return outputs.double().gather(1, index).squeeze(1)


def scores_by_einsum(queries, keys, W, U, v):
    projected = torch.einsum("bqi,hi->bqh", queries, W)
    sums = projected.unsqueeze(2) + torch.einsum("bki,hi->bkh", keys, U).unsqueeze(1)
    return torch.einsum("bqkh,h->bqk", torch.tanh(sums), v)


def scores_by_matmul(queries, keys, W, U, v):
    q, k = F.linear(queries.double(), W.double()), F.linear(keys.double(), U.double())
    return torch.tanh(q[:, :, None] + k[:, None]) @ v.double()


def joined(queries, keys):
    B, Q, K = len(queries), queries.shape[1], keys.shape[1]
    pair = (queries[:, :, None].expand(B, Q, K, -1), keys[:, None].expand(B, Q, K, -1))
    return torch.cat(pair, dim=-1)


def softmax_by_hand(scores):
    exps = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return exps / exps.sum(dim=-1, keepdim=True)


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


def causal_by_lengths(X, valid_lens):
    upto = torch.arange(1, X.shape[1] + 1)
    return masked_softmax(X.double(), torch.minimum(upto, valid_lens[:, None]))


def causal_by_masks(X, valid_lens):
    seen = torch.ones_like(X).tril() * (
        torch.arange(X.shape[2]) < valid_lens.view(-1, 1, 1)
    )
    return masked_by_hand(X.masked_fill(seen == 0, -1e9), valid_lens)


def step_in_order(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    _, hidden_state = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return weights, hidden_state


def weights_at_once(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(enc_outputs)
    return attention.attend(queries, keys, enc_outputs, valid_lens)[1]


def weights_by_forward(attention, queries, enc_outputs, valid_lens):
    attention(queries, enc_outputs, enc_outputs, valid_lens)
    return attention.attention_weights


def annotations_by_cells(x, forwards, backwards):
    last, (first, second) = x.shape[1] - 1, ([], [])
    f = b = None
    for t in range(last + 1):
        out, f = forwards(x[:, t : t + 1], f)
        first.append(out)
        out, b = backwards(x[:, last - t : last - t + 1], b)
        second.insert(0, out)
    return torch.cat((torch.cat(first, 1), torch.cat(second, 1)), -1)


def full_step(x, state, attention, rnn, dense):
    values, keys, hidden, lens = state
    context, weights = attention.attend(hidden[-1][:, None], keys, values, lens)
    output, hidden = rnn(torch.cat((context, x), dim=-1), hidden)
    return dense(output), weights, hidden


def full_step_by_scores(x, state, attention, rnn, dense):
    values, keys, hidden, lens = state
    weights = masked_by_infinity(
        attention.score(hidden[-1:].transpose(0, 1), keys), lens
    )
    inputs = torch.cat(((weights.float() @ values), x), dim=2)
    _, hidden = rnn(inputs, hidden)
    return dense(hidden[-1]).unsqueeze(1), weights, hidden


def loss_by_mask(scores, targets):
    nats = F.cross_entropy(scores.transpose(1, 2), targets, reduction="none")
    mask = (targets != 0).float()
    return (nats * mask).sum() / mask.sum()


def clip_by_root(gradients, max_norm):
    norm = torch.sqrt(sum((g**2).sum() for g in gradients))
    return [g * max_norm / norm if norm > max_norm else g.clone() for g in gradients]


def clip_by_torch(gradients, max_norm):
    parameters = [torch.zeros_like(g) for g in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient.clone()
    nn.utils.clip_grad_norm_(parameters, max_norm)
    return [parameter.grad for parameter in parameters]


def step_by_torch(model, batch, optimizer, clip):
    model.train()
    logits = model(batch.source, batch.target_in, batch.source_lens)[0]
    loss = loss_by_mask(logits, batch.target_out)
    model.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
    return loss.detach()


def step_that_clears_at_the_end(model, batch, optimizer, clip):
    model.train()
    real = batch.target_out != 0
    logits, _ = model(batch.source, batch.target_in, batch.source_lens, real)
    loss = F.cross_entropy(logits, batch.target_out[real])
    loss.backward()
    gradients = clip_by_root([p.grad for p in model.parameters()], clip)
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient
    optimizer.step()
    optimizer.zero_grad()
    return float(loss.detach())


def greedy_by_rows(step, state, batch_size, max_steps):
    words, rows = torch.ones(batch_size, 1, dtype=torch.long), []
    while len(rows) < max_steps:
        logits, state = step(words, state)
        words = logits[:, -1].softmax(-1).argmax(-1, keepdim=True)
        rows.append(words)
    ids = torch.cat(rows, 1)
    ended = (ids == 2).cumsum(1) > 0
    return [row[~end].tolist() for row, end in zip(ids, ended, strict=True)]


def greedy_that_keeps_tensors(step, state, batch_size, max_steps):
    words = torch.full((batch_size, 1), 1)
    going, ids = [True] * batch_size, [[] for _ in range(batch_size)]
    for _ in range(max_steps):
        logits, state = step(words, state)
        words = logits.argmax(2)
        for b in range(batch_size):
            going[b] = going[b] and words[b, 0] != 2
            ids[b] += [words[b, 0]] * bool(going[b])
        if not any(going):
            break
    return tuple(ids)


def aer_by_counts(predicted, sure, possible):
    both = size = 0
    for a, s, p in zip(predicted, sure, possible, strict=True):
        both += len(a & s) + len(a & (s | p))
        size += len(a) + len(s)
    return 1 - both / size


def push_by_broadcast(scores, place, sigma):
    far = torch.arange(scores.shape[-1]) - place[:, None]
    return scores - (far**2 / (2 * sigma**2)).unsqueeze(1)


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


class ResetAfter(GatedUnit):
    def from_state(self, r, s):
        return r * self.U(s)


class ResetAfterByForward(GatedUnit):
    def forward(self, x, context, s):
        z, r, n = (self.W(x) + self.C(context)).double().chunk(3, dim=-1)
        U_z, U_r = self.U_gates.weight.double().chunk(2)
        s, U = s.double(), self.U.weight.double()
        z, r = torch.sigmoid(z + s @ U_z.T), torch.sigmoid(r + s @ U_r.T)
        return (1 - z) * s + z * torch.tanh(n + r * (s @ U.T))


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


GOING = ("went", "walked", "came")


def facts_by_dicts(thing, events):
    has, went = {}, {}
    for i, e in enumerate(events):
        if e.verb in GOING:
            went[e.who] = i
        else:
            has[e.what] = (e.to if e.verb == "sent" else e.who), i
    if thing in has and has[thing][0] in went:
        return has[thing][1], went[has[thing][0]]
    return None


def step_by_heap(log_probs, ended, steps, size):
    grown = {(k, -1): log_probs[k] for k in range(len(steps)) if ended[k]}
    for k, row in enumerate(steps):
        if not ended[k]:
            grown |= {(k, w): log_probs[k] + s for w, s in enumerate(row)}
    return heapq.nlargest(size, grown, key=grown.get)


def moves_by_diff(weights):
    signs = weights.argmax(dim=1).diff().sign()
    return (signs == 1).sum() / signs.abs().sum().clamp(min=1)


def rouge_by_counter(hypothesis, reference):
    common = sum((Counter(hypothesis) & Counter(reference)).values())
    if not common:
        return 0.0
    p, r = common / len(hypothesis), common / len(reference)
    return 2 * p * r / (p + r)


def split_by_view(x, N):
    B, K, H = x.shape
    return x.view(B, K, N, H // N).transpose(1, 2).reshape(B * N, K, H // N)


def split_by_chunks(x, N):
    return torch.cat([torch.stack(row.chunk(N, dim=-1)) for row in x])


def causal_by_mask(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    seen = torch.tril(torch.ones(q.shape[1], q.shape[1]))
    return scores.masked_fill(seen == 0, float("-inf")).softmax(-1) @ v


def post_norm_in_double(x, ask, think):
    for part in (ask, think):
        x = x + part(x)
        x = nn.LayerNorm(x.shape[-1], elementwise_affine=False)(x)
    return x


def score_by_bisect(seconds, ends, scores):
    n = bisect.bisect_left(ends, seconds)
    ends, scores = (0, *ends), (0, *scores)
    way = (seconds - ends[n]) / (ends[n + 1] - ends[n])
    return torch.lerp(*torch.tensor(scores[n : n + 2], dtype=torch.double), way).item()


RIGHT = {  # exercise: answers
    "most_attended": [words_by_numpy],
    "embedding_lookup": [
        lambda ids, table: table[ids],
        lambda ids, table: F.embedding(ids, table.double()),
        lambda ids, table: table.index_select(0, ids.flatten()).view(
            *ids.shape, table.shape[1]
        ),
        rows_by_one_hot,
    ],
    "gru_step": [gru_by_chunks, gru_by_gates],
    "sentence_log_probability": [log_by_cross_entropy, log_by_index],
    "shift": [
        lambda ids: ([1, *ids], [*ids, 2]),
        lambda ids: tuple(
            ([1] + list(ids) + [2])[a : a + len(ids) + 1] for a in (0, 1)
        ),
    ],
    "last_states": [
        lambda outputs, lens: outputs[torch.arange(len(outputs)), lens - 1],
        last_by_gather,
    ],
    "additive_scores": [scores_by_einsum, scores_by_matmul],
    "joined_scores": [
        lambda q, k, M, v: torch.tanh(joined(q, k) @ M.T) @ v,
        lambda q, k, M, v: scores_by_matmul(
            q, k, M[:, : q.shape[-1]], M[:, q.shape[-1] :], v
        ),
    ],
    "attention_weights": [
        lambda scores: F.softmax(scores, dim=-1),
        softmax_by_hand,
        lambda scores: torch.softmax(scores.double(), 2),
    ],
    "context": [
        torch.bmm,
        lambda weights, values: torch.einsum("bqk,bkd->bqd", weights, values),
        lambda weights, values: (weights[..., None] * values[:, None].double()).sum(2),
        lambda weights, values: (values.mT @ weights.mT).mT,
    ],
    "masked_softmax": [masked_by_hand, masked_by_infinity],
    "length_mask": [
        lambda lens, K: torch.arange(K) < lens[:, None],
        lambda lens, K: torch.arange(K).expand(len(lens), K) < lens.reshape(-1, 1),
    ],
    "causal_weights": [causal_by_lengths, causal_by_masks],
    "attend_then_update": [step_in_order],
    "all_weights": [weights_at_once, weights_by_forward],
    "annotations": [
        lambda x, f, b: torch.cat((f(x)[0], b(x.flip(1))[0].flip(1)), dim=2),
        annotations_by_cells,
    ],
    "init_state": [
        lambda o, h, n, project, bridge: [o, project(o), bridge(h), n],
        lambda o, h, n, project, bridge: (o, project(o.double().float()), bridge(h), n),
    ],
    "decoder_step": [full_step, full_step_by_scores],
    "lstm_rows": [
        lambda s, rows: (s[0][-1, rows, None], tuple(t[:, rows] for t in s)),
        lambda s, rows: (
            s[0][-1][rows].unsqueeze(1),
            [t.index_select(1, rows) for t in s],
        ),
    ],
    "from_d2l": [
        lambda o, w: (o.permute(1, 0, 2), torch.cat(w, dim=1)),
        lambda o, w: (o.transpose(0, 1), torch.stack(w)[:, :, 0].transpose(0, 1)),
        lambda o, w: (torch.einsum("sbh->bsh", o), torch.stack(w, 1).squeeze(2)),
    ],
    "mean_loss": [
        lambda s, targets: F.cross_entropy(s[targets != 0], targets[targets != 0]),
        lambda scores, targets: loss_by_mask(scores.double(), targets),
    ],
    "clip": [
        clip_by_root,
        clip_by_torch,
        lambda gradients, m: tuple(clip_by_root([g.double() for g in gradients], m)),
    ],
    "epoch_loss": [
        lambda losses, n: sum(a * b for a, b in zip(losses, n, strict=True)) / sum(n),
        lambda losses, n: float(np.average(losses, weights=n)),
        lambda losses, n: (
            torch.dot(torch.tensor(losses), torch.tensor(n).float()) / sum(n)
        ),
    ],
    "train_step": [step_by_torch, step_that_clears_at_the_end],
    "greedy_decode": [greedy_by_rows, greedy_that_keeps_tensors],
    "links": [
        lambda w, t: {(int(j), int(i)) for i, j in (w >= t).nonzero()},
        lambda w, t: {
            (int(j), int(i)) for i, j in zip(*np.where(w.numpy() >= t), strict=True)
        },
    ],
    "aer": [
        aer_by_counts,
        lambda *sides: np.float64(aer_by_counts(*sides)),
        lambda *sides: np.array(aer_by_counts(*sides)),
        lambda *sides: torch.tensor(aer_by_counts(*sides), dtype=torch.float64),
    ],
    "best_links": [
        lambda w, least: {
            (int(w[i].argmax()), i) for i in range(len(w)) if w[i].max() >= least
        },
        lambda w, least: {
            (j, i)
            for i, (top, j) in enumerate(
                zip(*map(torch.Tensor.tolist, w.max(1)), strict=True)
            )
            if top >= least
        },
    ],
    "push": [
        push_by_broadcast,
        lambda x, p, sigma: (
            x.double()
            - ((torch.arange(x.shape[2]) - p.view(-1, 1, 1)) / sigma) ** 2 / 2
        ),
    ],
    "near": [
        lambda p, reach, S: (torch.arange(S) - p[:, None]).abs() <= reach,
        lambda p, reach, S: (
            (torch.arange(S) >= p[:, None] - reach)
            & (torch.arange(S) <= p[:, None] + reach)
        ),
    ],
    "concat_attention": [Concat, SplitConcat],
    "scaled_dot": [
        lambda q, k: torch.einsum("bqh,bkh->bqk", q, k) / k.shape[2] ** 0.5,
        lambda q, k: torch.bmm(q.double() * q.shape[2] ** -0.5, k.double().mT),
    ],
    "told_apart": [
        lambda a, b: ["second", "not told apart", "first"][
            1 + int(min(a) > max(b)) - int(min(b) > max(a))
        ],
        lambda a, b: (
            "first"
            if sorted([*a, *b])[-len(a) :] == sorted(a) and min(a) != max(b)
            else "second"
            if sorted([*a, *b])[: len(a)] == sorted(a) and max(a) != min(b)
            else "not told apart"
        ),
    ],
    "reset_after": [ResetAfter, ResetAfterByForward],
    "first_state": [
        lambda o, n: o[:, 0].chunk(2, dim=-1)[1],
        lambda o, n: o[:, 0, o.shape[-1] // 2 :],
        lambda o, n: torch.stack([row[0, len(row[0]) // 2 :] for row in o]).double(),
    ],
    "beam_step": [step_by_heap],
    "best_hypothesis": [
        lambda p, n, a: (torch.tensor(p) / torch.tensor(n) ** a).argmax(),
        lambda p, n, a: int(np.argmax(np.array(p) / np.array(n) ** a)),
    ],
    "smoothed_loss": [
        lambda scores, words, share: F.cross_entropy(
            scores, words, label_smoothing=share
        ),
    ],
    "best_cut": [cut_by_memory],
    "perplexity_a_word": [
        lambda nats, pieces, words: math.e ** (sum(nats) / sum(words)),
        lambda nats, pieces, words: ((nats / words) @ (words / words.sum())).exp(),
    ],
    "two_facts": [facts_by_dicts],
    "forward_moves": [moves_by_diff],
    "rouge_1": [rouge_by_counter],
    "split_heads": [
        split_by_view,
        split_by_chunks,
        lambda x, N: torch.stack(x.double().tensor_split(N, dim=2), 1).flatten(0, 1),
    ],
    "causal_attention": [
        causal_by_mask,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
    ],
    "post_norm": [
        post_norm_in_double,
        lambda x, ask, think: functools.reduce(
            lambda x, f: F.layer_norm(x + f(x), x.shape[-1:]), (ask, think), x
        ),
    ],
    "score_after": [
        lambda s, ends, scores: np.interp(s, [0, *ends], [0, *scores]),
        score_by_bisect,
    ],
    "mean_over_words": [
        lambda g, w: (w / w.sum()) @ g,
        lambda g, w: torch.einsum("p,pn->n", w.double(), g.double()) / w.sum(),
    ],
}


@pytest.mark.parametrize("name", sorted({*exercises.__all__} - {"own_translator"}))
def test_right_answers_pass(name):
    exercise = getattr(exercises, name)
    answers = RIGHT[name] if exercise.unwrap else [exercise.spec, *RIGHT[name]]
    for answer in answers:
        assert exercise(answer)
        with torch.inference_mode():
            assert exercise(answer)


def imported_inside(X, lens):
    from utils.attention import masked_softmax

    return masked_softmax(X, lens)


def helped(X, lens):
    return [masked_softmax(scores, lens) for scores in (X,)][0]


@pytest.mark.parametrize(
    "name, answer",
    [
        ("masked_softmax", masked_softmax),
        ("masked_softmax", lambda X, lens: masked_softmax(X, lens)),
        ("masked_softmax", lambda X, lens: attention.masked_softmax(X, lens)),
        ("masked_softmax", imported_inside),
        ("masked_softmax", lambda X, lens: helped(X, lens)),
        ("length_mask", length_mask),
        ("mean_loss", masked_cross_entropy),
        ("train_step", lambda model, batch, opt, c: train_step(model, batch, opt, c)),
        ("links", links_from_weights),
        ("aer", lambda a, s, p: alignment_error_rate(a, s, p).aer),
        ("split_heads", split),
        ("reset_after", ResetAfterUnit),
    ],
)
def test_borrowed_answers_do_not_pass(name, answer):
    result = getattr(exercises, name)(answer)
    assert not result and "did the work. Write it yourself." in result.message
    assert name != "masked_softmax" or "but utils.attention.masked_s" in result.message
