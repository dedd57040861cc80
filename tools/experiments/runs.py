"""What the experiments share: how a model is trained and scored, how a run is stored.

An experiment is a module of this folder. It has SETTINGS, plain values; `run(settings,
...)`, which returns a dict of figures; and `plan(done)`, a list of dicts with the other
arguments of `run`, which may depend on the entries that are measured so far, as those
of `at_own_rate` do.
"""

import json
import math
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from importlib import import_module

import torch

from tools.experiments.provenance import DATA, READ, is_valid, provenance, read
from utils import by_hand
from utils.alignment import forced_weights, word_weights
from utils.data import BatchLoader
from utils.decoding import translate_tokens
from utils.gold import gold_links
from utils.metrics import alignment_error_rate, bleu, links_from_weights
from utils.models import build_model
from utils.training import Trainer, batch_loss, evaluate_loss

RESULTS = DATA / "results"
SEEDS = 0, 1, 2
OPTIONS = """embed_size num_hiddens enc_hiddens bidirectional num_layers dropout score
feed place reach num_heads num_ffn num_maxout variant""".split()
BUDGETS = {"num_epochs": 4}, {"num_epochs": 12}  # the short one and the long one


def village(direction):
    """The Village corpus of a direction, as "en-fr", and its two vocabularies."""
    corpus = read(f"Village {direction}")
    return corpus, corpus.vocabs()


def short_sentences(about):
    """The vocabularies of a direction; pairs up to max_words of train, valid, test."""
    corpus, vocabs = village(about["direction"])
    short = [
        [pair for pair in corpus[split] if len(pair.source) <= about["max_words"]]
        for split in ("train", "valid", "test")
    ]
    return vocabs, *short


def build(kind, vocabs, seed, about):
    """An untrained model of this kind, of the sizes and options that about has."""
    options = {name: about[name] for name in OPTIONS if name in about}
    torch.manual_seed(seed)
    return build_model(kind, *map(len, vocabs), **options)


def loss(model, batch):
    """by_hand.loss where it computes the model: the same numbers in less time."""
    try:
        return by_hand.loss(model, batch)
    except ValueError:
        return batch_loss(model, batch)


