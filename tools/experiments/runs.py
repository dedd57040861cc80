"""What the experiments share: how a model is trained and scored, how a run is stored.

An experiment is a module of this folder. It has SETTINGS, plain values; `run(settings,
...)`, which returns a dict of figures; and RUNS, a list of dicts with the other
arguments of `run`, or `plan(done)`, which names them by what is measured so far, as
`at_own_rate` does. With neither it is measured in one go. NOTES: what else is stored
beside the settings. WORKERS: how many runs go at a time, 2 if it isn't there.
"""

import json
import math
import platform
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from functools import cache, partial
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
from utils.training import Trainer, batch_loss, evaluate_loss

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


def train(model, pairs, vocabs, seed, plan, checkpoint=None):
    """Train by the plan's num_epochs, batch_size and lr; returns the Trainer.

    label_smoothing: 0 where the plan has none. seed: of the order of the batches.
    checkpoint: called after each epoch.
    """
    loader = BatchLoader(pairs, *vocabs, plan["batch_size"], seed)
    trainer = Trainer(
        model,
        loader,
        plan["num_epochs"],
        lr=plan["lr"],
        loss_function=partial(
            loss_of(model), label_smoothing=plan.get("label_smoothing", 0.0)
        ),
    )
    return trainer.fit(checkpoint=checkpoint, progress=sys.stderr.isatty())


def trained(model, pairs, valid, vocabs, seed, plan):
    """`train`, and what every run stores of it; losses in nats a token.

    train_loss: the mean of the last epoch, dropout and all; valid_loss: at its end.
    cpu_seconds: of the updates, one thread.
    """
    start = time.process_time()
    trainer = train(model, pairs, vocabs, seed, plan)
    seconds = time.process_time() - start
    loader = BatchLoader(valid, *vocabs, batch_size=256, shuffle=False)
    return {
        "updates": trainer.step,
        "train_loss": round(trainer.history[-1]["train_loss"], 4),
        "valid_loss": round(evaluate_loss(model, loader), 4),
        "cpu_seconds": round(seconds),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def at_own_rate(done, arm, rates, budgets, seeds):
    """The runs of an arm: the first seed at each rate, all seeds at the best of them.

    done: stored entries. arm: the run's arguments that name the arm; budgets: a list of
    those that name a budget, the shortest first. Each budget has its own rate, the one
    with the lowest valid_loss. The shortest tries the rates, and half or twice of the
    best while that is the lowest or the highest; a longer one starts from the best of
    the one before, and halves it while the loss falls.
    """
    runs, rate = [], None
    for budget in budgets:
        fixed = {**arm, **budget, "seed": seeds[0]}
        grid = sorted(rates if rate is None else {rate, rate / 2})
        tried, best = tried_rates(done, fixed, grid, upwards=rate is None)
        runs += [{**fixed, "lr": lr} for lr in tried]
        if best is None:
            break
        runs += [{**arm, **budget, "seed": seed, "lr": best} for seed in seeds[1:]]
        rate = best
    return runs


def tried_rates(done, fixed, grid, upwards):
    """The rates to try with these arguments, and the best; None while one is open."""
    losses = {
        entry["run"]["lr"]: entry["valid_loss"]
        for entry in done
        if entry["run"] == {**fixed, "lr": entry["run"].get("lr")}
    }
    losses = {lr: math.inf if x is None else x for lr, x in losses.items()}
    grid = list(grid)
    while losses.keys() >= set(grid):
        best = min(grid, key=losses.get)
        if best == grid[0]:
            grid.insert(0, best / 2)
        elif best == grid[-1] and upwards:
            grid.append(best * 2)
        else:
            return grid, best
    return grid, None


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
    if not {"RUNS", "plan"} & vars(experiment).keys():
        if not stored:
            store(path, about, experiment.run(experiment.SETTINGS))
        return
    plan = getattr(experiment, "plan", lambda done: experiment.RUNS)
    entries, going = stored.get("runs", []), {}
    with ProcessPoolExecutor(
        getattr(experiment, "WORKERS", 2),
        initializer=torch.set_num_threads,
        initargs=(1,),
    ) as pool:
        while True:
            named = plan(entries)
            for run in named:
                found = any(is_of(entry, run) for entry in entries)
                if not found and run not in going.values():
                    arguments = experiment.run, experiment.SETTINGS, run
                    going[pool.submit(attempt, *arguments)] = run
            if not going:
                break
            for future in wait(going, return_when=FIRST_COMPLETED).done:
                entry = {"run": going.pop(future), **future.result()}
                print(name, entry, flush=True)
                entries.append(entry)
                # A plan may name its later runs only when the first ones are made.
                others = [e for e in entries if not any(is_of(e, r) for r in named)]
                store(path, about, {"runs": in_order(entries, named) + others})
    if len(kept := in_order(entries, named)) < len(entries):
        store(path, about, {"runs": kept})


def in_order(entries, named):
    return [entry for run in named for entry in entries if is_of(entry, run)]


def attempt(run, settings, arguments):
    """The run's figures; without a valid_loss if its training diverged."""
    try:
        return run(settings, **arguments)
    except FloatingPointError as error:
        return {"valid_loss": None, "diverged": str(error)}


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
