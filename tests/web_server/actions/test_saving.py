"""What is at a URL is saved through the session, whether the browser would show it or not."""

from __future__ import annotations

import base64
import json

import pytest
from server_client import Client
from server_site import ANSWERS, PICTURE, Site

from web_server.actions.saving import as_download

pytestmark = pytest.mark.browser

ANSWERS["/inline.png"] = ("image/png", b"\x89PNG inline", {})
ANSWERS["/data.json"] = ("application/json", b'{"a": 1}', {})
ANSWERS["/named"] = (
    "text/plain",
    b"named",
    {"Content_Disposition": 'inline; filename="list of things.txt"'},
)


def save(client: Client, path: str, *, status: int = 200) -> bytes:
    """Save what is at a path of the site; its content."""
    url = path if "://" in path else client.site + path
    client.act("save", actionValue=url, status=status)
    if status != 200:
        return b""
    answer = client.ok("getFile", filename=client.view["downloaded_file_path"][-1])
    return base64.b64decode(answer["file"])


def test_what_the_browser_shows_inline_is_saved(client: Client) -> None:
    client.open("/two")
    assert save(client, "/inline.png") == b"\x89PNG inline"
    assert client.message.startswith("saved inline.png (11 bytes, image/png) from http://")
    assert save(client, "/data.json") == b'{"a": 1}'
    assert save(client, "/pixel") == PICTURE
    assert save(client, "/named") == b"named" and "saved list of things.txt (5" in client.message
    assert save(client, "/file") == b"a,b\n1,2\n" and "data.csv" in client.message
    assert "Second page" in client.view["yaml"] and len(client.view["tabs"]) == 1
    assert client.view["events"] == []


def test_a_save_sends_the_cookies_of_the_session_and_the_page_as_referrer(client: Client) -> None:
    client.open("/storage")
    client.act("click", "button 'Save'")
    received = json.loads(save(client, "/received"))
    assert received["cookie"] == "c=1" and received["referer"] == client.site + "/storage"


def test_redirects_are_followed(client: Client) -> None:
    client.open("/two")
    assert save(client, "/redirect?to=%2Fdata.json") == b'{"a": 1}'


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/missing", "HTTP status 404"),
        ("/nothing", "HTTP status 204"),
        ("/redirect?to=http%3A%2F%2F10.0.0.1%2Fx", "not a public address"),
        ("http://10.0.0.1/x.png", "not a public address"),
        ("file:///etc/passwd", "only http and https"),
        ("/huge", "more than 2,000,000 bytes"),
        ("/endless-inline", "more than 2,000,000 bytes"),
    ],
)
def test_what_cannot_be_saved_is_refused_with_the_reason(
    client: Client, path: str, reason: str
) -> None:
    client.open("/two")
    save(client, path, status=409)
    assert "was not saved: " in client.message and reason in client.message
    assert client.view["downloaded_file_path"] == [] and "Second page" in client.view["yaml"]


def test_a_save_needs_an_address(client: Client) -> None:
    client.open("/two")
    client.act("save", status=400)
    assert client.message == "save needs a URL as actionValue"


def test_several_saves_leave_no_page_behind(client: Client, server_site: Site) -> None:
    client.open("/two")
    for _ in range(3):
        assert save(client, "/data.json")
    names = [path.rsplit("/", 1)[1] for path in client.view["downloaded_file_path"]]
    assert names == ["data.json", "data (2).json", "data (3).json"]
    status = client.http.get(f"{client.server}/status", timeout=20).json()
    assert [
        b["pages"] for b in status["browsers"] if client.browser.startswith(b["browserId"])
    ] == [1]


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ("", "attachment"),
        ("inline", "attachment"),
        ("inline; filename=a.txt", "attachment; filename=a.txt"),
        ("attachment; filename*=UTF-8''%C3%A4.txt", "attachment; filename*=UTF-8''%C3%A4.txt"),
    ],
)
def test_an_answer_becomes_a_download_under_its_name(given: str, changed: str) -> None:
    headers = [{"name": "X", "value": "1"}]
    headers += [{"name": "content-disposition", "value": given}] if given else []
    assert as_download(headers) == [
        {"name": "X", "value": "1"},
        {"name": "Content-Disposition", "value": changed},
    ]
