"""Actions that return data: table, value, fetch, evaluate."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError, ToolError
from ck_web.actions.action import ActionTarget, WebAction, web_action
from ck_web.actions.tokens import (
    json_of,
    json_text,
    optional_target_of,
    plain_id,
    quote,
    target_of,
    url_of,
    write_target,
)
from ck_web.page.page_text import one_line
from ck_web.page.state import full_url

_FETCH_FIELDS = frozenset({"url", "method", "data", "headers"})
_READING = frozenset({"GET", "HEAD", "OPTIONS"})
_ERROR = 400
_TABLE = re.compile(r"([0-9]{1,6})?\s*(dicts)?\s*(?:from\s+([0-9]{1,9}))?", re.IGNORECASE)
_MARKUP = re.compile(r"<(script|style|head)\b.*?</\1>|<[^>]*>", re.IGNORECASE | re.DOTALL)
_PAGE_IDS = (1, 2)  # ids of the document and of the scroll position: no table has them
_SHOWN = 60


@web_action("table", "table 2", "table [3] dicts", "table [3] from 500")
class Table(WebAction):
    """Return all rows of the n-th table, or of [id], as lists (or dicts)."""

    roles = ("table", "grid", "treegrid")
    value_name = "n"
    reads_only = True
    returns_data = True
    expects_change = False

    def write(
        self,
        id: int | str | None = None,
        n: int = 1,
        dicts: bool = False,
        start: int | None = None,
    ) -> str:
        which = str(id or n) if id is None or id in _PAGE_IDS else write_target(id)
        words = ["table", which, "dicts" if dicts else ""]
        return " ".join(filter(None, [*words, "" if start is None else f"from {int(start)}"]))

    def parse(self, rest: str) -> BrowserAction:
        target, options = optional_target_of(rest)
        found = _TABLE.fullmatch(options.strip())
        if found is None or (target and found[1]):
            raise ParseError(f"table takes a number or an element: table [3]; not {quote(rest)}")
        arguments: dict[str, Any] = {"dicts": True} if found[2] else {}
        if found[3]:
            arguments["start"] = int(found[3])
        number = None if target else plain_id(found[1] or "1")
        return self.action(target, number, **arguments)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        start = action.arguments.get("start")
        return {} if start is None else {"start": start}

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        found = browser.ask(action)
        return json.dumps(_as_dicts(found) if action.arguments.get("dicts") else found["rows"])

    def report(self, result: str) -> str:
        rows = json.loads(result)
        first = f", the first: {one_line(str(rows[0]), 2 * _SHOWN)}" if rows else ""
        return f"{len(rows):,} rows{first}"


def _as_dicts(found: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the rows of a table by the names of its columns, without the header rows.

    Raises:
        ToolError: the table has no header.
    """
    columns = found["columns"]
    if not columns:
        raise ToolError("this table has no header: read it without dicts")
    skipped = max(0, found["header"] - found["start"])
    return [dict(zip(columns, row, strict=True)) for row in found["rows"][skipped:]]


@web_action("value", "value [3]", "value [textbox 'Notes']")
class Value(WebAction):
    """Return the exact content of a field or editor, with its line breaks."""

    roles = ("textbox", "searchbox", "spinbutton", "combobox")
    reads_only = True
    returns_data = True
    expects_change = False

    def write(self, id: int | str, role: str = "") -> str:
        return f"value {write_target(id, role)}"

    def parse(self, rest: str) -> BrowserAction:
        return self.action(target_of(self.name, rest)[0])

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return json.dumps(browser.ask(action)["value"])

    def report(self, result: str) -> str:
        found = json.loads(result)
        if not isinstance(found, str):
            return result
        size = f" ({len(found):,} characters)" if len(found) > _SHOWN else ""
        return f"{one_line(found, _SHOWN)!r}{size}"


