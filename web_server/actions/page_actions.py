"""Actions on the page as a whole: scroll, navigate, wait, fetch; tabs and dialogs."""

from __future__ import annotations

from web_server.actions import pointer
from web_server.actions.action_context import ActionContext
from web_server.actions.content.page_content import MAX_WAIT, requested_seconds
from web_server.actions.fetching import FETCH_SECONDS, fetch_address
from web_server.actions.named_elements import find_elements
from web_server.actions.registry import action
from web_server.actions.saving import SAVE_SECONDS, save_address
from web_server.errors import BadRequest, Conflict, NotFound
from web_server.session.scripting import SCRIPT_SECONDS, run_script
from web_server.view import one_line, shortened

WAIT_SECONDS = 5.0
"""How long `wait` waits for a change of the page by default."""

_ENDS: dict[str, tuple[float, float]] = {"top": (0, -1e6), "bottom": (0, 1e6)}
_SHARES: dict[str, tuple[float, float]] = {
    "down": (0, 0.9),
    "up": (0, -0.9),
    "right": (0.9, 0),
    "left": (-0.9, 0),
    **_ENDS,
}
"""How far to scroll, as shares of the visible size."""


@action("scroll")
async def scroll(context: ActionContext) -> str:
    """Scroll the page, or its largest scrollable part."""
    direction = context.request.actionValue.strip().lower() or "down"
    if direction not in _SHARES:
        known = ", ".join(_SHARES)
        asked = one_line(direction)[:40]
        raise BadRequest(f"actionValue of scroll must be one of {known}; not '{asked}'")
    if context.request.targetId.strip():
        return await scroll_in(context)
    dx, dy = _SHARES[direction]
    moved = await context.page_handle.settler.call("scroll", dx, dy)
    if moved == "none" and direction not in _ENDS:
        # Nothing scrolls natively: a map or a canvas may listen to the wheel.
        width, height = context.session.viewport
        await context.page_handle.move_mouse(width / 2, height / 2)
        await context.page_handle.turn_wheel(dx * width, dy * height)
        return f"turned the wheel {direction}"
    if moved == "end":
        return f"cannot scroll further {direction}"
    return f"scrolled {direction}"


@action("scroll_in")
async def scroll_in(context: ActionContext) -> str:
    """Scroll inside an element."""
    request = context.request
    target = await pointer.find(context.page_handle, request.targetId)
    dx, dy = request.x or 0.0, request.y or 0.0
    if not dx and not dy:
        direction = request.actionValue.strip().lower() or "down"
        if direction not in _SHARES:
            known = ", ".join(_SHARES)
            raise BadRequest(f"scroll_in needs x and y in pixels, or one of {known} as actionValue")
        dx, dy = _SHARES[direction]
    moved = await target.call("scrollBox", dx, dy)
    return f"{'scrolled' if moved else 'cannot scroll further'} in {pointer.describe(target)}"


@action("scroll_to")
async def scroll_to(context: ActionContext) -> str:
    """Bring an element, or a text, into view."""
    request = context.request
    element_id = request.targetId.strip()
    text = request.text or request.actionValue
    if not element_id:
        if not text.strip():
            raise BadRequest("scroll_to needs targetId or text")
        found = await find_elements(context.page_handle, text)
        if not found:
            raise NotFound(f"the page does not show '{one_line(text)[:80]}'")
        element_id = found[0].element_id
    target = await pointer.find(context.page_handle, element_id)
    target = await target.scroll_into_view()
    return f"scrolled to {pointer.describe(target)}"


@action("goback", leaves_page=True)
async def goback(context: ActionContext) -> str:
    """Go back in history."""
    return await context.tab.go_in_history(-1)


@action("goforward", leaves_page=True)
async def goforward(context: ActionContext) -> str:
    """Go forward in history."""
    return await context.tab.go_in_history(1)


@action("reload", leaves_page=True)
async def reload(context: ActionContext) -> str:
    """Load the page again."""
    return await context.tab.reload()


def _requested_url(context: ActionContext) -> str:
    return context.request.actionValue or context.request.text


@action("goto", leaves_page=True, destination=_requested_url)
async def goto(context: ActionContext) -> str:
    """Navigate to a URL."""
    url = _requested_url(context)
    if not url.strip():
        raise BadRequest("goto needs a URL as actionValue")
    return await context.tab.goto(url)


