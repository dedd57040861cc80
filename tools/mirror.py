"""Keep the cells that show code of utils/ equal to that code; know what is taught.

A mirrored cell's first line is `# mirror: utils.attention.AdditiveAttention`; the rest
is the source of that class or function, to the letter. In a solution the first line is
`# solution: masked_softmax`; the rest is the solution that this exercise is made from,
and the check called with it.

    python tools/mirror.py            say which cells differ from utils/
    python tools/mirror.py --write    write utils/ into the marked cells: `make mirror`
"""

import ast
import re
import sys
from functools import cache
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

from utils import exercises

ROOT = Path(__file__).resolve().parent.parent
MARKER = "# mirror: "

# A notebook shows every public class and function of these modules, but for guards of
# arguments and what only connects the parts.
TAUGHT = ("attention", "seq2seq", "variants", "translator", "transformer")
NOT_SHOWN = re.compile(r"(check|require)_\w+|FixedTranslatorDecoder|head_size")
# Plain words, with which a cell may name a function of its own.
PLAIN = "draw loss stored table words".split()


def notebook_paths(root=ROOT):
    """The course's notebooks, in reading order, then their solutions, then lectures."""
    patterns = ("*.ipynb", "solutions/*.ipynb", "lectures/*.ipynb")
    return [
        path for each in patterns for path in sorted((root / "notebooks").glob(each))
    ]


def public_objects(root=ROOT):
    """Map each `utils.module.name` of a public class or function to its source.

    The exercises, which are a package inside utils, are not among them.
    """
    return {
        f"utils.{path.stem}.{name}": source
        for path in sorted((root / "utils").glob("*.py"))
        for name, source in definitions(path.read_text(encoding="utf-8")).items()
        if not name.startswith("_")
    }


def definitions(text):
    """Map each top-level class or function to its source, decorators included."""
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            first = min(part.lineno for part in [node, *node.decorator_list])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


@cache
def as_python(source):
    """A cell's source with its magics and shell lines turned into Python."""
    return TransformerManager().transform_cell(source)


def marked(cell):
    """The marker in a cell's first line; None without one."""
    first = cell.source.partition("\n")[0]
    return first if first.startswith((MARKER, "# solution: ")) else None


def written_cells(root=ROOT):
    """Map each marker to the source of the cell that has it."""
    cells = {f"{MARKER}{name}": text for name, text in public_objects(root).items()}
    for name in exercises.__all__:
        if text := getattr(getattr(exercises, name), "solution", None):
            call = f"exercises.{name}({list(definitions(text))[-1]})"
            cells[f"# solution: {name}"] = f"{text}\n\n\n{call}"
    return {marker: f"{marker}\n{text}" for marker, text in cells.items()}


def problems(root=ROOT):
    """Every breach of the mirror rule, one sentence each."""
    objects, found, shown = public_objects(root), [], []
    written = written_cells(root)
    public = {full.rpartition(".")[2] for full in objects} - set(PLAIN)
    for path in notebook_paths(root):
        cells = nbformat.read(path, as_version=4).cells
        for number, cell in enumerate(cells, start=1):
            marker, place = marked(cell), f"{path.name}, cell {number}:"
            if marker is not None:
                shown.append(marker.removeprefix(MARKER))
                if marker not in written:
                    found.append(f"{place} there is nothing for {marker!r} in utils")
                elif cell.source != written[marker]:
                    found.append(f"{place} differs from utils; run `make mirror`")
            elif cell.cell_type == "code":
                unmarked = definitions(as_python(cell.source)).keys() & public
                found += [
                    f"{place} {own} of utils needs the marker `{MARKER}utils.…` in the "
                    "first line, a toy version another name"
                    for own in sorted(unmarked)
                ]
    for full in objects:
        _, module, name = full.split(".")
        taught = module in TAUGHT and not NOT_SHOWN.fullmatch(name)
        if shown.count(full) > 1 or taught and full not in shown:
            found.append(f"{full} is shown {shown.count(full)} times")
    return found


def write(root=ROOT):
    """Write the source of utils into the marked cells; return the changed notebooks."""
    written, changed = written_cells(root), []
    for path in notebook_paths(root):
        notebook, same = nbformat.read(path, as_version=4), True
        for cell in notebook.cells:
            old, cell.source = cell.source, written.get(marked(cell), cell.source)
            same = same and old == cell.source
        if not same:
            nbformat.write(notebook, path)
            changed.append(path)
    return changed


def main():
    if sys.argv[1:] == ["--write"]:
        for path in write():
            print(f"wrote {path.relative_to(ROOT)}")
    found = problems()
    print("\n".join(found) or "The mirrored cells equal utils/.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
