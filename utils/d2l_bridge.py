"""The `d2l` package, release 0.17.0, as the reference that this course compares with.

Nothing here is used by the models. `d2l` computes with time first, (T, B, …), inside;
the functions below take and return this course's order, batch first.
"""

import functools
import importlib
import sys
import types

import torch
from torch import nn


@functools.cache
def load_d2l():
    """The module `d2l.torch`.

    It imports torchvision for chapters on images alone, which may be missing, or not
    fit the installed torch: an empty module stands in during the import.
    """
    names = {"torchvision", "torchvision.transforms"} - sys.modules.keys()
    sys.modules.update({name: types.ModuleType(name) for name in names})
    try:
        return importlib.import_module("d2l.torch")
    finally:
        for name in names:
            del sys.modules[name]


def reference_attention(attention):
    """d2l's AdditiveAttention with a copy of this course's weights."""
    W_k, W_q = attention.W_k, attention.W_q
    sizes = W_k.in_features, W_q.in_features, W_k.out_features
    reference = load_d2l().AdditiveAttention(*sizes, attention.dropout.p)
    return _copied(attention, reference)


def reference_encoder(encoder):
    """d2l's Seq2SeqEncoder with a copy of the weights. It reads padding, unpacked.

    It has one direction: the weights of two don't load.
    """
    return _copied(encoder, load_d2l().Seq2SeqEncoder(*_sizes(encoder)))


def reference_decoder(decoder):
    """A `D2LAttentionDecoder` with a copy of this course's weights.

    The encoder has the decoder's size: weights of a bridge don't load.
    """
    reference = D2LAttentionDecoder(*_sizes(decoder))
    reference.attention = reference_attention(decoder.attention)  # its own dropout
    return _copied(decoder, reference)


def _sizes(part):
    rnn = part.rnn
    return *part.embedding.weight.shape, rnn.hidden_size, rnn.num_layers, rnn.dropout


def _copied(part, reference):
    reference.load_state_dict(part.state_dict())
    return reference.train(part.training)


class D2LAttentionDecoder(nn.Module):
    """d2l's attention layer in the loop that the book's chapter builds around it.

    Release 0.17.0 holds the layer; the attention decoder stands only in the book.
    """

    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers=1, dropout=0.0):
        super().__init__()
        H, d2l = num_hiddens, load_d2l()
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.attention = d2l.AdditiveAttention(H, H, H, dropout)
        self.rnn = nn.GRU(embed_size + H, H, num_layers, dropout=dropout)  # time first
        self.dense = nn.Linear(H, vocab_size)

    def init_state(self, enc_outputs, enc_valid_lens):
        states, last = enc_outputs  # (S, B, H), (L, B, H)
        return states.permute(1, 0, 2), last, enc_valid_lens  # (B, S, H): batch first

    def forward(self, X, state):
        states, hidden, lens = state
        steps, self.attention_weights = [], []
        for word in self.embedding(X.T):  # (B, E), one step each
            context = self.attention(hidden[-1][:, None], states, states, lens)
            self.attention_weights.append(self.attention.attention_weights)
            both = torch.cat([context[:, 0], word], dim=1)
            step, hidden = self.rnn(both[None], hidden)
            steps.append(step[0])
        return self.dense(torch.stack(steps, dim=1)), [states, hidden, lens]
