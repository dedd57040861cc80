"""From one query at a time to all at once: heads, self-attention, the Transformer.

Vaswani et al. (2017). Letters in shape comments: B sentences in a batch, Q queries,
K keys, S source and T target positions, H hidden units, N heads, D = H / N the size of
a head, L layers, V words in the target vocabulary.
"""

from typing import NamedTuple

import torch
from torch import nn

from utils.attention import Attention, DotProductAttention, length_mask
from utils.guards import require_whole
from utils.seq2seq import Decoder, check_source


class MultiHeadAttention(Attention):
    """N scaled dot products, each in a space of its own (3.2.2). Keys are values, too.

    `head_weights`: those of the last call, (B, N, Q, K).
    """

    def __init__(self, key_size, query_size, num_hiddens, num_heads, dropout=0.0):
        super().__init__(key_size, query_size, dropout)
        self.num_heads, D = num_heads, head_size(num_hiddens, num_heads)
        self.one_head = DotProductAttention(D, D, scaled=True, dropout=dropout)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.W_kv = nn.Linear(key_size, 2 * num_hiddens, bias=False)  # W_k, W_v
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def forward(self, queries, keys, values, valid_lens=None):
        check_same(keys, values)
        return super().forward(queries, keys, values, valid_lens)

    def project_keys(self, keys):
        """Keys and values of all heads: (B, K, key_size) -> (B, K, 2H)."""
        return self.W_kv(keys)

    def attend(self, queries, projected_keys, values=None, valid_lens=None):
        """-> context (B, Q, H); weights (B, Q, K), the mean of the heads'."""
        N, parts = self.num_heads, (self.W_q(queries), *projected_keys.chunk(2, dim=-1))
        lens = None if valid_lens is None else valid_lens.repeat_interleave(N, dim=0)
        contexts, weights = self.one_head.attend(*(split(x, N) for x in parts), lens)
        self.head_weights = weights.detach().unflatten(0, (-1, N))
        return self.W_o(join(contexts, N)), self.head_weights.mean(dim=1)


