"""The exercises of notebook 04.

B sentences in a batch, S source and T target positions, L layers, E embedding size, H
hidden units, D the size of a value.
"""

from functools import partial

import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import AdditiveAttention
from utils.exercises.old_engine import Exercise
from utils.exercises.inputs import draw, real_positions, seeded
from utils.exercises.scoring import scores_by_loops


def step_by_loops(x, hidden_state, last_context, attend, rnn):
    """x (B, 1, E), hidden_state (L, B, H), last_context (B, 1, D), attend, rnn ->
    weights (B, 1, S), hidden_state. attend: query (B, 1, H) -> context, weights.
    """
    query = torch.stack([state for state in hidden_state[-1]]).unsqueeze(1)
    context, weights = attend(query)
    inputs = [torch.cat((context[b, 0], x[b, 0])) for b in range(len(x))]
    _, new = rnn(torch.stack(inputs).unsqueeze(1), hidden_state)
    return weights, new


def _side_by_side(context, x, _):
    return torch.cat((context, x), dim=-1)


def _one_step(
    x,
    hidden,
    attend,
    rnn,
    query=lambda h, _: h[-1].unsqueeze(1),
    got=lambda context, weights: (context, weights),
    join=_side_by_side,
    update=lambda rnn, inputs, h: rnn(inputs, h),
    kept=lambda h, output, new: new,
    shown=lambda context, weights: weights,
):
    """The right step, but for the options -> output, weights, state."""
    context, weights = got(*attend(query(hidden, x)))
    output, new = update(rnn, join(context, x, hidden), hidden)
    return output, shown(context, weights), kept(hidden, output, new)


def _top(h):
    return h[-1].unsqueeze(1)


# What goes wrong in any step that attends: options of _one_step.
STEPS = {
    "the query has no axis that counts queries. attend takes (B, Q, H), and here there "
    "is one query a sentence.": [{"query": lambda h, x: h[-1]}],
    "the axis of length 1 stands in front, where the sentences are counted. A query is "
    "(B, 1, H).": [
        {"query": lambda h, x: h[-1].unsqueeze(0)},
        {"query": lambda h, x: h[-1:]},
    ],
    "the axis of length 1 stands last. A query is (B, 1, H).": [
        {"query": lambda h, x: h[-1].unsqueeze(-1)}
    ],
    "the bottom layer asks. The query is the top layer's state.": [
        {"query": lambda h, x: h[0].unsqueeze(1)}
    ],
    "all layers ask. The query is the top layer's state alone.": [
        {"query": lambda h, x: h},
        {"query": lambda h, x: h.transpose(0, 1)},
        {"query": lambda h, x: h.mean(0).unsqueeze(1)},
    ],
    "this query is the last sentence's. Axis 0 of a hidden state is the layer, even "
    "with batch_first.": [
        {"query": lambda h, x: h[:, -1].unsqueeze(1)},
        {"query": lambda h, x: h[:, -1:]},
    ],
    "reshape and view keep the numbers' order in memory: layers and sentences are "
    "mixed. An index chooses a layer.": [
        {"query": lambda h, x: h.reshape(len(x), -1, h.shape[-1])[:, -1:]}
    ],
    "the word asks. The query is the decoder's state s_{i-1}.": [
        {"query": lambda h, x: x}
    ],
    "attend returns the context first, then the weights. Here they are exchanged.": [
        {"got": lambda context, weights: (weights, context)}
    ],
    "attend gives two results, the context and the weights. Only the context is joined "
    "with the word.": [{"got": lambda *answer: (answer, answer)}],
    "word and context are joined in the wrong order: the context comes first. The "
    "sizes add up either way, so nothing raises.": [
        {"join": lambda c, x, h: torch.cat((x, c), dim=-1)}
    ],
    "context and word are joined along another axis than the last. Side by side they "
    "are (B, 1, D + E).": [
        {"join": lambda c, x, h: torch.cat((c, x), dim=1)},
        {"join": lambda c, x, h: torch.cat((c, x))},
        {"join": lambda c, x, h: torch.stack((c, x))},
        {"join": lambda c, x, h: torch.stack((c, x), dim=-1)},
    ],
    "context and word don't have the same number of axes. Both are (B, 1, ...) as they "
    "come.": [
        {"join": lambda c, x, h: torch.cat((c[:, 0], x), dim=-1)},
        {"join": lambda c, x, h: torch.cat((c, x[:, 0]), dim=-1)},
    ],
    "torch.cat takes one tuple or list of tensors, not several tensors.": [
        {"join": lambda c, x, h: torch.cat(c, x)},
        {"join": lambda c, x, h: torch.cat(c, x, -1)},
        {"join": lambda c, x, h: torch.cat(c, x, dim=-1)},
    ],
    "context and word are added. They are joined: each keeps its own numbers.": [
        {"join": lambda c, x, h: c + x}
    ],
    "the state s_{i-1} is joined with context or word. The GRU reads context and word "
    "side by side; it has the state anyway.": [
        {"join": lambda c, x, h: torch.cat((c, _top(h)), dim=-1)},
        {"join": lambda c, x, h: torch.cat((_top(h), x), dim=-1)},
        {"join": lambda c, x, h: torch.cat((c, x, _top(h)), dim=-1)},
    ],
    "the GRU reads the word alone. It needs the context beside it, so attend first.": [
        {"join": lambda c, x, h: x}
    ],
    "the GRU reads the context alone: the word is never used.": [
        {"join": lambda c, x, h: c}
    ],
    "the GRU gets inputs without an axis for time. With batch_first it reads (B, 1, D "
    "+ E): one step.": [{"join": lambda c, x, h: _side_by_side(c, x, h)[:, 0]}],
    "the GRU starts from zeros: it isn't given the state before.": [
        {"update": lambda rnn, inputs, h: rnn(inputs)}
    ],
    "the GRU gets the top layer's state alone. It wants those of all layers, (L, B, "
    "H).": [
        {"update": lambda rnn, inputs, h: rnn(inputs, h[-1])},
        {"update": lambda rnn, inputs, h: rnn(inputs, h[-1:])},
        {"update": lambda rnn, inputs, h: rnn(inputs, _top(h))},
    ],
    "the hidden_state returned is the old one: the next step would start from s_{i-1} "
    "again.": [{"kept": lambda h, output, new: h}],
    "the hidden_state returned is the top layer's alone. Each layer needs its own at "
    "the next step: (L, B, H).": [
        {"kept": lambda h, output, new: new[-1]},
        {"kept": lambda h, output, new: new[-1:]},
    ],
    "the GRU's output is taken for its state. nn.GRU returns the output first, then "
    "the new state of all layers, (L, B, H).": [
        {"kept": lambda h, output, new: output},
        {"update": lambda rnn, inputs, h: rnn(inputs, h)[::-1]},
    ],
    "the context is returned in the weights' place.": [
        {"shown": lambda context, weights: context}
    ],
}


def _wrong_steps(step):
    """STEPS as the mistakes of an exercise whose step takes these options."""
    return {
        sentence: [partial(step, **options) for options in variants]
        for sentence, variants in STEPS.items()
    }


def _updated(x, hidden_state, last_context, attend, rnn, **options):
    return _one_step(x, hidden_state, attend, rnn, **options)[1:]


def _updated_first(x, hidden_state, last_context, attend, rnn):
    _, new = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    return attend(_top(new))[1], new


def _between(x, hidden_state, last_context, attend, rnn):
    """Queries with the state after a first update, then updates the old one."""
    _, new = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    return _one_step(x, hidden_state, attend, rnn, query=lambda *_: _top(new))[1:]


