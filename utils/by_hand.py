"""The same training loss, faster: the backward pass through time written by hand.

An option, named where it is used: `Trainer(…, loss_function=by_hand.loss)`. It computes
the models that notebooks 04, 05 and 11 train, as they are in `utils`, and refuses any
other; on the first batch of a model it compares itself with the model's own way.

PyTorch records every operation of every step and later runs each one's gradient. Here
the loop keeps what its own gradient needs and no more. What doesn't depend on the step
before is done for all steps at once: the words' part of the gates, and the gradients of
the weights. Numbers agree with `seq2seq` to rounding.

Letters in shape comments: B sentences in a batch, S source and T target positions,
H hidden units, D the size of one value, N directions of the encoder (1 or 2), P real
target words of a batch. Time is the first axis here, so that each step is one block of
memory.
"""

import weakref

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from utils.attention import AdditiveAttention, length_mask
from utils.guards import require_share
from utils.seq2seq import (
    Bridge,
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
    check_ids,
    check_source,
)
from utils.text import PAD_ID
from utils.training import batch_loss
from utils.translator import (
    DropoutEmbedding,
    FixedTranslatorDecoder,
    Readout,
    ReleasedTranslatorDecoder,
    TranslatorDecoder,
)

ATTENDING = (
    Seq2SeqAttentionDecoder,
    TranslatorDecoder,
    ReleasedTranslatorDecoder,
)
FIXED = (Seq2SeqDecoder, FixedTranslatorDecoder)
# The parts that are computed here: exactly these classes, and nn's own.
PARTS = {
    *ATTENDING,
    *FIXED,
    EncoderDecoder,
    Seq2SeqEncoder,
    AdditiveAttention,
    Bridge,
    DropoutEmbedding,
    Readout,
    nn.Embedding,
    nn.GRU,
    nn.Linear,
    nn.Dropout,
}
_compared = weakref.WeakSet()  # the models whose first batch agreed


def tanh_(x):
    """tanh in place, as 2 sigmoid(2x) - 1: on many processors PyTorch's is slower."""
    return x.mul_(2).sigmoid_().mul_(2).sub_(1)


def gru_step(gates, from_state, s, new_s):
    """One update of a GRU (Cho et al., 2014, in PyTorch's form), written into new_s.

    gates (..., 3H): the input's part of r, z, n; holds r, z, n themselves afterwards.
    from_state (..., 3H): the state's part. s (..., H): the state before.
    """
    H = s.shape[-1]
    rz, n = gates[..., : 2 * H], gates[..., 2 * H :]
    rz.add_(from_state[..., : 2 * H]).sigmoid_()
    tanh_(n.addcmul_(rz[..., :H], from_state[..., 2 * H :]))
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
            kept = gru_step_backward(
                d_s + d_states[t], [x[t] for x in slopes], d_gates[t], d_from_state[t]
            )
            d_s = torch.baddbmm(kept, d_from_state[t], W)
        d = d_from_state.transpose(0, 1).flatten(1, 2)  # (N, TB, 3H)
        before = states[:-1].transpose(0, 1).flatten(1, 2)  # (N, TB, H)
        return d_gates, d_s, d.mT @ before, d.sum(1)


class AttentionSteps(torch.autograd.Function):
    """The attention decoder over all steps: states (P, H) and contexts (P, D), a row
    for each of the P words to write: step 0 of all sentences, step 1 ...

    gates (P, 3H): the words' part; s (B, H); keys (B, S, H), projected; values
    (B, S, D); mask (B, S): 0 or -inf; W_c (3H, D): the context's part of the gates;
    W_s (H + 3H, H) and b_s: W_a and the state's part, stacked; v (H,). counts: step t
    is one of the first counts[t] sentences, so the longest stands first.
    """

    @staticmethod
    def forward(ctx, gates, s, keys, values, mask, W_c, W_s, b_s, v, counts):
        done = attention_steps(gates, s, keys, values, mask, W_c, W_s, b_s, v, counts)
        ctx.save_for_backward(*done, keys, values, W_c, W_s, v)
        ctx.counts = counts
        *_, states, contexts, _ = done
        return states, contexts

    @staticmethod
    @once_differentiable
    def backward(ctx, d_states, d_contexts):
        saved, counts = ctx.saved_tensors, ctx.counts
        d = attention_steps_backward(d_states, d_contexts, saved, counts)
        d_gates, d_s, d_keys, d_values, d_W_c, d_W_s, d_b_s, d_v = d
        return d_gates, d_s, d_keys, d_values, None, d_W_c, d_W_s, d_b_s, d_v, None


