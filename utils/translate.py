"""The translating command: lines of text in, as many lines out.

    python -m utils.translate MODEL < in.txt > out.txt

From Python: `load_checkpoint` in `utils.checkpoint`, `translate` in `utils.decoding`.
"""

import sys
import warnings
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tqdm.auto import tqdm

from utils import files
from utils.alignment import pharaoh_links
from utils.checkpoint import load_checkpoint
from utils.decoding import require_attention, require_room, translate
from utils.metrics import text_scores
from utils.options import make_parser, open_streams, setting
from utils.processes import Machine
from utils.subwords import drawn

CHUNK = 1000  # lines that are read, translated and written together
TOLD = 20  # lines that are named
BREAKS = str.maketrans("\t\r\n", "   ")  # what would end a column or a line


@dataclass(frozen=True)
class Search(Machine):
    """How it is translated, and what is written of it."""

    beam: int = setting(1, "hypotheses; 5: a little better, and slower", (1, 100))
    length_penalty: float = setting(1.0, "P: by log-probability / length^P", (0, 10))
    n_best: int = setting(0, "this many, as NUMBER ||| TEXT ||| SCORE", (1, 100))
    scores: bool = setting(False, "one more column: log-probability, in nats")
    links: bool = setting(False, "one more column: source word-word pairs, as 0-0 1-0")
    tsv: bool = setting(False, "a line is a source, a tab, and more, which comes back")
    heatmap: str = setting("", "a picture of where it looks, for one line; · goes on")
    score: str = setting(
        None, "BLEU and chrF against this file; or, with --tsv, the second column"
    )


def read_lines(stream, src_vocab, tsv, lower_case):
    """(columns, the text to translate, what is wrong with it) of each line of bytes."""
    for number, raw in enumerate(iter(stream.readline, b""), 1):
        if number == 1 and raw.startswith((b"\x1f\x8b", *files.UTF16_MARKS)):
            raise ValueError("standard input is gzip or UTF-16: give UTF-8 text")
        columns, text, fault = [""], "", ""
        try:
            columns = files.decode_line(raw, number).split("\t" if tsv else "\n")
            text = columns[0].lower() if lower_case else columns[0]
            require_room(text, src_vocab.encode(text).ids, "the line")
        except ValueError as error:
            fault = str(error)
        yield columns, text, fault


def output_line(search, number, columns, text, found, vocabs):
    """A line of output; found: a Translation, or None for a line that has a fault."""
    written, more = found.text.translate(BREAKS) if found else "", []
    if search.links:
        more.append(pharaoh_links(text, found, *vocabs) if found else "")
    if search.scores or search.n_best:
        more.append(f"{found.log_prob:.4f}" if found else "")
    if search.n_best:
        return " ||| ".join([str(number), written, *more])
    return "\t".join([*columns * search.tsv, written, *more])


def translated(lines, size, model, vocabs, how):
    """The lines, each with its best Translations: (columns, text, fault, found)."""
    while chunk := list(islice(lines, size)):
        good = [text for _, text, fault in chunk if not fault]
        results = iter(translate(model, good, *vocabs, **how))
        for columns, text, fault in chunk:
            found = [] if fault else next(results)
            yield columns, text, fault, found if isinstance(found, list) else [found]
        sys.stdout.flush()


