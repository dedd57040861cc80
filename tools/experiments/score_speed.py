"""What a score costs: one step of attention, with its gradient, and a whole decoder's.

Notebook 15 reads what is stored. About a minute, with nothing else running.
"""

import random
import statistics
import time
from functools import partial

import torch

from utils.models import build_attention, build_model

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


def microseconds(calls, rounds, clock=time.perf_counter, repeat=1):
    """{name: [median, fastest, slowest]} of each call's rounds, `repeat` calls each.

    They are timed in turn, in random order, so that a slow moment of the machine meets
    all of them. A round that isn't counted goes first.
    """
    times = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name in random.sample(list(calls), len(calls)):
            start = clock()
            for _ in range(repeat):
                calls[name]()
            times[name].append(1e6 * (clock() - start) / repeat)
    three = statistics.median, min, max
    return {name: [of(own[1:]) for of in three] for name, own in times.items()}


def calls_of(settings):
    """{what is timed: {score: call}}; keys are projected before, once a sentence."""
    S, H, B = settings["length"], settings["size"], settings["batch_size"]
    V, lens = settings["vocab_size"], torch.full((B,), S)
    queries, states = torch.randn(B, 1, H).tanh(), torch.randn(B, S, H).tanh()
    source = torch.randint(4, V, (B, S))

    @torch.enable_grad()
    def gradient(attention, keys):
        """Forward and backward, as in training: to query, keys, values, parameters."""
        inputs = (x.detach().requires_grad_() for x in (queries, keys, states))
        context, _ = attention.attend(*inputs, lens)
        context.sum().backward()

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
        times = microseconds(calls, settings["rounds"], repeat=5)
        found[what] = {n: [round(t, 1) for t in row] for n, row in times.items()}
    return {"microseconds": found}
