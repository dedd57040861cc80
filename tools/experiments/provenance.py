"""What a stored result was made from: the corpora it read, code, versions, processor.

Corpora and files of data are read through `read`: so a run's names are known, and
`checksum` says whether what it has read is what is here today.
"""

import hashlib
import platform
import re
import subprocess
from datetime import date
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path

from utils import tasks
from utils.corpora import MULTI30K_SHA256, load_multi30k, load_tsv, load_village
from utils.gold import write_links

DATA = Path(__file__).resolve().parents[2] / "data"
PACKAGES = "torch", "numpy", "sacrebleu", "sentencepiece"
READ = set()  # names of what the present run has read


def read(name):
    """A corpus by its name, as "Tatoeba zh-en"; the path of a file, as "gold/a.tsv"."""
    READ.add(name)
    return DATA / name if "/" in name else load(name)


@cache
def load(name):
    kind, *languages = re.split("[ -]", name)
    if kind == "Village":
        return load_village(*languages)
    if kind == "Multi30k":
        return load_multi30k(*languages)
    if kind == "Tatoeba":
        columns = (1, 2) if languages[0] == "en" else (2, 1)
        return load_tsv("tatoeba/cmn.txt", *languages, columns, skip_bad_lines=True)
    return getattr(tasks, name)()


@cache
def checksum(name):
    """The first 16 digits of the SHA-256 of what has this name; None if it isn't here.

    Of a corpus, its pairs and their links: so what was measured with two languages of
    the Village stays valid when the third changes. Of Multi30k, the checksums without
    which it isn't read.
    """
    try:
        if "/" in name:
            content = (DATA / name).read_bytes()
        elif name.startswith("Multi30k"):
            content = "".join(MULTI30K_SHA256.values()).encode()
        else:
            content = b"".join(map(line, chain(*load(name).splits.values())))
    except FileNotFoundError:
        return None
    return hashlib.sha256(content).hexdigest()[:16]


def line(pair):
    links = write_links(pair.alignment or (), pair.possible)
    return f"{' '.join(pair.source)}\t{' '.join(pair.target)}\t{links}\n".encode()


def is_valid(provenance):
    """Whether what was read then is what is here now, as far as it is here."""
    read = provenance["read"].items()
    return all(checksum(name) in (then, None) for name, then in read)


def provenance():
    """When, by which code and packages, where, and from what a result was made.

    commit: with a plus sign where code that isn't committed was used.
    """
    changed = git("status", "--porcelain", "village", "../tools", "../utils")
    return {
        "date": date.today().isoformat(),
        "commit": git("rev-parse", "--short=10", "HEAD") + "+" * bool(changed),
        "python": platform.python_version(),
        **{package: version(package) for package in PACKAGES},
        "processor": processor(),
        "read": {name: checksum(name) for name in sorted(READ)},
    }


def processor():
    """Its name, where the system tells it, and its kind."""
    cpu = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.*)", cpu.read_text() if cpu.exists() else "")
    return ", ".join([*names[:1], platform.machine()])


@cache  # what is committed after the first call isn't what runs
def git(*arguments):
    command = ["git", "-C", str(DATA), *arguments]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()
