"""Small models of the whole catalogue, a batch, and recurrent parts in plain loops.

A loop goes through one sentence, a word at a time: vectors (H,), lists of them.
"""

import pytest
import torch
from torch import nn

from utils.attention import length_mask
from utils.models import build_model
from utils.rnnsearch import VARIANTS

SOURCE_WORDS, TARGET_WORDS = 20, 13
SIZES = {"src_vocab_size": SOURCE_WORDS, "tgt_vocab_size": TARGET_WORDS}
GRU = {"embed_size": 3, "num_hiddens": 6}
DEEP = {**GRU, "num_layers": 2, "bidirectional": True, "enc_hiddens": 8}
TRANSLATOR = {**GRU, "enc_hiddens": 8, "dropout": 0.0}
# a name to read in a test's output: the kind, and its other values
CATALOGUE = {
    "attention": ("attention", DEEP),
    "attention, the defaults": ("attention", GRU),
    "dot": ("attention", {**GRU, "score": "dot"}),
    "scaled dot": ("attention", {**GRU, "score": "scaled dot"}),
    "general": ("attention", {**DEEP, "score": "general"}),
    "fixed": ("fixed", DEEP),
    "luong": ("luong", DEEP),
    "luong, context fed": ("luong", {**DEEP, "feed": "context"}),
    "luong, nothing fed": ("luong", {**DEEP, "feed": "nothing"}),
    "local-m": ("local", {**DEEP, "reach": 1}),
    "local-p": ("local", {**DEEP, "reach": 2, "place": "predicted"}),
    "luong, local-m": ("luong local", {**DEEP, "reach": 1, "score": "additive"}),
    "luong, local-p": ("luong local", {**DEEP, "reach": 2, "place": "predicted"}),
    "pointer": ("pointer", DEEP),
    "translator": ("translator", TRANSLATOR),
    "released translator": ("released translator", TRANSLATOR),
    "conditional translator": ("conditional translator", TRANSLATOR),
    "fixed translator": ("fixed translator", TRANSLATOR),
    "transformer": ("transformer", {"num_hiddens": 8, "num_heads": 2, "num_ffn": 5}),
    **{variant: ("rnnsearch", {**GRU, "variant": variant}) for variant in VARIANTS},
}
QUICK = "attention", "fixed", "luong", "local-m", "RNNsearch", "transformer"
every_model = pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CATALOGUE],
)


def a_model(name, **options):
    """A model of the CATALOGUE in double precision, its numbers large: none hides."""
    kind, values = CATALOGUE[name]
    return loud(build_model(kind, **{**SIZES, **values, **options}))


def random_model(name, vocab_size, seed=0):
    """A model of the CATALOGUE for another vocabulary; its weights are large."""
    torch.manual_seed(seed)
    kind, values = CATALOGUE[name]
    model = build_model(kind, vocab_size, vocab_size, **values)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.8)
    return model.eval()


def loud(model):
    """All parameters drawn anew: equal names and shapes get equal numbers."""
    for name, parameter in model.named_parameters():
        generator = torch.Generator().manual_seed(sum(map(ord, name)))
        nn.init.normal_(parameter, std=0.5, generator=generator)
    return model.double().eval()


def a_batch(seed=1):
    """Source (3, 5), target (3, 4), lengths; no source id stands twice."""
    generator = torch.Generator().manual_seed(seed)
    source = 4 + torch.randperm(15, generator=generator).view(3, 5)
    target = torch.randint(4, TARGET_WORDS, (3, 4), generator=generator)
    return source, target, torch.tensor([5, 3, 1])


