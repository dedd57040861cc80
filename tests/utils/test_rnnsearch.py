"""RNNsearch against its equations, and each variant against its name."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from utils.data import BatchLoader, Pair
from utils.decoding import greedy_decode
from utils.models import build_model
from utils.rnnsearch import (
    VARIANTS,
    DeepOutput,
    FirstState,
    GatedUnit,
    LastStates,
    LinearOutput,
    MeanState,
    NewStateOutput,
    NoContextOutput,
    NoWordOutput,
    ReleasedDecoder,
    ResetAfterUnit,
    StateOutput,
    UngatedContextUnit,
    ZeroState,
    initialise,
)
from utils.text import Vocab
from utils.training import Trainer

SRC, TGT = 11, 13
OUTPUTS = [
    DeepOutput,
    LinearOutput,
    NewStateOutput,
    NoWordOutput,
    NoContextOutput,
    StateOutput,
]


def make(variant="RNNsearch", seed=0, **options):
    torch.manual_seed(seed)
    options = {"embed_size": 4, "num_hiddens": 6, "num_maxout": 5, **options}
    return build_model("rnnsearch", SRC, TGT, **options, variant=variant).eval()


def some_batch(B=3, S=5, T=4):
    torch.manual_seed(1)
    lens = torch.tensor([S, *[max(1, S - 1 - b) for b in range(1, B)]])
    return torch.randint(4, SRC, (B, S)), torch.randint(4, TGT, (B, T)), lens


# --- the equations, in plain loops ------------------------------------------------


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def plus(*vectors):
    return [sum(numbers) for numbers in zip(*vectors, strict=True)]


def rows(parameter):
    return parameter.detach().double().tolist()


def unit_by_loops(unit, e, c, s):
    """A.2.2: e, c, s and the result are lists of numbers, for one sentence."""
    H = len(s)
    W, b, C = rows(unit.W.weight), rows(unit.W.bias), rows(unit.C.weight)
    if isinstance(unit, UngatedContextUnit):  # C for the proposal alone
        C = [[0.0] * len(c) for _ in range(2 * H)] + C
    U_z, U_r = rows(unit.U_gates.weight)[:H], rows(unit.U_gates.weight)[H:]
    inputs = plus(times(W, e), b, times(C, c))
    z = [sigmoid(x) for x in plus(inputs[:H], times(U_z, s))]
    r = [sigmoid(x) for x in plus(inputs[H : 2 * H], times(U_r, s))]
    if isinstance(unit, ResetAfterUnit):
        product = plus(times(rows(unit.U.weight), s), rows(unit.U.bias))
        old = [r[k] * product[k] for k in range(H)]
    else:
        old = times(rows(unit.U.weight), [r[k] * s[k] for k in range(H)])
    proposal = plus(inputs[2 * H :], old)
    return [(1 - z[k]) * s[k] + z[k] * math.tanh(proposal[k]) for k in range(H)]


def output_by_loops(output, s, new_s, e, c):
    """A.2.2 with s_{i-1}, s_i, E y_{i-1} and c_i, or what a variant makes of it."""
    if isinstance(output, StateOutput):
        return plus(times(rows(output.dense.weight), new_s), rows(output.dense.bias))
    read = new_s if isinstance(output, NewStateOutput) else s
    t = plus(times(rows(output.U_o.weight), read), rows(output.U_o.bias))
    if not isinstance(output, NoWordOutput):
        t = plus(t, times(rows(output.V_o.weight), e))
    if not isinstance(output, NoContextOutput):
        t = plus(t, times(rows(output.C_o.weight), c))
    if not isinstance(output, LinearOutput):
        t = [max(t[2 * k], t[2 * k + 1]) for k in range(len(t) // 2)]
    return plus(times(rows(output.W_o.weight), t), rows(output.W_o.bias))


def context_by_loops(attention, s, annotations):
    U_h = [times(rows(attention.W_k.weight), h) for h in annotations]
    W_s = times(rows(attention.W_q.weight), s)
    v = rows(attention.w_v.weight)[0]
    e = [
        sum(a * math.tanh(x) for a, x in zip(v, plus(W_s, u), strict=True)) for u in U_h
    ]
    total = sum(math.exp(x) for x in e)
    weights = [math.exp(x) / total for x in e]
    context = plus(
        *[[w * x for x in h] for w, h in zip(weights, annotations, strict=True)]
    )
    return context, weights


def first_state_by_loops(start, annotations, both_ways):
    """s_0, or what a variant begins with."""
    n = len(annotations[0])
    if isinstance(start, ZeroState):
        return [0.0] * start.num_hiddens
    forward, backward = annotations[-1][: n // 2], annotations[0][n // 2 :]
    summary = {
        FirstState: backward,
        LastStates: forward + backward if both_ways else annotations[-1],
        MeanState: [x / len(annotations) for x in plus(*annotations)],
    }[type(start)]
    inner = plus(times(rows(start.W_s.weight), summary), rows(start.W_s.bias))
    return [math.tanh(x) for x in inner]


def decoder_by_loops(model, annotations, ids):
    """Scores (T, V) and weights (T, S) of one sentence without padding."""
    decoder, released = model.decoder, isinstance(model.decoder, ReleasedDecoder)
    both_ways = model.encoder.rnn.bidirectional
    s = first_state_by_loops(decoder.start, annotations, both_ways)
    scores, weights, c = [], [], None
    for y in ids:
        e = rows(decoder.embedding.weight)[y]
        if released and c is not None:  # the word just written is read first
            s = unit_by_loops(decoder.unit, e, c, s)
        c, alpha = context_by_loops(decoder.attention, s, annotations)
        new_s = s if released else unit_by_loops(decoder.unit, e, c, s)
        scores.append(output_by_loops(decoder.output, s, new_s, e, c))
        weights.append(alpha)
        s = new_s
    return scores, weights


@pytest.mark.parametrize("kind", [GatedUnit, ResetAfterUnit, UngatedContextUnit])
def test_the_unit_equals_the_loops(kind):
    torch.manual_seed(0)
    unit = kind(3, 4, 5)
    e, c, s = torch.randn(2, 3), torch.randn(2, 5), torch.randn(2, 4)
    new = unit(unit.W(e), c, s)
    for b in range(2):
        expected = unit_by_loops(unit, rows(e[b]), rows(c[b]), rows(s[b]))
        torch.testing.assert_close(new[b], torch.tensor(expected))


@pytest.mark.parametrize("kind", OUTPUTS)
def test_the_output_equals_the_loops(kind):
    torch.manual_seed(0)
    output = kind(7, 3, 4, 5, 6)
    s, e, c = torch.randn(1, 2, 4), torch.randn(1, 1, 3), torch.randn(1, 1, 5)
    numbers = rows(s[0, 0]), rows(s[0, 1]), rows(e[0, 0]), rows(c[0, 0])
    expected = output_by_loops(output, *numbers)
    torch.testing.assert_close(output(s, e, c)[0, 0], torch.tensor(expected))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_decoder_equals_the_loops(variant):
    """The whole is the paper's; each variant is what its name says."""
    model = loud(variant)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    annotations, _ = model.encoder(source, lens)
    for b, length in enumerate(lens.tolist()):
        expected, weights = decoder_by_loops(
            model, rows(annotations[b, :length]), target[b].tolist()
        )
        torch.testing.assert_close(scores[b], torch.tensor(expected))
        alpha = model.decoder.attention_weights[b, :, :length]
        torch.testing.assert_close(alpha, torch.tensor(weights))


