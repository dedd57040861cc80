"""The exercises of notebook 05.

B sentences in a batch, S source and T target positions, L layers, E embedding size, H
hidden units, D the size of a value, A of a projected key, V words.
"""

from functools import partial

import torch
from torch import nn

from utils.attention import AdditiveAttention
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw, seeded

GRU = partial(nn.GRU, batch_first=True)

annotations = Exercise(
    "annotations",
    """
def annotations(x, forwards, backwards):  # (B, S, E) -> (B, S, 2H)
    first, _ = forwards(x)
    second, _ = backwards(x.flip(1))
    return torch.cat((first, second.flip(1)), dim=-1)
""",
    {
        "Row j holds two states of word j side by side: of `forwards`, which has read "
        "up to word j, and of `backwards`, which has read from the last word back to "
        "j. One sentence is a batch, too.": [
            (*draw(B, (B, S, E)), seeded(1, GRU, E, H), seeded(2, GRU, E, H))
            for B, S, E, H in ((2, 4, 3, 5), (3, 5, 4, 2), (4, 4, 4, 4), (1, 6, 2, 3))
        ],
    },
    r"""
The second GRU reads from left to right, too. Which axis of (B, S, E) is time?
    x.flip(1) => x ;; second.flip(1) => second
One of the two GRUs isn't used. Each of them makes a half, with weights of its own.
    backwards(x.flip(1)) => forwards(x) ;; second.flip(1) => second
    backwards(x.flip(1)) => forwards(x)
    = backwards => = forwards
Only one of the two is turned round: what the second GRU reads, or its states.
    second.flip(1) => second
    x.flip(1) => x
Another axis than time is turned round. Which axis of (B, S, E) counts the words?
    flip(1) => flip(2)
    x.flip(1) => x.flip(0)
The halves stand in the wrong order: first `forwards`, then `backwards`.
    first, second.flip(1) => second.flip(1), first
The halves are joined along another axis. Side by side means along the last one.
    dim=-1 => dim=1
    , dim=-1 =>
nn.GRU returns two things: the states at all words, and the last one. Which are needed?
    first, _ = => first =
    second, _ = => second =
A tensor can't be sliced with a step below 0, as a list can. `flip` turns it round.
    x.flip(1) => x[:, ::-1]
""",
)


def _encoded(B, S, D, L, A, H, lens):
    maps = seeded(1, nn.Linear, D, A), seeded(2, nn.Linear, D, H)
    return *draw(S, (B, S, D), (L, B, D)), torch.tensor(lens), *maps


def _world(B, L, E, H, D, S, A, lens):
    attention = seeded(B, AdditiveAttention, D, H, A).requires_grad_(False)
    x, hidden, values = draw(S, (B, 1, E), (L, B, H), (B, S, D))
    state = values, attention.project_keys(values), 2 * hidden, torch.tensor(lens)
    rnn, dense = seeded(B, GRU, D + E, H, L), seeded(B, nn.Linear, H, A + 1)
    return x, state, attention, rnn, dense


def _once(function, attention, queries, enc_outputs, valid_lens):
    """The function's weights; ValueError if the keys were projected more than once."""
    calls = []
    attention.W_k.register_forward_hook(lambda *_: calls.append(1))
    weights = function(attention, queries, enc_outputs, valid_lens)
    if len(calls) > 1:
        raise ValueError(f"the keys were projected {len(calls)} times")
    return weights


init_state = Exercise(
    "init_state",
    """
def init_state(enc_outputs, enc_hidden, valid_lens, project_keys, bridge):
    return enc_outputs, project_keys(enc_outputs), bridge(enc_hidden), valid_lens
""",
    {
        "Four things are asked for: the outputs as they came, what project_keys makes "
        "of them, the bridge of the hidden state, and the lengths as they came.": [
            _encoded(2, 4, 5, 3, 6, 7, [1, 4]),
            _encoded(3, 5, 4, 2, 3, 6, [5, 2, 4]),
            _encoded(3, 3, 3, 3, 3, 3, [3, 1, 2]),
        ],
    },
    r"""
The two are exchanged: project_keys is for the outputs, and bridge for the hidden state.
    keys(enc_outputs), bridge(enc_hidden) => keys(enc_hidden), bridge(enc_outputs)
    project_keys, bridge => bridge, project_keys
The hidden state comes before the projected keys. Asked for is the other way round.
    => return enc_outputs, bridge(enc_hidden), project_keys(enc_outputs), valid_lens
The keys aren't projected. project_keys has to be called here, once for all steps.
    project_keys(enc_outputs) => enc_outputs
The hidden state didn't pass the bridge.
    bridge(enc_hidden) => enc_hidden
The bridge gets one layer alone. Each layer of the decoder needs a state: (L, B, H).
    bridge(enc_hidden) => bridge(enc_hidden[-1])
The bridge gets outputs. It is for the encoder's hidden state, of all layers.
    bridge(enc_hidden) => bridge(enc_outputs)
The outputs themselves don't come first. The context will be their weighted sum.
    return enc_outputs => return project_keys(enc_outputs)
One of the four is missing: outputs, projected keys, hidden state, lengths.
    project_keys(enc_outputs), =>
    (enc_hidden), valid_lens => (enc_hidden)
    (enc_hidden), valid_lens => (enc_hidden), None
project_keys and bridge take one argument each.
    (enc_hidden) => (enc_hidden, valid_lens)
""",
)

