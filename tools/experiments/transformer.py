"""Recurrent decoder and Transformer on the same sentences, and what each costs.

Notebook 13 reads what is stored. All arms but "brief", which the notebook trains again,
make the same updates on the same batches, each at its own rate, at two budgets. They
train on sentences of at most 15 words; the test split has longer ones, too.

A run stores its curve: the validation BLEU after each epoch, against updates. "times"
stores the seconds of an update: for "additive" by the gradient that PyTorch records,
and by hand. Both together give the quality at equal seconds, for either gradient. The
rate falls to 0 at a training's end, so a score on the way is lower than that of a
training planned to end there: compare curves with curves, and ends with ends.
"""

import random
import statistics
import time
from functools import partial
from itertools import islice

import torch

from tools.experiments import runs
from utils import by_hand
from utils.data import Batch, BatchLoader, cut
from utils.gold import gold_links
from utils.metrics import alignment_error_rate, links_from_weights
from utils.training import batch_loss, train_step
from utils.transformer import MultiHeadAttention

RATES = 0.003, 0.006, 0.012
RECURRENT = {"kind": "attention", "embed_size": 64, "num_hiddens": 128}
RECURRENT["bidirectional"] = True
TRANSFORMER = {"kind": "transformer", "num_heads": 4, "num_layers": 2, "num_ffn": 256}
SMALL = {**TRANSFORMER, "num_hiddens": 64}
ARMS = {
    "additive": RECURRENT,
    "multi-head": {**RECURRENT, "score": "multi-head", "num_heads": 4},
    "Transformer 64": SMALL,
    "Transformer 128": {**TRANSFORMER, "num_hiddens": 128},
    "brief": {**SMALL, "max_words": 10},
}
SETTINGS = {
    "direction": "en-fr",
    "batch_size": 64,
    "max_words": 15,
    "buckets": [(1, 10), (11, 15), (16, 20), (21, 30)],  # source words
    "curve": 300,  # validation sentences scored after each epoch
    "timed": 20,  # batches of the corpus, for the seconds of an update
    "times": {
        "lengths": [5, 10, 20, 40, 80],
        "vocab_size": 400,
        "rounds": 7,
        "training_batch": 64,
        "decoding_batch": 16,
    },
    "arms": ARMS,  # so a stored run counts only if its arm was this one
}
COMPARED = list(ARMS)[:4]
TIMES = "training", "decoding", "corpus"


def plan(done):
    """What a step costs, alone; each arm at its own rate, at both budgets; "brief"."""
    named = [{"times": what} for what in TIMES]
    if len(done) < len(named):
        return named[: len(done) + 1]
    brief = {"arm": "brief", "num_epochs": 3, "lr": 6e-3}
    named += [{**brief, "seed": seed} for seed in runs.SEEDS]
    for arm in COMPARED:
        named += runs.at_own_rate(done, {"arm": arm}, RATES)
    return named


def build(arm, vocabs, seed=0):
    """The untrained model of an arm."""
    return runs.build(ARMS[arm]["kind"], vocabs, seed, ARMS[arm])


@torch.no_grad()
def head_weights(model, batch):
    """Teacher-forced weights of every head, (B, heads, T, S): layer by layer."""
    decoder = model.decoder
    if not isinstance(getattr(decoder, "attention", None), MultiHeadAttention):
        model(batch.source, batch.target_in, batch.source_lens)
        if hasattr(decoder, "head_weights"):
            return decoder.head_weights.flatten(1, 2)
        return decoder.attention_weights.unsqueeze(1)
    encoded, rows = model.encoder(batch.source, batch.source_lens), []
    state = decoder.init_state(encoded, batch.source_lens)
    for word in batch.target_in.split(1, dim=1):
        _, state = decoder(word, state)
        rows.append(decoder.attention.head_weights)
    return torch.cat(rows, dim=2)


def alignment_errors(model, pairs, vocabs):
    """AER of each head, and last of their mean, read in two ways.

    "written": a row of weights aligns the word that the step writes; "read": the word
    that it reads, the one before.
    """
    model.eval()
    links = {"written": [], "read": []}  # of each pair: a list, of each head's
    for part in cut(pairs, 128):
        weights = head_weights(model, Batch.from_pairs(part, *vocabs))
        for heads, pair in zip(weights, part, strict=True):
            heads = torch.cat((heads, heads.mean(dim=0, keepdim=True)))
            for first, found in enumerate(links.values()):
                rows = heads[:, first : first + len(pair.target), : len(pair.source)]
                found.append(list(map(links_from_weights, rows)))
    gold = gold_links(pairs)
    return {
        way: [
            round(alignment_error_rate(own, *gold).aer, 3)
            for own in zip(*found, strict=True)
        ]
        for way, found in links.items()
    }


