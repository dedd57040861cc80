"""How far back a target word's gradient reaches, before training and after it.

Fixed context and attention, one-way encoders of equal size. Sentences of one length, so
that positions can be compared and nothing is padding. Notebook 04 reads what is stored.
"""

import torch

from tools.experiments.runs import build, train, village
from utils.data import Batch

SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "num_epochs": 4,
    "batch_size": 64,
    "lr": 6e-3,
    "words": 25,
}
NOTES = {"corpus": "Village en-fr, test split", "quantity": "norm, mean over sentences"}
SEEDS = (0, 1)
RUNS = [
    {"kind": kind, "seed": seed} for seed in SEEDS for kind in ("fixed", "attention")
]
AFTER_LAST_WORD = 2  # the full stop and <eos>


def run(settings, kind, seed):
    """Measure one model untrained, train it, measure it again."""
    corpus, vocabs = village("en-fr")
    pairs = [pair for pair in corpus["test"] if len(pair.source) == settings["words"]]
    model = build(kind, vocabs, seed, settings)
    untrained = summary(gradients(model, pairs, vocabs), pairs)
    trainer = train(model, corpus["train"], vocabs, seed, settings)
    return {
        "sentences": len(pairs),
        "train_loss": round(trainer.history[-1]["train_loss"], 3),
        "untrained": untrained,
        "trained": summary(gradients(model, pairs, vocabs), pairs),
        "seconds": round(trainer.seconds),
    }


def gradients(model, pairs, vocabs):
    """Of each right word's logit, by each embedded source word -> sizes (B, T, S)."""
    batch = Batch.from_pairs(pairs, *vocabs)
    model.eval()
    embedded = model.encoder.embedding(batch.source).detach().requires_grad_()
    # Without padding, nothing has to be packed.
    state = model.decoder.init_state(model.encoder.rnn(embedded), batch.source_lens)
    logits, _ = model.decoder(batch.target_in, state)
    right = logits.gather(2, batch.target_out.unsqueeze(2)).squeeze(2)  # (B, T)
    steps = [
        torch.autograd.grad(step.sum(), embedded, retain_graph=True)[0].norm(dim=-1)
        for step in right.unbind(
            1
        )  # a sentence's logits depend on its own source alone
    ]
    return torch.stack(steps, dim=1)


def summary(sizes, pairs):
    """The mean size by source position, of the last word and of all words; and the mean
    over the words that gold links join, and over those that it doesn't.
    """
    last, every, linked, others = [], [], [], []
    for rows, pair in zip(sizes, pairs, strict=True):
        last.append(rows[len(pair.target) + 1 - AFTER_LAST_WORD - 1])
        every.append(rows[: len(pair.target) + 1].mean(0))
        for i in {i for _, i in pair.alignment}:
            partners = [j for j, other in pair.alignment if other == i]
            mask = torch.zeros(len(pair.source) + 1, dtype=torch.bool)
            mask[partners] = True
            linked.append(rows[i, mask].mean())
            others.append(rows[i, ~mask].mean())
    means = (torch.stack(parts).mean(0) for parts in (last, every, linked, others))
    names = ("last_word", "every_word", "linked", "not_linked")
    return {name: rounded(mean) for name, mean in zip(names, means, strict=True)}


def rounded(values):
    """To four digits."""
    if values.dim():
        return [rounded(value) for value in values]
    return float(f"{values.item():.4g}")
