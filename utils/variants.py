"""Decoders that differ from `seq2seq` in one part each: to compare, and for real text.

Each gives another part to the decoder it comes from, or overrides one method of it.
Letters in shape comments: B sentences in a batch, S source and T target positions,
D the size of an encoder state, E embedding size, H hidden units, L layers, V words.
"""

import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import AdditiveAttention, BilinearAttention, masked_softmax
from utils.seq2seq import (
    AttentionDecoder,
    AttentionState,
    Bridge,
    Decoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    apart,
    make_gru,
    together,
)


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
        self.feed, self.fed_size = feed, fed_size(feed, D, H)
        self.embedding = nn.Embedding(vocab_size, embed_size)
        self.rnn = make_gru(self.fed_size + embed_size, H, num_layers, dropout)
        self.attention = attention or BilinearAttention(D, H, dropout=dropout)
        self.W_c = nn.Linear(D + H, H, bias=False)
        self.dense = nn.Linear(H, vocab_size)
        self.bridge = Bridge(D, H)

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        fed = state.enc_outputs.new_zeros(len(enc_valid_lens), 1, self.fed_size)
        return state._replace(carried=fed)

    def step(self, x, state):
        inputs = torch.cat((state.carried, x), dim=-1)
        s, hidden_state = self.rnn(inputs, state.hidden_state)
        context, weights = self.attend(s, state)  # the query: s_i, (B, 1, H)
        output = torch.tanh(self.W_c(torch.cat((context, s), dim=-1)))
        fed = {"attentional": output, "context": context}.get(self.feed, state.carried)
        return output, weights, state._replace(hidden_state=hidden_state, carried=fed)


class ContextOutputDecoder(Seq2SeqAttentionDecoder):
    """Attend with s_{i-1}, update to s_i; the output reads the context, too.

    It reads tanh(W_c [c_i; s_i]), as LuongDecoder's does. In Bahdanau et al. (2015,
    equation 4) the output depends on c_i as well.
    """

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        D, H = decoder_sizes(self)
        self.W_c = nn.Linear(D + H, H, bias=False)

    def output(self, s, context, x):
        return torch.tanh(self.W_c(torch.cat((context, s), dim=-1)))


class LayerQueryDecoder(Seq2SeqAttentionDecoder):
    """The decoder of Bahdanau et al. (2015), with another query than the top layer's.

    layers: "bottom"; "joined", all layers' states side by side; or "mixed", their
    average with learned shares.
    """

    def __init__(
        self,
        vocab_size,
        embed_size,
        num_hiddens,
        num_layers=2,
        dropout=0.0,
        enc_hiddens=None,
        layers="bottom",
    ):
        D, H, L = enc_hiddens or num_hiddens, num_hiddens, num_layers
        query_size = {"bottom": H, "mixed": H, "joined": L * H}[known_layers(layers)]
        attention = AdditiveAttention(D, query_size, H, dropout)
        sizes = vocab_size, embed_size, H, L, dropout, D
        super().__init__(*sizes, attention=attention)
        self.layers = layers
        if layers == "mixed":
            self.shares = nn.Parameter(torch.zeros(L))  # before softmax

    def query(self, hidden_state):
        if self.layers == "bottom":
            query = hidden_state[0]
        elif self.layers == "joined":
            query = torch.cat(tuple(hidden_state), dim=-1)  # (B, LH)
        else:
            query = torch.tensordot(self.shares.softmax(0), hidden_state, dims=1)
        return query.unsqueeze(1)  # (B, 1, query_size)


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
            asked = together(s.unsqueeze(1), state)
            answers = self.attention[layer].attend(asked, keys[layer], values, lens)
            context, weight = map(apart, answers)
            x, s = self.rnn[layer](torch.cat((context, x), dim=-1), s.unsqueeze(0))
            hidden.append(s)
            weights.append(weight)
        hidden = torch.cat(hidden)
        return x, self.shown(weights), state._replace(hidden_state=hidden)

    def shown(self, weights):
        """What the step returns of the layers' weights, each (B, 1, S): their mean."""
        return torch.stack(weights).mean(0)


