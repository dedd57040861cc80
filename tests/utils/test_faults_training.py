"""Training that is killed, out of disk space, or stopped by hand.

LEARNING_TO_ALIGN_FAULTS=10000 tries ten times as many moments.
"""

import math
import multiprocessing
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
import torch
from jupyter_client.manager import start_new_kernel
from test_training import same, setup, weights

from utils.checkpoint import load_checkpoint, save_checkpoint
from utils.training import evaluate_loss

TRIES = 100 if "LEARNING_TO_ALIGN_FAULTS" in os.environ else 10
EPOCHS = 2 * TRIES
POSIX = os.name == "posix"
PRELOAD = ["pytest", "hypothesis", "jupyter_client", "utils.training", "torch._dynamo"]
EVERY = 1 if TRIES > 10 else 5  # how many of the lines of training are tried


@pytest.fixture(scope="module")
def processes():
    """Starts processes that needn't import PyTorch again, where the system can."""
    context = multiprocessing.get_context("forkserver" if POSIX else "spawn")
    if POSIX:
        context.set_forkserver_preload(PRELOAD)
    return context


def start(processes, function, *arguments):
    """A process that runs function(sender, *arguments), and the sender's receiver."""
    receiver, sender = processes.Pipe(duplex=False)
    process = processes.Process(target=function, args=(sender, *arguments))
    process.start()
    sender.close()
    return process, receiver


def everything(receiver):
    """All that was sent until the process ended, however it ended."""
    messages = []
    try:
        while True:
            messages.append(receiver.recv())
    except EOFError:
        return messages


# --- kill -9 ---------------------------------------------------------------------


def train_and_save(sender, path):
    """Train from where the file stands; tell of each epoch, and of each save."""
    torch.set_num_threads(1)
    trainer, vocabs = setup(dropout=0.2, num_epochs=EPOCHS)
    if path.exists():
        trainer.resume(path)

    def checkpoint(trainer):
        sender.send(("trained", len(trainer.history)))
        save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
        sender.send(("saved", len(trainer.history)))

    sender.send(("started", len(trainer.history)))
    trainer.fit(checkpoint, progress=False)


def test_a_kill_costs_one_epoch_at_most(processes, tmp_path):
    whole = tmp_path / "unbroken.safetensors"
    process, receiver = start(processes, train_and_save, whole)
    receiver.recv()
    began = time.perf_counter()
    assert everything(receiver)[-1] == ("saved", EPOCHS)
    longest = (time.perf_counter() - began) / TRIES
    path = tmp_path / "folder" / "model.safetensors"
    path.parent.mkdir()
    rng, stored, kills, lost = random.Random(0), 0, 0, 0
    while kills < TRIES:
        process, receiver = start(processes, train_and_save, path)
        assert receiver.recv() == ("started", stored)
        time.sleep(rng.uniform(0, longest))
        process.kill()
        process.join()
        told = {"trained": stored, "saved": stored, **dict(everything(receiver))}
        if path.exists():  # it is whole
            stored = len(load_checkpoint(path).training["history"])
        assert told["saved"] <= stored <= told["trained"] <= stored + 1
        kills += process.exitcode != 0
        lost += told["trained"] - stored
        if process.exitcode == 0:  # it was done before: begin again
            path.unlink()
            stored = 0
    halves = sum(1 for _ in path.parent.iterdir()) - path.exists()
    print(f"{kills} kills, {halves} while saving, {lost} lost an epoch")
    process, receiver = start(processes, train_and_save, path)
    assert everything(receiver)[-1] in (("saved", EPOCHS), ("started", EPOCHS))
    again, unbroken = load_checkpoint(path), load_checkpoint(whole)
    assert again.training["losses"] == unbroken.training["losses"]
    assert same(weights(again.model), weights(unbroken.model))


# --- no space left ---------------------------------------------------------------


