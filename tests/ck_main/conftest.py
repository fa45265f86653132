"""What the tests of the command line have in common."""

import sys

import pytest


@pytest.fixture(autouse=True)
def any_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that can be found as Chromium: no test here opens a browser."""
    monkeypatch.setenv("CK_CHROMIUM", sys.executable)
