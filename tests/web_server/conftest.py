"""Fixtures for the tests of the browser server: a site, a server, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from server_client import Client
from server_process import serving
from server_site import Site


@pytest.fixture(scope="session")
def server_site() -> Iterator[Site]:
    site = Site()
    yield site
    site.shutdown()
    site.server_close()


@pytest.fixture(scope="session")
def server_url(server_site: Site) -> Iterator[str]:
    """A browser server that may reach the site, in this process."""
    limits = {"max_browsers": 3, "max_waiting": 2, "queue_seconds": 20, "max_download": 2_000_000}
    with serving(server_site, **limits) as server:
        yield server.url


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