def attention_steps(gates, s, keys, values, mask, W_c, W_s, b_s, v, counts):
    """All steps forward: attend with s_{i-1}, then update to s_i."""
    (P, _), (_, S, H) = gates.shape, keys.shape
    gates, from_state = gates.clone(), gates.new_empty(P, 4 * H)
    before, states = gates.new_empty(2, P, H)
    weights, contexts = gates.new_empty(P, S), gates.new_empty(P, values.shape[2])
    block = torch.empty_like(keys)  # used again at each step
    rows = gates, from_state, before, states, weights, contexts
    steps = [x.split(counts) for x in rows]
    for gate, by_state, old, new, weight, context in zip(*steps, strict=True):
        n = len(gate)  # sentences that write a word at this step
        old.copy_(s[:n])
        torch.addmm(b_s, old, W_s.T, out=by_state)
        features = tanh_(torch.add(keys[:n], by_state[:, None, :H], out=block[:n]))
        scores = torch.addmv(mask[:n].flatten(), features.view(-1, H), v)  # (nS,)
        torch.softmax(scores.view(n, S), -1, out=weight)
        torch.bmm(weight[:, None], values[:n], out=context[:, None])
        gate.addmm_(context, W_c.T)
        gru_step(gate, by_state[:, H:], old, new)
        s = new
    return gates, from_state, before, states, contexts, weights


def attend_backward(d_context, values, weight, features, d_scores, squares, d_v):
    """One step from the context (n, D) back to the query (n, H), but for v.

    features (n, S, H): the tanh; overwritten. Adds to d_v (H,), to d_scores (n, S) and
    to squares (n, S, H), from which the gradient of the keys is made after the loop.
    """
    d = weight * (values @ d_context[:, :, None])[..., 0]  # (n, S)
    d -= weight * d.sum(1, keepdim=True)
    d_v.addmv_(features.view(-1, len(d_v)).T, d.flatten())
    features.square_()  # tanh' = 1 - tanh^2; the 1 is added after the loop
    d_scores += d
    squares.addcmul_(d[:, :, None], features)
    return d.sum(1, keepdim=True) - (d[:, None] @ features)[:, 0]


def attention_steps_backward(d_states, d_contexts, saved, counts):
    """All steps backward. tanh is computed again, not stored as (P, S, H)."""
    gates, from_state, before, _, contexts, weights, keys, values, W_c, W_s, v = saved
    B, _, H = keys.shape
    slopes = gru_slopes(gates, from_state[:, H:], before)
    d_gates, d_from_state = torch.empty_like(gates), torch.empty_like(from_state)
    d_contexts, d_scores = d_contexts.clone(), torch.zeros_like(keys[:, :, 0])
    block, squares = torch.empty_like(keys), torch.zeros_like(keys)
    d_s, d_v = keys.new_zeros(B, H), torch.zeros_like(v)
    rows = d_states, d_contexts, d_gates, d_from_state, from_state, weights, *slopes
    for step in reversed(list(zip(*(x.split(counts) for x in rows), strict=True))):
        d_new, d_context, d_gate, d_by_state, by_state, weight, *slope = step
        n = len(weight)
        kept = gru_step_backward(d_s[:n] + d_new, slope, d_gate, d_by_state[:, H:])
        d_context.addmm_(d_gate, W_c)
        features = tanh_(torch.add(keys[:n], by_state[:, None, :H], out=block[:n]))
        d_query = attend_backward(
            d_context, values[:n], weight, features, d_scores[:n], squares[:n], d_v
        )
        torch.mul(v, d_query, out=d_by_state[:, :H])
        torch.addmm(kept, d_by_state, W_s, out=d_s[:n])
    d_keys = v * (d_scores[..., None] - squares)
    all_weights, d_all = (by_step(x, counts, B) for x in (weights, d_contexts))
    d_values = all_weights.permute(1, 2, 0) @ d_all.transpose(0, 1)
    d_W_c, d_W_s = d_gates.T @ contexts, d_from_state.T @ before
    return d_gates, d_s, d_keys, d_values, d_W_c, d_W_s, d_from_state.sum(0), d_v


