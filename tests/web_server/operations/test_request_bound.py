"""Pages that never rest or never respond: each request ends, and its observation is true."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
import time
from typing import Any

import pytest
from server_client import Client
from server_process import Process
from server_site import CALLBACKS, PAGES, Site

from web_server import deadline
from web_server.operations import driver
from web_server.operations.action_run import ActionRun
from web_server.operations.observation import Views
from web_server.operations.session_recovery import SessionRecovery
from web_server.session import page
from web_server.session.session_context import SessionContext

pytestmark = pytest.mark.browser

BODY = """<h1>Here</h1><button onclick="document.title = 'pressed'">Press</button>
    <a href="/two">Leave</a>"""

NAVIGATES = {
    "meta refresh": "<meta http-equiv=refresh content=0>" + BODY,
    "location at once": BODY + "<script>location.href = '?' + Math.random()</script>",
    "location by timer": BODY
    + "<script>setInterval(() => { location.href = '?' + Math.random() }, 5)</script>",
    "reload": BODY + "<script>onload = () => location.reload()</script>",
}


@pytest.mark.parametrize("case", NAVIGATES)
def test_a_page_that_navigates_without_end_is_stopped_and_left_by_its_link(
    client: Client, case: str
) -> None:
    path = "/bound-" + case.replace(" ", "-")
    PAGES[path] = f"<title>Loop</title>{NAVIGATES[case]}"
    tree = client.open(path)
    assert "[0] alert 'the page kept navigating: scripts are off here" in tree
    assert "does not respond" not in tree
    assert "Home" in client.go("/")
    assert "scripts are off" not in client.view["yaml"]


def test_a_page_that_was_stopped_keeps_its_ids(client: Client) -> None:
    PAGES["/bound-kept"] = "<title>Loop</title>" + NAVIGATES["reload"]
    client.open("/bound-kept")
    assert "Second page" in client.act("click", "link 'Leave'")


HANGS = {
    "at load": BODY + "<script>while (true);</script>",
    "after load": BODY + "<script>onload = () => { while (true); }</script>",
}


@pytest.mark.parametrize("case", HANGS)
def test_a_script_without_end_is_stopped_and_the_page_is_shown(
    client: Client, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 9.0)
    path = "/bound-hangs-" + case.replace(" ", "-")
    PAGES[path] = f"<title>Hangs</title>{HANGS[case]}"
    assert "a script of the page ran too long and was stopped" in client.open(path)
    monkeypatch.undo()
    assert "Tab 0 (current): pressed" in client.act("click", "button 'Press'")


@pytest.mark.parametrize("event", ["beforeunload", "pagehide", "unload"])
def test_a_page_that_hangs_when_it_is_left_is_left(
    client: Client, monkeypatch: pytest.MonkeyPatch, event: str
) -> None:
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 12.0)
    PAGES["/bound-leaving"] = (
        f"<title>Stays</title>{BODY}<script>on{event} = () => {{ while (1); }}</script>"
    )
    client.open("/bound-leaving")
    client.act("click", "button 'Press'")
    assert "Second page" in client.go("/two")
    assert "did not answer" not in client.view["yaml"]


def test_a_click_that_leads_away_too_slowly_does_not_report_that_nothing_changed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    PAGES["/bound-slow-leaving"] = (
        f"<title>Stays</title>{BODY}<script>onunload = onpagehide = () => {{ while (1); }}</script>"
    )
    client.open("/bound-slow-leaving")
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 9.0)
    client.act("click", "link 'Leave'")
    assert client.message.startswith("clicked link 'Leave'")
    assert "the page did not respond in time" in client.message
    assert "nothing changed" not in client.message


def test_a_page_that_does_not_respond_is_said_so_and_can_be_left(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 9.0)
    PAGES["/bound-never"] = (
        f"<title>Never</title>{BODY}<script>const forever = () => setTimeout(forever);"
        "setInterval(() => { const end = Date.now() + 1e6; while (Date.now() < end); }, 0)</script>"
    )
    tree = client.open("/bound-never")
    assert re.search("does not respond: go elsewhere|was stopped", tree)
    reply = client.post("getAccessibilityTree", browserId=client.browser, pageId=client.page)
    assert reply.status_code == 200
    monkeypatch.undo()
    assert "Second page" in client.go("/two")


@pytest.mark.parametrize("first", [True, False])
def test_a_server_that_never_answers_is_not_taken_for_a_page_that_hangs(
    client: Client, first: bool
) -> None:
    if not first:
        client.open("/")
    tree = client.open("/never") if first else client.go("/never")
    for _ in range(2):  # on a starved machine, Chromium itself may not respond for seconds
        if "does not respond" in tree:
            tree = client.go("/never")
    assert "/never did not answer within 12 s" in tree
    assert "does not respond" not in tree


def test_a_failed_navigation_is_reported_although_a_document_came_just_before(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "NAVIGATION_SECONDS", 1.0)
    requested = threading.Event()
    CALLBACKS["/bound-later"] = requested.set
    PAGES["/bound-later"] = f"<title>Later</title>{BODY}"
    PAGES["/bound-moves"] = (
        "<title>Moves</title><button>Press</button>"
        "<script>setTimeout(() => { location = '/bound-later' }, 4000)</script>"
    )
    assert "button 'Press'" in client.open("/bound-moves")
    assert requested.wait(30)
    assert "/never did not answer within 1 s" in client.go("/never")


@pytest.mark.integration
def test_sigterm_ends_a_server_with_pages_that_never_respond(server_site: Site) -> None:
    PAGES["/bound-end"] = (
        f"<title>End</title>{BODY}<script>onunload = onpagehide = () => {{ while (1); }};"
        + ("setTimeout(() => { while (1); }, 1000)</script>")
    )
    with Process(site=server_site) as running:
        client = Client(running.url, server_site.url).__enter__()
        client.open("/bound-end")
        began = time.monotonic()
        assert running.end(signal.SIGTERM) == 0
        assert time.monotonic() - began < 30  # 10 s by the documents, on a machine that is free
        client.http.close()


async def _never(*_arguments: Any) -> None:
    await asyncio.Event().wait()


def test_a_page_that_hangs_is_left_although_chromium_makes_no_page_at_first(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    PAGES["/bound-hung"] = (
        f"<title>Hung</title>{BODY}<script>const forever = () => setTimeout(forever);"
        "setInterval(() => { const end = Date.now() + 1e6; while (Date.now() < end); }, 0)</script>"
    )
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 9.0)
    client.open("/bound-hung")
    made = []
    make = SessionContext._new_page

    async def late(context: Any, *arguments: Any) -> Any:
        while not made:
            await asyncio.sleep(0.05)
        return await make(context, *arguments)

    monkeypatch.setattr(SessionContext, "_new_page", late)
    began = time.monotonic()
    tree = client.go("/two")
    assert time.monotonic() - began < 60
    assert "the page does not respond" in tree or "was stopped" in tree
    made.append(True)
    monkeypatch.setattr(deadline, "REQUEST_SECONDS", 20.0)
    assert "Second page" in client.go("/two")


def test_a_request_whose_work_never_ends_is_answered_after_its_deadline(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.open("/two")
    monkeypatch.setattr(deadline, "OBSERVE_SECONDS", 0.0)
    monkeypatch.setattr(driver, "GRACE_SECONDS", 0.5)
    with monkeypatch.context() as stuck:
        stuck.setattr(Views, "observe", _never)
        stuck.setattr(deadline, "REQUEST_SECONDS", 8.0)  # to make the page on a busy machine
        assert "The page cannot be observed" in client.open("/two")
        stuck.setattr(deadline, "REQUEST_SECONDS", 1.0)
        assert "The page cannot be observed" in client.go("/two")
        assert client.message == "the browser was too busy to finish in time"
        assert "The page cannot be observed" in client.tree()["yaml"]
    with monkeypatch.context() as stuck:
        stuck.setattr(deadline, "REQUEST_SECONDS", 1.0)
        stuck.setattr(ActionRun, "run", _never)
        client.act("wait", status=409)
        assert client.message == "wait was interrupted: the browser was too busy to finish in time"
    monkeypatch.undo()
    assert "Second page" in client.go("/two")


def test_a_browser_that_is_too_busy_to_open_a_page_is_not_called_lost(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.open("/two")
    with monkeypatch.context() as stuck:
        stuck.setattr(deadline, "REQUEST_SECONDS", 1.0)
        stuck.setattr(SessionContext, "_new_page", _never)
        where = {"browserId": client.browser, "url": f"{client.site}/two"}
        reply = client.post("openPage", **where)
        assert reply.status_code == 503 and "lost" not in reply.text
        assert "the browser is busy and opened no page in time" in reply.json()["error"]
        assert int(reply.headers["Retry-After"]) > 0
    assert "Second page" in client.go("/two")


def test_work_in_chromium_is_not_repeated_after_the_deadline(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playwright.async_api import Error

    client.open("/two")
    calls = []

    async def fails(*_arguments: Any) -> None:
        calls.append(True)
        raise Error("Chromium made no context in time")

    with monkeypatch.context() as late:
        late.setattr(deadline, "REQUEST_SECONDS", 0.0)
        late.setattr(SessionRecovery, "_restore", fails)
        where = {"browserId": client.browser, "pageId": client.page}
        client.post("performAction", **where, actionName="goback")
    assert len(calls) == 1
    assert "Second page" in client.go("/two")
