"""What the experiments share: how a model is trained and scored, how a run is stored.

An experiment is a module of this folder. It has SETTINGS, plain values; `run(settings,
...)`, which returns a dict of figures; and RUNS, a list of dicts with the other
arguments of `run`. Without RUNS it is measured in one go. NOTES: what else is stored
beside the settings. WORKERS: how many runs go at a time, 2 if it isn't there.
"""

import json
import platform
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from importlib import import_module
from pathlib import Path

import torch

from utils import by_hand
from utils.alignment import forced_weights, word_weights
from utils.corpora import load_village
from utils.data import BatchLoader
from utils.decoding import translate_tokens
from utils.gold import gold_links
from utils.metrics import (
    alignment_error_rate,
    bleu,
    links_from_weights,
    quality_by_length,
)
from utils.models import build_model
from utils.training import Trainer, batch_loss

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"


@cache
def village(direction):
    """The Village corpus of a direction, as "en-fr", and its two vocabularies."""
    corpus = load_village(*direction.split("-"))
    return corpus, corpus.vocabs()


def up_to(pairs, max_words):
    """Those with at most so many source words."""
    return [pair for pair in pairs if len(pair.source) <= max_words]


def build(kind, vocabs, seed, settings, **options):
    """An untrained model of the sizes in settings; options: of its kind."""
    names = ("embed_size", "num_hiddens", "bidirectional", "num_layers", "dropout")
    sizes = {name: settings[name] for name in names if name in settings}
    torch.manual_seed(seed)
    return build_model(kind, *map(len, vocabs), **sizes, **options)


def loss_of(model):
    """by_hand.loss where it computes the model: the same numbers in less time."""
    try:
        by_hand.require_known(model)
    except ValueError:
        return batch_loss
    return by_hand.loss


def train(model, pairs, vocabs, seed, plan):
    """Train by the plan's num_epochs, batch_size and lr; returns the Trainer.

    seed: of the order of the batches.
    """
    loader = BatchLoader(pairs, *vocabs, plan["batch_size"], seed)
    trainer = Trainer(
        model,
        loader,
        plan["num_epochs"],
        lr=plan["lr"],
        loss_function=loss_of(model),
    )
    return trainer.fit(progress=sys.stderr.isatty())


def translations(model, pairs, vocabs):
    """Greedy translations of the pairs' sources, and their targets: lists of words."""
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    return [result.words for result in results], [list(pair.target) for pair in pairs]


def bleu_of(model, pairs, vocabs):
    """BLEU of greedy translations."""
    return round(bleu(*translations(model, pairs, vocabs)), 2)


def bleu_by_length(model, pairs, vocabs, buckets):
    """The same over all pairs; and by bucket of source lengths, {label: BLEU}."""
    sides = translations(model, pairs, vocabs)
    scores = quality_by_length([len(p.source) for p in pairs], *sides, buckets)
    return round(bleu(*sides), 2), {row.label: round(row.score, 2) for row in scores}


def aer_of(model, pairs, vocabs):
    """Alignment error rate of the teacher-forced weights between words against gold."""
    links = attention_links(model, pairs, vocabs)
    return round(alignment_error_rate(links, *gold_links(pairs)).aer, 3)


def attention_links(model, pairs, vocabs):
    """For each pair, every target word's most attended source word."""
    weights = zip(forced_weights(model, pairs, vocabs), pairs, strict=True)
    return [links_from_weights(word_weights(w, pair, vocabs)) for w, pair in weights]


def measure(name, folder=RESULTS):
    """Make the runs of an experiment that its file doesn't hold; store each at once.

    So a measurement can be interrupted. What is stored counts only if it was made with
    the settings and notes of now. Each run is in a process of its own, with one thread.
    """
    experiment = import_module(f"tools.experiments.{name}")
    path = folder / f"{name}.json"
    about = {"settings": experiment.SETTINGS, **getattr(experiment, "NOTES", {})}
    stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    if not json.loads(json.dumps(about)).items() <= stored.items():
        stored = {}
    if not hasattr(experiment, "RUNS"):
        if not stored:
            store(path, about, experiment.run(experiment.SETTINGS))
        return
    done = {
        number: entry
        for number, run in enumerate(experiment.RUNS)
        for entry in stored.get("runs", [])
        if is_of(entry, run)
    }
    with ProcessPoolExecutor(
        getattr(experiment, "WORKERS", 2),
        initializer=torch.set_num_threads,
        initargs=(1,),
    ) as pool:
        futures = {
            pool.submit(experiment.run, experiment.SETTINGS, **run): number
            for number, run in enumerate(experiment.RUNS)
            if number not in done
        }
        for future in as_completed(futures):
            number = futures[future]
            done[number] = {"run": experiment.RUNS[number], **future.result()}
            print(name, done[number], flush=True)
            store(path, about, {"runs": [done[number] for number in sorted(done)]})


def is_of(entry, run):
    """Whether a stored entry is of this run.

    In files of the first edition a run's arguments can stand among its figures.
    """
    return entry["run"] == run if "run" in entry else run.items() <= entry.items()


def store(path, about, figures):
    stored = {
        "command": f"python -m tools.experiments {path.stem}",
        **about,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "threads_a_run": 1,
        **figures,
    }
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