def _updated_twice(x, hidden_state, last_context, attend, rnn):
    _, new = _updated_first(x, hidden_state, last_context, attend, rnn)
    return _updated(x, new, last_context, attend, rnn)


def _attended_again(*arguments):
    _, new = _updated(*arguments)
    return arguments[3](_top(new))[1], new


def _too_early(x, hidden_state, last_context, attend, rnn):
    _, new = rnn(torch.cat((context, x), dim=-1), hidden_state)  # noqa: F821
    context, weights = attend(_top(new))
    return weights, new


def _with_both(*arguments):
    """The result, and the context too."""
    weights, new = _updated(*arguments)
    return _updated(*arguments, shown=lambda context, _: context)[0], weights, new


def _step_case(seed, B, L, E, H, D, S, lens):
    attention = seeded(seed, AdditiveAttention, D, H, H + 1)
    x, hidden_state, last_context, values = draw(
        seed, (B, 1, E), (L, B, H), (B, 1, D), (B, S, D)
    )
    keys, lens = attention.project_keys(values).detach(), torch.tensor(lens)
    rnn = seeded(seed, nn.GRU, D + E, H, L, batch_first=True)

    def attend(query):
        return attention.attend(query, keys, values, lens)

    return x, hidden_state, last_context, attend, rnn


attend_then_update = Exercise(
    "attend_then_update",
    step_by_loops,
    cases=[
        _step_case(0, 2, 3, 7, 4, 5, 6, [6, 3]),
        _step_case(1, 2, 3, 7, 4, 5, 6, [2, 5]),
        _step_case(2, 3, 2, 4, 5, 6, 7, [7, 1, 4]),
        _step_case(3, 3, 3, 3, 3, 3, 3, [3, 2, 1]),
    ],
    mistakes={
        "the weights move with the word of their own step: the state was updated "
        "before it asked. In the paper's order, s_{i-1} asks first.": [_updated_first],
        "the query is a state between s_{i-1} and s_i: the word was read before "
        "attending.": [_between],
        "the state is updated twice in one step.": [_updated_twice],
        "the weights returned belong to the new state. Those of s_{i-1} made the "
        "context.": [_attended_again],
        "`context` is read in a line above the one that makes it.": [_too_early],
        "the last step's context still enters the GRU. The one attended to now takes "
        "its place.": [
            lambda x, h, last, *m: _updated(
                x, h, last, *m, join=lambda c, x, _: torch.cat((last, x), -1)
            ),
            lambda x, h, last, *m: _updated(
                x, h, last, *m, join=lambda c, x, _: torch.cat((c + last, x), -1)
            ),
            lambda x, h, last, *m: _updated(
                x, h, last, *m, join=lambda c, x, _: torch.cat((c, last, x), -1)
            ),
        ],
        "the last context asks. The query is the decoder's state s_{i-1}.": [
            lambda x, h, last, *m: _updated(x, h, last, *m, query=lambda *_: last)
        ],
        "the two results are exchanged: first the weights, then the state.": [
            lambda *arguments: _updated(*arguments)[::-1]
        ],
        "three things are returned. Two are asked for: the weights, and the state.": [
            _with_both,
            lambda *arguments: tuple(_with_both(*arguments)[n] for n in (1, 0, 2)),
        ],
        **_wrong_steps(_updated),
    },
    given=("utils.attention.",),
)


def annotations_by_loops(x, forwards, backwards):
    """x (B, S, E), two GRUs -> annotations (B, S, 2H): [forwards; backwards]."""
    rows = []
    for sentence in x:
        halves = []
        for rnn, order in ((forwards, 1), (backwards, -1)):
            hidden, states = None, []
            for word in list(sentence)[::order]:
                _, hidden = rnn(word.view(1, 1, -1), hidden)
                states.append(hidden[-1, 0])
            halves.append(torch.stack(states[::order]))
        rows.append(torch.cat(halves, dim=-1))
    return torch.stack(rows)


def _halves(x, forwards, backwards, turn=1, back=1):
    """Both GRUs' outputs; the axes along which input and output are turned round."""
    turned = x if turn is None else x.flip(turn)
    second = backwards(turned)[0]
    return forwards(x)[0], second if back is None else second.flip(back)


def _joined(x, f, b, dim=-1, **axes):
    return torch.cat(_halves(x, f, b, **axes), dim=dim)


