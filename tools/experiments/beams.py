"""What a wider beam finds, and what it can't: Village and Multi30k.

Notebook 10 reads what is stored. The models: the shipped ones, and Village models of
the same sizes with a 24th of the training, once with label smoothing. Every search
translates the same sentences, the first of the test split, or the first of these where
the beam is wide: all of them would take twenty times as long. The real text must be
there: see the README.
"""

from itertools import product, zip_longest

import torch

from tools.experiments import models
from tools.experiments.provenance import data_file, read
from tools.experiments.runs import build, share, trained
from utils.checkpoint import load_checkpoint
from utils.data import Batch
from utils.decoding import beam_search
from utils.exact import exact_search
from utils.metrics import bleu, gain_range, words_13a
from utils.subwords import SubwordVocab
from utils.text import EOS_ID

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


def plan(done):
    brief = "Village, brief", "Village, brief, smoothed"
    return [
        *({"model": name, "seed": 0} for name in ("Multi30k", "Village")),
        *({"model": name, "seed": seed} for seed in range(3) for name in brief),
    ]


def load(settings, name, seed):
    """A model, its vocabularies, the sentences; what is said of its training."""
    corpus = read("Multi30k de-en" if name == "Multi30k" else "Village en-fr")
    pairs = corpus["test"][: settings["sentences"]]
    if name in SHIPPED:
        path = data_file(f"models/{SHIPPED[name]}.safetensors")
        model, *vocabs = load_checkpoint(path)[:3]
        return model, vocabs, pairs, {}
    vocabs, plan = corpus.vocabs(), settings["shorter"]
    plan = {**plan, **plan[name.removeprefix("Village, ")]}
    model = build("attention", vocabs, seed, plan)
    part = corpus["train"][: plan["num_pairs"]]
    told = trained(model, part, corpus["valid"], vocabs, seed, plan)
    return model, vocabs, pairs, told


def search(model, pairs, vocabs, beam_size, length_penalty):
    """For each pair the words of its translation, and their log-probability."""
    source, lens, *_ = Batch.from_pairs(pairs, *vocabs)
    ids, log_probs, _ = beam_search(
        model, source, lens, beam_size, length_penalty=length_penalty
    )
    rows = zip(ids.tolist(), log_probs.tolist(), strict=True)
    return [(words_of(row, vocabs[1]), log_prob) for row, log_prob in rows]


def words_of(ids, vocab):
    """The words of a translation; of real text, those that BLEU counts."""
    real = isinstance(vocab, SubwordVocab)
    return words_13a(vocab.decode(ids)) if real else vocab.to_words(ids)


def search_exactly(model, pairs, vocabs, max_rows):
    """The same by exact search; and for each whether the search went through."""
    batches = [Batch.from_pairs([pair], *vocabs) for pair in pairs]
    rows = [exact_search(model, b.source, b.source_lens, max_rows) for b in batches]
    found = [(words_of(ids.tolist(), vocabs[1]), log_prob) for ids, log_prob, _ in rows]
    return found, [certain for _, _, certain in rows]


@torch.no_grad()
def empty_log_probs(model, pairs, vocabs):
    """What the model gives to <eos> as the first word."""
    batch = Batch.from_pairs(pairs, *vocabs)
    scores, _ = model.eval()(batch.source, batch.target_in[:, :1], batch.source_lens)
    return scores[:, 0].log_softmax(dim=-1)[:, EOS_ID].tolist()


def judge(found, best, references, greedy, short):
    """The figures of one search; found, best and greedy: words and log-probabilities.

    best: for each sentence the most probable that any search found. search_errors: the
    share of sentences whose translation is less probable than that. gain: of BLEU,
    against greedy decoding of the same sentences, the first ones if found is shorter;
    gain_range: of other sentences of this kind.
    """
    n, references = len(found), references[: len(found)]
    words, plain = ([words for words, _ in side[:n]] for side in (found, greedy))
    lengths = list(zip(map(len, words), map(len, references), strict=True))
    score = bleu(words, references)

    def below(other, margin=1e-4):  # of rounding
        rows = zip(found, other[:n], strict=True)
        return share([ours[1] < theirs[1] - margin for ours, theirs in rows], 4)

    return {
        "sentences": n,
        "bleu": round(score, 2),
        "gain": round(score - bleu(plain, references), 2),
        "gain_range": [round(x, 2) for x in gain_range(words, plain, references)],
        "log_prob": round(sum(log_prob for _, log_prob in found) / n, 4),
        "length_ratio": round(sum(map(len, words)) / sum(map(len, references)), 4),
        "search_errors": below(best),
        "below_greedy": below(greedy),
        "empty": share([not ours for ours, _ in lengths], 4),
        "short": share([ours < short * theirs for ours, theirs in lengths], 4),
    }


def run(settings, model, seed):
    """All searches of one model."""
    sizes = (settings if model in SHIPPED else settings["shorter"])["beam_sizes"]
    model, vocabs, pairs, told = load(settings, model, seed)
    ids = Batch.from_pairs(pairs, *vocabs).target_out.tolist()
    references = [words_of(row, vocabs[1]) for row in ids]
    wide, found = settings["wide"], {}
    for penalty, size in product(settings["length_penalties"], sizes):
        few = wide["sentences"] if size == wide["beam_size"] else None
        found[penalty, size] = search(model, pairs[:few], vocabs, size, penalty)
    exact, certain = search_exactly(model, pairs, vocabs, settings["max_rows"])
    best = [
        max(filter(None, row), key=lambda one: one[1])
        for row in zip_longest(*found.values(), exact)
    ]
    judged = best, references, found[0.0, 1], settings["short"]
    empty = zip(empty_log_probs(model, pairs, vocabs), found[0.0, 5], strict=True)
    return {
        **told,
        "beams": [
            {"beam_size": size, "length_penalty": penalty, **judge(one, *judged)}
            for (penalty, size), one in found.items()
        ],
        "exact": {"certain": share(certain, 4), **judge(exact, *judged)},
        "empty_above_width_5": share([a > b for a, (_, b) in empty], 4),
    }
