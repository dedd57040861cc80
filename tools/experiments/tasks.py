"""Beyond translation: attention beside a fixed context, and beside copying by pointing.

The two models of a task have the same encoder, sizes, pairs and updates, each at its
own rate, at a short budget and at one after which the training loss has flattened. For
copying, both sides have one vocabulary. Some words are left out of that of names (in
the Village) and of headlines, so they are unknown in training, too; in "exchanged", all
names, people and things are words that no corpus has. In dates, every character is
known. Notebook 12 reads what is stored.
"""

from itertools import accumulate, starmap
from statistics import fmean

from tools.experiments.provenance import read
from tools.experiments.runs import SIZES, build, each_at_own_rate, trained
from utils.alignment import forced_weights, gold_hits, linked_looks
from utils.decoding import translate_tokens
from utils.metrics import exact_match
from utils.tasks import LEFT_OUT, UNSEEN, exchange
from utils.text import UNK

RATES = 0.005, 0.01, 0.02
FIXED, POINTER = ("attention", "fixed"), ("attention", "pointer")
TASKS = {  # the corpus, the models, the epochs, the rates that are tried first
    "stories": ("stories", FIXED, (3, 12), RATES),
    "headlines": ("headlines", FIXED, (3, 9), RATES),
    "dates": ("dates", POINTER, (3, 9), RATES),
    "headlines, copied": ("headlines", POINTER, (3, 9), RATES),
    "names, copied": ("Village en-fr", POINTER, (4, 12), (0.003, 0.006, 0.012)),
}
SETTINGS = {**SIZES, "left_out": LEFT_OUT}
plan = each_at_own_rate(
    ({"task": task, "kind": kind}, rates, {"num_epochs": budgets})
    for task, (_, kinds, budgets, rates) in TASKS.items()
    for kind in kinds
)


def tested(task, corpus, vocab):
    """The pairs to test on, by name. known: their translations have no unknown word."""
    found = {s: p for s, p in corpus.splits.items() if s not in ("train", "valid")}
    name, _, copied = task.partition(", ")
    if copied:
        found["exchanged"] = exchange(corpus["test"], UNSEEN[name])
        found["known"] = [
            pair for pair in corpus["test"] if all(w in vocab for w in pair.target)
        ]
    elif name == "headlines":
        for split in ("test", "long"):
            for pair in corpus[split]:  # "test, 3 news"
                found.setdefault(", ".join((split, *pair.tags)), []).append(pair)
    return found


def score(model, pairs, vocabs):
    """`figures` of greedy translations; of attention, how often it looks at gold.

    hits: at a linked word; sentence_hits: at a sentence of the story that has one. With
    unknown words, replaced: what attention alone can do, which is the source word
    looked at most for each <unk> (Jean et al., 2015).
    """
    results = translate_tokens(model, [pair.source for pair in pairs], *vocabs)
    found = figures([result.words for result in results], pairs, vocabs[1])
    if model.config["kind"] == "attention" and "unknown" in found:
        found["replaced"] = figures(map(replaced, results), pairs, vocabs[1])
    elif model.config["kind"] == "attention":
        weights = forced_weights(model, pairs, vocabs)
        found["hits"] = round(gold_hits(weights, pairs), 4)
        near = starmap(same_sentence, linked_looks(weights, pairs))
        found["sentence_hits"] = round(fmean(near), 4)
    return {"count": len(pairs), **found}


def same_sentence(look, gold, pair):
    number = list(accumulate((word in ".?" for word in pair.source[:-1]), initial=0))
    return number[look] in {number[j] for j in gold}


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


def run(settings, task, kind, **plan):
    """Train one model; its figures on everything that is tested."""
    corpus, about = read(TASKS[task][0]), {**settings, "kind": kind, **plan}
    vocabs = corpus.vocabs()
    if "pointer" in TASKS[task][1]:
        left_out = settings["left_out"].get(task.partition(",")[0], ())
        vocabs = corpus.shared_vocabs(left_out, extends=kind == "pointer")
    model = build(vocabs, about)
    found = trained(model, corpus, vocabs, about)
    parts = tested(task, corpus, vocabs[1]).items()
    return found | {"splits": {name: score(model, p, vocabs) for name, p in parts}}
