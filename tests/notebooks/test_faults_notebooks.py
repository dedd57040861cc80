"""Notebooks where and as nobody planned to run them: the same outputs, nothing else.

Each runs twice in one kernel, first with its sections in another order, in a copy of
the course under a name with spaces and Chinese characters, by a command given in
another folder, with no locale but C, another hash seed, and the network refused.
LEARNING_TO_ALIGN_FAULTS=10000 takes all notebooks instead of the quick ones.
"""

import ast
import builtins
import os
import re
import shutil
import subprocess
import symtable
import sys

import mirror
import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

ALL = "LEARNING_TO_ALIGN_FAULTS" in os.environ
QUICK = ("00", "02", "03", "04")
DOWNLOADING = ("10",)  # it says so, and goes on where that fails
NOTEBOOKS = [
    path
    for path in mirror.notebook_paths()
    if path.parent.name == "notebooks" and (ALL or path.name[:2] in QUICK)
]

# --- sections in another order ---------------------------------------------------


def sections(notebook):
    """Lists of cells, one for what stands before the first ## and one for each ##."""
    found = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and re.match(r"##\s", cell.source):
            found.append([])
        found[-1].append(cell)
    return found


def names(cells):
    """The names that these cells need from elsewhere, and those that they set.

    x.y = ... and x[y] = ... set x, too. What a method changes isn't seen.
    """
    needs, sets = set(), set()
    for cell in cells:
        if cell.cell_type == "code":
            for statement in ast.parse(mirror.as_python(cell.source)).body:
                read, written = names_of_statement(statement)
                needs |= read - sets
                sets |= written
    return needs - set(dir(builtins)), sets


def names_of_statement(statement):
    table = symtable.symtable(ast.unparse(statement), "cell", "exec")
    tables, read, written = [table], set(), set()
    while tables:
        scope = tables.pop()
        tables += scope.get_children()
        for symbol in scope.get_symbols():
            top = scope is table
            if symbol.is_referenced() and (top or symbol.is_global()):
                read.add(symbol.get_name())
            if top and (symbol.is_assigned() or symbol.is_imported()):
                written.add(symbol.get_name())
    own = set()  # set by the statement before it reads them
    for node in ast.walk(statement):
        if isinstance(node, ast.For):
            own |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
        elif isinstance(node, ast.withitem) and isinstance(
            node.optional_vars, ast.Name
        ):
            own.add(node.optional_vars.id)
        elif isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node.ctx, ast.Store):
                base = node.value
                while isinstance(base, (ast.Attribute, ast.Subscript)):
                    base = base.value
                written |= {base.id} if isinstance(base, ast.Name) else set()
    return read - own, written


def another_order(parts):
    """Numbers of the sections: the last first, wherever a section can do without.

    A section comes where each name it needs was last set by the section that sets it
    last in the notebook as it is.
    """
    needs, sets = zip(*map(names, parts), strict=True)
    setter = [
        {
            name: max((j for j in range(i) if name in sets[j]), default=None)
            for name in n
        }
        for i, n in enumerate(needs)
    ]
    dead_ends = set()

    def complete(order, last):
        left = [i for i in reversed(range(len(parts))) if i not in order]
        state = frozenset(order), frozenset(last.items())
        if not left or state in dead_ends:
            return None if left else order
        for i in left:
            if all(last.get(name) == setter[i][name] for name in needs[i]):
                after = {**last, **dict.fromkeys(sets[i], i)}
                if found := complete([*order, i], after):
                    return found
        dead_ends.add(state)
        return None

    return complete([0], dict.fromkeys(sets[0], 0))


def code_sections(*sources):
    return [[new_code_cell(source)] for source in sources]


def test_another_order():
    free = code_sections("import os", "a = 1", "b = 2", "b + os.name")
    assert another_order(free) == [0, 2, 3, 1]
    again = code_sections("", "x = 1\nx", "x = 2\nx", "print(x)")
    assert another_order(again) == [0, 2, 3, 1]
    local = code_sections(
        "", "for i in 'ab': i", "i = 3\ndef f(i): return i", "len('a')"
    )
    assert another_order(local) == [0, 3, 2, 1]
    changed = code_sections("d = {}", "d['a'] = 1", "d.a.b = 2", "d", "f = lambda: d")
    assert another_order(changed) == [0, 1, 2, 4, 3]


# --- the run ---------------------------------------------------------------------

