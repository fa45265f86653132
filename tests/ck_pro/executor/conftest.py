from __future__ import annotations

import pytest
from executor_tools import add_two

from ck_pro.executor import CodeExecutor


@pytest.fixture(scope="module")
def isolation():
    """The report of an ordinary worker on this machine."""
    with CodeExecutor() as executor:
        return executor.isolation


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """An executor that the tests of a file share, with a function and a terminal one."""
    with CodeExecutor(
        functions={"add_two": add_two, "stop": lambda output, log="": "ended"},
        terminal={"stop"},
        workdir=tmp_path_factory.mktemp("shared"),
        timeout=60,
    ) as executor:
        yield executor


@pytest.fixture
def run(shared):
    return shared.run
