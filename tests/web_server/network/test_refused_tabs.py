"""A URL that the policy refuses opens no extra tab."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

REFUSED = "http://127.0.0.1:8099/secret"
BY_ADDRESS = "http://localhost:8099/secret"

PAGES["/refused-tabs"] = f"""<title>Opener</title>
    <a href="{REFUSED}" target="_blank">Link</a> <a href="{REFUSED}" target="_blank"
    rel="opener">With opener</a> <button onclick="window.open('{REFUSED}')">Open</button>
    <button onclick="setTimeout(() => window.open('{REFUSED}'), 100)">Later</button>
    <form action="{REFUSED}" target="_blank"><button>Send</button></form>"""
OPENERS = ["link 'Link'", "link 'With opener'", "button 'Open'", "button 'Later'", "button 'Send'"]


@pytest.mark.parametrize("url", [REFUSED, BY_ADDRESS])
@pytest.mark.parametrize("tabs", [True, False])
def test_open_page_with_a_refused_url_keeps_the_current_page(
    client: Client, tabs_client: Client, url: str, tabs: bool
) -> None:
    used = tabs_client if tabs else client
    used.open("/two")
    reply = used.ok("openPage", browserId=used.browser, url=url, observe=True)
    view = reply["observation"]
    assert reply["pageId"] == used.page
    assert [tab["title"] for tab in view["tabs"]] == ["Two"]
    assert "not a public address" in view["yaml"]
    assert "Second page" in view["yaml"]
    assert view["refused"] == {"place": url.split("/")[2], "private": True}


def test_the_only_page_of_a_browser_shows_the_refusal(client: Client) -> None:
    reply = client.ok("openPage", browserId=client.browser, url=REFUSED, observe=True)
    assert len(reply["observation"]["tabs"]) == 1
    assert reply["observation"]["refused"]


@pytest.mark.parametrize("url", [REFUSED, BY_ADDRESS])
def test_new_tab_with_a_refused_url_opens_none(tabs_client: Client, url: str) -> None:
    tabs_client.open("/two")
    assert "not a public address" in tabs_client.act("new_tab", actionValue=url)
    assert [tab["title"] for tab in tabs_client.view["tabs"]] == ["Two"]


@pytest.mark.parametrize("opener", OPENERS)
@pytest.mark.parametrize("tabs", [True, False])
def test_a_pop_up_with_a_refused_url_is_closed_before_the_observation(
    client: Client, tabs_client: Client, opener: str, tabs: bool
) -> None:
    used = tabs_client if tabs else client
    used.open("/refused-tabs")
    tree = used.act("click", opener)
    assert [tab["title"] for tab in used.view["tabs"]] == ["Opener"]
    assert "button 'Open'" in tree
    assert sum("8099/secret" in line for line in used.view["events"]) == 1
    assert "closed the page that opened" in tree


def test_a_refused_goto_does_not_change_a_stopped_page(client: Client) -> None:
    PAGES["/refused-loop"] = "<title>Loop</title><h1>Here</h1><script>location.reload()</script>"
    client.open("/refused-loop")
    assert "Here" in client.go(REFUSED)
    assert "Here" in client.act("goto", actionValue=REFUSED)
