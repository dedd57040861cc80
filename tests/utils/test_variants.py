"""The other decoders, and the translator for real text: against plain loops."""

from copy import deepcopy

import pytest
import torch
from helpers.models import (
    a_batch,
    a_model,
    assert_as_specified,
    attend_by_loops,
    bahdanau,
    by_loops,
    gru_by_loops,
    score_by_loops,
)
from torch.optim.swa_utils import AveragedModel

from utils.translator import DropoutEmbedding

same = torch.testing.assert_close


def luong(decoder, x, states, source, fed):
    """Update, attend with s_i, join both: the attentional vector."""
    annotations, _ = source
    if fed is None:
        fed = x.new_zeros(decoder.rnn.input_size - len(x))
    states = gru_by_loops(decoder.rnn, torch.cat((fed, x)), states)
    context, weights = attend_by_loops(decoder.attention, states[-1], annotations)
    vector = torch.tanh(decoder.W_c.weight @ torch.cat((context, states[-1])))
    fed = {"attentional": vector, "context": context, "nothing": fed}[decoder.feed]
    return vector, weights, states, fed


def context_output(decoder, x, states, source, _):
    context, weights, states = bahdanau(decoder, x, states[-1], states, source)
    joined = torch.cat((context, states[-1]))
    return torch.tanh(decoder.W_c.weight @ joined), weights, states, None


def bottom_query(decoder, x, states, source, _):
    _, weights, states = bahdanau(decoder, x, states[0], states, source)
    return states[-1], weights, states, None


def hierarchical(decoder, x, states, source, _):
    """Each layer attends with its own last state, then updates."""
    annotations, _ = source
    new, all_weights = [], []
    for layer, attention in enumerate(decoder.attention):
        context, weights = attend_by_loops(attention, states[layer], annotations)
        inputs = torch.cat((context, x))
        x = gru_by_loops(decoder.rnn[layer], inputs, states[layer : layer + 1])[0]
        new.append(x)
        all_weights.append(weights)
    return x, sum(all_weights) / len(new), torch.stack(new), None


def near(decoder, x, states, annotations, place, factor=lambda distance: 1.0):
    """Attend to the words near a place, each weight times a factor, then update."""
    seen = [j for j in range(len(annotations)) if abs(j - place) <= decoder.reach]
    powers = {
        j: torch.exp(score_by_loops(decoder.attention, states[-1], annotations[j]))
        for j in seen
    }
    weights = {j: p / sum(powers.values()) for j, p in powers.items()}
    weights = {j: w * factor(j - place) for j, w in weights.items()}
    context = sum(w * annotations[j] for j, w in weights.items())
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    row = annotations.new_zeros(len(annotations))
    for j, w in weights.items():
        row[j] = w.detach()
    return states[-1], row, states


def window(decoder, x, states, source, place):
    """The place is that of the step before: the mean position under its weights."""
    place = 0.0 if place is None else place
    output, weights, states = near(decoder, x, states, source[0], place)
    return output, weights, states, sum(j * w for j, w in enumerate(weights))


def local_m(decoder, x, states, source, number):
    """The place is the number of the step, or the last word when there are fewer."""
    number = 0 if number is None else number
    place = min(number, len(source[0]) - 1)
    return *near(decoder, x, states, source[0], place), number + 1


def local_p(decoder, x, states, source, _):
    """Luong et al. (2015), equations 9 and 10."""
    inner = torch.tanh(decoder.W_p.weight @ states[-1])
    place = len(source[0]) / (1 + torch.exp(-(decoder.v_p.weight[0] @ inner)))
    sigma = decoder.reach / 2

    def bell(distance):
        return torch.exp(-(distance**2) / (2 * sigma**2))

    return *near(decoder, x, states, source[0], place, bell), None


def coverage(decoder, x, states, source, earlier):
    """A score reads the sum of the earlier weights on its word."""
    (annotations, _), part = source, decoder.attention
    covered = annotations.new_zeros(len(annotations)) if earlier is None else earlier
    powers = []
    for h, C in zip(annotations, covered, strict=True):
        inner = part.W_q.weight @ states[-1] + part.W_k.weight @ h
        inner = torch.tanh(inner + decoder.w_c.weight[:, 0] * C)
        powers.append(torch.exp(part.w_v.weight[0] @ inner))
    weights = torch.stack(powers) / sum(powers)
    context = sum(w * h for w, h in zip(weights, annotations, strict=True))
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    return states[-1], weights.detach(), states, covered + weights


