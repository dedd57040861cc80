"""The shipped models and stored results are what their scripts and notes say."""

import importlib.util
import json
from pathlib import Path

import pytest
import torch
from helpers import needs

from utils.checkpoint import load_checkpoint
from utils.corpora import load_multi30k, load_village
from utils.data import Pair
from utils.decoding import translate, translate_tokens
from utils.models import build_model

DATA = Path(__file__).resolve().parents[2] / "data"


def script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def results(monkeypatch):
    """A function: the name of a script in data/results -> the script, as a module."""
    monkeypatch.syspath_prepend(DATA / "results")
    return lambda name: script(DATA / "results" / f"{name}.py")


def stored_by(module):
    """What a script has stored, with the settings that stand in it now."""
    stored = json.loads(module.PATH.read_text(encoding="utf-8"))
    assert stored["settings"] == json.loads(json.dumps(module.SETTINGS))
    return stored


def stored_runs(module):
    """The same, where the runs are those that stand in it now."""
    stored = stored_by(module)
    assert [run["run"] for run in stored["runs"]] == module.RUNS
    return stored


@pytest.mark.parametrize("target", ["fr", "zh"])
def test_a_shipped_model_scores_what_it_says(target):
    train = script(DATA / "models" / "train.py")
    saved = load_checkpoint(DATA / "models" / f"village-en-{target}.safetensors")
    assert saved.notes["settings"] == train.SETTINGS
    assert saved.notes["corpus"] == f"Village en-{target}"
    corpus = load_village("en", target)
    assert [saved.src_vocab.idx_to_token, saved.tgt_vocab.idx_to_token] == [
        vocab.idx_to_token for vocab in corpus.vocabs()
    ]  # made from the corpus as it is now
    scores = train.score(saved.model, corpus["test"], saved.src_vocab, saved.tgt_vocab)
    assert scores["test_bleu"] == pytest.approx(saved.notes["test_bleu"], abs=0.3)
    assert scores["test_aer"] == pytest.approx(saved.notes["test_aer"], abs=0.005)
    assert saved.training is None  # small: no state of an optimiser


def test_the_stored_results_come_from_the_script_as_it_is(results):
    bottleneck = results("bottleneck")
    stored = stored_by(bottleneck)
    assert [tuple(bucket) for bucket in stored["buckets"]] == bottleneck.BUCKETS
    assert {(run["num_hiddens"], run["seed"]) for run in stored["runs"]} == {
        (size, seed) for size in bottleneck.SIZES for seed in bottleneck.SEEDS
    }
    for run in stored["runs"]:
        assert len(run["bleu_by_length"]) == len(bottleneck.BUCKETS)
        assert all(0 <= score <= 100 for score in run["bleu_by_length"])


def test_the_minute_was_measured_by_the_script_as_it_is(results):
    minute = results("minute")
    stored = stored_by(minute)
    assert [
        (run["kind"], run["direction"].removeprefix("en-"), run["num_epochs"])
        for run in stored["runs"]
    ] == minute.RUNS


def test_the_choices_were_measured_by_the_script_as_it_is(results):
    choices = results("choices")
    stored = stored_runs(choices)
    for run in stored["runs"][: len(choices.ARMS)]:  # one seed
        arm = run["run"]["arm"]
        changed = choices.ARMS[arm].get("changed", {})
        direction = changed.get("direction", choices.SETTINGS["direction"])
        vocabs = load_village(*direction.split("-")).vocabs()
        model = choices.build(arm, vocabs)
        assert run["parameters"] == sum(p.numel() for p in model.parameters())


def test_erasing_finds_the_word_that_a_model_uses(results):
    """A model that reads one source position alone: only erasing that one hurts."""
    choices = results("choices")
    corpus = load_village("en", "fr")
    pair = next(p for p in corpus["test"] if len(p.source) == 8)
    model = choices.build("additive", corpus.vocabs()).eval()
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
    drops, weights = choices.erasure(pair, model, corpus.vocabs())
    assert drops.shape == weights.shape == (len(pair.target), len(pair.source))
    assert (weights.argmax(-1) == 2).all()
    others = [j for j in range(len(pair.source)) if j != 2]
    assert drops[:, 2].abs().min() > 1e-6 and drops[:, others].abs().max() < 1e-6


