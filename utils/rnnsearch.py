"""RNNsearch as its paper gives it: Bahdanau et al. (2015), appendices A and B.1.

Letters in shape comments: B sentences in a batch, S source and T target positions,
E embedding size, H hidden units (the paper's n), D the size of one encoder state (2H
when it reads both ways), M maxout units (the paper's l), V words in the vocabulary.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import AdditiveAttention
from utils.seq2seq import AttentionState, EncoderDecoder, Seq2SeqEncoder, check_target


class GatedUnit(nn.Module):
    """The gated hidden unit (A.1.1 and A.2.2): one update of the decoder's state.

    It resets the state first and multiplies by U afterwards. nn.GRU multiplies first.
    """

    def __init__(self, embed_size, num_hiddens, enc_hiddens):
        super().__init__()
        self.W = nn.Linear(embed_size, 3 * num_hiddens)  # W_z, W_r, W; the biases
        self.C = nn.Linear(enc_hiddens, 3 * num_hiddens, bias=False)  # C_z, C_r, C
        self.U_gates = nn.Linear(num_hiddens, 2 * num_hiddens, bias=False)  # U_z, U_r
        self.U = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def forward(self, from_word, context, s):
        """W E y_{i-1} (B, 3H), c_i (B, D) and s_{i-1} (B, H) -> s_i (B, H)."""
        H = s.shape[-1]
        inputs = from_word + self.from_context(context)
        z, r = torch.sigmoid(inputs[:, : 2 * H] + self.U_gates(s)).chunk(2, dim=-1)
        proposal = torch.tanh(inputs[:, 2 * H :] + self.from_state(r, s))
        return (1 - z) * s + z * proposal

    def from_context(self, context):
        return self.C(context)  # into both gates and the proposal

    def from_state(self, r, s):
        return self.U(r * s)


class DeepOutput(nn.Module):
    """From state, last word and context to scores, by a layer of maxout units (A.2.2).

    A maxout unit gives the larger of two linear maps (Goodfellow et al., 2013).
    """

    pieces = 2  # linear maps a unit chooses from

    def __init__(self, vocab_size, embed_size, num_hiddens, enc_hiddens, num_maxout):
        super().__init__()
        size = self.pieces * num_maxout
        self.U_o = nn.Linear(num_hiddens, size)
        self.V_o = nn.Linear(embed_size, size, bias=False)
        self.C_o = nn.Linear(enc_hiddens, size, bias=False)
        self.W_o = nn.Linear(num_maxout, vocab_size)

    def forward(self, states, embedded, contexts):
        """s_0 … s_T (B, T + 1, H), E y_{i-1} (B, T, E), c_i (B, T, D) -> (B, T, V)."""
        check_output(states, embedded, contexts)
        before = states[:, :-1]  # s_{i-1}
        t = self.U_o(before) + self.V_o(embedded) + self.C_o(contexts)
        t = t.unflatten(-1, (-1, self.pieces)).amax(dim=-1)  # (B, T, 2M) -> (B, T, M)
        return self.W_o(t)


class FirstState(nn.Module):
    """s_0 = tanh(W_s h_1), with the state of the encoder that reads backwards (A.2.2).

    At the first word, that state has read the whole sentence.
    """

    def __init__(self, num_hiddens, enc_hiddens):
        check_both_ways(enc_hiddens)
        super().__init__()
        self.W_s = nn.Linear(enc_hiddens // 2, num_hiddens)

    def forward(self, enc_outputs, enc_valid_lens):
        outputs, _ = enc_outputs  # (B, S, D): forward half, backward half
        backward = outputs[:, 0].chunk(2, dim=-1)[1]  # (B, D / 2)
        return torch.tanh(self.W_s(backward))


class RNNsearchDecoder(nn.Module):
    """Attend with s_{i-1}, update to s_i. X (B, T) -> scores (B, T, V), new state."""

    def __init__(self, embedding, start, attention, unit, output):
        super().__init__()
        self.embedding, self.start, self.attention = embedding, start, attention
        self.unit, self.output = unit, output

    def init_state(self, enc_outputs, enc_valid_lens):
        keys = self.attention.project_keys(enc_outputs[0])  # U_a h_j, once a sentence
        s = self.start(enc_outputs, enc_valid_lens).unsqueeze(0)  # (1, B, H)
        return AttentionState(enc_outputs[0], keys, s, enc_valid_lens)

    def forward(self, X, state):
        check_target(X, self.embedding.num_embeddings)
        source = state.projected_keys, state.enc_outputs, state.enc_valid_lens
        embedded, contexts, weights = self.embedding(X), [], []
        states = [state.hidden_state[-1]]  # s_0, then every s_i: (B, H)
        for from_word in self.unit.W(embedded).unbind(dim=1):
            query = states[-1].unsqueeze(1)  # (B, 1, H)
            context, weight = self.attention.attend(query, *source)
            states.append(self.unit(from_word, context.squeeze(1), states[-1]))
            contexts.append(context)
            weights.append(weight.detach())
        self.attention_weights = torch.cat(weights, dim=1)  # (B, T, S)
        scores = self.output(torch.stack(states, 1), embedded, torch.cat(contexts, 1))
        return scores, state._replace(hidden_state=states[-1].unsqueeze(0))


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
    """s_0 from the last state of each direction: all that notebook 04 hands over."""

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
        self.U = nn.Linear(num_hiddens, num_hiddens)

    def from_state(self, r, s):
        return r * self.U(s)


class UngatedContextUnit(GatedUnit):
    """The gated unit whose gates don't see the context."""

    def __init__(self, embed_size, num_hiddens, enc_hiddens):
        super().__init__(embed_size, num_hiddens, enc_hiddens)
        self.C = nn.Linear(enc_hiddens, num_hiddens, bias=False)

    def from_context(self, context):
        return F.pad(self.C(context), (2 * self.C.out_features, 0))


