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
    padding = ~length_mask(valid_lens, X.shape[-1])  # (B, K) or (B, Q, K)
    if valid_lens.dim() == 1:
        padding = padding.unsqueeze(1)  # (B, 1, K): the same for every query
    scores = X.masked_fill(padding, -torch.inf)  # takes a position out of the sum
    if valid_lens.all():
        return F.softmax(scores, dim=-1)
    # A row of nothing but -inf would be 0/0: it gets zeros here, and weight 0 below.
    empty = padding.all(dim=-1, keepdim=True)
    return F.softmax(scores.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)


class Attention(nn.Module):
    """Scores -> weights -> context: what all kinds of attention share.

    A subclass defines two things: `project_keys`, called one time for each sentence,
    and `score`. `attention_weights` are those of the last call.
    """

    def __init__(self, key_size, query_size, dropout=0.0):
        super().__init__()
        self.key_size, self.query_size = key_size, query_size
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, valid_lens=None):
        """(B, Q, query_size), (B, K, key_size), (B, K, D) -> context (B, Q, D)."""
        check_attention(self, queries, keys, values)
        context, self.attention_weights = self.attend(
            queries, self.project_keys(keys), values, valid_lens
        )
        return context

    def attend(self, queries, projected_keys, values, valid_lens=None):
        """The same with projected keys -> context (B, Q, D), weights (B, Q, K)."""
        scores = self.score(queries, projected_keys)  # (B, Q, K)
        weights = masked_softmax(scores, valid_lens)  # (B, Q, K)
        return torch.bmm(self.dropout(weights), values), weights


class AdditiveAttention(Attention):
    """Additive attention (Bahdanau et al., 2015, section 3.1 and A.1.2).

    e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j), with W_q = W_a, W_k = U_a, w_v = v_a.
    Keys and queries may differ in size.
    """

    def __init__(self, key_size, query_size, num_hiddens, dropout=0.0):
        super().__init__(key_size, query_size, dropout)
        self.W_k = nn.Linear(key_size, num_hiddens, bias=False)
        self.W_q = nn.Linear(query_size, num_hiddens, bias=False)
        self.w_v = nn.Linear(num_hiddens, 1, bias=False)

    def project_keys(self, keys):
        """U_a h_j: (B, K, key_size) -> (B, K, H). Once for each sentence is enough."""
        return self.W_k(keys)

    def score(self, queries, projected_keys):
        """(B, Q, query_size), (B, K, H) -> scores (B, Q, K)."""
        projected_queries = self.W_q(queries).unsqueeze(2)  # (B, Q, 1, H)
        sums = projected_queries + projected_keys.unsqueeze(1)  # (B, Q, K, H)
        return self.w_v(torch.tanh(sums)).squeeze(-1)  # (B, Q, K, 1) -> (B, Q, K)


class DotProductAttention(Attention):
    """s^T h, the score "dot" of Luong et al. (2015, section 3.1), for equal sizes.

    scaled: divided by the size's square root (Vaswani et al., 2017, section 3.2.1).
    Raises ValueError for sizes that differ.
    """

    def __init__(self, key_size, query_size, scaled=False, dropout=0.0):
        check_equal_sizes(key_size, query_size)
        super().__init__(key_size, query_size, dropout)
        self.scale = query_size**-0.5 if scaled else 1.0

    def project_keys(self, keys):
        """The keys as they are."""
        return keys

    def score(self, queries, projected_keys):
        """(B, Q, H), (B, K, H) -> scores (B, Q, K)."""
        return torch.bmm(queries * self.scale, projected_keys.transpose(1, 2))


class BilinearAttention(DotProductAttention):
    """s^T W_a h, the score "general" of Luong et al. (2015, section 3.1).

    A dot product with W_k h, for W_k = W_a: the sizes may differ. scaled: divided by
    the square root of the query's size.
    """

    def __init__(self, key_size, query_size, scaled=False, dropout=0.0):
        super().__init__(query_size, query_size, scaled, dropout)
        self.key_size = key_size
        self.W_k = nn.Linear(key_size, query_size, bias=False)

    def project_keys(self, keys):
        """W_a h_j: (B, K, key_size) -> (B, K, query_size)."""
        return self.W_k(keys)


WHOLE_NUMBERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_lengths(valid_lens, num_positions, lowest=0):
    """TypeError or ValueError, in words, unless these can be lengths."""
    if not torch.is_tensor(valid_lens) or valid_lens.dtype not in WHOLE_NUMBERS:
        found = getattr(valid_lens, "dtype", type(valid_lens).__name__)
        mask = "; of a mask, mask.sum(-1) gives them" if found is torch.bool else ""
        raise TypeError(
            f"valid_lens must be a tensor of whole numbers, lengths, got {found}{mask}"
        )
    for length in valid_lens.flatten().tolist():
        if not lowest <= length <= num_positions:
            raise ValueError(
                f"valid_lens must lie between {lowest} and {num_positions}, the number "
                f"of positions; got {length}"
            )


def check_scores(X, valid_lens):
    """ValueError, in words, unless scores and lengths fit together."""
    if X.dim() != 3 or not X.is_floating_point():
        raise ValueError(
            "scores must be floating-point of shape (batch, queries, keys), "
            f"got {X.dtype} of shape {tuple(X.shape)}"
        )
    B, Q, _ = X.shape
    if torch.is_tensor(valid_lens) and tuple(valid_lens.shape) not in ((B,), (B, Q)):
        raise ValueError(
            f"valid_lens must have shape ({B},) or ({B}, {Q}) for scores of shape "
            f"{tuple(X.shape)}, got {tuple(valid_lens.shape)}"
        )


def check_attention(attention, queries, keys, values):
    """ValueError, in words, unless queries, keys and values fit the attention."""
    q, k, v = (tuple(tensor.shape) for tensor in (queries, keys, values))
    sizes = (attention.query_size, attention.key_size)
    three = len(q) == len(k) == len(v) == 3
    if not three or (q[2], k[2]) != sizes or k[:2] != v[:2] or q[0] != k[0]:
        raise ValueError(
            f"queries must be (batch, queries, {sizes[0]}), keys (batch, keys, "
            f"{sizes[1]}) and values (batch, keys, any size); got {q}, {k} and {v}"
        )


def check_equal_sizes(key_size, query_size):
    """ValueError, in words, unless the sizes are equal."""
    if key_size != query_size:
        raise ValueError(
            f"a dot product needs keys and queries of one size, got {key_size} and "
            f"{query_size}: BilinearAttention and AdditiveAttention take any sizes"
        )
