"""Questions, headlines and dates: attention and fixed context, three seeds each.

Notebook 12 reads what is stored. About a quarter of an hour on one core. The two models
of a task have the same encoder, sizes, pairs and steps.
"""

from tools.experiments.runs import build, train, translations
from utils import tasks
from utils.alignment import (
    attention_on_gold,
    forced_weights,
    forward_share,
    whole_sentences,
)
from utils.metrics import exact_match, rouge

WORKERS = 1
SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "stories": {"num_epochs": 3, "lr": 5e-3, "sizes": tasks.STORY_SIZES},
    "headlines": {"num_epochs": 3, "lr": 5e-3, "sizes": tasks.HEADLINE_SIZES},
    "dates": {"num_epochs": 3, "lr": 5e-3, "sizes": tasks.DATE_SIZES},
}
TASKS = ("stories", "headlines", "dates")
KINDS, SEEDS = ("attention", "fixed"), (0, 1, 2)
RUNS = [
    {"task": task, "kind": kind, "seed": seed}
    for seed in SEEDS
    for task in TASKS
    for kind in KINDS
]


def forward(weights, pair):
    """`forward_share` of the most attended places of the linked target words."""
    rows = sorted({i for _, i in pair.alignment})
    return forward_share([int(weights[i].argmax()) for i in rows])


def attention(model, pairs, vocabs, task):
    """Where the weights fall while the decoder reads the true target."""
    weights = forced_weights(model, pairs, vocabs)
    figures = attention_on_gold(weights, pairs)._asdict()
    if task == "dates":
        shares = [forward(w, p) for w, p in zip(weights, pairs, strict=True)]
        figures["forward"] = sum(shares) / len(shares)
    else:
        wide = attention_on_gold(weights, list(map(whole_sentences, pairs)))
        figures |= {f"sentence_{name}": x for name, x in wide._asdict().items()}
    return {name: round(x, 4) for name, x in figures.items()}


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


def score(model, pairs, vocabs, task):
    """Exact match, ROUGE of headlines, and attention on gold if there is attention."""
    hypotheses, references = translations(model, pairs, vocabs)
    figures = {
        "count": len(pairs),
        "exact": round(exact_match(hypotheses, references), 4),
    }
    if task == "headlines":
        found = rouge(hypotheses, references)
        figures |= {name: round(x, 2) for name, x in found.items()}
    if model.config["kind"] == "attention":
        figures["attention"] = attention(model, pairs, vocabs, task)
    return figures


def run(settings, task, kind, seed):
    """Train one model; its figures on every split but train, and for each group."""
    plan = {**settings, **settings[task]}
    data = getattr(tasks, task)(plan["sizes"])
    vocabs = data.vocabs()
    model = build(kind, vocabs, seed, settings)
    untrained = None
    if kind == "attention":
        untrained = attention(model, data["test"], vocabs, task)
    trainer = train(model, data["train"], vocabs, seed, plan)
    return {
        "steps": trainer.step,
        "seconds": round(trainer.seconds),
        "train_loss": round(trainer.history[-1]["train_loss"], 4),
        "untrained": untrained,
        "splits": {
            split: {
                name: score(model, pairs, vocabs, task)
                for name, pairs in groups(task, data[split]).items()
            }
            for split in list(data.splits)[1:]
        },
    }
