"""What tests of the repository itself share: its files, a browser, a running server."""

import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.parse import unquote

import mirror

ROOT = mirror.ROOT
NUMBERED = sorted((ROOT / "notebooks").glob("*.ipynb"))
NOTEBOOKS = mirror.notebook_paths()
LECTURES = sorted((ROOT / "notebooks" / "lectures").glob("*.ipynb"))
PATIENCE = 3600  # seconds: a wait that is in vain ends, but on no slow machine


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def said_and_printed(path):
    """All that a notebook says and prints, as one text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in [cell, *cell.get("outputs", [])]]
    parts = [p.get("source") or p.get("text") or p.get("data", {}) for p in parts]
    parts = [p.get("text/plain", []) if isinstance(p, dict) else p for p in parts]
    return "\n".join("".join(part) for part in parts)


def script(path):
    """The program in a file, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def repository_files():
    """The files that git has or would take; without git, all but caches."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    caches = re.compile(r"\.venv|build|__pycache__|\..*cache|.*\.egg-info|\.hypothesis")
    return [
        path
        for path in ROOT.rglob("*")
        if path.is_file()
        and not any(map(caches.fullmatch, path.relative_to(ROOT).parts))
    ]


CODE = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|(?:src|href)=[\"']([^\"']+)")
REMOTE = re.compile(r"[a-z]+:", re.IGNORECASE)


def links(text):
    """The targets of the links and pictures of a Markdown text, code left out."""
    return [a or b for a, b in LINK.findall(CODE.sub("", text))]


def dead_links(text, folder):
    """The links to files that are not there. Links to other sites are not followed."""
    local = [link for link in links(text) if not REMOTE.match(link)]
    paths = [unquote(link.partition("#")[0].partition("?")[0]) for link in local]
    return [path for path in paths if path and not (folder / path).exists()]


def until(condition, alive=lambda: True):
    """What the condition returns, once that is true; `alive` says if waiting helps."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert alive(), "what was waited for has ended"
        assert time.monotonic() < end, f"waited {PATIENCE} seconds in vain"
        time.sleep(0.05)
    return found


@contextmanager
def server(folder, arguments):
    """Run `python -m arguments --ServerApp.port=...` in this folder -> address, token.

    Its settings and its log are kept there, apart from the user's.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--no-browser", f"--ServerApp.port={port}"]
    if hasattr(os, "geteuid") and os.geteuid() == 0:  # Jupyter asks for it
        options.append("--allow-root")
    own = {f"JUPYTER_{name}_DIR": str(folder / name) for name in ("CONFIG", "DATA")}
    own |= {"JUPYTER_RUNTIME_DIR": str(folder), "HOME": str(folder)}
    environment = {k: v for k, v in os.environ.items() if k != "JUPYTER_TOKEN"} | own

    def told():
        """What the server writes of itself when it answers."""
        texts = [p.read_text("utf-8") for p in folder.glob("jpserver-*.json")]
        return texts[0] if any(texts) else None

    with open(folder / "server.log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", *arguments, *options],
            cwd=folder,
            env=environment,
            stdout=log,
            stderr=log,
        )
    try:
        said = until(told, alive=lambda: process.poll() is None)
        yield f"http://127.0.0.1:{port}", json.loads(said)["token"]
    finally:
        process.terminate()
        process.wait()


def lab_arguments():
    """What `make lab` gives to Python: make says it, without running it."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    told = subprocess.run(
        ["make", "-C", ROOT, "-n", "lab"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    line = told.stdout.replace("\\\n", " ").rpartition(" -m jupyterlab ")[2]
    return ["jupyterlab", *line.partition("\n")[0].split()]