def translator(decoder, x, states, source, _):
    """The readout reads s_i, c_i and the word, in this order."""
    context, weights, states = bahdanau(decoder, x, states[-1], states, source)
    return torch.cat((states[-1], context, x)), weights, states, None


def released_translator(decoder, x, states, source, context):
    """Update with the context of the step before, then attend with the new state."""
    if context is None:
        context, _ = attend_by_loops(decoder.attention, states[-1], source[0])
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    context, weights = attend_by_loops(decoder.attention, states[-1], source[0])
    return torch.cat((states[-1], context, x)), weights, states, context


def fixed_translator(decoder, x, states, source, _):
    """One context, the encoder's last state; the same readout."""
    context = source[1][-1]
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    return torch.cat((states[-1], context, x)), None, states, None


STEPS = {
    "luong": luong,
    "luong, context fed": luong,
    "luong, nothing fed": luong,
    "context output": context_output,
    "bottom query": bottom_query,
    "hierarchical": hierarchical,
    "window": window,
    "window, general": window,
    "local-m": local_m,
    "local-p": local_p,
    "coverage": coverage,
    "translator": translator,
    "released translator": released_translator,
    "fixed translator": fixed_translator,
}


@pytest.mark.parametrize("name", STEPS)
def test_a_model_equals_the_loops(name):
    assert_as_specified(a_model(name), by_loops(STEPS[name]))


def test_the_readout_is_a_tanh_layer_and_the_words_own_matrix():
    decoder, x = a_model("translator").decoder, torch.randn(2, 17).double()
    hidden = decoder.dense.hidden
    t = torch.tanh(x @ hidden.weight.T + hidden.bias)
    expected = t @ decoder.embedding.weight.T + decoder.dense.out.bias
    same(decoder.dense(x), expected)


# --- the translator's dropout, and one matrix that reads and writes words ----------

TRANSLATORS = ["translator", "fixed translator"]


@pytest.mark.parametrize("name", TRANSLATORS)
def test_every_place_of_dropout_is_active(name):
    """Embeddings of both sides, what the encoder hands on, and the readout."""
    model = a_model(name, dropout=0.5)
    places = (
        model.encoder.embedding,
        model.decoder.embedding,
        model.decoder.dropout,
        model.decoder.dense.dropout,
    )
    for place in places:
        place.train()
        scores = [model(*a_batch())[0] for _ in range(4)]
        assert not all(torch.equal(scores[0], other) for other in scores)
        place.eval()
        assert torch.equal(*(model(*a_batch())[0] for _ in range(2)))


def test_dropped_embeddings_keep_their_mean():
    torch.manual_seed(0)
    embedding = DropoutEmbedding(4, 100, 0.3)
    ids = torch.ones(500, dtype=torch.long)
    vectors = embedding(ids).detach()
    dropped = vectors == 0
    assert 0.28 < dropped.float().mean() < 0.32
    kept = embedding.weight[1].expand_as(vectors)[~dropped] / 0.7
    same(vectors[~dropped], kept.detach())
    assert torch.equal(embedding.eval()(ids[:1])[0], embedding.weight[1])


@pytest.mark.parametrize("name", TRANSLATORS)
def test_the_matrix_is_one_object_and_stays_one(name):
    model = a_model(name)
    averaged = AveragedModel(model)
    for other in (model, deepcopy(model), averaged.module, model.float()):
        assert other.decoder.dense.out.weight is other.decoder.embedding.weight
    before = model.decoder.embedding.weight.detach().clone()
    for change in (0.0, 2.0):  # the mean of two values is 1 more than the first
        with torch.no_grad():
            model.decoder.embedding.weight.add_(change)
        averaged.update_parameters(model)
    same(averaged.module.decoder.dense.out.weight.float(), before + 1)


def test_word_vectors_start_small_enough_to_write_with():
    torch.manual_seed(0)
    weight = DropoutEmbedding(2000, 64, 0.0).weight
    same(weight.std().item(), 64**-0.5, rtol=0.02, atol=0)
