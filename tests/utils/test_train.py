"""The training command: what it says, stores, resumes and refuses."""

import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, fields
from pathlib import Path

import pytest
from helpers.training import SMALL

from utils import report, train
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.decoding import translate
from utils.models import build_model
from utils.recipe import SIZES, Settings
from utils.text import Vocab

ROOT = Path(__file__).resolve().parents[2]
TINY = {**SMALL, "num_epochs": 1, "batch_size": 8}


@pytest.fixture(scope="module")
def lines():
    pairs = load_village("en", "fr")["train"][:120]
    return "".join(f"{' '.join(p.source)}\t{' '.join(p.target)}\n" for p in pairs)


@pytest.fixture
def text(lines, tmp_path):
    """A file of 120 English and French sentences."""
    path = tmp_path / "fr.tsv"
    path.write_text(lines, encoding="utf-8")
    return path


def words(text, *flags, **options):
    """The command's words; options by their names, on the text unless it is resumed."""
    if "--resume" not in flags:
        options = {"source": "en", "target": "fr", "tsv": text, **TINY, **options}
    options.setdefault("out", text.parent / "model")
    found = []
    for name, value in options.items():
        values = value if isinstance(value, tuple) else (value,)
        found += [train.dashed(name), *map(str, values)]
    return [*found, *flags]


@pytest.fixture
def command(text, capsys):
    """Runs the command -> what it printed."""

    def run(*flags, **options):
        train.main(words(text, *flags, **options))
        return capsys.readouterr().out

    return run


def refused(command, *flags, **options):
    """Runs a command that must fail -> its one message."""
    with pytest.raises(SystemExit) as error:
        command(*flags, **options)
    message = str(error.value)
    assert "\n" not in message and message.startswith("error: ")
    return message.removeprefix("error: ")


def stored(folder):
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".tsv")


