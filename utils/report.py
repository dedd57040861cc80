"""What the training command says, and the files that it writes beside the model."""

import csv
import os
import shlex
import sys

from tqdm.auto import tqdm

from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.data_check import is_long
from utils.decoding import MAX_SOURCE, translate
from utils.metrics import text_scores, text_signatures

SEARCHES = {"greedy": {}, "beam": {"beam_size": 5, "length_penalty": 1.0}}
SHOWN = ("source", "reference", "output")


def say(*lines):
    """Print, above a progress bar if there is one; of several processes, the first.

    Without anyone to read it, nothing is printed: the training goes on.
    """
    if os.environ.get("RANK", "0") != "0":
        return
    try:
        for line in lines:
            tqdm.write(line, file=sys.stdout)
        sys.stdout.flush()
    except OSError:  # its reader has left, or a disk is full: from here on, nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Report:
    """Says how a training goes, at once, and writes OUT.log.csv and OUT.png."""

    def __init__(self, out):
        self.out = out

    def begin(self, trainer, vocabs, corpus, findings):
        """Before the first step: what is trained on what."""
        self.sources = [pair.source for pair in corpus["valid"]]
        self.references = corpus.target_texts("valid")
        order = sorted(range(len(self.sources)), key=lambda i: len(self.sources[i]))
        # Shown after each epoch: a short, a middling and a long one of the sentences.
        self.shown = [order[len(order) * share // 6] for share in (1, 3, 5)]
        pieces = [f"{len(vocab):,} pieces of {vocab.lang}" for vocab in vocabs]
        parameters = sum(p.numel() for p in trainer.model.parameters())
        say(
            repr(corpus),
            *findings,
            f"vocabularies: {' and '.join(pieces)}",
            f"{trainer.model.config['kind']}, {parameters:,} parameters",
            f"epochs done: {len(trainer.history)} of {trainer.num_epochs}, each "
            f"{len(trainer.loader):,} batches of {trainer.loader.batch_size}; learning "
            f"rate up to {trainer.lr}",
        )

    def epoch(self, trainer, vocabs):
        """After an epoch: its figures and three sentences; the log and the curves."""
        entry, number = trainer.history[-1], len(trainer.history)
        found = translate(trainer.averaged, self.sources, *vocabs)
        texts = [one.text for one in found]
        bleu = text_scores(texts, self.references, vocabs[1].lang)["bleu"]
        say(
            f"epoch {number} of {trainer.num_epochs}: loss "
            f"{entry['train_loss']:.3f} in training, {entry['valid_loss']:.3f} in "
            f"validation; BLEU {bleu:.1f}; {entry['seconds']:.1f} s"
        )
        row = {"epoch": number, **entry, "bleu": bleu, "lr": trainer.lr}
        for n, i in enumerate(self.shown, 1):
            three = self.sources[i], self.references[i], texts[i]
            for what, text in zip(SHOWN, three, strict=True):
                say(f"    {what:9} {text}")
                row[f"{what}_{n}"] = text
        path = f"{self.out}.log.csv"
        new = number == 1 or not os.path.exists(path)
        with open(path, "w" if new else "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if new:
                writer.writeheader()
            writer.writerow(row)
        draw_curves(f"{self.out}.png", trainer.history)


def draw_curves(path, history):
    """A picture of the losses, by epochs."""
    from utils.plotting import plot_curves, plt  # here, since it takes a while

    names = {"training": "train_loss", "validation": "valid_loss"}
    curves = {label: [one[name] for one in history] for label, name in names.items()}
    epochs = range(1, len(history) + 1)
    figure = plot_curves(epochs, curves, "epoch", "loss, nats a token").figure
    figure.savefig(path, dpi=120)
    plt.close(figure)


def test_scores(model, vocabs, corpus):
    """BLEU and chrF of the test split's texts, by each search, and their signatures.

    A source that is too long counts as an empty translation.
    """
    sources = [pair.source for pair in corpus["test"]]
    fits = [not is_long(source, vocabs[0], MAX_SOURCE) for source in sources]
    short = [source for source, fit in zip(sources, fits, strict=True) if fit]
    references, lang = corpus.target_texts("test"), corpus.target_lang
    scores = {"signature": text_signatures(lang, references)["bleu"]}
    for name, search in SEARCHES.items():
        found = iter(translate(model, short, *vocabs, **search))
        texts = [next(found).text if fit else "" for fit in fits]
        scores[name] = text_scores(texts, references, lang)
    return scores | {"sentences": len(sources)}


def finish(fitted, corpus, out):
    """After the last epoch: the test split is scored, unless it has been."""
    path = f"{out}.safetensors"
    say(f"the best epoch is {fitted.best_epoch}: {path}")
    notes = load_checkpoint(path).notes
    if corpus.splits.get("test"):
        if "test" not in notes:
            notes["test"] = test_scores(fitted.model, fitted.vocabs, corpus)
            save_checkpoint(path, fitted.model, *fitted.vocabs, notes=notes)
        scores = notes["test"]
        say(f"the test split, {scores['sentences']:,} sentences, scored once:")
        for name, label in (("greedy", "greedy"), ("beam", "beam of 5")):
            one = scores[name]
            say(
                f"    {label:9} BLEU {one['bleu']:.2f}, lower-cased "
                f"{one['bleu_lower']:.2f}, chrF {one['chrf']:.2f}"
            )
        say(f"    BLEU is {scores['signature']}")
    say(f"translate with it: python -m utils.translate {shlex.quote(path)} < in.txt")
