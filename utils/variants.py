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

from utils.attention import (
    AdditiveAttention,
    Attention,
    BilinearAttention,
    masked_softmax,
)
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


class LocationAttention(Attention):
    """W_a s: a score for each position, blind to what stands there.

    "location" of Luong et al. (2015, section 3.1, equation 8). It knows num_positions
    positions; a longer sentence has no scores that fit its keys.
    """

    def __init__(self, key_size, query_size, num_positions, dropout=0.0):
        require_whole("num_positions", num_positions)
        super().__init__(key_size, query_size, dropout)
        self.W_q = nn.Linear(query_size, num_positions, bias=False)

    def project_keys(self, keys):
        """The keys as they are: their number is all that is used."""
        return keys

    def score(self, queries, projected_keys):
        """(B, Q, query_size), (B, K, key_size) -> scores (B, Q, K)."""
        return self.W_q(queries)[..., : projected_keys.shape[1]]


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


class ContextOutputDecoder(Seq2SeqAttentionDecoder):
    """Attend with s_{i-1}, update to s_i; the output reads the context, too.

    It reads tanh(W_c [c_i; s_i]), as LuongDecoder's does. In Bahdanau et al. (2015,
    equation 4) the output depends on c_i as well.
    """

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        D, H = self.attention.key_size, self.rnn.hidden_size
        self.W_c = nn.Linear(D + H, H, bias=False)

    def output(self, s, context, x):
        return torch.tanh(self.W_c(torch.cat((context, s), dim=-1)))


class BottomQueryDecoder(Seq2SeqAttentionDecoder):
    """The decoder of Bahdanau et al. (2015), but the lowest layer's state asks."""

    def query(self, hidden_state):
        return hidden_state[0].unsqueeze(1)  # (B, 1, H)


class HierarchicalDecoder(AttentionDecoder):
    """Each layer asks with its own state and reads its own context."""

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        num_layers=2,
        dropout=0.0,
        enc_hiddens=None,
    ):
        super().__init__()
        D, H = enc_hiddens or num_hiddens, num_hiddens
        below = [embed_size] + [H] * (num_layers - 1)  # read beside the context
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = nn.ModuleList(make_gru(D + size, H) for size in below)
        self.attention = nn.ModuleList(
            AdditiveAttention(D, H, H, dropout) for _ in below
        )
        self.dense = nn.Linear(H, vocab_size)
        self.bridge = Bridge(D, H)

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        keys = torch.cat([a.project_keys(outputs) for a in self.attention], dim=-1)
        return AttentionState(outputs, keys, self.bridge(hidden_state), enc_valid_lens)

    def step(self, x, state):
        keys, hidden, weights = state.projected_keys.chunk(len(self.rnn), -1), [], []
        values, lens = state.enc_outputs, state.enc_valid_lens
        for layer, s in enumerate(state.hidden_state):  # s: (B, H)
            context, weight = self.attention[layer].attend(
                s.unsqueeze(1), keys[layer], values, lens
            )
            x, s = self.rnn[layer](torch.cat((context, x), dim=-1), s.unsqueeze(0))
            hidden.append(s)
            weights.append(weight)
        hidden = torch.cat(hidden)
        return x, self.shown(weights), state._replace(hidden_state=hidden)

    def shown(self, weights):
        """What the step returns of the layers' weights, each (B, 1, S): their mean."""
        return torch.stack(weights).mean(0)


class WindowState(namedtuple("WindowState", [*AttentionState._fields, "place"])):
    """`AttentionState`, and `place`, (B,): around which position the next step looks.

    Counted from 0; it may stand between two words.
    """


