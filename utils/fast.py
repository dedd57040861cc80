"""The same training loss, faster: the backward pass through time written by hand.

PyTorch records every operation of every step and later runs each one's gradient. Here
the loop keeps what its own gradient needs and no more. What doesn't depend on the step
before is done for all steps at once: the words' part of the gates, and the gradients of
the weights. Numbers agree with `seq2seq` to rounding.

Letters in shape comments: B sentences in a batch, S source and T target positions,
H hidden units, D the size of one value, N directions of the encoder (1 or 2). Time is
the first axis here, so that each step is one block of memory.
"""

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from utils.attention import AdditiveAttention, length_mask
from utils.seq2seq import (
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
    check_source,
    check_target,
)
from utils.text import PAD_ID
from utils.translator import DropoutEmbedding, FixedTranslatorDecoder, TranslatorDecoder


def gru_step(gates, from_state, s, new_s):
    """One update of a GRU (Cho et al., 2014, in PyTorch's form), written into new_s.

    gates (..., 3H): the input's part of r, z, n; holds r, z, n themselves afterwards.
    from_state (..., 3H): the state's part. s (..., H): the state before.
    """
    H = s.shape[-1]
    rz, n = gates[..., : 2 * H], gates[..., 2 * H :]
    rz.add_(from_state[..., : 2 * H]).sigmoid_()
    n.addcmul_(rz[..., :H], from_state[..., 2 * H :]).tanh_()
    torch.lerp(n, s, rz[..., H:], out=new_s)  # (1 - z) n + z s


def gru_slopes(gates, from_state, states):
    """What `gru_step_backward` multiplies by, for all steps at once: 5 of (T, ..., H).

    gates and from_state as `gru_step` left them, stacked; states: those before a step.
    """
    r, z, n = gates.chunk(3, dim=-1)
    to_n = (1 - z) * (1 - n * n)
    to_z = (states - n) * z * (1 - z)
    to_r = to_n * from_state[..., -n.shape[-1] :] * r * (1 - r)
    return to_r, to_z, to_n, to_n * r, z


def gru_step_backward(d_s, slopes, d_gates, d_from_state):
    """The gradient d_s (..., H) at the new state -> at both parts of r, z, n.

    Fills d_gates and d_from_state (..., 3H); returns what goes to the old state
    without passing a gate. slopes: those of this step.
    """
    to_r, to_z, to_n, to_n_from_state, z = slopes
    H = d_s.shape[-1]
    torch.mul(d_s, to_r, out=d_gates[..., :H])
    torch.mul(d_s, to_z, out=d_gates[..., H : 2 * H])
    torch.mul(d_s, to_n, out=d_gates[..., 2 * H :])
    d_from_state[..., : 2 * H] = d_gates[..., : 2 * H]
    torch.mul(d_s, to_n_from_state, out=d_from_state[..., 2 * H :])
    return d_s * z


class GRUSteps(torch.autograd.Function):
    """A GRU over all steps: states (T, N, B, H).

    gates (T, N, B, 3H): the inputs' part; s (N, B, H); W (N, 3H, H) and b (N, 3H).
    """

    @staticmethod
    def forward(ctx, gates, s, W, b):
        gates, from_state = gates.clone(), torch.empty_like(gates)
        states = torch.cat((s.unsqueeze(0), s.new_empty(len(gates), *s.shape)))
        for t in range(len(gates)):
            torch.baddbmm(b[:, None], states[t], W.mT, out=from_state[t])
            gru_step(gates[t], from_state[t], states[t], states[t + 1])
        ctx.save_for_backward(gates, from_state, states, W)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx, d_states):
        gates, from_state, states, W = ctx.saved_tensors
        slopes = gru_slopes(gates, from_state, states[:-1])
        d_gates, d_from_state = torch.empty_like(gates), torch.empty_like(gates)
        d_s = torch.zeros_like(states[0])
        for t in reversed(range(len(gates))):
            kept = gru_step_backward(d_s + d_states[t], [x[t] for x in slopes],
                                     d_gates[t], d_from_state[t])
            d_s = torch.baddbmm(kept, d_from_state[t], W)
        d = d_from_state.transpose(0, 1).flatten(1, 2)  # (N, TB, 3H)
        before = states[:-1].transpose(0, 1).flatten(1, 2)  # (N, TB, H)
        return d_gates, d_s, d.mT @ before, d.sum(1)


