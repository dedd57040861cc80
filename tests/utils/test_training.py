"""Loss, training step, the loop, interruption, checkpoints."""

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.torch import save_file

from utils.checkpoint import FORMAT, load_checkpoint, save_checkpoint
from utils.data import BatchLoader, Pair
from utils.decoding import translate_tokens
from utils.models import build_model
from utils.subwords import SampledLoader, SubwordVocab
from utils.text import PAD_ID, SPECIALS, Vocab
from utils.training import (
    Trainer,
    batch_loss,
    evaluate_loss,
    masked_cross_entropy,
    running_mean,
    train_step,
)

LETTERS = "abcdefgh"


def toy(n=60, seed=0):
    """Copy with the letters in capitals: small enough to be learnt in seconds."""
    generator = torch.Generator().manual_seed(seed)
    pairs = []
    for _ in range(n):
        size = int(torch.randint(1, 6, (), generator=generator))
        word = tuple(
            LETTERS[i] for i in torch.randint(0, 8, (size,), generator=generator)
        )
        pairs.append(Pair(word, tuple(letter.upper() for letter in word)))
    vocabs = Vocab([list(LETTERS)], "en"), Vocab([list(LETTERS.upper())], "en")
    return pairs, vocabs


def setup(dropout=0.0, num_epochs=3, **options):
    pairs, vocabs = toy()
    torch.manual_seed(0)
    model = build_model(
        "attention",
        len(vocabs[0]),
        len(vocabs[1]),
        8,
        16,
        num_layers=2,
        dropout=dropout,
    )
    loader = BatchLoader(pairs, *vocabs, batch_size=16, seed=1)
    valid = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=16)
    return Trainer(model, loader, num_epochs, valid, lr=1e-2, **options), vocabs


