"""The other decoders: their steps against plain loops, their order, their queries."""

import pytest
import torch

from utils import by_hand
from utils.decoding import greedy_decode
from utils.models import build_model
from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.variants import (
    ContextOutputDecoder,
    HierarchicalDecoder,
    LayerQueryDecoder,
    LuongDecoder,
    WindowDecoder,
)

VOCAB, E, H, D = 11, 4, 6, 8  # words, embedding, decoder and encoder sizes
KINDS = {
    "Luong": (LuongDecoder, {}),
    "Luong, context fed": (LuongDecoder, {"feed": "context"}),
    "Luong, nothing fed": (LuongDecoder, {"feed": "nothing"}),
    "bottom": (LayerQueryDecoder, {"layers": "bottom"}),
    "joined": (LayerQueryDecoder, {"layers": "joined"}),
    "mixed": (LayerQueryDecoder, {"layers": "mixed"}),
    "hierarchical": (HierarchicalDecoder, {}),
    "context in the output": (ContextOutputDecoder, {}),
    "window": (WindowDecoder, {"reach": 1}),
}


def make(name, layers=2, seed=0):
    torch.manual_seed(seed)
    model = build_model(
        "attention", VOCAB, VOCAB, E, H, layers, bidirectional=True, enc_hiddens=D
    )
    decoder, options = KINDS[name]
    model.decoder = decoder(VOCAB, E, H, layers, enc_hiddens=D, **options)
    if name == "mixed":
        torch.nn.init.normal_(model.decoder.shares)
    return model.eval()


def some_batch():
    torch.manual_seed(1)
    lens = torch.tensor([5, 3, 1])
    return torch.randint(4, VOCAB, (3, 5)), torch.randint(4, VOCAB, (3, 4)), lens


def gru_by_hand(rnn, inputs, hidden):
    """One step of a GRU of several layers: inputs (n,), hidden (L, H) -> (L, H)."""
    H, new = hidden.shape[1], []
    for layer, h in enumerate(hidden):
        W, U, b, c = (
            getattr(rnn, f"{name}_l{layer}")
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        )
        x, s = W @ inputs + b, U @ h + c
        r, z = torch.sigmoid(x[:H] + s[:H]), torch.sigmoid(x[H : 2 * H] + s[H : 2 * H])
        n = torch.tanh(x[2 * H :] + r * s[2 * H :])
        inputs = (1 - z) * n + z * h
        new.append(inputs)
    return torch.stack(new)


def attend_by_hand(scores, values):
    """Scores and values of one sentence's real positions -> context, weights."""
    powers = [torch.exp(e) for e in scores]
    weights = torch.stack([p / sum(powers) for p in powers])
    return sum(w * h for w, h in zip(weights, values, strict=True)), weights


def additive(attention, query, key):
    inner = torch.tanh(attention.W_q.weight @ query + attention.W_k.weight @ key)
    return attention.w_v.weight[0] @ inner


def luong_by_loops(decoder, words, outputs, hidden):
    """Update, attend, attentional vector: one sentence, one word at a time."""
    fed, rows, all_weights = torch.zeros(decoder.fed_size), [], []
    for word in words:
        x = decoder.embedding.weight[word]
        hidden = gru_by_hand(decoder.rnn, torch.cat((fed, x)), hidden)
        scores = [hidden[-1] @ decoder.attention.W_k.weight @ h for h in outputs]
        context, weights = attend_by_hand(scores, outputs)
        attentional = torch.tanh(decoder.W_c.weight @ torch.cat((context, hidden[-1])))
        fed = {"attentional": attentional, "context": context, "nothing": fed}[
            decoder.feed
        ]
        rows.append(decoder.dense.weight @ attentional + decoder.dense.bias)
        all_weights.append(weights)
    return torch.stack(rows), torch.stack(all_weights)


def layers_by_loops(decoder, words, outputs, hidden):
    """Attend with what `layers` says, then update."""
    rows, all_weights = [], []
    for word in words:
        query = hidden[0]
        if decoder.layers == "joined":
            query = torch.cat([hidden[layer] for layer in range(len(hidden))])
        if decoder.layers == "mixed":
            powers = torch.exp(decoder.shares)
            query = sum(
                p / powers.sum() * h for p, h in zip(powers, hidden, strict=True)
            )
        scores = [additive(decoder.attention, query, h) for h in outputs]
        context, weights = attend_by_hand(scores, outputs)
        x = torch.cat((context, decoder.embedding.weight[word]))
        hidden = gru_by_hand(decoder.rnn, x, hidden)
        rows.append(decoder.dense.weight @ hidden[-1] + decoder.dense.bias)
        all_weights.append(weights)
    return torch.stack(rows), torch.stack(all_weights)


