"""What a score costs: seconds of one step over sizes and source lengths.

`make results` writes `score_speed.json`, which notebook 08 reads. About two minutes,
with one thread and nothing else running. The kinds are timed in turn, in random order,
so that a slow moment of the machine meets all of them; stored are the median, the
fastest and the slowest of ROUNDS times.

- steps: one attention step of each kind, over sizes and source lengths;
- parts: what an additive step is made of;
- decoders: one step of each decoder of notebook 08, its output layer included;
- decoding: S words into T words, with attention and without.
"""

import json
import platform
import random
import statistics
import time

import torch
from choices import build as build_choice
from runs import RESULTS

from utils.attention import (
    AdditiveAttention,
    BilinearAttention,
    DotProductAttention,
    LocationAttention,
    masked_softmax,
)
from utils.seq2seq import build_model

PATH = RESULTS / "score_speed.json"
ROUNDS, LEAST = 25, 2e-3  # times of each; a time covers as many calls as fill 2 ms
SETTINGS = {
    "batch_size": 64,
    "threads": 1,
    "rounds": ROUNDS,
    "lengths": [5, 10, 20, 40, 80],
    "sizes": [32, 64, 128, 256, 512],
    "at_length": 20,
    "at_size": 128,
    "positions": 80,
    "parts": [(20, 128), (20, 512), (80, 512)],
    "vocab_size": 400,
    "decoders": [
        "additive",
        "dot",
        "general",
        "Luong, additive",
        "Luong, general",
        "context in the output",
        "two layers, top",
        "two layers, bottom",
        "two layers, joined",
        "two layers, mixed",
        "two layers, hierarchical",
    ],
    "decoding": {
        "batch_size": 16,
        "embed_size": 64,
        "source": [5, 20, 40, 80, 160],
        "target": [10, 40, 160],
    },
}
GRID = sorted(
    {(S, SETTINGS["at_size"]) for S in SETTINGS["lengths"]}
    | {(SETTINGS["at_length"], H) for H in SETTINGS["sizes"]}
    | {(max(SETTINGS["lengths"]), max(SETTINGS["sizes"]))}
)


def kinds(S, H):
    return {
        "additive": AdditiveAttention(H, H, H),
        "dot": DotProductAttention(H, H),
        "scaled dot": DotProductAttention(H, H, scaled=True),
        "general": BilinearAttention(H, H),
        "location": LocationAttention(H, H, SETTINGS["positions"]),
    }


def seconds_a_call(call):
    """The mean of as many calls as fill LEAST seconds."""
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < LEAST:
        call()
        calls += 1
    return (time.perf_counter() - start) / calls


def alternating(calls, rounds=ROUNDS):
    """Each call timed in turn: {name: [median, fastest, slowest]} in µs."""
    times, order = {name: [] for name in calls}, list(calls)
    for _ in range(rounds):
        random.shuffle(order)  # none always follows the same other
        for name in order:
            calls[name]()  # what it reads is in the cache now
            times[name].append(1e6 * seconds_a_call(calls[name]))
    return {
        name: [round(f(t), 1) for f in (statistics.median, min, max)]
        for name, t in times.items()
    }


def step_calls(S, H, B):
    """One attention step of each kind; also with the keys projected in it, the gradient
    of a step, and the GRU's update that follows in any case."""
    torch.manual_seed(0)
    # Within -1 and 1, as a GRU's states are.
    queries, states = torch.randn(B, 1, H).tanh(), torch.randn(B, S, H).tanh()
    lens = torch.full((B,), S)
    rnn, inputs = torch.nn.GRU(2 * H, H, batch_first=True), torch.randn(B, 1, 2 * H)
    hidden = torch.randn(1, B, H)

    def once(attention, keys):
        with torch.no_grad():
            attention.attend(queries, keys, states, lens)

    def every(attention):
        with torch.no_grad():
            attention.attend(queries, attention.project_keys(states), states, lens)

    def gradient(attention, keys):
        """Forward and backward, as in training: to query, keys, values, parameters."""
        inputs = [queries.detach().requires_grad_(), states.detach().requires_grad_()]
        keys = keys.requires_grad_() if keys is not states else inputs[1]
        context, _ = attention.attend(inputs[0], keys, inputs[1], lens)
        learnt = [p for n, p in attention.named_parameters() if n != "W_k.weight"]
        context.sum().backward(inputs=[*inputs, keys, *learnt])

    def update():
        with torch.no_grad():
            rnn(inputs, hidden)

    calls = {"GRU update": update}
    for name, attention in kinds(S, H).items():  # W_k works once a sentence, not here
        keys = attention.project_keys(states)
        keys = keys if keys is states else keys.detach()
        calls[name] = lambda a=attention, k=keys: once(a, k)
        calls[f"{name}, keys every step"] = lambda a=attention: every(a)
        calls[f"{name}, with gradient"] = lambda a=attention, k=keys: gradient(a, k)
    return calls


