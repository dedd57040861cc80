"""The recipe for real text: what is kept, resumed, refused."""

from dataclasses import asdict, replace

import pytest
import torch
from helpers.training import SMALL, setup, weights

from utils import recipe
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.data import Corpus, Pair
from utils.decoding import translate
from utils.recipe import Settings, fit
from utils.subwords import SampledLoader, SubwordVocab
from utils.text import Vocab

SETTINGS = Settings(**SMALL, num_epochs=2, batch_size=32)


@pytest.fixture(scope="module")
def village():
    """The first sentences of the Village corpus, in French."""
    whole = load_village("en", "fr")
    splits = {"train": whole["train"][:100], "valid": whole["valid"][:10]}
    return Corpus(whole.name, "en", "fr", splits)


def test_vocabularies_come_from_the_training_split_alone():
    pair, new = Pair(("ab", "ba"), ("a", "b")), Pair(("xy",), ("z",))
    corpus = Corpus("own", "en", "fr", {"train": [pair] * 3, "valid": [new]})
    settings = replace(SETTINGS, source_pieces=8, target_pieces=0)
    pieces, words = vocabs = recipe.make_vocabs(corpus, settings)
    assert type(pieces) is SubwordVocab and type(words) is Vocab
    assert "z" not in words and "a" in words
    loaders = [
        recipe.make_loader(corpus["train"], vocabs, replace(settings, alpha=alpha))
        for alpha in (0.5, 0)
    ]
    assert [type(loader) is SampledLoader for loader in loaders] == [True, False]


@pytest.mark.parametrize(
    "pairs, target, chosen, expected",
    [
        (29_000, "en", {}, {"num_epochs": 12, "batch_size": 64}),
        (300_000, "en", {}, {"num_epochs": 3, "batch_size": 64}),
        (5000, "en", {}, {"batch_size": 64}),
        (4999, "en", {}, {"batch_size": 32}),
        (240, "en", {}, {"num_epochs": 40, "batch_size": 16}),
        (240, "en", {"num_epochs": 5, "batch_size": 8}, {"num_epochs": 5}),
        (29_000, "zh", {}, {"source_pieces": 3000, "target_pieces": 0}),
        (29_000, "th", {"target_pieces": 400}, {"target_pieces": 400}),
        (29_000, "en", {"kind": "transformer"}, {"lr": 1e-3}),
        (29_000, "en", {"subwords": "bpe"}, {"alpha": 0.0}),
    ],
)
def test_settings_follow_the_text(pairs, target, chosen, expected):
    settings = asdict(Settings.for_text(pairs, "de", target, **chosen))
    assert {name: settings[name] for name in expected} == expected