def test_the_order_of_the_released_code():
    """Its state has read the last word when it asks; the paper's hasn't."""
    source, target, lens = some_batch()
    for variant, moves in (("RNNsearch", 2), ("order of the released code", 1)):
        model = loud(variant)
        model(source, target, lens)
        before = model.decoder.attention_weights
        changed = target.clone()
        changed[:, 1] = (target[:, 1] - 3) % 9 + 4
        model(source, changed, lens)
        moved = (before - model.decoder.attention_weights).abs().amax(dim=(0, 2)) > 1e-4
        assert moved.tolist() == [i >= moves for i in range(target.shape[1])]


# --- the two reset gates ----------------------------------------------------------


def gru_cell_like(unit, context_size):
    """nn.GRUCell with a unit's weights. Its gate keeps where the paper's renews."""
    H = unit.U.in_features
    cell = nn.GRUCell(unit.W.in_features + context_size, H)
    W = torch.cat((unit.W.weight, unit.C.weight), dim=1).detach()
    W_z, W_r, W_n = W.split(H)
    b_z, b_r, b_n = unit.W.bias.detach().split(H)
    U_z, U_r = unit.U_gates.weight.detach().split(H)
    cell.weight_ih.data = torch.cat((W_r, -W_z, W_n))  # PyTorch's order: r, z, n
    cell.weight_hh.data = torch.cat((U_r, -U_z, unit.U.weight.detach()))
    cell.bias_ih.data = torch.cat((b_r, -b_z, b_n))
    cell.bias_hh.data.zero_()
    if unit.U.bias is not None:
        cell.bias_hh.data[2 * H :] = unit.U.bias.detach()
    return cell