annotations = Exercise(
    "annotations",
    annotations_by_loops,
    cases=[
        (
            draw(n, (B, S, E))[0],
            seeded(n, nn.GRU, E, H, batch_first=True),
            seeded(n + 10, nn.GRU, E, H, batch_first=True),
        )
        for n, (B, S, E, H) in enumerate(
            [(2, 4, 3, 5), (2, 4, 3, 5), (3, 5, 4, 2), (1, 6, 2, 3), (4, 4, 4, 4)]
        )
    ],
    mistakes={
        "the second GRU reads from left to right, too. Which axis of (B, S, E) is "
        "time?": [
            lambda x, f, b: _joined(x, f, b, turn=None, back=None),
            lambda x, f, b: _joined(x, f, b, turn=0, back=0),
            lambda x, f, b: torch.cat((f(x)[0], f(x)[0]), dim=-1),
        ],
        "the second GRU's states are still in the order in which it read: the "
        "last word "
        "first. h_j needs both states of word j.": [
            lambda x, f, b: _joined(x, f, b, back=None)
        ],
        "the second GRU reads from left to right, and then its states are turned "
        "round. "
        "What does it have to read in the other order?": [
            lambda x, f, b: _joined(x, f, b, turn=None)
        ],
        "all states are turned round at the end. Those of the first GRU stand in the "
        "words' order already.": [
            lambda x, f, b: _joined(x, f, b, back=None).flip(1),
            lambda x, f, b: _joined(x, f, b).flip(1),
        ],
        "the numbers inside a vector are turned round, not the words. Which axis of "
        "(B, S, E) is time?": [
            lambda x, f, b: _joined(x, f, b, turn=2, back=2),
            lambda x, f, b: _joined(x, f, b, turn=2, back=1),
            lambda x, f, b: _joined(x, f, b, turn=1, back=2),
            lambda x, f, b: _joined(x, f, b, turn=2, back=None),
        ],
        "the sentences of the batch are turned round, not the words. Which axis of "
        "(B, S, E) is time?": [
            lambda x, f, b: _joined(x, f, b, turn=0, back=None),
            lambda x, f, b: _joined(x, f, b, turn=0, back=1),
            lambda x, f, b: _joined(x, f, b, turn=1, back=0),
            lambda x, f, b: _joined(x, f, b, turn=(0, 1), back=1),
        ],
        "several axes are turned round, not the words alone. Which axis of (B, S, E) "
        "is time?": [
            lambda x, f, b: _joined(x, f, b, turn=(0, 1, 2), back=1),
            lambda x, f, b: _joined(x, f, b, turn=(0, 1, 2), back=(0, 1, 2)),
            lambda x, f, b: _joined(x, f, b, turn=(1, 2), back=1),
            lambda x, f, b: _joined(x, f, b, turn=(1, 2), back=(1, 2)),
        ],
        "the halves stand in the wrong order: [forwards; backwards] is asked for.": [
            lambda x, f, b: torch.cat(_halves(x, f, b)[::-1], dim=-1),
            lambda x, f, b: torch.cat(_halves(x, f, b, back=None)[::-1], dim=-1),
        ],
        "the two GRUs are exchanged, or their directions: `forwards` reads from left "
        "to right, `backwards` from right to left.": [
            lambda x, f, b: _joined(x, b, f),
            lambda x, f, b: torch.cat(_halves(x, b, f)[::-1], dim=-1),
            lambda x, f, b: torch.cat((f(x.flip(1))[0], b(x)[0]), dim=-1),
        ],
        "one GRU reads in both directions. The second direction has weights of its "
        "own.": [lambda x, f, b: _joined(x, f, f), lambda x, f, b: _joined(x, b, b)],
        "the halves stand one after the other along another axis. Side by side means "
        "along the last one: (B, S, 2H).": [
            lambda x, f, b: _joined(x, f, b, dim=1),
            lambda x, f, b: _joined(x, f, b, dim=0),
        ],
        "torch.stack makes a new axis. torch.cat joins the halves along the last axis, "
        "which is there.": [
            lambda x, f, b: torch.stack(_halves(x, f, b)),
            lambda x, f, b: torch.stack(_halves(x, f, b), dim=1),
            lambda x, f, b: torch.stack(_halves(x, f, b), dim=2),
            lambda x, f, b: torch.stack(_halves(x, f, b), dim=-1),
        ],
        "reshape and view keep the numbers' order in memory: words and halves are "
        "mixed. torch.cat along the last axis sets the halves side by side.": [
            lambda x, f, b: torch.stack(_halves(x, f, b), 1).reshape(*x.shape[:2], -1),
            lambda x, f, b: torch.stack(_halves(x, f, b)).reshape(*x.shape[:2], -1),
            lambda x, f, b: torch.stack(_halves(x, f, b), -1).flatten(2),
            lambda x, f, b: _joined(x, f, b, dim=1).reshape(*x.shape[:2], -1),
            lambda x, f, b: _joined(x, f, b, dim=0).reshape(*x.shape[:2], -1),
        ],
        "the second GRU goes on from the first one's last state. It starts from zeros, "
        "as the first does.": [
            lambda x, f, b: torch.cat(
                (f(x)[0], b(x.flip(1), f(x)[1])[0].flip(1)), dim=-1
            )
        ],
        "the halves are added, or their mean is taken. An annotation keeps both, side "
        "by side: 2H wide.": [
            lambda x, f, b: sum(_halves(x, f, b)),
            lambda x, f, b: sum(_halves(x, f, b)) / 2,
        ],
        "a last state stands in the place of every word's. nn.GRU returns two things, "
        "and the first has a state for every word.": [
            lambda x, f, b: torch.cat(
                (f(x)[0], b(x.flip(1))[0][:, -1:].expand_as(f(x)[0])), dim=-1
            ),
            lambda x, f, b: torch.cat((f(x)[1], b(x.flip(1))[1]), dim=-1),
            lambda x, f, b: torch.cat((f(x)[1][-1], b(x.flip(1))[1][-1]), dim=-1),
            lambda x, f, b: torch.cat((f(x)[1], b(x.flip(1))[1].flip(1)), dim=-1),
            lambda x, f, b: torch.cat((f(x)[1], b(x.flip(1))[1]), dim=-1).transpose(
                0, 1
            ),
        ],
        "nn.GRU returns two things, its outputs and its last state. The outputs alone "
        "are needed here.": [
            lambda x, f, b: torch.cat((f(x), b(x.flip(1))[0].flip(1)), dim=-1),
            lambda x, f, b: torch.cat((f(x), b(x.flip(1))), dim=-1),
            lambda x, f, b: f(x) + b(x.flip(1)),
            lambda x, f, b: b(x.flip(1)).flip(1),
            lambda x, f, b: torch.flip(b(x.flip(1)), [1]),
            lambda x, f, b: b(x.flip(1))[:, 0],
        ],
        "a tensor can't be sliced with a step below 0, as a list can: "
        "x.flip(...) turns "
        "it round along an axis.": [lambda x, f, b: x[:, ::-1]],
        "torch.flip has to be told along which axis it turns.": [
            lambda x, f, b: torch.flip(x),
            lambda x, f, b: x.flip(),
        ],
        "the two halves are returned apart. Each annotation joins them, side by "
        "side.": [_halves],
        "torch.cat takes one tuple or list of tensors, not several tensors.": [
            lambda x, f, b: torch.cat(*_halves(x, f, b), dim=-1),
            lambda x, f, b: torch.cat(*_halves(x, f, b)),
        ],
        "the second GRU reads the first one's states. It reads the words, too.": [
            lambda x, f, b: _joined(f(x)[0].flip(1), f, b),
            lambda x, f, b: torch.cat((f(x)[0], b(f(x)[0].flip(1))[0].flip(1)), -1),
            lambda x, f, b: torch.cat((f(x)[0], b(f(x)[0])[0]), -1),
        ],
        "time and batch were exchanged. These GRUs have batch_first=True: they "
        "read (B, "
        "S, E) as it is.": [
            lambda x, f, b: _joined(x.transpose(0, 1), f, b, turn=0, back=0).transpose(
                0, 1
            ),
            lambda x, f, b: _joined(x.transpose(0, 1), f, b).transpose(0, 1),
            lambda x, f, b: _joined(x.transpose(0, 1), f, b, turn=0, back=0),
        ],
        "each word is read alone: no state is carried from one word to the next.": [
            lambda x, f, b: torch.cat(
                [_joined(word, f, b) for word in x.split(1, dim=1)], dim=1
            )
        ],
        "these are the first GRU's states alone.": [lambda x, f, b: f(x)[0]],
        "these are the second GRU's states alone.": [
            lambda x, f, b: b(x.flip(1))[0].flip(1)
        ],
    },
)


def init_state_by_loops(enc_outputs, enc_hidden, valid_lens, project_keys, bridge):
    """enc_outputs (B, S, D), enc_hidden (L, B, D), lengths (B,), two maps ->
    enc_outputs, projected_keys (B, S, H), hidden_state (L, B, H), valid_lens.
    """
    keys = [
        torch.stack([project_keys(state) for state in states]) for states in enc_outputs
    ]
    first = [torch.stack([bridge(row) for row in layer]) for layer in enc_hidden]
    return enc_outputs, torch.stack(keys), torch.stack(first), valid_lens


def _four_fields(function, *arguments):
    """What the function returns; of an AttentionState with four fields, these."""
    state = function(*arguments)
    named = isinstance(state, tuple) and state[4:] == (None, None)
    return state[:4] if named else state


class _Tanh(nn.Linear):
    """A bridge: tanh of a linear map."""

    def forward(self, x):
        return super().forward(x).tanh()


