"""RNNsearch as its paper gives it (Bahdanau et al., 2015, appendix A); parts replaced.

Letters in shape comments: B sentences in a batch, S source and T target positions,
E embedding size, H hidden units (the paper's n), D = 2H the size of one encoder state,
M maxout units (the paper's l), V words in the vocabulary.
"""

from collections import namedtuple
from functools import partial

import torch
from torch import nn

from utils.attention import AdditiveAttention, BilinearAttention
from utils.seq2seq import AttentionDecoder, AttentionState


class GatedUnit(nn.Module):
    """The gated hidden unit (A.1.1 and A.2.2): one update of the decoder's state.

    It resets the state first and multiplies by U afterwards. nn.GRU multiplies first.
    """

    def __init__(self, embed_size, num_hiddens, enc_hiddens):
        super().__init__()
        E, H, D = embed_size, num_hiddens, enc_hiddens
        self.W = nn.Linear(E, 3 * H)  # W_z, W_r, W, one below the other; the biases
        self.C = nn.Linear(D, 3 * H, bias=False)  # C_z, C_r, C
        self.U_gates = nn.Linear(H, 2 * H, bias=False)  # U_z, U_r
        self.U = nn.Linear(H, H, bias=False)

    def forward(self, x, context, s):
        """E y_{i-1} (B, E), c_i (B, D) and s_{i-1} (B, H) -> s_i (B, H)."""
        H = s.shape[-1]
        gates, inputs = (self.W(x) + self.C(context)).split((2 * H, H), dim=-1)
        z, r = torch.sigmoid(gates + self.U_gates(s)).chunk(2, dim=-1)  # (B, H) each
        proposal = torch.tanh(inputs + self.from_state(r, s))
        return (1 - z) * s + z * proposal

    def from_state(self, r, s):
        return self.U(r * s)


class DeepOutput(nn.Module):
    """From state, last word and context to logits, by a layer of maxout units (A.2.2).

    A maxout unit gives the larger of two linear maps (Goodfellow et al., 2013). The
    state is s_{i-1}; with new_state, it is s_i. Without context, c_i isn't read.
    """

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        enc_hiddens,
        num_maxout,
        context=True,
        new_state=False,
    ):
        super().__init__()
        size, self.new_state = 2 * num_maxout, new_state
        self.U_o = nn.Linear(num_hiddens, size)
        self.V_o = nn.Linear(embed_size, size, bias=False)
        self.C_o = nn.Linear(enc_hiddens, size, bias=False) if context else None
        self.W_o = nn.Linear(num_maxout, vocab_size)
        self.sizes = num_hiddens, embed_size, enc_hiddens, num_hiddens

    def forward(self, reads):
        """s_{i-1}, E y_{i-1}, c_i and s_i, side by side (..., H + E + D + H) -> V."""
        before, word, context, after = reads.split(self.sizes, dim=-1)
        t = self.U_o(after if self.new_state else before) + self.V_o(word)  # (..., 2M)
        t = t if self.C_o is None else t + self.C_o(context)
        return self.W_o(t.unflatten(-1, (-1, 2)).amax(dim=-1))  # (..., M) -> (..., V)


