"""The training loss of an attention decoder, its backward pass written by hand.

A faster neighbour of `utils.training.batch_loss`, named where it is used:
`Trainer(…, loss_function=by_hand.loss)`. It computes `Seq2SeqAttentionDecoder` and the
translator in both orders, equal to the plain way to rounding, and refuses every other
model at every batch.

PyTorch records every operation of every step and later runs each one's gradient. Here
the loop keeps what its own gradient needs and no more. What doesn't depend on the step
before is done for all steps at once: the words' part of the gates, and the gradients of
the weights. A sentence takes part in as many steps as it has words.

Letters in shape comments: B sentences in a batch, S source and T target positions,
H hidden units, D the size of one value, P real target words of a batch. Time is the
first axis here, so that each step is one block of memory.
"""

import torch
from torch import nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from utils import seq2seq, translator
from utils.attention import AdditiveAttention, length_mask
from utils.text import PAD_ID
from utils.training import masked_cross_entropy

# The parts of the models that are computed here: exactly these classes.
PARTS = {
    seq2seq.EncoderDecoder,
    seq2seq.Seq2SeqEncoder,
    seq2seq.Seq2SeqAttentionDecoder,
    seq2seq.Bridge,
    translator.TranslatorDecoder,
    translator.ReleasedTranslatorDecoder,
    translator.DropoutEmbedding,
    translator.Readout,
    AdditiveAttention,
    nn.Embedding,
    nn.GRU,
    nn.Linear,
    nn.Dropout,
}
HOOKS = "_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"


def loss(model, batch, label_smoothing=0.0):
    """`utils.training.batch_loss`, and the same gradients, by a shorter way.

    Raises ValueError for a model that isn't computed here, and otherwise as that does.
    """
    for why in differences(model):
        raise ValueError(
            f"the gradient by hand doesn't compute this model: {why}. Train it with "
            "utils.training.batch_loss, the model's own forward"
        )
    encoder, decoder = model.encoder, model.decoder
    seq2seq.check_ids(batch.target_in, decoder.embedding.num_embeddings, "the target")
    # Longest target first, so each step is one of the first few sentences.
    real = batch.target_out != PAD_ID  # (B, T)
    steps = torch.arange(real.shape[1], device=real.device)
    lens = (real * (steps + 1)).amax(1)
    order = lens.argsort(descending=True, stable=True)
    batch, lens = type(batch)(*(field[order] for field in batch)), lens[order]
    has_word = steps[:, None] < lens  # (T, B)
    outputs = encoder(batch.source, batch.source_lens)
    state = decoder.init_state(outputs, batch.source_lens)
    words = decoder.embedding(batch.target_in.T[has_word])  # (P, E)
    states, contexts = attention_states(decoder, words, state, has_word)
    logits = decoder.dense(decoder.output(states, contexts, words))
    return masked_cross_entropy(logits, batch.target_out.T[has_word], label_smoothing)


def differences(model):
    """In words: what of a model isn't as `loss` takes it to be."""
    for part in model.modules():
        name = type(part).__name__
        if type(part) not in PARTS:
            yield f"it has a {name}"
        if any(getattr(part, hooks) for hooks in HOOKS):
            yield f"its {name} has a hook"
        for key in vars(part):
            if hasattr(type(part), key):
                yield f"its {name} has {key} of its own"
    decoder, attention = model.decoder, model.decoder.attention
    for rnn in (model.encoder.rnn, decoder.rnn):
        layout = rnn.num_layers, rnn.bias, rnn.batch_first, rnn.proj_size
        if layout != (1, True, True, 0) or decoder.rnn.bidirectional:
            yield f"it has a {rnn}"
    if attention.W_q.bias is not None or attention.w_v.bias is not None:
        yield "its attention has a bias"
    if attention.training and attention.dropout.p:
        yield "it has attention with dropout"


