"""The training command: a translator for real text, from files to a checkpoint.

    python -m utils.train --tsv pairs.tsv --source fr --target en --out models/fr-en

`python -m utils.train --help` has all options, `utils.recipe` what they set.
"""

import argparse
import hashlib
import re
import shlex
import sys
from dataclasses import asdict, fields
from pathlib import Path

from utils.checkpoint import load_checkpoint
from utils.corpora import load_multi30k, load_tsv, load_village
from utils.files import find_file, in_words, model_file, read_bytes
from utils.processes import is_first_here, join_processes
from utils.recipe import (
    FROM_MODEL,
    LOSSES,
    SIZES,
    SUBWORDS,
    Settings,
    check_settings,
    fit,
    require_free,
)
from utils.report import Report, counted, finish, say

HELP = {
    "The text": {
        "tsv": "a file with two sentences a line, a tab between; or else",
        "corpus": "multi30k (downloaded, unless it is there) or village (shipped)",
        "source": "the code of the language to translate from, such as fr",
        "target": "the code of the language to translate into",
        "columns": "the languages of the file's columns in their order; left out, the "
        "source comes first",
        "held-out": "pairs for validation, and as many for the test; left out, a tenth "
        "of the file each, 1000 at most",
        "skip-bad-lines": "leave out lines that can't be read; left out, the first one "
        "stops the command",
    },
    "Where it is stored": {
        "out": "a path without ending, for OUT.safetensors (the best model), "
        "OUT.last.safetensors (to resume), OUT.log.csv and OUT.png",
        "resume": "go on with the training stored at --out, with its options; "
        "--num-epochs, --lr and --patience may be new",
        "overwrite": "replace the training stored at --out; left out, it stays",
        "from": "start from this trained model's file, with its words and sizes; left "
        "out, from random numbers",
    },
    "The model": {
        "kind": "fixed (one context), attention, translator (attention and what real "
        "text needs), released-translator (which attends after the update), "
        "fixed-translator, rnnsearch (as published) or transformer; left out, "
        "translator",
        "source-pieces": "pieces of words in the vocabulary, at most; 0 for whole "
        "words; left out, 3000, or single characters in a language without spaces",
        "target-pieces": "the same for the target",
        "subwords": "unigram, or bpe (byte pairs), which cuts a word in one way only; "
        "left out, unigram",
        "embed-size": "numbers in a word's vector; left out, 128",
        "num-hiddens": "numbers in the decoder's state; left out, 256",
        "enc-hiddens": "numbers in the encoder's states, of both directions together; "
        "left out, 384",
        "dropout": "share of numbers set to 0 in training; left out, 0.3",
    },
    "The training": {
        "num-epochs": "times through the text; left out, 3 to 40 by its size",
        "batch-size": "sentences an update; left out, 16 to 64 by the text's size",
        "lr": "the highest learning rate; left out, 0.003 (0.001 for a transformer)",
        "patience": "stop after so many epochs without a better validation loss; left "
        "out, never",
        "loss": "plain, or by-hand: the same with a gradient written by hand, in less "
        "time, for the three translators; left out, plain",
        "label-smoothing": "share of each target that goes to all words; left out, 0.1",
        "averaging": "how much of the parameters' running mean an update keeps; left "
        "out, 0.999; 0 for none",
        "alpha": "how sharply a way to cut a word is drawn anew each epoch; left out, "
        "0.5; 0 for always the best way, and with bpe",
        "seed": "of all random numbers; left out, 0",
    },
}
TYPES = {field.name: field.type for field in fields(Settings)} | {
    "held_out": int,
    "patience": int,
}
MAY_CHANGE = ("num_epochs", "lr", "patience", "loss", "tsv", "out", "resume")
STORED = ("tsv", "corpus", "source", "target", "columns", "held_out", "skip_bad_lines")
STORED += ("patience", "loss")


def parse(arguments):
    """The options that were given, by name: {"num_epochs": 12, ...}."""
    parser = argparse.ArgumentParser(
        prog="python -m utils.train",
        usage="python -m utils.train --tsv FILE --source CODE --target CODE --out PATH "
        "[options]",
        description="Train a translator on your own text, with validation and "
        "checkpoints.",
        argument_default=argparse.SUPPRESS,
    )
    for title, options in HELP.items():
        group = parser.add_argument_group(title)
        for option, said in options.items():
            name = option.replace("-", "_")
            how = {"help": said, "type": TYPES.get(name, str)}
            if name in ("skip_bad_lines", "resume", "overwrite"):
                how = {"help": said, "action": "store_true"}
            if name == "columns":
                how["nargs"], how["metavar"] = 2, ("FIRST", "SECOND")
            if name in CHOICES:
                how["choices"] = CHOICES[name]
            elif "action" not in how and "nargs" not in how:
                how["metavar"] = METAVARS.get(name, "N")
            group.add_argument(f"--{option}", **how)
    options = vars(parser.parse_args(arguments))
    fault = fault_of(options)
    if fault:
        parser.error(fault)
    if "kind" in options:
        options["kind"] = options["kind"].replace("-", " ")
    options["out"] = options["out"].removesuffix(".safetensors")
    return options


