"""One contract for every model of the catalogue, and for what is taught: it trains.

A rule takes a model and fails if the model breaks it. Every rule runs on six models,
and among the slow tests on every one; BROKEN holds models of one fault each, which its
rule must find.
"""

import copy

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

from utils import training
from utils.attention import Attention, length_mask, masked_softmax
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.data import Batch
from utils.decoding import beam_search, greedy_decode
from utils.models import KINDS, build_model
from utils.rnnsearch import VARIANTS
from utils.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqEncoder
from utils.text import Vocab
from utils.training import batch_loss, train_step

same = torch.testing.assert_close


def read(model, source, target, lens):
    """(scores,), or (scores, weights) of a model that attends."""
    scores, state = model(source, target, lens)
    weights = getattr(state, "attention_weights", None)
    return (scores,) if weights is None else (scores, weights)


def attends(model):
    return "fixed" not in model.config["kind"]


def asks_with_new_state(model):
    """Luong et al., the released code and a Transformer read a word, then attend."""
    config = model.config
    released = config.get("variant") == "order of the released code"
    return released or config["kind"] in (
        "luong",
        "released translator",
        "transformer",
    )


def first_state(model, annotations, last, lens):
    """What `init_state` gives; no gradient reaches the annotations by way of s_0."""
    state = model.decoder.init_state((annotations, last), lens)
    if not hasattr(state, "hidden_state"):
        return state
    return state._replace(hidden_state=state.hidden_state.detach())


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


def padding_counts_for_nothing(model):
    source, target, lens = a_batch()
    before = read(model, source, target, lens)
    real = length_mask(lens, source.shape[1])
    noisy = torch.where(real, source, source.roll(1, 0))
    wider = F.pad(noisy, (0, 2), value=7)
    scores, *weights = read(model, wider, target, lens)
    same((scores, *(w[..., :-2] for w in weights)), before)
    for row in weights:
        assert not row.masked_select(~length_mask(lens, 7).unsqueeze(1)).any()


def padding_gets_no_gradient(model):
    source, target, lens = a_batch()  # no id stands twice: a row is a place
    model(source, target, lens)[0].square().sum().backward()
    reached = model.encoder.embedding.weight.grad.abs().sum(dim=1)[source]
    real = length_mask(lens, source.shape[1])
    assert torch.equal(reached > 0, real)
    annotations, last = model.encoder(source, lens)
    annotations = annotations.detach().requires_grad_()
    scores, _ = model.decoder(target, first_state(model, annotations, last, lens))
    (slope,) = torch.autograd.grad(scores.sum(), annotations, allow_unused=True)
    assert slope is None or not slope[~real].any()


def a_sentence_alone_equals_the_sentence_in_a_batch(model):
    source, target, lens = a_batch()
    together = read(model, source, target, lens)
    for b, n in enumerate(lens):
        row = slice(b, b + 1)
        scores, *weights = read(model, source[row, :n], target[row], lens[row])
        same(
            (scores, *weights),
            (together[0][row], *(w[row, :, :n] for w in together[1:])),
        )


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


def greedy_decoding_equals_a_beam_of_one(model):
    source, _, lens = a_batch()
    ids, weights = greedy_decode(model, source, lens, max_steps=6)
    found, _, seen = beam_search(model, source, lens, 1, max_steps=6)
    assert torch.equal(ids, found)
    if attends(model):
        written = (ids != 0).unsqueeze(2)
        same(weights * written, seen * written)


def scores_at_real_words_are_those_of_all(model):
    source, target, lens = a_batch()
    real = length_mask(torch.tensor([2, 4, 1]), target.shape[1])
    scores, state = model(source, target, lens, real)
    expected, full = model(source, target, lens)
    same(scores, expected[real])
    if attends(model):
        same(state.attention_weights, full.attention_weights)


def weights_come_back_from_the_step_that_made_them(model):
    source, target, lens = a_batch()
    state = model(source, target, lens)[1]
    weights = getattr(state, "attention_weights", None)
    assert (weights is not None) == attends(model)
    if attends(model):
        assert weights.shape == (3, 4, 5) and not weights.requires_grad
        assert (weights >= 0).all()
        require_sums(model, weights)
        assert model.decoder.attention_weights is weights
        model(*a_batch(seed=2))
        assert model.decoder.attention_weights is not weights


