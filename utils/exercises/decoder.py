"""The exercises of notebook 05.

B sentences in a batch, S source and T target positions, L layers, E embedding size, H
hidden units, D the size of a value, A of a projected key, V words.
"""

from collections import namedtuple
from functools import partial

import torch
from torch import nn

from utils.attention import AdditiveAttention
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw, seeded
from utils.exercises.result import Fault
from utils.seq2seq import Bridge, Seq2SeqAttentionDecoder

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
attend gives the context first, then the weights. Here they are exchanged.
    context, weights = => weights, context =
Word and context are joined in the wrong order: the context comes first.
    (context, x) => (x, context)
Context and word aren't joined side by side, along the last axis: (B, 1, D + E).
    ), dim=-1), => ), dim=1),
    ), dim=-1), => )),
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
Padding gets weight: the lengths are not used.
    enc_outputs, valid_lens) => enc_outputs)
Logits are asked for: what `dense` makes of the output, before any softmax or argmax.
    dense(output) => output
    dense(output) => dense(output).softmax(-1)
    dense(output) => dense(output).argmax(-1)
`dense` reads the GRU's output alone, s_i of the top layer.
    dense(output) => dense(query)
    dense(output) => dense(hidden_state)
""",
    given=("utils.attention.",),
)


# What the last call of forward gives, and how often the keys were projected.
Written = namedtuple("Written", "logits attention_weights key_projections")


def _written(kind, sizes, enc_outputs, enc_hidden, valid_lens, targets):
    """What a class with given weights makes of targets, each in one call of forward."""
    decoder, calls = kind(*sizes), []
    reference = seeded(1, Seq2SeqAttentionDecoder, *sizes[:4], enc_hiddens=sizes[4])
    decoder.load_state_dict(reference.state_dict())
    decoder.attention.W_k.register_forward_hook(lambda *_: calls.append(1))
    state = decoder.init_state((enc_outputs, enc_hidden), valid_lens)
    for X in targets:
        result = state if state is ... else decoder(X, state)
        if result is ...:
            return ...
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise Fault("forward must return two things: the logits, the last state.")
        logits, state = result
    weights = decoder.attention_weights
    weights = weights.detach() if torch.is_tensor(weights) else weights
    return Written(logits, weights, len(calls))


def _targets(lens, S, V, E, H, L, D, *Ts):
    encoded = draw(S, (len(lens), S, D), (L, len(lens), D))
    words = torch.arange(len(lens) * sum(Ts)).view(len(lens), -1) * 5 % V
    return (V, E, H, L, D), *encoded, torch.tensor(lens), list(words.split(Ts, dim=1))


attention_decoder = Exercise(
    "attention_decoder",
    """
class MyDecoder(nn.Module):
    def __init__(self, vocab_size, embed_size, num_hiddens, num_layers, enc_hiddens):
        super().__init__()
        D, E, H = enc_hiddens, embed_size, num_hiddens
        self.embedding = nn.Embedding(vocab_size, E)
        self.attention = AdditiveAttention(D, H, H)  # sizes of a key, a query, a sum
        self.rnn = nn.GRU(D + E, H, num_layers, batch_first=True)
        self.dense = nn.Linear(H, vocab_size)
        self.bridge = Bridge(D, H)

    def init_state(self, encoded, valid_lens):
        outputs, hidden = encoded  # (B, S, D), (L, B, D)
        keys = self.attention.project_keys(outputs)  # (B, S, H)
        return outputs, keys, self.bridge(hidden), valid_lens

    def step(self, x, state):
        outputs, keys, hidden, lens = state
        query = hidden[-1].unsqueeze(1)  # (B, 1, H)
        context, weights = self.attention.attend(query, keys, outputs, lens)
        both = torch.cat((context, x), dim=-1)  # (B, 1, D + E)
        output, hidden = self.rnn(both, hidden)  # (B, 1, H), (L, B, H)
        return self.dense(output), weights, (outputs, keys, hidden, lens)

    def forward(self, X, state):
        all_logits, all_weights = [], []
        for x in self.embedding(X).split(1, dim=1):  # (B, T, E) -> T of (B, 1, E)
            logits, weights, state = self.step(x, state)  # (B, 1, V), (B, 1, S)
            all_logits.append(logits)
            all_weights.append(weights)
        self.attention_weights = torch.cat(all_weights, dim=1)  # (B, T, S)
        return torch.cat(all_logits, dim=1), state  # (B, T, V)
