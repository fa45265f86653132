"""Results of actions: the element acted on out of view, and texts that report something."""

from __future__ import annotations

import pytest
from server_client import Client
from server_site import PAGES

pytestmark = pytest.mark.browser

PAGES["/far-list"] = """<title>Far</title><p>Top</p><div style="height: 3000px"></div>
    <select aria-label="Size"><option>S<option>M</select><button>Go</button>"""
PAGES["/toasts"] = """<title>Toasts</title><button onclick="
    for (const [name, text] of [['toast show', 'Saved'], ['field-error', 'Too short'],
    ['panel', 'More'], ['', 'Plain']]) { const e = document.createElement('div');
    e.className = name; e.textContent = text; document.body.append(e) }
    document.body.insertAdjacentHTML('beforeend', '<div aria-live=polite><b>Live</b></div>')
    ">Save</button><div class="error-page" style="height: 10px"></div>"""


def message_texts(client: Client) -> list[str]:
    lines = client.view["yaml"].split("\n")
    ids = {f"[{number}]" for number in client.view["messages"]}
    return [line.split("'")[1] for line in lines if line.strip().split(" ")[0] in ids]


def test_an_element_out_of_view_is_described_after_the_action(client: Client) -> None:
    client.open("/far-list")
    size = client.ok("performAction", **_request(client, "find", text="Size", role="combobox"))
    number = size["message"].split("[")[1].split("]")[0]
    reply = client.ok(
        "performAction", **_request(client, "select", targetId=number, actionValue="M")
    )
    assert reply["acted"] == f"[{number}] combobox 'Size' value: M"


def _request(client: Client, action: str, **more: object) -> dict[str, object]:
    where = {"browserId": client.browser, "pageId": client.page, "actionName": action}
    return {**where, "observe": action != "find", "screenshot": "none", **more}


def test_an_element_in_view_is_not_described_again(client: Client) -> None:
    client.open("/toasts")
    number = client.id_of("button 'Save'")
    reply = client.ok("performAction", **_request(client, "click", targetId=number))
    assert "acted" not in reply


def test_texts_in_alerts_errors_and_toasts_are_messages(client: Client) -> None:
    client.open("/toasts")
    client.act("click", "button 'Save'")
    assert message_texts(client) == ["Saved", "Too short", "Live"]


PAGES[
    "/required"
] = """<title>Required</title><form onsubmit="document.title = 'sent'; return false">
    <label>Mail <input type=email required></label><button>Send</button></form>"""


def test_a_form_that_the_browser_did_not_send_is_reported(client: Client) -> None:
    client.open("/required")
    client.act("click", "button 'Send'")
    (event,) = client.view["events"]
    assert event.startswith("the form was not sent: the field 'Mail' is invalid: 'Please fill")
    client.act("type", "textbox 'Mail'", actionValue="ada")
    assert client.view["events"] == []
    client.act("click", "button 'Send'")
    assert len(client.view["events"]) == 1
    client.act("type", "textbox 'Mail'", actionValue="a@b.example")
    assert client.view["events"] == []
    assert "Tab 0 (current): sent" in client.act("click", "button 'Send'")
    assert client.view["events"] == []
