"""Actions that return content of the whole page: read, find, find_ids."""

from __future__ import annotations

import json
import re
from typing import Any

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import ACTIONS, ActionTarget, WebAction, web_action
from ck_web.actions.tokens import (
    optional_target_of,
    plain_id,
    quote,
    text_of,
    unbracketed,
    write_free_text,
    write_name,
)

_READ = re.compile(r"(?:(all|page)|([0-9]+))?\s*(no\s?links)?", re.IGNORECASE)
_NAMED_FIND = re.compile(r"(?:([A-Za-z]+) )?'(.*)'", re.DOTALL)


@web_action("read", "read", "read 2", "read 2 nolinks")
class Read(WebAction):
    """Return the page as Markdown: all of it, or one part of 8000 characters."""

    reads_only = True
    expects_change = False

    def write(self, part: int | None = None, links: bool = True) -> str:
        words = ["read", "" if part is None else str(part), "" if links else "nolinks"]
        return " ".join(filter(None, words))

    def parse(self, rest: str) -> BrowserAction:
        given = unbracketed(rest)
        found = _READ.fullmatch(given)
        if found is None or (found[2] and not 0 < int(found[2]) < 10**9):
            raise ParseError(f"read takes the number of a part, from 1, not {quote(given)}")
        part = plain_id(found[2]) if found[2] else None
        arguments: dict[str, Any] = {"links": False} if found[3] else {}
        return self.action(value=part, **arguments)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"actionValue": action.value or "all", "links": action.arguments.get("links", True)}

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return browser.send(action)


@web_action("find", "find text", "find [link 'text'] 100")
class Find(WebAction):
    """Return the lines of the whole page that contain text, with ids and parents."""

    quotes_value = True
    reads_only = True
    expects_change = False

    def write(self, text: str, role: str = "", limit: int = 30) -> str:
        if not role and limit == 30:
            return f"find {write_free_text(text)}"
        return f"find {write_name(str(text), role)} {limit}"

    def parse(self, rest: str) -> BrowserAction:
        target, limit = optional_target_of(rest)
        named = _NAMED_FIND.fullmatch(target)
        if named is None or not re.fullmatch("[0-9]{0,6}", limit.strip()):
            return self.action(value=text_of(self.name, rest))
        arguments: dict[str, Any] = {"role": named[1], "limit": int(limit or 30)}
        return self.action(value=named[2], **arguments)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        given = action.arguments
        filters = {k: given[k] for k in ("role", "limit") if given.get(k)}
        return {"text": action.value or "", "actionValue": "", **filters}

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return browser.send(action)


@web_action("find_ids", "find_ids text", "find_ids [link 'text']")
class FindIds(WebAction):
    """Return the ids of all these lines, as a list."""

    quotes_value = True
    reads_only = True
    returns_data = True
    expects_change = False

    def write(self, text: str, role: str = "") -> str:
        return f"find_ids {write_name(str(text), role) if role else write_free_text(text)}"

    def parse(self, rest: str) -> BrowserAction:
        found = ACTIONS["find"].parse(rest)
        return self.action(value=found.value, **found.arguments)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return ACTIONS["find"].wire(action)

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return json.dumps(browser.ask(action)["ids"])