@pytest.mark.parametrize("kind", [GatedUnit, ResetAfterUnit])
@pytest.mark.parametrize("reset_open", [False, True])
def test_only_the_place_of_the_reset_differs_from_torch(kind, reset_open):
    torch.manual_seed(0)
    unit = kind(3, 4, 5)
    if reset_open:  # r = 1: nothing is reset, so its place can't matter
        nn.init.constant_(unit.W.bias[4:8], 50.0)
    cell = gru_cell_like(unit, 5)
    e, c, s = torch.randn(2, 3), torch.randn(2, 5), torch.randn(2, 4)
    ours, torchs = unit(unit.W(e), c, s), cell(torch.cat((e, c), dim=1), s)
    if kind is ResetAfterUnit or reset_open:
        torch.testing.assert_close(ours, torchs)
    else:
        assert (ours - torchs).abs().max() > 0.01


# --- properties -------------------------------------------------------------------


def doubles(module):
    torch.manual_seed(0)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


@pytest.mark.parametrize("kind", [GatedUnit, ResetAfterUnit, UngatedContextUnit])
def test_the_units_gradient(kind):
    unit = doubles(kind(3, 2, 4))
    inputs = [torch.randn(2, size).double().requires_grad_() for size in (6, 4, 2)]
    assert torch.autograd.gradcheck(unit, inputs)


@pytest.mark.parametrize("kind", [DeepOutput, LinearOutput])
def test_the_outputs_gradient(kind):
    output = doubles(kind(5, 3, 2, 4, 3))
    sizes = ((2, 3, 2), (2, 2, 3), (2, 2, 4))  # a state more than words
    inputs = [torch.randn(size).double().requires_grad_() for size in sizes]
    assert torch.autograd.gradcheck(output, inputs)


@given(
    st.sampled_from(list(VARIANTS)),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(1, 4),
    st.integers(1, 7),
    st.integers(1, 7),
)
@settings(max_examples=40, deadline=None)
def test_shapes_with_every_size_different(variant, B, S, T, hiddens, maxout):
    model = make(variant, num_hiddens=hiddens, num_maxout=maxout)
    source, target, lens = some_batch(B, S, T)
    scores, state = model(source, target, lens)
    assert scores.shape == (B, T, TGT) and state.hidden_state.shape == (1, B, hiddens)
    weights = model.decoder.attention_weights
    assert weights.shape == (B, T, S) and not weights.requires_grad
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, T))


def loud(variant):
    """A model whose parameters are all large, so that nothing hides near zero."""
    model = make(variant)
    torch.manual_seed(2)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


@pytest.mark.parametrize("variant", VARIANTS)
def test_padding_changes_nothing(variant):
    model = loud(variant)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    for b, length in enumerate(lens):
        alone, _ = model(source[b : b + 1, :length], target[b : b + 1], lens[b : b + 1])
        torch.testing.assert_close(alone, scores[b : b + 1])
    longer = torch.cat((source, torch.full((3, 2), 7)), dim=1)
    torch.testing.assert_close(model(longer, target, lens)[0], scores)


