"""Recurrent decoder and Transformer on the same sentences, and what each costs.

`make results` writes `transformer.json`, which notebook 12 reads. About 25 minutes on
one core. All arms but "brief", which the notebook trains again, make the same updates
on the same batches. They train on sentences of at most 15 words; the test split has
longer ones, too. The arms in GRID are trained at each of RATES with seed 0; the rate
with the best BLEU on the validation split is theirs.
"""

import random
import statistics
import time
from functools import partial
from itertools import islice

import torch
from runs import RESULTS, run_all, test_bleu, train, translations
from score_speed import decode

from utils.corpora import load_village
from utils.data import Batch, BatchLoader
from utils.metrics import (
    alignment_error_rate,
    links_from_weights,
    quality_by_length,
)
from utils.seq2seq import build_model
from utils.training import evaluate_loss, train_step
from utils.transformer import MultiHeadAttention, build_transformer

PATH = RESULTS / "transformer.json"
SEEDS = (0, 1, 2)
RATES = (1.5e-3, 3e-3, 6e-3, 1.2e-2)
BUCKETS = ((1, 10), (11, 15), (16, 20), (21, 30))  # source words
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 128,
    "batch_size": 64,
    "num_heads": 4,
    "num_layers": 2,
    "num_ffn": 256,
    "num_epochs": 4,
    "max_words": 15,
    "buckets": BUCKETS,
    "times": {
        "lengths": [5, 10, 20, 40, 80],
        "vocab_size": 400,
        "rounds": 7,
        "training_batch": 64,
        "decoding_batch": 16,
    },
}
ARMS = {
    "additive": {"lr": 1.2e-2},
    "multi-head": {"lr": 6e-3, "heads": True},
    "Transformer 64": {"lr": 6e-3, "size": 64},
    "Transformer 128": {"lr": 3e-3, "size": 128},
    "brief": {"lr": 6e-3, "size": 64, "max_words": 10, "num_epochs": 3},
}
GRID = ("additive", "Transformer 64", "Transformer 128", "multi-head")
SETTINGS["arms"] = {  # so a stored run counts only if its arm was this one
    arm: {name: value for name, value in plan.items() if name != "lr"}
    for arm, plan in ARMS.items()
}
RUNS = [
    *({"arm": arm, "seed": 0, "lr": rate} for arm in GRID for rate in RATES),
    *(
        {"arm": arm, "seed": seed, "lr": plan["lr"]}
        for seed in SEEDS
        for arm, plan in ARMS.items()
        if seed > 0 or arm not in GRID
    ),
    *({"times": name} for name in ("training", "decoding", "corpus")),
]


def build(arm, vocab_sizes, settings=SETTINGS):
    """The untrained model of an arm."""
    plan = ARMS[arm]
    heads, sizes = settings["num_heads"], (settings["num_layers"], settings["num_ffn"])
    if "size" in plan:
        return build_transformer(*vocab_sizes, plan["size"], heads, *sizes)
    E, H = settings["embed_size"], settings["num_hiddens"]
    model = build_model("attention", *vocab_sizes, E, H, bidirectional=True)
    if "heads" in plan:
        model.decoder.attention = MultiHeadAttention(H, H, H, heads)
    return model


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
    links = {}
    for start in range(0, len(pairs), 128):
        part = pairs[start : start + 128]
        weights = head_weights(model, Batch.from_pairs(part, *vocabs))
        for heads, pair in zip(weights, part, strict=True):
            S, T = len(pair.source), len(pair.target)
            for n, head in enumerate([*heads, heads.mean(dim=0)]):
                for way, first in (("written", 0), ("read", 1)):
                    rows = head[first : first + T, :S]
                    own = links.setdefault(way, {}).setdefault(n, [])
                    own.append(links_from_weights(rows))
    gold = [pair.alignment for pair in pairs]
    return {
        way: [round(alignment_error_rate(own, gold).aer, 3) for own in heads.values()]
        for way, heads in links.items()
    }


def up_to(pairs, max_words):
    """Those with at most so many source words."""
    return [pair for pair in pairs if len(pair.source) <= max_words]


def run(settings, arm=None, seed=None, lr=None, times=None):
    """Time a step, or train one arm with one seed and score it."""
    if times:
        return {"times": TIMES[times](settings)}
    plan = {**settings, **ARMS[arm]}
    corpus = load_village(*plan["direction"].split("-"))
    vocabs = corpus.vocabs()
    pairs, valid, test = (
        up_to(corpus[split], plan["max_words"]) for split in ("train", "valid", "test")
    )
    torch.manual_seed(seed)
    model = build(arm, list(map(len, vocabs)), settings)
    amounts = plan["num_epochs"], plan["batch_size"], lr
    trainer = train(model, pairs, vocabs, seed, *amounts)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "updates": trainer.step,
        "train_loss": round(trainer.history[-1]["train_loss"], 3),
        "valid_loss": round(evaluate_loss(model, BatchLoader(valid, *vocabs)), 3),
        "valid_bleu": test_bleu(model, valid, vocabs),
        "bleu": test_bleu(model, test, vocabs),
        "bleu_by_length": by_length(model, corpus["test"], vocabs),
        "valid_aer": alignment_errors(model, valid, vocabs),
        "aer": alignment_errors(model, test, vocabs),
    }


