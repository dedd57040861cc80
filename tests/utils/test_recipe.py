"""The recipe for real text: what is kept, resumed, refused."""

from dataclasses import asdict, replace
from functools import partial

import pytest
import torch
from helpers.training import SMALL, random_batch, setup, weights

from utils import recipe
from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.corpora import load_village
from utils.data import Batch, BatchLoader, Corpus, Pair
from utils.decoding import translate
from utils.models import build_model
from utils.processes import ShareOfLoss, join_processes
from utils.recipe import Settings, fit
from utils.subwords import SampledLoader, SubwordVocab
from utils.text import Vocab

pytestmark = pytest.mark.slow

SETTINGS = Settings(**SMALL, num_epochs=3, batch_size=32)


@pytest.fixture(scope="module")
def village():
    """The first sentences of the Village corpus, in French and in Chinese."""
    corpora = {}
    for target in ("fr", "zh"):
        whole = load_village("en", target)
        splits = {"train": whole["train"][:150], "valid": whole["valid"][:20]}
        corpora[target] = Corpus(whole.name, "en", target, splits)
    return corpora


def test_whole_words_on_one_side(village):
    corpus, settings = village["fr"], replace(SETTINGS, target_pieces=0, num_epochs=1)
    fitted = fit(corpus, settings, progress=False)
    assert [type(vocab) for vocab in fitted.vocabs] == [SubwordVocab, Vocab]
    assert type(fitted.trainer.loader.loader) is SampledLoader
    in_words = recipe.make_vocabs(corpus, replace(settings, source_pieces=0))
    for vocabs, alpha in ((in_words, 0.5), (fitted.vocabs, 0)):
        plain = replace(settings, alpha=alpha)
        assert type(recipe.make_loader(corpus["train"], vocabs, plain)) is BatchLoader


def test_vocabularies_come_from_the_training_split_alone():
    pair, new = Pair(("ab", "ba"), ("a", "b")), Pair(("xy",), ("z",))
    corpus = Corpus("own", "en", "fr", {"train": [pair] * 3, "valid": [new]})
    settings = replace(SETTINGS, source_pieces=8, target_pieces=0)
    pieces, words = recipe.make_vocabs(corpus, settings)
    assert "xy" not in pieces and "ab" in pieces and "z" not in words and "a" in words


# --- resuming and stopping --------------------------------------------------------


class Interrupt:
    """Watches a training, and interrupts it before an update or after an epoch."""

    def __init__(self, update=None, epoch=None):
        self.update, self.last = update, epoch

    def begin(self, trainer, vocabs):
        step = trainer.step_function

        def interrupted(*arguments):
            if trainer.step == self.update:
                raise KeyboardInterrupt
            return step(*arguments)

        trainer.step_function = interrupted

    def epoch(self, trainer, vocabs):
        if len(trainer.history) == self.last:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def unbroken(village, tmp_path_factory):
    """A training in one go, and where it is stored."""
    out = tmp_path_factory.mktemp("unbroken") / "model"
    return fit(village["fr"], SETTINGS, out, progress=False), out