def split(x, num_heads):
    """(B, K, H) -> (BN, K, D): every head a row of the batch, with its part of H."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)


def join(x, num_heads):
    """Back: (BN, K, D) -> (B, K, H)."""
    return x.unflatten(0, (-1, num_heads)).transpose(1, 2).flatten(2)


def position_codes(positions, size):
    """Sines and cosines that tell positions apart (section 3.5).

    positions (T,) -> (T, size). Wavelengths go from 2π to almost 20,000π; size is even.
    """
    rates = 10_000 ** (-torch.arange(0, size, 2, device=positions.device) / size)
    angles = positions.unsqueeze(1) * rates
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def add_positions(embedded, start=0):
    """Words (B, T, H) and the codes of their positions, start and following, added."""
    positions = torch.arange(start, start + embedded.shape[1], device=embedded.device)
    return embedded + position_codes(positions, embedded.shape[2])


def causal_lens(X, start=0):
    """The causal mask of words X (B, T), as a length for each query (B, T).

    The first may see itself and the `start` words before it; each next one more.
    """
    lens = torch.arange(start + 1, start + X.shape[1] + 1, device=X.device)
    return lens.expand(X.shape)


class TransformerEncoder(nn.Module):
    """Self-attention in place of a GRU, with the layers of torch.nn (section 3.1)."""

    def __init__(
        self, vocab_size, num_hiddens, num_heads, num_layers, num_ffn, dropout=0.0
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, num_hiddens)
        sizes = num_hiddens, num_heads, num_ffn, dropout
        options = {"batch_first": True, "norm_first": True}
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(*sizes, **options) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(num_hiddens)

    def forward(self, X, valid_lens):
        """Ids X (B, S), lengths (B,) -> outputs (B, S, H), and no last state."""
        check_source(X, valid_lens, self.embedding.num_embeddings)
        padding = ~length_mask(valid_lens, X.shape[1])
        x = add_positions(self.embedding(X))
        for layer in self.layers:
            x = layer(x, src_key_padding_mask=padding)
        return self.norm(x), None


class TransformerLayer(nn.Module):
    """A decoder's layer: attend to what is written, to the source; two linear maps.

    Each adds what it computes from its normalised input to that input ("pre-norm").
    """

    def __init__(self, num_hiddens, num_heads, num_ffn, dropout=0.0):
        super().__init__()
        sizes = num_hiddens, num_hiddens, num_hiddens, num_heads
        self.self_attention = MultiHeadAttention(*sizes, dropout)
        self.attention = MultiHeadAttention(*sizes, dropout)
        self.ffn = nn.Sequential(
            nn.Linear(num_hiddens, num_ffn), nn.ReLU(), nn.Linear(num_ffn, num_hiddens)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(num_hiddens) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, written, seen, source, source_lens):
        """Words x (B, T, H) -> (B, T, H); `written`, these added; weights (B, T, S).

        written (B, t, 2H): keys and values of the words before. seen (B, T): how many
        words each may see. source (B, S, 2H): keys and values of the source.
        """
        y = self.norms[0](x)
        written = torch.cat((written, self.self_attention.project_keys(y)), dim=1)
        y, _ = self.self_attention.attend(y, written, valid_lens=seen)
        x = x + self.dropout(y)
        y = self.norms[1](x)
        y, weights = self.attention.attend(y, source, valid_lens=source_lens)
        x = x + self.dropout(y)
        return x + self.dropout(self.ffn(self.norms[2](x))), written, weights


class TransformerState(NamedTuple):
    """What the decoder carries from step to step: keys and values, projected."""

    projected_keys: torch.Tensor  # (B, L, S, 2H): of the source, once a sentence
    written: torch.Tensor  # (B, L, t, 2H): of the t target words read so far
    enc_valid_lens: torch.Tensor  # (B,)
    attention_weights: torch.Tensor | None = None  # (B, T, S): the last call's


class TransformerDecoder(Decoder):
    """Self-attention in place of a GRU: all words at once, or step by step.

    `attention_weights`: the last call's, (B, T, S), the mean of all layers' heads.
    """

    def __init__(
        self, vocab_size, num_hiddens, num_heads, num_layers, num_ffn, dropout=0.0
    ):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, num_hiddens)
        self.layers = nn.ModuleList(
            TransformerLayer(num_hiddens, num_heads, num_ffn, dropout)
            for _ in range(num_layers)
        )
        norm, dense = nn.LayerNorm(num_hiddens), nn.Linear(num_hiddens, vocab_size)
        self.dense = nn.Sequential(norm, dense)

    def init_state(self, enc_outputs, enc_valid_lens):
        keys = [layer.attention.project_keys(enc_outputs[0]) for layer in self.layers]
        keys = torch.stack(keys, dim=1)
        return TransformerState(keys, keys[:, :, :0], enc_valid_lens)

    def unroll(self, embedded, state):
        start, written, weights = state.written.shape[2], [], []
        x, seen = add_positions(embedded, start), causal_lens(embedded[..., 0], start)
        for i, layer in enumerate(self.layers):
            source = state.projected_keys[:, i], state.enc_valid_lens
            x, keys, row = layer(x, state.written[:, i], seen, *source)
            written.append(keys)
            weights.append(row)
        weights, written = torch.stack(weights).mean(dim=0), torch.stack(written, dim=1)
        self.attention_weights = weights
        return x, state._replace(written=written, attention_weights=weights)


def check_same(keys, values):
    """ValueError, in words, unless the values are the keys."""
    if values is not keys and not torch.equal(keys, values):
        raise ValueError(
            "MultiHeadAttention reads keys and values from the same states: "
            "give the keys as values"
        )


def head_size(num_hiddens, num_heads):
    """H / N; ValueError, in words, unless it is a whole number."""
    require_whole("num_heads", num_heads)
    if num_hiddens % num_heads:
        raise ValueError(
            f"{num_hiddens} hidden units can't be shared out evenly among {num_heads} "
            "heads: choose a number of heads that divides them"
        )
    return num_hiddens // num_heads
