"""`BrowserClient`: which requests are retried, and one line for every error."""

from __future__ import annotations

import socket

import pytest
from fake_wire import PNG, FakeWire

from ck_pro.exceptions import BrowserServerError, ConfigError
from ck_web.browser.client import BrowserClient, RequestRefused, server_address
from web_server.contract import PerformAction

pytestmark = pytest.mark.integration


def _opened(wire: FakeWire, url: str = "http://shop.test/") -> tuple[BrowserClient, str]:
    client = BrowserClient(wire.url)
    lease = client.get_browser(viewport=(800, 600))
    client.open_page(lease.id, url)
    return client, lease.id


def test_a_session_sends_the_expected_requests(wire: FakeWire) -> None:
    client, browser = _opened(wire)
    assert wire.requests[0] == (
        "getBrowser",
        {
            "storageState": None,
            "geoLocation": None,
            "tabs": True,
            "viewport": {"width": 800, "height": 600},
        },
    )
    assert "[3] link 'Lamps'" in client.observe(browser, "0").yaml
    message, seen, *_ = client.perform(
        PerformAction(browserId=browser, pageId="0", actionName="click", targetId="3", observe=True)
    )
    assert message == "done" and seen is not None and seen.title == "Lamps"
    assert client.take_screenshot(browser, "0") == PNG
    assert client.get_file("DownloadedFiles/b1/x-1").startswith(b"a,b")
    assert client.status()["browsers"] == [browser]
    client.close_browser(browser)
    client.close()
    assert not wire.browsers


@pytest.mark.parametrize("fault", ["drop", 502, 503])
def test_observations_are_retried(wire: FakeWire, fault: int | str) -> None:
    client, browser = _opened(wire)
    wire.fail("getAccessibilityTree", fault)
    assert client.observe(browser, "0").url == "http://shop.test/"
    assert wire.count("getAccessibilityTree") == 2
    client.close()


@pytest.mark.parametrize("fault", ["drop", 500, 503])
def test_actions_are_never_retried(wire: FakeWire, fault: int | str) -> None:
    client, browser = _opened(wire)
    wire.fail("performAction", fault, fault, fault)
    with pytest.raises(BrowserServerError) as e:
        client.perform(PerformAction(browserId=browser, actionName="click", targetId="3"))
    assert wire.count("performAction") == 1
    assert "\n" not in str(e.value) and wire.url in str(e.value)
    client.close()


def test_a_refusal_carries_status_and_reason(wire: FakeWire) -> None:
    client, browser = _opened(wire)
    with pytest.raises(RequestRefused) as e:
        client.perform(PerformAction(browserId=browser, actionName="click", targetId="99"))
    assert (e.value.status, e.value.reason) == (404, "no element 99 on this page")
    client.close()


def test_another_kind_of_server_is_reported(wire: FakeWire) -> None:
    client = BrowserClient(wire.url)
    wire.fail("getBrowser", "text")
    with pytest.raises(BrowserServerError, match="is it a browser server"):
        client.get_browser()
    client.close()


def test_a_refused_connection_is_reported() -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    client = BrowserClient(f"127.0.0.1:{port}")
    with pytest.raises(BrowserServerError, match="connection refused; start a server with"):
        client.get_browser()
    client.close()


def test_the_token_is_sent() -> None:
    with FakeWire(token="s3cret") as wire:
        client = BrowserClient(wire.url)
        with pytest.raises(RequestRefused, match="token") as e:
            client.get_browser()
        assert e.value.status == 401
        client.close()
        client = BrowserClient(wire.url, token="s3cret")
        assert client.get_browser().id == "b1"
        client.close()


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("localhost:3000", "http://localhost:3000"),
        (" https://host.example/ ", "https://host.example"),
        ("[::1]:3000", "http://[::1]:3000"),
    ],
)
def test_addresses_are_completed(text: str, url: str) -> None:
    assert server_address(text) == url


@pytest.mark.parametrize("text", ["", "http://", "host:port", "ftp://host", "host:0", "host:99999"])
def test_invalid_addresses_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        server_address(text)
