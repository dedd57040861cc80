"""One Chromium for all tests in a browser; they are skipped where there is none."""

import pytest

from tools import chromium


@pytest.fixture(scope="session")
def browser():
    pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    if not chromium.chromium():
        pytest.skip("needs Chromium, which is not installed")
    with chromium.started() as browser:
        yield browser
