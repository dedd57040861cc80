"""One contract for every model of the catalogue, and for what is taught: it trains.

A rule takes a model and fails if the model breaks it. Every rule runs on every model
of the course; BROKEN holds models of one fault each, which its rule must find.
"""

import copy
import sys
import threading

import pytest
import torch
from helpers.models import (
    CATALOGUE,
    GRU,
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
from utils.attention import (
    AdditiveAttention,
    Attention,
    length_mask,
    masked_softmax,
)
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.data import Batch, BatchLoader, Pair
from utils.decoding import beam_search, greedy_decode
from utils.models import KINDS, build_model
from utils.rnnsearch import VARIANTS
from utils.seq2seq import (
    Seq2SeqAttentionDecoder,
    Seq2SeqEncoder,
)
from utils.text import Vocab
from utils.training import Trainer, batch_loss, train_step

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


def a_copy_after_use_is_the_same(model):
    inputs = a_batch()
    model(*inputs)[0].sum().backward()
    same(read(copy.deepcopy(model), *inputs), read(model, *inputs))


def threads_get_their_own_weights(model):
    """Before each line of a call is first run, another thread makes one of its own."""
    source, target, lens = (x[:1] for x in a_batch())
    target, others, seen = target[:, :2], [x[2:, :1] for x in a_batch()[:2]], set()
    with torch.no_grad():
        expected = read(model, source, target, lens)

        @torch.no_grad()
        def call_of_its_own():
            model(*others, lens // 5)

        def at_each_line(frame, event, arg):
            place = frame.f_code, frame.f_lineno
            if event == "line" and place not in seen:
                seen.add(place)
                thread = threading.Thread(target=call_of_its_own)
                thread.start()
                thread.join()
            return at_each_line

        def at_each_call(frame, event, arg):
            name = frame.f_globals.get("__name__", "")
            return at_each_line if name.startswith(("utils", __name__)) else None

        before = sys.gettrace()
        sys.settrace(at_each_call)
        try:
            found = read(model, source, target, lens)
        finally:
            sys.settrace(before)
    same(found, expected)


WRONG_INPUTS = [
    (lambda s, t, n: (s + SOURCE_WORDS, t, n), "the source holds.*wrong vocabulary"),
    (lambda s, t, n: (s, t - 5, n), "the target holds the id -"),
    (lambda s, t, n: (s.double(), t, n), "the source must be word ids"),
    (lambda s, t, n: (s, t > 5, n), "the target must be word ids"),
    (lambda s, t, n: (s[0], t, n), "the source must be"),
    (lambda s, t, n: (s, t[:, :0], n), "neither 0"),
    (lambda s, t, n: (s, t, n[:2]), r"shape \(3,\)"),
    (lambda s, t, n: (s, t, n * 0), "between 1 and 5.*got 0"),
    (lambda s, t, n: (s, t, n + 1), "between 1 and 5.*got 6"),
    (lambda s, t, n: (s, t, n > 0), "lengths, got torch.bool; of a mask"),
    (lambda s, t, n: (s, t, s > 5), "lengths, got torch.bool; of a mask"),
    (lambda s, t, n: (s, t, n.double()), "lengths, got torch.float64"),
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
    a_copy_after_use_is_the_same,
    threads_get_their_own_weights,
    wrong_inputs_are_answered_in_words,
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("name", CATALOGUE)
def test_the_contract(name, rule):
    rule(a_model(name))


def test_the_contract_is_run_on_every_kind_and_every_score():
    assert {kind for kind, _ in CATALOGUE.values()} == set(KINDS)
    variants = {values.get("variant") for _, values in CATALOGUE.values()} - {None}
    assert variants == set(VARIANTS)
    with pytest.raises(ValueError) as error:
        build_model("attention", **SIZES, **GRU, score="another")
    named = str(error.value).removeprefix("score must be one of ").split(", got")[0]
    tried = {values.get("score", "additive") for _, values in CATALOGUE.values()}
    assert set(named.split(", ")) == tried


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


class SharesItsWeights(Seq2SeqAttentionDecoder):
    def unroll(self, embedded, state):
        outputs, state = super().unroll(embedded, state)
        self.shared = state.attention_weights
        return outputs, state._replace(attention_weights=self.shared)


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
    (SharesItsWeights, threads_get_their_own_weights),
    (KeepsItsState, threads_get_their_own_weights),
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


def vocabularies():
    words = [f"w{i}" for i in range(SOURCE_WORDS - 4)]
    source, target = (Vocab([words[: size - 4]], "en") for size in SIZES.values())
    return source, target


@pytest.mark.parametrize("name", CATALOGUE)
def test_saved_and_loaded_it_is_the_same_model(name, tmp_path):
    model = loud(a_model(name)).float()
    before = read(model, *a_batch())
    save_checkpoint(tmp_path / "model", model, *vocabularies())
    loaded = load_checkpoint(tmp_path / "model").model
    assert loaded.config == model.config
    classes = [[type(part) for part in m.modules()] for m in (loaded, model)]
    assert classes[0] == classes[1] and not loaded.training
    assert all(map(torch.equal, read(loaded, *a_batch()), before))


def patch(path, value):
    """A change: what stands at the path, as in decoder.attention, gets a new value."""
    *parts, name = path.split(".")

    def change(model):
        for part in parts:
            model = getattr(model, part)
        setattr(model, name, value)

    return change


class Softened(AdditiveAttention):
    def score(self, queries, projected_keys):
        return 0.5 * super().score(queries, projected_keys)


# The same name as the class of utils, as in a notebook where a reader edits it.
Namesake = type("AdditiveAttention", (Softened,), {"__qualname__": "AdditiveAttention"})
ALTERED = {
    "a decoder of the same shapes": (
        "window",
        patch("decoder", Seq2SeqAttentionDecoder(13, 3, 6, 2, 0.0, 8)),
    ),
    "a part of the same shapes": ("attention", patch("decoder.bridge", nn.Identity())),
    "a subclass": ("attention", patch("decoder.attention", Softened(8, 6, 6))),
    "a namesake": ("attention", patch("decoder.attention", Namesake(8, 6, 6))),
    "a part more": ("attention", patch("decoder.more", nn.Linear(2, 2))),
    "no bias": ("attention", patch("decoder.dense.bias", None)),
    "a matrix for itself": (
        "translator",
        patch("decoder.dense.out.weight", nn.Parameter(torch.randn(13, 3))),
    ),
    "dropout": ("attention", patch("decoder.attention.dropout.p", 0.3)),
    "the config": ("dot", patch("config", a_model("general").config)),
    "no config": ("attention", lambda model: delattr(model, "config")),
}


@pytest.mark.parametrize("what", ALTERED)
def test_a_model_that_a_file_would_not_give_back_is_refused(what, tmp_path):
    """By save_checkpoint; and by the Trainer that is to save it, before it trains."""
    name, change = ALTERED[what]
    model, (source, target) = a_model(name).float(), vocabularies()
    loader = BatchLoader([Pair(("w1", "w2"), ("w3",))], source, target)
    save_checkpoint(tmp_path / "sound", model, source, target)
    change(model)
    with pytest.raises(ValueError, match="can't be saved: it"):
        save_checkpoint(tmp_path / "model", model, source, target)
    assert [path.name for path in tmp_path.iterdir()] == ["sound"]
    trainer = Trainer(model, loader, 1)
    with pytest.raises(ValueError, match="can't be saved: it.*utils.models"):
        trainer.fit(checkpoint=lambda trainer: None, progress=False)
    assert trainer.step == 0


@pytest.mark.parametrize("name", CATALOGUE)
def test_sizes_that_can_not_be_are_refused_by_name(name):
    config = a_model(name).config
    named = ("num_", "_size", "_hiddens")
    for option in [key for key in config if any(part in key for part in named)]:
        for value in (0, -1, 2.0, True, "6"):
            with pytest.raises(ValueError, match=f"{option} must be a whole number"):
                build_model(**{**config, option: value})
    with pytest.raises(ValueError, match=f"kind '{config['kind']}' takes src_vocab"):
        build_model(**config, colour="red")


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("dot", {"enc_hiddens": 8}, "one size, got 8 and 6"),
        ("dot", {"score": "cosine"}, "score must be one of additive.*got 'cosine'"),
        ("dot", {"score": "location"}, "'location' needs num_positions"),
        ("dot", {"score": "multi-head"}, "'multi-head' needs num_heads"),
        ("multi-head", {"num_heads": 3}, "8 hidden units.*3 heads"),
        ("dot", {"attention": nn.Linear(6, 6)}, "attention must be a plain value"),
        ("attention", {"enc_hiddens": 7}, "even size, got 7"),
        ("attention", {"bidirectional": 2}, "bidirectional must be True or False"),
        ("attention", {"dropout": 1}, "dropout must be at least 0 and below 1, got 1"),
        ("attention", {"dropout": float("nan")}, "below 1, got nan"),
        ("attention", {"dropout": "0.1"}, "below 1, got '0.1'"),
        ("translator", {"dropout": -0.1}, "below 1, got -0.1"),
        ("translator", {"enc_hiddens": 7}, "even size, got 7"),
        ("fixed", {"score": "general"}, "kind 'fixed' takes"),
        ("hierarchical", {"score": "general"}, "kind 'hierarchical' takes"),
        ("luong", {"feed": "all"}, "attentional.*got 'all'"),
        ("luong", {"feed": ["all"]}, "feed must be a plain value"),
        ("window", {"reach": 0}, "reach must be a whole number of at least 1, got 0"),
        ("local-m", {"reach": 2.5}, "at least 1, got 2.5"),
        ("local-m", {"place": "gold"}, "monotonic.*got 'gold'"),
        ("RNNsearch", {"variant": "no gates"}, "RNNsearch.*got 'no gates'"),
        ("RNNsearch", {"published_init": "yes"}, "must be True or False"),
        ("transformer", {"num_heads": 3}, "8 hidden units.*3 heads"),
        ("transformer", {"num_hiddens": 3, "num_heads": 3}, "must be even, got 3"),
    ],
)
def test_options_out_of_range_are_refused_in_words(name, options, message):
    with pytest.raises(ValueError, match=message):
        a_model(name, **options)


@pytest.mark.parametrize("kind", ["attentive", None, ["attention"]])
def test_an_unknown_kind_is_refused_in_words(kind):
    with pytest.raises(ValueError, match="kind must be one of.*rnnsearch.*got"):
        build_model(kind, **SIZES, **GRU)


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n not in VARIANTS])
def test_dropout_acts_in_training_alone(name):
    model, without = a_model(name, dropout=0.5), a_model(name)
    if model.config.get("num_layers") == 1 and not attends(model):
        return  # between layers, and there is one
    assert all(map(torch.equal, read(model, *a_batch()), read(without, *a_batch())))
    if "translator" not in name:  # theirs is outside the attention
        shares = {part.p for part in model.modules() if isinstance(part, nn.Dropout)}
        assert shares <= {0.5}
    model.train()
    assert differ(*(model(*a_batch())[0] for _ in range(2)))
    if attends(model):  # what comes back is whole
        require_sums(model, model(*a_batch())[1].attention_weights)


