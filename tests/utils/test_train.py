"""The training command: what it says, stores, resumes and refuses."""

import csv
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from helpers.repo import ROOT
from helpers.training import NEW, start, write_pairs

from utils import train
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.decoding import MAX_SOURCE
from utils.models import build_model
from utils.text import Vocab
from utils.translate import score_line

ENDINGS = ("last.safetensors", "lock", "log.csv", "png", "safetensors")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with pairs.tsv and a training of one epoch; what was printed of it."""
    folder = tmp_path_factory.mktemp("trained")
    write_pairs(folder / "pairs.tsv")
    printed, errors = start(folder, NEW).communicate()
    assert not errors
    return folder, printed.splitlines()


@pytest.fixture
def run(trained, tmp_path, monkeypatch, capsys):
    """Runs the command in a copy of that folder -> what it printed, in lines."""
    shutil.copytree(trained[0], tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)

    def command(words):
        train.main(words.split())
        return capsys.readouterr().out.splitlines()

    return command


def refused(words, capsys):
    """Runs a command that must fail -> its one message."""
    with pytest.raises(SystemExit) as error:
        train.main(words.split())
    if error.value.code == 2:  # argparse has said it
        return capsys.readouterr().err.splitlines()[-1]
    assert re.fullmatch("error: .*", str(error.value))
    return str(error.value)


def epochs(folder="."):
    """How many are in OUT.last.safetensors, which is whole; its model, too."""
    load_checkpoint(Path(folder, "model.safetensors"))
    return load_checkpoint(Path(folder, "model.last.safetensors")).notes["epoch"]


def test_it_trains_stores_and_reports(trained):
    folder, printed = trained
    files = {"pairs.tsv", *(f"model.{ending}" for ending in ENDINGS)}
    assert set(os.listdir(folder)) == files
    best = load_checkpoint(folder / "model.safetensors")
    size = sum(parameter.numel() for parameter in best.model.parameters())
    last = load_checkpoint(folder / "model.last.safetensors")
    train_loss, valid_loss = list(last.training["history"][0].values())[:2]
    for said in (
        "en→fr: train 96, valid 12, test 12",
        "on cpu with --threads 1, in float32, the gradient by hand",
        f"released translator, {size:,} parameters",
        "epochs done: 0 of 1, each 3 batches of 32; learning rate up to 0.003",
        f"epoch 1 of 1: loss {train_loss:.3f} in training, {valid_loss:.3f} in valid",
        "the best epoch by validation loss is 1: model.safetensors",
    ):
        assert any(said in line for line in printed), said
    scores = best.notes["test"]
    assert scores["sentences"] == 12 and "case:mixed" in scores["signature"]
    for name, label in (("greedy", "greedy"), ("beam", "beam of 5")):
        assert f"    {label:9} {score_line(scores[name])}" in printed


def test_it_goes_on(run, trained, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(train, "text_scores", None)  # scored again, it would fail
        again = run("--resume --out model")
    assert "epochs done: 1 of 1, each 3 batches of 32; learning" in "".join(again[:6])
    scored = trained[1].index("the test split, 12 sentences, scored once:")
    assert again[scored - len(trained[1]) :] == trained[1][scored:]
    longer = run("--resume --out model.safetensors --num-epochs 2 --lr 0.001")
    assert "--num-epochs was 1 and is 2 from here on" in longer
    assert "--lr was 0.003 and is 0.001 from here on" in longer
    with open("model.log.csv", encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert [row["lr"] for row in log] == ["0.003", "0.001"]
    history = load_checkpoint("model.last.safetensors").training["history"]
    for row, entry in zip(log, history, strict=True):
        for name in ("train_loss", "valid_loss", "seconds"):
            assert float(row[name]) == entry[name]
    assert f"    output    {log[1]['output']}" in longer


def test_what_is_resumed_is_what_was_begun(run, capsys):
    text, last = Path("pairs.tsv"), Path("model.last.safetensors")
    resume = "--resume --out model"
    message = refused(f"{resume} --lower-case --dropout 0.5", capsys)
    assert message.startswith("error: it was another training: lower_case was False")
    assert message.endswith("; dropout was 0.3 and is 0.5")
    text.rename("moved.tsv")
    run(f"{resume} --tsv moved.tsv")
    changed = Path("moved.tsv").read_text("utf-8").replace("a", "b", 1)
    text.write_text(changed, "utf-8")
    assert "(SHA-256) was" in refused(f"{resume} --tsv pairs.tsv", capsys)
    vocab = Vocab([["a"]], "en")
    save_checkpoint(last, build_model("fixed", 5, 5, 2, 2), vocab, vocab)
    assert "was not stored by this command" in refused(resume, capsys)
    last.unlink()
    assert "there is no checkpoint at" in refused(resume, capsys)


def test_starting_from_a_model(run, capsys, monkeypatch):
    """And anew where a training was: once it has begun, the old one isn't resumed."""
    start = "--tsv pairs.tsv --source en --target fr --out new --from"
    run(f"{start} model --num-epochs 1 --lr 1e-9")
    before, after = map(load_checkpoint, ("model.safetensors", "new.safetensors"))
    assert after.src_vocab == before.src_vocab
    same = zip(before.model.parameters(), after.model.parameters(), strict=True)
    assert all((one - other).abs().max() < 1e-6 for one, other in same)
    for words, message in {
        "model --out newer --embed-size 8": "--embed-size is that of --from: leave it",
        "model --out newer --lower-case": "lower_case was False and is True",
        f"{ROOT}/data/models/village-en-fr": "was not stored by this command",
        "model --out newer --source fr --target en --columns 2 1": "source was en and "
        "is fr; target was fr and is en",
    }.items():
        assert message in refused(f"{start} {words}", capsys)
    monkeypatch.setattr(train.Store, "epoch", lambda *a, **k: signal.raise_signal(2))
    with pytest.raises(SystemExit, match="stopped; nothing was stored before the end"):
        train.main(f"{NEW} --overwrite".split())


