"""A Chromium that is installed on this machine, driven by Playwright."""

import shutil
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium():
    """The path of Chromium, or None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def started():
    """A running browser, where there is Chromium."""
    from playwright.sync_api import sync_playwright

    # A slow machine may take its time.
    options = {"args": ["--no-sandbox", "--disable-gpu"], "timeout": 0}
    with sync_playwright() as playwright:
        with playwright.chromium.launch(executable_path=chromium(), **options) as found:
            yield found
