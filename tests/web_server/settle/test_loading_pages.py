"""Documents that load for a while, or never become quiet, and the events that say so."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import ANSWERS, PAGES

pytestmark = pytest.mark.browser

FILL = "setTimeout(() => { document.body.innerHTML = '<button>Ready</button>' }, 1200)"
ANSWERS["/fill.js"] = ("text/javascript", FILL.encode(), {})
ANSWERS["/nothing.js"] = ("text/javascript", b"0", {})
BLANK = "the page is still loading: it shows nothing yet"


@pytest.mark.parametrize(
    "splash",
    [
        "",
        "<div id=root></div>",
        "<p>Loading the application...</p>",
        "<p hidden>Text</p><svg></svg>",
    ],
    ids=["empty", "a root", "a splash text", "a picture"],
)
def test_an_application_is_observed_when_it_shows_something(client: Client, splash: str) -> None:
    PAGES["/app"] = f"<title>App</title><body>{splash}<script src=/fill.js></script>"
    assert "button 'Ready'" in client.open("/app")
    assert not [event for event in client.view["events"] if "loading" in event]


def test_a_page_that_stays_blank_is_reported(client: Client) -> None:
    PAGES["/void"] = "<title>Void</title><body><script src=/nothing.js></script>"
    client.open("/void")
    assert BLANK in client.view["events"]


def test_a_page_with_content_is_not_blank(client: Client) -> None:
    PAGES["/full"] = "<title>Full</title><body>Words<script src=/nothing.js></script>"
    client.open("/full")
    assert client.view["events"] == []


def test_a_restless_page_is_reported_once(client: Client) -> None:
    PAGES["/moving"] = """<title>Moving</title><button>Press</button><p id=box>moves</p><script>
        (function move() { box.animate([{ transform: 'none' }, { transform: 'translateX(9px)' }],
        500).onfinish = move })()</script>"""
    client.open("/moving")
    events = list(client.view["events"])
    for _ in range(2):
        client.act("click", "button 'Press'")
        events += client.view["events"]
    assert events.count("the page keeps changing") == 1


def test_a_request_longer_than_the_wait_is_reported(client: Client) -> None:
    PAGES["/slow-data"] = (
        "<title>Slow</title><button onclick=\"fetch('/never')\">Load</button><p>0 orders</p>"
    )
    client.open("/slow-data")
    assert client.view["events"] == []
    client.act("click", "button 'Load'")
    assert "the page is still loading: values may be placeholders" in client.view["events"]
