"""The shape of the repository: imports of utils, the mirror rule, links, paths.

Each rule is a function that returns what is wrong, and is tested on a case that it must
reject beside the repository itself.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import mirror
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

ROOT = mirror.ROOT
UTILS = sorted((ROOT / "utils").glob("*.py"))
NOTEBOOKS = mirror.notebook_paths()

# Which modules of utils each module may import. Arrows point down.
MAY_IMPORT = {
    "text": set(),
    "data": {"text"},
    "attention": set(),
    "seq2seq": {"attention"},
    "variants": {"attention", "seq2seq"},
    "subwords": {"text", "data"},
    "translator": {"seq2seq"},
    "fast": {"text", "attention", "seq2seq", "translator"},
    "training": {"text", "data", "seq2seq", "fast", "subwords", "translator"},
    "decoding": {"text", "data", "seq2seq", "subwords"},
    "rnnsearch": {"attention", "seq2seq"},
    "transformer": {"attention", "seq2seq"},
    "tasks": {"data"},
    "metrics": set(),
    "lengths": {"data"},
    "train": {
        "text",
        "data",
        "subwords",
        "translator",
        "fast",
        "training",
        "decoding",
        "metrics",
    },
    "plotting": set(),
    "explorer": {"text", "data", "plotting"},
    "d2l_bridge": set(),
}

# What the course teaches: each of these is shown in exactly one notebook.
# All public classes and functions of these modules, but for the plumbing and for the
# checks of arguments (`check_...`), ...
TAUGHT_MODULES = ("attention", "seq2seq", "variants", "lengths", "transformer")
PLUMBING = {
    "utils.seq2seq.build_model",
    "utils.variants.decoder_sizes",
    "utils.variants.fed_size",
    "utils.variants.resized_gru",
    "utils.transformer.build_transformer",
    "utils.transformer.head_size",
}
# ... and these.
TAUGHT = {
    "utils.text.Vocab",
    "utils.data.Batch",
    "utils.data.BatchLoader",
    "utils.training.masked_cross_entropy",
    "utils.training.train_step",
    "utils.training.running_mean",
    "utils.variants.DropoutEmbedding",
    "utils.variants.add_remedies",
    "utils.variants.Readout",
    "utils.variants.TranslatorDecoder",
    "utils.by_hand.gru_step",
    "utils.by_hand.gru_slopes",
    "utils.by_hand.gru_step_backward",
    "utils.by_hand.attention_steps",
    "utils.by_hand.attend_backward",
    "utils.by_hand.attention_steps_backward",
    "utils.decoding.greedy_decode",
    "utils.decoding.select_rows",
    "utils.decoding.extend_beam",
    "utils.decoding.beam_is_settled",
    "utils.decoding.beam_search",
    "utils.rnnsearch.FirstState",
    "utils.rnnsearch.GatedUnit",
    "utils.rnnsearch.DeepOutput",
    "utils.rnnsearch.RNNsearchDecoder",
    "utils.rnnsearch.initialise",
    "utils.tasks.last_fact",
    "utils.tasks.attention_on_gold",
    "utils.tasks.whole_sentences",
    "utils.tasks.forward_share",
    "utils.metrics.links_from_weights",
    "utils.metrics.alignment_error_rate",
}

# Calls that a constant of a module may be made with: they change nothing outside.
PURE_CALLS = {
    "dict",
    "dict.fromkeys",
    "float",
    "frozenset",
    "map",
    "range",
    "re.compile",
    "set",
    "sorted",
    "tuple",
    "zip",
    "Path",
    "Path(__file__).resolve",
}


# --- utils --------------------------------------------------------------------


def imported_modules(source):
    """The modules of utils that a module's source imports, at any depth of its code."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = "utils" if node.level else ""
            module = ".".join(filter(None, [package, node.module]))
            names = [f"{module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("utils.")}
    return found


def import_problems(module, source):
    if module not in MAY_IMPORT:
        return [f"utils/{module}.py is not in the table of modules"]
    wrong = imported_modules(source) - MAY_IMPORT[module]
    return [f"utils/{module}.py may not import {name}" for name in sorted(wrong)]


def star_imports(source):
    return [
        f"line {node.lineno}: star import"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]


def is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def is_pure(value):
    """Whether a constant's value is made of literals, names and harmless calls."""
    called = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)]
    return all(
        ast.unparse(function) in PURE_CALLS
        or (  # a method of a literal, as in "a b".split()
            isinstance(function, ast.Attribute)
            and isinstance(function.value, ast.Constant)
        )
        for function in called
    )


def is_main_guard(node):
    """`if __name__ == "__main__": main()`, which an import passes by."""
    expected = "if __name__ == '__main__':\n    main()"
    return isinstance(node, ast.If) and ast.unparse(node) == expected