class LinearOutput(DeepOutput):
    """The deep output with linear units in place of maxout."""

    pieces = 1


class NewStateOutput(DeepOutput):
    """The deep output with s_i in place of s_{i-1}, as equation 4 has it."""

    def forward(self, states, embedded, contexts):
        after = states.roll(-1, dims=1)  # s_1 … s_T, s_0
        return super().forward(after, embedded, contexts)


class Nothing(nn.Module):
    """Stands where a linear map was left out."""

    def forward(self, x):
        return 0.0


class NoWordOutput(DeepOutput):
    """The deep output without the last word."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.V_o = Nothing()


class NoContextOutput(DeepOutput):
    """The deep output without the context."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.C_o = Nothing()


class StateOutput(nn.Module):
    """No deep output: one linear map of s_i, as in notebook 04."""

    def __init__(self, vocab_size, embed_size, num_hiddens, enc_hiddens, num_maxout):
        super().__init__()
        self.dense = nn.Linear(num_hiddens, vocab_size)

    def forward(self, states, embedded, contexts):
        return self.dense(states[:, 1:])


class ReleasedState(NamedTuple):
    """AttentionState and the last context, which the next update reads."""

    enc_outputs: torch.Tensor  # (B, S, D)
    projected_keys: torch.Tensor  # (B, S, H)
    hidden_state: torch.Tensor  # (1, B, H)
    enc_valid_lens: torch.Tensor  # (B,)
    context: torch.Tensor | None  # (B, D); None before the first step


class ReleasedDecoder(RNNsearchDecoder):
    """RNNsearch in the order of the authors' released code (GroundHog, encdec.py).

    A word is read as soon as it is written: s_i = f(s_{i-1}, y_i, c_i), where the
    appendix has y_{i-1}. So s_{i-1}, which asks and which the output reads, has read
    y_{i-1}.
    """

    def init_state(self, enc_outputs, enc_valid_lens):
        return ReleasedState(*super().init_state(enc_outputs, enc_valid_lens), None)

    def forward(self, X, state):
        check_target(X, self.embedding.num_embeddings)
        source = state.projected_keys, state.enc_outputs, state.enc_valid_lens
        embedded, states, contexts, weights = self.embedding(X), [], [], []
        s, context = state.hidden_state[-1], state.context
        for from_word in self.unit.W(embedded).unbind(dim=1):
            if context is not None:  # with it, the word now read was written
                s = self.unit(from_word, context, s)
            context, weight = self.attention.attend(s.unsqueeze(1), *source)
            context = context.squeeze(1)
            states.append(s)
            contexts.append(context)
            weights.append(weight.detach())
        self.attention_weights = torch.cat(weights, dim=1)  # (B, T, S)
        states, contexts = torch.stack([*states, s], 1), torch.stack(contexts, 1)
        scores = self.output(states, embedded, contexts)
        return scores, state._replace(hidden_state=s.unsqueeze(0), context=context)


