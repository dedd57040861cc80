"""One contract for every model of the catalogue.

A rule takes a model and fails if the model breaks it. Every rule runs on six models,
and among the slow tests on every one. That a model attends as it should, and in its
order, follows from its loops.
"""

from collections import Counter

import pytest
import torch
from helpers.loops import by_loops
from helpers.models import CATALOGUE, SIZES, SOURCE_WORDS, a_batch, a_model, every_model
from torch import nn
from torch.nn import functional as F

from utils.attention import Attention, length_mask
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.decoding import greedy_decode
from utils.models import KINDS, build_model
from utils.rnnsearch import VARIANTS
from utils.text import Vocab
from utils.translator import DropoutEmbedding

same = torch.testing.assert_close


def read(model, source, target, lens):
    """(scores,), or (scores, weights) of a model that attends."""
    scores, state = model(source, target, lens)
    weights = getattr(state, "attention_weights", None)
    return (scores,) if weights is None else (scores, weights)


def attends(model):
    return "fixed" not in model.config["kind"]


# --- the rules --------------------------------------------------------------------


def a_sentence_alone_equals_the_sentence_in_a_batch(model):
    """However wide the batch, and whatever ids stand at its padding."""
    source, target, lens = a_batch()
    real = length_mask(lens, source.shape[1])
    noisy = F.pad(torch.where(real, source, source.roll(1, 0)), (0, 2), value=7)
    for batch in (source, noisy):
        together = read(model, batch, target, lens)
        for b, n in enumerate(lens):
            row = slice(b, b + 1)
            scores, *weights = read(model, source[row, :n], target[row], lens[row])
            width = batch.shape[1] - n
            weights = [F.pad(w, (0, width)) for w in weights]  # 0, exactly, at padding
            same((scores, *weights), tuple(part[row] for part in together))
            assert not any(w[row, :, n:].any() for w in together[1:])


def all_but_padding_gets_a_gradient(model):
    source, target, lens = a_batch()  # no id stands twice: a row is a place
    model(source, target, lens)[0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name
    reached = model.encoder.embedding.weight.grad.abs().sum(dim=1)[source]
    assert torch.equal(reached > 0, length_mask(lens, source.shape[1]))


def step_by_step_equals_all_at_once(model):
    source, target, lens = a_batch()
    scores, last = model(source, target, lens)
    state, parts = model.decoder.init_state(model.encoder(source, lens), lens), []
    for words in target.split([1, 2, 1], dim=1):
        part, state = model.decoder(words, state)
        parts.append((part, getattr(state, "attention_weights", None)))
    same(torch.cat([part for part, _ in parts], dim=1), scores)
    if attends(model):
        same(torch.cat([w for _, w in parts], dim=1), last.attention_weights)
    for name, value in state._asdict().items():
        if value is not None and name != "attention_weights":
            same(value, getattr(last, name))


def weights_come_back_from_the_step_that_made_them(model):
    weights = getattr(model(*a_batch())[1], "attention_weights", None)
    assert (weights is not None) == attends(model)
    if attends(model):
        assert weights.shape == (3, 4, 5) and not weights.requires_grad
        assert (weights >= 0).all()
        assert model.decoder.attention_weights is weights


def keys_are_projected_once_a_sentence(model):
    (source, _, lens), calls = a_batch(), Counter()
    for module in model.decoder.modules():
        if isinstance(module, Attention):

            def counted(keys, module=module, project=module.project_keys):
                calls[module] += keys.shape[1] == source.shape[1]  # not target words
                return project(keys)

            module.project_keys = counted
    greedy_decode(model, source, lens, max_steps=4)
    assert set((+calls).values()) == ({1} if attends(model) else set())


def nothing_given_is_changed_and_nothing_is_kept(model):
    inputs = a_batch()
    before, annotations = read(model, *inputs), model.encoder(*inputs[::2])
    state = model.decoder.init_state(annotations, inputs[2])
    tensors = [x for x in (*inputs, *annotations, *state) if x is not None]
    copies = [x.detach().clone() for x in tensors]
    first, second = (model.decoder(inputs[1], state)[0] for _ in range(2))
    model(*a_batch(seed=2))
    same(first, second)
    same(read(model, *inputs), before)
    assert all(map(torch.equal, tensors, copies))


RULES = [
    a_sentence_alone_equals_the_sentence_in_a_batch,
    all_but_padding_gets_a_gradient,
    step_by_step_equals_all_at_once,
    weights_come_back_from_the_step_that_made_them,
    keys_are_projected_once_a_sentence,
    nothing_given_is_changed_and_nothing_is_kept,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@every_model
def test_the_contract(name, rule):
    rule(a_model(name))


def test_the_contract_is_run_on_every_kind_and_every_variant():
    assert {kind for kind, _ in CATALOGUE.values()} == set(KINDS)
    variants = {values.get("variant") for _, values in CATALOGUE.values()} - {None}
    assert variants == set(VARIANTS)


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n != "transformer"])
def test_scores_weights_and_gradients_are_those_of_the_loops(name):
    model, (source, target, lens) = a_model(name), a_batch()
    scores, state = model(source, target, lens)
    rows = [by_loops(model, source[b, :n], target[b]) for b, n in enumerate(lens)]
    expected = torch.stack([row for row, _ in rows])
    same(scores, expected)
    for b, (_, weights) in enumerate(rows):
        if weights is not None:
            padded = F.pad(weights, (0, source.shape[1] - lens[b]))
            same(state.attention_weights[b], padded)
    parameters, slope = list(model.parameters()), torch.randn_like(expected)
    same(
        torch.autograd.grad((scores * slope).sum(), parameters),
        torch.autograd.grad((expected * slope).sum(), parameters, allow_unused=True),
    )


