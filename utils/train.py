"""The training command: a translator for real text, from files to a checkpoint.

    python -m utils.train --tsv pairs.tsv --source fr --target en --out models/fr-en

`python -m utils.train --help` has all options, `utils.recipe` what they set.
"""

import argparse
import hashlib
import re
import shlex
import signal
import sys
from dataclasses import asdict, fields
from pathlib import Path

from utils.checkpoint import load_checkpoint
from utils.corpora import load_multi30k, load_tsv, load_village
from utils.files import find_file, in_words, model_file, read_bytes
from utils.processes import is_first_here, join_processes
from utils.recipe import FROM_MODEL, LOSSES, SIZES, SUBWORDS, Settings, fit
from utils.report import Report, counted, finish, say

MAY_CHANGE = ("num_epochs", "lr", "patience", "loss", "tsv", "out", "resume")
STORED = ("tsv", "corpus", "source", "target", "columns", "held_out", "skip_bad_lines")
STORED += ("patience", "loss")


def make_parser():
    parser = argparse.ArgumentParser(
        prog="python -m utils.train",
        usage="python -m utils.train --tsv FILE --source CODE --target CODE --out PATH "
        "[options]",
        description="Train a translator on your own text, with validation and "
        "checkpoints.",
        argument_default=argparse.SUPPRESS,
    )
    group = parser.add_argument_group("The text")
    text = group.add_mutually_exclusive_group()
    text.add_argument(
        "--tsv",
        metavar="FILE",
        help="a file with two sentences a line, a tab between; or else",
    )
    text.add_argument(
        "--corpus",
        choices=["multi30k", "village"],
        help="multi30k (downloaded, unless it is there) or village (shipped)",
    )
    group.add_argument(
        "--source",
        metavar="CODE",
        help="the code of the language to translate from, such as fr",
    )
    group.add_argument(
        "--target", metavar="CODE", help="the code of the language to translate into"
    )
    group.add_argument(
        "--columns",
        nargs=2,
        metavar=("FIRST", "SECOND"),
        help="the languages of the file's columns in their order; left out, the source "
        "comes first",
    )
    group.add_argument(
        "--held-out",
        type=int,
        metavar="N",
        help="pairs for validation, and as many for the test; left out, a tenth of the "
        "file each, 1000 at most",
    )
    group.add_argument(
        "--skip-bad-lines",
        action="store_true",
        help="leave out lines that can't be read; left out, the first one stops the "
        "command",
    )
    group = parser.add_argument_group("Where it is stored")
    group.add_argument(
        "--out",
        metavar="PATH",
        required=True,
        help="a path without ending, for OUT.safetensors (the best model), "
        "OUT.last.safetensors (to resume), OUT.log.csv and OUT.png",
    )
    start = group.add_mutually_exclusive_group()
    start.add_argument(
        "--resume",
        action="store_true",
        help="go on with the training stored at --out, with its options; --num-epochs, "
        "--lr and --patience may be new",
    )
    start.add_argument(
        "--from",
        metavar="FILE",
        help="start from this trained model's file, with its words and sizes; left "
        "out, from random numbers",
    )
    group.add_argument(
        "--overwrite",
        action="store_true",
        help="replace the training stored at --out; left out, it stays",
    )
    group = parser.add_argument_group("The model and its training")
    choices = {"kind": [kind.replace(" ", "-") for kind in SIZES], "subwords": SUBWORDS}
    for field in fields(Settings):
        how = {"type": field.type, "help": field.metadata["help"], "metavar": "N"}
        if field.name in choices:
            how = {"choices": choices[field.name], "help": field.metadata["help"]}
        group.add_argument(dashed(field.name), **how)
    group.add_argument(
        "--patience",
        type=int,
        metavar="N",
        help="stop after so many epochs without a better validation loss; left out, "
        "never",
    )
    group.add_argument(
        "--loss",
        choices=list(LOSSES),
        help="plain, or by-hand: the same with a gradient written by hand, in less "
        "time, for the three translators; left out, plain",
    )
    return parser


