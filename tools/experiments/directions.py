"""Quality against length: attention with an encoder that reads one way, or both ways.

Notebook 05 reads what is stored and draws it beside the model that the learner trains
there. Sizes, batches, epochs and rate are that notebook's. An annotation h_j has
`num_hiddens` numbers in every arm: read both ways, each direction has half of them.
About fifteen minutes.
"""

from tools.experiments.bottleneck import BUCKETS
from tools.experiments.runs import aer_of, bleu_by_length, build, train, village
from utils.data import BatchLoader
from utils.training import evaluate_loss

SETTINGS = {
    "direction": "en-fr",
    "embed_size": 128,
    "num_hiddens": 144,
    "batch_size": 128,
    "num_epochs": 5,
    "lr": 6.5e-3,
}
NOTES = {"buckets": BUCKETS}
ARMS = {
    "attention, one way": {"kind": "attention", "bidirectional": False},
    "fixed, both ways": {"kind": "fixed", "bidirectional": True},
}
SEEDS, WORKERS = (0, 1, 2), 1
RUNS = [{"arm": arm, "seed": seed} for seed in SEEDS for arm in ARMS]


def build_arm(arm, vocabs, seed=0, settings=SETTINGS):
    """The untrained model of an arm."""
    plan = {**settings, **ARMS[arm]}
    return build(plan["kind"], vocabs, seed, plan)


def run(settings, arm, seed):
    """Train one model; its losses, and BLEU on the test split in each bucket."""
    corpus, vocabs = village(settings["direction"])
    model = build_arm(arm, vocabs, seed, settings)
    trainer = train(model, corpus["train"], vocabs, seed, settings)
    valid = BatchLoader(corpus["valid"], *vocabs, batch_size=256)
    score, by_length = bleu_by_length(model, corpus["test"], vocabs, BUCKETS)
    attends = ARMS[arm]["kind"] == "attention"
    return {
        "train_loss": round(trainer.history[-1]["train_loss"], 4),
        "valid_loss": round(evaluate_loss(model, valid), 4),
        "bleu": score,
        "bleu_by_length": list(by_length.values()),
        "aer": aer_of(model, corpus["test"], vocabs) if attends else None,
        "parameters": sum(p.numel() for p in model.parameters()),
        "seconds": round(trainer.seconds),
    }