def weights(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(2, 7), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_masked_cross_entropy_equals_the_loop(B, T, V, seed):
    torch.manual_seed(seed)
    scores = torch.randn(B, T, V, dtype=torch.double, requires_grad=True)
    targets = torch.randint(0, V, (B, T))
    targets[0, 0] = 1
    total, count = 0.0, 0
    for b in range(B):
        for t in range(T):
            if targets[b, t] != PAD_ID:
                row = scores[b, t].detach()
                total += (
                    math.log(sum(math.exp(x) for x in row)) - row[targets[b, t]].item()
                )
                count += 1
    loss = masked_cross_entropy(scores, targets)
    assert loss.item() == pytest.approx(total / count)
    loss.backward()
    assert (scores.grad[targets == PAD_ID] == 0).all()


def test_padding_does_not_dilute_the_loss():
    scores, targets = torch.randn(2, 3, 5), torch.tensor([[1, 2, 3], [4, 0, 0]])
    wider = (
        torch.cat((scores, torch.randn(2, 4, 5)), 1),
        torch.cat((targets, torch.zeros(2, 4, dtype=torch.long)), 1),
    )
    torch.testing.assert_close(
        masked_cross_entropy(*wider), masked_cross_entropy(scores, targets)
    )


def test_loss_errors():
    with pytest.raises(ValueError, match="every target is padding"):
        masked_cross_entropy(torch.randn(1, 2, 3), torch.zeros(1, 2, dtype=torch.long))
    with pytest.raises(ValueError, match=r"\(1, 2, 3\) and \(1, 3\)"):
        masked_cross_entropy(torch.randn(1, 2, 3), torch.ones(1, 3, dtype=torch.long))


def test_training_learns_and_validation_follows():
    trainer, _ = setup(num_epochs=30)
    trainer.fit(progress=False)
    first, last = trainer.history[0], trainer.history[-1]
    assert last["train_loss"] < 0.6 * first["train_loss"]
    assert last["valid_loss"] < 0.7 * first["valid_loss"]
    assert len(trainer.losses) == 30 * len(trainer.loader) == trainer.step
    assert last["tokens"] == sum(len(pair.target) + 1 for pair in toy()[0])
    assert trainer.seconds > 0


def test_evaluate_loss_is_the_mean_over_tokens_whatever_the_batches():
    trainer, vocabs = setup()
    small = BatchLoader(toy(20, seed=9)[0], *vocabs, batch_size=3, shuffle=False)
    assert evaluate_loss(trainer.model, small) == pytest.approx(
        evaluate_loss(trainer.model, trainer.valid_loader), rel=1e-5
    )


def test_same_seed_same_numbers():
    runs = []
    for _ in range(2):
        trainer, _ = setup(dropout=0.2)
        runs.append(trainer.fit(progress=False).losses)
    assert runs[0] == runs[1]


def test_the_gradient_is_clipped():
    trainer, _ = setup()
    batch = next(iter(trainer.loader.epoch(0)))
    train_step(
        trainer.model, batch, torch.optim.SGD(trainer.model.parameters(), 0.0), 0.01
    )
    norm = math.sqrt(sum(p.grad.square().sum() for p in trainer.model.parameters()))
    assert norm == pytest.approx(0.01, rel=1e-3)


def test_the_learning_rate_rises_then_falls():
    trainer, _ = setup(num_epochs=10, warmup=0.1)
    total = 10 * len(trainer.loader)
    rates = [trainer.learning_rate(step) for step in range(total)]
    peak = rates.index(max(rates))
    assert rates[: peak + 1] == sorted(rates[: peak + 1]) and 0 < peak < 0.2 * total
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
    assert 0 < rates[-1] < 0.05 * trainer.lr and max(rates) <= trainer.lr


def test_a_loss_that_is_not_finite_stops_training_and_spares_the_model():
    trainer, _ = setup()
    with torch.no_grad():
        trainer.model.decoder.dense.bias[5] = float("inf")
    before = weights(trainer.model)
    with pytest.raises(FloatingPointError, match="lower learning rate"):
        trainer.fit(progress=False)
    assert same(before, weights(trainer.model))


class Interrupting:
    """A loader that interrupts once, when the batch with this number is asked for."""

    def __init__(self, loader, at):
        self.loader, self.at, self.fired = loader, at, False

    def __len__(self):
        return len(self.loader)

    def epoch(self, number):
        for index, batch in enumerate(self.loader.epoch(number)):
            if not self.fired and number * len(self) + index == self.at:
                self.fired = True
                raise KeyboardInterrupt
            yield batch


@pytest.mark.parametrize("at", [0, 2, 4, 9])
def test_interrupted_training_goes_on_to_the_same_numbers(at):
    unbroken, _ = setup()
    unbroken.fit(progress=False)
    broken, _ = setup()
    broken.loader = Interrupting(broken.loader, at)
    with pytest.raises(KeyboardInterrupt):
        broken.fit(progress=False)
    assert broken.step == len(broken.losses) == at
    assert math.isfinite(evaluate_loss(broken.model, broken.valid_loader))
    broken.fit(progress=False)
    assert broken.losses == unbroken.losses
    assert [e["valid_loss"] for e in broken.history] == [
        e["valid_loss"] for e in unbroken.history
    ]
    assert same(weights(broken.model), weights(unbroken.model))


def test_resuming_from_a_checkpoint_reaches_the_same_numbers(tmp_path):
    unbroken, vocabs = setup(dropout=0.2)
    unbroken.fit(progress=False)
    broken, _ = setup(dropout=0.2)
    broken.loader = Interrupting(broken.loader, 6)  # in the second epoch
    with pytest.raises(KeyboardInterrupt):
        broken.fit(progress=False)
    path = tmp_path / "half.safetensors"
    save_checkpoint(path, broken.model, *vocabs, trainer=broken)
    torch.manual_seed(123)  # a new process has another random state and other weights
    fresh, _ = setup(dropout=0.2)
    fresh.resume(path).fit(progress=False)
    assert fresh.losses == unbroken.losses
    assert same(weights(fresh.model), weights(unbroken.model))


def test_the_checkpoint_function_is_called_after_each_epoch():
    trainer, _ = setup()
    steps = []
    trainer.fit(
        progress=False, checkpoint=lambda t: steps.append((t.step, len(t.history)))
    )
    assert steps == [(k * len(trainer.loader), k) for k in (1, 2, 3)]


def test_true_from_the_checkpoint_function_ends_the_training():
    trainer, _ = setup()
    trainer.fit(checkpoint=lambda t: len(t.history) == 2, progress=False)
    assert len(trainer.history) == 2 and trainer.step == 2 * len(trainer.loader)
    trainer.fit(progress=False)  # the next call goes on
    assert len(trainer.history) == 3


def test_the_loss_function_is_the_one_trained_but_not_the_one_validated():
    doubled, _ = setup(loss_function=lambda model, batch: 2 * batch_loss(model, batch))
    plain, _ = setup()
    for trainer in (doubled, plain):
        trainer.fit(checkpoint=lambda t: True, progress=False)
    assert doubled.losses[0] == pytest.approx(2 * plain.losses[0])
    assert doubled.history[0]["valid_loss"] < 1.5 * plain.history[0]["valid_loss"]


# --- the running mean of the parameters -------------------------------------------


def test_averaging_is_the_running_mean_by_a_plain_loop():
    keep, trainer = 0.5, setup(averaging=0.5)[0]
    expected, updates, model = None, 0, trainer.model
    update = trainer._mean.update_parameters

    def also_by_loop(source):
        nonlocal expected, updates
        update(source)
        values = [p.detach().double().tolist() for p in source.parameters()]
        values = [torch.tensor(value, dtype=torch.double) for value in values]
        if expected is None:
            expected = values
        else:
            share = min(keep, (1 + updates) / (10 + updates))
            expected = [
                share * mean + (1 - share) * value
                for mean, value in zip(expected, values, strict=True)
            ]
        updates += 1

    trainer._mean.update_parameters = also_by_loop
    trainer.fit(progress=False)
    assert updates == trainer.step == 12
    assert any(  # both sides of the min were in use
        (1 + n) / (10 + n) > keep for n in range(updates)
    )
    assert trainer.averaged is not model
    for found, mean in zip(trainer.averaged.parameters(), expected, strict=True):
        torch.testing.assert_close(found.double(), mean, atol=1e-6, rtol=1e-5)
    apart = [
        (a - b).abs().max().item()
        for a, b in zip(trainer.averaged.parameters(), model.parameters(), strict=True)
    ]
    assert max(apart) > 1e-3


def test_the_first_values_are_let_go_faster():
    mean, value = torch.tensor(0.0), torch.tensor(1.0)
    early = running_mean(0.999, mean, value, torch.tensor(1))
    assert early.item() == pytest.approx(1 - 2 / 11)
    late = running_mean(0.999, mean, value, torch.tensor(100_000))
    assert late.item() == pytest.approx(0.001, rel=1e-3)


def test_the_averaged_model_is_the_one_validated():
    trainer, _ = setup(averaging=0.9)
    trainer.fit(progress=False)
    assert trainer.history[-1]["valid_loss"] == evaluate_loss(
        trainer.averaged, trainer.valid_loader
    )
    assert trainer.history[-1]["valid_loss"] != evaluate_loss(
        trainer.model, trainer.valid_loader
    )
    assert setup()[0].averaged is not None and setup()[0]._mean == 0.0


def test_without_averaging_the_averaged_model_is_the_model():
    trainer, _ = setup()
    assert trainer.averaged is trainer.model


# --- a translator with subwords ---------------------------------------------------


@pytest.fixture(scope="module")
def pieces():
    """Pairs of words of two or more letters, and vocabularies of their pieces."""
    generator = torch.Generator().manual_seed(0)
    pairs = []
    for _ in range(60):
        size = int(torch.randint(1, 4, (), generator=generator))
        ids = torch.randint(0, 8, (size, 3), generator=generator)
        words = tuple("".join(LETTERS[i] for i in row) for row in ids)
        pairs.append(Pair(words, tuple(word.upper() for word in words)))
    vocabs = [SubwordVocab.train([p[side] for p in pairs], "en", 30) for side in (0, 1)]
    return pairs, vocabs


def setup_translator(pieces, kind="translator", num_epochs=3):
    pairs, vocabs = pieces
    torch.manual_seed(0)
    model = build_model(kind, 30, 30, 8, 12, 10, dropout=0.2)
    loader = SampledLoader(pairs, *vocabs, 16, 1, alpha=0.2)
    valid = BatchLoader(pairs[:20], *vocabs)
    return Trainer(model, loader, num_epochs, valid, lr=1e-2, averaging=0.9)


@pytest.mark.parametrize("kind", ["translator", "fixed translator"])
def test_a_resumed_translator_equals_an_unbroken_one(pieces, tmp_path, kind):
    """With dropout, words cut anew in each epoch, and averaged parameters."""
    unbroken = setup_translator(pieces, kind).fit(progress=False)
    broken, path = setup_translator(pieces, kind), tmp_path / "half.safetensors"
    broken.loader = Interrupting(broken.loader, 6)  # in the second epoch
    with pytest.raises(KeyboardInterrupt):
        broken.fit(progress=False)
    save_checkpoint(path, broken.model, *pieces[1], trainer=broken)
    torch.manual_seed(123)
    fresh = setup_translator(pieces, kind)
    fresh.resume(path).fit(progress=False)
    assert fresh.losses == unbroken.losses
    assert same(weights(fresh.model), weights(unbroken.model))
    assert same(weights(fresh.averaged), weights(unbroken.averaged))
    assert not same(weights(fresh.averaged), weights(fresh.model))
    assert [e["valid_loss"] for e in fresh.history] == [
        e["valid_loss"] for e in unbroken.history
    ]
    decoder = fresh.averaged.decoder
    assert decoder.dense.out.weight is decoder.embedding.weight


def test_a_stored_translator_translates_the_same(pieces, tmp_path):
    trainer = setup_translator(pieces)
    for parameter in trainer.averaged.parameters():  # many different translations
        torch.nn.init.normal_(parameter, std=0.8)
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.averaged, *pieces[1])
    saved = load_checkpoint(path)
    assert [vocab.model for vocab in saved[1:3]] == [v.model for v in pieces[1]]
    assert saved.tgt_vocab.lang == "en" and not saved.model.training
    decoder = saved.model.decoder
    assert decoder.dense.out.weight is decoder.embedding.weight
    sentences = [pair.source for pair in pieces[0][:20]]
    before = translate_tokens(trainer.averaged, sentences, *pieces[1])
    after = translate_tokens(saved.model, sentences, *saved[1:3])
    for first, second in zip(before, after, strict=True):
        assert first._replace(attention_weights=None) == second._replace(
            attention_weights=None
        )
        assert torch.equal(first.attention_weights, second.attention_weights)
    assert len({translation.text for translation in after}) > 3


