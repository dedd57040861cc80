"""Write the learner's copy of the course: `make learner`.

It lies in build/learner, and once more as build/learner.zip. It is the course without
what a teacher keeps: the solutions, INSTRUCTOR.md with the quiz's answers, lectures,
tests and tools. The Chinese edition is written into its folder zh. In the notebooks,
the outputs of exercises and of predictions' answers are cleared. Links to what was left
out become plain words.
"""

import re
import shutil
from pathlib import Path
from urllib.parse import unquote

import nbformat
import zh

ROOT = Path(__file__).resolve().parent.parent
KEPT = """README.md README.zh-CN.md LICENSE CITATION.cff Makefile pyproject.toml
    requirements.txt requirements.lock .gitignore .gitattributes binder utils data
    notebooks/*.ipynb notebooks/img notebooks/GLOSSARY.md notebooks/FROM_D2L.md
    notebooks/WHEN_IT_DOESNT_LEARN.md""".split()
CACHES = shutil.ignore_patterns("__pycache__", ".*", "*.egg-info")

CHECK = re.compile(r"\bexercises\.\w+\(")
LINK = re.compile(r"!?\[([^\]]*)\]\(([^)\s]+)\)")
COURSE = re.compile(r'(?<=/learning-to-align)(?=")')  # the end of its address, in code
SOLUTIONS = {
    "solutions": "solutions that your teacher has",
    "参考答案": "老师手里的参考答案",
}
THEIRS = re.compile(r"<!-- teachers -->.*?<!-- everyone -->\n*", re.DOTALL)
FOR_TEACHERS = {
    "README.md": THEIRS,
    "README.zh-CN.md": THEIRS,
    "Makefile": re.compile(r"^# teachers\b.*?^# everyone\n", re.DOTALL | re.MULTILINE),
    "requirements.txt": re.compile(r"# Its tests\n.*?\n\n", re.DOTALL),
}


def without_dead_links(text, folder):
    """A text of this folder; a link to a file that isn't there becomes its words."""

    def mended(link):
        path = unquote(link[2].partition("#")[0])
        gone = path and ":" not in path and not (folder / path).exists()
        return SOLUTIONS.get(link[1], link[1]) if gone else link[0]

    return LINK.sub(mended, text)


def clear(path):
    """Make a notebook what a learner gets."""
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        folded = cell.metadata.get("jupyter", {}).pop("outputs_hidden", False)
        if cell.cell_type == "markdown":
            cell.source = without_dead_links(cell.source, path.parent)
            continue
        cell.source = COURSE.sub("-learner", cell.source)  # Colab fetches this copy
        if folded or CHECK.search(cell.source):
            cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)


def build(folder):
    """Write the copy into a folder, whose old content goes."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in [path for pattern in KEPT for path in ROOT.glob(pattern)]:
        target = folder / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            shutil.copytree(path, target, ignore=CACHES)
        else:
            shutil.copy(path, target)
    zh.build(folder / "zh", folder / "notebooks", without="solutions")
    for path in [*folder.rglob("*.md"), *map(folder.joinpath, FOR_TEACHERS)]:
        text = path.read_text(encoding="utf-8")
        if path.parent == folder:
            text = FOR_TEACHERS[path.name].sub("", text)
        if path.suffix == ".md":
            text = without_dead_links(text, path.parent)
        path.write_text(text, encoding="utf-8", newline="\n")
    for path in [*folder.glob("notebooks/*.ipynb"), *folder.glob("zh/*.ipynb")]:
        clear(path)


if __name__ == "__main__":
    folder = ROOT / "build" / "learner"
    build(folder)
    shutil.make_archive(str(folder), "zip", folder.parent, folder.name)
    print("build/learner, and build/learner.zip")
