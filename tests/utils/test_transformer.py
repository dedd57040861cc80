"""Heads, positions and the Transformer: against loops, and against torch.nn."""

import json
import math
import time

import pytest
import torch
from test_shipped import DATA, script
from torch import nn
from torch.nn import functional as F

from utils import by_hand
from utils.attention import DotProductAttention, length_mask
from utils.corpora import load_village
from utils.data import Batch, BatchLoader
from utils.decoding import beam_search, greedy_decode, translate_tokens
from utils.models import build_model
from utils.training import Trainer, evaluate_loss
from utils.transformer import (
    MultiHeadAttention,
    TransformerLayer,
    add_positions,
    causal_lens,
    join,
    position_codes,
    split,
)

VOCAB, H, N = 20, 12, 3


def some_batch():
    torch.manual_seed(1)
    lens = torch.tensor([5, 3, 1])
    return torch.randint(4, VOCAB, (3, 5)), torch.randint(4, VOCAB, (3, 4)), lens


def make(kind="transformer", layers=2):
    torch.manual_seed(0)
    if kind == "transformer":
        return build_model("transformer", VOCAB, VOCAB, H, N, layers, 17).eval()
    model = build_model("attention", VOCAB, VOCAB, 5, H, bidirectional=True)
    model.decoder.attention = MultiHeadAttention(H, H, H, N)
    return model.eval()


KINDS = ["transformer", "recurrent"]

# --- attention ----------------------------------------------------------------------


def heads_by_loops(attention, queries, states):
    """One sentence, one query and one head at a time -> contexts (Q, H), weights."""
    H = attention.W_o.in_features
    D = H // attention.num_heads
    W_k, W_v = attention.W_kv.weight.split(H)
    rows, all_weights = [], []
    for query in queries:
        parts, weights = [], []
        for n in range(attention.num_heads):
            own = slice(n * D, (n + 1) * D)
            q = attention.W_q.weight[own] @ query
            scores = [q @ (W_k[own] @ h) / math.sqrt(D) for h in states]
            powers = [torch.exp(e) for e in scores]
            a = [p / sum(powers) for p in powers]
            mixed = zip(a, states, strict=True)
            parts.append(sum(w * (W_v[own] @ h) for w, h in mixed))
            weights.append(torch.stack(a))
        rows.append(attention.W_o.weight @ torch.cat(parts))
        all_weights.append(torch.stack(weights))
    return torch.stack(rows), torch.stack(all_weights, dim=1)  # (Q, H), (N, Q, K)


@torch.no_grad()
def test_heads_equal_the_loops():
    torch.manual_seed(0)
    attention = MultiHeadAttention(7, 5, H, N)
    queries, states = torch.randn(3, 2, 5), torch.randn(3, 4, 7)
    lens = torch.tensor([4, 2, 1])
    contexts = attention(queries, states, states, lens)
    for b, length in enumerate(lens):
        expected, weights = heads_by_loops(attention, queries[b], states[b, :length])
        torch.testing.assert_close(contexts[b], expected)
        torch.testing.assert_close(attention.head_weights[b, ..., :length], weights)
        assert (attention.head_weights[b, ..., length:] == 0).all()
    torch.testing.assert_close(
        attention.attention_weights, attention.head_weights.mean(dim=1)
    )


@pytest.mark.parametrize("heads", [1, 2, 3, 12])
@torch.no_grad()
def test_heads_equal_multihead_attention_of_torch(heads):
    torch.manual_seed(heads)
    ours = MultiHeadAttention(H, H, H, heads)
    theirs = nn.MultiheadAttention(H, heads, bias=False, batch_first=True)
    theirs.in_proj_weight.copy_(torch.cat((ours.W_q.weight, ours.W_kv.weight)))
    theirs.out_proj.weight.copy_(ours.W_o.weight)
    queries, states = torch.randn(3, 2, H), torch.randn(3, 4, H)
    lens = torch.tensor([4, 2, 1])
    expected, weights = theirs(
        queries,
        states,
        states,
        key_padding_mask=~length_mask(lens, 4),
        average_attn_weights=False,
    )
    torch.testing.assert_close(ours(queries, states, states, lens), expected)
    torch.testing.assert_close(ours.head_weights, weights)


def test_the_scaled_dot_equals_that_of_torch_with_and_without_a_mask():
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 4, 6), torch.randn(3, 4, 6), torch.randn(3, 4, 5)
    ours, causal = DotProductAttention(6, 6, scaled=True), causal_lens(q[..., 0])
    torch.testing.assert_close(ours(q, k, v), F.scaled_dot_product_attention(q, k, v))
    torch.testing.assert_close(
        ours(q, k, v, causal), F.scaled_dot_product_attention(q, k, v, is_causal=True)
    )