class WindowDecoder(Seq2SeqAttentionDecoder):
    """Looks only at source words at most `reach` words from where it looked before.

    That place is the mean position under the weights of the last step, and at first the
    first word. It has the parameters of the decoder it comes from.
    """

    def __init__(self, *sizes, reach=5, **options):
        require_whole("reach", reach)
        super().__init__(*sizes, **options)
        self.reach = reach

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        return WindowState(*state, state.enc_outputs.new_zeros(len(enc_valid_lens)))

    def center(self, query, state):
        """A query (B, 1, H) -> the middle of its window, within the source: (B,)."""
        return state.place.clamp(min=0).minimum(state.enc_valid_lens - 1)

    def shape_weights(self, weights, distance):
        """Weights and distances from the middle, both (B, 1, S) -> weights."""
        return weights

    def attend(self, query, state):
        scores = self.attention.score(query, state.projected_keys)  # (B, 1, S)
        center = self.center(query, state).view(-1, 1, 1)
        distance = (positions(scores) - center).abs()
        scores = scores.masked_fill(distance > self.reach, -torch.inf)
        weights = masked_softmax(scores, state.enc_valid_lens)
        weights = self.shape_weights(weights, distance)
        context = torch.bmm(self.attention.dropout(weights), state.enc_outputs)
        return context, weights

    def next_place(self, weights, state):
        """A step's weights (B, 1, S) and state -> around which place the next looks."""
        return (weights * positions(weights)).sum(dim=2)[:, 0]

    def step(self, x, state):
        output, weights, state = super().step(x, state)
        return output, weights, state._replace(place=self.next_place(weights, state))


class LocalDecoder(WindowDecoder):
    """Local attention (Luong et al., 2015, section 3.1), here before the update.

    place: "monotonic" (local-m), the number of the step, and after the source's end its
    last word; or "predicted" (local-p), S sigmoid(v_p^T tanh(W_p s_{i-1})) of a source
    of S words. There a weight is multiplied by exp(-d^2 / (2 sigma^2)), with d its
    distance from the place and sigma = reach / 2: the weights of a step sum to less
    than 1, as in the paper.
    """

    def __init__(self, *sizes, reach=5, place="monotonic", **options):
        require_one_of("place", place, ("monotonic", "predicted"))
        super().__init__(*sizes, reach=reach, **options)
        self.predicted = place == "predicted"
        if self.predicted:
            H = self.rnn.hidden_size
            self.W_p = nn.Linear(H, H, bias=False)
            self.v_p = nn.Linear(H, 1, bias=False)

    def center(self, query, state):
        if not self.predicted:
            return super().center(query, state)
        share = torch.sigmoid(self.v_p(torch.tanh(self.W_p(query))))  # (B, 1, 1)
        return state.enc_valid_lens * share[:, 0, 0]

    def shape_weights(self, weights, distance):
        if not self.predicted:
            return weights
        return weights * torch.exp(-2 * (distance / self.reach) ** 2)

    def next_place(self, weights, state):
        return state.place + 1


class CoverageState(namedtuple("CoverageState", [*AttentionState._fields, "coverage"])):
    """`AttentionState`, and `coverage`, (B, S): the sums of the earlier weights."""


class CoverageDecoder(Seq2SeqAttentionDecoder):
    """A score reads how much its word was looked at before (Tu et al., 2016).

    e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j + w_c C_ij): the coverage C_ij is the sum of
    the earlier steps' weights on j. That is one number a word: the paper's larger
    coverage, kept by a GRU, is left out, and so is fertility, how many words each
    source word will become, by which the paper divides. The score must be additive.
    """

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        self.w_c = nn.Linear(1, self.attention.w_v.in_features, bias=False)

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        return CoverageState(*state, torch.zeros_like(state.enc_outputs[:, :, 0]))

    def keys(self, state):
        """U_a h_j + w_c C_ij: (B, S, H)."""
        return state.projected_keys + self.w_c(state.coverage.unsqueeze(2))

    def attend(self, query, state):
        return super().attend(query, state._replace(projected_keys=self.keys(state)))

    def step(self, x, state):
        output, weights, state = super().step(x, state)
        coverage = state.coverage + weights[:, 0]
        return output, weights, state._replace(coverage=coverage)


def positions(weights):
    """0 … S - 1, for weights or scores (B, T, S)."""
    return torch.arange(weights.shape[2], device=weights.device)


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
