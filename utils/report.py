"""What the training command stores and says."""

import csv
import os
import shlex
import sys
import warnings
from dataclasses import asdict
from pathlib import Path

from tqdm.auto import tqdm

from utils.checkpoint import load_checkpoint, require_equal, save_checkpoint
from utils.data_check import is_long
from utils.decoding import MAX_SOURCE, translate
from utils.metrics import text_scores

SEARCHES = {"greedy": {}, "beam": {"beam_size": 5, "length_penalty": 1.0}}
# What may be new when a training is resumed; the files are known by their checksum.
MAY_CHANGE = (
    "tsv train valid test out resume overwrite from_ "
    "threads device num_epochs lr patience loss precision"
).split()


def say(*lines):
    """Print above a progress bar, in the first process, while there is a reader."""
    if os.environ.get("RANK", "0") != "0":
        return
    try:
        for line in lines:
            tqdm.write(line, file=sys.stdout)
        sys.stdout.flush()
    except OSError:  # its reader has left, or a disk is full: from here on, nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Store:
    """A training's files, and what is said of it.

    out: a path without ending, for OUT.safetensors (the best model so far) and
    OUT.last.safetensors (what `resume` goes on from), both whole at every moment: an
    interrupt costs the running epoch; OUT.log.csv and OUT.png. options: plain values,
    stored with it. Only with `overwrite` are files replaced that are there already.
    """

    def __init__(self, out, options=None, resume=False, overwrite=False):
        self.out, self.options = out, options or {}
        self.resume, self.overwrite = resume, overwrite

    def open(self, settings, corpus):
        """The Checkpoint to resume, or None.

        Raises FileExistsError for a training that would be lost, ValueError for one
        whose settings and options differ in more than MAY_CHANGE.
        """
        now = {"options": self.options, "settings": asdict(settings)}
        self.notes = {**now, "corpus": repr(corpus)}
        if self.resume:
            last = load_checkpoint(f"{self.out}.last.safetensors")
            free = dict.fromkeys(MAY_CHANGE)
            then, now = (n["options"] | n["settings"] | free for n in (last.notes, now))
            require_equal(then, now)
            return last
        endings = ("safetensors", "last.safetensors", "log.csv", "png")
        taken = filter(os.path.exists, [f"{self.out}.{end}" for end in endings])
        if (names := " and ".join(taken)) and not self.overwrite:
            raise FileExistsError(
                f"{names} would be lost: --resume goes on with that "
                "training, --overwrite replaces it, another --out keeps both"
            )
        Path(self.out).parent.mkdir(parents=True, exist_ok=True)
        return None

    def begin(self, trainer, vocabs, corpus, findings):
        """Before the first step: what is trained on what."""
        self.pairs = corpus["valid"]
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

    def epoch(self, trainer, vocabs, is_best):
        """After an epoch: the models are stored first, and reported afterwards."""
        notes = {**self.notes, "epoch": len(trainer.history)}
        if is_best:
            path = f"{self.out}.safetensors"
            save_checkpoint(path, trainer.averaged, *vocabs, notes=notes)
        path = f"{self.out}.last.safetensors"
        save_checkpoint(path, trainer.model, *vocabs, trainer, notes)
        try:
            self.report(trainer, vocabs)
        except Exception as error:  # whatever it is, the training goes on
            said = f"epoch {notes['epoch']} is stored, but its report failed: {error!r}"
            warnings.warn(said, stacklevel=1)

    def report(self, trainer, vocabs):
        """An epoch's figures and a sentence, said and logged; the curves."""
        from utils.plotting import plot_curves, plt  # here, since it takes a while

        entry, number = trainer.history[-1], len(trainer.history)
        sources, references = zip(*(pair[:2] for pair in self.pairs), strict=True)
        texts = [one.text for one in translate(trainer.averaged, sources, *vocabs)]
        bleu = text_scores(texts, references, vocabs[1].lang)["bleu"]
        say(
            f"epoch {number} of {trainer.num_epochs}: loss "
            f"{entry['train_loss']:.3f} in training, {entry['valid_loss']:.3f} in "
            f"validation; BLEU {bleu:.1f}; {entry['seconds']:.1f} s"
        )
        rows = sorted(
            zip(sources, references, texts, strict=True), key=lambda r: len(r[0])
        )
        names = "source", "reference", "output"
        shown = dict(zip(names, rows[len(rows) // 2], strict=True))  # a middling one
        say(*(f"    {name:9} {text}" for name, text in shown.items()))
        row = {"epoch": number, **entry, "bleu": bleu, "lr": trainer.lr, **shown}
        mode, path = "w" if number == 1 else "a", f"{self.out}.log.csv"
        with open(path, mode, encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(row))
            if file.tell() == 0:
                writer.writeheader()
            writer.writerow(row)
        names = {"training": "train_loss", "validation": "valid_loss"}
        curves = {said: [e[of] for e in trainer.history] for said, of in names.items()}
        ax = plot_curves(range(1, number + 1), curves, "epoch", "loss, nats a token")
        ax.figure.savefig(f"{self.out}.png", dpi=120)
        plt.close(ax.figure)


def score_line(scores) -> str:
    """What `text_scores` has found, in a line."""
    names = {"BLEU": "bleu", "lower-cased": "bleu_lower", "chrF": "chrf"}
    return ", ".join(f"{said} {scores[name]:.2f}" for said, name in names.items())


def finish(fitted, corpus, out):
    """After the last epoch: the test split is scored, unless it has been.

    A source that is too long counts as an empty translation.
    """
    (model, vocabs, _, best_epoch), path = fitted, f"{out}.safetensors"
    say(f"the best epoch by validation loss is {best_epoch}: {path}")
    notes = load_checkpoint(path).notes
    if (pairs := corpus.splits.get("test")) and "test" not in notes:
        references, scores = corpus.target_texts("test"), {}
        fits = [p.source for p in pairs if not is_long(p.source, vocabs[0], MAX_SOURCE)]
        for name, search in SEARCHES.items():
            found = zip(fits, translate(model, fits, *vocabs, **search), strict=True)
            text_of = {source: best.text for source, best in found}
            texts = [text_of.get(pair.source, "") for pair in pairs]
            scores[name] = text_scores(texts, references, corpus.target_lang)
            scores["signature"] = scores[name].pop("signature")
        notes["test"] = scores | {"sentences": len(pairs)}
        save_checkpoint(path, model, *vocabs, notes=notes)
    if scores := notes.get("test"):
        say(
            f"the test split, {scores['sentences']:,} sentences, scored once:",
            f"    greedy    {score_line(scores['greedy'])}",
            f"    beam of 5 {score_line(scores['beam'])}",
            f"    BLEU is {scores['signature']}",
        )
    say(f"translate with it: python -m utils.translate {shlex.quote(path)} < in.txt")
