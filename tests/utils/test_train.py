"""The training command: what it says, stores, resumes and refuses."""

import contextlib
import csv
import io
import os
import random
import shutil
import signal
import time
from dataclasses import fields
from pathlib import Path

import pytest
from helpers.training import NEW, start, write_pairs

from utils import report, train
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.decoding import translate
from utils.models import build_model
from utils.recipe import SIZES, Settings
from utils.text import Vocab

ENDINGS = ("last.safetensors", "log.csv", "png", "safetensors")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with pairs.tsv and a training of one epoch; what was printed of it."""
    folder, printed = tmp_path_factory.mktemp("trained"), io.StringIO()
    write_pairs(folder / "pairs.tsv")
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed):
        patch.chdir(folder)
        train.main(NEW.split())
    return folder, printed.getvalue().splitlines()


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
    message = str(error.value)
    assert "\n" not in message and message.startswith("error: ")
    return message.removeprefix("error: ")


def epochs(folder="."):
    """How many are in OUT.last.safetensors, which is whole; its model, too."""
    load_checkpoint(Path(folder, "model.safetensors"))
    return load_checkpoint(Path(folder, "model.last.safetensors")).notes["epoch"]


def test_it_trains_stores_and_reports(trained):
    folder, printed = trained
    assert {path.name for path in folder.iterdir()} == {"pairs.tsv"} | {
        f"model.{ending}" for ending in ENDINGS
    }
    best = load_checkpoint(folder / "model.safetensors")
    size = sum(parameter.numel() for parameter in best.model.parameters())
    assert printed[:4] == [
        "pairs.tsv, en→fr: 96 pairs for train, 12 pairs for valid, 12 pairs for test",
        "vocabularies: 40 pieces of en (English) and 40 pieces of fr (French)",
        f"translator, {size:,} parameters; loss: cross-entropy, its gradient by "
        "PyTorch; in training with label smoothing 0.1",
        "1 epoch of 3 batches of 32, learning rate up to 0.003",
    ]
    last = load_checkpoint(folder / "model.last.safetensors")
    train_loss, valid_loss = list(last.training["history"][0].values())[:2]
    losses = f"loss {train_loss:.3f} in training, {valid_loss:.3f} in validation; BLEU"
    assert printed[4].startswith(f"epoch 1 of 1: {losses} ")
    assert "the best epoch is 1: model.safetensors" in printed
    found = translate(best.model, "ab cd", *best[1:3])
    assert found.attention_weights.shape[1] == len(found.source_tokens)
    scores = best.notes["test"]
    assert scores["sentences"] == 12 and "tok:13a" in scores["signature"]
    for name, label in (("greedy", "greedy   "), ("beam", "beam of 5")):
        one = scores[name]
        assert f"    {label} BLEU {one['bleu']:.2f}, chrF {one['chrf']:.2f}" in printed


def test_it_goes_on(run, trained, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(report, "test_scores", None)  # called again, it would fail
        again = run("--resume --out model")
    assert again[0].startswith("this training has had its 1 epoch: a larger --num-e")
    scored = trained[1].index("the test split, 12 sentences, scored once:")
    assert again[scored - len(trained[1]) :] == trained[1][scored:]
    longer = run("--resume --out model.safetensors --num-epochs 2 --lr 0.001")
    assert "--num-epochs was 1 and is 2 from here on" in longer
    assert "--lr was 0.003 and is 0.001 from here on" in longer
    with open("model.log.csv", encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert [(row["epoch"], row["lr"]) for row in log] == [
        ("1", "0.003"),
        ("2", "0.001"),
    ]
    history = load_checkpoint("model.last.safetensors").training["history"]
    for row, entry in zip(log, history, strict=True):
        for name in ("train_loss", "valid_loss", "seconds"):
            assert float(row[name]) == entry[name]
        lengths = [len(row[f"source_{n}"].split()) for n in (1, 2, 3)]
        assert lengths == sorted(lengths) and lengths[0] < lengths[2]
    for name in ("source", "reference", "output"):
        assert f"    {name:9} {log[1][f'{name}_2']}" in longer


def test_what_is_resumed_is_what_was_begun(run, capsys):
    text, last = Path("pairs.tsv"), Path("model.last.safetensors")
    resume = "--resume --out model"
    text.write_text(text.read_text("utf-8").replace("a", "b", 1), "utf-8")
    assert "isn't the file that this training began" in refused(resume, capsys)
    last.write_bytes(b"half")
    assert "damaged" in refused(resume, capsys)
    vocab = Vocab([["a"]], "en")
    save_checkpoint(last, build_model("fixed", 5, 5, 2, 2), vocab, vocab)
    assert "was not stored by this command" in refused(resume, capsys)
    last.unlink()
    assert "there is no checkpoint at" in refused(resume, capsys)
    assert "by hand" in "".join(run(f"{NEW} --overwrite --loss by-hand"))
    assert epochs() == 1
    assert "by hand" in "".join(run(f"{resume} --num-epochs 2")) and epochs() == 2


@pytest.mark.slow
def test_starting_from_a_model_of_byte_pairs(run):
    run(f"{NEW} --overwrite --subwords bpe")
    start = "--tsv pairs.tsv --source en --target fr --from model --out new"
    run(f"{start} --num-epochs 1 --lr 1e-9")
    before, after = map(load_checkpoint, ("model.safetensors", "new.safetensors"))
    assert after.src_vocab == before.src_vocab
    assert after.notes["settings"]["subwords"] == "bpe"
    same = zip(before.model.parameters(), after.model.parameters(), strict=True)
    assert all((one - other).abs().max() < 1e-6 for one, other in same)


@pytest.mark.slow
def test_a_language_without_spaces_and_lines_that_cannot_be_read(run, capsys):
    pairs = load_village("en", "zh")["train"][:120]
    lines = [f"{' '.join(p.source)}\t{''.join(p.target)}\n" for p in pairs]
    bad = b"no tab\n\n\ncaf\xe9\tx\na\t\nb\t\n"
    Path("zh.tsv").write_bytes("".join(lines).encode() + bad)
    chinese = f"{NEW} --target zh --tsv zh.tsv --out zh --target-pieces 0"
    message = refused(chinese, capsys)
    assert "line 121: wrong number of columns" in message
    assert message.endswith("; --skip-bad-lines leaves such lines out")
    printed = run(f"{chinese} --skip-bad-lines")
    assert printed[1:5] == [
        "1 line skipped: not UTF-8 (124)",
        "1 line skipped: wrong number of columns, 1 instead of 2 (121)",
        "2 lines skipped: the line is empty (122, 123)",
        "2 lines skipped: the zh side is empty (125, 126)",
    ]
    assert "characters of zh (Chinese)" in printed[5]
    assert "zh has no spaces: text and BLEU are taken character by" in printed[6]


# --- whatever ends it -----------------------------------------------------------------


def wait_for(process, epoch):
    assert any(line.startswith(f"epoch {epoch} ") for line in process.stdout)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="Windows ends processes otherwise")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_signal_costs_the_running_epoch_at_most(tmp_path, name):
    write_pairs(tmp_path / "pairs.tsv")
    process = start(tmp_path, f"{NEW} --num-epochs 200")
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
            "model.safetensors. Go on with the next epoch by",
            "    python -m utils.train --resume --out model",
        ]
        assert not list(tmp_path.glob("*.part"))
    again = start(tmp_path, f"--resume --out model --num-epochs {done + 1}")
    assert f"epochs done: {done}, to do: 1" in again.communicate()[0]
    assert epochs(tmp_path) == done + 1


@pytest.mark.slow
def test_a_reader_that_leaves_costs_nothing(tmp_path):
    write_pairs(tmp_path / "pairs.tsv")
    process = start(tmp_path, f"{NEW} --num-epochs 4")
    wait_for(process, 1)
    process.stdout.close()
    process.stdout = None
    assert process.communicate()[1] == "" and process.returncode == 0
    assert epochs(tmp_path) == 4
    log = (tmp_path / "model.log.csv").read_text("utf-8").splitlines()
    assert [row.split(",")[0] for row in log] == ["epoch", "1", "2", "3", "4"]


def test_stopped_before_anything_is_stored(run, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "named_corpus", stopped)
    with pytest.raises(SystemExit, match="end of the first epoch: nothing was stored"):
        run(f"{NEW} --out new")


# --- what is refused ------------------------------------------------------------------

OTHER = f"{NEW} --out new"
BEGIN = "--out new --source en --target fr"
REFUSED = {
    "--out new --corpus village": "required: --source, --target",
    BEGIN: "give a text: either --tsv FILE or --corpus",
    "--out model --resume --overwrite": "--resume and --overwrite are not allowed",
    f"{BEGIN} --corpus village --held-out 9": "--held-out is for a file of your own",
    NEW: "model.last.safetensors and model.log.csv and model.png would be lost",
    f"{OTHER} --num-epochs 0": "--num-epochs must be a whole number of at least 1, got",
    f"{OTHER} --patience 0": "--patience must be a whole number of at least 1, got 0",
    f"{OTHER} --target-pieces 9": "--target-pieces of fr: 96 sentences don't give 9",
    f"{OTHER} --held-out 100": "too few for a split 'valid' of 100 and a",
    f"{OTHER} --kind transformer": "--embed-size: --kind transformer has none",
    f"{OTHER} --loss by-hand --kind attention": "Train it with --loss plain",
    f"{OTHER} --subwords bpe --alpha 0.2": "--alpha must be 0 with bpe",
    "--resume --out model --dropout 0.5": "--dropout 0.5 can't be resumed: the "
    "training at model has 0.3. Leave it out, or begin anew with another --out",
    f"{OTHER} --from model": "--embed-size is that of the model you start --from",
    f"{BEGIN} --tsv pairs.tsv --from model --source fr --target en --columns en fr": (
        "model translates en into fr: it can't be the start of fr→en"
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_work(trained, monkeypatch, capsys, words):
    monkeypatch.chdir(trained[0])
    assert REFUSED[words] in refused(words, capsys)
    assert len(os.listdir()) == 1 + len(ENDINGS)  # nothing new


def test_every_setting_is_an_option_that_says_its_default():
    for field in fields(Settings):
        if field.name not in ("num_epochs", "batch_size", "target_pieces"):
            assert f"left out, {field.default}" in field.metadata["help"], field.name
    given = train.parse("--corpus village --source en --target fr --out m".split())
    assert set(given) == {"corpus", "source", "target", "out"}
    for kind in SIZES:
        chosen = train.parse(["--resume", "--out=m", "--kind", kind.replace(" ", "-")])
        assert chosen["kind"] == kind