def run(given):
    """Translate standard input to standard output -> how many lines were lost."""
    search = Search.of(given)
    if search.score is True and not search.tsv:
        raise ValueError("--score needs a file of references, unless there is --tsv")
    path = Path(search.score) if isinstance(search.score, str) else None
    references = path and files.read_lines(path)
    device = search.start()
    model, *vocabs, _, _, notes = load_checkpoint(files.model_file(given["model"]))
    beam = max(search.beam, search.n_best)
    how = {"beam_size": beam, "length_penalty": search.length_penalty}
    how["n_best"] = search.n_best or int(search.scores) or None
    lower_case = notes.get("options", {}).get("lower_case", False)
    lines = read_lines(sys.stdin.buffer, vocabs[0], search.tsv, lower_case)
    size = 1 if sys.stdin.isatty() else CHUNK
    lines = translated(lines, size, model.float().to(device), vocabs, how)
    said, lost, scored, number, best = [], 0, [], 0, None
    shown = sys.stderr.isatty() and size > 1
    for columns, text, fault, found in tqdm(lines, unit=" lines", disable=not shown):
        for one in found or [None] * (not search.n_best):
            print(output_line(search, number, columns, text, one, vocabs))
        number, best = number + 1, found[0] if found else None
        scored += [(best.text if best else "", columns)] * bool(search.score)
        if fault or not best.text.strip():
            lost += 1
            said.append(f"line {number}: {fault or 'its translation is empty'}")
        elif unknown := ", ".join(best.unknown):
            said.append(f"line {number}: words read as <unk>: {unknown}")
    more = [f"… and {len(said) - TOLD:,} more lines"] * (len(said) > TOLD)
    more += [f"lost: {lost:,} of {number:,} lines"] * (lost > 0)
    print(*said[:TOLD], *more, sep="\n", end="\n" * bool(said), file=sys.stderr)
    if search.heatmap:
        draw(search.heatmap, best, number)
    if search.score:
        say_scores(scored, references, vocabs[1].lang)
    return lost


def score_line(scores) -> str:
    """What `text_scores` has found, in a line."""
    names = {"BLEU": "bleu", "lower-cased": "bleu_lower", "chrF": "chrf"}
    return ", ".join(f"{said} {scores[name]:.2f}" for said, name in names.items())


def say_scores(scored, references, lang):
    """BLEU and chrF on standard error; references: None for the second columns."""
    texts, rows = zip(*scored, strict=True) if scored else ([], [])
    if references is None:
        for number, columns in enumerate(rows, 1):
            if len(columns) == 1 and columns[0]:
                raise ValueError(f"line {number}: there is no second column to score")
        references = [columns[1] if columns[1:] else "" for columns in rows]
    elif len(references) > len(rows) or any(map(any, rows[len(references) :])):
        many = f"{len(references):,} references for {len(texts):,} lines"
        raise ValueError(f"not scored: {many}")
    scores = text_scores(texts[: len(references)], references, lang)
    print(score_line(scores), file=sys.stderr)
    print(f"BLEU is {scores['signature']}", file=sys.stderr)


def draw(path, found, count):
    """The heatmap of the only line, to a file."""
    from utils.plotting import show_heatmap  # here, since it takes a while

    if count != 1 or found is None:
        why = "it is lost" if count == 1 else f"there are {count:,} lines"
        raise ValueError(f"--heatmap draws one sentence, and {why}")
    require_attention(found.attention_weights)
    with warnings.catch_warnings(record=True) as said:
        sides = map(drawn, (found.source_tokens, found.tokens))
        ax = show_heatmap(found.attention_weights, *sides)
        ax.figure.savefig(path, dpi=150)
    for warning in said:
        print(warning.message, file=sys.stderr)


def main(arguments=None):
    for name in ("stdin", "stdout"):
        if getattr(sys, name) is None:
            sys.exit(f"error: {name} is closed: nothing can be translated")
    open_streams()
    parser = make_parser(
        "python -m utils.translate",
        "Translate lines from standard input to standard output, one for one. A line "
        "that is lost stays empty and is named, and the exit status is 1.",
        Search,
    )
    parser.add_argument("model", help="a file that python -m utils.train has written")
    try:
        if run(vars(parser.parse_args(arguments))):
            sys.exit(1)
    except BrokenPipeError:  # who reads has read enough, as `head` does
        sys.stderr.close()
        sys.exit(0)
    except (ValueError, TypeError, OSError) as error:
        sys.exit(f"error: {files.in_words(error)}")
    except KeyboardInterrupt:
        sys.exit("stopped: what is written is whole")


if __name__ == "__main__":
    main()
