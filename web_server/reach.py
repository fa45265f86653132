"""What an action would reach, as one line: for approval before it is done, and again right then."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from web_server import hands, keys, usage
from web_server.doing import Doing
from web_server.errors import Conflict
from web_server.frames import ContextGone, Realm, find_frame_realm
from web_server.observe import Target

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


async def reach_of(doing: Doing) -> Reach:
    """What the action that `doing` asks for would reach now. Changes nothing.

    Raises:
        BadRequest, NotFound, Conflict: the action names no element of the page.
    """
    name = doing.request.actionName.strip().lower().replace("-", "_")
    found: list[dict[str, Any]] = []
    parts: list[str] = []
    for label, facts in await _reached(doing, name):
        found.append(facts)
        parts.append(f"{label}{_phrase(facts['parts'])}{_frame(facts, doing)}")
    if _submits(doing, name):
        parts += [f"Enter submits {_phrase([f['submits']])}" for f in found[:1] if f["submits"]]
    secret = any(facts["secret"] for facts in found)
    return Reach("; ".join(filter(None, parts)) or _NOTHING, doing.tab.url(), secret)


async def check_reach(doing: Doing, key: bool = False) -> None:
    """Return if the action still reaches what the request expects, or expects nothing.

    Args:
        doing: the action.
        key: a key is about to be pressed, which goes to what has the focus.

    Raises:
        Conflict: it would reach something else now.
    """
    expected = doing.request.expectedTarget
    if not expected:
        return
    now = await reach_of(doing)
    here, there = _address(now.url), _address(doing.request.expectedUrl)
    if here != there:
        raise Conflict(f"not done: it was approved at {there}, and the page is now {here}")
    elsewhere = ""
    by_id = doing.request.targetId.strip() and key
    if by_id and doing.request.actionName.strip().lower() in ("press", "type"):
        elsewhere = await _focus_elsewhere(doing)
    if now.target != expected or elsewhere:
        raise Conflict(
            f"not done: it was approved for {expected}, and would now reach "
            f"{elsewhere or now.target}; look at the page and act again"
        )


def _address(url: str) -> str:
    return url.partition("#")[0]


async def _focus_elsewhere(doing: Doing) -> str:
    """What the keys meant for an element would go to instead; empty if they go there."""
    name = doing.request.actionName.strip().lower()
    target = await hands.find(doing.surface, await _acted_on(doing, name))
    if await target.takes_keys():
        return ""
    facts = await _focus(doing)
    return _phrase(facts["parts"]) if facts is not None else "an element without the focus"


async def _reached(doing: Doing, name: str) -> list[tuple[str, dict[str, Any]]]:
    """What is reached, each with a word before it."""
    request, surface = doing.request, doing.surface
    out: list[tuple[str, dict[str, Any] | None]] = []
    place: tuple[float, float] | None = None
    if request.targetId.strip():
        target = await hands.find(surface, await _acted_on(doing, name))
        out.append(("", await target.reached()))
        if name in _MOUSE and target.in_viewport and request.x is None:
            place = (target.x, target.y)
            out.append(("at its place ", await _point(doing, *place, target)))
        elif name in ("click_at", "double_click_at", "drag_path", "move"):
            left, top, width, height = await target.box()
            if name == "drag_path":
                ends = [request.path[0], request.path[-1]] if request.path else []
                inside = [(p.x, p.y) for p in ends]
            else:
                dx = width / 2 if request.x is None else request.x
                inside = [(dx, height / 2 if request.y is None else request.y)]
            out += [("at ", await _point(doing, left + x, top + y)) for x, y in inside]
    elif name in _AT_FOCUS:
        out.append(("", await _focus(doing)))
    elif name == "drag_path" and request.path:
        first, last = request.path[0], request.path[-1]
        out.append(("", await _point(doing, first.x, first.y)))
        out.append(("to ", await _point(doing, last.x, last.y)))
    elif request.x is not None and request.y is not None:
        out.append(("", await _point(doing, request.x, request.y)))
    if name == "drag":
        out.append(("to ", await _drag_end(doing, place)))
    if name == "press":
        out += [("", await _access_keys(doing))]
    return [(word, facts) for word, facts in out if facts is not None and facts["parts"]]


async def _acted_on(doing: Doing, name: str) -> str:
    """Return the id of the element that the action is done to: the named one, or its field.

    Raises:
        NotFound, Conflict: see `usage.check`.
    """
    purpose = _PURPOSES.get(name)
    if purpose is None:
        return doing.request.targetId
    use = await usage.check(doing.surface, doing.request.targetId, purpose)
    return str(use["id"])


async def _drag_end(doing: Doing, start: tuple[float, float] | None) -> dict[str, Any] | None:
    request = doing.request
    if request.toId.strip():
        goal = await hands.find(doing.surface, request.toId, "toId")
        return await goal.reached()
    if request.x is not None and request.y is not None:
        return await _point(doing, request.x, request.y)
    if start is None:
        return None
    return await _point(doing, start[0] + (request.deltaX or 0), start[1] + (request.deltaY or 0))


async def _point(
    doing: Doing, x: float, y: float, target: Target | None = None
) -> dict[str, Any] | None:
    """What a click at a point reaches; None where nothing is, or nothing besides `target`."""
    realm = doing.surface.observer.main
    inside: int | None = None
    if target is not None:
        realm, inside = target.place()
        x, y = await target.inner_point(x, y)
    facts = await realm.call("reachedPoint", x, y, inside)
    return await _within_frames(doing, realm, facts)


async def _focus(doing: Doing) -> dict[str, Any] | None:
    realm = doing.surface.observer.main
    return await _within_frames(doing, realm, await realm.call("reachedFocus"))


async def _within_frames(
    doing: Doing, realm: Realm, facts: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The facts; those of the document of another origin where they lead into one."""
    for _ in range(_MAX_FRAMES):
        if facts is None or "frame" not in facts:
            return facts
        inner = await find_frame_realm(doing.surface.page, realm, facts["frame"])
        if inner is None:
            return None
        realm = inner
        try:
            if "x" in facts:
                facts = await realm.call("reachedPoint", facts["x"], facts["y"], None)
            else:
                facts = await realm.call("reachedFocus")
        except ContextGone:
            return None
    return None


async def _access_keys(doing: Doing) -> dict[str, Any] | None:
    """What keys held with Alt activate."""
    parts: list[dict[str, Any]] = []
    for chord in _chords(doing):
        *held, key = keys.chord(chord).split("+")
        if "Alt" in held and len(key) == 1:
            parts += await doing.surface.observer.main.call("reachedByAccessKey", key)
    return {"parts": parts, "submits": None, "secret": False, "url": doing.tab.url()}


def _chords(doing: Doing) -> list[str]:
    request = doing.request
    return list(request.keys) or [request.actionValue or request.text]


def _submits(doing: Doing, name: str) -> bool:
    """Whether the action presses Enter."""
    request = doing.request
    if name == "press":
        return any(keys.chord(chord).split("+")[-1] == "Enter" for chord in _chords(doing))
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


def _frame(facts: Mapping[str, Any], doing: Doing) -> str:
    url = str(facts["url"])
    if _origin(url) == _origin(doing.tab.url()) or not url.startswith(("http:", "https:")):
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
