"""Which score, which order: each choice at its own rate, at two budgets.

Notebook 07 reads the figures of `agreement`, exercises of 06 and 09 some of the arms.
Every arm differs from "additive", the decoder of notebook 05, in what its name says.
All train and are tested on the sentences of at most 15 words, those with two layers on
at most 10 and in smaller batches: compare them with "two layers, top". The decoders of
those in GONE have left the course. What is stored of them stays; the commits that it
names made it.
"""

import torch

from tools.experiments import runs
from utils.attention import BilinearAttention
from utils.data import Batch
from utils.text import UNK_ID

RATES = 0.003, 0.006, 0.012
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "max_words": 15,
    "positions": 64,
    "erased": 200,
}
TWO = {"num_layers": 2, "max_words": 10, "batch_size": 32}
CHINESE = {"direction": "en-zh"}
ADDITIVE = {"score": "additive"}
LUONG = {**ADDITIVE, "kind": "luong", "feed": "attentional"}
LOCATION = {"score": "location", "num_positions": SETTINGS["positions"]}
ARMS = {  # what differs from SETTINGS, and from the decoder of notebook 05
    "additive": ADDITIVE,
    "scaled dot": {"score": "scaled dot"},
    "Luong, additive": LUONG,
    "Luong, scaled dot": {**LUONG, "score": "scaled dot"},
    "dot": {"score": "dot"},
    "general": {"score": "general"},
    "scaled general": {"score": "general", "scaled": True},
    "location": LOCATION,
    "context in the output": {**ADDITIVE, "kind": "context output"},
    "Luong, additive, context fed": {**LUONG, "feed": "context"},
    "Luong, additive, nothing fed": {**LUONG, "feed": "nothing"},
    "additive, Chinese": {**ADDITIVE, **CHINESE},
    "location, Chinese": {**CHINESE, **LOCATION},
    "two layers, top": {**TWO, **ADDITIVE},
    "two layers, bottom": {**TWO, "kind": "bottom query"},
    "two layers, own": {**TWO, "kind": "hierarchical"},
    "Luong, dot": {**LUONG, "score": "dot"},
    "Luong, general": {**LUONG, "score": "general"},
    "one direction": {**ADDITIVE, "bidirectional": False},
    "fixed context": {"kind": "fixed"},
    "untrained": ADDITIVE,
}
SETTINGS["arms"] = ARMS  # so a stored run counts only if its arm was this one
GONE = "location", "location, Chinese", "context in the output"
GONE += "two layers, top", "two layers, bottom", "two layers, own"
ONE_BUDGET = "one direction", "Luong, dot", "Luong, general"
ERASED = "untrained", "fixed context", "dot", "general", "additive"


def plan(done):
    """The runs: an untrained model; each arm at its own rate, most at both budgets."""
    named = [entry["run"] for entry in done if entry["run"]["arm"] in GONE]
    named += [{"arm": "untrained", "seed": seed} for seed in runs.SEEDS]
    for arm in list(ARMS)[:-1]:
        if arm not in GONE:
            budgets = runs.BUDGETS[: 1 if arm in ONE_BUDGET else 2]
            named += runs.at_own_rate(done, {"arm": arm}, RATES, budgets)
    return named


@torch.no_grad()
def erasure(pair, model, vocabs):
    """How much erasing each source word lowers each target word's log probability.

    Erased is replaced by <unk>. Returns drops (T, S) and attention weights, (T, S) or
    None for a model without attention.
    """
    S, T = len(pair.source), len(pair.target)
    batch = Batch.from_pairs([pair] * (S + 1), *vocabs)
    source = batch.source.clone()
    source[range(S), range(S)] = UNK_ID  # the last row stays whole
    scores, _ = model.eval()(source, batch.target_in, batch.source_lens)
    logp = scores.log_softmax(-1).gather(2, batch.target_out.unsqueeze(2))[:, :T, 0]
    weights = getattr(model.decoder, "attention_weights", None)
    return (logp[S] - logp[:S]).T, None if weights is None else weights[S, :T, :S]


def tops_in_gold(values, pair):
    """For each target word with gold links: is the largest of its row (S) linked?"""
    links = pair.alignment | pair.possible
    linked = {i for _, i in links}
    return [
        (j, i) in links for i, j in enumerate(values.argmax(-1).tolist()) if i in linked
    ]


def agreement(model, pairs, vocabs):
    """How often the word whose erasure hurts most is linked; and the most attended."""
    found = {"erased_gold": [], "attended_gold": []}
    for pair in pairs:
        drops, weights = erasure(pair, model, vocabs)
        found["erased_gold"] += tops_in_gold(drops, pair)
        if weights is not None:
            found["attended_gold"] += tops_in_gold(weights, pair)
    return {name: runs.share(tops) for name, tops in found.items() if tops}


def run(settings, arm, seed, num_epochs=0, lr=None):
    """Train one arm with one seed; its figures on the test split."""
    about = {"kind": "attention", **settings, **ARMS[arm]}
    vocabs, pairs, valid, test = runs.short_sentences(about)
    model, figures = runs.build(about["kind"], vocabs, seed, about), {}
    if "scaled" in about:
        H = about["num_hiddens"]
        model.decoder.attention = BilinearAttention(H, H, scaled=True)
    if num_epochs:
        about |= {"num_epochs": num_epochs, "lr": lr}
        figures = runs.trained(model, pairs, valid, vocabs, seed, about)
        figures["bleu"] = runs.bleu_of(model, test, vocabs)
    if about["kind"] != "fixed":
        figures["aer"] = runs.aer_of(model, test, vocabs)
    if arm in ERASED and num_epochs <= 4:
        figures |= agreement(model, test[: settings["erased"]], vocabs)
    return figures