PLAIN = [_world(2, 3, 4, 5, 6, 7, 8, [7, 7]), _world(3, 2, 5, 4, 2, 6, 7, [6, 6, 6])]
PADDED = [
    _world(2, 3, 4, 5, 6, 7, 8, [2, 6]),
    _world(4, 2, 2, 6, 3, 5, 4, [3, 5, 2, 1]),
    _world(3, 3, 3, 3, 3, 3, 3, [3, 2, 1]),
    _world(1, 4, 5, 3, 2, 5, 6, [3]),
]
# The mistakes in any step that attends.
STEP = r"""
The query isn't (B, 1, H): the axis that counts queries is missing, or stands elsewhere.
    [-1].unsqueeze(1) => [-1]
    [-1].unsqueeze(1) => [-1:]
The query isn't the top layer's state. Axis 0 of hidden_state (L, B, H) is the layer.
    hidden_state[-1].unsqueeze(1) => hidden_state[0].unsqueeze(1)
    hidden_state[-1].unsqueeze(1) => hidden_state
    hidden_state[-1].unsqueeze(1) => hidden_state.transpose(0, 1)
    hidden_state[-1].unsqueeze(1) => hidden_state[:, -1].unsqueeze(1)
attend gives the context first, then the weights. Here they are exchanged.
    context, weights = => weights, context =
Word and context are joined in the wrong order: the context comes first.
    (context, x) => (x, context)
Context and word aren't joined side by side, along the last axis: (B, 1, D + E).
    ), dim=-1), => ), dim=1),
    ), dim=-1), => )),
    torch.cat((context, x), dim=-1) => context
    torch.cat((context, x), dim=-1) => x
The GRU starts from zeros: it isn't given the state before.
    dim=-1), hidden_state) => dim=-1))
The hidden_state returned is the old one: the next step would start from it again.
    , hidden_state = rnn => , new = rnn
nn.GRU returns the output first, then the state. Here they are exchanged.
    dim=-1), hidden_state) => dim=-1), hidden_state)[::-1]"""

attend_then_update = Exercise(
    "attend_then_update",
    """
def mended_step(x, hidden_state, last_context, attend, rnn):  # -> (B, 1, S), (L, B, H)
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    _, hidden_state = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return weights, hidden_state
""",
    {
        "Two things are asked for: the weights with which s_{i-1} attends, and the "
        "state that the GRU makes of s_{i-1}, this step's context and the word.": [
            (x, h, v[:, :1], partial(a.attend, projected_keys=k, values=v), rnn)
            for x, (v, k, h, _), a, rnn, _ in PADDED
        ],
    },
    STEP
    + r"""
The state that asks has read the word of this step. In the paper's order, s_{i-1} asks.
    => _, h = rnn(torch.cat((last_context, x), dim=-1), hidden_state)\n    return (
        attend(h[-1].unsqueeze(1))[1], h)
    return weights => return attend(hidden_state[-1].unsqueeze(1))[1]
The last step's context still enters the GRU. The one of this step takes its place.
    (context, x) => (last_context, x)
""",
)

decoder_step = Exercise(
    "decoder_step",
    """
def step(x, state, attention, rnn, dense):  # -> (B, 1, V), (B, 1, S), (L, B, H)
    enc_outputs, projected_keys, hidden_state, valid_lens = state
    query = hidden_state[-1].unsqueeze(1)  # (B, 1, H)
    context, weights = attention.attend(query, projected_keys, enc_outputs, valid_lens)
    output, hidden_state = rnn(torch.cat((context, x), dim=-1), hidden_state)
    return dense(output), weights, hidden_state
""",
    {
        "Three things are asked for: logits (B, 1, V) of the new state s_i, weights "
        "(B, 1, S) with which s_{i-1} attends, and the new hidden state.": PLAIN,
        "Here sentences are of different lengths: padding gets weight 0.": PADDED,
    },
    STEP
    + r"""
The context is a sum of the encoder's outputs, not of the projected keys.
    projected_keys, enc_outputs, => projected_keys, projected_keys,
`attention(...)` projects the keys anew, and gives the context alone: call `attend`.
    attention.attend( => attention(
    attention.attend(query, projected_keys => attention(query, enc_outputs
attend takes the projected keys, and then the outputs as values. Another pair was given.
    query, projected_keys => query, enc_outputs
    query, projected_keys, enc_outputs => query, enc_outputs, projected_keys
Padding gets weight: the lengths are not used.
    enc_outputs, valid_lens) => enc_outputs)
Logits are asked for: what `dense` makes of the output, before any softmax or argmax.
    dense(output) => output
    dense(output) => dense(output).softmax(-1)
    dense(output) => dense(output).argmax(-1)
`dense` reads the GRU's output alone, s_i of the top layer.
    dense(output) => dense(query)
    dense(output) => dense(hidden_state)
    output, hidden_state = rnn => output = rnn
""",
    given=("utils.attention.",),
)