init_state = Exercise(
    "init_state",
    init_state_by_loops,
    cases=[
        (
            *draw(n, (B, S, D), (L, B, D)),
            torch.tensor(lens),
            seeded(n, nn.Linear, D, A, bias=False),
            seeded(n, _Tanh, D, H),
        )
        for n, (B, S, D, L, A, H, lens) in enumerate(
            [
                (2, 4, 5, 3, 6, 7, [4, 3]),
                (2, 4, 5, 3, 6, 7, [1, 4]),
                (3, 5, 4, 2, 3, 6, [5, 2, 4]),
                (3, 3, 3, 3, 3, 3, [3, 1, 2]),
            ]
        )
    ],
    mistakes={
        "the keys aren't projected: project_keys has to be called here, once, and not "
        "at every step.": [lambda o, h, n, p, b: (o, o, b(h), n)],
        "the last state is projected as if it were the keys. Keys are the outputs, one "
        "for each source position.": [
            lambda o, h, n, p, b: (o, p(h), b(h), n),
            lambda o, h, n, p, b: (o, p(h[-1]), b(h), n),
            lambda o, h, n, p, b: (o, p(h).transpose(0, 1), b(h), n),
        ],
        "the first hidden_state didn't pass the bridge: it has the encoder's size.": [
            lambda o, h, n, p, b: (o, p(o), h, n)
        ],
        "one layer alone is handed on. The decoder has as many layers, and each needs "
        "a first state: (L, B, H).": [
            lambda o, h, n, p, b: (o, p(o), b(h[0]).unsqueeze(0), n),
            lambda o, h, n, p, b: (o, p(o), b(h[-1]), n),
            lambda o, h, n, p, b: (o, p(o), b(h[-1:]), n),
            lambda o, h, n, p, b: (o, p(o), h[-1], n),
            lambda o, h, n, p, b: (o, p(o), b(h[-1]).unsqueeze(1), n),
            lambda o, h, n, p, b: (o, p(o), b(h[-1:]).expand(len(h), -1, -1), n),
            lambda o, h, n, p, b: (o, p(o), b(h[0]), n),
        ],
        "the outputs are projected, too. As values they stay as they are: the context "
        "is a sum of annotations.": [lambda o, h, n, p, b: (p(o), p(o), b(h), n)],
        "outputs or keys passed the bridge. The bridge is for the encoder's hidden "
        "state.": [
            lambda o, h, n, p, b: (o, p(o), b(o.mean(1)).unsqueeze(0), n),
            lambda o, h, n, p, b: (o, b(p(o)), b(h), n),
            lambda o, h, n, p, b: (o, p(o), b(o), n),
            lambda o, h, n, p, b: (o, p(o), b(o.mean(1)), n),
            lambda o, h, n, p, b: (b(o), p(o), b(h), n),
        ],
        "the bridge was given the outputs at the last position. For shorter sentences "
        "that is padding; the last states come from the encoder.": [
            lambda o, h, n, p, b: (o, p(o), b(o[:, -1]), n),
            lambda o, h, n, p, b: (o, p(o), b(o[:, -1]).unsqueeze(0), n),
            lambda o, h, n, p, b: (o, p(o), b(o[:, -1:]), n),
        ],
        "these are d2l's three fields. Here the projected keys are carried as well, in "
        "second place.": [
            lambda o, h, n, p, b: (o, b(h), n),
            lambda o, h, n, p, b: (o, h, n),
            lambda o, h, n, p, b: (o.permute(1, 0, 2), b(h), n),
            lambda o, h, n, p, b: (o.permute(1, 0, 2), h, n),
        ],
        "the fields stand in another order: outputs, projected keys, hidden state, "
        "lengths.": [
            lambda o, h, n, p, b: (o, b(h), p(o), n),
            lambda o, h, n, p, b: (o, b(h), n, p(o)),
            lambda o, h, n, p, b: (p(o), o, b(h), n),
            lambda o, h, n, p, b: (o, p(o), n, b(h)),
            lambda o, h, n, p, b: (b(h), o, p(o), n),
            lambda o, h, n, p, b: (n, o, p(o), b(h)),
            lambda o, h, n, p, b: (p(o), b(h), o, n),
        ],
        "the outputs are carried twice, and the projected keys not at all.": [
            lambda o, h, n, p, b: (o, p(o), o, n)
        ],
        "the outputs themselves aren't carried. The context will be their weighted "
        "sum.": [lambda o, h, n, p, b: (p(o), b(h), n)],
        "the lengths are changed, or made into a mask. They are handed on as they "
        "came, and count <eos>.": [
            lambda o, h, n, p, b: (o, p(o), b(h), n - 1),
            lambda o, h, n, p, b: (o, p(o), b(h), n + 1),
            lambda o, h, n, p, b: (o, p(o), b(h), real_positions(n, o.shape[1])),
        ],
        "the decoder starts from zeros. Its first state comes from the encoder, "
        "through the bridge.": [
            lambda o, h, n, p, b: (o, p(o), torch.zeros_like(b(h)), n)
        ],
        "the first state passes a second tanh. The bridge has its own.": [
            lambda o, h, n, p, b: (o, p(o), b(h).tanh(), n)
        ],
        "the four stand one inside the other. Return them side by side.": [
            lambda o, h, n, p, b: ((o, b(h)), p(o), n),
            lambda o, h, n, p, b: ((o, p(o)), b(h), n),
            lambda o, h, n, p, b: (o, p(o), (b(h), n)),
        ],
        "everything is handed on as it came: neither function was called.": [
            lambda o, h, n, p, b: (o, o, h, n),
        ],
        "the lengths aren't carried. Without them attention looks at padding.": [
            lambda o, h, n, p, b: (o, p(o), b(h)),
            lambda o, h, n, p, b: (o, p(o), b(h), None),
        ],
        "outputs or keys were permuted to time first. This course's encoder is batch "
        "first already.": [
            lambda o, h, n, p, b: (o.permute(1, 0, 2), p(o), b(h), n),
            lambda o, h, n, p, b: (
                o.permute(1, 0, 2),
                p(o.permute(1, 0, 2)),
                b(h),
                n,
            ),
            lambda o, h, n, p, b: (o, p(o.permute(1, 0, 2)), b(h), n),
            lambda o, h, n, p, b: (o, p(o).permute(1, 0, 2), b(h), n),
        ],
        "the hidden state was turned to batch first. nn.GRU wants (L, B, H), even with "
        "batch_first=True.": [
            lambda o, h, n, p, b: (o, p(o), b(h).transpose(0, 1), n),
            lambda o, h, n, p, b: (o, p(o), b(h.transpose(0, 1)), n),
        ],
        "the two functions are exchanged: project_keys belongs to the outputs, "
        "bridge to "
        "the last states.": [lambda o, h, n, p, b: (o, b(o), p(h), n)],
    },
    unwrap=_four_fields,
    given=("utils.seq2seq.AttentionState",),
)


def full_step_by_loops(x, state, attention, rnn, dense):
    """x (B, 1, E), state (enc_outputs, projected_keys, hidden_state, valid_lens),
    attention, rnn, dense -> logits (B, 1, V), weights (B, 1, S), new hidden_state.
    """
    values, keys, hidden_state, lens = state
    W, v = attention.W_q.weight, attention.w_v.weight[0]
    weights = torch.zeros(len(x), 1, keys.shape[1])
    inputs = []
    for b, n in enumerate(lens.tolist()):
        scores = [v @ torch.tanh(W @ hidden_state[-1, b] + key) for key in keys[b, :n]]
        weights[b, 0, :n] = torch.stack(scores).softmax(0)
        context = sum(w * h for w, h in zip(weights[b, 0], values[b], strict=True))
        inputs.append(torch.cat((context, x[b, 0])))
    output, new = rnn(torch.stack(inputs).unsqueeze(1), hidden_state)
    return dense(output), weights, new


def _stepped(
    x, state, attention, rnn, dense, keys=None, values=None, masked=True, **options
):
    """The right step, but for the options: those of _one_step, and these three."""
    keys = state[1] if keys is None else keys
    values = state[0] if values is None else values

    def attend(query):
        return attention.attend(query, keys, values, state[3] if masked else None)

    output, weights, new = _one_step(x, state[2], attend, rnn, **options)
    return dense(output), weights, new


def _step_by_call(x, state, attention, rnn, dense):
    """`context, weights = attention(...)`, which gives the context alone."""
    context, weights = attention(_top(state[2]), state[0], state[0], state[3])
    output, new = rnn(torch.cat((context, x), dim=-1), state[2])
    return dense(output), weights, new


def _with_weights(x, state, attention, rnn, dense, normalise):
    """Weights made of the scores by another way."""
    values, keys, hidden, _ = state
    weights = normalise(attention.score(_top(hidden), keys))
    output, new = rnn(torch.cat((weights @ values, x), dim=-1), hidden)
    return dense(output), weights, new


def _asks_again(*arguments):
    logits, _, new = _stepped(*arguments)
    return logits, _stepped(*arguments, query=lambda *_: _top(new))[1], new


