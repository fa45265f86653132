"""From the actions of the grammar to the fields of the wire. Pure."""

from __future__ import annotations

import base64
import mimetypes
import re
from collections.abc import Callable
from typing import Any

from ck_pro.events import BrowserAction
from ck_web.page.state import full_address

TELLING = frozenset({"read", "find"})
"""Actions whose answer is a text from the page, and which change nothing."""
RESTING = TELLING | {"answer_dialog", "wait", "wait_for", "move", "hover"}
"""Actions after which a page that looks the same is nothing to wonder at."""
NOT_DONE = frozenset({400, 403, 404, 409, 423})
"""Statuses that say that an action was not done, and that the browser is as it was."""

_AT_FOCUS = frozenset({"press", "type_text"})
_MAX_PARTS = 25
_PART_HEAD = re.compile(r"Part \d+ of (\d+)\n\n")


def reaches(action: BrowserAction) -> bool:
    """Whether an action goes to an element, a point, or the focus of the page."""
    given = action.arguments
    aimed = action.target or given.get("x") is not None or "path" in given
    return action.name not in TELLING and bool(aimed or action.name in _AT_FOCUS)


def wire_fields(action: BrowserAction) -> dict[str, Any]:
    """The fields of a `PerformAction` that say what to do, but for uploaded files.

    Args:
        action: as `parse_action` gives it.
    """
    given, value = action.arguments, action.value or ""
    fields: dict[str, Any] = {"actionName": action.name, "actionValue": value}
    if action.target:
        fields["targetId"] = action.target
    match action.name:
        case "goto" | "new_tab":
            fields["actionValue"] = full_address(value) if value else ""
        case "type":
            fields["needEnter"] = bool(given.get("enter"))
        case "type_text":
            fields.update(text=value, needEnter=bool(given.get("enter")), actionValue="")
        case "select" if given.get("values"):
            fields.update(actionName="select_option", values=given["values"])
        case "wait" if value:
            fields["timeout"] = float(value) * 1000
        case "wait_for":
            fields.update(text=value, timeout=given.get("seconds", 10.0) * 1000, actionValue="")
        case "find" | "scroll_to" | "select_text":
            fields.update(text=value, actionValue="")
        case "press":
            fields.update(keys=value.split(), actionValue="")
        case "drag" if "to" in given:
            fields["toId"] = given["to"]
        case "drag" if "by" in given:
            fields["deltaX"], fields["deltaY"] = given["by"]
        case "drag" | "move":
            fields.update(x=given["x"], y=given["y"])
        case "click_at":
            name = "double_click_at" if given["double"] else "click_at"
            fields.update(actionName=name, x=given["x"], y=given["y"], button=given["button"])
            fields["keys"] = _chord(given["keys"])
        case "drag_path":
            fields["path"] = [{"x": x, "y": y} for x, y in given["path"]]
            fields["keys"] = _chord(given["keys"])
        case "wheel":
            fields.update(deltaX=given["dx"], deltaY=given["dy"], keys=given.get("keys", []))
            fields.update((axis, given[axis]) for axis in "xy" if axis in given)
        case "answer_dialog":
            fields.update(actionValue="accept" if given["accept"] else "dismiss", text=value)
    return fields


def _chord(keys: str) -> list[str]:
    return [key for key in keys.split("+") if key]


def file_to_upload(path: str, data: bytes) -> dict[str, str]:
    """A file as the wire carries it, so that the server reads no path.

    Args:
        path: where it lies; its last part becomes its name.
        data: its content.
    """
    kind = mimetypes.guess_type(path)[0] or "application/octet-stream"
    name = path.rstrip("/").rsplit("/", 1)[-1]
    return {"name": name, "mimeType": kind, "buffer": base64.b64encode(data).decode()}


def read_whole(read: Callable[[int], str]) -> str:
    """A page as Markdown, put together from its parts.

    Args:
        read: the server's reply for a part, counted from 1, which begins with `Part N of M`.
    """
    first = read(1)
    head = _PART_HEAD.match(first)
    if head is None:
        return first
    total = int(head[1])
    parts = [first[head.end() :]]
    for number in range(2, min(total, _MAX_PARTS) + 1):
        part = read(number)
        head = _PART_HEAD.match(part)
        parts.append(part[head.end() :] if head else part)
    left = total - len(parts)
    if left > 0:
        parts.append(f"({left} further parts: read({len(parts) + 1}) and so on)")
    return "\n".join(parts)
