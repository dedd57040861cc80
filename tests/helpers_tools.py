"""What tests of the tools share."""

import importlib.util
import os
from pathlib import Path

import pytest


def needs(name):
    """Skips a test, by name, where the user's folder of real text hasn't this."""
    folder = os.environ.get("LEARNING_TO_ALIGN_DATA")
    present = bool(folder) and (Path(folder) / name).exists()
    reason = f"no {name} in the folder that LEARNING_TO_ALIGN_DATA names"
    return pytest.mark.skipif(not present, reason=reason)


def script(path):
    """The program in a file, as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