def save_twice(sender, folder, largest):
    """Save, then train and save again where no file may be `largest` bytes."""
    torch.set_num_threads(1)
    path = folder / "model.safetensors"
    trainer, vocabs = setup(num_epochs=1)
    save_checkpoint(path, trainer.model, *vocabs, notes={"bleu": 1})
    trainer.fit(progress=False)
    if largest:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    try:
        save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    except Exception as error:
        sender.send((type(error).__name__, str(error)))
    files = [file.name for file in folder.iterdir()]
    sender.send((files, load_checkpoint(path).notes))


def check_told(error, folder, real_size):
    """The message names the path, and about the bytes that the file would take."""
    kind, message = error
    assert kind == "OSError" and str(folder / "model.safetensors") in message
    numbers = [int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", message)]
    assert any(0.9 * real_size < n < 1.1 * real_size for n in numbers), message


@pytest.fixture(scope="module")
def real_size(tmp_path_factory):
    """Bytes of the second file that `save_twice` writes."""
    path = tmp_path_factory.mktemp("size") / "model.safetensors"
    trainer, vocabs = setup(num_epochs=1)
    trainer.fit(progress=False)
    save_checkpoint(path, trainer.model, *vocabs, trainer=trainer)
    return path.stat().st_size


@pytest.mark.skipif(not POSIX, reason="needs a limit on the size of files")
def test_a_file_that_may_not_grow(processes, tmp_path, real_size):
    _, receiver = start(processes, save_twice, tmp_path, real_size * 2 // 3)
    error, (files, notes) = everything(receiver)
    check_told(error, tmp_path, real_size)
    assert files == ["model.safetensors"] and notes == {"bleu": 1}


def test_a_full_disk(tmp_path, real_size):
    """A disk in memory with room for the first file, and for half of the second."""
    disk = f"mount -t tmpfs -o size={real_size} tmpfs '{tmp_path}'"
    probe = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", disk]
    if not shutil.which("unshare") or subprocess.run(probe).returncode:
        pytest.skip("no permission to mount a small disk")
    code = (
        "import pathlib, sys; from test_faults_training import save_twice;"
        "show = type('', (), {'send': staticmethod(lambda x: print(repr(x)))});"
        "save_twice(show, pathlib.Path(sys.argv[1]), None)"
    )
    run = f"{disk} && '{sys.executable}' -c \"{code}\" '{tmp_path}'"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*probe[:-1], run], env=environment, capture_output=True, text=True, check=True
    )
    error, (files, notes) = map(eval, done.stdout.splitlines())
    assert "No space left" in error[1]
    check_told(error, tmp_path, real_size)
    assert files == ["model.safetensors"] and notes == {"bleu": 1}


def test_a_folder_that_takes_no_new_file(tmp_path, monkeypatch):
    trainer, vocabs = setup(num_epochs=1)
    save_checkpoint(tmp_path / "model", trainer.model, *vocabs)
    before = (tmp_path / "model").read_bytes()

    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    with pytest.raises(OSError, match=r"could not save .*model .* needs [\d,]+ bytes"):
        save_checkpoint(tmp_path / "model", trainer.model, *vocabs)
    assert (tmp_path / "model").read_bytes() == before


def test_a_folder_that_is_none(tmp_path):
    (tmp_path / "file").touch()
    trainer, vocabs = setup(num_epochs=1)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        save_checkpoint(tmp_path / "file" / "model", trainer.model, *vocabs)


# --- the stop button -------------------------------------------------------------

INTERRUPTIBLE = {
    "fit",
    "_run_epoch",
    "_close_epoch",
    "train_step",
    "batch_loss",
    "evaluate_loss",
    "check_finite",
    "learning_rate",
}


def stop_at(line, function):
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
        code = frame.f_code
        ours = code.co_filename.endswith("training.py")
        return local if ours and code.co_name in INTERRUPTIBLE else None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return count >= line


def small():
    """Two epochs of two updates."""
    trainer, _ = setup(num_epochs=2)
    for loader in (trainer.loader, trainer.valid_loader):
        loader.ids, loader.lengths = loader.ids[:4], loader.lengths[:4]
        loader.batch_size = 2
    return trainer


