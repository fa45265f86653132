"""`WebState`: what is known of a browser at one moment, and what to say of a change."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ck_pro.events import BrowserAction
from ck_web.page.banners import find_banner
from ck_web.page.page_text import all_new, changes, changes_text, one_line

_ANY_TEXT = frozenset(
    {"answer_dialog", "find", "scroll_to", "select_text", "type_text", "wait_for"}
)
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
        num_revert_state: how often the browser was reset to an earlier state.
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
    num_revert_state: int = 0

    @classmethod
    def create_from_dict(cls, data: Mapping[str, Any]) -> WebState:
        """Rebuild a state from `to_dict`, or from a step's `web_state_before`; other keys do not
        count."""
        known = {f.name for f in fields(cls)}
        given = {k: v for k, v in data.items() if k in known and v is not None}
        files = tuple(given.pop("downloaded_file_path", ()))
        return cls(**given, downloaded_file_path=files)

    def copy(self) -> WebState:
        """A state of the same content; states never change."""
        return replace(self)

    @property
    def total_actual_step(self) -> int:
        """The same as `curr_step`: each action counts once."""
        return self.curr_step

    @property
    def action(self) -> str:
        """The same as `action_string`."""
        return self.action_string

    @property
    def current_has_cookie_popup(self) -> bool:
        """Whether the page shows a cookie banner."""
        return find_banner(self.current_accessibility_tree) is not None

    @property
    def html_md(self) -> str:
        """The page as text: the same as `current_accessibility_tree`."""
        return self.current_accessibility_tree

    @property
    def expanded_part(self) -> None:
        """None: a page is never shown in expanded parts."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON-able data, without the screenshot and the count of actions.

        So two states are equal exactly when the browser looks the same, which is how an agent that
        goes in circles is found out.
        """
        out = asdict(self)
        del out["boxed_screenshot"], out["curr_step"], out["num_revert_state"]
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
    if action.name == "answer_dialog":
        words.append("accept" if action.arguments["accept"] else "dismiss")
    if action.target:
        words.append(_element(state, action.target))
    if action.value:
        value = one_line(action.value)
        words.append(repr(value) if action.target or action.name in _ANY_TEXT else value)
    return " ".join([*words, *_details(state, action)])


def _details(state: WebState, action: BrowserAction) -> list[str]:
    """The arguments that a person wants to see."""
    given = action.arguments
    match action.name:
        case "save":
            return [one_line(given["remote"])]
        case "upload":
            return [one_line(", ".join(given["paths"]))]
        case "drag" if "to" in given:
            return ["to", _element(state, given["to"])]
        case "drag" if "by" in given:
            return [f"by {given['by'][0]:g},{given['by'][1]:g}"]
        case "drag":
            return [f"to {given['x']:g},{given['y']:g}"]
        case "move" | "click_at":
            words = [f"{given['x']:g},{given['y']:g}", given.get("button", "left")]
            words += ["double"] if given.get("double") else []
            return [word for word in (*words, given.get("keys", "")) if word not in ("", "left")]
        case "wheel":
            at = f" at {given['x']:g},{given['y']:g}" if given.get("x") is not None else ""
            return [f"{given['dy']:g} {given['dx']:g}{at}"]
        case "drag_path":
            first, last = given["path"][0], given["path"][-1]
            return [f"{first[0]:g},{first[1]:g} ... {last[0]:g},{last[1]:g}"]
    return []


def _element(state: WebState, target: str) -> str:
    role, name = state.element(target)
    return f"[{target}] {role} {one_line(name)!r}" if role else f"[{target}]"


def what_changed(before: WebState, after: WebState, asked: str = "", stayed: bool = False) -> str:
    """What an action changed, in a few words; empty when nothing did.

    Args:
        before, after: the browser as it was and is.
        asked: the address that the action named, which need not be repeated.
        stayed: whether the document is known to be the same.
    """
    if is_other_page(before, after, stayed):
        there = asked and after.step_url.rstrip("/") == full_address(asked).rstrip("/")
        where = "there" if there else f"at {after.step_url}"
        return f"now {where} ({one_line(after.title)!r}), whose elements you see next"
    old, new = before.current_accessibility_tree, after.current_accessibility_tree
    return changes_text(changes(old, new))


def is_other_page(before: WebState, after: WebState, stayed: bool = False) -> bool:
    """Whether an action led to another page or tab, or to the same page loaded anew.

    Args:
        before, after: the browser as it was and is.
        stayed: whether the document is known to be the same, though all of it may be drawn anew.
    """
    if _page(before.step_url) != _page(after.step_url) or before.page_id != after.page_id:
        return True
    old, new = before.current_accessibility_tree, after.current_accessibility_tree
    return not stayed and all_new(old, new)


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
