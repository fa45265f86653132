"""Pages that move, exchange or leave under an action: its one line must stay true."""

from __future__ import annotations

from typing import Any

import pytest
from server_client import Client
from server_site import PAGES

from web_server import deadline
from web_server.operations import settling
from web_server.settle import activity

pytestmark = pytest.mark.browser

FIELD = "textbox 'F'"
DISTURBED: dict[str, tuple[str, str, str, dict[str, Any], list[str]]] = {
    "leaves while typed into": (
        """<input aria-label=F oninput="if (this.value.length === 3) location = '/two'">""",
        "type",
        FIELD,
        {"actionValue": "abcdefgh"},
        ["which vanished meanwhile", "the page is now", "/two"],
    ),
    "takes part of it": (
        "<input aria-label=F maxlength=3>",
        "type",
        FIELD,
        {"actionValue": "abcdef"},
        ["it holds 'abc' now"],
    ),
    "reveals no secret": (
        "<input type=password aria-label=F maxlength=3>",
        "type",
        FIELD,
        {"actionValue": "abcdef"},
        ["it holds 3 characters now"],
    ),
    "clamps": (
        "<input type=range max=9 aria-label=S>",
        "type",
        "slider 'S'",
        {"actionValue": "50"},
        ["it holds '9' now"],
    ),
    "frame leaves": (
        """<iframe id=f srcdoc="<input aria-label=F oninput='parent.f.remove()'>"></iframe>""",
        "type",
        FIELD,
        {"actionValue": "abcd"},
        ["which vanished meanwhile"],
    ),
    "dialog in the middle": (
        """<input aria-label=F onkeydown="if (this.value.length === 1) alert('hi')">""",
        "type",
        FIELD,
        {"actionValue": "abc"},
        ["typed 'abc'", "alert 'hi' was accepted"],
    ),
    "ticked and gone": (
        "<input type=checkbox aria-label=C onchange='this.remove()'>",
        "check",
        "checkbox 'C'",
        {},
        ["clicked checkbox 'C', which vanished then"],
    ),
    "ticked and left": (
        "<form action=/two><input type=checkbox aria-label=C onchange='this.form.submit()'></form>",
        "check",
        "checkbox 'C'",
        {},
        ["checkbox 'C'", "the page is now"],  # switched on, or gone by the time of the look
    ),
    "choice taken back": (
        "<select aria-label=S onchange='this.selectedIndex = 0'><option>a<option>b</select>",
        "select",
        "combobox 'S'",
        {"actionValue": "b"},
        ["selected 'b', which the page changed to 'a'"],
    ),
    "drag that leaves": (
        """<div role=button aria-label=D onmousedown="location = '/two'">ddd</div>""",
        "drag",
        "button 'D'",
        {"deltaX": 50},
        ["the page is now"],
    ),
    "frame leaves when clicked": (
        """<iframe id=f srcdoc="<button onclick='parent.f.remove()'>B</button>"></iframe>""",
        "click",
        "button 'B'",
        {},
        ["clicked button 'B'", "the page changed"],
    ),
    "asks before it leaves": (
        """<a href=/two onclick="return confirm('leave?')">L</a>""",
        "click",
        "link 'L'",
        {},
        ["the page asked 'leave?' (confirm): it was dismissed; to accept, answer_dialog first"],
    ),
}


@pytest.mark.parametrize("case", DISTURBED)
def test_the_answer_is_true(client: Client, case: str) -> None:
    html, action, line, more, said = DISTURBED[case]
    path = "/disturbed-" + case.replace(" ", "-")
    PAGES[path] = f"<title>Before</title>{html}"
    client.open(path)
    client.act(action, line, **more)
    for words in said:
        assert words in client.message
    assert ("/two" in client.view["url"]) == ("the page is now" in client.message)


def test_a_field_that_is_exchanged_at_a_touch_is_not_typed_into(client: Client) -> None:
    PAGES["/exchanged"] = """<title>E</title><input aria-label=F onfocus="if (!window.k) { k = 1;
        const c = this.cloneNode(); this.replaceWith(c); c.focus() }">"""
    client.open("/exchanged")
    client.act("type", FIELD, actionValue="abc", status=409)
    assert "vanished when it was clicked: nothing was typed" in client.message
    assert "value: abc" in client.act("type", FIELD, actionValue="abc")


def test_what_keeps_moving_is_hit_or_said_to_be_missed(client: Client) -> None:
    PAGES["/moving"] = """<title>M</title><button id=b style="position:absolute;top:50px"
        onmousedown="document.title = 'hit'">B</button><script>let t = 0;
        setInterval(() => { t += 40; b.style.left = t % 900 + 'px' }, 4)</script>"""
    client.open("/moving")
    body = {"browserId": client.browser, "pageId": client.page, "actionName": "click"}
    reply = client.post("performAction", targetId=client.id_of("button 'B'"), observe=True, **body)
    answer = reply.json()
    if reply.status_code == 200:
        assert answer["observation"]["title"] == "hit"
    else:
        assert "keeps moving: the click went to" in answer["error"]
        assert answer["observation"]["title"] == "M"


