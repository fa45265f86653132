"""Fewer resamples, so that the tests of tables and reports are fast."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ck_main.analysis import statistics


@pytest.fixture(scope="module", autouse=True)
def few_resamples(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if "test_statistics" not in request.node.nodeid:
            patch.setattr(statistics, "RESAMPLES", 100)
            patch.setattr(statistics, "FLIPS", 999)
        yield
