"""The exercises of notebook 04.

B sentences in a batch, S source and T target positions, L layers, E embedding size, H
hidden units, D the size of a value.
"""

import torch
from torch import nn

from utils.attention import AdditiveAttention
from utils.exercises.engine import Exercise
from utils.exercises.inputs import draw, seeded
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


def _updated_first(x, hidden_state, last_context, attend, rnn):
    _, new = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    return attend(new[-1].unsqueeze(1))[1], new


def _between(x, hidden_state, last_context, attend, rnn):
    """Queries with the state after a first update, then updates the old one."""
    _, new = rnn(torch.cat((last_context, x), dim=-1), hidden_state)
    context, weights = attend(new[-1].unsqueeze(1))
    return weights, rnn(torch.cat((context, x), dim=-1), hidden_state)[1]


def _updated_twice(x, hidden_state, last_context, attend, rnn):
    _, new = _updated_first(x, hidden_state, last_context, attend, rnn)
    return step_by_loops(x, new, last_context, attend, rnn)


def _attended_again(*arguments):
    attend = arguments[3]
    _, new = step_by_loops(*arguments)
    return attend(new[-1].unsqueeze(1))[1], new


def _other_order(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    return weights, rnn(torch.cat((x, context), dim=-1), hidden_state)[1]


def _forgotten(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[-1].unsqueeze(1))
    return weights, rnn(torch.cat((context, x), dim=-1))[1]


def _bottom_asks(x, hidden_state, last_context, attend, rnn):
    context, weights = attend(hidden_state[0].unsqueeze(1))
    return weights, rnn(torch.cat((context, x), dim=-1), hidden_state)[1]


def _old_context(x, hidden_state, last_context, attend, rnn):
    _, weights = attend(hidden_state[-1].unsqueeze(1))
    return weights, rnn(torch.cat((last_context, x), dim=-1), hidden_state)[1]


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
        _step_case(0, 2, 2, 3, 4, 5, 6, [6, 3]),
        _step_case(1, 2, 2, 3, 4, 5, 6, [2, 5]),
        _step_case(2, 3, 1, 4, 5, 2, 7, [7, 1, 4]),
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
        "context and word are joined in the wrong order: the GRU's weights expect the "
        "context first.": [_other_order],
        "the GRU starts from zeros: it isn't given the state before.": [_forgotten],
        "the GRU reads the last step's context, not the one attended to now.": [
            _old_context
        ],
        "the bottom layer asks. The query is the top layer's state.": [_bottom_asks],
        "the hidden_state returned is the old one: the next step would start from "
        "s_{i-1} "
        "again.": [lambda *arguments: (step_by_loops(*arguments)[0], arguments[1])],
        "the two results are exchanged: first the weights, then the state.": [
            lambda *arguments: step_by_loops(*arguments)[::-1]
        ],
    },
    given=("utils.attention.",),
)


def bottom_query_by_loops(hidden_state):
    """hidden_state (L, B, H) -> the query (B, 1, H) from the bottom layer."""
    rows = [[state.tolist()] for state in hidden_state[0]]
    return torch.tensor(rows) + 0 * hidden_state[0].unsqueeze(1)


SHAPES = [(2, 3, 4), (2, 3, 4), (3, 2, 5), (1, 4, 2), (3, 3, 3)]

bottom_query = Exercise(
    "bottom_query",
    bottom_query_by_loops,
    cases=[draw(n, shape) for n, shape in enumerate(SHAPES)],
    mistakes={
        "this is the top layer. Layers are counted from the bottom, beginning at 0.": [
            lambda hidden_state: hidden_state[-1].unsqueeze(1)
        ],
        "this is the second layer. Counting begins at 0.": [
            lambda hidden_state: hidden_state[1].unsqueeze(1)
        ],
        "the axis of queries is missing: (B, 1, H), one query a sentence.": [
            lambda hidden_state: hidden_state[0]
        ],
        "the axis of length 1 is in front. It counts queries: (B, 1, H).": [
            lambda hidden_state: hidden_state[0].unsqueeze(0),
            lambda hidden_state: hidden_state[:1],
        ],
        "this takes the first sentence of every layer. Axis 0 of a hidden state is the "
        "layer, even with batch_first.": [
            lambda hidden_state: hidden_state[:, 0].unsqueeze(1),
            lambda hidden_state: hidden_state[:, :1],
        ],
        "this is the mean of all layers.": [
            lambda hidden_state: hidden_state.mean(0).unsqueeze(1)
        ],
        "this is the sum of all layers.": [
            lambda hidden_state: hidden_state.sum(0).unsqueeze(1)
        ],
        "all layers are returned, as if each were a query.": [
            lambda hidden_state: hidden_state.transpose(0, 1)
        ],
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


def _unprojected(attention, queries, enc_outputs, valid_lens):
    return attention.attend(queries, enc_outputs, enc_outputs, valid_lens)[1]


def _projected_twice(attention, queries, enc_outputs, valid_lens):
    keys = attention.project_keys(attention.project_keys(enc_outputs))
    return attention.attend(queries, keys, enc_outputs, valid_lens)[1]


def _unpacked(attention, queries, enc_outputs, valid_lens):
    _, weights = attention(queries, enc_outputs, enc_outputs, valid_lens)
    return weights


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
        _weights_case(3, 3, 3, 3, 3, 3, 3, [3, 1, 2]),
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
            _unprojected
        ],
        "the keys are projected twice: forward projects them, and attend takes them "
        "projected.": [_projected_twice],
        "attend gives two results, the context and the weights. The weights alone are "
        "asked for.": [_at_once],
        "this is the context. A call of the module, `attention(...)`, gives it alone: "
        "the weights "
        "come from attend.": [lambda attention, q, h, lens: attention(q, h, h, lens)],
        "`attention(...)` gives the context alone, and unpacking it takes its "
        "sentences "
        "apart. Two results, context and weights, come from attend.": [_unpacked],
        "time stands first. Batch first is asked for: join the steps along dim=1.": [
            lambda *arguments: _at_once(*arguments)[1].transpose(0, 1)
        ],
        "an axis too many: each step's weights are (B, 1, S) already. torch.cat joins "
        "along an axis, torch.stack adds one.": [
            lambda *arguments: _at_once(*arguments)[1].unsqueeze(2),
            lambda *arguments: _at_once(*arguments)[1].transpose(0, 1).unsqueeze(2),
        ],
        "these are the last step's weights alone.": [
            lambda *arguments: _at_once(*arguments)[1][:, -1:]
        ],
        "every step asks with the first query.": [
            lambda attention, q, h, lens: _at_once(
                attention, q[:, :1].expand_as(q), h, lens
            )[1]
        ],
    },
    unwrap=_counted,
    given=("utils.attention.",),
)
