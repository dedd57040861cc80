"""Real translation: Multi30k, German to English and back; Tatoeba, English and Chinese.

What lifts a translator of real text: remedies, size, or time? Notebook 11 reads what is
stored. One metric: BLEU over the course's tokens, lower-cased, by a beam of 5; beside
it greedy decoding, and BLEU and chrF of the texts. Every arm is scored on the
validation split. The test split is scored once, for the full models and Tatoeba's
alone. The shipped `multi30k-de-en.safetensors` is the small model, of seed 0. Notebook
10 and data/gold measure it, too; so it is saved only where there is none.
The real text must be there: see the README.

A run takes up to an hour. One that was interrupted goes on where it was: each epoch is
kept in build/multi30k until the run is over. Runs go two at a time; what an update
takes by the clock is measured first, alone.
"""

import hashlib
import json
import math
import sys
from collections import Counter
from dataclasses import asdict, replace
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path

import torch

from tools.experiments.runs import RESULTS, aer_of
from utils import by_hand
from utils.checkpoint import Checkpoint, save_checkpoint
from utils.corpora import load_multi30k, load_tsv
from utils.data import BatchLoader
from utils.decoding import translate_tokens
from utils.gold import link_gold
from utils.languages import UNSPACED
from utils.metrics import (
    bleu,
    quality_by_length,
    signatures,
    text_scores,
    text_signatures,
)
from utils.models import build_model
from utils.recipe import SIZES, Settings, fit, make_model, make_vocabs
from utils.subwords import as_spelled
from utils.training import batch_loss, evaluate_loss

MODEL = RESULTS.parent / "models" / "multi30k-de-en.safetensors"
UNFINISHED = RESULTS.parents[1] / "build" / "multi30k"
BEAM = {"beam_size": 5, "length_penalty": 1.0}
SETTINGS = {
    **asdict(Settings()),
    "beam": BEAM,
    "buckets": [(1, 8), (9, 11), (12, 14), (15, 18), (19, 99)],
    "examples": [8, 11, 14, 17],  # words of the sentences shown: the first of each
    "frequent": 100,  # words of each language, of which it is counted how many are cut
    "timed": 100,  # updates, for the seconds of one
    "near": 3,  # words that a near-copy of a training sentence differs in, at most
    "signatures": signatures(),
    "text_signatures": text_signatures(),
}
WIDER = {
    "num_hiddens": 384,
    "enc_hiddens": 512,
    "embed_size": 192,
    "source_pieces": 4000,
    "target_pieces": 4000,
}
LARGE = {**WIDER, "dropout": 0.4}  # trained for as long as the small one
# A word in fewer pieces, always the same ones, and so more epochs in as many minutes.
BYTE_PAIRS = {**WIDER, "alpha": 0.0, "subwords": "bpe"}
FASTER = {**BYTE_PAIRS, "num_epochs": 16}
# Attend after the update, so that the query has read the last word.
RELEASED = {"kind": "released translator"}
FULL = {
    "small": {},
    "large": LARGE,
    "large, byte pairs": FASTER,
    "large, released order": {**FASTER, **RELEASED},
}
NO_REMEDIES = {"alpha": 0.0, "dropout": 0.0, "label_smoothing": 0.0}
LEFT_OUT = {  # what differs from the small full model
    "half the epochs": {"num_epochs": 6},
    # A whole word can't be cut anew: this arm's control is the next one.
    "whole words": {"source_pieces": 0, "target_pieces": 0},
    "one cut a word": {"alpha": 0.0},
    "no remedies": NO_REMEDIES,
    "fixed context": {"kind": "fixed translator"},
}
ORDER = {
    "released order, half the epochs": {**RELEASED, "num_epochs": 6},
    "released order": RELEASED,
}
TRANSFORMER = {"kind": "transformer", "lr": 1e-3}  # the recipe's rate for it
FURTHER = {
    "no dropout": {"dropout": 0.0},
    "no label smoothing": {"label_smoothing": 0.0},
    # One cut a word, too: byte pairs have no other.
    "byte pairs": {"alpha": 0.0, "subwords": "bpe"},
    "not tied": {"decoder": "untied translator"},
    # Without a readout there is nothing to tie: its control is "not tied".
    "no readout": {"decoder": "plain translator"},
}
LONGER = {
    "Transformer": TRANSFORMER,
    "small, 22 epochs": {"num_epochs": 22},
    "Transformer, half the epochs": {**TRANSFORMER, "num_epochs": 6},
    **{
        f"Transformer, half the epochs, rate {lr}": {
            **TRANSFORMER,
            "num_epochs": 6,
            "lr": lr,
        }
        for lr in (0.0005, 0.002, 0.004)
    },
    # The longer budget at a higher rate, too.
    "Transformer, rate 0.002": {**TRANSFORMER, "lr": 2e-3},
    # Is its rate why it is worse? The recipe's, 0.003, was chosen for the full model.
    **{
        f"fixed context, rate {lr}": {"kind": "fixed translator", "lr": lr}
        for lr in (0.001, 0.006, 0.012)
    },
    "large, half the epochs": {**LARGE, "num_epochs": 6},
    "large, 22 epochs": {**LARGE, "num_epochs": 22},
    # Its other pieces, or its four more epochs?
    "large, byte pairs, 12 epochs": BYTE_PAIRS,
}
TATOEBA = {  # into Chinese: there are 3,600 characters, and pieces must be more
    "Tatoeba, characters": ("en-zh", {"target_pieces": 0, "num_epochs": 6}),
    "Tatoeba, pieces": ("en-zh", {"target_pieces": 6000, "num_epochs": 6}),
    "Tatoeba, into English": ("zh-en", {"source_pieces": 0, "num_epochs": 6}),
}
TESTED = (*FULL, *TATOEBA)


