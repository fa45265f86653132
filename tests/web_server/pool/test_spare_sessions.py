"""The session that is made ahead of its lease: when it is handed out, and when it is made."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, cast

import pytest
from server_client import Client
from server_process import serving
from server_site import Site, until

from web_server.pool import spare
from web_server.pool.spare import Spare
from web_server.session.session import Session


def test_none_is_made_while_a_request_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare, "AFTER_SECONDS", 0.0)
    asked = 0
    at_work = True
    made: list[int] = []

    def look() -> bool:
        nonlocal asked
        asked += 1
        return at_work

    async def make() -> Session:
        made.append(asked)
        return cast(Session, object())

    async def work() -> None:
        nonlocal at_work
        ahead = Spare(make, look)
        ahead.replenish()
        ahead.replenish()
        while asked < 20:
            await asyncio.sleep(0)
        assert not made and ahead.session is None
        at_work = False
        while ahead.session is None:
            await asyncio.sleep(0)
        ahead.replenish()
        assert len(made) == 1

        at_work, ahead.session = True, None
        monkeypatch.setattr(spare, "AT_LATEST_SECONDS", 0.0)
        while len(made) < 2:  # a server that is never idle gets one nevertheless
            ahead.replenish()
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(work(), 30))


@pytest.fixture(scope="module")
def server(server_site: Site) -> Iterator[Any]:
    with serving(server_site, max_browsers=2) as running:
        yield running


@pytest.fixture
def ahead(server: Any, monkeypatch: pytest.MonkeyPatch) -> Spare:
    """With a session that is ready."""
    monkeypatch.setattr(spare, "AFTER_SECONDS", 0.1)
    found: Spare = server._pool.spare
    server._loop.call(_replenish(found))
    assert until(lambda: found.session is not None)
    return found


async def _replenish(ahead: Spare) -> None:
    ahead.replenish()


def _ready(ahead: Spare) -> Session:
    assert ahead.session is not None
    return ahead.session


@pytest.mark.browser
def test_it_is_handed_out_and_another_is_made(server: Any, server_site: Site, ahead: Spare) -> None:
    ready = _ready(ahead)
    wanted = {"tabs": True, "viewport": {"width": 1280, "height": 720}, "storageState": {}}
    with Client(server.url, server_site.url, **wanted) as client:
        assert client.browser == ready.id and ready.follows_tabs
        assert "Home" in client.open("/")
        assert until(lambda: ahead.session is not None)
        assert _ready(ahead) is not ready


@pytest.mark.browser
def test_one_whose_page_crashed_is_not_handed_out(
    server: Any, server_site: Site, ahead: Spare
) -> None:
    dead = _ready(ahead)
    server._loop.call(_crash(dead))
    assert until(lambda: dead.crashed)
    with Client(server.url, server_site.url) as client:
        assert client.browser != dead.id and "Home" in client.open("/")
        assert until(lambda: not dead.folder.exists())
        assert until(lambda: ahead.session is not None) and not _ready(ahead).crashed


async def _crash(session: Session) -> None:
    page = session._context.spare
    assert page is not None
    crashing = asyncio.ensure_future(page.activity.cdp.send("Page.crash"))
    await asyncio.wait_for(page._lost.wait(), 30)  # what crashes gives no answer
    crashing.cancel()
    await asyncio.gather(crashing, return_exceptions=True)


@pytest.mark.browser
def test_who_asks_for_something_else_gets_that(
    server: Any, server_site: Site, ahead: Spare
) -> None:
    ready = _ready(ahead)
    cookie = {"name": "c", "value": "given", "domain": "127.0.0.1", "path": "/"}
    state = {
        "cookies": [cookie],
        "origins": [
            {"origin": server_site.url, "localStorage": [{"name": "k", "value": "mine"}]},
        ],
    }
    with Client(server.url, server_site.url, storageState=state) as client:
        assert client.browser != ready.id
        assert "local mine session undefined c=given" in client.open("/storage")
    size = {"width": 640, "height": 400}
    place = {"latitude": 48.0, "longitude": 11.0}
    with Client(server.url, server_site.url, viewport=size, geoLocation=place) as client:
        assert client.browser != ready.id
        client.open("/where")
        assert "'640 48'" in client.act("wait_for", text="640 48")
    # It waits for the next one who takes what there is, and knows nothing of the others.
    with Client(server.url, server_site.url) as client:
        assert client.browser == ready.id
        assert "local undefined session undefined" in client.open("/storage")
        assert "c=given" not in client.view["yaml"]
