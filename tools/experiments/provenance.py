"""What a stored result was made from: the corpora it read, code, versions, processor.

Corpora are read through `read`, files of data through `data_file`: so a run's names are
known, and `checksum` says whether what it has read is what is here today.
"""

import csv
import gzip
import hashlib
import platform
import re
import subprocess
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path

from utils import tasks
from utils.corpora import (
    MULTI30K_SHA256,
    MULTI30K_SPLITS,
    VILLAGE_FOLDER,
    VILLAGE_SPLITS,
    load_multi30k,
    load_tsv,
    load_village,
)
from utils.files import find_file
from utils.gold import write_links

DATA = Path(__file__).resolve().parents[2] / "data"
TATOEBA = "tatoeba/cmn.txt"
TASKS = "stories", "headlines", "dates"
PACKAGES = "torch", "numpy", "sacrebleu", "sentencepiece"
READ = set()  # names of what the present run has read


def read(name):
    """A corpus by its name, as "Village en-fr", "Multi30k de-en", "Tatoeba zh-en"."""
    READ.add(name)
    return load(name)


def data_file(name):
    """The path of a file of data, as "models/village-en-fr.safetensors"."""
    READ.add(name)
    return DATA / name


@cache
def load(name):
    """The corpus of a name, or that of one of TASKS."""
    if name in TASKS:
        return getattr(tasks, name)()
    kind, direction = name.split()
    if kind == "Village":
        return load_village(*direction.split("-"))
    if kind == "Multi30k":
        return load_multi30k(*direction.split("-"))
    more = {"columns": ("en", "zh"), "skip_bad_lines": True}
    return load_tsv(TATOEBA, *direction.split("-"), **more)


@cache
def checksum(name):
    """The first 16 digits of the SHA-256 of what has this name today, or None."""
    digest = hashlib.sha256()
    try:
        for part in parts(name):
            digest.update(part.encode() if isinstance(part, str) else part)
    except FileNotFoundError:
        return None
    return digest.hexdigest()[:16]


def parts(name):
    """What a corpus or a file has in it.

    Of the Village two languages and their links, the same for either direction: so a
    result stays valid when the third language changes. Of Multi30k the checksums
    without which it isn't read.
    """
    kind, *direction = name.split()
    languages = sorted(direction[0].split("-")) if direction else []
    if kind == "Village":
        columns = [*languages, "-".join(languages)]
        for split in VILLAGE_SPLITS:
            with gzip.open(
                VILLAGE_FOLDER / f"{split}.tsv.gz", "rt", -1, "utf-8"
            ) as file:
                names, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            places = [names.index(column) for column in columns]
            yield from ("\t".join(row[k] for k in places) + "\n" for row in rows)
    elif kind == "Multi30k":
        for stem in MULTI30K_SPLITS.values():
            yield from (MULTI30K_SHA256[f"{stem}.{lang}.gz"] for lang in languages)
    elif kind in TASKS:
        for pairs in load(name).splits.values():
            for pair in pairs:
                links = write_links(pair.alignment, pair.possible)
                yield f"{' '.join(pair.source)}\t{' '.join(pair.target)}\t{links}\n"
    else:
        path = find_file(TATOEBA) if kind == "Tatoeba" else DATA / name
        yield path.read_bytes()


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


def git(*arguments):
    command = ["git", "-C", str(DATA), *arguments]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def processor():
    """The processor's name, where the system says it, and kind: "AMD EPYC, x86_64"."""
    path = Path("/proc/cpuinfo")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    names = re.findall(r"model name\s*: (.*)", text)
    return ", ".join([*names[:1], platform.machine()])
