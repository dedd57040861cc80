"""The training command: what it says, stores, resumes and refuses."""

import csv
import json
from dataclasses import asdict, fields

import pytest
from helpers.training import SMALL, weights

from utils import recipe, report, train
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.decoding import translate
from utils.models import build_model
from utils.recipe import SIZES, Settings
from utils.text import Vocab

pytestmark = pytest.mark.slow
TINY = {**SMALL, "num_epochs": 2, "batch_size": 8}


@pytest.fixture(scope="module")
def lines():
    """{target: lines of English and target sentences}, of the Village."""
    return {
        target: [
            f"{' '.join(pair.source)}\t{' '.join(pair.target)}\n"
            for pair in load_village("en", target)["train"][:240]
        ]
        for target in ("fr", "zh")
    }


@pytest.fixture
def command(lines, tmp_path, capsys):
    """Runs the command on those lines -> what it printed; options by their names."""

    def run(*flags, **options):
        if not {"--resume", "--help"} & set(flags):
            options = {"source": "en", "target": "fr", **TINY, **options}
            tsv = tmp_path / f"{options['target']}.tsv"
            if "tsv" not in options and "corpus" not in options:
                tsv.write_text("".join(lines[options["target"]]), encoding="utf-8")
                options["tsv"] = tsv
        options.setdefault("out", tmp_path / "model")
        words = []
        for name, value in options.items():
            values = value if isinstance(value, tuple) else (value,)
            words += [f"--{name.replace('_', '-')}", *map(str, values)]
        train.main([*words, *flags])
        return capsys.readouterr().out

    return run


def refused(command, *flags, **options):
    """Runs a command that must fail -> its one message."""
    with pytest.raises(SystemExit) as error:
        command(*flags, **options)
    message = str(error.value)
    assert "\n" not in message and message.startswith("error: ")
    assert not any("_" in name and name in message for name in train.TYPES)
    return message.removeprefix("error: ")


def stored(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".tsv")


# --- what it says and stores --------------------------------------------------------


