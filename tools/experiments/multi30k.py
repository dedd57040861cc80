"""Real translation: Multi30k, German to English and back; Tatoeba, English and Chinese.

What lifts a translator of real text: remedies, size, or time? Notebook 11 reads what is
stored, and 14 the Transformers. One metric: BLEU over the course's tokens, lower-cased,
by a beam of 5; beside it greedy decoding, and BLEU and chrF of the texts. Every arm is
scored on the validation split. The test split is scored once, for the full models and
Tatoeba's alone. The shipped `multi30k-de-en.safetensors` is the small model, of seed 0;
notebook 10 and data/gold measure it, too, so it is saved only where there is none.
The real text must be there: see the README. A run takes up to an hour.
"""

import math
import runpy
import sys
from collections import Counter
from dataclasses import asdict, replace
from itertools import pairwise

import torch

from tools.experiments.own_text import BEAM
from tools.experiments.provenance import DATA, data_file, read
from tools.experiments.runs import aer_of, loss
from utils.checkpoint import Checkpoint, save_checkpoint
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
from utils.recipe import Settings, fit, make_model, make_vocabs
from utils.subwords import as_spelled
from utils.training import evaluate_loss

MODEL = DATA / "models" / "multi30k-de-en.safetensors"
SETTINGS = {
    **asdict(Settings()),
    "beam": BEAM,
    "buckets": [(1, 8), (9, 11), (12, 14), (15, 18), (19, 99)],
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
FIXED = {"kind": "fixed translator"}
TRANSFORMER = {"kind": "transformer", "lr": 1e-3}  # the recipe's rate for it
HALF = {"num_epochs": 6}
BRIEF = "Transformer, half the epochs"
FULL = {
    "small": {},
    "large": LARGE,
    "large, byte pairs": FASTER,
    "large, released order": {**FASTER, **RELEASED},
}


def at_rates(name, changes, *rates):
    return {f"{name}, rate {lr}": {**changes, "lr": lr} for lr in rates}


ARMS = {  # what differs from the small full model
    **FULL,
    "half the epochs": HALF,
    "small, 22 epochs": {"num_epochs": 22},
    "large, half the epochs": {**LARGE, **HALF},
    "large, 22 epochs": {**LARGE, "num_epochs": 22},
    # Its other pieces, or its four more epochs?
    "large, byte pairs, 12 epochs": BYTE_PAIRS,
    "released order": RELEASED,
    "released order, half the epochs": {**RELEASED, **HALF},
    # A whole word can't be cut anew: this arm's control is the next one.
    "whole words": {"source_pieces": 0, "target_pieces": 0},
    "one cut a word": {"alpha": 0.0},
    # One cut a word, too: byte pairs have no other.
    "byte pairs": {"alpha": 0.0, "subwords": "bpe"},
    "no dropout": {"dropout": 0.0},
    "no label smoothing": {"label_smoothing": 0.0},
    "no remedies": {"alpha": 0.0, "dropout": 0.0, "label_smoothing": 0.0},
    "fixed context": FIXED,
    **at_rates("fixed context", FIXED, 0.001, 0.006, 0.012),
    "Transformer": TRANSFORMER,
    **at_rates("Transformer", TRANSFORMER, 0.002),
    BRIEF: {**TRANSFORMER, **HALF},
    **at_rates(BRIEF, {**TRANSFORMER, **HALF}, 0.0005, 0.002, 0.004),
}
TATOEBA = {  # into Chinese: there are 3,600 characters, and pieces must be more
    "Tatoeba, characters": ("en-zh", {"target_pieces": 0, **HALF}),
    "Tatoeba, pieces": ("en-zh", {"target_pieces": 6000, **HALF}),
    "Tatoeba, into English": ("zh-en", {"source_pieces": 0, **HALF}),
}
TIMES = {"threads": 2}


def plan(done):
    """The seconds of an update, alone; then every arm, the full models thrice."""
    if TIMES not in [entry["run"] for entry in done]:
        return [TIMES]
    runs = [
        (arm, "de-en", changes, seed)
        for arm, changes in ARMS.items()
        for seed in range(3 if arm in FULL else 1)
    ]
    back = "small", "large", "large, released order"
    runs += [(arm, "en-de", ARMS[arm], 0) for arm in back]
    runs += [(arm, *about, 0) for arm, about in TATOEBA.items()]
    names = "arm", "direction", "changes", "seed"
    return [TIMES, *(dict(zip(names, run, strict=True)) for run in runs)]


def run(settings, arm=None, direction=None, changes=None, seed=None, threads=None):
    """Time an update, or train once and say everything about it.

    "last": the model as the last update left it, no running mean and no best epoch.
    losses in nats a token.
    """
    if threads:
        return {"seconds_an_update": seconds_an_update(settings, threads)}
    corpus = read(f"{'Tatoeba' if arm in TATOEBA else 'Multi30k'} {direction}")
    chosen = Settings(**changes, seed=seed)
    fitted = fit(corpus, chosen, progress=sys.stderr.isatty(), loss_function=loss)
    model, vocabs, trainer, best_epoch = fitted
    history = [
        {name: round(epoch[name], 4) for name in ("train_loss", "valid_loss")}
        for epoch in trainer.history
    ]
    figures = {
        "updates": trainer.step,
        "parameters": sum(p.numel() for p in model.parameters()),
        "frequent_cut": frequent_cut(corpus, vocabs, settings["frequent"]),
        "best_epoch": best_epoch,
        "history": history,
        **history[best_epoch - 1],
        "last": scores(trainer.model, vocabs, corpus, "valid")[0],
    }
    figures["valid"], words = scores(model, vocabs, corpus, "valid")
    figures["valid"]["perplexity_a_word"] = perplexity(model, vocabs, corpus["valid"])
    if corpus.target_lang == "en":
        figures["valid"] |= looks(words, corpus["valid"], settings["buckets"])
    if arm in FULL or arm in TATOEBA:
        test, words = scores(model, vocabs, corpus, "test")
        figures["test"] = test | {"new": of_new(words, corpus, settings["near"])}
        if corpus.name == "Multi30k":
            data_file("gold/multi30k-de-en.tsv")  # which link_gold reads
            pairs = link_gold(corpus["test"], "multi30k-de-en")
            figures["test"]["aer"] = aer_of(model, pairs, vocabs)
    if (arm, direction, seed) == ("small", "de-en", 0) and not MODEL.exists():
        notes = {"command": "make results-real", "settings": asdict(chosen)}
        notes["test"] = figures["test"]
        save_checkpoint(MODEL, model.half(), *vocabs, notes=notes)
    return figures


def seconds_an_update(settings, threads):
    """By the clock, {arm: seconds}, of the models that are tested."""
    torch.set_num_threads(threads)
    corpus, found = read("Multi30k de-en"), {}
    for arm, changes in FULL.items():
        chosen = Settings(**{**changes, "num_epochs": 1})
        vocabs = make_vocabs(corpus, chosen)  # of all of the text; some of it is timed
        start = Checkpoint(make_model(chosen, vocabs), *vocabs, None, {}, {})
        pairs = corpus["train"][: settings["timed"] * chosen.batch_size]
        some = replace(corpus, splits={**corpus.splits, "train": pairs})
        fitted = fit(some, chosen, start=start, progress=False, loss_function=loss)
        found[arm] = round(fitted.trainer.seconds / fitted.trainer.step, 4)
    torch.set_num_threads(1)
    return found


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


def scores(model, vocabs, corpus, split):
    """BLEU over tokens, greedy and by beam; of the beam's texts, BLEU and chrF.

    And the beam's translations: lists of words.
    """
    sources = [list(pair.source) for pair in corpus[split]]
    references = [as_spelled(pair.target, vocabs[1]) for pair in corpus[split]]
    figures = {}
    for name, options in (("greedy", {}), ("beam", BEAM)):
        found = translate_tokens(model, sources, *vocabs, **options)
        words = [one.words for one in found]
        figures[name] = bleu(words, references)
    texts, language = [one.text for one in found], corpus.target_lang
    of_texts = text_scores(texts, corpus.target_texts(split), language)
    figures |= {"text_bleu": of_texts["bleu"], "chrf": of_texts["chrf"]}
    return {name: round(value, 2) for name, value in figures.items()}, words


def perplexity(model, vocabs, pairs):
    """Teacher-forced, a word, whatever its pieces; <eos> counts as one."""
    loader = BatchLoader(pairs, *vocabs, 128, shuffle=False)
    pieces = sum(batch.target_lens.sum().item() for batch in loader)
    words = sum(len(pair.target) + 1 for pair in pairs)
    return round(math.exp(evaluate_loss(model, loader) * pieces / words), 2)


def looks(words, pairs, buckets):
    """BLEU by source length with counts; mistakes by kind."""
    references = [list(pair.target) for pair in pairs]
    lengths = [len(pair.source) for pair in pairs]
    rows = quality_by_length(lengths, words, references, buckets)
    found = list(map(mistakes, words, references))
    return {
        "by_length": [[r.label, r.count, round(r.score, 2)] for r in rows if r.count],
        "mistakes": {kind: sum(one[kind] for one in found) for kind in found[0]},
    }


def of_new(words, corpus, near):
    """BLEU without the near-copies of training sentences.

    Near is a source within so many words of a training source. A word inserted, deleted
    or replaced counts one: the Village's measure.
    """
    nearest = runpy.run_path(str(DATA / "village" / "near.py"))["nearest"]
    sources = ([list(p.source) for p in corpus[split]] for split in ("test", "train"))
    new = [n for n, d in enumerate(nearest(*sources, near)) if d > near]
    references = [list(corpus["test"][n].target) for n in new]
    score = bleu([words[n] for n in new], references)
    return {"sentences": len(new), "beam": round(score, 2)}


COLOURS = "black white red blue green yellow brown gray grey orange pink purple"
NUMBERS = "one two three four five six seven eight nine ten"
PEOPLE = "man men woman women boy boys girl girls child children"


def mistakes(words, reference):
    """Which mistakes of a translation can be seen without understanding it.

    Most that are wrong in other ways have none.
    """
    ours, theirs = Counter(words), Counter(reference)

    def differ_in(listed):
        return any(ours[word] != theirs[word] for word in listed.split())

    return {
        "equal to the reference": words == reference,
        "a word twice in a row": any(a == b for a, b in pairwise(words)),
        # Of four letters or more: "a", "the" and "in" come again in good sentences.
        "a word again": any(n > 1 == theirs[w] for w, n in ours.items() if len(w) > 3),
        "much too short": len(words) < 0.7 * len(reference),
        "much too long": len(words) > 1.4 * len(reference),
        "other colours": differ_in(COLOURS),
        "other numbers": differ_in(NUMBERS),
        "other people": differ_in(PEOPLE),
    }
