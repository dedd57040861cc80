"""Encoder and decoders: packing, shapes, order of the steps, sizes that differ."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from utils.models import build_model
from utils.seq2seq import (
    EncoderDecoder,
    Seq2SeqAttentionDecoder,
    Seq2SeqDecoder,
    Seq2SeqEncoder,
)

VOCAB = 11


def make(kind="attention", seed=0, **options):
    torch.manual_seed(seed)
    options = {"embed_size": 4, "num_hiddens": 6, "num_layers": 2, **options}
    return build_model(kind, VOCAB, VOCAB + 2, **options).eval()


def some_batch(B=3, S=5, T=4):
    torch.manual_seed(1)
    return (
        torch.randint(4, VOCAB, (B, S)),
        torch.randint(4, VOCAB, (B, T)),
        torch.tensor([S, *[max(1, S - 1 - b) for b in range(1, B)]]),
    )


@given(
    st.sampled_from(["attention", "fixed"]),
    st.integers(1, 4),
    st.integers(1, 6),
    st.integers(1, 5),
    st.integers(1, 2),
    st.booleans(),
    st.integers(1, 5),
)
@settings(max_examples=60, deadline=None)
def test_shapes_with_every_size_different(kind, B, S, T, layers, both_ways, size):
    model = make(
        kind,
        num_hiddens=7,
        num_layers=layers,
        enc_hiddens=2 * size,
        bidirectional=both_ways,
    )
    source, target, lens = some_batch(B, S, T)
    outputs, hidden = model.encoder(source, lens)
    assert outputs.shape == (B, S, 2 * size) and hidden.shape == (layers, B, 2 * size)
    scores, state = model(source, target, lens)
    assert scores.shape == (B, T, VOCAB + 2)
    assert state.hidden_state.shape == (layers, B, 7)
    if kind == "attention":
        weights = model.decoder.attention_weights
        assert weights.shape == (B, T, S)
        torch.testing.assert_close(weights.sum(-1), torch.ones(B, T))


@pytest.mark.parametrize("kind", ["attention", "fixed"])
@pytest.mark.parametrize("both_ways", [False, True])
def test_padding_changes_nothing(kind, both_ways):
    model = make(kind, bidirectional=both_ways)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    for b, length in enumerate(lens):  # alone, without padding
        alone, _ = model(source[b : b + 1, :length], target[b : b + 1], lens[b : b + 1])
        torch.testing.assert_close(alone, scores[b : b + 1])
    noisy = source.clone()  # other ids, and more of them, at the padded places
    noisy[1, lens[1] :] = 9
    longer = torch.cat((noisy, torch.full((3, 2), 7)), dim=1)
    torch.testing.assert_close(model(longer, target, lens)[0], scores)


def test_padded_source_embeddings_get_no_gradient():
    model = make()
    source, target, lens = some_batch()
    source[source == 10] = 4
    for b, length in enumerate(lens):
        source[b, length:] = 10
    model(source, target, lens)[0].sum().backward()
    grad = model.encoder.embedding.weight.grad
    assert (grad[10] == 0).all() and (grad[4:10].abs().sum() > 0)


def test_the_final_state_is_that_of_the_last_real_word():
    model = make()
    source, _, lens = some_batch()
    outputs, hidden = model.encoder(source, lens)
    for b, length in enumerate(lens):
        torch.testing.assert_close(outputs[b, length - 1], hidden[-1, b])
        assert (outputs[b, length:] == 0).all()


def test_attend_first_then_update():
    """The weights of step i depend on words before i only, by way of s_{i-1}."""
    model = make()
    source, target, lens = some_batch()
    model(source, target, lens)
    before = model.decoder.attention_weights
    changed = target.clone()
    changed[:, 1] = (target[:, 1] - 3) % 7 + 4
    model(source, changed, lens)
    after = model.decoder.attention_weights
    assert torch.equal(
        before[:, :2], after[:, :2]
    )  # step 1 reads word 1 after attending
    assert not torch.allclose(before[:, 2], after[:, 2], atol=1e-6)


def test_the_first_query_is_the_encoders_top_layer():
    model = make()
    source, target, lens = some_batch()
    enc_outputs = model.encoder(source, lens)
    state = model.decoder.init_state(enc_outputs, lens)
    _, weights = model.decoder.attention.attend(
        enc_outputs[1][-1].unsqueeze(1), state.projected_keys, enc_outputs[0], lens
    )
    model(source, target, lens)
    torch.testing.assert_close(model.decoder.attention_weights[:, :1], weights)


def test_keys_are_projected_once_a_sentence():
    model = make()
    calls = []
    model.decoder.attention.W_k.register_forward_hook(lambda *_: calls.append(1))
    source, target, lens = some_batch()
    model(source, target, lens)
    assert len(calls) == 1
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    for t in range(target.shape[1]):
        _, state = model.decoder(target[:, t : t + 1], state)
    assert len(calls) == 2


@pytest.mark.parametrize("kind", ["attention", "fixed"])
def test_step_by_step_equals_all_at_once(kind):
    model = make(kind)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    steps = []
    for t in range(target.shape[1]):
        step, state = model.decoder(target[:, t : t + 1], state)
        steps.append(step)
    torch.testing.assert_close(torch.cat(steps, dim=1), scores)


def test_the_fixed_decoder_sees_the_source_through_one_vector_a_layer():
    """Sources with equal final states can't be told apart, whatever else differs."""
    model = make("fixed")
    source, target, lens = some_batch()
    outputs, hidden = model.encoder(source, lens)
    state = model.decoder.init_state((outputs, hidden), lens)
    other = model.decoder.init_state((torch.randn_like(outputs), hidden), lens)
    torch.testing.assert_close(
        model.decoder(target, state)[0], model.decoder(target, other)[0]
    )


