"""One Chromium for all tests in a browser; they are skipped where there is none."""

import pytest
from helpers.repo import CHROMIUM, PATIENCE


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    if not CHROMIUM:
        pytest.skip("needs Chromium, which is not installed")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu"],
            timeout=1000 * PATIENCE,
        )
        yield browser
        browser.close()
