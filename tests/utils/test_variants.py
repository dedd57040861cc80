"""The other decoders, and the translator for real text: against plain loops."""

from copy import deepcopy

import pytest
import torch
from helpers_models import (
    a_batch,
    a_model,
    additive_by_loops,
    assert_as_specified,
    attend_by_loops,
    bridge_by_loops,
    encoder_by_loops,
    gru_by_loops,
)
from torch.optim.swa_utils import AveragedModel

from utils.seq2seq import Seq2SeqAttentionDecoder
from utils.variants import DropoutEmbedding

same = torch.testing.assert_close


def by_loops(step):
    """A specification of a whole model from that of a step.

    step(decoder, x, states (L, H), annotations, memory) -> what the output layer
    reads, weights, the new states, and what else the next step remembers.
    """

    def sentence(model, source, target):
        decoder = model.decoder
        annotations, last = encoder_by_loops(model.encoder, source)
        states = bridge_by_loops(decoder.bridge, last)
        memory, rows, all_weights = None, [], []
        for word in target:
            x = decoder.embedding.weight[word]
            read, weights, states, memory = step(
                decoder, x, states, annotations, memory
            )
            rows.append(decoder.dense(read))
            all_weights.append(weights)
        return torch.stack(rows), torch.stack(all_weights)

    return sentence


def score(attention):
    """Additive, or Luong et al.'s "general" where there is no v."""
    if hasattr(attention, "w_v"):
        return lambda q, k: additive_by_loops(attention, q, k)
    return lambda q, k: q @ (attention.W_k.weight @ k)


def bahdanau(decoder, x, query, states, annotations):
    """Attend with the query, then update -> context, weights, states."""
    context, weights = attend_by_loops(
        score(decoder.attention), query, annotations, annotations
    )
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    return context, weights, states


def luong(decoder, x, states, annotations, fed):
    """Update, attend with s_i, join both: the attentional vector."""
    if fed is None:
        fed = x.new_zeros(decoder.rnn.input_size - len(x))
    states = gru_by_loops(decoder.rnn, torch.cat((fed, x)), states)
    context, weights = attend_by_loops(
        score(decoder.attention), states[-1], annotations, annotations
    )
    vector = torch.tanh(decoder.W_c.weight @ torch.cat((context, states[-1])))
    fed = {"attentional": vector, "context": context, "nothing": fed}[decoder.feed]
    return vector, weights, states, fed


def context_output(decoder, x, states, annotations, _):
    context, weights, states = bahdanau(decoder, x, states[-1], states, annotations)
    joined = torch.cat((context, states[-1]))
    return torch.tanh(decoder.W_c.weight @ joined), weights, states, None


def layer_query(decoder, x, states, annotations, _):
    if decoder.layers == "bottom":
        query = states[0]
    elif decoder.layers == "joined":
        query = torch.cat([states[layer] for layer in range(len(states))])
    else:
        powers = torch.exp(decoder.shares)
        query = sum(p / powers.sum() * s for p, s in zip(powers, states, strict=True))
    _, weights, states = bahdanau(decoder, x, query, states, annotations)
    return states[-1], weights, states, None


def hierarchical(decoder, x, states, annotations, _):
    """Each layer attends with its own last state, then updates."""
    new, all_weights = [], []
    for layer, attention in enumerate(decoder.attention):
        context, weights = attend_by_loops(
            score(attention), states[layer], annotations, annotations
        )
        inputs = torch.cat((context, x))
        x = gru_by_loops(decoder.rnn[layer], inputs, states[layer : layer + 1])[0]
        new.append(x)
        all_weights.append(weights)
    return x, sum(all_weights) / len(new), torch.stack(new), None


def window(decoder, x, states, annotations, place):
    """Attend to the words near the place of the step before, then update."""
    place = 0.0 if place is None else place
    near = [j for j in range(len(annotations)) if abs(j - place) <= decoder.reach]
    context, found = attend_by_loops(
        score(decoder.attention), states[-1], annotations[near], annotations[near]
    )
    states = gru_by_loops(decoder.rnn, torch.cat((context, x)), states)
    weights = found.new_zeros(len(annotations)).index_copy(0, torch.tensor(near), found)
    return states[-1], weights, states, sum(j * w for j, w in enumerate(weights))