def hierarchical_by_loops(decoder, words, outputs, hidden):
    """Each layer attends with its own last state, then updates."""
    rows, all_weights, hidden = [], [], list(hidden)
    for word in words:
        below, weights = decoder.embedding.weight[word], []
        for layer, attention in enumerate(decoder.attention):
            scores = [additive(attention, hidden[layer], h) for h in outputs]
            context, weight = attend_by_hand(scores, outputs)
            inputs = torch.cat((context, below))
            before = hidden[layer].unsqueeze(0)
            below = hidden[layer] = gru_by_hand(decoder.rnn[layer], inputs, before)[0]
            weights.append(weight)
        rows.append(decoder.dense.weight @ below + decoder.dense.bias)
        all_weights.append(sum(weights) / len(weights))
    return torch.stack(rows), torch.stack(all_weights)


def context_output_by_loops(decoder, words, outputs, hidden):
    """Attend, update; the output layer reads both."""
    rows, all_weights = [], []
    for word in words:
        scores = [additive(decoder.attention, hidden[-1], h) for h in outputs]
        context, weights = attend_by_hand(scores, outputs)
        x = torch.cat((context, decoder.embedding.weight[word]))
        hidden = gru_by_hand(decoder.rnn, x, hidden)
        joined = torch.tanh(decoder.W_c.weight @ torch.cat((context, hidden[-1])))
        rows.append(decoder.dense.weight @ joined + decoder.dense.bias)
        all_weights.append(weights)
    return torch.stack(rows), torch.stack(all_weights)


def window_by_loops(decoder, words, outputs, hidden):
    """Attend to the words near the place of the step before, then update."""
    rows, all_weights, place = [], [], 0.0
    for word in words:
        near = [j for j in range(len(outputs)) if abs(j - place) <= decoder.reach]
        scores = [additive(decoder.attention, hidden[-1], outputs[j]) for j in near]
        context, found = attend_by_hand(scores, outputs[near])
        place = sum(j * w.item() for j, w in zip(near, found, strict=True))
        x = torch.cat((context, decoder.embedding.weight[word]))
        hidden = gru_by_hand(decoder.rnn, x, hidden)
        rows.append(decoder.dense.weight @ hidden[-1] + decoder.dense.bias)
        weights = torch.zeros(len(outputs))
        weights[near] = found
        all_weights.append(weights)
    return torch.stack(rows), torch.stack(all_weights)


SPECIFICATION = {
    ContextOutputDecoder: context_output_by_loops,
    WindowDecoder: window_by_loops,
    LuongDecoder: luong_by_loops,
    LayerQueryDecoder: layers_by_loops,
    HierarchicalDecoder: hierarchical_by_loops,
}


@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("name", KINDS)
@torch.no_grad()
def test_a_decoder_equals_the_loops(name, layers):
    model = make(name, layers)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    weights = model.decoder.attention_weights
    outputs, hidden = model.encoder(source, lens)
    first = model.decoder.bridge(hidden)
    for b, length in enumerate(lens):
        expected, expected_weights = SPECIFICATION[type(model.decoder)](
            model.decoder, target[b], outputs[b, :length], first[:, b]
        )
        torch.testing.assert_close(scores[b], expected, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(
            weights[b, :, :length], expected_weights, atol=1e-5, rtol=1e-4
        )
        assert (weights[b, :, length:] == 0).all()


def first_row_that_moves(name):
    """Change the word at step 1: the first row of weights that differs."""
    model = make(name)
    source, target, lens = some_batch()
    model(source, target, lens)
    before = model.decoder.attention_weights
    changed = target.clone()
    changed[0, 1] = (target[0, 1] - 3) % 7 + 4
    model(source, changed, lens)
    moved = (model.decoder.attention_weights[0] - before[0]).abs().amax(-1) > 1e-7
    return moved.nonzero().min().item()


@pytest.mark.parametrize("name", KINDS)
def test_the_order_of_attending_and_updating(name):
    assert first_row_that_moves(name) == (1 if "Luong" in name else 2)


@pytest.mark.parametrize("feed", ["attentional", "context", "nothing"])
def test_what_is_fed_decides_whether_attention_reaches_the_next_state(feed):
    """Without input feeding, the decoder's states never learn of the context."""
    torch.manual_seed(0)
    decoder = LuongDecoder(VOCAB, E, H, enc_hiddens=D, feed=feed)
    outputs, hidden = torch.randn(1, 5, D), torch.randn(1, 1, D)
    X = torch.tensor([[4, 5, 6]])
    last = [
        decoder(X, decoder.init_state((states, hidden), torch.tensor([5])))[1]
        for states in (outputs, outputs + 1)
    ]
    same = torch.equal(last[0].hidden_state, last[1].hidden_state)
    assert same == (feed == "nothing")


@pytest.mark.parametrize("name", KINDS)
def test_step_by_step_equals_all_at_once(name):
    model = make(name)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    steps = []
    for t in range(target.shape[1]):
        step, state = model.decoder(target[:, t : t + 1], state)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, dim=1), scores)


