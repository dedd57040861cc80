"""The training command: from text to a checkpoint, resumed, stopped, refused."""

import json
from dataclasses import asdict, replace
from functools import partial

import pytest
import torch
from helpers.training import random_batch, setup, weights

from utils import train
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.data import Batch, BatchLoader, Corpus, Pair
from utils.decoding import translate
from utils.models import build_model
from utils.subwords import SampledLoader, SubwordVocab
from utils.text import Vocab
from utils.train import Settings, ShareOfLoss, fit, main

pytestmark = pytest.mark.slow

TINY = {
    "source_pieces": 60,
    "target_pieces": 60,
    "embed_size": 8,
    "num_hiddens": 12,
    "enc_hiddens": 8,
    "num_epochs": 3,
    "batch_size": 32,
}
SETTINGS = Settings(**TINY)


@pytest.fixture(scope="module")
def village():
    """The first sentences of the Village corpus, in French and in Chinese."""
    corpora = {}
    for target in ("fr", "zh"):
        whole = load_village("en", target)
        splits = {"train": whole["train"][:150], "valid": whole["valid"][:20]}
        corpora[target] = Corpus(whole.name, "en", target, splits)
    return corpora


@pytest.fixture
def command(village, tmp_path, monkeypatch):
    """Runs the command on those sentences; options by their names."""
    monkeypatch.setattr(train, "load_village", lambda _, target: village[target])

    def run(*flags, target="fr", **options):
        arguments = ["--corpus", "village", "--source", "en", "--target", target]
        options = {"out": tmp_path / "model", **TINY, **options}
        for name, value in options.items():
            arguments += [f"--{name.replace('_', '-')}", str(value)]
        main([*arguments, *flags])
        return load_checkpoint(f"{options['out']}.safetensors")

    return run


# --- the command ------------------------------------------------------------------


