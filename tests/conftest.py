"""Settings for all tests."""

from __future__ import annotations

import gc
import itertools
import os
import re
import signal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# plugins of other libraries are not needed, and one of them takes 0.5 s to import
os.environ.setdefault("HYPOTHESIS_NO_PLUGINS", "1")
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

import pytest
import two_processes
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# `quick` is for the unit tests; the whole suite (`make test`) uses `full`
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
PROFILE = os.environ.get("CK_TEST_PROFILE", "quick")
settings.load_profile(PROFILE)

if PROFILE == "quick":
    # a few seconds produce little garbage, collected when the session ends
    gc.set_threshold(1_000_000, 50, 100)

    # hypothesis draws constants of all loaded modules: slow for a few examples, and the examples
    # of a test would differ with the tests that run beside it
    providers._get_local_constants = lambda: providers._local_constants

    NUMBERS = itertools.count()

    @pytest.fixture
    def tmp_path(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
        """Like pytest's, in a third of the time: no search for a free name, no link to the newest.

        The folders are removed when the session ends, and kept if a test failed.
        """
        name = re.sub(r"\W", "_", request.node.name)[:30]
        folder = tmp_path_factory.getbasetemp() / f"{name}-{os.getpid()}-{next(NUMBERS)}"
        folder.mkdir(mode=0o700)
        return folder


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip the import of files whose module-level mark is excluded by `-m`."""
    if not re.fullmatch(r"not \w+( and not \w+)*", config.option.markexpr):
        return None
    if not collection_path.name.startswith("test_"):
        return None
    marks = " ".join(re.findall(r"^pytestmark = .*", collection_path.read_text(), re.MULTILINE))
    excluded = re.findall(r"not (\w+)", config.option.markexpr)
    return any(re.search(rf"\bmark\.{mark}\b", marks) for mark in excluded) or None


def pytest_collection_finish() -> None:
    """Freeze imported modules and collected tests: they stay until the end."""
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of `make unit`."""
    text = "fork after the collection, and run many fast tests in two processes"
    parser.addoption("--two-processes", action="store_true", help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Keep the order of files below; xdist would sort them by their number of tests.

    A background job of a shell ignores Ctrl-C, and so would the processes that tests interrupt.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    if config.option.two_processes:
        config.pluginmanager.register(two_processes)


# Approximate seconds of a test, by the first of its marks in this list.
SECONDS = {"slow": 8.0, "browser": 3.0, "worker": 1.0, "integration": 0.5}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip the tests marked `long` unless CK_LONG=1 is set.

    With several processes the slowest files come first, so that no process waits at the end for
    the long file of another.
    """
    if os.environ.get("CK_LONG") != "1":
        for item in items:
            if item.get_closest_marker("long"):
                item.add_marker(pytest.mark.skip(reason="long: runs with CK_LONG=1"))
    if hasattr(config, "workerinput"):
        seconds: Counter[Path] = Counter()
        for item in items:
            if not item.get_closest_marker("skip"):
                marks = (s for m, s in SECONDS.items() if item.get_closest_marker(m))
                seconds[item.path] += next(marks, 0.01)
        items.sort(key=lambda item: (-seconds[item.path], item.path))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A person's Chromium, for tests of local pages."""
    from person_browser import person_chromium  # Playwright takes long to import

    with person_chromium() as browser:
        yield browser
