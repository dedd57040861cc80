"""The decoders for real text: the same attention, kept from learning by heart.

Letters in shape comments: B sentences in a batch, D the size of an encoder state,
E embedding size, H hidden units, V words in the target vocabulary.
"""

import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import AdditiveAttention
from utils.rnnsearch import ReleasedState
from utils.seq2seq import (
    AttentionDecoder,
    Bridge,
    Decoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    make_gru,
)


class DropoutEmbedding(nn.Embedding):
    """Word vectors; in training a share `dropout` of their numbers is set to 0.

    Srivastava et al. (2014). What is left is scaled up, so the mean stays as it was.
    """

    def __init__(self, vocab_size, embed_size, dropout):
        super().__init__(vocab_size, embed_size)
        self.dropout = dropout
        nn.init.normal_(self.weight, std=embed_size**-0.5)  # `Readout` uses it, too

    def forward(self, ids):
        return F.dropout(super().forward(ids), self.dropout, self.training)


class Readout(nn.Module):
    """From state, context and last word, side by side (..., H + D + E), to logits.

    A hidden layer as in the paper's appendix A.2.2, but of tanh units, and of s_i. The
    matrix that writes words is the one that reads them (Press and Wolf, 2017).
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


class TranslatorDecoder(Seq2SeqAttentionDecoder):
    """`Seq2SeqAttentionDecoder` with dropout on what it reads, and a `Readout`."""

    def __init__(self, vocab_size, embed_size, num_hiddens, dropout, enc_hiddens):
        AttentionDecoder.__init__(self)  # its parts are new, its step is inherited
        D, E, H = enc_hiddens, embed_size, num_hiddens
        self.embedding = DropoutEmbedding(vocab_size, E, dropout)
        self.attention = AdditiveAttention(D, H, H)
        self.rnn = make_gru(D + E, H)
        self.dense = Readout(self.embedding, H + D + E, dropout)
        self.bridge, self.dropout = Bridge(D, H), nn.Dropout(dropout)

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        return super().init_state((self.dropout(outputs), hidden_state), enc_valid_lens)

    def output(self, s, context, x):
        return torch.cat((s, context, x), dim=-1)


class ReleasedTranslatorDecoder(TranslatorDecoder):
    """The same in the order of the program that Bahdanau et al. released.

    Update to s_i with the context of the step before, then attend with s_i, which has
    read the last word. The first update reads what s_0 looks up.
    """

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        context, _ = self.attend(self.query(state.hidden_state), state)
        return ReleasedState(*state, context)

    def step(self, x, state):
        inputs = torch.cat((state.context, x), dim=-1)  # (B, 1, D + E)
        s, hidden = self.rnn(inputs, state.hidden_state)  # s_i
        context, weights = self.attend(self.query(hidden), state)
        state = state._replace(hidden_state=hidden, context=context)
        return self.output(s, context, x), weights, state


class ConditionalTranslatorDecoder(TranslatorDecoder):
    """The same with two updates a word, and a look between them.

    The conditional GRU of Sennrich et al. (2017): the first update reads the last word,
    its state asks, and the second reads the context that it found.
    """

    def __init__(self, vocab_size, embed_size, num_hiddens, dropout, enc_hiddens):
        sizes = vocab_size, embed_size, num_hiddens, dropout, enc_hiddens
        super().__init__(*sizes)
        self.rnn = make_gru(embed_size, num_hiddens)
        self.second = make_gru(enc_hiddens, num_hiddens)

    def step(self, x, state):
        _, between = self.rnn(x, state.hidden_state)
        context, weights = self.attend(self.query(between), state)
        s, hidden = self.second(context, between)  # s_i
        return self.output(s, context, x), weights, state._replace(hidden_state=hidden)


class FixedTranslatorDecoder(Seq2SeqDecoder):
    """`TranslatorDecoder` without attention: one context, the encoder's last state."""

    def __init__(self, vocab_size, embed_size, num_hiddens, dropout, enc_hiddens):
        Decoder.__init__(self)
        D, E, H = enc_hiddens, embed_size, num_hiddens
        self.embedding = DropoutEmbedding(vocab_size, E, dropout)
        self.rnn = make_gru(D + E, H)
        self.dense = Readout(self.embedding, H + D + E, dropout)
        self.bridge, self.dropout = Bridge(D, H), nn.Dropout(dropout)

    def init_state(self, enc_outputs, enc_valid_lens=None):
        _, hidden_state = enc_outputs
        return super().init_state((None, self.dropout(hidden_state)))

    def unroll(self, embedded, state):
        states, new_state = super().unroll(embedded, state)
        context = state.context.unsqueeze(1).expand(-1, embedded.shape[1], -1)
        return torch.cat((states, context, embedded), dim=-1), new_state
