"""The translating command: a line out for each line in, whatever the lines are."""

import io
import os
import subprocess
import sys
from contextlib import nullcontext
from itertools import accumulate
from types import SimpleNamespace

import pytest
import torch
from helpers.repo import ROOT

from utils import translate
from utils.alignment import pharaoh_links
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.decoding import Translation
from utils.decoding import translate as in_python
from utils.files import LONGEST_LINE
from utils.models import build_model
from utils.subwords import SubwordVocab
from utils.text import EOS

MODEL = ROOT / "data" / "models" / "village-en-fr.safetensors"
SENTENCES = [
    "The girl reads a book.",
    "Tomorrow the baker will sell bread.",
    "My mother likes the cat that sleeps.",
]


@pytest.fixture(scope="module")
def expected():
    model, *vocabs = load_checkpoint(MODEL)[:3]
    return [in_python(model.float(), text, *vocabs).text for text in SENTENCES]


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command on bytes or lines -> what it wrote, and what it said."""

    def run(*arguments, lines=SENTENCES, model=MODEL, ending="", stream=io.BytesIO):
        if not isinstance(lines, bytes):
            lines = "".join(f"{line}\n" for line in lines).encode()
        stdin = SimpleNamespace(buffer=stream(lines), isatty=lambda: False)
        monkeypatch.setattr(sys, "stdin", stdin)
        error = pytest.raises(SystemExit, match=ending) if ending else nullcontext()
        with error:
            translate.main([str(model), *map(str, arguments)])
        return capsys.readouterr()

    return run


def test_a_line_for_each_line(command, expected, monkeypatch):
    out, said = command()
    assert out.splitlines() == expected and said == ""
    assert command(model=MODEL.with_suffix("")).out == out
    assert command(lines=[]) == ("", "")
    last = "\n".join(SENTENCES).encode()  # without an end
    assert command(lines=b"\xef\xbb\xbf" + last.replace(b"\n", b"\r\n")).out == out
    monkeypatch.setattr(translate, "CHUNK", 2)
    assert command().out == out
    model, *vocabs = load_checkpoint(MODEL)[:3]
    found = in_python(model, SENTENCES, *vocabs, beam_size=3, length_penalty=0.5)
    out = command("--beam", 3, "--length-penalty", 0.5).out
    assert out.splitlines() == [one.text for one in found]


def test_a_line_that_cannot_be_translated_is_named_and_left_empty(command, expected):
    faults = [b"", b" \t ", b"caf\xe9", b"the " * 300, b"x" * 9 * LONGEST_LINE]
    lines = [SENTENCES[0].encode(), *faults, SENTENCES[1].encode()]
    out, said = command(lines=b"\n".join(lines) + b"\n", ending="1")
    assert out.split("\n") == [expected[0], *[""] * len(faults), expected[1], ""]
    told = said.splitlines()
    assert told[0] == "line 2: there is nothing to translate: the line has no word"
    assert told[2].startswith("line 4: not UTF-8 (byte 0xe9)")
    assert told[3].startswith("line 5: the line has 300 words, or pieces of words, for")
    assert told[4] == "line 6: more than 10,000 characters; no sentence has as many"
    assert told[-1] == "lost: 5 of 7 lines"
    told = command(lines=[""] * 500, ending="1").err.splitlines()
    assert len(told) == translate.TOLD + 2
    assert told[-2] == f"… and {500 - translate.TOLD} more lines"
    for start in (b"\x1f\x8b", b"\xff\xfe"):
        command(lines=start + b"a\n", ending="standard input is gzip or UTF-16: give")
    said = command(lines=["The zebra reads a blog.", "A cat sleeps."]).err
    assert said == "line 1: words read as <unk>: zebra, blog\n"


TEXTS = ["The cat, 3 dogs.", "x@y.org  costs 10 €", "a b c"]


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    """A model of pieces that has learnt nothing: its file, itself, its vocabularies."""
    path = tmp_path_factory.mktemp("real") / "model.safetensors"
    vocabs = [SubwordVocab.train(TEXTS, lang, 300) for lang in ("en", "fr")]
    torch.manual_seed(3)
    model = build_model("translator", *map(len, vocabs), 8, 8, 8, 0.0).eval()
    notes = {"options": {"lower_case": True}}
    save_checkpoint(path, model, *vocabs, notes=notes)
    return path, model, vocabs


def test_the_best_translations_with_scores_and_links(command, real):
    path, model, vocabs = real
    texts = [text.lower() for text in TEXTS]
    search = {"beam_size": 3, "length_penalty": 1.0, "n_best": 3}
    found = in_python(model, texts, *vocabs, **search)
    out = command("--n-best", 3, "--links", lines=TEXTS, model=path).out
    rows = [line.split(" ||| ") for line in out.splitlines()]
    assert [row[0] for row in rows] == [str(n) for n in (0, 1, 2) for _ in range(3)]
    for text, three in zip(texts, found, strict=True):
        for one in three:
            links = pharaoh_links(text, one, *vocabs)
            assert rows.pop(0)[1:] == [one.text, links, f"{one.log_prob:.4f}"]
    out = command("--scores", "--tsv", lines=[f"{TEXTS[0]}\tb"], model=path).out
    assert out.startswith(f"{TEXTS[0]}\tb\t") and float(out.split("\t")[-1]) < 0
    command("--links", ending="links are of real text, in languages with spaces")


def test_links_are_those_of_the_weights():
    vocabs = [SubwordVocab.train(TEXTS, lang, 300) for lang in ("en", "fr")]
    pieces = vocabs[0].encode("a b c").tokens
    word_of = [n - 1 for n in accumulate(piece[0] == "▁" for piece in pieces)]
    assert word_of[-1] == 2 and len(pieces) > 3
    weights = torch.zeros(len(pieces) + 1, len(pieces) + 1)
    weights[:, -1] = 0.95  # <eos> is no word
    for i, word in enumerate(word_of):
        weights[i, :-1] = torch.tensor([float(of == 2 - word) for of in word_of])
    found = Translation("a b c", [*pieces, EOS], [*pieces, EOS], weights, [], [])
    assert pharaoh_links("a b c", found, *vocabs) == "2-0 1-1 0-2"
    vocabs[1].lang = "ja"
    with pytest.raises(ValueError, match="in languages with spaces"):
        pharaoh_links("a b c", found, *vocabs)


def test_scores_are_against_a_file_or_the_second_column(command, expected, tmp_path):
    path = tmp_path / "references.txt"
    path.write_text("\n".join(expected) + "\n", encoding="utf-8")
    out, said = command("--score", path)
    assert out.splitlines() == expected
    scores = "BLEU 100.00, lower-cased 100.00, chrF 100.00"
    assert said.startswith(f"{scores}\nBLEU is nrefs:1|case:mixed|")
    table = list(map("\t".join, zip(SENTENCES, expected, strict=True)))
    out, again = command("--tsv", "--score", lines=table)
    rows = zip(table, expected, strict=True)
    assert again == said and out.splitlines() == list(map("\t".join, rows))
    assert scores in command("--score", path, lines=[*SENTENCES, ""], ending="1").err
    assert "BLEU 0.00" in command("--tsv", "--score", lines=[""], ending="1").err
    path.write_text("eins\nzwei\n", encoding="utf-8")
    out, _ = command("--score", path, ending="not scored: 2 references for 3 lines")
    assert out.splitlines() == expected  # nothing is lost
    command("--tsv", "--score", ending="line 1: there is no second column")


def test_a_heatmap_is_of_one_sentence(command, tmp_path, capsys):
    path = tmp_path / "picture.png"
    command("--heatmap", path, lines=SENTENCES[:1])
    assert path.read_bytes().startswith(b"\x89PNG")
    command("--heatmap", path, ending="draws one sentence, and there are 3 lines")
    command("--heatmap", path, lines=[""], ending="draws one sentence, and it is lost")
    hebrew = Translation("שלום", ["שלום"], ["a"], torch.ones(1, 1), [], [])
    translate.draw(path, hebrew, 1)
    assert capsys.readouterr().err.startswith("In the heatmap, numbers stand for")


def test_options_that_do_not_work(command):
    for words, ending in {
        "--beam 101": "2",  # argparse has said it
        "--heatmap=": "2",
        "--score": "--score needs a file of references, unless there is --tsv",
        "--score none": "none: No such file",
    }.items():
        assert command(*words.split(), ending=ending).out == ""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there is no sh")
def test_a_reader_that_has_enough_and_streams_that_are_closed(expected):
    def run(words, count):
        command = ["sh", "-c", f'"$0" -m utils.translate "$1" {words}', sys.executable]
        how = {"capture_output": True, "cwd": ROOT, "text": True}
        lines = f"{SENTENCES[0]}\n" * count
        done = subprocess.run([*command, MODEL], input=lines, **how)
        return done.stdout, done.stderr, done.returncode

    assert run("| head -n 1", 2 * translate.CHUNK) == (f"{expected[0]}\n", "", 0)
    assert run("2>&-", 1) == (f"{expected[0]}\n", "", 0)
    for name, closed in (("stdin", "<&-"), ("stdout", ">&-")):
        said = f"error: {name} is closed: nothing can be translated\n"
        assert run(closed, 1) == ("", said, 1)


def test_each_line_is_written_as_utf8_before_the_next_is_read(
    command, expected, monkeypatch
):
    """Whatever encoding the system has."""
    out, written = io.TextIOWrapper(io.BytesIO(), encoding="ascii"), []

    class Stream(io.BytesIO):
        def readline(self, *size):
            written.append(out.buffer.getvalue().decode("utf-8").splitlines())
            return super().readline(*size)

    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(translate, "CHUNK", 1)
    command(stream=Stream)
    assert written == [expected[:n] for n in range(4)]
