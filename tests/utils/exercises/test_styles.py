"""Right answers in unusual styles pass; borrowed ones don't."""

import functools
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
from utils.training import masked_cross_entropy
from utils.transformer import split


def words_by_numpy(weights, source_tokens):
    return [source_tokens[j] for j in np.asarray(weights).argmax(axis=1)]


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


RIGHT = {  # exercise: answers
    "most_attended": [words_by_numpy],
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
    "masked_softmax": [masked_by_hand, masked_by_infinity],
    "length_mask": [
        lambda lens, K: torch.arange(K) < lens[:, None],
        lambda lens, K: torch.arange(K).expand(len(lens), K) < lens.reshape(-1, 1),
    ],
    "attend_then_update": [step_in_order],
    "bottom_query": [
        lambda h: h[0].unsqueeze(1),
        lambda h: h[0][:, None].double(),
        lambda h: h[:1].transpose(0, 1),
    ],
    "all_weights": [weights_at_once, weights_by_forward],
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
    "reset_after": [ResetAfter, ResetAfterByForward],
    "first_state": [
        lambda o, n: o[:, 0].chunk(2, dim=-1)[1],
        lambda o, n: o[:, 0, o.shape[-1] // 2 :],
        lambda o, n: torch.stack([row[0, len(row[0]) // 2 :] for row in o]).double(),
    ],
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