def _word_first(x, state, attention, rnn, dense, context):
    """Updates with the word and some context, then attends."""
    _, new = rnn(torch.cat((context, x), dim=-1), state[2])
    state = (*state[:2], new, state[3])
    return _stepped(x, state, attention, rnn, dense)


def _read(x, state, attention, rnn, dense, part):
    """Logits from a part of these: query, context, word, output, new state."""
    query, seen = _top(state[2]), []
    output, weights, new = _stepped(
        x,
        state,
        attention,
        rnn,
        lambda output: output,
        got=lambda *answer: seen.append(answer[0]) or answer,
    )
    return dense(part(query, seen[0], x, output, new)), weights, new


def _full_case(seed, B, L, E, H, D, S, A, V, lens):
    attention = seeded(seed, AdditiveAttention, D, H, A)
    x, hidden_state, values = draw(seed, (B, 1, E), (L, B, H), (B, S, D))
    keys = attention.project_keys(values).detach()
    rnn = seeded(seed, nn.GRU, D + E, H, L, batch_first=True)
    dense = seeded(seed, nn.Linear, H, V)
    state = values, keys, 2 * hidden_state, torch.tensor(lens)
    return x, state, attention, rnn, dense


decoder_step = Exercise(
    "decoder_step",
    full_step_by_loops,
    cases=[
        _full_case(0, 2, 3, 4, 5, 6, 7, 8, 9, [7, 3]),
        _full_case(1, 2, 3, 4, 5, 6, 7, 8, 9, [2, 6]),
        _full_case(2, 3, 2, 5, 4, 2, 6, 7, 8, [6, 1, 4]),
        _full_case(3, 4, 2, 2, 6, 3, 5, 4, 7, [3, 5, 2, 1]),
        _full_case(4, 3, 3, 3, 3, 3, 3, 3, 3, [3, 2, 1]),
    ],
    mistakes={
        **_wrong_steps(_stepped),
        "fields of the state are exchanged. It holds outputs, projected keys, hidden "
        "state, lengths; and attend takes the keys before the values.": [
            lambda x, s, *m: _stepped(x, (s[0], s[2], s[1], s[3]), *m),
            lambda x, s, *m: _stepped(x, (s[1], s[0], s[2], s[3]), *m),
        ],
        "padding gets weight: the lengths are not used.": [
            lambda *a: _stepped(*a, masked=False)
        ],
        "attend wants keys that are projected already, and these are the outputs. With "
        "equal sizes, nothing raises.": [
            lambda x, s, *m: _stepped(x, s, *m, keys=s[0]),
        ],
        "the context is a sum of projected keys. The values are the encoder's "
        "outputs.": [lambda x, s, *m: _stepped(x, s, *m, values=s[1])],
        "the context is a sum, or a mean, without the weights. attend returns the "
        "context.": [
            lambda x, s, *m: _stepped(
                x, s, *m, got=lambda _, w: (s[0].mean(1, keepdim=True), w)
            ),
            lambda x, s, *m: _stepped(
                x, s, *m, got=lambda _, w: (s[0].sum(1, keepdim=True), w)
            ),
        ],
        "the keys are projected twice. They are projected already: attend takes "
        "them so, "
        "a call `attention(...)` would do it again.": [
            lambda x, s, a, *m: _stepped(x, s, a, *m, keys=a.project_keys(s[1])),
            lambda x, s, a, *m: a(_top(s[2]), s[1], s[0], s[3]),
        ],
        "a call `attention(...)` gives the context alone, and unpacking it takes its "
        "sentences apart. Two results, context and weights, come from attend.": [
            _step_by_call
        ],
        "the query is projected twice: attend applies W_q itself.": [
            lambda x, s, a, *m: _stepped(x, s, a, *m, query=lambda h, _: a.W_q(_top(h)))
        ],
        "the weights sum to 1 over the queries, and there is one: all of them are 1. "
        "Softmax goes over the source positions.": [
            lambda *a: _with_weights(*a, lambda scores: scores.softmax(1))
        ],
        "nn.GRU returns two things, and `dense` reads the first.": [
            lambda *a: _read(*a, lambda q, c, x, output, new: (output, new))
        ],
        "the weights returned belong to the new state. Those of s_{i-1} made the "
        "context.": [_asks_again],
        "the state is updated before it asks. In the paper's order, s_{i-1} asks "
        "first.": [
            lambda x, s, *m: _word_first(x, s, *m, s[0][:, -1:]),
            lambda x, s, *m: _word_first(x, s, *m, torch.zeros_like(s[0][:, :1])),
            lambda x, s, a, rnn, dense: _stepped(
                x,
                s,
                a,
                rnn,
                dense,
                query=lambda h, x: _top(rnn(F.pad(x, (s[0].shape[-1], 0)), h)[1]),
            ),
        ],
        "the whole state is returned as the third part. The new hidden state alone is "
        "asked for.": [
            lambda x, s, *m: _stepped(
                x, s, *m, kept=lambda h, o, new: (*s[:2], new, s[3])
            ),
        ],
        "the output layer is missing: logits have a number for every word of the "
        "vocabulary.": [lambda *a: _stepped(*a[:4], lambda output: output)],
        "these are probabilities. Logits are asked for: what `dense` gives, before any "
        "softmax.": [
            lambda *a: (_stepped(*a)[0].softmax(-1), *_stepped(*a)[1:]),
            lambda *a: (_stepped(*a)[0].log_softmax(-1), *_stepped(*a)[1:]),
        ],
        "the logits are made from the state before. `dense` reads s_i, the GRU's "
        "output.": [lambda *a: _read(*a, lambda q, c, x, output, new: q)],
        "`dense` reads the GRU's output alone, s_i. Context and word have entered it "
        "already.": [
            lambda *a: _read(*a, lambda q, c, x, output, new: c),
            lambda *a: _read(*a, lambda q, c, x, output, new: torch.cat((c, x), -1)),
            lambda *a: _read(
                *a, lambda q, c, x, output, new: torch.cat((output, c), -1)
            ),
            lambda *a: _read(
                *a, lambda q, c, x, output, new: torch.cat((c, output), -1)
            ),
        ],
        "`dense` reads all layers, or another layer. The output is the top layer's new "
        "state alone.": [
            lambda *a: _read(*a, lambda q, c, x, output, new: new),
            lambda *a: _read(*a, lambda q, c, x, output, new: new[0].unsqueeze(1)),
        ],
        "this is the best word's id. Logits are asked for: a number for every word.": [
            lambda *a: (_stepped(*a)[0].argmax(-1), *_stepped(*a)[1:])
        ],
        "the axis for time is missing: logits are (B, 1, V), those of one step.": [
            lambda *a: (_stepped(*a)[0].squeeze(1), *_stepped(*a)[1:])
        ],
        "the three results stand in another order: logits, weights, hidden state.": [
            lambda *a: tuple(_stepped(*a)[n] for n in (0, 2, 1)),
            lambda *a: tuple(_stepped(*a)[n] for n in (1, 0, 2)),
            lambda *a: tuple(_stepped(*a)[n] for n in (1, 2, 0)),
            lambda *a: tuple(_stepped(*a)[n] for n in (2, 1, 0)),
            lambda *a: tuple(_stepped(*a)[n] for n in (2, 0, 1)),
        ],
        "one of the three results is missing: logits, weights, hidden state.": [
            lambda *a: _stepped(*a)[0],
            lambda *a: tuple(_stepped(*a)[n] for n in (0, 2)),
            lambda *a: tuple(_stepped(*a)[n] for n in (0, 1)),
        ],
    },
    given=("utils.attention.",),
)