def weights_respond_to_the_encoder(model):
    """The attention of a well-known tutorial never read the encoder. These do."""
    if not attends(model) or model.config.get("score") == "location":
        return  # "location" is blind by design
    source, target, lens = a_batch()
    annotations, last = model.encoder(source, lens)
    annotations = annotations.detach().requires_grad_()

    def first_weights(annotations):
        state = first_state(model, annotations, last, lens)
        return model.decoder(target[:, :1], state)[1].attention_weights[0, 0]

    before = first_weights(annotations)
    near = before.nonzero().flatten().tolist()  # of a window: what lies in it
    assert len(near) >= min(5, int(model.config.get("reach", 4)))
    for j in near:
        moved = annotations.detach().clone()
        moved[0, j] += 0.1
        assert differ(first_weights(moved), before)
    if hasattr(model.decoder, "step") and model.config.get("score") != "multi-head":
        state = first_state(model, annotations, last, lens)
        x = model.decoder.embedding(target[:, :1])
        weights = model.decoder.step(x, state)[1]
        (weights * torch.randn_like(weights)).sum().backward()
        assert annotations.grad[0, near].any(dim=-1).all()


def attending_and_updating_come_in_their_order(model):
    """Change the word at step 1: weights from step 1 or, Bahdanau's, from 2 on move."""
    if not attends(model):
        return
    source, target, lens = a_batch()
    changed = target.clone()
    changed[:, 1] = (target[:, 1] - 3) % 9 + 4
    before, after = (read(model, source, y, lens)[1][0] for y in (target, changed))
    moved = ((before - after).abs().amax(dim=-1) > 1e-9).tolist()
    assert moved == [i >= (1 if asks_with_new_state(model) else 2) for i in range(4)]


def keys_are_projected_once_a_sentence(model):
    source, _, lens = a_batch()
    for module in model.decoder.modules():
        if isinstance(module, Attention):
            module.calls, project = 0, module.project_keys

            def counted(keys, module=module, project=project):
                module.calls += keys.shape[1] == source.shape[1]  # not target words
                return project(keys)

            module.project_keys = counted
    greedy_decode(model, source, lens, max_steps=4)
    attentions = [m for m in model.decoder.modules() if isinstance(m, Attention)]
    calls = [m.calls for m in attentions if m.calls]
    assert bool(calls) == attends(model) and set(calls) <= {1}


def nothing_given_is_changed_and_nothing_is_kept(model):
    inputs = a_batch()
    copies = copy.deepcopy(inputs)
    before = read(model, *inputs)
    enc_outputs = model.encoder(inputs[0], inputs[2])
    state = model.decoder.init_state(enc_outputs, inputs[2])
    kept = copy.deepcopy([x.detach() for x in (*enc_outputs, *state) if x is not None])
    first, second = (model.decoder(inputs[1], state)[0] for _ in range(2))
    model(*a_batch(seed=2))
    same(first, second)
    same(read(model, *inputs), before)
    assert all(map(torch.equal, inputs, copies))
    tensors = [x for x in (*enc_outputs, *state) if x is not None]
    assert all(map(torch.equal, tensors, kept))


