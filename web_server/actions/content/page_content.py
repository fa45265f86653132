"""Actions that read the page as a whole: read, find, table, wait_for."""

from __future__ import annotations

import asyncio

from web_server.actions.action_context import ActionContext
from web_server.actions.content.tables import TABLE_ROLES, read_table
from web_server.actions.named_elements import FOUND_LINES, MAX_LINES, find_elements, shows_text
from web_server.actions.registry import action
from web_server.contract import PerformAction
from web_server.errors import BadRequest
from web_server.session.page_handle import PageHandle
from web_server.session.reading import read_page
from web_server.view import one_line

FIND_SECONDS = 10.0
"""How long `wait_for` waits for its text by default."""
MAX_WAIT = 60_000
"""Longest wait of `wait` and `wait_for`, in milliseconds."""
_LOOK_MS = 500  # values of fields change without an event
_QUIET_MS = 100


def requested_seconds(request: PerformAction) -> float:
    """Return the waiting time that a request asks for."""
    return min(request.timeout or 0, MAX_WAIT) / 1000


@action("read", acts=False, settles=False)
async def read(context: ActionContext) -> str:
    """Read a part of the page as Markdown."""
    request = context.request
    return await read_page(context.page_handle, request.actionValue, links=request.links)


@action("find", "find_ids", acts=False, settles=False)
async def find(context: ActionContext) -> str:
    """List the elements of the whole page that show a text; the data are their ids."""
    request = context.request
    text = request.text or request.actionValue
    if not text.strip() and not request.role.strip():
        raise BadRequest("find needs the words to find as text, or a role")
    found = await find_elements(context.page_handle, text, request.role)
    context.data = {"ids": [int(each.element_id) for each in found]}
    words = f"'{one_line(text)[:80]}'"
    if request.role.strip():
        words = f"{one_line(request.role)[:40]} {words}"
    if not found:
        return f"{words} is not on the page"
    total = f"{len(found)} line{'s' if len(found) > 1 else ''}"
    shown = found[: int(min(max(request.limit or FOUND_LINES, 1), MAX_LINES))]
    first = f", first {len(shown)}" if len(shown) < len(found) else ""
    return f"found {words} in {total}{first}:\n" + "\n".join(each.line for each in shown)


@action("table", acts=False, settles=False, purpose="table", roles=TABLE_ROLES)
async def table(context: ActionContext) -> str:
    """Return the rows of a table as data."""
    request = context.request
    start = None if request.start is None else int(request.start)
    found = await read_table(context.page_handle, request.targetId, request.actionValue, start)
    label = found.pop("label")
    context.data = found
    return f"{len(found['rows']):,} of {found['total']:,} rows of {label}"


@action("wait_for", acts=False, extra_seconds=requested_seconds)
async def wait_for(context: ActionContext) -> str:
    """Wait for a text, or for a number of milliseconds; return what happened."""
    request = context.request
    text = request.text or request.actionValue
    if text.strip():
        limit = FIND_SECONDS * 1000 if request.timeout is None else request.timeout
        return await _wait_for_text(context.page_handle, text, min(limit, MAX_WAIT) / 1000)
    if request.timeout is None:
        raise BadRequest("wait_for needs text, or timeout in ms")
    milliseconds = min(request.timeout, MAX_WAIT)
    await asyncio.sleep(milliseconds / 1000)
    return f"waited {milliseconds:g} ms"


async def _wait_for_text(page_handle: PageHandle, text: str, seconds: float) -> str:
    """Wait until the page shows a text, also as the value of a field; return what happened."""
    now = asyncio.get_running_loop().time
    end = now() + seconds
    words, waited = f"'{one_line(text)[:80]}'", False
    while not await shows_text(page_handle, text):
        left = end - now()
        if left <= 0:
            return f"{words} did not appear within {seconds:g} s"
        await page_handle.settler.call("changed", min(left * 1000, _LOOK_MS))
        await page_handle.settler.call("still", _QUIET_MS)
        waited = True
    return f"{words} is on the page{f' after {seconds - end + now():.1f} s' if waited else ''}"
