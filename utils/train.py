"""The training command: a translator for real text, from files to a checkpoint.

    python -m utils.train --tsv pairs.tsv --source fr --target en --out models/fr-en

`python -m utils.train --help` has all options, `utils.recipe` those of the model.
"""

import hashlib
import inspect
import os
import shlex
import signal
import sys
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path

from filelock import FileLock, Timeout

from utils.checkpoint import load_checkpoint, require_equal
from utils.corpora import load_multi30k, load_parallel, load_tsv
from utils.data import Pair
from utils.files import in_words, model_file
from utils.options import Options, dashed, make_parser, open_streams, setting
from utils.processes import join_processes
from utils.recipe import FROM_MODEL, SIZES, Settings, fit, sizes_of
from utils.report import Store, finish, say

LOADERS = {"tsv": load_tsv, "train": load_parallel, "corpus": load_multi30k}
HOW = {"valid", "test", "held_out", "columns", "quotes", "skip_bad_lines"}
OF_START = "kind", "source_pieces", "target_pieces", "subwords", *SIZES


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
        for pairs in corpus.splits.values() if self.lower_case else ():
            pairs[:] = [Pair(*map(str.lower, p[:2]), *p[2:]) for p in pairs]
        return corpus


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
    resume, start = "resume" in given, None
    then = load_trained(f"{out}.last.safetensors").notes if resume else {}
    job = Job.of(then.get("options", {}) | given)
    corpus = job.read()
    if resume:
        settings = Settings.of(then["settings"] | given)
        for name, was in then["settings"].items():
            if (now := getattr(settings, name)) != was:
                say(f"{dashed(name)} was {was} and is {now} from here on")
    else:
        settings, start = first_settings(given, job, corpus)
    digest = hashlib.sha256(repr(corpus.splits).encode()).hexdigest()
    now = asdict(job) | {"the text that the file holds (SHA-256)": digest[:12]}
    store = Store(out, now, resume, job.overwrite)
    fitted = fit(corpus, settings, start, store, progress=sys.stderr.isatty())
    if join_processes()[0] == 0:
        finish(fitted, corpus, out)


def main(arguments=None):
    open_streams()
    parser = make_parser("python -m utils.train", "Train a translator.", Job, Settings)
    given = vars(parser.parse_args(arguments))
    out = given.get("out", "").removesuffix(".safetensors")
    if not out or Path(out).is_dir() or out.endswith("/"):
        parser.error("--out is needed, a path that ends in a name for the model")
    if "resume" in given and given.keys() & {"overwrite", "from_"}:
        parser.error("--resume goes without --overwrite and --from")
    number = os.environ.get("RANK", "0").lstrip("0")  # of several processes; "": first
    try:
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
