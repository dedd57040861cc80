"""The runner, and what is stored: by the scripts as they are, and in itself sound."""

import importlib
import json
import math
import multiprocessing
import random
import statistics
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from helpers import needs

from tools.experiments import (
    beams,
    choices,
    gold,
    long_sentences,
    models,
    multi30k,
    rnnsearch,
    runs,
    score_speed,
    shortcut,
    tasks,
    transformer,
)
from utils import by_hand
from utils.checkpoint import load_checkpoint
from utils.corpora import load_multi30k, load_village
from utils.data import Batch, Pair
from utils.decoding import translate_tokens
from utils.models import KINDS, build_model
from utils.recipe import Settings, make_vocabs
from utils.subwords import SubwordVocab
from utils.text import Vocab

pytestmark = pytest.mark.slow

EXPERIMENTS = sorted(path.stem for path in runs.RESULTS.glob("*.json"))


def stored(name):
    return json.loads((runs.RESULTS / f"{name}.json").read_text(encoding="utf-8"))


# --- the runner ---------------------------------------------------------------------


SQUARES = """
from pathlib import Path

FOLDER = Path(__file__).parent
SETTINGS, RUNS, WORKERS = {"power": 2}, [{"x": x} for x in (1, 2, 3)], 1


def run(settings, x):
    if x == 3 and (FOLDER / "broken").exists():
        raise RuntimeError("the third run fails")
    with open(FOLDER / "made", "a") as file:
        file.write(str(x))
    return {"result": x ** settings["power"]}
"""


@pytest.mark.skipif(
    multiprocessing.get_start_method() != "fork",
    reason="a process that is started anew doesn't find the experiment made here",
)
def test_a_measurement_goes_on_where_it_stopped(tmp_path, monkeypatch):
    (tmp_path / "squares.py").write_text(SQUARES)
    (tmp_path / "broken").touch()
    package = sys.modules["tools.experiments"]
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])

    def results():
        entries = json.loads((tmp_path / "squares.json").read_text())["runs"]
        return [(entry["run"]["x"], entry["result"]) for entry in entries]

    with pytest.raises(RuntimeError, match="the third run fails"):
        runs.measure("squares", tmp_path)
    assert results() == [(1, 1), (2, 4)]
    (tmp_path / "broken").unlink()
    runs.measure("squares", tmp_path)
    assert results() == [(1, 1), (2, 4), (3, 9)]
    assert (tmp_path / "made").read_text() == "123"  # none was made twice
    monkeypatch.setattr("tools.experiments.squares.SETTINGS", {"power": 3})
    runs.measure("squares", tmp_path)
    assert results() == [(1, 1), (2, 8), (3, 27)]  # other settings: all are made again

    # A plan that names two runs, and the rest when these are made; the second fails.
    def two_at_first(done):
        return squares.RUNS if len(done) == 4 else [{"x": 0}, {"x": 3}]

    squares = sys.modules["tools.experiments.squares"]
    path = tmp_path / "squares.json"
    whole = json.loads(path.read_text())
    path.write_text(json.dumps({**whole, "runs": whole["runs"][:2]}))
    monkeypatch.setattr(squares, "RUNS", [{"x": 0}, {"x": 2}, {"x": 3}])
    monkeypatch.setattr(squares, "plan", two_at_first, raising=False)
    (tmp_path / "broken").touch()
    with pytest.raises(RuntimeError, match="the third run fails"):
        runs.measure("squares", tmp_path)
    assert results() == [(0, 0), (1, 1), (2, 8)]  # what isn't named yet is kept
    (tmp_path / "broken").unlink()
    runs.measure("squares", tmp_path)
    assert results() == [(0, 0), (2, 8), (3, 27)]  # what is never named is dropped


def best_at(rate, diverges_at=1.0):
    """Stored entries: the loss is lowest at a rate, and some rates diverge."""

    def entry(run):
        loss = 1 + abs(math.log(run["lr"] / rate))
        return {"run": run, "valid_loss": None if run["lr"] >= diverges_at else loss}

    return entry


@pytest.mark.parametrize(
    ("best", "rates", "tried"),
    [
        (0.02, (0.01, 0.02, 0.04), {0.01, 0.02, 0.04}),
        (0.0025, (0.005, 0.01, 0.02), {0.00125, 0.0025, 0.005, 0.01, 0.02}),
    ],
)
def test_an_arm_gets_its_own_rate(best, rates, tried):
    """The best of the grid; at its edge the grid grows, and seeds come afterwards.

    A longer budget starts from that rate, and halves it while the loss falls.
    """
    done, budgets = [], [{"times": 1}, {"times": 3}]
    arguments = {"arm": "a"}, rates, budgets, (0, 1)
    while True:
        named = runs.at_own_rate(done, *arguments)
        new = [run for run in named if run not in [entry["run"] for entry in done]]
        if not new:
            break
        assert not any(run["times"] == 3 for run in named if len(done) < len(tried))
        for run in new:
            own = best if run["times"] == 1 else best / 2
            done.append(best_at(own, diverges_at=0.04)(run))
    found = {
        (times, seed): {
            run["lr"] for run in named if (run["times"], run["seed"]) == (times, seed)
        }
        for times in (1, 3)
        for seed in (0, 1)
    }
    assert found == {
        (1, 0): tried,
        (1, 1): {best},
        (3, 0): {best, best / 2, best / 4},
        (3, 1): {best / 2},
    }


