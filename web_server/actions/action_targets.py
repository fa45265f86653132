"""What an action would reach, as one line: for approval before it is done, and again right then."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from web_server.actions import keys
from web_server.actions import pointer as pointer
from web_server.actions import preconditions as usage
from web_server.actions.action_context import ActionContext
from web_server.errors import Conflict
from web_server.observe.isolated_world import ContextGone, IsolatedWorld, find_frame_world
from web_server.observe.observer import Target

_MAX_FRAMES = 8
_LONGEST = 1000
_AT_FOCUS = frozenset({"press", "type_text"})
_MOUSE = frozenset({"click", "check", "uncheck", "hover", "drag", "select"})
_PURPOSES: Mapping[str, usage.Purpose] = {
    "type": "text",
    "clear": "text",
    "check": "toggle",
    "uncheck": "toggle",
    "upload": "file",
    "select": "list",
    "select_option": "list",
}
_NOTHING = "nothing"
_IGNORABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
"""Characters beside those of the category Cf that show nothing."""


@dataclass(frozen=True)
class Reach:
    """What an action would reach.

    Attributes:
        target: one line, such as `button 'Buy'`; "nothing" where there is nothing.
        url: address of the page.
        secret: what is typed there is a secret: a password or a card number.
    """

    target: str
    url: str
    secret: bool = False


async def reach_of(context: ActionContext) -> Reach:
    """What the action that `context` asks for would reach now. Changes nothing.

    Raises:
        BadRequest, NotFound, Conflict: the action names no element of the page.
    """
    name = context.request.actionName.strip().lower().replace("-", "_")
    found: list[dict[str, Any]] = []
    parts: list[str] = []
    for label, facts in await _reached(context, name):
        found.append(facts)
        parts.append(f"{label}{_phrase(facts['parts'])}{_frame(facts, context)}")
    if _submits(context, name):
        parts += [f"Enter submits {_phrase([f['submits']])}" for f in found[:1] if f["submits"]]
    secret = any(facts["secret"] for facts in found)
    return Reach("; ".join(filter(None, parts)) or _NOTHING, context.tab.url(), secret)


async def check_reach(context: ActionContext, key: bool = False) -> None:
    """Return if the action still reaches what the request expects, or expects nothing.

    Args:
        doing: the action.
        key: a key is about to be pressed, which goes to what has the focus.

    Raises:
        Conflict: it would reach something else now.
    """
    expected = context.request.expectedTarget
    if not expected:
        return
    now = await reach_of(context)
    here, there = _address(now.url), _address(context.request.expectedUrl)
    if here != there:
        raise Conflict(f"not done: it was approved at {there}, and the page is now {here}")
    elsewhere = ""
    by_id = context.request.targetId.strip() and key
    if by_id and context.request.actionName.strip().lower() in ("press", "type"):
        elsewhere = await _focus_elsewhere(context)
    if now.target != expected or elsewhere:
        raise Conflict(
            f"not done: it was approved for {expected}, and would now reach "
            f"{elsewhere or now.target}; look at the page and act again"
        )


def _address(url: str) -> str:
    return url.partition("#")[0]


async def _focus_elsewhere(context: ActionContext) -> str:
    """What the keys meant for an element would go to instead; empty if they go there."""
    name = context.request.actionName.strip().lower()
    target = await pointer.find(context.page_handle, await _acted_on(context, name))
    if await target.takes_keys():
        return ""
    facts = await _focus(context)
    return _phrase(facts["parts"]) if facts is not None else "an element without the focus"


async def _reached(context: ActionContext, name: str) -> list[tuple[str, dict[str, Any]]]:
    """What is reached, each with a word before it."""
    request, page_handle = context.request, context.page_handle
    out: list[tuple[str, dict[str, Any] | None]] = []
    place: tuple[float, float] | None = None
    if request.targetId.strip():
        target = await pointer.find(page_handle, await _acted_on(context, name))
        out.append(("", await target.reached()))
        if name in _MOUSE and target.in_viewport and request.x is None:
            place = (target.x, target.y)
            out.append(("at its place ", await _point(context, *place, target)))
        elif name in ("click_at", "double_click_at", "drag_path", "move"):
            left, top, width, height = await target.box()
            if name == "drag_path":
                ends = [request.path[0], request.path[-1]] if request.path else []
                inside = [(p.x, p.y) for p in ends]
            else:
                dx = width / 2 if request.x is None else request.x
                inside = [(dx, height / 2 if request.y is None else request.y)]
            out += [("at ", await _point(context, left + x, top + y)) for x, y in inside]
    elif name in _AT_FOCUS:
        out.append(("", await _focus(context)))
    elif name == "drag_path" and request.path:
        first, last = request.path[0], request.path[-1]
        out.append(("", await _point(context, first.x, first.y)))
        out.append(("to ", await _point(context, last.x, last.y)))
    elif request.x is not None and request.y is not None:
        out.append(("", await _point(context, request.x, request.y)))
    if name == "drag":
        out.append(("to ", await _drag_end(context, place)))
    if name == "press":
        out += [("", await _access_keys(context))]
    return [(word, facts) for word, facts in out if facts is not None and facts["parts"]]


async def _acted_on(context: ActionContext, name: str) -> str:
    """Return the id of the element that the action is done to: the named one, or its field.

    Raises:
        NotFound, Conflict: see `usage.check`.
    """
    purpose = _PURPOSES.get(name)
    if purpose is None:
        return context.request.targetId
    use = await usage.check(context.page_handle, context.request.targetId, purpose)
    return str(use["id"])


async def _drag_end(
    context: ActionContext, start: tuple[float, float] | None
) -> dict[str, Any] | None:
    request = context.request
    if request.toId.strip():
        goal = await pointer.find(context.page_handle, request.toId, "toId")
        return await goal.reached()
    if request.x is not None and request.y is not None:
        return await _point(context, request.x, request.y)
    if start is None:
        return None
    return await _point(context, start[0] + (request.deltaX or 0), start[1] + (request.deltaY or 0))


async def _point(
    context: ActionContext, x: float, y: float, target: Target | None = None
) -> dict[str, Any] | None:
    """What a click at a point reaches; None where nothing is, or nothing besides `target`."""
    world = context.page_handle.observer.main
    inside: int | None = None
    if target is not None:
        world, inside = target.place()
        x, y = await target.inner_point(x, y)
    facts = await world.call("reachedPoint", x, y, inside)
    return await _within_frames(context, world, facts)


async def _focus(context: ActionContext) -> dict[str, Any] | None:
    world = context.page_handle.observer.main
    return await _within_frames(context, world, await world.call("reachedFocus"))


async def _within_frames(
    context: ActionContext, world: IsolatedWorld, facts: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The facts; those of the document of another origin where they lead into one."""
    for _ in range(_MAX_FRAMES):
        if facts is None or "frame" not in facts:
            return facts
        inner = await find_frame_world(context.page_handle.page, world, facts["frame"])
        if inner is None:
            return None
        world = inner
        try:
            if "x" in facts:
                facts = await world.call("reachedPoint", facts["x"], facts["y"], None)
            else:
                facts = await world.call("reachedFocus")
        except ContextGone:
            return None
    return None


