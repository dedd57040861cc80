"""A translator for real text: the same attention, kept from learning by heart.

The encoder, the attention and the order of a step are those of `seq2seq`. Dropout, an
output layer that also sees the context and the last word, and one matrix for reading
and writing words are added: little text is enough to train it.

Letters in shape comments: B sentences in a batch, S source and T target positions,
E embedding size, H hidden units, D the size of one encoder state, V target words.
"""

import torch
from torch import nn
from torch.nn import functional as F

from utils.seq2seq import (
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
    check_target,
)


class DropoutEmbedding(nn.Embedding):
    """Word vectors; in training a share `dropout` of their numbers is set to 0.

    Srivastava et al. (2014). What is left is scaled up, so the mean stays as it was.
    """

    def __init__(self, vocab_size, embed_size, dropout):
        super().__init__(vocab_size, embed_size)
        self.dropout = dropout
        nn.init.normal_(self.weight, std=embed_size**-0.5)  # it also writes words

    def forward(self, ids):
        return F.dropout(super().forward(ids), self.dropout, self.training)


class Readout(nn.Module):
    """From state, context and last word, side by side (..., H + D + E), to scores.

    A hidden layer as in the paper's appendix A.2.2, of tanh units. The matrix that
    writes words is the one that reads them (Press and Wolf, 2017).
    """

    def __init__(self, embedding, in_size, dropout):
        super().__init__()
        self.hidden = nn.Linear(in_size, embedding.embedding_dim)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(embedding.embedding_dim, embedding.num_embeddings)
        self.out.weight = embedding.weight

    def features(self, inputs):
        return self.dropout(torch.tanh(self.hidden(inputs)))  # (..., E)

    def forward(self, inputs):
        return self.out(self.features(inputs))  # (..., V)


def add_remedies(decoder, dropout):
    """Give a decoder of `seq2seq` a DropoutEmbedding, dropout and a Readout."""
    embedding, rnn = decoder.embedding, decoder.rnn
    decoder.embedding = DropoutEmbedding(
        embedding.num_embeddings, embedding.embedding_dim, dropout
    )
    decoder.dropout = nn.Dropout(dropout)
    in_size = rnn.hidden_size + rnn.input_size  # the state; context and last word
    decoder.dense = Readout(decoder.embedding, in_size, dropout)


class TranslatorDecoder(Seq2SeqAttentionDecoder):
    """`Seq2SeqAttentionDecoder` with dropout on what it reads, and a `Readout`."""

    def __init__(self, vocab_size, embed_size, num_hiddens, dropout, enc_hiddens):
        super().__init__(vocab_size, embed_size, num_hiddens, enc_hiddens=enc_hiddens)
        add_remedies(self, dropout)

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        return super().init_state((self.dropout(outputs), hidden_state), enc_valid_lens)

    def step(self, x, state):
        output, weights, state = super().step(x, state)
        context = torch.bmm(weights, state.enc_outputs)  # c_i, for the readout
        return torch.cat((output, context, x), dim=-1), weights, state


class FixedTranslatorDecoder(Seq2SeqDecoder):
    """The same without attention: one context, the encoder's last state."""

    def __init__(self, vocab_size, embed_size, num_hiddens, dropout, enc_hiddens):
        super().__init__(vocab_size, embed_size, num_hiddens, enc_hiddens=enc_hiddens)
        add_remedies(self, dropout)

    def init_state(self, enc_outputs, enc_valid_lens=None):
        _, hidden_state = enc_outputs
        return super().init_state((None, self.dropout(hidden_state)))

    def forward(self, X, state):
        check_target(X, self.embedding.num_embeddings)
        embedded = self.embedding(X)  # (B, T, E)
        context = state.context.unsqueeze(1).expand(-1, X.shape[1], -1)
        inputs = torch.cat((context, embedded), dim=-1)
        outputs, hidden_state = self.rnn(inputs, state.hidden_state)
        scores = self.dense(torch.cat((outputs, inputs), dim=-1))
        return scores, state._replace(hidden_state=hidden_state)


DECODERS = {"translator": TranslatorDecoder, "fixed translator": FixedTranslatorDecoder}


def build_translator(
    kind, src_vocab_size, tgt_vocab_size, embed_size, num_hiddens, enc_hiddens, dropout
):
    """A model from plain values, as `build_model`; kind: a key of DECODERS.

    enc_hiddens: size of the encoder's states, both directions together.
    """
    config = dict(locals())
    if kind not in DECODERS:
        raise ValueError(f"kind must be one of {sorted(DECODERS)}, got {kind!r}")
    if enc_hiddens % 2:
        raise ValueError(
            f"a bidirectional encoder needs an even size, got {enc_hiddens}"
        )
    encoder = Seq2SeqEncoder(
        src_vocab_size, embed_size, enc_hiddens // 2, bidirectional=True
    )
    encoder.embedding = DropoutEmbedding(src_vocab_size, embed_size, dropout)
    decoder = DECODERS[kind](
        tgt_vocab_size, embed_size, num_hiddens, dropout, enc_hiddens
    )
    model = EncoderDecoder(encoder, decoder)
    model.config = config
    return model
