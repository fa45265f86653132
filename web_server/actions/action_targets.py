"""Describe what an action would reach in one line: for its approval, and again right before it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from web_server.actions import keys, pointer
from web_server.actions.action_context import ActionContext
from web_server.actions.preconditions import check_usage
from web_server.actions.registry import Action, find_action
from web_server.errors import Conflict
from web_server.observe.isolated_world import ContextGone, IsolatedWorld, find_frame_world
from web_server.observe.target import Target

_MAX_FRAMES = 8
_MAX_TEXT = 1000
_NOTHING = "nothing"
_INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0000-\U000e0fff]"
)
"""Invisible characters outside the category Cf."""

Facts = dict[str, Any]
"""Description of an element from `js/use/action_targets.js`: parts, url, secret, submits."""
Labelled = list[tuple[str, Facts | None]]
"""What is reached, each with the words to print before it."""


@dataclass(frozen=True)
class Reach:
    """What an action would reach.

    Attributes:
        target: one line, such as `button 'Buy'`, or "nothing".
        url: address of the page.
        secret: the field takes a password or a card number.
    """

    target: str
    url: str
    secret: bool = False


async def reach_of(context: ActionContext) -> Reach:
    """Return what the requested action would reach now. Changes nothing.

    Raises:
        BadRequest, NotFound, Conflict: the action names no element of the page.
    """
    action = find_action(context.request)
    found: list[Facts] = []
    phrases: list[str] = []
    for label, facts in await _reached(context, action):
        if facts is not None and facts["parts"]:
            found.append(facts)
            phrases.append(f"{label}{_phrase(facts['parts'])}{_frame(facts, context)}")
    if found and found[0]["submits"] and _presses_enter(context, action):
        phrases.append(f"Enter submits {_phrase([found[0]['submits']])}")
    secret = any(facts["secret"] for facts in found)
    return Reach("; ".join(filter(None, phrases)) or _NOTHING, context.tab.url(), secret)


async def reached_urls(context: ActionContext) -> list[str]:
    """Return the addresses of the documents that the requested action would reach."""
    reached = await _reached(context, find_action(context.request))
    return [str(facts["url"]) for _, facts in reached if facts is not None and facts["parts"]]


async def focused_url(context: ActionContext) -> str | None:
    """Return the address of the document with the focus; None if no element has it."""
    facts = await _focus(context)
    return str(facts["url"]) if facts is not None and facts["parts"] else None


async def check_reach(context: ActionContext, key: bool = False) -> None:
    """Check that the action still reaches what the request expects, if it expects anything.

    Args:
        context: the action.
        key: a key is about to be pressed, which goes to the focused element.

    Raises:
        Conflict: the action would reach something else now.
    """
    expected = context.request.expectedTarget
    if not expected:
        return
    now = await reach_of(context)
    here, approved = _address(now.url), _address(context.request.expectedUrl)
    if here != approved:
        raise Conflict(f"not done: it was approved at {approved}, and the page is now {here}")
    elsewhere = ""
    action = find_action(context.request)
    if key and action.sends_keys and action.aim != "focus" and context.request.targetId.strip():
        elsewhere = await _focus_elsewhere(context, action)
    if now.target != expected or elsewhere:
        raise Conflict(
            f"not done: it was approved for {expected}, and would now reach "
            f"{elsewhere or now.target}; look at the page and act again"
        )


def _address(url: str) -> str:
    return url.partition("#")[0]


async def _focus_elsewhere(context: ActionContext, action: Action) -> str:
    """Return which element would receive keys meant for another; empty if the focus is right."""
    target = await _acted_on(context, action)
    if await target.takes_keys():
        return ""
    facts = await _focus(context)
    return _phrase(facts["parts"]) if facts is not None else "an element without the focus"


async def _reached(context: ActionContext, action: Action) -> Labelled:
    """Return what the action reaches, by its declared aim."""
    request = context.request
    named = bool(request.targetId.strip())
    match action.aim:
        case "focus":
            return [("", await _focus(context))]
        case "keys":
            reached = await _element(context, action) if named else [("", await _focus(context))]
            return [*reached, ("", await _access_keys(context))]
        case "path" if request.path:
            return await _path(context, action)
        case "point" if named:
            return await _point_of_element(context, action)
        case "mouse" if named:
            reached, _ = await _under_mouse(context, action)
            return reached
        case "drag" if named:
            reached, start = await _under_mouse(context, action)
            return [*reached, ("to ", await _drag_end(context, start))]
    if named:
        return await _element(context, action)
    if request.x is not None and request.y is not None:
        return [("", await _point(context, request.x, request.y))]
    return []


async def _acted_on(context: ActionContext, action: Action) -> Target:
    """Return the element that the action uses: the named one, or the field that belongs to it.

    Raises:
        NotFound, Conflict: see `check_usage`.
    """
    element_id = context.request.targetId
    if action.purpose is not None:
        use = await check_usage(context.page_handle, element_id, action.purpose)
        element_id = use["id"]
    return await pointer.find(context.page_handle, element_id)


async def _element(context: ActionContext, action: Action) -> Labelled:
    return [("", await (await _acted_on(context, action)).reached())]


async def _under_mouse(
    context: ActionContext, action: Action
) -> tuple[Labelled, tuple[float, float] | None]:
    """Return the element with what the mouse meets at its place, and that place."""
    target = await _acted_on(context, action)
    reached: Labelled = [("", await target.reached())]
    if not target.in_viewport or context.request.x is not None:
        return reached, None
    place = target.x, target.y
    return [*reached, ("at its place ", await _point(context, *place, target))], place


async def _point_of_element(context: ActionContext, action: Action) -> Labelled:
    request = context.request
    target = await _acted_on(context, action)
    left, top, width, height = await target.box()
    x = left + (width / 2 if request.x is None else request.x)
    y = top + (height / 2 if request.y is None else request.y)
    return [("", await target.reached()), ("at ", await _point(context, x, y))]


async def _path(context: ActionContext, action: Action) -> Labelled:
    """Return what lies at both ends of a path."""
    first, last = context.request.path[0], context.request.path[-1]
    if not context.request.targetId.strip():
        start = await _point(context, first.x, first.y)
        return [("", start), ("to ", await _point(context, last.x, last.y))]
    target = await _acted_on(context, action)
    left, top, _, _ = await target.box()
    ends = [("at ", await _point(context, left + p.x, top + p.y)) for p in (first, last)]
    return [("", await target.reached()), *ends]


async def _drag_end(context: ActionContext, start: tuple[float, float] | None) -> Facts | None:
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
) -> Facts | None:
    """Return what a click at a point reaches; None for nothing, or nothing besides `target`."""
    world = context.page_handle.observer.main
    inside: int | None = None
    if target is not None:
        world, inside = target.place()
        x, y = await target.inner_point(x, y)
    facts = await world.call("reachedPoint", x, y, inside)
    return await _within_frames(context, world, facts)


async def _focus(context: ActionContext) -> Facts | None:
    world = context.page_handle.observer.main
    return await _within_frames(context, world, await world.call("reachedFocus"))


async def _within_frames(
    context: ActionContext, world: IsolatedWorld, facts: Facts | None
) -> Facts | None:
    """Follow facts that point into a frame of another origin to the element inside it."""
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


async def _access_keys(context: ActionContext) -> Facts:
    """Return what the request's chords with Alt activate."""
    parts: list[Facts] = []
    for chord in _chords(context):
        *held, key = keys.chord(chord).split("+")
        if "Alt" in held and len(key) == 1:
            parts += await context.page_handle.observer.main.call("reachedByAccessKey", key)
    return {"parts": parts, "submits": None, "secret": False, "url": context.tab.url()}


def _chords(context: ActionContext) -> list[str]:
    request = context.request
    return list(request.keys) or [request.actionValue or request.text]


def _presses_enter(context: ActionContext, action: Action) -> bool:
    if action.aim == "keys":
        return any(keys.chord(chord).split("+")[-1] == "Enter" for chord in _chords(context))
    request = context.request
    text = request.text or request.actionValue
    return action.sends_keys and (request.needEnter or "\n" in text)


def _phrase(parts: Iterable[Mapping[str, Any]]) -> str:
    """Join parts as in `image 'cart' in button 'Buy'`, each once."""
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
    """Return a text in single quotes; unlike `repr`, never in double quotes, for approval rules."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def plain(text: str) -> str:
    """Return a text as a reader sees it: NFKC, invisible characters removed, one line."""
    letters = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    kept = "".join(c for c in letters if unicodedata.category(c) not in ("Cf", "Cc") or c in "\n\t")
    line = " ".join(kept.split())
    if len(line) <= _MAX_TEXT:
        return line
    return f"{line[: _MAX_TEXT // 2]} ... {line[-_MAX_TEXT // 2 :]}"