async def _access_keys(context: ActionContext) -> dict[str, Any] | None:
    """What keys held with Alt activate."""
    parts: list[dict[str, Any]] = []
    for chord in _chords(context):
        *held, key = keys.chord(chord).split("+")
        if "Alt" in held and len(key) == 1:
            parts += await context.page_handle.observer.main.call("reachedByAccessKey", key)
    return {"parts": parts, "submits": None, "secret": False, "url": context.tab.url()}


def _chords(context: ActionContext) -> list[str]:
    request = context.request
    return list(request.keys) or [request.actionValue or request.text]


def _submits(context: ActionContext, name: str) -> bool:
    """Whether the action presses Enter."""
    request = context.request
    if name == "press":
        return any(keys.chord(chord).split("+")[-1] == "Enter" for chord in _chords(context))
    if name in ("type", "type_text"):
        return request.needEnter or "\n" in (request.text or request.actionValue)
    return False


def _phrase(parts: Iterable[Mapping[str, Any]]) -> str:
    """`image 'cart' in button 'Buy'`; nothing twice."""
    return " in ".join(dict.fromkeys(_part(part) for part in parts))


def _part(part: Mapping[str, Any]) -> str:
    name, text = plain(part["name"]), plain(part["text"])
    if not name and not text:
        return str(part["role"])
    if not name:
        name, text = text, ""
    shown = f" (shows {quoted(text)})" if text and text.lower() not in name.lower() else ""
    return f"{part['role']} {quoted(name)}{shown}"


def _frame(facts: Mapping[str, Any], context: ActionContext) -> str:
    url = str(facts["url"])
    if _origin(url) == _origin(context.tab.url()) or not url.startswith(("http:", "https:")):
        return ""
    return f" in a frame of {url[:200]}"


def _origin(url: str) -> str:
    return "/".join(url.split("/", 3)[:3])


def quoted(text: str) -> str:
    """A text in single quotes, always of that kind, so that a rule can rely on them."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def plain(text: str) -> str:
    """A text as it is read: compatible forms as letters, what shows nothing left out, one line."""
    letters = _IGNORABLE.sub("", unicodedata.normalize("NFKC", text))
    kept = "".join(c for c in letters if unicodedata.category(c) not in ("Cf", "Cc") or c in "\n\t")
    line = " ".join(kept.split())
    if len(line) <= _LONGEST:
        return line
    return f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
