"""What the tests of the command line have in common."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module", autouse=True)
def any_chromium(request: pytest.FixtureRequest) -> Iterator[None]:
    """Something that can be found as Chromium, in modules that open no browser."""
    with pytest.MonkeyPatch.context() as patch:
        if request.node.get_closest_marker("browser") is None:
            patch.setenv("CK_CHROMIUM", sys.executable)
        yield
