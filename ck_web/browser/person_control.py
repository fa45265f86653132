"""`PersonControl`: a person looks at the leased browser of a stopped run, and acts in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import ValidationError

from ck_pro.events import BrowserAction
from ck_pro.exceptions import BrowserServerError, ToolError
from ck_pro.journal.masking import MASK
from ck_web.actions import ACTIONS, parse_action
from ck_web.browser import kept_servers
from ck_web.browser.client import LEAN, BrowserClient, RequestRefused, ServerUnreachable
from ck_web.page.page_text import one_line
from web_server.contract import PerformAction

POSSIBLE = frozenset(
    name
    for names in (
        ("click", "click_at", "double_click_at", "hover", "type", "type_text", "clear", "press"),
        ("select", "check", "uncheck", "scroll", "scroll_to", "goto", "goback", "goforward"),
        ("switch_tab", "close_tab", "wait"),
    )
    for name in names
)
"""The actions that a person can do. Others need the files or the code of the run."""
_TIMEOUT = 60.0
_LINE = 400
_LOOK = LEAN.model_copy(
    update={"screenshot": "plain", "imageFormat": "jpeg", "imageMax": 1280, "elements": True}
)


@dataclass(frozen=True)
class View:
    """What a browser shows.

    Attributes:
        url, title: of the current page.
        text: the page as the agent reads it.
        image: JPEG as base64.
        width, height: of the viewport in CSS pixels.
        elements: boxes `[x, y, width, height]` by id.
    """

    url: str
    title: str
    text: str
    image: str
    width: int
    height: int
    elements: dict[str, list[float]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
        return asdict(self)


class PersonControl:
    """The leased browser of a stopped run. It stays on lease.

    Args:
        lease: from a journal; see `Environment.suspend`.

    Raises:
        BrowserServerError: its server cannot be reached from here.
    """

    def __init__(self, lease: Mapping[str, Any]) -> None:
        server = str(lease.get("server") or "")
        token = kept_servers.token_of(server) or os.environ.get("CK_WEB_TOKEN", "")
        if not server or not lease.get("browserId"):
            raise BrowserServerError("this run has no browser on lease")
        self._id, self._url = str(lease["browserId"]), str(lease.get("url") or "")
        self._client = BrowserClient(server, token=token, timeout=_TIMEOUT)

    def look(self) -> View:
        """Return what the browser shows.

        Raises:
            BrowserServerError: the browser was closed, or its server has ended.
        """
        try:
            seen = self._client.observe(self._id, "", _LOOK)
        except (RequestRefused, ServerUnreachable) as e:
            raise self._explained(e) from None
        finally:
            self._park()
        boxes = {n: one["box"] for n, one in seen.elements.items() if one.get("box")}
        width, height = (int(seen.viewport.get(side) or 0) for side in ("width", "height"))
        image = seen.nonboxed_screenshot
        return View(seen.url, seen.title, seen.yaml, image, width, height, boxes)

    def act(self, text: str) -> str:
        """Do an action; return what it did in one line, without secrets.

        Args:
            text: an action string, such as `click [3]` or `click_at 20,30`.

        Raises:
            ParseError: it is not an action string.
            ToolError: the action is not possible here, or failed.
            BrowserServerError: the browser was closed, or its server has ended.
        """
        action = parse_action(text)
        if action.name not in POSSIBLE:
            raise ToolError(f"{action.name} is not possible here")
        request = self._request(action)
        try:
            named, secret = self._target(action, request)
            reply = self._client.perform(request)
        except (RequestRefused, ServerUnreachable) as e:
            if isinstance(e, RequestRefused) and e.is_action_failure:
                raise ToolError(str(e)) from None
            raise self._explained(e) from None
        finally:
            self._park()
        shown, message = action.value or "", reply.message
        if secret and shown:
            message, shown = message.replace(shown, MASK), MASK
        words = " ".join(
            word for word in (action.name, named, repr(shown) if shown else "") if word
        )
        return one_line(f"{words}: {message}", _LINE)

    def close(self) -> None:
        """Disconnect; the browser stays on lease."""
        self._client.close()

    def _request(self, action: BrowserAction) -> PerformAction:
        fields = ACTIONS[action.name].request_fields(action)
        try:
            return PerformAction.model_validate({**fields, "browserId": self._id, "pageId": ""})
        except ValidationError as e:
            raise ToolError(f"invalid value: {e.errors()[0]['msg']}") from None

    def _target(self, action: BrowserAction, request: PerformAction) -> tuple[str, bool]:
        """Return the target of an action in words, and whether the typed text is a secret."""
        if not ACTIONS[action.name].has_target(action):
            return "", False
        found = self._client.describe_action(request)
        return one_line(found.target, _LINE), found.secret

    def _park(self) -> None:
        """Mark the browser again as one that waits: each request ends that."""
        with suppress(BrowserServerError):
            self._client.renew_browser(self._id, parked=True)

    def _explained(self, error: RequestRefused | ServerUnreachable) -> BrowserServerError:
        """Return the error for a person, with what they can still do."""
        if isinstance(error, ServerUnreachable):
            why = f"its server {self._client.url} does not reply"
        elif error.lease_ended:
            why = "it was not used for too long, or another run needed its place"
        else:
            return error
        place = f" at {self._url}" if self._url else ""
        return BrowserServerError(
            f"the browser of this run was closed: {why}. A resumed run opens a new one{place}"
        )
