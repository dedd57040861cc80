"""What a score costs: seconds of one step over sizes and source lengths.

`make results` writes `score_speed.json`, which notebook 08 reads. About two minutes,
with one thread and nothing else running. The kinds are timed in turn, in random order,
so that a slow moment of the machine meets all of them; stored are the median, the
fastest and the slowest of ROUNDS times.
"""

import json
import platform
import random
import statistics
import time
from pathlib import Path

import torch

from utils.attention import (
    AdditiveAttention,
    BilinearAttention,
    DotProductAttention,
    LocationAttention,
)
from utils.seq2seq import build_model

PATH = Path(__file__).resolve().with_suffix(".json")
ROUNDS, LEAST = 25, 2e-3  # times of each; a time covers as many calls as fill 2 ms
SETTINGS = {
    "batch_size": 64, "threads": 1, "rounds": ROUNDS,
    "lengths": [5, 10, 20, 40, 80], "sizes": [32, 64, 128, 256, 512],
    "at_length": 20, "at_size": 128,
    "decoding": {"batch_size": 16, "embed_size": 64, "vocab_size": 400,
                 "lengths": [5, 10, 20, 40, 80, 160]},
}  # fmt: skip
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
        "location": LocationAttention(H, H, S),
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
        leaf = queries.requires_grad_()
        context, _ = attention.attend(leaf, keys, states, lens)
        context.sum().backward(inputs=[leaf, keys])

    def update():
        with torch.no_grad():
            rnn(inputs, hidden)

    calls = {"GRU update": update}
    for name, attention in kinds(S, H).items():
        keys = attention.project_keys(states).detach()
        learnt = keys.clone().requires_grad_()
        calls[name] = lambda a=attention, k=keys: once(a, k)
        calls[f"{name}, keys every step"] = lambda a=attention: every(a)
        if name != "location":  # no gradient for keys that it doesn't read
            calls[f"{name}, with gradient"] = lambda a=attention, k=learnt: gradient(
                a, k
            )
    return calls


def decode(model, source, lens, T):
    """Write T words one by one, the encoder included."""
    with torch.no_grad():
        state = model.decoder.init_state(model.encoder(source, lens), lens)
        word = source[:, :1]
        for _ in range(T):
            _, state = model.decoder(word, state)


def decoding_calls(S):
    """S words translated into S words, with and without attention."""
    settings = SETTINGS["decoding"]
    V, B = settings["vocab_size"], settings["batch_size"]
    torch.manual_seed(0)
    source, lens = torch.randint(4, V, (B, S)), torch.full((B,), S)
    models = {
        kind: build_model(kind, V, V, settings["embed_size"], SETTINGS["at_size"])
        for kind in ("attention", "fixed")
    }
    return {k: lambda m=m: decode(m, source, lens, S) for k, m in models.items()}


if __name__ == "__main__":
    torch.set_num_threads(SETTINGS["threads"])
    steps = []
    for S, H in GRID:
        times = alternating(step_calls(S, H, SETTINGS["batch_size"]))
        steps.append({"S": S, "H": H, "microseconds": times})
        print(S, H, {name: t[0] for name, t in times.items()}, flush=True)
    decoding = []
    for S in SETTINGS["decoding"]["lengths"]:
        decoding.append({"S": S, "microseconds": alternating(decoding_calls(S))})
        print(decoding[-1], flush=True)
    stored = {
        "command": "make results", "settings": SETTINGS, "torch": torch.__version__,
        "python": platform.python_version(), "machine": platform.machine(),
        "steps": steps, "decoding": decoding,
    }  # fmt: skip
    PATH.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
