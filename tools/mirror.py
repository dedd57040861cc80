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
MARKER, SOLUTION = "# mirror: ", "# solution: "

# A notebook shows every public class and function of these modules, but for guards of
# arguments and what only connects the parts.
TAUGHT = ("attention", "seq2seq", "variants", "translator", "transformer")
NOT_SHOWN = re.compile(r"(check|require)_\w+|FixedTranslatorDecoder|head_size")
# Plain words, with which a cell may name a function of its own.
PLAIN = "draw loss stored table words".split()


def notebook_paths(root=ROOT):
    """The course's notebooks, in reading order, then their solutions, then lectures."""
    folders = [root / "notebooks" / name for name in ("", "solutions", "lectures")]
    return [path for folder in folders for path in sorted(folder.glob("*.ipynb"))]


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


def written_cells(root):
    """{marker: text}: each public class and function of utils, and each solution."""
    cells = {}
    for path in sorted((root / "utils").glob("*.py")):  # without the exercises
        for name, source in definitions(path.read_text(encoding="utf-8")).items():
            if not name.startswith("_"):
                cells[f"{MARKER}utils.{path.stem}.{name}"] = source
    for name in exercises.__all__:
        if text := getattr(getattr(exercises, name), "solution", None):
            call = f"exercises.{name}({list(definitions(text))[-1]})"
            cells[SOLUTION + name] = f"{text}\n\n\n{call}"
    return {marker: f"{marker}\n{text}" for marker, text in cells.items()}


def problems(root=ROOT, write=False):
    """Every breach of the mirror rule, one sentence each.

    write: first the marked cells get what stands in utils.
    """
    written, found, shown = written_cells(root), [], []
    public = {name.rpartition(".")[2] for name in written if name.startswith(MARKER)}
    public -= {*PLAIN}
    for path in notebook_paths(root):
        notebook, changed = nbformat.read(path, as_version=4), False
        for number, cell in enumerate(notebook.cells, start=1):
            marker = cell.source.partition("\n")[0]
            place = f"{path.name}, cell {number}:"
            shown.append(marker)
            wanted = written.get(marker, cell.source)
            if write and wanted != cell.source:
                cell.source, changed = wanted, True
            if wanted != cell.source:
                found.append(f"{place} differs from utils; run `make mirror`")
            elif marker.startswith((MARKER, SOLUTION)):
                if marker not in written:
                    found.append(f"{place} there is nothing for {marker!r} in utils")
            elif cell.cell_type == "code":
                unmarked = definitions(as_python(cell.source)).keys() & public
                found += [
                    f"{place} {own} of utils needs the marker `{MARKER}utils.…` in the "
                    "first line, a toy version another name"
                    for own in sorted(unmarked)
                ]
        if changed:
            nbformat.write(notebook, path)
            print(f"wrote {path.relative_to(root)}")
    for marker in written:
        module, name = marker.split(".")[1:] if marker.startswith(MARKER) else ("", "")
        taught = module in TAUGHT and not NOT_SHOWN.fullmatch(name)
        if (count := shown.count(marker)) > 1 or taught and not count:
            found.append(f"{marker.split()[-1]} is shown {count} times")
    return found


def main():
    found = problems(write=sys.argv[1:] == ["--write"])
    print("\n".join(found) or "The mirrored cells equal utils/.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