def assert_as_specified(model, by_loops):
    """Scores, weights and every parameter's gradient are those of the loops.

    by_loops(model, source ids, target ids) -> scores (T, V), weights (T, S) or None,
    for one sentence without padding.
    """
    source, target, lens = a_batch()
    scores, state = model(source, target, lens)
    rows = [by_loops(model, source[b, :n], target[b]) for b, n in enumerate(lens)]
    expected = torch.stack([row for row, _ in rows])
    torch.testing.assert_close(scores, expected)
    real = length_mask(lens, source.shape[1])
    for b, (_, weights) in enumerate(rows):
        if weights is not None:
            torch.testing.assert_close(state.attention_weights[b][:, real[b]], weights)
            assert not state.attention_weights[b][:, ~real[b]].any()
    parameters, slope = list(model.parameters()), torch.randn_like(expected)
    torch.testing.assert_close(
        torch.autograd.grad((scores * slope).sum(), parameters),
        torch.autograd.grad((expected * slope).sum(), parameters, allow_unused=True),
    )


def gru_cell_by_loops(rnn, place, x, h):
    """One update of a layer and direction, such as "l0" or "l1_reverse"."""
    W, U, b, c = (
        getattr(rnn, f"{name}_{place}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    (W_r, W_z, W_n), (U_r, U_z, U_n) = (W @ x + b).chunk(3), (U @ h + c).chunk(3)
    r, z = torch.sigmoid(W_r + U_r), torch.sigmoid(W_z + U_z)
    return (1 - z) * torch.tanh(W_n + r * U_n) + z * h


def gru_by_loops(rnn, x, hidden):
    """One step through all layers: x (n,), hidden (L, H) -> hidden (L, H)."""
    new = []
    for layer, h in enumerate(hidden):
        x = gru_cell_by_loops(rnn, f"l{layer}", x, h)
        new.append(x)
    return torch.stack(new)


def encoder_by_loops(encoder, ids):
    """Annotations (S, D), each layer's last state (L, D): forward, then backward."""

    def read(place, inputs):
        h, states = inputs[0].new_zeros(rnn.hidden_size), []
        for x in inputs:
            h = gru_cell_by_loops(rnn, place, x, h)
            states.append(h)
        return states

    rnn, last = encoder.rnn, []
    states = [encoder.embedding.weight[i] for i in ids]
    for layer in range(rnn.num_layers):
        inputs, states = states, read(f"l{layer}", states)
        last.append(states[-1])
        if rnn.bidirectional:
            backward = read(f"l{layer}_reverse", inputs[::-1])
            last[-1] = torch.cat((states[-1], backward[-1]))
            both = zip(states, backward[::-1], strict=True)
            states = [torch.cat(pair) for pair in both]
    return torch.stack(states), torch.stack(last)


def attend_by_loops(attention, query, annotations):
    """One query, all of a sentence -> context (D,), weights (S,).

    Scores v^T tanh(W q + U h), or Luong et al.'s "general" where there's no v.
    """
    powers = []
    for h in annotations:
        score = query @ (attention.W_k.weight @ h)
        if hasattr(attention, "w_v"):
            inner = attention.W_q.weight @ query + attention.W_k.weight @ h
            score = attention.w_v.weight[0] @ torch.tanh(inner)
        powers.append(torch.exp(score))
    weights = torch.stack(powers) / sum(powers)
    return weights @ annotations, weights


def by_loops(step, write=lambda decoder, read, *_: decoder.dense(read)):
    """A specification of a whole model from that of a step.

    step(decoder, x, states (L, H), source, memory) -> what the output layer reads,
    weights or None, the new states, and what else the next step remembers; source is
    what `encoder_by_loops` gives, x the word's vector. write(decoder, what the output
    layer reads, weights, source ids) -> scores.
    """

    def sentence(model, source, target):
        decoder = model.decoder
        known = _, states = encoder_by_loops(model.encoder, source)
        if decoder.bridge.map is not None:
            states = torch.tanh(decoder.bridge.map(states))
        memory, rows, all_weights = None, [], []
        for word in target:
            x = decoder.embedding.weight[word]
            read, weights, states, memory = step(decoder, x, states, known, memory)
            rows.append(write(decoder, read, weights, source))
            all_weights.append(weights)
        return torch.stack(rows), None if weights is None else torch.stack(all_weights)

    return sentence


def bahdanau(decoder, x, query, states, source):
    """Attend with the query, then update -> context, weights, states."""
    annotations, _ = source
    context, weights = attend_by_loops(decoder.attention, query, annotations)
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    return context, weights, states