@pytest.mark.parametrize("variant", VARIANTS)
def test_step_by_step_equals_all_at_once(variant):
    model = loud(variant)
    source, target, lens = some_batch()
    scores, last = model(source, target, lens)
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    steps = []
    for t in range(target.shape[1]):
        step, state = model.decoder(target[:, t : t + 1], state)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, dim=1), scores)
    torch.testing.assert_close(state.hidden_state, last.hidden_state)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradient_reaches_every_parameter(variant):
    model = loud(variant)
    source, target, lens = some_batch()
    model(source, target, lens)[0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_keys_are_projected_once_a_sentence():
    model = make()
    calls = []
    model.decoder.attention.W_k.register_forward_hook(lambda *_: calls.append(1))
    source, target, lens = some_batch()
    model(source, target, lens)
    assert len(calls) == 1


def test_the_weights_come_before_the_word_is_read():
    """Attend with s_{i-1}, which has read the words before y_{i-1}."""
    model = loud("RNNsearch")
    source, target, lens = some_batch()
    model(source, target, lens)
    before = model.decoder.attention_weights
    changed = target.clone()
    changed[:, 1] = (target[:, 1] - 3) % 9 + 4
    model(source, changed, lens)
    after = model.decoder.attention_weights
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2], atol=1e-4)


@pytest.mark.parametrize("kind, unread", [(DeepOutput, -1), (NewStateOutput, 0)])
def test_which_states_the_output_reads(kind, unread):
    """Of s_0 ... s_T: all but the last, in the order of the words; or all but s_0."""
    torch.manual_seed(0)
    output = kind(7, 3, 4, 5, 6)
    states, e, c = torch.randn(1, 4, 4), torch.randn(1, 3, 3), torch.randn(1, 3, 5)
    scores = output(states, e, c)
    for i in range(4):
        other = states.clone()
        other[:, i] += 1
        moved = (output(other, e, c) != scores).any(dim=-1)[0].tolist()
        step = i if unread == -1 else i - 1  # the step that reads s_i
        assert moved == [t == step for t in range(3)]


@pytest.mark.parametrize(
    "variant", ["RNNsearch", "s_0 from last states", "s_0 from the mean", "s_0 = 0"]
)
def test_what_the_first_state_is_made_of(variant):
    model = loud(variant)
    source, _, lens = some_batch()
    outputs, last = model.encoder(source, lens)
    state = model.decoder.init_state((outputs, last), lens)
    for b, length in enumerate(lens.tolist()):
        backward = outputs[b, 0, 6:]
        summary = {
            "RNNsearch": backward,
            "s_0 from last states": torch.cat((outputs[b, length - 1, :6], backward)),
            "s_0 from the mean": outputs[b, :length].mean(dim=0),
        }.get(variant)
        expected = torch.zeros(6)
        if summary is not None:
            expected = torch.tanh(model.decoder.start.W_s(summary))
        torch.testing.assert_close(state.hidden_state[0, b], expected)


def test_a_gate_without_context_does_not_move_with_it():
    torch.manual_seed(0)
    s, e = torch.randn(1, 4), torch.randn(1, 3)
    contexts = torch.randn(2, 5) * 20
    for kind, moves in ((GatedUnit, True), (UngatedContextUnit, False)):
        inputs = kind(3, 4, 5).from_context(contexts)
        assert inputs.shape == (2, 12)
        assert bool(inputs[:, :8].any()) == moves and inputs[:, 8:].all()
        unit = kind(3, 4, 5)
        assert unit(unit.W(e), contexts[:1], s).shape == (1, 4)


# --- the start of training --------------------------------------------------------


def test_the_initialisation_is_that_of_the_paper():
    torch.manual_seed(0)
    model = build_model("rnnsearch", 400, 500, 60, 80, 40, published_init=True)
    seen = dict.fromkeys(("zero", "orthogonal", "attention", "rest"), 0)
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1 or name == "decoder.attention.w_v.weight":
            kind, right = "zero", not parameter.any()
        elif "weight_hh" in name or ".U." in name or ".U_gates." in name:
            kind, identity = "orthogonal", torch.eye(80)
            right = all(
                torch.allclose(U @ U.T, identity, atol=1e-5)
                for U in parameter.split(80)
            )
        else:
            attention = ".attention." in name
            kind, std = ("attention", 0.001) if attention else ("rest", 0.01)
            right = (
                abs(parameter.std() / std - 1) < 0.05
                and abs(parameter.mean()) < std / 8
            )
        seen[kind] += 1
        assert right, name
    # gru: 2 orthogonal; unit: 2. W_a, U_a. Two embeddings, 2 of the gru, W, C, W_s and
    # 4 of the output.
    assert (seen["orthogonal"], seen["attention"], seen["rest"]) == (4, 2, 11)
    assert seen["zero"] == 4 + 1 + 1 + 1 + 2  # gru, unit, W_s, v_a, output


