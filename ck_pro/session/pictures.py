"""Pictures that a tool shows in the next prompt; a step records them among its screens."""

from __future__ import annotations

from typing import Any

from ck_pro.events.journal_events import ScreenData
from ck_pro.session.session import AgentSession

_KIND = "picture"


def picture_screen(url: str, caption: str) -> ScreenData:
    """Return the record of a picture.

    Args:
        url: the picture as a data URL.
        caption: one line above the picture.
    """
    return ScreenData(
        kind=_KIND,
        text=caption,
        current_url="",
        call_id="",
        acknowledged_safety_checks=[],
        image=url,
    )


def picture_parts(session: AgentSession) -> list[dict[str, Any]]:
    """Return message parts with the pictures that the last finished step recorded."""
    done = [step["action"] for step in session.steps[-2:] if step["action"]["observation"]]
    parts: list[dict[str, Any]] = []
    for screen in done[-1].get("screens", ()) if done else ():
        if screen["kind"] == _KIND and "image" in screen:
            parts.append({"type": "text", "text": f"# Picture: {screen['text']}"})
            parts.append({"type": "image_url", "image_url": {"url": screen["image"]}})
    return parts
