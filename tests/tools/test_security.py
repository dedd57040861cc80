"""What is read is data, never code; what is started listens to this machine alone.

Checkpoints are safetensors files, corpora are text: nothing of the course unpickles,
evaluates or hands text to a shell. A rule is a function that returns what is wrong, and
is tested on cases that it must find.
"""

import ast
import gzip
import json
import os
import pickle
import shlex
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import mirror
import nbformat
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from test_binder import COLAB
from test_layout import commands

from utils import data

ROOT = mirror.ROOT
SHIPPED = ROOT / "data" / "models" / "village-en-fr.safetensors"
FOLDERS = ("utils", "data", "benchmarks", "binder", "notebooks")

# --- nothing is run that was read ---------------------------------------------

# Modules whose files can hold code, or that unpack archives, whose members can climb
# out of the folder.
MODULES = {
    "pickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "joblib",
    "marshal",
    "shelve",
    "tarfile",
    "zipfile",
}
CALLS = {
    "eval",
    "exec",
    "compile",
    "__import__",
    "builtins.eval",
    "builtins.exec",
    "torch.load",
    "torch.jit.load",
    "torch.hub.load",
    "np.load",
    "numpy.load",
    "pd.read_pickle",
    "pandas.read_pickle",
    "yaml.load",
    "yaml.unsafe_load",
    "os.system",
    "os.popen",
    "shutil.unpack_archive",
    "get_ipython().system",
    "get_ipython().getoutput",
}
# (file, what is used there): why it is right.
ALLOWED = {
    ("notebooks/slides/build.py", "tarfile"): (
        "two archives with known checksums; files of known names are read from them"
    ),
}


def dangers(source):
    """What a program uses that could run what it reads."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] in MODULES}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names & CALLS
            if node.module.split(".")[0] in MODULES:
                found.add(node.module)
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found |= {name} & CALLS
            if name.endswith(".extractall"):
                found.add("extractall")
            for keyword in node.keywords:
                if keyword.arg == "shell" and ast.unparse(keyword.value) != "False":
                    found.add(f"{name} with a shell")
    return found


def programs():
    """Each program of the course, and each notebook's code, by its path.

    Without the line that fetches the course on Colab, whose form test_binder.py fixes.
    """
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    for path in mirror.notebook_paths():
        for cell in nbformat.read(path, as_version=4).cells:
            if cell.cell_type == "code":
                name = path.relative_to(ROOT).as_posix()
                yield name, mirror.as_python(COLAB.sub("", cell.source))


def test_no_program_runs_what_it_reads():
    found = {(name, use) for name, source in programs() for use in dangers(source)}
    assert found - set(ALLOWED) == set()
    assert set(ALLOWED) - found == set(), "an exception that nobody needs any more"


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from pickle import loads",
        "import tarfile",
        "archive.extractall(folder)",
        "def f():\n    import joblib",
        "import torch\nstate = torch.load('a.pt')",
        "from torch import load",
        "torch.load('a.pt', weights_only=True)",
        "np.load('a.npy', allow_pickle=True)",
        "x = eval('1 + 1')",
        "exec(open('a.py').read())",
        "yaml.load(text)",
        "import os\nos.system('ls')",
        "subprocess.run('ls', shell=True)",
        "subprocess.check_output('ls', shell=choice)",
        "get_ipython().system('ls')",
    ],
)
def test_a_danger_is_found(source):
    assert dangers(source)


def test_harmless_calls_pass():
    source = "model.eval()\nre.compile('x')\nsubprocess.run(['ls'], shell=False)\n"
    source += "yaml.safe_load(text)\nimport json\njson.load(file)\n"
    assert dangers(source) == set()


# --- files made to hurt -------------------------------------------------------
# tests/utils/test_checkpoint.py tries many; these take care to look right.

LOAD = """
import resource, sys
from utils.checkpoint import load_checkpoint
load_checkpoint(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    load_checkpoint(sys.argv[2])
except ValueError as error:
    print("refused:", error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.skipif(os.name == "nt", reason="memory is measured by Unix means")
def test_a_small_file_does_not_build_a_large_model(tmp_path):
    """300 KB that name 8,000 hidden units, with some tensors of just that size."""
    with safe_open(SHIPPED, framework="pt") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    header, size = json.loads(metadata["header"]), 8000
    header["config"].update(embed_size=1, num_hiddens=size, enc_hiddens=2)
    for side in ("encoder", "decoder"):
        name = f"model.{side}.embedding.weight"
        tensors[name] = torch.zeros(len(tensors[name]), 1)
    tensors["model.decoder.rnn.weight_ih_l0"] = torch.zeros(3 * size, 3)
    path = tmp_path / "small.safetensors"
    save_file(tensors, path, {**metadata, "header": json.dumps(header)})
    command = [sys.executable, "-c", LOAD, SHIPPED, path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert "don't fit together" in done.stdout, done.stderr[-500:]
    assert int(done.stdout.split()[-1]) < 200  # MB


class Payload:
    """Unpickled, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_posing_as_sentences_is_refused(tmp_path):
    ran = tmp_path / "ran"
    pickle.loads(pickle.dumps(Payload(ran)))
    assert ran.exists()  # so it would work
    ran.unlink()
    for name in ("a.tsv", "b.tsv.gz"):
        content = pickle.dumps(Payload(ran))
        path = tmp_path / name
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
        with pytest.raises(ValueError, match="not UTF-8"):
            data.load_tsv(path)
    assert not ran.exists()


def test_a_changed_download_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    folder = tmp_path / "multi30k"
    folder.mkdir()
    for split in ("train", "val", "test_2016_flickr"):
        for lang in ("de", "en"):
            (folder / f"{split}.{lang}.gz").write_bytes(gzip.compress(b"a\n"))
    monkeypatch.setenv("LEARNING_TO_ALIGN_DATA", str(tmp_path))
    monkeypatch.setattr(data, "decode_lines", lambda *_: pytest.fail("unpacked"))
    with pytest.raises(ValueError, match="checksum"):
        data.load_multi30k()


# --- the server ---------------------------------------------------------------


def lab_command():
    """What `make lab` starts, with this Python."""
    recipes = commands((ROOT / "Makefile").read_text(encoding="utf-8"))
    (words,) = [words for words in recipes if "jupyterlab" in words]
    options = [word for word in words[1:] if word != "$(LAB_ARGS)"]
    return [sys.executable, *shlex.split(" ".join(options))]


def status(address, seconds=0.0):
    """The HTTP status that an address answers with; waits for a server to start."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    end = time.monotonic() + seconds
    while True:
        try:
            return opener.open(address, timeout=5).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def test_the_server_listens_here_alone_and_asks_for_its_token(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    names = ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "HOME")
    environment = {**os.environ, **dict.fromkeys(names, str(tmp_path))}
    environment.pop("JUPYTER_TOKEN", None)
    options = ["--no-browser", f"--ServerApp.port={port}", "--allow-root"]
    server = subprocess.Popen(
        [*lab_command(), *options],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        here = f"http://127.0.0.1:{port}/api/contents"
        assert status(here, seconds=60) == 403
        (file,) = tmp_path.glob("jpserver-*.json")
        token = json.loads(file.read_text(encoding="utf-8"))["token"]
        assert len(token) >= 32
        assert status(f"{here}?token={token}") == 200
        assert status(f"{here}?token={token[:-1]}") == 403
        if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine
            with pytest.raises(OSError):
                status(f"http://127.0.0.2:{port}/api/contents")
    finally:
        server.terminate()
        server.wait()