def planned(arm, changes, seed=0, direction="de-en"):
    return {"arm": arm, "direction": direction, "changes": changes, "seed": seed}


TIMES = [{"threads": 1}, {"threads": 2}]
PLAN = [  # in this order: what is measured so far always says something
    planned("small", {}),
    planned("large", LARGE),
    *(
        planned("large, released order", FULL["large, released order"], n)
        for n in range(3)
    ),
    planned("large, released order", FULL["large, released order"], direction="en-de"),
    *(planned(*arm) for arm in ORDER.items()),
    *(planned(*arm) for arm in LEFT_OUT.items()),
    *(planned("small", {}, seed) for seed in (1, 2)),
    planned("small", {}, direction="en-de"),
    *(
        planned(arm, changes, direction=direction)
        for arm, (direction, changes) in TATOEBA.items()
    ),
    *(planned(*arm) for arm in FURTHER.items()),
    *(planned("large", LARGE, seed) for seed in (1, 2)),
    *(planned(*arm) for arm in LONGER.items()),
    planned("large", LARGE, direction="en-de"),
    *(planned("large, byte pairs", FASTER, seed) for seed in range(3)),
]


def plan(done):
    """The timings, each alone; then PLAN."""
    timed = [entry["run"] for entry in done]
    for n, one in enumerate(TIMES, start=1):
        if one not in timed:
            return TIMES[:n]
    return TIMES + PLAN


# One run


def run(settings, arm=None, direction=None, changes=None, seed=None, threads=None):
    """Time an update, or train once and say everything about it.

    "last": the model as the last update left it, no running mean and no best epoch.
    losses in nats a token.
    """
    if threads:
        return {"seconds_an_update": seconds_an_update(settings, threads)}
    corpus = load(arm, direction)
    chosen, start = arranged(corpus, settings, changes, seed)
    name = json.dumps([settings, arm, direction, changes, seed])
    out = UNFINISHED / hashlib.sha256(name.encode()).hexdigest()[:12]
    fitted = train(corpus, chosen, start, out)
    model, vocabs, trainer, best_epoch = fitted
    best = trainer.history[best_epoch - 1]
    figures = {
        "updates": trainer.step,
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabularies": list(map(len, vocabs)),
        "frequent_cut": frequent_cut(corpus, vocabs, settings["frequent"]),
        "best_epoch": best_epoch,
        "train_loss": round(best["train_loss"], 4),
        "valid_loss": round(best["valid_loss"], 4),
        "history": [
            {name: round(epoch[name], 3) for name in ("train_loss", "valid_loss")}
            for epoch in trainer.history
        ],
    }
    last = search(trainer.model, vocabs, corpus["valid"])
    figures["last"] = scores(last, corpus, "valid", vocabs)
    found = search(model, vocabs, corpus["valid"])
    figures["valid"] = {
        **scores(found, corpus, "valid", vocabs),
        "perplexity_a_word": perplexity(model, vocabs, corpus["valid"]),
        **looks(found["beam"], corpus, "valid", settings),
    }
    if arm in TESTED:
        found = search(model, vocabs, corpus["test"])
        figures["test"] = {
            **scores(found, corpus, "test", vocabs),
            **looks(found["beam"], corpus, "test", settings),
            **of_test(found["beam"], corpus, settings),
        }
        if corpus.name == "Multi30k":
            pairs = link_gold(corpus["test"], "multi30k-de-en")
            figures["test"]["aer"] = aer_of(model, pairs, vocabs)
    this = planned(arm, changes, seed, direction)
    if this == planned("small", {}) and not MODEL.exists():
        notes = {"command": "make results-real", "settings": asdict(chosen)}
        notes["test"] = figures["test"]
        save_checkpoint(MODEL, model.half(), *vocabs, notes=notes)
    for path in out.parent.glob(f"{out.name}.*"):
        path.unlink()
    return figures


