"""What people see of a run's browser: its address while the run waits, and small pictures."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ck_pro.events import BrowserAction
from ck_pro.events.journal_events import PictureData
from ck_pro.exceptions import ToolError
from ck_web.browser import kept_servers
from web_server.contract import PerformAction, view_path

if TYPE_CHECKING:
    from ck_web.browser.browser import Browser


def view_url(lease: Mapping[str, Any] | None) -> str:
    """Return the address of the page that shows a leased browser; "" if there is none.

    On the page a person can also click and type. The address is as secret as the browser: everyone
    who has it can use the browser until the lease ends.

    Args:
        lease: from `Environment.suspend` or `Environment.lease`, as in a journal.
    """
    if not lease or "view" not in (lease.get("features") or ()):
        return ""
    server = str(lease.get("server"))
    token = kept_servers.token_of(server) or os.environ.get("CK_WEB_TOKEN", "")
    return f"{server}/{view_path(token, str(lease['browserId']))}"


def step_picture(browser: Browser, action: BrowserAction | None = None) -> PictureData | None:
    """Return a small picture of a browser's page; None if its server takes none.

    Args:
        browser: the browser.
        action: the action that follows, for `targets`.

    Raises:
        BrowserServerError: the request failed.
    """
    sandbox, state = browser.lease.sandbox, browser.state
    if sandbox is None or "stepPictures" not in sandbox.features:
        return None
    request = PerformAction(browserId=state.browser_id, pageId=state.page_id)
    if action is not None:
        with suppress(ToolError):  # the action itself will report the invalid value
            request = browser.request(action)
    taken = browser.lease.client.take_picture(request)
    if not taken.image:
        return None
    return PictureData(
        image=f"data:image/webp;base64,{taken.image}",
        width=taken.width,
        height=taken.height,
        url=taken.url,
        elements=taken.elements,
        targets=taken.targets,
    )
