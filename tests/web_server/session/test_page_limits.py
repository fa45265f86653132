"""A page that opens or reports without end is closed, and other sessions do not notice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from server_client import Client
from server_site import PAGES, until

from web_server.session import page_limits
from web_server.session.page_limits import PageLimits

BUTTON = "<button onclick=\"document.title = 'pressed'\">Press</button>"
CALM = "<title>Calm</title><button onclick='document.title = Date.now()'>Press</button>"
ENDLESS = (
    "const c = new MessageChannel(); c.port2.onmessage = () => { c.port1.postMessage(0); WORK };"
    " c.port1.postMessage(0)"
)
WORKER = "<script>new Worker(URL.createObjectURL(new Blob([`CODE`])))</script>"


def page_of(body: str) -> str:
    return f"<title>Endless</title><body>{BUTTON}{body}"


@pytest.mark.browser
def test_a_page_with_too_many_frames_is_closed_and_can_be_left(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_limits, "MAX_FRAMES", 20)
    PAGES["/limit-frames"] = page_of("<iframe srcdoc='<p>x'></iframe>" * 40)
    tree = client.open("/limit-frames")
    assert f"{client.site}/limit-frames was closed: the page opened more than 20 frames" in tree
    assert "Tab 0 (current): about:blank" in tree and "does not respond" not in tree
    assert "Second page" in client.go("/two")
    assert "was closed" not in client.view["yaml"]


@pytest.mark.browser
def test_a_click_that_opens_too_many_frames_is_reported_and_the_page_loads_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_limits, "MAX_FRAMES", 20)
    PAGES["/limit-click"] = """<title>Click</title><button onclick="for (let i = 0; i < 40; i++)
        document.body.append(document.createElement('iframe'))">Fill</button>"""
    client.open("/limit-click")
    where = {"browserId": client.browser, "pageId": client.page, "observe": True}
    click = {"actionName": "click", "targetId": client.id_of("button 'Fill'")}
    reply = client.post("performAction", **where, **click)
    assert reply.status_code in (200, 409)
    assert "the page opened more than 20 frames" in reply.text
    assert "button 'Fill'" in client.go("/limit-click")


@pytest.mark.browser
def test_frames_that_come_and_go_are_no_excess(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_limits, "MAX_FRAMES", 20)
    PAGES["/limit-few"] = page_of("<iframe srcdoc='<p>x'></iframe>" * 15)
    for _ in range(3):
        client.open("/limit-few")
        assert "pressed" in client.act("click", "button 'Press'")


@pytest.mark.browser
def test_a_page_with_too_many_workers_is_closed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_limits, "MAX_WORKERS", 4)
    PAGES["/limit-workers"] = page_of(WORKER.replace("CODE", "0") * 10)
    tree = client.open("/limit-workers")
    if "was closed" not in tree:
        assert until(lambda: "was closed" in client.tree()["yaml"])
        tree = client.tree()["yaml"]
    assert "/limit-workers was closed: the page started more than 4 workers" in tree
    assert "Second page" in client.go("/two")


FLOODS = {
    "errors of a worker": WORKER.replace("CODE", ENDLESS.replace("WORK", "throw Error(1)")),
    "messages of a worker": WORKER.replace("CODE", ENDLESS.replace("WORK", "console.log(1)")),
}


@pytest.mark.browser
def test_a_worker_that_requests_without_end_is_closed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_limits, "MAX_REQUESTS", 300)
    fetching = f"const u = URL.createObjectURL(new Blob(['x'])); {ENDLESS}"
    PAGES["/limit-requests"] = page_of(WORKER.replace("CODE", fetching.replace("WORK", "fetch(u)")))
    tree = client.open("/limit-requests")
    if "was closed" not in tree:
        assert until(lambda: "was closed" in client.tree()["yaml"])
        tree = client.tree()["yaml"]
    assert "/limit-requests was closed: the page made more than 300 requests in 10 s" in tree
    assert "Second page" in client.go("/two")


