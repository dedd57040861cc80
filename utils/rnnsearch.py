"""RNNsearch as its paper gives it: Bahdanau et al. (2015), appendices A and B.1.

Letters in shape comments: B sentences in a batch, S source and T target positions,
E embedding size, H hidden units (the paper's n), D the size of one encoder state (2H
when it reads both ways), M maxout units (the paper's l), V words in the vocabulary.
"""

from collections import namedtuple
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from utils.seq2seq import AttentionDecoder, AttentionState


class GatedUnit(nn.Module):
    """The gated hidden unit (A.1.1 and A.2.2): one update of the decoder's state.

    It resets the state first and multiplies by U afterwards. nn.GRU multiplies first.
    """

    context_parts = 3  # C_z, C_r, C

    def __init__(self, embed_size, num_hiddens, enc_hiddens):
        super().__init__()
        self.W = nn.Linear(embed_size, 3 * num_hiddens)  # W_z, W_r, W; the biases
        self.C = nn.Linear(enc_hiddens, self.context_parts * num_hiddens, bias=False)
        self.U_gates = nn.Linear(num_hiddens, 2 * num_hiddens, bias=False)  # U_z, U_r
        self.U = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def forward(self, x, context, s):
        """E y_{i-1} (B, E), c_i (B, D) and s_{i-1} (B, H) -> s_i (B, H)."""
        H = s.shape[-1]
        inputs = self.W(x) + self.from_context(context)
        z, r = torch.sigmoid(inputs[:, : 2 * H] + self.U_gates(s)).chunk(2, dim=-1)
        proposal = torch.tanh(inputs[:, 2 * H :] + self.from_state(r, s))
        return (1 - z) * s + z * proposal

    def from_context(self, context):
        return self.C(context)  # into both gates and the proposal

    def from_state(self, r, s):
        return self.U(r * s)


class DeepOutput(nn.Module):
    """From state, last word and context to logits, by a layer of maxout units (A.2.2).

    A maxout unit gives the larger of two linear maps (Goodfellow et al., 2013); with
    maxout=False, one linear map. The state is s_{i-1}; with new_state, it is s_i.
    """

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        enc_hiddens,
        num_maxout,
        maxout=True,
        word=True,
        context=True,
        new_state=False,
    ):
        super().__init__()
        self.pieces, self.new_state = 1 + maxout, new_state
        size = self.pieces * num_maxout
        self.U_o = nn.Linear(num_hiddens, size)
        self.V_o = nn.Linear(embed_size, size, bias=False) if word else None
        self.C_o = nn.Linear(enc_hiddens, size, bias=False) if context else None
        self.W_o = nn.Linear(num_maxout, vocab_size)
        self.sizes = num_hiddens, embed_size, enc_hiddens, num_hiddens

    def forward(self, reads):
        """s_{i-1}, E y_{i-1}, c_i and s_i, side by side (..., H + E + D + H) -> V."""
        before, word, context, after = reads.split(self.sizes, dim=-1)
        t = self.U_o(after if self.new_state else before)
        t = t if self.V_o is None else t + self.V_o(word)
        t = t if self.C_o is None else t + self.C_o(context)
        t = t.unflatten(-1, (-1, self.pieces)).amax(dim=-1)  # (..., 2M) -> (..., M)
        return self.W_o(t)


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


@torch.no_grad()
def initialise(model):
    """Draw all parameters as the paper did (B.1), in place; returns the model.

    Recurrent matrices orthogonal; v_a and biases 0; W_a and U_a with standard
    deviation 0.001; the rest, embeddings included, with 0.01.
    """
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 or name.endswith("attention.w_v.weight"):
            nn.init.zeros_(parameter)
        elif ".weight_hh" in name or ".unit.U" in name:  # (kH, H): k matrices, stacked
            for matrix in parameter.split(parameter.shape[1]):
                nn.init.orthogonal_(matrix)
        elif ".attention.W_" in name:
            nn.init.normal_(parameter, std=0.001)
        else:
            nn.init.normal_(parameter, std=0.01)
    return model


# --- What is put in a part's place when it is left out ---------------------------


class LastStates(nn.Module):
    """s_0 from the last state of each direction: all that notebook 05 hands over."""

    def __init__(self, num_hiddens, enc_hiddens):
        super().__init__()
        self.W_s = nn.Linear(enc_hiddens, num_hiddens)

    def forward(self, enc_outputs, enc_valid_lens):
        return torch.tanh(self.W_s(enc_outputs[1][-1]))


class MeanState(LastStates):
    """s_0 from the mean of the encoder's states; padding has none."""

    def forward(self, enc_outputs, enc_valid_lens):
        mean = enc_outputs[0].sum(dim=1) / enc_valid_lens.unsqueeze(1)
        return torch.tanh(self.W_s(mean))


class ZeroState(nn.Module):
    """s_0 = 0: the decoder starts without having seen the sentence."""

    def __init__(self, num_hiddens, enc_hiddens):
        super().__init__()
        self.num_hiddens = num_hiddens

    def forward(self, enc_outputs, enc_valid_lens):
        return enc_outputs[0].new_zeros(len(enc_valid_lens), self.num_hiddens)


class ResetAfterUnit(GatedUnit):
    """The gated unit in nn.GRU's form: r * (U s + b) in place of U (r * s)."""

    def __init__(self, embed_size, num_hiddens, enc_hiddens):
        super().__init__(embed_size, num_hiddens, enc_hiddens)
        self.b = nn.Parameter(torch.zeros(num_hiddens))

    def from_state(self, r, s):
        return r * (self.U(s) + self.b)


class UngatedContextUnit(GatedUnit):
    """The gated unit whose gates don't see the context."""

    context_parts = 1

    def from_context(self, context):
        return F.pad(self.C(context), (2 * self.C.out_features, 0))


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
    appendix has y_{i-1}. So s_{i-1}, which asks and which the output reads, has read
    y_{i-1}.
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


PAPER = {
    "bidirectional": True,
    "width": 2,  # an encoder's state in units of num_hiddens
    "decoder": RNNsearchDecoder,
    "start": FirstState,
    "unit": GatedUnit,
    "output": DeepOutput,
}
# name: the parts that take the place of the paper's
VARIANTS = {
    "RNNsearch": {},
    "one direction": {"bidirectional": False, "width": 1, "start": LastStates},
    "one direction, as wide": {"bidirectional": False, "start": LastStates},
    "s_0 from last states": {"start": LastStates},
    "s_0 from the mean": {"start": MeanState},
    "s_0 = 0": {"start": ZeroState},
    "reset after the product": {"unit": ResetAfterUnit},
    "gates without context": {"unit": UngatedContextUnit},
    "no maxout": {"output": partial(DeepOutput, maxout=False)},
    "output from s_i": {"output": partial(DeepOutput, new_state=True)},
    "output without the word": {"output": partial(DeepOutput, word=False)},
    "output without context": {"output": partial(DeepOutput, context=False)},
    "no deep output": {"output": StateOutput},
    "order of the released code": {"decoder": ReleasedDecoder},
}