def dashed(name):
    """An option as it is typed: --num-epochs for num_epochs."""
    return "--" + name.replace("_", "-")


def parse(arguments):
    """The options that were given, by name: {"num_epochs": 12, ...}."""
    parser = make_parser()
    options = vars(parser.parse_args(arguments))
    new = "resume" not in options
    if new and not ("source" in options and "target" in options):
        parser.error("the following arguments are required: --source, --target")
    if new and not ("tsv" in options or "corpus" in options):
        parser.error("give a text: either --tsv FILE or --corpus multi30k or village")
    if not new and "overwrite" in options:
        parser.error("--resume and --overwrite are not allowed together")
    for name in ("columns", "held_out", "skip_bad_lines"):
        if "corpus" in options and name in options:
            parser.error(f"{dashed(name)} is for a file of your own, with --tsv")
    if "kind" in options:
        options["kind"] = options["kind"].replace("-", " ")
    options["out"] = options["out"].removesuffix(".safetensors")
    return options


def in_options(message):
    """An error's message as the command line says it: --num-epochs for num_epochs."""
    message = re.sub("with utils.training.batch_loss.*", "with --loss plain", message)
    names = "|".join([*asdict(Settings()), "patience"])
    known = rf"(?<![\w-])({names})(?= (?:must|was|of)\b)"
    return re.sub(known, lambda found: dashed(found[0]), message)


# What is trained, and on what


def stored_options(given):
    """Those of the training at --out, with what may be new; and its Checkpoint."""
    path = f"{given['out']}.last.safetensors"
    stored = load_checkpoint(path)
    if "options" not in stored.notes:
        raise ValueError(f"{path} was not stored by this command")
    begun = stored.notes["settings"] | stored.notes["options"]
    for name in given:
        if name not in MAY_CHANGE and given[name] != begun.get(name):
            raise ValueError(
                f"{dashed(name)} {given[name]} can't be resumed: the training at "
                f"{given['out']} has {begun.get(name)}. Leave it out, or begin anew "
                "with another --out"
            )
    return begun | given, stored


def named_corpus(options):
    """The corpus that the options name, and the SHA-256 of a file of one's own."""
    languages = options["source"], options["target"]
    if options.get("corpus") == "multi30k":
        return load_multi30k(*languages), None
    if options.get("corpus") == "village":
        return load_village(*languages), None
    try:
        corpus = load_tsv(
            options["tsv"],
            *languages,
            columns=options.get("columns"),
            valid=options.get("held_out"),
            test=options.get("held_out"),
            skip_bad_lines=options.get("skip_bad_lines", False),
        )
    except ValueError as error:
        advice = ""
        if re.search(r", line \d+: ", str(error)):
            advice = "; --skip-bad-lines leaves such lines out"
        elif "too few for a split" in str(error):
            advice = ": give more pairs, or a smaller --held-out"
        raise ValueError(f"{error}{advice}") from error
    data = read_bytes(find_file(options["tsv"]))
    return corpus, hashlib.sha256(data).hexdigest()


def chosen_settings(options, corpus, start):
    """The Settings that the options and the size of the text give."""
    names = [field.name for field in fields(Settings)]
    chosen = {name: options[name] for name in names if name in options}
    if start:
        fixed = {"kind", "source_pieces", "target_pieces", "subwords"}
        fixed |= set(SIZES["translator"])
        for name in sorted(fixed & set(chosen)):
            raise ValueError(
                f"{dashed(name)} is that of the model you start --from: leave it out"
            )
        known = {n: value for n, value in start.model.config.items() if n in fixed}
        known |= {"source_pieces": len(start.src_vocab)}
        known |= {"target_pieces": len(start.tgt_vocab)}
        stored = start.notes.get("settings", {})
        known |= {"subwords": stored.get("subwords", "unigram")}
        chosen = FROM_MODEL | known | chosen
    kind = chosen.get("kind", "translator")
    for name in SIZES["translator"]:
        if name in options and name not in SIZES[kind]:
            raise ValueError(f"{dashed(name)}: --kind {kind} has none")
    languages = corpus.source_lang, corpus.target_lang
    return Settings.for_text(len(corpus["train"]), *languages, **chosen)