""",
    {
        "Here a target has one word, so there is one step. Asked for are its logits "
        "(B, 1, V), the new state, and (B, 1, S) in attention_weights.": [
            _targets([5, 2], 5, 9, 3, 4, 2, 6, 1),
            _targets([3, 4, 1], 4, 11, 2, 5, 1, 3, 1),
        ],
        "Here a target has several words. Each word of X is a step, which starts from "
        "the state that the step before it has returned. (X is read, and not what the "
        "decoder would write.)": [
            _targets([5, 2], 5, 9, 3, 4, 2, 6, 3),
            _targets([3], 3, 10, 4, 2, 2, 5, 5),
            _targets([4, 3, 4, 1], 4, 4, 4, 4, 4, 4, 4),
        ],
        "Here forward is called twice. The second call gets the state that the first "
        "call has returned, and goes on from there.": [
            _targets([2, 6, 4], 6, 8, 5, 3, 3, 3, 4, 1),
        ],
    },
    r"""
The keys are projected again at a step. init_state has done it, and `attend` takes them.
    query, keys, => query, self.attention.project_keys(outputs),
The hidden state hasn't passed the bridge, or the keys haven't been projected.
    self.bridge(hidden) => hidden
    self.attention.project_keys(outputs) => outputs
init_state and step have the four parts in different orders.
    keys, self.bridge(hidden), => self.bridge(hidden), keys,
The step isn't that of exercise 3. The top layer's state asks; then the GRU reads the
context and the word, in this order, and goes on from the old state; then come logits.
    hidden[-1] => hidden[0]
    (context, x) => (x, context)
    rnn(both, hidden) => rnn(both)
    self.dense(output) => self.dense(output).softmax(-1)
    outputs, lens) => outputs)
A step reads x (B, 1, E), one embedded word of each sentence. What embeds the ids, which
axis of (B, T, E) counts the words, and what keeps an axis of length 1?
    self.embedding(X) => X
    .split(1, dim=1) => .split(1)
Every step starts from the first state. Is the new one returned, and handed on?
    logits, weights, state = => logits, weights, _ =
`step` must return the whole state, all four parts: the next step takes it apart.
    (outputs, keys, hidden, lens) => hidden
forward must return the whole state, all four parts, and not the hidden state alone.
    dim=1), state => dim=1), state[2]
Only the first word is read: `return` stands inside the loop.
    all_weights.append(weights) => self.attention_weights=weights; return logits, state
Only the last step's results are kept. A list keeps those of each step.
    all_logits.append(logits) => all_logits = [logits]
    all_weights.append(weights) => all_weights = [weights]
The steps' results aren't joined along the axis that counts the words, axis 1.
    torch.cat(all_logits, dim=1) => torch.cat(all_logits)
    torch.cat(all_weights, dim=1) => torch.cat(all_weights)
    torch.cat(all_weights, dim=1) => all_weights
The weights aren't stored as self.attention_weights.
    self.attention_weights = => attention_weights =
forward must return the state after the last word, and not the one that it was given.
    for x in => given = state\n        for x in ;; dim=1), state => dim=1), given
""",
    gradients=True,
    unwrap=_written,
    given=("utils.attention.", "utils.seq2seq.Bridge"),
    names={"AdditiveAttention": AdditiveAttention, "Bridge": Bridge},
)