def test_it_trains_stores_and_reports(command, tmp_path):
    printed = command().splitlines()
    out = tmp_path / "model"
    assert stored(tmp_path) == [
        f"model.{end}" for end in ("last.safetensors", "log.csv", "png", "safetensors")
    ]
    assert printed[0] == (
        "fr.tsv, en→fr: 192 pairs for train, 24 pairs for valid, 24 pairs for test"
    )
    pieces = "60 pieces of en (English) and 60 pieces of fr (French)"
    assert printed[1] == f"vocabularies: {pieces}"
    saved = load_checkpoint(f"{out}.safetensors")
    size = sum(parameter.numel() for parameter in saved.model.parameters())
    assert printed[2] == (
        f"translator, {size:,} parameters; loss: cross-entropy, its gradient by "
        "PyTorch; in training with label smoothing 0.1"
    )
    assert printed[3] == "2 epochs of 24 batches of 8, learning rate up to 0.003"
    assert printed[4].startswith("an epoch will take about ")  # within the first one
    epochs = [line for line in printed if line.startswith("epoch ")]
    assert [line.split(":")[0] for line in epochs] == ["epoch 1 of 2", "epoch 2 of 2"]

    last = load_checkpoint(f"{out}.last.safetensors")
    history = last.training["history"]
    for line, entry in zip(epochs, history, strict=True):
        assert f"loss {entry['train_loss']:.3f} in training, " in line
        assert f"{entry['valid_loss']:.3f} in validation; BLEU " in line
    losses = [entry["valid_loss"] for entry in history]
    best = losses.index(min(losses)) + 1
    assert f"the best epoch is {best}: {out}.safetensors" in printed
    assert saved.notes["epoch"] == best
    found = translate(saved.model, "The baker sells bread.", *saved[1:3])
    assert found.attention_weights.shape[1] == len(found.source_tokens)

    with open(f"{out}.log.csv", encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert [row["epoch"] for row in log] == ["1", "2"]
    for row, entry in zip(log, history, strict=True):
        for name in ("train_loss", "valid_loss", "seconds"):
            assert float(row[name]) == entry[name]
        shown = [row[f"output_{n}"] for n in (1, 2, 3)]
        for n, output in enumerate(shown, 1):
            block = f"    source    {row[f'source_{n}']}"
            at = [i for i, line in enumerate(printed) if line == block]
            assert any(
                printed[i + 1 : i + 3]
                == [
                    f"    reference {row[f'reference_{n}']}",
                    f"    output    {output}",
                ]
                for i in at
            )
    lengths = [len(log[0][f"source_{n}"].split()) for n in (1, 2, 3)]
    assert lengths == sorted(lengths) and lengths[0] < lengths[2]


def test_the_test_split_is_scored_once_and_remembered(command, tmp_path, monkeypatch):
    printed = command()
    scores = load_checkpoint(tmp_path / "model.safetensors").notes["test"]
    assert scores["sentences"] == 24 and "tok:13a" in scores["signature"]
    for name, label in (("greedy", "greedy   "), ("beam", "beam of 5")):
        one = scores[name]
        said = f"    {label} BLEU {one['bleu']:.2f}, chrF {one['chrf']:.2f}"
        assert said in printed
    monkeypatch.setattr(report, "test_scores", None)  # called again, it would fail
    again = command("--resume").splitlines()
    assert again[0].startswith("this training has had its 2 epochs: a larger --num-e")
    end = printed.splitlines()
    end = end[end.index("the test split, 24 sentences, scored once:") :]
    assert again[-len(end) :] == end


def test_pieces_are_what_the_text_gives_and_that_is_said(command):
    printed = command(num_epochs=1, source_pieces=3000)
    assert " pieces of en (English) (all that the text gives) and 60 pieces" in printed


def test_a_language_without_spaces(command, tmp_path):
    printed = command(target="zh", num_epochs=1, target_pieces=0)
    assert "characters of zh (Chinese)" in printed and "tok:zh" in printed
    assert "zh has no spaces: text and BLEU are taken character by character" in printed
    given = {name: value for name, value in TINY.items() if name != "target_pieces"}
    options = train.parse(
        f"--tsv {tmp_path}/zh.tsv --source en --target zh --out m".split()
    )
    corpus, _ = train.named_corpus(options)
    assert train.chosen_settings(options | given, corpus, None).target_pieces == 0


@pytest.mark.parametrize("source, target", [("es", "cs"), ("tr", "vi")])
def test_a_language_by_its_code(command, lines, source, target, tmp_path):
    """Nothing need be known of it."""
    path = tmp_path / "own.tsv"
    path.write_text("".join(lines["fr"]), encoding="utf-8")
    printed = command(source=source, target=target, tsv=path, num_epochs=1)
    assert f"60 pieces of {source} and 60 pieces of {target}" in printed


def test_lines_that_cannot_be_read(command, lines, tmp_path):
    path = tmp_path / "own.tsv"
    good = "".join(lines["fr"]).encode()
    bad = b"no tab\n\n\ncaf\xe9\tx\na\t\nb\t\n"
    path.write_bytes(good + bad.replace(b"\xe9", b"e"))
    assert "line 241: wrong number of columns" in refused(command, tsv=path)
    path.write_bytes(good + bad + b"x\ty\n")
    message = refused(command, tsv=path)
    assert "line 244: not UTF-8" in message and message.endswith(
        "; --skip-bad-lines leaves such lines out"
    )
    printed = command("--skip-bad-lines", tsv=path, num_epochs=1).splitlines()
    assert printed[1:5] == [
        "1 line skipped: not UTF-8 (244)",
        "1 line skipped: wrong number of columns, 1 instead of 2 (241)",
        "2 lines skipped: the line is empty (242, 243)",
        "2 lines skipped: the fr side is empty (245, 246)",
    ]


# --- resuming, starting from a model, stopping --------------------------------------


class Stop(recipe.Keeper):
    """Interrupts the training after its first epoch."""

    def __call__(self, trainer):
        super().__call__(trainer)
        raise KeyboardInterrupt


def test_resume_alone_goes_on(command, tmp_path, monkeypatch):
    out = tmp_path / "model"
    with monkeypatch.context() as patch:
        patch.setattr(recipe, "Keeper", Stop)
        with pytest.raises(SystemExit) as error:
            command(held_out=30, dropout=0.1, loss="by-hand")
    assert str(error.value) == (
        "stopped after 1 whole epoch; the best model so far is "
        f"{out}.safetensors. Go on with the next epoch by\n"
        f"    python -m utils.train --resume --out {out}"
    )
    printed = command("--resume")
    assert "epochs done: 1, to do: 1" in printed and "30 pairs for test" in printed
    assert "by hand" in printed and "epoch 2 of 2" in printed
    again = command("--resume", num_epochs=3, lr=0.001)
    assert "--num-epochs was 2 and is 3 from here on" in again
    assert "--lr was 0.003 and is 0.001 from here on" in again
    with open(f"{out}.log.csv", encoding="utf-8", newline="") as file:
        log = list(csv.DictReader(file))
    assert [row["lr"] for row in log] == ["0.003", "0.003", "0.001"]

    message = refused(command, "--resume", dropout=0.5)
    assert message == (
        f"--dropout 0.5 can't be resumed: the training at {out} has 0.1. Leave it out, "
        "or begin anew with another --out"
    )
    other = tmp_path / "other.tsv"
    text = (tmp_path / "fr.tsv").read_text(encoding="utf-8")
    other.write_text(text, encoding="utf-8")
    command("--resume", tsv=other)  # the same text elsewhere
    other.write_text(text.replace("the", "teh", 1), encoding="utf-8")
    assert "isn't the file that this training began with" in refused(
        command, "--resume", tsv=other
    )


def test_what_cannot_be_resumed(command, tmp_path):
    assert "there is no checkpoint at" in refused(command, "--resume")
    last = tmp_path / "model.last.safetensors"
    last.write_bytes(b"half")
    assert "damaged" in refused(command, "--resume")
    vocab = Vocab([["a"]], "en")
    save_checkpoint(last, build_model("fixed", 5, 5, 2, 2), vocab, vocab)
    assert "was not stored by this command" in refused(command, "--resume")


@pytest.mark.parametrize(
    "name",
    ["model.safetensors", "model.last.safetensors", "model.log.csv", "model.png"],
)
def test_a_model_that_is_there_is_replaced_only_when_asked(command, tmp_path, name):
    (tmp_path / name).write_bytes(b"work of a week")
    assert refused(command, num_epochs=1) == (
        f"{tmp_path / name} would be lost: --resume goes on with that "
        "training, --overwrite replaces it, another --out keeps both"
    )
    assert (tmp_path / name).read_bytes() == b"work of a week"
    assert stored(tmp_path) == [name]
    command("--overwrite", num_epochs=1)
    last = load_checkpoint(tmp_path / "model.last.safetensors")
    assert len(last.training["history"]) == 1


def test_starting_from_a_model(command, tmp_path):
    command(num_epochs=1)
    first = tmp_path / "model.safetensors"
    text = f"--tsv {tmp_path}/fr.tsv --out {tmp_path}/new --from {first} ".split()
    train.main([*text, *"--source en --target fr --num-epochs 1 --lr 1e-9".split()])
    before = load_checkpoint(first)
    after = load_checkpoint(tmp_path / "new.safetensors")
    assert after.src_vocab == before.src_vocab
    same = zip(before.model.parameters(), after.model.parameters(), strict=True)
    assert all((one - other).abs().max() < 1e-6 for one, other in same)
    message = refused(command, **{"from": first, "out": tmp_path / "more"})
    own = "--embed-size is that of the model you start --from: leave it out"
    assert message == own
    text[3] = f"{tmp_path}/other"
    with pytest.raises(SystemExit, match="en into fr: it can't be the start of fr→en"):
        train.main([*text, *"--source fr --target en --columns en fr".split()])


def test_byte_pairs(command, tmp_path):
    command(num_epochs=1)
    unigram = load_checkpoint(tmp_path / "model.safetensors")
    options = {"num_epochs": 1, "subwords": "bpe", "out": tmp_path / "pairs"}
    assert "--alpha must be 0 with bpe" in refused(command, alpha=0.2, **options)
    options["alpha"] = 0.0
    command(**options)
    pairs = load_checkpoint(tmp_path / "pairs.safetensors")
    assert pairs.src_vocab != unigram.src_vocab
    again = f"--tsv {tmp_path}/fr.tsv --out {tmp_path}/more --source en --target fr"
    again += f" --num-epochs 1 --from {tmp_path}/pairs.safetensors"
    train.main(again.split())  # without --alpha: one way only, as in the start
    more = load_checkpoint(tmp_path / "more.safetensors")
    assert more.src_vocab == pairs.src_vocab
    assert more.notes["settings"]["subwords"] == "bpe"


def test_stopped_before_anything_is_stored(command, monkeypatch, tmp_path):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "named_corpus", stopped)
    with pytest.raises(
        SystemExit, match="before the end of the first epoch: nothing was"
    ):
        command()
    assert stored(tmp_path) == []


