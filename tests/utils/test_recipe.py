"""The recipe for real text: what is kept, resumed, refused, shared by processes."""

from dataclasses import asdict, replace
from functools import partial

import pytest
import torch
import torch.distributed as dist
from helpers.training import NEW, start, toy, weights, write_pairs

from utils import by_hand, recipe
from utils.checkpoint import load_checkpoint
from utils.corpora import load_tsv
from utils.data import Batch, BatchLoader, Corpus, Pair
from utils.models import build_model
from utils.processes import ShareOfLoss
from utils.recipe import Settings
from utils.train import Store
from utils.training import batch_loss

SIZES = {"embed_size": 8, "num_hiddens": 12, "enc_hiddens": 8}
PIECES = {"source_pieces": 300, "target_pieces": 300}
SETTINGS = Settings(**SIZES, **PIECES, num_epochs=2, batch_size=32)
fit = partial(recipe.fit, progress=False)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return load_tsv(write_pairs(tmp_path_factory.mktemp("text") / "p.tsv"), "en", "fr")


def test_vocabularies_come_from_the_training_split_alone():
    splits = {"train": [Pair("ab ba", "a b")], "valid": [Pair("xy", "z")]}
    vocabs = recipe.make_vocabs(Corpus("own", "en", "fr", splits), SETTINGS)
    assert [vocab.lang for vocab in vocabs] == ["en", "fr"]
    assert all("a" in vocab and "z" not in vocab for vocab in vocabs)


def test_settings_follow_the_text():
    chosen = {"num_epochs": 5, "batch_size": 8}
    for pairs, given, expected in (
        (29_000, {}, {"num_epochs": 12, "batch_size": 64}),
        (300_000, {}, {"num_epochs": 3}),
        (5000, {}, {"batch_size": 64}),
        (4999, {}, {"batch_size": 32}),
        (240, {}, {"num_epochs": 40, "batch_size": 16}),
        (240, chosen, chosen),
        (29_000, {"kind": "transformer"}, {"lr": 1e-3}),
        (29_000, {"subwords": "bpe"}, {"alpha": 0.0}),
    ):
        assert expected.items() <= asdict(Settings.for_text(pairs, **given)).items()


REFUSED = [
    ({"alpha": -1.0}, "alpha must be a number of at least 0, got -1.0"),
    ({"dropout": "0"}, "dropout must be a number of at least 0 and .*, got '0'"),
    ({"num_epochs": 2.0}, "num_epochs must be a whole number of at least 1"),
    ({"seed": True}, "seed must be a whole number .*, got True"),
    ({"subwords": "letters"}, "subwords must be one of .*bpe, got 'letters'"),
    ({"subwords": "bpe", "alpha": 1}, "alpha must be 0 with bpe, got 1"),
    ({"source_pieces": 261}, "source_pieces must be .* of at least 262, got 261"),
    ({"kind": "a model"}, "kind must be one of .*'rnnsearch'.*, got 'a model'"),
]


def test_numbers_that_do_not_work(corpus, tmp_path):
    for settings, message in REFUSED:
        with pytest.raises(ValueError, match=message):
            replace(SETTINGS, **settings)
    with pytest.raises(FloatingPointError, match="training diverged"):
        fit(corpus, replace(SETTINGS, lr=1e38), store=Store(tmp_path / "model"))
    assert list(tmp_path.iterdir()) == []


def test_the_gradient_is_by_hand_where_it_can_be():
    def chosen(kind="translator", device="cpu", **settings):
        settings = replace(SETTINGS, kind=kind, **settings)
        model = recipe.make_model(settings, [range(9)] * 2)
        return recipe.choose_loss(settings, model, torch.device(device))

    assert chosen() is by_hand.loss is chosen("released translator")
    for kind in ("fixed translator", "transformer"):
        assert chosen(kind) is batch_loss
    for other in ({"loss": "plain"}, {"precision": "bfloat16"}, {"device": "cuda"}):
        assert chosen(**other) is batch_loss


@pytest.mark.parametrize(
    "kind", ["translator", "fixed translator", "transformer", "rnnsearch", "attention"]
)
def test_any_kind_trains_is_stored_and_nearly_the_same_in_bfloat16(
    corpus, tmp_path, kind
):
    settings = replace(SETTINGS, kind=kind, num_hiddens=8, num_epochs=1, dropout=0.0)
    exact = fit(corpus, settings)
    settings, store = replace(settings, precision="bfloat16"), Store(tmp_path / "model")
    rounded = fit(corpus, settings, store=store)
    pairs = zip(exact.trainer.losses, rounded.trainer.losses, strict=True)
    assert all(0 < abs(one - other) < 0.02 for one, other in pairs)
    assert all(p.dtype is torch.float32 for p in rounded.model.parameters())
    saved = load_checkpoint(tmp_path / "model.safetensors")
    assert saved.model.config["kind"] == kind
    assert weights(saved.model) == weights(rounded.model)