class NearDecoder(Seq2SeqAttentionDecoder):
    """Looks only at source words that are at most `reach` words from a place.

    A subclass says where that place is.
    """

    def __init__(self, *sizes, reach=5, **options):
        check_reach(reach)
        super().__init__(*sizes, **options)
        self.reach = reach

    def place(self, queries, state):
        """Queries (B, k, H) of k hypotheses a sentence -> places, from 0: (B, k, 1).

        Here: what the state carries; after the source's end, its last word.
        """
        last = state.enc_valid_lens.reshape(-1, 1, 1) - 1
        return state.carried.reshape(len(queries), -1, 1).clamp(min=0).minimum(last)

    def shape_weights(self, weights, distance):
        """Weights and distances from the place, both (B, k, S) -> weights."""
        return weights

    def attend(self, query, state):
        queries = together(query, state)
        scores = self.attention.score(queries, state.projected_keys)
        distance = (positions(scores) - self.place(queries, state)).abs()  # (B, k, S)
        scores = scores.masked_fill(distance > self.reach, -torch.inf)
        weights = masked_softmax(scores, state.enc_valid_lens)
        weights = self.shape_weights(weights, distance)
        context = torch.bmm(self.attention.dropout(weights), state.enc_outputs)
        return apart(context), apart(weights)


class WindowDecoder(NearDecoder):
    """The place is where it looked a step ago: the mean position under its weights.

    The state carries the place, (B,). It has the parameters of the decoder it comes
    from.
    """

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        return state._replace(carried=state.enc_outputs.new_zeros(len(enc_valid_lens)))

    def step(self, x, state):
        output, weights, state = super().step(x, state)
        place = (weights * positions(weights)).sum(dim=2)[:, 0]
        return output, weights, state._replace(carried=place)


class LocalDecoder(NearDecoder):
    """Local attention (Luong et al., 2015, section 3.1), here before the update.

    place: "monotonic" (local-m), the number of the step, which the state carries,
    (B,), and after the source's end its last word; or "predicted" (local-p), S sigmoid(
    v_p^T tanh(W_p s_{i-1})) of a source of S words. There a weight is multiplied by
    exp(-d^2 / (2 sigma^2)), with d its distance from the place and sigma = reach / 2:
    the weights of a step sum to less than 1, as in the paper.
    """

    def __init__(self, *sizes, reach=5, place="monotonic", **options):
        self.predicted = known_place(place) == "predicted"
        super().__init__(*sizes, reach=reach, **options)
        if self.predicted:
            H = self.rnn.hidden_size
            self.W_p = nn.Linear(H, H, bias=False)
            self.v_p = nn.Linear(H, 1, bias=False)

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        if self.predicted:
            return state
        return state._replace(carried=state.enc_outputs.new_zeros(len(enc_valid_lens)))

    def place(self, queries, state):
        if not self.predicted:
            return super().place(queries, state)
        share = torch.sigmoid(self.v_p(torch.tanh(self.W_p(queries))))
        return state.enc_valid_lens.reshape(-1, 1, 1) * share

    def shape_weights(self, weights, distance):
        if not self.predicted:
            return weights
        return weights * torch.exp(-2 * (distance / self.reach) ** 2)

    def step(self, x, state):
        output, weights, state = super().step(x, state)
        if not self.predicted:
            state = state._replace(carried=state.carried + 1)
        return output, weights, state


class CoverageDecoder(Seq2SeqAttentionDecoder):
    """A score reads how much its word was looked at before (Tu et al., 2016).

    e_ij = v_a^T tanh(W_a s_{i-1} + U_a h_j + w_c C_ij): the coverage C_ij is the sum of
    the earlier steps' weights on j; the state carries it, (B, S). That is one number a
    word: the paper's larger coverage, kept by a GRU, is left out, and so is fertility,
    how many words each source word will become, by which the paper divides.
    """

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        check_additive(self.attention)
        self.w_c = nn.Linear(1, self.attention.w_v.in_features, bias=False)

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        return state._replace(carried=torch.zeros_like(state.enc_outputs[:, :, 0]))

    def keys(self, state):
        """U_a h_j + w_c C_ij, for each hypothesis of a beam its own: (B·k, S, H)."""
        copies = len(state.carried) // len(state.enc_outputs)
        keys = state.projected_keys.repeat_interleave(copies, dim=0)
        return keys + self.w_c(state.carried.unsqueeze(2))

    def attend(self, query, state):
        copies = len(query) // len(state.enc_outputs)
        values, lens = (
            tensor.repeat_interleave(copies, dim=0)
            for tensor in (state.enc_outputs, state.enc_valid_lens)
        )
        return self.attention.attend(query, self.keys(state), values, lens)

    def step(self, x, state):
        output, weights, state = super().step(x, state)
        return output, weights, state._replace(carried=state.carried + weights[:, 0])


