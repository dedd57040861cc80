"""Notebooks where and as nobody planned to run them: the same outputs, nothing else.

`make test-faults` runs each twice in one kernel, first with its sections in another
order, in a copy of the course under a name with spaces and Chinese characters, by a
command given in another folder, with no locale but C, another hash seed, and the
network refused.
"""

import ast
import os
import re
import shutil
import subprocess
import symtable
import sys

import nbformat
import pytest
from helpers.repo import NUMBERED, ROOT
from mirror import as_python
from nbformat.v4 import new_code_cell, new_notebook

DOWNLOADING = ("10",)  # it says so, and goes on where that fails

# --- sections in another order ---------------------------------------------------


def sections(notebook):
    """Lists of code cells, one for what stands before the first ##, one for each ##."""
    found = [[]]
    for cell in notebook.cells:
        if cell.cell_type == "code":
            found[-1].append(cell)
        elif re.match(r"##\s", cell.source):
            found.append([])
    return found


def names(cells):
    """The names that these cells read, and those that they set.

    x.y = ... and x[y] = ... set x, too. What a method changes isn't seen.
    """
    reads, sets = set(), set()
    for source in (as_python(cell.source) for cell in cells):
        top = symtable.symtable(source, "cell", "exec")
        scopes = [top]
        for scope in scopes:
            scopes += scope.get_children()
            for symbol in scope.get_symbols():
                if scope is top and (symbol.is_assigned() or symbol.is_imported()):
                    sets.add(symbol.get_name())
                elif scope is top or symbol.is_global():
                    reads.add(symbol.get_name())
        for node in ast.walk(ast.parse(source)):
            if isinstance(getattr(node, "ctx", None), ast.Store):
                while isinstance(node, ast.Attribute | ast.Subscript):
                    node = node.value
                    sets |= {node.id} if isinstance(node, ast.Name) else set()
    return reads | sets, sets


def another_order(parts):
    """Numbers of the sections: the last first, wherever no name forbids it.

    Two sections stay in order where one sets a name that the other reads or sets; the
    first section stays the first.
    """
    touched = [names(cells) for cells in parts]

    def tied(i, j):
        return touched[i][0] & touched[j][1] or touched[i][1] & touched[j][0]

    order, left = [0], list(range(1, len(parts)))
    while left:
        free = [i for i in left if not any(tied(i, j) for j in left if j < i)]
        order.append(free[-1])
        left.remove(free[-1])
    return order


@pytest.mark.parametrize(
    "sources, order",
    [
        (["import os", "a = 1", "b = 2", "b + os.name"], [0, 2, 3, 1]),
        (["", "x = 1\nx", "x = 2\nx", "print(y)"], [0, 3, 1, 2]),
        (["", "[i for i in 'ab']", "i = 3\ndef f(x): return i"], [0, 2, 1]),
        (["d = {}", "d['a'] = 1", "d.a.b = 2", "d", "f = lambda: d"], [0, 1, 2, 4, 3]),
    ],
)
def test_another_order(sources, order):
    assert another_order([[new_code_cell(source)] for source in sources]) == order


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
    cells = [cell for i in order for cell in parts[i]] + sum(parts, [])
    says_so = new_code_cell(f"watch.may_ask = {path.name[:2] in DOWNLOADING}")
    watched = [new_code_cell(WATCH), new_code_cell(TRY_WATCH), says_so]
    watched += [*map(nbformat.NotebookNode.copy, cells), new_code_cell(END_WATCH)]
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


@pytest.mark.skipif(
    "LEARNING_TO_ALIGN_FAULTS" not in os.environ, reason="make test-faults runs it"
)
@pytest.mark.parametrize("path", NUMBERED, ids=lambda path: path.stem)
def test_same_outputs_and_nothing_else(path, tmp_path, pytestconfig):
    course = tmp_path / "学习 对齐, a course"
    caches = shutil.ignore_patterns("__pycache__", ".ipynb_checkpoints", "*.ipynb")
    for name in ("utils", "data", "notebooks"):
        shutil.copytree(ROOT / name, course / name, ignore=caches)
    notebook, order = prepared(path)
    nbformat.write(notebook, course / "notebooks" / path.name)
    (course / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    for name in ("home", "tmp", "cache"):
        (tmp_path / name).mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(course),
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "LC_ALL": "C",
        "PYTHONHASHSEED": "random",
    }
    # Without UTF-8, PyTorch itself can't be imported from a folder such as 学.
    if sys.prefix.isascii():
        environment |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    # PyTorch leaves it behind in this process; it names a folder outside TMPDIR.
    environment.pop("TORCHINDUCTOR_CACHE_DIR", None)
    before = tree(course)
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "--tb=short"]
    command += ["-p", "no:cacheprovider", "--nbval-cell-timeout=36000"]
    command += ["--nbval-sanitize-with", pytestconfig.option.nbval_sanitize_with]
    command += ["--rootdir", course, "-c", course / "pytest.ini"]
    done = subprocess.run(
        [*command, course / "notebooks" / path.name],
        cwd=tmp_path / "tmp",
        env=environment,
        capture_output=True,
    )
    report = (done.stdout + done.stderr).decode("utf-8", "replace")
    print(f"sections {order}, {report.splitlines()[-1]}")
    assert done.returncode == 0, report
    assert f"{len(notebook.cells)} passed" in report
    assert tree(course) == before
    left = [p.name for name in ("home", "tmp") for p in (tmp_path / name).iterdir()]
    left += [p.name for p in (tmp_path / "cache").rglob("*") if p.is_file()]
    assert [name for name in left if not name.startswith("torchinductor")] == []


def test_sections_move():
    orders = [another_order(sections(nbformat.read(p, as_version=4))) for p in NUMBERED]
    assert sum(order != sorted(order) for order in orders) >= len(orders) // 2, orders