@pytest.mark.browser
@pytest.mark.parametrize("case", FLOODS)
def test_a_worker_that_reports_without_end_blocks_no_other_session(
    client: Client, tabs_client: Client, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    monkeypatch.setattr(page_limits, "MAX_REPORTS", 500)
    path = "/limit-" + case.replace(" ", "-")
    PAGES[path], PAGES["/calm"] = page_of(FLOODS[case]), CALM
    tabs_client.open("/calm")
    tree = client.open(path)
    if "was closed" not in tree:
        assert until(lambda: "was closed" in client.tree()["yaml"])
        tree = client.tree()["yaml"]
    assert f"{path} was closed: the page reported more than 500 messages and errors" in tree
    tabs_client.act("click", "button 'Press'")
    assert tabs_client.message == "clicked button 'Press'; the page changed"
    assert "Second page" in client.go("/two")


SILENCED = {
    "errors": ENDLESS.replace("WORK", "throw Error(Math.random())"),
    "messages": ENDLESS.replace("WORK", "console.log(1); console.context().log(1)"),
}
REOPENED = """<script>onload = () => { document.open(); document.write(
    `<title>Endless</title>BUTTON<script>CODE</` + `script>`); document.close() }</script>"""


@pytest.mark.browser
@pytest.mark.parametrize("reopened", [False, True], ids=["", "after document.open"])
@pytest.mark.parametrize("case", SILENCED)
def test_a_document_reports_only_its_first_errors_and_messages(
    client: Client, monkeypatch: pytest.MonkeyPatch, case: str, reopened: bool
) -> None:
    monkeypatch.setattr(page_limits, "MAX_REPORTS", 500)
    body = f"<script>{SILENCED[case]}</script>"
    if reopened:
        body = REOPENED.replace("BUTTON", BUTTON).replace("CODE", SILENCED[case])
    PAGES["/limit-silenced"] = page_of(body)
    client.open("/limit-silenced")
    assert "pressed" in client.act("click", "button 'Press'")
    assert "was closed" not in client.view["yaml"]


@pytest.mark.browser
def test_the_limits_on_reports_cannot_be_seen_by_the_page(client: Client) -> None:
    PAGES["/limit-seen"] = """<title>Seen</title><p id=out></p><script>
        out.textContent = [console.log, console.context, document.write, document.open].every(
          (f) => /^function \\w+\\(\\) \\{ \\[native code\\] \\}$/.test(f.toString())
            && !f.hasOwnProperty('prototype')) && console.log.name === 'log'
          && console.createTask('t').run(() => 3) === 3 ? 'native' : 'patched'</script>"""
    assert "'native'" in client.open("/limit-seen")


class FakePage:
    """As much of a page as its limits need."""

    def __init__(self, frames: int = 0, workers: int = 0) -> None:
        self.frames, self.workers = [None] * (frames + 1), [None] * workers
        self.handlers: dict[str, Any] = {}

    def on(self, event: str, handler: Any) -> None:
        self.handlers[event] = handler


def test_a_busy_page_is_explained_by_its_frames_and_workers() -> None:
    assert PageLimits(FakePage(2, 1), print).busy_reason() == ""  # type: ignore[arg-type]
    busy = PageLimits(FakePage(120, 40), print)  # type: ignore[arg-type]
    assert busy.busy_reason() == "it has 120 frames and it runs 40 workers"


def test_an_excess_is_reported_once() -> None:
    page, reasons = FakePage(frames=page_limits.MAX_FRAMES), list[str]()
    PageLimits(page, reasons.append)  # type: ignore[arg-type]
    page.handlers["frameattached"](None)
    assert reasons == []
    for _ in range(3):
        page.frames.append(None)
        page.handlers["frameattached"](None)
    assert reasons == [f"opened more than {page_limits.MAX_FRAMES} frames"]


def test_reports_are_counted_within_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(page_limits.time, "monotonic", lambda: clock.now)
    page, reasons = FakePage(), list[str]()
    PageLimits(page, reasons.append)  # type: ignore[arg-type]
    for _ in range(4):
        for _ in range(page_limits.MAX_REPORTS):
            page.handlers["console"](None)
        clock.now += page_limits.WINDOW_SECONDS
    assert reasons == []
    for _ in range(page_limits.MAX_REPORTS + 1):
        page.handlers["pageerror"](None)
    assert reasons == ["reported more than 2,000 messages and errors in 10 s"]