@action("restart", leaves_page=True, destination=lambda context: context.tab.home)
async def restart(context: ActionContext) -> str:
    """Navigate to the URL that the page was opened with."""
    return await context.tab.goto(context.tab.home)


@action("wait", acts=False, survives_crash=True, extra_seconds=requested_seconds)
async def wait(context: ActionContext) -> str:
    """Wait until something changes on the page."""
    given = context.request.timeout
    seconds = WAIT_SECONDS if given is None else given / 1000
    changed = await context.page_handle.settler.call("changed", min(seconds * 1000, MAX_WAIT))
    return "waited until something changed" if changed else "waited"


@action("new_tab")
async def new_tab(context: ActionContext) -> str:
    """Open a tab and show it."""
    if not context.session.follows_tabs:
        raise BadRequest('this browser has one page: ask for tabs with "tabs": true at getBrowser')
    url = _requested_url(context) or "about:blank"
    if context.tab.refuse(url):
        return context.tab.failure
    context.tab = await context.session.open_tab(url)
    await context.tab.goto(url)
    return f"opened tab {context.tab.id}"


@action("switch_tab")
async def switch_tab(context: ActionContext) -> str:
    """Show another tab."""
    page_id = context.request.actionValue or context.request.text
    if not page_id.strip():
        raise BadRequest("switch_tab needs the tab's pageId as actionValue")
    context.tab = context.session.tab(page_id)
    await context.tab.page_handle.page.bring_to_front()
    return f"switched to tab {context.tab.id}"


@action("close_tab", closes_page=True)
async def close_tab(context: ActionContext) -> str:
    """Close a tab."""
    session = context.session
    tab = session.tab(context.request.actionValue) if context.request.actionValue else context.tab
    if len(session.tabs) == 1:
        raise Conflict("the last tab cannot be closed")
    if not await session.close_tab(tab):
        session.current = context.tab.id
        raise Conflict(
            f"tab {tab.id} was not closed: its page asked whether to leave it; to accept, "
            "answer_dialog first, then act again"
        )
    context.tab = session.tab("")
    return f"closed tab {tab.id}, tab {context.tab.id} is shown now"


@action("save", acts=False, settles=False, extra_seconds=lambda _request: SAVE_SECONDS)
async def save(context: ActionContext) -> str:
    """Download the file at a URL."""
    url = _requested_url(context)
    if not url.strip():
        raise BadRequest("save needs a URL as actionValue")
    return await save_address(context.session, context.tab, url)


@action("fetch", acts=False, settles=False, extra_seconds=lambda _request: FETCH_SECONDS)
async def fetch(context: ActionContext) -> str:
    """Request a URL through the session."""
    request, url = context.request, context.request.actionValue
    if not url.strip():
        raise BadRequest("fetch needs a URL as actionValue")
    found = await fetch_address(
        context.session, context.tab, url, request.method, request.text, request.headers or {}
    )
    context.data = found
    return (
        f"HTTP {found['status']}, {len(found['text']):,} characters from {shortened(found['url'])}"
    )


@action("evaluate", extra_seconds=lambda _request: SCRIPT_SECONDS)
async def evaluate(context: ActionContext) -> str:
    """Run JavaScript in the page."""
    script = context.request.text or context.request.actionValue
    if not script.strip():
        raise BadRequest("evaluate needs a script as text")
    if context.session.secrets:
        raise Conflict("evaluate is off in a browser with secrets: a script could read them")
    value = await run_script(context.page_handle, script)
    context.data = {"value": value}
    return "ran a script"


@action("answer_dialog", acts=False, settles=False)
async def answer_dialog(context: ActionContext) -> str:
    """Queue the answer to the next dialog that asks something."""
    value = context.request.actionValue.strip().lower() or "accept"
    if value not in ("accept", "dismiss"):
        raise BadRequest(
            "actionValue of answer_dialog must be accept or dismiss (text is for a prompt), not "
            f"'{one_line(value)[:40]}'"
        )
    answer = (value == "accept", context.request.text or None)
    count = context.session.pending.queue_answer(answer)
    dialogs = "dialog" if count == 1 else f"{count} dialogs"
    return f"the next {dialogs} will be {value}ed"
