"""Actions on a page as a whole and on tabs: scroll, wait, goto, goback, tabs, dialogs."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import ACTIONS, ActionTarget, BareAction, WebAction, web_action
from ck_web.actions.tokens import (
    NUMBER,
    free_text_of,
    plain_id,
    quote,
    unbracketed,
    url_of,
    write_free_text,
    write_number,
)
from ck_web.page.page_text import one_line
from ck_web.page.state import full_url

_SECONDS = re.compile(rf"({NUMBER})\s*(?:s|secs?|seconds?)?")
_SECONDS_FIRST = re.compile(rf"({NUMBER})\s*s(?:ec|ecs|econd|econds)?(?:\s+(.*))?", re.DOTALL)
_MAX_WAIT = 60.0


@web_action("scroll", "scroll up", "scroll down", in_prompt="never")
class Scroll(WebAction):
    """Scroll the page up or down."""

    def parse(self, rest: str) -> BrowserAction:
        direction = unbracketed(rest).lower()
        if direction not in ("up", "down"):
            raise ParseError(f"scroll takes up or down, not {quote(direction)}")
        return self.action(value=direction)


class _ScrollOneWay(Scroll):
    """Base of the functions without arguments, which write `scroll up` and `scroll down`."""

    direction: str

    def write(self) -> str:
        return f"scroll {self.direction}"

    def parse(self, rest: str) -> BrowserAction:
        return ACTIONS["scroll"].action(value=self.direction)


@web_action("scroll_up", "scroll up", in_prompt="full")
class ScrollUp(_ScrollOneWay):
    """Scroll up by about one screen."""

    direction = "up"


@web_action("scroll_down", "scroll down", in_prompt="full")
class ScrollDown(_ScrollOneWay):
    """Scroll down by about one screen."""

    direction = "down"


@web_action("wait", "wait", "wait 2", in_prompt="full")
class Wait(WebAction):
    """Wait until the page changes, for at most `seconds` (default 5)."""

    expects_change = False

    def write(self, seconds: float | None = None) -> str:
        return "wait" if seconds is None else f"wait {write_number(seconds)}"

    def parse(self, rest: str) -> BrowserAction:
        given = unbracketed(rest).lower()
        if not given:
            return self.action()
        number = _SECONDS.fullmatch(given)
        if number is None or float(number[1]) < 0:
            raise ParseError(f"wait takes a number of seconds, not {quote(given)}")
        return self.action(value=f"{min(float(number[1]), _MAX_WAIT):g}")

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"timeout": float(action.value) * 1000} if action.value else {}


@web_action("goback", "goback", in_prompt="full")
class GoBack(BareAction):
    """Go back to the previous page of this tab."""


@web_action("reload", "reload")
class Reload(BareAction):
    """Load the page again."""


@web_action("restart", "restart", in_prompt="full")
class Restart(BareAction):
    """Go to the start page of the task."""


@web_action("goto", "goto URL", in_prompt="full")
class GoTo(WebAction):
    """Open a URL."""

    value_name = "url"

    def write(self, url: str) -> str:
        return f"goto {url}"

    def parse(self, rest: str) -> BrowserAction:
        url = url_of(rest)
        if not url:
            raise ParseError("goto needs a URL: goto https://example.org/")
        return self.action(value=url)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"actionValue": full_url(action.value)} if action.value else {}


@web_action("goforward", "goforward")
class GoForward(BareAction):
    """Undo goback."""


@web_action("new_tab", "new_tab URL")
class NewTab(GoTo):
    """Open a tab."""

    def write(self, url: str = "") -> str:
        return f"new_tab {url}".rstrip()

    def parse(self, rest: str) -> BrowserAction:
        return self.action(value=url_of(rest) or None)


@web_action("switch_tab", "switch_tab 1")
class SwitchTab(WebAction):
    """Switch to a tab, by its number."""

    value_name = "tab"

    def write(self, tab: int) -> str:
        return f"switch_tab {tab}"

    def parse(self, rest: str) -> BrowserAction:
        found = re.fullmatch(r"(?:tab\s*)?([0-9]+)", unbracketed(rest), re.IGNORECASE)
        if found is None:
            example = f"{self.name} 1"
            raise ParseError(f"{self.name} needs the number of a tab: {example}; got {quote(rest)}")
        return self.action(value=plain_id(found[1]))


@web_action("close_tab", "close_tab", "close_tab 1")
class CloseTab(SwitchTab):
    """Close a tab, or the current one."""

    def write(self, tab: int | None = None) -> str:
        return "close_tab" if tab is None else f"close_tab {tab}"

    def parse(self, rest: str) -> BrowserAction:
        return super().parse(rest) if rest.strip() else self.action()


@web_action("wait_for", "wait_for 10s some text", "wait_for 2s")
class WaitFor(WebAction):
    """Wait for a text; the result says if it came. Without text, wait `seconds`."""

    quotes_value = True
    expects_change = False
    keeps_message = True

    def write(self, text: str = "", seconds: float = 10) -> str:
        return f"wait_for {write_number(seconds)}s {write_free_text(text) if text else ''}".rstrip()

    def parse(self, rest: str) -> BrowserAction:
        given, seconds = rest.strip(), 10.0
        if timed := _SECONDS_FIRST.fullmatch(given):
            seconds, given = float(timed[1]), (timed[2] or "").strip()
        elif not given:
            raise ParseError("wait_for needs a text or a time: wait_for Done, wait_for 2s")
        if seconds < 0:
            raise ParseError(f"wait_for needs a time of 0 s or more, not {seconds:g} s")
        return self.action(value=free_text_of(given), seconds=min(seconds, _MAX_WAIT))

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        milliseconds = action.arguments.get("seconds", 10.0) * 1000
        return {"text": action.value or "", "timeout": milliseconds, "actionValue": ""}


@web_action("answer_dialog", "answer_dialog dismiss", "answer_dialog accept some text")
class AnswerDialog(WebAction):
    """Set the answer to the next dialog (default: dismissed), then act."""

    expects_change = False

    def write(self, accept: bool = True, text: str = "") -> str:
        return f"answer_dialog {_verdict(accept)} {write_free_text(text)}".rstrip()

    def parse(self, rest: str) -> BrowserAction:
        answer, _, text = rest.strip().partition(" ")
        if answer.lower() not in ("accept", "dismiss"):
            raise ParseError(f"answer_dialog takes accept or dismiss, not {quote(answer)}")
        return self.action(value=free_text_of(text.strip()), accept=answer.lower() == "accept")

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"actionValue": _verdict(action.arguments["accept"]), "text": action.value or ""}

    def describe(self, action: BrowserAction, element: Callable[[str], str]) -> str:
        text = [repr(one_line(action.value))] if action.value else []
        return " ".join([self.name, _verdict(action.arguments["accept"]), *text])

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return browser.send(action)


def _verdict(accept: bool) -> str:
    return "accept" if accept else "dismiss"