@pytest.mark.parametrize(
    "when", [{"update": 8}, {"epoch": 1}, {"epoch": 3}, {"update": 10}]
)
def test_a_resumed_training_equals_an_unbroken_one(village, tmp_path, unbroken, when):
    settings, (unbroken, whole) = SETTINGS, unbroken
    assert settings.dropout and settings.averaging and settings.label_smoothing
    assert settings.alpha and settings.source_pieces
    out = tmp_path / "broken"
    last = load_checkpoint(f"{whole}.last.safetensors")
    with pytest.raises(KeyboardInterrupt):
        fit(village["fr"], settings, out, progress=False, watch=Interrupt(**when))
    stored = load_checkpoint(f"{out}.last.safetensors").training
    assert len(stored["history"]) == when.get("epoch", when.get("update", 0) // 5)
    torch.manual_seed(99)  # another process
    resumed = fit(village["fr"], settings, out, resume=True, progress=False)
    again = load_checkpoint(f"{out}.last.safetensors")

    assert resumed.trainer.losses == unbroken.trainer.losses
    assert len(resumed.trainer.losses) == 3 * 5
    assert resumed.best_epoch == unbroken.best_epoch
    assert weights(resumed.model) == weights(unbroken.model)
    assert weights(again.model) == weights(last.model)
    assert again.tensors.keys() == last.tensors.keys()
    for name, tensor in again.tensors.items():  # averages, optimiser, random state
        assert torch.equal(tensor, last.tensors[name]), name
    histories = resumed.trainer.history, unbroken.trainer.history
    valid_losses = [[epoch["valid_loss"] for epoch in h] for h in histories]
    assert valid_losses[0] == valid_losses[1]


def test_more_epochs_at_another_rate_are_a_training_that_goes_on(village, tmp_path):
    out, more = tmp_path / "model", replace(SETTINGS, num_epochs=5, lr=1e-3)
    first = fit(village["fr"], SETTINGS, out, progress=False)
    longer = fit(village["fr"], more, out, resume=True, progress=False)
    assert longer.trainer.losses[:15] == first.trainer.losses
    assert len(longer.trainer.losses) == 25 and longer.trainer.lr == 1e-3
    rates = [group["lr"] for group in longer.trainer.optimizer.param_groups]
    assert rates == [longer.trainer.learning_rate(24)] and rates[0] < 1e-3
    with pytest.raises(ValueError, match="can't be resumed: dropout was 0.3 and is 0"):
        fit(village["fr"], replace(more, dropout=0.0), out, resume=True)


def test_a_training_can_start_from_a_model(village, unbroken):
    first, out = unbroken
    start = load_checkpoint(f"{out}.safetensors")
    settings = replace(SETTINGS, num_epochs=1, lr=1e-9, alpha=0.0)
    fitted = fit(village["fr"], settings, start=start, progress=False)
    assert fitted.vocabs == first.vocabs
    for name, tensor in first.model.named_parameters():
        other = dict(fitted.model.named_parameters())[name]
        torch.testing.assert_close(other, tensor, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", recipe.SIZES)
def test_every_kind_trains_is_stored_and_translates(village, tmp_path, kind):
    settings = replace(SETTINGS, kind=kind, num_epochs=1, num_hiddens=8)
    out = tmp_path / "model"
    fit(village["fr"], settings, out, progress=False)
    model, *vocabs = load_checkpoint(f"{out}.safetensors")[:3]
    assert model.config["kind"] == kind
    found = translate(model, "The baker sells bread.", *vocabs, beam_size=2)
    assert (found.attention_weights is None) == kind.startswith("fixed")


@pytest.mark.parametrize(
    "pairs, target, chosen, expected",
    [
        (29_000, "en", {}, {"num_epochs": 12, "batch_size": 64}),
        (300_000, "en", {}, {"num_epochs": 3, "batch_size": 64}),
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


def test_pieces_are_at_most_what_the_text_gives(village):
    settings = replace(SETTINGS, source_pieces=3000)
    source, target = recipe.make_vocabs(village["fr"], settings)
    assert 60 < len(source) < 3000 and len(target) == 60


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
    kept = recipe.Keeper(trainer, vocabs, {}, out, patience)
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
@pytest.mark.parametrize("loss", recipe.LOSSES)
def test_the_mean_over_processes_is_the_whole_batch(world, loss):
    loss = partial(recipe.LOSSES[loss], label_smoothing=0.1)
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
    assert join_processes()[:2] == (0, 1)


# --- what is refused --------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, got 1.0"),
        ({"label_smoothing": -0.1}, "label_smoothing must be at least 0 and below 1"),
        ({"averaging": float("nan")}, "averaging must be at least 0 and below 1"),
        ({"alpha": -1.0}, "alpha must be at least 0, got -1.0"),
        ({"subwords": "letters"}, "subwords must be one of .*'bpe'.*, got 'letters'"),
        ({"subwords": "bpe", "alpha": 0.1}, "alpha must be 0 with bpe, .*, got 0.1"),
        ({"lr": 0.0}, "lr must be above 0 and finite, got 0.0"),
        ({"lr": float("nan")}, "lr must be above 0 and finite, got nan"),
        ({"embed_size": 0}, "embed_size must be at least 1, got 0"),
        ({"num_epochs": 0}, "num_epochs must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"source_pieces": -1}, "source_pieces must be at least 0, got -1"),
        ({"enc_hiddens": 7}, "needs an even size, got 7"),
        ({"target_pieces": 9}, "target_pieces of fr: 150 sentences don't give 9 pie"),
        ({"kind": "luong"}, "kind must be one of .*'rnnsearch'.*, got 'luong'"),
        ({"patience": 0}, "patience must be at least 1 epoch, got 0"),
        ({"lr": 1e38}, "training diverged"),
    ],
)
def test_numbers_that_do_not_work(village, tmp_path, options, message):
    patience = options.get("patience")
    settings = {name: v for name, v in options.items() if name != "patience"}
    out = tmp_path / "model"
    with pytest.raises((ValueError, FloatingPointError), match=message) as error:
        settings = replace(SETTINGS, **settings)
        fit(village["fr"], settings, out, patience=patience, progress=False)
    assert "\n" not in str(error.value) and list(tmp_path.iterdir()) == []


def test_a_model_stored_without_training_can_not_be_resumed(village, tmp_path):
    fitted = fit(village["fr"], replace(SETTINGS, num_epochs=1), progress=False)
    notes = {"settings": asdict(SETTINGS), "corpus": repr(village["fr"])}
    for name in ("model.safetensors", "model.last.safetensors"):
        save_checkpoint(tmp_path / name, fitted.model, *fitted.vocabs, notes=notes)
    with pytest.raises(ValueError, match="no training to resume"):
        fit(village["fr"], SETTINGS, tmp_path / "model", resume=True, progress=False)
