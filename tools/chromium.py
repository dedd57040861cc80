"""A Chromium that is installed on this machine, driven by Playwright."""

import shutil
from contextlib import contextmanager

NAMES = ("chromium", "chromium-browser", "google-chrome")


def chromium():
    """The path of Chromium, or None where there is none."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def started():
    """A running browser. Raises FileNotFoundError where there is no Chromium."""
    from playwright.sync_api import sync_playwright

    if not chromium():
        raise FileNotFoundError(f"no Chromium is installed: none of {', '.join(NAMES)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium(),
            args=["--no-sandbox", "--disable-gpu"],
            timeout=0,  # a slow machine may take its time
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def page(**options):
    """A page of a browser of its own; options: those of `browser.new_page`."""
    with started() as browser:
        tab = browser.new_page(
            **{"viewport": {"width": 1280, "height": 720}, **options}
        )
        tab.set_default_timeout(0)
        yield tab
