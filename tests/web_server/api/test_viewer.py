"""The page on which a person sees a leased browser and acts in it."""

from __future__ import annotations

import pytest
import requests
from server_client import Client
from server_process import Process
from server_site import PAGES, Site, until

from web_server.contract import view_path

pytestmark = pytest.mark.browser

FORM = """<title>Robot check</title><body style="margin:0">
<button style="position:absolute;left:0;top:0;width:200px;height:60px"
  onclick="this.textContent='A person'">I am not a robot</button>
<input aria-label="Code" autofocus style="position:absolute;left:0;top:100px"></body>"""
PAGES["/robot-check"] = FORM


def test_a_person_clicks_and_types_on_the_page_of_a_parked_browser(client: Client) -> None:
    client.open("/robot-check")
    client.ok("renewBrowser", browserId=client.browser, parked=True)
    address = f"{client.server}/{view_path('', client.browser)}"
    page = client.http.get(address, timeout=60)
    assert page.status_code == 200 and "nonce-" in page.headers["Content-Security-Policy"]
    image = client.http.get(f"{address}/image", timeout=60)
    assert image.headers["Content-Type"] == "image/jpeg" and image.content.startswith(b"\xff\xd8")
    inputs = [
        {"kind": "click", "x": 100, "y": 30},
        {"kind": "click", "x": 20, "y": 110},
        {"kind": "type", "text": "42"},
        {"kind": "press", "text": "Home"},
        {"kind": "type", "text": "1"},
    ]
    for one in inputs:
        reply = client.http.post(f"{address}/input", json=one, timeout=60)
        assert reply.status_code == 200, reply.text
    (lease,) = (b for b in _status(client) if client.browser.startswith(b["browserId"]))
    assert lease["parked"], "a look at the page must not change the lease"
    tree = client.tree()["yaml"]
    assert "button 'A person'" in tree and "142" in tree
    assert client.http.post(f"{address}/input", json={"kind": "x"}, timeout=60).status_code == 400


@pytest.mark.slow
def test_a_real_browser_shows_the_page_and_passes_on_a_click_and_text(server_site: Site) -> None:
    with (
        Process("--allow", "127.0.0.1", site=server_site) as server,
        Client(server.url, server_site.url) as agent,
        Client(server.url, server.url) as person,
    ):
        agent.open("/robot-check")
        person.open(f"/{view_path('', agent.browser)}")
        person.act("wait_for", text="Connected.", timeout=20_000)
        picture = person.id_of("image 'the page'")
        person.act("click_at", targetId=picture, x=100, y=30)
        person.act("wait_for", text="clicked", timeout=20_000)
        person.act("click_at", targetId=picture, x=20, y=110)
        person.act("press", keys=["4"])
        person.act("press", keys=["2"])
        person.act("wait_for", text="typed", timeout=20_000)
        until(lambda: "42" in agent.tree()["yaml"])
        assert "button 'A person'" in agent.tree()["yaml"]


@pytest.mark.parametrize("path", ["view/{short}/wrong", "view/other/{key}"])
def test_an_address_without_the_key_shows_nothing(client: Client, path: str) -> None:
    key = view_path("", client.browser).rpartition("/")[2]
    address = f"{client.server}/{path.format(short=client.browser[:8], key=key)}"
    for name in ("", "/image"):
        assert client.http.get(address + name, timeout=60).status_code == 404
    assert client.http.post(f"{address}/input", json={}, timeout=60).status_code == 404


def test_the_key_depends_on_the_token_and_hides_the_browser_id() -> None:
    one, other = view_path("token", "abcdefgh-secret"), view_path("", "abcdefgh-secret")
    assert one != other and "secret" not in one + other


def test_a_person_needs_the_key_but_no_token(client: Client) -> None:
    header = {"Sec-Fetch-Site": "same-origin", "Origin": client.server}
    address = f"{client.server}/{view_path('', client.browser)}"
    assert requests.get(address, headers=header, timeout=60).status_code == 200
    assert requests.get(f"{client.server}/status", headers=header, timeout=60).status_code == 403


def _status(client: Client) -> list[dict[str, object]]:
    found: list[dict[str, object]] = client.http.get(f"{client.server}/status").json()["browsers"]
    return found
