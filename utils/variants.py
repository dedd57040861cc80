"""What notebooks 08, 09 and 12 put in place of a part of `seq2seq`, to compare.

Each gives another part to the decoder it comes from, or overrides one method of it. A
decoder that remembers more than `AttentionState` holds has a state of its own.
Letters in shape comments: B sentences in a batch, S source and T target positions,
D the size of an encoder state, E embedding size, H hidden units, L layers, V words.
"""

from collections import namedtuple

import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import BilinearAttention, masked_softmax
from utils.guards import require_one_of, require_whole
from utils.seq2seq import (
    AttentionDecoder,
    AttentionState,
    Bridge,
    Seq2SeqAttentionDecoder,
    Seq2SeqEncoder,
    make_gru,
)
from utils.text import SLOTS, UNK_ID


class FedState(namedtuple("FedState", [*AttentionState._fields, "fed"])):
    """`AttentionState`, and `fed`: what the next update reads, (B, 1, H or D or 0)."""


class LuongDecoder(AttentionDecoder):
    """Luong et al. (2015, sections 3 and 3.3): update to s_i, then attend with s_i.

    feed: what an update reads beside its word: the last step's "attentional" vector
    (input feeding), its "context", or "nothing". Else: as Seq2SeqAttentionDecoder, but
    the score is "general" when no attention is given.
    """

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        num_layers=1,
        dropout=0.0,
        enc_hiddens=None,
        feed="attentional",
        attention=None,
    ):
        super().__init__()
        D, H = enc_hiddens or num_hiddens, num_hiddens
        sizes = {"attentional": H, "context": D, "nothing": 0}
        require_one_of("feed", feed, sizes)
        self.feed, self.fed_size = feed, sizes[feed]
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = make_gru(self.fed_size + embed_size, H, num_layers, dropout)
        self.attention = attention or BilinearAttention(D, H, dropout=dropout)
        self.W_c = nn.Linear(D + H, H, bias=False)
        self.dense = nn.Linear(H, vocab_size)
        self.bridge = Bridge(D, H)

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        fed = state.enc_outputs.new_zeros(len(enc_valid_lens), 1, self.fed_size)
        return FedState(*state, fed)

    def step(self, x, state):
        inputs = torch.cat((state.fed, x), dim=-1)
        s, hidden_state = self.rnn(inputs, state.hidden_state)
        context, weights = self.attend(s, state)  # the query: s_i, (B, 1, H)
        output = torch.tanh(self.W_c(torch.cat((context, s), dim=-1)))
        fed = {"attentional": output, "context": context}.get(self.feed, state.fed)
        return output, weights, state._replace(hidden_state=hidden_state, fed=fed)


class LocalState(namedtuple("LocalState", [*FedState._fields, "number"])):
    """`FedState`, and `number`, (B,): how many steps were made."""


class LocalMixin:
    """Local attention (Luong et al., 2015, section 3.2): looks only near a place.

    That is at source words at most `reach` words from it. place: "monotonic" (local-m),
    the number of the step, and after the source's end its last word; or "predicted"
    (local-p), S sigmoid(v_p^T tanh(W_p s)) of a source of S words, by the state s that
    asks. There a weight is multiplied by exp(-d^2 / (2 sigma^2)), with d its distance
    from the place and sigma = reach / 2: the weights of a step sum to less than 1, as
    in the paper.
    """

    def __init__(self, *sizes, reach=5, place="monotonic", **options):
        require_whole("reach", reach)
        require_one_of("place", place, ("monotonic", "predicted"))
        super().__init__(*sizes, **options)
        self.reach, self.predicted = reach, place == "predicted"
        if self.predicted:
            H = self.rnn.hidden_size
            self.W_p = nn.Linear(H, H, bias=False)
            self.v_p = nn.Linear(H, 1, bias=False)

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)._asdict()
        number = torch.zeros_like(enc_valid_lens)
        return LocalState(**{"fed": None, **state}, number=number)

    def place(self, query, state):
        """A query (B, 1, H) -> the middle of its window, from 0: (B,)."""
        if not self.predicted:
            return state.number.minimum(state.enc_valid_lens - 1)
        share = torch.sigmoid(self.v_p(torch.tanh(self.W_p(query))))  # (B, 1, 1)
        return state.enc_valid_lens * share[:, 0, 0]

    def attend(self, query, state):
        scores = self.attention.score(query, state.projected_keys)  # (B, 1, S)
        positions = torch.arange(scores.shape[2], device=scores.device)
        distance = (positions - self.place(query, state).view(-1, 1, 1)).abs()
        scores = scores.masked_fill(distance > self.reach, -torch.inf)
        weights = masked_softmax(scores, state.enc_valid_lens)
        if self.predicted:
            weights = weights * torch.exp(-2 * (distance / self.reach) ** 2)
        context = torch.bmm(self.attention.dropout(weights), state.enc_outputs)
        return context, weights

    def step(self, x, state):
        output, weights, state = super().step(x, state)
        return output, weights, state._replace(number=state.number + 1)


class LocalDecoder(LocalMixin, Seq2SeqAttentionDecoder):
    """Attend with s_{i-1}, near a place; then update to s_i."""


class LuongLocalDecoder(LocalMixin, LuongDecoder):
    """Update to s_i; then attend with s_i, near a place, as Luong et al. did."""


class PointerEncoder(Seq2SeqEncoder):
    """It reads a word beyond the vocabulary as <unk>, and hands the ids on."""

    def forward(self, X, valid_lens):
        known = X.masked_fill(X >= self.embedding.num_embeddings, UNK_ID)
        return *super().forward(known, valid_lens), X


class PointerState(namedtuple("PointerState", [*AttentionState._fields, "source"])):
    """`AttentionState`, and `source`, (B, S): the ids that can be copied."""


class PointerDecoder(Seq2SeqAttentionDecoder):
    """Writes a word of the vocabulary, or points at one to copy (See et al., 2017).

    p(w) = p_gen p_vocab(w) + (1 - p_gen) (the weights of all places where w stands).
    Source and target have one vocabulary, which `extends`; for its V words and SLOTS
    more, log p(w) comes where other decoders give logits.
    """

    encoder_class = PointerEncoder

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        self.gate = nn.Linear(self.rnn.input_size + self.rnn.hidden_size, 1)

    def init_state(self, enc_outputs, enc_valid_lens):
        *enc_outputs, source = enc_outputs
        return PointerState(*super().init_state(enc_outputs, enc_valid_lens), source)

    def step(self, x, state):
        context, weights = self.attend(self.query(state.hidden_state), state)
        inputs = torch.cat((context, x), dim=-1)  # (B, 1, D + E)
        s, hidden = self.rnn(inputs, state.hidden_state)  # s_i
        p_gen = torch.sigmoid(self.gate(torch.cat((inputs, s), dim=-1)))  # (B, 1, 1)
        written = p_gen * self.dense(s).softmax(dim=-1)  # (B, 1, V)
        copied = (1 - p_gen) * weights  # (B, 1, S)
        p = F.pad(written, (0, SLOTS))  # (B, 1, V + SLOTS)
        p = p.scatter_add(2, state.source.unsqueeze(1), copied)
        log_p = p.clamp(min=1e-30).log()  # log 0 has no slope
        return log_p, weights, state._replace(hidden_state=hidden)

    def forward(self, X, state, real=None):
        known = X.masked_fill(X >= self.embedding.num_embeddings, UNK_ID)
        log_p, state = self.unroll(self.embedding(known), state)  # (B, T, V + SLOTS)
        return (log_p if real is None else log_p[real]), state