def by_step(rows, counts, B):
    """(P, ...) -> (T, B, ...), with 0 where a sentence has no word at a step."""
    has_word = torch.arange(B) < torch.tensor(counts)[:, None]
    steps = rows.new_zeros(*has_word.shape, *rows.shape[1:])
    steps[has_word] = rows
    return steps


def require_known(model):
    """ValueError, in words, unless `loss` computes what this model computes."""
    parts = [model, *model.modules()]
    strange = [type(part).__name__ for part in parts if type(part) not in PARTS]
    if not strange:
        layers = model.encoder.rnn.num_layers, model.decoder.rnn.num_layers
        if layers != (1, 1):
            strange.append(f"GRU of {max(layers)} layers")
        attention = getattr(model.decoder, "attention", None)
        if model.training and attention is not None and attention.dropout.p:
            strange.append("attention with dropout")
    if strange:
        raise ValueError(
            f"the gradient by hand doesn't compute this model: it has a {strange[0]}. "
            "Train it with utils.training.batch_loss, the model's own forward"
        )


@torch.enable_grad()
def compare(model, batch, label_smoothing=0.0):
    """RuntimeError, in words, unless this loss and its gradients are the model's own.

    Compared without dropout, which draws other numbers here.
    """
    modes = {part: part.training for part in model.modules()}
    rng_state = torch.get_rng_state()
    learnt = {name: p for name, p in model.named_parameters() if p.requires_grad}
    names = ["the loss", *(f"the gradient of {name}" for name in learnt)]
    found = []
    try:
        model.eval()
        for function in (own_loss, batch_loss):
            value = function(model, batch, label_smoothing)
            parameters = list(learnt.values())
            grads = torch.autograd.grad(value, parameters, materialize_grads=True)
            found.append([value.detach(), *grads])
    finally:
        for part, training in modes.items():
            part.training = training
        torch.set_rng_state(rng_state)
    for name, ours, theirs in zip(names, *found, strict=True):
        tolerance = 1e-3 * max(theirs.abs().max().item(), 1e-6)
        if not torch.allclose(ours, theirs, 0, tolerance, equal_nan=True):
            raise RuntimeError(
                f"{name} by hand differs from that of the model's own forward: this "
                "model isn't the one that by_hand computes. Train it with "
                "utils.training.batch_loss"
            )


def loss(model, batch, label_smoothing=0.0):
    """`utils.training.batch_loss`, and the same gradients, by a shorter way.

    Padding costs next to nothing: a sentence takes part in as many steps as it has
    words. Raises ValueError on a model that isn't computed here, a batch without a real
    word, a bad id or length; RuntimeError if a model's first batch shows another loss
    or gradient than the model's own way.
    """
    require_known(model)
    if model not in _compared:
        compare(model, batch, label_smoothing)
        _compared.add(model)
    return own_loss(model, batch, label_smoothing)


def own_loss(model, batch, label_smoothing=0.0):
    """`loss` without the comparison."""
    encoder, decoder = model.encoder, model.decoder
    require_share("label_smoothing", label_smoothing)
    check_source(batch.source, batch.source_lens, encoder.embedding.num_embeddings)
    check_ids(batch.target_in, decoder.embedding.num_embeddings, "the target")
    real = batch.target_out != PAD_ID  # (B, T)
    if not real.any():
        raise ValueError("every target is padding: there is no word to learn from")
    # Longest target first, so each step is one of the first few sentences.
    steps = torch.arange(real.shape[1], device=real.device)
    lens = (real * (steps + 1)).amax(1)
    order = lens.argsort(descending=True, stable=True)
    batch, lens = type(batch)(*(field[order] for field in batch)), lens[order]
    has_word = steps[:, None] < lens  # (T, B)
    outputs = decoder_outputs(model, batch, has_word)  # (P, ...)
    targets, dense = batch.target_out.T[has_word], decoder.dense
    real = targets != PAD_ID
    if not real.all():  # padding between words
        outputs, targets = outputs[real], targets[real]
    if isinstance(dense, Readout):
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