all_weights = Exercise(
    "all_weights",
    """
def weights_of_all_steps(attention, queries, enc_outputs, valid_lens):  # -> (B, T, S)
    projected_keys = attention.project_keys(enc_outputs)
    _, weights = attention.attend(queries, projected_keys, enc_outputs, valid_lens)
    return weights
""",
    {
        "Row t of a sentence holds its query t's weights, after softmax, over the "
        "source positions. The keys are projected once.": [
            (a, torch.stack(list(s[2]), 1), s[0], s[3]) for _, s, a, _, _ in PLAIN
        ],
        "Here sentences end earlier, or one is alone. Padding gets weight 0.": [
            (a, torch.stack(list(s[2]), 1), s[0], s[3]) for _, s, a, _, _ in PADDED
        ],
    },
    r"""
The keys are projected at every step, or for every sentence. One call does all of them.
    return => [attention.project_keys(enc_outputs) for _ in queries[0, 1:]]\n    return
    return => [attention.project_keys(enc_outputs) for _ in queries[1:]]\n    return
attend gives two results: the context, and then the weights, which are asked for.
    return weights => return _, weights
    return weights => return _
`attention(...)` gives the context alone. Which method gives the weights, too?
    attention.attend( => attention(
    attention.project_keys(enc_outputs) => enc_outputs ;; .attend( => (
attend stores no weights: it returns them. Only a call `attention(...)` stores them.
    return weights => return attention.attention_weights
Padding gets weight: the lengths are not used.
    keys, enc_outputs, valid_lens) => keys, enc_outputs)
At one step attend takes a query (B, 1, query_size). The steps are axis 1 of queries.
    attend(queries => attend(queries[:, 0]
    attend(queries => attend(queries[0]
""",
    unwrap=_once,
    given=("utils.attention.",),
)

lstm_rows = Exercise(
    "lstm_rows",
    """
def lstm_rows(state, rows):  # (h, c), (N,) -> (N, 1, H), (h, c) of shape (L, N, H)
    h, c = (part[:, rows] for part in state)
    return h[-1].unsqueeze(1), (h, c)
""",
    {
        "The rows are chosen in h and in c, of all layers. The query is h of the top "
        "layer. Row n of what comes out is sentence rows[n].": [
            (draw(0, (2, 3, 4), (2, 3, 4)), torch.tensor([2, 0, 2, 1, 1])),
            (draw(2, (3, 5, 2), (3, 5, 2)), torch.tensor([4, 1])),
            (draw(3, (1, 4, 3), (1, 4, 3)), torch.tensor([3, 0])),
            (draw(4, (3, 3, 3), (3, 3, 3)), torch.tensor([2, 2, 0])),
        ],
    },
    r"""
The rows aren't chosen in both parts of the state that is returned, h and c.
    (h, c) => (h, state[1])
    (h, c) => (state[0], c)
    (h, c) => state
The query was taken before the rows were chosen: it has B rows, not N.
    h[-1] => state[0][-1]
The rows are chosen along another axis. Which axis of (L, B, H) counts the sentences?
    [:, rows] => [rows]
The query isn't h of the top layer. Axis 0 of (L, N, H) is the layer.
    h[-1] => c[-1]
    h[-1] => h[0]
    h[-1].unsqueeze(1) => h[:, -1:]
h and c are exchanged.
    (h, c) => (c, h)
The state is a pair of tensors, and a pair has no rows. Choose them in h and in c.
    => return state[:, rows]
""",
)

from_d2l = Exercise(
    "from_d2l",
    """
def from_d2l(enc_outputs, attention_weights):  # (S, B, H), T of (B, 1, S)
    return enc_outputs.permute(1, 0, 2), torch.cat(attention_weights, dim=1)
""",
    {
        "Two things are asked for: the outputs of sentence b in row b, (B, S, H), and "
        "the weights of all its steps, (B, T, S). One sentence is a batch, too.": [
            (*draw(H, (S, B, H)), list(draw(T, (T, B, 1, S))[0].softmax(-1)))
            for S, B, H, T in ((5, 2, 4, 3), (4, 3, 2, 6), (3, 3, 3, 3), (4, 1, 2, 3))
        ],
    },
    r"""
reshape and view keep the numbers in order, and mix the sentences: permute the axes.
    .permute(1, 0, 2) => .reshape(enc_outputs.shape[1], len(enc_outputs), -1)
    dim=1) => dim=0).reshape(enc_outputs.shape[1], -1, len(enc_outputs))
The outputs still stand time first. Axis 0 has to count the sentences.
    .permute(1, 0, 2) =>
The steps are joined along another axis than that of length 1. Which axis counts steps?
    , dim=1 =>
    torch.cat => torch.stack
    torch.cat => torch.stack ;; , dim=1 =>
The weights are a list of tensors, and a list has no axes. torch.cat joins them.
    torch.cat(attention_weights, dim=1) => attention_weights.permute(1, 0, 2)
""",
)
