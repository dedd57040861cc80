"""The translator for real text: its parts, dropout, the tied matrix, padding."""

from copy import deepcopy

import pytest
import torch
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel

from utils.decoding import select_rows
from utils.models import build_model
from utils.text import BOS_ID
from utils.variants import DECODERS, DropoutEmbedding

KINDS = sorted(DECODERS)
SOURCE_WORDS, TARGET_WORDS, E, H, D = 11, 13, 3, 5, 8


def translator(kind="translator", dropout=0.0, seed=0):
    torch.manual_seed(seed)
    return build_model(kind, SOURCE_WORDS, TARGET_WORDS, E, H, D, dropout)


def some_input(B=3, S=6, T=4):
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, SOURCE_WORDS, (B, S), generator=generator)
    target = torch.randint(4, TARGET_WORDS, (B, T), generator=generator)
    lens = torch.tensor([S, 1, S - 2])[:B]
    return source.masked_fill(torch.arange(S) >= lens[:, None], 0), target, lens


# --- what it computes -------------------------------------------------------------


def test_one_step_by_hand():
    """s_i and c_i as without the readout; then tanh, then the words' own matrix."""
    model = translator().double().eval()
    source, target, lens = some_input(B=1, T=1)
    decoder = model.decoder
    outputs, hidden_state = model.encoder(source, lens)
    scores, _ = model(source, target, lens)

    s = torch.tanh(decoder.bridge.map(hidden_state[-1, 0]))  # (H,)
    attention = decoder.attention
    e = [
        attention.w_v.weight[0]
        @ torch.tanh(attention.W_q.weight @ s + attention.W_k.weight @ h)
        for h in outputs[0]
    ]
    alpha = torch.stack(e).softmax(0)
    c = sum(a * h for a, h in zip(alpha, outputs[0], strict=True))
    y = decoder.embedding.weight[target[0, 0]]
    states, _ = decoder.rnn(torch.cat((c, y))[None, None], s[None, None])
    readout = decoder.dense
    t = torch.tanh(readout.hidden(torch.cat((states[0, 0], c, y))))
    expected = decoder.embedding.weight @ t + readout.out.bias
    torch.testing.assert_close(scores[0, 0], expected)
    torch.testing.assert_close(decoder.attention_weights[0, 0], alpha.detach())


def test_one_step_without_attention_by_hand():
    model = translator("fixed translator").double().eval()
    source, target, lens = some_input(B=1, T=1)
    decoder = model.decoder
    _, hidden_state = model.encoder(source, lens)
    scores, _ = model(source, target, lens)
    c = hidden_state[-1, 0]
    s, y = torch.tanh(decoder.bridge.map(c)), decoder.embedding.weight[target[0, 0]]
    states, _ = decoder.rnn(torch.cat((c, y))[None, None], s[None, None])
    t = torch.tanh(decoder.dense.hidden(torch.cat((states[0, 0], c, y))))
    expected = decoder.embedding.weight @ t + decoder.dense.out.bias
    torch.testing.assert_close(scores[0, 0], expected)


@pytest.mark.parametrize("kind", KINDS)
def test_step_by_step_equals_all_at_once(kind):
    model = translator(kind).eval()
    source, target, lens = some_input()
    expected, _ = model(source, target, lens)
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    for t in range(target.shape[1]):
        scores, state = model.decoder(target[:, t : t + 1], state)
        torch.testing.assert_close(scores[:, 0], expected[:, t])


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind):
    model = translator(kind).eval()
    source, target, lens = some_input()
    scores, _ = model(source, target, lens)
    wider = F.pad(source, (0, 3))
    torch.testing.assert_close(model(wider, target, lens)[0], scores)
    for b, length in enumerate(lens):
        rows = slice(b, b + 1)
        alone, _ = model(source[rows, :length], target[rows], lens[rows])
        torch.testing.assert_close(alone, scores[rows])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_its_state_can_be_chosen(kind):
    model = translator(kind).eval()
    source, _, lens = some_input()
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    word = torch.full((3, 1), BOS_ID)
    scores, _ = model.decoder(word, state)
    rows = torch.tensor([2, 0])
    chosen, _ = model.decoder(word[rows], select_rows(state, rows))
    torch.testing.assert_close(chosen, scores[rows])


def test_attention_reads_the_encoder_and_the_fixed_one_has_none():
    source, target, lens = some_input()
    model = translator().eval()
    model(source, target, lens)
    weights = model.decoder.attention_weights
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4))
    assert not weights[1, :, 1:].any()  # its length is 1
    assert not hasattr(translator("fixed translator").decoder, "attention_weights")


