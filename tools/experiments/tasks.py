"""Questions, headlines and dates: attention and fixed context, each at its own rate.

The two models of a task have the same encoder, sizes, pairs and updates, at a short
budget and at one after which the training loss has flattened. Notebook 12 reads what
is stored.
"""

from tools.experiments.provenance import read
from tools.experiments.runs import at_own_rate, build, trained, translations
from utils import tasks
from utils.alignment import forced_weights, gold_hits
from utils.metrics import exact_match

SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "stories": {"budgets": [3, 12], "sizes": tasks.STORY_SIZES},
    "headlines": {"budgets": [3, 9], "sizes": tasks.HEADLINE_SIZES},
    "dates": {"budgets": [3, 9], "sizes": tasks.DATE_SIZES},
}
RATES = 0.005, 0.01, 0.02


def plan(done):
    """Both models of each task at their own rates, at the task's two budgets."""
    named = []
    for task in ("headlines", "stories", "dates"):
        budgets = [{"num_epochs": n} for n in SETTINGS[task]["budgets"]]
        for kind in ("attention", "fixed"):
            arm = {"task": task, "kind": kind}
            named += at_own_rate(done, arm, RATES, budgets)
    return named


def attention(model, pairs, vocabs):
    """Where the weights fall while the decoder reads the true target."""
    weights = forced_weights(model, pairs, vocabs)
    return {"hits": round(gold_hits(weights, pairs), 4)}


def groups(task, pairs):
    """The pairs as a whole and in the task's groups: kinds, lengths, forms."""
    found = {"all": pairs}
    for pair in pairs:
        for tag in sorted(pair.tags):
            found.setdefault(tag, []).append(pair)
        if task != "dates":
            count = pair.source.count(".")
            found.setdefault(f"{count} sentences", []).append(pair)
    return found


def score(model, pairs, vocabs):
    """Exact match, and attention on gold if there is attention."""
    sides = translations(model, pairs, vocabs)
    figures = {"count": len(pairs), "exact": round(exact_match(*sides), 4)}
    if model.config["kind"] == "attention":
        figures["attention"] = attention(model, pairs, vocabs)
    return figures


def run(settings, task, kind, seed, num_epochs, lr):
    """Train one model; its figures on every split but train, and for each group.

    untrained: where the weights fall before training; of the first budget alone.
    """
    data = read(task)
    vocabs = data.vocabs()
    model = build(kind, vocabs, seed, settings)
    figures = {}
    if kind == "attention" and num_epochs == settings[task]["budgets"][0]:
        figures["untrained"] = attention(model, data["test"], vocabs)
    about = {**settings, "num_epochs": num_epochs, "lr": lr}
    figures |= trained(model, data["train"], data["valid"], vocabs, seed, about)
    figures["splits"] = {
        split: {
            name: score(model, pairs, vocabs)
            for name, pairs in groups(task, data[split]).items()
        }
        for split in data.splits
        if split != "train"
    }
    return figures
