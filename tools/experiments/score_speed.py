"""What a score costs: one step of attention, with its gradient, and a whole decoder's.

Notebook 15 reads what is stored. About a minute, with nothing else running. The scores
are timed in turn, in random order, so that a slow moment of the machine meets all of
them; stored are the median, the fastest and the slowest of `rounds` times, in
microseconds.
"""

import random
import statistics
import time
from functools import partial

import torch

from utils.models import build_attention, build_model

LEAST = 5e-3  # seconds: a time covers as many calls as fill them
SETTINGS = {
    "batch_size": 64,
    "threads": 1,
    "rounds": 51,
    "length": 20,
    "size": 128,
    "vocab_size": 400,
    "scores": ["additive", "dot", "scaled dot", "general"],
}


def plan(done):
    return [{}]


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


def calls_of(settings):
    """{what is timed: {score: call}}; keys are projected before, once a sentence."""
    S, H, B = settings["length"], settings["size"], settings["batch_size"]
    V, lens = settings["vocab_size"], torch.full((B,), S)
    queries, states = torch.randn(B, 1, H).tanh(), torch.randn(B, S, H).tanh()
    source = torch.randint(4, V, (B, S))

    @torch.enable_grad()
    def gradient(attention, keys):
        """Forward and backward, as in training: to query, keys, values, parameters."""
        inputs = [queries.detach().requires_grad_(), states.detach().requires_grad_()]
        keys = keys.detach().requires_grad_() if keys is not states else inputs[1]
        context, _ = attention.attend(inputs[0], keys, inputs[1], lens)
        learnt = [p for n, p in attention.named_parameters() if n != "W_k.weight"]
        context.sum().backward(inputs=[*inputs, keys, *learnt])

    found = {"attention": {}, "with its gradient": {}, "decoder's whole step": {}}
    attention_of, gradient_of, step_of = found.values()
    for score in settings["scores"]:
        attention = build_attention(score, H, H, 0.0)
        keys = attention.project_keys(states)
        attention_of[score] = partial(attention.attend, queries, keys, states, lens)
        gradient_of[score] = partial(gradient, attention, keys)
        sizes = {"embed_size": 64, "num_hiddens": H, "bidirectional": True}
        model = build_model("attention", V, V, **sizes, score=score).eval()
        state = model.decoder.init_state(model.encoder(source, lens), lens)
        step_of[score] = partial(model.decoder, source[:, :1], state)
    return found


@torch.no_grad()
def run(settings):
    """{what is timed: {score: [median, fastest, slowest]}}, in microseconds."""
    found = {}
    for what, calls in calls_of(settings).items():
        times = in_turn(calls, settings["rounds"], seconds_a_call)
        found[what] = {n: [round(t, 1) for t in row] for n, row in times.items()}
    return {"microseconds": found}
