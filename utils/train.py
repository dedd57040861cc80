"""The training command: a translator for real text, from files to a checkpoint.

    python -m utils.train --tsv pairs.tsv --source fr --target en --out models/fr-en

`python -m utils.train --help` has all options, `utils.recipe` those of the model.
"""

import signal

if __name__ == "__main__" and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback while PyTorch comes

import hashlib
import os
import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from utils import options
from utils.checkpoint import load_checkpoint, require_equal
from utils.corpora import load_multi30k, load_parallel, load_tsv
from utils.files import find_file, in_words, model_file, read_bytes
from utils.options import dashed, setting
from utils.processes import is_first_here, join_processes
from utils.recipe import FROM_MODEL, SIZES, Settings, fit, sizes_of
from utils.report import Report, finish, say

READ_BY = {  # the ways to give a text, and what may be said of each
    "tsv": {"columns", "quotes", "held_out", "skip_bad_lines"},
    "train": {"valid", "test", "held_out", "skip_bad_lines"},
    "corpus": set(),
}
# What may be new when a training is resumed; the files are known by their checksum.
MAY_MOVE = ("tsv", "train", "valid", "test", "out", "resume", "overwrite", "from_")


@dataclass(frozen=True)
class Job(options.Options):
    """The text, and where the model is stored."""

    source: str = setting("", "code of the language to translate from, such as fr")
    target: str = setting("", "code of the language to translate into")
    tsv: str = setting("", "a file, two sentences a line with a tab between; or else")
    train: tuple = setting((), "two files with a sentence a line; or else")
    corpus: str = setting(
        "", "a text that is downloaded unless it is there", choices=("multi30k",)
    )
    valid: tuple = setting((), "two files for validation")
    test: tuple = setting((), "two files for the test")
    held_out: int = setting(
        0,
        "pairs for validation, and for the test, if they have no files; left out, a "
        "tenth of all, 1000 at most",
        1,
    )
    columns: tuple = setting(
        (), "columns of --tsv, by number or by name; left out, 1 2"
    )
    quotes: str = setting(
        "",
        "keep quotation marks round columns; left out, auto: Excel's are taken away",
        choices=("auto", "keep"),
    )
    skip_bad_lines: bool = setting(
        False, "leave out lines that can't be read; left out, the first one ends it"
    )
    lower_case: bool = setting(
        False, "read the text, and what is translated later, in small letters"
    )
    out: str = setting(
        "",
        "a path without ending, for OUT.safetensors (the best model), "
        "OUT.last.safetensors (to resume), OUT.log.csv and OUT.png",
    )
    resume: bool = setting(
        False, "go on with the training at OUT, with its options; some may be new"
    )
    overwrite: bool = setting(False, "replace the training at OUT; left out, it stays")
    from_: str = setting("", "start from this model; left out, from random numbers")

    def read(self):
        """The corpus, and what of this must stay in a training that is resumed."""
        given = {name: value for name, value in asdict(self).items() if value}
        way = [name for name in READ_BY if name in given]
        if len(way) != 1 or not (self.source and self.target):
            raise ValueError(
                "--source, --target and one text are needed: --tsv FILE, --train "
                "SOURCE TARGET or --corpus multi30k"
            )
        how = {"source": self.source, "target": self.target}
        for name in given.keys() & set().union(*READ_BY.values()):
            if name not in READ_BY[way[0]]:
                raise ValueError(f"{dashed(name)} is not for {dashed(way[0])}")
            how[name] = given[name]
        if self.corpus:
            corpus = load_multi30k(**how)
        elif self.train:
            corpus = load_parallel(self.train, **how)
        else:
            held_out = dict.fromkeys(("valid", "test"), how.pop("held_out", None))
            corpus = load_tsv(self.tsv, **how, **held_out)
        if self.lower_case:
            for pairs in corpus.splits.values():
                pairs[:] = map(lowered, pairs)
        files = filter(None, [self.tsv, *self.train, *self.valid, *self.test])
        data = b"".join(read_bytes(find_file(path)) for path in files)
        kept = asdict(self) | dict.fromkeys(MAY_MOVE)
        return corpus, kept | {"SHA-256 of its text": hashlib.sha256(data).hexdigest()}


