"""`python -m tools.benchmarks.joeynmt`: the course's translator beside JoeyNMT's.

JoeyNMT (Kreutzer et al., 2019) is a toolkit for learners, too. The course doesn't
depend on it; what is needed of it goes to a folder of its own:

    .venv/bin/pip install --target build/joeynmt --no-deps joeynmt==2.3.0 zipp \
        subword-nmt tensorboard absl-py protobuf "importlib-metadata<9"
    PYTHONPATH=build/joeynmt .venv/bin/python -m tools.benchmarks.joeynmt

Both read the same ids of Multi30k in the same batches, and `utils.training.train_step`
trains both, by one thread. The tables go to the README beside this file.
"""

import argparse
import time
from functools import partial
from itertools import chain, count, islice, product
from statistics import median

import torch

from tools.benchmarks import report, speed
from utils.corpora import load_multi30k
from utils.data import BatchLoader
from utils.decoding import step_limit, translate
from utils.metrics import text_scores
from utils.recipe import Settings, make_model, make_vocabs
from utils.text import BOS_ID, EOS_ID, PAD_ID, SPECIALS, UNK_ID
from utils.training import evaluate_loss, train_step

try:
    import joeynmt.search  # and with it batch, model, vocabulary
except ImportError as error:
    how = f"the first lines of {__file__} say how it is installed"
    raise SystemExit(f"JoeyNMT can't be imported ({error}): {how}.") from error

SETTINGS = Settings(subwords="bpe", alpha=0.0)


class Vocabulary(joeynmt.vocabulary.Vocabulary):
    """The course's pieces with their ids, as JoeyNMT's models ask for them."""

    def __init__(self, vocab):
        self._itos, self._stoi = vocab.idx_to_token, vocab.token_to_idx
        self.specials, self.lang_tags, self.sep_index = list(SPECIALS), [], None
        self.pad_index, self.bos_index = PAD_ID, BOS_ID
        self.eos_index, self.unk_index = EOS_ID, UNK_ID


def joey_model(vocabs):
    """JoeyNMT's recurrent model in the same sizes; what isn't named is its default."""
    torch.manual_seed(SETTINGS.seed)
    words = {"embedding_dim": SETTINGS.embed_size, "dropout": SETTINGS.dropout}
    part = {"type": "recurrent", "embeddings": words}
    decoder = {"hidden_size": SETTINGS.num_hiddens, "hidden_dropout": SETTINGS.dropout}
    encoder = {"hidden_size": SETTINGS.enc_hiddens // 2}  # of each direction
    config = {"encoder": part | encoder, "decoder": part | decoder}
    return joeynmt.model.build_model(config, *map(Vocabulary, vocabs))


def joey_batch(batch):
    """A batch in JoeyNMT's class and order, the longest source first; the way back."""
    target = torch.cat((batch.target_in[:, :1], batch.target_out), dim=1)
    rows, device = torch.arange(len(target)), target.device
    sides = batch.source, batch.source_lens, None, target, None
    batch = joeynmt.batch.Batch(*sides, rows, device, PAD_ID, EOS_ID)
    return batch, batch.sort_by_src_length()


def joey_loss(model, batch, label_smoothing=0.0):
    """JoeyNMT's own loss, in nats a token."""
    model.loss_function = "crossentropy", label_smoothing
    batch, _ = joey_batch(batch)
    total, *_ = model(return_type="loss", **vars(batch))
    return batch.normalize(total, "tokens")


def joey_texts(model, batches, vocab):
    """What JoeyNMT's own greedy search writes."""
    model.eval()
    for batch, back in map(joey_batch, batches):
        limit = step_limit(batch.src)
        ids, *_ = joeynmt.search.search(model, batch, limit, beam_size=1, beam_alpha=0)
        for row in ids[back]:
            yield vocab.decode(row[(row == EOS_ID).cumsum() == 0])  # it goes on


SIDES = {"JoeyNMT": joey_loss, **speed.LOSSES}


def start(side, vocabs):
    """A new model, and a function that updates it by a batch, at a learning rate."""
    model = joey_model(vocabs) if side == "JoeyNMT" else make_model(SETTINGS, vocabs)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    loss = partial(SIDES[side], label_smoothing=SETTINGS.label_smoothing)

    def update(batch, rate=0.001):
        optimizer.param_groups[0]["lr"] = rate
        train_step(model, batch, optimizer, loss_function=loss)

    return model, update


def measure_speed(vocabs, batches, rounds):
    """Rows: target tokens a second, in training."""
    tokens = sum(batch.target_lens.sum().item() for batch in batches)

    def pass_over(update):
        for batch in batches:
            update(batch)

    sides = {side: partial(pass_over, start(side, vocabs)[1]) for side in SIDES}
    taken = speed.in_turn(sides, speed.Settings(rounds=rounds, calls=1))
    for side, seconds in taken.items():
        _, times, *_ = report.row(side, speed.ratios(taken["JoeyNMT"], seconds))
        yield [side, f"{tokens / median(seconds):,.0f}", times]


def train(update, loader, minutes, rate):
    """Update for so many minutes of processor time; returns the epochs.

    The learning rate rises to `rate` in the first twentieth of them, then falls to 0.
    """
    begun, batches = time.process_time(), map(loader.epoch, count())
    for updates, batch in enumerate(chain.from_iterable(batches)):
        share = (time.process_time() - begun) / (60 * minutes)
        if share >= 1:
            return updates / len(loader)
        update(batch, rate * min(20 * share, 1 - share))


def measure_quality(corpus, vocabs, loader, minutes, rates):
    """Rows: loss and greedy BLEU of the validation split, after the same minutes."""
    pairs, references = corpus["valid"], corpus.target_texts("valid")
    valid = BatchLoader(pairs, *vocabs, bucketed=False, shuffle=False)
    for side, rate in product(("JoeyNMT", "by hand"), rates):
        model, update = start(side, vocabs)
        epochs = train(update, loader, minutes, rate)
        nats = evaluate_loss(model, valid, SIDES[side])
        if side == "JoeyNMT":
            texts = list(joey_texts(model, valid, vocabs[1]))
        else:
            found = translate(model, [pair.source for pair in pairs], *vocabs)
            texts = [one.text for one in found]
        bleu = text_scores(texts, references, corpus.target_lang)["bleu"]
        size = sum(p.numel() for p in model.parameters())
        yield [side, f"{size:,}", rate, f"{epochs:.1f}", f"{nats:.3f}", f"{bleu:.1f}"]


def main(corpus, minutes, rates, rounds=7, num_batches=10, path=report.README):
    torch.set_num_threads(1)
    vocabs = make_vocabs(corpus, SETTINGS)
    loader = BatchLoader(corpus["train"], *vocabs, SETTINGS.batch_size)
    rows = measure_speed(vocabs, list(islice(loader, num_batches)), rounds)
    head = ["side", "target tokens a second", "as many times as JoeyNMT"]
    report.table("speed beside JoeyNMT", head, rows, path)
    rows = measure_quality(corpus, vocabs, loader, minutes, rates)
    head = ["side", "parameters", "rate", "epochs", "nats a token", "greedy BLEU"]
    report.table("quality beside JoeyNMT", head, rows, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=7, help="of each training")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.003, 0.006, 0.012])
    main(load_multi30k("de", "en"), **vars(parser.parse_args()))
