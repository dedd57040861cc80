"""Real translation: Multi30k German to English; Tatoeba English and Chinese, both ways.

Notebook 11 reads what is stored. `multi30k-de-en.safetensors` is saved beside the other
models. The real text must be there: see the README. Everything is chosen on the
validation split; the test split is scored once, when a run is over.
"""

import math
import sys
import time
from dataclasses import asdict
from itertools import pairwise

from tools.experiments.runs import RESULTS
from utils import by_hand
from utils.checkpoint import save_checkpoint
from utils.corpora import load_multi30k, load_tsv, multi30k_lines
from utils.data import BatchLoader
from utils.decoding import translate_tokens
from utils.metrics import bleu, quality_by_length, text_scores, text_signatures
from utils.recipe import Settings, fit
from utils.subwords import as_spelled
from utils.text import detokenize
from utils.training import evaluate_loss

WORKERS = 1
MODEL = RESULTS.parent / "models" / "multi30k-de-en.safetensors"
BEAM = {"beam_size": 5, "length_penalty": 1.0}
BUCKETS = [(1, 8), (9, 11), (12, 14), (15, 18), (19, 99)]
SHORT = 4  # epochs of the runs that leave one thing out
TATOEBA = {"num_epochs": 6}
NO_REMEDIES = {"alpha": 0.0, "dropout": 0.0, "label_smoothing": 0.0}
EXAMPLES = (8, 11, 14, 17)  # words in the sentences shown: the first of each length
SETTINGS = {
    **asdict(Settings()),
    "beam": BEAM,
    "buckets": BUCKETS,
    "examples": EXAMPLES,
    "signatures": text_signatures(),
}
LEFT_OUT = {
    "all of it": {},
    "whole words": {"source_pieces": 0, "target_pieces": 0},
    "each word cut in one way": {"alpha": 0.0},
    "no dropout": {"dropout": 0.0},
    "no label smoothing": {"label_smoothing": 0.0},
}
RUNS = [
    {"what": "full", "changes": {"seed": 0}},
    {"what": "full", "changes": {"seed": 0, "kind": "fixed translator"}},
    *(
        {"what": name, "changes": {**changes, "num_epochs": SHORT}}
        for name, changes in LEFT_OUT.items()
    ),
    {"what": "none of the remedies", "changes": NO_REMEDIES},
    {"what": "full", "changes": {"seed": 1}},
    {"what": "full", "changes": {"seed": 2}},
    {"what": "Tatoeba, characters", "changes": {"target_pieces": 0, **TATOEBA}},
    # There are 3,600 characters: pieces must be more.
    {"what": "Tatoeba, pieces", "changes": {"target_pieces": 6000, **TATOEBA}},
    {"what": "Tatoeba, into English", "changes": {"source_pieces": 0, **TATOEBA}},
]


def run(settings, what, changes):
    """One training and everything said about it."""
    chosen = Settings(**{name: settings[name] for name in asdict(Settings())} | changes)
    if what.startswith("Tatoeba"):
        languages = ("zh", "en") if what.endswith("into English") else ("en", "zh")
        corpus = load_tsv(
            "tatoeba/cmn.txt", *languages, columns=("en", "zh"), skip_bad_lines=True
        )
    else:
        corpus = load_multi30k("de", "en")
    start, cpu = time.perf_counter(), time.process_time()
    model, vocabs, trainer, best_epoch = fit(
        corpus, chosen, progress=sys.stderr.isatty(), loss_function=by_hand.loss
    )
    figures = {
        "minutes": round((time.perf_counter() - start) / 60, 1),
        "cpu_minutes": round((time.process_time() - cpu) / 60, 1),
        "parameters": sum(p.numel() for p in model.parameters()),
        "vocabularies": list(map(len, vocabs)),
        "best_epoch": best_epoch,
        "history": [
            {name: round(epoch[name], 3) for name in ("train_loss", "valid_loss")}
            for epoch in trainer.history
        ],
        "valid": scores(model, vocabs, corpus, "valid", settings),
        "valid, without averaging": scores(
            trainer.model, vocabs, corpus, "valid", settings
        ),
    }
    if what == "full" or what.startswith("Tatoeba"):
        figures["test"] = scores(model, vocabs, corpus, "test", settings)
        figures["test"]["more"] = closer_look(model, vocabs, corpus["test"], settings)
    if what == "full" and chosen == Settings():
        notes = {"command": "make results-real", "settings": asdict(chosen)}
        notes["test"] = figures["test"]
        save_checkpoint(MODEL, model.half(), *vocabs, notes=notes)
    return figures


def scores(model, vocabs, corpus, split, settings):
    """Greedy and by beam search: BLEU and chrF of the texts; perplexity a word.

    greedy_tokens: BLEU over this course's tokens, lower-cased, as published tutorials
    score (with spaCy's tokens).
    """
    pairs = corpus[split]
    if corpus.name == "Multi30k":
        references = multi30k_lines(split, corpus.target_lang)
    else:
        references = [detokenize(pair.target, corpus.target_lang) for pair in pairs]
    found = {}
    for name, search in (("greedy", {}), ("beam", settings["beam"])):
        results = translate_tokens(model, [p.source for p in pairs], *vocabs, **search)
        if corpus.target_lang == "zh":
            characters = [as_spelled(pair.target, vocabs[1]) for pair in pairs]
            found[name] = round(bleu([r.words for r in results], characters), 2)
        else:
            texts = text_scores([r.text for r in results], references)
            found[name] = round(texts["bleu"], 2)
            found[f"{name}_chrf"] = round(texts["chrf"], 2)
        if name == "greedy":
            words = [r.words for r in results]
            found["greedy_tokens"] = round(bleu(words, [p.target for p in pairs]), 2)
    loader = BatchLoader(pairs, *vocabs, 128, shuffle=False)
    pieces = sum(batch.target_lens.sum().item() for batch in loader)
    words = sum(len(pair.target) + 1 for pair in pairs)
    nats = evaluate_loss(model, loader) * pieces
    found["perplexity_a_word"] = round(math.exp(nats / words), 2)
    return found


def closer_look(model, vocabs, pairs, settings):
    """BLEU by source length, counts of mistakes by kind, and a few translations."""
    results = translate_tokens(
        model, [pair.source for pair in pairs], *vocabs, **settings["beam"]
    )
    words, references = [r.words for r in results], [list(p.target) for p in pairs]
    lengths = [len(pair.source) for pair in pairs]
    by_length = quality_by_length(lengths, words, references, settings["buckets"])
    shown = [lengths.index(length) for length in settings["examples"]]
    return {
        "bleu_by_length": {
            bucket.label: [bucket.count, round(bucket.score, 2)] for bucket in by_length
        },
        "mistakes": mistakes(words, references),
        "examples": [
            {
                "source": " ".join(pairs[i].source),
                "reference": " ".join(pairs[i].target),
                "translation": " ".join(words[i]),
            }
            for i in shown
        ],
    }


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

    return {
        "equal to the reference": words == reference,
        "a word twice in a row": any(a == b for a, b in pairwise(words)),
        "much too short": len(words) < 0.7 * len(reference),
        "much too long": len(words) > 1.4 * len(reference),
        **{f"other {kind}": differ_in(listed) for kind, listed in KINDS.items()},
    }
