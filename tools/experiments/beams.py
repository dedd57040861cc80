"""What a wider beam finds, and what it can't: Village and Multi30k.

Notebook 10 reads what is stored. About three minutes of one core. The models:
the shipped ones, and Village models of the same sizes with a 24th of the training, once
with label smoothing. Every search translates the same sentences, the first of the test
split, or the first of these where the beam is wide: all of them would take twenty times
as long. The real text must be there: see the README.
"""

from itertools import product, zip_longest

import torch

from tools.experiments import models
from tools.experiments.runs import RESULTS, build, trained, village
from utils.checkpoint import load_checkpoint
from utils.corpora import load_multi30k
from utils.data import Batch, cut
from utils.decoding import beam_search
from utils.exact import exact_search
from utils.metrics import bleu, gain_range
from utils.text import EOS_ID, PAD_ID

WORKERS = 1
SEEDS = (0, 1, 2)
SHIPPED = {"Village": "village-en-fr", "Multi30k": "multi30k-de-en"}
SETTINGS = {
    "sentences": 100,
    "beam_sizes": [1, 2, 5, 10, 30, 100],
    "length_penalties": [0.0, 1.0],
    "wide": {"beam_size": 100, "sentences": 25},
    "max_rows": 5_000,
    "short": 0.7,
    "shorter": {
        **models.SETTINGS,
        "beam_sizes": [1, 2, 5, 10],
        "num_pairs": 6_000,
        "num_epochs": 1,
        "brief": {"label_smoothing": 0.0},
        "brief, smoothed": {"label_smoothing": 0.1},
    },
}
RUNS = [{"model": name, "seed": 0} for name in reversed(SHIPPED)] + [
    {"model": f"Village, {kind}", "seed": seed}
    for seed in SEEDS
    for kind in ("brief", "brief, smoothed")
]


def load(settings, name, seed):
    """A model, its vocabularies, the sentences; what is said of its training."""
    corpus = load_multi30k("de", "en") if name == "Multi30k" else village("en-fr")[0]
    pairs = corpus["test"][: settings["sentences"]]
    if name in SHIPPED:
        folder = RESULTS.parent / "models"
        saved = load_checkpoint(folder / f"{SHIPPED[name]}.safetensors")
        return saved.model, (saved.src_vocab, saved.tgt_vocab), pairs, {}
    vocabs = corpus.vocabs()
    plan = settings["shorter"]
    plan = {**plan, **plan[name.removeprefix("Village, ")]}
    model = build("attention", vocabs, seed, plan)
    part = corpus["train"][: plan["num_pairs"]]
    told = trained(model, part, corpus["valid"], vocabs, seed, plan)
    return model, vocabs, pairs, told


