"""Many sessions in a row do not leak. `CK_SOAK_SESSIONS` sets their number."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from server_client import Client
from server_process import serving
from server_site import Site, until

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))


def _samples(sizes: list[float], every: int = 50) -> list[object]:
    from soak import Sample

    return [Sample(every * (i + 1), float(i), size, 0.0, 8) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "word"),
    [
        ([300, 330, 350, *[351.0, 349.0, 350.0] * 5], "flat"),
        ([300.0] * 10 + [900.0] + [300.0] * 10, "flat"),
        ([300 + 5.0 * i for i in range(20)], "GROWS"),
        ([300.0, 400.0], "too short"),
    ],
)
def test_the_verdict_depends_on_the_slope(sizes: list[float], word: str) -> None:
    from soak import Soak

    assert Soak(_samples(sizes)).verdict().startswith(word)  # type: ignore[arg-type]


_SERVER_CLASSES = {
    "Session",
    "SessionContext",
    "Surface",
    "Tab",
    "Observer",
    "Activity",
    "Settler",
    "Realm",
}
_SERVER_CLASSES |= {"FilterProxy", "Downloads", "News"}
_PLAYWRIGHT_CLASSES = {
    "Page",
    "BrowserContext",
    "CDPSession",
    "Frame",
    "Request",
    "Response",
    "JSHandle",
}


def _alive(server: Any) -> Counter[str]:
    """How many objects there are of what a session is made of, and of what it may hold on to."""
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        module, name = str(type(each).__module__), type(each).__name__  # some have odd modules
        is_server = module.startswith("web_server.") and name in _SERVER_CLASSES
        if is_server or (module.startswith("playwright._impl") and name in _PLAYWRIGHT_CLASSES):
            found[f"{module}.{name}"] += 1
    found["tasks"] = server._loop.call(_tasks())
    found["threads"] = threading.active_count()
    return found


def _at_rest(server: Any, before: Counter[str]) -> bool:
    """Whether only the spare session remains."""
    return server._pool.spare.session is not None and not _alive(server) - before


_NOISE = 40_000  # bytes a session: half of the sources of the scripts that go with one


async def _tasks() -> int:
    return len(asyncio.all_tasks())


@pytest.mark.browser
def test_no_object_of_a_closed_session_remains(server_site: Site) -> None:
    def sessions(number: int) -> None:
        for _ in range(number):
            with Client(server.url, server_site.url, tabs=True) as client:
                client.open("/")
                client.act("click", "link 'Blank two'")

    with serving(server_site, max_browsers=1) as server:
        sessions(3)
        # One session is made ahead, a second after the last lease.
        assert until(lambda: server._pool.spare.session is not None)
        before = _alive(server)
        tracemalloc.start()
        try:
            sessions(1)
            assert until(lambda: _at_rest(server, before)), _alive(server) - before
            held, _ = tracemalloc.get_traced_memory()
            sessions(5)
            assert until(lambda: _at_rest(server, before)), _alive(server) - before
            grown = tracemalloc.get_traced_memory()[0] - held
        finally:
            tracemalloc.stop()
    # The garbage collector does not track strings and bytes; they are counted only here.
    assert grown < 5 * _NOISE, f"{grown / 5:,.0f} bytes of each session stay"


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.timeout(3600)
def test_sessions_in_a_row_do_not_leak() -> None:
    from soak import soak
    from web_contenders import BrowserServer
    from web_pages import Site

    sessions = int(os.environ.get("CK_SOAK_SESSIONS", "8"))
    with Site() as site:
        server = BrowserServer(site.host, 2)
        try:
            run = soak(server, site, sessions, every=max(1, sessions // 20))
            left = server.status()
        finally:
            server.stop()
    first, last = run.samples[0], run.samples[-1]
    assert last.sessions == sessions and not run.cut
    assert left["browsers"] == [] and left["free"] == 2
    # a renderer or two may be kept warm, or be on its way out; one for each session may not
    assert last.processes <= first.processes + 4
    assert not run.verdict().startswith("GROWS"), run.verdict()
