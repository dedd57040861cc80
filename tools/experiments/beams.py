"""What a wider beam finds, and what it can't: Village and Multi30k.

Notebook 10 reads what is stored. The models: the shipped ones; and the control, trained
as the shipped translator of captions was, but without label smoothing, which takes an
hour. Every search translates the same sentences, the first of the test split. The real
text must be there: see the README.
"""

from itertools import product
from statistics import fmean

from tools.experiments.provenance import read
from tools.experiments.runs import every
from utils.checkpoint import load_checkpoint
from utils.data import Batch, BatchLoader, cut
from utils.decoding import beam_search, exact_search
from utils.metrics import bleu, gain_range, words_13a
from utils.recipe import Settings, fit
from utils.subwords import SubwordVocab
from utils.training import evaluate_loss

CONTROL = "Multi30k, no smoothing"
MODELS = {  # a corpus, and the shipped model
    "Multi30k": ("Multi30k de-en", "multi30k-de-en"),
    "Village": ("Village en-fr", "village-en-fr"),
    CONTROL: ("Multi30k de-en", "multi30k-de-en"),
}
SETTINGS = {
    "sentences": 500,
    "beam_sizes": [1, 2, 5, 10, 30],
    "length_penalties": [0.0, 1.0],
    "max_rows": 5_000,
    "control": {"label_smoothing": 0.0},
}
plan = every(model=MODELS, seed=[0])


def load(settings, name, seed):
    """A model, its vocabularies, its corpus; what is said of the control's training."""
    text, file = MODELS[name]
    corpus, saved = read(text), load_checkpoint(read(f"models/{file}.safetensors"))
    if name != CONTROL:
        return saved.model, saved[1:3], corpus, {}
    chosen = {**saved.notes["settings"], **settings["control"], "seed": seed}
    model, vocabs, trainer, best = fit(corpus, Settings(**chosen), progress=False)
    losses = [round(epoch["valid_loss"], 4) for epoch in trainer.history]
    return model, vocabs, corpus, {"best_epoch": best, "valid_losses": losses}


def words_of(ids, vocab):
    """The words of a translation; of real text, those that BLEU counts."""
    real, ids = isinstance(vocab, SubwordVocab), ids.tolist()
    return words_13a(vocab.decode(ids)) if real else vocab.to_words(ids)


def search(model, pairs, vocabs, **options):
    """For each pair the words of its translation, and their log-probability."""
    found = []
    for part in cut(pairs, 50):
        source, lens, *_ = Batch.from_pairs(part, *vocabs)
        ids, log_probs, _ = beam_search(model, source, lens, **options)
        rows = zip(ids, log_probs.tolist(), strict=True)
        found += [(words_of(row, vocabs[1]), log_prob) for row, log_prob in rows]
    return found


def judge(found, best, greedy, references):
    """The figures of one search; found, best and greedy: words and log-probabilities.

    best: for each sentence the most probable that any search found. search_errors: the
    share of sentences whose translation is less probable than that. gain: of BLEU,
    against greedy decoding; gain_range: of other sentences of this kind.
    """
    texts, plain = ([words for words, _ in side] for side in (found, greedy))
    score = bleu(texts, references)

    def below(other, margin=1e-4):  # of rounding
        rows = zip(found, other, strict=True)
        return round(fmean(a[1] < b[1] - margin for a, b in rows), 4)

    return {
        "bleu": round(score, 2),
        "gain": round(score - bleu(plain, references), 2),
        "gain_range": [round(x, 2) for x in gain_range(texts, plain, references)],
        "log_prob": round(sum(log_prob for _, log_prob in found) / len(found), 4),
        "length_ratio": round(sum(map(len, texts)) / sum(map(len, references)), 4),
        "search_errors": below(best),
        "below_greedy": below(greedy),
        "empty": round(fmean(not text for text in texts), 4),
    }


def run(settings, model, seed):
    """All searches of one model; its validation loss, in nats a word or piece."""
    model, vocabs, corpus, told = load(settings, model, seed)
    pairs, target = corpus["test"][: settings["sentences"]], vocabs[1]
    ways = product(settings["length_penalties"], settings["beam_sizes"])
    ways = [{"beam_size": size, "length_penalty": penalty} for penalty, size in ways]
    found = [search(model, pairs, vocabs, **way) for way in ways]
    batches = (Batch.from_pairs([pair], *vocabs) for pair in pairs)
    rows = [exact_search(model, *each[:2], settings["max_rows"]) for each in batches]
    exact = [(words_of(ids, target), log_prob) for ids, log_prob, _ in rows]
    best = [max(row, key=lambda one: one[1]) for row in zip(*found, exact, strict=True)]
    ids = Batch.from_pairs(pairs, *vocabs).target_out
    about = best, found[0], [words_of(row, target) for row in ids]  # greedy first
    loader = BatchLoader(corpus["valid"], *vocabs, 128, shuffle=False)
    return {
        **told,
        "valid_loss": round(evaluate_loss(model, loader), 4),
        "beams": [
            {**way, **judge(one, *about)} for way, one in zip(ways, found, strict=True)
        ],
        "exact": {
            "certain": round(fmean(certain for *_, certain in rows), 4),
            **judge(exact, *about),
        },
    }
