"""Keep the cells that show code of utils/ equal to that code; know what is taught.

A mirrored cell's first line is `# mirror: utils.attention.AdditiveAttention`; the rest
is the source of that class or function, to the letter.

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

ROOT = Path(__file__).resolve().parent.parent
MARKER = "# mirror: "
ALMOST_MARKER = re.compile(r"^\s*#+\s*mirror\b.*", re.IGNORECASE | re.MULTILINE)

# The public classes and functions of these modules, but for guards of arguments, ...
WHOLE_MODULES = ("attention", "seq2seq", "variants", "translator", "transformer")
GUARDS = ("check_", "require_")
# ... without these, which only connect the parts, ...
PLUMBING = {
    "variants": "positions",
    "translator": "FixedTranslatorDecoder",
    "transformer": "head_size",
    "seq2seq": "Bridge",
}
# ... and with these of other modules.
TAUGHT = {
    "data": "BatchLoader",
    "training": "masked_cross_entropy batch_loss train_step",
    "by_hand": "tanh_ gru_step gru_slopes gru_step_backward "
    "attention_steps attend_backward attention_steps_backward",
    "decoding": "greedy_decode select_rows extend_beam beam_is_settled beam_search",
    "exact": "exact_search",
    "rnnsearch": "FirstState GatedUnit DeepOutput RNNsearchDecoder initialise",
    "tasks": "last_fact join_pairs",
    "alignment": "read_along attention_on_gold whole_sentences forward_share "
    "longest_gap linked_places words_right by_tenth",
    "metrics": "links_from_weights alignment_error_rate",
}


def full_names(table):
    return {
        f"utils.{module}.{name}" for module in table for name in table[module].split()
    }


def taught(objects):
    """The names of what is taught, by the tables above and what utils has."""
    found = full_names(TAUGHT) & set(objects)
    for full_name in set(objects) - full_names(PLUMBING):
        _, module, name = full_name.split(".")
        if module in WHOLE_MODULES and not name.startswith(GUARDS):
            found.add(full_name)
    return found


def notebook_paths(root=ROOT):
    """The course's notebooks, in reading order, then their solutions, then lectures."""
    folders = ("", "solutions/", "lectures/")
    return [
        path
        for folder in folders
        for path in sorted((root / "notebooks").glob(f"{folder}*.ipynb"))
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


def code_cells(root):
    """Yield (place, source) of each code cell; a place is "notebook, cell n"."""
    for path in notebook_paths(root):
        cells = nbformat.read(path, as_version=4).cells
        for number, cell in enumerate(cells, start=1):
            if cell.cell_type == "code":
                yield f"{path.name}, cell {number}", cell.source


def problems(root=ROOT):
    """Every breach of the mirror rule, one sentence each."""
    objects, found, shown = public_objects(root), [], {}
    for place, source in code_cells(root):
        name, rest = split_marker(source)
        shown.setdefault(name, []).append(place)
        if name is None:
            found += [f"{place} {text}" for text in unmarked(rest, taught(objects))]
        elif name not in objects:
            found.append(f"{place}: {name!r} is no public class or function of utils")
        elif rest != objects[name]:
            found.append(f"{place}: differs from {name}; `make mirror` writes it anew")
        if ALMOST_MARKER.search(rest):
            found.append(f"{place}: a marker is the first line, and `{MARKER}<name>`")
    shown.pop(None, None)
    for name, places in shown.items():
        if len(places) > 1:
            found.append(f"{name} is shown {len(places)} times: {'; '.join(places)}")
    found += [
        f"{name} is taught, but not shown" for name in taught(objects) - set(shown)
    ]
    return found


def unmarked(source, taught_names):
    """What is wrong with the definitions in a cell that has no marker."""
    try:
        names = definitions(as_python(source))
    except SyntaxError:
        return ["is not Python"]
    return [
        f"defines {full.rpartition('.')[2]} without the marker `{MARKER}{full}`; "
        "a toy version has another name"
        for full in taught_names
        if full.rpartition(".")[2] in names
    ]


def write(root=ROOT):
    """Write the source of utils into the marked cells; return the changed notebooks."""
    objects = public_objects(root)
    changed = []
    for path in notebook_paths(root):
        notebook = nbformat.read(path, as_version=4)
        before = nbformat.writes(notebook)
        for cell in notebook.cells:
            name, _ = split_marker(cell.source)
            if cell.cell_type == "code" and name in objects:
                cell.source = f"{MARKER}{name}\n{objects[name]}"
        after = nbformat.writes(notebook)
        if after != before:
            path.write_text(after + "\n", encoding="utf-8", newline="\n")
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