def decoder_outputs(model, batch, has_word):
    """What `dense` reads, (P, ...), by teacher forcing, for a model that is known.

    has_word (T, B): which targets have a word t; the longest target comes first.
    """
    decoder = model.decoder
    outputs, last = encoder_states(model.encoder, batch.source, batch.source_lens)
    words = decoder.embedding(batch.target_in.T[has_word])  # (P, E)
    if isinstance(decoder, FIXED):
        state = decoder.init_state((outputs, last[None]))
        states, contexts = fixed_states(decoder, words, state, has_word)
        if not isinstance(decoder.dense, Readout):
            return states
        return torch.cat((states, contexts, words), dim=-1)
    state = decoder.init_state((outputs, last[None]), batch.source_lens)
    states, contexts = attention_states(decoder, words, state, has_word)
    if isinstance(decoder.dense, Readout):
        return torch.cat((states, contexts, words), dim=-1)
    return states


def fixed_states(decoder, words, state, has_word):
    """The states (P, H) and contexts (P, D) of a decoder with one context for all."""
    rnn, D = decoder.rnn, state.context.shape[1]
    W_c, W_x = rnn.weight_ih_l0.split((D, words.shape[1]), dim=1)  # of (3H, D + E)
    contexts = state.context.expand(*has_word.shape, D)
    counts, B = has_word.sum(1).tolist(), has_word.shape[1]
    gates = by_step(F.linear(words, W_x, rnn.bias_ih_l0), counts, B)
    gates = gates + F.linear(state.context, W_c)
    s, W_h, b_h = state.hidden_state, rnn.weight_hh_l0, rnn.bias_hh_l0
    states = GRUSteps.apply(gates[:, None], s, W_h[None], b_h[None])[:, 0]
    return states[has_word], contexts[has_word]


def attention_states(decoder, words, state, has_word):
    """The states (P, H) and contexts (P, D) of a decoder that attends."""
    rnn, attention, values = decoder.rnn, decoder.attention, state.enc_outputs
    (B, S, D), s, counts = values.shape, state.hidden_state[0], has_word.sum(1).tolist()
    W_c, W_x = rnn.weight_ih_l0.split((D, words.shape[1]), dim=1)  # of (3H, D + E)
    W_h, b_h = rnn.weight_hh_l0, rnn.bias_hh_l0
    mask = torch.zeros(B, S, dtype=s.dtype, device=s.device)
    mask.masked_fill_(~length_mask(state.enc_valid_lens, S), -torch.inf)
    gates, updates = F.linear(words, W_x, rnn.bias_ih_l0), None
    if isinstance(decoder, ReleasedTranslatorDecoder):
        # A context more: what a word is written from is what its own state looks up,
        # at the step after. A sentence's last step updates for nothing.
        none = has_word.new_zeros(1, B)
        updates = torch.cat((has_word, none))[torch.cat((~none, has_word))]
        gates = gates.new_zeros(len(updates), gates.shape[1]).index_put(
            (updates,), gates
        )
        counts = [B, *counts]
    states, contexts = AttentionSteps.apply(
        gates,
        s,
        state.projected_keys,
        values,
        mask,
        W_c,
        torch.cat((attention.W_q.weight, W_h)),
        F.pad(b_h, (s.shape[1], 0)),  # W_a has no bias
        attention.w_v.weight[0],
        counts,
    )
    return (states, contexts) if updates is None else (states[updates], contexts[B:])


def encoder_states(encoder, X, valid_lens):
    """What the encoder returns, but for its layers: (B, S, D) and the last (B, D).

    A padded word opens the update gate for good (z = 1), which hands the state on
    unchanged: the last state is that of the last word, and the backward direction
    starts at it.
    """
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