def test_the_seed_is_an_option(command, tmp_path):
    models = []
    for seed in (0, 0, 1):
        command("--overwrite", num_epochs=1, seed=seed)
        models.append(weights(load_checkpoint(tmp_path / "model.safetensors").model))
    assert models[0] == models[1] != models[2]


# --- what is refused ------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dropout": 1.0}, "--dropout must be at least 0 and below 1, got 1.0"),
        ({"num_epochs": 0}, "--num-epochs must be at least 1, got 0"),
        ({"lr": "nan"}, "--lr must be above 0 and finite, got nan"),
        ({"patience": 0}, "--patience must be at least 1 epoch, got 0"),
        ({"target_pieces": 9}, "--target-pieces of fr: 192 sentences don't give 9 pie"),
        ({"enc_hiddens": 7}, "needs an even size, got 7"),
        ({"lr": 1e38}, "training diverged"),
        ({"held_out": 200}, "too few for a split 'valid' of 200 and a training split"),
        ({"batch_size": 0}, "--batch-size must be at least 1, got 0"),
        ({"tsv": "no/such.tsv"}, "there is no file no/such.tsv"),
        ({"target": "en"}, "source and target are both en (English)"),
        ({"target": "eng"}, "unknown language 'eng': its code here is 'en'"),
        ({"target": "English"}, "give its code, two or three small letters"),
        ({"columns": ("en", "de")}, "in the order of the file, got ['en', 'de']"),
        ({"kind": "transformer"}, "--embed-size: --kind transformer has none"),
        ({"loss": "by-hand", "kind": "attention"}, "Train it with --loss plain"),
    ],
)
def test_what_does_not_work(command, lines, tmp_path, options, message):
    if options.get("target", "fr")[:2] in ("en", "En") and "tsv" not in options:
        options = {**options, "tsv": tmp_path / "fr.tsv"}
        options["tsv"].write_text("".join(lines["fr"]), encoding="utf-8")
    assert message in refused(command, **options)
    assert stored(tmp_path) == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "required: --source, --target, --out"),
        ("--source en --target fr --out m", "give a text: either --tsv FILE or --cor"),
        ("--source en --target fr --out m --corpus wmt", "invalid choice: 'wmt'"),
        ("--source en --target fr --out m --tsv a --lr fast", "invalid float value"),
        ("--source en --target fr --out m --tsv a --kind big", "invalid choice: 'big'"),
        ("--source en --target fr --out m --tsv a --corpus village", "give a text"),
        ("--out m --resume --overwrite", "--resume and --overwrite are not allowed"),
        ("--out m --resume --from m", "--resume and --from are not allowed together"),
        (
            "--source en --target fr --out m --corpus village --held-out 9",
            "--held-out is for a file of your own, with --tsv",
        ),
        (
            "--source en --target fr --out m --tsv a --held-out 0",
            "--held-out must be at least 1, got 0",
        ),
    ],
)
def test_options_that_do_not_work(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        train.main(arguments.split())
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_every_setting_is_an_option_that_is_explained():
    told = {}
    for group in train.HELP.values():
        told |= {name.replace("-", "_"): said for name, said in group.items()}
    assert set(asdict(Settings())) <= set(told)
    for field in fields(Settings):
        if field.name not in ("num_epochs", "batch_size", "kind", "target_pieces"):
            default = str(field.default)
            assert default in told[field.name], field.name
    given = train.parse("--corpus village --source en --target fr --out m".split())
    assert set(given) == {"corpus", "source", "target", "out"}
    for kind in SIZES:
        words = f"--resume --out m --kind {kind.replace(' ', '-')}"
        chosen = train.parse(words.split())
        assert chosen["kind"] == kind
    assert json.loads(json.dumps(asdict(Settings()))) == asdict(Settings())
