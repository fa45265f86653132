"""What the tests of the command line have in common."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def any_chromium() -> Iterator[None]:
    """Something that can be found as Chromium: no test here opens a browser."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CK_CHROMIUM", sys.executable)
        yield
