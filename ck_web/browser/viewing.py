"""Where a person sees the browser of a run that waits for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ck_web.browser import kept_servers
from web_server.contract import view_path


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