def seconds_an_update(settings, threads):
    """By the clock, {arm: seconds}, of the models that are tested."""
    torch.set_num_threads(threads)
    corpus, found = load_multi30k("de", "en"), {}
    for arm, changes in FULL.items():
        chosen, start = arranged(corpus, settings, {**changes, "num_epochs": 1}, seed=0)
        if start is None:  # all of the text gives the pieces, some of it is timed
            vocabs = make_vocabs(corpus, chosen)
            start = Checkpoint(make_model(chosen, vocabs), *vocabs, None, {}, {})
        pairs = corpus["train"][: settings["timed"] * chosen.batch_size]
        some = replace(corpus, splits={**corpus.splits, "train": pairs})
        trainer = fit(
            some, chosen, start=start, progress=False, loss_function=by_hand.loss
        ).trainer
        found[arm] = round(trainer.seconds / trainer.step, 4)
    torch.set_num_threads(1)
    return found


def load(arm, direction):
    """The text of a run."""
    source, target = direction.split("-")
    if not arm.startswith("Tatoeba"):
        return load_multi30k(source, target)
    columns = ("en", "zh")
    return load_tsv(
        "tatoeba/cmn.txt", source, target, columns=columns, skip_bad_lines=True
    )


def arranged(corpus, settings, changes, seed):
    """The arm's Settings; a Checkpoint to start from, or None.

    decoder: a name of utils.models, which Settings can't say. Byte pairs were measured
    before they could say them: to come to the same numbers, they start from one, too.
    """
    changes = dict(changes)
    decoder = changes.pop("decoder", None)
    recipe = {name: settings[name] for name in asdict(Settings())}
    chosen = Settings(**{**recipe, **changes, "seed": seed})
    if not decoder and chosen.subwords == "unigram":
        return chosen, None
    vocabs = make_vocabs(corpus, chosen)
    torch.manual_seed(seed)
    sizes = {name: getattr(chosen, name) for name in SIZES[chosen.kind]}
    model = build_model(decoder or chosen.kind, *map(len, vocabs), **sizes)
    return chosen, Checkpoint(model, *vocabs, None, {}, {})


def train(corpus, chosen, start, out):
    """`fit`; it goes on with what an interrupted run has left at out."""
    out.parent.mkdir(parents=True, exist_ok=True)
    begun = Path(f"{out}.last.safetensors").exists()
    return fit(
        corpus,
        chosen,
        str(out),
        resume=begun,
        overwrite=not begun,
        start=start,
        progress=sys.stderr.isatty(),
        # The Transformer's gradient is PyTorch's: that by hand is of GRUs alone.
        loss_function=batch_loss if chosen.kind == "transformer" else by_hand.loss,
    )


# What is said about its pieces and its translations


def frequent_cut(corpus, vocabs, number):
    """Of each language, the most frequent words of the training text that are cut.

    {lang: [word, ...]}, the most frequent first; not of a language without spaces.
    """
    found = {}
    for side, vocab in enumerate(vocabs):
        if vocab.lang not in UNSPACED:
            words = Counter(word for pair in corpus["train"] for word in pair[side])
            frequent = [word for word, _ in words.most_common(number)]
            found[vocab.lang] = [w for w in frequent if len(vocab.encode([w]).ids) > 1]
    return found


def search(model, vocabs, pairs):
    """Translations of the pairs' sources: {"greedy": [...], "beam": [...]}."""
    sources = [list(pair.source) for pair in pairs]
    return {
        name: translate_tokens(model, sources, *vocabs, **options)
        for name, options in (("greedy", {}), ("beam", BEAM))
    }