def test_what_hurts_most_is_compared_with_gold(results):
    choices = results("choices")
    links = frozenset({(0, 0), (2, 1), (1, 1)})
    pair = Pair(tuple("abc"), tuple("uvw"), links)  # w has no link
    values = torch.tensor([[9.0, 1.0, 2.0], [9.0, 1.0, 2.0], [9.0, 1.0, 2.0]])
    assert choices.tops_in_gold(values, pair) == [True, False]
    assert choices.tops_in_gold(values.flip(1), pair) == [False, True]


def test_a_model_without_attention_is_asked_by_erasing_alone(results):
    choices = results("choices")
    corpus = load_village("en", "fr")
    vocabs, pairs = corpus.vocabs(), corpus["test"][:3]
    fixed = choices.build("fixed context", vocabs)
    found = choices.agreement(fixed, pairs, vocabs)
    assert list(found) == ["erased_gold"]
    whole = choices.agreement(choices.build("additive", vocabs), pairs, vocabs)
    assert set(found) < set(whole) and len(whole) == 4


def test_rank_correlation_knows_the_extremes(results):
    choices = results("choices")
    rows = torch.tensor([[1.0, 2.0, 9.0], [9.0, 2.0, 1.0], [2.0, 1.0, 9.0]])
    same = choices.rank_correlation(rows[:1].expand(3, -1), rows)
    assert same.tolist() == [1.0, -1.0, 0.5]


def test_the_speed_of_scores_was_measured_by_the_script_as_it_is(results):
    speed = results("score_speed")
    stored = stored_by(speed)
    settings = stored["settings"]
    assert [(row["S"], row["H"]) for row in stored["steps"]] == speed.GRID
    assert [[row["S"], row["H"]] for row in stored["parts"]] == settings["parts"]
    assert set(stored["decoders"]["microseconds"]) == set(settings["decoders"])
    lengths = [(row["S"], row["T"]) for row in stored["decoding"]]
    source, target = (settings["decoding"][side] for side in ("source", "target"))
    assert lengths == [(S, T) for S in source for T in target]
    measured = stored["steps"] + stored["parts"] + stored["decoding"]
    for row in [*measured, stored["decoders"]]:
        for median, fastest, slowest in row["microseconds"].values():
            assert 0 < fastest <= median <= slowest


def test_the_parts_of_rnnsearch_were_measured_by_the_script_as_it_is(results):
    parts = results("rnnsearch")
    stored = stored_runs(parts)
    vocabs = load_village("en", "fr").vocabs()
    tries = [
        (beam_size, penalty)
        for penalty in parts.SETTINGS["length_penalties"]
        for beam_size in parts.SETTINGS["beam_sizes"]
    ]
    for run in stored["runs"]:
        if run["run"]["seed"] == 0:
            model = parts.build(run["run"]["arm"], vocabs)
            assert run["parameters"] == sum(p.numel() for p in model.parameters())
        rows = run.get("beams", [])
        assert [(r["beam_size"], r["length_penalty"]) for r in rows] == (
            tries if run["run"]["arm"] in (parts.WHOLE, parts.BRIEF) else []
        )
        for row in rows:
            shares = row["same_words"] + row["above"] + row["below"]
            assert shares == pytest.approx(1, abs=0.002)
            if row["beam_size"] == 1:  # greedy; a batch of other sentences, another cap
                assert row["same_words"] == 1
                assert row["bleu"] == pytest.approx(run["bleu"], abs=0.1)


def test_long_sentences_were_measured_by_the_script_as_it_is(results):
    long = results("long_sentences")
    stored = stored_runs(long)
    for run in stored["runs"]:
        steps = 740 * long.ARMS[run["run"]["arm"]].get("times", 1)
        assert run["steps"] == steps  # the same in all arms but one
        assert all(len(run[f]) == len(long.BUCKETS) for f in ("bleu", "ended", "aer"))
        if long.ARMS[run["run"]["arm"]]["kind"] == "attention":
            assert len(run["skips"]) == len(run["joined"]) == len(long.BUCKETS)
            assert all(
                len(v) == 10 for v in [*run["right"].values(), *run["on_gold"].values()]
            )
            assert all(0 <= mean <= 1 for mean in run["means"].values())


