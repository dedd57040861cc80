"""The recurrent models of the catalogue as specifications: plain loops.

One sentence at a time, without padding, a word after the other. A vector is (H,);
states are (L, H), a row for each layer.
"""

from types import SimpleNamespace

import torch

from utils.text import SLOTS
from utils.translator import Readout


def by_loops(model, source, target):
    """Ids (S,), (T,) -> scores (T, V), and weights (T, S) or None."""
    annotations, last = encoder_by_loops(model.encoder, source)
    bridge = getattr(model.decoder, "bridge", None)
    states = torch.tanh(bridge.map(last)) if bridge and bridge.map else last
    known = SimpleNamespace(ids=source, annotations=annotations, last=last)
    words = model.decoder.embedding.weight[target]
    rows = LOOPS[model.config["kind"]](model, words, states, known)
    scores, weights = zip(*rows, strict=True)
    return torch.stack(scores), None if weights[0] is None else torch.stack(weights)


def encoder_by_loops(encoder, ids):
    """Annotations (S, D), each layer's last state (L, D): forward, then backward."""

    def read(place, inputs):
        h, states = inputs[0].new_zeros(rnn.hidden_size), []
        for x in inputs:
            h = gru_by_loops(rnn, place, x, h)
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


def gru_by_loops(rnn, place, x, h):
    """One update of a layer and direction, such as "l0" or "l1_reverse"."""
    W, U, b, c = (
        getattr(rnn, f"{name}_{place}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    (W_r, W_z, W_n), (U_r, U_z, U_n) = (W @ x + b).chunk(3), (U @ h + c).chunk(3)
    r, z = torch.sigmoid(W_r + U_r), torch.sigmoid(W_z + U_z)
    return (1 - z) * torch.tanh(W_n + r * U_n) + z * h


def update(rnn, states, *inputs):
    """One step of a decoder through all layers; it reads the inputs side by side."""
    x, new = torch.cat(inputs), []
    for layer, h in enumerate(states):
        x = gru_by_loops(rnn, f"l{layer}", x, h)
        new.append(x)
    return torch.stack(new)


def look(model, query, annotations, number=0):
    """Attend with a vector -> context (D,), weights (S,).

    A local decoder looks near a place only: the step's number, or the last word; in
    local-p it is predicted (Luong et al., equations 9 and 10).
    """
    decoder, config, S = model.decoder, model.config, len(annotations)
    scaled = "scaled" in config.get("score", config.get("variant", ""))
    if not hasattr(decoder, "reach"):
        weights = attend(decoder.attention, query, annotations, scaled)
        return weights @ annotations, weights
    place = min(number, S - 1)
    if decoder.predicted:
        inner = decoder.v_p.weight[0] @ torch.tanh(decoder.W_p.weight @ query)
        place = S / (1 + torch.exp(-inner))
    seen = [j for j in range(S) if abs(j - place) <= decoder.reach]
    weights = attend(decoder.attention, query, annotations[seen])
    if decoder.predicted:
        sigma, distance = decoder.reach / 2, torch.tensor(seen) - place
        weights = weights * torch.exp(-(distance**2) / (2 * sigma**2))
    row = annotations.new_zeros(S)
    row[seen] = weights
    return row @ annotations, row


def attend(attention, query, keys, scaled=False):
    """The softmax of scores v^T tanh(W q + U h), or of q h or q U h without a v.

    scaled: these are divided by the root of the query's size.
    """
    powers = []
    for key in keys:
        key = attention.W_k.weight @ key if hasattr(attention, "W_k") else key
        if hasattr(attention, "w_v"):
            inner = torch.tanh(attention.W_q.weight @ query + key)
            score = attention.w_v.weight[0] @ inner
        else:
            score = query @ key / (len(query) ** 0.5 if scaled else 1)
        powers.append(torch.exp(score))
    return torch.stack(powers) / sum(powers)


def write(decoder, s, context, x):
    """Scores from s_i. A readout, of tanh units, reads s_i, c_i and the word.

    It writes with the matrix of the words.
    """
    if not isinstance(decoder.dense, Readout):
        return decoder.dense(s)
    hidden, read = decoder.dense.hidden, torch.cat((s, context, x))
    t = torch.tanh(hidden.weight @ read + hidden.bias)
    return decoder.embedding.weight @ t + decoder.dense.out.bias


def fixed(model, words, states, source):
    """Every step reads the encoder's last state, of the top layer, then its word."""
    decoder, context = model.decoder, source.last[-1]
    for x in words:
        states = update(decoder.rnn, states, context, x)
        yield write(decoder, states[-1], context, x), None


def attention(model, words, states, source):
    """Attend with s_{i-1}; the GRU reads context, then word."""
    decoder = model.decoder
    for number, x in enumerate(words):
        context, weights = look(model, states[-1], source.annotations, number)
        states = update(decoder.rnn, states, context, x)
        yield write(decoder, states[-1], context, x), weights


def luong(model, words, states, source):
    """Update, attend with s_i, join both: the attentional vector."""
    decoder = model.decoder
    fed = words.new_zeros(decoder.rnn.input_size - words.shape[1])
    for number, x in enumerate(words):
        states = update(decoder.rnn, states, fed, x)
        context, weights = look(model, states[-1], source.annotations, number)
        vector = torch.tanh(decoder.W_c.weight @ torch.cat((context, states[-1])))
        fed = {"attentional": vector, "context": context, "nothing": fed}[decoder.feed]
        yield decoder.dense(vector), weights


def pointer(model, words, states, source):
    """log(p_gen softmax + (1 - p_gen) weights), a place of the source after another.

    The gate reads the context, the word and s_i, in this order.
    """
    decoder, gate = model.decoder, model.decoder.gate
    for x in words:
        context, weights = look(model, states[-1], source.annotations)
        states = update(decoder.rnn, states, context, x)
        read = torch.cat((context, x, states[-1]))
        p_gen = torch.sigmoid(gate.weight[0] @ read + gate.bias[0])
        written = decoder.dense(states[-1]).softmax(0)
        p = [*(p_gen * written), *written.new_zeros(SLOTS)]
        for word, weight in zip(source.ids, weights, strict=True):
            p[word] = p[word] + (1 - p_gen) * weight
        yield torch.stack(p).clamp(min=1e-30).log(), weights


def released_translator(model, words, states, source):
    """Update with the context of the step before, then attend with the new state."""
    decoder = model.decoder
    context, _ = look(model, states[-1], source.annotations)
    for x in words:
        states = update(decoder.rnn, states, context, x)
        context, weights = look(model, states[-1], source.annotations)
        yield write(decoder, states[-1], context, x), weights


def conditional_translator(model, words, states, source):
    """Update with the word, attend with the new state, update with the context."""
    decoder = model.decoder
    for x in words:
        states = update(decoder.rnn, states, x)
        context, weights = look(model, states[-1], source.annotations)
        states = update(decoder.second, states, context)
        yield write(decoder, states[-1], context, x), weights


def rnnsearch(model, words, _, source):
    """Appendix A.2.2 of the paper, or what a variant makes of it."""
    decoder, variant = model.decoder, model.config["variant"]
    backward = source.annotations[0, source.annotations.shape[1] // 2 :]
    s, c = words.new_zeros(model.config["num_hiddens"]), None
    if variant != "s_0 = 0":
        s = torch.tanh(decoder.start.W_s.weight @ backward + decoder.start.W_s.bias)
    for e in words:
        if variant == "order of the released code" and c is not None:
            s = unit_by_loops(decoder.unit, e, c, s)  # reads what was just written
        elif variant == "conditional order":
            s = decoder.unit.first(e[None], s[None])[0]
        c, weights = look(model, s, source.annotations)
        new_s = s
        if variant == "conditional order":
            s = new_s = decoder.unit.second(c[None], s[None])[0]
        elif variant != "order of the released code":
            new_s = unit_by_loops(decoder.unit, e, c, s)
        yield output_by_loops(variant, decoder.dense, s, new_s, e, c), weights
        s = new_s


def unit_by_loops(unit, e, c, s):
    """From E y_{i-1}, c_i and s_{i-1} to s_i."""
    (W_z, W_r, W), (b_z, b_r, b) = unit.W.weight.chunk(3), unit.W.bias.chunk(3)
    (C_z, C_r, C), (U_z, U_r) = unit.C.weight.chunk(3), unit.U_gates.weight.chunk(2)
    z = torch.sigmoid(W_z @ e + b_z + U_z @ s + C_z @ c)
    r = torch.sigmoid(W_r @ e + b_r + U_r @ s + C_r @ c)
    old = unit.U.weight @ (r * s)
    return (1 - z) * s + z * torch.tanh(W @ e + b + old + C @ c)


def output_by_loops(variant, output, s, new_s, e, c):
    """Scores from s_{i-1}, s_i, E y_{i-1} and c_i."""
    if variant == "no deep output":
        return output.dense.weight @ new_s + output.dense.bias
    read = new_s if variant == "output from s_i" else s
    t = output.U_o.weight @ read + output.U_o.bias + output.V_o.weight @ e
    if variant != "output without context":
        t = t + output.C_o.weight @ c
    t = torch.stack([max(t[2 * k], t[2 * k + 1]) for k in range(len(t) // 2)])
    return output.W_o.weight @ t + output.W_o.bias


LOOPS = {
    "attention": attention,
    "fixed": fixed,
    "luong": luong,
    "local": attention,
    "luong local": luong,
    "pointer": pointer,
    "translator": attention,
    "released translator": released_translator,
    "conditional translator": conditional_translator,
    "fixed translator": fixed,
    "rnnsearch": rnnsearch,
}
