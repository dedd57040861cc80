"""Does a test notice a real mistake? One at a time is made in a copy, and tests run.

    python tools/mutants.py [NAME or MODULE ...]

A mutant that no test notices says where a test is missing. Where code has changed,
mutants.txt must change with it: an old text must occur exactly once.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 600  # seconds; tests that take longer have noticed by their time
NEAREST = {  # the test files nearest to a module, if not just the one of its name
    "seq2seq": ["models"],
    "variants": ["models"],
    "rnnsearch": ["models"],
    "translator": ["models"],
    "training": ["training", "by_hand"],
    "checkpoint": ["checkpoint", "training"],
    "data": ["data", "corpora"],
    "corpora": ["corpora", "data"],
    "data_check": ["data_check", "corpora"],
    "guards": ["metrics"],
    "options": ["recipe", "train"],
    "gold": ["gold", "corpora"],
    "transformer": ["transformer", "models"],
    "exercises/running": ["engine"],
}


class Mutant(NamedTuple):
    name: str
    module: str
    old: str
    new: str

    def code(self):
        """The module with the mistake; SystemExit where there is nothing to change."""
        path = ROOT / "utils" / f"{self.module}.py"
        code = path.read_text(encoding="utf-8")
        if (count := code.count(self.old)) != 1:
            raise SystemExit(f"{self.name!r}: {self.old!r} is {count} times in {path}")
        code = code.replace(self.old, self.new)
        compile(code, self.name, "exec")  # SyntaxError where it is no Python
        return code


def mutants():
    """The rows of mutants.txt."""
    text, rows = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"), []
    for line in text.replace("\n      ", "").splitlines()[2:]:
        if not line.startswith(" "):
            module = line
        elif " => " not in line:
            name = line.strip()
        else:
            old, new = line.strip().replace(r"\n", "\n").split(" => ")
            rows.append(Mutant(name, module, old, new))
    return rows


def failure(folder, module, mark=""):
    """The first test of this mark nearest to the module that fails; None if none."""
    names = NEAREST.get(module, [module.rpartition("/")[2]])
    files = [file for n in names for file in folder.glob(f"tests/utils/**/test_{n}.py")]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", mark, *files]
    own = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    how = {"cwd": folder, "env": os.environ | own, "timeout": PATIENCE}
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **how)
    except subprocess.TimeoutExpired:
        return "time"
    if done.returncode in (0, 5):  # 5: there is no such test, as where none is slow
        return None
    if done.returncode > 2:  # pytest could not do its work: nothing is known
        raise SystemExit(f"pytest ended with code {done.returncode}:\n{done.stdout}")
    return re.search(r"^(?:FAILED|ERROR) (.*?)(?: - |$)", done.stdout, re.M)[1]


def main(names):
    """Try the mutants of these names, or of modules of these names; of none: all."""
    chosen = [m for m in mutants() if not names or {m.name, m.module} & names]
    if unknown := names - {name for m in chosen for name in (m.name, m.module)}:
        raise SystemExit(f"no mutant and no module with mutants: {', '.join(unknown)}")
    caught = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
        for name in listed.split("\0")[:-1]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        for module in {mutant.module for mutant in chosen}:
            if test := failure(folder, module):
                raise SystemExit(f"without any mutant, a test fails: {test}")
        for mutant in chosen:
            path = folder / "utils" / f"{mutant.module}.py"
            right = path.read_text(encoding="utf-8")
            path.write_text(mutant.code(), encoding="utf-8")
            tried = (failure(folder, mutant.module, m) for m in ("not slow", "slow"))
            test = next(filter(None, tried), None)
            path.write_text(right, encoding="utf-8")
            caught += bool(test)
            print(f"{mutant.module:17}  {mutant.name:47}  {test or '-'}", flush=True)
    print(f"caught {caught} of {len(chosen)}")


if __name__ == "__main__":
    main(set(sys.argv[1:]))
