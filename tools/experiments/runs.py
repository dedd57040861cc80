"""What the experiments share: how a model is trained and scored, how a run is stored.

An experiment is a module of this folder. It has SETTINGS, plain values; `run(settings,
...)`, which returns a dict of figures; and `plan(done)`, a list of dicts with the other
arguments of `run`, which may depend on the entries that are measured so far, as those
of `at_own_rate` do. What a model is built and trained by stands in one dict, `about`:
SETTINGS, what an arm changes, and the arguments of the run.
"""

import json
import os
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from importlib import import_module
from itertools import product

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
SIZES = {"embed_size": 64, "num_hiddens": 128, "bidirectional": True, "batch_size": 64}
OPTIONS = """embed_size num_hiddens enc_hiddens bidirectional num_layers dropout score
feed place reach num_heads num_ffn num_maxout variant""".split()
BUDGETS = {"num_epochs": (4, 12)}  # the short one and the long one


def village(direction):
    """The Village corpus of a direction, as "en-fr", and its two vocabularies."""
    corpus = read(f"Village {direction}")
    return corpus, corpus.vocabs()


def short(corpus, about):
    """The same corpus without pairs whose source has more than max_words."""
    most, splits = about["max_words"], corpus.splits.items()
    kept = {k: [p for p in pairs if len(p.source) <= most] for k, pairs in splits}
    return replace(corpus, splits=kept)


def build(vocabs, about):
    """An untrained model of the kind, sizes and options that about has, by its seed."""
    options = {name: about[name] for name in OPTIONS if name in about}
    torch.manual_seed(about["seed"])
    return build_model(about["kind"], *map(len, vocabs), **options)


def trained(model, corpus, vocabs, about):
    """Train by num_epochs, batch_size and lr of about; what every run stores of it.

    seed: of the order of the batches. Losses are in nats a token. train_loss: the mean
    of the last epoch, dropout and all; valid_loss: at its end.
    """
    loader = BatchLoader(corpus["train"], *vocabs, about["batch_size"], about["seed"])
    loss = batch_loss if any(by_hand.differences(model)) else by_hand.loss
    how = {"lr": about["lr"], "loss_function": loss}
    trainer = Trainer(model, loader, about["num_epochs"], **how).fit(progress=False)
    loader = BatchLoader(corpus["valid"], *vocabs, batch_size=256, shuffle=False)
    return {
        "updates": trainer.step,
        "train_loss": round(trainer.history[-1]["train_loss"], 4),
        "valid_loss": round(evaluate_loss(model, loader), 4),
        "parameters": sum(p.numel() for p in model.parameters()),
    }


def scored(model, corpus, vocabs, about):
    """The figures of `trained`; on the test split BLEU and, with attention, AER."""
    figures = trained(model, corpus, vocabs, about)
    figures["bleu"] = bleu_of(model, corpus["test"], vocabs)
    if about["kind"] != "fixed":
        figures["aer"] = aer_of(model, corpus["test"], vocabs)
    return figures


def measured(about):
    """`scored` of a new model, on the Village's pairs of at most max_words."""
    corpus, vocabs = village(about["direction"])
    return scored(build(vocabs, about), short(corpus, about), vocabs, about)


def translations(model, pairs, vocabs):
    """Greedy translations of the pairs' sources, and their targets: lists of words."""
    results = translate_tokens(model, [pair.source for pair in pairs], *vocabs)
    return [result.words for result in results], [pair.target for pair in pairs]


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


# Plans


def every(**values):
    """The plan of a run for each combination of these values of its arguments."""
    named = [dict(zip(values, row, strict=True)) for row in product(*values.values())]
    return lambda done: named


def each_at_own_rate(rows):
    """The plan of `at_own_rate` for rows of its arguments, (arm, rates, budgets)."""
    rows = list(rows)
    return lambda done: [run for row in rows for run in at_own_rate(done, *row)]