def test_gradient_reaches_every_parameter():
    for kind in ("attention", "fixed"):
        model = make(kind, enc_hiddens=8, bidirectional=True)
        source, target, lens = some_batch()
        model(source, target, lens)[0].square().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_dropout_is_dropout():
    """nn.GRU's fourth positional argument is `bias`; dropout passed there is lost."""
    model = build_model("attention", VOCAB, VOCAB, 4, 6, num_layers=2, dropout=0.5)
    for rnn in (model.encoder.rnn, model.decoder.rnn):
        assert rnn.dropout == 0.5 and rnn.bias is True
    source, target, lens = some_batch()
    model.train()
    first, second = (model(source, target, lens)[0] for _ in range(2))
    assert not torch.allclose(first, second)


def test_a_model_can_be_copied_after_use():
    model = make()
    source, target, lens = some_batch()
    model(source, target, lens)[0].sum().backward()
    twin = copy.deepcopy(model)
    assert torch.equal(twin(source, target, lens)[0], model(source, target, lens)[0])


def test_the_parts_fit_without_build_model():
    model = EncoderDecoder(
        Seq2SeqEncoder(VOCAB, 4, 256),
        Seq2SeqAttentionDecoder(VOCAB, 4, 512, enc_hiddens=256),
    )
    source, target, lens = some_batch()
    assert model(source, target, lens)[0].shape == (3, 4, VOCAB)
    assert Seq2SeqDecoder(VOCAB, 4, 6).init_state(
        Seq2SeqEncoder(VOCAB, 4, 6)(source, lens)
    ).context.shape == (3, 6)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s, t, n: (s + VOCAB, t, n), "wrong vocabulary"),
        (lambda s, t, n: (s, t + VOCAB, n), "the target holds"),
        (lambda s, t, n: (s.float(), t, n), "word ids"),
        (lambda s, t, n: (s[0], t, n), "the source must be"),
        (lambda s, t, n: (s[:, :0], t, n), "neither 0"),
        (lambda s, t, n: (s, t, n[:2]), r"shape \(3,\)"),
        (lambda s, t, n: (s, t, n * 0), "between 1 and 5, got 0"),
        (lambda s, t, n: (s, t, n + 1), "got 6"),
    ],
)
def test_bad_input_gets_a_clear_error(change, message):
    source, target, lens = change(*some_batch())
    with pytest.raises(ValueError, match=message):
        make()(source, target, lens)


def test_bad_settings_get_a_clear_error():
    with pytest.raises(ValueError, match="attention.*fixed"):
        make("transformer")
    with pytest.raises(ValueError, match="even size"):
        make(enc_hiddens=5, bidirectional=True)
