"""Questions and headlines: attention and fixed context, each at its own rate.

The two models of a task have the same encoder, sizes, pairs and updates, at a short
budget and at one after which the training loss has flattened. Notebook 12 reads what
is stored. (Its dates are measured by `copying`.)
"""

from tools.experiments.provenance import read
from tools.experiments.runs import SIZES, build, each_at_own_rate, trained, translations
from utils import tasks
from utils.alignment import forced_weights, gold_hits, whole_sentences
from utils.metrics import exact_match

SETTINGS = {
    **SIZES,
    "stories": {"budgets": [3, 12], "sizes": tasks.STORY_SIZES},
    "headlines": {"budgets": [3, 9], "sizes": tasks.HEADLINE_SIZES},
}
RATES = 0.005, 0.01, 0.02
plan = each_at_own_rate(
    ({"task": task, "kind": kind}, RATES, {"num_epochs": SETTINGS[task]["budgets"]})
    for task in ("headlines", "stories")
    for kind in ("attention", "fixed")
)


def score(model, pairs, vocabs):
    """Exact match; and where attention falls, if any, while the target is read along.

    hits: on gold; sentence_hits: on a sentence of the story that has gold.
    """
    exact = round(exact_match(*translations(model, pairs, vocabs)), 4)
    figures = {"count": len(pairs), "exact": exact}
    if model.config["kind"] == "attention":
        weights = forced_weights(model, pairs, vocabs)
        wide = list(map(whole_sentences, pairs))
        figures["attention"] = {
            "hits": round(gold_hits(weights, pairs), 4),
            "sentence_hits": round(gold_hits(weights, wide), 4),
        }
    return figures


def run(settings, task, **plan):
    """Train one model; its figures on every split but train, and for each tag of it."""
    data, about = read(task), {**settings, **plan}
    vocabs = data.vocabs()
    model = build(vocabs, about)
    figures = {**trained(model, data, vocabs, about), "splits": {}}
    for split, pairs in data.splits.items():
        if split != "train":
            groups = {"all": pairs}
            for tag in sorted({tag for pair in pairs for tag in pair.tags}):
                groups[tag] = [pair for pair in pairs if tag in pair.tags]
            scores = {name: score(model, p, vocabs) for name, p in groups.items()}
            figures["splits"][split] = scores
    return figures
