"""What the tests of training, of its files and of the gradient by hand share."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from utils.checkpoint import FORMAT
from utils.data import Batch, BatchLoader, Pair
from utils.models import build_model
from utils.text import Vocab
from utils.training import Trainer

ROOT = Path(__file__).resolve().parents[2]
LETTERS = "abcdefgh"
# A training of a second, by the command, in a folder with pairs.tsv.
NEW = """--source en --target fr --tsv pairs.tsv --out model --num-epochs 1
    --source-pieces 300 --target-pieces 300 --batch-size 32 --embed-size 8
    --num-hiddens 12 --enc-hiddens 8"""


def write_pairs(path, n=120):
    """A file of n pairs: made-up words, and the same in capitals; returns its path."""
    rng = random.Random(0)
    with open(path, "w", encoding="utf-8") as file:
        for size in rng.choices(range(2, 7), k=n):
            words = [rng.choices(LETTERS, k=rng.randint(1, 4)) for _ in range(size)]
            text = " ".join(map("".join, words))
            file.write(f"{text}\t{text.upper()}\n")
    return path


def start(folder, words, processes=1):
    """The training command in processes of its own, at work in a folder."""
    several = f"torch.distributed.run --standalone --nproc-per-node {processes} -m"
    program = f"-m {several * (processes > 1)} utils.train {words}".split()
    own = {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    own["PYTHONIOENCODING"] = "ascii"  # as a system may have it that isn't UTF-8
    return subprocess.Popen(
        [sys.executable, *program],
        cwd=folder,
        env={**os.environ, **own},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def toy(n=60, seed=0):
    """Copy with the letters in capitals: small enough to be learnt in seconds."""
    rng, pairs = random.Random(seed), []
    for size in rng.choices(range(1, 6), k=n):
        word = tuple(rng.choices(LETTERS, k=size))
        pairs.append(Pair(word, tuple(letter.upper() for letter in word)))
    return pairs, (Vocab([list(LETTERS)], "en"), Vocab([list(LETTERS.upper())], "en"))


def setup(
    num_epochs=3, kind="attention", batch_size=16, hiddens=16, dropout=0.0, **options
):
    """A trainer of a small model on the toy data, and the vocabularies."""
    pairs, vocabs = toy()
    torch.manual_seed(0)
    rest = {"enc_hiddens": 12} if "translator" in kind else {"num_layers": 2}
    model = build_model(kind, *map(len, vocabs), 8, hiddens, dropout=dropout, **rest)
    loader = BatchLoader(pairs, *vocabs, batch_size=batch_size, seed=1)
    valid = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=16)
    options = {"lr": 1e-2, **options}
    return Trainer(model, loader, num_epochs, valid, **options), vocabs


def weights(model):
    """The parameters as plain values, to compare bit for bit."""
    return {name: value.tolist() for name, value in model.state_dict().items()}


def outcome(trainer):
    """What a training came to: all but its seconds."""
    history = [{**entry, "seconds": None} for entry in trainer.history]
    models = weights(trainer.model), weights(trainer.averaged)
    return list(trainer.losses), history, *models


def rewrite(path, change):
    """Store a checkpoint again, after change(header, tensors)."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        header = json.loads(file.metadata()["header"])
    change(header, tensors)
    save_file(tensors, path, {"format": FORMAT, "header": json.dumps(header)})


def random_batch(seed, B=4, S=6, T=5, V=11):
    """A batch of random words and lengths; the first sentence is as long as can be."""
    generator = torch.Generator().manual_seed(seed)

    def sentences(longest):
        lens = torch.randint(1, longest + 1, (B,), generator=generator)
        lens[0] = longest
        ids = torch.randint(4, V, (B, longest), generator=generator)
        return ids * (torch.arange(longest) < lens[:, None]), lens

    target_in = torch.randint(4, V, (B, T), generator=generator)
    return Batch(*sentences(S), target_in, *sentences(T))
