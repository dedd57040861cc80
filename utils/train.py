"""The training command: a translator for real text, from files to a checkpoint.

    python -m utils.train --tsv pairs.tsv --source fr --target en --out models/fr-en

`python -m utils.train --help` has all options, `utils.recipe` those of the model.
"""

import csv
import hashlib
import inspect
import os
import shlex
import signal
import sys
import warnings
from dataclasses import asdict, dataclass, fields, replace
from math import inf
from pathlib import Path

from filelock import FileLock, Timeout
from tqdm.auto import tqdm

from utils.checkpoint import load_checkpoint, require_equal, save_checkpoint
from utils.corpora import load_multi30k, load_parallel, load_tsv
from utils.data import Pair
from utils.data_check import is_long, without_repeats
from utils.decoding import MAX_SOURCE, translate
from utils.files import in_words, model_file
from utils.metrics import text_scores
from utils.options import Options, dashed, make_parser, open_streams, setting
from utils.processes import join_processes
from utils.recipe import FROM_MODEL, SIZES, Settings, fit, sizes_of
from utils.translate import score_line

LOADERS = {"tsv": load_tsv, "train": load_parallel, "corpus": load_multi30k}
HOW = {"valid", "test", "held_out", "columns", "quotes", "skip_bad_lines"}
OF_START = "kind", "source_pieces", "target_pieces", "subwords", *SIZES
SEARCHES = {"greedy": {}, "beam": {"beam_size": 5, "length_penalty": 1.0}}
# What may be new when a training is resumed; the files are known by their checksum.
MAY_CHANGE = (
    "tsv train valid test out resume overwrite from_ "
    "threads device num_epochs lr patience loss precision"
).split()


