"""Actions on the page as a whole: scrolling, history, tabs, waiting, reading."""

from __future__ import annotations

import asyncio

from web_server import hands
from web_server.doing import Doing
from web_server.errors import BadRequest, Conflict, NotFound
from web_server.reading import find_lines, read_page
from web_server.saving import save_address
from web_server.view import one_line

WAIT_SECONDS = 5.0
"""How long `wait` waits for something to change on the page."""
FIND_SECONDS = 10.0
"""How long `wait_for` waits for its text, unless it is told."""

MAX_WAIT = 60_000
"""How many milliseconds `wait` and `wait_for` wait at most."""

_ENDS: dict[str, tuple[float, float]] = {"top": (0, -1e6), "bottom": (0, 1e6)}
_SHARES: dict[str, tuple[float, float]] = {
    "down": (0, 0.9),
    "up": (0, -0.9),
    "right": (0.9, 0),
    "left": (-0.9, 0),
    **_ENDS,
}
"""How far to scroll, as shares of what is seen at once."""


async def scroll(doing: Doing) -> str:
    """Scroll the page, or what scrolls most of it."""
    direction = doing.request.actionValue.strip().lower() or "down"
    if direction not in _SHARES:
        known = ", ".join(_SHARES)
        asked = one_line(direction)[:40]
        raise BadRequest(f"actionValue of scroll must be one of {known}; not '{asked}'")
    if doing.request.targetId.strip():
        return await scroll_in(doing)
    dx, dy = _SHARES[direction]
    moved = await doing.surface.settler.call("scroll", dx, dy)
    if moved == "none" and direction not in _ENDS:
        # Nothing scrolls by itself: a map or a canvas may listen to the wheel.
        width, height = doing.session.viewport
        await doing.surface.move_mouse(width / 2, height / 2)
        await doing.surface.turn_wheel(dx * width, dy * height)
        return f"turned the wheel {direction}"
    if moved == "end":
        return f"cannot scroll further {direction}"
    return f"scrolled {direction}"


async def scroll_in(doing: Doing) -> str:
    """Scroll inside an element."""
    request = doing.request
    target = await hands.find(doing.surface, request.targetId)
    dx, dy = request.x or 0.0, request.y or 0.0
    if not dx and not dy:
        direction = request.actionValue.strip().lower() or "down"
        if direction not in _SHARES:
            known = ", ".join(_SHARES)
            raise BadRequest(f"scroll_in needs x and y in pixels, or one of {known} as actionValue")
        dx, dy = _SHARES[direction]
    moved = await target.evaluate(
        """(element, [dx, dy]) => {
          for (let box = element; box; box = box.parentElement || box.getRootNode().host) {
            const before = [box.scrollLeft, box.scrollTop];
            const unit = (share, size) => Math.abs(share) < 1 ? share * size : share;
            box.scrollBy({left: unit(dx, box.clientWidth), top: unit(dy, box.clientHeight),
                          behavior: 'instant'});
            if (box.scrollLeft !== before[0] || box.scrollTop !== before[1]) return true;
            if (box !== element && box.scrollHeight > box.clientHeight + 1
                && /auto|scroll/.test(getComputedStyle(box).overflowY)) return false;
          }
          return false;
        }""",
        [dx, dy],
    )
    return f"{'scrolled' if moved else 'cannot scroll further'} in {hands.describe(target)}"


async def scroll_to(doing: Doing) -> str:
    """Bring an element, or a text, into view."""
    request = doing.request
    element_id = request.targetId.strip()
    text = request.text or request.actionValue
    if not element_id:
        if not text.strip():
            raise BadRequest("scroll_to needs targetId or text")
        found = await find_lines(doing.surface, text, 1)
        if not found:
            raise NotFound(f"the page does not show '{one_line(text)[:80]}'")
        element_id = found[0].element_id
    target = await hands.find(doing.surface, element_id)
    target = await target.scroll_into_view()
    return f"scrolled to {hands.describe(target)}"


async def goback(doing: Doing) -> str:
    """Go back in history."""
    return await doing.tab.go_in_history(-1)


async def goforward(doing: Doing) -> str:
    """Go forward in history."""
    return await doing.tab.go_in_history(1)


