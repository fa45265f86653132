"""Fixtures of the web agent's tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fake_wire import FakeWire


@pytest.fixture
def wire() -> Iterator[FakeWire]:
    """A fake browser server."""
    with FakeWire() as server:
        yield server