class AttentionSteps(torch.autograd.Function):
    """The attention decoder over all steps: states (T, B, H), contexts (T, B, D) and
    weights (T, B, S).

    gates (T, B, 3H): the words' part; s (B, H); keys (B, S, H), projected; values
    (B, S, D); mask (B, S): 0 or -inf; W_c (3H, D): the context's part of the gates;
    W_s (H + 3H, H) and b_s: W_a and the state's part, stacked; v (H,).
    """

    @staticmethod
    def forward(ctx, gates, s, keys, values, mask, W_c, W_s, b_s, v):
        done = attention_steps(gates, s, keys, values, mask, W_c, W_s, b_s, v)
        ctx.save_for_backward(*done, keys, values, W_c, W_s, v)
        *_, states, contexts, weights = done
        ctx.mark_non_differentiable(weights)
        return states[1:], contexts, weights

    @staticmethod
    @once_differentiable
    def backward(ctx, d_states, d_contexts, _):
        d = attention_steps_backward(d_states, d_contexts, *ctx.saved_tensors)
        d_gates, d_s, d_keys, d_values, d_W_c, d_W_s, d_b_s, d_v = d
        return d_gates, d_s, d_keys, d_values, None, d_W_c, d_W_s, d_b_s, d_v


def attention_steps(gates, s, keys, values, mask, W_c, W_s, b_s, v):
    """All steps forward: attend with s_{i-1}, then update to s_i."""
    (T, B, _), (_, S, H) = gates.shape, keys.shape
    gates, from_state = gates.clone(), gates.new_empty(T, B, 4 * H)
    states = torch.cat((s.unsqueeze(0), s.new_empty(T, B, H)))
    weights, contexts = gates.new_empty(T, B, S), gates.new_empty(T, B, values.shape[2])
    features = torch.empty_like(keys)  # one block, used again at each step
    for t in range(T):
        torch.addmm(b_s, states[t], W_s.T, out=from_state[t])
        torch.add(keys, from_state[t, :, None, :H], out=features).tanh_()
        scores = torch.addmv(mask.flatten(), features.view(-1, H), v)  # (BS,)
        torch.softmax(scores.view(B, S), -1, out=weights[t])
        torch.bmm(weights[t, :, None], values, out=contexts[t, :, None])
        gates[t].addmm_(contexts[t], W_c.T)
        gru_step(gates[t], from_state[t, :, H:], states[t], states[t + 1])
    return gates, from_state, states, contexts, weights


