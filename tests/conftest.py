"""What every test run has in common, whatever the machine's user has configured."""

import os
import signal
import sys
import warnings

import pytest
from hypothesis import HealthCheck, settings

# Several workers share the cores: one thread each, and for what they start.
if WORKER := os.environ.get("PYTEST_XDIST_WORKER"):
    for library in ("OMP", "MKL", "OPENBLAS"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A shell that starts the tests in the background has them ignore the stop button, which
# some of them press.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# nbformat loads a grammar of addresses, for a second, that no notebook here needs.
sys.modules.setdefault("rfc3987_syntax", None)

# The same examples in every run, few of them unless one asks for more, and no limit on
# seconds: machines differ.
examples = int(os.environ.get("LEARNING_TO_ALIGN_FAULTS", 25))
settings.register_profile(
    "course",
    derandomize=True,
    deadline=None,
    max_examples=examples,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("course")


def pytest_xdist_auto_num_workers():
    """-n auto: one worker more than there are cores, since each waits for its kernels.

    No more than 4, for the sake of memory.
    """
    usable = getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count() or 1))
    return min(len(usable(0)) + 1, 4)


def pytest_collection_modifyitems(items):
    """Notebooks first: they are long, and short files fill the gaps at the end.

    After a cell's last word, nbval gives its output five seconds to arrive. A slow
    machine gets ten minutes.
    """
    items.sort(key=lambda item: item.path.suffix != ".ipynb")
    for item in items:
        if hasattr(item, "output_timeout"):
            item.output_timeout = 600


def pytest_configure(config):
    """Keep the tests, and the kernels that nbval starts, away from the user's folders.

    They then run where the home folder can't be written, and no setting of the user
    changes an output: exercises speak English. Each worker has folders of its own.
    Figures in tests are drawn without a screen; kernels choose their own backend, which
    a variable of the user would override.
    """
    for variable in ("MPLCONFIGDIR", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR"):
        folder = f"{variable.lower()}-{WORKER or 'main'}"
        os.environ[variable] = str(config.cache.mkdir(folder))
    os.environ.pop("MPLBACKEND", None)
    os.environ["LEARNING_TO_ALIGN_LANG"] = "en"
    if outputs := getattr(config.option, "nbval_sanitize_with", None):
        config.option.nbval_sanitize_with = str(config.rootpath / outputs)

    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.font_manager  # noqa: F401  builds the font cache once


@pytest.fixture
def offscreen():
    """Draws in memory; every warning, as of a missing glyph, fails the test."""
    import matplotlib.pyplot as plt

    with plt.rc_context(), warnings.catch_warnings():
        plt.switch_backend("agg")
        plt.rcdefaults()
        warnings.simplefilter("error")
        yield
        plt.close("all")


@pytest.fixture(scope="session")
def browser():
    """One Chromium for all tests of a process, which can't have two at a time."""
    pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    from tools import chromium

    if not chromium.chromium():
        pytest.skip("needs Chromium, which is not installed")
    with chromium.started() as browser:
        yield browser
