"""Hostile pages are contained, and malformed requests get errors."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from server_client import Client
from server_site import Site, until

from web_server import deadline
from web_server.actions.registry import action_names
from web_server.contract import PerformAction

pytestmark = pytest.mark.browser


def test_pages_reach_neither_private_addresses_nor_files(client: Client) -> None:
    tree = client.open("/private")
    assert "'refused'" in tree and "root:" not in tree
    assert any("10.0.0.1" in line for line in client.view["events"])
    assert "secret" not in client.go("/redirect-private").replace("/secret", "")


def test_a_hundred_popups_become_one(client: Client) -> None:
    client.open("/popups")
    assert "Tab 0 (current): Two" in client.act("click", "button 'Many'")
    assert "Tab 0 (current): Popups" in client.act("goback")


def test_endless_alerts_end(client: Client) -> None:
    client.open("/dialogs")
    assert "20 dialogs in a row" in client.act("click", "button 'Forever'")
    assert "hello" in client.act("click", "button 'Alert'")


@pytest.mark.slow
def test_an_endless_script_is_stopped(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.open("/busy")
    with monkeypatch.context() as shorter:
        shorter.setattr(deadline, "REQUEST_SECONDS", 9.0)
        assert "ran too long" in client.act("click", "button 'Loop'")
    assert "Second page" in client.go("/two")


def test_an_endless_download_is_cancelled(client: Client) -> None:
    client.open("/")
    client.go("/huge")
    events: list[str] = list(client.view["events"])
    assert until(
        lambda: events.extend(client.tree()["events"]) or any("refused" in e for e in events)  # type: ignore[func-returns-value]
    )
    assert client.view["downloaded_file_path"] == []


def test_other_files_are_not_served(client: Client, server_url: str) -> None:
    client.open("/")
    client.act("click", "link 'Get file'")
    (path,) = client.view["downloaded_file_path"]
    for name in (
        "/etc/passwd",
        "DownloadedFiles/../../etc/passwd",
        f"DownloadedFiles/{client.browser}/../../x",
        path + "\0",
        path.replace(client.browser, "0" * 32),
        "",
    ):
        assert client.post("getFile", filename=name).status_code == 404


@pytest.mark.parametrize(
    ("route", "body", "status"),
    [
        ("getBrowser", {"storageState": "no json"}, 400),
        ("getBrowser", {"storageState": {"cookies": [{"bad": 1}]}}, 400),
        ("getBrowser", {"geoLocation": {"latitude": 900, "longitude": 1}}, 400),
        ("getBrowser", {"viewport": {"width": 1}}, 400),
        ("getBrowser", {"leaseSeconds": -1}, 400),
        ("closeBrowser", {"browserId": "nope"}, 404),
        ("closeBrowser", {}, 400),
        ("openPage", {"browserId": "nope", "url": "http://example.com"}, 404),
        ("getAccessibilityTree", {"browserId": None}, 400),
        ("renewBrowser", {"browserId": "nope"}, 404),
        ("nowhere", {}, 404),
    ],
)
def test_malformed_requests_get_400(
    server_url: str, route: str, body: dict[str, Any], status: int
) -> None:
    reply = requests.post(f"{server_url}/{route}", json=body, timeout=60)
    assert reply.status_code == status, reply.text
    assert reply.json()["error"] and "\n" not in reply.json()["error"]


@pytest.mark.parametrize("data", [b"{", b"[1]", b'"x"', b"\xff", b"[" * 100_000, b"1" * 9000])
def test_bodies_that_are_not_json_objects_get_400(server_url: str, data: bytes) -> None:
    reply = requests.post(f"{server_url}/openPage", data=data, timeout=60)
    assert reply.status_code == 400 and reply.json()["error"]


def test_malformed_requests_for_a_page_get_an_error(client: Client) -> None:
    where = {"browserId": client.browser}
    assert client.post("getAccessibilityTree", **where).status_code == 404
    assert client.post("openPage", **where).status_code == 400
    client.open("/")
    assert client.post("getAccessibilityTree", **where, pageId="7").status_code == 404
    assert client.post("gotoUrl", **where, pageId=0).status_code == 400
    act = {**where, "pageId": "0", "actionName": "click"}
    assert client.post("performAction", **where).status_code == 400
    assert client.post("performAction", **act).status_code == 400
    assert client.post("performAction", **act, targetId="x").status_code == 400
    assert client.post("performAction", **act, targetId=4711).status_code == 404
    assert client.post("performAction", **act, targetId="9" * 400).status_code == 404
    assert requests.get(f"{client.server}/openPage", timeout=60).status_code == 405


def test_requests_of_web_pages_are_refused(server_url: str) -> None:
    reply = requests.post(
        f"{server_url}/getBrowser", json={}, headers={"Origin": "http://evil.example"}, timeout=60
    )
    assert reply.status_code == 403


_FIELDS = [name for name in PerformAction.model_fields if name not in ("browserId", "timeout")]
_ANY = st.none() | st.booleans() | st.integers(-5, 5000) | st.text(max_size=8) | st.lists(st.text())


@given(st.sampled_from([n for n in action_names() if n != "wait"]), st.data())
def test_no_action_request_causes_an_internal_error(
    fuzzed: Client, name: str, data: st.DataObject
) -> None:
    body = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(_FIELDS, _ANY)))
    reply = fuzzed.post(
        "performAction",
        **{**body, "browserId": fuzzed.browser, "pageId": "0", "actionName": name, "timeout": 10},
    )
    assert reply.status_code in (200, 400, 404, 409), reply.text
    assert reply.json()


@pytest.fixture(scope="module")
def fuzzed(server_url: str, server_site: Any) -> Any:
    with Client(server_url, server_site.url) as leased:
        leased.open("/form")
        yield leased


def test_sessions_do_not_share_downloads(client: Client, tabs_client: Client) -> None:
    for each in (client, tabs_client):
        each.open("/")
    client.act("click", "link 'Get file'")
    assert "downloaded _data.csv" in client.message
    tabs_client.go("/two")
    assert tabs_client.view["events"] == [] and tabs_client.view["downloads"] == []
    tabs_client.go("/opens-file")
    tabs_client.act("click", "button 'Open'")
    assert until(lambda: tabs_client.tree()["downloads"] != [])
    assert len(client.tree()["downloads"]) == 1


def test_a_client_can_restrict_its_own_browser(server_url: str, server_site: Site) -> None:
    place = server_site.url.removeprefix("http://")
    with Client(server_url, server_site.url, block=[place]) as narrow:
        assert "blocked by the rules of this browser" in narrow.open("/")
        with Client(server_url, server_site.url) as other:
            assert "heading 'Home'" in other.open("/")
    with Client(server_url, server_site.url) as client:
        for rules in ({"allow": ["10.0.0.1"]}, {"block": ["http://x"]}):
            reply = client.post("getBrowser", **rules)
            assert reply.status_code == 400, reply.text
