"""One contract for every model of the catalogue.

A rule takes a model and fails if the model breaks it. Every rule runs on six models,
and among the slow tests on every one; BROKEN holds mistakes of published programs,
which its rule must find.
"""

import copy
from collections import Counter

import pytest
import torch
from helpers.models import (
    CATALOGUE,
    SIZES,
    SOURCE_WORDS,
    TARGET_WORDS,
    a_batch,
    a_model,
    loud,
)
from torch import nn
from torch.nn import functional as F

from utils.attention import Attention, length_mask, masked_softmax
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.decoding import greedy_decode
from utils.models import KINDS, build_model
from utils.rnnsearch import VARIANTS
from utils.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder
from utils.text import Vocab

same = torch.testing.assert_close


def read(model, source, target, lens):
    """(scores,), or (scores, weights) of a model that attends."""
    scores, state = model(source, target, lens)
    weights = getattr(state, "attention_weights", None)
    return (scores,) if weights is None else (scores, weights)


def attends(model):
    return "fixed" not in model.config["kind"]


def require_sums(model, weights):
    """Weights (3, 4, S) of a step sum to 1; of local-p, by its paper, to less."""
    sums = weights.sum(-1)
    if model.config.get("place") == "predicted":
        assert (sums > 0).all() and (sums < 1).all()
    else:
        same(sums, torch.ones(3, 4).double())


def differ(one, other):
    return bool(((one - other).abs() > 1e-9).any())


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
        require_sums(model, weights)
        assert model.decoder.attention_weights is weights


def weights_respond_to_the_encoder(model):
    """The attention of a well-known tutorial never read the encoder. These do."""
    if not attends(model) or model.config.get("score") == "location":
        return  # "location" is blind by design
    source, target, lens = a_batch()
    annotations, last = model.encoder(source, lens)
    given = model.decoder.init_state((annotations, last), lens)

    def first_weights(annotations):
        state = model.decoder.init_state((annotations, last), lens)
        if hasattr(given, "hidden_state"):  # s_0 stays, though it may read the encoder
            state = state._replace(hidden_state=given.hidden_state)
        return model.decoder(target[:, :1], state)[1].attention_weights[0, 0]

    before = first_weights(annotations)
    near = before.nonzero().flatten().tolist()  # of a window: what lies in it
    assert len(near) > 1
    for j in near:
        moved = annotations.detach().clone()
        moved[0, j] += 0.1
        assert differ(first_weights(moved), before)


def attending_and_updating_come_in_their_order(model):
    """Change the word at step 1: weights from step 1 or, Bahdanau's, from 2 on move.

    Luong et al., the released code and a Transformer read a word, then attend.
    """
    if not attends(model):
        return
    source, target, lens = a_batch()
    changed = target.clone()
    changed[:, 1] = (target[:, 1] - 3) % 9 + 4
    before, after = (read(model, source, y, lens)[1][0] for y in (target, changed))
    moved = ((before - after).abs().amax(dim=-1) > 1e-9).tolist()
    order = f"{model.config['kind']}, {model.config.get('variant')}"
    word_first = any(name in order for name in ("luong", "released", "transformer"))
    assert moved == [i >= (1 if word_first else 2) for i in range(4)]


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
    before, (enc_outputs, last) = read(model, *inputs), model.encoder(*inputs[::2])
    state = model.decoder.init_state((enc_outputs, last), inputs[2])
    tensors = [x for x in (*inputs, enc_outputs, last, *state) if x is not None]
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
    weights_respond_to_the_encoder,
    attending_and_updating_come_in_their_order,
    keys_are_projected_once_a_sentence,
    nothing_given_is_changed_and_nothing_is_kept,
]


