"""Recurrent decoder and Transformer on the same sentences, and what each costs.

Notebook 14 reads what is stored. All arms but "brief", which the notebook trains again,
make the same updates on the same batches, each at its own rate, at two budgets. They
train on sentences of at most 15 words; the test split has longer ones, too.

A run stores its curve: the validation BLEU after each epoch, against updates. "times"
stores the seconds of an update: for "additive" by the gradient that PyTorch records,
and by hand. Both together give the quality at equal seconds, for either gradient. The
rate falls to 0 at a training's end, so a score on the way is lower than that of a
training planned to end there: compare curves with curves, and ends with ends. About an
hour on one core.
"""

import statistics
from functools import partial
from itertools import islice

import torch

from tools.experiments.runs import (
    at_own_rate,
    bleu_by_length,
    bleu_of,
    train,
    up_to,
    village,
)
from tools.experiments.runs import build as build_recurrent
from tools.experiments.score_speed import in_turn, processor_seconds
from utils import by_hand
from utils.data import Batch, BatchLoader, cut
from utils.gold import gold_links
from utils.metrics import alignment_error_rate, links_from_weights
from utils.models import build_model
from utils.training import evaluate_loss, train_step
from utils.transformer import MultiHeadAttention

SEEDS = (0, 1, 2)
SHORT, LONG = {"num_epochs": 4}, {"num_epochs": 12}
RATES = 0.003, 0.006, 0.012
BUCKETS = ((1, 10), (11, 15), (16, 20), (21, 30))  # source words
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 128,
    "batch_size": 64,
    "num_heads": 4,
    "num_layers": 2,
    "num_ffn": 256,
    "max_words": 15,
    "buckets": BUCKETS,
    "curve": 300,  # validation sentences scored after each epoch
    "timed": 20,  # batches of the corpus, for the seconds of an update
    "times": {
        "lengths": [5, 10, 20, 40, 80],
        "vocab_size": 400,
        "rounds": 7,
        "training_batch": 64,
        "decoding_batch": 16,
    },
}
ARMS = {  # what differs from SETTINGS
    "additive": {},
    "multi-head": {"heads": True},
    "Transformer 64": {"size": 64},
    "Transformer 128": {"size": 128},
    "brief": {"size": 64, "max_words": 10},
}
COMPARED = list(ARMS)[:4]
BRIEF = {"arm": "brief", "num_epochs": 3, "lr": 6e-3}
SETTINGS["arms"] = ARMS  # so a stored run counts only if its arm was this one


def plan(done):
    """What a step costs, alone; each arm at its own rate, at both budgets; "brief"."""
    times = [{"times": name} for name in TIMES]
    timed = [entry["run"] for entry in done]
    for n, one in enumerate(times, start=1):
        if one not in timed:
            return times[:n]
    return [
        *times,
        *({**BRIEF, "seed": seed} for seed in SEEDS),
        *(
            run
            for arm in COMPARED
            for run in at_own_rate(done, {"arm": arm}, RATES, [SHORT, LONG], SEEDS)
        ),
    ]


def build(arm, vocabs, seed=0, settings=SETTINGS):
    """The untrained model of an arm."""
    plan, heads = ARMS[arm], settings["num_heads"]
    if "size" in plan:
        torch.manual_seed(seed)
        sizes = plan["size"], heads, settings["num_layers"], settings["num_ffn"]
        return build_model("transformer", *map(len, vocabs), *sizes)
    names = ("embed_size", "num_hiddens")
    sizes = {name: settings[name] for name in names}
    options = {"score": "multi-head", "num_heads": heads} if "heads" in plan else {}
    sizes["bidirectional"] = True
    return build_recurrent("attention", vocabs, seed, sizes, **options)


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
    for part in cut(pairs, 128):
        weights = head_weights(model, Batch.from_pairs(part, *vocabs))
        for heads, pair in zip(weights, part, strict=True):
            S, T = len(pair.source), len(pair.target)
            for n, head in enumerate([*heads, heads.mean(dim=0)]):
                for way, first in (("written", 0), ("read", 1)):
                    rows = head[first : first + T, :S]
                    own = links.setdefault(way, {}).setdefault(n, [])
                    own.append(links_from_weights(rows))
    gold = gold_links(pairs)
    return {
        way: [round(alignment_error_rate(own, *gold).aer, 3) for own in heads.values()]
        for way, heads in links.items()
    }