def every_parameter_gets_a_gradient(model):
    model.train()(*a_batch())[0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.any(), name


WRONG_INPUTS = [
    (lambda s, t, n: (s + SOURCE_WORDS, t, n), "the source holds.*wrong vocabulary"),
    (lambda s, t, n: (s, t - 5, n), "the target holds the id -"),
    (lambda s, t, n: (s.double(), t, n), "the source must be word ids"),
    (lambda s, t, n: (s, t[:, :0], n), "the target must be word ids.*neither 0"),
    (lambda s, t, n: (s, t, n[:2]), r"shape \(3,\)"),
    (lambda s, t, n: (s, t, n - 1), "between 1 and 5.*got 0"),
    (lambda s, t, n: (s, t, n + 1), "between 1 and 5.*got 6"),
    (lambda s, t, n: (s, t, s > 5), "lengths, got torch.bool; of a mask"),
]


def wrong_inputs_are_answered_in_words(model):
    for change, message in WRONG_INPUTS:
        with pytest.raises((ValueError, TypeError), match=message):
            model(*change(*a_batch()))


RULES = [
    padding_counts_for_nothing,
    padding_gets_no_gradient,
    a_sentence_alone_equals_the_sentence_in_a_batch,
    step_by_step_equals_all_at_once,
    greedy_decoding_equals_a_beam_of_one,
    scores_at_real_words_are_those_of_all,
    weights_come_back_from_the_step_that_made_them,
    weights_respond_to_the_encoder,
    attending_and_updating_come_in_their_order,
    keys_are_projected_once_a_sentence,
    nothing_given_is_changed_and_nothing_is_kept,
    every_parameter_gets_a_gradient,
    wrong_inputs_are_answered_in_words,
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
        context, _ = self.attend(self.query(state.hidden_state), state)
        s, hidden = self.rnn(torch.cat((context, x), dim=-1), state.hidden_state)
        state = state._replace(hidden_state=hidden)
        return s, self.attend(self.query(hidden), state)[1], state


class KeepsItsState(Seq2SeqAttentionDecoder):
    def step(self, x, state):
        last = getattr(self, "last", None)
        fits = last is not None and last.shape == state.hidden_state.shape
        state = state._replace(hidden_state=last) if fits else state
        output, weights, state = super().step(x, state)
        self.last = state.hidden_state.detach()
        return output, weights, state


class ForgetsItsState(Seq2SeqAttentionDecoder):
    def forward(self, X, state, real=None):
        scores, new = super().forward(X, state, real)
        return scores, new._replace(hidden_state=state.hidden_state)


class ReadsNoAnnotation(Seq2SeqAttentionDecoder):
    def attend(self, query, state):
        places = torch.arange(state.enc_outputs.shape[1]).double()
        scores = query.sum(-1, keepdim=True) * places  # (B, 1, S)
        weights = masked_softmax(scores, state.enc_valid_lens)
        return torch.bmm(weights, state.enc_outputs), weights


class ReturnsUnnormalised(Seq2SeqAttentionDecoder):
    def step(self, x, state):
        output, weights, state = super().step(x, state)
        return output, weights * 0.9, state


class LeaksGradient(Seq2SeqAttentionDecoder):
    def attend(self, query, state):
        context, weights = super().attend(query, state)
        return context + 1e-30 * state.enc_outputs.sum(1, keepdim=True), weights


class ProjectsAtEachStep(Seq2SeqAttentionDecoder):
    def attend(self, query, state):
        keys = self.attention.project_keys(state.enc_outputs)
        return super().attend(query, state._replace(projected_keys=keys))


class WritesIntoItsState(Seq2SeqAttentionDecoder):
    def step(self, x, state):
        output, weights, new = super().step(x, state)
        state.hidden_state.data.copy_(new.hidden_state)
        return output, weights, state


class HasAnUnusedPart(Seq2SeqAttentionDecoder):
    def __init__(self, *sizes, **options):
        super().__init__(*sizes, **options)
        self.unused = nn.Linear(2, 2)


class ScoresEverything(Seq2SeqAttentionDecoder):
    def forward(self, X, state, real=None):
        return super().forward(X, state)


class LooksAtNothing(Seq2SeqAttentionDecoder):
    def forward(self, X, state, real=None):
        outputs, state = self.unroll(self.embedding(X % TARGET_WORDS), state)
        return self.dense(outputs if real is None else outputs[real]), state


class ReadsPadding(Seq2SeqEncoder):
    def forward(self, X, valid_lens):
        outputs, last = self.rnn(self.embedding(X))
        return outputs, torch.cat((last[0::2], last[1::2]), dim=-1)


BROKEN = [
    (IgnoresTheMask, padding_counts_for_nothing),
    (IgnoresTheMask, a_sentence_alone_equals_the_sentence_in_a_batch),
    (ReadsPadding, padding_counts_for_nothing),
    (ReadsPadding, padding_gets_no_gradient),
    (LeaksGradient, padding_gets_no_gradient),
    (AttendsAfterUpdating, attending_and_updating_come_in_their_order),
    (KeepsItsState, nothing_given_is_changed_and_nothing_is_kept),
    (WritesIntoItsState, nothing_given_is_changed_and_nothing_is_kept),
    (ForgetsItsState, step_by_step_equals_all_at_once),
    (ReadsNoAnnotation, weights_respond_to_the_encoder),
    (ReturnsUnnormalised, weights_come_back_from_the_step_that_made_them),
    (ProjectsAtEachStep, keys_are_projected_once_a_sentence),
    (HasAnUnusedPart, every_parameter_gets_a_gradient),
    (KeepsItsState, greedy_decoding_equals_a_beam_of_one),
    (ScoresEverything, scores_at_real_words_are_those_of_all),
    (LooksAtNothing, wrong_inputs_are_answered_in_words),
]


@pytest.mark.parametrize("part, rule", BROKEN)
def test_a_rule_finds_what_is_broken(part, rule):
    sound = a_model("attention")
    rule(copy.deepcopy(sound))
    if part is ReadsPadding:
        sound.encoder = part(SOURCE_WORDS, 3, 4, 2, bidirectional=True)
    else:
        sound.decoder = part(TARGET_WORDS, 3, 6, 2, enc_hiddens=8)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        rule(loud(sound))


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


@every_model
def test_sizes_that_can_not_be_are_refused_by_name(name):
    config = a_model(name).config
    named = ("num_", "_size", "_hiddens")
    for option in [key for key in config if any(part in key for part in named)]:
        for value in (0, 2.0, True):
            with pytest.raises(ValueError, match=f"{option} must be a whole number"):
                build_model(**{**config, option: value})
    with pytest.raises(ValueError, match=f"kind '{config['kind']}' takes src_vocab"):
        build_model(**config, colour="red")


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("dot", {"kind": "attentive"}, "kind must be one of.*rnnsearch.*'attentive'"),
        ("dot", {"enc_hiddens": 8}, "one size, got 8 and 6"),
        ("dot", {"score": "cosine"}, "score must be one of.*additive.*got 'cosine'"),
        ("dot", {"score": "location"}, "num_positions must be a whole.*got None"),
        ("dot", {"score": "multi-head"}, "num_heads must be a whole.*got None"),
        ("multi-head", {"num_heads": 3}, "8 hidden units.*3 heads"),
        ("dot", {"attention": nn.Linear(6, 6)}, "attention must be a plain value"),
        ("attention", {"enc_hiddens": 7}, "even size, got 7"),
        ("attention", {"dropout": 1}, "dropout must be at least 0 and below 1, got 1"),
        ("translator", {"enc_hiddens": 7}, "even size, got 7"),
        ("fixed", {"score": "general"}, "kind 'fixed' takes"),
        ("luong", {"feed": "all"}, "attentional.*got 'all'"),
        ("window", {"reach": 0}, "reach must be a whole number of at least 1, got 0"),
        ("local-m", {"reach": 2.5}, "at least 1, got 2.5"),
        ("local-m", {"place": "gold"}, "monotonic.*got 'gold'"),
        ("RNNsearch", {"variant": "no gates"}, "RNNsearch.*got 'no gates'"),
        ("transformer", {"num_heads": 3}, "8 hidden units.*3 heads"),
    ],
)
def test_options_out_of_range_are_refused_in_words(name, options, message):
    kind, values = CATALOGUE[name]
    with pytest.raises(ValueError, match=message):
        build_model(**{"kind": kind, **SIZES, **values, **options})


