"""Which parts of RNNsearch earn their place, and what a beam finds.

Notebook 09 reads what is stored. About forty minutes on two cores. Every run has the
same sizes, pairs, batches, steps and rate, but for the one that is called "brief" and
stops much earlier.
"""

from itertools import product

import torch

from tools.experiments.runs import aer_of, bleu_of, train, village
from utils.data import Batch, cut
from utils.decoding import beam_search, greedy_decode
from utils.metrics import bleu
from utils.models import build_model
from utils.rnnsearch import VARIANTS
from utils.text import EOS_ID, PAD_ID

SEEDS = (0, 1, 2, 3, 4)
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 96,
    "num_maxout": 48,
    "batch_size": 64,
    "num_epochs": 2,
    "num_pairs": 15000,
    "lr": 6e-3,
    "brief": {"num_epochs": 1, "num_pairs": 7500},
    "beam_sizes": [1, 2, 5, 10],
    "length_penalties": [0.0, 1.0],
}
INIT = "the paper's initialisation"
WHOLE, BRIEF = "RNNsearch", "brief"
RUNS = [
    {"arm": arm, "seed": seed}
    for seed in SEEDS
    for arm in (WHOLE, BRIEF, INIT, *list(VARIANTS)[1:])
]


def build(arm, vocabs, seed=0, settings=SETTINGS):
    """The untrained model of an arm; all parts are in place in "brief", too."""
    torch.manual_seed(seed)
    return build_model(
        "rnnsearch",
        *map(len, vocabs),
        settings["embed_size"],
        settings["num_hiddens"],
        settings["num_maxout"],
        variant=arm if arm in VARIANTS else WHOLE,
        published_init=arm == INIT,
    )


def decode(model, pairs, vocabs, beam_size, length_penalty):
    """Words and log-probabilities of all pairs' translations, cap as in `translate`."""
    words, log_probs = [None] * len(pairs), [None] * len(pairs)
    order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].source))
    for chosen in cut(order, 128):
        batch = Batch.from_pairs([pairs[i] for i in chosen], *vocabs)
        ids, scores, _ = beam_search(
            model,
            batch.source,
            batch.source_lens,
            beam_size,
            length_penalty=length_penalty,
        )
        if beam_size == 1:  # the two programs, compared on a trained model
            greedy, _ = greedy_decode(model, batch.source, batch.source_lens)
            assert torch.equal(greedy, ids), "width 1 is not greedy"
        for i, row, score in zip(chosen, ids.tolist(), scores.tolist(), strict=True):
            row = [word for word in row if word not in (PAD_ID, EOS_ID)]
            words[i], log_probs[i] = vocabs[1].to_tokens(row), score
    return words, torch.tensor(log_probs)


def beams(model, pairs, vocabs, settings):
    """For each width and penalty: BLEU, and log-probabilities against greedy's."""
    references = [list(pair.target) for pair in pairs]
    greedy_words, greedy = decode(model, pairs, vocabs, 1, 0.0)
    rows = []
    for penalty, width in product(settings["length_penalties"], settings["beam_sizes"]):
        words, log_probs = decode(model, pairs, vocabs, width, penalty)
        gains = log_probs - greedy
        same = torch.tensor([a == b for a, b in zip(words, greedy_words, strict=True)])
        rows.append(
            {
                "beam_size": width,
                "length_penalty": penalty,
                "bleu": round(bleu(words, references), 2),
                "same_words": share(same),
                "above": share((gains > 0) & ~same),
                "below": share((gains < 0) & ~same),
                "log_prob": round(log_probs.mean().item(), 4),
                "words": round(sum(map(len, words)) / len(pairs), 3),
            }
        )
    return rows


def share(found):
    """How many of these are true, from 0 to 1."""
    return round(found.double().mean().item(), 4)


def run(settings, arm, seed):
    """Train one arm with one seed; BLEU, AER and, for the whole model, beams."""
    corpus, vocabs = village(settings["direction"])
    model = build(arm, vocabs, seed, settings)
    plan = {**settings, **(settings["brief"] if arm == BRIEF else {})}
    pairs = corpus["train"][: plan["num_pairs"]]
    trainer = train(model, pairs, vocabs, seed, plan)
    figures = {
        "bleu": bleu_of(model, corpus["test"], vocabs),
        "aer": aer_of(model, corpus["test"], vocabs),
        "train_loss": round(trainer.history[-1]["train_loss"], 4),
        "updates": trainer.step,
        "seconds": round(trainer.seconds),
        "parameters": sum(p.numel() for p in model.parameters()),
    }
    if arm in (WHOLE, BRIEF):
        figures["beams"] = beams(model, corpus["test"], vocabs, settings)
    return figures