def test_splitting_and_joining_undo_each_other():
    x = torch.randn(2, 5, H)
    rows = split(x, N)
    assert rows.shape == (2 * N, 5, H // N)
    assert torch.equal(rows[1], x[0, :, 4:8])  # the second head of the first sentence
    assert torch.equal(join(rows, N), x)


def test_values_that_are_not_the_keys_are_refused():
    attention, x = MultiHeadAttention(H, H, H, N), torch.randn(1, 4, H)
    attention(x, x, x.clone())
    with pytest.raises(ValueError, match="keys as values"):
        attention(x, x, x + 1)


# --- positions and the causal mask --------------------------------------------------


def test_position_codes_equal_the_formula():
    codes = position_codes(torch.tensor([0, 3, 50]), 6)
    for row, position in zip(codes.tolist(), (0, 3, 50), strict=True):
        for i in range(3):
            angle = position / 10_000 ** (2 * i / 6)
            assert row[2 * i] == pytest.approx(math.sin(angle), abs=1e-5)
            assert row[2 * i + 1] == pytest.approx(math.cos(angle), abs=1e-5)


def test_positions_go_on_where_they_stopped():
    x = torch.randn(2, 7, H)
    parts = torch.cat((add_positions(x[:, :4]), add_positions(x[:, 4:], start=4)), 1)
    torch.testing.assert_close(add_positions(x), parts)


@torch.no_grad()
def test_without_positions_the_encoder_knows_no_order(monkeypatch):
    model = make()
    source, order = torch.tensor([[4, 5, 6, 7]]), [2, 0, 3, 1]
    lens = torch.tensor([4])
    states, shuffled = (model.encoder(x, lens)[0] for x in (source, source[:, order]))
    assert (states[:, order] - shuffled).abs().max() > 0.1
    monkeypatch.setattr("utils.transformer.add_positions", lambda x, start=0: x)
    states, shuffled = (model.encoder(x, lens)[0] for x in (source, source[:, order]))
    torch.testing.assert_close(states[:, order], shuffled)


@torch.no_grad()
def test_a_word_changes_no_score_before_it():
    model = make()
    source, target, lens = some_batch()
    before, _ = model(source, target, lens)
    for t in range(target.shape[1]):
        changed = target.clone()
        changed[:, t] = (target[:, t] - 3) % 7 + 4
        moved = (model(source, changed, lens)[0] - before).abs().amax(dim=(0, 2)) > 1e-6
        assert moved.tolist() == [i >= t for i in range(target.shape[1])]


# --- the whole model ----------------------------------------------------------------


def torch_decoder_layer(ours, num_ffn):
    """nn.TransformerDecoderLayer with the weights of a TransformerLayer."""
    theirs = nn.TransformerDecoderLayer(
        H, N, num_ffn, dropout=0.0, batch_first=True, norm_first=True
    ).eval()
    pairs = (
        (theirs.self_attn, ours.self_attention),
        (theirs.multihead_attn, ours.attention),
    )
    for copy, own in pairs:  # their biases are 0 as they start
        copy.in_proj_weight.copy_(torch.cat((own.W_q.weight, own.W_kv.weight)))
        copy.out_proj.weight.copy_(own.W_o.weight)
    theirs.linear1.load_state_dict(ours.ffn[0].state_dict())
    theirs.linear2.load_state_dict(ours.ffn[2].state_dict())
    norms = (theirs.norm1, theirs.norm2, theirs.norm3)
    for copy, own in zip(norms, ours.norms, strict=True):
        own.weight.uniform_(0.5, 2)
        copy.load_state_dict(own.state_dict())
    return theirs


@torch.no_grad()
def test_a_layer_equals_the_decoder_layer_of_torch():
    torch.manual_seed(0)
    ours = TransformerLayer(H, N, 17).eval()
    theirs = torch_decoder_layer(ours, 17)
    x, memory = torch.randn(3, 4, H), torch.randn(3, 5, H)
    lens = torch.tensor([5, 3, 1])
    future = nn.Transformer.generate_square_subsequent_mask(4)
    expected = theirs(
        x,
        memory,
        tgt_mask=future,
        tgt_is_causal=True,
        memory_key_padding_mask=~length_mask(lens, 5),
    )
    keys = ours.attention.project_keys(memory)
    nothing = x.new_zeros(3, 0, 2 * H)
    result, written = ours(x, nothing, causal_lens(x[..., 0]), keys, lens)
    torch.testing.assert_close(result, expected)
    assert written.shape == (3, 4, 2 * H)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_step_by_step_equals_all_at_once(kind):
    model = make(kind)
    source, target, lens = some_batch()
    scores, last = model(source, target, lens)
    weights = model.decoder.attention_weights
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    steps, seen = [], []
    for word in target.split([1, 2, 1], dim=1):
        step, state = model.decoder(word, state)
        steps.append(step)
        seen.append(model.decoder.attention_weights)
    torch.testing.assert_close(torch.cat(steps, dim=1), scores)
    torch.testing.assert_close(torch.cat(seen, dim=1), weights)
    for ours, theirs in zip(state, last, strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_padding_changes_nothing(kind):
    model = make(kind)
    source, target, lens = some_batch()
    scores, _ = model(source, target, lens)
    noisy = source.clone()
    noisy[1, 3:], noisy[2, 1:] = 9, 7
    longer = torch.cat((noisy, torch.full((3, 2), 5)), dim=1)
    torch.testing.assert_close(model(longer, target, lens)[0], scores)
    alone, _ = model(source[1:2, :3], target[1:2], lens[1:2])
    torch.testing.assert_close(alone, scores[1:2])


@pytest.mark.parametrize("kind", KINDS)
def test_gradient_reaches_every_parameter_and_no_padding(kind):
    model = make(kind).train()
    source, target, lens = some_batch()
    source = torch.arange(4, 19).view(3, 5)  # no word twice
    model(source, target, lens)[0].square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    rows = model.encoder.embedding.weight.grad.abs().sum(dim=1)
    real = length_mask(lens, 5)
    assert (rows[source[real]] > 0).all() and (rows[source[~real]] == 0).all()


@torch.no_grad()
def test_the_source_is_projected_once_a_sentence():
    model = make()
    source, _, lens = some_batch()
    calls = []
    layer = model.decoder.layers[0]
    layer.attention.W_kv.register_forward_hook(lambda *_: calls.append("source"))
    layer.self_attention.W_kv.register_forward_hook(
        lambda _, __, keys: calls.append(keys.shape[1])
    )
    greedy_decode(model, source, lens, max_steps=4)
    assert calls[0] == "source" and set(calls[1:]) == {1}  # a word at a time


def greedy_by_recomputing(model, source, lens, steps):
    """Read the whole prefix again for every word."""
    ids = torch.full((len(source), 1), 1)
    for _ in range(steps):
        word = model(source, ids, lens)[0][:, -1:].argmax(dim=-1)
        ids = torch.cat((ids, word), dim=1)
    return ids[:, 1:]


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_greedy_decoding_equals_reading_the_prefix_again(kind):
    model = make(kind)
    source, _, lens = some_batch()
    ids, weights = greedy_decode(model, source, lens, max_steps=8)
    expected = greedy_by_recomputing(model, source, lens, ids.shape[1])
    for row, other in zip(ids.tolist(), expected.tolist(), strict=True):
        end = row.index(2) + 1 if 2 in row else len(row)  # after <eos>: padding
        assert row[:end] == other[:end]
    assert weights.shape == (*ids.shape, source.shape[1])


@pytest.mark.parametrize("kind", KINDS)
def test_beam_search_of_one_is_greedy(kind):
    model = make(kind)
    source, _, lens = some_batch()
    ids, _ = greedy_decode(model, source, lens, max_steps=6)
    found, _, weights = beam_search(model, source, lens, 1, max_steps=6)
    assert torch.equal(ids, found[:, : ids.shape[1]])
    assert beam_search(model, source, lens, 3, max_steps=6)[0].shape[0] == 3


@pytest.mark.parametrize("kind", KINDS)
def test_it_trains_and_translates_as_the_others_do(kind):
    corpus = load_village()
    vocabs, pairs = corpus.vocabs(), corpus["train"][:96]
    torch.manual_seed(0)
    model = build_model("transformer", *map(len, vocabs), 16, 2, 1)
    if kind == "recurrent":
        model = build_model("attention", *map(len, vocabs), 8, 16)
        model.decoder.attention = MultiHeadAttention(16, 16, 16, 2)
    loader = BatchLoader(pairs, *vocabs, 32)
    before = evaluate_loss(model, loader)
    trainer = Trainer(model, loader, 3, lr=1e-2).fit(progress=False)
    assert evaluate_loss(model, loader) < before - 0.2
    assert len(trainer.losses) == 9
    words = [list(pair.source) for pair in pairs[:5]]
    for result in translate_tokens(model, words, *vocabs, max_steps=5):
        assert result.attention_weights.shape == (
            len(result.tokens),
            len(result.source_tokens),
        )


def test_the_loss_counts_no_padding():
    corpus = load_village()
    vocabs, pairs = corpus.vocabs(), corpus["train"][:40]
    model = build_model("transformer", *map(len, vocabs), 16, 2, 1).eval()
    joined = evaluate_loss(model, [Batch.from_pairs(pairs, *vocabs)])
    apart = evaluate_loss(model, [Batch.from_pairs([p], *vocabs) for p in pairs])
    assert joined == pytest.approx(apart, rel=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fast_route_leaves_these_models_alone(kind):
    assert not by_hand.knows(make(kind, layers=1))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: MultiHeadAttention(8, 8, 8, 3), "8 hidden units.*3 heads"),
        (lambda: MultiHeadAttention(8, 8, 8, 0), "divides them"),
        (lambda: build_model("transformer", 9, 9, 10, 4), "10 hidden units.*4 heads"),
        (lambda: build_model("transformer", 9, 9, 3, 3), "must be even, got 3"),
        (
            lambda: build_model("transformer", 9, 9, 8, 2, 0),
            "num_layers must be at least 1",
        ),
        (
            lambda: build_model("transformer", 9, 9, 8, 2, 1, 0),
            "num_ffn must be at least 1",
        ),
        (lambda: make()(*some_batch()[:2], torch.tensor([5, 3])), r"shape \(3,\)"),
        (
            lambda: make()(some_batch()[0], some_batch()[1] + VOCAB, some_batch()[2]),
            "wrong vocabulary",
        ),
    ],
)
def test_bad_settings_get_a_clear_error(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- the stored measurements --------------------------------------------------------


@pytest.fixture
def measured(monkeypatch):
    """The script and what it stored."""
    monkeypatch.syspath_prepend(DATA / "results")
    module = script(DATA / "results" / "transformer.py")
    return module, json.loads(module.PATH.read_text(encoding="utf-8"))


def test_the_arms_were_measured_by_the_script_as_it_is(measured):
    module, stored = measured
    assert stored["settings"] == json.loads(json.dumps(module.SETTINGS))
    assert [row["run"] for row in stored["runs"]] == module.RUNS
    sizes = [len(vocab) for vocab in load_village().vocabs()]
    parameters = {
        arm: sum(p.numel() for p in module.build(arm, sizes).parameters())
        for arm in module.ARMS
    }
    heads = {"additive": 1, "multi-head": 4}
    for row in stored["runs"]:
        if arm := row["run"].get("arm"):
            assert row["parameters"] == parameters[arm]
            assert len(row["bleu_by_length"]) == len(module.BUCKETS)
            for way in ("written", "read"):  # each head, and their mean
                assert len(row["aer"][way]) == heads.get(arm, 8) + 1


def test_the_rates_were_chosen_on_the_validation_split(measured):
    module, stored = measured
    for arm in module.GRID:
        scores = {
            row["run"]["lr"]: row["valid_bleu"]
            for row in stored["runs"]
            if row["run"].get("arm") == arm and row["run"]["seed"] == 0
        }
        assert set(scores) == set(module.RATES)
        assert max(scores, key=scores.get) == module.ARMS[arm]["lr"]


def test_the_stored_times_are_in_order(measured):
    module, stored = measured
    times = {r["run"]["times"]: r["times"] for r in stored["runs"] if "times" in r}
    assert set(times) == set(module.TIMES)
    for kind in ("training", "decoding"):
        assert list(map(int, times[kind])) == module.SETTINGS["times"]["lengths"]
        for row in times[kind].values():
            assert all(0 < low <= middle <= high for middle, low, high in row.values())


@pytest.mark.parametrize("arm", ["additive", "multi-head", "Transformer 64"])
@torch.no_grad()
def test_the_heads_mean_is_what_the_model_shows(monkeypatch, arm):
    monkeypatch.syspath_prepend(DATA / "results")
    module = script(DATA / "results" / "transformer.py")
    corpus = load_village()
    vocabs, pairs = corpus.vocabs(), corpus["test"][:6]
    model = module.build(arm, [len(vocab) for vocab in vocabs]).eval()
    batch = Batch.from_pairs(pairs, *vocabs)
    weights = module.head_weights(model, batch)
    model(batch.source, batch.target_in, batch.source_lens)
    torch.testing.assert_close(weights.mean(dim=1), model.decoder.attention_weights)
    errors = module.alignment_errors(model, pairs, vocabs)
    assert all(len(row) == weights.shape[1] + 1 for row in errors.values())


def test_processor_time_counts_work_and_no_waiting(monkeypatch):
    monkeypatch.syspath_prepend(DATA / "results")
    module = script(DATA / "results" / "transformer.py")
    x = torch.randn(200, 200)
    calls = {"waits": lambda: time.sleep(0.05), "works": lambda: x @ x}
    times = module.processor_time(calls, 3)
    assert times["waits"][2] < 20_000 and times["works"][1] > 0


def test_processes_were_measured_by_the_script_as_it_is():
    module = script(DATA / "results" / "processes.py")
    stored = json.loads(module.PATH.read_text(encoding="utf-8"))
    assert stored["settings"] == module.SETTINGS
    assert set(stored["milliseconds"]) == set(module.ARRANGEMENTS)
