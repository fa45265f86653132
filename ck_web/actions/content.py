"""Actions that return content of the whole page: read, find."""

from __future__ import annotations

import re
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import ActionTarget, WebAction, web_action
from ck_web.actions.tokens import plain_id, quote, text_of, unbracketed, write_free_text

_MAX_PARTS = 25
_PART_HEAD = re.compile(r"\APart \d+ of (\d+)\n\n")


@web_action("read", "read", "read 2")
class Read(WebAction):
    """Return the page as Markdown: all of it, or one part of 8000 characters."""

    reads_only = True
    expects_change = False

    def write(self, part: int | None = None) -> str:
        return "read" if part is None else f"read {part}"

    def parse(self, rest: str) -> BrowserAction:
        part = unbracketed(rest).lower()
        if part in ("", "all", "page"):
            return self.action()
        if not re.fullmatch(r"0*[1-9][0-9]{0,8}", part):
            raise ParseError(f"read takes the number of a part, from 1, not {quote(part)}")
        return self.action(value=plain_id(part))

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        if action.value:
            return browser.send(action)
        first = browser.send(self.action(value="1"))
        head = _PART_HEAD.match(first)
        if head is None:
            return first
        total = int(head[1])
        parts = [first[head.end() :]]
        for number in range(2, min(total, _MAX_PARTS) + 1):
            parts.append(_PART_HEAD.sub("", browser.send(self.action(value=str(number))), count=1))
        if total > len(parts):
            parts.append(f"({total - len(parts)} more parts: read({len(parts) + 1}) and so on)")
        return "\n".join(parts)


@web_action("find", "find text")
class Find(WebAction):
    """Return the lines of the whole page that contain text, with ids."""

    quotes_value = True
    reads_only = True
    expects_change = False

    def write(self, text: str) -> str:
        return f"find {write_free_text(text)}"

    def parse(self, rest: str) -> BrowserAction:
        return self.action(value=text_of(self.name, rest))

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"text": action.value or "", "actionValue": ""}

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return browser.send(action)
