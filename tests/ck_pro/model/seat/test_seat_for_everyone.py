"""The seat of the model is accessible: checked by axe, and used by keyboard alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe import needs_axe, problems_in_all_views
from person_browser import opened_page
from playwright.sync_api import Page, expect
from seat_client import Background
from viewer_runs import PICTURE

from ck_pro import LLM, Journal, MultiStepAgent, StopTool, Tool
from ck_pro.model.seat.seat import close_seats, open_seat
from ck_pro.testing import FakeChatServer, FakeEnvironment

pytestmark = [pytest.mark.integration, pytest.mark.browser]

PAGE = "[1] RootWebArea 'Shop'\n\t[3] button 'Send'\n\t[4] textbox 'Name'"
STOP = "So.\n```python\nstop('42', '')\n```"
NARROW = ("400", "ERR_", "Failed to load")


class Click(Tool):
    """Click an element. More help."""

    name = "click"
    element_roles = ("*",)  # type: ignore[assignment]

    def execute(self, id: int) -> str:
        return f"clicked {id}"


class Clear(Click):
    """Empty a field."""

    name = "clear"
    element_roles = ("textbox",)  # type: ignore[assignment]


class Shop(FakeEnvironment):
    """A page with a picture."""

    def picture(self, action: Any = None) -> Any:
        boxes = {"3": [0, 0, 50, 25], "4": [50, 0, 50, 25]}
        return {"image": PICTURE, "width": 100, "height": 50, "elements": boxes}


@pytest.fixture
def url() -> Iterator[str]:
    yield open_seat().url
    close_seats()


def running(folder: Path, name: str = "shopper") -> Background:
    model = LLM(call_target="manual:web")
    tools = [Click(), Clear(), StopTool()]
    agent = MultiStepAgent(
        name=name, model=model, tools=tools, environment=lambda: Shop([PAGE]), end_always=False
    )

    def run() -> Any:
        with Journal(folder / "j") as journal:
            return agent.run("Buy a lamp.", journal=journal, workdir=folder / "work")

    return Background(run)


@needs_axe
def test_axe_finds_no_violation_in_the_seat(url: str, tmp_path: Path) -> None:
    found: list[str] = []

    def check(name: str) -> None:
        found.extend(f"{name}: {one}" for one in problems_in_all_views(page))

    with (
        FakeChatServer([STOP]) as model,
        opened_page(url, allowed=NARROW, bypass_csp=True) as page,
    ):
        expect(page.get_by_text("Waiting for a prompt")).to_be_visible()
        check("empty")
        first, second = running(tmp_path / "a"), running(tmp_path / "b", "second")
        code = page.get_by_label("Code", exact=True)
        expect(page.locator(".queue li")).to_have_count(2)
        page.evaluate("document.querySelectorAll('main details').forEach(d => { d.open = true })")
        page.get_by_role("button", name="More calls for 4").click()
        check("prompt")
        code.fill("sto")
        code.press("Control+ ")
        expect(page.get_by_role("listbox")).to_be_visible()
        check("completions")
        code.fill("click(")
        expect(page.get_by_label("Dry run")).to_contain_text("SyntaxError")
        check("warning")
        page.get_by_label("Thought").fill("I only talk.")
        code.fill("")
        expect(page.get_by_label("Dry run")).to_contain_text("Nothing runs")
        check("error")
        page.get_by_role("button", name="No reply").click()
        check("no reply")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Give the rest to a model").click()
        page.keyboard.type("gtp:x\n")
        expect(page.get_by_role("alert")).to_be_visible()
        check("hand over")
        page.get_by_role("textbox", name="Model").fill(model.url)
        page.keyboard.press("Enter")
        expect(page.get_by_role("region", name="Handed over")).to_contain_text("1 call completed")
        check("handed over")
        code.fill("stop('7', '')")
        code.press("Control+Enter")
        assert {first.result().final_results["output"], second.result().final_results["output"]}
        page.route("**/api/queue*", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("has ended or was stopped. You can close")
        expect(page.get_by_role("button", name="Take back")).to_have_count(0)
        check("ended")
    assert found == []


def focus_order(page: Page, stop: str) -> list[str]:
    """Press Tab until an element whose name starts with `stop`; return the names on the way."""
    names: list[str] = []
    while not names or not names[-1].startswith(stop):
        page.keyboard.press("Tab")
        name, outlined = page.evaluate(
            """() => {
                const one = document.activeElement;
                const label = one.getAttribute('aria-label') || one.labels?.[0]?.innerText;
                const marks = [one, one.closest('.code-field')].filter(Boolean);
                const seen = marks.map((mark) => getComputedStyle(mark)).some((style) =>
                    style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1);
                return [(label || one.innerText || one.tagName).trim().split('\\n')[0], seen];
            }"""
        )
        assert outlined, f"the focus is not visible on {name}"
        names.append(str(name))
        assert len(names) < 60, names
    return names


def test_every_action_of_the_seat_is_reached_by_tab_in_reading_order(
    url: str, tmp_path: Path
) -> None:
    run = running(tmp_path)
    with opened_page(url) as page:
        code = page.get_by_label("Code", exact=True)
        expect(code).to_be_focused()
        expect(page.locator(".frame button")).to_have_count(2)
        code.press_sequentially("stop('7', '')")
        expect(page.get_by_label("Dry run")).to_contain_text("This code runs")
        page.get_by_role("button", name="Colours").focus()
        names = focus_order(page, "Functions")
        order = [
            "shopper",  # the queue
            "Picture of the page",
            "[3] button 'Send'",  # in the picture
            "[4] textbox 'Name'",
            "Copy all messages",
            "[3] button 'Send'",  # in the page's text: the arrow keys move on
            "system",
            "Parts",
            "Whole reply",
            "Thought",
            "Code",
            "Send",
            "Give the rest to a model",
            "No reply",
            "Functions",
        ]
        rest = iter(names)
        missing = [one for one in order if not any(name.startswith(one) for name in rest)]
        assert missing == [], names
        for name in ("No reply", "Give the rest to a model"):
            button = page.get_by_role("button", name=name)
            button.press("Enter")
            expect(page.get_by_role("dialog")).to_be_visible()
            page.keyboard.press("Escape")
            expect(button).to_be_focused()  # the focus returns
        code.press("Control+Enter")
        assert run.result().final_results["output"] == "7"
