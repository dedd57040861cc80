"""What the scripts in this folder share: train, score, store.

A script lists its runs and names a function that makes one of them. `run_all` makes
those that the stored file doesn't have yet, so a measurement can be interrupted.
"""

import json
import platform
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

from utils.data import Batch, BatchLoader
from utils.decoding import translate_tokens
from utils.metrics import alignment_error_rate, bleu, links_from_weights
from utils.training import Trainer

RESULTS = Path(__file__).resolve().parents[2] / "data" / "results"


def train(model, pairs, vocabs, seed, num_epochs, batch_size, lr):
    """Train with a seeded order of batches; returns the Trainer."""
    loader = BatchLoader(pairs, *vocabs, batch_size, seed)
    trainer = Trainer(model, loader, num_epochs, lr=lr)
    return trainer.fit(progress=sys.stderr.isatty())


def translations(model, pairs, vocabs):
    """Greedy translations of the pairs' sources, as lists of words."""
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    return [result.words for result in results]


def test_bleu(model, pairs, vocabs):
    """BLEU of greedy translations."""
    references = [list(pair.target) for pair in pairs]
    return round(bleu(translations(model, pairs, vocabs), references), 2)


@torch.no_grad()
def test_aer(model, pairs, vocabs):
    """Alignment error rate of the teacher-forced weights against gold."""
    model.eval()
    links = []
    for start in range(0, len(pairs), 128):
        part = pairs[start : start + 128]
        batch = Batch.from_pairs(part, *vocabs)
        model(batch.source, batch.target_in, batch.source_lens)
        for weights, pair in zip(model.decoder.attention_weights, part, strict=True):
            words = weights[: len(pair.target), : len(pair.source)]
            links.append(links_from_weights(words))
    return round(alignment_error_rate(links, [p.alignment for p in pairs]).aer, 3)


def run_all(path, function, runs, settings, workers=2, command="make results"):
    """Make the runs (dicts of plain values) that `path` doesn't hold; store each.

    function(settings=settings, **run) -> a dict of figures. `workers` runs go at a
    time, each in a process of its own with one thread. A stored run counts only if
    the settings it was made with are these. Returns all runs with their figures.
    """
    done = {}
    if path.is_file():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if stored["settings"] == json.loads(json.dumps(settings)):
            done = {_key(r["run"]): r for r in stored["runs"]}
    todo = [run for run in runs if _key(run) not in done]
    if todo:
        with ProcessPoolExecutor(
            workers, initializer=torch.set_num_threads, initargs=(1,)
        ) as pool:
            futures = {
                pool.submit(function, settings=settings, **run): run for run in todo
            }
            for future in as_completed(futures):
                run = futures[future]
                done[_key(run)] = {"run": run, **future.result()}
                print(done[_key(run)], flush=True)
                stored = [done[_key(run)] for run in runs if _key(run) in done]
                _store(path, command, settings, stored)
    return [done[_key(run)] for run in runs]


def _key(run):
    return json.dumps(run, sort_keys=True)


def _store(path, command, settings, runs):
    stored = {
        "command": command,
        "settings": settings,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "threads_a_run": 1,
        "runs": runs,
    }
    path.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