def test_a_click_lands_once_however_often_the_page_is_drawn_anew(client: Client) -> None:
    PAGES["/redrawn"] = """<title>R</title><div id=d></div><script>let n = 0; const draw = () => {
        d.innerHTML = `<button onclick="document.title = 'clicks ' + ++n">B</button>` };
        draw(); setInterval(draw, 7)</script>"""
    client.open("/redrawn")
    body = {"browserId": client.browser, "pageId": client.page, "actionName": "click"}
    reply = client.post("performAction", targetId=client.id_of("button 'B'"), observe=True, **body)
    answer = reply.json()
    title = answer["observation"]["title"]
    assert title in ("R", "clicks 1") and (reply.status_code == 404 or title == "clicks 1")


def test_a_link_without_a_response_keeps_the_page(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity, "ANSWER_SECONDS", 1.0)
    PAGES["/hanging"] = """<title>Old</title><a href=/never>Away</a><button
        onclick="document.title = 'still here'">B</button>"""
    client.open("/hanging")
    client.act("click", "link 'Away'")
    assert "/never did not answer within 1 s: the page stayed" in client.message
    assert client.view["title"] == "Old" and "restored" not in client.view["yaml"]
    assert "Tab 0 (current): still here" in client.act("click", "button 'B'")
    assert "Second page" in client.go("/two")


def test_a_download_is_told_by_the_action_that_began_it(client: Client) -> None:
    PAGES["/slow-download"] = """<title>D</title><a href=/slow-file download>Slow</a>
        <a href=/never download onclick="event.preventDefault()">Kept</a>"""
    client.open("/slow-download")
    client.act("click", "link 'Slow'")
    assert "downloaded _data.csv (8 bytes)" in client.message
    client.act("click", "link 'Kept'")
    assert client.message.endswith("nothing changed")


def test_a_download_that_does_not_begin_is_said_to_be_due(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "DOWNLOAD_LINK_SECONDS", 0.1)
    PAGES["/never-download"] = "<title>D</title><a href=/never download>Never</a>"
    client.open("/never-download")
    client.act("click", "link 'Never'")
    assert "the download of" in client.message and "/never has not started yet" in client.message


def test_an_error_without_a_page_is_told_by_its_status(client: Client) -> None:
    client.open("/")
    for _ in range(2):
        tree = client.go("/empty-error")
        assert "[0] alert 'HTTP status 500 at" in tree
        assert client.view["events"] == [f"HTTP status 500 at {client.site}/empty-error"]


def test_links_for_other_programs_open_nothing_and_leave_the_page_usable(client: Client) -> None:
    PAGES["/outside"] = """<title>O</title><a href="tel:1">Call</a><a href="mailto:a@b">Mail</a>
        <a href="tel:2" target=_blank>Call out</a><button onclick="location = 'chat://x'">Chat
        </button><button onclick="document.title += '!'">Hit</button>"""
    client.open("/outside")
    links = {"link 'Call'": "tel:1", "link 'Mail'": "mailto:a@b", "button 'Chat'": "chat://x"}
    for line, url in {**links, "link 'Call out'": "tel:2"}.items():
        tree = client.act("click", line)
        assert f"[0] alert '{url} is for another program: nothing was opened'" in tree
        client.act("click", "button 'Hit'")
    assert client.view["title"] == "O!!!!"


def test_a_document_that_may_run_no_scripts_is_used_like_any_other(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 9.0)  # which the page would need in vain
    assert "no scripts" in client.open("/sandboxed")
    client.act("wait", timeout=50)
    client.act("wait_for", text="never there", timeout=50)
    assert "Second page" in client.act("click", "link 'To two'")
    assert "ran too long" not in client.message


def test_an_invisible_window_takes_no_clicks(client: Client) -> None:
    key = "challenge: new Uint8Array(16)"
    PAGES["/frame-holds"] = "<button onclick='document.body.requestPointerLock()'>Grab</button>"
    PAGES["/windows"] = f"""<title>W</title><button onclick="document.title += '!'">Hit</button>
        <button onclick="document.body.requestPointerLock()">Hold</button><button
        onclick="navigator.mediaDevices.getDisplayMedia()">Share</button><button
        onclick="navigator.credentials.get({{publicKey: {{{key}}}}})">Passkey</button><button
        onclick="navigator.credentials.get({{digital: {{requests: [{{protocol: 'openid4vp',
        data: {{}}}}]}}, mediation: 'required'}})">Wallet</button>
        <iframe src="{client.site}/frame-holds"></iframe>"""
    client.open("/windows")
    client.go(client.site.replace("127.0.0.1", "localhost") + "/windows")  # keys need a name
    for count, line in enumerate(("Hold", "Grab", "Share", "Passkey", "Wallet"), 1):
        client.act("click", f"button '{line}'")
        assert line != "Grab" or client.message == "clicked button 'Grab'"  # who knows what came
        client.act("click", "button 'Hit'")
        assert client.view["title"] == "W" + "!" * count, line