def run(settings, arm=None, num_epochs=None, seed=None, lr=None, times=None):
    """Time a step, or train one arm with one seed and score it.

    curve: [updates, validation BLEU] after each epoch, of the first `curve` sentences.
    """
    if times:
        if times == "corpus":
            return {"times": time_corpus(settings)}
        return {"times": time_words(settings, times)}
    about = {**settings, **ARMS[arm], "num_epochs": num_epochs, "lr": lr}
    vocabs, pairs, valid, test = runs.short_sentences(about)
    every = runs.village(about["direction"])[0]["test"]
    model, curve = build(arm, vocabs, seed), []

    def score(trainer):
        watched = valid[: about["curve"]]
        curve.append([trainer.step, runs.bleu_of(model, watched, vocabs)])

    figures = runs.trained(model, pairs, valid, vocabs, seed, about, score)
    _, by_length = runs.bleu_by_length(model, every, vocabs, settings["buckets"])
    return {
        **figures,  # cpu_seconds with those of the curve's translations
        "curve": curve,
        "bleu": runs.bleu_of(model, test, vocabs),
        "bleu_by_length": by_length,
        "valid_aer": alignment_errors(model, valid, vocabs),
        "aer": alignment_errors(model, test, vocabs),
    }


# Times: of the processor, so that what other programs do meanwhile isn't counted


def microseconds(calls, rounds):
    """{name: [median, fastest, slowest]} of each call's rounds.

    They are timed in turn, in random order, so that a slow moment of the machine meets
    all of them. A round that isn't counted goes first.
    """
    times = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name in random.sample(list(calls), len(calls)):
            start = time.process_time()
            calls[name]()
            times[name].append(1e6 * (time.process_time() - start))
    three = statistics.median, min, max
    return {name: [of(own[1:]) for of in three] for name, own in times.items()}


def updates(batch, vocabs):
    """{name: an update on the batch}, for each of COMPARED.

    "additive" has its gradient written by hand; "additive, recorded" is the same model
    with the gradient that PyTorch records, as the others have it.
    """
    calls = {}
    for name in [*COMPARED, "additive, recorded"]:
        model = build(name.removesuffix(", recorded"), vocabs)
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        loss = by_hand.loss if name == "additive" else batch_loss
        calls[name] = partial(train_step, model, batch, adam, loss_function=loss)
    return calls


def time_corpus(settings):
    """Processor seconds of an update on the corpus, from some of its batches."""
    vocabs, pairs, _, _ = runs.short_sentences(settings)
    loader = BatchLoader(pairs, *vocabs, settings["batch_size"])
    rows = [
        microseconds(updates(batch, vocabs), 2)
        for batch in islice(loader, settings["timed"])
    ]
    update = {
        name: round(sum(row[name][0] for row in rows) / len(rows) / 1e6, 5)
        for name in rows[0]
    }
    return {"update": update, "updates_an_epoch": len(loader)}


def time_words(settings, what):
    """µs a target word, to train or decode: {S: {name: [median, fastest, slowest]}}.

    Of random sentences of S words; a translation has as many words as its source.
    """
    about, result = settings["times"], {}
    calls = {"training": training, "decoding": decoding}[what]
    vocab, B = range(about["vocab_size"]), about[f"{what}_batch"]
    for S in about["lengths"]:
        torch.manual_seed(0)
        source = torch.randint(4, len(vocab), (B, S))
        named = calls(source, torch.full((B,), S), (vocab, vocab))
        times = microseconds(named, about["rounds"])
        result[S] = {n: [round(t / B / S, 2) for t in row] for n, row in times.items()}
    return result


def training(source, lens, vocabs):
    return updates(Batch(source, lens, source, source, lens), vocabs)


def decoding(source, lens, vocabs):
    """The encoder included."""
    models = {arm: build(arm, vocabs).eval() for arm in COMPARED}
    named = {arm: partial(decode, model, source, lens) for arm, model in models.items()}
    again = partial(read_again, models["Transformer 64"], source, lens)
    return {**named, "prefix read again": again}


@torch.no_grad()
def decode(model, source, lens):
    """Write as many words as the source has, one by one."""
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    for _ in range(source.shape[1]):
        _, state = model.decoder(source[:, :1], state)


@torch.no_grad()
def read_again(model, source, lens):
    """The same; for each word, read all words before it again."""
    encoded, words = model.encoder(source, lens), source[:, :1]
    for _ in range(source.shape[1]):
        first = model.decoder.init_state(encoded, lens)
        scores, _ = model.decoder(words, first)
        words = torch.cat((words, scores[:, -1:].argmax(dim=-1)), dim=1)
