"""What about one minute of training gives: attention and fixed context, side by side.

Same encoder, sizes, batches and rate in all runs; the number of epochs is what fitted
into about 60 seconds on two cores. What is stored was measured there; again, a run
has one thread.
"""

from tools.experiments.runs import bleu_by_length, build, train, village

SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "lr": 6e-3,
    "seed": 0,
}
RUNS = [
    {"kind": "attention", "direction": "en-fr", "num_epochs": 2},
    {"kind": "attention", "direction": "en-zh", "num_epochs": 2},
    {"kind": "fixed", "direction": "en-fr", "num_epochs": 3},
]
BUCKETS = [(3, 9), (10, 19), (20, 30)]


def run(settings, kind, direction, num_epochs):
    """Train one model; seconds, and test BLEU by source length."""
    corpus, vocabs = village(direction)
    plan = {**settings, "num_epochs": num_epochs}
    model = build(kind, vocabs, plan["seed"], plan)
    trainer = train(model, corpus["train"], vocabs, plan["seed"], plan)
    score, by_length = bleu_by_length(model, corpus["test"], vocabs, BUCKETS)
    return {
        "seconds": round(trainer.seconds),
        "bleu": score,
        "bleu_by_length": by_length,
    }