def test_a_training_that_diverges_is_stored_as_that():
    def run(settings, lr):
        raise FloatingPointError("the loss is inf")

    found = runs.attempt(run, {}, {"lr": 9.0})
    assert found == {"valid_loss": None, "diverged": "the loss is inf"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_stored_runs_are_those_of_the_script_as_it_is(name, tmp_path, monkeypatch):
    """So there is nothing to measure, and the file stays as it is."""
    path = tmp_path / f"{name}.json"
    path.write_bytes((runs.RESULTS / path.name).read_bytes())
    before = path.read_bytes()
    experiment = importlib.import_module(f"tools.experiments.{name}")
    monkeypatch.setattr(experiment, "run", None)  # calling it would be an error
    runs.measure(name, tmp_path)
    assert path.read_bytes() == before
    entries = stored(name).get("runs", [])
    plan = getattr(experiment, "plan", lambda done: getattr(experiment, "RUNS", []))
    assert len(entries) == len(plan(entries))  # none is left over


# --- the shipped models -------------------------------------------------------------


@pytest.mark.parametrize("direction", ["en-fr", "en-zh"])
def test_a_shipped_model_scores_what_it_says(direction):
    saved = load_checkpoint(models.FOLDER / f"village-{direction}.safetensors")
    assert saved.notes["settings"] == models.SETTINGS
    assert saved.notes["corpus"] == f"Village {direction}"
    corpus, vocabs = runs.village(direction)
    assert [saved.src_vocab.idx_to_token, saved.tgt_vocab.idx_to_token] == [
        vocab.idx_to_token for vocab in vocabs
    ]  # made from the corpus as it is now
    scores = models.score(saved.model, corpus["test"], vocabs)
    assert scores["test_bleu"] == pytest.approx(saved.notes["test_bleu"], abs=0.3)
    assert scores["test_aer"] == pytest.approx(saved.notes["test_aer"], abs=0.005)
    assert saved.training is None  # small: no state of an optimiser


def test_the_shipped_translator_is_of_the_recipe():
    saved = load_checkpoint(multi30k.MODEL)
    assert Settings(**saved.notes["settings"]) == Settings()  # bar what came later
    vocabs = saved.src_vocab, saved.tgt_vocab
    assert list(map(len, vocabs)) == [Settings().source_pieces] * 2
    for entry in measured_real_translation():
        if entry["run"]["arm"] == "small":
            parameters = sum(p.numel() for p in saved.model.parameters())
            assert entry["parameters"] == parameters
            assert entry["vocabularies"] == list(map(len, vocabs))


@needs("multi30k")
def test_the_shipped_translator_scores_what_it_says():
    """Stored in half precision, it is as good as the model that was trained."""
    saved = load_checkpoint(multi30k.MODEL)
    vocabs = saved.src_vocab, saved.tgt_vocab
    corpus, noted = load_multi30k("de", "en"), saved.notes["test"]
    found = multi30k.search(saved.model, vocabs, corpus["test"])
    scores = multi30k.scores(found, corpus, "test", vocabs)
    names = [("greedy", "greedy"), ("beam", "beam")]
    if "greedy_tokens" in noted:  # stored by the first edition, under other names
        names = [("greedy", "greedy_tokens"), ("text_bleu", "beam")]
    for ours, theirs in names:
        assert scores[ours] == pytest.approx(noted[theirs], abs=0.3)


# --- what is stored -----------------------------------------------------------------


@pytest.mark.parametrize(
    "name, build",
    [
        ("choices", choices.build_arm),
        ("rnnsearch", rnnsearch.build),
        ("transformer", transformer.build),
    ],
)
def test_every_arm_has_the_parameters_that_are_stored(name, build):
    found = {}
    for entry in stored(name)["runs"]:
        if arm := entry["run"].get("arm"):
            found.setdefault(arm, set()).add(entry["parameters"])
    for arm, parameters in found.items():
        direction = "en-zh" if arm.endswith("Chinese") else "en-fr"
        vocabs = runs.village(direction)[1]
        assert parameters == {sum(p.numel() for p in build(arm, vocabs).parameters())}


def test_the_times_of_the_scores_are_complete_and_in_order():
    found = stored("score_speed")
    calls = score_speed.calls_of(found["settings"])
    assert found["settings"] == score_speed.SETTINGS
    assert {n: list(row) for n, row in found["microseconds"].items()} == {
        name: list(row) for name, row in calls.items()
    }
    for row in found["microseconds"].values():
        assert all(0 < low <= middle <= high for middle, low, high in row.values())


def test_two_processes_come_to_the_losses_of_one():
    found = stored("processes")["milliseconds"]
    assert found["one"]["losses"] == pytest.approx(found["two"]["losses"], abs=1e-3)
    assert found["one"]["losses"][1] < found["one"]["losses"][0] - 1
    for row in found.values():
        for kind in ("clock", "processor"):
            middle, low, high = row[kind]
            assert 0 < low <= middle <= high


def test_the_times_of_the_transformers_are_complete_and_in_order():
    found = stored("transformer")
    settings = found["settings"]["times"]
    kinds = {e["run"]["times"]: e["times"] for e in found["runs"] if "times" in e}
    assert set(kinds) == set(transformer.TIMES)
    for kind in ("training", "decoding"):
        assert list(map(int, kinds[kind])) == settings["lengths"]
        for row in kinds[kind].values():
            assert set(transformer.COMPARED) < set(row)
            assert all(0 < low <= middle <= high for middle, low, high in row.values())
    assert set(kinds["corpus"]["update"]) == {
        *transformer.COMPARED,
        "additive, recorded",
    }
    assert kinds["corpus"]["updates_an_epoch"] == math.ceil(
        len(runs.up_to(runs.village("en-fr")[0]["train"], 15)) / 64
    )


def test_the_curve_of_a_transformer_has_a_point_for_each_epoch():
    trained = [e for e in stored("transformer")["runs"] if "curve" in e]
    for entry in trained:
        ends, scores = zip(*entry["curve"], strict=True)
        epochs = entry["run"]["num_epochs"]
        step = entry["updates"] // epochs
        assert list(ends) == [step * n for n in range(1, epochs + 1)]
        # the last one is of the first validation sentences, valid_bleu of all
        assert abs(scores[-1] - entry["valid_bleu"]) < 6
    assert len(trained) >= 3 * 2 * len(transformer.COMPARED) + 3


def test_additive_moves_little_from_other_random_starts():
    """Notebook 14 shows the runs of 08 beside its own: the same model and batches."""
    found = []
    for name in ("choices", "transformer"):
        entries = [e for e in stored(name)["runs"] if e["run"].get("arm") == "additive"]
        assert {e["parameters"] for e in entries} == {378_948}
        epochs = {e["run"]["num_epochs"] for e in entries}
        found.append({n: own_bleu(entries, n) for n in epochs})
    assert found[0].keys() == found[1].keys() == {4, 12}
    for n, bleus in found[0].items():
        assert statistics.mean(bleus) == pytest.approx(
            statistics.mean(found[1][n]), abs=3
        )


def own_bleu(entries, epochs):
    """BLEU of each seed, at the rate with the lowest validation loss of seed 0."""
    entries = [e for e in entries if e["run"]["num_epochs"] == epochs]
    first = [e for e in entries if e["run"]["seed"] == 0 and e["valid_loss"]]
    rate = min(first, key=lambda e: e["valid_loss"])["run"]["lr"]
    return [e["bleu"] for e in entries if e["run"]["lr"] == rate]


def test_no_beam_finds_what_an_exact_search_misses():
    for entry in stored("beams")["runs"]:
        exact, missed = entry["exact"], 1 - entry["exact"]["certain"]
        assert exact["search_errors"] <= missed + 1e-6
        for row in entry["beams"]:
            if row["beam_size"] == 1:
                assert (row["as_greedy"], row["gain"]) == (1, 0)
            if entry["run"]["model"] in beams.SHIPPED:
                low, high = row["gain_range"]
                assert low <= row["gain"] <= high
            if row["sentences"] == exact["sentences"] and not exact["search_errors"]:
                assert row["log_prob"] <= exact["log_prob"]


def test_what_a_search_found_is_judged_by_the_best_of_all():
    vocab = Vocab([list("abcd")], "en")
    references = [list("abcd"), list("ab")]
    greedy = [([4, 5, 6, 7], -2.0), ([5], -1.0)]
    best = [([4], -1.5), ([5], -1.0)]
    found = [([4], -1.5), ([], -3.0)]
    told = beams.judge(found, best, references, greedy, vocab, 0.7)
    assert (told["search_errors"], told["below_greedy"], told["empty"]) == (0.5,) * 3
    assert (told["short"], told["as_greedy"], told["log_prob"]) == (1, 0, -2.25)
    assert told["length_ratio"] == round(1 / 6, 4)
    few = beams.judge(found[:1], best, references, greedy, vocab, 0.7)
    assert (few["sentences"], few["search_errors"], few["short"]) == (1, 0, 1)


def test_arms_that_are_compared_had_the_same_number_of_updates():
    for entry in stored("long_sentences")["runs"]:
        times = entry["run"]["times"]
        assert 748 * times <= entry["updates"] <= 750 * times
    updates = {}
    for entry in stored("tasks")["runs"]:
        if "updates" in entry:  # no training that diverged
            key = entry["run"]["task"], entry["run"]["num_epochs"]
            updates.setdefault(key, set()).add(entry["updates"])
    budgets = {(t, n) for t in tasks.TASKS for n in tasks.SETTINGS[t]["budgets"]}
    assert updates.keys() == budgets
    assert all(len(found) == 1 for found in updates.values())


def measured_real_translation():
    """The stored runs that trained a model."""
    return [e for e in stored("multi30k")["runs"] if e["run"] in multi30k.PLAN]


def test_epochs_of_real_translation_were_chosen_on_the_validation_split():
    for entry in measured_real_translation():
        losses = [epoch["valid_loss"] for epoch in entry["history"]]
        assert losses[entry["best_epoch"] - 1] == min(losses)
        about = entry["run"]
        tested = about["arm"] in multi30k.TESTED
        assert ("test" in entry) == tested  # the others were judged on validation


# --- what the scripts compute -------------------------------------------------------


def test_rows_that_come_a_step_early_are_moved_to_their_words():
    """Links (source, target). Row i looks at what word i + 1 translates."""
    gold, early = {(0, 0), (1, 1), (2, 2)}, {(1, 0), (2, 1), (2, 2)}
    moved = rnnsearch.moved_down(early, num_words=3)
    assert moved == {(1, 0), (1, 1), (2, 2)}  # the first word keeps its own row
    assert len(moved & gold) == 2 > len(early & gold)


def test_erasing_finds_the_word_that_a_model_uses():
    """A model that reads one source position alone: only erasing that one hurts."""
    corpus, vocabs = runs.village("en-fr")
    pair = next(p for p in corpus["test"] if len(p.source) == 8)
    model = choices.build_arm("additive", vocabs).eval()
    with torch.no_grad():
        for name, parameter in model.encoder.rnn.named_parameters():
            if "hh" in name:  # each state sees its own word and no other:
                parameter.zero_()
            if "bias_hh" in name:  # z is 0
                parameter[len(parameter) // 3 : 2 * len(parameter) // 3] = -100.0
    model.decoder.attention.score = lambda queries, keys: torch.where(
        torch.arange(keys.shape[1]) == 2, 50.0, 0.0
    ).expand(*queries.shape[:2], -1)
    model.decoder.bridge.forward = torch.zeros_like  # the first state knows no word
    drops, weights = choices.erasure(pair, model, vocabs)
    assert drops.shape == weights.shape == (len(pair.target), len(pair.source))
    assert (weights.argmax(-1) == 2).all()
    others = [j for j in range(len(pair.source)) if j != 2]
    assert drops[:, 2].abs().min() > 1e-6 and drops[:, others].abs().max() < 1e-6


def test_what_hurts_most_is_compared_with_gold_and_by_rank():
    links = frozenset({(0, 0), (2, 1), (1, 1)})
    pair = Pair(tuple("abc"), tuple("uvw"), links)  # w has no link
    values = torch.tensor([[9.0, 1.0, 2.0]] * 3)
    assert choices.tops_in_gold(values, pair) == [True, False]
    assert choices.tops_in_gold(values.flip(1), pair) == [False, True]
    rows = torch.tensor([[1.0, 2.0, 9.0], [9.0, 2.0, 1.0], [2.0, 1.0, 9.0]])
    same = choices.rank_correlation(rows[:1].expand(3, -1), rows)
    assert same.tolist() == [1.0, -1.0, 0.5]


@pytest.mark.parametrize("kind", ["fixed", "attention"])
def test_a_gradient_is_what_autograd_gives_for_the_sentence_alone(kind):
    corpus, vocabs = runs.village("en-fr")
    pairs = [pair for pair in corpus["test"] if len(pair.source) == 6][:3]
    sizes = {"embed_size": 8, "num_hiddens": 16}
    model = runs.build(kind, vocabs, 0, sizes).eval()
    found = shortcut.gradients(model, pairs, vocabs)
    assert found.shape[::2] == (3, 7)
    pair = pairs[1]
    batch = Batch.from_pairs([pair], *vocabs)
    table, i = model.encoder.embedding, len(pair.target) - 2  # the last word
    table.weight.data = table.weight[batch.source[0]].data  # a row for each position
    places = torch.arange(7).unsqueeze(0)
    logits, _ = model(places, batch.target_in, batch.source_lens)
    logits[0, i, batch.target_out[0, i]].backward()
    torch.testing.assert_close(table.weight.grad.norm(dim=-1), found[1, i])
    row = shortcut.summary(found[1:2], [pair])
    assert row["last_word"] == [float(f"{x:.4g}") for x in found[1, i].tolist()]


def test_linked_words_are_told_from_the_others():
    pair = Pair(("a", "b"), ("u", "v", "."), frozenset({(0, 0), (1, 1), (0, 1)}))
    sizes = torch.arange(12.0).view(1, 4, 3)  # a row for each target word and <eos>
    found = shortcut.summary(sizes, [pair])
    assert found["last_word"] == [3.0, 4.0, 5.0]
    assert found["every_word"] == [4.5, 5.5, 6.5]
    assert found["linked"] == (0 + (3 + 4) / 2) / 2
    assert found["not_linked"] == ((1 + 2) / 2 + 5) / 2


def test_the_stored_gradients_say_what_notebook_04_says():
    for entry in stored("shortcut")["runs"]:
        untrained, trained = entry["untrained"], entry["trained"]
        assert entry["sentences"] == 35 and len(trained["last_word"]) == 26
        if entry["run"]["kind"] == "fixed":
            assert untrained["last_word"][0] * 1e4 < trained["last_word"][0]
        else:
            assert trained["linked"] > 2.5 * trained["not_linked"]


def test_a_model_without_attention_is_asked_by_erasing_alone():
    corpus, vocabs = runs.village("en-fr")
    found, whole = (
        choices.agreement(choices.build_arm(arm, vocabs), corpus["test"][:3], vocabs)
        for arm in ("fixed context", "additive")
    )
    assert list(found) == ["erased_gold"]
    assert set(found) < set(whole) and len(whole) == 4


def test_only_plain_statements_are_joined():
    """Each rule has a sentence that breaks it alone."""
    sentences = ["a b , c .", "a b c d .", "a b but c .", "a b c d ?", "a b ."]
    pairs = [Pair(tuple(s.split()), ("u", "."), None) for s in sentences]
    kept = long_sentences.joinable(pairs, least=4, commas=0)
    assert [" ".join(pair.source) for pair in kept] == ["a b c d ."]
    assert len(long_sentences.joinable(pairs, least=4, commas=1)) == 2
    assert len(long_sentences.joinable(pairs, least=3, commas=0)) == 2


def test_a_model_seen_through_a_wide_window_is_the_same():
    corpus, vocabs = runs.village("en-fr")
    torch.manual_seed(0)
    model = build_model("attention", *map(len, vocabs), 8, 8, bidirectional=True)
    part = [list(pair.source) for pair in corpus["long"][:4]]
    plain, wide, narrow = (
        translate_tokens(m, part, *vocabs, max_steps=9)
        for m in (model, *(long_sentences.with_window(model, n) for n in (99, 1)))
    )
    assert [r.tokens for r in wide] == [r.tokens for r in plain]
    for a, b, c in zip(plain, wide, narrow, strict=True):
        torch.testing.assert_close(a.attention_weights, b.attention_weights)
        assert (c.attention_weights > 0).sum(1).max() <= 3


def test_sources_are_reversed_and_half_of_the_pairs_joined():
    train = load_village("en", "fr")["train"]
    (turned,) = long_sentences.reverse_sources(train[:1])
    assert turned.source == train[0].source[::-1] != train[0].source
    assert turned.target == train[0].target and turned.alignment is None
    pairs = [pair for pair in train if len(pair.source) <= 15][:200]
    mixed = long_sentences.half_joined(pairs)
    assert mixed[:100] == pairs[:100] and 150 < len(mixed) <= 200
    assert all({",", "but"} <= set(pair.source) for pair in mixed[100:])


def test_places_of_a_step_ago():
    pair = Pair(tuple("abc"), tuple("uv"), frozenset({(2, 0), (1, 1)}))
    places = long_sentences.linked_places([pair])
    assert places.tolist() == [[2, 1, 3]]
    ago = long_sentences.a_step_ago(long_sentences.linked_places)([pair])
    assert ago.tolist() == [[0, 2, 1]]


def test_far_looks_are_told_by_side_and_word(monkeypatch):
    """The second word looks far ahead at the same word, the third far back."""
    source = ("a", "b", "c", "d", "b")
    pair = Pair(source, tuple("uvw"), frozenset({(0, 0), (1, 1), (4, 2)}))
    weights = torch.eye(5)[[0, 4, 0]]
    monkeypatch.setattr(long_sentences, "forced_weights", lambda *_: [weights])
    found = long_sentences.far_looks(None, [pair], None, far=2)
    assert found == {"share": 0.667, "ahead": 0.5, "alike": 0.5}


def test_mistakes_are_counted_by_sentence():
    said = ["two men sit", "a red red cat", "a dog", "this man and this man"]
    meant = ["three men sit", "a red cat", "a dog is here in the snow", "this man now"]
    found = multi30k.mistakes([s.split() for s in said], [s.split() for s in meant])
    assert found == {
        "equal to the reference": 0,
        "a word twice in a row": 1,
        "a word again": 1,
        "much too short": 1,
        "much too long": 1,
        "other colours": 1,
        "other numbers": 1,
        "other people": 1,
    }


# --- real translation -----------------------------------------------------------------


def test_the_plan_of_real_translation_can_be_run():
    """Each run is another; what an arm changes is known, and names another model."""
    plan = multi30k.PLAN
    assert json.loads(json.dumps(plan)) == plan  # as it will be stored
    assert all(plan.count(run) == 1 for run in plan)
    assert multi30k.plan([]) == multi30k.TIMES[:1]  # alone
    timed = [{"run": run} for run in multi30k.TIMES]
    assert multi30k.plan(timed) == multi30k.TIMES + plan
    known = {**asdict(Settings()), "decoder": None}
    for run in plan:
        changes = dict(run["changes"])
        assert all(known[name] != value for name, value in changes.items())
        if "decoder" in changes:
            assert changes["decoder"] in KINDS
    full = {run["arm"]: run["changes"] for run in plan[:2]}
    assert list(full) == ["small", "large"] and not full["small"]
    for arm, changes in multi30k.LEFT_OUT.items():
        assert len(changes) == 1 or arm in ("whole words", "no remedies")


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """multi30k.run on 64 pairs of the Village, with a tiny model, files in tmp_path."""
    whole = load_village("fr", "en")
    sizes = {"train": 64, "valid": 8, "test": 8}
    splits = {name: whole[name][:n] for name, n in sizes.items()}
    corpus = replace(whole, splits=splits)
    monkeypatch.setattr(multi30k, "load", lambda arm, direction: corpus)
    monkeypatch.setattr(multi30k, "UNFINISHED", tmp_path / "unfinished")
    monkeypatch.setattr(multi30k, "MODEL", tmp_path / "model.safetensors")
    recipe = {"source_pieces": 120, "target_pieces": 120, "embed_size": 4}
    recipe |= {"num_hiddens": 6, "enc_hiddens": 8, "num_epochs": 2, "batch_size": 16}
    return partial(multi30k.run, multi30k.SETTINGS | recipe)


def test_a_run_that_was_stopped_goes_on_and_comes_to_the_same(tiny, monkeypatch):
    run = multi30k.planned("no dropout", {"dropout": 0.0})
    whole, calls = tiny(**run), []
    plain = by_hand.loss

    def stopped(*arguments, **options):
        calls.append(len(calls))
        if len(calls) == 7:  # in the second epoch
            raise KeyboardInterrupt
        return plain(*arguments, **options)

    monkeypatch.setattr(by_hand, "loss", stopped)
    with pytest.raises(KeyboardInterrupt):
        tiny(**run)
    kept = list(multi30k.UNFINISHED.iterdir())
    assert len(kept) == 2  # the best so far, and what to go on from
    found = tiny(**run)
    assert len(calls) == 9  # eight updates; the seventh was begun twice
    assert list(multi30k.UNFINISHED.iterdir()) == []
    for name in ("history", "valid", "last", "updates"):
        assert found[name] == whole[name]
    assert "test" not in found and not multi30k.MODEL.exists()


def test_only_full_models_are_tested_and_one_is_shipped_once(tiny):
    shipped = tiny(**multi30k.planned("small", {}))
    saved = load_checkpoint(multi30k.MODEL)
    assert saved.notes["test"] == json.loads(json.dumps(shipped["test"]))
    assert saved.notes["settings"]["num_hiddens"] == 6
    written = multi30k.MODEL.stat().st_mtime_ns
    tiny(**multi30k.planned("small", {}))
    tiny(**multi30k.planned("small", {}, direction="en-de"))
    assert multi30k.MODEL.stat().st_mtime_ns == written  # it is there, and stays
    assert "test" not in tiny(**multi30k.planned("no dropout", {"dropout": 0.0}))
    test = tiny(**multi30k.planned("large", {"num_hiddens": 8}))["test"]
    assert {"beam", "greedy", "chrf", "by_length", "mistakes", "new"} <= test.keys()
    assert sum(count for _, count, _ in test["by_length"]) == 8


def test_what_the_command_does_not_offer_is_built_beside_it():
    corpus = load_village("en", "fr")
    corpus = replace(corpus, splits={"train": corpus["train"][:200]})
    sizes = {"source_pieces": 200, "target_pieces": 200, "embed_size": 4}
    settings = multi30k.SETTINGS | sizes | {"num_hiddens": 6, "enc_hiddens": 8}
    assert multi30k.arranged(corpus, settings, {"dropout": 0.1}, 3) == (
        Settings(
            **{n: settings[n] for n in asdict(Settings())} | {"dropout": 0.1, "seed": 3}
        ),
        None,
    )
    arms = multi30k.FURTHER
    chosen, untied = multi30k.arranged(corpus, settings, arms["not tied"], 0)
    assert untied.model.config["kind"] == "untied translator"
    assert (untied.src_vocab, untied.tgt_vocab) == make_vocabs(corpus, chosen)
    _, pairs = multi30k.arranged(corpus, settings, arms["byte pairs"], 0)
    assert pairs.model.config["kind"] == "translator"
    assert pairs.src_vocab != untied.src_vocab and pairs.src_vocab.lang == "en"
    with pytest.raises(ValueError, match="byte pairs"):
        pairs.tgt_vocab.sample(["demain"], random.Random(0), 0.5)


def test_frequent_words_that_are_cut_are_named():
    corpus = load_village("en", "zh")
    corpus = replace(corpus, splits={"train": corpus["train"][:300]})
    english = SubwordVocab.train([pair.source for pair in corpus["train"]], "en", 120)
    vocabs = english, Vocab([pair.target for pair in corpus["train"]], "zh")
    (found,) = multi30k.frequent_cut(corpus, vocabs, 60).values()  # of English alone
    assert 0 < len(found) < 60 and "the" not in found
    assert all(len(english.encode([word]).ids) > 1 for word in found)
    assert multi30k.frequent_cut(corpus, vocabs, 1) == {"en": []}


def test_near_copies_differ_in_few_words():
    train = [Pair(tuple("abcdef"), ("x",)), Pair(tuple("ghi"), ("y",))]
    texts = ["abcdef", "abxef", "xbcdxy", "ghijklm", "ghijk", "abcxyz"]
    pairs = [Pair(tuple(text), ("z",)) for text in texts]
    assert multi30k.near_copies(pairs, train, 2) == {0, 1, 4}
    assert multi30k.near_copies(pairs, train, 3) == {0, 1, 2, 4, 5}


def test_bleu_without_near_copies_leaves_them_out():
    train = [Pair(tuple("abcdef"), tuple("uvwx"))]
    test = [Pair(tuple("abcdeg"), tuple("uvwx")), Pair(tuple("lmnop"), tuple("abcd"))]
    corpus = replace(load_village("fr", "en"), splits={"train": train, "test": test})
    said = [SimpleNamespace(words=list(words)) for words in ("zzzz", "abcd")]
    settings = {"near": 1, "examples": [5, 17]}
    found = multi30k.of_test(said, corpus, settings)
    assert found["new"] == {"sentences": 1, "beam": 100.0}
    assert [example["translation"] for example in found["examples"]] == ["a b c d"]


@pytest.mark.parametrize("arm", ["additive", "multi-head", "Transformer 64"])
@torch.no_grad()
def test_the_heads_mean_is_what_the_model_shows(arm):
    corpus, vocabs = runs.village("en-fr")
    pairs = corpus["test"][:6]
    model = transformer.build(arm, vocabs).eval()
    batch = Batch.from_pairs(pairs, *vocabs)
    weights = transformer.head_weights(model, batch)
    model(batch.source, batch.target_in, batch.source_lens)
    torch.testing.assert_close(weights.mean(dim=1), model.decoder.attention_weights)
    errors = transformer.alignment_errors(model, pairs, vocabs)
    assert all(len(row) == weights.shape[1] + 1 for row in errors.values())
    if arm == "additive":  # one head: its error rate, counted in another place
        assert errors["written"] == [runs.aer_of(model, pairs, vocabs)] * 2


# --- gold sets on real text ---------------------------------------------------------


def test_without_the_aligner_nothing_is_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "eflomal", None)
    monkeypatch.setattr(gold, "text", None)  # it is asked for first
    with pytest.raises(ModuleNotFoundError, match="python -m pip install eflomal"):
        gold.run(gold.SETTINGS)


def test_an_aligner_learns_from_both_texts_and_says_what_is_of_the_pairs(monkeypatch):
    class Aligner:
        """Links every line's last words, forward; and the first ones, backward."""

        def align(self, sources, targets, forward, backward):
            lines = [
                (len(a.split()) - 1, len(b.split()) - 1)
                for a, b in zip(sources, targets, strict=True)
            ]
            assert lines == [(2, 0), (0, 1)]
            for path, links in ((forward, "{}-{} 0-0"), (backward, "0-0")):
                with open(path, "w") as file:
                    file.writelines(links.format(*line) + "\n" for line in lines)

    package = type(sys)("eflomal")
    package.Aligner = Aligner
    monkeypatch.setitem(sys.modules, "eflomal", package)
    training, pairs = [Pair(tuple("abc"), ("x",))], [Pair(("a",), ("x", "y"))]
    found = gold.aligner()(training, pairs)
    forward, backward = [{(0, 1), (0, 0)}], [{(0, 0)}]
    assert found["forward"] == list(found["either"]) == forward
    assert found["backward"] == list(found["both"]) == backward


def test_an_error_rate_has_its_range():
    sure, possible = frozenset({(0, 0)}), frozenset({(0, 1)})
    pair = Pair(("a",), ("x", "y"), sure, possible=possible)
    found = gold.score([sure | possible, {(0, 2)}], [pair, pair])
    assert (found["precision"], found["recall"]) == (0.667, 0.5)
    assert found["aer"] == 0.4 and found["aer_95"] == [0.0, 1.0]
    assert gold.score([sure] * 9, [pair] * 9)["aer_95"] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "pairs_of"),
    [
        pytest.param("multi30k-de-en", 29_000, marks=needs("multi30k")),
        pytest.param("tatoeba-en-zh", 30_919, marks=needs("tatoeba/cmn.txt")),
    ],
)
def test_the_stored_error_rates_are_those_of_the_text_and_the_model(name, pairs_of):
    measured = stored("gold")["sets"][name]
    pairs, training = gold.text(name)
    assert len(training) == pairs_of == measured["aligner_pairs"] - len(pairs)
    assert {**measured, **gold.counts(pairs)} == measured
    assert gold.agreed(name) == measured["agreement"]
    if "attention" in measured:
        found = gold.score(gold.attention(pairs), pairs)
        assert found["aer"] == pytest.approx(measured["attention"]["aer"], abs=0.005)
    worst = max(way["forward"]["aer"] for way in measured["aligner"])
    assert worst < 0.5 * measured["diagonal"]["aer"]


