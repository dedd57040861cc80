"""Write requirements.lock by requirements.txt: `make lock`, which brings uv.

The lock names every package of the environment with its hashes, for Python 3.10 to 3.13
on every system. torch is left out, because its builds differ by machine; what it needs
besides is in. Versions that are locked already are kept where they fit; with --upgrade,
the newest are taken.
"""

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements.lock"
CUDA = re.compile(r"nvidia|cuda|cu\d|triton")  # torch's builds for graphics cards
BUILDING = "setuptools>=77"  # what pyproject.toml builds utils with
HEADER = """\
# The whole environment but torch, with hashes, written by `make lock`. To install it:
#     python -m pip install --require-hashes -r requirements.lock
#     python -m pip install {torch}
#     python -m pip install --no-deps --no-build-isolation -e .
"""
UV = """uv pip compile - --universal --python-version 3.10 --generate-hashes --quiet
    --no-header --no-annotate -o requirements.lock"""


def main():
    text = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    direct = re.findall(r"^[\w.-]+==[\w.]+", text, re.MULTILINE)
    (torch,) = [line for line in direct if line.startswith("torch==")]
    direct.remove(torch)
    plain = [line for line in requires("torch") if "extra ==" not in line]
    direct += [line for line in plain if not CUDA.match(line)]
    command, packages = [*UV.split(), *sys.argv[1:]], "\n".join([*direct, BUILDING])
    subprocess.run(command, input=packages, cwd=ROOT, text=True, check=True)
    body = LOCK.read_text(encoding="utf-8")
    LOCK.write_text(HEADER.format(torch=torch) + body, encoding="utf-8")


if __name__ == "__main__":
    main()