# name: what `build_rnnsearch` does otherwise
VARIANTS = {
    "RNNsearch": {},
    "one direction": {"bidirectional": False, "width": 1, "start": LastStates},
    "one direction, as wide": {"bidirectional": False, "start": LastStates},
    "s_0 from last states": {"start": LastStates},
    "s_0 from the mean": {"start": MeanState},
    "s_0 = 0": {"start": ZeroState},
    "reset after the product": {"unit": ResetAfterUnit},
    "gates without context": {"unit": UngatedContextUnit},
    "no maxout": {"output": LinearOutput},
    "output from s_i": {"output": NewStateOutput},
    "output without the word": {"output": NoWordOutput},
    "output without context": {"output": NoContextOutput},
    "no deep output": {"output": StateOutput},
    "order of the released code": {"decoder": ReleasedDecoder},
}


def build_rnnsearch(
    src_vocab_size,
    tgt_vocab_size,
    embed_size,
    num_hiddens,
    num_maxout=None,
    variant="RNNsearch",
    published_init=False,
):
    """RNNsearch, or a variant with one part replaced -> EncoderDecoder.

    num_hiddens: of the decoder and of each direction of the encoder, 1000 in the paper;
    embed_size 620 there; num_maxout 500 there, num_hiddens // 2 when None.
    published_init: `initialise`; else the parameters start as PyTorch draws them.
    Raises ValueError for a size below 1 or an unknown variant.
    """
    num_maxout = max(1, num_hiddens // 2) if num_maxout is None else num_maxout
    check_settings(variant, embed_size, num_hiddens, num_maxout)
    parts = {
        "bidirectional": True,
        "width": 2,  # an encoder's state in units of num_hiddens
        "decoder": RNNsearchDecoder,
        "start": FirstState,
        "unit": GatedUnit,
        "output": DeepOutput,
        **VARIANTS[variant],
    }
    enc_hiddens, both = num_hiddens * parts["width"], parts["bidirectional"]
    encoder = Seq2SeqEncoder(
        src_vocab_size, embed_size, enc_hiddens // (1 + both), bidirectional=both
    )
    decoder = parts["decoder"](
        nn.Embedding(tgt_vocab_size, embed_size),
        parts["start"](num_hiddens, enc_hiddens),
        AdditiveAttention(enc_hiddens, num_hiddens, num_hiddens),
        parts["unit"](embed_size, num_hiddens, enc_hiddens),
        parts["output"](
            tgt_vocab_size, embed_size, num_hiddens, enc_hiddens, num_maxout
        ),
    )
    model = EncoderDecoder(encoder, decoder)
    return initialise(model) if published_init else model


def check_settings(variant, *sizes):
    """ValueError, in words, unless the variant is known and every size at least 1."""
    if variant not in VARIANTS:
        raise ValueError(f"variant must be one of {list(VARIANTS)}, got {variant!r}")
    if min(sizes) < 1:
        raise ValueError(
            "embed_size, num_hiddens and num_maxout must be at least 1, "
            f"got {sizes[0]}, {sizes[1]} and {sizes[2]}"
        )


def check_both_ways(enc_hiddens):
    """ValueError, in words, unless the states of two directions can be this wide."""
    if enc_hiddens < 2 or enc_hiddens % 2:
        raise ValueError(
            "the encoder must read both ways, so that its states have two halves of "
            f"one size; got states of {enc_hiddens}"
        )


def check_output(states, embedded, contexts):
    """ValueError, in words, unless these are T + 1 states, T words and T contexts."""
    B, T = embedded.shape[:2]
    if states.shape[:2] != (B, T + 1) or contexts.shape[:2] != (B, T):
        raise ValueError(
            f"for {T} words of {B} sentences the output needs s_0 to s_{T}, states "
            f"({B}, {T + 1}, H), and contexts ({B}, {T}, D); got "
            f"{tuple(states.shape)} and {tuple(contexts.shape)}"
        )
