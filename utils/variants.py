"""Other attention decoders, to compare: when to attend, and with which state.

Each has its own `step` or its own `query`; the loop and the other parts are those of
`seq2seq`. Letters in shape comments: B sentences in a batch, S source positions,
D the size of an encoder state, E embedding size, H hidden units, L layers.
"""

from typing import NamedTuple

import torch
from torch import nn

from utils.attention import AdditiveAttention, BilinearAttention, masked_softmax
from utils.seq2seq import AttentionDecoder, AttentionState, Seq2SeqAttentionDecoder


class LuongState(NamedTuple):
    """What the update-first decoder carries from step to step."""

    enc_outputs: torch.Tensor  # (B, S, D): the values
    projected_keys: torch.Tensor  # (B, S, H)
    hidden_state: torch.Tensor  # (L, B, H)
    enc_valid_lens: torch.Tensor  # (B,)
    fed: torch.Tensor  # (B, 1, H), (B, 1, D) or (B, 1, 0): for the next update


class LuongDecoder(AttentionDecoder):
    """Luong et al. (2015, sections 3 and 3.3): update to s_i, then attend with s_i.

    feed: what an update reads beside its word: the last step's "attentional" vector
    (input feeding), its "context", or "nothing". Else: the arguments of Decoder.
    """

    def __init__(self, *sizes, feed="attentional", **options):
        super().__init__(*sizes, **options)
        D, E, H = decoder_sizes(self)
        self.feed, self.fed_size = feed, fed_size(feed, D, H)
        self.rnn = resized_gru(self.rnn, self.fed_size + E)
        self.attention = BilinearAttention(D, H)
        self.W_c = nn.Linear(D + H, H, bias=False)

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        return LuongState(
            outputs,
            self.attention.project_keys(outputs),
            self.bridge(hidden_state),
            enc_valid_lens,
            outputs.new_zeros(len(outputs), 1, self.fed_size),
        )

    def step(self, x, state):
        s, hidden_state = self.rnn(torch.cat((state.fed, x), -1), state.hidden_state)
        context, weights = self.attention.attend(  # the query: s_i, (B, 1, H)
            s, state.projected_keys, state.enc_outputs, state.enc_valid_lens
        )
        output = torch.tanh(self.W_c(torch.cat((context, s), dim=-1)))
        fed = {"attentional": output, "context": context}.get(self.feed, state.fed)
        return output, weights, state._replace(hidden_state=hidden_state, fed=fed)


class ContextOutputDecoder(Seq2SeqAttentionDecoder):
    """Attend with s_{i-1}, update to s_i; the output reads the context, too.

    It reads tanh(W_c [c_i; s_i]), as LuongDecoder's does. In Bahdanau et al. (2015,
    equation 4) the output depends on c_i as well. Arguments: those of Decoder.
    """

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        D, _, H = decoder_sizes(self)
        self.W_c = nn.Linear(D + H, H, bias=False)

    def step(self, x, state):
        context, weights = self.attention.attend(  # the query: s_{i-1}, (B, 1, H)
            self.query(state.hidden_state),
            state.projected_keys,
            state.enc_outputs,
            state.enc_valid_lens,
        )
        s, hidden_state = self.rnn(torch.cat((context, x), -1), state.hidden_state)
        output = torch.tanh(self.W_c(torch.cat((context, s), dim=-1)))
        return output, weights, state._replace(hidden_state=hidden_state)


