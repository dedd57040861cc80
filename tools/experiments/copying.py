"""Copying by pointing against the same decoder without it, each at its own rate.

Of names (in the Village) and headlines, some words are left out of the vocabulary, so
that they are unknown in training, too. In the split "exchanged" all names, people and
things are words that no corpus has. In dates every character is known. Both decoders
have one vocabulary for both sides. Notebook 12 reads what is stored.
"""

from tools.experiments.provenance import read
from tools.experiments.runs import at_own_rate, build, trained
from utils.decoding import translate_tokens
from utils.metrics import bleu, exact_match
from utils.tasks import LEFT_OUT, UNSEEN, exchange
from utils.text import UNK

SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "left_out": LEFT_OUT,
    "dates": {"corpus": "dates", "budgets": [3, 9], "rates": [0.005, 0.01, 0.02]},
    "headlines": {
        "corpus": "headlines",
        "budgets": [3, 9],
        "rates": [0.005, 0.01, 0.02],
    },
    "names": {
        "corpus": "Village en-fr",
        "budgets": [4, 12],
        "rates": [0.003, 0.006, 0.012],
    },
}


def plan(done):
    """Both decoders on each task at their own rates, at the task's two budgets."""
    named = []
    for task in ("dates", "headlines", "names"):
        about = SETTINGS[task]
        budgets = [{"num_epochs": n} for n in about["budgets"]]
        for kind in ("attention", "pointer"):
            arm = {"task": task, "kind": kind}
            named += at_own_rate(done, arm, about["rates"], budgets)
    return named


def tested(task, corpus, vocab):
    """The pairs to test on, by name. known: their translations have no unknown word."""
    found = {s: p for s, p in corpus.splits.items() if s not in ("train", "valid")}
    if task in UNSEEN:
        found["exchanged"] = exchange(corpus["test"], UNSEEN[task])
        found["known"] = [
            pair for pair in corpus["test"] if all(w in vocab for w in pair.target)
        ]
    if task == "names":
        new = [pair for pair in corpus["test"] if "new-name" in pair.tags]
        found["new-name"] = [
            pair for pair in new if not all(w in vocab for w in pair.target)
        ]
    return found


def figures(sides, vocab):
    """exact, BLEU, and the share of the unknown target words that are written."""
    unknown = [
        word in words
        for words, target in zip(*sides, strict=True)
        for word in target
        if word not in vocab
    ]
    found = {"exact": round(exact_match(*sides), 4), "bleu": round(bleu(*sides), 2)}
    if unknown:
        found |= {"unknown": round(sum(unknown) / len(unknown), 4)}
        found["unknown_words"] = len(unknown)
    return found


def replaced(result):
    """The words, for each <unk> the source word looked at most (Jean et al., 2015)."""
    looks = zip(result.words, result.attention_weights, strict=False)
    return [
        result.source_tokens[int(row.argmax())] if word == UNK else word
        for word, row in looks
    ]


def score(model, pairs, vocabs):
    """`figures` of greedy translations, and of those without attention's <unk>."""
    results = translate_tokens(model, [list(pair.source) for pair in pairs], *vocabs)
    targets = [list(pair.target) for pair in pairs]
    sides = [result.words for result in results], targets
    found = {"count": len(pairs), **figures(sides, vocabs[0])}
    if model.config["kind"] == "attention" and "unknown" in found:
        found["replaced"] = figures((list(map(replaced, results)), targets), vocabs[0])
    return found


def run(settings, task, kind, seed, num_epochs, lr):
    """Train one model; its figures on everything that is tested."""
    corpus = read(settings[task]["corpus"])
    left_out = settings["left_out"].get(task, ())
    vocabs = corpus.shared_vocabs(left_out, extends=kind == "pointer")
    model = build(kind, vocabs, seed, settings)
    about = {**settings, "num_epochs": num_epochs, "lr": lr}
    found = trained(model, corpus["train"], corpus["valid"], vocabs, seed, about)
    pairs = tested(task, corpus, vocabs[0])
    return found | {
        "splits": {name: score(model, pairs[name], vocabs) for name in pairs}
    }
