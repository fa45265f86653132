"""The seat of the model in real Chromium: a person writes replies, with mouse or keyboard alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from person_browser import opened_page
from playwright.sync_api import Browser, Page, expect
from seat_client import Background

from ck_pro import LLM, Journal, MultiStepAgent, Status, StopTool, Tool
from ck_pro.journal import read_events
from ck_pro.model.seat.seat import close_seats, open_seat
from ck_pro.testing import FakeEnvironment

pytestmark = [pytest.mark.integration, pytest.mark.browser]

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/"
    "iZk9HQAAAABJRU5ErkJggg=="
)
PAGE = """URL: http://shop.example/
[1] RootWebArea 'Shop'
\t[3] button 'Send'
\t[4] textbox 'Name'
\t\t[5] combobox 'Size'
\t[6] StaticText 'Welcome'"""
HOSTILE = """[1] RootWebArea '<script>document.title = "hacked"</script>'
\t[7] button '<img src=x onerror="document.title = 1">'
\t[8] link '\u202egnp.exe </button></div><script>fetch("http://evil.example")</script>'
```
</pre><script>document.title = "hacked"</script>
![](http://evil.example/track.png) javascript:alert(1)"""


class Click(Tool):
    """Click an element. More help."""

    name = "click"
    element_roles = ("*",)  # type: ignore[assignment]

    def execute(self, id: int) -> str:
        return f"clicked {id}"


class Type(Tool):
    """Write into a field."""

    name = "type"
    element_roles = ("textbox",)  # type: ignore[assignment]

    def execute(self, id: int, content: str, enter: bool = True) -> str:
        return f"typed {content} into {id}"


@pytest.fixture
def url() -> Iterator[str]:
    yield open_seat().url
    close_seats()


def agent(name: str = "shopper", **settings: Any) -> MultiStepAgent:
    given = {"model": LLM(call_target="manual:web"), "tools": [Click(), Type(), StopTool()]}
    return MultiStepAgent(name=name, end_always=False, **{**given, **settings})


def running(one: MultiStepAgent, folder: Path, task: str = "Buy a lamp.") -> Background:
    def run() -> Any:
        with Journal(folder / "j") as journal:
            return one.run(task, journal=journal, workdir=folder / "work")

    return Background(run)


def shop(page: str = PAGE) -> Any:
    """Return the setting of an environment with a page and a picture."""
    elements = {"3": [0, 0, 50, 25], "4": [50, 0, 50, 25]}

    class Shop(FakeEnvironment):
        def picture(self, action: Any = None) -> Any:
            return {"image": PIXEL, "width": 100, "height": 50, "elements": elements}

    return lambda: Shop([page])


def code_of(page: Page) -> Any:
    return page.get_by_label("Code", exact=True)


def test_elements_of_the_page_write_the_calls_of_a_reply(
    chromium: Browser, url: str, tmp_path: Path
) -> None:
    run = running(agent(environment=shop()), tmp_path)
    with opened_page(url, browser=chromium) as page:
        page.get_by_role("button", name="[3] button 'Send'").first.click()
        page.get_by_role("button", name="[4] textbox 'Name'").last.click()
        page.keyboard.type("Ada")  # the cursor is between the quotes
        expect(code_of(page)).to_have_value('click(id=3)\ntype(id=4, content="Ada")')
        page.locator(".frame button").first.click()
        expect(code_of(page)).to_have_value('click(id=3)\ntype(id=4, content="Ada")\nclick(id=3)')
        page.get_by_role("button", name="[5] combobox").hover()
        expect(page.get_by_text("[1] RootWebArea")).to_be_visible()
        page.get_by_label("Thought").fill("All at once.")
        expect(page.get_by_label("Dry run")).to_contain_text("This code runs")
        page.get_by_role("button", name="Send Ctrl").click()
        expect(page.get_by_role("heading", name="shopper")).to_contain_text("step 1")
        expect(page.get_by_text("Unchanged since the last call")).to_be_visible()
        code_of(page).fill("stop('done', 'by hand')")
        page.keyboard.press("Control+Enter")
        session = run.result()
    assert session.status is Status.DONE and session.final_results["output"] == "done"
    calls = [e["data"] for e in read_events(tmp_path / "j") if e["kind"] == "model_call"]
    assert [call["model"] for call in calls] == ["manual", "manual"]
    assert calls[0]["output"].startswith("Thought: All at once.\n```python\nclick(id=3)")
    assert calls[0]["usage"]["estimated"] and calls[0]["usage"]["completion_tokens"] > 10


def test_a_reply_is_written_and_sent_by_keyboard_alone(
    chromium: Browser, url: str, tmp_path: Path
) -> None:
    run = running(agent(environment=shop()), tmp_path)
    with opened_page(url, browser=chromium) as page:
        expect(code_of(page)).to_be_focused()
        page.get_by_role("button", name="[3] button 'Send'").last.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Shift+Enter")
        expect(page.get_by_role("group", name="Calls for [4] textbox")).to_be_visible()
        page.keyboard.press("Enter")
        expect(code_of(page)).to_be_focused()
        expect(code_of(page)).to_have_value('type(id=4, content="")')
        page.keyboard.type("x")
        expect(code_of(page)).to_have_value('type(id=4, content="x")')
        page.keyboard.press("Control+a")
        page.keyboard.type("sto")
        expect(page.get_by_role("option").first).to_contain_text("stop(output, log=…)")
        page.keyboard.press("Tab")
        page.keyboard.type("'7', 'typed')")
        expect(page.get_by_label("Dry run")).to_contain_text("stop('7', 'typed')")
        page.keyboard.press("Control+Enter")
        assert run.result().final_results["output"] == "7"
        expect(page.get_by_text("No agent waits")).to_be_visible()


