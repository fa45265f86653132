"""The viewer's page on runs of every kind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from viewer_client import ViewerClient
from viewer_pages import (
    Viewer,
    hostile_run,
    long_run,
    output_of,
    parallel_run,
    picture_run,
    serving,
)
from viewer_runs import small_run

from ck_pro.local_page.app import LocalApp


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalApp]:
    """The viewer of two outputs: a (five kinds of runs) and b (two of its tasks again)."""
    folder = tmp_path_factory.mktemp("runs")
    first = output_of(
        folder,
        "a",
        [
            partial(small_run, task_id="one"),
            partial(parallel_run, task_id="parallel"),
            partial(long_run, task_id="long", steps=40),
            partial(picture_run, task_id="picture"),
            hostile_run,
        ],
    )
    second = output_of(
        folder,
        "b",
        [partial(small_run, task_id="one", output="7"), partial(small_run, task_id="parallel")],
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        with serving(first, second) as app:
            yield app


@pytest.fixture
def viewer(chromium: Browser, served: LocalApp) -> Iterator[Viewer]:
    made = Viewer(chromium, served)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def cache_of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the search index out of the user's cache folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def viewers(tmp_path: Path) -> Iterator[Any]:
    """Open viewers that end with the test."""
    opened: list[ViewerClient] = []

    def view(*runs: Path) -> ViewerClient:
        opened.append(ViewerClient(*runs, cache=tmp_path / "cache"))
        return opened[-1]

    yield view
    for one in opened:
        one.stop()