def test_the_first_weights_are_uniform_and_can_move():
    """v_a = 0 makes all scores 0; its gradient is not 0."""
    model = make(published_init=True)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    weights = model.decoder.attention_weights
    for b, length in enumerate(lens):
        torch.testing.assert_close(
            weights[b, :, :length], torch.full_like(weights[b, :, :length], 1 / length)
        )
    scores.log_softmax(-1)[..., 5].sum().backward()
    assert model.decoder.attention.w_v.weight.grad.abs().sum() > 0
    assert not model.decoder.attention.W_q.weight.grad.any()  # not in the first step


def test_initialise_changes_in_place():
    model = make()
    assert initialise(model) is model
    assert not model.decoder.attention.w_v.weight.any()
    assert model.decoder.unit.W.weight.requires_grad


# --- it plugs in ------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_it_trains_and_decodes_like_the_other_models(variant):
    words = "one two three four".split()
    pairs = [Pair((a, b), (b, a)) for a in words for b in words]
    vocab = Vocab([words], "en")
    torch.manual_seed(0)
    model = build_model("rnnsearch", len(vocab), len(vocab), 8, 10, variant=variant)
    loader = BatchLoader(pairs, vocab, vocab, 8)
    trainer = Trainer(model, loader, 8, lr=0.03).fit(progress=False)
    assert trainer.losses[-1] < 0.8 * trainer.losses[0]
    source, target, lens = some_batch(2, 3, 3)
    ids, weights = greedy_decode(model, source % len(vocab), lens, 6)
    assert ids.shape == weights.shape[:2] and weights.shape[2] == 3


@pytest.mark.parametrize("variant", list(VARIANTS)[1:])
def test_every_variant_differs_from_the_whole(variant):
    """In what it computes from one and the same numbers, wherever they fit."""
    source, target, lens = some_batch()
    models = [make(variant), make()]
    for model in models:
        for name, parameter in model.named_parameters():
            torch.manual_seed(len(name))  # by name: parts in common are equal
            nn.init.normal_(parameter, std=0.5)
    ours, whole = (model(source, target, lens)[0] for model in models)
    assert (ours - whole).abs().max() > 0.01


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: FirstState(6, 7), "both ways.*got states of 7"),
        (
            lambda: DeepOutput(7, 3, 4, 5, 6)(
                torch.randn(1, 2, 4), torch.randn(1, 6, 3), torch.randn(1, 6, 5)
            ),
            r"for 6 words of 1 sentences.*s_0 to s_6.*got \(1, 2, 4\)",
        ),
        (
            lambda: DeepOutput(7, 3, 4, 5, 6)(
                torch.randn(1, 3, 4), torch.randn(1, 2, 3), torch.randn(1, 1, 5)
            ),
            r"contexts \(1, 2, D\); got .* and \(1, 1, 5\)",
        ),
    ],
)
def test_parts_that_do_not_fit_get_a_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s, t, n: (s + SRC, t, n), "wrong vocabulary"),
        (lambda s, t, n: (s, t + TGT, n), "the target holds"),
        (lambda s, t, n: (s, t.float(), n), "word ids"),
        (lambda s, t, n: (s, t[:, :0], n), "neither 0"),
        (lambda s, t, n: (s, t, n * 0), "between 1 and 5, got 0"),
    ],
)
def test_bad_input_gets_a_clear_error(change, message):
    source, target, lens = change(*some_batch())
    with pytest.raises(ValueError, match=message):
        make()(source, target, lens)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"variant": "no gates"}, "RNNsearch.*got 'no gates'"),
        ({"num_hiddens": 0}, "at least 1, got 4, 0 and 5"),
        ({"num_maxout": 0}, "at least 1, got 4, 6 and 0"),
        ({"embed_size": -1}, "at least 1"),
    ],
)
def test_bad_settings_get_a_clear_error(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
