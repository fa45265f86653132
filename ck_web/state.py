"""`WebState`: what is known of a browser at one moment, and what to say of a change."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from ck_pro.events import BrowserAction

_NEW_LINES_SHOWN = 3
_PNG = "iVBORw0KGgo"  # the signature of PNG files, as base64


@dataclass(frozen=True)
class WebState:
    """What is known of the browser at one moment.

    Attributes:
        browser_id, page_id: names on the wire.
        target_url: the page that the browser was opened with.
        curr_step: number of actions so far.
        action_string: the last action.
        error_message: why it failed, or empty.
        step_url, title: of the page.
        current_accessibility_tree: the page as text, one line per tab and element.
        downloaded_file_path: copies of downloads, relative to the working directory.
        curr_screenshot_mode: whether observations carry a screenshot.
        boxed_screenshot: data URL of the page with numbered boxes; left out of the log's dict.
    """

    browser_id: str = ""
    page_id: str = ""
    target_url: str = ""
    curr_step: int = 0
    action_string: str = ""
    error_message: str = ""
    step_url: str = ""
    title: str = ""
    current_accessibility_tree: str = ""
    downloaded_file_path: tuple[str, ...] = ()
    curr_screenshot_mode: bool = False
    boxed_screenshot: str = field(default="", repr=False)

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON-able data, without the screenshot and the count of actions.

        So two states are equal exactly when the browser looks the same, which is how an agent that
        goes in circles is found out.
        """
        out = asdict(self)
        del out["boxed_screenshot"], out["curr_step"]
        return {**out, "downloaded_file_path": list(self.downloaded_file_path)}

    def element(self, target: str) -> tuple[str, str]:
        """Role and name of an element by its id, empty where the page does not list it."""
        if not target:
            return "", ""
        pattern = rf"^\s*\[{target}\] ([A-Za-z]+) '(.*)'"
        found = re.search(pattern, self.current_accessibility_tree, re.MULTILINE)
        return (found[1], found[2]) if found else ("", "")


def describe(state: WebState, action: BrowserAction) -> str:
    """An action as a person would say it: `click [3] button 'Search'`."""
    words = [action.name]
    if action.target:
        role, name = state.element(action.target)
        words += [f"[{action.target}]", *([role, repr(one_line(name))] if role else [])]
    if action.value is not None:
        value = one_line(action.value)
        words.append(repr(value) if action.target else value)
    if action.name == "save":
        words.append(action.arguments["remote"])
    return " ".join(words)


def what_changed(before: WebState, after: WebState) -> str:
    """What an action changed, in a few words; empty when nothing did."""
    if _page(before.step_url) != _page(after.step_url) or before.page_id != after.page_id:
        return f"now at {after.step_url} ({one_line(after.title)!r}), whose elements you see next"
    old, now = _lines(before), _lines(after)
    new = [line for line in now if line not in old]
    if not new:
        return "part of the page went away" if len(now) < len(old) else ""
    shown = "; ".join(one_line(line, 100) for line in new[:_NEW_LINES_SHOWN])
    more = f" and {len(new) - _NEW_LINES_SHOWN} more" if len(new) > _NEW_LINES_SHOWN else ""
    return f"new on the page: {shown}{more}"


def _lines(state: WebState) -> dict[str, None]:
    """The lines of the page in order, without indentation and without which one has the focus."""
    lines = state.current_accessibility_tree.split("\n")
    return dict.fromkeys(line.strip().replace(" focused: true", "") for line in lines)


def _page(url: str) -> str:
    return url.partition("#")[0]


def full_address(url: str) -> str:
    """An address as people write it, with a scheme: http for this machine, else https."""
    url = url.strip()
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:(?!\d)", url):
        return url
    local = re.match(r"(localhost|127\.|\[::1\])", url)
    return f"{'http' if local else 'https'}://{url}"


def data_url(image: str) -> str:
    """A data URL of a base64 PNG or JPEG image; empty for none."""
    if not image:
        return ""
    kind = "png" if image.startswith(_PNG) else "jpeg"
    return f"data:image/{kind};base64,{image}"


def one_line(text: str, limit: int = 60) -> str:
    """The text without line breaks, cut to `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."