# --- dropout ----------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_is_active_in_training_only(kind):
    model, inputs = translator(kind, dropout=0.5), some_input()
    model.eval()
    assert torch.equal(model(*inputs)[0], model(*inputs)[0])
    without = translator(kind, dropout=0.0)
    without.load_state_dict(model.state_dict())
    assert torch.equal(model(*inputs)[0], without(*inputs)[0])
    model.train()
    first, second = model(*inputs)[0], model(*inputs)[0]
    assert not torch.equal(first, second)
    torch.manual_seed(5)
    third = model(*inputs)[0]
    torch.manual_seed(5)
    assert torch.equal(third, model(*inputs)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_of_dropout_is_active(kind):
    """Embeddings of both sides, what the encoder hands on, and the readout."""
    model = translator(kind, dropout=0.5).train()
    places = [
        model.encoder.embedding,
        model.decoder.embedding,
        model.decoder.dropout,
        model.decoder.dense.dropout,
    ]
    for place in places:
        for other in places:
            other.train(other is place)
        scores = [model(*some_input())[0] for _ in range(4)]
        assert not all(torch.equal(scores[0], other) for other in scores)
        place.eval()
        assert torch.equal(model(*some_input())[0], model(*some_input())[0])


def test_dropped_embeddings_keep_their_mean():
    torch.manual_seed(0)
    embedding = DropoutEmbedding(4, 100, 0.3)
    ids = torch.ones(500, dtype=torch.long)
    vectors = embedding(ids).detach()
    dropped = vectors == 0
    assert 0.28 < dropped.float().mean() < 0.32
    kept = embedding.weight[1].expand_as(vectors)[~dropped] / 0.7
    torch.testing.assert_close(vectors[~dropped], kept.detach())
    assert torch.equal(embedding.eval()(ids[:1])[0], embedding.weight[1])


# --- one matrix that reads and writes words ---------------------------------------


def is_tied(model):
    decoder = model.decoder
    return decoder.dense.out.weight is decoder.embedding.weight


@pytest.mark.parametrize("kind", KINDS)
def test_the_matrix_is_one_object_and_stays_one(kind):
    model = translator(kind)
    assert is_tied(model)
    names = [name for name, _ in model.named_parameters()]
    assert "decoder.embedding.weight" in names
    assert "decoder.dense.out.weight" not in names
    for copy in (deepcopy(model), AveragedModel(model).module, model.double()):
        assert is_tied(copy)
    loaded = translator(kind, seed=1)
    loaded.load_state_dict(model.state_dict())
    assert is_tied(loaded)
    with torch.no_grad():
        loaded.decoder.embedding.weight[7] += 1.0
    assert (
        loaded.decoder.dense.out.weight[7] > model.decoder.dense.out.weight[7]
    ).all()


def test_an_averaged_model_stays_tied_and_is_the_mean():
    model = translator()
    averaged = AveragedModel(model)
    values = []
    for step in range(3):
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(step + 1.0)
        values.append(model.decoder.embedding.weight.clone())
        averaged.update_parameters(model)
    assert is_tied(averaged.module)
    mean = sum(values) / 3
    torch.testing.assert_close(averaged.module.decoder.dense.out.weight, mean)


def test_both_uses_of_the_matrix_give_it_gradient():
    model = translator().double()
    source, target, lens = some_input()
    scores, _ = model(source, target, lens)
    scores[..., 5].sum().backward()  # a word that isn't read ...
    assert not (target == 5).any()
    gradient = model.decoder.embedding.weight.grad
    assert gradient[5].any()  # ... is written; those that are read also count
    assert all(gradient[word].any() for word in target.unique())


# --- how it is built --------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_its_config_builds_it_again(kind):
    model = translator(kind, dropout=0.25)
    again = build_model(**model.config)
    again.load_state_dict(model.state_dict())
    assert again.config == model.config and again.config["dropout"] == 0.25
    inputs = some_input()
    assert torch.equal(again.eval()(*inputs)[0], model.eval()(*inputs)[0])


def test_sizes_that_agree_need_no_map():
    model = build_model("translator", 11, 13, 3, 8, 8, 0.0)
    assert model.decoder.bridge.same
    assert model(*some_input())[0].shape == (3, 4, 13)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"kind": "transformer"}, "kind must be one of .*, got 'transformer'"),
        ({"enc_hiddens": 7}, "a bidirectional encoder needs an even size, got 7"),
        ({"dropout": 1.5}, "dropout probability has to be between 0 and 1"),
    ],
)
def test_what_can_not_be_built(changes, message):
    with pytest.raises(ValueError, match=message):
        build_model(**{**translator().config, **changes})
