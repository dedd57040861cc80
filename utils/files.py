"""Files of text: found, read, checked, downloaded. A fault is said with its line."""

import codecs
import gzip
import os
import zlib
from pathlib import Path

import pooch

DATA_VARIABLE = "LEARNING_TO_ALIGN_DATA"
LARGEST_FILE = 2**28  # bytes, unpacked: 256 MB, some three million pairs
LONGEST_LINE = 10_000  # characters
CACHE = Path(pooch.os_cache("learning-to-align"))  # downloaded files
UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def data_folder() -> Path | None:
    """The folder of the user's own data files, named by an environment variable."""
    name = os.environ.get(DATA_VARIABLE)
    folder = Path(name).expanduser() if name else None
    if folder and not folder.is_dir():
        raise FileNotFoundError(
            f"the environment variable {DATA_VARIABLE} names {name}, "
            "which is no folder: name one that exists, or unset the variable"
        )
    return folder


def find_file(path) -> Path:
    """A file, by its path or by its path inside the data folder.

    Raises FileNotFoundError naming the places that were looked at.
    """
    path = Path(path).expanduser()
    folder = data_folder()
    places = [path] if folder is None else [path, folder / path]
    for place in places:
        if place.is_file():
            return place
    raise FileNotFoundError(
        f"there is no file {' nor '.join(map(str, places))}: give the path of a file, "
        f"or one relative to the folder that {DATA_VARIABLE} names"
    )


def in_words(error) -> str:
    """An error's message; of one of the system's, its file and the reason."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def model_file(path) -> Path:
    """A model's file, whose ending .safetensors may be left out."""
    whole = Path(f"{path}.safetensors")
    return whole if whole.is_file() else Path(path)


def read_lines(path: Path, bad=None, sha256=None, advice="") -> list[str]:
    """The lines of a UTF-8 file, gzipped if path ends in .gz, without line ends.

    A byte-order mark, line ends of Windows and of old Macs (\\r alone) and empty lines
    at the end are accepted. Raises ValueError for UTF-16, an empty, damaged or too
    large file and, naming the line, for another encoding or an endless line. With bad,
    a dict, such a line is "" and what is wrong with it goes there, by its number.
    sha256: ValueError, with this advice, if the file has another checksum.
    """
    if sha256 and (found := pooch.file_hash(path)) != sha256:
        raise ValueError(
            f"{path} has the SHA-256 checksum {found}, expected {sha256}. {advice}"
        )
    try:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a complete gzip file: {error}") from error
    if len(data) > LARGEST_FILE:
        raise ValueError(
            f"{path} holds more than {LARGEST_FILE // 2**20} MB of text, which is "
            "the most that is read: take its first lines as a file of their own"
        )
    if data.startswith((*UTF16_MARKS, b"PK\3\4")) or b"\0" in data[:1000]:
        raise ValueError(
            f"{path} is UTF-16, a zip, a workbook, or no text at all: it begins with "
            f"{data[:2].hex(' ').upper()}. Save it as text, with the encoding UTF-8"
        )
    lines, end = [], b"\n" if b"\n" in data else b"\r"
    for number, raw in enumerate(data.split(end), 1):
        try:
            lines.append(decode_line(raw, number))
        except ValueError as error:
            if bad is None:
                raise ValueError(f"{path}, line {number}: {error}") from error
            bad[number] = str(error)
            lines.append("")
    while lines and not lines[-1].strip() and len(lines) not in (bad or {}):
        lines.pop()
    if not lines:
        raise ValueError(f"{path} is empty: expected one sentence a line")
    return lines


def decode_line(raw: bytes, number: int) -> str:
    """A line without its end; ValueError, in words, if no sentence can be read."""
    raw = raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"not UTF-8 (byte 0x{raw[error.start]:02x}); save the file with the "
            "encoding UTF-8"
        ) from error
    line = line.removesuffix("\n").removesuffix("\r")
    if len(line) > LONGEST_LINE:
        raise ValueError(
            f"more than {LONGEST_LINE:,} characters; no sentence has as many"
        )
    return line


def read_sums(path: Path) -> dict[str, str]:
    """{name: SHA-256} from a list as sha256sum writes it; {} if there is none."""
    if not path.is_file():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    return {name.lstrip("*"): digest for digest, name in map(str.split, lines)}


def download(url: str, sha256: str, path: Path) -> Path:
    """Download url to path, unless a good copy is there.

    Raises ConnectionError if that fails, or if what came has another checksum. Neither
    leaves a half-written file; a bad copy stays until a good one replaces it.
    """
    try:
        pooch.retrieve(url, sha256, path.name, path.parent, progressbar=True)
    except (OSError, ValueError) as error:  # ValueError: another checksum
        folder = path.parent.name
        raise ConnectionError(
            f"could not download {url} ({error}). Nothing of it was kept. Without a "
            f"network, or where a login page answers: put {path.name} into a folder "
            f"named {folder}, and set the environment variable {DATA_VARIABLE} to the "
            f"folder that holds {folder}"
        ) from error
    return path
