"""Solutions against what knows nothing of them; and each mistake against its sentence.

The references are of PyTorch, `utils` or plain loops. Those that are one formula, or
only hand on what they are given, have their mistakes as a test; some have a second
solution in the notebooks of solutions, which is as right.
"""

import functools
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from utils import alignment, attention, data, exercises, metrics, text
from utils.exercises import running
from utils.exercises.engine import same
from utils.exercises.result import Result
from utils.seq2seq import (
    AttentionState,
    FixedState,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
)
from utils.transformer import split

NAMES = sorted({*exercises.__all__} - {"own_translator"})


def steps_of_decoder(context, embedded, rnn, state):
    decoder = Seq2SeqDecoder(2, embedded.shape[2], rnn.hidden_size)
    decoder.rnn = rnn
    states, last = decoder.unroll(embedded, FixedState(context, state))
    return states, last.hidden_state


def annotations_of_torch(x, forwards, backwards):
    E, H = forwards.input_size, forwards.hidden_size
    rnn = nn.GRU(E, H, batch_first=True, bidirectional=True)
    given = [*forwards.parameters(), *backwards.parameters()]
    for own, parameter in zip(rnn.parameters(), given, strict=True):
        own.data = parameter.data
    return rnn(x)[0]


def step_of_decoder(x, state, attention, rnn, dense):
    decoder = Seq2SeqAttentionDecoder(2, 2, 2, attention=attention)
    decoder.rnn = rnn
    output, weights, state = decoder.step(x, AttentionState(*state))
    return dense(output), weights, state.hidden_state


def greedy_by_rows(step, state, batch_size, max_steps):
    words, rows = torch.ones(batch_size, 1, dtype=torch.long), []
    for _ in range(max_steps):
        logits, state = step(words, state)
        words = logits[:, -1].argmax(-1, keepdim=True)
        rows.append(words)
    rows = torch.cat(rows, 1)
    goes_on = (rows == 2).cumsum(1) == 0
    return [row[on].tolist() for row, on in zip(rows, goes_on, strict=True)]


def cut_by_memory(word, pieces):
    @functools.cache
    def best(start):
        ends = [e for e in range(start + 1, len(word) + 1) if word[start:e] in pieces]
        ways = [
            (best(e)[0] + math.log(pieces[word[start:e]]), [word[start:e], *best(e)[1]])
            for e in ends
        ]
        return max(ways, default=(-math.inf if start < len(word) else 0.0, []))

    return best(0)[1]


def mixed_by_one_hot(p_vocab, p_gen, weights, source, slots):
    V = p_vocab.shape[1]
    places = F.one_hot(source, V + slots).float()  # (B, S, V + slots)
    copied = torch.einsum("bs,bsv->bv", weights, places)
    return p_gen * F.pad(p_vocab, (0, slots)) + (1 - p_gen) * copied


def numbered_by_vocab(source, target, vocab):
    open_vocab = text.Vocab([], "en", [*vocab], extends=True)
    read = open_vocab.encode(source)
    return read.ids, open_vocab.extended(read).encode(target).ids


def post_norm_by_layers(x, ask, think):
    norm = nn.LayerNorm(x.shape[-1], elementwise_affine=False)
    x = norm(x + ask(x))
    return norm(x + think(x))


def beam_by_all(log_probs, ended, steps, size):
    grown = {(k, -1): p for k, p in enumerate(log_probs) if ended[k]}
    for k in [k for k, end in enumerate(ended) if not end]:
        grown |= {(k, w): log_probs[k] + s for w, s in enumerate(steps[k])}
    return sorted(grown, key=grown.get, reverse=True)[:size]


def best_of_all(following, bound):
    every = {("<bos>",): 1.0}
    for _ in range(7):
        every |= {
            (*words, word): p * q
            for words, p in every.items()
            for word, q in following.get(words[-1], {}).items()
        }
    ended = {w: p for w, p in every.items() if w[-1] == "<eos>" and p > bound}
    best = max(ended, key=ended.get, default=())
    return ended.get(best, bound), list(best)