class LayerQueryDecoder(Seq2SeqAttentionDecoder):
    """The decoder of Bahdanau et al. (2015), with another query than the top layer's.

    layers: "bottom"; "joined", all layers' states side by side; or "mixed", their
    average with learned shares. Else: the arguments of Decoder.
    """

    def __init__(self, *sizes, layers="bottom", **options):
        check_layers(layers)
        super().__init__(*sizes, **options)
        D, _, H = decoder_sizes(self)
        L = self.rnn.num_layers
        self.layers = layers
        if layers == "joined":
            self.attention = AdditiveAttention(D, L * H, H)
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
    """Each layer asks with its own state and reads its own context.

    `attention_weights`: the mean of the layers'. Arguments: those of Decoder.
    """

    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        (D, E, H), L = decoder_sizes(self), self.rnn.num_layers
        below = [E] + [H] * (L - 1)  # what a layer reads beside its context
        self.rnn = nn.ModuleList(nn.GRU(D + n, H, batch_first=True) for n in below)
        self.attention = nn.ModuleList(AdditiveAttention(D, H, H) for _ in below)

    def init_state(self, enc_outputs, enc_valid_lens):
        outputs, hidden_state = enc_outputs
        keys = torch.cat([a.project_keys(outputs) for a in self.attention], dim=-1)
        return AttentionState(outputs, keys, self.bridge(hidden_state), enc_valid_lens)

    def step(self, x, state):
        keys, hidden, weights = state.projected_keys.chunk(len(self.rnn), -1), [], []
        for layer, s in enumerate(state.hidden_state):  # s: (B, H)
            context, weight = self.attention[layer].attend(
                s.unsqueeze(1), keys[layer], state.enc_outputs, state.enc_valid_lens
            )
            x, s = self.rnn[layer](torch.cat((context, x), dim=-1), s.unsqueeze(0))
            hidden.append(s)
            weights.append(weight)
        hidden = torch.cat(hidden)
        return x, torch.stack(weights).mean(0), state._replace(hidden_state=hidden)


class WindowState(NamedTuple):
    """What the decoder with a window carries from step to step."""

    enc_outputs: torch.Tensor  # (B, S, D)
    projected_keys: torch.Tensor  # (B, S, H)
    hidden_state: torch.Tensor  # (L, B, H)
    enc_valid_lens: torch.Tensor  # (B,)
    place: torch.Tensor  # (B,): around which source position to look


class WindowDecoder(Seq2SeqAttentionDecoder):
    """Looks only at source words that are at most `reach` words from a place.

    The place is where it looked a step ago: the mean position under its weights. It has
    the parameters of the decoder it comes from. Else: the arguments of Decoder.
    """

    def __init__(self, *sizes, reach=5, **options):
        check_reach(reach)
        super().__init__(*sizes, **options)
        self.reach = reach

    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs, enc_valid_lens)
        return WindowState(*state, place=torch.zeros(len(enc_valid_lens)))

    def step(self, x, state):
        scores = self.attention.score(
            self.query(state.hidden_state), state.projected_keys
        )  # (B, 1, S)
        positions = torch.arange(scores.shape[2])
        far = (positions - state.place.unsqueeze(1)).abs() > self.reach  # (B, S)
        scores = scores.masked_fill(far.unsqueeze(1), -torch.inf)
        weights = masked_softmax(scores, state.enc_valid_lens)
        inputs = torch.cat((torch.bmm(weights, state.enc_outputs), x), dim=-1)
        output, hidden_state = self.rnn(inputs, state.hidden_state)
        place = (weights * positions).sum(dim=2)[:, 0]
        return output, weights, state._replace(hidden_state=hidden_state, place=place)


def decoder_sizes(decoder):
    """(D, E, H) of a decoder whose GRU reads context and word."""
    E = decoder.embedding.embedding_dim
    return decoder.rnn.input_size - E, E, decoder.rnn.hidden_size


def resized_gru(rnn, input_size):
    """A new GRU like this one, for inputs of another size."""
    sizes = (input_size, rnn.hidden_size, rnn.num_layers)
    return nn.GRU(*sizes, dropout=rnn.dropout, batch_first=True)


def fed_size(feed, enc_hiddens, num_hiddens):
    """How wide that is which LuongDecoder feeds; ValueError, in words, if unknown."""
    sizes = {"attentional": num_hiddens, "context": enc_hiddens, "nothing": 0}
    if feed not in sizes:
        raise ValueError(f"feed must be one of {sorted(sizes)}, got {feed!r}")
    return sizes[feed]


def check_layers(layers):
    """ValueError, in words, unless LayerQueryDecoder knows them."""
    known = ("bottom", "joined", "mixed")
    if layers not in known:
        raise ValueError(
            f"layers must be one of {known}, got {layers!r}; for the top layer take "
            "Seq2SeqAttentionDecoder"
        )


def check_reach(reach):
    """ValueError, in words, unless a window can reach so far."""
    if not isinstance(reach, (int, float)) or not reach >= 1:
        raise ValueError(
            f"reach must be a number of words, at least 1, got {reach!r}: 5 looks at "
            "five words to each side of the place"
        )