def lstm_rows_by_loops(state, rows):
    """state: h and c, each (L, B, H); rows (N,) -> the query (N, 1, H), and (h, c) of
    those rows.
    """
    h, c = (
        torch.stack([torch.stack([layer[int(row)] for row in rows]) for layer in part])
        for part in state
    )
    return torch.stack([row.unsqueeze(0) for row in h[-1]]), (h, c)


def _chosen(state, rows, part=0, layer=-1):
    """The right answer, but for what asks: a part of the state, and its layer."""
    h, c = state[0][:, rows], state[1][:, rows]
    return (h, c)[part][layer].unsqueeze(1), (h, c)


lstm_rows = Exercise(
    "lstm_rows",
    lstm_rows_by_loops,
    cases=[
        (draw(n, (L, B, H), (L, B, H)), torch.tensor(rows))
        for n, (L, B, H, rows) in enumerate(
            [
                (2, 3, 4, [2, 0, 2, 1, 1]),
                (2, 3, 4, [1, 2, 0, 0, 2]),
                (3, 5, 2, [4, 1]),
                (1, 4, 3, [3, 0]),
                (3, 3, 3, [2, 2, 0]),
            ]
        )
    ],
    mistakes={
        "the cell c asks. The query is h: what an LSTM shows to the outside.": [
            lambda s, rows: _chosen(s, rows, part=1)
        ],
        "the rows are chosen in h alone. The next step would go on with the "
        "memories of "
        "other sentences.": [
            lambda s, rows: (_chosen(s, rows)[0], (s[0][:, rows], s[1]))
        ],
        "the rows are chosen in c alone.": [
            lambda s, rows: (_chosen(s, rows)[0], (s[0], s[1][:, rows])),
            lambda s, rows: (s[0][-1].unsqueeze(1), (s[0], s[1][:, rows])),
        ],
        "the state is handed on as it was: the rows are chosen for the query alone.": [
            lambda s, rows: (_chosen(s, rows)[0], s),
        ],
        "the query was taken before the rows were chosen: it has B rows, not N.": [
            lambda s, rows: (s[0][-1].unsqueeze(1), _chosen(s, rows)[1]),
            lambda s, rows: (s[0][-1].unsqueeze(1), (s[0][:, rows], s[1])),
        ],
        "the bottom layer asks. The query is the top layer's state.": [
            lambda s, rows: _chosen(s, rows, layer=0)
        ],
        "the rows are chosen along axis 0, and that is the layer. The sentences are "
        "axis 1 of (L, B, H).": [
            lambda s, rows: (
                s[0][rows][-1].unsqueeze(1),
                (s[0][rows], s[1][rows]),
            ),
            lambda s, rows: (
                s[0][-1].unsqueeze(1),
                (s[0][rows], s[1][rows]),
            ),
            lambda s, rows: (
                s[0].index_select(0, rows)[-1].unsqueeze(1),
                (s[0].index_select(0, rows), s[1].index_select(0, rows)),
            ),
        ],
        "numbers inside the states are chosen. The sentences are axis 1 of (L, "
        "B, H).": [
            lambda s, rows: (
                s[0][..., rows][-1].unsqueeze(1),
                (s[0][..., rows], s[1][..., rows]),
            )
        ],
        "the axis that counts queries is missing: (N, 1, H).": [
            lambda s, rows: (s[0][-1, rows], _chosen(s, rows)[1])
        ],
        "the axis of length 1 stands in front. It counts queries: (N, 1, H).": [
            lambda s, rows: (s[0][-1:, rows], _chosen(s, rows)[1])
        ],
        "h and c are exchanged, as they come in or as they are returned. With equal "
        "sizes, nothing raises.": [
            lambda s, rows: (_chosen(s, rows)[0], _chosen(s, rows)[1][::-1]),
            lambda s, rows: _chosen(s[::-1], rows),
        ],
        "the cell is lost: zeros, or a copy of h, stand in its place.": [
            lambda s, rows: _chosen((s[0], torch.zeros_like(s[1])), rows),
            lambda s, rows: _chosen((s[0], s[0]), rows),
        ],
        "the rows are counted from 0 already.": [
            lambda s, rows: _chosen(s, rows - 1),
        ],
        "the rows are chosen twice. After the first time, the sentences are counted "
        "anew.": [
            lambda s, rows: (
                _chosen(s, rows)[1][0][-1, rows].unsqueeze(1),
                _chosen(s, rows)[1],
            ),
            lambda s, rows: _chosen(_chosen(s, rows)[1], rows),
        ],
        "only the top layer's state is kept. Every layer goes on with its own: (L, N, "
        "H).": [
            lambda s, rows: (
                _chosen(s, rows)[0],
                tuple(part[-1:, rows] for part in s),
            ),
            lambda s, rows: (_chosen(s, rows)[0], tuple(part[-1, rows] for part in s)),
        ],
        "this query is the last sentence's. Axis 0 of (L, N, H) is the layer.": [
            lambda s, rows: (s[0][:, rows][:, -1].unsqueeze(1), _chosen(s, rows)[1]),
            lambda s, rows: (s[0][:, rows][:, -1:], _chosen(s, rows)[1]),
        ],
        "reshape and view keep the numbers' order in memory: layers and sentences are "
        "mixed. An index chooses a layer.": [
            lambda s, rows: (
                s[0][:, rows].reshape(len(rows), len(s[0]), -1)[:, -1:],
                _chosen(s, rows)[1],
            ),
        ],
        "the state is a pair of tensors, and a pair has no rows to choose. Take "
        "h and c "
        "apart first.": [
            lambda s, rows: s[:, rows],
            lambda s, rows: s[rows],
            lambda s, rows: s[0, rows],
            lambda s, rows: s.index_select(1, rows),
        ],
        "query and state stand in the wrong order: the query is first.": [
            lambda s, rows: _chosen(s, rows)[::-1]
        ],
        "three things are returned. Two are asked for: the query, and the pair (h, "
        "c).": [lambda s, rows: (_chosen(s, rows)[0], *_chosen(s, rows)[1])],
        "only h is returned as the state. An LSTM can't go on without its cell.": [
            lambda s, rows: (_chosen(s, rows)[0], _chosen(s, rows)[1][0])
        ],
        "these are the first sentences of the batch. `rows` says which ones are asked "
        "for.": [
            lambda s, rows: _chosen(s, torch.arange(len(rows)) % s[0].shape[1]),
            lambda s, rows: _chosen(s, slice(len(rows))),
        ],
        "`rows` was sorted, or made unique. Its order counts, and a sentence may be "
        "chosen twice.": [
            lambda s, rows: _chosen(s, rows.unique()),
            lambda s, rows: _chosen(s, rows.sort().values),
        ],
        "h and c are joined to a query. The query is h alone: (N, 1, H).": [
            lambda s, rows: (
                torch.cat((s[0][-1, rows], s[1][-1, rows]), -1).unsqueeze(1),
                _chosen(s, rows)[1],
            )
        ],
        "the state was turned to batch first. It is (L, B, H) before and after.": [
            lambda s, rows: (
                _chosen(s, rows)[0],
                tuple(part.transpose(0, 1)[rows] for part in s),
            ),
        ],
        "h and c are stacked into one tensor. nn.LSTM wants a pair of tensors.": [
            lambda s, rows: (_chosen(s, rows)[0], torch.stack(s)[:, :, rows]),
        ],
        "all layers ask. The query is the top layer's state alone.": [
            lambda s, rows: (s[0][:, rows], _chosen(s, rows)[1]),
            lambda s, rows: (s[0][:, rows].transpose(0, 1), _chosen(s, rows)[1]),
        ],
    },
)


