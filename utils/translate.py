"""The translating command: lines of text in, as many lines out.

    python -m utils.translate MODEL < in.txt > out.txt

From Python: `load_checkpoint` in `utils.checkpoint`, `translate` in `utils.decoding`.
"""

import argparse
import sys
import warnings
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tqdm.auto import tqdm

from utils.checkpoint import load_checkpoint
from utils.decoding import (
    check_search,
    require_attention,
    require_room,
    translate,
)
from utils.files import (
    LONGEST_RAW,
    decode_line,
    decode_lines,
    in_words,
    model_file,
    read_bytes,
)
from utils.metrics import text_scores, text_signatures

CHUNK = 1000  # lines that are read, translated and written together
TOLD = 20  # lines, or unknown words, that a message names


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m utils.translate",
        description="Translate lines from standard input to standard output, one for "
        "one. A line that can't be translated stays empty, and is named on standard "
        "error.",
    )
    parser.add_argument("model", help="a file that python -m utils.train has written")
    parser.add_argument(
        "--beam",
        type=int,
        default=1,
        metavar="N",
        help="search with N hypotheses, for instance 5: a little better, and slower; "
        "left out, 1, the most probable word at each step",
    )
    parser.add_argument(
        "--length-penalty",
        type=float,
        default=1.0,
        metavar="P",
        help="hypotheses are ranked by log-probability / length^P; left out, 1",
    )
    parser.add_argument(
        "--tsv",
        action="store_true",
        help="each line is a source, a tab, and whatever else; it comes back with its "
        "translation as one more column; left out, the whole line is the source",
    )
    parser.add_argument(
        "--score",
        nargs="?",
        const="",
        metavar="REFERENCES",
        help="say BLEU and chrF against this file, a line for each line; with --tsv "
        "and no file, against the second column",
    )
    parser.add_argument(
        "--heatmap",
        metavar="PICTURE",
        help="draw where the model looks, for one line, to a file (.png, .svg, .pdf)",
    )
    options = parser.parse_args(arguments)
    if options.score == "" and not options.tsv:
        parser.error("--score needs a file of references, unless there is --tsv")
    return options


class Line(NamedTuple):
    """A line read: its columns and unknown words; or what is wrong with it."""

    columns: list[str]
    unknown: list[str]
    fault: str | None


def read_lines(stream, src_vocab, tsv):
    """The Lines of a stream of bytes, one at a time."""
    for number, raw in enumerate(iter(lambda: read_one(stream), b""), 1):
        columns, unknown, fault = [], [], None
        try:
            text = decode_line(raw, number)
            columns = text.split("\t") if tsv else [text]
            ids, _, unknown = src_vocab.encode(columns[0])
            require_room(ids, "the line")
        except ValueError as error:
            fault = f"line {number}: {error}"
        yield Line(columns, [] if fault else unknown, fault)


def read_one(stream):
    """A line with its end; what is too long for any sentence is read and let go."""
    line = part = stream.readline(LONGEST_RAW + 1)
    while part and not part.endswith(b"\n"):
        part = stream.readline(LONGEST_RAW + 1)
    return line


def run(options):
    """Translate standard input to standard output, with all that was asked for."""
    check_search(options.beam, options.length_penalty)
    references = read_references(options.score) if options.score else None
    model, *vocabs = load_checkpoint(model_file(options.model))[:3]
    search = {"beam_size": options.beam, "length_penalty": options.length_penalty}
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    lines = read_lines(sys.stdin.buffer, vocabs[0], options.tsv)
    size = 1 if sys.stdin.isatty() else CHUNK
    faults, unknown, count, scored, result = [], Counter(), 0, [], None
    with tqdm(unit=" lines", disable=not sys.stderr.isatty() or size == 1) as bar:
        while chunk := list(islice(lines, size)):
            good = [line.columns[0] for line in chunk if not line.fault]
            found = iter(translate(model.float(), good, *vocabs, **search))
            for line in chunk:
                result = None if line.fault else next(found)
                text = result.text if result else ""
                print("\t".join([*line.columns, text]) if options.tsv else text)
                unknown.update(line.unknown)
                faults += [line.fault] if line.fault else []
                if options.score is not None:
                    scored.append((text, line))
            sys.stdout.flush()
            count += len(chunk)
            bar.update(len(chunk))
    say_what_was_lost(faults, unknown, count)
    if options.heatmap:
        draw(options.heatmap, result, count)
    if options.score is not None:
        say_scores(scored, references, vocabs[1].lang)


def say_what_was_lost(faults, unknown, count):
    """Lines left empty and unknown words, on standard error."""
    messages = faults[:TOLD]
    if len(faults) > TOLD:
        messages.append(f"… and {len(faults) - TOLD:,} more lines")
    if faults:
        messages.append(f"left empty: {len(faults):,} of {count:,} lines")
    if unknown:
        words = ", ".join(word for word, _ in unknown.most_common(TOLD))
        more = ", …" if len(unknown) > TOLD else ""
        messages.append(
            f"words that the model doesn't know, read as <unk>: {unknown.total():,} "
            f"({words}{more})"
        )
    for message in messages:
        print(message, file=sys.stderr)


def read_references(path):
    return decode_lines(read_bytes(Path(path)), Path(path))


def say_scores(scored, references, lang):
    """BLEU and chrF on standard error; references: None for the second columns."""
    texts, lines = zip(*scored, strict=True) if scored else ([], [])
    if references is None:
        references = [(line.columns[1:] or [""])[0] for line in lines]
        for number, line in enumerate(lines, 1):
            if len(line.columns) < 2 and not line.fault:
                raise ValueError(f"line {number}: there is no second column to score")
    elif len(references) != len(texts):
        raise ValueError(
            f"there are {len(references):,} references and {len(texts):,} lines, so "
            "nothing is scored; all lines are translated"
        )
    scores = text_scores(texts, references, lang)
    print(
        f"BLEU {scores['bleu']:.2f}  {text_signatures(lang)['bleu']}\n"
        f"chrF {scores['chrf']:.2f}  {text_signatures(lang)['chrf']}",
        file=sys.stderr,
    )


def draw(path, translation, count):
    """The heatmap of the only line, to a file."""
    import matplotlib

    matplotlib.use("agg")  # no window, and here since it takes a while
    from utils.plotting import show_heatmap

    if count != 1 or translation is None:
        raise ValueError(
            f"--heatmap draws one sentence, and there are {count:,} lines: give one"
        )
    require_attention(translation.attention_weights)
    words = translation.source_tokens, translation.tokens
    with warnings.catch_warnings(record=True) as said:
        ax = show_heatmap(translation.attention_weights, *words)
        ax.figure.savefig(path, dpi=150)
    for warning in said:
        print(warning.message, file=sys.stderr)


def main(arguments=None):
    options = parse(arguments)
    try:
        run(options)
    except BrokenPipeError:  # who reads has read enough, as `head` does
        sys.stderr.close()
        sys.exit(0)
    except (ValueError, TypeError, OSError) as error:
        message = in_words(error).replace("length_penalty", "--length-penalty")
        sys.exit(f"error: {message.replace('beam_size', '--beam')}")
    except KeyboardInterrupt:
        sys.exit("stopped: what is written is whole")


if __name__ == "__main__":
    main()
