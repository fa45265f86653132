"""Requests through the session, and scripts in the page."""

from __future__ import annotations

import json

import pytest
from server_client import LEAN, Client
from server_site import ANSWERS, PAGES

from web_server.actions import fetching
from web_server.session import scripting

pytestmark = pytest.mark.browser


def data_of(client: Client, name: str, **more: object) -> dict[str, object]:
    body = {**LEAN, "browserId": client.browser, "pageId": client.page, "actionName": name}
    reply = client.ok("performAction", **{**body, **more})
    client.message = reply["message"]
    found: dict[str, object] = reply["data"]
    return found


def test_fetch_uses_the_cookies_of_the_session(client: Client) -> None:
    PAGES["/cookie"] = "<title>C</title><script>document.cookie = 'who=ada'</script>"
    client.open("/cookie")
    found = data_of(client, "fetch", actionValue=f"{client.site}/received")
    assert found["status"] == 200 and found["type"] == "application/json"
    assert json.loads(str(found["text"])) == {
        "cookie": "who=ada",
        "referer": f"{client.site}/cookie",
    }
    assert client.message.startswith("HTTP 200, ")
    assert client.tree()["title"] == "C"


def test_fetch_follows_redirects_and_returns_errors_of_http(client: Client) -> None:
    client.open("/two")
    found = data_of(client, "fetch", actionValue=f"{client.site}/redirect?to=/received")
    assert found["status"] == 200 and found["url"] == f"{client.site}/received"
    found = data_of(client, "fetch", actionValue=f"{client.site}/none")
    assert found["status"] == 404 and "Not here" in str(found["text"])
    found = data_of(client, "fetch", actionValue=f"{client.site}/nothing")
    assert found["status"] == 204 and found["text"] == ""
    found = data_of(client, "fetch", actionValue="/file")
    assert found["text"] == "a,b\n1,2\n"


def test_fetch_sends_a_method_a_body_and_headers(client: Client) -> None:
    client.open("/two")
    found = data_of(
        client,
        "fetch",
        actionValue=f"{client.site}/echo",
        method="post",
        text="a=1&b=\u00e4",
        headers={"X-Mark": "7", "Content-Type": "application/x-www-form-urlencoded"},
    )
    echo = json.loads(str(found["text"]))
    assert (echo["method"], echo["body"], echo["mark"]) == ("POST", "a=1&b=\u00e4", "7")
    assert echo["origin"] == client.site


def test_fetch_asks_the_site_and_not_the_cache(client: Client) -> None:
    path, cached = "/cached-for-long", {"Cache_Control": "max-age=3600"}
    ANSWERS[path] = ("text/plain", b"old", cached)
    assert "old" in client.open(path)
    ANSWERS[path] = ("text/plain", b"new", cached)
    assert data_of(client, "fetch", actionValue=client.site + path)["text"] == "new"


def test_fetch_goes_by_the_rules_of_goto(client: Client) -> None:
    client.open("/two")
    for url, why in (
        ("http://10.0.0.1/", "not a public address"),
        ("file:///etc/passwd", "only http and https"),
        (f"{client.site}/redirect?to=http://10.0.0.1/", "not a public address"),
    ):
        client.act("fetch", actionValue=url, status=409)
        assert "was not requested" in client.message and why in client.message
    client.act("fetch", actionValue=client.site, method="BREW", status=400)
    assert "method must be one of GET, POST" in client.message


def test_fetch_has_limits_of_size_and_time(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    client.open("/two")
    client.act("fetch", actionValue=f"{client.site}/endless-inline", status=409)
    assert "larger than 10,000,000 bytes" in client.message
    monkeypatch.setattr(fetching, "FETCH_SECONDS", 0.5)
    client.act("fetch", actionValue=f"{client.site}/never", status=409)
    assert "no response within 0.5 s" in client.message
    ANSWERS["/latin"] = ("text/plain; charset=latin-1", "\u00e4".encode("latin-1"), {})
    assert data_of(client, "fetch", actionValue=f"{client.site}/latin")["text"] == "\u00e4"


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("document.title", "Two"),
        ("await Promise.resolve([1, {a: null}])", [1, {"a": None}]),
        ("const x = 2; return x * 3", 6),
        ("() => 'called'", "called"),
        ("async () => { await 0; return new Set([1, 2]) }", [1, 2]),
        ("undefined", None),
        ("document.querySelector('a').getAttribute('href')", "/"),
        ("document.querySelectorAll('a').length", 1),
        ("0 / 0", "NaN"),
    ],
)
def test_a_script_returns_its_awaited_value(client: Client, script: str, value: object) -> None:
    client.open("/two")
    assert data_of(client, "evaluate", text=script) == {"value": value}


def test_a_script_acts_on_the_page(client: Client) -> None:
    client.open("/two")
    data_of(client, "evaluate", text="document.querySelector('h1').textContent = 'Changed'")
    assert client.message == "ran a script; the page changed"
    data_of(client, "evaluate", text="document.querySelector('a').click()")
    assert "the page is now" in client.message


def test_a_script_has_limits_and_clear_errors(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.open("/two")
    for script, why in (
        ("nowhere.to.go", "ReferenceError: nowhere is not defined"),
        ("throw new Error('no')", "Error: no"),
        ("a b", "SyntaxError"),
        ("'x'.repeat(2e6).split('')", "larger than 1,000,000 characters"),
    ):
        client.act("evaluate", text=script, status=409)
        assert why in client.message, client.message
    monkeypatch.setattr(scripting, "SCRIPT_SECONDS", 0.5)
    client.act("evaluate", text="new Promise(() => {})", status=409)
    assert "did not finish within 0.5 s" in client.message
    client.act("evaluate", text="for (;;) {}", status=409)
    assert data_of(client, "evaluate", text="1 + 1") == {"value": 2}