def translator(decoder, x, states, annotations, _):
    """The readout reads s_i, c_i and the word, in this order."""
    context, weights, states = bahdanau(decoder, x, states[-1], states, annotations)
    return torch.cat((states[-1], context, x)), weights, states, None


STEPS = {
    "luong": luong,
    "luong, additive": luong,
    "luong, context fed": luong,
    "luong, nothing fed": luong,
    "context output": context_output,
    "bottom": layer_query,
    "joined": layer_query,
    "mixed": layer_query,
    "hierarchical": hierarchical,
    "window": window,
    "window, general": window,
    "translator": translator,
    "translator, one size": translator,
}


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("name", STEPS)
def test_a_model_equals_the_loops(name, layers):
    options = {} if "translator" in name else {"num_layers": layers}
    assert_as_specified(a_model(name, **options), by_loops(STEPS[name]))


def test_the_translator_without_attention_equals_the_loops():
    def loops(model, source, target):
        decoder, (_, last) = model.decoder, encoder_by_loops(model.encoder, source)
        states, rows = bridge_by_loops(decoder.bridge, last), []
        for word in target:
            x = decoder.embedding.weight[word]
            states = gru_by_loops(decoder.rnn, torch.cat((last[-1], x)), states)
            rows.append(decoder.dense(torch.cat((states[-1], last[-1], x))))
        return torch.stack(rows), None

    assert_as_specified(a_model("fixed translator"), loops)


def test_the_readout_is_a_tanh_layer_and_the_words_own_matrix():
    decoder, x = a_model("translator").decoder, torch.randn(2, 17).double()
    hidden = decoder.dense.hidden
    t = torch.tanh(x @ hidden.weight.T + hidden.bias)
    expected = t @ decoder.embedding.weight.T + decoder.dense.out.bias
    same(decoder.dense(x), expected)


@pytest.mark.parametrize("name", ["bottom", "mixed", "hierarchical"])
def test_with_one_layer_it_is_the_decoder_of_the_paper(name):
    model = a_model(name, num_layers=1)
    plain = Seq2SeqAttentionDecoder(13, 3, 6, enc_hiddens=8).double()
    numbers = {  # of one layer's lists: the first
        key.replace("attention.0.", "attention.").replace("rnn.0.", "rnn."): value
        for key, value in model.decoder.state_dict().items()
        if key != "shares"
    }
    plain.load_state_dict(numbers)
    scores, _ = model(*a_batch())
    model.decoder = plain
    same(model(*a_batch())[0], scores)


def test_a_window_as_wide_as_the_sentence_changes_nothing():
    wide, plain, narrow = (
        model(*a_batch())[0]
        for model in (
            a_model("window", reach=100),
            a_model("attention"),
            a_model("window"),
        )
    )
    same(wide, plain)
    assert (wide - narrow).abs().max() > 1e-3


@pytest.mark.parametrize("feed", ["attentional", "context", "nothing"])
def test_what_is_fed_decides_whether_attention_reaches_the_next_state(feed):
    """Without input feeding, the decoder's states never learn of the context."""
    model, (source, target, lens) = a_model("luong", feed=feed), a_batch()
    annotations, last = model.encoder(source, lens)
    states = [
        model.decoder(target, model.decoder.init_state((a, last), lens))[1].hidden_state
        for a in (annotations, annotations + 1)
    ]
    assert torch.equal(*states) == (feed == "nothing")


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


def test_both_uses_of_the_matrix_give_it_gradient():
    model, (source, target, lens) = a_model("translator"), a_batch()
    model(source, target, lens)[0][..., 3].sum().backward()
    gradient = model.decoder.embedding.weight.grad
    assert gradient[3].any() and 3 not in target  # written, not read
    assert all(gradient[word].any() for word in target.unique())