QUICK = "attention", "luong", "coverage", "translator", "RNNsearch", "transformer"
every_model = pytest.mark.parametrize(
    "name",
    [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CATALOGUE],
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@every_model
def test_the_contract(name, rule):
    rule(a_model(name))


def test_the_contract_is_run_on_every_kind_and_every_variant():
    assert {kind for kind, _ in CATALOGUE.values()} == set(KINDS)
    variants = {values.get("variant") for _, values in CATALOGUE.values()} - {None}
    assert variants == set(VARIANTS)


# --- the rules find what is broken ------------------------------------------------


class IgnoresTheMask(Seq2SeqAttentionDecoder):
    def attend(self, query, state):
        return self.attention.attend(query, state.projected_keys, state.enc_outputs)


class AttendsAfterUpdating(Seq2SeqAttentionDecoder):
    def step(self, x, state):
        output, _, state = super().step(x, state)
        return output, self.attend(self.query(state.hidden_state), state)[1], state


class ReadsNoAnnotation(Seq2SeqAttentionDecoder):
    def attend(self, query, state):
        places = torch.arange(state.enc_outputs.shape[1]).double()
        scores = query.sum(-1, keepdim=True) * places  # (B, 1, S)
        weights = masked_softmax(scores, state.enc_valid_lens)
        return torch.bmm(weights, state.enc_outputs), weights


class ProjectsAtEachStep(Seq2SeqAttentionDecoder):
    def attend(self, query, state):
        keys = self.attention.project_keys(state.enc_outputs)
        return super().attend(query, state._replace(projected_keys=keys))


class ReadsTheLastPlace(Seq2SeqDecoder):
    def init_state(self, enc_outputs, enc_valid_lens):
        state = super().init_state(enc_outputs)
        return state._replace(context=enc_outputs[0][:, -1])


class ReadsPadding(Seq2SeqEncoder):
    def forward(self, X, valid_lens):
        outputs, last = self.rnn(self.embedding(X))
        return outputs, torch.cat((last[0::2], last[1::2]), dim=-1)


BROKEN = [
    (IgnoresTheMask, a_sentence_alone_equals_the_sentence_in_a_batch),
    (ReadsTheLastPlace, a_sentence_alone_equals_the_sentence_in_a_batch),
    (ReadsPadding, a_sentence_alone_equals_the_sentence_in_a_batch),
    (ReadsPadding, all_but_padding_gets_a_gradient),
    (AttendsAfterUpdating, attending_and_updating_come_in_their_order),
    (ReadsNoAnnotation, weights_respond_to_the_encoder),
    (ProjectsAtEachStep, keys_are_projected_once_a_sentence),
]


@pytest.mark.parametrize("part, rule", BROKEN)
def test_a_rule_finds_what_is_broken(part, rule):
    model = a_model("fixed" if part is ReadsTheLastPlace else "attention")
    rule(copy.deepcopy(model))
    if part is ReadsPadding:
        model.encoder = part(SOURCE_WORDS, 3, 4, 2, bidirectional=True)
    else:
        model.decoder = part(TARGET_WORDS, 3, 6, 2, enc_hiddens=8)
    with pytest.raises(AssertionError):
        rule(loud(model))


# --- built from plain values, saved and loaded as itself ----------------------------


@every_model
def test_saved_and_loaded_it_is_the_same_model(name, tmp_path):
    words = [f"w{i}" for i in range(SOURCE_WORDS - 4)]
    vocabs = [Vocab([words[: size - 4]], "en") for size in SIZES.values()]
    model = a_model(name).float()
    save_checkpoint(tmp_path / "model", model, *vocabs)
    loaded = load_checkpoint(tmp_path / "model").model
    assert loaded.config == model.config and not loaded.training
    assert all(map(torch.equal, read(loaded, *a_batch()), read(model, *a_batch())))


@pytest.mark.parametrize("name", ["attention", "dot", "luong", "transformer"])
def test_dropout_acts_in_training_alone(name):
    model, without = a_model(name, dropout=0.5), a_model(name)
    assert all(map(torch.equal, read(model, *a_batch()), read(without, *a_batch())))
    model.train()
    assert differ(*(model(*a_batch())[0] for _ in range(2)))
    require_sums(model, model(*a_batch())[1].attention_weights)  # what comes is whole


def test_sizes_left_out_are_those_of_the_papers():
    transformer = build_model("transformer", 20, 13, 8, 2)
    assert transformer.decoder.layers[0].ffn[0].out_features == 4 * 8
    assert build_model("rnnsearch", 20, 13, 3, 6).decoder.dense.W_o.in_features == 3


# --- what can't be is answered in words ----------------------------------------------


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
        ("attention", {"enc_hiddens": True}, "enc_hiddens must be a whole.*got True"),
        ("RNNsearch", {"num_maxout": 0}, "num_maxout must be a whole.*got 0"),
        ("dot", {"enc_hiddens": 8}, "one size, got 8 and 6"),
        ("dot", {"score": "cosine"}, "score must be one of.*additive.*got 'cosine'"),
        ("dot", {"score": "location"}, "num_positions must be a whole.*got None"),
        ("dot", {"score": "multi-head"}, "num_heads must be a whole.*got None"),
        ("multi-head", {"num_heads": 3}, "8 hidden units.*3 heads"),
        ("dot", {"attention": nn.Linear(6, 6)}, "attention must be a plain value"),
        ("attention", {"enc_hiddens": 7}, "even size, got 7"),
        ("attention", {"dropout": 1}, "dropout must be at least 0 and below 1, got 1"),
        ("fixed", {"score": "general"}, "kind 'fixed' takes"),
        ("luong", {"feed": "all"}, "attentional.*got 'all'"),
        ("window", {"reach": 0}, "reach must be a whole number of at least 1, got 0"),
        ("local-m", {"reach": 2.5}, "at least 1, got 2.5"),
        ("local-m", {"place": "gold"}, "monotonic.*got 'gold'"),
        ("RNNsearch", {"variant": "no gates"}, "RNNsearch.*got 'no gates'"),
    ],
)
def test_options_out_of_range_are_refused_in_words(name, options, message):
    kind, values = CATALOGUE[name]
    with pytest.raises(ValueError, match=message):
        build_model(**{"kind": kind, **SIZES, **values, **options})
