"""Actions that return data: fetch, evaluate."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from ck_pro.events import BrowserAction
from ck_pro.exceptions import ParseError
from ck_web.actions.action import ActionTarget, WebAction, web_action
from ck_web.actions.tokens import json_of, json_text, url_of
from ck_web.page.page_text import one_line
from ck_web.page.state import full_url

_FETCH_FIELDS = frozenset({"url", "method", "data", "headers"})


@web_action("fetch", "fetch URL", 'fetch {"url": "URL", "method": "POST", "data": "a=1"}')
class Fetch(WebAction):
    """Request a URL in this session: {status, url, type, text}.

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
        return json.dumps(browser.ask(action))

    def report(self, result: str) -> str:
        found = json.loads(result)
        return f"HTTP {found['status']}, {len(found['text']):,} characters"


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