@web_action("fetch", "fetch URL", 'fetch {"url": "URL", "method": "POST", "data": "a=1"}')
class Fetch(WebAction):
    """Request a URL: {status, url, type, text}; a failed POST raises.

    data: a dict is sent as a form, or as JSON with such a content-type; a str as it is.
    """

    value_name = "url"
    reads_only = True
    returns_data = True
    expects_change = False

    def write(
        self,
        url: str,
        method: str = "GET",
        data: dict[str, Any] | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> str:
        given = {"url": str(url), "method": method, "data": data, "headers": headers}
        kept = {key: value for key, value in given.items() if value and value != "GET"}
        return f"fetch {url}" if set(kept) == {"url"} else f"fetch {json_text(kept)}"

    def parse(self, rest: str) -> BrowserAction:
        given = json_of(rest) if rest.lstrip().startswith("{") else {"url": url_of(rest)}
        if not isinstance(given, dict) or not given.get("url") or not set(given) <= _FETCH_FIELDS:
            raise ParseError("fetch needs a URL, and may have method, data and headers")
        headers = given.get("headers") or {}
        if not isinstance(headers, Mapping):
            raise ParseError("fetch takes headers as a dict")
        method = str(given.get("method") or "GET").upper()
        body, kind = _body(given.get("data"), {str(k).lower(): str(v) for k, v in headers.items()})
        headers = {**({"Content-Type": kind} if kind else {}), **headers}
        arguments: dict[str, Any] = {"method": method, "data": body, "headers": headers}
        return self.action(value=str(given["url"]), **arguments)

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        given, url = action.arguments, action.value or ""
        return {
            "actionValue": url if url.startswith(("/", "?")) else full_url(url),
            "method": given["method"],
            "text": given["data"],
            "headers": given["headers"],
        }

    def details(self, action: BrowserAction, element: Callable[[str], str]) -> list[str]:
        method = action.arguments["method"]
        return [] if method == "GET" else [method, repr(one_line(action.arguments["data"]))]

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        found = browser.ask(action)
        if found["status"] >= _ERROR and action.arguments["method"] not in _READING:
            # code that does not check the status would go on as if the request had succeeded
            raise ToolError(
                f"HTTP {found['status']}, the request did not succeed: "
                f"{one_line(_MARKUP.sub(' ', found['text']), 5 * _SHOWN)}"
            )
        return json.dumps(found)

    def report(self, result: str) -> str:
        found = json.loads(result)
        failed = " (an error)" if found["status"] >= _ERROR else ""
        return f"HTTP {found['status']}{failed}, {len(found['text']):,} characters"


def _body(data: Any, headers: Mapping[str, str]) -> tuple[str, str]:
    """Return the body of a request, and its content type unless the headers have one."""
    if not data:
        return "", ""
    kind = headers.get("content-type", "")
    if isinstance(data, str):
        return data, "" if kind else "application/x-www-form-urlencoded"
    if isinstance(data, Mapping) and "json" not in kind:
        return urlencode(data, doseq=True), "" if kind else "application/x-www-form-urlencoded"
    return json.dumps(data), "" if kind else "application/json"


@web_action("evaluate", "evaluate document.title")
class Evaluate(WebAction):
    """Run JavaScript in the page (await is allowed); return its value."""

    value_name = "script"
    quotes_value = True
    returns_data = True
    setting = "evaluate"

    def write(self, script: str) -> str:
        return f"evaluate {script}"

    def parse(self, rest: str) -> BrowserAction:
        if not rest.strip():
            raise ParseError("evaluate needs a script: evaluate document.title")
        return self.action(value=rest.strip())

    def wire(self, action: BrowserAction) -> dict[str, Any]:
        return {"text": action.value or "", "actionValue": ""}

    def execute(self, action: BrowserAction, browser: ActionTarget) -> str:
        return json.dumps(browser.ask(action)["value"])

    def report(self, result: str) -> str:
        return f"{len(result):,} characters of JSON"