def attention_states(decoder, words, state, has_word):
    """The states (P, H) and contexts (P, D) of a decoder that attends."""
    rnn, attention = decoder.rnn, decoder.attention
    keys, values = state.projected_keys, state.enc_outputs
    (B, S, D), s, counts = values.shape, state.hidden_state[0], has_word.sum(1).tolist()
    W_c, W_x = rnn.weight_ih_l0.split((D, words.shape[1]), dim=1)  # of (3H, D + E)
    W_s = torch.cat((attention.W_q.weight, rnn.weight_hh_l0))
    b_s = F.pad(rnn.bias_hh_l0, (s.shape[1], 0))  # W_a has no bias
    mask = torch.where(length_mask(state.enc_valid_lens, S), 0.0, -torch.inf).to(s)
    gates, updates = F.linear(words, W_x, rnn.bias_ih_l0), None
    if isinstance(decoder, translator.ReleasedTranslatorDecoder):
        # A context more: what a word is written from is what its own state looks up,
        # at the step after. A sentence's last step updates for nothing.
        none = has_word.new_zeros(1, B)
        updates = torch.cat((has_word, none))[torch.cat((~none, has_word))]
        gates = by_place(gates, updates)
        counts = [B, *counts]
    parts = gates, s, keys, values, mask, W_c, W_s, b_s, attention.w_v.weight[0]
    states, contexts = AttentionSteps.apply(*parts, counts)
    return (states, contexts) if updates is None else (states[updates], contexts[B:])


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
        ctx.save_for_backward(
            gates, from_state, before, contexts, weights, keys, values, W_c, W_s, v
        )
        ctx.counts = counts
        return states, contexts

    @staticmethod
    @once_differentiable
    def backward(ctx, d_states, d_contexts):
        """All steps backward. tanh is computed again, not stored as (P, S, H)."""
        gates, from_state, before, contexts, weights, *rest = ctx.saved_tensors
        (keys, values, W_c, W_s, v), counts = rest, ctx.counts
        B, _, H = keys.shape
        slopes = gru_slopes(gates, from_state[:, H:], before)
        d_gates, d_from_state = torch.empty_like(gates), torch.empty_like(from_state)
        d_contexts, d_scores = d_contexts.clone(), torch.zeros_like(keys[:, :, 0])
        block, squares = torch.empty_like(keys), torch.zeros_like(keys)
        d_s, d_v = keys.new_zeros(B, H), torch.zeros_like(v)
        rows = d_states, d_contexts, d_gates, d_from_state, from_state, weights, *slopes
        for step in reversed(list(zip(*(x.split(counts) for x in rows), strict=True))):
            d_new, d_context, d_gate, d_by_state, by_state, weight, *slope = step
            n, (to_gates, to_state, z) = len(weight), slope
            d_new = (d_s[:n] + d_new)[:, None]  # (n, 1, H): at s_i
            torch.mul(d_new, to_gates, out=d_gate.unflatten(1, (3, H)))
            torch.mul(d_new, to_state, out=d_by_state[:, H:].unflatten(1, (3, H)))
            kept = d_new[:, 0] * z  # what goes to s_{i-1} without passing a gate
            d_context.addmm_(d_gate, W_c)
            features = tanh_(torch.add(keys[:n], by_state[:, None, :H], out=block[:n]))
            d_query = attend_backward(
                d_context, values[:n], weight, features, d_scores[:n], squares[:n], d_v
            )
            torch.mul(v, d_query, out=d_by_state[:, :H])
            torch.addmm(kept, d_by_state, W_s, out=d_s[:n])
        d_keys = v * (d_scores[..., None] - squares)
        real = torch.arange(B) < torch.tensor(counts)[:, None]  # (T, B): has a word
        all_weights, d_all = by_place(weights, real), by_place(d_contexts, real)
        d_values = all_weights.permute(1, 2, 0) @ d_all.transpose(0, 1)
        d_W_c, d_W_s = d_gates.T @ contexts, d_from_state.T @ before
        d_b_s = d_from_state.sum(0)  # None: for the mask and the counts
        return d_gates, d_s, d_keys, d_values, None, d_W_c, d_W_s, d_b_s, d_v, None


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
    """What the gradient at a new state is multiplied by, for all steps at once.

    For the input's part of r, z, n (..., 3, H), for the state's, and for the old state
    (..., H). gates, from_state: as by `gru_step`, stacked; states: before each step.
    """
    r, z, n = gates.chunk(3, dim=-1)
    to_n = (1 - z) * (1 - n * n)
    to_z = (states - n) * z * (1 - z)
    to_r = to_n * from_state[..., -n.shape[-1] :] * r * (1 - r)
    to_gates, to_state = (to_r, to_z, to_n), (to_r, to_z, to_n * r)
    return torch.stack(to_gates, -2), torch.stack(to_state, -2), z


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


def by_place(rows, places):
    """Rows (P, ...) where places, bool of any shape with P true ones, is; else 0."""
    found = rows.new_zeros(*places.shape, *rows.shape[1:])
    return found.index_put((places,), rows)
