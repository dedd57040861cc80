"""What a score costs: seconds of one step over sizes and source lengths.

Notebook 15 reads what is stored. About two minutes, with one thread and nothing else
running. The kinds are timed in turn, in random order,
so that a slow moment of the machine meets all of them; stored are the median, the
fastest and the slowest of ROUNDS times.

- steps: one attention step of each kind, over sizes and source lengths;
- parts: what an additive step is made of;
- decoders: one step of each decoder of notebook 08, its output layer included;
- decoding: S words into T words, with attention and without.
"""

import random
import statistics
import time
from functools import partial

import torch

from tools.experiments.choices import build_arm
from tools.experiments.runs import build
from utils.attention import AdditiveAttention, masked_softmax
from utils.models import build_attention

SCORES = "additive", "dot", "scaled dot", "general", "location"
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


def in_turn(calls, rounds, seconds):
    """Each call timed in turn: {name: [median, fastest, slowest]} in µs.

    seconds(call): what one call takes. A round that isn't counted goes first.
    """
    times = {name: [] for name in calls}
    for number in range(rounds + 1):
        for name in random.sample(list(calls), len(calls)):  # none follows always
            taken = seconds(calls[name])
            if number > 0:
                times[name].append(1e6 * taken)
    return {n: [f(t) for f in (statistics.median, min, max)] for n, t in times.items()}


def seconds_a_call(call):
    """The mean of as many calls as fill LEAST seconds."""
    call()  # what it reads is in the cache now
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < LEAST:
        call()
        calls += 1
    return (time.perf_counter() - start) / calls


def processor_seconds(call):
    """Of one thread: what other programs do meanwhile isn't counted."""
    start = time.process_time()
    call()
    return time.process_time() - start


def random_states(S, H, B):
    """Queries (B, 1, H) and encoder states (B, S, H) within -1 and 1, and lengths."""
    torch.manual_seed(0)
    return torch.randn(B, 1, H).tanh(), torch.randn(B, S, H).tanh(), torch.full((B,), S)


def step_calls(S, H, B):
    """One attention step of each kind; also with the keys projected in it, the gradient
    of a step, and the GRU's update that follows in any case."""
    queries, states, lens = random_states(S, H, B)

    def every(attention):
        attention.attend(queries, attention.project_keys(states), states, lens)

    @torch.enable_grad()
    def gradient(attention, keys):
        """Forward and backward, as in training: to query, keys, values, parameters."""
        inputs = [queries.detach().requires_grad_(), states.detach().requires_grad_()]
        keys = keys.detach().requires_grad_() if keys is not states else inputs[1]
        context, _ = attention.attend(inputs[0], keys, inputs[1], lens)
        learnt = [p for n, p in attention.named_parameters() if n != "W_k.weight"]
        context.sum().backward(inputs=[*inputs, keys, *learnt])

    rnn, inputs = torch.nn.GRU(2 * H, H, batch_first=True), torch.randn(B, 1, 2 * H)
    calls = {"GRU update": partial(rnn, inputs, torch.randn(1, B, H))}
    for name in SCORES:  # W_k works once a sentence, not here
        attention = build_attention(name, H, H, 0.0, SETTINGS["positions"])
        keys = attention.project_keys(states)
        calls[name] = partial(attention.attend, queries, keys, states, lens)
        calls[f"{name}, keys every step"] = partial(every, attention)
        calls[f"{name}, with gradient"] = partial(gradient, attention, keys)
    return calls


def part_calls(S, H, B):
    """What one additive step does, one thing after the other."""
    queries, states, lens = random_states(S, H, B)
    attention = AdditiveAttention(H, H, H)
    keys, query = attention.project_keys(states), attention.W_q(queries)
    added = query + keys
    features = torch.tanh(added)
    scores = attention.w_v(features).transpose(1, 2)
    weights = masked_softmax(scores, lens)
    return {
        "W_a s": lambda: attention.W_q(queries),
        "sum with U_a h": lambda: query + keys,
        "tanh": lambda: torch.tanh(added),
        "product with v_a": lambda: attention.w_v(features),
        "masked softmax": lambda: masked_softmax(scores, lens),
        "weighted sum": lambda: torch.bmm(weights, states),
    }


def decoder_calls(S, B):
    """One step of each decoder, from a word to scores of the next."""
    vocab = range(SETTINGS["vocab_size"])
    source, lens = torch.randint(4, len(vocab), (B, S)), torch.full((B,), S)
    calls = {}
    for arm in SETTINGS["decoders"]:
        model = build_arm(arm, (vocab, vocab)).eval()
        state = model.decoder.init_state(model.encoder(source, lens), lens)
        calls[arm] = partial(model.decoder, source[:, :1], state)
    return calls


@torch.no_grad()
def decode(model, source, lens, T):
    """Write T words one by one, the encoder included."""
    state = model.decoder.init_state(model.encoder(source, lens), lens)
    for _ in range(T):
        _, state = model.decoder(source[:, :1], state)


def decoding_calls(S, T):
    """S words translated into T words, with and without attention."""
    plan, vocab = SETTINGS["decoding"], range(SETTINGS["vocab_size"])
    sizes = {"embed_size": plan["embed_size"], "num_hiddens": SETTINGS["at_size"]}
    lens = torch.full((plan["batch_size"],), S)
    source = torch.randint(4, len(vocab), (plan["batch_size"], S))
    models = {k: build(k, (vocab, vocab), 0, sizes) for k in ("attention", "fixed")}
    return {k: partial(decode, model, source, lens, T) for k, model in models.items()}


def timed(calls, **where):
    """A row: where it was measured, and the times."""
    times = in_turn(calls, ROUNDS, seconds_a_call)
    print(where, {name: round(t[0], 1) for name, t in times.items()}, flush=True)
    rounded = {name: [round(t, 1) for t in row] for name, row in times.items()}
    return {**where, "microseconds": rounded}


@torch.no_grad()
def run(settings):
    """The rows of all four tables."""
    torch.set_num_threads(settings["threads"])
    B, decoding = settings["batch_size"], settings["decoding"]
    return {
        "steps": [timed(step_calls(S, H, B), S=S, H=H) for S, H in GRID],
        "parts": [timed(part_calls(S, H, B), S=S, H=H) for S, H in settings["parts"]],
        "decoders": timed(decoder_calls(settings["at_length"], B)),
        "decoding": [
            timed(decoding_calls(S, T), S=S, T=T)
            for S in decoding["source"]
            for T in decoding["target"]
        ],
    }