# --- what is taught trains ----------------------------------------------------------


class AsksWithTheBottomLayer(Seq2SeqAttentionDecoder):
    def query(self, hidden_state):
        return hidden_state[0].unsqueeze(1)


def halved_score(self, queries, projected_keys):
    sums = self.W_q(queries).unsqueeze(2) + projected_keys.unsqueeze(1)
    return self.w_v(torch.tanh(sums)).squeeze(-1) / 2


def step_with_half_a_word(self, x, state, step=Seq2SeqAttentionDecoder.step):
    return step(self, x / 2, state)


def doubled(scores, targets, *rest, loss=training.masked_cross_entropy):
    return 2 * loss(scores, targets, *rest)


EDITS = {
    "a score": lambda model, patch: patch(AdditiveAttention, "score", halved_score),
    "a query": lambda model, patch: patch(
        Seq2SeqAttentionDecoder, "query", AsksWithTheBottomLayer.query
    ),
    "a step": lambda model, patch: patch(
        Seq2SeqAttentionDecoder, "step", step_with_half_a_word
    ),
    "a method of this model": lambda model, patch: patch(
        model.decoder, "query", lambda hidden: hidden[0].unsqueeze(1)
    ),
    "a hook": lambda model, patch: model.decoder.dense.register_forward_hook(
        lambda module, inputs, scores: scores / 2
    ),
    "a hook on the encoder": lambda model, patch: model.encoder.register_forward_hook(
        lambda module, inputs, outputs: (outputs[0] / 2, outputs[1])
    ),
    "a subclass": lambda model, patch: patch(
        model.decoder, "__class__", AsksWithTheBottomLayer
    ),
    "the loss": lambda model, patch: patch(training, "masked_cross_entropy", doubled),
}


