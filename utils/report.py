"""What the training command says, and the files that it writes beside the model."""

import copy
import csv
import os
import shlex
import sys
import time
from collections import defaultdict

from tqdm.auto import tqdm

from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.decoding import translate_tokens
from utils.languages import UNSPACED, language_name
from utils.metrics import chrf, text_scores, text_signatures
from utils.subwords import SubwordVocab

FIRST = 20  # batches, after which the time of an epoch is said
BEAM = {"beam_size": 5, "length_penalty": 1.0}
SHOWN = ("source", "reference", "output")


def say(*lines):
    """Print, above a progress bar if there is one; of several processes, the first.

    Without anyone to read it, nothing is printed: the training goes on.
    """
    if os.environ.get("RANK", "0") != "0" or sys.stdout is None:
        return
    try:
        for line in lines:
            tqdm.write(line, file=sys.stdout)
        sys.stdout.flush()
    except BrokenPipeError:  # from here on, what is printed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class Report:
    """Says how the training goes, at once, and writes OUT.log.csv and OUT.png."""

    def __init__(self, corpus, out, loss, settings):
        self.corpus, self.out = corpus, out
        self.most = settings.source_pieces, settings.target_pieces
        gradient = "PyTorch" if loss == "plain" else "hand"
        self.loss = f"cross-entropy, its gradient by {gradient}"
        if settings.label_smoothing:
            self.loss += (
                f"; in training with label smoothing {settings.label_smoothing}"
            )
        pairs = corpus["valid"]
        order = sorted(range(len(pairs)), key=lambda i: len(pairs[i].source))
        # Shown after each epoch: a short, a middling and a long one of the sentences.
        shown = dict.fromkeys(order[len(order) * share // 6] for share in (1, 3, 5))
        self.shown, self.references = list(shown), corpus.target_texts("valid")

    def begin(self, trainer, vocabs):
        """Before the first step: what is trained on what."""
        sizes = {name: len(pairs) for name, pairs in self.corpus.splits.items()}
        say(
            f"{self.corpus.name}, {self.corpus.source_lang}→{self.corpus.target_lang}: "
            + ", ".join(f"{count:,} pairs for {name}" for name, count in sizes.items()),
            *skipped_lines(self.corpus.skipped),
            "vocabularies: " + " and ".join(map(described, vocabs, self.most)),
        )
        for lang in {vocab.lang for vocab in vocabs} & UNSPACED:
            say(f"{lang} has no spaces: text and BLEU are taken character by character")
        parameters = sum(p.numel() for p in trainer.model.parameters())
        say(
            f"{trainer.model.config['kind']}, {parameters:,} parameters; loss: "
            f"{self.loss}",
            f"{counted(trainer.num_epochs, 'epoch')} of "
            f"{len(trainer.loader):,} batches of {trainer.loader.batch_size}, "
            f"learning rate up to {trainer.lr}",
        )
        trainer.step_function = self.timed(trainer.step_function, trainer)

    def timed(self, step, trainer):
        """The step function, which says after FIRST batches what an epoch takes."""
        ends = []

        def timed_step(*arguments):
            loss = step(*arguments)
            if len(ends) < FIRST:
                ends.append(time.perf_counter())
                if len(ends) == FIRST:  # the first batch is slower
                    batch = (ends[-1] - ends[0]) / (FIRST - 1)
                    left = trainer.num_epochs - len(trainer.history)
                    epoch = batch * len(trainer.loader)
                    say(
                        f"an epoch will take about {duration(epoch)}, "
                        f"the {left} to do {duration(left * epoch)}"
                    )
            return loss

        return timed_step

    def epoch(self, trainer, vocabs):
        """After an epoch: its figures and three sentences; the log and the curves."""
        entry, number = trainer.history[-1], len(trainer.history)
        sources = [pair.source for pair in self.corpus["valid"]]
        model = trainer.averaged
        if next(model.parameters()).device.type != "cpu":  # there it is translated
            model = copy.deepcopy(model).cpu()
        texts = [found.text for found in translate_tokens(model, sources, *vocabs)]
        bleu = text_scores(texts, self.references, self.corpus.target_lang)["bleu"]
        say(
            f"epoch {number} of {trainer.num_epochs}: loss "
            f"{entry['train_loss']:.3f} in training, {entry['valid_loss']:.3f} in "
            f"validation; BLEU {bleu:.1f}; {duration(entry['seconds'])}"
        )
        row = {"epoch": number, **entry, "bleu": bleu, "lr": trainer.lr}
        for n, i in enumerate(self.shown, 1):
            three = " ".join(sources[i]), self.references[i], texts[i]
            say(*sample(*three))
            names = [f"{what}_{n}" for what in SHOWN]
            row |= dict(zip(names, three, strict=True))
        if self.out:
            rows = [*self.logged(number), row]
            with open(f"{self.out}.log.csv", "w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(row), restval="")
                writer.writeheader()
                writer.writerows(rows)
            draw_curves(f"{self.out}.png", rows)

    def logged(self, number):
        """The rows of OUT.log.csv before this epoch."""
        if number == 1 or not os.path.exists(f"{self.out}.log.csv"):
            return []
        with open(f"{self.out}.log.csv", encoding="utf-8", newline="") as file:
            return [row for row in csv.DictReader(file) if int(row["epoch"]) < number]


def sample(*sides):
    """Three lines: what was translated, by whom, how."""
    return [f"    {name:9} {text}" for name, text in zip(SHOWN, sides, strict=True)]


def draw_curves(path, rows):
    """A picture of losses and BLEU, by epochs."""
    from matplotlib.figure import Figure  # here, since it takes a while

    def column(name):
        return [float(row[name]) for row in rows]

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    epochs, (left, right) = column("epoch"), figure.subplots(1, 2)
    left.plot(epochs, column("train_loss"), ".-", label="training")
    left.plot(epochs, column("valid_loss"), ".-", label="validation")
    left.set(xlabel="epoch", ylabel="loss, nats a token")
    left.legend()
    right.plot(epochs, column("bleu"), ".-", color="C2")
    right.set(xlabel="epoch", ylabel="BLEU, validation, greedy", ylim=(0, None))
    figure.savefig(path, dpi=120)


def skipped_lines(skipped):
    """What was left out and why, the first lines by number."""
    reasons = defaultdict(list)
    for number, reason in skipped.items():
        reasons[reason.split(";")[0].split(" (")[0]].append(number)
    told = []
    for reason, numbers in reasons.items():
        first = ", ".join(map(str, numbers[:5])) + ", …" * (len(numbers) > 5)
        told.append(f"{counted(len(numbers), 'line')} skipped: {reason} ({first})")
    return told


def described(vocab, most):
    """A vocabulary for a message: how many of what; pieces were to be `most`."""
    unit = "characters" if vocab.lang in UNSPACED else "words"
    fewer = ""
    if isinstance(vocab, SubwordVocab):
        unit, fewer = "pieces", " (all that the text gives)" * (len(vocab) < most)
    return f"{len(vocab):,} {unit} of {language_name(vocab.lang)}{fewer}"


def counted(number, noun):
    """A number and its noun: 1 epoch, 2 epochs."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def duration(seconds):
    """Seconds in words."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def test_scores(fitted, corpus):
    """BLEU and chrF of the test split, greedy and by beam, and three translations.

    The three: by chrF a tenth, the half and nine tenths of all are worse.
    """
    sources = [pair.source for pair in corpus["test"]]
    references, lang = corpus.target_texts("test"), corpus.target_lang
    scores = {"signature": text_signatures(lang)["bleu"], "sentences": len(sources)}
    for name, search in (("greedy", {}), ("beam", BEAM)):
        found = translate_tokens(fitted.model, sources, *fitted.vocabs, **search)
        texts = [one.text for one in found]
        scores[name] = text_scores(texts, references, lang)
    worth = [chrf([t], [r]) for t, r in zip(texts, references, strict=True)]
    order = sorted(range(len(texts)), key=worth.__getitem__)
    shown = [order[len(order) * tenths // 10] for tenths in (1, 5, 9)]
    scores["samples"] = [[" ".join(sources[i]), references[i], texts[i]] for i in shown]
    return scores


def say_scores(scores):
    """What `test_scores` found, in lines."""
    say(f"the test split, {scores['sentences']:,} sentences, scored once:")
    for name, label in (("greedy", "greedy"), ("beam", "beam of 5")):
        one = scores[name]
        say(f"    {label:9} BLEU {one['bleu']:.2f}, chrF {one['chrf']:.2f}")
    say(f"    BLEU is {scores['signature']}")
    for place, one in zip(("low", "middle", "high"), scores["samples"], strict=True):
        say(f"    a translation of {place} chrF:")
        say(*sample(*one))


def finish(fitted, corpus, out):
    """After the last epoch: the test split is scored, unless it has been."""
    path = f"{out}.safetensors"
    say(f"the best epoch is {fitted.best_epoch}: {path}")
    notes = load_checkpoint(path).notes
    if corpus.splits.get("test"):
        if "test" not in notes:
            notes["test"] = test_scores(fitted, corpus)
            save_checkpoint(path, fitted.model, *fitted.vocabs, notes=notes)
        say_scores(notes["test"])
    say(f"translate with it: python -m utils.translate {shlex.quote(path)} < in.txt")
