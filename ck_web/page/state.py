"""`WebState`: the last known state of a browser."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ck_pro.session import AgentSession
from ck_web.page.banners import find_banner

_PNG = "iVBORw0KGgo"  # the signature of PNG files, as base64


@dataclass(frozen=True)
class WebState:
    """The state of a browser at one moment.

    Attributes:
        browser_id, page_id: names in requests.
        target_url: the start page.
        curr_step: number of actions so far.
        action_string: the last action.
        error_message: why it failed, or empty.
        step_url, title: of the page.
        current_accessibility_tree: the page as text, one line per tab and element.
        downloaded_file_path: copies of downloads, relative to the working directory.
        curr_screenshot_mode: whether observations have a screenshot.
        boxed_screenshot: data URL of the page with numbered boxes; the log's dict omits it.
        messages: ids of texts that report something to the user; the log's dict omits them.
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
    messages: tuple[str, ...] = field(default=(), repr=False)
    num_revert_state: int = 0

    @classmethod
    def create_from_dict(cls, data: Mapping[str, Any]) -> WebState:
        """Rebuild a state from `to_dict` or a step's `web_state_before`; ignore other keys."""
        known = {f.name for f in fields(cls)}
        given = {k: v for k, v in data.items() if k in known and v is not None}
        files = tuple(given.pop("downloaded_file_path", ()))
        given.pop("messages", None)
        return cls(**given, downloaded_file_path=files)

    def copy(self) -> WebState:
        """Return an equal state; states never change."""
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
        """Return the state as JSON-able data, without the screenshot and the counters.

        Two dicts are equal exactly if the browser looks the same. This is how an agent that
        repeats itself is detected.
        """
        out = asdict(self)
        for name in ("boxed_screenshot", "curr_step", "messages", "num_revert_state"):
            del out[name]
        return {**out, "downloaded_file_path": list(self.downloaded_file_path)}


def full_url(url: str) -> str:
    """Return a URL with a scheme: http for this machine, https for other hosts."""
    url = url.strip()
    if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:(?!\d)", url):
        return url
    local = re.match(r"(localhost|127\.|\[::1\])", url)
    return f"{'http' if local else 'https'}://{url}"


def data_url(image: str) -> str:
    """Return the data URL of a base64 PNG or JPEG image; empty for an empty image."""
    if not image:
        return ""
    kind = "png" if image.startswith(_PNG) else "jpeg"
    return f"data:image/{kind};base64,{image}"


def last_url_of(session: AgentSession) -> str:
    """Return the last page of a web agent's session; empty for a new one."""
    states = (step["action"].get("web_state_before") for step in reversed(session.steps))
    return next((state["step_url"] for state in states if state), "")
