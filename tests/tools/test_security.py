"""What is read is data, never code; what is started listens to this machine alone.

ruff's rules (S and TID251 in pyproject.toml) find what would run text. Here is a file
that takes care to look right; the tests in tests/utils have many that don't.
"""

import json
import os
import shutil
import subprocess
import sys

import pytest
import torch
from helpers.repo import ROOT, answer, lab_arguments, server
from safetensors import safe_open
from safetensors.torch import save_file

SHIPPED = ROOT / "data" / "models" / "village-en-fr.safetensors"
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


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("make"), reason="needs make")
def test_the_server_listens_here_alone_and_asks_for_its_token(tmp_path):
    with server(tmp_path, lab_arguments()) as address:
        here = f"{address}/api/contents"
        assert answer(here) == (403, None)
        (file,) = tmp_path.glob("jpserver-*.json")
        token = json.loads(file.read_text(encoding="utf-8"))["token"]
        assert len(token) >= 32
        assert answer(f"{here}?token={token}") == (200, None)
        assert answer(f"{here}?token={token[:-1]}") == (403, None)
        if sys.platform == "linux":  # where all of 127.0.0.0/8 is this machine
            with pytest.raises(OSError):
                answer(here.replace("127.0.0.1", "127.0.0.2"))
