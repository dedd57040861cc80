"""Make a notebook that was opened on Colab find the rest of the course.

Colab opens a notebook alone, in an empty folder. The first code cell of each notebook
clones the course into `course` there and runs this file, which

- installs those of the course's packages that Colab doesn't bring;
- links `utils` into this folder, where Python looks for it, and `data` beside the
  folder, where the notebooks look for it (`../data`).
"""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def missing(requirements):
    """The requirements of the course, without those of its tests, not installed yet."""
    course = requirements.partition("# Its tests")[0]
    lines = [line.split(" #")[0].strip() for line in course.splitlines()]
    found = []
    for line in lines:
        if line and not line.startswith("#"):
            try:
                version(line.partition("==")[0])
            except PackageNotFoundError:
                found.append(line)
    return found


def link(place, target):
    if not place.exists():
        place.symlink_to(target)


def main():
    here, course = Path.cwd(), Path(__file__).resolve().parent.parent
    packages = missing((course / "requirements.txt").read_text(encoding="utf-8"))
    if packages:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", *packages]
        subprocess.run(pip, check=True)
    link(here / "utils", course / "utils")
    link(here.parent / "data", course / "data")


if __name__ == "__main__":
    main()