@pytest.fixture
def judged(corpus, monkeypatch):
    """Trains for validation losses -> Fitted, and what was validated, an epoch each."""

    def train(losses, patience=0, store=None):
        models = []

        def judge(model, loader):
            models.append(weights(model))
            return losses[len(models) - 1]

        monkeypatch.setattr("utils.training.evaluate_loss", judge)
        sizes = {"num_epochs": len(losses), "batch_size": 96, "patience": patience}
        return fit(corpus, replace(SETTINGS, **sizes), store=store), models

    return train


class Failing(Store):
    """Its reports end in an error, after they have seen what is stored."""

    error, seen = BrokenPipeError(32, "Broken pipe"), ()

    def report(self, trainer, vocabs):
        last = load_checkpoint(f"{self.out}.last.safetensors")
        self.seen += (len(last.training["history"]),)
        raise self.error


@pytest.mark.filterwarnings("ignore:epoch [234] is stored")
def test_the_best_epoch_is_kept_and_stored_before_it_is_reported(judged, tmp_path):
    """The best model is that of the running mean."""
    store = Failing(tmp_path / "model")
    with pytest.warns(UserWarning, match="epoch 1 is stored, .*Broken pipe"):
        fitted, models = judged([3.0, 1.0, 2.0, 1.5], store=store)
    assert store.seen == (1, 2, 3, 4) and fitted.best_epoch == 2
    best = load_checkpoint(tmp_path / "model.safetensors")
    last = load_checkpoint(tmp_path / "model.last.safetensors")
    assert weights(fitted.model) == weights(best.model) == models[1]
    assert weights(fitted.trainer.model) == weights(last.model) != models[3]
    assert best.notes["epoch"] == 2 and last.notes["epoch"] == 4
    assert not fitted.model.training


def test_patience_counts_epochs_without_a_better_one(judged):
    for patience, epochs in ((1, 3), (2, 6), (0, 7)):
        losses = [3.0, 2.0, 2.5, 1.0, 1.5, 1.2, 0.9]
        assert len(judged(losses, patience)[1]) == epochs


@pytest.mark.slow
def test_a_resumed_training_equals_an_unbroken_one(corpus, tmp_path):
    assert SETTINGS.dropout and SETTINGS.averaging and SETTINGS.label_smoothing
    unbroken, store = fit(corpus, SETTINGS), Failing(tmp_path / "model")
    store.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        fit(corpus, SETTINGS, store=store)
    torch.manual_seed(99)  # another process
    last = load_checkpoint(f"{store.out}.last.safetensors")
    again = Store(store.out, last=last)
    resumed = fit(corpus, SETTINGS, store=again)
    assert resumed.trainer.losses == unbroken.trainer.losses
    assert weights(resumed.model) == weights(unbroken.model)


@pytest.mark.parametrize("size", [8, 7, 1])
def test_the_mean_of_the_gradients_is_that_of_the_whole_batch(size):
    """A process has the short sentences: a mean of means is another. 1: too few."""
    pairs, vocabs = toy()
    pairs = sorted(pairs, key=lambda pair: len(pair.target))
    batch = Batch.from_pairs(([pairs[0], pairs[-1]] * 4)[:size], *vocabs)
    torch.manual_seed(0)
    model = build_model("translator", *map(len, vocabs), 8, 12, 10, 0.0)

    def gradients(value):
        return torch.autograd.grad(value, [*model.parameters()])

    loss = partial(batch_loss, label_smoothing=0.1)
    parts = [gradients(ShareOfLoss(model, loss, rank, 2)(batch)) for rank in (0, 1)]
    for *both, whole in zip(*parts, gradients(loss(model, batch)), strict=True):
        torch.testing.assert_close(sum(both) / 2, whole, atol=1e-6, rtol=1e-4)


def test_batches_are_made_on_the_default_device():
    """With meta, a device without numbers, in place of a graphics card."""
    pairs, vocabs = toy()
    with torch.device("meta"):
        batch = next(iter(BatchLoader(pairs, *vocabs)))
    assert {column.device.type for column in batch} == {"meta"}


@pytest.mark.slow
@pytest.mark.skipif(
    not (dist.is_available() and dist.is_gloo_available()),
    reason="this build of PyTorch can't join processes",
)
def test_one_process_and_two_learn_the_same(tmp_path):
    """Without dropout, the losses of all epochs agree, so the command is unchanged."""
    write_pairs(tmp_path / "pairs.tsv")
    losses = []
    for number in (1, 2):
        words = f"{NEW} --out {number} --num-epochs 3 --dropout 0 --batch-size 19"
        printed, errors = start(tmp_path, words, number).communicate()
        assert printed.count("the best epoch ") == 1, errors  # one speaks for both
        stored = load_checkpoint(tmp_path / f"{number}.last.safetensors").training
        for epoch in stored["history"]:
            losses.append((epoch["train_loss"], epoch["valid_loss"]))
    one, two = torch.tensor(losses).chunk(2)
    torch.testing.assert_close(one, two, rtol=1e-3, atol=0)