# What goes wrong where T steps' weights (B, 1, S), in a list, are to be (B, T, S).
JOINED = {
    "reshape and view keep the numbers' order in memory, and cut it up anew: "
    "sentences are mixed. permute or transpose exchanges axes.": [
        lambda w: torch.cat(w).reshape(len(w[0]), len(w), -1),
        lambda w: torch.cat(w, dim=-1).reshape(len(w[0]), -1, len(w)),
    ],
    "the weights stand time first, (T, B, S). Axis 0 has to count the sentences; "
    "joined along dim=1, the steps are (B, T, S) at once.": [
        lambda w: torch.stack(w).squeeze(2),
        lambda w: torch.cat(w, dim=1).transpose(0, 1),
    ],
    "torch.stack adds an axis; each step's weights (B, 1, S) have one for time "
    "already.": [
        lambda w: torch.stack(w),
        lambda w: torch.stack(w, dim=1),
        lambda w: torch.stack(w, dim=2),
        lambda w: torch.stack(w, dim=-1),
    ],
    "squeeze without an axis takes away every axis of length 1: the sentences', too, "
    "where there is one sentence.": [
        lambda w: torch.stack([step.squeeze() for step in w], dim=1)
    ],
    "torch.cat without dim joins along axis 0, the sentences. Which axis of (B, 1, S) "
    "is time?": [
        lambda w: torch.cat(w),
        lambda w: torch.cat(w).transpose(0, 1),
    ],
    "the steps are joined along the last axis, the source positions. Which axis of (B, "
    "1, S) is time?": [
        lambda w: torch.cat(w, dim=-1),
        lambda w: torch.cat(w, dim=-1).squeeze(1),
    ],
    "the last two axes of the weights are exchanged. A row belongs to a step, a column "
    "to a source position: (B, T, S).": [lambda w: torch.cat(w, dim=1).transpose(1, 2)],
    "the steps are added up, or their mean is taken. Each step keeps its own row.": [
        lambda w: sum(w),
        lambda w: sum(w) / len(w),
    ],
    "these are one step's weights alone. There are T of them.": [
        lambda w: w[0],
        lambda w: w[-1],
    ],
    "a step is missing at the beginning or at the end. With `range`, the first step is "
    "number 0.": [
        lambda w: torch.cat(w[1:], dim=1),
        lambda w: torch.cat(w[:-1], dim=1),
    ],
    "the steps stand in reverse order.": [lambda w: torch.cat(w[::-1], dim=1)],
    "the weights are still a list of steps. torch.cat joins a list of tensors along an "
    "axis that they have: which one is time?": [
        lambda w: w,
        lambda w: [step.squeeze(1) for step in w],
    ],
}


def _wrongly_joined(*uses):
    """JOINED as the mistakes of an exercise that uses such a function so."""
    return {
        sentence: [partial(use, join) for join in joins for use in uses]
        for sentence, joins in JOINED.items()
    }


def from_d2l_by_loops(enc_outputs, attention_weights):
    """d2l's outputs (S, B, H), and a list of T steps' weights (B, 1, S) -> batch first:
    keys (B, S, H), weights (B, T, S).
    """
    sentences = range(enc_outputs.shape[1])
    keys = [torch.stack([step[b] for step in enc_outputs]) for b in sentences]
    rows = [torch.stack([step[b, 0] for step in attention_weights]) for b in sentences]
    return torch.stack(keys), torch.stack(rows)


def _ours(outputs, weights):
    return outputs.permute(1, 0, 2), torch.cat(weights, dim=1)


def _d2l_case(seed, S, B, H, T):
    outputs, scores = draw(seed, (S, B, H), (T, B, 1, S))
    return outputs, list(scores.softmax(-1).unbind())


from_d2l = Exercise(
    "from_d2l",
    from_d2l_by_loops,
    cases=[
        _d2l_case(n, *sizes)
        for n, sizes in enumerate(
            [(5, 2, 4, 3), (5, 2, 4, 3), (4, 3, 2, 6), (4, 1, 2, 3), (3, 3, 3, 3)]
        )
    ],
    mistakes={
        "reshape and view keep the outputs' order in memory, and cut it up anew: "
        "sentences are mixed. permute or transpose exchanges axes.": [
            lambda o, w: (o.reshape(o.shape[1], len(o), -1), _ours(o, w)[1]),
            lambda o, w: (
                o.reshape(o.shape[1], len(o), -1),
                torch.cat(w).reshape(o.shape[1], len(w), -1),
            ),
        ],
        "the outputs still stand time first. Axis 0 has to count the sentences.": [
            lambda o, w: (o, _ours(o, w)[1])
        ],
        "the outputs are turned round. flip reverses the order along axes, permute "
        "exchanges axes.": [
            lambda o, w: (o.flip(0, 1), _ours(o, w)[1]),
            lambda o, w: (o.flip(0), _ours(o, w)[1]),
        ],
        "the axes of the outputs are exchanged, but not time and batch alone. Batch "
        "first is (B, S, H).": [
            lambda o, w: (o.transpose(1, 2), _ours(o, w)[1]),
            lambda o, w: (o.permute(1, 2, 0), _ours(o, w)[1]),
            lambda o, w: (o.permute(2, 1, 0), _ours(o, w)[1]),
            lambda o, w: (o.permute(2, 0, 1), _ours(o, w)[1]),
        ],
        "these are weights already. Another softmax makes them nearly level.": [
            lambda o, w: (_ours(o, w)[0], _ours(o, w)[1].softmax(-1)),
        ],
        "the weights are a list: it has no axes to exchange. torch.cat or torch.stack "
        "makes one tensor of it.": [
            lambda o, w: w.permute(1, 0, 2),
            lambda o, w: w.transpose(0, 1),
        ],
        "torch.tensor makes a tensor of numbers. torch.cat joins a list of tensors.": [
            lambda o, w: torch.tensor(w),
        ],
        "the two results are exchanged: first the keys, then the weights.": [
            lambda o, w: _ours(o, w)[::-1]
        ],
        **_wrongly_joined(
            lambda join, o, w: (_ours(o, w)[0], join(w)),
            lambda join, o, w: (o, join(w)),
        ),
    },
)


def all_weights_by_loops(attention, queries, enc_outputs, valid_lens):
    """attention, queries (B, T, query_size), enc_outputs (B, S, key_size), lengths (B,)
    -> weights (B, T, S) of all steps; and how often the keys were projected: once.
    """
    W, U, v = (
        layer.weight.detach() for layer in (attention.W_q, attention.W_k, attention.w_v)
    )
    scores = scores_by_loops(queries, enc_outputs, W, U, v[0])
    weights = torch.zeros_like(scores)
    for b in range(len(scores)):
        n = int(valid_lens[b])
        weights[b, :, :n] = scores[b, :, :n].softmax(-1)
    return weights, 1


def _counted(function, attention, queries, enc_outputs, valid_lens):
    """The function's weights, and how often it projected the keys."""
    calls = []
    attention.W_k.register_forward_hook(lambda *_: calls.append(1))
    weights = function(attention, queries, enc_outputs, valid_lens)
    if weights is ... or weights is None:
        return weights
    return weights, max(len(calls), 1)


def _at_once(attention, queries, enc_outputs, valid_lens):
    """The context and the weights of all steps."""
    keys = attention.project_keys(enc_outputs)
    return attention.attend(queries, keys, enc_outputs, valid_lens)


def _by_steps(attention, queries, enc_outputs, valid_lens):
    """A list of each step's weights (B, 1, S), the keys projected at each."""
    steps = queries.split(1, dim=1)
    return [_at_once(attention, query, enc_outputs, valid_lens)[1] for query in steps]


