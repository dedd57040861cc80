"""What notebook 07's last exercise asks for, by the course's own classes.

A small model is trained from Chinese to English by the notebook's own loop, with three
seeds. `exercises.own_translator` holds a learner's model against these figures.
"""

import torch

from tools.experiments.runs import SEEDS, SIZES, build, every, short, village
from utils import by_hand
from utils.data import BatchLoader
from utils.decoding import greedy_decode
from utils.exercises.put_together import HELD_OUT, MAX_WORDS, measure
from utils.text import EOS_ID
from utils.training import train_step

SETTINGS = {
    "direction": "zh-en",
    "max_words": MAX_WORDS,
    **SIZES,
    "num_epochs": 4,
    "lr": 6e-3,
    "clip": 1.0,
    "held_out": HELD_OUT,
}
plan = every(seed=SEEDS)


def run(settings, seed):
    """Train with one seed, as the notebook does; figures on held-out sentences."""
    corpus, vocabs = village(settings["direction"])
    pairs = short(corpus, settings)["train"]
    loader = BatchLoader(pairs, *vocabs, settings["batch_size"], seed)
    model = build(vocabs, {**settings, "kind": "attention", "seed": seed})
    optimizer = torch.optim.Adam(model.parameters(), settings["lr"])
    steps = settings["num_epochs"] * len(loader)
    falling = torch.optim.lr_scheduler.LinearLR(optimizer, 1, 0.01, steps)
    for epoch in range(settings["num_epochs"]):
        for batch in loader.epoch(epoch):
            train_step(model, batch, optimizer, settings["clip"], by_hand.loss)
            falling.step()
    # The exercise asks a model for logits and weights, and for ids up to <eos>.
    model.eval().register_forward_hook(
        lambda model, batch, found: (found[0], found[1].attention_weights)
    )

    def written(model, *source):
        rows = greedy_decode(model, *source)[0].tolist()
        return [row[: [*row, EOS_ID].index(EOS_ID)] for row in rows]

    found = measure(model, written)
    return {name: round(value, 3) for name, value in found.items()}