def part_calls(S, H, B):
    """What one additive step does, one thing after the other."""
    torch.manual_seed(0)
    attention = AdditiveAttention(H, H, H)
    queries, states = torch.randn(B, 1, H).tanh(), torch.randn(B, S, H).tanh()
    with torch.no_grad():
        keys, query = attention.project_keys(states), attention.W_q(queries)
        added = query + keys
        features = torch.tanh(added)
        scores = attention.w_v(features).transpose(1, 2)
        weights = masked_softmax(scores, torch.full((B,), S))
    parts = {
        "W_a s": lambda: attention.W_q(queries),
        "sum with U_a h": lambda: query + keys,
        "tanh": lambda: torch.tanh(added),
        "product with v_a": lambda: attention.w_v(features),
        "masked softmax": lambda: masked_softmax(scores, torch.full((B,), S)),
        "weighted sum": lambda: torch.bmm(weights, states),
    }
    return {name: without_gradient(call) for name, call in parts.items()}


def without_gradient(call):
    def quick():
        with torch.no_grad():
            call()

    return quick


def decoder_calls(S, B):
    """One step of each decoder, from a word to scores of the next."""
    vocab = range(SETTINGS["vocab_size"])
    source, lens = torch.randint(4, len(vocab), (B, S)), torch.full((B,), S)
    calls = {}
    for arm in SETTINGS["decoders"]:
        torch.manual_seed(0)
        model = build_choice(arm, (vocab, vocab)).eval()
        with torch.no_grad():
            state = model.decoder.init_state(model.encoder(source, lens), lens)
        calls[arm] = without_gradient(
            lambda d=model.decoder, s=state: d(source[:, :1], s)
        )
    return calls


def decode(model, source, lens, T):
    """Write T words one by one, the encoder included."""
    with torch.no_grad():
        state = model.decoder.init_state(model.encoder(source, lens), lens)
        word = source[:, :1]
        for _ in range(T):
            _, state = model.decoder(word, state)


def decoding_calls(S, T):
    """S words translated into T words, with and without attention."""
    settings = SETTINGS["decoding"]
    V, B = SETTINGS["vocab_size"], settings["batch_size"]
    torch.manual_seed(0)
    source, lens = torch.randint(4, V, (B, S)), torch.full((B,), S)
    models = {
        kind: build_model(kind, V, V, settings["embed_size"], SETTINGS["at_size"])
        for kind in ("attention", "fixed")
    }
    return {k: lambda m=m: decode(m, source, lens, T) for k, m in models.items()}


def timed(calls, **where):
    """A row: where it was measured, and the times."""
    row = {**where, "microseconds": alternating(calls)}
    print(where, {name: t[0] for name, t in row["microseconds"].items()}, flush=True)
    return row


if __name__ == "__main__":
    torch.set_num_threads(SETTINGS["threads"])
    B, settings = SETTINGS["batch_size"], SETTINGS["decoding"]
    stored = {
        "command": "make results",
        "settings": SETTINGS,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "steps": [timed(step_calls(S, H, B), S=S, H=H) for S, H in GRID],
        "parts": [timed(part_calls(S, H, B), S=S, H=H) for S, H in SETTINGS["parts"]],
        "decoders": timed(decoder_calls(SETTINGS["at_length"], B)),
        "decoding": [
            timed(decoding_calls(S, T), S=S, T=T)
            for S in settings["source"]
            for T in settings["target"]
        ],
    }
    PATH.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