def at_own_rate(done, arm, rates, budgets=BUDGETS, seeds=SEEDS, widen=True):
    """The runs of an arm: the first seed at each rate, all seeds at the best of them.

    done: stored entries. arm: the run's arguments that name the arm; budgets: the one
    that names a budget, and its values, the shortest first. Each budget has its own
    rate, the one with the lowest valid_loss. The shortest tries the rates, a longer one
    the best of the one before, and its half; while the best is the lowest or the
    highest, half or twice of it is tried, too, if the rates may widen.
    """
    runs, ((name, values),) = [], budgets.items()
    for value in values:
        fixed = {**arm, name: value, "seed": seeds[0]}
        rates, best = tried_rates(done, fixed, sorted(rates), widen)
        runs += [{**fixed, "lr": lr} for lr in rates]
        if best is None:
            break
        runs += [{**fixed, "seed": seed, "lr": best} for seed in seeds[1:]]
        rates = best / 2, best
    return runs


def tried_rates(done, fixed, grid, widen=True):
    """The rates to try with these arguments, and the best; None while one is open."""
    losses = {
        entry["run"]["lr"]: entry["valid_loss"]  # None: it diverged
        for entry in done
        if entry["run"] == {**fixed, "lr": entry["run"].get("lr")}
    }
    while losses.keys() >= set(grid):
        best = min(grid, key=lambda lr: (losses[lr] is None, losses[lr]))
        if not widen or grid[0] < best < grid[-1]:
            return grid, best
        grid = [best / 2, *grid] if best == grid[0] else [*grid, best * 2]
    return grid, None


# Measuring


def measure(name, folder=RESULTS):
    """Make the runs of an experiment that its file doesn't hold; store each at once.

    So a measurement can be interrupted. What is stored counts if it was made with the
    settings of now, from what is here now. Each run is a process with one thread.
    """
    experiment = import_module(f"tools.experiments.{name}")
    path, settings = folder / f"{name}.json", experiment.SETTINGS
    entries = stored(path, settings)
    provenance()  # git's answers are kept: what runs is the code of now
    with ProcessPoolExecutor(2, None, torch.set_num_threads, (1,)) as pool:
        # A plan may name its later runs only when the first ones are made.
        while new := missing(experiment.plan(entries), entries):
            going = [pool.submit(attempt, experiment.run, settings, run) for run in new]
            for future in as_completed(going):
                if future.exception():
                    continue
                run = new[going.index(future)]
                entries.append({"run": run, **future.result()})
                print(name, entries[-1], flush=True)
                store(path, settings, entries)
            [future.result() for future in going]  # raises what a run has raised
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
    """The entries of a file that were made with these settings, from what is here.

    Of an experiment's arms, the settings of its own count for each: so an arm may join
    or leave, and a setting leave, that the others don't need.
    """
    if not path.is_file():
        return []
    found = json.loads(path.read_text(encoding="utf-8"))
    then, now = found["settings"], json.loads(json.dumps(settings))
    (were, are), entries = (each.pop("arms", {}) for each in (then, now)), []
    for entry in found["runs"] if now.items() <= then.items() else ():
        entry["provenance"] = found["provenance"][entry["provenance"]]
        arm = entry["run"].get("arm")
        if were.get(arm) == are.get(arm) and is_valid(entry["provenance"]):
            entries.append(entry)
    return entries


def store(path, settings, entries):
    """Write the entries; what several were made from stands there once."""
    made = [entry["provenance"] for entry in entries]
    made = [each for n, each in enumerate(made) if each not in made[:n]]
    content = {
        "command": f"python -m tools.experiments {path.stem}",
        "settings": settings,
        "threads_a_run": 1,
        "provenance": made,
        "runs": [{**e, "provenance": made.index(e["provenance"])} for e in entries],
    }
    part = path.with_suffix(".part")  # so that the old file is whole until then
    part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    part.replace(path)
