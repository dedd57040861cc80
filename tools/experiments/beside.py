"""Recurrent decoders and a Transformer on the same sentences; notebook 13 reads it.

All arms make the same updates on the same batches, each at its own rate, at two
budgets, and have about as many parameters. "additive" is the decoder of notebook 05,
"context fed" one in Luong's order. The Transformer's aer is of the mean of its heads.
"""

from tools.experiments import runs

RATES = 0.003, 0.006, 0.012
RECURRENT = {"embed_size": 64, "num_hiddens": 128, "bidirectional": True}
ARMS = {
    "additive": {**RECURRENT, "kind": "attention"},
    "context fed": {
        **RECURRENT,
        "kind": "luong",
        "score": "additive",
        "feed": "context",
    },
    "Transformer": {
        "kind": "transformer",
        "num_hiddens": 64,
        "num_heads": 4,
        "num_layers": 2,
        "num_ffn": 256,
    },
}
SETTINGS = {"direction": "en-fr", "batch_size": 64, "max_words": 15, "arms": ARMS}


def plan(done):
    """Each arm at its own rate, at both budgets."""
    return [run for arm in ARMS for run in runs.at_own_rate(done, {"arm": arm}, RATES)]


def run(settings, arm, num_epochs, seed, lr):
    """Train one arm with one seed; its figures on the test split."""
    about = {**settings, **ARMS[arm], "num_epochs": num_epochs, "lr": lr}
    vocabs, pairs, valid, test = runs.short_sentences(about)
    model = runs.build(about["kind"], vocabs, seed, about)
    return {
        **runs.trained(model, pairs, valid, vocabs, seed, about),
        "bleu": runs.bleu_of(model, test, vocabs),
        "aer": runs.aer_of(model, test, vocabs),
    }