def lowered(pair):
    return pair._replace(source=pair.source.lower(), target=pair.target.lower())


def first_settings(given, job, start, corpus):
    """The Settings of a new training, by options, size of the text and its start."""
    chosen, of_start = Settings.of(given), {}
    if start:
        then = {"source": start.src_vocab.lang, "target": start.tgt_vocab.lang}
        then["lower_case"] = start.notes.get("options", {}).get("lower_case", False)
        require_equal(then, {name: getattr(job, name) for name in then})
        names = [name for name in ("kind", *SIZES) if name in start.model.config]
        of_start = {name: start.model.config[name] for name in names}
        of_start["source_pieces"] = len(start.src_vocab)
        of_start["target_pieces"] = len(start.tgt_vocab)
        of_start["subwords"] = start.notes["settings"]["subwords"]
    for name in of_start.keys() & chosen.keys():
        raise ValueError(f"{dashed(name)} is that of the model of --from: leave it out")
    chosen = (FROM_MODEL if start else {}) | chosen | of_start
    settings = Settings.for_text(len(corpus["train"]), **chosen)
    for name in SIZES:
        if name in given and name not in sizes_of(settings.kind):
            raise ValueError(f"{dashed(name)}: this --kind has none")
    return settings


def run(given, out):
    """Everything that the command does, after its options are read."""
    job, resume, start = Job.of(given), "resume" in given, None
    if resume:
        notes = load_checkpoint(path := f"{out}.last.safetensors").notes
        if "options" not in notes:
            raise ValueError(f"{path} was not stored by this command")
        job = Job.of(notes["options"]) | job
    corpus, kept = (job := Job(**job)).read()
    if resume:
        require_equal(notes["options"] | dict.fromkeys(MAY_MOVE), kept)
        settings = Settings(**notes["settings"] | Settings.of(given))
        for name, now in Settings.of(given).items():
            if (was := notes["settings"][name]) != now:
                say(f"{dashed(name)} was {was} and is {now} from here on")
    else:
        start = load_checkpoint(model_file(job.from_)) if job.from_ else None
        settings = first_settings(given, job, start, corpus)
    fitted = fit(
        corpus,
        settings,
        out,
        resume=resume,
        overwrite=job.overwrite,
        start=start,
        progress=sys.stderr.isatty(),
        watch=Report(out),
        notes={"options": kept | asdict(job)},
    )
    if join_processes()[0] == 0:
        finish(fitted, corpus, out)


def main(arguments=None):
    options.open_streams()
    parser = options.make_parser("python -m utils.train", "Train a translator.")
    options.add_options(parser, Job)
    options.add_options(parser, Settings)
    given = vars(parser.parse_args(arguments))
    out = given.get("out", "").removesuffix(".safetensors")
    if not out or "resume" in given and given.keys() & {"overwrite", "from_"}:
        parser.error("--out is needed; --resume goes without --overwrite and --from")
    number = os.environ.get("RANK", "0").lstrip("0")  # of several processes; "": first
    try:
        with FileLock(f"{out}.lock{number}", timeout=0):
            run(given, out)
    except Timeout:
        sys.exit(f"error: another training is storing its model at {out}")
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f"error: {in_words(error)}" if is_first_here() else 1)
    except KeyboardInterrupt:
        sys.exit(stopped(out) if is_first_here() else 1)


def stopped(out):
    """What an interrupt has left, and how to go on."""
    if not Path(f"{out}.last.safetensors").exists():
        return "stopped before the end of the first epoch: nothing was stored"
    return (
        f"stopped; the best model so far is {out}.safetensors. Go on with the next "
        f"epoch by\n    python -m utils.train --resume --out {shlex.quote(out)}"
    )


if __name__ == "__main__":
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # all end it as Ctrl-C does
        number = getattr(signal, name, signal.SIGTERM)
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.default_int_handler)
    main()