@pytest.mark.parametrize("name", [n for n in QUICK if n != "RNNsearch"])
def test_dropout_acts_in_training_alone(name):
    model, without = a_model(name, dropout=0.5), a_model(name)
    assert all(map(torch.equal, read(model, *a_batch()), read(without, *a_batch())))
    model.train()
    assert differ(*(model(*a_batch())[0] for _ in range(2)))
    require_sums(model, model(*a_batch())[1].attention_weights)  # what comes is whole


# --- what is taught trains ----------------------------------------------------------


class AsksWithTheBottomLayer(Seq2SeqAttentionDecoder):
    def query(self, hidden_state):
        return hidden_state[0].unsqueeze(1)


def doubled(scores, targets, *rest, loss=training.masked_cross_entropy):
    return 2 * loss(scores, targets, *rest)


EDITS = {
    "a class": lambda model, patch: patch(
        Seq2SeqAttentionDecoder, "query", AsksWithTheBottomLayer.query
    ),
    "a method of this model": lambda model, patch: patch(
        model.decoder, "query", lambda hidden: hidden[0].unsqueeze(1)
    ),
    "a hook": lambda model, patch: model.decoder.dense.register_forward_hook(
        lambda module, inputs, scores: scores / 2
    ),
    "a subclass": lambda model, patch: patch(
        model.decoder, "__class__", AsksWithTheBottomLayer
    ),
    "the loss": lambda model, patch: patch(training, "masked_cross_entropy", doubled),
}


@pytest.mark.parametrize("what", EDITS)
def test_what_is_edited_is_what_trains(what, monkeypatch):
    batch = Batch.from_ids([[4, 5, 6, 2], [7, 8, 2]], [[4, 5, 2], [6, 7, 8, 9, 2]])
    model = a_model("attention")
    before = batch_loss(model, batch).item()
    EDITS[what](model, monkeypatch.setattr)
    scores, _ = model(batch.source, batch.target_in, batch.source_lens)
    expected = training.masked_cross_entropy(scores, batch.target_out)
    same(batch_loss(model, batch), expected)
    assert abs(expected.item() - before) > 1e-4
    named = dict(model.named_parameters())
    slopes = torch.autograd.grad(expected, named.values())
    goals = [p - 0.1 * g for p, g in zip(named.values(), slopes, strict=True)]
    train_step(model, batch, torch.optim.SGD(model.parameters(), lr=0.1), clip=1e9)
    for parameter, goal in zip(named.values(), goals, strict=True):
        same(parameter, goal)