def own_loss(model, batch):
    """The mean over real words, without any function of utils.training but the loss."""
    scores, _ = model(batch.source, batch.target_in, batch.source_lens)
    return training.masked_cross_entropy(scores, batch.target_out)


@pytest.mark.parametrize("what", EDITS)
def test_what_is_edited_is_what_trains(what, monkeypatch):
    batch = Batch.from_ids([[4, 5, 6, 2], [7, 8, 2]], [[4, 5, 2], [6, 7, 8, 9, 2]])
    model = a_model("attention")
    before = batch_loss(model, batch).item()
    EDITS[what](model, monkeypatch.setattr)
    loss = batch_loss(model, batch)
    expected = own_loss(model, batch)
    same(loss, expected)
    assert abs(loss.item() - before) > 1e-4
    named = dict(model.named_parameters())
    slopes = torch.autograd.grad(expected, named.values())
    goals = [p - 0.1 * g for p, g in zip(named.values(), slopes, strict=True)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    assert train_step(model, batch, optimizer, clip=1e9) == pytest.approx(loss.item())
    for parameter, goal in zip(named.values(), goals, strict=True):
        same(parameter, goal)


def test_the_inner_layer_of_a_transformer_is_four_times_as_wide():
    layer = build_model("transformer", 9, 9, 8).encoder.layers[0]
    assert layer.linear1.out_features == 4 * 8  # Vaswani et al. (2017, section 3.3)
