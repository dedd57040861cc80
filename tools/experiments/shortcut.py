"""How far back a target word's gradient reaches, before training and after it.

Fixed context and attention, one-way encoders of equal size. Sentences of one length, so
that positions can be compared and nothing is padding. Notebook 05 reads what is stored:
norms, means over sentences.
"""

import torch

from tools.experiments.runs import build, trained, village
from utils.data import Batch

SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "num_epochs": 4,
    "batch_size": 64,
    "lr": 6e-3,
    "words": 25,
}


def plan(done):
    kinds = "fixed", "attention"
    return [{"kind": kind, "seed": seed} for seed in (0, 1) for kind in kinds]


def run(settings, kind, seed):
    """Measure one model untrained, train it, measure it again."""
    corpus, vocabs = village("en-fr")
    pairs = [pair for pair in corpus["test"] if len(pair.source) == settings["words"]]
    model = build(kind, vocabs, seed, settings)
    before = summary(gradients(model, pairs, vocabs), pairs)
    figures = trained(model, corpus["train"], corpus["valid"], vocabs, seed, settings)
    after = summary(gradients(model, pairs, vocabs), pairs)
    return {**figures, "untrained": before, "trained": after}


def gradients(model, pairs, vocabs):
    """Of each right word's logit, by each embedded source word -> sizes (B, T, S)."""
    batch = Batch.from_pairs(pairs, *vocabs)
    model.eval()
    embedded = model.encoder.embedding(batch.source).detach().requires_grad_()
    # Without padding, nothing has to be packed.
    state = model.decoder.init_state(model.encoder.rnn(embedded), batch.source_lens)
    logits, _ = model.decoder(batch.target_in, state)
    right = logits.gather(2, batch.target_out.unsqueeze(2)).squeeze(2)  # (B, T)
    steps = [  # a sentence's logits depend on its own source alone
        torch.autograd.grad(step.sum(), embedded, retain_graph=True)[0].norm(dim=-1)
        for step in right.unbind(1)
    ]
    return torch.stack(steps, dim=1)


def summary(sizes, pairs):
    """The mean size by source position, of the last word before the full stop; and the
    mean over the words that gold links join, and over those that it doesn't.
    """
    last, linked, others = [], [], []
    for rows, pair in zip(sizes, pairs, strict=True):
        last.append(rows[len(pair.target) - 2])  # then come the full stop and <eos>
        for i in {i for _, i in pair.alignment}:
            partners = [j for j, other in pair.alignment if other == i]
            mask = torch.zeros(len(pair.source) + 1, dtype=torch.bool)
            mask[partners] = True
            linked.append(rows[i, mask].mean())
            others.append(rows[i, ~mask].mean())
    means = {"last_word": last, "linked": linked, "not_linked": others}
    means = {name: torch.stack(sizes).mean(0).tolist() for name, sizes in means.items()}
    means["last_word"] = [float(f"{size:.4g}") for size in means["last_word"]]
    return means
