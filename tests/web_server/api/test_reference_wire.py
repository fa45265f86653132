"""The wire protocol of the previous system, with the rules that its clients need."""

from __future__ import annotations

import base64
import re

import pytest
from server_client import Client

pytestmark = pytest.mark.browser

OLD_KEYS = {
    "yaml": str,
    "fulltree": str,
    "url": str,
    "html": str,
    "snapshot": dict,
    "nonboxed_screenshot": str,
    "boxed_screenshot": str,
    "downloaded_file_path": list,
}


def _old_action(client: Client, name: str, target: str = "", value: str | None = None) -> None:
    """An action as an old client sends it, nulls and hints included."""
    reply = client.post(
        "performAction",
        browserId=client.browser,
        pageId=client.page,
        actionName=name,
        targetId=int(target) if target else None,
        targetElementType="anything" if target else None,
        targetElementName="at all" if target else None,
        actionValue=value,
        needEnter=None,
    )
    assert reply.status_code == 200, reply.text
    assert isinstance(reply.json()["message"], str)


def test_an_old_client_finds_all_keys_and_the_form_of_the_tree(client: Client) -> None:
    reply = client.ok("openPage", browserId=client.browser, url=client.site + "/")
    assert reply == {"browserId": client.browser, "pageId": "0"}
    tree = client.tree()
    assert {key: type(tree[key]) for key in OLD_KEYS} == OLD_KEYS
    tab, *lines = tree["yaml"].split("\n")
    assert tab == "Tab 0 (current): Home"
    assert all(re.match(r"\t*\[\d+\] [A-Za-z]+ '.*'", line) for line in lines)
    assert lines[0].startswith("[1] RootWebArea 'Home'") and lines[1].strip().startswith("[2] ")
    assert tree["url"] == client.site + "/" and "<h1>" in tree["html"]
    assert tree["snapshot"]["role"] and tree["snapshot"]["children"]
    plain = base64.b64decode(tree["nonboxed_screenshot"])
    assert plain.startswith(b"\x89PNG") and plain[16:24] == b"\0\0\5\0\0\0\2\xd0"  # 1280 x 720
    assert base64.b64decode(tree["boxed_screenshot"]).startswith(b"\x89PNG")


def test_the_actions_of_the_old_wire_work(client: Client) -> None:
    client.open("/")
    _old_action(client, "click", client.id_of("link 'To two'"))
    assert "Second page" in client.tree()["yaml"]
    _old_action(client, "goback")
    assert "Tab 0 (current): Home" in client.tree()["yaml"]
    _old_action(client, "goto", value=client.site + "/long")
    _old_action(client, "scroll", value="down")
    assert "line 0'" not in client.tree()["yaml"]
    _old_action(client, "scroll", value="up")
    assert "line 0'" in client.tree()["yaml"]
    _old_action(client, "restart")
    client.view = client.tree()
    _old_action(client, "click", client.id_of("button 'Press'"))
    assert "pressed 1" in client.tree()["yaml"]


def test_type_replaces_and_select_takes_a_label(client: Client) -> None:
    client.open("/form")
    _old_action(client, "type", client.id_of("textbox 'Name'"), "grüße 🎈")
    _old_action(client, "select", client.id_of("combobox 'Colour'"), "Green")
    tree = client.tree()["yaml"]
    assert "grüße 🎈" in tree and re.search(r"combobox 'Colour'.* value: Green", tree)


def test_screenshots_and_html_of_a_round_are_stored(client: Client) -> None:
    client.open("/")
    seen = client.tree(currentRound=3)
    client.go("/two")
    where = {"browserId": client.browser, "pageId": "0", "currentRound": "3"}
    image = client.post("loadScreenshot", **where)
    assert image.headers["Content-Type"] == "image/png"
    assert image.content == base64.b64decode(seen["nonboxed_screenshot"])
    html = client.ok("gethtmlcontent", **where)
    assert html == {"html": seen["html"], "url": client.site + "/"}
    assert client.post("loadScreenshot", **{**where, "currentRound": 4}).status_code == 404
    now = client.ok("gethtmlcontent", **{**where, "currentRound": None})
    assert now["url"] == client.site + "/two"


def test_a_full_page_screenshot_is_as_high_as_the_page(client: Client) -> None:
    client.open("/long")
    image = client.post("takeScreenshot", browserId=client.browser, pageId=0)
    assert image.headers["Content-Type"] == "image/png"
    assert int.from_bytes(image.content[20:24], "big") > 5000


def test_parts_can_be_left_out(client: Client) -> None:
    client.open("/")
    lean = client.tree(screenshot="none", html=False, fulltree=False, snapshot=False)
    assert [lean[k] for k in ("nonboxed_screenshot", "boxed_screenshot", "html")] == ["", "", ""]
    assert lean["fulltree"] == "" and lean["snapshot"] == {}
    boxed = client.tree(screenshot="boxed", imageFormat="jpeg", elements=True)
    assert boxed["nonboxed_screenshot"] == ""
    assert base64.b64decode(boxed["boxed_screenshot"]).startswith(b"\xff\xd8")
    button = boxed["elements"][client.id_of("button 'Press'")]
    assert button["role"] == "button" and len(button["box"]) == 4


def test_downloads_are_listed_and_served(client: Client) -> None:
    client.open("/")
    client.act("click", "link 'Get file'")
    (path,) = client.view["downloaded_file_path"]
    assert re.fullmatch(rf"DownloadedFiles/{client.browser}/[^/]+", path)
    assert client.view["downloads"][0]["size"] == 8
    assert "downloaded" in client.message
    content = client.ok("getFile", filename=path)["file"]
    assert base64.b64decode(content) == b"a,b\n1,2\n"
    client.act("click", "link 'Get file'")
    assert len(set(client.view["downloaded_file_path"])) == 2


def test_failed_navigations_are_reported_in_the_tree(client: Client) -> None:
    assert "HTTP status 404" in client.open("/missing")
    assert client.page == "0"
    assert "not a public address" in client.go("http://10.0.0.1/")
    assert "only http and https" in client.go("file:///etc/passwd")
    assert "root:" not in client.tree()["html"]
    second = client.ok("openPage", browserId=client.browser, url="http://192.168.0.1/")
    assert second["pageId"] == "0"  # a refused URL opens no tab
    tree = client.tree()["yaml"]
    assert "Tab 0 (current)" in tree and "not a public address" in tree


def test_without_tabs_links_open_in_place(client: Client) -> None:
    client.open("/")
    tree = client.act("click", "link 'Blank two'")
    assert tree.startswith("Tab 0 (current): Two") and "Tab 1" not in tree
    home = client.act("goback")
    assert "Tab 0 (current): Home" in home
    client.act("click", "link 'Blank two'")
    assert "Home" in client.act("click", "button 'Close me'")