METAVARS = {"tsv": "FILE", "from": "FILE", "out": "PATH"} | dict.fromkeys(
    ("source", "target"), "CODE"
)
CHOICES = {
    "kind": [kind.replace(" ", "-") for kind in SIZES],
    "loss": list(LOSSES),
    "subwords": list(SUBWORDS),
    "corpus": ["multi30k", "village"],
}


def fault_of(options):
    """What is wrong with a choice of options, in words; None if nothing is."""
    needed = ["out"] if "resume" in options else ["source", "target", "out"]
    missing = [f"--{name}" for name in needed if name not in options]
    if missing:
        return f"the following arguments are required: {', '.join(missing)}"
    texts = sum(name in options for name in ("tsv", "corpus"))
    if texts == 2 or (texts == 0 and "resume" not in options):
        return "give a text: either --tsv FILE or --corpus multi30k or village"
    for first, second in (("resume", "overwrite"), ("resume", "from")):
        if first in options and second in options:
            return f"--{first} and --{second} are not allowed together"
    for name in ("columns", "held_out", "skip_bad_lines"):
        if "corpus" in options and name in options:
            return f"--{name.replace('_', '-')} is for a file of your own, with --tsv"
    if options.get("held_out", 1) < 1:
        return f"--held-out must be at least 1, got {options['held_out']}"
    return None


def in_options(message):
    """An error's message as the command line says it: --num-epochs for num_epochs."""
    message = re.sub("with utils.training.batch_loss.*", "with --loss plain", message)
    names = "|".join(TYPES)
    return re.sub(
        rf"(?<![\w-])({names})(?= (?:must|was|of)\b)",
        lambda found: "--" + found[0].replace("_", "-"),
        message,
    )


# What is trained, and on what


def stored_options(given):
    """The options of the training at --out, with those given now that may be new."""
    stored = load_checkpoint(f"{given['out']}.last.safetensors")
    if "options" not in stored.notes:
        raise ValueError(
            f"{given['out']}.last.safetensors was not stored by this command"
        )
    begun = stored.notes["settings"] | stored.notes["options"]
    for name in given:
        if name not in MAY_CHANGE and given[name] != begun.get(name):
            raise ValueError(
                f"--{name.replace('_', '-')} {said(given[name])} can't be resumed: "
                f"the training at {given['out']} has {said(begun.get(name))}. Leave it "
                "out, or begin anew with another --out"
            )
    return begun | given, stored


def said(value):
    """An option's value as it was typed."""
    return " ".join(value) if isinstance(value, list) else str(value)


def named_corpus(options):
    """The corpus that the options name, and the SHA-256 of a file of one's own."""
    languages = options["source"], options["target"]
    if options.get("corpus") == "multi30k":
        return load_multi30k(*languages), None
    if options.get("corpus") == "village":
        return load_village(*languages), None
    size, skip = options.get("held_out"), options.get("skip_bad_lines", False)
    columns = options.get("columns")
    try:
        corpus = load_tsv(
            options["tsv"],
            *languages,
            columns=columns,
            valid=size,
            test=size,
            skip_bad_lines=skip,
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
    chosen = {name: options[name] for name in options if name in asdict(Settings())}
    if start:
        fixed = {"kind", "source_pieces", "target_pieces", "subwords"}
        fixed |= set(SIZES["translator"])
        for name in sorted(fixed & set(chosen)):
            raise ValueError(
                f"--{name.replace('_', '-')} is that of the model you start --from: "
                "leave it out"
            )
        known = {name: start.model.config.get(name) for name in fixed}
        known = {name: value for name, value in known.items() if value is not None}
        known |= {"source_pieces": len(start.src_vocab)}
        known |= {"target_pieces": len(start.tgt_vocab)}
        known |= {
            "subwords": start.notes.get("settings", {}).get("subwords", "unigram")
        }
        chosen = FROM_MODEL | known | chosen
    kind = chosen.get("kind", "translator")
    for name in SIZES["translator"]:
        if name in options and name not in SIZES[kind]:
            raise ValueError(f"--{name.replace('_', '-')}: --kind {kind} has none")
    languages = corpus.source_lang, corpus.target_lang
    settings = Settings.for_text(len(corpus["train"]), *languages, **chosen)
    check_settings(settings, options.get("patience"))
    return settings


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
    out, stored = given["out"], None
    options = given
    if "resume" in given:
        options, stored = stored_options(given)
    elif "overwrite" not in given:
        require_free(out)
    corpus, sha256 = named_corpus(options)
    if stored:
        settings = resumed_settings(options, stored, sha256)
        start = None
    else:
        start = start_of(options)
        settings = chosen_settings(options, corpus, start)
    Path(out).parent.mkdir(parents=True, exist_ok=True)
    notes = {"options": {name: options[name] for name in STORED if name in options}}
    notes["sha256"], loss = sha256, options.get("loss", "plain")
    fitted = fit(
        corpus,
        settings,
        out,
        resume=stored is not None,
        patience=options.get("patience"),
        progress=sys.stderr.isatty(),
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
    names = asdict(before)
    settings = Settings(**{name: options[name] for name in names})
    check_settings(settings, options.get("patience"))
    done = stored.notes["epoch"]
    for name in ("num_epochs", "lr"):
        was, now = getattr(before, name), getattr(settings, name)
        if was != now:
            say(f"--{name.replace('_', '-')} was {was} and is {now} from here on")
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
    main()
