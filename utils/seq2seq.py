"""Sequence to sequence: an encoder reads, a decoder writes.

Letters in shape comments: B sentences in a batch, S source and T target positions,
E embedding size, H hidden units, L layers, V words in the target vocabulary.
"""

from typing import NamedTuple

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from utils.attention import AdditiveAttention


class Seq2SeqEncoder(nn.Module):
    """Embedding and GRU: one state for each source word (2H wide if bidirectional).

    Sentences are packed, so no state has read padding.
    """

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
        self.rnn = nn.GRU(
            embed_size,
            num_hiddens,
            num_layers,
            dropout=dropout if num_layers > 1 else 0.0,  # between layers
            bidirectional=bidirectional,
            batch_first=True,
        )

    def forward(self, X, valid_lens):
        """Ids X (B, S), lengths (B,) -> outputs (B, S, H), hidden_state (L, B, H)."""
        check_source(X, valid_lens, self.embedding.num_embeddings)
        packed = pack_padded_sequence(
            self.embedding(X), valid_lens.cpu(), batch_first=True, enforce_sorted=False
        )
        packed_outputs, hidden_state = self.rnn(packed)
        outputs, _ = pad_packed_sequence(
            packed_outputs, batch_first=True, total_length=X.shape[1]
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
    """What every decoder here is made of.

    The GRU reads the context and the last word's embedding, side by side.
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
        self.rnn = nn.GRU(
            enc_hiddens + embed_size,
            num_hiddens,
            num_layers,
            dropout=dropout if num_layers > 1 else 0.0,  # between layers
            batch_first=True,
        )
        self.dense = nn.Linear(num_hiddens, vocab_size)
        self.bridge = Bridge(enc_hiddens, num_hiddens)

    def init_state(self, enc_outputs, enc_valid_lens):
        """What the encoder returned, and the source lengths -> the first state."""
        raise NotImplementedError


class FixedState(NamedTuple):
    """What the fixed-context decoder carries from step to step."""

    context: torch.Tensor  # (B, enc_hiddens): the encoder's last state, never changed
    hidden_state: torch.Tensor  # (L, B, H)


class Seq2SeqDecoder(Decoder):
    """The decoder before attention: every step sees one and the same context.

    The context is the encoder's last state, given again with each word (Cho et al.,
    2014). Ids X (B, T) -> scores of the next word (B, T, V), and the new state.
    """

    def init_state(self, enc_outputs, enc_valid_lens=None):
        _, hidden_state = enc_outputs
        return FixedState(hidden_state[-1], self.bridge(hidden_state))

    def forward(self, X, state):
        check_target(X, self.embedding.num_embeddings)
        embedded = self.embedding(X)  # (B, T, E)
        context = state.context.unsqueeze(1).expand(-1, X.shape[1], -1)
        inputs = torch.cat((context, embedded), dim=-1)  # (B, T, enc_hiddens + E)
        outputs, hidden_state = self.rnn(inputs, state.hidden_state)
        return self.dense(outputs), state._replace(hidden_state=hidden_state)


class AttentionState(NamedTuple):
    """What the attention decoder carries from step to step."""

    enc_outputs: torch.Tensor  # (B, S, enc_hiddens): the values
    projected_keys: torch.Tensor  # (B, S, H): U_a h_j, computed once a sentence
    hidden_state: torch.Tensor  # (L, B, H)
    enc_valid_lens: torch.Tensor  # (B,)


class AttentionDecoder(Decoder):
    """The loop of every decoder that attends: one `step` for each target word.

    Ids X (B, T) -> scores of the next word (B, T, V), and the new state.
    `attention_weights`: those of the last call, (B, T, S), without gradient.
    """

    def forward(self, X, state):
        check_target(X, self.embedding.num_embeddings)
        outputs, weights = [], []
        for x in self.embedding(X).split(1, dim=1):  # x: (B, 1, E)
            output, weight, state = self.step(x, state)
            outputs.append(output)
            weights.append(weight.detach())
        self._attention_weights = torch.cat(weights, dim=1)
        return self.dense(torch.cat(outputs, dim=1)), state

    def step(self, x, state):
        """A word x (B, 1, E) -> output (B, 1, H), weights (B, 1, S), the new state."""
        raise NotImplementedError

    @property
    def attention_weights(self):
        return self._attention_weights


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
    ):
        super().__init__(
            vocab_size, embed_size, num_hiddens, num_layers, dropout, enc_hiddens
        )
        self.attention = AdditiveAttention(
            enc_hiddens or num_hiddens, num_hiddens, num_hiddens, dropout
        )

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        return AttentionState(
            outputs,
            self.attention.project_keys(outputs),
            self.bridge(hidden_state),
            enc_valid_lens,
        )

    def query(self, hidden_state):
        return hidden_state[-1].unsqueeze(1)  # the top layer's: (B, 1, H)

    def step(self, x, state):
        query = self.query(state.hidden_state)  # s_{i-1}: (B, 1, H)
        context, weights = self.attention.attend(
            query, state.projected_keys, state.enc_outputs, state.enc_valid_lens
        )
        inputs = torch.cat((context, x), dim=-1)  # (B, 1, enc_hiddens + E)
        output, hidden_state = self.rnn(inputs, state.hidden_state)  # s_i
        return output, weights, state._replace(hidden_state=hidden_state)


class EncoderDecoder(nn.Module):
    """Encoder and decoder as one model."""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def forward(self, enc_X, dec_X, enc_valid_lens):
        """Ids (B, S), (B, T), lengths (B,) -> scores (B, T, V), decoder state."""
        enc_outputs = self.encoder(enc_X, enc_valid_lens)
        state = self.decoder.init_state(enc_outputs, enc_valid_lens)
        return self.decoder(dec_X, state)


def build_model(
    kind,
    src_vocab_size,
    tgt_vocab_size,
    embed_size,
    num_hiddens,
    num_layers=1,
    dropout=0.0,
    bidirectional=False,
    enc_hiddens=None,
):
    """A model from plain values, so that a checkpoint can store them: `model.config`.

    kind: "attention" or "fixed". enc_hiddens: size of the encoder's states, both
    directions together; None for num_hiddens. Raises ValueError on an unknown kind.
    """
    config = dict(locals())
    decoders = {"attention": Seq2SeqAttentionDecoder, "fixed": Seq2SeqDecoder}
    if kind not in decoders:
        raise ValueError(f"kind must be one of {sorted(decoders)}, got {kind!r}")
    enc_hiddens = enc_hiddens or num_hiddens
    if bidirectional and enc_hiddens % 2:
        raise ValueError(
            f"a bidirectional encoder needs an even size, got {enc_hiddens}"
        )
    encoder = Seq2SeqEncoder(
        src_vocab_size,
        embed_size,
        enc_hiddens // (1 + bidirectional),
        num_layers,
        dropout,
        bidirectional,
    )
    decoder = decoders[kind](
        tgt_vocab_size, embed_size, num_hiddens, num_layers, dropout, enc_hiddens
    )
    model = EncoderDecoder(encoder, decoder)
    model.config = config
    return model


def check_ids(ids, vocab_size, name):
    """ValueError, in words, unless these are word ids of such a vocabulary."""
    if ids.dim() != 2 or ids.is_floating_point() or 0 in ids.shape:
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
    if tuple(valid_lens.shape) != (X.shape[0],):
        raise ValueError(
            f"valid_lens must have shape ({X.shape[0]},), one length a "
            f"sentence; got {tuple(valid_lens.shape)}"
        )
    low, high = (value.item() for value in torch.aminmax(valid_lens))
    if low < 1 or high > X.shape[1]:
        raise ValueError(
            f"every source length must lie between 1 and {X.shape[1]}, got "
            f"{low if low < 1 else high}; even an empty sentence has <eos>"
        )


def check_target(X, vocab_size):
    """The same for a target."""
    check_ids(X, vocab_size, "the target")
