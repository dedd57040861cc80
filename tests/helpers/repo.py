"""What tests of the repository itself share: its files, their text and links."""

import json
import os
import re
import subprocess
from urllib.parse import unquote

import mirror

ROOT = mirror.ROOT
NUMBERED = sorted((ROOT / "notebooks").glob("*.ipynb"))
NOTEBOOKS = mirror.notebook_paths()
LECTURES = sorted((ROOT / "notebooks" / "lectures").glob("*.ipynb"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def number(path):
    """The number of a notebook, or of its solutions."""
    return path.name.partition("_")[0]


def said_and_printed(path):
    """All that a notebook says and prints, as one text."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = [part for cell in cells for part in [cell, *cell.get("outputs", [])]]
    parts = [p.get("source") or p.get("text") or p.get("data", {}) for p in parts]
    parts = [p.get("text/plain", []) if isinstance(p, dict) else p for p in parts]
    return "\n".join("".join(part) for part in parts)


def repository_files():
    """The files that git has or would take; without git, all but caches."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
        names = subprocess.check_output(command, cwd=ROOT).split(b"\0")[:-1]
        found = [ROOT / os.fsdecode(name) for name in names]
    else:
        caches = re.compile(
            r"\.venv|build|__pycache__|\..*cache|.*\.egg-info|\.hypothesis"
        )
        found = [
            path
            for path in ROOT.rglob("*")
            if not any(map(caches.fullmatch, path.relative_to(ROOT).parts))
        ]
    return [path for path in found if path.is_file()]


CODE = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|(?:src|href)=[\"']([^\"']+)")


def links(text):
    """The targets of the links and pictures of a Markdown text, code left out."""
    return [a or b for a, b in LINK.findall(CODE.sub("", text))]


def dead_links(text, folder):
    """The links to files that are not there. Links to other sites are not followed."""
    paths = [unquote(re.split("[#?]", link)[0]) for link in links(text)]
    local = [path for path in paths if path and ":" not in path]
    return [path for path in local if not (folder / path).exists()]