async def goto(doing: Doing) -> str:
    """Navigate to a URL."""
    url = doing.request.actionValue or doing.request.text
    if not url.strip():
        raise BadRequest("goto needs a URL as actionValue")
    return await doing.tab.goto(url)


async def restart(doing: Doing) -> str:
    """Navigate to the URL that the page was opened with."""
    return await doing.tab.goto(doing.tab.home)


async def wait(doing: Doing) -> str:
    """Wait until something changes on the page."""
    given = doing.request.timeout
    seconds = WAIT_SECONDS if given is None else given / 1000
    changed = await doing.surface.settler.call("changed", min(seconds * 1000, MAX_WAIT))
    return "waited until something changed" if changed else "waited"


async def wait_for(doing: Doing) -> str:
    """Wait for a text, or for a number of milliseconds."""
    request = doing.request
    text = request.text or request.actionValue
    if text.strip():
        limit = FIND_SECONDS * 1000 if request.timeout is None else request.timeout
        limit = min(limit, MAX_WAIT)
        if await doing.surface.settler.call("text", text, limit):
            return f"'{one_line(text)[:80]}' is on the page"
        raise Conflict(f"'{one_line(text)[:80]}' did not appear within {limit:g} ms")
    if request.timeout is None:
        raise BadRequest("wait_for needs text, or timeout in ms")
    milliseconds = min(request.timeout, MAX_WAIT)
    await asyncio.sleep(milliseconds / 1000)
    return f"waited {milliseconds:g} ms"


async def new_tab(doing: Doing) -> str:
    """Open a tab and show it."""
    if not doing.session.follows_tabs:
        raise BadRequest('this browser has one page: ask for tabs with "tabs": true at getBrowser')
    url = doing.request.actionValue or doing.request.text or "about:blank"
    doing.tab = await doing.session.open_tab(url)
    await doing.tab.goto(url)
    return f"opened tab {doing.tab.id}"


async def switch_tab(doing: Doing) -> str:
    """Show another tab."""
    wanted = doing.request.actionValue or doing.request.text
    if not wanted.strip():
        raise BadRequest("switch_tab needs the tab's pageId as actionValue")
    doing.tab = doing.session.tab(wanted)
    await doing.tab.surface.page.bring_to_front()
    return f"switched to tab {doing.tab.id}"


async def close_tab(doing: Doing) -> str:
    """Close a tab."""
    session = doing.session
    tab = session.tab(doing.request.actionValue) if doing.request.actionValue else doing.tab
    if len(session.tabs) == 1:
        raise Conflict("the last tab cannot be closed")
    if not await session.close_tab(tab):
        session.current = doing.tab.id
        raise Conflict(
            f"tab {tab.id} was not closed: its page asked whether to leave it; to accept, "
            "answer_dialog first, then act again"
        )
    doing.tab = session.tab("")
    return f"closed tab {tab.id}, tab {doing.tab.id} is shown now"


async def read(doing: Doing) -> str:
    """Read a part of the page as Markdown."""
    return await read_page(doing.surface, doing.request.actionValue)


async def find(doing: Doing) -> str:
    """List the lines of the page that hold a text."""
    text = doing.request.text or doing.request.actionValue
    if not text.strip():
        raise BadRequest("find needs the words to look for, as text")
    found = await find_lines(doing.surface, text, 30)
    if not found:
        return f"'{one_line(text)[:80]}' is not on the page"
    lines = [line.text for line in found]
    return f"found '{one_line(text)[:80]}' in {len(lines)} lines:\n" + "\n".join(lines)


async def save(doing: Doing) -> str:
    """Download what is at a URL."""
    url = doing.request.actionValue or doing.request.text
    if not url.strip():
        raise BadRequest("save needs a URL as actionValue")
    return await save_address(doing.session, doing.tab, url)


async def answer_dialog(doing: Doing) -> str:
    """Order the answer to the next dialog that asks something."""
    value = doing.request.actionValue.strip().lower() or "accept"
    if value not in ("accept", "dismiss"):
        raise BadRequest(
            "actionValue of answer_dialog must be accept or dismiss (text is for a prompt), not "
            f"'{one_line(value)[:40]}'"
        )
    answer = (value == "accept", doing.request.text or None)
    count = doing.session.news.order_answer(answer)
    dialogs = "dialog" if count == 1 else f"{count} dialogs"
    return f"the next {dialogs} will be {value}ed"
