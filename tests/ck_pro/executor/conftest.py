from __future__ import annotations

import pytest

from ck_pro.executor import CodeExecutor


@pytest.fixture(scope="module")
def isolation():
    """The report of an ordinary worker on this machine."""
    with CodeExecutor() as executor:
        return executor.isolation