# --- For real text: the same attention, kept from learning by heart ---------------


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
    """From state, context and last word, side by side (..., H + D + E), to logits.

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


class TranslatorDecoder(Seq2SeqAttentionDecoder):
    """`Seq2SeqAttentionDecoder` with dropout on what it reads, and a `Readout`."""

    def __init__(self, vocab_size, embed_size, num_hiddens, dropout, enc_hiddens):
        AttentionDecoder.__init__(self)
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
        return state._replace(carried=context)  # (B, 1, D)

    def step(self, x, state):
        inputs = torch.cat((state.carried, x), dim=-1)  # (B, 1, D + E)
        s, hidden = self.rnn(inputs, state.hidden_state)  # s_i
        context, weights = self.attend(self.query(hidden), state)
        state = state._replace(hidden_state=hidden, carried=context)
        return self.output(s, context, x), weights, state


class UntiedTranslatorDecoder(TranslatorDecoder):
    """The same, but the matrix that writes words is not the one that reads them."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.dense.out.weight = nn.Parameter(self.embedding.weight.detach().clone())


class PlainTranslatorDecoder(TranslatorDecoder):
    """The same without a readout: words are written from s_i alone (dropout on it)."""

    def __init__(self, vocab_size, embed_size, num_hiddens, dropout, enc_hiddens):
        sizes = vocab_size, embed_size, num_hiddens, dropout, enc_hiddens
        super().__init__(*sizes)
        self.dense = nn.Linear(num_hiddens, vocab_size)

    def output(self, s, context, x):
        return self.dropout(s)


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


def decoder_sizes(decoder):
    """(D, H) of a decoder whose GRU reads context and word."""
    D = decoder.rnn.input_size - decoder.embedding.embedding_dim
    return D, decoder.rnn.hidden_size


def positions(weights):
    """0 … S - 1, for weights or scores (B, T, S)."""
    return torch.arange(weights.shape[2], device=weights.device)


def fed_size(feed, enc_hiddens, num_hiddens):
    """How wide that is which LuongDecoder feeds; ValueError, in words, if unknown."""
    sizes = {"attentional": num_hiddens, "context": enc_hiddens, "nothing": 0}
    if feed not in sizes:
        raise ValueError(f"feed must be one of {sorted(sizes)}, got {feed!r}")
    return sizes[feed]


def known_layers(layers):
    """Return layers; ValueError, in words, unless LayerQueryDecoder knows them."""
    known = ("bottom", "joined", "mixed")
    if layers not in known:
        raise ValueError(
            f"layers must be one of {known}, got {layers!r}; for the top layer take "
            "Seq2SeqAttentionDecoder"
        )
    return layers


def known_place(place):
    """Return place; ValueError, in words, unless LocalDecoder knows it."""
    known = ("monotonic", "predicted")
    if place not in known:
        raise ValueError(f"place must be one of {known}, got {place!r}")
    return place


def check_additive(attention):
    """ValueError, in words, unless the score is additive."""
    if not isinstance(attention, AdditiveAttention):
        raise ValueError(
            f"coverage is a part of the additive score, got {type(attention).__name__}"
        )


def check_reach(reach):
    """ValueError, in words, unless a window can reach so far."""
    if not isinstance(reach, (int, float)) or not reach >= 1:
        raise ValueError(
            f"reach must be a number of words, at least 1, got {reach!r}: 5 looks at "
            "five words to each side of the place"
        )