def _by_sentences(attention, queries, enc_outputs, valid_lens):
    rows = zip(queries, enc_outputs, valid_lens, strict=True)
    return torch.cat(
        [_at_once(attention, *(part.unsqueeze(0) for part in row))[1] for row in rows]
    )


def _by_both(attention, queries, enc_outputs, valid_lens):
    rows = queries.split(1, dim=1)
    return torch.cat(
        [_by_sentences(attention, row, enc_outputs, valid_lens) for row in rows], dim=1
    )


def _projected_twice(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(attention.project_keys(enc_outputs))
    return attention.attend(queries, keys, enc_outputs, valid_lens)[1]


def _unpacked(attention, queries, enc_outputs, valid_lens):
    _, weights = attention(queries, enc_outputs, enc_outputs, valid_lens)
    return weights


def _unpacked_by_steps(attention, queries, *rest):
    return [_unpacked(attention, query, *rest) for query in queries.split(1, dim=1)]


def _unpacked_twice(attention, queries, enc_outputs, valid_lens):
    """The same with keys that are projected already."""
    keys = attention.project_keys(enc_outputs)
    _, weights = attention(queries, keys, enc_outputs, valid_lens)
    return weights


def _each_step(attention, queries, enc_outputs, valid_lens, part=1, steps=None):
    """A part of what attend returns at each step; steps: the queries, if not right."""
    keys = attention.project_keys(enc_outputs)
    steps = queries.split(1, dim=1) if steps is None else steps(queries)
    return [
        attention.attend(query, keys, enc_outputs, valid_lens)[part] for query in steps
    ]


def _by_scores(weigh, attention, queries, enc_outputs, valid_lens):
    """weigh: from scores (B, T, S), and lengths, to weights."""
    return weigh(
        attention.score(queries, attention.project_keys(enc_outputs)), valid_lens
    )


def _kept_real(weights, valid_lens):
    return weights * real_positions(valid_lens, weights.shape[-1]).unsqueeze(1)


def _weights_case(seed, B, T, S, query_size, key_size, H, lens):
    attention = seeded(seed, AdditiveAttention, key_size, query_size, H)
    for parameter in attention.parameters():
        parameter.requires_grad_(False)
    queries, keys = draw(seed, (B, T, query_size), (B, S, key_size))
    return attention, 3 * queries, 3 * keys, torch.tensor(lens)


all_weights = Exercise(
    "all_weights",
    all_weights_by_loops,
    cases=[
        _weights_case(0, 2, 3, 6, 4, 5, 7, [6, 2]),
        _weights_case(1, 2, 3, 6, 4, 5, 7, [4, 5]),
        _weights_case(2, 3, 5, 2, 6, 4, 3, [2, 1, 2]),
        _weights_case(3, 1, 4, 5, 3, 2, 6, [3]),
        _weights_case(4, 3, 3, 3, 3, 3, 3, [3, 1, 2]),
    ],
    mistakes={
        "the weights are right, but the keys are projected at every step. They don't "
        "change while the sentence is translated.": [
            lambda *arguments: torch.cat(_by_steps(*arguments), dim=1),
            _by_both,
        ],
        "the weights are right, but the keys are projected once for each sentence of "
        "the batch. One call does all of them.": [_by_sentences],
        "padding gets weight: the lengths are not used.": [
            lambda *arguments: _at_once(*arguments[:3], None)[1],
            lambda *arguments: torch.cat(_by_steps(*arguments[:3], None), dim=1),
        ],
        "the keys aren't projected at all. With equal sizes, nothing raises.": [
            lambda a, q, h, lens: a.attend(q, h, h, lens)[1]
        ],
        "the keys are projected twice: forward projects them, and attend takes them "
        "projected.": [_projected_twice, _unpacked_twice],
        "attend gives two results, the context and the weights. The weights alone are "
        "asked for.": [
            _at_once,
            lambda *arguments: _each_step(*arguments, part=slice(None)),
        ],
        "these are scores: the softmax is missing.": [
            partial(_by_scores, lambda scores, lens: scores)
        ],
        "softmax goes over the queries. The weights of one step, over the source "
        "positions, sum to 1.": [
            partial(_by_scores, lambda scores, lens: scores.softmax(1)),
            partial(_by_scores, lambda scores, n: _kept_real(scores.softmax(1), n)),
        ],
        "padding is set to 0 after the softmax: what is left doesn't sum to 1.": [
            partial(_by_scores, lambda scores, n: _kept_real(scores.softmax(-1), n))
        ],
        "one position of padding gets weight. Counted from 0, the real positions are "
        "those below the length.": [
            lambda a, q, h, lens: _at_once(a, q, h, (lens + 1).clamp(max=h.shape[1]))[1]
        ],
        "attend stores no weights: it returns them, after the context. Only a call "
        "`attention(...)` stores them.": [lambda a, *_: a.attention_weights],
        "the queries are projected twice: attend applies W_q itself.": [
            lambda a, q, *rest: _at_once(a, a.W_q(q), *rest)[1]
        ],
        "queries and keys are exchanged. The queries ask, the encoder's outputs are "
        "the keys.": [
            lambda a, q, h, lens: _at_once(a, h, q, lens)[1],
        ],
        "the queries are turned to time first. They are batch first, as attend wants "
        "them.": [lambda a, q, *rest: _at_once(a, q.transpose(0, 1), *rest)[1]],
        "the loop runs over axis 0, the sentences. The steps are axis 1.": [
            lambda a, q, *rest: torch.cat(
                [_at_once(a, one.unsqueeze(1), *rest)[1] for one in q], dim=1
            ),
            lambda a, q, *rest: torch.cat(
                [_at_once(a, one.unsqueeze(0), *rest)[1] for one in q]
            ),
        ],
        "`[:, :t]` takes all queries up to t. A step has one: (B, 1, query_size).": [
            lambda *arguments: torch.cat(
                _each_step(
                    *arguments,
                    steps=lambda q: [q[:, : t + 1] for t in range(q.shape[1])],
                ),
                dim=1,
            )
        ],
        "one step's query has lost its axis for queries: attend takes (B, Q, "
        "query_size). An index takes an axis away, a slice keeps it.": [
            lambda *arguments: torch.cat(
                _each_step(*arguments, steps=lambda q: q.unbind(1)), dim=1
            ),
            lambda *arguments: torch.stack(
                _each_step(*arguments, steps=lambda q: q.unbind(1)), dim=1
            ),
        ],
        "a loop over a tensor, or over its len, goes along axis 0, and that is the "
        "sentences. The steps are axis 1.": [
            lambda a, q, *rest: torch.cat(
                [_at_once(a, sentence, *rest)[1] for sentence in q], dim=1
            ),
            lambda a, q, *rest: torch.cat(
                _each_step(a, q, *rest, steps=lambda q: q.split(1, 1)[: len(q)]), 1
            ),
        ],
        "this is the context. attend returns it first and the weights second; a call "
        "`attention(...)` returns it alone.": [
            lambda *arguments: _at_once(*arguments)[0]
        ],
        "`attention(...)` gives the context alone, and unpacking it takes its "
        "sentences "
        "apart. Two results, context and weights, come from attend.": [
            _unpacked,
            lambda *arguments: torch.cat(_unpacked_by_steps(*arguments), dim=1),
        ],
        "every step asks with the first query.": [
            lambda attention, q, h, lens: _at_once(
                attention, q[:, :1].expand_as(q), h, lens
            )[1]
        ],
        **_wrongly_joined(lambda join, *arguments: join(_each_step(*arguments))),
    },
    unwrap=_counted,
    given=("utils.attention.",),
)