def search(model, pairs, vocabs, beam_size, length_penalty):
    """Translations, lists of ids without <eos>, and log-probabilities of all."""
    found = [None] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].source))
    for chosen in cut(order, max(1, 1000 // beam_size)):
        batch = Batch.from_pairs([pairs[i] for i in chosen], *vocabs)
        ids, log_probs, _ = beam_search(
            model,
            batch.source,
            batch.source_lens,
            beam_size,
            length_penalty=length_penalty,
        )
        for i, row, log_prob in zip(chosen, ids, log_probs.tolist(), strict=True):
            found[i] = written(row), log_prob
    return found


def search_exactly(model, pairs, vocabs, max_rows):
    """The same by exact search; and for each whether the search went through."""
    found, certain = [], []
    for pair in pairs:
        batch = Batch.from_pairs([pair], *vocabs)
        source = batch.source, batch.source_lens
        ids, log_prob, through = exact_search(model, *source, max_rows)
        found.append((written(ids), log_prob))
        certain.append(through)
    return found, certain


def written(ids):
    """A row of ids, up to <eos>."""
    return [i for i in ids.tolist() if i not in (PAD_ID, EOS_ID)]


def reference_log_probs(model, pairs, vocabs):
    """What the model gives to the references, each in its most probable pieces."""
    found = []
    with torch.no_grad():
        for chosen in cut(pairs, 100):
            batch = Batch.from_pairs(chosen, *vocabs)
            scores, _ = model.eval()(batch.source, batch.target_in, batch.source_lens)
            steps = scores.double().log_softmax(dim=-1)
            steps = steps.gather(-1, batch.target_out.unsqueeze(-1)).squeeze(-1)
            found += steps.masked_fill(batch.target_out == PAD_ID, 0).sum(1).tolist()
    return found


def empty_log_probs(model, pairs, vocabs):
    """What the model gives to <eos> as the first word."""
    found = []
    with torch.no_grad():
        for chosen in cut(pairs, 100):
            batch = Batch.from_pairs(chosen, *vocabs)
            first = batch.target_in[:, :1]  # <bos>
            scores, _ = model.eval()(batch.source, first, batch.source_lens)
            found += scores[:, 0].log_softmax(dim=-1)[:, EOS_ID].tolist()
    return found


def judge(found, best, references, greedy, vocab, short):
    """The figures of one search; found, best and greedy: ids and log-probabilities.

    best: for each sentence the most probable that any search found. search_errors: the
    share of sentences whose translation is less probable than that. gain: of BLEU,
    against greedy decoding of the same sentences, the first ones if found is shorter.
    """
    n = len(found)
    best, references, greedy = best[:n], references[:n], greedy[:n]
    words = [vocab.to_words(ids) for ids, _ in found]
    plain = [vocab.to_words(ids) for ids, _ in greedy]
    pairs = list(zip(words, references, strict=True))
    margin = 1e-4  # of rounding

    def below(other):
        rows = zip(found, other, strict=True)
        return share([ours[1] < theirs[1] - margin for ours, theirs in rows])

    return {
        "sentences": n,
        "bleu": round(bleu(words, references), 2),
        "gain": round(bleu(words, references) - bleu(plain, references), 2),
        "log_prob": round(sum(log_prob for _, log_prob in found) / len(found), 4),
        "length_ratio": round(sum(map(len, words)) / sum(map(len, references)), 4),
        "search_errors": below(best),
        "below_greedy": below(greedy),
        "as_greedy": share([a[0] == b[0] for a, b in zip(found, greedy, strict=True)]),
        "empty": share([not ours for ours in words]),
        "short": share([len(ours) < short * len(theirs) for ours, theirs in pairs]),
    }


def range_of_gain(found, references, greedy, vocab):
    """Where the gain may lie on other sentences; arguments as in `judge`."""
    n = len(found)
    ours, plain = (
        [vocab.to_words(ids) for ids, _ in side] for side in (found, greedy[:n])
    )
    return [round(x, 2) for x in gain_range(ours, plain, references[:n])]


def share(found):
    """How many of these are true, from 0 to 1."""
    return round(sum(found) / len(found), 4)


def run(settings, model, seed):
    """All searches of one model."""
    shipped = model in SHIPPED
    sizes = (settings if shipped else settings["shorter"])["beam_sizes"]
    model, vocabs, pairs, told = load(settings, model, seed)
    references = [list(pair.target) for pair in pairs]
    grid = list(product(settings["length_penalties"], sizes))
    wide = settings["wide"]
    found = {}
    for penalty, size in grid:
        few = wide["sentences"] if size == wide["beam_size"] else None
        found[penalty, size] = search(model, pairs[:few], vocabs, size, penalty)
    exact, certain = search_exactly(model, pairs, vocabs, settings["max_rows"])
    greedy = found[0.0, 1]
    best = [
        max(filter(None, row), key=lambda one: one[1])
        for row in zip_longest(*found.values(), exact)
    ]
    gold, empty = (
        of(model, pairs, vocabs) for of in (reference_log_probs, empty_log_probs)
    )
    judged = {"vocab": vocabs[1], "short": settings["short"]}
    rows = [
        {
            "beam_size": size,
            "length_penalty": penalty,
            **judge(found[penalty, size], best, references, greedy, **judged),
        }
        for penalty, size in grid
    ]
    if shipped:
        for row, one in zip(rows, found.values(), strict=True):
            row["gain_range"] = range_of_gain(one, references, greedy, vocabs[1])
    five = [log_prob for _, log_prob in found[0.0, 5]]
    return {
        **told,
        "beams": rows,
        "exact": {
            "certain": share(certain),
            **judge(exact, best, references, greedy, **judged),
        },
        "reference_log_prob": round(sum(gold) / len(pairs), 4),
        "reference_above_width_5": share(
            [a > b for a, b in zip(gold, five, strict=True)]
        ),
        "empty_above_width_5": share([a > b for a, b in zip(empty, five, strict=True)]),
    }