def test_a_pointer_points_at_every_place_of_its_word():
    model, source, word = a_model("pointer"), [14, 5, 14], torch.tensor([[1]])
    log_p, state = model(torch.tensor([source]), word, torch.tensor([3]))
    expected, _ = by_loops(model, source, word[0])
    same(log_p[0], expected)
    same(log_p[0, 0].exp().sum().item(), 1.0)


@every_model
def test_saved_and_loaded_it_is_the_same_model(name, tmp_path):
    words = [f"w{i}" for i in range(SOURCE_WORDS - 4)]
    vocabs = [Vocab([words[: size - 4]], "en") for size in SIZES.values()]
    model = a_model(name).float()
    save_checkpoint(tmp_path / "model", model, *vocabs)
    loaded = load_checkpoint(tmp_path / "model").model
    assert loaded.config == model.config and not loaded.training
    assert all(map(torch.equal, read(loaded, *a_batch()), read(model, *a_batch())))


LAYERED = "attention", "fixed", "luong", "transformer"
FLAT = "attention, the defaults", "dot", "fixed, the defaults"


@pytest.mark.parametrize("name", LAYERED + FLAT)
def test_dropout_acts_in_training_alone_between_layers_and_on_weights(name):
    """nn.GRU's fourth positional argument is `bias`: dropout given there is lost."""
    model, without = a_model(name, dropout=0.5), a_model(name)
    assert all(map(torch.equal, read(model, *a_batch()), read(without, *a_batch())))
    for part in model.modules():
        if isinstance(part, nn.GRU):
            assert part.dropout == (0.5 if name in LAYERED else 0)
    first, second = (model.train()(*a_batch())[0] for _ in range(2))
    assert torch.equal(first, second) == (name == "fixed, the defaults")


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


def test_sizes_left_out_are_those_of_the_papers():
    transformer = build_model("transformer", 20, 13, 8, 2)
    assert transformer.decoder.layers[0].ffn[0].out_features == 4 * 8
    assert build_model("rnnsearch", 20, 13, 3, 6).decoder.dense.W_o.in_features == 3


@pytest.mark.parametrize("name", ["attention", "transformer"])
@pytest.mark.parametrize(
    "change, message",
    [
        (lambda s, t, n: (s + 20, t, n), "the source holds.*wrong vocabulary"),
        (lambda s, t, n: (s, t - 5, n), "the target holds the id -"),
        (lambda s, t, n: (s.double(), t, n), "the source must be word ids"),
        (lambda s, t, n: (s, t[:, :0], n), "the target must be word ids.*neither 0"),
        (lambda s, t, n: (s, t, n[:2]), r"shape \(3,\)"),
        (lambda s, t, n: (s, t, n - 1), "between 1 and 5.*got 0"),
        (lambda s, t, n: (s, t, n + 1), "between 1 and 5.*got 6"),
    ],
)
def test_wrong_inputs(name, change, message):
    with pytest.raises((ValueError, TypeError), match=message):
        a_model(name)(*change(*a_batch()))


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("dot", {"kind": "attentive"}, "kind must be one of.*rnnsearch.*'attentive'"),
        ("dot", {"colour": "red"}, "kind 'attention' takes src_vocab.*colour"),
        ("dot", {"src_vocab_size": 2.0}, "src_vocab_size must be a whole.*got 2.0"),
        ("dot", {"score": "cosine"}, "score must be one of.*additive.*got 'cosine'"),
        ("transformer", {"num_heads": 3}, "8 hidden units.*3 heads"),
        ("transformer", {"num_hiddens": 9, "num_heads": 3}, "must be even.*got 9"),
        ("dot", {"attention": nn.Linear(6, 6)}, "attention must be a plain value"),
        ("attention", {"enc_hiddens": 7}, "even size, got 7"),
        ("attention", {"dropout": -0.1}, "dropout must be at least 0 .*, got -0.1"),
        ("attention", {"num_layers": True}, "num_layers must be a whole .*, got True"),
        ("luong", {"feed": "all"}, "attentional.*got 'all'"),
        ("local-m", {"reach": 0}, "reach must be a whole number of at least 1, got 0"),
        ("local-m", {"place": "gold"}, "monotonic.*got 'gold'"),
        ("RNNsearch", {"variant": "no gates"}, "RNNsearch.*got 'no gates'"),
    ],
)
def test_options_out_of_range_are_refused_in_words(name, options, message):
    kind, values = CATALOGUE[name]
    with pytest.raises(ValueError, match=message):
        build_model(**{"kind": kind, **SIZES, **values, **options})
