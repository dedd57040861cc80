"""Recurrent decoders and a Transformer on the same sentences; notebook 13 reads it.

All arms make the same updates on the same batches, each at its own rate, at two
budgets, and have about as many parameters. "additive" is the decoder of notebook 05,
"context fed" one in Luong's order. The Transformer's aer is of the mean of its heads.
"""

from tools.experiments import choices, runs

RECURRENT = {"embed_size": 64, "num_hiddens": 128, "bidirectional": True}
FED = {**RECURRENT, "kind": "luong", "score": "additive", "feed": "context"}
TRANSFORMER = {"num_hiddens": 64, "num_heads": 4, "num_layers": 2, "num_ffn": 256}
ARMS = {
    "additive": {**RECURRENT, "kind": "attention"},
    "context fed": FED,
    "Transformer": {**TRANSFORMER, "kind": "transformer"},
}
SETTINGS = {"direction": "en-fr", "batch_size": 64, "max_words": 15, "arms": ARMS}
plan = runs.each_at_own_rate(({"arm": arm}, choices.RATES) for arm in ARMS)


def run(settings, arm, **plan):
    """Train one arm; its figures on the test split."""
    return runs.measured({**settings, **ARMS[arm], **plan})
