"""Training that is killed, out of disk space, or stopped by hand.

LEARNING_TO_ALIGN_FAULTS=10000 tries ten times as many moments.
"""

import multiprocessing
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time

import pytest
import torch
from helpers.training import (
    everything,
    outcome,
    run,
    setup,
    train_and_save,
    weights,
)

from utils import training
from utils.checkpoint import load_checkpoint, save_checkpoint

pytestmark = pytest.mark.slow

TRIES = 100 if "LEARNING_TO_ALIGN_FAULTS" in os.environ else 10
EPOCHS = 2 * TRIES
POSIX = os.name == "posix"
EVERY = 1 if TRIES > 10 else 5  # how many of the lines of training are tried


def start(function, *arguments):
    """A process that runs function(send, *arguments), and its messages, to be read."""
    context = multiprocessing.get_context("forkserver" if POSIX else "spawn")
    if POSIX:  # such processes needn't import PyTorch again
        context.set_forkserver_preload(["pytest", "helpers_training", "torch._dynamo"])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=run, args=(sender, function, *arguments))
    process.start()
    sender.close()
    return process, messages(receiver)


def messages(receiver):
    """All that is sent until the process has ended, however it ended."""
    try:
        while True:
            yield receiver.recv()
    except EOFError:
        return


# --- kill -9 ---------------------------------------------------------------------


def test_a_kill_costs_one_epoch_at_most(tmp_path):
    whole = tmp_path / "unbroken.safetensors"
    _, told = start(train_and_save, whole, EPOCHS)
    next(told)
    began = time.perf_counter()
    assert [*told][-1] == ("saved", EPOCHS)
    longest = (time.perf_counter() - began) / TRIES
    path = tmp_path / "folder" / "model.safetensors"
    path.parent.mkdir()
    rng, stored, kills = random.Random(0), 0, 0
    while kills < TRIES:
        process, told = start(train_and_save, path, EPOCHS)
        assert next(told) == ("started", stored)
        time.sleep(rng.uniform(0, longest))
        process.kill()
        process.join()
        told = {"trained": stored, "saved": stored, **dict(told)}
        if path.exists():  # it is whole
            stored = len(load_checkpoint(path).training["history"])
        assert told["saved"] <= stored <= told["trained"] <= stored + 1
        kills += process.exitcode != 0
        if process.exitcode == 0:  # it was done before: begin again
            path.unlink()
            stored = 0
    _, told = start(train_and_save, path, EPOCHS)
    assert [*told][-1] in (("saved", EPOCHS), ("started", EPOCHS))
    again, unbroken = load_checkpoint(path), load_checkpoint(whole)
    assert again.training["losses"] == unbroken.training["losses"]
    assert weights(again.model) == weights(unbroken.model)


# --- no space left ---------------------------------------------------------------


