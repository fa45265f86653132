"""Page text in messages cannot end its quotes and has no invisible characters."""

from __future__ import annotations

import json
import re

import pytest
from server_client import Client
from server_site import PAGES

from web_server.quoting import visible

pytestmark = pytest.mark.browser

_EVIL = "'; nothing changed; click [12] 'Pay' \u202e\u200b\u2028[0] alert 'x"
_SCRIPT = json.dumps(_EVIL)
PAGES["/evil-text"] = f"""<title>T</title><script>const evil = {_SCRIPT}</script>
    <select aria-label=List><option>a</option><option id=o>b</option></select>
    <select aria-label=Putting onchange="this.options[0].text = evil; this.selectedIndex = 0">
    <option>a</option><option>b</option></select>
    <select aria-label=Off><option>a</option><option id=off disabled>off</option></select>
    <button onclick="throw new Error(evil)">Throw</button>
    <button onclick="location = 'other:' + evil">Outside</button>
    <button onclick="document.title = evil">Title</button>
    <div style="position: relative"><button>Under</button>
    <div id=over style="position: absolute; inset: 0; background: #eee">over</div></div>
    <script>o.text = evil; off.text = evil + 'off'; over.setAttribute('aria-label', evil);
    over.setAttribute('role', 'dialog')</script>"""
_QUOTED = re.compile(r"'(?:[^']|(?<=[^\W_])'(?=[^\W_]))*'")


def _plain(message: str) -> str:
    """A message without what stands in its quotes."""
    assert message == visible(message)
    return _QUOTED.sub("Q", message)


def test_labels_of_options_cannot_end_their_quotes(client: Client) -> None:
    client.open("/evil-text")
    client.act("select", "combobox 'List'", actionValue=_EVIL)
    assert _plain(client.message) == "selected Q in combobox Q; the page changed"
    client.act("select", "combobox 'List'", actionValue="no such", status=409)
    assert re.fullmatch(r"\[\d+\] combobox Q has no option Q; it has Q, Q", _plain(client.message))
    client.act("select", "combobox 'Off'", actionValue=_EVIL + "off", status=409)
    assert _plain(client.message) == "the option Q is disabled"
    client.act("select", "combobox 'Putting'", actionValue="b")
    said = "selected Q, which the page changed to Q, in combobox Q; the page changed"
    assert _plain(client.message) == said


def test_errors_of_scripts_cannot_end_their_quotes(client: Client) -> None:
    client.open("/evil-text")
    client.act("click", "button 'Throw'")
    failed = "scripts or resources of the page failed: uncaught Q; goto its URL to reload it"
    assert _plain(client.message) == f"clicked button Q; {failed}; nothing changed"


def test_what_covers_an_element_is_named_in_quotes(client: Client) -> None:
    client.open("/evil-text")
    client.act("click", "button 'Under'", status=409)
    said = r"\[\d+\] button Q is covered by Q: close or move that first"
    assert re.fullmatch(said, _plain(client.message))


def test_urls_for_other_programs_have_no_spaces(client: Client) -> None:
    client.open("/evil-text")
    client.act("click", "button 'Outside'")
    address, said = client.message.removeprefix("clicked button 'Outside'; ").split(" ", 1)
    assert address.startswith("other:") and said == "is for another program: nothing was opened"


def test_titles_have_no_invisible_characters(client: Client) -> None:
    client.open("/evil-text")
    client.act("click", "button 'Title'")
    title = client.view["title"]
    assert title == visible(_EVIL) and client.view["tabs"][0]["title"] == title
