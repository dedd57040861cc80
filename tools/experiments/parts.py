"""RNNsearch with one part replaced; recurrent decoders beside a Transformer.

Notebooks 09 and 13 read what is stored. All arms train and are tested on the sentences
of at most 15 words of Village en-fr, each at its own rate, at two budgets, with three
seeds. Those of 13 have about as many parameters: "additive" is the decoder of notebook
05, "context fed" one in Luong's order. The Transformer's aer is of its heads' mean.
"""

from tools.experiments import choices, runs
from utils.rnnsearch import VARIANTS

PAPER = {"kind": "rnnsearch", "embed_size": 64, "num_hiddens": 96, "num_maxout": 48}
RECURRENT = {"embed_size": 64, "num_hiddens": 128, "bidirectional": True}
FED = {**RECURRENT, "kind": "luong", "score": "additive", "feed": "context"}
TRANSFORMER = {"num_hiddens": 64, "num_heads": 4, "num_layers": 2, "num_ffn": 256}
ARMS = {
    **{name: {**PAPER, "variant": name} for name in VARIANTS},
    "additive": {**RECURRENT, "kind": "attention"},
    "context fed": FED,
    "Transformer": {**TRANSFORMER, "kind": "transformer"},
}
SETTINGS = {"direction": "en-fr", "batch_size": 64, "max_words": 15, "arms": ARMS}
plan = runs.each_at_own_rate(({"arm": arm}, choices.RATES) for arm in ARMS)


def run(settings, arm, **plan):
    """Train one arm with one seed; its losses, BLEU and AER on the test split."""
    return runs.measured({**settings, **ARMS[arm], **plan})