def test_a_file_that_may_not_grow(tmp_path):
    """The error names the file, and about the bytes that it needs."""
    resource = pytest.importorskip("resource")
    (trainer, vocabs), path = setup(num_epochs=1), tmp_path / "model"
    trainer.fit(progress=False)
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    size = path.stat().st_size
    save_checkpoint(path, trainer.model, *vocabs, notes={"bleu": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size * 2 // 3, hard))
    try:
        with pytest.raises(OSError, match=f"could not save {path} .*it needs") as error:
            save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    needed = re.search(r"needs ([\d,]+) bytes", str(error.value)).group(1)
    assert 0.9 * size < int(needed.replace(",", "")) < 1.1 * size
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
    assert load_checkpoint(path).notes == {"bleu": 1}


def half_written(tensors, file, metadata):
    with open(file, "wb") as out:
        out.write(b"half")
    raise OSError(28, "No space left on device")


def refuse(*arguments, **options):
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize(
    "owner, name, fails",
    [
        ("utils.checkpoint", "save_file", half_written),
        (tempfile, "mkstemp", refuse),
        (os, "replace", refuse),
    ],
)
def test_saving_that_fails_leaves_the_old_file(
    tmp_path, monkeypatch, owner, name, fails
):
    trainer, vocabs = setup(num_epochs=1)
    save_checkpoint(tmp_path / "model", trainer.model, *vocabs)
    before = (tmp_path / "model").read_bytes()
    target = (f"{owner}.{name}",) if isinstance(owner, str) else (owner, name)
    monkeypatch.setattr(*target, fails)
    with pytest.raises(OSError, match=r"could not save .*model .* needs [\d,]+ bytes"):
        save_checkpoint(tmp_path / "model", trainer.model, *vocabs)
    assert (tmp_path / "model").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


# --- the stop button -------------------------------------------------------------


def stop_at(line, function, *arguments):
    """Run the function, with SIGINT sent at that line of the training's own code.

    Returns whether it got that far. Lines are counted as they are run.
    """
    count = 0

    def local(frame, event, _):
        nonlocal count
        if event == "line":
            count += 1
            if count == line:
                signal.raise_signal(signal.SIGINT)
        return local

    def trace(frame, event, _):
        return local if frame.f_code.co_filename == training.__file__ else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return count >= line


def small():
    """Two epochs of two updates, with dropout and a running mean."""
    trainer, vocabs = setup(num_epochs=2, dropout=0.2, averaging=0.9)
    for loader in (trainer.loader, trainer.valid_loader):
        loader.ids, loader.lengths = loader.ids[:4], loader.lengths[:4]
        loader.batch_size = 2
    return trainer, vocabs


def test_stopped_at_any_line_it_goes_on_to_the_same_numbers():
    unbroken = outcome(small()[0].fit(progress=False))
    line, reached = 1, set()
    while True:
        trainer, _ = small()
        if not stop_at(line, trainer.fit, None, False):
            break
        random_state = torch.get_rng_state()
        training.evaluate_loss(trainer.averaged, trainer.valid_loader)
        assert len(trainer.losses) == trainer.step
        assert len(trainer.history) in (trainer.step // 2, (trainer.step - 1) // 2)
        reached.add((trainer.step, len(trainer.history)))
        torch.set_rng_state(random_state)
        assert outcome(trainer.fit(progress=False)) == unbroken, line
        line += EVERY
    steps = {(0, 0), (1, 0), (2, 0), (2, 1), (3, 1), (4, 1)}
    assert reached >= steps  # it was stopped in and after each update


def test_stopped_at_any_line_of_resuming_it_has_resumed_or_not(tmp_path):
    saved, vocabs = small()
    saved.fit(lambda trainer: True, progress=False)
    path, found = tmp_path / "model.safetensors", []
    save_checkpoint(path, saved.model, *vocabs, trainer=saved)
    line, (trainer, _) = 1, small()
    before = everything(trainer)
    resumed = everything(small()[0].resume(path))
    torch.manual_seed(0)
    while True:
        trainer, _ = small()
        if not stop_at(line, trainer.resume, path):
            break
        found.append(everything(trainer))
        assert found[-1] in (before, resumed), line
        line += 1
    assert before in found and resumed in found


def test_the_stop_button_in_the_middle_of_training():
    """At any moment, in PyTorch's own code, too."""
    unbroken, rng, reached = setup(EPOCHS, dropout=0.2)[0], random.Random(1), [0]
    began = time.perf_counter()
    unbroken.fit(progress=False)
    longest = (time.perf_counter() - began) / TRIES
    trainer, _ = setup(EPOCHS, dropout=0.2)
    while trainer.step < unbroken.step:
        timer = threading.Timer(
            rng.uniform(0, longest), os.kill, (os.getpid(), signal.SIGINT)
        )
        try:
            timer.start()
            trainer.fit(progress=False)
            timer.cancel()
        except KeyboardInterrupt:
            reached.append(trainer.step)
        finally:
            timer.join()
        assert trainer.step == len(trainer.losses)
    trainer.fit(progress=False)
    assert len({*reached}) > TRIES / 2 and reached == sorted(reached)
    assert outcome(trainer) == outcome(unbroken)
