"""Notebooks where nobody planned to run them: the same outputs, nothing else.

`make test-faults` runs each in a copy of the course under a name with spaces and
Chinese characters, by a command given in another folder, with no locale but C, another
hash seed, and the network refused.
"""

import os
import shutil
import subprocess
import sys

import nbformat
import pytest
from helpers.repo import NUMBERED, ROOT
from nbformat.v4 import new_code_cell

NO_NETWORK = '''
import sys
asked = []

def refuse(event, arguments):
    """An audit hook of Python's."""
    if event in ("socket.connect", "socket.bind", "socket.getaddrinfo"):
        # urllib3, which pooch and d2l import, tries if this machine has IPv6.
        if watching and sys._getframe(1).f_code.co_name != "_has_ipv6":
            asked.append((event, arguments[1:]))
            raise OSError("the network is refused: " + event)

watching = True
sys.addaudithook(refuse)
'''
END = "watching = False\nassert not asked, asked"


def tree(folder):
    """Every file's content but for caches that version control ignores."""
    caches = {"__pycache__", ".ipynb_checkpoints", ".pytest_cache"}
    files = [path for path in folder.rglob("*") if not caches & {*path.parts}]
    return {path: path.is_file() and path.read_bytes() for path in files}


@pytest.mark.skipif(
    "LEARNING_TO_ALIGN_FAULTS" not in os.environ, reason="make test-faults runs it"
)
@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_same_outputs_and_nothing_else(path, tmp_path, pytestconfig):
    course, home = tmp_path / "学习 对齐, a course", tmp_path / "home"
    caches = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.ipynb")
    for name in ("utils", "data", "notebooks"):
        shutil.copytree(ROOT / name, course / name, ignore=caches)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = [new_code_cell(NO_NETWORK), *notebook.cells, new_code_cell(END)]
    nbformat.write(notebook, course / "notebooks" / path.name)
    (course / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    home.mkdir()
    own = {name: str(home) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    own |= {"PYTHONPATH": str(course), "PYTHONHASHSEED": "random", "LC_ALL": "C"}
    # Without UTF-8, PyTorch itself can't be imported from a folder such as 学.
    if sys.prefix.isascii():
        own |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    own["TORCHINDUCTOR_CACHE_DIR"] = str(tmp_path)  # PyTorch makes it when imported
    before = tree(course)
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "--tb=short"]
    command += ["-p", "no:cacheprovider", "--nbval-cell-timeout=36000"]
    command += ["--nbval-sanitize-with", pytestconfig.option.nbval_sanitize_with]
    command += ["--rootdir", course, "-c", course / "pytest.ini"]
    done = subprocess.run(
        [*command, course / "notebooks" / path.name],
        cwd=home,
        env=os.environ | own,
        capture_output=True,
    )
    assert done.returncode == 0, (done.stdout + done.stderr).decode("utf-8", "replace")
    assert tree(course) == before
    assert [path for path in home.rglob("*") if path.is_file()] == []