def dot_by_autograd(d_context, weights, *given):
    query, keys, values = given = [x.clone().requires_grad_() for x in given]
    context = F.scaled_dot_product_attention(query[:, None], keys, values, scale=1)
    return torch.autograd.grad(context[:, 0], given, d_context)


REFERENCES = {
    "aer": lambda a, s, p: metrics.alignment_error_rate(a, s, p).aer,
    "annotations": annotations_of_torch,
    "attention_weights": lambda scores: scores.softmax(-1),
    "beam_step": beam_by_all,
    "best_cut": cut_by_memory,
    "best_links": lambda w, least: {
        link for link in metrics.links_from_weights(w) if w.T[link] >= least
    },
    "causal_attention": lambda *x: F.scaled_dot_product_attention(*x, is_causal=True),
    "decoder_step": step_of_decoder,
    "dot_backward": dot_by_autograd,
    "embedding_lookup": F.embedding,
    "exact_search": best_of_all,
    "extended_ids": numbered_by_vocab,
    "first_state": lambda o, n: o[:, 0, o.shape[-1] // 2 :],
    "greedy_decode": greedy_by_rows,
    "gru_step": lambda x, h, W, U, b: torch.gru_cell(x, h, W, U, 0 * b, b),
    "last_states": lambda o, n: o[range(len(n)), n - 1],
    "length_mask": lambda n, K: torch.tensor([[k < m for k in range(K)] for m in n]),
    "longest_gap": alignment.longest_gap,
    "masked_softmax": attention.masked_softmax,
    "most_attended": lambda w, words: [
        words[max(range(len(words)), key=row.__getitem__)] for row in w.tolist()
    ],
    "mixture": mixed_by_one_hot,
    "pad": data.pad,
    "post_norm": post_norm_by_layers,
    "replace_unknown": lambda words, source, weights: [
        source[int(np.argmax(row))] if word == text.UNK else word
        for word, row in zip(words, weights.numpy(), strict=False)
    ],
    "sentence_log_probability": lambda logits, targets: (
        -F.cross_entropy(logits.mT, targets, ignore_index=0, reduction="none").sum(1)
    ),
    "smoothed_loss": lambda scores, words, share: F.cross_entropy(
        scores, words, label_smoothing=share
    ),
    "split_heads": split,
    "unroll": steps_of_decoder,
}


@pytest.mark.parametrize("name", REFERENCES)
def test_a_solution_does_what_its_reference_does(name):
    exercise = getattr(exercises, name)
    for case in exercise.cases:
        found, right = (
            running.run(f, case)
            for f in (exercise.made(exercise.solution), REFERENCES[name])
        )
        assert not right.error and same(found, right)


def test_the_course_s_own_classes_are_right_and_not_the_learner_s():
    def decoder(V, E, H, L, D):
        return Seq2SeqAttentionDecoder(V, E, H, L, enc_hiddens=D)

    answers = exercises.attention_decoder(decoder), exercises.encoder(Seq2SeqEncoder)
    assert all(one.cause.startswith("The result is right, but {}") for one in answers)


@pytest.mark.parametrize("name", NAMES)
def test_each_mistake_is_answered_by_its_own_sentence(name, capsys):
    """Each is an edit of the solution."""
    exercise = getattr(exercises, name)
    assert exercise(exercise.made(exercise.solution))
    edits = exercise.edits()
    assert len({sentence for sentence, _ in edits}) >= 4
    capsys.readouterr()
    for sentence, edit in edits:
        result = exercise(exercise.made(exercise.edited(edit)))
        assert result.cause == sentence, edit
        assert capsys.readouterr().out == f"{result.message}\n"
    for found in exercise.known.values():  # an edit that can't be run as it is meant
        assert not isinstance(found.error, NameError | RecursionError)
        assert not isinstance(found.value, Result)
