"""Which score, which order: each choice at its own rate, most at two budgets.

Notebook 07 reads `erased_gold` and `attended_gold`; 09, an exercise of 06 and lecture 3
read the arms. Every arm differs from "additive", the decoder of notebook 05, in what
its name says. All train and are tested on the sentences of at most 15 words.
"""

import torch

from tools.experiments import runs
from utils.alignment import forced_weights, gold_hits
from utils.attention import BilinearAttention
from utils.data import Batch
from utils.text import UNK_ID

RATES = 0.003, 0.006, 0.012
ADDITIVE = {"score": "additive"}
LUONG = {**ADDITIVE, "kind": "luong", "feed": "attentional"}
ARMS = {  # what differs from SETTINGS, and from the decoder of notebook 05
    "additive": ADDITIVE,
    "scaled dot": {"score": "scaled dot"},
    "Luong, additive": LUONG,
    "Luong, scaled dot": {**LUONG, "score": "scaled dot"},
    "dot": {"score": "dot"},
    "general": {"score": "general"},
    "scaled general": {"score": "general", "scaled": True},
    "Luong, additive, context fed": {**LUONG, "feed": "context"},
    "Luong, additive, nothing fed": {**LUONG, "feed": "nothing"},
    "Luong, dot": {**LUONG, "score": "dot"},
    "one direction": {**ADDITIVE, "bidirectional": False},
    "fixed context": {"kind": "fixed"},
    "untrained": ADDITIVE,
}
SETTINGS = {
    "direction": "en-fr",
    **runs.SIZES,
    "max_words": 15,
    "erased": 200,
    "arms": ARMS,  # so a stored run counts only if its arm was this one
}
ERASED = "untrained", "fixed context", "dot", "additive"


def plan(done):
    """The runs: an untrained model; each arm at its own rate, most at both budgets."""
    named = [{"arm": "untrained", "seed": seed} for seed in runs.SEEDS]
    for arm in list(ARMS)[:-1]:
        short = {"num_epochs": [4]} if arm in ("one direction", "Luong, dot") else None
        named += runs.at_own_rate(done, {"arm": arm}, RATES, short or runs.BUDGETS)
    return named


@torch.no_grad()
def erasure(pair, model, vocabs):
    """How much erasing a source word lowers a target word's log probability: (T, S).

    Erased is replaced by <unk>.
    """
    S, T = len(pair.source), len(pair.target)
    batch = Batch.from_pairs([pair] * (S + 1), *vocabs)
    source = batch.source.clone()
    source[range(S), range(S)] = UNK_ID  # the last row stays whole
    scores, _ = model.eval()(source, batch.target_in, batch.source_lens)
    logp = scores.log_softmax(-1).gather(2, batch.target_out.unsqueeze(2))[:, :T, 0]
    return (logp[S] - logp[:S]).T


def agreement(model, pairs, vocabs):
    """How often the word whose erasure hurts most is linked; and the most attended."""
    drops = [erasure(pair, model, vocabs) for pair in pairs]
    found = {"erased_gold": round(gold_hits(drops, pairs), 3)}
    if model.config["kind"] != "fixed":
        weights = forced_weights(model, pairs, vocabs)
        found["attended_gold"] = round(gold_hits(weights, pairs), 3)
    return found


def run(settings, arm, seed, num_epochs=0, lr=None):
    """Train one arm with one seed; its figures on the test split."""
    about = {"kind": "attention", **settings, **ARMS[arm], "seed": seed}
    corpus, vocabs = runs.village(about["direction"])
    model, corpus = runs.build(vocabs, about), runs.short(corpus, about)
    if "scaled" in about:
        H = about["num_hiddens"]
        model.decoder.attention = BilinearAttention(H, H, scaled=True)
    if num_epochs:
        about |= {"num_epochs": num_epochs, "lr": lr}
        figures = runs.scored(model, corpus, vocabs, about)
    else:
        figures = {"aer": runs.aer_of(model, corpus["test"], vocabs)}
    if arm in ERASED and num_epochs <= 4:
        figures |= agreement(model, corpus["test"][: settings["erased"]], vocabs)
    return figures