def side_effects(source):
    """Top-level statements, of the module or of a class, that could do something."""
    found = []
    bodies = [ast.parse(source).body]
    while bodies:
        for node in bodies.pop():
            if isinstance(node, ast.ClassDef):
                bodies.append(node.body)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = getattr(node, "targets", None) or [node.target]
                parts = [part for target in targets for part in ast.walk(target)]
                plain = ast.Name | ast.Tuple | ast.expr_context
                named = all(isinstance(part, plain) for part in parts)
                if not named or (node.value and not is_pure(node.value)):
                    found.append(f"line {node.lineno}: {ast.unparse(node)}")
            elif not (is_docstring(node) or is_main_guard(node)) and not isinstance(
                node,
                ast.Import
                | ast.ImportFrom
                | ast.FunctionDef
                | ast.AsyncFunctionDef
                | ast.Pass,
            ):
                found.append(f"line {node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("path", UTILS, ids=lambda path: path.stem)
def test_utils_module(path):
    source = path.read_text(encoding="utf-8")
    problems = star_imports(source) + side_effects(source)
    if path.stem == "__init__":
        body = ast.parse(source).body
        assert len(body) == 1 and is_docstring(body[0]), "holds more than a docstring"
    else:
        problems += import_problems(path.stem, source)
    assert not problems


def test_utils_is_there():
    assert {"attention", "seq2seq", "text"} <= {path.stem for path in UTILS}


@pytest.mark.parametrize(
    "source",
    [
        "from utils.seq2seq import EncoderDecoder",
        "import utils.seq2seq as s",
        "from utils import seq2seq",
        "from .seq2seq import EncoderDecoder",
        "from . import seq2seq",
        "def f():\n    from utils.seq2seq import EncoderDecoder",
    ],
)
def test_an_upward_import_is_found(source):
    assert import_problems("attention", source)
    assert not import_problems("training", source)


def test_an_unknown_module_is_found():
    assert import_problems("helpers", "")


def test_a_star_import_is_found():
    assert star_imports("def f(): pass\nfrom utils.text import *")
    assert not star_imports("from utils.text import Vocab")


@pytest.mark.parametrize(
    "source",
    [
        "print('hello')",
        "import torch\ntorch.manual_seed(0)",
        "x = torch.manual_seed(0)",
        "plt.rcParams['font.size'] = 9",
        "matplotlib.backend = 'Agg'",
        "if True:\n    x = 1",
        "if __name__ == '__main__':\n    main()\nelse:\n    main()",
        "if __name__ != '__main__':\n    main()",
        "for x in range(3):\n    pass",
        "with open('f') as f:\n    pass",
        "x = [open(name) for name in 'ab']",
        "class A:\n    print('made')",
        "x: int = launch()",
    ],
)
def test_a_side_effect_is_found(source):
    assert side_effects(source)


def test_constants_are_no_side_effect():
    source = (
        '"""Doc."""\nimport re\nA, = 1,\nB = re.compile("x")\nC = frozenset({1})\n'
        'D = "a b".split()\nclass E:\n    """Doc."""\n    x: int\n    y = 1\n'
        "def f():\n    print(1)\nif __name__ == '__main__':\n    main()\n"
    )
    assert side_effects(source.replace("A, = 1,", "A = 1")) == []


def test_importing_utils_changes_nothing():
    """Seen from outside: no output, no seed, no setting of matplotlib or torch."""
    modules = [f"utils.{path.stem}" for path in UTILS if path.stem != "__init__"]
    program = f"""
import importlib, random
import matplotlib.pyplot, numpy, torch
def state():
    return (random.getstate(), torch.get_rng_state().tolist(),
            numpy.random.get_state()[1].tolist(), dict(matplotlib.rcParams),
            torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled())
before = state()
for module in {modules}:
    importlib.import_module(module)
assert state() == before, "an import changed a setting"
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# --- the mirror rule ----------------------------------------------------------


def untaught(taught, places):
    """The taught names that are not shown in exactly one notebook."""
    return sorted(name for name in taught if len(places.get(name, [])) != 1)


def test_the_notebooks_mirror_utils():
    assert mirror.problems() == []


def taught_objects(objects):
    """The names that the table above calls taught, among those that utils has."""
    found = set(TAUGHT)
    for full_name in set(objects) - PLUMBING:
        _, module, name = full_name.split(".")
        if module in TAUGHT_MODULES and not name.startswith("check_"):
            found.add(full_name)
    return found


def test_what_is_taught_is_shown_once():
    objects = mirror.public_objects()
    assert TAUGHT | PLUMBING <= set(objects), "the table names what is not in utils"
    assert untaught(taught_objects(objects), mirror.mirrored(NOTEBOOKS)) == []


def test_what_is_taught_is_taken_from_the_table():
    objects = ["utils.attention.Score", "utils.attention.check_it", "utils.data.Batch"]
    assert taught_objects(objects) - TAUGHT == {"utils.attention.Score"}


SMALL = '''"""A small module."""
import functools


@functools.cache
def double(x):
    # Twice is enough.
    return 2 * x


class Box:
    """Holds one thing."""
    size = 1


def _hidden():
    pass
'''
DOUBLE = "@functools.cache\ndef double(x):\n    # Twice is enough.\n    return 2 * x"


@pytest.fixture
def small(tmp_path):
    """A repository with one module; `small(*cells)` writes its only notebook."""
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils" / "small.py").write_text(SMALL, encoding="utf-8")
    (tmp_path / "notebooks").mkdir()

    def write(*sources, name="01_small.ipynb"):
        cells = [new_code_cell(source) for source in sources]
        nbformat.write(new_notebook(cells=cells), tmp_path / "notebooks" / name)
        return tmp_path

    return write


def test_a_right_mirror_passes(small):
    root = small("x = 1", f"# mirror: utils.small.double\n{DOUBLE}", "%pip list\n!ls")
    assert mirror.problems(root) == []
    places = mirror.mirrored(mirror.notebook_paths(root))
    assert places == {"utils.small.double": ["01_small.ipynb, cell 2"]}


@pytest.mark.parametrize(
    "source, complaint",
    [
        (f"# mirror: utils.small.double\n{DOUBLE}  # or not", "differs"),
        (f"# mirror: utils.small.double\n{DOUBLE.replace('Twice', 'Two')}", "differs"),
        (f"# mirror: utils.small.double\n{DOUBLE}\n", "differs"),
        (f"# mirror: utils.small.double\n{DOUBLE.partition(chr(10))[2]}", "differs"),
        ("# mirror: utils.small.double", "differs"),
        (f"# mirror: utils.small.triple\n{DOUBLE}", "is no public"),
        (f"# mirror: small.double\n{DOUBLE}", "is no public"),
        ("# mirror: utils.small._hidden\ndef _hidden():\n    pass", "is no public"),
        (DOUBLE, "without the marker"),
        ("class Box:\n    size = 2", "without the marker"),
        (f"#mirror: utils.small.double\n{DOUBLE}", "a marker is the first line"),
        (f"\n# mirror: utils.small.double\n{DOUBLE}", "a marker is the first line"),
        ("def broken(:", "is not Python"),
    ],
)
def test_a_wrong_mirror_is_found(small, source, complaint):
    root = small(source)
    assert any(complaint in problem for problem in mirror.problems(root))


def test_showing_a_thing_twice_is_found(small):
    cell = f"# mirror: utils.small.double\n{DOUBLE}"
    small(cell)
    root = small(cell, name="02_small.ipynb")
    assert [text for text in mirror.problems(root) if "shown 2 times" in text]
    places = mirror.mirrored(mirror.notebook_paths(root))
    assert untaught({"utils.small.double"}, places)


def test_a_taught_thing_that_is_not_shown_is_found(small):
    root = small("x = 1")
    places = mirror.mirrored(mirror.notebook_paths(root))
    assert untaught({"utils.small.double"}, places)


def test_the_tool_writes_the_marked_cells_and_nothing_else(small):
    marker = "# mirror: utils.small."
    root = small("x = 1", f"{marker}double\nold", f"{marker}nothing")
    path = root / "notebooks" / "01_small.ipynb"
    before = nbformat.read(path, as_version=4)
    before.cells[1].outputs = [nbformat.v4.new_output("stream", text="kept")]
    before.cells[1].metadata.tags = ["kept"]
    nbformat.write(before, path)

    assert mirror.write(root) == [path]
    after = nbformat.read(path, as_version=4)
    assert after.cells[1].source == f"# mirror: utils.small.double\n{DOUBLE}"
    after.cells[1].source = before.cells[1].source
    assert after == before
    assert list(path.parent.iterdir()) == [path]

    written = path.read_bytes()
    assert mirror.write(root) == []
    assert path.read_bytes() == written and written.endswith(b"}\n")


# --- Markdown files -----------------------------------------------------------

CODE = re.compile(r"```.*?```|`[^`\n]*`|\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)|(?:src|href)=[\"']([^\"']+)")
REMOTE = re.compile(r"[a-z]+:", re.IGNORECASE)
BADGE = re.compile(r"shields\.io|badge|/workflows/\S+\.svg", re.IGNORECASE)


def links(text):
    """The targets of the links and pictures of a Markdown text, code left out."""
    return [a or b for a, b in LINK.findall(CODE.sub("", text))]


def dead_links(text, folder):
    """The links to files that are not there. Links to other sites are not followed."""
    local = [link for link in links(text) if not REMOTE.match(link)]
    paths = [unquote(link.partition("#")[0].partition("?")[0]) for link in local]
    return [path for path in paths if path and not (folder / path).exists()]


def unlisted(text, notebooks):
    linked = {unquote(link) for link in links(text)}
    return [path.name for path in notebooks if f"notebooks/{path.name}" not in linked]


def markdown_files():
    return [path for path in repository_files() if path.suffix == ".md"]


def test_links_lead_somewhere():
    dead = {
        str(path.relative_to(ROOT)): dead_links(path.read_text("utf-8"), path.parent)
        for path in markdown_files()
    }
    assert {name: paths for name, paths in dead.items() if paths} == {}


def test_the_readme_lists_every_notebook():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    numbered = [path for path in NOTEBOOKS if path.parent.name == "notebooks"]
    assert numbered and unlisted(text, numbered) == []


def test_the_readme_has_no_badge():
    assert not BADGE.search((ROOT / "README.md").read_text(encoding="utf-8"))


def test_wrong_markdown_is_found(tmp_path):
    (tmp_path / "a b.md").touch()
    good = "[x](a%20b.md#part) [y](https://example.org/z) [z](#part)"
    assert dead_links(good, tmp_path) == []
    assert dead_links("`[x](gone.md)` and $W[s](t)$", tmp_path) == []
    assert dead_links("see [x](gone.md)", tmp_path) == ["gone.md"]
    assert dead_links("![a picture](img/gone.png)", tmp_path) == ["img/gone.png"]
    assert dead_links('<img src="gone.png">', tmp_path) == ["gone.png"]
    assert unlisted("notebooks/01_a.ipynb", [Path("01_a.ipynb")]) == ["01_a.ipynb"]
    assert unlisted("[a](notebooks/01_a.ipynb)", [Path("01_a.ipynb")]) == []
    assert BADGE.search("![build](https://img.shields.io/x.svg)")


# --- the README's plain commands and the Makefile -----------------------------


def commands(text):
    """The words of each command of a text, continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", text)
    return [line.split() for line in joined.splitlines() if line.strip()]


def plain_commands(text, language, python):
    """The words after `python` in a Markdown text's code blocks of a language."""
    blocks = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    found = commands("\n".join(blocks))
    return [words[1:] for words in found if words[0] == python]


def contains(longer, words):
    """Whether the words occur in the longer list in order, others between them."""
    remaining = iter(longer)
    return all(word in remaining for word in words)


def test_the_readme_agrees_with_the_makefile():
    """The Makefile runs the plain commands, perhaps with further options."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    recipes = commands((ROOT / "Makefile").read_text(encoding="utf-8"))
    plain = plain_commands(readme, "bash", ".venv/bin/python")
    assert len(plain) == 4, "install, start, ruff, pytest"
    assert plain == plain_commands(readme, "powershell", ".venv\\Scripts\\python")
    for words in plain:
        assert any(contains(recipe, ["$(PY)", *words]) for recipe in recipes), words


def test_a_plain_command_that_differs_is_found():
    text = "```bash\n.venv/bin/python -m pytest\nls\n```\n"
    assert plain_commands(text, "bash", ".venv/bin/python") == [["-m", "pytest"]]
    assert contains("a \\ -b c".split(), ["a", "c"])
    assert not contains(["$(PY)", "-m", "pytest"], ["$(PY)", "-m", "unittest"])


# --- all files ----------------------------------------------------------------


def repository_files():
    """The files that git has or would take; without git, all but caches."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
        names = [os.fsdecode(name) for name in listed.stdout.split(b"\0") if name]
        return [ROOT / name for name in names if (ROOT / name).is_file()]
    caches = re.compile(r"\.venv|__pycache__|\..*cache|.*\.egg-info|\.hypothesis")
    files = [path for path in ROOT.rglob("*") if path.is_file()]
    return [
        path
        for path in files
        if not any(caches.fullmatch(part) for part in path.relative_to(ROOT).parts)
    ]


def machine_paths(data):
    """The folders of one machine that a file's bytes name."""
    folders = [f"/{name}/" for name in ("work", "root", "opt/wheels")]
    return [folder for folder in folders if folder.encode() in data]


def test_no_file_names_a_folder_of_one_machine():
    files = repository_files()
    assert ROOT / "Makefile" in files
    found = {
        str(path.relative_to(ROOT)): machine_paths(path.read_bytes()) for path in files
    }
    assert {name: folders for name, folders in found.items() if folders} == {}


def test_a_folder_of_one_machine_is_found():
    assert machine_paths(b"x = '/" + b"root/a'")
    assert machine_paths(b"/" + b"work/main/data")
    assert not machine_paths(b"the root of the work")