def trained(model, pairs, valid, vocabs, seed, plan):
    """Train by the plan's num_epochs, batch_size and lr; what every run stores of it.

    seed: of the order of the batches. Losses are in nats a token. train_loss: the mean
    of the last epoch, dropout and all; valid_loss: at its end. cpu_seconds: of the
    training, one thread.
    """
    start, epochs, lr = time.process_time(), plan["num_epochs"], plan["lr"]
    loader = BatchLoader(pairs, *vocabs, plan["batch_size"], seed)
    trainer = Trainer(model, loader, epochs, lr=lr, loss_function=loss)
    trainer.fit(progress=sys.stderr.isatty())
    seconds = time.process_time() - start
    loader = BatchLoader(valid, *vocabs, batch_size=256, shuffle=False)
    return {
        "updates": trainer.step,
        "train_loss": round(trainer.history[-1]["train_loss"], 4),
        "valid_loss": round(evaluate_loss(model, loader), 4),
        "cpu_seconds": round(seconds),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def translations(model, pairs, vocabs):
    """Greedy translations of the pairs' sources, and their targets: lists of words."""
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    return [result.words for result in results], [list(pair.target) for pair in pairs]


def bleu_of(model, pairs, vocabs):
    """BLEU of greedy translations."""
    return round(bleu(*translations(model, pairs, vocabs)), 2)


def aer_of(model, pairs, vocabs):
    """Alignment error rate of the teacher-forced weights between words against gold."""
    links = attention_links(model, pairs, vocabs)
    return round(alignment_error_rate(links, *gold_links(pairs)).aer, 3)


def attention_links(model, pairs, vocabs):
    """For each pair, every target word's most attended source word."""
    weights = zip(forced_weights(model, pairs, vocabs), pairs, strict=True)
    return [links_from_weights(word_weights(w, pair, vocabs)) for w, pair in weights]


def share(found, digits=3):
    """How many of these are true, from 0 to 1; 0 if there are none."""
    return round(sum(found) / max(len(found), 1), digits)


# A plan


def at_own_rate(done, arm, rates, budgets=BUDGETS, seeds=SEEDS, widen=True):
    """The runs of an arm: the first seed at each rate, all seeds at the best of them.

    done: stored entries. arm: the run's arguments that name the arm; budgets: a list of
    those that name a budget, the shortest first. Each budget has its own rate, the one
    with the lowest valid_loss. The shortest tries the rates, a longer one the best of
    the one before, and its half; while the best is the lowest or the highest, half or
    twice of it is tried, too, if the rates may widen.
    """
    runs = []
    for budget in budgets:
        fixed = {**arm, **budget, "seed": seeds[0]}
        rates, best = tried_rates(done, fixed, sorted(rates), widen)
        runs += [{**fixed, "lr": lr} for lr in rates]
        if best is None:
            break
        runs += [{**arm, **budget, "seed": seed, "lr": best} for seed in seeds[1:]]
        rates = best / 2, best
    return runs


def tried_rates(done, fixed, grid, widen=True):
    """The rates to try with these arguments, and the best; None while one is open."""
    losses = {
        entry["run"]["lr"]: entry["valid_loss"]
        for entry in done
        if entry["run"] == {**fixed, "lr": entry["run"].get("lr")}
    }
    losses = {lr: math.inf if x is None else x for lr, x in losses.items()}
    while losses.keys() >= set(grid):
        best = min(grid, key=losses.get)
        if not widen or grid[0] < best < grid[-1]:
            return grid, best
        grid = [best / 2, *grid] if best == grid[0] else [*grid, best * 2]
    return grid, None


# Measuring


def measure(name, folder=RESULTS):
    """Make the runs of an experiment that its file doesn't hold; store each at once.

    So a measurement can be interrupted. What is stored counts if it was made with the
    settings of now, from what is here now. Each run is in a process of its own, with
    one thread.
    """
    experiment = import_module(f"tools.experiments.{name}")
    path, settings = folder / f"{name}.json", experiment.SETTINGS
    entries = stored(path, settings)
    with ProcessPoolExecutor(2, None, torch.set_num_threads, (1,)) as pool:
        # A plan may name its later runs only when the first ones are made.
        while new := missing(experiment.plan(entries), entries):
            made = partial(pool.submit, attempt, experiment.run, settings)
            going = {made(run): run for run in new}
            for future in as_completed(going):
                entries.append({"run": going[future], **future.result()})
                print(name, entries[-1], flush=True)
                store(path, settings, entries)
    plan = experiment.plan(entries)  # what it doesn't name any more goes
    entries = [entry for run in plan for entry in entries if entry["run"] == run]
    store(path, settings, entries)


def missing(plan, entries):
    """The runs of a plan that no entry is of."""
    made = [entry["run"] for entry in entries]
    return [run for run in plan if run not in made]


def attempt(run, settings, arguments):
    """The run's figures, without a valid_loss if its training diverged; what it took.

    seconds: of processors, in all of its processes.
    """
    READ.clear()
    start = sum(os.times()[:4])
    try:
        figures = run(settings, **arguments)
    except FloatingPointError as error:
        figures = {"valid_loss": None, "diverged": str(error)}
    seconds = round(sum(os.times()[:4]) - start)
    return {**figures, "seconds": seconds, "provenance": provenance()}


def stored(path, settings):
    """The entries of a file that were made with these settings, from what is here."""
    if not path.is_file():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    then, now = found["settings"], json.loads(json.dumps(settings))
    made = found["provenance"]
    entries = [{**e, "provenance": made[e["provenance"]]} for e in found["runs"]]
    return [
        entry
        for entry in entries
        if is_valid(entry["provenance"]) and same_settings(then, now, entry["run"])
    ]


def same_settings(then, now, run):
    """Whether those of now were those of a run; of its experiment's arms, its own.

    So an arm may join or leave, and a setting leave, that the others don't need.
    """
    arms = [settings.get("arms", {}).get(run.get("arm")) for settings in (then, now)]
    rest = {name: value for name, value in now.items() if name != "arms"}
    return arms[0] == arms[1] and rest.items() <= then.items()


def store(path, settings, entries):
    """Write the entries; what several were made from stands there once."""
    made = []
    for entry in entries:
        if entry["provenance"] not in made:
            made.append(entry["provenance"])
    content = {
        "command": f"python -m tools.experiments {path.stem}",
        "settings": settings,
        "threads_a_run": 1,
        "provenance": made,
        "runs": [{**e, "provenance": made.index(e["provenance"])} for e in entries],
    }
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
