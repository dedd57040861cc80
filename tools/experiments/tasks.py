"""Questions and headlines: attention and fixed context, each at its own rate.

The two models of a task have the same encoder, sizes, pairs and updates, at a short
budget and at one after which the training loss has flattened. Notebook 12 reads what
is stored. (Its dates are measured by `copying`.)
"""

from tools.experiments.provenance import read
from tools.experiments.runs import at_own_rate, build, trained, translations
from utils import tasks
from utils.alignment import forced_weights, gold_hits, whole_sentences
from utils.metrics import exact_match

SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "stories": {"budgets": [3, 12], "sizes": tasks.STORY_SIZES},
    "headlines": {"budgets": [3, 9], "sizes": tasks.HEADLINE_SIZES},
}
RATES = 0.005, 0.01, 0.02


def plan(done):
    """Both models of each task at their own rates, at the task's two budgets."""
    named = []
    for task in ("headlines", "stories"):
        budgets = [{"num_epochs": n} for n in SETTINGS[task]["budgets"]]
        for kind in ("attention", "fixed"):
            arm = {"task": task, "kind": kind}
            named += at_own_rate(done, arm, RATES, budgets)
    return named


def attention(model, pairs, vocabs):
    """Where the weights fall while the decoder reads the true target."""
    weights = forced_weights(model, pairs, vocabs)
    wide = list(map(whole_sentences, pairs))
    figures = {"hits": pairs, "sentence_hits": wide}
    return {name: round(gold_hits(weights, p), 4) for name, p in figures.items()}


def score(model, pairs, vocabs):
    """Exact match, and attention on gold if there is attention."""
    sides = translations(model, pairs, vocabs)
    figures = {"count": len(pairs), "exact": round(exact_match(*sides), 4)}
    if model.config["kind"] == "attention":
        figures["attention"] = attention(model, pairs, vocabs)
    return figures


def run(settings, task, kind, seed, num_epochs, lr):
    """Train one model; its figures on every split but train, and for each tag of it."""
    data = read(task)
    vocabs = data.vocabs()
    model = build(kind, vocabs, seed, settings)
    about = {**settings, "num_epochs": num_epochs, "lr": lr}
    figures = trained(model, data["train"], data["valid"], vocabs, seed, about)
    figures["splits"] = {}
    for split in (name for name in data.splits if name != "train"):
        groups = {"all": data[split]}
        for pair in data[split]:
            for tag in sorted(pair.tags):
                groups.setdefault(tag, []).append(pair)
        scores = {name: score(model, pairs, vocabs) for name, pairs in groups.items()}
        figures["splits"][split] = scores
    return figures