WATCH = '''
import os, socket, sys
import utils
assert os.path.samefile(os.path.dirname(utils.__file__), "../utils"), utils.__file__

class Watch:
    """What cells do to the world outside, seen by an audit hook of Python's."""
    found, on, may_ask = [], True, False
    asked = ("socket.connect", "socket.bind", "socket.getaddrinfo", "socket.sendto")
    changes = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink")
    free = "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR", "XDG_CACHE_HOME"
    free = [os.environ[name] for name in free]

    def __call__(self, event, arguments):
        if not self.on:
            return
        if event in self.asked:
            # urllib3, which pooch and d2l import, tries if this machine has IPv6.
            if sys._getframe(1).f_code.co_name == "_has_ipv6":
                return
            if not self.may_ask:
                self.found.append(f"{event} {arguments[1:]}")
            raise OSError("the network is refused: " + event)
        # A PyTorch with CUDA asks ldconfig where its libraries are.
        asks = os.path.basename(str(arguments[0])) == "ldconfig" if arguments else False
        if event in ("subprocess.Popen", "os.system") and not asks:
            self.found.append(f"{event} {arguments[0]}")
        writes = event == "open" and isinstance(arguments[0], str) and (
            (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writes or event in self.changes:
            path = os.path.abspath(os.fsdecode(arguments[0]))
            mine = any(path.startswith(folder) for folder in self.free)
            if not mine and path != os.devnull and "__pycache__" not in path:
                self.found.append(f"{event} {path}")

watch = Watch()
sys.addaudithook(watch)
'''
TRY_WATCH = """
try:
    socket.create_connection(("example.org", 80))
except OSError as error:
    assert "refused" in str(error)
try:
    socket.socket().bind(("127.0.0.1", 0))
except OSError as error:
    assert "refused" in str(error)
open("written.txt", "w").close()
os.remove("written.txt")
assert len(watch.found) == 4, watch.found
watch.found.clear()
"""
END_WATCH = "watch.on = False\nassert not watch.found, watch.found"


def prepared(path):
    """The notebook twice, with its sections in another order first, and watched."""
    notebook = nbformat.read(path, as_version=4)
    parts = sections(notebook)
    order = another_order(parts)
    cells = [cell for i in order for cell in parts[i]] + notebook.cells
    cells = [cell.copy() for cell in cells if cell.cell_type == "code"]
    says_so = new_code_cell(f"watch.may_ask = {path.name[:2] in DOWNLOADING}")
    watched = [new_code_cell(WATCH), new_code_cell(TRY_WATCH), says_so, *cells]
    watched.append(new_code_cell(END_WATCH))
    for number, cell in enumerate(watched):
        cell["id"] = f"cell-{number}"
    return new_notebook(cells=watched, metadata=notebook.metadata), order


def tree(folder):
    """Every file's content but for caches that version control ignores."""
    ignored = ("__pycache__", ".ipynb_checkpoints", ".pytest_cache")
    return {
        path.relative_to(folder): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if not any(part in ignored for part in path.parts)
    }


@pytest.fixture(scope="module")
def run(tmp_path_factory, pytestconfig):
    """nbval's report on the prepared notebooks, and what the folders held around it."""
    base = tmp_path_factory.mktemp("elsewhere")
    course = base / "学习 对齐, a course"
    for name in ("utils", "data", "notebooks"):
        shutil.copytree(
            mirror.ROOT / name,
            course / name,
            ignore=shutil.ignore_patterns(
                "__pycache__", ".ipynb_checkpoints", "*.ipynb"
            ),
        )
    orders = {}
    for path in NOTEBOOKS:
        notebook, orders[path.stem] = prepared(path)
        nbformat.write(notebook, course / "notebooks" / path.name)
    (course / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name in ("home", "tmp", "cache"):
        (base / name).mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(course),
        "HOME": str(base / "home"),
        "TMPDIR": str(base / "tmp"),
        "XDG_CACHE_HOME": str(base / "cache"),
        "LC_ALL": "C",
        "PYTHONHASHSEED": "random",
    }
    # Without UTF-8, PyTorch itself can't be imported from a folder such as 学.
    if sys.prefix.isascii():
        environment |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    # PyTorch leaves it behind in this process; it names a folder outside TMPDIR.
    environment.pop("TORCHINDUCTOR_CACHE_DIR", None)
    before = tree(course)
    command = [sys.executable, "-m", "pytest", "--nbval", "-rA", "-q", "--tb=short"]
    command += ["-p", "no:cacheprovider", "--nbval-cell-timeout=300"]
    command += ["--nbval-sanitize-with", pytestconfig.option.nbval_sanitize_with]
    command += ["--rootdir", str(course), "-c", str(course / "pytest.ini")]
    done = subprocess.run(
        [*command, *(str(course / "notebooks" / path.name) for path in NOTEBOOKS)],
        cwd=base / "tmp",
        env=environment,
        capture_output=True,
    )
    report = (done.stdout + done.stderr).decode("utf-8", "replace")
    left = [p.name for name in ("home", "tmp") for p in (base / name).iterdir()]
    left += [p.name for p in (base / "cache").rglob("*") if p.is_file()]  # a download's
    return report, orders, before, tree(course), left


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_same_outputs(run, path):
    report, orders, *_ = run
    failed = re.findall(rf"^FAILED .*{path.stem}.*$", report, re.MULTILINE)
    passed = re.findall(rf"^PASSED .*{path.stem}.*$", report, re.MULTILINE)
    code = [c for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    print(f"{path.stem}: {len(passed)} cells, sections {orders[path.stem]}")
    assert not failed, report.partition("= FAILURES")[2].partition("= short")[0]
    assert len(passed) == 2 * len(code) + 4


def test_sections_moved(run):
    moved = [order for order in run[1].values() if order != sorted(order)]
    assert len(moved) >= 3


def test_nothing_is_written_into_the_course(run):
    _, _, before, after, left = run
    assert before == after
    assert [name for name in left if not name.startswith("torchinductor")] == []