class FirstState(nn.Module):
    """s_0 = tanh(W_s h_1), with the state of the encoder that reads backwards (A.2.2).

    At the first word, that state has read the whole sentence.
    """

    def __init__(self, num_hiddens, enc_hiddens):
        super().__init__()
        self.W_s = nn.Linear(enc_hiddens // 2, num_hiddens)

    def forward(self, enc_outputs, enc_valid_lens):
        outputs, _ = enc_outputs  # (B, S, D): forward half, backward half
        backward = outputs[:, 0].chunk(2, dim=-1)[1]  # (B, D / 2)
        return torch.tanh(self.W_s(backward))


class RNNsearchDecoder(AttentionDecoder):
    """Attend with s_{i-1}, update to s_i; the output reads s_{i-1}, word and context.

    Made of an embedding, and the parts above: start, attention, unit, dense.
    """

    def __init__(self, embedding, start, attention, unit, dense):
        super().__init__()
        self.embedding, self.start, self.attention = embedding, start, attention
        self.unit, self.dense = unit, dense

    def init_state(self, enc_outputs, enc_valid_lens):
        keys = self.attention.project_keys(enc_outputs[0])  # U_a h_j, once a sentence
        s = self.start(enc_outputs, enc_valid_lens).unsqueeze(0)  # (1, B, H)
        return AttentionState(enc_outputs[0], keys, s, enc_valid_lens)

    def step(self, x, state):
        before = state.hidden_state[-1].unsqueeze(1)  # s_{i-1}: (B, 1, H)
        context, weights = self.attend(before, state)
        s = self.unit(x[:, 0], context[:, 0], before[:, 0])  # s_i: (B, H)
        reads = torch.cat((before, x, context, s.unsqueeze(1)), dim=-1)
        return reads, weights, state._replace(hidden_state=s.unsqueeze(0))


# --- What is put in a part's place -----------------------------------------------


def zero_state(num_hiddens, enc_hiddens):
    """s_0 = 0: the decoder starts without having seen the sentence."""
    return lambda enc_outputs, lens: enc_outputs[0].new_zeros(len(lens), num_hiddens)


class StateOutput(nn.Module):
    """No deep output: one linear map of s_i, as in notebook 05."""

    def __init__(self, vocab_size, embed_size, num_hiddens, enc_hiddens, num_maxout):
        super().__init__()
        self.dense = nn.Linear(num_hiddens, vocab_size)

    def forward(self, reads):
        return self.dense(reads[..., -self.dense.in_features :])


class ReleasedState(namedtuple("ReleasedState", [*AttentionState._fields, "context"])):
    """`AttentionState`, and `context`, (B, 1, D): that of the step before, or None."""


class ReleasedDecoder(RNNsearchDecoder):
    """RNNsearch in the order of the authors' released code (GroundHog, encdec.py).

    A word is read as soon as it is written: s_i = f(s_{i-1}, y_i, c_i), where the
    appendix has y_{i-1}. The state s_{i-1} asks, and the output reads it.
    """

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        return ReleasedState(*state, context=None)

    def step(self, x, state):
        s = state.hidden_state[-1]
        if state.context is not None:  # with it, the word now read was written
            s = self.unit(x[:, 0], state.context[:, 0], s)
        query = s.unsqueeze(1)
        context, weights = self.attend(query, state)
        reads = torch.cat((query, x, context, query), dim=-1)
        state = state._replace(hidden_state=s.unsqueeze(0), context=context)
        return reads, weights, state


class TwoUpdates(nn.Module):
    """Two units of nn.GRU's form: the first reads a word, the second a context."""

    def __init__(self, embed_size, num_hiddens, enc_hiddens):
        super().__init__()
        self.first = nn.GRUCell(embed_size, num_hiddens)
        self.second = nn.GRUCell(enc_hiddens, num_hiddens)


class ConditionalDecoder(RNNsearchDecoder):
    """RNNsearch in the order of the conditional GRU (Sennrich et al., 2017).

    The first update reads the last word, and the state in between asks. The second
    update reads the context that was found, and the output reads its state, s_i.
    """

    def step(self, x, state):
        between = self.unit.first(x[:, 0], state.hidden_state[-1])  # (B, H)
        context, weights = self.attend(between.unsqueeze(1), state)
        s = self.unit.second(context[:, 0], between).unsqueeze(1)  # s_i: (B, 1, H)
        reads = torch.cat((s, x, context, s), dim=-1)
        return reads, weights, state._replace(hidden_state=s.transpose(0, 1))


PAPER = {
    "decoder": RNNsearchDecoder,
    "start": FirstState,
    "attention": lambda D, H: AdditiveAttention(D, H, H),
    "unit": GatedUnit,
    "output": DeepOutput,
}
# name: the parts that take the place of the paper's
VARIANTS = {
    "RNNsearch": {},
    "scaled product": {"attention": partial(BilinearAttention, scaled=True)},
    "order of the released code": {"decoder": ReleasedDecoder},
    "conditional order": {"decoder": ConditionalDecoder, "unit": TwoUpdates},
    "output from s_i": {"output": partial(DeepOutput, new_state=True)},
    "output without context": {"output": partial(DeepOutput, context=False)},
    "no deep output": {"output": StateOutput},
    "s_0 = 0": {"start": zero_state},
}