@dataclass(frozen=True)
class Job(Options):
    """The text, and where the model is stored."""

    source: str = setting("", "code of the language to translate from, such as fr")
    target: str = setting("", "code of the language to translate into")
    tsv: str = setting("", "a file, two sentences a line with a tab between; or else")
    train: tuple = setting((), "two files with a sentence a line; or else")
    corpus: str = setting("", "a text that is downloaded if need be", ("multi30k",))
    valid: tuple = setting((), "two files for validation")
    test: tuple = setting((), "two files for the test")
    held_out: int = setting(
        0, "pairs in a split without files; left out, a tenth, 1000 at most", (1, inf)
    )
    columns: tuple = setting((), "those of --tsv, by number or name; left out, 1 2")
    quotes: str = setting("auto", "auto: Excel's are taken away", ("auto", "keep"))
    skip_bad_lines: bool = setting(False, "leave out lines that can't be read")
    lower_case: bool = setting(False, "read this and all later text in small letters")
    out: str = setting(
        "", "a path without ending, for OUT.safetensors (the best model) and its log"
    )
    resume: bool = setting(False, "go on with what is at OUT; some options may be new")
    overwrite: bool = setting(False, "replace the training at OUT; left out, it stays")
    from_: str = setting("", "start from this model; left out, from random numbers")

    def read(self):
        """The corpus that these options name."""
        first = {one.name: one.default for one in fields(self)}
        given = {k: v for k, v in asdict(self).items() if v and v != first[k]}
        ways = LOADERS.keys() & given
        if len(ways) != 1:
            raise ValueError("one text is needed: --tsv FILE, --train, or --corpus")
        if not (self.source and self.target):
            raise ValueError("--source and --target are needed, as --source fr")
        load = LOADERS[way := ways.pop()]
        takes = inspect.signature(load).parameters
        for name in HOW & given.keys() - takes.keys():
            raise ValueError(f"{dashed(name)} is not for {dashed(way)}")
        how = {name: given[name] for name in given if name in takes}
        corpus = load(self.tsv, **how) if self.tsv else load(**how)
        if self.lower_case:
            for pairs in corpus.splits.values():
                pairs[:] = [Pair(*map(str.lower, p[:2]), *p[2:]) for p in pairs]
            splits, found = without_repeats(corpus.splits)  # equal but for case
            corpus = replace(corpus, splits=splits, findings=[*corpus.findings, *found])
        return corpus


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
    OUT.last.safetensors (what a training is resumed from), both whole at every moment:
    an interrupt costs the running epoch; OUT.log.csv and OUT.png. options: plain
    values, stored with it. last: a Checkpoint to resume. Only with `overwrite` are
    files replaced that are there already.
    """

    def __init__(self, out, options=None, last=None, overwrite=False):
        self.out, self.options = out, options or {}
        self.last, self.overwrite = last, overwrite

    def open(self, settings, corpus):
        """Before anything is computed: may this training be stored here?

        Raises FileExistsError for a training that would be lost, ValueError for one
        whose settings and options differ in more than MAY_CHANGE.
        """
        now = {"options": self.options, "settings": asdict(settings)}
        self.notes = {**now, "corpus": repr(corpus)}
        if self.last:
            free = dict.fromkeys(MAY_CHANGE)
            both = self.last.notes, now
            require_equal(*(n["options"] | n["settings"] | free for n in both))
        endings = ("safetensors", "last.safetensors", "log.csv", "png")
        taken = filter(os.path.exists, [f"{self.out}.{end}" for end in endings])
        if (names := " and ".join(taken)) and not (self.last or self.overwrite):
            raise FileExistsError(
                f"{names} would be lost: --resume goes on with that "
                "training, --overwrite replaces it, another --out keeps both"
            )
        Path(self.out).parent.mkdir(parents=True, exist_ok=True)

    def begin(self, trainer, vocabs, corpus, findings):
        """Before the first step: what is trained on what."""
        if not self.last:  # of a training that is overwritten, nothing is resumed
            Path(f"{self.out}.last.safetensors").unlink(missing_ok=True)
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
        by_length = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        i = by_length[len(sources) // 2]  # a middling one
        shown = {"source": sources[i], "reference": references[i], "output": texts[i]}
        say(
            f"epoch {number} of {trainer.num_epochs}: loss "
            f"{entry['train_loss']:.3f} in training, {entry['valid_loss']:.3f} in "
            f"validation; BLEU {bleu:.1f}; {entry['seconds']:.1f} s",
            *(f"    {name:9} {text}" for name, text in shown.items()),
        )
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


def load_trained(path):
    """A Checkpoint of this command; ValueError for another."""
    saved = load_checkpoint(path)
    if "subwords" not in saved.notes.get("settings", {}):
        raise ValueError(f"{path} was not stored by this command")
    return saved


def first_settings(given, job, corpus):
    """The Settings of a new training, by options and size of the text; its start."""
    chosen = {k.name: given[k.name] for k in fields(Settings) if k.name in given}
    start = job.from_ and load_trained(model_file(job.from_))
    if start:
        then = start.notes.get("options", {}).get("lower_case", False)
        require_equal({"lower_case": then}, {"lower_case": job.lower_case})
        for name in OF_START:
            if name in chosen:
                raise ValueError(f"{dashed(name)} is that of --from: leave it out")
            chosen[name] = start.notes["settings"][name]
        chosen = FROM_MODEL | chosen
    settings = Settings.for_text(len(corpus["train"]), **chosen)
    for name in SIZES:
        if name in given and name not in sizes_of(settings.kind):
            raise ValueError(f"{dashed(name)}: this --kind has none")
    return settings, start


def run(given, out):
    """Everything that the command does, after its options are read."""
    last = load_trained(f"{out}.last.safetensors") if "resume" in given else None
    then = last.notes if last else {}
    job = Job.of(then.get("options", {}) | given)
    corpus = job.read()
    if last:
        settings, start = Settings.of(then["settings"] | given), last
        for name, was in then["settings"].items():
            if (now := getattr(settings, name)) != was:
                say(f"{dashed(name)} was {was} and is {now} from here on")
    else:
        settings, start = first_settings(given, job, corpus)
    digest = hashlib.sha256(repr(corpus.splits).encode()).hexdigest()
    now = asdict(job) | {"the text that the file holds (SHA-256)": digest[:12]}
    store = Store(out, now, last, job.overwrite)
    fitted = fit(corpus, settings, start, store, progress=sys.stderr.isatty())
    if join_processes()[0] == 0:
        finish(fitted, corpus, out)


def main(arguments=None):
    open_streams()
    parser = make_parser("python -m utils.train", "Train a translator.", Job, Settings)
    try:
        given = vars(parser.parse_args(arguments))
        out = given.get("out", "").removesuffix(".safetensors")
        if not out or Path(out).is_dir() or out.endswith("/"):
            parser.error("--out is needed, a path that ends in a name for the model")
        if "resume" in given and given.keys() & {"overwrite", "from_"}:
            parser.error("--resume goes without --overwrite and --from")
        number = os.environ.get("RANK", "0").lstrip("0")  # of several; "": the first
        with FileLock(f"{out}.lock{number}", timeout=0):
            run(given, out)
    except Timeout:
        sys.exit(f"error: another training is storing its model at {out}")
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f"error: {in_words(error)}")
    except KeyboardInterrupt:
        again = f"go on by python -m utils.train --resume --out {shlex.quote(out)}"
        if not Path(f"{out}.last.safetensors").exists():
            again = "nothing was stored before the end of the first epoch"
        sys.exit(f"stopped; {again}")


if __name__ == "__main__":
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # all end it as Ctrl-C does
        number = getattr(signal, name, signal.SIGTERM)
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.default_int_handler)
    main()
