"""The translating command: lines of text in, as many lines out.

    python -m utils.translate MODEL < in.txt > out.txt

From Python: `load_checkpoint` in `utils.checkpoint`, `translate` in `utils.decoding`.
"""

import argparse
import sys
from collections import Counter
from itertools import islice
from typing import NamedTuple

from tqdm.auto import tqdm

from utils.checkpoint import load_checkpoint
from utils.decoding import (
    check_search,
    require_attention,
    require_room,
    translate,
)
from utils.files import LONGEST_RAW, decode_line, in_words, model_file
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
    """A line read: its number and columns; or what is wrong with it."""

    number: int
    columns: list[str]
    fault: str | None


def read_lines(stream, src_vocab, tsv):
    """The Lines of a stream of bytes, one at a time."""
    for number, raw in enumerate(iter(lambda: read_one(stream), b""), 1):
        columns, fault = [], None
        try:
            text = decode_line(raw, number)
            columns = text.split("\t") if tsv else [text]
            require_room(src_vocab.encode(columns[0]).ids, "the line")
        except ValueError as error:
            fault = str(error)
        yield Line(number, columns, fault)


def read_one(stream):
    """A line with its end; what is too long for any sentence is read and let go."""
    line = part = stream.readline(LONGEST_RAW + 1)
    while part and not part.endswith(b"\n"):
        part = stream.readline(LONGEST_RAW + 1)
    return line


class Translator:
    """Translates Lines in chunks; counts faults and unknown words as they come."""

    def __init__(self, model, src_vocab, tgt_vocab, search):
        self.parts, self.search = (model, src_vocab, tgt_vocab), search
        self.faults, self.unknown, self.count = [], Counter(), 0
        self.lost = 0  # lines with a fault

    def __call__(self, lines):
        """The Translation of each Line, None for one with a fault."""
        model, *vocabs = self.parts
        good = [line.columns[0] for line in lines if line.fault is None]
        found = iter(translate(model, good, *vocabs, **self.search))
        results = [next(found) if line.fault is None else None for line in lines]
        for line, result in zip(lines, results, strict=True):
            self.count += 1
            if result is None:
                self.lost += 1
                if len(self.faults) < TOLD:
                    self.faults.append(f"line {line.number}: {line.fault}")
            else:
                self.unknown.update(result.unknown)
        return results

    def messages(self):
        """What is to be said at the end, a message a line."""
        yield from self.faults
        if self.lost > len(self.faults):
            yield f"… and {self.lost - len(self.faults):,} more lines"
        if self.lost:
            yield f"left empty: {self.lost:,} of {self.count:,} lines"
        if self.unknown:
            words = ", ".join(word for word, _ in self.unknown.most_common(TOLD))
            more = ", …" if len(self.unknown) > TOLD else ""
            yield (
                f"words that the model doesn't know, read as <unk>: "
                f"{self.unknown.total():,} ({words}{more})"
            )


def run(options):
    """Translate standard input to standard output, with all that was asked for."""
    check_search(options.beam, options.length_penalty)
    model, src_vocab, tgt_vocab = load_checkpoint(model_file(options.model))[:3]
    reader = open(options.score, "rb") if options.score else None
    search = {"beam_size": options.beam, "length_penalty": options.length_penalty}
    translator = Translator(model.float(), src_vocab, tgt_vocab, search)
    sys.stdout.reconfigure(encoding="utf-8", newline="\n")
    lines = read_lines(sys.stdin.buffer, src_vocab, options.tsv)
    size = 1 if sys.stdin.isatty() else CHUNK
    texts, references, unfit, last = [], [], None, None
    with tqdm(unit=" lines", disable=not sys.stderr.isatty() or size == 1) as bar:
        while chunk := list(islice(lines, size)):
            results = translator(chunk)
            for line, result in zip(chunk, results, strict=True):
                text = result.text if result else ""
                print("\t".join([*line.columns, text]) if options.tsv else text)
                if options.score is not None and unfit is None:
                    try:
                        references.append(reference_of(line, reader))
                        texts.append(text)
                    except ValueError as error:  # all lines are translated first
                        unfit = error
                last = result
            sys.stdout.flush()
            bar.update(len(chunk))
    for message in translator.messages():
        print(message, file=sys.stderr)
    if options.heatmap:
        draw(options.heatmap, last, translator.count)
    if unfit:
        raise unfit
    if options.score is not None:
        say_scores(texts, references, reader, tgt_vocab.lang)


def reference_of(line, reader):
    """A line's reference: the next line of the file, or the second column."""
    if reader is None:
        if len(line.columns) < 2 and line.fault is None:
            raise ValueError(f"line {line.number}: there is no second column to score")
        return line.columns[1] if len(line.columns) > 1 else ""
    raw = reader.readline()
    if not raw:
        raise ValueError(
            f"there is no reference for line {line.number}: the file for --score has "
            f"{line.number - 1:,} lines, so nothing is scored; all lines are translated"
        )
    try:
        return decode_line(raw, line.number)
    except ValueError as error:
        raise ValueError(f"the reference for line {line.number}: {error}") from error


def say_scores(texts, references, reader, lang):
    """BLEU and chrF on standard error."""
    if reader and reader.read(1):
        raise ValueError(
            f"there are more references than lines translated, {len(texts):,}: "
            "they can't belong together. What is translated is right all the same"
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
    ax = show_heatmap(
        translation.attention_weights, translation.source_tokens, translation.tokens
    )
    ax.figure.savefig(path, dpi=150)


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
