"""What the tests of training, of its files and of the gradient by hand share."""

import json

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from utils.checkpoint import FORMAT
from utils.data import Batch, BatchLoader, Pair
from utils.models import build_model
from utils.text import Vocab
from utils.training import Trainer

LETTERS = "abcdefgh"

# Settings of a training that takes a second.
SMALL = {
    "source_pieces": 60,
    "target_pieces": 60,
    "embed_size": 8,
    "num_hiddens": 12,
    "enc_hiddens": 8,
}


def toy(n=60, seed=0):
    """Copy with the letters in capitals: small enough to be learnt in seconds."""
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(n):
        size = int(torch.randint(1, 6, (), generator=generator))
        places = torch.randint(0, 8, (size,), generator=generator)
        word = tuple(LETTERS[i] for i in places)
        pairs.append(Pair(word, tuple(letter.upper() for letter in word)))
    return pairs, (Vocab([list(LETTERS)], "en"), Vocab([list(LETTERS.upper())], "en"))


def setup(
    num_epochs=3,
    kind="attention",
    batch_size=16,
    hiddens=16,
    dropout=0.0,
    **options,
):
    """A trainer of a small model on the toy data, and the vocabularies."""
    pairs, vocabs = toy()
    torch.manual_seed(0)
    rest = {"enc_hiddens": 12} if "translator" in kind else {"num_layers": 2}
    sizes = len(vocabs[0]), len(vocabs[1]), 8, hiddens
    model = build_model(kind, *sizes, dropout=dropout, **rest)
    loader = BatchLoader(pairs, *vocabs, batch_size=batch_size, seed=1)
    valid = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=16)
    options = {"lr": 1e-2, **options}
    return Trainer(model, loader, num_epochs, valid, **options), vocabs


def weights(model):
    """The parameters as plain values, to compare bit for bit."""
    return {name: value.tolist() for name, value in model.state_dict().items()}


def outcome(trainer):
    """What a training came to: all but its seconds."""
    history = [{k: v for k, v in e.items() if k != "seconds"} for e in trainer.history]
    return {
        "losses": list(trainer.losses),
        "history": history,
        "model": weights(trainer.model),
        "averaged": weights(trainer.averaged),
    }


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

    def ids(lengths, longest):
        words = torch.randint(4, V, (B, longest), generator=generator)
        return words * (torch.arange(longest) < lengths[:, None])

    def lengths(longest):
        lens = torch.randint(1, longest + 1, (B,), generator=generator)
        lens[0] = longest
        return lens

    source_lens, target_lens = lengths(S), lengths(T)
    target_in, target_out = ids(target_lens, T), ids(target_lens, T)
    return Batch(ids(source_lens, S), source_lens, target_in, target_out, target_lens)
