"""Settings for all tests."""

from __future__ import annotations

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

# `quick` is for the unit tests, run at every save; the whole suite (`make test`) takes `full`
settings.register_profile(
    "quick",
    max_examples=5,
    deadline=None,  # a timing never decides a test
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("full", parent=settings.get_profile("quick"), max_examples=20)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=2000)
settings.load_profile(os.environ.get("CK_TEST_PROFILE", "quick"))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the collector need not look at it."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests marked `long`, unless CK_LONG=1 asks for them."""
    if os.environ.get("CK_LONG") == "1":
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="long: runs with CK_LONG=1"))
