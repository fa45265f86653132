"""The clipboard: what one session copies, no other one pastes."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from server_client import Client
from server_process import Process
from server_site import PAGES, Site

from web_server.actions.keys import clipboard_use


@pytest.mark.parametrize(
    ("chord", "use"),
    [
        ("Control+c", "copy"),
        ("ctrl + C", "copy"),
        ("cmd+x", "copy"),
        ("Control+KeyV", "paste"),
        ("Control+Shift+v", "paste"),
        ("shift+insert", "paste"),
        ("ctrl+insert", "copy"),
        ("shift+del", "copy"),
        ("Control+a", ""),
        ("Shift+v", ""),
        ("Insert", ""),
        ("Control++", ""),
        ("v", ""),
    ],
)
def test_chords_that_use_the_clipboard(chord: str, use: str) -> None:
    assert clipboard_use(chord) == use


@pytest.fixture
def pair(server_url: str, server_site: Site) -> Iterator[tuple[Client, Client]]:
    with Client(server_url, server_site.url) as one, Client(server_url, server_site.url) as two:
        for each in (one, two):
            each.open("/copy")
        yield one, two


def copy(client: Client, text: str) -> None:
    client.act("type", "textbox 'From'", actionValue=text)
    client.act("press", "textbox 'From'", keys=["Control+a", "Control+c"])
    assert f"which copied '{text}'" in client.message


def paste(client: Client, into: str = "textbox 'To'") -> str:
    client.act("press", into, keys=["Control+a", "Control+v"])
    return client.act("wait")


@pytest.mark.browser
def test_each_session_pastes_what_it_copied(pair: tuple[Client, Client]) -> None:
    one, two = pair
    copy(one, "of one")
    assert "one" not in paste(two)
    copy(two, "of two")
    assert "got of one" in paste(one)
    assert "got of two" in paste(two)
    one.act("press", "textbox 'To'", keys="Control+x")
    assert "which copied nothing" in one.message  # the caret is at the end, nothing is selected
    assert "got of one" in paste(one)


@pytest.mark.browser
def test_a_button_that_copies_is_noticed(pair: tuple[Client, Client]) -> None:
    one, two = pair
    one.act("type", "textbox 'From'", actionValue="by button")
    one.act("click", "button 'Copy it'")
    assert "the page copied 'by button'" in one.message
    assert "by button" not in paste(two)
    assert "got by button" in paste(one)


@pytest.mark.browser
def test_the_middle_button_pastes_nothing(pair: tuple[Client, Client]) -> None:
    one, two = pair
    one.act("type", "textbox 'From'", actionValue="selected")
    one.act("press", "textbox 'From'", keys="Control+a")
    assert "selected" not in two.act("click", "textbox 'To'", button="middle")
    assert "mouse: true" in two.act("click", "button 'Pointer'")


@pytest.mark.browser
def test_formats_survive_another_sessions_copying(pair: tuple[Client, Client]) -> None:
    one, two = pair
    one.act("press", "textbox 'Rich'", keys=["Control+a", "Control+c"])
    assert "which copied 'plain bold'" in one.message
    copy(two, "of two")
    one.act("press", "textbox 'Rich'", keys=["Control+a", "Delete", "Control+v"])
    assert "<b>bold</b>" in one.act("click", "button 'Tell'")


@pytest.mark.browser
def test_many_at_once_never_mix(pair: tuple[Client, Client]) -> None:
    def copies(numbered: tuple[int, Client]) -> None:
        number, client = numbered
        for turn in range(3):
            copy(client, f"{number}.{turn}")
            assert f"got {number}.{turn}" in paste(client)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(copies, enumerate(pair)))


@pytest.mark.browser
def test_what_was_copied_outlives_chromium(server_site: Site) -> None:
    with Process(site=server_site) as process, Client(process.url, server_site.url) as client:
        client.open("/copy")
        copy(client, "kept")
        os.kill(process.chromium(), signal.SIGKILL)
        assert "restored" in client.act("wait", timeout=100)
        assert "got kept" in paste(client)


PAGES["/share"] = """<title>Share</title><button onclick="share()">Share</button>
    <input aria-label=Here><p id=out></p><script>
    document.addEventListener('copy', (event) => event.clipboardData.setData('text/plain', 'mine'));
    const show = (text) => { out.textContent = text; };
    const share = () => navigator.clipboard.writeText('the link').then(() => show('copied'));
    navigator.clipboard.writeText('unasked').catch((error) => show(error.name));
    document.title = String(navigator.clipboard.writeText).replace(/\\s+/g, ' ');
    </script>"""


@pytest.mark.browser
def test_buttons_of_today_copy_when_they_are_clicked_only(client: Client) -> None:
    tree = client.open("/share")
    assert "NotAllowedError" in tree
    assert "Tab 0 (current): function writeText() { [native code] }" in tree
    tree = client.act("click", "button 'Share'")
    assert "'copied'" in tree
    assert "the page copied 'the link'" in client.message
    client.act("click", "textbox 'Here'")
    assert "value: the link" in client.act("press", keys=["Control+v"])
