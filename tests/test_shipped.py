"""The shipped models and stored results are what their scripts and notes say."""

import importlib.util
import json
from pathlib import Path

import pytest

from utils.data import load_village
from utils.training import load_checkpoint

DATA = Path(__file__).resolve().parent.parent / "data"


def script(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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


def test_the_stored_results_come_from_the_script_as_it_is():
    bottleneck = script(DATA / "results" / "bottleneck.py")
    stored = json.loads(bottleneck.PATH.read_text(encoding="utf-8"))
    assert stored["settings"] == bottleneck.SETTINGS
    assert [tuple(bucket) for bucket in stored["buckets"]] == bottleneck.BUCKETS
    assert {(run["num_hiddens"], run["seed"]) for run in stored["runs"]} == {
        (size, seed) for size in bottleneck.SIZES for seed in bottleneck.SEEDS
    }
    for run in stored["runs"]:
        assert len(run["bleu_by_length"]) == len(bottleneck.BUCKETS)
        assert all(0 <= score <= 100 for score in run["bleu_by_length"])


def test_the_minute_was_measured_by_the_script_as_it_is():
    minute = script(DATA / "results" / "minute.py")
    stored = json.loads(minute.PATH.read_text(encoding="utf-8"))
    assert stored["settings"] == minute.SETTINGS
    assert [
        (run["kind"], run["direction"].removeprefix("en-"), run["num_epochs"])
        for run in stored["runs"]
    ] == minute.RUNS