def test_it_trains_stores_reports_and_goes_on(command, tmp_path, monkeypatch):
    printed, out = command().splitlines(), tmp_path / "model"
    assert stored(tmp_path) == [
        f"model.{end}" for end in ("last.safetensors", "log.csv", "png", "safetensors")
    ]
    best = load_checkpoint(f"{out}.safetensors")
    size = sum(parameter.numel() for parameter in best.model.parameters())
    pieces = "60 pieces of en (English) and 60 pieces of fr (French)"
    assert printed[:4] == [
        "fr.tsv, en→fr: 96 pairs for train, 12 pairs for valid, 12 pairs for test",
        f"vocabularies: {pieces}",
        f"translator, {size:,} parameters; loss: cross-entropy, its gradient by "
        "PyTorch; in training with label smoothing 0.1",
        "1 epoch of 12 batches of 8, learning rate up to 0.003",
    ]
    entry = load_checkpoint(f"{out}.last.safetensors").training["history"][0]
    losses = f"{entry['train_loss']:.3f} in training, {entry['valid_loss']:.3f} in val"
    assert printed[4].startswith(f"epoch 1 of 1: loss {losses}idation; BLEU ")
    assert f"the best epoch is 1: {out}.safetensors" in printed
    found = translate(best.model, "The baker sells bread.", *best[1:3])
    assert found.attention_weights.shape[1] == len(found.source_tokens)
    scores = best.notes["test"]
    assert scores["sentences"] == 12 and "tok:13a" in scores["signature"]
    for name, label in (("greedy", "greedy   "), ("beam", "beam of 5")):
        one = scores[name]
        assert f"    {label} BLEU {one['bleu']:.2f}, chrF {one['chrf']:.2f}" in printed

    with monkeypatch.context() as patch:
        patch.setattr(report, "test_scores", None)  # called again, it would fail
        again = command("--resume").splitlines()
    assert again[0].startswith("this training has had its 1 epoch: a larger --num-e")
    scored = printed.index("the test split, 12 sentences, scored once:")
    assert again[scored - len(printed) :] == printed[scored:]
    longer = command("--resume", num_epochs=2, lr=0.001)
    assert "--num-epochs was 1 and is 2 from here on" in longer
    assert "--lr was 0.003 and is 0.001 from here on" in longer
    with open(f"{out}.log.csv", encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    history = load_checkpoint(f"{out}.last.safetensors").training["history"]
    assert [(row["epoch"], row["lr"]) for row in log] == [
        ("1", "0.003"),
        ("2", "0.001"),
    ]
    for row, entry in zip(log, history, strict=True):
        for name in ("train_loss", "valid_loss", "seconds"):
            assert float(row[name]) == entry[name]
        lengths = [len(row[f"source_{n}"].split()) for n in (1, 2, 3)]
        assert lengths == sorted(lengths) and lengths[0] < lengths[2]
    block = [f"    {n:9} {log[1][f'{n}_2']}" for n in ("source", "reference", "output")]
    assert "\n".join(block) in longer


@pytest.mark.slow
def test_what_is_resumed_is_what_was_begun(command, text, tmp_path):
    command(dropout=0.1, loss="by-hand")
    out, last = tmp_path / "model", tmp_path / "model.last.safetensors"
    assert "by hand" in command("--resume", num_epochs=2)
    assert refused(command, "--resume", dropout=0.5) == (
        f"--dropout 0.5 can't be resumed: the training at {out} has 0.1. Leave it out, "
        "or begin anew with another --out"
    )
    text.write_text(text.read_text(encoding="utf-8").replace("the", "teh", 1), "utf-8")
    assert "isn't the file that this training began" in refused(command, "--resume")
    last.write_bytes(b"half")
    assert "damaged" in refused(command, "--resume")
    vocab = Vocab([["a"]], "en")
    save_checkpoint(last, build_model("fixed", 5, 5, 2, 2), vocab, vocab)
    assert "was not stored by this command" in refused(command, "--resume")
    last.unlink()
    assert "there is no checkpoint at" in refused(command, "--resume")
    assert f"{out}.safetensors and {out}.log.csv and {out}.png would be lost" in (
        refused(command)
    )
    command("--overwrite")
    assert load_checkpoint(last).notes["epoch"] == 1


@pytest.mark.slow
def test_starting_from_a_model_of_byte_pairs(command, tmp_path):
    assert "--alpha must be 0 with bpe" in refused(command, alpha=0.2, subwords="bpe")
    command(subwords="bpe", alpha=0.0)
    first, new = tmp_path / "model.safetensors", tmp_path / "new"
    own = {"source": "en", "target": "fr", "tsv": tmp_path / "fr.tsv", "from": first}
    given = [w for name, value in own.items() for w in (f"--{name}", str(value))]
    train.main([*given, *f"--out {new} --num-epochs 1 --lr 1e-9".split()])
    before, after = load_checkpoint(first), load_checkpoint(f"{new}.safetensors")
    assert after.src_vocab == before.src_vocab
    assert after.notes["settings"]["subwords"] == "bpe"
    same = zip(before.model.parameters(), after.model.parameters(), strict=True)
    assert all((one - other).abs().max() < 1e-6 for one, other in same)
    options = {"from": first, "out": tmp_path / "more"}
    message = "--embed-size is that of the model you start --from: leave it out"
    assert refused(command, **options) == message
    swapped = {**own, "source": "fr", "target": "en", "out": tmp_path / "more"}
    given = [w for name, value in swapped.items() for w in (f"--{name}", str(value))]
    with pytest.raises(SystemExit, match="en into fr: it can't be the start of fr→en"):
        train.main([*given, "--columns", "en", "fr"])


@pytest.mark.slow
def test_a_language_without_spaces_and_lines_that_cannot_be_read(command, text):
    pairs = load_village("en", "zh")["train"][:120]
    lines = [f"{' '.join(p.source)}\t{''.join(p.target)}\n" for p in pairs]
    bad = b"no tab\n\n\ncaf\xe9\tx\na\t\nb\t\n"
    text.write_bytes("".join(lines).encode() + bad)
    message = refused(command, target="zh")
    assert "line 121: wrong number of columns" in message and message.endswith(
        "; --skip-bad-lines leaves such lines out"
    )
    printed = command("--skip-bad-lines", target="zh", target_pieces=0).splitlines()
    assert printed[1:5] == [
        "1 line skipped: not UTF-8 (124)",
        "1 line skipped: wrong number of columns, 1 instead of 2 (121)",
        "2 lines skipped: the line is empty (122, 123)",
        "2 lines skipped: the zh side is empty (125, 126)",
    ]
    assert "characters of zh (Chinese)" in printed[5]
    assert "zh has no spaces: text and BLEU are taken character by" in printed[6]


# --- whatever ends it -----------------------------------------------------------------


def start(text, *flags, **options):
    """The command in a process of its own, its output to be read line by line."""
    return subprocess.Popen(
        [sys.executable, "-m", "utils.train", *words(text, *flags, **options)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def wait_for(process, epoch):
    assert any(line.startswith(f"epoch {epoch} ") for line in process.stdout)


def epochs(folder):
    """How many are in OUT.last.safetensors, which is whole; its model, too."""
    load_checkpoint(folder / "model.safetensors")
    return load_checkpoint(folder / "model.last.safetensors").notes["epoch"]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows ends processes otherwise")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_costs_the_running_epoch_at_most(text, tmp_path, name):
    process = start(text, num_epochs=200)
    wait_for(process, 2)
    time.sleep(random.uniform(0, 1))  # anywhere in an epoch
    process.send_signal(getattr(signal, name))
    printed, message = process.communicate()
    reported = 2 + sum(line.startswith("epoch ") for line in printed.splitlines())
    done = epochs(tmp_path)
    assert reported <= done <= reported + 1 and process.returncode != 0
    if name != "SIGKILL":
        assert message.splitlines() == [
            f"stopped after {done} whole epochs; the best model so far is "
            f"{tmp_path}/model.safetensors. Go on with the next epoch by",
            f"    python -m utils.train --resume --out {tmp_path}/model",
        ]
        assert not [file for file in stored(tmp_path) if file.endswith(".part")]
    again = start(text, "--resume", num_epochs=done + 1)
    assert f"epochs done: {done}, to do: 1" in again.communicate()[0]
    assert epochs(tmp_path) == done + 1


@pytest.mark.slow
def test_a_reader_that_leaves_costs_nothing(text, tmp_path):
    process = start(text, num_epochs=4)
    wait_for(process, 1)
    process.stdout.close()
    process.stdout = None
    assert process.communicate()[1] == "" and process.returncode == 0
    assert epochs(tmp_path) == 4
    with open(tmp_path / "model.log.csv", encoding="utf-8") as file:
        assert [row["epoch"] for row in csv.DictReader(file)] == ["1", "2", "3", "4"]


def test_stopped_before_anything_is_stored(command, monkeypatch, tmp_path):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "named_corpus", stopped)
    with pytest.raises(SystemExit, match="end of the first epoch: nothing was stored"):
        command()
    assert stored(tmp_path) == []


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_epochs": 0}, "--num-epochs must be a whole number of at least 1, got 0"),
        ({"lr": "nan"}, "--lr must be above 0 and finite, got nan"),
        ({"target_pieces": 9}, "--target-pieces of fr: 96 sentences don't give 9 piec"),
        ({"held_out": 100}, "too few for a split 'valid' of 100 and a training split"),
        ({"tsv": "no/such.tsv"}, "there is no file no/such.tsv"),
        ({"target": "en"}, "source and target are both en"),
        ({"columns": ("en", "de")}, "in the order of the file, got ['en', 'de']"),
        ({"kind": "transformer"}, "--embed-size: --kind transformer has none"),
        ({"loss": "by-hand", "kind": "attention"}, "Train it with --loss plain"),
    ],
)
def test_what_does_not_work(command, tmp_path, options, message):
    assert message in refused(command, **options)
    assert stored(tmp_path) == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "required: --out"),
        ("--out m --corpus village", "required: --source, --target"),
        ("--source en --target fr --out m", "give a text: either --tsv FILE or --cor"),
        ("--source en --target fr --out m --tsv a --lr fast", "invalid float value"),
        ("--source en --target fr --out m --tsv a --kind big", "invalid choice: 'big'"),
        ("--out m --tsv a --corpus village", "not allowed with argument --tsv"),
        ("--out m --resume --overwrite", "--resume and --overwrite are not allowed"),
        ("--out m --resume --from m", "not allowed with argument --resume"),
        (
            "--source en --target fr --out m --corpus village --held-out 9",
            "--held-out is for a file of your own, with --tsv",
        ),
    ],
)
def test_options_that_do_not_work(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        train.main(arguments.split())
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_every_setting_is_an_option_that_says_its_default():
    for field in fields(Settings):
        if field.name not in ("num_epochs", "batch_size", "target_pieces"):
            assert f"left out, {field.default}" in field.metadata["help"], field.name
    given = train.parse("--corpus village --source en --target fr --out m".split())
    assert set(given) == {"corpus", "source", "target", "out"}
    for kind in SIZES:
        chosen = train.parse(["--resume", "--out=m", "--kind", kind.replace(" ", "-")])
        assert chosen["kind"] == kind
    assert json.loads(json.dumps(asdict(Settings()))) == asdict(Settings())