def with_header(path, change):
    """Store a checkpoint's tensors again, with another header."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}
        header = json.loads(file.metadata()["header"])
    change(header, tensors)
    save_file(tensors, path, {"format": FORMAT, "header": json.dumps(header)})


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda h, t: h.update(src_vocab=["en", "no base 64!"]), "base64|padding"),
        (lambda h, t: h.update(src_vocab=["en", "AAAA"]), "no sentencepiece model"),
        (lambda h, t: h.update(tgt_vocab=["xx", h["tgt_vocab"][1]]), "language 'xx'"),
        (lambda h, t: h["config"].update(kind="attention"), "other sizes of"),
        (lambda h, t: h["config"].update(enc_hiddens=8), "other sizes of"),
        (lambda h, t: h["config"].update(num_hiddens=13), "other sizes of"),
        (lambda h, t: h["config"].update(tgt_vocab_size=31), "other sizes of vocab"),
        (
            lambda h, t: h.update(tgt_vocab=["en", list(SPECIALS)]),
            "other sizes of vocab",
        ),
        (lambda h, t: h["config"].update(kind="fixed translator"), "other sizes of"),
        (lambda h, t: t.pop("model.decoder.dense.hidden.bias"), "other sizes of"),
    ],
)
def test_a_translator_that_does_not_fit_says_so(pieces, tmp_path, change, message):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, setup_translator(pieces).model, *pieces[1])
    load_checkpoint(path)
    with_header(path, change)
    with pytest.raises(ValueError, match=f"don't fit together(?s:.*)({message})"):
        load_checkpoint(path)


def test_resuming_with_another_averaging_is_refused(pieces, tmp_path):
    trainer, path = setup_translator(pieces), tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.model, *pieces[1], trainer=trainer)
    other = setup_translator(pieces)
    other.averaging = 0.99
    with pytest.raises(ValueError, match="averaging"):
        other.resume(path)


def test_a_checkpoint_gives_back_the_model_and_vocabularies(tmp_path):
    trainer, vocabs = setup()
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.model, *vocabs, notes={"bleu": 1.5})
    saved = load_checkpoint(path)
    assert (
        same(weights(trainer.model), weights(saved.model)) and not saved.model.training
    )
    assert saved.src_vocab.idx_to_token == vocabs[0].idx_to_token
    assert saved.tgt_vocab.lang == "en" and saved.notes == {"bleu": 1.5}
    with pytest.raises(ValueError, match="no state of training"):
        trainer.resume(path)


def test_resuming_under_another_plan_is_refused(tmp_path):
    trainer, vocabs = setup()
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    other, _ = setup(num_epochs=4)
    with pytest.raises(ValueError, match="num_epochs"):
        other.resume(path)


def test_saving_that_fails_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    trainer, vocabs = setup()
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.model, *vocabs)
    before = path.read_bytes()

    def half_written(tensors, file, metadata):
        with open(file, "wb") as out:
            out.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("utils.training.save_file", half_written)
    with pytest.raises(OSError, match="No space left"):
        save_checkpoint(path, trainer.model, *vocabs)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]


def damaged(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda p, good: damaged(p, good[: len(good) // 2]), "damaged"),
        (lambda p, good: damaged(p, b""), "damaged"),
        (lambda p, good: damaged(p, b"\x80\x04pickle" * 50), "damaged"),
        (lambda p, good: save_file({"w": torch.zeros(1)}, p), "not of this course"),
        (
            lambda p, good: save_file({"w": torch.zeros(1)}, p, {"format": FORMAT}),
            "don't fit together",
        ),
        (
            lambda p, good: save_file(
                {"model.w": torch.zeros(1)},
                p,
                {
                    "format": FORMAT,
                    "header": json.dumps(
                        {
                            "config": {"kind": "attention"},
                            "src_vocab": ["en", []],
                            "tgt_vocab": ["en", []],
                            "training": None,
                            "notes": {},
                        }
                    ),
                },
            ),
            "don't fit together",
        ),
    ],
)
def test_a_damaged_or_foreign_checkpoint_gets_a_clear_error(tmp_path, make, message):
    trainer, vocabs = setup()
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, trainer.model, *vocabs)
    make(path, path.read_bytes())
    with pytest.raises(ValueError, match=message):
        load_checkpoint(path)


def test_missing_files_and_folders(tmp_path):
    trainer, vocabs = setup()
    with pytest.raises(FileNotFoundError, match="no checkpoint at"):
        load_checkpoint(tmp_path / "nothing.safetensors")
    with pytest.raises(FileNotFoundError, match="no folder"):
        save_checkpoint(tmp_path / "nowhere" / "m.safetensors", trainer.model, *vocabs)
    with pytest.raises(ValueError, match="at least 1"):
        setup(num_epochs=0)
