"""Write the learner's copy of the course: `make learner`.

It lies in build/learner, and once more as build/learner.zip. It is the course without
what a teacher keeps: the solutions, INSTRUCTOR.md with the quiz's answers, lectures,
tests and tools. In the notebooks, the outputs of exercises and of predictions' answers
are cleared. Links to what was left out become plain words.
"""

import re
import shutil
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote

import nbformat

ROOT = Path(__file__).resolve().parent.parent
KEPT = """README.md LICENSE CITATION.cff Makefile pyproject.toml requirements.txt
    requirements.lock .gitignore .gitattributes binder utils data notebooks/*.ipynb
    notebooks/img notebooks/GLOSSARY.md notebooks/FROM_D2L.md""".split()
CACHES = re.compile(r"__pycache__|\..+|.+\.egg-info")

CHECK = re.compile(r"\bexercises\.\w+\(")
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
SOLUTIONS = re.compile(r"\[solutions\]\([^)]*\)")
FOR_TEACHERS = {
    ".md": re.compile(r"<!-- teachers -->.*?<!-- everyone -->\n*", re.DOTALL),
    "": re.compile(r"^# teachers\b.*?^# everyone\n", re.DOTALL | re.MULTILINE),
    ".txt": re.compile(r"# Its tests\n.*?\n\n", re.DOTALL),
}
ANSWER = "<summary>Answer</summary>"


def files(root):
    """The paths, in the course's folder, of what a learner gets."""
    found = [path for pattern in KEPT for path in root.glob(pattern)]
    found += [inner for path in found if path.is_dir() for inner in path.rglob("*")]
    inside = (path.relative_to(root) for path in found if path.is_file())
    return sorted(
        path for path in inside if not any(map(CACHES.fullmatch, path.parts[:-1]))
    )


def hidden_outputs(notebook):
    """The cells whose output answers a prediction or an exercise."""
    exercises = False
    for cell in notebook.cells:
        exercises |= cell.source.startswith("## Exercises")
        folded = cell.metadata.get("jupyter", {}).get("outputs_hidden")
        if cell.cell_type == "code" and (
            exercises or folded or CHECK.search(cell.source)
        ):
            yield cell


def dead_links(text, folder):
    """(the link, its words) of each link to a file that isn't there."""
    for match in LINK.finditer(text):
        path = unquote(match[3].partition("#")[0])
        if path and ":" not in path and not (folder / path).exists():
            yield match[0], match[2]


def without_dead_links(text, folder):
    text = SOLUTIONS.sub("solutions that your teacher has", text)
    for link, words in dead_links(text, folder):
        text = text.replace(link, words)
    return text


def cleared(notebook, folder):
    """The notebook, changed, as a learner gets it; the folder is the copy's."""
    for cell in hidden_outputs(notebook):
        cell.outputs, cell.execution_count = [], None
        cell.metadata.get("jupyter", {}).pop("outputs_hidden", None)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = without_dead_links(cell.source, folder)
    return notebook


def changed(path, text, folder):
    """What stands in a text file of the copy."""
    if path.suffix == ".ipynb":
        notebook = nbformat.reads(text, as_version=4)
        return nbformat.writes(cleared(notebook, folder)) + "\n"
    if path.suffix in FOR_TEACHERS and len(path.parts) == 1:
        text = FOR_TEACHERS[path.suffix].sub("", text)
    return without_dead_links(text, folder) if path.suffix == ".md" else text


def problems(folder):
    """What a learner should not find in the copy, or would look for in vain."""
    for path in sorted(folder.rglob("*")):
        name, texts = path.relative_to(folder), []
        if re.search(r"solution|INSTRUCTOR|CLASSROOM|lectures|tests", path.name):
            yield f"{name} is the teacher's"
        if path.suffix == ".ipynb" and path.is_file():
            notebook = nbformat.read(path, as_version=4)
            texts = [c.source for c in notebook.cells if c.cell_type == "markdown"]
            for cell in hidden_outputs(notebook):
                if cell.outputs:
                    yield f"{name}: the cell {cell.id} shows its answer"
        elif path.suffix == ".md":
            texts = [path.read_text(encoding="utf-8")]
        for text in texts:
            if ANSWER in text:
                yield f"{name} has answers of the quiz"
            for link, _ in dead_links(text, path.parent):
                yield f"{name}: {link} leads nowhere"


def pack(folder, file):
    """The folder as a zip."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as pages:
        for path in sorted(folder.rglob("*")):
            pages.write(path, Path("learning-to-align", path.relative_to(folder)))


def build(folder, root=ROOT):
    """Write the copy into a folder, whose old content goes."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in files(root):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, folder / path)
    for path in files(folder):
        try:
            text = (folder / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # a model, a picture
        new = changed(path, text, (folder / path).parent)
        if new != text:
            (folder / path).write_text(new, encoding="utf-8", newline="\n")


def main():
    folder = ROOT / "build" / "learner"
    build(folder)
    if found := list(problems(folder)):
        print("\n".join(found))
        return 1
    pack(folder, folder.with_suffix(".zip"))
    size = folder.with_suffix(".zip").stat().st_size / 1e6
    print(f"build/learner, and build/learner.zip of {size:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
