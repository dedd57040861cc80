"""Which score, which order, which query: one table at equal budget.

Notebook 08 reads what is stored. About an hour on two cores. Every arm differs from the
first, "additive", in what its name says; encoder, sizes, batches, steps and rate are
the same unless the name says otherwise. All train and are tested on the sentences of at
most 15 words, so that many runs fit into the hour. The arms with two layers have a
budget of their own and are to be compared with "two layers, top".
"""

import numpy as np
import torch

from tools.experiments.runs import aer_of, bleu_of, build, train, up_to, village
from utils.data import Batch
from utils.text import UNK_ID

SEEDS = (0, 1, 2)
SETTINGS = {
    "direction": "en-fr",
    "embed_size": 64,
    "num_hiddens": 128,
    "bidirectional": True,
    "batch_size": 64,
    "num_epochs": 4,
    "lr": 6e-3,
    "max_words": 15,
    "positions": 64,
    "erased": 200,
}
SCORES = ("additive", "dot", "scaled dot", "general", "location")
# Two layers learn more slowly: more and smaller batches, of shorter sentences.
TWO = {"num_layers": 2, "changed": {"max_words": 10, "batch_size": 32}}
READING = SCORES[:4]  # the scores that read the source words
LUONG = {"feed": "attentional"}
LONGER = {"changed": {"num_epochs": 12}}
# Each arm's score, order, layers, and what differs from SETTINGS.
ARMS = {
    **{name: {"score": name} for name in SCORES},
    **{
        f"{name}, rate {rate}": {"score": name, "changed": {"lr": rate}}
        for name in READING
        for rate in (0.003, 0.012)
    },
    **{f"{name}, 12 epochs": {"score": name, **LONGER} for name in READING},
    "untrained": {"score": "additive"},
    "fixed context": {"kind": "fixed"},
    **{f"Luong, {name}": {"score": name, **LUONG} for name in READING},
    "Luong, additive, 12 epochs": {"score": "additive", **LUONG, **LONGER},
    "Luong, general, nothing fed": {"score": "general", "feed": "nothing"},
    "Luong, additive, nothing fed": {"score": "additive", "feed": "nothing"},
    "Luong, additive, context fed": {"score": "additive", "feed": "context"},
    "context in the output": {"score": "additive", "context_in_output": True},
    "context in the output, 12 epochs": {
        "score": "additive",
        "context_in_output": True,
        **LONGER,
    },
    "one direction": {"score": "additive", "changed": {"bidirectional": False}},
    "additive, Chinese": {"score": "additive", "changed": {"direction": "en-zh"}},
    "location, Chinese": {"score": "location", "changed": {"direction": "en-zh"}},
    "two layers, top": {**TWO, "score": "additive"},
    "two layers, bottom": {**TWO, "layers": "bottom"},
    "two layers, joined": {**TWO, "layers": "joined"},
    "two layers, mixed": {**TWO, "layers": "mixed"},
    "two layers, hierarchical": {**TWO, "hierarchical": True},
}
SETTINGS["arms"] = ARMS  # so a stored run counts only if its arm was this one
RUNS = [{"arm": arm, "seed": seed} for seed in SEEDS for arm in ARMS]


def build_arm(arm, vocabs, seed=0, settings=SETTINGS):
    """The untrained model of an arm."""
    plan = ARMS[arm]
    sizes = {**settings, **plan, **plan.get("changed", {})}
    names = "score", "feed", "layers"
    options = {name: plan[name] for name in names if name in plan}
    if plan.get("score") == "location":
        options["num_positions"] = settings["positions"]
    kinds = {
        "feed": "luong",
        "context_in_output": "context output",
        "layers": "layer query",
        "hierarchical": "hierarchical",
    }
    kind = next((kinds[name] for name in plan if name in kinds), "attention")
    return build(plan.get("kind", kind), vocabs, seed, sizes, **options)


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
    scores, _ = model(source, batch.target_in, batch.source_lens)
    logp = scores.log_softmax(-1).gather(2, batch.target_out.unsqueeze(2))[:, :T, 0]
    weights = getattr(model.decoder, "attention_weights", None)
    return (logp[S] - logp[:S]).T, None if weights is None else weights[S, :T, :S]


def ranks(values):
    """Ranks along the last axis, from 0. Ties don't occur among real numbers."""
    return values.argsort(-1).argsort(-1).double()


def rank_correlation(a, b):
    """Spearman's correlation of each row of a (T, S) with that of b -> (T,)."""
    a, b = (ranks(x) - (x.shape[-1] - 1) / 2 for x in (a, b))
    return (a * b).sum(-1) / (a * a).sum(-1)


def tops_in_gold(values, pair):
    """For each target word with gold links: is the largest of its row (S) linked?"""
    links = pair.alignment | pair.possible
    linked = {i for _, i in links}
    return [
        (j, i) in links for i, j in enumerate(values.argmax(-1).tolist()) if i in linked
    ]


def agreement(model, pairs, vocabs):
    """What erasing says, beside weights and gold links; means over target words.

    erased_gold, attended_gold: how often the word whose erasure hurts most, or that is
    looked at most, is linked. rank_agreement, top_agreement: correlation of the ranks
    of weights and drops, and how often their tops agree. Without attention, the first.
    """
    model.eval()
    found = {}
    for pair in pairs:
        drops, weights = erasure(pair, model, vocabs)
        new = {"erased_gold": tops_in_gold(drops, pair)}
        if weights is not None:
            new |= {
                "attended_gold": tops_in_gold(weights, pair),
                "rank_agreement": rank_correlation(weights, drops).tolist(),
                "top_agreement": (weights.argmax(-1) == drops.argmax(-1)).tolist(),
            }
        for name, values in new.items():
            found.setdefault(name, []).extend(values)
    return {name: round(float(np.mean(values)), 3) for name, values in found.items()}


def run(settings, arm, seed):
    """Train one arm with one seed; its figures on the test split."""
    plan = {**settings, **ARMS[arm].get("changed", {})}
    corpus, vocabs = village(plan["direction"])
    train_pairs, test = (up_to(corpus[s], plan["max_words"]) for s in ("train", "test"))
    model = build_arm(arm, vocabs, seed, settings)
    figures = {"parameters": sum(p.numel() for p in model.parameters())}
    if arm != "untrained":
        trainer = train(model, train_pairs, vocabs, seed, plan)
        figures["loss"] = round(trainer.history[-1]["train_loss"], 3)
        figures["bleu"] = bleu_of(model, test, vocabs)
    if arm != "fixed context":
        figures["aer"] = aer_of(model, test, vocabs)
    return figures | agreement(model, test[: plan["erased"]], vocabs)
