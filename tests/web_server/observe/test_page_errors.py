"""Script errors explain an empty page and an action without effect."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/blank-app"] = """<title>App</title><div id=root></div><script src="/no-app.js"></script>
    <script>start({})</script>"""
PAGES["/fine-app"] = """<title>Fine</title><h1>Shop</h1><p>Lamps</p><p>Desks</p>
    <button onclick="nothing.here()">Buy</button><button onclick="out.textContent = 'ok'; oops()">
    Show</button><p id=out>-</p><img src="/no-picture" alt=""><script src="/no-tracker.js"></script>
    <script>track()</script>"""


def test_an_empty_page_is_explained_by_its_failed_scripts(client: Client) -> None:
    tree = client.open("/blank-app")
    (line,) = [each for each in tree.split("\n") if "[0]" in each]
    assert 'uncaught "start is not defined"' in line
    assert "/no-app.js: HTTP status 404" in line
    assert "goto its URL to reload it" in line


def test_a_page_with_content_does_not_report_failed_trackers(client: Client) -> None:
    assert "[0]" not in client.open("/fine-app")
    assert "[0]" not in client.act("click", "button 'Show'")
    assert client.message == "clicked button 'Show'; the page changed"


def test_an_action_without_effect_is_explained_by_its_script_error(client: Client) -> None:
    client.open("/fine-app")
    client.act("click", "button 'Buy'")
    assert "uncaught 'nothing is not defined'" in client.message
    assert "tracker" not in client.message
    assert client.message.endswith("; nothing changed")


def test_a_failed_background_request_is_reported_each_time(client: Client) -> None:
    PAGES["/saves"] = """<title>Saves</title><p id=out>-</p><button onclick="out.textContent += 'x';
        fetch('/no-api?n=1').then(() => { out.textContent += 'ok' })">Save</button>
        <button onclick="out.textContent += 'y'">Other</button>"""
    client.open("/saves")
    for _ in range(2):
        client.act("click", "button 'Save'")
        (event,) = client.view["events"]
        assert event.startswith("a background request failed: 127.0.0.1")
        assert event.endswith("/no-api: HTTP status 404")
    client.act("click", "button 'Other'")
    assert client.view["events"] == []


def test_errors_of_the_previous_page_are_not_reported(client: Client) -> None:
    PAGES["/bare"] = "<title>Bare</title>"
    client.open("/blank-app")
    assert "[0]" not in client.go("/bare")


def test_endless_script_errors_are_reported_in_one_line(client: Client) -> None:
    PAGES["/failing"] = """<title>F</title><script>for (let i = 0; i < 500; i += 1)
        setTimeout(() => { throw new Error('x'.repeat(5000) + i) })</script>"""
    tree = client.open("/failing")
    assert tree.count("[0]") == 1 and len(tree) < 1000