def attention_steps_backward(
    d_states, d_contexts,
    gates, from_state, states, contexts, weights, keys, values, W_c, W_s, v,
):
    """All steps backward. tanh is computed again, not stored as (T, B, S, H)."""
    H = keys.shape[2]
    slopes = gru_slopes(gates, from_state[..., H:], states[:-1])
    d_gates, d_from_state = torch.empty_like(gates), torch.empty_like(from_state)
    d_contexts, d_scores = d_contexts.clone(), torch.empty_like(weights)
    features, squares = torch.empty_like(keys), torch.zeros_like(keys)
    d_s, d_v = torch.zeros_like(states[0]), torch.zeros_like(v)
    for t in reversed(range(len(gates))):
        kept = gru_step_backward(d_s + d_states[t], [x[t] for x in slopes],
                                 d_gates[t], d_from_state[t, :, H:])
        d_contexts[t].addmm_(d_gates[t], W_c)
        d = weights[t] * (values @ d_contexts[t, :, :, None])[..., 0]  # (B, S)
        d = torch.sub(d, weights[t] * d.sum(1, keepdim=True), out=d_scores[t])
        torch.add(keys, from_state[t, :, None, :H], out=features).tanh_()
        d_v.addmv_(features.view(-1, H).T, d.flatten())
        features.square_()  # tanh' = 1 - tanh^2; the 1 is added after the loop
        squares.addcmul_(d[:, :, None], features)
        d_query = d.sum(1, keepdim=True) - (d[:, None] @ features)[:, 0]
        torch.mul(v, d_query, out=d_from_state[t, :, :H])
        d_s = torch.addmm(kept, d_from_state[t], W_s)
    d_keys = v * (d_scores.sum(0)[..., None] - squares)
    d_values = weights.permute(1, 2, 0) @ d_contexts.transpose(0, 1)
    d_W_c = d_gates.flatten(0, 1).T @ contexts.flatten(0, 1)
    d_W_s = d_from_state.flatten(0, 1).T @ states[:-1].flatten(0, 1)
    return d_gates, d_s, d_keys, d_values, d_W_c, d_W_s, d_from_state.sum((0, 1)), d_v


ATTENDING = (Seq2SeqAttentionDecoder, TranslatorDecoder)
FIXED = (Seq2SeqDecoder, FixedTranslatorDecoder)
WITH_READOUT = (TranslatorDecoder, FixedTranslatorDecoder)


def knows(model):
    """Whether `loss` computes what this model computes, all of it."""
    if type(model) is not EncoderDecoder or type(model.encoder) is not Seq2SeqEncoder:
        return False
    encoder, decoder = model.encoder, model.decoder
    attends = type(decoder) in ATTENDING and (
        type(decoder.attention) is AdditiveAttention
        and (decoder.attention.dropout.p == 0 or not decoder.training)
    )
    embeddings = {type(encoder.embedding), type(decoder.embedding)}
    return (
        (attends or type(decoder) in FIXED)
        and embeddings <= {nn.Embedding, DropoutEmbedding}
        and encoder.rnn.num_layers == decoder.rnn.num_layers == 1
    )


def loss(model, batch, label_smoothing=0.0):
    """The mean cross-entropy of a Batch's real target words, in nats a token.

    Only real words reach the output layer. Raises ValueError if there is none.
    label_smoothing: see Szegedy et al. (2016), section 7.
    """
    targets = batch.target_out.T  # (T, B)
    real = targets != PAD_ID
    if not real.any():
        raise ValueError("every target is padding: there is no word to learn from")
    outputs = decoder_outputs(model, batch.source, batch.source_lens, batch.target_in)
    outputs, targets, dense = outputs[real], targets[real], model.decoder.dense
    if isinstance(model.decoder, WITH_READOUT):
        outputs, dense = dense.features(outputs), dense.out
    # In pieces of 512 words a large vocabulary's scores stay in the processor's cache.
    pieces = nn.LinearCrossEntropyOptions(batch_chunk_size=512, chunking_method=None)
    mean = F.linear_cross_entropy(
        outputs,
        dense.weight,
        targets,
        linear_bias=dense.bias,
        options=pieces if dense.out_features >= 2000 else None,
    )
    if label_smoothing == 0:
        return mean
    # A share of each target goes to all words alike, so the target's score counts that
    # much less and the mean score of all words that much more.
    score = (outputs * dense.weight[targets]).sum(-1) + dense.bias[targets]
    mean_score = F.linear(outputs, dense.weight.mean(0)) + dense.bias.mean()
    return mean + label_smoothing * (score - mean_score).mean()


