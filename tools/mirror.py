"""Keep the cells that show code of utils/ equal to that code.

A mirrored cell's first line is `# mirror: utils.attention.AdditiveAttention`; the rest
is the source of that class or function, to the letter.

    python tests/mirror.py --check    say which cells differ from utils/
    python tests/mirror.py --write    write utils/ into the marked cells
"""

import argparse
import ast
import os
import re
import sys
import tempfile
from functools import cache
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parent.parent
MARKER = "# mirror: "
ALMOST_MARKER = re.compile(r"^\s*#+\s*mirror\b.*", re.IGNORECASE | re.MULTILINE)


def notebook_paths(root=ROOT):
    """The course's notebooks, in reading order, then their solutions."""
    folder = root / "notebooks"
    return sorted(folder.glob("*.ipynb")) + sorted(folder.glob("solutions/*.ipynb"))


def public_objects(root=ROOT):
    """Map each `utils.module.name` of a public class or function to its source."""
    objects = {}
    for path in sorted((root / "utils").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for name, source in definitions(text).items():
            if not name.startswith("_"):
                objects[f"utils.{path.stem}.{name}"] = source
    return objects


def definitions(text):
    """Map each top-level class or function to its source, decorators included."""
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = min(part.lineno for part in [node, *node.decorator_list])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


@cache
def as_python(source):
    """A cell's source with its magics and shell lines turned into Python."""
    return TransformerManager().transform_cell(source)


def split_marker(source):
    """Return (marked name or None, the rest) of a code cell."""
    first, _, rest = source.partition("\n")
    if first.startswith(MARKER):
        return first.removeprefix(MARKER), rest
    return None, source


def code_cells(paths):
    """Yield (notebook's name, number of the cell from 1, cell) for each code cell."""
    for path in paths:
        cells = nbformat.read(path, as_version=4).cells
        for number, cell in enumerate(cells, start=1):
            if cell.cell_type == "code":
                yield path.name, number, cell


def mirrored(paths):
    """Map each marked name to the places ("notebook, cell n") that show it."""
    places = {}
    for notebook, number, cell in code_cells(paths):
        name, _ = split_marker(cell.source)
        if name:
            places.setdefault(name, []).append(f"{notebook}, cell {number}")
    return places


def problems(root=ROOT, paths=None):
    """Every breach of the mirror rule, one sentence each."""
    paths = notebook_paths(root) if paths is None else paths
    objects = public_objects(root)
    full_names = {name.rpartition(".")[2]: name for name in objects}
    found = []
    for notebook, number, cell in code_cells(paths):
        place = f"{notebook}, cell {number}"
        name, rest = split_marker(cell.source)
        if name is None:
            found += [f"{place} {text}" for text in unmarked(rest, full_names)]
        elif name not in objects:
            found.append(f"{place}: {name!r} is no public class or function of utils")
        elif rest != objects[name]:
            found.append(f"{place}: differs from {name}; `make mirror` writes it anew")
        if ALMOST_MARKER.search(rest):
            found.append(f"{place}: a marker is the first line, and `{MARKER}<name>`")
    for name, places in mirrored(paths).items():
        if len(places) > 1:
            found.append(f"{name} is shown {len(places)} times: {'; '.join(places)}")
    return found


def unmarked(source, full_names):
    """What is wrong with the definitions in a cell that has no marker."""
    try:
        names = definitions(as_python(source))
    except SyntaxError:
        return ["is not Python"]
    return [
        f"defines {name} without the marker `{MARKER}{full_names[name]}`; "
        "a toy version has another name"
        for name in names
        if name in full_names
    ]


def write(root=ROOT, paths=None):
    """Write the source of utils into the marked cells; return the changed notebooks."""
    objects = public_objects(root)
    changed = []
    for path in notebook_paths(root) if paths is None else paths:
        notebook = nbformat.read(path, as_version=4)
        touched = False
        for cell in notebook.cells:
            name, rest = split_marker(cell.source)
            if cell.cell_type == "code" and name in objects and rest != objects[name]:
                cell.source = f"{MARKER}{name}\n{objects[name]}"
                touched = True
        if touched:
            replace_file(path, nbformat.writes(notebook) + "\n")
            changed.append(path)
    return changed


def replace_file(path, text):
    """Write the file whole or not at all."""
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    with open(handle, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)
    os.chmod(part, path.stat().st_mode)
    os.replace(part, path)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="report, change nothing")
    action.add_argument("--write", action="store_true", help="write the marked cells")
    if parser.parse_args(arguments).write:
        for path in write():
            print(f"wrote {path.relative_to(ROOT)}")
    found = problems()
    print("\n".join(found) or "The mirrored cells equal utils/.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