def plain(history):
    return [{k: v for k, v in e.items() if k != "seconds"} for e in history]


def test_stopped_at_any_line_it_goes_on_to_the_same_numbers():
    unbroken = small()
    unbroken.fit(progress=False)
    line, wrong = 1, []
    while True:
        trainer = small()
        if not stop_at(line, lambda: trainer.fit(progress=False)):  # noqa: B023
            break
        usable = (
            len(trainer.losses) == trainer.step
            and math.isfinite(evaluate_loss(trainer.model, trainer.valid_loader))
            and len(trainer.history) in (trainer.step // 2, (trainer.step - 1) // 2)
        )
        trainer.fit(progress=False)
        equal = (
            trainer.losses == unbroken.losses
            and plain(trainer.history) == plain(unbroken.history)
            and same(weights(trainer.model), weights(unbroken.model))
        )
        if not (usable and equal):
            wrong.append(line)
        line += EVERY
    assert line > 100  # so many lines were tried
    print(f"stopped at every {EVERY}. of {line - EVERY} lines, {len(wrong)} went wrong")
    assert not wrong, wrong


SET_UP = """
import time
from test_training import setup, weights, same

unbroken = setup(dropout=0.2, num_epochs={epochs})[0]
began = time.perf_counter()
unbroken.fit(progress=False)
trainer = setup(dropout=0.2, num_epochs={epochs})[0]
print(time.perf_counter() - began)
"""
FIT = """
print("started at", trainer.step, flush=True)
trainer.fit()
"""
CHECK = """
from utils.training import evaluate_loss
assert trainer.step == len(trainer.losses)
evaluate_loss(trainer.model, trainer.valid_loader)
trainer.step
"""
END = """
trainer.fit()
assert trainer.losses == unbroken.losses, "losses"
history = [[e["tokens"], e["valid_loss"]] for e in trainer.history]
assert history == [[e["tokens"], e["valid_loss"]] for e in unbroken.history], "history"
assert same(weights(trainer.model), weights(unbroken.model)), "weights"
"""


class Kernel:
    """A Jupyter kernel, as JupyterLab starts one."""

    def __init__(self, manager, client):
        self.manager, self.client = manager, client

    def run(self, code, stop_after=None):
        """What the code prints or returns, and the name of its error or None."""
        sent = self.client.execute(code)
        texts, error, done = [], None, False
        while not done:
            message = self.client.get_iopub_msg(timeout=3600)
            if message["parent_header"].get("msg_id") != sent:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                texts.append(content["text"])
                if stop_after is not None:
                    time.sleep(stop_after)
                    self.manager.interrupt_kernel()
            elif kind == "execute_result":
                texts.append(content["data"]["text/plain"])
            elif kind == "error":
                error = f"{content['ename']} {content['evalue']}".strip()
            done = kind == "status" and content["execution_state"] == "idle"
        self.client.get_shell_msg(timeout=3600)
        return "".join(texts), error


@pytest.fixture
def kernel():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    manager, client = start_new_kernel(
        startup_timeout=3600, kernel_name="python3", env=environment
    )
    yield Kernel(manager, client)
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_the_stop_button_in_the_middle_of_training(kernel):
    printed, error = kernel.run(SET_UP.format(epochs=EPOCHS))
    assert error is None
    longest, rng = float(printed) / TRIES, random.Random(1)
    reached, stops = [0], 0
    for _ in range(TRIES):
        printed, error = kernel.run(FIT, stop_after=rng.uniform(0, longest))
        assert printed == f"started at {reached[-1]}\n"
        if error is None:  # training was over before
            break
        assert error == "KeyboardInterrupt"
        stops += 1
        step, error = kernel.run(CHECK)
        assert error is None
        reached.append(int(step))
    print(f"{stops} stops, at the updates {reached[1:]}")
    assert stops > TRIES / 2 and reached == sorted(reached)
    assert kernel.run(END)[1] is None
