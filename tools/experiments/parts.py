"""Which part earns its place: RNNsearch with one part replaced, each at its own rate.

Notebook 09 reads what is stored. All arms train and are tested on the sentences of at
most 15 words of Village en-fr, at two budgets, with three seeds.
"""

from tools.experiments import runs
from utils.rnnsearch import VARIANTS

RATES = 0.003, 0.006, 0.012
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 96,
    "num_maxout": 48,
    "batch_size": 64,
    "max_words": 15,
}


def plan(done):
    """Each arm at its own rate, at both budgets."""
    return [
        run for arm in VARIANTS for run in runs.at_own_rate(done, {"arm": arm}, RATES)
    ]


def run(settings, arm, seed, num_epochs, lr):
    """Train one arm with one seed; its losses, BLEU and AER on the test split."""
    vocabs, pairs, valid, test = runs.short_sentences(settings)
    about = {**settings, "variant": arm, "num_epochs": num_epochs, "lr": lr}
    model = runs.build("rnnsearch", vocabs, seed, about)
    return {
        **runs.trained(model, pairs, valid, vocabs, seed, about),
        "bleu": runs.bleu_of(model, test, vocabs),
        "aer": runs.aer_of(model, test, vocabs),
    }