def test_only_plain_statements_are_joined(results):
    """Each rule has a sentence that breaks it alone."""
    long = results("long_sentences")
    sentences = ["a b , c .", "a b c d .", "a b but c .", "a b c d ?", "a b ."]
    pairs = [Pair(tuple(s.split()), ("u", "."), None) for s in sentences]
    kept = long.joinable(pairs, least=4, commas=0)
    assert [" ".join(pair.source) for pair in kept] == ["a b c d ."]
    assert len(long.joinable(pairs, least=4, commas=1)) == 2
    assert len(long.joinable(pairs, least=3, commas=0)) == 2


def test_a_model_seen_through_a_wide_window_is_the_same(results):
    long = results("long_sentences")
    corpus = load_village("en", "fr")
    torch.manual_seed(0)
    vocabs = corpus.vocabs()
    model = build_model("attention", *map(len, vocabs), 8, 8, bidirectional=True)
    part = corpus["long"][:4]
    plain, wide, narrow = (
        translate_tokens(m, [list(p.source) for p in part], *vocabs, max_steps=9)
        for m in (model, long.with_window(model, 99), long.with_window(model, 1))
    )
    assert [r.tokens for r in wide] == [r.tokens for r in plain]
    for a, b, c in zip(plain, wide, narrow, strict=True):
        torch.testing.assert_close(a.attention_weights, b.attention_weights)
        assert (c.attention_weights > 0).sum(1).max() <= 3


def test_training_pairs_are_cut_by_length_and_number(results):
    long = results("long_sentences")
    train = load_village("en", "fr")["train"]
    for name, count in long.SETTINGS["pairs"].items():
        pairs = long.pairs_up_to(train, int(name), count)
        assert len(pairs) == count
        assert max(len(pair.source) for pair in pairs) == int(name)
    with pytest.raises(ValueError, match="only 3 pairs have at most 30"):
        long.pairs_up_to(train[:3], 30, 4)


def test_a_reversed_source_keeps_its_target(results):
    long = results("long_sentences")
    pair = load_village("en", "fr")["train"][0]
    (turned,) = long.reverse_sources([pair])
    assert turned.source == tuple(reversed(pair.source)) != pair.source
    assert turned.target == pair.target and turned.alignment is None


@pytest.mark.parametrize(
    ("sentence", "share"),
    [("a b c d e", 0), ("a b c d a b c d", 1 / 5), ("a a a a a a", 2 / 3), ("a b", 0)],
)
def test_repeats_counts_what_stood_before(results, sentence, share):
    long = results("long_sentences")
    assert long.repeats([sentence.split()]) == pytest.approx(share)


def test_real_translation_was_measured_by_the_script_as_it_is(results):
    multi30k = results("multi30k")
    stored = stored_runs(multi30k)
    for run in stored["runs"]:
        assert len(run["history"]) == run["run"]["changes"].get(
            "num_epochs", stored["settings"]["num_epochs"]
        )
        losses = [epoch["valid_loss"] for epoch in run["history"]]
        assert losses[run["best_epoch"] - 1] == min(losses)  # chosen on validation
        tested = run["run"]["what"].startswith(("full", "Tatoeba"))
        assert ("test" in run) == tested  # the others were judged on validation


def test_the_shipped_translator_is_the_one_that_was_measured(results):
    multi30k = results("multi30k")
    stored = json.loads(multi30k.PATH.read_text(encoding="utf-8"))["runs"][0]
    saved = load_checkpoint(multi30k.MODEL)
    assert saved.notes["test"] == stored["test"]
    assert stored["run"]["changes"] == {"seed": saved.notes["settings"]["seed"]}
    assert stored["parameters"] == sum(p.numel() for p in saved.model.parameters())
    assert stored["vocabularies"] == [len(saved.src_vocab), len(saved.tgt_vocab)]
    examples = stored["test"]["more"]["examples"]
    found = [
        translate(
            saved.model,
            example["source"],
            saved.src_vocab,
            saved.tgt_vocab,
            **multi30k.BEAM,
        ).words
        for example in examples
    ]
    assert found == [example["translation"].split() for example in examples]


@needs("multi30k")
def test_the_shipped_translator_scores_what_it_says(results):
    """Stored in half precision, it is as good as the model that was trained."""
    multi30k = results("multi30k")
    saved = load_checkpoint(multi30k.MODEL)
    scores = multi30k.scores(
        saved.model,
        (saved.src_vocab, saved.tgt_vocab),
        load_multi30k("de", "en"),
        "test",
        multi30k.SETTINGS,
    )
    for name in ("greedy", "beam", "greedy_tokens"):
        assert scores[name] == pytest.approx(saved.notes["test"][name], abs=0.3)
