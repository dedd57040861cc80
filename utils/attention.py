"""Attention: which source positions matter for the next target word.

Letters in shape comments: B sentences in a batch, Q queries, K keys (source
positions), H hidden units, D the size of one value.
"""

import torch
from torch import nn
from torch.nn import functional as F


def length_mask(valid_lens, num_positions):
    """True where a position is real, False where it is padding.

    valid_lens: whole numbers of any shape (...). Returns bool
    (..., num_positions). Raises ValueError on a length below 0 or above
    num_positions.
    """
    check_lengths(valid_lens, num_positions)
    positions = torch.arange(num_positions, device=valid_lens.device)
    return positions < valid_lens.unsqueeze(-1)


def masked_softmax(X, valid_lens=None):
    """Softmax over the keys that are real (Bahdanau et al., 2015, equation 6).

    X: scores (B, Q, K). valid_lens: (B,), or (B, Q) with a length for each query;
    None when nothing is padding. Returns weights (B, Q, K) of X's type. Padding gets
    weight 0 and gradient 0; so does a whole row that has no real key. X is not changed.
    Raises ValueError when the shapes don't fit or a length is out of range.
    """
    check_scores(X, valid_lens)
    if valid_lens is None:
        return F.softmax(X, dim=-1)
    real = length_mask(valid_lens, X.shape[-1])  # (B, K) or (B, Q, K)
    if valid_lens.dim() == 1:
        real = real.unsqueeze(1)  # (B, 1, K): the same for every query
    # -inf takes a position out of the sum. A row of nothing but -inf would be
    # 0/0, so a row without a real key gets zeros here, and weight 0 below.
    filler = torch.where(real.any(-1, keepdim=True), -torch.inf, 0.0).to(X.dtype)
    weights = F.softmax(torch.where(real, X, filler), dim=-1)
    return weights.masked_fill(~real, 0.0)


class AdditiveAttention(nn.Module):
    """Additive attention (Bahdanau et al., 2015, section 3.1 and A.1.2).

    e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j), with W_q = W_a, W_k = U_a, w_v = v_a.
    Keys and queries may differ in size. `attention_weights`: those of the last call.
    """

    def __init__(self, key_size, query_size, num_hiddens, dropout=0.0):
        super().__init__()
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        """(B, Q, query_size), (B, K, key_size), (B, K, D) -> context (B, Q, D)."""
        check_attention(self, queries, keys, values)
        projected_keys = self.W_k(keys)  # (B, K, H)
        context, self.attention_weights = self.attend(
            queries, projected_keys, values, valid_lens
        )
        return context

    def attend(self, queries, projected_keys, values, valid_lens=None):
        """The same with projected keys -> context (B, Q, D), weights (B, Q, K)."""
        sums = self.W_q(queries).unsqueeze(2) + projected_keys.unsqueeze(1)
        scores = self.w_v(torch.tanh(sums)).squeeze(-1)  # (B, Q, K, H) -> (B, Q, K)
        weights = masked_softmax(scores, valid_lens)
        return torch.bmm(self.dropout(weights), values), weights


def check_lengths(valid_lens, num_positions):
    """TypeError or ValueError, in words, unless these can be lengths."""
    if not torch.is_tensor(valid_lens) or valid_lens.is_floating_point():
        raise TypeError(
            "valid_lens must be a tensor of whole numbers, "
            f"got {getattr(valid_lens, 'dtype', type(valid_lens).__name__)}"
        )
    if valid_lens.numel() == 0:
        return
    low, high = (value.item() for value in torch.aminmax(valid_lens))
    if low < 0 or high > num_positions:
        raise ValueError(
            f"valid_lens must lie between 0 and {num_positions}, the number of "
            f"positions; got {low if low < 0 else high}"
        )


def check_scores(X, valid_lens):
    """ValueError, in words, unless scores and lengths fit together."""
    if X.dim() != 3 or not X.is_floating_point():
        raise ValueError(
            "scores must be floating-point of shape (batch, queries, keys), "
            f"got {X.dtype} of shape {tuple(X.shape)}"
        )
    if valid_lens is not None and tuple(valid_lens.shape) not in (
        (X.shape[0],),
        (X.shape[0], X.shape[1]),
    ):
        raise ValueError(
            f"valid_lens must have shape ({X.shape[0]},) or "
            f"({X.shape[0]}, {X.shape[1]}) for scores of shape {tuple(X.shape)}, "
            f"got {tuple(valid_lens.shape)}"
        )


def check_attention(attention, queries, keys, values):
    """ValueError, in words, unless queries, keys and values fit the attention."""
    for name, tensor, size in (
        ("queries", queries, attention.W_q.in_features),
        ("keys", keys, attention.W_k.in_features),
        ("values", values, None),
    ):
        if tensor.dim() != 3 or (size is not None and tensor.shape[2] != size):
            raise ValueError(
                f"{name} must have shape (batch, number of {name}, "
                f"{size or 'value size'}), got {tuple(tensor.shape)}"
            )
    if keys.shape[:2] != values.shape[:2] or queries.shape[0] != keys.shape[0]:
        raise ValueError(
            "queries, keys and values must agree: one batch size, a value for each "
            f"key; got {tuple(queries.shape)}, {tuple(keys.shape)} and "
            f"{tuple(values.shape)}"
        )
