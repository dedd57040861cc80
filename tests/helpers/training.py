"""What the tests of training, of its files and of the gradient by hand share."""

import json

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from utils.checkpoint import FORMAT, save_checkpoint
from utils.data import Batch, BatchLoader, Pair
from utils.models import build_model
from utils.subwords import SampledLoader, SubwordVocab
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


def toy(n=60, seed=0, letters=LETTERS):
    """Copy with the letters in capitals: small enough to be learnt in seconds."""
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(n):
        size = int(torch.randint(1, 6, (), generator=generator))
        places = torch.randint(0, 8, (size,), generator=generator)
        word = tuple(LETTERS[i] for i in places)
        pairs.append(Pair(word, tuple(letter.upper() for letter in word)))
    return pairs, (Vocab([list(letters)], "en"), Vocab([list(letters.upper())], "en"))


def setup(
    num_epochs=3, data=None, batch_size=16, seed=1, hiddens=16, dropout=0.0, **options
):
    """A trainer of a small model on the toy data, and the vocabularies."""
    pairs, vocabs = data or toy()
    torch.manual_seed(0)
    sizes = len(vocabs[0]), len(vocabs[1]), 8, hiddens
    model = build_model("attention", *sizes, num_layers=2, dropout=dropout)
    loader = BatchLoader(pairs, *vocabs, batch_size=batch_size, seed=seed)
    valid = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=16)
    options = {"lr": 1e-2, **options}
    return Trainer(model, loader, num_epochs, valid, **options), vocabs


def setup_translator(kind="translator", num_epochs=3, alpha=0.2):
    """The same with dropout, words cut anew in each epoch, averaged parameters."""
    pairs = [
        Pair(("".join(word), "ab"), ("".join(pair.target), "AB"))
        for pair in toy(60)[0]
        for word in [pair.source]
    ]
    vocabs = [SubwordVocab.train([p[side] for p in pairs], "en", 30) for side in (0, 1)]
    torch.manual_seed(0)
    model = build_model(kind, *map(len, vocabs), 8, 12, 10, dropout=0.2)
    loader = SampledLoader(pairs, *vocabs, 16, 1, alpha=alpha)
    valid = BatchLoader(pairs[:20], *vocabs)
    trainer = Trainer(model, loader, num_epochs, valid, lr=1e-2, averaging=0.9)
    return trainer, vocabs


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


def everything(trainer):
    """The same, and all else that decides how it goes on."""
    adam = trainer.optimizer.state_dict()["state"]
    return {
        **outcome(trainer),
        "step": trainer.step,
        "adam": {i: {k: v.tolist() for k, v in e.items()} for i, e in adam.items()},
        "random": torch.get_rng_state().tolist(),
    }


def stop_before(trainer, step):
    """Interrupt this trainer once, when it begins that update."""
    loss_function = trainer.loss_function

    def interrupting(model, batch):
        if trainer.step == step:
            trainer.loss_function = loss_function
            raise KeyboardInterrupt
        return loss_function(model, batch)

    trainer.loss_function = interrupting


def rewrite(path, change):
    """Store a checkpoint again, after change(header, tensors); a text replaces it."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        header = json.loads(file.metadata()["header"])
    text = change(header, tensors)
    text = text if isinstance(text, str) else json.dumps(header)
    save_file(tensors, path, {"format": FORMAT, "header": text})


def run(sender, function, *arguments):
    """What a process of its own is started with: it sends by the sender."""
    torch.set_num_threads(1)
    function(sender.send, *arguments)


def train_and_save(send, path, num_epochs):
    """Train from where the file stands; tell of each epoch, and of each save."""
    trainer, vocabs = setup(dropout=0.2, num_epochs=num_epochs)
    if path.exists():
        trainer.resume(path)

    def checkpoint(trainer):
        send(("trained", len(trainer.history)))
        save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
        send(("saved", len(trainer.history)))

    send(("started", len(trainer.history)))
    trainer.fit(checkpoint, progress=False)


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
