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


SPLASH = "<div id=splash style='position: fixed; inset: 0; background: #fff'><i></i></div>"
ANSWERS["/splash.js"] = (
    "text/javascript",
    b"setTimeout(() => { title.textContent = 'Works'; splash.remove() }, 1200)",
    {},
)


def test_an_application_behind_a_splash_screen_is_not_ready(client: Client) -> None:
    PAGES["/splash"] = (
        "<title>App</title><h1 id=title>Starting up</h1><button>Run</button><p>Many words</p>"
        f"{SPLASH}<script src=/splash.js></script>"
    )
    tree = client.open("/splash")
    assert "heading 'Works'" in tree and "covered" not in tree


def test_a_cover_with_content_is_no_splash_screen(client: Client) -> None:
    PAGES["/shade"] = (
        "<title>Shade</title><button>Run</button>"
        "<div style='position: fixed; inset: 0; background: #fff'><button>Accept</button></div>"
        "<script src=/nothing.js></script>"
    )
    client.open("/shade")
    assert client.view["events"] == []


GROW = """let n = 0, at = document.body; (function grow() {
    const part = document.createElement('div'); part.innerHTML = '<b></b><i></i>';
    at.append(part); if (n % 9 === 0) at = part;
    if (++n < 150) requestAnimationFrame(grow);
    else document.body.insertAdjacentHTML('beforeend', '<a href="/">Last</a>');
})()"""
ANSWERS["/grow.js"] = ("text/javascript", GROW.encode(), {})


def test_an_application_that_grows_while_it_starts_is_awaited(client: Client) -> None:
    PAGES["/growing"] = "<title>App</title><h1>Application</h1><script src=/grow.js></script>"
    client.open("/growing")
    tree = client.ok(
        "performAction",
        **{
            "browserId": client.browser,
            "pageId": client.page,
            "actionName": "find",
            "text": "Last",
        },
    )
    assert "link 'Last'" in tree["message"]
    assert client.view["events"] == []


PAUSE = """const source = `postMessage(0); onmessage = () => setTimeout(() => postMessage(1), 250)`;
const worker = new Worker(URL.createObjectURL(new Blob([source])));
worker.onmessage = async (event) => {
    if (event.data) {
        document.body.insertAdjacentHTML('beforeend', '<button>Open</button>');
        return;
    }
    for (const n of [1, 2, 3]) await fetch('/two?' + n);
    worker.postMessage(0) }"""
ANSWERS["/pause.js"] = ("text/javascript", PAUSE.encode(), {})


def test_an_application_that_loads_data_may_pause_before_its_last_part(client: Client) -> None:
    PAGES["/pausing"] = "<title>App</title><h1>Application</h1><script src=/pause.js></script>"
    assert "button 'Open'" in client.open("/pausing")


def test_a_page_that_stays_blank_is_reported(client: Client) -> None:
    PAGES["/void"] = "<title>Void</title><body><script src=/nothing.js></script>"
    client.open("/void")
    assert BLANK in client.view["events"]


def test_a_page_with_content_is_not_blank(client: Client) -> None:
    PAGES["/full"] = "<title>Full</title><body>Words<script src=/nothing.js></script>"
    client.open("/full")
    assert client.view["events"] == []


def test_a_restless_page_is_reported_once(client: Client) -> None:
    PAGES[
        "/loading-moving"
    ] = """<title>Moving</title><button>Press</button><p id=box>moves</p><script>
        (function move() { box.animate([{ transform: 'none' }, { transform: 'translateX(9px)' }],
        500).onfinish = move })()</script>"""
    client.open("/loading-moving")
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
