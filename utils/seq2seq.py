"""Sequence to sequence: an encoder reads, a decoder writes.

Letters in shape comments: B sentences in a batch, S source and T target positions,
E embedding size, H hidden units, L layers, V words in the target vocabulary.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from utils.attention import AdditiveAttention, check_lengths


def make_gru(input_size, num_hiddens, num_layers=1, dropout=0.0, bidirectional=False):
    """nn.GRU, batch first. Its dropout is between layers, so one layer has none."""
    return nn.GRU(
        input_size,
        num_hiddens,
        num_layers,
        dropout=dropout if num_layers > 1 else 0.0,
        bidirectional=bidirectional,
        batch_first=True,
    )


class Seq2SeqEncoder(nn.Module):
    """Embedding and GRU: one state for each source word (2H wide if bidirectional)."""

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        num_layers=1,
        dropout=0.0,
        bidirectional=False,
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = make_gru(embed_size, num_hiddens, num_layers, dropout, bidirectional)

    def forward(self, X, valid_lens):
        """Ids X (B, S), lengths (B,) -> outputs (B, S, H), hidden_state (L, B, H)."""
        check_source(X, valid_lens, self.embedding.num_embeddings)
        embedded, lens = self.embedding(X), valid_lens.cpu()  # (B, S, E), (B,)
        packed = pack_padded_sequence(
            embedded, lens, batch_first=True, enforce_sorted=False
        )
        packed, hidden_state = self.rnn(packed)  # no state has read padding
        outputs, _ = pad_packed_sequence(
            packed, batch_first=True, total_length=X.shape[1]
        )
        if self.rnn.bidirectional:  # (2L, B, H) -> (L, B, 2H): both directions joined
            hidden_state = torch.cat((hidden_state[0::2], hidden_state[1::2]), dim=-1)
        return outputs, hidden_state


class Bridge(nn.Module):
    """The encoder's last state (L, B, enc_hiddens) -> the decoder's first (L, B, H).

    Handed on unchanged when the sizes agree; else tanh of a linear map.
    """

    def __init__(self, enc_hiddens, num_hiddens):
        super().__init__()
        self.same = enc_hiddens == num_hiddens
        self.map = None if self.same else nn.Linear(enc_hiddens, num_hiddens)

    def forward(self, hidden_state):
        return hidden_state if self.same else torch.tanh(self.map(hidden_state))


class Decoder(nn.Module):
    """What all decoders share: embed the words, go through the steps, give logits.

    A decoder has an `embedding`, a `dense` layer, and two methods of its own:
    init_state: what the encoder returned, the source lengths (B,) -> the first state;
    unroll: words (B, T, E), a state -> what `dense` reads (B, T, …), the new state.
    """

    def forward(self, X, state, real=None):
        """Ids X (B, T) -> logits of the next word (B, T, V), and the new state.

        real (B, T), bool: logits only there -> (P, V) for P places, row by row.
        """
        check_ids(X, self.embedding.num_embeddings, "the target")
        outputs, state = self.unroll(self.embedding(X), state)
        return self.dense(outputs if real is None else outputs[real]), state


class FixedState(NamedTuple):
    """What the fixed-context decoder carries from step to step."""

    context: torch.Tensor  # (B, enc_hiddens): the encoder's last state, never changed
    hidden_state: torch.Tensor  # (L, B, H)


class Seq2SeqDecoder(Decoder):
    """Every word is read with one context, the encoder's last state (Cho et al., 2014).

    enc_hiddens: its size, None for num_hiddens.
    """

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        num_layers=1,
        dropout=0.0,
        enc_hiddens=None,
    ):
        super().__init__()
        enc_hiddens = enc_hiddens or num_hiddens
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = make_gru(enc_hiddens + embed_size, num_hiddens, num_layers, dropout)
        self.dense = nn.Linear(num_hiddens, vocab_size)
        self.bridge = Bridge(enc_hiddens, num_hiddens)

    def init_state(self, enc_outputs, enc_valid_lens=None):
        _, hidden_state = enc_outputs  # (L, B, enc_hiddens)
        return FixedState(hidden_state[-1], self.bridge(hidden_state))

    def unroll(self, embedded, state):
        context = state.context.unsqueeze(1)  # (B, 1, enc_hiddens)
        context = context.expand(-1, embedded.shape[1], -1)  # (B, T, enc_hiddens)
        inputs = torch.cat((context, embedded), dim=-1)  # (B, T, enc_hiddens + E)
        states, hidden_state = self.rnn(inputs, state.hidden_state)  # (B, T, H)
        return states, state._replace(hidden_state=hidden_state)


class AttentionState(NamedTuple):
    """What an attention decoder carries from step to step."""

    enc_outputs: torch.Tensor  # (B, S, enc_hiddens): the values
    projected_keys: torch.Tensor  # (B, S, H): U_a h_j, computed once a sentence
    hidden_state: torch.Tensor  # (L, B, H)
    enc_valid_lens: torch.Tensor  # (B,)
    attention_weights: torch.Tensor | None = None  # (B, T, S): the last call's


class AttentionDecoder(Decoder):
    """The loop of every decoder that attends: one `step` for each target word."""

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        keys = self.attention.project_keys(outputs)
        return AttentionState(outputs, keys, self.bridge(hidden_state), enc_valid_lens)

    def unroll(self, embedded, state):
        outputs, weights = [], []
        for x in embedded.split(1, dim=1):  # x: (B, 1, E)
            output, weight, state = self.step(x, state)
            outputs.append(output)
            weights.append(weight.detach())  # to look at, not to train
        weights = torch.cat(weights, dim=1)  # (B, T, S)
        self.attention_weights = weights
        return torch.cat(outputs, dim=1), state._replace(attention_weights=weights)

    def attend(self, query, state):
        """query (B, 1, H) -> context (B, 1, enc_hiddens), weights (B, 1, S)."""
        return self.attention.attend(
            query, state.projected_keys, state.enc_outputs, state.enc_valid_lens
        )

    def step(self, x, state):
        """A word x (B, 1, E) -> output (B, 1, H), weights (B, 1, S), the new state."""
        raise NotImplementedError


class Seq2SeqAttentionDecoder(AttentionDecoder):
    """Bahdanau et al. (2015): attend with s_{i-1}, then update to s_i."""

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        num_layers=1,
        dropout=0.0,
        enc_hiddens=None,
        attention=None,
    ):
        super().__init__()
        D, H = enc_hiddens or num_hiddens, num_hiddens
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.attention = attention or AdditiveAttention(D, H, H, dropout)
        self.rnn = make_gru(D + embed_size, H, num_layers, dropout)
        self.dense = nn.Linear(H, vocab_size)
        self.bridge = Bridge(D, H)

    def query(self, hidden_state):
        return hidden_state[-1].unsqueeze(1)  # s_{i-1} of the top layer: (B, 1, H)

    def step(self, x, state):
        context, weights = self.attend(self.query(state.hidden_state), state)
        inputs = torch.cat((context, x), dim=-1)  # (B, 1, enc_hiddens + E)
        s, hidden = self.rnn(inputs, state.hidden_state)  # s_i
        return self.output(s, context, x), weights, state._replace(hidden_state=hidden)

    def output(self, s, context, x):
        return s  # `dense` reads s_i (B, 1, H) alone; notebook 09 gives it more


class EncoderDecoder(nn.Module):
    """Encoder and decoder as one model."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, enc_X, dec_X, enc_valid_lens, real=None):
        """Ids (B, S), (B, T), lengths (B,) -> logits (B, T, V), decoder state.

        real: see `Decoder.forward`.
        """
        enc_outputs = self.encoder(enc_X, enc_valid_lens)
        state = self.decoder.init_state(enc_outputs, enc_valid_lens)
        return self.decoder(dec_X, state, real)


def check_ids(ids, vocab_size, name):
    """ValueError, in words, unless these are word ids of such a vocabulary."""
    whole = ids.dtype in (torch.int32, torch.int64)
    if ids.dim() != 2 or not whole or 0 in ids.shape:
        raise ValueError(
            f"{name} must be word ids of shape (batch, positions), neither 0; "
            f"got {ids.dtype} of shape {tuple(ids.shape)}"
        )
    low, high = (value.item() for value in torch.aminmax(ids))
    if low < 0 or high >= vocab_size:
        raise ValueError(
            f"{name} holds the id {low if low < 0 else high}, but the "
            f"vocabulary has ids 0 to {vocab_size - 1}: wrong vocabulary?"
        )


def check_source(X, valid_lens, vocab_size):
    """The same for a source and its lengths."""
    check_ids(X, vocab_size, "the source")
    check_lengths(valid_lens, X.shape[1], lowest=1)  # each ends with <eos>
    if tuple(valid_lens.shape) != (X.shape[0],):
        raise ValueError(
            f"valid_lens must have shape ({X.shape[0]},), one length a "
            f"sentence; got {tuple(valid_lens.shape)}"
        )
