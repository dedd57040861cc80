"""How far back a target word's gradient reaches, before training and after it.

Fixed context and attention, one-way encoders of equal size. Sentences of one length, so
that positions can be compared and nothing is padding. Notebook 05 reads what is stored:
norms, means over sentences.
"""

import torch

from tools.experiments.runs import build, every, trained, village
from utils.data import Batch

SETTINGS = {
    "embed_size": 64,
    "num_hiddens": 128,
    "num_epochs": 4,
    "batch_size": 64,
    "lr": 6e-3,
    "words": 25,
}
plan = every(seed=(0, 1), kind=("fixed", "attention"))


def run(settings, kind, seed):
    """Measure one model untrained, train it, measure it again."""
    (corpus, vocabs), about = village("en-fr"), {**settings, "kind": kind, "seed": seed}
    pairs = [pair for pair in corpus["test"] if len(pair.source) == settings["words"]]
    model = build(vocabs, about)
    before = gradients(model, pairs, vocabs)
    figures = trained(model, corpus, vocabs, about)
    return {**figures, "untrained": before, "trained": gradients(model, pairs, vocabs)}


def gradients(model, pairs, vocabs):
    """Of each right word's logit, by each embedded source word: means of their sizes.

    last_word: of the last word before the full stop, by source position; linked: over
    the words that gold links join; not_linked: over those that it doesn't.
    """
    batch = Batch.from_pairs(pairs, *vocabs)
    model.eval()
    embedded = model.encoder.embedding(batch.source).detach().requires_grad_()
    # Without padding, nothing has to be packed.
    state = model.decoder.init_state(model.encoder.rnn(embedded), batch.source_lens)
    logits, _ = model.decoder(batch.target_in, state)
    right = logits.gather(2, batch.target_out.unsqueeze(2)).squeeze(2)  # (B, T)
    sizes = [  # (B, S); a sentence's logits depend on its own source alone
        torch.autograd.grad(step.sum(), embedded, retain_graph=True)[0].norm(dim=-1)
        for step in right.unbind(1)
    ]
    found = {"last_word": [], "linked": [], "not_linked": []}
    for rows, pair in zip(torch.stack(sizes, dim=1), pairs, strict=True):  # (T, S)
        found["last_word"].append(rows[len(pair.target) - 2])  # then: full stop, <eos>
        for i in {i for _, i in pair.alignment}:
            mask = torch.zeros(rows.shape[1], dtype=torch.bool)
            mask[[j for j, other in pair.alignment if other == i]] = True
            found["linked"].append(rows[i, mask].mean())
            found["not_linked"].append(rows[i, ~mask].mean())
    means = {name: torch.stack(sizes).mean(0).tolist() for name, sizes in found.items()}
    means["last_word"] = [float(f"{size:.4g}") for size in means["last_word"]]
    return means