def by_length(model, pairs, vocabs):
    """BLEU of each bucket of source lengths."""
    sides = translations(model, pairs, vocabs), [list(pair.target) for pair in pairs]
    lengths = [len(pair.source) for pair in pairs]
    scores = quality_by_length(lengths, *sides, BUCKETS)
    return [round(row.score, 2) for row in scores]


def some_batch(S, B, V):
    """B random sentences of S words, and translations as long."""
    torch.manual_seed(0)
    words, lens = torch.randint(4, V, (B, S)), torch.full((B,), S)
    return Batch(words, lens, words, words, lens)


class Recorded(torch.nn.Module):
    """A model that training doesn't know: PyTorch records its gradient."""

    def __init__(self, model):
        super().__init__()
        self.model, self.encoder, self.decoder = model, model.encoder, model.decoder

    def forward(self, *arguments):
        return self.model(*arguments)


def processor_time(calls, rounds):
    """Each call timed in turn: {name: [median, fastest, slowest]} in µs.

    Processor time, of one thread: what other programs do meanwhile isn't counted.
    """
    times = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name in random.sample(list(calls), len(calls)):
            start = time.process_time()
            calls[name]()
            if number > 0:  # the first warms up
                times[name].append(1e6 * (time.process_time() - start))
    return {n: [f(t) for f in (statistics.median, min, max)] for n, t in times.items()}


def a_word(times, words):
    return {name: [round(t / words, 2) for t in row] for name, row in times.items()}


def updates(batch, vocab_sizes, settings):
    """{name: an update on the batch}, for each of the first four arms.

    "additive, recorded": with the gradient that PyTorch records, as the others have it.
    """
    models = {arm: build(arm, vocab_sizes, settings) for arm in list(ARMS)[:4]}
    models["additive, recorded"] = Recorded(build("additive", vocab_sizes, settings))
    calls = {}
    for name, model in models.items():
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        calls[name] = partial(train_step, model, batch, adam)
    return calls


def time_training(settings):
    """µs a target word of an update: {S: {name: [median, fastest, slowest]}}."""
    plan, result = settings["times"], {}
    V, B = plan["vocab_size"], plan["training_batch"]
    for S in plan["lengths"]:
        calls = updates(some_batch(S, B, V), (V, V), settings)
        result[S] = a_word(processor_time(calls, plan["rounds"]), B * S)
    return result


def time_corpus(settings):
    """Processor seconds of as many updates as an arm makes, from 20 batches."""
    corpus = load_village(*settings["direction"].split("-"))
    vocabs = corpus.vocabs()
    pairs = up_to(corpus["train"], settings["max_words"])
    loader = BatchLoader(pairs, *vocabs, settings["batch_size"])
    count = settings["num_epochs"] * len(loader)
    batches = islice(loader, 20)
    total = {}
    for batch in batches:
        calls = updates(batch, list(map(len, vocabs)), settings)
        for name, (middle, _, _) in processor_time(calls, 2).items():
            total.setdefault(name, []).append(middle / 1e6)
    return {name: round(count * statistics.mean(t), 1) for name, t in total.items()}


@torch.no_grad()
def read_again(model, source, lens, T):
    """Write T words; for each, read all words before it again."""
    encoded, words = model.encoder(source, lens), source[:, :1]
    for _ in range(T):
        first = model.decoder.init_state(encoded, lens)
        scores, _ = model.decoder(words, first)
        words = torch.cat((words, scores[:, -1:].argmax(dim=-1)), dim=1)


def time_decoding(settings):
    """µs a target word of decoding, encoder included: as in `time_training`."""
    plan, result = settings["times"], {}
    V, B = plan["vocab_size"], plan["decoding_batch"]
    for S in plan["lengths"]:
        source, lens, *_ = some_batch(S, B, V)
        calls = {
            arm: partial(decode, build(arm, (V, V), settings).eval(), source, lens, S)
            for arm in list(ARMS)[:4]
        }
        small = build("Transformer 64", (V, V), settings).eval()
        calls["prefix read again"] = partial(read_again, small, source, lens, S)
        result[S] = a_word(processor_time(calls, plan["rounds"]), B * S)
    return result


TIMES = {"training": time_training, "decoding": time_decoding, "corpus": time_corpus}

if __name__ == "__main__":
    run_all(PATH, run, RUNS, SETTINGS, workers=1)