def test_an_error_is_shown_before_the_reply_is_sent(
    chromium: Browser, url: str, tmp_path: Path
) -> None:
    run = running(agent(max_steps=2), tmp_path)
    with opened_page(url, browser=chromium) as page:
        page.get_by_role("button", name="Whole reply").click()
        page.get_by_label("Whole reply, as the model writes it").fill("I only talk.")
        expect(page.get_by_label("Dry run")).to_contain_text("The reply contains no code")
        page.keyboard.press("Control+Enter")
        page.get_by_role("button", name="Send anyway").click()
        expect(page.get_by_text("ParseError: The reply contains no code").first).to_be_visible()
        code_of(page).fill("stop('ok', '')")
        page.keyboard.press("Control+Enter")
        assert run.result().final_results["output"] == "ok"


def test_calls_are_composed_for_an_agent_with_function_calls(
    chromium: Browser, url: str, tmp_path: Path
) -> None:
    run = running(agent(language="function_calls", environment=shop()), tmp_path)
    with opened_page(url, browser=chromium) as page:
        page.get_by_role("button", name="[3] button 'Send'").last.click()
        page.get_by_label("Calls, one below the other").press("Control+End")
        page.keyboard.type("\nstop(output='done'")
        page.keyboard.press("Escape")
        expect(page.get_by_label("Dry run")).to_contain_text("never closed")
        page.keyboard.type(")")
        page.keyboard.press("Control+Enter")
        assert run.result().final_results["output"] == "done"
    (call,) = [e["data"] for e in read_events(tmp_path / "j") if e["kind"] == "model_call"]
    assert [c["function"]["name"] for c in call["tool_calls"]] == ["click", "stop"]


def test_two_waiting_agents_keep_their_drafts_over_a_reload(
    chromium: Browser, url: str, tmp_path: Path
) -> None:
    first = running(agent("first"), tmp_path / "a", "Task one.")
    second = running(agent("second"), tmp_path / "b", "Task two.")
    with opened_page(url, browser=chromium) as page:
        for name in ("first", "second"):
            page.get_by_role("button", name=name).click()
            expect(page.get_by_role("heading", name=name)).to_be_visible()
            code_of(page).fill(f"stop('{name}', '')")
            expect(page.get_by_label("Dry run")).to_contain_text(f"stop('{name}'")
        page.reload()
        page.get_by_role("button", name="first").click()
        expect(code_of(page)).to_have_value("stop('first', '')")
        page.keyboard.press("Alt+ArrowDown")
        page.keyboard.press("Alt+ArrowUp")
        page.get_by_role("button", name="second").click()
        expect(code_of(page)).to_have_value("stop('second', '')")
        page.get_by_role("button", name="Send Ctrl").click()
        assert second.result().final_results["output"] == "second"
        expect(page.get_by_role("heading", name="first")).to_be_visible()  # after a short wait
        page.get_by_role("button", name="Send Ctrl").click()
        assert first.result().final_results["output"] == "first"


def test_hostile_text_in_a_prompt_stays_text(chromium: Browser, url: str, tmp_path: Path) -> None:
    run = running(agent(environment=shop(HOSTILE)), tmp_path, "<img src=x onerror=alert(1)>")
    requests: list[str] = []
    with opened_page(url, browser=chromium) as page:
        page.on("request", lambda sent: requests.append(sent.url))
        expect(page.get_by_role("button", name="[7] button '<img").last).to_be_visible()
        page.reload()
        expect(page.get_by_role("button", name="[7] button '<img").last).to_be_visible()
        assert "model" in page.title()
        assert page.locator("script:not([src])").count() == 0
        assert page.locator(".prompt img, .prompt script, .prompt a").count() == 0
        expect(page.locator(".control").first).to_have_text("RLO")
        assert not [sent for sent in requests if "127.0.0.1" not in sent and "data:" not in sent]
        code_of(page).fill("stop('safe', '')")
        page.keyboard.press("Control+Enter")
        assert run.result().final_results["output"] == "safe"


def test_a_killed_run_leaves_the_text_on_the_open_page(chromium: Browser, tmp_path: Path) -> None:
    program = "from ck_pro import LLM\nLLM(call_target='manual:web')('Which lamp?')\n"
    with subprocess.Popen(
        [sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        address = process.stderr.readline().rpartition(" ")[2].strip()
        with opened_page(address, allowed=("net::ERR",), browser=chromium) as page:
            text = page.get_by_label("Whole reply, as the model writes it")
            text.fill("The red one.")
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            expect(page.get_by_role("alert")).to_contain_text("has ended or was stopped")
            expect(text).to_have_value("The red one.")
            expect(page.get_by_role("button", name="Send Ctrl")).to_be_disabled()
