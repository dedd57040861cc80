"""What to expect of one's own text: BLEU and minutes by the number of sentence pairs.

Notebook 11 reads what is stored. The real text must be there: see the README. Trained
by the command's own settings for so many pairs; the test split is scored once. Three
seeds where that takes minutes. All of Multi30k is in `multi30k.json`.
"""

import random
import time
from dataclasses import asdict, replace

from tools.experiments.multi30k import BEAM
from utils import by_hand
from utils.corpora import load_multi30k, load_tsv
from utils.decoding import translate_tokens
from utils.metrics import text_scores, text_signatures
from utils.recipe import Settings, fit

SETTINGS = {"beam": BEAM, "signature": text_signatures()["bleu"]}
CORPORA = ("Multi30k de→en", "Tatoeba zh→en")
RUNS = [  # pairs: None for all
    *({"corpus": corpus, "pairs": 10_000, "seed": 0} for corpus in CORPORA),
    {"corpus": "Tatoeba zh→en", "pairs": None, "seed": 0},
    *(
        {"corpus": corpus, "pairs": 1000, "seed": seed}
        for seed in range(3)
        for corpus in CORPORA
    ),
]


def corpus_of(name, pairs, seed):
    """The corpus with so many training pairs, drawn by the seed."""
    if name == "Multi30k de→en":
        corpus = load_multi30k("de", "en")
    else:
        corpus = load_tsv(
            "tatoeba/cmn.txt", "zh", "en", columns=("en", "zh"), skip_bad_lines=True
        )
    train = corpus["train"]
    if pairs:
        train = random.Random(f"{pairs} pairs, seed {seed}").sample(train, pairs)
    return replace(corpus, splits={**corpus.splits, "train": train})


def run(settings, corpus, pairs, seed):
    """One training, and the test split's scores."""
    text = corpus_of(corpus, pairs, seed)
    languages = text.source_lang, text.target_lang
    chosen = Settings.for_text(len(text["train"]), *languages, seed=seed)
    start = time.process_time()
    fitted = fit(text, chosen, progress=False, loss_function=by_hand.loss)
    minutes = (time.process_time() - start) / 60
    sources = [pair.source for pair in text["test"]]
    figures = {
        "training_pairs": len(text["train"]),
        "settings": asdict(chosen),
        "cpu_minutes": round(minutes, 1),
        "vocabularies": list(map(len, fitted.vocabs)),
        "best_epoch": fitted.best_epoch,
        "valid_loss": round(
            fitted.trainer.history[fitted.best_epoch - 1]["valid_loss"], 3
        ),
    }
    for name, search in (("greedy", {}), ("beam", settings["beam"])):
        found = translate_tokens(fitted.model, sources, *fitted.vocabs, **search)
        texts = [one.text for one in found]
        scores = text_scores(texts, text.target_texts("test"), text.target_lang)
        figures[name] = {metric: round(value, 2) for metric, value in scores.items()}
    return figures
