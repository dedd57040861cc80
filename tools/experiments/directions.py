"""Quality against length: attention with an encoder that reads one way, or both ways.

Notebook 06 reads what is stored and draws it beside the model that the learner trains
there. Sizes, batches, epochs and rate are that notebook's. An annotation h_j has
`num_hiddens` numbers in every arm: read both ways, each direction has half of them.
"""

from tools.experiments import bottleneck
from tools.experiments.runs import SEEDS, every

SETTINGS = {
    **{"direction": "en-fr", **bottleneck.SETTINGS},
    **{"num_hiddens": 128, "num_epochs": 2, "lr": 1e-2},
}
ARMS = {
    "attention, one way": {"kind": "attention", "bidirectional": False},
    "fixed, both ways": {"kind": "fixed", "bidirectional": True},
}
plan = every(seed=SEEDS, arm=ARMS)


def run(settings, arm, seed):
    """Train one model; its losses, BLEU by length, and AER."""
    return bottleneck.by_length({**settings, **ARMS[arm], "seed": seed})