def decoder_outputs(model, source, source_lens, target_in):
    """What `dense` reads, (T, B, ...), by teacher forcing, for a model that `knows`.

    Ids (B, S), lengths (B,), ids (B, T). Raises ValueError on a bad id or length.
    """
    decoder = model.decoder
    check_target(target_in, decoder.embedding.num_embeddings)
    outputs, last = encoder_states(model.encoder, source, source_lens)
    words = decoder.embedding(target_in.T)  # (T, B, E)
    if isinstance(decoder, FIXED):
        state = decoder.init_state((outputs, last[None]))
        contexts = state.context.expand(len(words), -1, -1)
        states = fixed_states(decoder, words, state)
    else:
        state = decoder.init_state((outputs, last[None]), source_lens)
        states, contexts = attention_states(decoder, words, state)
    if isinstance(decoder, WITH_READOUT):
        return torch.cat((states, contexts, words), dim=-1)
    return states


def fixed_states(decoder, words, state):
    """The states (T, B, H) of a decoder that sees one context at every step."""
    rnn, D = decoder.rnn, state.context.shape[1]
    W = rnn.weight_ih_l0  # (3H, D + E)
    gates = F.linear(words, W[:, D:], rnn.bias_ih_l0)
    gates = gates + F.linear(state.context, W[:, :D])
    s, W_h, b_h = state.hidden_state, rnn.weight_hh_l0, rnn.bias_hh_l0
    return GRUSteps.apply(gates[:, None], s, W_h[None], b_h[None])[:, 0]


def attention_states(decoder, words, state):
    """The states (T, B, H) and contexts (T, B, D) of a decoder that attends."""
    rnn, attention, values = decoder.rnn, decoder.attention, state.enc_outputs
    (_, S, D), s = values.shape, state.hidden_state[0]
    W, W_h, b_h = rnn.weight_ih_l0, rnn.weight_hh_l0, rnn.bias_hh_l0
    mask = torch.zeros(values.shape[:2], dtype=s.dtype, device=s.device)
    mask.masked_fill_(~length_mask(state.enc_valid_lens, S), -torch.inf)
    states, contexts, weights = AttentionSteps.apply(
        F.linear(words, W[:, D:], rnn.bias_ih_l0),
        s,
        state.projected_keys,
        values,
        mask,
        W[:, :D],
        torch.cat((attention.W_q.weight, W_h)),
        F.pad(b_h, (s.shape[1], 0)),  # W_a has no bias
        attention.w_v.weight[0],
    )
    decoder._attention_weights = weights.transpose(0, 1)
    return states, contexts


def encoder_states(encoder, X, valid_lens):
    """What the encoder returns, but for its layers: (B, S, D) and the last (B, D).

    A padded word opens the update gate for good (z = 1), which hands the state on
    unchanged: the last state is that of the last word, and the backward direction
    starts at it.
    """
    check_source(X, valid_lens, encoder.embedding.num_embeddings)
    rnn, H = encoder.rnn, encoder.rnn.hidden_size
    names = ["", "_reverse"] if rnn.bidirectional else [""]
    padding = ~length_mask(valid_lens, X.shape[1]).T[:, :, None]  # (S, B, 1)
    of_z = torch.arange(3 * H, device=X.device) // H == 1
    words = encoder.embedding(X.T)  # (S, B, E)
    gates = []
    for name in names:
        W, b = getattr(rnn, f"weight_ih_l0{name}"), getattr(rnn, f"bias_ih_l0{name}")
        g = F.linear(words, W, b).masked_fill(padding & of_z, torch.inf)
        gates.append(g.flip(0) if name else g)
    gates = torch.stack(gates, dim=1)  # (S, N, B, 3H)
    W, b = (
        torch.stack([getattr(rnn, f"{kind}_hh_l0{name}") for name in names])
        for kind in ("weight", "bias")
    )
    states = GRUSteps.apply(gates, gates.new_zeros(*gates.shape[1:3], H), W, b)
    ways = [states[:, 0], *(states[:, n].flip(0) for n in range(1, len(names)))]
    outputs = torch.cat(ways, dim=-1).masked_fill(padding, 0.0)
    last = states[-1].transpose(0, 1).flatten(1)  # (B, D)
    return outputs.transpose(0, 1).contiguous(), last
