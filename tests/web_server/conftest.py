"""Fixtures for the tests of the browser server: a site, a server, and a client of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from server_client import Client
from server_site import Site

from web_server.chromium import find_chromium
from web_server.policy import Policy
from web_server.pool import PoolOptions


@pytest.fixture(scope="session")
def server_site() -> Iterator[Site]:
    site = Site()
    yield site
    site.shutdown()
    site.server_close()


@pytest.fixture(scope="session")
def server_url(server_site: Site) -> Iterator[str]:
    """A browser server that may reach the site, in this process."""
    from web_server.server import Server

    options = PoolOptions(
        chromium=find_chromium(),
        policy=Policy.of(allow=[f"127.0.0.1:{server_site.server_port}"]),
        max_browsers=3,
        max_waiting=2,
        queue_seconds=20,
        max_download=2_000_000,
    )
    server = Server(options)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server.url
    server.stop()
    thread.join(20)


@pytest.fixture
def client(server_url: str, server_site: Site) -> Iterator[Client]:
    """A leased browser that shows nothing yet."""
    with Client(server_url, server_site.url) as leased:
        yield leased


@pytest.fixture
def tabs_client(server_url: str, server_site: Site) -> Iterator[Client]:
    """A leased browser whose client follows tabs."""
    with Client(server_url, server_site.url, tabs=True) as leased:
        yield leased
