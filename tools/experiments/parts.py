"""Which part earns its place: RNNsearch with one part replaced, each at its own rate.

Notebook 09 reads what is stored. All arms train and are tested on the sentences of at
most 15 words of Village en-fr, at two budgets, with three seeds.
"""

from tools.experiments import choices, runs
from utils.rnnsearch import VARIANTS

SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 96,
    "num_maxout": 48,
    "batch_size": 64,
    "max_words": 15,
}
plan = runs.each_at_own_rate(({"arm": arm}, choices.RATES) for arm in VARIANTS)


def run(settings, arm, **plan):
    """Train one arm with one seed; its losses, BLEU and AER on the test split."""
    return runs.measured({**settings, "kind": "rnnsearch", "variant": arm, **plan})