def run(settings, arm=None, num_epochs=None, seed=None, lr=None, times=None):
    """Time a step, or train one arm with one seed and score it.

    curve: [updates, validation BLEU] after each epoch, of the first `curve` sentences.
    """
    if times:
        return {"times": TIMES[times](settings)}
    about = {**settings, **ARMS[arm]}
    corpus, vocabs = village(about["direction"])
    pairs, valid, test = (
        up_to(corpus[split], about["max_words"]) for split in ("train", "valid", "test")
    )
    model, curve = build(arm, vocabs, seed, settings), []
    watched = valid[: about["curve"]]
    about |= {"num_epochs": num_epochs, "lr": lr}

    def score(trainer):
        curve.append([trainer.step, bleu_of(model, watched, vocabs)])

    trainer = train(model, pairs, vocabs, seed, about, checkpoint=score)
    _, by_length = bleu_by_length(model, corpus["test"], vocabs, BUCKETS)
    whole = BatchLoader(valid, *vocabs, batch_size=256, shuffle=False)
    return {
        "parameters": sum(p.numel() for p in model.parameters()),
        "updates": trainer.step,
        "train_loss": round(trainer.history[-1]["train_loss"], 4),
        "valid_loss": round(evaluate_loss(model, whole), 4),
        "curve": curve,
        "valid_bleu": bleu_of(model, valid, vocabs),
        "bleu": bleu_of(model, test, vocabs),
        "bleu_by_length": list(by_length.values()),
        "valid_aer": alignment_errors(model, valid, vocabs),
        "aer": alignment_errors(model, test, vocabs),
    }


def some_batch(S, B, V):
    """B random sentences of S words, and translations as long."""
    torch.manual_seed(0)
    words, lens = torch.randint(4, V, (B, S)), torch.full((B,), S)
    return Batch(words, lens, words, words, lens)


def updates(batch, vocabs):
    """{name: an update on the batch}, for each of COMPARED.

    "additive" has its gradient written by hand; "additive, recorded" is the same model
    with the gradient that PyTorch records, as the others have it.
    """
    calls = {}
    for name in [*COMPARED, "additive, recorded"]:
        model = build(name.removesuffix(", recorded"), vocabs)
        adam = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        calls[name] = partial(train_step, model, batch, adam)
    calls["additive"] = partial(calls["additive"], loss_function=by_hand.loss)
    return calls


def a_word(settings, calls):
    """µs a target word: {S: {name: [median, fastest, slowest]}}.

    calls(S) -> {name: a call}, the number of words in one.
    """
    result = {}
    for S in settings["times"]["lengths"]:
        named, words = calls(S)
        times = in_turn(named, settings["times"]["rounds"], processor_seconds)
        result[S] = {n: [round(t / words, 2) for t in row] for n, row in times.items()}
    return result


def time_training(settings):
    """`a_word` of an update."""
    vocab = range(settings["times"]["vocab_size"])
    B = settings["times"]["training_batch"]

    def calls(S):
        return updates(some_batch(S, B, len(vocab)), (vocab, vocab)), B * S

    return a_word(settings, calls)


def time_corpus(settings):
    """Processor time on the corpus, from some of its batches.

    update: seconds of an update; word: µs of a target word, <eos> included.
    """
    corpus, vocabs = village(settings["direction"])
    pairs = up_to(corpus["train"], settings["max_words"])
    loader = BatchLoader(pairs, *vocabs, settings["batch_size"])
    total, words = {}, []
    for batch in islice(loader, settings["timed"]):
        words.append(batch.target_lens.sum().item())
        times = in_turn(updates(batch, vocabs), 2, processor_seconds)
        for name, (middle, _, _) in times.items():
            total.setdefault(name, []).append(middle)
    return {
        "update": {n: round(statistics.mean(t) / 1e6, 5) for n, t in total.items()},
        "word": {n: round(sum(t) / sum(words), 2) for n, t in total.items()},
        "updates_an_epoch": len(loader),
    }


@torch.no_grad()
def decode(model, source, lens, T):
    """Write T words one by one, the encoder included."""
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    for _ in range(T):
        _, state = model.decoder(source[:, :1], state)


@torch.no_grad()
def read_again(model, source, lens, T):
    """Write T words; for each, read all words before it again."""
    encoded, words = model.encoder(source, lens), source[:, :1]
    for _ in range(T):
        first = model.decoder.init_state(encoded, lens)
        scores, _ = model.decoder(words, first)
        words = torch.cat((words, scores[:, -1:].argmax(dim=-1)), dim=1)


def time_decoding(settings):
    """`a_word` of decoding, encoder included."""
    vocab = range(settings["times"]["vocab_size"])
    B = settings["times"]["decoding_batch"]

    def calls(S):
        source, lens, *_ = some_batch(S, B, len(vocab))
        models = {arm: build(arm, (vocab, vocab)).eval() for arm in COMPARED}
        named = {arm: partial(decode, m, source, lens, S) for arm, m in models.items()}
        small = models["Transformer 64"]
        named["prefix read again"] = partial(read_again, small, source, lens, S)
        return named, B * S

    return a_word(settings, calls)


TIMES = {"training": time_training, "decoding": time_decoding, "corpus": time_corpus}
