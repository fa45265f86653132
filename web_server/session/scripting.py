"""Run JavaScript in a page, with limits of time and size."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from playwright.async_api import CDPSession

from web_server.errors import Conflict
from web_server.javascript import load_script
from web_server.session.page_handle import PageHandle
from web_server.view import one_line

SCRIPT_SECONDS = 10.0
"""Limit for a script, its promises included."""
MAX_VALUE = 1_000_000
"""Limit for its value, in characters of JSON."""
_RETURN = "Illegal return statement"
_CALL = "function () { return this(); }"


async def run_script(page_handle: PageHandle, script: str) -> Any:
    """Run a script in the page's own world and return its awaited value.

    Args:
        page_handle: the page.
        script: an expression, statements (the value is that of the last one or of `return`), or a
            function, which is called.

    Raises:
        Conflict: the script failed, or exceeded a limit.
    """
    try:
        return await asyncio.wait_for(_value(page_handle.activity.cdp, script), SCRIPT_SECONDS)
    except asyncio.TimeoutError:
        raise Conflict(f"the script did not finish within {SCRIPT_SECONDS:g} s") from None


async def _value(cdp: CDPSession, script: str) -> Any:
    answer = await _evaluate(cdp, script)
    if _RETURN in _failure(answer):
        answer = await _evaluate(cdp, f"(async () => {{ {script}\n}})()")
    found = await _awaited(cdp, _result(answer))
    if found.get("type") == "function":
        found = _result(await _call(cdp, found, _CALL, False))
    if "objectId" not in found:
        return found.get("value", found.get("unserializableValue"))
    text = str(
        _result(await _call(cdp, found, load_script("session", "value_as_json"), True)).get("value")
    )
    if len(text) > MAX_VALUE:
        raise Conflict(
            f"the value of the script is larger than {MAX_VALUE:,} characters of JSON: return less"
        )
    return json.loads(text)


async def _awaited(cdp: CDPSession, found: dict[str, Any]) -> dict[str, Any]:
    if found.get("subtype") != "promise":
        return found
    return _result(await cdp.send("Runtime.awaitPromise", {"promiseObjectId": found["objectId"]}))


async def _evaluate(cdp: CDPSession, expression: str) -> dict[str, Any]:
    return await cdp.send(
        "Runtime.evaluate",
        {
            "expression": expression,
            "replMode": True,
            "awaitPromise": True,
            "userGesture": True,
            "timeout": SCRIPT_SECONDS * 1000,
        },
    )


async def _call(
    cdp: CDPSession, on: dict[str, Any], function: str, by_value: bool
) -> dict[str, Any]:
    return await cdp.send(
        "Runtime.callFunctionOn",
        {
            "functionDeclaration": function,
            "objectId": on["objectId"],
            "arguments": [{"value": MAX_VALUE}],
            "awaitPromise": True,
            "returnByValue": by_value,
        },
    )


def _failure(answer: dict[str, Any]) -> str:
    details = answer.get("exceptionDetails") or {}
    thrown = details.get("exception") or {}
    return str(thrown.get("description") or thrown.get("value") or details.get("text") or "")


def _result(answer: dict[str, Any]) -> dict[str, Any]:
    if "exceptionDetails" in answer:
        raise Conflict(f"the script failed: {one_line(_failure(answer))[:500]}")
    found: dict[str, Any] = answer["result"]
    return found
