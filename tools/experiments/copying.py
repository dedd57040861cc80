"""Copying by pointing against the same decoder without it, each at its own rate.

Of names (in the Village) and headlines, some words are left out of the vocabulary, so
that they are unknown in training, too. In the split "exchanged" all names, people and
things are words that no corpus has. In dates every character is known. Both decoders
have one vocabulary for both sides. Notebook 12 reads what is stored.
"""

from statistics import fmean

from tools.experiments.provenance import read
from tools.experiments.runs import SIZES, build, each_at_own_rate, trained
from utils.decoding import translate_tokens
from utils.metrics import exact_match
from utils.tasks import LEFT_OUT, UNSEEN, exchange
from utils.text import UNK

MADE = {"budgets": [3, 9], "rates": [0.005, 0.01, 0.02]}
VILLAGE = {"budgets": [4, 12], "rates": [0.003, 0.006, 0.012]}
TASKS = {
    "dates": {"corpus": "dates", **MADE},
    "headlines": {"corpus": "headlines", **MADE},
    "names": {"corpus": "Village en-fr", **VILLAGE},
}
SETTINGS = {**SIZES, "left_out": LEFT_OUT, **TASKS}
plan = each_at_own_rate(
    ({"task": task, "kind": kind}, about["rates"], {"num_epochs": about["budgets"]})
    for task, about in TASKS.items()
    for kind in ("attention", "pointer")
)


def tested(task, corpus, vocab):
    """The pairs to test on, by name. known: their translations have no unknown word."""
    found = {s: p for s, p in corpus.splits.items() if s not in ("train", "valid")}
    if task in UNSEEN:
        found["exchanged"] = exchange(corpus["test"], UNSEEN[task])
        found["known"] = [
            pair for pair in corpus["test"] if all(w in vocab for w in pair.target)
        ]
    return found


def score(model, pairs, vocabs):
    """`figures` of greedy translations; replaced: of what attention alone can do.

    That is, the source word looked at most for each <unk> (Jean et al., 2015).
    """
    results = translate_tokens(model, [pair.source for pair in pairs], *vocabs)
    found = figures([result.words for result in results], pairs, vocabs[0])
    if model.config["kind"] == "attention" and "unknown" in found:
        found["replaced"] = figures(map(replaced, results), pairs, vocabs[0])
    return {"count": len(pairs), **found}


def replaced(result):
    looks = result.attention_weights.argmax(dim=1).tolist()
    words = zip(result.words, looks, strict=False)
    return [result.source_tokens[j] if word == UNK else word for word, j in words]


def figures(written, pairs, vocab):
    """exact, and the share of the unknown target words that are written."""
    written, targets = list(written), [pair.target for pair in pairs]
    unknown = [
        word in words
        for words, target in zip(written, targets, strict=True)
        for word in target
        if word not in vocab
    ]
    found = {"exact": round(exact_match(written, targets), 4)}
    return found | ({"unknown": round(fmean(unknown), 4)} if unknown else {})


def run(settings, task, **plan):
    """Train one model; its figures on everything that is tested."""
    corpus, about = read(settings[task]["corpus"]), {**settings, **plan}
    left_out = settings["left_out"].get(task, ())
    vocabs = corpus.shared_vocabs(left_out, extends=about["kind"] == "pointer")
    model = build(vocabs, about)
    found = trained(model, corpus, vocabs, about)
    pairs = tested(task, corpus, vocabs[0]).items()
    return found | {"splits": {name: score(model, p, vocabs) for name, p in pairs}}