@pytest.mark.parametrize("name", KINDS)
def test_padding_changes_nothing(name):
    model = make(name)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    noisy = source.clone()
    noisy[1, 3:], noisy[2, 1:] = 9, 7
    longer = torch.cat((noisy, torch.full((3, 2), 5)), dim=1)
    torch.testing.assert_close(model(longer, target, lens)[0], scores)


@pytest.mark.parametrize("name", KINDS)
def test_keys_are_projected_once_a_sentence(name):
    model = make(name)
    attention = model.decoder.attention
    first = attention[0] if name == "hierarchical" else attention
    calls = []
    first.W_k.register_forward_hook(lambda *_: calls.append(1))
    model(*some_batch())
    assert len(calls) == 1


@pytest.mark.parametrize("name", KINDS)
def test_gradient_reaches_every_parameter(name):
    model = make(name)
    model(*some_batch())[0].square().sum().backward()
    for parameter_name, parameter in model.named_parameters():
        assert parameter.grad is not None, parameter_name
        assert parameter.grad.abs().sum() > 0, parameter_name


@pytest.mark.parametrize("name", KINDS)
def test_greedy_decoding_and_copies_of_the_class_work(name):
    model = make(name)
    source, _, lens = some_batch()
    ids, weights = greedy_decode(model, source, lens, max_steps=6)
    assert ids.shape == weights.shape[:2] and weights.shape[2] == source.shape[1]


def test_one_layer_makes_bottom_mixed_and_hierarchical_the_decoder_of_the_paper():
    source, target, lens = some_batch()
    model = make("bottom", layers=1)
    expected = Seq2SeqAttentionDecoder(VOCAB, E, H, enc_hiddens=D).eval()
    expected.load_state_dict(model.decoder.state_dict())
    scores, _ = model(source, target, lens)
    mixed = make("mixed", layers=1)
    mixed.decoder.load_state_dict(
        {**model.decoder.state_dict(), "shares": torch.zeros(1)}
    )
    for decoder in (expected, mixed.decoder):
        model.decoder = decoder
        torch.testing.assert_close(model(source, target, lens)[0], scores)


def test_a_window_as_wide_as_the_sentence_changes_nothing():
    source, target, lens = some_batch()
    model = make("window")
    plain = Seq2SeqAttentionDecoder(VOCAB, E, H, 2, enc_hiddens=D).eval()
    plain.load_state_dict(model.decoder.state_dict())
    narrow, _ = model(source, target, lens)
    model.decoder.reach = 100
    wide, _ = model(source, target, lens)
    model.decoder = plain
    torch.testing.assert_close(wide, model(source, target, lens)[0])
    assert (wide - narrow).abs().max() > 1e-3


@pytest.mark.parametrize("name", KINDS)
def test_the_fast_route_leaves_the_variants_alone(name):
    assert not by_hand.knows(make(name, layers=1))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: LuongDecoder(VOCAB, E, H, feed="all"), "attentional.*got 'all'"),
        (lambda: LayerQueryDecoder(VOCAB, E, H, layers="top"), "Seq2SeqAttention"),
        (lambda: WindowDecoder(VOCAB, E, H, reach=0), "at least 1, got 0"),
        (lambda: WindowDecoder(VOCAB, E, H, reach="far"), "at least 1, got 'far'"),
        (
            lambda: make("Luong")(*some_batch()[:2], torch.tensor([5, 3])),
            r"shape \(3,\)",
        ),
    ],
)
def test_bad_settings_get_a_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()