def files(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("target", ["fr", "zh"])
def test_it_trains_stores_and_reports(command, village, tmp_path, capsys, target):
    sizes = {"target_pieces": 420} if target == "zh" else {}
    saved = command(target=target, num_epochs=2, **sizes)
    printed = capsys.readouterr().out.splitlines()
    begins = [line.split(":")[0] for line in printed]
    assert begins == ["epoch 1", "epoch 2", "best epoch", "stored"]
    assert files(tmp_path) == ["model.last.safetensors", "model.safetensors"]
    wanted = replace(SETTINGS, num_epochs=2, **sizes)
    assert saved.notes["settings"] == asdict(wanted)
    assert saved.notes["corpus"] == repr(village[target])
    assert saved.training is None and saved.model.config["kind"] == "translator"
    assert len(saved.src_vocab) == 60
    found = translate(saved.model, "The baker sells bread.", *saved[1:3])
    assert found.attention_weights.shape[1] == len(found.source_tokens)
    last = load_checkpoint(tmp_path / "model.last.safetensors")
    losses = [epoch["valid_loss"] for epoch in last.training["history"]]
    assert f"{losses[1]:.3f} in validation" in printed[1]
    best = losses.index(min(losses)) + 1
    assert f"best epoch: {best}" in printed[2] and saved.notes["epoch"] == best


def test_a_file_of_ones_own(tmp_path, village, capsys):
    pairs = village["fr"]["train"]
    lines = [f"{' '.join(pair.source)}\t{' '.join(pair.target)}" for pair in pairs]
    path, out = tmp_path / "own text.tsv", tmp_path / "new folder" / "model"
    path.write_text("\n".join([*lines, "no tab", "", ""]), encoding="utf-8")
    words = ["--source fr --target en --held-out 15 --alpha 0"]
    sizes = {**TINY, "num_epochs": 1}
    words += [f"--{name.replace('_', '-')} {value}" for name, value in sizes.items()]
    command = ["--tsv", str(path), "--out", str(out), "--kind", "fixed translator"]
    command += " ".join(words).split()
    with pytest.raises(SystemExit, match="line 151: wrong number of columns"):
        main(command)
    main([*command, "--skip-bad-lines"])
    assert "best epoch: 1" in capsys.readouterr().out
    saved = load_checkpoint(f"{out}.safetensors")
    assert saved.model.config["kind"] == "fixed translator"
    assert (saved.src_vocab.lang, saved.tgt_vocab.lang) == ("fr", "en")
    assert "train 120, valid 15, test 15" in saved.notes["corpus"]


def test_whole_words_on_one_side(village):
    corpus, settings = village["fr"], replace(SETTINGS, target_pieces=0, num_epochs=1)
    fitted = fit(corpus, settings, progress=False)
    assert [type(vocab) for vocab in fitted.vocabs] == [SubwordVocab, Vocab]
    assert type(fitted.trainer.loader.loader) is SampledLoader
    for plain in (replace(settings, source_pieces=0), replace(settings, alpha=0)):
        loader = train.make_loader(corpus["train"], fitted.vocabs, plain)
        assert type(loader) is BatchLoader


def test_vocabularies_come_from_the_training_split_alone():
    pair, new = Pair(("ab", "ba"), ("a", "b")), Pair(("xy",), ("z",))
    corpus = Corpus("own", "en", "fr", {"train": [pair] * 3, "valid": [new]})
    settings = replace(SETTINGS, source_pieces=8, target_pieces=0)
    pieces, words = train.make_vocabs(corpus, settings)
    assert "xy" not in pieces and "ab" in pieces and "z" not in words and "a" in words


# --- resuming and stopping --------------------------------------------------------


def stop_after(epochs, monkeypatch):
    """The training is interrupted when so many epochs are stored."""
    right = train.Keeper.__call__

    def call(self, trainer):
        right(self, trainer)
        if len(trainer.history) == epochs:
            monkeypatch.setattr(train.Keeper, "__call__", right)
            raise KeyboardInterrupt

    monkeypatch.setattr(train.Keeper, "__call__", call)


@pytest.fixture(scope="module")
def unbroken(village, tmp_path_factory):
    """A training in one go, and where it is stored."""
    out = tmp_path_factory.mktemp("unbroken") / "model"
    return fit(village["fr"], SETTINGS, out, progress=False), out


@pytest.mark.parametrize("epochs", [1, 2])
def test_a_resumed_training_equals_an_unbroken_one(
    village, tmp_path, monkeypatch, unbroken, epochs
):
    settings, (unbroken, whole) = SETTINGS, unbroken
    assert settings.dropout and settings.averaging and settings.label_smoothing
    assert settings.alpha and settings.source_pieces
    out = tmp_path / "broken"
    last = load_checkpoint(f"{whole}.last.safetensors")
    stop_after(epochs, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        fit(village["fr"], settings, out, progress=False)
    torch.manual_seed(99)  # another process
    resumed = fit(village["fr"], settings, out, resume=True, progress=False)
    again = load_checkpoint(f"{out}.last.safetensors")

    assert resumed.trainer.losses == unbroken.trainer.losses
    assert len(resumed.trainer.losses) == 3 * 5
    assert resumed.best_epoch == unbroken.best_epoch
    assert weights(resumed.model) == weights(unbroken.model)
    assert weights(again.model) == weights(last.model)
    assert {"mean_updates", "mean.decoder.embedding.weight"} <= again.tensors.keys()
    assert again.tensors.keys() == last.tensors.keys()
    for name, tensor in again.tensors.items():  # averages, optimiser, random state
        assert torch.equal(tensor, last.tensors[name]), name
    histories = resumed.trainer.history, unbroken.trainer.history
    valid_losses = [[epoch["valid_loss"] for epoch in h] for h in histories]
    assert valid_losses[0] == valid_losses[1]


def test_the_command_resumes_or_says_why_not(command, village, tmp_path, monkeypatch):
    stop_after(1, monkeypatch)
    with pytest.raises(SystemExit, match="stopped: --resume goes on"):
        command()
    command("--resume")
    last = load_checkpoint(tmp_path / "model.last.safetensors")
    assert len(last.training["history"]) == 3
    refused = "can't be resumed: dropout was 0.3 and is 0.0; lr was 0.003 and is 0.01"
    with pytest.raises(SystemExit, match=refused):
        command("--resume", lr=0.01, dropout=0.0)
    with pytest.raises(SystemExit, match="corpus was .*fr.* and is .*zh"):
        command("--resume", target="zh")
    with pytest.raises(SystemExit, match="FileNotFoundError: there is no checkpoint"):
        command("--resume", out=tmp_path / "nothing")
    (tmp_path / "model.last.safetensors").write_bytes(b"half")
    with pytest.raises(SystemExit, match="ValueError: .*damaged"):
        command("--resume")
    with pytest.raises(ValueError, match="say with out="):
        fit(village["fr"], SETTINGS, resume=True)


@pytest.mark.parametrize("name", ["model.safetensors", "model.last.safetensors"])
def test_a_model_that_is_there_is_replaced_only_when_asked(command, tmp_path, name):
    (tmp_path / name).write_bytes(b"work of a week")
    with pytest.raises(SystemExit) as error:
        command(num_epochs=1)
    assert str(error.value) == (
        f"FileExistsError: {tmp_path / name} would be lost: --resume goes on with that "
        "training, --overwrite replaces it, another --out keeps both"
    )
    assert (tmp_path / name).read_bytes() == b"work of a week"
    assert files(tmp_path) == [name]
    command("--overwrite", num_epochs=1)
    last = load_checkpoint(tmp_path / "model.last.safetensors")
    assert len(last.training["history"]) == 1


def test_what_is_finished_is_neither_changed_nor_lost(village, unbroken):
    first, out = unbroken
    paths = [out.with_name(f"model{end}.safetensors") for end in ("", ".last")]
    before = [path.read_bytes() for path in paths]
    again = fit(village["fr"], SETTINGS, out, resume=True, progress=False)
    assert weights(first.model) == weights(again.model)
    assert again.best_epoch == first.best_epoch
    with pytest.raises(FileExistsError, match="model.saf.* and .*model.last.* be lost"):
        fit(village["fr"], SETTINGS, out, progress=False)
    assert [path.read_bytes() for path in paths] == before


def test_same_settings_same_numbers_and_the_seed_matters(village):
    runs = [
        fit(village["fr"], replace(SETTINGS, num_epochs=1, seed=seed), progress=False)
        for seed in (0, 0, 1)
    ]
    first, again, other = (run.trainer.losses for run in runs)
    assert first == again != other


def keeper(valid_losses, out=None, patience=None):
    """Feed a Keeper with an epoch for each loss -> itself, what it answered."""
    trainer, vocabs = setup()
    weight = trainer.model.encoder.embedding.weight.data.zero_()
    kept = train.Keeper(trainer, vocabs, {}, out, patience)
    answers = []
    for loss in valid_losses:
        weight += 1.0
        trainer.history.append({"valid_loss": loss})
        answers.append(kept(trainer))
    return kept, answers


def test_the_best_epoch_is_kept(tmp_path):
    kept, answers = keeper([3.0, 1.0, 2.0, 1.5], tmp_path / "model")
    assert kept.best_epoch == 2 and not any(answers)
    assert (kept.best["encoder.embedding.weight"] == 2.0).all()
    best = load_checkpoint(tmp_path / "model.safetensors")
    last = load_checkpoint(tmp_path / "model.last.safetensors")
    assert (best.model.encoder.embedding.weight == 2.0).all()
    assert (last.model.encoder.embedding.weight == 4.0).all()
    assert best.notes["epoch"] == 2 and last.notes["epoch"] == 4


@pytest.mark.parametrize(
    "patience, stops_after", [(1, 3), (2, 6), (3, None), (None, None)]
)
def test_patience_counts_epochs_without_a_better_one(patience, stops_after):
    _, answers = keeper([3.0, 2.0, 2.5, 1.0, 1.5, 1.2, 0.9], patience=patience)
    first = answers.index(True) + 1 if True in answers else None
    assert first == stops_after


def test_training_stops_when_the_keeper_says_so(village, monkeypatch):
    rising = iter([1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr("utils.training.evaluate_loss", lambda *_: next(rising))
    fitted = fit(village["fr"], SETTINGS, patience=1, progress=False)
    assert len(fitted.trainer.history) == 2 and fitted.best_epoch == 1
    assert not fitted.model.training


def test_the_best_model_is_the_averaged_one_of_its_epoch(village, monkeypatch):
    valid_losses, seen = iter([2.0, 1.0, 3.0]), []

    def remember(model, loader):
        seen.append(weights(model))
        return next(valid_losses)

    monkeypatch.setattr("utils.training.evaluate_loss", remember)
    fitted = fit(village["fr"], SETTINGS, progress=False)
    assert fitted.best_epoch == 2 and weights(fitted.model) == seen[1]
    assert seen[1] != seen[2]
    assert weights(fitted.trainer.model) != seen[2]  # it isn't averaged


# --- several processes ------------------------------------------------------------


def gradients(model, loss):
    model.zero_grad()
    loss.backward()
    return {name: p.grad.clone() for name, p in model.named_parameters()}


@pytest.mark.parametrize("world", [2, 3, 6])
@pytest.mark.parametrize("loss", train.LOSSES)
def test_the_mean_over_processes_is_the_whole_batch(world, loss):
    loss = partial(train.LOSSES[loss], label_smoothing=0.1)
    torch.manual_seed(0)
    model = build_model("translator", 11, 11, 3, 6, 8, dropout=0.0).double()
    batch = random_batch(7, B=5)  # with world = 6 too few to share
    assert len(set(batch.target_lens.tolist())) > 1
    whole = loss(model, batch)
    gradient = gradients(model, whole)
    shares = [ShareOfLoss(model, loss, rank, world)(batch) for rank in range(world)]
    torch.testing.assert_close(sum(shares) / world, whole)
    mean = gradients(model, sum(shares) / world)
    for name in gradient:
        torch.testing.assert_close(mean[name], gradient[name], msg=name)
    if world == 2:  # a plain mean of their losses would be another number
        own = [Batch(*(column[rank::2] for column in batch)) for rank in (0, 1)]
        assert (sum(loss(model, part) for part in own) / 2 - whole).abs() > 1e-4


def test_one_process_has_number_0_of_1(monkeypatch):
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert train.join_processes()[:2] == (0, 1)


# --- what is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"label_smoothing": -0.1}, "label_smoothing must be at least 0 and below 1"),
        ({"averaging": float("nan")}, "averaging must be at least 0 and below 1"),
        ({"alpha": -1.0}, "alpha must be at least 0, got -1.0"),
        ({"lr": 0.0}, "lr must be above 0 and finite, got 0.0"),
        ({"lr": float("nan")}, "lr must be above 0 and finite, got nan"),
        ({"embed_size": 0}, "embed_size must be at least 1, got 0"),
        ({"num_epochs": 0}, "num_epochs must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"source_pieces": -1}, "source_pieces must be at least 0, got -1"),
        ({"enc_hiddens": 7}, "needs an even size, got 7"),
        ({"target_pieces": 100_000}, "150 sentences don't give 100000 pieces"),
        ({"patience": 0}, "patience must be at least 1 epoch, got 0"),
        ({"lr": 1e38}, "training diverged"),
    ],
)
def test_numbers_that_do_not_work(command, tmp_path, options, message):
    with pytest.raises(SystemExit, match=message) as error:
        command(**options)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "model.safetensors").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("--tsv no/such.tsv", "FileNotFoundError: there is no file no/such.tsv"),
        ("--corpus multi30k --target zh", "ValueError: .*zh"),
        (
            "--corpus village --target en",
            "ValueError: .* are both en .English.: choose",
        ),
        ("--tsv {bad} --held-out -5", "ValueError: valid must be .* least 0, got -5"),
        ("--tsv {bad}", "ValueError: .*not UTF-8"),
        ("--tsv {bad} --out {bad}/model", "Error"),
    ],
)
def test_files_and_languages_that_do_not_work(tmp_path, arguments, message):
    bad = tmp_path / "bad.tsv"
    bad.write_bytes(b"one\t\xff\xfe\n")
    rest = "" if "--out" in arguments else f" --out {tmp_path}/model"
    words = ["--source", "en", "--target", "fr", *(arguments + rest).split()]
    with pytest.raises(SystemExit, match=message) as error:
        main([word.replace("{bad}", str(bad)) for word in words])
    assert "\n" not in str(error.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.tsv"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "required: --source, --target, --out"),
        ("--source en --target fr --out m", "--corpus --tsv is required"),
        ("--source en --target fr --out m --corpus wmt", "invalid choice: 'wmt'"),
        ("--source en --target fr --out m --tsv a --lr fast", "invalid float value"),
        ("--source en --target fr --out m --tsv a --kind big", "invalid choice: 'big'"),
        ("--source en --target fr --out m --tsv a --corpus village", "not allowed"),
        ("--source en --target fr --out m --tsv a --resume --overwrite", "not allowed"),
    ],
)
def test_options_that_do_not_work(capsys, arguments, message):
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    assert message in capsys.readouterr().err.splitlines()[-1]


def test_each_setting_is_an_option_with_its_default():
    options = train.parse("--corpus village --source en --target fr --out m".split())
    defaults = asdict(Settings())
    assert {name: getattr(options, name) for name in defaults} == defaults
    assert json.loads(json.dumps(defaults)) == defaults


def test_a_model_stored_without_training_can_not_be_resumed(village, tmp_path):
    fitted = fit(village["fr"], replace(SETTINGS, num_epochs=1), progress=False)
    notes = {"settings": asdict(SETTINGS), "corpus": repr(village["fr"])}
    for name in ("model.safetensors", "model.last.safetensors"):
        save_checkpoint(tmp_path / name, fitted.model, *fitted.vocabs, notes=notes)
    with pytest.raises(ValueError, match="no state of training to resume"):
        fit(village["fr"], SETTINGS, tmp_path / "model", resume=True, progress=False)
