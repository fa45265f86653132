"""Take over is accessible: checked by axe, and used by keyboard alone."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from axe import needs_axe, problems_in_all_views
from member_sites import viewing
from person_browser import opened_page
from playwright.sync_api import Page, expect
from viewer_runs import PNG, RunWriter

from ck_main.viewer import take_over
from ck_pro.events import EventKind
from ck_web.browser.person_control import View

pytestmark = [pytest.mark.integration, pytest.mark.browser]

TREE = "[1] RootWebArea '{0} login'\n\t[4] textbox 'Name'\n\t[6] button 'Log in'"


class Browser:
    """A browser that shows a login page, in place of `PersonControl`."""

    def __init__(self, lease: Any) -> None:
        self._name = lease["browserId"]

    def look(self) -> View:
        tree, image = TREE.format(self._name), base64.b64encode(PNG).decode()
        return View(f"http://{self._name}.test/", f"{self._name} login", tree, image, 1280, 720)

    def act(self, text: str) -> str:
        return f"{text}: done"

    def close(self) -> None:
        pass


@pytest.fixture
def asking_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run with two browsers, whose second agent asks a question."""
    monkeypatch.setattr(take_over, "PersonControl", Browser)
    folder = tmp_path / "runs" / "both"
    run = RunWriter(folder, "both")
    run.append(EventKind.STEP, {}, i=0)
    for n, name in enumerate(("Bank", "Library")):
        started = {"call": n, "name": "web_agent", "arguments": {"task": name}}
        run.append(EventKind.STARTED, started, i=0)
        sub = {"session": name, "name": "web_agent", "call": n}
        run.append(EventKind.SUB_SESSION, sub, i=0)
        run.session(name, "web_agent", f"Read the {name}.", parent=run.sid)
        run.append(EventKind.STEP, {}, i=0, sid=name, parent=run.sid)
    asked = {"session": "Library", "question": "Please log in at the Library."}
    facts = {"status": "human-intervention", "stop_reason": "human", "message": "log in"}
    for name in ("Bank", "Library"):
        lease = {"server": "http://127.0.0.1:9", "browserId": name, "url": f"http://{name}.test/"}
        ended = {**facts, "lease": lease, **({"asked": asked} if name == "Library" else {})}
        if name == "Bank":
            ended = {**facts, "status": "in_progress", "lease": lease, "interrupted": True}
        run.append(EventKind.STATUS, ended, i=0, sid=name, parent=run.sid)
    run.append(EventKind.STATUS, {**facts, "asked": asked}, i=0)
    run.journal.close()
    return folder


@needs_axe
def test_axe_finds_no_violation_in_take_over(asking_run: Path) -> None:
    found: list[str] = []

    def check(name: str) -> None:
        found.extend(f"{name}: {one}" for one in problems_in_all_views(page))

    with (
        viewing(asking_run) as app,
        opened_page(app.url, bypass_csp=True, allowed=("400",)) as page,
    ):
        page.get_by_text("both").first.click()
        expect(page.locator(".browser-choice img")).to_have_count(2)
        check("two browsers")
        page.evaluate(
            "document.querySelectorAll('.browser details').forEach(d => { d.open = true })"
        )
        page.get_by_role("button", name="button 'Log in'").click()
        expect(page.locator(".done-list li")).to_have_count(1)
        page.get_by_label("Your answer").fill("I did it.")
        expect(page.locator(".problem, .command").first).to_be_visible()
        check("acted")
    assert found == []


def focused(page: Page) -> tuple[str, bool]:
    """Return the name of the focused element, and whether its focus is visible."""
    name, seen = page.evaluate(
        """() => {
            const one = document.activeElement;
            const label = one.getAttribute('aria-label') || one.labels?.[0]?.innerText;
            const marks = [one, one.closest('.browser-choice')].filter(Boolean);
            const seen = marks.map((mark) => getComputedStyle(mark)).some((style) =>
                style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1);
            return [(label || one.innerText || one.tagName).trim().split('\\n')[0], seen];
        }"""
    )
    return str(name), bool(seen)


def test_take_over_is_used_by_keyboard_alone(asking_run: Path) -> None:
    with viewing(asking_run) as app, opened_page(app.url, allowed=("400",)) as page:
        page.get_by_text("both").first.click()
        expect(page.locator(".browser-choice img")).to_have_count(2)
        page.get_by_role("radio", name="Library login").focus()
        names = []
        for _ in range(20):
            page.keyboard.press("Tab")
            name, seen = focused(page)
            assert seen, f"the focus is not visible on {name}"
            names.append(name)
            if name == "Your answer":
                break
        assert names == [
            *("Back", "Forward", "Address", "Go", "Scroll up", "Scroll down", "Refresh"),
            "The page. Click it; typed keys go to it. Tab leaves it.",
            *("Text to type", "Type", "Tab", "Enter", "Elements (2)"),
            "Your answer",
        ]
        page.get_by_role("radio", name="Library login").focus()
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("region", name="Browser: Bank login")).to_be_visible()
        page.get_by_role("application").focus()
        page.keyboard.type("ada")
        page.keyboard.press("Enter")
        expect(page.locator(".done-list li")).to_have_text(["type_text ada[ENTER]: done"])
        summary = page.get_by_text("Elements (2)")
        summary.press("Enter")
        page.get_by_role("button", name="button 'Log in'").press("Enter")
        expect(page.locator(".done-list li")).to_have_count(2)
        page.get_by_label("Text to type").fill("secret")
        page.keyboard.press("Enter")
        expect(page.locator(".done-list li")).to_have_count(3)
    lines = (asking_run / "events.jsonl").read_text().splitlines()
    acted = [event for event in map(json.loads, lines) if event["kind"] == "user_acted"]
    assert [event["sid"] for event in acted] == ["Bank"] * 3