def start_of(options):
    """The Checkpoint of --from; ValueError, in words, unless its languages fit."""
    if "from" not in options:
        return None
    start = load_checkpoint(model_file(options["from"]))
    had = start.src_vocab.lang, start.tgt_vocab.lang
    if had != (options["source"], options["target"]):
        raise ValueError(
            f"{options['from']} translates {had[0]} into {had[1]}: it can't be the "
            f"start of {options['source']}→{options['target']}"
        )
    if start.model.config["kind"] not in SIZES:
        raise ValueError(
            f"{options['from']} holds a model that this command doesn't train, of the "
            f"kind {start.model.config['kind']}; it trains {', '.join(SIZES)}"
        )
    return start


# The command


def run(given):
    """Everything that the command does, after its options are read."""
    out, stored, options = given["out"], None, given
    if "resume" in given:
        options, stored = stored_options(given)
    corpus, sha256 = named_corpus(options)
    start = None if stored else start_of(options)
    if stored:
        settings = resumed_settings(options, stored, sha256)
    else:
        settings = chosen_settings(options, corpus, start)
    notes = {"options": {name: options[name] for name in STORED if name in options}}
    notes["sha256"], loss = sha256, options.get("loss", "plain")
    fitted = fit(
        corpus,
        settings,
        out,
        resume=stored is not None,
        patience=options.get("patience"),
        progress=sys.stderr is not None and sys.stderr.isatty(),
        overwrite="overwrite" in options,
        loss_function=LOSSES[loss],
        start=start,
        watch=Report(corpus, out, loss, settings),
        notes=notes,
    )
    if join_processes()[0] == 0:
        finish(fitted, corpus, out)


def resumed_settings(options, stored, sha256):
    """The stored training's Settings, with what is new; says what that is."""
    if sha256 != stored.notes["sha256"]:
        raise ValueError(
            f"{options['tsv']} isn't the file that this training began with: its "
            "SHA-256 checksum is another. Give that file as --tsv, or begin anew with "
            "another --out (--from starts from a trained model)"
        )
    before = Settings(**stored.notes["settings"])
    settings = Settings(**{name: options[name] for name in asdict(before)})
    done = stored.notes["epoch"]
    for name in ("num_epochs", "lr"):
        was, now = getattr(before, name), getattr(settings, name)
        if was != now:
            say(f"{dashed(name)} was {was} and is {now} from here on")
    if done >= settings.num_epochs:
        say(
            f"this training has had its {counted(done, 'epoch')}: a larger "
            "--num-epochs goes on with it"
        )
    else:
        say(f"epochs done: {done}, to do: {settings.num_epochs - done}")
    return settings


def main(arguments=None):
    given = parse(arguments)
    try:
        run(given)
    except (ValueError, OSError, FloatingPointError) as error:
        sys.exit(f"error: {in_options(in_words(error))}" if is_first_here() else 1)
    except KeyboardInterrupt:
        sys.exit(stopped(given["out"]) if is_first_here() else 1)


def stopped(out):
    """What an interrupt has left, and how to go on."""
    if not Path(f"{out}.last.safetensors").exists():
        return "stopped before the end of the first epoch: nothing was stored"
    done = load_checkpoint(f"{out}.last.safetensors").notes["epoch"]
    return (
        f"stopped after {counted(done, 'whole epoch')}; the best model so far is "
        f"{out}.safetensors. Go on with the next epoch by\n"
        f"    python -m utils.train --resume --out {shlex.quote(str(out))}"
    )


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C
    main()
