"""Fewer resamples, so that the tests of tables and reports are fast."""

from __future__ import annotations

import pytest

from ck_main.analysis import statistics


@pytest.fixture(autouse=True)
def few_resamples(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "test_statistics" not in request.node.nodeid:
        monkeypatch.setattr(statistics, "RESAMPLES", 100)
        monkeypatch.setattr(statistics, "FLIPS", 999)
