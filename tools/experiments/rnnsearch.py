"""Which parts of RNNsearch earn their place: each part replaced, at its own rate.

All arms train and are tested on the sentences of at most 15 words of Village en-fr. The
long budget is for those arms that a verdict compares. Notebook 09 reads what is stored.
"""

from tools.experiments import runs
from utils.gold import gold_links
from utils.metrics import alignment_error_rate
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
ARMS = {name: {"variant": name} for name in VARIANTS}
ARMS["the paper's initialisation"] = {"published_init": True}
LONGER = (
    "RNNsearch",
    "no maxout",
    "output from s_i",
    "output without context",
    "no deep output",
    "order of the released code",
)


def plan(done):
    """Each arm at its own rate; those of LONGER at both budgets."""
    named = []
    for arm in sorted(ARMS, key=lambda arm: arm not in LONGER):
        budgets = runs.BUDGETS[: 2 if arm in LONGER else 1]
        named += runs.at_own_rate(done, {"arm": arm}, RATES, budgets)
    return named


def moved_down(links, num_words):
    """Links (source, target): those of target word i go to word i + 1 of num_words.

    For a decoder that looks a step ahead, as one does whose output hasn't read this
    step's context; the first word keeps its own.
    """
    down = {(j, i + 1) for j, i in links if i + 1 < num_words}
    return down | {(j, i) for j, i in links if i == 0}


def run(settings, arm, seed, num_epochs, lr):
    """Train one arm with one seed; BLEU and alignment error rates on the test split.

    aer_shifted: of the weights' rows moved down by one.
    """
    vocabs, pairs, valid, test = runs.short_sentences(settings)
    about = {**settings, **ARMS[arm], "num_epochs": num_epochs, "lr": lr}
    model = runs.build("rnnsearch", vocabs, seed, about)
    figures = runs.trained(model, pairs, valid, vocabs, seed, about)
    links = runs.attention_links(model, test, vocabs)
    moved = [moved_down(a, len(p.target)) for a, p in zip(links, test, strict=True)]
    gold = gold_links(test)
    return {
        **figures,
        "bleu": runs.bleu_of(model, test, vocabs),
        "aer": round(alignment_error_rate(links, *gold).aer, 3),
        "aer_shifted": round(alignment_error_rate(moved, *gold).aer, 3),
    }
