"""Make a notebook that was opened on Colab find the rest of the course.

Colab opens a notebook alone, in an empty folder. The first code cell of each notebook
clones the course into `course` there and runs this file, which

- installs those of the course's packages that Colab doesn't bring;
- links `utils` into this folder, where Python looks for it, and `data` beside the
  folder, where the notebooks look for it (`../data`).
"""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def missing(requirements):
    """The requirements of the course, without those of its tests, not installed yet."""
    course = requirements.partition("# Its tests")[0]
    for line in re.findall(r"^[\w.-]+==\S+", course, re.MULTILINE):
        try:
            version(line.partition("==")[0])
        except PackageNotFoundError:
            yield line


if __name__ == "__main__":
    here, course = Path.cwd(), Path(__file__).resolve().parent.parent
    pip = [sys.executable, "-m", "pip", "install", "--quiet"]
    if packages := list(missing((course / "requirements.txt").read_text("utf-8"))):
        subprocess.run([*pip, *packages], check=True)
    for place, name in ((here, "utils"), (here.parent, "data")):
        if not (place / name).exists():
            (place / name).symlink_to(course / name)