def scores(found, corpus, split, vocabs):
    """BLEU over tokens of both searches; of the beam's texts, BLEU and chrF."""
    references = [as_spelled(pair.target, vocabs[1]) for pair in corpus[split]]
    figures = {
        name: bleu([one.words for one in results], references)
        for name, results in found.items()
    }
    texts = [one.text for one in found["beam"]]
    of_texts = text_scores(texts, corpus.target_texts(split), corpus.target_lang)
    figures |= {"text_bleu": of_texts["bleu"], "chrf": of_texts["chrf"]}
    return {name: round(value, 2) for name, value in figures.items()}


def perplexity(model, vocabs, pairs):
    """Teacher-forced, a word, whatever its pieces; <eos> counts as one."""
    loader = BatchLoader(pairs, *vocabs, 128, shuffle=False)
    pieces = sum(batch.target_lens.sum().item() for batch in loader)
    words = sum(len(pair.target) + 1 for pair in pairs)
    return round(math.exp(evaluate_loss(model, loader) * pieces / words), 2)


def looks(translations, corpus, split, settings):
    """Into English: BLEU by source length with counts; mistakes by kind."""
    if corpus.target_lang != "en":
        return {}
    pairs, words = corpus[split], [one.words for one in translations]
    references = [list(pair.target) for pair in pairs]
    lengths = [len(pair.source) for pair in pairs]
    longest = max(settings["buckets"][-1][1], *lengths)
    buckets = [*settings["buckets"][:-1], (settings["buckets"][-1][0], longest)]
    by_length = quality_by_length(lengths, words, references, buckets)
    return {
        "by_length": [
            [row.label, row.count, round(row.score, 2)]
            for row in by_length
            if row.count
        ],
        "mistakes": mistakes(words, references),
    }


def of_test(translations, corpus, settings):
    """BLEU without the near-copies of training sentences; a few translations."""
    pairs, words = corpus["test"], [one.words for one in translations]
    copies = near_copies(pairs, corpus["train"], settings["near"])
    new = [n for n in range(len(pairs)) if n not in copies]
    sides = [words[n] for n in new], [list(pairs[n].target) for n in new]
    lengths = [len(pair.source) for pair in pairs]
    shown = [lengths.index(n) for n in settings["examples"] if n in lengths]
    return {
        "new": {"sentences": len(new), "beam": round(bleu(*sides), 2)},
        "examples": [
            {
                "source": " ".join(pairs[i].source),
                "reference": " ".join(pairs[i].target),
                "translation": " ".join(words[i]),
            }
            for i in shown
        ],
    }


def near_copies(pairs, train, most):
    """Numbers of the pairs whose source is within so many words of a training source.

    A word inserted, deleted or replaced counts one: the Village's measure.
    """
    spec = spec_from_file_location("near", RESULTS.parent / "village" / "near.py")
    near = module_from_spec(spec)
    spec.loader.exec_module(near)
    index = near.Neighbours([list(pair.source) for pair in pairs], most)
    return {n for pair in train for n, _ in index.near(list(pair.source))}


KINDS = {
    "colours": "black white red blue green yellow brown gray grey orange pink purple",
    "numbers": "one two three four five six seven eight nine ten",
    "people": "man men woman women boy boys girl girls child children",
}


def mistakes(translations, references):
    """How many translations have each mistake that can be seen without understanding.

    A sentence counts once for each kind; most that are wrong in other ways count for
    none. Words of a kind are compared as multisets.
    """
    pairs = zip(translations, references, strict=True)
    found = [mistakes_of_one(*pair) for pair in pairs]
    return {name: sum(one[name] for one in found) for name in found[0]}


def mistakes_of_one(words, reference):
    def differ_in(listed):
        ours, theirs = (
            sorted(w for w in side if w in listed.split())
            for side in (words, reference)
        )
        return ours != theirs

    ours, theirs = Counter(words), Counter(reference)
    return {
        "equal to the reference": words == reference,
        "a word twice in a row": any(a == b for a, b in pairwise(words)),
        # Of four letters or more: "a", "the" and "in" come again in good sentences.
        "a word again": any(
            n > 1 == theirs[word] for word, n in ours.items() if len(word) > 3
        ),
        "much too short": len(words) < 0.7 * len(reference),
        "much too long": len(words) > 1.4 * len(reference),
        **{f"other {kind}": differ_in(listed) for kind, listed in KINDS.items()},
    }
