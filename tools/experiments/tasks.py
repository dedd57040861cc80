"""Questions, headlines and dates: attention and fixed context, three seeds each.

`make results` writes `tasks.json`, which notebook 11 reads. About a quarter of an hour
on one core. The two models of a task have the same encoder, sizes, pairs and steps.
"""

from functools import cache

import torch
from runs import RESULTS, run_all, train, translations

from utils import alignment, metrics, tasks
from utils.seq2seq import build_model

PATH = RESULTS / "tasks.json"
SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "stories": {"num_epochs": 3, "lr": 5e-3, "sizes": tasks.STORY_SIZES},
    "headlines": {"num_epochs": 3, "lr": 5e-3, "sizes": tasks.HEADLINE_SIZES},
    "dates": {"num_epochs": 3, "lr": 5e-3, "sizes": tasks.DATE_SIZES},
}
TASKS = {
    "stories": tasks.stories,
    "headlines": tasks.headlines,
    "dates": tasks.dates,
}
KINDS, SEEDS = ("attention", "fixed"), (0, 1, 2)
RUNS = [
    {"task": task, "kind": kind, "seed": seed}
    for seed in SEEDS
    for task in TASKS
    for kind in KINDS
]


@cache
def corpus(task):
    """The corpus of a task, drawn once a process."""
    return TASKS[task](SETTINGS[task]["sizes"])


def build(task, kind, seed):
    """The untrained model of a run, and the vocabularies of its task."""
    vocabs = corpus(task).vocabs()
    torch.manual_seed(seed)
    model = build_model(
        kind,
        *map(len, vocabs),
        SETTINGS["embed_size"],
        SETTINGS["num_hiddens"],
        bidirectional=SETTINGS["bidirectional"],
    )
    return model, vocabs


def forward(weights, pair):
    """`forward_share` of the most attended places of the linked target words."""
    rows = sorted({i for _, i in pair.alignment})
    return alignment.forward_share([int(weights[i].argmax()) for i in rows])


def attention(model, pairs, vocabs, task):
    """Where the weights fall while the decoder reads the true target."""
    weights = alignment.forced_weights(model, pairs, vocabs)
    figures = alignment.attention_on_gold(weights, pairs)._asdict()
    if task == "dates":
        shares = [forward(w, p) for w, p in zip(weights, pairs, strict=True)]
        figures["forward"] = sum(shares) / len(shares)
    else:
        wide = alignment.attention_on_gold(
            weights, list(map(alignment.whole_sentences, pairs))
        )
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
    hypotheses = translations(model, pairs, vocabs)
    references = [list(pair.target) for pair in pairs]
    figures = {
        "count": len(pairs),
        "exact": round(metrics.exact_match(hypotheses, references), 4),
    }
    if task == "headlines":
        rouge = metrics.rouge(hypotheses, references)
        figures |= {name: round(x, 2) for name, x in rouge.items()}
    if model.config["kind"] == "attention":
        figures["attention"] = attention(model, pairs, vocabs, task)
    return figures


def run(task, kind, seed, settings):
    """Train one model; its figures on every split but train, and for each group."""
    model, vocabs = build(task, kind, seed)
    data, plan = corpus(task), settings[task]
    untrained = None
    if kind == "attention":
        untrained = attention(model, data["test"], vocabs, task)
    trainer = train(
        model,
        data["train"],
        vocabs,
        seed,
        plan["num_epochs"],
        settings["batch_size"],
        plan["lr"],
    )
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


if __name__ == "__main__":
    run_all(PATH, run, RUNS, SETTINGS, workers=1)