def test_processor_time_counts_work_and_no_waiting():
    x = torch.randn(200, 200)
    calls = {"waits": lambda: time.sleep(0.05), "works": lambda: x @ x}
    times = score_speed.in_turn(calls, 3, score_speed.processor_seconds)
    assert times["waits"][2] < 20_000 and times["works"][1] > 0


@pytest.mark.parametrize("kind", tasks.KINDS)
@pytest.mark.parametrize(
    ("task", "more", "group"),
    [
        ("stories", "long", "thing"),
        ("headlines", "long", "2 news"),
        ("dates", "form", "{year}, {mon} {d}"),
    ],
)
def test_the_tasks_are_scored(task, more, group, kind):
    sizes = {"train": 400, "valid": 50, "test": 80, "new": 50, more: 60}
    about = {"budgets": [1, 2], "sizes": sizes}
    settings = {**tasks.SETTINGS, task: about, "batch_size": 200}
    figures = tasks.run(settings, task, kind, 0, num_epochs=1, lr=1e-3)
    assert figures["updates"] == 2 and 0 < figures["valid_loss"] < 9
    assert list(figures["splits"]) == ["valid", "test", "new", more]
    found = figures["splits"]["test"]
    assert found["all"]["count"] == 80 > found[group]["count"] > 0
    assert ("rouge1" in found["all"]) == (task == "headlines")
    assert ("attention" in found["all"]) == ("untrained" in figures)
    assert ("untrained" in figures) == (kind == "attention")
    if kind == "attention":
        assert 0 < figures["untrained"]["mass"] < 1
        assert 0 <= found["all"]["attention"]["hits"] <= 1
        longer = tasks.run(settings, task, kind, 0, num_epochs=2, lr=1e-3)
        assert longer["updates"] == 4 and "untrained" not in longer


def test_both_models_of_a_task_are_planned_at_their_own_rates():
    """Until a rate is measured, seed 0 tries the grid; then come seeds and budgets."""
    first = tasks.plan([])
    assert len(first) == len(tasks.TASKS) * len(tasks.KINDS) * len(tasks.RATES)
    assert {run["seed"] for run in first} == {0}
    done = [best_at(0.01)(run) for run in first]
    then = [run for run in tasks.plan(done) if run not in first]
    assert {(run["num_epochs"] == 3, run["seed"]) for run in then} == {
        (True, 1),
        (True, 2),
        (False, 0),
    }
    assert {run["lr"] for run in then} == {0.01, 0.005}
