"""A client of the old wire browses the demo's shop in thirty steps of every kind."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Iterator

import pytest
from old_client import OldClient
from pages_site import serve

from ck_main.demo_site import DemoSite
from ck_web.browser import shared_servers

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PNG = b"\x89PNG\r\n"

MENU = """<title>Menus</title><h1>It's a "menu"</h1>
<button aria-haspopup=menu aria-expanded=false aria-controls=m id=b
 onclick="m.hidden = false; b.setAttribute('aria-expanded', 'true')">More</button>
<ul role=menu id=m hidden><li role=menuitem tabindex=-1
 onclick="m.hidden = true; b.setAttribute('aria-expanded', 'false'); s.textContent = 'archived'">
Archive</li><li role=menuitem tabindex=-1>Delete
 it</li></ul><p id=s>two
lines</p><a href="/more" target=_blank>New window</a><button onclick="alert('Hi')">Say</button>"""


@pytest.fixture
def client() -> Iterator[OldClient]:
    """An old client on its own server."""
    server = shared_servers.acquire_server(shared_servers.ServerOptions(allow=("127.0.0.1",)))
    client = OldClient(server.url, server.token)
    yield client
    client.close()
    shared_servers.stop_servers()


def test_the_reference_client_makes_thirty_steps_in_the_shop(client: OldClient) -> None:
    with DemoSite() as site:
        client.open(site.origin + "/")
        _catalogue(client)
        _stations_and_workshop(client, site.origin)
        _order(client, site.origin)
        _dialogs_and_errors(client, site.origin)
        _downloads(client, site.origin)
        client.act("restart")
        assert client.seen["url"] == site.origin + "/"
        assert client.round >= 30 and len(client.tabs) == 1


def _catalogue(client: OldClient) -> None:
    client.act("click", client.find("link", "Catalogue"))
    first = client.round
    url, image, html = client.seen["url"], client.seen["nonboxed_screenshot"], client.seen["html"]
    client.act("select", client.find("combobox", "Category"), "Rain gauges")
    client.act("click", client.find("checkbox", "In stock only"))
    assert client.shows("8 instruments found")
    client.act("click", client.find("button", "Next page"))
    client.act("click", client.find("link", "Rill Tipping"))
    assert client.elements[0].name.startswith("Rill Tipping")
    client.act("goback")
    client.type(client.find("searchbox", "Search words"), "tipping", True)
    assert client.find("link", "Rill Tipping") and not client.shows("Beck Plain")
    assert base64.b64encode(client.image(first)).decode() == image
    assert client.html(first) == (url, html)
    assert client.full_screenshot().startswith(PNG)


def _stations_and_workshop(client: OldClient, origin: str) -> None:
    client.goto(f"{origin}/guides/rain-gauge")
    for way in ("down", "up"):
        client.act("scroll", value=way)
        above = re.search(r"(\d+) px above, \d+ px below", client.elements[1].name)
        assert above and (int(above[1]) > 0) is (way == "down")
    client.goto(f"{origin}/stations")
    client.act("click", client.find("link", "Ashby Mill"))
    client.act("goback")
    client.act("click", client.find("link", "Ashby Moor"))
    assert client.shows("Tobias Renn")
    client.act("goto", value=f"{origin}/service/workshop")
    for _ in range(20):
        if client.shows("W-2041"):
            break
        client.act("wait")
    client.act("click", client.find("link", "calibration laboratory"))
    client.type(client.find("textbox", "Ticket number"), "W-2041", True)
    assert client.shows("C-7725"), "the tree contains frames"


def _order(client: OldClient, origin: str) -> None:
    client.goto(f"{origin}/order")
    client.act("select", client.find("combobox", "Instrument"), "Ling Digital")
    for name, text in [
        ("Quantity", "2"),
        ("Your name", "Nora Ellwood"),
        ("Email address", "nora.ellwood@example.org"),
        ("Postcode", "40131"),
    ]:
        client.type(client.find("textbox", name), text, False)
    client.act("click", client.find("radio", "Home delivery"))
    client.act("click", client.find("checkbox", "I accept the terms of sale"))
    client.act("click", client.find("button", "Place order"))
    assert client.shows("FH-965646")


def _dialogs_and_errors(client: OldClient, origin: str) -> None:
    client.goto(f"{origin}/trade")
    client.act("click", client.find("button", "Show trade code"))
    # a dialog with a question is dismissed; the tree reports it to a client without answer_dialog
    assert client.shows("dismissed") and not client.shows("MARREN-7-TRADE")
    client.goto(f"{origin}/archive")
    client.act("click", client.find("link", "Readings of 2019"))
    assert client.shows("500")
    client.goto(f"{origin}/no/such/page")
    assert client.shows("404")
    client.goto("http://10.0.0.1/")
    assert client.shows("not a public address")
    client.goto(f"{origin}/old-shop")
    assert "/catalogue" in client.seen["url"]


def _downloads(client: OldClient, origin: str) -> None:
    client.goto(f"{origin}/downloads")
    client.act("click", client.find("link", "rainfall-2024.csv"))
    (path,) = client.seen["downloaded_file_path"]
    assert path.startswith(f"DownloadedFiles/{client.browser}/")
    rows = list(csv.DictReader(io.StringIO(client.file(path).decode())))
    assert rows[0].keys() == {"station", "region", "month", "rainfall_mm"}


def test_the_reference_client_handles_menus_quotes_and_windows(client: OldClient) -> None:
    more = "<title>More</title><h1>More</h1>"
    with serve({"/": MENU, "/more": more}) as url:
        client.open(url)
        assert client.find("heading", 'It\'s a "menu"')
        client.act("click", client.find("button", "More"))
        button = client.find("button", "More")
        names = [(e.role, e.name) for e in button.below if e.role == "menuitem"]
        assert names == [("menuitem", "Archive"), ("menuitem", "Delete it")]
        client.act("select", button, "Archive")
        assert client.shows("archived")
        client.act("click", client.find("button", "Say"))
        assert client.shows("Hi")
        client.act("click", client.find("link", "New window"))
        assert client.tabs == [("0", True, "More")], "a new window opens in place"
        client.act("goback")
        assert client.find("button", "More")
