"""The translating command: a line out for each line in, whatever the lines are."""

import io
import os
import subprocess
import sys
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from helpers.repo import ROOT

from utils import translate
from utils.checkpoint import load_checkpoint
from utils.decoding import Translation
from utils.decoding import translate as in_python
from utils.files import LONGEST_LINE

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
        if ending:
            with pytest.raises(SystemExit, match=ending):
                translate.main([str(model), *map(str, arguments)])
        else:
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


def test_a_beam_is_that_of_python(command):
    model, *vocabs = load_checkpoint(MODEL)[:3]
    found = in_python(model, SENTENCES, *vocabs, beam_size=3, length_penalty=0.5)
    out = command("--beam", 3, "--length-penalty", 0.5).out
    assert out.splitlines() == [one.text for one in found]


def test_a_line_that_cannot_be_translated_is_named_and_left_empty(command, expected):
    faults = [b"", b" \t ", b"caf\xe9", b"the " * 300, b"x" * 9 * LONGEST_LINE]
    faults.append(b"a" + "é".encode() * LONGEST_LINE * 3)  # cut off within a letter
    lines = [SENTENCES[0].encode(), *faults, SENTENCES[1].encode()]
    out, said = command(lines=b"\n".join(lines) + b"\n")
    written = out.split("\n")
    assert written[0] == expected[0] and written[-2:] == [expected[1], ""]
    assert written[1:-2] == [""] * len(faults)
    told = said.splitlines()
    assert told[0] == "line 2: there is nothing to translate: the line has no word"
    assert told[2].startswith("line 4: not UTF-8 (byte 0xe9)")
    assert told[3].startswith("line 5: the line has 300 words, or pieces of words, for")
    assert told[4] == "line 6: more than 10,000 characters; no sentence has as many"
    assert told[5] == told[4].replace("line 6", "line 7")
    assert told[-1] == "left empty: 6 of 8 lines"
    told = command(lines=[""] * 500).err.splitlines()
    assert len(told) == translate.TOLD + 2
    assert told[-2] == f"… and {500 - translate.TOLD} more lines"


def test_unknown_words_are_told_at_the_end(command):
    said = command(lines=["The zebra reads a blog.", "A zebra sleeps."]).err
    told = "words that the model doesn't know, read as <unk>: 3 (zebra, blog)"
    assert said.rstrip() == told


def test_the_output_is_utf8_whatever_the_system_has(command, expected, monkeypatch):
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", out)
    command()
    assert out.buffer.getvalue().decode("utf-8").splitlines() == expected


def test_scores_are_against_a_file_or_the_second_column(command, expected, tmp_path):
    path = tmp_path / "references.txt"
    path.write_text("\n".join(expected) + "\n", encoding="utf-8")
    out, said = command("--score", path)
    assert out.splitlines() == expected
    assert said.startswith("BLEU 100.00  nrefs:1|case:lc|") and "chrF 100.00" in said
    table = [f"{one}\t{other}" for one, other in zip(SENTENCES, expected, strict=True)]
    out, again = command("--tsv", "--score", lines=table)
    rows = zip(table, expected, strict=True)
    assert again == said and out.splitlines() == list(map("\t".join, rows))
    assert command("--tsv").out.splitlines()[0] == f"{SENTENCES[0]}\t{expected[0]}"
    assert "BLEU 0.00" in command("--tsv", "--score", lines=[""]).err  # an empty one
    path.write_text("eins\nzwei\n", encoding="utf-8")
    out, _ = command("--score", path, ending="there are 2 references and 3 lines")
    assert out.splitlines() == expected  # nothing is lost
    command("--tsv", "--score", ending="line 1: there is no second column")


def test_a_heatmap_is_of_one_sentence(command, tmp_path, capsys):
    path = tmp_path / "picture.png"
    command("--heatmap", path, lines=SENTENCES[:1])
    assert path.read_bytes().startswith(b"\x89PNG")
    command("--heatmap", path, ending="draws one sentence, and there are 3 lines")
    hebrew = Translation("שלום", ["שלום"], ["a"], torch.ones(1, 1), [], [])
    translate.draw(path, hebrew, 1)
    assert capsys.readouterr().err.startswith("In the heatmap, numbers stand for")


@pytest.mark.parametrize(
    "arguments, ending",
    [
        (["--beam", "0"], "error: --beam must be a whole number .*, got 0"),
        (["--length-penalty", "-1"], "error: --length-penalty must be at least 0"),
        (["--score"], "2"),
        (["--score", "none"], "error: there is no file none"),
    ],
)
def test_options_that_do_not_work(command, arguments, ending):
    assert command(*arguments, ending=ending).out == ""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there is no head")
def test_a_reader_that_has_enough():
    command = ["sh", "-c", '"$0" -m utils.translate "$1" | head -n 1', sys.executable]
    lines = f"{SENTENCES[0]}\n" * 2 * translate.CHUNK
    run = partial(subprocess.run, capture_output=True, cwd=ROOT, text=True)
    found = run([*command, MODEL], input=lines)
    assert found.stdout.count("\n") == 1 and found.stderr == ""


def test_each_line_is_written_before_the_next_is_read(
    command, expected, monkeypatch, capsys
):
    written = []

    class Stream(io.BytesIO):
        def readline(self, *size):
            written.append(capsys.readouterr().out.rstrip())
            return super().readline(*size)

    monkeypatch.setattr(translate, "CHUNK", 1)
    command(stream=Stream)
    assert written == ["", *expected]
