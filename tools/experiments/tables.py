"""`python -m tools.experiments.tables`: write data/results/README.md from the results.

So what no notebook quotes any more can still be read.
"""

import json
from importlib import import_module

from tools.experiments.runs import RESULTS
from utils.slides import stored

HEAD = """# What was measured

Written by `python -m tools.experiments.tables` from most files beside it. Each file has
every run, the settings, the commit, the date, the versions and the checksums of what
was read. Here a row is an arm at one budget, at the learning rate with the lowest
validation loss. The lowest and the highest figure of its seeds are given; a list is
given for the first seed, in the order of the experiment's settings. Losses are in nats
a token or piece, BLEU and chrF from 0 to 100, other shares from 0 to 1.
"""
COLUMNS = {
    "bottleneck": "train_loss valid_loss bleu bleu_by_length",
    "directions": "train_loss valid_loss bleu bleu_by_length aer",
    "own_pieces": "loss bleu aer",
    "shortcut": "train_loss untrained.linked trained.linked",
    "long_sentences": "train_loss valid_loss bleu length skips known",
    "choices": "train_loss valid_loss bleu aer erased_gold attended_gold",
    "parts": "train_loss valid_loss bleu aer",
    "tasks": "train_loss valid_loss splits.test.exact splits.new.exact "
    "splits.known.exact splits.exchanged.unknown",
    "real_text": "train_loss valid_loss beam.bleu_lower beam.chrf beam.length "
    "test.bleu test.bleu_lower",
    "own_text": "valid_loss beam.bleu beam.bleu_lower beam.chrf",
    "gold": "diagonal.aer attention.aer attention.precision attention.recall",
}


def at_the_best_rate(entries):
    """The seeds of each arm and budget, (its arguments, entries), at its own rate."""
    arms = {}
    for entry in entries:
        run = {k: v for k, v in entry["run"].items() if k not in ("seed", "lr")}
        arms.setdefault(json.dumps(run), []).append(entry)
    for run, group in arms.items():
        best = min(group, key=lambda e: e.get("valid_loss") or float("inf"))
        own = best["run"].get("lr", "")
        yield json.loads(run), [e for e in group if e["run"].get("lr", "") == own]


def cell(entries, path):
    """The lowest and the highest figure of several seeds, or a list of the first one.

    path: where an entry has it, such as beam.bleu; empty if none has.
    """
    for name in path.split("."):
        entries = [e[name] for e in entries if e.get(name) is not None]
    if not entries:
        return ""
    if isinstance(entries[0], list):
        return ", ".join(map(str, entries[0]))
    return "–".join(dict.fromkeys(map(str, (min(entries), max(entries)))))


def table(entries, columns):
    """Lines of a Markdown table of these entries, {"run": arguments, ...figures}."""
    groups = list(at_the_best_rate(entries))
    names = list(dict.fromkeys(name for run, _ in groups for name in run))
    rows = [[*names, "lr", "seeds", *columns]]
    rows.append(["---"] * len(rows[0]))
    for run, group in groups:
        about = [run.get(name, "") for name in names]
        figures = [cell(group, path) for path in columns]
        rate = group[0]["run"].get("lr", "")
        rows.append([*about, rate, len(group), *figures])
    return ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def page():
    """The text of data/results/README.md."""
    lines = [HEAD]
    for name, columns in COLUMNS.items():
        experiment = import_module(f"tools.experiments.{name}")
        lines += [f"## {name}", "", experiment.__doc__.strip(), ""]
        lines += [*table(stored(name)["runs"], columns.split()), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    (RESULTS / "README.md").write_text(page(), encoding="utf-8")