def test_two_files_options_from_a_file_and_what_is_too_long(run):
    """A pair that is too long is left out; in the test split it counts as empty."""
    lines = [line.split("\t") for line in Path("pairs.tsv").read_text().splitlines()]
    options = [NEW.replace("--tsv pairs.tsv", "--lower-case"), "--out 'a #'#1 # it's"]
    parts = {"train": lines[:90], "valid": [*lines[90:], ["y Y", "TEST"]], "test": []}
    for split, part in parts.items():
        part = [*part, ["x " * MAX_SOURCE, f"Long {split}."], ["Y y", split]]
        for end, side in zip(("en", "fr"), zip(*part, strict=True), strict=True):
            Path(f"{split}.{end}").write_text("\n".join(side), "utf-8")
        options.append(f"--{split} {split}.en {split}.fr")
    Path("options").write_text("\n".join(options), "utf-8")
    printed = run("@options")
    assert "train 91, valid 31, test 2" in printed[0]
    said = "".join(printed[1:7])
    assert "valid: 1 line left out: a pair that test has (line 31)" in said
    assert "train: 1 line of more than 200 pieces left out" in said
    assert "test: 1 line of more than 200 pieces counted as an empty" in said
    stored = load_checkpoint("a ##1.safetensors")
    assert stored.notes["test"]["sentences"] == 2
    assert "A" not in "".join(stored.tgt_vocab.idx_to_token[260:])


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows ends processes otherwise")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGKILL"])
def test_a_signal_costs_the_running_epoch_at_most(tmp_path, name):
    """And while it trains, no other training may store its model there."""
    write_pairs(tmp_path / "pairs.tsv")
    process = start(tmp_path, f"{NEW} --num-epochs 200")
    assert any(line.startswith("epoch 2 ") for line in process.stdout)
    if name == "SIGINT":
        second = start(tmp_path, f"{NEW} --overwrite").communicate()[1]
        assert second == "error: another training is storing its model at model\n"
    time.sleep(random.uniform(0, 1))  # anywhere in an epoch
    process.send_signal(getattr(signal, name))
    printed, message = process.communicate()
    reported = 2 + sum(line.startswith("epoch ") for line in printed.splitlines())
    done = epochs(tmp_path)
    assert reported <= done <= reported + 1 and process.returncode != 0
    if name != "SIGKILL":
        again = "go on by python -m utils.train --resume --out model"
        assert message == f"stopped; {again}\n"
        assert not list(tmp_path.glob("*.part"))
    again = start(tmp_path, f"--resume --out model --num-epochs {done + 1}")
    assert f"epochs done: {done} of {done + 1}, each" in again.communicate()[0]
    assert epochs(tmp_path) == done + 1


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="there is no sh")
@pytest.mark.parametrize("end", ["<&- >&- 2>&-", ">/dev/full", "| head -n 7"])
def test_a_stream_that_is_closed_or_full_costs_nothing(tmp_path, end):
    """Nor does a reader that leaves after some lines."""
    write_pairs(tmp_path / "pairs.tsv")
    words = f'"$0" -m utils.train {" ".join(NEW.split())} --num-epochs 3 {end}'
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = ["sh", "-c", words, sys.executable]
    how = {"capture_output": True, "cwd": tmp_path, "check": True}
    done = subprocess.run(command, env=environment, **how)
    assert done.stderr == b"" and epochs(tmp_path) == 3
    assert load_checkpoint(tmp_path / "model.safetensors").notes["test"]
    log = (tmp_path / "model.log.csv").read_text("utf-8").splitlines()
    assert [row.split(",")[0] for row in log] == ["epoch", "1", "2", "3"]


OTHER = f"{NEW} --out new"
BEGIN = "--out new --source en --target fr"
REFUSED = {
    "--source en --target fr --tsv pairs.tsv": "--out is needed",
    "--out new --tsv pairs.tsv": "--source and --target are needed",
    BEGIN: "one text is needed",
    f"{OTHER} --corpus multi30k": "one text is needed",
    f"{BEGIN} --corpus multi30k --held-out 9": "--held-out is not for --corpus",
    "--out model --resume --overwrite": "--resume goes without --overwrite",
    NEW: "model.last.safetensors and model.log.csv and model.png would be lost",
    f"{OTHER} --dropout 1": "--dropout: must be a number of at least 0 and at most 0.",
    f"{OTHER} --lr nan": "--lr: must be a number of at least 1e-12, got nan",
    f"{OTHER} --batch-size 2.5": "--batch-size: must be a whole number of at least 1",
    f"{OTHER} --kind rnnsearch": "--kind: must be one of attention, condit",
    f"{OTHER} --tsv=": "--tsv: must be more than nothing",
    f"{OTHER} --kind transformer": "--embed-size: this --kind has none",
    f"{OTHER} --device mps": "the device mps isn't there: PyTorch finds cpu",
    f"{OTHER} @none": "none",
}


def test_what_does_not_work(trained, monkeypatch, capsys):
    monkeypatch.chdir(trained[0])
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: False)
    for words, message in REFUSED.items():
        assert message in refused(words, capsys)
    there = {"pairs.tsv", "new.lock", *(f"model.{end}" for end in ENDINGS)}
    assert {*os.listdir()} <= there
    monkeypatch.setattr(train.Job, "read", lambda _: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit, match="nothing was stored before the end of the"):
        train.main(OTHER.split())
