"""The other decoders, and the translator for real text: against plain loops."""

import pytest
import torch
from helpers.models import (
    CATALOGUE,
    a_batch,
    a_model,
    assert_as_specified,
    attend_by_loops,
    bahdanau,
    by_loops,
    gru_by_loops,
)

from utils.text import SLOTS
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


def near(decoder, state, annotations, number):
    """Attend with a state to the words near a place: equations 9 and 10 of Luong et al.

    The place is the step's number, or the last word; in local-p it is predicted.
    """
    place = min(number, len(annotations) - 1)
    if decoder.predicted:
        inner = decoder.v_p.weight[0] @ torch.tanh(decoder.W_p.weight @ state)
        place = len(annotations) / (1 + torch.exp(-inner))
    seen = [j for j in range(len(annotations)) if abs(j - place) <= decoder.reach]
    _, weights = attend_by_loops(decoder.attention, state, annotations[seen])
    if decoder.predicted:
        sigma = decoder.reach / 2
        distance = torch.tensor(seen) - place
        weights = weights * torch.exp(-(distance**2) / (2 * sigma**2))
    row = annotations.new_zeros(len(annotations))
    row[seen] = weights
    return row @ annotations, row


def local(decoder, x, states, source, number):
    context, weights = near(decoder, states[-1], source[0], number or 0)
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    return states[-1], weights, states, (number or 0) + 1


def luong_local(decoder, x, states, source, memory):
    fed, number = memory or (x.new_zeros(decoder.rnn.input_size - len(x)), 0)
    states = gru_by_loops(decoder.rnn, torch.cat((fed, x)), states)
    context, weights = near(decoder, states[-1], source[0], number)
    vector = torch.tanh(decoder.W_c.weight @ torch.cat((context, states[-1])))
    return vector, weights, states, (vector, number + 1)


def pointer(decoder, x, states, source, _):
    """The gate reads the context, the word and s_i, in this order."""
    context, weights, states = bahdanau(decoder, x, states[-1], states, source)
    return torch.cat((context, x, states[-1])), weights, states, None


def pointed(decoder, read, weights, source):
    """log(p_gen softmax + (1 - p_gen) weights), a place of the source after another."""
    p_gen = torch.sigmoid(decoder.gate.weight[0] @ read + decoder.gate.bias[0])
    written = decoder.dense(read[-decoder.rnn.hidden_size :]).softmax(0)
    p = [*(p_gen * written), *written.new_zeros(SLOTS)]
    for word, weight in zip(source, weights, strict=True):
        p[word] = p[word] + (1 - p_gen) * weight
    return torch.stack(p).clamp(min=1e-30).log()


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


def conditional_translator(decoder, x, states, source, _):
    """Update with the word, attend with the new state, update with the context."""
    states = gru_by_loops(decoder.rnn, x, states)
    context, weights = attend_by_loops(decoder.attention, states[-1], source[0])
    states = gru_by_loops(decoder.second, context, states)
    return torch.cat((states[-1], context, x)), weights, states, None


def fixed_translator(decoder, x, states, source, _):
    """One context, the encoder's last state; the same readout."""
    context = source[1][-1]
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    return torch.cat((states[-1], context, x)), None, states, None


DECODERS = luong, local, luong_local
TRANSLATORS = translator, released_translator, conditional_translator, fixed_translator
STEPS = {step.__name__.replace("_", " "): step for step in DECODERS + TRANSLATORS}


@pytest.mark.parametrize("name", [n for n in CATALOGUE if CATALOGUE[n][0] in STEPS])
def test_a_model_equals_the_loops(name):
    assert_as_specified(a_model(name), by_loops(STEPS[CATALOGUE[name][0]]))


def test_a_pointer_equals_the_loops_also_where_a_word_stands_twice():
    model = a_model("pointer")
    assert_as_specified(model, by_loops(pointer, pointed))
    ids, word, length = torch.tensor([[14, 5, 14]]), torch.tensor([[1]]), [3]
    log_p, state = model(ids, word, torch.tensor(length))
    p, weights = log_p[0, 0].exp(), state.attention_weights[0, 0]
    same(p.sum().item(), 1.0)
    p_copy = p[14] / (weights[0] + weights[2])  # no softmax writes word 14
    assert p_copy * weights[1] < p[5] < p_copy * weights[1] + 1 - p_copy


def test_the_readout_is_a_tanh_layer_and_the_words_own_matrix():
    decoder, x = a_model("translator").decoder, torch.randn(2, 17).double()
    hidden = decoder.dense.hidden
    t = torch.tanh(x @ hidden.weight.T + hidden.bias)
    expected = t @ decoder.embedding.weight.T + decoder.dense.out.bias
    same(decoder.dense(x), expected)


@pytest.mark.parametrize("name", ["translator", "fixed translator"])
def test_every_place_of_dropout_is_active(name):
    """Embeddings of both sides, what the encoder hands on, and the readout."""
    model = a_model(name, dropout=0.5)
    decoder, embedding = model.decoder, model.encoder.embedding
    places = embedding, decoder.embedding, decoder.dropout, decoder.dense.dropout
    for place in places:
        place.train()
        scores = [model(*a_batch())[0] for _ in range(4)]
        assert not all(torch.equal(scores[0], other) for other in scores)
        place.eval()
        assert torch.equal(*(model(*a_batch())[0] for _ in range(2)))


def test_word_vectors_start_small_enough_to_write_with():
    torch.manual_seed(0)
    weight = DropoutEmbedding(2000, 64, 0.0).weight
    same(weight.std().item(), 64**-0.5, rtol=0.02, atol=0)