@pytest.mark.parametrize(
    "options, message",
    [
        ({"alpha": -1.0}, "alpha must be at least 0, got -1.0"),
        ({"subwords": "letters"}, "subwords must be one of .*'bpe'.*, got 'letters'"),
        ({"subwords": "bpe", "alpha": 0.1}, "alpha must be 0 with bpe, .*, got 0.1"),
        ({"source_pieces": -1}, "source_pieces must be a whole number of at least 0"),
        ({"kind": "luong"}, "kind must be one of .*'rnnsearch'.*, got 'luong'"),
        ({"patience": 0}, "patience must be a whole number of at least 1"),
        ({"target_pieces": 9}, "target_pieces of fr: 100 sentences don't give 9 pie"),
        ({"enc_hiddens": 7}, "needs an even size, got 7"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1"),
        ({"label_smoothing": -0.1}, "label_smoothing must be at least 0 and below 1"),
        ({"lr": 1e38}, "training diverged"),
    ],
)
def test_numbers_that_do_not_work(village, tmp_path, options, message):
    patience = options.get("patience")
    settings = {name: v for name, v in options.items() if name != "patience"}
    out = tmp_path / "model"
    with pytest.raises((ValueError, FloatingPointError), match=message):
        settings = replace(SETTINGS, **settings)
        fit(village, settings, out, patience=patience, progress=False)
    assert list(tmp_path.iterdir()) == []


class Watch:
    """Is told of a training, and interrupts it after the first epoch."""

    def begin(self, trainer, vocabs):
        pass

    def epoch(self, trainer, vocabs):
        if len(trainer.history) == 1:
            raise KeyboardInterrupt


@pytest.mark.slow
def test_a_resumed_training_equals_an_unbroken_one(village, tmp_path):
    assert SETTINGS.dropout and SETTINGS.averaging and SETTINGS.label_smoothing
    out, whole = tmp_path / "broken", tmp_path / "whole"
    unbroken = fit(village, SETTINGS, whole, progress=False)
    with pytest.raises(KeyboardInterrupt):
        fit(village, SETTINGS, out, progress=False, watch=Watch())
    torch.manual_seed(99)  # another process
    resumed = fit(village, SETTINGS, out, resume=True, progress=False)
    assert resumed.trainer.losses == unbroken.trainer.losses
    assert weights(resumed.model) == weights(unbroken.model)
    assert resumed.best_epoch == unbroken.best_epoch
    for end in ("", ".last"):
        again, first = (load_checkpoint(f"{p}{end}.safetensors") for p in (out, whole))
        assert weights(again.model) == weights(first.model)
        assert all(torch.equal(x, first.tensors[n]) for n, x in again.tensors.items())

    more = replace(SETTINGS, num_epochs=3, lr=1e-3)
    longer = fit(village, more, out, resume=True, progress=False)
    assert len(longer.trainer.history) == 3 and longer.trainer.lr == 1e-3
    with pytest.raises(
        ValueError, match="can't be resumed: .*dropout was 0.3 and is 0"
    ):
        fit(village, replace(more, dropout=0.0), out, resume=True)
    with pytest.raises(FileExistsError, match="broken.saf.* and .*broken.last.* lost"):
        fit(village, SETTINGS, out, progress=False)


@pytest.mark.slow
@pytest.mark.parametrize("kind", recipe.SIZES)
def test_every_kind_trains_is_stored_and_translates(village, tmp_path, kind):
    settings = replace(SETTINGS, kind=kind, num_epochs=1, num_hiddens=8)
    fit(village, settings, tmp_path / "model", progress=False)
    saved = load_checkpoint(tmp_path / "model.safetensors")
    assert saved.model.config["kind"] == kind
    found = translate(saved.model, "The baker sells bread.", *saved[1:3], beam_size=2)
    assert (found.attention_weights is None) == kind.startswith("fixed")
    near = fit(village, replace(settings, lr=1e-9), start=saved, progress=False).model
    for one, other in zip(near.parameters(), saved.model.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


# --- what is kept after each epoch --------------------------------------------------


class Failing:
    """A report that fails, after it has seen what is stored."""

    def __init__(self, out):
        self.out, self.seen = out, []

    def epoch(self, trainer, vocabs):
        last = load_checkpoint(f"{self.out}.last.safetensors")
        self.seen.append(len(last.training["history"]))
        raise BrokenPipeError(32, "Broken pipe")


def keeper(valid_losses, out=None, patience=None, watch=None):
    """Feed a Keeper with an epoch for each loss -> itself, what it answered."""
    trainer, vocabs = setup()
    weight = trainer.model.encoder.embedding.weight.data.zero_()
    kept = recipe.Keeper(trainer, vocabs, {}, out, patience, watch)
    answers = []
    for loss in valid_losses:
        weight += 1.0
        entry = {"train_loss": 1.0, "valid_loss": loss, "seconds": 1.0, "tokens": 9}
        trainer.history.append(entry)
        trainer.losses += [1.0] * 4
        answers.append(kept(trainer))
    return kept, answers


def test_the_best_epoch_is_kept_and_stored_before_it_is_reported(tmp_path):
    out = tmp_path / "model"
    watch = Failing(out)
    with pytest.warns(UserWarning, match="epoch 1 is stored, .*Broken pipe"):
        kept, answers = keeper([3.0, 1.0, 2.0, 1.5], out, watch=watch)
    assert watch.seen == [1, 2, 3, 4]
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


def test_the_best_model_is_the_averaged_one_of_its_epoch(village, monkeypatch):
    valid_losses, seen = iter([1.0, 2.0, 3.0]), []

    def remember(model, loader):
        seen.append(weights(model))
        return next(valid_losses)

    monkeypatch.setattr("utils.training.evaluate_loss", remember)
    fitted = fit(village, replace(SETTINGS, num_epochs=9), patience=1, progress=False)
    assert len(fitted.trainer.history) == 2 and fitted.best_epoch == 1
    assert weights(fitted.model) == seen[0] != seen[1]
    assert weights(fitted.trainer.model) != seen[1]  # it isn't averaged
    assert not fitted.model.training


def test_a_model_stored_without_training_can_not_be_resumed(village, tmp_path):
    vocabs = recipe.make_vocabs(village, SETTINGS)
    model = recipe.make_model(SETTINGS, vocabs)
    notes = {"settings": asdict(SETTINGS)}
    for name in ("model.safetensors", "model.last.safetensors"):
        save_checkpoint(tmp_path / name, model, *vocabs, notes=notes)
    with pytest.raises(ValueError, match="no training to resume"):
        fit(village, SETTINGS, tmp_path / "model", resume=True, progress=False)
